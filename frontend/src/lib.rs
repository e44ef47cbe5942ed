//! Taffeta's front end: grammar, syntax tree and elaboration.
//!
//! `parse` turns text into a [`syntax::Module`] (pest grammar, indentation, spans); a [`Program`] is a file with its
//! imports and the parts of the operator library it uses; `elaborate` turns an entry of a program into a
//! [`taffeta_ast::Func`]: calls inlined, static values evaluated, views resolved, shapes and types inferred.

mod elaborate;
pub mod format;
pub mod parse;
pub mod program;
pub mod syntax;

pub use elaborate::{GradientRequest, Hooks, NoHooks, StaticValue, is_builtin};
pub use elaborate::{IndexMap, ScheduleArg, ScheduleCall, ScheduleRequest, ScheduleValue, Scheduler};
pub use program::{EntryInfo, Loader, NoLoader, ParamInfo, Program, ScheduleInfo, Source};
