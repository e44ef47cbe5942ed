//! Generated C against the same loops written by hand, and times of compilation and start, each against its bar.
//!
//! `cargo bench --bench race` (part of `make bench`) prints a table and writes `target/bench/race.json`. The loops are
//! in `benches/handwritten`: `loops.ft` is compiled without a schedule, `loops.c` with the same compiler and the same
//! flags, and `race.c` runs them in turn, 20 pairs of each. A bar holds if the 95 % interval of the median ratio lies
//! on its right side; if the interval contains the bar, the answer is open. Beside each ratio stands the limit of the
//! machine: multiply-adds per second, or bytes copied per second between arrays of the same size.

use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use taffeta::{Options, Program};
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};

/// Minimum ratio that counts as level: smaller gaps are ties.
const LEVEL: f64 = 0.95;
const PAIRS: usize = 20;
/// Bar for the compilation of each example, without the C compiler.
const PIPELINE_MS: f64 = 50.0;
/// Bar for the compilation of loops over structured tensors, without the C compiler.
const STRUCTURED_MS: f64 = 300.0;
/// Bar for a second run of the same program.
const CACHED_MS: f64 = 20.0;

/// Entries of `loops.ft`.
const ENTRIES: [&str; 4] = ["matmul", "jacobi_2d", "softmax_rows", "circular_diff"];

/// Programs and their entries: the examples, with the sizes and statics of their own commands.
const EXAMPLES: [(&str, &str); 12] = [
    ("subdivnet/circular_diff.ft", "circular_diff"),
    ("subdivnet/mesh_conv.ft", "mesh_conv"),
    ("longformer/longformer.ft", "attention"),
    ("longformer/longformer.ft", "attention_staged"),
    ("softras/softras.ft", "silhouette"),
    ("softras/softras.ft", "picture"),
    ("gat/gat.ft", "gat"),
    ("gat/gat.ft", "gat_csr"),
    ("gat/karate.ft", "factions"),
    ("conv/conv.ft", "sobel"),
    ("physics/nbody.ft", "solar_system"),
    ("physics/heat.ft", "plate"),
];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut rows = race(root, folder.path());
    rows.extend(start_up(root, folder.path()));
    rows.extend(structured(root));
    for row in &rows {
        println!("{}", line(row));
    }
    let out = root.join("target/bench");
    std::fs::create_dir_all(&out).expect("target/bench can be made");
    let path = out.join("race.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&rows).expect("JSON")).expect("the results are written");
    println!("written to {}", path.display());
}

fn line(row: &Json) -> String {
    let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
    let interval = format!(
        "[{:.3}, {:.3}]",
        row["interval"][0].as_f64().unwrap_or(0.0),
        row["interval"][1].as_f64().unwrap_or(0.0)
    );
    let unit = row["unit"].as_str().unwrap_or("");
    let mut text = format!(
        "{:<34} {:>8.3} {unit:<5} 95 % {interval:<18} bar {:>5} {}",
        row["name"].as_str().unwrap_or(""),
        number("value"),
        number("bar"),
        row["verdict"].as_str().unwrap_or("")
    );
    if let Some(limit) = row["of_limit"].as_f64() {
        text.push_str(&format!("   {:.0} % of the machine's {}", 100.0 * limit, row["limit"].as_str().unwrap_or("")));
    }
    text
}

/// Returns the median and its 95 % interval, by order statistics: the ranks below which a median lies with probability
/// 2.5 %.
fn median_interval(values: &[f64]) -> (f64, [f64; 2]) {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    let n = v.len();
    let median = if n % 2 == 1 { v[n / 2] } else { (v[n / 2 - 1] + v[n / 2]) / 2.0 };
    // Of n fair coins, at most k show heads with probability p: the largest such k with p <= 2.5 %.
    let mut outside = 0;
    let (mut term, mut sum) = (0.5f64.powi(n as i32), 0.0);
    for k in 0..n / 2 {
        sum += term;
        if sum > 0.025 {
            break;
        }
        outside = k + 1;
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    (median, [v[outside], v[n - 1 - outside]])
}

/// Builds a row whose value should be at least (`more`) or at most its bar.
fn row(name: String, unit: &str, values: &[f64], bar: f64, more: bool) -> Json {
    let (value, interval) = median_interval(values);
    let (surely, surely_not) =
        if more { (interval[0] >= bar, interval[1] < bar) } else { (interval[1] <= bar, interval[0] > bar) };
    let verdict = if surely {
        "holds"
    } else if surely_not {
        "fails"
    } else {
        "open"
    };
    json!({ "name": name, "unit": unit, "value": value, "interval": interval, "bar": bar, "verdict": verdict })
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {text}{errors}");
    text.into_owned()
}

fn taffeta(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taffeta"));
    command.env("TAFFETA_CACHE_DIR", folder.join("cache")).env("NO_COLOR", "1");
    command
}

fn race(root: &Path, folder: &Path) -> Vec<Json> {
    let here = root.join("benches/handwritten");
    for entry in ENTRIES {
        run(taffeta(folder).arg("build").arg(here.join("loops.ft")).arg(entry).arg("-o").arg(folder));
    }
    let mut sources: Vec<PathBuf> = ["race.c", "loops.c"].map(|f| here.join(f)).to_vec();
    sources.extend(ENTRIES[1..].iter().map(|e| folder.join(format!("taffeta_{e}.c"))));
    // One compiler and one set of flags for both sides, and both in one program.
    let program = Toolchain::find()
        .and_then(|t| t.executable(folder, &format!("taffeta_{}", ENTRIES[0]), &sources, &CompileOptions::default()))
        .unwrap_or_else(|d| panic!("{d}"));
    let text = run(Command::new(&program).arg(PAIRS.to_string()).env("OMP_NUM_THREADS", "1"));
    let lines: Vec<Json> =
        text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}"))).collect();
    let machine = lines.iter().find(|l| l["name"] == "machine").expect("the machine's limits");
    lines
        .iter()
        .filter(|l| l["name"] != "machine")
        .map(|l| {
            let name = l["name"].as_str().expect("a name");
            let difference = l["difference"].as_f64().expect("a number");
            assert!(difference < 1e-5, "{name}: results differ by {difference}");
            let pairs: Vec<[f64; 2]> = serde_json::from_value(l["pairs"].clone()).expect("pairs");
            let ratios: Vec<f64> = pairs.iter().map(|[taffeta, hand]| hand / taffeta).collect();
            let mut row = row(format!("{name}, over C by hand"), "×", &ratios, LEVEL, true);
            let seconds = median_interval(&pairs.iter().map(|p| p[0]).collect::<Vec<_>>()).0;
            let rate = |what: &str| l[what].as_f64().expect("a number") / seconds;
            let peak = machine[if name == "jacobi_2d" { "f64" } else { "f32" }].as_f64().expect("a number");
            let copy = machine["copy"][name].as_f64().expect("a number");
            let (compute, memory) = (rate("flop") / peak, rate("bytes") / copy);
            row["seconds"] = json!(seconds);
            row["gflop_per_s"] = json!(rate("flop") / 1e9);
            row["gb_per_s"] = json!(rate("bytes") / 1e9);
            row["of_limit"] = json!(compute.max(memory));
            row["limit"] = json!(if compute > memory { "multiply-adds" } else { "copy bandwidth" });
            row
        })
        .collect()
}

/// Returns the arguments of the first command for that entry in the program's comments.
fn arguments(path: &Path, entry: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let start = format!("# taffeta: run {entry} ");
    let command =
        text.lines().find_map(|l| l.strip_prefix(&start)).unwrap_or_else(|| panic!("{}: {start}?", path.display()));
    command.split_whitespace().map(str::to_string).collect()
}

/// Times the compilation without the C compiler, and a start from the cache, for each example.
fn start_up(root: &Path, folder: &Path) -> Vec<Json> {
    let mut rows = Vec::new();
    for (file, entry) in EXAMPLES {
        let path = root.join("examples").join(file);
        let pipeline = compiling(&|| Program::load(&path), entry);
        rows.push(row(format!("{file} {entry}, compiling"), "ms", &pipeline, PIPELINE_MS, false));
        let start_it = || {
            let mut c = taffeta(folder);
            c.current_dir(path.parent().expect("a folder"))
                .arg("run")
                .arg(&path)
                .arg(entry)
                .args(arguments(&path, entry));
            run(&mut c)
        };
        start_it();
        let cached: Vec<f64> = (0..PAIRS)
            .map(|_| {
                let start = Instant::now();
                start_it();
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        rows.push(row(format!("{file} {entry}, cached start"), "ms", &cached, CACHED_MS, false));
    }
    rows
}

/// Times the compilation from text to C in a process that is running already, in milliseconds.
fn compiling(load: &dyn Fn() -> Result<Program, taffeta::Error>, entry: &str) -> Vec<f64> {
    let once = |_| {
        let start = Instant::now();
        let program = load().unwrap_or_else(|e| panic!("{e}"));
        let source = program.c_source(entry, &Options::default().schedule(None)).unwrap_or_else(|e| panic!("{e}"));
        assert!(!source.code.is_empty());
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..PAIRS).map(once).collect()
}

/// Times the compilation of every example with structured tensors, and that of the slowest pair of vector formats.
fn structured(root: &Path) -> Vec<Json> {
    let mut rows = Vec::new();
    for file in ["graphs.ft", "pictures.ft", "products.ft", "shapes.ft", "tensors.ft"] {
        let path = root.join("examples/sparse").join(file);
        for entry in Program::load(&path).unwrap_or_else(|e| panic!("{e}")).entries() {
            let times = compiling(&|| Program::load(&path), &entry.name);
            rows.push(row(format!("sparse/{file} {}, compiling", entry.name), "ms", &times, STRUCTURED_MS, false));
        }
    }
    let formats = [
        "dense",
        "compressed",
        "hashed",
        "bytemap",
        "bitmap",
        "banded",
        "ragged",
        "blocklist",
        "runlength",
        "packbits",
        "point",
    ];
    let pairs = formats.iter().flat_map(|a| formats.map(|b| (*a, b)));
    let kernels = pairs.flat_map(|(a, b)| ["*", "+"].map(|op| (a, op, b)));
    let slowest = kernels.map(|(a, op, b)| {
        let text = format!(
            "def kernel(a: f64[n] @ format({a}), b: f64[n] @ format({b})) -> f64:\n    s = 0.0\n    for j in range(n):\n        s += a[j] {op} b[j]\n    return s\n"
        );
        let times = compiling(&|| Program::from_source("pair.ft", &text), "kernel");
        row(format!("{a} {op} {b} (slowest pair), compiling"), "ms", &times, STRUCTURED_MS, false)
    });
    let time = |row: &Json| row["value"].as_f64().unwrap_or(f64::INFINITY);
    rows.extend(slowest.max_by(|a, b| time(a).total_cmp(&time(b))));
    rows
}
