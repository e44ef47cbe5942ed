//! Parsing of printed coordinates.

use taffeta_ast::format::coord::parse;
use taffeta_ast::format::{Format, Named, presets};

fn both(format: &Format) {
    let text = format.remap();
    let (coords, keys) = parse(&text).unwrap_or_else(|| panic!("{text}"));
    assert_eq!((&coords[..], &keys[..]), (&*format.coords, &*format.keys), "{text}");
}

#[test]
fn printed_coordinates_parse() {
    for (_, name) in Named::ALL {
        (0..9).filter_map(|n| name.format(n)).for_each(|f| both(&f));
    }
    both(&presets::bcsr(4, 3));
    for text in ["(j - (i - -3), i)", "(i | j ^ i & 3, (i | j) & 7, i << 2 >> 1, j)", "(i - j - i, (i - j) * 2 // 3)"] {
        let (coords, keys) = parse(text).expect(text);
        let format = Format { coords: coords.into(), keys: keys.into(), ..Format::dense(1) };
        assert_eq!(format.remap(), text.replace("i - -3", "i - (-3)"));
        both(&format);
    }
}

#[test]
fn invalid_texts_are_rejected() {
    let deep = format!("({}i{})", "(".repeat(1000), ")".repeat(1000));
    for text in
        ["", "(", "(i", "i, j", "(i, j) k", "(x)", "(i +)", "(morton(i)", "(order(i)", "(99999999999999999999)", &deep]
    {
        assert_eq!(parse(text), None, "{text}");
    }
}
