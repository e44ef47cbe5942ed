//! # The tree
//!
//! The *meaning* of programs is defined here, before any node:
//!
//! - A [`Func`] is run statement by statement, in order, on dense tensors. Storage (a [`format::Format`]) and schedules
//!   (properties of loops) change how it runs, never its results.
//! - Every expression has an element type ([`DType`]) and is a scalar: the front end has expanded tensor operations
//!   into loops. Evaluating an expression writes nothing. `and`, `or` and `select` evaluate only the operands they
//!   need, so `x[i - 1] if i > 0 else 0.0` never reads out of bounds.
//! - Integers wrap. Division by zero, `INT_MIN / -1`, an index out of range, a cast of a float without an integer value
//!   and a failed assertion stop the program with an error that names the statement.
//! - `//` and `%` are Python's (floor; sign of the divisor). `min` and `max` propagate NaN. Floating-point arithmetic
//!   happens in the type of the expression, with one rounding per operation.
//! - A [`StmtKind::Print`] writes a line each time it is executed. Schedules affect only the order of the lines:
//!   program order in unscheduled code, and the order in which the schedule runs iterations otherwise. Printing is
//!   therefore no dependence between statements and never prevents a schedule, but no pass may remove or repeat a
//!   print, or move it to a place that executes more or less often. A print reads the values that it shows. Lines are
//!   whole: lines of different threads never mix.
//! - A tensor is alive in the body of its [`StmtKind::VarDef`] and nowhere else (*stack scope*), with unspecified
//!   initial contents. Parameters and results are alive in the whole body.
//!
//! Modules. *The tree*: [`expr`] and [`stmt`] hold the nodes, [`func`] whole programs, [`op`] the table of operators
//! and their semantics, [`format`](mod@format) storage formats, [`symbol`] unique names, [`visit`] walks and rewrites.
//! *Meaning*: [`scalar`] evaluates operators on constants, [`algebra`] has the laws of fill values, [`poly`] decides
//! equality of sizes, [`value`] holds tensors, [`interp`] is the reference interpreter, which defines the meaning of
//! programs and is the oracle for everything else, [`validate`] the validators for three stages of the tree. *Text*:
//! [`mod@print`] prints text that parses again, [`show`] values, [`selector`] the names of loops in schedules,
//! [`diag`], [`span`] and [`codes`] are diagnostics with their locations and explanations. *Shared by all crates*:
//! [`pool`] thread pools, [`bytes`] amounts of memory, [`gradient`] the options of gradients. Tests use [`mod@build`],
//! a tree builder, and `random` (a feature), random programs.
//!
//! Deliberately absent: surface syntax (in `taffeta-frontend`), proofs (in `taffeta-analysis`) and `unsafe`.

pub mod algebra;
pub mod build;
pub mod bytes;
pub mod codes;
pub mod coordinates;
pub mod diag;
pub mod dtype;
pub mod expr;
pub mod format;
pub mod func;
pub mod gradient;
pub mod half_precision;
pub mod interp;
mod literal;
pub mod op;
pub mod poly;
pub mod pool;
pub mod print;
#[cfg(feature = "random")]
pub mod random;
pub mod scalar;
pub mod selector;
pub mod show;
pub mod span;
pub mod spelling;
pub mod stmt;
pub mod symbol;
#[doc(hidden)]
pub mod testing;
pub mod validate;
pub mod value;
pub mod visit;

pub use diag::{Diagnostic, Diagnostics, Severity};
pub use dtype::{DType, Kind};
pub use expr::{Access, Expr, ExprKind, Literal};
pub use func::{Func, Param, ParamMode};
pub use op::{Op, ReduceOp};
pub use span::{FileId, SourceMap, Span};
pub use stmt::{
    Distribution, Extent, LoopProps, Origin, Parallel, PrintPart, Reduction, Sharing, Stmt, StmtId, StmtKind, Tensor,
    Vectorize,
};
pub use symbol::Symbol;
pub use value::{Buffer, Value};
