//! Memory of a program's local tensors: the peak over all points of a run with given sizes.
//!
//! The bytes of a tensor are the product of its dimensions, each at its largest value (a shape may depend on
//! iterators). Scopes nest, so that the live tensors at a point are those declared around it. The C back end puts
//! scalars into registers and arrays of a few kilobytes on the stack; scalars do not count here, small arrays do.

use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use taffeta_analysis::query::value_range::{self, Range};
use taffeta_ast::{Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol};

/// Sizes of a run, and values of scalar integer parameters, by name.
pub type Sizes = BTreeMap<String, i64>;

/// Computes the peak bytes of local tensors that are alive at one time.
///
/// # Errors
///
/// The quantities that a shape depends on and `sizes` lacks.
pub fn peak(func: &Func, sizes: &Sizes) -> Result<u64, Vec<String>> {
    let mut known = SizeEvaluator::new(&func.sizes, sizes);
    let bytes = known.peak(&func.body);
    match known.missing.is_empty() {
        true => Ok(u64::try_from(bytes).unwrap_or(u64::MAX)),
        false => Err(known.missing.into_iter().collect()),
    }
}

/// Evaluates an expression over sizes. Returns its largest value, if it has several in the run.
pub(crate) fn number(e: &Expr, sizes: &Sizes) -> Option<u64> {
    let (_, most) = SizeEvaluator::new(&[], sizes).range(e)?;
    u64::try_from(most.max(0)).ok()
}

/// Evaluator of integer expressions over the sizes of a run.
struct SizeEvaluator<'a> {
    /// Sizes of the program.
    names: &'a [Symbol],
    /// Values of the sizes.
    sizes: &'a Sizes,
    iters: FxHashMap<Symbol, Range>,
    missing: BTreeSet<String>,
}

impl<'a> SizeEvaluator<'a> {
    fn new(names: &'a [Symbol], sizes: &'a Sizes) -> SizeEvaluator<'a> {
        SizeEvaluator { names, sizes, iters: FxHashMap::default(), missing: BTreeSet::new() }
    }

    fn peak(&mut self, s: &Stmt) -> u128 {
        match s.kind() {
            StmtKind::VarDef { tensor, body } if tensor.ndim() == 0 => self.peak(body),
            StmtKind::VarDef { tensor, body } => {
                let dims: Vec<Option<Range>> = tensor.shape.iter().map(|d| self.range(d)).collect();
                let width = tensor.dtype.size() as u128;
                let count = dims.iter().flatten().map(|(_, most)| (*most).max(0) as u128);
                let bytes = count.fold(width, u128::saturating_mul);
                bytes.saturating_add(self.peak(body))
            }
            StmtKind::For { iter, extent: Extent::Range { begin, end, step }, body, .. } => {
                // An unknown range is reported where a shape depends on it.
                let asked = std::mem::take(&mut self.missing);
                let (first, last) = (self.range(begin), self.range(end));
                let backwards = step.as_int().is_some_and(|s| s < 0);
                self.missing = asked;
                if let (Some(a), Some(b)) = (first, last) {
                    let (low, high) = if backwards { (b.0 + 1, a.1) } else { (a.0, b.1 - 1) };
                    self.iters.insert(iter.clone(), (low, high.max(low)));
                }
                let inside = self.peak(body);
                self.iters.remove(iter);
                inside
            }
            other => other.children().into_iter().map(|c| self.peak(c)).max().unwrap_or(0),
        }
    }

    /// Bounds an integer expression; returns `None` if it is not known, and records the unknown quantities.
    fn range(&mut self, e: &Expr) -> Option<Range> {
        value_range::of(e, &mut |leaf| {
            let known = match leaf.kind() {
                ExprKind::Var(s) => self.iters.get(s).copied().or_else(|| self.size(s)),
                ExprKind::Load(t, at) if at.is_empty() => self.size(t),
                _ => None,
            };
            if known.is_none() {
                self.missing.insert(match leaf.kind() {
                    ExprKind::Var(s) if self.names.contains(s) => format!("the size `{s}`"),
                    ExprKind::Var(s) => format!("the range of the loop `{s}`"),
                    _ => format!("the value of `{}`", taffeta_ast::print::expr(leaf)),
                });
            }
            known
        })
    }

    fn size(&self, s: &Symbol) -> Option<Range> {
        self.sizes.get(s.name()).map(|v| (i128::from(*v), i128::from(*v)))
    }
}
