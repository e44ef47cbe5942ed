//! Small local arrays held in vector registers.
//!
//! **Does**: finds stack arrays whose every access is a whole number of vectors, in loops over lanes of constant
//! length; unrolls the loops whose iterators occur in other indices of such arrays; and marks the loops and arrays that
//! the emitter prints as vectors. Compilers hold such an array in registers only if a dozen of their passes all
//! succeed; variables of vector types stay there.
//!
//! **Requires**: flat indices and placement. **Ensures**: the program computes the same values, in the same order in
//! each lane.
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
//! Vectorised loops that add products and the like to scalars are marked too: their sums become vectors of partial
//! sums, which OpenMP's reductions would combine lane by lane. Their stores are vectors too.
//!
//! **Leaves alone**: arrays with other accesses, element types without vectors, and arrays that would need more than
//! [`MAX_VECTORS`] registers or [`MAX_STATEMENTS`] statements.

use super::lanes::Lanes;
use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_analysis::pass::copy::Copier;
use taffeta_analysis::query::effects;
use taffeta_ast::expr::Access;
use taffeta_ast::stmt::{LoopProps, Memory};
use taffeta_ast::{DType, Expr, ExprKind, Extent, Func, ReduceOp, Sharing, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Maximum number of vectors of one array: the number of registers of the largest machines.
const MAX_VECTORS: i64 = 32;
/// Maximum number of vector statements into which the accesses of an array are unrolled.
const MAX_STATEMENTS: usize = 1024;
/// Maximum number of sums in a summing loop, and of stores beside them.
const MAX_SUMS: usize = 4;
const MAX_STORED: usize = 4;

/// Returns the statements of a summing loop: its sums and stores, without assumptions.
pub(crate) fn parts(body: &Stmt) -> Vec<&Stmt> {
    match body.kind() {
        StmtKind::Seq(v) => v.iter().filter(|s| !matches!(s.kind(), StmtKind::Assume { .. })).collect(),
        _ => vec![body],
    }
}

/// Returns whether a statement of a summing loop is one of its sums, rather than a store.
pub(crate) fn is_sum(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::ReduceTo { indices, op: ReduceOp::Add, .. } if indices.is_empty())
}

/// Loops and arrays to be printed as vectors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vectors {
    /// Size of a vector in bytes.
    pub bytes: usize,
    /// Arrays in registers.
    pub arrays: FxHashSet<Symbol>,
    /// Loops over lanes.
    pub loops: FxHashSet<StmtId>,
    /// Summing loops.
    pub sums: FxHashSet<StmtId>,
}

/// Returns the size of the host's vector registers in bytes; for portable code, the smallest.
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
    /// Tensors that threads of surrounding loops update atomically.
    atomic: FxHashSet<Symbol>,
}

impl Pass {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        if let StmtKind::VarDef { tensor, body } = s.kind()
            && let Some((body, loops)) = self.in_registers(tensor, body)
        {
            self.found.arrays.insert(tensor.symbol.clone());
            self.found.loops.extend(loops);
            let body = self.stmt(&body);
            return s.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body });
        }
        if let StmtKind::For { props, .. } = s.kind() {
            let shared = props.reductions.iter().filter(|r| r.sharing == Sharing::Atomic);
            self.atomic.extend(shared.map(|r| r.tensor.clone()));
            if self.is_summing_loop(s) {
                self.found.sums.insert(s.id());
            }
        }
        s.map(&mut |inner| self.stmt(inner), &mut Expr::clone)
    }

    /// Returns whether a vectorised loop adds vectorisable values to scalars, and otherwise only stores such values to
    /// consecutive elements.
    fn is_summing_loop(&self, s: &Stmt) -> bool {
        let StmtKind::For { iter, extent: Extent::Range { step, .. }, props, body } = s.kind() else { return false };
        let width = props.vectorize.is_some_and(|v| v.width.is_none());
        if !width || props.parallel.is_some() || step.as_int() != Some(1) {
            return false;
        }
        let (sums, stores): (Vec<&Stmt>, Vec<&Stmt>) = parts(body).into_iter().partition(|s| is_sum(s));
        let written = |parts: &[&Stmt]| parts.iter().flat_map(|s| effects::writes(s)).collect::<FxHashSet<Symbol>>();
        let (summed, stored) = (written(&sums), written(&stores));
        let varying = summed.union(&stored).cloned().collect();
        let lanes = Lanes { iter, varying, gathers: true };
        let count = (1..=MAX_SUMS).contains(&sums.len()) && stores.len() <= MAX_STORED;
        count
            && sums.iter().all(|part| self.is_lane_sum(part, props, &lanes))
            && summed.is_disjoint(&stored)
            && independent(body, &stored)
            && stores.iter().all(|part| self.is_lane_store(part, props, &lanes))
    }

    /// Returns whether a statement adds a vectorisable value to a scalar.
    fn is_lane_sum(&self, s: &Stmt, props: &LoopProps, lanes: &Lanes<'_>) -> bool {
        let StmtKind::ReduceTo { tensor, value, .. } = s.kind() else { return false };
        let dtype = value.dtype();
        matches!(dtype, DType::F32 | DType::F64)
            && props.sharing(tensor, ReduceOp::Add) == Some(Sharing::Partial)
            && !self.atomic.contains(tensor)
            && lanes.value(value, dtype)
    }

    /// Returns whether a statement stores a vectorisable value to consecutive elements.
    fn is_lane_store(&self, s: &Stmt, props: &LoopProps, lanes: &Lanes<'_>) -> bool {
        let (tensor, indices, value) = match s.kind() {
            StmtKind::Store { tensor, indices, value } => (tensor, indices, value),
            StmtKind::ReduceTo { tensor, indices, op: op @ (ReduceOp::Add | ReduceOp::Mul), value } => {
                if props.sharing(tensor, *op).is_some() {
                    return false;
                }
                (tensor, indices, value)
            }
            _ => return false,
        };
        let dtype = value.dtype();
        matches!(dtype, DType::F32 | DType::F64)
            && !self.atomic.contains(tensor)
            && lanes.vector(indices)
            && lanes.value(value, dtype)
    }

    /// Returns the scope of an array with the necessary loops unrolled, and the loops over its lanes; `None` if the
    /// array cannot be held in registers.
    fn in_registers(&self, tensor: &Tensor, scope: &Stmt) -> Option<(Stmt, Vec<StmtId>)> {
        if tensor.memory != Memory::Stack || !matches!(tensor.dtype, DType::F32 | DType::F64) {
            return None;
        }
        let count = tensor.shape.first()?.as_int()?;
        let lanes = (self.found.bytes / tensor.dtype.size()) as i64;
        if count == 0 || count % lanes != 0 || count / lanes > MAX_VECTORS {
            return None;
        }
        let array = &tensor.symbol;
        // Iterators of the loops to be unrolled.
        let mut unrolled = FxHashSet::default();
        Self::other_iterators(array, scope, None, &mut unrolled)?;
        let scope = if unrolled.is_empty() { scope.clone() } else { write_out(scope, &unrolled)? };
        let (dtype, atomic) = (tensor.dtype, &self.atomic);
        let mut touching = FxHashSet::default();
        touches(&scope, array, &mut touching);
        let mut check = Check { array, dtype, lanes, atomic, touching, loops: Vec::new(), statements: 0 };
        check.stmt(&scope)?;
        (check.statements <= MAX_STATEMENTS).then_some((scope, check.loops))
    }

    /// Collects the iterators in the array's indices, other than that of the innermost loop. `None` if an index has a
    /// load, so that the array cannot be held in registers.
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
        accesses(s, &mut |t, indices| {
            for a in indices.iter().filter(|_| t == array) {
                a.index.walk(&mut |e| match e.kind() {
                    ExprKind::Var(v) if Some(v) != innermost => drop(out.insert(v.clone())),
                    ExprKind::Load(..) => ok = false,
                    _ => {}
                });
            }
        });
        if !ok {
            return None;
        }
        s.kind().children().into_iter().try_for_each(|c| Self::other_iterators(array, c, innermost, out))
    }
}

// ---- writing out

/// Unrolls the loops with these iterators, into a copy of the body for every iteration. `None` if that is not possible.
fn write_out(s: &Stmt, iters: &FxHashSet<Symbol>) -> Option<Stmt> {
    if let StmtKind::For { iter, extent, props, body } = s.kind()
        && iters.contains(iter)
    {
        let body = write_out(body, iters)?;
        let (begin, length) = constant(extent)?;
        let mut statements = 0;
        body.walk(&mut |_| statements += 1);
        if body.any(&mut |s| matches!(s.kind(), StmtKind::VarDef { .. })) {
            return None;
        }
        if props.is_concurrent() || length > 64 || statements * length as usize > 4 * MAX_STATEMENTS {
            return None;
        }
        let copies = (begin..begin + length).map(|k| {
            let mut copier = Copier::new("vectors", "copy");
            copier.scalars.insert(iter.clone(), Expr::int(k));
            copier.stmt(&body)
        });
        return Some(Stmt::seq(copies, s.origin().derive("register_arrays", "copy")));
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

/// Returns the first value and the length of a loop with constant bounds and step 1.
fn constant(extent: &Extent) -> Option<(i64, i64)> {
    let Extent::Range { begin, end, step } = extent else { return None };
    let (begin, end) = (begin.as_int()?, end.as_int()?);
    (step.as_int() == Some(1)).then(|| (begin, end.saturating_sub(begin).max(0)))
}

// ---- checking

/// Calls `see` with every access of a statement itself, without those of nested statements.
fn accesses(s: &Stmt, see: &mut dyn FnMut(&Symbol, &[Access])) {
    if let StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } = s.kind() {
        see(tensor, indices);
    }
    // A printed tensor has no single index, which keeps it in memory.
    s.kind().printed().into_iter().for_each(|t| see(t, &[]));
    for e in s.kind().exprs() {
        e.walk(&mut |e| {
            if let ExprKind::Load(t, indices) = e.kind() {
                see(t, indices);
            }
        });
    }
}

/// Returns whether an array is accessed in a statement; adds all accessing statements to `touching`.
fn touches(s: &Stmt, array: &Symbol, touching: &mut FxHashSet<StmtId>) -> bool {
    let mut found = false;
    accesses(s, &mut |t, _| found |= t == array);
    for c in s.kind().children() {
        found |= touches(c, array, touching);
    }
    if found {
        touching.insert(s.id());
    }
    found
}

/// Checker that every access of an array is to a whole vector.
struct Check<'a> {
    array: &'a Symbol,
    dtype: DType,
    lanes: i64,
    atomic: &'a FxHashSet<Symbol>,
    /// Statements that access the array.
    touching: FxHashSet<StmtId>,
    loops: Vec<StmtId>,
    /// Number of vector statements.
    statements: usize,
}

impl Check<'_> {
    fn stmt(&mut self, s: &Stmt) -> Option<()> {
        if !self.touching.contains(&s.id()) {
            return Some(());
        }
        if s.kind().exprs().iter().any(|e| effects::loads(e).contains(self.array)) {
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

    fn lane_loop(&mut self, iter: &Symbol, extent: &Extent, props: &LoopProps, body: &Stmt) -> Option<()> {
        let (begin, length) = constant(extent)?;
        if length == 0 || length % self.lanes != 0 || !props.reductions.is_empty() {
            return None;
        }
        let (mut stored, mut plain, mut whole) = (FxHashSet::default(), true, true);
        body.walk(&mut |s| {
            match s.kind() {
                StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => {
                    stored.insert(tensor.clone());
                }
                StmtKind::Seq(_) | StmtKind::If { .. } => {}
                _ => plain = false,
            }
            accesses(s, &mut |t, indices| whole &= t != self.array || self.is_whole(indices, iter, begin));
        });
        if !plain
            || !whole
            || !stored.is_disjoint(self.atomic)
            || (props.vectorize.is_none() && !independent(body, &stored))
        {
            return None;
        }
        stored.insert(self.array.clone());
        self.lane_stmt(body, &Lanes { iter, varying: stored, gathers: false }, (length / self.lanes) as usize)
    }

    /// Returns whether the access in the loop's first iteration is to the first lane of one of the array's vectors.
    fn is_whole(&self, indices: &[Access], iter: &Symbol, begin: i64) -> bool {
        let first = |a: &Access| at(&a.index, iter, &Expr::int(begin)).as_int();
        indices.first().and_then(first).is_some_and(|k| k >= 0 && k % self.lanes == 0)
    }

    /// Checks that a statement can be executed for all lanes at once, which takes `vectors` vector statements.
    fn lane_stmt(&mut self, s: &Stmt, lanes: &Lanes<'_>, vectors: usize) -> Option<()> {
        let (indices, value) = match s.kind() {
            StmtKind::Seq(v) => return v.iter().try_for_each(|s| self.lane_stmt(s, lanes, vectors)),
            StmtKind::If { cond, then, otherwise } => {
                lanes.same(cond).then_some(())?;
                self.lane_stmt(then, lanes, vectors)?;
                return otherwise.as_ref().map_or(Some(()), |o| self.lane_stmt(o, lanes, vectors));
            }
            StmtKind::Store { indices, value, .. }
            | StmtKind::ReduceTo { indices, op: ReduceOp::Add | ReduceOp::Mul, value, .. } => (indices, value),
            _ => return None,
        };
        self.statements += vectors;
        (value.dtype() == self.dtype && lanes.vector(indices) && lanes.value(value, self.dtype)).then_some(())
    }
}

/// Returns whether no iteration accesses an element that another one stores into: all accesses of a stored tensor have
/// the same index.
fn independent(body: &Stmt, stored: &FxHashSet<Symbol>) -> bool {
    let mut index: FxHashMap<Symbol, Vec<Access>> = FxHashMap::default();
    let mut one = true;
    body.walk(&mut |s| {
        accesses(s, &mut |t, indices| {
            if stored.contains(t) {
                one &= index.entry(t.clone()).or_insert_with(|| indices.to_vec()) == indices;
            }
        });
    });
    one
}

/// Substitutes a value for the iterator in an index.
pub(crate) fn at(index: &Expr, iter: &Symbol, value: &Expr) -> Expr {
    taffeta_ast::poly::tidy(&index.rewrite(&mut |e| match e.kind() {
        ExprKind::Var(v) if v == iter => value.clone(),
        _ => e,
    }))
}
