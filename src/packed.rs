//! Structured parameters on their way to C: the arrays that their formats consist of.

use crate::error::{Error, Report};
use taffeta_ast::format::Format;
use taffeta_ast::{Buffer, DType, Diagnostic, Literal, Value};
use taffeta_codegen::signature::{Signature, Storage, TensorSig};
use taffeta_structured::{Stored, Unpackable};

/// The parameters of a lowered program.
#[derive(Clone, Debug)]
pub struct Packed {
    /// In order: of a structured parameter its arrays, outermost level first, and its elements.
    pub values: Vec<Value>,
    /// Numbers of positions, in the order of the lowered program's sizes after the program's own.
    pub hidden: Vec<i64>,
    /// Structured parameters.
    stored: Vec<Option<Stored>>,
    /// Of results that are stored where parameters are, what C gives: their elements.
    pub(crate) elements: Vec<Option<Value>>,
}

impl Packed {
    /// Packs the parameters of a call, for the lowered program with the signature `flat`.
    ///
    /// # Errors
    ///
    /// What a format cannot hold.
    pub fn of(signature: &Signature, flat: &Signature, params: &[Value]) -> Result<Packed, Error> {
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
            let stored = one(sig, storage, value)?;
            packed.hidden.extend(stored.hidden());
            packed.stored.push(followed(k).then(|| stored.clone()));
            for (array, wanted) in stored.into_arrays().into_iter().zip(arrays.by_ref()) {
                packed.values.push(indices(sig, array, wanted.dtype)?);
            }
        }
        Ok(packed)
    }

    /// The results of a call; of those that are stored where parameters are, what C gave stays here.
    ///
    /// # Errors
    ///
    /// Results whose elements do not fit in memory.
    pub(crate) fn results(&mut self, signature: &Signature, given: Vec<Value>) -> Result<Vec<Value>, Error> {
        self.elements.clear();
        let mut results = Vec::new();
        for (sig, value) in signature.results().zip(given) {
            let following = self.following(sig, &value)?;
            self.elements.push(following.is_some().then(|| value.clone()));
            results.push(following.unwrap_or(value));
        }
        Ok(results)
    }

    /// The results of another call with these arrays.
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

    fn following(&self, sig: &TensorSig, elements: &Value) -> Result<Option<Value>, Error> {
        let of = sig.of.and_then(|of| self.stored.get(of)?.clone());
        of.map(|of| followed(sig, of, elements)).transpose()
    }

    /// Its sizes by name: the program's own, as far as they are given, and the hidden ones.
    pub fn sizes<'s>(&self, flat: &'s Signature, own: &[i64]) -> Vec<(&'s str, i64)> {
        sizes(flat, own, &self.hidden)
    }
}

/// The sizes of a lowered program by name: the program's own, as far as they are given, and the hidden ones.
pub(crate) fn sizes<'s>(flat: &'s Signature, own: &[i64], hidden: &[i64]) -> Vec<(&'s str, i64)> {
    let (first, last) = flat.sizes.split_at(flat.sizes.len() - hidden.len());
    let named = first.iter().zip(own).chain(last.iter().zip(hidden));
    named.map(|(s, v)| (s.name.as_str(), *v)).collect()
}

/// A result with these elements that is stored where a parameter is.
///
/// # Errors
///
/// The memory is too small for all of them: one value that is stored may stand for any number of elements.
pub(crate) fn followed(sig: &TensorSig, of: Stored, elements: &Value) -> Result<Value, Error> {
    let format = sig.storage.as_ref().map_or_else(|| Format::dense(sig.shape.len()), |s| s.format(sig.dtype));
    of.followed_by(format, elements.clone()).try_elements().map_err(|why| {
        let d = Diagnostic::new("run::memory", format!("result `{}`: {why}", sig.name));
        Error::Run(Report::without_sources(vec![d]))
    })
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

/// An array of indices in the type in which the program was compiled to take it, where its level says none.
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

/// Parameters as the interpreter takes them: of structured ones all elements that their formats store.
///
/// # Errors
///
/// What a format cannot hold.
pub fn stored(signature: &Signature, params: &[Value]) -> Result<Vec<Value>, Error> {
    let elements = |(sig, value): (&TensorSig, &Value)| match &sig.storage {
        Some(storage) => {
            if let Some((of, its)) = sig.of.and_then(|k| signature.params().zip(params).nth(k)) {
                let of = one(of, of.storage.as_ref().unwrap_or(storage), its)?;
                return following(sig, storage, value, &of)?.try_elements().map_err(|why| refused(sig, &why));
            }
            let stored = one(sig, storage, value)?;
            // Of what other levels store each element was given.
            if storage.levels.last().is_some_and(|l| !l.kind.stores_regions()) {
                return Ok(sparse(sig, value));
            }
            stored.try_elements().map_err(|why| refused(sig, &why))
        }
        None => Ok(value.clone()),
    };
    signature.params().zip(params).map(elements).collect()
}

/// The arrays of a structured parameter in the types in which C takes them, and the numbers that they say.
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

/// All elements that a structured parameter stores; `None` where it does not fit its format.
pub(crate) fn elements(sig: &TensorSig, value: &Value) -> Option<Value> {
    one(sig, sig.storage.as_ref()?, value).ok()?.try_elements().ok()
}

/// A structured parameter in its format.
fn one(sig: &TensorSig, storage: &Storage, value: &Value) -> Result<Stored, Error> {
    let sparse = sparse(sig, value);
    let places = sparse.places().unwrap_or_else(|| unreachable!("it was made so"));
    let format = storage.format(sig.dtype);
    Stored::pack(value.shape(), &format, &places.indices, sparse.data()).map_err(|why| refused(sig, &why))
}

/// A structured parameter that is stored where another one is.
pub(crate) fn following(sig: &TensorSig, storage: &Storage, value: &Value, of: &Stored) -> Result<Stored, Error> {
    let format = storage.format(sig.dtype);
    let fill = format.fill.unwrap_or(Literal::zero(sig.dtype));
    let elements = match value.places() {
        Some(_) => value.clone(),
        None => value.only(fill, |k| differs(value.data().get(k), fill)),
    };
    of.followed_by_elements(format, &elements).map_err(|why| refused(sig, &why))
}

/// A value of a structured parameter as what is stored of it, with the fill of its format: of a dense one, what differs
/// from the fill (NaN from everything), or all of it where the format stores whole regions.
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

/// Whether two elements differ; NaN does from everything.
fn differs(a: Literal, b: Literal) -> bool {
    match (a, b) {
        (Literal::Float(a), Literal::Float(b)) => a != b,
        (a, b) => a != b,
    }
}
