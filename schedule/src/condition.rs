//! Parser of conditions, such as the `"n % 8 == 0 and m < 100"` of `specialize`: text to a Boolean expression over
//! sizes and iterators.
//!
//! ```text
//! or         = and ("or" and)*
//! and        = not ("and" not)*
//! not        = "not" not | comparison
//! comparison = sum (("<" | "<=" | ">" | ">=" | "==" | "!=") sum)*        a chain, as in Python
//! sum        = product (("+" | "-") product)*
//! product    = factor (("*" | "//" | "%") factor)*
//! factor     = "-" factor | integer | name | ("min" | "max") "(" sum "," sum ")" | "(" or ")"
//! ```

use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, Symbol};

/// Maximum nesting depth of brackets and unary operators.
const DEPTH: usize = 100;

/// Parses a condition over the symbols `names`; among symbols of one name, the first one is meant.
pub fn read(text: &str, names: &[Symbol]) -> Result<Expr, String> {
    let tokens = tokens(text)?;
    let mut r = Reader { tokens: &tokens, at: 0, names, depth: 0 };
    let e = r.or()?;
    if r.at < tokens.len() {
        return Err(format!("unexpected `{}` in the condition", tokens[r.at]));
    }
    condition(e)
}

fn tokens(text: &str) -> Result<Vec<String>, String> {
    let chars: Vec<char> = text.chars().collect();
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '~' | '.');
    let (mut out, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        let c = chars[at];
        let next = chars.get(at + 1).copied();
        let length = match c {
            _ if c.is_whitespace() => {
                at += 1;
                continue;
            }
            _ if word(c) => chars[at..].iter().take_while(|c| word(**c)).count(),
            '<' | '>' | '=' | '!' if next == Some('=') => 2,
            '/' if next == Some('/') => 2,
            '<' | '>' | '+' | '-' | '*' | '%' | '(' | ')' | ',' => 1,
            _ => return Err(format!("unexpected `{c}` in the condition")),
        };
        out.push(chars[at..at + length].iter().collect());
        at += length;
    }
    Ok(out)
}

fn condition(e: Expr) -> Result<Expr, String> {
    match e.dtype() {
        DType::Bool => Ok(e),
        _ => Err("expected a condition, found a number".into()),
    }
}

fn number(e: Expr) -> Result<Expr, String> {
    match e.dtype() {
        DType::I64 => Ok(e),
        _ => Err("expected a number, found a condition".into()),
    }
}

struct Reader<'a> {
    tokens: &'a [String],
    at: usize,
    names: &'a [Symbol],
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) {
            return Ok(());
        }
        let found = match self.peek() {
            "" => "the end".to_string(),
            other => format!("`{other}`"),
        };
        Err(format!("expected `{token}` in the condition, found {found}"))
    }

    fn or(&mut self) -> Result<Expr, String> {
        let mut e = self.and()?;
        while self.take("or") {
            e = condition(e)?.or(&condition(self.and()?)?);
        }
        Ok(e)
    }

    fn and(&mut self) -> Result<Expr, String> {
        let mut e = self.not()?;
        while self.take("and") {
            e = condition(e)?.and(&condition(self.not()?)?);
        }
        Ok(e)
    }

    fn not(&mut self) -> Result<Expr, String> {
        if !self.take("not") {
            return self.comparison();
        }
        self.deeper(|r| Ok(condition(r.not()?)?.negate()))
    }

    fn comparison(&mut self) -> Result<Expr, String> {
        let mut left = self.sum()?;
        let mut all: Option<Expr> = None;
        loop {
            let op = match self.peek() {
                "<" => Op::Lt,
                "<=" => Op::Le,
                ">" => Op::Gt,
                ">=" => Op::Ge,
                "==" => Op::Eq,
                "!=" => Op::Ne,
                _ => return Ok(all.unwrap_or(left)),
            };
            self.at += 1;
            let right = number(self.sum()?)?;
            let one = Expr::apply(op, vec![number(left)?, right.clone()]);
            all = Some(all.map_or(one.clone(), |a| a.and(&one)));
            left = right;
        }
    }

    fn sum(&mut self) -> Result<Expr, String> {
        let mut e = self.product()?;
        loop {
            let op = match self.peek() {
                "+" => Op::Add,
                "-" => Op::Sub,
                _ => return Ok(e),
            };
            self.at += 1;
            e = Expr::apply(op, vec![number(e)?, number(self.product()?)?]);
        }
    }

    fn product(&mut self) -> Result<Expr, String> {
        let mut e = self.factor()?;
        loop {
            let op = match self.peek() {
                "*" => Op::Mul,
                "//" => Op::FloorDiv,
                "%" => Op::Mod,
                _ => return Ok(e),
            };
            self.at += 1;
            e = Expr::apply(op, vec![number(e)?, number(self.factor()?)?]);
        }
    }

    fn factor(&mut self) -> Result<Expr, String> {
        let token = self.peek().to_string();
        self.at += 1;
        match token.as_str() {
            "" => Err("unexpected end of the condition".into()),
            "-" => self.deeper(|r| Ok(Expr::apply(Op::Neg, vec![number(r.factor()?)?]))),
            "(" => self.deeper(|r| {
                let e = r.or()?;
                r.expect(")")?;
                Ok(e)
            }),
            "True" | "False" => Ok(Expr::bool(token == "True")),
            "min" | "max" if self.peek() == "(" => self.deeper(|r| {
                r.expect("(")?;
                let a = number(r.sum()?)?;
                r.expect(",")?;
                let b = number(r.sum()?)?;
                r.expect(")")?;
                Ok(if token == "min" { a.min_with(&b) } else { a.max_with(&b) })
            }),
            word if word.starts_with(|c: char| c.is_ascii_digit()) => {
                word.parse().map(Expr::int).map_err(|_| format!("`{word}` is not an integer"))
            }
            name => match self.names.iter().find(|s| s.name() == name) {
                Some(s) => Ok(Expr::var(s)),
                None => {
                    let all: Vec<&str> = self.names.iter().map(|s| s.name()).collect();
                    Err(format!(
                        "`{name}` is neither a size nor the iterator of an enclosing loop; the names are {}",
                        all.join(", ")
                    ))
                }
            },
        }
    }

    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("the condition is nested too deeply".into());
        }
        let r = f(self);
        self.depth -= 1;
        r
    }
}
