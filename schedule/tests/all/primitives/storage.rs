//! Preservation of storage formats and access protocols: by elaboration, passes, primitives, gradients, and the text of
//! a program.

use crate::args;
use crate::primitives::common::{call, entry, list};
use std::collections::BTreeMap;
use taffeta_analysis::pass;
use taffeta_ast::expr::Protocol;
use taffeta_ast::format::Pattern;
use taffeta_ast::func::same;
use taffeta_ast::{Access, Expr, ExprKind, Func, StmtKind, Tensor, print};
use taffeta_autodiff::{Kind, Request, differentiate, differentiate_pair};
use taffeta_schedule::{Arg, Schedule, Value};

/// Program with structured parameters in several formats, a local and a result over the pattern of one of them, and
/// dense loops beside those that traverse them.
const PROGRAM: &str = "
def f(A: f64[n, m] @ csr, B: f64[m, n] @ format(compressed(index=u8), hashed, order=(1, 0)), c: f64[m] @ rle, x: f64[m]) -> (f64[n, m] @ pattern(A), f64[n]):
    t: f64[n, m] @ pattern(A) = zeros((n, m), f64)
    y = zeros((n,), f64)
    R = zeros((n, m), f64)
    w = zeros((m,), f64)
    for k in range(m):
        w[k] = x[k] * 2.0
    for k2 in range(m):
        w[k2] += x[k2]
    for i in range(n):
        for j in range(m):
            t[i, j] = A[i, j] * w[j]
    for i in range(n):
        for j in range(m):
            R[i, j] = t[i, j] * t[i, j]
            y[i] += B[j, i] * c[j] * w[j] + t[i, j]
    return R, y
";

/// Returns the program with protocols: `B[gallop(j), i]`, `c[walk(j)]`, `A[i, locate(j)]`.
fn program() -> Func {
    let func = entry(PROGRAM).0;
    let with = |e: Expr| match e.kind() {
        ExprKind::Load(t, at) => {
            let protocol = match t.name() {
                "A" => [Protocol::Default, Protocol::Locate].to_vec(),
                "B" => [Protocol::Gallop, Protocol::Default].to_vec(),
                "c" => [Protocol::Walk].to_vec(),
                _ => return e,
            };
            let at = at.iter().zip(protocol).map(|(a, protocol)| Access { index: a.index.clone(), protocol });
            Expr::load(t, at.collect(), e.dtype())
        }
        _ => e,
    };
    func.with_body(pass::substitute::rebuild(&func.body, &mut |e| with(e)))
}

/// Returns the storage of a program: formats by the names of tensors, with the tensor whose pattern each has; and the
/// protocols of accesses, by tensor.
fn said(func: &Func) -> (BTreeMap<String, String>, BTreeMap<String, Vec<Protocol>>) {
    let mut tensors: Vec<Tensor> = func.interface().map(|t| (**t).clone()).collect();
    let mut protocols = BTreeMap::new();
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            tensors.push((**tensor).clone());
        }
    });
    func.body.walk_exprs(&mut |e| {
        if let ExprKind::Load(t, at) = e.kind() {
            let all: Vec<Protocol> = at.iter().map(|a| a.protocol).collect();
            if all.iter().any(|p| *p != Protocol::Default) {
                assert_eq!(protocols.entry(t.name().to_string()).or_insert(all.clone()), &all, "{}", print::func(func));
            }
        }
    });
    let owner = |p: Pattern| tensors.iter().find(|t| t.format.pattern == Some(p)).map(|t| t.symbol.to_string());
    let format = |t: &Tensor| {
        let of = t.format.pattern.and_then(owner).unwrap_or_default();
        let drops = if t.format.drops { ", drops" } else { "" };
        (t.symbol.name().to_string(), format!("{} like `{of}`{drops}", t.format))
    };
    (tensors.iter().filter(|t| !t.format.is_dense()).map(format).collect(), protocols)
}

#[track_caller]
fn keeps(step: &str, before: &Func, after: &Func) {
    let ((formats, protocols), (now, protocols_now)) = (said(before), said(after));
    for (name, format) in &formats {
        // A tensor that nothing reads may be removed.
        let gone = name == "t" && !now.contains_key(name);
        assert!(gone || now.get(name) == Some(format), "{step}: {name} is {:?}\n{}", now.get(name), print::func(after));
    }
    assert_eq!(protocols, protocols_now, "{step}\n{}", print::func(after));
}

#[test]
fn elaboration_sets_formats_and_protocols() {
    let (formats, protocols) = said(&program());
    let lines: Vec<String> = formats.iter().map(|(n, f)| format!("{n}: {f}")).collect();
    assert_eq!(
        lines,
        [
            "A: format(dense, compressed) like `A`",
            "B: format(compressed(index=u8), hashed, order=(1, 0)) like `B`",
            "R: format(dense, compressed) like `A`",
            "c: format(runlength) like `c`",
            "t: format(dense, compressed) like `A`",
        ]
    );
    assert_eq!(protocols.len(), 3);
}

#[test]
fn passes_preserve_formats_and_protocols() {
    let func = program();
    type Pass = (&'static str, fn(&Func) -> Func);
    let passes: [Pass; 5] = [
        ("simplify", pass::simplify::run),
        ("dead", pass::dead::run),
        ("hoist", pass::hoist::run),
        ("check_finite", pass::check_finite::run),
        ("copy", |f| f.with_body(pass::copy::statement(&f.body, "test", "copy"))),
    ];
    for (name, run) in passes {
        keeps(name, &func, &run(&func));
    }
}

#[test]
fn primitives_preserve_formats_and_protocols() {
    let four = || Value::from(4);
    let steps: [(&str, &[Arg]); 15] = [
        ("split", args!["k", 4]),
        ("fuse", args!["k", "k2"]),
        ("reverse", args!["k"]),
        ("unroll", args!["k"; factor = 2]),
        ("vectorize", args!["k"]),
        ("parallelize", args!["i#2"]),
        ("reorder", args![list(&["j#2", "i#2"])]),
        ("swap", args![list(&["k", "k2"])]),
        ("specialize", args!["k", "m > 2"]),
        ("separate_tail", args!["k"]),
        ("polyhedral", args!["k"]),
        ("tile", args![list(&["k"]), Value::List(vec![four()])]),
        ("set_mem_type", args!["w", "heap"]),
        ("var_split", args!["w", 0, 4]),
        ("var_unsqueeze", args!["w", 0]),
    ];
    let func = program();
    let mut taken = Vec::new();
    for (method, arguments) in steps {
        let mut s = Schedule::new(func.clone());
        if call(&mut s, method, arguments).is_ok() {
            keeps(method, &func, s.func());
            taken.push(method);
        }
    }
    assert!(taken.len() >= 10, "{taken:?}");
}

#[test]
fn gradients_preserve_formats_and_protocols() {
    let func = program();
    let wrt = ["A", "c", "x"].map(String::from);
    let out = ["y".to_string()];
    let request = Request { out: &out, ..Request::new(Kind::ValueAndVjp, "df", &func, &wrt) };
    let vjp = differentiate(&request).unwrap_or_else(|e| panic!("{e:?}"));
    let ((before, protocols), (formats, now)) = (said(&func), said(&vjp));
    for name in ["A", "B", "c", "R"] {
        assert_eq!(formats.get(name), before.get(name), "{name}\n{}", print::func(&vjp));
    }
    for (name, format) in [("A.grad", "A"), ("c.grad", "c"), ("t.grad", "A")] {
        let found = formats.get(name).unwrap_or_else(|| panic!("{name}\n{}", print::func(&vjp)));
        assert!(found.ends_with(&format!("like `{format}`, drops")), "{name}: {found}");
    }
    assert!(protocols.iter().all(|(t, p)| now.get(t) == Some(p)), "{now:?}\n{}", print::func(&vjp));
    let pair = differentiate_pair(&request).unwrap_or_else(|e| panic!("{e:?}"));
    for pass in [&pair.forward, &pair.backward] {
        let (formats, _) = said(pass);
        let owned = |(_, f): (&String, &String)| !f.contains("like ``");
        assert!(formats.contains_key("A") && formats.iter().all(owned), "{}", print::func(pass));
    }
}

#[test]
fn printed_programs_preserve_formats_and_protocols() {
    let func = entry(PROGRAM).0;
    let wrt = ["A", "c", "x"].map(String::from);
    let out = ["y".to_string()];
    let request = Request { out: &out, ..Request::new(Kind::ValueAndVjp, "df", &func, &wrt) };
    let gradient = differentiate(&request).unwrap_or_else(|e| panic!("{e:?}"));
    for func in [func, gradient] {
        let text = print::func(&func);
        // (`x.grad` is called `x_grad` in the text.)
        assert_eq!(print::func(&entry(&text).0), text);
    }
    let func = entry(PROGRAM).0;
    assert!(same(&func, &entry(&print::func(&func)).0));
    // Protocols are printed as they are written.
    let text = print::func(&program());
    for access in ["A[i, locate(j)]", "B[gallop(j), i]", "c[walk(j)]"] {
        assert!(text.contains(access), "{text}");
    }
}

/// Checks that a pass that rebuilds statements keeps formats and protocols.
#[test]
fn rewritten_accesses_preserve_formats_and_protocols() {
    let func = program();
    let body = pass::rewrite_accesses::run(&func.body, &Default::default(), &|at| at);
    keeps("rewrite_accesses", &func, &func.with_body(body));
}
