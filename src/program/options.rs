//! What is compiled of an entry and for what: options, and which derivatives are in the place of its results.

use std::collections::BTreeMap;
use taffeta_ast::DType;
use taffeta_autodiff::Tape;
use taffeta_frontend::StaticValue;

/// What runs a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// C with OpenMP, compiled by the system's C compiler.
    #[default]
    C,
    /// The reference interpreter: slow, and checks everything.
    Interp,
}

/// In which direction derivatives are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// From seeds of the results to gradients.
    #[default]
    Reverse,
    /// From tangents of the inputs to tangents of the results.
    Forward,
}

/// The gradient of an entry (language.md section 6): the results, and then `x.grad` for every parameter x in `wrt`,
/// given a seed `y.grad` for every result y and for the final value of every `inout` parameter.
///
/// In forward mode: `y.tangent` for every result y, given a tangent `x.tangent` for every parameter in `wrt` and every
/// other `inout` parameter, which holds that of the final value afterwards.
///
/// ```
/// use taffeta::{Gradient, Tape};
/// let by_weights = Gradient::default().wrt(["w", "b"]).tape(Tape::All);
/// assert_eq!(by_weights.wrt, ["w", "b"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gradient {
    /// The parameters with respect to which it is differentiated; empty means all of floating-point numbers.
    pub wrt: Vec<String>,
    /// Which values that are made in loops are kept for the backward pass.
    pub tape: Tape,
    /// Bytes that the gradient's local tensors may take (reverse mode). It takes the sizes in [`Options::sizes`] to
    /// keep it.
    pub memory: Option<u64>,
    /// Values of parameters that are single integers (`steps: i64`), where the number of values depends on them and a
    /// budget is kept.
    pub values: BTreeMap<String, i64>,
    /// Gradients or tangents.
    pub mode: Mode,
}

impl Gradient {
    /// Differentiates with respect to these parameters, instead of all of floating-point numbers.
    #[must_use]
    pub fn wrt(mut self, params: impl IntoIterator<Item = impl AsRef<str>>) -> Gradient {
        self.wrt = params.into_iter().map(|p| p.as_ref().to_string()).collect();
        self
    }

    /// Says which values that are made in loops are kept for the backward pass.
    #[must_use]
    pub fn tape(mut self, tape: Tape) -> Gradient {
        self.tape = tape;
        self
    }

    /// Gives a budget of bytes for the gradient's local tensors, or none.
    #[must_use]
    pub fn memory(mut self, bytes: impl Into<Option<u64>>) -> Gradient {
        self.memory = bytes.into();
        self
    }

    /// Says what a parameter that is a single integer is, for a budget that depends on it.
    #[must_use]
    pub fn value(mut self, param: &str, value: i64) -> Gradient {
        self.values.insert(param.to_string(), value);
        self
    }

    /// Chooses gradients or tangents.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Gradient {
        self.mode = mode;
        self
    }
}

/// How an entry is compiled.
///
/// ```
/// use taffeta::{Backend, Gradient, Options};
/// let options = Options::default().size("n", 1000).schedule("fast").gradient(Gradient::default().wrt(["w"]));
/// assert_eq!(options.backend, Backend::C);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What runs it.
    pub backend: Backend,
    /// Values of `static` parameters.
    pub statics: BTreeMap<String, StaticValue>,
    /// Sizes that are compiled in. The others stay symbolic: one compilation serves all their values.
    pub sizes: BTreeMap<String, i64>,
    /// What is expected of sizes that stay symbolic, and of how many elements a structured parameter stores
    /// (`A.stored`): automatic schedules choose by it, and are right for all others. A power of two is as good as its
    /// neighbours.
    pub hints: BTreeMap<String, i64>,
    /// Types of the index arrays of structured parameters, of levels whose format says none: `i32` unless it is here.
    pub indices: BTreeMap<String, DType>,
    /// The schedule: `"auto"`, which is the default (rules choose for this machine and the sizes that are known), the
    /// name of a schedule function of the file, or a file with a trace (`*.json`). `None` and `"none"` run the program
    /// as it is written, and the interpreter does so under `"auto"` too.
    pub schedule: Option<String>,
    /// Whether what gradients keep for their backward pass is chosen with the schedule, where that is `"auto"` and
    /// neither a tape nor a budget of memory is asked for. Without it, that is decided as where there is no schedule.
    pub choose_tapes: bool,
    /// The gradient in the place of the program: its results are those of the program, then the gradients.
    pub gradient: Option<Gradient>,
    /// C for any machine of this architecture: vectors are as long as all of them have.
    pub portable: bool,
    /// Stop where a statement makes a NaN or an infinity of finite numbers, and say which (`run::nonfinite`).
    pub check_finite: bool,
    /// Floats in C are those of the interpreter, to the last bit but for functions of the C library: products are
    /// rounded before they are added, and sums stay in their order unless a schedule function asks for another one.
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
            schedule: Some(crate::automatic::AUTO.to_string()),
            choose_tapes: true,
            gradient: None,
            portable: false,
            check_finite: false,
            strict_floats: false,
        }
    }
}

impl Options {
    /// Gives a `static` parameter its value.
    #[must_use]
    pub fn set(mut self, name: &str, value: StaticValue) -> Options {
        self.statics.insert(name.to_string(), value);
        self
    }

    /// Gives several `static` parameters their values.
    #[must_use]
    pub fn statics(mut self, values: impl IntoIterator<Item = (String, StaticValue)>) -> Options {
        self.statics.extend(values);
        self
    }

    /// Compiles a size in.
    #[must_use]
    pub fn size(mut self, name: &str, value: i64) -> Options {
        self.sizes.insert(name.to_string(), value);
        self
    }

    /// Compiles several sizes in.
    #[must_use]
    pub fn sizes(mut self, values: impl IntoIterator<Item = (String, i64)>) -> Options {
        self.sizes.extend(values);
        self
    }

    /// Says what is expected of a size that stays symbolic, or of the elements that a structured parameter stores.
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

    /// The hints for what is not known, each the nearest power of two: neighbours get the same program.
    pub(crate) fn rounded_hints(&self) -> BTreeMap<String, i64> {
        let rounded = |v: i64| if v > 0 { (v as f64).log2().round().exp2() as i64 } else { v };
        let open = self.hints.iter().filter(|(name, _)| !self.sizes.contains_key(*name));
        open.map(|(name, value)| (name.clone(), rounded(*value))).collect()
    }

    /// Compiles for index arrays of that type (`u8`, `u16`, `i32`, `i64`; positions are `i32` at least) of a structured
    /// parameter, in levels whose format does not say one itself.
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

    /// Runs the program under a schedule: the name of a schedule function, a file with a trace, `"auto"`, or as it is
    /// written (`None`).
    #[must_use]
    pub fn schedule<'s>(mut self, name: impl Into<Option<&'s str>>) -> Options {
        self.schedule = name.into().map(str::to_string);
        self
    }

    /// Chooses what gradients keep with the automatic schedule, or without it.
    #[must_use]
    pub fn choose_tapes(mut self, choose: bool) -> Options {
        self.choose_tapes = choose;
        self
    }

    /// Puts a gradient in the place of the program, or the program itself (`None`).
    #[must_use]
    pub fn gradient(mut self, gradient: impl Into<Option<Gradient>>) -> Options {
        self.gradient = gradient.into();
        self
    }

    /// Makes C for any machine of this architecture.
    #[must_use]
    pub fn portable(mut self, portable: bool) -> Options {
        self.portable = portable;
        self
    }

    /// Stops where a statement makes a NaN or an infinity of finite numbers.
    #[must_use]
    pub fn check_finite(mut self, check: bool) -> Options {
        self.check_finite = check;
        self
    }

    /// Computes floats in C as the interpreter does.
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

    /// Chooses what runs the program.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Options {
        self.backend = backend;
        self
    }
}
