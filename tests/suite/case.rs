//! A parsed `# taffeta: run …` command, for tests that run it through the library: in the interpreter, in compiled C
//! with and without sizes compiled in, and in NumPy.

use crate::programs::Program;
use approx::abs_diff_eq;
use itertools::Itertools as _;
use std::path::Path;
use taffeta::io::output::{Target, write_all};
use taffeta::{Backend, Error, Function, Options, Signature, StaticValue};
use taffeta_ast::Value;

/// Entry with its inputs.
#[derive(Clone)]
pub struct Case<'p> {
    /// Program of the command.
    pub program: &'p Program,
    /// Text of the command, for messages.
    pub command: &'p str,
    /// Name of the entry.
    pub entry: String,
    /// `--in`, with file names made absolute.
    pub inputs: Vec<(String, String)>,
    /// `--size`
    pub sizes: Vec<(String, i64)>,
    /// `--set`
    pub statics: Vec<(String, String)>,
    /// `--schedule`, for compiled code. The interpreter runs the program as written.
    pub schedule: Option<String>,
    /// Whether C for all sizes with a schedule is optimised, as users' programs are (`--schedule auto` is the default).
    /// Other C never is: it would take twice as long.
    pub optimize: bool,
}

/// Tensor with its name.
pub type Named = (String, Value);

impl<'p> Case<'p> {
    /// Parses a `run` command; returns `None` for other commands.
    pub fn parse(program: &'p Program, command: &'p str) -> Option<Case<'p>> {
        let mut words = command.strip_prefix("run ")?.split_whitespace();
        let entry = words.next()?.to_string();
        let (inputs, sizes, statics) = (Vec::new(), Vec::new(), Vec::new());
        let mut case = Case { program, command, entry, inputs, sizes, statics, schedule: None, optimize: true };
        while let (Some(flag), Some(pair)) = (words.next(), words.next()) {
            if flag == "--schedule" {
                case.schedule = Some(pair.to_string());
                continue;
            }
            let (name, value) = pair.split_once('=').unwrap_or_else(|| panic!("{command}: {pair} is not a NAME=VALUE"));
            let (name, value) = (name.to_string(), value.to_string());
            match flag {
                "--in" => {
                    let file = program.path.parent().unwrap_or(Path::new("")).join(&value);
                    let value = if file.is_file() { file.display().to_string() } else { value };
                    case.inputs.push((name, value));
                }
                "--size" => case.sizes.push((name, value.parse().unwrap_or_else(|e| panic!("{command}: {e}")))),
                "--set" => case.statics.push((name, value)),
                other => panic!("{}: {command}: {other} is not understood here", program.name()),
            }
        }
        Some(case)
    }

    /// Returns options with the command's static values and schedule.
    pub fn options(&self) -> Options {
        let start = Options::default().schedule(self.schedule.as_deref());
        self.statics.iter().fold(start, |options, (name, text)| {
            let value: StaticValue =
                text.parse().unwrap_or_else(|e| panic!("{}: {}: {e}", self.program.name(), self.command));
            options.set(name, value)
        })
    }

    /// Reads the command's inputs, as described by the signature without compiled-in sizes.
    pub fn values(&self, signature: &Signature) -> Result<taffeta::inputs::Inputs, Error> {
        taffeta::inputs::read(signature, &self.inputs, &self.sizes)
            .map_err(|faults| Error::Input(taffeta::Report::from(faults)))
    }

    /// Compiles the entry, with its sizes compiled in unless `generic`.
    pub fn compile(&self, backend: Backend, generic: bool) -> Result<(Function, taffeta::inputs::Inputs), Error> {
        let file = taffeta::Program::load(&self.program.path)?;
        let mut options = self.options().backend(backend);
        let plain = options.clone().schedule(None);
        let open = file.compile(&self.entry, &plain.clone().backend(Backend::Interp))?;
        if options.backend == Backend::Interp {
            options = plain;
        }
        let inputs = self.values(open.signature())?;
        options = options.optimize(self.optimize && self.schedule.is_some() && generic);
        if !generic {
            for (size, value) in open.signature().sizes.iter().zip_eq(&inputs.sizes) {
                options = options.size(&size.name, *value);
            }
        }
        Ok((file.compile(&self.entry, &options)?, inputs))
    }

    /// Runs the entry; returns `inout` parameters and results by name.
    pub fn run(&self, backend: Backend, generic: bool) -> Result<Vec<Named>, Error> {
        let (function, inputs) = self.compile(backend, generic)?;
        let sizes = if generic { inputs.sizes } else { vec![] };
        let ran = function.run(inputs.values, &sizes, 2)?;
        let signature = function.signature();
        let written = signature
            .params()
            .zip_eq(ran.params)
            .filter(|(s, _)| s.passing == taffeta_codegen::signature::Passing::InOut);
        Ok(written.chain(signature.results().zip_eq(ran.results)).map(|(s, v)| (s.name.clone(), v)).collect())
    }
}

/// Writes tensors to a folder as `.npy` files.
pub fn save(folder: &Path, tensors: &[Named]) {
    let targets: Vec<(Target, &Value)> = tensors
        .iter()
        .map(|(name, v)| (Target { name: name.clone(), path: folder.join(format!("{name}.npy")), format: None }, v))
        .collect();
    std::fs::create_dir_all(folder).expect("a folder");
    write_all(&targets).unwrap_or_else(|d| panic!("{d}"));
}

/// Returns the tolerance for floats of a type, relative to the largest element of the tensor.
pub fn tolerance(dtype: taffeta_ast::DType) -> f64 {
    match dtype {
        taffeta_ast::DType::F64 => 1e-12,
        taffeta_ast::DType::F32 => 1e-5,
        taffeta_ast::DType::F16 => 2e-3,
        _ => 1e-2,
    }
}

/// Lists the differences between results: in their names and number, or in their values.
pub fn differences(expected: &[Named], found: &[Named]) -> Vec<String> {
    let names = |of: &[Named]| of.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    if names(expected) != names(found) {
        return vec![format!("results {:?} and {:?}", names(expected), names(found))];
    }
    let differ = |((name, a), (_, b)): (&Named, &Named)| {
        difference(a, b, tolerance(a.dtype())).map(|why| format!("`{name}`: {why}"))
    };
    expected.iter().zip_eq(found).filter_map(differ).collect()
}

/// Returns the difference between two results, or `None` if they agree. Integers, NaN and infinities must be equal.
pub fn difference(expected: &Value, found: &Value, tolerance: f64) -> Option<String> {
    if expected.dtype() != found.dtype() || expected.shape() != found.shape() {
        return Some(format!("{}{:?} and {}{:?}", expected.dtype(), expected.shape(), found.dtype(), found.shape()));
    }
    let (a, b) = (expected.data(), found.data());
    let floats = expected.dtype().is_float();
    let finite = (0..a.len()).map(|i| a.get_f64(i).abs()).filter(|v| v.is_finite());
    let scale = finite.fold(0.0f64, f64::max);
    for i in 0..a.len() {
        let same = if floats {
            let (x, y) = (a.get_f64(i), b.get_f64(i));
            // Equal infinities have no difference that could be compared.
            x == y || x.is_nan() && y.is_nan() || abs_diff_eq!(x, y, epsilon = tolerance * scale)
        } else {
            a.get_int(i) == b.get_int(i)
        };
        if !same {
            return Some(format!("element {i}: {} and {}", a.get_f64(i), b.get_f64(i)));
        }
    }
    None
}

/// Checks that results that are missing, additional or misnamed count as differences.
#[test]
fn results_are_compared_one_by_one() {
    let value = |v: f64| Value::new(vec![], taffeta_ast::Buffer::F64(vec![v])).expect("a number");
    let all = |named: &[(&str, f64)]| named.iter().map(|(n, v)| (n.to_string(), value(*v))).collect::<Vec<Named>>();
    let expected = all(&[("y", 1.0), ("z", 2.0)]);
    assert_eq!(differences(&expected, &expected), Vec::<String>::new());
    for wrong in [
        &[("y", 1.0)][..],
        &[("y", 1.0), ("z", 2.0), ("w", 3.0)],
        &[("z", 1.0), ("y", 2.0)],
        &[],
        &[("y", 1.0), ("z", 2.1)],
    ] {
        assert_eq!(differences(&expected, &all(wrong)).len(), 1, "{wrong:?}");
        assert_eq!(differences(&all(wrong), &expected).len(), 1, "{wrong:?}");
    }
}
