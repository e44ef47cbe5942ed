//! Arrays of a tensor that the program makes: those whose lengths depend on counts have rooms, in which they grow.

use crate::level::{Counts, TensorLevel};
use crate::level_assembly::{AssembledArrays, AssembledLevel, Room};
use crate::levels;
use std::sync::Arc;
use taffeta_ast::format::LevelKind;
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, ExprKind, Literal, Symbol, Tensor};

/// How the arrays of a tensor are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Making {
    /// A list of writes, which has no first positions.
    List,
    /// Each element is entered in the order of the levels, or at a computed position.
    Elements,
    /// Each element is entered at the next position of its fibre ([`levels::SCATTERED`]).
    Scattered,
}

/// Builds a scalar that counts.
pub(super) fn count(symbol: &Symbol) -> Arc<Tensor> {
    Arc::new(Tensor::dense(symbol.clone(), DType::I64, Vec::new(), Role::Workspace))
}

fn scalar(name: String) -> Arc<Tensor> {
    count(&Symbol::new(name))
}

/// Array to be placed in a room.
struct Entry {
    array: Arc<Tensor>,
    length: Expr,
    first: Option<Expr>,
    /// Level, and number of the array in it; `None` for the values. Extra arrays follow those of the level.
    place: Option<(usize, usize)>,
}

/// Gives the arrays of a tensor that depend on counts rooms; their shape is the length of the room. `sizes` are those
/// of each level, with its counts.
pub(super) fn arrays(
    tensor: &Tensor,
    all: &mut [TensorLevel],
    sizes: Vec<(Counts, Vec<Arc<Tensor>>)>,
    values: &mut Arc<Tensor>,
    making: Making,
) -> AssembledArrays {
    let is_list = making == Making::List;
    let name = tensor.symbol.name();
    let (mut entries, mut levels) = (Vec::new(), Vec::new());
    // Whether positions of the levels above may have no element.
    let mut may_be_empty = false;
    for ((k, level), (own, hidden)) in all.iter().enumerate().zip(sizes) {
        let kind = match making == Making::Scattered && k + 1 == all.len() {
            true => levels::SCATTERED,
            false => levels::assembly(level.level.kind),
        };
        let below = &all[k + 1..];
        let is_last = below.iter().all(|l| matches!(l.level.kind, LevelKind::Singleton | LevelKind::Offset));
        let extra: Vec<Arc<Tensor>> = kind.extra_counts().iter().map(|c| scalar(format!("{name}.{c}{k}"))).collect();
        let parents = own.above.clone();
        let mut counts = own;
        counts.hidden.extend(extra.iter().map(|count| count.load([])));
        let has_first =
            levels::of(level.level.kind).is_some_and(|f| f.arrays().first().is_some_and(|a| a.name == "pos"));
        let mut extras = Vec::new();
        for (number, array) in level.arrays.iter().enumerate() {
            if is_list && has_first && number == 0 {
                continue;
            }
            let first = kind.initial(level, number);
            // Coordinates below positions that all have an element are stored with it.
            let first = first.filter(|_| level.level.kind != LevelKind::Singleton || may_be_empty);
            let length = array.shape[0].clone();
            entries.push(Entry { array: array.clone(), length, first, place: Some((k, number)) });
        }
        let array = |what: &str, dtype: DType, length: &Expr| {
            let symbol = Symbol::new(format!("{name}.{what}{k}"));
            Arc::new(Tensor::dense(symbol, dtype, vec![length.clone()], Role::Workspace))
        };
        for extra in kind.extras() {
            extras.push(array(extra.name, extra.dtype.unwrap_or(DType::I64), &(extra.length)(&counts)));
        }
        extras.extend(kind.extra_values().map(|length| array("run_val", tensor.dtype, &length(&counts))));
        for (number, array) in extras.iter().enumerate() {
            let number = level.arrays.len() + number;
            let (length, first) = (array.shape[0].clone(), kind.initial(level, number));
            entries.push(Entry { array: array.clone(), length, first, place: Some((k, number)) });
        }
        // Below a list whose positions all have an element, so have those of the levels below.
        may_be_empty = match kind.fills() {
            true => true,
            false => may_be_empty && !(has_first && (kind.is_ordered() || !kind.opens())),
        };
        levels.push(AssembledLevel {
            level: level.clone(),
            how: kind,
            counts: hidden.into_iter().chain(extra).collect(),
            opened: (has_first && !is_list && kind.opens()).then(|| scalar(format!("{name}.opened{k}"))),
            parents,
            extras,
            index: index_type(level),
            is_last,
        });
    }
    let fill = Expr::literal(tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype)), tensor.dtype);
    let first = may_be_empty.then(|| fill.clone());
    entries.push(Entry { array: values.clone(), length: values.shape[0].clone(), first, place: None });

    let (mut rooms, mut fixed): (Vec<Room>, Vec<_>) = (Vec::new(), Vec::new());
    for Entry { array, length, first, place } in entries {
        if !length.any(&mut |e| matches!(e.kind(), ExprKind::Load(..))) {
            fixed.push((array, first));
            continue;
        }
        let room = match rooms.iter().position(|room| room.used == length) {
            Some(room) => &mut rooms[room],
            None => {
                let level = place.map_or_else(String::new, |(k, _)| k.to_string());
                let what = match place {
                    Some((_, 0)) if array.symbol.name().ends_with(&format!(".pos{level}")) => "parents".to_string(),
                    Some((k, _)) if rooms.iter().any(|r| r.length.symbol.name() == format!("{name}.room{k}")) => {
                        let own = array.symbol.name().rsplit('.').next().unwrap_or_default();
                        format!("{}_room", own.trim_end_matches(char::is_numeric))
                    }
                    _ => "room".to_string(),
                };
                rooms.push(Room { length: scalar(format!("{name}.{what}{level}")), used: length, arrays: Vec::new() });
                rooms.last_mut().unwrap_or_else(|| unreachable!("one was added"))
            }
        };
        let array = Arc::new(Tensor { shape: vec![room.length.load([])], ..(*array).clone() });
        match place {
            Some((k, number)) if number < all[k].arrays.len() => {
                all[k].arrays[number] = array.clone();
                levels[k].level.arrays[number] = array.clone();
            }
            Some((k, number)) => levels[k].extras[number - all[k].arrays.len()] = array.clone(),
            None => *values = array.clone(),
        }
        room.arrays.push((array, first));
    }
    let shares = !tensor.format.is_injective();
    let value = shares.then(|| {
        let symbol = Symbol::new(format!("{name}.value"));
        Arc::new(Tensor::dense(symbol, tensor.dtype, Vec::new(), Role::Workspace))
    });
    AssembledArrays { levels, rooms, fixed, values: values.clone(), fill, value }
}

/// Returns the type of a level's indices.
fn index_type(level: &TensorLevel) -> Option<DType> {
    let kinds = levels::of(level.level.kind)?.arrays();
    let array = kinds.iter().zip(&level.arrays).find(|(kind, _)| !kind.positions && kind.dtype.is_none());
    array.map(|(_, array)| array.dtype)
}
