//! Test kit: random programs and tensors, oracles and comparisons that the tests of several crates share.
//!
//! | module | holds |
//! |---|---|
//! | `random` | random elements and formats of structured tensors |
//! | `programs` | elaboration of program texts; comparison of a program with its lowering |
//! | `golden` | comparison of a lowered program with its expected text |
//! | `lowers` | the callback by which schedules query lowering |
//! | `cases` | random programs on structured tensors, kernels in all formats, their reduction to small ones |
//! | `steps` | random steps of schedules |

#![allow(missing_docs)] // test data, whose names are descriptive

pub mod cases;
pub mod golden;
pub mod lowers;
pub mod programs;
pub mod random;
#[path = "../../schedule/tests/campaign/steps.rs"]
pub mod steps;
