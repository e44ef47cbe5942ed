//! Names in the interface of a derivative.
//!
//! The adjoint of `x` is `x.grad` and its tangent `x.tangent`. A program that is a derivative itself may have that name already: its
//! gradient `x.grad`, where results stay, or its seed `y.grad`, where `y` is `inout`. What comes later is `x.grad2` then.

use rustc_hash::FxHashSet;
use weft_ast::{Func, Symbol, Tensor};

/// The names that are taken.
pub(crate) struct Names(FxHashSet<String>);

impl Names {
    /// Those of the parameters, and of these results.
    pub fn new<'t>(func: &'t Func, results: impl IntoIterator<Item = &'t std::sync::Arc<Tensor>>) -> Names {
        let taken = func.params.iter().map(|p| &p.tensor).chain(results);
        Names(taken.map(|t| t.symbol.name().to_string()).collect())
    }

    /// A new symbol, called `x.grad` for the suffix `grad`.
    pub fn derived(&mut self, of: &Tensor, suffix: &str) -> Symbol {
        let plain = format!("{}.{suffix}", of.symbol);
        let numbered = (2..).map(|k| format!("{plain}{k}"));
        let free = std::iter::once(plain.clone()).chain(numbered).find(|n| !self.0.contains(n));
        let name = free.expect("there are more numbers than names");
        self.0.insert(name.clone());
        Symbol::new(name)
    }
}
