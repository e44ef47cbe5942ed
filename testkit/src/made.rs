//! Random programs for automatic schedules: nests, shapes that random nests hardly have, and gradients.

use taffeta_ast::random::dense::dense;
use taffeta_ast::random::nest::{Class, nest};
use taffeta_ast::{FileId, Func, Span};
use taffeta_autodiff::{Kind, Request, Tape, differentiate};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

/// Family of random programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Nest of a class.
    Nest(Class),
    /// Sweeps in place, scratch arrays of many sizes, sums over windows.
    Shaped,
    /// Gradient or tangents of a program of another family.
    Derivative,
}

/// All families.
pub const SORTS: [Sort; 6] = [
    Sort::Nest(Class::Dense),
    Sort::Nest(Class::Affine),
    Sort::Nest(Class::Private),
    Sort::Nest(Class::Wild),
    Sort::Shaped,
    Sort::Derivative,
];

/// Returns the random program of a seed.
pub fn program(seed: u64, sort: Sort) -> Func {
    match sort {
        Sort::Nest(class) => nest(seed, class),
        Sort::Shaped => shaped(seed),
        Sort::Derivative => derivative(seed),
    }
}

/// Returns a program of a shape that random nests hardly have.
fn shaped(seed: u64) -> Func {
    [sweeps, prefixes, windows][seed as usize % 3](seed / 3)
}

/// Returns a program that has a derivative with respect to all its floats; most have one.
pub fn derivable(seed: u64) -> Func {
    const BETWEEN: u64 = 1 << 32;
    let found = (0..).map(|k| seed + k * BETWEEN).find_map(|seed| {
        let func = if seed % 4 == 3 { shaped(seed / 4) } else { dense(seed) };
        derived(&func, Kind::Vjp, Tape::All).map(|_| func)
    });
    found.expect("most programs have a derivative")
}

/// Returns a derivative, with any choice of tapes.
fn derivative(seed: u64) -> Func {
    let kind = [Kind::Vjp, Kind::ValueAndVjp, Kind::Vjp, Kind::Jvp][seed as usize / 4 % 4];
    let tape = [Tape::Auto, Tape::All, Tape::None][seed as usize % 3].clone();
    let func = derivable(seed);
    derived(&func, kind, tape).unwrap_or_else(|| derived(&func, Kind::Vjp, Tape::All).expect("it has that"))
}

fn derived(func: &Func, kind: Kind, tape: Tape) -> Option<Func> {
    let floats = func.params.iter().filter(|p| p.tensor.dtype.is_float());
    let wrt: Vec<String> = floats.map(|p| p.tensor.symbol.name().to_string()).collect();
    // Generated checks need the position of the request.
    let span = Span { file: FileId(0), start: 0, end: 1 };
    differentiate(&Request { span, tape, ..Request::new(kind, "derivative", func, &wrt) }).ok()
}

/// Builds a few sweeps in place, in which points read some of their neighbours.
fn sweeps(seed: u64) -> Func {
    let neighbours = (0..9).filter(|k| [1, 3].contains(k) || seed >> k & 1 == 1);
    let points: Vec<String> = neighbours.map(|k: u64| format!("a[i + {} - 1, j + {} - 1]", k / 3, k % 3)).collect();
    elaborated(&format!(
        "def f(a: inout[f64[n, n]]):\n    for t in range({}):\n        for i in range(1, n - 1):\n            \
         for j in range(1, n - 1):\n                a[i, j] = 0.1 * ({})\n",
        2 + seed % 3,
        points.join(" + ")
    ))
}

/// Builds scratch arrays whose size changes with the enclosing loop.
fn prefixes(seed: u64) -> Func {
    let size = ["i + 1", "n - i", "min(i + 2, n)", "2 * i + 1", "i // 2 + 1"][seed as usize % 5];
    elaborated(&format!(
        "def f(x: f64[n], y: inout[f64[n]]):\n    for i in range(n):\n        t = empty(({size},), f64)\n        \
         for k in range({size}):\n            t[k] = x[k % n] * x[i]\n        for k in range({size}):\n            \
         y[i] += t[{size} - 1 - k] * t[k // {}]\n",
        1 + seed % 3
    ))
}

/// Builds sums weighted over windows; windows are cut off at the ends, or padding lies beside the ends.
fn windows(seed: u64) -> Func {
    let (window, over, columns) = (16 + seed % 5, seed / 5 % 3, [8, 3, 16][seed as usize / 15 % 3]);
    let length = window - 1 - 2 * over;
    let near = format!("i + j - {over}");
    let guard = match over {
        0 => "True".into(),
        _ => format!("0 <= {near} and {near} < n + {length}"),
    };
    let halved = ["", "        for j in range(size):\n            s[j] *= 0.5\n"][seed as usize / 45 % 2];
    elaborated(&format!(
        "def f(q: f64[n, {columns}], x: f64[n + {length}, {columns}], y: inout[f64[n, {columns}]]):\n    \
         size = {window}\n    for i in range(n):\n        s = zeros((size,), f64)\n        \
         for j in range(size):\n            \
         if {guard}:\n                for c in range({columns}):\n                    \
         s[j] += q[i, c] * x[{near}, c]\n{halved}        for j in range(size):\n            \
         if {guard}:\n                for c in range({columns}):\n                    \
         y[i, c] += s[j] * x[{near}, c]\n"
    ))
}

fn elaborated(text: &str) -> Func {
    let program = Program::load(Source::inline("made.ft", text), &NoLoader);
    program.elaborate("f", &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}\n{text}"))
}
