//! Packing of structured parameters: converts values to the arrays of their formats, which C takes, or to the elements
//! that their formats store, which the interpreter takes; and builds results that share a parameter's pattern.

use crate::error::{Error, Report};
use crate::output::Output;
use taffeta_ast::format::Format;
use taffeta_ast::{Buffer, DType, Diagnostic, Literal, Value};
use taffeta_codegen::signature::{Passing, Signature, Storage, TensorSig};
use taffeta_structured::{Indices, Stored, Unpackable, arrays_of, check};

/// Packed parameters for a call of a lowered program.
#[derive(Clone, Debug)]
pub struct Packed {
    /// Values in order: for a structured parameter its index arrays, outermost level first, then its elements.
    pub values: Vec<Value>,
    /// Hidden sizes (numbers of positions), in the order in which they follow the program's own sizes in the lowered
    /// signature.
    pub hidden: Vec<i64>,
    /// Structured parameters whose pattern other tensors share, by position; `None` for all others.
    stored: Vec<Option<Stored>>,
    /// Elements as C returns them, for results that share the pattern of a parameter.
    pub(crate) elements: Vec<Option<Value>>,
}

impl Packed {
    /// Packs the parameters of a call for the lowered program with the signature `flat`. Those in `lent`, by position,
    /// are packed already.
    ///
    /// # Errors
    ///
    /// A value that its format cannot store.
    pub fn of(
        signature: &Signature,
        flat: &Signature,
        params: &[Value],
        lent: &[Option<Stored>],
    ) -> Result<Packed, Error> {
        let mut arrays = flat.params();
        let followed = |k: usize| signature.tensors.iter().any(|t| t.of == Some(k));
        let (values, hidden, elements) = (Vec::new(), Vec::new(), Vec::new());
        let mut packed = Packed { values, hidden, stored: Vec::new(), elements };
        for (k, (sig, value)) in signature.params().zip(params).enumerate() {
            let Some(storage) = &sig.storage else {
                packed.values.push(value.clone());
                packed.stored.push(None);
                arrays.next();
                continue;
            };
            if let Some(of) = sig.of.and_then(|k| packed.stored.get(k)?.as_ref()) {
                packed.values.extend(following(sig, storage, value, of)?.into_arrays().pop());
                packed.stored.push(None);
                arrays.next();
                continue;
            }
            let stored = match lent.get(k).cloned().flatten() {
                Some(stored) => stored,
                None => one(sig, storage, value)?,
            };
            packed.hidden.extend(stored.hidden());
            packed.stored.push(followed(k).then(|| stored.clone()));
            for (array, wanted) in stored.into_arrays().into_iter().zip(arrays.by_ref()) {
                packed.values.push(indices(sig, array, wanted.dtype)?);
            }
        }
        Ok(packed)
    }

    /// Converts the results of a call, which the arrays that the program has made follow. Elements of results that
    /// share a parameter's pattern are retained.
    ///
    /// # Errors
    ///
    /// Results over a parameter's pattern whose elements do not fit in memory.
    pub(crate) fn results(
        &mut self,
        signature: &Signature,
        mut given: Vec<Value>,
        sizes: &[i64],
    ) -> Result<Vec<Output>, Error> {
        self.elements.clear();
        let mut results = Vec::new();
        let mut arrays = given.split_off(signature.results().filter(|sig| !is_made(sig)).count()).into_iter();
        let mut given = given.into_iter();
        for sig in signature.results() {
            if is_made(sig) {
                self.elements.push(None);
                results.push(made(sig, sizes, &mut arrays)?.into());
                continue;
            }
            let Some(value) = given.next() else { unreachable!("C returns all results") };
            let following = self.following(sig, &value)?;
            self.elements.push(following.is_some().then(|| value.clone()));
            results.push(following.unwrap_or(value).into());
        }
        Ok(results)
    }

    /// Updates the results after another call with the same arrays.
    ///
    /// # Errors
    ///
    /// Results whose elements do not fit in memory.
    pub(crate) fn take_back(&self, signature: &Signature, results: &mut [Value]) -> Result<(), Error> {
        for ((sig, elements), result) in signature.results().zip(&self.elements).zip(results) {
            if let Some(elements) = elements
                && let Some(new) = self.following(sig, elements)?
            {
                *result = new;
            }
        }
        Ok(())
    }

    /// Builds a result from its elements if it shares the pattern of a parameter; `None` for other results.
    fn following(&self, sig: &TensorSig, elements: &Value) -> Result<Option<Value>, Error> {
        let of = sig.of.and_then(|of| self.stored.get(of)?.clone());
        of.map(|of| followed(sig, of, elements)).transpose()
    }

    /// Returns the sizes by name: the program's own, as far as given, and the hidden ones.
    pub fn sizes<'s>(&self, flat: &'s Signature, own: &[i64]) -> Vec<(&'s str, i64)> {
        sizes(flat, own, &self.hidden)
    }
}

/// Pairs the sizes of a lowered program with their names: its own, as far as given, and the hidden ones.
pub(crate) fn sizes<'s>(flat: &'s Signature, own: &[i64], hidden: &[i64]) -> Vec<(&'s str, i64)> {
    let (first, last) = flat.sizes.split_at(flat.sizes.len() - hidden.len());
    let named = first.iter().zip(own).chain(last.iter().zip(hidden));
    named.map(|(s, v)| (s.name.as_str(), *v)).collect()
}

/// Builds a result that shares the pattern of a parameter from its elements.
///
/// # Errors
///
/// Insufficient memory for all elements: one stored value may stand for any number of elements.
pub(crate) fn followed(sig: &TensorSig, of: Stored, elements: &Value) -> Result<Value, Error> {
    let format = sig.storage.as_ref().map_or_else(|| Format::dense(sig.shape.len()), |s| s.format(sig.dtype));
    of.followed_by(format, elements.clone()).try_elements().map_err(|why| {
        let d = Diagnostic::new("run::memory", format!("result `{}`: {why}", sig.name));
        Error::Run(Report::without_sources(vec![d]))
    })
}

/// Returns whether the program makes the arrays of a result: it has a pattern of its own.
pub(crate) fn is_made(sig: &TensorSig) -> bool {
    sig.passing == Passing::Result && sig.storage.is_some() && sig.of.is_none()
}

/// Builds a result from the next ones of the arrays that the program has made.
pub(crate) fn made(sig: &TensorSig, sizes: &[i64], arrays: &mut dyn Iterator<Item = Value>) -> Result<Stored, Error> {
    let wrong = |what: String| {
        let d = Diagnostic::new("internal::result", format!("result `{}`: {what}", sig.name));
        Error::Run(Report::without_sources(vec![d.help("this is a mistake in Taffeta, not in your program")]))
    };
    let Some(storage) = &sig.storage else { unreachable!("the program makes structured results") };
    let format = storage.format(sig.dtype);
    let shape = sig.shape(sizes).ok_or_else(|| wrong("its shape is not known".into()))?;
    let count = arrays_of(&format).map_or(0, |all| all.into_iter().sum::<usize>());
    let all: Vec<Value> = arrays.take(count + 1).collect();
    let Some((elements, lists)) = all.split_last() else { return Err(wrong("it has no arrays".into())) };
    let lists = lists.iter().map(|list| Indices::of(list.data())).collect::<Option<Vec<_>>>();
    let lists = lists.ok_or_else(|| wrong("an index array has another type".into()))?;
    let hidden = check(&sig.name, &shape, &format, &lists, elements.data().len());
    let hidden = hidden.map_err(|why| wrong(why.to_string()))?;
    Ok(Stored::of_arrays(shape, format, all, hidden))
}

/// Stores the elements of a result in the arrays of its format if the program makes these. A format whose regions need
/// more memory than there is leaves the elements.
pub(crate) fn assembled(sig: &TensorSig, elements: Value) -> Output {
    let format = sig.storage.as_ref().filter(|_| is_made(sig)).map(|s| s.format(sig.dtype));
    let (Some(format), Some(places)) = (format, elements.places()) else { return elements.into() };
    match Stored::pack(elements.shape(), &format, &places.indices, elements.data()) {
        Ok(stored) => stored.into(),
        Err(_) => elements.into(),
    }
}

fn refused(sig: &TensorSig, why: &Unpackable) -> Error {
    let code =
        if matches!(why, Unpackable::Memory(_) | Unpackable::Size(_)) { "data::too_large" } else { "data::storage" };
    let d = Diagnostic::new(code, format!("parameter `{}`: {why}", sig.name));
    let d = match why {
        Unpackable::Index(index) if *index != DType::I64 => d.help("give the level larger indices: `index=i64`"),
        _ => d,
    };
    Error::Input(Report::without_sources(vec![d]))
}

/// Converts an index array to the type that the program was compiled for, if its level specifies none.
fn indices(sig: &TensorSig, array: Value, wanted: DType) -> Result<Value, Error> {
    if array.dtype() == wanted {
        return Ok(array);
    }
    let wide = match array.data() {
        Buffer::I32(v) if wanted == DType::I64 => Buffer::I64(v.iter().copied().map(i64::from).collect()),
        _ => return Err(refused(sig, &Unpackable::Index(wanted))),
    };
    array.with_data(wide).ok_or_else(|| refused(sig, &Unpackable::Shape))
}

/// Converts parameters for the interpreter: structured ones to all elements that their formats store.
///
/// # Errors
///
/// A value that its format cannot store.
pub fn stored(signature: &Signature, params: &[Value]) -> Result<Vec<Value>, Error> {
    let elements = |(sig, value): (&TensorSig, &Value)| match &sig.storage {
        Some(storage) => {
            if let Some((of, its)) = sig.of.and_then(|k| signature.params().zip(params).nth(k)) {
                let of = one(of, of.storage.as_ref().unwrap_or(storage), its)?;
                return following(sig, storage, value, &of)?.try_elements().map_err(|why| refused(sig, &why));
            }
            let stored = one(sig, storage, value)?;
            // Formats without stored regions store exactly the given elements.
            if storage.levels.last().is_some_and(|l| !l.kind.stores_regions()) {
                return Ok(sparse(sig, value));
            }
            stored.try_elements().map_err(|why| refused(sig, &why))
        }
        None => Ok(value.clone()),
    };
    signature.params().zip(params).map(elements).collect()
}

/// Returns the arrays of a structured parameter in the types that C expects, and its hidden sizes.
pub(crate) fn arrays(
    sig: &TensorSig,
    storage: &Storage,
    value: &Value,
    wanted: &[(&str, DType)],
) -> Result<(Vec<Value>, Vec<i64>), Error> {
    let stored = one(sig, storage, value)?;
    let hidden = stored.hidden().to_vec();
    let typed = stored.into_arrays().into_iter().zip(wanted).map(|(array, (_, dtype))| indices(sig, array, *dtype));
    Ok((typed.collect::<Result<_, Error>>()?, hidden))
}

/// Returns all elements that a structured parameter stores; `None` if the value does not fit its format.
pub(crate) fn elements(sig: &TensorSig, value: &Value) -> Option<Value> {
    one(sig, sig.storage.as_ref()?, value).ok()?.try_elements().ok()
}

/// Packs a structured parameter in its format.
fn one(sig: &TensorSig, storage: &Storage, value: &Value) -> Result<Stored, Error> {
    let sparse = sparse(sig, value);
    let places = sparse.places().unwrap_or_else(|| unreachable!("the value is sparse"));
    let format = storage.format(sig.dtype);
    Stored::pack(value.shape(), &format, &places.indices, sparse.data()).map_err(|why| refused(sig, &why))
}

/// Packs a structured parameter that shares the pattern of another.
pub(crate) fn following(sig: &TensorSig, storage: &Storage, value: &Value, of: &Stored) -> Result<Stored, Error> {
    let format = storage.format(sig.dtype);
    let fill = format.fill.unwrap_or(Literal::zero(sig.dtype));
    let elements = match value.places() {
        Some(_) => value.clone(),
        None => value.only(fill, |k| differs(value.data().get(k), fill)),
    };
    of.followed_by_elements(format, &elements).map_err(|why| refused(sig, &why))
}

/// Converts the value of a structured parameter to a sparse one with the fill of its format: a dense value keeps the
/// elements that differ from the fill (NaN always does), or all elements if every level is full.
fn sparse(sig: &TensorSig, value: &Value) -> Value {
    let Some(storage) = &sig.storage else { return value.clone() };
    let format = storage.format(sig.dtype);
    let fill = format.fill.unwrap_or(Literal::zero(sig.dtype));
    if value.places().is_some() {
        return value.clone().with_fill(fill);
    }
    let whole = format.levels.iter().all(|l| l.kind.facts().full);
    value.only(fill, |k| whole || differs(value.data().get(k), fill))
}

/// Returns whether two elements differ; NaN differs from everything.
fn differs(a: Literal, b: Literal) -> bool {
    match (a, b) {
        (Literal::Float(a), Literal::Float(b)) => a != b,
        (a, b) => a != b,
    }
}
