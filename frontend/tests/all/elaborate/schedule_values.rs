//! Refusals of expressions that are not values of a schedule, each on its line.

use super::schedules::{body, check};
use expect_test::expect;

#[test]
fn the_schedule_as_a_value() {
    body(
        "    t = s\n",
        expect![[r#"
        fast of gemm
        [schedule::value] cannot use the schedule as a value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    t = [s]\n",
        expect![[r#"
        fast of gemm
        [schedule::value] cannot use the schedule as a value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    s = 3\n",
        expect![[r#"
        fast of gemm
        [schedule::value] cannot assign to `s`: it is the schedule
          at t.ft:11 `s`
          help: use another name
    "#]],
    );
    body(
        "    a, s = 3, 4\n",
        expect![[r#"
        fast of gemm
        [schedule::value] cannot assign to `s`: it is the schedule
          at t.ft:11 `s`
          help: use another name
    "#]],
    );
    body(
        "    s.f(s)\n",
        expect![[r#"
        fast of gemm
        [schedule::value] cannot use the schedule as a value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    f = s.split\n",
        expect![[r#"
        fast of gemm
        [schedule::value] `s.split` is a method, not a value
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
        [schedule::value] cannot use the schedule as a value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    x = len(s)\n",
        expect![[r#"
        fast of gemm
        [schedule::value] cannot use the schedule as a value
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
        [schedule::value] cannot use the schedule as a value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    s(\"i\")\n",
        expect![[r#"
        fast of gemm
        [schedule::value] cannot use the schedule as a value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
    body(
        "    x = s == s\n",
        expect![[r#"
        fast of gemm
        [schedule::value] cannot use the schedule as a value
          at t.ft:11 `s`
          help: call its methods (`s.split(…)`), or pass it on as an argument (`f(s, …)`)
    "#]],
    );
}

#[test]
fn tensors() {
    body(
        "    x = zeros((3,), f32)\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `zeros` is for programs and cannot be called in a schedule
          at t.ft:11 `zeros((3,), f32)`
          help: call methods of `s`, other schedules, or functions of numbers, strings and lists
    "#]],
    );
    body(
        "    x = exp(1.0)\n",
        expect![[r#"
        fast of gemm
        [schedule::tensor] expected a value known when compiling, found a scalar of a program
          at t.ft:11 `exp(1.0)`
          help: compute it from integers, floats, strings, lists and tuples
    "#]],
    );
    body(
        "    x = cast(1, f32)\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `cast` is for programs and cannot be called in a schedule
          at t.ft:11 `cast(1, f32)`
          help: call methods of `s`, other schedules, or functions of numbers, strings and lists
    "#]],
    );
    body(
        "    x = relu(1)\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `relu` is an operator on tensors and cannot be called in a schedule
          at t.ft:11 `relu(1)`
          help: call methods of `s`, other schedules, or functions of numbers, strings and lists
    "#]],
    );
    body(
        "    x = max([1, 2], axis=0)\n",
        expect![[r#"
        fast of gemm
        [name::unknown] `max` over axes needs the operator library, which is not loaded
          at t.ft:11 `max([1, 2], axis=0)`
    "#]],
    );
    body(
        "    x = [1] @ [2]\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `matmul` is an operator on tensors and cannot be called in a schedule
          at t.ft:11 `[1] @ [2]`
          help: call methods of `s`, other schedules, or functions of numbers, strings and lists
    "#]],
    );
    body(
        "    x = gemm(1, 2)\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `gemm` is a program and cannot be called in a schedule
          at t.ft:11 `gemm(1, 2)`
          help: call methods of `s`, other schedules, or functions of numbers, strings and lists
    "#]],
    );
    body(
        "    x = grad(gemm)\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `grad` is for programs and cannot be called in a schedule
          at t.ft:11 `grad(gemm)`
          help: call methods of `s`, other schedules, or functions of numbers, strings and lists
    "#]],
    );
    body(
        "    label(\"L1\")\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `label` is for programs and cannot be called in a schedule
          at t.ft:11 `label("L1")`
          help: call methods of `s`, other schedules, or functions of numbers, strings and lists
    "#]],
    );
    check(
        "dg = grad(gemm)\n\n@schedule(gemm)\ndef fast(s):\n    dg()\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `grad` is for programs and cannot be called in a schedule
          at t.ft:9 `grad(gemm)`
          help: call methods of `s`, other schedules, or functions of numbers, strings and lists
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
fn unused_results() {
    body(
        "    i0, i1 = s.split(\"i\", 32)\n    return i0\n",
        expect![[r#"
        fast of gemm
        split("i", 32) -> (#0, #1)
        [schedule::result] the schedule `fast` cannot return a value, found a handle returned by `split`
          at t.ft:12 `return i0`
          help: leave out the value, or remove `@schedule` and call the function in other schedules
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
fn lambdas() {
    body(
        "    s.permute([\"i\"], lambda: 1)\n",
        expect![[r#"
        fast of gemm
        [schedule::map] this `lambda` has no parameter
          at t.ft:11 `lambda: 1`
          help: write one parameter for each loop: `lambda i, j: (j, i)`
    "#]],
    );
    body(
        "    s.permute([\"i\"], lambda i, i: (i, i))\n",
        expect![[r#"
        fast of gemm
        [schedule::map] two parameters are named `i`
          at t.ft:11 `i`
          at t.ft:11 `i`: first here
          help: give each loop its own name
    "#]],
    );
    body(
        "    s.permute([\"i\"], lambda i: i / 2)\n",
        expect![[r#"
        fast of gemm
        [schedule::map] expected an integer index from the `lambda`, found `f64`
          at t.ft:11 `i / 2`
          help: compute them from its parameters, sizes and integers: `lambda i, j: (i + j, j)`
    "#]],
    );
    body(
        "    s.permute([\"i\"], lambda i: i < 2)\n",
        expect![[r#"
        fast of gemm
        [schedule::map] expected an integer index from the `lambda`, found `bool`
          at t.ft:11 `i < 2`
          help: compute them from its parameters, sizes and integers: `lambda i, j: (i + j, j)`
    "#]],
    );
    body(
        "    s.permute([\"i\"], lambda i: \"i\")\n",
        expect![[r#"
        fast of gemm
        [schedule::map] expected an integer index from the `lambda`, found a string
          at t.ft:11 `"i"`
          help: compute them from its parameters, sizes and integers: `lambda i, j: (i + j, j)`
    "#]],
    );
    body(
        "    s.permute([\"i\"], lambda i: (i, c))\n",
        expect![[r#"
            fast of gemm
            [name::unknown] `c` is a tensor of `gemm`, not a name in the schedule
              at t.ft:11 `c`
              help: write names of loops, statements and tensors as strings: `"c"`
        "#]],
    );
    body(
        "    s.permute([\"i\"], lambda i: s.length(\"k\"))\n",
        expect![[r#"
        fast of gemm
        [schedule::map] cannot call a method of the schedule in a `lambda`
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
          help: call the method on the schedule: `s.permute(t, …)`
    "#]],
    );
    check(
        "def clamped(i):\n    x = 0\n    if i > 2:\n        x = 2\n    return x\n\n@schedule(gemm)\ndef fast(s):\n    s.permute([\"i\"], lambda i: clamped(i))\n",
        expect![[r#"
            fast of gemm
            [schedule::condition] expected a condition known when compiling, found one that depends on the running program
              at t.ft:11 `i > 2`
              note: in `clamped`, called at t.ft:17
              help: choose between indices with `a if c else b`
        "#]],
    );
    check(
        "def checked(i):\n    assert i > 2\n    return i\n\n@schedule(gemm)\ndef fast(s):\n    s.permute([\"i\"], lambda i: checked(i))\n",
        expect![[r#"
            fast of gemm
            [schedule::condition] expected a condition known when compiling, found one that depends on the running program
              at t.ft:10 `assert i > 2`
              note: in `checked`, called at t.ft:15
              help: choose between indices with `a if c else b`
        "#]],
    );
    check(
        "def summed(i):\n    x = 0\n    for k in range(i):\n        x += k\n    return x\n\n@schedule(gemm)\ndef fast(s):\n    s.permute([\"i\"], lambda i: summed(i))\n",
        expect![[r#"
            fast of gemm
            [static::sequence] expected a list, a tuple or a range known when compiling, found a range of indices
              at t.ft:11 `range(i)`
              note: in `summed`, called at t.ft:17
              help: write `for i in range(3):`, or a list of loops: `for l in [i, j]:`
        "#]],
    );
}
