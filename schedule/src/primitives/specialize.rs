#![doc = include_str!("specialize.md")]
use crate::condition;
use crate::eliminate_guards;
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::{Args, Value};
use taffeta_analysis::pass::copy;
use taffeta_analysis::query::walk;
use taffeta_ast::{Expr, Span, Stmt, StmtKind, Symbol};

pub(crate) const ENTRY: Entry = Entry {
    name: "specialize",
    signature: "s.specialize(L, \"n % 8 == 0\")",
    params: &["stmt", "condition"],
    summary: "Makes a copy of a statement for the case that a condition holds.",
    doc: include_str!("specialize.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let stmt = s.stmt(args.need("stmt")?)?;
    let span = args.need("condition")?.span;
    let text = args.str("condition")?.unwrap_or_default();
    let cond = check(s, &stmt, text, span)?;
    Ok(apply(s, &stmt, &cond))
}

fn check(s: &Schedule, stmt: &Stmt, text: &str, span: Span) -> Result<Expr, Refusal> {
    // 1. The condition can be parsed. Among iterators of one name, the innermost one is meant.
    let mut names: Vec<Symbol> = s.func().sizes.clone();
    names.extend(s.around(stmt.id()).iter().filter_map(Loop::of).map(|l| l.iter));
    names.reverse();
    let cond = condition::read(text, &names).map_err(|e| Refusal::illegal(1, e).at(span))?;
    // 2. The condition cannot stop the program.
    let stops = walk::at(s.func(), stmt.id()).is_none_or(|mut facts| facts.may_stop(&cond));
    if stops {
        return Err(Refusal::illegal(2, "the condition may stop the program: a divisor may be 0").at(span));
    }
    Ok(cond)
}

fn apply(s: &Schedule, stmt: &Stmt, cond: &Expr) -> Change {
    let copy = copy::statement(stmt, "specialize", "copy");
    let kind = StmtKind::If { cond: cond.clone(), then: copy.clone(), otherwise: Some(stmt.clone()) };
    let branch = Stmt::new(kind, stmt.origin().derive("specialize", "branch"));
    let func = tree::replace(s.func(), stmt.id(), &branch);
    let made = Value::List(vec![copy.id().into(), stmt.id().into()]);
    Change::new(eliminate_guards::run(&func, copy.id()).func, made)
}
