//! Byte counts: formatting and parsing for people, and whether an allocation would fit. Output uses SI units everywhere
//! (`1.50 MB` is 1,500,000 bytes).

use bytesize::ByteSize;

/// Formats a byte count: `1.50 MB`.
pub fn amount(bytes: u64) -> String {
    format!("{:.2}", ByteSize::b(bytes).display().si())
}

/// Parses a byte count as people write it: `512MB`, `1.5 GB`, `64KiB`, `1000000`.
///
/// # Errors
///
/// A message that shows the text and two valid amounts.
pub fn parse(text: &str) -> Result<u64, String> {
    let wrong = |_| format!("`{}` is not an amount of memory: write one like 512MB or 64KiB", text.trim());
    text.trim().parse().map(|ByteSize(bytes)| bytes).map_err(wrong)
}

/// Returns whether this many bytes can be allocated at present.
pub fn fit(bytes: u128) -> bool {
    const ALWAYS: u128 = 64 << 20;
    // The probe catches limits that /proc does not know (ulimit, 32-bit address spaces).
    let probe = || usize::try_from(bytes).is_ok_and(|n| Vec::<u8>::new().try_reserve_exact(n).is_ok());
    bytes <= ALWAYS || bytes <= available().map_or(u128::MAX, u128::from) && probe()
}

/// Returns the memory that the system can provide, in bytes (Linux; unknown elsewhere).
pub fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
