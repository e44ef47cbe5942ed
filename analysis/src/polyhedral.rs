//! Polyhedral scheduling in plain data: statements as sets of integer points, dependences as relations between them,
//! new orders for them, and loops that run through them in an order. What isl makes of it is in `isl/`.
//!
//! Nothing here is a proof but [`turned`]: [`propose`] only proposes an order, and whoever takes it asks whether it
//! reverses a dependence.

use crate::isl::{self, Row};
use taffeta_ast::{Expr, Symbol};

/// An integer, from a statement's indices and the parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A number.
    Number(i64),
    /// A value that is the same in the whole region.
    Parameter(usize),
    /// One of the loops around the statement, outermost first.
    Index(usize),
    /// Multiples, added.
    Sum(Vec<(i64, Term)>),
    /// The floor of a term over a positive number.
    Quotient(Box<Term>, i64),
    /// The smallest one.
    Least(Vec<Term>),
    /// The largest one.
    Greatest(Vec<Term>),
}

/// A condition on a statement's indices and the parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The term is at least 0.
    NotNegative(Term),
    /// The term is 0.
    Zero(Term),
    /// Every one of them holds.
    All(Vec<Condition>),
    /// One of them holds.
    Any(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
}

/// A statement and the iterations in which it runs.
#[derive(Clone, Debug)]
pub struct Statement {
    /// How many loops are around it.
    pub indices: usize,
    /// When it runs.
    pub domain: Condition,
}

/// Pairs of instances of which the first one must run first.
#[derive(Clone, Debug)]
pub struct Edge {
    /// A statement.
    pub source: usize,
    /// Another one, or the same.
    pub sink: usize,
    /// Sums that are at least 0: a constant, then the indices of the source, those of the sink, the parameters, and
    /// further unknowns, any values of which will do.
    pub rows: Vec<Vec<i64>>,
}

/// What a proposed order is to be like.
#[derive(Clone, Debug, Default)]
pub struct OrderConstraints {
    /// Must be kept.
    pub validity: Vec<Edge>,
    /// Should stay within one iteration of the outer loops, which can then run in any order.
    pub coincidence: Vec<Edge>,
    /// Should be short: bounded distances, or ones that the parameters bound.
    pub proximity: Vec<Edge>,
}

/// An order of statements, as a tree.
#[derive(Clone, Debug)]
pub enum Proposal {
    /// Loops that may be permuted and tiled, around the rest.
    Band(Vec<Member>, Box<Proposal>),
    /// Statements one after the other.
    Sequence(Vec<(Vec<usize>, Proposal)>),
    /// Nothing more.
    Leaf,
}

/// A loop of a band.
#[derive(Clone, Debug)]
pub struct Member {
    /// Whether its iterations can run in any order, by those constraints.
    pub coincident: bool,
    /// For each statement inside: its number, and a constant, coefficients of its indices, and of the parameters.
    pub rows: Vec<(usize, Vec<i64>)>,
}

/// How the loops of one dimension of an order are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As it comes.
    Plain,
    /// One loop for all statements that meet in it, with conditions inside.
    Whole,
}

/// A dimension of an order.
#[derive(Clone, Debug)]
pub struct Dimension {
    /// What iterators of its loops are called, by the first statement in the loop.
    pub names: Vec<String>,
    /// How its loops are made.
    pub style: Style,
}

/// Loops that run through statements.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A loop.
    Loop {
        /// The dimension of the order.
        dimension: usize,
        /// Its iterator.
        iter: Symbol,
        /// First value.
        begin: Expr,
        /// Where to stop.
        end: Expr,
        /// From one value to the next one.
        step: i64,
        /// What it runs.
        body: Box<Tree>,
    },
    /// A branch.
    Branch {
        /// Its condition.
        cond: Expr,
        /// Where it holds.
        then: Box<Tree>,
        /// Where it does not.
        otherwise: Option<Box<Tree>>,
    },
    /// One after the other.
    Block(Vec<Tree>),
    /// An instance of a statement, with the values of its indices.
    Run(usize, Vec<Expr>),
}

/// What all questions about a region have in common.
#[derive(Clone, Debug)]
pub struct Region {
    /// The parameters, as the program computes them.
    pub parameters: Vec<Expr>,
    /// What is known of them.
    pub known: Condition,
    /// The statements, in the order of the text.
    pub statements: Vec<Statement>,
}

/// An order in which dependences are kept, loops are tilable, and the outer ones parallel, as far as isl finds one.
/// `None` if it fails, or does not end within its budget.
pub fn propose(region: &Region, constraints: &OrderConstraints) -> Option<Proposal> {
    isl::schedule::propose(region, constraints)
}

/// One edge for several ones between the same two statements, which holds all pairs of theirs, and maybe more: what all
/// of them say of the same sum of indices and parameters, by the weakest one.
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

/// The edge with only those rows that relate an instance of the source to one of the sink: it holds all pairs of the
/// edge. isl's scheduler takes seconds where the sets of both are in every relation as well, and hardly ever needs
/// them.
pub fn relax(region: &Region, edge: &Edge) -> Edge {
    let [ours, theirs] = [edge.source, edge.sink].map(|k| region.statements[k].indices);
    let relates = |r: &&Row| {
        let is_in = |from: usize, count: usize| r.iter().skip(from).take(count).any(|c| *c != 0);
        is_in(1, ours) && is_in(1 + ours, theirs)
    };
    Edge { rows: edge.rows.iter().filter(relates).cloned().collect(), ..edge.clone() }
}

/// What an edge says of sums of indices and parameters, each by its strongest constant. Unknowns are put in terms of
/// these where an equation does so, and what else mentions them is left out.
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
        let content = r[1..known].iter().fold(0i64, |g, c| gcd(g, c.unsigned_abs() as i64));
        if content == 0 {
            continue;
        }
        let sum: Row = r[1..known].iter().map(|c| c / content).collect();
        let constant = r[0].div_euclid(content);
        match out.iter_mut().find(|(s, _)| *s == sum) {
            Some((_, c)) => *c = (*c).min(constant),
            None => out.push((sum, constant)),
        }
    }
    out
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Loops that run through all statements in an order: a list of terms for each, of the same length as `dimensions`,
/// compared from the first to the last. `None` if isl fails, or does not end within its budget.
pub fn generate(region: &Region, order: &[Vec<Term>], dimensions: &[Dimension]) -> Option<Tree> {
    isl::tree::generate(region, order, dimensions)
}

/// Whether an order may run the sink of an edge before its source, or both in no order at all; without an answer it
/// may.
pub fn turned(region: &Region, edge: &Edge, order: &[Vec<Term>]) -> bool {
    let Some(mut rows) = Rows::of(region, edge) else { return true };
    let (source, sink) = (&order[edge.source], &order[edge.sink]);
    for (a, b) in source.iter().zip(sink) {
        let (Some(a), Some(b)) = (rows.sum(a, false), rows.sum(b, true)) else { return true };
        let Some(later) = minus(&b, &a) else { return true };
        // The sink is earlier here.
        let mut earlier = rows.all.clone();
        let Some(mut less) = minus(&[], &later) else { return true };
        less[0] -= 1;
        earlier.push(less);
        if isl::is_empty(rows.columns - 1, &rows.padded(&earlier)) != Some(true) {
            return true;
        }
        // Or both are together, and what follows decides.
        let Some(no_later) = minus(&[], &later) else { return true };
        rows.all.extend([later, no_later]);
        if isl::is_empty(rows.columns - 1, &rows.padded(&rows.all)) == Some(true) {
            return false;
        }
    }
    true
}

/// The rows of an edge, with columns for quotients as they come.
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

    /// A term of the source or the sink as a row.
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

/// `a + c * b`
fn combine(a: &[i64], b: &[i64], c: i64) -> Option<Row> {
    let at = |r: &[i64], k: usize| r.get(k).copied().unwrap_or(0);
    (0..a.len().max(b.len())).map(|k| at(a, k).checked_add(c.checked_mul(at(b, k))?)).collect()
}

#[cfg(test)]
mod tests;
