//! Conditions that several primitives check.

use crate::refusal::Refusal;

/// Refuses a loop that an earlier step marked: as parallel, vectorised, unrolled or a library call.
pub(crate) fn require_unmarked(func: &taffeta_ast::Func, condition: u32, l: &crate::tree::Loop) -> Result<(), Refusal> {
    let taffeta_ast::StmtKind::For { props, .. } = l.stmt.kind() else { return Ok(()) };
    if *props == taffeta_ast::LoopProps::default() {
        return Ok(());
    }
    let name = crate::selector::called(func, &l.stmt);
    let help = match props.library {
        true => "take this step before `as_lib`",
        false => "take this step before `parallelize`, `vectorize`, `unroll` and `blend`",
    };
    Err(Refusal::illegal(condition, format!("the loop `{name}` is already {}", props.marks()))
        .label(l.stmt.origin().span(), "this loop")
        .help(help))
}

/// Refuses another order of floating-point sums, where the order must be kept ([`taffeta_ast::Func::keeps_order`]).
pub(crate) fn require_any_order(func: &taffeta_ast::Func, dtype: taffeta_ast::DType) -> Result<(), Refusal> {
    if !func.keeps_order || !dtype.is_float() {
        return Ok(());
    }
    let message = "the step would reorder a reduction of floats, which `auto` does not do under strict floats";
    Err(Refusal::illegal(Refusal::ORDER_FREE, message.to_string()).help("call the primitive in a schedule function"))
}

/// Refuses a loop whose body writes data that its bounds read, for primitives that evaluate the bounds in the body.
pub(crate) fn require_invariant_bounds(
    condition: u32,
    l: &crate::tree::Loop,
    called: &dyn Fn() -> String,
) -> Result<(), Refusal> {
    use taffeta_analysis::query::effects;
    let written = effects::writes(&l.body);
    let changes = |e: &taffeta_ast::Expr| !effects::loads(e).is_disjoint(&written);
    if ![&l.begin, &l.end, &l.step].into_iter().any(changes) {
        return Ok(());
    }
    Err(Refusal::illegal(condition, format!("the bounds of `{}` change in its body", called()))
        .label(l.stmt.origin().span(), "this loop")
        .help("compute the bound before the loop: write `last = …`, then `range(…, last)`"))
}
