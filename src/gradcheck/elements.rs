//! Independent numbers of a value: its elements, only the stored ones of a structured value, and a single number for
//! elements that share one stored value.

use std::collections::HashMap;
use taffeta_ast::Value;

/// Maps each element to the index of its number; `None` if every element is a number of its own.
fn own(value: &Value) -> Option<Vec<usize>> {
    let shared = value.places()?.stored_as.as_ref()?;
    let mut numbers: HashMap<i64, usize> = HashMap::new();
    let number = |stored: &i64| {
        let next = numbers.len();
        *numbers.entry(*stored).or_insert(next)
    };
    Some(shared.iter().map(number).collect())
}

/// Returns how many independent numbers the value has.
pub(super) fn count(value: &Value) -> usize {
    own(value).map_or(value.data().len(), |own| own.iter().max().map_or(0, |most| most + 1))
}

/// Returns the independent numbers of a value.
pub(super) fn numbers(value: &Value) -> Vec<f64> {
    let all = value.numbers();
    let Some(own) = own(value) else { return all };
    let mut numbers = vec![0.0; count(value)];
    own.iter().zip(all).for_each(|(number, v)| numbers[*number] = v);
    numbers
}

/// Concatenates the numbers of all values.
pub(super) fn flat(all: &[Value]) -> Vec<f64> {
    all.iter().flat_map(numbers).collect()
}

/// Replaces the numbers of a value, keeping its pattern.
pub(super) fn like(value: &Value, numbers: Vec<f64>) -> Value {
    let all = match own(value) {
        Some(own) => own.iter().map(|number| numbers[*number]).collect(),
        None => numbers,
    };
    value.with_numbers(all).expect("the value has as many floats")
}

/// Returns the indices of number `k`; of several elements that share it, those of the first.
pub(super) fn index(value: &Value, k: usize) -> Vec<usize> {
    let element = own(value).and_then(|own| own.iter().position(|number| *number == k)).unwrap_or(k);
    value.indices_of(element).into_iter().map(|i| i as usize).collect()
}

/// Formats number `k` as an access in a program.
pub(super) fn place(name: &str, value: &Value, k: usize) -> String {
    match value.shape() {
        [] => format!("`{name}`"),
        _ => {
            let at: Vec<String> = index(value, k).iter().map(ToString::to_string).collect();
            format!("`{name}[{}]`", at.join(", "))
        }
    }
}
