//! Kernels with operands in all formats, and in pairs of them: the lowered programs compute the same as the logical
//! ones.

use std::panic::catch_unwind;
use taffeta_analysis::pass::substitute;
use taffeta_ast::expr::Protocol;
use taffeta_ast::{Access, Expr, ExprKind, Func, LoopProps, Parallel, Stmt, StmtKind};
use taffeta_structured::lower;
use testkit::programs;

const VECTORS: &[&str] = &[
    "format(dense, fill=7.5)",
    "format(compressed)",
    "format(compressed, fill=inf)",
    "format(compressed(ordered=False))",
    "format(hashed)",
    "format(bytemap)",
    "format(bitmap)",
    "format(banded)",
    "format(ragged)",
    "format(blocklist)",
    "format(runlength)",
    "format(packbits)",
    "format(point)",
];

const MATRICES: &[&str] = &[
    "csr",
    "csc",
    "dcsr",
    "coo",
    "format(compressed(unique=False), singleton, order=(1, 0))",
    "vbl",
    "band",
    "rle",
    "packbits",
    "ragged",
    "hashmap",
    "format(compressed(ordered=False), hashed)",
    "format(dense, bitmap)",
    "format(bytemap, bytemap)",
    "format(compressed, runlength)",
    "format(dense, point)",
    "format(dense, compressed, fill=inf)",
];

const SQUARES: &[&str] = &["symmetric", "lower_triangular", "upper_triangular"];

/// Bodies, one for each use of elements `a` and `b`.
const PAIRS: &[&str] = &[
    "s += a * b",
    "s += a + b",
    "s = max(s, a * b)",
    "s = min(s, a + b)",
    "y[j] += a * b * x[j]",
    "y[j] = a - b",
    "s += exp(a) * b + x[j]",
    "s += (1.0 if a > 2.0 else 0.0) * b",
];

/// Checks that a program equals its lowering; returns the message if lowering refuses it.
fn outcome(text: &str, seeds: std::ops::Range<u64>) -> Result<(), String> {
    lowered_equals(&programs::elaborate(text), text, seeds)
}

/// Sets the protocol of the last index of each of these tensors.
fn with_protocols(func: &Func, protocols: &[(&str, Protocol)]) -> Func {
    let body = substitute::rebuild(&func.body, &mut |e| match e.kind() {
        ExprKind::Load(t, at) => match protocols.iter().find(|(name, _)| *name == t.name()) {
            Some((_, protocol)) => {
                let last = at.len() - 1;
                let one = |(k, a): (usize, &Access)| Access {
                    index: a.index.clone(),
                    protocol: if k == last { *protocol } else { a.protocol },
                };
                Expr::load(t, at.iter().enumerate().map(one).collect(), e.dtype())
            }
            None => e,
        },
        _ => e,
    });
    func.with_body(body)
}

fn lowered_equals(func: &Func, text: &str, seeds: std::ops::Range<u64>) -> Result<(), String> {
    let structured = match lower(func) {
        Ok(structured) => structured,
        Err(e) => return Err(e.0[0].message.clone()),
    };
    taffeta_ast::validate::dense(&structured.func).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for seed in seeds {
        let result = catch_unwind(|| programs::equal(func, &structured, seed));
        assert!(result.is_ok(), "{text}");
    }
    Ok(())
}

/// Returns the programs that are refused, with the reasons.
fn refusals(texts: impl IntoIterator<Item = String>, seeds: u64) -> Vec<String> {
    let mut refused = Vec::new();
    for text in texts {
        if let Err(why) = outcome(&text, 0..seeds) {
            refused.push(format!("{why}\n{text}"));
        }
    }
    refused
}

#[test]
fn pairs_of_vectors() {
    let mut texts = Vec::new();
    for a in VECTORS {
        for b in VECTORS {
            for body in PAIRS {
                let body = body.replace('a', "A[j]").replace('b', "B[j]").replace("mA[j]x", "max");
                let body = body.replace("A[j]nd", "and");
                texts.push(format!(
                    "def f(A: f64[n] @ {a}, B: f64[n] @ {b}, x: f64[n]) -> (f64, f64[n]):\n    s = 0.0\n    y = zeros((n,), f64)\n    for j in range(n):\n        {body}\n    return s, y\n"
                ));
            }
        }
    }
    let refused = refusals(texts, 8);
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn parts_of_vectors() {
    let ranges =
        ["range(n // 2)", "range(n // 3, n)", "range(1, max(1, n - 1))", "range(n - 1, -1, -1)", "range(0, n, 2)"];
    let mut texts = Vec::new();
    for a in VECTORS {
        for range in ranges {
            for value in ["A[j]", "A[j] * x[j]", "A[j] * B[j]", "A[j] + B[j]"] {
                texts.push(format!(
                    "def f(A: f64[n] @ {a}, B: f64[n] @ format(compressed), x: f64[n]) -> (f64, f64[n]):\n    s = 0.0\n    y = zeros((n,), f64)\n    for j in {range}:\n        s += {value}\n        y[j] = {value} + 1.0\n    return s, y\n"
                ));
            }
        }
    }
    let refused = refusals(texts, 8);
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn matrices() {
    let kernels = [
        ("for i in range(n):\n        for j in range(m):\n            ", "y[i] += A[i, j] * x[j]"),
        ("for i in range(n):\n        for j in range(m):\n            ", "s += A[i, j] * B[i, j]"),
        ("for i in range(n):\n        for j in range(m):\n            ", "C[i, j] = A[i, j] + B[i, j]"),
        ("for j in range(m):\n        for i in range(n):\n            ", "y[i] += A[i, j] * x[j]"),
        ("for i in range(n):\n        for j in range(m):\n            ", "y[i] += A[k[i], j] * x[j]"),
        ("for i in range(n):\n        for j in range(m):\n            ", "y[i] += x[j] * A[i, (j + i) % m]"),
    ];
    let mut texts = Vec::new();
    let square = |s: &str| s.replace("f64[n, m]", "f64[n, n]").replace("range(m)", "range(n)").replace("% m", "% n");
    for (p, a) in MATRICES.iter().chain(SQUARES).enumerate() {
        for (q, (loops, body)) in kernels.iter().enumerate() {
            let b = MATRICES[(5 * p + q) % MATRICES.len()];
            let text = format!(
                "def f(A: f64[n, m] @ {a}, B: f64[n, m] @ {b}, x: f64[m], k: i64[n]) -> (f64, f64[n], f64[n, m]):\n    s = 0.0\n    y = zeros((n,), f64)\n    C = zeros((n, m), f64)\n    for q in range(n):\n        assert 0 <= k[q] and k[q] < n\n    {loops}{body}\n    return s, y, C\n"
            );
            let text = if SQUARES.contains(a) {
                square(&text).replace("x: f64[m]", "x: f64[n]").replace("(n, m)", "(n, n)")
            } else {
                text
            };
            texts.push(text);
        }
    }
    let refused = refusals(texts, 12);
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn leaders_and_followers() {
    let ways: [&[(&str, Protocol)]; 5] = [
        &[("A", Protocol::Gallop), ("B", Protocol::Gallop)],
        &[("A", Protocol::Gallop)],
        &[("A", Protocol::Gallop), ("B", Protocol::Walk)],
        &[("B", Protocol::Locate)],
        &[("A", Protocol::Gallop), ("B", Protocol::Gallop), ("C", Protocol::Gallop)],
    ];
    let mut refused = Vec::new();
    for (p, a) in VECTORS.iter().enumerate() {
        for (q, b) in VECTORS.iter().enumerate() {
            let bodies =
                ["s += A[j] * B[j]", "s += A[j] * B[j] * C[j]", "y[j] = A[j] + B[j]", "s += A[j] * (B[j] + C[j])"];
            for (k, body) in bodies.iter().enumerate() {
                let range = if (p + q + k).is_multiple_of(2) { "range(n)" } else { "range(1, n - 1)" };
                let text = format!(
                    "def f(A: f64[n] @ {a}, B: f64[n] @ {b}, C: f64[n] @ format(compressed)) -> (f64, f64[n]):\n    s = 0.0\n    y = zeros((n,), f64)\n    for j in {range}:\n        {body}\n    return s, y\n"
                );
                let func = programs::elaborate(&text);
                for way in ways {
                    match lowered_equals(&with_protocols(&func, way), &text, 0..4) {
                        Ok(()) => {}
                        Err(why) => refused.push(format!("{why}\n{text}")),
                    }
                }
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Checks that a leader with several coordinates per position (a run or a block) leads with all of them.
#[test]
fn leaders_of_runs_and_blocks() {
    let formats = ["format(compressed)", "format(blocklist)", "format(runlength)", "format(packbits)"];
    let mut refused = Vec::new();
    for a in formats {
        for b in formats {
            for (range, body) in [("range(n)", "s += A[j] * B[j]"), ("range(1, n - 1)", "y[j] += A[j] * B[j] * C[j]")] {
                let text = format!(
                    "def f(A: f64[n] @ {a}, B: f64[n] @ {b}, C: f64[n] @ format(compressed)) -> (f64, f64[n]):\n    s = 0.0\n    y = zeros((n,), f64)\n    for j in {range}:\n        {body}\n    return s, y\n"
                );
                for (p, q) in [("gallop", "gallop"), ("gallop", "walk"), ("walk", "gallop"), ("gallop", "locate")] {
                    let text = text.replace("A[j]", &format!("A[{p}(j)]")).replace("B[j]", &format!("B[{q}(j)]"));
                    if let Err(why) = outcome(&text, 0..16) {
                        refused.push(format!("{why}\n{text}"));
                    }
                }
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Checks that leaders jump to the maximum of their coordinates, and that a follower is searched at the leader's
/// coordinate.
#[test]
fn leaders_by_protocol() {
    let text = "def f(A: f64[n] @ format(compressed), B: f64[n] @ format(compressed)) -> f64:\n    s = 0.0\n    for j in range(n):\n        s += A[j] * B[j]\n    return s\n";
    let shown = |protocols: &[(&str, Protocol)]| {
        let func = with_protocols(&programs::elaborate(text), protocols);
        taffeta_ast::print::func(&lower(&func).expect("there is a rule").func)
    };
    let (a, b) = ("cast(A_crd0[j_A], i64)", "cast(B_crd0[j_B], i64)");
    let both = shown(&[("A", Protocol::Gallop), ("B", Protocol::Gallop)]);
    assert!(both.contains(&format!("j = max({a}, {b})")) && both.contains("j_A_probe"), "{both}");
    let one = shown(&[("A", Protocol::Gallop)]);
    assert!(one.contains("for j.p in range(cast(A_pos0[0], i64)") && one.contains("j_B_probe"), "{one}");
    let merged = shown(&[]);
    assert!(merged.contains(&format!("j = min({a}, {b})")) && !merged.contains("probe"), "{merged}");
}

/// Checks the protocols that are chosen by cost: two lists are merged, and a level with a position for each coordinate
/// is located.
#[test]
fn leaders_by_cost() {
    let parts = |formats: [&str; 3], index: [&str; 3], value: &str| {
        let [a, b, c] = formats;
        let mut value = value.to_string();
        for (name, index) in ["A", "B", "C"].iter().zip(index) {
            value = value.replace(name, &format!("{name}[{index}]"));
        }
        let text = format!(
            "def f(A: f64[n] @ format({a}), B: f64[n] @ format({b}), C: f64[n] @ format({c})) -> f64:\n    s = 0.0\n    for j in range(n):\n        s += {value}\n    return s\n"
        );
        let func = programs::elaborate(&text);
        let lowered = lower(&func).expect("there is a rule");
        assert!(lowered_equals(&func, &text, 0..30) == Ok(()));
        let one = &lowered.explained[0];
        let parts: Vec<String> = one.operands.iter().map(|o| format!("{} {}", o.tensor, o.role.word())).collect();
        format!("{}; {}", parts.join(", "), one.iterations.as_deref().unwrap_or("?"))
    };
    let plain = ["j"; 3];
    let lists = ["compressed", "compressed", "compressed"];
    assert_eq!(parts(lists, plain, "A * B"), "A merged, B merged; at most nnz(A) + nnz(B)");
    assert_eq!(parts(lists, ["gallop(j)", "j", "j"], "A * B"), "A drives, B searched; nnz(A)");
    assert_eq!(
        parts(lists, ["gallop(j)", "j", "gallop(j)"], "A * B * C"),
        "A leaps, C leaps, B searched; at most 2 * min(nnz(A), nnz(C))"
    );
    let map = ["compressed", "bytemap", "bytemap"];
    assert_eq!(parts(map, plain, "A * B"), "A drives, B asked; nnz(A)");
    assert_eq!(parts(map, plain, "B * C"), "B drives, C asked; nnz(B)");
    assert_eq!(parts(map, plain, "A * B * C"), "A drives, C asked, B asked; nnz(A)");
    assert_eq!(parts(map, plain, "A + B"), "A merged, B merged; at most nnz(A) + nnz(B)");
    assert_eq!(parts(map, ["j", "walk(j)", "j"], "A * B"), "A merged, B merged; at most nnz(A) + nnz(B)");
    assert_eq!(parts(map, ["j", "gallop(j)", "j"], "A * B"), "B drives, A searched; nnz(B)");
    assert_eq!(parts(map, ["locate(j)", "j", "j"], "A * B"), "B drives, A searched; nnz(B)");
    let other = ["compressed", "bitmap", "banded"];
    assert_eq!(parts(other, plain, "A * B"), "A drives, B asked; nnz(A)");
    assert_eq!(parts(other, plain, "A * C"), "C limits, A drives; nnz(C)");
    assert_eq!(parts(["hashed", "compressed", "runlength"], plain, "A * B"), "B drives, A probed; nnz(B)");
    let runs = ["blocklist", "compressed", "runlength"];
    assert_eq!(parts(runs, plain, "B * C"), "B drives, C follows; nnz(B)");
    assert_eq!(parts(runs, plain, "A * B * C"), "B drives, A follows, C follows; nnz(B)");
    assert_eq!(parts(runs, plain, "A * C"), "A merged, C merged; at most blocks(A) + runs(C)");
    assert_eq!(parts(runs, ["j", "j", "walk(j)"], "B * C"), "B merged, C merged; at most nnz(B) + runs(C)");
    assert_eq!(parts(runs, plain, "B + C"), "B merged, C merged; at most nnz(B) + runs(C)");
}

/// Checks that a row picked by an index tensor is traversed, instead of searched for each of its coordinates.
#[test]
fn rows_selected_by_an_index_tensor() {
    let text = "def f(A: f64[n, m] @ csr, k: i64[p]) -> f64[m]:\n    y = zeros((m,), f64)\n    for q in range(p):\n        for j in range(m):\n            y[j] += A[k[q], j]\n    return y\n";
    let func = programs::elaborate(text);
    assert_eq!(lowered_equals(&func, text, 0..30), Ok(()));
    let lowered = lower(&func).expect("there is a rule");
    assert!(lowered.warnings.is_empty(), "{:?}", lowered.warnings);
    assert_eq!(lowered.explained[1].iterations.as_deref(), Some("nnz(A)/n"));
}

/// Checks accesses to a `singleton` row at another coordinate than the loop's: all positions of the row are examined.
#[test]
fn singleton_rows_at_other_coordinates() {
    let bodies =
        ["y[i, j] += 2.0 * A[i, k[j] % n]", "y[i, j] = A[i, j] * A[i, k[j] % n]", "y[i, j] += A[i, n - 1 - j]"];
    for format in ["compressed(unique=False), singleton", "compressed(unique=False), singleton, fill=2.0"] {
        for body in bodies {
            let text = format!(
                "def f(A: f64[n, n] @ format({format}), k: i64[n]) -> f64[n, n] @ pattern(A, drop=True):\n    \
                 y = zeros((n, n), f64)\n    for i in range(n):\n        for j in range(n):\n            {body}\n    \
                 return y\n"
            );
            outcome(&text, 0..16).unwrap_or_else(|e| panic!("{e}\n{text}"));
        }
    }
}

/// Checks that the protocols of one fibre must agree, while other fibres of the tensor may be traversed in another way.
#[test]
fn contradicting_protocols_are_refused() {
    let said = |value: &str| {
        let text = format!(
            "def f(A: f64[n, m] @ csr) -> f64:\n    s = 0.0\n    for i in range(n):\n        for j in range(m):\n            s += {value}\n    return s\n"
        );
        lower(&programs::elaborate(&text)).map(|_| ()).map_err(|e| (e.0[0].code, e.0[0].message.clone()))
    };
    let text = "the loop `j` traverses the same fibre of `A` with both `walk` and `gallop`".to_string();
    assert_eq!(said("A[i, walk(j)] * A[i, gallop(j)]"), Err(("storage::protocol", text)));
    assert_eq!(said("A[i, walk(j)] * A[0, gallop(j)]"), Ok(()));
    assert_eq!(said("A[i, walk(j)] * A[i, locate(j)] * A[i, j]"), Ok(()));
}

/// Checks that a loop over positions is not parallel if several positions share a coordinate, since they write one
/// element; nor is a merge or a scan.
#[test]
fn loops_that_cannot_be_parallel() {
    let rows = |storage: &str, body: &str| {
        format!(
            "def f(A: f64[n, m] @ {storage}, B: f64[n, m] @ csr, x: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(m):\n            {body}\n    return y\n"
        )
    };
    let parallel = |text: &str, name: &str| {
        let func = programs::elaborate(text);
        let body = marked(&func.body, name);
        lower(&func.with_body(body)).map(|_| ()).map_err(|e| e.0[0].message.clone())
    };
    assert_eq!(parallel(&rows("csr", "y[i] += A[i, j] * x[j]"), "i"), Ok(()));
    assert_eq!(parallel(&rows("dcsr", "y[i] += A[i, j] * x[j]"), "i"), Ok(()));
    let coo = parallel(&rows("coo", "y[i] += A[i, j] * x[j]"), "i");
    assert_eq!(coo, Err("the loop `i` cannot be parallel or vectorised: it joins positions of `A`".into()));
    // The loop may count the positions of one list among several, if the body has no effect where that list stores
    // nothing.
    assert_eq!(parallel(&rows("csr", "y[i] += A[i, j] * B[i, j]"), "j"), Ok(()));
    let merge = parallel(&rows("csr", "y[i] += A[i, j] * x[j] + B[i, j]"), "j");
    assert_eq!(merge, Err("the loop `j` cannot be parallel or vectorised: it merges `A` and `B`".into()));
    let scan = parallel(&rows("csr", "y[i] += exp(A[i, j])"), "j");
    assert!(scan.is_err_and(|e| e.contains("it has effects where `A`")));
}

/// Checks products over stretches of equal elements, which are powers.
#[test]
fn products_over_runs() {
    let formats = ["runlength", "packbits", "compressed, fill=2.0", "blocklist, fill=-0.5", "banded, fill=inf"];
    for format in formats {
        let text = format!(
            "def f(A: f64[n] @ format({format})) -> f64:\n    p: f64 = 1.0\n    for j in range(n):\n        \
             p *= A[j] - 1.5\n    return p\n"
        );
        let func = programs::elaborate(&text);
        let lowered = lower(&func).unwrap_or_else(|d| panic!("{d}"));
        (0..30).for_each(|seed| programs::equal(&func, &lowered, seed));
    }
}

/// Marks the loop of that name as parallel.
fn marked(s: &Stmt, name: &str) -> Stmt {
    let inner = s.map(&mut |s| marked(s, name), &mut Expr::clone);
    match inner.kind() {
        StmtKind::For { iter, extent, body, .. } if iter.name() == name => {
            let props = LoopProps { parallel: Some(Parallel::default()), ..LoopProps::default() };
            inner.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
        }
        _ => inner,
    }
}

/// Checks loops beyond the dimension: an iteration stops the program if its body has an effect where nothing is stored,
/// and is skipped otherwise.
#[test]
fn loops_beyond_the_dimension() {
    let bodies = [
        ("s += A[j] + 1.0", false),
        ("s += A[j] * x[j]", true),
        ("s += A[j] * B[j]", true),
        ("s += A[j] + B[j]", true),
        ("s += (A[j] + 1.0) * (B[j] + 1.0)", false),
        ("if 0 <= j and j < n:\n            s += A[j] + B[j] + 1.0", false),
        ("s += A[j] + 1.0 if j < n and j >= 0 else 0.0", false),
        ("t = x[j]\n        s = s if A[j] * t < s else B[j] * t + 1.0", true),
    ];
    for storage in VECTORS {
        for (body, skips) in bodies {
            for range in ["range(m)", "range(-1, m)", "range(m // 2, m)"] {
                let text = format!(
                    "def f(A: f64[n] @ {storage}, B: f64[n] @ format(compressed), x: f64[m]) -> f64:\n    s = 0.0\n    for j in {range}:\n        {body}\n    return s\n"
                );
                let func = programs::elaborate(&text);
                // Unordered lists cannot be traversed over a part of a dimension.
                let Ok(structured) = lower(&func) else { continue };
                for seed in 0..12 {
                    let result = catch_unwind(|| programs::compared(&func, &structured, seed, skips));
                    assert!(result.is_ok(), "{text}");
                }
            }
        }
    }
}

/// Checks that an index is checked where it is evaluated, not before a loop in which no iteration evaluates it.
#[test]
fn unevaluated_indices_are_not_checked() {
    let bodies = [
        "for j in range(3):\n        if j + 1 < n and j < m:\n            s += A[1, j] * x[j]",
        "for j in range(3):\n        if j + 1 < n and j < m:\n            s += A[1, j] * x[j] + A[0, j]",
        "for j in range(m):\n        if j < n - 2:\n            s += A[2, j] * A[1, j]",
        "for j in range(m):\n        for i in range(n - 2):\n            s += A[2, j] * x[j]",
        "for j in range(m):\n        if x[j] > 5.0 and 0 <= k and k < n:\n            s += A[k, j] + B[k]",
        "for j in range(m):\n        s += x[j]\n        for i in range(n - 2):\n            s = max(s, A[2, j] + B[i])",
    ];
    let mut texts = Vec::new();
    for a in MATRICES {
        for body in bodies {
            texts.push(format!(
                "def f(A: f64[n, m] @ {a}, B: f64[n] @ format(compressed), x: f64[m], k: i64) -> f64:\n    s = 0.0\n    {body}\n    return s\n"
            ));
        }
    }
    for text in texts {
        let func = programs::elaborate(&text);
        // Unordered lists cannot be traversed over a part of a dimension.
        let Ok(structured) = lower(&func) else { continue };
        for seed in 0..30 {
            let result = catch_unwind(|| programs::equal(&func, &structured, seed));
            assert!(result.is_ok(), "{text}");
        }
    }
}

/// Checks accesses whose index is redefined between them: the fibre is located anew for each access.
#[test]
fn changing_indices() {
    let bodies = [
        "s += A[k, j] * x[j]\n        k = (k + 1) % n",
        "if A[k, j] > 2.0:\n            k = (k + 1) % n\n            s += A[k, j] * x[j]",
        "if B[k] > 2.0:\n            k = (k + 1) % n\n            s += B[k] * x[j]",
        "if v[0] < n:\n            v[0] = (v[0] + 1) % n\n            s += A[v[0], j] * B[v[0]]",
        "if B[v[0]] > 2.0:\n            v[0] = (v[0] + 1) % n\n        s += B[v[0]] * A[k, j]",
        "for i in range(cast(B[k], i64) % 4):\n            k = (k + 1) % n\n            s += B[k] * A[k, j]",
    ];
    let mut texts = Vec::new();
    for a in MATRICES {
        for b in VECTORS {
            for body in bodies {
                texts.push(format!(
                    "def f(A: f64[n, m] @ {a}, B: f64[n] @ {b}, x: f64[m]) -> f64:\n    s = 0.0\n    k = 0\n    v = zeros((1,), i64)\n    assert n > 0\n    for j in range(m):\n        {body}\n    return s\n"
                ));
            }
        }
    }
    let refused = refusals(texts, 6);
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Checks temporaries: a scalar with a single definition derives from the fill where its value does, and computations
/// that only it needs are dropped with it.
#[test]
fn temporaries() {
    let bodies = [
        "t = A[j] * B[j]\n        s += t * x[j]",
        "t = A[j] + B[j]\n        y[j] += t * x[j]",
        "t = A[j] - B[j]\n        u = t * x[j]\n        s += u / x[j]",
        "t = exp(A[j]) - 1.0\n        u = t + B[j]\n        s += u * x[j]",
        "t = A[j] - B[j]\n        if x[j] > 2.0:\n            t = 3.0\n        s += t * x[j]",
        "t = A[k[j]]\n        s += t * x[j]\n        y[j] = t * B[j]",
        "t = A[k[j]] + B[k[j]]\n        u = t * A[j]\n        y[j] = t * x[j]\n        s += u * x[j]",
        "r = 0.0\n        for q in range(n):\n            r += x[q] * x[j]\n        s += A[j] * r",
        "v = zeros((n,), f64)\n        for q in range(n):\n            v[q] = x[q] * B[j]\n        s += A[j] * v[0]",
        "t = A[l] * 2.0\n        l = (l + 1) % n\n        s += t * x[j]\n        y[j] += t * B[l]",
        "t = A[j] if x[j] > 2.0 else B[j]\n        s += t * x[j]",
        "t = A[j] > 1.0\n        if t or B[j] > 2.0:\n            s += x[j]",
    ];
    let mut texts = Vec::new();
    for a in VECTORS {
        for b in VECTORS {
            for body in bodies {
                texts.push(format!(
                    "def f(A: f64[n] @ {a}, B: f64[n] @ {b}, x: f64[n], k: i64[n]) -> (f64, f64[n]):\n    s = 0.0\n    y = zeros((n,), f64)\n    l = 0\n    for q in range(n):\n        assert 0 <= k[q] and k[q] < n\n    for j in range(n):\n        {body}\n    return s, y\n"
                ));
            }
        }
    }
    let refused = refusals(texts, 8);
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
