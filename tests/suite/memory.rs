//! Memory of gradients: the prediction of `taffeta grad --explain` against the measured use.

use taffeta::{Gradient, Options, Program, Tape};

struct Case {
    file: &'static str,
    entry: &'static str,
    inputs: &'static [(&'static str, &'static str)],
    sizes: &'static [(&'static str, i64)],
}

const CASES: [Case; 4] = [
    Case {
        file: "examples/subdivnet/circular_diff.ft",
        entry: "circular_diff",
        inputs: &[("e", "rand"), ("adj", "randint(0,2000)")],
        sizes: &[("n_faces", 2000), ("feats", 64)],
    },
    Case {
        file: "examples/longformer/longformer.ft",
        entry: "attention",
        inputs: &[("q", "rand"), ("k", "rand"), ("v", "rand")],
        sizes: &[("heads", 2), ("n", 1000), ("d", 32)],
    },
    Case {
        file: "examples/longformer/longformer.ft",
        entry: "attention_staged",
        inputs: &[("q", "rand"), ("k", "rand"), ("v", "rand")],
        sizes: &[("heads", 2), ("n", 1000), ("d", 32)],
    },
    Case {
        file: "examples/subdivnet/mesh_conv.ft",
        entry: "mesh_conv",
        inputs: &[("adj", "randint(0,2000)")],
        sizes: &[("n_faces", 2000), ("feats", 32), ("channels", 32)],
    },
];

/// Returns the peak of scratch memory, predicted and measured.
fn predicted_and_measured(case: &Case, tape: &Tape, memory: Option<u64>) -> Result<(u64, u64), String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(case.file);
    let program = Program::load(&path).map_err(|e| e.to_string())?;
    let sizes = case.sizes.iter().map(|(n, v)| (n.to_string(), *v));
    let gradient = Some(Gradient::default().tape(tape.clone()).memory(memory));
    // The prediction is for the gradient without a schedule.
    let options = Options::default().schedule(None).gradient(gradient).sizes(sizes);
    let (_, explanation) = program.explained(case.entry, &options).map_err(|e| e.to_string())?;
    let predicted = explanation.peak.map_err(|missing| format!("{}: {missing:?} is missing", case.entry))?;
    let function = program.compile(case.entry, &options).map_err(|e| e.to_string())?;
    let given = |name: &str| case.inputs.iter().find(|(n, _)| *n == name).map_or("rand", |(_, v)| v).to_string();
    let inputs: Vec<(String, String)> =
        function.signature().params().map(|p| (p.name.clone(), given(&p.name))).collect();
    let sizes: Vec<(String, i64)> = case.sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let inputs = taffeta::inputs::read(function.signature(), &inputs, &sizes)
        .map_err(|faults| taffeta::Report::from(faults).to_string())?;
    let ran = function.run(inputs.values, &inputs.sizes, 1).map_err(|e| e.to_string())?;
    Ok((predicted, ran.usage.scratch.expect("C measures it") as u64))
}

#[test]
fn peaks_of_memory_are_predicted() {
    for case in &CASES {
        let mut budget = None;
        for tape in [Tape::All, Tape::None, Tape::Auto] {
            let (predicted, measured) = predicted_and_measured(case, &tape, None).unwrap_or_else(|e| panic!("{e}"));
            assert_close(case, predicted, measured);
            let largest = budget.map_or(predicted, |b: u64| b.max(predicted));
            budget = Some(largest);
        }
        // A budget below the largest peak is kept, or refused.
        let budget = budget.expect("there were tapes") - 1;
        match predicted_and_measured(case, &Tape::All, Some(budget)) {
            Ok((predicted, measured)) => {
                assert!(predicted <= budget, "{}: {predicted} bytes within {budget}", case.entry);
                assert_close(case, predicted, measured);
            }
            Err(e) => assert!(e.contains("the smallest gradient that was found takes"), "{}: {e}", case.entry),
        }
    }
}

/// Checks that the prediction covers the measured peak and exceeds it by at most a tenth, but for small arrays on the
/// stack.
fn assert_close(case: &Case, predicted: u64, measured: u64) {
    let stack = taffeta_ast::stmt::Memory::STACK_TOTAL_BYTES as u64;
    let fits = measured <= predicted && predicted <= measured + measured / 10 + stack;
    assert!(fits, "{}: {predicted} bytes predicted, {measured} measured", case.entry);
}

/// Checks that a budget in a program waits for the sizes of a run, and is kept then.
#[test]
fn budgets_in_programs_are_respected() {
    let text = |budget: &str| {
        format!(
            "
def energy(start: f64[n], steps: f64[T]) -> f64:
    u = empty((n,), f64)
    u[...] = start
    for t in range(T):
        for i in range(n):
            u[i] = u[i] + 0.1 * sin(u[i]) * steps[t]
    e: f64 = 0.0
    for i in range(n):
        e += u[i] * u[i]
    return e

def step(x: inout[f64[a]], steps: f64[b]) -> f64:
    e, d = value_and_grad(energy, wrt=[\"start\"]{budget})(x, steps)
    x[...] -= 0.01 * d
    return e
"
        )
    };
    let run = |budget: &str, sized: bool| {
        let program = Program::from_source("step.ft", &text(budget)).map_err(|e| e.to_string())?;
        let known = [("a", 5000), ("b", 200)].map(|(n, v)| (n.to_string(), v));
        let sizes = known.clone().into_iter().filter(|_| sized);
        let function =
            program.compile("step", &Options::default().schedule(None).sizes(sizes)).map_err(|e| e.to_string())?;
        let given = ["x", "steps"].map(|n| (n.to_string(), "rand".to_string()));
        let inputs = taffeta::inputs::read(function.signature(), &given, &known)
            .map_err(|faults| taffeta::Report::from(faults).to_string())?;
        let ran = function.run(inputs.values, &inputs.sizes, 1).map_err(|e| e.to_string())?;
        Ok::<_, String>((ran.params[0].clone(), ran.usage.scratch.expect("C measures it")))
    };
    let (expected, all) = run("", true).unwrap_or_else(|e| panic!("{e}"));
    assert!(all > 8_000_000, "{all}");
    let (found, within) = run(", memory=\"2MB\"", true).unwrap_or_else(|e| panic!("{e}"));
    assert!(within <= 2_000_000, "{within}");
    assert_eq!(expected, found);
    let refused = run(", memory=\"2MB\"", false).expect_err("sizes are not known");
    assert!(refused.contains("memory budget without the size"), "{refused}");
    let refused = run(", memory=\"much\"", true).expect_err("no amount");
    assert!(refused.contains("is not a unit of memory") || refused.contains("is not an amount of memory"), "{refused}");
}
