//! What callers of an entry must know: names, types, shapes and sizes, and where the places are that can stop it.
//!
//! It is plain data without symbols, so that it can be stored beside a compiled library and read without the compiler.

use serde::{Deserialize, Serialize};
use taffeta_ast::format::{Format, Level, coord};
use taffeta_ast::func::ParamMode;
use taffeta_ast::{DType, Expr, ExprKind, Func, Literal, Op, Symbol, Tensor};

/// An entry's interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signature {
    /// The entry's name in the program.
    pub name: String,
    /// The name of the C function that runs it.
    pub c_name: String,
    /// Its docstring.
    pub doc: Option<String>,
    /// Size parameters, in order.
    pub sizes: Vec<SizeParam>,
    /// Parameters, then results, in order.
    pub tensors: Vec<TensorSig>,
    /// Places that can stop the program: `taffeta_ctx.site` is a position in this list. Filled in by `c::emit`.
    pub sites: Vec<Site>,
    /// The interface of the program as it is written, where C takes the arrays of structured parameters instead of
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical: Option<Box<Signature>>,
}

/// A size parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeParam {
    /// Its name.
    pub name: String,
    /// Its value, if it is compiled in.
    pub known: Option<i64>,
}

/// How a tensor is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Passing {
    /// Read only.
    In,
    /// Read and written.
    InOut,
    /// Written.
    Result,
}

/// A parameter or result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TensorSig {
    /// Its name.
    pub name: String,
    /// Type of its elements.
    pub dtype: DType,
    /// How it is passed.
    pub passing: Passing,
    /// Its sizes.
    pub shape: Vec<Dim>,
    /// How it is stored, if not densely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// Of a structured tensor that is stored where a parameter before it is, that one, by its place: C takes and gives
    /// its elements alone, one for each of that one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<usize>,
}

/// How a structured tensor is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Outermost first.
    pub levels: Vec<Level>,
    /// The dimension that each level stores, where each stores one.
    pub order: Vec<usize>,
    /// What each level stores, where that is more than a dimension: what the function of `remap=` returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remap: Option<String>,
    /// The value of elements that are not stored, if it is not 0.
    pub fill: Option<Fill>,
    /// Whether elements where nothing is stored vanish, as they do in derivatives.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drops: bool,
}

/// A number that survives being written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// Of type `bool`.
    Bool(bool),
    /// Of an integer type: those of u64 as i64, bit by bit.
    Int(i64),
    /// Of a floating-point type: the bits of the f64.
    Float(u64),
}

impl Storage {
    /// The storage of a tensor; `None` if it is dense.
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

    /// The format, for elements of that type.
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

/// One size of a parameter or result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dim {
    /// As a program would write it.
    pub text: String,
    /// How it is computed; `None` where only C can.
    pub value: Option<Size>,
}

/// An integer computed from sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Size {
    /// A constant.
    Const(i64),
    /// The size parameter of that position.
    Param(usize),
    /// `+`, `-`, `*`, `//`, `%`, `min` or `max` of two.
    Apply(SizeOp, Box<[Size; 2]>),
}

/// The operators in [`Size`].
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

/// A place in the source that can stop the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Site {
    /// The file's name; empty where no user wrote it.
    pub file: String,
    /// The line, from 1; 0 where there is none.
    pub line: u32,
    /// First byte of the statement in the file.
    pub start: u32,
    /// One past its last byte.
    pub end: u32,
    /// The calls that inlined it, outermost first: function, and the place of the call.
    pub chain: Vec<(String, SourceRange)>,
}

/// A range of bytes in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourceRange {
    /// The file's name.
    pub file: String,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Signature {
    /// The interface of a logical program. `known` sizes are compiled in.
    pub fn of(func: &Func, known: &rustc_hash::FxHashMap<String, i64>) -> Signature {
        let modes = func.params.iter().map(|p| match p.mode {
            ParamMode::In => Passing::In,
            ParamMode::InOut => Passing::InOut,
        });
        let passing = modes.chain(func.results.iter().map(|_| Passing::Result));
        let of = |t: &Tensor| {
            let pattern = t.format.pattern?;
            let of = func.params.iter().position(|p| p.tensor.format.pattern == Some(pattern));
            of.filter(|k| func.params[*k].tensor.symbol != t.symbol)
        };
        let tensors = func.interface().zip(passing).map(|(t, passing)| TensorSig {
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

    /// The interface of the program as it is written.
    pub fn logical(&self) -> &Signature {
        self.logical.as_deref().unwrap_or(self)
    }

    /// Whether a parameter is structured.
    pub fn has_storage(&self) -> bool {
        self.tensors.iter().any(|t| t.storage.is_some())
    }

    /// The parameters, without the results.
    pub fn params(&self) -> impl Iterator<Item = &TensorSig> {
        self.tensors.iter().filter(|t| t.passing != Passing::Result)
    }

    /// The results.
    pub fn results(&self) -> impl Iterator<Item = &TensorSig> {
        self.tensors.iter().filter(|t| t.passing == Passing::Result)
    }

    /// The values of the sizes: what is compiled in, what is given by name, or the first dimension of a parameter that
    /// is that size alone. `shapes` are those of the parameters; parameters of another number of dimensions are skipped
    /// here and refused by the call.
    ///
    /// # Errors
    ///
    /// The first size that nothing fixes.
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
    /// The shape for given sizes; `None` where only C can compute it, or where it has no value.
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

    /// The value; `None` if it overflows or divides by zero.
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

/// A size as a program writes it; `outer` is the precedence around it.
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
