//! A gradient in two calls: a forward pass that leaves its tape, and a backward pass that takes it.
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
//! *The tape* ([`Residuals`]) holds what the backward pass needs: values that were kept or copied on the way, and the
//! arrays of the call. The latter are borrowed, so that a training loop copies nothing and cannot change a weight
//! between both passes; [`Residuals::into_owned`] copies them. Where seeds are known before, one program with both
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

/// The two passes of a gradient, compiled ([`crate::Program::differentiate`]). Both may be called by several threads at
/// once.
pub struct Pair {
    forward: Function,
    backward: Function,
    /// Where the first parameters of the backward pass come from.
    sources: Vec<Source>,
    /// How many results are the program's.
    results: usize,
    /// Computes the sizes that follow from values.
    lengths: Option<Func>,
    /// No other pair of this process has it.
    id: u64,
}

impl Pair {
    pub(crate) fn new(forward: Function, backward: Function, made: taffeta_autodiff::Pair) -> Pair {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Pair { forward, backward, sources: made.sources, results: made.results, lengths: made.lengths, id }
    }

    /// Starts a forward pass: the program, with its results.
    pub fn forward<'a, 'w>(&self) -> Forward<'_, 'a, 'w> {
        let (inputs, sparse, lent) = (Vec::new(), Vec::new(), Vec::new());
        Forward { pair: self, inputs, sparse, lent, inouts: Vec::new(), sizes: Vec::new(), threads: 0 }
    }

    /// Starts a backward pass over what a forward pass left. It may be started any number of times.
    pub fn backward<'p, 't>(&'p self, tape: &'t Residuals<'_>) -> Backward<'p, 't> {
        let mut call = self.backward.call();
        for (p, kept) in self.backward.signature().params().zip(&tape.kept) {
            call = match kept {
                Kept::Dense(argument) => call.argument(&p.name, argument.view()),
                Kept::Sparse(value) => call.value(&p.name, value),
                Kept::Lent(tensor) => call.sparse(&p.name, tensor),
                Kept::Copied(tensor) => call.sparse(&p.name, tensor),
            };
        }
        for (name, value) in &tape.sizes {
            call = call.size(name, *value);
        }
        Backward { call, ours: tape.pair == self.id }
    }

    /// Names, types and shapes of the forward pass: those of the program, then results that only the backward pass
    /// sees.
    pub fn forward_signature(&self) -> &Signature {
        self.forward.signature()
    }

    /// Names, types and shapes of the backward pass: what it needs, then the seeds; its results are the gradients.
    pub fn backward_signature(&self) -> &Signature {
        self.backward.signature()
    }

    /// The sizes that a call of the forward pass needs and that follow from values of its arguments. Arguments that do
    /// not fit give none: the call says so.
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

/// A forward pass that is being prepared: arguments by name, then [`Forward::run`]. See [`Call`].
pub struct Forward<'p, 'a, 'w> {
    pair: &'p Pair,
    /// These are lent to the tape.
    inputs: Vec<(String, Argument<'a>)>,
    sparse: Vec<(String, &'a Value)>,
    lent: Vec<(String, &'a Sparse<'a>)>,
    /// Of these, the tape has copies.
    inouts: Vec<(String, ArgumentMut<'w>)>,
    sizes: Vec<(String, i64)>,
    threads: u32,
}

impl<'a, 'w> Forward<'_, 'a, 'w> {
    /// Gives a parameter.
    #[must_use]
    pub fn input<T: Element, D: Dimension>(mut self, name: &str, view: ArrayView<'a, T, D>) -> Self {
        self.inputs.push((name.to_string(), array::argument(view)));
        self
    }

    /// Gives a scalar parameter.
    #[must_use]
    pub fn scalar<T: Element>(mut self, name: &str, value: T) -> Self {
        self.inputs.push((name.to_string(), T::argument(CowArray::from(ndarray::arr0(value).into_dyn()))));
        self
    }

    /// Gives a parameter of any element type; for a structured one also a sparse value.
    #[must_use]
    pub fn value(mut self, name: &str, value: &'a Value) -> Self {
        match value.places() {
            None => self.inputs.push((name.to_string(), value.into())),
            Some(_) => self.sparse.push((name.to_string(), value)),
        }
        self
    }

    /// Gives a structured parameter by its arrays, which are not copied.
    #[must_use]
    pub fn sparse(mut self, name: &str, tensor: &'a Sparse<'a>) -> Self {
        self.lent.push((name.to_string(), tensor));
        self
    }

    /// Gives an `inout` parameter; the view holds its final value after the call.
    #[must_use]
    pub fn inout<T: Element, D: Dimension>(mut self, name: &str, view: ArrayViewMut<'w, T, D>) -> Self {
        self.inouts.push((name.to_string(), array::argument_mut(view)));
        self
    }

    /// Gives an `inout` parameter of any element type.
    #[must_use]
    pub fn inout_value(mut self, name: &str, value: &'w mut Value) -> Self {
        self.inouts.push((name.to_string(), value.into()));
        self
    }

    /// Gives a size that no parameter fixes.
    #[must_use]
    pub fn size(mut self, name: &str, value: i64) -> Self {
        self.sizes.push((name.to_string(), value));
        self
    }

    /// Threads of parallel loops; without it OpenMP decides.
    #[must_use]
    pub fn threads(self, n: u32) -> Self {
        Forward { threads: n, ..self }
    }

    /// Checks everything and runs: the results of the program, and the tape.
    ///
    /// # Errors
    ///
    /// As [`Call::run`].
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
        let mut left: Vec<Option<Value>> = outputs.split_off(pair.results).into_iter().map(|(_, v)| Some(v)).collect();
        let mut kept = Vec::new();
        for source in &pair.sources {
            kept.extend(match *source {
                Source::Param(k) => signature.params().nth(k).and_then(|p| self.as_it_is(&p.name)),
                Source::Result(k) => match k.checked_sub(pair.results) {
                    None => outputs.at(k).cloned().map(Kept::from),
                    Some(k) => left.get_mut(k).and_then(Option::take).map(Kept::from),
                },
            });
        }
        let sizes = signature.sizes.iter().map(|s| s.name.clone()).zip(sizes).collect();
        Ok((outputs, Residuals { pair: pair.id, sizes, kept }))
    }

    /// A parameter after the pass: what is only read as it was given, what is written as a copy.
    fn as_it_is(&mut self, name: &str) -> Option<Kept<'a>> {
        if let Some(k) = self.inputs.iter().position(|(n, _)| n == name) {
            return Some(Kept::Dense(self.inputs.swap_remove(k).1));
        }
        if let Some((_, value)) = self.sparse.iter().find(|(n, _)| n == name) {
            return Some(Kept::Sparse(Cow::Borrowed(value)));
        }
        if let Some((_, tensor)) = self.lent.iter().find(|(n, _)| n == name) {
            return Some(Kept::Lent(tensor));
        }
        let (_, argument) = self.inouts.iter().find(|(n, _)| n == name)?;
        argument.to_value().map(Kept::from)
    }
}

/// The tape: what the backward pass needs of one forward pass.
#[derive(Clone, Debug)]
pub struct Residuals<'a> {
    pair: u64,
    sizes: Vec<(String, i64)>,
    /// In the order of the backward pass's first parameters.
    kept: Vec<Kept<'a>>,
}

/// A parameter of the backward pass.
#[derive(Clone, Debug)]
enum Kept<'a> {
    Dense(Argument<'a>),
    /// A structured one by its elements.
    Sparse(Cow<'a, Value>),
    /// A structured one by its arrays.
    Lent(&'a Sparse<'a>),
    /// Likewise, by copies of them.
    Copied(Box<Sparse<'static>>),
}

impl From<Value> for Kept<'_> {
    fn from(value: Value) -> Self {
        if value.places().is_some() { Kept::Sparse(Cow::Owned(value)) } else { Kept::Dense(value.into()) }
    }
}

impl Kept<'_> {
    fn into_owned(self) -> Kept<'static> {
        match self {
            Kept::Dense(argument) => Kept::Dense(argument.into_owned()),
            Kept::Sparse(value) => Kept::Sparse(Cow::Owned(value.into_owned())),
            Kept::Lent(tensor) => Kept::Copied(Box::new(tensor.clone().into_owned())),
            Kept::Copied(tensor) => Kept::Copied(tensor),
        }
    }

    /// The bytes of what is its own.
    fn own_bytes(&self) -> usize {
        match self {
            Kept::Dense(argument) => argument.own_bytes(),
            Kept::Sparse(Cow::Owned(value)) => {
                let indices = value.places().map_or(0, |p| p.indices.len() * std::mem::size_of::<i64>());
                value.data().len() * value.dtype().size() + indices
            }
            Kept::Copied(tensor) => tensor.own_bytes(),
            Kept::Sparse(Cow::Borrowed(_)) | Kept::Lent(_) => 0,
        }
    }
}

impl Residuals<'_> {
    /// The bytes that it holds itself. Arrays of the call that it looks at are not among them.
    pub fn bytes(&self) -> usize {
        self.kept.iter().map(Kept::own_bytes).sum()
    }

    /// With copies of the arrays of the call: they may be changed, or go away, before the backward pass.
    #[must_use]
    pub fn into_owned(self) -> Residuals<'static> {
        let kept = self.kept.into_iter().map(Kept::into_owned).collect();
        Residuals { kept, ..self }
    }
}

/// A backward pass that is being prepared: a seed for every result, then [`Backward::run`].
pub struct Backward<'p, 't> {
    call: Call<'p, 't>,
    /// Whether the tape is one of this pair.
    ours: bool,
}

impl<'p, 't> Backward<'p, 't> {
    /// Gives the adjoint of a result: the derivative, by it, of what is differentiated in the end.
    #[must_use]
    pub fn seed<T: Element, D: Dimension>(self, result: &str, view: ArrayView<'t, T, D>) -> Backward<'p, 't> {
        Backward { call: self.call.input(&adjoint(result), view), ..self }
    }

    /// Gives the adjoint of a result that is a number.
    #[must_use]
    pub fn seed_scalar<T: Element>(self, result: &str, value: T) -> Backward<'p, 't> {
        Backward { call: self.call.scalar(&adjoint(result), value), ..self }
    }

    /// Gives the adjoint of a result of any element type.
    #[must_use]
    pub fn seed_value(self, result: &str, value: &'t Value) -> Backward<'p, 't> {
        Backward { call: self.call.value(&adjoint(result), value), ..self }
    }

    /// Gives the adjoint of the final value of an `inout` parameter; the view holds that of its initial value after the
    /// call.
    #[must_use]
    pub fn inout<T: Element, D: Dimension>(self, param: &str, view: ArrayViewMut<'t, T, D>) -> Backward<'p, 't> {
        Backward { call: self.call.inout(&adjoint(param), view), ..self }
    }

    /// Likewise, of any element type.
    #[must_use]
    pub fn inout_value(self, param: &str, value: &'t mut Value) -> Backward<'p, 't> {
        Backward { call: self.call.inout_value(&adjoint(param), value), ..self }
    }

    /// Threads of parallel loops; without it OpenMP decides.
    #[must_use]
    pub fn threads(self, n: u32) -> Backward<'p, 't> {
        Backward { call: self.call.threads(n), ..self }
    }

    /// Checks everything and runs: `x.grad` for every parameter x that was asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if the tape is that of another pair, or seeds do not fit; [`Error::Run`] if the program stops.
    pub fn run(self) -> Result<Outputs, Error> {
        if !self.ours {
            let d = Diagnostic::new("tape::pair", "this tape was left by the forward pass of another gradient")
                .help("run the backward pass of the pair that the forward pass is of");
            return Err(Error::Input(Report::without_sources(vec![d])));
        }
        self.call.run()
    }
}

/// The adjoint of `x` is `x.grad`.
fn adjoint(of: &str) -> String {
    format!("{of}.grad")
}
