//! Which of the loops that earlier steps marked to run in any order a step may have changed something for.
//!
//! What stands against running a loop so is asked of what is inside of it, under the loops, conditions, declarations
//! and assertions around it. A step that keeps all of that, as the same nodes, keeps the answer: it is found by going
//! down both programs only where they differ. What else an answer may rest on, values that the program computes
//! elsewhere ([`rests_on_elsewhere`]), is asked about again after every step.

use crate::concurrent::is_marked;
use crate::tree;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Func, Stmt, StmtKind};

/// The marked loops of the program `new` for which something may be different than in the program `old`, in the order
/// of the text.
pub(crate) fn changed(old: &Func, new: &Func) -> Vec<Stmt> {
    let mut out = Vec::new();
    if old.interface().eq(new.interface()) && old.sizes == new.sizes {
        differing(&old.body, &new.body, &mut out);
    } else {
        all(&new.body, &mut out);
    }
    out
}

/// All marked loops of a program, in the order of the text.
pub(crate) fn every(func: &Func) -> Vec<Stmt> {
    let mut out = Vec::new();
    all(&func.body, &mut out);
    out
}

fn all(s: &Stmt, out: &mut Vec<Stmt>) {
    s.walk(&mut |s| out.extend(is_marked(s).then(|| s.clone())));
}

/// The marked loops of `new` in which it differs from `old`, which stands in the same surroundings.
fn differing(old: &Stmt, new: &Stmt, out: &mut Vec<Stmt>) {
    if old.same_node(new) {
        return;
    }
    out.extend(is_marked(new).then(|| new.clone()));
    match (old.kind(), new.kind()) {
        (StmtKind::Seq(x), StmtKind::Seq(y)) => return sequences(x, y, out),
        (StmtKind::VarDef { tensor: a, body: x }, StmtKind::VarDef { tensor: b, body: y }) if a == b => {
            return differing(x, y, out);
        }
        (
            StmtKind::For { iter: i, extent: e, props: p, body: x },
            StmtKind::For { iter: j, extent: f, props: q, body: y },
        ) if i == j && e == f && p == q => return differing(x, y, out),
        // Another mark alone: whether loops inside may run in any order does not depend on how those around them run.
        (StmtKind::For { iter: i, extent: e, body: x, .. }, StmtKind::For { iter: j, extent: f, body: y, .. })
            if i == j && e == f && x.same_node(y) =>
        {
            return;
        }
        (
            StmtKind::If { cond: a, then: x, otherwise: Some(v) },
            StmtKind::If { cond: b, then: y, otherwise: Some(w) },
        ) if a == b => {
            differing(x, y, out);
            return differing(v, w, out);
        }
        (StmtKind::If { cond: a, then: x, otherwise: None }, StmtKind::If { cond: b, then: y, otherwise: None })
            if a == b =>
        {
            return differing(x, y, out);
        }
        _ => {}
    }
    new.kind().inside().for_each(|s| all(s, out));
}

/// The same for the statements of two sequences: what is the same at the beginning and at the end stays what it was,
/// unless it comes after assertions that are other ones.
fn sequences(old: &[Stmt], new: &[Stmt], out: &mut Vec<Stmt>) {
    let same = |(a, b): &(&Stmt, &Stmt)| a.same_node(b);
    let before = old.iter().zip(new).take_while(same).count();
    let (old, new) = (&old[before..], &new[before..]);
    let after = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let (between_old, between) = (&old[..old.len() - after], &new[..new.len() - after]);
    let asserts = |s: &Stmt| matches!(s.kind(), StmtKind::Assert { .. } | StmtKind::Assume { .. });
    if between_old.iter().chain(between).any(asserts) {
        return new.iter().for_each(|s| all(s, out));
    }
    for (k, s) in between.iter().enumerate() {
        match between_old.get(k) {
            Some(old) => differing(old, s, out),
            None => all(s, out),
        }
    }
}

/// Whether what is asked about a loop depends on more than what is inside and around: on elements that are read by
/// conditions, bounds and shapes around it, which other statements may write, or on integers that are computed
/// elsewhere.
pub(crate) fn rests_on_elsewhere(func: &Func, stmt: &Stmt) -> bool {
    let Some(path) = tree::path(&func.body, stmt.id()) else { return true };
    let reads = |e: &Expr| !effects::loads(e).is_empty();
    // The ways into sequences: what is asserted before.
    let asserted = |s: &Stmt| match s.kind() {
        StmtKind::Seq(all) => all.iter().any(|s| match s.kind() {
            StmtKind::Assert { cond, .. } | StmtKind::Assume { cond } => reads(cond),
            _ => false,
        }),
        StmtKind::While { .. } => true,
        kind => kind.exprs().into_iter().any(reads),
    };
    if path.iter().any(asserted) {
        return true;
    }
    let (mut declared, mut scalars) = (FxHashSet::default(), FxHashSet::default());
    stmt.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            declared.insert(tensor.symbol.clone());
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(t, indices) = e.kind()
                    && indices.is_empty()
                    && e.dtype().is_int()
                {
                    scalars.insert(t.clone());
                }
            });
        }
    });
    !scalars.is_subset(&declared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arg, Schedule, Value};
    use taffeta_ast::Span;
    use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

    fn program(text: &str) -> Func {
        let program = Program::load(Source::inline("test.ft", text), &NoLoader);
        program.elaborate("f", &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}"))
    }

    fn call(s: &mut Schedule, method: &str, args: &[Value]) {
        let args: Vec<Arg> = args.iter().map(|v| Arg { name: None, value: v.clone(), span: Span::NONE }).collect();
        s.call(method, &args).unwrap_or_else(|r| panic!("{}", r.message));
    }

    fn names(marked: &[Stmt]) -> Vec<&str> {
        marked.iter().filter_map(crate::selector::name).collect()
    }

    fn text(value: &str) -> Value {
        Value::Str(value.into())
    }

    #[test]
    fn a_step_concerns_the_marked_loops_that_it_changes() {
        let loops: String = (0..6)
            .map(|k| {
                format!(
                    "    for i{k} in range(n):\n        for j{k} in range(n):\n            y[i{k}, j{k}] += x[j{k}]\n"
                )
            })
            .collect();
        let f = program(&format!("def f(x: f64[n]) -> f64[n, n]:\n    y = zeros((n, n), f64)\n{loops}    return y\n"));
        let mut s = Schedule::new(f);
        (0..6).for_each(|k| call(&mut s, "parallelize", &[text(&format!("i{k}"))]));
        assert_eq!(every(s.func()).len(), 6);
        let before = s.func().clone();
        call(&mut s, "split", &[text("j2"), Value::Int(4)]);
        assert_eq!(names(&changed(&before, s.func())), ["i2"]);
        let before = s.func().clone();
        call(&mut s, "parallelize", &[text("y.d0")]);
        assert_eq!(names(&changed(&before, s.func())), ["y.d0"]);
    }

    #[test]
    fn what_is_asserted_before_concerns_what_comes_after() {
        let with = |condition: &str| {
            program(&format!(
                "def f(x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    assert {condition}\n    \
                 for i in range(n):\n        y[i] = x[i]\n    return y\n"
            ))
        };
        let f = with("n > 4");
        let mut s = Schedule::new(f.clone());
        call(&mut s, "parallelize", &[text("i")]);
        let marked = s.func().clone();
        assert!(changed(&marked, &marked).is_empty());
        // The same nodes after another assertion.
        let StmtKind::Seq(all) = marked.body.kind() else { panic!("a sequence") };
        let other = all.iter().map(|s| match s.kind() {
            StmtKind::Assert { message, kind, .. } => {
                let cond = Expr::var(&f.sizes[0]).less(&Expr::int(9));
                s.with_kind(StmtKind::Assert { cond, message: message.clone(), kind: *kind })
            }
            _ => s.clone(),
        });
        let after = marked.with_body(marked.body.with_kind(StmtKind::Seq(other.collect())));
        assert_eq!(names(&changed(&marked, &after)), ["i"]);
    }

    #[test]
    fn integers_from_elsewhere_are_asked_about_again() {
        let f = program(
            "def f(x: f64[n]) -> f64[2 * n]:\n    y = zeros((2 * n,), f64)\n    h: i64 = n // 2\n    \
             for i in range(n):\n        y[h + i] = x[i]\n    for k in range(n):\n        y[k] = x[k]\n    \
             return y\n",
        );
        let mut loops = Vec::new();
        f.body.walk(&mut |s| loops.extend(matches!(s.kind(), StmtKind::For { .. }).then(|| s.clone())));
        let rests: Vec<(Option<&str>, bool)> =
            loops.iter().map(|s| (crate::selector::name(s), rests_on_elsewhere(&f, s))).collect();
        assert_eq!(rests, [(Some("y.d0"), false), (Some("i"), true), (Some("k"), false)]);
    }
}
