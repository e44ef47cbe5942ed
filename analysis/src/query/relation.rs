//! Dependences between the statements of a region as relations between their iterations, as a polyhedral scheduler
//! needs them: all at once.
//!
//! [`Dependences::related`] takes the statements ([`Leaf`]) and returns their relations ([`Related`]). A relation
//! consists of the facts that [`super::depend`] passes to isl, with existentially quantified unknowns for atoms other
//! than iterators and parameters. The relation over-approximates the dependence, since alternatives between facts are
//! left out. Where it is larger, a valid order may be rejected; [`Dependences::first`] has the last word there.

use super::depend::{Conflict, DependenceKind, Dependences, Meeting, Prover, kind_of, orders};
use super::instance::Relation;
use super::linear::{Atom, Linear};
use super::reference::{Reference, Step};
use crate::isl::Row;
use crate::polyhedral::Edge;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use taffeta_ast::{Expr, StmtId, Symbol};

/// Statement of a region, with the loops around it in the region, outermost first.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Statement.
    pub stmt: StmtId,
    /// Loops.
    pub loops: Vec<StmtId>,
}

/// Dependence between two references, as a relation between instances of their statements.
#[derive(Clone, Debug)]
pub struct Related {
    /// Relation.
    pub edge: Edge,
    /// Kind of the dependence.
    pub kind: DependenceKind,
    /// Whether both references are reductions by one operator, which commute.
    pub commutes: bool,
    /// Number of leading common loops in the region, outermost first, of which source and sink are in the same
    /// iteration.
    pub level: usize,
    /// Positions of source and sink in [`Dependences::references`].
    pub references: (usize, usize),
}

/// Absolute value from which the constant of a row is taken for the end of a type's range. Such rows are left out,
/// since they say nothing.
const LARGE: i64 = 1 << 30;

impl Dependences<'_> {
    /// Returns the dependences between instances of the leaves within one iteration of the loops around the region.
    /// `parameters` are integer expressions that are constant in the region.
    pub fn related(&self, leaves: &[Leaf], parameters: &[Expr]) -> Vec<Related> {
        let leaf = |r: &Reference| leaves.iter().position(|l| r.site.inside(l.stmt));
        let all: Vec<(usize, usize, &Reference)> =
            self.references().iter().enumerate().filter_map(|(k, r)| Some((k, leaf(r)?, r))).collect();
        let mut pairs = Vec::new();
        for a in &all {
            for b in &all {
                if a.2.tensor == b.2.tensor && (a.2.kind.writes() || b.2.kind.writes()) {
                    pairs.push((*a, *b));
                }
            }
        }
        let pair = |prover: &mut Prover<'_>, ((i, s, a), (j, t, b)): ((usize, usize, &Reference), _)| {
            let (j, t, b): (usize, usize, &Reference) = (j, t, b);
            let commutes = a.commutes(b);
            let edges = pieces(prover, (a, s), (b, t), leaves, parameters);
            let kind = kind_of(a.kind, b.kind);
            let related = |(level, edge)| Related { edge, kind, commutes, level, references: (i, j) };
            edges.into_iter().map(related).collect()
        };
        let found: Vec<Vec<Related>> =
            taffeta_ast::pool::run(|| pairs.into_par_iter().with_min_len(4).map_init(|| self.prover(), pair).collect());
        found.into_iter().flatten().collect()
    }
}

/// Returns one edge for every loop that can carry a dependence of the pair, and one for a dependence that no loop
/// carries.
fn pieces(
    prover: &mut Prover<'_>,
    (a, source): (&Reference, usize),
    (b, sink): (&Reference, usize),
    leaves: &[Leaf],
    parameters: &[Expr],
) -> Vec<(usize, Edge)> {
    let common = a.site.common(&b.site);
    let scope = a.scope();
    let mut asked = Vec::new();
    let mut own = Vec::new();
    for (k, step) in a.site.path[..common].iter().enumerate() {
        let Step::Loop { stmt, .. } = step else { continue };
        let inside = leaves[source].loops.contains(&stmt.id());
        // Iterations of loops of the region, and of loops inside of a leaf, may differ; those of loops around the
        // region are the same.
        let free = inside || (source == sink && below(a, k, leaves[source].stmt));
        // Every iteration of a loop around the declaration has a tensor of its own.
        asked.push(if free && k >= scope { Relation::Any } else { Relation::Same });
        own.push(inside);
    }
    let mut out = Vec::new();
    for relations in orders(&asked, super::depend::Order::SourceFirst, a.site.before(&b.site)) {
        // Dependences within one instance of a leaf impose no order.
        let together = relations.iter().zip(&own).all(|(r, own)| !own || *r == Relation::Same);
        if source == sink && together {
            continue;
        }
        let both = Meeting { source: a, sink: b, relations: &relations, extra: None };
        let rows = prover.with_conflict_assumed(both, |p, s| rows(p, s, &leaves[source], &leaves[sink], parameters));
        let level = relations.iter().zip(&own).filter(|(_, own)| **own).take_while(|(r, _)| **r == Relation::Same);
        let level = level.count();
        out.extend(rows.map(|rows| (level, Edge { source, sink, rows })));
    }
    out
}

/// Returns whether step `k` of a reference's path is inside a statement.
fn below(r: &Reference, k: usize, stmt: StmtId) -> bool {
    r.site.path[..=k].iter().any(|s| s.stmt().id() == stmt)
}

/// Returns the facts about a conflict as rows of an [`Edge`]; `None` if the facts contradict each other.
fn rows(p: &mut Prover<'_>, s: Conflict, source: &Leaf, sink: &Leaf, parameters: &[Expr]) -> Option<Vec<Row>> {
    if s.assumed.impossible || p.ctx.is_unreachable() {
        return None;
    }
    if !s.assumed.choices.is_empty() {
        p.ctx.point(s.mark, &s.assumed, &[])?;
    }
    let none = Expr::int(0);
    let ours = source.loops.iter().map(|l| s.source.iterator(*l).unwrap_or(&none).clone());
    let theirs = sink.loops.iter().map(|l| s.sink.iterator(*l).unwrap_or(&none).clone());
    let named: Vec<Linear> = ours.chain(theirs).chain(parameters.iter().cloned()).map(|e| p.ctx.linear(&e)).collect();
    let first: Vec<Symbol> = Vec::new();
    let system = p.ctx.system(s.mark, &first);
    // Columns: 1, iterators and parameters, then all other atoms.
    let mut columns: FxHashMap<Atom, usize> = FxHashMap::default();
    let mut equal = Vec::new();
    for (k, l) in named.iter().enumerate() {
        match l.as_atom() {
            Some(a) if !columns.contains_key(&a) => {
                columns.insert(a, k + 1);
            }
            _ => equal.push((k + 1, l.clone())),
        }
    }
    let mut count = named.len() + 1;
    let unknown = system.atoms.iter().chain(equal.iter().flat_map(|(_, l)| l.terms.iter().map(|(a, _)| a)));
    for a in unknown {
        columns.entry(*a).or_insert_with(|| {
            count += 1;
            count - 1
        });
    }
    let mut out = Vec::new();
    for row in system.rows.iter().filter(|r| r[0].abs() < LARGE) {
        let mut new = vec![0; count];
        new[0] = row[0];
        system.atoms.iter().zip(&row[1..]).filter(|(_, c)| **c != 0).for_each(|(a, c)| new[columns[a]] = *c);
        out.push(new);
    }
    for (k, l) in equal {
        let mut new = vec![0; count];
        let fits = l.terms.iter().all(|(a, c)| {
            i64::try_from(*c).is_ok_and(|c| {
                new[columns[a]] = c;
                true
            })
        });
        let Ok(constant) = i64::try_from(l.constant) else { continue };
        if fits && new.iter().all(|c| *c != i64::MIN) && constant != i64::MIN {
            new[0] = constant;
            new[k] -= 1;
            out.push(new.iter().map(|c| -c).collect());
            out.push(new);
        }
    }
    Some(out)
}
