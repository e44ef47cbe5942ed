//! Conversion of tensors between formats. A conversion is a program, `B[i, j] = A[i, j]` in loops over the storage of
//! the source, and is compiled like any other, once for each pair of formats and types. No code knows both formats:
//! lowering reads the source level by level, and assembles the target so (Chou, Kjolstad and Amarasinghe, *Automatic
//! Generation of Efficient Sparse Tensor Format Conversion Routines*, 2020).
//!
//! ```text
//! def stored_by(i, j):
//!     return (j - i, i, j)
//!
//! def convert(A: f64[n0, n1] @ format(squeezed, range, offset, remap=stored_by)) -> f64[n0, n1] @ csr:
//!     B = full((n0, n1), 0.0, f64)
//!     for c0 in range(1 - n0, n1):
//!         for c1 in range(n0):
//!             if 0 <= c1 + c0 and c1 + c0 < n1:
//!                 if A[c1, c1 + c0] != 0.0:          since `range` stores whole regions
//!                     B[c1, c1 + c0] = A[c1, c1 + c0]
//!     return B
//! ```

use crate::error::{Error, Report};
use crate::function::Function;
use crate::io;
use crate::options::Options;
use crate::program::Program;
use crate::sparse::Sparse;
use std::fmt::Write as _;
use std::path::Path;
use taffeta_ast::format::{Format, coord};
use taffeta_ast::{Buffer, DType, Diagnostic, Expr, Literal, Symbol, print, scalar};
use taffeta_frontend::Source;
use taffeta_structured::{Stored, Unpackable, arrays_of};

/// Errors of the compilation of a conversion, which is packed instead.
const PACKS: [&str; 2] = ["lower::unsupported", "toolchain::missing"];

/// Converts a tensor to another format. Explicit fill values are kept from lists, and left out where a level of the
/// source stores coordinates that no store came to. A format without a fill takes that of the source.
///
/// ```
/// use ndarray::arr2;
/// use taffeta::ast::format::Named;
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
/// let x = arr2(&[[1.0, -1.0, 2.0], [-1.0, -1.0, 3.0]]);
/// let y = program.compile("positive", &Options::default())?.call().input("x", x.view()).run()?;
/// let columns = taffeta::convert(y.stored("y")?, &Named::Csc.format(2).unwrap(), &Options::default())?;
/// // First elements of columns, rows, and elements.
/// assert_eq!(columns.arrays()[1].numbers(), [0.0, 0.0, 1.0]);
/// assert_eq!(columns.arrays()[2].numbers(), [1.0, 2.0, 3.0]);
/// # Ok::<(), taffeta::Error>(())
/// ```
///
/// # Errors
///
/// A format of another number of dimensions, or one that cannot hold the tensor ([`Error::Run`], with the element);
/// those of [`Program::compile`].
pub fn convert(tensor: &Stored, format: &Format, options: &Options) -> Result<Stored, Error> {
    Conversion::of(tensor, format)?.run(tensor, options)
}

/// Parses a format as programs write it (`csr`, `bcsr(2, 2)`), for tensors of `ndim` dimensions. It may name formats of
/// the program `file` and of its imports.
///
/// # Errors
///
/// An unreadable file, and those of the program's text.
pub fn parse_format(text: &str, ndim: usize, file: Option<&Path>) -> Result<Format, Error> {
    if ndim == 0 {
        let d = Diagnostic::new("storage::rank", format!("cannot store a scalar in the format `{text}`"));
        return Err(Error::Input(Report::without_sources(vec![d.help("formats are of tensors with dimensions")])));
    }
    let read = |path: &Path| io::read_text(path).map_err(|d| Error::Program(Report::without_sources(vec![d])));
    let context = file.map_or(Ok(String::new()), read)?;
    let shape = vec!["taffeta_n"; ndim].join(", ");
    let program = format!("{context}\n\n\ndef taffeta_target(A: f64[{shape}] @ {text}) -> i64:\n    return 0\n");
    let read = |name: String, text: String| -> Result<Program, Error> {
        let program = Program::read(Source { name, path: file.map(Path::to_path_buf), text: text.into() });
        program.refuse_broken()?;
        Ok(program)
    };
    // Errors of the file are shown in the file, those of the format without the program around it.
    if let Some(file) = file {
        read(file.display().to_string(), context)?;
    }
    let format =
        read("--to".into(), program).and_then(|program| program.logical("taffeta_target", &Options::default()));
    let func = format.map_err(|e| {
        let wrong = |d: &Diagnostic| Diagnostic {
            message: format!("cannot read the format `{text}`: {}", d.message),
            labels: Vec::new(),
            ..d.clone()
        };
        Error::Input(Report::without_sources(e.report().diagnostics.iter().map(wrong).collect()))
    })?;
    let format = func.params.first().map_or_else(|| Format::dense(ndim), |p| p.tensor.format.clone());
    Ok(Format { pattern: None, ..format })
}

/// Program that converts tensors of one format to another.
pub struct Conversion {
    /// Text of the program; its entry is `convert`.
    pub text: String,
    source: Format,
    target: Format,
    dtype: DType,
    fill: Literal,
}

impl Conversion {
    /// Writes the program that converts a tensor, and others of its format and type.
    ///
    /// # Errors
    ///
    /// A format of another number of dimensions, or of squares where the tensor is none.
    pub fn of(tensor: &Stored, format: &Format) -> Result<Conversion, Error> {
        Conversion::to(tensor, format, tensor.dtype())
    }

    /// Writes the program that converts a tensor to a format and an element type. Elements are converted as by `cast`:
    /// a number without a value in the type is an error.
    ///
    /// # Errors
    ///
    /// Those of [`Conversion::of`], and a fill without a value in the type.
    pub fn to(tensor: &Stored, format: &Format, dtype: DType) -> Result<Conversion, Error> {
        let ndim = tensor.shape().len();
        let squares = || tensor.format().squares().chain(format.squares()).map(|(_, dims)| dims);
        let wrong = format.check(ndim).map_err(|why| why.to_string()).err().or_else(|| {
            let [a, b] = squares().find(|[a, b]| tensor.shape()[*a] != tensor.shape()[*b])?;
            let [n, m] = [a, b].map(|d| tensor.shape()[d]);
            Some(format!("it needs a square of dimensions {a} and {b}, which have sizes {n} and {m}"))
        });
        if let Some(why) = wrong {
            let d = Diagnostic::new("storage::format", format!("cannot convert a tensor to `{format}`: {why}"));
            return Err(Error::Input(Report::without_sources(vec![d])));
        }
        let source = with_types(tensor);
        let fill = source.fill.unwrap_or(Literal::zero(tensor.dtype()));
        let own = scalar::cast(fill, tensor.dtype(), dtype).map_err(|_| {
            let text = format!("cannot convert a tensor to {dtype}: its fill is {}", number(fill));
            Error::Input(Report::without_sources(vec![Diagnostic::new("storage::format", text)]))
        })?;
        // A dense tensor stores every element, and has no fill.
        let fills = format.fill.or(source.fill.map(|_| own)).filter(|_| !format.is_dense());
        let target = Format { fill: fills, ..format.clone() };
        let text = text([&source, &target], [tensor.dtype(), dtype], ndim, fill);
        Ok(Conversion { text, source, target, dtype, fill })
    }

    /// Returns the program.
    ///
    /// # Errors
    ///
    /// None that are known: it is a program like any other.
    pub fn program(&self) -> Result<Program, Error> {
        Program::from_source("conversion.ft", &self.text)
    }

    /// Converts a tensor.
    ///
    /// # Errors
    ///
    /// Those of [`convert`].
    pub fn run(self, tensor: &Stored, options: &Options) -> Result<Stored, Error> {
        self.run_on(tensor, options, 0)
    }

    /// Converts a tensor by this many threads; 0 lets OpenMP decide. The result does not depend on them.
    ///
    /// # Errors
    ///
    /// Those of [`convert`].
    pub fn run_on(self, tensor: &Stored, options: &Options, threads: u32) -> Result<Stored, Error> {
        let function = self.compile(tensor, options)?;
        self.call(function.as_ref(), tensor, threads)
    }

    /// Compiles the program for tensors of this shape; `None` where packing serves: no loop can traverse the source, or
    /// there is no C compiler.
    ///
    /// # Errors
    ///
    /// Those of [`Program::compile`].
    pub fn compile(&self, tensor: &Stored, options: &Options) -> Result<Option<Function>, Error> {
        // Sizes beyond 2^31 - 1 are compiled in, for they make indices i64.
        let names = size_names([&self.source, &self.target], tensor.shape().len());
        let sizes = names.into_iter().zip(tensor.shape().iter().filter_map(|n| i64::try_from(*n).ok()));
        let options = options.clone().schedule(None).sizes(sizes.filter(|(_, n)| *n > i64::from(i32::MAX)));
        match self.program()?.compile("convert", &options) {
            Ok(function) => Ok(Some(function)),
            Err(e) if e.report().diagnostics.iter().all(|d| PACKS.contains(&d.code)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Converts a tensor by the compiled program ([`Conversion::compile`]), or by packing.
    ///
    /// # Errors
    ///
    /// Those of [`convert`].
    pub fn call(self, function: Option<&Function>, tensor: &Stored, threads: u32) -> Result<Stored, Error> {
        let Conversion { source, target, dtype, fill, .. } = self;
        let Some(function) = function else { return repacked(tensor, target, dtype, fill) };
        let (given, dense);
        let call = match source.is_dense() {
            false => {
                given = Sparse::of(tensor);
                function.call().sparse("A", &given)
            }
            true => {
                let elements = tensor.arrays().last().map(|v| v.data().clone());
                let value = elements.and_then(|v| taffeta_ast::Value::new(tensor.shape().to_vec(), v));
                dense = value.unwrap_or_else(|| unreachable!("a dense tensor has all elements"));
                function.call().value("A", &dense)
            }
        };
        let out = call.threads(threads).run()?;
        match target.is_dense() {
            false => out.into_stored("B"),
            true => {
                let elements = out.value("B")?.clone().into_parts().1;
                let vector = taffeta_ast::Value::new(vec![elements.len()], elements);
                Ok(Stored::of_arrays(tensor.shape().to_vec(), target, vector.into_iter().collect(), Vec::new()))
            }
        }
    }
}

/// Converts a tensor element by element.
fn repacked(tensor: &Stored, target: Format, dtype: DType, fill: Literal) -> Result<Stored, Error> {
    let failed = |why: Unpackable| {
        let d = Diagnostic::new("run::storage", format!("cannot convert a tensor to `{target}`: {why}"));
        Error::Run(Report::without_sources(vec![d]))
    };
    let (all, values) = tensor.listed().map_err(failed)?;
    let (ndim, regions) = (tensor.shape().len(), tensor.format().stores_regions());
    let is_fill = |v: Literal| match (v, fill) {
        (Literal::Float(a), Literal::Float(b)) => a == b,
        (a, b) => a == b,
    };
    let kept: Vec<usize> = (0..values.len()).filter(|k| !regions || !is_fill(values.get(*k))).collect();
    let indices: Vec<i64> = kept.iter().flat_map(|k| all[k * ndim..(k + 1) * ndim].iter().copied()).collect();
    let mut elements = Buffer::zeros(dtype, kept.len());
    for (to, k) in kept.iter().enumerate() {
        let value = scalar::cast(values.get(*k), values.dtype(), dtype).map_err(|fault| {
            let text = format!("cannot convert {} to {dtype}: {fault}", number(values.get(*k)));
            Error::Run(Report::without_sources(vec![Diagnostic::new("run::arithmetic", text)]))
        })?;
        assert!(elements.set(to, value), "types agree");
    }
    Stored::pack(tensor.shape(), &target, &indices, &elements).map_err(failed)
}

/// Returns the format of a tensor with the index types of its arrays. That of a dense tensor has no fill of 0.
fn with_types(tensor: &Stored) -> Format {
    let format = tensor.format();
    let plain = Format { fill: None, ..format.clone() };
    if plain.is_dense() && format.fill.is_none_or(|fill| fill == Literal::zero(tensor.dtype())) {
        return plain;
    }
    let mut arrays = tensor.arrays().iter();
    let counts = arrays_of(format).unwrap_or_default();
    let mut levels = format.levels.to_vec();
    for (level, count) in levels.iter_mut().zip(counts) {
        let types: Vec<DType> = arrays.by_ref().take(count).map(taffeta_ast::Value::dtype).collect();
        if level.index.is_none() && types.contains(&DType::I64) && level.kind.has_indices() {
            level.index = Some(DType::I64);
        }
    }
    Format { levels: levels.into(), ..format.clone() }
}

/// Writes the program.
fn text([source, target]: [&Format; 2], [from_dtype, dtype]: [DType; 2], ndim: usize, fill: Literal) -> String {
    let sizes = size_names([source, target], ndim);
    let mut out = String::new();
    let mut annotation = |format: &Format, name: &str| {
        if format.is_dense() {
            return String::new();
        }
        if format.order().is_none() {
            let dims = coord::names(ndim).join(", ");
            let _ = write!(out, "def {name}({dims}):\n    return {}\n\n\n", format.remap());
        }
        format!(" @ {}", format.text_with(name))
    };
    let (from, to) = (annotation(source, "stored_by"), annotation(target, "to_be_stored_by"));
    let shape = sizes.join(", ");
    let tuple = if ndim == 1 { format!("({shape},)") } else { format!("({shape})") };
    let target_fill = number(target.fill.unwrap_or(Literal::zero(dtype)));
    let _ = writeln!(out, "def convert(A: {from_dtype}[{shape}]{from}) -> {dtype}[{shape}]{to}:");
    let _ = writeln!(out, "    B = full({tuple}, {target_fill}, {dtype})");
    let mut depth = 1;
    let mut line = |text: &str, opens: bool| {
        let _ = writeln!(out, "{}{text}", "    ".repeat(depth));
        depth += usize::from(opens);
    };
    let nest = source.nest(&variables(&sizes), &|k| Symbol::new(format!("c{k}")));
    for (iter, [low, end]) in &nest.loops {
        let range = match low.as_int() {
            Some(0) => print::expr(end),
            _ => format!("{}, {}", print::expr(low), print::expr(end)),
        };
        line(&format!("for {iter} in range({range}):"), true);
    }
    for [index, size] in nest.open.iter().map(|open| open.each_ref().map(print::expr)) {
        line(&format!("if 0 <= {index} and {index} < {size}:"), true);
    }
    let element = format!("[{}]", nest.at.iter().map(print::expr).collect::<Vec<_>>().join(", "));
    if source.stores_regions() {
        line(&format!("if A{element} != {}:", number(fill)), true);
    }
    let value = match from_dtype == dtype {
        true => format!("A{element}"),
        false => format!("cast(A{element}, {dtype})"),
    };
    line(&format!("B{element} = {value}"), false);
    out.push_str("    return B\n");
    out
}

/// Names the size of each dimension; both dimensions of a square have one name.
fn size_names([source, target]: [&Format; 2], ndim: usize) -> Vec<String> {
    let mut sizes: Vec<String> = (0..ndim).map(|d| format!("n{d}")).collect();
    for (_, [a, b]) in source.squares().chain(target.squares()) {
        sizes[b] = sizes[a].clone();
    }
    sizes
}

/// Makes a variable of each size; sizes of one name are one.
fn variables(sizes: &[String]) -> Vec<Expr> {
    let mut shape: Vec<Expr> = Vec::new();
    for (d, name) in sizes.iter().enumerate() {
        let same = sizes[..d].iter().position(|other| other == name);
        shape.push(same.map_or_else(|| Expr::var(&Symbol::new(name)), |k| shape[k].clone()));
    }
    shape
}

/// Writes a number as programs do.
fn number(v: Literal) -> String {
    match v {
        Literal::Bool(v) => if v { "True" } else { "False" }.to_string(),
        Literal::Int(v) => v.to_string(),
        Literal::Float(v) if v.is_nan() => "nan".to_string(),
        Literal::Float(v) => format!("{v:?}"),
    }
}
