//! Parser for the output of [`super::tuple`], found in files and in descriptions of compiled programs.

use super::{Coord, Key};
use crate::op::Op;

/// Maximum nesting depth of operands.
const MAX_DEPTH: usize = 64;

/// Parses coordinates and keys from a text such as `(order(morton(i, j)), i, j)`; `None` for any other text.
pub fn parse(text: &str) -> Option<(Vec<Coord>, Vec<Key>)> {
    let mut reader = Reader { rest: text.trim(), depth: 0 };
    let (mut coords, mut keys) = (Vec::new(), Vec::new());
    reader.take("(")?;
    while reader.take(")").is_none() {
        match reader.take("order(") {
            Some(()) => {
                keys.push(Key { before: coords.len(), coord: reader.operators(5)? });
                reader.take(")")?;
            }
            None => coords.push(reader.operators(5)?),
        }
        if reader.take(",").is_none() {
            reader.take(")")?;
            break;
        }
    }
    reader.rest.is_empty().then_some((coords, keys))
}

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl Reader<'_> {
    /// Consumes this text and the white space around it, if it comes next.
    fn take(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.trim_start();
        self.rest = self.rest.strip_prefix(text)?;
        self.rest = self.rest.trim_start();
        Some(())
    }

    /// Parses operators of that precedence or tighter.
    fn operators(&mut self, precedence: u8) -> Option<Coord> {
        let level: &[Op] = match precedence {
            5 => &[Op::BitOr],
            6 => &[Op::BitXor],
            7 => &[Op::BitAnd],
            8 => &[Op::Shl, Op::Shr],
            9 => &[Op::Add, Op::Sub],
            10 => &[Op::FloorDiv, Op::Mod, Op::Mul],
            _ => return self.operand(),
        };
        let mut left = self.operators(precedence + 1)?;
        while let Some(op) = level.iter().find(|op| self.take(op.info().name).is_some()) {
            left = Coord::apply(*op, left, self.operators(precedence + 1)?);
        }
        Some(left)
    }

    fn operand(&mut self) -> Option<Coord> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let found = if self.take("(").is_some() {
            let inner = self.operators(5)?;
            self.take(")")?;
            inner
        } else if self.take("counter(").is_some() {
            Coord::Counter(self.list()?.into())
        } else if self.take("morton(").is_some() {
            Coord::Morton(self.list()?.into())
        } else {
            self.word()?
        };
        self.depth -= 1;
        Some(found)
    }

    /// Parses the arguments of a call up to the closing bracket.
    fn list(&mut self) -> Option<Vec<Coord>> {
        let mut out = Vec::new();
        while self.take(")").is_none() {
            out.push(self.operators(5)?);
            if self.take(",").is_none() {
                self.take(")")?;
                break;
            }
        }
        Some(out)
    }

    /// Parses a number or the name of a dimension.
    fn word(&mut self) -> Option<Coord> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let numbered = |w: &str| w.strip_prefix('i').and_then(|d| d.parse::<usize>().ok());
        let found = match word.parse::<i64>() {
            Ok(v) => Coord::Int(v),
            Err(_) => {
                let letters = super::names(super::LETTERS.len());
                Coord::Dim(letters.iter().position(|l| l == word).or_else(|| numbered(word))?)
            }
        };
        self.rest = rest;
        Some(found)
    }
}
