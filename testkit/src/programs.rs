//! Elaboration of program texts, and comparison of programs with their lowering.

use crate::random;
use std::collections::BTreeMap;
use std::path::Path;
use taffeta_ast::format::{Format, LevelKind};
use taffeta_ast::interp::{Inputs, run};
use taffeta_ast::{Buffer, ExprKind, Func, Literal, Value};
use taffeta_frontend::program::{Loader, Program, Source};
use taffeta_structured::{Parameter, Stored, Structured};

struct Library;

impl Loader for Library {
    fn load(&self, module: &str, _: Option<&Path>) -> Result<Source, String> {
        Err(format!("there is no module `{module}`"))
    }
    fn prelude(&self, _: &str) -> Option<Source> {
        None
    }
    fn prelude_names(&self) -> Vec<String> {
        Vec::new()
    }
    fn schedule(&self, _: &str) -> Option<Source> {
        None
    }
    fn schedule_names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Elaborates the last function of a program.
pub fn elaborate(text: &str) -> Func {
    let program = Program::load(Source::inline("t.ft", text), &Library);
    let name = program.entries().last().map(|e| e.name.clone()).expect("an entry");
    let found = program.elaborate(&name, &BTreeMap::new(), &taffeta_frontend::NoHooks);
    found.unwrap_or_else(|e| panic!("{:?}", e.0.iter().map(|d| &d.message).collect::<Vec<_>>()))
}

/// Reverses the lists of the last level if it may be unordered: packing sorts all lists.
fn backwards(format: &Format, layout: &Parameter, arrays: &mut [Value]) {
    let (last, Parameter::Stored(of)) = (format.levels.len() - 1, layout) else { return };
    let level = format.levels[last];
    if level.ordered || !level.unique || !matches!(level.kind, LevelKind::Compressed | LevelKind::Hashed) {
        return;
    }
    let find = |name: &str| of.iter().position(|a| a.name == name && a.level.is_none_or(|k| k == last));
    let number = |v: &Value, k: usize| v.data().get_int(k).expect("an index") as usize;
    let pos = arrays[find("pos").expect("a list")].clone();
    for fibre in 1..pos.data().len() {
        let (first, end) = (number(&pos, fibre - 1), number(&pos, fibre));
        for name in ["crd", "val"] {
            let data = arrays[find(name).expect("a list")].data_mut();
            for k in first..first + (end - first) / 2 {
                let (a, b) = (data.get(k), data.get(end - 1 - (k - first)));
                assert!(data.set(k, b) && data.set(end - 1 - (k - first), a));
            }
        }
        if let Some(table) = find("tbl") {
            let data = arrays[table].data_mut();
            for slot in 0..data.len() {
                let Literal::Int(p) = data.get(slot) else { continue };
                if p > first as i128 && p <= end as i128 {
                    assert!(data.set(slot, Literal::Int((first + end + 1) as i128 - p)));
                }
            }
        }
    }
}

/// Puts arrays of a tensor with the sizes of another one in the order of coordinates.
pub(crate) fn sorted(sizes: &Stored, arrays: Vec<Value>) -> Vec<Value> {
    let found = Stored::of_arrays(sizes.shape().to_vec(), sizes.format().clone(), arrays, sizes.hidden().to_vec());
    found.sorted().expect("the format holds its own elements").into_arrays()
}

/// Checks that both programs have equal results on random tensors, up to the rounding of sums over runs.
pub fn equal(func: &Func, structured: &Structured, seed: u64) {
    compared(func, structured, seed, true);
}

/// Checks equality as [`equal`] does; `skips`: whether storage may skip iterations that would stop the program.
pub fn compared(func: &Func, structured: &Structured, seed: u64, skips: bool) {
    let mut random = random::Random(seed);
    let mut sizes: BTreeMap<String, i64> = BTreeMap::new();
    for s in &func.sizes {
        let most = if seed < 3 { 2 } else { 9 };
        sizes.insert(s.name().to_string(), random.next(most) as i64);
    }
    let mut logical = Inputs { sizes: sizes.clone(), ..Inputs::default() };
    let mut flat = Inputs { sizes: sizes.clone(), ..Inputs::default() };
    let (mut hidden, mut params) = (Vec::new(), Vec::new());
    for (p, layout) in func.params.iter().zip(&structured.layout.params) {
        let size = |e: &taffeta_ast::Expr| match e.kind() {
            ExprKind::Var(s) => sizes[s.name()] as usize,
            _ => e.as_int().expect("a size") as usize,
        };
        let shape: Vec<usize> = p.tensor.shape.iter().map(size).collect();
        let Parameter::Stored(_) = layout else {
            let count: usize = shape.iter().product();
            let special = [0.0, -0.0, f64::INFINITY, f64::NAN, 1.5];
            let element = |random: &mut random::Random| match random.next(12) {
                0 => special[random.next(5)],
                v => v as f64,
            };
            let buffer = match p.tensor.dtype {
                taffeta_ast::DType::I64 => Buffer::I64((0..count).map(|_| random.next(7) as i64).collect()),
                _ => Buffer::F64((0..count).map(|_| element(&mut random)).collect()),
            };
            let value = Value::new(shape, buffer).expect("it fits");
            logical.params.push(value.clone());
            flat.params.push(value);
            continue;
        };
        // A parameter over the pattern of an earlier one has values of its own.
        let of = params.iter().find(|(pattern, _): &&(_, Stored)| *pattern == p.tensor.format.pattern);
        if let Some((_, of)) = of {
            let count = of.arrays().last().map_or(0, |v| v.data().len());
            let elements = Buffer::F64((0..count).map(|_| random.next(12) as f64 - 3.0).collect());
            let elements = Value::new(vec![count], elements).expect("it fits");
            logical.params.push(of.clone().followed_by(p.tensor.format.clone(), elements.clone()).elements());
            flat.params.push(elements);
            continue;
        }
        let stored = random::of_shape(&p.tensor.format, &shape, &mut random).stored;
        hidden.extend(stored.hidden().iter().copied());
        let mut arrays = stored.arrays().to_vec();
        backwards(&p.tensor.format, layout, &mut arrays);
        flat.params.extend(arrays.iter().cloned());
        // Levels that store whole regions hold more than the drawn elements, so the program gets all that are packed.
        logical.params.push(stored.elements());
        let (format, hidden) = (p.tensor.format.clone(), stored.hidden().to_vec());
        params.push((format.pattern, Stored::of_arrays(shape, format, arrays, hidden)));
    }
    for (s, n) in structured.layout.hidden.iter().zip(hidden) {
        flat.sizes.insert(s.name().to_string(), n);
    }
    let text = || taffeta_ast::print::func(&structured.func);
    let (expected, found) = match (run(func, &logical), run(&structured.func, &flat)) {
        (Ok(expected), Ok(found)) => (expected, found),
        (Err(a), Err(b)) if a.to_string() == b.to_string() => return,
        // Of several indices that are out of range, any may be reported.
        (Err(a), Err(b)) if [&a, &b].iter().all(|e| e.to_string().contains("out of range")) => return,
        // Iterations that storage skips raise no error.
        (Err(e), Ok(_)) if skips && e.to_string().contains("out of range") => return,
        // Of several elements that a format cannot hold, any may be reported.
        (Err(a), Err(b)) if [&a, &b].iter().all(|e| e.to_string().contains("cannot store")) => return,
        (expected, found) => panic!("seed {seed}: expected {expected:?}, found {found:?}\n{}", text()),
    };
    let (mut given, mut made) = (found.results.iter(), found.made.iter());
    for (k, (t, a)) in func.results.iter().zip(&expected.results).enumerate() {
        // The arrays of a result with a pattern of its own are those of its packed elements.
        if !structured.layout.levels[func.params.len() + k].is_empty() {
            let places = a.places().expect("a sparse value");
            let packed = Stored::pack(a.shape(), &t.format, &places.indices, a.data()).expect("it holds all elements");
            let own: Vec<Value> = made.by_ref().take(packed.arrays().len()).cloned().collect();
            assert_eq!(own.len(), packed.arrays().len(), "seed {seed}: expected an array for each");
            // Lists without order come in that of the program.
            let own = if t.format.is_listed_in_any_order() { sorted(&packed, own) } else { own };
            for (packed, array) in packed.arrays().iter().zip(&own) {
                assert!(
                    close(packed, array),
                    "seed {seed}: expected {packed:?}, found {array:?}: {logical:?}\n{}",
                    text()
                );
            }
            continue;
        }
        let b = given.next().expect("a result");
        // A result over a parameter's pattern is an array of values alone.
        let of = params.iter().find(|(pattern, _)| pattern.is_some() && *pattern == t.format.pattern);
        let whole = of.map(|(_, stored)| stored.clone().followed_by(t.format.clone(), b.clone()).elements());
        let b = whole.as_ref().unwrap_or(b);
        assert_eq!(a.places(), b.places());
        assert!(close(a, b), "seed {seed}: expected {a:?}, found {b:?}: {logical:?}\n{}", text());
    }
}

/// Returns whether two tensors of one type and shape have the same numbers, up to rounding.
fn close(a: &Value, b: &Value) -> bool {
    let same = |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-12 * x.abs();
    a.shape() == b.shape() && a.dtype() == b.dtype() && a.numbers().iter().zip(b.numbers()).all(|(x, y)| same(*x, y))
}
