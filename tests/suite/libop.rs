//! The operator library. Every operator over many shapes and types: the interpreter, compiled C and NumPy agree
//! (`numpy/libop_cases.py` has the cases). And the example in every operator's docstring holds.

use crate::case::{Case, Named, difference, tolerance};
use crate::programs::{self, Program};
use crate::python;
use itertools::Itertools as _;
use std::collections::BTreeSet;
use std::path::Path;
use taffeta::io::{Source, Want};
use taffeta::{Backend, Options, Timings, pipeline};
use taffeta_ast::{DType, Func, Value};
use taffeta_codegen::Compiled;
use taffeta_codegen::c::CSource;
use taffeta_codegen::call::Context;
use taffeta_codegen::signature::Signature;
use taffeta_codegen::toolchain::CompileOptions;
use testkit::batch;

/// Stride of the cases that are compared in compiled C, besides the first case of every operator.
const COMPILED: usize = 32;

/// Number of cases per library.
const CASES_PER_LIBRARY: usize = 16;

/// Case computed by NumPy.
struct Computed {
    /// Name, for messages.
    name: String,
    program: Program,
    text: String,
    inputs: Vec<(String, String)>,
    /// Names of the results.
    results: Vec<String>,
}

impl Computed {
    fn new(folder: &Path, k: usize, entry: &serde_json::Value) -> Computed {
        let names = |key: &str| -> Vec<String> {
            entry[key].as_array().into_iter().flatten().filter_map(|n| n.as_str().map(str::to_string)).collect()
        };
        let file = |n: &str| folder.join(format!("{k}.in.{n}.npy")).display().to_string();
        let path = folder.join(format!("{k}.ft"));
        Computed {
            name: entry["name"].as_str().unwrap_or_default().to_string(),
            text: std::fs::read_to_string(&path).expect("it was written"),
            program: Program { path, commands: vec![] },
            inputs: names("inputs").into_iter().map(|n| (n.clone(), file(&n))).collect(),
            results: names("results"),
        }
    }

    fn case(&self) -> Case<'_> {
        let (program, inputs, entry) = (&self.program, self.inputs.clone(), "t".to_string());
        Case {
            program,
            command: &self.name,
            entry,
            inputs,
            sizes: vec![],
            statics: vec![],
            schedule: None,
            optimize: true,
        }
    }

    /// Returns the operators that the case calls.
    fn operators(&self) -> BTreeSet<&'static str> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let calls: BTreeSet<&str> =
            self.text.split('(').filter_map(|before| before.rsplit(|c| !is_word(c)).next()).collect();
        taffeta_libop::names().filter(|n| calls.contains(n)).collect()
    }

    /// Lists the differences between results and NumPy's.
    fn faults(&self, what: &str, found: Result<Vec<Named>, String>) -> Vec<String> {
        let at = |why: String| format!("{}: {what}: {why}\n{}", self.name, self.text);
        let found = match found {
            Ok(found) => found,
            Err(e) => return vec![at(e)],
        };
        let names: Vec<&String> = found.iter().map(|(name, _)| name).collect();
        if names != self.results.iter().collect::<Vec<_>>() {
            return vec![at(format!("results are {names:?}, not {:?}", self.results))];
        }
        let file = |n: &str| self.program.path.with_extension(format!("out.{n}.npy"));
        let why = |(n, v): &Named| agrees(&file(n), v).map(|why| at(format!("`{n}`: {why}")));
        found.iter().filter_map(why).collect()
    }
}

fn agrees(expected: &Path, found: &Value) -> Option<String> {
    // NumPy has no bf16: its results are stored as f32, exactly.
    let want = Want::new("result", found.dtype(), found.shape().len());
    match taffeta::io::read(&Source::File { path: expected.to_path_buf(), part: None }, &want) {
        Ok(expected) => difference(&expected, found, tolerance(found.dtype())),
        Err(d) => Some(d.to_string()),
    }
}

/// Selects the cases to compile.
fn compiled(cases: &[Computed]) -> Vec<&Computed> {
    let mut without = taffeta_libop::names().collect::<BTreeSet<_>>();
    let mut chosen = Vec::new();
    for (k, case) in cases.iter().enumerate() {
        let mut first = false;
        for operator in case.operators() {
            first |= without.remove(operator);
        }
        if first || k % COMPILED == 0 {
            chosen.push(case);
        }
    }
    chosen
}

/// Emits the C of a case under a name unique in its library; returns it with the inputs of the call.
fn source(case: &Computed, k: usize, generic: bool) -> Result<(CSource, taffeta::inputs::Inputs), taffeta::Error> {
    let file = taffeta::Program::load(&case.program.path)?;
    let logical = file.logical("t", &Options::default())?;
    let inputs = case.case().values(&Signature::of(&logical, &Default::default()))?;
    let sizes = logical.sizes.iter().map(|s| s.name().to_string()).zip_eq(inputs.sizes.iter().copied());
    let options = if generic { Options::default() } else { Options::default().sizes(sizes) };
    let func = Func { name: format!("case_{k}"), ..logical };
    let mut timings = Timings::default();
    let lowered = pipeline::lowered(&func, &options, &mut timings)
        .map_err(|d| taffeta::Error::Program(taffeta::Report { diagnostics: d.0, sources: file.sources().clone() }))?;
    Ok((pipeline::c(&lowered, file.sources(), &mut timings), inputs))
}

/// Calls one entry of a library; returns its results by name.
fn call(entry: &Compiled, source: &CSource, inputs: &taffeta::inputs::Inputs) -> Result<Vec<Named>, String> {
    let sizes: Vec<(&str, i64)> =
        source.signature.sizes.iter().map(|s| s.name.as_str()).zip_eq(inputs.sizes.iter().copied()).collect();
    let mut given = inputs.values.clone();
    let (results, _) = entry.call_values(&mut Context::new(2), &mut given, &sizes).map_err(|e| e.to_string())?;
    Ok(source.signature.results().map(|r| r.name.clone()).zip_eq(results).collect())
}

/// Lists the differences between C and NumPy, with the cases of the `k`-th library in it: for all sizes or with the
/// sizes compiled in, and one in four optimised.
fn faults_in_c(k: usize, cases: &[&Computed]) -> Vec<String> {
    let generic = k.is_multiple_of(2);
    let (mut faults, mut entries) = (Vec::new(), Vec::new());
    let what = if generic { "C" } else { "C with sizes compiled in" };
    for case in cases {
        match source(case, entries.len(), generic) {
            Ok((source, inputs)) => entries.push((case, source, inputs)),
            Err(e) => faults.extend(case.faults(what, Err(e.to_string()))),
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sources: Vec<CSource> = entries.iter().map(|(_, source, _)| source.clone()).collect();
    let options = CompileOptions { optimize: k.is_multiple_of(4), ..CompileOptions::default() };
    let libraries = batch::compile(&sources, folder.path(), &options).unwrap_or_else(|e| panic!("{e}"));
    for ((case, source, inputs), library) in entries.iter().zip_eq(&libraries) {
        faults.extend(case.faults(what, call(library, source, inputs)));
    }
    faults
}

#[test]
fn operators_agree_with_numpy() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    if python::run("tests/numpy/libop_cases.py", &[folder]).is_none() {
        return;
    }
    let index = std::fs::read(folder.join("index.json")).expect("the cases are listed");
    let index: Vec<serde_json::Value> = serde_json::from_slice(&index).expect("the list is JSON");
    assert!(index.len() > 1000, "only {} cases", index.len());
    let cases: Vec<Computed> = index.iter().enumerate().map(|(k, entry)| Computed::new(folder, k, entry)).collect();
    let called: BTreeSet<&str> = cases.iter().flat_map(Computed::operators).collect();
    let missing: Vec<&str> = taffeta_libop::names().filter(|n| !called.contains(n)).collect();
    assert!(missing.is_empty(), "no case in tests/numpy/libop_cases.py calls {missing:?}");

    let interpreted = |case: &Computed| {
        case.faults("the interpreter", case.case().run(Backend::Interp, true).map_err(|e| e.to_string()))
    };
    let mut faults = programs::for_each(&cases, interpreted).concat();
    let compiled = compiled(&cases);
    let groups: Vec<(usize, &[&Computed])> = compiled.chunks(CASES_PER_LIBRARY).enumerate().collect();
    faults.extend(programs::for_each(&groups, |(k, group)| faults_in_c(*k, group)).concat());
    assert!(faults.is_empty(), "{}\n{} faults", faults.join("\n"), faults.len());
}

/// Example of one operator: the program, the arguments of the call, and one line for each result.
struct Example {
    name: &'static str,
    program: String,
    arguments: Vec<String>,
    results: Vec<String>,
}

/// Parses the lines after `Example:` in the docstring of `name`: a program, then `>>> example(arguments)`, then
/// results.
fn example(name: &'static str) -> Example {
    let (file, text) = taffeta_libop::source(name).expect("every name has a source");
    let body = text.split(&format!("\ndef {name}(")).nth(1).unwrap_or_else(|| panic!("{file} defines {name}"));
    let doc = body.split("\"\"\"").nth(1).unwrap_or_else(|| panic!("{name} has a docstring"));
    let lines = doc.split("Example:\n").nth(1).unwrap_or_else(|| panic!("{name} has an example"));
    let lines: Vec<&str> = lines.lines().map(|l| l.strip_prefix("        ").unwrap_or(l.trim())).collect();
    let call =
        lines.iter().position(|l| l.starts_with(">>> ")).unwrap_or_else(|| panic!("{name}: the example has no call"));
    let arguments = lines[call].strip_prefix(">>> example(").and_then(|l| l.strip_suffix(')'));
    Example {
        name,
        program: lines[..call].join("\n") + "\n",
        arguments: at_top_level_commas(arguments.unwrap_or_else(|| panic!("{name}: the call is `>>> example(…)`"))),
        results: lines[call + 1..].iter().filter(|l| !l.is_empty()).map(|l| l.to_string()).collect(),
    }
}

/// Splits a text at its top-level commas, `[1, 2], 3` into two parts.
fn at_top_level_commas(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.into_iter().map(|p| p.trim().to_string()).collect()
}

fn literal(text: &str, dtype: DType, ndim: usize) -> Result<Value, String> {
    let want = Want::new("example", dtype, ndim);
    taffeta::io::read(&Source::Literal(text.to_string()), &want).map_err(|d| d.to_string())
}

/// Runs the example; the error is the difference from the results it promises.
fn check(example: &Example, backend: Backend) -> Result<(), String> {
    let program = taffeta::Program::from_source("example.ft", &example.program).map_err(|e| e.to_string())?;
    let function =
        program.compile("example", &Options::default().optimize(false).backend(backend)).map_err(|e| e.to_string())?;
    let params: Vec<_> = function.signature().params().cloned().collect();
    if params.len() != example.arguments.len() {
        return Err(format!("{} arguments for {} parameters", example.arguments.len(), params.len()));
    }
    let inputs: Result<Vec<Value>, String> =
        example.arguments.iter().zip_eq(&params).map(|(text, p)| literal(text, p.dtype, p.shape.len())).collect();
    let ran = function.run(inputs?, &[], 1).map_err(|e| e.to_string())?;
    if ran.results.len() != example.results.len() {
        return Err(format!("{} results, and {} are shown", ran.results.len(), example.results.len()));
    }
    for (text, found) in example.results.iter().zip_eq(&ran.results) {
        let expected = literal(text, found.dtype(), found.shape().len())?;
        if let Some(why) = difference(&expected, found, tolerance(found.dtype())) {
            return Err(format!("{text}: {why}"));
        }
    }
    Ok(())
}

#[test]
fn examples_in_docstrings_hold() {
    let examples: Vec<Example> = taffeta_libop::names().map(example).collect();
    assert!(examples.len() > 60, "only {} operators found", examples.len());
    let faults = programs::for_each(&examples, |example| {
        [Backend::Interp, Backend::C]
            .into_iter()
            .filter_map(|b| {
                check(example, b).err().map(|why| format!("{} ({b:?}): {why}\n{}", example.name, example.program))
            })
            .collect::<Vec<_>>()
    })
    .concat();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_shim_has_the_semantics_of_the_language() {
    if let Some(output) = python::run("tests/numpy/test_shim.py", &[]) {
        assert!(output.contains(" tests passed"), "{output}");
    }
}
