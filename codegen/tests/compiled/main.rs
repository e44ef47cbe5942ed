//! Programs built by hand, compiled to C and run: results are those of the reference interpreter.

mod abi;
mod arena;
mod batch;
mod campaign;
mod checks;
mod conditional;
#[path = "../../../schedule/tests/campaign/confirm.rs"]
mod confirm;
mod driver;
mod ends;
mod forked;
mod guards;
mod half;
mod lanes;
mod operators;
mod parallel;
mod products;
mod programs;
mod promoted;
mod random;
mod random_schedules;
mod refusals;
mod regions;
mod run;
mod sanitized;
mod scheduled;
mod shapes;
mod status;
#[path = "../../../schedule/tests/campaign/steps.rs"]
mod steps;
mod storage;
mod text;
#[path = "../../../schedule/tests/campaign/tried.rs"]
mod tried;
mod vectors;
