//! What can be computed for all lanes at once: consecutive iterations of a loop side by side in a vector.
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
    /// Tensors of which no element is known to be the same for all lanes: what the loop stores into, and what is held
    /// in vectors.
    pub varying: FxHashSet<Symbol>,
    /// Whether elements from anywhere may be put into a vector, one by one.
    pub gathers: bool,
}

/// Whether a value has elements that do not stand side by side in consecutive iterations.
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
    /// Whether consecutive iterations access consecutive elements.
    pub fn vector(&self, indices: &[Access]) -> bool {
        let [index] = indices else { return false };
        constant_stride(&index.index, self.iter) == Some(1) && effects::loads(&index.index).is_disjoint(&self.varying)
    }

    /// Whether each lane knows where its element is.
    fn gathered(&self, indices: &[Access]) -> bool {
        self.gathers && indices.iter().all(|a| effects::loads(&a.index).is_disjoint(&self.varying))
    }

    /// Whether a value of that type can be computed for all lanes at once.
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
            // Sums of f32 are in f64.
            ExprKind::Cast(inner) => {
                dtype == DType::F64 && inner.dtype() == DType::F32 && !self.same(inner) && self.value(inner, DType::F32)
            }
            _ => false,
        }
    }

    /// Whether a value is the same for all lanes.
    pub fn same(&self, e: &Expr) -> bool {
        !effects::mentions(e, &[self.iter]) && effects::loads(e).is_disjoint(&self.varying)
    }
}
