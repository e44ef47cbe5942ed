//! Calls with `ndarray` arrays: collects arguments by name, checks them against the signature, solves the sizes and
//! packs structured arguments. C then runs on the arrays in place, the interpreter on copies. [`Outputs`] holds the
//! results.

use crate::array::{self, Argument, ArgumentMut, Element};
use crate::bind::Sizes;
use crate::error::{Error, Report};
use crate::function::Function;
use crate::inputs;
use crate::locate::{self, Fault};
use crate::output::Output;
use crate::packed;
use crate::sparse::{self, Index, Sparse, Structured};
use ndarray::{ArrayD, ArrayView, ArrayViewMut, Dimension};
use std::collections::BTreeMap;
use taffeta_ast::format::{Format, Named};
use taffeta_ast::{DType, Diagnostic, Value};
use taffeta_codegen::call::Arg;
use taffeta_codegen::signature::{Passing, Signature, TensorSig};
use taffeta_structured::Stored;

/// Builder of a call: arguments by name, then [`Call::run`].
///
/// ```
/// use ndarray::{arr1, arr2};
/// use taffeta::{Options, Program};
/// let program = Program::from_source("p.ft", "
/// def step(w: inout[f32[n]], g: f32[m, n], rate: f32):
///     for i in range(m):
///         for j in range(n):
///             w[j] -= rate * g[i, j]
/// ")?;
/// let step = program.compile("step", &Options::default())?;
/// let mut w = arr1(&[1.0f32, 2.0]);
/// let g = arr2(&[[1.0f32, 0.0, 2.0], [0.0, 1.0, 2.0]]);
/// // Any layout will do: here the transpose of a part of an array.
/// step.call().inout("w", w.view_mut()).input("g", g.slice(ndarray::s![.., ..2]).t()).scalar("rate", 0.5f32).run()?;
/// assert_eq!(w, arr1(&[0.5, 1.5]));
/// # Ok::<(), taffeta::Error>(())
/// ```
pub struct Call<'f, 'a> {
    function: &'f Function,
    inputs: Vec<(String, Argument<'a>)>,
    /// Sparse values.
    sparse: Vec<(String, &'a Value)>,
    /// Structured tensors as borrowed arrays.
    lent: Vec<(String, &'a Sparse<'a>)>,
    inouts: Vec<(String, ArgumentMut<'a>)>,
    sizes: Vec<(String, i64)>,
    threads: u32,
}

impl<'f, 'a> Call<'f, 'a> {
    pub(crate) fn new(function: &'f Function) -> Call<'f, 'a> {
        let (inputs, sparse, lent) = (Vec::new(), Vec::new(), Vec::new());
        Call { function, inputs, sparse, lent, inouts: Vec::new(), sizes: Vec::new(), threads: 0 }
    }

    /// Passes an input. The elements are copied only if the view is not row-major and contiguous.
    #[must_use]
    pub fn input<T: Element, D: Dimension>(mut self, name: &str, view: ArrayView<'a, T, D>) -> Call<'f, 'a> {
        self.inputs.push((name.to_string(), array::argument(view)));
        self
    }

    /// Passes a scalar input.
    #[must_use]
    pub fn scalar<T: Element>(mut self, name: &str, value: T) -> Call<'f, 'a> {
        self.inputs.push((name.to_string(), T::argument(ndarray::CowArray::from(ndarray::arr0(value).into_dyn()))));
        self
    }

    /// Passes a value of any element type, as [`crate::inputs`] reads it; a structured parameter also takes a sparse
    /// value.
    #[must_use]
    pub fn value(mut self, name: &str, value: &'a Value) -> Call<'f, 'a> {
        match value.places() {
            None => self.inputs.push((name.to_string(), value.into())),
            Some(_) => self.sparse.push((name.to_string(), value)),
        }
        self
    }

    /// Passes a structured parameter as borrowed arrays, without a copy.
    #[must_use]
    pub fn sparse(mut self, name: &str, tensor: &'a Sparse<'a>) -> Call<'f, 'a> {
        self.lent.push((name.to_string(), tensor));
        self
    }

    /// Passes an `inout` parameter of any element type.
    #[must_use]
    pub fn inout_value(mut self, name: &str, value: &'a mut Value) -> Call<'f, 'a> {
        self.inouts.push((name.to_string(), value.into()));
        self
    }

    /// Passes a converted argument.
    pub(crate) fn argument(mut self, name: &str, argument: Argument<'a>) -> Call<'f, 'a> {
        self.inputs.push((name.to_string(), argument));
        self
    }

    /// Passes a converted argument of an `inout` parameter.
    pub(crate) fn argument_mut(mut self, name: &str, argument: ArgumentMut<'a>) -> Call<'f, 'a> {
        self.inouts.push((name.to_string(), argument));
        self
    }

    /// Passes an `inout` parameter; the view holds its final value after the call. The elements are copied there and
    /// back only if the view is not row-major and contiguous. If the program stops, the contents are unspecified.
    #[must_use]
    pub fn inout<T: Element, D: Dimension>(mut self, name: &str, view: ArrayViewMut<'a, T, D>) -> Call<'f, 'a> {
        self.inouts.push((name.to_string(), array::argument_mut(view)));
        self
    }

    /// Sets a size that no parameter determines.
    #[must_use]
    pub fn size(mut self, name: &str, value: i64) -> Call<'f, 'a> {
        self.sizes.push((name.to_string(), value));
        self
    }

    /// Sets the number of threads of parallel loops; by default OpenMP decides.
    #[must_use]
    pub fn threads(mut self, n: u32) -> Call<'f, 'a> {
        self.threads = n;
        self
    }

    /// Checks the arguments and runs the program.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if the arguments do not fit the signature, [`Error::Run`] if the program stops.
    pub fn run(self) -> Result<Outputs, Error> {
        Ok(self.run_with_sizes()?.0)
    }

    /// Runs the program as [`Call::run`] does, and also returns the values of all sizes.
    pub(crate) fn run_with_sizes(mut self) -> Result<(Outputs, Vec<i64>), Error> {
        let sources = self.function.sources().clone();
        let entry = &self.function.signature().name;
        let (sizes, shapes) = self.check().map_err(|faults| Error::Input(locate::report(faults, &sources, entry)))?;
        let names = self.function.signature().results().map(|r| r.name.clone());
        let results = match shapes {
            Some(shapes) if self.function.takes_arrays() => self.run_in_place(&sizes, shapes)?,
            _ => self.run_on_copies(&sizes)?,
        };
        Ok((Outputs { results: names.zip(results).collect() }, sizes))
    }

    /// Copies the current value of an argument.
    pub(crate) fn current(&self, name: &str) -> Option<Value> {
        let input = self.inputs.iter().find(|(n, _)| n == name).and_then(|(_, a)| a.to_value());
        let sparse = || self.sparse.iter().find(|(n, _)| n == name).map(|(_, v)| (*v).clone());
        let lent = || {
            let param = self.function.signature().params().find(|p| p.name == name)?;
            let (_, tensor) = self.lent.iter().find(|(n, _)| n == name)?;
            tensor.to_value(name, &param.storage.as_ref()?.format(param.dtype)).ok()
        };
        let inout = || self.inouts.iter().find(|(n, _)| n == name).and_then(|(_, a)| a.to_value());
        input.or_else(sparse).or_else(lent).or_else(inout)
    }

    /// Solves the sizes from the arguments given so far, by name; `None` if they conflict.
    pub(crate) fn known_sizes(&self) -> Option<BTreeMap<String, i64>> {
        let signature = self.function.signature();
        let mut sizes = Sizes::given(signature, &self.sizes).ok()?;
        let given = |name: &str| {
            let input = self.inputs.iter().find(|(n, _)| n == name).map(|(_, a)| a.shape().to_vec());
            let sparse = || self.sparse.iter().find(|(n, _)| n == name).map(|(_, v)| v.shape().to_vec());
            let lent = || self.lent.iter().find(|(n, _)| n == name).map(|(_, a)| a.shape().to_vec());
            let inout = || self.inouts.iter().find(|(n, _)| n == name).map(|(_, a)| a.shape().to_vec());
            input.or_else(sparse).or_else(lent).or_else(inout)
        };
        let shapes: Vec<Option<Vec<usize>>> = signature.params().map(|p| given(&p.name)).collect();
        sizes.unify(signature, &shapes).ok()?;
        Some(sizes.known(signature).collect())
    }

    /// Calls C on the arrays in place.
    fn run_in_place(&mut self, sizes: &[i64], shapes: Vec<Vec<usize>>) -> Result<Vec<Output>, Error> {
        let signature = self.function.signature();
        let mut copies: Vec<Option<Value>> =
            self.inouts.iter().map(|(_, a)| if a.in_place() { None } else { a.to_value() }).collect();

        let mut structured: Vec<Option<Structured<'_>>> = Vec::new();
        for p in signature.params() {
            let own = match p.of.and_then(|k| structured[k].as_ref()?.tensor(&signature.tensors[k], sizes)) {
                Some(of) => self.following(p, &of)?,
                None => self.structured(p)?,
            };
            structured.push(own);
        }
        let hidden: Vec<i64> = structured.iter().flatten().flat_map(Structured::hidden).collect();
        // A result that shares a parameter's pattern has as many elements as the parameter stores.
        let of = |t: &TensorSig| t.of.and_then(|k| structured[k].as_ref());
        let shape = |t: &TensorSig, shape: Vec<usize>| of(t).map_or(shape, |of| vec![of.stored()]);
        let given = signature.results().zip(shapes).filter(|(t, _)| !packed::is_made(t));
        let results = given.filter_map(|(t, s)| Value::zeros(t.dtype, shape(t, s)));
        let mut results: Vec<Value> = results.collect();

        let mut args: Vec<(usize, Arg<'_>)> = Vec::new();
        for (k, own) in structured.iter().enumerate() {
            args.extend(own.iter().flat_map(Structured::args).map(|a| (k, a)));
        }
        for (name, argument) in &self.inputs {
            let dense = position(signature, name).filter(|k| structured[*k].is_none());
            args.extend(dense.zip(argument.as_arg()));
        }
        for ((name, argument), copy) in self.inouts.iter_mut().zip(&mut copies) {
            let arg = match copy {
                Some(copy) => Some(Arg::from(copy)),
                None => argument.as_arg(),
            };
            args.extend(position(signature, name).zip(arg));
        }
        args.sort_by_key(|(k, _)| *k);
        let mut args: Vec<Arg<'_>> =
            args.into_iter().map(|(_, a)| a).chain(results.iter_mut().map(Arg::from)).collect();
        let made = self.function.enter_arrays(&mut args, sizes, &hidden, self.threads)?;
        drop(args);

        for ((_, argument), copy) in self.inouts.iter_mut().zip(&copies) {
            if let Some(copy) = copy {
                argument.assign(copy);
            }
        }
        let logical = |(t, value): (&TensorSig, Value)| match t.of.zip(of(t)) {
            Some((k, of)) => of.followed(&signature.tensors[k], t, sizes, value),
            None => Ok(value),
        };
        let (mut results, mut made) = (results.into_iter(), made.into_iter());
        let one = |t: &TensorSig| match packed::is_made(t) {
            true => Ok(packed::made(t, sizes, &mut made)?.into()),
            false => {
                let value = results.next().unwrap_or_else(|| unreachable!("each result has a value"));
                Ok(logical((t, value))?.into())
            }
        };
        signature.results().map(one).collect()
    }

    /// Returns the arrays of a structured parameter, borrowed or packed from its value; `None` for a dense parameter.
    fn structured(&self, param: &TensorSig) -> Result<Option<Structured<'a>>, Error> {
        let Some(storage) = &param.storage else { return Ok(None) };
        match self.lent.iter().find(|(n, _)| *n == param.name) {
            Some((_, tensor)) => match tensor.checked(&param.name, &storage.format(param.dtype)) {
                Ok(hidden) => Ok(Some(Structured::Lent(tensor, hidden))),
                Err(why) => Err(Error::Input(Report::without_sources(vec![sparse::refused(param, &why)]))),
            },
            None => {
                let Some(value) = self.current(&param.name) else { return Ok(None) };
                let wanted = self.function.arrays_of(param).unwrap_or_default();
                Ok(Some(Structured::Packed(packed::arrays(param, storage, &value, &wanted)?)))
            }
        }
    }

    /// Packs the elements of a structured parameter that shares the pattern of `of`.
    fn following(&self, param: &TensorSig, of: &Stored) -> Result<Option<Structured<'a>>, Error> {
        let (Some(storage), Some(value)) = (&param.storage, self.current(&param.name)) else { return Ok(None) };
        let elements = packed::following(param, storage, &value, of)?.into_arrays().pop();
        Ok(Some(Structured::Packed((elements.into_iter().collect(), Vec::new()))))
    }

    /// Runs on copies of all arguments, as the interpreter requires.
    fn run_on_copies(&mut self, sizes: &[i64]) -> Result<Vec<Output>, Error> {
        let signature = self.function.signature();
        let (mut values, mut packed) = (Vec::new(), Vec::new());
        for p in signature.params() {
            let lent = self.lent.iter().find(|(n, _)| *n == p.name).zip(p.storage.as_ref());
            let Some(((_, tensor), storage)) = lent else {
                values.extend(self.current(&p.name));
                packed.push(None);
                continue;
            };
            let format = storage.format(p.dtype);
            let refused = |why| Error::Input(Report::without_sources(vec![sparse::refused(p, &why)]));
            // C takes the arrays as they are.
            let own = match self.function.is_compiled() {
                true => Some(tensor.to_stored(&p.name, &format).map_err(refused)?),
                false => None,
            };
            values.push(match &own {
                Some(_) => tensor.without_elements(&format),
                None => tensor.to_value(&p.name, &format).map_err(refused)?,
            });
            packed.push(own);
        }
        let (ran, outputs) = self.function.run_lent(values, &packed, sizes, self.threads)?;
        for (p, value) in signature.params().zip(&ran.params) {
            if let Some((_, argument)) = self.inouts.iter_mut().find(|(n, _)| *n == p.name) {
                argument.assign(value);
            }
        }
        Ok(outputs)
    }

    /// Checks the arguments and returns the sizes, and the shapes of the results if they are known before the call.
    #[allow(clippy::type_complexity)] // destructured at the only call
    fn check(&self) -> Result<(Vec<i64>, Option<Vec<Vec<usize>>>), Vec<Fault>> {
        let all = |found: Vec<Diagnostic>| found.into_iter().map(Fault::from).collect::<Vec<_>>();
        let signature = self.function.signature();
        let params: Vec<&TensorSig> = signature.params().collect();
        let inputs = self.inputs.iter().map(|(n, a)| (n, a.dtype(), a.shape(), false));
        let inouts = self.inouts.iter().map(|(n, a)| (n, a.dtype(), a.shape(), true));
        let sparse = self.sparse.iter().map(|(n, v)| (n, v.dtype(), v.shape(), false));
        let lent = self.lent.iter().map(|(n, a)| (n, a.dtype(), a.shape(), false));
        let given: Vec<(&String, DType, &[usize], bool)> = inputs.chain(sparse).chain(lent).chain(inouts).collect();
        let mut errors = Vec::new();
        let dense = |name: &str| params.iter().any(|p| p.name == name && p.storage.is_none());
        let names = self.sparse.iter().map(|(n, _)| n).chain(self.lent.iter().map(|(n, _)| n));
        for name in names.filter(|n| dense(n)) {
            let text = format!("parameter `{name}` is dense, but its value is sparse");
            errors.push(Diagnostic::new("data::storage", text));
        }
        for (name, _) in &self.lent {
            let of = params.iter().find(|p| p.name == *name).and_then(|p| p.of);
            if let Some(of) = of.and_then(|k| params.get(k)) {
                let text = format!("parameter `{name}` shares the index arrays of `{}`, and takes no others", of.name);
                errors.push(Diagnostic::new("data::storage", text).help("give a sparse or a dense value instead"));
            }
        }
        for (name, ..) in &given {
            if !params.iter().any(|p| p.name == **name) {
                errors.push(inputs::unknown_param(signature, &params, name));
            }
        }
        let mut shapes = Vec::new();
        for p in &params {
            let mut same = given.iter().filter(|(n, ..)| **n == p.name);
            let Some((_, dtype, shape, written)) = same.next() else {
                errors.push(Diagnostic::new(
                    "input::missing",
                    format!("parameter `{}: {}` is missing", p.name, inputs::type_text(signature, p)),
                ));
                continue;
            };
            if same.next().is_some() {
                errors.push(Diagnostic::new("input::twice", format!("parameter `{}` is given twice", p.name)));
            }
            if *dtype != p.dtype {
                errors.push(Diagnostic::new(
                    "data::dtype",
                    format!("parameter `{}` is {}, but the array holds {dtype}", p.name, p.dtype),
                ));
            }
            match (p.passing == Passing::InOut, written) {
                (true, false) => errors.push(Diagnostic::new(
                    "input::inout",
                    format!("parameter `{}` is written: give it with `inout`", p.name),
                )),
                (false, true) => errors.push(Diagnostic::new(
                    "input::inout",
                    format!("parameter `{}` is only read: give it with `input`", p.name),
                )),
                _ => {}
            }
            shapes.push(Some(shape.to_vec()));
        }
        if !errors.is_empty() {
            return Err(all(errors));
        }
        let mut sizes = Sizes::given(signature, &self.sizes).map_err(all)?;
        sizes.unify(signature, &shapes)?;
        // Checked last, since it scans every stored index.
        let lent = |p: &&TensorSig| {
            self.lent.iter().find(|(n, _)| *n == p.name).and_then(|(_, a)| a.fault(p, self.function.arrays_of(p)))
        };
        let broken: Vec<Diagnostic> = params.iter().filter_map(lent).collect();
        if !broken.is_empty() {
            return Err(all(broken));
        }
        let sizes = sizes.complete(signature).map_err(|d| vec![d.into()])?;
        let results = inputs::result_shapes(signature, &sizes).map_err(all)?;
        Ok((sizes, results.into_iter().collect()))
    }
}

/// Returns the position of a parameter.
fn position(signature: &Signature, name: &str) -> Option<usize> {
    signature.params().position(|p| p.name == name)
}

/// Matrix by rows, as SciPy has it: row `i` has the elements `indptr[i] .. indptr[i + 1]`, in columns `indices`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Csr<'a, I, T> {
    /// Numbers of rows and columns.
    pub shape: [usize; 2],
    /// First element of each row, and at last the number of elements.
    pub indptr: &'a [I],
    /// Columns.
    pub indices: &'a [I],
    /// Elements.
    pub values: &'a [T],
}

/// Results of a call, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    results: Vec<(String, Output)>,
}

impl Outputs {
    /// Splits off the results from position `k` on.
    pub(crate) fn split_off(&mut self, k: usize) -> Vec<(String, Output)> {
        self.results.split_off(k)
    }

    /// Returns the result at position `k`.
    pub(crate) fn at(&self, k: usize) -> Option<&Value> {
        self.results.get(k)?.1.value().ok()
    }

    /// Returns the names of the results, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.results.iter().map(|(n, _)| n.as_str())
    }

    /// Returns a result as a value.
    ///
    /// # Errors
    ///
    /// An unknown result name, or a lack of memory for the elements of a tensor that the program made.
    pub fn value(&self, name: &str) -> Result<&Value, Error> {
        self.output(name)?.value()
    }

    fn output(&self, name: &str) -> Result<&Output, Error> {
        self.results.iter().find(|(n, _)| n == name).map(|(_, v)| v).ok_or_else(|| self.unknown(name))
    }

    /// Returns the arrays of a structured result that the program made, without a copy. [`Sparse::of`] passes them on.
    ///
    /// # Errors
    ///
    /// An unknown result name, or a result without arrays of its own: it is dense, or has the pattern of a parameter.
    pub fn stored(&self, name: &str) -> Result<&Stored, Error> {
        self.output(name)?.stored().ok_or_else(|| {
            let text = format!("result `{name}` has no arrays of its own");
            let help = "`Outputs::value` has its elements";
            Error::Input(Report::without_sources(vec![Diagnostic::new("output::dtype", text).help(help)]))
        })
    }

    /// Returns the arrays of a structured result, as [`Outputs::stored`] does, and drops all other results.
    ///
    /// # Errors
    ///
    /// Those of [`Outputs::stored`].
    pub fn into_stored(mut self, name: &str) -> Result<Stored, Error> {
        self.stored(name)?;
        let at = self.results.iter().position(|(n, _)| n == name);
        let stored = at.and_then(|at| self.results.swap_remove(at).1.into_stored());
        stored.ok_or_else(|| self.unknown(name))
    }

    /// Returns a result in `csr` that the program made, without a copy.
    ///
    /// ```
    /// use ndarray::arr2;
    /// use taffeta::{Options, Program};
    /// let program = Program::from_source("p.ft", "
    /// def positive(x: f64[n, m]) -> f64[n, m] @ csr:
    ///     y = zeros((n, m), f64)
    ///     for i in range(n):
    ///         for j in range(m):
    ///             if x[i, j] > 0.0:
    ///                 y[i, j] = x[i, j]
    ///     return y
    /// ")?;
    /// let positive = program.compile("positive", &Options::default())?;
    /// let x = arr2(&[[1.0, -1.0, 2.0], [-1.0, -1.0, 3.0]]);
    /// let y = positive.call().input("x", x.view()).run()?;
    /// let csr = y.csr::<i32, f64>("y")?;
    /// assert_eq!((csr.indptr, csr.indices, csr.values), (&[0, 2, 3][..], &[0, 2, 2][..], &[1.0, 2.0, 3.0][..]));
    /// # Ok::<(), taffeta::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Outputs::stored`], another format, or other types of indices (i32, or those of the level) or
    /// elements.
    pub fn csr<I: Index, T: Element>(&self, name: &str) -> Result<Csr<'_, I, T>, Error> {
        let stored = self.stored(name)?;
        let csr = Named::Csr.format(2);
        let own = stored.format();
        let is_csr = csr.is_some_and(|csr| {
            let kinds = |f: &Format| f.levels.iter().map(|l| (l.kind, l.unique)).collect::<Vec<_>>();
            kinds(&csr) == kinds(own) && csr.coords == own.coords
        });
        let slices = match stored.arrays() {
            [pos, crd, values] if is_csr => I::slice(pos.data()).zip(I::slice(crd.data())).zip(T::slice(values.data())),
            _ => None,
        };
        let shape = [stored.shape().first(), stored.shape().get(1)].map(|n| n.copied().unwrap_or(0));
        slices.map(|((indptr, indices), values)| Csr { shape, indptr, indices, values }).ok_or_else(|| {
            let types: Vec<String> = stored.arrays().iter().map(|a| a.dtype().to_string()).collect();
            let text = format!("result `{name}` is in `{own}`, with arrays of types {}", types.join(", "));
            let text = format!("{text}; expected `csr` of {} with indices of {}", T::DTYPE, I::DTYPE);
            Error::Input(Report::without_sources(vec![Diagnostic::new("output::dtype", text)]))
        })
    }

    /// Returns a result as an array.
    ///
    /// # Errors
    ///
    /// An unknown result name, or another element type.
    pub fn array<T: Element>(&self, name: &str) -> Result<ArrayD<T>, Error> {
        let value = self.value(name)?;
        array::to_array(value.clone()).ok_or_else(|| wrong_type::<T>(name, value))
    }

    /// Returns a result without dimensions.
    ///
    /// # Errors
    ///
    /// An unknown result name, a result that is not a scalar, or another element type.
    pub fn scalar<T: Element>(&self, name: &str) -> Result<T, Error> {
        let value = self.value(name)?;
        match (T::slice(value.data()), value.shape()) {
            (Some([one]), []) => Ok(*one),
            _ => Err(wrong_type::<T>(name, value)),
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<&str> = self.names().collect();
        let d = Diagnostic::new("output::name", format!("there is no result `{name}`"));
        Error::Input(Report::without_sources(vec![match taffeta_ast::spelling::nearest(name, names.iter().copied()) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help(format!("the results are {}", names.join(", "))),
        }]))
    }
}

fn wrong_type<T: Element>(name: &str, value: &Value) -> Error {
    Error::Input(Report::without_sources(vec![Diagnostic::new(
        "output::dtype",
        format!("result `{name}` is {}{}, not {}", value.dtype(), crate::io::shape_text(value.shape()), T::DTYPE),
    )]))
}

#[cfg(test)]
mod tests {
    use crate::{Backend, Error, Function, Options, Program};
    use ndarray::{Array2, arr1, arr2, s};

    const PROGRAM: &str = "
def scale(x: f32[n, m], y: inout[f32[m, n]], a: f32) -> f64[k]:
    assert a > 0.0, \"a must be positive\"
    for i in range(n):
        for j in range(m):
            y[j, i] += a * x[i, j]
    t = zeros((k,), f64)
    for i in range(k):
        t[i] = i + n
    return t
";

    fn function(backend: Backend) -> Function {
        let program = Program::from_source("p.ft", PROGRAM).expect("it parses");
        program.compile("scale", &Options::default().optimize(false).backend(backend)).expect("it compiles")
    }

    #[test]
    fn results_do_not_depend_on_layout() {
        for f in [function(Backend::C), function(Backend::Interp)] {
            let x = arr2(&[[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
            let mut plain = Array2::<f32>::ones((3, 2));
            let out = f.call().input("x", x.view()).inout("y", plain.view_mut()).scalar("a", 2.0f32).size("k", 2).run();
            let out = out.expect("it runs");
            assert_eq!(out.array::<f64>("t").expect("f64"), arr1(&[2.0, 3.0]).into_dyn());
            assert_eq!(plain, arr2(&[[3.0, 9.0], [5.0, 11.0], [7.0, 13.0]]));
            // Every second column of a wider array, transposed; and a copy of x in Fortran order.
            let mut wide = Array2::<f32>::ones((2, 6));
            let fortran = x.t().as_standard_layout().into_owned();
            let y = wide.slice_mut(s![.., ..;2]).reversed_axes();
            f.call().input("x", fortran.t()).inout("y", y).scalar("a", 2.0f32).size("k", 0).run().expect("it runs");
            assert_eq!(wide.slice(s![.., ..;2]), plain.t());
            assert!(wide.slice(s![.., 1..;2]).iter().all(|v| *v == 1.0));
        }
    }

    #[test]
    fn mismatched_arguments_are_refused_before_the_run() {
        let f = function(Backend::C);
        let x = arr2(&[[1.0f32, 2.0]]);
        let mut y = Array2::<f32>::zeros((2, 1));
        let mut wrong = Array2::<f32>::zeros((1, 2));
        let message = |e: Error| match e {
            Error::Input(r) => r.diagnostics.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("; "),
            other => panic!("{other}"),
        };
        let e = f.call().input("x", x.view()).input("z", x.view()).run().unwrap_err();
        assert_eq!(
            message(e),
            "`scale` has no parameter `z`; parameter `y: inout[f32[m, n]]` is missing; parameter `a: f32` is missing"
        );
        let e = f.call().input("x", x.view()).input("y", y.view()).scalar("a", 1.0f64).size("k", 1).run().unwrap_err();
        assert_eq!(
            message(e),
            "parameter `y` is written: give it with `inout`; parameter `a` is f32, but the array holds f64"
        );
        let call = f.call().input("x", x.view()).inout("y", wrong.view_mut()).scalar("a", 1.0f32).size("k", 1);
        let e = message(call.run().unwrap_err());
        assert!(e.contains("parameter `y`, dimension 0: expected 2 (`m`), found 1"), "{e}");
        // A program from the cache is not parsed, and the fault points at the dimension all the same.
        let again = function(Backend::C);
        let call = again.call().input("x", x.view()).inout("y", wrong.view_mut()).scalar("a", 1.0f32).size("k", 1);
        match call.run().unwrap_err() {
            Error::Input(r) => assert_eq!(r.sources.line_col(r.diagnostics[0].span()).map(|at| at.column), Some(38)),
            other => panic!("{other}"),
        }
        let call = f.call().input("x", x.view()).inout("y", y.view_mut()).scalar("a", 1.0f32);
        assert_eq!(message(call.run().unwrap_err()), "no input fixes the size `k`");
        assert_eq!(y, Array2::<f32>::zeros((2, 1)));
    }

    #[test]
    fn results_may_have_names_of_parameters() {
        let program =
            Program::from_source("p.ft", "def f(x: f32[n], y: f32[n]):\n    return y, x\n").expect("it parses");
        let x = arr1(&[1.0f32, 2.0]);
        let y = arr1(&[3.0f32, 4.0]);
        for backend in [Backend::C, Backend::Interp] {
            let f = program.compile("f", &Options::default().optimize(false).backend(backend)).expect("it compiles");
            let out = f.call().input("x", x.view()).input("y", y.view()).run().expect("it runs");
            assert_eq!(out.array::<f32>("x").expect("f32"), x.clone().into_dyn());
            assert_eq!(out.array::<f32>("y").expect("f32"), y.clone().into_dyn());
        }
    }

    #[test]
    fn too_many_threads_are_refused() {
        let f = function(Backend::C);
        let x = arr2(&[[1.0f32]]);
        let mut y = x.clone();
        let call = f.call().input("x", x.view()).inout("y", y.view_mut()).scalar("a", 1.0f32).size("k", 1);
        match call.threads(crate::MAX_THREADS + 1).run().unwrap_err() {
            Error::Input(r) => assert_eq!(r.diagnostics[0].code, "input::threads"),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn errors_name_the_line() {
        for f in [function(Backend::C), function(Backend::Interp)] {
            let x = arr2(&[[1.0f32]]);
            let mut y = x.clone();
            let call = f.call().input("x", x.view()).inout("y", y.view_mut()).scalar("a", -1.0f32).size("k", 1);
            match call.run().unwrap_err() {
                Error::Run(r) => {
                    assert_eq!(r.diagnostics[0].code, "run::assert");
                    assert!(r.to_string().contains("a must be positive"), "{r}");
                    assert_eq!(r.sources.line_col(r.diagnostics[0].span()).map(|at| at.line), Some(3));
                }
                other => panic!("{other}"),
            }
        }
    }
}
