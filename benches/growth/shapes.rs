//! Families of programs that grow in one respect: statements in one nest, array statements, loops, functions,
//! temporaries, steps of a schedule, loops over structured tensors. Each has one entry `f` that is differentiable with
//! respect to `x`.

/// Family of programs.
pub struct Shape {
    /// Name of the repeated part.
    pub name: &'static str,
    /// Text of the program with that many repetitions.
    pub text: fn(usize) -> String,
    /// Whether it has a schedule `steps`.
    pub scheduled: bool,
    /// Whether the choice of a schedule by rules is timed, for the program and for its gradient.
    pub ruled: bool,
}

/// All families.
pub const SHAPES: &[Shape] = &[
    Shape { name: "array statements", text: array_statements, scheduled: false, ruled: false },
    Shape { name: "array results", text: array_results, scheduled: false, ruled: false },
    Shape { name: "nest, own tensors", text: nest_of_tensors, scheduled: false, ruled: false },
    Shape { name: "nest, one column each", text: nest_of_columns, scheduled: false, ruled: false },
    Shape { name: "nest, one element", text: nest_of_updates, scheduled: false, ruled: false },
    Shape { name: "nest, reductions", text: nest_of_reductions, scheduled: false, ruled: false },
    Shape { name: "nest, own scalars", text: nest_of_scalars, scheduled: false, ruled: true },
    Shape { name: "temporaries", text: temporaries, scheduled: false, ruled: false },
    Shape { name: "loops", text: loops, scheduled: true, ruled: false },
    Shape { name: "functions", text: functions, scheduled: false, ruled: false },
    Shape { name: "entries", text: entries, scheduled: false, ruled: false },
    Shape { name: "branches", text: branches, scheduled: false, ruled: false },
    Shape { name: "splits of one loop", text: splits, scheduled: true, ruled: false },
    Shape { name: "blocks of a nest", text: blocks, scheduled: true, ruled: false },
    Shape { name: "sparse products", text: sparse_products, scheduled: false, ruled: false },
    Shape { name: "sparse nest", text: sparse_nest, scheduled: false, ruled: false },
    Shape { name: "sparse merges", text: sparse_merges, scheduled: false, ruled: false },
    Shape { name: "sparse pattern", text: sparse_pattern, scheduled: false, ruled: false },
];

/// Returns one line for each number from 0 to `n`.
fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(|k| line(k) + "\n").collect()
}

/// Builds a chain of whole-array statements: each makes a tensor and reads the one before.
fn array_statements(n: usize) -> String {
    let chain = lines(n, |k| format!("    t{} = t{k} * 1.5 + x", k + 1));
    format!("def f(x: f64[n]) -> f64[n]:\n    t0 = x * 2.0\n{chain}    return t{n}\n")
}

/// Builds whole-array statements that all write one tensor.
fn array_results(n: usize) -> String {
    let updates = lines(n, |k| format!("    y[:] = y * {k}.5 + x"));
    format!("def f(x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n{updates}    return y\n")
}

/// Builds one nest of two loops around the statements.
fn nest(n: usize, before: &str, line: impl Fn(usize) -> String, after: &str) -> String {
    let body = lines(n, |k| format!("            {}", line(k)));
    format!(
        "def f(x: f64[n, m]) -> f64[n, m]:\n    y = zeros((n, m), f64)\n{before}    for i in range(1, n):\n        \
         for j in range(m):\n{body}{after}    return y\n"
    )
}

/// Builds a nest whose statements each write a tensor of their own, and read the one before.
fn nest_of_tensors(n: usize) -> String {
    let before = lines(n + 1, |k| format!("    t{k} = zeros((n, m), f64)"));
    nest(n, &before, |k| format!("t{}[i, j] = t{k}[i, j] * 0.5 + x[i, j]", k + 1), &format!("    y[:, :] = t{n}\n"))
}

/// Builds a nest whose statements each write a column of one tensor, and read the column before.
fn nest_of_columns(n: usize) -> String {
    let before = format!("    t = zeros((n, {}), f64)\n", n + 1);
    nest(n, &before, |k| format!("t[i, {}] = t[i - 1, {k}] * 0.5 + x[i, j]", k + 1), "    y[:, 0] = t[:, 0]\n")
}

/// Builds a nest whose statements all write one element, each from its last value: all pairs are dependent.
fn nest_of_updates(n: usize) -> String {
    nest(n, "", |k| format!("y[i, j] = y[i, j] * {k}.5 + x[i, j]"), "")
}

/// Builds a nest whose statements each compute a scalar of their own from the one before.
fn nest_of_scalars(n: usize) -> String {
    let line = |k: usize| match k {
        0 => "s0 = x[i, j] * 2.0".to_string(),
        k => format!("s{k} = s{} * 0.5 + x[i, j]", k - 1),
    };
    nest(n, "", line, &format!("            y[i, j] = s{}\n", n - 1))
}

/// Builds a nest whose statements all add to one element.
fn nest_of_reductions(n: usize) -> String {
    nest(n, "", |k| format!("y[i, j] += x[i, j] * {k}.5"), "")
}

/// Builds a chain of scalars in a nest.
fn temporaries(n: usize) -> String {
    let chain = nest(n, "", |k| format!("t{} = t{k} * 0.5 + x[i, j]", k + 1), &format!("            y[i, j] = t{n}\n"));
    chain.replacen("            t1 =", "            t0 = x[i, j]\n            t1 =", 1)
}

/// Builds loops one after the other, each split in the schedule.
fn loops(n: usize) -> String {
    let body = lines(n, |k| format!("    for i{k} in range(n):\n        y[i{k}] = y[i{k}] * 0.5 + x[i{k}]"));
    let steps = lines(n, |k| format!("    outer{k}, inner{k} = s.split(\"i{k}\", 8)"));
    format!(
        "def f(x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n{body}    return y\n\n\n@schedule(f)\ndef steps(s):\n{steps}"
    )
}

/// Builds functions that one entry calls, each one level deep.
fn functions(n: usize) -> String {
    let definitions = lines(n, |k| format!("def g{k}(a, b):\n    c = a * {k}.5\n    return c + b\n\n"));
    let calls = lines(n, |k| format!("        y[i] = g{k}(y[i], x[i])"));
    format!(
        "{definitions}def f(x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n{calls}    return y\n"
    )
}

/// Builds a program with that many entries, which `check` elaborates one by one.
fn entries(n: usize) -> String {
    let more = lines(n, |k| {
        format!(
            "\n\ndef e{k}(x: f64[n]) -> f64[n]:\n    y = empty((n,), f64)\n    for i in range(n):\n        y[i] = x[i] * {k}.5\n    return y"
        )
    });
    format!("def f(x: f64[n]) -> f64[n]:\n    y = x * 2.0\n    return y\n{more}")
}

/// Builds statements under conditions of their own.
fn branches(n: usize) -> String {
    nest(n, "", |k| format!("if i > {k} and x[i, j] > 0.0:\n                y[i, j] = y[i, j] + x[i, j] * {k}.5"), "")
}

/// Builds one loop that is split again and again: a nest as deep as there are steps.
fn splits(n: usize) -> String {
    format!(
        "def f(x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        y[i] = x[i] * 2.0\n    \
         return y\n\n\n@schedule(f)\ndef steps(s):\n    at = \"i\"\n    for k in range({n}):\n        at = s.split(at, 1)[0]\n"
    )
}

/// Builds several nests that are each split, reordered, and made parallel.
fn blocks(n: usize) -> String {
    let count = n / 4;
    let body = lines(count, |k| {
        format!("    for i{k} in range(n):\n        for j{k} in range(n):\n            y[i{k}] += x[j{k}] * {k}.5")
    });
    let steps = lines(count, |k| {
        format!(
            "    a{k}, b{k} = s.split(\"i{k}\", 32)\n    c{k}, d{k} = s.split(\"j{k}\", 8)\n    \
             s.reorder([a{k}, c{k}, b{k}, d{k}])\n    s.parallelize(a{k})"
        )
    });
    format!(
        "def f(x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n{body}    return y\n\n\n@schedule(f)\ndef steps(s):\n{steps}"
    )
}

/// Builds a chain of products with one sparse matrix: each is a nest of its own, and reads the vector before.
fn sparse_products(n: usize) -> String {
    let chain = lines(n, |k| {
        let next = k + 1;
        format!(
            "    t{next} = zeros((n,), f64)\n    for i{k} in range(n):\n        for j{k} in range(n):\n            \
             t{next}[i{k}] += A[i{k}, j{k}] * t{k}[j{k}]"
        )
    });
    format!("def f(A: f64[n, n] @ csr, x: f64[n]) -> f64[n]:\n    t0 = x * 2.0\n{chain}    return t{n}\n")
}

/// Builds one nest over a sparse matrix, whose statements all add to one element.
fn sparse_nest(n: usize) -> String {
    let body = lines(n, |k| format!("            y[i] += A[i, j] * x[j] * {k}.5"));
    format!(
        "def f(A: f64[n, n] @ csr, x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        \
         for j in range(n):\n{body}    return y\n"
    )
}

/// Builds loops that each merge two sparse vectors, into one loop over both and one over the rest of each.
fn sparse_merges(n: usize) -> String {
    let loops =
        lines(n / 4, |k| format!("    for i{k} in range(n):\n        s += (A[i{k}] + B[i{k}]) * x[i{k}] * {k}.5"));
    let vectors = "A: f64[n] @ format(compressed), B: f64[n] @ format(blocklist)";
    format!("def f({vectors}, x: f64[n]) -> f64:\n    s: f64 = 0.0\n{loops}    return s\n")
}

/// Builds one nest over a sparse matrix, whose statements each write a tensor in the matrix's pattern, and read the one
/// before.
fn sparse_pattern(n: usize) -> String {
    let made = lines(n, |k| format!("    W{}: f64[n, n] @ pattern(A) = zeros((n, n), f64)", k + 1));
    let body = lines(n, |k| match k {
        0 => "            W1[i, j] = A[i, j] * x[j]".to_string(),
        _ => format!("            W{}[i, j] = W{k}[i, j] * x[j]", k + 1),
    });
    format!(
        "def f(A: f64[n, n] @ csr, x: f64[n]) -> f64[n]:\n{made}    y = zeros((n,), f64)\n    for i in range(n):\n        \
         for j in range(n):\n{body}            y[i] += W{n}[i, j]\n    return y\n"
    )
}
