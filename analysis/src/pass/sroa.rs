//! Scalar replacement of aggregates: small arrays become scalars.
//!
//! **Does**: replaces every element of an array by a scalar. The array has at most `MAX_ELEMENTS` elements, is
//! declared in a loop, where it would prevent vectorisation, and its subscripts are numbers, or iterators of short
//! loops that contain only stores and reductions (such as `l = zeros((4,), f64)` and the initialisations of adjoints).
//! Such loops are unrolled.
//!
//! **Requires**: a valid logical program.
//!
//! **Ensures**: remaining statements keep their ids and origins; the first scalar takes over the declaration's. The
//! origins of unrolled iterations derive from the statements of their loop. A scalar is named after its array and the
//! subscripts of its element (`l_0`), and elements without accesses get no declaration.
//!
//! **Example**
//!
//! before
//! ```text
//! l = empty((2,), f64)
//! l[0] = x[i]
//! l[1] = l[0] + 1.0
//! y[i] = l[0] * l[1]
//! ```
//! after
//! ```text
//! l_0 = empty((), f64)
//! l_1 = empty((), f64)
//! l_0 = x[i]
//! l_1 = l_0 + 1.0
//! y[i] = l_0 * l_1
//! ```
//!
//! **Leaves alone**: parameters and results, arrays outside of loops, structured tensors, arrays with an explicit
//! memory type, and arrays that are printed or passed to an outside function, have a subscript out of range (which
//! stops the program), or are in the reductions of a loop; loops with properties; arrays beyond `MAX_ALIVE` scalars
//! that are alive at one point, since each scalar is a scope.

use super::{copy, substitute};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use taffeta_ast::stmt::{LoopProps, Memory};
use taffeta_ast::{Access, Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol, Tensor};

/// Maximum number of elements of an array: a lattice's `f[19]` and 4 × 4 matrices become scalars.
const MAX_ELEMENTS: i64 = 32;
/// Maximum number of scalars with nested scopes.
const MAX_ALIVE: usize = 512;
/// Maximum number of statements of an unrolled loop.
const MAX_COPIES: usize = 32;

/// Replaces small arrays by scalars.
pub fn run(func: &Func) -> Func {
    scalarized(func).unwrap_or_else(|| func.clone())
}

/// Returns the program with scalars for small arrays; `None` if it has no array that can become scalars.
pub fn scalarized(func: &Func) -> Option<Func> {
    let mut all = Arrays::default();
    all.declared(&func.body, false, 0);
    if all.elements.is_empty() {
        return None;
    }
    // Unroll the loops over the candidates to learn which of them can be replaced. A loop over a dropped array stays,
    // and with it the subscripts of other arrays in it, until no more is dropped.
    let mut arrays = all;
    let body = loop {
        let candidates = arrays.elements.len();
        let body = iterations(&func.body, &arrays);
        arrays.elements.values_mut().for_each(BTreeMap::clear);
        arrays.touched(&body, &mut FxHashSet::default());
        arrays.elements.retain(|_, elements| !elements.is_empty());
        match arrays.elements.len() {
            0 => return None,
            left if left == candidates => break body,
            _ => {}
        }
    };
    let loads = substitute::rebuild(&body, &mut |e| match e.kind() {
        ExprKind::Load(t, at) => arrays.scalar(t, at).map_or(e.clone(), |s| Expr::load(s, Vec::new(), e.dtype())),
        _ => e,
    });
    Some(func.with_body(arrays.rewritten(&loads)))
}

/// Unrolls the short loops over some arrays in a statement, innermost first.
fn iterations(s: &Stmt, arrays: &Arrays) -> Stmt {
    let s = s.map(&mut |s| iterations(s, arrays), &mut Expr::clone);
    let StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } = s.kind() else { return s };
    let inside = match body.kind() {
        StmtKind::Seq(all) => all.as_slice(),
        _ => std::slice::from_ref(body),
    };
    let plain = |s: &Stmt| matches!(s.kind(), StmtKind::Store { .. } | StmtKind::ReduceTo { .. });
    let (Some(begin), Some(end), Some(step)) = (begin.as_int(), end.as_int(), step.as_int()) else { return s };
    if *props != LoopProps::default() || step <= 0 || !inside.iter().all(plain) || !arrays.are_along(iter, inside) {
        return s;
    }
    let most = (MAX_COPIES / inside.len().max(1)).min(MAX_ELEMENTS as usize);
    let values: Vec<i64> = (begin..end).step_by(step as usize).take(most + 1).collect();
    if values.is_empty() || values.len() > most {
        return s;
    }
    let copies = values.into_iter().map(|value| {
        let mut copier = copy::Copier::new("sroa", "iteration");
        copier.scalars.insert(iter.clone(), Expr::int(value));
        copier.stmt(body)
    });
    Stmt::seq(copies, s.origin().clone())
}

/// Returns the subscripts of an element, if they are numbers.
fn constants(at: &[Access]) -> Option<Vec<i64>> {
    at.iter().map(|a| a.index.as_int()).collect()
}

/// Arrays to be replaced, with the scalar of each element that is accessed.
#[derive(Default)]
struct Arrays {
    elements: FxHashMap<Symbol, BTreeMap<Vec<i64>, Symbol>>,
    shapes: FxHashMap<Symbol, Vec<i64>>,
}

impl Arrays {
    /// Returns whether an iterator is a subscript of one of the arrays in some statements.
    fn are_along(&self, iter: &Symbol, statements: &[Stmt]) -> bool {
        let is_iter = |a: &Access| matches!(a.index.kind(), ExprKind::Var(v) if v == iter);
        let mut along = false;
        let mut look = |t: &Symbol, at: &[Access]| along |= at.iter().any(is_iter) && self.elements.contains_key(t);
        for s in statements {
            if let StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } = s.kind() {
                look(tensor, indices);
            }
            s.walk_exprs(&mut |e| {
                if let ExprKind::Load(t, at) = e.kind() {
                    look(t, at);
                }
            });
        }
        along
    }

    /// Records the small arrays that are declared in a loop. `alive` counts the scalars that are alive at the statement
    /// if all recorded arrays are replaced.
    fn declared(&mut self, s: &Stmt, looped: bool, mut alive: usize) {
        if let StmtKind::VarDef { tensor, .. } = s.kind()
            && let Some(shape) = small(tensor).filter(|_| looped)
        {
            let size = shape.iter().product::<i64>() as usize;
            if alive + size <= MAX_ALIVE {
                alive += size;
                self.elements.insert(tensor.symbol.clone(), BTreeMap::new());
                self.shapes.insert(tensor.symbol.clone(), shape);
            }
        }
        let looped = looped || matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. });
        s.kind().inside().for_each(|s| self.declared(s, looped, alive));
    }

    /// Records the accessed elements, and drops the arrays with other uses or unknown subscripts. `seen` holds the
    /// addresses of the visited expressions.
    fn touched(&mut self, s: &Stmt, seen: &mut FxHashSet<usize>) {
        match s.kind() {
            StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } => {
                self.touch(tensor, indices);
            }
            StmtKind::Call { tensors, .. } => tensors.iter().for_each(|t| self.leave(t)),
            StmtKind::Print { .. } => s.kind().printed().into_iter().for_each(|t| self.leave(t)),
            StmtKind::For { props, .. } => props.reductions.iter().for_each(|r| self.leave(&r.tensor)),
            _ => {}
        }
        s.kind().exprs().into_iter().for_each(|e| self.loaded(e, seen));
        s.kind().inside().for_each(|s| self.touched(s, seen));
    }

    fn loaded(&mut self, e: &Expr, seen: &mut FxHashSet<usize>) {
        if !seen.insert(e.address()) {
            return;
        }
        if let ExprKind::Load(t, at) = e.kind() {
            self.touch(t, at);
        }
        e.children().into_iter().for_each(|c| self.loaded(c, seen));
    }

    fn touch(&mut self, tensor: &Symbol, at: &[Access]) {
        let Some(elements) = self.elements.get_mut(tensor) else { return };
        let within = |at: &Vec<i64>| at.iter().zip(&self.shapes[tensor]).all(|(k, size)| (0..*size).contains(k));
        let Some(at) = constants(at).filter(within) else { return self.leave(tensor) };
        elements.entry(at).or_insert_with_key(|at| {
            let numbers: String = at.iter().map(|k| format!("_{k}")).collect();
            Symbol::new(format!("{}{numbers}", tensor.name()))
        });
    }

    fn leave(&mut self, tensor: &Symbol) {
        self.elements.remove(tensor);
    }

    /// Returns the scalar of an element.
    fn scalar(&self, tensor: &Symbol, at: &[Access]) -> Option<&Symbol> {
        self.elements.get(tensor)?.get(&constants(at)?)
    }

    /// Rewrites declarations and writes of arrays in a statement to those of their scalars.
    fn rewritten(&self, s: &Stmt) -> Stmt {
        let here = match s.kind() {
            StmtKind::Store { tensor, indices, value } => self.scalar(tensor, indices).map(|scalar| {
                let (tensor, value) = (scalar.clone(), value.clone());
                s.with_kind(StmtKind::Store { tensor, indices: Vec::new(), value })
            }),
            StmtKind::ReduceTo { tensor, indices, op, value } => self.scalar(tensor, indices).map(|scalar| {
                let (tensor, op, value) = (scalar.clone(), *op, value.clone());
                s.with_kind(StmtKind::ReduceTo { tensor, indices: Vec::new(), op, value })
            }),
            StmtKind::VarDef { tensor, body } => {
                let declared = self.elements.get(&tensor.symbol).map(|elements| {
                    let body = self.rewritten(body);
                    elements.values().enumerate().rev().fold(body, |body, (k, symbol)| {
                        let kind = StmtKind::VarDef { tensor: scalar_of(tensor, symbol), body };
                        if k == 0 { s.with_kind(kind) } else { Stmt::new(kind, s.origin().derive("sroa", "element")) }
                    })
                });
                match declared {
                    Some(declared) => return declared,
                    None => None,
                }
            }
            _ => None,
        };
        here.as_ref().unwrap_or(s).map(&mut |s| self.rewritten(s), &mut Expr::clone)
    }
}

/// Returns the sizes of an array, if it may become scalars.
fn small(t: &Tensor) -> Option<Vec<i64>> {
    let may = t.ndim() > 0 && t.role.is_local() && t.memory == Memory::Auto && t.format.is_dense();
    let shape: Vec<i64> = t.shape.iter().filter(|_| may).map(Expr::as_int).collect::<Option<_>>()?;
    let elements = shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d).filter(|_| *d > 0))?;
    (may && elements <= MAX_ELEMENTS).then_some(shape)
}

/// Returns the declaration of an element's scalar.
fn scalar_of(array: &Tensor, symbol: &Symbol) -> Arc<Tensor> {
    Arc::new(Tensor::dense(symbol.clone(), array.dtype, Vec::new(), array.role))
}
