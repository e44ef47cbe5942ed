//! How far a program is from what its machine can do: its estimate against the roofline (Williams, Waterman and
//! Patterson 2009), nest by nest, and what stands in the way.
//!
//! The roof of a nest is the larger of two times: *arithmetic*, all its operations in whole vectors on all threads, and
//! *memory*, every tensor that it touches brought once from the level that holds all of them, at that level's
//! bandwidth.

use super::model::{Model, Stage};
use super::{Answer, parallelize, vectorize};
use crate::schedule::Schedule;
use crate::tree;
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtKind};

/// A nest that takes more than this many times its roof is far from it.
const FAR: f64 = 3.0;
/// Nests that take less than this part of the program are not warned about.
const SMALL: f64 = 0.1;
/// Refusals that are told of a nest.
const MOST_OBSTACLES: usize = 3;

/// An outermost loop of the program.
#[derive(Clone, Debug)]
pub struct Nest {
    /// As a schedule would name it.
    pub site: String,
    /// What it takes by the model, in nanoseconds.
    pub estimate: f64,
    /// What its arithmetic takes at least.
    pub arithmetic: f64,
    /// What its bytes take at least.
    pub memory: f64,
    /// What it waits for, if it is far from its roof and a part of the program that counts: what could not be done with
    /// it, with the reason.
    pub obstacles: Vec<String>,
    /// Whether it is far from its roof, and a part of the program that counts.
    pub is_far: bool,
}

impl Nest {
    /// What it takes at least.
    pub fn roof(&self) -> f64 {
        self.arithmetic.max(self.memory)
    }
}

impl Schedule {
    /// The outermost loops of the program as it is now, each against its roof.
    pub fn nests(&self) -> Vec<Nest> {
        let target = self.target();
        let model = Model::new(&target, Stage::Compiled);
        let mut loops = Vec::new();
        outermost(&self.func().body, &mut loops);
        let mut nests: Vec<Nest> = loops
            .iter()
            .map(|l| {
                let (estimate, arithmetic, memory) = model.against_roof(self.func(), l);
                let site = self.called(l);
                Nest { site, estimate, arithmetic, memory, obstacles: Vec::new(), is_far: false }
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

    /// What marks were refused in a loop.
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
        let refused = about.flat_map(|d| &d.options).filter_map(|o| match &o.answer {
            Answer::Refused(why) => Some((&o.steps, why)),
            _ => None,
        });
        let mut out: Vec<String> = Vec::new();
        if !threads && self.target().threads > 1 {
            out.push("it runs on one thread".into());
        }
        if gathers {
            out.push("it goes where a tensor says".into());
        }
        for (steps, why) in refused {
            let text = format!("{steps}: {why}");
            if out.len() < MOST_OBSTACLES && !out.contains(&text) {
                out.push(text);
            }
        }
        out
    }
}

/// Whether an expression loads at an index that is loaded.
fn is_gather(e: &Expr) -> bool {
    let mut found = false;
    e.walk(&mut |e| {
        if let ExprKind::Load(_, at) = e.kind() {
            found |= at.iter().any(|a| !effects::loads(&a.index).is_empty());
        }
    });
    found
}

fn outermost(s: &Stmt, out: &mut Vec<Stmt>) {
    match s.kind() {
        StmtKind::For { .. } if tree::Loop::of(s).is_some() => out.push(s.clone()),
        _ => s.kind().children().into_iter().for_each(|c| outermost(c, out)),
    }
}
