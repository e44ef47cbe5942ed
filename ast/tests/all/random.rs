//! The generator of random programs: what it promises, and what it is used for here.

use std::collections::BTreeSet;
use weft_ast::interp::{ErrorKind, Outputs, run};
use weft_ast::random::{Floats, Options, program, shrink};
use weft_ast::{DType, Expr, ExprKind, Extent, StmtKind, print, validate};

const SEEDS: std::ops::Range<u64> = 0..400;

fn each(options: &Options, mut f: impl FnMut(u64, weft_ast::random::Case)) {
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
fn errors_are_the_user_s() {
    let mut codes = BTreeSet::new();
    each(&Options { errors: true, ..Options::default() }, |seed, case| {
        assert_eq!(validate::logical(&case.func), Ok(()), "seed {seed}");
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
fn everything_occurs() {
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
    assert_eq!(ops.len(), weft_ast::Op::ALL.len(), "{ops:?}");
}

#[test]
fn one_seed_gives_one_program_and_one_text() {
    each(&Options::default(), |seed, case| {
        let again = program(seed, &Options::default());
        assert!(weft_ast::func::same(&case.func, &again.func), "seed {seed}");
        assert_eq!(print::func(&case.func), print::func(&again.func), "seed {seed}");
        let same = |a: &Outputs, b: &Outputs| format!("{a:?}") == format!("{b:?}");
        let (a, b) = (run(&case.func, &case.inputs), run(&again.func, &again.inputs));
        assert!(matches!((a, b), (Ok(a), Ok(b)) if same(&a, &b)), "seed {seed}");
    });
}

#[test]
fn rebuilding_keeps_the_program() {
    each(&Options { floats: Floats::Any, ..Options::default() }, |seed, case| {
        fn rebuilt(s: &weft_ast::Stmt) -> weft_ast::Stmt {
            s.map(&mut rebuilt, &mut |e| {
                e.rewrite(&mut |e| match e.kind() {
                    ExprKind::Apply(op, args) => Expr::apply(*op, args.clone()),
                    ExprKind::Cast(inner) => inner.clone().cast(e.dtype()),
                    _ => e,
                })
            })
        }
        let again = case.func.with_body(rebuilt(&case.func.body));
        assert!(weft_ast::func::same(&case.func, &again), "seed {seed}");
    });
}

#[test]
fn shrinking_keeps_what_matters() {
    let backward = |case: &weft_ast::random::Case| {
        let mut found = false;
        case.func.body.walk(&mut |s| {
            found |= matches!(s.kind(), StmtKind::For { extent: Extent::Range { step, .. }, .. } if step.as_int() < Some(0));
        });
        found
    };
    let case = SEEDS.map(|s| program(s, &Options::default())).find(|c| backward(c)).expect("a loop that runs backward");
    let small = shrink(&case, &mut |c| backward(c));
    let mut statements = 0;
    small.func.body.walk(&mut |s| statements += usize::from(!s.is_nop()));
    assert_eq!(statements, 1, "{}", print::func(&small.func));
}
