//! Tests of the dependence analysis against brute force: programs are run at small sizes, every pair of accesses to one
//! element is a true dependence, and the analysis must report every true dependence. Exact witnesses are looked up in a
//! run at their sizes.

use std::collections::{HashMap, HashSet};
use taffeta_analysis::query::depend::{Dependence, DependenceQuery, Dependences, Iterators, Order, Relation};
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_ast::random::nest::{self, Class};
use taffeta_ast::random::trace::{Event, Fault, Instance, Iteration, Touch, Trace, trace};
use taffeta_ast::random::{Case, shrink};
use taffeta_ast::{Expr, Func, StmtId, StmtKind, Symbol, print};

/// Sizes of the runs, with the treatment of expressions that have no value.
const RUNS: [([i64; 2], Fault); 6] = [
    ([0, 1], Fault::Skips),
    ([1, 1], Fault::Stops),
    ([2, 3], Fault::Skips),
    ([3, 2], Fault::Stops),
    ([4, 4], Fault::Skips),
    ([6, 5], Fault::Skips),
];
/// Maximum number of events in a run, and of pairs considered in one.
const MAX_EVENTS: usize = 1500;
const MAX_PAIRS: usize = 60_000;
/// Largest size of a witness that is run.
const LARGEST: i64 = 24;

/// Counts of a campaign.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// True dependences: two references, with the relation of every loop.
    pub true_ones: u64,
    /// Dependences that the analysis reported.
    pub reported: u64,
    /// Reported dependences that some run showed, possibly the run of their witness.
    pub seen: u64,
    /// Exact witnesses that do not depend on loaded values.
    pub exact: u64,
    /// Exact witnesses that were found in a run at their sizes.
    pub found: u64,
    /// Random queries that had a true answer.
    pub asked: u64,
    /// Loops and tensors for which no run showed a read of an element that its iteration did not write.
    pub private: u64,
    /// Loops and tensors that are proved private.
    pub killed: u64,
}

impl Counts {
    /// Adds the counts of another program.
    pub fn add(&mut self, other: &Counts) {
        self.true_ones += other.true_ones;
        self.reported += other.reported;
        self.seen += other.seen;
        self.exact += other.exact;
        self.found += other.found;
        self.asked += other.asked;
        self.private += other.private;
        self.killed += other.killed;
    }
}

/// Returns the fault in the analysis of a seed's program, shrunk.
pub fn fault(seed: u64, class: Class, counts: &mut Counts) -> Option<String> {
    let func = nest::nest(seed, class);
    problem(&func, seed, counts)?;
    let case = Case { func, inputs: Default::default() };
    let small = shrink(&case, &mut |c| problem(&c.func, seed, &mut Counts::default()).is_some());
    let what = problem(&small.func, seed, &mut Counts::default()).unwrap_or_default();
    Some(format!("seed {seed}, {class:?}: {what}\n{}", print::func(&small.func)))
}

/// Returns the fault in the analysis of a seed's program, of a class chosen by the seed.
pub fn either(seed: u64, all: &mut Counts) -> Option<String> {
    let class = [Class::Affine, Class::Wild, Class::Private][(seed % 3) as usize];
    let mut counts = Counts::default();
    let found = fault(seed, class, &mut counts);
    all.add(&counts);
    found
}

/// Identity of a reference in a run, without guards.
pub type Key = (StmtId, Symbol, Use, Option<Vec<Expr>>);

pub fn key(r: &Reference) -> Key {
    (r.site.stmt.id(), r.tensor.clone(), r.kind, r.indices.clone())
}

fn key_of(e: &Event) -> Key {
    let kind = match e.touch {
        Touch::Read => Use::Read,
        Touch::Write => Use::Write,
        Touch::Reduce(op) => Use::Reduce(op),
    };
    (e.instance.stmt, e.tensor.clone(), kind, Some(e.indices.to_vec()))
}

/// Returns the relation of the sink's iteration to the source's for every common loop; `None` where the directions of
/// the loop differ.
pub fn relations(a: &Instance, b: &Instance) -> Option<Vec<Relation>> {
    let relation = |(p, q): (&Iteration, &Iteration)| match (q.value - p.value) * p.step.signum() {
        _ if p.step.signum() != q.step.signum() => None,
        0 => Some(Relation::Same),
        d if d > 0 => Some(Relation::Later),
        _ => Some(Relation::Earlier),
    };
    a.loops.iter().zip(&b.loops).take_while(|(p, q)| p.stmt == q.stmt).map(relation).collect()
}

/// Calls `f` with every two accesses to one element by two instances, one of them writing, in order of execution.
pub fn pairs<'t>(trace: &'t Trace, f: &mut dyn FnMut(&'t Event, &'t Event)) {
    let mut elements: HashMap<(usize, &[i64]), Vec<&Event>> = HashMap::new();
    let mut left = MAX_PAIRS;
    for e in &trace.events {
        let same = elements.entry((e.allocation, &e.element)).or_default();
        for earlier in same.iter().rev() {
            if earlier.time != e.time && (earlier.touch != Touch::Read || e.touch != Touch::Read) {
                f(earlier, e);
                left -= 1;
                if left == 0 {
                    return;
                }
            }
        }
        same.push(e);
    }
}

fn allows(asked: Relation, found: Relation) -> bool {
    asked == Relation::Any || asked == found
}

/// Returns whether the answers contain this pair.
pub fn covered(answers: &HashMap<(Key, Key), Vec<Vec<Relation>>>, a: &Event, b: &Event, between: &[Relation]) -> bool {
    let fits = |r: &Vec<Relation>| r.len() == between.len() && r.iter().zip(between).all(|(x, y)| allows(*x, *y));
    answers.get(&(key_of(a), key_of(b))).is_some_and(|all| all.iter().any(fits))
}

pub fn by_pair(answers: &[Dependence]) -> HashMap<(Key, Key), Vec<Vec<Relation>>> {
    let mut out: HashMap<_, Vec<_>> = HashMap::new();
    for d in answers {
        let relations = d.loops.iter().map(|(_, r)| *r).collect();
        out.entry((key(&d.source), key(&d.sink))).or_default().push(relations);
    }
    out
}

pub fn commutes(a: &Event, b: &Event) -> bool {
    matches!((a.touch, b.touch), (Touch::Reduce(x), Touch::Reduce(y)) if x == y)
}

fn show(a: &Event, b: &Event) -> String {
    let one = |e: &Event| {
        let values: Vec<i64> = e.instance.loops.iter().map(|l| l.value).collect();
        format!("{:?} at {values:?}", e.touch)
    };
    format!("{} {:?}: {}, then {}", a.tensor, a.element, one(a), one(b))
}

/// Returns the fault in the analysis of a program.
pub fn problem(func: &Func, seed: u64, counts: &mut Counts) -> Option<String> {
    let analysis = Dependences::new(func);
    let run = |(sizes, fault): ([i64; 2], Fault), k: usize| {
        trace(func, &nest::inputs(func, &sizes, seed * 16 + k as u64), fault, MAX_EVENTS)
    };
    let runs: Vec<Trace> = RUNS.into_iter().enumerate().map(|(k, r)| run(r, k)).collect();
    let known: HashSet<Key> = analysis.references().iter().map(key).collect();
    if let Some(e) = runs.iter().flat_map(|t| &t.events).find(|e| !known.contains(&key_of(e))) {
        return Some(format!("no reference for {} {:?} {:?}", e.tensor, e.element, e.touch));
    }
    let answers = analysis.all(&DependenceQuery::default());
    let mut seen = vec![false; answers.len()];
    let wrong = everything(&runs, &answers, &mut seen, counts)
        .or_else(|| question(func, &analysis, &runs, seed, counts))
        .or_else(|| witnesses(func, &answers, seed, &mut seen, counts))
        .or_else(|| kills(func, &analysis, seed, counts));
    counts.reported += answers.len() as u64;
    counts.seen += seen.iter().filter(|s| **s).count() as u64;
    wrong
}

/// Checks that every true dependence is in the answer to the plain query.
fn everything(runs: &[Trace], answers: &[Dependence], shown: &mut [bool], counts: &mut Counts) -> Option<String> {
    let by = by_pair(answers);
    let mut seen: HashSet<(Key, Key, Vec<Relation>)> = HashSet::new();
    let mut wrong = None;
    for (trace, run) in runs.iter().zip(RUNS) {
        pairs(trace, &mut |a, b| {
            if commutes(a, b) {
                return;
            }
            let Some(between) = relations(&a.instance, &b.instance) else { return };
            if wrong.is_none() && seen.insert((key_of(a), key_of(b), between.clone())) && !covered(&by, a, b, &between)
            {
                wrong = Some(format!("not found at {run:?}: {}", show(a, b)));
            }
        });
    }
    counts.true_ones += seen.len() as u64;
    for (d, shown) in answers.iter().zip(shown) {
        let (source, sink) = (key(&d.source), key(&d.sink));
        let fits = |r: &[Relation]| d.loops.iter().zip(r).all(|((_, x), y)| allows(*x, *y));
        *shown = seen.iter().any(|(a, b, r)| *a == source && *b == sink && fits(r));
    }
    wrong
}

/// Small random number generator, for queries.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Condition on two iterators: `sink's q <op> source's p + by`.
#[derive(Clone, Copy, Debug)]
struct Shifted {
    p: StmtId,
    q: StmtId,
    by: i64,
    less: bool,
}

impl Shifted {
    fn exprs(&self, source: &Iterators<'_>, sink: &Iterators<'_>) -> Vec<Expr> {
        let (Some(p), Some(q)) = (source.of(self.p), sink.of(self.q)) else { return Vec::new() };
        let p = p.plus(&Expr::int(self.by));
        vec![if self.less { q.less(&p) } else { q.equals(&p) }]
    }

    fn holds(&self, source: &Instance, sink: &Instance) -> bool {
        let value = |i: &Instance, s: StmtId| i.loops.iter().find(|l| l.stmt == s).map(|l| l.value);
        match (value(source, self.p), value(sink, self.q)) {
            (Some(p), Some(q)) => {
                if self.less {
                    q < p + self.by
                } else {
                    q == p + self.by
                }
            }
            _ => true,
        }
    }
}

/// Checks that the answer to a random query contains all true dependences.
fn question(func: &Func, analysis: &Dependences<'_>, runs: &[Trace], seed: u64, counts: &mut Counts) -> Option<String> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut relate: HashMap<StmtId, Relation> = HashMap::new();
    let mut loops = Vec::new();
    func.body.walk(&mut |s| {
        if matches!(s.kind(), StmtKind::For { .. }) {
            use Relation::{Any, Earlier, Later, Same};
            relate.insert(s.id(), [Any, Any, Same, Same, Later, Earlier][random.below(6) as usize]);
            loops.push(s.id());
        }
    });
    let mut pick = || loops.get(random.below(loops.len().max(1) as u64) as usize).copied();
    let (p, q) = (pick()?, pick()?);
    let q = if random.below(2) == 0 { p } else { q };
    let shifted = Shifted { p, q, by: random.below(5) as i64 - 2, less: random.below(2) == 0 };
    let extra = |a: &Iterators<'_>, b: &Iterators<'_>| shifted.exprs(a, b);
    let order = if random.below(2) == 0 { Order::Either } else { Order::SourceFirst };
    let with_extra = random.below(3) > 0;
    let ask = DependenceQuery {
        relate: &|s| relate.get(&s.id()).copied().unwrap_or(Relation::Any),
        extra: if with_extra { Some(&extra) } else { None },
        order,
        commute: random.below(2) == 0,
        ..DependenceQuery::default()
    };
    let answers = analysis.all(&ask);
    if answers.is_empty() != analysis.first(&ask).is_none() {
        return Some(format!("`first` and `all` disagree about {relate:?} {shifted:?} {order:?}"));
    }
    let by = by_pair(&answers);
    let (mut wrong, mut any) = (None, false);
    for (trace, run) in runs.iter().zip(RUNS) {
        pairs(trace, &mut |first, second| {
            for (a, b) in [(first, second), (second, first)] {
                if b.time < a.time && order == Order::SourceFirst || ask.commute && commutes(a, b) || wrong.is_some() {
                    continue;
                }
                let Some(between) = relations(&a.instance, &b.instance) else { continue };
                let asked = a.instance.loops.iter().zip(&between).all(|(l, r)| allows(relate[&l.stmt], *r));
                if !asked || with_extra && !shifted.holds(&a.instance, &b.instance) {
                    continue;
                }
                any = true;
                if !covered(&by, a, b, &between) {
                    let asked = a.instance.loops.iter().map(|l| relate[&l.stmt]).collect::<Vec<_>>();
                    let extra = with_extra.then_some(shifted);
                    wrong = Some(format!("not found at {run:?} for {asked:?}, {extra:?}, {order:?}: {}", show(a, b)));
                }
            }
        });
    }
    counts.asked += u64::from(any);
    wrong
}

/// Checks that the conflicts of exact witnesses happen.
fn witnesses(func: &Func, answers: &[Dependence], seed: u64, seen: &mut [bool], counts: &mut Counts) -> Option<String> {
    let mut runs: HashMap<Vec<i64>, Trace> = HashMap::new();
    let exact = |d: &Dependence| d.witness.exact && d.witness.assumed.is_empty();
    for (d, seen) in answers.iter().zip(seen).filter(|(d, _)| exact(d)) {
        counts.exact += 1;
        let w = &d.witness;
        let sizes: Vec<i64> = func.sizes.iter().filter_map(|s| Some(w.sizes.iter().find(|(x, _)| x == s)?.1)).collect();
        if sizes.len() != func.sizes.len() || sizes.iter().any(|s| *s > LARGEST) {
            continue;
        }
        let trace = runs
            .entry(sizes.clone())
            .or_insert_with(|| trace(func, &nest::inputs(func, &sizes, seed), Fault::Stops, 20 * MAX_EVENTS));
        let instance = |e: &Event, r: &Reference, at: &[(Symbol, i64)]| {
            key_of(e) == key(r)
                && e.instance.loops.len() == at.len()
                && e.instance.loops.iter().zip(at).all(|(l, (_, v))| l.value == *v)
                && w.element.as_ref() == Some(&e.element)
        };
        let sources = || trace.events.iter().filter(|e| instance(e, &d.source, &w.source));
        let sinks = || trace.events.iter().filter(|e| instance(e, &d.sink, &w.sink));
        let together = |a: &Event| sinks().any(|b| a.allocation == b.allocation && a.time < b.time);
        if sources().any(together) {
            counts.found += 1;
            *seen = true;
        } else if trace.finished {
            // Otherwise the run stopped at an assertion elsewhere, or a subscript out of range.
            return Some(format!(
                "{} of {}: the witness at {sizes:?} is wrong: {:?}, then {:?}, element {:?} ({} and {} of them occur)",
                d.kind.short(),
                d.source.tensor,
                w.source,
                w.sink,
                w.element,
                sources().count(),
                sinks().count(),
            ));
        }
    }
    None
}

/// Checks that reads that are proved not to be exposed see no value from outside of an iteration.
fn kills(func: &Func, analysis: &Dependences<'_>, seed: u64, counts: &mut Counts) -> Option<String> {
    let sizes = [[1, 1], [2, 3], [3, 2], [4, 4], [6, 5]];
    let run =
        |(k, s): (usize, &[i64; 2])| trace(func, &nest::inputs(func, s, seed * 8 + k as u64), Fault::Stops, MAX_EVENTS);
    let runs: Vec<Trace> = sizes.iter().enumerate().map(run).collect();
    let mut loops = Vec::new();
    func.body.walk(&mut |s| loops.extend(matches!(s.kind(), StmtKind::For { .. }).then(|| s.clone())));
    for within in loops {
        let mut tensors: Vec<&Symbol> = Vec::new();
        for r in analysis.references() {
            if r.kind == Use::Write && r.site.inside(within.id()) && !tensors.contains(&&r.tensor) {
                tensors.push(&r.tensor);
            }
        }
        for tensor in tensors {
            let mut reads = 0;
            let shown = runs.iter().find_map(|t| exposed(t, tensor, within.id(), &mut reads));
            if reads == 0 {
                continue;
            }
            let killed = analysis.exposed_read(tensor, &within).is_none();
            counts.private += u64::from(shown.is_none());
            counts.killed += u64::from(killed);
            if let (true, Some(e)) = (killed, shown) {
                let text = print::stmt(&within);
                let head = text.lines().next().unwrap_or_default();
                let values: Vec<i64> = e.instance.loops.iter().map(|l| l.value).collect();
                return Some(format!(
                    "`{head}` should write every element before it reads it, but reads {tensor} {:?} at {values:?}",
                    e.element
                ));
            }
        }
    }
    None
}

/// Finds a read of an element that was not written before in the same iteration of the loop.
fn exposed<'t>(trace: &'t Trace, tensor: &Symbol, within: StmtId, reads: &mut u64) -> Option<&'t Event> {
    let mut written = HashSet::new();
    for e in trace.events.iter().filter(|e| e.tensor == *tensor) {
        let Some(at) = e.instance.loops.iter().position(|l| l.stmt == within) else { continue };
        let iteration: Vec<i64> = e.instance.loops[..=at].iter().map(|l| l.number).collect();
        let place = (iteration, e.allocation, &e.element);
        if e.touch == Touch::Write {
            written.insert(place);
        } else {
            *reads += 1;
            if !written.contains(&place) {
                return Some(e);
            }
        }
    }
    None
}
