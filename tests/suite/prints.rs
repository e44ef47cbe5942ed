//! `print` in programs: the same lines from the interpreter and from C, from every schedule and every gradient, as
//! often as the program prints them.

use std::sync::{Arc, Mutex};
use taffeta::{Backend, Gradient, Options, Program, Tape, inputs};

/// Runs an entry on inputs in the syntax of the command line; returns the lines that it prints.
fn lines(source: &str, entry: &str, options: &Options, given: &[(&str, &str)]) -> Vec<String> {
    let program = Program::from_source("p.ft", source).unwrap_or_else(|e| panic!("{e}"));
    let function = program.compile(entry, options).unwrap_or_else(|e| panic!("{e}"));
    let found = Arc::new(Mutex::new(Vec::new()));
    let sink = found.clone();
    let function = function.on_print(move |line| sink.lock().unwrap().push(line.to_string()));
    let given: Vec<(String, String)> = given.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    let known: Vec<(String, i64)> = options.sizes.iter().map(|(n, v)| (n.clone(), *v)).collect();
    let inputs = inputs::read(function.signature(), &given, &known)
        .unwrap_or_else(|faults| panic!("{}", taffeta::Report::from(faults)));
    // The error that stops the program comes after its lines.
    if let Err(e) = function.run(inputs.values, &inputs.sizes, 3) {
        found.lock().unwrap().push(e.report().diagnostics[0].message.clone());
    }
    std::mem::take(&mut found.lock().unwrap())
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

fn by(backend: Backend) -> Options {
    Options::default().optimize(false).backend(backend)
}

const PROGRAM: &str = r#"
def f(x: f64[n, m]) -> f64[n]:
    print("begin", n, m)
    s = zeros((n,), f64)
    for i in range(n):
        row = empty((m,), f64)
        for j in range(m):
            row[j] = x[i, j] * 2.0
            print("at", i, j, row[j], x[i, j] > 0.5)
        for k in range(m):
            s[i] += row[k]
        label("whole")
        print("row", i, row, "of", s[i])
    print("end", s)
    return s

@schedule(f)
def split(s):
    s.split("i", 3)
    s.split("j", 2)

@schedule(f)
def threads(s):
    s.parallelize("i")

@schedule(f)
def vectors(s):
    s.vectorize("j")
    s.vectorize("k")

@schedule(f)
def backwards(s):
    s.reverse("j")

@schedule(f)
def unrolled(s):
    o, i = s.split("j", 2)
    s.unroll(i)

@schedule(f)
def blended(s):
    o, i = s.split("j", 2)
    s.blend(i)

@schedule(f)
def together(s):
    s.fuse("j", "k")

@schedule(f)
def cached(s):
    s.cache("j", "x")

@schedule(f)
def special(s):
    s.specialize("i", "n % 2 == 0")

@schedule(f)
def tail(s):
    o, i = s.split("j", 2)
    s.separate_tail(o)

@schedule(f)
def several(s):
    o, i = s.split("i", 2)
    s.parallelize(o)
    s.vectorize("k")
"#;

const SCHEDULES: [&str; 11] = [
    "split",
    "threads",
    "vectors",
    "backwards",
    "unrolled",
    "blended",
    "together",
    "cached",
    "special",
    "tail",
    "several",
];

#[test]
fn every_schedule_prints_every_line_once() {
    let given = [("x", "[[0.25,1,2,3,4],[5,6,7,8,9],[-1,-2,-3,-4,-5],[0,0,0,0,0]]")];
    let expected = lines(PROGRAM, "f", &by(Backend::Interp), &given);
    assert_eq!(expected.len(), 2 + 4 * 6);
    assert_eq!(expected[..2], ["begin 4 5", "at 0 0 0.5 False"]);
    assert_eq!(expected[6], "row 0 [0.5 2 4 6 8] of 20.5");
    assert_eq!(lines(PROGRAM, "f", &by(Backend::C), &given), expected);
    let expected = sorted(expected);
    for schedule in SCHEDULES {
        for backend in [Backend::Interp, Backend::C] {
            let options = by(backend).schedule(schedule);
            let found = sorted(lines(PROGRAM, "f", &options, &given));
            assert_eq!(found, expected, "{schedule} by {backend:?}");
        }
    }
}

/// Checks that steps that inline, recompute or store a tensor in another way neither repeat nor lose a line, or are
/// refused.
#[test]
fn steps_on_tensors_preserve_lines_or_are_refused() {
    let source = |step: &str| {
        format!(
            "def f(x: f64[n]) -> f64[n]:
    t = empty((n,), f64)
    for i in range(n):
        t[i] = x[i] + 1.0
    for i2 in range(n):
        print(\"t\", i2, t[i2])
    u = x * 2.0
    print(\"u\", u)
    y = t + u
    return y

@schedule(f)
def steps(s):
    {step}
"
        )
    };
    let given = [("x", "[1,2,3,4]")];
    let expected = ["t 0 2", "t 1 3", "t 2 4", "t 3 5", "u [2 4 6 8]"];
    let scheduled = |backend| by(backend).schedule("steps");
    for step in
        ["s.inline(\"t\")", "s.var_split(\"t\", 0, 2)", "s.set_mem_type(\"u\", \"heap\")", "s.swap([\"i\", \"i2\"])"]
    {
        let program = Program::from_source("p.ft", &source(step)).unwrap();
        if program.compile("f", &scheduled(Backend::Interp)).is_err() {
            assert!(step.starts_with("s.swap"), "{step}");
            continue;
        }
        for backend in [Backend::Interp, Backend::C] {
            assert_eq!(lines(&source(step), "f", &scheduled(backend), &given), expected, "{step} by {backend:?}");
        }
    }
    for step in ["s.inline(\"u\")", "s.var_split(\"u\", 0, 2)", "s.var_unsqueeze(\"u\", 0)"] {
        let program = Program::from_source("p.ft", &source(step)).unwrap();
        let Err(refused) = program.compile("f", &scheduled(Backend::Interp)) else { panic!("{step} is not refused") };
        assert!(refused.to_string().contains("`u` is printed whole"), "{refused}");
    }
}

#[test]
fn loops_that_print_are_not_products() {
    let source = "
def f(a: f64[n, n], b: f64[n, n]) -> f64[n, n]:
    c = zeros((n, n), f64)
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i, j] += a[i, k] * b[k, j]
                print(i, j, k)
    return c

@schedule(f)
def product(s):
    s.as_lib(\"i\")
";
    // Lines move to a nest of their own.
    let given = [("a", "[[1,2],[3,4]]"), ("b", "[[1,0],[0,1]]")];
    let expected = lines(source, "f", &by(Backend::Interp), &given);
    assert_eq!(expected.len(), 8);
    for backend in [Backend::Interp, Backend::C] {
        let found = lines(source, "f", &by(backend).schedule("product"), &given);
        assert_eq!(sorted(found), expected, "{backend:?}");
    }
}

/// Checks that threads print whole lines, long ones too.
#[test]
fn threads_print_whole_lines() {
    let source = "
def f(x: f64[n, m]) -> f64:
    for i in range(n):
        print(i, x[i])
    return x[0, 0]

@schedule(f)
def threads(s):
    s.parallelize(\"i\", schedule=\"dynamic\")
";
    let options = Options::default().schedule("threads").size("n", 200).size("m", 300);
    let found = lines(source, "f", &options, &[("x", "rand")]);
    let expected = lines(source, "f", &by(Backend::Interp).size("n", 200).size("m", 300), &[("x", "rand")]);
    assert_eq!(sorted(found), sorted(expected));
}

const RECURRENCE: &str = r#"
def f(x: f64, steps: i32) -> f64:
    h = empty((3,), f64)
    h[...] = x
    for t in range(steps):
        u = empty((3,), f64)
        for k in range(3):
            u[k] = sin(h[k]) * x
        print("step", t, u, h[0])
        for k in range(3):
            h[k] = u[k] + exp(u[(k + 1) % 3])
    y = h[0] * h[1]
    print("y", y)
    return y
"#;

#[test]
fn gradients_print_the_lines_of_the_program() {
    let given = [("x", "0.3"), ("steps", "7")];
    let expected = lines(RECURRENCE, "f", &by(Backend::Interp), &given);
    assert_eq!(expected.len(), 8);
    let of = |tape, memory: Option<u64>| Gradient::default().tape(tape).memory(memory).value("steps", 7);
    let named = |n: &str| Tape::Named(vec![n.to_string()]);
    let gradients = [
        of(Tape::All, None),
        of(Tape::None, None),
        of(Tape::Auto, None),
        of(named("h"), None),
        of(named("u"), None),
        of(Tape::Auto, Some(300)),
        Gradient::default().mode(taffeta::Mode::Forward),
    ];
    for gradient in gradients {
        for backend in [Backend::Interp, Backend::C] {
            let options = by(backend).gradient(gradient.clone());
            let mut given = given.to_vec();
            given.push(if gradient.mode == taffeta::Mode::Forward { ("x.tangent", "1") } else { ("y.grad", "1") });
            let found = lines(RECURRENCE, "f", &options, &given);
            assert_eq!(found, expected, "{gradient:?} by {backend:?}");
        }
    }
}

#[test]
fn gradients_inside_of_programs_print_once() {
    let source = "
def sums(x: f64[n]) -> f64:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
        print(\"sum\", i, s)
    print(\"of\", x)
    return s

def step(w: f64[n, m]) -> f64[n]:
    l, d = value_and_grad(sums)(w[:, 1])
    return d

def matrix(x: f64[n]) -> f64[n, n]:
    return jacobian(doubled)(x)

def doubled(x: f64[n]) -> f64[n]:
    print(\"doubled\", x)
    return 2.0 * x
";
    for backend in [Backend::Interp, Backend::C] {
        let found = lines(source, "step", &by(backend), &[("w", "[[1,2],[3,4]]")]);
        assert_eq!(found, ["sum 0 4", "sum 1 20", "of [2 4]"], "{backend:?}");
        let found = lines(source, "matrix", &by(backend), &[("x", "[1,2,3]")]);
        assert_eq!(found, ["doubled [1 2 3]"], "{backend:?}");
    }
}

/// Checks that an error comes after the lines before it, and not earlier: no check is hoisted out of a loop that
/// prints.
#[test]
fn lines_before_an_error_are_printed() {
    let source = "
def f(x: f64[n], k: i32[m], bad: i32) -> f64[m]:
    y = zeros((m,), f64)
    for i in range(m):
        print(\"picks\", k[i])
        y[i] = x[k[i]]
        assert bad == 0, \"it is bad\"
        print(\"picked\", y[i])
    return y
";
    for (k, bad, expected) in [
        (
            "[1,5]",
            "0",
            &["picks 1", "picked 2", "picks 5", "index 5 is out of range for dimension 0 of `x`, which has size 2"][..],
        ),
        ("[0,1]", "1", &["picks 0", "it is bad"]),
    ] {
        for backend in [Backend::Interp, Backend::C] {
            let found = lines(source, "f", &by(backend), &[("x", "[1,2]"), ("k", k), ("bad", bad)]);
            assert_eq!(found, expected, "{backend:?}");
        }
    }
}
