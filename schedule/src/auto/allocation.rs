//! Memory of local arrays.

use taffeta_analysis::query::upper_bound::of_sizes;
use taffeta_ast::Symbol;
use taffeta_ast::Tensor;
use taffeta_ast::stmt::Memory;

/// Returns whether an array of default memory is allocated at its declaration, since its shape depends on more than
/// size parameters.
pub(super) fn is_allocated(sizes: &[Symbol], tensor: &Tensor) -> bool {
    let changes = !tensor.shape.iter().all(|e| of_sizes(e, sizes));
    tensor.ndim() > 0 && tensor.memory == Memory::Auto && changes
}
