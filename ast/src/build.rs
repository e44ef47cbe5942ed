//! Tree builders for tests and for passes that construct much code: a short function for every common statement, and a
//! builder for whole programs.
//!
//! ```
//! use taffeta_ast::build::{Builder, block, looped, reduce, store};
//! use taffeta_ast::{DType, Expr, ReduceOp, Symbol, print};
//!
//! let mut b = Builder::new("row_sums");
//! let (n, m) = (b.size("n"), b.size("m"));
//! let x = b.input("x", DType::F32, [&n, &m]);
//! let y = b.result("y", DType::F32, [&n]);
//! let (i, j) = (Symbol::new("i"), Symbol::new("j"));
//! let (vi, vj) = (Expr::var(&i), Expr::var(&j));
//! let f = b.finish(looped(&i, &n, block([
//!     store(&y, [&vi], &Expr::float(0.0, DType::F32)),
//!     looped(&j, &m, reduce(&y, [&vi], ReduceOp::Add, &x.load([vi.clone(), vj.clone()]))),
//! ])));
//! assert_eq!(print::func(&f), "\
//! def row_sums(x: f32[n, m]) -> f32[n]:
//!     y = empty((n,), f32)
//!     for i in range(n):
//!         y[i] = 0.0
//!         for j in range(m):
//!             y[i] += x[i, j]
//!     return y
//! ");
//! ```

use crate::dtype::DType;
use crate::expr::{Access, Expr};
use crate::format::Format;
use crate::func::{Func, Param, ParamMode};
use crate::op::ReduceOp;
use crate::stmt::{AssertKind, Extent, LoopProps, Message, Origin, PrintPart, Role, Stmt, StmtKind, Tensor};
use crate::symbol::Symbol;
use std::sync::Arc;

fn synthetic(kind: StmtKind) -> Stmt {
    Stmt::new(kind, Origin::none())
}

fn accesses<'a>(indices: impl IntoIterator<Item = &'a Expr>) -> Vec<Access> {
    indices.into_iter().cloned().map(Access::from).collect()
}

/// Sequences statements.
pub fn block(stmts: impl IntoIterator<Item = Stmt>) -> Stmt {
    Stmt::seq(stmts, Origin::none())
}

/// Builds `t[i, j] = value`.
pub fn store<'a>(t: &Tensor, indices: impl IntoIterator<Item = &'a Expr>, value: &Expr) -> Stmt {
    synthetic(StmtKind::Store { tensor: t.symbol.clone(), indices: accesses(indices), value: value.clone() })
}

/// Builds `t[i, j] op= value`.
pub fn reduce<'a>(t: &Tensor, indices: impl IntoIterator<Item = &'a Expr>, op: ReduceOp, value: &Expr) -> Stmt {
    synthetic(StmtKind::ReduceTo { tensor: t.symbol.clone(), indices: accesses(indices), op, value: value.clone() })
}

/// Builds `for i in range(begin, end, step)`.
pub fn range(i: &Symbol, [begin, end, step]: [&Expr; 3], body: Stmt) -> Stmt {
    let extent = Extent::Range { begin: begin.clone(), end: end.clone(), step: step.clone() };
    synthetic(StmtKind::For { iter: i.clone(), extent, props: LoopProps::default(), body })
}

/// Builds `for i in range(end)`.
pub fn looped(i: &Symbol, end: &Expr, body: Stmt) -> Stmt {
    range(i, [&Expr::int(0), end, &Expr::int(1)], body)
}

/// Builds `if cond: then else: otherwise`.
pub fn branch(cond: &Expr, then: Stmt, otherwise: Option<Stmt>) -> Stmt {
    synthetic(StmtKind::If { cond: cond.clone(), then, otherwise })
}

/// Declares a dense local tensor.
pub fn local<'a>(name: &str, dtype: DType, shape: impl IntoIterator<Item = &'a Expr>) -> Arc<Tensor> {
    tensor(name, dtype, shape, Role::Local)
}

/// Scopes the declaration of `t` to `body`.
pub fn var_def(t: &Arc<Tensor>, body: Stmt) -> Stmt {
    synthetic(StmtKind::VarDef { tensor: t.clone(), body })
}

/// Builds `assert cond, message`.
pub fn assert(cond: &Expr, message: Message) -> Stmt {
    synthetic(StmtKind::Assert { cond: cond.clone(), message, kind: AssertKind::Program })
}

/// Builds `print(…)`.
pub fn print(parts: Vec<PrintPart>) -> Stmt {
    synthetic(StmtKind::Print { parts })
}

fn tensor<'a>(name: &str, dtype: DType, shape: impl IntoIterator<Item = &'a Expr>, role: Role) -> Arc<Tensor> {
    Arc::new(Tensor::dense(Symbol::new(name), dtype, shape.into_iter().cloned().collect(), role))
}

/// Program under construction, whose interface is declared step by step.
#[derive(Debug)]
pub struct Builder {
    func: Func,
}

impl Builder {
    /// Starts a program of that name.
    pub fn new(name: &str) -> Builder {
        let (name, body) = (name.to_string(), Stmt::nop());
        let (sizes, params, results, custom_vjps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let made = Vec::new();
        Builder { func: Func { name, doc: None, sizes, params, results, made, body, custom_vjps, keeps_order: false } }
    }

    /// Adds a size parameter.
    pub fn size(&mut self, name: &str) -> Expr {
        let symbol = Symbol::new(name);
        self.func.sizes.push(symbol.clone());
        Expr::var(&symbol)
    }

    /// Adds a read-only parameter.
    pub fn input<'a>(&mut self, name: &str, dtype: DType, shape: impl IntoIterator<Item = &'a Expr>) -> Arc<Tensor> {
        self.param(tensor(name, dtype, shape, Role::Input), ParamMode::In)
    }

    /// Adds a read-only parameter stored in that format.
    pub fn stored<'a>(
        &mut self,
        name: &str,
        dtype: DType,
        shape: impl IntoIterator<Item = &'a Expr>,
        format: Format,
    ) -> Arc<Tensor> {
        let dense = tensor(name, dtype, shape, Role::Input);
        self.param(Arc::new(Tensor { format, ..(*dense).clone() }), ParamMode::In)
    }

    /// Adds an `inout` parameter.
    pub fn inout<'a>(&mut self, name: &str, dtype: DType, shape: impl IntoIterator<Item = &'a Expr>) -> Arc<Tensor> {
        self.param(tensor(name, dtype, shape, Role::InOut), ParamMode::InOut)
    }

    fn param(&mut self, tensor: Arc<Tensor>, mode: ParamMode) -> Arc<Tensor> {
        self.func.params.push(Param { tensor: tensor.clone(), mode });
        tensor
    }

    /// Adds a result.
    pub fn result<'a>(&mut self, name: &str, dtype: DType, shape: impl IntoIterator<Item = &'a Expr>) -> Arc<Tensor> {
        let t = tensor(name, dtype, shape, Role::Result);
        self.func.results.push(t.clone());
        t
    }

    /// Completes the program with its body.
    pub fn finish(self, body: Stmt) -> Func {
        self.func.with_body(body)
    }
}
