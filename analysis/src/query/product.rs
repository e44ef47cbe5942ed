//! Recognition of matrix products in loop nests: `C[…] += alpha * A[…] * B[…]`, by the dependence of the subscripts on
//! the loops.
//!
//! A loop goes over *rows* if C and A depend on it and B does not, over *columns* if C and B do and A does not, and it
//! is a *sum* if C does not and both factors do. One of each is taken (a vector has no rows or no columns); the others
//! run around the product, since a nest of one reduction may run in any order: batches, and further sums.
//!
//! ```text
//! for b in range(h):                          around: b
//!     for i in range(n):                      rows:   i    C has stride s of i, and A
//!         for j in range(m):                  columns: j
//!             for k in range(p):              sum:    k
//!                 c[b, i, j] += 2 * x[b, i, k] * y[b, j, k]
//! ```
//!
//! Not decided here: whether C overlaps the factors (the dependence analysis does that), and whether every access is in
//! range.

use super::effects;
use super::stride::strides;
use taffeta_ast::op::Op;
use taffeta_ast::{Access, DType, Expr, ExprKind, Extent, LoopProps, ReduceOp, Span, Stmt, StmtKind, Symbol, print};

/// Reason why a nest is not a matrix product.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// Number of the violated condition, in the head of `schedule/src/primitives/as_lib.md`.
    pub condition: u32,
    /// Description of the mismatch.
    pub message: String,
    /// Source spans, each with a word on why it is shown.
    pub labels: Vec<(Span, String)>,
    /// Suggested change.
    pub help: Option<String>,
}

impl Mismatch {
    fn new(condition: u32, message: impl Into<String>, at: &Stmt, word: &str) -> Mismatch {
        Mismatch { condition, message: message.into(), labels: vec![(at.origin().span(), word.into())], help: None }
    }

    fn help(mut self, text: impl Into<String>) -> Mismatch {
        self.help = Some(text.into());
        self
    }
}

/// Loop of the nest, with a constant step.
#[derive(Clone, Debug)]
pub struct Counter {
    /// Loop statement.
    pub stmt: Stmt,
    /// Iterator.
    pub iter: Symbol,
    /// First value.
    pub begin: Expr,
    /// Trip count; negative or 0 if there are no iterations.
    pub count: Expr,
    /// Step.
    pub step: i64,
}

/// Tensor in the product.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Tensor.
    pub tensor: Symbol,
    /// Subscripts.
    pub indices: Vec<Expr>,
    /// Increment of each subscript per iteration of each loop: `factors[dimension][loop]`.
    pub factors: Vec<Vec<Expr>>,
}

impl Operand {
    fn depends(&self, l: usize) -> bool {
        self.factors.iter().any(|d| d[l].as_int() != Some(0))
    }

    /// Returns whether successive iterations of the loop access adjacent elements in memory.
    fn is_contiguous(&self, l: usize) -> bool {
        self.factors.last().is_some_and(|d| d[l].as_int().is_some_and(|f| f.abs() == 1))
    }
}

/// Loop nest that is a matrix product.
#[derive(Clone, Debug)]
pub struct Product {
    /// Loops, outermost first.
    pub loops: Vec<Counter>,
    /// Loop over the rows of C and A; none if C is a row.
    pub row: Option<usize>,
    /// Loop over the columns of C and B; none if C is a column.
    pub column: Option<usize>,
    /// Loop of the sum.
    pub sum: usize,
    /// Accumulated matrix.
    pub c: Operand,
    /// First factor.
    pub a: Operand,
    /// Second factor.
    pub b: Operand,
    /// Scalar multiplier of the product, if it is not 1.
    pub alpha: Option<Expr>,
    /// Type of all elements.
    pub dtype: DType,
    /// Statement in the nest.
    pub update: Stmt,
}

impl Product {
    /// Returns the loops that run around the product, in their order.
    pub fn around(&self) -> Vec<usize> {
        let own = [self.row, self.column, Some(self.sum)];
        (0..self.loops.len()).filter(|l| !own.contains(&Some(*l))).collect()
    }
}

/// Function from a loop to its name in messages.
pub type Called<'c> = dyn Fn(&Stmt) -> String + 'c;

/// Recognises a nest as a matrix product.
///
/// # Errors
/// Condition that does not hold.
pub fn product(nest: &Stmt, called: &Called<'_>) -> Result<Product, Mismatch> {
    let (loops, update) = loops(nest, called)?;
    // 2. `C += A * B`.
    let StmtKind::ReduceTo { tensor, indices, op: ReduceOp::Add, value } = update.kind() else {
        return Err(Mismatch::new(2, "the statement in the nest is not a sum `c[…] += …`", &update, "this statement"));
    };
    let dtype = value.dtype();
    if !matches!(dtype, DType::F32 | DType::F64) {
        let text = format!("expected elements of type f32 or f64, found `{tensor}` with elements of type {dtype}");
        return Err(Mismatch::new(2, text, &update, "this sum"));
    }
    let ([a, b], alpha) = factors(value, tensor, &loops, &update)?;
    // 3. Affine subscripts.
    let c = operand(tensor, indices, &loops, called, tensor, &update)?;
    let a = operand(a.0, a.1, &loops, called, tensor, &update)?;
    let b = operand(b.0, b.1, &loops, called, tensor, &update)?;
    // 4. Roles of the loops.
    let pick = |wanted: [bool; 3]| {
        let fits = |l: &usize| [c.depends(*l), a.depends(*l), b.depends(*l)] == wanted;
        let near = |l: &usize| [&c, &a, &b].iter().any(|o| o.is_contiguous(*l));
        (0..loops.len()).filter(fits).max_by_key(|l| (near(l), *l))
    };
    let (row, column, sum) = (pick([true, true, false]), pick([true, false, true]), pick([false, true, true]));
    let names = || loops.iter().map(|l| format!("`{}`", called(&l.stmt))).collect::<Vec<_>>().join(", ");
    let Some(sum) = sum else {
        let text =
            format!("no loop of {} sums: expected a loop that both factors depend on and `{tensor}` does not", names());
        return Err(Mismatch::new(4, text, &update, "this sum"));
    };
    if row.is_none() && column.is_none() {
        let text = format!(
            "no loop of {} goes over rows or columns: expected a loop that `{tensor}` and one of the factors depend \
             on, and the other factor does not",
            names()
        );
        return Err(Mismatch::new(4, text, &update, "this sum").help("use `s.vectorize` for a sum of products"));
    }
    // A matrix in one dimension has a row's length as the stride between rows.
    let mixes = |d: &Vec<Expr>, r: usize, k: usize| match c.indices.len() {
        1 => [&d[r], &d[k]].into_iter().all(|f| f.as_int().is_some_and(|f| f.abs() == 1)),
        _ => d[r].as_int() != Some(0) && d[k].as_int() != Some(0),
    };
    if let (Some(r), Some(k)) = (row, column)
        && let Some(d) = c.factors.iter().position(|d| mixes(d, r, k))
    {
        let text = format!(
            "the index `{}` of `{tensor}` mixes `{}` and `{}`",
            print::expr(&c.indices[d]),
            called(&loops[r].stmt),
            called(&loops[k].stmt)
        );
        return Err(Mismatch::new(3, text, &update, "this sum"));
    }
    Ok(Product { loops, row, column, sum, c, a, b, alpha, dtype, update: update.clone() })
}

/// 1. Collects the loops of a perfect nest, and the statement in it.
fn loops(nest: &Stmt, called: &Called<'_>) -> Result<(Vec<Counter>, Stmt), Mismatch> {
    let mut loops: Vec<Counter> = Vec::new();
    let mut at = nest.clone();
    while let StmtKind::For { iter, extent, props, body } = at.kind() {
        let Extent::Range { begin, end, step } = extent else {
            return Err(Mismatch::new(1, "there is a loop over the reals in the nest", &at, "this loop"));
        };
        let own = if loops.is_empty() {
            LoopProps { library: props.library, ..LoopProps::default() }
        } else {
            LoopProps::default()
        };
        if *props != own {
            let others = LoopProps { library: props.library && !own.library, ..props.clone() };
            let text = format!("the loop `{}` is already {}", called(&at), others.marks());
            return Err(Mismatch::new(1, text, &at, "this loop"));
        }
        let Some(step) = step.as_int().filter(|s| *s != 0 && *s != i64::MIN) else {
            let text = format!("the step of `{}` is not a constant", called(&at));
            return Err(Mismatch::new(1, text, &at, "this loop"));
        };
        if let Some(outer) = loops.iter().find(|l| [begin, end].into_iter().any(|e| effects::mentions(e, &[&l.iter]))) {
            let (inner, outer) = (called(&at), called(&outer.stmt));
            let text = format!("the bounds of `{inner}` change with `{outer}`: the matrices are not rectangular");
            return Err(Mismatch::new(1, text, &at, "this loop"));
        }
        let span = if step > 0 { end.minus(begin) } else { begin.minus(end) };
        let count = match step.abs() {
            1 => span,
            s => span.plus(&Expr::int(s - 1)).floor_div(&Expr::int(s)),
        };
        loops.push(Counter { stmt: at.clone(), iter: iter.clone(), begin: begin.clone(), count, step });
        let body = body.clone();
        at = body;
    }
    let what = match at.kind() {
        StmtKind::Store { .. } | StmtKind::ReduceTo { .. } => return changing(loops, at, called),
        StmtKind::If { .. } => "there is a condition in the nest",
        StmtKind::VarDef { .. } => "a tensor is declared in the nest",
        StmtKind::Seq(v) if v.is_empty() => "the nest is empty",
        StmtKind::Seq(_) => "there are several statements in the nest",
        _ => "there is a statement in the nest that is not a sum",
    };
    Err(Mismatch::new(1, what, &at, "here"))
}

/// Checks that the bounds do not load from the tensor that the nest writes.
fn changing(loops: Vec<Counter>, update: Stmt, called: &Called<'_>) -> Result<(Vec<Counter>, Stmt), Mismatch> {
    let written = effects::writes(&update);
    let reads = |l: &&Counter| [&l.begin, &l.count].into_iter().any(|e| !effects::loads(e).is_disjoint(&written));
    match loops.iter().find(reads) {
        Some(l) => {
            let text = format!("the bounds of `{}` change in the nest", called(&l.stmt));
            Err(Mismatch::new(1, text, &l.stmt, "this loop"))
        }
        None => Ok((loops, update)),
    }
}

type Element<'e> = (&'e Symbol, &'e [Access]);

/// 2. Splits a value into the two elements of a product, and the remaining multiplier.
fn factors<'e>(
    value: &'e Expr,
    c: &Symbol,
    loops: &[Counter],
    update: &Stmt,
) -> Result<([Element<'e>; 2], Option<Expr>), Mismatch> {
    let mut all = Vec::new();
    let negative = multiplied(value, &mut all);
    let changes = |e: &Expr| loops.iter().any(|l| effects::mentions(e, &[&l.iter])) || effects::loads(e).contains(c);
    let (varying, fixed): (Vec<&Expr>, Vec<&Expr>) = all.into_iter().partition(|e| changes(e));
    let mut elements = Vec::new();
    for e in &varying {
        match e.kind() {
            ExprKind::Load(t, indices) => elements.push((t, indices.as_slice())),
            ExprKind::Cast(inner) => {
                let text =
                    format!("the factor `{}` is converted from {} to {}", print::expr(e), inner.dtype(), e.dtype());
                let r = Mismatch::new(2, text, update, "this sum");
                return Err(r.help("give all three matrices the same type"));
            }
            _ => {
                let text = format!("`{}` is not an element of a tensor", print::expr(e));
                let r = Mismatch::new(2, text, update, "this sum");
                return Err(r.help("write a product of two elements, and of values that do not change in the nest"));
            }
        }
    }
    let [a, b] = elements.as_slice() else {
        let text = format!("expected a product of two elements that change in the nest, found {}", elements.len());
        return Err(Mismatch::new(2, text, update, "this sum"));
    };
    let alpha = fixed.into_iter().cloned().reduce(|x, y| x.times(&y));
    let alpha = match (alpha, negative) {
        (Some(x), true) => Some(Expr::apply(Op::Neg, vec![x])),
        (None, true) => Some(Expr::float(-1.0, value.dtype())),
        (x, false) => x,
    };
    Ok(([*a, *b], alpha))
}

/// Collects the factors of a product, and returns whether it is negated.
fn multiplied<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) -> bool {
    match e.kind() {
        ExprKind::Apply(Op::Mul, args) => args.iter().fold(false, |negative, a| negative ^ multiplied(a, out)),
        ExprKind::Apply(Op::Neg, args) => !multiplied(&args[0], out),
        _ => {
            out.push(e);
            false
        }
    }
}

/// 3. Computes the increments of a tensor's subscripts by the loops.
fn operand(
    tensor: &Symbol,
    indices: &[Access],
    loops: &[Counter],
    called: &Called<'_>,
    c: &Symbol,
    update: &Stmt,
) -> Result<Operand, Mismatch> {
    let indices: Vec<Expr> = indices.iter().map(|a| a.index.clone()).collect();
    let mut factors = Vec::new();
    for index in &indices {
        let text = |how: &str| format!("the index `{}` of `{tensor}` {how}", print::expr(index));
        if effects::loads(index).contains(c) {
            return Err(Mismatch::new(3, text("changes in the nest"), update, "this sum"));
        }
        let found = coefficients(index, loops).map_err(|l| {
            let how = format!("is not affine in `{}`", called(&l.stmt));
            Mismatch::new(3, text(&how), update, "this sum")
        })?;
        factors.push(found);
    }
    Ok(Operand { tensor: tensor.clone(), indices, factors })
}

/// Returns the increment of an expression per iteration of each loop.
///
/// # Errors
/// The loop in which the expression is not affine.
fn coefficients<'l>(e: &Expr, loops: &'l [Counter]) -> Result<Vec<Expr>, &'l Counter> {
    let iters: Vec<&Symbol> = loops.iter().map(|l| &l.iter).collect();
    let all = strides(e, &iters).map_err(|k| &loops[k])?;
    Ok(all.iter().zip(loops).map(|(each, l)| each.times(&Expr::int(l.step))).collect())
}
