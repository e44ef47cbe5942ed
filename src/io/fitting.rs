//! Values that are made for a structured parameter, as its format can hold them: nothing beside a triangle, equal
//! elements across the diagonal of a symmetric matrix, one element in a fibre of a `point`.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use taffeta_ast::format::{Format, LevelKind};
use taffeta_ast::{Buffer, Literal, Value};

/// The value, where the format has room for it: what it has no room for is the fill, and what it stores once for two
/// elements is that of the one that is stored. Which of several elements is left is drawn.
pub fn fit(made: Value, format: &Format, fill: Literal, rng: &mut ChaCha8Rng) -> Value {
    let single: Vec<usize> = (0..format.levels.len()).filter(|k| format.levels[*k].kind == LevelKind::Point).collect();
    if single.is_empty() && format.squares().next().is_none() {
        return made;
    }
    let shape = made.shape().to_vec();
    let place = |e: usize| match made.places() {
        Some(places) => places.indices[e * shape.len()..(e + 1) * shape.len()].to_vec(),
        None => unravel(e, &shape),
    };
    let mut order: Vec<usize> = (0..made.data().len()).collect();
    if !single.is_empty() {
        order.shuffle(rng);
    }
    // Of each level of one element, the coordinates above it.
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

/// The indices of element `e` in row-major order.
fn unravel(mut e: usize, shape: &[usize]) -> Vec<i64> {
    let mut at = vec![0; shape.len()];
    for (i, n) in at.iter_mut().zip(shape).rev() {
        *i = (e % n) as i64;
        e /= n;
    }
    at
}
