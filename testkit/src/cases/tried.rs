//! Check of a case. Three programs must agree: the logical program in the interpreter; its lowered program in the
//! interpreter, which checks the formats' promises; and the program without formats.

use super::data::{self, Given};
use super::program::{Case, Kind};
use crate::programs::sorted;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use taffeta_analysis::pass::simplify;
use taffeta_ast::interp::{Inputs, Outputs, RuntimeError, run};
use taffeta_ast::{Diagnostic, Func, Span, Tensor, Value, func, print, validate};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};
use taffeta_structured::{Stored, Structured, lower};

/// Outcome of a case without a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Went {
    /// Agreement of all programs; `ends`: they run to the end; `dense`: the program without formats was compared.
    Agrees { ends: bool, dense: bool },
    /// Refusal of lowering, with its message.
    Refused(String),
}

/// Elaborated case, with its tensors.
#[derive(Clone)]
pub struct Prepared {
    pub func: Func,
    pub given: Vec<Given>,
    pub inputs: Inputs,
    /// Text of the case's program without formats, and its inputs.
    pub plain: (String, Inputs),
}

/// Elaborates a program text.
pub fn elaborated(text: &str) -> Result<Func, String> {
    let program = Program::load(Source::inline("t.ft", text), &NoLoader);
    let found = program.elaborate("f", &BTreeMap::new(), &NoHooks);
    found.map_err(|e| format!("is refused: {:?}", e.0.iter().map(|d| &d.message).collect::<Vec<_>>()))
}

pub fn prepared(case: &Case) -> Result<Prepared, String> {
    let func = elaborated(&case.text(true))?;
    let mut given: Vec<Given> = Vec::new();
    for (p, own) in case.params.iter().zip(&func.params) {
        let of = case.params.iter().position(|q| p.of.as_ref() == Some(&q.name));
        let of = of.and_then(|k| given.get(k)?.stored.clone());
        given.push(data::given(case, p, &own.tensor.format, of.as_ref()));
    }
    let names: Vec<&str> = func.sizes.iter().map(|s| s.name()).collect();
    let sizes = case.sizes.iter().filter(|(n, _)| names.contains(n)).map(|(n, v)| (n.to_string(), *v)).collect();
    let params = given.iter().map(|g| g.logical.clone()).collect();
    let inputs = Inputs { sizes, params };
    let dense = Inputs { params: given.iter().map(|g| g.dense.clone()).collect(), ..inputs.clone() };
    Ok(Prepared { func, given, inputs, plain: (case.text(false), dense) })
}

impl Prepared {
    /// Returns the inputs of the lowered program.
    pub fn flat(&self, structured: &Structured) -> Inputs {
        let mut sizes = self.inputs.sizes.clone();
        let hidden = self.given.iter().flat_map(|g| &g.hidden);
        sizes.extend(structured.layout.hidden.iter().map(|s| s.name().to_string()).zip(hidden.copied()));
        Inputs { sizes, params: self.given.iter().flat_map(|g| g.arrays.clone()).collect() }
    }

    /// Converts results of the lowered program, and the arrays that it makes, to the form of [`Prepared::expected`];
    /// `logical` are the results of the logical program, if it comes to its end. Lists without order, which come in that
    /// of the program, are put in the order of coordinates.
    pub fn whole(&self, results: Vec<Value>, made: Vec<Value>, logical: &[Value]) -> Vec<Value> {
        let whole = |(t, v): (&Arc<Tensor>, Value)| {
            let of = self
                .func
                .params
                .iter()
                .position(|p| t.format.pattern.is_some() && p.tensor.format.pattern == t.format.pattern);
            match of.and_then(|k| self.given[k].stored.as_ref()) {
                Some(stored) => data::following(stored, &t.format, v).logical,
                None => v,
            }
        };
        let given = self.func.results.iter().filter(|t| !self.func.assembles(t));
        let mut all: Vec<Value> = given.zip(results).map(whole).collect();
        let mut made = made.into_iter();
        for (t, v) in self.func.results.iter().zip(logical).filter(|(t, _)| self.func.assembles(t)) {
            let Some(Ok(packed)) = v.places().map(|p| Stored::pack(v.shape(), &t.format, &p.indices, v.data())) else {
                break;
            };
            let own: Vec<Value> = made.by_ref().take(packed.arrays().len()).collect();
            let is_sorted = !t.format.is_listed_in_any_order() || own.len() != packed.arrays().len();
            all.extend(if is_sorted { own } else { sorted(&packed, own) });
        }
        all.into_iter().chain(made).collect()
    }

    /// Returns results of the logical program; those with a pattern of their own follow, as the arrays of their format.
    ///
    /// # Errors
    ///
    /// Elements that the format cannot hold.
    pub fn expected(&self, results: Vec<Value>) -> Result<Vec<Value>, String> {
        let (mut whole, mut made) = (Vec::new(), Vec::new());
        for (t, v) in self.func.results.iter().zip(results) {
            if !self.func.assembles(t) {
                whole.push(v);
                continue;
            }
            let places = v.places().ok_or("expected a sparse value of a result with a pattern, found a dense one")?;
            let packed = Stored::pack(v.shape(), &t.format, &places.indices, v.data()).map_err(|e| e.to_string())?;
            made.extend(packed.arrays().iter().cloned());
        }
        Ok(whole.into_iter().chain(made).collect())
    }

    /// Runs the case's program without formats, in which every operand is evaluated.
    pub fn without_formats(&self) -> Result<Result<Outputs, RuntimeError>, String> {
        let (text, inputs) = &self.plain;
        Ok(run(&elaborated(text)?, inputs))
    }

    /// Lowers the program, runs it on the arrays of its formats, and compares with the expected outcome; `dense`:
    /// whether the program without formats was compared.
    pub fn lowered(
        &self,
        logical: &Func,
        expected: &Result<Outputs, RuntimeError>,
        dense: bool,
    ) -> Result<Went, String> {
        let structured = match lower(logical) {
            Ok(structured) => structured,
            Err(e) => return refused(&e.0),
        };
        let text = || format!("\n{}", print::func(&structured.func));
        validate::dense(&structured.func).map_err(|e| format!("the lowered program is not valid: {e}{}", text()))?;
        let found = run(&structured.func, &self.flat(&structured));
        // A value that a fill annihilates need not be evaluated: where its evaluation stops the program, either outcome
        // is right.
        match (expected, &found) {
            (Err(_), Ok(_)) => return Ok(Went::Agrees { ends: false, dense }),
            (Ok(_), Err(_)) if self.without_formats()?.is_err() => return Ok(Went::Agrees { ends: false, dense }),
            _ => {}
        }
        let found = found.map(|mut out| {
            let made = std::mem::take(&mut out.made);
            let logical = expected.as_ref().map_or(&[][..], |out| &out.results);
            Outputs { results: self.whole(out.results, made, logical), ..out }
        });
        let expected = match expected {
            Ok(out) => Ok(Outputs { results: self.expected(out.results.clone())?, ..out.clone() }),
            Err(e) => Err(e.clone()),
        };
        let wrong = differs(&expected, &found, 1e-9);
        wrong.map_or(Ok(Went::Agrees { ends: found.is_ok(), dense }), |d| Err(format!("lowered: {d}{}", text())))
    }
}

/// Checks that all programs of a case agree.
pub fn tried(case: &Case) -> Result<Went, String> {
    caught(|| all_agree(case))
}

/// Calls a function, and converts a panic to a failure.
pub fn caught<T>(f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let found = catch_unwind(AssertUnwindSafe(f));
    found.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("panics: {}", text.unwrap_or("with a payload that is not text")))
    })
}

fn all_agree(case: &Case) -> Result<Went, String> {
    let prepared = prepared(case)?;
    let Prepared { func, given, inputs, .. } = &prepared;
    validate::logical(func).map_err(|e| format!("is not valid: {e}"))?;
    let again = elaborated(&print::func(func).replacen(&format!("def {}", func.name), "def f", 1));
    match again {
        Ok(again) if func::same(func, &again) => {}
        Ok(again) => return Err(format!("parses from its printed text as\n{}", print::func(&again))),
        Err(e) => return Err(format!("its printed text {e}")),
    }
    for ((p, own), g) in case.params.iter().zip(&func.params).zip(given).filter(|((p, _), _)| p.of.is_none()) {
        let shape: Vec<usize> = p.dims.iter().map(|d| case.sizes[d] as usize).collect();
        data::lent(p, &own.tensor.format, &shape, &g.arrays).map_or(Ok(()), Err)?;
    }
    let expected = run(func, inputs);
    // Without formats, writes outside of a pattern do not vanish.
    let dense = case.kind != Kind::Any && func.results.iter().all(|t| t.format.is_dense());
    if dense {
        // The program without formats may stop in an iteration that storage skips.
        if let Ok(found) = prepared.without_formats()? {
            differs(&expected, &Ok(found), 0.0).map_or(Ok(()), |d| Err(format!("without formats: {d}")))?;
        }
    }
    // Programs of even seeds stay as the front end makes them, those of odd seeds are simplified as in the pipeline.
    // Facts that simplification proves count for fills too: `A[i] if n > 0 else 1.0` derives from the fill once 0 < n
    // is proved.
    let simple = case.seed % 2 == 1;
    let logical = if simple { simplify::run(func) } else { func.clone() };
    let before = expected;
    let expected = if simple { run(&logical, inputs) } else { before.clone() };
    if dense {
        differs(&before, &expected, 0.0).map_or(Ok(()), |d| Err(format!("simplified: {d}")))?;
    }
    prepared.lowered(&logical, &expected, dense)
}

/// Accepts a refusal if each of its diagnostics has a span.
fn refused(all: &[Diagnostic]) -> Result<Went, String> {
    let Some(first) = all.first() else { return Err("is refused without a reason".into()) };
    match all.iter().find(|d| d.labels.first().is_none_or(|l| l.span == Span::NONE)) {
        Some(d) => Err(format!("is refused without a span: {}", d.message)),
        None => Ok(Went::Refused(first.message.clone())),
    }
}

/// Compares two outcomes, and describes a difference. The tolerance of floats is relative, to at least 1.
pub fn differs(
    expected: &Result<Outputs, RuntimeError>,
    found: &Result<Outputs, RuntimeError>,
    tolerance: f64,
) -> Option<String> {
    match (expected, found) {
        (Ok(expected), Ok(found)) => {
            expected.results.iter().zip(&found.results).find_map(|(a, b)| unequal(a, b, tolerance))
        }
        // Of several errors, any may be reported.
        (Err(_), Err(_)) => None,
        (Ok(_), Err(e)) => Some(format!("stops with {e}")),
        (Err(e), Ok(_)) => Some(format!("does not stop with {e}")),
    }
}

pub fn unequal(a: &Value, b: &Value, tolerance: f64) -> Option<String> {
    let scale = |x: f64| if x.is_finite() { x.abs().max(1.0) } else { 0.0 };
    let same = |x: f64, y: f64| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= tolerance * scale(x);
    let (x, y) = (a.numbers(), b.numbers());
    let all = a.shape() == b.shape() && x.len() == y.len() && x.iter().zip(&y).all(|(x, y)| same(*x, *y));
    (!all).then(|| format!("gives {y:?}, expected {x:?}"))
}
