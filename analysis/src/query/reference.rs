//! Every read and write of a tensor that stands in a program, with the way from the root to it: loops, branches, blocks
//! and declarations. What the dependence analysis starts from.

pub use super::path::Path;
use crate::tree;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind, Extent, Func, Literal, ReduceOp, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// What a reference does to the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    /// Its value is needed.
    Read,
    /// It is replaced.
    Write,
    /// It is combined with a value. Two reductions by one operator commute.
    Reduce(ReduceOp),
}

impl Use {
    /// Whether the element may be another one afterwards.
    pub fn writes(self) -> bool {
        self != Use::Read
    }
}

/// One step on the way from the root of a program to a statement.
#[derive(Clone, Debug)]
pub enum Step {
    /// Into a statement of a sequence. The assertions before it were passed.
    Child {
        /// The sequence.
        seq: Stmt,
        /// Which of its statements.
        position: usize,
        /// Whether there is an assertion among those before it.
        asserted: bool,
    },
    /// Into the scope of a declaration.
    Scope {
        /// The declaration.
        stmt: Stmt,
        /// What it declares.
        tensor: Arc<Tensor>,
    },
    /// Into the body of a loop (also of a `while`, which has an iterator that nobody sees).
    Loop {
        /// The loop.
        stmt: Stmt,
        /// Its iterator.
        iter: Symbol,
        /// Its bounds; `None` where the order and number of iterations are unknown.
        bounds: Option<[Expr; 3]>,
    },
    /// Into a branch.
    Branch {
        /// The `if`.
        stmt: Stmt,
        /// Its condition.
        cond: Expr,
        /// Into the first branch.
        then: bool,
    },
}

impl Step {
    /// The statement that the step leads into.
    pub fn stmt(&self) -> &Stmt {
        match self {
            Step::Child { seq: stmt, .. }
            | Step::Scope { stmt, .. }
            | Step::Loop { stmt, .. }
            | Step::Branch { stmt, .. } => stmt,
        }
    }

    /// What is evaluated on the way into it: bounds, conditions, shapes, and the assertions before.
    pub(super) fn evaluated(&self) -> Vec<&Expr> {
        match self {
            Step::Loop { bounds: Some(b), .. } => b.iter().collect(),
            Step::Branch { cond, .. } => vec![cond],
            // What is said about indices uses shapes as they were at the declaration.
            Step::Scope { tensor, .. } => tensor.shape.iter().collect(),
            Step::Child { seq, position, asserted: true } => match seq.kind() {
                StmtKind::Seq(all) => asserted(&all[..*position]).map(|(_, cond)| cond).collect(),
                _ => Vec::new(),
            },
            Step::Child { .. } | Step::Loop { bounds: None, .. } => Vec::new(),
        }
    }

    /// Whether both lead to the same place.
    pub fn same(&self, other: &Step) -> bool {
        self.stmt().id() == other.stmt().id()
            && match (self, other) {
                (Step::Child { position: a, .. }, Step::Child { position: b, .. }) => a == b,
                (Step::Branch { then: a, .. }, Step::Branch { then: b, .. }) => a == b,
                _ => true,
            }
    }
}

/// The assertions among some statements, with their places.
pub(super) fn asserted(all: &[Stmt]) -> impl Iterator<Item = (usize, &Expr)> {
    all.iter().enumerate().filter_map(|(k, s)| match s.kind() {
        StmtKind::Assert { cond, .. } | StmtKind::Assume { cond } => Some((k, cond)),
        _ => None,
    })
}

/// A statement with the way to it.
#[derive(Debug)]
pub struct Site {
    /// The statement that the reference stands in. For a bound of a loop or a condition this is the loop or the `if`.
    pub stmt: Stmt,
    /// From the root to it; for the condition of a `while`, into its loop.
    pub path: Path,
    /// The same number for statements that follow each other with nothing but statements between them: the same loops
    /// and conditions are around them, the same assertions were passed, and any other one is before or after all.
    pub(super) run: usize,
    /// The same number where the same loops are around.
    pub(super) nest: usize,
}

impl Site {
    /// The loops around the statement, outermost first.
    pub fn loops(&self) -> impl Iterator<Item = (&Stmt, &Symbol)> {
        self.path.loops()
    }

    /// Whether the statement is, or stands inside, the one with this id.
    pub fn inside(&self, id: StmtId) -> bool {
        self.stmt.id() == id || self.path.is_through(id)
    }

    /// Whether the statement is, or stands inside, the loop with this id.
    pub fn in_loop(&self, id: StmtId) -> bool {
        self.stmt.id() == id || self.path.is_in_loop(id)
    }

    /// How many steps this way has in common with another one.
    pub fn common(&self, other: &Site) -> usize {
        self.path.fork(&other.path).0
    }

    /// Whether this statement runs before the other one where all loops around both are in the same iteration. Two
    /// branches of one `if` never run in the same iteration; what stands in one statement is ordered by that statement
    /// alone.
    pub fn before(&self, other: &Site) -> bool {
        match self.path.fork(&other.path).1 {
            [Some(Step::Child { position: a, .. }), Some(Step::Child { position: b, .. })] => a < b,
            // Bounds and conditions are evaluated before what is inside.
            [None, Some(_)] => true,
            // The condition of a `while` stands in its loop, beside the body.
            [None, None] => self.stmt.id() != other.stmt.id() && matches!(self.stmt.kind(), StmtKind::While { .. }),
            _ => false,
        }
    }
}

/// A read or write of a tensor.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Where it stands.
    pub site: Arc<Site>,
    /// The tensor.
    pub tensor: Symbol,
    /// What is done to the element.
    pub kind: Use,
    /// Which element; `None` if it may be any of them (an outside function, a print of a tensor).
    pub indices: Option<Vec<Expr>>,
    /// Conditions under which the element is touched, within the statement: `x[i - 1] if i > 0 else 0`.
    pub guards: Vec<(Expr, bool)>,
    /// The declaration.
    pub declared: Arc<Tensor>,
    /// Whether it is a reduction that does not commute with others ([`Func::keeps_order`]).
    pub ordered: bool,
    /// How many steps of the way lead into its scope.
    pub(super) scope: usize,
    /// Its place among all references of the program.
    pub(super) place: usize,
    /// The same number for references of one run to one element, which do the same: no question tells them apart but
    /// for which one comes first.
    pub(super) class: usize,
    /// The same number for references in one nest of loops to one element, whatever the conditions are.
    pub(super) broad: usize,
}

impl Reference {
    /// Whether both are reductions by one operator, whose order is nobody's.
    pub fn commutes(&self, other: &Reference) -> bool {
        matches!((self.kind, other.kind), (Use::Reduce(a), Use::Reduce(b)) if a == b) && !self.ordered
    }

    /// Whether both stand in one statement.
    pub(super) fn beside(&self, other: &Reference) -> bool {
        Arc::ptr_eq(&self.site, &other.site)
    }

    /// Whether both are one reference of a program.
    pub fn is(&self, other: &Reference) -> bool {
        self.place == other.place
    }

    /// The constant that is stored, if one value of the tensor stands for several elements: which of several stores of it
    /// comes last is all the same. (Such tensors are set to a constant by loops over all of their elements.)
    pub(super) fn constant(&self) -> Option<Literal> {
        match self.site.stmt.kind() {
            StmtKind::Store { value, .. } if self.kind == Use::Write && !self.declared.format.is_injective() => {
                value.as_literal()
            }
            _ => None,
        }
    }

    /// How many steps of the way lead into the scope of the tensor; 0 if none does.
    pub fn scope(&self) -> usize {
        self.scope
    }
}

/// All references of a program, in the order of its text; in a statement, reads come before writes.
pub fn references(func: &Func) -> Vec<Reference> {
    collect(func, None)
}

/// Those in some statements and inside of them alone.
pub(super) fn inside(func: &Func, parts: &[StmtId]) -> Vec<Reference> {
    let ways = parts.iter().flat_map(|id| tree::path(&func.body, *id).unwrap_or_default());
    let way = ways.map(|s| s.id()).collect();
    collect(func, Some(Ways { parts: parts.iter().copied().collect(), way }))
}

fn collect(func: &Func, ways: Option<Ways>) -> Vec<Reference> {
    let tensors = func.interface().map(|t| (t.symbol.clone(), (t.clone(), 0))).collect();
    let (path, out, keeps_order) = (Path::default(), Vec::new(), func.keeps_order);
    let mut c = Collector { path, tensors, out, run: 0, nest: 0, numbers: 0, ways, keeps_order };
    c.stmt(&func.body);
    number(&mut c.out);
    c.out
}

/// Gives references their places, and the same numbers where they are alike.
fn number(all: &mut [Reference]) {
    let (mut classes, mut broad) = (FxHashMap::default(), FxHashMap::default());
    for (place, r) in all.iter_mut().enumerate() {
        let element = (r.tensor.clone(), r.kind, r.indices.clone(), r.constant());
        let (next, next_broad) = (classes.len(), broad.len());
        r.place = place;
        r.class = *classes.entry((r.site.run, element.clone(), r.guards.clone())).or_insert(next);
        r.broad = *broad.entry((r.site.nest, element)).or_insert(next_broad);
    }
}

/// Statements that references are collected in, and all that is on the way to them.
struct Ways {
    parts: FxHashSet<StmtId>,
    way: FxHashSet<StmtId>,
}

struct Collector {
    path: Path,
    /// The tensors that are alive, with how many steps lead into the scope of each.
    tensors: FxHashMap<Symbol, (Arc<Tensor>, usize)>,
    out: Vec<Reference>,
    /// Those of the present [`Site`], and how many numbers were given.
    run: usize,
    nest: usize,
    numbers: usize,
    /// Where references are collected, as long as that was not reached.
    ways: Option<Ways>,
    keeps_order: bool,
}

impl Collector {
    fn stmt(&mut self, s: &Stmt) {
        if self.ways.as_ref().is_none_or(|ways| !ways.parts.contains(&s.id())) {
            return self.parts(s);
        }
        let ways = self.ways.take();
        self.parts(s);
        self.ways = ways;
    }

    fn parts(&mut self, s: &Stmt) {
        if let StmtKind::While { body, .. } = s.kind() {
            // The condition is evaluated in every iteration.
            let step = Step::Loop { stmt: s.clone(), iter: Symbol::new("while"), bounds: None };
            let entered = self.path.then(step);
            let outside = std::mem::replace(&mut self.path, entered);
            self.new_run();
            let nest = std::mem::replace(&mut self.nest, self.run);
            self.direct(s);
            self.new_run();
            if self.leads_to(body) {
                self.stmt(body);
            }
            self.nest = nest;
            self.path = outside;
            return;
        }
        self.direct(s);
        match s.kind() {
            StmtKind::Seq(v) => {
                self.new_run();
                let mut asserted = false;
                for (position, child) in v.iter().enumerate() {
                    let asserts = matches!(child.kind(), StmtKind::Assert { .. } | StmtKind::Assume { .. });
                    // What has statements inside is a run of its own, and an assertion says something from here on.
                    let alone = asserts || has_body(child);
                    if alone {
                        self.new_run();
                    }
                    self.within(Step::Child { seq: s.clone(), position, asserted }, child);
                    asserted |= asserts;
                    if alone {
                        self.new_run();
                    }
                }
            }
            StmtKind::VarDef { tensor, body } => {
                let hidden = self.tensors.insert(tensor.symbol.clone(), (tensor.clone(), self.path.len() + 1));
                self.within(Step::Scope { stmt: s.clone(), tensor: tensor.clone() }, body);
                match hidden {
                    Some(outer) => self.tensors.insert(tensor.symbol.clone(), outer),
                    None => self.tensors.remove(&tensor.symbol),
                };
            }
            StmtKind::For { iter, extent, body, .. } => {
                let bounds = match extent {
                    Extent::Range { begin, end, step } => Some([begin.clone(), end.clone(), step.clone()]),
                    Extent::Reals => None,
                };
                self.within(Step::Loop { stmt: s.clone(), iter: iter.clone(), bounds }, body);
            }
            StmtKind::If { cond, then, otherwise } => {
                let step = |then| Step::Branch { stmt: s.clone(), cond: cond.clone(), then };
                self.within(step(true), then);
                if let Some(o) = otherwise {
                    self.within(step(false), o);
                }
            }
            _ => {}
        }
    }

    /// Whether references are collected somewhere in a statement.
    fn leads_to(&self, s: &Stmt) -> bool {
        self.ways.as_ref().is_none_or(|ways| ways.way.contains(&s.id()))
    }

    fn new_run(&mut self) {
        self.numbers += 1;
        self.run = self.numbers;
    }

    fn within(&mut self, step: Step, inside: &Stmt) {
        if !self.leads_to(inside) {
            return;
        }
        let nest = self.nest;
        if !matches!(step, Step::Child { .. }) {
            self.new_run();
        }
        if matches!(step, Step::Loop { .. }) {
            self.nest = self.run;
        }
        let entered = self.path.then(step);
        let outside = std::mem::replace(&mut self.path, entered);
        self.stmt(inside);
        self.path = outside;
        self.nest = nest;
    }

    /// The references that stand in the statement itself.
    fn direct(&mut self, s: &Stmt) {
        if matches!(s.kind(), StmtKind::Seq(_)) || self.ways.is_some() {
            return;
        }
        let mut loads = Loads { guarded: true, guards: Vec::new(), seen: FxHashSet::default(), found: Vec::new() };
        for e in s.kind().exprs() {
            loads.visit(e);
        }
        let mut seen = FxHashSet::default();
        let mut touched: Vec<Touch> = loads.finish(s);
        touched.retain(|t| seen.insert(t.clone()));
        let mut add = |tensor: &Symbol, kind, indices| touched.push((tensor.clone(), kind, indices, Vec::new()));
        let element = |indices: &[taffeta_ast::Access]| Some(indices.iter().map(|a| a.index.clone()).collect());
        match s.kind() {
            StmtKind::Store { tensor, indices, .. } => add(tensor, Use::Write, element(indices)),
            StmtKind::ReduceTo { tensor, indices, op, .. } => add(tensor, Use::Reduce(*op), element(indices)),
            StmtKind::Eval { args, .. } => {
                for t in args {
                    add(t, Use::Read, None);
                    add(t, Use::Write, None);
                }
            }
            kind => kind.printed().into_iter().for_each(|t| add(t, Use::Read, None)),
        }
        touched.retain(|(tensor, ..)| self.tensors.contains_key(tensor));
        if touched.is_empty() {
            return;
        }
        let site = Arc::new(Site { stmt: s.clone(), path: self.path.clone(), run: self.run, nest: self.nest });
        for (tensor, kind, indices, guards) in touched {
            let (site, (declared, scope)) = (site.clone(), self.tensors[&tensor].clone());
            let (place, class, broad) = (0, 0, 0);
            // (`min` and `max` of zeros and NaN give one of them: which one depends on the order.)
            let ordered = self.keeps_order && matches!(kind, Use::Reduce(_)) && declared.dtype.is_float();
            self.out.push(Reference {
                site,
                tensor,
                kind,
                indices,
                guards,
                declared,
                ordered,
                scope,
                place,
                class,
                broad,
            });
        }
    }
}

/// Whether there are statements inside of it.
fn has_body(s: &Stmt) -> bool {
    s.kind().inside().next().is_some()
}

/// Operands under guards that one statement may have; with more of them, guards are left out.
const MOST_VISITS: usize = 4096;

/// A tensor, what is done to which element, and under which conditions.
type Touch = (Symbol, Use, Option<Vec<Expr>>, Vec<(Expr, bool)>);

/// The loads in the expressions of one statement. A shared operand is visited once for each stack of guards over it.
struct Loads {
    guarded: bool,
    guards: Vec<(Expr, bool)>,
    seen: FxHashSet<(usize, Vec<(usize, bool)>)>,
    found: Vec<Touch>,
}

impl Loads {
    fn visit(&mut self, e: &Expr) {
        if e.children().is_empty() && !matches!(e.kind(), ExprKind::Load(..)) {
            return;
        }
        let stack = self.guards.iter().map(|(g, holds)| (g.address(), *holds)).collect();
        if self.seen.len() > MOST_VISITS && self.guarded || !self.seen.insert((e.address(), stack)) {
            return;
        }
        if let ExprKind::Apply(op, args) = e.kind()
            && op.is_lazy()
        {
            self.visit(&args[0]);
            self.branch(&args[0], *op != Op::Or, &args[1]);
            if *op == Op::Select {
                self.branch(&args[0], false, &args[2]);
            }
            return;
        }
        for c in e.children() {
            self.visit(c);
        }
        if let ExprKind::Load(t, indices) = e.kind() {
            let indices = indices.iter().map(|a| a.index.clone()).collect();
            self.found.push((t.clone(), Use::Read, Some(indices), self.guards.clone()));
        }
    }

    fn branch(&mut self, cond: &Expr, holds: bool, e: &Expr) {
        if !self.guarded {
            return self.visit(e);
        }
        self.guards.push((cond.clone(), holds));
        self.visit(e);
        self.guards.pop();
    }

    /// What was found; where there was too much of it, found again without guards.
    fn finish(self, s: &Stmt) -> Vec<Touch> {
        if self.seen.len() <= MOST_VISITS {
            return self.found;
        }
        let mut all = Loads { guarded: false, guards: Vec::new(), seen: FxHashSet::default(), found: Vec::new() };
        for e in s.kind().exprs() {
            all.visit(e);
        }
        all.found
    }
}
