//! What lowering did with each loop over structured tensors, as data: what drives it, what is asked at the coordinates
//! that it comes to, which these are, and how many are to be expected.

use crate::layout::FlatLevel;
use taffeta_ast::format::{Level, LevelKind};
use taffeta_ast::{Expr, Span, Stmt, StmtKind, print};

/// How many loops search for coordinates or merge lists: one inside of another loop counts as eight, and so on. Of two
/// branches that one counts which has more: what comes after a search is in both.
pub(crate) fn seeks(s: &Stmt, weight: usize) -> usize {
    match s.kind() {
        StmtKind::If { .. } => s.kind().children().into_iter().map(|s| seeks(s, weight)).max().unwrap_or(0),
        StmtKind::While { body, .. } => weight.saturating_add(seeks(body, weight)),
        StmtKind::For { body, .. } => seeks(body, weight.saturating_mul(8)),
        kind => kind.children().into_iter().fold(0, |sum: usize, s| sum.saturating_add(seeks(s, weight))),
    }
}

/// A loop that structured tensors are accessed in, as it was lowered. One that stands in several cases of what is
/// stored around it is lowered in each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Its iterator.
    pub iter: String,
    /// Where it is.
    pub span: Span,
    /// How many such loops are around it.
    pub depth: usize,
    /// The fibres that are accessed at its coordinate, and what is searched for in its body.
    pub operands: Vec<Operand>,
    /// The coordinates at which something is done.
    pub visited: Visited,
    /// How many iterations are to be expected each time it runs, as far as it can be said: `nnz(A)/n`.
    pub iterations: Option<String>,
    /// The statement that does something where nothing is stored, if one keeps the loop over every coordinate.
    pub kept: Option<Span>,
}

/// A fibre, and what a loop does with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The tensor.
    pub tensor: String,
    /// The number of the level, the outermost one being 0.
    pub number: usize,
    /// The level.
    pub level: Level,
    /// What is done with it.
    pub part: Part,
}

/// What a loop does with a fibre.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Its positions are counted.
    Drives,
    /// It limits the coordinates: from its first one to its last one.
    Limits,
    /// It goes with others from one of their coordinates to the next.
    Merged,
    /// It jumps with others to the largest of their coordinates.
    Leaps,
    /// It goes on to each coordinate that the others come to.
    Follows,
    /// The position of a coordinate is computed.
    Located,
    /// The position is computed, and whether it is stored is asked.
    Asked,
    /// The coordinate is looked for in a table.
    Probed,
    /// The coordinate is searched for.
    Searched,
}

impl Part {
    /// What is done, in a word.
    pub fn word(self) -> &'static str {
        match self {
            Part::Drives => "drives",
            Part::Limits => "limits",
            Part::Merged => "merged",
            Part::Leaps => "leaps",
            Part::Follows => "follows",
            Part::Located => "located",
            Part::Asked => "asked",
            Part::Probed => "probed",
            Part::Searched => "searched",
        }
    }

    /// What is done.
    pub fn says(self) -> &'static str {
        match self {
            Part::Drives => "its positions are counted",
            Part::Limits => "the loop goes from its first coordinate to its last one",
            Part::Merged => "the loop goes from one of its coordinates to the next",
            Part::Leaps => "the loop jumps to the largest of the leaders' coordinates",
            Part::Follows => "it goes on to each coordinate that the others come to",
            Part::Located => "its position is computed",
            Part::Asked => "its position is computed, and whether it is stored is asked",
            Part::Probed => "the coordinate is found in its table",
            Part::Searched => "it is searched for the coordinate",
        }
    }
}

/// Coordinates of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visited {
    /// All of them.
    Every,
    /// Those at which all tensors of one of these sets store something.
    Stored(Vec<Vec<String>>),
}

/// How many iterations an operand is good for: what a fibre has of positions, runs or blocks, on average. There are so
/// many `elements` in the last level.
pub(crate) fn length(tensor: &str, level: &FlatLevel, above: &Expr, elements: &Expr) -> Option<String> {
    let size = || print::expr(&level.size);
    let counted = |name: String| match above.as_int() {
        Some(1) => name,
        _ => format!("{name}/{}", operand(above)),
    };
    if level.slots.is_some() {
        return Some(level.hidden.first()?.name().to_string());
    }
    Some(match level.level.kind {
        LevelKind::Dense | LevelKind::Range | LevelKind::Bitmap | LevelKind::Symmetric => size(),
        LevelKind::LowerTriangular | LevelKind::UpperTriangular => format!("{}/2", operand(&level.size)),
        LevelKind::Point | LevelKind::Singleton | LevelKind::Offset => "1".into(),
        LevelKind::Squeezed => level.hidden.first()?.name().to_string(),
        LevelKind::RunLength => counted(format!("runs({tensor})")),
        LevelKind::PackBits | LevelKind::Blocklist => counted(format!("blocks({tensor})")),
        _ if level.positions == *elements || level.level.kind == LevelKind::Bytemap => {
            counted(format!("nnz({tensor})"))
        }
        _ => counted(level.hidden.first()?.name().to_string()),
    })
}

/// An expression as an operand of a quotient.
fn operand(e: &Expr) -> String {
    let text = print::expr(e);
    if text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.') { text } else { format!("({text})") }
}
