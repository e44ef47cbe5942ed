//! Primitives as Rust methods.

use crate::primitives::common::{body, entry, same};
use expect_test::expect;
use taffeta_ast::{Distribution, Parallel};
use taffeta_schedule::{Refusal, Schedule, SplitBy, documentation, targets};

/// Checks that every registered primitive and query has a method of its name, which calls it.
#[test]
fn every_primitive_and_query_has_a_method() {
    let source = [include_str!("../../../src/typed.rs"), include_str!("../../../src/dispatch.rs")].concat();
    let methods: Vec<&str> = source.split("    pub fn ").skip(1).collect();
    // The methods of rules are made where rules are registered.
    for d in documentation().filter(|d| !d.name.starts_with("auto_")) {
        let has = methods.iter().any(|m| m.strip_prefix(d.name).is_some_and(|rest| rest.starts_with('(')));
        assert!(has, "no method `{}`: add it to schedule/src/typed.rs", d.name);
        let called = source.contains(&format!("(\"{}\", ", d.name)) || d.name == "can";
        assert!(called, "nothing in schedule/src/typed.rs calls \"{}\"", d.name);
    }
}

/// Checks one call of every method by the program after it, which shows the meaning of the arguments.
#[test]
fn methods_make_the_named_calls() {
    let text = "
def f(a: f32[n, p], b: f32[p, m], x: f32[40]) -> (f32[n, m], f32[40]):
    c = zeros((n, m), f32)
    for i in range(n):
        for j in range(m):
            for k in range(p):
                c[i, j] += a[i, k] * b[k, j]
    t = empty((40,), f32)
    y = empty((40,), f32)
    for u in range(40):
        t[u] = x[u] * 2
    for v in range(40):
        y[v] = t[v] + 1
    return c, y
";
    let (func, _) = entry(text);
    let mut s = Schedule::new(func.clone());
    let steps = |s: &mut Schedule| -> Result<(), Refusal> {
        let product = s.as_lib("i")?;
        assert_eq!(s.parent(&product)?, None);
        let sums = s.writes("c")?;
        assert_eq!(sums.len(), 2, "the zeros, then the sums");
        let innermost = s.innermost(&product)?;
        assert_eq!(s.parent(&sums[1])?, Some(innermost));
        let l = s.fuse_shifted("u", "v", 2)?;
        assert_eq!(s.length(&l)?, Some(42));
        let first = s.separate_tail(&l)?;
        assert_eq!(first.len(), 3);
        Ok(())
    };
    steps(&mut s).unwrap_or_else(|r| panic!("{r:?}"));
    same(&func, s.func());

    let (func, _) = entry(
        "
def f(x: f32[n, 40], w: f32[40]) -> f32[n]:
    y = zeros((n,), f32)
    t = empty((40, 6), f32)
    for q in range(40):
        for r in range(6):
            t[q, r] = w[q] * r
    for i in range(n):
        for j in range(40):
            y[i] += x[i, j] * t[j, 3]
    return y
",
    );
    let mut s = Schedule::new(func.clone());
    let steps = |s: &mut Schedule| -> Result<(), Refusal> {
        s.var_split("t", 0, 8)?;
        s.var_merge("t", 1)?;
        s.var_unsqueeze("t", 0)?;
        s.var_reorder("t", vec![1, 0, 2])?;
        s.var_squeeze("t", 1)?;
        s.set_mem_type("t", "heap")?;
        let (outer, inner) = s.split_shifted("j", SplitBy::Parts(4), 3)?;
        s.merge(&outer, &inner)?;
        s.split("q", SplitBy::Factor(5))?;
        s.reorder(targets!["q~i", "q~o"])?;
        s.unroll("r", Some(3))?;
        let (_, large) = s.specialize("i", "n < 4")?;
        s.parallelize_by(&large, Parallel { distribution: Distribution::Dynamic, chunk: Some(8), above: Some(100) })?;
        Ok(())
    };
    steps(&mut s).unwrap_or_else(|r| panic!("{r:?}"));
    same(&func, s.func());
    expect![[r#"
        y = empty((n,), f32)
        for y.d0 in range(n):
            y[y.d0] = 0.0
        t = empty((5, 48), f32)  # heap
        for q_i in range(5):
            for q_o in range(8):
                for r_o in range(2):
                    t[(q_o * 5 + q_i) // 8, (q_o * 5 + q_i) % 8 * 6 + r_o * 3] = w[q_o * 5 + q_i] * cast(r_o * 3, f32)
                    t[(q_o * 5 + q_i) // 8, (q_o * 5 + q_i) % 8 * 6 + (r_o * 3 + 1)] = w[q_o * 5 + q_i] * cast(r_o * 3 + 1, f32)
                    t[(q_o * 5 + q_i) // 8, (q_o * 5 + q_i) % 8 * 6 + (r_o * 3 + 2)] = w[q_o * 5 + q_i] * cast(r_o * 3 + 2, f32)
        if n < 4:
            for i in range(n):
                for j_o_j_i in range(44):
                    if 0 <= j_o_j_i // 11 * 11 + j_o_j_i % 11 - 3:
                        if j_o_j_i // 11 * 11 + j_o_j_i % 11 - 3 < 40:
                            y[i] += x[i, j_o_j_i // 11 * 11 + j_o_j_i % 11 - 3] * t[(j_o_j_i // 11 * 11 + j_o_j_i % 11 - 3) // 8, (j_o_j_i // 11 * 11 + j_o_j_i % 11 - 3) % 8 * 6 + 3]
        else:
            for i in range(n):  # parallel(schedule=dynamic, chunk=8, above=100)
                for j_o_j_i in range(44):
                    if 0 <= j_o_j_i // 11 * 11 + j_o_j_i % 11 - 3:
                        if j_o_j_i // 11 * 11 + j_o_j_i % 11 - 3 < 40:
                            y[i] += x[i, j_o_j_i // 11 * 11 + j_o_j_i % 11 - 3] * t[(j_o_j_i // 11 * 11 + j_o_j_i % 11 - 3) // 8, (j_o_j_i // 11 * 11 + j_o_j_i % 11 - 3) % 8 * 6 + 3]
        return y
    "#]].assert_eq(&body(s.func()));
}

/// Checks that primitives with variants by keyword have a method for each variant.
#[test]
fn variants_by_keyword_have_methods() {
    let (func, _) = entry(
        "
def f(a: f32[n, m], c: inout[f32[n, n]], d: inout[f32[n, n]]):
    for i in range(n):
        for j in range(i):
            for k in range(m):
                c[i, j] += a[i, k] * a[j, k]
    for u in range(n):
        for v in range(u):
            d[u, v] = c[u, v] + c[v, u]
",
    );
    let mut s = Schedule::new(func.clone());
    let steps = |s: &mut Schedule| -> Result<(), Refusal> {
        s.cache_padded("i", "a", 8)?;
        s.cache_reduction_padded("k", "c", 4)?;
        let apart = s.tile_separated_by_fronts(targets!["u", "v"], &[4, 2])?;
        assert_eq!([apart.tiles.len(), apart.full.len(), apart.partial.len()], [2, 2, 2]);
        s.unroll(&apart.full[1], None)?;
        Ok(())
    };
    steps(&mut s).unwrap_or_else(|r| panic!("{r:?}"));
    same(&func, s.func());
    expect![[r#"
        a_cache = empty((n, (m + 7) // 8 * 8), f32)
        for a.cache.d0 in range(n):
            for a.cache.d1 in range(m):
                a_cache[a.cache.d0, a.cache.d1] = a[a.cache.d0, a.cache.d1]
        for i in range(n):
            for j in range(i):
                c_partial = empty((1, 4), f32)
                c_partial[0, 0] = 0.0
                for k in range(m):
                    c_partial[0, 0] += a_cache[i, k] * a_cache[j, k]
                c[i, j] += c_partial[0, 0]
        del a_cache
        for u_w in range(n - (n + 4) // 4):
            for v_o in range(max(0, u_w - (n + 3) // 4 + 1), min(n // 2 - 1, u_w - (u_w + 1) // 3) + 1):
                if u_w * 4 + 4 <= n + v_o * 4 and v_o * 6 + 2 <= u_w * 4:
                    for u_i in range(4):
                        d[u_w * 4 - v_o * 4 + u_i, v_o * 2] = c[u_w * 4 - v_o * 4 + u_i, v_o * 2] + c[v_o * 2, u_w * 4 - v_o * 4 + u_i]
                        d[u_w * 4 - v_o * 4 + u_i, v_o * 2 + 1] = c[u_w * 4 - v_o * 4 + u_i, v_o * 2 + 1] + c[v_o * 2 + 1, u_w * 4 - v_o * 4 + u_i]
                else:
                    for u_i in range(max(u_w * 4 - v_o * 4, v_o * 2 + 1), min(n - 1, u_w * 4 - v_o * 4 + 3) + 1):
                        for v_i in range(v_o * 2, min(v_o * 2 + 1, u_i - 1) + 1):
                            d[u_i, v_i] = c[u_i, v_i] + c[v_i, u_i]
    "#]].assert_eq(&body(s.func()));
    let calls: Vec<String> = s.trace().steps.iter().map(ToString::to_string).collect();
    expect![[r#"
        s.cache("i", "a", pad=8)
        s.cache_reduction("k", "c", pad=4)
        s.tile(["u", "v"], [4, 2], separate=True, wavefront=True)
        s.unroll("v~i#1")"#]]
    .assert_eq(&calls.join("\n"));

    let mut s = Schedule::new(func.clone());
    let apart = s.tile_separated(targets!["u", "v"], &[4, 2]).unwrap_or_else(|r| panic!("{r:?}"));
    assert!(matches!(s.length(&apart.full[0]), Ok(Some(4))));
    assert!(matches!(s.length(&apart.partial[0]), Ok(None)));
    same(&func, s.func());
}
