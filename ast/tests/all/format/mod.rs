//! Tests of formats: display, names, and validity of level orders.

mod coord;
mod inverse;

use taffeta_ast::format::{Format, Level, LevelKind, Named, Pattern};
use taffeta_ast::{DType, Literal};

fn levels(kinds: &[LevelKind]) -> Format {
    Format::new(kinds.iter().map(|k| Level::new(*k)).collect())
}

#[test]
fn formats_are_printed_as_source() {
    let coo = Named::Coo.format(3).expect("any number of dimensions");
    assert_eq!(coo.text(), "format(compressed(unique=False), singleton(unique=False), singleton)");
    let wide = Level { ordered: false, index: Some(DType::I64), ..Level::new(LevelKind::Compressed) };
    let format = Format::new(vec![Level::new(LevelKind::UpperTriangular), wide]).ordered(&[1, 0]);
    let format = Format { fill: Some(Literal::Float(f64::INFINITY)), ..format };
    let text = "format(triangular(upper=True), compressed(ordered=False, index=i64), order=(1, 0), fill=inf)";
    assert_eq!(format.text(), text);
}

/// Checks that every named format is valid for every number of dimensions for which it exists.
#[test]
fn named_formats_are_valid() {
    for (name, named) in Named::ALL {
        assert_eq!((named.name(), Named::find(name)), (*name, Some(*named)));
        let found: Vec<usize> = (0..5).filter(|n| named.format(*n).is_some()).collect();
        for ndim in &found {
            let format = named.format(*ndim).expect("it is one");
            assert_eq!(format.check(*ndim), Ok(()), "{name} of {ndim}: {format}");
            assert!(!format.is_dense(), "{name}");
        }
        assert!(found == [2] || found == [1, 2, 3, 4], "{name} is one of {found:?} dimensions");
    }
}

#[test]
fn levels_require_properties_of_the_levels_above() {
    use LevelKind::*;
    let message = |format: &Format| format.check(format.levels.len()).expect_err("it is not a format").to_string();
    assert!(message(&levels(&[Dense, Singleton])).starts_with("`singleton` needs a level above it"));
    assert!(message(&levels(&[Compressed, Symmetric])).contains("needs a `dense` level above it"));
    assert!(message(&levels(&[RunLength, Dense])).contains("`runlength` is not injective"));
    let twice = Level { unique: false, ..Level::new(Compressed) };
    assert!(message(&Format::new(vec![twice])).contains("an element would be stored twice"));
    assert!(message(&Format::new(vec![twice, Level::new(Compressed)])).contains("is not branchless"));
    let message = levels(&[Dense, Compressed]).check(3).expect_err("a dimension is missing").message;
    assert_eq!(message, "a format of 2 levels cannot store 3 dimensions");
    let message = levels(&[Dense, Compressed]).ordered(&[0, 0]).check(2).expect_err("0 occurs twice").message;
    assert_eq!(message, "`order=` names the dimensions 0, 0, but there are 2");
}

/// Checks that triangular and symmetric levels report their two dimensions, whatever the order of the levels.
#[test]
fn triangular_and_symmetric_levels_report_their_dimensions() {
    use LevelKind::*;
    let squares = |f: &Format| f.squares().map(|(l, d)| (l.kind, d)).collect::<Vec<_>>();
    assert_eq!(squares(&levels(&[Dense, Compressed])), []);
    let two = levels(&[Dense, LowerTriangular, Dense, Symmetric]).ordered(&[3, 0, 1, 2]);
    assert_eq!(two.check(4), Ok(()));
    assert_eq!(squares(&two), [(LowerTriangular, [3, 0]), (Symmetric, [1, 2])]);
}

/// Checks that tensors with equal levels have equal formats exactly if they share a pattern.
#[test]
fn formats_differ_by_pattern() {
    let csr = levels(&[LevelKind::Dense, LevelKind::Compressed]);
    let (a, b) = (Pattern::fresh(), Pattern::fresh());
    let with = |p: Pattern| Format { pattern: Some(p), ..csr.clone() };
    assert_eq!(with(a), with(a));
    assert_ne!(with(a), with(b));
    assert_eq!(with(a).text(), csr.text());
}
