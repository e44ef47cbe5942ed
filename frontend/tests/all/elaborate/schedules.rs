//! Schedule functions: their effects on `s`, call by call.

use super::load;
use expect_test::{Expect, expect};
use std::collections::BTreeMap;
use std::sync::Mutex;
use taffeta_ast::{Diagnostic, Diagnostics, Func};
use taffeta_frontend::{
    GradientRequest, Hooks, Program, ScheduleArg, ScheduleCall, ScheduleRequest, ScheduleValue as V, Scheduler,
    StaticValue,
};

/// Scheduler that records every call, and answers with as many new handles as the primitive makes.
#[derive(Default)]
struct Recorder {
    handles: u64,
    calls: String,
}

impl Recorder {
    fn handle(&mut self) -> V {
        self.handles += 1;
        V::Handle(self.handles - 1)
    }

    fn answer(&mut self, call: &ScheduleCall) -> Result<V, Diagnostics> {
        let refused = |message: &str| Diagnostic::new("schedule::illegal", message.to_string());
        match (call.method.as_str(), call.args.as_slice()) {
            ("split", [ScheduleArg { value: V::List(_), span, .. }, ..]) => {
                Err(refused("one loop is split").at(*span).into())
            }
            ("split" | "fission", _) => Ok(V::Tuple(vec![self.handle(), self.handle()])),
            ("merge" | "fuse" | "cache" | "innermost", _) => Ok(self.handle()),
            ("loops", _) => Ok(V::List(vec![self.handle(), self.handle(), self.handle()])),
            ("can", [first, ..]) => Ok(V::Bool(first.value == V::Str("fuse".into()))),
            ("length", [ScheduleArg { value: V::Str(l), .. }]) if l == "k" => Ok(V::Int(8)),
            ("length", _) => Ok(V::Str("n".into())),
            ("parent", _) => Ok(V::None),
            ("cost", _) => Ok(V::Float(0.5)),
            // One refusal has a place of its own, the other has none.
            ("vectorize", [first, ..]) if first.value == V::Str("i".into()) => {
                Err(refused("`i` carries a dependence").at(first.span).into())
            }
            ("auto", _) => Err(refused("there is nothing to do").into()),
            _ => Ok(V::None),
        }
    }
}

impl Scheduler for Recorder {
    fn call(&mut self, call: ScheduleCall) -> Result<V, Diagnostics> {
        let answer = self.answer(&call);
        let arg = |a: &ScheduleArg| match &a.name {
            Some(name) => format!("{name}={}", a.value),
            None => a.value.to_string(),
        };
        let args: Vec<String> = call.args.iter().map(arg).collect();
        self.calls += &format!("{}({})", call.method, args.join(", "));
        match &answer {
            Ok(V::None) => {}
            Ok(v) => self.calls += &format!(" -> {v}"),
            Err(_) => self.calls += " refused",
        }
        self.calls += "\n";
        answer
    }
}

/// Hooks that run every schedule against a [`Recorder`].
#[derive(Default)]
struct Hook(Mutex<String>);

impl Hooks for Hook {
    fn gradient(&self, request: GradientRequest) -> Result<Func, Diagnostics> {
        Ok(Func { name: request.name, ..request.func })
    }

    fn schedule(&self, request: ScheduleRequest<'_>) -> Result<Func, Diagnostics> {
        let mut recorder = Recorder::default();
        let result = request.run(&mut recorder);
        *self.0.lock().unwrap() = format!("{} of {}\n{}", request.name, request.func.name, recorder.calls);
        result.map(|()| request.func.clone())
    }
}

pub(super) const GEMM: &str = "def gemm(a: f32[n, m], b: f32[m, p]) -> f32[n, p]:
    c = zeros((n, p), f32)
    for i in range(n):
        for j in range(p):
            for k in range(m):
                c[i, j] += a[i, k] * b[k, j]
    return c

";

fn run(program: &Program, entry: &str, schedule: &str, set: &[(&str, &str)]) -> String {
    let hook = Hook::default();
    let set: BTreeMap<String, StaticValue> =
        set.iter().map(|(k, v)| (k.to_string(), v.parse().expect("a static value"))).collect();
    let result = program.scheduled(entry, schedule, &set, &hook);
    let calls = hook.0.into_inner().unwrap();
    match result {
        Ok(_) => calls,
        Err(found) => calls + &found.0.iter().map(|d| super::show(d, program.sources())).collect::<String>(),
    }
}

/// Checks the calls of the last schedule of a file for `gemm`, and the diagnostics.
#[track_caller]
pub(super) fn check(src: &str, expect: Expect) {
    check_set(src, &[], expect);
}

#[track_caller]
pub(super) fn check_set(src: &str, set: &[(&str, &str)], expect: Expect) {
    let program = load(&format!("{GEMM}{src}"));
    let name = program.schedules().last().map(|s| s.name.clone()).unwrap_or_default();
    expect.assert_eq(&run(&program, "gemm", &name, set));
}

/// Checks the calls of a schedule with that body.
#[track_caller]
pub(super) fn body(body: &str, expect: Expect) {
    check(&format!("@schedule(gemm)\ndef fast(s):\n{body}"), expect);
}

#[test]
fn tiled_product() {
    check(
        "@schedule(gemm)
def tiled(s, ti=64, tj=64):
    i0, i1 = s.split(\"i\", ti)
    j0, j1 = s.split(\"j\", tj)
    s.reorder([i0, j0, i1, j1])
    s.parallelize(i0)
    s.vectorize(j1)
",
        expect![[r#"
            tiled of gemm
            split("i", 64) -> (#0, #1)
            split("j", 64) -> (#2, #3)
            reorder([#0, #2, #1, #3])
            parallelize(#0)
            vectorize(#3)
        "#]],
    );
}

#[test]
fn arguments_of_every_kind() {
    body(
        "    s.f(1, -2.5, \"a\" \"b\", True, None, (1,), (1, (2, [\"x\"])), [], range(3), key=\"v\", other=[s.innermost(\"i\")])
    s.f()
",
        expect![[r#"
            fast of gemm
            innermost("i") -> #0
            f(1, -2.5, "ab", True, None, (1,), (1, (2, ["x"])), [], [0, 1, 2], key="v", other=[#0])
            f()
        "#]],
    );
}

#[test]
fn loops_are_static() {
    body(
        "    for k in range(3):
        s.a(k)
    for k in static(range(2, 8, 3)):
        s.b(k)
    for name in [\"i\", \"j\"]:
        for factor, last in ((2, False), (4, True)):
            s.split(name, factor, last=last)
    for i, j in ndrange(2, range(5, 7)):
        s.c(i, j)
    for n, l in enumerate(s.loops()):
        s.d(n, l)
    for a, b in zip(reversed([1, 2]), \"xy\"):
        s.e(a, b)
",
        expect![[r#"
            fast of gemm
            a(0)
            a(1)
            a(2)
            b(2)
            b(5)
            split("i", 2, last=False) -> (#0, #1)
            split("i", 4, last=True) -> (#2, #3)
            split("j", 2, last=False) -> (#4, #5)
            split("j", 4, last=True) -> (#6, #7)
            c(0, 5)
            c(0, 6)
            c(1, 5)
            c(1, 6)
            loops() -> [#8, #9, #10]
            d(0, #8)
            d(1, #9)
            d(2, #10)
            e(2, "x")
            e(1, "y")
        "#]],
    );
}

#[test]
fn branches_are_static() {
    body(
        "    if s.can(\"fuse\", \"i\", \"j\"):
        s.fuse(\"i\", \"j\")
    elif s.can(\"swap\", \"i\"):
        s.never()
    else:
        s.never()
    if not s.can(\"swap\", \"i\") and s.length(\"k\") % 4 == 0:
        s.unroll(\"k\", factor=4 if s.length(\"k\") > 4 else 2)
    if s.can(\"swap\", \"i\") or s.parent(\"i\") is None:
        s.outermost()
    if s.can(\"swap\", \"i\"):
        s.never()
",
        expect![[r#"
            fast of gemm
            can("fuse", "i", "j") -> True
            fuse("i", "j") -> #0
            can("swap", "i") -> False
            length("k") -> 8
            length("k") -> 8
            unroll("k", factor=4)
            can("swap", "i") -> False
            parent("i")
            outermost()
            can("swap", "i") -> False
        "#]],
    );
}

#[test]
fn names_are_variables() {
    body(
        "    (a, b), c = s.split(\"i\", 2), 3
    a, b = b, a
    s.f(a, b, c)
    [x, (y, z)] = [1, (2, 3)]
    x = x + y * z
    x -= 1
    loops = [a]
    loops += [b]
    loops = loops + [s.innermost(\"j\")]
    s.reorder(loops)
    s.f(x, loops[0], loops[-1], loops[1:], len(loops))
    for k in range(3):
        x = x * 2
        last = k
    if x > 8:
        size = x
    s.f(x, last, size)
",
        expect![[r#"
            fast of gemm
            split("i", 2) -> (#0, #1)
            f(#1, #0, 3)
            innermost("j") -> #2
            reorder([#1, #0, #2])
            f(6, #1, #2, [#0, #2], 3)
            f(48, 2, 48)
        "#]],
    );
}

#[test]
fn values_are_computed() {
    body(
        "    sizes = [2 ** k for k in range(6) if k % 2 == 0]
    s.f(sizes, max(sizes), sum(sizes), min(3, 4), 7 // 2, 7 / 2, clip(9, 0, 5), abs(-3))
    s.f(f\"c.d{len(sizes)}\", \"i\" + \"/\" + \"j\", 4 in sizes, 5 not in sizes, \"c\"[0])
    a, b = s.split(\"i\", 2)
    s.f(a == a, a == b, a != b, b in [a, b], a in [\"i\"], isinstance(2, int), s.cost() * 2)
    assert len(sizes) == 3, f\"{len(sizes)} sizes\"
",
        expect![[r#"
            fast of gemm
            f([1, 4, 16], 16, 21, 3, 3, 3.5, 5, 3)
            f("c.d3", "i/j", True, True, "c")
            split("i", 2) -> (#0, #1)
            cost() -> 0.5
            f(True, False, True, True, False, True, 1.0)
        "#]],
    );
}

#[test]
fn schedules_call_schedules_and_functions() {
    check(
        "FACTOR = 16

def halves(n):
    return n // 2, n - n // 2

def outer(s, l, factor=FACTOR):
    if factor == 1:
        return l
    first, second = s.split(l, factor)
    return first

@schedule(gemm)
def base(s, l=\"i\", times=1):
    for t in range(times):
        s.parallelize(outer(s, l))
    return l

@schedule(gemm)
def all(s):
    assert base(s) == \"i\"
    base(s, times=2, l=\"j\")
    base(l=\"k\", s=s)
    a, b = halves(9)
    s.f(a, b, outer(s, \"k\", 1), outer(s, \"k\", factor=b))
",
        expect![[r#"
            all of gemm
            split("i", 16) -> (#0, #1)
            parallelize(#0)
            split("j", 16) -> (#2, #3)
            parallelize(#2)
            split("j", 16) -> (#4, #5)
            parallelize(#4)
            split("k", 16) -> (#6, #7)
            parallelize(#6)
            split("k", 5) -> (#8, #9)
            f(4, 5, "k", #8)
        "#]],
    );
}

#[test]
fn recursive_schedules() {
    check(
        "def halve(s, l, times):
    if times > 0:
        a, b = s.split(l, parts=2)
        halve(s, b, times - 1)

@schedule(gemm)
def fast(sched):
    halve(sched, \"i\", 3)
",
        expect![[r#"
            fast of gemm
            split("i", parts=2) -> (#0, #1)
            split(#1, parts=2) -> (#2, #3)
            split(#3, parts=2) -> (#4, #5)
        "#]],
    );
}

#[test]
fn names_of_modules_and_of_the_library() {
    check(
        "from tuned import wide as w, W

@schedule(gemm)
def fast(s):
    i0, j0, i1, j1 = tile2d(s, \"i\", \"j\", tj=W)
    w(s, j1)
",
        expect![[r#"
            fast of gemm
            split("i", 32) -> (#0, #1)
            split("j", 8) -> (#2, #3)
            reorder([#0, #2, #1, #3])
            vectorize(#3, width=8)
        "#]],
    );
    // A name of the file hides the library's.
    check(
        "def tile2d(s):
    s.mine()

@schedule(gemm)
def fast(s):
    tile2d(s)
",
        expect![[r#"
            fast of gemm
            mine()
        "#]],
    );
    check(
        "from libop import tile2d as t\n\n@schedule(gemm)\ndef fast(s):\n    t(s, \"i\", \"k\")\n",
        expect![[r#"
        fast of gemm
        split("i", 32) -> (#0, #1)
        split("k", 32) -> (#2, #3)
        reorder([#0, #2, #1, #3])
    "#]],
    );
}

#[test]
fn an_imported_schedule_is_chosen_by_its_name() {
    let program = load(&format!("from tuned import plain\n\n{GEMM}"));
    expect![[r#"
        plain of gemm
        parallelize("i")
    "#]]
    .assert_eq(&run(&program, "gemm", "plain", &[]));
}

#[test]
fn a_gradient_is_scheduled_by_its_name() {
    let src = "def loss(w: f64, k: static) -> f64:
    return k * w

dloss = grad(loss)

@schedule(dloss)
def fast(s, t=2):
    s.f(t)
";
    expect![[r#"
        fast of dloss
        f(5)
    "#]]
    .assert_eq(&run(&load(src), "dloss", "fast", &[("k", "3"), ("t", "5")]));
}

#[test]
fn permute_has_a_lambda() {
    body(
        "    skew = 2
    s.permute([\"i\", \"j\"], lambda i, j: (skew * i + j, j))
    s.permute([\"i\"], map=lambda x: n - 1 - x)
    s.permute([\"i\", \"j\"], lambda i, j: [j, i])
    s.permute([\"i\"], lambda m: m + 1)
    s.permute([\"i\"], lambda i: (i // 4, i % 4, 0, i if i < 2 else m))
",
        expect![[r#"
            fast of gemm
            permute(["i", "j"], lambda i, j: (i * 2 + j, j))
            permute(["i"], map=lambda x: n - 1 - x)
            permute(["i", "j"], lambda i, j: (j, i))
            permute(["i"], lambda m: m + 1)
            permute(["i"], lambda i: (i // 4, i % 4, 0, select(i < 2, i, m)))
        "#]],
    );
    check(
        "def skewed(i, j, by):
    return by * i + j

@schedule(gemm)
def fast(s):
    s.permute([\"i\", \"j\"], lambda i, j: (skewed(i, j, by=2), j))
",
        expect![[r#"
            fast of gemm
            permute(["i", "j"], lambda i, j: (i * 2 + j, j))
        "#]],
    );
}

#[test]
fn lambdas_use_sizes_of_the_program() {
    use taffeta_ast::ExprKind;
    #[derive(Default)]
    struct Keeps(Mutex<Option<V>>);
    impl Scheduler for &Keeps {
        fn call(&mut self, call: ScheduleCall) -> Result<V, Diagnostics> {
            *self.0.lock().unwrap() = call.args.into_iter().next().map(|a| a.value);
            Ok(V::None)
        }
    }
    impl Hooks for Keeps {
        fn gradient(&self, request: GradientRequest) -> Result<Func, Diagnostics> {
            Ok(request.func)
        }
        fn schedule(&self, request: ScheduleRequest<'_>) -> Result<Func, Diagnostics> {
            request.run(&mut &*self).map(|()| request.func.clone())
        }
    }
    let hook = Keeps::default();
    let program = load(&format!("{GEMM}@schedule(gemm)\ndef f(s):\n    s.permute(lambda i: (n, i))\n"));
    let func = program.scheduled("gemm", "f", &BTreeMap::new(), &hook).expect("a program");
    let Some(V::Map(map)) = hook.0.into_inner().unwrap() else { panic!("no map") };
    assert!(matches!(map.results[0].kind(), ExprKind::Var(s) if func.sizes.contains(s)));
    assert!(matches!(map.results[1].kind(), ExprKind::Var(s) if *s == map.params[0]));
}

#[test]
fn parameters_are_set_from_outside() {
    let src = "def scaled(x: f32[n], w: static, u: static = 2) -> f32[n]:
    y = w * u * x
    return y

@schedule(scaled)
def fast(s, t, w=0, name=\"y.d0\"):
    s.split(name, t, w=w)
";
    let program = load(src);
    expect![[r#"
        fast of scaled
        split("z", 8, w=3) -> (#0, #1)
    "#]]
    .assert_eq(&run(&program, "scaled", "fast", &[("w", "3"), ("t", "8"), ("name", "\"z\"")]));
    expect![[r#"
        fast of scaled
        [schedule::parameter] the parameter `t` of the schedule `fast` needs a value
          at t.ft:6 `t`
          help: give it a default (`t=32`), or set it: `--set t=32`
    "#]]
    .assert_eq(&run(&program, "scaled", "fast", &[("w", "3")]));
    expect![[r#"
        [schedule::parameter] neither `scaled` nor its schedule `fast` has a parameter `nane` that could be set
          at t.ft:6 `fast`
          help: did you mean `name`?
    "#]]
    .assert_eq(&run(&program, "scaled", "fast", &[("w", "3"), ("t", "8"), ("nane", "1")]));
    expect![[r#"
        [schedule::parameter] neither `scaled` nor its schedule `fast` has a parameter `s` that could be set
          at t.ft:6 `fast`
          help: their parameters are w, u, t, name
    "#]]
    .assert_eq(&run(&program, "scaled", "fast", &[("s", "3")]));
    expect![[r#"
        [entry::static] the static parameter `w` needs a value
          at t.ft:1 `w`
          help: give it: `--set w=…`
    "#]]
    .assert_eq(&run(&program, "scaled", "fast", &[("t", "3")]));
}

#[test]
fn a_refusal_ends_the_schedule() {
    body(
        "    s.a()
    s.vectorize(\"i\")
    s.never()
",
        expect![[r#"
            fast of gemm
            a()
            vectorize("i") refused
            [schedule::illegal] `i` carries a dependence
              at t.ft:12 `"i"`
        "#]],
    );
    body(
        "    s.auto()\n",
        expect![[r#"
        fast of gemm
        auto() refused
        [schedule::illegal] there is nothing to do
          at t.ft:11 `s.auto()`
    "#]],
    );
    // In a function, notes list the calls that lead there; in the library, the place is the user's call.
    check(
        "def inner(s):
    s.vectorize(\"i\")
    s.never()

@schedule(gemm)
def fast(s):
    inner(s)
    s.never()
",
        expect![[r#"
            fast of gemm
            vectorize("i") refused
            [schedule::illegal] `i` carries a dependence
              at t.ft:10 `"i"`
              note: in `inner`, called at t.ft:15
        "#]],
    );
    body(
        "    tile2d(s, \"i\", [])\n",
        expect![[r#"
            fast of gemm
            split("i", 32) -> (#0, #1)
            split([], 32) refused
            [schedule::illegal] one loop is split
              at t.ft:11 `tile2d(s, "i", [])`: in this call of `tile2d`
              at <libop>/schedules/tile2d.ft:3 `j`: found here
              note: in `tile2d`, called at t.ft:11
        "#]],
    );
}
