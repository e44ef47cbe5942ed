//! Placement of local tensors in memory.
//!
//! **Does**: sets `memory` of every `VarDef` to one of
//!
//! - `Register`: scalars, as C variables;
//! - `Stack`: small arrays of constant size, within a total for the whole entry;
//! - `Arena`: arrays whose size depends on size parameters alone: one [`Slot`] in the arena of the caller's context, at
//!   an offset computed once per call. A schedule may also place an array there whose size varies with surrounding
//!   loops and has a bound in size parameters; its slot has room for the largest. Arrays alive at the same time follow
//!   each other, others share memory (the scopes of `VarDef`s nest, so this is a stack). Arrays in parallel loops are
//!   on a separate stack after the others, of which each thread has one. Small arrays that are never shared by threads
//!   are on a stack in front of the others: writing to memory last written by another thread costs a transfer of each
//!   cache line;
//! - `Heap`: arrays whose size depends on an iterator or on data, allocated at their declaration and freed at the end
//!   of their scope; so are arrays that are made for the caller, and given to it there. A declaration with an empty
//!   body, which is kept for the check of its sizes, allocates nothing.
//!
//! **Requires**: logical shapes. **Ensures**: ids and origins are kept; no array of run-time size is on the stack.
//!
//! ```text
//! def f(…):  s: f64          (Register)
//!            t: f32[n, m]    (Arena, slot 0 at offset 0)
//!              u: f32[m]     (Arena, slot 1 behind slot 0)
//!              v: f32[n]     (Arena, slot 2 behind slot 0 too: u is no longer alive)
//!              for i in range(n):  # parallel
//!                w: f32[m]   (Arena, slot 3 at offset 0 of the thread's part)
//!
//! def g(…):  t: f32[n, m]    (Arena, slot 0 at offset 32768, behind all that one thread alone has)
//!              u: f32[8192]  (Arena, slot 1 at offset 0)
//!              for i in range(n):  # parallel
//!                t[i, …] = …
//!              u[…] = …
//! ```
//!
//! **Leaves alone**: a placement chosen by a schedule, where the shape permits it.

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::query::effects;
use taffeta_analysis::query::upper_bound::{Range, of_sizes, room};
use taffeta_ast::stmt::{Memory, Role};
use taffeta_ast::{Expr, Extent, Func, Origin, Stmt, StmtKind, Symbol, Tensor};

/// A piece of the arena.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Tensor with its logical shape.
    pub tensor: Arc<Tensor>,
    /// Largest shape of the tensor, in terms of size parameters alone.
    pub room: Vec<Expr>,
    /// Preceding slot, if any.
    pub behind: Option<usize>,
    /// Offset in bytes from the start of the arena, or of the thread's part, if there is no preceding slot.
    pub start: i64,
    /// Whether each thread has a copy.
    pub of_thread: bool,
    /// Source location of the tensor's declaration.
    pub origin: Origin,
}

/// Maximum total bytes of the arrays placed apart from memory that threads share.
const APART_TOTAL_BYTES: i64 = 128 << 10;

/// Alignment of slots in bytes: a cache line.
const LINE_BYTES: i64 = 64;

pub(super) struct Placed {
    pub func: Func,
    pub slots: Vec<Slot>,
    /// Shapes of local tensors before flattening.
    pub shapes: FxHashMap<Symbol, Vec<Expr>>,
}

pub(super) fn run(func: &Func) -> Placed {
    let mut pass = Pass {
        sizes: func.sizes.clone(),
        slots: Vec::new(),
        shared: shared(&func.body),
        innermost: None,
        apart: UnsharedStack::default(),
        bottoms: Vec::new(),
        stack: 0,
        parallel: 0,
        around: Vec::new(),
        shapes: FxHashMap::default(),
    };
    let body = pass.stmt(&func.body);
    let mut slots = pass.slots;
    for k in pass.bottoms {
        slots[k].start = pass.apart.most;
    }
    Placed { func: func.with_body(body), slots, shapes: pass.shapes }
}

/// Returns the tensors that several threads access; `None` if no loop runs on several threads.
fn shared(body: &Stmt) -> Option<FxHashSet<Symbol>> {
    let mut found: Option<FxHashSet<Symbol>> = None;
    body.walk(&mut |s| {
        if matches!(s.kind(), StmtKind::For { props, .. } if props.parallel.is_some() || props.library) {
            let found = found.get_or_insert_default();
            found.extend(effects::writes(s));
            found.extend(effects::reads_by_others(s));
        }
    });
    found
}

/// Stack of the arrays that threads never share.
#[derive(Default)]
struct UnsharedStack {
    /// Slot of the innermost such array around the current position.
    innermost: Option<usize>,
    /// Bytes of such arrays around the current position.
    bytes: i64,
    /// Maximum of `bytes` so far.
    most: i64,
}

struct Pass {
    sizes: Vec<Symbol>,
    slots: Vec<Slot>,
    /// Tensors that several threads access; `None` if there is one thread only.
    shared: Option<FxHashSet<Symbol>>,
    /// Slot of the innermost arena tensor around the current position.
    innermost: Option<usize>,
    apart: UnsharedStack,
    /// Slots that directly follow the stack of unshared arrays.
    bottoms: Vec<usize>,
    /// Bytes of stack arrays around the current position.
    stack: i64,
    /// Number of parallel loops around the current position.
    parallel: usize,
    /// Surrounding loops with positive steps.
    around: Vec<Range>,
    shapes: FxHashMap<Symbol, Vec<Expr>>,
}

impl Pass {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::VarDef { tensor, body } => {
                let memory = self.choose(tensor, body.is_nop());
                let tensor = Arc::new(Tensor { memory, ..(**tensor).clone() });
                self.shapes.insert(tensor.symbol.clone(), tensor.shape.clone());
                let around = (self.innermost, self.stack, self.apart.innermost, self.apart.bytes);
                match memory {
                    Memory::Stack => self.stack += tensor.constant_bytes().unwrap_or(0),
                    Memory::Arena => self.slot(&tensor, s.origin()),
                    Memory::Auto | Memory::Register | Memory::Heap => {}
                }
                let body = self.stmt(body);
                (self.innermost, self.stack, self.apart.innermost, self.apart.bytes) = around;
                s.with_kind(StmtKind::VarDef { tensor, body })
            }
            StmtKind::For { iter, extent, props, .. } => {
                let depth = self.around.len();
                if let Extent::Range { begin, end, step } = extent
                    && step.as_int().is_some_and(|s| s > 0)
                {
                    self.around.push(Range { iter: iter.clone(), begin: begin.clone(), end: end.clone() });
                }
                if props.parallel.is_none() {
                    let out = s.map(&mut |inner| self.stmt(inner), &mut Expr::clone);
                    self.around.truncate(depth);
                    return out;
                }
                // Parallel loops do not nest.
                let innermost = self.innermost.take();
                self.parallel += 1;
                let out = s.map(&mut |inner| self.stmt(inner), &mut Expr::clone);
                self.parallel -= 1;
                self.innermost = innermost;
                self.around.truncate(depth);
                out
            }
            _ => s.map(&mut |inner| self.stmt(inner), &mut Expr::clone),
        }
    }

    /// Adds a slot to the arena.
    fn slot(&mut self, tensor: &Arc<Tensor>, origin: &Origin) {
        let of_thread = self.parallel > 0;
        let room = self.room(tensor).unwrap_or_else(|| tensor.shape.clone());
        let mut slot =
            Slot { tensor: tensor.clone(), room, behind: self.innermost, start: 0, of_thread, origin: origin.clone() };
        let new = self.slots.len();
        if let Some(bytes) = self.bytes_apart(tensor) {
            slot.behind = self.apart.innermost.replace(new);
            self.apart.bytes += bytes;
            self.apart.most = self.apart.most.max(self.apart.bytes);
        } else {
            if slot.behind.is_none() && !of_thread {
                self.bottoms.push(new);
            }
            self.innermost = Some(new);
        }
        self.slots.push(slot);
    }

    /// Returns the bytes of a tensor that is placed apart from shared memory; `None` for other tensors.
    fn bytes_apart(&self, tensor: &Tensor) -> Option<i64> {
        let is_alone = self.shared.as_ref().is_some_and(|shared| !shared.contains(&tensor.symbol));
        let bytes = tensor.constant_bytes().filter(|b| *b <= APART_TOTAL_BYTES)?;
        let bytes = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
        (is_alone && self.apart.bytes + bytes <= APART_TOTAL_BYTES).then_some(bytes)
    }

    fn choose(&self, t: &Tensor, is_unused: bool) -> Memory {
        if t.ndim() == 0 {
            return Memory::Register;
        }
        if is_unused || t.role == Role::Result {
            return Memory::Heap;
        }
        let fits = t
            .constant_bytes()
            .is_some_and(|b| b <= Memory::STACK_ARRAY_BYTES && self.stack + b <= Memory::STACK_TOTAL_BYTES);
        let by_sizes = t.shape.iter().all(|e| of_sizes(e, &self.sizes));
        match t.memory {
            Memory::Heap => Memory::Heap,
            Memory::Arena if by_sizes || self.room(t).is_some() => Memory::Arena,
            _ if fits => Memory::Stack,
            _ if by_sizes => Memory::Arena,
            _ => Memory::Heap,
        }
    }

    /// Bounds the shape of a tensor in terms of size parameters, if possible. The bound is evaluated before the body
    /// runs, so it must not fail either, as a division could.
    fn room(&self, t: &Tensor) -> Option<Vec<Expr>> {
        t.shape.iter().map(|e| room(e, &self.around, &self.sizes)).collect()
    }
}
