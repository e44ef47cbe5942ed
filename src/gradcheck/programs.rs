//! The compared programs: an entry, its tangents and its gradient, called by position, since names of derivatives are
//! numbered where the entry has such names itself.

use crate::error::Error;
use crate::function::{Function, Ran};
use crate::inputs::Inputs;
use itertools::Itertools as _;
use taffeta_ast::Value;
use taffeta_codegen::signature::{Passing, TensorSig};

/// The three programs, and the point at which they are compared.
///
/// All take the parameters of the entry first, and yield its outputs ([`Programs::outputs`]) or their derivatives.
pub(super) struct Programs<'a> {
    pub value: Function,
    pub forward: Function,
    pub reverse: Function,
    /// Positions of the parameters to differentiate by.
    pub wrt: Vec<usize>,
    pub inputs: &'a Inputs,
    pub threads: u32,
}

impl Programs<'_> {
    fn changed(&self) -> impl Iterator<Item = (usize, &TensorSig)> {
        let params = self.value.signature().params().enumerate();
        params.filter(|(_, p)| p.passing == Passing::InOut && p.dtype.is_float())
    }

    /// Iterates over the floating-point outputs: results, then `inout` parameters. Seeds have the same order.
    pub fn outputs(&self) -> impl Iterator<Item = &TensorSig> {
        let results = self.value.signature().results().filter(|t| t.dtype.is_float());
        results.chain(self.changed().map(|(_, p)| p))
    }

    /// Returns the `k`th input to differentiate by.
    pub fn input(&self, k: usize) -> &Value {
        &self.inputs.values[self.wrt[k]]
    }

    /// Returns the outputs, optionally with other elements for the `k`th input.
    pub fn value(&self, moved: Option<(usize, Value)>) -> Result<Vec<Value>, Error> {
        let mut params = self.inputs.values.clone();
        if let Some((k, value)) = moved {
            params[self.wrt[k]] = value;
        }
        let Ran { params, results, .. } = self.call(&self.value, params)?;
        let changed = self.changed().map(|(k, _)| params[k].clone());
        Ok(floats(results).chain(changed).collect())
    }

    /// Returns the tangents of the outputs when the `k`th input moves in a direction.
    pub fn tangents(&self, k: usize, direction: &Value) -> Result<Vec<Value>, Error> {
        // Tangents of the requested inputs come first, then those of the other `inout` parameters.
        let others = self.changed().map(|(p, _)| p).filter(|p| !self.wrt.contains(p));
        let moving: Vec<usize> = self.wrt.iter().copied().chain(others).collect();
        let tangent = |p: &usize| match &self.inputs.values[*p] {
            _ if *p == self.wrt[k] => direction.clone(),
            still => still.with_numbers(vec![0.0; still.data().len()]).expect("the value has as many floats"),
        };
        let params = self.inputs.values.iter().cloned().chain(moving.iter().map(tangent)).collect();
        let Ran { params, results, .. } = self.call(&self.forward, params)?;
        let first = self.inputs.values.len();
        let at = |p| moving.iter().position(|m| *m == p).expect("every changed parameter has a tangent");
        let changed = self.changed().map(|(p, _)| params[first + at(p)].clone());
        Ok(floats(results).chain(changed).collect())
    }

    /// Returns the gradients of the requested inputs, given a seed for each output.
    pub fn gradients(&self, seeds: &[Value]) -> Result<Vec<Value>, Error> {
        let params = self.inputs.values.iter().chain(seeds).cloned().collect();
        let Ran { params, results, .. } = self.call(&self.reverse, params)?;
        // The gradient of an `inout` parameter replaces its seed; the others are the last results.
        let changed: Vec<usize> = self.changed().map(|(p, _)| p).collect();
        let replaced = &params[params.len() - changed.len()..];
        let mut others = results.into_iter().skip(self.value.signature().results().count());
        let of = |p: &usize| match changed.iter().position(|c| c == p) {
            Some(k) => replaced[k].clone(),
            None => others.next().expect("every requested parameter has a gradient"),
        };
        Ok(self.wrt.iter().map(of).collect())
    }

    fn call(&self, function: &Function, params: Vec<Value>) -> Result<Ran, Error> {
        let names = self.value.signature().sizes.iter().map(|s| &s.name);
        let known: std::collections::BTreeMap<&String, i64> = names.zip_eq(self.inputs.sizes.iter().copied()).collect();
        let sizes: Vec<i64> = function.signature().sizes.iter().map(|s| known[&s.name]).collect();
        function.run(params, &sizes, self.threads)
    }
}

fn floats(all: Vec<Value>) -> impl Iterator<Item = Value> {
    all.into_iter().filter(|v| v.dtype().is_float())
}
