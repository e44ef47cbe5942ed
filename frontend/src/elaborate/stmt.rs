//! Statements: control flow, static and dynamic.
//!
//! A static `if` or `for` is decided here and splices its body into the enclosing block. A dynamic one becomes a
//! statement whose body is a block, with a scope of its own.

use super::choice::Condition;
use super::scope::{Role, Scope};
use super::value::{Lazy, Value};
use super::{Elab, R, Stop};
use crate::syntax::{self, ExprKind, Stmt, StmtKind};
use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_ast::stmt::{AssertKind, Extent, LoopProps, Message, MessagePart};
use taffeta_ast::{DType, Expr, Origin, Span, StmtKind as Tree, Symbol};

/// Exit of a block.
pub(crate) enum Flow {
    /// Falling through at its end.
    Next,
    /// Returning a value.
    Return(Value),
}

impl Elab<'_> {
    /// Runs statements in the current scope. After an error the next statement is tried, so that several are reported.
    pub(crate) fn run(&mut self, stmts: &[Stmt]) -> R<Flow> {
        let mut wrong = false;
        let mut labels: Vec<String> = Vec::new();
        for s in stmts {
            if let Some(label) = self.label(s)? {
                labels.push(label);
                continue;
            }
            let mark = self.mark();
            let (frames, scopes, calls) = (self.frames.len(), self.frame().scopes.len(), self.chain.len());
            self.span = s.span;
            match self.stmt(s) {
                Ok(Flow::Next) => {}
                Ok(Flow::Return(v)) => return if wrong { Err(Stop::Reported) } else { Ok(Flow::Return(v)) },
                Err(Stop::Reported) => {
                    wrong = true;
                    self.frames.truncate(frames);
                    self.frame_mut().scopes.truncate(scopes);
                    self.chain.truncate(calls);
                    self.shared_chain = None;
                    self.roll_back(mark);
                    self.poison_targets(s);
                    // Later statements mean little after an error in a call, in a statement that may return, or in an
                    // assertion that they rely on.
                    let endless =
                        |d: &taffeta_ast::Diagnostic| matches!(d.code, "elaborate::too_large" | "call::depth");
                    let relied_on = returns(s) || matches!(s.kind, StmtKind::Assert { .. });
                    let ends = self.schedule.is_some() || relied_on || self.diagnostics.iter().any(endless);
                    if self.frames.len() > 1 || ends {
                        return Err(Stop::Reported);
                    }
                }
                Err(restart) => return Err(restart),
            }
            if !labels.is_empty() {
                self.attach(std::mem::take(&mut labels), mark);
            }
        }
        if wrong {
            return Err(Stop::Reported);
        }
        match stmts.last() {
            Some(last) if !labels.is_empty() => self.error_help(
                "syntax::label",
                last.span,
                "expected a statement after the label",
                "write the label before the statement that it names",
            ),
            _ => Ok(Flow::Next),
        }
    }

    /// Returns the text of a `label("…")` statement.
    fn label(&mut self, s: &Stmt) -> R<Option<String>> {
        let StmtKind::Expr(syntax::Expr { kind: ExprKind::Call { callee, args }, .. }) = &s.kind else {
            return Ok(None);
        };
        let own = self.frame().find("label").is_some() || self.schedule.is_some();
        if !matches!(&callee.kind, ExprKind::Name(n) if n == "label") || own {
            return Ok(None);
        }
        let [arg] = args.as_slice() else {
            return self.error("call::arguments", s.span, "`label` takes one string");
        };
        match self.eval(&arg.value)? {
            Value::Str(text) => Ok(Some(text.to_string())),
            v => {
                let found = v.describe();
                self.error("type::operand", arg.value.span, format!("`label` takes a string, found {found}"))
            }
        }
    }

    /// Attaches labels to the last statement that was emitted since `mark`: earlier ones compute its operands.
    fn attach(&mut self, names: Vec<String>, mark: super::block::Mark) {
        use super::block::Item;
        let items = &mut self.block_mut().items[mark.items..];
        let Some(Item::Stmt(last)) = items.iter_mut().rev().find(|i| matches!(i, Item::Stmt(_))) else { return };
        let mut origin = last.origin().clone();
        if let Origin::Source { labels, .. } = &mut origin {
            labels.splice(0..0, names);
        }
        *last = taffeta_ast::Stmt::new(last.kind().clone(), origin);
    }

    /// Poisons the names that a faulty statement would have bound, so that their uses are not reported.
    fn poison_targets(&mut self, s: &Stmt) {
        let mut names: Vec<(String, Span)> = Vec::new();
        match &s.kind {
            StmtKind::Assign { targets, .. } => targets.iter().for_each(|t| target_names(t, &mut names)),
            StmtKind::Augment { target, .. } => target_names(target, &mut names),
            StmtKind::Declare { name, .. } => names.push((name.text.clone(), name.span)),
            StmtKind::If { then, otherwise, .. } => {
                then.iter().chain(otherwise).for_each(|s| self.poison_targets(s));
            }
            StmtKind::For { body, .. } => body.iter().for_each(|s| self.poison_targets(s)),
            _ => {}
        }
        for (name, site) in names {
            self.poison(&name, site);
        }
    }

    fn stmt(&mut self, s: &Stmt) -> R<Flow> {
        self.step(s.span)?;
        if self.schedule.is_some()
            && let Some(flow) = self.schedule_stmt(s)?
        {
            return Ok(flow);
        }
        match &s.kind {
            StmtKind::Assign { targets, value } => self.assign(targets, value)?,
            StmtKind::Declare { name, annotation, value } => {
                self.declare_annotated(name, annotation, value.as_ref())?
            }
            StmtKind::Augment { target, op, value } => self.augment(target, *op, value, s.span)?,
            StmtKind::For { targets, iter, body } => return self.for_loop(targets, iter, body, s.span),
            StmtKind::If { cond, then, otherwise } => return self.if_stmt(cond, then, otherwise),
            StmtKind::Assert { cond, message } => self.assertion(cond, message.as_ref(), s.span)?,
            StmtKind::Pass => {}
            StmtKind::Return { value } => {
                let v = match value {
                    Some(e) => self.eval(e)?,
                    None => Value::None,
                };
                self.note_returned(value.as_ref());
                return Ok(Flow::Return(v));
            }
            StmtKind::Expr(e) => match &e.kind {
                ExprKind::Call { .. } => match self.printed(e) {
                    Some(args) => self.print(args)?,
                    None => drop(self.eval(e)?),
                },
                ExprKind::Ellipsis => {}
                _ => {
                    return self.error_help(
                        "syntax::no_effect",
                        e.span,
                        "this statement has no effect",
                        "assign the value to a name, or leave it out",
                    );
                }
            },
        }
        Ok(Flow::Next)
    }

    /// Elaborates a block with a scope of its own: declarations inside end with it.
    pub(crate) fn nested(&mut self, stmts: &[Stmt], bind: impl FnOnce(&mut Self)) -> R<taffeta_ast::Stmt> {
        let (outer, depth) = (self.span, self.blocks.len());
        self.open_block();
        self.frame_mut().scopes.push(Scope::default());
        bind(self);
        let flow = self.run(stmts);
        let last = std::mem::replace(&mut self.span, outer);
        if flow.is_err() {
            self.blocks.truncate(depth);
        }
        self.end_scope();
        let flow = flow?;
        let body = self.close_block();
        if let Flow::Return(_) = flow {
            return self.error_help(
                "syntax::return",
                last,
                "`return` under a run-time condition or in a run-time loop is not supported",
                "assign the result to a name, and return it at the end of the function",
            );
        }
        Ok(body)
    }

    fn if_stmt(&mut self, cond: &syntax::Expr, then: &[Stmt], otherwise: &[Stmt]) -> R<Flow> {
        match self.condition(cond)? {
            Condition::Known(true) => self.run(then),
            Condition::Known(false) => self.run(otherwise),
            Condition::Open(_) if self.schedule.is_some() => self.open_condition(cond.span),
            Condition::Open(c) => {
                // Both branches are elaborated before giving up, so that errors in both are reported.
                let then = self.nested(then, |_| {});
                if let Err(stop @ Stop::Restart { .. }) = then {
                    return Err(stop);
                }
                let otherwise = if otherwise.is_empty() { None } else { Some(self.nested(otherwise, |_| {})?) };
                self.emit(Tree::If { cond: c, then: then?, otherwise });
                Ok(Flow::Next)
            }
        }
    }

    fn for_loop(&mut self, targets: &[syntax::Name], iter: &syntax::Expr, body: &[Stmt], span: Span) -> R<Flow> {
        let over = self.eval(iter)?;
        match &over {
            Value::Range(r) => {
                let [name] = targets else {
                    return self.error("type::unpack", span, "a loop over a `range` takes one loop variable");
                };
                self.dynamic_loop(&[(name, r.clone())], iter.span, body)?;
                Ok(Flow::Next)
            }
            Value::NdRange(ranges) => {
                if ranges.len() != targets.len() {
                    let (n, m) = (targets.len(), ranges.len());
                    return self.error(
                        "type::unpack",
                        targets[0].span,
                        format!("found {n} loop variable{} for {m} ranges", if n == 1 { "" } else { "s" }),
                    );
                }
                let mut loops = Vec::new();
                for (name, r) in targets.iter().zip(ranges.iter()) {
                    let Value::Range(r) = r else { unreachable!("an NdRange holds ranges") };
                    loops.push((name, r.clone()));
                }
                self.dynamic_loop(&loops, iter.span, body)?;
                Ok(Flow::Next)
            }
            Value::Reals => self.unsupported(iter.span, "a loop over the reals"),
            Value::Tensor(_) | Value::Lazy(_) | Value::Empty(..) | Value::Int(_) => self.error_help(
                "type::iterate",
                iter.span,
                format!("expected a range to loop over, found {}", over.describe()),
                "write `for i in range(x.shape[0]):` and `x[i]` inside",
            ),
            _ => {
                for item in self.static_items(&over, iter.span)? {
                    self.step(span)?;
                    self.bind_static(targets, &item, iter.span)?;
                    if let Flow::Return(v) = self.run(body)? {
                        return Ok(Flow::Return(v));
                    }
                }
                Ok(Flow::Next)
            }
        }
    }

    /// Elaborates a loop of the running program, or a nest of them.
    fn dynamic_loop(
        &mut self,
        loops: &[(&syntax::Name, std::sync::Arc<[Value; 3]>)],
        span: Span,
        body: &[Stmt],
    ) -> R<()> {
        let mut headers: Vec<(Symbol, Extent)> = Vec::new();
        for (name, range) in loops {
            let [begin, end, step] = &**range;
            let mut bound = |v: &Value| self.loop_bound(v, span);
            let (begin, end, step) = (bound(begin)?, bound(end)?, bound(step)?);
            if step.as_int() == Some(0) {
                return self.error("range::step", span, "the step of a range cannot be 0");
            }
            let symbol = Symbol::new(name.text.clone());
            if step.as_int().is_some_and(|s| s > 0) && self.is_nonnegative(&begin) {
                self.nonnegative.insert(symbol.clone());
            }
            self.note_range(&symbol, [&begin, &end, &step]);
            headers.push((symbol, Extent::Range { begin, end, step }));
        }
        let bindings: Vec<(String, Value, Span)> = loops
            .iter()
            .zip(&headers)
            .map(|((name, _), (s, _))| (name.text.clone(), Value::Lazy(Lazy::scalar(Expr::var(s), true)), name.span))
            .collect();
        let mut inner = self.nested(body, |this| {
            for (name, value, site) in bindings {
                this.bind(&name, value, Role::Iterator, site);
            }
        })?;
        let origin = self.origin();
        while let Some((iter, extent)) = headers.pop() {
            let kind = Tree::For { iter, extent, props: LoopProps::default(), body: inner };
            if headers.is_empty() {
                self.emit(kind);
                return Ok(());
            }
            inner = taffeta_ast::Stmt::new(kind, origin.clone());
        }
        Ok(())
    }

    /// Converts a bound of a range to i64.
    pub(crate) fn loop_bound(&mut self, v: &Value, span: Span) -> R<Expr> {
        match v.lazy() {
            Some(l) if l.shape.is_empty() && l.expr.dtype().is_int() => self.in_type(l.expr, l.weak, DType::I64, span),
            _ => {
                let found = match v.dtype() {
                    Some(d) if v.shape().is_some_and(|s| s.is_empty()) => format!("`{d}`"),
                    _ => v.describe(),
                };
                self.error("range::type", span, format!("expected an integer as a bound of a range, found {found}"))
            }
        }
    }

    fn assertion(&mut self, cond: &syntax::Expr, message: Option<&syntax::Expr>, span: Span) -> R<()> {
        let c = match self.condition(cond)? {
            Condition::Known(true) => return Ok(()),
            // A literal `False` marks unreachable code, which fails only if the running program reaches it.
            Condition::Known(false) if matches!(cond.kind, ExprKind::Bool(_)) && self.frame().scopes.len() > 1 => {
                Expr::bool(false)
            }
            Condition::Known(false) => {
                let text = match message {
                    Some(m) => self.message_text(m)?,
                    None => format!("{} does not hold", self.quote(cond.span)),
                };
                return self.error("assert::failed", span, text);
            }
            Condition::Open(_) if self.schedule.is_some() => return self.open_condition(span),
            Condition::Open(c) if self.always_fails(&c, cond.span) => {
                let text = match message {
                    Some(m) => self.message_text(m)?,
                    None => format!("{} does not hold", self.quote(cond.span)),
                };
                return self.error("assert::failed", span, text);
            }
            Condition::Open(c) => c,
        };
        let message = match message {
            Some(m) => self.message(m)?,
            None => Message::new(),
        };
        self.emit(Tree::Assert { cond: c, message, kind: AssertKind::Program });
        Ok(())
    }

    /// Proves that an assertion fails for all sizes. In a loop or under a condition it may never be reached, as the
    /// user may intend; but sizes that an operator of the library compares must agree there too, like those of array
    /// expressions.
    fn always_fails(&self, c: &Expr, span: Span) -> bool {
        let compares = matches!(c.kind(), taffeta_ast::ExprKind::Apply(taffeta_ast::Op::Eq, _));
        let reached = self.blocks.len() == 1 || (compares && self.in_library(span.file));
        reached && self.surely_false(c)
    }

    /// Formats a message as far as it is known at compile time.
    fn message_text(&mut self, m: &syntax::Expr) -> R<String> {
        let parts = self.message(m)?;
        let show = |p: &MessagePart| match p {
            MessagePart::Text(t) => t.clone(),
            MessagePart::Value(e) => super::broadcast::show(e),
        };
        Ok(parts.iter().map(show).collect())
    }

    fn message(&mut self, m: &syntax::Expr) -> R<Message> {
        let parts = match &m.kind {
            ExprKind::Format(parts) => parts.as_slice(),
            _ => std::slice::from_ref(m),
        };
        let mut out = Message::new();
        for p in parts {
            let v = self.eval(p)?;
            if let Some(text) = super::literal::show(&v) {
                let text = if matches!(p.kind, ExprKind::Str(_)) { self.in_users_words(&text) } else { text };
                match out.last_mut() {
                    Some(MessagePart::Text(t)) => t.push_str(&text),
                    _ => out.push(MessagePart::Text(text)),
                }
                continue;
            }
            match v.lazy() {
                Some(l) if l.shape.is_empty() => out.push(MessagePart::Value(l.expr)),
                _ => {
                    let found = v.describe();
                    return self.error(
                        "assert::message",
                        p.span,
                        format!("expected a scalar in the message, found {found}"),
                    );
                }
            }
        }
        Ok(out)
    }
}

/// Returns whether a function may return in this statement.
fn returns(s: &Stmt) -> bool {
    match &s.kind {
        StmtKind::Return { .. } => true,
        StmtKind::If { then, otherwise, .. } => then.iter().chain(otherwise).any(returns),
        StmtKind::For { body, .. } => body.iter().any(returns),
        _ => false,
    }
}

/// Collects the names that a target binds.
fn target_names(t: &syntax::Expr, out: &mut Vec<(String, Span)>) {
    match &t.kind {
        ExprKind::Name(n) => out.push((n.clone(), t.span)),
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|t| target_names(t, out)),
        _ => {}
    }
}

/// Returns names that are assigned in a loop of the running program and also before it: such names must be tensors.
/// (The syntax does not tell which conditions are static; names assigned under dynamic ones are found while running.)
pub(crate) fn looped_names(body: &[Stmt]) -> FxHashSet<String> {
    let mut scan = AssignmentScan::default();
    scan.block(body);
    scan.looped
}

#[derive(Default)]
struct AssignmentScan {
    /// Loops around the first assignment of each name.
    first: FxHashMap<String, Vec<Span>>,
    loops: Vec<Span>,
    looped: FxHashSet<String>,
}

impl AssignmentScan {
    fn block(&mut self, stmts: &[Stmt]) {
        for s in stmts {
            match &s.kind {
                StmtKind::Assign { targets, .. } => targets.iter().for_each(|t| self.target(t)),
                StmtKind::Augment { target, .. } => self.target(target),
                StmtKind::Declare { name, .. } => self.assigned(&name.text),
                StmtKind::If { then, otherwise, .. } => {
                    self.block(then);
                    self.block(otherwise);
                }
                StmtKind::For { iter, body, .. } => {
                    let dynamic = match &iter.kind {
                        ExprKind::Call { callee, .. } => {
                            matches!(&callee.kind, ExprKind::Name(n) if n == "range" || n == "ndrange")
                        }
                        _ => false,
                    };
                    if dynamic {
                        self.loops.push(s.span);
                        self.block(body);
                        self.loops.pop();
                    } else {
                        self.block(body);
                    }
                }
                _ => {}
            }
        }
    }

    fn target(&mut self, t: &syntax::Expr) {
        match &t.kind {
            ExprKind::Name(n) => self.assigned(n),
            ExprKind::Subscript(of, _) => {
                if let ExprKind::Name(n) = &of.kind {
                    self.assigned(n);
                }
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|t| self.target(t)),
            _ => {}
        }
    }

    fn assigned(&mut self, name: &str) {
        match self.first.get(name) {
            None => {
                self.first.insert(name.to_string(), self.loops.clone());
            }
            Some(first) if self.loops.len() > first.len() && self.loops.starts_with(first) => {
                self.looped.insert(name.to_string());
            }
            Some(_) => {}
        }
    }
}
