//! Values of a tensor that come into an iteration of a loop, or leave it: what stands against a tensor of its own for
//! every iteration.

use crate::order;
use crate::tree;
use rustc_hash::FxHashMap;
use taffeta_analysis::query::depend::{Ask, Dependence, Dependences, Relation};
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_ast::{Stmt, StmtId, StmtKind, Symbol};

/// The values of a tensor, among references that hold all of its uses.
pub(crate) struct Flow<'a, 'f> {
    pub all: &'a Dependences<'f>,
    pub tensor: &'a Symbol,
}

/// Whether a reference stands in a loop's body; its bounds are evaluated before.
pub(crate) fn in_body(r: &Reference, l: &Stmt) -> bool {
    r.site.stmt.id() != l.id() && r.site.inside(l.id())
}

impl Flow<'_, '_> {
    /// The dependence by which an iteration of the loop reads what it did not write itself: what earlier iterations
    /// wrote, of this loop or of those around it, or something outside of the loop. What every iteration surely writes
    /// before it reads it comes from nowhere else.
    pub fn entering(&self, l: &Stmt) -> Option<Dependence> {
        let exposed: Vec<&Reference> = self.all.exposed_reads(self.tensor, l).collect();
        if exposed.is_empty() {
            return None;
        }
        // In the scope of the tensor: iterations of what is around that have tensors of their own.
        let declares = |s: &Stmt| matches!(s.kind(), StmtKind::VarDef { tensor, .. } if tensor.symbol == *self.tensor);
        let way = tree::path(&self.all.func().body, l.id()).unwrap_or_default();
        let inside = way.iter().rev().take_while(|s| !declares(s));
        let mut loops = inside.filter(|s| matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. }));
        loops.find_map(|by| self.between(l, by, &exposed)).or_else(|| {
            let before = |r: &Reference| r.kind.writes() && !in_body(r, l);
            self.first(&before, &exposed, &|_| Relation::Any)
        })
    }

    /// The dependence by which an iteration of the loop reads what an earlier one wrote.
    pub fn carried(&self, l: &Stmt) -> Option<Dependence> {
        let exposed: Vec<&Reference> = self.all.exposed_reads(self.tensor, l).collect();
        self.between(l, l, &exposed)
    }

    /// The dependence by which something outside of the loop's body reads what was written in it. A read outside that
    /// surely sees what an iteration of a loop around it alone wrote does not.
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

    /// The dependence of one of the reads on a write in the body of `l`, in an earlier iteration of `by`: `l`, or a
    /// loop around it.
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
        // What a reduction combines it reads, whichever reduction wrote it.
        self.all.first_among(&uses, &Ask { source, sink: &sink, relate, commute: false, ..Ask::default() })
    }
}
