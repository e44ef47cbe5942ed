//! Upper bounds of integers in enclosing loops, in terms of the program's sizes: the size needed for a scratch array of
//! varying shape.
//!
//! ```text
//! for i in range(n):  …  i + 1                 at most n
//! for k in range(0, n, 32):  …  min(32, n - k) at most min(32, n)
//! ```
//!
//! The bounds come from interval arithmetic with symbolic ends. Sums and products are mathematical and differ from the
//! program's if these wrap, so whoever evaluates a bound must check that it fits.

use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind, Symbol};

/// Range of the iterator of an enclosing loop with a positive step.
#[derive(Clone, Debug)]
pub struct Range {
    /// Iterator.
    pub iter: Symbol,
    /// First value.
    pub begin: Expr,
    /// Exclusive end.
    pub end: Expr,
}

/// Returns an expression of constants and these sizes that is at least `e` in every iteration of the enclosing loops
/// (outermost first); `None` if none is found.
pub fn greatest(e: &Expr, around: &[Range], sizes: &[Symbol]) -> Option<Expr> {
    ends(e, around, sizes).most
}

/// Returns whether an expression consists of constants and these sizes, and cannot fail.
pub fn of_sizes(e: &Expr, sizes: &[Symbol]) -> bool {
    let mut alone = !e.may_fail();
    e.walk(&mut |e| match e.kind() {
        ExprKind::Var(v) => alone &= sizes.contains(v),
        ExprKind::Load(..) => alone = false,
        _ => {}
    });
    alone
}

/// Returns the expression itself if it consists of sizes; otherwise an upper bound that does.
pub fn room(e: &Expr, around: &[Range], sizes: &[Symbol]) -> Option<Expr> {
    match of_sizes(e, sizes) {
        true => Some(e.clone()),
        false => greatest(e, around, sizes).filter(|e| of_sizes(e, sizes)),
    }
}

/// Lower and upper bound of an expression.
struct Ends {
    least: Option<Expr>,
    most: Option<Expr>,
}

fn ends(e: &Expr, around: &[Range], sizes: &[Symbol]) -> Ends {
    let exactly = |e: &Expr| Ends { least: Some(e.clone()), most: Some(e.clone()) };
    let unknown = Ends { least: None, most: None };
    let of = |e: &Expr| ends(e, around, sizes);
    let (op, args) = match e.kind() {
        ExprKind::Const(_) => return exactly(e),
        ExprKind::Var(v) if sizes.contains(v) => return exactly(e),
        ExprKind::Var(v) => {
            let Some(k) = around.iter().rposition(|r| r.iter == *v) else { return unknown };
            let (range, outside) = (&around[k], &around[..k]);
            return Ends {
                least: ends(&range.begin, outside, sizes).least,
                most: ends(&range.end, outside, sizes).most.map(|e| e.minus(&Expr::int(1))),
            };
        }
        ExprKind::Apply(op, args) => (op, args),
        _ => return unknown,
    };
    let both = |a: Option<Expr>, b: Option<Expr>, f: &dyn Fn(&Expr, &Expr) -> Expr| Some(f(&a?, &b?));
    let either = |a: Option<Expr>, b: Option<Expr>, f: &dyn Fn(&Expr, &Expr) -> Expr| match (a, b) {
        (Some(a), Some(b)) => Some(f(&a, &b)),
        (a, b) => a.or(b),
    };
    match (op, args.as_slice()) {
        (Op::Add, [a, b]) => {
            let (a, b) = (of(a), of(b));
            Ends { least: both(a.least, b.least, &Expr::plus), most: both(a.most, b.most, &Expr::plus) }
        }
        (Op::Sub, [a, b]) => {
            let (a, b) = (of(a), of(b));
            Ends { least: both(a.least, b.most, &Expr::minus), most: both(a.most, b.least, &Expr::minus) }
        }
        (Op::Min, [a, b]) => {
            let (a, b) = (of(a), of(b));
            Ends { least: both(a.least, b.least, &smaller), most: either(a.most, b.most, &smaller) }
        }
        (Op::Max, [a, b]) => {
            let (a, b) = (of(a), of(b));
            Ends { least: either(a.least, b.least, &larger), most: both(a.most, b.most, &larger) }
        }
        (Op::Mul, [a, b]) => match (a.as_int(), b.as_int()) {
            (_, Some(c)) if c >= 0 => of(a).map(&|a| a.times(b)),
            (Some(c), _) if c >= 0 => of(b).map(&|b| b.times(a)),
            _ => unknown,
        },
        (Op::FloorDiv, [a, b]) if b.as_int().is_some_and(|c| c > 0) => of(a).map(&|a| a.floor_div(b)),
        (Op::Mod, [_, b]) => match b.as_int() {
            Some(c) if c > 0 => Ends { least: Some(Expr::int(0)), most: Some(Expr::int(c - 1)) },
            _ => unknown,
        },
        _ => unknown,
    }
}

fn smaller(a: &Expr, b: &Expr) -> Expr {
    Expr::apply(Op::Min, vec![a.clone(), b.clone()])
}

fn larger(a: &Expr, b: &Expr) -> Expr {
    Expr::apply(Op::Max, vec![a.clone(), b.clone()])
}

impl Ends {
    /// Applies a monotone function to both bounds.
    fn map(self, f: &dyn Fn(&Expr) -> Expr) -> Ends {
        Ends { least: self.least.as_ref().map(f), most: self.most.as_ref().map(f) }
    }
}
