//! Calls of compiled entries in one C program under AddressSanitizer and UndefinedBehaviorSanitizer.
//!
//! Every argument is a heap block of exactly the required size, so that an access one element beyond is detected. The
//! program reports each call before it starts the next one; an unreported call is the one that stopped the process,
//! which is then restarted after that call.

use crate::batch;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use taffeta_ast::{Buffer, DType, Value};
use taffeta_codegen::c::CSource;
use taffeta_codegen::signature::Passing;
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};

/// Call: an entry and its arguments. Entries of one program must have distinct names.
pub struct Call<'a> {
    pub source: &'a CSource,
    pub params: &'a [Value],
    /// Sizes in the signature's order, -1 where the shapes fix the size.
    pub sizes: &'a [i64],
}

/// Outcome of a call.
#[derive(Debug)]
pub enum Outcome {
    /// Status; after success also the `inout` parameters and results in the signature's order.
    Returned(i32, Vec<Value>),
    /// Reason why the process stopped, and the statement whose code caused it.
    Stopped(String),
}

/// Number of entries per C file: with one each, the headers would take most of the compiler's time.
const ENTRIES_PER_FILE: usize = 16;

/// Compiles and runs the calls; `dir` is an empty directory.
pub fn run(calls: &[Call<'_>], dir: &Path) -> Vec<Outcome> {
    let stem = |k: usize| format!("group_{k}");
    let mut sources = vec![dir.join("main.c")];
    std::fs::write(&sources[0], main(calls)).expect("the directory can be written");
    for (k, call) in calls.iter().enumerate() {
        std::fs::write(dir.join(format!("call_{k}.h")), &call.source.header).expect("the directory can be written");
    }
    for (k, group) in calls.chunks(ENTRIES_PER_FILE).enumerate() {
        let group: Vec<CSource> = group.iter().map(|call| call.source.clone()).collect();
        let joined = batch::join(&group).expect("a chunk has calls");
        sources.push(Toolchain::write(&joined, dir, &stem(k)).expect("the directory can be written").source);
    }
    // `executable` adds the stem's own source.
    sources.remove(1);
    let sanitize = CompileOptions { sanitize: true, ..CompileOptions::default() };
    let compiler = Toolchain::find().expect("a C compiler");
    let program = compiler.executable(dir, &stem(0), &sources, &sanitize).unwrap_or_else(|d| panic!("{d:?}"));

    let mut outcomes = Vec::new();
    while outcomes.len() < calls.len() {
        let first = outcomes.len();
        // Two threads suffice for races; the machine's default could start many.
        let mut command = Command::new(&program);
        command.arg(first.to_string()).current_dir(dir).env("OMP_NUM_THREADS", "2");
        let output = command.output().expect("the program can be run");
        let printed = String::from_utf8_lossy(&output.stdout);
        // Tested programs may print as well; lines of the driver begin with `call `.
        for line in printed.lines().filter(|l| l.starts_with("call ")) {
            let k = outcomes.len();
            let status = line.strip_prefix(&format!("call {k}: ")).and_then(|s| s.parse().ok());
            let status = status.unwrap_or_else(|| panic!("`{line}` is not a status of call {k}"));
            let file = dir.join(format!("{k}.out"));
            let written =
                if status == 0 { written(&calls[k], &std::fs::read(file).expect("it is there")) } else { vec![] };
            outcomes.push(Outcome::Returned(status, written));
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        // A picture of the surrounding memory follows the summary.
        let errors = errors.split("Shadow bytes around").next().unwrap_or_default();
        if outcomes.len() < calls.len() {
            outcomes.push(Outcome::Stopped(format!("{}{}\n{errors}", source_statement(errors, dir), output.status)));
        } else {
            assert!(output.status.success(), "after the last call: {}\n{errors}", output.status);
        }
    }
    outcomes
}

/// Returns the Taffeta statement from which the first location in generated C was made, with a line break.
fn source_statement(errors: &str, dir: &Path) -> String {
    let find = || {
        errors.match_indices(".c:").find_map(|(at, colon)| {
            let stem = errors[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
            let line = errors[at + colon.len()..].split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok()?;
            let code = std::fs::read_to_string(dir.join(format!("{stem}.c"))).ok()?;
            // The comment above the statement gives its source location.
            let comment = |l: &&str| l.trim_start().starts_with("/* ") && l.contains(".ft:");
            code.lines()
                .take(line)
                .filter(comment)
                .last()
                .map(|l| l.trim().trim_start_matches("/* ").trim_end_matches(" */").to_string())
        })
    };
    find().map_or(String::new(), |statement| format!("at {statement}\n"))
}

/// C types of calls, and the function that executes one.
const RUNNER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sanitizer/lsan_interface.h>

typedef struct value {
    int32_t dtype, ndim;
    size_t size;          /* of an element */
    char passing;         /* 'i'n, inout 'x', 'r'esult, 'm'ade by the call */
    const int64_t *shape; /* NULL for results and scalars */
    const void *data;     /* NULL for results and where there are no elements */
} value;

typedef struct call {
    int (*run)(taffeta_ctx *, taffeta_tensor *, size_t, const int64_t *);
    int (*plan)(taffeta_ctx *, taffeta_tensor *, size_t, const int64_t *, size_t *);
    size_t n;
    const value *values;
    const int64_t *sizes;
} call;

/* A block of its own that ends where the bytes end. */
static void *exactly(const void *from, size_t bytes) {
    void *block = malloc(bytes);
    if (from != NULL) memcpy(block, from, bytes);
    return block;
}

static size_t bytes_of(const taffeta_tensor *t, size_t size) {
    for (int d = 0; d < t->ndim; d++) size *= (size_t)t->shape[d];
    return size;
}

static int make(const call *c, FILE *out) {
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    taffeta_tensor *args = malloc(c->n * sizeof *args);
    for (size_t k = 0; k < c->n; k++) {
        const value *v = &c->values[k];
        int64_t *shape = exactly(v->shape, (size_t)v->ndim * sizeof *shape);
        args[k] = (taffeta_tensor){.dtype = v->dtype, .ndim = v->ndim, .shape = shape};
        if (v->passing != 'r' && v->passing != 'm') args[k].data = exactly(v->data, bytes_of(&args[k], v->size));
    }
    size_t arena;
    int status = c->plan(&ctx, args, c->n, c->sizes, &arena);
    if (status == TAFFETA_OK) {
        for (size_t k = 0; k < c->n; k++)
            if (c->values[k].passing == 'r') args[k].data = exactly(NULL, bytes_of(&args[k], c->values[k].size));
        status = c->run(&ctx, args, c->n, c->sizes);
    }
    for (size_t k = 0; k < c->n; k++) {
        if (status == TAFFETA_OK && c->values[k].passing != 'i') {
            fwrite(args[k].shape, sizeof *args[k].shape, (size_t)args[k].ndim, out);
            if (args[k].data != NULL) fwrite(args[k].data, 1, bytes_of(&args[k], c->values[k].size), out);
        }
        free(args[k].data);
        free(args[k].shape);
    }
    free(args);
    taffeta_ctx_release(&ctx);
    return status;
}
"#;

const MAIN: &str = r#"
int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t k = argc > 1 ? (size_t)atoi(argv[1]) : 0; k < sizeof calls / sizeof *calls; k++) {
        char name[32];
        snprintf(name, sizeof name, "%zu.out", k);
        FILE *out = fopen(name, "wb");
        if (out == NULL) return 2;
        int status = make(&calls[k], out);
        if (fclose(out) != 0) return 2;
        if (__lsan_do_recoverable_leak_check()) return 1;
        printf("call %zu: %d\n", k, status);
    }
    return 0;
}
"#;

/// Generates `main.c`.
fn main(calls: &[Call<'_>]) -> String {
    let (mut includes, mut values, mut table) = (String::new(), String::new(), String::new());
    for (k, call) in calls.iter().enumerate() {
        let signature = &call.source.signature;
        let _ = writeln!(includes, "#include \"call_{k}.h\"");
        if signature.logical.is_some() {
            // The header declares the entry for tensors with levels; the arguments here are arrays.
            let head = "taffeta_ctx *, taffeta_tensor *, size_t, const int64_t *";
            let _ = writeln!(includes, "int {0}({head}), {0}_plan({head}, size_t *);", signature.c_name);
        }
        let sizes = array(&mut values, "int64_t", &format!("sizes_{k}"), call.sizes.iter().map(i64::to_string));
        let mut rows = String::new();
        for (j, t) in signature.tensors.iter().enumerate() {
            let (passing, given) = match t.passing {
                Passing::In => ('i', Some(&call.params[j])),
                Passing::InOut => ('x', Some(&call.params[j])),
                Passing::Result => ('r', None),
                Passing::Made => ('m', None),
            };
            let (mut shape, mut data) = ("NULL".to_string(), "NULL".to_string());
            if let Some(v) = given {
                let (c_type, elements) = elements(v.data());
                let dims = v.shape().iter().map(usize::to_string);
                shape = array(&mut values, "int64_t", &format!("shape_{k}_{j}"), dims);
                data = array(&mut values, c_type, &format!("data_{k}_{j}"), elements.into_iter());
            }
            let (dtype, ndim, size) = (t.dtype.name().to_uppercase(), t.shape.len(), t.dtype.size());
            let _ = writeln!(rows, "    {{TAFFETA_{dtype}, {ndim}, {size}, '{passing}', {shape}, {data}}},");
        }
        let n = signature.tensors.len();
        // C has no empty arrays.
        let rows = if n == 0 { "{0}".to_string() } else { rows };
        let _ = writeln!(values, "static const value values_{k}[] = {{\n{rows}}};");
        let _ = writeln!(table, "    {{{0}, {0}_plan, {n}, values_{k}, {sizes}}},", signature.c_name);
    }
    format!("{includes}{RUNNER}\n{values}\nstatic const call calls[] = {{\n{table}}};\n{MAIN}")
}

/// Declares an array and returns its name; `NULL` for one without elements.
fn array(text: &mut String, c_type: &str, name: &str, elements: impl Iterator<Item = String>) -> String {
    let elements: Vec<String> = elements.collect();
    if elements.is_empty() {
        return "NULL".to_string();
    }
    let _ = writeln!(text, "static const {c_type} {name}[] = {{{}}};", elements.join(", "));
    name.to_string()
}

/// Formats the elements as C constants of their storage type: bit patterns for floats, and for integers whose minimum
/// has no constant in C.
fn elements(data: &Buffer) -> (&'static str, Vec<String>) {
    fn ints<T: std::fmt::Display>(v: &[T], suffix: &str) -> Vec<String> {
        v.iter().map(|x| format!("{x}{suffix}")).collect()
    }
    match data {
        Buffer::Bool(v) => ("_Bool", v.iter().map(|x| u8::from(*x).to_string()).collect()),
        Buffer::I8(v) => ("int8_t", ints(v, "")),
        Buffer::I16(v) => ("int16_t", ints(v, "")),
        Buffer::I32(v) => ("uint32_t", v.iter().map(|x| format!("{}u", *x as u32)).collect()),
        Buffer::I64(v) => ("uint64_t", v.iter().map(|x| format!("{}u", *x as u64)).collect()),
        Buffer::U8(v) => ("uint8_t", ints(v, "")),
        Buffer::U16(v) => ("uint16_t", ints(v, "")),
        Buffer::U32(v) => ("uint32_t", ints(v, "u")),
        Buffer::U64(v) => ("uint64_t", ints(v, "u")),
        Buffer::F16(v) => ("uint16_t", v.iter().map(|x| x.to_bits().to_string()).collect()),
        Buffer::Bf16(v) => ("uint16_t", v.iter().map(|x| x.to_bits().to_string()).collect()),
        Buffer::F32(v) => ("uint32_t", v.iter().map(|x| format!("{}u", x.to_bits())).collect()),
        Buffer::F64(v) => ("uint64_t", v.iter().map(|x| format!("{}u", x.to_bits())).collect()),
    }
}

/// Decodes the tensors written by a call: sizes, then elements, for each tensor.
fn written(call: &Call<'_>, mut bytes: &[u8]) -> Vec<Value> {
    let tensors = call.source.signature.tensors.iter().filter(|t| t.passing != Passing::In);
    let values = tensors.map(|t| {
        let (dims, rest) = bytes.split_at(8 * t.shape.len());
        let shape: Vec<usize> = dims.chunks(8).map(|c| i64::from_ne_bytes(fixed(c)) as usize).collect();
        let (elements, rest) = rest.split_at(shape.iter().product::<usize>() * t.dtype.size());
        bytes = rest;
        Value::new(shape, decoded(t.dtype, elements)).expect("as many elements as the shape says")
    });
    let values = values.collect();
    assert!(bytes.is_empty(), "{} bytes too many", bytes.len());
    values
}

fn fixed<const N: usize>(chunk: &[u8]) -> [u8; N] {
    chunk.try_into().expect("chunks of that size")
}

/// Decodes elements from their bytes.
fn decoded(dtype: DType, bytes: &[u8]) -> Buffer {
    macro_rules! each {
        ($($variant:ident: $decode:expr),*) => {
            match dtype {
                DType::Bool => Buffer::Bool(bytes.iter().map(|b| *b != 0).collect()),
                $(DType::$variant => Buffer::$variant(bytes.chunks(dtype.size()).map(|c| $decode(fixed(c))).collect()),)*
            }
        };
    }
    each!(
        I8: i8::from_ne_bytes, I16: i16::from_ne_bytes, I32: i32::from_ne_bytes, I64: i64::from_ne_bytes,
        U8: u8::from_ne_bytes, U16: u16::from_ne_bytes, U32: u32::from_ne_bytes, U64: u64::from_ne_bytes,
        F16: half::f16::from_ne_bytes, Bf16: half::bf16::from_ne_bytes, F32: f32::from_ne_bytes, F64: f64::from_ne_bytes
    )
}
