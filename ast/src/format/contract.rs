//! Invariants of a level's arrays, as plain data. Borrowed arrays are checked against them before generated code trusts
//! them: in Rust by the crate `structured`, in C by one function of the run-time library per [`Rule`].

/// Invariants of a level's arrays. Arrays and hidden sizes are numbered by their place in the level's lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contract {
    /// Source of each hidden size, a number known only from the data.
    pub counts: Vec<Counted>,
    /// Rules for the arrays. A rule may rely on those before it.
    pub rules: Vec<Rule>,
    /// For a level whose positions are the elements of a list: the partition that assigns list elements to parent
    /// positions (`None`: each parent position has exactly one element), and the coordinate array.
    pub list: Option<(Option<usize>, usize)>,
}

/// Array that determines a hidden size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Length of that array.
    Length(usize),
    /// Last element of that array.
    Last(usize),
}

/// Rule for arrays. `above` is the number of positions of the parent level, `size` the size of the dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `pos` begins with 0, does not decrease, and ends with that hidden size: it delimits each position's segment of
    /// another array.
    Partition {
        /// Partition array.
        pos: usize,
        /// Hidden size.
        total: usize,
    },
    /// Coordinates of `crd`, in the segments given by `pos`, lie within `0 <= c < size`, sorted and unique where the
    /// level is.
    Coordinates {
        /// Partition array.
        pos: usize,
        /// Coordinate array.
        crd: usize,
        /// Whether coordinates do not decrease within a segment.
        ordered: bool,
        /// Whether no coordinate occurs twice within a segment.
        unique: bool,
    },
    /// Each segment given by `pos` is a block of consecutive coordinates, which begins at `start` (`None`: at 0) and
    /// ends within the dimension.
    Blocks {
        /// Partition array.
        pos: usize,
        /// Array of first coordinates.
        start: Option<usize>,
    },
    /// Each element of an array lies within `0 <= x < size`, or equals `size` if allowed.
    Range {
        /// Array.
        array: usize,
        /// Whether `size` itself is allowed.
        or_size: bool,
    },
    /// Elements of an array strictly increase.
    Rises {
        /// Array.
        array: usize,
    },
    /// Coordinates of each fibre strictly increase from slot to slot; unused slots follow and hold the dimension's
    /// size. Slots are the outer dimension of the layout: slot 0 of all fibres comes first, then slot 1.
    Slots {
        /// Coordinate array.
        crd: usize,
    },
    /// Coordinates of consecutive positions that agree in all coordinates of the ancestor levels do not decrease. The
    /// ancestors are lists ([`Contract::list`]), up to the first one with a partition.
    Tuples {
        /// Coordinate array.
        crd: usize,
        /// Whether coordinates strictly increase.
        unique: bool,
    },
    /// `end` holds the end coordinates of segments, within the parts given by `pos`. Segments do not overlap, and each
    /// has at least one coordinate.
    Segments {
        /// Partition array of the fibres.
        pos: usize,
        /// End coordinates.
        end: usize,
        /// Partition that gives each segment's number of positions, at most its number of coordinates; `None`: one
        /// each.
        ofs: Option<usize>,
        /// Whether segments cover the whole dimension, each with one position or one per coordinate.
        full: bool,
    },
    /// `map` holds a number for each coordinate, per parent position: nonzero exactly for the coordinates in the list.
    Map {
        /// Partition array of the list.
        pos: usize,
        /// Coordinate array of the list.
        crd: usize,
        /// Map array.
        map: usize,
    },
    /// `tbl` holds a hash table per segment of the list, which finds each of the segment's coordinates (see the level
    /// `hashed`), and has a free slot.
    Table {
        /// Partition array of the list.
        pos: usize,
        /// Coordinate array of the list.
        crd: usize,
        /// Partition array of `tbl`.
        tpos: usize,
        /// Hash tables.
        tbl: usize,
    },
}
