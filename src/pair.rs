//! Gradients as two calls: a forward pass that produces a tape, and a backward pass that consumes it.
//!
//! ```
//! use ndarray::{arr0, arr1};
//! use taffeta::{Options, Program};
//!
//! let program = Program::from_source("p.ft", "
//! def squares(x: f64[n], w: f64[n]) -> f64[n]:
//!     y = empty((n,), f64)
//!     for i in range(n):
//!         y[i] = w[i] * x[i] ** 2.0
//!     return y
//! ")?;
//! let squares = program.differentiate("squares", &Options::default())?;
//! let (x, w) = (arr1(&[1.0, 2.0]), arr1(&[3.0, 4.0]));
//! let (results, tape) = squares.forward().input("x", x.view()).input("w", w.view()).run()?;
//! assert_eq!(results.array::<f64>("y")?, arr1(&[3.0, 16.0]).into_dyn());
//!
//! // The seed may depend on the results, and a tape serves several seeds.
//! let ones = arr1(&[1.0, 1.0]);
//! let gradients = squares.backward(&tape).seed("y", ones.view()).run()?;
//! assert_eq!(gradients.array::<f64>("x.grad")?, arr1(&[6.0, 16.0]).into_dyn());
//! let first = arr1(&[1.0, 0.0]);
//! let gradients = squares.backward(&tape).seed("y", first.view()).run()?;
//! assert_eq!(gradients.array::<f64>("w.grad")?, arr1(&[1.0, 0.0]).into_dyn());
//! # Ok::<(), taffeta::Error>(())
//! ```
//!
//! The tape ([`Residuals`]) holds the inputs of the backward pass: values taped or copied in the forward pass, and the
//! arrays of the call. The latter are borrowed, so that a training loop copies nothing and cannot change a weight
//! between the passes; [`Residuals::into_owned`] copies them. If seeds are known beforehand, a single program with both
//! passes (`Options::gradient`) does the same in one call.

use crate::array::{self, Argument, ArgumentMut, Element};
use crate::call::{Call, Outputs};
use crate::error::{Error, Report};
use crate::function::Function;
use crate::sparse::Sparse;
use ndarray::{ArrayView, ArrayViewMut, CowArray, Dimension};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use taffeta_ast::{Diagnostic, Func, Value, interp};
use taffeta_autodiff::Source;
use taffeta_codegen::signature::Signature;

/// Compiled forward and backward passes of a gradient ([`crate::Program::differentiate`]). Several threads may call
/// both at once.
pub struct Pair {
    forward: Function,
    backward: Function,
    /// Sources of the first parameters of the backward pass.
    sources: Vec<Source>,
    /// Number of results of the original program.
    results: usize,
    /// Program that computes the sizes that depend on values of arguments.
    lengths: Option<Func>,
    /// Identifier, unique within the process.
    id: u64,
}

impl Pair {
    pub(crate) fn new(forward: Function, backward: Function, made: taffeta_autodiff::Pair) -> Pair {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Pair { forward, backward, sources: made.sources, results: made.results, lengths: made.lengths, id }
    }

    /// Starts a forward pass, which runs the program.
    pub fn forward<'a, 'w>(&self) -> Forward<'_, 'a, 'w> {
        let (inputs, sparse, lent) = (Vec::new(), Vec::new(), Vec::new());
        Forward { pair: self, inputs, sparse, lent, inouts: Vec::new(), sizes: Vec::new(), threads: 0 }
    }

    /// Starts a backward pass on the tape of a forward pass. A tape serves any number of backward passes.
    pub fn backward<'p, 't>(&'p self, tape: &'t Residuals<'_>) -> Backward<'p, 't> {
        let mut call = self.backward.call();
        for (p, kept) in self.backward.signature().params().zip(&tape.kept) {
            call = match kept {
                TapedValue::Dense(argument) => call.argument(&p.name, argument.view()),
                TapedValue::Sparse(value) => call.value(&p.name, value),
                TapedValue::Lent(tensor) => call.sparse(&p.name, tensor),
                TapedValue::Copied(tensor) => call.sparse(&p.name, tensor),
            };
        }
        for (name, value) in &tape.sizes {
            call = call.size(name, *value);
        }
        Backward { call, ours: tape.pair == self.id }
    }

    /// Returns names, types and shapes of the forward pass: those of the program, then the results that only the
    /// backward pass reads.
    pub fn forward_signature(&self) -> &Signature {
        self.forward.signature()
    }

    /// Returns names, types and shapes of the backward pass: its parameters are tape and seeds, its results the
    /// gradients.
    pub fn backward_signature(&self) -> &Signature {
        self.backward.signature()
    }

    /// Computes the sizes of a forward pass that depend on values of its arguments. Ill-fitting arguments yield none,
    /// and the call reports them.
    fn lengths(&self, call: &Call<'_, '_>) -> Result<Vec<(String, i64)>, Error> {
        let Some(func) = &self.lengths else { return Ok(Vec::new()) };
        let params: Option<Vec<Value>> = func.params.iter().map(|p| call.current(p.tensor.symbol.name())).collect();
        let (Some(params), Some(mut sizes)) = (params, call.known_sizes()) else { return Ok(Vec::new()) };
        sizes.retain(|name, _| func.sizes.iter().any(|s| s.name() == name));
        let outputs = match interp::run(func, &interp::Inputs { sizes, params }) {
            Ok(outputs) => outputs,
            Err(e) if matches!(e.kind.code(), "run::input" | "run::shape") => return Ok(Vec::new()),
            Err(e) => return Err(Error::Run(Report::without_sources(vec![e.into()]))),
        };
        let value = |v: &Value| v.data().get_int(0).and_then(|v| i64::try_from(v).ok()).unwrap_or(0);
        Ok(func.results.iter().map(|t| t.symbol.name().to_string()).zip(outputs.results.iter().map(value)).collect())
    }
}

/// Builder of a forward pass: arguments by name, then [`Forward::run`]. See [`Call`].
pub struct Forward<'p, 'a, 'w> {
    pair: &'p Pair,
    /// Inputs, which the tape borrows.
    inputs: Vec<(String, Argument<'a>)>,
    sparse: Vec<(String, &'a Value)>,
    lent: Vec<(String, &'a Sparse<'a>)>,
    /// `inout` arguments, which the tape copies.
    inouts: Vec<(String, ArgumentMut<'w>)>,
    sizes: Vec<(String, i64)>,
    threads: u32,
}

impl<'a, 'w> Forward<'_, 'a, 'w> {
    /// Passes an input.
    #[must_use]
    pub fn input<T: Element, D: Dimension>(mut self, name: &str, view: ArrayView<'a, T, D>) -> Self {
        self.inputs.push((name.to_string(), array::argument(view)));
        self
    }

    /// Passes a scalar input.
    #[must_use]
    pub fn scalar<T: Element>(mut self, name: &str, value: T) -> Self {
        self.inputs.push((name.to_string(), T::argument(CowArray::from(ndarray::arr0(value).into_dyn()))));
        self
    }

    /// Passes a value of any element type; a structured parameter also takes a sparse value.
    #[must_use]
    pub fn value(mut self, name: &str, value: &'a Value) -> Self {
        match value.places() {
            None => self.inputs.push((name.to_string(), value.into())),
            Some(_) => self.sparse.push((name.to_string(), value)),
        }
        self
    }

    /// Passes a structured parameter as borrowed arrays, without a copy.
    #[must_use]
    pub fn sparse(mut self, name: &str, tensor: &'a Sparse<'a>) -> Self {
        self.lent.push((name.to_string(), tensor));
        self
    }

    /// Passes an `inout` parameter; the view holds its final value after the call.
    #[must_use]
    pub fn inout<T: Element, D: Dimension>(mut self, name: &str, view: ArrayViewMut<'w, T, D>) -> Self {
        self.inouts.push((name.to_string(), array::argument_mut(view)));
        self
    }

    /// Passes an `inout` parameter of any element type.
    #[must_use]
    pub fn inout_value(mut self, name: &str, value: &'w mut Value) -> Self {
        self.inouts.push((name.to_string(), value.into()));
        self
    }

    /// Sets a size that no parameter determines.
    #[must_use]
    pub fn size(mut self, name: &str, value: i64) -> Self {
        self.sizes.push((name.to_string(), value));
        self
    }

    /// Sets the number of threads of parallel loops; by default OpenMP decides.
    #[must_use]
    pub fn threads(self, n: u32) -> Self {
        Forward { threads: n, ..self }
    }

    /// Checks the arguments and runs the program. Returns its results and the tape.
    ///
    /// # Errors
    ///
    /// Those of [`Call::run`].
    pub fn run(mut self) -> Result<(Outputs, Residuals<'a>), Error> {
        let pair = self.pair;
        let mut call = pair.forward.call().threads(self.threads);
        for (name, argument) in &self.inputs {
            call = call.argument(name, argument.view());
        }
        for (name, value) in &self.sparse {
            call = call.value(name, value);
        }
        for (name, tensor) in &self.lent {
            call = call.sparse(name, tensor);
        }
        for (name, argument) in &mut self.inouts {
            call = call.argument_mut(name, argument.view_mut());
        }
        for (name, value) in &self.sizes {
            call = call.size(name, *value);
        }
        for (name, value) in pair.lengths(&call)? {
            call = call.size(&name, value);
        }
        let (mut outputs, sizes) = call.run_with_sizes()?;
        let signature = pair.forward.signature();
        let mut left: Vec<Option<Value>> =
            outputs.split_off(pair.results).into_iter().map(|(_, v)| v.into_value().ok()).collect();
        let mut kept = Vec::new();
        for source in &pair.sources {
            kept.extend(match *source {
                Source::Param(k) => signature.params().nth(k).and_then(|p| self.tape_argument(&p.name)),
                Source::Result(k) => match k.checked_sub(pair.results) {
                    None => outputs.at(k).cloned().map(TapedValue::from),
                    Some(k) => left.get_mut(k).and_then(Option::take).map(TapedValue::from),
                },
            });
        }
        let sizes = signature.sizes.iter().map(|s| s.name.clone()).zip(sizes).collect();
        Ok((outputs, Residuals { pair: pair.id, sizes, kept }))
    }

    /// Returns a parameter after the pass: inputs as given, `inout` parameters copied.
    fn tape_argument(&mut self, name: &str) -> Option<TapedValue<'a>> {
        if let Some(k) = self.inputs.iter().position(|(n, _)| n == name) {
            return Some(TapedValue::Dense(self.inputs.swap_remove(k).1));
        }
        if let Some((_, value)) = self.sparse.iter().find(|(n, _)| n == name) {
            return Some(TapedValue::Sparse(Cow::Borrowed(value)));
        }
        if let Some((_, tensor)) = self.lent.iter().find(|(n, _)| n == name) {
            return Some(TapedValue::Lent(tensor));
        }
        let (_, argument) = self.inouts.iter().find(|(n, _)| n == name)?;
        argument.to_value().map(TapedValue::from)
    }
}

/// Tape: the values of one forward pass that the backward pass reads.
#[derive(Clone, Debug)]
pub struct Residuals<'a> {
    pair: u64,
    sizes: Vec<(String, i64)>,
    /// Values, in the order of the backward pass's first parameters.
    kept: Vec<TapedValue<'a>>,
}

/// Parameter of the backward pass.
#[derive(Clone, Debug)]
enum TapedValue<'a> {
    Dense(Argument<'a>),
    /// Structured tensor as a sparse value.
    Sparse(Cow<'a, Value>),
    /// Structured tensor as borrowed arrays.
    Lent(&'a Sparse<'a>),
    /// Structured tensor as owned arrays.
    Copied(Box<Sparse<'static>>),
}

impl From<Value> for TapedValue<'_> {
    fn from(value: Value) -> Self {
        if value.places().is_some() { TapedValue::Sparse(Cow::Owned(value)) } else { TapedValue::Dense(value.into()) }
    }
}

impl TapedValue<'_> {
    fn into_owned(self) -> TapedValue<'static> {
        match self {
            TapedValue::Dense(argument) => TapedValue::Dense(argument.into_owned()),
            TapedValue::Sparse(value) => TapedValue::Sparse(Cow::Owned(value.into_owned())),
            TapedValue::Lent(tensor) => TapedValue::Copied(Box::new(tensor.clone().into_owned())),
            TapedValue::Copied(tensor) => TapedValue::Copied(tensor),
        }
    }

    /// Returns the bytes of owned data.
    fn own_bytes(&self) -> usize {
        match self {
            TapedValue::Dense(argument) => argument.own_bytes(),
            TapedValue::Sparse(Cow::Owned(value)) => {
                let indices = value.places().map_or(0, |p| p.indices.len() * std::mem::size_of::<i64>());
                value.data().len() * value.dtype().size() + indices
            }
            TapedValue::Copied(tensor) => tensor.own_bytes(),
            TapedValue::Sparse(Cow::Borrowed(_)) | TapedValue::Lent(_) => 0,
        }
    }
}

impl Residuals<'_> {
    /// Returns the bytes that the tape owns, without the arrays of the call that it borrows.
    pub fn bytes(&self) -> usize {
        self.kept.iter().map(TapedValue::own_bytes).sum()
    }

    /// Copies the borrowed arrays, so that the originals may be changed or dropped before the backward pass.
    #[must_use]
    pub fn into_owned(self) -> Residuals<'static> {
        let kept = self.kept.into_iter().map(TapedValue::into_owned).collect();
        Residuals { kept, ..self }
    }
}

/// Builder of a backward pass: a seed for every result, then [`Backward::run`].
pub struct Backward<'p, 't> {
    call: Call<'p, 't>,
    /// Whether the tape belongs to this pair.
    ours: bool,
}

impl<'p, 't> Backward<'p, 't> {
    /// Passes the adjoint of a result: the derivative of the final scalar, such as a loss, with respect to this result.
    #[must_use]
    pub fn seed<T: Element, D: Dimension>(self, result: &str, view: ArrayView<'t, T, D>) -> Backward<'p, 't> {
        Backward { call: self.call.input(&adjoint(result), view), ..self }
    }

    /// Passes the adjoint of a scalar result.
    #[must_use]
    pub fn seed_scalar<T: Element>(self, result: &str, value: T) -> Backward<'p, 't> {
        Backward { call: self.call.scalar(&adjoint(result), value), ..self }
    }

    /// Passes the adjoint of a result of any element type.
    #[must_use]
    pub fn seed_value(self, result: &str, value: &'t Value) -> Backward<'p, 't> {
        Backward { call: self.call.value(&adjoint(result), value), ..self }
    }

    /// Passes the adjoint of the final value of an `inout` parameter; the view holds the adjoint of the initial value
    /// after the call.
    #[must_use]
    pub fn inout<T: Element, D: Dimension>(self, param: &str, view: ArrayViewMut<'t, T, D>) -> Backward<'p, 't> {
        Backward { call: self.call.inout(&adjoint(param), view), ..self }
    }

    /// Passes the adjoint of an `inout` parameter of any element type.
    #[must_use]
    pub fn inout_value(self, param: &str, value: &'t mut Value) -> Backward<'p, 't> {
        Backward { call: self.call.inout_value(&adjoint(param), value), ..self }
    }

    /// Sets the number of threads of parallel loops; by default OpenMP decides.
    #[must_use]
    pub fn threads(self, n: u32) -> Backward<'p, 't> {
        Backward { call: self.call.threads(n), ..self }
    }

    /// Checks the arguments and runs the pass: returns `x.grad` for every requested parameter x.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if the tape belongs to another pair, or seeds do not fit; [`Error::Run`] if the program stops.
    pub fn run(self) -> Result<Outputs, Error> {
        if !self.ours {
            let d = Diagnostic::new("tape::pair", "the tape comes from the forward pass of another gradient")
                .help("run the forward and backward pass of the same pair");
            return Err(Error::Input(Report::without_sources(vec![d])));
        }
        self.call.run()
    }
}

/// Returns the name of the adjoint of `x`: `x.grad`.
fn adjoint(of: &str) -> String {
    format!("{of}.grad")
}
