//! Reference interpreter: the definition of the meaning of programs, and the oracle for every pass, every schedule and
//! the generated C. It runs any tree, logical or lowered, statement by statement, and checks every index and every read
//! of an unwritten element.
//!
//! - `resolve`: symbols to slots.
//! - `machine`: statements and expressions.
//! - `fill`: expressions that read structured tensors, whose set of stored elements is tracked ([`Value::places`]).
//! - `follow`: tensors over the pattern of a parameter.
//! - `insert`: results and local tensors with a pattern of their own.
//! - `routine`: run-time routines on flat arrays.
//!
//! Operators are defined in [`crate::scalar`], display of values in messages in [`crate::show`]: constructors of
//! expressions need both, without the interpreter.
//!
//! Unsupported constructs, refused with [`ErrorKind::Unsupported`]: `inout` parameters in a structured format; loops
//! over the reals.

mod error;
mod fill;
mod follow;
mod insert;
mod machine;
mod resolve;
mod routine;

pub use error::{ErrorKind, RuntimeError};

use crate::expr::ExprKind;
use crate::func::{Func, Param};
use crate::print;
use crate::spelling::counted;
use crate::stmt::{Origin, Tensor};
use crate::symbol::Symbol;
use crate::value::Value;
use machine::{Cell, Machine};
use std::collections::BTreeMap;

/// Inputs of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// Sizes by name. Sizes that are by themselves a dimension of a parameter may be left out.
    pub sizes: BTreeMap<String, i64>,
    /// Parameters, in order.
    pub params: Vec<Value>,
}

/// Outputs of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    /// Parameters, in order; `inout` ones with their final values.
    pub params: Vec<Value>,
    /// Results, in order. Elements that were never written are 0.
    pub results: Vec<Value>,
    /// Arrays that the body makes for the caller ([`Func::made`]), in order. Elements that were never written are 0.
    pub made: Vec<Value>,
    /// For each result, the row-major offsets of elements that were never written: their contents are unspecified.
    pub unwritten: Vec<Vec<usize>>,
}

/// Runs a program and discards its printed lines; see [`run_printing`].
///
/// # Errors
///
/// Inputs that do not fit the declarations, and any error that stops the program.
pub fn run(func: &Func, inputs: &Inputs) -> Result<Outputs, RuntimeError> {
    run_printing(func, inputs, &mut |_| {})
}

/// Runs a program and passes each printed line to `lines` as it is printed, without the end of the line. The text of a
/// tensor may contain line breaks.
///
/// # Errors
///
/// Inputs that do not fit the declarations, and any error that stops the program.
pub fn run_printing(func: &Func, inputs: &Inputs, lines: &mut dyn FnMut(&str)) -> Result<Outputs, RuntimeError> {
    let nowhere = |kind: ErrorKind| RuntimeError { origin: Origin::none(), kind: Box::new(kind) };
    let program = resolve::program(func)?;
    let sizes = sizes(func, inputs).map_err(nowhere)?;

    let mut vars = sizes;
    vars.resize(program.vars, 0);
    let cell = |(p, v): (&Param, &Value)| match v.places() {
        None => Ok(Cell::given(v.clone())),
        Some(_) => v.dense().map(|dense| Cell::sparse(dense, v.shared())).ok_or_else(|| {
            let (tensor, shape) = (p.tensor.symbol.name().to_string(), v.shape().iter().map(|n| *n as i64).collect());
            nowhere(ErrorKind::TooLarge { tensor, shape })
        }),
    };
    let mut cells = func.params.iter().zip(&inputs.params).map(cell).collect::<Result<Vec<Cell>, _>>()?;
    cells.extend(program.tensors[cells.len()..].iter().map(|t| Cell::empty(t.dtype)));
    let mut machine = Machine { tensors: &program.tensors, follows: &program.follows, cells, vars, lines };

    let (params, results) = program.interface.split_at(func.params.len());
    for (slot, shape) in params.iter().enumerate() {
        machine.check_shape(slot, shape).map_err(|k| nowhere(*k))?;
    }
    for (k, shape) in results.iter().enumerate() {
        machine.allocate(params.len() + k, shape).map_err(|k| nowhere(*k))?;
    }
    machine.block(&program.body)?;
    for (slot, origin) in program.agree {
        machine.check_held(slot).map_err(|kind| RuntimeError { origin: origin.clone(), kind })?;
    }

    // Structured results are returned as stored elements.
    let slots = || params.len()..params.len() + results.len();
    let own = slots().map(|slot| machine.inserted(slot)).collect::<Result<Vec<Option<Value>>, _>>();
    let own = own.map_err(|k| nowhere(*k))?;
    let samples: Vec<Option<Value>> = slots().map(|slot| machine.sampled(slot, inputs)).collect();
    let made = program.made.iter().filter_map(|slot| machine.cells[*slot].value()).collect();
    let mut finished = machine.cells.into_iter().map(Cell::finish);
    let mut outputs = Outputs { params: Vec::new(), results: Vec::new(), made, unwritten: Vec::new() };
    for ((value, _), given) in finished.by_ref().take(params.len()).zip(&inputs.params) {
        // A sparse parameter is read only, and returned as given.
        outputs.params.extend(if given.places().is_some() { Some(given.clone()) } else { value });
    }
    for (((value, holes), sample), own) in finished.take(results.len()).zip(samples).zip(own) {
        // Elements to which no store came have the fill value where the result has a pattern of its own.
        outputs.unwritten.push(if own.is_some() { Vec::new() } else { holes });
        outputs.results.extend(own.or(sample).or(value));
    }
    Ok(outputs)
}

/// Returns all sizes by name, including those fixed by parameters: a program on flat buffers cannot derive them.
///
/// # Errors
///
/// Inputs that do not fit the declarations.
pub fn complete_sizes(func: &Func, inputs: &Inputs) -> Result<BTreeMap<String, i64>, RuntimeError> {
    let values = sizes(func, inputs).map_err(|kind| RuntimeError { origin: Origin::none(), kind: Box::new(kind) })?;
    Ok(func.sizes.iter().map(|s| s.name().to_string()).zip(values).collect())
}

/// Returns the values of the sizes, in order: given by name, or taken from a dimension of a parameter.
fn sizes(func: &Func, inputs: &Inputs) -> Result<Vec<i64>, ErrorKind> {
    let (given, wanted) = (inputs.params.len(), func.params.len());
    if given != wanted {
        let wanted = counted(wanted, "argument");
        return Err(ErrorKind::Input(format!("expected {wanted} of `{}`, found {given}", func.name)));
    }
    for (p, v) in func.params.iter().zip(&inputs.params) {
        let (t, name) = (&p.tensor, p.tensor.symbol.name());
        if t.dtype != v.dtype() {
            return Err(ErrorKind::Input(format!(
                "expected elements of type {} in `{name}`, found {}",
                t.dtype,
                v.dtype()
            )));
        }
        if t.ndim() != v.shape().len() {
            let found = v.shape().len();
            let wanted = counted(t.ndim(), "dimension");
            return Err(ErrorKind::Input(format!("expected {wanted} of `{name}`, found {found}")));
        }
    }
    if let Some(name) = inputs.sizes.keys().find(|k| func.sizes.iter().all(|s| s.name() != k.as_str())) {
        return Err(ErrorKind::Input(format!("`{}` has no size `{name}`", func.name)));
    }
    let dimension = |size: &Symbol| {
        func.params.iter().zip(&inputs.params).find_map(|(p, v)| {
            let dim = p.tensor.shape.iter().position(|e| matches!(e.kind(), ExprKind::Var(s) if s == size))?;
            Some(v.shape()[dim] as i64)
        })
    };
    let value = |size: &Symbol| {
        let found = inputs.sizes.get(size.name()).copied().or_else(|| dimension(size));
        match found {
            Some(n) if n >= 0 => Ok(n),
            Some(n) => Err(ErrorKind::Input(format!("the size `{size}` is {n}, which is negative"))),
            None => Err(ErrorKind::Input(format!("the size `{size}` is not given, and no parameter fixes it"))),
        }
    };
    func.sizes.iter().map(value).collect()
}

impl Machine<'_> {
    /// Checks that a parameter has its declared shape.
    fn check_shape(&mut self, slot: usize, declared: &[resolve::Node]) -> Result<(), Box<ErrorKind>> {
        let tensor: &Tensor = self.tensors[slot];
        for (dim, node) in declared.iter().enumerate() {
            let (expected, found) = (self.size(slot, node)?, self.cells[slot].size(dim));
            if expected != found {
                let (param, declared) = (tensor.symbol.name().to_string(), print::expr(&tensor.shape[dim]));
                return Err(Box::new(ErrorKind::Shape { param, dim, declared, expected, found }));
            }
        }
        Ok(())
    }
}
