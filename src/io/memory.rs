//! Memory checks: diagnostics for tensors that do not fit in memory, whose allocation would abort the process.

use taffeta_ast::bytes::{amount, available, fit};
use taffeta_ast::value::element_count;
use taffeta_ast::{DType, Diagnostic};

/// Returns the bytes of a tensor, if they can be allocated.
pub fn check_tensor(dtype: DType, shape: &[usize], what: &str) -> Result<usize, Diagnostic> {
    check_named(dtype, shape, || what.to_string())
}

/// Returns the bytes of a tensor as [`check_tensor`] does; the name is built for a diagnostic only.
pub fn check_named(dtype: DType, shape: &[usize], what: impl Fn() -> String) -> Result<usize, Diagnostic> {
    let bytes = element_count(shape).and_then(|n| n.checked_mul(dtype.size())).filter(|b| *b <= isize::MAX as usize);
    let Some(bytes) = bytes else {
        return Err(Diagnostic::new(
            "data::too_large",
            format!("{}: the number of bytes of {dtype}{} overflows", what(), super::want::shape_text(shape)),
        ));
    };
    if !fit(bytes as u128) {
        check_bytes(bytes as u128, &what())?;
    }
    Ok(bytes)
}

/// Checks that `bytes` can be allocated.
pub fn check_bytes(bytes: u128, what: &str) -> Result<(), Diagnostic> {
    if fit(bytes) {
        return Ok(());
    }
    let mut d = Diagnostic::new("data::too_large", format!("{what}: {} do not fit in memory", shown(bytes)));
    if let Some(available) = available() {
        d = d.note(format!("{} are available", amount(available)));
    }
    Err(d)
}

fn shown(bytes: u128) -> String {
    amount(u64::try_from(bytes).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_overflow_or_do_not_fit_are_refused() {
        let overflow = check_tensor(DType::F64, &[usize::MAX, 2], "x").unwrap_err();
        assert_eq!(overflow.code, "data::too_large");
        let huge = check_tensor(DType::F64, &[1 << 50], "x").unwrap_err();
        assert!(huge.message.starts_with("x: 9.01 PB do not fit"), "{huge}");
        assert_eq!(check_tensor(DType::F32, &[0, usize::MAX], "x").unwrap(), 0);
    }
}
