//! Programs on structured tensors, lowered: what they look like, and that they compute what the logical program does.

use expect_test::{Expect, expect};
use std::collections::BTreeMap;
use std::path::Path;
use taffeta_ast::interp::{Inputs, run};
use taffeta_ast::{Buffer, Func, Value, print, validate};
use taffeta_frontend::program::{Loader, Program, Source};
use taffeta_structured::{Parameter, Stored, Structured, lower};

struct Library;

impl Loader for Library {
    fn load(&self, module: &str, _: Option<&Path>) -> Result<Source, String> {
        Err(format!("there is no module `{module}`"))
    }
    fn prelude(&self, _: &str) -> Option<Source> {
        None
    }
    fn prelude_names(&self) -> Vec<String> {
        Vec::new()
    }
    fn schedule(&self, _: &str) -> Option<Source> {
        None
    }
    fn schedule_names(&self) -> Vec<String> {
        Vec::new()
    }
}

fn elaborate(text: &str) -> Func {
    let program = Program::load(Source::inline("t.ft", text), &Library);
    let name = program.entries().last().map(|e| e.name.clone()).expect("an entry");
    let found = program.elaborate(&name, &BTreeMap::new(), &taffeta_frontend::NoHooks);
    found.unwrap_or_else(|e| panic!("{:?}", e.0.iter().map(|d| &d.message).collect::<Vec<_>>()))
}

fn lowered(text: &str) -> (Func, Structured) {
    let func = elaborate(text);
    let lowered = lower(&func).unwrap_or_else(|e| panic!("{:?}", e.0.iter().map(|d| &d.message).collect::<Vec<_>>()));
    validate::logical(&lowered.func).expect("it is a program");
    (func, lowered)
}

/// The lowered program, which is what it says: it equals the logical one on random tensors.
#[track_caller]
fn check(text: &str, expect: Expect) {
    let (func, structured) = lowered(text);
    expect.assert_eq(&print::func(&structured.func));
    for seed in 0..20 {
        equal(&func, &structured, seed);
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % below
    }
}

fn equal(func: &Func, structured: &Structured, seed: u64) {
    let mut random = Random(seed);
    let mut sizes: BTreeMap<String, i64> = BTreeMap::new();
    for s in &func.sizes {
        let most = if seed < 3 { 2 } else { 6 };
        sizes.insert(s.name().to_string(), random.next(most) as i64);
    }
    let value_of = |s: &taffeta_ast::Symbol| sizes[s.name()];
    let mut logical = Inputs { sizes: sizes.clone(), ..Inputs::default() };
    let mut flat = Inputs { sizes: sizes.clone(), ..Inputs::default() };
    let mut hidden = Vec::new();
    for (p, layout) in func.params.iter().zip(&structured.layout.params) {
        let shape: Vec<usize> = p
            .tensor
            .shape
            .iter()
            .map(|e| match e.kind() {
                taffeta_ast::ExprKind::Var(s) => value_of(s) as usize,
                _ => e.as_int().expect("a size") as usize,
            })
            .collect();
        let count: usize = shape.iter().product();
        let special = [0.0, -0.0, f64::INFINITY, f64::NAN, 1.5];
        let element = |random: &mut Random| match random.next(12) {
            0 => special[random.next(5) as usize],
            v => v as f64,
        };
        let numbers: Vec<f64> = (0..count).map(|_| element(&mut random)).collect();
        let Parameter::Stored(_) = layout else {
            let value = Value::new(shape, Buffer::F64(numbers)).expect("it fits");
            logical.params.push(value.clone());
            flat.params.push(value);
            continue;
        };
        let fill = match p.tensor.format.fill {
            Some(taffeta_ast::Literal::Float(f)) => f,
            _ => 0.0,
        };
        // Row-major strides, to find an element's indices.
        let density = 1 + random.next(4);
        let stored: Vec<bool> = (0..count).map(|_| random.next(4) < density).collect();
        let mut indices = Vec::new();
        let mut elements = Vec::new();
        for k in (0..count).filter(|k| stored[*k]) {
            let mut rest = k;
            let mut at = vec![0i64; shape.len()];
            for (d, n) in shape.iter().enumerate().rev() {
                at[d] = (rest % n) as i64;
                rest /= n;
            }
            indices.extend(at);
            elements.push(numbers[k]);
        }
        let packed = Stored::pack(&shape, &p.tensor.format, &indices, &Buffer::F64(elements)).expect("it fits");
        hidden.extend(packed.hidden().iter().copied());
        flat.params.extend(packed.arrays().iter().cloned());
        // What stands below a dense level is stored with its neighbours.
        let elements = packed.elements();
        let (dense, has) = elements.dense().expect("it is small");
        for k in 0..count {
            let expected = if stored[k] { numbers[k] } else { fill };
            let found = dense.data().get_f64(k);
            assert!(has[k] >= stored[k] && (found == expected || found.is_nan() && expected.is_nan()), "seed {seed}");
        }
        logical.params.push(elements);
    }
    for (s, n) in structured.layout.hidden.iter().zip(hidden) {
        flat.sizes.insert(s.name().to_string(), n);
    }
    let [expected, found] = [run(func, &logical), run(&structured.func, &flat)].map(|r| r.expect("it runs"));
    for (a, b) in expected.results.iter().zip(&found.results) {
        let same = a.numbers().iter().zip(b.numbers()).all(|(x, y)| *x == y || (x.is_nan() && y.is_nan()));
        assert!(a.shape() == b.shape() && same, "seed {seed}: {a:?} is not {b:?} with {logical:?}");
    }
}

#[test]
fn matrix_vector_products() {
    let text = |storage: &str, loops: &str| {
        format!(
            "def spmv(A: f64[n, m] @ {storage}, x: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n{loops}            y[i] += A[i, j] * x[j]\n    return y\n"
        )
    };
    let rows = "    for i in range(n):\n        for j in range(m):\n";
    let columns = "    for j in range(m):\n        for i in range(n):\n";
    check(
        &text("csr", rows),
        expect![[r#"
        def spmv(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], x: f64[m]) -> f64[n]:
            y = empty((n,), f64)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for i in range(n):
                for j.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                    assume(0 <= j.p and j.p < A_n1)
                    assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                    y[i] += A_val[j.p] * x[cast(A_crd1[j.p], i64)]
            return y
    "#]],
    );
    check(
        &text("csc", columns),
        expect![[r#"
        def spmv(A_pos1: i32[m + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], x: f64[m]) -> f64[n]:
            y = empty((n,), f64)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for j in range(m):
                for i.p in range(cast(A_pos1[j], i64), cast(A_pos1[j + 1], i64)):
                    assume(0 <= i.p and i.p < A_n1)
                    assume(0 <= cast(A_crd1[i.p], i64) and cast(A_crd1[i.p], i64) < n)
                    y[cast(A_crd1[i.p], i64)] += A_val[i.p] * x[j]
            return y
    "#]],
    );
    check(
        &text("dcsr", rows),
        expect![[r#"
        def spmv(A_pos0: i32[2], A_crd0: i32[A_n0], A_pos1: i32[A_n0 + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], x: f64[m]) -> f64[n]:
            y = empty((n,), f64)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for i.p in range(cast(A_pos0[0], i64), cast(A_pos0[1], i64)):
                assume(0 <= i.p and i.p < A_n0)
                assume(0 <= cast(A_crd0[i.p], i64) and cast(A_crd0[i.p], i64) < n)
                for j.p in range(cast(A_pos1[i.p], i64), cast(A_pos1[i.p + 1], i64)):
                    assume(0 <= j.p and j.p < A_n1)
                    assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                    y[cast(A_crd0[i.p], i64)] += A_val[j.p] * x[cast(A_crd1[j.p], i64)]
            return y
    "#]],
    );
    check(
        &text("format(compressed, dense)", rows),
        expect![[r#"
        def spmv(A_pos0: i32[2], A_crd0: i32[A_n0], A_val: f64[A_n0 * m], x: f64[m]) -> f64[n]:
            y = empty((n,), f64)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for i.p in range(cast(A_pos0[0], i64), cast(A_pos0[1], i64)):
                assume(0 <= i.p and i.p < A_n0)
                assume(0 <= cast(A_crd0[i.p], i64) and cast(A_crd0[i.p], i64) < n)
                for j in range(m):
                    y[cast(A_crd0[i.p], i64)] += A_val[i.p * m + j] * x[j]
            return y
    "#]],
    );
}

#[test]
fn matrix_matrix_products() {
    check(
        "def spmm(A: f64[n, m] @ csr, B: f64[m, k]) -> f64[n, k]:
    C = zeros((n, k), f64)
    for i in range(n):
        for j in range(m):
            for l in range(k):
                C[i, l] += A[i, j] * B[j, l]
    return C
",
        expect![[r#"
            def spmm(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], B: f64[m, k]) -> f64[n, k]:
                C = empty((n, k), f64)
                for C.d0 in range(n):
                    for C.d1 in range(k):
                        C[C.d0, C.d1] = 0.0
                for i in range(n):
                    for j.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                        assume(0 <= j.p and j.p < A_n1)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                        for l in range(k):
                            C[i, l] += A_val[j.p] * B[cast(A_crd1[j.p], i64), l]
                return C
        "#]],
    );
    check(
        "def sddmm(S: f64[n, m] @ csr, A: f64[n, k], B: f64[m, k]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            for l in range(k):
                y[i] += S[i, j] * A[i, l] * B[j, l]
    return y
",
        expect![[r#"
            def sddmm(S_pos1: i32[n + 1], S_crd1: i32[S_n1], S_val: f64[S_n1], A: f64[n, k], B: f64[m, k]) -> f64[n]:
                y = empty((n,), f64)
                for y.d0 in range(n):
                    y[y.d0] = 0.0
                for i in range(n):
                    for j.p in range(cast(S_pos1[i], i64), cast(S_pos1[i + 1], i64)):
                        assume(0 <= j.p and j.p < S_n1)
                        assume(0 <= cast(S_crd1[j.p], i64) and cast(S_crd1[j.p], i64) < m)
                        for l in range(k):
                            y[i] += S_val[j.p] * A[i, l] * B[cast(S_crd1[j.p], i64), l]
                return y
        "#]],
    );
}

/// What is done where nothing is stored is done in its place, and in the order of the coordinates.
#[test]
fn loops_that_do_something_everywhere() {
    check(
        "def total(A: f64[n, m] @ csr) -> f64:
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += exp(A[i, j]) * (i + 1)
    return s
",
        expect![[r#"
            def total(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1]) -> f64:
                s = empty((), f64)
                s = 0.0
                for i in range(n):
                    j_next = empty((), i64)
                    j_next = 0
                    for j.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                        assume(0 <= j.p and j.p < A_n1)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                        for j in range(j_next, cast(A_crd1[j.p], i64)):
                            s += cast(i + 1, f64)
                        s += exp(A_val[j.p]) * cast(i + 1, f64)
                        j_next = cast(A_crd1[j.p], i64) + 1
                    for j in range(j_next, m):
                        s += cast(i + 1, f64)
                return s
        "#]],
    );
    for storage in ["band", "ragged", "csr", "format(banded, compressed)", "format(ragged, banded, fill=2.0)"] {
        let text = format!(
            "def some(A: f64[n, m] @ {storage}, x: f64[m]) -> f64[n, m]:
    y = zeros((n, m), f64)
    for i in range(1, n):
        for j in range(2, m - 1):
            y[i, j] = A[i, j] * x[j] + x[2]
    return y
"
        );
        let (func, structured) = lowered(&text);
        (0..60).for_each(|seed| equal(&func, &structured, seed));
    }
    check(
        "def last(A: f64[n, m] @ dcsr, x: f64[m]) -> f64[n, m]:
    y = zeros((n, m), f64)
    for i in range(n):
        before = 1.0
        for j in range(1, m - 1):
            y[i, j] = before
            if A[i, j] > 2.0:
                before = A[i, j] * x[j]
    return y
",
        expect![[r#"
            def last(A_pos0: i32[2], A_crd0: i32[A_n0], A_pos1: i32[A_n0 + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], x: f64[m]) -> f64[n, m]:
                y = empty((n, m), f64)
                for y.d0 in range(n):
                    for y.d1 in range(m):
                        y[y.d0, y.d1] = 0.0
                i_next = empty((), i64)
                i_next = 0
                for i.p in range(cast(A_pos0[0], i64), cast(A_pos0[1], i64)):
                    assume(0 <= i.p and i.p < A_n0)
                    assume(0 <= cast(A_crd0[i.p], i64) and cast(A_crd0[i.p], i64) < n)
                    for i in range(i_next, cast(A_crd0[i.p], i64)):
                        before = empty((), f64)
                        before = 1.0
                        for j in range(1, m - 1):
                            y[i, j] = before
                    before = empty((), f64)
                    before = 1.0
                    j_next = empty((), i64)
                    j_next = 1
                    for j.p in range(cast(A_pos1[i.p], i64), cast(A_pos1[i.p + 1], i64)):
                        assume(0 <= j.p and j.p < A_n1)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                        if 1 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m - 1:
                            for j in range(j_next, cast(A_crd1[j.p], i64)):
                                y[cast(A_crd0[i.p], i64), j] = before
                            y[cast(A_crd0[i.p], i64), cast(A_crd1[j.p], i64)] = before
                            if A_val[j.p] > 2.0:
                                before = A_val[j.p] * x[cast(A_crd1[j.p], i64)]
                            j_next = cast(A_crd1[j.p], i64) + 1
                    for j in range(j_next, m - 1):
                        y[cast(A_crd0[i.p], i64), j] = before
                    del j_next
                    del before
                    i_next = cast(A_crd0[i.p], i64) + 1
                for i in range(i_next, n):
                    before = empty((), f64)
                    before = 1.0
                    for j in range(1, m - 1):
                        y[i, j] = before
                return y
        "#]],
    );
}

/// What is refused, in its words.
#[track_caller]
fn refused(text: &str, expect: Expect) {
    let found = lower(&elaborate(text)).expect_err("there is no rule for it yet");
    expect.assert_eq(&found.0.iter().map(|d| format!("[{}] {}\n", d.code, d.message)).collect::<String>());
}

#[test]
fn what_has_no_rule_yet() {
    let sum = |params: &str, loops: [&str; 2], value: &str| {
        let [outer, inner] = loops;
        format!(
            "def f({params}) -> f64:\n    s = 0.0\n    for {outer}:\n        for {inner}:\n            s += {value}\n    return s\n"
        )
    };
    let (rows, columns) = (["i in range(n)", "j in range(m)"], ["j in range(m)", "i in range(n)"]);
    let csr = "A: f64[n, m] @ csr";
    refused(
        &sum(&format!("{csr}, B: f64[n, m] @ csr"), rows, "A[i, j] * B[i, j]"),
        expect![[r#"
        [lower::unsupported] the loop `j` traverses `A` and `B` together, which cannot be compiled yet
    "#]],
    );
    refused(
        &sum(csr, columns, "A[i, j]"),
        expect![[r#"
        [lower::unsupported] no loop traverses `A` here: its level 1, `compressed`, stores dimension 1, and the index there is not the iterator of a loop over the whole dimension, inside of the loops that the levels above need
    "#]],
    );
    refused(
        &sum(csr, rows, "A[i, j + 0 * i] + A[i, m - 1 - j]"),
        expect![[r#"
        [lower::unsupported] no loop traverses `A` here: its level 1, `compressed`, stores dimension 1, and the index there is not the iterator of a loop over the whole dimension, inside of the loops that the levels above need
    "#]],
    );
    refused(
        &sum(csr, ["i in range(n)", "j in range(m - 1, -1, -1)"], "A[i, j]"),
        expect![[r#"
        [lower::unsupported] the loop `j` traverses a structured tensor in steps other than 1, which cannot be compiled yet
    "#]],
    );
    refused(
        &sum(csr, ["i in range(1, n)", "j in range(m)"], "A[i - 1, j]"),
        expect![[r#"
        [lower::unsupported] no loop traverses `A` here: its level 0, `dense`, stores dimension 0, and the index there is not the iterator of a loop over the whole dimension, inside of the loops that the levels above need
    "#]],
    );
    refused(
        &sum("A: f64[n, n] @ symmetric, x: f64[m]", rows, "A[i, i] * x[j]"),
        expect![[r#"
        [lower::unsupported] the level `symmetric` of `A` is not supported yet
    "#]],
    );
    refused(
        &sum("A: f64[n, m] @ coo", rows, "A[i, j]"),
        expect![[r#"
            [lower::unsupported] the level `compressed(unique=False)` of `A` is not supported yet
        "#]],
    );
    refused(
        "def f(A: f64[n, m] @ csr, k: i64[p]) -> f64:\n    return A[k[0], 0]\n",
        expect![[r#"
        [lower::unsupported] no loop traverses `A` here: its level 0, `dense`, stores dimension 0, and the index there is not the iterator of a loop over the whole dimension, inside of the loops that the levels above need
    "#]],
    );
    refused(
        "def f(A: f64[n] @ format(compressed)):\n    print(A)\n    return A[0]\n",
        expect![[r#"
        [lower::unsupported] `A`, which is structured, cannot be printed whole yet
        [lower::unsupported] no loop traverses `A` here: its level 0, `compressed`, stores dimension 0, and the index there is not the iterator of a loop over the whole dimension, inside of the loops that the levels above need
    "#]],
    );
}
