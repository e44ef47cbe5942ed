//! Assignments: what a name becomes, and how values get into tensors.
//!
//! A new name gets a tensor of the value's shape and type, or stands for the value itself if that is made of sizes,
//! iterators and static values and the name is assigned once. A name that exists is written into. The right-hand side
//! is read in full before anything is written: where an element might be overwritten before it is read, the value goes
//! through a temporary.

use super::annotation::TensorType;
use super::block::Item;
use super::broadcast::{is_one, show, show_shape, stretch};
use super::call::default_type;
use super::expr::value_reads;
use super::limits::{MAX_OPERATORS, within};
use super::report::counted;
use super::scope::{Binding, Role};
use super::value::{Lazy, Value, View};
use super::{Elab, R, Stop, axis};
use crate::syntax::{self, ExprKind};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_ast::format::Format;
use taffeta_ast::stmt::Role as TensorRole;
use taffeta_ast::{Access, DType, Diagnostic, Expr, ExprKind as E, Span, StmtKind as Tree, Symbol, Tensor, poly};

impl Elab<'_> {
    /// `targets = value`
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
                let v = self.unless_overwritten(v, before);
                self.write(&place, &v, target.span, span)
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => self.unpack(items, &v, span),
            _ => self.error_help(
                "assign::target",
                target.span,
                "this cannot be assigned to",
                "assign to a name (`t = …`) or to elements (`t[i] = …`)",
            ),
        }
    }

    /// A value that was evaluated before a subscript, kept where the subscript's calls wrote what it reads.
    pub(crate) fn unless_overwritten(&mut self, v: Value, before: super::block::Mark) -> Value {
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

    /// `a, b = value`, `a, (b, c) = value`
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

    /// Each target that is not a tuple or list with its part of the value.
    pub(crate) fn pair<'t>(
        &mut self,
        targets: &'t [syntax::Expr],
        v: &Value,
        span: Span,
        out: &mut Vec<(&'t syntax::Expr, Value)>,
    ) -> R<()> {
        let names = if targets.len() == 1 { "1 name stands".into() } else { format!("{} names stand", targets.len()) };
        let Some(items) = v.items() else {
            let found = v.describe();
            return self.error("type::unpack", span, format!("{names} on the left for {found}"));
        };
        if items.len() != targets.len() {
            let m = counted(items.len() as i128, "value");
            return self.error("type::unpack", span, format!("{names} on the left for {m}"));
        }
        for (t, v) in targets.iter().zip(items) {
            match &t.kind {
                ExprKind::Tuple(inner) | ExprKind::List(inner) => self.pair(inner, v, span, out)?,
                _ => out.push((t, v.clone())),
            }
        }
        Ok(())
    }

    /// The tensor that an assignment to `t` would write.
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

    /// `name = v`
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
                    format!(
                        "`{name}` is {found} that is known when compiling, and cannot change when the program runs"
                    ),
                    "use another name, or assign it under conditions that are static",
                )
            }
            (Role::Param(_), _) => self.error_help(
                "assign::parameter",
                site,
                format!("`{name}` is a parameter, which names a tensor of the caller"),
                format!("to write into it, `{name}[...] = …`; for a tensor of your own, use another name"),
            ),
            (Role::Iterator, _) => self.error_help(
                "assign::iterator",
                site,
                format!("`{name}` is the iterator of a loop around"),
                "use another name; the next value comes from the `range`",
            ),
            (Role::Size, _) => self.error_help(
                "assign::size",
                site,
                format!("`{name}` is a size, which does not change"),
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
                format!("`{name}` has shape {}, and the value has shape {found}", show_shape(shape)),
            )
            .at(site)
            .label(span, "the value")
            .help("a tensor keeps its shape; use another name for another tensor"),
        ))
    }

    /// A name that is new here.
    fn declare_name(&mut self, name: &str, site: Span, v: Value, span: Span) -> R<()> {
        let assigned_again = self.frame().must_be_tensor(name, site);
        if let Value::Lazy(l) = &v
            && l.weak
            && !within(&l.expr, &mut { MAX_OPERATORS })
        {
            return self.error_help(
                "elaborate::too_large",
                span,
                format!("the expression that `{name}` stands for has more than {MAX_OPERATORS} operators"),
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
                // The tensor has no other name: it becomes this one.
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

    /// A sequence with tensors in it: values are computed now, views are kept.
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
        self.write(&view, v, site, span)?;
        self.bind(name, Value::Tensor(view), Role::Local, site);
        Ok(())
    }

    /// `name: annotation = value`
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
                "`static` stands for parameters",
                format!("`{} = …` is static if its value is", name.text),
            );
        }
        let Some(value) = value else {
            return self.error_help(
                "assign::no_value",
                name.span,
                format!("`{}` gets no value", name.text),
                "write `= empty(shape, dtype)` if it is written later",
            );
        };
        let v = self.eval(value)?;
        let ty = self.tensor_type(annotation)?;
        if let Some((_, b)) = self.frame().find(&name.text) {
            let before = b.site;
            return Err(self.report(
                Diagnostic::new("assign::declared", format!("`{}` is declared already", name.text))
                    .at(name.span)
                    .label(before, "here")
                    .help("a declaration with a type makes a new tensor: use another name, or leave the type out to write into the old one"),
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
                        "`{}` is declared as `{}{}`, and this is {found}",
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
        self.declare_tensor(&name.text, name.span, ty, &v, value.span)
    }

    /// A shape of a tensor to be made: sizes, iterators and constants, not values of tensors.
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

    /// The tensor that a name stands for, to be written.
    pub(crate) fn writable_name(&mut self, name: &str, span: Span) -> R<View> {
        let Some((_, b)) = self.frame().find(name) else {
            let v = self.lookup(name, span)?;
            let found = v.describe();
            return self.error("assign::target", span, format!("`{name}` is {found}, and cannot be written"));
        };
        let (role, value, site) = (b.role, b.value.clone(), b.site);
        match (role, value) {
            (Role::Poisoned, _) => Err(Stop::Reported),
            (_, Value::Tensor(view)) => Ok(view),
            (Role::Named, v) if self.is_nameable(&v) => Err(Stop::Restart { frame: self.frame().id, site }),
            (Role::Param(Some((frame, site))), _) => Err(Stop::Restart { frame, site }),
            (Role::Param(None), v) if self.is_nameable(&v) => self.error_help(
                "assign::value",
                span,
                format!("`{name}` is a value here, not a tensor that could be written"),
                "pass a tensor: give the argument a name first, `t: f64 = …`",
            ),
            (Role::Iterator, _) => {
                self.error("assign::iterator", span, format!("`{name}` is the iterator of a loop around"))
            }
            (Role::Size, _) => self.error("assign::size", span, format!("`{name}` is a size, which does not change")),
            (_, v) => {
                let found = v.describe();
                self.error_help(
                    "assign::static",
                    span,
                    format!("`{name}` is {found} that is known when compiling, and its items cannot be written"),
                    "make a tensor: `zeros((n,), f32)`",
                )
            }
        }
    }

    /// The place that a subscript on the left stands for.
    pub(crate) fn place(&mut self, of: &syntax::Expr, items: &[syntax::Expr], span: Span) -> R<View> {
        let base = match &of.kind {
            ExprKind::Name(name) => self.writable_name(name, of.span)?,
            ExprKind::Subscript(inner, inner_items) => self.place(inner, inner_items, of.span)?,
            ExprKind::Call { .. } => {
                return self.error_help(
                    "assign::target",
                    of.span,
                    "the result of a call cannot be written",
                    "give it a name first",
                );
            }
            _ => match self.eval(of)? {
                Value::Tensor(view) => view,
                v => {
                    let found = v.describe();
                    return self.error("assign::target", of.span, format!("this is {found}, which cannot be written"));
                }
            },
        };
        if base.gathered {
            return self.error_help(
                "assign::gathered",
                of.span,
                "an index tensor makes a copy, which would be written in place of the tensor",
                "put all indices into one subscript: `x[idx, j] = …`",
            );
        }
        let ix = self.indexed(&base.shape, of.span, items, span)?;
        if let Some(at) = ix.protocol {
            return self.error_help(
                "storage::protocol",
                at,
                "a protocol says how what is read is found, and this is written",
                "leave it out: write the index alone",
            );
        }
        Ok(base.reindexed(&ix.at, ix.shape, ix.gathered))
    }

    /// Writes a value into a place of at least its dimensions.
    pub(crate) fn write(&mut self, target: &View, v: &Value, site: Span, span: Span) -> R<()> {
        self.check_writable(target, site)?;
        if let Value::Empty(..) = v {
            return Ok(());
        }
        let element = self.element_for(target, v, site, span)?;
        let target = &self.fixed_place(target);
        let injective = is_injective(target);
        if injective && let Some((op, value)) = super::reduce::recognise(target, &element) {
            self.warn_narrow_sum(target, op, span);
            let value = self.unaliased(target, value);
            self.emit_reduce(target, op, &value);
            return Ok(());
        }
        let element = self.unaliased(target, element);
        let shape = target.shape.clone();
        self.store(&target.tensor, &shape, &target.indices, &element);
        Ok(())
    }

    pub(crate) fn check_writable(&mut self, target: &View, site: Span) -> R<()> {
        if target.writable {
            return Ok(());
        }
        // An entry that is called only reads what its caller might write, and has its own name for it.
        let symbol = &target.tensor.symbol;
        let is_it = |b: &Binding| matches!(&b.value, Value::Tensor(v) if v.tensor.symbol == *symbol);
        let here = self.frame().scopes.iter().flat_map(|s| &s.names);
        let alias = here.filter(|(n, b)| is_it(b) && *n != symbol.name()).map(|(n, _)| n.as_str()).min();
        let alias = alias.filter(|_| target.tensor.role != TensorRole::Input);
        let ty = target.tensor.dtype;
        let (name, dots) = match alias {
            Some(alias) => (alias, "[…]".to_string()),
            None if target.tensor.ndim() == 0 => (symbol.name(), String::new()),
            None => (symbol.name(), show_shape(&target.tensor.shape)),
        };
        let copy = if name == "t" { "own" } else { "t" };
        let message = format!("`{name}` is a parameter that is only read");
        let help = format!("annotate it with `inout[{ty}{dots}]` to write it, or copy it: `{copy} = {name}`");
        self.error_help("assign::read_only", site, message, help)
    }

    /// The element of `v` over the axes of the target, of the target's type.
    pub(crate) fn element_for(&mut self, target: &View, v: &Value, site: Span, span: Span) -> R<Expr> {
        let Some(mut l) = v.lazy() else {
            if let Value::Empty(..) = v {
                return self.error("value::empty", span, "a tensor made by `empty` has no values yet");
            }
            let found = v.describe();
            return self.error("type::store", span, format!("a tensor holds numbers, and this is {found}"));
        };
        self.check_assignable(&l, target, site, span)?;
        let expr = stretch(&l, &target.shape);
        l = Lazy { shape: target.shape.clone(), expr, weak: l.weak };
        let dtype = target.tensor.dtype;
        if target.open && l.weak {
            // The walk with the type that is found will say whether it fits.
            return Ok(l.expr.cast(dtype));
        }
        if !l.weak {
            self.note_stored(&target.tensor.symbol, l.expr.dtype());
            self.warn_narrowing(target, &l.expr, site, span);
        }
        self.stored(&l, dtype, span)
    }

    /// Checks that a value's shape broadcasts to the target's.
    fn check_assignable(&mut self, l: &Lazy, target: &View, site: Span, span: Span) -> R<()> {
        let shapes =
            |a: &[Expr], b: &[Expr]| format!("the target has shape {}, and the value {}", show_shape(a), show_shape(b));
        let Some(offset) = target.shape.len().checked_sub(l.shape.len()) else {
            let d = Diagnostic::new("shape::assign", shapes(&target.shape, &l.shape)).at(site).label(span, "the value");
            let d = if target.shape.is_empty() { d.help("reduce the value first: `sum(…)`") } else { d };
            return Err(self.report(d));
        };
        for (d, n) in l.shape.iter().enumerate() {
            let m = &target.shape[offset + d];
            if is_one(n) && !is_one(m) {
                continue;
            }
            let what = format!("{} and {} differ in dimension {}", self.quote(site), self.quote(span), offset + d);
            if self.require_equal(m, n, &what).is_err() {
                return Err(self.report(
                    Diagnostic::new("shape::assign", format!("{what}: {} and {}", show(m), show(n)))
                        .at(site)
                        .label(span, "the value")
                        .note(shapes(&target.shape, &l.shape)),
                ));
            }
        }
        Ok(())
    }

    /// The place with indices that what is written through it does not change.
    pub(crate) fn fixed_place(&mut self, target: &View) -> View {
        let mut target = target.clone();
        if target.shape.is_empty() {
            return target;
        }
        for k in 0..target.indices.len() {
            let index = target.indices[k].index.clone();
            let mut read = FxHashSet::default();
            super::block::reads(&index, &mut read);
            if read.contains(&target.tensor.symbol) {
                let shape = if axis::mentions_any(&index) { target.shape.clone() } else { Vec::new() };
                let l = Lazy { shape, expr: index, weak: false };
                target.indices[k].index = self.materialise(&l, DType::I64, "at").load();
            }
        }
        target
    }

    /// An element's expression that no write through `target`, in the order of its axes, changes before it is read.
    pub(crate) fn unaliased(&mut self, target: &View, element: Expr) -> Expr {
        if target.shape.is_empty() || !may_conflict(target, &element) {
            return element;
        }
        let dtype = element.dtype();
        let l = Lazy { shape: target.shape.clone(), expr: element, weak: false };
        self.materialise(&l, dtype, "t").load()
    }

    /// Reduces into a place.
    pub(crate) fn emit_reduce(&mut self, target: &View, op: taffeta_ast::ReduceOp, value: &Expr) {
        let symbol = target.tensor.symbol.clone();
        let name = self.renames.get(&symbol).unwrap_or(&symbol).name().to_string();
        self.nest(&name, &target.shape, |at| Tree::ReduceTo {
            tensor: symbol,
            indices: target.indices.iter().map(|a| Access::from(axis::substitute(&a.index, at))).collect(),
            op,
            value: axis::substitute(value, at),
        });
    }

    /// Turns a local tensor into a result: it is declared by the program's interface.
    pub(crate) fn take_result(&mut self, symbol: &Symbol) -> Option<Arc<Tensor>> {
        let block = self.blocks.first_mut()?;
        let at = block.items.iter().position(|i| matches!(i, Item::Def(t, _) if t.symbol == *symbol))?;
        let Item::Def(tensor, _) = block.items.remove(at) else { return None };
        Some(Arc::new(Tensor { role: TensorRole::Result, ..(*tensor).clone() }))
    }
}

/// Whether different elements of the place are different elements of the tensor.
pub(crate) fn is_injective(target: &View) -> bool {
    let ndim = target.shape.len();
    let covered: FxHashSet<usize> = target.indices.iter().filter_map(|a| axis::single_affine(&a.index)).collect();
    (0..ndim).all(|k| covered.contains(&k) || is_one(&target.shape[ndim - 1 - k]))
}

/// Whether `element` may read, for some element of the place, what is written for another one.
fn may_conflict(target: &View, element: &Expr) -> bool {
    match element.kind() {
        E::Load(t, at) if *t == target.tensor.symbol => {
            let same = at.iter().zip(&target.indices).all(|(a, b)| a.index == b.index);
            let apart = at.iter().zip(&target.indices).any(|(a, b)| {
                let [a, b] = [&a.index, &b.index];
                !axis::mentions_any(a) && !axis::mentions_any(b) && poly::equal(a, b) == Some(false)
            });
            !(apart || (same && is_injective(target)))
                || element.children().into_iter().any(|c| may_conflict(target, c))
        }
        _ => element.children().into_iter().any(|c| may_conflict(target, c)),
    }
}
