//! C interface as a C program uses it, built with AddressSanitizer and UndefinedBehaviorSanitizer: valid calls, and
//! calls that violate each checked rule.

use crate::compiled::programs::{self, sources};
use crate::compiled::run::scratch_dir;
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_codegen::{LowerOptions, c, lower};

const DRIVER: &str = r#"
#include "matmul.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(taffeta_ctx *ctx, int status, int wanted, const char *message) {
    if (status != wanted || (message != NULL && strcmp(ctx->message, message) != 0)) {
        printf("status %d, wanted %d: %s\n", status, wanted, ctx->message);
        failures++;
    }
}

int main(void) {
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, y[4] = {0};
    int64_t s23[2] = {2, 3}, s32[2] = {3, 2}, s22[2] = {2, 2}, made[2] = {-5, -5};
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    taffeta_tensor args[3] = {{TAFFETA_F32, 2, s23, NULL, a, NULL, NULL, 0, 0},
                           {TAFFETA_F32, 2, s32, NULL, b, NULL, NULL, 0, 0},
                           {TAFFETA_F32, 2, s22, NULL, y, NULL, NULL, 0, 0}};
    taffeta_tensor saved[3];
    memcpy(saved, args, sizeof args);
#define RESET() memcpy(args, saved, sizeof args)

    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_OK, "");
    if (y[0] != 4 || y[1] != 5 || y[2] != 10 || y[3] != 11) failures++;

    /* a result of the callee's */
    args[2].data = NULL;
    args[2].shape = made;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_OK, "");
    if (made[0] != 2 || made[1] != 2 || ((float *)args[2].data)[3] != 11 || args[2].owner != TAFFETA_OWNER_CALLEE) failures++;
    taffeta_free(&args[2]);
    if (args[2].data != NULL) failures++;
    RESET();

    /* planned */
    size_t arena = 99;
    made[0] = made[1] = -5;
    args[2].shape = made;
    expect(&ctx, taffeta_matmul_plan(&ctx, args, 3, NULL, &arena), TAFFETA_OK, "");
    if (made[0] != 2 || made[1] != 2 || arena != 0) failures++;
    RESET();

    /* strides that say row-major, and others */
    int64_t good[2] = {3, 1}, bad[2] = {1, 2};
    args[0].strides = good;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_OK, "");
    args[0].strides = bad;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_LAYOUT,
           "`a` is not row-major and contiguous: dimension 1 has stride 2, expected 1");
    RESET();

    expect(&ctx, taffeta_matmul(&ctx, args, 2, NULL), TAFFETA_ERROR_CALL, "2 arguments given, 3 expected (parameters, then results)");
    expect(&ctx, taffeta_matmul(&ctx, NULL, 3, NULL), TAFFETA_ERROR_CALL, "args is NULL");
    args[0].dtype = TAFFETA_F64;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_DTYPE, "`a` has elements of type f64, expected f32");
    args[0].dtype = 77;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_DTYPE, NULL);
    RESET();
    args[0].ndim = 1;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_SHAPE, "`a` has 1 dimensions, expected 2");
    RESET();
    args[0].shape = s32;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_SHAPE, "dimension 0 of `b` has size 3, but `p` is 2");
    RESET();
    args[2].shape = s23;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_SHAPE, "dimension 1 of `y` has size 3, but `m` is 2");
    RESET();
    args[1].data = NULL;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_CALL, "the data of `b` is NULL");
    RESET();
    args[0].shape = NULL;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_CALL, "the shape of `a` is NULL");
    RESET();
    args[1].data = (char *)b + 1;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_LAYOUT, "the data of `b` is not aligned to its element type");
    RESET();
    args[2].data = a + 2;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_ALIAS, "`y` is written and shares memory with `a`");
    RESET();
    /* parameters may share */
    args[1].data = a;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_OK, "");
    RESET();
    int64_t huge[2] = {INT64_C(1) << 46, INT64_C(1) << 46}, negative[2] = {-1, 3};
    args[0].shape = huge;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_SHAPE, NULL);
    args[0].shape = negative;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_SIZE, "dimension 0 of `a` has size -1");
    RESET();
    int64_t wide[2] = {0, INT64_C(1) << 46}, tall[2] = {INT64_C(1) << 46, INT64_C(1) << 46}, none[2] = {0, INT64_C(1) << 46};
    args[0].shape = wide;
    args[1].shape = tall;
    args[2].shape = none;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, NULL), TAFFETA_ERROR_SIZE, "the size of `b` overflows: a tensor has at most 2^47 elements");
    RESET();
    int64_t sizes[3] = {2, 3, -1};
    expect(&ctx, taffeta_matmul(&ctx, args, 3, sizes), TAFFETA_OK, "");
    sizes[1] = 4;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, sizes), TAFFETA_ERROR_SHAPE, "dimension 1 of `a` has size 3, but `p` is 4");
    sizes[1] = -7;
    expect(&ctx, taffeta_matmul(&ctx, args, 3, sizes), TAFFETA_ERROR_SIZE, "the size `p` is -7");
    taffeta_ctx old = {0};
    expect(&old, taffeta_matmul(&old, args, 3, NULL), TAFFETA_ERROR_CALL, NULL);
    if (taffeta_matmul(NULL, args, 3, NULL) != TAFFETA_ERROR_CALL) failures++;
    taffeta_ctx_release(&ctx);
    printf("%d failures\n", failures);
    return failures != 0;
}
"#;

#[test]
fn errors_are_reported_to_c_programs() {
    let lowered =
        lower(&programs::matmul(taffeta_ast::DType::F32), &LowerOptions::default()).expect("it can be lowered");
    let dir = scratch_dir();
    Toolchain::write(&c::emit(&lowered, &sources()), &dir, "matmul").expect("the directory can be written");
    let driver = dir.join("driver.c");
    std::fs::write(&driver, DRIVER).expect("the directory can be written");
    let sanitize = CompileOptions { sanitize: true, ..CompileOptions::default() };
    let compiler = Toolchain::find().expect("a C compiler");
    let program = compiler.executable(&dir, "matmul", &[driver], &sanitize).unwrap_or_else(|d| panic!("{d:?}"));
    let output = std::process::Command::new(program).output().expect("it can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text, "0 failures\n");
}

/// Checks that two entries link into one C++ program without clashes.
#[test]
fn entries_link_into_one_cpp_program() {
    let compiler = Toolchain::find().expect("a C compiler");
    let dir = scratch_dir();
    for func in [programs::matmul(taffeta_ast::DType::F32), programs::circular_diff()] {
        let lowered = lower(&func, &LowerOptions::default()).expect("it can be lowered");
        Toolchain::write(&c::emit(&lowered, &sources()), &dir, &func.name).expect("the directory can be written");
    }
    let main = dir.join("main.c");
    let text = "#include \"matmul.h\"\n#include \"circular_diff.h\"\n\
        int main(void) { return taffeta_matmul(0, 0, 0, 0) == TAFFETA_ERROR_CALL && taffeta_circular_diff(0, 0, 0, 0) ? 0 : 1; }\n";
    std::fs::write(&main, text).expect("the directory can be written");
    let other = dir.join("circular_diff.c");
    let program = compiler
        .executable(&dir, "matmul", &[main, other], &CompileOptions::default())
        .unwrap_or_else(|d| panic!("{d:?}"));
    assert!(std::process::Command::new(program).status().expect("it can be run").success());
    let archive = compiler.archive(&dir, "matmul", &CompileOptions::default()).expect("an archive");
    assert!(archive.is_file());
    if let Ok(output) = std::process::Command::new("c++")
        .args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++", "matmul.h"])
        .current_dir(&dir)
        .output()
    {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
