//! Assignments to names, elements and tuples.
//!
//! A new name gets a tensor of the value's shape and type, or stands for the value itself if the value consists of
//! sizes, iterators and static values and the name is assigned once. An existing name is written into (`write`). The
//! right-hand side is read in full before the first write: if an element might be overwritten before it is read, the
//! value goes through a temporary.

use super::annotation::TensorType;
use super::block::Item;
use super::broadcast::{show, show_shape};
use super::call::default_type;
use super::expr::value_reads;
use super::limits::{MAX_OPERATORS, within};
use super::scope::Role;
use super::value::{Lazy, Value, View};
use super::{Elab, R, Stop};
use crate::syntax::{self, ExprKind};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_ast::format::Format;
use taffeta_ast::spelling::counted;
use taffeta_ast::stmt::Role as TensorRole;
use taffeta_ast::{Diagnostic, Expr, Span, Symbol, Tensor};

impl Elab<'_> {
    /// Elaborates `targets = value`.
    pub(crate) fn assign(&mut self, targets: &[syntax::Expr], value: &syntax::Expr) -> R<()> {
        let v = match targets {
            [target] => match self.logical_update(target, value)? {
                Some(v) => v,
                None => self.eval(value)?,
            },
            _ => self.eval(value)?,
        };
        match targets {
            [one] => self.assign_to(one, v, value.span),
            many => self.unpack(many, &v, value.span),
        }
    }

    fn assign_to(&mut self, target: &syntax::Expr, v: Value, span: Span) -> R<()> {
        match &target.kind {
            ExprKind::Name(name) => self.assign_name(name, target.span, v, span),
            ExprKind::Subscript(of, items) => {
                let before = self.mark();
                let place = self.place(of, items, target.span)?;
                let v = self.save_if_overwritten(v, before);
                self.write(&place, &v, target.span, span)
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => self.unpack(items, &v, span),
            _ => self.error_help(
                "assign::target",
                target.span,
                "cannot assign to this expression",
                "assign to a name (`t = …`) or to elements (`t[i] = …`)",
            ),
        }
    }

    /// Moves a value that was evaluated before a subscript into a temporary, if calls in the subscript write a tensor
    /// that it reads.
    pub(crate) fn save_if_overwritten(&mut self, v: Value, before: super::block::Mark) -> Value {
        if !self.emitted_since(before) {
            return v;
        }
        let written = self.written_since(before);
        let mut read = FxHashSet::default();
        value_reads(&v, &mut read);
        let Some(l) = v.lazy().filter(|_| !read.is_disjoint(&written)) else { return v };
        let later = self.block_mut().items.split_off(before.items);
        let kept = self.materialise(&l, l.expr.dtype(), "t");
        self.block_mut().items.extend(later);
        Value::Tensor(kept)
    }

    /// Elaborates `a, b = value` and `a, (b, c) = value`.
    fn unpack(&mut self, targets: &[syntax::Expr], v: &Value, span: Span) -> R<()> {
        let mut pairs = Vec::new();
        self.pair(targets, v, span, &mut pairs)?;
        // All values are read before the first one is written.
        let mut written = FxHashSet::default();
        for (t, v) in &mut pairs {
            *v = self.kept(v, &written);
            written.extend(self.target_tensor(t));
        }
        for (t, v) in pairs {
            self.assign_to(t, v, span)?;
        }
        Ok(())
    }

    /// Pairs each target that is not a tuple or list with its part of the value.
    pub(crate) fn pair<'t>(
        &mut self,
        targets: &'t [syntax::Expr],
        v: &Value,
        span: Span,
        out: &mut Vec<(&'t syntax::Expr, Value)>,
    ) -> R<()> {
        let names = if targets.len() == 1 { "1 value".into() } else { format!("{} values", targets.len()) };
        let Some(items) = v.items() else {
            let found = v.describe();
            return self.error("type::unpack", span, format!("expected {names} to unpack, found {found}"));
        };
        if items.len() != targets.len() {
            let m = counted(items.len(), "value");
            return self.error("type::unpack", span, format!("expected {names} to unpack, found {m}"));
        }
        for (t, v) in targets.iter().zip(items) {
            match &t.kind {
                ExprKind::Tuple(inner) | ExprKind::List(inner) => self.pair(inner, v, span, out)?,
                _ => out.push((t, v.clone())),
            }
        }
        Ok(())
    }

    /// Returns the tensor that an assignment to `t` would write.
    fn target_tensor(&self, t: &syntax::Expr) -> Option<Symbol> {
        let name = match &t.kind {
            ExprKind::Name(n) => n,
            ExprKind::Subscript(of, _) => return self.target_tensor(of),
            _ => return None,
        };
        match &self.frame().find(name)?.1.value {
            Value::Tensor(v) => Some(v.tensor.symbol.clone()),
            _ => None,
        }
    }

    /// Elaborates `name = v`.
    fn assign_name(&mut self, name: &str, site: Span, v: Value, span: Span) -> R<()> {
        let innermost = self.frame().scopes.len() - 1;
        let Some((scope, b)) = self.frame().find(name) else { return self.declare_name(name, site, v, span) };
        let b = b.clone();
        match (b.role, &b.value) {
            (Role::Poisoned, _) => Err(Stop::Reported),
            (Role::Local, Value::Tensor(view)) => {
                let rank = v.shape().map_or(0, |s| s.len());
                if rank != 0 && rank != view.shape.len() {
                    return self.wrong_shape(name, site, &view.shape, &v, span);
                }
                self.write(view, &v, site, span)
            }
            (Role::Named, old) => {
                let again = b.site == site && (v.is_static() || self.is_nameable(&v));
                if scope == innermost && (again || (v.is_static() && old.is_static())) {
                    self.bind(name, v, Role::Named, b.site);
                    return Ok(());
                }
                if self.is_nameable(old) {
                    return Err(Stop::Restart { frame: self.frame().id, site: b.site });
                }
                let found = old.describe();
                self.error_help(
                    "assign::static",
                    site,
                    format!("cannot change `{name}` at run time: it is {found} known when compiling"),
                    "use another name, or assign it under static conditions",
                )
            }
            (Role::Param(_), value) => {
                let scalar = value.shape().is_some_and(|s| s.is_empty());
                let write = if scalar { format!("{name} += …") } else { format!("{name}[...] = …") };
                let help = format!(
                    "use another name for a new tensor: `{name}_new = …`; to write into the caller's, `{write}` \
                     (in an entry, annotate the parameter with `inout[…]`)"
                );
                let text = format!("cannot assign to `{name}`: it is a parameter, which names a tensor of the caller");
                self.error_help("assign::parameter", site, text, help)
            }
            (Role::Iterator, _) => self.error_help(
                "assign::iterator",
                site,
                format!("cannot assign to `{name}`: it is the iterator of an enclosing loop"),
                "use another name; the next value comes from the `range`",
            ),
            (Role::Size, _) => self.error_help(
                "assign::size",
                site,
                format!("cannot assign to `{name}`: it is a size"),
                "use another name",
            ),
            (Role::Local, _) => unreachable!("locals are tensors"),
        }
    }

    fn wrong_shape<T>(&mut self, name: &str, site: Span, shape: &[Expr], v: &Value, span: Span) -> R<T> {
        let found = show_shape(&v.shape().unwrap_or_default());
        Err(self.report(
            Diagnostic::new(
                "shape::assign",
                format!("`{name}` has shape {}, but the value has shape {found}", show_shape(shape)),
            )
            .at(site)
            .label(span, "the value")
            .help("a tensor keeps its shape; use another name for another tensor"),
        ))
    }

    /// Declares a name.
    fn declare_name(&mut self, name: &str, site: Span, v: Value, span: Span) -> R<()> {
        let assigned_again = self.frame().must_be_tensor(name, site);
        if let Value::Lazy(l) = &v
            && l.weak
            && !within(&l.expr, &mut { MAX_OPERATORS })
        {
            return self.error_help(
                "elaborate::too_large",
                span,
                format!("the expression assigned to `{name}` has more than {MAX_OPERATORS} operators"),
                format!("make it a tensor: `{name}: i64 = …`"),
            );
        }
        let nameable = self.is_nameable(&v);
        if (v.is_static() && !nameable) || (nameable && !assigned_again) {
            self.bind(name, v, Role::Named, site);
            return Ok(());
        }
        match v {
            Value::Tensor(view) if view.owned && view.tensor.role == TensorRole::Local => {
                // The tensor has no other name, so it takes this one.
                self.renames.insert(view.tensor.symbol.clone(), Symbol::new(name));
                let view = View { owned: false, ..view };
                self.bind(name, Value::Tensor(view), Role::Local, site);
                Ok(())
            }
            Value::Empty(shape, dtype) => {
                self.check_shape(&shape, span)?;
                let tensor = self.local(name, dtype, shape);
                self.bind(name, Value::Tensor(View::whole(&tensor, true)), Role::Local, site);
                Ok(())
            }
            Value::Tuple(items) => self.bind_sequence(name, site, &items, false),
            Value::List(items) => self.bind_sequence(name, site, &items, true),
            v => match v.lazy() {
                Some(l) if l.weak => {
                    self.check_shape(&l.shape, span)?;
                    let view = self.weak_local(name, site, &l, span)?;
                    self.write(&view, &v, site, span)?;
                    self.bind(name, Value::Tensor(view), Role::Local, site);
                    Ok(())
                }
                Some(l) => {
                    let (dtype, shape) = (l.expr.dtype(), l.shape.clone());
                    let format = Format::dense(shape.len());
                    self.declare_tensor(name, site, TensorType { dtype, shape, format }, &v, span)
                }
                None => {
                    self.bind(name, v, Role::Named, site);
                    Ok(())
                }
            },
        }
    }

    /// Binds a name to a sequence with tensors in it: values are computed here, views are kept.
    fn bind_sequence(&mut self, name: &str, site: Span, items: &[Value], list: bool) -> R<()> {
        let mut kept = Vec::with_capacity(items.len());
        for v in items {
            kept.push(match v {
                Value::Lazy(l) if !self.is_nameable(v) => {
                    let dtype = if l.weak { default_type(l.expr.dtype()) } else { l.expr.dtype() };
                    let mut view = self.materialise(l, dtype, name);
                    view.owned = false;
                    Value::Tensor(view)
                }
                other => other.clone(),
            });
        }
        let value = if list { Value::List(kept.into()) } else { Value::Tuple(kept.into()) };
        self.bind(name, value, Role::Named, site);
        Ok(())
    }

    /// Declares a tensor and writes its first value.
    fn declare_tensor(&mut self, name: &str, site: Span, ty: TensorType, v: &Value, span: Span) -> R<()> {
        self.check_shape(&ty.shape, span)?;
        let tensor = self.stored_local(name, ty);
        let view = View::whole(&tensor, true);
        let found = v.format();
        match v {
            // The elements of a list are copied in its order.
            Value::Tensor(of)
                if !tensor.format.is_dense()
                    && !found.stores_regions()
                    && of.is_whole()
                    && of.shape.len() == tensor.ndim() =>
            {
                let expr = self.element_for(&view, v, site, span)?;
                let l = Lazy { shape: view.shape.clone(), expr, weak: false };
                self.convert_into(&tensor, &l, v);
            }
            _ => self.write(&view, v, site, span)?,
        }
        self.bind(name, Value::Tensor(view), Role::Local, site);
        Ok(())
    }

    /// Elaborates `name: annotation = value`.
    pub(crate) fn declare_annotated(
        &mut self,
        name: &syntax::Name,
        annotation: &syntax::Expr,
        value: Option<&syntax::Expr>,
    ) -> R<()> {
        if super::is_static_annotation(annotation) {
            return self.error_help(
                "annotation::static",
                annotation.span,
                "`static` is only for parameters",
                format!("write `{} = …`: it is static if its value is", name.text),
            );
        }
        let Some(value) = value else {
            return self.error_help(
                "assign::no_value",
                name.span,
                format!("expected a value for `{}`", name.text),
                "write `= empty(shape, dtype)` if it is written later",
            );
        };
        let before = self.block().items.len();
        let v = self.eval(value)?;
        let ty = self.tensor_type(annotation)?;
        if let Some((_, b)) = self.frame().find(&name.text) {
            let before = b.site;
            return Err(self.report(
                Diagnostic::new("assign::declared", format!("`{}` is already declared", name.text))
                    .at(name.span)
                    .label(before, "first here")
                    .help("use another name for a new tensor, or leave out the type to write into the existing one"),
            ));
        }
        self.check_shape(&ty.shape, annotation.span)?;
        if let Value::Empty(shape, dtype) = &v {
            let same_rank = shape.len() == ty.shape.len();
            let same = same_rank && shape.iter().zip(&ty.shape).all(|(a, b)| self.equal(a, b) == Some(true));
            if *dtype != ty.dtype || !same {
                let found = format!("`{dtype}{}`", show_shape(shape));
                return self.error(
                    "shape::declare",
                    value.span,
                    format!(
                        "`{}` is declared as `{}{}`, but its value is {found}",
                        name.text,
                        ty.dtype,
                        show_shape(&ty.shape)
                    ),
                );
            }
        }
        let rank = v.shape().map_or(0, |s| s.len());
        if rank != 0 && rank != ty.shape.len() {
            return self.wrong_shape(&name.text, name.span, &ty.shape, &v, value.span);
        }
        match self.adopted(&name.text, &ty, &v, before) {
            Some(view) => {
                self.bind(&name.text, Value::Tensor(view), Role::Local, name.span);
                Ok(())
            }
            None => self.declare_tensor(&name.text, name.span, ty, &v, value.span),
        }
    }

    /// Gives a dense tensor that a function has made the name and the storage of an annotation; `None` for other
    /// values. Items of the block from `before` on are those of its expression.
    fn adopted(&mut self, name: &str, ty: &TensorType, v: &Value, before: usize) -> Option<View> {
        let Value::Tensor(view) = v else { return None };
        let same = view.shape.len() == ty.shape.len()
            && view.shape.iter().zip(&ty.shape).all(|(a, b)| self.equal(a, b) == Some(true));
        let is_plain = view.tensor.format.is_dense() && view.tensor.dtype == ty.dtype && !ty.format.is_dense();
        if !(view.owned && view.is_whole() && is_plain && same) {
            return None;
        }
        let tensor = self.stored_as(&view.tensor.symbol, &ty.format, before)?;
        self.renames.insert(tensor.symbol.clone(), Symbol::new(name));
        Some(View { tensor, ..view.clone() })
    }

    /// Checks the shape of a new tensor: sizes, iterators and constants, but no values of tensors.
    pub(crate) fn check_shape(&mut self, shape: &[Expr], span: Span) -> R<()> {
        for n in shape {
            let mut read = FxHashSet::default();
            super::block::reads(n, &mut read);
            if !read.is_empty() {
                return self.error_help(
                    "shape::data",
                    span,
                    format!("the size {} depends on values of tensors", show(n)),
                    "a tensor's shape is known before the program runs: use sizes of parameters, or `static` parameters",
                );
            }
            if n.as_int().is_some_and(|n| n < 0) {
                return self.error("shape::negative", span, format!("the size {} is negative", show(n)));
            }
        }
        Ok(())
    }

    /// Turns a local tensor into a result, which the program's interface declares.
    pub(crate) fn take_result(&mut self, symbol: &Symbol) -> Option<Arc<Tensor>> {
        let block = self.blocks.first_mut()?;
        let at = block.items.iter().position(|i| matches!(i, Item::Def(t, _) if t.symbol == *symbol))?;
        let Item::Def(tensor, _) = block.items.remove(at) else { return None };
        Some(Arc::new(Tensor { role: TensorRole::Result, ..(*tensor).clone() }))
    }
}
