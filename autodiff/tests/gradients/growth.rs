//! Length of gradients, in proportion to that of the program. (The time to make them is measured by
//! `benches/growth.rs`.)

use crate::check::program;
use taffeta_autodiff::{Kind, Request, differentiate};

/// Builds a chain of `n` tensors, each computed from its predecessor.
fn chain(n: usize) -> String {
    let before = |k: usize| if k == 0 { "x".to_string() } else { format!("t{}", k - 1) };
    let lines: String = (0..n).map(|k| format!("    t{k} = sin({}) * 1.5 + x\n", before(k))).collect();
    format!("def f(x: f64[n]):\n{lines}    return t{}\n", n - 1)
}

/// Builds a program that overwrites one tensor `n` times.
fn overwritten(n: usize) -> String {
    format!("def f(x: f64[n]):\n    y = x * 1.0\n{}    return y\n", "    y[...] = sin(y) * 1.5 + x\n".repeat(n))
}

/// Counts the statements in the gradient of a program.
fn statements(text: &str) -> usize {
    let func = program(text);
    let wrt = ["x".to_string()];
    let gradient = differentiate(&Request::new(Kind::Vjp, "g", &func, &wrt)).unwrap_or_else(|d| panic!("{d}"));
    let mut count = 0;
    gradient.body.walk(&mut |_| count += 1);
    count
}

#[test]
fn derivatives_of_long_programs_grow_linearly() {
    let body = || {
        for (name, make) in [("chain", chain as fn(usize) -> String), ("overwritten", overwritten)] {
            let counts = [50, 100, 200].map(|n| statements(&make(n)));
            assert_eq!((counts[1] - counts[0]) * 2, counts[2] - counts[1], "{name}: {counts:?}");
        }
    };
    let thread = std::thread::Builder::new().stack_size(1 << 29).spawn(body).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
