//! Step of gradient descent (criterion), by one program with both passes, by a forward and a backward pass, and by a
//! loop in Rust: `cargo bench --bench descent`.

#[allow(dead_code)] // the bench makes its own steps
#[path = "../examples/logistic/descent.rs"]
mod descent;

use criterion::{Criterion, criterion_group, criterion_main};
use descent::{Data, LOSS, by_plane};
use ndarray::Array1;
use std::path::Path;
use taffeta::Program;

fn steps(c: &mut Criterion) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/logistic/logistic.ft");
    let program = Program::load(&path).unwrap_or_else(|e| panic!("{e}"));
    let data = Data::made(2000, 500, 1);
    let (w, b, decay) = (Array1::from_elem(500, 0.01), 0.1, 1e-4);
    let both = program.compile("loss", &by_plane()).unwrap_or_else(|e| panic!("{e}"));
    let pair = program.differentiate("loss", &by_plane()).unwrap_or_else(|e| panic!("{e}"));
    let fused = || {
        let call = both.call().input("x", data.x.view()).input("y", data.y.view()).scalar("decay", decay);
        let call = call.input("w", w.view()).scalar("b", b).scalar(&format!("{LOSS}.grad"), 1.0);
        call.run().unwrap_or_else(|e| panic!("{e}")).array::<f64>("w.grad").expect("f64")
    };
    let two = || {
        let call = pair.forward().input("x", data.x.view()).input("y", data.y.view()).scalar("decay", decay);
        let (_, tape) = call.input("w", w.view()).scalar("b", b).run().unwrap_or_else(|e| panic!("{e}"));
        let call = pair.backward(&tape).seed_scalar(LOSS, 1.0);
        call.run().unwrap_or_else(|e| panic!("{e}")).array::<f64>("w.grad").expect("f64")
    };
    let plain = || by_hand(&data, &w, b, decay).1;
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1e-3);
    assert!(fused().iter().zip(&plain()).all(|(x, y)| close(*x, *y)), "they compute the same");
    assert!(two().iter().zip(&plain()).all(|(x, y)| close(*x, *y)), "they compute the same");
    let mut group = c.benchmark_group("a step over 2000 x 500");
    group.bench_function("one program", |b| b.iter(fused));
    group.bench_function("two passes", |b| b.iter(two));
    group.bench_function("Rust", |b| b.iter(plain));
    group.finish();
}

/// Computes the loss and its gradient, as one writes them in Rust.
fn by_hand(data: &Data, w: &Array1<f64>, b: f64, decay: f64) -> (f64, Array1<f64>) {
    let n = data.y.len() as f64;
    let (mut loss, mut gradient) = (0.0, w * decay);
    for (x, y) in data.x.outer_iter().zip(&data.y) {
        let margin = y * (x.dot(w) + b);
        loss += if margin > 0.0 { (-margin).exp().ln_1p() } else { margin.exp().ln_1p() - margin };
        gradient.scaled_add(-y / (1.0 + margin.exp()) / n, &x);
    }
    (loss / n + 0.5 * decay * w.dot(w), gradient)
}

criterion_group!(benches, steps);
criterion_main!(benches);
