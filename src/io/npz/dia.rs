//! SciPy's `dia`: whole diagonals of a matrix, aligned by column.
//!
//! | array | contents |
//! |---|---|
//! | `offsets` | diagonals: column minus row of their elements |
//! | `data` | `[diagonals, columns]`: `data[k, j]` is the element in column `j` of diagonal `k` |

use super::archive::Writer;
use super::regions::{self, NonFill, alike};
use super::sparse::SparseArchive;
use crate::io::elements::Elements;
use crate::io::want::Want;
use taffeta_ast::format::{Format, Named};
use taffeta_ast::spelling::counted;
use taffeta_ast::value::Places;
use taffeta_ast::{Diagnostic, Value};

pub(super) fn takes(format: &Format, shape: &[usize]) -> bool {
    Named::Dia.format(shape.len()).is_some_and(|dia| alike(format, &dia))
}

pub(super) fn read(archive: &mut SparseArchive<'_>, shape: &[usize], want: &Want) -> Result<Elements, Diagnostic> {
    let [n, m] = archive.matrix(shape)?;
    let (shape, data) = archive.data(2)?;
    let offsets = archive.any_integers("offsets")?;
    let [count, width] = shape[..] else { unreachable!("`data` has two dimensions") };
    if offsets.len() != count {
        let given = counted(offsets.len(), "diagonal");
        return Err(archive.bad(format!("`offsets` has {given}, but `data` has {count}")));
    }
    let mut kept = NonFill::new(&data, want);
    for (k, offset) in offsets.iter().enumerate() {
        // The element in column j stands in row j - offset.
        let to = (width.min(m) as i64).min(offset.saturating_add(n as i64));
        for j in (*offset).max(0)..to {
            kept.add(k * width + j as usize, [j - offset, j]);
        }
    }
    Ok(kept.elements())
}

pub(super) fn write(archive: &mut Writer<'_>, value: &Value, places: &Places, _: &Format) -> std::io::Result<()> {
    let width = value.shape()[1];
    let mut offsets: Vec<i64> = places.indices.chunks_exact(2).map(|at| at[1] - at[0]).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let position = |at: &[i64]| offsets.partition_point(|o| *o < at[1] - at[0]) as i64 * width as i64 + at[1];
    let positions: Vec<i64> = places.indices.chunks_exact(2).map(position).collect();
    regions::write(archive, value, &positions, vec![offsets.len(), width])?;
    archive.add_list("offsets", offsets)
}
