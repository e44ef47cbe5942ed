//! Lowering of loops over structured tensors to loops over stored elements, from the outside in. A value *derives from
//! the fill* if it is computed from fills and constants alone, or if a fill annihilates the other operands
//! ([`taffeta_analysis::pass::fill_propagation`]). `lower` lists the steps with the reason for the place of each.
//!
//! The product of a matrix `A: f64[n, m] @ csr` with a vector, followed through (`taffeta show --stage structured`):
//!
//! ```text
//! for i in range(n):
//!     for j in range(m):
//!         y[i] += A[i, j] * x[j]
//!
//!     open_accesses      A[i, j] is an access to the outermost fibre, at coordinates i and j
//!     lower_loop i       level 0 is dense: `resolve_positions` computes the position from i, no fibre is traversed
//!     lower_loop j       level 1 is compressed: `traverse` makes a cursor, whose looplet is a stepper over positions
//!     region             the stepper alone drives the loop, since the body has no effect on the fill
//!     steppers           the loop over positions, with the coordinate and the value of each
//!     hoist_coordinates  loads a coordinate that several expressions use
//!
//! for i in range(n):
//!     for j.p in range(A_pos1[i], A_pos1[i + 1]):
//!         y[i] += A_val[j.p] * x[A_crd1[j.p]]
//! ```
//!
//! - `partition_loops`: partitioning of loops that run beyond a tensor, and `split_selects`: branches for operands
//!   under conditions on indices;
//! - `fill_cases`: case splits on scalars that may derive from the fill, and `scopes`: scopes of scalars extended to
//!   their last use;
//! - `random_access`: random access at coordinates that no loop enumerates;
//! - `shared_pattern`: tensors stored over the pattern of others, and writes into them;
//! - `predicated_merge`, `blend`: merges with one body, where a body for each combination of stored elements would be
//!   too many;
//! - `blocks`: loops over dimensions that are stored in blocks; `split_fused_loops`: splitting of loops over pairs;
//! - `balance`: parallel loops whose iterations are distributed by stored elements;
//! - `reversed_loops`: reversed loops over a list;
//! - `bounds_checks`: indices known to be in the tensor, and bounds checks of the others;
//! - `positions`: accesses by level, located as soon as a position can be computed;
//! - `traverse`: lowering of one loop, which collects its cursors and hoists checks and lookups;
//! - `cursor`: the fibres that a loop traverses, and its body once one of them is consumed;
//! - `region`: the table of looplets;
//! - `merge_strategy`, `merge_cost`: choice of the lists that drive a loop, and of the lists looked up at their
//!   coordinates;
//! - `record`: the record of each loop;
//! - `hoist_coordinates`: hoisting of coordinates that inner loops use;
//! - `full_blocks`: separation of full blocks from those at an edge;
//! - `conditional_access`: operands evaluated under a condition, which become branches if they need a search;
//! - `workspace`: local tensors into which elements are inserted; `append`: writes to tensors that the program makes,
//!   and `collect`: the elements of such a tensor from a list of its writes;
//! - `steppers`, `search`, `run_reductions`, `run_stores`: loops over positions and merges, searches for positions,
//!   reductions over runs, and runs that are appended;
//! - `state`, `nest`: the state of lowering, and loops under construction; `exprs`, `scalars`: queries and helpers.

mod append;
mod balance;
mod blend;
mod blocks;
mod bounds_checks;
mod collect;
mod conditional_access;
mod cursor;
mod exprs;
mod fill_cases;
mod full_blocks;
mod hoist_coordinates;
mod merge;
mod merge_cost;
mod merge_strategy;
mod nest;
mod partition_loops;
mod passes;
mod positions;
mod predicated_merge;
mod random_access;
mod record;
mod region;
mod remapping;
mod reserve;
mod reversed_loops;
mod run_reductions;
mod run_stores;
mod scalars;
mod scopes;
mod search;
mod shared_pattern;
mod split_fused_loops;
mod split_selects;
mod state;
mod steppers;
mod traverse;
mod workspace;

use crate::access;
use crate::assemble;
use crate::explain::{self, Assembly, Explained};
use crate::layout::{Array, Layout, Parameter, TensorLevels};
use crate::warnings;
use exprs::range;
use random_access::RequiredSearch;
use state::{Bindings, Lower};
use std::cell::RefCell;
use taffeta_analysis::pass::{fill_propagation, shared_values};
use taffeta_analysis::query::Context;
use taffeta_ast::{Diagnostic, Diagnostics, Expr, Func, Param, ParamMode, Stmt, StmtKind, Symbol};

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
    /// Records of the tensors that the program makes.
    pub assembled: Vec<Assembly>,
    /// Number of order violations: a level is determined by a loop inside of the loop that determines a level below it,
    /// so elements are traversed in another order than they are stored in.
    pub order_violations: usize,
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
            assembled: Vec::new(),
            order_violations: 0,
            seeks: 0,
        });
    }
    // First, on elements as the program names them: elements that share a stored value must agree on it, whichever of
    // their stores comes last.
    let func = shared_values::run(func)?;

    // On the logical program too, whose dependences show the order of writes.
    let assembled = assemble::run(&func)?;
    let func = &assembled.func;

    // The interface before any statement: accesses are lowered to its arrays.
    let several = RefCell::new(fill_cases::of_several_values(&func.body));
    let sizes = func.sizes.iter().cloned().collect();
    let mut pass = Lower { sizes, several, strict: func.keeps_order, ..Lower::default() };
    let (params, mut layout) = pass.interface(func)?;
    pass.hidden.extend(layout.hidden.iter().cloned());
    let made = pass.appended(&assembled);
    let results = pass.followers(func)?;
    layout.levels.extend(func.results.iter().map(|t| pass.made_levels(&t.symbol)));
    let bound = func.sizes.iter().chain(&layout.hidden).map(|s| (s.clone(), None)).collect();

    // Before accesses have levels: `ij // m` and `ij % m` are the indices of two dimensions.
    let body = pass.split_fused_loops(&func.body, &mut Context::new(func));

    // From here on accesses name levels, so loops can be matched with the level each of them determines.
    let body = pass.open_accesses(&body);

    // Before loops over a workspace are lowered: its writes are insertions, which drive no loop.
    let body = pass.insertions(&body);
    let mut body = pass.completed(&body);

    // After `open_accesses`, which substitutes indices into remapped coordinates: blocks and diagonals show only in
    // their simplified form.
    let remapped = pass.tensors.values().any(|flat| flat.tensor.format.is_remapped());
    if remapped {
        body = pass.simplify_coordinates(&body, &mut Context::new(func));
    }
    let order_violations = pass.order_violations(&body, &mut Vec::new());

    // Before cases are split: the statements after a scalar in its block are in both cases.
    let body = scopes::extended(&body);

    // Before `split_selects`, which would branch in every iteration on a condition that here becomes the end of a
    // range.
    let body = pass.partition_loops(&body, &bound);

    // Before loops are lowered: whether a value derives from the fill must not depend on the iteration.
    let body = pass.split_selects(&body);

    // The loops themselves, from the outside in, which leaves no access to a structured tensor.
    let body = pass.stmt(&body, &bound);
    pass.refuse_lanes(&body);
    if !pass.found.is_empty() {
        return Err(Diagnostics(pass.found));
    }
    let seeks = explain::search_depth(&body, 1);

    // After all case splits: values that derive from the fill are ordinary constants now.
    let values = |t: &Symbol| pass.tensors.values().any(|flat| flat.values.symbol == *t);
    let body = fill_propagation::settled(&body, &values);

    // After case splits as well, which match coordinates by their expressions.
    let body = pass.hoist_coordinates(&body);

    // Last of the loops: the parts are balanced by the position arrays that the lowered body reads.
    let body = pass.balanced(&body);

    // Around finished loops: the arrays of a workspace are declared outside of as many of them as possible.
    let sizes = func.sizes.iter().chain(&layout.hidden).cloned().collect();
    let func = Func { params, results, made, sizes, ..func.with_body(body) };
    let func = func.with_body(pass.with_workspaces(&func));
    let func = func.with_body(pass.with_made(&func.body));

    // Last, since proving that a block is full needs the range of every iterator.
    let func = match remapped {
        true => func.with_body(full_blocks::full_blocks(&func.body, &mut Context::new(&func))),
        false => func,
    };
    let bounds = pass.bounds();
    let mut explained: Vec<Explained> = Vec::new();
    pass.explained.into_iter().for_each(|e| explained.extend((!explained.contains(&e)).then_some(e)));
    let assembled = assembled.explained.into_iter().map(|a| Assembly { bound: bounds.get(&a.tensor).cloned(), ..a });
    let (warnings, assembled) = (warnings::settled(pass.warnings), assembled.collect());
    Ok(Structured { func, layout, warnings, explained, assembled, order_violations, seeks })
}

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
            let flat = TensorLevels::of(&p.tensor, &mut layout.hidden).map_err(|level| {
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
            let Some(RequiredSearch { located, access, checks }) = self.condition_search(s, &lazy, bound) else {
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
            _ if let Some((access, effect_cond)) = &searched => self.searched(&located, access, effect_cond, bound),
            StmtKind::For { iter, extent, body, .. } => {
                let mut inside = bound.clone();
                inside.insert(iter.clone(), self.parts.get(iter).cloned().or_else(|| range(extent)));
                self.open_record(&located, iter, extent, body, &inside);
                let done = self.lower_loop(&located, bound);
                self.close_record();
                done
            }
            _ => {
                let span = located.origin().span();
                access::exprs(&located).iter().for_each(|e| self.refuse_rest(e, span));
                if let Some(t) = located.kind().printed().into_iter().find(|t| self.tensors.contains_key(t)) {
                    self.refuse_at(span, format!("cannot print the structured tensor `{t}` as a whole yet"));
                }
                located.map(&mut |s| self.stmt(s, bound), &mut Expr::clone)
            }
        };
        if all.is_empty() {
            return done;
        }
        Stmt::seq(all.into_iter().chain([done]), s.origin().derive("structured", "checks"))
    }
}
