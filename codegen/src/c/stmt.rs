//! Statements. Loops are in `loops`, reductions in `reduce`, error exits in `emitter`.

use super::emitter::KernelVariable;
use super::emitter::Loop;
use super::emitter::{Emitter, ErrorExit, Storage};
use super::expr::prec;
use super::lanes::LaneLoop;
use super::types;
use super::writer::{comment, format_text, string};
use crate::lower::first_value;
use taffeta_ast::stmt::{AssertKind, Memory, Message, MessagePart};
use taffeta_ast::{Access, DType, Expr, Extent, PrintPart, Stmt, StmtKind, Tensor};

impl Emitter<'_> {
    /// Prints a statement inside the current block.
    pub fn stmt(&mut self, s: &Stmt) {
        if self.region.is_some() && !self.lowered.regions().parallel.contains(&s.id()) {
            return self.alone(std::slice::from_ref(s));
        }
        match s.kind() {
            StmtKind::Seq(v) => self.sequence(v),
            StmtKind::VarDef { tensor, body } => self.var_def(s, tensor, body),
            StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } => {
                self.show(s);
                if props.library && self.library(s) {
                    return;
                }
                if self.lowered.vectors().loops.contains(&s.id())
                    && let (Some(begin), Some(end)) = (begin.as_int(), end.as_int())
                {
                    return self.lane_loop(LaneLoop { iter, begin, end }, body);
                }
                if self.lowered.vectors().sums.contains(&s.id())
                    && self.ranges.is_far_from_overflow(begin)
                    && self.ranges.is_far_from_overflow(end)
                {
                    return self.summing_loop(iter, [begin, end], body);
                }
                let l = Loop { iter, bounds: [begin, end, step], props, body };
                if !self.lowered.regions().loops.contains(&s.id()) || !self.region(&l) {
                    self.for_loop(&l);
                }
            }
            StmtKind::If { cond, then, otherwise } => {
                self.show(s);
                self.branch((cond, then, otherwise.as_ref()), "if");
            }
            StmtKind::Store { tensor, indices, value } => {
                self.show(s);
                self.carried = self.is_carried(tensor, indices);
                let target = self.element(tensor, indices).text;
                let value = self.stored(value);
                self.carried = false;
                self.out.line(format!("{target} = {value};"));
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                self.show(s);
                self.carried = self.is_carried(tensor, indices);
                self.reduce(tensor, indices, *op, value);
                self.carried = false;
            }
            StmtKind::Assert { cond, message, kind } => {
                self.show(s);
                self.assert(s, cond, message, *kind);
            }
            StmtKind::Print { parts } => {
                self.show(s);
                self.print(parts);
            }
            // Assumptions print no code.
            StmtKind::Assume { .. } => {}
            StmtKind::While { cond, body } => {
                self.show(s);
                let cond = self.expr(cond);
                self.out.open(format!("while ({cond}) {{"));
                self.stmt(body);
                self.out.close("}");
            }
            StmtKind::Call { routine, tensors, operands } => {
                self.show(s);
                self.routine(s, *routine, tensors, operands);
            }
            StmtKind::For { iter, extent: Extent::Reals, .. } => unreachable!("Plain: `{iter}` runs over the reals"),
        }
    }

    fn sequence(&mut self, v: &[Stmt]) {
        if self.region.is_some() {
            return self.sequence_in_region(v);
        }
        v.iter().enumerate().for_each(|(k, s)| self.in_block(s, k + 1 == v.len()));
    }

    /// Prints a statement of a block. A declaration before other statements gets a block of its own, which ends its
    /// scope.
    pub fn in_block(&mut self, s: &Stmt, last: bool) {
        if matches!(s.kind(), StmtKind::VarDef { .. }) && !last {
            self.out.open("{");
            self.stmt(s);
            self.out.close("}");
        } else {
            self.stmt(s);
        }
    }

    /// Prints the source line of a statement as a comment, unless it is the one printed last.
    pub fn show(&mut self, s: &Stmt) {
        let span = s.origin().span();
        if span.is_none() {
            return;
        }
        let text = comment(&format!("{}: {}", self.sources.locate(span), self.sources.line_text(span).trim()));
        if text != self.shown {
            self.out.line(&text);
            self.shown = text;
        }
    }

    fn branch(&mut self, (cond, then, otherwise): (&Expr, &Stmt, Option<&Stmt>), how: &str) {
        let cond = self.expr(cond);
        let head = format!("{how} ({cond}) {{");
        if how == "if" {
            self.out.open(head)
        } else {
            self.out.reopen(&head)
        }
        self.stmt(then);
        if let Some(next) = otherwise {
            if let StmtKind::If { cond, then, otherwise } = next.kind() {
                return self.branch((cond, then, otherwise.as_ref()), "} else if");
            }
            if !next.is_nop() {
                self.out.reopen("} else {");
                self.stmt(next);
            }
        }
        self.out.close("}");
    }

    fn var_def(&mut self, s: &Stmt, tensor: &Tensor, body: &Stmt) {
        self.show(s);
        let t = self.names.get(&tensor.symbol);
        let c = types::stored(tensor.dtype);
        self.dtypes.insert(tensor.symbol.clone(), tensor.dtype);
        if let Some(count) = tensor.shape.first() {
            self.counts.insert(tensor.symbol.clone(), count.clone());
            self.scope.insert(t.clone(), KernelVariable::value(format!("{c} *restrict {t}")));
        }
        if body.is_nop() {
            // The tensor is unused, but its sizes are checked (`pass::dead`).
            return self.check_local(s, tensor, None);
        }
        match tensor.memory {
            Memory::Auto => unreachable!("Placed: `{t}` has no place"),
            Memory::Register => {
                self.declare(&tensor.symbol, Storage::Variable);
                if let Some((value, rest)) = first_value(&tensor.symbol, body) {
                    let value = self.stored(value);
                    self.scope.insert(t.clone(), KernelVariable::scalar(format!("{c} {t}"), &t));
                    self.out.line(format!("{c} {t} = {value};"));
                    return self.sequence(rest);
                }
                self.scope.insert(t.clone(), KernelVariable::scalar(format!("{c} {t}"), &t));
                self.out.line(format!("{c} {t};"));
            }
            Memory::Stack if self.lowered.vectors().arrays.contains(&tensor.symbol) => {
                self.declare(&tensor.symbol, Storage::Array);
                self.vectors(&t, tensor);
            }
            Memory::Stack => {
                let Some(count) = tensor.shape.first().and_then(Expr::as_int).map(|n| n.max(1)) else {
                    unreachable!("Placed: the length of `{t}` is not known");
                };
                let aligned = if count * tensor.dtype.size() as i64 >= 64 { "TAFFETA_ALIGNED " } else { "" };
                self.declare(&tensor.symbol, Storage::Array);
                self.out.line(format!("{aligned}{c} {t}[{count}];"));
            }
            Memory::Arena => {
                self.declare(&tensor.symbol, Storage::Array);
                self.check_local(s, tensor, None);
                let at = self.offset(&tensor.symbol);
                let of_thread = self.lowered.slots().iter().any(|s| s.of_thread && s.tensor.symbol == tensor.symbol);
                let part =
                    if of_thread { "plan->threads_at + (size_t)taf_thread() * plan->thread_bytes + " } else { "" };
                self.out.line(format!("{c} *restrict {t} = ({c} *)(arena + {part}plan->{at});"));
            }
            Memory::Heap if self.is_resizable(&tensor.symbol, body) => return self.resizable(s, tensor, body),
            Memory::Heap => return self.heap(s, tensor, &t, body),
        }
        self.stmt(body);
    }

    /// Prints a tensor that is allocated here and freed at the end of its scope, on error exits too.
    fn heap(&mut self, s: &Stmt, tensor: &Tensor, t: &str, body: &Stmt) {
        self.declare(&tensor.symbol, Storage::Array);
        let c = types::stored(tensor.dtype);
        let bytes = self.names.fresh(&format!("{t}_bytes"));
        self.out.line(format!("size_t {bytes};"));
        self.check_local(s, tensor, Some(&bytes));
        self.out.line(format!("{c} *restrict {t} = ({c} *)taf_heap_take(ctx, {bytes});"));
        self.out.open(format!("if ({t} == NULL) {{"));
        let text = format!("no memory for the %zu bytes of `{}`", format_text(tensor.symbol.name()));
        self.fail(s.origin(), "TAFFETA_ERROR_MEMORY", &text, std::slice::from_ref(&bytes));
        self.out.close("}");

        let label = self.names.fresh(&format!("free_{t}"));
        let outer = std::mem::replace(&mut self.error_exit, ErrorExit::Goto(label.clone()));
        let outer_leaves = std::mem::take(&mut self.leaves);
        self.stmt(body);
        let left = self.leaves > 0;
        self.error_exit = outer;
        self.leaves = outer_leaves;
        if left {
            self.out.label(&label);
        }
        self.out.line(format!("taf_heap_give(ctx, {t}, {bytes});"));
        if left {
            self.out.open("if (taf_failed(ctx)) {");
            self.leave_failed();
            self.out.close("}");
        }
    }

    /// Prints the check that the sizes of a local tensor are not negative and their product fits; nothing where that is
    /// known and no byte count is needed.
    pub(super) fn check_local(&mut self, s: &Stmt, tensor: &Tensor, bytes: Option<&str>) {
        let lowered = self.lowered;
        let shape = lowered.local_shape(&tensor.symbol);
        // Arguments were checked, so a shape made of their sizes fits too.
        let fits = self.ranges.fits(shape) || lowered.interface().iter().any(|t| t.has_sizes(shape));
        if fits && bytes.is_none() {
            return;
        }
        let sizes: Vec<String> = shape.iter().map(|d| self.dim(d)).collect();
        let (site, line) = self.site(s.origin());
        let place = self.location(s.origin());
        let out = bytes.map_or("NULL".to_string(), |b| format!("&{b}"));
        let dims = sizes.join(", ");
        self.out.open(format!(
            "if (!taf_local(ctx, {site}, {line}, {}, {}, (const int64_t[]){{{dims}}}, {}, sizeof({}), {out})) {{",
            string(&place),
            string(tensor.symbol.name()),
            sizes.len(),
            types::stored(tensor.dtype),
        ));
        self.leave_failed();
        self.out.close("}");
    }

    fn assert(&mut self, s: &Stmt, cond: &Expr, message: &Message, kind: AssertKind) {
        let status = match kind {
            AssertKind::Program => "TAFFETA_ERROR_ASSERT",
            AssertKind::Index => "TAFFETA_ERROR_INDEX",
            AssertKind::Storage => "TAFFETA_ERROR_MISFIT",
            AssertKind::Arithmetic => "TAFFETA_ERROR_ARITHMETIC",
            AssertKind::Finite => "TAFFETA_ERROR_NONFINITE",
        };
        let cond = self.text(cond);
        let negated = match cond.text.strip_prefix('!') {
            Some(inner) if cond.prec == prec::UNARY => inner.to_string(),
            _ => format!("!{}", cond.at(prec::UNARY)),
        };
        self.out.open(format!("if ({negated}) {{"));
        let mut format = String::new();
        let mut values = Vec::new();
        if message.is_empty() {
            format.push_str("assertion failed");
        }
        for part in message {
            match part {
                MessagePart::Text(text) => format.push_str(&format_text(text)),
                MessagePart::Value(e) => {
                    let (conversion, value) = self.shown_value(e);
                    format.push_str(conversion);
                    values.push(value);
                }
            }
        }
        self.fail(s.origin(), status, &format, &values);
        self.out.close("}");
    }

    /// Prints a value for a message, formatted as by the interpreter.
    fn shown_value(&mut self, e: &Expr) -> (&'static str, String) {
        let text = self.text(e);
        match e.dtype() {
            DType::Bool => ("%s", format!("{} ? \"True\" : \"False\"", text.at(prec::OR))),
            DType::F64 => ("%s", format!("taf_show((char[32]){{0}}, {}, false)", text.text)),
            d if d.is_float() => ("%s", format!("taf_show((char[32]){{0}}, {}, true)", text.text)),
            d if d.is_unsigned_int() => ("%llu", format!("(unsigned long long){}", text.at(prec::UNARY))),
            _ => ("%lld", format!("(long long){}", text.at(prec::UNARY))),
        }
    }

    /// Prints the code that assembles a line and prints it.
    fn print(&mut self, parts: &[PrintPart]) {
        let line = self.names.fresh("line");
        self.out.open("{");
        self.out.line(format!("taf_line {line} = {{NULL, 0, 0}};"));
        for part in parts {
            match part {
                PrintPart::Text(text) => {
                    self.out.line(format!("taf_line_text(&{line}, {}, {});", string(text), text.len()));
                }
                PrintPart::Value(e) => {
                    let (conversion, value) = self.shown_value(e);
                    self.out.line(format!("taf_line_value(&{line}, \"{conversion}\", {value});"));
                }
                PrintPart::Tensor { tensor, at, shape } => {
                    let first: Vec<Access> = at.iter().cloned().map(Access::from).collect();
                    let first = self.element(tensor, &first).text;
                    let dims: Vec<String> = shape.iter().map(|d| self.expr(d)).collect();
                    let dtype = types::abi(self.dtypes[tensor]);
                    let (count, dims) = (dims.len(), dims.join(", "));
                    let dims = format!("(const int64_t[]){{{dims}}}");
                    self.out.line(format!("taf_line_tensor(&{line}, &{first}, {dtype}, {count}, {dims});"));
                }
            }
        }
        self.out.line(format!("taf_print(ctx, &{line});"));
        self.out.close("}");
    }
}
