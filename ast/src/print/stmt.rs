//! Printer of statements and whole programs, with Python's indentation.

use super::expr::{element, expected, standalone};
use super::names::{Names, entry};
use crate::expr::{Access, Expr, ExprKind};
use crate::format::{Pattern, coord};
use crate::func::{Func, Param, ParamMode};
use crate::op::ReduceOp;
use crate::stmt::{
    AssertKind, Distribution, Extent, LoopProps, Memory, Message, MessagePart, Origin, PrintPart, Sharing, Stmt,
    StmtId, StmtKind, Tensor,
};
use crate::symbol::Symbol;
use rustc_hash::{FxHashMap, FxHashSet};

/// Printer: the text so far, with the names that are visible at its end.
#[derive(Default)]
pub(super) struct Printer {
    out: String,
    indent: usize,
    names: Names,
    /// Parameters: scalar ones are written as `p[...] = e`, since the caller sees them.
    params: FxHashSet<Symbol>,
    /// Parameter of each pattern.
    patterns: FxHashMap<Pattern, Symbol>,
    /// Tuples returned by the `remap=` functions of tensors, with the functions' names.
    remaps: Vec<(String, String)>,
    /// Selectors of loops, if they are to be printed.
    selectors: FxHashMap<StmtId, String>,
}

impl Printer {
    /// Creates a printer that adds a loop's selector where the printed name differs.
    pub fn with_selectors(selectors: FxHashMap<StmtId, String>) -> Printer {
        Printer { selectors, ..Printer::default() }
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        self.out
    }

    /// Prints the program's header, declarations of results, body and `return`.
    pub fn func(&mut self, f: &Func) {
        for s in &f.sizes {
            self.names.bind_interface(s);
        }
        for p in &f.params {
            self.names.bind_interface(&p.tensor.symbol);
        }
        for t in &f.results {
            self.names.bind_result(&t.symbol);
        }
        self.params = f.params.iter().map(|p| p.tensor.symbol.clone()).collect();
        for p in f.params.iter().rev() {
            self.patterns.extend(p.tensor.format.pattern.map(|pattern| (pattern, p.tensor.symbol.clone())));
        }
        f.interface().for_each(|t| self.remap(t));
        f.body.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, .. } = s.kind() {
                self.remap(tensor);
            }
        });
        let params: Vec<String> = f.params.iter().map(|p| self.param(p)).collect();
        let results: Vec<String> = f.results.iter().map(|t| self.annotation(t)).collect();
        let returns = match results.as_slice() {
            [] => String::new(),
            [one] => format!(" -> {one}"),
            many => format!(" -> ({})", many.join(", ")),
        };
        self.line(&format!("def {}({}){returns}:", entry(&f.name), params.join(", ")));
        self.indent += 1;
        if let Some(doc) = &f.doc {
            self.line(&docstring(doc));
        }
        for t in &f.results {
            self.declaration(t);
        }
        if !f.body.is_nop() || f.results.is_empty() {
            self.block(&f.body);
        }
        if !f.results.is_empty() {
            let names: Vec<String> = f.results.iter().map(|t| self.names.text(&t.symbol)).collect();
            self.line(&format!("return {}", names.join(", ")));
        }
        self.indent -= 1;
    }

    /// Makes the free symbols of `s` visible.
    pub fn bind_free(&mut self, s: &Stmt) {
        let mut bound = FxHashSet::default();
        s.walk(&mut |s| match s.kind() {
            StmtKind::VarDef { tensor, .. } => drop(bound.insert(tensor.symbol.clone())),
            StmtKind::For { iter, .. } => drop(bound.insert(iter.clone())),
            _ => {}
        });
        let mut free = Vec::new();
        let mut seen = |symbol: &Symbol| {
            if !bound.contains(symbol) && !free.contains(symbol) {
                free.push(symbol.clone());
            }
        };
        s.walk(&mut |s| match s.kind() {
            StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => seen(tensor),
            StmtKind::Call { tensors, .. } => tensors.iter().for_each(&mut seen),
            kind => kind.printed().into_iter().for_each(&mut seen),
        });
        s.walk_exprs(&mut |e| match e.kind() {
            ExprKind::Var(symbol) | ExprKind::Load(symbol, _) => seen(symbol),
            _ => {}
        });
        for symbol in free {
            self.names.bind_shown(&symbol);
        }
    }

    fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Prints a statement as a whole block.
    pub fn block(&mut self, s: &Stmt) {
        if s.is_nop() {
            return self.line("pass");
        }
        self.stmt(s, true);
    }

    fn indented(&mut self, s: &Stmt) {
        self.indent += 1;
        self.block(s);
        self.indent -= 1;
    }

    /// Prints a statement; `last` if it ends its block.
    fn stmt(&mut self, s: &Stmt, last: bool) {
        if let Origin::Source { labels, .. } = s.origin() {
            for label in labels {
                self.line(&format!("label({})", quote(label)));
            }
        }
        match s.kind() {
            StmtKind::Seq(v) => {
                for (k, inner) in v.iter().enumerate() {
                    self.stmt(inner, last && k + 1 == v.len());
                }
            }
            StmtKind::VarDef { tensor, body } => self.var_def(tensor, body, last),
            StmtKind::For { iter, extent, props, body } => {
                let range = self.extent(extent);
                self.names.bind(iter, true);
                let name = self.names.text(iter);
                let selector = self.selectors.get(&s.id()).filter(|selector| **selector != name);
                let words = selector.map(|s| quote(s)).into_iter().chain(properties(props, &self.names));
                let header = format!("for {name} in {range}:{}", comment(words.collect()));
                self.line(&header);
                self.indented(body);
                self.names.unbind(iter);
            }
            StmtKind::If { cond, then, otherwise } => self.branch("if", cond, then, otherwise.as_ref()),
            StmtKind::While { cond, body } => {
                self.line(&format!("while {}:", standalone(cond, &self.names)));
                self.indented(body);
            }
            StmtKind::Store { tensor, indices, value } => {
                let text = format!("{} = {}", self.target(tensor, indices), expected(value, &self.names));
                self.line(&text);
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let text = self.reduction(tensor, indices, *op, value);
                self.line(&text);
            }
            StmtKind::Assert { cond, message, kind } => {
                let who = match kind {
                    AssertKind::Program => "",
                    AssertKind::Index => "  # index",
                    AssertKind::Storage => "  # storage",
                    AssertKind::Arithmetic => "  # arithmetic",
                    AssertKind::Finite => "  # finite",
                };
                self.line(&format!("assert {}{}{who}", standalone(cond, &self.names), self.message(message)));
            }
            StmtKind::Print { parts } => {
                let text = format!("print({})", self.printed(parts));
                self.line(&text);
            }
            StmtKind::Assume { cond } => self.line(&format!("assume({})", standalone(cond, &self.names))),
            StmtKind::Call { routine, tensors, operands } => {
                let tensors = tensors.iter().map(|t| self.names.text(t));
                let all: Vec<String> = tensors.chain(operands.iter().map(|e| expected(e, &self.names))).collect();
                self.line(&format!("{}({})", routine.name(), all.join(", ")));
            }
        }
    }

    fn var_def(&mut self, tensor: &Tensor, body: &Stmt, last: bool) {
        self.names.bind(&tensor.symbol, false);
        self.declaration(tensor);
        if !body.is_nop() {
            self.stmt(body, last);
        }
        if !last {
            self.line(&format!("del {}", self.names.text(&tensor.symbol)));
        }
        self.names.unbind(&tensor.symbol);
    }

    fn declaration(&mut self, t: &Tensor) {
        let shape: Vec<String> = t.shape.iter().map(|e| expected(e, &self.names)).collect();
        let shape = match shape.as_slice() {
            [one] => format!("({one},)"),
            many => format!("({})", many.join(", ")),
        };
        let memory = match t.memory {
            Memory::Auto => "",
            Memory::Register => "  # register",
            Memory::Stack => "  # stack",
            Memory::Heap => "  # heap",
            Memory::Arena => "  # arena",
        };
        let name = self.names.text(&t.symbol);
        let annotation = if t.format.is_dense() { String::new() } else { format!(": {}", self.annotation(t)) };
        self.line(&format!("{name}{annotation} = empty({shape}, {}){memory}", t.dtype));
    }

    fn branch(&mut self, keyword: &str, cond: &Expr, then: &Stmt, otherwise: Option<&Stmt>) {
        self.line(&format!("{keyword} {}:", standalone(cond, &self.names)));
        self.indented(then);
        match otherwise.map(|o| (o, o.kind())) {
            None => {}
            Some((o, StmtKind::If { cond, then, otherwise })) if o.origin().labels().is_empty() => {
                self.branch("elif", cond, then, otherwise.as_ref());
            }
            Some((o, _)) => {
                self.line("else:");
                self.indented(o);
            }
        }
    }

    fn extent(&self, extent: &Extent) -> String {
        let Extent::Range { begin, end, step } = extent else { return "reals".to_string() };
        let text = |e| expected(e, &self.names);
        match (begin.as_int(), step.as_int()) {
            (Some(0), Some(1)) => format!("range({})", text(end)),
            (_, Some(1)) => format!("range({}, {})", text(begin), text(end)),
            _ => format!("range({}, {}, {})", text(begin), text(end), text(step)),
        }
    }

    /// Formats the left-hand side of an assignment.
    fn target(&self, tensor: &Symbol, indices: &[Access]) -> String {
        let text = element(tensor, indices, &self.names);
        if indices.is_empty() && self.params.contains(tensor) { format!("{text}[...]") } else { text }
    }

    fn reduction(&self, tensor: &Symbol, indices: &[Access], op: ReduceOp, value: &Expr) -> String {
        let target = self.target(tensor, indices);
        let info = op.info();
        if let Some(augmented) = info.augmented {
            let left = if indices.is_empty() { self.names.text(tensor) } else { target };
            return format!("{left} {augmented} {}", expected(value, &self.names));
        }
        let old = element(tensor, indices, &self.names);
        format!("{target} = {}({old}, {})", info.op.info().name, expected(value, &self.names))
    }

    /// Formats `, "text"` or `, f"text {value}"`; nothing if there is no message.
    fn message(&self, message: &Message) -> String {
        let mut text = String::new();
        let values = message.iter().any(|p| matches!(p, MessagePart::Value(_)));
        for part in message {
            match part {
                MessagePart::Text(t) if values => text.push_str(&escape(t).replace('{', "{{").replace('}', "}}")),
                MessagePart::Text(t) => text.push_str(&escape(t)),
                MessagePart::Value(e) => text.push_str(&format!("{{{}}}", standalone(e, &self.names))),
            }
        }
        match (message.is_empty(), values) {
            (true, _) => String::new(),
            (_, true) => format!(", f\"{text}\""),
            (_, false) => format!(", \"{text}\""),
        }
    }

    /// Formats `"text"` or `f"text {value}"`; nothing for an empty line.
    fn printed(&self, parts: &[PrintPart]) -> String {
        let values = parts.iter().any(|p| !matches!(p, PrintPart::Text(_)));
        let mut text = String::new();
        for part in parts {
            match part {
                PrintPart::Text(t) if values => text.push_str(&escape(t).replace('{', "{{").replace('}', "}}")),
                PrintPart::Text(t) => text.push_str(&escape(t)),
                PrintPart::Value(e) => text.push_str(&format!("{{{}}}", standalone(e, &self.names))),
                PrintPart::Tensor { tensor, at, .. } => {
                    let at: Vec<Access> = at.iter().cloned().map(Access::from).collect();
                    text.push_str(&format!("{{{}}}", element(tensor, &at, &self.names)));
                }
            }
        }
        match (parts.is_empty(), values) {
            (true, _) => String::new(),
            (_, true) => format!("f\"{text}\""),
            (_, false) => format!("\"{text}\""),
        }
    }

    /// Prints a tensor's `remap=` function before the program, unless an equal one was printed.
    fn remap(&mut self, t: &Tensor) {
        let returned = t.format.remap();
        if !t.format.is_remapped() || self.remaps.iter().any(|(known, _)| *known == returned) {
            return;
        }
        let symbol = Symbol::new(format!("{}_remap", t.symbol.name()));
        self.names.bind(&symbol, false);
        let name = self.names.text(&symbol);
        self.line(&format!("def {name}({}):", coord::names(t.ndim()).join(", ")));
        self.line(&format!("    return {returned}"));
        self.out.push_str("\n\n");
        self.remaps.push((returned, name));
    }

    fn param(&self, p: &Param) -> String {
        let annotation = self.annotation(&p.tensor);
        let name = self.names.text(&p.tensor.symbol);
        match p.mode {
            ParamMode::In => format!("{name}: {annotation}"),
            ParamMode::InOut => format!("{name}: inout[{annotation}]"),
        }
    }

    fn annotation(&self, t: &Tensor) -> String {
        let shape: Vec<String> = t.shape.iter().map(|e| expected(e, &self.names)).collect();
        let dense = if shape.is_empty() { t.dtype.to_string() } else { format!("{}[{}]", t.dtype, shape.join(", ")) };
        let of = t.format.pattern.and_then(|p| self.patterns.get(&p)).filter(|of| **of != t.symbol);
        match of {
            _ if t.format.is_dense() => dense,
            None => {
                let returned = t.format.remap();
                let name = self.remaps.iter().find(|(known, _)| *known == returned).map_or(&returned, |(_, name)| name);
                format!("{dense} @ {}", t.format.text_with(name))
            }
            Some(of) => {
                let drops = match t.format.drops {
                    true if !t.format.sums && !t.format.is_injective() => ", drop=True, sum=False",
                    true => ", drop=True",
                    false => "",
                };
                format!("{dense} @ pattern({}{drops})", self.names.text(of))
            }
        }
    }
}

/// Formats the properties of a loop: `parallel(schedule=dynamic, chunk=4)`, `partial(total +)`, `atomic(y max)`.
fn properties(p: &LoopProps, names: &Names) -> Vec<String> {
    let with = |word: &str, options: Vec<String>| match options.is_empty() {
        true => word.to_string(),
        false => format!("{word}({})", options.join(", ")),
    };
    let mut words = Vec::new();
    if let Some(parallel) = &p.parallel {
        let shares = parallel.distribution != Distribution::Static || parallel.chunk.is_some();
        let schedule = shares.then(|| format!("schedule={}", parallel.distribution.name()));
        let chunk = parallel.chunk.map(|c| format!("chunk={c}"));
        let above = parallel.above.map(|n| format!("above={n}"));
        words.push(with("parallel", schedule.into_iter().chain(chunk).chain(above).collect()));
    }
    if let Some(vector) = &p.vectorize {
        words.push(with("vectorize", vector.width.map(|w| format!("width={w}")).into_iter().collect()));
    }
    if p.unroll {
        words.push("unroll".to_string());
    }
    if p.library {
        words.push("library".to_string());
    }
    for (sharing, word) in [(Sharing::Partial, "partial"), (Sharing::Atomic, "atomic")] {
        let shared: Vec<String> = p
            .reductions
            .iter()
            .filter(|r| r.sharing == sharing)
            .map(|r| format!("{} {}", names.text(&r.tensor), r.op.info().op.info().name))
            .collect();
        if !shared.is_empty() {
            words.push(with(word, shared));
        }
    }
    words
}

fn comment(words: Vec<String>) -> String {
    if words.is_empty() { String::new() } else { format!("  # {}", words.join(", ")) }
}

fn quote(text: &str) -> String {
    format!("\"{}\"", escape(text))
}

fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// Formats the docstring with its line breaks, so that it stays readable.
fn docstring(doc: &str) -> String {
    let mut text = doc.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    if text.ends_with('"') && !text.ends_with("\\\"") {
        // A final quote would join the closing ones.
        text.truncate(text.len() - 1);
        text.push_str("\\\"");
    }
    format!("\"\"\"{text}\"\"\"")
}
