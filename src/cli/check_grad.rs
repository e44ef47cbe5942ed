//! `taffeta check-grad`: comparison of a gradient with finite differences and forward mode at a point
//! ([`taffeta::gradcheck`]), printed as a table or JSON.

use super::args::ProgramArgs;
use super::output::{Failure, print, print_json};
use super::{progress, session, summary};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use taffeta::ast::Diagnostic;
use taffeta::inputs::Fault;
use taffeta::{DirectionCheck, InputCheck, Options, Program, Sampling, Signature, Verdict};

/// Check the gradient of a program against finite differences and forward mode
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Seed of the random numbers: directions, seeds of the results, and missing inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u32,
}

const EXAMPLES: &str = "\
For every input by itself, in random directions d and with random seeds s of all results and of the final values of \
`inout` parameters, three numbers are compared: finite differences of <f, s>, <J d, s> by forward mode, and <d, Jᵀ s> \
by reverse mode, which is the gradient. Of each input the worst direction is printed: in which all elements change, \
or one. Errors are relative to the terms that are summed up; finite differences may be 1e-6 apart (1e-2 where the \
program computes in f32), forward and reverse mode 1e-9 (1e-3).

Inputs of floating-point numbers that are not given are made by `randn`. `kink` is a point without a derivative: the \
program has other derivatives on both sides, jumps, or is not defined there. `unclear` is one where finite \
differences are dominated by rounding error. Both are warnings; a gradient that is wrong is status 1.

Examples:
  taffeta check-grad f.ft loss --size n=10
  taffeta check-grad f.ft loss --in x=x.npy --in 'labels=randint(0,3)' --wrt w,b
  taffeta check-grad f.ft loss --size n=10 --tape none --seed 1 --json";

const KEEP: &str = "keep the command line, the program, its inputs and what was printed";

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let progress = progress::Work::new("compiling");
    let program = Program::load(&args.program.of.file)?;
    let entry = program.entry(args.program.of.entry.as_deref())?;
    let schedule = args.program.of.schedule();
    let options = session::run_options(&args.program, None)?.schedule(schedule);
    let func = program.logical(&entry, &options)?;
    let signature = Signature::of(&func, &Default::default());
    let made = made(&signature, args);
    let given: Vec<_> = args.program.of.inputs.iter().chain(&made).cloned().collect();
    let read = || taffeta::inputs::read(&signature, &given, &args.program.of.sizes);
    let report = |faults| Failure::Report(program.report(&entry, faults));
    let inputs = progress.aside(|| progress::while_reading(&given, read)).map_err(report)?;
    taffeta::inputs::result_shapes(&signature, &inputs.sizes).map_err(Failure::from)?;

    let names = signature.sizes.iter().map(|s| s.name.clone());
    let sizes: BTreeMap<String, i64> =
        if args.program.generic { BTreeMap::new() } else { names.zip(inputs.sizes.iter().copied()).collect() };
    let options = options.sizes(sizes).gradient(args.program.of.gradient_in_any_case());
    let sampling = Sampling::default().seed(args.seed.into()).threads(args.program.threads);
    progress.say("comparing derivatives");
    let checks = taffeta::check_gradient(&program, &entry, &options, &inputs, &sampling)?;

    drop(progress);
    let wrong: Vec<&InputCheck> = checks.iter().filter(|c| c.verdict().is_wrong()).collect();
    let own = if wrong.is_empty() { Vec::new() } else { custom_vjps(&program, &entry, &options)? };
    let wrong: Vec<Fault> = wrong.into_iter().filter_map(|c| fault(&entry, c, &own)).collect();
    if args.program.json {
        let document = document(&entry, args, &made, &checks);
        return match wrong.is_empty() {
            true => print_json(&Json::Object(document)),
            false => Err(Failure::With(program.report(&entry, wrong), document)),
        };
    }
    print(&text(&entry, &made, &checks))?;
    if wrong.is_empty() { Ok(()) } else { Err(report(wrong)) }
}

/// Returns generators for the missing floating-point inputs, with a different seed for each parameter.
fn made(signature: &Signature, args: &Args) -> Vec<(String, String)> {
    let given = |name: &str| args.program.of.inputs.iter().any(|(n, _)| n == name);
    let missing = signature.params().enumerate().filter(|(_, p)| p.dtype.is_float() && !given(&p.name));
    let seed = |k: usize| u64::from(args.seed) * 1000 + k as u64;
    missing.map(|(k, p)| (p.name.clone(), format!("randn(seed={})", seed(k)))).collect()
}

// ---- text output

fn text(entry: &str, made: &[(String, String)], checks: &[InputCheck]) -> String {
    let mut out = String::new();
    if !made.is_empty() {
        let list: Vec<String> = made.iter().map(|(name, text)| format!("{name}={text}")).collect();
        out.push_str(&format!("not given, and made: {}\n", list.join(" ")));
    }
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    let right = |t: String| comfy_table::Cell::new(t).set_alignment(comfy_table::CellAlignment::Right);
    let mut head = vec![comfy_table::Cell::new("input"), comfy_table::Cell::new("along")];
    head.extend(
        ["finite differences", "forward", "reverse", "error of differences", "error of modes"]
            .map(|t| right(t.to_string())),
    );
    head.push(comfy_table::Cell::new("verdict"));
    table.add_row(head);
    let mut notes = String::new();
    for check in checks {
        let Some(worst) = check.worst() else { continue };
        let mut row = vec![comfy_table::Cell::new(&check.name), comfy_table::Cell::new(along(check, worst))];
        row.extend([worst.differences, worst.forward, worst.reverse].map(|v| right(summary::float(v))));
        row.push(right(error(worst.differences_error, check.differences_tolerance)));
        row.push(right(error(worst.modes_error, check.modes_tolerance)));
        row.push(comfy_table::Cell::new(worst.verdict.text()));
        table.add_row(row);
        notes.push_str(&note(check, worst));
    }
    let tried = checks.iter().map(|c| c.directions.len()).sum::<usize>();
    let agree = checks.iter().filter(|c| c.verdict() == Verdict::Agrees).count();
    let lines: Vec<String> = table.to_string().lines().map(|l| l.trim_end().to_string()).collect();
    out.push_str(&format!("{}\n{notes}", lines.join("\n")));
    let mut others = String::new();
    for (verdict, what) in [(Verdict::Unclear, "unclear"), (Verdict::Kink, "at a kink"), (Verdict::Wrong, "wrong")] {
        let same = |c: &&InputCheck| c.verdict() == verdict || verdict == Verdict::Wrong && c.verdict().is_wrong();
        match checks.iter().filter(same).count() {
            0 => {}
            n => others.push_str(&format!(", {n} {} {what}", if n == 1 { "is" } else { "are" })),
        }
    }
    out.push_str(&format!("{entry}: {agree} of {} gradients agree{others}, in {tried} directions\n", checks.len()));
    out
}

/// Formats a direction: `all elements`, `x[1, 2]`.
fn along(check: &InputCheck, direction: &DirectionCheck) -> String {
    match direction.element.as_deref() {
        None => "all elements".to_string(),
        Some([]) => check.name.clone(),
        Some(at) => format!("{}{}", check.name, taffeta::io::shape_text(at)),
    }
}

/// Formats an error. Errors within tolerance are insignificant and differ between machines, so the tolerance is shown.
fn error(v: f64, tolerance: f64) -> String {
    match v {
        v if v.is_nan() => "-".to_string(),
        v if v <= tolerance => format!("< {tolerance:e}"),
        v if v >= 0.01 => format!("{v:.2}"),
        v => format!("{v:.1e}"),
    }
}

/// Returns a warning about a kink or rounding, or an empty string.
fn note(check: &InputCheck, worst: &DirectionCheck) -> String {
    let (name, along) = (&check.name, along(check, worst));
    match worst.verdict {
        Verdict::Kink => format!(
            "warning: `{name}`: not differentiable here (a kink near this point, along {along}); forward and reverse mode agree\n"
        ),
        Verdict::Unclear if worst.rounding => format!(
            "warning: `{name}`: what is computed in f32 is dominated by rounding error along {along}; finite \
             differences in f64 agree with the gradient\n"
        ),
        Verdict::Unclear => format!(
            "warning: `{name}`: finite differences are dominated by rounding error along {along}; forward and reverse \
             mode agree\n"
        ),
        _ => String::new(),
    }
}

/// Returns the functions with user-defined gradients in the program, each once.
fn custom_vjps(program: &Program, entry: &str, options: &Options) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = program.custom_vjps(entry, options)?.into_iter().map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Creates the fault of a wrong gradient. `own` are the functions with user-defined gradients.
fn fault(entry: &str, check: &InputCheck, own: &[String]) -> Option<Fault> {
    let (name, worst) = (&check.name, check.worst()?);
    let [differences, forward, reverse] = [worst.differences, worst.forward, worst.reverse].map(summary::float);
    let along = match worst.element.as_deref() {
        None => "in a direction in which all elements change".to_string(),
        Some(_) => format!("along {}", along(check, worst)),
    };
    let what = match worst.verdict {
        Verdict::Modes => format!(
            "{along}, forward mode gives {forward} and reverse mode {reverse} (finite differences: {differences})"
        ),
        _ => format!("{along}, it gives {reverse} (as forward mode does), and finite differences {differences}"),
    };
    let d =
        Diagnostic::new("grad::check", format!("the gradient of `{entry}` with respect to `{name}` is wrong: {what}"));
    let d = match worst.verdict {
        Verdict::Modes if !own.is_empty() => {
            let names: Vec<String> = own.iter().map(|n| format!("`{n}`")).collect();
            d.help(format!("look at the gradient that the program gives for {}", names.join(", ")))
                .note("forward mode differentiates what a function does, whatever `@gradient` says of it")
        }
        Verdict::Modes => d
            .help("forward and reverse mode must agree whatever the program is: this is a mistake in Taffeta")
            .note(KEEP),
        _ => d
            .help("try another point (--in, --seed): the derivative of a branch (`x if x != 0 else 0`) or an operation (`sqrt` of 0) at this one alone is not that of the program")
            .note(format!("a gradient that is wrong at every point is a mistake in Taffeta: {KEEP}")),
    };
    Some(Fault::of(name, None, d))
}

// ---- JSON output

fn document(entry: &str, args: &Args, made: &[(String, String)], checks: &[InputCheck]) -> Map<String, Json> {
    let made: Map<String, Json> = made.iter().map(|(name, text)| (name.clone(), json!(text))).collect();
    let direction = |d: &DirectionCheck| {
        json!({
            "element": d.element,
            "differences": summary::float_json(d.differences),
            "forward": summary::float_json(d.forward),
            "reverse": summary::float_json(d.reverse),
            "differences_error": summary::float_json(d.differences_error),
            "modes_error": summary::float_json(d.modes_error),
            "verdict": d.verdict.text(),
            "rounding": d.rounding,
        })
    };
    let input = |c: &InputCheck| {
        json!({
            "name": c.name,
            "verdict": c.verdict().text(),
            "differences_tolerance": c.differences_tolerance,
            "modes_tolerance": c.modes_tolerance,
            "directions": c.directions.iter().map(direction).collect::<Vec<_>>(),
        })
    };
    let fields = [
        ("status", json!("ok")),
        ("entry", json!(entry)),
        ("seed", json!(args.seed)),
        ("made", Json::Object(made)),
        ("inputs", checks.iter().map(input).collect()),
        ("diagnostics", json!([])),
    ];
    fields.into_iter().map(|(k, v)| (k.to_string(), v)).collect()
}
