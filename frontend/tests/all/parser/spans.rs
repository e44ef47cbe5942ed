//! Spans of a tree: each lies in the text, on character boundaries, and inside the span of its parent.

use taffeta_ast::Span;
use taffeta_frontend::syntax::*;

/// Checks a whole module.
pub fn check(module: &Module, text: &str) {
    let all = Span { file: taffeta_ast::span::FileId(7), start: 0, end: text.len() as u32 };
    let c = Checker { text };
    for item in &module.items {
        match item {
            Item::Import(import) => {
                let span = c.inside(import.span, all);
                c.name(&import.module, span);
                for (name, alias) in &import.names {
                    c.name(name, span);
                    alias.iter().for_each(|a| c.name(a, span));
                }
            }
            Item::Assign { name, value } => {
                c.name(name, all);
                c.expr(value, all);
            }
            Item::Function(f) => {
                let span = c.inside(f.span, all);
                c.name(&f.name, span);
                f.decorators.iter().chain(&f.returns).for_each(|e| c.expr(e, span));
                for p in &f.params {
                    c.name(&p.name, span);
                    p.annotation.iter().chain(&p.default).for_each(|e| c.expr(e, span));
                }
                c.block(&f.body, span);
            }
        }
    }
}

struct Checker<'a> {
    text: &'a str,
}

impl Checker<'_> {
    fn inside(&self, span: Span, outer: Span) -> Span {
        let part = self.text.get(span.start as usize..span.end as usize);
        assert!(part.is_some(), "{span:?} is not a part of {:?}", self.text);
        assert!(
            span.file == outer.file && outer.start <= span.start && span.end <= outer.end,
            "{span:?} not in {outer:?} of {:?}",
            self.text
        );
        span
    }

    fn name(&self, name: &Name, outer: Span) {
        let span = self.inside(name.span, outer);
        let text = &self.text[span.start as usize..span.end as usize];
        assert!(text == name.text || name.text.contains('.'), "{name:?} stands at {text:?}");
    }

    fn block(&self, stmts: &[Stmt], outer: Span) {
        for stmt in stmts {
            let span = self.inside(stmt.span, outer);
            match &stmt.kind {
                StmtKind::Assign { targets, value } => targets.iter().chain([value]).for_each(|e| self.expr(e, span)),
                StmtKind::Declare { name, annotation, value } => {
                    self.name(name, span);
                    [annotation].into_iter().chain(value).for_each(|e| self.expr(e, span));
                }
                StmtKind::Augment { target, value, .. } => [target, value].into_iter().for_each(|e| self.expr(e, span)),
                StmtKind::For { targets, iter, body } => {
                    targets.iter().for_each(|t| self.name(t, span));
                    self.expr(iter, span);
                    self.block(body, span);
                }
                StmtKind::If { cond, then, otherwise } => {
                    self.expr(cond, span);
                    self.block(then, span);
                    self.block(otherwise, span);
                }
                StmtKind::Assert { cond, message } => {
                    [cond].into_iter().chain(message).for_each(|e| self.expr(e, span));
                }
                StmtKind::Pass => {}
                StmtKind::Return { value } => value.iter().for_each(|e| self.expr(e, span)),
                StmtKind::Expr(e) => self.expr(e, span),
            }
        }
    }

    fn expr(&self, e: &Expr, outer: Span) {
        let span = self.inside(e.span, outer);
        let text = &self.text[span.start as usize..span.end as usize];
        // The plain text of an f-string may begin or end with blanks.
        let bare = matches!(e.kind, ExprKind::Str(_)) || !(text.ends_with([' ', '\n']) || text.starts_with(' '));
        assert!(bare, "blanks in the span of {text:?}");
        let many = |items: &[Expr]| items.iter().for_each(|e| self.expr(e, span));
        match &e.kind {
            ExprKind::Name(name) => assert!(text.trim_matches(['(', ')', ' ', '\n']).len() >= name.len()),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::None => {}
            ExprKind::Ellipsis | ExprKind::Str(_) => {}
            ExprKind::Format(items) | ExprKind::Tuple(items) | ExprKind::List(items) => many(items),
            ExprKind::And(items) | ExprKind::Or(items) => many(items),
            ExprKind::Comprehension { element, targets, iter, conds } => {
                self.expr(element, span);
                targets.iter().for_each(|t| self.name(t, span));
                self.expr(iter, span);
                many(conds);
            }
            ExprKind::Binary(_, a, b) => [a, b].into_iter().for_each(|e| self.expr(e, span)),
            ExprKind::Unary(_, a) => self.expr(a, span),
            ExprKind::Compare(first, rest) => {
                self.expr(first, span);
                rest.iter().for_each(|(_, e)| self.expr(e, span));
            }
            ExprKind::IfElse { cond, then, otherwise } => {
                [cond, then, otherwise].into_iter().for_each(|e| self.expr(e, span));
            }
            ExprKind::Call { callee, args } => {
                self.expr(callee, span);
                for arg in args {
                    arg.name.iter().for_each(|n| self.name(n, span));
                    self.expr(&arg.value, span);
                }
            }
            ExprKind::Attribute(base, name) => {
                self.expr(base, span);
                self.name(name, span);
            }
            ExprKind::Subscript(base, items) => {
                self.expr(base, span);
                many(items);
            }
            ExprKind::Slice { lower, upper, step } => {
                [lower, upper, step].into_iter().flatten().for_each(|e| self.expr(e, span));
            }
            ExprKind::Lambda { params, body } => {
                params.iter().for_each(|p| self.name(p, span));
                self.expr(body, span);
            }
        }
    }
}
