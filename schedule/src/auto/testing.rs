//! Parts of the cost model for `crate::testing`.

use super::model::Model;
use super::model::enclosing::Stage;
use super::target::Target;
use super::trip_counts::{Declared, Estimate, Values};
use crate::tree::Loop;
use std::rc::Rc;
use taffeta_ast::{Func, Stmt};

/// Cost model that remembers the estimates of loops from program to program, and not those of outermost statements,
/// which are memoised regardless of the rest of the program.
pub struct LoopMemo<'t>(Model<'t>);

impl<'t> LoopMemo<'t> {
    /// Creates a model for the stage before marks.
    pub fn before_marks(target: &'t Target) -> LoopMemo<'t> {
        LoopMemo(Model::new(target, Stage::Structure))
    }

    /// Creates a model for the stage of marks.
    pub fn during_marks(target: &'t Target) -> LoopMemo<'t> {
        LoopMemo(Model::new(target, Stage::Marks))
    }

    /// Returns the estimated time of a program in nanoseconds.
    pub fn estimate(&mut self, func: &Func) -> f64 {
        self.0.forget_statements();
        self.0.program(func)
    }
}

/// Returns the expected trip counts of a program's loops, in program order.
pub fn trip_counts(func: &Func, target: &Target) -> Vec<Estimate> {
    let mut out = Vec::new();
    count(&func.body, &mut Values::of(Rc::new(Declared::of(func)), target), &mut out);
    out
}

fn count(s: &Stmt, values: &mut Values<'_>, out: &mut Vec<Estimate>) {
    if let Some(l) = Loop::of(s) {
        out.push(values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body));
        count(&l.body, values, out);
        return values.leave();
    }
    s.kind().children().into_iter().for_each(|c| count(c, values, out));
}
