//! Scopes that end before the last use of a scalar set in them are extended to that use: the statements after such a
//! scalar are then in one block with it, where cases can be split (`split_selects`, `fill_cases`).
//!
//! ```text
//! t = x[i]                                        t = x[i]
//! r = A[k[i]] * t                                 r = A[k[i]] * t
//! del t                                    →      y[i] += r * z[i]
//! y[i] += r * z[i]                                del t
//! ```

use super::split_selects::given_here;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, Stmt, StmtKind, Symbol};

/// Extends scopes to the last use of the scalars set in them.
pub(super) fn extended(s: &Stmt) -> Stmt {
    if let StmtKind::Seq(all) = s.kind()
        && let Some(k) = ends_early(all)
    {
        let StmtKind::VarDef { body, .. } = all[k].kind() else { unreachable!("only declarations end early") };
        let longer = extended(&Stmt::seq([body].into_iter().chain(&all[k + 1..]).cloned(), s.origin().clone()));
        let declared = all[k].map(&mut |_| longer.clone(), &mut Expr::clone);
        return Stmt::seq(all[..k].iter().map(extended).chain([declared]), s.origin().clone());
    }
    s.map(&mut extended, &mut Expr::clone)
}

/// Returns the first declaration that sets an outer scalar in its own block, if the scalar is read after it.
fn ends_early(all: &[Stmt]) -> Option<usize> {
    let is_declaration = |s: &Stmt| matches!(s.kind(), StmtKind::VarDef { .. });
    // Reads count for declarations before them only; so a chain of scopes, each at the end of another, is visited once.
    let earliest = all.iter().position(is_declaration)?;
    let (mut read, mut first) = (FxHashSet::default(), None);
    for (k, s) in all.iter().enumerate().skip(earliest).rev() {
        if is_declaration(s) {
            let mut given: Vec<Symbol> = Vec::new();
            given_here(s, &mut given);
            first = if given.iter().any(|t| read.contains(t)) { Some(k) } else { first };
        }
        if k > earliest {
            read.extend(effects::reads_by_others(s));
        }
    }
    first
}
