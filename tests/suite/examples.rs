//! Results of the examples: each is run through the library and checked against an independent fact. Published data is
//! used where present, data made by the project always.

use crate::programs::root;
use itertools::Itertools as _;
use std::collections::HashMap;
use std::path::PathBuf;
use taffeta::{Backend, Options, Program};
use taffeta_ast::Value;

/// Runs an entry of an example; returns parameters and results by name.
fn run(
    file: &str,
    entry: &str,
    inputs: &[(&str, &str)],
    statics: &[(&str, &str)],
    sizes: &[(&str, i64)],
) -> HashMap<String, Value> {
    run_with(Options::default().optimize(false).backend(Backend::C), file, entry, inputs, statics, sizes)
}

fn run_with(
    mut options: Options,
    file: &str,
    entry: &str,
    inputs: &[(&str, &str)],
    statics: &[(&str, &str)],
    sizes: &[(&str, i64)],
) -> HashMap<String, Value> {
    let fail = |e: &dyn std::fmt::Display| -> ! { panic!("{file} {entry}: {e}") };
    let program = Program::load(root().join("examples").join(file)).unwrap_or_else(|e| fail(&e));
    for (name, text) in statics {
        options = options.set(name, text.parse().unwrap_or_else(|e| fail(&e)));
    }
    let function = program.compile(entry, &options).unwrap_or_else(|e| fail(&e));
    let given: Vec<_> = inputs.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    let sizes: Vec<_> = sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let inputs = taffeta::inputs::read(function.signature(), &given, &sizes).unwrap_or_else(|d| fail(&d[0].diagnostic));
    let ran = function.run(inputs.values, &inputs.sizes, 2).unwrap_or_else(|e| fail(&e));
    let signature = function.signature();
    let all = signature.params().zip_eq(ran.params).chain(signature.results().zip_eq(ran.results));
    all.map(|(s, v)| (s.name.clone(), v)).collect()
}

/// Returns the path of a file of published data, if it is there.
fn published(path: &str) -> Option<String> {
    let folder = std::env::var_os("TAFFETA_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let file = folder.join(path);
    if file.is_file() {
        return Some(file.display().to_string());
    }
    eprintln!("skipped: {} is not there (TAFFETA_DATA names the folder of published data)", file.display());
    None
}

/// Saves a tensor to a file that an input can be read from; returns its path.
fn keep(folder: &tempfile::TempDir, name: &str, value: &Value) -> String {
    crate::case::save(folder.path(), &[(name.to_string(), value.clone())]);
    folder.path().join(format!("{name}.npy")).display().to_string()
}

#[test]
fn the_torus_is_closed() {
    let torus = run("meshes/torus.ft", "torus", &[], &[("rings", "7"), ("sides", "5")], &[]);
    let faces = torus["faces"].numbers();
    let adjacency = torus["adjacency"].numbers();
    let edge = |f: usize, k: usize| (faces[3 * f + k] as usize, faces[3 * f + (k + 1) % 3] as usize);
    for f in 0..70 {
        for k in 0..3 {
            let (a, b) = edge(f, k);
            let other = adjacency[3 * f + k] as usize;
            // The neighbour has the same edge in the opposite direction.
            assert!((0..3).any(|j| edge(other, j) == (b, a)), "face {f}, edge {k}");
        }
    }
}

/// Computes the circular difference on arrays, as its definition reads.
fn circular_difference(e: &[f32], adjacency: &[f64], feats: usize) -> Vec<f32> {
    let mut y = vec![0f32; adjacency.len() / 3 * feats];
    for (i, n) in adjacency.chunks_exact(3).enumerate() {
        for k in 0..feats {
            let of = |j: usize| e[n[j] as usize * feats + k];
            y[i * feats + k] = (of(0) - of(1)).abs() + (of(1) - of(2)).abs() + (of(2) - of(0)).abs();
        }
    }
    y
}

#[test]
fn circular_difference_is_correct_on_meshes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let torus = run("meshes/torus.ft", "torus", &[], &[("rings", "12"), ("sides", "8")], &[]);
    let mut meshes = vec![keep(&folder, "adjacency", &torus["adjacency"])];
    meshes.extend(published("meshes/libigl_bunny.off").map(|f| f + ":adjacency"));
    for mesh in meshes {
        let inputs = [("adj", mesh.as_str()), ("e", "rand(seed=1)")];
        let results = run("subdivnet/circular_diff.ft", "circular_diff", &inputs, &[], &[("feats", 16)]);
        let e: Vec<f32> = results["e"].numbers().into_iter().map(|v| v as f32).collect();
        let expected = circular_difference(&e, &results["adj"].numbers(), 16);
        let found = results["y"].numbers();
        assert_eq!(found.len(), expected.len());
        for (k, (a, b)) in found.iter().zip_eq(&expected).enumerate() {
            assert!((a - f64::from(*b)).abs() < 1e-6, "{mesh}: element {k}: {a} and {b}");
        }
        assert!(found.iter().any(|v| *v > 0.1), "{mesh}: all values are zero");
    }
}

#[test]
fn attention_is_the_same_in_stages() {
    let inputs = [("q", "randn(seed=1)"), ("k", "randn(seed=2)"), ("v", "randn(seed=3)")];
    let sizes = [("heads", 2), ("n", 50), ("d", 8)];
    let fused = run("longformer/longformer.ft", "attention", &inputs, &[("w", "6")], &sizes);
    let staged = run("longformer/longformer.ft", "attention_staged", &inputs, &[("w", "6")], &sizes);
    assert_eq!(crate::case::difference(&fused["y"], &staged["y"], 1e-5), None);
    // A window as wide as the text is plain attention, whose weights sum to 1: constant values stay.
    let inputs = [("q", "randn(seed=1)"), ("k", "randn(seed=2)"), ("v", "ones")];
    let plain = run("longformer/longformer.ft", "attention", &inputs, &[("w", "60")], &sizes);
    assert!(plain["y"].numbers().iter().all(|y| (y - 1.0).abs() < 1e-5));
}

#[test]
fn soft_silhouettes_become_hard() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let torus = run("meshes/torus.ft", "torus", &[], &[("rings", "24"), ("sides", "12")], &[]);
    let mut meshes = vec![(keep(&folder, "vertices", &torus["vertices"]), keep(&folder, "faces", &torus["faces"]))];
    for file in ["meshes/libigl_bunny.off", "meshes/softras_spot_triangulated.obj"] {
        meshes.extend(published(file).map(|f| (f.clone() + ":vertices", f + ":faces")));
    }
    for (vertices, faces) in meshes {
        let camera =
            [("vertices", vertices.as_str()), ("faces", faces.as_str()), ("azimuth", "0.6"), ("elevation", "0.5")];
        let at = |sigma: &'static str| {
            let inputs = [&camera[..], &[("sigma", sigma)]].concat();
            let results = run("softras/softras.ft", "overlap", &inputs, &[("size", "64")], &[]);
            let covered = results["hard"].numbers().iter().sum::<f64>();
            assert!((400.0..3500.0).contains(&covered), "{vertices}: {covered} pixels of 4096 are covered");
            results["iou"].numbers()[0]
        };
        let (sharp, blurred) = (at("1e-7"), at("1e-3"));
        assert!(sharp >= 0.98, "{vertices}: intersection over union is {sharp}");
        assert!(blurred < sharp, "{vertices}: {blurred} with a large sigma, {sharp} with a small one");
    }
}

#[test]
fn attention_over_a_graph_is_the_same_three_ways() {
    // Edges without repetitions, so that the matrix is equivalent to the list.
    let (src, dst) = ("[1,2,0,3,4,4,2,0]", "[0,0,1,1,2,3,3,2]");
    let features =
        [("x", "randn(seed=1)"), ("w", "randn(seed=2)"), ("a_src", "randn(seed=3)"), ("a_dst", "randn(seed=4)")];
    let sizes = [("feats", 6), ("channels", 4)];
    let list = run(
        "gat/gat.ft",
        "gat",
        &[&features[..], &[("src", src), ("dst", dst)]].concat(),
        &[],
        &[&sizes[..], &[("n", 5)]].concat(),
    );
    let sorted = run("gat/gat.ft", "sort_edges", &[("src", src), ("dst", dst)], &[("n", "5")], &[]);
    assert_eq!(sorted["first"].numbers(), [0.0, 2.0, 4.0, 6.0, 8.0, 8.0]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (first, origin) = (keep(&folder, "first", &sorted["first"]), keep(&folder, "origin", &sorted["origin"]));
    let csr =
        run("gat/gat.ft", "gat_csr", &[&features[..], &[("first", &first), ("origin", &origin)]].concat(), &[], &sizes);
    let matrix = "[[0,1,1,0,0],[1,0,0,1,0],[1,0,0,0,1],[0,0,1,0,1],[0,0,0,0,0]]";
    let masked = run("gat/gat.ft", "gat_masked", &[&features[..], &[("edge", matrix)]].concat(), &[], &sizes);
    assert_eq!(crate::case::difference(&list["y"], &csr["y"], 1e-5), None);
    assert_eq!(crate::case::difference(&list["y"], &masked["y"], 1e-5), None);
    assert!(list["y"].numbers()[16..].iter().all(|v| *v == 0.0), "node 4 has no incoming edge");
}

#[test]
fn attention_runs_on_cora() {
    let (Some(edges), Some(features)) = (published("graphs/cora_edges.mtx"), published("graphs/cora_features.mtx"))
    else {
        return;
    };
    let weights =
        [("x", features.as_str()), ("w", "randn(seed=2)"), ("a_src", "randn(seed=3)"), ("a_dst", "randn(seed=4)")];
    let part = |p: &str| format!("{edges}:{p}");
    let (rows, cols, indptr) = (part("rows"), part("cols"), part("indptr"));
    let list =
        run("gat/gat.ft", "gat", &[&weights[..], &[("src", &cols), ("dst", &rows)]].concat(), &[], &[("channels", 8)]);
    let csr = run(
        "gat/gat.ft",
        "gat_csr",
        &[&weights[..], &[("first", &indptr), ("origin", &cols)]].concat(),
        &[],
        &[("channels", 8)],
    );
    assert_eq!(list["y"].shape(), [2708, 8]);
    // The product with 2708 x 1433 features by a library.
    let dense = Options::default().schedule("dense_by_library");
    let by_library = run_with(
        dense,
        "gat/gat.ft",
        "gat",
        &[&weights[..], &[("src", &cols), ("dst", &rows)]].concat(),
        &[],
        &[("channels", 8)],
    );
    assert_eq!(crate::case::difference(&list["y"], &by_library["y"], 1e-5), None);
    assert_eq!(crate::case::difference(&list["y"], &csr["y"], 1e-5), None);
}

#[test]
fn the_karate_club_splits_into_its_factions() {
    let ties = root().join("examples/gat/karate.csv").display().to_string();
    let club = run("gat/karate.ft", "factions", &[("ties", &ties)], &[], &[]);
    let with_instructor = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21];
    let wrong: Vec<usize> = club["side"]
        .numbers()
        .iter()
        .enumerate()
        .filter(|(i, s)| (**s == 0.0) != with_instructor.contains(i))
        .map(|(i, _)| i)
        .collect();
    assert_eq!(wrong, [8]);
}

#[test]
fn filters_find_edges_in_a_picture() {
    // A step from black to white between columns 3 and 4: Sobel's filter finds it there, at 4 × 255 clipped to 255.
    let image = format!("[{}]", ["[0,0,0,0,255,255,255,255]"; 6].join(","));
    let edges = run("conv/conv.ft", "sobel", &[("image", &image)], &[], &[]);
    assert!(edges["edges"].numbers().chunks_exact(8).all(|r| r == [0.0, 0.0, 0.0, 255.0, 255.0, 0.0, 0.0, 0.0]));
    let flat = run("conv/conv.ft", "blur", &[("image", "[[7,7,7],[7,7,7]]")], &[], &[]);
    assert!(flat["smooth"].numbers().iter().all(|v| *v == 7.0));
    if let Some(photograph) = published("images/skimage_camera.png") {
        let edges = run("conv/conv.ft", "sobel", &[("image", &photograph)], &[], &[]);
        assert_eq!(edges["edges"].shape(), [512, 512]);
    }
}

#[test]
fn planets_keep_their_energy() {
    // Figures that the Computer Language Benchmarks Game publishes for 1000 steps of 0.01.
    let sun = run("physics/nbody.ft", "solar_system", &[("steps", "1000"), ("dt", "0.01")], &[], &[]);
    assert!((sun["before"].numbers()[0] - -0.169_075_164).abs() < 1e-9);
    assert!((sun["after"].numbers()[0] - -0.169_087_605).abs() < 1e-9);
}

#[test]
fn heat_spreads_and_stays_within_bounds() {
    let plate = run("physics/heat.ft", "plate", &[("steps", "200"), ("rate", "0.25")], &[("size", "32")], &[]);
    let heat = plate["heat"].numbers();
    assert!(heat.iter().all(|t| (0.0..=1.0).contains(t)));
    assert_eq!(heat[..32], [0.0; 32], "the rim is cold");
    assert!(heat[9 * 32 + 8] > 0.3, "the plate is warm beside the wire");
}

/// Checks that callers may be rayon's workers: all of them wait for the threads that compile, which must not wait for
/// them.
#[test]
fn all_rayon_workers_may_compile_at_once() {
    let path = root().join("examples/matmul/matmul.ft");
    rayon::broadcast(|_| {
        let program = Program::load(&path).unwrap_or_else(|e| panic!("{e}"));
        let options = Options::default().schedule("fast");
        program.lowered("matmul", &options).unwrap_or_else(|e| panic!("{e}"));
        assert!(program.check().is_empty());
    });
}
