//! Lowering of loops over structured tensors to loops over stored elements, from the outside in. A value *derives from
//! the fill* if it is computed from fills and constants alone, or if a fill annihilates the other operands
//! ([`taffeta_analysis::pass::fills`]).
//!
//! - `partition_loops`: partitioning of loops that run beyond a tensor, and `split_selects`: branches for operands under conditions on
//!   indices;
//! - `fill_cases`: case splits on scalars that may derive from the fill, and `scopes`: scopes of scalars extended to their
//!   last use;
//! - `random_access`: random access at coordinates that no loop enumerates;
//! - `shared_pattern`: tensors stored over the pattern of others, and writes into them;
//! - `together`, `blend`: merges with one body, where there would be too many;
//! - `blocks`: loops over dimensions that are stored in blocks; `split_fused_loops`: splitting of loops over pairs;
//! - `balance`: parallel loops whose iterations are distributed by stored elements;
//! - `reversed_loops`: reversed loops over a list;
//! - `bounds_checks`: indices known to be in the tensor, and bounds checks of the others;
//! - `cursor`: the fibres that a loop traverses, and its body once one of them is consumed;
//! - `region`: the table of looplets;
//! - `merge_strategy`, `merge_cost`: choice of the lists that drive a loop, and of the lists looked up at their coordinates;
//! - `record`: the record of each loop;
//! - `hoist_coordinates`: hoisting of coordinates that inner loops use;
//! - `full_blocks`: full blocks apart from those at an edge;
//! - `conditional_access`: operands evaluated under a condition, which become branches if they need a search;
//! - `workspace`: local tensors into which elements are inserted;
//! - `steppers`, `search`, `run_reductions`: loops over positions and merges, searches for positions, and reductions over runs.

mod balance;
mod blend;
mod blocks;
mod bounds_checks;
mod conditional_access;
mod cursor;
mod fill_cases;
mod full_blocks;
mod hoist_coordinates;
mod merge_cost;
mod merge_strategy;
mod partition_loops;
mod random_access;
mod record;
mod region;
mod reversed_loops;
mod run_reductions;
mod scopes;
mod search;
mod shared_pattern;
mod split_fused_loops;
mod split_selects;
mod steppers;
mod together;
mod workspace;

use crate::access;
use crate::explain::{self, Explained};
use crate::layout::{Array, Flat, FlatLevel, Layout, Parameter};
use crate::looplet::{Fibre, Looplet, Phase, Positions};
use crate::warnings;
use cursor::{Cursor, PATH, above, path, shift_of};
use record::Around;
use region::{LoopBuilder, Region};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use taffeta_analysis::pass::{fill_propagation, shared_values};
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::expr::Protocol;
use taffeta_ast::poly::tidy;
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{
    Access, Diagnostic, Diagnostics, Expr, ExprKind, Extent, Func, Op, Param, ParamMode, Span, Stmt, StmtKind, Symbol,
};

/// Program on the arrays of its structured tensors.
#[derive(Clone, Debug)]
pub struct Structured {
    /// Program, whose tensors are dense.
    pub func: Func,
    /// Layout of its parameters.
    pub layout: Layout,
    /// Warnings about loops that visit every coordinate although they traverse a structured tensor, and about elements
    /// that are searched for.
    pub warnings: Vec<Diagnostic>,
    /// Records of the loops that access structured tensors, from the outside in.
    pub explained: Vec<Explained>,
    /// Number of order violations: a level is determined by a loop inside of the loop that determines a level below it,
    /// so elements are traversed in another order than they are stored in.
    pub disorder: usize,
    /// Number of loops that search for coordinates or merge lists; each enclosing counted loop multiplies the weight by
    /// eight.
    pub seeks: usize,
}

/// Lowers a logical program. A dense program is returned unchanged.
///
/// # Errors
///
/// Unsupported storage, and unsupported accesses to structured tensors.
pub fn lower(func: &Func) -> Result<Structured, Diagnostics> {
    if !func.is_structured() {
        return Ok(Structured {
            func: func.clone(),
            layout: Layout::dense(func),
            warnings: Vec::new(),
            explained: Vec::new(),
            disorder: 0,
            seeks: 0,
        });
    }
    // Elements that share a stored value must agree on it, whichever of their stores comes last.
    let func = &shared_values::run(func)?;
    let several = RefCell::new(fill_cases::of_several_values(&func.body));
    let sizes = func.sizes.iter().cloned().collect();
    let mut pass = Lower { sizes, several, strict: func.keeps_order, ..Lower::default() };
    let (params, layout) = pass.interface(func)?;
    let results = pass.followers(func)?;
    let bound = func.sizes.iter().chain(&layout.hidden).map(|s| (s.clone(), None)).collect();
    let pairs = pass.unmerged(&func.body, &mut Context::new(func));
    let mut opened = pass.insertions(&pass.open_accesses(&pairs));
    let remapped = func.interface().any(|t| t.format.is_remapped());
    if remapped {
        opened = pass.simplify_coordinates(&opened, &mut Context::new(func));
    }
    let disorder = pass.disorder(&opened, &mut Vec::new());
    let parted = pass.parted(&scopes::extended(&opened), &bound);
    let chosen = pass.chosen(&parted);
    let body = pass.stmt(&chosen, &bound);
    pass.refuse_lanes(&body);
    if !pass.found.is_empty() {
        return Err(Diagnostics(pass.found));
    }
    let seeks = explain::seeks(&body, 1);
    let body = pass.balanced(&pass.named(&fill_propagation::settled(&body)));
    let sizes = func.sizes.iter().chain(&layout.hidden).cloned().collect();
    let func = Func { params, results, sizes, ..func.with_body(body) };
    let func = func.with_body(pass.with_workspaces(&func));
    let func = match remapped {
        true => func.with_body(full_blocks::full_blocks(&func.body, &mut Context::new(&func))),
        false => func,
    };
    let mut explained: Vec<Explained> = Vec::new();
    pass.explained.into_iter().for_each(|e| explained.extend((!explained.contains(&e)).then_some(e)));
    Ok(Structured { func, layout, warnings: warnings::settled(pass.warnings), explained, disorder, seeks })
}

#[derive(Default)]
struct Lower {
    /// Sizes of the program.
    sizes: FxHashSet<Symbol>,
    /// Whether floating-point sums keep their order ([`Func::keeps_order`]).
    strict: bool,
    /// Structured tensors.
    tensors: FxHashMap<Symbol, Flat>,
    /// Local tensors before their declaration was given another shape; copies of loop bodies still access them.
    replaced: Vec<Flat>,
    /// Tensor of each fibre, and the number of levels above the fibre.
    fibres: FxHashMap<Symbol, (Symbol, usize)>,
    /// Tensors stored over the pattern of a parameter, with that parameter, in order.
    follows: Vec<(Symbol, Symbol)>,
    /// Declarations around the statement being lowered.
    declared: Vec<Stmt>,
    /// Memo of whether scalars have a single definition, with the declarations that were examined.
    definitions: RefCell<FxHashMap<Symbol, (Stmt, bool)>>,
    /// Scalars with several definitions in the program, and copies of them.
    several: RefCell<FxHashSet<Symbol>>,
    /// Scalars that enclosing searches split into two cases, search by search.
    carried: Vec<Vec<Symbol>>,
    found: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    explained: Vec<Explained>,
    /// Iterators of loops over parts of a range, with the whole range.
    parts: FxHashMap<Symbol, [Expr; 2]>,
    /// Indices known to be in range, with the size: they wrap around the end of a dimension, or a branch around tests
    /// them.
    wrapped: Vec<[Expr; 2]>,
    /// Number of bodies emitted in the outermost loop, and number of those around the statement being lowered.
    emitted: usize,
    depth: usize,
    /// Whether lists are merged with one body, since there are too many combinations.
    together: bool,
    /// Loops around the statement being lowered; `None` for loops without structured accesses.
    around: Vec<Option<Around>>,
}

/// Names bound at a program point: sizes and iterators, the latter with their range if the step is 1.
type Bindings = FxHashMap<Symbol, Option<[Expr; 2]>>;

impl Lower {
    /// Builds the parameters of the lowered program.
    fn interface(&mut self, func: &Func) -> Result<(Vec<Param>, Layout), Diagnostics> {
        let (mut params, mut layout) = (Vec::new(), Layout::default());
        for p in &func.params {
            if p.tensor.format.is_dense() {
                params.push(p.clone());
                layout.params.push(Parameter::Dense);
                layout.levels.push(Vec::new());
                continue;
            }
            // A parameter stored over another's pattern shares the index arrays.
            if let Some(values) = self.follow(func, &p.tensor) {
                params.push(Param { tensor: values.clone(), mode: ParamMode::In });
                layout.params.push(Parameter::Stored(vec![Array { level: None, name: "val", tensor: values }]));
                layout.levels.push(Vec::new());
                continue;
            }
            let flat = Flat::of(&p.tensor, &mut layout.hidden).map_err(|level| {
                let text = format!("the level `{level}` of `{}` is not supported yet", p.tensor.symbol);
                Diagnostic::new("lower::unsupported", text)
            })?;
            let arrays = flat.arrays();
            params.extend(arrays.iter().map(|a| Param { tensor: a.tensor.clone(), mode: ParamMode::In }));
            layout.params.push(Parameter::Stored(arrays));
            layout.levels.push(flat.layout());
            for (k, fibre) in flat.fibres.iter().enumerate() {
                self.fibres.insert(fibre.clone(), (p.tensor.symbol.clone(), k));
            }
            self.tensors.insert(p.tensor.symbol.clone(), flat);
        }
        Ok((params, layout))
    }

    /// Replaces each access to a structured tensor by one to its outermost fibre: `A[i, j]` with the columns first
    /// becomes `A.fibre0[0, 1, 0, j, i]`. The indices of the program are appended if checks or messages need them
    /// ([`bounds_checks::carries`]).
    fn open_accesses(&self, s: &Stmt) -> Stmt {
        let opened = access::rebuild(s, &mut |e| match e.kind() {
            ExprKind::Load(t, at) => match self.tensors.get(t) {
                Some(flat) => {
                    let indices = flat.levels.iter().map(|l| coordinate(l, at));
                    let own = if bounds_checks::carries(flat) { at.as_slice() } else { &[] };
                    let (root, zero) = (Positions::one(Expr::int(0)), Expr::int(0));
                    let all = path(&root, &zero).chain(indices).chain(own.iter().cloned());
                    Expr::load(&flat.fibres[0], all.collect(), e.dtype())
                }
                None => e,
            },
            _ => e,
        });
        self.shared_values(&opened)
    }

    /// Simplifies coordinates by known facts, which reveals blocks and diagonals in the indices of split or skewed
    /// loops. (Other expressions stay: deciding a condition would change which values derive from the fill.)
    fn simplify_coordinates(&self, s: &Stmt, facts: &mut Context) -> Stmt {
        let own = access::rebuild_here(s, &mut |e| match load(&e) {
            Some((t, at)) if let Some((tensor, k)) = self.fibres.get(t) => {
                let levels = PATH..PATH + self.tensors[tensor].levels.len() - k;
                let one = |(n, a): (usize, &Access)| match levels.contains(&n) {
                    true => Access { index: shorter(&a.index, facts), protocol: a.protocol },
                    false => a.clone(),
                };
                Expr::load(t, at.iter().enumerate().map(one).collect(), e.dtype())
            }
            _ => e,
        });
        let new = walk::map(&own, facts, &mut |s, facts| self.simplify_coordinates(s, facts));
        facts.after(s);
        new
    }

    /// Lowers a statement inside of loops that bind these names.
    fn stmt(&mut self, s: &Stmt, bound: &Bindings) -> Stmt {
        match s.kind() {
            StmtKind::Seq(all) => return self.sequence_of(s, all, bound),
            StmtKind::VarDef { body, .. } => {
                let Some(s) = &self.redeclared(s) else { return self.stmt(body, bound) };
                self.declared.push(s.clone());
                let done = self.declaration(s).map(&mut |s| self.stmt(s, bound), &mut Expr::clone);
                self.declared.pop();
                return done;
            }
            _ => {}
        }
        if let Some(lazy) = self.lazy(s, bound) {
            let Some((located, access, checks)) = self.asked_first(s, &lazy, bound) else {
                let done = self.in_range_or_not(s, &lazy, bound);
                return done.unwrap_or_else(|| self.branched(s, &lazy, bound));
            };
            let done = self.searched(&located, &access, &Expr::bool(true), bound);
            return Stmt::seq(checks.into_iter().chain([done]), s.origin().derive("structured", "checks"));
        }
        if let Some(all) = self.set_everywhere(s) {
            return all;
        }
        let located = self.resolve_positions_here(s, bound);
        let all = self.checks(s, bound);
        let searched = self.unknown(&located, bound);
        let done = match located.kind() {
            _ if let Some((access, _)) = &searched
                && self.is_fresh(access) =>
            {
                self.insert(&located, access, bound)
            }
            _ if let Some((access, does)) = &searched => self.searched(&located, access, does, bound),
            StmtKind::For { iter, extent, props, body } => {
                let mut inside = bound.clone();
                inside.insert(iter.clone(), self.parts.get(iter).cloned().or_else(|| range(extent)));
                self.entered(&located, iter, extent, body, &inside);
                let done = self.lower_loop(&located, iter, extent, props, body, bound);
                self.left();
                done
            }
            _ => {
                let span = located.origin().span();
                access::exprs(&located).iter().for_each(|e| self.refuse_rest(e, span));
                if let Some(t) = located.kind().printed().into_iter().find(|t| self.tensors.contains_key(t)) {
                    self.refuse_at(span, format!("`{t}`, which is structured, cannot be printed whole yet"));
                }
                located.map(&mut |s| self.stmt(s, bound), &mut Expr::clone)
            }
        };
        if all.is_empty() {
            return done;
        }
        Stmt::seq(all.into_iter().chain([done]), s.origin().derive("structured", "checks"))
    }

    fn lower_loop(
        &mut self,
        s: &Stmt,
        iter: &Symbol,
        extent: &Extent,
        props: &LoopProps,
        body: &Stmt,
        bound: &Bindings,
    ) -> Stmt {
        let mut inside = bound.clone();
        inside.insert(iter.clone(), self.parts.get(iter).cloned().or_else(|| range(extent)));
        let plain = |pass: &mut Lower, body: &Stmt| {
            let body = pass.stmt(body, &inside);
            s.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props: props.clone(), body })
        };
        if let Some(done) = self.backwards(s, bound) {
            return done;
        }
        // In loops of another step than 1, coordinates are looked up one by one.
        let Extent::Range { begin, end, step } = extent else { return plain(self, body) };
        if step.as_int() != Some(1) {
            return plain(self, body);
        }
        if let Some(by) = self.block_of(body, (iter, [begin, end]), bound) {
            let blocks = self.in_blocks(s, &by);
            return self.stmt(&blocks, bound);
        }
        self.refuse_races(s, iter, props, body);
        self.refuse_insertions(s, iter, props, body);
        let body = self.resolve_positions(body, &inside);
        // Bounds checks on loop-invariant indices are hoisted, guarded by `begin < end`.
        let checks_of = |pass: &Lower, e: &Expr| pass.checks_of(s, e, &Expr::bool(true), bound);
        let (sure, unsure): (Vec<(Expr, bool)>, _) =
            self.indexed(&body, iter, bound).into_iter().partition(|(_, a)| *a);
        let [sure, unsure] = [sure, unsure].map(|all| all.into_iter().map(|(e, _)| e).collect::<Vec<Expr>>());
        let checks: Vec<Stmt> = sure.iter().flat_map(|e| checks_of(self, e)).collect();
        let asked = !checks.is_empty() || self.needs_nonempty_loop(&body, iter, bound);
        let entered = if asked { begin.less(end) } else { Expr::bool(true) };
        // An access that may not be evaluated is checked in place. It is located before the loop only if its check
        // would pass.
        let inside_of = |check: Stmt| match check.kind() {
            StmtKind::Assert { cond, .. } => Some(cond.clone()),
            _ => None,
        };
        let known = unsure.iter().flat_map(|e| checks_of(self, e)).filter_map(inside_of);
        let known = known.fold(Expr::bool(true), |all, cond| all.and(&cond));
        let props = LoopProps { library: false, ..props.clone() };
        let mut nest =
            LoopBuilder { s, iter: Some(iter), props: props.clone(), inside: inside.clone(), bodies: 0, stands: false };
        let found = [&sure[..], &unsure].concat();
        let Some(mut all) = self.traverse(&mut nest, [begin, end], &body, &found, bound) else {
            return plain(self, &body);
        };
        if known.as_bool() != Some(true) {
            let said = (self.warnings.clone(), self.explained.clone());
            nest.props = props;
            let stops = self.traverse(&mut nest, [begin, end], &body, &sure, bound);
            let stops = stops.unwrap_or_else(|| self.region(&mut nest, Vec::new(), &Region::range(begin, end), body));
            (self.warnings, self.explained) = said;
            all = nest.branch(&known, all, stops);
        }
        let all = nest.block(checks.into_iter().chain([all]));
        nest.branch(&entered, all, Stmt::nop())
    }

    /// Lowers a loop over a range that traverses the fibres in its body, with the accesses `found` located before it;
    /// `None` if there are no fibres.
    fn traverse(
        &mut self,
        nest: &mut LoopBuilder<'_>,
        [begin, end]: [&Expr; 2],
        body: &Stmt,
        found: &[Expr],
        bound: &Bindings,
    ) -> Option<Stmt> {
        let (s, Some(iter)) = (nest.s, nest.iter) else { return None };
        let fits = |e: &Expr| found.contains(e);
        let body = &access::rebuild(body, &mut |e| if fits(&e) { self.locate(e, bound, &|_| true) } else { e });
        let mut cursors = self.cursors(body, iter, [bound, &nest.inside]);
        if cursors.is_empty() {
            return None;
        }
        for d in self.contradictions(body, iter, &cursors) {
            if !self.found.contains(&d) {
                self.found.push(d);
            }
        }
        for c in &mut cursors {
            if !self.is_whole(c, [begin, end]) {
                self.bounded(c, [begin, end]);
            }
        }
        self.visits(body, &cursors);
        let lists = |c: &Cursor| matches!(&c.looplet, Looplet::Stepper(s) if !s.full);
        if cursors.iter().all(lists) {
            self.warn_of_scan(s, (iter, [begin, end]), &cursors, body);
        }
        let whole = cursors.iter().all(|c| self.is_whole(c, [begin, end]));
        let region = Region::Range { begin: begin.clone(), end: end.clone(), last: None, whole };
        if self.depth > 0 || self.together {
            return Some(self.region(nest, cursors, &region, body.clone()));
        }
        Some(self.in_either_way(nest, cursors, &region, body))
    }

    /// Warns about a loop that runs coordinate by coordinate because its body has an effect where none of its cursors
    /// stores an element.
    fn warn_of_scan(&mut self, s: &Stmt, (iter, range): (&Symbol, [&Expr; 2]), cursors: &[Cursor], body: &Stmt) {
        let filled = self.filled(body, cursors);
        let Some(left) =
            first_effect(&filled).filter(|_| run_reductions::summed(&filled, iter, range, self.rules()).is_none())
        else {
            return;
        };
        let name = self.tensor_of(&cursors[0]);
        let text = format!("the loop `{iter}` visits every coordinate, although it traverses `{name}`");
        let d = Diagnostic::warning("structured::scan", text).at(s.origin().span());
        self.warn(d.label(left.origin().span(), "this is done where nothing is stored too"));
    }

    /// Surrounds the looplet of a cursor by the fill if the loop may leave the dimension.
    fn bounded(&self, cursor: &mut Cursor, [begin, end]: [&Expr; 2]) {
        if cursor.inside || self.stays_inside(cursor, [begin, end]) {
            return;
        }
        cursor.within = false;
        // Lists store nothing there anyway.
        if matches!(&cursor.looplet, Looplet::Stepper(s) if !s.full) {
            return;
        }
        let nothing = |end: Option<Expr>| Phase { end, looplet: Looplet::Run(Fibre::Fill) };
        let shift = &cursor.shift;
        let before = cursor.coordinate(begin).as_int().is_none_or(|b| b < 0);
        let before = before.then(|| nothing(Some(Expr::int(0).minus(shift))));
        let inside = Phase { end: Some(self.size(&cursor.fibre).minus(shift)), looplet: cursor.looplet.clone() };
        cursor.looplet = Looplet::Sequence(before.into_iter().chain([inside, nothing(None)]).collect());
    }

    /// Collects the accesses in a loop's body whose outer coordinates are loop-invariant and whose next coordinate is
    /// the loop's, each with whether every iteration evaluates it.
    fn indexed(&self, body: &Stmt, iter: &Symbol, bound: &Bindings) -> Vec<(Expr, bool)> {
        let mut out: Vec<(Expr, bool)> = Vec::new();
        let written = effects::writes(body);
        each_access(body, true, &mut |e, guard, always| {
            let Some((t, at)) = load(e) else { return };
            let next =
                |at: &[Access]| at.get(PATH + 1).is_some_and(|a| shift_of(&a.index, iter, bound, &written).is_some());
            // An index that may stop the program may precede the loop only if the first iteration evaluates it in any
            // case.
            if guard.as_bool() == Some(true)
                && self.is_known(e, bound)
                && next(at)
                && (always || !at[PATH].index.may_fail() && !self.is_remapped(t))
                && !at[..=PATH].iter().any(|a| loads(&a.index, &written))
                && !self.is_made_of(e, &written)
                && !self.is_inner(t)
                && self.position(e).is_some()
            {
                match out.iter_mut().find(|(other, _)| other == e) {
                    Some((_, before)) => *before |= always,
                    None => out.push((e.clone(), always)),
                }
            }
        });
        out
    }

    /// Returns assertions that indices are in range, if positions are computed from them and they are not iterators of
    /// whole loops.
    fn checks(&self, s: &Stmt, bound: &Bindings) -> Vec<Stmt> {
        let mut out = Vec::new();
        for e in access::exprs(s) {
            guarded(&e, &Expr::bool(true), &mut |e, guard| out.extend(self.checks_of(s, e, guard, bound)));
        }
        out
    }

    /// Returns the assertions for one access.
    fn checks_of(&self, s: &Stmt, e: &Expr, guard: &Expr, bound: &Bindings) -> Vec<Stmt> {
        let (mut out, mut e) = (Vec::new(), e.clone());
        while self.is_known(&e, bound)
            && let Some(position) = self.position(&e)
        {
            out.extend(self.range_checks(s, &e, guard, bound));
            e = self.below(&e, position);
        }
        out
    }

    fn rules(&self) -> run_reductions::Rules<'_> {
        run_reductions::Rules { strict: self.strict, fibres: &self.fibres }
    }

    fn warn(&mut self, d: Diagnostic) {
        warnings::add(&mut self.warnings, d);
    }

    /// Locates accesses: consumes each level whose position is computed from bound names and whose indices are known to
    /// be in range.
    fn resolve_positions(&self, s: &Stmt, bound: &Bindings) -> Stmt {
        access::rebuild(s, &mut |e| self.locate(e, bound, &|e| self.is_inside(e, bound)))
    }

    /// Locates the accesses directly in the statement, whether their indices are known to be in range or not.
    fn resolve_positions_here(&self, s: &Stmt, bound: &Bindings) -> Stmt {
        access::rebuild_here(s, &mut |e| self.locate(e, bound, &|_| true))
    }

    /// Consumes the levels of an access as long as its coordinate is known, `fits` accepts the access, and the position
    /// can be computed.
    fn locate(&self, e: Expr, bound: &Bindings, fits: &dyn Fn(&Expr) -> bool) -> Expr {
        let mut e = e;
        while self.is_known(&e, bound)
            && let Some(position) = self.position(&e)
            && fits(&e)
        {
            e = self.below(&e, position);
        }
        e
    }

    /// Returns whether an expression is an access to a fibre at a known position and coordinate: they mention bound
    /// names only, and contain no accesses that must be located first.
    fn is_known(&self, e: &Expr, bound: &Bindings) -> bool {
        let found = |a: &Access| known(&a.index, bound) && !self.is_of_fibres(&a.index);
        load(e).is_some_and(|(t, at)| self.fibres.contains_key(t) && at[..=PATH].iter().all(found))
    }

    /// Returns whether an expression contains accesses to fibres.
    fn is_of_fibres(&self, e: &Expr) -> bool {
        e.any(&mut |e| load(e).is_some_and(|(t, _)| self.fibres.contains_key(t)))
    }

    /// Returns whether a fibre is one of a remapped tensor, whose coordinates do not tell the range of the indices.
    fn is_remapped(&self, fibre: &Symbol) -> bool {
        self.fibres.get(fibre).is_some_and(|(tensor, _)| self.tensors[tensor].tensor.format.is_remapped())
    }

    /// Returns the position of an access, if it is computed from its coordinate alone.
    fn position(&self, e: &Expr) -> Option<Expr> {
        let (t, at) = load(e)?;
        let (tensor, k) = self.fibres.get(t)?;
        let level = &self.tensors[tensor].levels[*k];
        level.kind()?.located(level, &above(at), &at[PATH].index)
    }

    /// Returns the number of coordinates of a fibre's level.
    fn size(&self, fibre: &Symbol) -> &Expr {
        let (tensor, k) = &self.fibres[fibre];
        &self.tensors[tensor].levels[*k].size
    }

    /// Returns the access below a position: to the next fibre, or to the values after the last level.
    fn below(&self, e: &Expr, position: Expr) -> Expr {
        let Some((t, at)) = load(e) else { return e.clone() };
        let (tensor, k) = &self.fibres[t];
        let flat = &self.tensors[tensor];
        match flat.fibres.get(k + 1) {
            Some(below) => {
                let rest = at[PATH + 1..].iter().cloned();
                Expr::load(below, path(&Positions::one(position), &at[PATH].index).chain(rest).collect(), e.dtype())
            }
            None => Expr::load(&flat.values.symbol, vec![position.into()], e.dtype()),
        }
    }

    /// Refuses accesses that no enclosing loop drives.
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
            let stored = match level.dimension() {
                Some(d) => format!("dimension {d}"),
                None => format!("`{}`", level.coord),
            };
            let text = format!(
                "no loop traverses `{tensor}` here: its level {k}, `{}`, stores {stored}, and the index there is not the \
                 iterator of a loop over the whole dimension, inside of the loops that the levels above need",
                level.level
            );
            self.refuse_at(span, text);
        }
    }

    fn refuse_at(&mut self, span: Span, text: String) {
        self.refuse_with(span, text, "run it with `--backend interp`");
    }

    fn refuse_with(&mut self, span: Span, text: String, help: &str) {
        if self.found.iter().all(|d| d.message != text) {
            self.found.push(Diagnostic::new("lower::unsupported", text).at(span).help(help));
        }
    }
}

/// Returns the source location of a statement; a statement assembled by schedule steps has that of its first part.
fn place(s: &Stmt) -> Span {
    match s.origin().span() {
        Span::NONE => s.kind().inside().map(place).find(|span| *span != Span::NONE).unwrap_or(Span::NONE),
        span => span,
    }
}

/// Returns the first statement with an effect, which keeps a loop over every coordinate alive.
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

fn load(e: &Expr) -> Option<(&Symbol, &[Access])> {
    match e.kind() {
        ExprKind::Load(t, at) => Some((t, at)),
        _ => None,
    }
}

/// Simplifies an integer expression bottom-up by known facts.
fn shorter(e: &Expr, facts: &mut Context) -> Expr {
    let inner = match e.kind() {
        ExprKind::Apply(op, _) if !op.is_lazy() => e.map_children(&mut |c| shorter(c, facts)),
        _ => return e.clone(),
    };
    let new = facts.constant(&inner).unwrap_or_else(|| facts.shorten(&inner));
    if facts.may_stop(&inner) { inner } else { new }
}

/// Returns the coordinate that a level stores for an element at these indices. A protocol given for one of the indices
/// applies to it.
fn coordinate(level: &FlatLevel, at: &[Access]) -> Access {
    if let Some(d) = level.dimension() {
        return at[d].clone();
    }
    let indices: Vec<Expr> = at.iter().map(|a| a.index.clone()).collect();
    let Some(index) = level.coord.at(&indices) else { unreachable!("counters are not gone through: `Flat::levels`") };
    let index = tidy(&index.minus(&level.low));
    let said = level.coord.dims().into_iter().map(|d| at[d].protocol).find(|p| *p != Protocol::Default);
    Access { index, protocol: said.unwrap_or(Protocol::Default) }
}

/// Calls `f` on every subexpression, with the condition under which it is evaluated.
fn guarded(e: &Expr, guard: &Expr, f: &mut dyn FnMut(&Expr, &Expr)) {
    let and = |cond: &Expr| if guard.as_bool() == Some(true) { cond.clone() } else { guard.and(cond) };
    match e.kind() {
        ExprKind::Apply(op @ (Op::And | Op::Or | Op::Select), args) => {
            guarded(&args[0], guard, f);
            let holds = |first: bool| and(&if first { args[0].clone() } else { args[0].negate() });
            guarded(&args[1], &holds(*op != Op::Or), f);
            args[2..].iter().for_each(|e| guarded(e, &holds(false), f));
        }
        _ => e.children().into_iter().for_each(|e| guarded(e, guard, f)),
    }
    f(e, guard);
}

/// Calls `f` on every expression of a statement and of nested statements, with the condition under which its statement
/// evaluates it, and whether that statement is always executed.
fn each_access(s: &Stmt, always: bool, f: &mut dyn FnMut(&Expr, &Expr, bool)) {
    for e in access::exprs(s) {
        guarded(&e, &Expr::bool(true), &mut |e, guard| f(e, guard, always));
    }
    let always = always && matches!(s.kind(), StmtKind::Seq(_) | StmtKind::VarDef { .. });
    s.kind().children().into_iter().for_each(|s| each_access(s, always, f));
}

/// Returns the range of a loop with step 1.
fn range(extent: &Extent) -> Option<[Expr; 2]> {
    match extent {
        Extent::Range { begin, end, step } if step.as_int() == Some(1) => Some([begin.clone(), end.clone()]),
        _ => None,
    }
}

/// Returns whether an expression reads one of these tensors.
fn loads(e: &Expr, tensors: &FxHashSet<Symbol>) -> bool {
    e.any(&mut |e| load(e).is_some_and(|(t, _)| tensors.contains(t)))
}

/// Returns whether an expression mentions bound names only.
fn known(e: &Expr, bound: &Bindings) -> bool {
    let mut known = true;
    e.walk(&mut |e| {
        if let ExprKind::Var(s) = e.kind() {
            known &= bound.contains_key(s);
        }
    });
    known
}
