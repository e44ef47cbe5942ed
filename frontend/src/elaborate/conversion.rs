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
//! Where the source stores whole regions, elements that equal the fill are left out. Of blocks and diagonals, the loops
//! go over the coordinates of the levels.

use super::annotation::TensorType;
use super::axis;
use super::value::{Lazy, Value, View};
use super::{Elab, R};
use std::sync::Arc;
use taffeta_ast::format::{Coord, Format};
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{DType, Diagnostic, Expr, ExprKind, Extent, Literal, Op, Span, Stmt, StmtKind, Symbol, Tensor};

/// Returns whether two formats store elements alike; the patterns may differ.
pub(crate) fn alike(a: &Format, b: &Format) -> bool {
    // Dropping and summing concern writes.
    let read = |f: &Format| Format { pattern: None, drops: false, sums: false, ..f.clone() };
    read(a) == read(b)
}

impl Elab<'_> {
    /// Copies a value to a local tensor of this type. The warning names the argument or the result.
    pub(crate) fn converted(&mut self, v: &Value, ty: TensorType, (name, what): (&str, &str), at: Span) -> R<Value> {
        let Some(l) = v.lazy() else { return Ok(v.clone()) };
        self.warn_of_format(what, v, &ty.format, at);
        let expr = self.stored(&l, ty.dtype, at)?;
        let tensor = self.stored_local(name, ty);
        self.convert_into(&tensor, &Lazy { expr, weak: false, ..l }, v);
        Ok(Value::Tensor(View { owned: true, ..View::whole(&tensor, true) }))
    }

    /// Emits the nest that copies the elements `l` of a value to a tensor.
    pub(crate) fn convert_into(&mut self, tensor: &Arc<Tensor>, l: &Lazy, v: &Value) {
        let (own, found, dtype) = (&tensor.format, v.format(), tensor.dtype);
        // The elements of a dense tensor that the source does not store have its fill.
        let fill = if own.is_dense() { found.fill } else { own.fill };
        let fill = Expr::literal(fill.unwrap_or(Literal::zero(dtype)), dtype);
        let whole = View::whole(tensor, true).indices;
        self.store(tensor, &l.shape, &whole, &fill);

        let name = tensor.symbol.name().replace('.', "_");
        let nest = found.nest(&l.shape, &|k| match found.coords[k] {
            Coord::Dim(d) => Symbol::new(format!("{name}.d{d}")),
            _ => Symbol::new(format!("{name}.c{k}")),
        });
        let value = axis::substitute(&l.expr, &nest.at).cast(dtype);
        let cond = match value.kind() {
            _ if stores_regions(v) => Some(Expr::apply(Op::Ne, vec![value.clone(), fill])),
            ExprKind::Load(..) if own.is_dense() => Some(Expr::apply(Op::Stored, vec![value.clone()])),
            _ => None,
        };
        let within = nest.open.iter().map(|[index, size]| Expr::int(0).less_eq(index).and(&index.less(size)));
        let origin = self.origin();
        let indices = nest.at.iter().cloned().map(Into::into).collect();
        let mut body = Stmt::new(StmtKind::Store { tensor: tensor.symbol.clone(), indices, value }, origin.clone());
        for cond in cond.into_iter().chain(within.rev()) {
            body = Stmt::new(StmtKind::If { cond, then: body, otherwise: None }, origin.clone());
        }
        for (iter, [begin, end]) in nest.loops.into_iter().rev() {
            let extent = Extent::Range { begin, end, step: Expr::int(1) };
            let kind = StmtKind::For { iter, extent, props: LoopProps::default(), body };
            body = Stmt::new(kind, origin.clone());
        }
        self.emit_all(&body);
    }

    /// Warns about a conversion.
    pub(crate) fn warn_of_format(&mut self, what: &str, v: &Value, wanted: &Format, at: Span) {
        let found = match v {
            Value::Tensor(view) if !view.is_whole() && !view.tensor.format.is_dense() => {
                format!("a part of a tensor in `{}`", view.tensor.format)
            }
            v => format!("`{}`", v.format()),
        };
        let text = format!("{what} is converted from {found} to `{wanted}`");
        let help = "store it in that format from the beginning, or give the annotation the format that it has";
        self.warn(Diagnostic::warning("structured::convert", text).at(at).help(help));
    }
}

/// Returns whether elements of a value may be stored that no store came to. Parts of a tensor are stored as the tensor.
fn stores_regions(v: &Value) -> bool {
    match v {
        Value::Tensor(view) => view.tensor.format.stores_regions(),
        v => v.format().stores_regions(),
    }
}

/// Returns whether a value has to be converted for an annotation: to another format, or with elements of another type
/// in a format that is not dense.
pub(crate) fn differs(v: &Value, format: &Format, dtype: DType) -> bool {
    !alike(&v.format(), format) || !format.is_dense() && v.dtype() != Some(dtype)
}
