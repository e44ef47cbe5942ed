//! Interface of an entry for its callers: names, types, shapes, sizes, and the source locations of run-time errors.
//!
//! Plain data without symbols, so that it can be stored beside a compiled library and read without the compiler.

use serde::{Deserialize, Serialize};
use taffeta_ast::format::{Format, Level, coord};
use taffeta_ast::func::ParamMode;
use taffeta_ast::{DType, Expr, ExprKind, Func, Literal, Op, Symbol, Tensor};

/// An entry's interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signature {
    /// Name of the entry in the program.
    pub name: String,
    /// Name of the C function that runs the entry.
    pub c_name: String,
    /// Docstring of the entry.
    pub doc: Option<String>,
    /// Size parameters, in order.
    pub sizes: Vec<SizeParam>,
    /// Parameters, then results, in order, then the arrays that the program makes.
    pub tensors: Vec<TensorSig>,
    /// Locations of run-time errors: `taffeta_ctx.site` is a position in this list. Filled in by `c::emit`.
    pub sites: Vec<Site>,
    /// Interface of the program as written, if it differs from this one: there structured parameters are tensors, here
    /// `tensors` lists the arrays of their levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical: Option<Box<Signature>>,
}

/// A size parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeParam {
    /// Name of the size.
    pub name: String,
    /// Value of the size, if it is compiled in.
    pub known: Option<i64>,
}

/// Access mode of a tensor in the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Passing {
    /// Read-only access.
    In,
    /// Read and write access.
    InOut,
    /// Write access.
    Result,
    /// Array that the program makes, as long as it is in the end.
    Made,
}

/// A parameter or result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TensorSig {
    /// Name of the tensor.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Access mode.
    pub passing: Passing,
    /// Extents of the dimensions.
    pub shape: Vec<Dim>,
    /// Storage of a structured tensor; `None` if dense.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// Position of the earlier parameter whose pattern this structured tensor shares: C passes its elements alone, one
    /// for each stored element of that parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<usize>,
}

/// Storage of a structured tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Levels, outermost first.
    pub levels: Vec<Level>,
    /// Dimension stored by each level; empty if `remap` is set.
    pub order: Vec<usize>,
    /// Coordinates stored by the levels if they are expressions of dimensions: the tuple that the `remap=` function
    /// returns, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remap: Option<String>,
    /// Value of elements that are not stored (the fill), unless 0.
    pub fill: Option<Fill>,
    /// Whether writes outside the pattern are dropped, as in derivatives.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drops: bool,
}

/// Fill value that survives serialisation as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// Value of type `bool`.
    Bool(bool),
    /// Value of an integer type; u64 bit by bit as i64.
    Int(i64),
    /// Value of a floating-point type, as the bits of an f64.
    Float(u64),
}

impl Storage {
    /// Returns the storage of a tensor of this format; `None` if it is dense.
    pub fn of(format: &Format) -> Option<Storage> {
        let fill = format.fill.map(|fill| match fill {
            Literal::Bool(b) => Fill::Bool(b),
            Literal::Int(i) => Fill::Int(i as i64),
            Literal::Float(f) => Fill::Float(f.to_bits()),
        });
        let order = format.order();
        let remap = order.is_none().then(|| format.remap());
        let (levels, order) = (format.levels.to_vec(), order.unwrap_or_default());
        (!format.is_dense()).then_some(Storage { levels, order, remap, fill, drops: format.drops })
    }

    /// Returns the format, for elements of type `dtype`.
    pub fn format(&self, dtype: DType) -> Format {
        let fill = self.fill.map(|fill| match fill {
            Fill::Bool(b) => Literal::Bool(b),
            Fill::Int(i) if dtype == DType::U64 => Literal::Int(i128::from(i as u64)),
            Fill::Int(i) => Literal::Int(i128::from(i)),
            Fill::Float(bits) => Literal::Float(f64::from_bits(bits)),
        });
        let levels = Format::new(self.levels.clone());
        let format = match self.remap.as_deref().and_then(coord::parse) {
            Some((coords, keys)) => levels.remapped(coords, keys),
            None => levels.ordered(&self.order),
        };
        Format { fill, drops: self.drops, ..format }
    }
}

/// Extent of one dimension of a parameter or result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dim {
    /// Extent as a program would write it.
    pub text: String,
    /// Formula of the extent; `None` where only C can compute it.
    pub value: Option<Size>,
}

/// Integer expression over size parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Size {
    /// A constant.
    Const(i64),
    /// Size parameter, by position.
    Param(usize),
    /// `+`, `-`, `*`, `//`, `%`, `min` or `max` of two operands.
    Apply(SizeOp, Box<[Size; 2]>),
}

/// Operators in [`Size`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // as in `Op`
pub enum SizeOp {
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
    Min,
    Max,
}

/// Source location of a statement that can raise a run-time error.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Site {
    /// Name of the file; empty for statements that no user wrote.
    pub file: String,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// First byte of the statement in the file.
    pub start: u32,
    /// One past the last byte of the statement.
    pub end: u32,
    /// Inlined calls around the statement, outermost first: function, and location of the call.
    pub chain: Vec<(String, SourceRange)>,
}

/// Range of bytes in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourceRange {
    /// Name of the file.
    pub file: String,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Signature {
    /// Makes the interface of a logical program. Sizes in `known` are compiled in.
    pub fn of(func: &Func, known: &rustc_hash::FxHashMap<String, i64>) -> Signature {
        let modes = func.params.iter().map(|p| match p.mode {
            ParamMode::In => Passing::In,
            ParamMode::InOut => Passing::InOut,
        });
        let passing =
            modes.chain(func.results.iter().map(|_| Passing::Result)).chain(func.made.iter().map(|_| Passing::Made));
        let of = |t: &Tensor| {
            let pattern = t.format.pattern?;
            let of = func.params.iter().position(|p| p.tensor.format.pattern == Some(pattern));
            of.filter(|k| func.params[*k].tensor.symbol != t.symbol)
        };
        let tensors = func.interface().chain(&func.made).zip(passing).map(|(t, passing)| TensorSig {
            name: t.symbol.name().to_string(),
            dtype: t.dtype,
            passing,
            shape: t.shape.iter().map(|e| Dim { text: text(e, 0), value: Size::of(e, &func.sizes) }).collect(),
            storage: Storage::of(&t.format),
            of: of(t),
        });
        Signature {
            name: func.name.clone(),
            c_name: crate::c::names::entry(&func.name),
            doc: func.doc.clone(),
            sizes: func
                .sizes
                .iter()
                .map(|s| SizeParam { name: s.name().to_string(), known: known.get(s.name()).copied() })
                .collect(),
            tensors: tensors.collect(),
            sites: Vec::new(),
            logical: None,
        }
    }

    /// Returns the interface of the program as written.
    pub fn logical(&self) -> &Signature {
        self.logical.as_deref().unwrap_or(self)
    }

    /// Returns whether any parameter or result is structured.
    pub fn has_storage(&self) -> bool {
        self.tensors.iter().any(|t| t.storage.is_some())
    }

    /// Iterates over the parameters, without the results.
    pub fn params(&self) -> impl Iterator<Item = &TensorSig> {
        self.tensors.iter().filter(|t| !matches!(t.passing, Passing::Result | Passing::Made))
    }

    /// Iterates over the arrays that the program makes.
    pub fn made(&self) -> impl Iterator<Item = &TensorSig> {
        self.tensors.iter().filter(|t| t.passing == Passing::Made)
    }

    /// Iterates over the results.
    pub fn results(&self) -> impl Iterator<Item = &TensorSig> {
        self.tensors.iter().filter(|t| t.passing == Passing::Result)
    }

    /// Determines the values of the sizes. A value given by name comes first, then the extent of a parameter's
    /// dimension that consists of that size alone, then a compiled-in value. `shapes` are the parameters' shapes;
    /// shapes of another rank are tolerated here and refused by the call.
    ///
    /// # Errors
    ///
    /// The name of the first size without a value.
    pub fn bind_sizes(&self, shapes: &[&[usize]], given: &[(&str, i64)]) -> Result<Vec<i64>, String> {
        self.sizes
            .iter()
            .enumerate()
            .map(|(k, size)| {
                let named = given.iter().find(|(name, _)| *name == size.name).map(|(_, v)| *v);
                let from_shapes = self.params().zip(shapes).find_map(|(t, shape)| {
                    let d = t.shape.iter().position(|d| d.value == Some(Size::Param(k)))?;
                    i64::try_from(*shape.get(d)?).ok()
                });
                named.or(from_shapes).or(size.known).ok_or_else(|| size.name.clone())
            })
            .collect()
    }
}

impl TensorSig {
    /// Evaluates the shape for given sizes; `None` where only C can compute it, or where evaluation fails.
    pub fn shape(&self, sizes: &[i64]) -> Option<Vec<usize>> {
        self.shape.iter().map(|d| usize::try_from(d.value.as_ref()?.eval(sizes)?).ok()).collect()
    }
}

impl Size {
    fn of(e: &Expr, sizes: &[Symbol]) -> Option<Size> {
        match e.kind() {
            ExprKind::Const(_) => e.as_int().map(Size::Const),
            ExprKind::Var(v) => sizes.iter().position(|s| s == v).map(Size::Param),
            ExprKind::Apply(op, args) => {
                let op = match op {
                    Op::Add => SizeOp::Add,
                    Op::Sub => SizeOp::Sub,
                    Op::Mul => SizeOp::Mul,
                    Op::FloorDiv => SizeOp::FloorDiv,
                    Op::Mod => SizeOp::Mod,
                    Op::Min => SizeOp::Min,
                    Op::Max => SizeOp::Max,
                    _ => return None,
                };
                Some(Size::Apply(op, Box::new([Size::of(&args[0], sizes)?, Size::of(&args[1], sizes)?])))
            }
            _ => None,
        }
    }

    /// Evaluates the expression; `None` if it overflows or divides by zero.
    pub fn eval(&self, sizes: &[i64]) -> Option<i64> {
        match self {
            Size::Const(v) => Some(*v),
            Size::Param(k) => sizes.get(*k).copied(),
            Size::Apply(op, args) => {
                let (a, b) = (args[0].eval(sizes)?, args[1].eval(sizes)?);
                match op {
                    SizeOp::Add => a.checked_add(b),
                    SizeOp::Sub => a.checked_sub(b),
                    SizeOp::Mul => a.checked_mul(b),
                    SizeOp::FloorDiv => floor_div(a, b),
                    SizeOp::Mod => a.checked_sub(b.checked_mul(floor_div(a, b)?)?),
                    SizeOp::Min => Some(a.min(b)),
                    SizeOp::Max => Some(a.max(b)),
                }
            }
        }
    }
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let (q, r) = (a.checked_div(b)?, a.checked_rem(b)?);
    if r != 0 && (r < 0) != (b < 0) { q.checked_sub(1) } else { Some(q) }
}

/// Prints an extent as a program writes it; `outer` is the precedence of the context.
fn text(e: &Expr, outer: u8) -> String {
    use taffeta_ast::op::Form;
    match e.kind() {
        ExprKind::Const(_) => e.as_int().map_or_else(|| "?".to_string(), |v| v.to_string()),
        ExprKind::Var(v) => v.name().to_string(),
        ExprKind::Apply(op, args) => match op.info().form {
            Form::Infix(p) => {
                let inner = format!("{} {} {}", text(&args[0], p), op.info().name, text(&args[1], p + 1));
                if p < outer { format!("({inner})") } else { inner }
            }
            Form::Prefix(p) => format!("{}{}", op.info().name, text(&args[0], p)),
            Form::Call => {
                let args: Vec<String> = args.iter().map(|a| text(a, 0)).collect();
                format!("{}({})", op.info().name, args.join(", "))
            }
        },
        _ => "?".to_string(),
    }
}
