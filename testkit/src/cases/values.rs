//! Random values: operators on elements of structured and dense parameters, of results and of local tensors.

use super::generate::{Generator, leaf};
use super::program::{Data, Kind, Param, Sort, Text};
use taffeta_ast::DType;

impl Generator {
    /// Generates a value of the results' type.
    pub(super) fn value(&mut self, depth: usize) -> Text {
        match self.kind {
            Kind::Truth => self.truth(depth),
            _ => self.number(depth),
        }
    }

    pub(super) fn number(&mut self, depth: usize) -> Text {
        use Sort::Number;
        if depth == 0 || self.chance(20) {
            return self.operand();
        }
        // `Kind::Any` has no choices with infinite fills: searched operands of a choice are not split into cases, so it
        // is undecided whether a choice by fills alone derives from the fill, which makes a difference for an infinite
        // one.
        if self.chance(8) && !(self.kind == Kind::Any && self.infinite) {
            let cond = self.truth(depth - 1);
            let (a, b) = (self.number(depth - 1), self.number(depth - 1));
            return Text::of(Number, "({} if {} else {})", vec![a, cond, b]);
        }
        let binary: &[&str] = match self.kind {
            Kind::Tropical { most: false } => &["({} + {})", "({} + {})", "min({}, {})"],
            Kind::Tropical { most: true } => &["({} + {})", "({} + {})", "max({}, {})"],
            Kind::Integers => {
                &["({} * {})", "({} * {})", "({} + {})", "({} - {})", "min({}, {})", "({} & {})", "({} ^ {})"]
            }
            Kind::Any if self.infinite => &["({} * {})", "({} + {})", "({} / {})", "max({}, {})", "min({}, {})"],
            Kind::Any => &[
                "({} * {})",
                "({} * {})",
                "({} * {})",
                "({} + {})",
                "({} - {})",
                "({} / {})",
                "max({}, {})",
                "min({}, {})",
            ],
            _ => &["({} * {})", "({} * {})", "({} * {})", "({} + {})", "({} - {})", "max({}, {})", "min({}, {})"],
        };
        let unary: &[&str] = match self.kind {
            Kind::Tropical { most: false } => &["min({}, 6.0)"],
            Kind::Tropical { most: true } => &["max({}, -6.0)"],
            Kind::Integers => &["abs({})", "(-{})", "({} % 5)", "({} // 3)"],
            Kind::Any if self.infinite => &["exp({})", "sqrt({})", "(2.0 * {})"],
            Kind::Any => &["abs({})", "(-{})", "exp({})", "sqrt({})", "(2.0 * {})"],
            _ => &["abs({})", "(-{})", "sqrt(abs({}))", "(2.0 * {})"],
        };
        if self.chance(15) {
            let pattern = self.pick(unary);
            return Text::of(Number, pattern, vec![self.number(depth - 1)]);
        }
        let pattern = self.pick(binary);
        let (a, b) = (self.number(depth - 1), self.number(depth - 1));
        Text::of(Number, pattern, vec![a, b])
    }

    fn operand(&mut self) -> Text {
        use Sort::Number;
        let tropical = matches!(self.kind, Kind::Tropical { .. });
        match self.random.next(20) {
            0 => {
                let all: &[&str] = match self.kind {
                    Kind::Integers => &["1", "2", "-3"],
                    Kind::Any if self.infinite => &["0.0", "1.0", "2.5", "inf"],
                    Kind::Any => &["0.0", "1.0", "2.5", "-1.0", "inf"],
                    _ => &["1.0", "2.5", "-1.0"],
                };
                let one = self.pick(all);
                leaf(Number, one)
            }
            1 if !tropical => {
                let cond = self.truth(0);
                let one = if self.kind == Kind::Integers { "(2 if {} else 0)" } else { "(2.0 if {} else 0.0)" };
                Text::of(Number, one, vec![cond])
            }
            2..4 if let Some(local) = self.local(Number) => local,
            // (A result that is assembled is read after its last write alone.)
            4 if !self.results.is_empty() && !self.iters.is_empty() && !self.assembles => {
                let read = self.target();
                match self.kind {
                    Kind::Integers => leaf(Number, format!("({read} % 9)")),
                    Kind::Tropical { .. } => leaf(Number, read),
                    _ => leaf(Number, format!("min(max({read}, -9.0), 9.0)")),
                }
            }
            5..9 => self.dense(Number),
            _ => self.access(Number),
        }
    }

    fn local(&mut self, sort: Sort) -> Option<Text> {
        let dims: Vec<(&'static str, String)> = self.iters.iter().map(|i| (i.dim, i.name.clone())).collect();
        let fits: Vec<(String, Option<&'static str>)> = self
            .locals
            .iter()
            .filter(|(_, s, d)| *s == sort && d.is_none_or(|d| dims.iter().any(|i| i.0 == d)))
            .map(|(name, _, d)| (name.clone(), *d))
            .collect();
        if fits.is_empty() {
            return None;
        }
        let (name, dim) = self.pick(&fits);
        let text = match dim {
            None => name,
            Some(dim) => {
                let at: Vec<String> = dims.into_iter().filter(|i| i.0 == dim).map(|i| i.1).collect();
                format!("{name}[{}]", self.pick(&at))
            }
        };
        Some(leaf(sort, text))
    }

    pub(super) fn truth(&mut self, depth: usize) -> Text {
        use Sort::Truth;
        let names: Vec<String> = self.iters.iter().map(|i| i.name.clone()).collect();
        match self.random.next(20) {
            0..3 if depth > 0 => {
                let pattern = self.pick(&["({} and {})", "({} or {})"]);
                let (a, b) = (self.truth(depth - 1), self.truth(depth - 1));
                Text::of(Truth, pattern, vec![a, b])
            }
            3..5 if depth > 0 => Text::of(Truth, "(not {})", vec![self.truth(depth - 1)]),
            5..8 if names.len() > 1 => {
                let (a, b) = (self.pick(&names), self.pick(&names));
                let op = self.pick(&["<", "<=", "==", "!="]);
                leaf(Truth, format!("({a} {op} {b})"))
            }
            8..10 if !names.is_empty() => {
                let (a, by) = (self.pick(&names), 2 + self.random.next(2));
                leaf(Truth, format!("({a} % {by} == 0)"))
            }
            10..12 if let Some(local) = self.local(Truth) => local,
            12..16 if self.kind != Kind::Truth => {
                let (a, b) = (self.number(depth.min(1)), self.number(0));
                let pattern = self.pick(&["({} < {})", "({} <= {})", "({} == {})", "({} > 1)"]);
                let parts = if pattern.matches("{}").count() == 1 { vec![a] } else { vec![a, b] };
                Text::of(Truth, pattern, parts)
            }
            16..18 => self.dense(Truth),
            _ => self.access(Truth),
        }
    }

    /// Generates an element of a dense parameter.
    fn dense(&mut self, sort: Sort) -> Text {
        let dims: Vec<&'static str> = self.iters.iter().map(|i| i.dim).collect();
        if dims.is_empty() {
            return self.constant(sort);
        }
        let dim = self.pick(&dims);
        let dtype = if sort == Sort::Truth { DType::Bool } else { self.element() };
        let name = format!("{}_{dim}", if sort == Sort::Truth { "g" } else { "x" });
        self.has(Param { name: name.clone(), dtype, dims: vec![dim], format: None, data: Data::Values, of: None });
        let at: Vec<String> = self.iters.iter().filter(|i| i.dim == dim).map(|i| i.name.clone()).collect();
        let at = self.pick(&at);
        leaf(sort, format!("{name}[{at}]"))
    }

    fn constant(&mut self, sort: Sort) -> Text {
        let text = match (sort, self.kind) {
            (Sort::Truth, _) => "True",
            (_, Kind::Integers) => "2",
            _ => "2.0",
        };
        leaf(sort, text)
    }

    fn has(&mut self, p: Param) {
        if self.params.iter().all(|q| q.name != p.name) {
            self.params.push(p);
        }
    }

    /// Generates an element of a structured parameter, at enclosing iterators or expressions of them.
    fn access(&mut self, sort: Sort) -> Text {
        let fits = |p: &&Param| {
            p.format.is_some()
                && match sort {
                    Sort::Truth => p.dtype == DType::Bool,
                    _ if self.kind == Kind::Integers => !p.dtype.is_float() && p.dtype != DType::Bool,
                    _ => p.dtype.is_float(),
                }
        };
        let all: Vec<Param> = self.params.iter().filter(fits).cloned().collect();
        if all.is_empty() {
            return self.dense(sort);
        }
        let p = self.pick(&all);
        let (mut taken, mut guards, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for dim in &p.dims {
            parts.push(self.index(dim, &mut taken, &mut guards));
        }
        let at = vec!["{}"; parts.len()].join(", ");
        let mut access = format!("{}[{at}]", p.name);
        if parts.iter().any(|index| index.pattern.starts_with("permit(")) {
            access = format!("coalesce({access}, {})", self.constant(sort).pattern);
        }
        if guards.is_empty() {
            return Text::of(sort, access, parts);
        }
        let otherwise = self.constant(sort).pattern;
        Text::of(sort, format!("({access} if {} else {otherwise})", guards.join(" and ")), parts)
    }

    /// Shifts an iterator within its dimension, beyond the ends, or cyclically.
    fn modified(&mut self, name: &str, dim: &str, guards: &mut Vec<String>) -> String {
        let by = 1 + self.random.next(2);
        match self.random.next(8) {
            0 => format!("permit({name} + {by})"),
            1 => format!("permit({name} - {by})"),
            2 => format!("permit({dim} - {name})"),
            3 => format!("({name} + {by}) % {dim}"),
            4 => format!("({dim} + {name} - 1) % {dim}"),
            5 => {
                guards.push(format!("{name} < {dim} - {by}"));
                format!("window({by}, {dim})[{name}]")
            }
            6 => {
                guards.push(format!("{name} >= {by}"));
                format!("offset({by})[{name}]")
            }
            _ => {
                guards.push(format!("{name} >= {by}"));
                format!("{name} - {by}")
            }
        }
    }

    fn index(&mut self, dim: &'static str, taken: &mut Vec<String>, guards: &mut Vec<String>) -> Text {
        let index = |text: String| leaf(Sort::Index, text);
        let all: Vec<String> = self.iters.iter().map(|i| i.name.clone()).collect();
        let own: Vec<String> = self.iters.iter().filter(|i| i.dim == dim).map(|i| i.name.clone()).collect();
        let free: Vec<String> = own.iter().filter(|i| !taken.contains(i)).cloned().collect();
        if !free.is_empty() && self.chance(80) {
            // Mostly the first unused iterator: tensors are traversed in the order of their dimensions.
            let name = if self.chance(75) { free[0].clone() } else { self.pick(&free) };
            taken.push(name.clone());
            return index(if self.chance(12) { self.modified(&name, dim, guards) } else { name });
        }
        match self.random.next(10) {
            0..2 if !own.is_empty() => index(self.pick(&own)),
            2 if !own.is_empty() => index(format!("{dim} - 1 - {}", self.pick(&own))),
            3 if !own.is_empty() => {
                let at = format!("{} + 1", self.pick(&own));
                guards.push(format!("{at} < {dim}"));
                index(at)
            }
            4 if all.len() > 1 => {
                let (a, b) = (self.pick(&all), self.pick(&all));
                index(format!("({a} + {b}) % {dim}"))
            }
            5..7 if !all.is_empty() => {
                let (k, from) = (self.random.next(all.len()), dim);
                let of = self.iters[k].dim;
                let name = format!("k_{of}_{from}");
                self.has(Param {
                    name: name.clone(),
                    dtype: DType::I64,
                    dims: vec![of],
                    format: None,
                    data: Data::Below(from),
                    of: None,
                });
                index(format!("{name}[{}]", all[k]))
            }
            7 if !all.is_empty() => index(format!("{} % {dim}", self.pick(&all))),
            _ if !own.is_empty() && self.chance(50) => index(self.pick(&own)),
            _ => {
                guards.push(format!("{dim} > 0"));
                let at = self.pick(&["0".to_string(), format!("{dim} - 1"), format!("{dim} // 2")]);
                index(at)
            }
        }
    }
}
