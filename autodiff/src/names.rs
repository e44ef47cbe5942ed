//! Names in the interface of a derivative.
//!
//! The adjoint of `x` is `x.grad` and its tangent `x.tangent`. A program that is a derivative itself may have that name already: its
//! gradient `x.grad`, where results stay, or its seed `y.grad`, where `y` is `inout`. What comes later is `x.grad2` then. What is given
//! and what comes out are named apart from each other: where a parameter and a result are called `x`, there is a seed `x.grad` and an
//! answer `x.grad`.

use rustc_hash::FxHashSet;
use std::sync::Arc;
use weft_ast::stmt::Role;
use weft_ast::{Func, ParamMode, Symbol, Tensor};

/// The names that are taken.
pub(crate) struct Names {
    given: FxHashSet<String>,
    left: FxHashSet<String>,
}

impl Names {
    /// Those of the parameters, and of these results.
    pub fn new<'t>(func: &'t Func, results: impl IntoIterator<Item = &'t Arc<Tensor>>) -> Names {
        let name = |t: &Arc<Tensor>| t.symbol.name().to_string();
        let changed = func.params.iter().filter(|p| p.mode == ParamMode::InOut).map(|p| &p.tensor);
        Names {
            given: func.params.iter().map(|p| name(&p.tensor)).collect(),
            left: changed.chain(results).map(name).collect(),
        }
    }

    /// A tensor for derivatives of another one, called `x.grad` for the suffix `grad`.
    pub fn derived(&mut self, of: &Tensor, suffix: &str, role: Role) -> Arc<Tensor> {
        let (given, left) = (role != Role::Result, role != Role::Input);
        let plain = format!("{}.{suffix}", of.symbol);
        let numbered = (2..).map(|k| format!("{plain}{k}"));
        let taken = |n: &String| (given && self.given.contains(n)) || (left && self.left.contains(n));
        let name = std::iter::once(plain.clone()).chain(numbered).find(|n| !taken(n));
        let name = name.expect("there are more numbers than names");
        if given {
            self.given.insert(name.clone());
        }
        if left {
            self.left.insert(name.clone());
        }
        Arc::new(Tensor::dense(Symbol::new(name), of.dtype, of.shape.clone(), role))
    }
}
