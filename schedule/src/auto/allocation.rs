//! Local arrays that are allocated at every execution of their declaration: the cost model prices them, and `mem_type`
//! gives them memory that is laid out once.

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
