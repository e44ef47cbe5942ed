//! Programs derived from a case: scheduled by random steps or by rules, and differentiated.

use super::data::{self, Given};
use super::program::{self, Case, Data};
use super::tried::{Prepared, Went, caught, differs, prepared};
use crate::random::Random;
use crate::steps::Chooser;
use std::sync::Arc;
use taffeta_analysis::pass::simplify;
use taffeta_ast::interp::{Inputs, run};
use taffeta_ast::{Diagnostic, Expr, ExprKind, FileId, Func, Span, Value, print, validate};
use taffeta_autodiff::{Kind, Request, differentiate};
use taffeta_schedule::auto::Target;
use taffeta_schedule::{Schedule, Traversal};
use taffeta_structured::{in_sections, lower, traversed};

/// Derivation of a program from a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Random steps of a schedule.
    Scheduled,
    /// Gradient, under random steps if the case has steps.
    Backward,
    /// Tangents.
    Forward,
    /// Steps that rules choose for the program.
    Automatic,
    /// Steps that rules choose for the gradient.
    AutomaticBackward,
}

/// All ways.
pub const WAYS: [Way; 5] = [Way::Scheduled, Way::Backward, Way::Forward, Way::Automatic, Way::AutomaticBackward];

/// Number of steps that are tried on a program.
const TRIED: usize = 6;

/// Program derived from a case, with its inputs, and the steps that were taken.
pub struct Made {
    pub prepared: Prepared,
    pub steps: Vec<String>,
}

fn lowers(func: &Func) -> Result<Traversal, Diagnostic> {
    match lower(&simplify::run(func)) {
        Ok(l) => Ok(Traversal { scans: l.warnings.len(), seeks: l.seeks, order_violations: l.order_violations }),
        Err(all) => Err(all.0[0].clone()),
    }
}

/// Returns the cost of traversal in a program that is lowered by sections.
fn lowers_in_sections(func: &Func) -> Result<Traversal, Diagnostic> {
    let of = in_sections(func, |section| traversed(&section.func(func))).map_err(|all| all.0[0].clone())?;
    Ok(Traversal { scans: of.scans.len(), seeks: of.seeks, order_violations: of.order_violations })
}

/// Builds the program of a case in a way; `None` if there is none.
pub fn made(case: &Case, way: Way) -> Result<Option<Made>, String> {
    let own = prepared(case)?;
    match way {
        Way::Scheduled if has_steps(case) => scheduled(case, own).map(Some),
        Way::Scheduled => Ok(None),
        Way::Backward if has_steps(case) => derivative(case, own, Kind::Vjp).map(|p| scheduled(case, p)).transpose(),
        Way::Backward => Ok(derivative(case, own, Kind::Vjp).map(without_steps)),
        Way::Forward => Ok(derivative(case, own, Kind::Jvp).map(without_steps)),
        Way::Automatic | Way::AutomaticBackward if !has_steps(case) => Ok(None),
        Way::Automatic => automatic(case, own).map(Some),
        Way::AutomaticBackward => derivative(case, own, Kind::Vjp).map(|p| automatic(case, p)).transpose(),
    }
}

fn without_steps(prepared: Prepared) -> Made {
    Made { prepared, steps: Vec::new() }
}

/// Returns whether steps preserve all results: a scalar that becomes an array, as in `fission`, does not derive from
/// the fill, so that NaN and infinities remain where nothing is stored.
fn has_steps(case: &Case) -> bool {
    case.kind != program::Kind::Any
}

/// Takes random steps, and checks after each that the program computes the same.
fn scheduled(case: &Case, own: Prepared) -> Result<Made, String> {
    let before = run(&own.func, &own.inputs);
    let mut s = Schedule::new(own.func.clone()).lowered_by(lowers).trying();
    let mut choose = Chooser::new(case.seed);
    for _ in 0..TRIED {
        let Some((method, args)) = choose.step(&s) else { continue };
        if s.call(&method, &args).is_err() {
            continue;
        }
        let text = || {
            format!(
                "{}\n{}",
                s.trace().steps.iter().map(|s| format!("{s}\n")).collect::<String>(),
                print::func(s.func())
            )
        };
        validate::logical(s.func())
            .map_err(|e| format!("after {method}, the program is not valid: {e}\n{}", text()))?;
        // Programs that stop are not compared: a step may move the error, or leave out the iterations that raise it.
        let wrong = before.is_ok().then(|| differs(&before, &run(s.func(), &own.inputs), 1e-9)).flatten();
        wrong.map_or(Ok(()), |d| Err(format!("after {method}, the program {d}\n{}", text())))?;
        if !s.marks_hold() {
            return Err(format!("after {method}, a loop mark does not hold\n{}", text()));
        }
    }
    let steps = s.trace().steps.iter().map(ToString::to_string).collect();
    Ok(Made { prepared: Prepared { func: s.into_func(), ..own }, steps })
}

/// Takes the steps that rules choose. Checks that they are deterministic, and that the program computes the same, can
/// be lowered if it could be before, and is lowered by sections as in the whole.
fn automatic(case: &Case, own: Prepared) -> Result<Made, String> {
    let mut target = Target::portable(1 + case.seed as usize % 4);
    // The target has the actual sizes, other sizes, or none.
    if let Some(times) = [None, Some(1), Some(1000)][case.seed as usize / 4 % 3] {
        target.sizes = own.inputs.sizes.iter().map(|(n, v)| (n.clone(), v * times)).collect();
    }
    let target = Arc::new(target);
    let run_rules = || {
        let mut s = Schedule::new(own.func.clone()).lowered_by(lowers).aimed_at(target.clone());
        s.auto().map(|()| s).map_err(|r| format!("auto is refused: {}", r.message))
    };
    let s = run_rules()?;
    let steps: Vec<String> = s.trace().steps.iter().map(ToString::to_string).collect();
    let wrong = |what: &str| Err(format!("under rules, {what}\n{}\n{}", steps.join("\n"), print::func(s.func())));
    if run_rules()?.trace() != s.trace() {
        return wrong("the second run chooses another schedule");
    }
    if let Err(e) = validate::logical(s.func()) {
        return wrong(&format!("the program is not valid: {e}"));
    }
    if !s.marks_hold() {
        return wrong("a loop mark does not hold");
    }
    let before = run(&own.func, &own.inputs);
    // Programs that stop are not compared: a step may move the error, or leave out the iterations that raise it.
    if let Some(d) = before.is_ok().then(|| differs(&before, &run(s.func(), &own.inputs), 1e-9)).flatten() {
        return wrong(&format!("the program {d}"));
    }
    for func in [&own.func, s.func()] {
        let (whole, apart) = (lowers(func), lowers_in_sections(func));
        if whole.as_ref().ok() != apart.as_ref().ok() {
            return wrong(&format!("lowering in sections differs: {whole:?} and {apart:?}"));
        }
    }
    if let (Ok(_), Err(d)) = (lowers(&own.func), lowers(s.func())) {
        return wrong(&format!("lowering refuses the scheduled program: {}", d.message));
    }
    Ok(Made { prepared: Prepared { func: s.into_func(), ..own }, steps })
}

/// Differentiates with respect to one or two random float parameters; `None` if there are none, a result is no float,
/// or there is no derivative.
fn derivative(case: &Case, own: Prepared, kind: Kind) -> Option<Prepared> {
    let floats = case.params.iter().filter(|p| p.dtype.is_float() && p.data == Data::Values);
    let mut all: Vec<String> = floats.map(|p| p.name.clone()).collect();
    let mut random = Random(case.seed ^ 0xD1FF);
    random.next(2);
    (1..all.len()).for_each(|k| all.swap(k, random.next(k + 1)));
    all.truncate(1 + random.next(2));
    if all.is_empty() || !case.results.iter().all(|r| r.dtype.is_float()) {
        return None;
    }
    // Statements that the derivative adds have the span of the request.
    let span = Span { file: FileId(0), start: 0, end: 1 };
    let func = differentiate(&Request { span, ..Request::new(kind, "f", &own.func, &all) }).ok()?;
    let mut given: Vec<Given> = Vec::new();
    for p in &func.params {
        let known = own.func.params.iter().position(|q| q.tensor.symbol == p.tensor.symbol);
        given.push(match known {
            Some(k) => own.given[k].clone(),
            None => direction(&own, &p.tensor, &mut random)?,
        });
    }
    let params = given.iter().map(|g| g.logical.clone()).collect();
    let names: Vec<&str> = func.sizes.iter().map(|s| s.name()).collect();
    let sizes = case.sizes.iter().filter(|(n, _)| names.contains(n)).map(|(n, v)| (n.to_string(), *v)).collect();
    Some(Prepared { func, given, inputs: Inputs { sizes, params }, ..own })
}

/// Draws a seed or a tangent: whole numbers, over the pattern of its tensor.
fn direction(own: &Prepared, tensor: &taffeta_ast::Tensor, random: &mut Random) -> Option<Given> {
    let mut numbers = |n: usize| data::typed(tensor.dtype, (0..n).map(|_| random.next(9) as f64 - 4.0).collect());
    if !tensor.format.is_dense() {
        let of = own.func.params.iter().position(|p| p.tensor.format.pattern == tensor.format.pattern)?;
        let stored = own.given[of].stored.as_ref()?;
        let count = stored.arrays().last().map_or(0, |v| v.data().len());
        return Some(data::following(stored, &tensor.format, Value::new(vec![count], numbers(count))?));
    }
    let extent = |e: &Expr| match e.kind() {
        ExprKind::Var(s) => own.inputs.sizes.get(s.name()).map(|n| *n as usize),
        _ => e.as_int().map(|n| n as usize),
    };
    let shape: Vec<usize> = tensor.shape.iter().map(extent).collect::<Option<_>>()?;
    let value = Value::new(shape.clone(), numbers(shape.iter().product()))?;
    Some(Given { logical: value.clone(), dense: value.clone(), arrays: vec![value], hidden: Vec::new(), stored: None })
}

/// Checks a case in a way; `None` if there is no such program.
pub fn tried(case: &Case, way: Way) -> Result<Option<Went>, String> {
    caught(|| {
        let Some(Made { prepared, steps }) = made(case, way)? else { return Ok(None) };
        let func = simplify::run(&prepared.func);
        let expected = run(&func, &prepared.inputs);
        let went = prepared.lowered(&func, &expected, false);
        went.map(Some).map_err(|what| format!("{what}\nof\n{}\n{}", print::func(&func), steps.join("\n")))
    })
}
