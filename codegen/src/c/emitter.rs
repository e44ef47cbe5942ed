//! State of printing one program, and error exits.
//!
//! The modules `expr`, `stmt`, `loops`, `regions`, `lanes`, `library`, `outline`, `reduce` and `entry` print, each with
//! an `impl` of its own.
//!
//! An error exits by `return` where no resource is held, by `goto` to the end of the scope of a heap tensor (which
//! frees it and continues the exit), and from an iteration of a parallel loop by `goto` to its end, where the status in
//! the context informs the other threads and, after the loop, the function.

use super::helpers::Helpers;
use super::names::Names;
use super::ranges::Ranges;
use super::resizable::Resizable;
use super::writer::{Writer, format_text, string};
use crate::lower::Lowered;
use crate::signature::{Site, SourceRange};
use indexmap::IndexSet;
use rustc_hash::FxHashMap;
use taffeta_analysis::query::effects;
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{Access, DType, Expr, Origin, ReduceOp, SourceMap, Stmt, Symbol};

/// C form of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// Scalar in a variable.
    Variable,
    /// Scalar behind a pointer.
    Pointer,
    /// Array, or pointer to the first element.
    Array,
}

/// Exit from the current position on an error.
#[derive(Clone, Debug)]
pub(super) enum ErrorExit {
    /// `return` with the status.
    Return,
    /// `return` from the function of a parallel loop's body.
    Stop,
    /// `goto` the label.
    Goto(String),
}

/// A loop over integers.
pub(super) struct Loop<'s> {
    pub iter: &'s Symbol,
    /// Begin, end, step.
    pub bounds: [&'s Expr; 3],
    pub props: &'s LoopProps,
    pub body: &'s Stmt,
}

/// A variable of the kernel, as parameter of an outlined body.
#[derive(Clone, Debug)]
pub(super) struct KernelVariable {
    /// C declaration, `const float *restrict x`.
    pub declaration: String,
    /// Type of a scalar that may be assigned.
    pub changes: Option<String>,
}

impl KernelVariable {
    /// Makes a variable that bodies never assign: a pointer, an iterator, a size.
    pub fn value(declaration: String) -> KernelVariable {
        KernelVariable { declaration, changes: None }
    }

    pub fn scalar(declaration: String, name: &str) -> KernelVariable {
        let of_type = declaration.trim_end_matches(name).trim_end().to_string();
        KernelVariable { declaration, changes: Some(of_type) }
    }
}

/// Protection of a reduction in the parallel loop around it.
#[derive(Clone, Debug)]
pub(super) enum Shared {
    /// Update of the thread's own copy of the array, with the copy's name.
    Copy(String),
    /// Atomic update.
    Atomic,
}

/// The region being printed.
#[derive(Clone, Debug)]
pub(super) struct Region {
    /// Iterator of the region's loop.
    pub iter: String,
    /// Variable of the region.
    pub name: String,
    /// Variable with the number of barriers passed.
    pub meetings: String,
    /// Label at the end of the region.
    pub end: String,
}

/// State of printing one program.
pub(super) struct Emitter<'a> {
    pub lowered: &'a Lowered,
    pub sources: &'a SourceMap,
    pub names: Names,
    pub helpers: Helpers,
    pub ranges: Ranges,
    pub out: Writer,
    pub sites: IndexSet<Site>,
    /// Whether there are matrix products.
    pub products: bool,
    /// C form of each declared tensor, and number of loops around its declaration.
    places: FxHashMap<Symbol, (Storage, usize)>,
    pub dtypes: FxHashMap<Symbol, DType>,
    /// Number of elements of each array.
    pub counts: FxHashMap<Symbol, Expr>,
    /// Protection of each concurrent reduction in the current parallel loop.
    pub shared: FxHashMap<(Symbol, ReduceOp), Shared>,
    /// Plan members with the offsets of tensors in the arena.
    pub offsets: FxHashMap<Symbol, String>,
    /// Arguments that get the arrays made for the caller.
    pub made: FxHashMap<Symbol, String>,
    /// Arrays around the current statement whose length may change.
    pub arrays: FxHashMap<Symbol, Resizable>,
    pub error_exit: ErrorExit,
    /// Number of error exits printed for the current `error_exit`.
    pub leaves: usize,
    /// Source-line comment printed last.
    pub shown: String,
    /// Whether the current loop is vectorised.
    pub vectorised: bool,
    /// Region whose direct child is being printed.
    pub region: Option<Region>,
    /// Iterators of the surrounding loops.
    pub loops: Vec<Symbol>,
    /// Whether the current statement updates the same element in every iteration of the innermost loop; C compilers do
    /// not vectorise such a loop.
    pub carried: bool,
    /// Variables of the kernel, by name.
    pub scope: FxHashMap<String, KernelVariable>,
    /// Functions of the bodies of parallel loops.
    pub functions: Vec<String>,
}

impl<'a> Emitter<'a> {
    pub fn new(lowered: &'a Lowered, sources: &'a SourceMap) -> Emitter<'a> {
        Emitter {
            lowered,
            sources,
            names: Names::default(),
            helpers: Helpers::default(),
            ranges: Ranges::default(),
            out: Writer::default(),
            sites: IndexSet::new(),
            products: false,
            places: FxHashMap::default(),
            dtypes: FxHashMap::default(),
            counts: FxHashMap::default(),
            shared: FxHashMap::default(),
            offsets: FxHashMap::default(),
            made: FxHashMap::default(),
            arrays: FxHashMap::default(),
            error_exit: ErrorExit::Return,
            leaves: 0,
            shown: String::new(),
            vectorised: false,
            region: None,
            loops: Vec::new(),
            carried: false,
            scope: FxHashMap::default(),
            functions: Vec::new(),
        }
    }

    /// Records the C form of a tensor's elements, and the number of loops around its declaration.
    pub fn declare(&mut self, tensor: &Symbol, place: Storage) {
        self.places.insert(tensor.clone(), (place, self.loops.len()));
    }

    /// Returns whether the element is the same in every iteration of the innermost loop, which is not vectorised and
    /// does not declare the tensor.
    pub fn is_carried(&self, tensor: &Symbol, indices: &[Access]) -> bool {
        let outside = self.places.get(tensor).is_some_and(|(_, loops)| *loops < self.loops.len());
        let iter = self.loops.last();
        !self.vectorised && outside && indices.iter().all(|a| iter.is_some_and(|i| !effects::mentions(&a.index, &[i])))
    }

    pub fn place(&self, tensor: &Symbol) -> Storage {
        match self.places.get(tensor) {
            Some((place, _)) => *place,
            None => unreachable!("Scope: `{tensor}` is not declared"),
        }
    }

    /// Returns the plan member with the offset of a tensor in the arena.
    pub fn offset(&self, tensor: &Symbol) -> String {
        match self.offsets.get(tensor) {
            Some(member) => member.clone(),
            None => unreachable!("Placed: `{tensor}` has no place in the arena"),
        }
    }

    /// Records an error and exits.
    pub fn fail(&mut self, origin: &Origin, status: &str, format: &str, values: &[String]) {
        let (site, line) = self.site(origin);
        let place = self.location(origin);
        let whole = if place.is_empty() { format.to_string() } else { format!("{}: {format}", format_text(&place)) };
        let values: String = values.iter().map(|v| format!(", {v}")).collect();
        let call = format!("taf_fail(ctx, {status}, {site}, {line}, {}{values})", string(&whole));
        match self.error_exit.clone() {
            ErrorExit::Return => self.out.line(format!("return {call};")),
            ErrorExit::Stop => {
                self.leaves += 1;
                self.out.line(format!("{call};"));
                self.out.line("return;");
            }
            ErrorExit::Goto(label) => {
                self.leaves += 1;
                self.out.line(format!("{call};"));
                self.out.line(format!("goto {label};"));
            }
        }
    }

    /// Exits if the caller has cancelled the call, where a condition says to look.
    pub fn poll(&mut self, cond: &str) {
        if matches!(self.error_exit, ErrorExit::Return) {
            return self.out.line(format!("if ({cond}) return taf_cancel(ctx);"));
        }
        self.out.open(format!("if ({cond}) {{"));
        self.out.line("taf_cancel(ctx);");
        self.leave_failed();
        self.out.close("}");
    }

    /// Exits because of an error that is recorded already.
    pub fn leave_failed(&mut self) {
        match self.error_exit.clone() {
            ErrorExit::Return => self.out.line("return ctx->status;"),
            ErrorExit::Stop => {
                self.leaves += 1;
                self.out.line("return;");
            }
            ErrorExit::Goto(label) => {
                self.leaves += 1;
                self.out.line(format!("goto {label};"));
            }
        }
    }

    /// Returns `file:line` of a statement; empty where no user wrote it.
    pub fn location(&self, origin: &Origin) -> String {
        if origin.span().is_none() { String::new() } else { self.sources.locate(origin.span()) }
    }

    /// Returns the index of a source location in the list of sites, and its line.
    pub fn site(&mut self, origin: &Origin) -> (usize, u32) {
        let span = origin.span();
        let name = |file| self.sources.get(file).map_or(String::new(), |f| f.name.clone());
        let line = self.sources.line_col(span).map_or(0, |at| at.line as u32);
        let chain = origin
            .chain()
            .iter()
            .map(|c| {
                let place = SourceRange { file: name(c.span.file), start: c.span.start, end: c.span.end };
                (c.function.clone(), place)
            })
            .collect();
        let site = Site { file: name(span.file), line, start: span.start, end: span.end, chain };
        (self.sites.insert_full(site).0, line)
    }
}
