//! `auto_polyhedral`: skewing and tiling of nests in which every loop carries a dependence, so that tiles can run in
//! parallel.
//!
//! ```text
//! for t: for i: for j:  a[i, j] = f(its neighbours, some of them of this sweep)
//!     ─▶
//! fronts of tiles, one after the other
//!     tiles of a front, which threads share out
//!         t, t + i, 2 t + i + j in a tile
//! ```
//!
//! A nest in which some loop can run on threads is not skewed, since skewed loops have costly bounds.

use super::model::Model;
use super::nest;
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::block::Block;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree::{self, Loop};
use crate::value::{Arg, Value};
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::{Stmt, StmtId, StmtKind, Symbol};

pub(super) const RULE: Rule = Rule {
    method: "auto_polyhedral",
    summary: "Skews and tiles nests in which every loop carries a dependence, for threads.",
    why_here: "after the order of loops is chosen, since the loops that it makes keep their order, and before lanes",
    gain: crate::auto::rule::MIN_GAIN_STRUCTURAL,
    min_gain_sparse: None,
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Maximum depth of a nest to tile.
const MAX_LOOPS: usize = 4;
/// Tile size of the outermost loop, and of the others.
const TILE: [i64; 2] = [16, 32];

/// Collects the outermost loops of perfect nests whose innermost loop reads a tensor it stores into.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let outermost = nest::loops_in(&s.func().body);
    outermost.iter().filter(|l| is_in_place(&nest::chain(l))).map(Stmt::id).collect()
}

fn is_in_place(loops: &[Stmt]) -> bool {
    if !(2..=MAX_LOOPS).contains(&loops.len()) || loops.windows(2).any(|pair| !nest::is_alone(&pair[0], &pair[1])) {
        return false;
    }
    let Some(l) = loops.last().and_then(Loop::of) else { return false };
    let items = Block::of(&l.body).items;
    let loads: FxHashSet<Symbol> = items.iter().flat_map(|s| s.kind().exprs()).flat_map(effects::loads).collect();
    let stores = |s: &Stmt| match s.kind() {
        StmtKind::Store { tensor, indices, .. } => Some(!indices.is_empty() && loads.contains(tensor)),
        _ => None,
    };
    let stored: Option<Vec<bool>> = items.iter().map(stores).collect();
    stored.is_some_and(|all| all.contains(&true))
}

fn candidates(s: &Schedule, model: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(root) = tree::find(&s.func().body, site) else { return Vec::new() };
    let loops = nest::chain(&root);
    let is_free = |l: &Stmt| s.trying().call("parallelize", &[Arg::from(l.id())]).is_ok();
    if model.target.threads < 2 || loops.iter().any(is_free) {
        return Vec::new();
    }
    // The outermost loop gets at least two tiles, since a single one has no wavefronts.
    let trips = Loop::of(&root).map_or(0.0, |l| model.trips(s.func(), &[], &l).value);
    let sizes: Vec<i64> = (0..loops.len())
        .map(|k| match k {
            0 => TILE[0].min((trips / 2.0).ceil() as i64).max(1),
            _ => TILE[1],
        })
        .collect();
    let text = sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let steps = format!("parallelize(tile(polyhedral(\"{}\"), [{text}], wavefront=True)[1])", s.called(&root));
    let (of, depth) = (sizes.clone(), loops.len());
    vec![Candidate::new(steps, move |s| fronts(s, site, depth, &of).map(|_| ExtraSteps::default()))]
}

/// Skews and tiles a nest for wavefronts, and runs the tiles of a front on threads.
fn fronts(s: &mut Schedule, site: StmtId, depth: usize, sizes: &[i64]) -> Result<Value, Refusal> {
    let band = s.call("polyhedral", &[Arg::from(site)])?;
    match &band {
        Value::List(loops) if loops.len() == depth && loops.iter().all(|l| matches!(l, Value::Handle(_))) => {}
        _ => return Err(Refusal::target("the nest is no longer a single band of loops")),
    }
    let sizes = Value::List(sizes.iter().map(|n| Value::Int(*n)).collect());
    let made = s.call("tile", &[Arg::from(band), Arg::from(sizes), Arg::named("wavefront", true)])?;
    match made {
        Value::List(loops) if loops.len() > 1 => s.call("parallelize", &[Arg::from(loops[1].clone())]),
        _ => Err(Refusal::target("there are no tiles")),
    }
}
