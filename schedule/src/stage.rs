//! Staging, for `cache` and `cache_reduction`: a small tensor stands for a box of a larger one during a statement.

use crate::refusal::Refusal;
use crate::region::{self, Side};
use crate::schedule::Schedule;
use crate::selector::Declared;
use crate::tree;
use crate::value::{Args, Handle, Value};
use std::sync::Arc;
use taffeta_analysis::pass::rewrite_accesses;
use taffeta_analysis::query::reference::{Reference, Step, Use, references};
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::format::Format;
use taffeta_ast::poly::tidy;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Access, Expr, ExprKind, Func, Literal, Origin, Span, Stmt, StmtKind, Tensor};

/// Staged part of a tensor: a statement, a tensor that it uses, and the box of elements that it accesses.
pub(crate) struct Stage {
    pub target: Stmt,
    pub tensor: Arc<Tensor>,
    /// References to the tensor in the statement.
    pub refs: Vec<Reference>,
    /// All references to the tensor.
    all: Vec<Reference>,
    pub sides: Vec<Side>,
    /// Shape of the small tensor: the sizes of the box, with padding.
    shape: Vec<Expr>,
}

/// Maximum padding. It serves vectors, cache lines and pages; more only takes memory.
const MAX_PADDING: i64 = 4096;

impl Stage {
    /// Resolves the arguments `stmt` and `tensor` of a call. Condition 1: the tensor can be staged at all.
    pub fn of(s: &Schedule, args: &Args<'_>) -> Result<Stage, Refusal> {
        let target = s.stmt(args.need("stmt")?)?;
        let declared = s.tensor_in(&target, args.need("tensor")?)?;
        rewritable(s.func(), &declared)?;
        let tensor = declared.tensor;
        let name = &tensor.symbol;
        let at = target.origin().span();
        let refuse = |text: String| Err(Refusal::illegal(1, text).label(at, "this statement"));
        if declared.stmt.is_some_and(|d| tree::find(&target, d.id()).is_some()) {
            return refuse(format!("`{name}` is declared inside the statement"));
        }
        let all: Vec<Reference> = references(s.func()).into_iter().filter(|r| r.tensor == *name).collect();
        let refs: Vec<Reference> = all.iter().filter(|r| r.site.inside(target.id())).cloned().collect();
        if refs.is_empty() {
            return refuse(format!("`{name}` is not used in the statement"));
        }
        let sides = region::around(s.func(), &target, &tensor, &refs.iter().collect::<Vec<_>>());
        let shape = sides.iter().map(|s| s.size.clone()).collect();
        Ok(Stage { target, tensor, refs, all, sides, shape })
    }

    /// Reads the argument `pad` of a call, and rounds the last size of the small tensor up to a multiple of it.
    /// Condition `condition`: the padding is never accessed. This must be proved, since an access out of range would go
    /// unnoticed in the padding.
    pub fn pad(&mut self, s: &Schedule, args: &Args<'_>, condition: u32) -> Result<(), Refusal> {
        let Some(pad) = args.positive("pad")? else { return Ok(()) };
        if pad > MAX_PADDING {
            let span = args.need("pad")?.span;
            return Err(Refusal::value(format!("expected at most {MAX_PADDING} for `pad`, found {pad}")).at(span));
        }
        let name = &self.tensor.symbol;
        let refuse = |text: String, at: Span, label: &str| Err(Refusal::illegal(condition, text).label(at, label));
        let Some(last) = self.tensor.ndim().checked_sub(1) else {
            return refuse(format!("cannot pad the scalar `{name}`"), self.target.origin().span(), "this statement");
        };
        let mut outside = None;
        region::at_accesses(s.func(), &self.target, name, &mut |facts, stmt, indices| {
            if outside.is_none() && !facts.in_range(name, last, &indices[last].index) {
                outside = Some((stmt.origin().span(), indices[last].index.clone()));
            }
        });
        if let Some((at, index)) = outside {
            // The index as it is written in the program, without an implicit cast.
            let index = match index.kind() {
                ExprKind::Cast(inner) => taffeta_ast::print::expr(inner),
                _ => taffeta_ast::print::expr(&index),
            };
            let dim = taffeta_ast::print::expr(&self.tensor.shape[last]);
            let text =
                format!("the subscript `{index}` of `{name}` is not proved to be in range, and may reach the padding");
            return refuse(text, at, "here")
                .map_err(|r| r.help(format!("write `assert 0 <= {index} and {index} < {dim}` before the access")));
        }
        let mut facts = self.facts(s.func());
        let (size, by) = (&self.shape[last], Expr::int(pad));
        if !facts.sum_fits(&[(size, 1)], i128::from(pad) - 1) {
            let text = format!("the padded size of `{name}` may not fit in 64 bits");
            return refuse(text, self.target.origin().span(), "this statement");
        }
        if !facts.prove(&size.modulo(&by).equals(&Expr::int(0))) {
            self.shape[last] = tree::ceil_div(size, pad).times(&by);
        }
        Ok(())
    }

    /// Returns the facts that hold before the statement.
    pub fn facts(&self, func: &Func) -> Context {
        walk::at(func, self.target.id()).unwrap_or_else(|| Context::new(func))
    }

    /// Returns whether every element of the box surely has a value before the statement runs: from a write, or from the
    /// caller.
    pub fn written_before(&self, func: &Func, facts: &mut Context) -> bool {
        if matches!(self.tensor.role, Role::Input | Role::InOut) {
            return true;
        }
        let Some(way) = tree::path(&func.body, self.target.id()) else { return false };
        self.all.iter().filter(|r| r.kind == Use::Write && !r.site.inside(self.target.id())).any(|w| {
            earlier(w, &way).is_some_and(|common| common >= w.scope() && region::covers(facts, w, common, &self.sides))
        })
    }

    /// Returns whether the statement surely reads or updates every element of the box, and overwrites none. Then a
    /// fetch reads no element that the statement would not read.
    pub fn reads_all(&self, facts: &mut Context) -> bool {
        self.refs.iter().all(|r| r.kind != Use::Write)
            && self.refs.iter().any(|r| region::covers(facts, r, self.from(r), &self.sides))
    }

    /// Returns whether the statement surely writes every element of the box, and reads none before it has written it.
    pub fn writes_all_first(&self, func: &Func, facts: &mut Context) -> bool {
        let writes: Vec<&Reference> = self.refs.iter().filter(|w| w.kind == Use::Write).collect();
        let Some(all) = writes.iter().find(|w| region::covers(facts, w, self.from(w), &self.sides)) else {
            return false;
        };
        // Outermost loop of the covering write: whatever runs after this loop runs after all of its writes.
        let nest = all.site.path[self.from(all)..].iter().find(|s| matches!(s, Step::Loop { .. }));
        let nest = nest.map_or(all.site.stmt.id(), |s| s.stmt().id());
        self.refs.iter().filter(|r| r.kind != Use::Write).all(|r| {
            let after = !r.site.inside(nest) && all.site.before(&r.site);
            after || self.written_in_iteration(func, &writes, r)
        })
    }

    /// Returns whether the element that an access in the statement touches was surely written earlier in the same
    /// iteration.
    fn written_in_iteration(&self, func: &Func, writes: &[&Reference], r: &Reference) -> bool {
        let id = r.site.stmt.id();
        let (Some(way), Some(mut facts)) = (tree::path(&func.body, id), walk::at(func, id)) else { return false };
        let one = Expr::int(1);
        let point = |index: &Expr| {
            let (lo, end, size) = (index.clone(), index.plus(&one), one.clone());
            Side { lo, end, size, before: false, behind: false }
        };
        let sides: Vec<Side> = r.indices.iter().flatten().map(point).collect();
        for (cond, holds) in &r.guards {
            if *holds { facts.assume(cond) } else { facts.assume_not(cond) }
        }
        writes.iter().any(|w| earlier(w, &way).is_some_and(|common| region::covers(&mut facts, w, common, &sides)))
    }

    fn from(&self, r: &Reference) -> usize {
        r.site.path.len() - region::inside(r, self.target.id()).len()
    }

    /// Returns whether the tensor is structured. The small tensor is then a workspace.
    pub fn is_structured(&self) -> bool {
        !self.tensor.format.is_dense()
    }

    /// Builds the program with the small tensor declared around the statement, between the statements `before` and
    /// `after`. `fill` is the value of workspace elements that are not stored.
    pub fn build(
        &self,
        func: &Func,
        (step, fill): (&'static str, Option<Literal>),
        before: impl FnOnce(&Tensor) -> Option<Stmt>,
        after: impl FnOnce(&Tensor) -> Option<Stmt>,
    ) -> (Func, Value) {
        let suffix = if step == "cache" { "cache" } else { "partial" };
        let symbol = taffeta_ast::Symbol::new(format!("{}.{suffix}", self.tensor.symbol));
        let dense = Tensor::dense(symbol, self.tensor.dtype, self.shape.clone(), Role::Workspace);
        let small = Arc::new(match self.is_structured() {
            true => Tensor { format: Format::workspace(self.shape.len(), fill), ..dense },
            false => dense,
        });
        let names = [(self.tensor.symbol.clone(), small.symbol.clone())].into_iter().collect();
        let moved = rewrite_accesses::run(&self.target, &names, &|indices| {
            let sides = indices.iter().zip(&self.sides);
            sides.map(|(a, side)| a.map(&mut |k| tidy(&k.minus(&side.lo)))).collect()
        });
        let origin = self.origin(step, "scope");
        let body = Stmt::seq(before(&small).into_iter().chain([moved]).chain(after(&small)), origin.clone());
        let value = Value::Handle(Handle::Tensor(small.symbol.clone()));
        let scope = Stmt::new(StmtKind::VarDef { tensor: small, body }, origin);
        (tree::replace(func, self.target.id(), &scope), value)
    }

    /// Returns the sizes of the box, without padding.
    pub fn sizes(&self) -> Vec<Expr> {
        self.sides.iter().map(|s| s.size.clone()).collect()
    }

    /// Builds the origin of a generated statement, without the labels and calls of the staged statement, by which
    /// selectors would find the generated one.
    pub fn origin(&self, step: &'static str, role: &'static str) -> Origin {
        Origin::source(self.target.origin().span()).derive(step, role)
    }

    /// Builds a statement for every element of the box that lies in the tensor: `make` gets its indices in the large
    /// tensor and in the small one.
    pub fn each(&self, name: &str, origin: &Origin, make: impl FnOnce(Vec<Access>, Vec<Access>) -> StmtKind) -> Stmt {
        tree::over_box(&self.sizes(), name, origin, |indices| {
            let large: Vec<Expr> = indices.iter().zip(&self.sides).map(|(k, side)| tidy(&side.lo.plus(k))).collect();
            let mut inside = Expr::bool(true);
            for ((index, side), dim) in large.iter().zip(&self.sides).zip(&self.tensor.shape) {
                if side.before {
                    inside = inside.and(&Expr::int(0).less_eq(index));
                }
                if side.behind {
                    inside = inside.and(&index.less(dim));
                }
            }
            let kind = make(
                large.into_iter().map(Access::from).collect(),
                indices.iter().cloned().map(Access::from).collect(),
            );
            let stmt = Stmt::new(kind, origin.clone());
            if inside.as_bool() == Some(true) {
                return stmt;
            }
            Stmt::new(StmtKind::If { cond: inside, then: stmt, otherwise: None }, origin.clone())
        })
    }
}

/// Returns the length of the path that a reference shares with another statement, if the reference runs earlier in the
/// same iteration of the loops around both.
fn earlier(r: &Reference, way: &[Stmt]) -> Option<usize> {
    let common = r.site.path.iter().take_while(|step| leads(step, way)).count();
    let Some(Step::Child { seq, position, .. }) = r.site.path.get(common) else { return None };
    let StmtKind::Seq(all) = seq.kind() else { return None };
    let at = way.iter().position(|w| w.id() == seq.id())?;
    let next = way.get(at + 1)?;
    let ours = all.iter().position(|s| s.id() == next.id())?;
    (*position < ours).then_some(common)
}

fn leads(step: &Step, way: &[Stmt]) -> bool {
    let at = way.iter().position(|w| w.id() == step.stmt().id());
    let Some(next) = at.and_then(|k| way.get(k + 1)) else { return false };
    match step {
        Step::Child { seq, position, .. } => {
            matches!(seq.kind(), StmtKind::Seq(all) if all.get(*position).is_some_and(|s| s.id() == next.id()))
        }
        Step::Branch { stmt, then, .. } => match stmt.kind() {
            StmtKind::If { then: yes, .. } => (yes.id() == next.id()) == *then,
            _ => false,
        },
        _ => true,
    }
}

/// Checks condition 1 of every primitive that rewrites the accesses to a tensor: the tensor is dense, its shape does
/// not depend on data, no outside function takes it, and it is not printed whole.
pub(crate) fn usable(func: &Func, declared: &Declared) -> Result<(), Refusal> {
    let tensor = &declared.tensor;
    let name = &tensor.symbol;
    let at = declared.stmt.as_ref().map_or(Span::NONE, |s| s.origin().span());
    if !tensor.format.is_dense() {
        return Err(Refusal::unsupported(1, format!("`{name}` is not stored densely")).label(at, "declared here"));
    }
    rewritable(func, declared)
}

/// Checks condition 1 for a tensor that may be structured: as [`usable`] does, except for density.
pub(crate) fn rewritable(func: &Func, declared: &Declared) -> Result<(), Refusal> {
    let tensor = &declared.tensor;
    let name = &tensor.symbol;
    let at = declared.stmt.as_ref().map_or(Span::NONE, |s| s.origin().span());
    if tensor.shape.iter().any(|e| !effects::loads(e).is_empty()) {
        let text = format!("the shape of `{name}` depends on data");
        return Err(Refusal::illegal(1, text).label(at, "declared here"));
    }
    let mut whole = None;
    func.body.walk(&mut |s| {
        let taken = match s.kind() {
            StmtKind::Call { tensors, .. } => tensors.contains(name),
            kind => kind.printed().contains(&name),
        };
        if taken {
            whole.get_or_insert_with(|| s.clone());
        }
    });
    if let Some(s) = whole {
        let printed = s.kind().printed().contains(&name);
        let what = if printed { "printed whole" } else { "passed to a function outside the program" };
        let refusal = Refusal::illegal(1, format!("`{name}` is {what}")).label(s.origin().span(), "here");
        return Err(match printed {
            true => refusal.help(format!("print a copy: write `shown = {name} + 0`, and print `shown`")),
            false => refusal,
        });
    }
    Ok(())
}
