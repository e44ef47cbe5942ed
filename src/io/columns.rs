//! Elements of a matrix as columns: rows, columns and values of its elements. Elements in the order of rows, or in that of
//! columns, stay where they are; others are put in the order of rows, one array after the other.

use super::memory;
use rayon::prelude::*;
use std::path::Path;
use taffeta_ast::format::Named;
use taffeta_ast::{Buffer, Diagnostic, Value, with_buffer};
use taffeta_structured::Stored;

/// Rows or columns of elements, from 0, in the index type of the matrix.
#[derive(Debug)]
pub(super) enum Indices {
    I32(Vec<i32>),
    I64(Vec<i64>),
}

/// Elements of a matrix.
pub(super) struct Columns {
    pub(super) rows: Indices,
    pub(super) cols: Indices,
    pub(super) values: Buffer,
}

impl Indices {
    /// Takes an array of i32 or i64 as indices below `size`; `wide`: as i64. `None` if they are not.
    pub(super) fn of(array: Buffer, size: usize, wide: bool) -> Option<Indices> {
        fn are_below<T: Copy + Into<i64> + Sync>(v: &[T], size: usize) -> bool {
            v.par_iter().all(|i| u64::try_from((*i).into()).is_ok_and(|i| i < size as u64))
        }
        match (array, wide) {
            (Buffer::I32(v), false) => are_below(&v, size).then_some(Indices::I32(v)),
            (Buffer::I32(v), true) => are_below(&v, size).then(|| Indices::I64(v.into_iter().map(i64::from).collect())),
            (Buffer::I64(v), false) => {
                are_below(&v, size).then(|| Indices::I32(v.into_iter().map(|i| i as i32).collect()))
            }
            (Buffer::I64(v), true) => are_below(&v, size).then_some(Indices::I64(v)),
            _ => None,
        }
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        match self {
            Indices::I32(v) => v.len(),
            Indices::I64(v) => v.len(),
        }
    }

    /// Returns the index of an element.
    pub(super) fn at(&self, e: usize) -> i64 {
        match self {
            Indices::I32(v) => i64::from(v[e]),
            Indices::I64(v) => v[e],
        }
    }

    pub(super) fn buffer(self) -> Buffer {
        match self {
            Indices::I32(v) => Buffer::I32(v),
            Indices::I64(v) => Buffer::I64(v),
        }
    }
}

/// Returns whether indices of a matrix with that many elements have type i64.
pub(super) fn are_wide(shape: &[usize], count: usize) -> bool {
    shape.iter().chain([&count]).any(|n| i32::try_from(*n).is_err())
}

impl Columns {
    /// Stores the elements as `coo`, by rows or by columns; `None` if there is an element several times, or if their
    /// number does not fit in the index type.
    pub(super) fn stored(self, shape: [usize; 2], path: &Path) -> Result<Option<Stored>, Diagnostic> {
        let count = self.rows.len();
        let Some(format) = Named::Coo.format(2) else { return Ok(None) };
        let (columns, order) = match [self.is_in_order(false), self.is_in_order(true)] {
            [true, _] => (self, [0, 1]),
            [false, true] => (Columns { rows: self.cols, cols: self.rows, ..self }, [1, 0]),
            [false, false] => {
                memory::check_bytes(count as u128 * 16, &path.display().to_string())?;
                let order = self.order(shape);
                let columns = self.ordered(&order);
                if !columns.is_in_order(false) {
                    return Ok(None);
                }
                (columns, [0, 1])
            }
        };
        let Columns { rows, cols, values } = columns;
        let end = count as i64;
        let begins = match &rows {
            Indices::I32(_) if i32::try_from(end).is_err() => return Ok(None),
            Indices::I32(_) => Buffer::I32(vec![0, end as i32]),
            Indices::I64(_) => Buffer::I64(vec![0, end]),
        };
        let arrays = [begins, rows.buffer(), cols.buffer(), values];
        let arrays = arrays.into_iter().filter_map(|buffer| Value::new(vec![buffer.len()], buffer)).collect();
        Ok(Some(Stored::of_arrays(shape.to_vec(), format.ordered(&order), arrays, vec![end])))
    }

    /// Returns whether elements are in the order of rows, then of columns, or the other way around, each once.
    fn is_in_order(&self, by_columns: bool) -> bool {
        let at = |e: usize| match by_columns {
            false => (self.rows.at(e), self.cols.at(e)),
            true => (self.cols.at(e), self.rows.at(e)),
        };
        (1..self.rows.len()).into_par_iter().all(|e| at(e - 1) < at(e))
    }

    /// Returns the numbers of the elements in order: by columns first, unless they are, then by rows.
    fn order(&self, [n, m]: [usize; 2]) -> Vec<usize> {
        let count = self.rows.len();
        let mut order: Vec<usize> = (0..count).collect();
        if count < n.max(m) / 4 {
            order.par_sort_by_key(|e| (self.rows.at(*e), self.cols.at(*e)));
            return order;
        }
        if (1..count).into_par_iter().any(|e| self.cols.at(e - 1) > self.cols.at(e)) {
            order = counted(&order, m, &self.cols);
        }
        counted(&order, n, &self.rows)
    }

    /// Puts the elements in this order, one column after the other.
    fn ordered(self, order: &[usize]) -> Columns {
        fn picked<T: Copy + Send + Sync>(v: &[T], order: &[usize]) -> Vec<T> {
            order.par_iter().map(|e| v[*e]).collect()
        }
        let indices = |v: Indices| match v {
            Indices::I32(v) => Indices::I32(picked(&v, order)),
            Indices::I64(v) => Indices::I64(picked(&v, order)),
        };
        let mut columns = Columns { rows: indices(self.rows), cols: indices(self.cols), values: self.values };
        with_buffer!(&mut columns.values, v => *v = picked(v, order));
        columns
    }
}

/// Sorts numbers of elements by a column, stably, by counting.
fn counted(order: &[usize], size: usize, by: &Indices) -> Vec<usize> {
    let mut next = vec![0usize; size + 1];
    for e in order {
        next[by.at(*e) as usize + 1] += 1;
    }
    for k in 0..size {
        next[k + 1] += next[k];
    }
    let mut sorted = vec![0; order.len()];
    for e in order {
        let place = &mut next[by.at(*e) as usize];
        sorted[*place] = *e;
        *place += 1;
    }
    sorted
}
