use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::expect;

const TEXT: &str = "
def f(x: inout[f32[n]], k: i32[n]):
    t = zeros((n,), f32)
    u = zeros((64,), f32)
    a: f64 = 0
    for i in range(n):
        v = zeros((i * i + 1,), f32)
        w = zeros((n,), f32)
        big = zeros((5000,), f32)
        x[i] = x[i] + t[i] + u[i % 64] + v[i] + w[i] + big[i] + a
";

#[test]
fn every_place() {
    check(
        TEXT,
        |s| {
            call(s, "set_mem_type", args!["t", "heap"])?;
            call(s, "set_mem_type", args!["u", "arena"])?;
            call(s, "set_mem_type", args!["a", "register"])?;
            call(s, "set_mem_type", args!["v", "heap"])?;
            call(s, "set_mem_type", args!["w", "arena"])?;
            call(s, "set_mem_type", args!["w", "heap"])?;
            let x = call(s, "cache", args!["i", "x"])?;
            call(s, "set_mem_type", args![x[0].clone(), "arena"]).map(drop)
        },
        expect![[r#"
            t = empty((n,), f32)  # heap
            for t.d0 in range(n):
                t[t.d0] = 0.0
            u = empty((64,), f32)  # arena
            for u.d0 in range(64):
                u[u.d0] = 0.0
            a = empty((), f64)  # register
            a = 0.0
            x_cache = empty((n,), f32)  # arena
            for x.cache.d0 in range(n):
                x_cache[x.cache.d0] = x[x.cache.d0]
            for i in range(n):
                v = empty((i * i + 1,), f32)  # heap
                for v.d0 in range(i * i + 1):
                    v[v.d0] = 0.0
                w = empty((n,), f32)  # heap
                for w.d0 in range(n):
                    w[w.d0] = 0.0
                big = empty((5000,), f32)
                for big.d0 in range(5000):
                    big[big.d0] = 0.0
                x_cache[i] = cast(cast(x_cache[i] + t[i] + u[i % 64] + v[i] + w[i] + big[i], f64) + a, f32)
            for x.cache.back.d0 in range(n):
                x[x.cache.back.d0] = x_cache[x.cache.back.d0]
        "#]],
    );
    check(
        TEXT,
        |s| call(s, "set_mem_type", args!["u", "stack"]).map(drop),
        expect![[r#"
            t = empty((n,), f32)
            for t.d0 in range(n):
                t[t.d0] = 0.0
            u = empty((64,), f32)  # stack
            for u.d0 in range(64):
                u[u.d0] = 0.0
            a = empty((), f64)
            a = 0.0
            for i in range(n):
                v = empty((i * i + 1,), f32)
                for v.d0 in range(i * i + 1):
                    v[v.d0] = 0.0
                w = empty((n,), f32)
                for w.d0 in range(n):
                    w[w.d0] = 0.0
                big = empty((5000,), f32)
                for big.d0 in range(5000):
                    big[big.d0] = 0.0
                x[i] = cast(cast(x[i] + t[i] + u[i % 64] + v[i] + w[i] + big[i], f64) + a, f32)
        "#]],
    );
}

#[test]
fn refuses() {
    let not = |tensor: &str, place: &str, expected| {
        refused(TEXT, |s| call(s, "set_mem_type", args![tensor, place]).map(drop), expected);
    };
    not(
        "x",
        "stack",
        expect![[r#"
        schedule::illegal (1): `x` is a parameter or a result, which the caller allocates
          help: use `t = s.cache(…, "x")`, and take this step on `t`
    "#]],
    );
    not(
        "u",
        "register",
        expect![[r#"
        schedule::illegal (2): `u` is an array, and cannot be kept in a register
          `u = zeros((64,), f32)` declared here
          help: use "stack": a small array whose indices are constants (after `unroll`) ends up in registers
    "#]],
    );
    not(
        "a",
        "stack",
        expect![[r#"
        schedule::illegal (3): `a` is a scalar, and can only be in a register
          `a: f64 = 0` declared here
          help: use "register"
    "#]],
    );
    not(
        "t",
        "stack",
        expect![[r#"
        schedule::illegal (4): the size of `t` is not a constant
          `t = zeros((n,), f32)` declared here
          help: use "arena" or "heap"
    "#]],
    );
    not(
        "big",
        "stack",
        expect![[r#"
        schedule::illegal (4): `big` has 20000 bytes, which do not fit on the stack beside 256 bytes around it
          `big = zeros((5000,), f32)` declared here
          help: use "arena" or "heap": at most 16384 bytes fit on the stack
    "#]],
    );
    not(
        "v",
        "arena",
        expect![[r#"
            schedule::illegal (5): the shape of `v` cannot be bounded by the program's sizes alone
              `v = zeros((i * i + 1,), f32)` declared here
              help: use "heap"
        "#]],
    );
    not(
        "t",
        "gpu",
        expect![[r#"
        schedule::argument (0): expected a memory type, found `gpu`
          help: use "register", "stack", "heap" or "arena"
    "#]],
    );
}

#[test]
fn stack_space_is_limited_in_total() {
    let mut text = String::from("\ndef f(x: inout[f32[n]]):\n");
    for k in 0..9 {
        text += &format!("    t{k} = zeros((4096,), f32)\n");
    }
    text += "    for i in range(n):\n        x[i] = t0[i]";
    for k in 1..9 {
        text += &format!(" + t{k}[i]");
    }
    text += "\n";
    check(
        &text,
        |s| call(s, "set_mem_type", args!["t7", "stack"]).map(drop),
        expect![[r#"
            t0 = empty((4096,), f32)
            for t0.d0 in range(4096):
                t0[t0.d0] = 0.0
            t1 = empty((4096,), f32)
            for t1.d0 in range(4096):
                t1[t1.d0] = 0.0
            t2 = empty((4096,), f32)
            for t2.d0 in range(4096):
                t2[t2.d0] = 0.0
            t3 = empty((4096,), f32)
            for t3.d0 in range(4096):
                t3[t3.d0] = 0.0
            t4 = empty((4096,), f32)
            for t4.d0 in range(4096):
                t4[t4.d0] = 0.0
            t5 = empty((4096,), f32)
            for t5.d0 in range(4096):
                t5[t5.d0] = 0.0
            t6 = empty((4096,), f32)
            for t6.d0 in range(4096):
                t6[t6.d0] = 0.0
            t7 = empty((4096,), f32)  # stack
            for t7.d0 in range(4096):
                t7[t7.d0] = 0.0
            t8 = empty((4096,), f32)
            for t8.d0 in range(4096):
                t8[t8.d0] = 0.0
            for i in range(n):
                x[i] = t0[i] + t1[i] + t2[i] + t3[i] + t4[i] + t5[i] + t6[i] + t7[i] + t8[i]
        "#]],
    );
    refused(
        &text,
        |s| call(s, "set_mem_type", args!["t8", "stack"]).map(drop),
        expect![[r#"
        schedule::illegal (4): `t8` has 16384 bytes, which do not fit on the stack beside 131072 bytes around it
          `t8 = zeros((4096,), f32)` declared here
          help: use "arena" or "heap": at most 0 bytes fit on the stack
    "#]],
    );
}
