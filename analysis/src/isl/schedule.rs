//! Computation of a schedule tree ([`Proposal`]) by isl's scheduler, from the statements' domains and dependence
//! relations (Bondhugula et al. 2008; Verdoolaege and Janssens 2017).

use super::{bounded, text};
use crate::polyhedral::{Edge, Member, OrderConstraints, Proposal, Region, relax};
use isl_rs::{
    Aff, Context, DimType, LibISLError, Options, ScheduleConstraints, ScheduleNode, ScheduleNodeType, Set, UnionMap,
    UnionSet,
};

/// isl operations that computing a schedule may cost: some tenths of a second.
const MAX_OPERATIONS: u64 = 500_000;

/// Maximum number of extreme rays of the cone of an edge's linear forms. Matrix products, stencils and factorizations
/// stay below 2,400.
const MAX_RAYS: u64 = 4_000;

/// Maximum number of statements for which isl may merge strongly connected components one by one; larger regions are
/// scheduled as a whole.
///
/// While clustering components, isl 0.27 may find a relation empty that it recorded as an edge earlier
/// (`isl_map_affine_hull` in `compute_weights` removes empty pieces that a relation shares with others). The sort of
/// components ignores such an edge, but the arrangement of three or more components (`isl_scheduler_scc.c`) still
/// counts it: along a backward edge isl writes outside of its arrays.
const MAX_CLUSTERED: usize = 2;

/// Implements [`crate::polyhedral::propose`].
pub(crate) fn propose(region: &Region, constraints: &OrderConstraints) -> Option<Proposal> {
    let [validity, coincidence, proximity] =
        [&constraints.validity, &constraints.coincidence, &constraints.proximity].map(|e| narrow(region, e));
    let (validity, coincidence, proximity) = (validity?, coincidence?, proximity?);
    bounded(MAX_OPERATIONS, |context| {
        Options::set_schedule_outer_coincidence(context, 0)?;
        Options::set_schedule_whole_component(context, i32::from(region.statements.len() > MAX_CLUSTERED))?;
        let domain = UnionSet::read_from_str(context, &text::domains(region))?;
        let known = text::braces(region, &format!(": {}", text::condition(&region.known)));
        let relation = |edges: &[Edge]| relation(context, region, edges);
        let validity = relation(&validity)?;
        let coincidence = validity.copy()?.union(relation(&coincidence)?)?.coalesce()?;
        let proximity = relation(&proximity)?;
        let schedule = ScheduleConstraints::on_domain(domain.copy()?)?
            .set_context(Set::read_from_str(context, &known)?)?
            .set_validity(validity)?
            .set_coincidence(coincidence)?
            .set_proximity(proximity)?
            .compute_schedule()?;
        let root = schedule.get_root()?;
        let all: Vec<usize> = (0..region.statements.len()).collect();
        node(region, &root, &all)
    })
    .flatten()
}

/// Returns the edges, each with all of its rows or, where these have too many extreme rays for the scheduler, with only
/// the rows that relate source and sink. `None` where even these have too many.
///
/// isl computes the linear forms that are non-negative on an edge from its rows (Farkas' lemma): it eliminates one
/// multiplier for each row, and meets the extreme rays of that cone on the way. Its operation count does not reflect
/// the cost of these steps.
fn narrow(region: &Region, edges: &[Edge]) -> Option<Vec<Edge>> {
    let narrow = |e: &Edge| most_rays(e) <= MAX_RAYS;
    let chosen = |e: &Edge| Some(if narrow(e) { e.clone() } else { relax(region, e) }).filter(narrow);
    edges.iter().map(chosen).collect()
}

/// Estimates the maximum number of extreme rays of a cone with as many inequalities `n` and dimensions `d` as the edge
/// has, by the binomial coefficient of `n - ⌈d/2⌉` over `⌊d/2⌋`: a cyclic polytope has at most twice as many facets
/// (McMullen 1970).
fn most_rays(edge: &Edge) -> u64 {
    let columns = edge.rows.iter().map(Vec::len).max().unwrap_or(1) as u64 - 1;
    let (chosen, of) = (columns / 2, (edge.rows.len() as u64).saturating_sub(columns.div_ceil(2)));
    if chosen > of {
        return 0;
    }
    (0..chosen).try_fold(1u64, |all, k| Some(all.checked_mul(of - k)? / (k + 1))).unwrap_or(u64::MAX)
}

fn relation(context: &Context, region: &Region, edges: &[Edge]) -> Result<UnionMap, LibISLError> {
    let edges: Vec<&Edge> = edges.iter().collect();
    UnionMap::read_from_str(context, &text::edges(region, &edges))?.coalesce()
}

/// Reads a node of isl's schedule tree. `None` where a node has no counterpart in [`Proposal`].
fn node(region: &Region, at: &ScheduleNode, statements: &[usize]) -> Result<Option<Proposal>, LibISLError> {
    match at.get_type()? {
        ScheduleNodeType::Leaf => Ok(Some(Proposal::Leaf)),
        ScheduleNodeType::Domain => node(region, &at.get_child(0)?, statements),
        ScheduleNodeType::Band => {
            let count = at.band_n_member()?;
            let mut members = Vec::new();
            for k in 0..count {
                members.push(Member { coincident: at.band_member_get_coincident(k)?, rows: Vec::new() });
            }
            let maps = at.band_get_partial_schedule_union_map()?.get_map_list()?;
            for m in 0..maps.size()? {
                let map = maps.get_at(m)?;
                let Some(statement) = number(map.get_tuple_name(DimType::In)?) else { return Ok(None) };
                let order = map.as_pw_multi_aff()?;
                for (k, member) in members.iter_mut().enumerate() {
                    let piece = order.get_at(k as i32)?;
                    if piece.n_piece()? != 1 {
                        return Ok(None);
                    }
                    let Some(row) = coefficients(region, statement, &piece.as_aff()?)? else { return Ok(None) };
                    member.rows.push((statement, row));
                }
            }
            // A permutable band becomes one band that can be tiled, any other becomes a nest of single loops.
            let inside = node(region, &at.get_child(0)?, statements)?;
            let Some(mut inside) = inside else { return Ok(None) };
            if at.band_get_permutable()? {
                return Ok(Some(Proposal::Band(members, Box::new(inside))));
            }
            for member in members.into_iter().rev() {
                inside = Proposal::Band(vec![member], Box::new(inside));
            }
            Ok(Some(inside))
        }
        kind @ (ScheduleNodeType::Sequence | ScheduleNodeType::Set) => {
            let mut parts = Vec::new();
            for k in 0..at.n_children()? {
                let filter = at.get_child(k)?;
                let sets = filter.filter_get_filter()?.get_set_list()?;
                let mut own = Vec::new();
                for s in 0..sets.size()? {
                    let Some(statement) = number(sets.get_at(s)?.get_tuple_name()?) else { return Ok(None) };
                    own.push(statement);
                }
                own.sort_unstable();
                let Some(inside) = node(region, &filter.get_child(0)?, &own)? else { return Ok(None) };
                parts.push((own, inside));
            }
            if kind == ScheduleNodeType::Set {
                parts.sort_by_key(|(own, _)| own.first().copied());
            }
            let mut all: Vec<usize> = parts.iter().flat_map(|(own, _)| own.clone()).collect();
            all.sort_unstable();
            // A statement whose instances are split between children would occur twice.
            Ok((all == statements).then_some(Proposal::Sequence(parts)))
        }
        _ => Ok(None),
    }
}

/// Parses `S3` as 3.
fn number(name: &str) -> Option<usize> {
    name.strip_prefix('S')?.parse().ok()
}

fn coefficients(region: &Region, statement: usize, a: &Aff) -> Result<Option<Vec<i64>>, LibISLError> {
    if a.get_denominator_val()?.get_num_si()? != 1 || a.dim(DimType::Div)? != 0 {
        return Ok(None);
    }
    let indices = region.statements[statement].indices;
    let mut row = vec![0; 1 + indices + region.parameters.len()];
    row[0] = a.get_constant_val()?.get_num_si()?;
    for k in 0..indices {
        row[1 + k] = a.get_coefficient_val(DimType::In, k as i32)?.get_num_si()?;
    }
    for k in 0..region.parameters.len() {
        let at = a.find_dim_by_name(DimType::Param, &format!("p{k}"))?;
        if at >= 0 {
            row[1 + indices + k] = a.get_coefficient_val(DimType::Param, at)?.get_num_si()?;
        }
    }
    Ok(Some(row))
}
