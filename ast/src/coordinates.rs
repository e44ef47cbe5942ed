//! Elements in coordinate form (COO): sorting, and merging of elements with equal coordinates. Sparse values and
//! packing into levels are built on these.

use crate::half_precision::{to_bf16, to_f16};
use crate::value::Buffer;

/// Returns the indices of the element at a row-major offset.
pub(crate) fn indices_at<N: Copy + TryInto<usize>>(shape: &[N], offset: usize) -> Vec<i64> {
    let (mut rest, mut indices) = (offset, vec![0; shape.len()]);
    for (index, size) in indices.iter_mut().zip(shape).rev() {
        let size = (*size).try_into().unwrap_or(1);
        *index = (rest % size) as i64;
        rest /= size;
    }
    indices
}

/// Returns the element numbers in lexicographic order of their coordinates, dimension `order[0]` first; the sort is
/// stable. `indices` holds one index per dimension for each element, all of them in range.
///
/// ```
/// use taffeta_ast::coordinates::sorted;
///
/// let indices = [1, 0, 0, 2, 0, 1];
/// assert_eq!(sorted(&[2, 3], &[0, 1], &indices), [2, 1, 0]);
/// assert_eq!(sorted(&[2, 3], &[1, 0], &indices), [0, 2, 1]);
/// ```
pub fn sorted(shape: &[usize], order: &[usize], indices: &[i64]) -> Vec<usize> {
    let ndim = shape.len().max(1);
    let count = indices.len() / ndim;
    let element = |e: usize| order.iter().map(move |d| indices[e * ndim + d]);
    if (1..count).all(|e| element(e - 1).le(element(e))) {
        return (0..count).collect();
    }
    // Sorting by one linear index, where it fits 64 bits, is several times faster than comparing coordinates in turn.
    if shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d as u64)).is_some() {
        let place = |e: usize| order.iter().fold(0, |p, d| p * shape[*d] as u64 + indices[e * ndim + d] as u64);
        let mut places: Vec<(u64, usize)> = (0..count).map(|e| (place(e), e)).collect();
        places.sort_unstable();
        return places.into_iter().map(|(_, e)| e).collect();
    }
    let mut all: Vec<usize> = (0..count).collect();
    all.sort_by(|a, b| element(*a).cmp(element(*b)));
    all
}

/// Elements in row-major order; elements with equal coordinates are adjacent.
pub struct Merged {
    /// Numbers of the original elements, in sorted order.
    pub sorted: Vec<usize>,
    /// Distinct coordinates, one index per dimension for each.
    pub indices: Vec<i64>,
    /// For each element, in sorted order, the position of its coordinates in `indices`.
    pub positions: Vec<i64>,
}

/// Sorts elements and finds those with equal coordinates. All indices must be in range, and there must be at least one
/// dimension.
///
/// ```
/// use taffeta_ast::coordinates::merge;
///
/// let merged = merge(&[2, 3], &[1, 0, 0, 2, 1, 0]);
/// assert_eq!((merged.sorted, merged.indices, merged.positions), (vec![1, 0, 2], vec![0, 2, 1, 0], vec![0, 1, 1]));
/// ```
pub fn merge(shape: &[usize], indices: &[i64]) -> Merged {
    let ndim = shape.len();
    let order: Vec<usize> = (0..ndim).collect();
    let sorted = sorted(shape, &order, indices);
    let mut places: Vec<i64> = Vec::with_capacity(indices.len());
    let mut positions = Vec::with_capacity(sorted.len());
    for e in &sorted {
        let at = &indices[e * ndim..(e + 1) * ndim];
        if !places.ends_with(at) {
            places.extend(at);
        }
        positions.push((places.len() / ndim) as i64 - 1);
    }
    Merged { sorted, indices: places, positions }
}

/// Copies the elements `from[sorted[0]]`, `from[sorted[1]]`, … to `positions[0]`, `positions[1]`, … of `into`. An
/// element with the same position as its predecessor is added to it (integers wrap; `bool` uses or). Both buffers have
/// the same element type.
pub fn place(from: &Buffer, sorted: &[usize], positions: &[i64], into: &mut Buffer) {
    fn all<T: Copy>(from: &[T], sorted: &[usize], positions: &[i64], into: &mut [T], add: impl Fn(T, T) -> T) {
        let mut last = -1;
        for (e, p) in sorted.iter().zip(positions) {
            let at = *p as usize;
            into[at] = if last == *p { add(into[at], from[*e]) } else { from[*e] };
            last = *p;
        }
    }
    macro_rules! by_type {
        ($($variant:ident: $add:expr),*) => {
            match (from, into) {
                $((Buffer::$variant(a), Buffer::$variant(b)) => all(a, sorted, positions, b, $add),)*
                (from, into) => unreachable!("elements of {} among those of {}", from.dtype(), into.dtype()),
            }
        };
    }
    by_type!(
        Bool: |a, b| a || b,
        I8: i8::wrapping_add,
        I16: i16::wrapping_add,
        I32: i32::wrapping_add,
        I64: i64::wrapping_add,
        U8: u8::wrapping_add,
        U16: u16::wrapping_add,
        U32: u32::wrapping_add,
        U64: u64::wrapping_add,
        F16: |a, b| to_f16(a.to_f64() + b.to_f64()),
        Bf16: |a, b| to_bf16(a.to_f64() + b.to_f64()),
        F32: |a, b| a + b,
        F64: |a, b| a + b
    );
}

/// Stores each element at its position; of several with one position, the last wins. Both buffers have the same element
/// type.
pub fn scatter(from: &Buffer, positions: &[i64], into: &mut Buffer) {
    macro_rules! by_type {
        ($($variant:ident)*) => {
            match (from, into) {
                $((Buffer::$variant(a), Buffer::$variant(b)) => {
                    a.iter().zip(positions).for_each(|(v, p)| b[*p as usize] = *v);
                })*
                (from, into) => unreachable!("elements of {} among those of {}", from.dtype(), into.dtype()),
            }
        };
    }
    by_type!(Bool I8 I16 I32 I64 U8 U16 U32 U64 F16 Bf16 F32 F64);
}
