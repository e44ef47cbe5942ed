//! What is refused in schedules, each on its line.

use super::schedules::{GEMM, body, check};
use super::{check_file, load};
use crate::elaborate::NoHooks;
use expect_test::expect;
use std::collections::BTreeMap;

#[test]
fn the_schedule_is_no_value() {
    body(
        "    t = s\n",
        expect![[r#"
        fast of gemm
        [schedule::value] the schedule is no value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    t = [s]\n",
        expect![[r#"
        fast of gemm
        [schedule::value] the schedule is no value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    s = 3\n",
        expect![[r#"
        fast of gemm
        [schedule::value] `s` is the schedule, and cannot be another value too
          at t.ft:11 `s`
          help: use another name
    "#]],
    );
    body(
        "    a, s = 3, 4\n",
        expect![[r#"
        fast of gemm
        [schedule::value] `s` is the schedule, and cannot be another value too
          at t.ft:11 `s`
          help: use another name
    "#]],
    );
    body(
        "    s.f(s)\n",
        expect![[r#"
        fast of gemm
        [schedule::value] the schedule is no value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    f = s.split\n",
        expect![[r#"
        fast of gemm
        [schedule::value] `s.split` is a method, and no value
          at t.ft:11 `s.split`
          help: call it: `s.split(…)`
    "#]],
    );
    body(
        "    s[0]\n",
        expect![[r#"
        fast of gemm
        [syntax::no_effect] this statement has no effect
          at t.ft:11 `s[0]`
          help: assign the value to a name, or leave it out
    "#]],
    );
    body(
        "    if s:\n        pass\n",
        expect![[r#"
        fast of gemm
        [schedule::value] the schedule is no value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    x = len(s)\n",
        expect![[r#"
        fast of gemm
        [schedule::value] the schedule is no value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    s + 1\n",
        expect![[r#"
        fast of gemm
        [syntax::no_effect] this statement has no effect
          at t.ft:11 `s + 1`
          help: assign the value to a name, or leave it out
    "#]],
    );
    body(
        "    return s\n",
        expect![[r#"
        fast of gemm
        [schedule::value] the schedule is no value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    s(\"i\")\n",
        expect![[r#"
        fast of gemm
        [schedule::value] the schedule is no value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    x = s == s\n",
        expect![[r#"
        fast of gemm
        [schedule::value] the schedule is no value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
}

#[test]
fn names_of_the_program() {
    body(
        "    s.split(i, 32)\n",
        expect![[r#"
        fast of gemm
        [name::unknown] there is no `i` here, but a loop of `gemm`
          at t.ft:11 `i`
          help: loops, statements and tensors are named by strings: `"i"`
    "#]],
    );
    body(
        "    s.cache(c)\n",
        expect![[r#"
            fast of gemm
            [name::unknown] there is no `c` here, but a tensor of `gemm`
              at t.ft:11 `c`
              help: loops, statements and tensors are named by strings: `"c"`
        "#]],
    );
    body(
        "    s.cache(a)\n",
        expect![[r#"
        fast of gemm
        [name::unknown] there is no `a` here, but a tensor of `gemm`
          at t.ft:11 `a`
          help: loops, statements and tensors are named by strings: `"a"`
    "#]],
    );
    body(
        "    for t in range(n):\n        s.f(t)\n",
        expect![[r#"
        fast of gemm
        [schedule::size] `n` is a size of `gemm`, which is not known when compiling
          at t.ft:11 `n`
          help: a schedule does not depend on sizes; a condition on them is a string: `s.specialize("i", "n % 8 == 0")`
    "#]],
    );
    body(
        "    if n > 3:\n        s.f()\n",
        expect![[r#"
        fast of gemm
        [schedule::size] `n` is a size of `gemm`, which is not known when compiling
          at t.ft:11 `n`
          help: a schedule does not depend on sizes; a condition on them is a string: `s.specialize("i", "n % 8 == 0")`
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
fn tensors() {
    body(
        "    x = zeros((3,), f32)\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `zeros` is for programs, and a schedule has only values that are known when compiling
          at t.ft:11 `zeros((3,), f32)`
          help: a schedule calls methods of `s`, other schedules, and functions of numbers, strings and lists
    "#]],
    );
    body(
        "    x = exp(1.0)\n",
        expect![[r#"
        fast of gemm
        [schedule::tensor] a schedule works with values that are known when compiling, and this is a scalar of a program
          at t.ft:11 `exp(1.0)`
          help: compute it from integers, floats, strings, lists and tuples
    "#]],
    );
    body(
        "    x = cast(1, f32)\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `cast` is for programs, and a schedule has only values that are known when compiling
          at t.ft:11 `cast(1, f32)`
          help: a schedule calls methods of `s`, other schedules, and functions of numbers, strings and lists
    "#]],
    );
    body(
        "    x = relu(1)\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `relu` is an operator on tensors, and a schedule has only values that are known when compiling
          at t.ft:11 `relu(1)`
          help: a schedule calls methods of `s`, other schedules, and functions of numbers, strings and lists
    "#]],
    );
    body(
        "    x = max([1, 2], axis=0)\n",
        expect![[r#"
        fast of gemm
        [name::unknown] `max` over axes is the operator library's, which is not there
          at t.ft:11 `max([1, 2], axis=0)`
    "#]],
    );
    body(
        "    x = [1] @ [2]\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `matmul` is an operator on tensors, and a schedule has only values that are known when compiling
          at t.ft:11 `[1] @ [2]`
          help: a schedule calls methods of `s`, other schedules, and functions of numbers, strings and lists
    "#]],
    );
    body(
        "    x = gemm(1, 2)\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `gemm` is a program, and a schedule has only values that are known when compiling
          at t.ft:11 `gemm(1, 2)`
          help: a schedule calls methods of `s`, other schedules, and functions of numbers, strings and lists
    "#]],
    );
    body(
        "    x = grad(gemm)\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `grad` is for programs, and a schedule has only values that are known when compiling
          at t.ft:11 `grad(gemm)`
          help: a schedule calls methods of `s`, other schedules, and functions of numbers, strings and lists
    "#]],
    );
    body(
        "    label(\"L1\")\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `label` is for programs, and a schedule has only values that are known when compiling
          at t.ft:11 `label("L1")`
          help: a schedule calls methods of `s`, other schedules, and functions of numbers, strings and lists
    "#]],
    );
    check(
        "dg = grad(gemm)\n\n@schedule(gemm)\ndef fast(s):\n    dg()\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `grad` is for programs, and a schedule has only values that are known when compiling
          at t.ft:9 `grad(gemm)`
          help: a schedule calls methods of `s`, other schedules, and functions of numbers, strings and lists
    "#]],
    );
    check(
        "def f(x):\n    return sqrt(x) + x.shape[0]\n\n@schedule(gemm)\ndef fast(s):\n    f(4.0)\n",
        expect![[r#"
        fast of gemm
        [index::range] index 0 is out of range: the sequence has 0 items
          at t.ft:10 `0`
          note: in `f`, called at t.ft:14
    "#]],
    );
}

#[test]
fn handles() {
    body(
        "    a, b = s.split(\"i\", 2)\n    x = a + 1\n",
        expect![[r#"
            fast of gemm
            split("i", 2) -> (#0, #1)
            [type::operand] `+` takes numbers, and this is a handle that `split` returned
              at t.ft:12 `a`
        "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = a < b\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [type::operand] a handle that `split` returned and a handle that `split` returned cannot be compared in this way
          at t.ft:12 `a < b`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    if a:\n        s.f()\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [type::condition] a condition is a `bool`, and this is a handle that `split` returned
          at t.ft:12 `a`
          help: compare it with something: `x != 0`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    a.split(3)\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [name::attribute] a handle that `split` returned has no method `split`
          at t.ft:12 `split`
          help: methods are those of the schedule: `s.split(a, …)`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = a.length\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [name::attribute] a handle that `split` returned has no `length`
          at t.ft:12 `length`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = a[0]\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [type::subscript] a handle that `split` returned cannot be indexed
          at t.ft:12 `a`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = f\"{a}\"\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [static::format] a string holds values that are known when compiling, and this is a handle that `split` returned
          at t.ft:12 `f"{a}"`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    for x in a:\n        s.f()\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [static::sequence] a schedule runs over lists, tuples and ranges, and this is a handle that `split` returned
          at t.ft:12 `a`
          help: write `for i in range(3):`, or a list of loops: `for l in [i, j]:`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = 1 if a else 2\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [type::condition] a condition is a `bool`, and this is a handle that `split` returned
          at t.ft:12 `a`
          help: compare it with something: `x != 0`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = a and b\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [type::condition] a condition is a `bool`, and this is a handle that `split` returned
          at t.ft:12 `a`
          help: compare it with something: `x != 0`
    "#]],
    );
    body(
        "    a, b = s.split(\"i\", 2)\n    x = not a\n",
        expect![[r#"
            fast of gemm
            split("i", 2) -> (#0, #1)
            [type::operand] `not` takes numbers, and this is a handle that `split` returned
              at t.ft:12 `a`
        "#]],
    );
    body(
        "    a, b, c = s.split(\"i\", 2)\n",
        expect![[r#"
        fast of gemm
        split("i", 2) -> (#0, #1)
        [type::unpack] 3 names stand on the left for 2 values
          at t.ft:11 `s.split("i", 2)`
    "#]],
    );
    body(
        "    a, b = s.merge(\"i\", \"j\")\n",
        expect![[r#"
        fast of gemm
        merge("i", "j") -> #0
        [type::unpack] 2 names stand on the left for a handle that `merge` returned
          at t.ft:11 `s.merge("i", "j")`
    "#]],
    );
    body(
        "    for t in range(s.length(\"i\")):\n        s.f()\n",
        expect![[r#"
        fast of gemm
        length("i") -> "n"
        [range::type] the bounds of a range are integers, and this is a string
          at t.ft:11 `s.length("i")`
    "#]],
    );
}

#[test]
fn statements() {
    body(
        "    x: i32 = 3\n",
        expect![[r#"
        fast of gemm
        [schedule::annotation] a schedule's values are known when compiling, and have no types
          at t.ft:11 `i32`
          help: leave the annotation out
    "#]],
    );
    body(
        "    x = [1]\n    x[0] = 2\n",
        expect![[r#"
        fast of gemm
        [assign::target] lists and tuples of a schedule do not change
          at t.ft:12 `x[0]`
          help: make a new one: `xs = xs + [x]`, `[f(x) for x in xs]`
    "#]],
    );
    body(
        "    x = [1]\n    x[0] += 2\n",
        expect![[r#"
        fast of gemm
        [assign::target] lists and tuples of a schedule do not change
          at t.ft:12 `x[0]`
          help: make a new one: `xs = xs + [x]`, `[f(x) for x in xs]`
    "#]],
    );
    body(
        "    s.x = 2\n",
        expect![[r#"
        fast of gemm
        [assign::target] this cannot be assigned to
          at t.ft:11 `s.x`
          help: a schedule assigns to names (`a = …`) and tuples of them (`a, b = …`)
    "#]],
    );
    body(
        "    3\n",
        expect![[r#"
        fast of gemm
        [syntax::no_effect] this statement has no effect
          at t.ft:11 `3`
          help: assign the value to a name, or leave it out
    "#]],
    );
    body(
        "    assert s.length(\"k\") == 4, f\"k has {s.length('k')} steps\"\n    s.never()\n",
        expect![[r#"
        fast of gemm
        length("k") -> 8
        length("k") -> 8
        [assert::failed] k has 8 steps
          at t.ft:11 `assert s.length("k") == 4, f"k has {s.length('k')} steps"`
    "#]],
    );
    body(
        "    s.can(\"fuse\", \"i\", \"j\")\n",
        expect![[r#"
        fast of gemm
        [syntax::no_effect] `s.can` only answers a question, and its answer is not used here
          at t.ft:11 `s.can`
          help: write `if s.can(…):`
    "#]],
    );
    body(
        "    s.length(\"i\")\n",
        expect![[r#"
        fast of gemm
        [syntax::no_effect] `s.length` only answers a question, and its answer is not used here
          at t.ft:11 `s.length`
          help: assign it to a name, or leave it out
    "#]],
    );
    body(
        "    for a, b in [1, 2]:\n        s.f()\n",
        expect![[r#"
        fast of gemm
        [type::unpack] 2 names stand here for an integer
          at t.ft:11 `[1, 2]`
    "#]],
    );
    body(
        "    s.f(f32)\n",
        expect![[r#"
        fast of gemm
        [schedule::argument] a schedule's methods do not take the type `f32`
          at t.ft:11 `f32`
          help: they take numbers, strings, tuples, lists, and the handles that earlier calls returned
    "#]],
    );
    body(
        "    s.f([1, max])\n",
        expect![[r#"
        fast of gemm
        [schedule::argument] a schedule's methods do not take a function
          at t.ft:11 `[1, max]`
          help: they take numbers, strings, tuples, lists, and the handles that earlier calls returned
    "#]],
    );
    body(
        "    s.f(0xffffffffffffffff)\n",
        expect![[r#"
        fast of gemm
        [type::literal] this integer does not fit in 64 bits
          at t.ft:11 `0xffffffffffffffff`
    "#]],
    );
}

#[test]
fn results_that_nobody_takes() {
    body(
        "    i0, i1 = s.split(\"i\", 32)\n    return i0\n",
        expect![[r#"
        fast of gemm
        split("i", 32) -> (#0, #1)
        [schedule::result] the schedule `fast` returns a handle that `split` returned, which nobody takes
          at t.ft:12 `return i0`
          help: leave the value out; what other schedules call for its result is a function without `@schedule`
    "#]],
    );
    body(
        "    if s.can(\"fuse\"):\n        return\n    s.never()\n",
        expect![[r#"
        fast of gemm
        can("fuse") -> True
    "#]],
    );
}

#[test]
fn calls_of_schedules() {
    let base = "@schedule(gemm)\ndef base(s, t=2):\n    s.f(t)\n\n@schedule(gemm)\ndef fast(s):\n";
    check(
        &format!("{base}    base()\n"),
        expect![[r#"
        fast of gemm
        [schedule::argument] `base` takes the schedule first, and none is given
          at t.ft:15 `base()`
          help: write `base(s, …)`
    "#]],
    );
    check(
        &format!("{base}    base(\"i\")\n"),
        expect![[r#"
        fast of gemm
        [schedule::argument] `base` takes the schedule first, and this is a string
          at t.ft:15 `"i"`
          help: write `base(s, …)`
    "#]],
    );
    check(
        &format!("{base}    base(t=3)\n"),
        expect![[r#"
        fast of gemm
        [schedule::argument] `base` takes the schedule first, and none is given
          at t.ft:15 `base(t=3)`
          help: write `base(s, …)`
    "#]],
    );
    check(
        &format!("{base}    base(s, u=3)\n"),
        expect![[r#"
        fast of gemm
        [call::arguments] `base` has no parameter `u`
          at t.ft:15 `3`
          help: its parameters are s, t
    "#]],
    );
    check(
        &format!("{base}    base(s, 3, 4)\n"),
        expect![[r#"
        fast of gemm
        [call::arguments] `base` takes 2 arguments, and more are given
          at t.ft:15 `4`
    "#]],
    );
    check(
        "@schedule(gemm)\ndef fast(s):\n    fast(s)\n",
        expect![[r#"
        fast of gemm
        [call::depth] calls are nested more than 512 deep: the recursion of `fast` does not end
          at t.ft:11 `fast(s)`
          note: in `fast`, called at t.ft:11
          note: in `fast`, called at t.ft:11
          note: in `fast`, called at t.ft:11
          note: … 506 more calls …
          note: in `fast`, called at t.ft:11
          note: in `fast`, called at t.ft:11
          note: in `fast`, called at t.ft:11
          help: recursion ends where a condition on static values (`ndim`, static parameters) stops it
    "#]],
    );
    check(
        "def f(x: f32[n]):\n    tile2d(x, \"i\", \"j\")\n\n@schedule(gemm)\ndef fast(s):\n    f(s)\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `f` is a program, and a schedule has only values that are known when compiling
          at t.ft:14 `f(s)`
          help: a schedule calls methods of `s`, other schedules, and functions of numbers, strings and lists
    "#]],
    );
}

#[test]
fn schedules_are_not_for_programs() {
    check_file(
        "@schedule(f)\ndef fast(s):\n    s.f()\n\ndef f(x: f32[n]):\n    fast(x)\n    tile2d(x, 1, 2)\n",
        expect![[r#"
            [call::decorated] `fast` has a decorator, and is not called by programs
              at t.ft:6 `fast(x)`
              help: a schedule is chosen with `--schedule fast`, and called by other schedules
            [name::unknown] there is no `tile2d` here
              at t.ft:7 `tile2d`
              help: it works on schedules: call it in a function under `@schedule(…)`
        "#]],
    );
}

#[test]
fn lambdas() {
    body(
        "    s.permute([\"i\"], lambda: 1)\n",
        expect![[r#"
        fast of gemm
        [schedule::map] this `lambda` has no parameter
          at t.ft:11 `lambda: 1`
          help: it has one for every loop: `lambda i, j: (j, i)`
    "#]],
    );
    body(
        "    s.permute([\"i\"], lambda i, i: (i, i))\n",
        expect![[r#"
        fast of gemm
        [schedule::map] `i` stands for two loops
          at t.ft:11 `i`
          at t.ft:11 `i`: first here
          help: give each loop a name of its own
    "#]],
    );
    body(
        "    s.permute([\"i\"], lambda i: i / 2)\n",
        expect![[r#"
        fast of gemm
        [schedule::map] the indices of a `lambda` are integers, and this is `f64`
          at t.ft:11 `i / 2`
          help: compute them from its parameters, sizes and integers: `lambda i, j: (i + j, j)`
    "#]],
    );
    body(
        "    s.permute([\"i\"], lambda i: i < 2)\n",
        expect![[r#"
        fast of gemm
        [schedule::map] the indices of a `lambda` are integers, and this is `bool`
          at t.ft:11 `i < 2`
          help: compute them from its parameters, sizes and integers: `lambda i, j: (i + j, j)`
    "#]],
    );
    body(
        "    s.permute([\"i\"], lambda i: \"i\")\n",
        expect![[r#"
        fast of gemm
        [schedule::map] the indices of a `lambda` are integers, and this is a string
          at t.ft:11 `"i"`
          help: compute them from its parameters, sizes and integers: `lambda i, j: (i + j, j)`
    "#]],
    );
    body(
        "    s.permute([\"i\"], lambda i: (i, c))\n",
        expect![[r#"
            fast of gemm
            [name::unknown] there is no `c` here, but a tensor of `gemm`
              at t.ft:11 `c`
              help: loops, statements and tensors are named by strings: `"c"`
        "#]],
    );
    body(
        "    s.permute([\"i\"], lambda i: s.length(\"k\"))\n",
        expect![[r#"
        fast of gemm
        [schedule::map] a `lambda` only computes indices, and calls nothing on the schedule
          at t.ft:11 `s.length("k")`
          help: call it before, and use the name of its result
    "#]],
    );
    body(
        "    t = [1]\n    t.permute(lambda i: i)\n",
        expect![[r#"
        fast of gemm
        [name::attribute] a list has no method `permute`
          at t.ft:12 `permute`
          help: methods are those of the schedule: `s.permute(t, …)`
    "#]],
    );
    check(
        "def clamped(i):\n    x = 0\n    if i > 2:\n        x = 2\n    return x\n\n@schedule(gemm)\ndef fast(s):\n    s.permute([\"i\"], lambda i: clamped(i))\n",
        expect![[r#"
            fast of gemm
            [schedule::condition] a schedule's conditions are known when compiling, and this one depends on the running program
              at t.ft:11 `i > 2`
              note: in `clamped`, called at t.ft:17
              help: choose between indices by `a if c else b`
        "#]],
    );
    check(
        "def checked(i):\n    assert i > 2\n    return i\n\n@schedule(gemm)\ndef fast(s):\n    s.permute([\"i\"], lambda i: checked(i))\n",
        expect![[r#"
            fast of gemm
            [schedule::condition] a schedule's conditions are known when compiling, and this one depends on the running program
              at t.ft:10 `assert i > 2`
              note: in `checked`, called at t.ft:15
              help: choose between indices by `a if c else b`
        "#]],
    );
    check(
        "def summed(i):\n    x = 0\n    for k in range(i):\n        x += k\n    return x\n\n@schedule(gemm)\ndef fast(s):\n    s.permute([\"i\"], lambda i: summed(i))\n",
        expect![[r#"
            fast of gemm
            [static::sequence] a schedule runs over lists, tuples and ranges, and this is a range of indices
              at t.ft:11 `range(i)`
              note: in `summed`, called at t.ft:17
              help: write `for i in range(3):`, or a list of loops: `for l in [i, j]:`
        "#]],
    );
}

#[test]
fn endless_schedules() {
    body(
        "    for a in range(2000):\n        for b in range(2000):\n            x = 1\n",
        expect![[r#"
        fast of gemm
        [elaborate::too_large] this schedule is too long: it takes over 4000000 steps
          at t.ft:13 `x = 1`
          help: its loops and recursion are to end sooner
    "#]],
    );
}

#[test]
fn forms() {
    for (text, expect) in [
        (
            "@schedule(gemm)\ndef fast():\n    pass\n",
            expect![[r#"
            [schedule::parameter] the schedule `fast` has no parameter
              at t.ft:10 `fast`
              help: its first one is the schedule: `def fast(s):`
        "#]],
        ),
        (
            "@schedule(gemm)\ndef fast(s=1):\n    pass\n",
            expect![[r#"
            [schedule::parameter] `s` is the schedule, which has no default
              at t.ft:10 `1`
              help: put `s` before the other parameters: `def fast(s, …):`
        "#]],
        ),
        (
            "@schedule(gemm)\ndef fast(s: f32):\n    pass\n",
            expect![[r#"
            [schedule::annotation] a schedule's values are known when compiling, and have no types
              at t.ft:10 `f32`
              help: leave the annotation out
        "#]],
        ),
        (
            "@schedule(gemm)\ndef fast(s, t: f32 = 2.0):\n    pass\n",
            expect![[r#"
            [schedule::annotation] a schedule's values are known when compiling, and have no types
              at t.ft:10 `f32`
              help: leave the annotation out
        "#]],
        ),
        (
            "@schedule(gemm)\ndef fast(s, t: static = 2) -> f32:\n    pass\n",
            expect![[r#"
            [schedule::annotation] a schedule's values are known when compiling, and have no types
              at t.ft:10 `f32`
              help: leave the annotation out
        "#]],
        ),
        (
            "@schedule(gemm)\n@schedule(gemm)\ndef fast(s):\n    pass\n",
            expect![[r#"
            [schedule::decorator] `fast` has several decorators
              at t.ft:10 `schedule(gemm)`
              help: write a schedule for each entry, and call a function with what they have in common
        "#]],
        ),
        (
            "@schedule(gamm)\ndef fast(s):\n    pass\n",
            expect![[r#"
            [schedule::target] there is no `gamm` that `fast` could be a schedule of
              at t.ft:9 `schedule(gamm)`
              help: did you mean `gemm`?
        "#]],
        ),
        (
            "@schedule(something)\ndef fast(s):\n    pass\n",
            expect![[r#"
            [schedule::target] there is no `something` that `fast` could be a schedule of
              at t.ft:9 `schedule(something)`
              help: the entries are gemm
        "#]],
        ),
        (
            "@schedule\ndef fast(s):\n    pass\n",
            expect![[r#"
            [schedule::decorator] `schedule` takes the name of one entry
              at t.ft:9 `schedule`
              help: write `@schedule(f)` for a schedule of the entry `f`
        "#]],
        ),
        (
            "@schedule(\"gemm\")\ndef fast(s):\n    pass\n",
            expect![[r#"
            [schedule::decorator] `schedule` takes the name of one entry
              at t.ft:9 `schedule("gemm")`
              help: write `@schedule(f)` for a schedule of the entry `f`
        "#]],
        ),
        (
            "@schedule(gemm, gemm)\ndef fast(s):\n    pass\n",
            expect![[r#"
            [schedule::decorator] `schedule` takes the name of one entry
              at t.ft:9 `schedule(gemm, gemm)`
              help: write `@schedule(f)` for a schedule of the entry `f`
        "#]],
        ),
        (
            "@jit\ndef fast(s):\n    pass\n",
            expect![[r#"
            [schedule::decorator] this decorator is not known
              at t.ft:9 `jit`
              help: the one decorator is `@schedule(f)`
        "#]],
        ),
        (
            "@schedule(gemm)\ndef fast(s):\n    s.f(whatever)\n    s.permute([i], lambda i: (i, n))\n",
            expect![[r#"
                [name::unknown] there is no `whatever` here
                  at t.ft:11 `whatever`
                  help: in a schedule, loops, statements and tensors are named by strings: `"whatever"`
                [name::unknown] there is no `i` here
                  at t.ft:12 `i`
                  help: in a schedule, loops, statements and tensors are named by strings: `"i"`
            "#]],
        ),
    ] {
        check_file(&format!("{GEMM}{text}"), expect);
    }
}

#[test]
fn which_schedule() {
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
          help: the file has none; `--schedule none` runs the program as it is written
    "#]]
    .assert_eq(&{
        let program = load(GEMM);
        match program.scheduled("gemm", "fast", &BTreeMap::new(), &NoHooks) {
            Ok(_) => "done".to_string(),
            Err(found) => found.0.iter().map(|d| super::show(d, program.sources())).collect(),
        }
    });
}
