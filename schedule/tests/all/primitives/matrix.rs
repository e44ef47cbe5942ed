//! Every registered primitive on every kind of program: indirect accesses, branches, loops that are empty, run once,
//! have negative steps or steps other than 1, symbolic and zero sizes, tensors declared in loops. A primitive is called
//! with all arguments in the program that fit its parameters; after an accepted call the program computes the same, a
//! refused call leaves it unchanged, and the witness of the refusal occurs.

use crate::primitives::common::{entry, same, shown};
use std::collections::BTreeMap;
use taffeta_ast::{Stmt, StmtKind, Symbol, print};
use taffeta_schedule::{Arg, Handle, IndexMap, Schedule, Value, documentation};

/// Programs with the name of their special feature. Each has a nest, loops beside each other, and a local tensor, so
/// that every primitive has something to be called on.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "plain",
        "
def f(x: f32[n, m], y: inout[f32[n]], z: inout[f32[n, m]]):
    t = zeros((n, m), f32)
    for i in range(n):
        for j in range(m):
            t[i, j] += x[i, j] * 2
    for i in range(n):
        for j in range(m):
            z[i, j] = t[i, j] + x[i, j]
            y[i] += t[i, j]
",
    ),
    (
        "indirect accesses",
        "
def f(x: f32[n, m], k: i32[n], y: inout[f32[n]], z: inout[f32[n, m]]):
    t = zeros((n,), f32)
    for i in range(n):
        for j in range(m):
            t[k[i]] += x[i, j]
            z[k[i], j] = x[k[i], j]
    for i in range(n):
        y[k[i]] = max(y[k[i]], t[i])
    for i in range(n):
        y[i] += t[k[i]]
",
    ),
    (
        "small arrays",
        "
def f(x: f32[n, m], y: inout[f32[n]], z: inout[f32[n, m]]):
    t = zeros((n, m), f32)
    for i in range(n):
        for j in range(m):
            l = empty((2,), f32)
            l[0] = x[i, j]
            l[1] = l[0] * 2
            t[i, j] += l[0] + l[1]
    for i in range(n):
        for j in range(m):
            z[i, j] = t[i, j] + x[i, j]
            y[i] += t[i, j]
",
    ),
    (
        "branches",
        "
def f(x: f32[n, m], b: bool[n], y: inout[f32[n]], z: inout[f32[n, m]]):
    t = zeros((n, m), f32)
    for i in range(n):
        for j in range(m):
            if b[i] and i < j + 2:
                t[i, j] = x[i, j]
            elif j % 2 == 0:
                z[i, j] += 1
    for i in range(n):
        if n > 3:
            for j in range(m):
                y[i] += t[i, j]
        else:
            y[i] = 0
",
    ),
    (
        "empty loops",
        "
def f(x: f32[n, m], y: inout[f32[n]], z: inout[f32[n, m]]):
    t = zeros((n,), f32)
    for i in range(n, n):
        for j in range(m):
            z[i, j] = x[i, j]
    for i in range(n):
        for j in range(3, 3):
            t[i] += 1
    for i in range(n):
        y[i] += t[i]
    for i in range(5, 2):
        y[0] = 0
",
    ),
    (
        "loops that run once",
        "
def f(x: f32[n, m], y: inout[f32[n]], z: inout[f32[n, m]]):
    t = zeros((1, m), f32)
    for i in range(n):
        for l in range(1):
            for j in range(m):
                t[l, j] = x[i, j]
        for l in range(i, i + 1):
            for j in range(m):
                z[l, j] = t[0, j]
    for i in range(n):
        for j in range(1):
            y[i + j] += 2
",
    ),
    (
        "negative and larger steps",
        "
def f(x: f32[n, m], y: inout[f32[n]], z: inout[f32[n, m]]):
    t = zeros((n,), f32)
    for i in range(n - 1, -1, -1):
        for j in range(0, m, 2):
            t[i] += x[i, j]
    for i in range(n - 1, -1, -1):
        y[i] = t[i]
    for i in range(n - 2, 0, -2):
        for j in range(m - 1, 0, -3):
            z[i, j] = z[i + 1, j - 1]
",
    ),
    (
        "triangles",
        "
def f(x: f32[n, n], y: inout[f32[n]], z: inout[f32[n, n]]):
    t = zeros((n, n), f32)
    for i in range(n):
        for j in range(i + 1):
            t[i, j] = x[i, j]
    for i in range(n):
        for j in range(i, min(n, i + 3)):
            z[i, j] += t[j, i]
            y[j] = max(y[j], x[i, j])
",
    ),
    (
        "constant sizes",
        "
def f(x: f32[6, 4], y: inout[f32[6]], z: inout[f32[6, 4]]):
    t = zeros((6, 4), f32)
    for i in range(6):
        for j in range(4):
            t[i, j] = x[i, j]
    for i in range(6):
        for j in range(4):
            z[i, j] += t[i, j]
            y[i] += t[5 - i, j]
",
    ),
    (
        "tensors in loops",
        "
def f(x: f32[n, m], y: inout[f32[n]], z: inout[f32[n, m]]):
    for i in range(n):
        t = zeros((m, 1), f32)
        for j in range(m):
            t[j, 0] = x[i, j] + 1
        for j in range(m):
            u: f32 = t[j, 0] * 2
            z[i, j] = u
        for j in range(m):
            y[i] += t[j, 0]
",
    ),
    (
        "products",
        "
def f(x: f32[n, m], y: inout[f32[n]], z: inout[f32[n, m]]):
    t = zeros((n, n), f32)
    for i in range(n):
        for j in range(n):
            for k in range(m - 1, -1, -1):
                t[i, j] += x[i, k] * x[j, k]
        for j in range(m):
            y[i] -= 2 * z[0, j] * x[i, j]
    for i in range(1, n):
        for j in range(m):
            z[i, j] = 0
            for k in range(i):
                z[i, j] += t[i, k] * x[k, j]
",
    ),
    (
        "recurrences",
        "
def f(x: f32[n, m], y: inout[f32[n]], z: inout[f32[n, m]]) -> f32:
    s: f32 = 0
    t = zeros((n, m), f32)
    for i in range(1, n):
        for j in range(1, m):
            z[i, j] = z[i - 1, j] + z[i, j - 1]
            t[i, j] = z[i, j]
    for i in range(1, n):
        y[i] = y[i - 1] * 2 + x[i, 0]
    for i in range(n):
        s = s * 2 + y[i]
    return s
",
    ),
];

fn statements(s: &Schedule) -> Vec<Stmt> {
    let mut all = Vec::new();
    s.func().body.walk(&mut |s| all.push(s.clone()));
    all
}

fn is_loop(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::For { .. })
}

fn tensor(t: &Symbol) -> Arg {
    Arg { name: None, value: Value::Handle(Handle::Tensor(t.clone())), span: taffeta_ast::Span::NONE }
}

/// Returns all calls of a primitive. A new primitive is called on every loop, until it has a line here.
fn calls(method: &str, s: &Schedule) -> Vec<Vec<Arg>> {
    let all = statements(s);
    let loops: Vec<&Stmt> = all.iter().filter(|s| is_loop(s)).collect();
    let one = |s: &Stmt| Arg::from(s.id());
    let list = |of: &[&Stmt]| Arg::from(of.iter().map(|s| Value::from(s.id())).collect::<Vec<Value>>());
    let mut tensors: Vec<Symbol> = s.func().interface().map(|t| t.symbol.clone()).collect();
    for s in &all {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            tensors.push(tensor.symbol.clone());
        }
    }
    // Pairs of nested loops, and pairs of adjacent statements.
    let around = |l: &Stmt| s.around(l.id());
    let nested: Vec<(Stmt, Stmt)> =
        loops.iter().flat_map(|l| around(l).into_iter().map(|o| (o, (*l).clone())).collect::<Vec<_>>()).collect();
    let mut beside: Vec<(Stmt, Stmt)> = Vec::new();
    for s in &all {
        if let StmtKind::Seq(v) = s.kind() {
            beside.extend(v.windows(2).map(|w| (w[0].clone(), w[1].clone())));
            let only: Vec<&Stmt> = v.iter().filter(|s| is_loop(s)).collect();
            beside.extend(only.windows(2).map(|w| (w[0].clone(), w[1].clone())));
        }
    }
    let each = |more: &[&[Arg]]| -> Vec<Vec<Arg>> {
        loops.iter().flat_map(|l| more.iter().map(|m| [&[one(l)], *m].concat())).collect()
    };
    let of = |more: &[&[Arg]]| -> Vec<Vec<Arg>> {
        tensors.iter().flat_map(|t| more.iter().map(|m| [&[tensor(t)], *m].concat())).collect()
    };
    let skew = IndexMap::affine(&[vec![1, 1, 0], vec![0, 1, 0]]);
    let skew = Arg { name: None, value: Value::Map(skew), span: taffeta_ast::Span::NONE };
    match method {
        "scalarize" => vec![Vec::new()],
        "split" => each(&[&[Arg::from(2)], &[Arg::named("parts", 3)], &[Arg::from(3), Arg::named("shift", 1)]]),
        "reorder" => nested.iter().map(|(a, b)| vec![list(&[b, a])]).collect(),
        "tile" => nested
            .iter()
            .flat_map(|(a, b)| {
                let plain = vec![list(&[a, b]), Arg::from(vec![2i64, 3])];
                let with = |name: &str| [plain.clone(), vec![Arg::named(name, true)]].concat();
                [plain.clone(), with("wavefront"), with("separate")]
            })
            .collect(),
        "polyhedral" => all.iter().map(|s| vec![one(s)]).collect(),
        "permute" => nested.iter().map(|(a, b)| vec![list(&[a, b]), skew.clone()]).collect(),
        "merge" => nested.iter().map(|(a, b)| vec![one(a), one(b)]).collect(),
        "fuse" => beside.iter().filter(|(a, b)| is_loop(a) && is_loop(b)).map(|(a, b)| vec![one(a), one(b)]).collect(),
        "swap" => beside.iter().map(|(a, b)| vec![list(&[a, b])]).collect(),
        "move_to" => beside
            .iter()
            .flat_map(|(a, b)| [vec![one(b), Arg::named("before", a.id())], vec![one(a), Arg::named("after", b.id())]])
            .collect(),
        "fission" => {
            let inside = |l: &&&Stmt| {
                let mut all = Vec::new();
                l.walk(&mut |s| all.push(vec![one(l), Arg::named("after", s.id())]));
                all
            };
            loops.iter().map(|l| inside(&l)).collect::<Vec<_>>().concat()
        }
        "unroll" => each(&[&[], &[Arg::named("factor", 2)]]),
        "specialize" => each(&[&[Arg::from("n > 2")], &[Arg::from("n % 2 == 0")]]),
        "cache" | "cache_reduction" => {
            let plain = all.iter().flat_map(|s| tensors.iter().map(|t| vec![one(s), tensor(t)]));
            plain.flat_map(|call| [call.clone(), [call, vec![Arg::named("pad", 4)]].concat()]).collect()
        }
        "set_mem_type" => {
            of(&["register", "stack", "heap", "arena"].map(Arg::from).each_ref().map(std::slice::from_ref))
        }
        "set_format" => of(&["bytemap", "dense"].map(Arg::from).each_ref().map(std::slice::from_ref)),
        "var_split" => of(&[&[Arg::from(0), Arg::from(2)], &[Arg::from(1), Arg::from(3)]]),
        "var_merge" => of(&[&[Arg::from(0)]]),
        "var_squeeze" | "var_unsqueeze" => of(&[&[Arg::from(0)], &[Arg::from(1)]]),
        "var_reorder" => of(&[&[Arg::from(vec![1i64, 0])]]),
        "inline" | "contract" => of(&[&[]]),
        "privatize" => tensors.iter().flat_map(|t| loops.iter().map(|l| vec![tensor(t), one(l)])).collect(),
        _ => each(&[&[]]),
    }
}

/// Returns the registered primitives that change programs; rules, which call these, have tests of their own.
fn primitives() -> Vec<&'static str> {
    const QUERIES: [&str; 6] = ["loops", "innermost", "writes", "parent", "length", "can"];
    documentation().map(|d| d.name).filter(|n| !QUERIES.contains(n) && !n.starts_with("auto")).collect()
}

/// Makes all calls of a primitive; returns how many are accepted, and how many there are.
fn cell(method: &str, text: &str) -> (usize, usize) {
    let (func, _) = entry(text);
    let start = Schedule::new(func.clone());
    let calls = calls(method, &start);
    let mut taken = 0;
    for args in &calls {
        let mut s = start.clone();
        match s.call(method, args) {
            Ok(_) => {
                taken += 1;
                same(&func, s.func());
                let again = s.trace().replay(func.clone()).expect("recorded steps replay");
                assert_eq!(print::func(again.func()), print::func(s.func()));
            }
            Err(r) => {
                assert_eq!(print::func(s.func()), print::func(&func), "{method} was refused: {}", r.message);
                assert!(!r.message.is_empty());
                shown(&func, &r);
            }
        }
    }
    (taken, calls.len())
}

#[test]
fn every_primitive_on_every_kind_of_program() {
    let mut table: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut never = Vec::new();
    for method in primitives() {
        let mut all = 0;
        for (kind, text) in PROGRAMS {
            let (taken, asked) = cell(method, text);
            assert!(asked > 0, "{method} has no arguments to try on {kind}");
            all += taken;
            table.entry(method).or_default().push(format!("{taken}/{asked}"));
        }
        if all == 0 {
            never.push(method);
        }
    }
    for (method, cells) in &table {
        println!("{method:>16} {}", cells.join(" "));
    }
    assert!(never.is_empty(), "taken nowhere: {never:?}");
}
