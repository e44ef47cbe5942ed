//! Whole programs in the interpreter: their results, and the report of each kind of error.

use taffeta_ast::build::{Builder, assert, block, branch, local, looped, range, reduce, store, var_def};
use taffeta_ast::expr::Measure;
use taffeta_ast::interp::{ErrorKind, Inputs, Outputs, RuntimeError, run};
use taffeta_ast::stmt::{AssertKind, MessagePart};
use taffeta_ast::{
    Buffer, DType, Diagnostic, Expr, FileId, Func, Op, Origin, ReduceOp, Span, Stmt, StmtKind, Symbol, Value,
};

fn f64s(shape: &[usize], v: &[f64]) -> Value {
    Value::new(shape.to_vec(), Buffer::F64(v.to_vec())).expect("the shape fits")
}

fn inputs(sizes: &[(&str, i64)], params: &[Value]) -> Inputs {
    Inputs { sizes: sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect(), params: params.to_vec() }
}

fn results(f: &Func, i: &Inputs) -> Vec<Value> {
    match run(f, i) {
        Ok(Outputs { results, .. }) => results,
        Err(e) => panic!("{e}"),
    }
}

fn error(f: &Func, i: &Inputs) -> RuntimeError {
    run(f, i).expect_err("the program stops")
}

/// Builds `y[i] = x[index(i, n)]` for `i` in `range(n)`.
fn gather(index: impl Fn(&Expr, &Expr) -> Expr) -> Func {
    let mut b = Builder::new("gather");
    let n = b.size("n");
    let (x, y) = (b.input("x", DType::F64, [&n]), b.result("y", DType::F64, [&n]));
    let i = Symbol::new("i");
    let vi = Expr::var(&i);
    b.finish(looped(&i, &n, store(&y, [&vi], &x.load([index(&vi, &n)]))))
}

#[test]
fn matrix_product() {
    let mut b = Builder::new("product");
    let n = b.size("n");
    let (x, y) = (b.input("x", DType::F64, [&n, &n]), b.input("y", DType::F64, [&n, &n]));
    let z = b.result("z", DType::F64, [&n, &n]);
    let [i, j, k] = ["i", "j", "k"].map(Symbol::new);
    let [vi, vj, vk] = [&i, &j, &k].map(Expr::var);
    let product = x.load([vi.clone(), vk.clone()]).times(&y.load([vk, vj.clone()]));
    let inner = block([
        store(&z, [&vi, &vj], &Expr::float(0.0, DType::F64)),
        looped(&k, &n, reduce(&z, [&vi, &vj], ReduceOp::Add, &product)),
    ]);
    let f = b.finish(looped(&i, &n, looped(&j, &n, inner)));
    let out = results(&f, &inputs(&[], &[f64s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), f64s(&[2, 2], &[5.0, 6.0, 7.0, 8.0])]));
    assert_eq!(out, [f64s(&[2, 2], &[19.0, 22.0, 43.0, 50.0])]);
    assert_eq!(results(&f, &inputs(&[], &[f64s(&[0, 0], &[]), f64s(&[0, 0], &[])])), [f64s(&[0, 0], &[])]);
}

#[test]
fn ranges_match_python() {
    // `order[k]` collects the iterators of range(begin, end, step).
    let collect = |begin: i64, end: i64, step: i64| -> Vec<i64> {
        let mut b = Builder::new("collect");
        let (order, count) = (b.result("order", DType::I64, [&Expr::int(8)]), b.result("count", DType::I64, []));
        let (i, k) = (Symbol::new("i"), Symbol::new("k"));
        let f = b.finish(block([
            store(&count, [], &Expr::int(0)),
            looped(&k, &Expr::int(8), store(&order, [&Expr::var(&k)], &Expr::int(0))),
            range(
                &i,
                [&Expr::int(begin), &Expr::int(end), &Expr::int(step)],
                block([
                    store(&order, [&count.load([])], &Expr::var(&i)),
                    reduce(&count, [], ReduceOp::Add, &Expr::int(1)),
                ]),
            ),
        ]));
        let out = results(&f, &Inputs::default());
        let n = out[1].data().get_int(0).expect("an integer") as usize;
        (0..n).map(|i| out[0].data().get_int(i).expect("an integer") as i64).collect()
    };
    assert_eq!(collect(0, 3, 1), [0, 1, 2]);
    assert_eq!(collect(5, 0, -2), [5, 3, 1]);
    assert_eq!(collect(3, 3, 1), [0i64; 0]);
    assert_eq!(collect(0, 5, -1), [0i64; 0]);
    assert_eq!(collect(i64::MAX - 3, i64::MAX, 2), [i64::MAX - 3, i64::MAX - 1]);
    assert_eq!(collect(i64::MIN + 2, i64::MIN, -3), [i64::MIN + 2]);
}

#[test]
fn unneeded_operands_are_not_evaluated() {
    let guarded = |i: &Expr, n: &Expr| {
        // (1 // (i - i) if False…) is guarded by conditions that are never true.
        let never = n.less(&Expr::int(0));
        let fails = Expr::int(1).floor_div(&i.modulo(&Expr::int(1)).times(&Expr::int(2)).plus(&i.minus(i)));
        let lazy = never.and(&fails.equals(&Expr::int(0)));
        let always = Expr::int(0).less_eq(n).or(&fails.equals(&Expr::int(0)));
        lazy.select(&fails, &always.select(i, &fails))
    };
    let x = f64s(&[2], &[3.0, 4.0]);
    assert_eq!(results(&gather(guarded), &inputs(&[], std::slice::from_ref(&x))), [x]);
}

#[test]
fn local_tensors_are_fresh_in_each_iteration() {
    // Contents do not survive from one iteration to the next.
    let mut b = Builder::new("f");
    let y = b.result("y", DType::I64, []);
    let (i, t) = (Symbol::new("i"), local("t", DType::I64, []));
    let body = |first: &Expr| {
        var_def(&t, block([branch(first, store(&t, [], &Expr::int(1)), None), store(&y, [], &t.load([]))]))
    };
    let first = Expr::var(&i).equals(&Expr::int(0));
    let f = b.finish(looped(&i, &Expr::int(2), body(&first)));
    assert_eq!(*error(&f, &Inputs::default()).kind, ErrorKind::Uninitialised { tensor: "t".into(), indices: vec![] });
}

#[test]
fn long_blocks_do_not_overflow_the_stack() {
    let one = Expr::float(1.0, DType::F64);
    let body = (0..3000).fold(Stmt::nop(), |rest, _| {
        let t = local("t", DType::F64, []);
        var_def(&t, block([store(&t, [], &one), rest]))
    });
    assert!(run(&Builder::new("f").finish(body), &Inputs::default()).is_ok());
}

#[test]
fn inout_parameters_are_returned() {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let x = b.inout("x", DType::F64, [&n]);
    let i = Symbol::new("i");
    let f = b.finish(looped(&i, &n, reduce(&x, [&Expr::var(&i)], ReduceOp::Max, &Expr::float(0.0, DType::F64))));
    let out = run(&f, &inputs(&[], &[f64s(&[3], &[-1.0, f64::NAN, 2.0])])).expect("it runs");
    match out.params[0].data() {
        Buffer::F64(v) => assert!(v[0] == 0.0 && v[1].is_nan() && v[2] == 2.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn unwritten_elements_are_reported() {
    let mut b = Builder::new("f");
    let y = b.result("y", DType::F64, [&Expr::int(2), &Expr::int(2)]);
    let f = b.finish(store(&y, [&Expr::int(1), &Expr::int(0)], &Expr::float(5.0, DType::F64)));
    let out = run(&f, &Inputs::default()).expect("it runs");
    assert_eq!((out.unwritten[0].as_slice(), &out.results[0]), (&[0, 1, 3][..], &f64s(&[2, 2], &[0.0, 0.0, 5.0, 0.0])));
}

#[test]
fn out_of_range_indices_are_reported_with_tensor_and_dimension() {
    let x = f64s(&[3], &[1.0, 2.0, 3.0]);
    let e = error(&gather(|i, _| i.plus(&Expr::int(1))), &inputs(&[], std::slice::from_ref(&x)));
    assert_eq!(*e.kind, ErrorKind::Index { tensor: "x".into(), dim: 0, index: 3, size: 3 });
    assert_eq!(e.to_string(), "index 3 is out of range for dimension 0 of `x`, which has size 3");
    let e = error(&gather(|i, _| i.minus(&Expr::int(1))), &inputs(&[], &[x]));
    assert_eq!(e.to_string(), "index -1 is out of range for dimension 0 of `x`, which has size 3");
}

#[test]
fn diagnostics_locate_the_statement_and_its_calls() {
    let span = |a, b| Span::new(FileId(0), a, b);
    let chain = vec![taffeta_ast::stmt::CallSite { function: "inner".into(), span: span(1, 2) }];
    let origin = Origin::Source { span: span(5, 9), labels: Vec::new(), chain: chain.into() };
    let f = Builder::new("f").finish(Stmt::new(
        StmtKind::Assert { cond: Expr::bool(false), message: Vec::new(), kind: AssertKind::Program },
        origin.derive("split", "inner"),
    ));
    let d = Diagnostic::from(error(&f, &Inputs::default()));
    assert_eq!((d.code, d.message.as_str(), d.span()), ("run::assert", "assertion failed", span(5, 9)));
    assert_eq!((d.labels[1].span, d.labels[1].text.as_str()), (span(1, 2), "in this call of `inner`"));
}

#[test]
fn assertions_show_values() {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let message = vec![
        MessagePart::Text("n is ".into()),
        MessagePart::Value(n.clone()),
        MessagePart::Text(", half of it ".into()),
        MessagePart::Value(Expr::apply(Op::Div, vec![n.clone().cast(DType::F64), Expr::float(2.0, DType::F64)])),
        MessagePart::Text(", even: ".into()),
        MessagePart::Value(n.modulo(&Expr::int(2)).equals(&Expr::int(0))),
    ];
    let f = b.finish(assert(&n.less(&Expr::int(3)), message));
    assert!(run(&f, &inputs(&[("n", 2)], &[])).is_ok());
    assert_eq!(error(&f, &inputs(&[("n", 3)], &[])).to_string(), "n is 3, half of it 1.5, even: False");
}

#[test]
fn undefined_arithmetic_stops_the_program() {
    let stops = |make: fn(&Expr) -> Expr, expected: &str| {
        let mut b = Builder::new("f");
        let (n, y) = (b.size("n"), b.result("y", DType::I64, []));
        let e = error(&b.finish(store(&y, [], &make(&n))), &inputs(&[("n", 0)], &[]));
        assert_eq!((e.kind.code(), e.to_string().as_str()), ("run::arithmetic", expected));
    };
    stops(|n| Expr::int(1).floor_div(n), "division by zero");
    stops(|n| Expr::int(1).modulo(n), "division by zero");
    stops(
        |n| n.plus(&Expr::int(i64::MIN)).floor_div(&n.minus(&Expr::int(1))),
        "-9223372036854775808 divided by -1 does not fit its type i64",
    );
    stops(|n| Expr::apply(Op::Shl, vec![Expr::int(1), n.minus(&Expr::int(2))]), "shift by the negative count -2");
    stops(
        |n| Expr::apply(Op::Pow, vec![Expr::int(2), n.minus(&Expr::int(1))]),
        "an integer to the power of -1, which is negative; cast to a float first",
    );
    stops(|n| Expr::apply(Op::Log, vec![n.clone().cast(DType::F64)]).cast(DType::I64), "cannot cast -inf to i64");
    let mut b = Builder::new("f");
    let n = b.size("n");
    let f = b.finish(range(&Symbol::new("i"), [&Expr::int(0), &Expr::int(1), &n], Stmt::nop()));
    assert_eq!(*error(&f, &inputs(&[("n", 0)], &[])).kind, ErrorKind::ZeroStep);
}

#[test]
fn tensors_of_invalid_sizes_are_refused() {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let negative = local("t", DType::F64, [&Expr::int(2), &n.minus(&Expr::int(5))]);
    let huge = local("u", DType::F64, [&n.times(&n), &n]);
    let f = b.finish(var_def(&huge, var_def(&negative, Stmt::nop())));
    assert_eq!(error(&f, &inputs(&[("n", 3)], &[])).to_string(), "dimension 1 of `t` has the negative size -2");
    let e = error(&f, &inputs(&[("n", 1 << 20)], &[]));
    assert_eq!(e.to_string(), "the size of `u` overflows: a tensor has at most 2^47 elements");
    assert!(run(&f, &inputs(&[("n", 5)], &[])).is_ok());
}

#[test]
fn inputs_are_checked() {
    let mut b = Builder::new("f");
    let (n, m) = (b.size("n"), b.size("m"));
    b.input("x", DType::F64, [&n, &Expr::int(2)]);
    b.input("y", DType::F64, [&n.times(&Expr::int(2)), &m]);
    let f = b.finish(Stmt::nop());
    let zeros = |shape: &[usize]| Value::zeros(DType::F64, shape.to_vec()).expect("small");
    let told = |sizes: &[(&str, i64)], params: &[Value], expected: &str| {
        assert_eq!(error(&f, &inputs(sizes, params)).to_string(), expected);
    };
    assert!(run(&f, &inputs(&[("m", 5)], &[zeros(&[3, 2]), zeros(&[6, 5])])).is_ok());
    told(&[], &[zeros(&[3, 2]), zeros(&[5, 5])], "dimension 0 of `y` has size 5, but `n * 2` is 6");
    told(&[("n", 4)], &[zeros(&[3, 2]), zeros(&[6, 5])], "dimension 0 of `x` has size 3, but `n` is 4");
    told(&[], &[zeros(&[3, 3]), zeros(&[6, 5])], "dimension 1 of `x` has size 3, but 2 is declared");
    told(&[], &[zeros(&[3, 2])], "expected 2 arguments of `f`, found 1");
    told(&[], &[zeros(&[3, 2]), zeros(&[6])], "expected 2 dimensions of `y`, found 1");
    told(&[("k", 1)], &[zeros(&[3, 2]), zeros(&[6, 5])], "`f` has no size `k`");
    told(&[("n", -1)], &[zeros(&[3, 2]), zeros(&[6, 5])], "the size `n` is -1, which is negative");
    let ints = Value::zeros(DType::I32, vec![3, 2]).expect("small");
    told(&[], &[ints, zeros(&[6, 5])], "expected elements of type f64 in `x`, found i32");
    let mut b = Builder::new("g");
    b.size("n");
    let e = error(&b.finish(Stmt::nop()), &Inputs::default());
    assert_eq!(e.to_string(), "the size `n` is not given, and no parameter fixes it");
}

#[test]
fn unsupported_statements_are_refused() {
    let refused = |s: StmtKind| {
        let e = error(&Builder::new("f").finish(Stmt::new(s, Origin::none())), &Inputs::default());
        assert_eq!(e.kind.code(), "run::unsupported");
    };
    refused(StmtKind::For {
        iter: Symbol::new("x"),
        extent: taffeta_ast::Extent::Reals,
        props: Default::default(),
        body: Stmt::nop(),
    });
    let measure = taffeta_ast::ExprKind::Measure(Measure::Counting, Symbol::new("x"));
    refused(StmtKind::Assume { cond: Expr::raw(measure, DType::F64).equals(&Expr::float(0.0, DType::F64)) });
}

#[test]
fn broken_trees_are_refused() {
    let malformed = |s: Stmt| {
        let e = error(&Builder::new("f").finish(s), &Inputs::default());
        assert!(matches!(*e.kind, ErrorKind::Malformed(_)), "{e}");
    };
    let t = local("t", DType::F64, [&Expr::int(2)]);
    malformed(store(&t, [&Expr::int(0)], &Expr::float(0.0, DType::F64)));
    malformed(var_def(&t, store(&t, [], &Expr::float(0.0, DType::F64))));
    malformed(var_def(&t, store(&t, [&Expr::int(0)], &Expr::int(0))));
    malformed(assert(&Expr::var(&Symbol::new("i")).equals(&Expr::int(0)), Vec::new()));
    malformed(assert(&Expr::int(1), Vec::new()));
    // Scopes end: a tensor's with its branch, an iterator's with its loop.
    let zero = Expr::float(0.0, DType::F64);
    let never = Expr::var(&Symbol::new("n"));
    let mut b = Builder::new("f");
    let n = b.size("n");
    let declared = branch(&n.less(&Expr::int(0)), var_def(&t, Stmt::nop()), None);
    let e = error(&b.finish(block([declared, store(&t, [&Expr::int(0)], &zero)])), &inputs(&[("n", 1)], &[]));
    assert!(matches!(*e.kind, ErrorKind::Malformed(_)), "{e}");
    let i = Symbol::new("i");
    malformed(block([looped(&i, &Expr::int(1), Stmt::nop()), assert(&Expr::var(&i).less(&Expr::int(9)), Vec::new())]));
    malformed(looped(&i, &never, Stmt::nop()));
}
