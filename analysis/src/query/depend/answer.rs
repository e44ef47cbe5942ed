//! Queries of the dependence analysis ([`DependenceQuery`]) and their answers ([`Dependence`], with a [`Witness`]).

use crate::query::instance::{Instance, Relation};
use crate::query::reference::Reference;
use taffeta_ast::{Expr, Stmt, StmtId, Symbol};

/// Order in which the program, as it stands, executes source and sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Source before sink.
    SourceFirst,
    /// Either order: only the relations of the loops are constrained.
    Either,
}

/// Kind of a dependence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DependenceKind {
    /// Flow dependence (RAW): the sink reads a value that the source wrote.
    ReadAfterWrite,
    /// Anti-dependence (WAR): the sink overwrites a value that the source read.
    WriteAfterRead,
    /// Output dependence (WAW): the sink overwrites a value that the source wrote.
    WriteAfterWrite,
}

impl DependenceKind {
    /// Returns the usual abbreviation.
    pub fn short(self) -> &'static str {
        match self {
            DependenceKind::ReadAfterWrite => "RAW",
            DependenceKind::WriteAfterRead => "WAR",
            DependenceKind::WriteAfterWrite => "WAW",
        }
    }
}

/// Conditions on both instances, in addition to the relations of the common loops.
pub type Extra<'a> = dyn Fn(&Iterators<'_>, &Iterators<'_>) -> Vec<Expr> + Sync + 'a;

/// Iterators of an instance.
pub struct Iterators<'a>(pub(in crate::query) &'a Instance);

impl Iterators<'_> {
    /// Returns the value of the loop's iterator, if the loop is around the instance.
    pub fn of(&self, stmt: StmtId) -> Option<Expr> {
        self.0.iterator(stmt).cloned()
    }
}

/// Predicate that selects references of a program.
pub type Which<'a> = &'a (dyn Fn(&Reference) -> bool + Sync);

/// Relation of the sink's iteration to the source's, for a common loop.
pub type Relate<'a> = &'a (dyn Fn(&Stmt) -> Relation + Sync);

/// Query for dependences.
pub struct DependenceQuery<'a> {
    /// References that can be the source.
    pub source: Which<'a>,
    /// References that can be the sink.
    pub sink: Which<'a>,
    /// Relation of the sink's iteration to the source's, for every common loop.
    pub relate: Relate<'a>,
    /// Additional conditions.
    pub extra: Option<&'a Extra<'a>>,
    /// Order of source and sink.
    pub order: Order,
    /// Whether pairs that commute, such as reductions of one operator, are left out.
    pub commute: bool,
}

impl Default for DependenceQuery<'_> {
    /// Returns the query for every dependence of a program, except between reductions of one operator.
    fn default() -> Self {
        DependenceQuery {
            source: &|_| true,
            sink: &|_| true,
            relate: &|_| Relation::Any,
            extra: None,
            order: Order::SourceFirst,
            commute: true,
        }
    }
}

/// Two instances and the element that they share.
#[derive(Clone, Debug)]
pub struct Witness {
    /// Values of the program's sizes.
    pub sizes: Vec<(Symbol, i64)>,
    /// Iterators of the loops around the source, outermost first.
    pub source: Vec<(Symbol, i64)>,
    /// Iterators of the loops around the sink.
    pub sink: Vec<(Symbol, i64)>,
    /// Indices of the element, if they are known.
    pub element: Option<Vec<i64>>,
    /// Values that the program would have to read: elements of tensors with their values.
    pub assumed: Vec<(Expr, i64)>,
    /// Whether the conflict happens in every run with these sizes (and assumed values), and is not merely unrefuted.
    pub exact: bool,
    /// Subscript of the element that is an opaque value for the solver; the rest of the witness then has no meaning.
    pub opaque: Option<Expr>,
    /// Whether instances are known. Otherwise independence is not proved, but the solver's numbers do not occur in the
    /// program, and all fields except `opaque` are empty.
    pub found: bool,
}

impl Witness {
    /// Returns the witness of a conflict that is possible, but of which no instances are known.
    pub(in crate::query) fn not_found(opaque: Option<Expr>) -> Witness {
        let (sizes, source, sink, assumed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Witness { sizes, source, sink, element: None, assumed, exact: false, opaque, found: false }
    }
}

/// Pair of references that access one element, one of them writing it.
#[derive(Clone, Debug)]
pub struct Dependence {
    /// Reference that must run first.
    pub source: Reference,
    /// Reference that must run later.
    pub sink: Reference,
    /// Kind.
    pub kind: DependenceKind,
    /// Common loops, outermost first, with the relation of the sink's iteration to the source's.
    pub loops: Vec<(Stmt, Relation)>,
    /// Instances that conflict.
    pub witness: Witness,
}

impl Dependence {
    /// Returns the loop that carries the dependence: the outermost one of which source and sink are in different
    /// iterations. `None` if the dependence is within one iteration of all loops.
    pub fn carrier(&self) -> Option<&Stmt> {
        self.loops.iter().find(|(_, r)| *r != Relation::Same).map(|(s, _)| s)
    }

    /// Returns this dependence with equivalent references as source and sink.
    pub(in crate::query) fn between(&self, source: &Reference, sink: &Reference) -> Dependence {
        Dependence { source: source.clone(), sink: sink.clone(), ..self.clone() }
    }
}
