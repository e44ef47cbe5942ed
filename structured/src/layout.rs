//! Which arrays a tensor in a format consists of: parameters of the lowered program.

use crate::levels::{self, ArrayKind, Counts};
use std::sync::Arc;
use taffeta_ast::format::Level;
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, Func, Symbol, Tensor};

/// What the parameters of the lowered program are, in the order of the program's own.
#[derive(Clone, Debug)]
pub struct Layout {
    /// For each parameter of the program, what it became.
    pub params: Vec<Parameter>,
    /// Numbers of positions: sizes of the lowered program that come after the program's own.
    pub hidden: Vec<Symbol>,
}

/// What became of a parameter.
#[derive(Clone, Debug)]
pub enum Parameter {
    /// It is dense, and is itself.
    Dense,
    /// The arrays of its levels, outermost first, then its elements.
    Stored(Vec<Array>),
}

/// An array of a tensor in a format.
#[derive(Clone, Debug)]
pub struct Array {
    /// The level that it belongs to; `None`: the elements.
    pub level: Option<usize>,
    /// What it is called in pictures of the level: `pos`, `crd`, `val`.
    pub name: &'static str,
    /// As a parameter of the lowered program.
    pub tensor: Arc<Tensor>,
}

/// A structured tensor, level by level.
#[derive(Clone, Debug)]
pub(crate) struct Flat {
    pub(crate) tensor: Arc<Tensor>,
    pub(crate) levels: Vec<FlatLevel>,
    pub(crate) values: Arc<Tensor>,
    /// `fibres[k]` stands for what is below `k` levels, in programs that are being lowered: its indices are a position
    /// and the indices that are left.
    pub(crate) fibres: Vec<Symbol>,
}

/// A level of a structured tensor.
#[derive(Clone, Debug)]
pub(crate) struct FlatLevel {
    pub(crate) level: Level,
    /// The dimension that it stores, and its size.
    pub(crate) dimension: usize,
    pub(crate) size: Expr,
    /// Its arrays, in the order of the level's file.
    pub(crate) arrays: Vec<Arc<Tensor>>,
    /// How many positions there are.
    pub(crate) positions: Expr,
}

impl FlatLevel {
    /// An element of an array, as an index.
    pub(crate) fn load(&self, array: usize, at: &Expr) -> Expr {
        self.arrays[array].load([at.clone()]).cast(DType::I64)
    }
}

impl Flat {
    /// The arrays of a tensor. Sizes that they bring are added to `hidden`.
    ///
    /// # Errors
    ///
    /// The first level that nothing can be stored in.
    pub(crate) fn of(tensor: &Arc<Tensor>, hidden: &mut Vec<Symbol>) -> Result<Flat, Level> {
        let name = tensor.symbol.name();
        let array = |what: String, dtype: DType, length: &Expr| {
            Arc::new(Tensor::dense(Symbol::new(what), dtype, vec![length.clone()], Role::Input))
        };
        let mut above = Expr::int(1);
        let mut all = Vec::new();
        for (k, (level, dimension)) in tensor.format.levels.iter().zip(tensor.format.order()).enumerate() {
            let kind = levels::of(level.kind).ok_or(*level)?;
            let counted = kind.hidden().iter().map(|what| {
                let count = Symbol::new(format!("{name}.{what}{k}"));
                hidden.push(count.clone());
                Expr::var(&count)
            });
            let counts = Counts { above, size: tensor.shape[dimension].clone(), hidden: counted.collect() };
            // Indices are i64 where the data needs it: where the coordinates are known to.
            let wide = counts.size.as_int().is_some_and(|size| size > i64::from(i32::MAX));
            let index = level.index.unwrap_or(if wide { DType::I64 } else { DType::I32 });
            let of =
                |a: &ArrayKind| array(format!("{name}.{}{k}", a.name), a.dtype.unwrap_or(index), &(a.length)(&counts));
            let arrays = kind.arrays().iter().map(of).collect();
            above = kind.positions(&counts);
            all.push(FlatLevel { level: *level, dimension, size: counts.size, arrays, positions: above.clone() });
        }
        let values = array(format!("{name}.val"), tensor.dtype, &above);
        let fibres = (0..all.len()).map(|k| Symbol::new(format!("{name}.fibre{k}"))).collect();
        Ok(Flat { tensor: tensor.clone(), levels: all, values, fibres })
    }

    /// All arrays, as parameters.
    pub(crate) fn arrays(&self) -> Vec<Array> {
        let mut out = Vec::new();
        for (k, level) in self.levels.iter().enumerate() {
            let names = levels::of(level.level.kind).into_iter().flat_map(|kind| kind.arrays());
            let one = |(a, t): (&ArrayKind, &Arc<Tensor>)| Array { level: Some(k), name: a.name, tensor: t.clone() };
            out.extend(names.zip(&level.arrays).map(one));
        }
        out.push(Array { level: None, name: "val", tensor: self.values.clone() });
        out
    }
}

impl Layout {
    /// The layout of a program all of whose tensors are dense.
    pub(crate) fn dense(func: &Func) -> Layout {
        Layout { params: func.params.iter().map(|_| Parameter::Dense).collect(), hidden: Vec::new() }
    }
}
