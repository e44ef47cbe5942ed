//! Paths from the root of a program to its statements.
//!
//! Paths to the statements of one block share all nodes but the last: collecting the paths of a whole program takes
//! time and memory proportional to the program, at any depth. (Each declaration is a scope in its predecessor, so long
//! programs are deep.) Few steps of a path constrain the execution of its statement, and these are linked, so that the
//! others are skipped. The fork of two paths is found in logarithmic time, by jump pointers. A path is flattened to a
//! slice on demand.

use super::effects;
use super::reference::Step;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use taffeta_ast::{Stmt, StmtId, Symbol};

/// Steps from the root of a program to a statement.
#[derive(Clone, Default)]
pub struct Path {
    last: Option<Arc<Node>>,
    written_out: OnceLock<Arc<[Step]>>,
}

/// Step, linked to the steps before it.
pub struct Node {
    step: Step,
    /// Step before this one.
    pub before: Option<Arc<Node>>,
    /// Whether the step constrains the states in which the statement is executed.
    constrains: bool,
    /// Last constraining step before this one.
    constraint: Option<Arc<Node>>,
    /// Jump pointer to an earlier step, none for the root. The distance of the jump follows from `length` alone.
    pub jump: Option<Arc<Node>>,
    /// Number of steps up to and including this one.
    pub length: usize,
}

fn length(n: Option<&Node>) -> usize {
    n.map_or(0, |n| n.length)
}

impl Node {
    /// Returns whether both nodes lead to the same place. Paths that meet are equal up to there, since a statement has
    /// one place in a program.
    fn meets(&self, other: &Node) -> bool {
        std::ptr::eq(self, other) || self.step.same(&other.step)
    }

    /// Returns the jump pointer of the step after this one: if this node's jump and the next one after it are equally
    /// long, it spans both; otherwise it points to this node. Any length is reached from any node in a logarithmic
    /// number of jumps and steps (Myers, An applicative random-access stack, 1983).
    fn jump_after(self: &Arc<Node>) -> Option<Arc<Node>> {
        let far = self.jump.as_ref();
        let farther = far.and_then(|n| n.jump.as_ref());
        let [here, far, end] = [Some(self), far, farther].map(|n| length(n.map(Arc::as_ref)));
        if here - far == far - end { farther.cloned() } else { Some(self.clone()) }
    }
}

/// Returns the node after the first `steps` steps of the path that ends in `end`.
pub fn up_to(steps: usize, end: Option<&Node>) -> Option<&Node> {
    let mut at = end?;
    while at.length > steps {
        let jump = at.jump.as_deref();
        at = if length(jump) < steps { at.before.as_deref() } else { jump }?;
    }
    Some(at)
}

impl Path {
    /// Returns this path, extended by a step.
    pub(super) fn then(&self, step: Step) -> Path {
        let constrains = match &step {
            Step::Child { asserted, .. } => *asserted,
            Step::Loop { .. } | Step::Branch { .. } => true,
            // The sizes, which bound indices, may change.
            Step::Scope { .. } => step.evaluated().into_iter().any(|d| !effects::loads(d).is_empty()),
        };
        let constraint = match &self.last {
            Some(last) if last.constrains => Some(last.clone()),
            Some(last) => last.constraint.clone(),
            None => None,
        };
        let jump = self.last.as_ref().and_then(Node::jump_after);
        let node = Node { step, before: self.last.clone(), constrains, constraint, jump, length: self.len() + 1 };
        Path { last: Some(Arc::new(node)), written_out: OnceLock::new() }
    }

    /// Returns the last step.
    pub(crate) fn last(&self) -> Option<&Node> {
        self.last.as_deref()
    }

    /// Returns the number of steps.
    pub fn len(&self) -> usize {
        length(self.last.as_deref())
    }

    /// Returns whether the path ends at the root.
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Iterates over the steps, the last one first.
    pub fn upwards(&self) -> impl Iterator<Item = &Step> {
        std::iter::successors(self.last.as_deref(), |n| n.before.as_deref()).map(|n| &n.step)
    }

    /// Returns the steps that constrain the states in which the statement is executed, outermost first, each with the
    /// number of steps before it: loops, branches, children that follow assertions, and scopes of tensors whose sizes
    /// are elements of others.
    pub fn constraints(&self) -> Vec<(usize, &Step)> {
        let mut all: Vec<(usize, &Step)> = self.inner_first().map(|n| (n.length - 1, &n.step)).collect();
        all.reverse();
        all
    }

    /// Iterates over the constraining steps, innermost first.
    fn inner_first(&self) -> impl Iterator<Item = &Node> {
        let innermost = self.last.as_deref().and_then(|n| if n.constrains { Some(n) } else { n.constraint.as_deref() });
        std::iter::successors(innermost, |n| n.constraint.as_deref())
    }

    /// Returns whether the path enters the loop.
    pub fn is_in_loop(&self, l: StmtId) -> bool {
        self.inner_first().any(|n| matches!(&n.step, Step::Loop { stmt, .. } if stmt.id() == l))
    }

    /// Iterates over the loops on the path, outermost first, with their iterators.
    pub fn loops(&self) -> impl Iterator<Item = (&Stmt, &Symbol)> {
        self.constraints().into_iter().filter_map(|(_, s)| match s {
            Step::Loop { stmt, iter, .. } => Some((stmt, iter)),
            _ => None,
        })
    }

    /// Returns whether the path goes through the statement.
    pub fn is_through(&self, stmt: StmtId) -> bool {
        self.upwards().any(|s| s.stmt().id() == stmt)
    }

    /// Returns the number of steps that both paths share, and the next step of each.
    pub fn fork<'a>(&'a self, other: &'a Path) -> (usize, [Option<&'a Step>; 2]) {
        let ends = [self.last.as_deref(), other.last.as_deref()];
        let both = self.len().min(other.len());
        let [mut a, mut b] = ends.map(|end| up_to(both, end));
        while let (Some(x), Some(y)) = (a, b)
            && !x.meets(y)
        {
            // Both jump equally far, since they are equally long.
            (a, b) = match (x.jump.as_deref(), y.jump.as_deref()) {
                (Some(p), Some(q)) if !p.meets(q) => (Some(p), Some(q)),
                _ => (x.before.as_deref(), y.before.as_deref()),
            };
        }
        let common = length(a);
        (common, ends.map(|end| Some(&up_to(common + 1, end).filter(|n| n.length > common)?.step)))
    }
}

impl Deref for Path {
    type Target = [Step];

    fn deref(&self) -> &[Step] {
        self.written_out.get_or_init(|| {
            let mut all: Vec<Step> = self.upwards().cloned().collect();
            all.reverse();
            all.into()
        })
    }
}

impl FromIterator<Step> for Path {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Path {
        steps.into_iter().fold(Path::default(), |path, step| path.then(step))
    }
}

impl<'a> IntoIterator for &'a Path {
    type Item = &'a Step;
    type IntoIter = std::slice::Iter<'a, Step>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Drop for Node {
    /// Drops the nodes iteratively, since a path may be too long for recursion on the stack.
    fn drop(&mut self) {
        (self.constraint, self.jump) = (None, None);
        let mut rest = self.before.take();
        while let Some(mut node) = rest.and_then(Arc::into_inner) {
            (node.constraint, node.jump) = (None, None);
            rest = node.before.take();
        }
    }
}
