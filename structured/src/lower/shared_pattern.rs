//! Tensors stored over the pattern of a parameter: adjoints, and `pattern(A)`. They share its index arrays and have
//! values of their own, so that one cursor traverses both. Writes where nothing is stored vanish in derivatives, and
//! are errors elsewhere.
//!
//! ```text
//! A.grad: f64[n, m] @ pattern(A)                   A.grad.val: f64[A.n1]
//!
//! A.grad[:, :] = 0.0                        →      for A_grad.p in range(A.n1): A.grad.val[A_grad.p] = 0.0
//! A.grad[i, j] += y.grad[i] * x[j]                 A.grad.val[j.p] += y.grad[i] * x[A.crd1[j.p]]
//! ```

use super::cursor::PATH;
use super::exprs::{load, range};
use super::state::Lower;
use crate::access;
use crate::layout::TensorLevels;
use crate::level_assembly::AssembledArrays;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::stmt::{AssertKind, LoopProps, MessagePart, Reduction};
use taffeta_ast::{Diagnostic, Diagnostics, Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol, Tensor};

/// Returns whether writes where a tensor stores nothing are errors.
pub(super) fn refuses(flat: &TensorLevels) -> bool {
    !flat.tensor.format.drops
}

impl Lower {
    /// Registers results and locals that are stored over the pattern of a parameter, and returns the results of the
    /// lowered program.
    pub(super) fn followers(&mut self, func: &Func) -> Result<Vec<Arc<Tensor>>, Diagnostics> {
        let mut found: Vec<Diagnostic> = Vec::new();
        let mut results = Vec::new();
        for t in &func.results {
            match t.format.is_dense() {
                true => results.push(t.clone()),
                false if self.appends(&t.symbol) => {}
                false => match self.follow(func, t) {
                    Some(values) => results.push(values),
                    None => found.push(own_pattern(t, "result")),
                },
            }
        }
        func.body.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, .. } = s.kind()
                && !tensor.format.is_dense()
                && !self.appends(&tensor.symbol)
                && self.follow(func, tensor).is_none()
                && !self.workspace(tensor)
            {
                found.push(own_pattern(tensor, "local tensor").at(s.origin().span()));
            }
        });
        if found.is_empty() { Ok(results) } else { Err(Diagnostics(found)) }
    }

    /// Registers a tensor with the index arrays of the parameter that has its pattern, and returns its values.
    pub(super) fn follow(&mut self, func: &Func, tensor: &Arc<Tensor>) -> Option<Arc<Tensor>> {
        let pattern = tensor.format.pattern?;
        let of = func.params.iter().find(|p| p.tensor.format.pattern == Some(pattern))?;
        if of.tensor.symbol == tensor.symbol {
            return None;
        }
        let flat = self.tensors.get(&of.tensor.symbol)?.followed_by(tensor);
        let values = flat.values.clone();
        self.follows.push((tensor.symbol.clone(), of.tensor.symbol.clone()));
        self.declare(tensor, flat);
        Some(values)
    }

    /// Returns the parameter over whose pattern a tensor is stored, or the tensor itself if it has a pattern of its
    /// own.
    pub(super) fn pattern_of<'t>(&'t self, tensor: &'t Symbol) -> &'t Symbol {
        self.follows.iter().find(|(t, _)| t == tensor).map_or(tensor, |(_, of)| of)
    }

    /// Returns the fibres below `level` levels of the tensors that are stored over this one's pattern.
    pub(super) fn followers_at(&self, of: &Symbol, level: usize) -> Vec<Symbol> {
        let own = self.follows.iter().filter(|(_, o)| o == of);
        own.map(|(t, _)| self.tensors[t].fibres[level].clone()).collect()
    }

    /// Resolves a declaration of a structured tensor. In a copy of a loop's body, accesses are still those to the
    /// original, and are replaced by accesses to the declared tensor; `None` if none is left, and there is nothing to
    /// declare.
    pub(super) fn redeclared(&mut self, s: &Stmt) -> Option<Stmt> {
        let StmtKind::VarDef { tensor, body } = s.kind() else { return Some(s.clone()) };
        let known = self.tensors.get(&tensor.symbol).is_some_and(|flat| flat.tensor.shape == tensor.shape);
        if tensor.format.is_dense() || known {
            return Some(s.clone());
        }
        let is = |flat: &&TensorLevels| {
            let own = &flat.tensor;
            let same = own.symbol.name() == tensor.symbol.name() && own.format == tensor.format;
            same && self.is_used(body, flat)
        };
        let from = self.tensors.values().chain(&self.replaced).find(is)?.clone();
        let old = from.tensor.symbol.clone();
        if from.assembly.is_some() {
            if from.tensor.shape != tensor.shape {
                let text = format!("the shape of `{old}`, which is assembled, differs in parts of a loop");
                self.refuse_at(s.origin().span(), text);
            }
            // Copies use the arrays of the original until these are declared (`with_made`).
            return Some(s.with_kind(StmtKind::VarDef { tensor: from.tensor.clone(), body: body.clone() }));
        }
        // Other copies of the body access the tensor as it was declared before.
        self.replaced.extend(self.tensors.get(&tensor.symbol).cloned());
        match self.follows.iter().find(|(t, _)| *t == old).map(|(_, of)| of.clone()) {
            Some(of) => {
                let flat = self.tensors[&of].followed_by(tensor);
                self.follows.push((tensor.symbol.clone(), of));
                self.declare(tensor, flat);
            }
            None if !self.workspace(tensor) => return Some(s.clone()),
            None => {}
        }
        let to = &self.tensors[&tensor.symbol];
        let pairs = from.fibres.iter().zip(&to.fibres).chain([(&from.values.symbol, &to.values.symbol)]);
        let names: FxHashMap<Symbol, Symbol> = pairs.map(|(a, b)| (a.clone(), b.clone())).collect();
        let body = access::rebuild(body, &mut |e| match e.kind() {
            ExprKind::Load(t, at) if let Some(new) = names.get(t) => Expr::load(new, at.clone(), e.dtype()),
            _ => e,
        });
        let body = reductions(&body, &|t| names.get(t).unwrap_or(t).clone());
        Some(s.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body }))
    }

    /// Returns whether a statement accesses a tensor or completes its arrays, and does not declare it.
    fn is_used(&self, s: &Stmt, flat: &TensorLevels) -> bool {
        let (mut used, mut own) = (false, false);
        let is = |t: &Symbol| flat.fibres.contains(t) || *t == flat.values.symbol;
        s.walk(&mut |s| {
            own |= matches!(s.kind(), StmtKind::VarDef { tensor, .. } if tensor.symbol == flat.tensor.symbol);
            access::exprs(s).iter().for_each(|e| e.walk(&mut |e| used |= load(e).is_some_and(|(t, _)| is(t))));
        });
        let completes = |all: &AssembledArrays| {
            let scalars = all.levels.iter().flat_map(|l| l.counts.iter().chain(&l.opened));
            let arrays = all.levels.iter().flat_map(|l| &l.level.arrays);
            scalars.chain(arrays).any(|t| s.writes_to(&t.symbol))
        };
        (used || flat.assembly.as_deref().is_some_and(completes)) && !own
    }

    /// Registers a structured tensor.
    pub(super) fn declare(&mut self, tensor: &Tensor, flat: TensorLevels) {
        for (k, fibre) in flat.fibres.iter().enumerate() {
            self.fibres.insert(fibre.clone(), (tensor.symbol.clone(), k));
        }
        self.tensors.insert(tensor.symbol.clone(), flat);
    }

    /// Replaces the declaration of a structured tensor by one of its values.
    pub(super) fn declaration(&self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::VarDef { tensor, body } => match self.tensors.get(&tensor.symbol) {
                // The arrays of workspaces, and of tensors that the program makes, are declared by a later step.
                Some(flat) if flat.assembly.is_some() || flat.levels.last().is_some_and(|l| l.inserts) => s.clone(),
                Some(flat) => s.with_kind(StmtKind::VarDef { tensor: flat.values.clone(), body: body.clone() }),
                None => s.clone(),
            },
            _ => s.clone(),
        }
    }

    /// Replaces structured tensors by their values in the reductions of loops.
    pub(super) fn shared_values(&self, s: &Stmt) -> Stmt {
        reductions(s, &|t| self.values_of(t))
    }

    fn values_of(&self, t: &Symbol) -> Symbol {
        self.tensors.get(t).map_or(t, |flat| &flat.values.symbol).clone()
    }

    /// Returns the tensor of a fibre or of values.
    fn tensor_at(&self, t: &Symbol) -> Option<&TensorLevels> {
        let of_fibre = self.fibres.get(t).map(|(tensor, _)| &self.tensors[tensor]);
        of_fibre.or_else(|| self.tensors.values().find(|flat| flat.values.symbol == *t))
    }

    /// Lowers loops that only store a constant to every element to a loop over all stored values.
    pub(super) fn set_everywhere(&self, s: &Stmt) -> Option<Stmt> {
        let StmtKind::For { props, .. } = s.kind() else { return None };
        let (mut loops, mut inner): (Vec<(&Symbol, [Expr; 2])>, &Stmt) = (Vec::new(), s);
        while let StmtKind::For { iter, extent, body, .. } = inner.kind() {
            loops.push((iter, range(extent)?));
            inner = body;
        }
        let StmtKind::Store { value, .. } = inner.kind() else { return None };
        let constant = value.as_literal()?;
        let element = access::target(inner)?;
        let (fibre, at) = load(&element)?;
        let (tensor, 0) = self.fibres.get(fibre)? else { return None };
        let flat = &self.tensors[tensor];
        if self.is_fresh(&element) {
            return (constant == flat.fill()).then(Stmt::nop);
        }
        let fill = flat.fill();
        let shape = &flat.tensor.shape;
        if shape.len() != loops.len() || refuses(flat) && constant != fill {
            return None;
        }
        let of_levels = || flat.levels.iter().zip(&at[PATH..]).map(|(l, a)| (&l.size, &a.index)).collect();
        let all: Vec<(&Expr, &Expr)> = match flat.tensor.format.is_remapped() {
            true => shape.iter().zip(at[at.len() - shape.len()..].iter().map(|a| &a.index)).collect(),
            false => of_levels(),
        };
        for (size, index) in all {
            let ExprKind::Var(iter) = index.kind() else { return None };
            let k = loops.iter().position(|(i, _)| *i == iter)?;
            let (_, [begin, end]) = loops.swap_remove(k);
            if begin.as_int() != Some(0) || end != *size {
                return None;
            }
        }
        let values = &flat.values;
        // The text of a program allows one dot in a name.
        let p = Symbol::new(format!("{}.p", tensor.name().replace('.', "_")));
        let kind = StmtKind::Store {
            tensor: values.symbol.clone(),
            indices: vec![Expr::var(&p).into()],
            value: value.clone(),
        };
        let extent = Extent::Range { begin: Expr::int(0), end: values.shape[0].clone(), step: Expr::int(1) };
        let props = LoopProps { library: false, reductions: Vec::new(), ..props.clone() };
        Some(s.with_kind(StmtKind::For { iter: p, extent, props, body: inner.with_kind(kind) }))
    }

    /// Refuses concurrent loops that store a constant into values shared by several elements, since iterations would
    /// race. (The schedule finds other conflicts when it marks a loop.)
    pub(super) fn refuse_races(&mut self, s: &Stmt, iter: &Symbol, props: &LoopProps, body: &Stmt) {
        if !props.is_concurrent() {
            return;
        }
        let mut meets = None;
        body.walk(&mut |inner| {
            let StmtKind::Store { tensor, value, .. } = inner.kind() else { return };
            let shared = |flat: &&TensorLevels| !flat.tensor.format.is_injective();
            if let (Some(flat), Some(_)) = (self.tensor_at(tensor).filter(shared), value.as_literal()) {
                meets = Some(flat.tensor.symbol.clone());
            }
        });
        if let Some(tensor) = meets {
            let text = format!(
                "the loop `{iter}` cannot be parallel or vectorised: it stores a constant into `{tensor}`, whose \
                 values each stand for several elements"
            );
            self.refuse_at(s.origin().span(), text);
        }
    }

    /// Refuses vectorised loops that contain a traversal or a search.
    pub(super) fn refuse_lanes(&mut self, s: &Stmt) {
        s.walk(&mut |s| {
            let StmtKind::For { iter, props, body, .. } = s.kind() else { return };
            let loops = body.any(&mut |s| match s.kind() {
                StmtKind::For { props, .. } => !props.unroll,
                kind => matches!(kind, StmtKind::While { .. }),
            });
            if props.vectorize.is_some() && loops {
                let text = format!("the loop `{iter}` cannot be vectorised: it contains a search or a traversal");
                self.refuse_at(s.origin().span(), text);
            }
        });
    }

    /// Returns the statement that replaces a write to an element that is not stored. If such writes are errors, the
    /// check needs the written value: the fill leaves the element as it is.
    pub(super) fn outside(&self, s: &Stmt, element: &Expr) -> Stmt {
        let Some(tensor) = load(element).and_then(|(t, _)| Some(&self.fibres.get(t)?.0)) else { return Stmt::nop() };
        if refuses(&self.tensors[tensor]) { self.not_stored(s, element) } else { Stmt::nop() }
    }

    /// Returns the failing assertion for a write to an element that is not stored.
    pub(super) fn stopped(&self, s: &Stmt, element: &Expr) -> Stmt {
        let Some((t, at)) = load(element) else { return Stmt::nop() };
        let tensor = &self.fibres[t].0;
        let own = at.len() - 1 - self.tensors[tensor].tensor.shape.len();
        let mut message = vec![MessagePart::Text("element [".into())];
        for (k, index) in at[own..at.len() - 1].iter().enumerate() {
            message.extend((k > 0).then(|| MessagePart::Text(", ".into())));
            message.push(MessagePart::Value(index.index.clone()));
        }
        message.push(MessagePart::Text(format!("] of `{tensor}` {}", taffeta_ast::format::OUTSIDE)));
        s.with_kind(StmtKind::Assert { cond: Expr::bool(false), message, kind: AssertKind::Storage })
    }
}

/// Replaces the tensors that loops reduce into.
fn reductions(s: &Stmt, other: &dyn Fn(&Symbol) -> Symbol) -> Stmt {
    let s = match s.kind() {
        StmtKind::For { iter, extent, props, body } if !props.reductions.is_empty() => {
            let values = |r: &Reduction| Reduction { tensor: other(&r.tensor), ..r.clone() };
            let reductions = props.reductions.iter().map(values).collect();
            let props = LoopProps { reductions, ..props.clone() };
            s.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
        }
        _ => s.clone(),
    };
    s.map(&mut |s| reductions(s, other), &mut Expr::clone)
}

fn own_pattern(t: &Tensor, what: &str) -> Diagnostic {
    let text = format!("the {what} `{}` has a structured format without the pattern of a parameter", t.symbol);
    Diagnostic::new("lower::unsupported", text).help("run it with `--backend interp`, or store it densely")
}
