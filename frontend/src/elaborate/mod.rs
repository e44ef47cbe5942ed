//! Elaboration: an entry of a program becomes a [`Func`], the logical program.
//!
//! One walk over the syntax tree inlines calls, evaluates static values, resolves views to indices of tensors, infers
//! shapes and types, and expands array expressions into loops. It expands and does not optimise.
//!
//! The parts: `value` and `axis` (results of expressions), `block` (the program being built), `scope` (names), `expr`,
//! `operator`, `broadcast`, `index`, `within`, `modifier`, `missing`, `table`, `choice`, `static_eval`, `literal`
//! (expressions), `stmt`, `assign`, `write`, `declared`, `reduce`, `print` (statements), `annotation`, `storage`,
//! `remap` (types and formats), `call`, `func`, `builtin`, `grad`, `custom_vjp`, `splice` (functions and their
//! gradients), `entry` (whole programs), `schedule`, `report` and `warn` (diagnostics), `limits`.
//!
//! Terms: a *static* value is known while compiling. A *weak* value (of literals, sizes and iterators) has no element
//! type of its own, and takes that of the typed operands that it meets, as in JAX. A *template* is a function with
//! parameters that have no annotation; it is elaborated anew for each call.
//!
//! Error recovery is by statement: an error is reported, the statement is given up, the names that it would have bound
//! are poisoned (uses of them are not reported), and elaboration continues with the next statement.

mod annotation;
mod assign;
mod axis;
mod block;
mod broadcast;
mod builtin;
mod call;
mod choice;
mod conversion;
mod custom_vjp;
mod declared;
mod entry;
mod expr;
mod func;
mod grad;
mod index;
mod limits;
mod literal;
mod missing;
mod modifier;
mod operator;
mod print;
mod reduce;
mod remap;
mod report;
mod schedule;
mod scope;
mod splice;
mod static_eval;
mod stmt;
mod storage;
mod table;
mod value;
mod warn;
mod within;
mod write;

use crate::program::Program;
use block::Block;
use func::FuncRef;
use limits::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};
use scope::Frame;
use std::collections::BTreeMap;
use std::sync::Arc;
use taffeta_ast::func::CustomVjp;
use taffeta_ast::stmt::CallSite;
use taffeta_ast::{Diagnostic, Diagnostics, Func, Span, Symbol};
use value::Value;

pub use func::{is_entry, is_static_annotation};
pub use grad::{GradientRequest, Hooks, NoHooks, gradient_target};
pub use literal::StaticValue;
pub use remap::is_of_remapping;
pub(crate) use report::{SeenDiagnostics, add};
pub use schedule::{IndexMap, ScheduleArg, ScheduleCall, ScheduleRequest, ScheduleValue, Scheduler};
pub use schedule::{fault_of_form, schedule_target};
pub use scope::is_builtin;
use taffeta_ast::spelling::nearest;

/// Reason why elaboration of a statement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Error: a diagnostic has been recorded.
    Reported,
    /// Repetition: a name that was taken for a value of sizes is assigned again, so the function must be elaborated
    /// once more, with a tensor there.
    Restart {
        /// Frame of the name.
        frame: usize,
        /// Declaration of the name.
        site: Span,
    },
}

pub(crate) type R<T> = Result<T, Stop>;

/// State of one elaboration.
pub(crate) struct Elab<'p> {
    program: &'p Program,
    hooks: &'p dyn Hooks,
    diagnostics: Vec<Diagnostic>,
    known: SeenDiagnostics,
    blocks: Vec<Block>,
    frames: Vec<Frame>,
    next_frame: usize,
    /// Call sites that lead to the current statement; `shared_chain` is the copy shared by the statements of one call.
    chain: Vec<CallSite>,
    /// Functions called at the sites of `chain`.
    calls: Vec<FuncRef>,
    /// Functions being differentiated whose gradients this program is part of.
    differentiating: Vec<FuncRef>,
    shared_chain: Option<Arc<[CallSite]>>,
    /// Span of the current statement.
    span: Span,
    /// Variables in the entry's `return`.
    returned: Vec<Option<String>>,
    emitted: usize,
    steps: usize,
    /// Sizes, and iterators that are never negative.
    nonnegative: FxHashSet<Symbol>,
    /// First and last value of iterators of loops that count up.
    ranges: FxHashMap<Symbol, [taffeta_ast::Expr; 2]>,
    /// Tensors that values were computed from.
    operands: FxHashMap<Symbol, Arc<taffeta_ast::Tensor>>,
    /// Parameters that are never written.
    inputs: FxHashSet<Symbol>,
    /// Final symbols of unnamed tensors that were bound to a name.
    renames: FxHashMap<Symbol, Symbol>,
    /// Per function, names that it assigns in a loop and declares before the loop.
    looped: FxHashMap<FuncRef, Arc<FxHashSet<String>>>,
    /// Values of static assignments of modules; `None` during evaluation.
    globals: FxHashMap<(usize, usize), Option<Value>>,
    /// Whether the program is going to be differentiated: calls of functions with custom VJPs are recorded then.
    differentiated: bool,
    /// Recorded calls of functions with custom VJPs.
    custom_vjp_calls: Vec<CustomVjp>,
    /// Functions whose custom VJPs this program is part of.
    within: Vec<FuncRef>,
    /// Memo of functions and their custom VJPs.
    custom_vjps: FxHashMap<FuncRef, Option<Arc<custom_vjp::CustomVjpRule>>>,
    /// State of the schedule, if a schedule is evaluated and not a program.
    schedule: Option<schedule::ScheduleState<'p>>,
    /// Notes on names that are declared from weak values.
    notes: declared::Notes,
    /// Memo of the findings of walks, by the fingerprint of the call.
    found: FxHashMap<u64, declared::Findings>,
    /// Lists that are indexed while the program runs.
    tables: table::Tables,
    /// Gradients that were made for calls in this program.
    gradients: FxHashMap<String, Arc<Func>>,
    /// Warnings: valid constructs that may not be intended.
    warnings: Vec<Diagnostic>,
}

impl<'p> Elab<'p> {
    fn new(program: &'p Program, hooks: &'p dyn Hooks) -> Elab<'p> {
        Elab {
            program,
            hooks,
            diagnostics: Vec::new(),
            known: SeenDiagnostics::default(),
            blocks: vec![Block::default()],
            frames: Vec::new(),
            next_frame: 0,
            chain: Vec::new(),
            calls: Vec::new(),
            differentiating: Vec::new(),
            shared_chain: None,
            span: Span::NONE,
            returned: Vec::new(),
            emitted: 0,
            steps: 0,
            nonnegative: FxHashSet::default(),
            ranges: FxHashMap::default(),
            operands: FxHashMap::default(),
            inputs: FxHashSet::default(),
            renames: FxHashMap::default(),
            looped: FxHashMap::default(),
            globals: FxHashMap::default(),
            differentiated: false,
            custom_vjp_calls: Vec::new(),
            within: Vec::new(),
            custom_vjps: FxHashMap::default(),
            schedule: None,
            notes: declared::Notes::default(),
            found: FxHashMap::default(),
            tables: table::Tables::default(),
            gradients: FxHashMap::default(),
            warnings: Vec::new(),
        }
    }

    /// Returns the chain of calls, shared between statements.
    fn chain_shared(&mut self) -> Arc<[CallSite]> {
        let chain = &self.chain;
        self.shared_chain.get_or_insert_with(|| Arc::from(chain.as_slice())).clone()
    }
}

/// Elaborates an entry of the main file.
pub(crate) fn entry(
    program: &Program,
    name: &str,
    statics: &BTreeMap<String, StaticValue>,
    hooks: &dyn Hooks,
) -> Result<Func, Diagnostics> {
    with_stack(|| entry::elaborate(program, name, statics, hooks, false))
}

/// Checks an entry: returns its errors, or warnings if there are none.
pub(crate) fn check(
    program: &Program,
    name: &str,
    statics: &BTreeMap<String, StaticValue>,
    hooks: &dyn Hooks,
) -> Vec<Diagnostic> {
    let found = with_stack(|| {
        let (result, mut warnings) = entry::warned(program, name, statics, hooks, false);
        let func = result?;
        warnings.extend(hooks.examine(&func));
        Ok(warnings)
    });
    found.unwrap_or_else(|d| d.0)
}

/// Elaborates an entry that is going to be differentiated.
pub(crate) fn differentiable(
    program: &Program,
    name: &str,
    statics: &BTreeMap<String, StaticValue>,
    hooks: &dyn Hooks,
) -> Result<Func, Diagnostics> {
    with_stack(|| entry::elaborate(program, name, statics, hooks, true))
}

/// Reports all errors of the custom VJP at an index of the main file; empty if there is none.
pub(crate) fn gradient_faults(program: &Program, item: usize, hooks: &dyn Hooks) -> Vec<Diagnostic> {
    with_stack(|| Ok(custom_vjp::faults(program, item, hooks))).unwrap_or_else(|d| d.0)
}

/// Returns whether a function is the custom VJP of another one: `@gradient(f)`.
pub fn is_custom_vjp(f: &crate::syntax::Function) -> bool {
    custom_vjp::decorator(f).is_some()
}

/// Elaborates an entry and applies a schedule function.
pub(crate) fn scheduled(
    program: &Program,
    name: &str,
    schedule: &str,
    statics: &BTreeMap<String, StaticValue>,
    hooks: &dyn Hooks,
) -> Result<Func, Diagnostics> {
    with_stack(|| schedule::scheduled(program, name, schedule, statics, hooks))
}
