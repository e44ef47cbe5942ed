//! State of lowering, and its diagnostics.

use super::remapping::Pass;
use crate::explain::Explained;
use crate::layout::TensorLevels;
use crate::warnings;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::sync::Arc;
use taffeta_ast::{Diagnostic, Expr, Op, Span, Stmt, StmtId, Symbol, Tensor};

/// Names bound at a program point: sizes and iterators, the latter with their range if the step is 1.
pub(super) type Bindings = FxHashMap<Symbol, Option<[Expr; 2]>>;

/// Loop around the statement being lowered.
#[derive(Clone)]
pub(super) struct EnclosingLoop {
    /// Index of the loop's record.
    pub(super) number: usize,
    /// Fibres, by position, whose role in the loop is recorded.
    pub(super) recorded: Vec<(Symbol, Expr)>,
    /// Whether the loop's trip count is recorded.
    pub(super) trip_count_recorded: bool,
}

/// Rooms that are made, and fibres that are open.
#[derive(Clone, Debug, Default)]
pub(super) struct Reserved {
    /// Counts of positions for which there is room.
    pub(super) counts: Vec<Symbol>,
    /// Tensors, each with a level whose first positions are set.
    pub(super) opened: Vec<(Symbol, usize)>,
}

/// State of lowering.
#[derive(Default)]
pub(super) struct Lower {
    /// Sizes of the program.
    pub(super) sizes: FxHashSet<Symbol>,
    /// Whether floating-point sums keep their order ([`taffeta_ast::Func::keeps_order`]).
    pub(super) strict: bool,
    /// Structured tensors.
    pub(super) tensors: FxHashMap<Symbol, TensorLevels>,
    /// Local tensors before their declaration was given another shape; copies of loop bodies still access them.
    pub(super) replaced: Vec<TensorLevels>,
    /// Tensor of each fibre, and the number of levels above the fibre.
    pub(super) fibres: FxHashMap<Symbol, (Symbol, usize)>,
    /// Statements after which tensors that the program makes are complete.
    pub(super) complete: FxHashMap<StmtId, Vec<Symbol>>,
    /// Tensors that the program makes, each with the level in which elements mark the ends of fibres.
    pub(super) marked: RefCell<FxHashMap<Symbol, usize>>,
    /// Iterators of the loops that collect these ends, with the tensors.
    pub(super) ends: RefCell<FxHashMap<Symbol, Symbol>>,
    /// Lists of the writes of tensors, with the tensor and the operator that combines writes of one element.
    pub(super) collected: FxHashMap<Symbol, (Symbol, Option<Op>)>,
    /// Number of elements for which a tensor has room from its beginning.
    pub(super) totals: FxHashMap<Symbol, Expr>,
    /// Hidden sizes of the parameters.
    pub(super) hidden: FxHashSet<Symbol>,
    /// Counters of remapped formats that are in scalars.
    pub(super) held: FxHashMap<Symbol, Arc<Tensor>>,
    /// Tensors that are written rightly whichever order loops over lists without order have.
    pub(super) any_order: FxHashSet<Symbol>,
    /// Tensors that the program makes, to whose elements writes may come several times.
    pub(super) repeated: FxHashSet<Symbol>,
    /// Workspaces to each of whose elements a write comes at most once.
    pub(super) once: FxHashSet<Symbol>,
    /// Tensors that stand for another one in a pass over its writes.
    pub(super) passes: FxHashMap<Symbol, Pass>,
    /// Room made for the elements that enclosing loops append.
    pub(super) reserved: Reserved,
    /// End of the run that writes append, in the body of a loop over a run.
    pub(super) run_end: Option<Expr>,
    /// Tensors that stand for one of the program in messages, which they do not name, with the dimension for each of
    /// theirs.
    pub(super) stands_for: RefCell<FxHashMap<Symbol, (Symbol, Vec<usize>)>>,
    /// Workspaces whose lists are sorted before loops over them, and their copies.
    pub(super) sorted: RefCell<FxHashSet<Symbol>>,
    /// Workspaces whose lists loops go through as they are, and their copies.
    pub(super) unsorted: RefCell<FxHashSet<Symbol>>,
    /// Results that the program makes: they are declared around the whole body.
    pub(super) made: Vec<Symbol>,
    /// Tensors stored over the pattern of a parameter, with that parameter, in order.
    pub(super) follows: Vec<(Symbol, Symbol)>,
    /// Declarations around the statement being lowered.
    pub(super) declared: Vec<Stmt>,
    /// Memo of whether scalars have a single definition, with the declarations that were examined.
    pub(super) definitions: RefCell<FxHashMap<Symbol, (Stmt, bool)>>,
    /// Scalars with several definitions in the program, and copies of them.
    pub(super) several: RefCell<FxHashSet<Symbol>>,
    /// Scalars that enclosing searches split into two cases, search by search.
    pub(super) carried: Vec<Vec<Symbol>>,
    pub(super) found: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
    pub(super) explained: Vec<Explained>,
    /// Iterators of loops over parts of a range, with the whole range.
    pub(super) parts: FxHashMap<Symbol, [Expr; 2]>,
    /// Indices known to be in range, with the size: they wrap around the end of a dimension, or an enclosing branch
    /// tests them.
    pub(super) wrapped: Vec<[Expr; 2]>,
    /// Number of bodies emitted in the outermost loop, and number of bodies that enclose the statement being lowered.
    pub(super) emitted: usize,
    pub(super) depth: usize,
    /// Whether lists are merged with one predicated body, since a body for each combination would be too many.
    pub(super) predicated: bool,
    /// Loops around the statement being lowered; `None` for loops without structured accesses.
    pub(super) around: Vec<Option<EnclosingLoop>>,
}

impl Lower {
    pub(super) fn warn(&mut self, d: Diagnostic) {
        warnings::add(&mut self.warnings, d);
    }

    pub(super) fn refuse_at(&mut self, span: Span, text: String) {
        self.refuse_with(span, text, "run it with `--backend interp`");
    }

    pub(super) fn refuse_with(&mut self, span: Span, text: String, help: &str) {
        if self.found.iter().all(|d| d.message != text) {
            self.found.push(Diagnostic::new("lower::unsupported", text).at(span).help(help));
        }
    }
}
