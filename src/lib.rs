//! Taffeta: a language and compiler for free-form tensor programs.
//!
//! A program is a `.ft` file; its entries are compiled to C with OpenMP and called with `ndarray` arrays.
//!
//! ```
//! use ndarray::arr1;
//! use taffeta::{Options, Program};
//!
//! let program = Program::from_source("smooth.ft", "
//! def smooth(x: f32[n]) -> f32[n - 2]:
//!     y = zeros((n - 2,), f32)
//!     for i in range(n - 2):
//!         y[i] = (x[i] + x[i + 1] + x[i + 2]) / 3.0
//!     return y
//! ")?;
//! let smooth = program.compile("smooth", &Options::default())?;
//! let x = arr1(&[0.0f32, 3.0, 6.0, 0.0]);
//! let results = smooth.call().input("x", x.view()).run()?;
//! assert_eq!(results.array::<f32>("y")?, arr1(&[3.0, 3.0]).into_dyn());
//! # Ok::<(), taffeta::Error>(())
//! ```
//!
//! Public API: [`program`] and [`function`] compile and describe programs, [`mod@call`] passes arrays, [`inputs`]
//! parses text and files as the command line does, and [`io`] holds readers and writers. Types named in signatures are
//! re-exported at the root ([`Value`], [`DType`], [`Diagnostic`], [`Span`] …). Tools that inspect programs find the
//! compiler's crates as modules: [`ast`], [`frontend`], [`analysis`], [`schedule`], [`codegen`].

pub mod array;
mod as_function;
mod automatic;
mod bind;
pub mod call;
pub mod convert;
pub mod doctor;
pub mod error;
mod execution_report;
pub mod function;
pub mod gradcheck;
mod hooks;
mod inlined;
pub mod inputs;
pub mod io;
mod loader;
mod locate;
mod materialise;
mod options;
/// Packed arrays of structured parameters, for tests that call C directly; unstable.
#[doc(hidden)]
pub mod output;
pub mod packed;
pub mod pair;
/// Order of the compilation stages, for tests that inspect intermediate programs; unstable.
#[doc(hidden)]
pub mod pipeline;
pub mod program;
pub mod render;
mod scheduler;
pub mod session;
pub mod sparse;
mod store;
mod tape_plan;
pub mod timing;

pub use array::Element;
pub use automatic::{is_unmeasured, measure, must_measure};
pub use call::{Call, Csr, Outputs};
pub use convert::convert;
pub use error::{Error, Report};
pub use execution_report::ExecutionReport;
pub use function::{Function, Ran, Usage};
pub use gradcheck::{DirectionCheck, InputCheck, Sampling, Verdict, check_gradient};
pub use options::MAX_THREADS;
pub use output::Output;
pub use pair::{Pair, Residuals};
pub use program::{Backend, Gradient, Mode, Options, Program};
pub use session::Session;
pub use sparse::{Index, Sparse};
pub use store::conforming;
/// Analyses of programs: dependences, accesses, bounds.
pub use taffeta_analysis as analysis;
/// Program tree: functions, types, diagnostics, the printer, the reference interpreter.
pub use taffeta_ast as ast;
pub use taffeta_ast::bytes::{amount, parse as parse_memory};
pub use taffeta_ast::format::LevelKind;
pub use taffeta_ast::span::FileId;
pub use taffeta_ast::{Buffer, DType, Diagnostic, Diagnostics, Func, SourceMap, Span, Value};
pub use taffeta_autodiff::{Explanation, Tape};
/// Lowering to C, and the C toolchain.
pub use taffeta_codegen as codegen;
pub use taffeta_codegen::Lowered;
pub use taffeta_codegen::c::CSource;
pub use taffeta_codegen::signature::{Passing, Signature, TensorSig};
/// Parser and elaborator: from text to programs.
pub use taffeta_frontend as frontend;
pub use taffeta_frontend::StaticValue;
pub use taffeta_frontend::program::{EntryInfo, ParamInfo};
/// Operators and schedules that programs use without an import.
pub use taffeta_libop as libop;
/// Schedules: programs with their steps, for scheduling from Rust.
pub use taffeta_schedule as schedule;
pub use taffeta_schedule::Schedule;
/// Lowering of loops over structured tensors to loops over stored elements.
pub use taffeta_structured as structured;
pub use timing::Timings;

/// The book's page on the library, included so that doctests run its example.
#[cfg(doctest)]
#[doc = include_str!("../docs/src/rust.md")]
struct BookOnRust;
