//! References: all reads and writes of tensors in a program, with the path from the root to each through loops,
//! branches, blocks and declarations. They are the input of the dependence analysis.

pub use super::path::Path;
use crate::tree;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind, Extent, Func, Literal, ReduceOp, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Use of an element by a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    /// Read of the element's value.
    Read,
    /// Replacement of the element.
    Write,
    /// Combination of the element with a value. Two reductions by one operator commute.
    Reduce(ReduceOp),
}

impl Use {
    /// Returns whether the use may change the element.
    pub fn writes(self) -> bool {
        self != Use::Read
    }
}

/// Step on the path from the root of a program to a statement.
#[derive(Clone, Debug)]
pub enum Step {
    /// Child of a sequence. The assertions before it have passed.
    Child {
        /// Sequence.
        seq: Stmt,
        /// Position of the child.
        position: usize,
        /// Whether an assertion precedes the child.
        asserted: bool,
    },
    /// Scope of a declaration.
    Scope {
        /// Declaration.
        stmt: Stmt,
        /// Declared tensor.
        tensor: Arc<Tensor>,
    },
    /// Body of a loop (also of a `while`, with an artificial iterator).
    Loop {
        /// Loop.
        stmt: Stmt,
        /// Iterator.
        iter: Symbol,
        /// Bounds; `None` where the order and number of iterations are unknown.
        bounds: Option<[Expr; 3]>,
    },
    /// Branch.
    Branch {
        /// The `if` statement.
        stmt: Stmt,
        /// Condition.
        cond: Expr,
        /// Whether the path enters the first branch.
        then: bool,
    },
}

impl Step {
    /// Returns the statement that the step enters.
    pub fn stmt(&self) -> &Stmt {
        match self {
            Step::Child { seq: stmt, .. }
            | Step::Scope { stmt, .. }
            | Step::Loop { stmt, .. }
            | Step::Branch { stmt, .. } => stmt,
        }
    }

    /// Returns the expressions that are evaluated on entering the step: bounds, conditions, shapes, and preceding
    /// assertions.
    pub(super) fn evaluated(&self) -> Vec<&Expr> {
        match self {
            Step::Loop { bounds: Some(b), .. } => b.iter().collect(),
            Step::Branch { cond, .. } => vec![cond],
            // Facts about indices refer to shapes at the time of the declaration.
            Step::Scope { tensor, .. } => tensor.shape.iter().collect(),
            Step::Child { seq, position, asserted: true } => match seq.kind() {
                StmtKind::Seq(all) => asserted(&all[..*position]).map(|(_, cond)| cond).collect(),
                _ => Vec::new(),
            },
            Step::Child { .. } | Step::Loop { bounds: None, .. } => Vec::new(),
        }
    }

    /// Returns whether both steps lead to the same place.
    pub fn same(&self, other: &Step) -> bool {
        self.stmt().id() == other.stmt().id()
            && match (self, other) {
                (Step::Child { position: a, .. }, Step::Child { position: b, .. }) => a == b,
                (Step::Branch { then: a, .. }, Step::Branch { then: b, .. }) => a == b,
                _ => true,
            }
    }
}

/// Iterates over the conditions of the assertions among some statements, with their positions.
pub(super) fn asserted(all: &[Stmt]) -> impl Iterator<Item = (usize, &Expr)> {
    all.iter().enumerate().filter_map(|(k, s)| match s.kind() {
        StmtKind::Assert { cond, .. } | StmtKind::Assume { cond } => Some((k, cond)),
        _ => None,
    })
}

/// Statement with its path.
#[derive(Debug)]
pub struct Site {
    /// Statement that contains the reference. For a bound of a loop or a condition, the loop or the `if`.
    pub stmt: Stmt,
    /// Path from the root to the statement; for the condition of a `while`, into its loop.
    pub path: Path,
    /// Number of the statement's straight-line run. The statements of a run follow each other without other control
    /// flow or assertions in between: they share loops, conditions and passed assertions, and any other statement is
    /// before or after the whole run.
    pub(super) run: usize,
    /// Number of the statement's loop nest, equal for statements in the same loops.
    pub(super) nest: usize,
}

impl Site {
    /// Iterates over the loops around the statement, outermost first.
    pub fn loops(&self) -> impl Iterator<Item = (&Stmt, &Symbol)> {
        self.path.loops()
    }

    /// Returns whether the statement is, or is inside, the one with this id.
    pub fn inside(&self, id: StmtId) -> bool {
        self.stmt.id() == id || self.path.is_through(id)
    }

    /// Returns whether the statement is, or is inside, the loop with this id.
    pub fn in_loop(&self, id: StmtId) -> bool {
        self.stmt.id() == id || self.path.is_in_loop(id)
    }

    /// Returns the number of steps that both paths share.
    pub fn common(&self, other: &Site) -> usize {
        self.path.fork(&other.path).0
    }

    /// Returns whether this statement runs before the other one in equal iterations of all common loops. Two branches
    /// of one `if` never run in the same iteration; references in one statement are ordered by that statement alone.
    pub fn before(&self, other: &Site) -> bool {
        match self.path.fork(&other.path).1 {
            [Some(Step::Child { position: a, .. }), Some(Step::Child { position: b, .. })] => a < b,
            // Bounds and conditions are evaluated before the body.
            [None, Some(_)] => true,
            // The condition of a `while` is in its loop, beside the body.
            [None, None] => self.stmt.id() != other.stmt.id() && matches!(self.stmt.kind(), StmtKind::While { .. }),
            _ => false,
        }
    }
}

/// Read or write of a tensor.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Site of the reference.
    pub site: Arc<Site>,
    /// Tensor.
    pub tensor: Symbol,
    /// Use of the element.
    pub kind: Use,
    /// Indices of the element; `None` if it may be any element (an outside function, a print of a tensor).
    pub indices: Option<Vec<Expr>>,
    /// Conditions within the statement under which the element is accessed: `x[i - 1] if i > 0 else 0`.
    pub guards: Vec<(Expr, bool)>,
    /// Declaration.
    pub declared: Arc<Tensor>,
    /// Whether the reference is a reduction that does not commute with others ([`Func::keeps_order`]).
    pub ordered: bool,
    /// Number of steps on the path into the tensor's scope.
    pub(super) scope: usize,
    /// Position among all references of the program.
    pub(super) place: usize,
    /// Number of the reference's class: references of one run with the same use of the same element under the same
    /// guards. Members of a class are equivalent in queries, except for their order.
    pub(super) class: usize,
    /// Number of the reference's broad class: references in one loop nest with the same use of the same element, under
    /// any conditions.
    pub(super) broad: usize,
}

impl Reference {
    /// Returns whether both references are reductions by one operator that may run in any order.
    pub fn commutes(&self, other: &Reference) -> bool {
        matches!((self.kind, other.kind), (Use::Reduce(a), Use::Reduce(b)) if a == b) && !self.ordered
    }

    /// Returns whether both references are in one statement.
    pub(super) fn beside(&self, other: &Reference) -> bool {
        Arc::ptr_eq(&self.site, &other.site)
    }

    /// Returns whether both are the same reference of a program.
    pub fn is(&self, other: &Reference) -> bool {
        self.place == other.place
    }

    /// Returns the stored constant, if one value of the tensor stands for several elements: the order of stores of one
    /// constant does not matter. (Such tensors are initialised to a constant by loops over all of their elements.)
    pub(super) fn constant(&self) -> Option<Literal> {
        match self.site.stmt.kind() {
            StmtKind::Store { value, .. } if self.kind == Use::Write && !self.declared.format.is_injective() => {
                value.as_literal()
            }
            _ => None,
        }
    }

    /// Returns the number of steps on the path into the tensor's scope; 0 if the path enters no such scope.
    pub fn scope(&self) -> usize {
        self.scope
    }
}

/// Returns all references of a program, in program order; in a statement, reads come before writes.
pub fn references(func: &Func) -> Vec<Reference> {
    collect(func, None)
}

/// Returns the references in some statements and their descendants.
pub(super) fn inside(func: &Func, parts: &[StmtId]) -> Vec<Reference> {
    let ways = parts.iter().flat_map(|id| tree::path(&func.body, *id).unwrap_or_default());
    let way = ways.map(|s| s.id()).collect();
    collect(func, Some(CollectionScope { parts: parts.iter().copied().collect(), way }))
}

fn collect(func: &Func, ways: Option<CollectionScope>) -> Vec<Reference> {
    let tensors = func.interface().map(|t| (t.symbol.clone(), (t.clone(), 0))).collect();
    let (path, out, keeps_order) = (Path::default(), Vec::new(), func.keeps_order);
    let mut c = Collector { path, tensors, out, run: 0, nest: 0, numbers: 0, ways, keeps_order };
    c.stmt(&func.body);
    number(&mut c.out);
    c.out
}

/// Numbers references by position, class and broad class.
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

/// Statements in which references are collected, and the statements on the paths to them.
struct CollectionScope {
    parts: FxHashSet<StmtId>,
    way: FxHashSet<StmtId>,
}

struct Collector {
    path: Path,
    /// Live tensors, with the number of steps into the scope of each.
    tensors: FxHashMap<Symbol, (Arc<Tensor>, usize)>,
    out: Vec<Reference>,
    /// Run and nest of the current [`Site`], and the last number given out.
    run: usize,
    nest: usize,
    numbers: usize,
    /// Restriction to some statements, until one of them is entered.
    ways: Option<CollectionScope>,
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
                    // A statement with a body is a run of its own, and an assertion holds from here on.
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

    /// Returns whether references are collected in a statement or below it.
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

    /// Collects the references in the statement itself.
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
            StmtKind::Call { tensors, .. } => {
                for t in tensors {
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
            // `min` and `max` of zeros and NaN return one operand, which depends on the order.
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

/// Returns whether a statement has children.
fn has_body(s: &Stmt) -> bool {
    s.kind().inside().next().is_some()
}

/// Maximum number of operands of one statement, counted once for each stack of guards over them. Beyond the limit,
/// guards are left out.
const MAX_VISITS: usize = 4096;

/// Tensor with the use, the indices and the guards of an access.
type Touch = (Symbol, Use, Option<Vec<Expr>>, Vec<(Expr, bool)>);

/// Collector of the loads in the expressions of one statement. A shared operand is visited once for each stack of
/// guards over it.
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
        if self.seen.len() > MAX_VISITS && self.guarded || !self.seen.insert((e.address(), stack)) {
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

    /// Returns the collected loads; beyond the limit, collects them again without guards.
    fn finish(self, s: &Stmt) -> Vec<Touch> {
        if self.seen.len() <= MAX_VISITS {
            return self.found;
        }
        let mut all = Loads { guarded: false, guards: Vec::new(), seen: FxHashSet::default(), found: Vec::new() };
        for e in s.kind().exprs() {
            all.visit(e);
        }
        all.found
    }
}
