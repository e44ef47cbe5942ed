//! Random bodies of vectorised loops: nested conditions on elements of some types, loads guarded only by them, and
//! sums, minima, maxima and stores of elements of other types. Optimised C, as users compile it, agrees with the
//! interpreter.
//!
//! Compilers miscompile such loops (`lower/conditions`): without that pass, gcc 12.2 on a CPU with AVX2 gets some of
//! every few hundred bodies wrong, or crashes the process. `CC` names the compiler under test; `FIRST` and `COUNT`
//! choose other bodies for the test of this file, `make fuzz` takes new ones.

use crate::batch;
use crate::random_schedules::{call, source};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use std::collections::BTreeMap;
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::{DType, Func, Literal, Value, print};
use taffeta_codegen::c::CSource;
use taffeta_codegen::toolchain::CompileOptions;
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};
use taffeta_schedule::{Arg, Schedule};

/// Number of bodies per library.
pub const BODIES_PER_LIBRARY: u64 = 128;

/// Lengths of the arrays: long and short ones with a remainder after full vectors, and empty ones.
const SIZES: [i64; 3] = [203, 9, 0];

/// Types of compared and of reduced elements.
const COMPARED: [&str; 9] = ["u8", "i8", "i16", "u32", "i32", "i64", "f32", "f64", "bool"];
const REDUCED: [&str; 8] = ["f64", "f32", "i64", "i32", "f64", "i16", "u8", "u64"];

/// Body with its seed: its text, the program without and with lanes, and its C.
struct Case {
    seed: u64,
    text: String,
    func: Func,
    after: Func,
    source: CSource,
}

/// Returns the first failure among the bodies of some seeds, with its program.
pub fn fault(seeds: std::ops::Range<u64>) -> Option<String> {
    let mut all = Vec::new();
    for (k, seed) in seeds.enumerate() {
        match case(seed, k) {
            Ok(case) => all.extend(case),
            Err(what) => return Some(what),
        }
    }
    // A macro that one program defines for the header applies to its whole library, and would keep compilers from using
    // masks in the others.
    let (asks, rest): (Vec<Case>, Vec<Case>) =
        all.into_iter().partition(|c| c.source.code.contains("#define TAFFETA_"));
    [rest, asks].iter().find_map(|cases| wrong(cases))
}

/// Returns the first failure among the bodies of one library.
fn wrong(cases: &[Case]) -> Option<String> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let flags = CompileOptions { contract: false, ..CompileOptions::default() };
    let sources: Vec<CSource> = cases.iter().map(|c| c.source.clone()).collect();
    let compiled = match batch::compile(&sources, dir.path(), &flags) {
        Ok(compiled) => compiled,
        Err(what) => return Some(format!("cannot compile the bodies: {what}")),
    };
    for (Case { seed, text, func, after, .. }, compiled) in cases.iter().zip(&compiled) {
        for size in SIZES {
            let params = values(func, size, *seed);
            let inputs = Inputs { sizes: [("n".to_string(), size)].into(), params: params.clone() };
            let expected = interp::run(func, &inputs).map_err(|e| e.kind.code().to_string());
            let found = call(compiled, 1, &params, &[("n", size)]);
            let written = |out: &interp::Outputs| (out.params.clone(), out.results.clone());
            let (want, have) = (expected.as_ref().map(written), found.as_ref().map(written));
            if want != have {
                let after = print::func(after);
                return Some(format!("seed {seed}, n = {size}\n{text}\n{after}\n{want:?}\nin C {have:?}"));
            }
        }
    }
    None
}

/// Builds the body of a seed; `None` where a schedule must not vectorise it.
fn case(seed: u64, number: usize) -> Result<Option<Case>, String> {
    let text = Body::new(seed).text();
    let program = Program::load(Source::inline("lanes.ft", text.as_str()), &NoLoader);
    let func = program.elaborate("f", &BTreeMap::new(), &NoHooks).map_err(|d| format!("seed {seed}\n{text}\n{d}"))?;
    let mut s = Schedule::new(func.clone());
    if s.call("vectorize", &[Arg::from("i")]).is_err() {
        return Ok(None);
    }
    let after = s.into_func();
    let source = source(&after, number).map_err(|what| format!("seed {seed}\n{text}\n{what}"))?;
    Ok(Some(Case { seed, text, func, after, source }))
}

/// Generates small integers, whose sums are exact in any order; `k` holds indices.
fn values(func: &Func, size: i64, seed: u64) -> Vec<Value> {
    let mut rng = StdRng::seed_from_u64(seed ^ size as u64);
    let params = func.params.iter().map(|p| {
        let length = p.tensor.shape[0].as_int().unwrap_or(size);
        let mut v = Value::zeros(p.tensor.dtype, vec![length as usize]).expect("it is small");
        for at in 0..v.data().len() {
            let value = match p.tensor.dtype {
                DType::Bool => Literal::Bool(rng.random_range(0..3) > 0),
                t if t.is_int() && p.tensor.symbol.name() == "k" => Literal::Int(rng.random_range(0..size.into())),
                t if t.is_int() => Literal::Int(rng.random_range(0..3)),
                _ => Literal::Float(f64::from(rng.random_range(0..3i32))),
            };
            v.data_mut().set(at, value);
        }
        v
    });
    params.collect()
}

/// Program under construction.
struct Body {
    rng: StdRng,
    /// Arrays read by the body, with their types.
    read: Vec<(String, &'static str)>,
    /// Targets of reductions, with their types and operators.
    sums: Vec<(String, &'static str, &'static str)>,
    /// Targets of stores, with their types.
    stored: Vec<(String, &'static str)>,
    gathers: bool,
    /// Whether the body is short: compilers vectorise fewer long ones.
    short: bool,
}

impl Body {
    fn new(seed: u64) -> Body {
        let mut rng = StdRng::seed_from_u64(seed);
        let short = rng.random_range(0..4) > 0;
        let sums = (0..if short { 1 } else { rng.random_range(1..3) }).map(|k| {
            let by = ["+=", "+=", "-=", "min", "max"][rng.random_range(0..5)];
            (format!("s{k}"), REDUCED[rng.random_range(0..REDUCED.len())], by)
        });
        let sums = sums.collect();
        let stored = (0..if short { 0 } else { rng.random_range(0..3) / 2 })
            .map(|k| (format!("y{k}"), REDUCED[rng.random_range(0..8)]));
        let stored = stored.collect();
        Body { rng, read: Vec::new(), sums, stored, gathers: false, short }
    }

    fn text(mut self) -> String {
        let mut body = String::new();
        for _ in 0..if self.short { 1 } else { self.rng.random_range(1..3) } {
            self.stmt(2, 0, &mut body);
        }
        let mut params: Vec<String> = self.read.iter().map(|(name, of)| format!("{name}: {of}[n]")).collect();
        params.push("k: i32[n]".to_string());
        params.extend(self.stored.iter().map(|(name, of)| format!("{name}: inout[{of}[n]]")));
        params.extend(self.sums.iter().map(|(name, of, _)| format!("{name}: inout[{of}[1]]")));
        format!("def f({}):\n    for i in range(n):\n{body}", params.join(", "))
    }

    fn one(&mut self, of: u32) -> bool {
        self.rng.random_range(0..of) == 0
    }

    /// Chooses an element of an array of that type, at this iteration or at an index that it loads.
    fn element(&mut self, of: &'static str) -> String {
        let known: Vec<String> = self.read.iter().filter(|(_, t)| *t == of).map(|(name, _)| name.clone()).collect();
        let name = if known.is_empty() || self.one(2) {
            let name = format!("a{}", self.read.len());
            self.read.push((name.clone(), of));
            name
        } else {
            known[self.rng.random_range(0..known.len())].clone()
        };
        if self.gathers && self.one(3) { format!("{name}[k[i]]") } else { format!("{name}[i]") }
    }

    fn cond(&mut self, depth: u32) -> String {
        let of = COMPARED[self.rng.random_range(0..COMPARED.len())];
        let element = self.element(of);
        let cond = match of {
            "bool" => element,
            _ => {
                let by = [">", "<", "==", "!="][self.rng.random_range(0..4)];
                format!("{element} {by} {}", self.rng.random_range(0..3))
            }
        };
        if self.short {
            return cond;
        }
        match self.rng.random_range(0..6) {
            0 if depth > 0 => format!("({cond} and {})", self.cond(depth - 1)),
            1 if depth > 0 => format!("({cond} or {})", self.cond(depth - 1)),
            2 => format!("not ({cond})"),
            _ => cond,
        }
    }

    fn value(&mut self, of: &'static str, depth: u32) -> String {
        match self.rng.random_range(0..10) {
            0 | 1 => format!("cast({}, {of})", self.rng.random_range(0..4)),
            2 if depth > 0 => format!("{} + {}", self.element(of), self.value(of, depth - 1)),
            3 => {
                let from = REDUCED[self.rng.random_range(0..REDUCED.len())];
                format!("cast({}, {of})", self.element(from))
            }
            4 if depth > 0 => {
                let (a, b) = (self.value(of, depth - 1), self.value(of, depth - 1));
                format!("({a} if {} else {b})", self.cond(0))
            }
            _ => self.element(of),
        }
    }

    fn stmt(&mut self, indent: usize, depth: u32, out: &mut String) {
        let margin = "    ".repeat(indent);
        let nests =
            if self.short { depth < 2 && (depth == 0 || !self.one(3)) } else { depth < 3 && !self.one(2 + depth) };
        if nests {
            self.gathers = !self.short && self.one(3);
            *out += &format!("{margin}if {}:\n", self.cond(1));
            self.block(indent + 1, depth + 1, out);
            if !self.one(3) {
                *out += &format!("{margin}else:\n");
                self.block(indent + 1, depth + 1, out);
            }
            return;
        }
        if !self.stored.is_empty() && self.one(5) {
            let (name, of) = self.stored[self.rng.random_range(0..self.stored.len())].clone();
            *out += &format!("{margin}{name}[i] {} {}\n", if self.one(2) { "=" } else { "+=" }, self.value(of, 1));
            return;
        }
        let (name, of, by) = self.sums[self.rng.random_range(0..self.sums.len())].clone();
        let value = self.value(of, 1);
        *out += &match by {
            "min" | "max" => format!("{margin}{name}[0] = {by}({name}[0], {value})\n"),
            _ => format!("{margin}{name}[0] {by} {value}\n"),
        };
    }

    fn block(&mut self, indent: usize, depth: u32, out: &mut String) {
        for _ in 0..1 + u32::from(!self.short && self.one(4)) {
            self.stmt(indent, depth, out);
        }
    }
}
