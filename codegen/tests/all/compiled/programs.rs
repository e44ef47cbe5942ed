//! Small loop programs, as the front end would make them.

use std::sync::Arc;
use taffeta_ast::expr::Access;
use taffeta_ast::stmt::{LoopProps, Role};
use taffeta_ast::{
    DType, Expr, Extent, FileId, Func, Op, Origin, Param, ParamMode, ReduceOp, SourceMap, Span, Stmt, StmtKind, Symbol,
    Tensor,
};

/// Program under construction; each statement has its own line in a synthetic source.
#[derive(Default)]
pub struct Builder {
    pub sizes: Vec<Symbol>,
    pub params: Vec<Param>,
    pub results: Vec<Arc<Tensor>>,
}

pub fn size(name: &str) -> (Symbol, Expr) {
    let s = Symbol::new(name);
    let e = Expr::var(&s);
    (s, e)
}

pub fn local(name: &str, dtype: DType, shape: Vec<Expr>) -> Arc<Tensor> {
    Arc::new(Tensor::dense(Symbol::new(name), dtype, shape, Role::Local))
}

/// Creates a statement on the given line.
pub fn stmt(line: usize, kind: StmtKind) -> Stmt {
    Stmt::new(kind, Origin::source(Span::new(FileId(0), 2 * line - 2, 2 * line - 1)))
}

/// Creates a file of 99 lines of one letter each.
pub fn sources() -> SourceMap {
    let mut sources = SourceMap::default();
    sources.add("test.ft", None, "x\n".repeat(99));
    sources
}

pub fn range(line: usize, name: &str, end: &Expr, body: impl FnOnce(&Expr) -> Vec<Stmt>) -> Stmt {
    range_step(line, name, &Expr::int(0), end, &Expr::int(1), body)
}

pub fn range_step(
    line: usize,
    name: &str,
    begin: &Expr,
    end: &Expr,
    step: &Expr,
    body: impl FnOnce(&Expr) -> Vec<Stmt>,
) -> Stmt {
    let iter = Symbol::new(name);
    let inner = body(&Expr::var(&iter));
    let extent = Extent::Range { begin: begin.clone(), end: end.clone(), step: step.clone() };
    let body = Stmt::seq(inner, Origin::none());
    stmt(line, StmtKind::For { iter, extent, props: LoopProps::default(), body })
}

pub fn var_def(line: usize, tensor: &Arc<Tensor>, body: Vec<Stmt>) -> Stmt {
    stmt(line, StmtKind::VarDef { tensor: tensor.clone(), body: Stmt::seq(body, Origin::none()) })
}

pub fn at(indices: &[&Expr]) -> Vec<Access> {
    indices.iter().map(|e| Access::from((*e).clone())).collect()
}

pub fn load(t: &Tensor, indices: &[&Expr]) -> Expr {
    t.load(indices.iter().map(|e| (*e).clone()))
}

pub fn store(line: usize, t: &Tensor, indices: &[&Expr], value: Expr) -> Stmt {
    stmt(line, StmtKind::Store { tensor: t.symbol.clone(), indices: at(indices), value })
}

pub fn reduce(line: usize, t: &Tensor, indices: &[&Expr], op: ReduceOp, value: Expr) -> Stmt {
    stmt(line, StmtKind::ReduceTo { tensor: t.symbol.clone(), indices: at(indices), op, value })
}

pub fn apply(op: Op, args: &[&Expr]) -> Expr {
    Expr::apply(op, args.iter().map(|e| (*e).clone()).collect())
}

impl Builder {
    pub fn size(&mut self, name: &str) -> Expr {
        let (s, e) = size(name);
        self.sizes.push(s);
        e
    }

    pub fn input(&mut self, name: &str, dtype: DType, shape: &[&Expr]) -> Arc<Tensor> {
        self.param(name, dtype, shape, ParamMode::In)
    }

    pub fn inout(&mut self, name: &str, dtype: DType, shape: &[&Expr]) -> Arc<Tensor> {
        self.param(name, dtype, shape, ParamMode::InOut)
    }

    fn param(&mut self, name: &str, dtype: DType, shape: &[&Expr], mode: ParamMode) -> Arc<Tensor> {
        let role = if mode == ParamMode::In { Role::Input } else { Role::InOut };
        let shape = shape.iter().map(|e| (*e).clone()).collect();
        let tensor = Arc::new(Tensor::dense(Symbol::new(name), dtype, shape, role));
        self.params.push(Param { tensor: tensor.clone(), mode });
        tensor
    }

    pub fn result(&mut self, name: &str, dtype: DType, shape: &[&Expr]) -> Arc<Tensor> {
        let shape = shape.iter().map(|e| (*e).clone()).collect();
        let tensor = Arc::new(Tensor::dense(Symbol::new(name), dtype, shape, Role::Result));
        self.results.push(tensor.clone());
        tensor
    }

    pub fn func(self, name: &str, body: Vec<Stmt>) -> Func {
        let func = Func {
            name: name.to_string(),
            doc: None,
            sizes: self.sizes,
            params: self.params,
            results: self.results,
            made: Vec::new(),
            body: Stmt::seq(body, Origin::none()),
            custom_vjps: Vec::new(),
            keeps_order: false,
        };
        taffeta_ast::validate::logical(&func).expect("the program keeps to the rules of the tree");
        func
    }
}

/// Builds `y[i, j] = 0; y[i, j] += a[i, k] * b[k, j]`.
pub fn matmul(dtype: DType) -> Func {
    let mut b = Builder::default();
    let (n, p, m) = (b.size("n"), b.size("p"), b.size("m"));
    let a = b.input("a", dtype, &[&n, &p]);
    let c = b.input("b", dtype, &[&p, &m]);
    let y = b.result("y", dtype, &[&n, &m]);
    let zero = Expr::literal(taffeta_ast::Literal::Int(0), dtype);
    let body = range(1, "i", &n, |i| {
        vec![range(2, "j", &m, |j| {
            vec![
                store(3, &y, &[i, j], zero.clone()),
                range(4, "k", &p, |k| {
                    let product = load(&a, &[i, k]).times(&load(&c, &[k, j]));
                    vec![reduce(5, &y, &[i, j], ReduceOp::Add, product)]
                }),
            ]
        })]
    });
    b.func("matmul", vec![body])
}

/// Builds the circular difference of SubdivNet, with the feature loop of `y[i] += abs(…)`.
pub fn circular_diff() -> Func {
    let mut b = Builder::default();
    let (n_faces, feats) = (b.size("n_faces"), b.size("feats"));
    let e = b.input("e", DType::F32, &[&n_faces, &feats]);
    let adj = b.input("adj", DType::I32, &[&n_faces, &Expr::int(3)]);
    let y = b.result("y", DType::F32, &[&n_faces, &feats]);
    let zero = Expr::float(0.0, DType::F32);
    let clear =
        range(1, "y.d0", &n_faces, |i| vec![range(1, "y.d1", &feats, |k| vec![store(1, &y, &[i, k], zero.clone())])]);
    let body = range(2, "i", &n_faces, |i| {
        vec![range(3, "j", &Expr::int(3), |j| {
            vec![range(4, "y.d0", &feats, |k| {
                let next = j.plus(&Expr::int(1)).modulo(&Expr::int(3));
                let at = |j: &Expr| load(&adj, &[i, j]).cast(DType::I64);
                let difference = load(&e, &[&at(j), k]).minus(&load(&e, &[&at(&next), k]));
                vec![reduce(4, &y, &[i, k], ReduceOp::Add, apply(Op::Abs, &[&difference]))]
            })]
        })]
    });
    b.func("circular_diff", vec![clear, body])
}

/// Builds one sweep of the 5-point stencil.
pub fn jacobi() -> Func {
    let mut b = Builder::default();
    let (n, m) = (b.size("n"), b.size("m"));
    let x = b.input("x", DType::F32, &[&n, &m]);
    let y = b.result("y", DType::F32, &[&n, &m]);
    let one = Expr::int(1);
    let body = range_step(1, "i", &one, &n.minus(&one), &one, |i| {
        vec![range_step(2, "j", &one, &m.minus(&one), &one, |j| {
            let near = load(&x, &[&i.minus(&one), j])
                .plus(&load(&x, &[&i.plus(&one), j]))
                .plus(&load(&x, &[i, &j.minus(&one)]))
                .plus(&load(&x, &[i, &j.plus(&one)]));
            vec![store(3, &y, &[i, j], near.times(&Expr::float(0.25, DType::F32)))]
        })]
    });
    b.func("jacobi", vec![body])
}

/// Builds a softmax along the rows that subtracts the maximum first.
pub fn softmax() -> Func {
    let mut b = Builder::default();
    let (n, m) = (b.size("n"), b.size("m"));
    let x = b.input("x", DType::F32, &[&n, &m]);
    let y = b.result("y", DType::F32, &[&n, &m]);
    let most = local("most", DType::F32, vec![]);
    let sum = local("sum", DType::F32, vec![]);
    let body = range(1, "i", &n, |i| {
        let exponentials = |j: &Expr| apply(Op::Exp, &[&load(&x, &[i, j]).minus(&load(&most, &[]))]);
        vec![var_def(
            2,
            &most,
            vec![
                store(3, &most, &[], Expr::float(f64::NEG_INFINITY, DType::F32)),
                range(4, "j", &m, |j| vec![reduce(5, &most, &[], ReduceOp::Max, load(&x, &[i, j]))]),
                range(6, "j", &m, |j| vec![store(7, &y, &[i, j], exponentials(j))]),
                var_def(
                    8,
                    &sum,
                    vec![
                        store(9, &sum, &[], Expr::float(0.0, DType::F32)),
                        range(10, "j", &m, |j| vec![reduce(11, &sum, &[], ReduceOp::Add, load(&y, &[i, j]))]),
                        range(12, "j", &m, |j| {
                            vec![store(13, &y, &[i, j], apply(Op::Div, &[&load(&y, &[i, j]), &load(&sum, &[])]))]
                        }),
                    ],
                ),
            ],
        )]
    });
    b.func("softmax", vec![body])
}
