//! Conversions of 16-bit floats: every value, every tie and its neighbours, in loops that C compilers vectorise (of
//! known and of unknown length) and in loops with a dependence between iterations.

use crate::compiled::programs::{Builder, apply, load, local, range, store, var_def};
use crate::compiled::run::{check, compare, compile, compile_by};
use itertools::Itertools as _;
use taffeta_ast::{Buffer, DType, Expr, Func, Op, Value, half_precision};
use taffeta_codegen::probe::facts;
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_codegen::{LowerOptions, c, lower};

const HALVES: [DType; 2] = [DType::F16, DType::Bf16];

/// Decodes a number from its 16 bits.
fn number(dtype: DType, bits: u16) -> f64 {
    match dtype {
        DType::F16 => half::f16::from_bits(bits).to_f64(),
        _ => half::bf16::from_bits(bits).to_f64(),
    }
}

fn all(dtype: DType) -> Value {
    let bits = 0..=u16::MAX;
    let data = match dtype {
        DType::F16 => Buffer::F16(bits.map(half::f16::from_bits).collect()),
        _ => Buffer::Bf16(bits.map(half::bf16::from_bits).collect()),
    };
    Value::new(vec![1 << 16], data).expect("a vector")
}

/// Returns the midpoints between adjacent numbers, with their neighbours, and special values.
fn ties(dtype: DType, step: usize) -> Vec<f64> {
    let last = if dtype == DType::F16 { 0x7bff } else { 0x7f7f };
    let mut out = vec![f64::NAN, f64::INFINITY, 0.0, 2049.0000001, 65519.99999, 65520.0, 65536.0, 1e300, 1e-300];
    for bits in (0..=last).step_by(step) {
        let (here, next) = (number(dtype, bits), number(dtype, bits + 1));
        let tie = if next.is_finite() { (here + next) / 2.0 } else { here };
        out.extend([tie.next_down(), tie, tie.next_up(), here]);
    }
    let negative: Vec<f64> = out.iter().map(|v| -v).collect();
    out.extend(negative);
    out
}

/// Builds `y[i] = cast(x[i], to)`.
fn casts(from: DType, to: DType) -> Func {
    let mut b = Builder::default();
    let n = b.size("n");
    let (x, y) = (b.input("x", from, &[&n]), b.result("y", to, &[&n]));
    let body = range(1, "i", &n, |i| vec![store(2, &y, &[i], load(&x, &[i]).cast(to))]);
    b.func("casts", vec![body])
}

/// Checks loops of known and unknown length; the interpreter's values are those of the crate `half`.
fn check_both(func: &Func, x: &Value) {
    let known =
        LowerOptions { sizes: [("n".to_string(), x.shape()[0] as i64)].into_iter().collect(), ..Default::default() };
    for options in [LowerOptions::default(), known] {
        compare(func, &compile(func, &options), std::slice::from_ref(x), &[]).expect("nothing can fail");
    }
}

#[test]
fn every_half_round_trips_through_wider_types() {
    for dtype in HALVES {
        check_both(&casts(dtype, DType::F32), &all(dtype));
        let mut b = Builder::default();
        let n = b.size("n");
        let (x, y) = (b.input("x", dtype, &[&n]), b.result("y", dtype, &[&n]));
        let body = range(1, "i", &n, |i| vec![store(2, &y, &[i], apply(Op::Neg, &[&load(&x, &[i])]))]);
        check_both(&b.func("negated", vec![body]), &all(dtype));
    }
}

#[test]
fn every_tie_is_rounded_to_even() {
    for dtype in HALVES {
        let values = ties(dtype, 1);
        let narrow = Value::new(vec![values.len()], Buffer::F32(values.iter().map(|v| *v as f32).collect()));
        check_both(&casts(DType::F32, dtype), &narrow.expect("a vector"));
        let wide = Value::new(vec![values.len()], Buffer::F64(values)).expect("a vector");
        check_both(&casts(DType::F64, dtype), &wide);
    }
}

/// Checks a rounding whose result is widened again: written as a cast, gcc 12 drops it in loops of 16 doubles on CPUs
/// with AVX512-FP16.
#[test]
fn a_rounding_between_wider_numbers_is_not_dropped() {
    for dtype in HALVES {
        for (count, step) in [(16, 1777), (64, 400)] {
            let values: Vec<f64> = ties(dtype, step).into_iter().cycle().take(count).collect();
            let mut b = Builder::default();
            let n = Expr::int(count as i64);
            let (x, y) = (b.input("x", DType::F64, &[&n]), b.result("y", DType::F64, &[&n]));
            let rounded = |e: Expr| e.cast(DType::F32).cast(dtype).cast(DType::F64);
            let body = range(1, "i", &n, |i| vec![store(2, &y, &[i], rounded(load(&x, &[i])))]);
            let func = b.func("rounded", vec![body]);
            let x = Value::new(vec![count], Buffer::F64(values.clone())).expect("a vector");
            let got = check(&func, &[x]).expect("nothing can fail");
            if dtype == DType::F16 {
                let want: Vec<f64> =
                    values.iter().map(|v| half_precision::to_f16(f64::from(*v as f32)).to_f64()).collect();
                let Buffer::F64(got) = got[0].data() else { panic!("f64 was requested") };
                assert!(want.iter().zip_eq(got).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()));
            }
        }
    }
}

/// Builds `s = s * 0.75 + x[i]` in the type itself, for the conversions in loops that are not vectorised.
fn recurrence(dtype: DType) -> Func {
    let mut b = Builder::default();
    let n = b.size("n");
    let (x, y) = (b.input("x", dtype, &[&n]), b.result("y", dtype, &[&n]));
    let s = local("s", dtype, Vec::new());
    let step = |i: &Expr| {
        let kept = apply(Op::Mul, &[&load(&s, &[]), &Expr::float(0.75, dtype)]);
        vec![store(4, &s, &[], apply(Op::Add, &[&kept, &load(&x, &[i])])), store(5, &y, &[i], load(&s, &[]))]
    };
    let body = vec![store(2, &s, &[], Expr::float(1.0, dtype)), range(3, "i", &n, step)];
    b.func("recurrence", vec![var_def(1, &s, body)])
}

/// Returns 2000 finite numbers of a type.
fn finite(dtype: DType) -> Value {
    let bits = (0..2000u16).map(|k| k.wrapping_mul(29_641));
    let data = match dtype {
        DType::F16 => Buffer::F16(
            bits.map(half::f16::from_bits).map(|v| if v.is_finite() { v } else { half::f16::ONE }).collect(),
        ),
        _ => Buffer::Bf16(
            bits.map(half::bf16::from_bits).map(|v| if v.is_finite() { v } else { half::bf16::ONE }).collect(),
        ),
    };
    Value::new(vec![2000], data).expect("a vector")
}

#[test]
fn numbers_that_depend_on_each_other_are_rounded_each_time() {
    for dtype in HALVES {
        let func = recurrence(dtype);
        let lowered = lower(&func, &LowerOptions::default()).expect("it can be lowered");
        let code = c::emit(&lowered, &crate::compiled::programs::sources()).code;
        assert_eq!(code.contains("s = taf_f16_store_scalar("), dtype == DType::F16, "{code}");
        check_both(&func, &finite(dtype));
    }
}

/// Checks compilers without the two builtins, one of which clang 22 dropped; gcc is told to lack them.
#[test]
fn compilers_without_conversion_builtins_use_arithmetic() {
    let compiler = Toolchain::find().expect("a C compiler");
    // In other compilers a macro does not hide a name from `__has_builtin`.
    if facts(&compiler, &CompileOptions::default()).expect("it works").kind != "gcc" {
        return;
    }
    for gone in ["vcvtph2ps", "vcvtps2ph"] {
        let without = compiler.clone().with_flags(&[format!("-D__builtin_ia32_{gone}=taffeta_gone")]);
        let exact = CompileOptions { contract: false, ..CompileOptions::default() };
        let compiled = compile_by(&without, &recurrence(DType::F16), &LowerOptions::default(), &exact);
        compare(&recurrence(DType::F16), &compiled, &[finite(DType::F16)], &[]).expect("nothing can fail");
    }
}
