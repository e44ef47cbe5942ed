use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::expect;

#[test]
fn makes_scalars_of_small_arrays() {
    check(
        "
def f(x: f32[n], y: inout[f32[n]]):
    for i in range(n):
        l = zeros((3,), f32)
        for k in range(2):
            l[k] = x[i] * k
        y[i] = l[0] + l[1] + l[2]
",
        |s| {
            call(s, "scalarize", args![])?;
            call(s, "vectorize", args!["i"]).map(drop)
        },
        expect![[r#"
            for i in range(n):  # vectorize
                l_0 = empty((), f32)
                l_1 = empty((), f32)
                l_2 = empty((), f32)
                l_0 = 0.0
                l_1 = 0.0
                l_2 = 0.0
                l_0 = x[i] * 0.0
                l_1 = x[i] * 1.0
                y[i] = l_0 + l_1 + l_2
        "#]],
    );
}

#[test]
fn refuses() {
    refused(
        "
def f(x: f32[n], k: i32[n], y: inout[f32[n]]):
    for i in range(n):
        l = zeros((3,), f32)
        l[k[i]] = x[i]
        y[i] = l[0]
",
        |s| call(s, "scalarize", args![]).map(drop),
        expect![[r#"
            schedule::illegal (1): no array in a loop can be replaced by scalars
              help: use only numbers and iterators of short loops as subscripts: see `taffeta doc scalarize`
        "#]],
    );
}

/// Checks that an array stays if a loop that reads it stays for the sake of another one.
#[test]
fn leaves_arrays_read_by_remaining_loops() {
    check(
        "
def f(x: f32[n], y: inout[f32[n]], p: i32[n]):
    for i in range(n):
        u = empty((2,), f32)
        u[0] = x[i]
        u[1] = x[i] * 2
        l = empty((2,), f32)
        for k in range(2):
            l[k] = u[(k + 1) % 2]
        v = empty((2,), f32)
        v[0] = l[p[i]]
        y[i] = v[0]
",
        |s| call(s, "scalarize", args![]).map(drop),
        expect![[r#"
            for i in range(n):
                u = empty((2,), f32)
                u[0] = x[i]
                u[1] = x[i] * 2.0
                l = empty((2,), f32)
                for k in range(2):
                    l[k] = u[(k + 1) % 2]
                v_0 = empty((), f32)
                v_0 = l[cast(p[i], i64)]
                y[i] = v_0
        "#]],
    );
}
