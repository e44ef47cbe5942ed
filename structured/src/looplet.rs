//! Looplets (Looplets, section 4): what a fibre is made of, in the order of its coordinates. They are plain data, so
//! that they can be printed and tested; a position that is not known while compiling is a symbol that lowering binds.
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

/// What stands at a coordinate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fibre {
    /// Nothing is stored: the fill.
    Fill,
    /// What the level below has at these positions; below the last level, an element.
    At(Positions),
}

/// One position, or several that one coordinate has in a level that is not unique.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Positions {
    /// The first one.
    pub(crate) first: Expr,
    /// The one after the last.
    pub(crate) end: Expr,
}

impl Positions {
    /// One position.
    pub(crate) fn one(at: Expr) -> Positions {
        Positions { end: at.plus(&Expr::int(1)), first: at }
    }
}

/// What a fibre is made of, over some coordinates in a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Looplet {
    /// The same at every coordinate.
    Run(Fibre),
    /// Nothing, and something at the last coordinate.
    Spike(Fibre),
    /// A position for each coordinate.
    Lookup(Lookup),
    /// One looplet after the other.
    Sequence(Vec<Phase>),
    /// A looplet for each position in turn.
    Stepper(Stepper),
    /// One of two, by a condition that does not depend on the coordinate.
    Switch { cond: Expr, then: Box<Looplet>, otherwise: Box<Looplet> },
}

/// Coordinates whose positions are computed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lookup {
    /// The position of the coordinate that was asked for.
    pub(crate) position: Expr,
    /// Whether it is stored; `None`: all of them are.
    pub(crate) stored: Option<Expr>,
    /// What the format promises of each coordinate that is stored.
    pub(crate) promises: Vec<Expr>,
}

/// A part of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Phase {
    /// The coordinate after its last one; `None`: up to the end of the dimension.
    pub(crate) end: Option<Expr>,
    pub(crate) looplet: Looplet,
}

/// A looplet for each position in turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stepper {
    /// The position, from the first one to the one after the last.
    pub(crate) position: Symbol,
    pub(crate) begin: Expr,
    pub(crate) end: Expr,
    /// The last coordinate of the looplet at a position. They rise; where `unique` is not set, several in a row may be
    /// equal.
    pub(crate) last: Expr,
    /// The looplet at a position, from the coordinate after the last one of the position before.
    pub(crate) body: Box<Looplet>,
    /// What the format promises of each position.
    pub(crate) promises: Vec<Expr>,
    /// Whether the last position ends with the dimension. If not, nothing is stored after it.
    pub(crate) full: bool,
    /// Whether no two positions have one coordinate.
    pub(crate) unique: bool,
    /// Whether coordinates rise from position to position.
    pub(crate) ordered: bool,
}

/// A table that says where a coordinate is: the slots from the one that its hash gives on, the last one being followed
/// by the first, up to one that has the coordinate or is free.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// How many slots there are, less one: one less than a power of two.
    pub(crate) mask: Expr,
    /// A number made of the coordinate that is asked for, whose low bits are a slot.
    pub(crate) hash: Expr,
    /// What stands for the slot in the rest.
    pub(crate) slot: Symbol,
    /// The position that a slot has; negative where it is free.
    pub(crate) entry: Expr,
    /// What the format promises of each slot.
    pub(crate) promises: Vec<Expr>,
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
    /// The looplet of a position of a stepper, in a region that does not go beyond its last coordinate.
    pub(crate) fn open_ended(mut self) -> Looplet {
        if let Looplet::Sequence(phases) = &mut self
            && let Some(last) = phases.last_mut()
        {
            last.end = None;
        }
        self
    }

    /// The same looplet with coordinates that are less by so much.
    pub(crate) fn shifted(&self, by: &Expr) -> Looplet {
        if by.as_int() == Some(0) {
            return self.clone();
        }
        match self {
            // (Positions are computed of the coordinate that is asked for.)
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

    /// The looplet with `f` applied to every expression in it, but for those of steppers, which levels make.
    pub(crate) fn map(&self, f: &mut dyn FnMut(&Expr) -> Expr) -> Looplet {
        match self {
            Looplet::Run(fibre) => Looplet::Run(fibre.map(f)),
            Looplet::Spike(fibre) => Looplet::Spike(fibre.map(f)),
            Looplet::Lookup(Lookup { position, stored, promises }) => Looplet::Lookup(Lookup {
                position: f(position),
                stored: stored.as_ref().map(&mut *f),
                promises: promises.iter().map(f).collect(),
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
