//! Record of how each loop over structured tensors was lowered, as data: the operands that drive the loop and the
//! operands looked up at its coordinates, the coordinates that it visits, and its expected trip count.

use crate::level::TensorLevel;
use taffeta_ast::format::{Level, LevelKind};
use taffeta_ast::{Expr, Span, Stmt, StmtKind, poly, print};

/// Counts the loops that search for coordinates or merge lists; each enclosing counted loop multiplies the weight by
/// eight. Of two branches, only the larger count is added, since the code after a search is emitted in both.
pub(crate) fn search_depth(s: &Stmt, weight: usize) -> usize {
    match s.kind() {
        StmtKind::If { .. } => s.kind().children().into_iter().map(|s| search_depth(s, weight)).max().unwrap_or(0),
        StmtKind::While { body, .. } => weight.saturating_add(search_depth(body, weight)),
        StmtKind::For { body, .. } => search_depth(body, weight.saturating_mul(8)),
        kind => kind.children().into_iter().fold(0, |sum: usize, s| sum.saturating_add(search_depth(s, weight))),
    }
}

/// Lowering record of a loop that accesses structured tensors. A loop nested in several storage cases of an enclosing
/// loop is lowered once per case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Name of the iterator.
    pub iter: String,
    /// Source location.
    pub span: Span,
    /// Number of enclosing loops that have records.
    pub depth: usize,
    /// Fibres accessed at the loop's coordinate, and fibres searched in its body.
    pub operands: Vec<Operand>,
    /// Coordinates at which the body has an effect.
    pub visited: Visited,
    /// Expected trip count per execution, as far as it can be given: `nnz(A)/n`.
    pub iterations: Option<String>,
    /// Location of the statement that has an effect where nothing is stored and so keeps the loop over every
    /// coordinate, if there is one.
    pub effect_on_fill: Option<Span>,
}

/// Record of how a tensor that the program makes is assembled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// Name of the tensor.
    pub tensor: String,
    /// Location of its last write.
    pub span: Span,
    /// Levels, outermost first.
    pub levels: Vec<Level>,
    /// Strategy.
    pub strategy: Strategy,
    /// Number of elements for which there is room from the beginning, in terms of sizes and of the numbers of elements
    /// of parameters; `None` if there is no bound.
    pub bound: Option<String>,
}

/// Strategy by which a tensor is assembled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Every write stores an element at a position that its indices determine.
    Store,
    /// Every write appends an element.
    Append,
    /// Fibres of the last level are gathered in a workspace, sorted and appended.
    Workspace,
    /// The program counts the elements of each fibre, and stores each at the next position of its fibre.
    Scatter {
        /// Whether fibres are sorted at the end.
        are_sorted: bool,
    },
    /// The program records the coordinates of all elements, and stores each at its computed position.
    Insert,
    /// The writes are listed and sorted, and their elements appended, for this reason.
    Sort(String),
}

/// Fibre accessed by a loop, with its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Name of the tensor.
    pub tensor: String,
    /// Number of the level, the outermost one being 0.
    pub number: usize,
    /// Level of the fibre.
    pub level: Level,
    /// Role of the fibre in the loop.
    pub role: FibreRole,
}

/// Role of a fibre in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FibreRole {
    /// Driver, whose positions the loop counts.
    Drives,
    /// Limits of the loop: coordinates run from the fibre's first one to its last one.
    Limits,
    /// Operand of a merge, which advances from one coordinate of its operands to the next.
    Merged,
    /// Leader of a leapfrog join, which jumps to the largest of the leaders' coordinates.
    Leaps,
    /// Follower, which advances to each coordinate that the drivers reach.
    Follows,
    /// Random access at a computed position.
    Located,
    /// Random access at a computed position, with a test whether the coordinate is stored.
    Asked,
    /// Random access through a hash table.
    Probed,
    /// Random access by search.
    Searched,
}

impl FibreRole {
    /// Returns the role as one word.
    pub fn word(self) -> &'static str {
        match self {
            FibreRole::Drives => "drives",
            FibreRole::Limits => "limits",
            FibreRole::Merged => "merged",
            FibreRole::Leaps => "leaps",
            FibreRole::Follows => "follows",
            FibreRole::Located => "located",
            FibreRole::Asked => "asked",
            FibreRole::Probed => "probed",
            FibreRole::Searched => "searched",
        }
    }

    /// Describes the role in a clause.
    pub fn description(self) -> &'static str {
        match self {
            FibreRole::Drives => "the loop counts its positions",
            FibreRole::Limits => "the loop runs from its first coordinate to its last",
            FibreRole::Merged => "the loop advances from one of its coordinates to the next",
            FibreRole::Leaps => "the loop jumps to the largest of the leaders' coordinates",
            FibreRole::Follows => "it advances to each coordinate that the drivers reach",
            FibreRole::Located => "its position is computed",
            FibreRole::Asked => "its position is computed, and a test tells whether it is stored",
            FibreRole::Probed => "the coordinate is looked up in its hash table",
            FibreRole::Searched => "the coordinate is found by search",
        }
    }
}

/// Coordinates visited by a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visited {
    /// All coordinates.
    Every,
    /// Coordinates at which all tensors of one of these sets store an element.
    Stored(Vec<Vec<String>>),
}

/// Formats the trip count that an operand accounts for: the average number of positions, runs or blocks in a fibre.
/// `above` is the number of fibres, `elements` the number of positions of the last level.
pub(crate) fn length(tensor: &str, level: &TensorLevel, above: &Expr, elements: &Expr) -> Option<String> {
    let size = || print::expr(&level.size);
    let counted = |name: String| match above.as_int() {
        Some(1) => name,
        _ => format!("{name}/{}", operand(above)),
    };
    if let Some(slots) = &level.slots {
        let all = level.hidden.first()?.name().to_string();
        let above = slots.first.as_ref().map(|first| poly::tidy(&first.shape[0].minus(&Expr::int(1))));
        return Some(above.map_or(all.clone(), |above| format!("{all}/{}", operand(&above))));
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

/// Formats an expression as an operand of a quotient.
fn operand(e: &Expr) -> String {
    let text = print::expr(e);
    if text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.') { text } else { format!("({text})") }
}
