//! Conversions between storage formats (language.md, section 3): an argument or a result in another format than its
//! annotation is copied once, at the call, with a warning. The copy goes over the source in the order of its levels:
//!
//! ```text
//! f(A)        A: f64[n, m] @ csc, for a parameter B: f64[n, m] @ csr
//!
//! for j in range(m):
//!     for i in range(n):
//!         B[i, j] = A[i, j]
//! ```
//!
//! Where the source stores whole regions, elements that equal the fill are left out.

use super::annotation::TensorType;
use super::axis;
use super::value::{Lazy, Value, View};
use super::{Elab, R};
use std::sync::Arc;
use taffeta_ast::format::Format;
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{DType, Diagnostic, Expr, ExprKind, Extent, Literal, Op, Span, Stmt, StmtKind, Symbol, Tensor};

/// Returns whether two formats store elements alike; the patterns may differ.
pub(crate) fn alike(a: &Format, b: &Format) -> bool {
    // Dropping and summing concern writes.
    let read = |f: &Format| Format { pattern: None, drops: false, sums: false, ..f.clone() };
    read(a) == read(b)
}

impl Elab<'_> {
    /// Copies a value to a local tensor of this type. The warning names `what`, an argument or a result.
    pub(crate) fn converted(&mut self, v: &Value, ty: TensorType, (name, what): (&str, &str), at: Span) -> R<Value> {
        let found = v.format();
        let Some(l) = v.lazy() else { return Ok(v.clone()) };
        self.warn_of_format(what, &found, &ty.format, at);
        let expr = self.stored(&l, ty.dtype, at)?;
        let tensor = self.stored_local(name, ty);
        self.convert_into(&tensor, &Lazy { expr, weak: false, ..l }, &found);
        Ok(Value::Tensor(View { owned: true, ..View::whole(&tensor, true) }))
    }

    /// Emits the nest that copies a value, stored in the format `found`, to a tensor.
    pub(crate) fn convert_into(&mut self, tensor: &Arc<Tensor>, l: &Lazy, found: &Format) {
        let (own, ndim, dtype) = (&tensor.format, l.shape.len(), tensor.dtype);
        // The elements of a dense tensor that the source does not store have its fill.
        let fill = if own.is_dense() { found.fill } else { own.fill };
        let fill = Expr::literal(fill.unwrap_or(Literal::zero(dtype)), dtype);
        let whole = View::whole(tensor, true).indices;
        self.store(tensor, &l.shape, &whole, &fill);

        let name = tensor.symbol.name().replace('.', "_");
        let iters: Vec<Symbol> = (0..ndim).map(|d| Symbol::new(format!("{name}.d{d}"))).collect();
        let at: Vec<Expr> = iters.iter().map(Expr::var).collect();
        let value = axis::substitute(&l.expr, &at).cast(dtype);
        let cond = match value.kind() {
            _ if found.stores_regions() => Some(Expr::apply(Op::Ne, vec![value.clone(), fill])),
            ExprKind::Load(..) if own.is_dense() => Some(Expr::apply(Op::Stored, vec![value.clone()])),
            _ => None,
        };
        let origin = self.origin();
        let indices = at.iter().cloned().map(Into::into).collect();
        let mut body = Stmt::new(StmtKind::Store { tensor: tensor.symbol.clone(), indices, value }, origin.clone());
        if let Some(cond) = cond {
            body = Stmt::new(StmtKind::If { cond, then: body, otherwise: None }, origin.clone());
        }
        let order = found.order().filter(|order| order.len() == ndim).unwrap_or_else(|| (0..ndim).collect());
        for d in order.into_iter().rev() {
            let extent = Extent::Range { begin: Expr::int(0), end: l.shape[d].clone(), step: Expr::int(1) };
            let kind = StmtKind::For { iter: iters[d].clone(), extent, props: LoopProps::default(), body };
            body = Stmt::new(kind, origin.clone());
        }
        self.emit_all(&body);
    }

    /// Warns about a conversion.
    pub(crate) fn warn_of_format(&mut self, what: &str, found: &Format, wanted: &Format, at: Span) {
        let text = format!("{what} is converted from `{found}` to `{wanted}`");
        let help = "store it in that format from the beginning, or give the annotation the format that it has";
        self.warn(Diagnostic::warning("structured::convert", text).at(at).help(help));
    }
}

/// Returns whether a value has to be converted for an annotation: to another format, or with elements of another type
/// in a format that is not dense.
pub(crate) fn differs(v: &Value, format: &Format, dtype: DType) -> bool {
    !alike(&v.format(), format) || !format.is_dense() && v.dtype() != Some(dtype)
}
