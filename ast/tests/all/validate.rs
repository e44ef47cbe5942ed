//! Each invariant: builders maintain it, and a tree that breaks it is reported by its name.

use std::sync::Arc;
use taffeta_ast::build::{Builder, assert, block, branch, local, looped, reduce, store, var_def};
use taffeta_ast::expr::{Access, Literal, Measure, Protocol};
use taffeta_ast::format::{Format, Level, LevelKind};
use taffeta_ast::stmt::{Memory, Role, Routine};
use taffeta_ast::validate::{Invalid, Invariant, logical, lowered, pass, stage};
use taffeta_ast::{
    DType, Expr, ExprKind, Extent, Func, LoopProps, Op, Origin, ReduceOp, Stmt, StmtKind, Symbol, Tensor,
};

fn names(r: Result<(), Invalid>) -> Vec<Invariant> {
    r.err().map_or_else(Vec::new, |e| e.0.into_iter().map(|v| v.invariant).collect())
}

/// Builds the program `body(x, y, n)` with an input `x` and a result `y`, both `f64[n]`.
fn program(body: impl FnOnce(&Tensor, &Tensor, &Expr) -> Stmt) -> Func {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let (x, y) = (b.input("x", DType::F64, [&n]), b.result("y", DType::F64, [&n]));
    let body = body(&x, &y, &n);
    b.finish(body)
}

/// Checks that the logical validator reports this invariant, and no other one.
fn broken(invariant: Invariant, body: impl FnOnce(&Tensor, &Tensor, &Expr) -> Stmt) {
    assert_eq!(names(logical(&program(body))), [invariant]);
}

fn synthetic(kind: StmtKind) -> Stmt {
    Stmt::new(kind, Origin::none())
}

fn zero() -> Expr {
    Expr::float(0.0, DType::F64)
}

#[test]
fn built_programs_are_valid() {
    let f = program(|x, y, n| {
        let (i, t) = (Symbol::new("i"), local("t", DType::F64, []));
        let vi = Expr::var(&i);
        looped(
            &i,
            n,
            var_def(
                &t,
                block([
                    store(&t, [], &x.load([vi.clone()])),
                    branch(&zero().less(&t.load([])), store(y, [&vi], &t.load([])), Some(store(y, [&vi], &zero()))),
                ]),
            ),
        )
    });
    assert_eq!(logical(&f), Ok(()));
}

#[test]
fn scope() {
    use Invariant::Scope;
    broken(Scope, |_, y, _| store(y, [&Expr::var(&Symbol::new("i"))], &zero()));
    broken(Scope, |_, y, n| {
        let i = Symbol::new("i");
        block([looped(&i, n, Stmt::nop()), store(y, [&Expr::var(&i)], &zero())])
    });
    broken(Scope, |_, _, n| {
        let t = local("t", DType::F64, [n]);
        block([var_def(&t, Stmt::nop()), store(&t, [&Expr::int(0)], &zero())])
    });
    broken(Scope, |_, y, _| store(y, [&Expr::int(0)], &local("t", DType::F64, []).load([])));
    // A tensor is not an iterator, and has its declared type.
    broken(Scope, |x, y, _| store(y, [&Expr::var(&x.symbol)], &zero()));
    broken(Scope, |x, y, _| {
        let load = Expr::load(&x.symbol, vec![Access::from(Expr::int(0))], DType::F32);
        store(y, [&Expr::int(0)], &load.cast(DType::F64))
    });
    broken(Scope, |_, y, _| {
        let measure = Expr::raw(ExprKind::Measure(Measure::Lebesgue, Symbol::new("x")), DType::F64);
        store(y, [&Expr::int(0)], &measure)
    });
}

#[test]
fn bound_once() {
    broken(Invariant::BoundOnce, |_, _, n| {
        let i = Symbol::new("i");
        block([looped(&i, n, Stmt::nop()), looped(&i, n, Stmt::nop())])
    });
    broken(Invariant::BoundOnce, |_, _, n| {
        let t = local("t", DType::F64, [n]);
        block([var_def(&t, Stmt::nop()), var_def(&t, Stmt::nop())])
    });
}

#[test]
fn unique_ids() {
    broken(Invariant::UniqueIds, |_, y, _| {
        let s = store(y, [&Expr::int(0)], &zero());
        block([s.clone(), s])
    });
}

#[test]
fn nested_seq() {
    broken(Invariant::NestedSeq, |_, _, _| {
        synthetic(StmtKind::Seq(vec![Stmt::nop(), assert(&Expr::bool(true), Vec::new())]))
    });
}

#[test]
fn literal() {
    for (v, dtype) in [
        (Literal::Int(128), DType::I8),
        (Literal::Int(-1), DType::U64),
        (Literal::Float(0.1), DType::F32),
        (Literal::Int(1), DType::F64),
        (Literal::Bool(true), DType::I64),
    ] {
        broken(Invariant::Literal, |_, y, _| {
            store(y, [&Expr::int(0)], &Expr::raw(ExprKind::Cast(Expr::raw(ExprKind::Const(v), dtype)), DType::F64))
        });
    }
}

#[test]
fn operands() {
    let raw = |op, args: Vec<Expr>, dtype| Expr::raw(ExprKind::Apply(op, args), dtype);
    let (one, x) = (Expr::int(1), zero());
    for wrong in [
        raw(Op::Add, vec![one.clone(), x.clone()], DType::F64),
        raw(Op::Add, vec![x.clone()], DType::F64),
        raw(Op::Select, vec![one.clone(), x.clone(), x.clone()], DType::F64),
        raw(Op::Select, vec![], DType::F64),
        raw(Op::Exp, vec![one.clone()], DType::F64),
        raw(Op::Sqrt, vec![Expr::float(1.0, DType::F32)], DType::F64),
    ] {
        broken(Invariant::Operands, |_, y, _| store(y, [&Expr::int(0)], &wrong));
    }
}

#[test]
fn index() {
    broken(Invariant::Index, |_, y, _| store(y, [&Expr::literal(Literal::Int(0), DType::I32)], &zero()));
    broken(Invariant::Index, |_, y, _| store(y, [&zero()], &zero()));
    broken(Invariant::Index, |_, _, _| looped(&Symbol::new("i"), &zero(), Stmt::nop()));
}

#[test]
fn dimensions() {
    broken(Invariant::Dimensions, |_, y, _| store(y, [], &zero()));
    broken(Invariant::Dimensions, |x, y, _| store(y, [&Expr::int(0)], &x.load([Expr::int(0), Expr::int(0)])));
}

#[test]
fn condition() {
    broken(Invariant::Condition, |_, _, n| branch(n, Stmt::nop(), None));
    broken(Invariant::Condition, |_, _, n| assert(n, Vec::new()));
    broken(Invariant::Condition, |_, _, n| synthetic(StmtKind::Assume { cond: n.clone() }));
}

#[test]
fn stored_type() {
    broken(Invariant::StoredType, |_, y, _| store(y, [&Expr::int(0)], &Expr::int(0)));
}

#[test]
fn reduction() {
    broken(Invariant::Reduction, |_, y, _| reduce(y, [&Expr::int(0)], ReduceOp::BitOr, &zero()));
    broken(Invariant::Reduction, |_, y, _| reduce(y, [&Expr::int(0)], ReduceOp::And, &zero()));
    let t = local("t", DType::Bool, []);
    broken(Invariant::Reduction, |_, _, _| var_def(&t, reduce(&t, [], ReduceOp::Add, &Expr::bool(true))));
}

#[test]
fn library() {
    broken(Invariant::Library, |_, _, n| {
        synthetic(StmtKind::For {
            iter: Symbol::new("i"),
            extent: Extent::Range { begin: Expr::int(0), end: n.clone(), step: Expr::int(1) },
            props: LoopProps { library: true, unroll: true, ..LoopProps::default() },
            body: Stmt::nop(),
        })
    });
}

#[test]
fn read_only() {
    broken(Invariant::ReadOnly, |x, _, _| store(x, [&Expr::int(0)], &zero()));
}

#[test]
fn protocol() {
    broken(Invariant::Protocol, |_, y, _| {
        let at = Access { protocol: Protocol::Gallop, ..Access::from(Expr::int(0)) };
        synthetic(StmtKind::Store { tensor: y.symbol.clone(), indices: vec![at], value: zero() })
    });
}

#[test]
fn shape() {
    broken(Invariant::Shape, |_, _, _| var_def(&local("t", DType::F64, [&zero()]), Stmt::nop()));
}

#[test]
fn interface() {
    let mut b = Builder::new("f");
    let k = Expr::var(&Symbol::new("k"));
    b.input("x", DType::F64, [&k]);
    assert_eq!(names(logical(&b.finish(Stmt::nop()))), [Invariant::Interface]);
    let mut b = Builder::new("f");
    let n = b.input("n", DType::I64, []);
    b.result("y", DType::F64, [&n.load([])]);
    assert_eq!(names(logical(&b.finish(Stmt::nop()))), [Invariant::Interface]);
}

#[test]
fn format() {
    broken(Invariant::Format, |_, _, n| {
        let t = Tensor { format: Format::dense(2), ..(*local("t", DType::F64, [n])).clone() };
        var_def(&Arc::new(t), Stmt::nop())
    });
    broken(Invariant::Format, |_, _, n| {
        let twice = Format::dense(2).ordered(&[1, 1]);
        let t = Tensor { format: twice, ..(*local("t", DType::F64, [n, n])).clone() };
        var_def(&Arc::new(t), Stmt::nop())
    });
    broken(Invariant::Format, |_, _, n| {
        let half = Format::new([LevelKind::Dense, LevelKind::Symmetric].map(Level::new).to_vec());
        let t = Tensor { format: half, ..(*local("t", DType::F64, [n, &n.plus(&Expr::int(1))])).clone() };
        var_def(&Arc::new(t), Stmt::nop())
    });
}

#[test]
fn role() {
    broken(Invariant::Role, |_, _, _| {
        var_def(&Arc::new(Tensor::dense(Symbol::new("t"), DType::F64, Vec::new(), Role::Result)), Stmt::nop())
    });
    let mut b = Builder::new("f");
    b.input("x", DType::F64, []);
    let mut f = b.finish(Stmt::nop());
    f.params[0].mode = taffeta_ast::ParamMode::InOut;
    assert_eq!(names(logical(&f)), [Invariant::Role]);
}

#[test]
fn logical_only() {
    broken(Invariant::LogicalOnly, |_, _, _| synthetic(StmtKind::While { cond: Expr::bool(false), body: Stmt::nop() }));
    broken(Invariant::LogicalOnly, |_, _, n| {
        let list = local("list", DType::I32, [n]);
        let operands = vec![Expr::int(0), n.clone()];
        let sort = StmtKind::Call { routine: Routine::Sort, tensors: vec![list.symbol.clone()], operands };
        var_def(&list, synthetic(sort))
    });
}

/// Declares a local tensor with a memory.
fn placed(memory: Memory, shape: &[&Expr]) -> Arc<Tensor> {
    Arc::new(Tensor { memory, ..(*local("t", DType::F64, shape.iter().copied())).clone() })
}

#[test]
fn flat() {
    let both = |f: &Func| (names(logical(f)), names(lowered(f)));
    let f = program(|_, _, n| var_def(&placed(Memory::Arena, &[n, n]), Stmt::nop()));
    assert_eq!(both(&f), (vec![], vec![Invariant::Flat]));
    let mut b = Builder::new("f");
    let n = b.size("n");
    b.input("x", DType::F64, [&n, &n]);
    assert_eq!(both(&b.finish(Stmt::nop())), (vec![], vec![Invariant::Flat]));
    let f = program(|_, _, n| {
        let compressed = Format { levels: [Level::new(LevelKind::Compressed)].into(), ..Format::dense(1) };
        var_def(&Arc::new(Tensor { format: compressed, ..(*placed(Memory::Arena, &[n])).clone() }), Stmt::nop())
    });
    assert_eq!(both(&f), (vec![], vec![Invariant::Flat]));
}

#[test]
fn plain_only() {
    let found = |body: fn(&Tensor, &Tensor, &Expr) -> Stmt| names(lowered(&program(body)));
    assert_eq!(
        found(|_, _, _| {
            let (iter, props) = (Symbol::new("x"), LoopProps::default());
            synthetic(StmtKind::For { iter, extent: Extent::Reals, props, body: Stmt::nop() })
        }),
        [Invariant::Plain]
    );
    assert_eq!(
        found(|_, y, _| {
            let x = Symbol::new("x");
            let measure = Expr::raw(ExprKind::Measure(Measure::Counting, x.clone()), DType::F64);
            let body = store(y, [&Expr::int(0)], &measure);
            synthetic(StmtKind::For { iter: x, extent: Extent::Reals, props: LoopProps::default(), body })
        }),
        [Invariant::Plain, Invariant::Plain]
    );
}

#[test]
fn placed_somewhere() {
    let found = |memory, shape: fn(&Expr) -> Vec<Expr>| {
        names(lowered(&program(|_, _, n| {
            let i = Symbol::new("i");
            let shape = shape(&n.plus(&Expr::var(&i)).minus(&Expr::var(&i)).minus(n).plus(n));
            let inner = var_def(&placed(memory, &shape.iter().collect::<Vec<_>>()), Stmt::nop());
            looped(&i, n, inner)
        })))
    };
    let constant = |_: &Expr| vec![Expr::int(4)];
    let iterated = |e: &Expr| vec![e.clone()];
    let none = |_: &Expr| Vec::new();
    let ok: [Invariant; 0] = [];
    let wrong = [Invariant::Placed];
    assert_eq!(found(Memory::Register, none), ok);
    assert_eq!(found(Memory::Register, constant), wrong);
    assert_eq!(found(Memory::Stack, constant), ok);
    assert_eq!(found(Memory::Stack, none), wrong);
    assert_eq!(found(Memory::Stack, iterated), wrong);
    assert_eq!(found(Memory::Arena, constant), ok);
    assert_eq!(found(Memory::Arena, iterated), ok);
    assert_eq!(found(Memory::Arena, none), wrong);
    assert_eq!(found(Memory::Heap, iterated), ok);
    assert_eq!(found(Memory::Heap, none), wrong);
    assert_eq!(found(Memory::Auto, constant), wrong);
}

#[test]
fn a_broken_tree_is_a_diagnostic_naming_its_stage() {
    let many = |n: usize| {
        program(move |_, y, _| {
            let wrong = || store(y, [&zero()], &zero());
            block((0..n).map(|_| wrong()))
        })
    };
    let d = stage(&many(1), "elaboration").expect_err("an index is a float");
    assert_eq!(d.code, "internal::tree");
    assert_eq!(d.message, "elaboration made a program that breaks a rule of the tree");
    assert_eq!(d.notes, ["Index: an index of `y` is f64"]);
    // A program that is wrong everywhere gets a bounded number of messages.
    let d = stage(&many(1000), "elaboration").expect_err("all of them are");
    assert_eq!((d.notes.len(), d.notes.last().map(String::as_str)), (6, Some("and 995 more")));
    // Within a stage, debug builds check.
    assert_eq!(pass(&many(1), "simplify").is_err(), cfg!(debug_assertions));
    assert_eq!(stage(&many(0), "elaboration"), Ok(()));
}
