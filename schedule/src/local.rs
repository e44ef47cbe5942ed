//! Local tensors and their layout in memory, for the `var_…` primitives, `contract`, `inline` and `privatize`. The
//! layout of parameters and results is the caller's.

use crate::refusal::Refusal;
use crate::region;
use crate::schedule::Schedule;
use crate::selector::Declared;
use crate::stage;
use crate::tree;
use crate::value::Args;
use std::sync::Arc;
use taffeta_analysis::pass::rewrite_accesses;
use taffeta_analysis::query::{Context, walk};
use taffeta_ast::format::Format;
use taffeta_ast::stmt::{AssertKind, Memory, MessagePart};
use taffeta_ast::{Access, Expr, Func, Origin, Stmt, StmtKind, Symbol, Tensor};

/// Local tensor.
pub(crate) struct Local {
    pub tensor: Arc<Tensor>,
    /// Declaration of the tensor.
    pub stmt: Stmt,
    /// Scope of the tensor.
    pub body: Stmt,
}

impl Local {
    /// Resolves the local tensor that the argument `tensor` of a call names. Condition 1: its accesses can be
    /// rewritten.
    pub fn of(s: &Schedule, args: &Args<'_>) -> Result<Local, Refusal> {
        Local::declared(s, &s.tensor(args.need("tensor")?)?)
    }

    /// Resolves the argument `tensor` of a call as [`Local::of`] does; among tensors of one name, the one that `stmt`
    /// uses is meant.
    pub fn used_in(s: &Schedule, args: &Args<'_>, stmt: &Stmt) -> Result<Local, Refusal> {
        Local::declared(s, &s.tensor_in(stmt, args.need("tensor")?)?)
    }

    fn declared(s: &Schedule, declared: &Declared) -> Result<Local, Refusal> {
        stage::usable(s.func(), declared)?;
        let name = declared.tensor.symbol.name().to_string();
        match declared.stmt.as_ref().map(|d| (d, d.kind())) {
            Some((stmt, StmtKind::VarDef { tensor, body })) => {
                Ok(Local { tensor: tensor.clone(), stmt: stmt.clone(), body: body.clone() })
            }
            _ => Err(Refusal::illegal(1, format!("`{name}` is a parameter or a result, which the caller lays out"))
                .help(format!("use `t = s.cache(…, \"{name}\")`, and take this step on `t`"))),
        }
    }

    /// Reads the argument `dim`: a dimension of `count`, counted from 0, or from the end if it is negative.
    pub fn dim(&self, args: &Args<'_>, count: usize) -> Result<usize, Refusal> {
        let arg = args.need("dim")?;
        let value = args.int("dim")?.unwrap_or(0);
        let from_start = if value < 0 { value + count as i64 } else { value };
        usize::try_from(from_start).ok().filter(|d| *d < count).ok_or_else(|| {
            let text =
                format!("expected `dim` from 0 to {} for `{}`, found {value}", count as i64 - 1, self.tensor.symbol);
            Refusal::value(text).at(arg.span)
        })
    }

    /// Returns the facts that hold at the declaration.
    pub fn facts(&self, func: &Func) -> Context {
        walk::at(func, self.stmt.id()).unwrap_or_else(|| Context::new(func))
    }

    /// Refuses accesses whose indices in these dimensions are not proved to be in range: a new index computed from an
    /// index out of range could be in range.
    pub fn in_range(&self, func: &Func, condition: u32, dims: &[usize]) -> Result<(), Refusal> {
        let name = &self.tensor.symbol;
        let out = self.index(func, dims, &|c, k, index| !c.in_range(name, k, index));
        let Some(index) = out else { return Ok(()) };
        let text = format!("the index `{index}` of `{name}` is not proved to be in range, and its check would be lost");
        Err(Refusal::illegal(condition, text)
            .label(self.stmt.origin().span(), "declared here")
            .help("assert before the access that it is in range"))
    }

    /// Refuses accesses whose index computation in one of these dimensions may stop the program: an index that is
    /// dropped would not stop it.
    pub fn require_droppable_indices(&self, func: &Func, condition: u32, dims: &[usize]) -> Result<(), Refusal> {
        let Some(index) = self.index(func, dims, &|c, _, index| c.may_stop(index)) else { return Ok(()) };
        let name = &self.tensor.symbol;
        let text =
            format!("evaluating the index `{index}` of `{name}` may stop the program, and the step would drop it");
        Err(Refusal::illegal(condition, text)
            .label(self.stmt.origin().span(), "declared here")
            .help("assert before the access that the elements that the index reads are in range"))
    }

    /// Returns the first index in one of these dimensions that satisfies the predicate.
    fn index(&self, func: &Func, dims: &[usize], is_so: &dyn Fn(&mut Context, usize, &Expr) -> bool) -> Option<String> {
        let mut found: Option<String> = None;
        region::at_accesses(func, &self.body, &self.tensor.symbol, &mut |c, _, indices| {
            for k in dims {
                if found.is_none() && is_so(c, *k, &indices[*k].index) {
                    found = Some(taffeta_ast::print::expr(&indices[*k].index));
                }
            }
        });
        found
    }

    /// Rebuilds the program with another shape of the tensor and other indices. The sizes of the dimensions `checked`
    /// are asserted to be non-negative unless this is proved, since declaring the new shape does not check them.
    pub fn reshaped(
        &self,
        func: &Func,
        step: &'static str,
        shape: Vec<Expr>,
        checked: &[usize],
        indices: impl Fn(Vec<Access>) -> Vec<Access>,
    ) -> Func {
        let tensor = &self.tensor;
        let body = rewrite_accesses::run(
            &self.body,
            &[(tensor.symbol.clone(), tensor.symbol.clone())].into_iter().collect(),
            &indices,
        );
        let format = Format::dense(shape.len());
        // A scalar is kept in a variable, whatever memory was chosen for the array.
        let memory = if shape.is_empty() { Memory::Auto } else { tensor.memory };
        let new = Arc::new(Tensor { shape, format, memory, ..(**tensor).clone() });
        let scope = self.stmt.with_kind(StmtKind::VarDef { tensor: new, body });
        tree::replace(func, self.stmt.id(), &self.after_checks(func, step, checked, scope))
    }

    /// Prepends assertions to the statement that replaces the declaration: each of the sizes `checked` is non-negative,
    /// as the declaration implied, unless this is proved.
    pub fn after_checks(&self, func: &Func, step: &'static str, checked: &[usize], stmt: Stmt) -> Stmt {
        let mut facts = self.facts(func);
        let asserts: Vec<Stmt> =
            checked.iter().filter_map(|k| not_negative(&self.stmt, &self.tensor, *k, step, &mut facts)).collect();
        match asserts.is_empty() {
            true => stmt,
            false => Stmt::seq(asserts.into_iter().chain([stmt]), Origin::none()),
        }
    }
}

/// Builds `assert 0 <= size` for a dimension whose size is not proved to be non-negative; the declaration itself makes
/// this check. A size that may overflow gets a declaration of a tensor of that dimension alone, with an empty scope,
/// which checks the overflow too.
pub(crate) fn not_negative(
    declaration: &Stmt,
    tensor: &Tensor,
    k: usize,
    step: &'static str,
    facts: &mut Context,
) -> Option<Stmt> {
    let size = &tensor.shape[k];
    let origin = || Origin::source(declaration.origin().span()).derive(step, "size");
    if !facts.is_exact(size) {
        let symbol = Symbol::new(tensor.symbol.name());
        let tensor = Arc::new(Tensor::dense(symbol, tensor.dtype, vec![size.clone()], tensor.role));
        return Some(Stmt::new(StmtKind::VarDef { tensor, body: Stmt::nop() }, origin()));
    }
    let cond = Expr::int(0).less_eq(size);
    if !facts.may_stop(size) && facts.prove(&cond) {
        return None;
    }
    let text = format!("dimension {k} of `{}` has a negative size", tensor.symbol);
    let kind = StmtKind::Assert { cond, message: vec![MessagePart::Text(text)], kind: AssertKind::Program };
    Some(Stmt::new(kind, origin()))
}
