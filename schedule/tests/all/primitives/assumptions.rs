//! Assumptions, which may hold only because the code before them did not stop the program: no step moves them to an
//! earlier point.

use crate::args;
use crate::primitives::common::{call, entry, list, show};
use expect_test::{Expect, expect};
use taffeta_ast::{Stmt, StmtKind};
use taffeta_schedule::{Refusal, Schedule};

/// Turns assertions whose message is "assumed" into assumptions, which cannot be written in a program.
fn assumed(s: &Stmt) -> Stmt {
    match s.kind() {
        StmtKind::Assert { cond, message, .. } if !message.is_empty() => {
            s.with_kind(StmtKind::Assume { cond: cond.clone() })
        }
        _ => s.map(&mut assumed, &mut taffeta_ast::Expr::clone),
    }
}

fn refused(text: &str, step: impl FnOnce(&mut Schedule) -> Result<(), Refusal>, expected: Expect) {
    let (func, program) = entry(text);
    let func = func.with_body(assumed(&func.body));
    let mut s = Schedule::new(func);
    let Err(r) = step(&mut s) else { panic!("was taken:\n{}", taffeta_ast::print::func(s.func())) };
    expected.assert_eq(&show(&r, program.sources()));
}

#[test]
fn assumptions_are_not_used_before_their_assertion() {
    let body = "
def f(x: inout[f32[n]], k: i32[n], y: inout[f32[n]]):
    for i in range(4):
        label(\"A\")
        assert k[i] > 0, \"assumed\"
        label(\"B\")
        y[i] = y[i] / 2
";
    refused(
        body,
        |s| call(s, "fission", args!["i"; before = "B"]).map(drop),
        expect![[r#"
        schedule::illegal (6): an assumption would run earlier than it is written
          `assert k[i] > 0, "assumed"` the assumption is in here
    "#]],
    );
    refused(
        body,
        |s| call(s, "blend", args!["i"]).map(drop),
        expect![[r#"
        schedule::illegal (5): an assumption would run earlier than it is written
          `for i in range(4):` the assumption is in here
    "#]],
    );
    let block = "
def f(x: inout[f32[n]], k: i32[n], y: inout[f32[n]]):
    for i in range(n):
        x[k[i]] = 1
    for j in range(n):
        assert k[j] < n, \"assumed\"
        y[j] = y[j] / 2
";
    refused(
        block,
        |s| call(s, "fuse", args!["i", "j"]).map(drop),
        expect![[r#"
        schedule::illegal (6): an assumption would run earlier than it is written
          `for j in range(n):` the assumption is in here
    "#]],
    );
    refused(
        block,
        |s| call(s, "swap", args![list(&["j", "i"])]).map(drop),
        expect![[r#"
        schedule::illegal (2): an assumption would run earlier than it is written
          `for j in range(n):` the assumption is in here
    "#]],
    );
    refused(
        block,
        |s| call(s, "move_to", args!["j"; before = "i"]).map(drop),
        expect![[r#"
        schedule::illegal (3): an assumption would run earlier than it is written
          `for j in range(n):` the assumption is in here
    "#]],
    );
    refused(
        block,
        |s| call(s, "polyhedral", args!["j"]).map(drop),
        expect![[r#"
            schedule::illegal (2): an assumption would run earlier than it is written
              `assert k[j] < n, "assumed"` the assumption is in here
        "#]],
    );
    refused(
        block,
        |s| call(s, "tile", args![list(&["j"]), taffeta_schedule::Value::from(vec![4i64])]).map(drop),
        expect![[r#"
            schedule::illegal (4): an assumption would run earlier than it is written
              `assert k[j] < n, "assumed"` the assumption is in here
        "#]],
    );
}
