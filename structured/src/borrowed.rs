//! Validation of arrays that a caller lends as a tensor in a format: loops trust index arrays, so these are checked
//! against the [`Contract`] of each level. They are checked in place and in time linear in the storage, except that
//! unordered lists are copied and sorted, and hash tables probed.

mod rules;

use crate::coordinates::ranges;
use crate::level::{ArrayKind, Counts};
use crate::levels;
use std::fmt;
use taffeta_ast::format::{Contract, Counted, Format, Level, LevelKind};
use taffeta_ast::{Buffer, DType, Expr};

/// Array of indices.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // one variant per type
pub enum Indices<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
}

/// Reason why arrays are no tensor in a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Level whose arrays cannot be borrowed.
    Level(Level),
    /// Mismatch of the format with the number of dimensions, with a dimension pair that must be square, or with the
    /// number of arrays.
    Shape,
    /// Array of an unexpected type.
    DType {
        /// Name of the array.
        name: String,
        /// Type required by the level.
        expected: DType,
        /// Type of the array.
        given: DType,
    },
    /// Violated rule, in a sentence that names the array.
    Array(String),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Level(level) => write!(f, "passing the arrays of level `{level}` is not supported yet"),
            Unfit::Shape => f.write_str("arrays, format and shape do not match"),
            Unfit::DType { name, expected, given } => {
                write!(f, "expected {expected} elements in `{name}`, found {given}")
            }
            Unfit::Array(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Unfit {}

impl Indices<'_> {
    /// Returns the type of the indices.
    pub fn dtype(self) -> DType {
        match self {
            Indices::U8(_) => DType::U8,
            Indices::U16(_) => DType::U16,
            Indices::I32(_) => DType::I32,
            Indices::I64(_) => DType::I64,
        }
    }

    fn len(self) -> usize {
        match self {
            Indices::U8(a) => a.len(),
            Indices::U16(a) => a.len(),
            Indices::I32(a) => a.len(),
            Indices::I64(a) => a.len(),
        }
    }

    /// Borrows the elements of a buffer; `None` if they are no indices.
    pub fn of(buffer: &Buffer) -> Option<Indices<'_>> {
        match buffer {
            Buffer::U8(a) => Some(Indices::U8(a)),
            Buffer::U16(a) => Some(Indices::U16(a)),
            Buffer::I32(a) => Some(Indices::I32(a)),
            Buffer::I64(a) => Some(Indices::I64(a)),
            _ => None,
        }
    }

    fn at(self, k: usize) -> i64 {
        match self {
            Indices::U8(a) => i64::from(a[k]),
            Indices::U16(a) => i64::from(a[k]),
            Indices::I32(a) => i64::from(a[k]),
            Indices::I64(a) => a[k],
        }
    }
}

/// Returns the number of arrays of each level; `None` if a level has no implementation.
pub fn arrays_of(format: &Format) -> Option<Vec<usize>> {
    format.levels.iter().map(|l| levels::of(l.kind).map(|kind| kind.arrays().len())).collect()
}

/// Returns whether an array holds positions in other arrays; these are at least i32, whatever the index type.
pub fn has_positions(kind: LevelKind, array: usize) -> bool {
    levels::of(kind).and_then(|l| l.arrays().get(array)).is_some_and(|a| a.positions)
}

/// Returns the names of a format's arrays, outermost level first: `pos1`, `crd1`. `None` if a level has no
/// implementation.
pub fn array_names(format: &Format) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for (k, level) in format.levels.iter().enumerate() {
        names.extend(levels::of(level.kind)?.arrays().iter().map(|a| format!("{}{k}", a.name)));
    }
    Some(names)
}

/// Checks the arrays of the levels, outermost first, of a tensor with `stored` values, and returns the hidden sizes of
/// lowered programs ([`crate::Layout::hidden`]). `name` is the tensor's, for messages.
///
/// # Errors
///
/// The first violation that is found.
pub fn check(
    name: &str,
    shape: &[usize],
    format: &Format,
    arrays: &[Indices<'_>],
    stored: usize,
) -> Result<Vec<i64>, Unfit> {
    let is_square = |[a, b]: [usize; 2]| shape[a] == shape[b];
    if format.check(shape.len()).is_err() || !format.squares().all(|(_, square)| is_square(square)) {
        return Err(Unfit::Shape);
    }
    let mut arrays = arrays.iter();
    let mut all_hidden = Vec::new();
    let mut above = Expr::int(1);
    // Lists above the level, innermost first.
    let mut lists: Vec<List<'_>> = Vec::new();
    let ranges = ranges(format, shape);
    let mut slots = None;
    for (k, level) in format.levels.iter().enumerate() {
        let kind = levels::of(level.kind).ok_or(Unfit::Level(*level))?;
        let contract = levels::contract(format, k).ok_or(Unfit::Level(*level))?;
        let mut own: Vec<Named<'_>> = Vec::new();
        for array in kind.arrays() {
            let Some(indices) = arrays.next() else { return Err(Unfit::Shape) };
            own.push(Named::of(array, called(name, &format!("{}{k}", array.name)), *indices, level.index)?);
        }
        let hidden = counted(&contract, &own)?;
        let size = ranges[k].1.unwrap_or_else(|| hidden.first().copied().unwrap_or(0));
        let numbers = hidden.iter().map(|n| Expr::int(*n)).collect();
        let counts = Counts { above, size: Expr::int(size), hidden: numbers };
        for (a, array) in own.iter().zip(kind.arrays()) {
            a.has_length(&(array.length)(&counts))?;
        }
        let data = rules::Data { arrays: &own, hidden: &hidden, size, lists: &lists, slots };
        contract.rules.iter().try_for_each(|rule| data.obeys(rule))?;
        if level.kind == LevelKind::Sliced {
            slots = Some(own[0].indices);
        }
        match contract.list {
            Some((None, crd)) => lists.insert(0, List { pos: None, crd: own[crd].indices }),
            Some((Some(pos), crd)) => lists = vec![List { pos: Some(own[pos].indices), crd: own[crd].indices }],
            None => lists.clear(),
        }
        above = kind.positions(&counts);
        all_hidden.extend(hidden);
    }
    if arrays.next().is_some() {
        return Err(Unfit::Shape);
    }
    match above.as_int() {
        Some(positions) if positions == stored as i64 => Ok(all_hidden),
        Some(positions) => {
            let values = called(name, "val");
            Err(Unfit::Array(format!("`{values}` has {stored} elements, expected {positions}, one for each position")))
        }
        None => Err(Unfit::Shape),
    }
}

/// Returns the name of a tensor's array; the tensor may have no name.
fn called(tensor: &str, array: &str) -> String {
    if tensor.is_empty() { array.to_string() } else { format!("{tensor}.{array}") }
}

/// Level whose positions are the elements of a list.
struct List<'a> {
    /// Partition of the list by positions of the level above; `None` for one element per position.
    pos: Option<Indices<'a>>,
    crd: Indices<'a>,
}

/// Array with its name.
struct Named<'a> {
    name: String,
    indices: Indices<'a>,
}

impl<'a> Named<'a> {
    /// Checks the type of an array against its kind; i32 and i64 are allowed if the level has no index type.
    fn of(kind: &ArrayKind, name: String, indices: Indices<'a>, index: Option<DType>) -> Result<Named<'a>, Unfit> {
        let given = indices.dtype();
        let plain = if given == DType::I64 { DType::I64 } else { DType::I32 };
        let expected = kind.dtype_beside(index.unwrap_or(plain));
        if given == expected { Ok(Named { name, indices }) } else { Err(Unfit::DType { name, expected, given }) }
    }

    fn broken<T>(&self, what: fmt::Arguments<'_>) -> Result<T, Unfit> {
        Err(Unfit::Array(format!("`{}` {what}", self.name)))
    }

    fn has_length(&self, length: &Expr) -> Result<(), Unfit> {
        let have = self.indices.len();
        match length.as_int() {
            Some(n) if n == have as i64 => Ok(()),
            Some(n) => self.broken(format_args!("has {have} elements, expected {n}")),
            None => Err(Unfit::Shape),
        }
    }

    fn twice<T>(&self, coordinate: i64, part: usize) -> Result<T, Unfit> {
        self.broken(format_args!("repeats coordinate {coordinate} under position {part}"))
    }
}

/// Reads the hidden sizes of a level from its arrays.
fn counted(contract: &Contract, arrays: &[Named<'_>]) -> Result<Vec<i64>, Unfit> {
    let one = |c: &Counted| match *c {
        Counted::Length(a) => Ok(arrays[a].indices.len() as i64),
        Counted::Last(a) => match arrays[a].indices.len().checked_sub(1).map(|k| arrays[a].indices.at(k)) {
            None => arrays[a].broken(format_args!("is empty, expected at least one element")),
            Some(last) if last < 0 => arrays[a].broken(format_args!("ends with {last}, which is negative")),
            Some(last) => Ok(last),
        },
    };
    contract.counts.iter().map(one).collect()
}
