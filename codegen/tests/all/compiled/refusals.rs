//! Programs that cannot be compiled are refused with a diagnostic, and unfit calls before C is entered.

use crate::compiled::programs::{self, Builder, local, range, stmt, store, var_def};
use crate::compiled::run::{check_sizes, compare, compile, f32s};
use itertools::Itertools;
use taffeta_ast::format::{Format, Level, LevelKind};
use taffeta_ast::stmt::{LoopProps, Role};
use taffeta_ast::{Buffer, DType, Expr, Extent, Func, Stmt, StmtKind, Symbol, Tensor, Value};
use taffeta_codegen::call::{Arg, ArgMut, ArgRef, Context, ErrorKind};
use taffeta_codegen::{LowerOptions, lower};

fn refused(func: &Func, code: &str, message: &str) {
    let d = lower(func, &LowerOptions::default()).expect_err("it cannot be compiled");
    assert_eq!((d.0[0].code, d.0[0].message.as_str()), (code, message));
}

#[test]
fn unsupported_statements() {
    let unsupported = "lower::unsupported";
    let body = Stmt::nop();
    let (iter, props) = (Symbol::new("x"), LoopProps::default());
    let reals = stmt(1, StmtKind::For { iter, extent: Extent::Reals, props, body });
    refused(
        &Builder::default().func("f", vec![reals]),
        unsupported,
        "a loop over the reals cannot be compiled to C yet",
    );
    let format = Format { levels: [Level::new(LevelKind::Compressed)].into(), ..Format::dense(1) };
    let sparse = Tensor { format, ..Tensor::dense(Symbol::new("t"), DType::F32, vec![Expr::int(3)], Role::Local) };
    let sparse = var_def(1, &std::sync::Arc::new(sparse), vec![]);
    refused(&Builder::default().func("f", vec![sparse]), unsupported, "the storage of `t` cannot be compiled to C yet");
}

#[test]
fn unknown_and_invalid_sizes() {
    let func = programs::matmul(DType::F32);
    let with = |name: &str, value| {
        lower(
            &func,
            &LowerOptions { sizes: [(name.to_string(), value)].into_iter().collect(), ..LowerOptions::default() },
        )
    };
    assert_eq!(with("q", 3).expect_err("there is no q").0[0].code, "lower::unknown_size");
    assert_eq!(with("n", -3).expect_err("it is negative").0[0].code, "lower::size");
    assert_eq!(with("n", 1 << 60).expect_err("it is too large").0[0].code, "lower::size");
}

/// Checks that a local tensor with an invalid size is an error of its statement, and only if it is reached.
#[test]
fn local_tensors_of_impossible_sizes() {
    let mut b = Builder::default();
    let n = b.size("n");
    let y = b.result("y", DType::F32, &[]);
    let one = Expr::float(1.0, DType::F32);
    let t = local("t", DType::F32, vec![n.minus(&Expr::int(5))]);
    let reached = Expr::int(2).less(&n);
    let inside = stmt(
        2,
        StmtKind::If {
            cond: reached,
            then: var_def(
                3,
                &t,
                vec![range(4, "i", &n.minus(&Expr::int(5)), |i| vec![store(5, &t, &[i], one.clone())])],
            ),
            otherwise: None,
        },
    );
    let func = b.func("sizes", vec![store(1, &y, &[], one.clone()), inside]);
    check_sizes(&func, &[], &[("n", 1)]).expect("it is not reached");
    check_sizes(&func, &[], &[("n", 9)]).expect("it is 4");
    let error = check_sizes(&func, &[], &[("n", 3)]).expect_err("it is -2");
    assert_eq!(error.to_string(), "dimension 0 of `t` has the negative size -2");
}

/// Checks sizes whose product overflows 64 bits, to 0.
#[test]
fn sizes_that_overflow() {
    let mut b = Builder::default();
    let (n, m) = (b.size("n"), b.size("m"));
    let y = b.result("y", DType::F32, &[&n.times(&m)]);
    let func = b.func("huge", vec![store(1, &y, &[&Expr::int(0)], Expr::float(0.0, DType::F32))]);
    let compiled = compile(&func, &LowerOptions::default());
    let error = compiled.call_values(&mut Context::new(1), &mut [], &[("n", 1 << 40), ("m", 1 << 40)]);
    let error = error.expect_err("it does not fit");
    assert_eq!(
        (error.kind, error.to_string().as_str()),
        (ErrorKind::Size, "the size of `y` overflows: a tensor has at most 2^47 elements")
    );
}

/// Checks that an unread tensor without elements is refused if its sizes exceed the limit: by itself, in a loop that
/// leaves its sizes unchanged, and in one that changes them.
#[test]
fn overflowing_sizes_of_unread_tensors() {
    let unread = |within: Option<bool>| {
        let mut b = Builder::default();
        let (n, m) = (b.size("n"), b.size("m"));
        let y = b.result("y", DType::F32, &[]);
        let one = Expr::float(1.0, DType::F32);
        let declared = |first: &Expr| {
            let t = local("t", DType::F32, vec![first.clone(), n.clone(), m.clone()]);
            let fill = range(2, "i", &m, |i| vec![store(3, &t, &[&Expr::int(0), &Expr::int(0), i], one.clone())]);
            var_def(1, &t, vec![fill])
        };
        let unread = match within {
            None => declared(&n),
            Some(changes) => {
                range(5, "k", &Expr::int(2), |k| vec![declared(&if changes { n.times(k) } else { n.clone() })])
            }
        };
        b.func("unread", vec![store(4, &y, &[], one.clone()), unread])
    };
    let with = |func: &Func, compiled: bool, n: i64| {
        let sizes = if compiled { vec![("n".to_string(), n), ("m".to_string(), 0)] } else { Vec::new() };
        let options = LowerOptions { sizes: sizes.into_iter().collect(), ..LowerOptions::default() };
        compare(func, &compile(func, &options), &[], &[("n", n), ("m", 0)])
    };
    for (within, compiled) in [None, Some(false), Some(true)].into_iter().cartesian_product([true, false]) {
        let func = unread(within);
        with(&func, compiled, 1 << 23).expect("its sizes are 2^46");
        let error = with(&func, compiled, 1 << 24).expect_err("its sizes are 2^48");
        assert_eq!(
            (error.kind, error.to_string().as_str()),
            (ErrorKind::Size, "the size of `t` overflows: a tensor has at most 2^47 elements"),
            "within {within:?}, compiled {compiled}"
        );
    }
}

fn out(y: &mut [f32]) -> Arg<'_> {
    Arg::Out(ArgMut::new(y, &[2, 2]).expect("the shape fits"))
}

#[test]
fn calls_with_mismatched_arguments() {
    let compiled = compile(&programs::matmul(DType::F32), &LowerOptions::default());
    let (a, b) = (vec![1.0f32; 6], vec![1.0f32; 6]);
    let mut y = vec![0.0f32; 4];
    let mut cx = Context::new(1);
    let input = |data, shape: &[usize]| Arg::In(ArgRef::new::<f32>(data, shape).expect("the shape fits"));
    assert!(ArgRef::new(&a, &[7]).is_none());
    assert!(ArgRef::new(&a, &[usize::MAX, 2]).is_none());

    let mut refuse = |args: &mut [Arg<'_>], sizes: &[(&str, i64)], kind, message: &str| {
        let error = compiled.call(&mut cx, args, sizes).expect_err("it does not fit");
        assert_eq!((error.kind, error.to_string().as_str()), (kind, message));
    };
    let shape = ErrorKind::Shape;
    refuse(
        &mut [input(&a, &[2, 3])],
        &[],
        ErrorKind::Call,
        "1 arguments are given, but `matmul` takes 3 (parameters, then results)",
    );
    let mut args = [input(&a, &[2, 3]), input(&b, &[3, 2]), input(&b, &[3, 2])];
    refuse(&mut args, &[], ErrorKind::Call, "expected a writable argument for `y`, found a read-only one");
    let mut args = [input(&a, &[2, 3]), input(&b, &[2, 3]), out(&mut y)];
    refuse(&mut args, &[], shape, "dimension 0 of `b` has size 2, but `p` is 3");
    let mut args = [input(&a, &[6]), input(&b, &[2, 3]), out(&mut y)];
    refuse(&mut args, &[], shape, "`a` has 1 dimensions, expected 2");
    let mut args = [input(&a, &[3, 2]), input(&b, &[2, 3]), out(&mut y)];
    refuse(&mut args, &[], shape, "dimension 0 of `y` has size 2, but `n` is 3");
    let mut args = [input(&a, &[2, 3]), input(&b, &[3, 2]), out(&mut y)];
    refuse(&mut args, &[("n", 5)], shape, "dimension 0 of `a` has size 2, but `n` is 5");
    let mut args = [input(&a, &[2, 3]), input(&b, &[3, 2]), out(&mut y)];
    refuse(&mut args, &[("q", 5)], ErrorKind::Call, "`matmul` has no size `q`");
    let wrong = [1i32; 6];
    let mut args = [Arg::In(ArgRef::new(&wrong, &[2, 3]).expect("it fits")), input(&b, &[3, 2]), out(&mut y)];
    refuse(&mut args, &[], ErrorKind::DType, "`a` has elements of type i32, expected f32");

    let params = &mut [f32s(&[2, 3], |_| 1.0), f32s(&[3, 2], |_| 2.0)];
    let (results, _) = compiled.call_values(&mut cx, params, &[]).expect("this one fits");
    assert_eq!(results, [Value::new(vec![2, 2], Buffer::F32(vec![6.0; 4])).expect("a matrix")]);
}
