//! Levels: how the coordinates of one level are stored, and what is true of them whatever they hold.

use crate::dtype::DType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Kinds of level (format abstraction, section 3; looplets, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LevelKind {
    /// Every coordinate is stored, in order.
    Dense,
    /// The coordinates that are stored, as a list for each fibre.
    Compressed,
    /// One coordinate for each position of the level above.
    Singleton,
    /// The coordinates that are stored, in a hash table for each fibre.
    Hashed,
    /// A byte for each coordinate that says whether it is stored, and a list of those that are.
    Bytemap,
    /// A bit for each coordinate that says whether it is stored.
    Bitmap,
    /// One block of consecutive coordinates for each fibre.
    Banded,
    /// The first coordinates of each fibre.
    Ragged,
    /// Blocks of consecutive coordinates (VBL).
    Blocklist,
    /// Runs of coordinates that have one value.
    RunLength,
    /// Runs of coordinates that have one value, and stretches of coordinates that have their own.
    PackBits,
    /// The coordinates up to that of the level above, itself included.
    LowerTriangular,
    /// The coordinates from that of the level above on, itself included.
    UpperTriangular,
    /// Half of a matrix, which is equal to its transpose.
    Symmetric,
    /// At most one coordinate for each fibre.
    Point,
    /// Every coordinate that those above leave room for in the tensor.
    Range,
    /// The coordinate that those above determine.
    Offset,
    /// Those coordinates that some fibre has, the same for all fibres.
    Squeezed,
    /// The numbers from 0 that elements have in the fullest fibre, the same for all fibres.
    Sliced,
}

/// What is true of a level whatever it holds (format abstraction, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelFacts {
    /// Every coordinate of the dimension has a value that is stored.
    pub full: bool,
    /// Coordinates are stored in increasing order.
    pub ordered: bool,
    /// No coordinate is stored twice under one parent.
    pub unique: bool,
    /// Each position of the level above has exactly one here.
    pub branchless: bool,
    /// No position is left unused.
    pub compact: bool,
    /// Whether a coordinate is stored, and where, is known without a search.
    pub random_access: bool,
    /// One value is stored for each coordinate, and not one for several.
    pub injective: bool,
}

/// A level with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Level {
    /// How coordinates are stored.
    pub kind: LevelKind,
    /// Whether no coordinate is stored twice under one parent.
    pub unique: bool,
    /// Whether coordinates are stored in increasing order.
    pub ordered: bool,
    /// Type of the index arrays: u8, u16, i32 or i64. `None`: i32, or i64 where the data needs it.
    pub index: Option<DType>,
}

/// A row for each kind: its name, then the facts of [`LevelFacts`] in their order (those of `unique` and `ordered` may
/// be given up by options), and whether it has arrays of indices.
macro_rules! kinds {
    ($($kind:ident $name:literal: $full:literal $ordered:literal $unique:literal $branchless:literal $compact:literal
       $random:literal $injective:literal, $arrays:literal;)*) => {
        impl LevelKind {
            /// All kinds.
            pub const ALL: &'static [LevelKind] = &[$(LevelKind::$kind),*];

            /// Its name in programs; both triangles are `triangular`, the upper one with `upper=True`.
            pub fn name(self) -> &'static str {
                match self { $(LevelKind::$kind => $name),* }
            }

            /// Whether it has arrays of indices, whose type `index=` says.
            pub fn has_indices(self) -> bool {
                match self { $(LevelKind::$kind => $arrays),* }
            }

            /// What is true of it unless its options give it up.
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
    /// Whether a program may say that coordinates stand twice in one fibre, or out of order.
    pub fn has_lists(self) -> bool {
        matches!(self, LevelKind::Compressed | LevelKind::Singleton)
    }

    /// Whether it stores whole regions, with the fill in them where no element was given. The others store what was
    /// given alone; of a tensor, the last level decides.
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
    /// A level of that kind, with all that is true of it.
    pub fn new(kind: LevelKind) -> Level {
        let facts = kind.facts();
        Level { kind, unique: facts.unique, ordered: facts.ordered, index: None }
    }

    /// Levels as they are shown, with commas between them; `None` where something else stands.
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

    /// The level's facts.
    pub fn facts(self) -> LevelFacts {
        LevelFacts { unique: self.unique, ordered: self.ordered, ..self.kind.facts() }
    }
}

/// As programs write it: `compressed(unique=False)`.
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
