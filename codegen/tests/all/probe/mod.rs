//! Programs that test a C compiler and measure the machine.

mod checks;
mod facts;
mod machine;
