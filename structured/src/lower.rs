//! Loops over structured tensors become loops over what is stored of them, from the outside in.

use crate::layout::{Flat, Layout, Parameter};
use crate::levels::{self, Above};
use crate::looplet::{Fibre, Lookup, Looplet, Positions, Stepper};
use crate::rewrite;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_analysis::pass::copy::Copier;
use taffeta_analysis::pass::substitute;
use taffeta_ast::stmt::{LoopProps, Role};
use taffeta_ast::{
    Access, DType, Diagnostic, Diagnostics, Expr, ExprKind, Extent, Func, Literal, Op, Param, ParamMode, Span, Stmt,
    StmtKind, Symbol, Tensor,
};

/// A program on the arrays of its structured tensors.
#[derive(Clone, Debug)]
pub struct Structured {
    /// The program. Its tensors are dense.
    pub func: Func,
    /// What its parameters are.
    pub layout: Layout,
    /// Loops that visit every coordinate although they traverse a structured tensor.
    pub warnings: Vec<Diagnostic>,
}

/// Lowers a logical program. A dense one stays as it is.
///
/// # Errors
///
/// Storage, and accesses to structured tensors, for which there is no rule yet.
pub fn lower(func: &Func) -> Result<Structured, Diagnostics> {
    if func.params.iter().all(|p| p.tensor.format.is_dense()) {
        return Ok(Structured { func: func.clone(), layout: Layout::dense(func), warnings: Vec::new() });
    }
    let mut pass = Lower::default();
    let (params, layout) = pass.interface(func)?;
    let bound = func.sizes.iter().map(|s| (s.clone(), None)).collect();
    let body = pass.stmt(&pass.opened(&func.body), &bound);
    if !pass.found.is_empty() {
        return Err(Diagnostics(pass.found));
    }
    let sizes = func.sizes.iter().chain(&layout.hidden).cloned().collect();
    let func = Func { params, sizes, ..func.with_body(body) };
    Ok(Structured { func, layout, warnings: pass.warnings })
}

#[derive(Default)]
struct Lower {
    /// Structured tensors.
    tensors: FxHashMap<Symbol, Flat>,
    /// Which tensor, and what is below how many of its levels, a fibre is.
    fibres: FxHashMap<Symbol, (Symbol, usize)>,
    found: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

/// What is bound at a place: sizes, and iterators, with the range of those that count one by one.
type Scope = FxHashMap<Symbol, Option<[Expr; 2]>>;

/// Fibres that are traversed together: those at one position, at the coordinate that a loop counts.
struct Cursor {
    fibre: Symbol,
    above: Expr,
    looplet: Looplet,
}

/// A loop that one cursor drives.
#[derive(Clone, Copy)]
struct Traversal<'a> {
    s: &'a Stmt,
    iter: &'a Symbol,
    /// From the first coordinate to the one after the last.
    range: [&'a Expr; 2],
    props: &'a LoopProps,
    body: &'a Stmt,
    /// What is left of the body where nothing is stored.
    skipped: &'a Stmt,
    /// What is bound in the body.
    inside: &'a Scope,
    cursor: &'a Cursor,
}

/// Nothing, then a position for each coordinate, then nothing.
struct Block {
    first: Expr,
    last: Expr,
    lookup: Lookup,
}

impl Block {
    fn of(phases: &[crate::looplet::Phase]) -> Option<Block> {
        let lookup = phases.iter().position(|p| matches!(p.looplet, Looplet::Lookup(_)))?;
        let Looplet::Lookup(found) = &phases[lookup].looplet else { return None };
        let first = match lookup {
            0 => Expr::int(0),
            k => phases[k - 1].end.clone()?,
        };
        Some(Block { first, last: phases[lookup].end.clone()?, lookup: found.clone() })
    }
}

fn above(position: &Expr) -> Above {
    Above { positions: Positions::one(position.clone()), coordinate: Expr::int(0) }
}

impl Lower {
    /// The parameters of the lowered program.
    fn interface(&mut self, func: &Func) -> Result<(Vec<Param>, Layout), Diagnostics> {
        let (mut params, mut layout) = (Vec::new(), Layout { params: Vec::new(), hidden: Vec::new() });
        for p in &func.params {
            if p.tensor.format.is_dense() {
                params.push(p.clone());
                layout.params.push(Parameter::Dense);
                continue;
            }
            let flat = Flat::of(&p.tensor, &mut layout.hidden).map_err(|level| {
                let text = format!("the level `{level}` of `{}` is not supported yet", p.tensor.symbol);
                Diagnostic::new("lower::unsupported", text)
            })?;
            let arrays = flat.arrays();
            params.extend(arrays.iter().map(|a| Param { tensor: a.tensor.clone(), mode: ParamMode::In }));
            layout.params.push(Parameter::Stored(arrays));
            for (k, fibre) in flat.fibres.iter().enumerate() {
                self.fibres.insert(fibre.clone(), (p.tensor.symbol.clone(), k));
            }
            self.tensors.insert(p.tensor.symbol.clone(), flat);
        }
        Ok((params, layout))
    }

    /// The statement with an access to the outermost fibre for each to a structured tensor: `A[i, j]` with the columns
    /// first is `A.fibre0[0, j, i]`.
    fn opened(&self, s: &Stmt) -> Stmt {
        substitute::rebuild(s, &mut |e| match e.kind() {
            ExprKind::Load(t, at) => match self.tensors.get(t) {
                Some(flat) => {
                    let indices = flat.levels.iter().map(|l| at[l.dimension].clone());
                    let all = std::iter::once(Access::from(Expr::int(0))).chain(indices).collect();
                    Expr::load(&flat.fibres[0], all, e.dtype())
                }
                None => e,
            },
            _ => e,
        })
    }

    fn stmt(&mut self, s: &Stmt, bound: &Scope) -> Stmt {
        match s.kind() {
            StmtKind::For { iter, extent, props, body } => self.repeat(s, iter, extent, props, body, bound),
            StmtKind::Seq(_) | StmtKind::VarDef { .. } => s.map(&mut |s| self.stmt(s, bound), &mut Expr::clone),
            _ => {
                let s = self.located(s, bound);
                let span = s.origin().span();
                s.kind().exprs().into_iter().for_each(|e| self.refuse_rest(e, span));
                if let Some(t) = s.kind().printed().into_iter().find(|t| self.tensors.contains_key(t)) {
                    self.refuse_at(span, format!("`{t}`, which is structured, cannot be printed whole yet"));
                }
                s.map(&mut |s| self.stmt(s, bound), &mut Expr::clone)
            }
        }
    }

    fn repeat(
        &mut self,
        s: &Stmt,
        iter: &Symbol,
        extent: &Extent,
        props: &LoopProps,
        body: &Stmt,
        bound: &Scope,
    ) -> Stmt {
        let s_located = self.located_bounds(extent, bound, s.origin().span());
        let mut inside = bound.clone();
        inside.insert(iter.clone(), range(extent));
        let body = self.located(body, &inside);
        let mut cursors = self.cursors(&body, iter, bound);
        if cursors.is_empty() {
            let body = self.stmt(&body, &inside);
            return s.with_kind(StmtKind::For { iter: iter.clone(), extent: s_located, props: props.clone(), body });
        }
        let skipped = self.filled(&body, &cursors, iter);
        let span = s.origin().span();
        let Extent::Range { begin, end, step } = &s_located else {
            return self.refuse(
                s,
                span,
                format!("a loop over the reals, with `{iter}`, traverses a structured tensor"),
            );
        };
        if step.as_int() != Some(1) {
            return self.refuse(
                s,
                span,
                format!("the loop `{iter}` traverses a structured tensor in steps other than 1"),
            );
        }
        if cursors.len() > 1 {
            let names: Vec<String> = cursors.iter().map(|c| format!("`{}`", self.fibres[&c.fibre].0)).collect();
            return self.refuse(s, span, format!("the loop `{iter}` traverses {} together", names.join(" and ")));
        }
        let Some(cursor) = cursors.pop() else { unreachable!("there is one") };
        if !skipped.is_nop() && props.is_concurrent() {
            let name = self.fibres[&cursor.fibre].0.clone();
            let text = format!(
                "the loop `{iter}` is parallel or vectorised, traverses `{name}`, and does something where that stores \
                 nothing"
            );
            return self.refuse(s, span, text);
        }
        if let Some(left) = first_effect(&skipped) {
            let name = &self.fibres[&cursor.fibre].0;
            let text = format!("the loop `{iter}` visits every coordinate, although it traverses `{name}`");
            let d = Diagnostic::warning("structured::scan", text).at(span);
            let d = d.label(left.origin().span(), "this is done where nothing is stored too");
            let known = |w: &Diagnostic| w.message == d.message && w.labels == d.labels;
            if !self.warnings.iter().any(known) {
                self.warnings.push(d);
            }
        }
        let range = [begin, end];
        let t = Traversal { s, iter, range, props, body: &body, skipped: &skipped, inside: &inside, cursor: &cursor };
        match cursor.looplet.clone() {
            Looplet::Stepper(stepper) => self.traversed(t, stepper),
            Looplet::Sequence(phases) => match Block::of(&phases) {
                Some(block) => self.in_block(t, block),
                None => self.refuse(s, span, format!("the loop `{iter}` traverses a sequence of looplets")),
            },
            _ => self.refuse(s, span, format!("the loop `{iter}` traverses such a level")),
        }
    }

    /// A loop that one block of consecutive coordinates drives: over these, and over those before and after it if
    /// something is left of its body there.
    fn in_block(
        &mut self,
        t: Traversal<'_>,
        Block { first, last, lookup: Lookup { position, promises, .. } }: Block,
    ) -> Stmt {
        let Traversal { s, iter, range: [begin, end], props, body, skipped, inside, cursor } = t;
        let whole = self.is_whole(cursor, [begin, end]);
        let consumed = self.consumed(body, cursor, iter, &position);
        let stored = self.stmt(&consumed, inside);
        let origin = |role: &'static str| s.origin().derive("structured", role);
        let assumed = promises.into_iter().map(|cond| Stmt::new(StmtKind::Assume { cond }, origin("promise")));
        let stored = Stmt::seq(assumed.chain([stored]), origin("position"));
        let [least, most] = [Op::Max, Op::Min].map(|op| {
            move |a: &Expr, b: &Expr| if whole { b.clone() } else { Expr::apply(op, vec![a.clone(), b.clone()]) }
        });
        let extent = Extent::Range { begin: least(begin, &first), end: most(end, &last), step: Expr::int(1) };
        let props = LoopProps { library: false, ..props.clone() };
        let stored = s.with_kind(StmtKind::For { iter: iter.clone(), extent, props, body: stored });
        if skipped.is_nop() {
            return stored;
        }
        let before = self.gap(s, iter, [begin, &most(end, &first)], skipped, inside);
        let after = self.gap(s, iter, [&least(begin, &last), end], skipped, inside);
        Stmt::seq([before, stored, after], origin("traversal"))
    }

    /// Whether a loop runs over all of the dimension that it traverses.
    fn is_whole(&self, cursor: &Cursor, [begin, end]: [&Expr; 2]) -> bool {
        let (tensor, k) = &self.fibres[&cursor.fibre];
        begin.as_int() == Some(0) && *end == self.tensors[tensor].levels[*k].size
    }

    /// The body in which the fibre's accesses at the loop's coordinate are to what is below that position.
    fn consumed(&self, body: &Stmt, cursor: &Cursor, iter: &Symbol, position: &Expr) -> Stmt {
        let (tensor, k) = &self.fibres[&cursor.fibre];
        let flat = &self.tensors[tensor];
        let below = flat.fibres.get(k + 1).unwrap_or(&flat.values.symbol);
        substitute::rebuild(body, &mut |e| match e.kind() {
            ExprKind::Load(t, indices) if is_driven(t, indices, &cursor.fibre, &cursor.above, iter) => {
                let all = std::iter::once(Access::from(position.clone())).chain(indices[2..].iter().cloned());
                Expr::load(below, all.collect(), e.dtype())
            }
            _ => e,
        })
    }

    /// A loop that one fibre alone drives: over its positions, where the loop's own range has their coordinates. If
    /// something is left of its body where nothing is stored, it runs over the coordinates in between besides.
    ///
    /// ```text
    /// next = 0
    /// for j.p in range(pos[i], pos[i + 1]):
    ///     for j in range(next, crd[j.p]):
    ///         …                                   where nothing is stored
    ///     …                                       at crd[j.p]
    ///     next = crd[j.p] + 1
    /// for j in range(next, m):
    ///     …                                       where nothing is stored
    /// ```
    fn traversed(&mut self, t: Traversal<'_>, stepper: Stepper) -> Stmt {
        let Traversal { s, iter, range: [begin, end], props, body, skipped, inside, cursor } = t;
        let Stepper { position, begin: first, end: last, last: coordinate, body: looplet, promises, .. } = stepper;
        let whole = self.is_whole(cursor, [begin, end]);
        let Looplet::Spike(Fibre::At(Positions { first: at, .. })) = *looplet else {
            return self.refuse(s, s.origin().span(), format!("the loop `{iter}` traverses such a level"));
        };
        let consumed = self.consumed(body, cursor, iter, &at);
        let mut inner = inside.clone();
        inner.insert(position.clone(), None);
        let mut body = self.stmt(&substitute::variable(&consumed, iter, &coordinate), &inner);
        let next = (!skipped.is_nop()).then(|| {
            let next = Symbol::new(format!("{}.next", iter.name()));
            Arc::new(Tensor::dense(next, DType::I64, Vec::new(), Role::Workspace))
        });
        let origin = |role: &'static str| s.origin().derive("structured", role);
        let set = |next: &Tensor, value: &Expr| {
            let kind = StmtKind::Store { tensor: next.symbol.clone(), indices: Vec::new(), value: value.clone() };
            Stmt::new(kind, origin("next"))
        };
        if let Some(next) = &next {
            let gap = self.gap(s, iter, [&next.load([]), &coordinate], skipped, inside);
            let after = set(next, &coordinate.plus(&Expr::int(1)));
            body = Stmt::seq([gap, body, after], origin("position"));
        }
        let body = if whole {
            body
        } else {
            let cond = begin.less_eq(&coordinate).and(&coordinate.less(end));
            Stmt::new(StmtKind::If { cond, then: body, otherwise: None }, origin("range"))
        };
        let assumed = promises.into_iter().map(|cond| Stmt::new(StmtKind::Assume { cond }, origin("promise")));
        let body = Stmt::seq(assumed.chain([body]), origin("position"));
        let extent = Extent::Range { begin: first, end: last, step: Expr::int(1) };
        // What is a product of dense matrices is none of sparse ones.
        let props = LoopProps { library: false, ..props.clone() };
        let stored = s.with_kind(StmtKind::For { iter: position, extent, props, body });
        let Some(next) = next else { return stored };
        let rest = self.gap(s, iter, [&next.load([]), end], skipped, inside);
        let body = Stmt::seq([set(&next, begin), stored, rest], origin("traversal"));
        Stmt::new(StmtKind::VarDef { tensor: next, body }, origin("traversal"))
    }

    /// A loop over coordinates at which nothing is stored.
    fn gap(&mut self, s: &Stmt, iter: &Symbol, [begin, end]: [&Expr; 2], skipped: &Stmt, inside: &Scope) -> Stmt {
        let mut copier = Copier::new("structured", "gap");
        let counter = iter.fresh();
        copier.scalars.insert(iter.clone(), Expr::var(&counter));
        let body = copier.stmt(skipped);
        let mut inner = inside.clone();
        inner.insert(counter.clone(), None);
        let body = self.stmt(&self.located(&body, &inner), &inner);
        let extent = Extent::Range { begin: begin.clone(), end: end.clone(), step: Expr::int(1) };
        let kind = StmtKind::For { iter: counter, extent, props: LoopProps::default(), body };
        Stmt::new(kind, s.origin().derive("structured", "gap"))
    }

    /// The bounds of a loop, in which all accesses are at known coordinates.
    fn located_bounds(&mut self, extent: &Extent, bound: &Scope, span: Span) -> Extent {
        let Extent::Range { begin, end, step } = extent else { return extent.clone() };
        let [begin, end, step] = [begin, end, step].map(|e| {
            let e = self.located_expr(e, bound);
            self.refuse_rest(&e, span);
            e
        });
        Extent::Range { begin, end, step }
    }

    /// The statement in which accesses have consumed all levels whose positions are computed from what is bound.
    fn located(&self, s: &Stmt, bound: &Scope) -> Stmt {
        substitute::rebuild(s, &mut |e| self.locate(e, bound))
    }

    fn located_expr(&self, e: &Expr, bound: &Scope) -> Expr {
        substitute::rebuild_expr(e, &mut |e| self.locate(e, bound), &mut FxHashMap::default())
    }

    fn locate(&self, e: Expr, bound: &Scope) -> Expr {
        let mut e = e;
        loop {
            let ExprKind::Load(t, at) = e.kind() else { return e };
            let Some((tensor, k)) = self.fibres.get(t) else { return e };
            let flat = &self.tensors[tensor];
            let level = &flat.levels[*k];
            let Some(kind) = levels::of(level.level.kind) else { return e };
            if !known(&at[0].index, bound) || !is_coordinate(&at[1].index, &level.size, bound) {
                return e;
            }
            let Some(position) = kind.located(level, &above(&at[0].index), &at[1].index) else { return e };
            let rest = std::iter::once(Access::from(position)).chain(at[2..].iter().cloned()).collect();
            let below = flat.fibres.get(k + 1).unwrap_or(&flat.values.symbol);
            e = Expr::load(below, rest, e.dtype());
        }
    }

    /// The fibres that a loop traverses: those at positions that are known outside of it, at its coordinate.
    fn cursors(&self, body: &Stmt, iter: &Symbol, bound: &Scope) -> Vec<Cursor> {
        let mut out: Vec<Cursor> = Vec::new();
        let mut look = |e: &Expr| {
            let ExprKind::Load(t, at) = e.kind() else { return };
            let Some((tensor, k)) = self.fibres.get(t) else { return };
            if !is_iterator_of(&at[1].index, iter) || !known(&at[0].index, bound) {
                return;
            }
            if out.iter().any(|c| c.fibre == *t && c.above == at[0].index) {
                return;
            }
            let level = &self.tensors[tensor].levels[*k];
            let Some(kind) = levels::of(level.level.kind) else { return };
            let position = Symbol::new(format!("{}.p", iter.name()));
            let looplet = kind.fibre(level, &above(&at[0].index), &at[1].index, &position);
            if !matches!(looplet, Looplet::Lookup(_)) {
                out.push(Cursor { fibre: t.clone(), above: at[0].index.clone(), looplet });
            }
        };
        body.walk(&mut |s| s.kind().exprs().into_iter().for_each(|e| e.walk(&mut look)));
        out
    }

    /// The body where none of the cursors stores anything.
    fn filled(&self, body: &Stmt, cursors: &[Cursor], iter: &Symbol) -> Stmt {
        rewrite::run(body, &|e| {
            let ExprKind::Load(t, at) = e.kind() else { return None };
            let driven = cursors.iter().any(|c| is_driven(t, at, &c.fibre, &c.above, iter));
            driven.then(|| {
                let tensor = &self.tensors[&self.fibres[t].0].tensor;
                tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype))
            })
        })
    }

    /// Refuses accesses that no loop around drives.
    fn refuse_rest(&mut self, e: &Expr, span: Span) {
        let mut left: Vec<(Symbol, usize)> = Vec::new();
        e.walk(&mut |e| {
            if let ExprKind::Load(t, _) = e.kind()
                && let Some(found) = self.fibres.get(t)
                && !left.contains(found)
            {
                left.push(found.clone());
            }
        });
        for (tensor, k) in left {
            let level = &self.tensors[&tensor].levels[k];
            let text = format!(
                "no loop traverses `{tensor}` here: its level {k}, `{}`, stores dimension {}, and the index there is not the \
                 iterator of a loop over the whole dimension, inside of the loops that the levels above need",
                level.level, level.dimension
            );
            self.refuse_at(span, text);
        }
    }

    fn refuse(&mut self, s: &Stmt, span: Span, what: String) -> Stmt {
        self.refuse_at(span, format!("{what}, which cannot be compiled yet"));
        s.clone()
    }

    fn refuse_at(&mut self, span: Span, text: String) {
        if self.found.iter().all(|d| d.message != text) {
            self.found
                .push(Diagnostic::new("lower::unsupported", text).at(span).help("run it with `--backend interp`"));
        }
    }
}

/// The first statement that does something: what keeps a loop over everything alive.
fn first_effect(s: &Stmt) -> Option<Stmt> {
    let mut first = None;
    s.walk(&mut |s| {
        let does = matches!(
            s.kind(),
            StmtKind::Store { .. }
                | StmtKind::ReduceTo { .. }
                | StmtKind::Assert { .. }
                | StmtKind::Print { .. }
                | StmtKind::Eval { .. }
        );
        if does && first.is_none() {
            first = Some(s.clone());
        }
    });
    first
}

/// Whether an access is one that a loop drives: to that fibre, at that position and the loop's coordinate.
fn is_driven(t: &Symbol, at: &[Access], fibre: &Symbol, above: &Expr, iter: &Symbol) -> bool {
    t == fibre && at[0].index == *above && is_iterator_of(&at[1].index, iter)
}

fn is_iterator_of(e: &Expr, iter: &Symbol) -> bool {
    matches!(e.kind(), ExprKind::Var(s) if s == iter)
}

/// Whether an index is the iterator of a loop around that stays in the range of the dimension: the position that is
/// computed of it is that of its coordinate then.
fn is_coordinate(index: &Expr, size: &Expr, bound: &Scope) -> bool {
    let ExprKind::Var(s) = index.kind() else { return false };
    let Some(Some([begin, end])) = bound.get(s) else { return false };
    begin.as_int().is_some_and(|b| b >= 0) && end == size
}

/// The range of a loop that counts one by one.
fn range(extent: &Extent) -> Option<[Expr; 2]> {
    match extent {
        Extent::Range { begin, end, step } if step.as_int() == Some(1) => Some([begin.clone(), end.clone()]),
        _ => None,
    }
}

/// Whether an expression mentions nothing but what is bound.
fn known(e: &Expr, bound: &Scope) -> bool {
    let mut known = true;
    e.walk(&mut |e| {
        if let ExprKind::Var(s) = e.kind() {
            known &= bound.contains_key(s);
        }
    });
    known
}
