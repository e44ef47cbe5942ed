//! Assembly of tensors, level by level: statements that add elements, in the order of the levels, to arrays that grow
//! with them (TACO's level functions, Chou, Kjolstad and Amarasinghe 2018, 3.3, and those of format conversion, Chou,
//! Kjolstad and Amarasinghe 2020, 6).
//!
//! The position of a coordinate is *appended*, the next one of a list of coordinates, blocks or runs; or *computed*
//! from the position above. Lists have first positions, one for each parent; those of all parents up to the present one
//! are set when a coordinate is entered ([`AssembledArrays::opened`]):
//!
//! ```text
//! for r in range(C.opened1, p + 1): C.pos1[r] = C.n1
//! C.opened1 = p + 1
//! ```
//!
//! Where each element may have another parent, the elements mark where their parents' fibres end, without a branch, and
//! parents without elements get theirs at the end ([`Path::list`]):
//!
//! ```text
//! C.pos1[C.opened1] = C.n1                                                  before each element
//! C.pos1[p + 1] = C.n1; C.opened1 = p + 1                                   behind each element
//! for r in range(n): C.pos1[r + 1] = max(C.pos1[r + 1], C.pos1[r])          behind all
//! ```

use crate::level::{ArrayKind, Counts, Parent, TensorLevel};
use crate::looplet::Positions;
use std::sync::Arc;
use taffeta_ast::stmt::{AssertKind, LoopProps, MessagePart, Routine};
use taffeta_ast::{DType, Expr, ExprKind, Extent, Op, Origin, Stmt, StmtKind, Symbol, Tensor};

/// Statements that add elements to a level, in the order of the levels.
pub(crate) trait LevelAssembly: Sync {
    /// Returns the kinds of local arrays beside those of the level, which are [`AssembledLevel::extras`].
    fn extras(&self) -> &'static [ArrayKind] {
        &[]
    }

    /// Returns the names of counts beside the level's, which follow these in [`AssembledLevel::counts`].
    fn extra_counts(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the length of a local array of values, the last one of the extra arrays.
    fn extra_values(&self) -> Option<fn(&Counts) -> Expr> {
        None
    }

    /// Returns the initial element of an array of the level, or, behind these, of an extra one; `None` if every element
    /// is stored later.
    fn initial(&self, level: &TensorLevel, array: usize) -> Option<Expr> {
        let _ = (level, array);
        None
    }

    /// Returns whether neighbours with equal values are joined, so that a run may be entered as one ([`Path::run_end`]).
    fn joins(&self) -> bool {
        false
    }

    /// Returns whether elements must come in the order of their coordinates.
    fn is_ordered(&self) -> bool {
        true
    }

    /// Returns whether a position is computed from the coordinate, the position above and sizes alone.
    fn is_computed(&self) -> bool {
        false
    }

    /// Returns whether first positions are set as elements come ([`AssembledArrays::opened`]).
    fn opens(&self) -> bool {
        true
    }

    /// Returns whether an element adds at most one position.
    fn adds_one(&self) -> bool {
        false
    }

    /// Returns whether positions may have no element.
    fn fills(&self) -> bool {
        false
    }

    /// Returns whether positions depend on all elements ([`LevelAssembly::query`]).
    fn has_query(&self) -> bool {
        false
    }

    /// Returns the largest index that the level stores for this coordinate; `None` if it stores none, or checks it.
    fn largest(&self, coordinate: &Expr) -> Option<Expr> {
        Some(coordinate.clone())
    }

    /// Returns whether the level stores the size of the dimension beside the coordinates.
    fn stores_size(&self) -> bool {
        false
    }

    /// Adds a coordinate below the position that the path has reached, and moves on to its position.
    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr);

    /// Completes the fibre of a parent; the first positions of later ones are not set yet.
    fn finish(&self, assembly: &AssembledArrays, k: usize, parent: &Expr, origin: &Origin) -> Option<Stmt> {
        let _ = (assembly, k, parent, origin);
        None
    }

    /// Completes the level after its last fibre.
    fn close(&self, assembly: &AssembledArrays, k: usize, origin: &Origin) -> Option<Stmt> {
        let _ = (assembly, k, origin);
        None
    }

    /// Records an element's coordinate before elements are entered. The path has the position above where that is
    /// computed.
    fn query(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        let _ = (path, k, coordinate);
    }

    /// Numbers positions by the recorded coordinates.
    fn decide(&self, assembly: &AssembledArrays, k: usize, origin: &Origin) -> Option<Stmt> {
        let _ = (assembly, k, origin);
        None
    }
}

impl std::fmt::Debug for dyn LevelAssembly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LevelAssembly")
    }
}

/// Level of a tensor that the program makes.
#[derive(Debug)]
pub(crate) struct AssembledLevel {
    /// Level.
    pub(crate) level: TensorLevel,
    /// How elements are added to it.
    pub(crate) how: &'static dyn LevelAssembly,
    /// Scalars: numbers of positions, blocks, slots, in the order of [`crate::level::LevelFormat::hidden`].
    pub(crate) counts: Vec<Arc<Tensor>>,
    /// Scalar: number of parents whose first position is set; `None` in levels without first positions.
    pub(crate) opened: Option<Arc<Tensor>>,
    /// Number of positions above.
    pub(crate) parents: Expr,
    /// Local arrays.
    pub(crate) extras: Vec<Arc<Tensor>>,
    /// Type of the indices, if the level stores any beside positions.
    pub(crate) index: Option<DType>,
    /// Whether each element has a position of its own here: no level below distinguishes elements.
    pub(crate) is_last: bool,
}

/// Arrays that grow together.
#[derive(Debug)]
pub(crate) struct Room {
    /// Scalar: length of the arrays.
    pub(crate) length: Arc<Tensor>,
    /// Number of elements in use, in terms of the counts.
    pub(crate) used: Expr,
    /// Arrays, with their initial elements.
    pub(crate) arrays: Vec<(Arc<Tensor>, Option<Expr>)>,
}

/// Arrays of a tensor that the program makes, and the scalars that count their elements.
#[derive(Debug)]
pub(crate) struct AssembledArrays {
    /// Levels, in the order in which they are stored.
    pub(crate) levels: Vec<AssembledLevel>,
    /// Arrays that grow.
    pub(crate) rooms: Vec<Room>,
    /// Arrays whose lengths are known before, with their initial elements.
    pub(crate) fixed: Vec<(Arc<Tensor>, Option<Expr>)>,
    /// Values.
    pub(crate) values: Arc<Tensor>,
    /// Value of elements that are not stored.
    pub(crate) fill: Expr,
    /// Scalar: value of the element being added, if its position depends on it.
    pub(crate) value: Option<Arc<Tensor>>,
}

impl AssembledArrays {
    /// Builds the statements that make room for `by` more positions than a scalar counts, and begin these.
    pub(crate) fn extended(&self, count: &Tensor, by: &Expr, origin: &Origin) -> Vec<Stmt> {
        self.begun_positions(count, by, false, origin)
    }

    /// Builds the statements that make room for `by` more positions than a scalar counts.
    pub(crate) fn reserved(&self, count: &Tensor, by: &Expr, origin: &Origin) -> Vec<Stmt> {
        let new = count.load([]).plus(by);
        let rooms = self.rooms.iter().filter(|room| counts(&room.used, count));
        rooms.map(|room| room.resized(Routine::Grow, &with_count(&room.used, count, &new), origin)).collect()
    }

    /// Begins `by` more positions than a scalar counts; there is room if they are reserved.
    fn begun_positions(&self, count: &Tensor, by: &Expr, is_reserved: bool, origin: &Origin) -> Vec<Stmt> {
        let old = count.load([]);
        let mut all = vec![assume(Expr::int(0).less_eq(&old), origin)];
        all.push(assume(old.less(&Expr::int(taffeta_ast::value::MAX_SIZE)), origin));
        let new = old.plus(by);
        for room in self.rooms.iter().filter(|room| counts(&room.used, count)) {
            let used = with_count(&room.used, count, &new);
            if !is_reserved {
                all.push(room.resized(Routine::Grow, &used, origin));
            }
            let one = by.as_int() == Some(1) && room.used == old;
            let length = room.length.load([]);
            all.push(assume(if one { old.less(&length) } else { used.less_eq(&length) }, origin));
            let added = [room.used.clone(), used];
            all.extend(room.arrays.iter().filter_map(|(array, first)| initial(array, first.as_ref()?, &added, origin)));
        }
        all
    }

    /// Builds the statement that sets the first positions of all parents before `end` in level `k`, if it has any.
    pub(crate) fn opened(
        &self,
        how: &dyn LevelAssembly,
        (tensor, k): (&Symbol, usize),
        end: &Expr,
        origin: &Origin,
    ) -> Option<Stmt> {
        let own = &self.levels[k];
        let scalar = own.opened.as_ref()?;
        let r = iterator_of(tensor, "r");
        let opened = scalar.load([]);
        let previous = Expr::var(&r).minus(&Expr::int(1));
        let finished = how.finish(self, k, &previous, origin).map(|then| {
            let cond = Expr::int(0).less(&Expr::var(&r));
            Stmt::new(StmtKind::If { cond, then, otherwise: None }, origin.clone())
        });
        let first = store_at(&own.level.arrays[0], &Expr::var(&r), own.counts[0].load([]), origin.clone());
        let body = Stmt::seq(finished.into_iter().chain([first]), origin.clone());
        let all = [
            assume(Expr::int(0).less_eq(&opened), origin),
            range(&r, [opened, end.clone()], body, origin),
            set(scalar, end.clone(), origin),
        ];
        Some(Stmt::seq(all, origin.clone()))
    }

    /// Returns whether an element of level `k` may mark the end of its parent's fibre ([`Path::list`]): there is room for
    /// the ends of all fibres, and nothing else is done where a fibre ends.
    pub(crate) fn may_mark(&self, how: &dyn LevelAssembly, k: usize) -> bool {
        let own = &self.levels[k];
        let is_first = |(array, _): &(Arc<Tensor>, Option<Expr>)| array.symbol == own.level.arrays[0].symbol;
        let finishes = || how.finish(self, k, &Expr::int(0), &Origin::none()).is_some();
        own.opened.is_some() && own.is_last && how.adds_one() && self.fixed.iter().any(is_first) && !finishes()
    }

    /// Builds the statement that sets all first positions of level `k` to 0, before elements mark the ends of fibres.
    pub(crate) fn unmarked(&self, k: usize, origin: &Origin) -> Option<Stmt> {
        let first = &self.levels[k].level.arrays[0];
        initial(first, &Expr::int(0), &[Expr::int(0), first.shape[0].clone()], origin)
    }

    /// Builds the loop that sets the first positions of level `k` from the marked ends of fibres, and returns its iterator
    /// too. It changes nothing where no element marks one.
    pub(crate) fn collected_ends(&self, k: usize, origin: &Origin) -> (Symbol, Stmt) {
        let own = &self.levels[k];
        let first = &own.level.arrays[0];
        let r = iterator_of(&first.symbol, "r");
        let next = Expr::var(&r).plus(&Expr::int(1));
        let end = own.level.load(0, &next).max_with(&own.level.load(0, &Expr::var(&r)));
        let body = store_at(first, &next, end, origin.clone());
        (r.clone(), range(&r, [Expr::int(0), own.parents.clone()], body, origin))
    }

    /// Returns whether positions depend on all elements.
    pub(crate) fn has_query(&self) -> bool {
        self.levels.iter().any(|own| own.how.has_query())
    }

    /// Builds the statements that number positions by the recorded coordinates.
    pub(crate) fn decided(&self, origin: &Origin) -> Vec<Stmt> {
        self.levels.iter().enumerate().filter_map(|(k, own)| own.how.decide(self, k, origin)).collect()
    }

    /// Builds the statements that make all arrays as long as they have elements.
    pub(crate) fn fitted(&self, origin: &Origin) -> Vec<Stmt> {
        self.rooms.iter().map(|room| room.resized(Routine::Fit, &room.used, origin)).collect()
    }

    /// Builds the statements that begin a tensor without elements; its arrays are declared, and as long as `rooms` say:
    /// not at all.
    pub(crate) fn begun(&self, origin: &Origin) -> Vec<Stmt> {
        let mut all = Vec::new();
        for level in &self.levels {
            all.extend(level.opened.iter().chain(&level.counts).map(|scalar| set(scalar, Expr::int(0), origin)));
        }
        for room in &self.rooms {
            let none = |e: &Expr, level: &AssembledLevel| {
                level.counts.iter().fold(e.clone(), |e, count| with_count(&e, count, &Expr::int(0)))
            };
            let used = taffeta_ast::poly::tidy(&self.levels.iter().fold(room.used.clone(), |e, level| none(&e, level)));
            if used.as_int() != Some(0) {
                all.push(room.resized(Routine::Grow, &used, origin));
                let added = [Expr::int(0), used];
                all.extend(room.arrays.iter().filter_map(|(t, first)| initial(t, first.as_ref()?, &added, origin)));
            }
        }
        let whole = |(array, first): &(Arc<Tensor>, Option<Expr>)| {
            initial(array, first.as_ref()?, &[Expr::int(0), array.shape[0].clone()], origin)
        };
        all.extend(self.fixed.iter().filter_map(whole));
        all
    }

    /// Returns the scalars of the tensor: those that must be 0 before its arrays are declared, and all others.
    pub(crate) fn scalars(&self) -> (Vec<&Arc<Tensor>>, Vec<&Arc<Tensor>>) {
        let own = self.levels.iter().flat_map(|level| level.opened.iter().chain(&level.counts));
        (self.rooms.iter().map(|room| &room.length).collect(), own.chain(&self.value).collect())
    }

    /// Returns the arrays.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = &Arc<Tensor>> {
        let growing = self.rooms.iter().flat_map(|room| room.arrays.iter());
        growing.chain(&self.fixed).map(|(array, _)| array)
    }
}

impl Room {
    fn resized(&self, routine: Routine, to: &Expr, origin: &Origin) -> Stmt {
        let arrays = self.arrays.iter().map(|(array, _)| &array.symbol);
        let tensors = std::iter::once(&self.length.symbol).chain(arrays).cloned().collect();
        Stmt::new(StmtKind::Call { routine, tensors, operands: vec![to.clone()] }, origin.clone())
    }
}

/// Path of an element from level to level.
pub(crate) struct Path<'a> {
    /// Tensor.
    pub(crate) tensor: &'a Symbol,
    /// Its arrays.
    pub(crate) assembly: &'a AssembledArrays,
    /// Origin of the statements.
    pub(crate) origin: Origin,
    /// First level, and the coordinates from it on.
    pub(crate) from: usize,
    pub(crate) coordinates: &'a [Expr],
    /// Counts of positions for which there is room, and levels whose first positions are set.
    pub(crate) reserved: &'a [Symbol],
    pub(crate) opened: &'a [(Symbol, usize)],
    /// Position in the level above, at last that of the value.
    pub(crate) position: Expr,
    /// Coordinate in the level above.
    pub(crate) coordinate: Expr,
    /// End of the run of equal elements that begins with this one, in a level that joins them.
    pub(crate) run_end: Option<Expr>,
    /// Statements before the value is stored.
    pub(crate) all: Vec<Stmt>,
    /// Statements after the value is stored.
    pub(crate) last: Vec<Stmt>,
    /// Level in which the element marks the end of its parent's fibre.
    pub(crate) marked: Option<usize>,
}

impl<'a> Path<'a> {
    /// Begins a path at the first level.
    pub(crate) fn new(
        tensor: &'a Symbol,
        assembly: &'a AssembledArrays,
        coordinates: &'a [Expr],
        origin: &Origin,
    ) -> Path<'a> {
        let [position, coordinate] = [(); 2].map(|()| Expr::int(0));
        let (all, last, origin) = (Vec::new(), Vec::new(), origin.clone());
        let (reserved, opened, run_end, marked) = (&[], &[], None, None);
        let from = 0;
        #[rustfmt::skip]
        let path = Path {
            tensor, assembly, origin, from, coordinates, reserved, opened, position, coordinate, run_end, all, last, marked,
        };
        path
    }

    /// Returns the parent of the next level's fibre.
    pub(crate) fn parent(&self) -> Parent {
        Parent { positions: Positions::one(self.position.clone()), coordinate: self.coordinate.clone() }
    }

    /// Returns the value of the element, of a tensor with [`AssembledArrays::value`].
    pub(crate) fn value(&self) -> Expr {
        self.assembly.value.as_ref().map_or(self.assembly.fill.clone(), |value| value.load([]))
    }

    /// Assumes that the path's position is in an array.
    pub(crate) fn assume_in(&mut self, array: &Tensor) {
        let inside = Expr::int(0).less_eq(&self.position).and(&self.position.less(&array.shape[0]));
        self.all.push(assume(inside, &self.origin));
    }

    /// Stores an element of an array of level `k`.
    pub(crate) fn store(&mut self, k: usize, array: usize, at: &Expr, value: Expr) {
        self.all.push(store_at(&self.assembly.levels[k].level.arrays[array], at, value, self.origin.clone()));
    }

    /// Adds a branch.
    pub(crate) fn branch(&mut self, cond: Expr, then: Vec<Stmt>, otherwise: Vec<Stmt>) {
        self.all.push(branch(cond, then, otherwise, &self.origin));
    }

    /// Returns whether the first positions of all parents up to the present one are set.
    fn is_open(&self, k: usize) -> bool {
        self.opened.iter().any(|(tensor, level)| (tensor, *level) == (self.tensor, k))
    }

    /// Sets the first positions of all parents up to the present one.
    pub(crate) fn open(&mut self, how: &dyn LevelAssembly, k: usize) {
        if self.is_open(k) {
            return;
        }
        let end = self.position.plus(&Expr::int(1));
        self.all.extend(self.assembly.opened(how, (self.tensor, k), &end, &self.origin));
    }

    /// Sets the first position of the first parent that has none. The element before may be in a fibre that was opened,
    /// which has no mark at its end.
    fn mark_start(&mut self, k: usize) {
        let own = &self.assembly.levels[k];
        let Some(opened) = own.opened.as_ref().map(|opened| opened.load([])) else { return };
        let first = &own.level.arrays[0];
        let inside = Expr::int(0).less_eq(&opened).and(&opened.less(&first.shape[0]));
        self.all.push(assume(inside, &self.origin));
        self.all.push(store_at(first, &opened, own.counts[0].load([]), self.origin.clone()));
    }

    /// Enters a coordinate in the list whose coordinates are in the array `crd` of level `k`: appends it, unless it is
    /// the last one and levels below distinguish elements.
    pub(crate) fn list(&mut self, how: &dyn LevelAssembly, k: usize, crd: usize, coordinate: &Expr) {
        let own = &self.assembly.levels[k];
        let count = &own.counts[0];
        let parent = self.position.clone();
        let one = Expr::int(1);
        match self.is_open(k) || !self.assembly.may_mark(how, k) {
            true => self.open(how, k),
            false => {
                self.marked = Some(k);
                self.mark_start(k);
            }
        }
        let is_reserved = self.reserved.contains(&count.symbol);
        let mut append = self.assembly.begun_positions(count, &one, is_reserved, &self.origin);
        append.push(store_at(&own.level.arrays[crd], &count.load([]), coordinate.clone(), self.origin.clone()));
        let more = set(count, count.load([]).plus(&one), &self.origin);
        if own.is_last {
            self.all.extend(append);
            self.position = count.load([]);
            self.last.push(more);
            if self.marked == Some(k)
                && let Some(opened) = &own.opened
            {
                let end = parent.plus(&one);
                self.last.push(store_at(&own.level.arrays[0], &end, count.load([]), self.origin.clone()));
                self.last.push(set(opened, end, &self.origin));
            }
            return;
        }
        append.push(more);
        // Below a level that is not unique, `singleton` levels distinguish positions.
        let previous = count.load([]).minus(&one);
        let mut is_same = own.level.load(crd, &previous).equals(coordinate);
        let levels = &self.assembly.levels[k..];
        for (below, own) in levels.windows(2).take_while(|pair| !pair[0].level.level.unique).map(|p| &p[1]).enumerate()
        {
            let next = &self.coordinates[k + 1 + below - self.from];
            is_same = is_same.and(&own.level.load(0, &previous).equals(next));
        }
        let is_first = count.load([]).equals(&own.level.load(0, &parent));
        self.branch(is_first.or(&is_same.negate()), append, Vec::new());
        self.position = previous;
    }

    /// Checks a condition under which the element can be stored; the message says that the tensor's level `text` where
    /// it does not hold.
    pub(crate) fn check(&mut self, cond: Expr, k: usize, coordinate: &Expr, text: &str) {
        let level = self.assembly.levels[k].level.level;
        let mut message = vec![MessagePart::Text(format!("cannot store the element of `{}` at (", self.tensor))];
        message.extend(self.indices(k, coordinate));
        message.push(MessagePart::Text(format!("): `{level}` {text}")));
        self.all.push(Stmt::new(StmtKind::Assert { cond, message, kind: AssertKind::Storage }, self.origin.clone()));
    }

    /// Lists the indices of the element, `…` for those that are not known, given its coordinate in level `k`.
    fn indices(&self, k: usize, coordinate: &Expr) -> Vec<MessagePart> {
        let known = |l: usize| match l {
            l if l == k => Some(coordinate.clone()),
            l if l >= self.from => self.coordinates.get(l - self.from).cloned(),
            l if l + 1 == k => Some(self.coordinate.clone()),
            _ => None,
        };
        let levels = self.assembly.levels.iter().enumerate();
        let mut all: Vec<(Option<usize>, Option<Expr>)> =
            levels.map(|(l, own)| (own.level.dimension(), known(l))).collect();
        all.sort_by_key(|(d, _)| *d);
        let mut message = Vec::new();
        for (_, index) in all {
            message.extend((!message.is_empty()).then(|| MessagePart::Text(", ".to_string())));
            message.push(index.map_or(MessagePart::Text("…".to_string()), MessagePart::Value));
        }
        message
    }

    /// Builds the check that an index of the element's coordinate in level `k` fits in its type, if that is u8 or u16:
    /// the dimension may be larger than their range.
    pub(crate) fn index_check(&self, k: usize, coordinate: &Expr, index: &Expr) -> Option<Stmt> {
        let AssembledLevel { level, index: own, .. } = &self.assembly.levels[k];
        let dtype = own.filter(|dtype| matches!(dtype, DType::U8 | DType::U16))?;
        let most = largest(dtype);
        if level.size.as_int().is_some_and(|size| size <= most) {
            return None;
        }
        let place = level.dimension().map_or_else(String::new, |d| format!(" in dimension {d}"));
        let message = vec![
            MessagePart::Text(format!("an element of `{}` has index ", self.tensor)),
            MessagePart::Value(coordinate.clone()),
            MessagePart::Text(format!("{place}, too large for indices of type {dtype}: write `index=i32`")),
        ];
        let cond = index.less_eq(&Expr::int(most));
        Some(Stmt::new(StmtKind::Assert { cond, message, kind: AssertKind::Index }, self.origin.clone()))
    }
}

/// Returns the largest number of an index type.
pub(crate) fn largest(dtype: DType) -> i64 {
    match dtype {
        DType::U8 => i64::from(u8::MAX),
        DType::U16 => i64::from(u16::MAX),
        DType::I32 => i64::from(i32::MAX),
        _ => i64::MAX,
    }
}

/// Returns whether an expression mentions a count.
fn counts(e: &Expr, count: &Tensor) -> bool {
    e.any(&mut |e| matches!(e.kind(), ExprKind::Load(t, _) if *t == count.symbol))
}

/// Replaces a count in an expression.
fn with_count(e: &Expr, count: &Tensor, by: &Expr) -> Expr {
    match e.kind() {
        ExprKind::Load(t, _) if *t == count.symbol => by.clone(),
        _ => e.map_children(&mut |e| with_count(e, count, by)),
    }
}

/// Builds the loop that gives the elements of a range their initial value.
fn initial(array: &Tensor, first: &Expr, [begin, end]: &[Expr; 2], origin: &Origin) -> Option<Stmt> {
    let q = iterator_of(&array.symbol, "q");
    let one = taffeta_ast::poly::tidy(&end.minus(begin)).as_int() == Some(1);
    let at = if one { begin.clone() } else { Expr::var(&q) };
    let inside = begin.less_eq(&at).and(&at.less(&array.shape[0]));
    let body = [assume(inside, origin), store_at(array, &at, first.clone(), origin.clone())];
    let body = Stmt::seq(body, origin.clone());
    Some(if one { body } else { range(&q, [begin.clone(), end.clone()], body, origin) })
}

/// Returns the condition that two elements are the same: a NaN is the same as a NaN, and 0 is not the same as -0.
pub(crate) fn is_same(a: &Expr, b: &Expr) -> Expr {
    if !a.dtype().is_float() {
        return a.equals(b);
    }
    let (zero, one) = (Expr::float(0.0, a.dtype()), Expr::float(1.0, a.dtype()));
    let nan = |e: &Expr| Expr::apply(Op::IsNan, vec![e.clone()]);
    let inverse = |e: &Expr| Expr::apply(Op::Div, vec![one.clone(), e.clone()]);
    let zeros = b.equals(&zero).and(&inverse(a).equals(&inverse(b)));
    a.equals(&zero).select(&zeros, &a.equals(b).or(&nan(a).and(&nan(b))))
}

/// Returns an iterator named after a tensor. The text of a program allows one dot in a name.
pub(crate) fn iterator_of(tensor: &Symbol, what: &str) -> Symbol {
    Symbol::new(format!("{}.{what}", tensor.name().replace('.', "_")))
}

/// Builds the store of an element of a vector.
pub(crate) fn store_at(tensor: &Tensor, at: &Expr, value: Expr, origin: Origin) -> Stmt {
    let (symbol, indices) = (tensor.symbol.clone(), vec![at.clone().into()]);
    Stmt::new(StmtKind::Store { tensor: symbol, indices, value: value.cast(tensor.dtype) }, origin)
}

/// Builds the store of a scalar.
pub(crate) fn set(scalar: &Tensor, value: Expr, origin: &Origin) -> Stmt {
    let kind = StmtKind::Store { tensor: scalar.symbol.clone(), indices: Vec::new(), value };
    Stmt::new(kind, origin.clone())
}

pub(crate) fn assume(cond: Expr, origin: &Origin) -> Stmt {
    Stmt::new(StmtKind::Assume { cond }, origin.clone())
}

/// Builds a loop with step 1.
pub(crate) fn range(iter: &Symbol, [begin, end]: [Expr; 2], body: Stmt, origin: &Origin) -> Stmt {
    let extent = Extent::Range { begin, end, step: Expr::int(1) };
    Stmt::new(StmtKind::For { iter: iter.clone(), extent, props: LoopProps::default(), body }, origin.clone())
}

/// Builds a branch.
pub(crate) fn branch(cond: Expr, then: Vec<Stmt>, otherwise: Vec<Stmt>, origin: &Origin) -> Stmt {
    let otherwise = (!otherwise.is_empty()).then(|| Stmt::seq(otherwise, origin.clone()));
    Stmt::new(StmtKind::If { cond, then: Stmt::seq(then, origin.clone()), otherwise }, origin.clone())
}

/// Checks that positions up to a count fit in their type.
pub(crate) fn counted(tensor: &Symbol, count: &Expr, dtype: DType, origin: &Origin) -> Option<Stmt> {
    (dtype != DType::I64).then(|| {
        let message = vec![
            MessagePart::Text(format!("`{tensor}` has ")),
            MessagePart::Value(count.clone()),
            MessagePart::Text(format!(" elements, more than indices of type {dtype} count: write `index=i64`")),
        ];
        let cond = count.less_eq(&Expr::int(i64::from(i32::MAX)));
        Stmt::new(StmtKind::Assert { cond, message, kind: AssertKind::Index }, origin.clone())
    })
}
