//! Statements.
//!
//! An error leaves by `return` where nothing has to be given back, by `goto` to the end of the scope of a heap tensor
//! (which frees it and goes on leaving), and out of an iteration of a parallel loop by `goto` to its end, where the
//! status in the context tells the other threads and, after the loop, the function. Loops are in `loops`, reductions in
//! `reduce`.

use super::expr::prec;
use super::helpers::Helpers;
use super::lanes::LaneLoop;
use super::loops::{Loop, Shared};
use super::names::Names;
use super::outline::Outer;
use super::ranges::Ranges;
use super::types;
use super::writer::{Writer, comment, format_text, string};
use crate::lower::{Lowered, first_value};
use crate::signature::{Site, SourceRange};
use indexmap::IndexSet;
use rustc_hash::FxHashMap;
use taffeta_ast::stmt::{AssertKind, Memory, Message, MessagePart};
use taffeta_ast::{
    Access, DType, Expr, Extent, Origin, PrintPart, ReduceOp, SourceMap, Stmt, StmtKind, Symbol, Tensor,
};

/// How a tensor's elements are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// A scalar in a variable.
    Variable,
    /// A scalar behind a pointer.
    Pointer,
    /// An array or a pointer to the first element.
    Array,
}

/// How an error leaves the present place.
#[derive(Clone, Debug)]
pub(super) enum ErrorExit {
    /// `return` with the status.
    Return,
    /// `return` from the body of a parallel loop.
    Stop,
    /// `goto` the label.
    Goto(String),
}

/// The state of printing one program.
pub(super) struct Emitter<'a> {
    pub lowered: &'a Lowered,
    sources: &'a SourceMap,
    pub names: Names,
    pub helpers: Helpers,
    pub ranges: Ranges,
    pub out: Writer,
    pub sites: IndexSet<Site>,
    /// Whether there are matrix products.
    pub products: bool,
    places: FxHashMap<Symbol, Storage>,
    pub dtypes: FxHashMap<Symbol, DType>,
    /// The number of elements of arrays.
    pub counts: FxHashMap<Symbol, Expr>,
    /// How reductions are kept apart in the parallel loop around.
    pub shared: FxHashMap<(Symbol, ReduceOp), Shared>,
    /// The members of the plan that say where tensors lie in the arena.
    pub offsets: FxHashMap<Symbol, String>,
    pub error_exit: ErrorExit,
    /// How often an error leaves by the present `leave`.
    pub leaves: usize,
    /// The comment that was printed last.
    pub shown: String,
    /// Whether the loop around is on vector lanes.
    pub vectorised: bool,
    /// The variables of the kernel, by name.
    pub scope: FxHashMap<String, Outer>,
    /// The bodies of parallel loops.
    pub functions: Vec<String>,
}

impl<'a> Emitter<'a> {
    pub fn new(lowered: &'a Lowered, sources: &'a SourceMap) -> Emitter<'a> {
        Emitter {
            lowered,
            sources,
            names: Names::default(),
            helpers: Helpers::default(),
            ranges: Ranges::default(),
            out: Writer::default(),
            sites: IndexSet::new(),
            products: false,
            places: FxHashMap::default(),
            dtypes: FxHashMap::default(),
            counts: FxHashMap::default(),
            shared: FxHashMap::default(),
            offsets: FxHashMap::default(),
            error_exit: ErrorExit::Return,
            leaves: 0,
            shown: String::new(),
            vectorised: false,
            scope: FxHashMap::default(),
            functions: Vec::new(),
        }
    }

    /// Says how the elements of a parameter or result are named.
    pub fn declare(&mut self, tensor: &Symbol, place: Storage) {
        self.places.insert(tensor.clone(), place);
    }

    pub fn place(&self, tensor: &Symbol) -> Storage {
        self.places.get(tensor).copied().unwrap_or(Storage::Array)
    }

    /// The member of the plan that says where a tensor lies in the arena.
    pub fn offset(&self, tensor: &Symbol) -> String {
        self.offsets.get(tensor).cloned().unwrap_or_default()
    }

    /// A statement inside the present block.
    pub fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Seq(v) => v.iter().enumerate().for_each(|(k, s)| self.in_block(s, k + 1 == v.len())),
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
                    && self.ranges.is_tame(begin)
                    && self.ranges.is_tame(end)
                {
                    return self.summing_loop(iter, [begin, end], body);
                }
                self.for_loop(&Loop { iter, bounds: [begin, end, step], props, body });
            }
            StmtKind::If { .. } => {
                self.show(s);
                self.branch(s, "if");
            }
            StmtKind::Store { tensor, indices, value } => {
                self.show(s);
                let target = self.element(tensor, indices).text;
                let value = self.stored(value);
                self.out.line(format!("{target} = {value};"));
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                self.show(s);
                self.reduce(tensor, indices, *op, value);
            }
            StmtKind::Assert { cond, message, kind } => {
                self.show(s);
                self.assert(s, cond, message, *kind);
            }
            StmtKind::Print { parts } => {
                self.show(s);
                self.print(parts);
            }
            // An assumption is for the analysis. Refused before lowering: library calls, reals, structured tensors.
            StmtKind::Assume { .. }
            | StmtKind::While { .. }
            | StmtKind::Eval { .. }
            | StmtKind::For { extent: Extent::Reals, .. } => {}
        }
    }

    /// A declaration that is not the last statement ends before the block does.
    fn in_block(&mut self, s: &Stmt, last: bool) {
        if matches!(s.kind(), StmtKind::VarDef { .. }) && !last {
            self.out.open("{");
            self.stmt(s);
            self.out.close("}");
        } else {
            self.stmt(s);
        }
    }

    /// The source line of a statement, where it is another one than that above.
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

    fn branch(&mut self, s: &Stmt, how: &str) {
        let StmtKind::If { cond, then, otherwise } = s.kind() else { return };
        let cond = self.expr(cond);
        let head = format!("{how} ({cond}) {{");
        if how == "if" {
            self.out.open(head)
        } else {
            self.out.reopen(&head)
        }
        self.stmt(then);
        match otherwise {
            Some(next) if matches!(next.kind(), StmtKind::If { .. }) => return self.branch(next, "} else if"),
            Some(next) if !next.is_nop() => {
                self.out.reopen("} else {");
                self.stmt(next);
            }
            _ => {}
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
            self.scope.insert(t.clone(), Outer::value(format!("{c} *restrict {t}")));
        }
        match tensor.memory {
            Memory::Auto | Memory::Register => {
                self.declare(&tensor.symbol, Storage::Variable);
                if let Some((value, rest)) = first_value(&tensor.symbol, body) {
                    let value = self.stored(value);
                    self.scope.insert(t.clone(), Outer::scalar(format!("{c} {t}"), &t));
                    self.out.line(format!("{c} {t} = {value};"));
                    rest.iter().enumerate().for_each(|(k, s)| self.in_block(s, k + 1 == rest.len()));
                    return;
                }
                self.scope.insert(t.clone(), Outer::scalar(format!("{c} {t}"), &t));
                self.out.line(format!("{c} {t};"));
            }
            Memory::Stack if self.lowered.vectors().arrays.contains(&tensor.symbol) => self.vectors(&t, tensor),
            Memory::Stack => {
                let count = tensor.shape.first().and_then(Expr::as_int).unwrap_or(1).max(1);
                let aligned = if count * tensor.dtype.size() as i64 >= 64 { "TAFFETA_ALIGNED " } else { "" };
                self.declare(&tensor.symbol, Storage::Array);
                self.out.line(format!("{aligned}{c} {t}[{count}];"));
            }
            Memory::Arena => {
                self.declare(&tensor.symbol, Storage::Array);
                self.check_local(s, tensor, None);
                let at = self.offset(&tensor.symbol);
                self.out.line(format!("{c} *restrict {t} = ({c} *)(arena + plan->{at});"));
            }
            Memory::Heap => return self.heap(s, tensor, &t, body),
        }
        self.stmt(body);
    }

    /// A tensor that is allocated here and freed where its scope ends, whatever happens between.
    fn heap(&mut self, s: &Stmt, tensor: &Tensor, t: &str, body: &Stmt) {
        self.declare(&tensor.symbol, Storage::Array);
        let c = types::stored(tensor.dtype);
        let bytes = self.names.fresh(&format!("{t}_bytes"));
        self.out.line(format!("size_t {bytes};"));
        self.check_local(s, tensor, Some(&bytes));
        self.out.line(format!("{c} *restrict {t} = ({c} *)wf_heap_take(ctx, {bytes});"));
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
        self.out.line(format!("wf_heap_give(ctx, {t}, {bytes});"));
        if left {
            self.out.open("if (wf_failed(ctx)) {");
            self.leave_failed();
            self.out.close("}");
        }
    }

    /// The sizes of a local tensor are not negative, and their product fits; nothing where that is known.
    fn check_local(&mut self, s: &Stmt, tensor: &Tensor, bytes: Option<&str>) {
        let lowered = self.lowered;
        let shape = lowered.local_shape(&tensor.symbol);
        // Arguments were checked, so a part of their dimensions fits too.
        let part = |whole: &Tensor| {
            let mut left: Vec<&Expr> = whole.shape.iter().collect();
            shape.iter().all(|d| left.iter().position(|l| *l == d).map(|k| left.swap_remove(k)).is_some())
        };
        let fits = self.ranges.fits(shape) || lowered.interface().iter().any(|t| part(t));
        if fits && bytes.is_none() {
            return;
        }
        let sizes: Vec<String> = shape.iter().map(|d| self.dim(d)).collect();
        let (site, line) = self.site(s.origin());
        let place = self.location(s.origin());
        let out = bytes.map_or("NULL".to_string(), |b| format!("&{b}"));
        let dims = sizes.join(", ");
        self.out.open(format!(
            "if (!wf_local(ctx, {site}, {line}, {}, {}, (const int64_t[]){{{dims}}}, {}, sizeof({}), {out})) {{",
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

    /// A value in a message, printed as the interpreter prints it.
    fn shown_value(&mut self, e: &Expr) -> (&'static str, String) {
        let text = self.text(e);
        match e.dtype() {
            DType::Bool => ("%s", format!("{} ? \"True\" : \"False\"", text.at(prec::OR))),
            DType::F64 => ("%s", format!("wf_show((char[32]){{0}}, {}, false)", text.text)),
            d if d.is_float() => ("%s", format!("wf_show((char[32]){{0}}, {}, true)", text.text)),
            d if d.is_unsigned_int() => ("%llu", format!("(unsigned long long){}", text.at(prec::UNARY))),
            _ => ("%lld", format!("(long long){}", text.at(prec::UNARY))),
        }
    }

    /// Puts a line together and prints it.
    fn print(&mut self, parts: &[PrintPart]) {
        let line = self.names.fresh("line");
        self.out.open("{");
        self.out.line(format!("wf_line {line} = {{NULL, 0, 0}};"));
        for part in parts {
            match part {
                PrintPart::Text(text) => {
                    self.out.line(format!("wf_line_text(&{line}, {}, {});", string(text), text.len()));
                }
                PrintPart::Value(e) => {
                    let (conversion, value) = self.shown_value(e);
                    self.out.line(format!("wf_line_value(&{line}, \"{conversion}\", {value});"));
                }
                PrintPart::Tensor { tensor, at, shape } => {
                    let first: Vec<Access> = at.iter().cloned().map(Access::from).collect();
                    let first = self.element(tensor, &first).text;
                    let dims: Vec<String> = shape.iter().map(|d| self.expr(d)).collect();
                    let dtype = types::abi(self.dtypes[tensor]);
                    let (count, dims) = (dims.len(), dims.join(", "));
                    let dims = format!("(const int64_t[]){{{dims}}}");
                    self.out.line(format!("wf_line_tensor(&{line}, &{first}, {dtype}, {count}, {dims});"));
                }
            }
        }
        self.out.line(format!("wf_print(ctx, &{line});"));
        self.out.close("}");
    }

    /// Records an error and leaves.
    fn fail(&mut self, origin: &Origin, status: &str, format: &str, values: &[String]) {
        let (site, line) = self.site(origin);
        let place = self.location(origin);
        let whole = if place.is_empty() { format.to_string() } else { format!("{}: {format}", format_text(&place)) };
        let values: String = values.iter().map(|v| format!(", {v}")).collect();
        let call = format!("wf_fail(ctx, {status}, {site}, {line}, {}{values})", string(&whole));
        match self.error_exit.clone() {
            ErrorExit::Return => self.out.line(format!("return {call};")),
            ErrorExit::Stop => {
                self.leaves += 1;
                self.out.line(format!("{call};"));
                self.out.line("return;");
            }
            ErrorExit::Goto(label) => {
                self.leaves += 1;
                self.out.line(format!("{call};"));
                self.out.line(format!("goto {label};"));
            }
        }
    }

    /// Leaves because of an error that is recorded already.
    pub fn leave_failed(&mut self) {
        match self.error_exit.clone() {
            ErrorExit::Return => self.out.line("return ctx->status;"),
            ErrorExit::Stop => {
                self.leaves += 1;
                self.out.line("return;");
            }
            ErrorExit::Goto(label) => {
                self.leaves += 1;
                self.out.line(format!("goto {label};"));
            }
        }
    }

    /// `file:line` of a statement; empty where no user wrote it.
    fn location(&self, origin: &Origin) -> String {
        if origin.span().is_none() { String::new() } else { self.sources.locate(origin.span()) }
    }

    /// The number of a place that can fail, and its line.
    fn site(&mut self, origin: &Origin) -> (usize, u32) {
        let span = origin.span();
        let name = |file| self.sources.get(file).map_or(String::new(), |f| f.name.clone());
        let line = self.sources.line_col(span).map_or(0, |at| at.line as u32);
        let chain = origin
            .chain()
            .iter()
            .map(|c| {
                let place = SourceRange { file: name(c.span.file), start: c.span.start, end: c.span.end };
                (c.function.clone(), place)
            })
            .collect();
        let site = Site { file: name(span.file), line, start: span.start, end: span.end, chain };
        (self.sites.insert_full(site).0, line)
    }
}
