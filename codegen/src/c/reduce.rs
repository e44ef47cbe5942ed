//! Reductions: in place, atomic, and combining partial results.

use super::emitter::Emitter;
use super::half::Conversion;
use super::types;
use taffeta_ast::{Access, DType, Expr, ExprKind, ReduceOp, Symbol};

/// How reductions are kept apart in the parallel loop around them.
#[derive(Clone, Debug)]
pub(super) enum Shared {
    /// The thread's own copy of the array.
    Copy(String),
    /// Every update is atomic.
    Atomic,
}

impl Emitter<'_> {
    /// A reduction into an element, as a statement.
    pub fn reduce(&mut self, tensor: &Symbol, indices: &[Access], op: ReduceOp, value: &Expr) {
        let dtype = value.dtype();
        let mut target = self.element(tensor, indices).text;
        match self.shared.get(&(tensor.clone(), op)).cloned() {
            None => {}
            Some(Shared::Copy(name)) => {
                let [a] = indices else { unreachable!("Flat: {} indices of `{tensor}`", indices.len()) };
                target = format!("{name}[{}]", self.expr(&a.index));
                // The value that is there already is that of the copy.
                if operator(op, dtype).is_none() {
                    let value = self.expr(value);
                    let text = self.combined(op, dtype, &target, &value);
                    return self.out.line(text);
                }
            }
            Some(Shared::Atomic) => return self.atomic(&target, op, value),
        }
        let Some(operator) = operator(op, dtype) else {
            let element = Expr::load(tensor, indices.to_vec(), dtype);
            let new = Expr::raw(ExprKind::Apply(op.info().op, vec![element, value.clone()]), dtype);
            let new = self.stored(&new);
            return self.out.line(format!("{target} = {new};"));
        };
        let value = self.expr(value);
        self.out.line(format!("{target} {operator} {value};"));
    }

    fn atomic(&mut self, target: &str, op: ReduceOp, value: &Expr) {
        let dtype = value.dtype();
        let value = self.expr(value);
        if let Some(operator) = operator(op, dtype) {
            self.out.pragma("omp atomic");
            return self.out.line(format!("{target} {operator} {value};"));
        }
        let combine = self.combined(op, dtype, "made", "value");
        let helper = self.helpers.atomic(word(op), dtype, &combine);
        self.out.line(format!("{helper}(&{target}, {value});"));
    }

    /// A statement that combines an element with a value (not with another element as it is stored).
    fn combined(&mut self, op: ReduceOp, dtype: DType, element: &str, value: &str) -> String {
        if let Some(operator) = operator(op, dtype) {
            return format!("{element} {operator} {value};");
        }
        let name = match op {
            ReduceOp::Add => "+",
            ReduceOp::Mul => "*",
            ReduceOp::Min | ReduceOp::Max => &self.helpers.operator(op.info().op.info().name, dtype),
            ReduceOp::And | ReduceOp::Or | ReduceOp::BitAnd | ReduceOp::BitOr => {
                unreachable!("{op:?} is an operator in C")
            }
        };
        let held = match types::is_narrow_float(dtype) {
            true => format!("{}({element})", self.half(Conversion::Load, dtype)),
            false => element.to_string(),
        };
        let new = match name {
            "+" | "*" => format!("{held} {name} {value}"),
            call => format!("{call}({held}, {value})"),
        };
        match types::is_narrow_float(dtype) {
            true => format!("{element} = {}({new});", self.half(Conversion::Store, dtype)),
            false => format!("{element} = {new};"),
        }
    }

    /// A statement that combines two elements. A `bool` that nobody has written yet is not read.
    pub fn combine(&mut self, op: ReduceOp, dtype: DType, element: &str, other: &str) -> String {
        match op {
            ReduceOp::And => format!("if (!{other}) {element} = false;"),
            ReduceOp::Or => format!("if ({other}) {element} = true;"),
            _ if types::is_narrow_float(dtype) => {
                let value = format!("{}({other})", self.half(Conversion::Load, dtype));
                self.combined(op, dtype, element, &value)
            }
            _ => self.combined(op, dtype, element, other),
        }
    }

    /// What partial results start from, as it is stored.
    pub fn neutral(&mut self, op: ReduceOp, dtype: DType) -> String {
        let value = types::literal(crate::lower::neutral(op, dtype), dtype, true);
        if types::is_narrow_float(dtype) { format!("{}({value})", self.half(Conversion::Store, dtype)) } else { value }
    }

    /// The name of a reduction in OpenMP's clauses; what they do not have is declared. Their sum of floats starts from
    /// 0.0, which makes 0.0 of -0.0, and their minimum and maximum lose NaN.
    pub fn clause(&mut self, op: ReduceOp, dtype: DType) -> String {
        let own = match op {
            ReduceOp::And => return "&&".to_string(),
            ReduceOp::Or => return "||".to_string(),
            _ => dtype.is_float() && (op != ReduceOp::Mul || types::is_narrow_float(dtype)),
        };
        let name = op.info().op.info().name;
        if !own {
            return name.to_string();
        }
        let name = format!("wf_{}_all_{}", word(op), dtype.name());
        let (start, combine) = (self.neutral(op, dtype), self.combine(op, dtype, "omp_out", "omp_in"));
        self.helpers.reduction(&name, dtype, &start, combine.trim_end_matches(';'));
        name
    }
}

/// The operator in a name.
fn word(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Add => "add",
        ReduceOp::Mul => "mul",
        other => other.info().op.info().name,
    }
}

/// The operator of an augmented assignment in C, where there is one for the type.
fn operator(op: ReduceOp, dtype: DType) -> Option<&'static str> {
    let plain = !types::is_narrow_float(dtype);
    match op {
        ReduceOp::Add if plain => Some("+="),
        ReduceOp::Mul if plain => Some("*="),
        // The value has no effect and cannot fail, so that it may be computed in any case.
        ReduceOp::And | ReduceOp::BitAnd => Some("&="),
        ReduceOp::Or | ReduceOp::BitOr => Some("|="),
        ReduceOp::Add | ReduceOp::Mul | ReduceOp::Min | ReduceOp::Max => None,
    }
}
