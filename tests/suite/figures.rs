//! Figures of the paper on format conversion (Chou, Kjolstad and Amarasinghe, *Automatic Generation of Efficient Sparse
//! Tensor Format Conversion Routines*, 2020), and alpha blending of pictures in runs (*Looplets*, 2023).

use crate::convert::format;
use taffeta::ast::{Buffer, Value};
use taffeta::structured::Stored;
use taffeta::{Backend, Options, Program, Sparse, convert};

/// Matrix of Figure 1, in the order of its rows.
const AT: [[i64; 2]; 9] = [[0, 0], [0, 1], [1, 1], [1, 2], [2, 0], [2, 2], [3, 1], [3, 3], [3, 4]];
const VALUES: [f64; 9] = [5.0, 1.0, 7.0, 3.0, 8.0, 2.0, 4.0, 9.0, 6.0];
const SHAPE: [usize; 2] = [4, 6];

fn packed(text: &str, shape: &[usize], at: &[[i64; 2]], values: &[f64]) -> Stored {
    Stored::pack(shape, &format(text), at.as_flattened(), &Buffer::F64(values.to_vec())).expect(text)
}

/// Returns the arrays of the matrix of Figure 1 after a conversion.
fn arrays(to: &str) -> Vec<Vec<f64>> {
    let given = packed("coo", &SHAPE, &AT, &VALUES);
    let found =
        convert(&given, &format(to), &Options::default().optimize(false)).unwrap_or_else(|e| panic!("{to}: {e}"));
    found.arrays().iter().map(Value::numbers).collect()
}

#[test]
fn figure_2_stores_a_matrix_in_four_formats() {
    let rows = vec![0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0];
    let columns = vec![0.0, 1.0, 1.0, 2.0, 0.0, 2.0, 1.0, 3.0, 4.0];
    assert_eq!(arrays("coo"), [vec![0.0, 9.0], rows, columns.clone(), VALUES.to_vec()]);
    assert_eq!(arrays("csr"), [vec![0.0, 2.0, 4.0, 6.0, 9.0], columns, VALUES.to_vec()]);
    // Diagonals -2, 0 and 1, counted from the first one, -3, each with an element of every row that it meets.
    let dia = arrays("dia");
    let diagonals = [[8.0, 4.0, 0.0, 0.0], [5.0, 7.0, 2.0, 9.0], [1.0, 3.0, 0.0, 6.0]];
    assert_eq!(dia[0], [1.0, 3.0, 4.0]);
    let stored: Vec<f64> = dia[dia.len() - 1].iter().copied().filter(|v| *v != 0.0).collect();
    let expected: Vec<f64> = diagonals.as_flattened().iter().copied().filter(|v| *v != 0.0).collect();
    assert_eq!(stored, expected);
    // Three slots for each row, slot by slot.
    let ell = arrays("ell");
    assert_eq!(ell[ell.len() - 1], [5.0, 7.0, 8.0, 4.0, 1.0, 3.0, 2.0, 9.0, 0.0, 0.0, 0.0, 6.0]);
}

#[test]
fn figure_5_orders_elements_by_diagonals() {
    let by_diagonals = "def by_diagonals(i, j):\n    return (j - i, i, j)\n";
    let text = "format(compressed, compressed, compressed, remap=by_diagonals)";
    let program = format!("{by_diagonals}\n\ndef f(A: f64[n, m] @ {text}) -> i64:\n    return 0\n");
    let logical = Program::from_source("p.ft", &program).and_then(|p| p.logical("f", &Options::default()));
    let to = logical.unwrap_or_else(|e| panic!("{e}")).params[0].tensor.format.clone();
    let to = taffeta::ast::format::Format { pattern: None, ..to };
    let given = packed("coo", &SHAPE, &AT, &VALUES);
    let found = convert(&given, &to, &Options::default().optimize(false)).unwrap_or_else(|e| panic!("{e}"));
    let arrays: Vec<Vec<f64>> = found.arrays().iter().map(Value::numbers).collect();
    let [_, slices, _, rows, _, columns, values] = &arrays[..] else { panic!("{arrays:?}") };
    // (Counted from diagonal -3.)
    assert_eq!(slices, &[1.0, 3.0, 4.0]);
    assert_eq!(rows, &[2.0, 3.0, 0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 3.0]);
    assert_eq!(columns, &[0.0, 1.0, 0.0, 1.0, 2.0, 3.0, 1.0, 2.0, 4.0]);
    assert_eq!(values, &[8.0, 4.0, 5.0, 7.0, 2.0, 9.0, 1.0, 3.0, 6.0]);
}

/// Routine by hand, with the phases of Figure 6: remapping, analysis, assembly.
struct ByHand<'m> {
    shape: [usize; 2],
    at: &'m [[i64; 2]],
    values: &'m [f64],
}

impl ByHand<'_> {
    /// Figure 6a: the diagonals, and the elements of each by row.
    fn to_dia(&self) -> (Vec<i64>, Vec<Vec<f64>>) {
        let [n, m] = self.shape;
        let mut nz = vec![false; n + m];
        self.at.iter().for_each(|[i, j]| nz[(j - i + n as i64) as usize] = true);
        let perm: Vec<i64> = (0..n + m).filter(|k| nz[*k]).map(|k| k as i64 - n as i64).collect();
        let mut values = vec![vec![0.0; n]; perm.len()];
        for ([i, j], v) in self.at.iter().zip(self.values) {
            values[perm.binary_search(&(j - i)).expect("it is listed")][*i as usize] = *v;
        }
        (perm, values)
    }

    /// Figure 6b: slots, each with an element of every row.
    fn to_ell(&self) -> Vec<f64> {
        let n = self.shape[0];
        let mut count = vec![0; n];
        self.at.iter().for_each(|[i, _]| count[*i as usize] += 1);
        let slots = count.iter().copied().max().unwrap_or(0);
        let (mut values, mut next) = (vec![0.0; slots * n], vec![0; n]);
        for ([i, _], v) in self.at.iter().zip(self.values) {
            let row = *i as usize;
            values[next[row] * n + row] = *v;
            next[row] += 1;
        }
        values
    }

    /// Figure 6c: first positions of rows, columns and values, from elements in any order of rows.
    fn to_csr(&self) -> [Vec<f64>; 3] {
        let n = self.shape[0];
        let mut pos = vec![0; n + 1];
        self.at.iter().for_each(|[i, _]| pos[*i as usize + 1] += 1);
        (0..n).for_each(|i| pos[i + 1] += pos[i]);
        let (mut next, mut columns, mut values) = (pos.clone(), vec![0.0; self.at.len()], vec![0.0; self.at.len()]);
        for ([i, j], v) in self.at.iter().zip(self.values) {
            let p = &mut next[*i as usize];
            (columns[*p], values[*p]) = (*j as f64, *v);
            *p += 1;
        }
        [pos.iter().map(|p| *p as f64).collect(), columns, values]
    }
}

#[test]
fn figure_6_converts_like_routines_by_hand() {
    let large: Vec<[i64; 2]> =
        (0..300).flat_map(|i| [0, 1, 7, 30].map(|d| [i, i + d - 5])).filter(|[_, j]| (0..310).contains(j)).collect();
    let values: Vec<f64> = (0..large.len()).map(|k| k as f64 + 1.0).collect();
    for (shape, at, values) in [(SHAPE, &AT[..], &VALUES[..]), ([300, 310], &large, &values)] {
        let options = Options::default().optimize(false);
        let by_hand = ByHand { shape, at, values };
        let to = |given: &Stored, to: &str| -> Vec<Vec<f64>> {
            let found = convert(given, &format(to), &options).unwrap_or_else(|e| panic!("{to}: {e}"));
            found.arrays().iter().map(Value::numbers).collect()
        };
        let csr = packed("csr", &shape, at, values);
        let (perm, diagonals) = by_hand.to_dia();
        let found = to(&csr, "dia");
        let perm: Vec<f64> = perm.iter().map(|d| (d + shape[0] as i64 - 1) as f64).collect();
        assert_eq!(found[0], perm);
        let nonzero = |all: &[f64]| all.iter().copied().filter(|v| *v != 0.0).collect::<Vec<f64>>();
        assert_eq!(nonzero(&found[found.len() - 1]), nonzero(&diagonals.concat()));
        let found = to(&csr, "ell");
        assert_eq!(found[found.len() - 1], by_hand.to_ell());
        let coo = packed("coo", &shape, at, values);
        assert_eq!(to(&coo, "csr"), by_hand.to_csr());
    }
}

#[test]
fn figure_9_numbers_the_elements_of_each_row() {
    // Elements of a slot, row by row, with their columns; a padding slot has any column.
    let ell = arrays("ell");
    let (columns, values) = (&ell[ell.len() - 2], &ell[ell.len() - 1]);
    let slots = [[0, 1, 0, 1], [1, 2, 2, 3], [-1, -1, -1, 4]];
    for (p, j) in slots.as_flattened().iter().enumerate().filter(|(_, j)| **j >= 0) {
        let own = AT.iter().position(|at| *at == [p as i64 % 4, *j]).expect("it is an element");
        assert_eq!((columns[p], values[p]), (*j as f64, VALUES[own]), "slot {p}");
    }
}

/// Attribute queries as ordinary reductions.
const QUERIES: &str = "
def counts(A: f64[n, m] @ csr) -> i64[n]:
    q = zeros((n,), i64)
    for i in range(n):
        for j in range(m):
            q[i] += cast(stored(A[i, j]), i64)
    return q

def first_and_last(A: f64[n, m] @ csr) -> (i64[n], i64[n]):
    low = full((n,), m, i64)
    high = full((n,), -1, i64)
    for i in range(n):
        for j in range(m):
            if stored(A[i, j]):
                low[i] = min(low[i], j)
                high[i] = max(high[i], j)
    return low, high

def columns(A: f64[n, m] @ csr) -> bool[m]:
    q = zeros((m,), bool)
    for i in range(n):
        for j in range(m):
            q[j] |= stored(A[i, j])
    return q
";

#[test]
fn figure_10_asks_for_attributes() {
    let program = Program::from_source("queries.ft", QUERIES).unwrap_or_else(|e| panic!("{e}"));
    let a = packed("csr", &SHAPE, &AT, &VALUES);
    for backend in [Backend::C, Backend::Interp] {
        let ask = |entry: &str, result: &str| {
            let options = Options::default().optimize(false).backend(backend);
            let function = program.compile(entry, &options).unwrap_or_else(|e| panic!("{entry}: {e}"));
            let out = function.call().sparse("A", &Sparse::of(&a)).run().unwrap_or_else(|e| panic!("{entry}: {e}"));
            out.value(result).expect("it is a result").numbers()
        };
        assert_eq!(ask("counts", "q"), [2.0, 2.0, 2.0, 3.0]);
        assert_eq!(ask("first_and_last", "low"), [0.0, 1.0, 0.0, 1.0]);
        assert_eq!(ask("first_and_last", "high"), [1.0, 2.0, 2.0, 4.0]);
        assert_eq!(ask("columns", "q"), [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    }
}

const BLEND: &str = "
long_runs = format(dense, runlength(index=i64))

def blend(B: f64[n, m] @ long_runs, C: f64[n, m] @ long_runs, alpha: f64) -> f64[n, m] @ long_runs:
    A = zeros((n, m), f64)
    for i in range(n):
        for j in range(m):
            A[i, j] = alpha * B[i, j] + (1.0 - alpha) * C[i, j]
    return A
";

/// Checks that blended pictures stay in runs: the program stores a run for each overlap, and not each of 10^12 pixels.
#[test]
fn blended_pictures_stay_in_runs() {
    let program = Program::from_source("blend.ft", BLEND).unwrap_or_else(|e| panic!("{e}"));
    let function = program.compile("blend", &Options::default().optimize(false)).unwrap_or_else(|e| panic!("{e}"));
    let runs = format("format(dense, runlength(index=i64))");
    let m = 1_000_000_000_000;
    let sheet = |ends: [i64; 4], values: [f64; 4]| {
        let arrays = vec![Buffer::I64(vec![0, 2, 4]), Buffer::I64(ends.to_vec()), Buffer::F64(values.to_vec())];
        let arrays = arrays.into_iter().map(|a| Value::new(vec![a.len()], a).expect("it is a list")).collect();
        Stored::of_arrays(vec![2, m as usize], runs.clone(), arrays, Vec::new())
    };
    let blended = |over: &Stored, under: &Stored| -> Vec<Vec<f64>> {
        let [over, under] = [over, under].map(Sparse::of);
        let call = function.call().sparse("B", &over).sparse("C", &under).scalar("alpha", 0.5f64);
        let out = call.run().unwrap_or_else(|e| panic!("{e}"));
        out.stored("A").expect("it is in runs").arrays().iter().map(Value::numbers).collect()
    };
    let over = sheet([10, m, m / 2, m], [1.0, 2.0, 3.0, 4.0]);
    let under = sheet([7, m, m / 2, m], [5.0, 6.0, 3.0, 2.0]);
    let end = m as f64;
    assert_eq!(blended(&over, &under), [vec![0.0, 3.0, 4.0], vec![7.0, 10.0, end, end], vec![3.0, 3.5, 4.0, 3.0]]);
    // Neighbours of equal values are one run.
    let over = sheet([5, m, 9, m], [1.0, 2.0, 3.0, 1.0]);
    let under = sheet([5, m, 9, m], [2.0, 1.0, 1.0, 3.0]);
    assert_eq!(blended(&over, &under), [vec![0.0, 1.0, 2.0], vec![end, end], vec![1.5, 2.0]]);
}
