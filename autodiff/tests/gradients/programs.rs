//! Programs, one for each feature of the language.

use crate::check::{check, check_func, derivative, floats_of, ints, program};
use std::sync::Arc;
use taffeta_ast::format::{Format, Level, LevelKind, Pattern};
use taffeta_ast::interp::{Inputs, run};
use taffeta_ast::{Buffer, Func, Tensor, Value};
use taffeta_autodiff::{Kind, Request, Tape, differentiate};

#[test]
fn straight_line_code_with_every_kind_of_write() {
    check(
        "def f(a: f64[n], b: f64[n], c: f64[n], d: f64[n]):
    y = empty((n,), f64)
    z = empty((n,), f64)
    for i in range(n):
        t = a[i] * b[i]
        y[i] = t * c[i]
        z[i] = t * d[i]
    return y, z
",
        &[floats_of(&[5], 1), floats_of(&[5], 2), floats_of(&[5], 3), floats_of(&[5], 4)],
        &[],
    );
}

/// Checks remainders of all signs. Their derivative in the divisor is the quotient, rounded down, negated.
#[test]
fn remainders_of_floats() {
    let of = |numbers: &[f64]| Value::new(vec![numbers.len()], Buffer::F64(numbers.to_vec())).expect("it fits");
    check(
        "def f(x: f64[n], y: f64[n]) -> f64[n]:
    z = empty((n,), f64)
    for i in range(n):
        z[i] = x[i] % y[i]
    return z
",
        &[of(&[-1.0, 5.5, -7.25, 2.0, 8.5]), of(&[3.0, -2.0, 2.5, -0.75, 3.25])],
        &[],
    );
}

/// Checks a triangular solve in place: each row reads those before it, and a snapshot copies all rows.
#[test]
fn snapshots_include_unwritten_elements() {
    let solve = |first: &str| {
        format!(
            "def f(l: f64[n, n], b: f64[n]) -> f64[n]:
    x = {first}((n,), f64)
    for i in range(n):
        x[i] = b[i]
        for j in range(i):
            x[i] -= l[i, j] * x[j]
        x[i] /= 2.0 + l[i, i]
    return x
"
        )
    };
    check(&solve("empty"), &[floats_of(&[4, 4], 1), floats_of(&[4], 2)], &[]);
    // A local tensor, in a scope that is entered several times.
    let entered = "def f(l: f64[n, n], b: f64[n, n]) -> f64[n]:
    y = zeros((n,), f64)
    for k in range(n):
        x = empty((n,), f64)
        for i in range(n):
            x[i] = b[i, k]
            for j in range(i):
                x[i] -= l[i, j] * x[j]
            x[i] = tanh(x[i]) * x[i]
        for i in range(n):
            y[i] += x[i] * x[i]
    return y
";
    check(entered, &[floats_of(&[3, 3], 3), floats_of(&[3, 3], 4)], &[]);
    // A tensor that is written in full before the snapshot is not filled.
    let zeros = |func: &Func| taffeta_ast::print::func(func).matches("x[x.d0] = 0.0").count();
    assert_eq!(zeros(&derivative(&program(&solve("empty")), Kind::Vjp, Tape::All)), 1);
    assert_eq!(zeros(&derivative(&program(&solve("zeros")), Kind::Vjp, Tape::All)), 1);
}

#[test]
fn overwritten_values_are_restored() {
    // Scalars and arrays in time loops, read before and after they are written, in one statement and in several.
    check(
        "def f(h: f64[n], w: f64[n, n]) -> f64[n]:
    x = empty((n,), f64)
    for i in range(n):
        x[i] = h[i]
    for t in range(3):
        y = empty((n,), f64)
        for i in range(n):
            s = 0.0 + x[i]
            for j in range(n):
                s += w[i, j] * x[j]
            y[i] = tanh(s)
        for i in range(n):
            x[i] = y[i] * y[i] + 0.5 * x[i] * x[i]
    return x
",
        &[floats_of(&[4], 1), floats_of(&[4, 4], 2)],
        &[],
    );
    check(
        "def f(x: inout[f64[n]], a: f64):
    s = 0.0 + a
    for i in range(n):
        s = tanh(s * x[i]) + sin(s)
        x[i] = s * x[i]
        x[i] *= s
        s += sin(x[i] * x[i])
",
        &[floats_of(&[5], 1), floats_of(&[], 2)],
        &[],
    );
}

#[test]
fn sweeps_in_place() {
    check(
        "def seidel(x: inout[f64[n]], steps: i32):
    for t in range(steps):
        for i in range(1, n - 1):
            x[i] = x[i - 1] * x[i] + x[i + 1] * x[i + 1] / 3.0
",
        &[floats_of(&[6], 1), ints(&[], &[3])],
        &[],
    );
}

#[test]
fn trip_counts_from_parameters() {
    for (begin, end) in [(0, 4), (3, 3), (5, 2)] {
        check(
            "def f(x: f64[n], begin: i32, end: i64) -> f64[n]:
    y = empty((n,), f64)
    for i in range(n):
        y[i] = x[i]
    for t in range(begin, end):
        for i in range(n):
            y[i] = sin(y[i] * y[i]) + x[i]
    return y
",
            &[floats_of(&[3], 1), ints(&[], &[begin]), Value::new(vec![], Buffer::I64(vec![end])).expect("one")],
            &[],
        );
    }
}

/// Checks loops whose begin or end is at an end of i64, or far beyond the other.
#[test]
fn loops_at_the_ends_of_i64() {
    let (min, max, half) = (i64::MIN, i64::MAX, 1i64 << 62);
    let ranges = [
        (min, min + 3, 1),
        (max - 3, max, 1),
        (0, min, 1),
        (1, min, 1),
        (half, -half - 1, 1),
        (max, max - 3, -1),
        (min + 3, min, -1),
        (-1, max, -1),
        (min, min + 9, 4),
        (max - 9, max, 4),
        (min, max, half),
        (max, min, -half),
        (max, min, min),
    ];
    let body = "        for i in range(n):
            y[i] = sin(y[i] * y[i]) + x[i] * (t % 8)
    return y
";
    for (begin, end, step) in ranges {
        let number = |v: i64| if v == min { "(-9223372036854775807 - 1)".to_string() } else { v.to_string() };
        let head = "    y = empty((n,), f64)
    for i in range(n):
        y[i] = x[i]
";
        let scalar = |v: i64| Value::new(vec![], Buffer::I64(vec![v])).expect("one");
        let text = format!(
            "def f(x: f64[n]) -> f64[n]:
{head}    for t in range({}, {}, {}):
{body}",
            number(begin),
            number(end),
            number(step)
        );
        // Tapes count iterations from `begin`, in 64 bits.
        let kept = i128::from(end).abs_diff(i128::from(begin)) < 1 << 63 || (end < begin) == (step > 0);
        if kept {
            check(&text, &[floats_of(&[3], 1)], &[]);
        }
        let text = format!(
            "def f(x: f64[n], begin: i64, end: i64) -> f64[n]:
{head}    for t in range(begin, end, {}):
{body}",
            number(step)
        );
        if kept {
            check(&text, &[floats_of(&[3], 1), scalar(begin), scalar(end)], &[]);
        }
        let text = format!(
            "def f(x: f64[n], begin: i64, end: i64, step: i64) -> f64[n]:
{head}    for t in range(begin, end, step):
        for i in range(n):
            y[i] = y[i] + x[i] * (t % 8)
    return y
"
        );
        check(&text, &[floats_of(&[3], 1), scalar(begin), scalar(end), scalar(step)], &[]);
    }
}

#[test]
fn reductions_of_every_kind() {
    for (op, init) in [
        ("s *= x[i] * a", "1.0"),
        ("s = max(s, x[i])", "-inf"),
        ("s = min(s, x[i] * x[i] * a)", "inf"),
        ("s += x[i] * x[i]", "0.0"),
    ] {
        check(
            &format!(
                "def f(x: f64[n], a: f64) -> f64:
    s = empty((), f64)
    s[...] = {init}
    for i in range(n):
        {op}
    return s
"
            )
            .replace("s *=", "s[...] *=")
            .replace("s = max(s", "s[...] = max(s")
            .replace("s = min(s", "s[...] = min(s")
            .replace("s +=", "s[...] +="),
            &[floats_of(&[6], 1), floats_of(&[], 2)],
            &[],
        );
    }
}

#[test]
fn elements_read_by_their_own_updates() {
    // The addend of a sum reads the tensor twice, one time possibly the written element itself.
    check(
        "def f(x: inout[f64[n]], k: i32[n]):
    for i in range(n):
        x[2] += x[k[i]] * (x[i] - 3.0 * x[k[n - 1 - i]])
        x[k[i]] *= x[2] + x[i]
",
        &[floats_of(&[4], 1), ints(&[4], &[2, 2, 0, 3])],
        &[],
    );
    // The running maximum is read before the reduction is done.
    check(
        "def f(x: f64[n], y: f64[n]) -> f64:
    s = empty((), f64)
    s[...] = x[0]
    z = empty((n,), f64)
    for i in range(n):
        s[...] = max(s, y[i])
        z[i] = s
    for i in range(n):
        s[...] = max(s, z[n - 1 - i] * 1.01)
    return s
",
        &[floats_of(&[5], 1), floats_of(&[5], 2)],
        &[],
    );
}

#[test]
fn softmax_rows() {
    check(
        "def f(x: f64[n, m]) -> f64[n, m]:
    y = empty((n, m), f64)
    for i in range(n):
        top = empty((), f64)
        top[...] = -inf
        for j in range(m):
            top[...] = max(top, x[i, j])
        s = empty((), f64)
        s[...] = 0.0
        e = empty((m,), f64)
        for j in range(m):
            e[j] = exp(x[i, j] - top)
            s[...] += e[j]
        for j in range(m):
            y[i, j] = e[j] / s
    return y
",
        &[floats_of(&[3, 5], 1)],
        &[],
    );
}

#[test]
fn branches_and_choices() {
    check(
        "def f(x: f64[n], w: f64[3]) -> f64[n]:
    y = zeros_(n)
    for i in range(n):
        if x[i] > 0.7:
            y[i] = x[i] * w[0]
            if i % 2 == 0:
                y[i] += x[i] ** 3.0
        else:
            y[i] = (x[i + 1] if i + 1 < n else w[1]) * w[2]
        y[i] = max(y[i], 0.3) * min(x[i], w[1]) + abs(x[i] - 1.0)
    return y

def zeros_(n):
    return 1
"
        .replace("zeros_(n)\n    for", "empty((n,), f64)\n    for")
        .split("\ndef zeros_")
        .next()
        .expect("the first one"),
        &[floats_of(&[7], 1), floats_of(&[3], 2)],
        &[],
    );
}

#[test]
fn gathers_and_scatters() {
    check(
        "def f(x: f64[n, k], adj: i32[n, 3]) -> f64[n, k]:
    y = empty((n, k), f64)
    for i in range(n):
        for c in range(k):
            y[i, c] = 0.0
    for i in range(n):
        for p in range(3):
            for c in range(k):
                y[adj[i, p], c] += x[i, c] * x[adj[i, (p + 1) % 3], c]
    return y
",
        &[floats_of(&[4, 2], 1), ints(&[4, 3], &[1, 2, 3, 0, 2, 2, 3, 3, 0, 1, 0, 2])],
        &[],
    );
}

#[test]
fn rows_of_a_sparse_matrix() {
    check(
        "def f(x: f64[n], a: f64[nnz], row: i32[n + 1], col: i32[nnz]) -> f64[n]:
    y = empty((n,), f64)
    for i in range(n):
        s = 0.0 * x[i]
        for e in range(row[i], row[i + 1]):
            t = a[e] * x[col[e]]
            s += exp(t) * t
        y[i] = s / (1.0 + s * s)
    return y
",
        &[floats_of(&[3], 1), floats_of(&[5], 2), ints(&[4], &[0, 2, 2, 5]), ints(&[5], &[0, 2, 1, 0, 2])],
        &[],
    );
}

#[test]
fn triangular_strided_and_empty_loops() {
    for n in [0, 1, 2, 7] {
        check(
            "def f(x: f64[n]) -> f64[n]:
    y = empty((n,), f64)
    for i in range(n - 1, -1, -1):
        s = 0.0 * x[i]
        for j in range(i, n, 2):
            t = x[j] * x[i]
            u = empty((n - i,), f64)
            for k in range(n - i):
                u[k] = t * x[k + i]
            s = s * 0.5 + u[0] * u[n - i - 1] + t
        y[i] = s
    return y
",
            &[floats_of(&[n], 1)],
            &[("n", n as i64)],
        );
    }
}

#[test]
fn windows_of_attention() {
    check(
        "def f(q: f64[n, d], k: f64[n, d], v: f64[n, d]) -> f64[n, d]:
    y = empty((n, d), f64)
    for i in range(n):
        dot = empty((5,), f64)
        for j in range(-2, 3):
            dot[j + 2] = 0.0
            if i + j >= 0 and i + j < n:
                for c in range(d):
                    dot[j + 2] += q[i, c] * k[i + j, c]
        s = 0.0 * q[i, 0]
        for j in range(5):
            s += exp(dot[j])
        for c in range(d):
            y[i, c] = 0.0
        for j in range(-2, 3):
            if i + j >= 0 and i + j < n:
                for c in range(d):
                    y[i, c] += exp(dot[j + 2]) / s * v[i + j, c]
    return y
",
        &[floats_of(&[6, 3], 1), floats_of(&[6, 3], 2), floats_of(&[6, 3], 3)],
        &[],
    );
}

#[test]
fn gradients_of_gradients() {
    let text = "def f(x: f64[n], w: f64[n, n]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        t = 0.0 * x[i]
        for j in range(n):
            t += w[i, j] * x[j]
        s += sin(t) * x[i] ** 3.0
    return s
";
    let params = [floats_of(&[3], 1), floats_of(&[3, 3], 2)];
    let first = derivative(&program(text), Kind::Grad, Tape::Auto);
    let sizes = [("n".to_string(), 3)].into();
    check_func(&first, &params, &sizes, 5);
    let rename = Func { name: "second".into(), ..derivative(&first, Kind::Vjp, Tape::None) };
    let seeds = [floats_of(&[3], 3), floats_of(&[3, 3], 4)];
    check_func(&rename, &[&params[..], &seeds[..]].concat(), &sizes, 6);
}

#[test]
fn operands_of_choices_that_would_be_nan() {
    // Nothing is computed for an operand that is not chosen, where 0 times infinity would be NaN.
    let f = program(
        "def f(x: f64[n]) -> f64[n]:
    y = empty((n,), f64)
    for i in range(n):
        y[i] = sqrt(x[i]) * log(x[i]) if x[i] > 0.0 else x[i] * 2.0
    return y
",
    );
    let vjp = derivative(&f, Kind::Vjp, Tape::Auto);
    let value = |v: &[f64]| Value::new(vec![v.len()], Buffer::F64(v.to_vec())).expect("as many");
    let inputs = Inputs { params: vec![value(&[0.0, -1.0, 1.0]), value(&[1.0, 1.0, 1.0])], ..Inputs::default() };
    let out = run(&vjp, &inputs).expect("it runs");
    assert_eq!(out.results[0].numbers(), [2.0, 2.0, 1.0]);
}

#[test]
fn ties_and_kinks_are_as_documented() {
    let gradient = |text: &str, x: &[f64]| {
        let grad = derivative(&program(text), Kind::Grad, Tape::Auto);
        let x = Value::new(vec![x.len()], Buffer::F64(x.to_vec())).expect("as many");
        run(&grad, &Inputs { params: vec![x], ..Inputs::default() }).expect("it runs").results[0].numbers()
    };
    let of = |e: &str| format!("def f(x: f64[2]) -> f64:\n    s = {e}\n    return s\n");
    assert_eq!(gradient(&of("max(x[0], x[1])"), &[1.0, 1.0]), [0.0, 1.0]);
    assert_eq!(gradient(&of("min(x[0], x[1])"), &[1.0, 1.0]), [0.0, 1.0]);
    assert_eq!(gradient(&of("abs(x[0]) + floor(x[1])"), &[0.0, 2.0]), [0.0, 0.0]);
    assert_eq!(gradient(&of("x[0] ** x[1]"), &[0.0, 2.0]), [0.0, 0.0]);
    let reduced = "def f(x: f64[n]) -> f64:
    s: f64 = -inf
    for i in range(n):
        s = max(s, x[i])
    return s
";
    assert_eq!(gradient(reduced, &[1.0, 3.0, 3.0, 2.0]), [0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn one_of_several_results() {
    // The other result is an intermediate value of the requested one.
    let f = program(
        "def f(x: f64[n]):
    y = empty((n,), f64)
    s: f64 = 0.0
    c: i32 = 0
    for i in range(n):
        y[i] = x[i] * x[i]
        s += y[i] * x[i]
        c += 1
    return y, s, c
",
    );
    let value = |v: &[f64]| Value::new(vec![v.len()], Buffer::F64(v.to_vec())).expect("as many");
    let (wrt, out) = (["x".to_string()], ["s".to_string()]);
    let of = |kind| {
        let request = Request { out: &out, ..Request::new(kind, "d", &f, &wrt) };
        differentiate(&request).expect("it has one")
    };
    let x = value(&[1.0, 2.0]);
    let grad = run(&of(Kind::Grad), &Inputs { params: vec![x.clone()], ..Inputs::default() }).expect("it runs");
    assert_eq!(grad.results[0].numbers(), [3.0, 12.0]);
    let jvp = Inputs { params: vec![x, value(&[1.0, 10.0])], ..Inputs::default() };
    let tangents = run(&of(Kind::Jvp), &jvp).expect("it runs");
    assert_eq!(tangents.results.len(), 1);
    assert_eq!(tangents.results[0].numbers(), [123.0]);
    for (out, what) in [("c", "has type i32"), ("z", "no result `z`"), ("y", "with 1 dimensions")] {
        let out = [out.to_string()];
        let request = Request { out: &out, ..Request::new(Kind::Grad, "d", &f, &wrt) };
        let wrong = differentiate(&request).expect_err("it has none").to_string();
        assert!(wrong.contains(what), "{wrong}");
    }
}

#[test]
fn extrema_with_constants_use_one_comparison() {
    let text = "def f(x: f64[n]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        s += clip(x[i], 0.0, 1.0)
    return s
";
    let grad = derivative(&program(text), Kind::Grad, Tape::None);
    let shown = taffeta_ast::print::func(&grad);
    assert!(!shown.contains("isnan"), "{shown}");
    // Of equals the second operand wins, which is the number; NaN is the result if an operand is NaN.
    let (x, expected) = ([-1.0, 0.0, 0.5, 1.0, 2.0, f64::NAN], [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    let x = Value::new(vec![x.len()], Buffer::F64(x.to_vec())).expect("as many");
    let out = run(&grad, &Inputs { params: vec![x], ..Inputs::default() }).expect("it runs");
    assert_eq!(out.results[0].numbers(), expected);
}

/// Returns the names in the interface of a derivative: parameters, and results.
fn names(f: &Func) -> [Vec<&str>; 2] {
    let params = f.params.iter().map(|p| p.tensor.symbol.name()).collect();
    [params, f.results.iter().map(|t| t.symbol.name()).collect()]
}

#[test]
fn names_in_an_interface_are_unique() {
    let f = program("def f(y: inout[f64[n]], x: f64):\n    for i in range(n):\n        y[i] = y[i] * x\n");
    let vjp = derivative(&f, Kind::Vjp, Tape::Auto);
    assert_eq!(names(&vjp), [vec!["y", "x", "y.grad"], vec!["x.grad"]]);
    // A second seed of `y`, and one of `y.grad`, which is a seed itself.
    let again = derivative(&vjp, Kind::Vjp, Tape::Auto);
    let seeds = ["x.grad.grad", "y.grad2", "y.grad.grad"];
    assert_eq!(names(&again), [[vec!["y", "x", "y.grad"], seeds.to_vec()].concat(), vec!["x.grad"]]);
    let jvp = derivative(&f, Kind::Jvp, Tape::Auto);
    let tangents = derivative(&jvp, Kind::Jvp, Tape::Auto);
    let given =
        ["y", "x", "y.tangent", "x.tangent", "y.tangent2", "x.tangent2", "y.tangent.tangent", "x.tangent.tangent"];
    assert_eq!(names(&tangents)[0], given);
    let g = program("def g(x: f64) -> f64:\n    return sin(x) * x\n");
    let once = derivative(&g, Kind::Grad, Tape::Auto);
    let twice = derivative(&once, Kind::ValueAndGrad, Tape::Auto);
    assert_eq!(names(&twice)[1], ["x.grad", "x.grad2"]);
    assert_eq!(names(&derivative(&once, Kind::Grad, Tape::Auto))[1], ["x.grad"]);
}

/// Checks that the seed of a result over the pattern of a parameter has that pattern, and that a result with a pattern
/// of its own is refused: it is not stored where its seed is.
#[test]
fn seeds_have_the_patterns_of_parameters() {
    let func = program(
        "def f(x: f64[n, m]) -> f64[n, m]:
    y = empty((n, m), f64)
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, j] * x[i, j]
    return y
",
    );
    let csr = Format::new(vec![Level::new(LevelKind::Dense), Level::new(LevelKind::Compressed)]);
    let [own, given] = [(); 2].map(|()| Format { pattern: Some(Pattern::fresh()), ..csr.clone() });
    let stored = |t: &Tensor, format: &Format| Arc::new(Tensor { format: format.clone(), ..t.clone() });
    for result in [&own, &given] {
        let mut func = func.clone();
        func.params[0].tensor = stored(&func.params[0].tensor, &given);
        func.results[0] = stored(&func.results[0], result);
        for kind in [Kind::Vjp, Kind::ValueAndVjp] {
            let vjp = differentiate(&Request::new(kind, "g", &func, &["x".to_string()]));
            if result.pattern == own.pattern {
                assert_eq!(vjp.expect_err("it is refused").0[0].code, "grad::structured", "{kind:?}");
                continue;
            }
            let vjp = vjp.expect("a gradient");
            let seed = &vjp.params.last().expect("the seed").tensor.format;
            assert_eq!((&seed.levels, seed.pattern), (&result.levels, result.pattern), "{kind:?}");
        }
    }
}
