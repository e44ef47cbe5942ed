#![doc = include_str!("tile.md")]

use super::reorder::{chain, perfect};
use crate::entry::{Entry, Run};
use crate::polyhedral::{
    Edges, PolyhedralModel, Rebuilt, Separated, Tiles, in_program_terms, model, rebuild, seems_turned, separate, turned,
};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::{Args, Value};
use taffeta_analysis::polyhedral::{Dimension, Style, Term};
use taffeta_ast::StmtId;

pub(crate) const ENTRY: Entry = Entry {
    name: "tile",
    signature: "s.tile([L, …], [sizes])",
    params: &["loops", "sizes", "wavefront", "distribute", "separate"],
    summary: "Cuts a nest of loops into tiles.",
    doc: include_str!("tile.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let loops = args.list("loops")?.iter().map(|a| s.loop_(a)).collect::<Result<Vec<_>, _>>()?;
    let sizes = sizes(args, loops.len())?;
    let options = Options {
        wavefront: args.flag("wavefront")?.unwrap_or(false),
        distribute: args.flag("distribute")?.unwrap_or(true),
        separate: args.flag("separate")?.unwrap_or(false),
    };
    Ok(apply(&check(s, &loops, &sizes, options)?))
}

/// 1. Reads one size of at least 1 for each loop.
fn sizes(args: &Args<'_>, count: usize) -> Result<Vec<i64>, Refusal> {
    let given = args.list("sizes")?;
    let one = |a: &crate::value::Arg| match a.value {
        Value::Int(n) if n >= 1 => Ok(n),
        ref other => {
            Err(Refusal::illegal(1, format!("expected an integer of at least 1 as a size, found {}", other.describe()))
                .at(a.span))
        }
    };
    let all = given.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    if all.len() != count {
        return Err(Refusal::illegal(
            1,
            format!("expected one size for each loop, found {count} loops and {} sizes", all.len()),
        ));
    }
    Ok(all)
}

#[derive(Clone, Copy)]
struct Options {
    wavefront: bool,
    distribute: bool,
    separate: bool,
}

struct Plan {
    model: PolyhedralModel,
    order: Order,
    rebuilt: Rebuilt,
    separated: Option<Separated>,
}

fn check(s: &Schedule, wanted: &[Loop], sizes: &[i64], options: Options) -> Result<Plan, Refusal> {
    // 1. Nested in each other.
    let chain = chain(s, wanted)?;
    let at = |l: &Loop| l.stmt.origin().span();
    if options.wavefront && wanted.len() < 2 {
        return Err(Refusal::illegal(1, "expected at least two loops for a wavefront, found one")
            .label(at(&wanted[0]), "this loop"));
    }
    // 2. Perfect.
    let nest = perfect(s, &chain).map_err(|mut r| {
        r.condition = 2;
        r
    })?;
    let old: Vec<usize> = (0..nest.loops.len()).collect();
    let outermost = nest.loops[0].stmt.id();
    let whole = nest.build(&old, &[]);
    let before = tree::replace(s.func(), outermost, &whole);
    let Some(target) = tree::find(&before.body, outermost) else {
        return Err(Refusal::target("the loop is not in the program"));
    };
    // 4. No marks anywhere in the nest.
    for l in &nest.loops {
        crate::requirements::require_unmarked(s.func(), 4, l)?;
    }
    // 3. Affine, and, further in, no marks either.
    let model = model(&before, &target, nest.loops.len(), [3, 4])?;
    if model.leaves.is_empty() {
        return Err(Refusal::illegal(3, "there is no statement in the nest").label(at(&nest.loops[0]), "the nest"));
    }
    let deep = |w: &crate::polyhedral::Whole| w.loops.len() == nest.loops.len();
    if let Some(w) = model.leaves.iter().find(|w| !deep(w)) {
        let why = model.opaque.iter().find(|(s, _)| s.id() == w.stmt.id()).map(|(_, why)| format!(": {why}"));
        let text = format!("the nest is not affine{}", why.unwrap_or_default());
        return Err(Refusal::illegal(3, text).label(w.stmt.origin().span(), "this statement"));
    }
    let position = |l: &Loop| nest.loops.iter().position(|n| n.stmt.id() == l.stmt.id()).unwrap_or(0);
    let tiled: Vec<usize> = wanted.iter().map(position).collect();
    let depth = nest.loops.len();
    // 6. Dependences: statements are separated as far out as is legal.
    let edges = Edges::of(&model);
    let several = model.leaves.iter().any(|w| w.text != model.leaves[0].text);
    let ordered = |apart: usize| Order::of(&model, &tiled, sizes, options.wavefront, apart);
    let mut apart = (0..depth).filter(|_| options.distribute && several).map(ordered);
    let order = match apart.find(|o| !seems_turned(&edges, &o.terms)) {
        Some(order) => order,
        None => {
            let order = ordered(depth);
            if let Some(d) = turned(&edges, &order.terms) {
                return Err(nest
                    .turned(s.func(), in_program_terms(s.func(), &model, d))
                    .help("try `s.polyhedral(…)`, which finds loops that can be tiled"));
            }
            order
        }
    };
    drop(edges);
    // 5. Loop generation.
    let rebuilt = rebuild(&model, &order.terms, &order.dimensions, "tile");
    let gave_up = || {
        Refusal::illegal(5, "isl generates no loops for the nest within its budget")
            .label(at(&nest.loops[0]), "the nest")
    };
    let rebuilt = rebuilt.ok_or_else(gave_up)?;
    // 7. Simpler bounds in full tiles.
    let separated = match options.separate {
        true => {
            let tiles =
                Tiles { cut: tiled.into_iter().zip(sizes.iter().copied()).collect(), wavefront: options.wavefront };
            let nothing = || {
                let text = "full tiles are not proved to have simpler bounds or conditions than partial tiles";
                Refusal::illegal(7, text)
                    .label(at(&nest.loops[0]), "the nest")
                    .help("leave `separate` out: there is nothing to gain")
            };
            Some(separate(&model, &rebuilt, &tiles).ok_or_else(nothing)?)
        }
        false => None,
    };
    Ok(Plan { rebuilt, model, order, separated })
}

/// Order of all leaves: tiles, then the old order, with a dimension that separates the statements of the innermost
/// body.
struct Order {
    terms: Vec<Vec<Term>>,
    dimensions: Vec<Dimension>,
    /// Number of tile dimensions.
    tiles: usize,
    /// Dimension of the point loop, inside of tiles, of each loop of the nest.
    points: Vec<usize>,
}

impl Order {
    /// Builds the order. `apart` is the number of the nest's loops that the statements of the innermost body share.
    fn of(model: &PolyhedralModel, tiled: &[usize], sizes: &[i64], wavefront: bool, apart: usize) -> Order {
        let depth = model.leaves.first().map_or(0, |w| w.loops.len());
        let tile = |m: usize| Term::Quotient(Box::new(Term::Index(tiled[m])), sizes[m]);
        let names: Vec<String> =
            model.leaves.first().map_or(Vec::new(), |w| w.loops.iter().map(|l| l.iter.to_string()).collect());
        let mut tiles: Vec<Term> = (0..tiled.len()).map(tile).collect();
        let mut called: Vec<String> = tiled.iter().map(|k| format!("{}~o", names[*k])).collect();
        if wavefront {
            tiles[0] = Term::Sum(vec![(1, tile(0)), (1, tile(1))]);
            called[0] = format!("{}~w", names[tiled[0]]);
        }
        let count = tiles.len();
        let mut styles = vec![Style::Whole; count];
        let mut points = Vec::new();
        for k in 0..=depth {
            if k == apart {
                called.push("b".into());
                styles.push(Style::Plain);
            }
            if let Some(name) = names.get(k) {
                points.push(called.len());
                called.push(format!("{name}~i"));
                styles.push(Style::Plain);
            }
        }
        let of = |text: &[i64]| {
            let mut terms = tiles.clone();
            for k in 0..=depth {
                if k == apart {
                    terms.push(Term::Number(text.last().copied().unwrap_or(0)));
                }
                if k < depth {
                    terms.push(Term::Index(k));
                }
            }
            terms
        };
        let terms = model.leaves.iter().map(|w| of(&w.text)).collect();
        let leaves = model.leaves.len();
        let dimensions = called.into_iter().zip(styles);
        let dimensions = dimensions.map(|(n, style)| Dimension { names: vec![n; leaves], style }).collect();
        Order { terms, dimensions, tiles: count, points }
    }
}

fn apply(plan: &Plan) -> Change {
    let Plan { model, order, rebuilt, separated } = plan;
    let (outer, inner): (Vec<_>, Vec<_>) = rebuilt.loops.iter().copied().partition(|(d, _)| *d < order.tiles);
    let list = |loops: &[(usize, StmtId)]| Value::List(loops.iter().map(|(_, id)| Value::from(*id)).collect());
    let (func, returned, inner) = match separated {
        Some(s) => {
            let parts = [&outer, &s.full, &s.partial].map(|loops| list(loops));
            (&s.func, Value::List(parts.to_vec()), [&s.full[..], &s.partial].concat())
        }
        None => (&rebuilt.func, list(&[&outer[..], &inner].concat()), inner),
    };
    let mut change = Change::new(func.clone(), returned);
    let loops: &[Loop] = model.leaves.first().map_or(&[], |w| &w.loops);
    for (k, l) in loops.iter().enumerate() {
        let points: Vec<StmtId> = inner.iter().filter(|(d, _)| *d == order.points[k]).map(|(_, id)| *id).collect();
        change = change.moved(l.stmt.id(), points);
    }
    change.moved.extend(rebuilt.moved.iter().cloned());
    change.moved.extend(separated.iter().flat_map(|s| s.moved.iter().cloned()));
    change
}
