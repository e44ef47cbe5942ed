//! Runs of compiled programs: helpers that compile, call, and compare with the interpreter.

#![allow(unsafe_code)] // `Compiled::load` runs the compiled code

use crate::compiled::programs::{
    self, Builder, apply, load, local, range, range_step, reduce, sources, store, var_def,
};
use itertools::Itertools as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::{Buffer, DType, Expr, Func, Op, ReduceOp, Value};
use taffeta_codegen::call::Context;
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_codegen::{CallError, Compiled, LowerOptions, c, lower};

/// Creates a directory that is removed when the tests end.
pub fn scratch_dir() -> PathBuf {
    static ALL: OnceLock<tempfile::TempDir> = OnceLock::new();
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let all = ALL.get_or_init(|| tempfile::tempdir().expect("a temporary directory"));
    let dir = all.path().join(COUNT.fetch_add(1, Ordering::Relaxed).to_string());
    std::fs::create_dir(&dir).expect("a directory");
    dir
}

/// Compiles without contraction, so that results are those of the interpreter to the last bit, and without
/// optimisation, which takes as long again: campaigns and tests of vectors optimise.
pub fn compile(func: &Func, options: &LowerOptions) -> Compiled {
    compile_with(func, options, &CompileOptions { contract: false, optimize: false, ..CompileOptions::default() })
}

pub fn compile_with(func: &Func, options: &LowerOptions, flags: &CompileOptions) -> Compiled {
    compile_by(&Toolchain::find().expect("a C compiler"), func, options, flags)
}

pub fn compile_by(compiler: &Toolchain, func: &Func, options: &LowerOptions, flags: &CompileOptions) -> Compiled {
    let lowered = lower(func, options).expect("the program can be lowered");
    let source = c::emit(&lowered, &sources());
    let dir = scratch_dir();
    Toolchain::write(&source, &dir, "program").expect("the directory can be written");
    let runtime = testkit::batch::runtime(&source, compiler, flags);
    let library =
        compiler.shared(&dir, "program", flags, &runtime).unwrap_or_else(|d| panic!("{d:?}\n{}", source.code));
    // SAFETY: the library was just built from this C, in a directory of this test.
    unsafe { Compiled::load(&library, source.signature) }.expect("the library can be loaded")
}

/// Runs in the interpreter and in C and compares results, `inout` parameters, or the error.
pub fn check(func: &Func, params: &[Value]) -> Result<Vec<Value>, CallError> {
    check_sizes(func, params, &[])
}

pub fn check_sizes(func: &Func, params: &[Value], sizes: &[(&str, i64)]) -> Result<Vec<Value>, CallError> {
    let compiled = compile(func, &LowerOptions::default());
    compare(func, &compiled, params, sizes)
}

pub fn compare(
    func: &Func,
    compiled: &Compiled,
    params: &[Value],
    sizes: &[(&str, i64)],
) -> Result<Vec<Value>, CallError> {
    let inputs = Inputs { params: params.to_vec(), sizes: sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect() };
    let expected = interp::run(func, &inputs);
    let mut given = params.to_vec();
    let got = compiled.call_values(&mut Context::new(2), &mut given, sizes);
    match (expected, got) {
        (Ok(expected), Ok((results, _))) => {
            for (k, (want, have)) in expected.results.iter().chain(&expected.made).zip_eq(&results).enumerate() {
                assert_same(want, have, expected.unwritten.get(k).map_or(&[], Vec::as_slice));
            }
            for (want, have) in expected.params.iter().zip_eq(&given) {
                assert_same(want, have, &[]);
            }
            Ok(results)
        }
        (Err(want), Err(have)) => {
            assert_eq!(want.kind.code(), have.kind.code(), "expected {want}, found {have}");
            let line = sources().line_col(want.origin.span()).map(|at| at.line as u32);
            assert_eq!(line, have.site.as_ref().map(|s| s.line), "expected {want}, found at {have:?}");
            Err(have)
        }
        (want, have) => panic!("the interpreter gives {want:?}, C gives {have:?}"),
    }
}

/// Compares bit by bit, except for the bits of NaNs.
pub fn assert_same(want: &Value, have: &Value, unwritten: &[usize]) {
    assert_eq!(want.shape(), have.shape());
    assert_eq!(want.dtype(), have.dtype());
    for i in (0..want.data().len()).filter(|i| !unwritten.contains(i)) {
        let same = match (want.data().get_int(i), have.data().get_int(i)) {
            (Some(a), Some(b)) => a == b,
            _ => {
                let (a, b) = (want.data().get_f64(i), have.data().get_f64(i));
                a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
            }
        };
        assert!(same, "element {i}: found {:?}, expected {:?}", have.data().get_f64(i), want.data().get_f64(i));
    }
}

pub fn f32s(shape: &[usize], f: impl Fn(usize) -> f32) -> Value {
    let n = shape.iter().product();
    Value::new(shape.to_vec(), Buffer::F32((0..n).map(f).collect())).expect("as many elements as the shape says")
}

fn i32s(shape: &[usize], f: impl Fn(usize) -> i32) -> Value {
    let n = shape.iter().product();
    Value::new(shape.to_vec(), Buffer::I32((0..n).map(f).collect())).expect("as many elements as the shape says")
}

#[test]
fn matmul_multiplies() {
    let func = programs::matmul(DType::F32);
    let compiled = compile(&func, &LowerOptions::default());
    for [n, p, m] in [[3, 4, 5], [1, 1, 1], [0, 4, 5], [3, 0, 5], [17, 33, 8]] {
        let a = f32s(&[n, p], |i| i as f32 * 0.5 - 3.0);
        let b = f32s(&[p, m], |i| 1.0 / (i as f32 + 1.0));
        compare(&func, &compiled, &[a, b], &[]).expect("it runs");
    }
}

#[test]
fn sizes_can_be_compiled_in() {
    let func = programs::matmul(DType::F32);
    let sizes = [("n".to_string(), 3), ("p".to_string(), 4)].into_iter().collect();
    let compiled = compile(&func, &LowerOptions { sizes, ..LowerOptions::default() });
    let a = f32s(&[3, 4], |i| i as f32);
    compare(&func, &compiled, &[a.clone(), f32s(&[4, 5], |i| i as f32)], &[]).expect("it runs");
    let error = compiled.call_values(&mut Context::new(1), &mut [a, f32s(&[5, 5], |_| 0.0)], &[]);
    let error = error.expect_err("p is 4 in one and 5 in the other");
    assert_eq!(error.to_string(), "dimension 0 of `b` has size 5, but `p` is 4");
    let error = compiled.call_values(&mut Context::new(1), &mut [f32s(&[2, 4], |_| 0.0), f32s(&[4, 5], |_| 0.0)], &[]);
    let error = error.expect_err("n is compiled in");
    assert_eq!(error.to_string(), "the size `n` is 2, but 3 is compiled in");
}

#[test]
fn circular_diff_gathers_and_reports_bad_indices() {
    let func = programs::circular_diff();
    let compiled = compile(&func, &LowerOptions::default());
    let e = f32s(&[6, 8], |i| (i as f32).sin());
    let adj = i32s(&[6, 3], |i| ((i * 7 + 2) % 6) as i32);
    compare(&func, &compiled, &[e.clone(), adj], &[]).expect("it runs");
    let bad = i32s(&[6, 3], |i| if i == 10 { 6 } else { 0 });
    let error = compare(&func, &compiled, &[e.clone(), bad], &[]).expect_err("6 is not a face");
    assert_eq!(error.to_string(), "index 6 is out of range for dimension 0 of `e`, which has size 6");
    let bad = i32s(&[6, 3], |i| if i == 10 { -1 } else { 0 });
    compare(&func, &compiled, &[e, bad], &[]).expect_err("-1 is not a face");
    // Without features there is no access, and so no error.
    let bad = i32s(&[6, 3], |_| 77);
    compare(&func, &compiled, &[f32s(&[6, 0], |_| 0.0), bad], &[]).expect("nothing is read");
}

#[test]
fn local_tensors_live_in_registers_on_the_stack_in_the_arena_and_on_the_heap() {
    let mut b = Builder::default();
    let n = b.size("n");
    let x = b.input("x", DType::F64, &[&n]);
    let y = b.result("y", DType::F64, &[&n]);
    let small = local("small", DType::F64, vec![Expr::int(4)]);
    let scratch = local("scratch", DType::F64, vec![n.clone(), Expr::int(2)]);
    let sum = local("sum", DType::F64, vec![]);
    let zero = Expr::float(0.0, DType::F64);
    let four = Expr::int(4);
    let body = var_def(
        1,
        &small,
        vec![
            range(2, "k", &four, |k| vec![store(3, &small, &[k], k.clone().cast(DType::F64))]),
            var_def(
                4,
                &scratch,
                vec![
                    range(5, "i", &n, |i| {
                        let one = Expr::int(1);
                        vec![
                            store(6, &scratch, &[i, &Expr::int(0)], load(&x, &[i])),
                            store(7, &scratch, &[i, &one], load(&small, &[&i.modulo(&four)])),
                        ]
                    }),
                    range(8, "i", &n, |i| {
                        let prefix = local("prefix", DType::F64, vec![i.plus(&Expr::int(1))]);
                        vec![var_def(
                            9,
                            &prefix,
                            vec![
                                range(10, "k", &i.plus(&Expr::int(1)), |k| {
                                    let value =
                                        load(&scratch, &[k, &Expr::int(0)]).times(&load(&scratch, &[i, &Expr::int(1)]));
                                    vec![store(11, &prefix, &[k], value)]
                                }),
                                var_def(
                                    12,
                                    &sum,
                                    vec![
                                        store(13, &sum, &[], zero.clone()),
                                        range(14, "k", &i.plus(&Expr::int(1)), |k| {
                                            vec![reduce(15, &sum, &[], ReduceOp::Add, load(&prefix, &[k]))]
                                        }),
                                        store(16, &y, &[i], load(&sum, &[])),
                                    ],
                                ),
                            ],
                        )]
                    }),
                ],
            ),
        ],
    );
    let func = b.func("places", vec![body]);
    let compiled = compile(&func, &LowerOptions::default());
    for n in [0, 1, 5, 40] {
        let x = Value::new(vec![n], Buffer::F64((0..n).map(|i| i as f64 + 0.25).collect())).expect("a vector");
        compare(&func, &compiled, std::slice::from_ref(&x), &[]).expect("it runs");
        let (_, report) = compiled.call_values(&mut Context::new(1), &mut [x], &[]).expect("it runs");
        let rounded = |bytes: usize| bytes.div_ceil(64) * 64;
        assert_eq!(report.memory, rounded(n * 2 * 8) + rounded(n * 8));
    }
}

#[test]
fn loops_run_in_python_s_order() {
    let mut b = Builder::default();
    let x = b.input("x", DType::I64, &[&Expr::int(3)]);
    let y = b.result("y", DType::I64, &[]);
    let end = |k: i64| load(&x, &[&Expr::int(k)]);
    let ten = Expr::int(10);
    let body = vec![
        store(1, &y, &[], Expr::int(1)),
        range_step(2, "i", &end(0), &end(1), &end(2), |i| vec![store(3, &y, &[], load(&y, &[]).times(&ten).plus(i))]),
        range_step(4, "j", &end(0), &end(1), &Expr::int(-3), |j| {
            vec![store(5, &y, &[], load(&y, &[]).times(&ten).plus(j))]
        }),
    ];
    let func = b.func("loops", body);
    let compiled = compile(&func, &LowerOptions::default());
    let extreme = [i64::MAX - 1, i64::MAX, 5];
    for ends in [[0, 5, 1], [5, 0, -2], [0, 5, -1], [9, 1, 3], [0, 5, 0], extreme, [i64::MIN + 1, i64::MIN, -7]] {
        let x = Value::new(vec![3], Buffer::I64(ends.to_vec())).expect("three numbers");
        let outcome = compare(&func, &compiled, &[x], &[]);
        assert_eq!(outcome.is_err(), ends[2] == 0);
    }
}

/// Checks that the iterator of a loop that never runs is not divided by.
#[test]
fn loops_that_never_run_divide_by_nothing() {
    let mut b = Builder::default();
    let n = b.size("n");
    let y = b.result("y", DType::I64, &[]);
    let (one, two) = (Expr::int(1), Expr::int(2));
    let body = vec![
        store(1, &y, &[], one.clone()),
        range_step(2, "i", &one, &n.min_with(&one), &one, |i| {
            vec![store(3, &y, &[], load(&y, &[]).plus(&n.floor_div(i).floor_div(&two)))]
        }),
    ];
    let func = b.func("never", body);
    let compiled = compile(&func, &LowerOptions::default());
    for size in [0, 1, 5] {
        compare(&func, &compiled, &[], &[("n", size)]).expect("it runs");
    }
}

/// Builds `y[i] = value(i, k[i], n)` for vectors of length `n`, with a function that loads from `x`.
fn lazy(value: impl Fn([&Expr; 3], &dyn Fn(&Expr) -> Expr) -> Expr) -> Func {
    let mut b = Builder::default();
    let n = b.size("n");
    let x = b.input("x", DType::F32, &[&n]);
    let k = b.input("k", DType::I64, &[&n]);
    let y = b.result("y", DType::F32, &[&n]);
    let body = range(1, "i", &n, |i| vec![store(2, &y, &[i], value([i, &load(&k, &[i]), &n], &|at| load(&x, &[at])))]);
    b.func("lazy", vec![body])
}

fn i64s(values: [i64; 4]) -> Value {
    Value::new(vec![4], Buffer::I64(values.to_vec())).expect("four numbers")
}

#[test]
fn lazy_operands_are_checked_only_where_they_are_needed() {
    let func = lazy(|[_, at, n], x| {
        let inside = Expr::int(0).less_eq(at).and(&at.less(n));
        let positive = Expr::float(0.0, DType::F32).less(&x(at));
        inside.and(&positive).select(&x(at), &Expr::float(-1.0, DType::F32))
    });
    check(&func, &[f32s(&[4], |i| i as f32 - 1.0), i64s([0, -1, 4, 2])]).expect("it runs");
}

#[test]
fn lazy_operands_are_checked_where_they_are_needed() {
    let func = lazy(|[i, at, _], x| i.less(&Expr::int(2)).select(&x(at), &Expr::float(-1.0, DType::F32)));
    let compiled = compile(&func, &LowerOptions::default());
    let run = |ks: [i64; 4]| compare(&func, &compiled, &[f32s(&[4], |i| i as f32), i64s(ks)], &[]);
    run([3, 0, -1, 4]).expect("the last two are not needed");
    let error = run([3, 4, 0, 0]).expect_err("4 is no index");
    assert_eq!(error.to_string(), "index 4 is out of range for dimension 0 of `x`, which has size 4");
    run([-1, 0, 0, 0]).expect_err("-1 is no index");
}

#[test]
fn results_by_reference_and_inout() {
    let mut b = Builder::default();
    let n = b.size("n");
    let x = b.inout("x", DType::F32, &[&n]);
    let scale = b.input("scale", DType::F32, &[]);
    let total = b.result("total", DType::F32, &[]);
    let body = vec![
        store(1, &total, &[], Expr::float(0.0, DType::F32)),
        range(2, "i", &n, |i| {
            vec![
                reduce(3, &x, &[i], ReduceOp::Mul, load(&scale, &[])),
                reduce(4, &total, &[], ReduceOp::Add, load(&x, &[i])),
            ]
        }),
    ];
    let func = b.func("scale", body);
    let scale = Value::new(vec![], Buffer::F32(vec![2.5])).expect("a scalar");
    check(&func, &[f32s(&[7], |i| i as f32), scale]).expect("it runs");
}

#[test]
fn free_sizes_are_arguments() {
    let mut b = Builder::default();
    let n = b.size("n");
    let y = b.result("y", DType::I64, &[&n.times(&Expr::int(2))]);
    let body = range(1, "i", &n.times(&Expr::int(2)), |i| vec![store(2, &y, &[i], apply(Op::Neg, &[i]))]);
    let func = b.func("iota", vec![body]);
    let results = check_sizes(&func, &[], &[("n", 3)]).expect("it runs");
    assert_eq!(results[0].shape(), [6]);
    let compiled = compile(&func, &LowerOptions::default());
    let error = compiled.call_values(&mut Context::new(1), &mut [], &[]).expect_err("n is not known");
    assert_eq!(error.to_string(), "the size `n` is not given, and no parameter fixes it");
}

/// Checks names that have another meaning in C, its headers or the emitter, in every position.
#[test]
fn names_with_a_meaning_in_c() {
    for name in ["div", "exp", "free", "fail", "remove", "main", "int", "plan", "NULL"] {
        let mut b = Builder::default();
        let sizes: Vec<Expr> =
            ["bytes", "at_tmp", "div_args", "div_plan", "status"].iter().map(|s| b.size(s)).collect();
        let x = b.input("exp", DType::F64, &[&sizes[0], &sizes[1]]);
        let z = b.input("expf", DType::F64, &[&sizes[2], &sizes[3], &sizes[4]]);
        let y = b.result("double", DType::F64, &[&sizes[0]]);
        let tmp = local("tmp", DType::F64, vec![sizes[0].clone(), sizes[1].clone()]);
        let body = var_def(
            1,
            &tmp,
            vec![range(2, "for", &sizes[0], |i| {
                let zero = Expr::int(0);
                vec![
                    store(3, &tmp, &[i, &zero], apply(Op::Exp, &[&load(&x, &[i, &zero])])),
                    store(4, &y, &[i], load(&tmp, &[i, &zero]).plus(&load(&z, &[&zero, &zero, &zero]))),
                ]
            })],
        );
        let func = b.func(name, vec![body]);
        let ones = |shape: &[usize]| {
            let n = shape.iter().product();
            Value::new(shape.to_vec(), Buffer::F64(vec![0.0; n])).expect("as many elements as the shape says")
        };
        check(&func, &[ones(&[3, 2]), ones(&[1, 2, 3])]).expect("it runs");
    }
}
