//! Coordinates stored by levels: one index of an element, or an expression of its indices (`remap=`).
//!
//! ```text
//! dia           (j - i, i, j)                            the diagonal, the row, the column
//! bcsr(r, c)    (i // r, j // c, i % r, j % c)           the block, and the place in it
//! ell           (counter(i), i, j)                       the how-manieth element of its row, the row, the column
//! ```
//!
//! Coordinates are numbered from the lower bound that the sizes allow ([`Coord::range`]), so that levels count from 0.

mod parse;

pub use parse::parse;

use crate::expr::Expr;
use crate::op::Op;
use crate::poly::tidy;
use std::fmt;
use std::sync::Arc;

/// Coordinate of an element, as an expression of its indices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Coord {
    /// Index in that dimension.
    Dim(usize),
    /// Constant.
    Int(i64),
    /// Operator on integers: one of [`Coord::OPERATORS`].
    Apply(Op, Arc<[Coord; 2]>),
    /// Ordinal of an element, from 0, among the elements that agree in these coordinates, in the order of their other
    /// indices.
    Counter(Arc<[Coord]>),
    /// Morton code: interleaved bits of the operands; the lowest bit of the last operand is lowest. Only allowed as a
    /// sort key.
    Morton(Arc<[Coord]>),
}

/// Sort key of elements that is not stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Level whose coordinate this key precedes in the comparison.
    pub before: usize,
    /// Compared value.
    pub coord: Coord,
}

impl Coord {
    /// Operators allowed in coordinates.
    pub const OPERATORS: [Op; 10] =
        [Op::Add, Op::Sub, Op::Mul, Op::FloorDiv, Op::Mod, Op::Shl, Op::Shr, Op::BitAnd, Op::BitOr, Op::BitXor];

    /// Builds `a op b`, folding constants where the operation does not fail.
    pub fn apply(op: Op, a: Coord, b: Coord) -> Coord {
        if let (Coord::Int(x), Coord::Int(y)) = (&a, &b)
            && let Some(v) = compute(op, *x, *y)
        {
            return Coord::Int(v);
        }
        // Normal form: constants stand on the right.
        match (op, &a) {
            (Op::Add | Op::Mul, Coord::Int(_)) => Coord::Apply(op, Arc::new([b, a])),
            _ => Coord::Apply(op, Arc::new([a, b])),
        }
    }

    /// Returns the dimensions on which the coordinate depends, in increasing order.
    pub fn dims(&self) -> Vec<usize> {
        let mut out = Vec::new();
        self.walk(&mut |c| {
            if let Coord::Dim(d) = c {
                out.push(*d);
            }
        });
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Calls `f` on the coordinate and all of its subexpressions.
    pub fn walk(&self, f: &mut dyn FnMut(&Coord)) {
        f(self);
        match self {
            Coord::Dim(_) | Coord::Int(_) => {}
            Coord::Apply(_, args) => args.iter().for_each(|c| c.walk(f)),
            Coord::Counter(of) | Coord::Morton(of) => of.iter().for_each(|c| c.walk(f)),
        }
    }

    /// Evaluates the coordinate at these indices with the language's arithmetic; `None` for a counter, or if evaluation
    /// fails.
    pub fn value(&self, indices: &[i64]) -> Option<i64> {
        match self {
            Coord::Dim(d) => indices.get(*d).copied(),
            Coord::Int(v) => Some(*v),
            Coord::Apply(op, args) => compute(*op, args[0].value(indices)?, args[1].value(indices)?),
            Coord::Counter(_) => None,
            Coord::Morton(of) => {
                let parts: Vec<i64> = of.iter().map(|c| c.value(indices)).collect::<Option<_>>()?;
                interleaved(&parts)
            }
        }
    }

    /// Builds the coordinate's expression at these indices; `None` for counters and Morton codes.
    pub fn at(&self, indices: &[Expr]) -> Option<Expr> {
        match self {
            Coord::Dim(d) => indices.get(*d).cloned(),
            Coord::Int(v) => Some(Expr::int(*v)),
            Coord::Apply(op, args) => {
                let (a, b) = (args[0].at(indices)?, args[1].at(indices)?);
                // Shifts and masks become quotients and remainders, so that both spellings give one form.
                let by = b.as_int().filter(|b| (0..62).contains(b));
                let (op, b) = match (op, by, b.as_int()) {
                    (Op::Shr, Some(by), _) => (Op::FloorDiv, Expr::int(1 << by)),
                    (Op::BitAnd, _, Some(mask)) if mask > 0 && mask.checked_add(1).is_some_and(is_power_of_two) => {
                        (Op::Mod, Expr::int(mask + 1))
                    }
                    _ => (*op, b),
                };
                Some(Expr::apply(op, vec![a, b]))
            }
            Coord::Counter(_) | Coord::Morton(_) => None,
        }
    }

    /// Returns a lower bound and an exclusive upper bound of the values over all indices of a tensor of that shape. The
    /// bounds need not be tight, and for an empty tensor the interval may be inverted. `None` where no bound is known:
    /// for counters, Morton codes, `|`, `^`, and operators other than `+` and `-` without a constant right operand.
    pub fn range(&self, shape: &[Expr]) -> Option<[Expr; 2]> {
        let one = Expr::int(1);
        match self {
            Coord::Dim(d) => Some([Expr::int(0), shape.get(*d)?.clone()]),
            Coord::Int(v) => Some([Expr::int(*v), Expr::int(v.checked_add(1)?)]),
            Coord::Counter(_) | Coord::Morton(_) => None,
            Coord::Apply(op, args) => {
                let [low, end] = args[0].range(shape)?;
                let last = end.minus(&one);
                let by = match &args[1] {
                    Coord::Int(v) => Some(*v),
                    _ => None,
                };
                match (op, by) {
                    (Op::Add, _) => {
                        let [other, stop] = args[1].range(shape)?;
                        Some([low.plus(&other), last.plus(&stop)])
                    }
                    (Op::Sub, _) => {
                        let [other, stop] = args[1].range(shape)?;
                        Some([low.minus(&stop.minus(&one)), end.minus(&other)])
                    }
                    (Op::Mul, Some(by)) if by >= 0 => {
                        let by = Expr::int(by);
                        Some([low.times(&by), last.times(&by).plus(&one)])
                    }
                    (Op::Mul, Some(by)) => {
                        let by = Expr::int(by);
                        Some([last.times(&by), low.times(&by).plus(&one)])
                    }
                    (Op::FloorDiv, Some(by)) if by > 0 => Some(divided([&low, &last], by)),
                    (Op::Shr, Some(by)) if (0..62).contains(&by) => Some(divided([&low, &last], 1 << by)),
                    (Op::Shl, Some(by)) if (0..32).contains(&by) => {
                        let by = Expr::int(1 << by);
                        Some([low.times(&by), last.times(&by).plus(&one)])
                    }
                    (Op::Mod, Some(by)) if by > 0 => Some([Expr::int(0), Expr::int(by)]),
                    (Op::BitAnd, Some(by)) if by >= 0 => Some([Expr::int(0), Expr::int(by.checked_add(1)?)]),
                    _ => None,
                }
            }
        }
    }

    /// Returns whether all intermediate values fit 62 bits for all sizes (indices are below 2^47): the product of all
    /// factors is at most 256, and the expression has at most 64 nodes.
    pub fn is_small(&self) -> bool {
        let (mut factors, mut nodes) = (1i64, 0);
        self.walk(&mut |c| {
            nodes += 1;
            factors = match c {
                Coord::Apply(Op::Mul, args) => match &**args {
                    [_, Coord::Int(by)] | [Coord::Int(by), _] => factors.saturating_mul(by.saturating_abs().max(1)),
                    _ => i64::MAX,
                },
                Coord::Apply(Op::Shl, args) => match args[1] {
                    Coord::Int(by) if (0..8).contains(&by) => factors.saturating_mul(1 << by),
                    _ => i64::MAX,
                },
                Coord::Int(v) if v.saturating_abs() > 1 << 47 => i64::MAX,
                _ => factors,
            };
        });
        factors <= 256 && nodes <= 64
    }

    /// Formats the coordinate in the syntax of programs, with these names of dimensions. `within` is the precedence of
    /// the context.
    fn text(&self, names: &[String], within: u8) -> String {
        let list = |of: &[Coord]| of.iter().map(|c| c.text(names, 0)).collect::<Vec<_>>().join(", ");
        match self {
            Coord::Dim(d) => names.get(*d).cloned().unwrap_or_else(|| format!("i{d}")),
            Coord::Int(v) if *v < 0 && within > 0 => format!("({v})"),
            Coord::Int(v) => v.to_string(),
            Coord::Counter(of) => format!("counter({})", list(of)),
            Coord::Morton(of) => format!("morton({})", list(of)),
            Coord::Apply(op, args) => {
                let own = match op {
                    Op::BitOr => 5,
                    Op::BitXor => 6,
                    Op::BitAnd => 7,
                    Op::Shl | Op::Shr => 8,
                    Op::Add | Op::Sub => 9,
                    _ => 10,
                };
                // Operators of one precedence associate to the left.
                let text = format!("{} {} {}", args[0].text(names, own), op.info().name, args[1].text(names, own + 1));
                if own < within { format!("({text})") } else { text }
            }
        }
    }
}

const LETTERS: [&str; 6] = ["i", "j", "k", "l", "m", "n"];

/// Returns names for `ndim` dimensions: `i`, `j`, `k` …
pub fn names(ndim: usize) -> Vec<String> {
    (0..ndim).map(|d| if ndim <= LETTERS.len() { LETTERS[d].to_string() } else { format!("i{d}") }).collect()
}

/// Formats coordinates and keys as the tuple that `remap=` returns: `(j - i, i, j)`.
pub(super) fn tuple(coords: &[Coord], keys: &[Key], ndim: usize) -> String {
    let names = names(ndim);
    let mut parts = Vec::new();
    for (k, c) in coords.iter().map(Some).chain([None]).enumerate() {
        let own = keys.iter().filter(|key| key.before == k);
        parts.extend(own.map(|key| format!("order({})", key.coord.text(&names, 0))));
        parts.extend(c.map(|c| c.text(&names, 0)));
    }
    if let [one] = &parts[..] { format!("({one},)") } else { format!("({})", parts.join(", ")) }
}

fn is_power_of_two(v: i64) -> bool {
    v > 0 && v & (v - 1) == 0
}

fn divided([low, last]: [&Expr; 2], by: i64) -> [Expr; 2] {
    // The quotient has the form that loop splitting produces: `(n + by - 1) // by`.
    let by = Expr::int(by);
    [low.floor_div(&by), tidy(&last.plus(&by)).floor_div(&by)]
}

/// Evaluates an integer operator as programs do; `None` where it fails or overflows 64 bits.
fn compute(op: Op, a: i64, b: i64) -> Option<i64> {
    match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::FloorDiv => {
            let q = a.checked_div(b)?;
            Some(if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })
        }
        Op::Mod => {
            let r = a.checked_rem(b)?;
            Some(if r != 0 && (r < 0) != (b < 0) { r + b } else { r })
        }
        Op::Shl => u32::try_from(b).ok().filter(|b| *b < 63).and_then(|b| a.checked_mul(1i64 << b)),
        Op::Shr => u32::try_from(b).ok().map(|b| a >> b.min(63)),
        Op::BitAnd => Some(a & b),
        Op::BitOr => Some(a | b),
        Op::BitXor => Some(a ^ b),
        _ => None,
    }
}

/// Interleaves the bits of several numbers; `None` for negative ones, and beyond 63 bits.
fn interleaved(parts: &[i64]) -> Option<i64> {
    let mut out = 0i64;
    for (k, part) in parts.iter().rev().enumerate() {
        if *part < 0 {
            return None;
        }
        for bit in 0..(64 - part.leading_zeros()) {
            if part >> bit & 1 == 1 {
                let at = bit as usize * parts.len() + k;
                out |= 1i64.checked_shl(u32::try_from(at).ok().filter(|at| *at < 63)?)?;
            }
        }
    }
    Some(out)
}

/// Formats with the dimension names `i`, `j`, `k` …
impl fmt::Display for Coord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = self.dims().last().map_or(1, |d| d + 1);
        f.write_str(&self.text(&names(most), 0))
    }
}
