//! The fence around isl, the integer set library: this file and those in `isl/` are the only ones with its types.
//!
//! isl's objects are raw pointers that look `Send`, while everything of one isl context must stay on one thread. So
//! each thread has a context of its own, which lives as long as the thread, and objects do not leave the functions of
//! these files: they take and give plain numbers.
//!
//! isl is bounded by a number of its own operations, not by time, so that the same question has the same answer on
//! every machine. Out of budget, or with an error of isl, the answer is `None`: nothing is known.

pub(crate) mod schedule;
mod text;
pub(crate) mod tree;

use isl_rs::{BasicSet, Context, DimType, LibISLError, Mat, Options, Point, Set, Space, Val};

/// Operations of isl that one question may cost: about a millisecond.
const MAX_OPERATIONS: u64 = 20_000;
/// Operations that a question about dependences may cost, which is asked for a user and not on the way to an answer.
const MAX_OPERATIONS_OF_POINTS: u64 = 400_000;
/// `ISL_ON_ERROR_CONTINUE`: errors are returned, and not printed.
const ON_ERROR_CONTINUE: i32 = 1;

thread_local! {
    static CONTEXT: Context = {
        let context = Context::alloc();
        // If this failed, errors would be printed as well as returned.
        let _ = Options::set_on_error(&context, ON_ERROR_CONTINUE);
        context
    };
}

/// A row of a system: `row[0] + Σ row[k] · x[k - 1] >= 0`.
pub(crate) type Row = Vec<i64>;

/// Whether no integers `x` satisfy all rows, each of which has `dims + 1` numbers.
pub(crate) fn is_empty(dims: usize, rows: &[Row]) -> Option<bool> {
    bounded(MAX_OPERATIONS, |context| system(context, dims, rows)?.is_empty())
}

/// What the first numbers of a solution are kept below, where the smallest one is too hard to find.
const SMALL: [i64; 3] = [8, 32, 256];

/// Integers that satisfy all rows: `Some(None)` if there are none, `None` if nothing is known. Of all solutions it is
/// the smallest one in lexicographic order, if there is such a one within the budget; else one whose `first` numbers
/// are small.
pub(crate) fn solution(dims: usize, rows: &[Row], first: usize) -> Option<Option<Vec<i64>>> {
    let any =
        bounded(MAX_OPERATIONS_OF_POINTS, |context| coordinates(dims, &system(context, dims, rows)?.sample_point()?))?;
    if any.is_none() {
        return Some(None);
    }
    let least = bounded(MAX_OPERATIONS_OF_POINTS, |context| {
        coordinates(dims, &system(context, dims, rows)?.lexmin()?.sample_point()?)
    });
    let small = || SMALL.into_iter().find_map(|bound| below(dims, rows, first, bound));
    Some(least.flatten().or_else(small).or(any))
}

/// A solution whose first numbers are at most `bound`, if one is found.
fn below(dims: usize, rows: &[Row], first: usize, bound: i64) -> Option<Vec<i64>> {
    let mut rows = rows.to_vec();
    for k in 1..=first.min(dims) {
        let mut row = vec![0; dims + 1];
        (row[0], row[k]) = (bound, -1);
        rows.push(row);
    }
    bounded(MAX_OPERATIONS_OF_POINTS, |context| coordinates(dims, &system(context, dims, &rows)?.sample_point()?))
        .flatten()
}

/// Whether every solution of `whole` is one of some part. A part has further numbers after the first `dims`, any of
/// which will do.
pub(crate) fn covered(dims: usize, whole: &[Row], parts: &[(usize, Vec<Row>)]) -> Option<bool> {
    bounded(MAX_OPERATIONS_OF_POINTS, |context| difference(context, dims, whole, parts)?.is_empty())
}

/// A solution of `whole` that is one of no part, the smallest one in lexicographic order if that is found:
/// `Some(None)` if there is none. Parts are as in [`covered`].
pub(crate) fn outside(dims: usize, whole: &[Row], parts: &[(usize, Vec<Row>)]) -> Option<Option<Vec<i64>>> {
    let any = bounded(MAX_OPERATIONS_OF_POINTS, |context| {
        coordinates(dims, &difference(context, dims, whole, parts)?.sample_point()?)
    })?;
    let least = || {
        bounded(MAX_OPERATIONS_OF_POINTS, |context| {
            coordinates(dims, &difference(context, dims, whole, parts)?.lexmin()?.sample_point()?)
        })
    };
    Some(any.map(|any| least().flatten().unwrap_or(any)))
}

fn difference(context: &Context, dims: usize, whole: &[Row], parts: &[(usize, Vec<Row>)]) -> Result<Set, LibISLError> {
    let mut left = system(context, dims, whole)?.to_set()?;
    for (more, rows) in parts {
        let part = system(context, dims + more, rows)?;
        let part = part.project_out(DimType::Set, dims as u32, *more as u32)?;
        left = left.subtract(part.to_set()?)?;
    }
    Ok(left)
}

fn coordinates(dims: usize, point: &Point) -> Result<Option<Vec<i64>>, LibISLError> {
    if point.is_void()? {
        return Ok(None);
    }
    (0..dims as i32)
        .map(|k| point.get_coordinate_val(DimType::Set, k)?.get_num_si())
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Runs `f` within a number of isl's operations. With an error, or without an end, nothing is known.
fn bounded<T>(operations: u64, f: impl FnOnce(&Context) -> Result<T, LibISLError>) -> Option<T> {
    CONTEXT.with(|context| {
        context.set_max_operations(operations);
        context.reset_operations();
        let answer = f(context);
        if answer.is_err() {
            context.reset_error();
        }
        answer.ok()
    })
}

fn system(context: &Context, dims: usize, rows: &[Row]) -> Result<BasicSet, LibISLError> {
    let columns = dims as u32 + 1;
    let equalities = Mat::alloc(context, 0, columns)?;
    let mut inequalities = Mat::alloc(context, rows.len() as u32, columns)?;
    for (r, row) in rows.iter().enumerate() {
        for (c, &v) in row.iter().enumerate() {
            let at = (r as i32, c as i32);
            inequalities = match i32::try_from(v) {
                Ok(small) => inequalities.set_element_si(at.0, at.1, small)?,
                Err(_) => inequalities.set_element_val(at.0, at.1, Val::int_from_si(context, v)?)?,
            };
        }
    }
    let space = Space::set_alloc(context, 0, dims as u32)?;
    let order = [DimType::Cst, DimType::Param, DimType::Set, DimType::Div];
    let [a, b, c, d] = order;
    BasicSet::from_constraint_matrices(space, equalities, inequalities, a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_integers_from_rationals() {
        // 1 <= 2x <= 1
        assert_eq!(is_empty(1, &[vec![-1, 2], vec![1, -2]]), Some(true));
        assert_eq!(is_empty(1, &[vec![-1, 2], vec![2, -2]]), Some(false));
        // 3x + 5y = 1 has integer solutions, 2x + 4y = 1 has none.
        assert_eq!(is_empty(2, &[vec![-1, 3, 5], vec![1, -3, -5]]), Some(false));
        assert_eq!(is_empty(2, &[vec![-1, 2, 4], vec![1, -2, -4]]), Some(true));
    }

    #[test]
    fn subtracts_what_others_write() {
        // 0 <= x < 10 is covered by x = 2y, 0 <= y < 5 together with x = 2y + 1, and by neither alone.
        let whole = [vec![0, 1], vec![9, -1]];
        let part = |odd: i64| (1, vec![vec![-odd, 1, -2], vec![odd, -1, 2], vec![0, 0, 1], vec![4, 0, -1]]);
        assert_eq!(covered(1, &whole, &[part(0), part(1)]), Some(true));
        assert_eq!(covered(1, &whole, &[part(1)]), Some(false));
        assert_eq!(outside(1, &whole, &[part(0), part(1)]), Some(None));
        assert_eq!(outside(1, &whole, &[part(0)]), Some(Some(vec![1])));
    }

    #[test]
    fn takes_large_numbers_and_many_threads() {
        let big = 1 << 40;
        let ask = move || is_empty(1, &[vec![-big, 1], vec![big - 1, -1]]);
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(ask)).collect();
        assert!(threads.into_iter().all(|t| t.join().is_ok_and(|a| a == Some(true))));
    }

    #[test]
    fn gives_up_within_its_budget_and_answers_afterwards() {
        // No integers solve this, but branching over wide boxes takes long to see it.
        let dims = 24;
        let mut rows = Vec::new();
        let weights: Vec<i64> = (0..dims).map(|k| 10_007 * (k as i64 + 3) * 2).collect();
        rows.push([&[-100_003], &weights[..]].concat());
        rows.push([&[100_003], &weights.iter().map(|w| -w).collect::<Vec<_>>()[..]].concat());
        let hard = is_empty(dims, &rows);
        assert_ne!(hard, Some(false));
        assert_eq!(is_empty(1, &[vec![-1, 2], vec![1, -2]]), Some(true));
    }
}
