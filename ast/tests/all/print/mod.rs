//! Printed trees, and the rules of names, literals and parentheses.

mod names;

use expect_test::{Expect, expect};
use std::sync::Arc;
use taffeta_ast::build::{Builder, assert, block, branch, local, looped, range, reduce, store, var_def};
use taffeta_ast::expr::{Literal, round_to};
use taffeta_ast::stmt::{AssertKind, Memory, MessagePart, Routine};
use taffeta_ast::{
    DType, Expr, Extent, LoopProps, Op, Origin, Parallel, ReduceOp, Span, Stmt, StmtKind, Symbol, Tensor, Vectorize,
    print,
};

fn check(text: &str, expected: &Expect) {
    expected.assert_eq(text);
}

fn expr(e: &Expr, expected: &str) {
    assert_eq!(print::expr(e), expected);
}

fn infix(op: Op, a: &Expr, b: &Expr) -> Expr {
    Expr::apply(op, vec![a.clone(), b.clone()])
}

fn scalar(name: &str, dtype: DType) -> Expr {
    local(name, dtype, []).load([])
}

#[test]
fn parentheses_are_where_python_needs_them() {
    let [a, b, c] = ["a", "b", "c"].map(|n| scalar(n, DType::I32));
    let neg = |e: &Expr| Expr::apply(Op::Neg, vec![e.clone()]);
    expr(&a.plus(&b).times(&c), "(a + b) * c");
    expr(&a.times(&b).plus(&c), "a * b + c");
    expr(&a.minus(&b.minus(&c)), "a - (b - c)");
    expr(&a.minus(&b).minus(&c), "a - b - c");
    expr(&a.times(&b.floor_div(&c)), "a * (b // c)");
    expr(&infix(Op::Pow, &infix(Op::Pow, &a, &b), &c), "(a ** b) ** c");
    expr(&infix(Op::Pow, &a, &infix(Op::Pow, &b, &c)), "a ** b ** c");
    expr(&infix(Op::Pow, &neg(&a), &neg(&b)), "(-a) ** -b");
    expr(&neg(&infix(Op::Pow, &a, &b)), "-a ** b");
    expr(&neg(&a.plus(&b)), "-(a + b)");
    expr(&infix(Op::Shl, &a, &b.plus(&c)), "a << b + c");
    expr(&infix(Op::BitAnd, &infix(Op::BitOr, &a, &b), &c), "(a | b) & c");
    let less = a.less(&b);
    expr(&infix(Op::Eq, &less, &b.less(&c)), "(a < b) == (b < c)");
    expr(&less.negate(), "not a < b");
    expr(&infix(Op::Eq, &less.negate(), &b.less(&c)), "(not a < b) == (b < c)");
    expr(&less.and(&b.less(&c).or(&less)), "a < b and (b < c or a < b)");
    expr(&less.and(&b.less(&c)).and(&a.equals(&c)), "a < b and b < c and a == c");
    expr(&less.and(&b.less(&c).and(&a.equals(&c))), "a < b and (b < c and a == c)");
    let choice = less.select(&a, &b);
    expr(&choice, "a if a < b else b");
    expr(&choice.plus(&c), "(a if a < b else b) + c");
    let other = less.select(&b, &c);
    expr(&less.select(&choice, &other), "(a if a < b else b) if a < b else b if a < b else c");
    expr(&choice.min_with(&c), "min(a if a < b else b, c)");
}

#[test]
fn literals_of_inferred_type_have_no_cast() {
    let float = |v, dtype| Expr::float(v, dtype);
    let x = scalar("x", DType::F32);
    expr(&x.times(&float(2.0, DType::F32)), "x * 2.0");
    expr(&x.times(&float(0.1, DType::F32)), "x * 0.1");
    expr(&Expr::apply(Op::Sqrt, vec![float(2.0, DType::F32)]), "sqrt(cast(2.0, f32))");
    expr(&Expr::apply(Op::Sqrt, vec![float(2.0, DType::F64)]), "sqrt(cast(2.0, f64))");
    let less = float(1.0, DType::F32).less(&float(2.0, DType::F32));
    expr(&less, "cast(1.0, f32) < 2.0");
    let half = float(0.5, DType::F16);
    expr(&less.select(&half, &half.plus(&half)), "0.5 if cast(1.0, f32) < 2.0 else cast(0.5, f16) + 0.5");
    let (b, c) = (scalar("b", DType::Bool), float(1.0, DType::F32));
    expr(&b.select(&c, &float(0.0, DType::F32)), "cast(1.0, f32) if b else 0.0");
    expr(&b.select(&x, &float(0.0, DType::F32)), "x if b else 0.0");
    expr(&scalar("k", DType::I32).plus(&Expr::literal(Literal::Int(3), DType::I32)), "k + 3");
    let n = Expr::var(&Symbol::new("n"));
    expr(&n.clone().cast(DType::F64).times(&float(0.5, DType::F64)), "cast(n, f64) * 0.5");
    expr(&n.plus(&Expr::int(1)).cast(DType::F32), "cast(n + 1, f32)");
    expr(&float(2.5, DType::F32).cast(DType::I32), "cast(cast(2.5, f32), i32)");
    expr(&Expr::literal(Literal::Int(-1), DType::U8), "cast(255, u8)");
}

#[test]
fn printed_numbers_round_trip() {
    expr(&Expr::float(0.1, DType::F64), "0.1");
    expr(&Expr::float(1e300, DType::F64), "1e300");
    expr(&Expr::float(-0.0, DType::F64), "-0.0");
    expr(&Expr::float(f64::INFINITY, DType::F64), "inf");
    expr(&Expr::float(f64::NEG_INFINITY, DType::F64), "-inf");
    expr(&Expr::float(f64::NAN, DType::F64), "nan");
    expr(&Expr::int(i64::MIN), "-9223372036854775807 - 1");
    expr(&Expr::literal(Literal::Int((1 << 64) - 2), DType::U64), "cast(-2, u64)");
    let x = scalar("x", DType::F64);
    expr(&infix(Op::Pow, &Expr::float(-2.0, DType::F64), &x), "(-2.0) ** x");
    expr(&infix(Op::Sub, &x, &Expr::float(-2.0, DType::F64)), "x - -2.0");
    // Every f16, through the f64 that the parser reads.
    for bits in 0..0x7c00u16 {
        let v = half::f16::from_bits(bits).to_f64();
        let text = print::expr(&scalar("x", DType::F16).times(&Expr::float(v, DType::F16)));
        let read: f64 = text.strip_prefix("x * ").and_then(|t| t.parse().ok()).expect("a number");
        assert_eq!(round_to(read, DType::F16).to_bits(), v.to_bits(), "{text}");
    }
}

#[test]
fn a_program_with_every_construct() {
    let mut b = Builder::new("everything");
    let (n, m) = (b.size("n"), b.size("m"));
    let x = b.input("x", DType::F32, [&n, &m.times(&Expr::int(2))]);
    let s = b.inout("s", DType::F32, []);
    let (y, c) = (b.result("y", DType::F32, [&n]), b.result("c", DType::Bool, []));
    let [i, j] = ["i", "y.d0"].map(Symbol::new);
    let (vi, vj) = (Expr::var(&i), Expr::var(&j));
    let t = local("t", DType::F32, [&n]);
    let zero = Expr::float(0.0, DType::F32);
    let element = x.load([vi.clone(), vj.clone()]);
    let body = block([
        assert(
            &n.less_eq(&m),
            vec![
                MessagePart::Text("say \"n\" is {".into()),
                MessagePart::Value(n.clone()),
                MessagePart::Text("}\n".into()),
            ],
        ),
        store(&s, [], &zero),
        store(&c, [], &Expr::bool(true)),
        var_def(
            &t,
            block([
                range(
                    &i,
                    [&n.minus(&Expr::int(1)), &Expr::int(-1), &Expr::int(-1)],
                    block([
                        store(&y, [&vi], &zero),
                        range(
                            &j,
                            [&vi, &m, &Expr::int(1)],
                            branch(
                                &zero.less(&element),
                                reduce(&y, [&vi], ReduceOp::Max, &element),
                                Some(branch(
                                    &element.less(&Expr::float(-1.0, DType::F32)),
                                    reduce(&c, [], ReduceOp::And, &element.equals(&zero).or(&vi.equals(&vj))),
                                    Some(reduce(&s, [], ReduceOp::Add, &element)),
                                )),
                            ),
                        ),
                    ]),
                ),
                looped(&Symbol::new("i"), &n, Stmt::nop()),
            ]),
        ),
    ]);
    let mut f = b.finish(body);
    f.doc = Some("What it does.\n\n    More.".into());
    check(
        &print::func(&f),
        &expect![[r#"
            def everything(x: f32[n, m * 2], s: inout[f32]) -> (f32[n], bool):
                """What it does.

                More."""
                y = empty((n,), f32)
                c = empty((), bool)
                assert n <= m, f"say \"n\" is {{{n}}}\n"
                s[...] = 0.0
                c = True
                t = empty((n,), f32)
                for i in range(n - 1, -1, -1):
                    y[i] = 0.0
                    for y.d0 in range(i, m):
                        if 0.0 < x[i, y.d0]:
                            y[i] = max(y[i], x[i, y.d0])
                        elif x[i, y.d0] < -1.0:
                            c &= x[i, y.d0] == 0.0 or i == y.d0
                        else:
                            s += x[i, y.d0]
                for i in range(n):
                    pass
                return y, c
        "#]],
    );
}

#[test]
fn docstrings_are_quoted() {
    for (doc, quoted) in [
        ("synthetic", "synthetic"),
        (r"a \ b", r"a \\ b"),
        (r#"say "no""#, r#"say "no\""#),
        (r#"a"""b"#, r#"a\"\"\"b"#),
        (r#"a""""#, r#"a\"\"\""#),
    ] {
        let mut f = Builder::new("f").finish(Stmt::nop());
        f.doc = Some(doc.into());
        let expected = format!("    \"\"\"{quoted}\"\"\"");
        assert_eq!(print::func(&f).lines().nth(1), Some(expected.as_str()), "{doc}");
    }
}

#[test]
fn conflicting_names_get_suffixes() {
    let mut b = Builder::new("names");
    let k = b.size("k");
    let y = b.result("y", DType::I64, []);
    let [k1, k2, max, odd] = ["k", "k", "max", "i~o"].map(Symbol::new);
    let (t, u) = (local("k_1", DType::I64, []), local("for", DType::I64, []));
    let [vk1, vk2, vmax, vodd] = [&k1, &k2, &max, &odd].map(Expr::var);
    let sum = [&k, &vk1, &vk2, &vmax, &vodd].into_iter().fold(Expr::int(0), |a, e| a.plus(e));
    let inner = store(&y, [], &sum.max_with(&t.load([])).plus(&u.load([])));
    let nest = [&odd, &max, &k2, &k1].into_iter().fold(inner, |body, i| looped(i, &k, body));
    check(
        &print::func(&b.finish(var_def(&t, var_def(&u, nest)))),
        &expect![[r#"
            def names() -> i64:
                y = empty((), i64)
                k_1 = empty((), i64)
                for_1 = empty((), i64)
                for k_2 in range(k):
                    for k_3 in range(k):
                        for max_1 in range(k):
                            for i_o in range(k):
                                y = max(k + k_2 + k_3 + max_1 + i_o, k_1) + for_1
                return y
        "#]],
    );
}

#[test]
fn names_are_reused_after_their_scope() {
    let (i, j) = (Symbol::new("i"), Symbol::new("i"));
    let n = Expr::var(&Symbol::new("n"));
    let [t, u] = ["t", "t"].map(|name| local(name, DType::F64, [&n]));
    let zero = Expr::float(0.0, DType::F64);
    let s = block([
        looped(&i, &n, var_def(&t, store(&t, [&Expr::var(&i)], &zero))),
        looped(&j, &n, var_def(&u, store(&u, [&Expr::var(&j)], &zero))),
    ]);
    check(
        &print::stmt(&s),
        &expect![[r#"
            for i in range(n):
                t = empty((n,), f64)
                t[i] = 0.0
            for i in range(n):
                t = empty((n,), f64)
                t[i] = 0.0
        "#]],
    );
}

#[test]
fn internal_constructs_print_as_comments_or_calls() {
    let (i, n) = (Symbol::new("i"), Expr::var(&Symbol::new("n")));
    let t = Arc::new(Tensor { memory: Memory::Stack, ..(*local("t", DType::F64, [&n])).clone() });
    let synthetic = |kind| Stmt::new(kind, Origin::none());
    let labelled = Origin::Source { span: Span::NONE, labels: vec!["L1".into()], chain: [].into() };
    let check_index = StmtKind::Assert { cond: Expr::int(0).less(&n), message: Vec::new(), kind: AssertKind::Index };
    let s = block([
        var_def(&t, synthetic(check_index)),
        synthetic(StmtKind::Assume { cond: Expr::int(3).less_eq(&n) }),
        synthetic(StmtKind::Call {
            routine: Routine::Grow,
            tensors: vec![Symbol::new("a"), Symbol::new("b")],
            operands: vec![n.plus(&Expr::int(1))],
        }),
        Stmt::new(
            StmtKind::For {
                iter: i,
                extent: Extent::Range { begin: Expr::int(0), end: n, step: Expr::int(1) },
                props: LoopProps {
                    parallel: Some(Parallel::default()),
                    vectorize: Some(Vectorize::default()),
                    ..LoopProps::default()
                },
                body: Stmt::nop(),
            },
            labelled,
        ),
        synthetic(StmtKind::For {
            iter: Symbol::new("x"),
            extent: Extent::Reals,
            props: LoopProps { library: true, ..LoopProps::default() },
            body: synthetic(StmtKind::While { cond: Expr::bool(false), body: Stmt::nop() }),
        }),
    ]);
    check(
        &print::stmt(&s),
        &expect![[r#"
            t = empty((n,), f64)  # stack
            assert 0 < n  # index
            del t
            assume(3 <= n)
            grow(a, b, n + 1)
            label("L1")
            for i in range(n):  # parallel, vectorize
                pass
            for x in reals:  # library
                while False:
                    pass
        "#]],
    );
}
