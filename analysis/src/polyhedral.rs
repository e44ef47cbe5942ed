//! Polyhedral scheduling in plain data: statements as sets of integer points, dependences as relations between them,
//! schedules, and loop nests that scan the points in a given order. The interface to isl is in `isl/`.
//!
//! Only [`turned`] is a proof: [`propose`] merely proposes an order, and its caller must check that the order reverses
//! no dependence.

use crate::isl::{self, Row};
use crate::query::interval::gcd;
use taffeta_ast::{Expr, Symbol};

/// Integer term over a statement's indices and the parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// Constant.
    Number(i64),
    /// Parameter, by number: a value that is constant in the whole region.
    Parameter(usize),
    /// Iterator of an enclosing loop, by number, outermost first.
    Index(usize),
    /// Linear combination of terms.
    Sum(Vec<(i64, Term)>),
    /// Floor of a term over a positive number.
    Quotient(Box<Term>, i64),
    /// Minimum of terms.
    Least(Vec<Term>),
    /// Maximum of terms.
    Greatest(Vec<Term>),
}

/// Condition on a statement's indices and the parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Term at least 0.
    NotNegative(Term),
    /// Term equal to 0.
    Zero(Term),
    /// Conjunction.
    All(Vec<Condition>),
    /// Disjunction.
    Any(Vec<Condition>),
    /// Negation.
    Not(Box<Condition>),
}

/// Statement with its iteration domain.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Number of enclosing loops.
    pub indices: usize,
    /// Iterations in which the statement runs.
    pub domain: Condition,
}

/// Dependence relation: pairs of instances of which the source must run first.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Number of the source statement.
    pub source: usize,
    /// Number of the sink statement, which may be the source.
    pub sink: usize,
    /// Linear forms that are at least 0. Columns: a constant, the indices of the source, those of the sink, the
    /// parameters, and existentially quantified unknowns.
    pub rows: Vec<Vec<i64>>,
}

/// Constraints on a proposed order.
#[derive(Clone, Debug, Default)]
pub struct OrderConstraints {
    /// Dependences that the order must preserve.
    pub validity: Vec<Edge>,
    /// Dependences that should stay within one iteration of the outer loops, which are then parallel.
    pub coincidence: Vec<Edge>,
    /// Dependences that should be short: their distances bounded, by a constant or by the parameters.
    pub proximity: Vec<Edge>,
}

/// Schedule tree of a proposed order.
#[derive(Clone, Debug)]
pub enum Proposal {
    /// Band of loops that may be permuted and tiled, and the subtree inside.
    Band(Vec<Member>, Box<Proposal>),
    /// Children in sequence, each with its statements.
    Sequence(Vec<(Vec<usize>, Proposal)>),
    /// Leaf.
    Leaf,
}

/// Loop of a band.
#[derive(Clone, Debug)]
pub struct Member {
    /// Whether its iterations can run in any order, by the coincidence constraints.
    pub coincident: bool,
    /// For each statement inside: its number, and a linear form with a constant and coefficients of its indices and of
    /// the parameters.
    pub rows: Vec<(usize, Vec<i64>)>,
}

/// Style of the loops that are generated for one dimension of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Default of the generator: loops may be split.
    Plain,
    /// One loop for all statements that meet in it, with conditions inside.
    Whole,
}

/// Dimension of an order.
#[derive(Clone, Debug)]
pub struct Dimension {
    /// Names of the iterators of its loops, by the first statement in the loop.
    pub names: Vec<String>,
    /// Style of its loops.
    pub style: Style,
}

/// Generated loop nest.
#[derive(Clone, Debug)]
pub enum Tree {
    /// Loop.
    Loop {
        /// Dimension of the order.
        dimension: usize,
        /// Iterator.
        iter: Symbol,
        /// First value.
        begin: Expr,
        /// Exclusive end.
        end: Expr,
        /// Step, positive.
        step: i64,
        /// Body.
        body: Box<Tree>,
    },
    /// Branch.
    Branch {
        /// Condition.
        cond: Expr,
        /// Subtree where the condition holds.
        then: Box<Tree>,
        /// Subtree where the condition does not hold.
        otherwise: Option<Box<Tree>>,
    },
    /// Children in sequence.
    Block(Vec<Tree>),
    /// Instance of a statement, with the values of its indices.
    Run(usize, Vec<Expr>),
}

/// Context of all queries about a region.
#[derive(Clone, Debug)]
pub struct Region {
    /// Parameters, as expressions of the program.
    pub parameters: Vec<Expr>,
    /// Known condition on the parameters.
    pub known: Condition,
    /// Statements, in program order.
    pub statements: Vec<Statement>,
}

/// Computes an order that preserves the dependences, in which loops are tilable and the outer ones parallel, as far as
/// isl finds one. `None` if isl fails or exceeds its budget.
pub fn propose(region: &Region, constraints: &OrderConstraints) -> Option<Proposal> {
    isl::schedule::propose(region, constraints)
}

/// Merges edges between the same two statements into one edge that holds all of their pairs, and maybe more: each sum
/// of indices and parameters that all edges bound gets its weakest bound.
pub fn condense(region: &Region, edges: &[&Edge]) -> Edge {
    let (source, sink) = edges.first().map_or((0, 0), |e| (e.source, e.sink));
    let known = 1 + region.statements[source].indices + region.statements[sink].indices + region.parameters.len();
    let mut bounds = edges.iter().map(|e| bounds(e, known));
    let mut all = bounds.next().unwrap_or_default();
    for other in bounds {
        all.retain_mut(|(sum, constant)| match other.iter().find(|(s, _)| s == sum) {
            Some((_, weaker)) => {
                *constant = (*constant).max(*weaker);
                true
            }
            None => false,
        });
    }
    let row = |(sum, constant): (Row, i64)| [&[constant], &sum[..]].concat();
    Edge { source, sink, rows: all.into_iter().map(row).collect() }
}

/// Keeps only the rows of an edge that relate an instance of the source to one of the sink, so the result holds all
/// pairs of the edge. isl's scheduler takes seconds if every relation also repeats the domains of both, and hardly ever
/// needs them.
pub fn relax(region: &Region, edge: &Edge) -> Edge {
    let [ours, theirs] = [edge.source, edge.sink].map(|k| region.statements[k].indices);
    let relates = |r: &&Row| {
        let is_in = |from: usize, count: usize| r.iter().skip(from).take(count).any(|c| *c != 0);
        is_in(1, ours) && is_in(1 + ours, theirs)
    };
    Edge { rows: edge.rows.iter().filter(relates).cloned().collect(), ..edge.clone() }
}

/// Returns an edge's bounds of sums of indices and parameters, each with its strongest constant. Unknowns are
/// eliminated by equations with a unit coefficient, and rows that still mention one are dropped.
fn bounds(edge: &Edge, known: usize) -> Vec<(Row, i64)> {
    let width = edge.rows.iter().map(Vec::len).max().unwrap_or(known).max(known);
    let mut rows: Vec<Row> = edge.rows.clone();
    rows.iter_mut().for_each(|r| r.resize(width, 0));
    for unknown in known..width {
        let is_equation = |r: &Row, all: &[Row]| all.iter().any(|o| o.iter().zip(r).all(|(a, b)| *a == -b));
        let Some(by) = rows.iter().find(|r| r[unknown].abs() == 1 && is_equation(r, &rows)).cloned() else { continue };
        let replaced = |r: &Row| combine(r, &by, -r[unknown] * by[unknown]);
        rows = rows.iter().filter_map(replaced).collect();
    }
    let mut out: Vec<(Row, i64)> = Vec::new();
    for r in rows.iter().filter(|r| r[known..].iter().all(|c| *c == 0)) {
        let content = r[1..known].iter().fold(0, |g, c| gcd(g, i128::from(*c)));
        let Ok(content @ 1..) = i64::try_from(content) else { continue };
        let sum: Row = r[1..known].iter().map(|c| c / content).collect();
        let constant = r[0].div_euclid(content);
        match out.iter_mut().find(|(s, _)| *s == sum) {
            Some((_, c)) => *c = (*c).min(constant),
            None => out.push((sum, constant)),
        }
    }
    out
}

/// Generates loops that run all statements in an order: for each statement a list of terms, of the length of
/// `dimensions`, compared lexicographically. `None` if isl fails or exceeds its budget.
pub fn generate(region: &Region, order: &[Vec<Term>], dimensions: &[Dimension]) -> Option<Tree> {
    isl::tree::generate(region, order, dimensions)
}

/// Returns whether an order may run the sink of an edge before its source, or leaves the two unordered; also true if
/// unknown.
pub fn turned(region: &Region, edge: &Edge, order: &[Vec<Term>]) -> bool {
    let Some(mut rows) = Rows::of(region, edge) else { return true };
    let (source, sink) = (&order[edge.source], &order[edge.sink]);
    for (a, b) in source.iter().zip(sink) {
        let (Some(a), Some(b)) = (rows.sum(a, false), rows.sum(b, true)) else { return true };
        let Some(later) = minus(&b, &a) else { return true };
        // The system with the sink earlier in this dimension must be empty.
        let mut earlier = rows.all.clone();
        let Some(mut less) = minus(&[], &later) else { return true };
        less[0] -= 1;
        earlier.push(less);
        if isl::is_empty(rows.columns - 1, &rows.padded(&earlier)) != Some(true) {
            return true;
        }
        // Otherwise both are equal in this dimension, and the following dimensions decide.
        let Some(no_later) = minus(&[], &later) else { return true };
        rows.all.extend([later, no_later]);
        if isl::is_empty(rows.columns - 1, &rows.padded(&rows.all)) == Some(true) {
            return false;
        }
    }
    true
}

/// Rows of an edge, with columns for quotients added on demand.
struct Rows {
    all: Vec<Row>,
    columns: usize,
    indices: [usize; 2],
    parameters: usize,
    quotients: Vec<(Row, i64, usize)>,
}

impl Rows {
    fn of(region: &Region, edge: &Edge) -> Option<Rows> {
        let indices = [region.statements.get(edge.source)?.indices, region.statements.get(edge.sink)?.indices];
        let parameters = region.parameters.len();
        let least = 1 + indices[0] + indices[1] + parameters;
        let columns = edge.rows.iter().map(Vec::len).max().unwrap_or(least).max(least);
        Some(Rows { all: edge.rows.clone(), columns, indices, parameters, quotients: Vec::new() })
    }

    /// Returns a term of the source or the sink as a row.
    fn sum(&mut self, term: &Term, sink: bool) -> Option<Row> {
        let unit = |column: usize| {
            let mut row = vec![0; column + 1];
            row[column] = 1;
            row
        };
        match term {
            Term::Number(n) => Some(vec![*n]),
            Term::Index(k) => Some(unit(1 + if sink { self.indices[0] } else { 0 } + k)),
            Term::Parameter(k) if *k < self.parameters => Some(unit(1 + self.indices[0] + self.indices[1] + k)),
            Term::Sum(parts) => parts.iter().try_fold(vec![0], |sum, (c, part)| {
                let part = self.sum(part, sink)?;
                combine(&sum, &part, *c)
            }),
            Term::Quotient(inner, by) if *by > 0 => {
                let inner = self.sum(inner, sink)?;
                if let Some((_, _, column)) = self.quotients.iter().find(|(r, d, _)| *r == inner && d == by) {
                    return Some(unit(*column));
                }
                let column = self.columns;
                self.columns += 1;
                // 0 <= inner - by * q <= by - 1
                let rest = combine(&inner, &unit(column), by.checked_neg()?)?;
                let mut above = minus(&[], &rest)?;
                above[0] = above[0].checked_add(by - 1)?;
                self.all.extend([rest, above]);
                self.quotients.push((inner, *by, column));
                Some(unit(column))
            }
            _ => None,
        }
    }

    fn padded(&self, rows: &[Row]) -> Vec<Row> {
        let longer = |r: &Row| {
            let mut r = r.clone();
            r.resize(self.columns, 0);
            r
        };
        rows.iter().map(longer).collect()
    }
}

fn minus(a: &[i64], b: &[i64]) -> Option<Row> {
    combine(a, b, -1)
}

/// Returns `a + c * b`.
fn combine(a: &[i64], b: &[i64], c: i64) -> Option<Row> {
    let at = |r: &[i64], k: usize| r.get(k).copied().unwrap_or(0);
    (0..a.len().max(b.len())).map(|k| at(a, k).checked_add(c.checked_mul(at(b, k))?)).collect()
}
