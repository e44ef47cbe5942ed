//! Small local arrays that are held in vector registers.
//!
//! *does*: finds arrays on the stack whose every access is a whole number of vectors, in loops over lanes of a known length; writes the
//! loops out that their other indices need; and says which loops and arrays the emitter prints as vectors. Compilers hold such an array
//! in registers only if each of a dozen passes of theirs does the right thing; vectors that are variables stay there.
//!
//! *requires*: flat indices and places. *ensures*: the program computes the same, in the same order in each lane.
//!
//! ```text
//! acc: f32[32] on the stack                        acc: two vectors of 16 lanes
//! for r in range(2):                               for j in range(16): acc[j] = 0.0         # acc_0 = 0
//!     for j in range(16):                          for j in range(16): acc[16 + j] = 0.0    # acc_1 = 0
//!         acc[r * 16 + j] = 0.0              ─▶
//! for k in range(n):                               for k in range(n):
//!     for j in range(16):                              for j in range(16): …                # acc_0 += a[k] * b[k * 16 …]
//!         acc[j] += a[k] * b[k * 16 + j]
//! ```
//!
//! Vectorised loops that only add products and the like to scalars are found too: their sums are vectors of partial sums, which
//! OpenMP's reductions would combine one lane after the other.
//!
//! *leaves alone*: arrays that something else touches, element types that vectors do not have, and what would be longer than
//! [`MOST_VECTORS`] registers or [`MOST_STATEMENTS`] statements.

use rustc_hash::{FxHashMap, FxHashSet};
use weft_analysis::query::growth::constant_growth;
use weft_ast::expr::Access;
use weft_ast::stmt::{LoopProps, Memory};
use weft_ast::{DType, Expr, ExprKind, Extent, Func, Op, ReduceOp, Sharing, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// The vectors of one array: as many as the largest machines have registers.
const MOST_VECTORS: i64 = 32;
/// The vector statements that an array may be written out to.
const MOST_STATEMENTS: usize = 1024;

/// What is printed as vectors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vectors {
    /// The bytes of a vector.
    pub bytes: usize,
    /// The arrays in registers.
    pub arrays: FxHashSet<Symbol>,
    /// The loops over lanes.
    pub loops: FxHashSet<StmtId>,
    /// The loops that add up.
    pub sums: FxHashSet<StmtId>,
}

/// The bytes of a vector register of the machine that this runs on; what is compiled for any machine takes the least.
pub fn vector_bytes(portable: bool) -> usize {
    #[cfg(target_arch = "x86_64")]
    if !portable {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return 64;
        }
        if std::arch::is_x86_feature_detected!("avx") {
            return 32;
        }
    }
    let _ = portable;
    16
}

pub(super) fn run(func: &Func, bytes: usize) -> (Func, Vectors) {
    let mut pass = Pass { found: Vectors { bytes, ..Vectors::default() }, atomic: FxHashSet::default() };
    let body = pass.stmt(&func.body);
    (func.with_body(body), pass.found)
}

struct Pass {
    found: Vectors,
    /// What threads of loops around update one element at a time.
    atomic: FxHashSet<Symbol>,
}

impl Pass {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        if let StmtKind::VarDef { tensor, body } = s.kind()
            && let Some((body, loops)) = self.held(tensor, body)
        {
            self.found.arrays.insert(tensor.symbol.clone());
            self.found.loops.extend(loops);
            let body = self.stmt(&body);
            return s.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body });
        }
        if let StmtKind::For { props, .. } = s.kind() {
            let shared = props.reductions.iter().filter(|r| r.sharing == Sharing::Atomic);
            self.atomic.extend(shared.map(|r| r.tensor.clone()));
            if self.adds_up(s) {
                self.found.sums.insert(s.id());
            }
        }
        s.map(&mut |inner| self.stmt(inner), &mut Expr::clone)
    }

    /// Whether a vectorised loop adds values, which lanes can compute, to scalars, and does nothing else.
    fn adds_up(&self, s: &Stmt) -> bool {
        let StmtKind::For { iter, extent: Extent::Range { step, .. }, props, body } = s.kind() else { return false };
        let width = props.vectorize.is_some_and(|v| v.width.is_none());
        if !width || props.parallel.is_some() || step.as_int() != Some(1) {
            return false;
        }
        let parts: Vec<&Stmt> = match body.kind() {
            StmtKind::Seq(v) => v.iter().collect(),
            _ => vec![body],
        };
        let stored = parts.iter().flat_map(|s| weft_analysis::query::effects::writes(s)).collect();
        let lanes = Lanes { iter, begin: 0, vectors: 0, stored };
        parts.len() <= 4
            && parts.iter().all(|part| {
                let StmtKind::ReduceTo { tensor, indices, op: ReduceOp::Add, value } = part.kind() else {
                    return false;
                };
                let dtype = value.dtype();
                let loops = Vec::new();
                let check = Check { array: None, dtype, lanes: 1, atomic: &self.atomic, loops, statements: 0 };
                indices.is_empty()
                    && matches!(dtype, DType::F32 | DType::F64)
                    && props.sharing(tensor, ReduceOp::Add) == Some(Sharing::Partial)
                    && !self.atomic.contains(tensor)
                    && check.value(value, &lanes, dtype)
            })
    }

    /// The scope of an array with the loops written out that it needs, and the loops over its lanes.
    fn held(&self, tensor: &Tensor, scope: &Stmt) -> Option<(Stmt, Vec<StmtId>)> {
        if tensor.memory != Memory::Stack || !matches!(tensor.dtype, DType::F32 | DType::F64) {
            return None;
        }
        let count = tensor.shape.first()?.as_int()?;
        let lanes = (self.found.bytes / tensor.dtype.size()) as i64;
        if count == 0 || count % lanes != 0 || count / lanes > MOST_VECTORS {
            return None;
        }
        let array = &tensor.symbol;
        // Loops of which a copy is needed for every value of their iterator.
        let mut unrolled = FxHashSet::default();
        Self::other_iterators(array, scope, None, &mut unrolled)?;
        let scope = if unrolled.is_empty() { scope.clone() } else { write_out(scope, &unrolled)? };
        let (dtype, atomic) = (tensor.dtype, &self.atomic);
        let mut check = Check { array: Some(array), dtype, lanes, atomic, loops: Vec::new(), statements: 0 };
        check.stmt(&scope)?;
        (check.statements <= MOST_STATEMENTS).then_some((scope, check.loops))
    }

    /// The iterators, other than that of the innermost loop, in the array's indices. `None` where it cannot be held.
    fn other_iterators(
        array: &Symbol,
        s: &Stmt,
        innermost: Option<&Symbol>,
        out: &mut FxHashSet<Symbol>,
    ) -> Option<()> {
        let innermost = match s.kind() {
            StmtKind::For { iter, .. } => Some(iter),
            _ => innermost,
        };
        let mut ok = true;
        let mut index = |indices: &[Access]| {
            for a in indices {
                a.index.walk(&mut |e| match e.kind() {
                    ExprKind::Var(v) if Some(v) != innermost => drop(out.insert(v.clone())),
                    ExprKind::Load(..) => ok = false,
                    _ => {}
                });
            }
        };
        if let StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } = s.kind()
            && tensor == array
        {
            index(indices);
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(t, indices) = e.kind()
                    && t == array
                {
                    index(indices);
                }
            });
        }
        if !ok {
            return None;
        }
        s.kind().children().into_iter().try_for_each(|c| Self::other_iterators(array, c, innermost, out))
    }
}

// ---- writing out

/// The statement with these loops written out, an element of the list for every iteration. `None` where that is not possible.
fn write_out(s: &Stmt, iters: &FxHashSet<Symbol>) -> Option<Stmt> {
    if let StmtKind::For { iter, extent, props, body } = s.kind()
        && iters.contains(iter)
    {
        let body = write_out(body, iters)?;
        let (begin, length) = constant(extent)?;
        let mut statements = 0;
        body.walk(&mut |_| statements += 1);
        if props.is_concurrent() || length > 64 || statements * length as usize > 4 * MOST_STATEMENTS {
            return None;
        }
        let copies: Option<Vec<Stmt>> = (begin..begin + length)
            .map(|k| copy(&body, &[(iter.clone(), Expr::int(k))].into_iter().collect()))
            .collect();
        return Some(Stmt::seq(copies?, s.origin().derive("vectors", "copy")));
    }
    let mut ok = true;
    let new = s.map(
        &mut |inner| {
            write_out(inner, iters).unwrap_or_else(|| {
                ok = false;
                inner.clone()
            })
        },
        &mut Expr::clone,
    );
    ok.then_some(new)
}

/// First value and length of a loop with constant bounds and the step 1.
fn constant(extent: &Extent) -> Option<(i64, i64)> {
    let Extent::Range { begin, end, step } = extent else { return None };
    let (begin, end) = (begin.as_int()?, end.as_int()?);
    (step.as_int() == Some(1)).then(|| (begin, end.saturating_sub(begin).max(0)))
}

/// A copy with names and ids of its own. Declarations are not copied: there are none in the loops that are written out.
fn copy(s: &Stmt, names: &FxHashMap<Symbol, Expr>) -> Option<Stmt> {
    let mut names = names.clone();
    let mut kind = s.kind().clone();
    match &mut kind {
        StmtKind::VarDef { .. } => return None,
        StmtKind::For { iter, .. } => {
            let new = iter.fresh();
            names.insert(iter.clone(), Expr::var(&new));
            *iter = new;
        }
        _ => {}
    }
    let mut ok = true;
    let mut inside = |inner: &Stmt| {
        copy(inner, &names).unwrap_or_else(|| {
            ok = false;
            inner.clone()
        })
    };
    let mut expr = |e: &Expr| {
        e.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(v) => names.get(v).cloned().unwrap_or(e),
            _ => e,
        })
    };
    let new = Stmt::new(kind, s.origin().clone()).map(&mut inside, &mut expr);
    ok.then_some(new)
}

// ---- checking

/// Whether every access of an array is one to a whole vector.
struct Check<'a> {
    array: Option<&'a Symbol>,
    dtype: DType,
    lanes: i64,
    atomic: &'a FxHashSet<Symbol>,
    loops: Vec<StmtId>,
    statements: usize,
}

/// The loop over lanes that is looked at.
struct Lanes<'s> {
    iter: &'s Symbol,
    begin: i64,
    vectors: usize,
    /// What its statements store into.
    stored: FxHashSet<Symbol>,
}

impl Check<'_> {
    fn stmt(&mut self, s: &Stmt) -> Option<()> {
        if !self.touches(s) {
            return Some(());
        }
        if s.kind().exprs().iter().any(|e| self.loads(e)) {
            return None;
        }
        match s.kind() {
            StmtKind::Seq(v) => v.iter().try_for_each(|s| self.stmt(s)),
            StmtKind::VarDef { body, .. } => self.stmt(body),
            StmtKind::If { then, otherwise, .. } => {
                self.stmt(then)?;
                otherwise.as_ref().map_or(Some(()), |o| self.stmt(o))
            }
            StmtKind::For { iter, extent, props, body } => {
                // Libraries take the address of arrays.
                if props.parallel.is_some() || props.library {
                    return None;
                }
                if let Some(()) = self.lane_loop(iter, extent, props, body) {
                    self.loops.push(s.id());
                    return Some(());
                }
                self.stmt(body)
            }
            _ => None,
        }
    }

    fn touches(&self, s: &Stmt) -> bool {
        let mut found = false;
        s.walk(&mut |s| {
            found |= matches!(s.kind(), StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } if Some(tensor) == self.array)
                || s.kind().exprs().iter().any(|e| self.loads(e));
        });
        found
    }

    fn loads(&self, e: &Expr) -> bool {
        let mut found = false;
        e.walk(&mut |e| found |= matches!(e.kind(), ExprKind::Load(t, _) if Some(t) == self.array));
        found
    }

    fn lane_loop(&mut self, iter: &Symbol, extent: &Extent, props: &LoopProps, body: &Stmt) -> Option<()> {
        let (begin, length) = constant(extent)?;
        if length == 0 || length % self.lanes != 0 || !props.reductions.is_empty() {
            return None;
        }
        let mut lanes = Lanes { iter, begin, vectors: (length / self.lanes) as usize, stored: FxHashSet::default() };
        let mut plain = true;
        body.walk(&mut |s| match s.kind() {
            StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => {
                lanes.stored.insert(tensor.clone());
            }
            StmtKind::Seq(_) | StmtKind::If { .. } => {}
            _ => plain = false,
        });
        if !plain
            || !lanes.stored.is_disjoint(self.atomic)
            || (props.vectorize.is_none() && !independent(body, &lanes.stored))
        {
            return None;
        }
        self.lane_stmt(body, &lanes)
    }

    fn lane_stmt(&mut self, s: &Stmt, lanes: &Lanes<'_>) -> Option<()> {
        match s.kind() {
            StmtKind::Seq(v) => v.iter().try_for_each(|s| self.lane_stmt(s, lanes)),
            StmtKind::If { cond, then, otherwise } => {
                self.same(cond, lanes).then_some(())?;
                self.lane_stmt(then, lanes)?;
                otherwise.as_ref().map_or(Some(()), |o| self.lane_stmt(o, lanes))
            }
            StmtKind::Store { tensor, indices, value } => {
                self.statements += lanes.vectors;
                (value.dtype() == self.dtype && self.vector(tensor, indices, lanes)).then_some(())?;
                self.value(value, lanes, self.dtype).then_some(())
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                self.statements += lanes.vectors;
                let takes = matches!(op, ReduceOp::Add | ReduceOp::Mul) && value.dtype() == self.dtype;
                (takes && self.vector(tensor, indices, lanes)).then_some(())?;
                self.value(value, lanes, self.dtype).then_some(())
            }
            _ => None,
        }
    }

    /// Whether consecutive iterations access consecutive elements; of the array, whole vectors.
    fn vector(&self, tensor: &Symbol, indices: &[Access], lanes: &Lanes<'_>) -> bool {
        let [index] = indices else { return false };
        if constant_growth(&index.index, lanes.iter) != Some(1) {
            return false;
        }
        let first = at(&index.index, lanes.iter, &Expr::int(lanes.begin));
        Some(tensor) != self.array || first.as_int().is_some_and(|k| k >= 0 && k % self.lanes == 0)
    }

    /// Whether a value of that type can be computed for all lanes at once.
    fn value(&self, e: &Expr, lanes: &Lanes<'_>, dtype: DType) -> bool {
        if self.same(e, lanes) {
            return true;
        }
        if e.dtype() != dtype {
            return false;
        }
        match e.kind() {
            ExprKind::Load(t, indices) => self.vector(t, indices, lanes),
            ExprKind::Apply(Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::Div, args) => {
                args.iter().all(|a| self.value(a, lanes, dtype))
            }
            // Sums of f32 are in f64. Vectors in registers have their own number of lanes.
            ExprKind::Cast(inner) => {
                dtype == DType::F64
                    && inner.dtype() == DType::F32
                    && !self.loads(inner)
                    && !self.same(inner, lanes)
                    && self.value(inner, lanes, DType::F32)
            }
            _ => false,
        }
    }

    /// Whether a value is the same for all lanes.
    fn same(&self, e: &Expr, lanes: &Lanes<'_>) -> bool {
        let mut same = true;
        e.walk(&mut |e| match e.kind() {
            ExprKind::Var(v) => same &= v != lanes.iter,
            ExprKind::Load(t, _) => same &= Some(t) != self.array && !lanes.stored.contains(t),
            _ => {}
        });
        same
    }
}

/// Whether each iteration only touches elements that no other one stores into: all accesses of what is stored have one index.
fn independent(body: &Stmt, stored: &FxHashSet<Symbol>) -> bool {
    let mut index: FxHashMap<Symbol, Vec<Access>> = FxHashMap::default();
    let mut one = true;
    let mut see = |t: &Symbol, indices: &[Access]| {
        if stored.contains(t) {
            one &= index.entry(t.clone()).or_insert_with(|| indices.to_vec()) == indices;
        }
    };
    body.walk(&mut |s| {
        if let StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } = s.kind() {
            see(tensor, indices);
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(t, indices) = e.kind() {
                    see(t, indices);
                }
            });
        }
    });
    one
}

/// An index where the iterator has a value.
pub(crate) fn at(index: &Expr, iter: &Symbol, value: &Expr) -> Expr {
    weft_ast::poly::tidy(&index.rewrite(&mut |e| match e.kind() {
        ExprKind::Var(v) if v == iter => value.clone(),
        _ => e,
    }))
}
