//! Vectorised loops with conditions, compiled to C.

use testkit::lanes::{TOGETHER, fault};


#[test]
fn random_bodies_of_vectorised_loops() {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (first, most) = (number("FIRST", 0), number("MOST", TOGETHER));
    for from in (first..first + most).step_by(TOGETHER as usize) {
        if let Some(what) = fault(from..(from + TOGETHER).min(first + most)) {
            panic!("{what}");
        }
    }
}
