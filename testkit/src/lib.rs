//! The test kit: random programs and tensors, oracles and comparisons that the tests of several crates share.
//!
//! | module | holds |
//! |---|---|
//! | `random` | random elements and formats of structured tensors |
//! | `programs` | programs by their text; comparison of a program with its lowering |
//! | `golden` | comparison of a lowered program with its expected text |
//! | `lowers` | the callback by which schedules ask for a lowering |
//! | `cases` | random programs on structured tensors, kernels in all formats, their reduction to small ones |
//! | `made` | random programs of every sort, and their gradients |
//! | `steps` | random steps of schedules |
//! | `tried` | cases of random schedules: the program before and after, by the interpreter |
//! | `automatic` | cases of automatic schedules |
//! | `confirm` | refusals confirmed by a run at the sizes of their witness |
//! | `dependences`, `direct` | dependences of random nests against brute force |
//! | `batch` | many programs in one C file and one library |
//! | `driver` | compiled C in a process of its own, under sanitizers |
//! | `status` | codes of errors by name |
//! | `random_schedules` | random schedules compiled to C, on several numbers of threads |
//! | `lanes` | bodies of vectorised loops with nested conditions, compiled to C |
//! | `texts`, `mutate` | random texts, and mutated programs, for the parser and elaboration |

#![allow(missing_docs)] // of test data, names say it

/// Allocator of the command line, for all tests: the interpreter and the analyses allocate much.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod automatic;
pub mod batch;
pub mod cases;
pub mod confirm;
pub mod dependences;
pub mod direct;
pub mod driver;
pub mod golden;
pub mod lanes;
pub mod lowers;
pub mod made;
pub mod mutate;
pub mod programs;
pub mod random;
pub mod random_schedules;
pub mod status;
pub mod steps;
pub mod texts;
pub mod tried;
