//! Agreement with Python: a source that the parser accepts is accepted by Python, with the same tree.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use taffeta_ast::span::FileId;
use taffeta_frontend::format::format;
use taffeta_frontend::parse::parse;
use taffeta_frontend::syntax::show as tree;
use testkit::texts;

/// Returns Python's trees of many sources, computed in one process; `None` if Python is missing and
/// `TAFFETA_SKIP_NUMPY=1` allows that.
fn python_trees(sources: &[String]) -> Option<Vec<String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/parser/python_tree.py");
    let spawned = Command::new("python3").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(e) if std::env::var("TAFFETA_SKIP_NUMPY").is_ok_and(|v| v == "1") => {
            eprintln!("skipped: `python3` cannot be run ({e})");
            return None;
        }
        Err(e) => panic!(
            "`python3` cannot be run ({e}), and this test compares with it: install it (`tools/setup.sh test` says \
             how), or set TAFFETA_SKIP_NUMPY=1 to do without the tests that need Python"
        ),
    };
    let mut input = child.stdin.take().unwrap();
    let records: Vec<u8> =
        sources.iter().flat_map(|s| [format!("{}\n", s.len()).into_bytes(), s.clone().into_bytes()].concat()).collect();
    // The writer has its own thread, so that neither side blocks on a full pipe.
    let writer = std::thread::spawn(move || input.write_all(&records).expect("python3 reads all sources"));
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut trees = Vec::new();
    for _ in sources {
        let mut length = String::new();
        output.read_line(&mut length).unwrap();
        let mut tree = vec![0; length.trim().parse().expect("a length")];
        output.read_exact(&mut tree).unwrap();
        trees.push(String::from_utf8(tree).unwrap());
    }
    writer.join().unwrap();
    child.wait().unwrap();
    Some(trees)
}

/// Compares the trees of those sources that the parser accepts; returns their number.
fn agree(sources: impl IntoIterator<Item = String>) -> usize {
    let accepted: Vec<(String, String)> = sources
        .into_iter()
        .filter_map(|source| {
            let (module, diags) = parse(&source, FileId(0));
            diags.is_empty().then(|| (tree::module(&module), source))
        })
        .collect();
    let texts: Vec<String> = accepted.iter().map(|(_, source)| source.clone()).collect();
    let Some(theirs) = python_trees(&texts) else { return usize::MAX };
    assert_eq!(theirs.len(), accepted.len());
    for ((ours, source), theirs) in accepted.iter().zip(theirs) {
        let line = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
        assert!(*ours == theirs, "Python differs on\n{source}\n{source:?}\nours, Python's: {line:#?}");
    }
    accepted.len()
}

/// Returns all `.ft` files of the repository.
pub fn corpus() -> Vec<PathBuf> {
    fn visit(dir: &Path, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                visit(&path, out);
            } else if name.ends_with(".ft") {
                out.push(path);
            }
        }
    }
    let mut out = Vec::new();
    visit(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")), &mut out);
    out.sort();
    out
}

#[test]
fn agrees_on_every_file_of_the_repository() {
    agree(corpus().iter().map(|path| std::fs::read_to_string(path).unwrap()));
}

#[test]
fn agrees_on_generated_programs() {
    let formatted = (0..100).filter_map(|seed| format(&texts::program(seed), FileId(0)).ok());
    let count = agree((0..300).map(texts::program).chain(formatted));
    assert!(count >= 380, "the generator makes programs that the parser refuses: {count} of 400 accepted");
}

#[test]
fn agrees_on_mutated_programs_and_token_soup() {
    let count = agree((0..1500).map(texts::mutant).chain((0..4000).map(texts::soup)));
    assert!(count >= 250, "too few of the fuzzed sources are accepted to say anything: {count}");
}

/// Checks corner cases where the parser could easily accept more than Python, or read another tree.
#[test]
fn agrees_on_corner_cases() {
    let nested = |n: usize| format!("x = {}1{}\n", "(".repeat(n), ")".repeat(n));
    let sources = [
        "x = 1if 2else 3\n",
        "x = 1 if 2 else 3\n",
        "x = 1.real\n",
        "x = 1..real\n",
        "x = 0_0, 1_0.e1, 0xe-1\n",
        "x = 012\n",
        "x = 1 if x else-1\n",
        "x = not-1\n",
        "x = 1 + not 2\n",
        "x = a if b\n",
        "x = a<b>c\n",
        "x = a<>b\n",
        "x = ur'a'\n",
        "x = Rf'a{b}'\n",
        "x = 'a\\\nb'\n",
        "x = 'a\\\r\nb'\n",
        "x = '''a\r\nb\rc'''\r\ny = 1\r",
        "x = (1 # c\n + # d\n 2)\n",
        "x = [ # c\n]\n",
        "x = 1 \\\n# c\n",
        "x = 1 \\\n\ny = 2\n",
        "x = \\\n1\n",
        "\\\nx = 1\n",
        "def f():\n\tpass\n        pass\n",
        "def f():\n        pass\n\tpass\n",
        "def f():\n  if a:\n\tpass\n",
        "def f():\n \tpass\n \tpass\n",
        "def f():\n\x0c    pass\n    pass\n",
        "\x0cx = 1\n",
        "def f(): pass\n\n\x0c\ndef g(): pass",
        " # c\nx = 1\n   # d\ny = 2",
        "def f(a, b=1,): pass\n",
        "def f(,): pass\n",
        "def f(a=1, b): pass\n",
        "def f(a:=1): pass\n",
        "x = f(a:=1)\n",
        "x = a[b:=1]\n",
        "x = f(a, b=1, c)\n",
        "x = f(a=1,)\n",
        "x = f(,)\n",
        "x = (,)\n",
        "x = [,]\n",
        "x = a[]\n",
        "x = a[,]\n",
        "x = a[1:2:3:4]\n",
        "def f():\n    x: f32\n",
        "def f():\n    (x): f32 = 1\n",
        "def f():\n    x = y = 1\n",
        "def f():\n    a, = b\n",
        "def f():\n    a, b += 1\n",
        "def f():\n    f() = 1\n",
        "def f():\n    1 += 1\n",
        "def f():\n    a.b, c[1] = d\n",
        "def f():\n    () = a\n",
        "def f():\n    [a, b] = c\n",
        "def f():\n    (a, [b, c.d]), (e[1], f) = g\n",
        "def f():\n    a, (b,) = c\n",
        "def f():\n    a, (b, f()) = c\n",
        "def f():\n    [a] = c\n",
        "def f():\n    for x[0] in y: pass\n",
        "def f():\n    for a.b, c in x, y: pass\n",
        "def f():\n    for in y: pass\n",
        "def f():\n    for a b in y: pass\n",
        "def f():\n    return\n    return 1,\n    return (1)\n",
        "def f():\n    assert (a, b)\n",
        "def f():\n    assert a, b, c\n",
        "def f():\n    pass;\n",
        "def f():\n    ;pass\n",
        "def f():\n    pass;;pass\n",
        "x = f'{a}{{b}}'\n",
        "x = f'{a!=b}'\n",
        "x = f'{ a }'\n",
        "x = f'{a,b}'\n",
        "x = f'{{{a}}}'\n",
        "x = f'\\{a}'\n",
        "x = f'\\x41{a}\\n'\n",
        "x = rf'\\{a}'\n",
        "x = f'{a:b}'\n",
        "x = f'}'\n",
        "x = f'{'\n",
        "x = f'{}'\n",
        "x = f'{a[\"b\"]}'\n",
        "x = f'''{\na}'''\n",
        "x = f'{(a)}' 'b' f'c'\n",
        "x = f'\\N{DIGIT ONE}'\n",
        "x = f'{a}\\{'\n",
        "x = '\\400'\n",
        "x = '\\x4'\n",
        "x = '\\u12'\n",
        "x = '\\ud800'\n",
        "x = '\\U00110000'\n",
        "x = 'é\\é'\n",
        "x = a if b else c if d else e\n",
        "x = [a for b in c if d if e]\n",
        "x = [a for b in c if d else e]\n",
        "x = [a if b else c for d in e]\n",
        "x = [a for b, in c]\n",
        "x = [a, b for c in d]\n",
        "x = [a for (b, c) in d]\n",
        "x = [lambda: 1]\n",
        "x = s.permute(a, lambda: 1)\n",
        "x = s.permute(lambda a,: 1)\n",
        "x = s.permute(lambda a: a, 1)\n",
        "x = s.permute(lambda a: a if b else c)\n",
        "from a import b as c, d\n",
        "from a import (b)\n",
        "from a import ()\n",
        "from a import b,\n",
        "from . import a\n",
        "from a import *\n",
        "from a.b import c\n",
        "from a import b.c\n",
        "@a\n\n# c\n@b.c(d)\ndef f(): pass\n",
        "@a def f(): pass\n",
        "x = 1; y = 2;\n",
        "x = 1 y = 2\n",
        "'a'\n'b'\n",
        "x = 'a' 'b' r'\\c'\n",
        "x = b'a'\n",
        "x = 1j\n",
        "x = ...\n",
        "x = . . .\n",
        "x = a . b\n",
        "x = a.if\n",
        "x = -1 ** -2\n",
        "x = ~-+1\n",
        "x = a @ b\n",
        "def f():\n    a @= b\n    a -= b\n",
        "def f():\n    a - = b\n",
        "x = a not in b\n",
        "x = a is not b\n",
        "x = a not b\n",
        "x = not a in b\n",
        "\u{feff}x = 1\n",
        "x = 1\n\u{feff}y = 2\n",
        "x = \u{a0}1\n",
        "é = 1\n",
        "x = 1\0\n",
        "# coding: latin-1\nx = 'é'\n",
        "# coding: utf-8\nx = 'é'\n",
        "#\n# vim: set fileencoding=cp1252 :\nx = 'é'\n",
        "if = 1\n",
        "None = 1\n",
        "x = None.a\n",
        "match = 1\n",
        "type = match[case]\n",
        "def match(type): pass\n",
        "x = print\n",
        "def f(x) -> (f32, i32): pass\n",
        "def f(x) -> f32, i32: pass\n",
        "def f(x: a @ b = c): pass\n",
        "def f(x)\n",
        "def f(x):\n",
        "def f(x):\n\npass\n",
        "def f():\n    if a: pass\n    elif b: pass\n    else: pass\n",
        "def f():\n    if a: if b: pass\n",
        "def f():\n    if a:\n        pass\n    else: pass\n    else: pass\n",
        "def f():\n    if a:\n        'x'\n    else:\n        'y'\n",
    ];
    let deep = [nested(50), nested(100), nested(101)];
    let count = agree(sources.iter().map(ToString::to_string).chain(deep));
    assert!(count >= 75, "{count}");
}
