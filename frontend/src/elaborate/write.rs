//! Stores: the place (lvalue) that a left-hand side stands for, as a view, and the store of a value into it.
//!
//! The value is broadcast to the place and converted to the tensor's type. A value that would be overwritten before it
//! is read goes through a temporary, and an update of the element (`y = y + v`) is a reduction.

use super::broadcast::{is_one, show, show_shape, stretch};
use super::scope::{Binding, Role};
use super::value::{Lazy, Value, View};
use super::{Elab, R, Stop, axis};
use crate::syntax::{self, ExprKind};
use rustc_hash::FxHashSet;
use taffeta_ast::stmt::Role as TensorRole;
use taffeta_ast::{Access, DType, Diagnostic, Expr, ExprKind as E, Span, StmtKind as Tree, poly};

impl Elab<'_> {
    /// Returns the tensor that a name stands for, to be written.
    pub(crate) fn writable_name(&mut self, name: &str, span: Span) -> R<View> {
        let Some((_, b)) = self.frame().find(name) else {
            let v = self.lookup(name, span)?;
            let found = v.describe();
            return self.error("assign::target", span, format!("cannot write to `{name}`: it is {found}"));
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
                format!("cannot write to `{name}`: it is a value, not a tensor"),
                "pass a tensor: give the argument a name first, `t: f64 = …`",
            ),
            (Role::Iterator, _) => self.error(
                "assign::iterator",
                span,
                format!("cannot assign to `{name}`: it is the iterator of an enclosing loop"),
            ),
            (Role::Size, _) => self.error("assign::size", span, format!("cannot assign to `{name}`: it is a size")),
            (_, v) => {
                let found = v.describe();
                self.error_help(
                    "assign::static",
                    span,
                    format!("cannot write to items of `{name}`: it is {found} known when compiling"),
                    "make a tensor: `zeros((n,), f32)`",
                )
            }
        }
    }

    /// Returns the place that the left-hand side `of[items]` stands for, as a view.
    pub(crate) fn place(&mut self, of: &syntax::Expr, items: &[syntax::Expr], span: Span) -> R<View> {
        let base = match &of.kind {
            ExprKind::Name(name) => self.writable_name(name, of.span)?,
            ExprKind::Subscript(inner, inner_items) => self.place(inner, inner_items, of.span)?,
            ExprKind::Call { .. } => {
                return self.error_help(
                    "assign::target",
                    of.span,
                    "cannot write to the result of a call",
                    "give it a name first",
                );
            }
            _ => match self.eval(of)? {
                Value::Tensor(view) => view,
                v => {
                    let found = v.describe();
                    return self.error("assign::target", of.span, format!("cannot write to {found}"));
                }
            },
        };
        if base.gathered {
            return self.error_help(
                "assign::gathered",
                of.span,
                "cannot write through an index tensor: it makes a copy of the elements",
                "put all indices into one subscript: `x[idx, j] = …`",
            );
        }
        let own = self.own_dimensions(&Value::Tensor(base.clone()));
        let ix = self.indexed((&base.shape, &own), of.span, items, span)?;
        if let Some(at) = ix.protocol {
            return self.error_help(
                "storage::protocol",
                at,
                "access protocols are not supported in writes",
                "leave it out: write the index alone",
            );
        }
        if ix.there.as_bool() != Some(true) {
            return self.error_help(
                "index::missing",
                span,
                "cannot write with an index that is permitted to be out of range",
                "write under a condition: `if 0 <= j and j < n:`",
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
        let target = &self.freeze_indices(target);
        let injective = is_injective(target);
        if injective && let Some((op, value)) = super::reduce::recognise(target, &element) {
            self.warn_narrow_sum(target, op, span);
            let value = self.copy_if_aliased(target, value);
            self.emit_reduce(target, op, &value);
            return Ok(());
        }
        let element = self.copy_if_aliased(target, element);
        let shape = target.shape.clone();
        self.store(&target.tensor, &shape, &target.indices, &element);
        Ok(())
    }

    pub(crate) fn check_writable(&mut self, target: &View, site: Span) -> R<()> {
        if target.writable {
            return Ok(());
        }
        // An inlined entry only reads tensors that its caller may write, and knows them by its own names.
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
        let message = format!("cannot write to `{name}`: it is a read-only parameter");
        let help = format!("annotate it with `inout[{ty}{dots}]` to write it, or copy it: `{copy} = {name}`");
        self.error_help("assign::read_only", site, message, help)
    }

    /// Returns the element of `v` over the axes of the target, converted to the target's type.
    pub(crate) fn element_for(&mut self, target: &View, v: &Value, site: Span, span: Span) -> R<Expr> {
        let Some(mut l) = v.lazy() else {
            if let Value::Empty(..) = v {
                return self.error("value::empty", span, "a tensor made by `empty` has no values yet");
            }
            let found = v.describe();
            return self.error("type::store", span, format!("expected a number to store, found {found}"));
        };
        self.check_assignable(&l, target, site, span)?;
        let expr = stretch(&l, &target.shape);
        l = Lazy { shape: target.shape.clone(), expr, weak: l.weak };
        let dtype = target.tensor.dtype;
        if target.open && l.weak {
            // The next walk, with the inferred type, checks that the value fits.
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
        let shapes = |a: &[Expr], b: &[Expr]| {
            format!("the target has shape {}, but the value has shape {}", show_shape(a), show_shape(b))
        };
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

    /// Moves the indices of a place that read the written tensor into temporaries.
    pub(crate) fn freeze_indices(&mut self, target: &View) -> View {
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

    /// Returns the element to store: a load from a temporary if stores through `target`, in the order of its axes, may
    /// overwrite elements that later iterations read, and `element` itself otherwise.
    pub(crate) fn copy_if_aliased(&mut self, target: &View, element: Expr) -> Expr {
        if target.shape.is_empty() || !may_conflict(target, &element) {
            return element;
        }
        let dtype = element.dtype();
        let l = Lazy { shape: target.shape.clone(), expr: element, weak: false };
        self.materialise(&l, dtype, "t").load()
    }

    /// Emits a reduction into a place.
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
}

/// Returns whether distinct elements of the place are distinct elements of the tensor.
fn is_injective(target: &View) -> bool {
    let ndim = target.shape.len();
    let covered: FxHashSet<usize> = target.indices.iter().filter_map(|a| axis::single_affine(&a.index)).collect();
    (0..ndim).all(|k| covered.contains(&k) || is_one(&target.shape[ndim - 1 - k]))
}

/// Returns whether `element` may read, for some element of the place, an element that is written for another one.
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
