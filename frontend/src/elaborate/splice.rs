//! Inlining of an elaborated program, such as the gradient that the hooks return.
//!
//! Parameters become views of the arguments, sizes the arguments' sizes, results local tensors. All symbols bound in
//! the program are replaced by fresh ones, so that it can be inlined twice.

use super::annotation::TensorType;
use super::axis;
use super::call::Arg;
use super::conversion::alike;
use super::value::{Lazy, Value, View};
use super::{Elab, R};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::format::{Format, Pattern};
use taffeta_ast::stmt::{CallSite, Extent, LoopProps, PrintPart, Role};
use taffeta_ast::{
    Access, Expr, ExprKind, Func, Origin, Param, ParamMode, Span, Stmt, StmtId, StmtKind, Symbol, Tensor,
};

/// Substitution of the symbols of a spliced program.
pub(crate) struct Meaning {
    /// Sizes, and iterators with their fresh symbols.
    scalars: FxHashMap<Symbol, Expr>,
    pub(crate) tensors: FxHashMap<Symbol, View>,
    /// Ids of the copies, by those of the copied statements.
    pub(crate) ids: FxHashMap<StmtId, StmtId>,
    /// Patterns of the arguments, by those of the parameters.
    patterns: FxHashMap<Pattern, Pattern>,
    /// Calls that lead to the splice.
    chain: Vec<CallSite>,
}

impl Elab<'_> {
    /// Inlines a call of `func`.
    pub(crate) fn splice(&mut self, func: &Func, args: Vec<Arg>, span: Span) -> R<Value> {
        let args = self.spliced_arguments(func, args, span)?;
        let mut chain = self.chain.clone();
        chain.push(CallSite { function: func.name.clone(), span });
        let mut meaning = Meaning::new(chain);
        self.unify(func, &args, &mut meaning)?;
        for (p, (v, at)) in func.params.iter().zip(&args) {
            let first = |q: &&Param| q.tensor.format.pattern.is_some_and(|of| Some(of) == p.tensor.format.pattern);
            let of = func.params.iter().find(first).filter(|q| q.tensor.symbol != p.tensor.symbol);
            if let Some(of) = of {
                let wanted = meaning.format(&p.tensor.format);
                let [name, of] = [p, of].map(|p| p.tensor.symbol.name().to_string());
                self.shares_pattern((v, &wanted), &of, &name, *at)?;
            }
            let view = self.spliced_parameter(p, v, *at)?;
            if let (Some(of), Some(here)) = (p.tensor.format.pattern, view.tensor.format.pattern) {
                meaning.patterns.insert(of, here);
            }
            meaning.tensors.insert(p.tensor.symbol.clone(), view);
        }
        let mut results = Vec::new();
        for t in &func.results {
            let shape = t.shape.iter().map(|n| meaning.expr(n)).collect();
            let format = meaning.format(&t.format);
            let local = self.stored_local(t.symbol.name(), TensorType { dtype: t.dtype, shape, format });
            let view = View::whole(&local, true);
            meaning.tensors.insert(t.symbol.clone(), view.clone());
            results.push(Value::Tensor(View { owned: true, ..view }));
        }
        let body = meaning.stmt(&func.body);
        self.emit_all(&body);
        self.note_calls(func, &meaning);
        Ok(match results.len() {
            0 => Value::None,
            1 => results.swap_remove(0),
            _ => Value::Tuple(results.into()),
        })
    }

    /// Emits existing statements into the current block.
    pub(crate) fn emit_all(&mut self, body: &Stmt) {
        let statements = match body.kind() {
            StmtKind::Seq(all) => all.clone(),
            _ => vec![body.clone()],
        };
        self.emitted += statements.len();
        self.block_mut().items.extend(statements.into_iter().map(super::block::Item::Stmt));
    }

    /// Returns the arguments in the order of the parameters.
    pub(crate) fn spliced_arguments(&mut self, func: &Func, args: Vec<Arg>, span: Span) -> R<Vec<(Value, Span)>> {
        let names: Vec<&str> = func.params.iter().map(|p| p.tensor.symbol.name()).collect();
        let mut slots: Vec<Option<(Value, Span)>> = vec![None; names.len()];
        for (k, (key, v, at)) in args.into_iter().enumerate() {
            let slot = match &key {
                None => Some(k).filter(|k| *k < slots.len()),
                Some(key) => {
                    names.iter().position(|n| n == key).or_else(|| names.iter().position(|n| in_text(n) == *key))
                }
            };
            match slot {
                Some(slot) if slots[slot].is_none() => slots[slot] = Some((v, at)),
                _ => {
                    let names: Vec<String> = names.iter().map(|n| in_text(n)).collect();
                    let all = names.join(", ");
                    let near = key.as_ref().and_then(|key| super::nearest(key, names.iter().map(String::as_str)));
                    let help = match near.filter(|near| Some(*near) != key.as_deref()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("its parameters are {all}"),
                    };
                    let message = match &key {
                        Some(key) if slot.is_none() => format!("`{}` has no parameter `{key}`", func.name),
                        _ => format!("unexpected argument of `{}`", func.name),
                    };
                    return self.error_help("call::arguments", at, message, help);
                }
            }
        }
        let mut out = Vec::with_capacity(slots.len());
        for (slot, name) in slots.into_iter().zip(&names) {
            match slot {
                Some(given) => out.push(given),
                None => {
                    return self.error(
                        "call::arguments",
                        span,
                        format!("`{}` needs an argument for `{}`", func.name, in_text(name)),
                    );
                }
            }
        }
        Ok(out)
    }

    /// Binds the program's sizes by the arguments' shapes, which must agree.
    pub(crate) fn unify(&mut self, func: &Func, args: &[(Value, Span)], meaning: &mut Meaning) -> R<()> {
        let mut later: Vec<(&Expr, Expr, Span, String)> = Vec::new();
        for (p, (v, at)) in func.params.iter().zip(args) {
            let name = p.tensor.symbol.name();
            let shape = v.shape().filter(|s| s.len() == p.tensor.ndim());
            let Some(shape) = shape else {
                let found = v.describe();
                let rank = taffeta_ast::spelling::counted(p.tensor.ndim(), "dimension");
                return self.error(
                    "call::argument",
                    *at,
                    format!("`{name}` of `{}` has {rank}, but the argument is {found}", func.name),
                );
            };
            for (d, (expected, found)) in p.tensor.shape.iter().zip(shape).enumerate() {
                match expected.kind() {
                    ExprKind::Var(s) if !meaning.scalars.contains_key(s) => {
                        meaning.scalars.insert(s.clone(), found);
                    }
                    _ => {
                        let what = format!("dimension {d} of {}", self.quote_argument(*at, name, &func.name));
                        later.push((expected, found, *at, what));
                    }
                }
            }
        }
        for (expected, found, at, what) in later {
            let expected = meaning.expr(expected);
            self.same_size(&expected, &found, &what, at)?;
        }
        if let Some(unbound) = func.sizes.iter().find(|s| !meaning.scalars.contains_key(s)) {
            let message = format!("cannot infer the size `{unbound}` from the arguments of `{}`", func.name);
            let at = args.first().map_or(self.span, |a| a.1);
            return self.error("call::argument", at, message);
        }
        Ok(())
    }

    /// Returns the view that a parameter stands for: that of the argument, or of a converted copy.
    fn spliced_parameter(&mut self, p: &Param, v: &Value, at: Span) -> R<View> {
        let name = p.tensor.symbol.name();
        let (wanted, found) = (&p.tensor.format, v.format());
        if !alike(wanted, &found) && p.mode == ParamMode::In {
            let format = Format { pattern: (!wanted.is_dense()).then(Pattern::fresh), ..wanted.clone() };
            let ty = TensorType { dtype: p.tensor.dtype, shape: v.shape().unwrap_or_default(), format };
            let v = self.converted(v, ty, (name, &format!("the argument for `{name}`")), at)?;
            let Value::Tensor(view) = v else { unreachable!("a converted argument is a tensor") };
            return Ok(view);
        }
        if !alike(wanted, &found) {
            let text = format!("expected a tensor in `{wanted}` for the written parameter `{name}`, found `{found}`");
            return self.error("call::argument", at, text);
        }
        if let (Value::Tensor(view), ParamMode::InOut) = (v, p.mode) {
            self.note_stored(&view.tensor.symbol, p.tensor.dtype);
        }
        if let Value::Tensor(view) = v
            && view.tensor.dtype == p.tensor.dtype
        {
            if p.mode == ParamMode::InOut {
                self.check_writable(view, at)?;
            }
            return Ok(view.clone());
        }
        let Some(l) = v.lazy().filter(|_| p.mode == ParamMode::In) else {
            let found = v.describe();
            return self.error(
                "call::argument",
                at,
                format!("expected a tensor of `{}` for the written parameter `{name}`, found {found}", p.tensor.dtype),
            );
        };
        let expr = self.stored(&l, p.tensor.dtype, at)?;
        Ok(self.materialise(&Lazy { expr, weak: false, ..l }, p.tensor.dtype, name))
    }
}

impl Meaning {
    pub(crate) fn new(chain: Vec<CallSite>) -> Meaning {
        let (scalars, tensors, ids) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        Meaning { scalars, tensors, ids, patterns: FxHashMap::default(), chain }
    }

    /// Returns a format with the patterns of arguments.
    fn format(&self, format: &Format) -> Format {
        let pattern = format.pattern.map(|p| self.patterns.get(&p).copied().unwrap_or(p));
        Format { pattern, ..format.clone() }
    }

    pub(crate) fn expr(&self, e: &Expr) -> Expr {
        e.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(s) => self.scalars.get(s).cloned().unwrap_or(e),
            ExprKind::Load(t, at) => match self.tensors.get(t) {
                Some(view) => Expr::load(&view.tensor.symbol, place(view, at), e.dtype()),
                None => e,
            },
            _ => e,
        })
    }

    pub(crate) fn stmt(&mut self, s: &Stmt) -> Stmt {
        let accesses = |m: &Meaning, at: &[Access]| -> Vec<Access> {
            at.iter().map(|a| a.map(&mut |e: &Expr| m.expr(e))).collect()
        };
        let kind = match s.kind() {
            StmtKind::VarDef { tensor, body } => {
                let shape = tensor.shape.iter().map(|n| self.expr(n)).collect();
                let (symbol, format) = (tensor.symbol.fresh(), self.format(&tensor.format));
                let fresh = Tensor { symbol, shape, format, role: Role::Local, ..(**tensor).clone() };
                let tensor_here = Arc::new(fresh);
                self.tensors.insert(tensor.symbol.clone(), View::whole(&tensor_here, true));
                StmtKind::VarDef { tensor: tensor_here, body: self.stmt(body) }
            }
            StmtKind::For { iter, extent, props, body } => {
                let extent = match extent {
                    taffeta_ast::Extent::Range { begin, end, step } => taffeta_ast::Extent::Range {
                        begin: self.expr(begin),
                        end: self.expr(end),
                        step: self.expr(step),
                    },
                    taffeta_ast::Extent::Reals => taffeta_ast::Extent::Reals,
                };
                let fresh = iter.fresh();
                self.scalars.insert(iter.clone(), Expr::var(&fresh));
                StmtKind::For { iter: fresh, extent, props: props.clone(), body: self.stmt(body) }
            }
            StmtKind::Store { tensor, indices, value } => {
                let (tensor, indices) = self.target(tensor, accesses(self, indices));
                StmtKind::Store { tensor, indices, value: self.expr(value) }
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let (tensor, indices) = self.target(tensor, accesses(self, indices));
                StmtKind::ReduceTo { tensor, indices, op: *op, value: self.expr(value) }
            }
            StmtKind::Seq(all) => StmtKind::Seq(all.iter().map(|s| self.stmt(s)).collect()),
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.expr(cond);
                let then = self.stmt(then);
                StmtKind::If { cond, then, otherwise: otherwise.as_ref().map(|o| self.stmt(o)) }
            }
            StmtKind::Print { parts } => return self.printed(s, parts),
            _ => {
                let copy = s.map(&mut Stmt::clone, &mut |e| self.expr(e));
                copy.kind().clone()
            }
        };
        let new = Stmt::new(kind, self.origin(s.origin()));
        self.ids.insert(s.id(), new.id());
        new
    }

    /// Copies a print. A part that would not print a whole tensor here is copied into a temporary first.
    fn printed(&mut self, s: &Stmt, parts: &[PrintPart]) -> Stmt {
        let origin = self.origin(s.origin());
        let mut temporaries = Vec::new();
        let mut part = |p: &PrintPart| match p {
            PrintPart::Tensor { tensor, at, shape } if self.tensors.contains_key(tensor) => {
                let view = &self.tensors[tensor];
                let at = at.iter().map(|e| self.expr(e));
                let place: Vec<Expr> = at.chain((0..shape.len()).map(|d| axis::var(shape.len(), d))).collect();
                let indices = substituted(view, &place);
                let shape: Vec<Expr> = shape.iter().map(|n| self.expr(n)).collect();
                let view = View { shape, indices, ..view.clone() };
                super::print::shown(&view).unwrap_or_else(|| {
                    let symbol = Symbol::new("shown");
                    let (shape, dtype) = (view.shape.clone(), view.tensor.dtype);
                    let temporary = Arc::new(Tensor::dense(symbol.clone(), dtype, shape.clone(), Role::Local));
                    temporaries.push((temporary, view));
                    PrintPart::Tensor { tensor: symbol, at: Vec::new(), shape }
                })
            }
            p => p.map(&mut Symbol::clone, &mut |e| self.expr(e)),
        };
        let parts = parts.iter().map(&mut part).collect();
        let print = Stmt::new(StmtKind::Print { parts }, origin.clone());
        self.ids.insert(s.id(), print.id());
        temporaries.into_iter().rev().fold(print, |inner, (tensor, view)| {
            let body = Stmt::seq([copied(&tensor, &view, &origin), inner], origin.clone());
            Stmt::new(StmtKind::VarDef { tensor, body }, origin.clone())
        })
    }

    fn target(&self, tensor: &Symbol, indices: Vec<Access>) -> (Symbol, Vec<Access>) {
        match self.tensors.get(tensor) {
            Some(view) => (view.tensor.symbol.clone(), place(view, &indices)),
            None => (tensor.clone(), indices),
        }
    }

    /// Returns the origin, with the calls that lead to the splice before its own.
    fn origin(&self, o: &Origin) -> Origin {
        match o {
            Origin::Source { span, labels, chain } => Origin::Source {
                span: *span,
                labels: labels.clone(),
                chain: self.chain.iter().chain(chain.iter()).cloned().collect(),
            },
            Origin::Derived { step, role, from } => Origin::Derived { step, role, from: Arc::new(self.origin(from)) },
        }
    }
}

/// Returns a parameter's name in a spelling that a program can use: `y_grad` for `y.grad`.
fn in_text(name: &str) -> String {
    name.replace('.', "_")
}

/// Copies the elements of a view into a tensor of its shape.
fn copied(to: &Tensor, view: &View, origin: &Origin) -> Stmt {
    let iters: Vec<Symbol> = (0..to.ndim()).map(|d| Symbol::new(format!("{}.d{d}", to.symbol))).collect();
    let at: Vec<Expr> = iters.iter().map(Expr::var).collect();
    let from = substituted(view, &at);
    let kind = StmtKind::Store {
        tensor: to.symbol.clone(),
        indices: at.iter().cloned().map(Access::from).collect(),
        value: Expr::load(&view.tensor.symbol, from, view.tensor.dtype),
    };
    let copy = Stmt::new(kind, origin.clone());
    iters.into_iter().zip(&to.shape).rev().fold(copy, |body, (iter, end)| {
        let extent = Extent::Range { begin: Expr::int(0), end: end.clone(), step: Expr::int(1) };
        Stmt::new(StmtKind::For { iter, extent, props: LoopProps::default(), body }, origin.clone())
    })
}

/// Substitutes `at` for the axes in a view's indices.
fn substituted(view: &View, at: &[Expr]) -> Vec<Access> {
    view.indices.iter().map(|a| a.map(&mut |e| axis::substitute(e, at))).collect()
}

/// Returns the indices into a view's tensor for an element of the view.
fn place(view: &View, at: &[Access]) -> Vec<Access> {
    view.indices.iter().map(|a| axis::subscripted(a, at)).collect()
}
