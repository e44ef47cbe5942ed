//! Programs with excessive demands: each gets a diagnostic or works, without stack overflow or long compile times.

use super::Folder;
use std::fmt::Write as _;

/// Returns the first message of `taffeta check` on a program, without its code, or the output if there is none.
fn said(text: &str) -> String {
    let folder = Folder::new(&[("a.ft", text)]);
    let (status, out, err) = folder.taffeta(&["check", "a.ft"]);
    assert!(status == 0 || status == 1, "status {status}\n{err}");
    assert!(out.len() + err.len() < 40_000, "{} bytes", out.len() + err.len());
    match err.lines().find_map(|l| l.trim().strip_prefix("× ")) {
        Some(message) => message.to_string(),
        None => out,
    }
}

/// Makes a function with the body `lines` that returns `value`.
fn program(lines: &str, value: &str) -> String {
    format!("def f(x: f32[n], k: i32) -> f32:\n{lines}    return {value}\n")
}

/// Concatenates `line(k)` for each `k` below `count`.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    let mut out = String::new();
    for k in 0..count {
        writeln!(out, "{}", line(k)).expect("writing to a string");
    }
    out
}

#[test]
fn chains_of_operators_are_bounded() {
    let deep = "an expression is more than 200 operators or 100 brackets deep";
    let chain = |item: &str, by: &str, of: usize| vec![item; of].join(by);
    for (item, by) in [("k > 0", " and "), ("k > 0", " or "), ("k", " < "), ("k > 0", " == ")] {
        let text = |of: usize| program("", &format!("x[0] if {} else x[1]", chain(item, by, of)));
        assert_eq!(said(&text(10_000)), deep, "{by}");
        assert_eq!(said(&text(50)), "a.ft: no errors in 1 entry\n", "{by}");
    }
    for (item, by) in [("x[0]", " + "), ("x[0]", " ** "), ("1", " if k > 0 else ")] {
        assert_eq!(said(&program("", &chain(item, by, 10_000))), deep, "{by}");
    }
    for (open, close) in [("(", ")"), ("[", "]"), ("exp(", ")"), ("-", ""), ("not ", ""), ("~", "")] {
        let text = format!("{}x[0]{}", open.repeat(10_000), close.repeat(10_000));
        assert_eq!(said(&program("", &text)), deep, "{open}");
    }
    let elif = lines(10_000, |k| format!("    {} k == {k}:\n        pass", if k == 0 { "if" } else { "elif" }));
    assert_eq!(said(&program(&elif, "x[0]")), "an `if` has more than 200 branches");
}

#[test]
fn inlined_programs_are_bounded() {
    let large = "the expression has more than 4096 operands and operators after inlining";
    assert_eq!(said(&program("", &format!("max({})", vec!["x[0]"; 10_000].join(", ")))), large);
    let twice = "def g(v, d):\n    if d == 0:\n        return v\n    return g(v * v % 1007, d - 1)\n\n\n";
    assert_eq!(said(&format!("{twice}{}", program("", "x[g(n, 60)]"))), large);
    let nested = "def g(x, y, d):
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            if d == 0:
                y[...] += x[i] * x[j]
            else:
                g(x, y, d - 1)


";
    let call = |d: usize| format!("{nested}{}", program(&format!("    y: f32 = 0.0\n    g(x, y, {d})\n"), "y"));
    assert_eq!(said(&call(200)), "a.ft: no errors in 1 entry\n");
    assert_eq!(
        said(&call(400)),
        "this program nests loops and branches more than 512 deep, in the functions that it calls"
    );
}

#[test]
fn recursion_and_long_chains_of_calls_are_distinguished() {
    let chain = |n: usize| {
        let functions = lines(n, |k| format!("def g{k}(x):\n    return g{}(x)\n\n", k + 1));
        format!("{functions}def g{n}(x):\n    return x[0]\n\n\n{}", program("", "g0(x)"))
    };
    assert_eq!(said(&chain(600)), "a.ft: no errors in 1 entry\n");
    assert_eq!(said(&chain(10_000)), "calls are nested more than 2000 deep, at the call of `g2000`");
    let endless = "def g(x, d):\n    return h(x, d + 1)\n\n\ndef h(x, d):\n    return g(x, d + 1)\n\n\n";
    assert_eq!(
        said(&format!("{endless}{}", program("", "g(x, 0)"))),
        "the recursion of `g` does not end: it calls itself more than 512 deep"
    );
}

#[test]
fn a_gradient_that_needs_itself_is_refused() {
    let own = "the gradient of `loss` depends on itself";
    let loss = "def loss(x: f32[n]) -> f32:\n    return sum(g(x))\n\n\n";
    assert_eq!(said(&format!("{loss}g = grad(loss)\n")), own);
    assert_eq!(said(&format!("{loss}def g(x):\n    return h(x)\n\n\nh = grad(loss)\n")), own);
    assert_eq!(said("def loss(x: f32[n]) -> f32:\n    return sum(grad(loss)(x))\n"), own);
    let orders = lines(4, |k| format!("g{} = grad(g{k})", k + 1));
    let text = format!("def f(x: f32) -> f32:\n    return x * x\n\n\ng0 = grad(f)\n{orders}");
    assert_eq!(said(&text), "derivatives of order 5 are not supported; the highest order is 4");
}

#[test]
fn static_values_are_bounded() {
    let items = "a static sequence has more than 1048576 items, including nested ones";
    for (open, close) in [("[", "]"), ("(", ")")] {
        let text = lines(60, |k| format!("    a{} = {open}a{k}, a{k}{close}", k + 1));
        assert_eq!(said(&program(&format!("    a0 = [0]\n{text}"), "x[len(a60)]")), items);
        let globals = lines(60, |k| format!("a{} = {open}a{k}, a{k}{close}", k + 1));
        assert_eq!(said(&format!("a0 = [0]\n{globals}{}", program("", "x[len(a60)]"))), items);
    }
    let text = lines(60, |k| format!("    a{} = a{k} + a{k}", k + 1));
    let text = |first: &str| program(&format!("    a0 = {first}\n{text}"), "x[len(a60)]");
    assert_eq!(said(&text("\"ab\"")), "a static string is longer than 1048576 bytes");
    assert_eq!(said(&text("[0]")), "a static sequence has more than 1048576 items");
    let grown = |step: &str| {
        program(&format!("    a = [0]\n    for i in static(range(100000)):\n        a = {step}\n"), "x[0]")
    };
    assert_eq!(said(&grown("[a]")), "static sequences are nested more than 100 deep");
    assert_eq!(said(&grown("a + [i]")), "this program takes too long to compile (over 4000000 static steps)");
}

#[test]
fn ranks_and_names_are_bounded() {
    let rank = "a tensor has at most 32 dimensions";
    for n in [33, 1000] {
        assert_eq!(said(&format!("def f(x: f32[{}]) -> f32:\n    return sum(x)\n", vec!["n"; n].join(", "))), rank);
    }
    assert_eq!(said(&program("", &format!("sum(zeros(({}), f32))", "1, ".repeat(33)))), rank);
    let names: Vec<String> = (0..33).map(|k| format!("i{k}")).collect();
    let ones = vec!["1"; 33].join(", ");
    let text = format!("    for {} in ndrange({ones}):\n        pass\n", names.join(", "));
    assert_eq!(said(&program(&text, "x[0]")), "`ndrange` takes at most 32 sizes, one for each loop");
    assert_eq!(said(&program("", &"a".repeat(100_000))), "a name is longer than 255 characters");
    assert_eq!(said(&program("", &format!("x[{}]", "9".repeat(100_000)))), "a number is longer than 1000 characters");
}

#[test]
fn many_errors_and_long_lines_are_abridged() {
    let folder = Folder::new(&[("a.ft", &program(&lines(20_000, |k| format!("    y{k} = z{k}")), "x[0]"))]);
    let shown = folder.fails(&["check", "a.ft"]);
    assert_eq!(shown.matches("× there is no").count(), 20);
    assert!(shown.ends_with("… and 19,980 more\n\n20,000 errors\n"));
    assert_eq!(said(&program("", &format!("x[0]{}+ zz", " ".repeat(70_000)))), "there is no `zz` here");
    let tabs = format!("x[0]{}zz", "\t".repeat(70_000));
    assert_eq!(said(&program("", &tabs)), "expected an operator, a comma or the end of the line, found `zz`");
}
