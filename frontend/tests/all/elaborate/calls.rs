//! Calls: passing of arguments, results, and the order of effects.

use super::check;
use expect_test::expect;

#[test]
fn views_are_passed_by_reference() {
    check(
        "def scale(row, by):
    row *= by

def f(x: inout[f32[n, m]], k: f32):
    for i in range(n):
        scale(x[i], k * 2)
        scale(x[i, 1:], 3)
",
        expect![[r#"
            def f(x: inout[f32[n, m]], k: f32):
                for i in range(n):
                    by = empty((), f32)
                    by = k * 2.0
                    for x.d0 in range(m):
                        x[i, x.d0] *= by
                    assert 1 <= m, f"invalid slice from 1 to {m}: dimension 1 has size {m}"
                    for x.d0 in range(m - 1):
                        x[i, x.d0 + 1] *= 3.0
        "#]],
    );
}

#[test]
fn indices_of_views_are_read_at_the_call() {
    check(
        "def clear(p, q):
    q[...] = 0
    p += 1

def f(x: inout[f32[n]], at: inout[i32[k]]):
    clear(x[at[0]], at)
",
        expect![[r#"
            def f(x: inout[f32[n]], at: inout[i32[k]]):
                at_1 = empty((), i64)
                at_1 = cast(at[0], i64)
                for at.d0 in range(k):
                    at[at.d0] = 0
                x[at_1] += 1.0
        "#]],
    );
}

#[test]
fn operands_are_read_before_later_ones_write() {
    check(
        "def bump(p):
    p += 1
    return p[...] * 1

def f(s: inout[f32]):
    t = s + bump(s)
    s[...] = t * 2 + bump(s)
",
        expect![[r#"
            def f(s: inout[f32]):
                t = empty((), f32)
                t = s
                s += 1.0
                t_1 = empty((), f32)
                t_1 = t + s * 1.0
                s += 1.0
                s[...] = t_1 * 2.0 + s * 1.0
        "#]],
    );
}

#[test]
fn default_and_keyword_arguments() {
    check(
        "N = 4

def fill(x, by=N, twice=False):
    x[...] = by * 2 if twice else by

def f(x: inout[f32[n]]):
    fill(x)
    fill(x, twice=True)
    fill(by=1, x=x)
",
        expect![[r#"
            def f(x: inout[f32[n]]):
                for x.d0 in range(n):
                    x[x.d0] = 4.0
                for x.d0 in range(n):
                    x[x.d0] = 8.0
                for x.d0 in range(n):
                    x[x.d0] = 1.0
        "#]],
    );
}

#[test]
fn returns_under_static_conditions() {
    check(
        "def kind(x, mode):
    if mode == \"sum\":
        s = zeros((), x.dtype)
        for i in range(x.shape[0]):
            s += x[i]
        return s
    elif mode == \"first\":
        return x[0]
    return x

def f(x: f32[n]):
    return kind(x, \"sum\"), kind(x, \"first\"), kind(x, \"all\")
",
        expect![[r#"
            def f(x: f32[n]) -> (f32, f32, f32[n]):
                out = empty((), f32)
                out1 = empty((), f32)
                out2 = empty((n,), f32)
                out = 0.0
                for i in range(n):
                    out += x[i]
                out1 = x[0]
                for out2.d0 in range(n):
                    out2[out2.d0] = x[out2.d0]
                return out, out1, out2
        "#]],
    );
}

#[test]
fn imports() {
    check(
        "from beside import twice, K as three
from libop import relu

def f(x: f32[n]):
    y = twice(relu(x)) + three
    return y
",
        expect![[r#"
            def f(x: f32[n]) -> f32[n]:
                y = empty((n,), f32)
                x_1 = empty((n,), f32)
                for x.d0 in range(n):
                    x_1[x.d0] = max(x[x.d0], 0.0)
                for y.d0 in range(n):
                    y[y.d0] = 2.0 * x_1[y.d0] + 3.0
                return y
        "#]],
    );
}

#[test]
fn entries_are_called_like_templates() {
    check(
        "def dot(a: f64[n], b: f64[n]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        s += a[i] * b[i]
    return s

def f(x: f64[p], y: f64[q]):
    return dot(x, y)
",
        expect![[r#"
            def f(x: f64[p], y: f64[q]) -> f64:
                out = empty((), f64)
                assert p == q, f"dimension 0 of `y` (`b` of `dot`), expected and found: {p} and {q}"
                out = 0.0
                for i in range(p):
                    out += x[i] * y[i]
                return out
        "#]],
    );
    check(
        "def scaled(a: f64[n], k: f64) -> f64[n]:
    return a * k

def f(x: f32[p]) -> f32[p]:
    return scaled(x, 2)
",
        expect![[r#"
            def f(x: f32[p]) -> f32[p]:
                out = empty((p,), f32)
                a = empty((p,), f64)
                for a.d0 in range(p):
                    a[a.d0] = cast(x[a.d0], f64)
                for out.d0 in range(p):
                    out[out.d0] = cast(a[out.d0] * 2.0, f32)
                return out
        "#]],
    );
}

#[test]
fn calls_in_choices_run_only_if_chosen() {
    check(
        "def f(x: f32[n], flag: bool):
    s = total(x) if flag else 0.0
    return s
",
        expect![[r#"
            def f(x: f32[n], flag: bool) -> f32:
                s = empty((), f32)
                if flag:
                    s_1 = empty((), f32)
                    s_1 = 0.0
                    for i in range(n):
                        s_1 += x[i]
                    s = s_1
                else:
                    s = 0.0
                return s
        "#]],
    );
    check(
        "def positive(x):
    s = total(x)
    return s > 0

def f(x: f32[n], flag: bool):
    both = flag and positive(x)
    ok = flag or positive(x)
    return ok, both
",
        expect![[r#"
            def f(x: f32[n], flag: bool) -> (bool, bool):
                ok = empty((), bool)
                both = empty((), bool)
                if flag:
                    s = empty((), f32)
                    s = 0.0
                    for i in range(n):
                        s += x[i]
                    both = s > 0.0
                else:
                    both = False
                if flag:
                    ok = True
                else:
                    s = empty((), f32)
                    s = 0.0
                    for i in range(n):
                        s += x[i]
                    ok = s > 0.0
                return ok, both
        "#]],
    );
}

#[test]
fn lists_of_tensors() {
    check(
        "def f(x: f32[n], y: f32[m]):
    s: f32 = 0.0
    for t in static([x, y]):
        s += total(t)
    return s
",
        expect![[r#"
            def f(x: f32[n], y: f32[m]) -> f32:
                s = empty((), f32)
                s = 0.0
                s_1 = empty((), f32)
                s_1 = 0.0
                for i in range(n):
                    s_1 += x[i]
                s += s_1
                s_2 = empty((), f32)
                s_2 = 0.0
                for i in range(m):
                    s_2 += y[i]
                s += s_2
                return s
        "#]],
    );
}

#[test]
fn multiple_results() {
    check(
        "def pair(x):
    s = total(x)
    return s, s * 2

def f(x: f32[n]):
    a, b = pair(x)
    b, a = a, b
    return a, b
",
        expect![[r#"
            def f(x: f32[n]) -> (f32, f32):
                a = empty((), f32)
                b = empty((), f32)
                s = empty((), f32)
                s = 0.0
                for i in range(n):
                    s += x[i]
                a = s
                b = s * 2.0
                t = empty((), f32)
                t = b
                b = a
                a = t
                return a, b
        "#]],
    );
}

#[test]
fn nested_lists_and_shapes() {
    check(
        "def f(x: f32[n, m]):
    a, b = x.shape
    y = empty((b, a), x.dtype)
    y[...] = x.T
    z = zeros(x.shape[1:] + [2], f64)
    return y, z, len(x), x.shape(1)
",
        expect![[r#"
            def f(x: f32[n, m]) -> (f32[m, n], f64[m, 2], i32, i32):
                y = empty((m, n), f32)
                z = empty((m, 2), f64)
                out2 = empty((), i32)
                out3 = empty((), i32)
                for y.d0 in range(m):
                    for y.d1 in range(n):
                        y[y.d0, y.d1] = x[y.d1, y.d0]
                for z.d0 in range(m):
                    for z.d1 in range(2):
                        z[z.d0, z.d1] = 0.0
                out2 = cast(n, i32)
                out3 = cast(m, i32)
                return y, z, out2, out3
        "#]],
    );
}

#[test]
fn operands_are_read_before_two_later_ones_write() {
    check(
        "def bump(p, q):
    p += 1
    t = q[...] * 2
    return t + p

def f(a: inout[f32], b: inout[f32]):
    t = a + bump(b, a) + bump(a, b) * bump(b, a)
    return t
",
        expect![[r#"
            def f(a: inout[f32], b: inout[f32]) -> f32:
                t = empty((), f32)
                b += 1.0
                t_1 = empty((), f32)
                t_1 = a * 2.0
                t_2 = empty((), f32)
                t_2 = a + (t_1 + b)
                a += 1.0
                t_3 = empty((), f32)
                t_3 = b * 2.0
                b += 1.0
                t_4 = empty((), f32)
                t_4 = a * 2.0
                t = t_2 + (t_3 + a) * (t_4 + b)
                return t
        "#]],
    );
    check(
        "def at(p):
    p += 1
    return cast(p, i32)

def f(a: inout[f32], x: inout[f32[n]]):
    x[at(a)] += a * 2
    x[at(a)] = a * 3
",
        expect![[r#"
            def f(a: inout[f32], x: inout[f32[n]]):
                t = empty((), f32)
                t = a * 2.0
                a += 1.0
                x[cast(cast(a, i32), i64)] += t
                t_1 = empty((), f32)
                t_1 = a * 3.0
                a += 1.0
                x[cast(cast(a, i32), i64)] = t_1
        "#]],
    );
}

#[test]
fn recursion_may_go_deep() {
    let src = "def down(x, y, k):
    if k > 0:
        if x[0] > 0 or (x[1] if x[2] > 3 else total(x)) > 1:
            for i in static(range(1)):
                y[...] = -(down(x, y, k - 1) + 1)
    return x[0] * 1 if k % 2 == 0 else x[1]

def f(x: f32[n]):
    y: f32 = 0.0
    down(x, y, 500)
    return y
";
    let f = super::elaborate(src).expect("it ends");
    let mut depth = 0;
    f.body.walk(&mut |s| depth += usize::from(matches!(s.kind(), taffeta_ast::StmtKind::If { .. })));
    assert!(depth >= 500, "{depth}");
}
