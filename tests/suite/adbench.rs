//! ADBench's objectives on ADBench's data: values, gradients and Jacobians of compiled C match ADBench's own tests
//! (`golden_*.json`), or difference quotients where those tests expect nothing.

use crate::programs::root;
use ndarray::{ArrayD, IxDyn};
use std::collections::BTreeMap;
use std::path::PathBuf;
use taffeta::{Backend, Function, Gradient, Options, Program, Tape};

/// Input tensor.
#[derive(Clone)]
enum Given {
    Floats(ArrayD<f64>),
    Ints(ArrayD<i32>),
}

type Inputs = BTreeMap<&'static str, Given>;

fn floats(shape: &[usize], data: &[f64]) -> Given {
    Given::Floats(ArrayD::from_shape_vec(IxDyn(shape), data.to_vec()).expect("as many numbers as the shape has"))
}

fn ints(shape: &[usize], data: Vec<i32>) -> Given {
    Given::Ints(ArrayD::from_shape_vec(IxDyn(shape), data).expect("as many numbers as the shape has"))
}

/// Reads a file of ADBench, if it is there.
fn published(name: &str) -> Option<String> {
    let folder = std::env::var_os("TAFFETA_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let file = folder.join("adbench").join(name);
    if !file.is_file() {
        eprintln!("skipped: {} is not there (TAFFETA_DATA names the folder of published data)", file.display());
        return None;
    }
    Some(std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display())))
}

/// Numbers of a file, taken piece by piece in order.
struct Numbers(std::vec::IntoIter<f64>);

impl Numbers {
    fn of(text: &str) -> Numbers {
        let all = text.split_whitespace().map(|w| w.parse().unwrap_or_else(|e| panic!("{w}: {e}")));
        Numbers(all.collect::<Vec<f64>>().into_iter())
    }

    fn next(&mut self, count: usize) -> Vec<f64> {
        let piece: Vec<f64> = self.0.by_ref().take(count).collect();
        assert_eq!(piece.len(), count, "the file ends too early");
        piece
    }

    fn sizes<const N: usize>(&mut self) -> [usize; N] {
        let piece = self.next(N);
        std::array::from_fn(|k| piece[k] as usize)
    }

    fn floats(&mut self, shape: &[usize]) -> Given {
        floats(shape, &self.next(shape.iter().product()))
    }
}

/// Returns the numbers that a test of ADBench expects, under a key of its own.
fn golden(text: &str, key: &str) -> Vec<f64> {
    fn flat(v: &serde_json::Value, out: &mut Vec<f64>) {
        match v {
            serde_json::Value::Array(all) => all.iter().for_each(|v| flat(v, out)),
            v => out.push(v.as_f64().expect("a number")),
        }
    }
    let json: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let mut out = Vec::new();
    flat(&json[key], &mut out);
    out
}

/// Compiles an entry of an example, or its gradient if `wrt` is given.
fn compile(file: &str, entry: &str, wrt: Option<&[&str]>, tape: Tape) -> Function {
    let gradient = wrt.map(|wrt| Gradient::default().wrt(wrt).tape(tape));
    // Short-term memories take long to run, and the others to compile.
    let options = Options::default().optimize(file == "lstm.ft").gradient(gradient).backend(Backend::C);
    let program = Program::load(root().join("examples/adbench").join(file)).unwrap_or_else(|e| panic!("{e}"));
    program.compile(entry, &options).unwrap_or_else(|e| panic!("{file} {entry}: {e}"))
}

/// Runs a function; returns its results one after the other: all of them, or those named in `of`.
fn run(function: &Function, inputs: &Inputs, of: &[&str]) -> Vec<f64> {
    let call = inputs.iter().fold(function.call().threads(1), |call, (name, given)| match given {
        Given::Floats(a) => call.input(name, a.view()),
        Given::Ints(a) => call.input(name, a.view()),
    });
    let out = call.run().unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<&str> = if of.is_empty() { out.names().collect() } else { of.to_vec() };
    let array = |n: &str| out.array::<f64>(n).unwrap_or_else(|e| panic!("{e}")).into_iter();
    names.into_iter().flat_map(array).collect()
}

/// Step of difference quotients.
const STEP: f64 = 2e-4;

/// Returns the derivative of all results by one element of an input: a difference quotient of four values around it,
/// whose error is of the fourth order.
fn quotient(function: &Function, inputs: &Inputs, of: &str, k: usize) -> Vec<f64> {
    let at = |steps: f64| {
        let mut moved = inputs.clone();
        let Some(Given::Floats(a)) = moved.get_mut(of) else { panic!("{of} holds no floats") };
        *a.iter_mut().nth(k).expect("an element") += steps * STEP;
        run(function, &moved, &[])
    };
    let (a, b, c, d) = (at(-2.0), at(-1.0), at(1.0), at(2.0));
    (0..a.len()).map(|i| (a[i] - 8.0 * b[i] + 8.0 * c[i] - d[i]) / (12.0 * STEP)).collect()
}

fn count(inputs: &Inputs, name: &str) -> usize {
    match &inputs[name] {
        Given::Floats(a) => a.len(),
        Given::Ints(a) => a.len(),
    }
}

/// Checks that no two numbers are further apart than `tolerance` times the largest.
fn assert_near(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    assert!(largest > 0.0, "{what}: all values are zero");
    // A maximum must not lose a NaN.
    let apart = found.iter().zip(expected).map(|(a, b)| (a - b).abs() / largest);
    let error = apart.fold(0.0f64, |a, b| if b.is_nan() { b } else { a.max(b) });
    eprintln!("{what}: {} numbers, error {error:.1e}", found.len());
    assert!(error <= tolerance, "{what}: error {error:e}");
}

/// Scalar objective, with its gradient as the example writes it and as derived with each tape.
struct Objective {
    value: Function,
    gradient: Function,
    derived: Vec<(Tape, Function)>,
    wrt: &'static [&'static str],
}

impl Objective {
    fn of(file: &str, wrt: &'static [&'static str]) -> Objective {
        let tapes = [Tape::Auto, Tape::All, Tape::None];
        Objective {
            value: compile(file, "objective", None, Tape::Auto),
            gradient: compile(file, "gradient", None, Tape::Auto),
            derived: tapes.into_iter().map(|t| (t.clone(), compile(file, "objective", Some(wrt), t))).collect(),
            wrt,
        }
    }

    /// Checks that the gradients agree with each other and with about `samples` difference quotients per input; returns
    /// value and gradient.
    fn check(&self, what: &str, inputs: &Inputs, samples: usize) -> (f64, Vec<f64>) {
        let value = run(&self.value, inputs, &[])[0];
        let gradient = run(&self.gradient, inputs, &[]);
        let mut seeded = inputs.clone();
        seeded.insert("out.grad", floats(&[], &[1.0]));
        for (tape, derived) in &self.derived {
            let found = run(derived, &seeded, &[]);
            assert_near(&format!("{what}, tape {tape:?}: value"), &found[..1], &[value], 1e-13);
            assert_near(&format!("{what}, tape {tape:?}: gradient"), &found[1..], &gradient, 1e-13);
        }
        let (mut found, mut expected, mut first) = (Vec::new(), Vec::new(), 0);
        for name in self.wrt {
            for k in (0..count(inputs, name)).step_by(count(inputs, name).div_ceil(samples)) {
                found.push(gradient[first + k]);
                expected.extend(quotient(&self.value, inputs, name, k));
            }
            first += count(inputs, name);
        }
        assert_near(&format!("{what}: difference quotients"), &found, &expected, 1e-8);
        (value, gradient)
    }
}

/// Parses a mixture of Gaussians in the format of ADBench's files.
fn mixture(text: &str) -> Inputs {
    let mut file = Numbers::of(text);
    let [d, k, n] = file.sizes();
    let mut inputs = Inputs::new();
    for (name, shape) in
        [("alphas", vec![k]), ("means", vec![k, d]), ("icf", vec![k, d * (d + 1) / 2]), ("x", vec![n, d])]
    {
        inputs.insert(name, file.floats(&shape));
    }
    inputs.insert("gamma", file.floats(&[]));
    let [m] = file.sizes();
    inputs.insert("m", ints(&[], vec![m as i32]));
    inputs
}

#[test]
fn gradients_of_mixtures_of_gaussians() {
    let (Some(small), Some(expected)) = (published("gmm_test.txt"), published("golden_gmm.json")) else { return };
    let objective = Objective::of("gmm.ft", &["alphas", "means", "icf"]);
    let (value, gradient) = objective.check("gmm", &mixture(&small), 20);
    assert_near("gmm: value", &[value], &golden(&expected, "objective_calculation_correctness.value"), 1e-13);
    let expected = golden(&expected, "jacobian_calculation_correctness.expected_gradient");
    assert_near("gmm: gradient", &gradient, &expected, 1e-13);
    for name in ["gmm_1k_gmm_d2_K5.txt", "gmm_1k_gmm_d10_K5.txt", "gmm_1k_gmm_d20_K10.txt"] {
        if let Some(text) = published(name) {
            objective.check(name, &mixture(&text), 6);
        }
    }
}

/// Parses `p` observations of `n` cameras and `m` points. ADBench's files hold one of each, which stands for all.
fn bundle(text: &str) -> (Inputs, [usize; 3]) {
    let mut file = Numbers::of(text);
    let [n, m, p] = file.sizes();
    let mut repeated = |length: usize, times: usize| file.next(length).repeat(times);
    let inputs = Inputs::from([
        ("cams", floats(&[n, 11], &repeated(11, n))),
        ("points", floats(&[m, 3], &repeated(3, m))),
        ("weights", floats(&[p], &repeated(1, p))),
        ("feats", floats(&[p, 2], &repeated(2, p))),
        ("obs", ints(&[p, 2], (0..p).flat_map(|i| [(i % n) as i32, (i % m) as i32]).collect())),
    ]);
    (inputs, [n, m, p])
}

/// Computes all rows of the Jacobian of one camera that sees one point by difference quotients, in the layout of
/// `jacobian`.
fn quotients_of_one(inputs: &Inputs) -> Vec<f64> {
    let objective = compile("ba.ft", "objective", None, Tape::Auto);
    let columns: Vec<Vec<f64>> = [("cams", 11), ("points", 3), ("weights", 1)]
        .iter()
        .flat_map(|(name, count)| (0..*count).map(|k| quotient(&objective, inputs, name, k)).collect::<Vec<_>>())
        .collect();
    let row = |r: usize| columns.iter().map(move |c| c[r]);
    row(0).chain(row(1)).chain([columns[14][2]]).collect()
}

#[test]
fn jacobian_of_bundle_adjustment() {
    let (Some(text), Some(expected)) = (published("ba_test.txt"), published("golden_ba.json")) else { return };
    let (inputs, _) = bundle(&text);
    let values = run(&compile("ba.ft", "objective", None, Tape::Auto), &inputs, &[]);
    let expect = |key: &str| golden(&expected, &format!("objective_calculation_correctness.{key}"));
    let all = [expect("expected_reproj_err"), expect("expected_weight_err")].concat();
    assert_near("ba: errors", &values, &all, 1e-12);
    // Rows of the reprojection errors, then those of the weights, each with its stored entries only.
    let jacobian = run(&compile("ba.ft", "jacobian", None, Tape::Auto), &inputs, &[]);
    let expected = golden(&expected, "jacobian_calculation_correctness.expected_J_values");
    assert_near("ba: Jacobian", &jacobian, &expected, 1e-13);
    let (mut one, _) = bundle(&text.replacen("2 10 10", "1 1 1", 1));
    let of_one = compile("ba.ft", "jacobian", None, Tape::Auto);
    assert_near("ba: difference quotients", &run(&of_one, &one, &[]), &quotients_of_one(&one), 1e-8);
    // A camera without rotation has a formula of its own, whose derivative must continue that of small rotations.
    let Some(Given::Floats(cam)) = one.get_mut("cams") else { panic!("cameras are floats") };
    cam.iter_mut().take(3).for_each(|axis| *axis = 0.0);
    assert_near("ba, not turned: difference quotients", &run(&of_one, &one, &[]), &quotients_of_one(&one), 1e-8);
}

/// Checks the gradient of the whole against the transpose of its sparse Jacobian, and the Jacobian against difference
/// quotients.
#[test]
fn jacobian_of_bundle_adjustment_with_many_cameras() {
    let Some(text) = published("ba_ba1_n49_m7776_p31843.txt") else { return };
    let (mut inputs, [n, m, p]) = bundle(&text);
    let jacobian = run(&compile("ba.ft", "jacobian", None, Tape::Auto), &inputs, &[]);
    let seed = |k: usize| ((k * 7919) % 1000) as f64 / 500.0 - 1.0;
    let seeds: Vec<f64> = (0..3 * p).map(seed).collect();
    let mut expected = vec![0.0; 11 * n + 3 * m + p];
    for i in 0..p {
        for c in 0..2 {
            let row = &jacobian[(2 * i + c) * 15..][..15];
            let columns = (0..11).map(|k| 11 * (i % n) + k).chain((0..3).map(|k| 11 * n + 3 * (i % m) + k));
            for (k, column) in columns.chain([11 * n + 3 * m + i]).enumerate() {
                expected[column] += row[k] * seeds[2 * i + c];
            }
        }
        expected[11 * n + 3 * m + i] += jacobian[30 * p + i] * seeds[2 * p + i];
    }
    inputs.insert("errors.grad", floats(&[p, 2], &seeds[..2 * p]));
    inputs.insert("weight_errors.grad", floats(&[p], &seeds[2 * p..]));
    let wrt = ["cams", "points", "weights"];
    for tape in [Tape::Auto, Tape::All] {
        let all = compile("ba.ft", "objective", Some(&wrt), tape);
        let found = run(&all, &inputs, &["cams.grad", "points.grad", "weights.grad"]);
        assert_near("ba 49 cameras: all rows at once", &found, &expected, 1e-12);
    }
    let (one, _) = bundle(&text.replacen("49 7776 31843", "1 1 1", 1));
    let jacobian = run(&compile("ba.ft", "jacobian", None, Tape::Auto), &one, &[]);
    assert_near("ba of 49: difference quotients", &jacobian, &quotients_of_one(&one), 1e-8);
}

/// Parses an LSTM and a text in the format of ADBench's files.
fn memory(text: &str) -> Inputs {
    let mut file = Numbers::of(text);
    let [layers, chars, bits] = file.sizes();
    // Rows of bits: the gates of a layer lie side by side in one row, and its biases in the next.
    [
        ("main", vec![layers, 2, 4, bits]),
        ("extra", vec![3, bits]),
        ("state", vec![layers, 2, bits]),
        ("text", vec![chars, bits]),
    ]
    .into_iter()
    .map(|(name, shape)| (name, file.floats(&shape)))
    .collect()
}

#[test]
fn gradients_of_long_short_term_memories() {
    let objective = Objective::of("lstm.ft", &["main", "extra"]);
    for name in ["lstm_lstm_l2_c1024.txt", "lstm_lstm_l4_c1024.txt"] {
        let Some(text) = published(name) else { return };
        let (value, gradient) = objective.check(name, &memory(&text), 20);
        if let (true, Some(expected)) = (name.contains("l2"), published("golden_lstm.json")) {
            // The golden value has eight digits.
            let known = golden(&expected, "objective_calculation_correctness.value");
            assert_near("lstm: value", &[value], &known, 1e-8);
            let known = golden(&expected, "jacobian_calculation_correctness.expected_gradient");
            assert_near("lstm: gradient", &gradient, &known, 1e-12);
        }
    }
}

/// Reads a pose, the measured points, and the model of a hand.
fn hand(text: &str, on_triangles: bool) -> Option<Inputs> {
    let [bones, vertices] = [published("hand_model_bones.txt")?, published("hand_model_vertices.txt")?];
    let rows = |text: &str| -> Vec<Vec<f64>> {
        let number = |w: &str| w.parse().unwrap_or_else(|e| panic!("{w}: {e}"));
        text.lines().map(|l| l.split(':').map(number).collect()).collect()
    };
    // The first column is the name of the bone.
    let nameless: String = bones.lines().map(|l| l.split_once(':').expect("a name").1.to_string() + "\n").collect();
    let (bones, vertices) = (rows(&nameless), rows(&vertices));
    let (count, verts) = (bones.len(), vertices.len());
    let of_bones = |from: usize| -> Vec<f64> { bones.iter().flat_map(|b| b[from..from + 16].to_vec()).collect() };
    let mut weights = vec![0.0; verts * count];
    for (v, row) in vertices.iter().enumerate() {
        for pair in row[9..].chunks_exact(2).take(row[8] as usize) {
            weights[v * count + pair[0] as usize] = pair[1];
        }
    }
    let mut file = Numbers::of(text);
    let [p, parameters] = file.sizes();
    let measured = file.next(4 * p);
    let mut inputs = Inputs::from([
        ("parents", ints(&[count], bones.iter().map(|b| b[0] as i32).collect())),
        ("relatives", floats(&[count, 4, 4], &of_bones(1))),
        ("inverses", floats(&[count, 4, 4], &of_bones(17))),
        ("skin", floats(&[verts, 3], &vertices.iter().flat_map(|v| v[..3].to_vec()).collect::<Vec<_>>())),
        ("weights", floats(&[verts, count], &weights)),
        ("at", ints(&[p], measured.chunks(4).map(|m| m[0] as i32).collect())),
        ("points", floats(&[p, 3], &measured.chunks(4).flat_map(|m| m[1..].to_vec()).collect::<Vec<_>>())),
    ]);
    if on_triangles {
        let triangles = rows(&published("hand_model_triangles.txt")?);
        let corners = triangles.iter().flatten().map(|c| *c as i32).collect();
        inputs.insert("triangles", ints(&[triangles.len(), 3], corners));
        inputs.insert("us", file.floats(&[p, 2]));
    }
    inputs.insert("theta", file.floats(&[parameters]));
    Some(inputs)
}

/// Checks errors and Jacobian: the Jacobian by columns (forward mode) agrees with that by rows (reverse mode) and with
/// difference quotients.
fn check_hand(inputs: &Inputs, entry: &str, jacobian: &str, wrt: &[&str], expected: &[Vec<f64>; 2]) {
    let objective = compile("hand.ft", entry, None, Tape::Auto);
    assert_near(&format!("hand {entry}: errors"), &run(&objective, inputs, &[]), &expected[0], 1e-12);
    let columns = run(&compile("hand.ft", jacobian, None, Tape::Auto), inputs, &[]);
    assert_near(&format!("hand {jacobian}"), &columns, &expected[1], 1e-12);
    let (height, width) = (expected[0].len(), expected[1].len() / expected[0].len());

    let mut quotients = vec![0.0; height * width];
    for (k, value) in (0..26).map(|k| (k, quotient(&objective, inputs, "theta", k))) {
        for (r, v) in value.into_iter().enumerate() {
            quotients[r * width + width - 26 + k] = v;
        }
    }
    // An error depends only on the `us` of its own point.
    if width > 26 {
        for k in 0..2 * height / 3 {
            let value = quotient(&objective, inputs, "us", k);
            for r in k / 2 * 3..k / 2 * 3 + 3 {
                quotients[r * width + k % 2] = value[r];
            }
        }
    }
    assert_near(&format!("hand {jacobian}: difference quotients"), &columns, &quotients, 1e-8);

    for tape in [Tape::Auto, Tape::All] {
        let pull = compile("hand.ft", entry, Some(wrt), tape);
        let mut rows = Vec::new();
        for r in 0..height {
            let seed: Vec<f64> = (0..height).map(|k| if k == r { 1.0 } else { 0.0 }).collect();
            let mut seeded = inputs.clone();
            seeded.insert("errors.grad", floats(&[height / 3, 3], &seed));
            if width > 26 {
                let of_us = run(&pull, &seeded, &["us.grad"]);
                assert!(of_us.iter().enumerate().all(|(k, v)| *v == 0.0 || k / 2 == r / 3));
                rows.extend_from_slice(&of_us[r / 3 * 2..][..2]);
            }
            rows.extend(run(&pull, &seeded, &["theta.grad"]));
        }
        assert_near(&format!("hand {jacobian}: by rows"), &rows, &columns, 1e-13);
    }
}

#[test]
fn jacobians_of_hand_tracking() {
    let (Some(expected), Some(simple), Some(complicated)) =
        (published("golden_hand.json"), published("hand_test.txt"), published("hand_hand_complicated.txt"))
    else {
        return;
    };
    let (Some(simple), Some(complicated)) = (hand(&simple, false), hand(&complicated, true)) else { return };
    let expect = |kind: &str| {
        ["objective_calculation_correctness.expected_objective", "jacobian_calculation_correctness.expected_jacobian"]
            .map(|key| golden(&expected, &format!("{kind}_{key}")))
    };
    check_hand(&simple, "objective", "jacobian", &["theta"], &expect("simple"));
    let wrt = ["us", "theta"];
    check_hand(&complicated, "on_triangles", "jacobian_on_triangles", &wrt, &expect("complicated"));
}
