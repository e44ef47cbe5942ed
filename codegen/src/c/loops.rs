//! Loops: sequential, on threads, and on vector lanes.
//!
//! ```text
//! taf_region i_region = taf_fork(taf_threads(ctx));
//! #pragma omp parallel num_threads(i_region.threads)
//! {
//!     taf_enter(&i_region);
//! #pragma omp for schedule(dynamic, 4) nowait
//!     for (int64_t i = 0; i < n; i++) f_i(x, y, i);
//!     taf_leave(&i_region);
//! }
//! taf_join(&i_region);
//! ```
//!
//! The body of a parallel loop is a function of its own (see `outline`). Where threads do not get their cores, a region
//! runs on fewer of them (`taf_fork` in `taffeta_runtime.h`), unless its results depend on their number
//! (`taf_fork_all`).
//!
//! Partial results of reductions are in `partial_results`. In a sequential loop that all threads run (`regions`),
//! parallel loops fork no regions: a barrier follows each.

use super::emitter::{Emitter, ErrorExit, KernelVariable, Loop, Shared};
use super::expr::prec;
use super::partial_results::{Parts, Team};
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::stmt::Parallel;
use taffeta_ast::{Access, Expr, ExprKind, Extent, Op, Sharing, Stmt, StmtKind, Symbol};

/// Maximum number of lines of an outlined body for which a separate single-threaded loop is printed.
const MAX_LINES_TWICE: usize = 60;

/// Maximum number of iterations of a loop over a tile, which polls as one iteration.
const MAX_TILE: i64 = 64;

impl Emitter<'_> {
    pub fn for_loop(&mut self, l: &Loop<'_>) {
        let i = self.names.get(l.iter);
        self.scope.insert(i.clone(), KernelVariable::value(format!("int64_t {i}")));
        let parallel = l.props.parallel.is_some();
        let team = if parallel { self.copied(&i, l) } else { None };
        let (header, first) = match team.as_ref().and_then(|t| t.parts.as_ref()) {
            Some(Parts { begin, end, .. }) => (format!("int64_t {i} = {begin}; {i} < {end}; {i}++"), None),
            None => self.header(&i, l),
        };
        let before = self.shared.clone();
        if parallel {
            for r in l.props.reductions.iter().filter(|r| r.sharing == Sharing::Atomic) {
                self.shared.insert((r.tensor.clone(), r.op), Shared::Atomic);
            }
        }
        let around = if parallel { self.region.take() } else { None };
        let region = (parallel && around.is_none()).then(|| self.open_region(&i, l, team.as_ref()));
        let alone = region.is_some() && team.is_none() && self.may_run_alone(l);
        if let Some(team) = &team {
            self.open_copies(team);
        }
        self.loop_pragma(l, team.as_ref());
        let (start, functions) = (self.out.position(), self.functions.len());
        self.out.open(format!("for ({header}) {{"));
        if let Some(first) = first {
            self.out.line(first);
        }
        let vectorised = std::mem::replace(&mut self.vectorised, l.props.vectorize.is_some());
        let polls = self.polls(&i, l);
        match &polls {
            Some(cond) if parallel => {
                self.out.open(format!("if ({cond}) {{"));
                self.out.line("taf_cancel(ctx);");
                self.out.line("continue;");
                self.out.close("}");
            }
            Some(cond) => self.poll(cond),
            None => {}
        }
        self.loops.push(l.iter.clone());
        let may_fail = match &l.props.parallel {
            None => {
                self.stmt(l.body);
                false
            }
            Some(_) if self.can_outline(l) => self.outlined(&i, l.body),
            Some(_) => self.parallel_body(&i, l.body),
        };
        self.loops.pop();
        self.vectorised = vectorised;
        self.out.close("}");
        let short = self.functions[functions..].iter().all(|f| f.lines().count() <= MAX_LINES_TWICE);
        let once_more = (alone && short).then(|| self.out.since(start));
        if let Some(team) = &team {
            self.combine_copies(team);
        }
        if let Some((region, at)) = &region {
            self.out.line(format!("taf_leave(&{region});"));
            self.out.close("}");
            if let Some(lines) = once_more {
                self.out.close_branch(*at, &format!("if ({region}.threads == 1) {{"), lines);
            }
            self.out.line(format!("taf_join(&{region});"));
        }
        if let Some(team) = &team {
            self.close_team(team);
        }
        self.shared = before;
        if around.is_some() {
            self.region = around;
            self.meet(may_fail);
        } else if may_fail || parallel && polls.is_some() {
            self.out.open("if (taf_failed(ctx)) {");
            self.leave_failed();
            self.out.close("}");
        }
    }

    /// Returns the condition under which an iteration of a loop polls whether the call is cancelled: outermost loops
    /// do, sequential ones over single loops once in 64 iterations. The compiler must see vector loops as they are, and
    /// a region polls for the loops in it (`regions`).
    fn polls(&self, i: &str, l: &Loop<'_>) -> Option<String> {
        if !self.loops.is_empty() || l.props.vectorize.is_some() {
            return None;
        }
        match depth(l.body) {
            0 => None,
            1 if l.props.parallel.is_none() => Some(format!("({i} & 63) == 0 && taf_cancelled(ctx)")),
            _ => Some("taf_cancelled(ctx)".to_string()),
        }
    }

    /// Returns whether one thread can run a loop of few iterations without an OpenMP region, which takes a microsecond
    /// even for one thread.
    fn may_run_alone(&self, l: &Loop<'_>) -> bool {
        let above = l.props.parallel.is_some_and(|p| p.above.is_some());
        above && self.can_outline(l) && l.props.reductions.iter().all(|r| r.sharing != Sharing::Partial)
    }

    /// Prints the fork of a region. Returns its variable, and the position at which its block begins.
    fn open_region(&mut self, i: &str, l: &Loop<'_>, team: Option<&Team>) -> (String, usize) {
        let region = self.names.fresh(&format!("{i}_region"));
        let threads = match (team, self.worth_threads(l)) {
            (Some(team), _) => team.threads.clone(),
            (None, Some(worth)) => format!("{worth} ? taf_threads(ctx) : 1"),
            (None, None) => "taf_threads(ctx)".to_string(),
        };
        let of_threads = team.is_none_or(|t| t.parts.is_none());
        let shows = of_threads && l.props.reductions.iter().any(|r| self.is_rounded(r));
        let fork = if shows { "taf_fork_all" } else { "taf_fork" };
        self.out.line(format!("taf_region {region} = {fork}({threads});"));
        let at = self.out.position();
        self.out.pragma(&format!("omp parallel num_threads({region}.threads)"));
        self.out.open("{");
        self.out.line(format!("taf_enter(&{region});"));
        (region, at)
    }

    /// Prints the head of a loop, and returns it with the first statement of the body, if one is needed.
    fn header(&mut self, i: &str, l: &Loop<'_>) -> (String, Option<String>) {
        let [begin, end, step] = l.bounds;
        let begin_text = self.expr(begin);
        let end_text = self.loop_end(i, end);
        // OpenMP computes the trip count of a parallel loop before it runs, as a difference.
        let one_by_one = |from, to| l.props.parallel.is_none() || self.ranges.is_difference_exact(from, to);
        let header = match step.as_int() {
            Some(1) if one_by_one(begin, end) => (format!("int64_t {i} = {begin_text}; {i} < {end_text}; {i}++"), None),
            Some(-1) if one_by_one(end, begin) => {
                (format!("int64_t {i} = {begin_text}; {i} > {end_text}; {i}--"), None)
            }
            Some(s)
                if s != 0
                    && s.unsigned_abs() < 1 << 32
                    && self.ranges.is_far_from_overflow(begin)
                    && self.ranges.is_far_from_overflow(end) =>
            {
                let (less, add) = if s > 0 { ("<", "+=") } else { (">", "-=") };
                (format!("int64_t {i} = {begin_text}; {i} {less} {end_text}; {i} {add} {}", s.unsigned_abs()), None)
            }
            // Counted by trips, since the iterator after the last step, or the difference of the bounds, could wrap.
            _ => {
                let left = self.names.fresh(&format!("{i}_left"));
                let step_name = self.names.fresh(&format!("{i}_step"));
                let step = self.expr(step);
                self.out.line(format!("const int64_t {step_name} = {step};"));
                if l.props.is_concurrent() {
                    // OpenMP requires a single loop variable.
                    let (start, count) = (self.names.fresh(&format!("{i}_begin")), self.names.fresh(&format!("{i}_k")));
                    self.out.line(format!("const int64_t {start} = {begin_text};"));
                    self.out
                        .line(format!("const int64_t {left} = (int64_t)taf_trips({start}, {end_text}, {step_name});"));
                    (
                        format!("int64_t {count} = 0; {count} < {left}; {count}++"),
                        Some(format!("const int64_t {i} = {start} + {count} * {step_name};")),
                    )
                } else {
                    self.out.line(format!("uint64_t {left} = taf_trips({begin_text}, {end_text}, {step_name});"));
                    (format!("int64_t {i} = {begin_text}; {left} > 0; {i} += {step_name}, {left}--"), None)
                }
            }
        };
        if let Some(s) = step.as_int() {
            self.ranges.iterator(l.iter, begin, end, s);
        }
        header
    }

    /// Prints the end of a loop, in a variable of its own if the loop's body could change its value.
    pub fn loop_end(&mut self, i: &str, end: &Expr) -> String {
        let loads = end.any(&mut |e| matches!(e.kind(), ExprKind::Load(..)));
        let text = self.text(end).at(prec::SUM);
        if !loads {
            return text;
        }
        let name = self.names.fresh(&format!("{i}_end"));
        self.out.line(format!("const int64_t {name} = {text};"));
        name
    }

    /// Returns the condition that a parallel loop has enough iterations for several threads, if the schedule sets a
    /// threshold.
    pub fn worth_threads(&mut self, l: &Loop<'_>) -> Option<String> {
        let above = l.props.parallel?.above?;
        let [begin, end, step] = l.bounds.map(|e| self.expr(e));
        Some(format!("taf_trips({begin}, {end}, {step}) > UINT64_C({above})"))
    }

    fn loop_pragma(&mut self, l: &Loop<'_>, team: Option<&Team>) {
        // For a loop in parts, OpenMP handles the lanes alone.
        let parallel = l.props.parallel.filter(|_| team.is_none_or(|t| t.parts.is_none()));
        if l.props.parallel.is_some() && parallel.is_none() && l.props.vectorize.is_none() {
            return;
        }
        let mut text = String::from("omp");
        if parallel.is_some() {
            text.push_str(" for");
        }
        if l.props.vectorize.is_some() {
            text.push_str(" simd");
        }
        if let Some(parallel) = &parallel {
            text.push_str(&format!(" {}", schedule(parallel)));
        }
        if let Some(width) = l.props.vectorize.and_then(|v| v.width) {
            text.push_str(&format!(" simdlen({width})"));
        }
        if l.props.is_concurrent() {
            for clause in self.clauses(&l.props.reductions) {
                text.push_str(&format!(" {clause}"));
            }
            if parallel.is_some() && team.is_none() {
                text.push_str(" nowait");
            }
            return self.out.pragma(&text);
        }
        if l.props.unroll {
            let [begin, end, step] = l.bounds.map(Expr::clone);
            let length = crate::lower::unroll_length(&Extent::Range { begin, end, step }).unwrap_or(1);
            self.out.pragma(&format!("GCC unroll {}", length.max(1)));
        } else if gathers_rows(l) {
            // gcc's unroll-and-jam would merge two iterations, and then compile the loads of the second one's row as
            // gathers.
            self.out.pragma("GCC unroll 1");
        }
    }

    /// Prints the body of a parallel loop: an error ends the iteration, and iterations that start later do nothing.
    /// Returns whether it may fail.
    fn parallel_body(&mut self, i: &str, body: &Stmt) -> bool {
        let label = self.names.fresh(&format!("next_{i}"));
        let outer = std::mem::replace(&mut self.error_exit, ErrorExit::Goto(label.clone()));
        let outer_leaves = std::mem::take(&mut self.leaves);
        let start = self.out.position();
        self.stmt(body);
        let may_fail = self.leaves > 0;
        if may_fail {
            self.out.insert(start, &format!("if (taf_failed(ctx)) goto {label};"));
            self.out.label(&label);
        }
        self.error_exit = outer;
        self.leaves = outer_leaves;
        may_fail
    }
}

/// Returns the depth of the loops in a statement, without those of a tile.
fn depth(s: &Stmt) -> usize {
    let is_short = |e: &Expr| e.as_int().is_some_and(|trips| trips <= MAX_TILE);
    let own = match s.kind() {
        StmtKind::For { extent: Extent::Range { begin, end, .. }, .. } => {
            let trips = end.minus(begin);
            let least = matches!(trips.kind(), ExprKind::Apply(Op::Min, args) if args.iter().any(is_short));
            usize::from(!least && !is_short(&trips))
        }
        StmtKind::While { .. } => 1,
        _ => 0,
    };
    own + s.kind().inside().map(depth).max().unwrap_or(0)
}

/// Returns whether a loop traverses rows selected by an index array: loops inside use a scalar, read from an integer
/// array, in their indices.
fn gathers_rows(l: &Loop<'_>) -> bool {
    let mut read: FxHashSet<Symbol> = FxHashSet::default();
    l.body.walk(&mut |s| {
        if let StmtKind::Store { tensor, indices, value } = s.kind()
            && indices.is_empty()
            && value.dtype().is_int()
        {
            let from_array = |e: &Expr| matches!(e.kind(), ExprKind::Load(_, at) if !at.is_empty());
            let found = value.any(&mut |e| from_array(e));
            read.extend(found.then(|| tensor.clone()));
        }
    });
    if read.is_empty() {
        return false;
    }
    let gathers = |a: &Access| !effects::loads(&a.index).is_disjoint(&read);
    let mut has_gather = |e: &Expr| matches!(e.kind(), ExprKind::Load(_, at) if at.iter().any(gathers));
    l.body.any(&mut |s| matches!(s.kind(), StmtKind::For { body, .. } if body.any_expr(&mut has_gather)))
}

/// Returns the clause `schedule(dynamic, 4)`. (Loops distributed by stored positions were divided in
/// `structured::lower`.)
fn schedule(p: &Parallel) -> String {
    let chunk = p.chunk.map_or(String::new(), |c| format!(", {c}"));
    format!("schedule({}{chunk})", p.distribution.name())
}
