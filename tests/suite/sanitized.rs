//! Every second `# taffeta: run` command of the repository, and every one that stops, under AddressSanitizer and
//! UndefinedBehaviorSanitizer: compiled for all sizes, as a few C programs whose arguments have exactly the required
//! size. A program that the sanitizers stop is named with the statement; the others match the interpreter's results, or
//! stop with its error.

use crate::case::{Case, difference, tolerance};
use crate::differential::all_programs;
use crate::programs;
use itertools::Itertools as _;
use taffeta::packed::{self, Packed};
use taffeta::{Error, Options, Timings, inputs, pipeline};
use taffeta_ast::func::ParamMode;
use taffeta_ast::interp::{self, Inputs, Outputs, RuntimeError};
use taffeta_ast::{Func, Value};
use taffeta_codegen::c::CSource;
use taffeta_codegen::signature::Signature;
use taffeta_structured::Stored;
use testkit::driver::{self, Call, Outcome};
use testkit::status;

/// Entry in C, with the arguments of its call and the interpreter's outcome.
pub struct Prepared {
    /// Name, for messages.
    name: String,
    func: Func,
    source: CSource,
    /// Arguments and sizes as C takes them.
    params: Vec<Value>,
    sizes: Vec<i64>,
    expected: Result<Outputs, RuntimeError>,
}

/// Compiles an entry and runs it in the interpreter; `None` if its inputs are refused. The number `k` makes its name
/// unique.
pub fn prepare(
    k: usize,
    name: String,
    file: &taffeta::Program,
    (entry, options): (&str, &Options),
    read: impl FnOnce(&Signature) -> Result<inputs::Inputs, Error>,
) -> Result<Option<Prepared>, Error> {
    let mut timings = Timings::default();
    let logical = file.logical(entry, options)?;
    let Ok(inputs) = read(&Signature::of(&logical, &Default::default())) else { return Ok(None) };
    let func = Func { name: format!("entry_{k}"), ..logical };
    let lowered = pipeline::lowered(&func, &Options::default(), &mut timings)
        .map_err(|d| Error::Program(taffeta::Report { diagnostics: d.0, sources: file.sources().clone() }))?;
    let source = pipeline::c(&lowered, file.sources(), &mut timings);
    let signature = source.signature.logical();
    let names = signature.sizes.iter().map(|s| s.name.clone());
    let stored = packed::stored(signature, &inputs.values)?;
    let given = Inputs { sizes: names.zip_eq(inputs.sizes.iter().copied()).collect(), params: stored };
    let expected = interp::run(&func, &given);
    let packed = Packed::of(signature, &source.signature, &inputs.values, &[])?;
    let sizes = inputs.sizes.into_iter().chain(packed.hidden).collect();
    Ok(Some(Prepared { name, func, source, params: packed.values, sizes, expected }))
}

/// Prepares the entry of a command.
fn of_command(k: usize, case: &Case<'_>) -> Result<Option<Prepared>, Error> {
    let file = taffeta::Program::load(&case.program.path)?;
    let name = format!("{}: {}", case.program.name(), case.command);
    prepare(k, name, &file, (&case.entry, &case.options()), |signature| case.values(signature))
}

/// Returns the fault in the outcome of a call.
fn fault(prepared: &Prepared, outcome: Outcome) -> Option<String> {
    match (&prepared.expected, outcome) {
        (_, Outcome::Stopped(why)) => Some(why),
        (Err(e), Outcome::Returned(status, _)) => {
            let expected = status::status(e.kind.code());
            (status != expected).then(|| format!("status {status}, and the interpreter stops with {e}"))
        }
        (Ok(_), Outcome::Returned(status @ 1.., _)) => {
            Some(format!("status {status}, and the interpreter does not stop"))
        }
        (Ok(out), Outcome::Returned(_, written)) => {
            let params = prepared.func.params.iter().zip_eq(&out.params).filter(|(p, _)| p.mode == ParamMode::InOut);
            let results = prepared.func.results.iter().zip_eq(&out.results).zip_eq(&out.unwritten);
            let (made, results): (Vec<_>, Vec<_>) = results.partition(|((t, _), _)| prepared.func.assembles(t));
            // C makes the arrays of results with a pattern of their own.
            let arrays = made.into_iter().flat_map(|((t, v), _)| {
                let places = v.places().expect("a sparse value");
                let packed = Stored::pack(v.shape(), &t.format, &places.indices, v.data()).expect("it holds them");
                packed.into_arrays()
            });
            let arrays: Vec<Value> = arrays.collect();
            let expected = params
                .map(|(_, v)| (v, &[][..]))
                .chain(results.into_iter().map(|((_, v), unwritten)| (v, unwritten.as_slice())))
                .chain(arrays.iter().map(|v| (v, &[][..])));
            expected.zip_eq(written).find_map(|((want, unwritten), have)| differs(want, unwritten, have))
        }
    }
}

/// Returns the difference of a result, except at unwritten elements, which may have any value.
fn differs(want: &Value, unwritten: &[usize], mut have: Value) -> Option<String> {
    // Of a result in the pattern of a parameter, C returns the elements alone (here in the order of rows).
    let elements = want.places().and_then(|_| Value::new(vec![want.data().len()], want.data().clone()));
    let want = elements.as_ref().unwrap_or(want);
    if want.shape() == have.shape() && want.dtype() == have.dtype() {
        unwritten.iter().for_each(|&i| {
            have.data_mut().set(i, want.data().get(i));
        });
    }
    difference(want, &have, tolerance(want.dtype())).map(|d| format!("interpreter and C: {d}"))
}

/// Runs all entries under the sanitizers; returns the faults, each with the entry's name.
pub fn faults(prepared: &[Prepared]) -> Vec<String> {
    // One C program per processor: the C compiler takes nearly all of the time.
    let groups: Vec<&[Prepared]> = prepared.chunks(prepared.len().div_ceil(rayon::current_num_threads())).collect();
    let of_group = |group: &&[Prepared]| {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let calls: Vec<Call<'_>> =
            group.iter().map(|p| Call { source: &p.source, params: &p.params, sizes: &p.sizes }).collect();
        let outcomes = driver::run(&calls, dir.path());
        let named = |(p, outcome): (&Prepared, Outcome)| fault(p, outcome).map(|what| format!("{}: {what}", p.name));
        group.iter().zip_eq(outcomes).filter_map(named).collect::<Vec<_>>()
    };
    programs::for_each(&groups, of_group).concat()
}

/// Iterates over the commands of programs.
fn commands(all: &[programs::Program]) -> impl Iterator<Item = Case<'_>> {
    all.iter().flat_map(|p| p.commands.iter().filter_map(|c| Case::parse(p, c)))
}

#[test]
fn programs_have_no_undefined_behaviour() {
    // The commands of one program are wrong themselves.
    let stopping = programs::below("tests/corpus/runtime").into_iter();
    let stopping: Vec<programs::Program> =
        stopping.filter(|p| p.name() != "tests/corpus/runtime/bad_input.ft").collect();
    let ending = all_programs();
    let cases: Vec<(usize, Case<'_>)> = commands(&ending).step_by(2).chain(commands(&stopping)).enumerate().collect();
    let prepared: Vec<Prepared> = programs::for_each(&cases, |(k, case)| {
        of_command(*k, case).unwrap_or_else(|e| panic!("{}: {}\n{e}", case.program.name(), case.command))
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(prepared.len() > 100, "only {} commands found", prepared.len());

    let faults = faults(&prepared);
    assert!(faults.is_empty(), "{}\n{} faults in {} commands", faults.join("\n"), faults.len(), prepared.len());
}
