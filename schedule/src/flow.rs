//! Flow of a tensor's values into and out of the iterations of a loop, which prevents `privatize` and `contract` from
//! declaring the tensor in the loop's body.

use crate::order;
use crate::tree;
use rustc_hash::FxHashMap;
use taffeta_analysis::query::depend::{Dependence, DependenceQuery, Dependences, Relation};
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_ast::{Stmt, StmtId, StmtKind, Symbol};

/// Value flow of one tensor. The references in `all` include all of its uses.
pub(crate) struct Flow<'a, 'f> {
    pub all: &'a Dependences<'f>,
    pub tensor: &'a Symbol,
}

/// Returns whether a reference stands in the body of a loop. The loop's bounds are evaluated before the body.
pub(crate) fn in_body(r: &Reference, l: &Stmt) -> bool {
    r.site.stmt.id() != l.id() && r.site.inside(l.id())
}

impl Flow<'_, '_> {
    /// Finds a dependence by which an iteration of the loop reads a value that it did not write: a value of an earlier
    /// iteration, of this loop or of a loop around it, or of a write outside of the loop. Reads surely preceded by a
    /// write of the same element in the same iteration are excluded (kill analysis).
    pub fn entering(&self, l: &Stmt) -> Option<Dependence> {
        let exposed: Vec<&Reference> = self.all.exposed_reads(self.tensor, l).collect();
        if exposed.is_empty() {
            return None;
        }
        // Stops at the tensor's declaration: iterations of the loops around it have tensors of their own.
        let declares = |s: &Stmt| matches!(s.kind(), StmtKind::VarDef { tensor, .. } if tensor.symbol == *self.tensor);
        let way = tree::path(&self.all.func().body, l.id()).unwrap_or_default();
        let inside = way.iter().rev().take_while(|s| !declares(s));
        let mut loops = inside.filter(|s| matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. }));
        loops.find_map(|by| self.between(l, by, &exposed)).or_else(|| {
            let before = |r: &Reference| r.kind.writes() && !in_body(r, l);
            self.first(&before, &exposed, &|_| Relation::Any)
        })
    }

    /// Finds a dependence by which an iteration of the loop reads a value that an earlier iteration wrote.
    pub fn carried(&self, l: &Stmt) -> Option<Dependence> {
        let exposed: Vec<&Reference> = self.all.exposed_reads(self.tensor, l).collect();
        self.between(l, l, &exposed)
    }

    /// Finds a dependence by which a read outside of the loop's body sees a value written inside. Reads that surely see
    /// a write of the same iteration of a loop that does not enclose `l` are excluded.
    pub fn leaving(&self, l: &Stmt) -> Option<Dependence> {
        let mut exposed: FxHashMap<StmtId, Vec<&Reference>> = FxHashMap::default();
        let mut outside: Vec<&Reference> = Vec::new();
        for r in self.all.of(self.tensor).filter(|r| r.kind != Use::Write && !in_body(r, l)) {
            let mut alone = r.site.loops().filter(|(s, _)| tree::find(s, l.id()).is_none());
            let sees = alone.all(|(around, _)| {
                let reads = || self.all.exposed_reads(self.tensor, around).collect();
                exposed.entry(around.id()).or_insert_with(reads).iter().any(|e| e.is(r))
            });
            outside.extend(sees.then_some(r));
        }
        self.first(&|r| r.kind.writes() && in_body(r, l), &outside, &|_| Relation::Any)
    }

    /// Finds a dependence of one of the reads on a write in the body of `l`, in an earlier iteration of `by`, which is
    /// `l` or a loop around it.
    fn between(&self, l: &Stmt, by: &Stmt, reads: &[&Reference]) -> Option<Dependence> {
        let around = order::around(self.all.func(), by.id());
        self.first(&|r| r.kind.writes() && in_body(r, l), reads, &|s| match s.id() {
            id if id == by.id() => Relation::Later,
            id if around.contains(&id) => Relation::Same,
            _ => Relation::Any,
        })
    }

    fn first(
        &self,
        source: &(dyn Fn(&Reference) -> bool + Sync),
        reads: &[&Reference],
        relate: &(dyn Fn(&Stmt) -> Relation + Sync),
    ) -> Option<Dependence> {
        if reads.is_empty() {
            return None;
        }
        let uses: Vec<&Reference> = self.all.of(self.tensor).collect();
        let sink = |r: &Reference| reads.iter().any(|e| e.is(r));
        // A reduction reads the element that it updates, whichever reduction wrote it, so reductions do not commute
        // here.
        self.all.first_among(
            &uses,
            &DependenceQuery { source, sink: &sink, relate, commute: false, ..DependenceQuery::default() },
        )
    }
}
