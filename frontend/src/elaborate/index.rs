//! Subscripts, as in NumPy: integers, slices, `...`, `None` and index tensors, on views, elementwise values and static
//! sequences.
//!
//! A subscript becomes an index for every dimension of the operand, over the axes of the result. Slices never clamp:
//! `0 <= a <= b <= n` is proved or asserted. Negative positions count from the end where they are static.

use super::broadcast::{MessagePiece, message, show, stretch};
use super::builtin::Builtin;
use super::missing::Missing;
use super::value::{Lazy, Value};
use super::{Elab, R, axis};
use crate::syntax::{self, ExprKind};
use taffeta_ast::expr::Protocol;
use taffeta_ast::spelling::counted;
use taffeta_ast::stmt::AssertKind;
use taffeta_ast::{Access, DType, Expr, Kind, Op, Span, StmtKind, poly};

/// Evaluated item of a subscript.
enum Sub {
    /// `None`: a new dimension of size 1.
    New,
    /// The remaining dimensions in full.
    Ellipsis,
    /// `lower:upper:step`
    Slice { lower: Option<Value>, upper: Option<Value>, step: i64, span: Span },
    /// Integer, which removes the dimension; `permit(j)` may be out of range.
    At(Value, Protocol, Span),
    /// Index tensor, and whether it may be out of range.
    Gather(Lazy, Protocol, bool, Span),
}

/// Subscript of one dimension of the operand.
enum Dim {
    /// Index itself, and whether it may be out of range.
    At(Access, bool),
    /// `start + step * axis`, for the axis of the result with that number.
    Axis { start: Expr, step: i64, out: usize },
    /// Index tensor, over the gathered axes of the result.
    Gather(Lazy, Protocol, bool),
}

/// Resolved subscript: the index of every dimension over the axes of `shape`.
pub(crate) struct Indexed {
    pub(crate) at: Vec<Access>,
    pub(crate) shape: Vec<Expr>,
    pub(crate) gathered: bool,
    /// Condition over the same axes that all indices permitted to be out of range are in range.
    pub(crate) there: Expr,
    /// Place of an access protocol, if one is given.
    pub(crate) protocol: Option<Span>,
}

/// Dimension of the tensor that is indexed.
struct Dimension<'a> {
    number: usize,
    size: &'a Expr,
}

impl Elab<'_> {
    /// Evaluates `of[items]`.
    pub(crate) fn subscript(&mut self, of: Value, of_span: Span, items: &[syntax::Expr], span: Span) -> R<Value> {
        match &of {
            Value::Tuple(values) | Value::List(values) => {
                let list = matches!(of, Value::List(_));
                let values = values.clone();
                // In a schedule all values are static.
                if self.schedule.is_none() && !matches!(items, [one] if !self.is_open_item(one)?) {
                    return self.table_item(&values, of_span, items, span);
                }
                return self.sequence_item(&values, list, items, span);
            }
            Value::Str(text) => {
                let characters: Vec<Value> = text.chars().map(|c| Value::str(c.to_string())).collect();
                let part = self.sequence_item(&characters, false, items, span)?;
                let joined = |items: &[Value]| -> String {
                    let text = |v: &Value| match v {
                        Value::Str(c) => c.to_string(),
                        _ => String::new(),
                    };
                    items.iter().map(text).collect()
                };
                return Ok(part.items().map(joined).map_or(part.clone(), Value::str));
            }
            Value::Tensor(_) | Value::Lazy(_) | Value::Empty(..) => {}
            Value::Missing(_) => {}
            Value::Offset(by) => return self.offset_item(&by.clone(), items, span),
            Value::Function(_) | Value::Operator(_) | Value::Builtin(_) => {
                return self.error("type::subscript", of_span, "a function cannot be indexed; call it with `(…)`");
            }
            other => {
                let found = other.describe();
                return self.error("type::subscript", of_span, format!("cannot index {found}"));
            }
        }
        let of_value = match &of {
            Value::Missing(m) => Value::Lazy(m.value.clone()),
            v => v.clone(),
        };
        let shape = of_value.shape().unwrap_or_default();
        let own = self.own_dimensions(&of_value);
        let ix = self.indexed((&shape, &own), of_span, items, span)?;
        let there = ix.there.clone();
        let part = match of {
            Value::Tensor(v) => Ok(Value::Tensor(v.reindexed(&ix.at, ix.shape, ix.gathered))),
            Value::Missing(m) => {
                let part = m.part(&ix.at, ix.shape);
                return Ok(Missing::of(Value::Lazy(part.value), there.and(&part.there)));
            }
            other => match other.lazy() {
                Some(l) => {
                    let expr = axis::subscripted_expr(&l.expr, &ix.at);
                    let weak = l.weak && !ix.gathered;
                    Ok(Value::Lazy(Lazy { shape: ix.shape, expr, weak }))
                }
                None => self.error_help(
                    "value::empty",
                    of_span,
                    "a tensor made by `empty` has no values yet",
                    "give it a name first",
                ),
            },
        };
        Ok(Missing::of(part?, there))
    }

    /// Returns an item or a slice of a static sequence.
    fn sequence_item(&mut self, values: &[Value], list: bool, items: &[syntax::Expr], span: Span) -> R<Value> {
        let [item] = items else {
            return self.error("type::subscript", span, "expected one index for a list or a tuple");
        };
        let n = values.len() as i128;
        if let ExprKind::Slice { lower, upper, step } = &item.kind {
            let mut part = |e: &Option<Box<syntax::Expr>>| -> R<Option<i128>> {
                match e {
                    None => Ok(None),
                    Some(e) => self.static_int(e).map(Some),
                }
            };
            let (lower, upper, step) = (part(lower)?, part(upper)?, part(step)?.unwrap_or(1));
            if step == 0 {
                return self.error("static::sequence", item.span, "the step of a slice cannot be 0");
            }
            // Slices of static sequences clamp as in Python.
            let clamp = |v: i128, lo: i128, hi: i128| (if v < 0 { v + n } else { v }).clamp(lo, hi);
            let (mut k, end) = if step > 0 {
                (lower.map_or(0, |v| clamp(v, 0, n)), upper.map_or(n, |v| clamp(v, 0, n)))
            } else {
                (lower.map_or(n - 1, |v| clamp(v, -1, n - 1)), upper.map_or(-1, |v| clamp(v, -1, n - 1)))
            };
            let mut out = Vec::new();
            while (step > 0 && k < end) || (step < 0 && k > end) {
                out.push(values[k as usize].clone());
                k += step;
            }
            return Ok(if list { Value::List(out.into()) } else { Value::Tuple(out.into()) });
        }
        let k = self.static_int(item)?;
        match usize::try_from(if k < 0 { k + n } else { k }).ok().and_then(|k| values.get(k)) {
            Some(v) => Ok(v.clone()),
            None => self.error(
                "index::range",
                item.span,
                format!("index {k} is out of range: the sequence has {}", counted(n, "item")),
            ),
        }
    }

    /// Evaluates a static integer.
    pub(crate) fn static_int(&mut self, e: &syntax::Expr) -> R<i128> {
        match self.eval(e)? {
            Value::Int(i) => Ok(i),
            v => {
                let found = v.describe();
                self.error_help(
                    "static::integer",
                    e.span,
                    format!("expected an integer known when compiling, found {found}"),
                    "sizes and values of tensors are not static",
                )
            }
        }
    }

    /// Resolves the subscript `items` of an operand of that shape; `own` marks the dimensions whose bounds the access
    /// to the tensor checks itself.
    pub(crate) fn indexed(
        &mut self,
        (shape, own): (&[Expr], &[bool]),
        of_span: Span,
        items: &[syntax::Expr],
        span: Span,
    ) -> R<Indexed> {
        let items = match items {
            // `x[(i, j)]` is `x[i, j]`, and `x[()]` is the whole of a scalar.
            [syntax::Expr { kind: ExprKind::Tuple(inner), .. }] => inner.as_slice(),
            items => items,
        };
        let subs = self.evaluate_items(items)?;
        let taken = subs.iter().filter(|s| !matches!(s, Sub::New | Sub::Ellipsis)).count();
        if taken > shape.len() {
            return self.error(
                "index::rank",
                span,
                format!(
                    "{} has {}, but {taken} {} given",
                    self.quote(of_span),
                    counted(shape.len(), "dimension"),
                    if taken == 1 { "index is" } else { "indices are" }
                ),
            );
        }
        self.resolve((shape, own), subs, shape.len() - taken, span)
    }

    fn evaluate_items(&mut self, items: &[syntax::Expr]) -> R<Vec<Sub>> {
        let mut parts: Vec<&syntax::Expr> = Vec::new();
        let mut found = Vec::with_capacity(items.len());
        for item in items {
            let (protocol, inner) = self.protocol(item)?;
            found.push((protocol, inner, item.span));
            let item = inner;

            match &item.kind {
                ExprKind::Slice { lower, upper, .. } => {
                    parts.extend([lower, upper].into_iter().flatten().map(|b| &**b));
                }
                ExprKind::Ellipsis | ExprKind::None => {}
                _ => parts.push(item),
            }
        }
        let mut values = self.eval_operands(parts)?.into_iter();
        let mut next = || values.next().unwrap_or(Value::None);
        let mut subs = Vec::with_capacity(items.len());
        let mut later: Vec<(usize, &syntax::Expr)> = Vec::new();
        for (protocol, item, at) in found {
            match &item.kind {
                ExprKind::Slice { lower, upper, step } => {
                    let mut end = |e: &Option<Box<syntax::Expr>>| -> R<Option<Value>> {
                        e.as_ref().map(|e| self.present(next(), e.span)).transpose()
                    };
                    let (lower, upper) = (end(lower)?, end(upper)?);
                    if let Some(s) = step {
                        later.push((subs.len(), s));
                    }
                    subs.push(Sub::Slice { lower, upper, step: 1, span: item.span });
                }
                ExprKind::Ellipsis => subs.push(Sub::Ellipsis),
                ExprKind::None => subs.push(Sub::New),
                _ => subs.push(Sub::At(next(), protocol, at)),
            }
        }
        for (k, e) in later {
            let given = self.static_int(e)?;
            match (&mut subs[k], i64::try_from(given)) {
                (Sub::Slice { step, .. }, Ok(s)) if s != 0 => *step = s,
                _ => return self.error("index::slice", e.span, "expected a nonzero integer as the step of a slice"),
            }
        }
        if subs.iter().filter(|s| matches!(s, Sub::Ellipsis)).count() > 1 {
            let span = items[0].span.to(items[items.len() - 1].span);
            return self.error("index::slice", span, "a subscript can have only one `...`");
        }
        if let [Sub::At(Value::Tuple(all), Protocol::Default, span)] = subs.as_slice() {
            // A tuple that was computed: one index for each dimension.
            subs = all.iter().map(|v| Sub::At(v.clone(), Protocol::Default, *span)).collect();
        }
        subs.into_iter().map(|s| self.classify(s)).collect()
    }

    /// Splits an item into its access protocol and the index: `gallop(j)`.
    fn protocol<'e>(&mut self, item: &'e syntax::Expr) -> R<(Protocol, &'e syntax::Expr)> {
        let of = |this: &mut Self, e: &syntax::Expr| -> R<Option<Protocol>> {
            let ExprKind::Call { callee, .. } = &e.kind else { return Ok(None) };
            let ExprKind::Name(name) = &callee.kind else { return Ok(None) };
            if !matches!(Builtin::find(name), Some(Builtin::Protocol(_))) {
                return Ok(None);
            }
            // A name of the program hides the built-in function.
            Ok(match this.lookup(name, callee.span)? {
                Value::Builtin(Builtin::Protocol(p)) => Some(p),
                _ => None,
            })
        };
        let Some(protocol) = of(self, item)? else { return Ok((Protocol::Default, item)) };
        let ExprKind::Call { callee, args } = &item.kind else { unreachable!("it is a call") };
        let name = self.quote(callee.span);
        let [syntax::Arg { name: None, value }] = args.as_slice() else {
            return self.error("call::arguments", item.span, format!("{name} takes one index"));
        };
        if of(self, value)?.is_some() {
            let text = "conflicting access protocols for one index";
            return self.error_help("storage::protocol", item.span, text, "leave out one of them");
        }
        if let ExprKind::None | ExprKind::Ellipsis = value.kind {
            let text = format!("expected an integer index in {name}, found `None` or `...`");
            return self.error_help("storage::protocol", item.span, text, "write an integer index in the parentheses");
        }
        Ok((protocol, value))
    }

    /// Classifies an index as an integer or an index tensor, and refuses other values.
    fn classify(&mut self, sub: Sub) -> R<Sub> {
        let Sub::At(v, protocol, span) = sub else { return Ok(sub) };
        self.note_operand(&v);
        match &v {
            Value::Int(_) => return Ok(Sub::At(v, protocol, span)),
            Value::Permit(l) if l.shape.is_empty() => return Ok(Sub::At(v, protocol, span)),
            Value::Permit(l) => return Ok(Sub::Gather(l.clone(), protocol, true, span)),
            Value::Missing(_) => return self.present(v, span).map(|v| Sub::At(v, protocol, span)),
            Value::None if protocol == Protocol::Default => return Ok(Sub::New),
            _ => {}
        }
        let Some(l) = v.lazy() else {
            let found = v.describe();
            if let Value::List(_) = v {
                return self.error_help(
                    "index::type",
                    span,
                    "expected an integer index, found a list",
                    "index each dimension with a tuple: `x[tuple(at)]`, or gather with a tensor of integers",
                );
            }
            return self.error("index::type", span, format!("expected an integer index, found {found}"));
        };
        match l.expr.dtype().kind() {
            Kind::Int if l.shape.is_empty() => Ok(Sub::At(v, protocol, span)),
            Kind::Int => Ok(Sub::Gather(l, protocol, false, span)),
            Kind::Bool => self.error_help(
                "index::type",
                span,
                "expected an integer index, found a `bool`",
                "masks are not supported as indices; choose elements with `where(mask, a, b)`",
            ),
            Kind::Float => {
                let quotient = matches!(l.expr.kind(), taffeta_ast::ExprKind::Apply(Op::Div, _));
                let help = match self.program.sources().text(span).split_once('/').filter(|_| quotient) {
                    // The help rewrites the text only if it is a single quotient.
                    Some((a, b)) if !b.contains('/') => {
                        format!("`/` gives a float; `//` divides integers: `{} // {}`", a.trim(), b.trim())
                    }
                    _ if quotient => "`/` gives a float; `//` divides integers".to_string(),
                    _ => "convert it: `cast(x, i64)`".to_string(),
                };
                self.error_help("index::type", span, "expected an integer index, found a float", help)
            }
        }
    }

    /// Combines the items: the shape of the result, and the index of every dimension.
    fn resolve(&mut self, (shape, own): (&[Expr], &[bool]), subs: Vec<Sub>, rest: usize, span: Span) -> R<Indexed> {
        let gathered = subs.iter().any(|s| matches!(s, Sub::Gather(..)));
        let has_ellipsis = subs.iter().any(|s| matches!(s, Sub::Ellipsis));
        let mut dims: Vec<Dim> = Vec::new();
        let mut out: Vec<Expr> = Vec::new();
        // With an index tensor, integers are index tensors of no dimension; if they are not neighbours, the gathered
        // dimensions come first (NumPy's rule).
        let mut first_gather: Option<usize> = None;
        let mut apart = false;
        let mut last_was_gather = false;
        let mut gathers: Vec<(Lazy, Span)> = Vec::new();
        let mut protocol = None;
        let full = |n: &Expr, dims: &mut Vec<Dim>, out: &mut Vec<Expr>| {
            dims.push(Dim::Axis { start: Expr::int(0), step: 1, out: out.len() });
            out.push(n.clone());
        };
        let trailing = if has_ellipsis { 0 } else { rest };
        for sub in subs {
            let is_gather = gathered && matches!(sub, Sub::At(..) | Sub::Gather(..));
            if is_gather {
                apart |= first_gather.is_some() && !last_was_gather;
                first_gather.get_or_insert(out.len());
            }
            last_was_gather = is_gather;
            match sub {
                Sub::New => out.push(Expr::int(1)),
                Sub::Ellipsis => {
                    for _ in 0..rest {
                        full(&shape[dims.len()], &mut dims, &mut out);
                    }
                }
                Sub::At(v, how, at) => {
                    let permitted = matches!(v, Value::Permit(_));
                    let index = self.position(&v, &shape[dims.len()], at)?;
                    if !own[dims.len()] && !permitted {
                        self.require_within(&index, &[], &shape[dims.len()]);
                    }
                    dims.push(Dim::At(Access { index, protocol: how }, permitted));
                    protocol = protocol.or((how != Protocol::Default).then_some(at));
                }
                Sub::Slice { lower, upper, step, span } => {
                    let n = shape[dims.len()].clone();
                    let (start, len) =
                        self.slice([lower, upper], step, &Dimension { number: dims.len(), size: &n }, span)?;
                    dims.push(Dim::Axis { start, step, out: out.len() });
                    out.push(len);
                }
                Sub::Gather(l, how, permitted, at) => {
                    if !own[dims.len()] && !permitted {
                        self.require_within(&l.expr.clone().cast(DType::I64), &l.shape, &shape[dims.len()]);
                    }
                    gathers.push((l.clone(), at));
                    dims.push(Dim::Gather(l, how, permitted));
                    protocol = protocol.or((how != Protocol::Default).then_some(at));
                }
            }
        }
        for _ in 0..trailing {
            full(&shape[dims.len()], &mut dims, &mut out);
        }
        let operands: Vec<(&[Expr], Span)> = gathers.iter().map(|(l, s)| (l.shape.as_slice(), *s)).collect();
        let gather_shape = self.broadcast(&operands, span)?;
        let position = if apart { 0 } else { first_gather.unwrap_or(0) };
        let width = gather_shape.len();
        let mut all = out[..position].to_vec();
        all.extend(gather_shape.iter().cloned());
        all.extend_from_slice(&out[position..]);
        let ndim = all.len();
        if ndim > axis::MAX_NDIM {
            return self.error("shape::rank", span, format!("a tensor has at most {} dimensions", axis::MAX_NDIM));
        }
        let axes: Vec<Expr> = (position..position + width).map(|d| axis::var(ndim, d)).collect();
        let mut there = Expr::bool(true);
        let mut permit = |index: &Expr, n: &Expr, permitted: bool| {
            if permitted {
                there = there.and(&Self::in_range(index, n));
            }
        };
        let at = dims
            .into_iter()
            .zip(shape)
            .map(|(d, n)| match d {
                Dim::At(a, permitted) => {
                    permit(&a.index, n, permitted);
                    a
                }
                Dim::Axis { start, step, out } => {
                    let d = if out < position { out } else { out + width };
                    let along = |m: i64| axis::var(ndim, d).times(&Expr::int(m));
                    let index =
                        if step < 0 { start.minus(&along(step.saturating_neg())) } else { along(step).plus(&start) };
                    Access::from(index)
                }
                Dim::Gather(l, protocol, permitted) => {
                    let index = axis::substitute(&stretch(&l, &gather_shape), &axes).cast(DType::I64);
                    permit(&index, n, permitted);
                    Access { index, protocol }
                }
            })
            .collect();
        Ok(Indexed { at, shape: all, gathered, there, protocol })
    }

    /// Converts an integer index of a dimension of size `n` to i64.
    fn position(&mut self, v: &Value, n: &Expr, span: Span) -> R<Expr> {
        match v {
            Value::Int(k) => {
                let size = n.as_int().map(i128::from);
                if let Some(size) = size
                    && !(-size..size).contains(k)
                {
                    return self.error(
                        "index::range",
                        span,
                        format!("index {k} is out of range: the dimension has size {size}"),
                    );
                }
                let Ok(k) = i64::try_from(*k) else {
                    return self.error("index::range", span, format!("index {k} does not fit in 64 bits"));
                };
                Ok(if k < 0 { n.plus(&Expr::int(k)) } else { Expr::int(k) })
            }
            Value::Permit(l) => Ok(l.expr.clone()),
            v => match v.lazy() {
                Some(l) if l.shape.is_empty() && self.is_outside(&l.expr, n) => {
                    let (k, n) = (show(&l.expr), show(n));
                    let message = format!("index {k} is out of range: the dimension has size {n}");
                    self.error("index::range", span, message)
                }
                Some(l) => Ok(l.expr.cast(DType::I64)),
                None => self.error("index::type", span, format!("expected an integer index, found {}", v.describe())),
            },
        }
    }

    /// Proves, by a simple test, that an index is out of range for all sizes. Only indices outside of all loops and
    /// branches are considered: a loop of no iterations never evaluates its indices.
    fn is_outside(&self, k: &Expr, n: &Expr) -> bool {
        self.blocks.len() == 1
            && k.dtype() == DType::I64
            && (self.is_nonnegative(&k.minus(n)) || self.is_nonnegative(&Expr::int(-1).minus(k)))
    }

    /// Evaluates a bound of a slice.
    fn bound(&mut self, v: Value, n: &Expr, span: Span) -> R<Expr> {
        match &v {
            Value::Int(k) => match i64::try_from(*k) {
                Ok(k) if k < 0 => Ok(n.plus(&Expr::int(k))),
                Ok(k) => Ok(Expr::int(k)),
                Err(_) => self.error("index::range", span, format!("{k} does not fit in 64 bits")),
            },
            v => match v.lazy() {
                Some(l) if l.shape.is_empty() && l.expr.dtype().is_int() => Ok(l.expr.cast(DType::I64)),
                _ => {
                    let found = v.describe();
                    self.error("index::type", span, format!("expected an integer as a bound of a slice, found {found}"))
                }
            },
        }
    }

    /// Returns start and length of a slice of a dimension.
    fn slice(
        &mut self,
        [lower, upper]: [Option<Value>; 2],
        step: i64,
        dimension: &Dimension<'_>,
        span: Span,
    ) -> R<(Expr, Expr)> {
        let n = dimension.size;
        let whole = lower.is_none() && upper.is_none();
        let given = |v: Option<Value>, this: &mut Self| v.map(|v| this.bound(v, n, span)).transpose();
        let (from, to) = (given(lower, self)?, given(upper, self)?);
        let (zero, one) = (Expr::int(0), Expr::int(1));
        // The elements lie in low … high - 1.
        let (start, low, high) = if step > 0 {
            let low = from.clone().unwrap_or(zero);
            (low.clone(), low, to.clone().unwrap_or_else(|| n.clone()))
        } else {
            let start = from.clone().unwrap_or_else(|| n.minus(&one));
            let low = to.as_ref().map_or(zero, |b| b.plus(&one));
            let high = start.plus(&one);
            (start, low, high)
        };
        if !whole {
            let ends = if step > 0 {
                [
                    MessagePiece::Text("from "),
                    MessagePiece::Size(&low),
                    MessagePiece::Text(" to "),
                    MessagePiece::Size(&high),
                ]
            } else {
                let from = from.as_ref().map_or(MessagePiece::Text("the end"), MessagePiece::Size);
                let to = to.as_ref().map_or(MessagePiece::Text("the beginning"), MessagePiece::Size);
                [MessagePiece::Text("backwards from "), from, MessagePiece::Text(" to "), to]
            };
            self.check_slice([&low, &high], dimension, &ends, span)?;
        }
        let width = high.minus(&low);
        let m = step.unsigned_abs();
        let len = match i64::try_from(m) {
            Ok(1) => width,
            Ok(m) => width.plus(&Expr::int(m - 1)).floor_div(&Expr::int(m)),
            Err(_) => return self.error("index::slice", span, "the step of a slice is too large"),
        };
        Ok((start, simplified(&len)))
    }

    /// Proves or asserts `0 <= low <= high <= n`. Messages give the bounds of the slice as the program does: `ends`.
    fn check_slice(
        &mut self,
        [low, high]: [&Expr; 2],
        &Dimension { number: d, size: n }: &Dimension<'_>,
        ends: &[MessagePiece<'_>],
        span: Span,
    ) -> R<()> {
        let mut unproved: Option<Expr> = None;
        for (a, b) in [(&Expr::int(0), low), (low, high), (high, n)] {
            match poly::Poly::of(&b.minus(a)).and_then(|p| p.as_constant()) {
                Some(c) if c < 0 => {
                    let text = |p: &MessagePiece<'_>| match p {
                        MessagePiece::Text(t) => t.to_string(),
                        MessagePiece::Size(e) => show(e),
                    };
                    let ends: String = ends.iter().map(text).collect();
                    let size = show(n);
                    let rule = if ends.starts_with("backwards") {
                        "0 <= b <= a < n must hold for `x[a:b:-1]`"
                    } else {
                        "0 <= a <= b <= n must hold for `x[a:b]`"
                    };
                    return self.error_help(
                        "index::range",
                        span,
                        format!("invalid slice {ends}: dimension {d} has size {size}"),
                        format!("slices do not clamp: {rule}"),
                    );
                }
                Some(_) => {}
                None if self.is_nonnegative(&b.minus(a)) || self.was_checked(&b.minus(a)) => {}
                None => {
                    let mut read = rustc_hash::FxHashSet::default();
                    super::block::reads(&b.minus(a), &mut read);
                    if read.is_empty() {
                        self.block_mut().nonnegative.push(b.minus(a));
                    }
                    let c = a.less_eq(b);
                    unproved = Some(unproved.map_or(c.clone(), |u| u.and(&c)));
                }
            }
        }
        if let Some(cond) = unproved {
            let dimension = format!(": dimension {d} has size ");
            let tail = [MessagePiece::Text(&dimension), MessagePiece::Size(n)];
            let message = message([MessagePiece::Text("invalid slice ")].iter().chain(ends).chain(&tail).copied());
            self.emit(StmtKind::Assert { cond, message, kind: AssertKind::Program });
        }
        Ok(())
    }

    /// Returns whether an assertion passed before has checked that an integer is non-negative.
    pub(crate) fn was_checked(&self, e: &Expr) -> bool {
        self.blocks.iter().any(|b| b.nonnegative.iter().any(|known| poly::equal(known, e) == Some(true)))
    }

    /// Proves, by a simple test, that an integer is non-negative for all sizes.
    pub(crate) fn is_nonnegative(&self, e: &Expr) -> bool {
        use taffeta_ast::ExprKind as K;
        let atom = |a: &Expr| match a.kind() {
            K::Var(s) => self.nonnegative.contains(s),
            K::Apply(Op::FloorDiv, v) => v[1].as_int().is_some_and(|c| c > 0) && self.is_nonnegative(&v[0]),
            K::Apply(Op::Mod, v) => v[1].as_int().is_some_and(|c| c > 0),
            K::Apply(Op::Max, v) => v.iter().any(|x| self.is_nonnegative(x)),
            K::Apply(Op::Min, v) => v.iter().all(|x| self.is_nonnegative(x)),
            _ => false,
        };
        poly::Poly::of(e).is_some_and(|p| p.terms().all(|(m, c)| c >= 0 && m.iter().all(atom)))
    }
}

/// Folds a length whose sizes cancel to a constant.
fn simplified(e: &Expr) -> Expr {
    match poly::Poly::of(e).and_then(|p| p.as_constant()).and_then(|c| i64::try_from(c).ok()) {
        Some(c) => Expr::int(c),
        None => e.clone(),
    }
}
