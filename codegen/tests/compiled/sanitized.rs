//! Random programs under AddressSanitizer and UndefinedBehaviorSanitizer, as one C program with their inputs in it: no
//! access outside of an array that is exactly as large as it must be, no undefined operation, and the interpreter's status.

use crate::programs::sources;
use crate::run::scratch_dir;
use std::fmt::Write;
use weft_ast::interp;
use weft_ast::random::{Case, Floats, Options, program};
use weft_ast::{Buffer, Func, Value};
use weft_codegen::signature::Passing;
use weft_codegen::toolchain::{CompileOptions, Toolchain};
use weft_codegen::{LowerOptions, Signature, c, lower};

/// The elements as C constants of the type that stores them.
fn elements(data: &Buffer) -> (&'static str, Vec<String>) {
    fn ints<T: std::fmt::Display>(v: &[T], suffix: &str) -> Vec<String> {
        v.iter().map(|x| format!("{x}{suffix}")).collect()
    }
    match data {
        Buffer::Bool(v) => ("_Bool", v.iter().map(|x| u8::from(*x).to_string()).collect()),
        Buffer::I8(v) => ("int8_t", ints(v, "")),
        Buffer::I16(v) => ("int16_t", ints(v, "")),
        Buffer::I32(v) => ("uint32_t", ints(&v.iter().map(|x| *x as u32).collect::<Vec<_>>(), "u")),
        Buffer::I64(v) => ("uint64_t", ints(&v.iter().map(|x| *x as u64).collect::<Vec<_>>(), "u")),
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

/// A C function that calls an entry with everything allocated to the byte, and prints the status.
fn driver(signature: &Signature, params: &[Value], sizes: &[i64]) -> String {
    let name = &signature.c_name;
    let mut text = format!("static void run_{name}(void) {{\n");
    let n = signature.tensors.len();
    let _ = writeln!(
        text,
        "weft_ctx ctx = WEFT_CTX_INIT;\nweft_tensor args[{}];\nint64_t shapes[{}][16] = {{{{0}}}};",
        n.max(1),
        n.max(1)
    );
    for (k, t) in signature.tensors.iter().enumerate() {
        let _ = writeln!(
            text,
            "args[{k}] = (weft_tensor){{WEFT_{}, {}, shapes[{k}], NULL, NULL, NULL, NULL, 0, 0}};",
            t.dtype.name().to_uppercase(),
            t.shape.len()
        );
        if t.passing == Passing::Result {
            continue;
        }
        for (d, size) in params[k].shape().iter().enumerate() {
            let _ = writeln!(text, "shapes[{k}][{d}] = {size};");
        }
        let (c_type, values) = elements(params[k].data());
        let (len, values) = (values.len(), values.join(", "));
        if len > 0 {
            let _ = writeln!(text, "static const {c_type} p{k}[] = {{{values}}};");
            let _ = writeln!(text, "args[{k}].data = memcpy(malloc(sizeof p{k}), p{k}, sizeof p{k});");
        }
    }
    let sizes: Vec<String> = sizes.iter().map(i64::to_string).collect();
    let _ = writeln!(
        text,
        "const int64_t sizes[] = {{{}}};\nsize_t arena;",
        [sizes.join(", "), "0".into()].join(", ").trim_start_matches(", ")
    );
    let _ = writeln!(text, "int status = {name}_plan(&ctx, args, {n}, sizes, &arena);");
    for (k, t) in signature.tensors.iter().enumerate().filter(|(_, t)| t.passing == Passing::Result) {
        let _ = writeln!(text, "size_t bytes{k} = {};", t.dtype.size());
        let _ = writeln!(text, "for (int d = 0; d < {}; d++) bytes{k} *= (size_t)shapes[{k}][d];", t.shape.len());
        let _ = writeln!(text, "args[{k}].data = malloc(bytes{k});");
    }
    let _ = writeln!(text, "if (status == WEFT_OK) status = {name}(&ctx, args, {n}, sizes);");
    let _ = writeln!(text, "printf(\"{name} %d\\n\", status);");
    let _ = writeln!(text, "for (int k = 0; k < {n}; k++) free(args[k].data);\nweft_ctx_release(&ctx);\n}}");
    text
}

fn status(case: &Case) -> i32 {
    match interp::run(&case.func, &case.inputs) {
        Ok(_) => 0,
        Err(e) => match e.kind.code() {
            "run::assert" => 1,
            "run::index" => 2,
            "run::arithmetic" => 3,
            "run::size" => 10,
            other => panic!("unexpected: {other}"),
        },
    }
}

#[test]
fn random_programs_have_no_undefined_behaviour() {
    let dir = scratch_dir();
    let (mut includes, mut functions, mut calls) = (String::new(), String::new(), String::new());
    let mut expected = String::new();
    let mut files = Vec::new();
    for seed in 0..16 {
        let floats = if seed % 4 == 0 { Floats::Exact } else { Floats::Any };
        let options = Options { errors: seed % 2 == 1, floats, statements: 30, ..Options::default() };
        let case = program(5000 + seed, &options);
        let func = Func { name: format!("random_{seed}"), ..case.func.clone() };
        let lowered = lower(&func, &LowerOptions::default()).expect("it can be lowered");
        let source = c::emit(&lowered, &sources());
        let written = Toolchain::write(&source, &dir, &func.name).expect("the directory can be written");
        let sizes: Vec<i64> =
            source.signature.sizes.iter().map(|s| case.inputs.sizes.get(&s.name).copied().unwrap_or(-1)).collect();
        let _ = writeln!(includes, "#include \"{}.h\"", func.name);
        functions.push_str(&driver(&source.signature, &case.inputs.params, &sizes));
        let _ = writeln!(calls, "run_{}();", source.signature.c_name);
        // Comparisons of inexact floats may take another branch: then only the sanitizers are asked.
        let exact = floats == Floats::Exact;
        let _ = writeln!(
            expected,
            "{} {}",
            source.signature.c_name,
            if exact { status(&case).to_string() } else { "*".into() }
        );
        files.push(written.source);
    }
    let main = "main.c";
    let text = format!(
        "{includes}#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n{functions}\nint main(void) {{\n{calls}return 0;\n}}\n"
    );
    std::fs::write(dir.join(main), text).expect("the directory can be written");
    // The stem's own source is added by `executable`.
    let others: Vec<_> = files[1..].iter().cloned().chain([dir.join(main)]).collect();
    let sanitize = CompileOptions { sanitize: true, ..CompileOptions::default() };
    let compiler = Toolchain::find().expect("a C compiler");
    let program = compiler.executable(&dir, "random_0", &others, &sanitize).unwrap_or_else(|d| panic!("{d:?}"));
    let output = std::process::Command::new(program).output().expect("it can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for (want, have) in expected.lines().zip(text.lines()) {
        assert!(want == have || want.strip_suffix('*').is_some_and(|w| have.starts_with(w)), "{have} is not {want}");
    }
    assert_eq!(expected.lines().count(), text.lines().count(), "{text}");
}
