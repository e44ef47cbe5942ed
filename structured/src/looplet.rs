//! Looplets (Looplets, section 4): what a fibre is made of, in the order of its coordinates. They are plain data, so
//! that they can be printed and tested; a position that is not known while compiling is a symbol that lowering binds.

use taffeta_ast::{Expr, Symbol};

/// What stands at a coordinate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fibre {
    /// Nothing is stored: the fill.
    Fill,
    /// What the level below has at that position; below the last level, an element.
    At(Expr),
}

/// What a fibre is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Looplet {
    /// The same at every coordinate, and something else at the last one.
    Spike { body: Fibre, tail: Fibre },
    /// The same kind of looplet again and again.
    Stepper(Stepper),
    /// A sequence of three: nothing, then a position for each coordinate, then nothing.
    Block(Block),
}

/// Consecutive coordinates that are stored, each at a position that is computed of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    /// From the first coordinate to the one after the last.
    pub(crate) first: Expr,
    pub(crate) last: Expr,
    /// The position of the coordinate that the loop counts.
    pub(crate) position: Expr,
    /// What the format promises of each coordinate in between.
    pub(crate) promises: Vec<Expr>,
}

/// A looplet for each position in turn, after which nothing is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stepper {
    /// The position, from the first one to the one after the last.
    pub(crate) position: Symbol,
    pub(crate) begin: Expr,
    pub(crate) end: Expr,
    /// The last coordinate of the looplet at a position.
    pub(crate) last: Expr,
    /// The looplet at a position.
    pub(crate) body: Box<Looplet>,
    /// What the format promises of each position.
    pub(crate) promises: Vec<Expr>,
}
