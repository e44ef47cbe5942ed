//! The reference interpreter: the definition of what a program means, and the oracle for every pass, every schedule and
//! the C that is generated. It runs any tree, logical or lowered, one statement after the other, and checks every index
//! and every read of an element that was not written.
//!
//! - `resolve`: symbols to slots. `machine`: statements and expressions. `fill`: expressions that read structured
//!   tensors, of which it keeps which elements are stored ([`Value::places`]). `follow`: tensors that are stored where
//!   others are.
//!
//! The value of every operator is [`crate::scalar`]'s, how values print in messages [`crate::show`]'s: constructors of
//! expressions need both, and not the interpreter.
//!
//! Not there yet, and refused with [`ErrorKind::Unsupported`]: structured tensors that are written and have a pattern
//! of their own, loops over the reals, library calls.

mod error;
mod fill;
mod follow;
mod insert;
mod machine;
mod resolve;

pub use error::{ErrorKind, RuntimeError};

use crate::expr::ExprKind;
use crate::func::{Func, Param};
use crate::print;
use crate::stmt::{Origin, Tensor};
use crate::symbol::Symbol;
use crate::value::Value;
use machine::{Cell, Machine};
use std::collections::BTreeMap;

/// What a program is run on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// Sizes by name. Those that stand alone as a dimension of a parameter may be left out.
    pub sizes: BTreeMap<String, i64>,
    /// The parameters, in order.
    pub params: Vec<Value>,
}

/// What a program leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    /// The parameters, in order; those that are `inout` as the program left them.
    pub params: Vec<Value>,
    /// The results, in order. Elements that were never written are 0.
    pub results: Vec<Value>,
    /// For each result, which elements (row-major positions) were never written: their contents are unspecified.
    pub unwritten: Vec<Vec<usize>>,
}

/// Runs a program. What it prints is left out: see [`run_printing`].
///
/// # Errors
///
/// Inputs that do not fit the declarations, and whatever stops the program.
pub fn run(func: &Func, inputs: &Inputs) -> Result<Outputs, RuntimeError> {
    run_printing(func, inputs, &mut |_| {})
}

/// Runs a program. `lines` is given what it prints, when it prints it: a line at a time (which the elements of a tensor
/// may break into several), without the end of the line.
///
/// # Errors
///
/// Inputs that do not fit the declarations, and whatever stops the program.
pub fn run_printing(func: &Func, inputs: &Inputs, lines: &mut dyn FnMut(&str)) -> Result<Outputs, RuntimeError> {
    let nowhere = |kind: ErrorKind| RuntimeError { origin: Origin::none(), kind: Box::new(kind) };
    let program = resolve::program(func)?;
    let sizes = sizes(func, inputs).map_err(nowhere)?;

    let mut vars = sizes;
    vars.resize(program.vars, 0);
    let cell = |(p, v): (&Param, &Value)| match v.places() {
        None => Ok(Cell::given(v.clone())),
        Some(_) => v.dense().map(|dense| Cell::partly(dense, v.shared())).ok_or_else(|| {
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
        machine.agree(slot).map_err(|kind| RuntimeError { origin: origin.clone(), kind })?;
    }

    // Results over the pattern of a parameter are stored where that is.
    let samples: Vec<Option<Value>> = (0..results.len()).map(|k| machine.sampled(params.len() + k, inputs)).collect();
    let mut finished = machine.cells.into_iter().map(Cell::finish);
    let mut outputs = Outputs { params: Vec::new(), results: Vec::new(), unwritten: Vec::new() };
    for ((value, _), given) in finished.by_ref().take(params.len()).zip(&inputs.params) {
        // A sparse one is only read, and stays what it is.
        outputs.params.extend(if given.places().is_some() { Some(given.clone()) } else { value });
    }
    for ((value, holes), sample) in finished.take(results.len()).zip(samples) {
        outputs.results.extend(sample.or(value));
        outputs.unwritten.push(holes);
    }
    Ok(outputs)
}

/// The sizes by name, with those that parameters fix: what a program on flat buffers cannot tell from its parameters.
///
/// # Errors
///
/// Inputs that do not fit the declarations.
pub fn complete_sizes(func: &Func, inputs: &Inputs) -> Result<BTreeMap<String, i64>, RuntimeError> {
    let values = sizes(func, inputs).map_err(|kind| RuntimeError { origin: Origin::none(), kind: Box::new(kind) })?;
    Ok(func.sizes.iter().map(|s| s.name().to_string()).zip(values).collect())
}

/// The values of the sizes, in order: given by name, or as a dimension of a parameter.
fn sizes(func: &Func, inputs: &Inputs) -> Result<Vec<i64>, ErrorKind> {
    let (given, wanted) = (inputs.params.len(), func.params.len());
    if given != wanted {
        return Err(ErrorKind::Input(format!("`{}` takes {wanted} parameters, but {given} are given", func.name)));
    }
    for (p, v) in func.params.iter().zip(&inputs.params) {
        let (t, name) = (&p.tensor, p.tensor.symbol.name());
        if t.dtype != v.dtype() {
            return Err(ErrorKind::Input(format!("`{name}` has elements of type {}, not {}", t.dtype, v.dtype())));
        }
        if t.ndim() != v.shape().len() {
            let found = v.shape().len();
            return Err(ErrorKind::Input(format!("`{name}` has {} dimensions, not {found}", t.ndim())));
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
    /// Whether a parameter has the shape that is declared.
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
