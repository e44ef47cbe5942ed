//! Choice of tapes under automatic schedules: the decision, on programs made for it, and the correctness of the
//! gradient.

use itertools::Itertools as _;
use taffeta::schedule::auto::{Answer, Decision, MATERIALISE};
use taffeta::{Backend, Function, Gradient, Options, Program, Tape};

/// Programs whose best tapes are known:
///
/// - `beside`: both passes fit in one loop, where a tape is a register; `autodiff` recomputes `exp`.
/// - `cheap`: reading `a` and doing seven multiply-adds takes less time than writing and reading a tape; `autodiff`
///   keeps values of so many operations.
/// - `mixed`: `slow` is worth a tape, and `p`, `q` and `r` are not.
/// - `pairs`: a tape of all pairs is far larger than `x` and `c`; if both passes fit in one loop, it is a register.
/// - `asked`: a gradient in the program itself, whose sizes are those of the caller.
const PROGRAM: &str = "
def beside(x: f64[n]) -> f64[n]:
    y = empty((n,), f64)
    for i in range(n):
        t = exp(x[i])
        y[i] = t * t * x[i]
    return y

def cheap(a: f32[n], c: f32[8]) -> f32:
    total: f32 = 0.0
    for i in range(n):
        t = c[0] * a[i] + c[1] * a[i] + c[2] * a[i] + c[3] * a[i] + c[4] * a[i] + c[5] * a[i] + c[6] * a[i]
        total += t * t
    return sqrt(total)

def mixed(x: f32[n], u: f32[n], v: f32[n], w: f32[n], c: f32[8]) -> f32:
    total: f32 = 0.0
    for i in range(n):
        slow = exp(sin(x[i]))
        p = c[0] * u[i] + c[1] * u[i] + c[2] * u[i] + c[3] * u[i] + c[4] * u[i] + c[5] * u[i] + c[6] * u[i]
        q = c[0] * v[i] + c[1] * v[i] + c[2] * v[i] + c[3] * v[i] + c[4] * v[i] + c[5] * v[i] + c[6] * v[i]
        r = c[0] * w[i] + c[1] * w[i] + c[2] * w[i] + c[3] * w[i] + c[4] * w[i] + c[5] * w[i] + c[6] * w[i]
        total += slow * (p * p + q * q + r * r)
    return sqrt(total)

def pairs(x: f64[n], c: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for k in range(m):
            t = exp(x[i] * c[k])
            y[i] += t * t
    return y

def asked(a: f32[n], c: f32[8]) -> f32[n]:
    g = grad(cheap, wrt=[\"a\"])(a, c)
    return g

def said(a: f32[n], c: f32[8]) -> f32[n]:
    g = grad(cheap, wrt=[\"a\"], tape=\"all\")(a, c)
    return g
";

fn program() -> Program {
    Program::from_source("m.ft", PROGRAM).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns options for a large size, on a machine that is the same everywhere.
fn large() -> Options {
    Options::default().portable(true).size("n", 4_000_000)
}

fn by(wrt: &[&str]) -> Gradient {
    Gradient::default().wrt(wrt)
}

/// Returns the decision about an entry, and the program under its schedule.
fn decided(entry: &str, options: &Options) -> (Option<Decision>, String) {
    decided_in(&program(), entry, options)
}

fn decided_in(program: &Program, entry: &str, options: &Options) -> (Option<Decision>, String) {
    let schedule = program.scheduled(entry, options).unwrap_or_else(|e| panic!("{entry}: {e}"));
    let found = schedule.decisions().iter().find(|d| d.rule == MATERIALISE).cloned();
    (found, taffeta_ast::print::func(schedule.func()))
}

/// Loads an example with a gradient `free` of one of its functions, which leaves its tapes open.
fn example(file: &str, function: &str, wrt: &[&str]) -> Program {
    let path = format!("{}/examples/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let wrt = wrt.iter().map(|name| format!("\"{name}\"")).join(", ");
    let text = format!("{text}\nfree = vjp({function}, wrt=[{wrt}])\n");
    Program::from_source("example.ft", &text).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the chosen tapes of the gradient `free` of an example.
fn kept_in(program: &Program, options: &Options) -> String {
    let (found, text) = decided_in(program, "free", options);
    let found = found.unwrap_or_else(|| panic!("no tapes were chosen for\n{text}"));
    found.outcomes[found.taken].steps.clone()
}

fn taken(entry: &str, options: &Options) -> (String, String) {
    let (found, text) = decided(entry, options);
    let found = found.unwrap_or_else(|| panic!("no tapes were chosen for `{entry}`"));
    (found.outcomes[found.taken].steps.clone(), text)
}

#[test]
fn values_that_fusion_keeps_in_registers_are_taped() {
    let (steps, text) = taken("beside", &large().gradient(by(&["x"])));
    assert_eq!(steps, "tape=\"all\"", "{text}");
    // In a register, and computed once.
    assert_eq!(text.matches("exp(").count(), 1, "{text}");
    assert_eq!(text.matches("empty((n,)").count(), 2, "there is a tape in memory:\n{text}");
}

#[test]
fn memory_is_estimated_after_scheduling() {
    let options = Options::default().portable(true).size("n", 4096).size("m", 512);
    let (found, text) = decided("pairs", &options.gradient(by(&["x"])));
    let found = found.unwrap_or_else(|| panic!("no tapes were chosen for `pairs`"));
    let all = found.outcomes.iter().find(|o| o.steps == "tape=\"all\"").map(|o| &o.answer);
    assert!(matches!(all, Some(Answer::Takes(_))), "{found:?}");
    assert!(!text.contains("tape = empty((n"), "there is a tape in memory:\n{text}");
}

#[test]
fn cheap_values_are_recomputed() {
    let (steps, text) = taken("cheap", &large().gradient(by(&["a"])));
    assert_eq!(steps, "tape=\"none\"", "{text}");
    assert!(!text.contains("tape"), "{text}");
    // The decision is the same for a gradient in the program itself.
    let (steps, text) = taken("asked", &large());
    assert_eq!(steps, "tape=\"none\"", "{text}");
    assert!(!text.contains("tape"), "{text}");
}

#[test]
fn each_tensor_has_its_own_decision() {
    let (steps, text) = taken("mixed", &large().gradient(by(&["u", "v", "w"])));
    assert_eq!(steps, "tape=\"auto\", `p` recomputed, `q` recomputed, `r` recomputed", "{text}");
    assert_eq!(text.matches("_tape = empty(").count(), 1, "{text}");
    assert!(text.contains("slow_tape = empty((n,)"), "{text}");
}

/// Returns the decision about the gradient of a mesh convolution on the portable machine, and the program.
fn of_convolution(feats: i64, channels: i64) -> (Decision, String) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/subdivnet/mesh_conv.ft");
    let program = Program::load(file).unwrap_or_else(|e| panic!("{e}"));
    let options = Options::default().portable(true).size("n_faces", 20_000).size("feats", feats);
    let options = options.size("channels", channels).gradient(by(&["e", "w0", "w1", "w2", "w3"]));
    let (found, text) = decided_in(&program, "mesh_conv", &options);
    (found.unwrap_or_else(|| panic!("no tapes were chosen for\n{text}")), text)
}

/// Checks that sums over neighbours are kept, although they take few operations: a library makes the gradients of
/// weights from the sums of all faces, which are in memory in any case, and the forward pass has them.
#[test]
fn operands_of_library_calls_are_taped() {
    let (found, text) = of_convolution(128, 8);
    let taken = &found.outcomes[found.taken].steps;
    assert_eq!(taken, "tape=\"auto\", `near` on a tape, `around` on a tape, `across` on a tape", "{text}");
    assert_eq!(text.matches("abs(").count(), 6, "sums are recomputed:\n{text}");
}

/// Checks that nothing is kept if products take most of the time: tapes save less of it than the precision of
/// estimates.
#[test]
fn tapes_with_little_gain_are_not_chosen() {
    let (found, text) = of_convolution(32, 32);
    let takes = |steps: &str| match found.outcomes.iter().find(|o| o.steps == steps).map(|o| &o.answer) {
        Some(Answer::Takes(ns)) => *ns,
        other => panic!("{steps}: {other:?}"),
    };
    let (own, all) = (takes("tape=\"auto\""), takes("tape=\"all\""));
    assert!(all < own && all > 0.97 * own, "{own} {all}");
    assert!(found.taken == 0 && !text.contains("tape"), "{text}");
}

/// Checks that the dots of windows are recomputed: one pass takes no longer than two passes with a tape between them,
/// since the next dots begin while one dot waits for its additions.
#[test]
fn sums_of_windows_are_recomputed() {
    let program = example("longformer/longformer.ft", "attention", &["q", "k", "v"]);
    let options = Options::default().portable(true).size("heads", 1).size("n", 4096).size("d", 64);
    let options = options.set("w", taffeta::StaticValue::Int(128));
    assert_eq!(kept_in(&program, &options), "tape=\"none\"");
}

/// Checks that scores of edges, computed from two elements that the edge points to, are kept: a branch in the backward
/// pass reads them, and a misprediction would wait for elements anywhere in memory.
#[test]
fn gathered_operands_of_branches_are_taped() {
    let program = example("gat/gat.ft", "gat", &["x", "w", "a_src", "a_dst"]);
    let options = Options::default().portable(true).size("n", 50_000).size("m", 500_000);
    let options = options.size("feats", 32).size("channels", 32);
    assert_eq!(kept_in(&program, &options), "tape=\"all\"");
}

#[test]
fn explicit_tapes_are_not_changed() {
    let all = by(&["a"]).tape(Tape::All);
    let (found, text) = decided("cheap", &large().gradient(all));
    assert!(found.is_none() && text.contains("t_tape"), "{text}");
    let (found, text) = decided("said", &large());
    assert!(found.is_none() && text.contains("t_tape"), "{text}");
    let (found, text) = decided("cheap", &large().gradient(by(&["a"])).choose_tapes(false));
    assert!(found.is_none() && text.contains("t_tape"), "{text}");
    let (found, _) = decided("cheap", &large().gradient(by(&["a"]).memory(1 << 30)));
    assert!(found.is_none());
    let (found, _) = decided("cheap", &large());
    assert!(found.is_none());
}

#[test]
fn decisions_are_deterministic() {
    for (entry, wrt) in [("beside", &["x"][..]), ("cheap", &["a"]), ("mixed", &["u", "v", "w"])] {
        let options = large().gradient(by(wrt));
        let said = || {
            let (found, text) = decided(entry, &options);
            let found = found.unwrap_or_else(|| panic!("{entry}"));
            let estimates = found.outcomes.iter().map(|o| match o.answer {
                Answer::Takes(ns) | Answer::Pruned(ns) | Answer::Weighs(ns) => format!("{} {ns}", o.steps),
                Answer::Refused(ref why) => format!("{} {why}", o.steps),
            });
            (estimates.collect::<Vec<_>>(), text)
        };
        assert_eq!(said(), said());
    }
}

#[test]
fn a_program_of_many_steps_is_scheduled_once() {
    let nests: String = (0..40).map(|k| format!("    t{k} = exp(x)\n    y += t{k} * t{k} * {k}.5\n")).collect();
    let text = format!(
        "def f(x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    for r in range(3):\n{}    return y\n",
        nests.replace("    ", "        ")
    );
    let program = Program::from_source("f.ft", &text).unwrap_or_else(|e| panic!("{e}"));
    let options = large().gradient(Gradient::default());
    let schedule = program.scheduled("f", &options).unwrap_or_else(|e| panic!("{e}"));
    let found = schedule.decisions().iter().find(|d| d.rule == MATERIALISE).expect("tensors have choices");
    let scheduled = found.outcomes.iter().filter(|o| matches!(o.answer, Answer::Takes(_))).count();
    assert_eq!((scheduled, found.taken), (1, 0), "{found:?}");
}

#[test]
fn decisions_preserve_the_gradient() {
    for (entry, wrt) in
        [("beside", &["x"][..]), ("cheap", &["a"]), ("mixed", &["x", "u", "v", "w", "c"]), ("asked", &[])]
    {
        let gradient = (!wrt.is_empty()).then(|| by(wrt));
        // The choice for many elements must be right for few.
        let options = Options::default().portable(true).hint("n", 4_000_000).gradient(gradient);
        let compile = |options: &Options| program().compile(entry, options).unwrap_or_else(|e| panic!("{entry}: {e}"));
        let run = |function: &Function| {
            let random = |name: &str| (name.to_string(), format!("rand(seed={})", name.len()));
            let given: Vec<_> = function.signature().params().map(|p| random(&p.name)).collect();
            let sizes = [("n".to_string(), 1003)];
            let inputs = taffeta::inputs::read(function.signature(), &given, &sizes);
            let inputs = inputs.unwrap_or_else(|faults| panic!("{entry}: {}", faults[0].diagnostic));
            let ran = function.run(inputs.values, &inputs.sizes, 2);
            ran.unwrap_or_else(|e| panic!("{entry}: {e}")).results
        };
        let plain = options.clone().schedule("none").backend(Backend::Interp);
        let (expected, got) = (run(&compile(&plain)), run(&compile(&options)));
        for (expected, got) in expected.iter().zip_eq(&got) {
            for (e, g) in expected.numbers().into_iter().zip_eq(got.numbers()) {
                assert!((e - g).abs() <= 1e-4 * e.abs().max(1.0), "{entry}: expected {e}, found {g}");
            }
        }
    }
}

#[test]
fn both_passes_of_a_pair_share_one_decision() {
    let n = 501;
    let tape = |options: &Options| {
        let pair = program().differentiate("cheap", options).unwrap_or_else(|e| panic!("{e}"));
        let a = ndarray::Array1::from_shape_fn(n, |k| 0.1 + (k % 7) as f32);
        let c = ndarray::Array1::from_shape_fn(8, |k| 0.5 - k as f32 / 8.0);
        let run = pair.forward().input("a", a.view()).input("c", c.view()).run();
        let (_, tape) = run.unwrap_or_else(|e| panic!("{e}"));
        let gradients = pair.backward(&tape).seed_scalar("out", 1.0f32).run().unwrap_or_else(|e| panic!("{e}"));
        let gradient = gradients.array::<f32>("a.grad").unwrap_or_else(|e| panic!("{e}"));
        (tape.bytes(), gradient)
    };
    let options = Options::default().portable(true).hint("n", 4_000_000).gradient(by(&["a"]));
    let (own, expected) = tape(&options.clone().choose_tapes(false));
    let (chosen, got) = tape(&options);
    assert!(own >= 4 * n && chosen < 4 * n, "tapes of {own} and {chosen} bytes");
    let far = expected.iter().zip(&got).any(|(e, g)| (e - g).abs() > 1e-4 * e.abs().max(1.0));
    assert!(!far, "{expected} and {got}");
}
