//! Adaptation of generated values to a structured parameter's format: no elements outside of a triangle, equal elements
//! across the diagonal of a symmetric matrix, one element per fibre of a `point` level.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use taffeta_ast::format::{Format, LevelKind};
use taffeta_ast::{Buffer, Literal, Value};

/// Restricts a value to its format. Elements that the format cannot store become the fill, and elements that share a
/// stored value get the value of the stored one. Where only one of several elements fits, it is chosen at random.
pub fn fit(made: Value, format: &Format, fill: Literal, rng: &mut ChaCha8Rng) -> Value {
    let single: Vec<usize> = (0..format.levels.len()).filter(|k| format.levels[*k].kind == LevelKind::Point).collect();
    if single.is_empty() && format.squares().next().is_none() {
        return made;
    }
    let shape = made.shape().to_vec();
    let place = |e: usize| made.indices_of(e);
    let mut order: Vec<usize> = (0..made.data().len()).collect();
    if !single.is_empty() {
        order.shuffle(rng);
    }
    // Coordinates above each single-element level that already has its element.
    let mut taken: HashSet<(usize, Vec<Option<i64>>)> = HashSet::new();
    let mut alone = |at: &[i64]| {
        single.iter().all(|k| taken.insert((*k, format.coords[..*k].iter().map(|c| c.value(at)).collect())))
    };
    order.retain(|e| {
        let at = place(*e);
        format.stored_for(&at).as_ref() == Some(&at) && alone(&at)
    });
    let kept = order.iter().flat_map(|e| format.others(&place(*e)).into_iter().map(|at| (at, *e)));
    if made.places().is_some() {
        let (at, from): (Vec<Vec<i64>>, Vec<usize>) = kept.unzip();
        let positions: Vec<i64> = (0..from.len() as i64).collect();
        let mut data = Buffer::zeros(made.dtype(), from.len());
        taffeta_ast::coordinates::place(made.data(), &from, &positions, &mut data);
        return Value::summed(shape, at.concat(), &data, fill).unwrap_or(made);
    }
    let mut data = Buffer::zeros(made.dtype(), made.data().len());
    for e in 0..data.len() {
        data.set(e, fill);
    }
    for (at, e) in kept {
        let to = at.iter().zip(&shape).fold(0, |to, (i, n)| to * n + *i as usize);
        data.set(to, made.data().get(e));
    }
    Value::new(shape, data).unwrap_or(made)
}
