//! Partial results of reductions in parallel loops: the iterations are divided into parts, one for each possible
//! thread. The first part reduces into an array itself, every other part into a copy, and each part into a scalar of
//! its own, whichever thread runs it.
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

use super::emitter::{Emitter, KernelVariable, Loop, Shared};
use super::types;
use taffeta_ast::stmt::{Distribution, Parallel};
use taffeta_ast::{DType, ReduceOp, Reduction, Sharing, Symbol};

/// An array of which every thread or part has a copy.
pub(super) struct Copied {
    pub tensor: Symbol,
    pub op: ReduceOp,
    pub dtype: DType,
    /// Name of the array.
    pub name: String,
    /// Name of the current copy.
    pub own: String,
    /// Name of the variable with the number of elements.
    pub count: String,
    /// Offset in bytes: the size of the copies before this one.
    pub offset: String,
}

/// A scalar of which every part has its own.
pub(super) struct Scalar {
    pub op: ReduceOp,
    pub dtype: DType,
    pub name: String,
    /// Name of the array of the parts' results.
    pub parts: String,
}

/// Threads with partial results of their own.
pub(super) struct Team {
    /// Variable with the size of one thread's or part's copies in bytes; the first needs none.
    pub bytes: String,
    /// Variable with the number of threads.
    pub threads: String,
    /// Variable with the memory of the copies.
    pub copies: String,
    pub arrays: Vec<Copied>,
    pub scalars: Vec<Scalar>,
    /// Parts of the iterations, which any thread may run; `None` if partial results belong to threads.
    pub parts: Option<Parts>,
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
    pub fn may_be(l: &Loop<'_>) -> bool {
        let plain = |p: &Parallel| p.distribution == Distribution::Static && p.chunk.is_none();
        l.props.parallel.as_ref().is_some_and(plain) && l.bounds[2].as_int() == Some(1)
    }
}

/// Variables that divide a loop's iterations into parts.
pub(super) struct Parts {
    /// Number of the part.
    pub number: String,
    /// First value of the part's iterator, and its end (exclusive).
    pub begin: String,
    pub end: String,
    /// First value of the whole loop's iterator, and the trip count.
    pub first: String,
    pub count: String,
}

impl Emitter<'_> {
    /// Returns whether the rounding of partial results depends on the division of iterations among them.
    pub fn is_rounded(&self, r: &Reduction) -> bool {
        let is_float = self.dtypes.get(&r.tensor).is_some_and(|d| d.is_float());
        r.sharing == Sharing::Partial && is_float && matches!(r.op, ReduceOp::Add | ReduceOp::Mul)
    }

    /// Returns the clauses `reduction(+: a, b)` for the scalars.
    pub fn clauses(&mut self, reductions: &[Reduction]) -> Vec<String> {
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

    /// Plans the partial results of a parallel loop: copies of arrays, whose memory is allocated by the printed lines,
    /// and scalars of which every part has its own. `None` if there are none, or if OpenMP's clauses suffice.
    pub fn copied(&mut self, i: &str, l: &Loop<'_>) -> Option<Team> {
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
            self.out.line(format!("const size_t {copies}_bytes = {copies} != NULL ? {size} : 0;"));
            // Without memory for copies, one thread runs all iterations.
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

    /// Names the variables that divide a loop into parts, and prints the first value and the trip count.
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

    /// Opens the loop over parts, and prints the copies, scalars and bounds of a part; or prints the copies of a
    /// thread.
    pub fn open_copies(&mut self, team: &Team) {
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

    /// Saves the scalars of a part, closes the loop over parts, and prints the combination of the copies, in the order
    /// of threads or parts.
    pub fn combine_copies(&mut self, team: &Team) {
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
    pub fn close_team(&mut self, team: &Team) {
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
