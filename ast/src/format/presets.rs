//! Named formats of the language, for tensors of a given number of dimensions.

use super::{Coord, Format, Key, Level, LevelKind};
use crate::dtype::DType;
use crate::op::Op;

/// Named format; some exist for every number of dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// Rows in order, each a list of columns.
    Csr,
    /// Columns in order, each a list of rows.
    Csc,
    /// Nonempty rows, each a list of columns.
    Dcsr,
    /// Nonempty columns, each a list of rows.
    Dcsc,
    /// List of indices in all dimensions.
    Coo,
    /// Tree of lists.
    Csf,
    /// Tree of hash tables.
    Hashmap,
    /// Blocks of consecutive coordinates in the last dimension.
    Vbl,
    /// One block of consecutive coordinates in the last dimension.
    Band,
    /// Runs of equal elements in the last dimension.
    Rle,
    /// Runs and literal stretches in the last dimension.
    PackBits,
    /// Prefix of the elements in the last dimension.
    Ragged,
    /// Half of a symmetric matrix.
    Symmetric,
    /// Elements on and below the diagonal.
    LowerTriangular,
    /// Elements on and above the diagonal.
    UpperTriangular,
    /// Nonempty diagonals, each stored whole.
    Dia,
    /// Fixed number of slots per row, as many as the fullest row needs.
    Ell,
    /// Blocks of 128 in every dimension, in Morton order, each a list of offsets within it (HiCOO).
    Hicoo,
}

/// Block size in each dimension (HiCOO).
const HICOO: i64 = 128;

/// Returns the format `bcsr(r, c)` of matrices: dense blocks of that many rows and columns, listed per block row.
pub fn bcsr(rows: i64, columns: i64) -> Format {
    use LevelKind::{Compressed, Dense};
    let of = |op: Op, dim: usize, by: i64| Coord::apply(op, Coord::Dim(dim), Coord::Int(by));
    let levels = [Dense, Compressed, Dense, Dense].map(Level::new).to_vec();
    let [quotient, rest] = [Op::FloorDiv, Op::Mod].map(|op| [of(op, 0, rows), of(op, 1, columns)]);
    Format::new(levels).remapped([quotient, rest].concat(), Vec::new())
}

impl Named {
    /// All named formats, with their names.
    pub const ALL: &'static [(&'static str, Named)] = &[
        ("csr", Named::Csr),
        ("csc", Named::Csc),
        ("dcsr", Named::Dcsr),
        ("dcsc", Named::Dcsc),
        ("coo", Named::Coo),
        ("csf", Named::Csf),
        ("hashmap", Named::Hashmap),
        ("vbl", Named::Vbl),
        ("band", Named::Band),
        ("rle", Named::Rle),
        ("packbits", Named::PackBits),
        ("ragged", Named::Ragged),
        ("symmetric", Named::Symmetric),
        ("lower_triangular", Named::LowerTriangular),
        ("upper_triangular", Named::UpperTriangular),
        ("dia", Named::Dia),
        ("ell", Named::Ell),
        ("hicoo", Named::Hicoo),
    ];

    /// Finds the format of that name.
    pub fn find(name: &str) -> Option<Named> {
        Named::ALL.iter().find(|(n, _)| *n == name).map(|(_, f)| *f)
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        Named::ALL.iter().find(|(_, f)| *f == self).map_or("", |(n, _)| n)
    }

    /// Returns the format for tensors of `ndim` dimensions; `None` if it does not exist for them.
    pub fn format(self, ndim: usize) -> Option<Format> {
        use LevelKind::*;
        let of = |kinds: &[LevelKind]| Format::new(kinds.iter().map(|k| Level::new(*k)).collect());
        let matrix = |kinds: [LevelKind; 2]| (ndim == 2).then(|| of(&kinds));
        // The last dimension has that kind, the dimensions before it are dense.
        let last = |kind: LevelKind| {
            let kinds: Vec<LevelKind> = std::iter::repeat_n(Dense, ndim.checked_sub(1)?).chain([kind]).collect();
            Some(of(&kinds))
        };
        match self {
            Named::Csr => matrix([Dense, Compressed]),
            Named::Csc => matrix([Dense, Compressed]).map(|f| f.ordered(&[1, 0])),
            Named::Dcsr => matrix([Compressed, Compressed]),
            Named::Dcsc => matrix([Compressed, Compressed]).map(|f| f.ordered(&[1, 0])),
            Named::Coo => {
                let lists = (0..ndim).map(|k| {
                    let kind = if k == 0 { Compressed } else { Singleton };
                    // Elements may agree in all indices but the last.
                    Level { unique: k + 1 == ndim, ..Level::new(kind) }
                });
                (ndim > 0).then(|| Format::new(lists.collect()))
            }
            Named::Csf => (ndim > 0).then(|| of(&vec![Compressed; ndim])),
            Named::Hashmap => (ndim > 0).then(|| of(&vec![Hashed; ndim])),
            Named::Vbl => last(Blocklist),
            Named::Band => last(Banded),
            Named::Rle => last(RunLength),
            Named::PackBits => last(PackBits),
            Named::Ragged => last(Ragged),
            Named::Symmetric => matrix([Dense, Symmetric]),
            Named::LowerTriangular => matrix([Dense, LowerTriangular]),
            Named::UpperTriangular => matrix([Dense, UpperTriangular]),
            Named::Dia => (ndim == 2).then(|| {
                let diagonal = Coord::apply(Op::Sub, Coord::Dim(1), Coord::Dim(0));
                of(&[Squeezed, Range, Offset]).remapped(vec![diagonal, Coord::Dim(0), Coord::Dim(1)], Vec::new())
            }),
            Named::Ell => (ndim == 2).then(|| {
                let counter = Coord::Counter([Coord::Dim(0)].into());
                of(&[Sliced, Dense, Singleton]).remapped(vec![counter, Coord::Dim(0), Coord::Dim(1)], Vec::new())
            }),
            Named::Hicoo => (ndim > 0).then(|| {
                // Block coordinates, then offsets within the block.
                let all = |op: Op| (0..ndim).map(move |d| Coord::apply(op, Coord::Dim(d), Coord::Int(HICOO)));
                let list = |kind: LevelKind, last: bool| Level { ordered: false, unique: last, ..Level::new(kind) };
                let lists = |index: Option<DType>| {
                    let kind = |k: usize| if k == 0 { Compressed } else { Singleton };
                    (0..ndim).map(move |k| Level { index, ..list(kind(k), k + 1 == ndim) })
                };
                let levels = lists(None).chain(lists(Some(DType::U8))).collect();
                let key = |before: usize, op: Op| Key { before, coord: Coord::Morton(all(op).collect()) };
                let coords = all(Op::FloorDiv).chain(all(Op::Mod)).collect();
                Format::new(levels).remapped(coords, vec![key(0, Op::FloorDiv), key(ndim, Op::Mod)])
            }),
        }
    }
}
