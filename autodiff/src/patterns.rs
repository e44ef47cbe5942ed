//! Tapes stored in the pattern of a structured parameter.
//!
//! A value computed in loops over the coordinates of a structured tensor has a version for every coordinate, but is
//! needed at stored ones alone. Its tape is then stored in the same pattern: it takes as many elements as the tensor,
//! is written and read along the tensor's stored coordinates, and has the fill value elsewhere, as the value does.
//!
//! before
//! ```text
//! part.tape = empty((n, m), f64)
//! for i in range(n):
//!     for j in range(m):
//!         part.tape[i, j] = A[i, j] * x[j]
//!         y[i] += part.tape[i, j] * part.tape[i, j]
//! ```
//! after
//! ```text
//! part.tape: f64[n, m] @ pattern(A, drop=True) = empty((n, m), f64)
//! ```
//!
//! **Legal when** for every access `T[.., i, .., j, ..]` to the tape, in the body of the loop that binds `i` and `j`,
//! simplified by the algebra of fills ([`fill_propagation`]) with `A[i, j]` and every tensor in the pattern of `A` as
//! not stored:
//! 1. every write to the tape there is of the fill value, or leaves 0 as it is: then the tape is 0 wherever it is read;
//!    or
//! 2. no read of the tape there is left: then its value does not matter. Reads that compute another such tape do not
//!    count.
//!
//! Both are checked on the whole gradient, forward pass and backward pass, and for all tapes at once: tapes that fail
//! are removed until a fixpoint is reached. The first holds by induction on the executed statements, and values
//! affected by the second never reach anything else.
//!
//! A tape with further dimensions (an iteration of another loop, elements of its own) would be dense in them, which no
//! format over the pattern of another tensor is; and where one stored value stands for several elements, a tape has a
//! value for each all the same. Such tensors are recomputed if they are declared in loops, whatever `tape=` says
//! ([`Patterns::scattered`]); a snapshot stays dense.

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::pass::{fill_propagation, rewrite_accesses};
use taffeta_analysis::query::effects;
use taffeta_ast::format::Pattern;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Access, Expr, ExprKind, Func, Literal, Stmt, StmtId, StmtKind, Symbol, Tensor, poly};

/// Assignment of a gradient's tapes to patterns.
#[derive(Default)]
pub(crate) struct Patterns {
    stored: Vec<PatternTape>,
    /// Tapes needed where a parameter is stored, but impossible to store in its pattern; with that parameter.
    pub scattered: Vec<(Symbol, Symbol)>,
}

/// Tape in the pattern of a structured parameter: it is needed at the parameter's stored coordinates alone, or is 0
/// elsewhere.
#[derive(Clone)]
struct PatternTape {
    tape: Arc<Tensor>,
    of: Arc<Tensor>,
    /// Dimension of the tape for each dimension of the parameter.
    dims: Vec<usize>,
}

/// Finds the tapes that can be stored in patterns. Dense programs have no patterns to search.
pub(crate) fn find(func: &Func) -> Patterns {
    let leaders: Vec<&Arc<Tensor>> = leaders(func);
    if leaders.is_empty() {
        return Patterns::default();
    }
    let accesses = Accesses::new(func);
    let mut out = Patterns::default();
    for of in leaders {
        let Some(pattern) = of.format.pattern else { continue };
        let mut places: Vec<PatternTape> = Vec::new();
        for (tape, uses) in &accesses.tapes {
            places.extend(accesses.candidates(of, pattern, tape, uses));
        }
        let search = PatternSearch { accesses: &accesses, pattern };
        let zero = search.greatest_fixpoint(&places, &|place, all| search.is_zero(place, all));
        let rest: Vec<PatternTape> = places.iter().filter(|p| !zero.iter().any(|z| z.is(p))).cloned().collect();
        let unread = search.greatest_fixpoint(&rest, &|place, all| search.is_unread(place, all, &zero));
        for place in zero.into_iter().chain(unread) {
            out.note(place);
        }
    }
    let stored: FxHashSet<&Symbol> = out.stored.iter().map(|p| &p.tape.symbol).collect();
    out.scattered.retain(|(t, _)| !stored.contains(t));
    out
}

impl Patterns {
    /// Records a place if the shapes agree; the first place of a tape is taken.
    fn note(&mut self, place: PatternTape) {
        let t = &place.tape;
        let fits = |(d, size): (&usize, &Expr)| poly::equal(&t.shape[*d], size) == Some(true);
        if !place.dims.iter().zip(&place.of.shape).all(fits) {
            return;
        }
        if t.ndim() > place.of.ndim() || !place.of.format.is_injective() {
            self.scattered.push((t.symbol.clone(), place.of.symbol.clone()));
        } else if self.stored.iter().all(|p| p.tape.symbol != t.symbol) {
            self.stored.push(place);
        }
    }

    /// Stores the tapes of a program in their patterns.
    pub fn apply(&self, func: &Func) -> Func {
        self.stored.iter().fold(func.clone(), |func, place| func.with_body(place.apply(&func.body)))
    }

    /// Returns the parameter in whose pattern a tape is stored, if it is.
    pub fn of(&self, tape: &Symbol) -> Option<&Symbol> {
        self.stored.iter().find(|p| p.tape.symbol == *tape).map(|p| &p.of.symbol)
    }
}

impl PatternTape {
    fn is(&self, other: &PatternTape) -> bool {
        self.tape.symbol == other.tape.symbol && self.dims == other.dims
    }

    /// Returns the declaration of the tape with the dimensions of the parameter.
    fn declaration(&self) -> Arc<Tensor> {
        let (shape, format) = (self.of.shape.clone(), self.of.format.derivative());
        Arc::new(Tensor { shape, format, ..(*self.tape).clone() })
    }

    fn apply(&self, body: &Stmt) -> Stmt {
        let own = &self.tape.symbol;
        let names = [(own.clone(), own.clone())].into_iter().collect();
        let indices = |at: Vec<Access>| self.dims.iter().map(|d| at[*d].clone()).collect();
        redeclared(&rewrite_accesses::run(body, &names, &indices), &self.declaration())
    }

    /// Returns the indices of the parameter's element in an access to the tape.
    fn element<'e>(&self, at: &'e [Access]) -> Vec<&'e Expr> {
        self.dims.iter().map(|d| &at[*d].index).collect()
    }

    /// Returns whether an expression accesses the tape at that element.
    fn reads(&self, e: &Expr, there: &[&Expr]) -> bool {
        matches!(e.kind(), ExprKind::Load(t, at) if *t == self.tape.symbol && self.element(at) == there)
    }
}

fn redeclared(s: &Stmt, new: &Arc<Tensor>) -> Stmt {
    match s.kind() {
        StmtKind::VarDef { tensor, body } if tensor.symbol == new.symbol => {
            s.with_kind(StmtKind::VarDef { tensor: new.clone(), body: body.clone() })
        }
        _ => s.map(&mut |s| redeclared(s, new), &mut Expr::clone),
    }
}

/// Returns one structured parameter for each pattern.
fn leaders(func: &Func) -> Vec<&Arc<Tensor>> {
    let mut seen: FxHashSet<Pattern> = FxHashSet::default();
    let params = func.params.iter().map(|p| &p.tensor).filter(|t| !t.format.is_dense());
    params.filter(|t| t.format.pattern.is_some_and(|p| seen.insert(p))).collect()
}

/// Access to a tape.
struct Use {
    at: Vec<Access>,
    /// Loops around it, outermost first: iterators and bodies.
    loops: Vec<(Symbol, Stmt)>,
}

impl Use {
    /// Returns the body of the innermost loop that binds these indices, if they are not loaded from tensors.
    fn known(&self, indices: &[&Expr]) -> Option<&Stmt> {
        let binds = |iter: &Symbol| indices.iter().any(|e| effects::mentions(e, &[iter]));
        let innermost = self.loops.iter().rev().find(|(iter, _)| binds(iter));
        innermost.filter(|_| indices.iter().all(|e| effects::loads(e).is_empty())).map(|(_, body)| body)
    }
}

/// Structured tensors of a program, and all accesses to its dense tapes, in the order of the text.
struct Accesses {
    structured: FxHashMap<Symbol, Arc<Tensor>>,
    tapes: Vec<(Arc<Tensor>, Vec<Use>)>,
    numbers: FxHashMap<Symbol, usize>,
    loops: Vec<(Symbol, Stmt)>,
}

impl Accesses {
    fn new(func: &Func) -> Accesses {
        let structured = func.interface().filter(|t| !t.format.is_dense()).map(|t| (t.symbol.clone(), t.clone()));
        let mut accesses = Accesses {
            structured: structured.collect(),
            tapes: Vec::new(),
            numbers: FxHashMap::default(),
            loops: Vec::new(),
        };
        // Calls with custom gradients refer to their arguments by index, so that these tapes keep their layout.
        let mut named: FxHashSet<Symbol> = FxHashSet::default();
        for call in &func.custom_vjps {
            named.extend(call.args.iter().chain(&call.results).map(|p| p.tensor.clone()));
        }
        func.body.walk(&mut |s| match s.kind() {
            StmtKind::VarDef { tensor, .. } if !tensor.format.is_dense() => {
                accesses.structured.insert(tensor.symbol.clone(), tensor.clone());
            }
            StmtKind::VarDef { tensor, .. } if tensor.role == Role::Tape && tensor.ndim() > 0 => {
                accesses.numbers.insert(tensor.symbol.clone(), accesses.tapes.len());
                accesses.tapes.push((tensor.clone(), Vec::new()));
            }
            StmtKind::Print { .. } => named.extend(s.kind().printed().into_iter().cloned()),
            StmtKind::Call { tensors, .. } => named.extend(tensors.iter().cloned()),
            _ => {}
        });
        accesses.collect(&func.body);
        accesses.tapes.retain(|(t, _)| !named.contains(&t.symbol));
        accesses
    }

    fn collect(&mut self, s: &Stmt) {
        let own: Vec<Expr> =
            fill_propagation::target(s).into_iter().chain(s.kind().exprs().into_iter().cloned()).collect();
        for e in own {
            e.walk(&mut |e| {
                if let ExprKind::Load(t, at) = e.kind()
                    && let Some(k) = self.numbers.get(t)
                {
                    self.tapes[*k].1.push(Use { at: at.clone(), loops: self.loops.clone() });
                }
            });
        }
        if let StmtKind::For { iter, body, .. } = s.kind() {
            self.loops.push((iter.clone(), body.clone()));
            self.collect(body);
            self.loops.pop();
            return;
        }
        s.kind().children().into_iter().for_each(|s| self.collect(s));
    }

    /// Returns the tensor, if it is stored in the pattern.
    fn stored(&self, t: &Symbol, pattern: Pattern) -> Option<&Arc<Tensor>> {
        self.structured.get(t).filter(|t| t.format.pattern == Some(pattern))
    }

    /// Collects the places of a tape: a structured element in the same loops whose indices are some of the tape's.
    fn candidates(&self, of: &Arc<Tensor>, pattern: Pattern, tape: &Arc<Tensor>, uses: &[Use]) -> Vec<PatternTape> {
        let mut out: Vec<PatternTape> = Vec::new();
        let mut seen: FxHashSet<StmtId> = FxHashSet::default();
        for one in uses {
            let own: Vec<&Expr> = one.at.iter().map(|a| &a.index).collect();
            let Some((_, body)) = one.loops.first().filter(|(_, body)| seen.insert(body.id())) else { continue };
            let mut look = |e: &Expr| {
                let ExprKind::Load(t, at) = e.kind() else { return };
                if self.stored(t, pattern).is_none() {
                    return;
                }
                let dims: Option<Vec<usize>> = at.iter().map(|a| own.iter().position(|e| **e == a.index)).collect();
                let Some(dims) = dims else { return };
                let distinct = dims.iter().collect::<FxHashSet<_>>().len() == dims.len();
                let place = PatternTape { tape: tape.clone(), of: of.clone(), dims };
                if distinct && !out.iter().any(|p| p.is(&place)) {
                    out.push(place);
                }
            };
            body.walk(&mut |s| {
                fill_propagation::target(s).iter().chain(s.kind().exprs()).for_each(|e| e.walk(&mut look))
            });
        }
        out
    }

    fn uses(&self, tape: &Symbol) -> &[Use] {
        self.tapes.iter().find(|(t, _)| t.symbol == *tape).map_or(&[], |(_, uses)| uses)
    }
}

/// Search for the tapes of one pattern.
struct PatternSearch<'a> {
    accesses: &'a Accesses,
    pattern: Pattern,
}

impl PatternSearch<'_> {
    /// Returns the places whose condition holds under the assumption of all of them (greatest fixpoint).
    fn greatest_fixpoint(
        &self,
        places: &[PatternTape],
        holds: &dyn Fn(&PatternTape, &[PatternTape]) -> bool,
    ) -> Vec<PatternTape> {
        let mut all = places.to_vec();
        loop {
            let left: Vec<PatternTape> = all.iter().filter(|p| holds(p, &all)).cloned().collect();
            if left.len() == all.len() {
                return left;
            }
            all = left;
        }
    }

    /// Returns whether a tape is 0 at elements that are not stored, assuming that those of `zero` are.
    fn is_zero(&self, place: &PatternTape, zero: &[PatternTape]) -> bool {
        self.everywhere(place, &|body, there| {
            let left = self.rest(body, there, zero, false);
            let writes = left.any(&mut |s| fill_propagation::target(s).is_some_and(|e| place.reads(&e, there)));
            !writes
        })
    }

    /// Returns whether a tape is not read at elements that are not stored, except to compute the tapes of `unread`.
    fn is_unread(&self, place: &PatternTape, unread: &[PatternTape], zero: &[PatternTape]) -> bool {
        self.everywhere(place, &|body, there| {
            let left = self.rest(&without_writes(body, unread, there), there, zero, true);
            !left.any_expr(&mut |e| place.reads(e, there))
        })
    }

    /// Returns whether a condition holds for all accesses to a tape, in the body of the loop that binds the element.
    fn everywhere(&self, place: &PatternTape, holds: &dyn Fn(&Stmt, &[&Expr]) -> bool) -> bool {
        let mut asked: FxHashSet<(StmtId, Vec<&Expr>)> = FxHashSet::default();
        self.accesses.uses(&place.tape.symbol).iter().all(|u| {
            let there = place.element(&u.at);
            let Some(body) = u.known(&there) else { return false };
            !asked.insert((body.id(), there.clone())) || holds(body, &there)
        })
    }

    /// Simplifies a statement for an element that is not stored. Writes to tapes that are 0 there vanish if they are of
    /// the fill value, and always if `drops` is set.
    fn rest(&self, body: &Stmt, there: &[&Expr], zero: &[PatternTape], drops: bool) -> Stmt {
        let fill = |e: &Expr| {
            let ExprKind::Load(t, at) = e.kind() else { return None };
            if let Some(t) = self.accesses.stored(t, self.pattern) {
                let own = at.len() == there.len() && at.iter().zip(there).all(|(a, e)| a.index == **e);
                return own.then(|| t.format.fill.unwrap_or(Literal::zero(t.dtype)));
            }
            zero.iter().find(|z| z.reads(e, there)).map(|z| Literal::zero(z.tape.dtype))
        };
        let outside = |s: &Stmt, element: &Expr| {
            let ExprKind::Load(t, _) = element.kind() else { return s.clone() };
            let vanishes = self.accesses.structured.get(t).map_or(drops, |t| t.format.drops);
            if vanishes { Stmt::nop() } else { s.clone() }
        };
        fill_propagation::run(body, &[], &FxHashSet::default(), &fill, &outside)
    }
}

/// Removes the writes to these tapes at that element.
fn without_writes(s: &Stmt, tapes: &[PatternTape], there: &[&Expr]) -> Stmt {
    match fill_propagation::target(s) {
        Some(e) if tapes.iter().any(|t| t.reads(&e, there)) => Stmt::nop(),
        _ => s.map(&mut |s| without_writes(s, tapes, there), &mut Expr::clone),
    }
}
