//! Primitives as Rust methods. Each method is the call of that name ([`Schedule::call`]), so the step is recorded and
//! proved in the same way. Targets are selectors (`"i"`, `"i/j"`, labels) or handles from earlier steps.
//!
//! Every method returns a [`Refusal`] if the step is illegal, and then leaves the program unchanged.

use crate::refusal::Refusal;
use crate::schedule::Schedule;
use crate::value::{Arg, Handle, IndexMap, Value};
use taffeta_ast::Parallel;

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

/// Builds a list of targets of any kinds: `targets!["i", &inner]`.
#[macro_export]
macro_rules! targets {
    ($($t:expr),* $(,)?) => { vec![$($crate::Value::from($t)),*] };
}

/// Size of the loops of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitBy {
    /// Length of the inner loop.
    Factor(i64),
    /// Length of the outer loop.
    Parts(i64),
}

/// Loops of a tiled nest whose full tiles are separate from partial ones.
#[derive(Clone, Debug, PartialEq)]
pub struct SeparatedTiles {
    /// Tile loops, outermost first.
    pub tiles: Vec<Handle>,
    /// Loops inside full tiles, in textual order.
    pub full: Vec<Handle>,
    /// Loops inside partial tiles, in textual order.
    pub partial: Vec<Handle>,
}

/// Place relative to another statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Anchor {
    /// Before the statement.
    Before(Value),
    /// After the statement.
    After(Value),
}

impl Anchor {
    fn arg(self) -> Arg {
        match self {
            Anchor::Before(s) => Arg::named("before", s),
            Anchor::After(s) => Arg::named("after", s),
        }
    }
}

/// Collects the handles in the result of a call.
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
        made.pop().ok_or_else(|| Refusal::usage(format!("`{method}` returned no handle")))
    }

    fn two(&mut self, method: &str, args: &[Arg]) -> Result<(Handle, Handle), Refusal> {
        let mut made = handles(self.call(method, args)?).into_iter();
        match (made.next(), made.next()) {
            (Some(a), Some(b)) => Ok((a, b)),
            _ => Err(Refusal::usage(format!("`{method}` returned fewer than two handles"))),
        }
    }

    // ---- loops

    /// Splits a loop into two nested ones. Returns the outer and the inner loop.
    pub fn split(&mut self, l: impl Into<Value>, by: SplitBy) -> Result<(Handle, Handle), Refusal> {
        self.split_shifted(l, by, 0)
    }

    /// Splits a loop into two nested ones, with the tiles shifted to the right: the first tile has `shift` iterations
    /// less.
    pub fn split_shifted(&mut self, l: impl Into<Value>, by: SplitBy, shift: i64) -> Result<(Handle, Handle), Refusal> {
        let by = match by {
            SplitBy::Factor(f) => Arg::named("factor", f),
            SplitBy::Parts(p) => Arg::named("parts", p),
        };
        let shift = (shift != 0).then(|| Arg::named("shift", shift));
        let args: Vec<Arg> = [Arg::from(l.into()), by].into_iter().chain(shift).collect();
        self.two("split", &args)
    }

    /// Merges two nested loops into one.
    pub fn merge(&mut self, outer: impl Into<Value>, inner: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("merge", &[Arg::from(outer.into()), Arg::from(inner.into())])
    }

    /// Reorders nested loops, given outermost first in their new order.
    pub fn reorder(&mut self, loops: Vec<Value>) -> Result<(), Refusal> {
        self.call("reorder", &[Arg::from(Value::List(loops))]).map(drop)
    }

    /// Replaces the iterators of a nest by affine functions of them: skewing, interchange, reversal. Returns the loops,
    /// outermost first.
    pub fn permute(&mut self, loops: Vec<Value>, map: IndexMap) -> Result<Vec<Handle>, Refusal> {
        self.call("permute", &[Arg::from(Value::List(loops)), Arg::from(Value::Map(map))]).map(handles)
    }

    /// Reorders all loops of a region for tiling and parallel execution. Returns the loops that can be tiled, outermost
    /// first, one nest after the other.
    pub fn polyhedral(&mut self, region: impl Into<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("polyhedral", &[Arg::from(region.into())]).map(handles)
    }

    /// Tiles a loop nest. Returns the tile loops, then the loops inside of tiles.
    pub fn tile(&mut self, loops: Vec<Value>, sizes: &[i64]) -> Result<Vec<Handle>, Refusal> {
        self.call("tile", &[Arg::from(Value::List(loops)), Arg::from(sizes.to_vec())]).map(handles)
    }

    /// Tiles a loop nest for execution by wavefronts: within one iteration of the first tile loop, all tiles of the
    /// second one may run at the same time, if no dependence goes backwards.
    pub fn tile_by_fronts(&mut self, loops: Vec<Value>, sizes: &[i64]) -> Result<Vec<Handle>, Refusal> {
        let sizes = Arg::from(sizes.to_vec());
        self.call("tile", &[Arg::from(Value::List(loops)), sizes, Arg::named("wavefront", true)]).map(handles)
    }

    /// Tiles a loop nest, with two versions of the tile's body: one for full tiles, whose loops have just the bounds of
    /// the tile, and one for partial tiles.
    pub fn tile_separated(&mut self, loops: Vec<Value>, sizes: &[i64]) -> Result<SeparatedTiles, Refusal> {
        self.separated(loops, sizes, false)
    }

    /// Tiles as [`Schedule::tile_separated`] does, for execution by wavefronts as in [`Schedule::tile_by_fronts`].
    pub fn tile_separated_by_fronts(&mut self, loops: Vec<Value>, sizes: &[i64]) -> Result<SeparatedTiles, Refusal> {
        self.separated(loops, sizes, true)
    }

    fn separated(&mut self, loops: Vec<Value>, sizes: &[i64], wavefront: bool) -> Result<SeparatedTiles, Refusal> {
        let mut args = vec![Arg::from(Value::List(loops)), Arg::from(sizes.to_vec()), Arg::named("separate", true)];
        if wavefront {
            args.push(Arg::named("wavefront", true));
        }
        let made = match self.call("tile", &args)? {
            Value::List(parts) => parts,
            one => vec![one],
        };
        let mut parts = made.into_iter().map(handles);
        let mut next = || parts.next().unwrap_or_default();
        Ok(SeparatedTiles { tiles: next(), full: next(), partial: next() })
    }

    /// Fuses two loops that follow each other.
    pub fn fuse(&mut self, first: impl Into<Value>, second: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("fuse", &[Arg::from(first.into()), Arg::from(second.into())])
    }

    /// Fuses two loops that follow each other, with the second loop's iterations delayed by `shift`.
    pub fn fuse_shifted(
        &mut self,
        first: impl Into<Value>,
        second: impl Into<Value>,
        shift: i64,
    ) -> Result<Handle, Refusal> {
        self.one("fuse", &[Arg::from(first.into()), Arg::from(second.into()), Arg::named("shift", shift)])
    }

    /// Splits the body of a loop into two loops, at one of its statements (loop distribution).
    pub fn fission(&mut self, l: impl Into<Value>, at: Anchor) -> Result<(Handle, Handle), Refusal> {
        self.two("fission", &[Arg::from(l.into()), at.arg()])
    }

    /// Reorders statements of one block.
    pub fn swap(&mut self, order: Vec<Value>) -> Result<(), Refusal> {
        self.call("swap", &[Arg::from(Value::List(order))]).map(drop)
    }

    /// Moves a statement next to another one. Returns the moved statement.
    pub fn move_to(&mut self, stmt: impl Into<Value>, to: Anchor) -> Result<Handle, Refusal> {
        self.one("move_to", &[Arg::from(stmt.into()), to.arg()])
    }

    /// Reverses a loop.
    pub fn reverse(&mut self, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("reverse", &[Arg::from(l.into())])
    }

    /// Splits the range of a loop where the conditions inside change. Returns the parts, in order.
    pub fn separate_tail(&mut self, l: impl Into<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("separate_tail", &[Arg::from(l.into())]).map(handles)
    }

    /// Copies a statement for the case that a condition holds. Returns the copy, and the statement for all other cases.
    pub fn specialize(&mut self, stmt: impl Into<Value>, condition: &str) -> Result<(Handle, Handle), Refusal> {
        self.two("specialize", &[Arg::from(stmt.into()), Arg::from(condition)])
    }

    // ---- execution of loops

    /// Runs the iterations of a loop on several threads, in equal shares.
    pub fn parallelize(&mut self, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("parallelize", &[Arg::from(l.into())])
    }

    /// Runs the iterations of a loop on several threads, with a distribution, a chunk size and a minimum number of
    /// iterations.
    pub fn parallelize_by(&mut self, l: impl Into<Value>, by: Parallel) -> Result<Handle, Refusal> {
        let chunk = by.chunk.map(|c| Arg::named("chunk", i64::from(c)));
        let above = by.above.map(|n| Arg::named("above", i64::try_from(n).unwrap_or(i64::MAX)));
        let args = [Arg::from(l.into()), Arg::named("schedule", by.distribution.name())];
        self.one("parallelize", &args.into_iter().chain(chunk).chain(above).collect::<Vec<_>>())
    }

    /// Runs loops on several threads, each in equal shares, with one proof for all of them.
    pub fn parallelize_all(&mut self, loops: Vec<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("parallelize", &[Arg::from(Value::List(loops))]).map(handles)
    }

    /// Vectorises a loop, with as many lanes as fit the machine.
    pub fn vectorize(&mut self, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("vectorize", &[Arg::from(l.into())])
    }

    /// Vectorises loops, with one proof for all of them.
    pub fn vectorize_all(&mut self, loops: Vec<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("vectorize", &[Arg::from(Value::List(loops))]).map(handles)
    }

    /// Vectorises a loop with `width` lanes.
    pub fn vectorize_by(&mut self, l: impl Into<Value>, width: u32) -> Result<Handle, Refusal> {
        self.one("vectorize", &[Arg::from(l.into()), Arg::named("width", i64::from(width))])
    }

    /// Unrolls a loop, completely or by `factor`. Returns the copies of its body, or the outer loop.
    pub fn unroll(&mut self, l: impl Into<Value>, factor: Option<i64>) -> Result<Vec<Handle>, Refusal> {
        let factor = factor.map(|f| Arg::named("factor", f));
        let args: Vec<Arg> = [Arg::from(l.into())].into_iter().chain(factor).collect();
        self.call("unroll", &args).map(handles)
    }

    /// Unrolls a loop and interleaves the statements of its iterations (unroll and jam). Returns these statements.
    pub fn blend(&mut self, l: impl Into<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("blend", &[Arg::from(l.into())]).map(handles)
    }

    /// Replaces a nest that is a matrix product by a library call. Returns its outermost loop.
    pub fn as_lib(&mut self, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("as_lib", &[Arg::from(l.into())])
    }

    // ---- rules

    /// Applies all rules of automatic scheduling, for the machine and sizes of [`Schedule::aimed_at`].
    pub fn auto(&mut self) -> Result<(), Refusal> {
        self.call("auto", &[]).map(drop)
    }

    // ---- tensors

    /// Copies the part of a tensor that a statement uses into a small tensor. Returns the small tensor.
    pub fn cache(&mut self, stmt: impl Into<Value>, tensor: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("cache", &[Arg::from(stmt.into()), Arg::from(tensor.into())])
    }

    /// Caches as [`Schedule::cache`] does, with rows of the small tensor that begin at multiples of `pad` elements.
    pub fn cache_padded(
        &mut self,
        stmt: impl Into<Value>,
        tensor: impl Into<Value>,
        pad: i64,
    ) -> Result<Handle, Refusal> {
        self.one("cache", &[Arg::from(stmt.into()), Arg::from(tensor.into()), Arg::named("pad", pad)])
    }

    /// Reduces into a small tensor first, and from there into the given one. Returns the small tensor.
    pub fn cache_reduction(&mut self, stmt: impl Into<Value>, tensor: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("cache_reduction", &[Arg::from(stmt.into()), Arg::from(tensor.into())])
    }

    /// Caches as [`Schedule::cache_reduction`] does, with rows of the small tensor that begin at multiples of `pad`
    /// elements.
    pub fn cache_reduction_padded(
        &mut self,
        stmt: impl Into<Value>,
        tensor: impl Into<Value>,
        pad: i64,
    ) -> Result<Handle, Refusal> {
        self.one("cache_reduction", &[Arg::from(stmt.into()), Arg::from(tensor.into()), Arg::named("pad", pad)])
    }

    /// Gives every iteration of a loop its own copy of a tensor. Returns that copy.
    pub fn privatize(&mut self, tensor: impl Into<Value>, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("privatize", &[Arg::from(tensor.into()), Arg::from(l.into())])
    }

    /// Shrinks a local tensor to the elements that are live at the same time. Returns the tensor.
    pub fn contract(&mut self, tensor: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("contract", &[Arg::from(tensor.into())])
    }

    /// Replaces the reads of a local tensor by the expression stored in it.
    pub fn inline(&mut self, tensor: impl Into<Value>) -> Result<(), Refusal> {
        self.call("inline", &[Arg::from(tensor.into())]).map(drop)
    }

    /// Replaces the elements of small local arrays in loops by scalars.
    pub fn scalarize(&mut self) -> Result<(), Refusal> {
        self.call("scalarize", &[]).map(drop)
    }

    /// Sets the memory of a local tensor: `"register"`, `"stack"`, `"heap"` or `"arena"`.
    pub fn set_mem_type(&mut self, tensor: impl Into<Value>, memory: &str) -> Result<(), Refusal> {
        self.call("set_mem_type", &[Arg::from(tensor.into()), Arg::from(memory)]).map(drop)
    }

    /// Sets the storage format of a local tensor: `"bytemap"`, `"pattern(A)"` or `"dense"`.
    pub fn set_format(&mut self, tensor: impl Into<Value>, format: &str) -> Result<(), Refusal> {
        self.call("set_format", &[Arg::from(tensor.into()), Arg::from(format)]).map(drop)
    }

    /// Splits dimension `dim` of a local tensor in two; the inner one has `factor` elements.
    pub fn var_split(&mut self, tensor: impl Into<Value>, dim: i64, factor: i64) -> Result<(), Refusal> {
        self.call("var_split", &[Arg::from(tensor.into()), Arg::from(dim), Arg::from(factor)]).map(drop)
    }

    /// Merges dimensions `dim` and `dim + 1` of a local tensor.
    pub fn var_merge(&mut self, tensor: impl Into<Value>, dim: i64) -> Result<(), Refusal> {
        self.call("var_merge", &[Arg::from(tensor.into()), Arg::from(dim)]).map(drop)
    }

    /// Reorders the dimensions of a local tensor; `order` lists the old dimensions in their new order.
    pub fn var_reorder(&mut self, tensor: impl Into<Value>, order: Vec<i64>) -> Result<(), Refusal> {
        self.call("var_reorder", &[Arg::from(tensor.into()), Arg::from(Value::from(order))]).map(drop)
    }

    /// Removes a dimension of size 1 from a local tensor.
    pub fn var_squeeze(&mut self, tensor: impl Into<Value>, dim: i64) -> Result<(), Refusal> {
        self.call("var_squeeze", &[Arg::from(tensor.into()), Arg::from(dim)]).map(drop)
    }

    /// Adds a dimension of size 1 to a local tensor.
    pub fn var_unsqueeze(&mut self, tensor: impl Into<Value>, dim: i64) -> Result<(), Refusal> {
        self.call("var_unsqueeze", &[Arg::from(tensor.into()), Arg::from(dim)]).map(drop)
    }

    // ---- queries

    /// Returns the loops inside a statement, or all of them, outermost first.
    pub fn loops(&mut self, inside: Option<Value>) -> Result<Vec<Handle>, Refusal> {
        let args: Vec<Arg> = inside.into_iter().map(Arg::from).collect();
        self.call("loops", &args).map(handles)
    }

    /// Returns the innermost loop of a nest.
    pub fn innermost(&mut self, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("innermost", &[Arg::from(l.into())])
    }

    /// Returns the statements that store to a tensor or reduce into it, in textual order.
    pub fn writes(&mut self, tensor: impl Into<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("writes", &[Arg::from(tensor.into())]).map(handles)
    }

    /// Returns the innermost loop around a statement, if there is one.
    pub fn parent(&mut self, stmt: impl Into<Value>) -> Result<Option<Handle>, Refusal> {
        self.call("parent", &[Arg::from(stmt.into())]).map(|v| handles(v).pop())
    }

    /// Returns the trip count of a loop if it is a constant.
    pub fn length(&mut self, l: impl Into<Value>) -> Result<Option<i64>, Refusal> {
        match self.call("length", &[Arg::from(l.into())])? {
            Value::Int(n) => Ok(Some(n)),
            _ => Ok(None),
        }
    }
}
