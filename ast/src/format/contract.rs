//! What must be true of the arrays of a level, as plain data: arrays that callers lend are held to it before generated
//! code trusts them, in Rust by the crate `structured`, in C by a function of the run-time library for each [`Rule`].

/// What a level says of its arrays. Arrays and hidden numbers are named by their place in the level's lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contract {
    /// Of each number that is known only with the data, where the arrays say it.
    pub counts: Vec<Counted>,
    /// What must be true of the arrays. A rule may rely on those before it.
    pub rules: Vec<Rule>,
    /// If the level's positions are the elements of a list: the array with their coordinates, and, unless there is one
    /// for each position of the level above, the partition that says which are below which.
    pub list: Option<(Option<usize>, usize)>,
}

/// Where arrays say a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// It is the length of that array.
    Length(usize),
    /// It is the last element of that array.
    Last(usize),
}

/// What must be true of arrays. `above` are the positions of the level above, `size` is that of the dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `pos` begins with 0, does not fall, and ends with that hidden number: it says where each position's part of
    /// another array begins and ends.
    Partition {
        /// The array.
        pos: usize,
        /// The hidden number.
        total: usize,
    },
    /// The coordinates in the parts of `crd` that `pos` says: each of them from 0 to `size`, in order and unique where
    /// the level is.
    Coordinates {
        /// The parts: a partition.
        pos: usize,
        /// The coordinates.
        crd: usize,
        /// They do not fall within a part.
        ordered: bool,
        /// None comes twice within a part.
        unique: bool,
    },
    /// Each part that `pos` says is a block of consecutive coordinates, which begins at `start` (`None`: at 0) and ends
    /// in the dimension.
    Blocks {
        /// The parts: a partition.
        pos: usize,
        /// Where they begin.
        start: Option<usize>,
    },
    /// Each element of an array is from 0 to `size`, or `size` itself.
    Range {
        /// The array.
        array: usize,
        /// Whether it can be `size`.
        or_size: bool,
    },
    /// Each element of an array is larger than the one before it.
    Rises {
        /// The array.
        array: usize,
    },
    /// The coordinates of each fibre rise from slot to slot, up to those that are left over, which have the dimension's
    /// size. (Below a level of slots: those of slot 0 for all fibres come first, then those of slot 1.)
    Slots {
        /// The coordinates.
        crd: usize,
    },
    /// Positions in a row that have all coordinates of the levels above in common have coordinates here that do not
    /// fall. Levels above are lists ([`Contract::list`]), up to the first that has a partition.
    Tuples {
        /// The coordinates.
        crd: usize,
        /// They rise.
        unique: bool,
    },
    /// In the parts that `pos` says, `end` has the coordinates after segments, which follow each other in the dimension
    /// and have one coordinate at least.
    Segments {
        /// The parts: a partition.
        pos: usize,
        /// The ends.
        end: usize,
        /// How many positions each segment has, if not one: a partition. As many as coordinates, at most.
        ofs: Option<usize>,
        /// Segments leave no coordinate out, and each has one position, or one for each coordinate.
        full: bool,
    },
    /// `map` has, for each position of the level above, a number for each coordinate: not 0 for those that the list
    /// has.
    Map {
        /// The list's parts: a partition.
        pos: usize,
        /// The list's coordinates.
        crd: usize,
        /// The numbers.
        map: usize,
    },
    /// `tbl` has a hash table for each part of the list, which finds each of its coordinates (the level `hashed` says
    /// how), and has a free slot.
    Table {
        /// The list's parts: a partition.
        pos: usize,
        /// The list's coordinates.
        crd: usize,
        /// The parts of `tbl`: a partition.
        tpos: usize,
        /// The tables.
        tbl: usize,
    },
}
