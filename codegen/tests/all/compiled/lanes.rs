//! Vectorised loops with conditions, compiled to C.

use testkit::lanes::{BODIES_PER_LIBRARY, fault};


#[test]
fn random_bodies_of_vectorised_loops() {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (first, most) = (number("FIRST", 0), number("COUNT", BODIES_PER_LIBRARY));
    for from in (first..first + most).step_by(BODIES_PER_LIBRARY as usize) {
        if let Some(what) = fault(from..(from + BODIES_PER_LIBRARY).min(first + most)) {
            panic!("{what}");
        }
    }
}
