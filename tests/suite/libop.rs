//! The operator library. Every operator over many shapes and types: the interpreter, compiled C and NumPy agree
//! (`numpy/libop_cases.py` has the cases). And the example in every operator's docstring does what it says.

use crate::case::{Case, difference, tolerance};
use crate::programs::{self, Program};
use crate::python;
use std::path::Path;
use taffeta::io::{Source, Want};
use taffeta::{Backend, Options};
use taffeta_ast::{DType, Value};

/// Compiled C is compared for every case whose number leaves no rest: each takes the C compiler a moment.
const COMPILED: usize = 16;

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
    let numbered: Vec<_> = index.iter().enumerate().collect();
    let faults = programs::for_each(&numbered, |(k, entry)| {
        let name = entry["name"].as_str().unwrap_or_default();
        let program = Program { path: folder.join(format!("{k}.ft")), commands: vec![] };
        let names = |key: &str| -> Vec<String> {
            entry[key].as_array().into_iter().flatten().filter_map(|n| n.as_str().map(str::to_string)).collect()
        };
        let file = |way: &str, n: &str| folder.join(format!("{k}.{way}.{n}.npy"));
        let inputs = names("inputs").iter().map(|n| (n.clone(), file("in", n).display().to_string())).collect();
        let case = Case {
            program: &program,
            command: name,
            entry: "t".into(),
            inputs,
            sizes: vec![],
            statics: vec![],
            schedule: None,
        };
        let mut faults = compare(&case, Backend::Interp, true, &names("results"), &file);
        if k % COMPILED == 0 {
            faults.extend(compare(&case, Backend::C, true, &names("results"), &file));
            faults.extend(compare(&case, Backend::C, false, &names("results"), &file));
        }
        let text = std::fs::read_to_string(&program.path).unwrap_or_default();
        faults.into_iter().map(|f| format!("{name}: {f}\n{text}")).collect::<Vec<_>>()
    })
    .concat();
    assert!(faults.is_empty(), "{}\n{} faults", faults.join("\n"), faults.len());
}

/// What is different between a backend and NumPy.
fn compare(
    case: &Case<'_>,
    backend: Backend,
    generic: bool,
    results: &[String],
    file: &impl Fn(&str, &str) -> std::path::PathBuf,
) -> Vec<String> {
    let at = |what: String| format!("{backend:?}{}: {what}", if generic { "" } else { " with sizes compiled in" });
    let found = match case.run(backend, generic) {
        Ok(found) => found,
        Err(e) => return vec![at(e.to_string())],
    };
    if !found.iter().map(|(name, _)| name).eq(results) {
        return vec![at(format!("results are {:?}, not {results:?}", found.iter().map(|f| &f.0).collect::<Vec<_>>()))];
    }
    found
        .iter()
        .filter_map(|(name, value)| agrees(&file("out", name), value).map(|why| at(format!("`{name}`: {why}"))))
        .collect()
}

fn agrees(expected: &Path, found: &Value) -> Option<String> {
    // NumPy has no bf16: its results are stored as f32, exactly.
    let want = Want { name: "result".into(), dtype: found.dtype(), ndim: found.shape().len(), empty: None };
    match taffeta::io::read(&Source::File { path: expected.to_path_buf(), part: None }, &want) {
        Ok(expected) => difference(&expected, found, tolerance(found.dtype())),
        Err(d) => Some(d.to_string()),
    }
}

/// The example of one operator: the program, the arguments of the call, and one line for each result.
struct Example {
    name: &'static str,
    program: String,
    arguments: Vec<String>,
    results: Vec<String>,
}

/// The lines after `Example:` in the docstring of `name`: a program, then `>>> example(arguments)`, then results.
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

/// `[1, 2], 3` in its two parts.
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
    let want = Want { name: "example".into(), dtype, ndim, empty: None };
    taffeta::io::read(&Source::Literal(text.to_string()), &want).map_err(|d| d.to_string())
}

/// Runs the example; the error says what is different from what it promises.
fn check(example: &Example, backend: Backend) -> Result<(), String> {
    let program = taffeta::Program::from_source("example.ft", &example.program).map_err(|e| e.to_string())?;
    let function = program.compile("example", &Options::default().backend(backend)).map_err(|e| e.to_string())?;
    let params: Vec<_> = function.signature().params().cloned().collect();
    if params.len() != example.arguments.len() {
        return Err(format!("{} arguments for {} parameters", example.arguments.len(), params.len()));
    }
    let inputs: Result<Vec<Value>, String> =
        example.arguments.iter().zip(&params).map(|(text, p)| literal(text, p.dtype, p.shape.len())).collect();
    let ran = function.run(inputs?, &[], 1).map_err(|e| e.to_string())?;
    if ran.results.len() != example.results.len() {
        return Err(format!("{} results, and {} are shown", ran.results.len(), example.results.len()));
    }
    for (text, found) in example.results.iter().zip(&ran.results) {
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
fn the_shim_has_the_language_s_values() {
    if let Some(output) = python::run("tests/numpy/test_shim.py", &[]) {
        assert!(output.contains(" tests passed"), "{output}");
    }
}
