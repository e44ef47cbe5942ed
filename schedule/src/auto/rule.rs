//! Interface of rules: the sites where a rule may apply, and the candidate transformations at each. The driver in
//! `auto` tries the candidates on copies of the schedule and takes the best one.

use super::model::Model;
use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::tree;
use taffeta_ast::{Func, LoopProps, StmtId, StmtKind};

/// Minimum gain of a structural change, as a fraction of the estimate of the outermost statement around its site.
pub(super) const MIN_GAIN_STRUCTURAL: f64 = 0.05;

/// Minimum gain of a mark, which changes only how a loop runs, as a fraction of the estimate of the outermost statement
/// around its site.
pub(super) const MIN_GAIN_MARK: f64 = 0.005;

/// Rule of automatic scheduling.
pub(super) struct Rule {
    /// Name of the schedule method that applies the rule alone: `auto_reorder`.
    pub method: &'static str,
    /// Description of the rule in one sentence.
    pub summary: &'static str,
    /// Reason for the rule's place after its predecessors and before its successors.
    pub why_here: &'static str,
    /// Minimum gain of a step, as a fraction of the estimate of the outermost statement around its site.
    pub gain: f64,
    /// Minimum gain near loops over stored elements of structured tensors; `None` disables the rule there. The access
    /// protocol of these loops depends on their order and their bodies, so a step there must not add searches
    /// to the lowered code ([`Schedule::traversal`]). A negative value admits a slightly higher estimate, since the
    /// model knows less about such loops.
    pub min_gain_sparse: Option<f64>,
    /// Objective to minimise; `None` for the model's estimate.
    pub objective: Option<fn(&Schedule) -> f64>,
    /// Maximum number of passes over all sites; a pass without a step is the last one.
    pub rounds: usize,
    /// Sites at which the rule may apply, in order.
    pub sites: fn(&Schedule) -> Vec<StmtId>,
    /// Candidates at a site. The first one may be to keep the program ([`Candidate::keep`]).
    pub candidates: fn(&Schedule, &Model<'_>, StmtId) -> Vec<Candidate>,
}

/// Steps of a candidate, run on a trial copy that replaces the schedule if the candidate is taken.
pub(super) type Apply = dyn Fn(&mut Schedule) -> Result<ExtraSteps, Refusal>;

/// Steps that a candidate executed in addition to [`Candidate::steps`].
#[derive(Default)]
pub(super) struct ExtraSteps {
    pub before: Vec<String>,
    pub after: Vec<String>,
}

/// Lower bound of a program's estimate with a candidate applied, on the assumption that the candidate is legal.
pub(super) type LowerBound = dyn Fn(&Schedule, &mut Model<'_>) -> f64;

/// Steps text of the candidate to change nothing.
pub(super) const KEEP: &str = "keep";

/// Candidate transformation of a site.
pub(super) struct Candidate {
    /// Steps as a schedule spells them: `reorder([i, k, j])`.
    pub steps: String,
    /// Primitive calls that apply the candidate. They return the steps executed in addition to `steps`: preparations
    /// before them, and consequences after them.
    pub apply: Box<Apply>,
    /// Follow-up steps expected of later rules, applied for the estimate alone.
    pub follow_up: Option<Box<Apply>>,
    /// Lower bound of the program's estimate with this candidate. The bound is far cheaper to compute than a proof of
    /// legality, so candidates whose bound is too high are not tried.
    pub lower_bound: Option<Box<LowerBound>>,
}

impl Candidate {
    pub fn new(steps: String, apply: impl Fn(&mut Schedule) -> Result<ExtraSteps, Refusal> + 'static) -> Candidate {
        Candidate { steps, apply: Box::new(apply), follow_up: None, lower_bound: None }
    }

    /// Returns the candidate to keep the program, with the follow-up steps expected of later rules.
    pub fn keep(follow_up: impl Fn(&mut Schedule) -> Result<ExtraSteps, Refusal> + 'static) -> Candidate {
        Candidate::new(KEEP.into(), |_| Ok(ExtraSteps::default())).with_follow_up(follow_up)
    }

    /// Adds the follow-up steps expected of later rules.
    pub fn with_follow_up(
        self,
        follow_up: impl Fn(&mut Schedule) -> Result<ExtraSteps, Refusal> + 'static,
    ) -> Candidate {
        Candidate { follow_up: Some(Box::new(follow_up)), ..self }
    }

    /// Adds a lower bound: the estimate of the program in which loop `l` has the properties `props`.
    pub fn marked(self, l: StmtId, props: LoopProps) -> Candidate {
        let lower_bound = move |s: &Schedule, model: &mut Model<'_>| model.program(&with_props(s.func(), l, &props));
        Candidate { lower_bound: Some(Box::new(lower_bound)), ..self }
    }
}

/// Returns a copy of the program in which loop `l` has the properties `props`.
pub(super) fn with_props(func: &Func, l: StmtId, props: &LoopProps) -> Func {
    let Some(stmt) = tree::find(&func.body, l) else { return func.clone() };
    let StmtKind::For { iter, extent, body, .. } = stmt.kind() else { return func.clone() };
    let (iter, extent, body, props) = (iter.clone(), extent.clone(), body.clone(), props.clone());
    tree::replace(func, l, &stmt.with_kind(StmtKind::For { iter, extent, props, body }))
}
