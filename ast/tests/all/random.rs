//! Guarantees of the generator of random programs, and properties of the tree tested with its programs.

use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use taffeta_ast::interp::{ErrorKind, Outputs, run};
use taffeta_ast::random::{Floats, Options, program, shrink};
use taffeta_ast::{DType, Expr, ExprKind, Extent, Stmt, StmtKind, Symbol, print, validate};

const SEEDS: std::ops::Range<u64> = 0..400;

fn each(options: &Options, mut f: impl FnMut(u64, taffeta_ast::random::Case)) {
    for seed in SEEDS {
        f(seed, program(seed, options));
    }
}

#[test]
fn programs_are_valid_and_run() {
    for floats in [Floats::Exact, Floats::Any] {
        each(&Options { floats, ..Options::default() }, |seed, case| {
            let text = print::func(&case.func);
            assert_eq!(validate::logical(&case.func), Ok(()), "seed {seed}\n{text}");
            assert!(!text.contains("del "), "seed {seed}: a scope ends before its block\n{text}");
            match run(&case.func, &case.inputs) {
                Ok(out) => assert!(out.unwritten.iter().all(Vec::is_empty), "seed {seed}\n{text}"),
                Err(e) => panic!("seed {seed}: {e} at\n{text}"),
            }
        });
    }
}

#[test]
fn errors_have_codes_of_user_errors() {
    let mut codes = BTreeSet::new();
    each(&Options { errors: true, ..Options::default() }, |seed, case| {
        assert_eq!(validate::logical(&case.func), Ok(()), "seed {seed}");
        case.func.body.walk(&mut |s| {
            // The front end refuses an assertion of the literal `False`, and drops one of `True`.
            if let StmtKind::Assert { cond, .. } = s.kind() {
                assert_eq!(cond.as_bool(), None, "seed {seed}\n{}", print::func(&case.func));
            }
        });
        if let Err(e) = run(&case.func, &case.inputs) {
            let expected =
                matches!(*e.kind, ErrorKind::Index { .. } | ErrorKind::Arithmetic(_) | ErrorKind::Assert { .. });
            assert!(expected, "seed {seed}: {e}\n{}", print::func(&case.func));
            codes.insert(e.kind.code());
        }
    });
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), ["run::arithmetic", "run::assert", "run::index"]);
}

#[test]
fn every_construct_is_generated() {
    let (mut kinds, mut dtypes, mut ops) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    each(&Options { floats: Floats::Any, ..Options::default() }, |_, case| {
        case.func.body.walk(&mut |s| {
            kinds.insert(match s.kind() {
                StmtKind::For { extent: Extent::Range { step, .. }, .. } if step.as_int() < Some(0) => "backward",
                StmtKind::For { .. } => "for",
                StmtKind::If { .. } => "if",
                StmtKind::VarDef { .. } => "local",
                StmtKind::Store { .. } => "store",
                StmtKind::ReduceTo { .. } => "reduce",
                StmtKind::Assert { .. } => "assert",
                _ => "seq",
            });
        });
        case.func.body.walk_exprs(&mut |e: &Expr| {
            dtypes.insert(e.dtype());
            if let ExprKind::Apply(op, _) = e.kind() {
                ops.insert(*op);
            }
        });
    });
    assert_eq!(kinds.len(), 8, "{kinds:?}");
    assert_eq!(dtypes.into_iter().collect::<Vec<_>>(), DType::ALL);
    assert_eq!(ops.len(), taffeta_ast::Op::functions().count(), "{ops:?}");
}

#[test]
fn one_seed_gives_one_program_and_one_text() {
    each(&Options::default(), |seed, case| {
        let again = program(seed, &Options::default());
        assert!(taffeta_ast::func::same(&case.func, &again.func), "seed {seed}");
        assert_eq!(print::func(&case.func), print::func(&again.func), "seed {seed}");
        let same = |a: &Outputs, b: &Outputs| format!("{a:?}") == format!("{b:?}");
        let (a, b) = (run(&case.func, &case.inputs), run(&again.func, &again.inputs));
        assert!(matches!((a, b), (Ok(a), Ok(b)) if same(&a, &b)), "seed {seed}");
    });
}

#[test]
fn rebuilding_keeps_the_program() {
    each(&Options { floats: Floats::Any, ..Options::default() }, |seed, case| {
        fn rebuilt(s: &taffeta_ast::Stmt) -> taffeta_ast::Stmt {
            s.map(&mut rebuilt, &mut |e| {
                e.rewrite(&mut |e| match e.kind() {
                    ExprKind::Apply(op, args) => Expr::apply(*op, args.clone()),
                    ExprKind::Cast(inner) => inner.clone().cast(e.dtype()),
                    _ => e,
                })
            })
        }
        let again = case.func.with_body(rebuilt(&case.func.body));
        assert!(taffeta_ast::func::same(&case.func, &again), "seed {seed}");
    });
}

#[test]
fn shrinking_keeps_the_failure() {
    let backward = |case: &taffeta_ast::random::Case| {
        case.func.body.any(&mut |s| matches!(s.kind(), StmtKind::For { extent: Extent::Range { step, .. }, .. } if step.as_int() < Some(0)))
    };
    let case = SEEDS.map(|s| program(s, &Options::default())).find(|c| backward(c)).expect("a loop that runs backward");
    let small = shrink(&case, &mut |c| backward(c));
    let mut statements = 0;
    small.func.body.walk(&mut |s| statements += usize::from(!s.is_nop()));
    assert_eq!(statements, 1, "{}", print::func(&small.func));
}

/// Breaks a tree in one place: puts another expression of the program in an expression's place, or a statement
/// elsewhere.
fn broken(case: &taffeta_ast::random::Case, seed: u64) -> Stmt {
    let (mut exprs, mut stmts) = (Vec::new(), Vec::new());
    case.func.body.walk_exprs(&mut |e| exprs.push(e.clone()));
    case.func.body.walk(&mut |s| stmts.push(s.clone()));
    let pick = |k: u64, n: usize| ((seed * 4 + k).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as usize % n.max(1);
    let (place, by) = (pick(1, exprs.len()), exprs[pick(2, exprs.len())].clone());
    let (at, other) = (pick(3, stmts.len()), stmts[pick(4, stmts.len())].clone());
    let (mut e, mut k) = (0, 0);
    fn go(s: &Stmt, k: &mut usize, at: usize, other: &Stmt, e: &mut usize, place: usize, by: &Expr) -> Stmt {
        *k += 1;
        if *k == at + 1 {
            return other.clone();
        }
        let kind = s.map(&mut Stmt::clone, &mut |expr| swap(expr, e, place, by));
        kind.map(&mut |inner| go(inner, k, at, other, e, place, by), &mut Expr::clone)
    }
    /// Rebuilds an expression without the constructors' care for types.
    fn swap(expr: &Expr, e: &mut usize, place: usize, by: &Expr) -> Expr {
        *e += 1;
        if *e == place + 1 {
            return by.clone();
        }
        let kind = match expr.kind() {
            ExprKind::Apply(op, args) => ExprKind::Apply(*op, args.iter().map(|a| swap(a, e, place, by)).collect()),
            ExprKind::Cast(inner) => ExprKind::Cast(swap(inner, e, place, by)),
            ExprKind::Load(t, at) => {
                ExprKind::Load(t.clone(), at.iter().map(|a| a.map(&mut |i| swap(i, e, place, by))).collect())
            }
            other => other.clone(),
        };
        Expr::raw(kind, expr.dtype())
    }
    go(&case.func.body, &mut k, at, &other, &mut e, place, &by)
}

#[test]
fn broken_trees_are_rejected_and_never_panic() {
    let mut found = 0;
    each(&Options { statements: 8, ..Options::default() }, |seed, case| {
        let func = case.func.with_body(broken(&case, seed));
        let text = print::func(&func);
        let valid = validate::logical(&func).is_ok();
        found += usize::from(!valid);
        // The interpreter accepts every program that the validator accepts; it may refuse others.
        if let Err(e) = run(&func, &case.inputs) {
            assert!(!valid || !matches!(*e.kind, ErrorKind::Malformed(_)), "seed {seed}: {e}\n{text}");
        }
    });
    assert!(found > 200, "only {found} trees were found to be broken");
}

/// Checks that nodes' cached write sets match their contents, also after an edit deep inside.
#[test]
fn cached_write_sets_match_the_tree() {
    fn writes(s: &Stmt) -> FxHashSet<Symbol> {
        let mut all = FxHashSet::default();
        s.walk(&mut |s| match s.kind() {
            StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => all.extend([tensor.clone()]),
            StmtKind::VarDef { tensor, .. } => all.extend([tensor.symbol.clone()]),
            _ => {}
        });
        all
    }
    fn without(s: &Stmt, gone: &Symbol) -> Stmt {
        match s.kind() {
            StmtKind::Store { tensor, .. } if tensor == gone => s.with_kind(StmtKind::Seq(Vec::new())),
            _ => s.map(&mut |s| without(s, gone), &mut Expr::clone),
        }
    }
    fn answers_match(root: &Stmt) {
        let symbols = writes(root);
        root.walk(&mut |s| {
            let written = writes(s);
            assert!(symbols.iter().all(|t| s.writes_to(t) == written.contains(t)));
        });
    }
    fn check(root: &Stmt) {
        answers_match(root);
        root.walk(&mut |s| {
            assert_eq!(*s.writes(), writes(s));
            if let StmtKind::For { body, .. } = s.kind() {
                assert!(std::ptr::eq(s.writes(), body.writes()), "a loop has a list of its own");
            }
        });
        answers_match(root);
    }
    for seed in 0..50 {
        let func = program(seed, &Options { statements: 20, ..Options::default() }).func;
        check(&func.body);
        if let Some(tensor) = func.body.writes().iter().min() {
            assert!(!func.body.writes_to(&tensor.fresh()));
            check(&without(&func.body, tensor));
        }
    }
}
