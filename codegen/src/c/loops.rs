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
//! Partial results: the iterations are divided into parts, one for each possible thread. The first part reduces into an
//! array itself, every other part into a copy, and each part into a scalar of its own, whichever thread runs it.
//!
//! ```text
//! const size_t i_bytes = (sizeof(float) * (size_t)m + 63) / 64 * 64;
//! int i_team = taf_team(ctx, i_bytes);
//! char *i_copies = …
//! taf_region i_region = taf_fork(i_team);
//! #pragma omp parallel num_threads(i_region.threads)
//! {
//! #pragma omp for schedule(static, 1)
//!     for (int i_part = 0; i_part < i_team; i_part++) {
//!         float *y_own = i_part == 0 ? y : (float *)(i_copies + …);
//!         …
//!         double total = -0.0;
//!         for (int64_t i = taf_part(n, i_part, i_team); i < …; i++) { … y_own[j] += …; total += …; }
//!         total_parts[i_part] = total;
//!     }
//! #pragma omp for schedule(static)
//!     for (int64_t k = 0; k < m; k++) …
//! }
//! for (int part = 0; part < i_team; part++) total += total_parts[part];
//! ```
//!
//! Where a schedule assigns iterations to threads, copies of arrays belong to threads in place of parts, and scalars
//! are left to OpenMP (`reduction`). So are scalars without arrays whose reduction is independent of the order.
//!
//! In a sequential loop that all threads run (`regions`), parallel loops fork no regions: a barrier follows each.

use super::emitter::KernelVariable;
use super::emitter::Loop;
pub(super) use super::emitter::Shared;
use super::emitter::{Emitter, ErrorExit};
use super::expr::prec;
use super::types;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::stmt::{Distribution, Parallel};
use taffeta_ast::{Access, DType, Expr, ExprKind, Extent, ReduceOp, Reduction, Sharing, Stmt, StmtKind, Symbol};

/// An array of which every thread or part has a copy.
struct Copied {
    tensor: Symbol,
    op: ReduceOp,
    dtype: DType,
    /// Name of the array.
    name: String,
    /// Name of the current copy.
    own: String,
    /// Name of the variable with the number of elements.
    count: String,
    /// Offset in bytes: the size of the copies before this one.
    offset: String,
}

/// A scalar of which every part has its own.
struct Scalar {
    op: ReduceOp,
    dtype: DType,
    name: String,
    /// Name of the array of the parts' results.
    parts: String,
}

/// Threads with partial results of their own.
struct Team {
    /// Variable with the size of one thread's or part's copies in bytes; the first needs none.
    bytes: String,
    /// Variable with the number of threads.
    threads: String,
    /// Variable with the memory of the copies.
    copies: String,
    arrays: Vec<Copied>,
    scalars: Vec<Scalar>,
    /// Parts of the iterations, which any thread may run; `None` if partial results belong to threads.
    parts: Option<Parts>,
}

impl Team {
    /// Returns the C expression for the number of the part or thread.
    fn number(&self) -> &str {
        self.parts.as_ref().map_or("taf_thread()", |p| &p.number)
    }
}

impl Parts {
    /// Returns whether iterations may be divided into parts: the loop has step 1, and no schedule assigns iterations to
    /// threads.
    fn may_be(l: &Loop<'_>) -> bool {
        let plain = |p: &Parallel| p.distribution == Distribution::Static && p.chunk.is_none();
        l.props.parallel.as_ref().is_some_and(plain) && l.bounds[2].as_int() == Some(1)
    }
}

/// Variables that divide a loop's iterations into parts.
struct Parts {
    /// Number of the part.
    number: String,
    /// First value of the part's iterator, and its end (exclusive).
    begin: String,
    end: String,
    /// First value of the whole loop's iterator, and the trip count.
    first: String,
    count: String,
}

/// Maximum number of lines of an outlined body for which a separate single-threaded loop is printed.
const MAX_LINES_TWICE: usize = 60;

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
        } else if may_fail {
            self.out.open("if (taf_failed(ctx)) {");
            self.leave_failed();
            self.out.close("}");
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

    /// Returns whether the rounding of partial results depends on the division of iterations among them.
    fn is_rounded(&self, r: &Reduction) -> bool {
        let is_float = self.dtypes.get(&r.tensor).is_some_and(|d| d.is_float());
        r.sharing == Sharing::Partial && is_float && matches!(r.op, ReduceOp::Add | ReduceOp::Mul)
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

    /// Returns the clauses `reduction(+: a, b)` for the scalars.
    fn clauses(&mut self, reductions: &[Reduction]) -> Vec<String> {
        let mut by_name: Vec<(String, Vec<String>)> = Vec::new();
        for r in reductions.iter().filter(|r| r.sharing == Sharing::Partial) {
            let Some(dtype) = self.dtypes.get(&r.tensor).copied() else {
                unreachable!("Scope: `{}` is not declared", r.tensor)
            };
            if self.counts.contains_key(&r.tensor) {
                continue;
            }
            let (clause, name) = (self.clause(r.op, dtype), self.names.get(&r.tensor));
            match by_name.iter_mut().find(|(c, _)| *c == clause) {
                Some((_, names)) => names.push(name),
                None => by_name.push((clause, vec![name])),
            }
        }
        by_name.into_iter().map(|(c, names)| format!("reduction({c}: {})", names.join(", "))).collect()
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

    /// Plans the partial results of a parallel loop: copies of arrays, whose memory is allocated by the printed lines,
    /// and scalars of which every part has its own. `None` if there are none, or if OpenMP's clauses suffice.
    fn copied(&mut self, i: &str, l: &Loop<'_>) -> Option<Team> {
        let mut arrays: Vec<Copied> = Vec::new();
        let bytes = self.names.fresh(&format!("{i}_bytes"));
        let mut offset = "0".to_string();
        let mut scalars: Vec<Scalar> = Vec::new();
        for r in l.props.reductions.iter().filter(|r| r.sharing == Sharing::Partial) {
            let Some(dtype) = self.dtypes.get(&r.tensor).copied() else {
                unreachable!("Scope: `{}` is not declared", r.tensor)
            };
            let Some(count) = self.counts.get(&r.tensor).cloned() else {
                let name = self.names.get(&r.tensor);
                scalars.push(Scalar { op: r.op, dtype, parts: String::new(), name });
                continue;
            };
            let name = self.names.get(&r.tensor);
            let own = self.names.fresh(&format!("{name}_own"));
            let (count_name, end) =
                (self.names.fresh(&format!("{name}_count")), self.names.fresh(&format!("{name}_end")));
            let value = self.expr(&count);
            self.out.line(format!("const int64_t {count_name} = {value};"));
            let size = format!("((size_t){count_name} * sizeof({}) + 63) / 64 * 64", types::stored(dtype));
            let before = if offset == "0" { String::new() } else { format!("{offset} + ") };
            self.out.line(format!("const size_t {end} = {before}{size};"));
            let (tensor, op) = (r.tensor.clone(), r.op);
            arrays.push(Copied { tensor, op, dtype, name, own, count: count_name, offset });
            offset = end;
        }
        let in_parts =
            Parts::may_be(l) && (!arrays.is_empty() || l.props.reductions.iter().any(|r| self.is_rounded(r)));
        if arrays.is_empty() && !in_parts {
            return None;
        }
        let (threads, copies) = (self.names.fresh(&format!("{i}_team")), self.names.fresh(&format!("{i}_copies")));
        let alone = self.worth_threads(l).map_or(String::new(), |worth| format!("!({worth}) ? 1 : "));
        if arrays.is_empty() {
            self.out.line(format!("const int {threads} = {alone}taf_threads(ctx);"));
        } else {
            self.out.line(format!("const size_t {bytes} = {offset};"));
            self.out.line(format!("int {threads} = {alone}taf_team(ctx, {bytes});"));
            let size = format!("(size_t)({threads} - 1) * {bytes}");
            self.out.line(format!("char *{copies} = {threads} > 1 ? (char *)taf_heap_take(ctx, {size}) : NULL;"));
            // Without memory for copies, one thread runs all iterations.
            self.out.line(format!("const size_t {copies}_bytes = {copies} != NULL ? {size} : 0;"));
            self.out.line(format!("if ({copies} == NULL) {threads} = 1;"));
        }
        let parts = if in_parts { Some(self.parts(i, l)) } else { None };
        if parts.is_none() {
            scalars.clear();
        }
        for s in &mut scalars {
            s.parts = self.names.fresh(&format!("{}_parts", s.name));
            self.out.line(format!("{} {}[TAFFETA_MAX_THREADS];", types::stored(s.dtype), s.parts));
        }
        Some(Team { bytes, threads, copies, arrays, scalars, parts })
    }

    /// Prints the variables that divide the iterations of a loop into parts.
    fn parts(&mut self, i: &str, l: &Loop<'_>) -> Parts {
        let [begin, end, _] = l.bounds;
        let mut name = |what: &str| self.names.fresh(&format!("{i}_{what}"));
        let [number, first, count] = ["part", "first", "count"].map(&mut name);
        let [from, to] = ["begin", "end"].map(name);
        let (begin_text, end_text) = (self.expr(begin), self.expr(end));
        self.out.line(format!("const int64_t {first} = {begin_text};"));
        self.out.line(format!("const int64_t {count} = (int64_t)taf_trips({first}, {end_text}, 1);"));
        self.ranges.iterator(l.iter, begin, end, 1);
        Parts { number, begin: from, end: to, first, count }
    }

    /// Prints the copies of a thread or part.
    fn open_copies(&mut self, team: &Team) {
        let Team { bytes, threads, copies, arrays, scalars, parts } = team;
        if let Some(Parts { number, .. }) = parts {
            let last = if arrays.is_empty() { " nowait" } else { "" };
            self.out.pragma(&format!("omp for schedule(static, 1){last}"));
            self.out.open(format!("for (int {number} = 0; {number} < {threads}; {number}++) {{"));
        }
        let number = team.number();
        for c in arrays {
            let Copied { tensor, op, dtype, name, own, count, offset } = c;
            let t = types::stored(*dtype);
            let at = format!("{copies} + (size_t)({number} - 1) * {bytes} + {offset}");
            self.out.line(format!("{t} *{own} = {number} == 0 ? {name} : ({t} *)({at});"));
            let k = self.names.fresh("k");
            let start = self.neutral(*op, *dtype);
            self.out
                .line(format!("if ({number} > 0) for (int64_t {k} = 0; {k} < {count}; {k}++) {own}[{k}] = {start};"));
            self.scope.insert(own.clone(), KernelVariable::value(format!("{t} *restrict {own}")));
            self.shared.insert((tensor.clone(), *op), Shared::Copy(own.clone()));
        }
        for Scalar { op, dtype, name, .. } in scalars {
            let start = self.neutral(*op, *dtype);
            self.out.line(format!("{} {name} = {start};", types::stored(*dtype)));
        }
        if let Some(Parts { number, begin, end, first, count }) = parts {
            self.out.line(format!("const int64_t {begin} = {first} + taf_part({count}, {number}, {threads});"));
            self.out.line(format!("const int64_t {end} = {first} + taf_part({count}, {number} + 1, {threads});"));
        }
    }

    /// Prints the combination of the copies, in the order of threads or parts.
    fn combine_copies(&mut self, team: &Team) {
        let Team { bytes, threads, copies, arrays, scalars, parts } = team;
        let mut many = "taf_team_size()";
        if let Some(Parts { number, .. }) = parts {
            for Scalar { name, parts, .. } in scalars {
                self.out.line(format!("{parts}[{number}] = {name};"));
            }
            self.out.close("}");
            many = threads;
        }
        for (n, c) in arrays.iter().enumerate() {
            let Copied { op, dtype, name, count, offset, .. } = c;
            let t = types::stored(*dtype);
            let (k, other) = (self.names.fresh("k"), self.names.fresh(if parts.is_some() { "part" } else { "thread" }));
            let last = if n + 1 == arrays.len() { " nowait" } else { "" };
            self.out.pragma(&format!("omp for schedule(static){last}"));
            self.out.open(format!("for (int64_t {k} = 0; {k} < {count}; {k}++) {{"));
            self.out.open(format!("for (int {other} = 1; {other} < {many}; {other}++) {{"));
            let element = format!("(({t} *)({copies} + (size_t)({other} - 1) * {bytes} + {offset}))[{k}]");
            let text = self.combine(*op, *dtype, &format!("{name}[{k}]"), &element);
            self.out.line(text);
            self.out.close("}");
            self.out.close("}");
        }
    }

    /// Prints the combination of the scalars of all parts, in order, and frees the copies.
    fn close_team(&mut self, team: &Team) {
        let Team { threads, copies, arrays, scalars, .. } = team;
        for Scalar { op, dtype, name, parts } in scalars {
            let part = self.names.fresh("part");
            self.out.open(format!("for (int {part} = 0; {part} < {threads}; {part}++) {{"));
            let text = self.combine(*op, *dtype, name, &format!("{parts}[{part}]"));
            self.out.line(text);
            self.out.close("}");
        }
        if !arrays.is_empty() {
            self.out.line(format!("if ({copies} != NULL) taf_heap_give(ctx, {copies}, {copies}_bytes);"));
        }
    }
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
