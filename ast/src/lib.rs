//! # The tree
//!
//! What a program *means* is fixed here, before any node is defined:
//!
//! - A [`Func`] is run statement by statement, in order, on dense tensors. Storage (a [`format::Format`]) and schedules
//!   (properties of loops) change how it runs, never what it computes.
//! - Every expression has an element type ([`DType`]) and is a scalar: tensor operations were expanded into loops by
//!   the front end. Evaluating an expression writes nothing. `and`, `or` and `select` evaluate only the operands they
//!   need, so `x[i - 1] if i > 0 else 0.0` never reads out of bounds.
//! - Integers wrap. Division by zero, `INT_MIN / -1`, an index out of range, a float that has no integer value in a
//!   cast and a failed assertion stop the program with an error that names the statement.
//! - `//` and `%` are Python's (floor; sign of the divisor). `min` and `max` propagate NaN. Floating arithmetic happens
//!   in the type of the expression, with one rounding per operation.
//! - A [`StmtKind::Print`] writes a line, once for each time that it is executed. Nothing but the lines' order depends
//!   on a schedule: lines come in the order of the program where nothing is scheduled, and in whatever order the
//!   schedule runs iterations otherwise. So printing is not a dependence between statements, and never stands in the
//!   way of a schedule; but no pass may remove, repeat or move a print to where it is executed more or less often. It
//!   reads what it shows. A line is whole: lines of different threads never mix.
//! - A tensor is alive in the body of its [`StmtKind::VarDef`] and nowhere else (*stack scope*), with unspecified
//!   contents at first. Parameters and results are alive in the whole body.
//!
//! The parts: [`expr`] and [`stmt`] hold the nodes, [`op`] the table of operators and what they compute, [`func`] whole
//! programs, [`poly`] equality of shapes, [`pool`] threads, [`mod@print`] the text that parses again, [`selector`] what
//! schedules call loops, [`validate`] the two validators, [`interp`] the reference interpreter, which is the definition
//! of meaning and the oracle for everything else. For tests there are [`mod@build`], trees by hand, and `random` (a
//! feature), random programs.
//!
//! Deliberately absent: anything of the surface syntax (it is in `taffeta-frontend`), anything that proves
//! (`taffeta-analysis`) and `unsafe`.

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
