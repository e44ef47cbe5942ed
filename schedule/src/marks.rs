//! Incremental proof of marks: finds the loops that earlier steps marked, to run in any order or as library calls, and
//! that a step may affect.
//!
//! The proof of a mark depends on the body of the loop, on the loops, conditions and assertions around it, and on the
//! declarations of the tensors that it uses. A step that keeps all of these as the same nodes keeps the proof. A proof
//! that also depends on values computed elsewhere in the program ([`proof_depends_on_outside`]) is repeated after every
//! step.

use crate::concurrent::is_marked;
use crate::tree;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Extent, Func, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Returns the marked loops of `new` whose proofs may differ from those in `old`, and the loops to prove `again` after
/// every step, in textual order.
pub(crate) fn changed(old: &Func, new: &Func, again: &FxHashSet<StmtId>) -> Vec<Stmt> {
    let marked = Marked::all(new);
    if marked.is_empty() || !old.interface().eq(new.interface()) || old.sizes != new.sizes {
        return marked.into_iter().map(|m| m.stmt).collect();
    }
    let known: FxHashMap<StmtId, Marked> = Marked::all(old).into_iter().map(|m| (m.stmt.id(), m)).collect();
    let same = |m: &Marked| known.get(&m.stmt.id()).is_some_and(|k| k.has_same_context(m));
    marked.into_iter().filter(|m| again.contains(&m.stmt.id()) || !same(m)).map(|m| m.stmt).collect()
}

/// Lists all marked loops of a program, in textual order.
pub(crate) fn every(func: &Func) -> Vec<Stmt> {
    let mut out = Vec::new();
    func.body.walk(&mut |s| out.extend(needs_proof(s).then(|| s.clone())));
    out
}

/// Returns whether a loop has a mark that needs a proof.
fn needs_proof(s: &Stmt) -> bool {
    is_marked(s) || is_library(s)
}

/// Returns whether a nest is run by a library call.
pub(crate) fn is_library(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::For { props, .. } if props.library)
}

/// Construct that contributes facts at a loop. The marks of enclosing loops do not matter.
#[derive(Clone, Debug, PartialEq)]
enum EnclosingFact {
    /// Iteration of a loop.
    Loop(Symbol, Extent),
    /// Iteration of a `while`.
    While(Expr),
    /// Branch in which the condition holds (`true`) or does not hold.
    Branch(Expr, bool),
    /// Assertion that was passed.
    Asserted(Expr),
}

/// Marked loop with its context.
struct Marked {
    stmt: Stmt,
    around: Vec<EnclosingFact>,
    /// Local tensors in scope at the loop.
    declared: Vec<Arc<Tensor>>,
}

impl Marked {
    fn all(func: &Func) -> Vec<Marked> {
        let mut search = MarkCollector::default();
        search.stmt(&func.body);
        search.out
    }

    fn has_same_context(&self, other: &Marked) -> bool {
        self.stmt.same_node(&other.stmt) && self.around == other.around && self.uses_the_same(other)
    }

    /// Returns whether the tensors that the loop uses have the same declarations.
    fn uses_the_same(&self, other: &Marked) -> bool {
        let (ours, theirs) = (&self.declared, &other.declared);
        if ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| Arc::ptr_eq(a, b)) {
            return true;
        }
        let used = mentioned(&self.stmt);
        let of = |all: &[Arc<Tensor>]| -> FxHashMap<Symbol, Arc<Tensor>> {
            let own = all.iter().filter(|t| used.contains(&t.symbol));
            own.map(|t| (t.symbol.clone(), t.clone())).collect()
        };
        of(ours) == of(theirs)
    }
}

#[derive(Default)]
struct MarkCollector {
    around: Vec<EnclosingFact>,
    declared: Vec<Arc<Tensor>>,
    out: Vec<Marked>,
}

impl MarkCollector {
    fn stmt(&mut self, s: &Stmt) {
        if needs_proof(s) {
            let (around, declared) = (self.around.clone(), self.declared.clone());
            self.out.push(Marked { stmt: s.clone(), around, declared });
        }
        let depth = self.around.len();
        match s.kind() {
            StmtKind::Seq(all) => {
                for s in all {
                    self.stmt(s);
                    if let StmtKind::Assert { cond, .. } | StmtKind::Assume { cond } = s.kind() {
                        self.around.push(EnclosingFact::Asserted(cond.clone()));
                    }
                }
                self.around.truncate(depth);
            }
            StmtKind::VarDef { tensor, body } => {
                self.declared.push(tensor.clone());
                self.stmt(body);
                self.declared.pop();
            }
            StmtKind::For { iter, extent, body, .. } => {
                self.inside(EnclosingFact::Loop(iter.clone(), extent.clone()), body);
            }
            StmtKind::While { cond, body } => self.inside(EnclosingFact::While(cond.clone()), body),
            StmtKind::If { cond, then, otherwise } => {
                self.inside(EnclosingFact::Branch(cond.clone(), true), then);
                if let Some(s) = otherwise {
                    self.inside(EnclosingFact::Branch(cond.clone(), false), s);
                }
            }
            _ => {}
        }
    }

    fn inside(&mut self, around: EnclosingFact, s: &Stmt) {
        self.around.push(around);
        self.stmt(s);
        self.around.pop();
    }
}

/// Collects the tensors that a statement uses, or whose sizes it queries.
fn mentioned(s: &Stmt) -> FxHashSet<Symbol> {
    let mut out = effects::writes(s);
    s.walk(&mut |s| {
        out.extend(s.kind().printed().into_iter().cloned());
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(t, _) | ExprKind::Measure(_, t) = e.kind() {
                    out.insert(t.clone());
                }
            });
        }
    });
    out
}

/// Returns whether the proof of a mark depends on more than the loop and its context: on elements read by conditions,
/// bounds and shapes around it, which other statements may write, or on integers computed elsewhere.
pub(crate) fn proof_depends_on_outside(func: &Func, stmt: &Stmt) -> bool {
    let Some(path) = tree::path(&func.body, stmt.id()) else { return true };
    // A tensor that the program does not write is not written by any step.
    let written = effects::writes(&func.body);
    let reads = |e: &Expr| !effects::loads(e).is_disjoint(&written);
    // Sequences on the path contribute the assertions in them.
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
    let library = is_library(stmt);
    let (mut declared, mut scalars) = (FxHashSet::default(), FxHashSet::default());
    stmt.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            declared.insert(tensor.symbol.clone());
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(t, indices) = e.kind()
                    && (indices.is_empty() || library)
                    && e.dtype().is_int()
                    && written.contains(t)
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
    use crate::schedule::Schedule;
    use crate::value::{Arg, Value};
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
    fn marked_loops_changed_by_a_step_are_found() {
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
        assert_eq!(names(&changed(&before, s.func(), &FxHashSet::default())), ["i2"]);
        let before = s.func().clone();
        call(&mut s, "parallelize", &[text("y.d0")]);
        assert_eq!(names(&changed(&before, s.func(), &FxHashSet::default())), ["y.d0"]);
    }

    #[test]
    fn changed_assertions_affect_later_marked_loops() {
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
        assert!(changed(&marked, &marked, &FxHashSet::default()).is_empty());
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
        assert_eq!(names(&changed(&marked, &after, &FxHashSet::default())), ["i"]);
    }

    #[test]
    fn proofs_that_depend_on_outer_integers_are_detected() {
        let f = program(
            "def f(x: f64[n]) -> f64[2 * n]:\n    y = zeros((2 * n,), f64)\n    h: i64 = n // 2\n    \
             for i in range(n):\n        y[h + i] = x[i]\n    for k in range(n):\n        y[k] = x[k]\n    \
             return y\n",
        );
        let mut loops = Vec::new();
        f.body.walk(&mut |s| loops.extend(matches!(s.kind(), StmtKind::For { .. }).then(|| s.clone())));
        let rests: Vec<(Option<&str>, bool)> =
            loops.iter().map(|s| (crate::selector::name(s), proof_depends_on_outside(&f, s))).collect();
        assert_eq!(rests, [(Some("y.d0"), false), (Some("i"), true), (Some("k"), false)]);
    }
}
