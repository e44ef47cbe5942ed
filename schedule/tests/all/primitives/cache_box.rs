//! Box of `cache`: its bounds, as tight as they are proved.

use crate::args;
use crate::primitives::cache::cached;
use crate::primitives::common::{call, check};
use expect_test::expect;

#[test]
fn tiles() {
    check(
        "
def matmul(a: f32[n, k], b: f32[k, m]) -> f32[n, m]:
    c = zeros((n, m), f32)
    for i in range(n):
        for j in range(m):
            for p in range(k):
                c[i, j] += a[i, p] * b[p, j]
    return c
",
        |s| {
            let i = call(s, "split", args!["i", 4])?;
            let j = call(s, "split", args!["j", 8])?;
            let p = call(s, "split", args!["p", 4])?;
            let order = [&i[0], &j[0], &p[0], &i[1], &j[1], &p[1]].map(Clone::clone).to_vec();
            call(s, "reorder", args![taffeta_schedule::Value::List(order)])?;
            call(s, "cache", args![i[1].clone(), "a"])?;
            call(s, "cache", args![i[1].clone(), "c"])?;
            let c = call(s, "cache", args![p[0].clone(), "c"])?;
            assert!(
                matches!(&c[0], taffeta_schedule::Value::Handle(taffeta_schedule::Handle::Tensor(t)) if t.name() == "c.cache")
            );
            Ok(())
        },
        expect![[r#"
            c = empty((n, m), f32)
            for c.d0 in range(n):
                for c.d1 in range(m):
                    c[c.d0, c.d1] = 0.0
            for i_o in range((n + 3) // 4):
                for j_o in range((m + 7) // 8):
                    c_cache = empty((4, 8), f32)
                    for c.cache.d0 in range(4):
                        for c.cache.d1 in range(8):
                            if i_o * 4 + c.cache.d0 < n and j_o * 8 + c.cache.d1 < m:
                                c_cache[c.cache.d0, c.cache.d1] = c[i_o * 4 + c.cache.d0, j_o * 8 + c.cache.d1]
                    for p_o in range((k + 3) // 4):
                        a_cache = empty((4, 4), f32)
                        for a.cache.d0 in range(4):
                            for a.cache.d1 in range(4):
                                if i_o * 4 + a.cache.d0 < n and p_o * 4 + a.cache.d1 < k:
                                    a_cache[a.cache.d0, a.cache.d1] = a[i_o * 4 + a.cache.d0, p_o * 4 + a.cache.d1]
                        c_cache_1 = empty((4, 8), f32)
                        for c.cache.d0 in range(4):
                            for c.cache.d1 in range(8):
                                if i_o * 4 + c.cache.d0 < n and j_o * 8 + c.cache.d1 < m:
                                    c_cache_1[c.cache.d0, c.cache.d1] = c_cache[c.cache.d0, c.cache.d1]
                        for i_i in range(4):
                            for j_i in range(8):
                                for p_i in range(4):
                                    if i_o * 4 + i_i < n:
                                        if j_o * 8 + j_i < m:
                                            if p_o * 4 + p_i < k:
                                                c_cache_1[i_i, j_i] += a_cache[i_i, p_i] * b[p_o * 4 + p_i, j_o * 8 + j_i]
                        for c.cache.back.d0 in range(4):
                            for c.cache.back.d1 in range(8):
                                if i_o * 4 + c.cache.back.d0 < n and j_o * 8 + c.cache.back.d1 < m:
                                    c_cache[c.cache.back.d0, c.cache.back.d1] = c_cache_1[c.cache.back.d0, c.cache.back.d1]
                    for c.cache.back.d0 in range(4):
                        for c.cache.back.d1 in range(8):
                            if i_o * 4 + c.cache.back.d0 < n and j_o * 8 + c.cache.back.d1 < m:
                                c[i_o * 4 + c.cache.back.d0, j_o * 8 + c.cache.back.d1] = c_cache[c.cache.back.d0, c.cache.back.d1]
            return c
        "#]],
    );
}

#[test]
fn indirect_subscripts_need_the_whole_dimension() {
    cached(
        "
def f(e: f32[n, m], adj: i32[k, 3]) -> f32[k, m]:
    y = zeros((k, m), f32)
    for i in range(k):
        for j in range(3):
            for c in range(m):
                y[i, c] += e[adj[i, j], c]
    return y
",
        "j",
        "e",
        expect![[r#"
            y = empty((k, m), f32)
            for y.d0 in range(k):
                for y.d1 in range(m):
                    y[y.d0, y.d1] = 0.0
            for i in range(k):
                e_cache = empty((n, m), f32)
                for e.cache.d0 in range(n):
                    for e.cache.d1 in range(m):
                        e_cache[e.cache.d0, e.cache.d1] = e[e.cache.d0, e.cache.d1]
                for j in range(3):
                    for c in range(m):
                        y[i, c] += e_cache[cast(adj[i, j], i64), c]
            return y
        "#]],
    );
    // A loop-invariant value is a bound like any other, where it surely has a value.
    cached(
        "
def f(e: f32[n, m], adj: i32[k]) -> f32[k, m]:
    y = zeros((k, m), f32)
    for i in range(k):
        for c in range(m):
            y[i, c] += e[adj[i], c]
    return y
",
        "c",
        "e",
        expect![[r#"
            y = empty((k, m), f32)
            for y.d0 in range(k):
                for y.d1 in range(m):
                    y[y.d0, y.d1] = 0.0
            for i in range(k):
                e_cache = empty((max(min(cast(adj[i], i64) + 1, n) - max(cast(adj[i], i64), 0), 0), m), f32)
                for e.cache.d0 in range(max(min(cast(adj[i], i64) + 1, n) - max(cast(adj[i], i64), 0), 0)):
                    for e.cache.d1 in range(m):
                        e_cache[e.cache.d0, e.cache.d1] = e[max(cast(adj[i], i64), 0) + e.cache.d0, e.cache.d1]
                for c in range(m):
                    y[i, c] += e_cache[cast(adj[i], i64) - max(cast(adj[i], i64), 0), c]
            return y
        "#]],
    );
    // The bound is overwritten inside.
    cached(
        "
def f(x: inout[f32[n]], p: inout[i32[2]]):
    for i in range(2):
        for j in range(p[0]):
            if j < n:
                x[j] = 1
                p[0] = 1
",
        "j",
        "x",
        expect![[r#"
            for i in range(2):
                x_cache = empty((n,), f32)
                for x.cache.d0 in range(n):
                    x_cache[x.cache.d0] = x[x.cache.d0]
                for j in range(cast(p[0], i64)):
                    if j < n:
                        x_cache[j] = 1.0
                        p[0] = 1
                for x.cache.back.d0 in range(n):
                    x[x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
}

#[test]
fn changing_subscripts_have_no_bounds() {
    // The statement writes an operand of the subscript: the element differs every time.
    cached(
        "
def f(a: i64[n], s: inout[i64], y: inout[i64[n]]):
    for i in range(n):
        s[...] = a[s % n]
        y[i] = s
",
        "i",
        "a",
        expect![[r#"
            a_cache = empty((n,), i64)
            for a.cache.d0 in range(n):
                a_cache[a.cache.d0] = a[a.cache.d0]
            for i in range(n):
                s[...] = a_cache[s % n]
                y[i] = s
        "#]],
    );
    cached(
        "
def f(x: inout[i64[n]], k: inout[i64[n]]):
    for i in range(n):
        x[k[0] % n] = x[k[0] % n] + 1
        k[0] = k[0] + x[i]
",
        "i",
        "x",
        expect![[r#"
            x_cache = empty((n,), i64)
            for x.cache.d0 in range(n):
                x_cache[x.cache.d0] = x[x.cache.d0]
            for i in range(n):
                x_cache[k[0] % n] += 1
                k[0] += x_cache[i]
            for x.cache.back.d0 in range(n):
                x[x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
    // The subscript reads the tensor itself.
    cached(
        "
def f(x: inout[i64[n]]):
    for i in range(n):
        for j in range(2):
            x[x[i] % n] = j + i
",
        "j",
        "x",
        expect![[r#"
            for i in range(n):
                x_cache = empty((n,), i64)
                for x.cache.d0 in range(n):
                    x_cache[x.cache.d0] = x[x.cache.d0]
                for j in range(2):
                    x_cache[x_cache[i] % n] = j + i
                for x.cache.back.d0 in range(n):
                    x[x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
}

#[test]
fn rows_of_a_sparse_matrix() {
    cached(
        "
def spmv(start: i32[n + 1], column: i32[nnz], value: f32[nnz], x: f32[n]) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        for j in range(start[i], start[i + 1]):
            y[i] += value[j] * x[column[j]]
    return y
",
        "j",
        "value",
        expect![[r#"
            y = empty((n,), f32)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for i in range(n):
                value_cache = empty((max(min(cast(start[i + 1], i64), nnz) - max(cast(start[i], i64), 0), 0),), f32)
                for value.cache.d0 in range(max(min(cast(start[i + 1], i64), nnz) - max(cast(start[i], i64), 0), 0)):
                    value_cache[value.cache.d0] = value[max(cast(start[i], i64), 0) + value.cache.d0]
                for j in range(cast(start[i], i64), cast(start[i + 1], i64)):
                    y[i] += value_cache[j - max(cast(start[i], i64), 0)] * x[cast(column[j], i64)]
            return y
        "#]],
    );
}

#[test]
fn branches_and_borders() {
    cached(
        "
def f(x: f32[n], w: f32[2 * r + 1]) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        for j in range(2 * r + 1):
            if 0 <= i + j - r < n:
                y[i] += w[j] * x[i + j - r]
    return y
",
        "j",
        "x",
        expect![[r#"
            y = empty((n,), f32)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for i in range(n):
                x_cache = empty((min(r + i + 1, n) - max(i - r, 0),), f32)
                for x.cache.d0 in range(min(r + i + 1, n) - max(i - r, 0)):
                    x_cache[x.cache.d0] = x[max(i - r, 0) + x.cache.d0]
                for j in range(r * 2 + 1):
                    if 0 <= i + j - r and i + j - r < n:
                        y[i] += w[j] * x_cache[i + j - r - max(i - r, 0)]
            return y
        "#]],
    );
    cached(
        "
def f(x: f32[n]) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        for j in range(5):
            y[i] += x[i + j - 2] if i + j >= 2 and i + j - 2 < n else 0.0
    return y
",
        "j",
        "x",
        expect![[r#"
            y = empty((n,), f32)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for i in range(n):
                x_cache = empty((5,), f32)
                for x.cache.d0 in range(5):
                    if 0 <= i - 2 + x.cache.d0 and i - 2 + x.cache.d0 < n:
                        x_cache[x.cache.d0] = x[i - 2 + x.cache.d0]
                for j in range(5):
                    y[i] += x_cache[j] if i + j >= 2 and i + j - 2 < n else 0.0
            return y
        "#]],
    );
    cached(
        "
def f(x: inout[f32[n]], b: bool[n]):
    for i in range(n):
        if b[i]:
            x[i] = x[i] + 1
",
        "i",
        "x",
        expect![[r#"
            x_cache = empty((n,), f32)
            for x.cache.d0 in range(n):
                x_cache[x.cache.d0] = x[x.cache.d0]
            for i in range(n):
                if b[i]:
                    x_cache[i] += 1.0
            for x.cache.back.d0 in range(n):
                x[x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
}

#[test]
fn out_of_range_accesses_still_stop_the_program() {
    // The program stops for n > 1, before and after.
    cached(
        "
def f(x: f32[n]) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        for j in range(2):
            y[i] += x[i + j]
    return y
",
        "j",
        "x",
        expect![[r#"
            y = empty((n,), f32)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for i in range(n):
                x_cache = empty((min(i + 2, n) - i,), f32)
                for x.cache.d0 in range(min(i + 2, n) - i):
                    x_cache[x.cache.d0] = x[i + x.cache.d0]
                for j in range(2):
                    y[i] += x_cache[j]
            return y
        "#]],
    );
}

#[test]
fn several_subscripts() {
    cached(
        "
def f(x: f32[n + 2, n], y: inout[f32[n, n]]):
    for i in range(n):
        for j in range(i, n):
            y[i, j] = x[i, j] + x[i + 1, j] + x[i + 2, i]
",
        "j",
        "x",
        expect![[r#"
            for i in range(n):
                x_cache = empty((3, n - i), f32)
                for x.cache.d0 in range(3):
                    for x.cache.d1 in range(n - i):
                        x_cache[x.cache.d0, x.cache.d1] = x[i + x.cache.d0, i + x.cache.d1]
                for j in range(i, n):
                    y[i, j] = x_cache[0, j - i] + x_cache[1, j - i] + x_cache[2, 0]
        "#]],
    );
    cached(
        "
def f(x: f32[n * m], y: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i * m + j]
",
        "j",
        "x",
        expect![[r#"
            for i in range(n):
                x_cache = empty((m,), f32)
                for x.cache.d0 in range(m):
                    x_cache[x.cache.d0] = x[i * m + x.cache.d0]
                for j in range(m):
                    y[i, j] = x_cache[j]
        "#]],
    );
    cached(
        "
def f(x: f32[n], y: inout[f32[n]]):
    for i in range(n):
        for j in range(3):
            y[i] += x[min(i + j, n - 1)] + x[max(i - j, 0)] * x[(i + j) // 2 % n]
",
        "j",
        "x",
        expect![[r#"
            for i in range(n):
                x_cache = empty((n,), f32)
                for x.cache.d0 in range(n):
                    x_cache[x.cache.d0] = x[x.cache.d0]
                for j in range(3):
                    y[i] += x_cache[min(i + j, n - 1)] + x_cache[max(i - j, 0)] * x_cache[(i + j) // 2 % n]
        "#]],
    );
}

#[test]
fn bounds_do_not_read_unwritten_elements() {
    check(
        "
def f(y: inout[f32[n]], k: i32[n]):
    for i in range(n):
        t = empty((), i64)
        label(\"L\")
        if k[i] < 0:
            y[t] = y[t] + 1
",
        |s| call(s, "cache", args!["L", "y"]).map(drop),
        expect![[r#"
            for i in range(n):
                t = empty((), i64)
                y_cache = empty((n,), f32)
                for y.cache.d0 in range(n):
                    y_cache[y.cache.d0] = y[y.cache.d0]
                label("L")
                if k[i] < 0:
                    y_cache[t] += 1.0
                for y.cache.back.d0 in range(n):
                    y[y.cache.back.d0] = y_cache[y.cache.back.d0]
        "#]],
    );
}
