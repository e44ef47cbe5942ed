//! Distance of a program from its machine's peak: estimate against roofline (Williams, Waterman and Patterson 2009) per
//! nest, and the obstacles.
//!
//! The roof of a nest is the larger of two times: *arithmetic*, all its operations in full vectors on all threads, and
//! *memory*, one transfer of every touched tensor from the first level that holds all tensors of the program, at that
//! level's bandwidth.

use super::decisions::Answer;
use super::model::{Model, RoofComparison};
use super::{parallelize, vectorize};
use crate::auto::model::enclosing::Stage;
use crate::schedule::Schedule;
use crate::tree;
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtKind};

/// Ratio of estimate to roof above which a nest is far from its roof.
const FAR: f64 = 3.0;
/// Fraction of the program's estimate below which nests are not reported.
const SMALL: f64 = 0.1;
/// Maximum number of obstacles reported per nest.
const MAX_OBSTACLES: usize = 3;

/// Outermost loop of a program, with its estimate and its roof.
#[derive(Clone, Debug)]
pub struct NestReport {
    /// Selector of the nest in a schedule.
    pub site: String,
    /// Estimated time in nanoseconds.
    pub estimate: f64,
    /// Lower bound of the arithmetic's time in nanoseconds.
    pub arithmetic: f64,
    /// Lower bound of the memory transfers' time in nanoseconds.
    pub memory: f64,
    /// Obstacles, if `is_far`: execution on one thread, gathers, and refused marks with their reasons.
    pub obstacles: Vec<String>,
    /// Whether the nest is far from its roof and a significant part of the program.
    pub is_far: bool,
}

impl NestReport {
    /// Returns the lower bound of the nest's time.
    pub fn roof(&self) -> f64 {
        self.arithmetic.max(self.memory)
    }
}

impl Schedule {
    /// Returns the outermost loops of the current program, each with its roof.
    pub fn nests(&self) -> Vec<NestReport> {
        let target = self.target();
        let model = Model::new(&target, Stage::Compiled);
        let mut loops = Vec::new();
        outermost(&self.func().body, &mut loops);
        let mut nests: Vec<NestReport> = loops
            .iter()
            .map(|l| {
                let RoofComparison { estimate, arithmetic, memory } = model.against_roof(self.func(), l);
                let site = self.called(l);
                NestReport { site, estimate, arithmetic, memory, obstacles: Vec::new(), is_far: false }
            })
            .collect();
        let whole: f64 = nests.iter().map(|n| n.estimate).sum();
        for (nest, l) in nests.iter_mut().zip(&loops) {
            nest.is_far = nest.estimate > FAR * nest.roof() && nest.estimate > SMALL * whole;
            if nest.is_far {
                nest.obstacles = self.obstacles(l);
            }
        }
        nests
    }

    /// Lists the obstacles in a loop, marks refused by the rules among them.
    fn obstacles(&self, l: &Stmt) -> Vec<String> {
        let (mut names, mut threads, mut gathers) = (Vec::new(), false, false);
        l.walk(&mut |s| {
            if let StmtKind::For { props, .. } = s.kind() {
                threads |= props.parallel.is_some() || props.library;
                names.push(self.called(s));
            }
            s.kind().exprs().into_iter().for_each(|e| gathers |= is_gather(e));
        });
        let marks = [parallelize::RULE.method, vectorize::RULE.method];
        let about = self.decisions().iter().rev().filter(|d| marks.contains(&d.rule) && names.contains(&d.site));
        let refused = about.flat_map(|d| &d.outcomes).filter_map(|o| match &o.answer {
            Answer::Refused(why) => Some((&o.steps, why)),
            _ => None,
        });
        let mut out: Vec<String> = Vec::new();
        if !threads && self.target().threads > 1 {
            out.push("it runs on one thread".into());
        }
        if gathers {
            out.push("it accesses elements at indices read from a tensor".into());
        }
        for (steps, why) in refused {
            let text = format!("{steps}: {why}");
            if out.len() < MAX_OBSTACLES && !out.contains(&text) {
                out.push(text);
            }
        }
        out
    }
}

/// Returns whether an expression has a load at a loaded index.
fn is_gather(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e.kind(), ExprKind::Load(_, at) if at.iter().any(|a| !effects::loads(&a.index).is_empty())))
}

fn outermost(s: &Stmt, out: &mut Vec<Stmt>) {
    match s.kind() {
        StmtKind::For { .. } if tree::Loop::of(s).is_some() => out.push(s.clone()),
        _ => s.kind().children().into_iter().for_each(|c| outermost(c, out)),
    }
}
