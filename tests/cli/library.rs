//! `as_lib` from outside: with a BLAS library if there is one, and without.

use super::{Folder, finish};

const PROGRAM: &str = "
def mm(a: f32[n, p], b: f32[p, m]) -> f32[n, m]:
    return a @ b

@schedule(mm)
def lib(s):
    s.as_lib(\"i\")
";

/// Runs the product with a value of `TAFFETA_BLAS`; returns the result's bytes and the reported implementation.
fn product(folder: &Folder, sizes: [&str; 3], schedule: &str, blas: Option<&str>) -> (Vec<u8>, serde_json::Value) {
    let sizes = sizes.map(|s| ["--size", s]).concat();
    let mut args = vec!["run", "mm.ft", "--in", "a=randint(-4,5)", "--in", "b=randint(-4,5)", "--schedule", schedule];
    args.extend(sizes);
    args.extend(["--out", "out=y.npy", "--json"]);
    let mut command = folder.command(&args);
    match blas {
        Some(name) => command.env("TAFFETA_BLAS", name),
        None => command.env_remove("TAFFETA_BLAS"),
    };
    let (status, out, err) = finish(&mut command);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    (std::fs::read(folder.path().join("y.npy")).expect("a result"), report["products"].clone())
}

#[test]
fn products_are_the_same_with_and_without_a_library() {
    let folder = Folder::new(&[("mm.ft", PROGRAM)]);
    let small = ["n=70", "p=45", "m=33"];
    let (expected, none) = product(&folder, small, "none", None);
    assert_eq!(none, serde_json::Value::Null);
    // A library that is disabled, that is missing, or that does not pay for so small a product.
    for blas in [Some("none"), Some("libno-such-blas.so.7"), None] {
        let (own, kernel) = product(&folder, small, "lib", blas);
        assert_eq!((&own, kernel.as_str()), (&expected, Some("own kernel")), "{blas:?}");
    }
    // Any BLAS of this machine will do: the numbers are exact in any order of summation.
    let large = ["n=700", "p=650", "m=640"];
    let (expected_of_large, _) = product(&folder, large, "none", None);
    let (found, library) = product(&folder, large, "lib", None);
    assert!(found == expected_of_large, "{library}");
    if library == "own kernel" {
        println!("skipped: there is no BLAS on this machine (apt-get install libopenblas0-pthread)");
    } else {
        // A library requested by name computes every product.
        let name = library.as_str().expect("a name");
        let (named, again) = product(&folder, small, "lib", Some(name));
        assert_eq!((named, again.as_str()), (expected, Some(name)));
    }
}
