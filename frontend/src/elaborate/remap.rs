//! Stored coordinates of levels (language.md, section 7): evaluates the function of a `remap=`, while compiling, on
//! symbolic dimensions.
//!
//! ```python
//! def blocks(i, j):
//!     return (order(morton(i // 128, j // 128)), i // 128, j // 128, i % 128, j % 128)
//! ```

use super::func::FuncRef;
use super::value::Value;
use super::{Elab, R};
use crate::syntax::{self, BinOp, ExprKind, StmtKind, UnaryOp};
use rustc_hash::FxHashMap;
use taffeta_ast::format::{Coord, Key};
use taffeta_ast::{Op, Span};

/// Maximum depth of calls in a remapping.
const MAX_CALLS: usize = 32;

/// Returns whether the name is a built-in function of remappings.
pub fn is_of_remapping(name: &str) -> bool {
    ["counter", "morton", "order"].contains(&name)
}

/// Value of an expression in a remapping.
#[derive(Clone)]
enum RemapValue {
    Coord(Coord),
    /// `order(e)`
    Key(Coord),
    Tuple(Vec<RemapValue>),
}

/// Values of the names in a remapping function.
type Names = FxHashMap<String, RemapValue>;

/// Result of a remapping: the coordinates that levels store, and sort keys.
pub(crate) struct Remap {
    pub(crate) coords: Vec<Coord>,
    pub(crate) keys: Vec<Key>,
}

impl Elab<'_> {
    /// Evaluates the function that is given as `remap=`.
    pub(crate) fn remap_argument(&mut self, v: &Value, at: Span) -> R<Remap> {
        let Value::Function(target) = v else {
            let text = format!("`remap=` takes a function of the dimensions, found {}", v.describe());
            let help = "write `def diagonals(i, j): return (j - i, i, j)`, and `remap=diagonals`";
            return self.error_help("storage::remap", at, text, help);
        };
        let ndim = self.function(*target).params.len();
        let dims = (0..ndim).map(|d| RemapValue::Coord(Coord::Dim(d))).collect();
        let returned = match self.remap_call(*target, dims, at, 0)? {
            RemapValue::Tuple(parts) => parts,
            one => vec![one],
        };
        let mut remap = Remap { coords: Vec::new(), keys: Vec::new() };
        for part in returned {
            match part {
                RemapValue::Coord(c) => remap.coords.push(c),
                RemapValue::Key(coord) => remap.keys.push(Key { before: remap.coords.len(), coord }),
                RemapValue::Tuple(_) => return self.remap_error(at, "its function returns a nested tuple"),
            }
        }
        Ok(remap)
    }

    fn remap_error<T>(&mut self, at: Span, what: &str) -> R<T> {
        let help = "use integers, dimensions, `+ - * // % << >> & | ^`, `counter(…)`, `morton(…)`, `order(…)`, and \
                    names for such values";
        self.error_help("storage::remap", at, format!("invalid remapping: {what}"), help)
    }

    fn remap_call(&mut self, target: FuncRef, args: Vec<RemapValue>, at: Span, depth: usize) -> R<RemapValue> {
        let f = self.function(target);
        if depth > MAX_CALLS {
            return self.remap_error(at, "its functions call each other endlessly");
        }
        if f.params.len() != args.len() {
            let text = format!("`{}` takes {} arguments, found {}", f.name.text, f.params.len(), args.len());
            return self.remap_error(at, &text);
        }
        let mut names: Names = f.params.iter().map(|p| p.name.text.clone()).zip(args).collect();
        for s in &f.body {
            match &s.kind {
                StmtKind::Assign { targets, value } => {
                    let v = self.remap_expr(value, &names, target, depth)?;
                    self.remap_assign(targets, v, value.span, &mut names)?;
                }
                StmtKind::Return { value: Some(value) } => return self.remap_expr(value, &names, target, depth),
                _ => return self.remap_error(s.span, "expected an assignment or `return`"),
            }
        }
        self.remap_error(f.name.span, "its function returns nothing")
    }

    /// Binds `name = value`, or `a, (b, c) = value` for a tuple.
    fn remap_assign(&mut self, targets: &[syntax::Expr], v: RemapValue, at: Span, names: &mut Names) -> R<()> {
        if let [target] = targets {
            return match &target.kind {
                ExprKind::Name(name) => {
                    names.insert(name.clone(), v);
                    Ok(())
                }
                ExprKind::Tuple(targets) => self.remap_assign(targets, v, at, names),
                _ => self.remap_error(target.span, "expected a name to assign to"),
            };
        }
        let RemapValue::Tuple(parts) = v else {
            return self.remap_error(at, &format!("expected {} values to unpack, found 1", targets.len()));
        };
        if parts.len() != targets.len() {
            let text = format!("expected {} values to unpack, found {}", targets.len(), parts.len());
            return self.remap_error(at, &text);
        }
        targets.iter().zip(parts).try_for_each(|(t, part)| self.remap_assign(std::slice::from_ref(t), part, at, names))
    }

    fn remap_expr(&mut self, e: &syntax::Expr, names: &Names, within: FuncRef, depth: usize) -> R<RemapValue> {
        match &e.kind {
            ExprKind::Int(Some(v)) => match i64::try_from(*v) {
                Ok(v) => Ok(RemapValue::Coord(Coord::Int(v))),
                Err(_) => self.remap_error(e.span, "the integer does not fit in 64 bits"),
            },
            ExprKind::Name(name) => match names.get(name) {
                Some(part) => Ok(part.clone()),
                None => match self.global(within.module, name)? {
                    Some(Value::Int(v)) if i64::try_from(v).is_ok() => Ok(RemapValue::Coord(Coord::Int(v as i64))),
                    Some(other) => self.remap_error(e.span, &format!("`{name}` is {}", other.describe())),
                    None => self.remap_error(e.span, &format!("there is no `{name}`")),
                },
            },
            ExprKind::Tuple(parts) => {
                let parts: R<Vec<RemapValue>> =
                    parts.iter().map(|p| self.remap_expr(p, names, within, depth)).collect();
                Ok(RemapValue::Tuple(parts?))
            }
            ExprKind::Unary(UnaryOp::Neg, a) => {
                let a = self.remap_coord(a, names, within, depth)?;
                Ok(RemapValue::Coord(Coord::apply(Op::Sub, Coord::Int(0), a)))
            }
            ExprKind::Binary(op, a, b) => {
                let op = match op {
                    BinOp::Add => Op::Add,
                    BinOp::Sub => Op::Sub,
                    BinOp::Mul => Op::Mul,
                    BinOp::FloorDiv => Op::FloorDiv,
                    BinOp::Mod => Op::Mod,
                    BinOp::Shl => Op::Shl,
                    BinOp::Shr => Op::Shr,
                    BinOp::BitAnd => Op::BitAnd,
                    BinOp::BitOr => Op::BitOr,
                    BinOp::BitXor => Op::BitXor,
                    BinOp::Div | BinOp::Pow | BinOp::MatMul => {
                        return self.remap_error(e.span, "the operator does not give an index");
                    }
                };
                let a = self.remap_coord(a, names, within, depth)?;
                let b = self.remap_coord(b, names, within, depth)?;
                Ok(RemapValue::Coord(Coord::apply(op, a, b)))
            }
            ExprKind::Call { callee, args } => self.remap_named((callee, args), names, within, depth, e.span),
            _ => self.remap_error(e.span, "the expression is not supported"),
        }
    }

    fn remap_coord(&mut self, e: &syntax::Expr, names: &Names, within: FuncRef, depth: usize) -> R<Coord> {
        match self.remap_expr(e, names, within, depth)? {
            RemapValue::Coord(c) => Ok(c),
            RemapValue::Key(_) => self.remap_error(e.span, "`order(…)` cannot be part of an expression"),
            RemapValue::Tuple(_) => self.remap_error(e.span, "expected an index, found a tuple"),
        }
    }

    /// Evaluates a call of `counter(i)`, `morton(i, j)`, `order(e)`, or of a function of the program.
    fn remap_named(
        &mut self,
        (callee, args): (&syntax::Expr, &[syntax::Arg]),
        names: &Names,
        within: FuncRef,
        depth: usize,
        at: Span,
    ) -> R<RemapValue> {
        let ExprKind::Name(name) = &callee.kind else {
            return self.remap_error(callee.span, "expected the name of a function");
        };
        if let Some(named) = args.iter().find(|a| a.name.is_some()) {
            return self.remap_error(named.value.span, "expected a positional argument");
        }
        if let Some(Value::Function(f)) = self.global(within.module, name)? {
            let args: R<Vec<RemapValue>> =
                args.iter().map(|a| self.remap_expr(&a.value, names, within, depth)).collect();
            return self.remap_call(f, args?, at, depth + 1);
        }
        let given: R<Vec<Coord>> = args.iter().map(|a| self.remap_coord(&a.value, names, within, depth)).collect();
        let given = given?;
        match (name.as_str(), &given[..]) {
            ("counter", _) => Ok(RemapValue::Coord(Coord::Counter(given.into()))),
            ("morton", [_, ..]) => Ok(RemapValue::Coord(Coord::Morton(given.into()))),
            ("order", [key]) => Ok(RemapValue::Key(key.clone())),
            ("morton" | "order", _) => self.remap_error(at, &format!("wrong number of arguments of `{name}`")),
            _ => self.remap_error(callee.span, &format!("there is no function `{name}`")),
        }
    }
}
