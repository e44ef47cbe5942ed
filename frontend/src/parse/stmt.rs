//! Statements, blocks and files: logical lines with their blocks → [`syntax::Module`](crate::syntax::Module).

use super::expr::Builder;
use super::grammar::{Grammar, Rule};
use super::layout::Line;
use super::source::{MAX_DEPTH, Source};
use super::token::Token;
use super::{operators, outside, problem};
use crate::syntax::{Expr, ExprKind, Function, Import, Item, Module, Name, Param, Stmt, StmtKind};
use pest::Parser;
use pest::iterators::Pair;
use taffeta_ast::Span;
use taffeta_ast::diag::Diagnostic;

/// Builds the tree of a whole file.
pub fn module(
    source: &Source<'_>,
    plain: &str,
    tokens: &[Token],
    lines: &[Line],
    diags: &mut Vec<Diagnostic>,
) -> Module {
    let mut reader = Reader { source: *source, plain, tokens, diags };
    let mut module = Module { doc: None, items: Vec::new() };
    let mut decorators: Vec<Expr> = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        reader.item(i == 0, line, &mut decorators, &mut module);
    }
    reader.lost_decorators(&decorators);
    module
}

/// Parts of a compound statement's head, and the statements after its colon.
struct Head<'i> {
    pairs: Vec<Pair<'i, Rule>>,
    suite: Option<Pair<'i, Rule>>,
}

struct Reader<'a, 'd> {
    source: Source<'a>,
    /// Text for the grammar, without comments and ends of lines.
    plain: &'a str,
    tokens: &'a [Token],
    diags: &'d mut Vec<Diagnostic>,
}

impl<'a> Reader<'a, '_> {
    fn line_span(&self, line: &Line) -> Span {
        let (start, end) = self.line_bytes(line);
        self.source.span(start, end)
    }

    fn line_bytes(&self, line: &Line) -> (usize, usize) {
        (self.tokens[line.tokens.start].start, self.tokens[line.tokens.end - 1].end)
    }

    /// Returns the first word of a line.
    fn word(&self, line: &Line) -> &'a str {
        self.tokens[line.tokens.start].text(self.source.text)
    }

    /// Returns the span from the line to the end of the last line of its block.
    fn block_span(&self, line: &Line) -> Span {
        let mut last = line;
        while let Some(inner) = last.block.last() {
            last = inner;
        }
        self.line_span(line).to(self.line_span(last))
    }

    fn builder(&mut self, line: &Line) -> Builder<'a, '_> {
        let base = self.line_bytes(line).0;
        let tokens = &self.tokens[line.tokens.clone()];
        Builder { source: self.source, base, tokens, diags: &mut *self.diags, in_format: false }
    }

    /// Parses one logical line; reports a line that does not parse.
    fn pairs(&mut self, line: &Line) -> Option<Pair<'a, Rule>> {
        if line.broken {
            return None;
        }
        let (start, end) = self.line_bytes(line);
        let rule = match self.word(line) {
            "@" => Rule::decorator,
            "def" => Rule::def_head,
            "for" => Rule::for_head,
            "if" => Rule::if_head,
            "elif" => Rule::elif_head,
            "else" => Rule::else_head,
            _ => Rule::line,
        };
        match Grammar::parse(rule, &self.plain[start..end]) {
            Ok(mut pairs) => pairs.next(),
            Err(error) => {
                let tokens = &self.tokens[line.tokens.clone()];
                self.diags.push(problem::unexpected(&self.source, tokens, start, &error));
                None
            }
        }
    }

    /// Builds the item of one line at the top level.
    fn item(&mut self, first: bool, line: &Line, decorators: &mut Vec<Expr>, module: &mut Module) {
        let word = self.word(line);
        if !matches!(word, "@" | "def") {
            self.lost_decorators(decorators);
            decorators.clear();
        }
        match word {
            "@" => {
                if let Some(pair) = self.pairs(line)
                    && let Some(inner) = pair.into_inner().next()
                {
                    decorators.push(self.builder(line).expr(inner, 0));
                }
                self.no_block(line);
            }
            "def" => {
                let function = self.function(line, std::mem::take(decorators));
                module.items.extend(function.map(Item::Function));
            }
            "if" | "for" => {
                self.diags.push(
                    Diagnostic::new(
                        "syntax::top_level",
                        format!("`{word}` is not supported at the top level of a file"),
                    )
                    .at(self.head_word(line))
                    .help("move it into a function: a file holds imports, assignments of static values and functions"),
                );
                self.block(&line.block);
            }
            _ => {
                if let Some(refusal) = outside::statement(&self.source, self.tokens, line) {
                    self.diags.push(refusal);
                    return;
                }
                if let Some(pair) = self.pairs(line) {
                    for simple in pair.into_inner() {
                        self.top_level(first, line, simple, module);
                    }
                }
                self.no_block(line);
            }
        }
    }

    fn head_word(&self, line: &Line) -> Span {
        let token = self.tokens[line.tokens.start];
        self.source.span(token.start, token.end)
    }

    /// Builds a simple statement at the top level.
    fn top_level(&mut self, first: bool, line: &Line, pair: Pair<'a, Rule>, module: &mut Module) {
        let span = self.builder(line).span(&pair);
        if pair.as_rule() == Rule::import_stmt {
            let import = self.import(line, pair);
            module.items.extend(import.map(Item::Import));
            return;
        }
        let Some(stmt) = self.simple(line, pair) else { return };
        let problem = match stmt.kind {
            StmtKind::Assign { mut targets, value } => match targets.pop().map(|t| (t.kind, t.span)) {
                Some((ExprKind::Name(text), span)) if targets.is_empty() => {
                    module.items.push(Item::Assign { name: Name { text, span }, value });
                    return;
                }
                _ => "an assignment to anything but one name",
            },
            StmtKind::Expr(Expr { kind: ExprKind::Str(text), .. }) => {
                if first && module.doc.is_none() && module.items.is_empty() {
                    module.doc = Some(text);
                }
                return;
            }
            StmtKind::Pass => return,
            StmtKind::Declare { .. } => "a declaration with a type",
            StmtKind::Return { .. } => "`return`",
            StmtKind::Assert { .. } => "`assert`",
            StmtKind::Augment { .. } => "an augmented assignment",
            _ => "an expression",
        };
        self.diags.push(
            Diagnostic::new("syntax::top_level", format!("{problem} is not supported at the top level of a file")).at(span).help(
                "move it into a function: a file holds imports, assignments of static values (`n = 64`) and functions",
            ),
        );
    }

    fn lost_decorators(&mut self, decorators: &[Expr]) {
        if let Some(last) = decorators.last() {
            self.diags.push(
                Diagnostic::new("syntax::decorator", "expected a function after the decorator")
                    .at(last.span)
                    .help("write `def` on the next line"),
            );
        }
    }

    /// Reports a block under a line that takes none, and checks the block for its own problems.
    fn no_block(&mut self, line: &Line) {
        if let Some(inner) = line.block.first() {
            if !line.broken {
                self.diags.push(
                    Diagnostic::new("syntax::indentation", "unexpected indentation")
                        .at(self.head_word(inner))
                        .label(self.head_word(line), "this statement takes no block")
                        .help("indent it like the line before"),
                );
            }
            self.block(&line.block);
        }
    }

    /// Builds the statements of a block.
    fn block(&mut self, lines: &[Line]) -> Vec<Stmt> {
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            match self.word(line) {
                "for" => out.extend(self.for_(line)),
                "if" => {
                    let chain = lines[at..].iter().take_while(|l| matches!(self.word(l), "elif" | "else")).count();
                    out.extend(self.if_(&lines[at - 1..at + chain]));
                    at += chain;
                }
                "elif" | "else" => {
                    let before = at.checked_sub(2).and_then(|i| lines.get(i)).map(|l| self.word(l));
                    self.diags.push(problem::lone_else(self.head_word(line), self.word(line), before));
                    self.block(&line.block);
                }
                "def" | "@" => {
                    self.diags.push(
                        Diagnostic::new("python::closure", "a function inside a function is not supported")
                            .at(self.head_word(line))
                            .help("move it to the top level, and pass the values it uses as parameters"),
                    );
                    // One report for a decorator and its function.
                    at += lines[at..].iter().take_while(|_| self.word(line) == "@").take(1).count();
                }
                _ => match outside::statement(&self.source, self.tokens, line) {
                    Some(refusal) => {
                        self.diags.push(refusal);
                        if outside::has_statements(self.word(line)) {
                            self.block(&line.block);
                        }
                    }
                    None => {
                        if let Some(pair) = self.pairs(line) {
                            out.extend(self.suite(line, pair));
                        }
                        self.no_block(line);
                    }
                },
            }
        }
        out
    }

    /// Builds the simple statements of one line.
    fn suite(&mut self, line: &Line, pair: Pair<'a, Rule>) -> Vec<Stmt> {
        pair.into_inner().filter_map(|p| self.simple(line, p)).collect()
    }

    /// Parses a head; its pairs are without keywords, and the statements after its colon are kept apart.
    fn head(&mut self, line: &Line) -> Option<Head<'a>> {
        let pair = self.pairs(line)?;
        let mut head = Head { pairs: Vec::new(), suite: None };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::suite => head.suite = Some(part),
                Rule::name | Rule::params | Rule::returns | Rule::targets | Rule::exprs | Rule::expr => {
                    head.pairs.push(part);
                }
                _ => {}
            }
        }
        Some(head)
    }

    /// Builds the body of a head: the statements after its colon, or the block under it.
    fn body(&mut self, line: &Line, suite: Option<Pair<'a, Rule>>) -> Vec<Stmt> {
        if let Some(suite) = suite {
            let body = self.suite(line, suite);
            self.no_block(line);
            return body;
        }
        if line.block.is_empty() {
            let word = self.word(line);
            self.diags.push(
                Diagnostic::new("syntax::indentation", format!("expected an indented block after `{word}`"))
                    .at(self.line_span(line))
                    .help("indent the statements that belong to it by four spaces, or write `pass`"),
            );
        }
        self.block(&line.block)
    }

    fn for_(&mut self, line: &Line) -> Option<Stmt> {
        let Some(head) = self.head(line) else {
            self.block(&line.block);
            return None;
        };
        let mut parts = head.pairs.into_iter();
        let (targets, iter) = (parts.next()?, parts.next()?);
        let mut b = self.builder(line);
        let targets = b.targets(targets);
        let iter = b.value(iter);
        let mut body = self.body(line, head.suite);
        body.retain(says_something);
        Some(Stmt { kind: StmtKind::For { targets, iter, body }, span: self.block_span(line) })
    }

    /// Builds an `if` with the `elif` and `else` lines after it; `None` if one of them does not parse.
    fn if_(&mut self, chain: &[Line]) -> Option<Stmt> {
        if chain.len() > MAX_DEPTH {
            self.diags.push(
                Diagnostic::new("syntax::depth", format!("an `if` has more than {MAX_DEPTH} branches"))
                    .at(self.head_word(&chain[MAX_DEPTH]))
                    .help("split the cases into groups, each with its own `if`"),
            );
            return None;
        }
        let mut branches: Vec<(Option<Expr>, Vec<Stmt>, Span)> = Vec::new();
        let mut complete = true;
        for (i, line) in chain.iter().enumerate() {
            let after_else = i > 0 && self.word(&chain[i - 1]) == "else";
            if after_else {
                self.diags.push(problem::lone_else(self.head_word(line), self.word(line), Some("else")));
                complete = false;
            }
            let Some(head) = self.head(line) else {
                self.block(&line.block);
                complete = false;
                continue;
            };
            let cond = head.pairs.into_iter().next().map(|p| self.builder(line).expr(p, 0));
            let mut body = self.body(line, head.suite);
            body.retain(says_something);
            branches.push((cond, body, self.block_span(line)));
        }
        if !complete {
            return None;
        }
        let end = branches.last().map(|b| b.2)?;
        let mut otherwise = Vec::new();
        for (cond, body, span) in branches.into_iter().rev() {
            otherwise = match cond {
                None => body,
                Some(cond) => {
                    vec![Stmt { kind: StmtKind::If { cond, then: body, otherwise }, span: span.to(end) }]
                }
            };
        }
        otherwise.pop()
    }

    fn function(&mut self, line: &Line, decorators: Vec<Expr>) -> Option<Function> {
        let Some(head) = self.head(line) else {
            self.block(&line.block);
            return None;
        };
        let (mut name, mut params, mut returns) = (None, Vec::new(), None);
        for part in head.pairs {
            match part.as_rule() {
                Rule::name => name = Some(self.builder(line).name(&part)),
                Rule::params => params = self.params(line, part),
                _ => returns = part.into_inner().next().map(|p| self.builder(line).expr(p, 0)),
            }
        }
        let mut body = self.body(line, head.suite);
        let doc = match body.first_mut().map(|s| &mut s.kind) {
            Some(StmtKind::Expr(Expr { kind: ExprKind::Str(text), .. })) => Some(std::mem::take(text)),
            _ => None,
        };
        body.retain(says_something);
        let span = decorators.first().map_or(Span::NONE, |d| Span { start: d.span.start.saturating_sub(1), ..d.span });
        Some(Function { name: name?, decorators, params, returns, doc, body, span: span.to(self.block_span(line)) })
    }

    fn params(&mut self, line: &Line, pair: Pair<'a, Rule>) -> Vec<Param> {
        let mut params: Vec<Param> = Vec::new();
        for part in pair.into_inner() {
            let mut param: Option<Param> = None;
            for piece in part.into_inner() {
                let mut b = self.builder(line);
                match (piece.as_rule(), param.as_mut()) {
                    (Rule::annotation, Some(param)) => {
                        param.annotation = piece.into_inner().next().map(|p| b.expr(p, 0));
                    }
                    (Rule::default, Some(param)) => param.default = piece.into_inner().next().map(|p| b.expr(p, 0)),
                    _ => param = Some(Param { name: b.name(&piece), annotation: None, default: None }),
                }
            }
            let Some(param) = param else { continue };
            let name = &param.name;
            if let Some(other) = params.iter().find(|p| p.name.text == name.text) {
                self.diags.push(
                    Diagnostic::new("syntax::parameter", format!("two parameters are named `{}`", name.text))
                        .at(name.span)
                        .label(other.name.span, "first here")
                        .help("rename one of them"),
                );
            }
            if param.default.is_none() && params.last().is_some_and(|p| p.default.is_some()) {
                self.diags.push(
                    Diagnostic::new(
                        "syntax::parameter",
                        format!("the parameter `{}` without a default follows a parameter with a default", name.text),
                    )
                    .at(name.span)
                    .help("give it a default too, or move it to the front"),
                );
            }
            params.push(param);
        }
        params
    }

    fn import(&mut self, line: &Line, pair: Pair<'a, Rule>) -> Option<Import> {
        let b = self.builder(line);
        let span = b.span(&pair);
        let (mut module, mut names, mut dotted) = (None, Vec::new(), false);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::module => {
                    let span = b.span(&part);
                    let parts: Vec<&str> = part.into_inner().map(|p| p.as_str()).collect();
                    dotted = parts.len() > 1;
                    module = Some(Name { text: parts.join("."), span });
                }
                Rule::imported => {
                    let mut parts = part.into_inner().filter(|p| p.as_rule() == Rule::name).map(|p| b.name(&p));
                    names.extend(parts.next().map(|name| (name, parts.next())));
                }
                _ => {}
            }
        }
        let module = module?;
        if dotted {
            self.diags.push(
                Diagnostic::new("python::import", format!("`{}` is not a module name", module.text))
                    .at(module.span)
                    .help("a module is a file beside this one, or `libop`: `from mymodule import f`"),
            );
            return None;
        }
        Some(Import { module, names, span })
    }

    /// Builds a simple statement inside a function.
    fn simple(&mut self, line: &Line, pair: Pair<'a, Rule>) -> Option<Stmt> {
        let mut b = self.builder(line);
        let span = b.span(&pair);
        let kind = match pair.as_rule() {
            Rule::pass_stmt => StmtKind::Pass,
            Rule::return_stmt => {
                let value = pair.into_inner().find(|p| p.as_rule() == Rule::exprs);
                StmtKind::Return { value: value.map(|p| b.value(p)) }
            }
            Rule::assert_stmt => {
                let mut parts = pair.into_inner().filter(|p| p.as_rule() == Rule::expr);
                let cond = b.expr(parts.next()?, 0);
                StmtKind::Assert { cond, message: parts.next().map(|p| b.expr(p, 0)) }
            }
            Rule::import_stmt => {
                b.diags.push(
                    Diagnostic::new("python::import", "an import inside a function is not supported")
                        .at(span)
                        .help("move it to the top of the file"),
                );
                return None;
            }
            _ => expr_stmt(&mut b, pair)?,
        };
        Some(Stmt { kind, span })
    }
}

/// Returns whether a statement has an effect: a string that stands alone, as docstrings do, has none.
fn says_something(stmt: &Stmt) -> bool {
    !matches!(&stmt.kind, StmtKind::Expr(e) if matches!(e.kind, ExprKind::Str(_)))
}

/// Builds `e`, `a = e`, `a += e` or `a: t = e`.
fn expr_stmt(b: &mut Builder<'_, '_>, pair: Pair<'_, Rule>) -> Option<StmtKind> {
    let mut parts = pair.into_inner();
    let left = parts.next()?;
    let left_span = b.span(&left);
    let Some(tail) = parts.next() else { return Some(StmtKind::Expr(b.value(left))) };
    if let Some(chained) = parts.next() {
        b.diags.push(
            Diagnostic::new("python::chained_assignment", "chained assignment is not supported")
                .at(b.span(&chained))
                .help("write one assignment per line"),
        );
        return None;
    }
    match tail.as_rule() {
        Rule::assign => {
            let targets = assign_targets(b, left, left_span);
            let value = b.value(tail.into_inner().next()?);
            Some(StmtKind::Assign { targets: targets?, value })
        }
        Rule::augment => {
            let target = b.value(left);
            let mut tail = tail.into_inner();
            let op = operators::binary(tail.next()?.as_str().trim_end());
            let value = b.value(tail.next()?);
            let ok = !matches!(target.kind, ExprKind::Tuple(_)) && is_target(b, &target);
            if matches!(target.kind, ExprKind::Tuple(_)) {
                b.diags.push(problem::bad_target(target.span, "a tuple", "write one augmented assignment per element"));
            }
            ok.then_some(StmtKind::Augment { target, op, value })
        }
        _ => {
            let target = b.value(left);
            let mut tail = tail.into_inner();
            let annotation = b.expr(tail.next()?, 0);
            let value = tail.next().map(|p| b.value(p));
            match target.kind {
                ExprKind::Name(text)
                    if left_span == target.span && b.source.text[left_span.start as usize..].starts_with(&text) =>
                {
                    Some(StmtKind::Declare { name: Name { text, span: target.span }, annotation, value })
                }
                _ => {
                    b.diags.push(problem::bad_target(
                        target.span,
                        "an annotated target that is not a name",
                        "declare one name: `t: f32[n] = zeros((n,), f32)`",
                    ));
                    None
                }
            }
        }
    }
}

/// Builds the left-hand sides of an assignment. A tuple or list in brackets is equivalent to a bare one; one of a
/// single item stays a tuple, so that it unpacks.
fn assign_targets(b: &mut Builder<'_, '_>, left: Pair<'_, Rule>, span: Span) -> Option<Vec<Expr>> {
    let (mut targets, tuple) = b.exprs(left);
    if tuple && targets.len() < 2 {
        targets = vec![Expr { kind: ExprKind::Tuple(targets), span }];
    }
    if let [Expr { kind: ExprKind::Tuple(items) | ExprKind::List(items), .. }] = &mut targets[..]
        && items.len() > 1
    {
        targets = std::mem::take(items);
    }
    let mut ok = true;
    for target in &targets {
        ok &= is_unpacked(b, target);
    }
    ok.then_some(targets)
}

/// Checks that a target can be assigned to or unpacked into; reports each part that cannot.
fn is_unpacked(b: &mut Builder<'_, '_>, target: &Expr) -> bool {
    match &target.kind {
        ExprKind::Tuple(items) | ExprKind::List(items) if items.is_empty() => {
            b.diags.push(problem::bad_target(target.span, "an empty tuple", "leave it out: write the value alone"));
            false
        }
        ExprKind::Tuple(items) | ExprKind::List(items) => {
            // `all` would stop at the first bad target; each one is reported.
            let wrong = items.iter().filter(|item| !is_unpacked(b, item)).count();
            wrong == 0
        }
        _ => is_target(b, target),
    }
}

/// Checks that a target can be assigned to; reports it if not.
fn is_target(b: &mut Builder<'_, '_>, target: &Expr) -> bool {
    let what = match &target.kind {
        ExprKind::Name(_) | ExprKind::Attribute(..) | ExprKind::Subscript(..) => return true,
        ExprKind::Call { .. } => "a call",
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) | ExprKind::Format(_) => "a literal",
        ExprKind::Bool(_) | ExprKind::None | ExprKind::Ellipsis => "a constant",
        ExprKind::Compare(..) => "a comparison",
        _ => "an expression",
    };
    b.diags.push(problem::bad_target(
        target.span,
        what,
        "assign to a name or to elements: `t = e`, `t[i] = e`, `t[...] = e`",
    ));
    false
}
