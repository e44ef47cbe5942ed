//! Run-time routines on flat arrays ([`Routine`]).

use super::error::ErrorKind;
use super::machine::{Machine, Run};
use super::resolve::Node;
use crate::literal::Literal;
use crate::stmt::Routine;
use crate::value::MAX_SIZE;

impl Machine<'_> {
    /// Calls a routine on the tensors in these slots.
    pub(super) fn call(&mut self, routine: Routine, slots: &[usize], operands: &[Node]) -> Run<()> {
        let operands = operands.iter().map(|e| self.int(e)).collect::<Run<Vec<i64>>>()?;
        match (routine, slots, &operands[..]) {
            (Routine::Grow, [length, arrays @ ..], [least]) => {
                let now = match self.read(*length, 0)? {
                    Literal::Int(now) => now as i64,
                    _ => 0,
                };
                self.resize(*length, arrays, Routine::grown(now, *least))
            }
            (Routine::Fit, [length, arrays @ ..], [exact]) => self.resize(*length, arrays, *exact),
            (Routine::Sort, [array, values @ ..], [begin, end]) => self.sort(*array, values, *begin, *end),
            (Routine::Order, [numbers, keys @ ..], [count]) => self.order(*numbers, keys, *count),
            _ => Err(Box::new(ErrorKind::Malformed(format!("`{}` has other arguments", routine.name())))),
        }
    }

    fn resize(&mut self, length: usize, arrays: &[usize], new: i64) -> Run<()> {
        for &array in arrays {
            let name = || self.tensors[array].symbol.name().to_string();
            if new < 0 {
                return Err(Box::new(ErrorKind::NegativeSize { tensor: name(), dim: 0, size: new }));
            }
            let bytes = (new as usize).checked_mul(self.tensors[array].dtype.size() + 1);
            let fits = bytes.is_some_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
            if new > MAX_SIZE || !fits {
                return Err(Box::new(ErrorKind::TooLarge { tensor: name(), shape: vec![new] }));
            }
            self.cells[array].resize(new);
        }
        self.write(length, 0, Literal::Int(i128::from(new)))
    }

    /// Returns the elements of an array from `begin` up to `end`.
    fn integers(&self, array: usize, begin: i64, end: i64) -> Run<Vec<i128>> {
        let size = self.cells[array].size(0);
        if let Some(index) = [begin, end - 1].into_iter().find(|i| begin < end && !(0..size).contains(i)) {
            let tensor = self.tensors[array].symbol.name().to_string();
            return Err(Box::new(ErrorKind::Index { tensor, dim: 0, index, size }));
        }
        let int = |v: Literal| match v {
            Literal::Int(v) => v,
            _ => 0,
        };
        (begin..end).map(|k| self.read(array, k as usize).map(int)).collect()
    }

    fn sort(&mut self, array: usize, values: &[usize], begin: i64, end: i64) -> Run<()> {
        let keys = self.integers(array, begin, end)?;
        let mut order: Vec<i64> = (begin..end).collect();
        order.sort_by_key(|k| keys[(k - begin) as usize]);
        for &t in [array].iter().chain(values) {
            let sorted = order.iter().map(|k| self.read(t, *k as usize)).collect::<Run<Vec<Literal>>>()?;
            (begin..end).zip(sorted).try_for_each(|(k, v)| self.write(t, k as usize, v))?;
        }
        Ok(())
    }

    fn order(&mut self, numbers: usize, keys: &[usize], count: i64) -> Run<()> {
        let keys = keys.iter().map(|key| self.integers(*key, 0, count)).collect::<Run<Vec<Vec<i128>>>>()?;
        let mut all: Vec<i64> = (0..count).collect();
        all.sort_by_key(|k| keys.iter().map(|key| key[*k as usize]).collect::<Vec<i128>>());
        all.into_iter().enumerate().try_for_each(|(k, v)| self.write(numbers, k, Literal::Int(i128::from(v))))
    }
}
