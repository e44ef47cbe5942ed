//! The primitives as Rust methods. Each is the call of that name ([`Schedule::call`]), so what is taken is recorded and proved the
//! same way; targets are selectors (`"i"`, `"i/j"`, labels) or handles from earlier steps.
//!
//! Every method gives a [`Refusal`] where the step is not legal, and then the program is what it was.

use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::value::{Arg, Handle, IndexMap, Value};

impl From<Handle> for Value {
    fn from(h: Handle) -> Value {
        Value::Handle(h)
    }
}
impl From<&Handle> for Value {
    fn from(h: &Handle) -> Value {
        Value::Handle(h.clone())
    }
}

/// A list of targets of any kinds: `targets!["i", &inner]`.
#[macro_export]
macro_rules! targets {
    ($($t:expr),* $(,)?) => { vec![$($crate::Value::from($t)),*] };
}

/// How a loop is cut in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitBy {
    /// The length of the inner loop.
    Factor(i64),
    /// The length of the outer loop.
    Parts(i64),
}

/// Where a statement is, relative to another one.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// Before it.
    Before(Value),
    /// After it.
    After(Value),
}

impl Place {
    fn arg(self) -> Arg {
        match self {
            Place::Before(s) => Arg::named("before", s),
            Place::After(s) => Arg::named("after", s),
        }
    }
}

/// The handles in what a call returned.
fn handles(v: Value) -> Vec<Handle> {
    match v {
        Value::Handle(h) => vec![h],
        Value::List(all) => all.into_iter().flat_map(handles).collect(),
        _ => Vec::new(),
    }
}

impl Schedule {
    fn one(&mut self, method: &str, args: &[Arg]) -> Result<Handle, Refusal> {
        let mut made = handles(self.call(method, args)?);
        made.pop().ok_or_else(|| Refusal::usage(format!("`{method}` gave no handle")))
    }

    fn two(&mut self, method: &str, args: &[Arg]) -> Result<(Handle, Handle), Refusal> {
        let mut made = handles(self.call(method, args)?).into_iter();
        match (made.next(), made.next()) {
            (Some(a), Some(b)) => Ok((a, b)),
            _ => Err(Refusal::usage(format!("`{method}` gave less than two handles"))),
        }
    }

    /// Splits a loop into two nested ones: the outer and the inner one.
    pub fn split(&mut self, l: impl Into<Value>, by: SplitBy) -> Result<(Handle, Handle), Refusal> {
        let by = match by {
            SplitBy::Factor(f) => Arg::named("factor", f),
            SplitBy::Parts(p) => Arg::named("parts", p),
        };
        self.two("split", &[Arg::from(l.into()), by])
    }

    /// Makes one loop of two nested ones.
    pub fn merge(&mut self, outer: impl Into<Value>, inner: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("merge", &[Arg::from(outer.into()), Arg::from(inner.into())])
    }

    /// Changes the order of nested loops, given from the outside in.
    pub fn reorder(&mut self, loops: Vec<Value>) -> Result<(), Refusal> {
        self.call("reorder", &[Arg::from(Value::List(loops))]).map(drop)
    }

    /// New iterators from old ones: skewing, interchange, reversal.
    pub fn permute(&mut self, loops: Vec<Value>, map: IndexMap) -> Result<Vec<Handle>, Refusal> {
        self.call("permute", &[Arg::from(Value::List(loops)), Arg::from(Value::Map(map))]).map(handles)
    }

    /// Makes one loop of two that follow each other.
    pub fn fuse(&mut self, first: impl Into<Value>, second: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("fuse", &[Arg::from(first.into()), Arg::from(second.into())])
    }

    /// Makes two loops of one, cut at a statement of its body.
    pub fn fission(&mut self, l: impl Into<Value>, at: Place) -> Result<(Handle, Handle), Refusal> {
        self.two("fission", &[Arg::from(l.into()), at.arg()])
    }

    /// Changes the order of statements of one block.
    pub fn swap(&mut self, order: Vec<Value>) -> Result<(), Refusal> {
        self.call("swap", &[Arg::from(Value::List(order))]).map(drop)
    }

    /// Moves a statement next to another one.
    pub fn move_to(&mut self, stmt: impl Into<Value>, to: Place) -> Result<(), Refusal> {
        self.call("move_to", &[Arg::from(stmt.into()), to.arg()]).map(drop)
    }

    /// Runs a loop backwards.
    pub fn reverse(&mut self, l: impl Into<Value>) -> Result<(), Refusal> {
        self.call("reverse", &[Arg::from(l.into())]).map(drop)
    }

    /// Runs the iterations of a loop on several threads.
    pub fn parallelize(&mut self, l: impl Into<Value>) -> Result<(), Refusal> {
        self.call("parallelize", &[Arg::from(l.into())]).map(drop)
    }

    /// Runs a loop by vector instructions.
    pub fn vectorize(&mut self, l: impl Into<Value>) -> Result<(), Refusal> {
        self.call("vectorize", &[Arg::from(l.into())]).map(drop)
    }

    /// Makes copies of a loop's body: all of them, or `factor` ones in each iteration.
    pub fn unroll(&mut self, l: impl Into<Value>, factor: Option<i64>) -> Result<(), Refusal> {
        let factor = factor.map(|f| Arg::named("factor", f));
        let args: Vec<Arg> = [Arg::from(l.into())].into_iter().chain(factor).collect();
        self.call("unroll", &args).map(drop)
    }

    /// Unrolls a loop and interleaves the statements of its iterations.
    pub fn blend(&mut self, l: impl Into<Value>) -> Result<(), Refusal> {
        self.call("blend", &[Arg::from(l.into())]).map(drop)
    }

    /// Copies the part of a tensor that a statement uses into a small one. Gives what the call returns: the tensor comes first.
    pub fn cache(&mut self, stmt: impl Into<Value>, tensor: impl Into<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("cache", &[Arg::from(stmt.into()), Arg::from(tensor.into())]).map(handles)
    }

    /// Reduces into a small tensor first, then from there into the one that is meant.
    pub fn cache_reduction(
        &mut self,
        stmt: impl Into<Value>,
        tensor: impl Into<Value>,
    ) -> Result<Vec<Handle>, Refusal> {
        self.call("cache_reduction", &[Arg::from(stmt.into()), Arg::from(tensor.into())]).map(handles)
    }

    /// Where a local is kept: `"register"`, `"stack"`, `"heap"` or `"arena"`.
    pub fn set_mem_type(&mut self, tensor: impl Into<Value>, memory: &str) -> Result<(), Refusal> {
        self.call("set_mem_type", &[Arg::from(tensor.into()), Arg::from(memory)]).map(drop)
    }

    /// Puts the expression that a local is filled with where it is read.
    pub fn inline(&mut self, tensor: impl Into<Value>) -> Result<(), Refusal> {
        self.call("inline", &[Arg::from(tensor.into())]).map(drop)
    }

    /// The loops inside a statement, or all of them, outermost first.
    pub fn loops(&mut self, inside: Option<Value>) -> Result<Vec<Handle>, Refusal> {
        let args: Vec<Arg> = inside.into_iter().map(Arg::from).collect();
        self.call("loops", &args).map(handles)
    }

    /// The innermost loop of a nest.
    pub fn innermost(&mut self, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("innermost", &[Arg::from(l.into())])
    }

    /// The number of iterations, where it is a constant.
    pub fn length(&mut self, l: impl Into<Value>) -> Result<Option<i64>, Refusal> {
        match self.call("length", &[Arg::from(l.into())])? {
            Value::Int(n) => Ok(Some(n)),
            _ => Ok(None),
        }
    }
}
