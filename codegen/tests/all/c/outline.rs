//! The variables in a piece of generated C.

use taffeta_codegen::testing::identifiers;

#[test]
fn identifiers_in_comments_and_strings_are_ignored() {
    let code = "/* x: y */ a[i * 3 + 0x1f] += 1.0f * b->c + d.e - \"f \\\" g\" + h; #pragma omp simd";
    let found: Vec<&str> = identifiers(code).into_iter().collect();
    assert_eq!(found, ["a", "i", "b", "d", "h", "pragma", "omp", "simd"]);
}
