//! Interface of a program as written, where the lowered one takes the arrays of structured parameters.

use crate::signature::Signature;
use std::sync::Arc;
use taffeta_ast::format::{Contract, LevelKind};
use taffeta_ast::{Expr, Symbol, Tensor};

/// Logical interface of a program.
#[derive(Clone, Debug)]
pub struct Logical {
    /// Description for callers.
    pub signature: Signature,
    /// Parameters, then results.
    pub tensors: Vec<Arc<Tensor>>,
    /// Levels of each parameter and result, outermost first; empty for a dense one, and for one that is stored over an
    /// earlier parameter's pattern.
    pub levels: Vec<Vec<LogicalLevel>>,
}

/// A level of a structured parameter. The lowered program's parameters list the arrays of the levels in order, and the
/// elements after those of the last level.
#[derive(Clone, Debug)]
pub struct LogicalLevel {
    /// Kind of the level.
    pub kind: LevelKind,
    /// Number of its arrays.
    pub arrays: usize,
    /// Sizes of the lowered program that are known only with the data.
    pub hidden: Vec<Symbol>,
    /// Size of the dimension.
    pub size: Expr,
    /// Requirements on arrays borrowed from the caller; `None` if they cannot be borrowed.
    pub contract: Option<Contract>,
}

impl Logical {
    /// Returns whether callers can pass structured parameters as arrays: every level has a contract for them.
    pub fn can_be_borrowed(&self) -> bool {
        self.levels.iter().flatten().all(|l| l.contract.is_some())
    }
}
