//! Programs as texts with removable parts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use taffeta_ast::DType;
use taffeta_ast::format::Format;

/// Kind of a program's values, which determines the runs that must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All numbers: only runs that know of fills agree.
    Any,
    /// Finite numbers and fills, closed under the operators: the program without formats computes the same.
    Finite,
    /// Numbers under `min` and `+` with the fill infinity, or under `max` and `+` with the fill minus infinity.
    Tropical {
        /// Whether the operators are `max` and `+`.
        most: bool,
    },
    /// Integers.
    Integers,
    /// Truth values under `and` and `or`.
    Truth,
}

/// Sort of a part of a program. A part can be replaced by one of its own sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Number,
    Truth,
    Index,
    Line,
}

/// Piece of text, with a `{}` for each of its parts.
#[derive(Clone, Debug)]
pub struct Text {
    pub sort: Sort,
    pub pattern: String,
    pub parts: Vec<Text>,
}

#[derive(Clone, Debug)]
pub enum Stmt {
    Line(Text),
    Block(Text, Vec<Stmt>),
}

/// Contents of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    Values,
    /// Indices of a dimension.
    Below(&'static str),
}

#[derive(Clone, Debug)]
pub struct Param {
    pub name: String,
    pub dtype: DType,
    pub dims: Vec<&'static str>,
    pub format: Option<Format>,
    pub data: Data,
    /// Earlier parameter whose pattern this one shares, if any.
    pub of: Option<String>,
}

/// Result, which the program initialises.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub name: String,
    pub dtype: DType,
    pub dims: Vec<&'static str>,
    pub first: String,
    /// Format of a result with a pattern of its own, whose fill is the initial value.
    pub format: Option<Format>,
    /// Parameter whose pattern the result shares, if any: writes to other elements vanish.
    pub of: Option<String>,
}

/// Program with its inputs: tensors that depend on the seed and their names.
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub kind: Kind,
    pub params: Vec<Param>,
    pub results: Vec<Outcome>,
    pub body: Vec<Stmt>,
    pub sizes: BTreeMap<&'static str, i64>,
}

impl Text {
    pub fn leaf(sort: Sort, text: impl Into<String>) -> Text {
        Text { sort, pattern: text.into(), parts: Vec::new() }
    }

    pub fn of(sort: Sort, pattern: impl Into<String>, parts: Vec<Text>) -> Text {
        Text { sort, pattern: pattern.into(), parts }
    }

    pub fn show(&self) -> String {
        let mut pieces = self.pattern.split("{}");
        let mut out = pieces.next().unwrap_or_default().to_string();
        for (piece, part) in pieces.zip(&self.parts) {
            out += &part.show();
            out += piece;
        }
        out
    }
}

impl Case {
    /// Returns whether the program is a plain one of the language: it has no index modifiers, and no tensors over the
    /// pattern of another.
    pub fn is_plain(&self) -> bool {
        let text = self.text(true);
        !["permit(", "window(", "offset(", "pattern("].iter().any(|word| text.contains(word))
    }

    /// Returns the text of the program, with or without formats.
    pub fn text(&self, formats: bool) -> String {
        let typed = |dtype: DType, dims: &[&str]| match dims.is_empty() {
            true => dtype.to_string(),
            false => format!("{dtype}[{}]", dims.join(", ")),
        };
        let params: Vec<String> = self
            .params
            .iter()
            .map(|p| {
                let storage = p.format.as_ref().filter(|_| formats);
                let storage = storage.map(|f| match &p.of {
                    Some(of) => format!(" @ pattern({of})"),
                    None => format!(" @ {}", f.text_with(&format!("stored_{}", p.name))),
                });
                format!("{}: {}{}", p.name, typed(p.dtype, &p.dims), storage.unwrap_or_default())
            })
            .collect();
        let result = |r: &Outcome| match (&r.of, &r.format) {
            (Some(of), _) if formats => format!("{} @ pattern({of}, drop=True)", typed(r.dtype, &r.dims)),
            (None, Some(f)) if formats => {
                format!("{} @ {}", typed(r.dtype, &r.dims), f.text_with(&format!("stored_{}", r.name)))
            }
            _ => typed(r.dtype, &r.dims),
        };
        let results: Vec<String> = self.results.iter().map(result).collect();
        let results = if let [one] = &results[..] { one.clone() } else { format!("({})", results.join(", ")) };
        let mut out = String::new();
        let params_formats = self.params.iter().filter(|p| p.of.is_none()).map(|p| (&p.name, &p.format));
        let all = params_formats.chain(self.results.iter().map(|r| (&r.name, &r.format)));
        for (name, format) in all.filter(|_| formats) {
            if let Some(f) = format.as_ref().filter(|f| f.is_remapped()) {
                out += &format!("def stored_{name}(i, j):\n    return {}\n\n\n", f.remap());
            }
        }
        out += &format!("def f({}) -> {results}:\n", params.join(", "));
        for Outcome { name, dtype, dims, first, format, .. } in &self.results {
            if format.is_some() {
                let _ = writeln!(out, "    {name} = full(({},), {first}, {dtype})", dims.join(", "));
                continue;
            }
            let zero = matches!(&first[..], "0.0" | "0" | "False");
            let mut inner = String::new();
            match dims.len() {
                0 => {
                    let _ = writeln!(out, "    {name} = cast({first}, {dtype})");
                    continue;
                }
                n => {
                    let _ = writeln!(out, "    {name} = zeros(({},), {dtype})", dims.join(", "));
                    for (k, d) in dims.iter().enumerate() {
                        let _ = writeln!(inner, "{}for q{k} in range({d}):", "    ".repeat(k + 1));
                    }
                    let at: Vec<String> = (0..n).map(|k| format!("q{k}")).collect();
                    let _ = writeln!(inner, "{}{name}[{}] = {first}", "    ".repeat(n + 1), at.join(", "));
                }
            }
            if !zero {
                out += &inner;
            }
        }
        shown(&mut out, &self.body, 1);
        let names: Vec<&str> = self.results.iter().map(|r| &r.name[..]).collect();
        let _ = writeln!(out, "    return {}", names.join(", "));
        out
    }
}

fn shown(out: &mut String, all: &[Stmt], depth: usize) {
    let space = "    ".repeat(depth);
    for s in all {
        match s {
            Stmt::Line(text) => {
                let _ = writeln!(out, "{space}{}", text.show());
            }
            Stmt::Block(head, body) => {
                let _ = writeln!(out, "{space}{}:", head.show());
                shown(out, body, depth + 1);
                if body.is_empty() {
                    let _ = writeln!(out, "{space}    pass");
                }
            }
        }
    }
}
