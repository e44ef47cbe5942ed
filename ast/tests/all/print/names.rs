//! Names of symbols in the printed text.

use taffeta_ast::Symbol;
use taffeta_ast::testing::Names;

#[test]
fn suffixes_are_reused_after_scopes_end() {
    let mut names = Names::default();
    let bind = |names: &mut Names, text: &str| {
        let symbol = Symbol::new(text);
        names.bind(&symbol, false);
        (names.text(&symbol), symbol)
    };
    let (first, x) = bind(&mut names, "x");
    let (second, x_1) = bind(&mut names, "x");
    // A symbol's own name may equal a numbered one.
    let (own, x_2) = bind(&mut names, "x_2");
    let (third, _) = bind(&mut names, "x");
    assert_eq!([first, second, own, third], ["x", "x_1", "x_2", "x_3"]);
    names.unbind(&x_2);
    assert_eq!(bind(&mut names, "x").0, "x_2");
    names.unbind(&x_1);
    names.unbind(&x);
    assert_eq!(["x", "x", "x"].map(|text| bind(&mut names, text).0), ["x", "x_1", "x_4"]);
}
