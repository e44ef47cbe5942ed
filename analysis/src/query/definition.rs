//! Definitions of integer scalars that have a single value in their scope (`h: i64 = n // 2`, `p: i64 = 2 * i`), by
//! which `y[h + i]` is analysed as `y[n // 2 + i]`.

use super::effects;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::sync::Arc;
use taffeta_ast::{Expr, ExprKind, Func, Stmt, StmtKind, Symbol, Tensor};

/// Maximum number of nodes of a definition.
const MAX_NODES: usize = 64;

/// Definitions of local integer scalars. The scalar has one store, which is executed unconditionally in its scope, and
/// the value consists of enclosing iterators, sizes, and elements that the program never writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Definitions(Arc<FxHashMap<Symbol, Expr>>);

thread_local! {
    /// Most recent program with its definitions: many schedule steps are tried on one program.
    static LAST: RefCell<Option<(Stmt, Definitions)>> = const { RefCell::new(None) };
}

impl Definitions {
    /// Returns the definitions of a program, memoised while the program is the same.
    pub(super) fn remembered(func: &Func) -> Definitions {
        LAST.with_borrow_mut(|last| match last {
            Some((body, known)) if body.same_node(&func.body) => known.clone(),
            _ => {
                let new = Definitions::of(func);
                *last = Some((func.body.clone(), new.clone()));
                new
            }
        })
    }

    pub(super) fn of(func: &Func) -> Definitions {
        let any = func.body.any(&mut |s| matches!(s.kind(), StmtKind::VarDef { tensor, .. } if is_int_scalar(tensor)));
        if !any {
            return Definitions::default();
        }
        let mut writes: FxHashMap<Symbol, usize> = FxHashMap::default();
        func.body.walk(&mut |s| match s.kind() {
            StmtKind::Seq(_) | StmtKind::VarDef { .. } | StmtKind::For { .. } | StmtKind::If { .. } => {}
            StmtKind::Store { tensor, .. } => *writes.entry(tensor.clone()).or_default() += 1,
            // Counted twice, as any other write is not a single store.
            _ => effects::writes(s).into_iter().for_each(|t| *writes.entry(t).or_default() += 2),
        });
        let mut found = DefinitionCollector { writes, open: FxHashSet::default(), values: FxHashMap::default() };
        found.visit(&func.body);
        Definitions(Arc::new(found.values))
    }

    /// Returns the definition of a scalar.
    pub(super) fn value(&self, tensor: &Symbol) -> Option<&Expr> {
        self.0.get(tensor)
    }
}

/// Returns whether a tensor is an integer scalar.
fn is_int_scalar(tensor: &Tensor) -> bool {
    tensor.ndim() == 0 && tensor.dtype.is_int()
}

struct DefinitionCollector {
    /// Number of statements that write each tensor.
    writes: FxHashMap<Symbol, usize>,
    /// Scalars whose declaration encloses the current statement without a loop or a branch in between.
    open: FxHashSet<Symbol>,
    values: FxHashMap<Symbol, Expr>,
}

impl DefinitionCollector {
    fn visit(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Seq(all) => all.iter().for_each(|s| self.visit(s)),
            StmtKind::VarDef { tensor, body } => {
                if is_int_scalar(tensor) {
                    self.open.insert(tensor.symbol.clone());
                }
                self.visit(body);
                self.open.remove(&tensor.symbol);
            }
            StmtKind::Store { tensor, value, .. } if self.open.contains(tensor) && self.writes[tensor] == 1 => {
                if let Some(value) = self.fixed(value, &mut 0) {
                    self.values.insert(tensor.clone(), value);
                }
            }
            other => {
                let open = std::mem::take(&mut self.open);
                other.children().into_iter().for_each(|s| self.visit(s));
                self.open = open;
            }
        }
    }

    /// Expresses a value by iterators, sizes and elements that the program never writes, with the definitions of other
    /// scalars substituted. `None` if the value contains other loads, or is too large.
    fn fixed(&self, e: &Expr, nodes: &mut usize) -> Option<Expr> {
        *nodes += 1;
        if *nodes > MAX_NODES {
            return None;
        }
        if let ExprKind::Load(t, _) = e.kind() {
            if let Some(known) = self.values.get(t) {
                known.walk(&mut |_| *nodes += 1);
                return Some(known.clone());
            }
            if self.writes.contains_key(t) {
                return None;
            }
        }
        let mut sound = true;
        let new = e.map_children(&mut |c| {
            self.fixed(c, nodes).unwrap_or_else(|| {
                sound = false;
                c.clone()
            })
        });
        sound.then_some(new)
    }
}
