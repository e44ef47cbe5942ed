//! Expressions: pest pairs → [`syntax::Expr`](crate::syntax::Expr).
//!
//! The grammar leaves operators and operands in a flat row; `operators` resolves precedence. Building never fails: a
//! refused literal or construct leaves a diagnostic, and some expression in its place.
//!
//! `depth` is passed downwards and grows by the length of each chain of operators, so that it is an upper bound of the
//! tree's depth, whichever way the chain leans.

use super::grammar::{Grammar, Rule};
use super::operators::{self, Piece};
use super::source::{MAX_DEPTH, Source};
use super::token::Token;
use super::{literal, problem, token};
use crate::syntax::{Arg, Expr, ExprKind, Name};
use pest::Parser;
use pest::iterators::{Pair, Pairs};
use taffeta_ast::Span;
use taffeta_ast::diag::Diagnostic;

/// Tree builder over the pairs of one piece of text (a logical line, or an expression inside an f-string).
pub struct Builder<'a, 'd> {
    /// Source file.
    pub source: Source<'a>,
    /// Byte offset of the parsed piece in the file.
    pub base: usize,
    /// Tokens of the piece.
    pub tokens: &'a [Token],
    /// Diagnostics found while building.
    pub diags: &'d mut Vec<Diagnostic>,
    /// Whether the piece stands inside an f-string, where another f-string is refused.
    pub in_format: bool,
}

impl Builder<'_, '_> {
    /// Returns the span of a pair in the file. pest counts the blanks and comments after a pair to the pair; the span
    /// excludes them.
    pub fn span(&self, pair: &Pair<'_, Rule>) -> Span {
        let (start, end) = (self.base + pair.as_span().start(), self.base + pair.as_span().end());
        let inside = self.tokens.partition_point(|t| t.end <= end);
        let last = self.tokens[..inside].iter().rev().find(|t| t.is_significant()).map_or(end, |t| t.end);
        self.source.span(start, last.max(start))
    }

    /// Builds a `name`.
    pub fn name(&self, pair: &Pair<'_, Rule>) -> Name {
        Name { text: pair.as_str().to_string(), span: self.span(pair) }
    }

    /// Builds `exprs`: one expression, or a bare tuple. The flag tells whether a comma made it a tuple.
    pub fn exprs(&mut self, pair: Pair<'_, Rule>) -> (Vec<Expr>, bool) {
        let mut bare_tuple = false;
        let mut items = Vec::new();
        for inner in pair.into_inner() {
            match inner.as_rule() {
                Rule::trailing => bare_tuple = true,
                _ => items.push(self.expr(inner, 0)),
            }
        }
        bare_tuple |= items.len() > 1;
        (items, bare_tuple)
    }

    /// Builds `exprs` as one expression.
    pub fn value(&mut self, pair: Pair<'_, Rule>) -> Expr {
        let span = self.span(&pair);
        let (mut items, tuple) = self.exprs(pair);
        match items.pop() {
            Some(only) if !tuple => only,
            last => {
                items.extend(last);
                Expr { kind: ExprKind::Tuple(items), span }
            }
        }
    }

    /// Builds an `expr`.
    pub fn expr(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        let span = self.span(&pair);
        let inner = pair.into_inner();
        match inner.peek() {
            Some(first) if first.as_rule() == Rule::lambda => {
                self.diags.push(
                    Diagnostic::new("python::lambda", "lambdas are not supported, except in `s.permute` of a schedule")
                        .at(self.span(&first))
                        .help("write a function with `def` and use its name"),
                );
                self.lambda(first, depth)
            }
            _ => self.conditional(inner, span, depth),
        }
    }

    fn lambda(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        let span = self.span(&pair);
        let mut params = Vec::new();
        let mut body = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::name => params.push(self.name(&part)),
                Rule::body => {
                    let span = self.span(&part);
                    body = Some(self.conditional(part.into_inner(), span, depth + 1));
                }
                _ => {}
            }
        }
        let body = Box::new(body.unwrap_or(Expr { kind: ExprKind::None, span }));
        Expr { kind: ExprKind::Lambda { params, body }, span }
    }

    /// Builds `a if c else b if d else e`: operations with keywords between them.
    fn conditional(&mut self, pairs: Pairs<'_, Rule>, span: Span, depth: usize) -> Expr {
        let mut operations: Vec<Vec<Pair<'_, Rule>>> = vec![Vec::new()];
        for pair in pairs {
            match pair.as_rule() {
                Rule::kw_if | Rule::kw_else => operations.push(Vec::new()),
                _ => {
                    if let Some(last) = operations.last_mut() {
                        last.push(pair);
                    }
                }
            }
        }
        // Each `if … else` is one level.
        let depth = depth + operations.len() / 2;
        if depth > MAX_DEPTH {
            return self.too_deep(span);
        }
        let mut operands: Vec<_> = operations.into_iter().map(|pairs| self.operation(pairs, span, depth)).collect();
        let mut result = operands.pop().unwrap_or(Expr { kind: ExprKind::None, span });
        while let (Some(cond), Some(then)) = (operands.pop(), operands.pop()) {
            let span = then.span.to(result.span);
            let (cond, then, otherwise) = (Box::new(cond), Box::new(then), Box::new(result));
            result = Expr { kind: ExprKind::IfElse { cond, then, otherwise }, span };
        }
        result
    }

    /// Builds a flat row of operators and operands.
    fn operation(&mut self, mut pairs: Vec<Pair<'_, Rule>>, span: Span, depth: usize) -> Expr {
        if pairs.len() == 1
            && let Some(only) = pairs.pop()
        {
            return self.primary(only, depth);
        }
        let depth = depth + operators::depth(pairs.iter().map(|p| (p.as_rule(), p.as_str())));
        if depth > MAX_DEPTH {
            return self.too_deep(span);
        }
        let pieces = pairs.into_iter().map(|pair| match pair.as_rule() {
            Rule::prefix => Piece::Prefix(pair.as_str(), self.span(&pair)),
            Rule::infix => Piece::Infix(pair.as_str()),
            _ => Piece::Operand(self.primary(pair, depth)),
        });
        let pieces = pieces.collect();
        operators::tree(pieces, span, self.diags)
    }

    fn too_deep(&mut self, span: Span) -> Expr {
        // One report is enough: every subexpression would repeat it.
        if !self.diags.iter().any(|d| d.code == "syntax::depth" && d.span().start >= span.start) {
            self.diags.push(super::source::too_deep(span));
        }
        Expr { kind: ExprKind::None, span }
    }

    /// Builds an atom with its calls, subscripts and attributes.
    fn primary(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        let whole = self.span(&pair);
        let mut inner = pair.into_inner();
        let depth = depth + inner.len().saturating_sub(1);
        if depth > MAX_DEPTH {
            return self.too_deep(whole);
        }
        let Some(atom) = inner.next() else { return Expr { kind: ExprKind::None, span: whole } };
        let mut result = self.atom(atom, depth);
        for postfix in inner {
            let span = Span { end: self.span(&postfix).end, ..whole };
            let callee = Box::new(result);
            let kind = match postfix.as_rule() {
                Rule::call => {
                    let method = match &callee.kind {
                        ExprKind::Attribute(_, name) => Some(name.text.as_str()),
                        _ => None,
                    };
                    let args = self.args(postfix, method, depth);
                    ExprKind::Call { callee, args }
                }
                Rule::subscript => {
                    ExprKind::Subscript(callee, postfix.into_inner().map(|p| self.index(p, depth)).collect())
                }
                _ => {
                    let name = postfix.into_inner().next().map(|p| self.name(&p));
                    ExprKind::Attribute(callee, name.unwrap_or(Name { text: String::new(), span }))
                }
            };
            result = Expr { kind, span };
        }
        result
    }

    /// Builds the arguments of a call. Arguments of `permute`, and of `can("permute", …)`, may be lambdas.
    fn args(&mut self, call: Pair<'_, Rule>, method: Option<&str>, depth: usize) -> Vec<Arg> {
        let mut args: Vec<Arg> = Vec::new();
        for arg in call.into_inner() {
            let span = self.span(&arg);
            let mut parts = arg.into_inner();
            let (first, second) = (parts.next(), parts.next());
            let name = second.as_ref().and(first.as_ref()).and_then(|p| self.keyword(p));
            let permute = match method {
                Some("permute") => true,
                Some("can") => {
                    args.first().is_some_and(|a| matches!(&a.value.kind, ExprKind::Str(s) if s == "permute"))
                }
                _ => false,
            };
            let value = second.or(first).map(|p| {
                let lambda = p.clone().into_inner().next().filter(|p| permute && p.as_rule() == Rule::lambda);
                match lambda {
                    Some(lambda) => self.lambda(lambda, depth),
                    None => self.expr(p, depth),
                }
            });
            let value = value.unwrap_or(Expr { kind: ExprKind::None, span });
            match &name {
                None if args.last().is_some_and(|a| a.name.is_some()) => self.diags.push(
                    Diagnostic::new("syntax::argument", "a positional argument follows a keyword argument")
                        .at(span)
                        .help("put positional arguments first, or give this one its name: `name=…`"),
                ),
                Some(name) => {
                    if let Some(other) = args.iter().filter_map(|a| a.name.as_ref()).find(|n| n.text == name.text) {
                        self.diags.push(
                            Diagnostic::new("syntax::argument", format!("argument `{}` is given twice", name.text))
                                .at(name.span)
                                .label(other.span, "first here")
                                .help("remove one of them"),
                        );
                    }
                }
                None => {}
            }
            args.push(Arg { name, value });
        }
        args
    }

    /// Reads the keyword before the `=` of an argument.
    fn keyword(&mut self, pair: &Pair<'_, Rule>) -> Option<Name> {
        let span = self.span(pair);
        let text = &self.source.text[span.start as usize..span.end as usize];
        if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && text.starts_with(|c: char| !c.is_ascii_digit())
        {
            return Some(Name { text: text.to_string(), span });
        }
        self.diags.push(
            Diagnostic::new("syntax::argument", "expected a name before `=` in a call")
                .at(span)
                .help("write `name=value` to pass an argument by name, or `==` to compare"),
        );
        None
    }

    /// Builds one item between `[` and `]`.
    fn index(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        let span = self.span(&pair);
        let (mut lower, mut upper, mut step, mut is_slice) = (None, None, None, false);
        for part in pair.into_inner() {
            if part.as_rule() != Rule::slice {
                lower = Some(self.expr(part, depth));
                continue;
            }
            is_slice = true;
            for bound in part.into_inner() {
                let is_upper = bound.as_rule() == Rule::upper;
                let value = bound.into_inner().next().map(|p| Box::new(self.expr(p, depth)));
                if is_upper { upper = value } else { step = value }
            }
        }
        match lower {
            Some(only) if !is_slice => only,
            lower => Expr { kind: ExprKind::Slice { lower: lower.map(Box::new), upper, step }, span },
        }
    }

    fn atom(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        let span = self.span(&pair);
        let kind = match pair.as_rule() {
            Rule::name => ExprKind::Name(pair.as_str().to_string()),
            Rule::number => literal::number(pair.as_str(), span, self.diags),
            Rule::strings => return self.strings(pair, span, depth),
            Rule::constant if pair.as_str() == "True" => ExprKind::Bool(true),
            Rule::constant if pair.as_str() == "False" => ExprKind::Bool(false),
            Rule::ellipsis => ExprKind::Ellipsis,
            Rule::group => return self.group(pair, span, depth),
            Rule::list => self.list(pair, depth),
            _ => ExprKind::None,
        };
        Expr { kind, span }
    }

    /// Builds `(e)` as `e` (with a span that includes the brackets); `(a, b)`, `(a,)` and `()` are tuples.
    fn group(&mut self, pair: Pair<'_, Rule>, span: Span, depth: usize) -> Expr {
        let mut items = Vec::new();
        let mut comma = false;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::trailing => comma = true,
                _ => items.push(self.expr(part, depth)),
            }
        }
        match items.pop() {
            Some(only) if items.is_empty() && !comma => Expr { span, ..only },
            last => {
                items.extend(last);
                Expr { kind: ExprKind::Tuple(items), span }
            }
        }
    }

    fn list(&mut self, pair: Pair<'_, Rule>, depth: usize) -> ExprKind {
        let mut items = Vec::new();
        for part in pair.into_inner() {
            if part.as_rule() != Rule::for_each {
                items.push(self.expr(part, depth));
                continue;
            }
            if let Some(element) = items.pop() {
                return self.comprehension(element, part, depth);
            }
        }
        ExprKind::List(items)
    }

    fn comprehension(&mut self, element: Expr, pair: Pair<'_, Rule>, depth: usize) -> ExprKind {
        let mut targets = Vec::new();
        let mut iter = None;
        let mut conds = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::kw_for if iter.is_some() => {
                    self.diags.push(
                        Diagnostic::new("python::comprehension", "a second `for` in a comprehension is not supported")
                            .at(self.span(&part))
                            .help("write `for i, j in ndrange(n, m)`, or nest the comprehensions"),
                    );
                    break;
                }
                Rule::targets => targets = self.targets(part),
                Rule::lone_operation => iter = Some(Box::new(self.lone_operation(part, depth))),
                Rule::condition => {
                    let cond = part.into_inner().find(|p| p.as_rule() == Rule::lone_operation);
                    conds.extend(cond.map(|p| self.lone_operation(p, depth)));
                }
                _ => {}
            }
        }
        let iter = iter.unwrap_or_else(|| Box::new(Expr { kind: ExprKind::None, span: element.span }));
        ExprKind::Comprehension { element: Box::new(element), targets, iter, conds }
    }

    fn lone_operation(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        let span = self.span(&pair);
        self.operation(pair.into_inner().collect(), span, depth)
    }

    /// Returns the names bound by a `for`.
    pub fn targets(&mut self, pair: Pair<'_, Rule>) -> Vec<Name> {
        let span = self.span(&pair);
        let mut names: Vec<Name> = Vec::new();
        let mut comma = false;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::trailing => comma = true,
                _ => {
                    let span = self.span(&part);
                    let parts: Vec<&str> = part.into_inner().map(|p| p.as_str()).collect();
                    names.push(Name { text: parts.join("."), span });
                }
            }
        }
        if comma && names.len() == 1 {
            self.diags.push(
                Diagnostic::new("syntax::target", "unexpected `,` after a single loop variable")
                    .at(span)
                    .help(format!("write `for {} in …`", names[0].text)),
            );
        }
        names
    }

    /// Joins adjacent strings.
    fn strings(&mut self, pair: Pair<'_, Rule>, span: Span, depth: usize) -> Expr {
        let mut parts: Vec<Expr> = Vec::new();
        let mut is_format = false;
        for part in pair.into_inner() {
            let start = self.base + part.as_span().start();
            is_format |= literal::string(self, part.as_str(), start, depth, &mut parts);
        }
        // Neighbouring pieces of plain text are merged.
        let mut joined: Vec<Expr> = Vec::new();
        for part in parts {
            match (joined.last_mut(), part.kind) {
                (Some(Expr { kind: ExprKind::Str(text), span }), ExprKind::Str(more)) => {
                    text.push_str(&more);
                    *span = span.to(part.span);
                }
                (_, kind) => joined.push(Expr { kind, span: part.span }),
            }
        }
        if is_format {
            joined.retain(|p| !matches!(&p.kind, ExprKind::Str(text) if text.is_empty()));
            return Expr { kind: ExprKind::Format(joined), span };
        }
        let kind = joined.pop().map_or(ExprKind::Str(String::new()), |p| p.kind);
        Expr { kind, span }
    }

    /// Parses the expression between the braces of an f-string; `start` is its byte offset in the file.
    pub fn format_field(&mut self, text: &str, start: usize, depth: usize) -> Expr {
        let span = self.source.span(start, start + text.len());
        let tokens = token::tokens(text, start);
        let plain = token::plain(text, &tokens, start);
        let mut inner =
            Builder { source: self.source, base: start, tokens: &tokens, diags: &mut *self.diags, in_format: true };
        match Grammar::parse(Rule::lone_expr, &plain) {
            Ok(mut pairs) => match pairs.next() {
                Some(pair) => inner.expr(pair, depth + 1),
                None => Expr { kind: ExprKind::None, span },
            },
            Err(error) => {
                self.diags.push(problem::unexpected(&self.source, &tokens, start, &error));
                Expr { kind: ExprKind::None, span }
            }
        }
    }
}
