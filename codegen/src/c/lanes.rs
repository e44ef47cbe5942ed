//! Arrays in vector registers, the loops over their lanes, and vectorised sums (see `lower/register_arrays`).
//!
//! ```text
//! taf_f32x16 acc[2];
//! acc[0] += a[k] * *(const taf_f32x16_at *)&b[k * 32];
//! acc[1] += a[k] * *(const taf_f32x16_at *)&b[k * 32 + 16];
//! ```

use super::emitter::Emitter;
use super::emitter::Shared;
use super::expr::{Text, prec};
use crate::lower::{at, gathers, is_sum, parts};
use taffeta_analysis::query::effects;
use taffeta_ast::expr::Access;
use taffeta_ast::{DType, Expr, ExprKind, Op, ReduceOp, Stmt, StmtKind, Symbol, Tensor};

/// Number of vectors of partial sums per sum: an addition has a latency of about four cycles, and one can start in
/// each.
const CHAINS: i64 = 4;
/// Minimum length of a row for vectorised gathers, where row lengths are unpredictable.
const SHORT_ROW: i64 = 32;
/// Maximum number of elements of a list for predictable row lengths: branch predictors learn some thousands of
/// branches.
const LONG_LIST: i64 = 1 << 18;

/// A loop over lanes: its iterator, first value and end (exclusive).
#[derive(Clone, Copy)]
pub(super) struct LaneLoop<'s> {
    pub iter: &'s Symbol,
    pub begin: i64,
    pub end: i64,
}

/// One vector of a loop over lanes.
struct Lane<'s> {
    iter: &'s Symbol,
    /// Value of the iterator in the first lane.
    first: Expr,
    dtype: DType,
    lanes: i64,
}

impl Emitter<'_> {
    /// Declares an array of vectors.
    pub fn vectors(&mut self, name: &str, tensor: &Tensor) {
        let (of_type, lanes) = self.vector_type(tensor.dtype);
        let Some(count) = tensor.shape.first().and_then(Expr::as_int) else {
            unreachable!("Placed: the length of `{name}` is not known");
        };
        self.out.line(format!("{of_type} {name}[{}];", count / lanes));
    }

    fn vector_type(&mut self, dtype: DType) -> (String, i64) {
        let lanes = self.lowered.vectors().bytes / dtype.size();
        (self.helpers.vector(dtype, lanes), lanes as i64)
    }

    /// Prints a loop over lanes: every statement of its body, once for each vector.
    pub fn lane_loop(&mut self, over: LaneLoop<'_>, body: &Stmt) {
        match body.kind() {
            StmtKind::Seq(v) => v.iter().for_each(|s| self.lane_loop(over, s)),
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.expr(cond);
                self.out.open(format!("if ({cond}) {{"));
                self.lane_loop(over, then);
                if let Some(otherwise) = otherwise.as_ref().filter(|o| !o.is_nop()) {
                    self.out.reopen("} else {");
                    self.lane_loop(over, otherwise);
                }
                self.out.close("}");
            }
            StmtKind::Store { .. } | StmtKind::ReduceTo { .. } => {
                self.lane_stmt(over.iter, (&Expr::int(over.begin), over.end - over.begin), body);
            }
            StmtKind::VarDef { .. }
            | StmtKind::For { .. }
            | StmtKind::While { .. }
            | StmtKind::Assert { .. }
            | StmtKind::Assume { .. }
            | StmtKind::Print { .. }
            | StmtKind::Call { .. } => unreachable!("lower/register_arrays: other statements in a loop over lanes"),
        }
    }

    /// Prints a store or an update of elements for `count` iterations from `first` on, in vectors.
    fn lane_stmt(&mut self, iter: &Symbol, (first, count): (&Expr, i64), s: &Stmt) {
        self.show(s);
        let (tensor, indices, value, operator) = match s.kind() {
            StmtKind::Store { tensor, indices, value } => (tensor, indices, value, "="),
            StmtKind::ReduceTo { tensor, indices, op: ReduceOp::Add, value } => (tensor, indices, value, "+="),
            StmtKind::ReduceTo { tensor, indices, op: ReduceOp::Mul, value } => (tensor, indices, value, "*="),
            _ => unreachable!("lower/register_arrays: other statements in a loop over lanes"),
        };
        // Name of the thread's copy of the array.
        let own = match s.kind() {
            StmtKind::ReduceTo { op, .. } => match self.shared.get(&(tensor.clone(), *op)) {
                Some(Shared::Copy(own)) => Some(own.clone()),
                Some(Shared::Atomic) => unreachable!("lower/register_arrays: `{tensor}` is updated atomically"),
                None => None,
            },
            _ => None,
        };
        let dtype = value.dtype();
        let (of_type, lanes) = self.vector_type(dtype);
        for k in 0..count / lanes {
            let lane = Lane { iter, first: first.plus(&Expr::int(k * lanes)), dtype, lanes };
            let target = self.lane_element(&lane, own.clone(), tensor, indices, false);
            let text = self.lane_vector(&lane, value, &of_type);
            self.out.line(format!("{target} {operator} {text};"));
        }
    }

    /// Prints the vector of elements that starts at the first lane.
    fn lane_element(
        &mut self,
        lane: &Lane<'_>,
        name: Option<String>,
        tensor: &Symbol,
        indices: &[Access],
        read: bool,
    ) -> String {
        let name = name.unwrap_or_else(|| self.names.get(tensor));
        let [a] = indices else { unreachable!("Flat: {} indices of `{tensor}`", indices.len()) };
        let index = at(&a.index, lane.iter, &lane.first);
        if self.lowered.vectors().arrays.contains(tensor) {
            let Some(first) = index.as_int() else {
                unreachable!("lower/register_arrays: part of a vector of `{tensor}`")
            };
            return format!("{name}[{}]", first / lane.lanes);
        }
        let of_type = self.helpers.vector(lane.dtype, lane.lanes as usize);
        let index = self.expr(&index);
        let constant = if read { "const " } else { "" };
        format!("*({constant}{of_type}_at *)&{name}[{index}]")
    }

    /// Prints a value as a vector.
    fn lane_vector(&mut self, lane: &Lane<'_>, value: &Expr, of_type: &str) -> String {
        match self.lane_value(lane, value) {
            (text, true) => text.text,
            // Subtracting 0 broadcasts a scalar and changes no value, not even -0.
            (text, false) => format!("{} - ({of_type}){{0}}", text.at(prec::SUM)),
        }
    }

    /// Prints a vectorised summing loop: partial sums in vectors, at least four at a time as independent dependence
    /// chains, and then a scalar loop for the remainder.
    ///
    /// ```text
    /// taf_f32x16 dot_lanes[4]; …
    /// for (; c + 64 <= d; c += 64) { dot_lanes[0] += …; dot_lanes[1] += …; … }
    /// for (; c + 16 <= d; c += 16) dot_lanes[0] += …;
    /// dot += taf_sum_f32x16(dot_lanes[0]);
    /// for (; c < d; c++) dot += …;
    /// ```
    ///
    /// Stores beside the sums are in vectors too, statement by statement.
    ///
    /// Gathers dominate the time of a loop, so one vector of partial sums is enough there. Such loops traverse the rows
    /// of a matrix, many of which are too short for a whole vector. In the short rows of a large matrix, the branches
    /// at the end of the vectors are mispredicted, which costs more than the vectors gain.
    ///
    /// ```text
    /// if (p + (A_n1 > 262144 ? 32 : 4) <= end) {
    ///     taf_f64x4 y_lanes[1]; …
    ///     for (; p + 4 <= end; p += 4) y_lanes[0] += *(const taf_f64x4_at *)&val[p] * (taf_f64x4){x[crd[p]], x[crd[p + 1]], …};
    ///     y += taf_sum_f64x4(y_lanes[0]);
    /// }
    /// for (; p < end; p++) y += …;
    /// ```
    pub fn summing_loop(&mut self, iter: &Symbol, [begin, end]: [&Expr; 2], body: &Stmt) {
        let i = self.names.get(iter);
        self.scope.insert(i.clone(), super::emitter::KernelVariable::value(format!("int64_t {i}")));
        let parts = parts(body);
        let summing: Vec<&Stmt> = parts.iter().copied().filter(|s| is_sum(s)).collect();
        self.out.open("{");
        let (first, last) = (self.expr(begin), self.text(end).at(prec::SUM));
        self.ranges.iterator(iter, begin, end, 1);
        self.out.line(format!("int64_t {i} = {first};"));
        let lanes = parts.iter().map(|s| self.vector_type(computed(s).dtype()).1).max().unwrap_or(1);
        let length = begin.as_int().zip(end.as_int()).map(|(b, e)| e.saturating_sub(b).max(0));
        let gathering = parts.iter().any(|s| gathers(computed(s), iter));
        // Several sums are independent chains themselves.
        let most = if gathering || summing.len() as i64 >= CHAINS { 1 } else { CHAINS };
        if gathering {
            let least = match self.list_of(&parts, iter).filter(|_| length.is_none() && lanes < SHORT_ROW) {
                Some(list) => format!("({} > {LONG_LIST} ? {SHORT_ROW} : {lanes})", self.text(&list).at(prec::SUM)),
                None => lanes.to_string(),
            };
            self.out.open(format!("if ({i} + {least} <= {last}) {{"));
        }
        let sums: Vec<(String, String)> = summing.iter().map(|s| self.start_sum(s, most)).collect();
        for chains in [CHAINS, 1].into_iter().filter(|c| *c <= most) {
            let step = lanes * chains;
            let left = length.map(|l| if chains < most { l % (lanes * CHAINS) } else { l });
            if left.is_some_and(|l| l < step) {
                continue;
            }
            self.out.open(format!("for (; {i} + {step} <= {last}; {i} += {step}) {{"));
            let mut into = sums.iter();
            for s in &parts {
                match is_sum(s).then(|| into.next()).flatten() {
                    Some(sum) => self.add_lanes((iter, step), s, sum, most),
                    None => self.lane_stmt(iter, (&Expr::var(iter), step), s),
                }
            }
            self.out.close("}");
        }
        self.finish_sums(&summing, &sums, most);
        if gathering {
            self.out.close("}");
        }
        if length.is_none_or(|l| l % lanes != 0) {
            self.out.open(format!("for (; {i} < {last}; {i}++) {{"));
            self.stmt(body);
            self.out.close("}");
        }
        self.out.close("}");
    }

    /// Prints the additions of `step` iterations' values to partial sums.
    fn add_lanes(&mut self, (iter, step): (&Symbol, i64), s: &Stmt, (sum, of_type): &(String, String), chains: i64) {
        let value = computed(s);
        self.show(s);
        let lanes = self.vector_type(value.dtype()).1;
        for k in 0..step / lanes {
            let first = Expr::var(iter).plus(&Expr::int(k * lanes));
            let lane = Lane { iter, first, dtype: value.dtype(), lanes };
            let text = self.lane_vector(&lane, value, of_type);
            self.out.line(format!("{sum}[{}] += {text};", k % chains));
        }
    }

    /// Returns the length of the index list, a parameter, by which sums gather elements.
    fn list_of(&self, parts: &[&Stmt], iter: &Symbol) -> Option<Expr> {
        let mut found = None;
        for s in parts {
            computed(s).walk(&mut |e| {
                if let ExprKind::Load(_, at) = e.kind()
                    && gathers(e, iter)
                {
                    found = found.clone().or_else(|| effects::loads(&at[0].index).into_iter().min());
                }
            });
        }
        let params = self.lowered.func().params.iter();
        params.map(|p| &p.tensor).find(|t| Some(&t.symbol) == found.as_ref())?.shape.first().cloned()
    }

    /// Prints the horizontal sums of partial sums; those of four statements are computed together.
    fn finish_sums(&mut self, parts: &[&Stmt], sums: &[(String, String)], chains: i64) {
        let whole = |sum: &String| match chains {
            1 => format!("{sum}[0]"),
            _ => format!("({sum}[0] + {sum}[1]) + ({sum}[2] + {sum}[3])"),
        };
        let wholes: Vec<String> = sums.iter().map(|(sum, _)| whole(sum)).collect();
        let types: Vec<DType> = parts.iter().map(|s| summed(s).2.dtype()).collect();
        let mut four = None;
        if let [dtype, rest @ ..] = types.as_slice()
            && rest.len() == 3
            && rest.iter().all(|t| t == dtype)
            && let (dtype, lanes @ 4..) = (*dtype, self.vector_type(*dtype).1 as usize)
        {
            let name = self.names.fresh("sums");
            let (by_halves, of_four) = (self.helpers.four_horizontal_sums(dtype, lanes), self.helpers.vector(dtype, 4));
            self.out.line(format!("const {of_four} {name} = {by_halves}({});", wholes.join(", ")));
            four = Some(name);
        }
        for (k, ((s, whole), dtype)) in parts.iter().zip(wholes).zip(types).enumerate() {
            let (tensor, indices, _) = summed(s);
            let target = self.element(tensor, indices).text;
            let value = match &four {
                Some(name) => format!("{name}[{k}]"),
                None => {
                    let lanes = self.vector_type(dtype).1 as usize;
                    format!("{}({whole})", self.helpers.horizontal_sum(dtype, lanes))
                }
            };
            self.out.line(format!("{target} += {value};"));
        }
    }

    /// Declares the partial sums of a statement, and returns their name and type. They start from -0, so that an empty
    /// sum changes nothing.
    fn start_sum(&mut self, s: &Stmt, chains: i64) -> (String, String) {
        let (tensor, _, value) = summed(s);
        let (of_type, _) = self.vector_type(value.dtype());
        let wish = format!("{}_lanes", self.names.get(tensor));
        let name = self.names.fresh(&wish);
        let zero = super::types::literal(taffeta_ast::expr::Literal::Float(-0.0), value.dtype(), true);
        let start = vec![format!("{zero} - ({of_type}){{0}}"); chains as usize].join(", ");
        self.out.line(format!("{of_type} {name}[{chains}] = {{{start}}};"));
        (name, of_type)
    }

    /// Prints a value, and returns whether it is a vector; a scalar stands for all lanes.
    fn lane_value(&mut self, lane: &Lane<'_>, e: &Expr) -> (Text, bool) {
        let varies = e.any(&mut |e| match e.kind() {
            ExprKind::Var(v) => v == lane.iter,
            ExprKind::Load(t, _) => self.lowered.vectors().arrays.contains(t),
            _ => false,
        });
        if !varies {
            return (self.text(e), false);
        }
        match e.kind() {
            ExprKind::Load(t, indices) if gathers(e, lane.iter) => {
                let of_type = self.helpers.vector(lane.dtype, lane.lanes as usize);
                let [a] = indices.as_slice() else { unreachable!("Flat: {} indices", indices.len()) };
                let elements: Vec<String> = (0..lane.lanes)
                    .map(|k| {
                        let index = at(&a.index, lane.iter, &lane.first.plus(&Expr::int(k)));
                        let access = Access { index, ..a.clone() };
                        self.expr(&Expr::load(t, vec![access], e.dtype()))
                    })
                    .collect();
                (Text::new(format!("({of_type}){{{}}}", elements.join(", ")), prec::UNARY), true)
            }
            ExprKind::Load(t, indices) => {
                let text = self.lane_element(lane, None, t, indices, true);
                (Text::new(text, prec::UNARY), true)
            }
            ExprKind::Cast(inner) => {
                let narrow =
                    Lane { iter: lane.iter, first: lane.first.clone(), dtype: inner.dtype(), lanes: lane.lanes };
                let text = self.lane_value(&narrow, inner).0.text;
                let of_type = self.helpers.vector(lane.dtype, lane.lanes as usize);
                (Text::new(format!("__builtin_convertvector({text}, {of_type})"), prec::PRIMARY), true)
            }
            ExprKind::Apply(Op::Neg, args) => {
                let text = self.lane_value(lane, &args[0]).0.at(prec::UNARY + 1);
                (Text::new(format!("-{text}"), prec::UNARY), true)
            }
            ExprKind::Apply(op, args) => {
                let (sign, level) = match op {
                    Op::Add => ("+", prec::SUM),
                    Op::Sub => ("-", prec::SUM),
                    Op::Mul => ("*", prec::PRODUCT),
                    Op::Div => ("/", prec::PRODUCT),
                    other => unreachable!("lower/lanes: `{}` of vectors", other.info().name),
                };
                let (a, b) = (self.lane_value(lane, &args[0]).0, self.lane_value(lane, &args[1]).0);
                (Text::new(format!("{} {sign} {}", a.at(level), b.at(level + 1)), level), true)
            }
            ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Measure(..) => {
                unreachable!("lower/lanes: the number of a lane")
            }
        }
    }
}

/// Returns the value that a statement stores or adds.
fn computed(s: &Stmt) -> &Expr {
    match s.kind() {
        StmtKind::Store { value, .. } | StmtKind::ReduceTo { value, .. } => value,
        _ => unreachable!("lower/register_arrays: other statements in a summing loop"),
    }
}

/// Returns the element of a sum, and the value added to it.
fn summed(s: &Stmt) -> (&Symbol, &[Access], &Expr) {
    match s.kind() {
        StmtKind::ReduceTo { tensor, indices, op: ReduceOp::Add, value } => (tensor, indices, value),
        _ => unreachable!("lower/register_arrays: other statements in a summing loop"),
    }
}
