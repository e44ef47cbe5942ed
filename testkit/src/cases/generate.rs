//! Random programs: loops over random tensors in the order of their levels and in others, over whole dimensions and
//! parts of them, around branches, reductions, stores, temporaries and further loops.

use super::data::needs_room;
use super::program::{Case, Data, Kind, Outcome, Param, Sort, Stmt, Text};
use crate::random::{Random, formats};
use std::sync::LazyLock;
use taffeta_ast::format::{Format, Level};
use taffeta_ast::{DType, Literal};

/// Maximum depth of loop nests.
const DEEPEST: usize = 4;

pub(super) const NAMES: [&str; 3] = ["n", "m", "l"];

pub static FORMATS: LazyLock<[Vec<Format>; 3]> = LazyLock::new(|| [1, 2, 3].map(formats));

/// Formats of matrices whose levels store expressions of several dimensions.
pub static REMAPPED: LazyLock<Vec<Format>> = LazyLock::new(crate::random::remapped);

/// Generates the case of a seed.
pub fn case(seed: u64) -> Case {
    generated(seed, false)
}

/// Generates the case of a seed, with results that have patterns of their own.
pub fn assembled(seed: u64) -> Case {
    generated(seed, true)
}

fn generated(seed: u64, assembles: bool) -> Case {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66);
    random.next(2);
    let kind = match random.next(10) {
        0..3 => Kind::Any,
        3..6 => Kind::Finite,
        6 => Kind::Tropical { most: false },
        7 => Kind::Tropical { most: random.next(2) == 0 },
        8 => Kind::Integers,
        // (Whether the second operand of `and` counts as stored is not specified where its index is read.)
        _ if assembles => Kind::Integers,
        _ => Kind::Truth,
    };
    let mut g = Generator {
        random,
        kind,
        params: Vec::new(),
        results: Vec::new(),
        iters: Vec::new(),
        locals: Vec::new(),
        names: 0,
        infinite: false,
        assembles,
    };
    g.structured();
    let mut body = Vec::new();
    for _ in 0..1 + g.random.next(5) / 3 {
        body.extend(g.nest(0));
    }
    let deep = g.params.iter().any(|p| p.dims.len() > 2);
    let size = |random: &mut Random| match random.next(14) {
        0 => 0,
        1 => 1,
        _ => 1 + random.next(if deep { 5 } else { 9 }) as i64,
    };
    let sizes = NAMES.iter().map(|d| (*d, size(&mut g.random))).collect();
    Case { seed, kind, params: g.params, results: g.results, body, sizes }
}

/// Loop around the generated statements.
pub(super) struct Iter {
    pub(super) name: String,
    pub(super) dim: &'static str,
}

pub(super) struct Generator {
    pub(super) random: Random,
    pub(super) kind: Kind,
    pub(super) params: Vec<Param>,
    pub(super) results: Vec<Outcome>,
    pub(super) iters: Vec<Iter>,
    /// Local scalars and vectors, with the sort of their values, and the dimension of a vector.
    pub(super) locals: Vec<(String, Sort, Option<&'static str>)>,
    names: usize,
    /// Whether a fill is infinite: of two infinite fills with different signs, either may annihilate the other.
    pub(super) infinite: bool,
    /// Whether results may have patterns of their own.
    pub(super) assembles: bool,
}

pub(super) fn leaf(sort: Sort, text: impl Into<String>) -> Text {
    Text::leaf(sort, text)
}

impl Generator {
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.random.next(100) < percent
    }

    pub(super) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.random.next(all.len())].clone()
    }

    fn fresh(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    /// Generates the structured parameters.
    fn structured(&mut self) {
        for k in 0..1 + self.random.next(3) {
            let name = ["A", "B", "C"][k].to_string();
            if k > 0 && self.chance(15) {
                // The parameter shares the pattern of an earlier one.
                let of = self.pick(&self.params.clone());
                self.params.push(Param { name, of: of.of.clone().or(Some(of.name.clone())), ..of });
                continue;
            }
            let ndim = 1 + [0, 0, 0, 1, 1, 1, 1, 1, 2, 2][self.random.next(10)];
            let dtype = self.dtype();
            let format = self.format(ndim, dtype);
            let mut dims: Vec<&str> =
                (0..ndim).map(|d| if ndim < 3 { self.random.next(2) } else { d }).map(|d| NAMES[d]).collect();
            for (_, [a, b]) in format.squares() {
                dims[a] = dims[b];
            }
            // Squares may share a dimension, so the second may have broken the first.
            for (_, [a, b]) in format.squares() {
                dims[a] = dims[b];
            }
            if format.squares().any(|(_, [a, b])| dims[a] != dims[b]) {
                dims.fill("n");
            }
            self.params.push(Param { name, dtype, dims, format: Some(format), data: Data::Values, of: None });
        }
    }

    /// Picks a dimension of the structured parameters.
    fn dim(&mut self) -> &'static str {
        let all: Vec<&'static str> =
            self.params.iter().filter(|p| p.format.is_some()).flat_map(|p| p.dims.clone()).collect();
        self.pick(&all)
    }

    fn dtype(&mut self) -> DType {
        let all: &[DType] = match self.kind {
            Kind::Any | Kind::Finite => {
                &[DType::F64, DType::F64, DType::F64, DType::F64, DType::F32, DType::Bool, DType::I64]
            }
            Kind::Tropical { .. } => &[DType::F64, DType::F64, DType::F32],
            Kind::Integers => &[DType::I64, DType::I32],
            Kind::Truth => &[DType::Bool, DType::Bool, DType::Bool, DType::I64],
        };
        self.pick(all)
    }

    fn format(&mut self, ndim: usize, dtype: DType) -> Format {
        let remapped = ndim == 2 && self.chance(20);
        let all = if remapped { &*REMAPPED } else { &FORMATS[ndim - 1] };
        let format = all[self.random.next(all.len())].clone();
        let index = [None, None, Some(DType::U8), Some(DType::U16), Some(DType::I32), Some(DType::I64)];
        let mut levels: Vec<Level> = Vec::new();
        for l in format.levels.iter() {
            let index = self.pick(&index).filter(|_| l.kind.has_indices());
            let index = if needs_room(l.kind) && index == Some(DType::U8) { Some(DType::U16) } else { index };
            levels.push(Level { index, ..*l });
        }
        let mut order: Vec<usize> = (0..ndim).collect();
        if !remapped && self.chance(30) {
            (1..ndim).for_each(|k| order.swap(k, self.random.next(k + 1)));
        }
        let floats: &[f64] = match self.kind {
            Kind::Any => &[f64::INFINITY, f64::INFINITY, f64::NAN, 7.5, 1.0, -0.0],
            Kind::Finite => &[7.5, 1.0, -1.0, 2.0],
            Kind::Tropical { most: false } => &[f64::INFINITY],
            Kind::Tropical { most: true } => &[f64::NEG_INFINITY],
            _ => &[],
        };
        let fill = match dtype {
            DType::Bool => Literal::Bool(self.chance(50)),
            d if d.is_float() => Literal::Float(self.pick(floats)),
            _ => Literal::Int([0, 1, -1, 7][self.random.next(4)]),
        };
        let given = matches!(self.kind, Kind::Tropical { .. }) || self.chance(40);
        self.infinite |= given && fill == Literal::Float(f64::INFINITY);
        let format =
            if remapped { Format { levels: levels.into(), ..format } } else { Format::new(levels).ordered(&order) };
        Format { fill: given.then_some(fill), ..format }
    }

    /// Generates loops over a structured tensor, with their body.
    fn nest(&mut self, depth: usize) -> Vec<Stmt> {
        let tensors: Vec<Param> = self.params.iter().filter(|p| p.format.is_some()).cloned().collect();
        let tensor = self.pick(&tensors);
        let plain = || (0..tensor.dims.len()).collect();
        let mut order = tensor.format.as_ref().and_then(Format::order).unwrap_or_else(plain);
        if self.chance(25) {
            (1..order.len()).for_each(|k| order.swap(k, self.random.next(k + 1)));
        }
        let mut missing: Vec<&'static str> = Vec::new();
        for d in order {
            let have = |all: &[Iter]| all.iter().filter(|i| i.dim == tensor.dims[d]).count();
            let wanted = missing.iter().filter(|m| **m == tensor.dims[d]).count();
            if have(&self.iters) <= wanted || self.chance(20) {
                missing.push(tensor.dims[d]);
            }
        }
        missing.truncate(DEEPEST.saturating_sub(self.iters.len()));
        if depth == 0 && self.chance(10) {
            // Statements outside of all loops.
            return self.block(depth);
        }
        self.loops(&missing, depth)
    }

    fn loops(&mut self, dims: &[&'static str], depth: usize) -> Vec<Stmt> {
        let Some((dim, rest)) = dims.split_first() else { return self.block(depth) };
        let mut around = self.prepared();
        let (name, known) = (self.fresh("i"), self.locals.len());
        let head = self.range(dim, &name);
        self.iters.push(Iter { name, dim });
        let mut body = if !rest.is_empty() && self.chance(15) { vec![self.simple()] } else { Vec::new() };
        body.extend(self.loops(rest, depth + 1));
        if !rest.is_empty() && self.chance(15) {
            body.push(self.simple());
        }
        self.iters.pop();
        self.locals.truncate(known);
        around.push(Stmt::Block(head, body));
        around
    }

    /// Generates, now and then, a local vector before a loop.
    fn prepared(&mut self) -> Vec<Stmt> {
        if !self.chance(10) {
            return Vec::new();
        }
        let (name, sort, dtype) = (self.fresh("w"), self.sort(), self.element());
        let dim = self.dim();
        let make = leaf(Sort::Line, format!("{name} = zeros(({dim},), {dtype})"));
        let iter = self.fresh("i");
        self.iters.push(Iter { name: iter.clone(), dim });
        let value = self.value(1);
        self.iters.pop();
        let body = Stmt::Line(Text::of(Sort::Line, format!("{name}[{iter}] = {{}}"), vec![value]));
        self.locals.push((name, sort, Some(dim)));
        vec![Stmt::Line(make), Stmt::Block(leaf(Sort::Line, format!("for {iter} in range({dim})")), vec![body])]
    }

    fn range(&mut self, dim: &'static str, name: &str) -> Text {
        let same: Vec<String> = self.iters.iter().filter(|i| i.dim == dim).map(|i| i.name.clone()).collect();
        let range = match self.random.next(100) {
            0..3 => format!("{dim} // 2"),
            3..6 => format!("{dim} // 3, {dim}"),
            6..9 => format!("1, max(1, {dim} - 1)"),
            9..11 => format!("{dim} - 1, -1, -1"),
            11..13 => format!("0, {dim}, 2"),
            13..19 if !same.is_empty() => {
                let other = self.pick(&same);
                let all =
                    [other.clone(), format!("{other} + 1"), format!("{other}, {dim}"), format!("{other} + 1, {dim}")];
                self.pick(&all)
            }
            _ => dim.to_string(),
        };
        leaf(Sort::Line, format!("for {name} in range({range})"))
    }

    fn block(&mut self, depth: usize) -> Vec<Stmt> {
        let known = self.locals.len();
        let mut out = Vec::new();
        for _ in 0..1 + self.random.next(4) / 2 {
            match self.random.next(20) {
                0..2 if depth < DEEPEST => out.extend(self.nest(depth + 1)),
                2..4 if self.iters.len() < DEEPEST => out.extend(self.summed()),
                4 => out.push(self.alias()),
                5..8 => {
                    let cond = Text::of(Sort::Line, "if {}", vec![self.truth(1)]);
                    let then = vec![self.simple()];
                    out.push(Stmt::Block(cond, then));
                    if self.chance(40) {
                        let otherwise = vec![self.simple()];
                        out.push(Stmt::Block(leaf(Sort::Line, "else"), otherwise));
                    }
                }
                _ => out.push(self.simple()),
            }
        }
        self.locals.truncate(known);
        out
    }

    /// Generates a local scalar, and a loop that reduces into it.
    fn summed(&mut self) -> Vec<Stmt> {
        let (name, sort, dtype) = (self.fresh("t"), self.sort(), self.element());
        let dim = self.dim();
        let first = self.first();
        let mut out = vec![Stmt::Line(leaf(Sort::Line, format!("{name} = cast({first}, {dtype})")))];
        let iter = self.fresh("i");
        let head = self.range(dim, &iter);
        self.iters.push(Iter { name: iter, dim });
        let body = self.reduced(&name);
        self.iters.pop();
        out.push(Stmt::Block(head, vec![body]));
        self.locals.push((name, sort, None));
        out
    }

    /// Generates a local scalar that names a value.
    fn alias(&mut self) -> Stmt {
        let (name, sort) = (self.fresh("v"), self.sort());
        let value = self.value(1);
        self.locals.push((name.clone(), sort, None));
        Stmt::Line(Text::of(Sort::Line, format!("{name} = {{}}"), vec![value]))
    }

    fn sort(&self) -> Sort {
        if self.kind == Kind::Truth { Sort::Truth } else { Sort::Number }
    }

    /// Returns the type of results.
    pub(super) fn element(&self) -> DType {
        match self.kind {
            Kind::Truth => DType::Bool,
            Kind::Integers => DType::I64,
            _ => DType::F64,
        }
    }

    /// Picks the initial value of a result or of a local scalar, before reductions.
    fn first(&mut self) -> String {
        let all: &[&str] = match self.kind {
            Kind::Truth => &["False", "True"],
            Kind::Integers => &["0", "0", "5"],
            Kind::Tropical { most: false } => &["inf", "inf", "3.0"],
            Kind::Tropical { most: true } => &["-inf", "-inf", "3.0"],
            Kind::Any => &["0.0", "0.0", "0.0", "inf", "-inf", "1.5"],
            Kind::Finite => &["0.0", "0.0", "0.0", "1.5"],
        };
        self.pick(all).to_string()
    }

    /// Generates a store into a result, or a reduction.
    fn simple(&mut self) -> Stmt {
        let target = self.target();
        if self.chance(20) {
            let value = self.value(2);
            return Stmt::Line(Text::of(Sort::Line, format!("{target} = {{}}"), vec![value]));
        }
        self.reduced(&target)
    }

    fn reduced(&mut self, target: &str) -> Stmt {
        let value = self.value(2);
        let pattern = match (self.kind, self.random.next(10)) {
            (Kind::Truth, 0..5) => format!("{target} = {target} or {{}}"),
            (Kind::Truth, _) => format!("{target} = {target} and {{}}"),
            (Kind::Tropical { most: false }, 0..9) => format!("{target} = min({target}, {{}})"),
            (Kind::Tropical { most: true }, 0..9) => format!("{target} = max({target}, {{}})"),
            (Kind::Tropical { .. }, _) => format!("{target} = {{}}"),
            (_, 0) => format!("{target} = min({target}, {{}})"),
            (_, 1..3) => format!("{target} = max({target}, {{}})"),
            (_, 3) => format!("{target} -= {{}}"),
            (Kind::Integers, 4) => format!("{target} |= {{}}"),
            (Kind::Any | Kind::Finite, 4) => format!("{target} *= min(max({{}}, -1.0), 1.0)"),
            _ => format!("{target} += {{}}"),
        };
        Stmt::Line(Text::of(Sort::Line, pattern, vec![value]))
    }

    /// Picks a format of a result with a pattern of its own, which is filled with its first value.
    fn made(&mut self, dims: &[&'static str], dtype: DType, first: &str) -> Option<Format> {
        if dims.is_empty() || !self.chance(70) {
            return None;
        }
        let format = self.format(dims.len(), dtype);
        let fill = match first {
            "inf" => Literal::Float(f64::INFINITY),
            "-inf" => Literal::Float(f64::NEG_INFINITY),
            "True" | "False" => Literal::Bool(first == "True"),
            number if dtype.is_float() => Literal::Float(number.parse().unwrap_or(0.0)),
            number => Literal::Int(number.parse().unwrap_or(0)),
        };
        // Of two infinities, the fill and the value, either may annihilate the other.
        let infinite = self.kind == Kind::Any && first.contains("inf");
        let fits = !infinite && !format.is_dense() && format.squares().all(|(_, [a, b])| dims[a] == dims[b]);
        fits.then_some(Format { fill: Some(fill), ..format })
    }

    /// Picks an element of a result at enclosing iterators, and declares the result if it is new.
    pub(super) fn target(&mut self) -> String {
        let count = self.random.next(4).min(2).min(self.iters.len());
        let mut at: Vec<usize> = (0..self.iters.len()).collect();
        (1..at.len()).for_each(|k| at.swap(k, self.random.next(k + 1)));
        at.truncate(count);
        let dims: Vec<&'static str> = at.iter().map(|k| self.iters[*k].dim).collect();
        let dtype = self.element();
        let name = match self.results.iter().find(|r| r.dims == dims) {
            Some(r) => r.name.clone(),
            None => {
                let name = format!("y{}", dims.join(""));
                let first = self.first();
                let alike = self.params.iter().find(|p| p.format.is_some() && p.dims == dims);
                let of = alike.map(|p| p.of.clone().unwrap_or(p.name.clone())).filter(|_| self.chance(25));
                let format = if self.assembles && of.is_none() { self.made(&dims, dtype, &first) } else { None };
                self.results.push(Outcome { name: name.clone(), dtype, dims, first, format, of });
                name
            }
        };
        let at: Vec<&str> = at.iter().map(|k| &self.iters[*k].name[..]).collect();
        if at.is_empty() { name } else { format!("{name}[{}]", at.join(", ")) }
    }
}
