//! Constants in C.

use taffeta_ast::DType;
use taffeta_ast::expr::Literal;
use taffeta_codegen::testing::literal;

#[test]
fn constants_round_trip() {
    let int = |i, t| literal(Literal::Int(i), t, false);
    assert_eq!(int(5, DType::I64), "5");
    assert_eq!(int(1 << 40, DType::I64), "INT64_C(1099511627776)");
    assert_eq!(int(i128::from(i64::MIN), DType::I64), "INT64_MIN");
    assert_eq!(int(i128::from(i32::MIN), DType::I32), "INT32_MIN");
    assert_eq!(int(i128::from(u64::MAX), DType::U64), "UINT64_C(18446744073709551615)");
    assert_eq!(literal(Literal::Int(1), DType::I64, true), "INT64_C(1)");
    let float = |f, t| literal(Literal::Float(f), t, false);
    assert_eq!(float(0.1, DType::F64), "0.1");
    assert_eq!(float(f64::from(0.1f32), DType::F32), "0.1f");
    assert_eq!(float(-0.0, DType::F32), "-0.0f");
    assert_eq!(float(1e300, DType::F64), "1e300");
    assert_eq!(float(f64::NEG_INFINITY, DType::F64), "-(double)INFINITY");
}
