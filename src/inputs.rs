//! Textual inputs: reads the text of `--in NAME=…` for each parameter (a file, a literal or a generator) as a value of
//! the type in the signature, and solves the sizes.
//!
//! Resolves names first (suggesting corrections for misspelt ones and listing all missing ones at once), then files and
//! literals, then sizes over all of them, and finally generators, which need the sizes. All errors of one stage are
//! reported together. Reads files and modifies nothing; the program has not started.

use crate::bind::Sizes;
use crate::io::{self, Generator, Source, Want, memory, shape_text};
pub use crate::locate::Fault;
use crate::packed;
use std::collections::{BTreeMap, HashMap};
use taffeta_ast::{Diagnostic, Literal, Value};
use taffeta_codegen::signature::{Passing, Signature, TensorSig};

/// Complete arguments of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    /// Parameters, in order.
    pub values: Vec<Value>,
    /// Sizes, in the signature's order.
    pub sizes: Vec<i64>,
}

/// Reads all inputs of an entry. `given` holds pairs of name and text, `sizes` pairs of name and value.
pub fn read(signature: &Signature, given: &[(String, String)], sizes: &[(String, i64)]) -> Result<Inputs, Vec<Fault>> {
    let all = |found: Vec<Diagnostic>| found.into_iter().map(Fault::from).collect::<Vec<_>>();
    let params: Vec<&TensorSig> = signature.params().collect();
    let sources = sources(signature, &params, given).map_err(all)?;
    let mut bound = Sizes::given(signature, sizes).map_err(all)?;

    let all: Vec<Option<&Source>> = sources.iter().map(Some).collect();
    let mut values = read_files(signature, &params, &all, &mut bound)?;
    let mut errors: Vec<Fault> = Vec::new();
    let complete = bound.complete(signature).map_err(|d| vec![d.into()])?;
    let mut bytes = 0u128;
    for k in 0..params.len() {
        let (param, source) = (params[k], &sources[k]);
        let shape = bound.shape(param).ok_or_else(|| vec![no_shape(param, &bound)])?;
        let want = want(param, &bound);
        // A parameter with the pattern of an earlier one needs elements only.
        let of = param.of.and_then(|of| packed::elements(params[of], values[of].as_ref()?));
        if let (Source::Generator(generator), Some(of)) = (source, &of)
            && !generator.is_sparse()
        {
            match generate_on_pattern(generator, param, of) {
                Ok(v) => values[k] = Some(v),
                Err(d) => errors.push(d.into()),
            }
            continue;
        }
        let value = &mut values[k];
        if let Source::Generator(generator) = source
            && generator.is_sparse()
            && param.storage.is_some()
        {
            match generator.sparse(&want, &shape) {
                Ok(v) => *value = Some(v),
                Err(d) => errors.push(d.into()),
            }
            continue;
        }
        if let Source::Generator(generator) = source {
            bytes += memory::check_tensor(param.dtype, &shape, &format!("parameter `{}`", param.name))
                .map_err(|d| vec![d.into()])? as u128;
            // Several tensors may fit in memory alone and not together.
            memory::check_bytes(bytes, "the inputs").map_err(|d| vec![d.into()])?;
            match generator.generate(&want, &shape) {
                Ok(v) => *value = Some(v),
                Err(d) => errors.push(d.into()),
            }
        }
    }
    if errors.is_empty() {
        Ok(Inputs { values: values.into_iter().flatten().collect(), sizes: complete })
    } else {
        Err(errors)
    }
}

/// Generates elements for a parameter that shares the pattern of another; `of` holds the other's elements.
fn generate_on_pattern(generator: &Generator, param: &TensorSig, of: &Value) -> Result<Value, Diagnostic> {
    let count = of.data().len();
    let made = generator.generate(&Want::new(&param.name, param.dtype, 1), &[count])?;
    let mut data = made.data().clone();
    // Elements that share a stored value must be equal.
    if let Some(stored_as) = of.places().and_then(|p| p.stored_as.as_ref()) {
        let mut first: HashMap<i64, usize> = HashMap::new();
        for (k, stored) in stored_as.iter().enumerate() {
            let from = *first.entry(*stored).or_insert(k);
            data.set(k, made.data().get(from));
        }
    }
    let fill = param.storage.as_ref().and_then(|s| s.format(param.dtype).fill).unwrap_or(Literal::zero(param.dtype));
    Ok(of.clone().with_data(data).unwrap_or(made).with_fill(fill))
}

/// Reads files and literals, and solves sizes from their shapes. Files without a shape come last, and are read with the
/// shapes that follow from the others.
fn read_files(
    signature: &Signature,
    params: &[&TensorSig],
    sources: &[Option<&Source>],
    bound: &mut Sizes,
) -> Result<Vec<Option<Value>>, Vec<Fault>> {
    let mut values: Vec<Option<Value>> = vec![None; params.len()];
    for last in [false, true] {
        let mut errors: Vec<Fault> = Vec::new();
        for ((param, source), value) in params.iter().zip(sources).zip(&mut values) {
            match source {
                None | Some(Source::Generator(_)) => {}
                Some(source) if io::without_shape(source) != last => {}
                Some(source) => match read_one(param, source, &want(param, bound)) {
                    Ok(v) => *value = Some(v),
                    Err(d) if d.code == "data::rank" => errors.push(Fault::of(&param.name, None, d)),
                    Err(d) => errors.push(d.into()),
                },
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let shapes: Vec<Option<Vec<usize>>> = values.iter().map(|v| v.as_ref().map(|v| v.shape().to_vec())).collect();
        bound.unify(signature, &shapes)?;
    }
    Ok(values)
}

fn read_one(param: &TensorSig, source: &Source, want: &Want) -> Result<Value, Diagnostic> {
    if param.storage.is_some() { io::read_stored(source, want) } else { io::read(source, want) }
}

/// Facts about a call before all inputs are given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Sizes by name.
    pub sizes: BTreeMap<String, i64>,
    /// Values of scalar integer parameters.
    pub integers: BTreeMap<String, i64>,
    /// Numbers of stored elements of structured parameters, as [`stored`] counts them.
    pub stored: BTreeMap<String, i64>,
}

/// Derives sizes, values of scalar integer parameters, and numbers of stored elements from inputs, of which some may be
/// missing. Generators have no shape of their own and determine no size; their number of stored elements is known if
/// all sizes of the parameter are.
pub fn known(signature: &Signature, given: &[(String, String)], sizes: &[(String, i64)]) -> Result<Known, Vec<Fault>> {
    let all = |found: Vec<Diagnostic>| found.into_iter().map(Fault::from).collect::<Vec<_>>();
    let params: Vec<&TensorSig> = signature.params().collect();
    let sources = some_sources(signature, &params, given).map_err(all)?;
    let mut bound = Sizes::given(signature, sizes).map_err(all)?;
    let sources: Vec<Option<&Source>> = sources.iter().map(Option::as_ref).collect();
    let mut values = read_files(signature, &params, &sources, &mut bound)?;
    for ((param, source), value) in params.iter().zip(&sources).zip(&mut values) {
        if let (Some(Source::Generator(generator)), Some(shape)) = (source, bound.shape(param))
            && generator.is_sparse()
            && param.storage.is_some()
        {
            *value = Some(generator.sparse(&want(param, &bound), &shape).map_err(|d| vec![Fault::from(d)])?);
        }
    }
    let given = || params.iter().zip(&values).filter_map(|(p, v)| Some((*p, v.as_ref()?)));
    let integers = given().filter_map(|(p, v)| integer(p, v)).collect();
    Ok(Known { sizes: bound.known(signature).collect(), integers, stored: given().filter_map(listed).collect() })
}

/// Returns the values of scalar integer inputs.
pub fn integers(signature: &Signature, values: &[Value]) -> Vec<(String, i64)> {
    signature.params().zip(values).filter_map(|(t, v)| integer(t, v)).collect()
}

/// Counts the stored elements of structured parameters that are given as lists of elements, by the names of
/// [`crate::Options::hints`].
pub fn stored(signature: &Signature, values: &[Value]) -> Vec<(String, i64)> {
    signature.params().zip(values).filter_map(listed).collect()
}

fn listed((t, v): (&TensorSig, &Value)) -> Option<(String, i64)> {
    let listed = t.storage.is_some() && v.places().is_some();
    listed.then(|| (format!("{}.stored", t.name), v.data().len() as i64))
}

fn integer(t: &TensorSig, v: &Value) -> Option<(String, i64)> {
    let single = t.shape.is_empty() && t.passing == Passing::In;
    let number = single.then(|| v.data().get_int(0))??;
    Some((t.name.clone(), i64::try_from(number).ok()?))
}

/// Returns the source of each parameter, in order; all must be given.
fn sources(
    signature: &Signature,
    params: &[&TensorSig],
    given: &[(String, String)],
) -> Result<Vec<Source>, Vec<Diagnostic>> {
    let found = some_sources(signature, params, given)?;
    let missing: Vec<&TensorSig> = params.iter().zip(&found).filter(|(_, f)| f.is_none()).map(|(p, _)| *p).collect();
    match missing.as_slice() {
        [] => Ok(found.into_iter().flatten().collect()),
        missing => Err(vec![missing_inputs(signature, missing)]),
    }
}

/// Returns the source of each parameter, in order; `None` if not given.
fn some_sources(
    signature: &Signature,
    params: &[&TensorSig],
    given: &[(String, String)],
) -> Result<Vec<Option<Source>>, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut found: Vec<Option<Source>> = vec![None; params.len()];
    for (name, text) in given {
        let Some(k) = params.iter().position(|p| p.name == *name) else {
            errors.push(unknown_param(signature, params, name));
            continue;
        };
        match Source::parse(text) {
            Ok(_) if found[k].is_some() => {
                errors.push(Diagnostic::new("input::twice", format!("parameter `{name}` is given twice")));
            }
            Ok(source) => found[k] = Some(source),
            Err(mut d) => {
                d.message = format!("parameter `{name}`: {}", d.message);
                errors.push(d);
            }
        }
    }
    // A misspelt name is missing too; one message is enough.
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

/// Builds the request to a reader, with the sizes known so far.
fn want(param: &TensorSig, sizes: &Sizes) -> Want {
    let known: Vec<Option<i64>> = param.shape.iter().map(|d| sizes.eval(d.value.as_ref()?)).collect();
    let empty = known
        .contains(&Some(0))
        .then(|| known.iter().map(|n| n.and_then(|n| usize::try_from(n).ok()).unwrap_or(0)).collect());
    let sizes = known.iter().map(|n| n.and_then(|n| usize::try_from(n).ok())).collect();
    let format = param.storage.as_ref().map(|s| s.format(param.dtype));
    let fill = format.as_ref().map(|f| f.fill.unwrap_or(Literal::zero(param.dtype)));
    Want { empty, sizes, fill, format, ..Want::new(&param.name, param.dtype, param.shape.len()) }
}

/// Formats a parameter's type: `f32[n, 3]`; `inout[f32[n]]`; `f32` for a scalar.
pub fn type_text(signature: &Signature, t: &TensorSig) -> String {
    let dims: Vec<&str> = t.shape.iter().map(|d| d.text.as_str()).collect();
    let plain = if dims.is_empty() { t.dtype.to_string() } else { format!("{}[{}]", t.dtype, dims.join(", ")) };
    let plain = match (t.of.and_then(|k| signature.tensors.get(k)), &t.storage) {
        (Some(of), _) => format!("{plain} @ pattern({})", of.name),
        (None, Some(storage)) => format!("{plain} @ {}", storage.format(t.dtype)),
        (None, None) => plain,
    };
    if t.passing == Passing::InOut { format!("inout[{plain}]") } else { plain }
}

fn missing_inputs(signature: &Signature, missing: &[&TensorSig]) -> Diagnostic {
    let list: Vec<String> = missing.iter().map(|p| format!("`{}: {}`", p.name, type_text(signature, p))).collect();
    let what = if missing.len() == 1 { "input is" } else { "inputs are" };
    let flags: Vec<String> = missing.iter().map(|p| format!("--in {}={}", p.name, example(p))).collect();
    Diagnostic::new(
        "input::missing",
        format!("`{}`: {} {what} missing: {}", signature.name, missing.len(), list.join(", ")),
    )
    .help(format!("give a file, a literal or a generator for each, for example\n{}", flags.join(" ")))
}

/// Returns an example input for a parameter.
fn example(p: &TensorSig) -> String {
    match (p.shape.len(), p.dtype) {
        (0, d) if d.is_float() => "0.5".into(),
        (0, taffeta_ast::DType::Bool) => "true".into(),
        (0, _) => "1".into(),
        (_, d) if d.is_float() => "rand".into(),
        (_, taffeta_ast::DType::Bool) => "'randint(0,2)'".into(),
        _ => format!("{}.npy", p.name),
    }
}

pub(crate) fn unknown_param(signature: &Signature, params: &[&TensorSig], name: &str) -> Diagnostic {
    let d = Diagnostic::new("input::name", format!("`{}` has no parameter `{name}`", signature.name));
    if signature.sizes.iter().any(|s| s.name == name) {
        return d.help(format!("`{name}` is a size: write --size {name}=N"));
    }
    match taffeta_ast::spelling::nearest(name, params.iter().map(|p| p.name.as_str())) {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None if params.is_empty() => d.help("it has no parameters"),
        None => {
            let list: Vec<String> = params.iter().map(|p| format!("{}: {}", p.name, type_text(signature, p))).collect();
            d.help(format!("its parameters are {}", list.join(", ")))
        }
    }
}

/// Creates the fault for a shape that has no value: negative, or beyond 64 bits.
fn no_shape(param: &TensorSig, sizes: &Sizes) -> Fault {
    let fault = |k, code, message| Fault::of(&param.name, k, Diagnostic::new(code, message));
    for (k, d) in param.shape.iter().enumerate() {
        match d.value.as_ref().map(|v| sizes.eval(v)) {
            Some(Some(v)) if v < 0 => {
                let message =
                    format!("parameter `{}`, dimension {k}: `{}` is {v}; sizes are 0 or more", param.name, d.text);
                return fault(Some(k), "size::negative", message);
            }
            Some(Some(_)) => {}
            _ => {
                let message =
                    format!("parameter `{}`, dimension {k}: `{}` overflows or has no value", param.name, d.text);
                return fault(Some(k), "size::overflow", message);
            }
        }
    }
    fault(None, "size::overflow", format!("parameter `{}` has no shape", param.name))
}

/// Computes the shape of every result, `None` if it is unknown before the call, and checks that all results fit in
/// memory together.
pub fn result_shapes(signature: &Signature, sizes: &[i64]) -> Result<Vec<Option<Vec<usize>>>, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut bytes = 0u128;
    let mut shapes = Vec::new();
    for t in signature.results() {
        let shape = t.shape(sizes);
        if t.of.is_some() {
            // A result with a parameter's pattern is as large as the parameter.
            shapes.push(shape);
            continue;
        }
        for (k, d) in t.shape.iter().enumerate() {
            if let Some(v) = d.value.as_ref().and_then(|v| v.eval(sizes)).filter(|v| *v < 0) {
                errors.push(Diagnostic::new(
                    "size::negative",
                    format!("result `{}`, dimension {k}: `{}` is {v}; sizes are 0 or more", t.name, d.text),
                ));
            }
        }
        // What a result in a sparse format takes is known when it is made.
        if let Some(shape) = shape.as_ref().filter(|_| t.storage.is_none()) {
            let what = || format!("result `{}` of shape {}", t.name, shape_text(shape));
            match memory::check_named(t.dtype, shape, what) {
                Ok(b) => bytes += b as u128,
                Err(d) => errors.push(d),
            }
        }
        shapes.push(shape);
    }
    if errors.is_empty()
        && let Err(d) = memory::check_bytes(bytes, "the results")
    {
        errors.push(d);
    }
    if errors.is_empty() { Ok(shapes) } else { Err(errors) }
}
