//! The one integration-test binary: programs of the repository, and the command line from outside. `tests/README.md`
//! describes each module.

mod adbench;
mod as_function;
mod case;
mod choices;
#[path = "../cli/mod.rs"]
mod cli;
mod codes;
mod commands;
mod corpus;
mod custom_vjp;
mod custom_vjp_budgets;
mod differential;
mod docs;
mod examples;
mod forked;
mod formats;
mod gradients;
mod intrinsics;
mod jacobian;
mod kernel_size;
mod kernels;
mod lent;
mod libop;
mod logistic;
mod materialise;
mod memory;
mod pairs;
mod polybench;
mod prints;
mod programs;
mod python;
mod random;
mod readme;
mod sanitized;
mod sanitized_schedules;
mod smooth;
mod sparse_differences;
mod sparse_examples;
mod sparse_files;
mod sparse_gradients;
mod sparse_modes;
mod sparse_threads;
mod storage;
mod structured;
mod training;
