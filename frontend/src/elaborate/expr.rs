//! Expressions: evaluation of the syntax tree to values, with temporaries for operands that later operands overwrite.

use super::block::{Mark, reads};
use super::choice::Condition;
use super::value::{Lazy, Value, View};
use super::{Elab, R, axis, static_eval};
use crate::syntax::{self, BinOp, CmpOp, ExprKind, UnaryOp};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_ast::{Access, DType, Op, Span, Symbol};

/// Returns the tree's operator for a binary operator; `@` has none.
pub(crate) fn binary_op(op: BinOp) -> Option<Op> {
    Some(match op {
        BinOp::Add => Op::Add,
        BinOp::Sub => Op::Sub,
        BinOp::Mul => Op::Mul,
        BinOp::Div => Op::Div,
        BinOp::FloorDiv => Op::FloorDiv,
        BinOp::Mod => Op::Mod,
        BinOp::Pow => Op::Pow,
        BinOp::BitAnd => Op::BitAnd,
        BinOp::BitOr => Op::BitOr,
        BinOp::BitXor => Op::BitXor,
        BinOp::Shl => Op::Shl,
        BinOp::Shr => Op::Shr,
        BinOp::MatMul => return None,
    })
}

fn comparison_op(op: CmpOp) -> Option<Op> {
    Some(match op {
        CmpOp::Eq => Op::Eq,
        CmpOp::Ne => Op::Ne,
        CmpOp::Lt => Op::Lt,
        CmpOp::Le => Op::Le,
        CmpOp::Gt => Op::Gt,
        CmpOp::Ge => Op::Ge,
        CmpOp::In | CmpOp::NotIn | CmpOp::Is | CmpOp::IsNot => return None,
    })
}

/// Collects the tensors that a use of the value reads.
pub(crate) fn value_reads(v: &Value, out: &mut FxHashSet<Symbol>) {
    match v {
        Value::Tensor(view) => {
            out.insert(view.tensor.symbol.clone());
            view.indices.iter().for_each(|a| reads(&a.index, out));
        }
        Value::Lazy(l) | Value::Permit(l) => reads(&l.expr, out),
        Value::Missing(m) => {
            reads(&m.value.expr, out);
            reads(&m.there, out);
        }
        Value::Tuple(items) | Value::List(items) => items.iter().for_each(|v| value_reads(v, out)),
        _ => {}
    }
}

/// Methods and attributes of NumPy and PyTorch, with their equivalents here; `_` stands for the object.
const METHODS: [(&str, &str); 12] = [
    ("astype", "`cast(_, f64)`"),
    ("to", "`cast(_, f64)`"),
    ("float", "`cast(_, f32)`"),
    ("double", "`cast(_, f64)`"),
    ("int", "`cast(_, i32)`"),
    ("long", "`cast(_, i64)`"),
    ("size", "`_.shape[0]`, with the number of the dimension"),
    ("dot", "`_ @ y`"),
    ("mm", "`_ @ y`"),
    ("view", "`reshape(_, (n, m))`"),
    ("copy", "`t = _` with a new name, which copies it"),
    ("item", "`_` itself: a scalar is a number"),
];

impl Elab<'_> {
    /// Evaluates an expression; a value that may be missing is refused.
    pub(crate) fn eval(&mut self, e: &syntax::Expr) -> R<Value> {
        let v = self.eval_operand(e)?;
        self.present(v, e.span)
    }

    /// Evaluates an operand, whose value may be missing.
    pub(crate) fn eval_operand(&mut self, e: &syntax::Expr) -> R<Value> {
        self.step(e.span)?;
        let v = self.expression(e)?;
        if !matches!(e.kind, ExprKind::Name(_) | ExprKind::Subscript(..) | ExprKind::Str(_)) {
            self.bounded(&v, e.span)?;
        }
        if self.schedule.is_some() {
            self.known_in_schedule(&v, e.span)?;
        }
        Ok(v)
    }

    fn expression(&mut self, e: &syntax::Expr) -> R<Value> {
        match &e.kind {
            ExprKind::Name(name) => self.lookup(name, e.span),
            ExprKind::Int(Some(i)) => Ok(Value::Int(*i)),
            ExprKind::Int(None) => self.error("type::literal", e.span, "this integer does not fit in 64 bits"),
            ExprKind::Float(f) => Ok(Value::Float(*f)),
            ExprKind::Bool(b) => Ok(Value::Bool(*b)),
            ExprKind::None => Ok(Value::None),
            ExprKind::Str(s) => Ok(Value::str(s.as_str())),
            ExprKind::Format(parts) => self.format(parts, e.span),
            ExprKind::Tuple(items) => Ok(Value::Tuple(self.eval_all(items)?.into())),
            ExprKind::List(items) => Ok(Value::List(self.eval_all(items)?.into())),
            ExprKind::Comprehension { element, targets, iter, conds } => {
                self.comprehension(element, targets, iter, conds)
            }
            ExprKind::Binary(op, a, b) => {
                let v = self.eval_operands([&**a, &**b])?;
                self.binary(*op, (v[0].clone(), a.span), (v[1].clone(), b.span), e.span)
            }
            ExprKind::Unary(op, a) => {
                let v = self.eval_operand(a)?;
                self.unary(*op, v, a.span, e.span)
            }
            ExprKind::And(items) => self.logical(Op::And, items, e.span),
            ExprKind::Or(items) => self.logical(Op::Or, items, e.span),
            ExprKind::Compare(first, rest) => self.comparison(first, rest, e.span),
            ExprKind::IfElse { cond, then, otherwise } => self.if_else(cond, then, otherwise, e.span),
            ExprKind::Call { callee, args } => self.call(callee, args, e.span),
            ExprKind::Attribute(of, name) => self.attribute(of, name),
            ExprKind::Subscript(of, items) => {
                let v = self.eval_operand(of)?;
                self.subscript(v, of.span, items, e.span)
            }
            ExprKind::Ellipsis => self.error("syntax::misplaced", e.span, "`...` is only allowed in subscripts"),
            ExprKind::Slice { .. } => self.error("syntax::misplaced", e.span, "a slice is only allowed in subscripts"),
            ExprKind::Lambda { .. } => self.error_help(
                "syntax::lambda",
                e.span,
                "lambdas are not supported",
                "define a function with `def`; calls of it are inlined",
            ),
        }
    }

    /// Evaluates several operands from left to right: if a later one writes a tensor that an earlier one reads, the
    /// earlier one is kept in a temporary.
    pub(crate) fn eval_all<'e>(&mut self, exprs: impl IntoIterator<Item = &'e syntax::Expr>) -> R<Vec<Value>> {
        let exprs: Vec<&syntax::Expr> = exprs.into_iter().collect();
        let values = self.eval_operands(exprs.iter().copied())?;
        values.into_iter().zip(exprs).map(|(v, e)| self.present(v, e.span)).collect()
    }

    /// Evaluates several operands from left to right, as [`Elab::eval_all`] does; their values may be missing.
    pub(crate) fn eval_operands<'e>(&mut self, exprs: impl IntoIterator<Item = &'e syntax::Expr>) -> R<Vec<Value>> {
        let mut values: Vec<Value> = Vec::new();
        let mut marks: Vec<Mark> = Vec::new();
        for e in exprs {
            let before = self.mark();
            let v = self.eval_operand(e)?;
            if self.emitted_since(before) && !values.is_empty() {
                self.keep_overwritten(&mut values, &mut marks, before);
            }
            values.push(v);
            marks.push(self.mark());
        }
        Ok(values)
    }

    /// Puts values whose tensors were written since `before` into temporaries, which are filled ahead of the writes.
    fn keep_overwritten(&mut self, values: &mut [Value], marks: &mut [Mark], before: Mark) {
        let written = self.written_since(before);
        if written.is_empty() {
            return;
        }
        for k in (0..values.len()).rev() {
            let later = self.block_mut().items.split_off(marks[k].items);
            values[k] = self.kept(&values[k], &written);
            let inserted = self.block().items.len() - marks[k].items;
            self.block_mut().items.extend(later);
            marks[k..].iter_mut().for_each(|m| m.items += inserted);
        }
    }

    /// Returns the value, with temporaries for parts that read tensors which are `written` before its use.
    pub(crate) fn kept(&mut self, v: &Value, written: &FxHashSet<Symbol>) -> Value {
        match v {
            Value::Tuple(items) => Value::Tuple(items.iter().map(|v| self.kept(v, written)).collect()),
            Value::List(items) => Value::List(items.iter().map(|v| self.kept(v, written)).collect()),
            Value::Permit(l) => match self.kept(&Value::Lazy(l.clone()), written).lazy() {
                Some(l) => Value::Permit(l),
                None => v.clone(),
            },
            Value::Missing(m) => self.kept_missing(m, written),
            _ => {
                let mut read = FxHashSet::default();
                value_reads(v, &mut read);
                match v.lazy() {
                    Some(l) if !read.is_disjoint(written) => Value::Tensor(self.materialise(&l, l.expr.dtype(), "t")),
                    _ => v.clone(),
                }
            }
        }
    }

    /// Stores an elementwise value into a temporary of type `dtype`.
    pub(crate) fn materialise(&mut self, l: &Lazy, dtype: DType, name: &str) -> View {
        let temp = self.local(name, dtype, l.shape.clone());
        let mut view = View::whole(&temp, true);
        self.store(&temp, &l.shape, &view.indices, &l.expr.clone().cast(dtype));
        view.owned = true;
        view.open = l.weak && !self.reads_tables_alone(&l.expr);
        view
    }

    /// Evaluates `a op b`.
    pub(crate) fn binary(&mut self, op: BinOp, a: (Value, Span), b: (Value, Span), span: Span) -> R<Value> {
        let Some(tree_op) = binary_op(op) else {
            let Some(matmul) = self.library("matmul")? else {
                return self.error(
                    "name::unknown",
                    span,
                    "`@` needs `matmul` of the operator library, which is not loaded",
                );
            };
            return self.call_value(&matmul, vec![(None, a.0, a.1), (None, b.0, b.1)], span);
        };
        match static_eval::sequence(tree_op, &a.0, &b.0) {
            Some(Ok(v)) => Ok(v),
            Some(Err(why)) => self.error("static::arithmetic", span, why),
            None => self.apply(tree_op, &[a, b], span),
        }
    }

    pub(crate) fn unary(&mut self, op: UnaryOp, v: Value, at: Span, span: Span) -> R<Value> {
        let op = match op {
            UnaryOp::Neg => Op::Neg,
            UnaryOp::Not => Op::Not,
            UnaryOp::Invert => Op::BitNot,
            UnaryOp::Pos => {
                if v.lazy().is_some_and(|l| l.expr.dtype() != DType::Bool) {
                    return Ok(v);
                }
                return self.error("type::operand", span, format!("`+` takes numbers, found {}", v.describe()));
            }
        };
        self.apply(op, &[(v, at)], span)
    }

    /// Evaluates `a < b <= c`: the comparisons joined by `and`, operands evaluated once.
    fn comparison(&mut self, first: &syntax::Expr, rest: &[(CmpOp, syntax::Expr)], span: Span) -> R<Value> {
        let exprs: Vec<&syntax::Expr> = std::iter::once(first).chain(rest.iter().map(|(_, e)| e)).collect();
        let values = self.eval_operands(exprs.iter().copied())?;
        let mut all: Option<Value> = None;
        for (k, (op, e)) in rest.iter().enumerate() {
            let a = (values[k].clone(), exprs[k].span);
            let b = (values[k + 1].clone(), e.span);
            let one = self.compare(*op, a, b, span)?;
            all = Some(match all {
                None => one,
                Some(before) => self.apply(Op::And, &[(before, span), (one, span)], span)?,
            });
        }
        Ok(all.expect("a comparison has an operator"))
    }

    fn compare(&mut self, op: CmpOp, a: (Value, Span), b: (Value, Span), span: Span) -> R<Value> {
        if let CmpOp::Is | CmpOp::IsNot = op {
            let is = match (&a.0, &b.0) {
                (v, Value::None) | (Value::None, v) => matches!(v, Value::None),
                _ => {
                    return self.error_help("syntax::is", span, "`is` only compares with `None`", "write `==`");
                }
            };
            return Ok(Value::Bool(is == (op == CmpOp::Is)));
        }
        let numeric = |v: &Value| v.lazy().is_some() || matches!(v, Value::Empty(..) | Value::Missing(_));
        let Some(tree_op) = comparison_op(op).filter(|_| numeric(&a.0) && numeric(&b.0)) else {
            if let (Some(x), Some(y)) = (a.0.items(), b.0.items())
                && matches!(op, CmpOp::Eq | CmpOp::Ne)
                && x.len() == y.len()
                && !(a.0.is_static() && b.0.is_static())
            {
                return self.compare_items(op, x, y, span);
            }
            return match static_eval::compare(op, &a.0, &b.0) {
                Some(truth) => Ok(Value::Bool(truth)),
                None => {
                    let found = format!("cannot compare {} and {} with this operator", a.0.describe(), b.0.describe());
                    self.error("type::operand", span, found)
                }
            };
        };
        self.apply(tree_op, &[a, b], span)
    }

    /// Compares tuples with sizes in them: they are equal if all items are.
    fn compare_items(&mut self, op: CmpOp, a: &[Value], b: &[Value], span: Span) -> R<Value> {
        let mut all = Value::Bool(true);
        for (x, y) in a.iter().zip(b) {
            let one = self.compare(CmpOp::Eq, (x.clone(), span), (y.clone(), span), span)?;
            all = match (all, one) {
                (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
                (Value::Bool(true), v) | (v, Value::Bool(true)) => v,
                (v, w) => self.apply(Op::And, &[(v, span), (w, span)], span)?,
            };
        }
        if op == CmpOp::Ne { self.apply(Op::Not, &[(all, span)], span) } else { Ok(all) }
    }

    fn comprehension(
        &mut self,
        element: &syntax::Expr,
        targets: &[syntax::Name],
        iter: &syntax::Expr,
        conds: &[syntax::Expr],
    ) -> R<Value> {
        let over = self.eval(iter)?;
        let items = self.static_items(&over, iter.span)?;
        self.frame_mut().scopes.push(super::scope::Scope::default());
        let result = self.comprehension_items(element, targets, &items, conds, iter.span);
        self.frame_mut().scopes.pop();
        Ok(Value::List(result?.into()))
    }

    fn comprehension_items(
        &mut self,
        element: &syntax::Expr,
        targets: &[syntax::Name],
        items: &[Value],
        conds: &[syntax::Expr],
        span: Span,
    ) -> R<Vec<Value>> {
        let mut out = Vec::new();
        'items: for item in items {
            self.bind_static(targets, item, span)?;
            for c in conds {
                match self.condition(c)? {
                    Condition::Known(true) => {}
                    Condition::Known(false) => continue 'items,
                    Condition::Open(_) => {
                        return self.error(
                            "static::condition",
                            c.span,
                            "the condition of a comprehension must be known when compiling",
                        );
                    }
                }
            }
            out.push(self.eval(element)?);
        }
        Ok(out)
    }

    /// Returns the items of a static loop or a comprehension.
    pub(crate) fn static_items(&mut self, over: &Value, span: Span) -> R<Vec<Value>> {
        if self.schedule.is_some() {
            return self.schedule_items(over, span);
        }
        match static_eval::iterate(over) {
            Some(Ok(items)) => Ok(items),
            Some(Err(why)) => self.error("static::sequence", span, why),
            None => {
                let found = match over {
                    Value::Range(_) | Value::NdRange(_) => "a range of sizes".to_string(),
                    v => v.describe(),
                };
                self.error_help(
                    "static::sequence",
                    span,
                    format!("expected a list, a tuple or a range known when compiling, found {found}"),
                    "sizes are not static: loop over them with `for i in range(n)`",
                )
            }
        }
    }

    /// Binds the targets of a static loop to an item.
    pub(crate) fn bind_static(&mut self, targets: &[syntax::Name], item: &Value, span: Span) -> R<()> {
        use super::scope::Role;
        if let [one] = targets {
            self.bind(&one.text, item.clone(), Role::Named, one.span);
            return Ok(());
        }
        match item.items() {
            Some(items) if items.len() == targets.len() => {
                for (t, v) in targets.iter().zip(items) {
                    self.bind(&t.text, v.clone(), Role::Named, t.span);
                }
                Ok(())
            }
            _ => self.error(
                "type::unpack",
                span,
                format!("expected {} values to unpack, found {}", targets.len(), item.describe()),
            ),
        }
    }

    /// Evaluates an f-string whose values are all static.
    fn format(&mut self, parts: &[syntax::Expr], span: Span) -> R<Value> {
        let mut text = String::new();
        for p in parts {
            let v = self.eval(p)?;
            match super::literal::show(&v) {
                Some(s) if v.is_static() => text.push_str(&s),
                _ => {
                    return self.error(
                        "static::format",
                        span,
                        format!("expected a value known when compiling in a string, found {}", v.describe()),
                    );
                }
            }
        }
        Ok(Value::str(text))
    }

    fn attribute(&mut self, of: &syntax::Expr, name: &syntax::Name) -> R<Value> {
        // Iterators of printed programs have a dot in their names.
        if let ExprKind::Name(n) = &of.kind
            && let Some((_, b)) = self.frame().find(&format!("{n}.{}", name.text))
        {
            return Ok(b.value.clone());
        }
        let v = self.eval_passed(of)?;
        if let Value::Schedule = v {
            let (s, method) = (self.program.sources().text(of.span).to_string(), &name.text);
            return self.error_help(
                "schedule::value",
                of.span.to(name.span),
                format!("`{s}.{method}` is a method, not a value"),
                format!("call it: `{s}.{method}(…)`"),
            );
        }
        let Some(shape) = v.shape() else {
            return self.error("name::attribute", name.span, format!("{} has no `{}`", v.describe(), name.text));
        };
        match name.text.as_str() {
            "shape" => Ok(Value::Tuple(shape.into_iter().map(Value::weak).collect())),
            "ndim" => Ok(Value::Int(shape.len() as i128)),
            "dtype" => Ok(v.dtype().map_or(Value::None, Value::DType)),
            "mtype" => Ok(Value::str("auto")),
            "T" => self.transposed(v, of.span),
            other => {
                let method = super::builtin::Builtin::find(other).is_some()
                    || Op::from_call(other).is_some()
                    || self.program.prelude_names.iter().any(|n| n == other);
                let help = if method {
                    let object = self.program.sources().text(of.span);
                    format!("methods are not supported; write `{other}({object})`")
                } else if let Some((_, instead)) = METHODS.iter().find(|(m, _)| *m == other) {
                    let object = self.program.sources().text(of.span);
                    format!("methods are not supported; write {}", instead.replace('_', object))
                } else {
                    "a tensor has `shape`, `ndim`, `dtype`, `mtype` and `T`".to_string()
                };
                self.error_help("name::attribute", name.span, format!("a tensor has no `{other}`"), help)
            }
        }
    }

    /// Evaluates `x.T`: the dimensions in reverse order.
    fn transposed(&mut self, v: Value, span: Span) -> R<Value> {
        let Some(shape) = v.shape() else { unreachable!("the caller has looked at the shape") };
        let n = shape.len();
        let at: Vec<Access> = (0..n).map(|d| Access::from(axis::var(n, n - 1 - d))).collect();
        let shape: Vec<taffeta_ast::Expr> = shape.into_iter().rev().collect();
        match v {
            Value::Tensor(view) => Ok(Value::Tensor(view.reindexed(&at, shape, false))),
            other => match other.lazy() {
                Some(l) => Ok(Value::Lazy(Lazy { expr: axis::subscripted_expr(&l.expr, &at), shape, weak: l.weak })),
                None => self.error("type::operand", span, format!("cannot transpose {}", other.describe())),
            },
        }
    }
}

impl View {
    /// Returns the part of a view at `at` (one index for each of its dimensions, over the axes of `shape`).
    pub(crate) fn reindexed(&self, at: &[Access], shape: Vec<taffeta_ast::Expr>, gathered: bool) -> View {
        View {
            tensor: Arc::clone(&self.tensor),
            shape,
            indices: self.indices.iter().map(|a| axis::subscripted(a, at)).collect(),
            writable: self.writable,
            gathered: self.gathered || gathered,
            owned: false,
            open: self.open,
        }
    }
}
