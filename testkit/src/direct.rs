//! Tests of the direct dependences and of the grouping of queries, against queries pair by pair, and against brute
//! force: a chain of direct dependences orders every pair of accesses to one element in a run.

use crate::dependences::{Key, by_pair, commutes, covered, key, pairs, relations};
use std::collections::{BTreeSet, HashMap};
use taffeta_analysis::query::depend::{Dependence, DependenceQuery, Dependences, Relation};
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_ast::random::nest::{self, Class};
use taffeta_ast::random::trace::{Fault, Trace, trace};
use taffeta_ast::{Func, print};

const SIZES: [[i64; 2]; 4] = [[1, 1], [2, 3], [4, 4], [6, 5]];
const MAX_EVENTS: usize = 1500;
/// Maximum number of pairs considered in a run; a run with more is left out.
const MAX_PAIRS: usize = 60_000;

/// Counts of the comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// All dependences.
    pub all: u64,
    /// Direct dependences.
    pub direct: u64,
    /// Pairs of accesses that are ordered by several direct dependences, and by no single one.
    pub chains: u64,
}

/// Returns the fault in the direct dependences of a seed's program.
pub fn fault(seed: u64, class: Class, counts: &mut Counts) -> Option<String> {
    let func = nest::nest(seed, class);
    let problem = answers(&func, counts).or_else(|| {
        let direct = Dependences::new(&func).direct();
        ordered(&func, &direct.dependences, seed, counts)
    });
    Some(format!("seed {seed}, {class:?}: {}\n{}", problem?, print::func(&func)))
}

/// Returns the first difference between the direct dependences and the answers pair by pair.
pub fn answers(func: &Func, counts: &mut Counts) -> Option<String> {
    let dependences = Dependences::new(func);
    let all = dependences.all(&DependenceQuery::default());
    let direct = dependences.direct();
    counts.all += all.len() as u64;
    counts.direct += direct.dependences.len() as u64;
    pair_by_pair(&dependences, &all)
        .or_else(|| among(&direct.dependences, &all))
        .or_else(|| {
            let left_out = direct.dependences.len() < all.len();
            (direct.has_implied != left_out).then(|| format!("more: {}, left out: {left_out}", direct.has_implied))
        })
        .or_else(|| {
            let (x, y) = (carriers(&direct.dependences), carriers(&all));
            (x != y).then(|| format!("loops carry {y:?}, but {x:?} by direct dependences"))
        })
        .or_else(|| reductions(&dependences))
}

/// Prints a dependence without its witness, which may differ after other queries.
fn shown(d: &Dependence) -> String {
    let loops: Vec<_> = d.loops.iter().map(|(s, r)| (s.id(), *r)).collect();
    format!("{:?} {:?} {:?} {loops:?}", d.kind, key(&d.source), key(&d.sink))
}

/// Checks that every pair has the same answer on its own.
fn pair_by_pair(dependences: &Dependences<'_>, all: &[Dependence]) -> Option<String> {
    let references = dependences.references();
    let is = |x: &Reference, y: &Reference| std::ptr::eq(x, y);
    let mut alone = Vec::new();
    for a in references {
        for b in references.iter().filter(|b| b.tensor == a.tensor && (a.kind.writes() || b.kind.writes())) {
            alone.extend(dependences.all(&DependenceQuery {
                source: &|r| is(r, a),
                sink: &|r| is(r, b),
                ..DependenceQuery::default()
            }));
        }
    }
    let (x, y): (Vec<String>, Vec<String>) = (alone.iter().map(shown).collect(), all.iter().map(shown).collect());
    let differs = x.iter().zip(&y).find(|(x, y)| x != y).map(|(x, y)| format!("alone    {x}\ntogether {y}"));
    differs.or_else(|| (x.len() != y.len()).then(|| format!("{} dependences alone, {} together", x.len(), y.len())))
}

/// Checks that the direct dependences are among all, in the same order.
fn among(direct: &[Dependence], all: &[Dependence]) -> Option<String> {
    let mut rest = all.iter().map(shown);
    direct.iter().map(shown).find(|d| !rest.any(|a| a == *d)).map(|d| format!("direct dependence missing: {d}"))
}

/// Returns the loops that carry dependences, with the tensors.
fn carriers(all: &[Dependence]) -> BTreeSet<(u64, u64)> {
    all.iter().filter_map(|d| Some((d.carrier()?.id().0, d.source.tensor.id()))).collect()
}

fn reductions(dependences: &Dependences<'_>) -> Option<String> {
    let reduces = |r: &Reference| matches!(r.kind, Use::Reduce(_));
    let all = dependences.all(&DependenceQuery {
        source: &reduces,
        sink: &reduces,
        commute: false,
        ..DependenceQuery::default()
    });
    let alike: Vec<Dependence> = all.into_iter().filter(|d| d.source.kind == d.sink.kind).collect();
    let (x, y) = (carriers(&dependences.carried_reductions()), carriers(&alike));
    (x != y).then(|| format!("expected loops to carry reductions {y:?}, found {x:?}"))
}

/// Checks that direct dependences order all accesses to one element, one of them writing it.
fn ordered(func: &Func, direct: &[Dependence], seed: u64, counts: &mut Counts) -> Option<String> {
    let by: HashMap<(Key, Key), Vec<Vec<Relation>>> = by_pair(direct);
    SIZES.into_iter().enumerate().find_map(|(k, sizes)| {
        let run = trace(func, &nest::inputs(func, &sizes, seed * 16 + k as u64), Fault::Stops, MAX_EVENTS);
        unordered(&run, &by, counts).map(|what| format!("at {sizes:?}: {what}"))
    })
}

fn unordered(run: &Trace, by: &HashMap<(Key, Key), Vec<Vec<Relation>>>, counts: &mut Counts) -> Option<String> {
    let mut touches = Vec::new();
    pairs(run, &mut |a, b| touches.push((a, b)));
    if touches.len() >= MAX_PAIRS {
        return None;
    }
    let last = run.events.iter().map(|e| e.time).max()? + 1;
    // For every instance, a bit set of the instances that it precedes.
    let mut before: Vec<Vec<u64>> = vec![vec![0; last / 64 + 1]; last];
    let mut steps: Vec<Vec<usize>> = vec![Vec::new(); last];
    for (a, b) in &touches {
        let between = relations(&a.instance, &b.instance)?;
        if !commutes(a, b) && covered(by, a, b, &between) {
            steps[a.time].push(b.time);
        }
    }
    for from in (0..last).rev() {
        for to in &steps[from] {
            let (early, late) = before.split_at_mut(*to);
            early[from].iter_mut().zip(&late[0]).for_each(|(x, y)| *x |= y);
            early[from][to / 64] |= 1 << (to % 64);
        }
    }
    for (a, b) in touches.iter().filter(|(a, b)| !commutes(a, b)) {
        if before[a.time][b.time / 64] >> (b.time % 64) & 1 == 0 {
            let at =
                |e: &taffeta_ast::random::trace::Event| e.instance.loops.iter().map(|l| l.value).collect::<Vec<i64>>();
            return Some(format!(
                "nothing orders {:?} {} {:?} at {:?} and {:?} at {:?}",
                a.touch,
                a.tensor,
                a.element,
                at(a),
                b.touch,
                at(b)
            ));
        }
        counts.chains += u64::from(!steps[a.time].contains(&b.time));
    }
    None
}
