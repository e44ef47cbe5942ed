//! `taffeta run --check-finite`: diagnosis of results that are not finite although no assertion failed.
//!
//! The program itself stops at a statement that yields NaN or infinity from finite numbers
//! (`taffeta::analysis::pass::check_finite`). Remaining causes are non-finite inputs, constants of the program (`inf`),
//! and sums whose partial results threads combine in any order; the latter are found by running the program again
//! without its schedule.

use super::args::{EntryArgs, ProgramArgs};
use super::output::Failure;
use super::session;
use taffeta::ast::{DType, Diagnostic, Literal, Value, show};
use taffeta::codegen::signature::{Passing, Signature};
use taffeta::{Gradient, Output};

/// Non-finite element: the tensor's name with the indices, and the value.
struct Element {
    place: String,
    value: f64,
}

/// Checks that the results of a run with assertions are finite, or reports the cause.
pub fn check(
    args: &ProgramArgs,
    gradient: Option<Gradient>,
    signature: &Signature,
    given: (Vec<Value>, &[i64]),
    found: (&[Value], &[Output]),
) -> Result<(), Failure> {
    let Some(found) = first_result(signature, found)? else { return Ok(()) };
    let (inputs, sizes) = given;
    let names = signature.params().map(|p| p.name.as_str());
    if let Some(input) = names.zip(&inputs).find_map(|(name, v)| first(name, v)) {
        let message = format!(
            "`{}` is {}: the input `{}` is already {}",
            found.place,
            shown(found.value),
            input.place,
            shown(input.value)
        );
        return Err(Diagnostic::new("run::nonfinite", message).into());
    }
    if matches!(args.of.schedule(), None | Some("none")) {
        // The value stems from a constant of the program.
        return Ok(());
    }
    let overflows = || {
        let message = format!("`{}` is {} with this schedule", found.place, shown(found.value));
        let d = Diagnostic::new("run::nonfinite", message);
        Failure::from(d.help("a reordered reduction is not finite: accumulate in a wider type"))
    };
    let plain = ProgramArgs { of: EntryArgs { schedules: vec!["none".into()], ..args.of.clone() }, ..args.clone() };
    let options = session::run_options(&plain, gradient)?.check_finite(true);
    // Opening fails if `--set` names a static parameter of the schedule, which the unscheduled program lacks.
    let Ok(mut session) = session::open_with(&plain, options) else { return Err(overflows()) };
    let function = session::compile(&mut session, &plain, sizes)?.on_print(|_| {});
    let (again, outputs) = function.run_stored(inputs, sizes, args.threads)?;
    if first_result(signature, (&again.params, &outputs))?.is_some() { Ok(()) } else { Err(overflows()) }
}

fn first_result(signature: &Signature, (params, outputs): (&[Value], &[Output])) -> Result<Option<Element>, Failure> {
    let mut written = signature.params().zip(params).filter(|(s, _)| s.passing == Passing::InOut);
    if let Some(found) = written.find_map(|(s, v)| first(&s.name, v)) {
        return Ok(Some(found));
    }
    for (s, output) in signature.results().zip(outputs) {
        if let Some(found) = first(&s.name, output.value()?) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns the first element that is not finite. Elements that hold the fill of a structured tensor are as declared.
fn first(name: &str, v: &Value) -> Option<Element> {
    if !v.dtype().is_float() {
        return None;
    }
    let data = v.data();
    let fill = v.places().map(|p| p.fill);
    let k = (0..data.len()).find(|k| !data.get_f64(*k).is_finite() && Some(data.get(*k)) != fill)?;
    let indices: Vec<String> = v.indices_of(k).iter().map(i64::to_string).collect();
    let place = if indices.is_empty() { name.to_string() } else { format!("{name}[{}]", indices.join(", ")) };
    Some(Element { place, value: data.get_f64(k) })
}

fn shown(value: f64) -> String {
    show::value(Literal::Float(value), DType::F64)
}
