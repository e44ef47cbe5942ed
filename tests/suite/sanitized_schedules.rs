//! Scheduled code and gradients under AddressSanitizer and UndefinedBehaviorSanitizer: the example of every primitive,
//! and gradients with taped and recomputed values, at sizes that leave tails of blocks and vectors.

use crate::docs;
use crate::sanitized::{Prepared, faults, prepare};
use taffeta::{Gradient, Options, Program, Tape};

/// Prepares an entry with these inputs for its parameters, and `default` for the others.
fn prepared(
    k: usize,
    name: String,
    program: &Program,
    (entry, options): (&str, &Options),
    (given, default): (&[(&str, &str)], &str),
    size: i64,
) -> Prepared {
    let found = prepare(k, name.clone(), program, (entry, options), |signature| {
        let of = |p: &str| given.iter().find(|(n, _)| *n == p).map_or(default, |(_, v)| v).to_string();
        let given: Vec<_> = signature.params().map(|p| (p.name.clone(), of(&p.name))).collect();
        let sizes: Vec<_> =
            signature.sizes.iter().enumerate().map(|(k, s)| (s.name.clone(), size + k as i64)).collect();
        Ok(taffeta::inputs::read(signature, &given, &sizes).unwrap_or_else(|f| panic!("{name}: {}", f[0].diagnostic)))
    });
    found.unwrap_or_else(|e| panic!("{name}: {e}")).expect("its inputs are read")
}

#[test]
fn examples_of_primitives_have_no_undefined_behaviour() {
    let mut all = Vec::new();
    for (name, text) in docs::examples() {
        let program = Program::from_source(&format!("{name}.ft"), &text).unwrap_or_else(|e| panic!("{e}"));
        for (entry, schedule) in docs::schedules(&text).into_iter().filter(|(_, s)| s != "refused") {
            let options = Options::default().schedule(schedule.as_str());
            let called = format!("{name}: {entry} under {schedule}");
            all.push(prepared(all.len(), called, &program, (&entry, &options), (&[], "randint(-4,5)"), 13));
        }
    }
    assert!(all.len() > 25, "only {} scheduled programs", all.len());
    let faults = faults(&all);
    assert!(faults.is_empty(), "{}\n{} faults in {} programs", faults.join("\n"), faults.len(), all.len());
}

/// Programs with a state that is overwritten, layers of products, elements picked under conditions, and time steps of a
/// stencil.
const PROGRAMS: &str = "
def recurrence(x: f64[n], w: f64) -> f64:
    h: f64 = 0.0
    s: f64 = 0.0
    for t in range(n):
        h = tanh(w * h + x[t])
        s += h * h
    return s


def layers(x: f32[n, m], w: f32[k, m, m]) -> f32[n, m]:
    h = empty((n, m), f32)
    h[...] = x
    for l in range(k):
        z = h @ w[l]
        h[...] = tanh(z)
    return h


def picked(x: f64[n], at: i32[m]) -> (f64, f64[n]):
    y = zeros((n,), f64)
    top: f64 = -inf
    p: f64 = 1.0
    for i in range(m):
        if x[at[i]] > 0.5:
            p *= 1.0 + x[at[i]]
            y[at[i]] += p * x[(at[i] + i) % n]
        top = max(top, x[at[i]] * p)
    return top * p, y


@schedule(picked)
def together(s):
    s.unroll(\"i\", factor=4)


def heat(u: inout[f64[n]], k: f64[n]):
    v = empty((n,), f64)
    for t in range(60):
        for i in range(1, n - 1):
            v[i] = u[i] + k[i] * (u[i - 1] - 2 * u[i] + u[i + 1]) * u[i]
        for j in range(1, n - 1):
            u[j] = v[j]


@schedule(heat)
def fast(s):
    outer, inner = s.split(\"i\", 4)
    s.parallelize(outer)
    s.vectorize(inner)
    s.vectorize(\"j\")
";

#[test]
fn gradients_have_no_undefined_behaviour() {
    let program = Program::from_source("gradients.ft", PROGRAMS).unwrap_or_else(|e| panic!("{e}"));
    let at = [("at", "randint(0,11)")];
    let mut all = Vec::new();
    let mut add = |entry: &str, schedule: Option<&str>, gradient: Gradient, options: Options| {
        let name = format!("gradient of {entry} under {schedule:?}, {gradient:?}");
        let options = options.schedule(schedule).gradient(gradient);
        all.push(prepared(all.len(), name, &program, (entry, &options), (&at, "rand(seed=5)"), 11));
    };
    let entries = [("recurrence", None), ("layers", None), ("picked", Some("together")), ("heat", Some("fast"))];
    for (entry, schedule) in entries {
        for tape in [Tape::All, Tape::None, Tape::Auto] {
            add(entry, schedule, Gradient::default().tape(tape), Options::default());
        }
    }
    // From checkpoints, with less memory than without a budget.
    let known = Options::default().size("n", 11);
    for entry in ["recurrence", "heat"] {
        let free = program.explained(entry, &known.clone().gradient(Gradient::default()));
        let peak = free.unwrap_or_else(|e| panic!("{e}")).1.peak.expect("its sizes are known");
        add(entry, None, Gradient::default().memory(peak - 1), known.clone());
    }
    let faults = faults(&all);
    assert!(faults.is_empty(), "{}\n{} faults in {} gradients", faults.join("\n"), faults.len(), all.len());
}
