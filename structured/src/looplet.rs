//! Looplets (Looplets, section 4): the structure of a fibre, in the order of its coordinates. They are plain data,
//! which can be printed and tested; a position that is unknown at compile time is a symbol bound by lowering.
//!
//! ```text
//! compressed    Stepper( Spike )                       a list: nothing, then one element, again and again
//! runlength     Stepper( Run )                         one element for many coordinates, again and again
//! blocklist     Stepper( Sequence( Run, Lookup ) )     nothing, then an element for each coordinate, again and again
//! packbits      Stepper( Switch( Run, Lookup ) )
//! banded        Sequence( Run, Lookup, Run )
//! bitmap        Mask: an element for each coordinate, if its bit is set
//! ```

use taffeta_ast::{Expr, Symbol};

/// Content at a coordinate.
#[derive(Clone, Debug, PartialEq)]
pub enum Fibre {
    /// Coordinate that is not stored: the fill value.
    Fill,
    /// Content of the level below at these positions; below the last level, an element.
    At(Positions),
}

/// Position of a coordinate, or the range of its positions in a level that is not unique.
#[derive(Clone, Debug, PartialEq)]
pub struct Positions {
    /// First position.
    pub first: Expr,
    /// End of the range, exclusive.
    pub end: Expr,
}

impl Positions {
    /// Returns the range of one position.
    pub fn one(at: Expr) -> Positions {
        Positions { end: at.plus(&Expr::int(1)), first: at }
    }
}

/// Structure of a fibre over consecutive coordinates.
#[derive(Clone, Debug, PartialEq)]
pub enum Looplet {
    /// One content for all coordinates.
    Run(Fibre),
    /// Content at the last coordinate, and the fill before it.
    Spike(Fibre),
    /// Computed position for each coordinate.
    Lookup(Lookup),
    /// Consecutive looplets.
    Sequence(Vec<Phase>),
    /// One looplet per position.
    Stepper(Stepper),
    /// Choice between two looplets by a condition that does not depend on the coordinate.
    Switch {
        /// Condition.
        cond: Expr,
        /// Looplet if the condition holds.
        then: Box<Looplet>,
        /// Looplet if it does not hold.
        otherwise: Box<Looplet>,
    },
}

/// Coordinates with computed positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// Position of the coordinate that is looked up.
    pub position: Expr,
    /// Condition that the coordinate is stored; `None` if all coordinates are.
    pub stored: Option<Expr>,
    /// Guarantees of the format for each stored coordinate.
    pub assumptions: Vec<Expr>,
}

/// Part of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// End coordinate, exclusive; `None` for the end of the dimension.
    pub end: Option<Expr>,
    /// Looplet up to there.
    pub looplet: Looplet,
}

/// Looplets of consecutive positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Stepper {
    /// Position, which runs from `begin` to `end`, exclusive.
    pub position: Symbol,
    /// First position.
    pub begin: Expr,
    /// End of the positions, exclusive.
    pub end: Expr,
    /// Last coordinate of the looplet at a position. Coordinates increase if `ordered` is set; unless `unique` is set,
    /// several in a row may be equal.
    pub last: Expr,
    /// Looplet at a position, which begins after the last coordinate of the previous position.
    pub body: Box<Looplet>,
    /// Guarantees of the format for each position.
    pub assumptions: Vec<Expr>,
    /// Whether the last position ends with the dimension. Otherwise nothing is stored after it.
    pub full: bool,
    /// Whether no two positions have the same coordinate.
    pub unique: bool,
    /// Whether coordinates increase from position to position.
    pub ordered: bool,
}

/// Hash table with open addressing: a probe sequence begins at the slot of the coordinate's hash, wraps around after
/// the last slot, and ends at the slot of the coordinate or at a free one.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// Number of slots, a power of two, less one.
    pub(crate) mask: Expr,
    /// Hash of the coordinate that is looked up; its low bits are a slot.
    pub(crate) hash: Expr,
    /// Symbol of the slot in the fields below.
    pub(crate) slot: Symbol,
    /// Position in a slot; negative if the slot is free.
    pub(crate) entry: Expr,
    /// Guarantees of the format for each slot.
    pub(crate) assumptions: Vec<Expr>,
}

impl Positions {
    fn map(&self, f: &mut dyn FnMut(&Expr) -> Expr) -> Positions {
        Positions { first: f(&self.first), end: f(&self.end) }
    }
}

impl Fibre {
    fn map(&self, f: &mut dyn FnMut(&Expr) -> Expr) -> Fibre {
        match self {
            Fibre::Fill => Fibre::Fill,
            Fibre::At(positions) => Fibre::At(positions.map(f)),
        }
    }
}

impl Looplet {
    /// Removes the end of the last phase: a region of a stepper's position does not extend beyond its last coordinate.
    pub(crate) fn open_ended(mut self) -> Looplet {
        if let Looplet::Sequence(phases) = &mut self
            && let Some(last) = phases.last_mut()
        {
            last.end = None;
        }
        self
    }

    /// Subtracts a shift from the coordinates of the looplet.
    pub(crate) fn shifted(&self, by: &Expr) -> Looplet {
        if by.as_int() == Some(0) {
            return self.clone();
        }
        match self {
            // (Positions are computed from the coordinate that is looked up.)
            Looplet::Run(_) | Looplet::Spike(_) | Looplet::Lookup(_) => self.clone(),
            Looplet::Sequence(phases) => {
                let phase =
                    |p: &Phase| Phase { end: p.end.as_ref().map(|end| end.minus(by)), looplet: p.looplet.shifted(by) };
                Looplet::Sequence(phases.iter().map(phase).collect())
            }
            Looplet::Switch { cond, then, otherwise } => {
                let [then, otherwise] = [then, otherwise].map(|l| Box::new(l.shifted(by)));
                Looplet::Switch { cond: cond.clone(), then, otherwise }
            }
            Looplet::Stepper(s) => {
                let (last, body) = (s.last.minus(by), Box::new(s.body.shifted(by)));
                Looplet::Stepper(Stepper { last, body, ..s.clone() })
            }
        }
    }

    /// Applies `f` to every expression of the looplet except those of nested steppers, which are built by levels.
    pub(crate) fn map(&self, f: &mut dyn FnMut(&Expr) -> Expr) -> Looplet {
        match self {
            Looplet::Run(fibre) => Looplet::Run(fibre.map(f)),
            Looplet::Spike(fibre) => Looplet::Spike(fibre.map(f)),
            Looplet::Lookup(Lookup { position, stored, assumptions }) => Looplet::Lookup(Lookup {
                position: f(position),
                stored: stored.as_ref().map(&mut *f),
                assumptions: assumptions.iter().map(f).collect(),
            }),
            Looplet::Sequence(phases) => {
                let phase = |p: &Phase| Phase { end: p.end.as_ref().map(&mut *f), looplet: p.looplet.map(f) };
                Looplet::Sequence(phases.iter().map(phase).collect())
            }
            Looplet::Switch { cond, then, otherwise } => {
                Looplet::Switch { cond: f(cond), then: Box::new(then.map(f)), otherwise: Box::new(otherwise.map(f)) }
            }
            Looplet::Stepper(stepper) => Looplet::Stepper(stepper.clone()),
        }
    }
}

/// Returns whether the looplets of a stepper are spikes.
pub(crate) fn is_spike(stepper: &Stepper) -> bool {
    matches!(*stepper.body, Looplet::Spike(_))
}
