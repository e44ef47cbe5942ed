//! Expressions: pest pairs → [`syntax::Expr`](crate::syntax::Expr).
//!
//! Below comparison the grammar is flat and precedence comes from one table (pest's Pratt parser). Building never fails: a
//! literal or construct that is refused leaves a diagnostic and some expression in its place.
//!
//! `depth` is passed downwards and grows by the length of each chain of operators, so that it bounds the depth of the
//! tree from above, whichever way the chain leans.

use super::token::Token;
use super::{Grammar, MAX_DEPTH, Rule, Source, literal, problem, token};
use crate::syntax::{Arg, BinOp, CmpOp, Expr, ExprKind, Name, UnaryOp};
use pest::Parser;
use pest::iterators::{Pair, Pairs};
use pest::pratt_parser::{Assoc, Op, PrattParser};
use std::sync::LazyLock;
use weft_ast::Span;
use weft_ast::diag::Diagnostic;

/// Python's precedences below comparison, loosest first.
static PRECEDENCE: LazyLock<PrattParser<Rule>> = LazyLock::new(|| {
    let left = |rule| Op::infix(rule, Assoc::Left);
    PrattParser::new()
        .op(left(Rule::bit_or))
        .op(left(Rule::bit_xor))
        .op(left(Rule::bit_and))
        .op(left(Rule::shl) | left(Rule::shr))
        .op(left(Rule::add) | left(Rule::sub))
        .op(left(Rule::mul) | left(Rule::div) | left(Rule::floor_div) | left(Rule::rem) | left(Rule::matmul))
        .op(Op::prefix(Rule::neg) | Op::prefix(Rule::pos) | Op::prefix(Rule::invert))
        .op(Op::infix(Rule::pow, Assoc::Right))
});

/// Builds trees from the pairs of one piece of text (a logical line, or an expression inside an f-string).
pub struct Builder<'a, 'd> {
    /// The file.
    pub source: Source<'a>,
    /// Where the parsed piece starts in the file.
    pub base: usize,
    /// The tokens of the piece.
    pub tokens: &'a [Token],
    /// Problems found while building.
    pub diags: &'d mut Vec<Diagnostic>,
    /// Whether the piece stands inside an f-string, where Python allows less.
    pub in_format: bool,
}

impl Builder<'_, '_> {
    /// The place of a pair in the file. pest counts the blanks and comments after a pair to it; they are left out here.
    pub fn span(&self, pair: &Pair<'_, Rule>) -> Span {
        place(&self.source, self.base, self.tokens, pair)
    }

    /// `name`
    pub fn name(&self, pair: &Pair<'_, Rule>) -> Name {
        Name { text: pair.as_str().to_string(), span: self.span(pair) }
    }

    /// `exprs`: one expression, or a bare tuple. The flag says whether a comma made it a tuple.
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

    /// `exprs` as one expression.
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

    /// `expr`
    pub fn expr(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        let span = self.span(&pair);
        let mut inner = pair.into_inner();
        match inner.peek() {
            Some(first) if first.as_rule() == Rule::lambda => {
                self.diags.push(
                    Diagnostic::new("python::lambda", "there are no lambdas, except in `s.permute` of a schedule")
                        .at(self.span(&first))
                        .help("write a function with `def` and use its name"),
                );
                self.lambda(first, depth)
            }
            _ => self.conditional(&mut inner, span, depth),
        }
    }

    fn lambda(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        let span = self.span(&pair);
        let mut inner = pair.into_inner();
        let mut params = Vec::new();
        for pair in inner.by_ref() {
            match pair.as_rule() {
                Rule::name => params.push(self.name(&pair)),
                Rule::colon => break,
                _ => {}
            }
        }
        let body_span = inner.peek().map_or(span, |p| Span { start: self.span(&p).start, ..span });
        let body = Box::new(self.conditional(&mut inner, body_span, depth + 1));
        Expr { kind: ExprKind::Lambda { params, body }, span }
    }

    /// `a if c else b if d else e`: the operands in order, keywords between them.
    fn conditional(&mut self, pairs: &mut Pairs<'_, Rule>, span: Span, depth: usize) -> Expr {
        let operands: Vec<_> = pairs.filter(|p| p.as_rule() == Rule::or_test).collect();
        // Each `if … else` is one level.
        let depth = depth + operands.len() / 2;
        if depth > MAX_DEPTH {
            return self.too_deep(span);
        }
        let mut operands: Vec<_> = operands.into_iter().map(|p| self.or_test(p, depth)).collect();
        let mut result = operands.pop().unwrap_or(Expr { kind: ExprKind::None, span });
        while let (Some(cond), Some(then)) = (operands.pop(), operands.pop()) {
            let span = then.span.to(result.span);
            let (cond, then, otherwise) = (Box::new(cond), Box::new(then), Box::new(result));
            result = Expr { kind: ExprKind::IfElse { cond, then, otherwise }, span };
        }
        result
    }

    fn or_test(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        self.chain(pair, Rule::and_test, depth, Self::and_test, ExprKind::Or)
    }

    fn and_test(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        self.chain(pair, Rule::not_test, depth, Self::not_test, ExprKind::And)
    }

    /// Operands of rule `operand`, joined by `make` where there are several.
    fn chain(
        &mut self,
        pair: Pair<'_, Rule>,
        operand: Rule,
        depth: usize,
        build: fn(&mut Self, Pair<'_, Rule>, usize) -> Expr,
        make: fn(Vec<Expr>) -> ExprKind,
    ) -> Expr {
        let span = self.span(&pair);
        let operands: Vec<_> = pair.into_inner().filter(|p| p.as_rule() == operand).collect();
        let several = operands.len() > 1;
        let depth = depth + usize::from(several);
        let mut operands: Vec<_> = operands.into_iter().map(|p| build(self, p, depth)).collect();
        match operands.pop() {
            Some(only) if !several => only,
            last => {
                operands.extend(last);
                Expr { kind: make(operands), span }
            }
        }
    }

    fn not_test(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        let span = self.span(&pair);
        let mut nots = Vec::new();
        let mut result = Expr { kind: ExprKind::None, span };
        for inner in pair.into_inner() {
            match inner.as_rule() {
                Rule::kw_not => nots.push(self.span(&inner)),
                _ if depth + nots.len() > MAX_DEPTH => return self.too_deep(span),
                _ => result = self.comparison(inner, depth + nots.len()),
            }
        }
        for not in nots.into_iter().rev() {
            let span = not.to(result.span);
            result = Expr { kind: ExprKind::Unary(UnaryOp::Not, Box::new(result)), span };
        }
        result
    }

    fn comparison(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        let span = self.span(&pair);
        let mut first = None;
        let mut rest = Vec::new();
        let mut op = None;
        let mut inner = pair.into_inner().peekable();
        let mut depth = depth;
        while let Some(part) = inner.next() {
            if part.as_rule() == Rule::cmp_op {
                op = Some(cmp_op(&part));
                continue;
            }
            depth += usize::from(first.is_none() && inner.peek().is_some());
            let operand = self.arith(part, depth);
            match op.take() {
                Some(op) => rest.push((op, operand)),
                None => first = Some(operand),
            }
        }
        let first = first.unwrap_or(Expr { kind: ExprKind::None, span });
        if rest.is_empty() {
            return first;
        }
        Expr { kind: ExprKind::Compare(Box::new(first), rest), span }
    }

    fn arith(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        let span = self.span(&pair);
        let inner = pair.into_inner();
        let length = inner.len();
        if length == 1 {
            return inner.last().map_or(Expr { kind: ExprKind::None, span }, |p| self.primary(p, depth));
        }
        // Every pair but one is an operator or the operand that it brings.
        let depth = depth + length - 1;
        if depth > MAX_DEPTH {
            return self.too_deep(span);
        }
        let (source, base, tokens) = (self.source, self.base, self.tokens);
        let place = |p: &Pair<'_, Rule>| place(&source, base, tokens, p);
        PRECEDENCE
            .map_primary(|p| self.primary(p, depth))
            .map_prefix(|op, operand| {
                let span = place(&op).to(operand.span);
                Expr { kind: ExprKind::Unary(prefix_op(op.as_rule()), Box::new(operand)), span }
            })
            .map_infix(|left, op, right| {
                let span = left.span.to(right.span);
                Expr { kind: ExprKind::Binary(infix_op(op.as_rule()), Box::new(left), Box::new(right)), span }
            })
            .parse(inner)
    }

    fn too_deep(&mut self, span: Span) -> Expr {
        // Once is enough: everything inside would say the same.
        if !self.diags.iter().any(|d| d.code == "syntax::depth" && d.span().start >= span.start) {
            self.diags.push(super::too_deep(span));
        }
        Expr { kind: ExprKind::None, span }
    }

    /// An atom with its calls, subscripts and attributes.
    fn primary(&mut self, pair: Pair<'_, Rule>, depth: usize) -> Expr {
        let whole = self.span(&pair);
        let mut inner = pair.into_inner();
        let depth = depth + inner.len();
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
                    let permute = matches!(&callee.kind, ExprKind::Attribute(_, name) if name.text == "permute");
                    let args = self.args(postfix, permute, depth);
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

    /// Arguments; those of `permute` may be lambdas.
    fn args(&mut self, call: Pair<'_, Rule>, permute: bool, depth: usize) -> Vec<Arg> {
        let mut args: Vec<Arg> = Vec::new();
        for arg in call.into_inner() {
            let span = self.span(&arg);
            let mut name = None;
            let mut value = Expr { kind: ExprKind::None, span };
            for part in arg.into_inner() {
                if part.as_rule() == Rule::name {
                    name = Some(self.name(&part));
                    continue;
                }
                let lambda = part.clone().into_inner().next().filter(|p| permute && p.as_rule() == Rule::lambda);
                value = match lambda {
                    Some(lambda) => self.lambda(lambda, depth),
                    None => self.expr(part, depth),
                };
            }
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

    /// One item between `[` and `]`.
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
            Rule::true_ => ExprKind::Bool(true),
            Rule::false_ => ExprKind::Bool(false),
            Rule::ellipsis => ExprKind::Ellipsis,
            Rule::group => return self.group(pair, span, depth),
            Rule::list => self.list(pair, depth),
            _ => ExprKind::None,
        };
        Expr { kind, span }
    }

    /// `(e)` is `e` (with a span that has the brackets); `(a, b)`, `(a,)` and `()` are tuples.
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
                        Diagnostic::new("python::comprehension", "a comprehension has one `for`")
                            .at(self.span(&part))
                            .help("write `for i, j in ndrange(n, m)`, or a comprehension inside the other"),
                    );
                    break;
                }
                Rule::targets => targets = self.targets(part),
                Rule::or_test => iter = Some(Box::new(self.or_test(part, depth))),
                Rule::condition => conds
                    .extend(part.into_inner().find(|p| p.as_rule() == Rule::or_test).map(|p| self.or_test(p, depth))),
                _ => {}
            }
        }
        let iter = iter.unwrap_or_else(|| Box::new(Expr { kind: ExprKind::None, span: element.span }));
        ExprKind::Comprehension { element: Box::new(element), targets, iter, conds }
    }

    /// The names that a `for` binds.
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
                Diagnostic::new("syntax::target", "a comma after a single loop variable unpacks a tuple of one")
                    .at(span)
                    .help(format!("write `for {} in …`", names[0].text)),
            );
        }
        names
    }

    /// Adjacent strings, joined.
    fn strings(&mut self, pair: Pair<'_, Rule>, span: Span, depth: usize) -> Expr {
        let mut parts: Vec<Expr> = Vec::new();
        let mut is_format = false;
        for part in pair.into_inner() {
            let start = self.base + part.as_span().start();
            is_format |= literal::string(self, part.as_str(), start, depth, &mut parts);
        }
        // Plain text that meets plain text is one piece.
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

    /// The expression between the braces of an f-string, which stands at `start` in the file.
    pub fn format_field(&mut self, text: &str, start: usize, depth: usize) -> Expr {
        let span = self.source.span(start, start + text.len());
        let tokens = token::tokens(text, start);
        let mut inner =
            Builder { source: self.source, base: start, tokens: &tokens, diags: &mut *self.diags, in_format: true };
        match Grammar::parse(Rule::lone_expr, text) {
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

fn place(source: &Source<'_>, base: usize, tokens: &[Token], pair: &Pair<'_, Rule>) -> Span {
    let (start, end) = (base + pair.as_span().start(), base + pair.as_span().end());
    let inside = tokens.partition_point(|t| t.end <= end);
    let last = tokens[..inside].iter().rev().find(|t| t.is_significant()).map_or(end, |t| t.end);
    source.span(start, last.max(start))
}

fn cmp_op(pair: &Pair<'_, Rule>) -> CmpOp {
    let op = pair.clone().into_inner().next();
    match op.as_ref().map(Pair::as_rule) {
        Some(Rule::not_in) => CmpOp::NotIn,
        Some(Rule::kw_in) => CmpOp::In,
        Some(Rule::is_not) => CmpOp::IsNot,
        Some(Rule::kw_is) => CmpOp::Is,
        _ => match op.as_ref().map_or("", Pair::as_str) {
            "==" => CmpOp::Eq,
            "!=" => CmpOp::Ne,
            "<" => CmpOp::Lt,
            "<=" => CmpOp::Le,
            ">" => CmpOp::Gt,
            _ => CmpOp::Ge,
        },
    }
}

fn prefix_op(rule: Rule) -> UnaryOp {
    match rule {
        Rule::neg => UnaryOp::Neg,
        Rule::pos => UnaryOp::Pos,
        _ => UnaryOp::Invert,
    }
}

/// The operator of an infix rule; also of an augmented assignment, by [`augmented`].
fn infix_op(rule: Rule) -> BinOp {
    match rule {
        Rule::add => BinOp::Add,
        Rule::sub => BinOp::Sub,
        Rule::mul => BinOp::Mul,
        Rule::div => BinOp::Div,
        Rule::floor_div => BinOp::FloorDiv,
        Rule::rem => BinOp::Mod,
        Rule::pow => BinOp::Pow,
        Rule::matmul => BinOp::MatMul,
        Rule::bit_and => BinOp::BitAnd,
        Rule::bit_or => BinOp::BitOr,
        Rule::bit_xor => BinOp::BitXor,
        Rule::shl => BinOp::Shl,
        _ => BinOp::Shr,
    }
}

/// The operator of `+=` and so on.
pub fn augmented(text: &str) -> BinOp {
    match text {
        "+=" => BinOp::Add,
        "-=" => BinOp::Sub,
        "*=" => BinOp::Mul,
        "/=" => BinOp::Div,
        "//=" => BinOp::FloorDiv,
        "%=" => BinOp::Mod,
        "**=" => BinOp::Pow,
        "@=" => BinOp::MatMul,
        "&=" => BinOp::BitAnd,
        "|=" => BinOp::BitOr,
        "^=" => BinOp::BitXor,
        "<<=" => BinOp::Shl,
        _ => BinOp::Shr,
    }
}
