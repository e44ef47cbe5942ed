//! Records of how loops are lowered, for `taffeta show --explain`, and the count of order violations.

use super::cursor::{Cursor, PATH, shift_of};
use super::exprs::{first_effect, load};
use super::state::EnclosingLoop;
use super::state::{Bindings, Lower};
use crate::explain::{Explained, FibreRole, Operand, Visited, length};
use taffeta_analysis::query::effects;
use taffeta_ast::{Access, Expr, Extent, Stmt, StmtKind, Symbol};

/// Maximum number of cursors whose minimal sets are enumerated, out of all `2^n`; of more, each is listed alone.
const MAX_REPORTED: usize = 4;

impl Lower {
    /// Counts order violations: outer levels indexed by a loop that is nested inside the loop of an inner level
    /// ([`super::Structured::order_violations`]). `around`: iterators, outermost first.
    pub(super) fn order_violations(&self, s: &Stmt, around: &mut Vec<Symbol>) -> usize {
        let mut found = 0;
        let mut look = |e: &Expr| {
            let Some((tensor, at)) = load(e).and_then(|(t, at)| Some((&self.fibres.get(t)?.0, at))) else { return };
            let levels = self.tensors[tensor].levels.len();
            let depth = |a: &Access| around.iter().rposition(|i| effects::mentions(&a.index, &[i]));
            let mut last = 0;
            for depth in at[PATH..PATH + levels].iter().filter_map(depth) {
                found += usize::from(depth < last);
                last = last.max(depth);
            }
        };
        crate::access::exprs(s).iter().for_each(|e| e.walk(&mut look));
        let iter = match s.kind() {
            StmtKind::For { iter, .. } => Some(iter.clone()),
            _ => None,
        };
        around.extend(iter.clone());
        found += s.kind().children().into_iter().map(|s| self.order_violations(s, around)).sum::<usize>();
        iter.inspect(|_| drop(around.pop()));
        found
    }

    /// Opens the record of a loop with structured accesses, to which operands are added until [`Lower::close_record`].
    pub(super) fn open_record(&mut self, s: &Stmt, iter: &Symbol, extent: &Extent, body: &Stmt, inside: &Bindings) {
        let mut here: Vec<(Symbol, Expr)> = Vec::new();
        let (mut accessed, written) = (false, effects::writes(body));
        body.walk(&mut |s| {
            for e in crate::access::exprs(s) {
                e.walk(&mut |e| {
                    let Some((t, at)) = load(e).filter(|(t, _)| self.fibres.contains_key(*t)) else { return };
                    accessed = true;
                    let own = shift_of(&at[PATH].index, iter, inside, &written).is_some() && self.is_known(e, inside);
                    if own && self.position(e).is_some() {
                        here.push((t.clone(), at[0].index.clone()));
                    }
                });
            }
        });
        let iterations = match extent {
            Extent::Range { begin, end, step } if step.as_int() == Some(1) => Some(end.minus(begin)),
            _ => None,
        };
        let iterations = iterations.map(|n| taffeta_ast::print::expr(&n));
        let (depth, span) = (self.around.iter().filter(|k| k.is_some()).count(), s.origin().span());
        self.around.push(accessed.then(|| EnclosingLoop {
            number: self.explained.len(),
            recorded: Vec::new(),
            trip_count_recorded: false,
        }));
        if accessed {
            let (iter, operands) = (iter.name().to_string(), Vec::new());
            let visited = Visited::Every;
            self.explained.push(Explained { iter, span, depth, operands, visited, iterations, effect_on_fill: None });
            here.into_iter().for_each(|(fibre, first)| self.record_fibre(&fibre, &first, FibreRole::Located));
        }
    }

    /// Closes the record that [`Lower::open_record`] opened.
    pub(super) fn close_record(&mut self) {
        self.around.pop();
    }

    /// Records the role of a fibre at this position in the innermost loop, unless one is recorded already.
    pub(super) fn record_fibre(&mut self, fibre: &Symbol, first: &Expr, role: FibreRole) {
        let Some(Some(around)) = self.around.last_mut() else { return };
        let key = (fibre.clone(), first.clone());
        if around.recorded.contains(&key) {
            return;
        }
        around.recorded.push(key);
        let (tensor, k) = self.fibres[fibre].clone();
        let level = self.tensors[&tensor].levels[k].level;
        let operand = Operand { tensor: tensor.name().to_string(), number: k, level, role };
        self.explained[around.number].operands.push(operand);
    }

    /// Records the role of a cursor in the innermost loop.
    pub(super) fn record_role(&mut self, cursor: &Cursor, role: FibreRole) {
        self.record_fibre(&cursor.fibre, &cursor.above.positions.first, role);
    }

    /// Records the coordinates that the innermost loop visits.
    pub(super) fn record_visited(&mut self, body: &Stmt, cursors: &[Cursor]) {
        let Some(Some(EnclosingLoop { number: k, .. })) = self.around.last() else { return };
        let k = *k;
        if let Some(effect) = first_effect(&self.filled(body, cursors)) {
            self.explained[k].effect_on_fill = Some(effect.origin().span());
            return;
        }
        self.explained[k].visited = Visited::Stored(self.needed(body, cursors));
    }

    /// Returns the minimal sets of cursors such that the body has an effect where exactly the cursors of the set store
    /// an element: `{a, b}` for a product, `{a}` and `{b}` for a sum.
    fn needed(&self, body: &Stmt, cursors: &[Cursor]) -> Vec<Vec<String>> {
        let name = |c: &Cursor| self.tensor_of(c).name().to_string();
        if cursors.len() > MAX_REPORTED {
            return cursors.iter().map(|c| vec![name(c)]).collect();
        }
        let mut sets: Vec<u32> = (1..1 << cursors.len()).collect();
        sets.sort_by_key(|set| set.count_ones());
        let mut found: Vec<u32> = Vec::new();
        for set in sets {
            let has = |k: usize| set & (1 << k) != 0;
            let without = (0..cursors.len()).filter(|k| !has(*k)).map(|k| &cursors[k]);
            if found.iter().all(|smaller| smaller & set != *smaller) && !self.filled(body, without).is_nop() {
                found.push(set);
            }
        }
        let names = |set: &u32| (0..cursors.len()).filter(|k| set & (1 << k) != 0).map(|k| name(&cursors[k])).collect();
        found.iter().map(names).collect()
    }

    /// Records the trip count of the innermost loop, which these fibres drive.
    pub(super) fn record_trip_count(&mut self, cursors: &[&Cursor], role: FibreRole) {
        let Some(Some(around)) = self.around.last_mut() else { return };
        // Later calls are about a part of the loop, with other drivers.
        if std::mem::replace(&mut around.trip_count_recorded, true) {
            return;
        }
        let k = around.number;
        let all: Option<Vec<String>> = cursors.iter().map(|c| self.expected_length(c)).collect();
        let text = all.map(|all| match (role, &all[..]) {
            (FibreRole::Leaps, [one, rest @ ..]) if rest.iter().all(|l| l == one) => format!("at most 2 * {one}"),
            (FibreRole::Leaps, all) => format!("at most 2 * min({})", all.join(", ")),
            (FibreRole::Merged, [one, rest @ ..]) if !rest.is_empty() && rest.iter().all(|l| l == one) => {
                format!("at most {} * {one}", all.len())
            }
            (FibreRole::Merged, [_, _, ..]) => format!("at most {}", all.join(" + ")),
            (_, all) => all.join(" + "),
        });
        if self.explained[k].effect_on_fill.is_none() {
            self.explained[k].iterations = text;
        }
    }

    /// Returns the average number of positions of a cursor's fibre.
    fn expected_length(&self, cursor: &Cursor) -> Option<String> {
        let (tensor, k) = &self.fibres[&cursor.fibre];
        let levels = &self.tensors[tensor].levels;
        let above = k.checked_sub(1).map_or(Expr::int(1), |up| levels[up].positions.clone());
        length(tensor.name(), &levels[*k], &above, &levels.last()?.positions)
    }
}
