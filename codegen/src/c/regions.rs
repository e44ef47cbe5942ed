//! Sequential loops that all threads run inside one parallel region, with a barrier after every parallel loop
//! (`lower/regions`).
//!
//! ```text
//! int64_t t_next = 0;
//! while (t_next < steps) {
//!     if (taf_cancelled(ctx)) return taf_cancel(ctx);
//!     const int64_t t_first = t_next;
//!     taf_region t_region = taf_fork(taf_threads(ctx));
//! #pragma omp parallel num_threads(t_region.threads)
//!     {
//!         int64_t t_meetings = 0;
//!         taf_enter(&t_region);
//!         int64_t t = t_first;
//!         do {
//! #pragma omp for schedule(static) nowait
//!             for (int64_t i = 0; i < n; i++) f_i(a, b, i);
//!             taf_meet(&t_region, &t_meetings);
//!             if (taf_thread() == 0) f_t_alone(b, c, t);
//!             taf_meet(&t_region, &t_meetings);
//!             t++;
//!         } while (t < steps && !taf_pauses(ctx, &t_region, t_meetings));
//!         if (taf_thread() == 0) t_next = t;
//!         taf_leave(&t_region);
//!     }
//!     taf_join(&t_region);
//! }
//! ```
//!
//! A single-threaded part is a function of its own, as bodies of parallel loops are (see `outline`). If such a part or
//! a parallel loop may fail, all threads learn of the error at the next barrier, and leave:
//!
//! ```text
//!             if (taf_meet_failed(ctx, &t_region, &t_meetings)) goto t_end;
//! ```

use super::emitter::KernelVariable;
use super::emitter::Loop;
use super::emitter::Region;
use super::emitter::{Emitter, ErrorExit};
use crate::lower::RegionPart;
use indexmap::IndexSet;
use taffeta_ast::{Extent, Origin, Stmt, StmtKind};

impl Emitter<'_> {
    /// Prints a loop that all threads run; returns false if its bounds or step do not permit that.
    pub fn region(&mut self, l: &Loop<'_>) -> bool {
        let [begin, end, step] = l.bounds;
        let Some(step) = step.as_int().filter(|s| s.unsigned_abs() < 1 << 32) else { return false };
        if step.unsigned_abs() != 1
            && !(self.ranges.is_far_from_overflow(begin) && self.ranges.is_far_from_overflow(end))
        {
            return false;
        }
        let less = if step > 0 { "<" } else { ">" };
        let i = self.names.get(l.iter);
        self.scope.insert(i.clone(), KernelVariable::value(format!("int64_t {i}")));
        let mut fresh = |what: &str| self.names.fresh(&format!("{i}_{what}"));
        let [next, first] = ["next", "first"].map(&mut fresh);
        let [name, meetings, label] = ["region", "meetings", "end"].map(fresh);
        let begin_text = self.expr(begin);
        let end_text = self.loop_end(&i, end);
        let threads = self.region_threads(l.body);
        self.ranges.iterator(l.iter, begin, end, step);

        self.out.line(format!("int64_t {next} = {begin_text};"));
        self.out.open(format!("while ({next} {less} {end_text}) {{"));
        self.poll("taf_cancelled(ctx)");
        self.out.line(format!("const int64_t {first} = {next};"));
        self.out.line(format!("taf_region {name} = taf_fork({threads});"));
        self.out.pragma(&format!("omp parallel num_threads({name}.threads)"));
        self.out.open("{");
        self.out.line(format!("int64_t {meetings} = 0;"));
        self.out.line(format!("taf_enter(&{name});"));
        self.out.line(format!("int64_t {i} = {first};"));
        self.out.open("do {");

        let exit = std::mem::replace(&mut self.error_exit, ErrorExit::Goto(label.clone()));
        let outer_leaves = std::mem::take(&mut self.leaves);
        self.region = Some(Region { iter: i.clone(), name: name.clone(), meetings: meetings.clone(), end: label });
        self.loops.push(l.iter.clone());
        self.stmt(l.body);
        self.loops.pop();
        let Some(Region { end: label, .. }) = self.region.take() else { unreachable!("regions do not nest") };
        let may_fail = self.leaves > 0;
        (self.error_exit, self.leaves) = (exit, outer_leaves);

        self.out.line(match step {
            1 => format!("{i}++;"),
            -1 => format!("{i}--;"),
            s => format!("{i} {} {};", if s > 0 { "+=" } else { "-=" }, s.unsigned_abs()),
        });
        self.out.close(&format!("}} while ({i} {less} {end_text} && !taf_pauses(ctx, &{name}, {meetings}));"));
        self.out.line(format!("if (taf_thread() == 0) {next} = {i};"));
        if may_fail {
            self.out.label(&label);
        }
        self.out.line(format!("taf_leave(&{name});"));
        self.out.close("}");
        self.out.line(format!("taf_join(&{name});"));
        if may_fail {
            self.out.open("if (taf_failed(ctx)) {");
            self.leave_failed();
            self.out.close("}");
        }
        self.out.close("}");
        true
    }

    /// Returns the number of threads: all if any of the parallel loops is worth it.
    fn region_threads(&mut self, body: &Stmt) -> String {
        let (mut worth, mut all) = (IndexSet::new(), false);
        body.walk(&mut |s| {
            if let StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } = s.kind()
                && props.parallel.is_some()
            {
                match self.worth_threads(&Loop { iter, bounds: [begin, end, step], props, body }) {
                    Some(some) => drop(worth.insert(some)),
                    None => all = true,
                }
            }
        });
        match (all, worth.len()) {
            (true, _) | (false, 0) => "taf_threads(ctx)".to_string(),
            _ => format!("{} ? taf_threads(ctx) : 1", Vec::from_iter(worth).join(" || ")),
        }
    }

    /// Prints a sequence directly in a region.
    pub fn sequence_in_region(&mut self, v: &[Stmt]) {
        let parts = self.lowered.regions().parts(v);
        let last = parts.len();
        for (k, part) in parts.into_iter().enumerate() {
            match part {
                RegionPart::All(s) => self.in_block(s, k + 1 == last),
                RegionPart::One(v) => self.alone(v),
            }
        }
    }

    /// Prints statements that one thread runs while others wait.
    pub fn alone(&mut self, v: &[Stmt]) {
        let Some(region) = self.region.take() else { unreachable!("outside of a region") };
        let all = Stmt::seq(v.iter().cloned(), Origin::none());
        let start = self.out.position();
        let may_fail = self.outlined(&format!("{}_alone", region.iter), &all);
        // The call is a single line, so the prefix guards all of it.
        self.out.prefix(start, "if (taf_thread() == 0) ");
        self.region = Some(region);
        self.meet(may_fail);
    }

    /// Prints a barrier, with an error exit if the preceding statement may fail.
    pub fn meet(&mut self, may_fail: bool) {
        let Some(Region { name, meetings, end, .. }) = self.region.clone() else { unreachable!("outside of a region") };
        if may_fail {
            self.leaves += 1;
            self.out.line(format!("if (taf_meet_failed(ctx, &{name}, &{meetings})) goto {end};"));
        } else {
            self.out.line(format!("taf_meet(&{name}, &{meetings});"));
        }
    }
}
