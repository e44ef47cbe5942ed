#![doc = include_str!("polyhedral.md")]
use crate::entry::{Entry, Run};
use crate::polyhedral::{Edges, PolyhedralModel, Rebuilt, in_program_terms, model, rebuild, turned};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree;
use crate::value::{Args, Value};
use taffeta_analysis::polyhedral::{Dimension, Proposal, Style, Term, propose};
use taffeta_ast::{Stmt, StmtId};

pub(crate) const ENTRY: Entry = Entry {
    name: "polyhedral",
    signature: "band = s.polyhedral(L)",
    params: &["region"],
    summary: "Reorders all loops of a region, so that they can be tiled and run in parallel.",
    doc: include_str!("polyhedral.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let target = s.stmt(args.need("region")?)?;
    Ok(apply(&check(s, &target)?))
}

struct Plan {
    model: PolyhedralModel,
    order: Order,
    rebuilt: Rebuilt,
}

fn check(s: &Schedule, target: &Stmt) -> Result<Plan, Refusal> {
    let at = target.origin().span();
    // 1. and 2. Affine, and no marks.
    let model = model(s.func(), target, usize::MAX, [1, 2])?;
    if model.leaves.iter().all(|l| l.loops.is_empty()) {
        return Err(Refusal::illegal(1, "there is no loop in the region").label(at, "this statement"));
    }
    // 3. isl finds an order.
    let edges = Edges::of(&model);
    let gave_up = || Refusal::illegal(3, "isl finds no order of the region within its budget").label(at, "the region");
    let quick = propose(&model.region, &edges.constraints(true)).filter(is_good);
    let proposal = quick.or_else(|| propose(&model.region, &edges.constraints(false))).ok_or_else(gave_up)?;
    let order = Order::of(&model, &proposal);
    // 4. Dependences.
    if let Some(d) = turned(&edges, &order.terms) {
        return Err(Refusal::dependence(
            4,
            "isl's order would reverse a dependence",
            in_program_terms(s.func(), &model, d),
        ));
    }
    drop(edges);
    let rebuilt = rebuild(&model, &order.terms, &order.dimensions, "polyhedral").ok_or_else(gave_up)?;
    Ok(Plan { model, order, rebuilt })
}

/// Returns whether every nest begins with loops that can be tiled or run in any order.
fn is_good(p: &Proposal) -> bool {
    match p {
        Proposal::Band(members, inside) => {
            members.len() > 1 || members.iter().any(|m| m.coincident) || matches!(**inside, Proposal::Leaf)
        }
        Proposal::Sequence(parts) => parts.iter().all(|(_, p)| is_good(p)),
        Proposal::Leaf => true,
    }
}

fn apply(plan: &Plan) -> Change {
    let Plan { model, order, rebuilt } = plan;
    let mut change = Change::new(rebuilt.func.clone(), Value::None);
    let mut bands = Vec::new();
    for band in &order.bands {
        let inside = |id: StmtId| {
            let stmt = tree::find(&rebuilt.func.body, id);
            let is_in = |k: &usize| stmt.as_ref().is_some_and(|s| tree::find(s, model.leaves[*k].stmt.id()).is_some());
            band.statements.iter().any(is_in)
        };
        let range = band.first..band.first + band.coincident.len();
        let own: Vec<(usize, StmtId)> =
            rebuilt.loops.iter().filter(|(d, id)| range.contains(d) && inside(*id)).copied().collect();
        for (dimension, id) in &own {
            let name = tree::find(&rebuilt.func.body, *id).map(|l| crate::selector::called(&rebuilt.func, &l));
            if let (Some(name), true) = (name, band.coincident[dimension - band.first]) {
                change.notes.push(format!("iterations of `{name}` do not depend on each other"));
            }
        }
        if !own.is_empty() {
            bands.push(Value::List(own.into_iter().map(|(_, id)| id.into()).collect()));
        }
    }
    change.made = if bands.len() == 1 { bands.remove(0) } else { Value::List(bands) };
    for (stmt, why) in &model.opaque {
        let what = match stmt.kind() {
            taffeta_ast::StmtKind::For { .. } => format!("the loop `{}`", crate::selector::called(&model.func, stmt)),
            _ => "a statement".to_string(),
        };
        change.notes.push(format!("{what} stays whole: {why}"));
    }
    for (from, to) in order.moved(model, rebuilt) {
        change = change.moved(from, to);
    }
    change.moved.extend(rebuilt.moved.iter().cloned());
    change
}

/// Proposed order, as a list of terms for each statement.
struct Order {
    terms: Vec<Vec<Term>>,
    dimensions: Vec<Dimension>,
    bands: Vec<Band>,
}

/// Outermost band of loops.
struct Band {
    first: usize,
    coincident: Vec<bool>,
    statements: Vec<usize>,
}

impl Order {
    fn of(model: &PolyhedralModel, proposal: &Proposal) -> Order {
        let count = model.leaves.len();
        let mut o = Order { terms: vec![Vec::new(); count], dimensions: Vec::new(), bands: Vec::new() };
        o.add(model, proposal, &(0..count).collect::<Vec<_>>(), false);
        let longest = o.terms.iter().map(Vec::len).max().unwrap_or(0);
        o.terms.iter_mut().for_each(|t| t.resize(longest, Term::Number(0)));
        let whole = |d: usize| o.bands.iter().any(|b| (b.first..b.first + b.coincident.len()).contains(&d));
        o.dimensions = (0..longest)
            .map(|d| {
                let name = |k: usize| name(model, k, &o.terms[k][d]);
                let style = if whole(d) { Style::Whole } else { Style::Plain };
                Dimension { names: (0..count).map(name).collect(), style }
            })
            .collect();
        o
    }

    fn add(&mut self, model: &PolyhedralModel, p: &Proposal, statements: &[usize], in_band: bool) {
        match p {
            Proposal::Band(members, inside) => {
                if !in_band {
                    let first = statements.first().map_or(0, |k| self.terms[*k].len());
                    let coincident = members.iter().map(|m| m.coincident).collect();
                    self.bands.push(Band { first, coincident, statements: statements.to_vec() });
                }
                for m in members {
                    for k in statements {
                        let row = m.rows.iter().find(|(s, _)| s == k).map(|(_, r)| r.as_slice());
                        let term = row.map_or(Term::Number(0), |r| sum(model, *k, r));
                        self.terms[*k].push(term);
                    }
                }
                self.add(model, inside, statements, true);
            }
            Proposal::Sequence(parts) => {
                for (n, (own, inside)) in parts.iter().enumerate() {
                    own.iter().for_each(|k| self.terms[*k].push(Term::Number(n as i64)));
                    self.add(model, inside, own, in_band);
                }
            }
            Proposal::Leaf => {
                for (n, k) in statements.iter().enumerate().filter(|_| statements.len() > 1) {
                    self.terms[*k].push(Term::Number(n as i64));
                }
            }
        }
    }
}

impl Order {
    /// Maps the loops of the region to the new loops over the same iterators.
    fn moved(&self, model: &PolyhedralModel, rebuilt: &Rebuilt) -> Vec<(StmtId, Vec<StmtId>)> {
        let mut out: Vec<(StmtId, Vec<StmtId>)> = Vec::new();
        for (leaf, terms) in model.leaves.iter().zip(&self.terms) {
            for (k, l) in leaf.loops.iter().enumerate() {
                let id = l.stmt.id();
                if !out.iter().any(|(from, _)| *from == id) {
                    out.push((id, Vec::new()));
                }
                let same = |d: usize| terms.get(d) == Some(&Term::Index(k));
                let here = rebuilt.loops.iter().filter(|(d, new)| {
                    let stmt = tree::find(&rebuilt.func.body, *new);
                    same(*d) && stmt.is_some_and(|s| tree::find(&s, leaf.stmt.id()).is_some())
                });
                if let Some((_, to)) = out.iter_mut().find(|(from, _)| *from == id) {
                    here.for_each(|(_, new)| {
                        if !to.contains(new) {
                            to.push(*new);
                        }
                    });
                }
            }
        }
        out
    }
}

/// Converts a row of a proposal for a leaf to a term.
fn sum(model: &PolyhedralModel, leaf: usize, row: &[i64]) -> Term {
    let indices = model.leaves[leaf].loops.len();
    let unit = |k: usize| match k {
        0 => Term::Number(1),
        k if k <= indices => Term::Index(k - 1),
        k => Term::Parameter(k - 1 - indices),
    };
    let mut parts: Vec<(i64, Term)> =
        row.iter().enumerate().filter(|(_, c)| **c != 0).map(|(k, c)| (*c, unit(k))).collect();
    match parts.as_slice() {
        [] => Term::Number(0),
        [(1, _)] => parts.remove(0).1,
        _ => Term::Sum(parts),
    }
}

/// Names a loop of a dimension after the iterators in its term.
fn name(model: &PolyhedralModel, leaf: usize, term: &Term) -> String {
    let of = |k: usize| model.leaves[leaf].loops.get(k).map_or("c", |l| l.iter.name());
    match term {
        Term::Index(k) => of(*k).to_string(),
        Term::Sum(parts) => {
            let used = parts.iter().filter_map(|(_, t)| match t {
                Term::Index(k) => Some(of(*k)),
                _ => None,
            });
            let joined = used.collect::<Vec<_>>().join("~");
            if joined.is_empty() { "c".into() } else { joined }
        }
        _ => "c".into(),
    }
}
