//! Refusals of statements, calls and forms that schedules do not have, each on its line.

use super::check_file;
use super::schedules::{GEMM, body, check};
use expect_test::expect;

#[test]
fn statements() {
    body(
        "    x: i32 = 3\n",
        expect![[r#"
        fast of gemm
        [schedule::annotation] type annotations are not supported in a schedule
          at t.ft:11 `i32`
          help: leave out the annotation
    "#]],
    );
    body(
        "    x = [1]\n    x[0] = 2\n",
        expect![[r#"
        fast of gemm
        [assign::target] cannot assign to items: lists and tuples of a schedule do not change
          at t.ft:12 `x[0]`
          help: make a new one: `xs = xs + [x]`, `[f(x) for x in xs]`
    "#]],
    );
    body(
        "    x = [1]\n    x[0] += 2\n",
        expect![[r#"
        fast of gemm
        [assign::target] cannot assign to items: lists and tuples of a schedule do not change
          at t.ft:12 `x[0]`
          help: make a new one: `xs = xs + [x]`, `[f(x) for x in xs]`
    "#]],
    );
    body(
        "    s.x = 2\n",
        expect![[r#"
        fast of gemm
        [assign::target] cannot assign to this expression
          at t.ft:11 `s.x`
          help: assign to names (`a = …`) or tuples of names (`a, b = …`)
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
        [syntax::no_effect] the result of `s.can` is not used
          at t.ft:11 `s.can`
          help: write `if s.can(…):`
    "#]],
    );
    body(
        "    s.length(\"i\")\n",
        expect![[r#"
        fast of gemm
        [syntax::no_effect] the result of `s.length` is not used
          at t.ft:11 `s.length`
          help: assign it to a name, or leave it out
    "#]],
    );
    body(
        "    for a, b in [1, 2]:\n        s.f()\n",
        expect![[r#"
        fast of gemm
        [type::unpack] expected 2 values to unpack, found an integer
          at t.ft:11 `[1, 2]`
    "#]],
    );
    body(
        "    s.f(f32)\n",
        expect![[r#"
        fast of gemm
        [schedule::argument] methods of a schedule do not take the type `f32`
          at t.ft:11 `f32`
          help: pass numbers, strings, tuples, lists, or handles returned by earlier calls
    "#]],
    );
    body(
        "    s.f([1, max])\n",
        expect![[r#"
        fast of gemm
        [schedule::argument] methods of a schedule do not take a function
          at t.ft:11 `[1, max]`
          help: pass numbers, strings, tuples, lists, or handles returned by earlier calls
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
fn calls_of_schedules() {
    let base = "@schedule(gemm)\ndef base(s, t=2):\n    s.f(t)\n\n@schedule(gemm)\ndef fast(s):\n";
    check(
        &format!("{base}    base()\n"),
        expect![[r#"
        fast of gemm
        [schedule::argument] expected the schedule as the first argument of `base`, found none
          at t.ft:15 `base()`
          help: write `base(s, …)`
    "#]],
    );
    check(
        &format!("{base}    base(\"i\")\n"),
        expect![[r#"
        fast of gemm
        [schedule::argument] expected the schedule as the first argument of `base`, found a string
          at t.ft:15 `"i"`
          help: write `base(s, …)`
    "#]],
    );
    check(
        &format!("{base}    base(t=3)\n"),
        expect![[r#"
        fast of gemm
        [schedule::argument] expected the schedule as the first argument of `base`, found none
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
        [call::arguments] `base` takes 2 arguments, but more are given
          at t.ft:15 `4`
    "#]],
    );
    check(
        "@schedule(gemm)\ndef fast(s):\n    fast(s)\n",
        expect![[r#"
            fast of gemm
            [call::depth] the recursion of `fast` does not end: it calls itself more than 512 deep
              at t.ft:11 `fast(s)`
              note: in `fast`, called at t.ft:11
              note: in `fast`, called at t.ft:11
              note: in `fast`, called at t.ft:11
              note: … 506 more calls …
              note: in `fast`, called at t.ft:11
              note: in `fast`, called at t.ft:11
              note: in `fast`, called at t.ft:11
              help: stop the recursion by a condition on static values (`ndim`, static parameters)
        "#]],
    );
    check(
        "def f(x: f32[n]):\n    tile2d(x, \"i\", \"j\")\n\n@schedule(gemm)\ndef fast(s):\n    f(s)\n",
        expect![[r#"
        fast of gemm
        [schedule::call] `f` is a program and cannot be called in a schedule
          at t.ft:14 `f(s)`
          help: call methods of `s`, other schedules, or functions of numbers, strings and lists
    "#]],
    );
}

#[test]
fn programs_cannot_call_schedules() {
    check_file(
        "@schedule(f)\ndef fast(s):\n    s.f()\n\ndef f(x: f32[n]):\n    fast(x)\n    tile2d(x, 1, 2)\n",
        expect![[r#"
            [call::decorated] cannot call `fast` in a program: it has a decorator
              at t.ft:6 `fast(x)`
              help: choose a schedule with `--schedule fast`, or call it in another schedule
            [name::unknown] there is no `tile2d` here
              at t.ft:7 `tile2d`
              help: it works on schedules: call it in a function under `@schedule(…)`
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
          help: end its loops and recursion sooner
    "#]],
    );
}

#[test]
fn malformed_schedules() {
    for (text, expect) in [
        (
            "@schedule(gemm)\ndef fast():\n    pass\n",
            expect![[r#"
            [schedule::parameter] the schedule `fast` has no parameter
              at t.ft:10 `fast`
              help: write the schedule as its first parameter: `def fast(s):`
        "#]],
        ),
        (
            "@schedule(gemm)\ndef fast(s=1):\n    pass\n",
            expect![[r#"
            [schedule::parameter] `s` is the schedule and cannot have a default
              at t.ft:10 `1`
              help: put `s` before the other parameters: `def fast(s, …):`
        "#]],
        ),
        (
            "@schedule(gemm)\ndef fast(s: f32):\n    pass\n",
            expect![[r#"
            [schedule::annotation] type annotations are not supported in a schedule
              at t.ft:10 `f32`
              help: leave out the annotation
        "#]],
        ),
        (
            "@schedule(gemm)\ndef fast(s, t: f32 = 2.0):\n    pass\n",
            expect![[r#"
            [schedule::annotation] type annotations are not supported in a schedule
              at t.ft:10 `f32`
              help: leave out the annotation
        "#]],
        ),
        (
            "@schedule(gemm)\ndef fast(s, t: static = 2) -> f32:\n    pass\n",
            expect![[r#"
            [schedule::annotation] type annotations are not supported in a schedule
              at t.ft:10 `f32`
              help: leave out the annotation
        "#]],
        ),
        (
            "@schedule(gemm)\n@schedule(gemm)\ndef fast(s):\n    pass\n",
            expect![[r#"
            [schedule::decorator] `fast` has several decorators
              at t.ft:10 `schedule(gemm)`
              help: write a schedule for each entry, and move their common part into a function
        "#]],
        ),
        (
            "@schedule(gamm)\ndef fast(s):\n    pass\n",
            expect![[r#"
            [schedule::target] there is no entry `gamm` for the schedule `fast`
              at t.ft:9 `schedule(gamm)`
              help: did you mean `gemm`?
        "#]],
        ),
        (
            "@schedule(something)\ndef fast(s):\n    pass\n",
            expect![[r#"
            [schedule::target] there is no entry `something` for the schedule `fast`
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
            [schedule::decorator] unknown decorator
              at t.ft:9 `jit`
              help: write `@schedule(f)` or `@gradient(f)`
        "#]],
        ),
        (
            "@schedule(gemm)\ndef fast(s):\n    s.f(whatever)\n    s.permute([i], lambda i: (i, n))\n",
            expect![[r#"
                [name::unknown] there is no `whatever` here
                  at t.ft:11 `whatever`
                  help: write names of loops, statements and tensors as strings: `"whatever"`
                [name::unknown] there is no `i` here
                  at t.ft:12 `i`
                  help: write names of loops, statements and tensors as strings: `"i"`
            "#]],
        ),
    ] {
        check_file(&format!("{GEMM}{text}"), expect);
    }
}
