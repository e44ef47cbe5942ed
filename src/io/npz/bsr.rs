//! SciPy's `bsr`: blocks of a matrix, in a list for each row of blocks.
//!
//! | array | contents |
//! |---|---|
//! | `indptr` | start of each row of blocks in `indices` and `data`, and the end of the last one |
//! | `indices` | columns of blocks |
//! | `data` | `[blocks, r, c]`: elements of the blocks of `r` rows and `c` columns, which divide the matrix |

use super::archive::{Writer, failed};
use super::compressed::{read_lists, starts};
use super::regions::{self, NonFill, alike};
use super::sparse::SparseArchive;
use crate::io::elements::Elements;
use crate::io::want::Want;
use taffeta_ast::format::{Coord, Format, presets};
use taffeta_ast::spelling::counted;
use taffeta_ast::value::Places;
use taffeta_ast::{Diagnostic, Value};

pub(super) fn takes(format: &Format, shape: &[usize]) -> bool {
    let ([n, m], Some([r, c])) = (shape, blocks(format)) else { return false };
    n % r == 0 && m % c == 0 && alike(format, &presets::bcsr(r as i64, c as i64))
}

/// Returns the rows and columns of a block, if the format is one of matrix blocks.
fn blocks(format: &Format) -> Option<[usize; 2]> {
    let size = |k: usize| match format.coords.get(k)? {
        Coord::Apply(_, args) => match args[1] {
            Coord::Int(size) if size > 0 => usize::try_from(size).ok(),
            _ => None,
        },
        // A block of a single row or column.
        Coord::Dim(_) => Some(1),
        _ => None,
    };
    if format.coords.len() == 4 { Some([size(0)?, size(1)?]) } else { None }
}

pub(super) fn read(archive: &mut SparseArchive<'_>, shape: &[usize], want: &Want) -> Result<Elements, Diagnostic> {
    let [n, m] = archive.matrix(shape)?;
    let (shape, data) = archive.data(3)?;
    let [_, r, c] = shape[..] else { unreachable!("`data` has three dimensions") };
    if r == 0 || c == 0 || n % r != 0 || m % c != 0 {
        return Err(archive.bad(format!("blocks of {r} × {c} do not divide a matrix of {n} × {m}")));
    }
    let (starts, columns) = read_lists(archive, [n / r, m / c], "block row")?;
    let count = starts[n / r] as usize;
    if shape[0] < count {
        return Err(archive.bad(format!("`data` has {}, but `indptr` counts {count}", counted(shape[0], "block"))));
    }
    let mut kept = NonFill::new(&data, want);
    for row in 0..n / r {
        let own = starts[row] as usize..starts[row + 1] as usize;
        for (block, column) in own.clone().zip(&columns[own]) {
            for k in 0..r * c {
                let at = [(row * r + k / c) as i64, column * c as i64 + (k % c) as i64];
                kept.add(block * r * c + k, at);
            }
        }
    }
    Ok(kept.elements())
}

pub(super) fn write(archive: &mut Writer<'_>, value: &Value, places: &Places, format: &Format) -> std::io::Result<()> {
    let [r, c] = blocks(format).ok_or_else(|| failed(format!("`{format}` has no blocks")))?;
    let block = |at: &[i64]| (at[0] / r as i64, at[1] / c as i64);
    let mut all: Vec<(i64, i64)> = places.indices.chunks_exact(2).map(block).collect();
    all.sort_unstable();
    all.dedup();
    let position = |at: &[i64]| {
        let inside = at[0] % r as i64 * c as i64 + at[1] % c as i64;
        all.partition_point(|b| *b < block(at)) as i64 * (r * c) as i64 + inside
    };
    let positions: Vec<i64> = places.indices.chunks_exact(2).map(position).collect();
    regions::write(archive, value, &positions, vec![all.len(), r, c])?;
    let (rows, columns): (Vec<i64>, Vec<i64>) = all.into_iter().unzip();
    archive.add_list("indices", columns)?;
    archive.add_list("indptr", starts(&rows, value.shape()[0] / r)?)
}
