//! Storage of parameters: composed and named formats, and refusals.

use super::check;
use expect_test::{Expect, expect};

/// Checks a matrix with an annotation, below other lines of the file.
fn stored(above: &str, storage: &str, expect: Expect) {
    check(&format!("{above}\ndef f(A: f64[n, m] @ {storage}):\n    return A[0, 0]\n"), expect);
}

#[test]
fn formats_of_parameters() {
    stored(
        "",
        "csr",
        expect![[r#"
        def f(A: f64[n, m] @ format(dense, compressed)) -> f64:
            out = empty((), f64)
            out = A[0, 0]
            return out
    "#]],
    );
    stored(
        "",
        "csc",
        expect![[r#"
        def f(A: f64[n, m] @ format(dense, compressed, order=(1, 0))) -> f64:
            out = empty((), f64)
            out = A[0, 0]
            return out
    "#]],
    );
    stored(
        "",
        "coo",
        expect![[r#"
        def f(A: f64[n, m] @ format(compressed(unique=False), singleton)) -> f64:
            out = empty((), f64)
            out = A[0, 0]
            return out
    "#]],
    );
    check(
        "def f(A: f64[n, n] @ symmetric):\n    return A[0, 0]\n",
        expect![[r#"
        def f(A: f64[n, n] @ format(dense, symmetric)) -> f64:
            out = empty((), f64)
            out = A[0, 0]
            return out
    "#]],
    );
    check(
        "def f(A: f64[n, n] @ upper_triangular):\n    return A[0, 0]\n",
        expect![[r#"
        def f(A: f64[n, n] @ format(dense, triangular(upper=True))) -> f64:
            out = empty((), f64)
            out = A[0, 0]
            return out
    "#]],
    );
    stored(
        "",
        "format(dense, dense)",
        expect![[r#"
        def f(A: f64[n, m]) -> f64:
            out = empty((), f64)
            out = A[0, 0]
            return out
    "#]],
    );
    stored(
        "",
        "format(dense, compressed(index=i64), fill=inf)",
        expect![[r#"
        def f(A: f64[n, m] @ format(dense, compressed(index=i64), fill=inf)) -> f64:
            out = empty((), f64)
            out = A[0, 0]
            return out
    "#]],
    );
    stored(
        "",
        "format(compressed(unique=False, ordered=False), singleton(index=u8), fill=0)",
        expect![[r#"
        def f(A: f64[n, m] @ format(compressed(unique=False, ordered=False), singleton(index=u8))) -> f64:
            out = empty((), f64)
            out = A[0, 0]
            return out
    "#]],
    );
    stored(
        "mine = format(hashed, dense, order=(1, 0))\n",
        "mine",
        expect![[r#"
        def f(A: f64[n, m] @ format(hashed, dense, order=(1, 0))) -> f64:
            out = empty((), f64)
            out = A[0, 0]
            return out
    "#]],
    );
    check(
        "def f(A: f32[n, m, k] @ csf, b: bool[n] @ format(bitmap, fill=True)):\n    return A[0, 0, 0], b[0]\n",
        expect![[r#"
        def f(A: f32[n, m, k] @ format(compressed, compressed, compressed), b: bool[n] @ format(bitmap, fill=True)) -> (f32, bool):
            out = empty((), f32)
            out1 = empty((), bool)
            out = A[0, 0, 0]
            out1 = b[0]
            return out, out1
    "#]],
    );
}

/// Checks that names of the program hide names of storage, except for levels in `format(…)`: no value of a program is a
/// level.
#[test]
fn names_of_the_program_hide_formats() {
    check(
        "def banded(A: f64[n, m] @ band):\n    return A[0, 0]\n",
        expect![[r#"
        def banded(A: f64[n, m] @ format(dense, banded)) -> f64:
            out = empty((), f64)
            out = A[0, 0]
            return out
    "#]],
    );
    check(
        "def f(point: f64[n], band: f64[n]):\n    rle = point[0] + band[0]\n    return rle\n",
        expect![[r#"
        def f(point: f64[n], band: f64[n]) -> f64:
            rle = empty((), f64)
            rle = point[0] + band[0]
            return rle
    "#]],
    );
    stored(
        "csr = 3\n",
        "csr",
        expect![[r#"
        [storage::format] expected a format after `@`, found an integer
          at t.ft:3 `csr`
          help: write `csr`, or compose one: `format(dense, compressed)`
    "#]],
    );
}

#[test]
fn invalid_formats() {
    stored(
        "",
        "format()",
        expect![[r#"
        [storage::level] `format` needs a level
          at t.ft:2 `format()`
          help: write `format(dense, compressed)`
    "#]],
    );
    stored(
        "",
        "format(dense)",
        expect![[r#"
        [storage::level] a format of one level cannot store 2 dimensions
          at t.ft:2 `format(dense)`
          help: give it one level for each dimension
    "#]],
    );
    stored(
        "",
        "format(dense, 3)",
        expect![[r#"
            [storage::level] `format` takes levels, found an integer
              at t.ft:2 `3`
              help: the levels are dense, compressed, singleton, hashed, bytemap, bitmap, banded, ragged, blocklist, runlength, packbits, triangular, symmetric, point, range, offset, squeezed, sliced
        "#]],
    );
    stored(
        "",
        "format(dense, singleton)",
        expect![[r#"
        [storage::level] `singleton` needs a level above it that is not unique
          at t.ft:2 `singleton`
          help: write `compressed(unique=False)` above it, or `point` for at most one coordinate
    "#]],
    );
    stored(
        "",
        "format(compressed(unique=False), compressed)",
        expect![[r#"
        [storage::level] `compressed` cannot be below a level that is not unique (`compressed`): it is not branchless, and duplicates could not be told apart
          at t.ft:2 `compressed`
          help: write `singleton` below `compressed(unique=False)`
    "#]],
    );
    stored(
        "",
        "format(dense, compressed(unique=False))",
        expect![[r#"
        [storage::level] the last level, `compressed`, is not unique: an element would be stored twice
          at t.ft:2 `compressed(unique=False)`
          help: leave out `unique=False` there
    "#]],
    );
    stored(
        "",
        "format(dense, triangular)",
        expect![[r#"
        [storage::square] `triangular` needs a square matrix, found the sizes `n` and `m`
          at t.ft:2 `format(dense, triangular)`
          help: give both dimensions the size `n`
    "#]],
    );
    stored(
        "",
        "format(compressed, symmetric)",
        expect![[r#"
        [storage::level] `symmetric` stores half of a matrix and needs a `dense` level above it
          at t.ft:2 `symmetric`
          help: write `format(dense, symmetric)`
    "#]],
    );
    stored(
        "",
        "format(runlength, dense)",
        expect![[r#"
        [storage::level] `runlength` is not injective: it stores one value for several coordinates
          at t.ft:2 `runlength`
          help: make it the last level
    "#]],
    );
    stored(
        "",
        "format(dense, compressed, order=(1, 2))",
        expect![[r#"
        [storage::level] `order=` names the dimensions 1, 2, but there are 2
          at t.ft:2 `format(dense, compressed, order=(1, 2))`
          help: name each dimension once: `order=(1, 0)`
    "#]],
    );
    stored(
        "",
        "format(dense, compressed, order=1)",
        expect![[r#"
            [storage::order] `order=` names 1 dimension, but `format` has 2 levels
              at t.ft:2 `1`
        "#]],
    );
    stored(
        "",
        "format(dense, compressed, order=n)",
        expect![[r#"
        [storage::order] `order=` takes dimensions, counted from 0, found a scalar
          at t.ft:2 `n`
          help: write `order=(1, 0)`
    "#]],
    );
    stored(
        "",
        "format(dense, compressed, remap=f)",
        expect![[r#"
            [storage::remap] invalid remapping: the expression is not supported
              at t.ft:3 `A[0, 0]`
              help: use integers, dimensions, `+ - * // % << >> & | ^`, `counter(…)`, `morton(…)`, `order(…)`, and names for such values
        "#]],
    );
    stored(
        "",
        "format(dense, compressed, fill=A)",
        expect![[r#"
        [name::unknown] there is no `A` here
          at t.ft:2 `A`
    "#]],
    );
    stored(
        "",
        "format(dense, compressed, width=3)",
        expect![[r#"
        [storage::option] `format` has no option `width`
          at t.ft:2 `3`
          help: its options are order, remap, fill
    "#]],
    );
    stored(
        "",
        "f64",
        expect![[r#"
        [storage::format] expected a format after `@`, found the type `f64`
          at t.ft:2 `f64`
          help: write `csr`, or compose one: `format(dense, compressed)`
    "#]],
    );
    stored(
        "",
        "csr(3)",
        expect![[r#"
        [storage::call] the format `csr` takes no options
          at t.ft:2 `csr(3)`
          help: give options to levels: `format(dense, compressed(index=i64))`
    "#]],
    );
    stored(
        "",
        "dense",
        expect![[r#"
        [storage::format] expected a format after `@`, found the level `dense`
          at t.ft:2 `dense`
          help: write `csr`, or compose one: `format(dense, compressed)`
    "#]],
    );
    check(
        "def f(A: f64[n] @ csr):\n    return A[0]\n",
        expect![[r#"
            [storage::rank] `csr` is not a format of tensors of 1 dimension
              at t.ft:1 `csr`
              help: compose one: `format(dense, compressed, …)`
        "#]],
    );
    check(
        "def f(A: i32[n, m] @ format(dense, compressed, fill=0.5)):\n    return A[0, 0]\n",
        expect![[r#"
        [type::store] cannot store a float into `i32` without a conversion
          at t.ft:1 `format(dense, compressed, fill=0.5)`
          help: write `cast(…, i32)`, which truncates, or make the target a float
    "#]],
    );
}

#[test]
fn options_of_levels() {
    stored(
        "",
        "format(dense, compressed(index=f32))",
        expect![[r#"
        [storage::option] expected u8, u16, i32 or i64 as the type of index arrays, found f32
          at t.ft:2 `f32`
          help: leave out `index=` for i32 or i64
    "#]],
    );
    stored(
        "",
        "format(dense, compressed(sorted=False))",
        expect![[r#"
        [storage::option] `compressed` has no option `sorted` that takes a bool
          at t.ft:2 `False`
          help: its options are unique=False, ordered=False, index=i64
    "#]],
    );
    stored(
        "",
        "format(dense, compressed(False))",
        expect![[r#"
        [storage::option] expected an option of `compressed` by name, found a bool
          at t.ft:2 `False`
          help: its options are unique=False, ordered=False, index=i64
    "#]],
    );
    stored(
        "",
        "format(dense(index=i64), compressed)",
        expect![[r#"
        [storage::option] `dense` has no option `index` that takes the type `i64`
          at t.ft:2 `i64`
          help: it has no options
    "#]],
    );
    stored(
        "",
        "format(dense, hashed(unique=False))",
        expect![[r#"
        [storage::option] `hashed` has no option `unique` that takes a bool
          at t.ft:2 `False`
          help: its options are index=i64
    "#]],
    );
    stored(
        "",
        "format(dense, triangular(upper=1))",
        expect![[r#"
        [storage::option] `triangular` has no option `upper` that takes an integer
          at t.ft:2 `1`
          help: its options are upper=True
    "#]],
    );
}

/// Checks that an argument has the storage of its parameter.
#[test]
fn arguments() {
    let calls = |storage: &str| {
        format!("def g(B: f64[n, m] @ {storage}):\n    return B[0, 0]\n\ndef f(A: f64[n, m] @ csr):\n    return g(A)\n")
    };
    check(
        &calls("csr"),
        expect![[r#"
        def f(A: f64[n, m] @ format(dense, compressed)) -> f64:
            out = empty((), f64)
            out = A[0, 0]
            return out
    "#]],
    );
    check(
        &calls("csc"),
        expect![[r#"
            def f(A: f64[n, m] @ format(dense, compressed)) -> f64:
                out = empty((), f64)
                B: f64[n, m] @ format(dense, compressed, order=(1, 0)) = empty((n, m), f64)
                for B.d0 in range(n):
                    for B.d1 in range(m):
                        B[B.d0, B.d1] = 0.0
                for B.d0 in range(n):
                    for B.d1 in range(m):
                        B[B.d0, B.d1] = A[B.d0, B.d1]
                out = B[0, 0]
                return out
        "#]],
    );
}

/// Checks that a parameter may share the pattern of an earlier one, and that arguments must do so.
#[test]
fn parameters_share_patterns() {
    check(
        "def f(A: f64[n, m] @ csr, B: f64[n, m] @ pattern(A)) -> f64:
    return A[0, 0] * B[0, 0]
",
        expect![[r#"
            def f(A: f64[n, m] @ format(dense, compressed), B: f64[n, m] @ pattern(A)) -> f64:
                out = empty((), f64)
                out = A[0, 0] * B[0, 0]
                return out
        "#]],
    );
    check(
        "def f(B: f64[n] @ pattern(A), A: f64[n] @ hashmap) -> f64:\n    return B[0]\n",
        expect![[r#"
        [name::unknown] there is no `A` here
          at t.ft:1 `A`
    "#]],
    );
    check(
        "def f(A: f64[n] @ hashmap, B: f64[m] @ pattern(A)) -> f64:\n    return B[0]\n",
        expect![[r#"
        [storage::pattern] cannot store a tensor of shape [m] with the pattern of `A`, whose shape is [n]
          at t.ft:1 `pattern(A)`
    "#]],
    );
    check(
        "def g(A: f64[n] @ hashmap, B: f64[n] @ pattern(A)) -> f64:
    return A[0] * B[0]

def f(A: f64[n] @ hashmap, B: f64[n] @ hashmap) -> f64:
    return g(A, B)
",
        expect![[r#"
            [storage::pattern] `B` needs the pattern of `A`, but its argument has another pattern
              at t.ft:5 `B`
              note: in `g`, called at t.ft:5
              help: store the argument with `@ pattern(A)`
        "#]],
    );
    check(
        "def g(A: f64[n] @ hashmap, B: f64[n] @ pattern(A)) -> f64:
    return A[0] * B[0]

def f(C: f64[n] @ hashmap, D: f64[n] @ pattern(C)) -> f64:
    return g(C, D) + g(D, C) + g(C, C)
",
        expect![[r#"
            def f(C: f64[n] @ format(hashed), D: f64[n] @ pattern(C)) -> f64:
                out = empty((), f64)
                out = C[0] * D[0] + D[0] * C[0] + C[0] * C[0]
                return out
        "#]],
    );
}
