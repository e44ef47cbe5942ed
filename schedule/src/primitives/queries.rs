//! Queries of the schedule language. They return handles and values, and change nothing.
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::selector;
use crate::tree::Loop;
use crate::value::{Arg, Value};
use taffeta_ast::{Stmt, StmtKind};

pub(crate) const LOOPS: Entry = Entry {
    name: "loops",
    signature: "s.loops(S)",
    params: &["inside"],
    summary: "All loops, or those inside a statement, outermost first.",
    doc: "",
    run: Run::Query(|s, args| {
        let root = match args.get("inside") {
            Some(a) => s.stmt(a)?,
            None => s.func().body.clone(),
        };
        let mut all = Vec::new();
        root.walk(&mut |l| {
            if matches!(l.kind(), StmtKind::For { .. }) && (args.get("inside").is_none() || l.id() != root.id()) {
                all.push(Value::from(l.id()));
            }
        });
        Ok(Value::List(all))
    }),
};

pub(crate) const INNERMOST: Entry = Entry {
    name: "innermost",
    signature: "s.innermost(L)",
    params: &["loop"],
    summary: "The innermost loop of a nest that has one loop at each level.",
    doc: "",
    run: Run::Query(|s, args| {
        let mut l = s.loop_(args.need("loop")?)?;
        loop {
            let inside = loops_of(&l.body);
            match inside.as_slice() {
                [] => return Ok(l.stmt.id().into()),
                [one] => match Loop::of(one) {
                    Some(inner) => l = inner,
                    None => return Ok(l.stmt.id().into()),
                },
                many => {
                    let names: Vec<String> = many.iter().map(|l| s.called(l)).collect();
                    return Err(Refusal::target(format!(
                        "there are {} loops beside each other in `{}`: {}",
                        many.len(),
                        s.called(&l.stmt),
                        names.join(", ")
                    ))
                    .help("name one of them"));
                }
            }
        }
    }),
};

/// Returns the outermost loops in a statement.
fn loops_of(s: &Stmt) -> Vec<Stmt> {
    if matches!(s.kind(), StmtKind::For { .. }) {
        return vec![s.clone()];
    }
    s.kind().children().into_iter().flat_map(loops_of).collect()
}

pub(crate) const WRITES: Entry = Entry {
    name: "writes",
    signature: "s.writes(T)",
    params: &["tensor"],
    summary: "The statements that store to a tensor or reduce into it, in textual order.",
    doc: "",
    run: Run::Query(|s, args| {
        let tensor = s.tensor(args.need("tensor")?)?;
        let all = selector::writes(s.func(), tensor.symbol());
        Ok(Value::List(all.iter().map(|w| w.id().into()).collect()))
    }),
};

pub(crate) const PARENT: Entry = Entry {
    name: "parent",
    signature: "s.parent(S)",
    params: &["stmt"],
    summary: "The loop around a statement, or None.",
    doc: "",
    run: Run::Query(|s, args| {
        let stmt = s.stmt(args.need("stmt")?)?;
        Ok(s.around(stmt.id()).last().map_or(Value::None, |l| l.id().into()))
    }),
};

pub(crate) const LENGTH: Entry = Entry {
    name: "length",
    signature: "s.length(L)",
    params: &["loop"],
    summary: "The number of iterations if it is a constant, or None.",
    doc: "",
    run: Run::Query(|s, args| {
        let l = s.loop_(args.need("loop")?)?;
        let constant = l.constant_trip_count();
        Ok(constant.map_or(Value::None, |n| Value::Int(n.max(0))))
    }),
};

pub(crate) const CAN: Entry = Entry {
    name: "can",
    signature: "s.can(\"primitive\", …)",
    params: &[],
    summary: "Whether a primitive is legal with these arguments.",
    doc: "",
    run: Run::Meta(|s, args| {
        let Some((Arg { value: Value::Str(method), .. }, rest)) = args.split_first() else {
            return Err(Refusal::usage("expected the name of a primitive as the first argument")
                .help("write `s.can(\"fuse\", a, b)`"));
        };
        s.can(method, rest).map(Value::Bool)
    }),
};
