//! A program in sections, each of which is lowered alone as it is in the whole. While steps of a schedule change one
//! loop nest after the other, it is asked again and again how a program is lowered: so it is asked about what changed.
//!
//! A section is some of the statements at the top of the program, in their order. Those are together that share what
//! lowering follows from one statement to the next: scalars, which may be of the fill, structured tensors that the
//! program declares or writes, and elements of which the top says what integer they are. A scalar that is set to what a
//! structured tensor stores, or does not, has what comes after it in its scope in both cases: that is in its section.
//!
//! What a section declares is declared around the statements that it is declared around in the program: where a branch
//! ends with the scope of a scalar, lowering leaves out what only sets it. What is known of sizes (`assert`, `assume`)
//! is in every section after it. Other local tensors, which may be in several sections, are results there, so that
//! nobody takes them for unread.

use crate::lower::{Structured, lower};
use crate::warnings;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;
use taffeta_analysis::pass::simplify;
use taffeta_analysis::query::effects;
use taffeta_ast::{Diagnostic, Diagnostics, Func, Origin, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// How the loops that a program is lowered to find what its structured tensors store.
#[derive(Clone, Debug, Default)]
pub struct Traversed {
    /// Warnings of loops that visit every coordinate ([`Structured::warnings`]).
    pub scans: Vec<Diagnostic>,
    /// [`Structured::seeks`].
    pub seeks: usize,
    /// [`Structured::disorder`].
    pub disorder: usize,
}

impl From<Structured> for Traversed {
    fn from(s: Structured) -> Traversed {
        Traversed { scans: s.warnings, seeks: s.seeks, disorder: s.disorder }
    }
}

/// How a program is lowered, by its sections; `of` says how one is ([`traversed`] of [`Section::func`], or what is
/// remembered of that).
///
/// # Errors
///
/// Of the first section that cannot be lowered.
pub fn in_sections<E>(func: &Func, mut of: impl FnMut(&Section) -> Result<Traversed, E>) -> Result<Traversed, E> {
    let mut all = Traversed::default();
    for section in sections(func) {
        let here = of(&section)?;
        here.scans.into_iter().for_each(|w| warnings::add(&mut all.scans, w));
        all.seeks += here.seeks;
        all.disorder += here.disorder;
    }
    Ok(Traversed { scans: warnings::settled(all.scans), ..all })
}

/// How a program is lowered, as the pipeline does it.
///
/// # Errors
///
/// Those of [`lower`].
pub fn traversed(func: &Func) -> Result<Traversed, Diagnostics> {
    lower(&simplify::run(func)).map(Traversed::from)
}

/// A section of a program.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its statements: those of the program, the very nodes. There is one at least.
    statements: Vec<Stmt>,
    /// Scalars and structured tensors that it declares, outer ones first.
    own: Vec<Local>,
    /// Other local tensors that it accesses.
    shared: Vec<Arc<Tensor>>,
}

/// A tensor that is declared at the top of a program.
#[derive(Clone, PartialEq, Debug)]
struct Local {
    tensor: Arc<Tensor>,
    /// The statements that it is declared around, by their numbers.
    scope: Range<usize>,
}

/// The sections of a program, in the order of their first statements. What accesses nothing structured is in none.
pub fn sections(func: &Func) -> Vec<Section> {
    let top = Top::new(func);
    joined(&top.others, &|k| top.links(k)).into_iter().filter_map(|here| top.section(here)).collect()
}

/// The top of a program.
#[derive(Default)]
struct Top {
    statements: Vec<Stmt>,
    /// What each statement accesses.
    used: Vec<FxHashSet<Symbol>>,
    locals: Vec<Local>,
    /// The numbers of locals.
    place: FxHashMap<Symbol, usize>,
    /// Structured parameters and results.
    structured: FxHashSet<Symbol>,
    /// Statements that say something of sizes and parameters.
    facts: Vec<usize>,
    /// The other ones.
    others: Vec<usize>,
    /// Tensors that lowering follows from one statement to the next.
    followed: FxHashSet<Symbol>,
    /// Statements that are lowered in all cases of what is stored, and a scalar that tells the cases apart.
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

    /// The statements at the top, and the tensors that are declared around them.
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

    /// [`Top::cases`], none of which overlap.
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

    /// What joins a statement to others.
    fn links(&self, k: usize) -> Vec<&Symbol> {
        let case = self.cases.get(self.cases.partition_point(|(range, _)| range.end <= k));
        let case = case.filter(|(range, _)| range.contains(&k)).map(|(_, t)| t);
        self.used[k].iter().filter(|t| self.followed.contains(*t)).chain(case).collect()
    }

    /// The section of these statements, if they access something structured.
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

/// Whether lowering follows what a local tensor is from one statement to the next.
fn is_followed(t: &Tensor) -> bool {
    t.shape.is_empty() || !t.format.is_dense()
}

/// The numbers of these statements in groups: two that share one of what `links` gives are in one.
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
    /// Its last statement, whose id stays when it changes.
    pub fn last(&self) -> StmtId {
        let Some(last) = self.statements.last() else { unreachable!("a section has a statement") };
        last.id()
    }

    /// Whether both have the same nodes, and local tensors that are stored in the same way and declared around the same
    /// statements.
    pub fn is_same(&self, other: &Section) -> bool {
        self.statements.len() == other.statements.len()
            && self.statements.iter().zip(&other.statements).all(|(a, b)| a.same_node(b))
            && (&self.own, &self.shared) == (&other.own, &other.shared)
    }

    /// The section as a program.
    pub fn func(&self, of: &Func) -> Func {
        let body = self.nested(0..self.statements.len(), &self.own, of.body.origin());
        let results = of.results.iter().chain(&self.shared).cloned().collect();
        Func { results, ..of.with_body(body) }
    }

    /// These statements with the declarations of these locals, which stand in them.
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

/// What a statement accesses, and what loops in it reduce into.
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
