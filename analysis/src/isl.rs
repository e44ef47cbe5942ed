//! Interface to isl, the integer set library: this file and those in `isl/` are the only ones that use its types.
//!
//! isl's objects are raw pointers that look `Send`, but all objects of one isl context must stay on one thread. So each
//! thread has its own context, which lives as long as the thread, and isl objects do not leave the functions of these
//! files: arguments and results are plain numbers.
//!
//! isl is bounded by a count of its own operations, not by time, so that a query has the same answer on every machine.
//! When the budget is exceeded or isl fails, the answer is `None`: unknown.

pub(crate) mod schedule;
mod text;
pub(crate) mod tree;

use isl_rs::{BasicSet, Context, DimType, LibISLError, Mat, Options, Point, Set, Space, Val};

/// isl operations that one query may cost: about a millisecond.
const MAX_OPERATIONS: u64 = 20_000;
/// isl operations that a query for a point or for a difference of sets may cost: queries for dependences, kills and
/// uninitialised elements.
const MAX_OPERATIONS_OF_POINTS: u64 = 400_000;
/// `ISL_ON_ERROR_CONTINUE`: errors are returned, not printed.
const ON_ERROR_CONTINUE: i32 = 1;

thread_local! {
    static CONTEXT: Context = {
        let context = Context::alloc();
        // If this call failed, errors would be printed as well as returned.
        let _ = Options::set_on_error(&context, ON_ERROR_CONTINUE);
        context
    };
}

/// Inequality of a system: `row[0] + Σ row[k] · x[k - 1] >= 0`.
pub type Row = Vec<i64>;

/// Returns whether no integers `x` satisfy all rows, each of which has `dims + 1` numbers.
pub fn is_empty(dims: usize, rows: &[Row]) -> Option<bool> {
    bounded(MAX_OPERATIONS, |context| system(context, dims, rows)?.is_empty())
}

/// Upper bounds tried for the leading numbers of a solution where the lexicographic minimum is too hard to find.
const SMALL: [i64; 3] = [8, 32, 256];

/// Finds integers that satisfy all rows: `Some(None)` if there are none, `None` if unknown. Returns the
/// lexicographically smallest solution if isl finds it within the budget, else one whose `first` leading numbers are
/// small.
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

/// Finds a solution whose `first` leading numbers are at most `bound`.
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

/// Returns whether every solution of `whole` is a solution of some part. A part has additional, existentially
/// quantified unknowns after the first `dims`.
pub fn covered(dims: usize, whole: &[Row], parts: &[(usize, Vec<Row>)]) -> Option<bool> {
    bounded(MAX_OPERATIONS_OF_POINTS, |context| difference(context, dims, whole, parts)?.is_empty())
}

/// Finds a solution of `whole` that is in no part, the lexicographically smallest if isl finds it: `Some(None)` if
/// there is none. Parts are as in [`covered`].
pub fn outside(dims: usize, whole: &[Row], parts: &[(usize, Vec<Row>)]) -> Option<Option<Vec<i64>>> {
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

/// Runs `f` within a budget of isl operations. Returns `None` if isl fails or the budget is exceeded.
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
