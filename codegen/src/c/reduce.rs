//! Reductions: in place, atomic, and combination of partial results.

use super::emitter::Emitter;
use super::emitter::Shared;
use super::half::Conversion;
use super::types;
use taffeta_ast::{Access, DType, Expr, ExprKind, ReduceOp, Symbol};

impl Emitter<'_> {
    /// Prints a reduction into an element.
    pub fn reduce(&mut self, tensor: &Symbol, indices: &[Access], op: ReduceOp, value: &Expr) {
        let dtype = value.dtype();
        let mut target = self.element(tensor, indices).text;
        match self.shared.get(&(tensor.clone(), op)).cloned() {
            None => {}
            Some(Shared::Copy(name)) => {
                let [a] = indices else { unreachable!("Flat: {} indices of `{tensor}`", indices.len()) };
                target = format!("{name}[{}]", self.expr(&a.index));
                // The previous value is the copy's, so the tensor's element must not be loaded.
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

    /// Returns a statement that combines an element with a value (not with another element in its storage form).
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

    /// Returns a statement that combines two elements. The previous value of a `bool` is not read, since it may be
    /// uninitialised.
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

    /// Prints the initial value of partial results in its storage type.
    pub fn neutral(&mut self, op: ReduceOp, dtype: DType) -> String {
        let value = types::literal(crate::lower::neutral(op, dtype), dtype, true);
        if types::is_narrow_float(dtype) { format!("{}({value})", self.half(Conversion::Store, dtype)) } else { value }
    }

    /// Returns the name of a reduction for OpenMP's clauses, and declares reductions that OpenMP lacks: its sums of
    /// floats start from 0.0, which turns -0.0 into 0.0, and its minimum and maximum lose NaN.
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
        let name = format!("taf_{}_all_{}", word(op), dtype.name());
        let (start, combine) = (self.neutral(op, dtype), self.combine(op, dtype, "omp_out", "omp_in"));
        self.helpers.reduction(&name, dtype, &start, combine.trim_end_matches(';'));
        name
    }
}

/// Returns the operator's name as part of an identifier.
fn word(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Add => "add",
        ReduceOp::Mul => "mul",
        other => other.info().op.info().name,
    }
}

/// Returns C's augmented assignment for the operator, if there is one for the type.
fn operator(op: ReduceOp, dtype: DType) -> Option<&'static str> {
    let plain = !types::is_narrow_float(dtype);
    match op {
        ReduceOp::Add if plain => Some("+="),
        ReduceOp::Mul if plain => Some("*="),
        // Evaluating the value has no side effect and cannot fail, so no short circuit is needed.
        ReduceOp::And | ReduceOp::BitAnd => Some("&="),
        ReduceOp::Or | ReduceOp::BitOr => Some("|="),
        ReduceOp::Add | ReduceOp::Mul | ReduceOp::Min | ReduceOp::Max => None,
    }
}
