//! Facts about the program to differentiate: the loops around each statement, the declarations of tensors, and whether
//! a value that a statement reads is overwritten later. The latter are queries to the dependence analysis, at the
//! precision of instances.

use crate::extent::{self, Ranges};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use taffeta_analysis::query::Context;
use taffeta_analysis::query::depend::{DependenceQuery, Dependences, Relation};
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_ast::func::ParamMode;
use taffeta_ast::selector;
use taffeta_ast::{Access, Expr, ExprKind, Extent, Func, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Loop of the program.
pub(crate) struct LoopFacts {
    pub iter: Symbol,
    pub begin: Expr,
    pub end: Expr,
    pub step: Expr,
    /// Maximum trip count, in sizes; `None` if it is not known before the program runs.
    pub most: Option<Expr>,
    /// Whether begin, end and step are known to be far from the ends of i64.
    pub small: [bool; 3],
}

/// Declaration of a tensor.
pub(crate) struct Declared {
    pub tensor: Arc<Tensor>,
    /// Loops around the declaration, outermost first.
    pub loops: Vec<StmtId>,
}

/// Value that a statement accesses, before or after it runs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum AccessedValue {
    /// Element that a load in the statement reads.
    Loaded(Expr),
    /// Element that the statement writes, before the write.
    Target,
    /// Element that the statement writes, after the write.
    Written,
    /// Element that a reduction writes, after all reductions by the same operator are done.
    Reduced,
}

/// Program with its facts.
pub(crate) struct Facts<'f> {
    pub func: &'f Func,
    pub loops: FxHashMap<StmtId, LoopFacts>,
    /// Names of loops in schedules, computed when a message first needs one.
    names: OnceCell<FxHashMap<StmtId, String>>,
    /// Loops around each statement, outermost first.
    pub around: FxHashMap<StmtId, Vec<StmtId>>,
    pub stmts: FxHashMap<StmtId, Stmt>,
    /// Statements that write each tensor, in the order of the program.
    writers: FxHashMap<Symbol, Vec<Stmt>>,
    /// Parent of each statement.
    pub parents: FxHashMap<StmtId, StmtId>,
    pub declared: FxHashMap<Symbol, Declared>,
    /// Largest absolute values of iterators, where they are far from the ends of i64.
    magnitudes: FxHashMap<Symbol, Option<i64>>,
    /// Read-only parameters.
    inputs: FxHashSet<Symbol>,
    dependences: Dependences<'f>,
    /// Index of a statement's first reference to a tensor among all to that tensor; the statement's others follow it.
    begin: FxHashMap<(StmtId, Symbol), usize>,
    root: RefCell<Context>,
    answers: RefCell<FxHashMap<(StmtId, AccessedValue), bool>>,
}

impl<'f> Facts<'f> {
    pub fn new(func: &'f Func) -> Facts<'f> {
        let dependences = Dependences::new(func);
        let begin = beginnings(dependences.references());
        let mut facts = Facts {
            func,
            loops: FxHashMap::default(),
            names: OnceCell::new(),
            around: FxHashMap::default(),
            stmts: FxHashMap::default(),
            writers: FxHashMap::default(),
            parents: FxHashMap::default(),
            declared: FxHashMap::default(),
            magnitudes: FxHashMap::default(),
            inputs: func.params.iter().filter(|p| p.mode == ParamMode::In).map(|p| p.tensor.symbol.clone()).collect(),
            dependences,
            begin,
            root: RefCell::new(Context::new(func)),
            answers: RefCell::default(),
        };
        for t in func.interface() {
            let declared = Declared { tensor: t.clone(), loops: Vec::new() };
            facts.declared.insert(t.symbol.clone(), declared);
        }
        facts.collect(&func.body, &mut Vec::new());
        facts
    }

    fn collect(&mut self, s: &Stmt, loops: &mut Vec<StmtId>) {
        self.around.insert(s.id(), loops.clone());
        self.stmts.insert(s.id(), s.clone());
        self.parents.extend(s.kind().children().into_iter().map(|c| (c.id(), s.id())));
        match s.kind() {
            StmtKind::VarDef { tensor, body } => {
                let declared = Declared { tensor: tensor.clone(), loops: loops.clone() };
                self.declared.insert(tensor.symbol.clone(), declared);
                self.collect(body, loops);
            }
            StmtKind::For { iter, extent: Extent::Range { begin, end, step }, body, .. } => {
                let most = extent::most_iterations([begin, end, step], &self.ranges(loops));
                let [low, high, by] = [begin, end, step].map(|e| extent::magnitude(e, &self.magnitudes));
                self.magnitudes.insert(iter.clone(), low.zip(high).map(|(l, h)| l.max(h)));
                let small = [low, high, by].map(|m| m.is_some());
                let (begin, end, step) = (begin.clone(), end.clone(), step.clone());
                let l = LoopFacts { iter: iter.clone(), begin, end, step, most, small };
                self.loops.insert(s.id(), l);
                loops.push(s.id());
                self.collect(body, loops);
                loops.pop();
            }
            StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => {
                self.writers.entry(tensor.clone()).or_default().push(s.clone());
            }
            other => {
                for c in other.children() {
                    self.collect(c, loops);
                }
            }
        }
    }

    /// Returns the name of a loop in schedules.
    pub fn called(&self, l: &StmtId) -> &str {
        &self.names.get_or_init(|| selector::names(self.func))[l]
    }

    /// Returns the ranges of these loops' iterators.
    pub fn ranges(&self, loops: &[StmtId]) -> Ranges<'_> {
        let iters = loops.iter().map(|l| &self.loops[l]).map(|l| (l.iter.clone(), l.range())).collect();
        Ranges { iters, inputs: Some(&self.inputs) }
    }

    /// Returns whether a condition on sizes is proved for every run.
    pub fn holds(&self, cond: &Expr) -> bool {
        self.root.borrow_mut().prove(cond)
    }

    /// Returns the tensor of a value.
    pub fn tensor_of(&self, stmt: StmtId, what: &AccessedValue) -> Symbol {
        let of = |s: &Stmt| match s.kind() {
            StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => Some(tensor.clone()),
            _ => None,
        };
        match what {
            AccessedValue::Loaded(e) => match e.kind() {
                ExprKind::Load(t, _) => t.clone(),
                _ => unreachable!("only loads are values of tensors"),
            },
            AccessedValue::Target | AccessedValue::Written | AccessedValue::Reduced => {
                of(&self.stmts[&stmt]).expect("it writes")
            }
        }
    }

    /// Returns whether the element may be overwritten later, during its tensor's lifetime.
    pub fn overwritten(&self, stmt: StmtId, what: &AccessedValue) -> bool {
        let key = (stmt, what.clone());
        if let Some(known) = self.answers.borrow().get(&key) {
            return *known;
        }
        let tensor = self.tensor_of(stmt, what);
        let source = |r: &Reference| is(r, stmt, what);
        let sink = |r: &Reference| r.kind.writes();
        let later = DependenceQuery {
            source: &source,
            sink: &sink,
            commute: *what == AccessedValue::Reduced,
            ..DependenceQuery::default()
        };
        // The write of a statement to the element that it reads itself follows the read; the dependence query, which is
        // about pairs of statements, does not see it.
        let itself = !matches!(what, AccessedValue::Reduced | AccessedValue::Written)
            && self.own(stmt, &tensor).any(|r| source(r) && self.writes_same(stmt, r));
        let answer = itself || self.depends_near(&tensor, stmt, &later);
        self.answers.borrow_mut().insert(key, answer);
        answer
    }

    /// Returns whether two references to a tensor have a dependence that matches the query.
    fn depends(&self, tensor: &Symbol, ask: &DependenceQuery<'_>) -> bool {
        let references: Vec<&Reference> = self.dependences.of(tensor).collect();
        self.dependences.first_among(&references, ask).is_some()
    }

    /// Answers a query about one statement as [`Facts::depends`] does. A dependence mostly involves the statement
    /// itself or the nearest write before or after it in the text, so that these are tried first.
    fn depends_near(&self, tensor: &Symbol, stmt: StmtId, ask: &DependenceQuery<'_>) -> bool {
        let all = || self.dependences.of(tensor);
        let begin = self.begin(stmt, tensor).unwrap_or(0);
        let end = begin + self.own(stmt, tensor).count();
        let writes = |r: &&Reference| r.kind.writes();
        let before = all().take(begin).rev().find(writes);
        let after = all().skip(end).find(writes);
        let near: Vec<&Reference> = before.into_iter().chain(self.own(stmt, tensor)).chain(after).collect();
        self.dependences.first_among(&near, ask).is_some() || (near.len() < all().len() && self.depends(tensor, ask))
    }

    /// Returns the index of a statement's first reference to a tensor, if there is any.
    fn begin(&self, stmt: StmtId, tensor: &Symbol) -> Option<usize> {
        self.begin.get(&(stmt, tensor.clone())).copied()
    }

    /// Returns the references of a statement to a tensor.
    fn own(&self, stmt: StmtId, tensor: &Symbol) -> impl Iterator<Item = &Reference> {
        let begin = self.begin(stmt, tensor).unwrap_or(usize::MAX);
        self.dependences.of(tensor).skip(begin).take_while(move |r| r.site.stmt.id() == stmt)
    }

    /// Returns whether the statement writes the tensor of one of its own reads.
    fn writes_same(&self, stmt: StmtId, read: &Reference) -> bool {
        match self.stmts[&stmt].kind() {
            StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => *tensor == read.tensor,
            _ => false,
        }
    }

    /// Returns whether the loop `within` may write the element before `stmt`, in the same execution of the loop.
    pub fn written_before(&self, stmt: StmtId, what: &AccessedValue, within: StmtId) -> bool {
        let outside = &self.around[&within];
        let source = |r: &Reference| r.kind.writes() && r.site.in_loop(within);
        let sink = |r: &Reference| is(r, stmt, what);
        let relate = |l: &Stmt| if outside.contains(&l.id()) { Relation::Same } else { Relation::Any };
        let ask = DependenceQuery {
            source: &source,
            sink: &sink,
            relate: &relate,
            commute: false,
            ..DependenceQuery::default()
        };
        self.depends(&self.tensor_of(stmt, what), &ask)
    }

    /// Returns whether an element may be read before all reductions into it are done.
    pub fn read_before_final(&self, stmt: StmtId) -> bool {
        let tensor = self.tensor_of(stmt, &AccessedValue::Target);
        let source = |r: &Reference| r.kind == Use::Read;
        let sink = |r: &Reference| matches!(r.kind, Use::Reduce(_));
        let ask = DependenceQuery { source: &source, sink: &sink, ..DependenceQuery::default() };
        // A reduction that also reads its tensor is not ordered against itself by the query.
        let itself = self.own(stmt, &tensor).any(source);
        itself || self.depends(&tensor, &ask)
    }

    /// Returns whether a statement may overwrite an earlier write to its tensor.
    pub fn overwrites(&self, stmt: StmtId) -> bool {
        let source = |r: &Reference| r.kind.writes();
        let sink = |r: &Reference| r.kind.writes() && r.site.stmt.id() == stmt;
        let ask = DependenceQuery { source: &source, sink: &sink, commute: false, ..DependenceQuery::default() };
        self.depends_near(&self.tensor_of(stmt, &AccessedValue::Target), stmt, &ask)
    }

    /// Returns whether an element may be stored after a read of it or a reduction into it.
    pub fn stored_later(&self, tensor: &Symbol) -> bool {
        let source = |r: &Reference| r.kind != Use::Write;
        let sink = |r: &Reference| r.kind == Use::Write;
        let ask = DependenceQuery { source: &source, sink: &sink, commute: false, ..DependenceQuery::default() };
        self.depends(tensor, &ask)
    }

    /// Returns whether an iteration of a loop may read an element after writing it.
    pub fn read_after(&self, tensor: &Symbol, l: StmtId) -> bool {
        let outside = &self.around[&l];
        let source = |r: &Reference| r.kind.writes() && r.site.in_loop(l);
        let sink = |r: &Reference| r.kind == Use::Read && r.site.in_loop(l);
        let relate = |s: &Stmt| if s.id() == l || outside.contains(&s.id()) { Relation::Same } else { Relation::Any };
        let ask = DependenceQuery {
            source: &source,
            sink: &sink,
            relate: &relate,
            commute: false,
            ..DependenceQuery::default()
        };
        self.depends(tensor, &ask)
    }

    /// Returns the condition under which a statement reads an element, if it does not always.
    pub fn guarded(&self, stmt: StmtId, load: &Expr) -> Option<Expr> {
        if !matches!(load.kind(), ExprKind::Load(..)) {
            return None;
        }
        let what = AccessedValue::Loaded(load.clone());
        let tensor = self.tensor_of(stmt, &what);
        let mut any: Option<Expr> = None;
        for r in self.own(stmt, &tensor).filter(|r| is(r, stmt, &what)) {
            let one = |(g, holds): &(Expr, bool)| if *holds { g.clone() } else { g.negate() };
            let all = r.guards.iter().map(one).reduce(|a, b| a.and(&b))?;
            any = Some(any.map_or(all.clone(), |o| o.or(&all)));
        }
        any
    }

    /// Returns the statements that write the tensor.
    pub fn writers(&self, tensor: &Symbol) -> impl Iterator<Item = &Stmt> + use<'_, 'f> {
        self.writers.get(tensor).into_iter().flatten()
    }
}

impl LoopFacts {
    pub fn range(&self) -> [Expr; 3] {
        [self.begin.clone(), self.end.clone(), self.step.clone()]
    }
}

/// Returns the index of each statement's first reference to each tensor, among all references to that tensor.
fn beginnings(all: &[Reference]) -> FxHashMap<(StmtId, Symbol), usize> {
    let (mut begin, mut counts) = (FxHashMap::default(), FxHashMap::default());
    for r in all {
        let count: &mut usize = counts.entry(&r.tensor).or_default();
        begin.entry((r.site.stmt.id(), r.tensor.clone())).or_insert(*count);
        *count += 1;
    }
    begin
}

/// Returns whether a reference of a statement accesses the value.
fn is(r: &Reference, stmt: StmtId, what: &AccessedValue) -> bool {
    if r.site.stmt.id() != stmt {
        return false;
    }
    match what {
        AccessedValue::Loaded(load) => {
            let ExprKind::Load(_, accesses) = load.kind() else { return false };
            r.kind == Use::Read && r.indices.as_ref().is_none_or(|i| same(i, accesses))
        }
        AccessedValue::Target | AccessedValue::Written | AccessedValue::Reduced => r.kind.writes(),
    }
}

fn same(indices: &[Expr], accesses: &[Access]) -> bool {
    indices.len() == accesses.len() && indices.iter().zip(accesses).all(|(i, a)| *i == a.index)
}
