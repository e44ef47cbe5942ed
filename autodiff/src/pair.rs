//! Gradient as two programs: a forward pass that returns its tape, and a backward pass that takes it.
//!
//! **Does**: builds the gradient as one program, forward pass before backward pass, and cuts it between the two.
//! Tensors that the first writes and the second reads cross the cut: kept tensors and snapshots become results of the
//! forward pass and parameters of the backward pass; so do results and final values of `inout` parameters that the
//! backward pass reads. Other parameters that it reads stay parameters.
//!
//! **Ensures**: forward and then backward computes the same as the one program. Sizes are the same in both programs, so
//! that the caller passes on those of the forward pass.
//!
//! **Example**
//!
//! before
//! ```text
//! t.tape = empty((n,), f64)
//! for i in range(n):
//!     t.tape[i] = sin(x[i])
//!     y[i] = t.tape[i] * t.tape[i]
//! for i~b in range(n):
//!     x.grad[i~b] = 2.0 * y.grad[i~b] * t.tape[i~b] * cos(x[i~b])
//! ```
//! after
//! ```text
//! def f(x: f64[n]) -> (f64[n], f64[n]):               # y, t.tape
//! def f_backward(x: f64[n], t.tape: f64[n], y.grad: f64[n]) -> f64[n]:
//! ```
//!
//! **Lengths**: a tape whose length depends on a parameter's value (`steps: i32`) gets a size of its own, `t.tape.d0`,
//! since shapes of results are made of sizes. A third program computes it from the parameters ([`Pair::lengths`]).

use crate::custom_vjp::Calls;
use crate::data::{BackwardInfo, bytes};
use crate::explain::Explanation;
use crate::names::Names;
use crate::plan::{self, Planned};
use crate::request::{Request, inouts};
use crate::{build, cleanup, memory};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::pass::rewrite_accesses;
use taffeta_analysis::query::effects;
use taffeta_ast::format::Pattern;
use taffeta_ast::stmt::{AssertKind, MessagePart, Role};
use taffeta_ast::{
    DType, Diagnostic, Diagnostics, Expr, Func, Origin, Param, ParamMode, Stmt, StmtId, StmtKind, Symbol, Tensor,
};

/// Two passes of a gradient.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Forward pass: the program, with its residuals as further results.
    pub forward: Func,
    /// Backward pass. Its parameters are those of `sources`, then the seeds; its results are the gradients.
    pub backward: Func,
    /// Origins of the first parameters of `backward`, in order.
    pub sources: Vec<Source>,
    /// Number of the program's results among those of `forward`; the others are residuals.
    pub results: usize,
    /// Program for the sizes of both passes that depend on parameter values, as 0-D results of these names; its
    /// parameters are some of the program's.
    pub lengths: Option<Func>,
    /// Residuals of the backward pass.
    pub explanation: Explanation,
}

/// Origin of a parameter of the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Parameter of the program at that position, as the forward pass leaves it.
    Param(usize),
    /// Result of the forward pass at that position.
    Result(usize),
}

/// Builds the two passes of a gradient that returns all results and has seeds for all of them.
pub(crate) fn run(request: &Request<'_>, calls: &Calls) -> Result<Pair, Diagnostics> {
    plan::run(request, calls, true, &|planned| {
        let pair = passes(request, &planned)?;
        // Copies are not local tensors, whose budget they reduce.
        let copied = pair.copied(request);
        Ok((pair, copied))
    })
}

impl Pair {
    /// Returns the bytes that a tape copies: results, and parameters that the forward pass changes. Residuals are moved
    /// to the backward pass, and read-only parameters are borrowed.
    fn copied(&self, request: &Request<'_>) -> u64 {
        let of = |source: &Source| match source {
            Source::Param(k) => {
                Some(&request.func.params[*k]).filter(|p| p.mode == ParamMode::InOut).map(|p| &p.tensor)
            }
            Source::Result(k) => request.func.results.get(*k),
        };
        let bytes = |t: &Arc<Tensor>| memory::number(&bytes(t), &request.sizes).unwrap_or(u64::MAX);
        self.sources.iter().filter_map(of).map(bytes).fold(0, u64::saturating_add)
    }
}

/// Cuts the gradient in two.
fn passes(request: &Request<'_>, planned: &Planned) -> Result<Pair, Diagnostics> {
    let Planned { whole: both, info, .. } = planned;
    let func = request.func;
    let mut cut = Cut::default();
    cut.split(&both.body, &info.backward);
    let origin = Origin::source(request.span).derive("grad", "pair");
    let (results, gradients) = both.results.split_at(func.results.len());
    let seeds = &both.params[func.params.len()..];
    let (forward, backward) = (Stmt::seq(cut.forward, origin.clone()), Stmt::seq(cut.backward, origin.clone()));
    let (here, there) = (touched(&forward), touched(&backward));
    let crosses = |t: &&Arc<Tensor>| here.contains(&t.symbol) && there.contains(&t.symbol);
    let crossing: Vec<Arc<Tensor>> = cut.declared.iter().filter(crosses).cloned().collect();
    let around = |touched: &FxHashSet<Symbol>| -> Vec<Arc<Tensor>> {
        let own = |t: &&Arc<Tensor>| touched.contains(&t.symbol) && !crossing.iter().any(|c| c.symbol == t.symbol);
        cut.declared.iter().filter(own).cloned().collect()
    };

    // The backward pass comes first: a tensor that it does not read after its clean-up is not kept.
    let given = func.params.iter().map(|p| &p.tensor).chain(results).chain(&crossing);
    let given: Vec<Arc<Tensor>> = given.map(|t| interface(t, Role::Input)).collect();
    let taken = given.iter().map(|t| Param { tensor: t.clone(), mode: ParamMode::In });
    let back = Func {
        made: Vec::new(),
        custom_vjps: Vec::new(),
        keeps_order: false,
        name: format!("{}_backward", request.name),
        doc: None,
        sizes: func.sizes.clone(),
        params: taken.chain(seeds.iter().cloned()).collect(),
        results: gradients.to_vec(),
        body: build::declared(around(&there), backward, &origin),
    };
    let back = cleanup::run(&back, info);
    let mut read = effects::reads_by_others(&back.body);
    let kept = |p: &Param| read.contains(&p.tensor.symbol) || seeds.iter().any(|s| s.tensor.symbol == p.tensor.symbol);
    let patterns = patterns(&back, &kept);
    read.extend(patterns);
    let crossing: Vec<&Arc<Tensor>> = crossing.iter().filter(|t| read.contains(&t.symbol)).collect();

    let mut lengths = Lengths { func, found: Vec::new() };
    let mut kept: Vec<Arc<Tensor>> = Vec::new();
    for t in &crossing {
        kept.push(lengths.by_sizes(t)?);
    }
    let sizes: Vec<Symbol> = func.sizes.iter().chain(lengths.found.iter().map(|(s, _)| s)).cloned().collect();
    let local = cut.declared.iter().filter(|t| here.contains(&t.symbol) && !kept.iter().any(|k| k.symbol == t.symbol));
    let body = build::declared(local.cloned().collect(), forward, &origin);
    let forward = Func {
        made: Vec::new(),
        custom_vjps: Vec::new(),
        keeps_order: false,
        name: request.name.clone(),
        doc: func.doc.clone(),
        sizes: sizes.clone(),
        params: func.params.clone(),
        results: results.iter().cloned().chain(kept.iter().map(|t| interface(t, Role::Result))).collect(),
        body: Stmt::seq(lengths.asserted(|_| true, &origin).into_iter().chain([body]), origin.clone()),
    };
    let forward = cleanup::run(&forward, &BackwardInfo::default());

    let mut sources = Vec::new();
    let mut params: Vec<Param> = Vec::new();
    for (k, t) in given.iter().enumerate().filter(|(_, t)| read.contains(&t.symbol)) {
        let here = kept.iter().find(|x| x.symbol == t.symbol).unwrap_or(t);
        params.push(Param { tensor: interface(here, Role::Input), mode: ParamMode::In });
        let result = |s: &Symbol| forward.results.iter().position(|r| r.symbol == *s);
        sources.push(match k.checked_sub(func.params.len()) {
            None => Source::Param(k),
            Some(_) => Source::Result(result(&t.symbol).expect("a value that the backward pass reads is a result")),
        });
    }
    let there: FxHashSet<Symbol> = params.iter().map(|p| p.tensor.symbol.clone()).collect();
    params.extend(seeds.iter().cloned());
    let asserted = lengths.asserted(|e| effects::loads(e).is_subset(&there), &origin);
    let body = Stmt::seq(asserted.into_iter().chain([back.body.clone()]), origin.clone());
    let backward = distinct(Func { sizes, params, body, ..back }, sources.len(), request);
    let (results, lengths) = (func.results.len(), lengths.program(request));
    let explanation = Explanation::new(planned, &request.sizes);
    Ok(Pair { forward, backward, sources, results, lengths, explanation })
}

/// Returns the parameters with the index arrays of all patterns in which declared tensors, results or `kept` parameters
/// are stored.
fn patterns(func: &Func, kept: &dyn Fn(&Param) -> bool) -> FxHashSet<Symbol> {
    let taken = func.params.iter().filter(|p| kept(p)).map(|p| &p.tensor);
    let mut patterns: FxHashSet<Pattern> = func.results.iter().chain(taken).filter_map(|t| t.format.pattern).collect();
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            patterns.extend(tensor.format.pattern);
        }
    });
    let of = |p: &Pattern| func.params.iter().map(|x| &x.tensor).find(|t| t.format.pattern == Some(*p));
    patterns.iter().filter_map(of).map(|t| t.symbol.clone()).collect()
}

/// Both passes, and the tensors declared around them.
#[derive(Default)]
struct Cut {
    declared: Vec<Arc<Tensor>>,
    forward: Vec<Stmt>,
    backward: Vec<Stmt>,
}

impl Cut {
    /// Assigns each statement to one pass, and goes into the blocks and scopes that enclose the backward pass.
    fn split(&mut self, s: &Stmt, backward: &FxHashSet<StmtId>) {
        let within = s.any(&mut |s| backward.contains(&s.id()));
        match s.kind() {
            _ if !within => self.forward.push(s.clone()),
            _ if backward.contains(&s.id()) => self.backward.push(s.clone()),
            StmtKind::VarDef { tensor, body } => {
                self.declared.push(tensor.clone());
                self.split(body, backward);
            }
            StmtKind::Seq(all) => all.iter().for_each(|s| self.split(s, backward)),
            _ => unreachable!("the backward pass comes after the whole program"),
        }
    }
}

/// Sizes introduced for lengths that depend on values of parameters, each with its length.
struct Lengths<'f> {
    func: &'f Func,
    found: Vec<(Symbol, Expr)>,
}

impl Lengths<'_> {
    /// Returns the tensor with a shape that is made of sizes.
    fn by_sizes(&mut self, t: &Arc<Tensor>) -> Result<Arc<Tensor>, Diagnostics> {
        let mut shape = Vec::new();
        for (k, e) in t.shape.iter().enumerate() {
            let loads = effects::loads(e);
            let input = |s: &Symbol| self.func.params.iter().any(|p| p.mode == ParamMode::In && p.tensor.symbol == *s);
            if !loads.iter().all(input) {
                let message = format!("the kept values of `{}` have a length that the program computes", t.symbol);
                let d = Diagnostic::new("grad::pair", message);
                return Err(d.help("compile the gradient as one program (`Options::gradient`)").into());
            }
            shape.push(match self.found.iter().find(|(_, known)| known == e) {
                _ if loads.is_empty() => e.clone(),
                Some((size, _)) => Expr::var(size),
                None => {
                    let size = Symbol::new(format!("{}.d{k}", t.symbol));
                    self.found.push((size.clone(), e.clone()));
                    Expr::var(&size)
                }
            });
        }
        Ok(Arc::new(Tensor { shape, ..(**t).clone() }))
    }

    /// Builds assertions that sizes are equal to their lengths, where `known` says that the values are present.
    fn asserted(&self, known: impl Fn(&Expr) -> bool, origin: &Origin) -> Vec<Stmt> {
        let one = |(size, e): &(Symbol, Expr)| {
            let cond = Expr::var(size).equals(e);
            let message = vec![MessagePart::Text(format!("the length `{size}` differs from that of the forward pass"))];
            Stmt::new(StmtKind::Assert { cond, message, kind: AssertKind::Program }, origin.clone())
        };
        self.found.iter().filter(|(_, e)| known(e)).map(one).collect()
    }

    /// Builds the program that computes the lengths.
    fn program(&self, request: &Request<'_>) -> Option<Func> {
        let origin = Origin::source(request.span).derive("grad", "pair");
        let loads: FxHashSet<Symbol> = self.found.iter().flat_map(|(_, e)| effects::loads(e)).collect();
        let result = |size: &Symbol| Arc::new(Tensor::dense(size.fresh(), DType::I64, Vec::new(), Role::Result));
        let results: Vec<Arc<Tensor>> = self.found.iter().map(|(size, _)| result(size)).collect();
        let stores =
            self.found.iter().zip(&results).map(|((_, e), t)| build::store(&t.symbol, Vec::new(), e.clone(), &origin));
        let body = Stmt::seq(stores, origin.clone());
        (!self.found.is_empty()).then(|| Func {
            made: Vec::new(),
            custom_vjps: Vec::new(),
            keeps_order: false,
            name: format!("{}_lengths", request.name),
            doc: None,
            sizes: self.func.sizes.clone(),
            params: self.func.params.iter().filter(|p| loads.contains(&p.tensor.symbol)).cloned().collect(),
            results,
            body,
        })
    }
}

/// Returns the tensors that a statement reads or writes, including the declared ones.
fn touched(s: &Stmt) -> FxHashSet<Symbol> {
    let mut all = effects::writes(s);
    all.extend(effects::reads_by_others(s));
    all
}

/// Returns a tensor as a parameter or a result: its memory concerns the program in which it was local.
fn interface(t: &Tensor, role: Role) -> Arc<Tensor> {
    Arc::new(t.like(t.symbol.clone(), role))
}

/// Renames the tensors of the backward pass: a seed of `y` is `y.grad` and the gradient of `x` is `x.grad`, whatever
/// the program, which may be a derivative itself, calls its tensors. The first parameters, which come from the forward
/// pass, are renamed where they have these names: `t.tape`, `t.tape2` …
fn distinct(mut func: Func, given: usize, request: &Request<'_>) -> Func {
    let results = request.func.results.iter().filter(|t| t.dtype.is_float() && request.is_of(t));
    let seeded: Vec<&Arc<Tensor>> = results.chain(inouts(request.func)).collect();
    let changed = |t: &Arc<Tensor>| inouts(request.func).any(|p| p.symbol == t.symbol);
    let asked: Vec<&Arc<Tensor>> = request.inputs().into_iter().filter(|t| !changed(t)).collect();
    let nothing = Func { params: Vec::new(), ..func.clone() };
    let mut names = Names::new(&nothing, []);
    let mut renamed: FxHashMap<Symbol, Symbol> = FxHashMap::default();
    let mut rename = |t: &mut Arc<Tensor>, symbol: Symbol| {
        if symbol.name() != t.symbol.name() {
            renamed.insert(t.symbol.clone(), symbol.clone());
            *t = Arc::new(Tensor { symbol, ..(**t).clone() });
        }
    };
    let (params, seeds) = func.params.split_at_mut(given);
    for (p, of) in seeds.iter_mut().zip(&seeded) {
        let role = p.tensor.role;
        rename(&mut p.tensor, names.adjoint(of, role).symbol.clone());
    }
    for (t, of) in func.results.iter_mut().zip(&asked) {
        rename(t, names.adjoint(of, Role::Result).symbol.clone());
    }
    for p in params {
        let symbol = names.given(p.tensor.symbol.name());
        rename(&mut p.tensor, symbol);
    }
    if renamed.is_empty() { func } else { func.with_body(rewrite_accesses::run(&func.body, &renamed, &|at| at)) }
}
