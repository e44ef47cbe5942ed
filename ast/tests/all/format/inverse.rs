//! Indices of elements from the coordinates of their levels.

use taffeta_ast::Op;
use taffeta_ast::format::{Coord, Format, Level, LevelKind};

fn format(coords: &[Coord]) -> Format {
    let levels = vec![Level::new(LevelKind::Dense); coords.len()];
    Format { coords: coords.into(), ..Format::new(levels) }
}

fn by(op: Op, a: &Coord, b: i64) -> Coord {
    Coord::apply(op, a.clone(), Coord::Int(b))
}

#[test]
fn indices_are_recovered_from_coordinates() {
    let (i, j) = (Coord::Dim(0), Coord::Dim(1));
    let diagonal = Coord::apply(Op::Sub, j.clone(), i.clone());
    let block = |op, by_: [i64; 2]| [by(op, &i, by_[0]), by(op, &j, by_[1])];
    let cases: Vec<Vec<Coord>> = vec![
        vec![diagonal.clone(), i.clone(), j.clone()],
        vec![diagonal.clone(), j.clone()],
        [block(Op::FloorDiv, [2, 3]), block(Op::Mod, [2, 3])].concat(),
        [block(Op::Shr, [2, 1]), block(Op::BitAnd, [3, 1])].concat(),
        vec![by(Op::Add, &by(Op::Mul, &i, 4), 3), Coord::apply(Op::Add, i.clone(), j.clone())],
        vec![
            Coord::apply(Op::Sub, by(Op::FloorDiv, &j, 3), by(Op::FloorDiv, &i, 2)),
            by(Op::FloorDiv, &i, 2),
            by(Op::FloorDiv, &j, 3),
            by(Op::Mod, &i, 2),
            by(Op::Mod, &j, 3),
        ],
        // Nested blocks.
        vec![
            by(Op::FloorDiv, &by(Op::FloorDiv, &i, 2), 2),
            by(Op::Mod, &by(Op::FloorDiv, &i, 2), 2),
            by(Op::Mod, &i, 2),
            j.clone(),
        ],
    ];
    for coords in cases {
        let format = format(&coords);
        let indices = format.indices(2);
        for (a, b) in (0..9).flat_map(|a| (0..9).map(move |b| (a, b))) {
            let levels: Vec<i64> = coords.iter().map(|c| c.value(&[a, b]).expect("it has one")).collect();
            let back: Vec<Option<i64>> = indices.iter().map(|c| c.as_ref().and_then(|c| c.value(&levels))).collect();
            assert_eq!(back, [Some(a), Some(b)], "{coords:?}");
        }
    }
}

#[test]
fn indices_without_enough_levels_are_unknown() {
    let (i, j) = (Coord::Dim(0), Coord::Dim(1));
    let half = format(&[by(Op::FloorDiv, &i, 2), j.clone()]);
    assert_eq!(half.indices(2), [None, Some(Coord::Dim(1))]);
    let sums = format(&[Coord::apply(Op::Add, i.clone(), j.clone()), by(Op::Mod, &j, 2)]);
    assert_eq!(sums.indices(2), [None, None]);
}

#[test]
fn levels_determined_by_levels_above_are_derived() {
    let (i, j) = (Coord::Dim(0), Coord::Dim(1));
    let dia = format(&[Coord::apply(Op::Sub, j.clone(), i.clone()), i, j]);
    assert_eq!(dia.derived(2).map(|c| c.value(&[-3, 5])), Some(Some(2)));
    assert_eq!((dia.derived(0), dia.derived(1)), (None, None));
}
