//! Storage (language.md, section 7): the values of `format(…)`, of levels and of format names, and the format that an
//! annotation's `@` gives to a tensor.

use super::call::Arg;
use super::value::Value;
use super::{Elab, R};
use crate::syntax;
use std::fmt;
use std::sync::Arc;
use taffeta_ast::format::{Coord, Format, Level, LevelKind, Misplaced, Named, Pattern, presets};
use taffeta_ast::spelling::counted;
use taffeta_ast::{DType, Diagnostic, Expr, Literal, Span, print};

/// Storage value: a level, a format or a pattern (language.md, section 7).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Storage {
    /// `compressed(unique=False)`
    Level(Level),
    /// `csr`: its levels depend on the number of dimensions.
    Named(Named),
    /// `format(…)`, with the places of its levels.
    Format(Arc<LocatedFormat>),
    /// `pattern(A)`: stored where `A` is.
    Pattern(Arc<PatternSource>),
    /// `bcsr`, which takes the size of its blocks.
    Blocks,
}

/// Format with the places of its levels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LocatedFormat {
    format: Format,
    spans: Vec<Span>,
}

/// Source tensor `A` of a `pattern(A)`, with the format that its followers get.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PatternSource {
    pub(super) name: String,
    pub(super) format: Format,
    shape: Vec<Expr>,
}

impl Storage {
    /// Returns the level or format of that name. `packbits`, `ragged` and `symmetric` are both: levels here, whose
    /// format [`Elab::storage`] knows.
    pub(crate) fn find(name: &str) -> Option<Storage> {
        let level = || LevelKind::ALL.iter().find(|k| k.name() == name).map(|k| Storage::Level(Level::new(*k)));
        let blocks = || (name == "bcsr").then_some(Storage::Blocks);
        level().or_else(|| Named::find(name).map(Storage::Named)).or_else(blocks)
    }

    /// Returns all names, for proposals.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        LevelKind::ALL.iter().map(|k| k.name()).chain(Named::ALL.iter().map(|(n, _)| *n)).chain(["bcsr"])
    }

    /// Describes the value for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Storage::Level(l) => format!("the level `{l}`"),
            Storage::Named(n) => format!("the format `{}`", n.name()),
            Storage::Format(f) => format!("the format `{}`", f.format),
            Storage::Pattern(p) => format!("the pattern of `{}`", p.name),
            Storage::Blocks => "the format `bcsr` without the size of its blocks".to_string(),
        }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Storage::Level(l) => l.fmt(f),
            Storage::Named(n) => f.write_str(n.name()),
            Storage::Format(c) => c.format.fmt(f),
            Storage::Pattern(p) => write!(f, "pattern({})", p.name),
            Storage::Blocks => f.write_str("bcsr"),
        }
    }
}

impl Elab<'_> {
    /// Evaluates a level with options: `compressed(unique=False, index=i64)`.
    pub(crate) fn call_storage(&mut self, s: &Storage, args: Vec<Arg>, span: Span) -> R<Value> {
        let mut level = match s {
            Storage::Level(level) => *level,
            Storage::Blocks => return self.blocks_call(args, span),
            Storage::Named(_) | Storage::Format(_) | Storage::Pattern(_) => {
                return self.error_help(
                    "storage::call",
                    span,
                    format!("{} takes no options", s.describe()),
                    "give options to levels: `format(dense, compressed(index=i64))`",
                );
            }
        };
        for (name, v, at) in args {
            match (name.as_deref(), &v) {
                (Some("unique"), Value::Bool(b)) if level.kind.has_lists() => level.unique = *b,
                (Some("ordered"), Value::Bool(b)) if level.kind.has_lists() => level.ordered = *b,
                (Some("upper"), Value::Bool(b)) if level.kind.name() == "triangular" => {
                    level.kind = if *b { LevelKind::UpperTriangular } else { LevelKind::LowerTriangular };
                }
                (Some("index"), Value::DType(d)) if level.kind.has_indices() => match d {
                    DType::U8 | DType::U16 | DType::I32 | DType::I64 => level.index = Some(*d),
                    _ => {
                        let text = format!("expected u8, u16, i32 or i64 as the type of index arrays, found {d}");
                        return self.error_help("storage::option", at, text, "leave out `index=` for i32 or i64");
                    }
                },
                _ => return self.no_option(level, name.as_deref(), &v, at),
            }
        }
        Ok(Value::Storage(Storage::Level(level)))
    }

    /// Evaluates `bcsr(4, 3)`.
    fn blocks_call(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let sizes: Vec<Option<i64>> = args
            .iter()
            .map(|(name, v, _)| match v {
                Value::Int(n) if name.is_none() => i64::try_from(*n).ok().filter(|n| (1..=1 << 20).contains(n)),
                _ => None,
            })
            .collect();
        let [Some(rows), Some(columns)] = sizes[..] else {
            let text = "`bcsr` takes the numbers of rows and columns of a block, each from 1 to 2^20";
            return self.error_help("storage::option", span, text, "write `bcsr(4, 4)`");
        };
        let format = presets::bcsr(rows, columns);
        let spans = vec![span; format.levels.len()];
        Ok(Value::Storage(Storage::Format(Arc::new(LocatedFormat { format, spans }))))
    }

    fn no_option<T>(&mut self, level: Level, name: Option<&str>, v: &Value, at: Span) -> R<T> {
        let mut options = Vec::new();
        if level.kind.has_lists() {
            options.extend(["unique=False", "ordered=False"]);
        }
        if level.kind.name() == "triangular" {
            options.push("upper=True");
        }
        if level.kind.has_indices() {
            options.push("index=i64");
        }
        let (kind, found) = (level.kind.name(), v.describe());
        let text = match name {
            Some(name) => format!("`{kind}` has no option `{name}` that takes {found}"),
            None => format!("expected an option of `{kind}` by name, found {found}"),
        };
        let help = match options.is_empty() {
            true => "it has no options".to_string(),
            false => format!("its options are {}", options.join(", ")),
        };
        self.error_help("storage::option", at, text, help)
    }

    /// Evaluates `format(dense, compressed, order=(1, 0), fill=inf)`.
    pub(crate) fn format_call(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let (mut levels, mut spans, mut order, mut fill) = (Vec::new(), Vec::new(), None, None);
        let mut remap = None;
        for (name, v, at) in args {
            match (name.as_deref(), v) {
                (None, Value::Storage(Storage::Level(level))) => {
                    levels.push(level);
                    spans.push(at);
                }
                (Some("remap"), v) => remap = Some((self.remap_argument(&v, at)?, at)),
                (Some("order"), v) => order = Some((self.order_argument(&v, at)?, at)),
                (Some("fill"), v) => match v.lazy().and_then(|l| l.expr.as_literal()) {
                    Some(f) => fill = Some(f),
                    None => {
                        let found = v.describe();
                        let text = format!("`fill=` takes a number known when compiling, found {found}");
                        return self.error("storage::fill", at, text);
                    }
                },
                // The word is a level here and another name elsewhere (`range`, `offset`), or a name of the program
                // hides the level, such as that of the printed program itself.
                (None, _) if let Some(level) = self.level_by_name(at) => {
                    levels.push(level);
                    spans.push(at);
                }
                (None, v) => {
                    let text = format!("`format` takes levels, found {}", v.describe());
                    let mut names: Vec<&str> = LevelKind::ALL.iter().map(|k| k.name()).collect();
                    names.dedup();
                    return self.error_help("storage::level", at, text, format!("the levels are {}", names.join(", ")));
                }
                (Some(name), _) => {
                    let d = Diagnostic::new("storage::option", format!("`format` has no option `{name}`")).at(at);
                    return Err(self.report(d.help("its options are order, remap, fill")));
                }
            }
        }
        if levels.is_empty() {
            return self.error_help(
                "storage::level",
                span,
                "`format` needs a level",
                "write `format(dense, compressed)`",
            );
        }
        let mut format = Format { fill, ..Format::new(levels) };
        if let (Some((_, at)), Some(_)) = (&remap, &order) {
            return self.error_help(
                "storage::option",
                *at,
                "`format` cannot have both `order=` and `remap=`".to_string(),
                "leave out `order=`",
            );
        }
        if let Some((remap, at)) = remap {
            format = format.remapped(remap.coords, remap.keys);
            let dims = format.coords.iter().chain(format.keys.iter().map(|k| &k.coord)).flat_map(Coord::dims);
            let ndim = dims.max().map_or(0, |d| d + 1);
            if let Err(why) = format.check(ndim) {
                return match why.level {
                    None => self.misplaced(&why, &[], at),
                    Some(_) => self.misplaced(&why, &spans, span),
                };
            }
            return Ok(Value::Storage(Storage::Format(Arc::new(LocatedFormat { format, spans }))));
        }
        if let Some((order, at)) = order {
            if order.len() != format.levels.len() {
                let (named, levels) = (counted(order.len(), "dimension"), counted(spans.len(), "level"));
                let text = format!("`order=` names {named}, but `format` has {levels}");
                return self.error("storage::order", at, text);
            }
            format = format.ordered(&order);
        }
        if let Err(why) = format.check(spans.len()) {
            return self.misplaced(&why, &spans, span);
        }
        Ok(Value::Storage(Storage::Format(Arc::new(LocatedFormat { format, spans }))))
    }

    /// Returns the level whose name stands at a place in the text.
    fn level_by_name(&self, at: Span) -> Option<Level> {
        match Storage::find(self.program.sources().text(at)) {
            Some(Storage::Level(level)) => Some(level),
            _ => None,
        }
    }

    fn order_argument(&mut self, v: &Value, at: Span) -> R<Vec<usize>> {
        let one = |v: &Value| match v {
            Value::Int(i) => usize::try_from(*i).ok(),
            _ => None,
        };
        let all = match v.items() {
            Some(items) => items.iter().map(one).collect::<Option<Vec<usize>>>(),
            None => one(v).map(|d| vec![d]),
        };
        match all {
            Some(order) => Ok(order),
            None => {
                let text = format!("`order=` takes dimensions, counted from 0, found {}", v.describe());
                self.error_help("storage::order", at, text, "write `order=(1, 0)`")
            }
        }
    }

    fn misplaced<T>(&mut self, why: &Misplaced, spans: &[Span], whole: Span) -> R<T> {
        let at = why.level.and_then(|k| spans.get(k)).copied().unwrap_or(whole);
        let d = Diagnostic::new("storage::level", why.message.clone()).at(at);
        Err(self.report(match &why.help {
            Some(help) => d.help(help.clone()),
            None => d,
        }))
    }

    /// Returns the format after `@` for a tensor of `ndim` dimensions and that type, with a fresh pattern unless it is
    /// dense.
    pub(crate) fn storage(&mut self, e: &syntax::Expr, ndim: usize, dtype: DType) -> R<Format> {
        let v = self.storage_value(e)?;
        let of_name = |named: Named| (named.format(ndim), named.name());
        let (found, name) = match &v {
            Value::Storage(Storage::Named(named)) => of_name(*named),
            Value::Storage(Storage::Level(level)) if *level == Level::new(level.kind) => {
                match Named::find(level.kind.name()) {
                    Some(named) => of_name(named),
                    None => return self.not_storage(&v, e.span),
                }
            }
            Value::Storage(Storage::Format(c)) => {
                if let Err(why) = c.format.check(ndim) {
                    return self.misplaced(&why, &[], e.span);
                }
                (Some(c.format.clone()), "")
            }
            Value::Storage(Storage::Pattern(_)) => {
                return self.unsupported(e.span, "a conversion into the pattern of another tensor");
            }
            _ => return self.not_storage(&v, e.span),
        };
        let Some(format) = found else {
            let rank = counted(ndim, "dimension");
            let text = format!("`{name}` is not a format of tensors of {rank}");
            let help = if ndim == 0 {
                "leave out the format of a scalar"
            } else {
                "compose one: `format(dense, compressed, …)`"
            };
            return self.error_help("storage::rank", e.span, text, help);
        };
        let fill = match format.fill {
            None => None,
            Some(fill) => self.fill(fill, dtype, e.span)?,
        };
        let format = Format { fill, ..format };
        Ok(if format.is_dense() { format } else { Format { pattern: Some(Pattern::fresh()), ..format } })
    }

    /// Evaluates the expression after `@`. An unknown name is reported as a misspelt format if one is near.
    pub(crate) fn storage_value(&mut self, e: &syntax::Expr) -> R<Value> {
        let named = match &e.kind {
            syntax::ExprKind::Name(name) => Some(name),
            syntax::ExprKind::Call { callee, .. } => match &callee.kind {
                syntax::ExprKind::Name(name) => Some(name),
                _ => None,
            },
            _ => None,
        };
        if let Some(name) = named.filter(|name| !self.is_known(name)) {
            let formats = Named::ALL.iter().map(|(n, _)| *n).chain(["bcsr", "format", "pattern"]);
            if let Some(near) = super::nearest(name, formats) {
                let text = format!("there is no format `{name}`");
                return self.error_help("name::unknown", e.span, text, format!("did you mean `{near}`?"));
            }
        }
        self.eval(e)
    }

    /// Returns the format of a parameter: one with a fresh pattern, or that of an earlier parameter.
    pub(crate) fn param_storage(&mut self, e: &syntax::Expr, shape: &[Expr], dtype: DType) -> R<Format> {
        match self.storage_value(e)? {
            Value::Storage(Storage::Pattern(of)) => self.followed(&of, shape, e.span),
            _ => self.storage(e, shape.len(), dtype),
        }
    }

    /// Checks that an argument has the same pattern as another one, as its parameter declares by `@ pattern(A)`.
    pub(crate) fn shares_pattern(&mut self, (v, wanted): (&Value, &Format), of: &str, name: &str, at: Span) -> R<()> {
        let found = v.format();
        if found.pattern == wanted.pattern && found.is_dense() == wanted.is_dense() {
            return Ok(());
        }
        let text = format!("`{name}` needs the pattern of `{of}`, but its argument has another pattern");
        let help = format!("store the argument with `@ pattern({of})`");
        self.error_help("storage::pattern", at, text, help)
    }

    /// Evaluates `pattern(A)`: the stored elements of a structured tensor; of a dense one, all elements. With
    /// `drop=True`, writes to other elements are dropped, as in derivatives, and writes to elements that share one
    /// stored value are summed, as in adjoints; with `sum=False` they are not summed.
    pub(crate) fn pattern_call(&mut self, args: Vec<Arg>, span: Span) -> R<Value> {
        let help = "write `pattern(A)`, with the name of a structured parameter";
        let (mut of, mut drops, mut sums) = (None, false, true);
        for (name, v, at) in args {
            match (name.as_deref(), v) {
                (None, Value::Tensor(view)) if of.is_none() && view.is_whole() => of = Some(view),
                (Some("drop"), Value::Bool(b)) => drops = b,
                (Some("sum"), Value::Bool(b)) => sums = b,
                (_, v) => {
                    let text = format!("`pattern` takes a whole tensor, found {}", v.describe());
                    return self.error_help("storage::pattern", at, text, help);
                }
            }
        }
        let Some(view) = of else { return self.error_help("storage::pattern", span, "`pattern` needs a tensor", help) };
        let (tensor, shape) = (view.tensor.clone(), view.shape.clone());
        let format = match drops {
            true if sums => tensor.format.derivative(),
            true => tensor.format.tangent(),
            false => tensor.format.clone(),
        };
        let name = tensor.symbol.name().to_string();
        Ok(Value::Storage(Storage::Pattern(Arc::new(PatternSource { name, format, shape }))))
    }

    /// Returns the format of a tensor that is stored where another one is (`pattern(A)`).
    pub(crate) fn followed(&mut self, of: &PatternSource, shape: &[Expr], span: Span) -> R<Format> {
        let same =
            of.shape.len() == shape.len() && of.shape.iter().zip(shape).all(|(a, b)| self.equal(a, b) == Some(true));
        if !same {
            let sizes = |all: &[Expr]| all.iter().map(print::expr).collect::<Vec<_>>().join(", ");
            let (own, its, name) = (sizes(shape), sizes(&of.shape), &of.name);
            let text =
                format!("cannot store a tensor of shape [{own}] with the pattern of `{name}`, whose shape is [{its}]");
            return self.error("storage::pattern", span, text);
        }
        Ok(of.format.clone())
    }

    /// Checks that matrices of which half is stored are square.
    pub(crate) fn squares(&mut self, format: &Format, shape: &[Expr], at: Span) -> R<()> {
        let Some((level, [a, b])) = format.squares().find(|(_, [a, b])| shape[*a] != shape[*b]) else { return Ok(()) };
        let (kind, sizes) = (level.kind.name(), [a, b].map(|d| print::expr(&shape[d])));
        let [a, b] = &sizes;
        let text = format!("`{kind}` needs a square matrix, found the sizes `{a}` and `{b}`");
        self.error_help("storage::square", at, text, format!("give both dimensions the size `{a}`"))
    }

    /// Converts the fill value to an element; `None` if it is 0.
    fn fill(&mut self, fill: Literal, dtype: DType, span: Span) -> R<Option<Literal>> {
        let value = match fill {
            Literal::Bool(b) => Value::Bool(b),
            Literal::Int(i) => Value::Int(i),
            Literal::Float(f) => Value::Float(f),
        };
        let Some(l) = value.lazy() else { unreachable!("a number has a value") };
        let stored = self.stored(&l, dtype, span)?.as_literal();
        Ok(stored.filter(|v| *v != Literal::zero(dtype)))
    }

    fn not_storage<T>(&mut self, v: &Value, span: Span) -> R<T> {
        let text = format!("expected a format after `@`, found {}", v.describe());
        let help = match v {
            Value::Storage(Storage::Blocks) => "give the rows and columns of a block: `bcsr(4, 4)`",
            _ => "write `csr`, or compose one: `format(dense, compressed)`",
        };
        self.error_help("storage::format", span, text, help)
    }
}
