//! Resource limits of one elaboration: steps, statements, the depth of calls, blocks and values, and the stack.
//!
//! A program of a few lines can take unbounded resources (static recursion, lists that are doubled, functions that call
//! each other). Each of these limits is a diagnostic at the user's line, long before time or memory run out.

use super::func::FuncRef;
use super::value::Value;
use super::{Elab, R, Stop};
use std::cell::Cell;
use taffeta_ast::{Diagnostic, Diagnostics, Expr, Span};

/// Maximum number of nested calls of one function: deeper recursion counts as endless.
const MAX_RECURSION: usize = 512;
/// Maximum depth of nested calls. Each statement records the calls that lead to it.
const MAX_CALLS: usize = 2_000;
/// Maximum depth of loops and branches, calls included: every later pass walks them recursively.
const MAX_BLOCKS: usize = 512;
/// Maximum number of statements of one entry.
const MAX_STATEMENTS: usize = 200_000;
/// Maximum number of tensors alive at one point: each is a scope inside the previous one, and every later step walks
/// them.
const MAX_ALIVE: usize = 2_000;
/// Maximum number of expressions evaluated for one entry.
const MAX_STEPS: usize = 4_000_000;
/// Maximum number of operators, numbers and loads in one element's expression: array expressions and values of sizes
/// grow by inlining.
pub(crate) const MAX_OPERATORS: usize = 4_096;
/// Maximum number of items of a static sequence, including those of nested sequences.
pub(crate) const MAX_ITEMS: usize = 1 << 20;
/// Maximum length of a static string, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Maximum depth of nested static sequences: that of brackets.
const MAX_NESTING: usize = crate::parse::MAX_BRACKETS;
/// Number of items that are copied or compared in the time of one step.
const ITEMS_PER_STEP: usize = 8;
/// Stack size for the deepest calls; unused pages cost nothing.
const STACK_BYTES: usize = 512 << 20;
/// Part of the stack for elaboration itself: gradients are computed on the same stack.
const STACK_LIMIT: usize = STACK_BYTES / 4 * 3;

thread_local! {
    /// Start of the stack of this thread's elaboration.
    static STACK_BEGIN: Cell<usize> = const { Cell::new(0) };
}

/// Returns the approximate position of the stack pointer.
#[inline(never)]
fn stack_position() -> usize {
    let here = 0u8;
    std::hint::black_box(&raw const here) as usize
}

/// Runs `f` on a thread with a stack large enough for the deepest calls.
pub(crate) fn with_stack<T: Send>(f: impl FnOnce() -> Result<T, Diagnostics> + Send) -> Result<T, Diagnostics> {
    let f = || {
        STACK_BEGIN.set(stack_position());
        f()
    };
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("elaborate".into()).stack_size(STACK_BYTES).spawn_scoped(scope, f);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(e) => {
                let message =
                    format!("cannot allocate a stack of {}: {e}", taffeta_ast::bytes::amount(STACK_BYTES as u64));
                Err(Diagnostic::new("elaborate::stack", message).into())
            }
        }
    })
}

impl Elab<'_> {
    /// Counts a step, so that static loops and recursion end.
    pub(crate) fn step(&mut self, span: Span) -> R<()> {
        self.steps += 1;
        let alive: usize = self.blocks.iter().map(|b| b.declared).sum();
        let begin = STACK_BEGIN.get();
        let stack = if begin == 0 { 0 } else { begin.abs_diff(stack_position()) };
        let unroll = "unroll less: use `range(…)` instead of `static(range(…))` where the loop is long";
        let (what, help) = if stack > STACK_LIMIT {
            let what = "is nested too deeply to be compiled: calls, with the expressions and blocks around them";
            (what.to_string(), "shorten the chains of calls, or name parts of large expressions")
        } else if self.steps > MAX_STEPS && self.schedule.is_some() {
            (format!("is too long: it takes over {MAX_STEPS} steps"), "end its loops and recursion sooner")
        } else if alive > MAX_ALIVE {
            (format!("becomes too large while compiling (over {MAX_ALIVE} tensors that are alive at once)"), unroll)
        } else if self.emitted > MAX_STATEMENTS {
            (format!("becomes too large while compiling (over {MAX_STATEMENTS} statements)"), unroll)
        } else if self.steps > MAX_STEPS {
            (format!("takes too long to compile (over {MAX_STEPS} static steps)"), unroll)
        } else if self.blocks.len() > MAX_BLOCKS {
            let what = format!("nests loops and branches more than {MAX_BLOCKS} deep, in the functions that it calls");
            (what, "end the recursion sooner, or put less into each call")
        } else {
            return Ok(());
        };
        // One report is enough: every later step ends here too.
        if self.diagnostics.iter().any(|d| d.code == "elaborate::too_large") {
            return Err(Stop::Reported);
        }
        let this = if self.schedule.is_some() { "this schedule" } else { "this program" };
        Err(self.report(Diagnostic::new("elaborate::too_large", format!("{this} {what}")).at(span).help(help)))
    }

    /// Checks that a call of `target` is not nested too deeply.
    pub(crate) fn call_depth(&mut self, target: FuncRef, span: Span) -> R<()> {
        let name = &self.function(target).name.text;
        if self.calls.iter().filter(|f| **f == target).count() >= MAX_RECURSION {
            let message =
                format!("the recursion of `{name}` does not end: it calls itself more than {MAX_RECURSION} deep");
            let help = "stop the recursion by a condition on static values (`ndim`, static parameters)";
            return self.error_help("call::depth", span, message, help);
        }
        if self.chain.len() >= MAX_CALLS {
            let message = format!("calls are nested more than {MAX_CALLS} deep, at the call of `{name}`");
            let help = "shorten the chain of calls: every call is inlined";
            return self.error_help("call::depth", span, message, help);
        }
        Ok(())
    }

    /// Checks the size of a new static value, and counts its items.
    pub(crate) fn bounded(&mut self, v: &Value, span: Span) -> R<()> {
        let fault = match v {
            Value::Str(s) if s.len() > MAX_TEXT => Err(format!("a static string is longer than {MAX_TEXT} bytes")),
            Value::Tuple(_) | Value::List(_) => weight(v),
            _ => Ok(0),
        };
        match fault {
            Ok(items) => self.steps += items / ITEMS_PER_STEP,
            Err(why) => {
                return self.error_help("static::size", span, why, "put numbers into tensors: static values are small");
            }
        }
        Ok(())
    }

    /// Checks that the expression of an element has not become too large.
    pub(crate) fn small_enough(&mut self, e: &Expr, span: Span) -> R<()> {
        if within(e, &mut { MAX_OPERATORS }) {
            return Ok(());
        }
        let message = format!("the expression has more than {MAX_OPERATORS} operands and operators after inlining");
        let help = "give parts of it names, which makes them tensors: `t: f64 = …`";
        self.error_help("elaborate::too_large", span, message, help)
    }
}

/// Counts the items of a static sequence, including those of nested sequences.
fn weight(v: &Value) -> Result<usize, String> {
    fn count(v: &Value, depth: usize, total: &mut usize) -> Result<(), String> {
        let Some(items) = v.items() else { return Ok(()) };
        *total += items.len();
        if *total > MAX_ITEMS {
            return Err(format!("a static sequence has more than {MAX_ITEMS} items, including nested ones"));
        }
        if depth > MAX_NESTING {
            return Err(format!("static sequences are nested more than {MAX_NESTING} deep"));
        }
        items.iter().try_for_each(|item| count(item, depth + 1, total))
    }
    let mut total = 0;
    count(v, 1, &mut total).map(|()| total)
}

/// Returns whether an expression has no more nodes than are left.
pub(crate) fn within(e: &Expr, left: &mut usize) -> bool {
    *left > 0 && {
        *left -= 1;
        e.children().into_iter().all(|c| within(c, left))
    }
}
