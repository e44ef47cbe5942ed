//! Arrays that represent a tensor in a format, as parameters of the lowered program.

mod made;

pub(crate) use made::Making;

use crate::coordinates::spaces;
use crate::level::{ArrayKind, Counts, FibreSlots, TensorLevel};
use crate::level_assembly::AssembledArrays;
use crate::levels;
use std::sync::Arc;
use taffeta_ast::format::{Contract, Coord, Level, LevelKind};
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, Func, Literal, Op, Symbol, Tensor};

/// Parameters of the lowered program, in the order of the program's own.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Lowered form of each parameter of the program.
    pub params: Vec<Parameter>,
    /// Hidden sizes, such as numbers of positions: sizes of the lowered program that follow the program's own.
    pub hidden: Vec<Symbol>,
    /// Levels of each parameter and then of each result of the program, outermost first; empty for a dense tensor, and
    /// for one that is stored over a parameter's pattern.
    pub levels: Vec<Vec<LevelLayout>>,
}

/// Lowered form of a parameter.
#[derive(Clone, Debug)]
pub enum Parameter {
    /// Dense tensor, passed unchanged.
    Dense,
    /// Arrays of the levels, outermost first, then the values. A parameter stored over an earlier parameter's pattern
    /// has its values alone.
    Stored(Vec<Array>),
}

/// Level of a structured parameter, as the lowered program sees it.
#[derive(Clone, Debug)]
pub struct LevelLayout {
    /// Level with its options.
    pub level: Level,
    /// Number of the level's arrays: the next ones of the parameter, in order.
    pub arrays: usize,
    /// Hidden sizes of the level: the next ones in [`Layout::hidden`], in order.
    pub hidden: Vec<Symbol>,
    /// Number of coordinates: the dimension's size, if the level stores a dimension.
    pub size: Expr,
    /// Requirements on arrays borrowed from a caller; `None` if they cannot be borrowed.
    pub contract: Option<Contract>,
}

/// Array of a tensor in a format.
#[derive(Clone, Debug)]
pub struct Array {
    /// Number of the level that the array belongs to; `None` for the values.
    pub level: Option<usize>,
    /// Name in pictures of the level: `pos`, `crd`, `val`.
    pub name: &'static str,
    /// Parameter of the lowered program.
    pub tensor: Arc<Tensor>,
}

/// Structured tensor, level by level.
#[derive(Clone, Debug)]
pub struct TensorLevels {
    /// Tensor that the levels store.
    pub tensor: Arc<Tensor>,
    /// Levels in traversal order, outermost first.
    pub levels: Vec<TensorLevel>,
    /// Levels in storage order, if it differs: below `sliced`, traversal goes by fibre and not by slot.
    stored: Option<Vec<TensorLevel>>,
    pub(crate) values: Arc<Tensor>,
    /// Symbols of fibres in a program being lowered: `fibres[k]` stands for the subtree below `k` levels, indexed by
    /// its positions, the coordinate above it (`lower::cursor::PATH`), and the remaining coordinates.
    pub(crate) fibres: Vec<Symbol>,
    /// Arrays by which the program makes the tensor; `None` for other tensors.
    pub(crate) assembly: Option<Arc<AssembledArrays>>,
}

/// Use of a tensor's arrays.
enum Use<'h> {
    /// Arrays of the caller, whose hidden sizes are added.
    Given(&'h mut Vec<Symbol>),
    /// Workspace into whose last level elements are inserted.
    Workspace,
    /// Arrays that the program makes.
    Made(Making),
}

impl TensorLevels {
    /// Builds the arrays of a tensor. Their hidden sizes are added to `hidden`.
    ///
    /// # Errors
    ///
    /// The first level without an implementation.
    pub fn of(tensor: &Arc<Tensor>, hidden: &mut Vec<Symbol>) -> Result<TensorLevels, Level> {
        TensorLevels::used(tensor, Use::Given(hidden))
    }

    /// Builds the arrays of a tensor that the program makes, or of the list of its writes.
    pub(crate) fn made(tensor: &Arc<Tensor>, making: Making) -> Option<TensorLevels> {
        TensorLevels::used(tensor, Use::Made(making)).ok()
    }

    /// Builds the arrays of a local tensor into whose last level elements are inserted; `None` if its format does not
    /// allow insertion.
    pub(crate) fn workspace(tensor: &Arc<Tensor>) -> Option<TensorLevels> {
        if !tensor.format.inserts() {
            return None;
        }
        TensorLevels::used(tensor, Use::Workspace).ok()
    }

    fn used(tensor: &Arc<Tensor>, mut by: Use<'_>) -> Result<TensorLevels, Level> {
        let role = match by {
            Use::Given(_) => Role::Input,
            Use::Made(_) if tensor.role == Role::Result => Role::Result,
            Use::Workspace | Use::Made(_) => Role::Workspace,
        };
        let depth = tensor.format.levels.len();
        let name = tensor.symbol.name();
        let array = |what: String, dtype: DType, length: &Expr| {
            Arc::new(Tensor::dense(Symbol::new(what), dtype, vec![length.clone()], role))
        };
        let mut above = Expr::int(1);
        let (mut all, mut sizes) = (Vec::new(), Vec::new());
        let mut scalars: Vec<Vec<Arc<Tensor>>> = Vec::new();
        let spaces = spaces(&tensor.format, &tensor.shape);
        for (k, ((level, coord), space)) in
            tensor.format.levels.iter().zip(&*tensor.format.coords).zip(spaces).enumerate()
        {
            let inserts = matches!(by, Use::Workspace) && k + 1 == depth;
            let kind = if inserts { levels::WORKSPACE } else { levels::of(level.kind).ok_or(*level)? };
            let own: Vec<Symbol> = kind.hidden().iter().map(|what| Symbol::new(format!("{name}.{what}{k}"))).collect();
            let hidden: Vec<Expr> = match &mut by {
                Use::Given(hidden) => {
                    hidden.extend(own.iter().cloned());
                    own.iter().map(Expr::var).collect()
                }
                _ => {
                    scalars.push(own.iter().map(made::count).collect());
                    scalars[k].iter().map(|count| count.load([])).collect()
                }
            };
            let size = space.size.unwrap_or_else(|| hidden.first().cloned().unwrap_or(Expr::int(0)));
            // The size of a sum or difference of indices may be negative where a tensor is empty.
            let sums = matches!(coord, Coord::Apply(Op::Add | Op::Sub, _));
            let length = if sums { size.max_with(&Expr::int(0)) } else { size.clone() };
            let counts = Counts { above, size: length, hidden };
            // Indices are i64 where the coordinates are known to exceed i32.
            let wide = size.as_int().is_some_and(|size| size > i64::from(i32::MAX));
            let index = level.index.unwrap_or(if wide { DType::I64 } else { DType::I32 });
            let of =
                |a: &ArrayKind| array(format!("{name}.{}{k}", a.name), a.dtype_beside(index), &(a.length)(&counts));
            let arrays: Vec<Arc<Tensor>> = kind.arrays().iter().map(of).collect();
            above = kind.positions(&counts);
            let (coord, low, positions) = (coord.clone(), space.low, above.clone());
            all.push(TensorLevel {
                level: *level,
                coord,
                low,
                size,
                arrays,
                hidden: own,
                counts: counts.hidden.clone(),
                positions,
                slots: None,
                inserts,
            });
            sizes.push(counts);
        }
        let mut values = array(format!("{name}.val"), tensor.dtype, &above);
        let assembly = match by {
            Use::Made(making) => {
                let counts = sizes.into_iter().zip(scalars).collect();
                Some(Arc::new(made::arrays(tensor, &mut all, counts, &mut values, making)))
            }
            _ => None,
        };
        let (levels, stored) = by_fibre(all);
        let fibres = (0..levels.len()).map(|k| Symbol::new(format!("{name}.fibre{k}"))).collect();
        Ok(TensorLevels { tensor: tensor.clone(), levels, stored, values, fibres, assembly })
    }

    /// Builds a tensor stored over this one's pattern: it shares the index arrays and has values of its own.
    pub(crate) fn followed_by(&self, tensor: &Arc<Tensor>) -> TensorLevels {
        let name = tensor.symbol.name();
        let (symbol, shape) = (Symbol::new(format!("{name}.val")), self.values.shape.clone());
        let values = Tensor { memory: tensor.memory, ..Tensor::dense(symbol, tensor.dtype, shape, tensor.role) };
        let fibres = (0..self.levels.len()).map(|k| Symbol::new(format!("{name}.fibre{k}"))).collect();
        let (levels, stored) = (self.levels.clone(), self.stored.clone());
        let assembly = self.assembly.clone();
        TensorLevels { tensor: tensor.clone(), levels, stored, values: Arc::new(values), fibres, assembly }
    }

    /// Returns the value of elements that are not stored.
    pub(crate) fn fill(&self) -> Literal {
        self.tensor.format.fill.unwrap_or(Literal::zero(self.tensor.dtype))
    }

    /// Returns all arrays as parameters, the values last.
    pub fn arrays(&self) -> Vec<Array> {
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

impl TensorLevels {
    /// Returns the layout of each level.
    pub(crate) fn layout(&self) -> Vec<LevelLayout> {
        let one = |(k, l): (usize, &TensorLevel)| LevelLayout {
            level: l.level,
            arrays: l.arrays.len(),
            hidden: l.hidden.clone(),
            size: l.size.clone(),
            contract: levels::contract(&self.tensor.format, k),
        };
        self.as_stored().iter().enumerate().map(one).collect()
    }

    /// Returns the levels in storage order, outermost first.
    fn as_stored(&self) -> &[TensorLevel] {
        self.stored.as_ref().unwrap_or(&self.levels)
    }
}

/// Returns the levels in traversal order, and in storage order if it differs. Below `sliced`, a stored position
/// identifies a slot and a fibre; in traversal order it identifies the fibre, and the last level steps through the
/// slots.
fn by_fibre(stored: Vec<TensorLevel>) -> (Vec<TensorLevel>, Option<Vec<TensorLevel>>) {
    let Some(k) = stored.iter().position(|l| l.level.kind == LevelKind::Sliced) else { return (stored, None) };
    let (above, [sliced, within @ .., last]) = stored.split_at(k) else { return (stored, None) };
    let mut positions = above.last().map_or(Expr::int(1), |l| l.positions.clone());
    let mut levels = above.to_vec();
    for level in within {
        positions = positions.times(&level.size);
        levels.push(TensorLevel { positions: positions.clone(), ..level.clone() });
    }
    let within = within.iter().map(|l| l.size.clone()).collect();
    let first = (!above.is_empty()).then(|| sliced.arrays[0].clone());
    let (hidden, counts) = (sliced.hidden.clone(), sliced.counts.clone());
    levels.push(TensorLevel { hidden, counts, slots: Some(FibreSlots { within, first }), ..last.clone() });
    (levels, Some(stored))
}

impl Layout {
    /// Builds the layout of a program without structured tensors.
    pub(crate) fn dense(func: &Func) -> Layout {
        let dense = func.params.iter().map(|_| (Parameter::Dense, Vec::new()));
        let (params, mut levels): (_, Vec<Vec<LevelLayout>>) = dense.unzip();
        levels.resize(levels.len() + func.results.len(), Vec::new());
        Layout { params, hidden: Vec::new(), levels }
    }
}
