//! Interface of level formats: the levels of a tensor, their arrays, and packing and reading them.

use crate::looplet::{Lookup, Looplet, Positions, Probe};
use std::ops::Range;
use std::sync::Arc;
use taffeta_ast::format::{Contract, Coord, Level};
use taffeta_ast::{DType, Expr, Literal, Symbol, Tensor};

/// Level of a structured tensor.
#[derive(Clone, Debug)]
pub struct TensorLevel {
    /// Level with its options.
    pub level: Level,
    /// Coordinate as an expression of an element's indices.
    pub(crate) coord: Coord,
    /// Least value of the coordinate.
    pub low: Expr,
    /// Number of coordinates.
    pub size: Expr,
    /// Arrays, in the order of [`LevelFormat::arrays`].
    pub(crate) arrays: Vec<Arc<Tensor>>,
    /// Sizes that are known only with the data.
    pub(crate) hidden: Vec<Symbol>,
    /// Their values: counts of a tensor that the program makes.
    pub(crate) counts: Vec<Expr>,
    /// Number of positions.
    pub positions: Expr,
    /// Place of the coordinates of a fibre, if they are stored in slots (below `sliced`).
    pub(crate) slots: Option<FibreSlots>,
    /// Whether elements are inserted into the level: it belongs to a workspace.
    pub(crate) inserts: bool,
}

/// Slots of the fibres below `sliced`.
#[derive(Clone, Debug)]
pub(crate) struct FibreSlots {
    /// Sizes of the levels between, which number the fibres below each position above `sliced`.
    pub(crate) within: Vec<Expr>,
    /// First slot of each position above `sliced`; `None` if there is one such position.
    pub(crate) first: Option<Arc<Tensor>>,
}

impl TensorLevel {
    /// Returns the dimension that the level stores, if it stores one.
    pub(crate) fn dimension(&self) -> Option<usize> {
        match self.coord {
            Coord::Dim(d) => Some(d),
            _ => None,
        }
    }

    /// Loads an element of an array as an index.
    pub fn load(&self, array: usize, at: &Expr) -> Expr {
        self.arrays[array].load([at.clone()]).cast(DType::I64)
    }
}

/// Array of a level.
pub(crate) struct ArrayKind {
    /// Name of the array.
    pub(crate) name: &'static str,
    /// Whether the elements are positions in another array; they may be as large as its length.
    pub(crate) positions: bool,
    /// Element type; `None` for the level's index type.
    pub(crate) dtype: Option<DType>,
    /// Length of the array.
    pub(crate) length: fn(&Counts) -> Expr,
}

impl ArrayKind {
    /// Returns the element type in a level of this index type; positions take at least i32.
    pub(crate) fn dtype_beside(&self, index: DType) -> DType {
        match self.dtype {
            Some(dtype) => dtype,
            None if self.positions && matches!(index, DType::U8 | DType::U16) => DType::I32,
            None => index,
        }
    }
}

/// Sizes that determine array lengths and numbers of positions.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// Number of positions of the level above.
    pub(crate) above: Expr,
    /// Number of coordinates: the dimension's size.
    pub(crate) size: Expr,
    /// Sizes that are known only with the data: [`LevelFormat::hidden`].
    pub(crate) hidden: Vec<Expr>,
}

/// Parent of a fibre.
#[derive(Clone, Debug)]
pub struct Parent {
    /// Positions in the level above: several below a level that is not unique.
    pub positions: Positions,
    /// Coordinate in the level above; 0 at the outermost level.
    pub coordinate: Expr,
}

/// Storage format of the coordinates of one level.
pub(crate) trait LevelFormat {
    /// Returns the kinds of the level's arrays.
    fn arrays(&self) -> &'static [ArrayKind];

    /// Returns the names of the sizes that are known only with the data: numbers of blocks, of positions.
    fn hidden(&self) -> &'static [&'static str];

    /// Returns the number of positions.
    fn positions(&self, counts: &Counts) -> Expr;

    /// Returns the position of a coordinate, if it is a function of the parent position and the coordinate alone.
    fn located(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Expr> {
        let _ = (level, above, index);
        None
    }

    /// Returns the position of any coordinate of the dimension, and the condition that it is stored, if both are known
    /// without traversing the fibre.
    fn lookup(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
        let _ = (level, above, index);
        None
    }

    /// Returns the hash table in which the position of a coordinate is found, if the level has one.
    fn probe(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Probe> {
        let _ = (level, above, index);
        None
    }

    /// Builds the looplet of a fibre. `index` is the coordinate that is looked up, for looplets that depend on it;
    /// steppers bind `position`.
    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, position: &Symbol) -> Looplet;

    /// Builds the level's arrays for these elements, and replaces their positions by those in this level.
    ///
    /// # Errors
    ///
    /// The first misfit that is found.
    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit>;

    /// Returns the requirements on borrowed arrays under which the loops of this level are correct; `None` if nothing
    /// can be borrowed.
    fn contract(&self, level: Level) -> Option<Contract> {
        let _ = level;
        None
    }

    /// Lists the entries that the arrays of a level store.
    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry>;
}

/// Elements being packed into a level, sorted by position and coordinate. No two elements of a tensor agree in all
/// coordinates.
pub(crate) struct Packing<'e> {
    /// Position of each element in the level above; packing replaces it by the position in this level.
    pub(crate) positions: &'e mut [i64],
    /// Coordinate of each element.
    pub(crate) coordinates: &'e [i64],
    /// Coordinate of each element in the level above (0 at the outermost level).
    pub(crate) parents: &'e [i64],
    /// Number of positions of the level above; packing replaces it by that of this level.
    pub(crate) count: &'e mut i64,
    /// Size of the dimension.
    pub(crate) size: i64,
    /// Values of the elements, and the fill value. Levels that are not injective, which are always last, compare them.
    pub(crate) value: &'e dyn Fn(usize) -> Literal,
    pub(crate) fill: Literal,
    /// Whether an element has a position of its own, and does not share its predecessor's: their coordinates differ at
    /// some level, down to the first unique one from this level on. (The coordinates of `singleton` below a list that
    /// is not unique thus distinguish the positions of the list.)
    pub(crate) begins: &'e dyn Fn(usize) -> bool,
}

impl Packing<'_> {
    /// Splits the elements by their positions in the level above.
    pub(crate) fn fibres(&self) -> Vec<Range<usize>> {
        let mut from = 0;
        let mut one = |above: i64| {
            let end = from + self.positions[from..].iter().take_while(|p| **p == above).count();
            std::mem::replace(&mut from, end)..end
        };
        (0..*self.count).map(&mut one).collect()
    }

    /// Returns the number of positions if every fibre has one for each coordinate; an error above [`MAX_POSITIONS`].
    pub(crate) fn everywhere(&self) -> Result<i64, Misfit> {
        self.count.checked_mul(self.size).filter(|n| *n <= MAX_POSITIONS).ok_or(Misfit::TooMany)
    }
}

/// Maximum number of positions of a level: counts and addresses derived from it stay within 64 bits.
pub(crate) const MAX_POSITIONS: i64 = 1 << 47;

/// Allocates an array of zeros if there is memory for it: its length may follow from sizes alone.
pub(crate) fn zeros(len: i64) -> Result<Vec<i64>, Misfit> {
    let len = usize::try_from(len).map_err(|_| Misfit::TooMany)?;
    Vec::<i64>::new().try_reserve_exact(len).map_err(|_| Misfit::TooMany)?;
    Ok(vec![0; len])
}

/// Replaces counts by their inclusive prefix sums, which turns lengths into offsets.
pub(crate) fn accumulate(counts: &mut [i64]) {
    for k in 1..counts.len() {
        counts[k] += counts[k - 1];
    }
}

/// Reason why elements, given by their numbers, cannot be packed into a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// Element at a coordinate that the level does not store.
    Outside(usize),
    /// Two unequal elements that share a position.
    Unequal(usize, usize),
    /// Two elements in a fibre that has room for one.
    Second(usize, usize),
    /// More positions than fit in memory.
    TooMany,
}

/// Arrays and hidden sizes of a level, in the order of [`LevelFormat::arrays`] and [`LevelFormat::hidden`].
pub(crate) struct Packed {
    pub(crate) arrays: Vec<Vec<i64>>,
    pub(crate) hidden: Vec<i64>,
}

/// Context in which a level is unpacked.
pub(crate) struct Unpacking<'e> {
    /// Number of positions of the level above.
    pub(crate) count: i64,
    /// Size of the dimension.
    pub(crate) size: i64,
    /// Coordinate of a position of the level above (0 at the outermost level).
    pub(crate) parent: &'e dyn Fn(i64) -> i64,
    /// Coordinate of `offset` below a position of the level above, computed from the coordinates above; 0 for other
    /// levels.
    pub(crate) derived: &'e dyn Fn(i64) -> i64,
}

/// Stored coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Position in the level above.
    pub(crate) above: i64,
    pub(crate) coordinate: i64,
    /// Position in this level, which several coordinates may share.
    pub(crate) position: i64,
}
