//! Amounts of memory as people write them.

use taffeta_ast::bytes::{amount, parse};

#[test]
fn amounts_are_printed_with_units() {
    for (bytes, text) in [(7, "7 B"), (1500, "1.50 kB"), (80_000_000, "80.00 MB"), (1_100_000_000, "1.10 GB")] {
        assert_eq!(amount(bytes), text);
    }
}

#[test]
fn amounts_are_parsed_with_decimal_and_binary_units() {
    for (text, bytes) in [("512MB", 512_000_000), (" 1.5 GB", 1_500_000_000), ("64KiB", 65_536), ("12", 12), ("0b", 0)]
    {
        assert_eq!(parse(text), Ok(bytes), "{text}");
    }
    for text in ["", "much", "-3", "12 parsecs", "MB", "1e3"] {
        let wrong = parse(text).expect_err("it is not an amount");
        assert!(wrong.contains("is not an amount of memory"), "{wrong}");
    }
}
