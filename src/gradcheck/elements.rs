//! The numbers of a value that can change by themselves: its elements, of structured values those that are stored, one
//! for all that are stored as one value.

use std::collections::HashMap;
use taffeta_ast::Value;

/// For each element which of the value's numbers it is.
fn own(value: &Value) -> Option<Vec<usize>> {
    let shared = value.places()?.stored_as.as_ref()?;
    let mut numbers: HashMap<i64, usize> = HashMap::new();
    let number = |stored: &i64| {
        let next = numbers.len();
        *numbers.entry(*stored).or_insert(next)
    };
    Some(shared.iter().map(number).collect())
}

/// How many numbers there are.
pub(super) fn count(value: &Value) -> usize {
    own(value).map_or(value.data().len(), |own| own.iter().max().map_or(0, |most| most + 1))
}

/// The numbers of a value.
pub(super) fn numbers(value: &Value) -> Vec<f64> {
    let all = value.numbers();
    let Some(own) = own(value) else { return all };
    let mut numbers = vec![0.0; count(value)];
    own.iter().zip(all).for_each(|(number, v)| numbers[*number] = v);
    numbers
}

/// The numbers of all values, one after the other.
pub(super) fn flat(all: &[Value]) -> Vec<f64> {
    all.iter().flat_map(numbers).collect()
}

/// Other numbers in the same places.
pub(super) fn like(value: &Value, numbers: Vec<f64>) -> Value {
    let all = match own(value) {
        Some(own) => own.iter().map(|number| numbers[*number]).collect(),
        None => numbers,
    };
    value.with_numbers(all).expect("as many floats")
}

/// The indices of the number `k`; of several elements that are one, the first.
pub(super) fn index(value: &Value, k: usize) -> Vec<usize> {
    let ndim = value.shape().len();
    if let Some(places) = value.places() {
        let element = own(value).map_or(Some(k), |own| own.iter().position(|number| *number == k)).unwrap_or(k);
        return places.indices[element * ndim..(element + 1) * ndim].iter().map(|i| *i as usize).collect();
    }
    let (mut at, mut rest) = (value.shape().to_vec(), k);
    for d in at.iter_mut().rev() {
        let n = *d;
        *d = rest % n;
        rest /= n;
    }
    at
}

/// The number `k`, as a program writes it.
pub(super) fn place(name: &str, value: &Value, k: usize) -> String {
    match value.shape() {
        [] => format!("`{name}`"),
        _ => {
            let at: Vec<String> = index(value, k).iter().map(ToString::to_string).collect();
            format!("`{name}[{}]`", at.join(", "))
        }
    }
}
