//! Refuses what does not fit in memory with a diagnostic, where an allocation would end the process.

use taffeta_ast::bytes::amount;
use taffeta_ast::value::element_count;
use taffeta_ast::{DType, Diagnostic};

/// Bytes of a tensor, if it can be allocated.
pub fn check_tensor(dtype: DType, shape: &[usize], what: &str) -> Result<usize, Diagnostic> {
    let bytes = element_count(shape).and_then(|n| n.checked_mul(dtype.size())).filter(|b| *b <= isize::MAX as usize);
    let Some(bytes) = bytes else {
        return Err(Diagnostic::new(
            "data::too_large",
            format!("{what}: the number of bytes of {dtype}{} overflows", super::shape_text(shape)),
        ));
    };
    check_bytes(bytes as u128, what)?;
    Ok(bytes)
}

/// Whether so many bytes can be allocated now.
pub fn check_bytes(bytes: u128, what: &str) -> Result<(), Diagnostic> {
    const ALWAYS_FINE: u128 = 64 << 20;
    if bytes <= ALWAYS_FINE {
        return Ok(());
    }
    let available = available().map_or(u128::MAX, u128::from);
    // The probe catches limits that /proc does not know (ulimit, 32-bit address spaces).
    let fits =
        bytes <= available && usize::try_from(bytes).is_ok_and(|n| Vec::<u8>::new().try_reserve_exact(n).is_ok());
    if fits {
        return Ok(());
    }
    let mut d = Diagnostic::new("data::too_large", format!("{what}: {} do not fit in memory", shown(bytes)));
    if available != u128::MAX {
        d = d.note(format!("{} are available", shown(available)));
    }
    Err(d)
}

fn shown(bytes: u128) -> String {
    amount(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// Memory that the system can give, in bytes (Linux; unknown elsewhere).
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
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
