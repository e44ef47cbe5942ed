#![doc = include_str!("privatize.md")]
use crate::block;
use crate::entry::{Entry, Run};
use crate::flow::{self, Flow};
use crate::local::Local;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::{Args, Handle, Value};
use std::sync::Arc;
use taffeta_analysis::pass::rewrite_accesses;
use taffeta_analysis::query::depend::Dependences;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Origin, Stmt, StmtKind, Symbol, Tensor};

pub(crate) const ENTRY: Entry = Entry {
    name: "privatize",
    signature: "t = s.privatize(T, L)",
    params: &["tensor", "loop"],
    summary: "Gives every iteration of a loop a tensor of its own.",
    doc: include_str!("privatize.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let l = s.loop_(args.need("loop")?)?;
    // 1. A local tensor.
    let local = Local::used_in(s, args, &l.stmt)?;
    let elsewhere = check(s, &local, &l)?;
    Ok(apply(s, &local, &l, elsewhere))
}

/// Checks the conditions. Returns whether the tensor is also used outside of the loop's body.
fn check(s: &Schedule, local: &Local, l: &Loop) -> Result<bool, Refusal> {
    let (name, called) = (&local.tensor.symbol, s.called(&l.stmt));
    // 2. The tensor is declared outside of the loop, and used in its body.
    let refuse = |text: String| {
        let r = Refusal::illegal(2, text).label(local.stmt.origin().span(), "declared here");
        Err(r.label(l.stmt.origin().span(), "this loop"))
    };
    if tree::find(&l.body, local.stmt.id()).is_some() {
        return refuse(format!("`{name}` is declared in the loop `{called}`: every iteration has its own"));
    }
    if !block::uses(&l.body, name) {
        return refuse(format!("`{name}` is not used in the body of the loop `{called}`"));
    }
    let all = Dependences::inside(s.func(), &[local.stmt.id()]);
    let flow = Flow { all: &all, tensor: name };
    // 3. An iteration reads only values that it wrote itself.
    if let Some(d) = flow.entering(&l.stmt) {
        let text = format!("an iteration of `{called}` may read elements of `{name}` that it did not write");
        return Err(Refusal::dependence(3, text, d)
            .help(format!("write every element of `{name}` that an iteration reads earlier in the same iteration")));
    }
    // 4. No value leaves the loop.
    if let Some(d) = flow.leaving(&l.stmt) {
        let text = format!("values that iterations of `{called}` write to `{name}` are read outside of the loop");
        return Err(Refusal::dependence(4, text, d)
            .help(format!("write the values that are read outside of `{called}` to another tensor than `{name}`")));
    }
    Ok(all.of(name).any(|r| !flow::in_body(r, &l.stmt)))
}

fn apply(s: &Schedule, local: &Local, l: &Loop, elsewhere: bool) -> Change {
    let tensor = &local.tensor;
    let made = |t: &Symbol| Value::Handle(Handle::Tensor(t.clone()));
    if elsewhere {
        let symbol = Symbol::new(format!("{}.private", tensor.symbol));
        let own = Tensor { memory: tensor.memory, ..tensor.like(symbol, Role::Workspace) };
        let names = [(tensor.symbol.clone(), own.symbol.clone())].into_iter().collect();
        let body = rewrite_accesses::run(&l.body, &names, &|indices| indices);
        let result = made(&own.symbol);
        let origin = Origin::source(local.stmt.origin().span()).derive("privatize", "scope");
        let scope = Stmt::new(StmtKind::VarDef { tensor: Arc::new(own), body }, origin);
        return Change::new(tree::replace(s.func(), l.stmt.id(), &l.with_body(scope)), result);
    }
    let scope = local.stmt.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body: l.body.clone() });
    let rest = tree::replaced(&local.body, l.stmt.id(), &l.with_body(scope));
    // A loop that does not run evaluates no declaration, so the checks of the sizes stay in the old place.
    let sizes: Vec<usize> = (0..tensor.ndim()).collect();
    let rest = local.after_checks(s.func(), "privatize", &sizes, rest);
    Change::new(tree::replace(s.func(), local.stmt.id(), &rest), made(&tensor.symbol))
}
