//! Random well-typed programs with inputs, for differential tests: the interpreter against compiled C, a program before
//! a pass against the program after it, a tree against its printed and parsed copy.
//!
//! Behind the feature `random`, for `[dev-dependencies]`:
//!
//! ```
//! use taffeta_ast::random::{Options, program};
//! use taffeta_ast::{interp, validate};
//!
//! let case = program(42, &Options::default());
//! validate::logical(&case.func).expect("it is valid");
//! interp::run(&case.func, &case.inputs).expect("it does not stop with an error");
//! ```
//!
//! One seed gives one program, on every machine. Programs have loops (negative steps, empty ranges, bounds from sizes
//! and outer iterators), branches, local tensors, stores, reductions, indirect indices, all element types and every
//! operator. The generator tracks intervals of iterators, so that indices are in range by construction; with
//! [`Options::errors`] some are not, and other operations may fail too. Every element is written before it is read.
//! Every program can be written in Taffeta, and has the form that the front end would give it.
//!
//! [`shrink`] reduces the program of a failing test.

pub mod dense;
mod exprs;
pub mod nest;
mod shrink;
mod stmts;
pub mod trace;

pub use shrink::shrink;

use crate::dtype::DType;
use crate::expr::Expr;
use crate::func::Func;
use crate::interp::Inputs;
use crate::literal::Literal;
use crate::stmt::Tensor;
use crate::symbol::Symbol;
use crate::value::{Buffer, Value};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// Floating-point values in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floats {
    /// Small integers, with operators that keep them small: results are exact under contraction and reassociation.
    Exact,
    /// All values, NaN and infinities included. Results depend on the last bit, and comparisons on the results.
    Any,
}

/// Options of generated programs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Element types; indices always use `i64`.
    pub dtypes: Vec<DType>,
    /// Floating-point values.
    pub floats: Floats,
    /// Whether indices may be out of range, divisors zero, assertions false.
    pub errors: bool,
    /// Approximate number of statements.
    pub statements: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { dtypes: DType::ALL.to_vec(), floats: Floats::Exact, errors: false, statements: 20 }
    }
}

/// Program with inputs.
#[derive(Clone, Debug)]
pub struct Case {
    /// Program.
    pub func: Func,
    /// Inputs that fit the program.
    pub inputs: Inputs,
}

/// Generates the program of a seed.
pub fn program(seed: u64, options: &Options) -> Case {
    let rng = ChaCha8Rng::seed_from_u64(seed);
    let budget = options.statements;
    let maker = Gen { rng, options, sizes: Vec::new(), tensors: Vec::new(), iters: Vec::new(), budget };
    maker.program()
}

/// Interval of an integer expression's values; empty if `lo > hi`, in loops that never run.
#[derive(Clone, Copy, Debug)]
struct Interval {
    lo: i64,
    hi: i64,
}

/// Readable tensor, with bounds of its sizes.
#[derive(Clone, Debug)]
struct VisibleTensor {
    tensor: Arc<Tensor>,
    extents: Vec<Interval>,
    writable: bool,
}

/// State of the generator.
struct Gen<'o> {
    rng: ChaCha8Rng,
    options: &'o Options,
    sizes: Vec<(Symbol, i64)>,
    tensors: Vec<VisibleTensor>,
    iters: Vec<(Symbol, Interval)>,
    /// Number of statements left to generate.
    budget: usize,
}

impl Gen<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n.max(1))
    }

    fn chance(&mut self, p: f64) -> bool {
        self.rng.random_bool(p)
    }

    /// Chooses whether to generate code that may stop the program.
    fn risk(&mut self) -> bool {
        self.options.errors && self.chance(0.04)
    }

    fn dtype(&mut self) -> DType {
        let k = self.below(self.options.dtypes.len());
        self.options.dtypes.get(k).copied().unwrap_or(DType::I64)
    }

    /// Generates an element of an input.
    fn element(&mut self, dtype: DType) -> Literal {
        match dtype {
            DType::Bool => Literal::Bool(self.chance(0.5)),
            _ if dtype.is_int() => {
                let v = if self.chance(0.1) { self.rng.random::<i64>() } else { self.rng.random_range(-4..9) };
                Literal::Int(crate::literal::wrap_to(i128::from(v), dtype))
            }
            _ => {
                const SPECIAL: [f64; 6] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e30, 1e-30];
                let special = self.chance(0.1);
                let v = match self.options.floats {
                    Floats::Any if special => SPECIAL[self.below(SPECIAL.len())],
                    Floats::Any => self.rng.random_range(-4.0..4.0),
                    Floats::Exact => f64::from(self.rng.random_range(-4..9)),
                };
                Literal::Float(crate::literal::round_to(v, dtype))
            }
        }
    }

    fn value(&mut self, dtype: DType, shape: Vec<usize>) -> Value {
        let len = shape.iter().product();
        let mut data = Buffer::zeros(dtype, len);
        for i in 0..len {
            let element = self.element(dtype);
            data.set(i, element);
        }
        Value::new(shape, data).expect("the shape's product is the length")
    }

    /// Generates a size of a tensor: an expression over sizes, and its value.
    fn extent(&mut self) -> (Expr, i64) {
        let k = self.below(self.sizes.len());
        let (symbol, value) = self.sizes[k].clone();
        let n = Expr::var(&symbol);
        match self.below(5) {
            0 | 1 => (n, value),
            2 => (n.plus(&Expr::int(1)), value + 1),
            3 if value <= 3 => (n.times(&Expr::int(2)), value * 2),
            _ => {
                let c = self.rng.random_range(1..4);
                (Expr::int(c), c)
            }
        }
    }
}
