//! Bounds checks of indices into parts of tensors and computed values.

use super::check;
use expect_test::expect;

/// Checks that elements beside a part are out of reach: for reads, for writes, and for index tensors.
#[test]
fn indices_into_parts_are_checked_against_the_part() {
    check(
        "def last(v, k):
    return v[v.shape[0] + k]

def f(x: inout[f32[n]], idx: i32[m], k: i64) -> f32[m]:
    x[1:4][k] = last(x[0:3], k)
    return x[1:4][idx]
",
        expect![[r#"
            def f(x: inout[f32[n]], idx: i32[m], k: i64) -> f32[m]:
                out = empty((m,), f32)
                assert 3 <= n, f"invalid slice from 0 to 3: dimension 0 has size {n}"
                assert 0 <= k + 3 and k + 3 < 3, f"index {k + 3} is out of range: the dimension has size 3"
                assert 4 <= n, f"invalid slice from 1 to 4: dimension 0 has size {n}"
                assert 0 <= k and k < 3, f"index {k} is out of range: the dimension has size 3"
                x[k + 1] = x[k + 3]
                for index.d0 in range(m):
                    assert 0 <= cast(idx[index.d0], i64) and cast(idx[index.d0], i64) < 3, f"index {cast(idx[index.d0], i64)} is out of range: the dimension has size 3"
                for out.d0 in range(m):
                    out[out.d0] = x[cast(idx[out.d0], i64) + 1]
                return out
        "#]],
    );
}

#[test]
fn indices_into_computed_values_are_checked() {
    check(
        "def f(x: f32[n], y: f32[m, m], k: i64) -> f32:
    return (x[1:4] + 1)[k] + arange(5)[k] + y[:, None][k, k, k] + (x * 2)[k]
",
        expect![[r#"
            def f(x: f32[n], y: f32[m, m], k: i64) -> f32:
                out = empty((), f32)
                assert 4 <= n, f"invalid slice from 1 to 4: dimension 0 has size {n}"
                assert 0 <= k and k < 3, f"index {k} is out of range: the dimension has size 3"
                assert 0 <= k and k < 5, f"index {k} is out of range: the dimension has size 5"
                assert 0 <= k and k < 1, f"index {k} is out of range: the dimension has size 1"
                out = x[k + 1] + 1.0 + cast(k, f32) + y[k, k] + x[k] * 2.0
                return out
        "#]],
    );
}

/// Checks that no assertion is made for iterators of loops over parts, which are provably in range.
#[test]
fn provable_indices_are_not_asserted() {
    check(
        "def f(x: f32[n], idx: i32[m]) -> f32:
    s: f32 = 0.0
    part = x[1:4]
    for i in range(3):
        s += part[i] + part[2 - i] + (x + 1)[i]
    for i in range(m):
        for j in range(i, m):
            s += x[idx][j] + (idx * 2)[m - 1 - j] + arange(m)[j - i]
    return s
",
        expect![[r#"
            def f(x: f32[n], idx: i32[m]) -> f32:
                s = empty((), f32)
                s = 0.0
                assert 4 <= n, f"invalid slice from 1 to 4: dimension 0 has size {n}"
                part = empty((3,), f32)
                for part.d0 in range(3):
                    part[part.d0] = x[part.d0 + 1]
                for i in range(3):
                    s += part[i] + part[2 - i] + (x[i] + 1.0)
                for i in range(m):
                    for j in range(i, m):
                        s += x[cast(idx[j], i64)] + cast(idx[m - 1 - j] * 2, f32) + cast(j - i, f32)
                return s
        "#]],
    );
}
