//! The interface of a program as it is written, where the lowered one takes the arrays of structured parameters.

use crate::signature::Signature;
use std::sync::Arc;
use taffeta_ast::format::{Contract, LevelKind};
use taffeta_ast::{Expr, Symbol, Tensor};

/// A program's own interface.
#[derive(Clone, Debug)]
pub struct Logical {
    /// What callers must know of it.
    pub signature: Signature,
    /// Parameters, then results.
    pub tensors: Vec<Arc<Tensor>>,
    /// Of each parameter its levels, outermost first; none of dense ones.
    pub levels: Vec<Vec<LogicalLevel>>,
}

/// A level of a structured parameter. Its arrays are the next ones of the lowered program's parameters; behind those of
/// the last level come the elements.
#[derive(Clone, Debug)]
pub struct LogicalLevel {
    /// What it is.
    pub kind: LevelKind,
    /// How many arrays it has.
    pub arrays: usize,
    /// Sizes of the lowered program that are known only with the data.
    pub hidden: Vec<Symbol>,
    /// The dimension's size.
    pub size: Expr,
    /// What arrays that a caller lends must be; `None`: they cannot be lent.
    pub contract: Option<Contract>,
}

impl Logical {
    /// Whether callers can give structured parameters by their arrays: every level says what these must be.
    pub fn can_be_lent(&self) -> bool {
        self.levels.iter().flatten().all(|l| l.contract.is_some())
    }
}
