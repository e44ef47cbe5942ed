use crate::args;
use crate::common::{call, check, example, list, refused};
use expect_test::{Expect, expect};

fn cached(text: &str, stmt: &str, tensor: &str, expected: Expect) {
    check(text, |s| call(s, "cache", args![stmt, tensor]).map(drop), expected);
}

fn not_cached(text: &str, stmt: &str, tensor: &str, expected: Expect) {
    refused(text, |s| call(s, "cache", args![stmt, tensor]).map(drop), expected);
}

#[test]
fn reads_are_not_stored_back() {
    cached(
        "
def f(x: f32[n, m], y: inout[f32[n]]):
    for i in range(n):
        for j in range(m):
            y[i] += x[i, j] * x[i, m - 1 - j]
",
        "j",
        "x",
        expect![[r#"
            for i in range(n):
                x_cache = empty((1, m), f32)
                for x.cache.d1 in range(m):
                    x_cache[0, x.cache.d1] = x[i, x.cache.d1]
                for j in range(m):
                    y[i] += x_cache[0, j] * x_cache[0, m - 1 - j]
        "#]],
    );
}

#[test]
fn writes_of_the_whole_box_need_no_fetch() {
    cached(
        "
def f(x: f32[n, m]) -> f32[n]:
    y = empty((n,), f32)
    for i in range(n):
        y[i] = 0
        for j in range(m):
            y[i] += x[i, j]
    return y
",
        "i",
        "y",
        expect![[r#"
            y = empty((n,), f32)
            y_cache = empty((n,), f32)
            for i in range(n):
                y_cache[i] = 0.0
                for j in range(m):
                    y_cache[i] += x[i, j]
            for y.cache.back.d0 in range(n):
                y[y.cache.back.d0] = y_cache[y.cache.back.d0]
            return y
        "#]],
    );
    cached(
        "
def f(x: inout[f32[n + 3]]):
    for i in range(n):
        for j in range(3, -1, -1):
            x[i + j] = j
",
        "j",
        "x",
        expect![[r#"
            for i in range(n):
                x_cache = empty((4,), f32)
                for j in range(3, -1, -1):
                    x_cache[j] = cast(j, f32)
                for x.cache.back.d0 in range(4):
                    x[i + x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
    // The last iteration may not run at all: nothing is written then.
    cached(
        "
def f(x: inout[f32[n + 3]]):
    for i in range(n):
        for j in range(0, 4, 2):
            x[i + j] = j
",
        "j",
        "x",
        expect![[r#"
            for i in range(n):
                x_cache = empty((3,), f32)
                for x.cache.d0 in range(3):
                    x_cache[x.cache.d0] = x[i + x.cache.d0]
                for j in range(0, 4, 2):
                    x_cache[j] = cast(j, f32)
                for x.cache.back.d0 in range(3):
                    x[i + x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
    // What is written is read before by the same statement.
    cached(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = x[n - 1 - i]
",
        "i",
        "x",
        expect![[r#"
            x_cache = empty((n,), f32)
            for x.cache.d0 in range(n):
                x_cache[x.cache.d0] = x[x.cache.d0]
            for i in range(n):
                x_cache[i] = x_cache[n - 1 - i]
            for x.cache.back.d0 in range(n):
                x[x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
}

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
            call(s, "reorder", args![weft_schedule::Value::List(order)])?;
            call(s, "cache", args![i[1].clone(), "a"])?;
            call(s, "cache", args![i[1].clone(), "c"])?;
            let c = call(s, "cache", args![p[0].clone(), "c"])?;
            assert!(
                matches!(&c[0], weft_schedule::Value::Handle(weft_schedule::Handle::Tensor(t)) if t.name() == "c.cache")
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
fn indirect_subscripts_take_the_dimension() {
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
    // What does not change inside is a bound like any other, where it surely has a value.
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
fn bounds_that_change_inside_are_none() {
    // What the subscript reads is written in the statement: it is another element every time.
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
    // The tensor itself.
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
fn an_access_out_of_range_still_is() {
    // Stops for n > 1, before and after.
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
fn scalars_locals_and_single_statements() {
    cached(
        "
def f(x: f32[n]) -> f32:
    s: f32 = 0
    for i in range(n):
        s += x[i]
    return s
",
        "i",
        "s",
        expect![[r#"
            s = empty((), f32)
            s = 0.0
            s_cache = empty((), f32)
            s_cache = s
            for i in range(n):
                s_cache += x[i]
            s = s_cache
            return s
        "#]],
    );
    cached(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        label(\"S\")
        x[i] = x[i] * x[0]
",
        "S",
        "x",
        expect![[r#"
            for i in range(n):
                x_cache = empty((i + 1,), f32)
                for x.cache.d0 in range(i + 1):
                    x_cache[x.cache.d0] = x[x.cache.d0]
                label("S")
                x_cache[i] *= x_cache[0]
                for x.cache.back.d0 in range(i + 1):
                    x[x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
}

#[test]
fn loops_in_any_order_stay_proved() {
    refused(
        "
def f(x: inout[f32[n + 1]]):
    for i in range(n):
        for j in range(2):
            if j == 0:
                x[i + j] = 1
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "cache", args!["j", "x"]).map(drop)
        },
        expect![[r#"
            schedule::dependence (100): the loop `i` runs in any order since an earlier step, and would not be allowed to
              `for j in range(2):` reads `x[i + x.cache.d0]` at i = 0, x.cache.d0 = 1, then writes `x[i + x.cache.back.d0]` at i = 1, x.cache.back.d0 = 0
              note: what was read is overwritten (WAR), carried by the loop `i`
              note: the element is x[1] with n = 2
              help: take that step first, and make loops parallel at the end
        "#]],
    );
    check(
        "
def f(x: inout[f32[n, 4]]):
    for i in range(n):
        for j in range(4):
            x[i, j] = x[i, 3 - j]
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "cache", args!["j", "x"]).map(drop)
        },
        expect![[r#"
            for i in range(n):  # parallel
                x_cache = empty((1, 4), f32)
                for x.cache.d1 in range(4):
                    x_cache[0, x.cache.d1] = x[i, x.cache.d1]
                for j in range(4):
                    x_cache[0, j] = x_cache[0, 3 - j]
                for x.cache.back.d1 in range(4):
                    x[i, x.cache.back.d1] = x_cache[0, x.cache.back.d1]
        "#]],
    );
}

#[test]
fn refuses_what_is_no_tensor_of_the_statement() {
    let text = "
def f(x: inout[f32[n]], y: f32[n]):
    for i in range(n):
        t = y[i]
        x[i] = t
    for k in range(n):
        t = y[k]
        x[k] += t
";
    not_cached(
        text,
        "i",
        "t#1",
        expect![[r#"
        schedule::illegal (1): `t` is declared inside the statement
          `for i in range(n):` this statement
    "#]],
    );
    not_cached(
        text,
        "i",
        "t#2",
        expect![[r#"
        schedule::illegal (1): `t` is not used in the statement
          `for i in range(n):` this statement
    "#]],
    );
    not_cached(
        text,
        "i",
        "t",
        expect![[r#"
        schedule::target (0): `t` names 2 tensors
          `t = y[i]` number 1
          `t = y[k]` number 2
          help: write "t#1", "t#2"
    "#]],
    );
    not_cached(
        text,
        "i",
        "z",
        expect![[r#"
        schedule::target (0): there is no tensor `z`
          help: there are x, y, t
    "#]],
    );
    not_cached(
        text,
        "i",
        "t#3",
        expect![[r#"
        schedule::target (0): there are 2 tensors `t`, counted from 1, and this asks for number 3
    "#]],
    );
    refused(
        text,
        |s| call(s, "cache", args!["i", list(&["x"])]).map(drop),
        expect![[r#"
        schedule::target (0): a tensor is expected, and this is a list of 1
          help: name it ("t"), or use what an earlier step returned
    "#]],
    );
}

#[test]
fn refuses_to_fetch_what_was_never_written() {
    not_cached(
        "
def f(x: f32[n]) -> f32[n]:
    y = empty((n,), f32)
    for i in range(n):
        if x[i] > 0:
            y[i] = x[i]
    return y
",
        "i",
        "y",
        expect![[r#"
            schedule::illegal (2): elements of `y` that may not have been written yet would be fetched before the statement
              `for i in range(n):` this statement
              help: write all of `y` before it (`zeros` does), or choose a statement that does so itself
        "#]],
    );
    // Only a part was written before.
    not_cached(
        "
def f(x: f32[n]) -> f32[n]:
    y = empty((n,), f32)
    for i in range(n // 2):
        y[i] = 0
    for j in range(n):
        y[j] = x[j] if j > 3 else y[0]
    return y
",
        "j",
        "y",
        expect![[r#"
            schedule::illegal (2): elements of `y` that may not have been written yet would be fetched before the statement
              `for j in range(n):` this statement
              help: write all of `y` before it (`zeros` does), or choose a statement that does so itself
        "#]],
    );
    // Written by a loop that was split.
    check(
        "
def f(x: f32[n]) -> f32[n]:
    y = empty((n,), f32)
    for i in range(n):
        y[i] = 0
    for j in range(n):
        if x[j] > 0:
            y[j] = x[j]
    return y
",
        |s| {
            call(s, "split", args!["i", 4])?;
            call(s, "cache", args!["j", "y"]).map(drop)
        },
        expect![[r#"
            y = empty((n,), f32)
            for i_o in range((n + 3) // 4):
                for i_i in range(4):
                    if i_o * 4 + i_i < n:
                        y[i_o * 4 + i_i] = 0.0
            y_cache = empty((n,), f32)
            for y.cache.d0 in range(n):
                y_cache[y.cache.d0] = y[y.cache.d0]
            for j in range(n):
                if x[j] > 0.0:
                    y_cache[j] = x[j]
            for y.cache.back.d0 in range(n):
                y[y.cache.back.d0] = y_cache[y.cache.back.d0]
            return y
        "#]],
    );
}

#[test]
fn longformer() {
    example(
        "longformer/longformer.ft",
        "attention",
        &[("heads", 2), ("n", 70), ("d", 3)],
        |s| {
            // The window of keys and values of each token, and the row that it makes.
            call(s, "cache", args!["j#1", "k"])?;
            call(s, "cache", args!["j#2", "v"])?;
            call(s, "cache", args!["j#2", "y#1"]).map(drop)
        },
        expect![[r#"
            """Attention of each token to its window, with nothing stored but one row of scores."""
            y = empty((heads, n, d), f32)
            for y.d0 in range(heads):
                for y.d1 in range(n):
                    for y.d2 in range(d):
                        y[y.d0, y.d1, y.d2] = 0.0
            for h in range(heads):
                for i in range(n):
                    score = empty((65,), f32)
                    for score.d0 in range(65):
                        score[score.d0] = -inf
                    k_cache = empty((1, 65, d), f32)
                    for k.cache.d1 in range(65):
                        for k.cache.d2 in range(d):
                            if 0 <= i - 32 + k.cache.d1 and i - 32 + k.cache.d1 < n:
                                k_cache[0, k.cache.d1, k.cache.d2] = k[h, i - 32 + k.cache.d1, k.cache.d2]
                    for j in range(65):
                        if 0 <= i + j - 32 and i + j - 32 < n:
                            x = empty((d,), f32)
                            for x.d0 in range(d):
                                x[x.d0] = q[h, i, x.d0] * k_cache[0, j, x.d0]
                            y_1 = empty((), f32)
                            acc = empty((), f64)
                            acc = 0.0
                            for i_1 in range(d):
                                acc += cast(x[i_1], f64)
                            y_1 = cast(acc, f32)
                            score[j] = y_1 / cast(sqrt(1.0 * cast(d, f64)), f32)
                    del k_cache
                    weight = empty((65,), f32)
                    m = empty((), f32)
                    m = -inf
                    for k_1 in range(65):
                        m = max(m, score[k_1])
                    s = empty((), f64)
                    s = 0.0
                    for k_1 in range(65):
                        weight[k_1] = exp(score[k_1] - m)
                        s += cast(weight[k_1], f64)
                    r = empty((), f32)
                    r = cast(1.0 / s, f32)
                    for k_1 in range(65):
                        weight[k_1] *= r
                    v_cache = empty((1, 65, d), f32)
                    for v.cache.d1 in range(65):
                        for v.cache.d2 in range(d):
                            if 0 <= i - 32 + v.cache.d1 and i - 32 + v.cache.d1 < n:
                                v_cache[0, v.cache.d1, v.cache.d2] = v[h, i - 32 + v.cache.d1, v.cache.d2]
                    y_cache = empty((1, 1, d), f32)
                    for y.cache.d2 in range(d):
                        y_cache[0, 0, y.cache.d2] = y[h, i, y.cache.d2]
                    for j in range(65):
                        if 0 <= i + j - 32 and i + j - 32 < n:
                            for y.d0 in range(d):
                                y_cache[0, 0, y.d0] += weight[j] * v_cache[0, j, y.d0]
                    for y.cache.back.d2 in range(d):
                        y[h, i, y.cache.back.d2] = y_cache[0, 0, y.cache.back.d2]
            return y
        "#]],
    );
}

#[test]
fn convolution() {
    example(
        "conv/conv.ft",
        "layer",
        &[("batch", 2), ("c", 3), ("h", 6), ("w", 7), ("channels", 2), ("kh", 3), ("kw", 2)],
        |s| {
            call(s, "cache", args!["ci", "x"])?;
            call(s, "cache", args!["ci", "kernel"])?;
            call(s, "cache_reduction", args!["ci", "y"]).map(drop)
        },
        expect![[r#"
            """A layer of a neural network: every output channel looks at every input channel. No padding."""
            y = empty((batch, channels, h - kh + 1, w - kw + 1), f32)
            for y.d0 in range(batch):
                for y.d1 in range(channels):
                    for y.d2 in range(h - kh + 1):
                        for y.d3 in range(w - kw + 1):
                            y[y.d0, y.d1, y.d2, y.d3] = 0.0
            for b in range(batch):
                for o in range(channels):
                    for i in range(h - kh + 1):
                        for j in range(w - kw + 1):
                            x_cache = empty((1, c, kh, kw), f32)
                            for x.cache.d1 in range(c):
                                for x.cache.d2 in range(kh):
                                    for x.cache.d3 in range(kw):
                                        x_cache[0, x.cache.d1, x.cache.d2, x.cache.d3] = x[b, x.cache.d1, i + x.cache.d2, j + x.cache.d3]
                            kernel_cache = empty((1, c, kh, kw), f32)
                            for kernel.cache.d1 in range(c):
                                for kernel.cache.d2 in range(kh):
                                    for kernel.cache.d3 in range(kw):
                                        kernel_cache[0, kernel.cache.d1, kernel.cache.d2, kernel.cache.d3] = kernel[o, kernel.cache.d1, kernel.cache.d2, kernel.cache.d3]
                            y_partial = empty((1, 1, 1, 1), f32)
                            y_partial[0, 0, 0, 0] = 0.0
                            for ci in range(c):
                                for ki in range(kh):
                                    for kj in range(kw):
                                        y_partial[0, 0, 0, 0] += x_cache[0, ci, ki, kj] * kernel_cache[0, ci, ki, kj]
                            y[b, o, i, j] += y_partial[0, 0, 0, 0]
            return y
        "#]],
    );
    example(
        "conv/conv.ft",
        "sobel",
        &[("h", 6), ("w", 7)],
        |s| call(s, "cache", args!["i#1", "image"]).map(drop),
        expect![[r#"
            """How fast the picture changes, and so where its edges are."""
            edges = empty((h, w), u8)
            across = empty((3, 3), f32)
            for across.d0 in range(3):
                for across.d1 in range(3):
                    across[across.d0, across.d1] = 0.0
            across[0, 0] = -1.0
            across[0, 2] = 1.0
            across[1, 0] = -2.0
            across[1, 2] = 2.0
            across[2, 0] = -1.0
            across[2, 2] = 1.0
            dx = empty((h, w), f32)
            for result.d0 in range(h):
                for result.d1 in range(w):
                    dx[result.d0, result.d1] = 0.0
            for y in range(h):
                for x in range(w):
                    image_cache = empty((h, w), u8)
                    for image.cache.d0 in range(h):
                        for image.cache.d1 in range(w):
                            image_cache[image.cache.d0, image.cache.d1] = image[image.cache.d0, image.cache.d1]
                    for i in range(3):
                        for j in range(3):
                            dx[y, x] += across[i, j] * cast(image_cache[min(max(y + i - 1, 0), h - 1), min(max(x + j - 1, 0), w - 1)], f32)
            y = empty((3, 3), f32)
            for i in range(3):
                for i_1 in range(3):
                    y[i, i_1] = across[i_1, i]
            dy = empty((h, w), f32)
            for result.d0 in range(h):
                for result.d1 in range(w):
                    dy[result.d0, result.d1] = 0.0
            for y_1 in range(h):
                for x in range(w):
                    for i in range(3):
                        for j in range(3):
                            dy[y_1, x] += y[i, j] * cast(image[min(max(y_1 + i - 1, 0), h - 1), min(max(x + j - 1, 0), w - 1)], f32)
            values = empty((h, w), f32)
            for values.d0 in range(h):
                for values.d1 in range(w):
                    values[values.d0, values.d1] = sqrt(dx[values.d0, values.d1] * dx[values.d0, values.d1] + dy[values.d0, values.d1] * dy[values.d0, values.d1])
            for edges.d0 in range(h):
                for edges.d1 in range(w):
                    edges[edges.d0, edges.d1] = cast(min(max(round(values[edges.d0, edges.d1]), 0.0), 255.0), u8)
            return edges
        "#]],
    );
}

#[test]
fn bounds_do_not_read_what_may_hold_nothing() {
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
