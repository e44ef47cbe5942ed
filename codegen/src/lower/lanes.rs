//! Analysis of the values that can be computed for all lanes at once. Lanes are consecutive iterations of a loop, side
//! by side in a vector.
//!
//! ```text
//! for j in range(16):                      a[k] is the same for all lanes, b[k * 16 + j] is a vector:
//!     acc[j] += a[k] * b[k * 16 + j]       their product can be computed for all lanes
//! ```

use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_analysis::query::stride::constant_stride;
use taffeta_ast::expr::Access;
use taffeta_ast::{DType, Expr, ExprKind, Op, Symbol};

/// A loop over lanes.
pub(super) struct Lanes<'s> {
    pub iter: &'s Symbol,
    /// Tensors whose elements may differ between lanes, since the loop stores into them or vectors hold them.
    pub varying: FxHashSet<Symbol>,
    /// Whether gathers are allowed: vectors assembled from elements anywhere in memory.
    pub gathers: bool,
}

/// Returns whether a value needs elements that are not adjacent in consecutive iterations.
pub(crate) fn gathers(e: &Expr, iter: &Symbol) -> bool {
    match e.kind() {
        ExprKind::Load(_, indices) => {
            let [index] = indices.as_slice() else { return false };
            effects::mentions(&index.index, &[iter]) && constant_stride(&index.index, iter) != Some(1)
        }
        _ => e.children().into_iter().any(|c| gathers(c, iter)),
    }
}

impl Lanes<'_> {
    /// Returns whether consecutive iterations access consecutive elements.
    pub fn vector(&self, indices: &[Access]) -> bool {
        let [index] = indices else { return false };
        constant_stride(&index.index, self.iter) == Some(1) && effects::loads(&index.index).is_disjoint(&self.varying)
    }

    /// Returns whether gathers are allowed and each lane can compute the index of its element.
    fn gathered(&self, indices: &[Access]) -> bool {
        self.gathers && indices.iter().all(|a| effects::loads(&a.index).is_disjoint(&self.varying))
    }

    /// Returns whether a value of type `dtype` can be computed for all lanes at once.
    pub fn value(&self, e: &Expr, dtype: DType) -> bool {
        if self.same(e) {
            return true;
        }
        if e.dtype() != dtype {
            return false;
        }
        match e.kind() {
            ExprKind::Load(t, indices) => self.vector(indices) || !self.varying.contains(t) && self.gathered(indices),
            ExprKind::Apply(Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::Div, args) => {
                args.iter().all(|a| self.value(a, dtype))
            }
            // Sums of f32 accumulate in f64.
            ExprKind::Cast(inner) => {
                dtype == DType::F64 && inner.dtype() == DType::F32 && !self.same(inner) && self.value(inner, DType::F32)
            }
            _ => false,
        }
    }

    /// Returns whether a value is the same for all lanes.
    pub fn same(&self, e: &Expr) -> bool {
        !effects::mentions(e, &[self.iter]) && effects::loads(e).is_disjoint(&self.varying)
    }
}
