//! The primitives as Rust methods. Each is the call of that name ([`Schedule::call`]), so what is taken is recorded and
//! proved the same way; targets are selectors (`"i"`, `"i/j"`, labels) or handles from earlier steps.
//!
//! Every method gives a [`Refusal`] where the step is not legal, and then the program is what it was.

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

/// The loops of a nest that was cut into tiles, with full tiles apart from partial ones.
#[derive(Clone, Debug, PartialEq)]
pub struct SeparatedTiles {
    /// The loops of tiles, outermost first.
    pub tiles: Vec<Handle>,
    /// The loops inside of full tiles, in the order of the text.
    pub full: Vec<Handle>,
    /// The loops inside of partial tiles, in the order of the text.
    pub partial: Vec<Handle>,
}

/// Where a statement is, relative to another one.
#[derive(Clone, Debug, PartialEq)]
pub enum Anchor {
    /// Before it.
    Before(Value),
    /// After it.
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

    // ---- loops

    /// Splits a loop into two nested ones: the outer and the inner one.
    pub fn split(&mut self, l: impl Into<Value>, by: SplitBy) -> Result<(Handle, Handle), Refusal> {
        self.split_shifted(l, by, 0)
    }

    /// Splits a loop into two nested ones, with the tiles moved to the right: the first one holds `shift` iterations
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

    /// Makes one loop of two nested ones.
    pub fn merge(&mut self, outer: impl Into<Value>, inner: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("merge", &[Arg::from(outer.into()), Arg::from(inner.into())])
    }

    /// Changes the order of nested loops, given from the outside in.
    pub fn reorder(&mut self, loops: Vec<Value>) -> Result<(), Refusal> {
        self.call("reorder", &[Arg::from(Value::List(loops))]).map(drop)
    }

    /// New iterators from old ones: skewing, interchange, reversal. Gives the loops, from the outside in.
    pub fn permute(&mut self, loops: Vec<Value>, map: IndexMap) -> Result<Vec<Handle>, Refusal> {
        self.call("permute", &[Arg::from(Value::List(loops)), Arg::from(Value::Map(map))]).map(handles)
    }

    /// Reorders all loops of a region, so that they can be tiled and run in parallel. Gives the loops that can be
    /// tiled, from the outside in, of one nest after the other.
    pub fn polyhedral(&mut self, region: impl Into<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("polyhedral", &[Arg::from(region.into())]).map(handles)
    }

    /// Cuts a nest of loops into tiles. Gives the loops of tiles, then those inside of them.
    pub fn tile(&mut self, loops: Vec<Value>, sizes: &[i64]) -> Result<Vec<Handle>, Refusal> {
        self.call("tile", &[Arg::from(Value::List(loops)), Arg::from(sizes.to_vec())]).map(handles)
    }

    /// Cuts a nest of loops into tiles, which run by fronts: all tiles of the second loop of one iteration of the first
    /// one may run at the same time, where no dependence goes back.
    pub fn tile_by_fronts(&mut self, loops: Vec<Value>, sizes: &[i64]) -> Result<Vec<Handle>, Refusal> {
        let sizes = Arg::from(sizes.to_vec());
        self.call("tile", &[Arg::from(Value::List(loops)), sizes, Arg::named("wavefront", true)]).map(handles)
    }

    /// Cuts a nest of loops into tiles with two versions of what is inside: one for full tiles, whose loops have the
    /// bounds of the tile and nothing else, and one for partial ones.
    pub fn tile_separated(&mut self, loops: Vec<Value>, sizes: &[i64]) -> Result<SeparatedTiles, Refusal> {
        self.separated(loops, sizes, false)
    }

    /// Like [`Schedule::tile_separated`], with tiles that run by fronts, as in [`Schedule::tile_by_fronts`].
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

    /// Makes one loop of two that follow each other.
    pub fn fuse(&mut self, first: impl Into<Value>, second: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("fuse", &[Arg::from(first.into()), Arg::from(second.into())])
    }

    /// Makes one loop of two that follow each other, with the second one's iterations `shift` iterations later.
    pub fn fuse_shifted(
        &mut self,
        first: impl Into<Value>,
        second: impl Into<Value>,
        shift: i64,
    ) -> Result<Handle, Refusal> {
        self.one("fuse", &[Arg::from(first.into()), Arg::from(second.into()), Arg::named("shift", shift)])
    }

    /// Makes two loops of one, cut at a statement of its body.
    pub fn fission(&mut self, l: impl Into<Value>, at: Anchor) -> Result<(Handle, Handle), Refusal> {
        self.two("fission", &[Arg::from(l.into()), at.arg()])
    }

    /// Changes the order of statements of one block.
    pub fn swap(&mut self, order: Vec<Value>) -> Result<(), Refusal> {
        self.call("swap", &[Arg::from(Value::List(order))]).map(drop)
    }

    /// Moves a statement next to another one. Gives what was moved.
    pub fn move_to(&mut self, stmt: impl Into<Value>, to: Anchor) -> Result<Handle, Refusal> {
        self.one("move_to", &[Arg::from(stmt.into()), to.arg()])
    }

    /// Runs a loop backwards.
    pub fn reverse(&mut self, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("reverse", &[Arg::from(l.into())])
    }

    /// Cuts a loop where the conditions in it change. Gives the parts, in order.
    pub fn separate_tail(&mut self, l: impl Into<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("separate_tail", &[Arg::from(l.into())]).map(handles)
    }

    /// Makes a copy of a statement for the case that a condition holds: the copy, and the statement for all other
    /// cases.
    pub fn specialize(&mut self, stmt: impl Into<Value>, condition: &str) -> Result<(Handle, Handle), Refusal> {
        self.two("specialize", &[Arg::from(stmt.into()), Arg::from(condition)])
    }

    // ---- how loops run

    /// Runs the iterations of a loop on several threads, in equal shares.
    pub fn parallelize(&mut self, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("parallelize", &[Arg::from(l.into())])
    }

    /// Runs the iterations of a loop on several threads: who gets which, how many at once, and from how many on.
    pub fn parallelize_by(&mut self, l: impl Into<Value>, by: Parallel) -> Result<Handle, Refusal> {
        let chunk = by.chunk.map(|c| Arg::named("chunk", i64::from(c)));
        let above = by.above.map(|n| Arg::named("above", i64::try_from(n).unwrap_or(i64::MAX)));
        let args = [Arg::from(l.into()), Arg::named("schedule", by.distribution.name())];
        self.one("parallelize", &args.into_iter().chain(chunk).chain(above).collect::<Vec<_>>())
    }

    /// Runs loops on several threads, each in equal shares: one proof for all of them.
    pub fn parallelize_all(&mut self, loops: Vec<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("parallelize", &[Arg::from(Value::List(loops))]).map(handles)
    }

    /// Runs a loop by vector instructions, as many iterations at once as fit the machine.
    pub fn vectorize(&mut self, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("vectorize", &[Arg::from(l.into())])
    }

    /// Runs loops by vector instructions: one proof for all of them.
    pub fn vectorize_all(&mut self, loops: Vec<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("vectorize", &[Arg::from(Value::List(loops))]).map(handles)
    }

    /// Runs a loop by vector instructions, `width` iterations at once.
    pub fn vectorize_by(&mut self, l: impl Into<Value>, width: u32) -> Result<Handle, Refusal> {
        self.one("vectorize", &[Arg::from(l.into()), Arg::named("width", i64::from(width))])
    }

    /// Makes copies of a loop's body: all of them, or `factor` ones in each iteration. Gives the statements that it
    /// became, or the outer loop.
    pub fn unroll(&mut self, l: impl Into<Value>, factor: Option<i64>) -> Result<Vec<Handle>, Refusal> {
        let factor = factor.map(|f| Arg::named("factor", f));
        let args: Vec<Arg> = [Arg::from(l.into())].into_iter().chain(factor).collect();
        self.call("unroll", &args).map(handles)
    }

    /// Unrolls a loop and interleaves the statements of its iterations. Gives these.
    pub fn blend(&mut self, l: impl Into<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("blend", &[Arg::from(l.into())]).map(handles)
    }

    /// Has a library do a nest that is a matrix product. Gives its outermost loop.
    pub fn as_lib(&mut self, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("as_lib", &[Arg::from(l.into())])
    }

    // ---- rules

    /// Applies all rules of automatic scheduling, for the machine and sizes of [`Schedule::aimed_at`].
    pub fn auto(&mut self) -> Result<(), Refusal> {
        self.call("auto", &[]).map(drop)
    }

    /// Has a library do large matrix products, where that is estimated to pay.
    pub fn auto_use_lib(&mut self) -> Result<(), Refusal> {
        self.call("auto_use_lib", &[]).map(drop)
    }

    /// Computes cheap intermediates where they are read, where that is estimated to pay.
    pub fn auto_inline(&mut self) -> Result<(), Refusal> {
        self.call("auto_inline", &[]).map(drop)
    }

    /// Orders loops over structured tensors as these store their levels.
    pub fn auto_storage(&mut self) -> Result<(), Refusal> {
        self.call("auto_storage", &[]).map(drop)
    }

    /// Has a few iterations go through overlapping windows together, where that is estimated to pay.
    pub fn auto_window(&mut self) -> Result<(), Refusal> {
        self.call("auto_window", &[]).map(drop)
    }

    /// Jams loops of a few iterations into the loops inside of them, where that is estimated to pay.
    pub fn auto_blend(&mut self) -> Result<(), Refusal> {
        self.call("auto_blend", &[]).map(drop)
    }

    /// Makes one loop of several that use the same tensors, where that is estimated to pay.
    pub fn auto_fuse(&mut self) -> Result<(), Refusal> {
        self.call("auto_fuse", &[]).map(drop)
    }

    /// Parts what threads cannot share out from what they can, where that is estimated to pay.
    pub fn auto_fission(&mut self) -> Result<(), Refusal> {
        self.call("auto_fission", &[]).map(drop)
    }

    /// Skews and tiles nests in which every loop carries a dependence, for threads, where that is estimated to pay.
    pub fn auto_polyhedral(&mut self) -> Result<(), Refusal> {
        self.call("auto_polyhedral", &[]).map(drop)
    }

    /// Goes through transposed tensors in blocks, where that is estimated to pay.
    pub fn auto_transpose(&mut self) -> Result<(), Refusal> {
        self.call("auto_transpose", &[]).map(drop)
    }

    /// Sums blocks of contractions in registers, where that is estimated to pay.
    pub fn auto_tile(&mut self) -> Result<(), Refusal> {
        self.call("auto_tile", &[]).map(drop)
    }

    /// Keeps what loops add up in registers, where that is estimated to pay.
    pub fn auto_accumulate(&mut self) -> Result<(), Refusal> {
        self.call("auto_accumulate", &[]).map(drop)
    }

    /// Gives threads columns of their own in loops that scatter rows, where that is estimated to pay.
    pub fn auto_scatter(&mut self) -> Result<(), Refusal> {
        self.call("auto_scatter", &[]).map(drop)
    }

    /// Replaces innermost loops of a few iterations by copies of their bodies, where that is estimated to pay.
    pub fn auto_unroll(&mut self) -> Result<(), Refusal> {
        self.call("auto_unroll", &[]).map(drop)
    }

    /// Orders nested loops so that what lies side by side is accessed one after the other, where that is estimated to
    /// pay.
    pub fn auto_reorder(&mut self) -> Result<(), Refusal> {
        self.call("auto_reorder", &[]).map(drop)
    }

    /// Runs innermost loops by vector instructions, where that is estimated to pay.
    pub fn auto_vectorize(&mut self) -> Result<(), Refusal> {
        self.call("auto_vectorize", &[]).map(drop)
    }

    /// Runs outer loops on several threads, where that is estimated to pay.
    pub fn auto_parallelize(&mut self) -> Result<(), Refusal> {
        self.call("auto_parallelize", &[]).map(drop)
    }

    /// Keeps scratch arrays of changing size in memory that is laid out once, where that is estimated to pay.
    pub fn auto_mem_type(&mut self) -> Result<(), Refusal> {
        self.call("auto_mem_type", &[]).map(drop)
    }

    // ---- tensors

    /// Copies the part of a tensor that a statement uses into a small one, which it gives.
    pub fn cache(&mut self, stmt: impl Into<Value>, tensor: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("cache", &[Arg::from(stmt.into()), Arg::from(tensor.into())])
    }

    /// Like [`Schedule::cache`], with rows of the small tensor that begin at multiples of `pad` elements.
    pub fn cache_padded(
        &mut self,
        stmt: impl Into<Value>,
        tensor: impl Into<Value>,
        pad: i64,
    ) -> Result<Handle, Refusal> {
        self.one("cache", &[Arg::from(stmt.into()), Arg::from(tensor.into()), Arg::named("pad", pad)])
    }

    /// Reduces into a small tensor first, then from there into the one that is meant. Gives the small one.
    pub fn cache_reduction(&mut self, stmt: impl Into<Value>, tensor: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("cache_reduction", &[Arg::from(stmt.into()), Arg::from(tensor.into())])
    }

    /// Like [`Schedule::cache_reduction`], with rows of the small tensor that begin at multiples of `pad` elements.
    pub fn cache_reduction_padded(
        &mut self,
        stmt: impl Into<Value>,
        tensor: impl Into<Value>,
        pad: i64,
    ) -> Result<Handle, Refusal> {
        self.one("cache_reduction", &[Arg::from(stmt.into()), Arg::from(tensor.into()), Arg::named("pad", pad)])
    }

    /// Gives every iteration of a loop a tensor of its own, which it gives.
    pub fn privatize(&mut self, tensor: impl Into<Value>, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("privatize", &[Arg::from(tensor.into()), Arg::from(l.into())])
    }

    /// Keeps of a local tensor what is alive at a time. Gives the tensor.
    pub fn contract(&mut self, tensor: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("contract", &[Arg::from(tensor.into())])
    }

    /// Puts the expression that a local is filled with where it is read.
    pub fn inline(&mut self, tensor: impl Into<Value>) -> Result<(), Refusal> {
        self.call("inline", &[Arg::from(tensor.into())]).map(drop)
    }

    /// Makes scalars of the elements of small local arrays in loops.
    pub fn scalarize(&mut self) -> Result<(), Refusal> {
        self.call("scalarize", &[]).map(drop)
    }

    /// Where a local is kept: `"register"`, `"stack"`, `"heap"` or `"arena"`.
    pub fn set_mem_type(&mut self, tensor: impl Into<Value>, memory: &str) -> Result<(), Refusal> {
        self.call("set_mem_type", &[Arg::from(tensor.into()), Arg::from(memory)]).map(drop)
    }

    /// How a local is stored: `"bytemap"`, `"pattern(A)"` or `"dense"`.
    pub fn set_format(&mut self, tensor: impl Into<Value>, format: &str) -> Result<(), Refusal> {
        self.call("set_format", &[Arg::from(tensor.into()), Arg::from(format)]).map(drop)
    }

    /// Makes two dimensions of a local's dimension `dim`: the inner one has `factor` elements.
    pub fn var_split(&mut self, tensor: impl Into<Value>, dim: i64, factor: i64) -> Result<(), Refusal> {
        self.call("var_split", &[Arg::from(tensor.into()), Arg::from(dim), Arg::from(factor)]).map(drop)
    }

    /// Makes one dimension of a local's dimensions `dim` and `dim + 1`.
    pub fn var_merge(&mut self, tensor: impl Into<Value>, dim: i64) -> Result<(), Refusal> {
        self.call("var_merge", &[Arg::from(tensor.into()), Arg::from(dim)]).map(drop)
    }

    /// Changes the order of a local's dimensions: `order` has the old dimensions in their new order.
    pub fn var_reorder(&mut self, tensor: impl Into<Value>, order: Vec<i64>) -> Result<(), Refusal> {
        self.call("var_reorder", &[Arg::from(tensor.into()), Arg::from(Value::from(order))]).map(drop)
    }

    /// Takes a dimension of one element out of a local.
    pub fn var_squeeze(&mut self, tensor: impl Into<Value>, dim: i64) -> Result<(), Refusal> {
        self.call("var_squeeze", &[Arg::from(tensor.into()), Arg::from(dim)]).map(drop)
    }

    /// Gives a local a dimension of one element.
    pub fn var_unsqueeze(&mut self, tensor: impl Into<Value>, dim: i64) -> Result<(), Refusal> {
        self.call("var_unsqueeze", &[Arg::from(tensor.into()), Arg::from(dim)]).map(drop)
    }

    // ---- questions

    /// The loops inside a statement, or all of them, outermost first.
    pub fn loops(&mut self, inside: Option<Value>) -> Result<Vec<Handle>, Refusal> {
        let args: Vec<Arg> = inside.into_iter().map(Arg::from).collect();
        self.call("loops", &args).map(handles)
    }

    /// The innermost loop of a nest.
    pub fn innermost(&mut self, l: impl Into<Value>) -> Result<Handle, Refusal> {
        self.one("innermost", &[Arg::from(l.into())])
    }

    /// The statements that store to a tensor or reduce into it, in the order of the text.
    pub fn writes(&mut self, tensor: impl Into<Value>) -> Result<Vec<Handle>, Refusal> {
        self.call("writes", &[Arg::from(tensor.into())]).map(handles)
    }

    /// The loop around a statement, if there is one.
    pub fn parent(&mut self, stmt: impl Into<Value>) -> Result<Option<Handle>, Refusal> {
        self.call("parent", &[Arg::from(stmt.into())]).map(|v| handles(v).pop())
    }

    /// The number of iterations, where it is a constant.
    pub fn length(&mut self, l: impl Into<Value>) -> Result<Option<i64>, Refusal> {
        match self.call("length", &[Arg::from(l.into())])? {
            Value::Int(n) => Ok(Some(n)),
            _ => Ok(None),
        }
    }
}
