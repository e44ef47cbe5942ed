//! Forked processes, which have one thread whatever their parent had: C that was called before continues to work in
//! them.

use crate::compiled::parallel::{parallel, with_props};
use crate::compiled::programs;
use crate::compiled::run::scratch_dir;
use taffeta_ast::DType;
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_codegen::{LowerOptions, c, lower};

/// C program that multiplies matrices in a child forked before the parent's first call, in the parent, in a child
/// forked after that call, and in the child's child, and prints the number of threads of each.
const FORKS: &str = r#"
#define _POSIX_C_SOURCE 200112L
#include "matmul.h"
#include "taffeta_runtime.h"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void multiply(const char *who) {
    float a[64 * 8], b[8 * 8], c[64 * 8];
    int64_t shapes[3][2] = {{64, 8}, {8, 8}, {64, 8}};
    float *data[3] = {a, b, c};
    for (int k = 0; k < 64 * 8; k++) a[k] = (float)(k % 5);
    for (int k = 0; k < 8 * 8; k++) b[k] = 1;
    taffeta_tensor args[3];
    memset(args, 0, sizeof args);
    for (int k = 0; k < 3; k++) {
        args[k].dtype = TAFFETA_F32;
        args[k].ndim = 2;
        args[k].shape = shapes[k];
        args[k].data = data[k];
    }
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    ctx.threads = 2;
    /* A call that waits for threads that are not there is ended. */
    alarm(60);
    const int status = taffeta_matmul(&ctx, args, 3, NULL);
    alarm(0);
    printf("%s: %d %g, %d\n", who, status, c[0], taf_threads(&ctx));
    fflush(stdout);
}

static int forked(const char *who, const char *whose) {
    const pid_t child = fork();
    if (child == 0) {
        multiply(who);
        if (whose != NULL) _exit(forked(whose, NULL));
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status;
}

int main(void) {
    int status = forked("before", NULL);
    multiply("parent");
    status |= forked("after", "its child");
    multiply("parent");
    return status != 0;
}
"#;

#[test]
fn forked_children_run_on_one_thread() {
    let func = with_props(&programs::matmul(DType::F32), "i", &parallel());
    let source = c::emit(&lower(&func, &LowerOptions::default()).expect("it can be lowered"), &programs::sources());
    let dir = scratch_dir();
    Toolchain::write(&source, &dir, "matmul").expect("the directory can be written");
    let main = dir.join("main.c");
    std::fs::write(&main, FORKS).expect("the directory can be written");
    let compiler = Toolchain::find().expect("a C compiler");
    let program = compiler.executable(&dir, "matmul", &[main], &CompileOptions::default());
    let output = std::process::Command::new(program.unwrap_or_else(|d| panic!("{d:?}"))).output();
    let output = output.expect("it can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = "before: 0 13, 2\nparent: 0 13, 2\nafter: 0 13, 1\nits child: 0 13, 1\nparent: 0 13, 2\n";
    assert_eq!(text, expected, "{}", output.status);
    assert!(output.status.success());
}
