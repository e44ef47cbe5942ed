//! Names in the interface of a derivative.
//!
//! The adjoint of `x` is `x.grad` and its tangent `x.tangent`. A program that is a derivative itself may have that name
//! already: its gradient `x.grad`, if the derivative returns results, or its seed `y.grad`, if `y` is `inout`. The
//! later one is then `x.grad2`. Parameters and outputs have separate namespaces: if a parameter and a result are called
//! `x`, there is a seed `x.grad` and a gradient `x.grad`.

use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Func, ParamMode, Symbol, Tensor};

/// Names in use: those of parameters, and those of outputs (results and `inout` parameters).
pub(crate) struct Names {
    given: FxHashSet<String>,
    left: FxHashSet<String>,
}

impl Names {
    /// Collects the names of the parameters, and of these results.
    pub fn new<'t>(func: &'t Func, results: impl IntoIterator<Item = &'t Arc<Tensor>>) -> Names {
        let name = |t: &Arc<Tensor>| t.symbol.name().to_string();
        let changed = func.params.iter().filter(|p| p.mode == ParamMode::InOut).map(|p| &p.tensor);
        Names {
            given: func.params.iter().map(|p| name(&p.tensor)).collect(),
            left: changed.chain(results).map(name).collect(),
        }
    }

    /// Returns a new symbol for a parameter, with a number after its name if that is taken.
    pub fn given(&mut self, name: &str) -> Symbol {
        let name = numbered(name, |n| self.given.contains(n));
        self.given.insert(name.clone());
        Symbol::new(name)
    }

    /// Returns the adjoint of a tensor, called `x.grad`.
    pub fn adjoint(&mut self, of: &Tensor, role: Role) -> Arc<Tensor> {
        let symbol = self.derived(of, "grad", role);
        Arc::new(of.adjoint(symbol, role))
    }

    /// Returns the tangent of a tensor, called `x.tangent`.
    pub fn tangent(&mut self, of: &Tensor, role: Role) -> Arc<Tensor> {
        let symbol = self.derived(of, "tangent", role);
        Arc::new(of.tangent(symbol, role))
    }

    fn derived(&mut self, of: &Tensor, suffix: &str, role: Role) -> Symbol {
        let (given, left) = (role != Role::Result, role != Role::Input);
        let taken = |n: &str| (given && self.given.contains(n)) || (left && self.left.contains(n));
        let name = numbered(&format!("{}.{suffix}", of.symbol), taken);
        if given {
            self.given.insert(name.clone());
        }
        if left {
            self.left.insert(name.clone());
        }
        Symbol::new(name)
    }
}

/// Returns the first of `x`, `x2`, `x3` … that is not taken.
fn numbered(plain: &str, taken: impl Fn(&str) -> bool) -> String {
    let all = std::iter::once(plain.to_string()).chain((2..).map(|k| format!("{plain}{k}")));
    all.into_iter().find(|n| !taken(n)).expect("there are more numbers than names")
}
