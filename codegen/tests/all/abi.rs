//! The Rust mirror of `taffeta.h` against the header, by a C compiler.

use std::fmt::Write as _;
use taffeta_codegen::c::TAFFETA_H;
use taffeta_codegen::testing::constants;
use taffeta_codegen::toolchain::Toolchain;

/// Evaluates the expressions (sizes, offsets, constants) in C, and returns the values in the same order.
fn in_c(expressions: &[String]) -> Vec<i64> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut text = String::from("#include \"taffeta.h\"\n#include <stdio.h>\nint main(void) {\n");
    for e in expressions {
        let _ = writeln!(text, "    printf(\"%lld\\n\", (long long)({e}));");
    }
    text += "    return 0;\n}\n";
    let file = |name: &str| dir.path().join(name);
    std::fs::write(file("taffeta.h"), TAFFETA_H).expect("it can be written");
    std::fs::write(file("layout.c"), text).expect("it can be written");
    let compiler = Toolchain::find().expect("a C compiler");
    let mut command = std::process::Command::new(compiler.program());
    let made = command.current_dir(dir.path()).args(["-std=c99", "-Wall", "-Werror", "layout.c", "-o", "layout"]);
    assert!(made.status().expect("it runs").success());
    let output = std::process::Command::new(file("layout")).output().expect("it runs");
    String::from_utf8(output.stdout).expect("text").lines().map(|l| l.parse().expect("a number")).collect()
}

#[test]
fn c_and_rust_agree_on_layouts() {
    let mut expected = constants();
    expected.push(("TAFFETA_OK".into(), 0));
    let expressions: Vec<String> = expected.iter().map(|(e, _)| e.clone()).collect();
    let found = in_c(&expressions).into_iter();
    assert_eq!(expressions.into_iter().zip(found).collect::<Vec<_>>(), expected);
}

/// Checks that the tables are complete: a field or constant added to the header must be added here.
#[test]
fn the_layout_tables_cover_the_header() {
    let enums = |prefix: &str| TAFFETA_H.lines().filter(|l| l.trim_start().starts_with(prefix)).count();
    let all = constants();
    let here = |prefix: &str| all.iter().filter(|(e, _)| e.starts_with(prefix)).count();
    assert_eq!(enums("TAFFETA_ERROR_"), here("TAFFETA_ERROR_"));
    assert_eq!(enums("TAFFETA_LEVEL_"), here("TAFFETA_LEVEL_"));
    let body = |name: &str| {
        let start = TAFFETA_H.find(&format!("typedef struct {name} {{")).expect("the header declares it");
        let text = &TAFFETA_H[start..];
        text[..text.find("\n}").expect("an end")].lines().skip(1).filter(|l| l.contains(';')).count()
    };
    for name in ["taffeta_array", "taffeta_level", "taffeta_tensor", "taffeta_ctx"] {
        assert_eq!(here(&format!("offsetof({name},")), body(name), "{name}");
    }
}
