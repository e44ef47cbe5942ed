//! Failing checks as exits from vectorised loops.

use crate::compiled::run::compile;
use crate::compiled::scheduled::{check, compare, scheduled, text};
use taffeta_ast::stmt::{LoopProps, Vectorize};
use taffeta_ast::{Buffer, DType, Expr, Stmt, StmtKind, Value};
use taffeta_codegen::LowerOptions;
use taffeta_codegen::call::Context;

/// Marks all loops as vectorised, as steps do that see fewer checks than lowering creates.
fn vectorised(s: &Stmt) -> Stmt {
    let s = match s.kind() {
        StmtKind::For { iter, extent, props, body } => {
            let props = LoopProps { vectorize: Some(Vectorize::default()), ..props.clone() };
            s.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
        }
        _ => s.clone(),
    };
    s.map(&mut vectorised, &mut Expr::clone)
}

/// Checks that checks whose operands the loop does not write are hoisted, beside a condition on written data.
#[test]
fn checks_beside_conditions_on_written_tensors_are_hoisted() {
    let beside = "
def f(k: i64[n], x: f64[n], y: inout[f64[n]], z: inout[i64[n]]):
    for i in range(n):
        if not (y[i] < 1.0):
            z[i] = i
        y[i] += x[k[i]]
";
    let under = "
def f(k: i64[n], x: f64[n], y: inout[f64[n]], z: inout[i64[n]]):
    for i in range(n):
        if x[i] < 2.0:
            t = x[k[i]]
            if y[i] < t:
                z[i] = i
        else:
            if y[i] > 3.0:
                z[i] = 1
        y[i] += 1.0
";
    // Only the first program's checks are unconditional, so that lanes evaluate them.
    for (program, loops) in [(beside, 3), (under, 2)] {
        let (func, _, program) = scheduled(program, &[]);
        let after = func.with_body(vectorised(&func.body));
        let code = compare(&func, &after, &program, &LowerOptions::default());
        assert!(code.contains("omp simd"), "{code}");
        assert_eq!(code.matches("for (int64_t i").count(), loops, "{code}");
    }
}

/// Gather through two index arrays per iteration.
const EDGES: &str = "
def f(first: i32[m], second: i64[m], x: f64[n]) -> f64[m]:
    y = empty((m,), f64)
    for e in range(m):
        y[e] = x[first[e]] + x[second[e]]
    return y
";

/// Checks that checks with a value whatever the outcome of the others are evaluated in lanes.
#[test]
fn independent_checks_are_vectorised() {
    let code = check(EDGES, &[("vectorize", &[text("e")])]);
    assert!(code.contains("reduction(|: fails)"), "{code}");
    assert_eq!(code.matches("fails |= ").count(), 2, "{code}");
}

/// Checks that the first failing check is reported, as without lanes.
#[test]
fn the_first_failing_check_is_reported() {
    let (func, after, _) = scheduled(EDGES, &[("vectorize", &[text("e")])]);
    let (plain, lanes) = (compile(&func, &LowerOptions::default()), compile(&after, &LowerOptions::default()));
    let x = Value::zeros(DType::F64, vec![10]).expect("it fits");
    let indices = |bad: &[(usize, i64)]| {
        let mut v = vec![3; 1000];
        bad.iter().for_each(|(k, index)| v[*k] = *index);
        v
    };
    let cases = [
        (vec![(700, 10)], vec![(699, -1), (998, 11)]),
        (vec![(999, -7)], vec![]),
        (vec![], vec![(0, i64::MAX)]),
        (vec![(500, 12)], vec![(500, 13)]),
    ];
    for (first, second) in cases {
        let first = indices(&first).into_iter().map(|v| i32::try_from(v).expect("it is small")).collect();
        let value = |data| Value::new(vec![1000], data).expect("as many elements as the shape says");
        let given = [value(Buffer::I32(first)), value(Buffer::I64(indices(&second))), x.clone()];
        let told = [&plain, &lanes].map(|compiled| {
            let error =
                compiled.call_values(&mut Context::new(1), &mut given.clone(), &[]).expect_err("an index is bad");
            error.to_string()
        });
        assert_eq!(told[0], told[1]);
        assert!(told[1].contains("is out of range"), "{}", told[1]);
    }
}

/// Checks that checks that depend on each other have separate exits, as do those of loops as short as a stored row.
#[test]
fn dependent_checks_have_separate_exits() {
    let nested = "
def f(k: i64[m], of: i64[n], x: f64[n]) -> f64[m]:
    y = empty((m,), f64)
    for e in range(m):
        y[e] = x[of[k[e]]]
    return y
";
    let rows = "
def f(first: i64[n + 1], k: i64[m], x: f64[n]) -> f64[m]:
    y = zeros((m,), f64)
    for i in range(n):
        for e in range(min(max(first[i], 0), m), min(max(first[i + 1], 0), m)):
            y[e] = x[k[e]]
    return y
";
    let few = "
def f(k: i64[63], x: f64[n]) -> f64[63]:
    y = zeros((63,), f64)
    for e in range(63):
        y[e] = x[k[e]]
    return y
";
    for program in [nested, rows, few] {
        let code = check(program, &[("vectorize", &[text("e")])]);
        assert!(!code.contains("fails") && code.contains("omp simd"), "{code}");
    }
}
