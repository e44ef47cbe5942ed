//! Level kinds (ways to store the coordinates of one level of a format), their options, and the facts that hold for any
//! contents.

use crate::dtype::DType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Kind of a level (format abstraction, section 3; looplets, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LevelKind {
    /// Every coordinate, in order.
    Dense,
    /// List of the stored coordinates of each fibre.
    Compressed,
    /// One coordinate per position of the level above.
    Singleton,
    /// Hash table of the stored coordinates of each fibre.
    Hashed,
    /// Byte per coordinate that marks stored ones, with a list of these.
    Bytemap,
    /// Bit per coordinate that marks stored ones.
    Bitmap,
    /// One block of consecutive coordinates per fibre.
    Banded,
    /// Prefix of the coordinates of each fibre.
    Ragged,
    /// Blocks of consecutive coordinates (VBL).
    Blocklist,
    /// Runs of coordinates with equal values.
    RunLength,
    /// Runs of coordinates with equal values, and literal stretches with one value per coordinate.
    PackBits,
    /// Coordinates up to that of the level above, inclusive.
    LowerTriangular,
    /// Coordinates from that of the level above on, inclusive.
    UpperTriangular,
    /// Half of a matrix that equals its transpose.
    Symmetric,
    /// At most one coordinate per fibre.
    Point,
    /// Every coordinate that stays within the tensor, given the coordinates above.
    Range,
    /// Coordinate determined by those above.
    Offset,
    /// Coordinates that occur in any fibre, the same set for all fibres.
    Squeezed,
    /// Slots 0, 1, … up to the element count of the fullest fibre, the same for all fibres.
    Sliced,
}

/// Facts of a level that hold for any contents (format abstraction, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelFacts {
    /// Whether every coordinate of the dimension has a stored value.
    pub full: bool,
    /// Whether coordinates are stored in increasing order.
    pub ordered: bool,
    /// Whether no coordinate is stored twice under one parent.
    pub unique: bool,
    /// Whether each position of the level above has exactly one child.
    pub branchless: bool,
    /// Whether no position is unused.
    pub compact: bool,
    /// Whether locating a coordinate needs no search.
    pub random_access: bool,
    /// Whether each coordinate has a stored value of its own.
    pub injective: bool,
}

/// Level with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Level {
    /// Storage of the coordinates.
    pub kind: LevelKind,
    /// Whether no coordinate is stored twice under one parent.
    pub unique: bool,
    /// Whether coordinates are stored in increasing order.
    pub ordered: bool,
    /// Type of the index arrays: u8, u16, i32 or i64. `None`: i32, or i64 where the data need it.
    pub index: Option<DType>,
}

/// Defines the kinds, one row each: the name, the facts of [`LevelFacts`] in their order (options may give up `unique`
/// and `ordered`), and whether the level has index arrays.
macro_rules! kinds {
    ($($kind:ident $name:literal: $full:literal $ordered:literal $unique:literal $branchless:literal $compact:literal
       $random:literal $injective:literal, $arrays:literal;)*) => {
        impl LevelKind {
            /// All kinds.
            pub const ALL: &'static [LevelKind] = &[$(LevelKind::$kind),*];

            /// Returns the name in programs; both triangles are `triangular`, the upper one with `upper=True`.
            pub fn name(self) -> &'static str {
                match self { $(LevelKind::$kind => $name),* }
            }

            /// Returns whether the level has index arrays, whose type `index=` sets.
            pub fn has_indices(self) -> bool {
                match self { $(LevelKind::$kind => $arrays),* }
            }

            /// Returns the facts of the kind, before options give any up.
            pub fn facts(self) -> LevelFacts {
                match self {
                    $(LevelKind::$kind => LevelFacts {
                        full: $full, ordered: $ordered, unique: $unique, branchless: $branchless, compact: $compact,
                        random_access: $random, injective: $injective,
                    }),*
                }
            }
        }
    };
}

kinds! {
    //                                    full  ordered unique branchless compact random injective, index arrays
    Dense           "dense":              true  true    true   false      true    true   true,      false;
    Compressed      "compressed":         false true    true   false      true    false  true,      true;
    Singleton       "singleton":          false true    true   true       true    false  true,      true;
    Hashed          "hashed":             false false   true   false      true    true   true,      true;
    Bytemap         "bytemap":            false true    true   false      false   true   true,      true;
    Bitmap          "bitmap":             false true    true   false      false   true   true,      false;
    Banded          "banded":             false true    true   false      true    true   true,      true;
    Ragged          "ragged":             false true    true   false      true    true   true,      true;
    Blocklist       "blocklist":          false true    true   false      true    false  true,      true;
    RunLength       "runlength":          true  true    true   false      true    false  false,     true;
    PackBits        "packbits":           true  true    true   false      true    false  false,     true;
    LowerTriangular "triangular":         false true    true   false      true    true   true,      false;
    UpperTriangular "triangular":         false true    true   false      true    true   true,      false;
    Symmetric       "symmetric":          true  true    true   false      true    true   false,     false;
    Point           "point":              false true    true   false      false   true   true,      true;
    Range           "range":              false true    true   false      false   true   true,      false;
    Offset          "offset":             false true    true   true       true    true   true,      false;
    Squeezed        "squeezed":           false true    true   false      true    false  true,      true;
    Sliced          "sliced":             true  true    true   false      true    true   true,      true;
}

impl LevelKind {
    /// Returns whether a program may declare duplicate or unsorted coordinates in a fibre.
    pub fn has_lists(self) -> bool {
        matches!(self, LevelKind::Compressed | LevelKind::Singleton)
    }

    /// Returns whether the level stores whole regions, with the fill at coordinates where no element was given. The
    /// other kinds store the given elements alone. The last level decides for a tensor.
    pub fn stores_regions(self) -> bool {
        use LevelKind::*;
        match self {
            Compressed | Singleton | Hashed | Bytemap | Bitmap | Blocklist | Point | Sliced => false,
            Dense | Banded | Ragged | RunLength | PackBits | LowerTriangular | UpperTriangular | Symmetric | Range
            | Offset | Squeezed => true,
        }
    }
}

impl Level {
    /// Returns whether the level has a list in which coordinates are not ordered.
    pub fn lists_without_order(self) -> bool {
        self.kind == LevelKind::Hashed || self.kind.has_lists() && !self.ordered
    }

    /// Creates a level of that kind, with all of its facts.
    pub fn new(kind: LevelKind) -> Level {
        let facts = kind.facts();
        Level { kind, unique: facts.unique, ordered: facts.ordered, index: None }
    }

    /// Parses a comma-separated list of levels as they are displayed; `None` for any other text.
    pub fn parse_list(text: &str) -> Option<Vec<Level>> {
        let mut depth = 0i32;
        let parts = text.split(|c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        });
        parts.map(|part| Level::parse(part.trim())).collect()
    }

    fn parse(text: &str) -> Option<Level> {
        let (name, options) = match text.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')')?),
            None => (text, ""),
        };
        let options: Vec<&str> = options.split(',').map(str::trim).filter(|o| !o.is_empty()).collect();
        let kind = *LevelKind::ALL.iter().find(|k| k.name() == name)?;
        let upper = kind == LevelKind::LowerTriangular && options.contains(&"upper=True");
        let mut level = Level::new(if upper { LevelKind::UpperTriangular } else { kind });
        for option in options {
            match option {
                "unique=False" if kind.has_lists() => level.unique = false,
                "ordered=False" if kind.has_lists() => level.ordered = false,
                "upper=True" if upper => {}
                _ => {
                    let index = option.strip_prefix("index=").filter(|_| kind.has_indices())?;
                    let types = [DType::U8, DType::U16, DType::I32, DType::I64];
                    level.index = Some(*types.iter().find(|t| t.to_string() == index)?);
                }
            }
        }
        Some(level)
    }

    /// Returns the level's facts.
    pub fn facts(self) -> LevelFacts {
        LevelFacts { unique: self.unique, ordered: self.ordered, ..self.kind.facts() }
    }
}

/// Formats the level in the syntax of programs: `compressed(unique=False)`.
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = self.kind.facts();
        let given_up = |name: &str, is: bool, was: bool| (was && !is).then(|| format!("{name}=False"));
        let upper = (self.kind == LevelKind::UpperTriangular).then(|| "upper=True".to_string());
        let options: Vec<String> = given_up("unique", self.unique, facts.unique)
            .into_iter()
            .chain(upper)
            .chain(given_up("ordered", self.ordered, facts.ordered))
            .chain(self.index.map(|i| format!("index={i}")))
            .collect();
        match options.is_empty() {
            true => f.write_str(self.kind.name()),
            false => write!(f, "{}({})", self.kind.name(), options.join(", ")),
        }
    }
}
