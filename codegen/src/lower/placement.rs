//! Where local tensors live.
//!
//! *does*: sets `memory` of every `VarDef` to one of
//!
//! - `Register`: scalars, as C variables;
//! - `Stack`: arrays whose size is a constant, small, and within a total for the whole entry;
//! - `Arena`: arrays whose size depends on size parameters alone: one [`Slot`] of the arena in the caller's context, at
//!   an offset computed once per call. So are those that a schedule has put there whose size changes with loops around
//!   and has a bound in size parameters; the slot has room for the largest. What is alive at the
//!   same time lies one after the other, and what is not shares memory (the scopes of `VarDef`s nest, so this is a
//!   stack). Those in parallel loops are a stack of their own, of which each thread has one, behind the others;
//! - `Heap`: arrays whose size depends on an iterator or on data. They are allocated where they are declared and freed
//!   where their scope ends. An empty declaration, which is left for the sake of its sizes alone, allocates nothing.
//!
//! *requires*: logical shapes. *ensures*: ids and origins are kept; no array of run-time size is on the stack.
//!
//! ```text
//! def f(…):  s: f64          (Register)
//!            t: f32[n, m]    (Arena, slot 0 at offset 0)
//!              u: f32[m]     (Arena, slot 1 behind slot 0)
//!              v: f32[n]     (Arena, slot 2 behind slot 0 too: u is no longer alive)
//!              for i in range(n):  # parallel
//!                w: f32[m]   (Arena, slot 3 at offset 0 of the thread's part)
//! ```
//!
//! *leaves alone*: a place that a schedule has chosen, where the shape allows it.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_analysis::query::greatest::{Range, of_sizes, room};
use taffeta_ast::stmt::Memory;
use taffeta_ast::{Expr, Extent, Func, Stmt, StmtKind, Symbol, Tensor};

/// A piece of the arena.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The tensor with its logical shape.
    pub tensor: Arc<Tensor>,
    /// The largest shape that it has; sizes alone occur in it.
    pub room: Vec<Expr>,
    /// The slot that it lies behind; `None` at the start of the arena.
    pub behind: Option<usize>,
    /// Whether each thread has one.
    pub of_thread: bool,
}

pub(super) struct Placed {
    pub func: Func,
    pub slots: Vec<Slot>,
    /// Shapes of local tensors, before they are flattened.
    pub shapes: FxHashMap<Symbol, Vec<Expr>>,
}

pub(super) fn run(func: &Func) -> Placed {
    let mut pass = Pass {
        sizes: func.sizes.clone(),
        slots: Vec::new(),
        innermost: None,
        stack: 0,
        parallel: 0,
        around: Vec::new(),
        shapes: FxHashMap::default(),
    };
    let body = pass.stmt(&func.body);
    Placed { func: func.with_body(body), slots: pass.slots, shapes: pass.shapes }
}

struct Pass {
    sizes: Vec<Symbol>,
    slots: Vec<Slot>,
    /// The slot of the innermost arena tensor around the present place.
    innermost: Option<usize>,
    /// Bytes of stack arrays around the present place.
    stack: i64,
    /// Number of parallel loops around the present place.
    parallel: usize,
    /// The loops around the present place, as far as their iterators grow.
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
                let (innermost, stack) = (self.innermost, self.stack);
                match memory {
                    Memory::Stack => self.stack += tensor.constant_bytes().unwrap_or(0),
                    Memory::Arena => {
                        let of_thread = self.parallel > 0;
                        let room = self.room(&tensor).unwrap_or_else(|| tensor.shape.clone());
                        self.slots.push(Slot { tensor: tensor.clone(), room, behind: innermost, of_thread });
                        self.innermost = Some(self.slots.len() - 1);
                    }
                    Memory::Auto | Memory::Register | Memory::Heap => {}
                }
                let body = self.stmt(body);
                (self.innermost, self.stack) = (innermost, stack);
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
                // (Parallel loops do not nest.)
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

    fn choose(&self, t: &Tensor, is_unused: bool) -> Memory {
        if t.ndim() == 0 {
            return Memory::Register;
        }
        if is_unused {
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

    /// The largest shape that a tensor has here, if sizes alone say it. Computed before the body runs, so it must not
    /// be able to fail either: a division could.
    fn room(&self, t: &Tensor) -> Option<Vec<Expr>> {
        t.shape.iter().map(|e| room(e, &self.around, &self.sizes)).collect()
    }
}
