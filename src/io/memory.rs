//! Refuses what does not fit in memory with a diagnostic, where an allocation would end the process.

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
    let mut d = Diagnostic::new("data::too_large", format!("{what}: {} do not fit in memory", human_bytes(bytes)));
    if available != u128::MAX {
        d = d.note(format!("{} are available", human_bytes(available)));
    }
    Err(d)
}

/// Memory that the system can give, in bytes (Linux; unknown elsewhere).
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// `1.5 MiB`.
pub fn human_bytes(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_overflow_or_do_not_fit_are_refused() {
        let overflow = check_tensor(DType::F64, &[usize::MAX, 2], "x").unwrap_err();
        assert_eq!(overflow.code, "data::too_large");
        let huge = check_tensor(DType::F64, &[1 << 50], "x").unwrap_err();
        assert!(huge.message.starts_with("x: 8.0 PiB do not fit"), "{huge}");
        assert_eq!(check_tensor(DType::F32, &[0, usize::MAX], "x").unwrap(), 0);
    }

    #[test]
    fn bytes_are_readable() {
        assert_eq!(human_bytes(7), "7 B");
        assert_eq!(human_bytes(1536), "1.5 KiB");
    }
}
