//! Loops with execution properties: the same results on every number of threads, and errors that leave the loops.

use crate::compiled::programs::{self, Builder, load, local, range, store, var_def};
use crate::compiled::run::{compare, compile, f32s, scratch_dir};
use taffeta_ast::stmt::{LoopProps, Parallel, Vectorize};
use taffeta_ast::{DType, Expr, Func, Stmt, StmtKind};
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_codegen::{LowerOptions, c, lower};

/// Sets the properties of all loops with that name.
pub fn with_props(func: &Func, name: &str, props: &LoopProps) -> Func {
    fn rewrite(s: &Stmt, name: &str, new: &LoopProps) -> Stmt {
        let s = s.map(&mut |inner| rewrite(inner, name, new), &mut Expr::clone);
        match s.kind() {
            StmtKind::For { iter, extent, body, .. } if iter.name() == name => s.with_kind(StmtKind::For {
                iter: iter.clone(),
                extent: extent.clone(),
                props: new.clone(),
                body: body.clone(),
            }),
            _ => s,
        }
    }
    func.with_body(rewrite(&func.body, name, props))
}

pub fn parallel() -> LoopProps {
    LoopProps { parallel: Some(Parallel::default()), ..LoopProps::default() }
}

#[test]
fn a_parallel_matmul_is_a_matmul() {
    let func = with_props(&programs::matmul(DType::F32), "i", &parallel());
    let compiled = compile(&func, &LowerOptions::default());
    let (a, b) = (f32s(&[37, 20], |i| (i % 13) as f32), f32s(&[20, 9], |i| (i % 7) as f32 - 3.0));
    compare(&func, &compiled, &[a, b], &[]).expect("it runs");
}

/// C program that prints the number of threads that the run-time header gives a parallel loop, for several requests.
const THREADS: &str = r#"
#include "matmul.h"
#include "taffeta_runtime.h"
#include <stdio.h>

int main(void) {
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    const int32_t asked[] = {0, 3, 1024, 1025, 1000000, INT32_MAX};
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        ctx.threads = asked[k];
        printf("%d: %d, %d\n", (int)asked[k], taf_threads(&ctx), taf_team(&ctx, 64));
    }
    return 0;
}
"#;

/// Checks the limit on threads: OpenMP libraries end the process if more are requested than they can keep, so requests
/// by the call or `OMP_NUM_THREADS` are cut. Every parallel loop asks the header.
#[test]
fn requests_for_threads_are_limited() {
    let func = with_props(&programs::matmul(DType::F32), "i", &parallel());
    let source = c::emit(&lower(&func, &LowerOptions::default()).expect("it can be lowered"), &programs::sources());
    let lines = |what: &str| source.code.lines().filter(|l| l.contains(what)).map(str::trim).collect::<Vec<_>>();
    assert_eq!(lines("taf_fork"), ["taf_region i_region = taf_fork(taf_threads(ctx));"], "{}", source.code);
    assert_eq!(
        lines("#pragma omp parallel"),
        ["#pragma omp parallel num_threads(i_region.threads)"],
        "{}",
        source.code
    );
    let dir = scratch_dir();
    Toolchain::write(&source, &dir, "matmul").expect("the directory can be written");
    let main = dir.join("main.c");
    std::fs::write(&main, THREADS).expect("the directory can be written");
    let compiler = Toolchain::find().expect("a C compiler");
    let program = compiler.executable(&dir, "matmul", &[main], &CompileOptions::default());
    let mut command = std::process::Command::new(program.unwrap_or_else(|d| panic!("{d:?}")));
    let output = command.env("OMP_NUM_THREADS", "1000000").output().expect("it can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = "0: 1024, 1024\n3: 3, 3\n1024: 1024, 1024\n1025: 1024, 1024\n1000000: 1024, 1024\n\
                    2147483647: 1024, 1024\n";
    assert_eq!(text, expected, "{}", String::from_utf8_lossy(&output.stderr));
}

/// C program that reports regions with invented times, in which other processes take the cores, and prints the
/// resulting team sizes.
const CROWDED: &str = r#"
#include "taffeta_runtime.h"

/* A region of four threads that took so many milliseconds: until the last one came, until the last one was done, and until all
   went on. Then the number of threads that the next one has, when the pause is over or long before that. */
static int region(double came, double done, double on, bool over) {
    taf_region r = {4, omp_get_wtime() - on * 1e-3, 0, 0};
    if (came > 0) r.last_in = r.forked + came * 1e-3;
    if (done > 0) r.last_out = r.forked + done * 1e-3;
    taf_join(&r);
    taf_crowded.until = over ? 0 : 1e9;
    return taf_fork(4).threads;
}

int main(void) {
    /* However long they are, and however uneven the work of their threads is: nothing stands still. */
    for (int k = 0; k < 50; k++) printf("%d", region(0, 400, 400, true));
    /* Now and then one that waits for a core gains less than threads do. */
    for (int k = 0; k < 50; k++) printf("%d", region(k % 5 == 0 ? 4 : 0, 9, 9, true));
    /* Wherever the time is lost, there are fewer. */
    printf(" %d", region(8000, 8001, 8001, false));
    printf("%d", region(0, 1, 8000, false));
    printf("%d", taf_fork(2).threads);
    printf("%d", taf_fork_all(4).threads);
    /* After the pause twice as many are on trial: whatever is lost is too much, and the next pause longer. */
    taf_crowded.until = 0;
    taf_crowded.pause = 0.1;
    printf(" %d", taf_fork(4).threads);
    printf("%d", region(4, 5, 5, false));
    printf("%d", taf_crowded.pause == 0.2);
    /* Where nothing is, the next ones follow, up to all. */
    printf(" %d", region(0, 100, 100, true));
    printf("%d", region(0, 100, 100, true));
    printf("%d", taf_crowded.pause == 0);
    return 0;
}
"#;

#[test]
fn busy_cores_reduce_the_number_of_threads() {
    let dir = scratch_dir();
    let func = with_props(&programs::matmul(DType::F32), "i", &parallel());
    let source = c::emit(&lower(&func, &LowerOptions::default()).expect("it can be lowered"), &programs::sources());
    Toolchain::write(&source, &dir, "matmul").expect("the directory can be written");
    let main = dir.join("main.c");
    std::fs::write(&main, CROWDED).expect("the directory can be written");
    let compiler = Toolchain::find().expect("a C compiler");
    let program = compiler.executable(&dir, "matmul", &[main], &CompileOptions::default());
    let output = std::process::Command::new(program.unwrap_or_else(|d| panic!("{d:?}"))).output();
    let text = String::from_utf8(output.expect("it can be run").stdout).expect("digits");
    let all = "4".repeat(100);
    assert_eq!(text, format!("{all} 2114 211 241"));
}

/// C program of sums that round differently in any other order: in four parts on four, two and one threads, and in
/// three parts.
const ROUNDED: &str = r#"
#include "sums.c"

int main(void) {
    enum { N = 1003, M = 5 };
    static double x[N][M], y[2][M], z[2];
    int64_t of_x[2] = {N, M}, of_y[1] = {M};
    for (int k = 0; k < N * M; k++) x[0][k] = sin(k) * pow(10, k % 17);
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    for (int halvings = 0; halvings < 4; halvings++) {
        ctx.threads = halvings < 3 ? 4 : 3;
        taf_crowded.halvings = halvings;
        taf_crowded.until = 1e9;
        const int threads = taf_fork(4).threads;
        double *into = y[halvings > 0];
        for (int j = 0; j < M; j++) into[j] = 0;
        taffeta_tensor args[3] = {{.dtype = TAFFETA_F64, .ndim = 2, .shape = of_x, .data = x},
                                  {.dtype = TAFFETA_F64, .ndim = 1, .shape = of_y, .data = into},
                                  {.dtype = TAFFETA_F64, .ndim = 0, .data = &z[halvings > 0]}};
        const int status = taffeta_sums(&ctx, args, 3, NULL);
        printf("%d %d %d\n", status, threads, memcmp(y[0], into, sizeof *y) != 0 || memcmp(z, &z[halvings > 0], sizeof *z) != 0);
    }
    taffeta_ctx_release(&ctx);
    return 0;
}
"#;

#[test]
fn results_do_not_depend_on_the_load_of_the_machine() {
    let program = "
def sums(x: f64[n, m], y: inout[f64[m]]) -> f64:
    z = 0.0
    for i in range(n):
        for j in range(m):
            y[j] += x[i, j]
    for i in range(n):
        z += x[i, 0]
    return z
";
    let on_threads = |l: &str| [taffeta_schedule::Arg::from(l)];
    let steps: [(&str, &[taffeta_schedule::Arg]); 2] =
        [("parallelize", &on_threads("i#1")), ("parallelize", &on_threads("i#2"))];
    let (_, func, program) = crate::compiled::scheduled::scheduled(program, &steps);
    let source = c::emit(&lower(&func, &LowerOptions::default()).expect("it can be lowered"), program.sources());
    assert!(source.code.contains("= taf_fork(i_team)") && source.code.contains("= taf_fork(i_2_team)"));
    let dir = scratch_dir();
    Toolchain::write(&source, &dir, "sums").expect("the directory can be written");
    std::fs::write(dir.join("main.c"), ROUNDED).expect("the directory can be written");
    let compiler = Toolchain::find().expect("a C compiler");
    let program = compiler.executable(&dir, "main", &[], &CompileOptions::default());
    let output = std::process::Command::new(program.unwrap_or_else(|d| panic!("{d:?}"))).output();
    let text = String::from_utf8(output.expect("it can be run").stdout).expect("digits");
    assert_eq!(text, "0 4 0\n0 2 0\n0 1 0\n0 1 1\n");
}

#[test]
fn errors_leave_parallel_loops() {
    let func = with_props(&programs::circular_diff(), "i", &parallel());
    let compiled = compile(&func, &LowerOptions::default());
    let adj = |bad: Option<usize>| {
        let data = (0..300).map(|i| if Some(i) == bad { 1000 } else { (i % 100) as i32 }).collect();
        taffeta_ast::Value::new(vec![100, 3], taffeta_ast::Buffer::I32(data)).expect("100 faces")
    };
    let e = f32s(&[100, 4], |i| (i as f32).cos());
    compare(&func, &compiled, &[e.clone(), adj(None)], &[]).expect("it runs");
    let error = compare(&func, &compiled, &[e, adj(Some(200))], &[]).expect_err("1000 is not a face");
    assert_eq!(error.to_string(), "index 1000 is out of range for dimension 0 of `e`, which has size 100");
}

/// Checks that every iteration has an array of its own, of a size computed there, also if the iteration fails.
#[test]
fn iterations_have_local_arrays() {
    let mut b = Builder::default();
    let (n, m) = (b.size("n"), b.size("m"));
    let at = b.input("at", DType::I64, &[&n]);
    let y = b.result("y", DType::F64, &[&n]);
    let body = range(1, "i", &n, |i| {
        let own = local("own", DType::F64, vec![m.clone(), i.plus(&Expr::int(1))]);
        let fill = range(3, "k", &m, |k| {
            vec![range(3, "l", &i.plus(&Expr::int(1)), |l| {
                vec![store(3, &own, &[k, l], k.plus(l).plus(i).cast(DType::F64))]
            })]
        });
        let picked = load(&own, &[&load(&at, &[i]), i]);
        vec![var_def(2, &own, vec![fill, store(4, &y, &[i], picked)])]
    });
    let func = with_props(&b.func("own", vec![body]), "i", &parallel());
    let compiled = compile(&func, &LowerOptions::default());
    let at = |bad| {
        let data = (0..50).map(|i| if bad && i == 33 { 7 } else { i % 7 }).collect();
        taffeta_ast::Value::new(vec![50], taffeta_ast::Buffer::I64(data)).expect("50 numbers")
    };
    compare(&func, &compiled, &[at(false)], &[("m", 7)]).expect("it runs");
    compare(&func, &compiled, &[at(true)], &[("m", 7)]).expect_err("7 is out of range");
}

#[test]
fn vectorised_and_unrolled_loops_compute_the_same() {
    let vectorized = with_props(
        &programs::jacobi(),
        "j",
        &LoopProps { vectorize: Some(Vectorize::default()), ..LoopProps::default() },
    );
    let compiled = compile(&vectorized, &LowerOptions::default());
    let x = f32s(&[19, 23], |i| ((i * 31) % 17) as f32);
    compare(&vectorized, &compiled, std::slice::from_ref(&x), &[]).expect("it runs");
    let unroll = LoopProps { unroll: true, ..LoopProps::default() };
    let unrolled = with_props(&programs::circular_diff(), "j", &unroll);
    let compiled = compile(&unrolled, &LowerOptions::default());
    let adj = taffeta_ast::Value::new(vec![2, 3], taffeta_ast::Buffer::I32(vec![0, 1, 1, 1, 0, 1])).expect("2 faces");
    compare(&unrolled, &compiled, &[f32s(&[2, 5], |i| i as f32), adj], &[]).expect("it runs");
    let refused = lower(&with_props(&programs::jacobi(), "j", &unroll), &LowerOptions::default());
    assert!(refused.expect_err("its length is not known").0[0].message.contains("cannot be unrolled"));
}
