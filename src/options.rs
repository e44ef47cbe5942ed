//! Compilation options of an entry, including the derivative to compile instead of the entry.

use std::collections::BTreeMap;
use taffeta_ast::DType;
use taffeta_autodiff::Tape;
use taffeta_frontend::StaticValue;

/// Name of the automatic schedule.
pub(crate) const AUTO: &str = "auto";

/// Maximum number of threads of a call, whether requested by the call or by `OMP_NUM_THREADS`. OpenMP's run-time
/// library exits the whole process or crashes when the system refuses a thread; no machine has as many cores.
pub const MAX_THREADS: u32 = 1024;

/// Execution engine of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// C with OpenMP, compiled by the system's C compiler.
    #[default]
    C,
    /// Reference interpreter: slow, and checks everything.
    Interp,
}

/// Mode of differentiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Reverse mode: from seeds of the results to gradients.
    #[default]
    Reverse,
    /// Forward mode: from tangents of the inputs to tangents of the results.
    Forward,
}

/// Gradient of an entry (`docs/src/gradients.md`): the results, and then `x.grad` for every parameter x in `wrt`, given
/// a seed `y.grad` for every result y and for the final value of every `inout` parameter.
///
/// In forward mode: `y.tangent` for every result y, given a tangent `x.tangent` for every parameter in `wrt` and every
/// other `inout` parameter; the latter holds the tangent of the final value afterwards.
///
/// ```
/// use taffeta::{Gradient, Tape};
/// let by_weights = Gradient::default().wrt(["w", "b"]).tape(Tape::All);
/// assert_eq!(by_weights.wrt, ["w", "b"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gradient {
    /// Parameters to differentiate by; empty selects all floating-point ones.
    pub wrt: Vec<String>,
    /// Tape: the values from loops that are kept for the backward pass.
    pub tape: Tape,
    /// Maximum bytes of the gradient's local tensors (reverse mode). Enforcing the budget requires the sizes in
    /// [`Options::sizes`].
    pub memory: Option<u64>,
    /// Values of scalar integer parameters (`steps: i64`) that the number of taped values depends on, for a budget.
    pub values: BTreeMap<String, i64>,
    /// Mode: gradients or tangents.
    pub mode: Mode,
}

impl Gradient {
    /// Sets the parameters to differentiate by, instead of all floating-point ones.
    #[must_use]
    pub fn wrt(mut self, params: impl IntoIterator<Item = impl AsRef<str>>) -> Gradient {
        self.wrt = params.into_iter().map(|p| p.as_ref().to_string()).collect();
        self
    }

    /// Sets the tape: the values from loops that are kept for the backward pass.
    #[must_use]
    pub fn tape(mut self, tape: Tape) -> Gradient {
        self.tape = tape;
        self
    }

    /// Sets or removes the budget of bytes for the gradient's local tensors.
    #[must_use]
    pub fn memory(mut self, bytes: impl Into<Option<u64>>) -> Gradient {
        self.memory = bytes.into();
        self
    }

    /// Sets the value of a scalar integer parameter that a budget depends on.
    #[must_use]
    pub fn value(mut self, param: &str, value: i64) -> Gradient {
        self.values.insert(param.to_string(), value);
        self
    }

    /// Sets the mode: gradients or tangents.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Gradient {
        self.mode = mode;
        self
    }
}

/// Compilation options of an entry.
///
/// ```
/// use taffeta::{Backend, Gradient, Options};
/// let options = Options::default().size("n", 1000).schedule("fast").gradient(Gradient::default().wrt(["w"]));
/// assert_eq!(options.backend, Backend::C);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Execution engine.
    pub backend: Backend,
    /// Values of `static` parameters.
    pub statics: BTreeMap<String, StaticValue>,
    /// Sizes to compile in. The others stay symbolic: one compilation serves all their values.
    pub sizes: BTreeMap<String, i64>,
    /// Expected values of symbolic sizes, and of the number of stored elements of a structured parameter (`A.stored`).
    /// Automatic schedules optimise for these and are correct for all others. Hints are rounded to powers of two.
    pub hints: BTreeMap<String, i64>,
    /// Types of the index arrays of structured parameters, for levels whose format specifies none; the default is
    /// `i32`.
    pub indices: BTreeMap<String, DType>,
    /// Schedule: `"auto"`, the default (rules choose for this machine and the known sizes), the name of a schedule
    /// function of the file, or a trace file (`*.json`). `None` and `"none"` run the program as written; so does the
    /// interpreter under `"auto"`.
    pub schedule: Option<String>,
    /// Whether tapes of gradients are chosen with an `"auto"` schedule, if neither a tape nor a memory budget is given.
    /// Otherwise tapes are those of an unscheduled program.
    pub choose_tapes: bool,
    /// Gradient to compile instead of the program: its results are those of the program, then the gradients.
    pub gradient: Option<Gradient>,
    /// Whether to generate C for any machine of this architecture, with the vector width common to all.
    pub portable: bool,
    /// Whether the C compiler optimises the program (`-O3`), rather than compiling in less time (`-Og`).
    pub optimize: bool,
    /// Whether to stop, with the location, where a statement yields NaN or infinity from finite numbers
    /// (`run::nonfinite`).
    pub check_finite: bool,
    /// Whether floats in C equal the interpreter's to the last bit, except for functions of the C library: products are
    /// rounded before additions, and sums keep their order unless a schedule function reorders them.
    pub strict_floats: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            backend: Backend::default(),
            statics: BTreeMap::new(),
            sizes: BTreeMap::new(),
            hints: BTreeMap::new(),
            indices: BTreeMap::new(),
            schedule: Some(AUTO.to_string()),
            choose_tapes: true,
            gradient: None,
            portable: false,
            optimize: true,
            check_finite: false,
            strict_floats: false,
        }
    }
}

impl Options {
    /// Sets whether the C compiler optimises the program.
    #[must_use]
    pub fn optimize(mut self, optimize: bool) -> Options {
        self.optimize = optimize;
        self
    }

    /// Sets the value of a `static` parameter.
    #[must_use]
    pub fn set(mut self, name: &str, value: StaticValue) -> Options {
        self.statics.insert(name.to_string(), value);
        self
    }

    /// Sets the values of several `static` parameters.
    #[must_use]
    pub fn statics(mut self, values: impl IntoIterator<Item = (String, StaticValue)>) -> Options {
        self.statics.extend(values);
        self
    }

    /// Compiles in a size.
    #[must_use]
    pub fn size(mut self, name: &str, value: i64) -> Options {
        self.sizes.insert(name.to_string(), value);
        self
    }

    /// Compiles in several sizes.
    #[must_use]
    pub fn sizes(mut self, values: impl IntoIterator<Item = (String, i64)>) -> Options {
        self.sizes.extend(values);
        self
    }

    /// Sets the expected value of a symbolic size, or of the number of stored elements of a structured parameter.
    ///
    /// ```
    /// let options = taffeta::Options::default().hint("n", 4000).hint("A.stored", 100_000);
    /// assert!(options.sizes.is_empty());
    /// ```
    #[must_use]
    pub fn hint(mut self, name: &str, value: i64) -> Options {
        self.hints.insert(name.to_string(), value);
        self
    }

    /// Returns the hints, except of compiled-in sizes, rounded to the nearest power of two so that similar values share
    /// a program.
    pub(crate) fn rounded_hints(&self) -> BTreeMap<String, i64> {
        let rounded = |v: i64| if v > 0 { (v as f64).log2().round().exp2() as i64 } else { v };
        let open = self.hints.iter().filter(|(name, _)| !self.sizes.contains_key(*name));
        open.map(|(name, value)| (name.clone(), rounded(*value))).collect()
    }

    /// Sets the type of a structured parameter's index arrays (`u8`, `u16`, `i32`, `i64`; positions are `i32` at
    /// least), for levels whose format specifies none.
    ///
    /// ```
    /// use taffeta::{DType, Options, Program, Sparse};
    ///
    /// let program = Program::from_source("total.ft", "
    /// def total(A: f64[n, m] @ csr) -> f64:
    ///     s: f64 = 0.0
    ///     for i in range(n):
    ///         for j in range(m):
    ///             s += A[i, j]
    ///     return s
    /// ")?;
    /// let total = program.compile("total", &Options::default().index("A", DType::I64))?;
    /// let (indptr, indices, values) = ([0i64, 1, 3], [2i64, 0, 1], [1.0, 2.0, 3.0]);
    /// let a = Sparse::csr(&indptr, &indices, &values, [2, 3]);
    /// assert_eq!(total.call().sparse("A", &a).run()?.scalar::<f64>("s")?, 6.0);
    /// # Ok::<(), taffeta::Error>(())
    /// ```
    #[must_use]
    pub fn index(mut self, name: &str, dtype: DType) -> Options {
        self.indices.insert(name.to_string(), dtype);
        self
    }

    /// Sets the schedule: the name of a schedule function, a trace file, `"auto"`, or `None` for the program as
    /// written.
    #[must_use]
    pub fn schedule<'s>(mut self, name: impl Into<Option<&'s str>>) -> Options {
        self.schedule = name.into().map(str::to_string);
        self
    }

    /// Sets whether the automatic schedule chooses the tapes of gradients.
    #[must_use]
    pub fn choose_tapes(mut self, choose: bool) -> Options {
        self.choose_tapes = choose;
        self
    }

    /// Sets a gradient to compile instead of the program; `None` compiles the program itself.
    #[must_use]
    pub fn gradient(mut self, gradient: impl Into<Option<Gradient>>) -> Options {
        self.gradient = gradient.into();
        self
    }

    /// Sets whether to generate C for any machine of this architecture.
    #[must_use]
    pub fn portable(mut self, portable: bool) -> Options {
        self.portable = portable;
        self
    }

    /// Sets whether to stop where a statement yields NaN or infinity from finite numbers.
    #[must_use]
    pub fn check_finite(mut self, check: bool) -> Options {
        self.check_finite = check;
        self
    }

    /// Sets whether to compute floats in C as the interpreter does.
    ///
    /// ```
    /// use taffeta::{Options, Program};
    ///
    /// let program = Program::from_source("f.ft", "
    /// def f(a: f64, b: f64, c: f64) -> f64:
    ///     return a * b + c
    /// ")?;
    /// let f = program.compile("f", &Options::default().strict_floats(true))?;
    /// let (a, b) = (1.0 + 1e-10, 1.0 - 1e-10);
    /// // The product is rounded to 1; as one operation it would leave -1e-20.
    /// assert_eq!(f.call().scalar("a", a).scalar("b", b).scalar("c", -1.0).run()?.scalar::<f64>("out")?, 0.0);
    /// # Ok::<(), taffeta::Error>(())
    /// ```
    #[must_use]
    pub fn strict_floats(mut self, strict: bool) -> Options {
        self.strict_floats = strict;
        self
    }

    /// Sets the execution engine.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Options {
        self.backend = backend;
        self
    }
}

/// Returns the inputs of elaboration and differentiation as part of a cache key.
pub(crate) fn statics_text(options: &Options) -> String {
    format!("{:?} {:?} {} {}", options.statics, options.gradient, options.check_finite, options.choose_tapes)
}
