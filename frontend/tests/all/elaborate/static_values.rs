//! Static values as text: `--set` of the command line.

use taffeta_frontend::StaticValue;

#[test]
fn printed_values_parse() {
    for text in ["32", "-3", "0.5", "True", "None", "(1, 2)", "(3,)", "[1, 'a']", "f32", "inf"] {
        let v: StaticValue = text.parse().unwrap();
        assert_eq!(v.to_string(), text);
    }
    assert_eq!("true".parse(), Ok(StaticValue::Bool(true)));
    assert_eq!("\"same\"".parse(), Ok(StaticValue::Str("same".into())));
    for wrong in ["", "x", "1 + 2", "f(1)", "1\ny = 2"] {
        assert!(wrong.parse::<StaticValue>().is_err(), "{wrong}");
    }
}
