//! References in a schedule: names of the program, handles, the schedule itself from outside.

use super::load;
use super::schedules::{GEMM, body};
use expect_test::expect;
use std::collections::BTreeMap;
use taffeta_frontend::NoHooks;

#[test]
fn names_of_the_program() {
    body(
        "    s.split(i, 32)\n",
        expect![[r#"
        fast of gemm
        [name::unknown] `i` is a loop of `gemm`, not a name in the schedule
          at t.ft:11 `i`
          help: write names of loops, statements and tensors as strings: `"i"`
    "#]],
    );
    body(
        "    s.cache(c)\n",
        expect![[r#"
            fast of gemm
            [name::unknown] `c` is a tensor of `gemm`, not a name in the schedule
              at t.ft:11 `c`
              help: write names of loops, statements and tensors as strings: `"c"`
        "#]],
    );
    body(
        "    s.cache(a)\n",
        expect![[r#"
        fast of gemm
        [name::unknown] `a` is a tensor of `gemm`, not a name in the schedule
          at t.ft:11 `a`
          help: write names of loops, statements and tensors as strings: `"a"`
    "#]],
    );
    body(
        "    for t in range(n):\n        s.f(t)\n",
        expect![[r#"
        fast of gemm
        [schedule::size] the size `n` of `gemm` is not known when compiling
          at t.ft:11 `n`
          help: write a condition on sizes as a string: `s.specialize("i", "n % 8 == 0")`
    "#]],
    );
    body(
        "    if n > 3:\n        s.f()\n",
        expect![[r#"
        fast of gemm
        [schedule::size] the size `n` of `gemm` is not known when compiling
          at t.ft:11 `n`
          help: write a condition on sizes as a string: `s.specialize("i", "n % 8 == 0")`
    "#]],
    );
    body(
        "    s.f(whatever)\n",
        expect![[r#"
        fast of gemm
        [name::unknown] there is no `whatever` here
          at t.ft:11 `whatever`
    "#]],
    );
    body(
        "    tile2s(s, \"i\", \"j\")\n",
        expect![[r#"
        fast of gemm
        [name::unknown] there is no `tile2s` here
          at t.ft:11 `tile2s`
          help: did you mean `tile2d`?
    "#]],
    );
}

#[test]
fn misused_handles() {
    body(
        "    a, b = s.split(\"i\", 2)\n    x = a + 1\n",
        expect![[r#"
            fast of gemm
            split("i", 2) -> (#0, #1)
            [type::operand] `+` takes numbers, found a handle returned by `split`
              at t.ft:12 `a`
        "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = a < b\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [type::operand] cannot compare a handle returned by `split` and a handle returned by `split` with this operator
          at t.ft:12 `a < b`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    if a:\n        s.f()\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [type::condition] expected a `bool` as a condition, found a handle returned by `split`
          at t.ft:12 `a`
          help: compare it: `x != 0`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    a.split(3)\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [name::attribute] a handle returned by `split` has no method `split`
          at t.ft:12 `split`
          help: call the method on the schedule: `s.split(a, …)`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = a.length\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [name::attribute] a handle returned by `split` has no `length`
          at t.ft:12 `length`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = a[0]\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [type::subscript] cannot index a handle returned by `split`
          at t.ft:12 `a`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = f\"{a}\"\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [static::format] expected a value known when compiling in a string, found a handle returned by `split`
          at t.ft:12 `f"{a}"`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    for x in a:\n        s.f()\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [static::sequence] expected a list, a tuple or a range known when compiling, found a handle returned by `split`
          at t.ft:12 `a`
          help: write `for i in range(3):`, or a list of loops: `for l in [i, j]:`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = 1 if a else 2\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [type::condition] expected a `bool` as a condition, found a handle returned by `split`
          at t.ft:12 `a`
          help: compare it: `x != 0`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = a and b\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [type::condition] expected a `bool` as a condition, found a handle returned by `split`
          at t.ft:12 `a`
          help: compare it: `x != 0`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = not a\n",
        expect![[r#"
            fast of gemm
            split("i", 2) -> (#0, #1)
            [type::operand] `not` takes numbers, found a handle returned by `split`
              at t.ft:12 `a`
        "#]],
    );
    body(
        "    a, b, c = s.split(\"i\", 2)\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [type::unpack] expected 3 values to unpack, found 2 values
          at t.ft:11 `s.split("i", 2)`
    "#]],
    );
    body(
        "    a, b = s.merge(\"i\", \"j\")\n",
        expect![[r#"
        fast of gemm
        merge("i", "j") -> #0
        [type::unpack] expected 2 values to unpack, found a handle returned by `merge`
          at t.ft:11 `s.merge("i", "j")`
    "#]],
    );
    body(
        "    for t in range(s.length(\"i\")):\n        s.f()\n",
        expect![[r#"
        fast of gemm
        length("i") -> "n"
        [range::type] expected an integer as a bound of a range, found a string
          at t.ft:11 `s.length("i")`
    "#]],
    );
}

#[test]
fn schedules_of_other_entries() {
    let program = load(&format!("{GEMM}def g(x: f32):\n    pass\n\n@schedule(g)\ndef fast(s):\n    pass\n"));
    let ask = |entry: &str, name: &str| match program.scheduled(entry, name, &BTreeMap::new(), &NoHooks) {
        Ok(_) => "done".to_string(),
        Err(found) => found.0.iter().map(|d| super::show(d, program.sources())).collect(),
    };
    expect![[r#"
        [schedule::target] the schedule `fast` is for `g`, not for `gemm`
          at t.ft:13 `fast`
    "#]]
    .assert_eq(&ask("gemm", "fast"));
    expect![[r#"
        [schedule::unknown] there is no schedule `fats`
          help: did you mean `fast`?
    "#]]
    .assert_eq(&ask("g", "fats"));
    expect![[r#"
        [schedule::unknown] there is no schedule `gemm`
          help: the schedules are fast
    "#]]
    .assert_eq(&ask("g", "gemm"));
    expect![[r#"
        [unsupported] schedules are not supported yet
          at t.ft:13 `fast`
          help: run it without: `--schedule none`
    "#]]
    .assert_eq(&ask("g", "fast"));
    expect![[r#"
        [schedule::unknown] there is no schedule `fast`
          help: the file has no schedules; run the program as written with `--schedule none`
    "#]]
    .assert_eq(&{
        let program = load(GEMM);
        match program.scheduled("gemm", "fast", &BTreeMap::new(), &NoHooks) {
            Ok(_) => "done".to_string(),
            Err(found) => found.0.iter().map(|d| super::show(d, program.sources())).collect(),
        }
    });
}
