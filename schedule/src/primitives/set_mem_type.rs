#![doc = include_str!("set_mem_type.md")]
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::{Args, Value};
use std::sync::Arc;
use taffeta_analysis::query::upper_bound::{Range, room};
use taffeta_ast::stmt::Memory;
use taffeta_ast::{Func, Stmt, StmtKind, Tensor};

pub(crate) const ENTRY: Entry = Entry {
    name: "set_mem_type",
    signature: "s.set_mem_type(T, \"register\" | \"stack\" | \"heap\" | \"arena\")",
    params: &["tensor", "place"],
    summary: "Chooses the memory of a local tensor.",
    doc: include_str!("set_mem_type.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let declared = s.tensor(args.need("tensor")?)?;
    let arg = args.need("place")?;
    let memory = match args.str("place")? {
        Some("register") => Memory::Register,
        Some("stack") => Memory::Stack,
        Some("heap") => Memory::Heap,
        Some("arena") => Memory::Arena,
        other => {
            let text = format!("expected a memory type, found `{}`", other.unwrap_or_default());
            return Err(Refusal::usage(text).at(arg.span).help("use \"register\", \"stack\", \"heap\" or \"arena\""));
        }
    };
    // 1. A local tensor.
    let name = declared.symbol();
    let Some((stmt, tensor, body)) = declared.stmt.as_ref().and_then(|d| match d.kind() {
        StmtKind::VarDef { tensor, body } => Some((d, tensor, body)),
        _ => None,
    }) else {
        return Err(Refusal::illegal(1, format!("`{name}` is a parameter or a result, which the caller allocates"))
            .help(format!("use `t = s.cache(…, \"{name}\")`, and take this step on `t`")));
    };
    check(s, stmt, tensor, memory)?;
    let new = Arc::new(Tensor { memory, ..(**tensor).clone() });
    let kind = StmtKind::VarDef { tensor: new, body: body.clone() };
    Ok(Change::new(tree::replace(s.func(), stmt.id(), &stmt.with_kind(kind)), Value::None))
}

fn check(s: &Schedule, stmt: &Stmt, tensor: &Tensor, memory: Memory) -> Result<(), Refusal> {
    let name = &tensor.symbol;
    let refuse = |condition: u32, text: String, help: &str| {
        Err(Refusal::illegal(condition, text).label(stmt.origin().span(), "declared here").help(help))
    };
    let scalar = tensor.ndim() == 0;
    match memory {
        Memory::Auto => Ok(()),
        // 2. A variable holds one element.
        Memory::Register if !scalar => {
            let text = format!("`{name}` is an array, and cannot be kept in a register");
            refuse(
                2,
                text,
                "use \"stack\": a small array whose indices are constants (after `unroll`) ends up in registers",
            )
        }
        Memory::Register => Ok(()),
        // 3. A scalar is a variable.
        _ if scalar => refuse(3, format!("`{name}` is a scalar, and can only be in a register"), "use \"register\""),
        // 4. The stack is small, and its arrays have constant sizes.
        Memory::Stack => {
            let Some(bytes) = tensor.constant_bytes() else {
                return refuse(4, format!("the size of `{name}` is not a constant"), "use \"arena\" or \"heap\"");
            };
            let used = around(s, stmt);
            if bytes > Memory::STACK_ARRAY_BYTES || used + bytes > Memory::STACK_TOTAL_BYTES {
                let text =
                    format!("`{name}` has {bytes} bytes, which do not fit on the stack beside {used} bytes around it");
                let most = Memory::STACK_ARRAY_BYTES.min(Memory::STACK_TOTAL_BYTES - used).max(0);
                return refuse(4, text, &format!("use \"arena\" or \"heap\": at most {most} bytes fit on the stack"));
            }
            Ok(())
        }
        // 5. The arena is laid out before the program runs.
        Memory::Arena => {
            if !has_room(s.func(), stmt, tensor) {
                let text = format!("the shape of `{name}` cannot be bounded by the program's sizes alone");
                return refuse(5, text, "use \"heap\"");
            }
            Ok(())
        }
        Memory::Heap => Ok(()),
    }
}

/// Returns whether the shape of an array follows from sizes alone, or is bounded by sizes in the loops around it.
pub(crate) fn has_room(func: &Func, stmt: &Stmt, tensor: &Tensor) -> bool {
    let way = tree::path(&func.body, stmt.id()).unwrap_or_default();
    let around: Vec<Range> = way.iter().filter_map(|s| ranges(&Loop::of(s)?)).collect();
    tensor.shape.iter().all(|e| room(e, &around, &func.sizes).is_some())
}

/// Returns the range of a loop's iterator, if the step is positive.
fn ranges(l: &Loop) -> Option<Range> {
    let grows = l.step.as_int().is_some_and(|s| s > 0);
    grows.then(|| Range { iter: l.iter.clone(), begin: l.begin.clone(), end: l.end.clone() })
}

/// Returns the bytes of the arrays declared around a declaration that are on the stack: small ones of constant size,
/// unless they are set to the heap or the arena.
fn around(s: &Schedule, stmt: &Stmt) -> i64 {
    let way = tree::path(&s.func().body, stmt.id()).unwrap_or_default();
    let bytes = |outer: &Stmt| match outer.kind() {
        StmtKind::VarDef { tensor, .. } if outer.id() != stmt.id() && tensor.ndim() > 0 => {
            let small = tensor.constant_bytes().filter(|b| *b <= Memory::STACK_ARRAY_BYTES);
            small.filter(|_| !matches!(tensor.memory, Memory::Heap | Memory::Arena)).unwrap_or(0)
        }
        _ => 0,
    };
    way.iter().map(bytes).sum::<i64>().min(Memory::STACK_TOTAL_BYTES)
}
