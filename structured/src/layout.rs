//! Which arrays a tensor in a format consists of: parameters of the lowered program.

use crate::coordinates::spaces;
use crate::levels::{self, ArrayKind, Counts, LevelFormat};
use std::sync::Arc;
use taffeta_ast::format::{Contract, Coord, Level, LevelKind};
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, Func, Literal, Op, Symbol, Tensor};

/// What the parameters of the lowered program are, in the order of the program's own.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// For each parameter of the program, what it became.
    pub params: Vec<Parameter>,
    /// Numbers of positions: sizes of the lowered program that come after the program's own.
    pub hidden: Vec<Symbol>,
    /// For each parameter of the program, its levels, outermost first; none of dense ones.
    pub levels: Vec<Vec<LevelLayout>>,
}

/// What became of a parameter.
#[derive(Clone, Debug)]
pub enum Parameter {
    /// It is dense, and is itself.
    Dense,
    /// The arrays of its levels, outermost first, then its elements. Of one that is stored where an earlier parameter
    /// is, the elements alone.
    Stored(Vec<Array>),
}

/// What the lowered program knows of a level of a structured parameter.
#[derive(Clone, Debug)]
pub struct LevelLayout {
    /// The level.
    pub level: Level,
    /// How many of the parameter's arrays are the level's: the next ones, in order.
    pub arrays: usize,
    /// Its numbers in [`Layout::hidden`]: the next ones, in order.
    pub hidden: Vec<Symbol>,
    /// How many coordinates there are: the dimension's size, if it stores one.
    pub size: Expr,
    /// What arrays that a caller lends must be; `None`: they cannot be lent.
    pub contract: Option<Contract>,
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
    /// As loops go through them, outermost first.
    pub(crate) levels: Vec<FlatLevel>,
    /// As they are stored, if that is something else: below `sliced`, fibres are gone through and not slots.
    stored: Option<Vec<FlatLevel>>,
    pub(crate) values: Arc<Tensor>,
    /// `fibres[k]` stands for what is below `k` levels, in programs that are being lowered: its indices are a position
    /// and the indices that are left.
    pub(crate) fibres: Vec<Symbol>,
}

/// A level of a structured tensor.
#[derive(Clone, Debug)]
pub(crate) struct FlatLevel {
    pub(crate) level: Level,
    /// What it stores of an element's indices, less the least of it; and how many coordinates there are.
    pub(crate) coord: Coord,
    pub(crate) low: Expr,
    pub(crate) size: Expr,
    /// Its arrays, in the order of the level's file.
    pub(crate) arrays: Vec<Arc<Tensor>>,
    /// Its numbers that are known only with the data.
    pub(crate) hidden: Vec<Symbol>,
    /// How many positions there are.
    pub(crate) positions: Expr,
    /// Where the coordinates of a fibre stand in slots (below `sliced`): how many fibres there are.
    pub(crate) slots: Option<Expr>,
    /// Whether elements are inserted into it: it belongs to a workspace.
    pub(crate) inserts: bool,
}

impl FlatLevel {
    /// Its kind.
    pub(crate) fn kind(&self) -> Option<&'static dyn LevelFormat> {
        match (&self.slots, self.inserts) {
            (Some(_), _) => Some(levels::SLOTS),
            (None, true) => Some(levels::WORKSPACE),
            (None, false) => levels::of(self.level.kind),
        }
    }

    /// The dimension that it stores, if it stores one.
    pub(crate) fn dimension(&self) -> Option<usize> {
        match self.coord {
            Coord::Dim(d) => Some(d),
            _ => None,
        }
    }

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
        Flat::made(tensor, hidden, false)
    }

    /// The arrays of a local tensor into whose last level elements are inserted; `None`: there is no rule for its
    /// format.
    pub(crate) fn workspace(tensor: &Arc<Tensor>) -> Option<Flat> {
        if !tensor.format.inserts() {
            return None;
        }
        Flat::made(tensor, &mut Vec::new(), true).ok()
    }

    fn made(tensor: &Arc<Tensor>, hidden: &mut Vec<Symbol>, local: bool) -> Result<Flat, Level> {
        let role = if local { Role::Workspace } else { Role::Input };
        let depth = tensor.format.levels.len();
        let name = tensor.symbol.name();
        let array = |what: String, dtype: DType, length: &Expr| {
            Arc::new(Tensor::dense(Symbol::new(what), dtype, vec![length.clone()], role))
        };
        let mut above = Expr::int(1);
        let mut all = Vec::new();
        let spaces = spaces(&tensor.format, &tensor.shape);
        for (k, ((level, coord), space)) in
            tensor.format.levels.iter().zip(&*tensor.format.coords).zip(spaces).enumerate()
        {
            let inserts = local && k + 1 == depth;
            let kind = if inserts { levels::WORKSPACE } else { levels::of(level.kind).ok_or(*level)? };
            let own: Vec<Symbol> = kind.hidden().iter().map(|what| Symbol::new(format!("{name}.{what}{k}"))).collect();
            hidden.extend(own.iter().cloned());
            let size = space.size.unwrap_or_else(|| own.first().map_or(Expr::int(0), Expr::var));
            // Sums of sizes may be less than none where a tensor is empty.
            let sums = matches!(coord, Coord::Apply(Op::Add | Op::Sub, _));
            let length = if sums { size.max_with(&Expr::int(0)) } else { size.clone() };
            let counts = Counts { above, size: length, hidden: own.iter().map(Expr::var).collect() };
            // Indices are i64 where the data needs it: where the coordinates are known to.
            let wide = size.as_int().is_some_and(|size| size > i64::from(i32::MAX));
            let index = level.index.unwrap_or(if wide { DType::I64 } else { DType::I32 });
            let of =
                |a: &ArrayKind| array(format!("{name}.{}{k}", a.name), a.dtype_beside(index), &(a.length)(&counts));
            let arrays = kind.arrays().iter().map(of).collect();
            above = kind.positions(&counts);
            let (coord, low, positions) = (coord.clone(), space.low, above.clone());
            all.push(FlatLevel {
                level: *level,
                coord,
                low,
                size,
                arrays,
                hidden: own,
                positions,
                slots: None,
                inserts,
            });
        }
        let values = array(format!("{name}.val"), tensor.dtype, &above);
        let (levels, stored) = by_fibre(all);
        let fibres = (0..levels.len()).map(|k| Symbol::new(format!("{name}.fibre{k}"))).collect();
        Ok(Flat { tensor: tensor.clone(), levels, stored, values, fibres })
    }

    /// A tensor that is stored where this one is: it has the index arrays of this one, and its own elements.
    pub(crate) fn followed_by(&self, tensor: &Arc<Tensor>) -> Flat {
        let name = tensor.symbol.name();
        let (symbol, shape) = (Symbol::new(format!("{name}.val")), self.values.shape.clone());
        let values = Tensor { memory: tensor.memory, ..Tensor::dense(symbol, tensor.dtype, shape, tensor.role) };
        let fibres = (0..self.levels.len()).map(|k| Symbol::new(format!("{name}.fibre{k}"))).collect();
        let (levels, stored) = (self.levels.clone(), self.stored.clone());
        Flat { tensor: tensor.clone(), levels, stored, values: Arc::new(values), fibres }
    }

    /// The value of what is not stored.
    pub(crate) fn fill(&self) -> Literal {
        self.tensor.format.fill.unwrap_or(Literal::zero(self.tensor.dtype))
    }

    /// All arrays, as parameters.
    pub(crate) fn arrays(&self) -> Vec<Array> {
        let mut out = Vec::new();
        for (k, level) in self.as_stored().iter().enumerate() {
            let names = levels::of(level.level.kind).into_iter().flat_map(|kind| kind.arrays());
            let one = |(a, t): (&ArrayKind, &Arc<Tensor>)| Array { level: Some(k), name: a.name, tensor: t.clone() };
            out.extend(names.zip(&level.arrays).map(one));
        }
        out.push(Array { level: None, name: "val", tensor: self.values.clone() });
        out
    }
}

impl Flat {
    /// What is known of each level.
    pub(crate) fn layout(&self) -> Vec<LevelLayout> {
        let one = |(k, l): (usize, &FlatLevel)| LevelLayout {
            level: l.level,
            arrays: l.arrays.len(),
            hidden: l.hidden.clone(),
            size: l.size.clone(),
            contract: levels::contract(&self.tensor.format, k),
        };
        self.as_stored().iter().enumerate().map(one).collect()
    }

    /// Its levels, outermost first.
    fn as_stored(&self) -> &[FlatLevel] {
        self.stored.as_ref().unwrap_or(&self.levels)
    }
}

/// Levels as loops go through them; and as they are stored, if that is something else. Below `sliced`, a position is
/// that of a slot and a fibre; here it is the fibre's, and the slots are gone through at the last level.
fn by_fibre(stored: Vec<FlatLevel>) -> (Vec<FlatLevel>, Option<Vec<FlatLevel>>) {
    let [sliced, rest @ .., last] = &stored[..] else { return (stored, None) };
    if sliced.level.kind != LevelKind::Sliced {
        return (stored, None);
    }
    let fibres = rest.iter().fold(Expr::int(1), |n, l| n.times(&l.size));
    let slots = FlatLevel { hidden: sliced.hidden.clone(), slots: Some(fibres), ..last.clone() };
    let levels = rest.iter().cloned().chain([slots]).collect();
    (levels, Some(stored))
}

impl Layout {
    /// The layout of a program all of whose tensors are dense.
    pub(crate) fn dense(func: &Func) -> Layout {
        let dense = func.params.iter().map(|_| (Parameter::Dense, Vec::new()));
        let (params, levels) = dense.unzip();
        Layout { params, hidden: Vec::new(), levels }
    }
}
