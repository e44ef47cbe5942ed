//! Levels by their looplets: on random tensors in all formats, the looplets of the fibres yield exactly the stored
//! elements, the guarantees of levels hold, random access finds the same positions, and the facts of levels are true.

use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use taffeta_ast::format::{Format, LevelKind};
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, ExprKind, Literal, Symbol, Tensor, Value, scalar};
use taffeta_structured::testing::{self, Fibre, Looplet, Parent, Positions, Stepper, TensorLevel, TensorLevels};
use testkit::random;

/// Values of sizes, iterators and arrays.
#[derive(Clone)]
struct Scope {
    numbers: FxHashMap<Symbol, i64>,
    arrays: Arc<FxHashMap<Symbol, Value>>,
}

impl Scope {
    fn with(&self, name: &Symbol, number: i64) -> Scope {
        let mut scope = self.clone();
        scope.numbers.insert(name.clone(), number);
        scope
    }

    fn value(&self, e: &Expr) -> Literal {
        match e.kind() {
            ExprKind::Const(v) => *v,
            ExprKind::Var(s) => Literal::Int(self.numbers[s].into()),
            ExprKind::Load(t, at) => {
                let (array, k) = (self.arrays[t].data(), self.int(&at[0].index));
                assert!(
                    (0..array.len() as i64).contains(&k),
                    "index {k} of `{t}` is out of range for {} elements",
                    array.len()
                );
                array.get(k as usize)
            }
            ExprKind::Cast(inner) => scalar::cast(self.value(inner), inner.dtype(), e.dtype()).expect("it fits"),
            // An operand that the condition excludes must not be read.
            ExprKind::Apply(taffeta_ast::Op::And, args) => match self.value(&args[0]) {
                Literal::Bool(true) => self.value(&args[1]),
                no => no,
            },
            ExprKind::Apply(op, args) => {
                let args: Vec<Literal> = args.iter().map(|a| self.value(a)).collect();
                scalar::apply(*op, DType::I64, &args).expect("it has a value")
            }
            ExprKind::Measure(..) => unreachable!("nothing is measured"),
        }
    }

    fn int(&self, e: &Expr) -> i64 {
        match self.value(e) {
            Literal::Int(v) => v as i64,
            other => panic!("{other:?} is not an integer"),
        }
    }

    fn holds(&self, cond: &Expr) -> bool {
        self.value(cond) == Literal::Bool(true)
    }
}

/// Positions of each stored coordinate.
type Found = BTreeMap<i64, Vec<i64>>;

struct Reader<'a> {
    format: &'a Format,
    index: Symbol,
}

impl Reader<'_> {
    fn put(&self, found: &mut Found, at: i64, fibre: &Fibre, scope: &Scope) {
        if let Fibre::At(Positions { first, end }) = fibre {
            found.entry(at).or_default().extend(scope.int(first)..scope.int(end));
        }
    }

    fn assumed(&self, assumptions: &[Expr], scope: &Scope) {
        for promise in assumptions {
            assert!(scope.holds(promise), "{}: {promise:?} in {:?}", self.format, scope.numbers);
        }
    }

    /// Collects the content of a looplet at the coordinates from `begin` to `end`, exclusive.
    fn read(&self, looplet: &Looplet, [begin, end]: [i64; 2], scope: &Scope, found: &mut Found) {
        match looplet {
            Looplet::Run(fibre) => (begin..end).for_each(|i| self.put(found, i, fibre, scope)),
            Looplet::Spike(fibre) => {
                assert!(begin < end, "{}: a spike has a coordinate", self.format);
                self.put(found, end - 1, fibre, scope);
            }
            Looplet::Lookup(lookup) => {
                for i in begin..end {
                    let scope = scope.with(&self.index, i);
                    if lookup.stored.as_ref().is_none_or(|stored| scope.holds(stored)) {
                        self.assumed(&lookup.assumptions, &scope);
                        let fibre = Fibre::At(Positions::one(lookup.position.clone()));
                        self.put(found, i, &fibre, &scope);
                    }
                }
            }
            Looplet::Sequence(phases) => {
                let mut next = begin;
                for phase in phases {
                    let after = phase.end.as_ref().map_or(end, |e| scope.int(e));
                    assert!(next <= after && after <= end, "{}: a phase from {next} to {after}", self.format);
                    self.read(&phase.looplet, [next, after], scope, found);
                    next = after;
                }
                assert_eq!(next, end, "{}: the last phase ends where its looplet ends", self.format);
            }
            Looplet::Stepper(stepper) => self.step(stepper, [begin, end], scope, found),
            Looplet::Switch { cond, then, otherwise } => {
                self.read(if scope.holds(cond) { then } else { otherwise }, [begin, end], scope, found);
            }
        }
    }

    fn step(&self, s: &Stepper, [begin, end]: [i64; 2], scope: &Scope, found: &mut Found) {
        let mut next = begin;
        for position in scope.int(&s.begin)..scope.int(&s.end) {
            let scope = scope.with(&s.position, position);
            self.assumed(&s.assumptions, &scope);
            let last = scope.int(&s.last);
            assert!(begin <= last && last < end, "{}: {last} is in the dimension", self.format);
            // `pack` also sorts levels that allow any order; a position that repeats the coordinate of its predecessor
            // has no other coordinate.
            let first = if !s.ordered || !s.unique && last + 1 == next { last } else { next };
            assert!(first <= last, "{}: coordinates rise", self.format);
            self.read(&s.body, [first, last + 1], &scope, found);
            next = last + 1;
        }
        assert!(!s.full || next == end, "{}: it ends with the dimension", self.format);
    }
}

/// Finds the position of a coordinate in a hash table.
fn searched(level: &TensorLevel, above: i64, coordinate: i64, scope: &Scope) -> Option<i64> {
    let load = |array: usize, at: i64| scope.int(&level.load(array, &Expr::int(at)));
    let begin = load(2, above);
    let mask = load(2, above + 1) - begin - 1;
    let mut s = testing::slot(coordinate, mask);
    loop {
        match load(3, begin + s) {
            0 => return None,
            p if load(1, p - 1) == coordinate => return Some(p - 1),
            _ => s = (s + 1) & mask,
        }
    }
}

/// Reads one fibre, checks the facts of its level, and checks that random access agrees with its coordinates.
fn fibre(flat: &TensorLevels, k: usize, above: &Parent, scope: &Scope) -> Found {
    let level = &flat.levels[k];
    let reader = Reader { format: &flat.tensor.format, index: Symbol::new("i") };
    let (index, position) = (Expr::var(&reader.index), Symbol::new("p"));
    let size = scope.int(&level.size);
    let mut found = Found::new();
    reader.read(&testing::fibre(level, above, &index, &position), [0, size], scope, &mut found);

    let facts = level.level.facts();
    let format = &flat.tensor.format;
    if facts.full {
        assert!(found.keys().copied().eq(0..size), "{format} is full");
    }
    if facts.unique {
        assert!(found.values().all(|p| p.len() == 1), "{format} is unique");
    }
    if facts.branchless {
        let own = scope.int(&above.positions.first)..scope.int(&above.positions.end);
        assert!(found.values().flatten().copied().eq(own), "{format} is branchless");
    }
    if facts.injective {
        let all: Vec<i64> = found.values().flatten().copied().collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{format} is injective");
    }
    let mut can = level.level.kind == LevelKind::Hashed;
    for i in 0..size {
        let at = Expr::int(i);
        let own = found.get(&i).map(|p| p[0]);
        if let Some(lookup) = testing::lookup(level, above, &at) {
            can = true;
            let stored = lookup.stored.as_ref().is_none_or(|stored| scope.holds(stored));
            assert_eq!(stored.then(|| scope.int(&lookup.position)), own, "{format}: random access to {i}");
            if stored {
                reader.assumed(&lookup.assumptions, scope);
            }
        }
        if let Some(position) = testing::located(level, above, &at) {
            assert_eq!(Some(scope.int(&position)), own, "{format}: {i} is located");
        }
        if level.level.kind == LevelKind::Hashed {
            assert_eq!(searched(level, scope.int(&above.positions.first), i, scope), own, "{format}: {i} is found");
        }
    }
    assert!(size == 0 || can == facts.random_access, "{format}: random access is a fact of level {k}");
    found
}

fn constant(above: &[i64], coordinate: i64) -> Parent {
    let (first, last) = (above[0], above[above.len() - 1]);
    assert_eq!(last - first + 1, above.len() as i64, "positions of one coordinate are consecutive");
    let positions = Positions { first: Expr::int(first), end: Expr::int(last + 1) };
    Parent { positions, coordinate: Expr::int(coordinate) }
}

fn check(random::Drawn { format, stored, given }: random::Drawn) {
    let shape = given.shape().iter().map(|n| Expr::int(*n as i64)).collect();
    let tensor = Tensor { format: format.clone(), ..Tensor::dense(Symbol::new("A"), DType::F64, shape, Role::Input) };
    let mut hidden = Vec::new();
    let flat = TensorLevels::of(&Arc::new(tensor), &mut hidden).expect("every level has its arrays");
    let arrays: Vec<_> = flat.arrays().into_iter().map(|a| a.tensor).collect();
    let values = arrays.iter().zip(stored.arrays()).map(|(t, v)| (t.symbol.clone(), v.clone())).collect();
    let numbers = hidden.iter().cloned().zip(stored.hidden().iter().copied()).collect();
    let scope = Scope { numbers, arrays: Arc::new(values) };
    for (t, v) in arrays.iter().zip(stored.arrays()) {
        assert_eq!((scope.int(&t.shape[0]), t.dtype), (v.data().len() as i64, v.data().dtype()), "{format}: {t:?}");
    }

    let lows: Vec<i64> = flat.levels.iter().map(|l| scope.int(&l.low)).collect();
    let raw = |path: &[i64]| path.iter().zip(&lows).map(|(c, low)| c + low).collect::<Vec<_>>();
    // Fibres with the coordinates on the path to them, from the outside in.
    let mut open: Vec<(Vec<i64>, Parent)> = vec![(Vec::new(), constant(&[0], 0))];
    let mut compact = true;
    for (k, level) in flat.levels.iter().enumerate() {
        let mut reached = BTreeSet::new();
        let mut inner = Vec::new();
        for (path, above) in &open {
            for (i, positions) in match format.derived(k).filter(|_| level.level.kind == LevelKind::Offset) {
                None => fibre(&flat, k, above, &scope),
                // Random access finds any coordinate at this position; only the derived one is looked up.
                Some(by) => {
                    let own = by.value(&raw(path)).expect("it is small") - lows[k];
                    Found::from([(own, vec![scope.int(&above.positions.first)])])
                }
            } {
                reached.extend(positions.iter().copied());
                // In a list without order, a coordinate may recur after others.
                for row in positions.chunk_by(|a, b| a + 1 == *b) {
                    assert!(
                        !level.level.ordered || row.len() == positions.len(),
                        "{format}: positions of one coordinate are consecutive"
                    );
                    inner.push((path.iter().copied().chain([i]).collect(), constant(row, i)));
                }
            }
        }
        let count = scope.int(&level.positions);
        compact &= level.level.facts().compact;
        assert!(!compact || reached.iter().copied().eq(0..count), "{format}: level {k} is compact");
        open = inner;
    }
    let mut found: Vec<(Vec<i64>, f64)> = Vec::new();
    let Some(all) = stored.arrays().last() else { unreachable!("the elements come last") };
    for (path, above) in open {
        let by = format.indices(given.shape().len());
        let at: Vec<i64> = by.iter().map(|c| c.as_ref().and_then(|c| c.value(&raw(&path))).expect("known")).collect();
        // Levels that store regions extend beyond the tensor.
        if !at.iter().zip(given.shape()).all(|(i, n)| (0..*n as i64).contains(i)) {
            continue;
        }
        found.push((at, all.data().get_f64(scope.int(&above.positions.first) as usize)));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let elements = stored.elements();
    let places = elements.places().expect("it is sparse");
    let indices: Vec<i64> = found.iter().flat_map(|(at, _)| at.iter().copied()).collect();
    assert_eq!(places.indices, indices, "{format}");
    for (k, (at, v)) in found.iter().enumerate() {
        assert!(random::equal(*v, elements.data().get_f64(k)), "{format}: {at:?}");
    }
}

#[test]
fn the_looplets_of_one_level() {
    random::formats(1).iter().for_each(|f| (0..100).for_each(|seed| check(random::tensor(f, seed))));
}

#[test]
fn the_looplets_of_two_levels() {
    random::formats(2).iter().for_each(|f| (0..30).for_each(|seed| check(random::tensor(f, seed))));
}

#[test]
fn the_looplets_of_three_levels() {
    random::formats(3).iter().enumerate().for_each(|(k, f)| check(random::tensor(f, k as u64)));
}

#[test]
fn the_looplets_of_remapped_levels() {
    // (Slots are traversed fibre by fibre, not in storage order.)
    let all = random::remapped().into_iter().filter(|f| f.levels.iter().all(|l| l.kind != LevelKind::Sliced));
    all.for_each(|f| (0..100).for_each(|seed| check(random::remapped_matrix(&f, seed))));
}
