//! Human-readable dump of a syntax tree: one line per statement, operators in prefix form (comparisons infix) with all
//! brackets, so that nothing depends on precedence, and no spans.
//!
//! ```text
//! y[i] += 2 * x[i] + 1        →        y[i] Add= (Add (Mul 2 x[i]) 1)
//! ```

use super::*;
use std::fmt::Write;

/// Prints a whole file.
pub fn module(module: &Module) -> String {
    let mut out = String::new();
    if let Some(doc) = &module.doc {
        let _ = writeln!(out, "doc {}", quote(doc));
    }
    for item in &module.items {
        match item {
            Item::Import(import) => {
                let names: Vec<String> = import
                    .names
                    .iter()
                    .map(|(n, a)| a.as_ref().map_or(n.text.clone(), |a| format!("{}={}", a.text, n.text)))
                    .collect();
                let _ = writeln!(out, "import {} [{}]", import.module.text, names.join(" "));
            }
            Item::Assign { name, value } => {
                let _ = writeln!(out, "{} = {}", name.text, expr(value));
            }
            Item::Function(f) => function(&mut out, f),
        }
    }
    out
}

fn function(out: &mut String, f: &Function) {
    for d in &f.decorators {
        let _ = writeln!(out, "@{}", expr(d));
    }
    let params: Vec<String> = f
        .params
        .iter()
        .map(|p| {
            let mut s = p.name.text.clone();
            if let Some(a) = &p.annotation {
                write!(s, ": {}", expr(a)).unwrap();
            }
            if let Some(d) = &p.default {
                write!(s, " = {}", expr(d)).unwrap();
            }
            s
        })
        .collect();
    let returns = f.returns.as_ref().map_or(String::new(), |r| format!(" -> {}", expr(r)));
    let _ = writeln!(out, "def {}({}){returns}", f.name.text, params.join(", "));
    if let Some(doc) = &f.doc {
        let _ = writeln!(out, "    doc {}", quote(doc));
    }
    block(out, &f.body, 1);
}

fn block(out: &mut String, stmts: &[Stmt], depth: usize) {
    for stmt in stmts {
        let pad = "    ".repeat(depth);
        let line = match &stmt.kind {
            StmtKind::Assign { targets, value } => format!("{} = {}", list(targets, ", "), expr(value)),
            StmtKind::Declare { name, annotation, value } => format!(
                "declare {}: {}{}",
                name.text,
                expr(annotation),
                value.as_ref().map_or(String::new(), |v| format!(" = {}", expr(v)))
            ),
            StmtKind::Augment { target, op, value } => format!("{} {op:?}= {}", expr(target), expr(value)),
            StmtKind::For { targets, iter, .. } => format!("for {} in {}", names(targets), expr(iter)),
            StmtKind::If { cond, .. } => format!("if {}", expr(cond)),
            StmtKind::Assert { cond, message } => {
                format!(
                    "assert {}{}",
                    expr(cond),
                    message.as_ref().map_or(String::new(), |m| format!(" else {}", expr(m)))
                )
            }
            StmtKind::Pass => "pass".to_string(),
            StmtKind::Return { value } => {
                format!("return{}", value.as_ref().map_or(String::new(), |v| format!(" {}", expr(v))))
            }
            StmtKind::Expr(e) => expr(e),
        };
        let _ = writeln!(out, "{pad}{line}");
        match &stmt.kind {
            StmtKind::For { body, .. } => block(out, body, depth + 1),
            StmtKind::If { then, otherwise, .. } => {
                block(out, then, depth + 1);
                if !otherwise.is_empty() {
                    let _ = writeln!(out, "{pad}else");
                    block(out, otherwise, depth + 1);
                }
            }
            _ => {}
        }
    }
}

fn names(names: &[Name]) -> String {
    names.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join(", ")
}

fn list(exprs: &[Expr], separator: &str) -> String {
    exprs.iter().map(expr).collect::<Vec<_>>().join(separator)
}

/// Prints one expression.
pub fn expr(e: &Expr) -> String {
    let optional = |e: &Option<Box<Expr>>| e.as_ref().map_or(String::new(), |e| expr(e));
    match &e.kind {
        ExprKind::Name(name) => name.clone(),
        ExprKind::Int(Some(value)) => value.to_string(),
        ExprKind::Int(None) => "too-large".to_string(),
        ExprKind::Float(value) => format!("{value:e}"),
        ExprKind::Bool(value) => if *value { "True" } else { "False" }.to_string(),
        ExprKind::None => "None".to_string(),
        ExprKind::Ellipsis => "...".to_string(),
        ExprKind::Str(text) => quote(text),
        ExprKind::Format(parts) => format!("f[{}]", list(parts, " ")),
        ExprKind::Tuple(items) => format!("tuple({})", list(items, ", ")),
        ExprKind::List(items) => format!("[{}]", list(items, ", ")),
        ExprKind::Comprehension { element, targets, iter, conds } => {
            let conds: String = conds.iter().map(|c| format!(" if {}", expr(c))).collect();
            format!("[{} for {} in {}{conds}]", expr(element), names(targets), expr(iter))
        }
        ExprKind::Binary(op, a, b) => format!("({op:?} {} {})", expr(a), expr(b)),
        ExprKind::Unary(op, a) => format!("({op:?} {})", expr(a)),
        ExprKind::And(items) => format!("(and {})", list(items, " ")),
        ExprKind::Or(items) => format!("(or {})", list(items, " ")),
        ExprKind::Compare(first, rest) => {
            let rest: String = rest.iter().map(|(op, e)| format!(" {op:?} {}", expr(e))).collect();
            format!("({}{rest})", expr(first))
        }
        ExprKind::IfElse { cond, then, otherwise } => {
            format!("(if {} then {} else {})", expr(cond), expr(then), expr(otherwise))
        }
        ExprKind::Call { callee, args } => {
            let args: Vec<String> = args
                .iter()
                .map(|a| a.name.as_ref().map_or(String::new(), |n| format!("{}=", n.text)) + &expr(&a.value))
                .collect();
            format!("{}({})", expr(callee), args.join(", "))
        }
        ExprKind::Attribute(base, name) => format!("{}.{}", expr(base), name.text),
        // Python has one tree for `x[a, b]` and `x[(a, b)]`.
        ExprKind::Subscript(base, items) => match &items[..] {
            [Expr { kind: ExprKind::Tuple(items), .. }] => format!("{}[{}]", expr(base), list(items, ", ")),
            items => format!("{}[{}]", expr(base), list(items, ", ")),
        },
        ExprKind::Slice { lower, upper, step } => {
            let step = if step.is_some() { format!(":{}", optional(step)) } else { String::new() };
            format!("{}:{}{step}", optional(lower), optional(upper))
        }
        ExprKind::Lambda { params, body } => format!("(lambda {}: {})", names(params), expr(body)),
    }
}

/// Quotes a string in a form that is easy to print from Python too.
fn quote(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            ' '..='~' if c != '"' && c != '\\' => out.push(c),
            _ => write!(out, "\\u{{{:x}}}", u32::from(c)).unwrap(),
        }
    }
    out.push('"');
    out
}
