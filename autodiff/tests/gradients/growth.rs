//! Gradients take time in proportion to the length of the program.

use crate::check::program;
use std::time::{Duration, Instant};
use taffeta_autodiff::{Kind, Request, differentiate};

/// `n` tensors, each made of the one before.
fn chain(n: usize) -> String {
    let before = |k: usize| if k == 0 { "x".to_string() } else { format!("t{}", k - 1) };
    let lines: String = (0..n).map(|k| format!("    t{k} = sin({}) * 1.5 + x\n", before(k))).collect();
    format!("def f(x: f64[n]):\n{lines}    return t{}\n", n - 1)
}

/// One tensor that is overwritten `n` times.
fn overwritten(n: usize) -> String {
    format!("def f(x: f64[n]):\n    y = x * 1.0\n{}    return y\n", "    y[...] = sin(y) * 1.5 + x\n".repeat(n))
}

/// The least time of several tries to differentiate a program.
fn time(text: &str) -> Duration {
    let func = program(text);
    let wrt = ["x".to_string()];
    let once = || {
        let start = Instant::now();
        differentiate(&Request::new(Kind::Vjp, "g", &func, &wrt)).unwrap_or_else(|d| panic!("{d}"));
        start.elapsed()
    };
    (0..3).map(|_| once()).min().expect("three tries")
}

#[test]
fn long_programs() {
    let body = || {
        for (name, make) in [("chain", chain as fn(usize) -> String), ("overwritten", overwritten)] {
            let (short, long) = (time(&make(75)), time(&make(300)));
            println!("{name}: {short:?}, {long:?}");
            // 4 in proportion, 16 by the square, 64 by the cube; other tests run beside this one.
            assert!(long < short * 24, "{name}: four times as long a program takes {long:?} after {short:?}");
        }
    };
    let thread = std::thread::Builder::new().stack_size(1 << 29).spawn(body).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
