//! Choice of names in C.

use taffeta_codegen::c::names::{Names, entry};

#[test]
fn names_are_c_names_and_never_clash() {
    let mut names = Names::default();
    let mut get = |wish: &str| names.fresh(wish);
    assert_eq!(get("x"), "x");
    assert_eq!(get("x"), "x_2");
    assert_eq!(get("x_2"), "x_2_2");
    assert_eq!(get("x_3"), "x_3");
    assert_eq!(get("x"), "x_4");
    assert_eq!(get("y.d0"), "y_d0");
    assert_eq!(get("λ"), "u03bb");
    assert_eq!(get("for"), "for_");
    assert_eq!(get("expf"), "expf_");
    assert_eq!(get("_x"), "v_x");
    assert_eq!(get("i~o"), "i_o");
    assert_eq!(get("M_PI"), "M_PI_");
    assert_eq!(get("A"), "A");
    assert_eq!(get("taf_fail"), "taf_fail_");
    assert_eq!(entry("fail"), "taffeta_fail");
    assert_eq!(entry("free"), "taffeta_free_");
}
