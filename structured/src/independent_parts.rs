//! Sections of a program, each of which lowers alone to the loops that it has in the lowered whole. Steps of a schedule
//! change one loop nest after the other and query the lowering after each; with sections, only the changed part is
//! lowered again.
//!
//! A section is a subset of the statements at the top of the program, in their order. Statements belong together if
//! they share state that lowering tracks from one statement to the next: scalars, which may derive from the fill (see
//! `lower`); structured tensors that the program declares or writes; and elements whose integer value is set at the
//! top. A scalar that is set from an element of a structured tensor splits the rest of its scope into a stored and an
//! unstored case, so the rest of the scope is in its section.
//!
//! Declarations in a section enclose the same statements as in the program, since lowering drops the stores to a scalar
//! that nothing in its scope reads. Facts about sizes (`assert`, `assume`) are in every section after them. Other local
//! tensors, which several sections may access, are results of a section, so that they are not taken for dead.

use crate::lower::{Structured, lower};
use crate::warnings;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;
use taffeta_analysis::pass::simplify;
use taffeta_analysis::query::effects;
use taffeta_ast::{Diagnostic, Diagnostics, Func, Origin, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Summary of how lowered loops find the stored elements of structured tensors.
#[derive(Clone, Debug, Default)]
pub struct Traversed {
    /// Warnings of scans and searches ([`Structured::warnings`]).
    pub scans: Vec<Diagnostic>,
    /// Value of [`Structured::seeks`].
    pub seeks: usize,
    /// Value of [`Structured::order_violations`].
    pub order_violations: usize,
}

impl From<Structured> for Traversed {
    fn from(s: Structured) -> Traversed {
        Traversed { scans: s.warnings, seeks: s.seeks, order_violations: s.order_violations }
    }
}

/// Summarises the lowering of a program by its sections; `of` returns the summary of a section ([`traversed`] of
/// [`Section::func`], or a memo of it).
///
/// # Errors
///
/// The error of the first section that cannot be lowered.
pub fn in_sections<E>(func: &Func, mut of: impl FnMut(&Section) -> Result<Traversed, E>) -> Result<Traversed, E> {
    let mut all = Traversed::default();
    for section in sections(func) {
        let here = of(&section)?;
        here.scans.into_iter().for_each(|w| warnings::add(&mut all.scans, w));
        all.seeks += here.seeks;
        all.order_violations += here.order_violations;
    }
    Ok(Traversed { scans: warnings::settled(all.scans), ..all })
}

/// Lowers a program as the pipeline does, and summarises the result.
///
/// # Errors
///
/// The errors of [`lower`].
pub fn traversed(func: &Func) -> Result<Traversed, Diagnostics> {
    lower(&simplify::run(func)).map(Traversed::from)
}

/// Section of a program.
#[derive(Clone, Debug)]
pub struct Section {
    /// Statements of the section, at least one: the same nodes as in the program.
    statements: Vec<Stmt>,
    /// Scalars and structured tensors declared in the section, outer ones first.
    own: Vec<Local>,
    /// Other local tensors that it accesses.
    shared: Vec<Arc<Tensor>>,
}

/// Tensor declared at the top of a program.
#[derive(Clone, PartialEq, Debug)]
struct Local {
    tensor: Arc<Tensor>,
    /// Numbers of the statements in its scope.
    scope: Range<usize>,
}

/// Returns the sections of a program, in the order of their first statements, except those without structured accesses.
pub fn sections(func: &Func) -> Vec<Section> {
    let top = Top::new(func);
    joined(&top.others, &|k| top.links(k)).into_iter().filter_map(|here| top.section(here)).collect()
}

/// Statements at the top of a program.
#[derive(Default)]
struct Top {
    statements: Vec<Stmt>,
    /// Tensors accessed by each statement.
    used: Vec<FxHashSet<Symbol>>,
    locals: Vec<Local>,
    /// Numbers of the locals.
    place: FxHashMap<Symbol, usize>,
    /// Structured parameters and results.
    structured: FxHashSet<Symbol>,
    /// Statements that assert or assume facts about sizes and parameters.
    facts: Vec<usize>,
    /// Remaining statements.
    others: Vec<usize>,
    /// Tensors whose state lowering tracks from one statement to the next.
    followed: FxHashSet<Symbol>,
    /// Ranges of statements that are lowered once per storage case, with a scalar that distinguishes the cases.
    cases: Vec<(Range<usize>, Symbol)>,
}

impl Top {
    fn new(func: &Func) -> Top {
        let mut top = Top::default();
        top.read(&func.body);
        top.used = top.statements.iter().map(used).collect();
        top.place = top.locals.iter().enumerate().map(|(k, l)| (l.tensor.symbol.clone(), k)).collect();
        let interface = func.interface().filter(|t| !t.format.is_dense());
        top.structured = interface.map(|t| t.symbol.clone()).collect();
        let written: FxHashSet<Symbol> = top.statements.iter().flat_map(effects::writes).collect();
        let changes = |t: &Symbol| top.place.contains_key(t) || written.contains(t);
        let says = |k: &usize| matches!(top.statements[*k].kind(), StmtKind::Assert { .. } | StmtKind::Assume { .. });
        let (facts, others): (Vec<usize>, Vec<usize>) =
            (0..top.statements.len()).partition(|k| says(k) && !top.used[*k].iter().any(changes));
        let told = others.iter().flat_map(|k| match top.statements[*k].kind() {
            StmtKind::Store { tensor, value, .. } | StmtKind::ReduceTo { tensor, value, .. } => {
                value.dtype().is_int().then_some(tensor).into_iter().collect()
            }
            _ if says(k) => top.used[*k].iter().collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        let locals = top.locals.iter().filter(|l| is_followed(&l.tensor)).map(|l| &l.tensor.symbol);
        let all = told.chain(&top.structured).filter(|t| changes(t)).chain(locals);
        let followed = all.cloned().collect();
        let cases = top.cases();
        Top { facts, others, followed, cases, ..top }
    }

    /// Collects the statements at the top, and the tensors declared around them.
    fn read(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Seq(all) => all.iter().for_each(|s| self.read(s)),
            StmtKind::VarDef { tensor, body } => {
                let (number, start) = (self.locals.len(), self.statements.len());
                self.locals.push(Local { tensor: tensor.clone(), scope: start..start });
                self.read(body);
                self.locals[number].scope.end = self.statements.len();
            }
            _ => self.statements.push(s.clone()),
        }
    }

    /// Computes [`Top::cases`], which do not overlap.
    fn cases(&self) -> Vec<(Range<usize>, Symbol)> {
        let is_structured = |t: &Symbol| match self.place.get(t) {
            Some(k) => !self.locals[*k].tensor.format.is_dense(),
            None => self.structured.contains(t),
        };
        let mut all: Vec<(Range<usize>, Symbol)> = Vec::new();
        for (k, s) in self.statements.iter().enumerate() {
            let StmtKind::Store { tensor, indices, .. } = s.kind() else { continue };
            let Some(local) = self.place.get(tensor).filter(|_| indices.is_empty()) else { continue };
            if !self.used[k].iter().any(is_structured) {
                continue;
            }
            let end = self.locals[*local].scope.end;
            match all.last_mut() {
                Some((range, _)) if k < range.end => range.end = range.end.max(end),
                _ => all.push((k..end, tensor.clone())),
            }
        }
        all
    }

    /// Returns the tensors by which a statement is linked to others.
    fn links(&self, k: usize) -> Vec<&Symbol> {
        let case = self.cases.get(self.cases.partition_point(|(range, _)| range.end <= k));
        let case = case.filter(|(range, _)| range.contains(&k)).map(|(_, t)| t);
        self.used[k].iter().filter(|t| self.followed.contains(*t)).chain(case).collect()
    }

    /// Builds the section of these statements, if they access a structured tensor.
    fn section(&self, here: Vec<usize>) -> Option<Section> {
        let end = here.last().map_or(0, |k| *k);
        let used = || here.iter().flat_map(|k| &self.used[*k]);
        let mut places: Vec<usize> = used().filter_map(|t| self.place.get(t).copied()).collect();
        places.sort_unstable();
        places.dedup();
        let (own, shared): (Vec<&Local>, Vec<&Local>) =
            places.iter().map(|k| &self.locals[*k]).partition(|l| self.followed.contains(&l.tensor.symbol));
        let is_asked = own.iter().any(|l| !l.tensor.format.is_dense()) || used().any(|t| self.structured.contains(t));
        let mut all: Vec<usize> = self.facts.iter().copied().take_while(|k| *k < end).chain(here).collect();
        all.sort_unstable();
        let before = |end: usize| all.partition_point(|k| *k < end);
        let declared =
            |l: &Local| Local { tensor: l.tensor.clone(), scope: before(l.scope.start)..before(l.scope.end) };
        is_asked.then(|| Section {
            statements: all.iter().map(|k| self.statements[*k].clone()).collect(),
            own: own.into_iter().map(declared).collect(),
            shared: shared.into_iter().map(|l| l.tensor.clone()).collect(),
        })
    }
}

/// Returns whether lowering tracks the state of a local tensor from one statement to the next.
fn is_followed(t: &Tensor) -> bool {
    t.shape.is_empty() || !t.format.is_dense()
}

/// Groups statements, given by their numbers: statements that share a link are in one group.
fn joined<'s>(statements: &[usize], links: &dyn Fn(usize) -> Vec<&'s Symbol>) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of: FxHashMap<&Symbol, usize> = FxHashMap::default();
    for k in statements {
        let linked = links(*k);
        let mut with: Vec<usize> = linked.iter().filter_map(|t| group_of.get(t).copied()).collect();
        with.sort_unstable();
        with.dedup();
        let mut here: Vec<usize> = with.iter().flat_map(|g| std::mem::take(&mut groups[*g])).collect();
        here.push(*k);
        here.sort_unstable();
        let at = with.first().copied().unwrap_or(groups.len());
        if !with.is_empty() {
            group_of.values_mut().for_each(|g| *g = if with.contains(g) { at } else { *g });
            groups[at] = here;
        } else {
            groups.push(here);
        }
        linked.into_iter().for_each(|t| {
            group_of.insert(t, at);
        });
    }
    groups.retain(|g| !g.is_empty());
    groups
}

impl Section {
    /// Returns the id of the last statement; the id stays when the statement changes.
    pub fn last(&self) -> StmtId {
        let Some(last) = self.statements.last() else { unreachable!("a section has a statement") };
        last.id()
    }

    /// Returns whether both sections have the same nodes, and local tensors that are stored in the same way and
    /// declared around the same statements.
    pub fn is_same(&self, other: &Section) -> bool {
        self.statements.len() == other.statements.len()
            && self.statements.iter().zip(&other.statements).all(|(a, b)| a.same_node(b))
            && (&self.own, &self.shared) == (&other.own, &other.shared)
    }

    /// Returns the section as a program.
    pub fn func(&self, of: &Func) -> Func {
        let body = self.nested(0..self.statements.len(), &self.own, of.body.origin());
        let results = of.results.iter().chain(&self.shared).cloned().collect();
        Func { results, ..of.with_body(body) }
    }

    /// Wraps a range of statements in the declarations of these locals.
    fn nested(&self, statements: Range<usize>, mut own: &[Local], origin: &Origin) -> Stmt {
        let (mut all, mut at) = (Vec::new(), statements.start);
        while let Some((Local { tensor, scope }, others)) = own.split_first() {
            all.extend_from_slice(&self.statements[at..scope.start]);
            let (inner, after) = others.split_at(others.partition_point(|l| l.scope.start < scope.end));
            let body = self.nested(scope.clone(), inner, origin);
            all.push(Stmt::new(StmtKind::VarDef { tensor: tensor.clone(), body }, origin.clone()));
            (at, own) = (scope.end, after);
        }
        all.extend_from_slice(&self.statements[at..statements.end]);
        Stmt::seq(all, origin.clone())
    }
}

/// Returns the tensors that a statement accesses, and the targets of the reductions of its loops.
fn used(s: &Stmt) -> FxHashSet<Symbol> {
    let mut all = effects::reads_by_others(s);
    all.extend(effects::writes(s));
    s.walk(&mut |s| {
        if let StmtKind::For { props, .. } = s.kind() {
            all.extend(props.reductions.iter().map(|r| r.tensor.clone()));
        }
    });
    all
}
