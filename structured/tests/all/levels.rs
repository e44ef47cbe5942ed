//! Packing in levels of all kinds: the arrays of each level, retrieval of every element, elements that a level cannot
//! hold, and the hash of `hashed`.

use expect_test::{Expect, expect};
use std::fmt::Write as _;
use taffeta_ast::format::{Format, Level, LevelKind, Named, coord, presets};
use taffeta_ast::{Buffer, DType, Literal, Value};
use taffeta_structured::{Stored, Unpackable, testing};
use testkit::random;

use random::{Drawn, equal, formats};

/// Parses the picture of a matrix, one row per line: a dot is an element that is not stored, and letters are 1, 2, 3 …
fn picture(rows: &str) -> (Vec<usize>, Vec<i64>, Buffer) {
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split_whitespace().collect()).collect();
    let (mut indices, mut elements) = (Vec::new(), Vec::new());
    for (i, row) in rows.iter().enumerate() {
        for (j, text) in row.iter().enumerate().filter(|(_, text)| **text != ".") {
            indices.extend([i as i64, j as i64]);
            elements.push(f64::from(text.as_bytes()[0] - b'a' + 1));
        }
    }
    (vec![rows.len(), rows[0].len()], indices, Buffer::F64(elements))
}

fn format(levels: &[Level]) -> Format {
    Format::new(levels.to_vec())
}

fn numbers(v: &Value) -> String {
    let one = |k: usize| match v.data().get_int(k) {
        Some(i) => i.to_string(),
        None => v.data().get_f64(k).to_string(),
    };
    (0..v.data().len()).map(one).collect::<Vec<_>>().join(" ")
}

/// Checks the arrays of a picture as in the head of the level's file.
#[track_caller]
fn drawn(levels: &[Level], rows: &str, expect: Expect) {
    let (shape, indices, elements) = picture(rows);
    let stored = Stored::pack(&shape, &format(levels), &indices, &elements).unwrap_or_else(|e| panic!("{e}"));
    let mut text = String::new();
    for array in stored.arrays() {
        writeln!(text, "{} {}", array.data().dtype(), numbers(array)).expect("it is text");
    }
    writeln!(text, "hidden {:?}", stored.hidden()).expect("it is text");
    expect.assert_eq(&text);
    let found = stored.elements();
    let places = found.places().expect("it is sparse");
    for (at, e) in indices.chunks_exact(2).zip(0..) {
        let k = places.indices.chunks_exact(2).position(|p| p == at).expect("it is stored");
        assert_eq!(found.data().get(k), elements.get(e));
    }
}

#[test]
fn arrays_of_every_level() {
    use LevelKind::*;
    let level = Level::new;
    let rows = ". a . b\n. . . .\nc . . .";
    let below = |kind: LevelKind| [level(Dense), level(kind)];
    drawn(
        &below(Compressed),
        rows,
        expect![[r#"
        i32 0 2 2 3
        i32 1 3 0
        f64 1 2 3
        hidden [3]
    "#]],
    );
    drawn(
        &[Level { unique: false, ..level(Compressed) }, level(Singleton)],
        rows,
        expect![[r#"
        i32 0 3
        i32 0 0 2
        i32 1 3 0
        f64 1 2 3
        hidden [3]
    "#]],
    );
    drawn(
        &below(Hashed),
        rows,
        expect![[r#"
        i32 0 2 2 3
        i32 1 3 0
        i32 0 4 5 7
        i32 2 1 0 0 0 3 0
        f64 1 2 3
        hidden [3, 7]
    "#]],
    );
    drawn(
        &below(Bytemap),
        rows,
        expect![[r#"
        i32 0 2 2 3
        i32 1 3 0
        u8 0 1 0 1 0 0 0 0 1 0 0 0
        f64 0 1 0 2 0 0 0 0 3 0 0 0
        hidden [3]
    "#]],
    );
    drawn(
        &below(Bitmap),
        rows,
        expect![[r#"
        u8 10 0 1
        f64 0 1 0 2 0 0 0 0 3 0 0 0
        hidden []
    "#]],
    );
    drawn(
        &below(Banded),
        ". a b .\n. . . .\nc d e .",
        expect![[r#"
        i32 0 2 2 5
        i32 1 0 0
        f64 1 2 3 4 5
        hidden [5]
    "#]],
    );
    drawn(
        &below(Ragged),
        "a b c .\n. . . .\nd . . .",
        expect![[r#"
        i32 0 3 3 4
        f64 1 2 3 4
        hidden [4]
    "#]],
    );
    drawn(
        &below(Blocklist),
        ". a b . c .\n. . . . . .\nd e . . . .",
        expect![[r#"
        i32 0 2 2 3
        i32 3 5 2
        i32 0 2 3 5
        f64 1 2 3 4 5
        hidden [3, 5]
    "#]],
    );
    drawn(
        &below(RunLength),
        "a a a b . .\n. . . . . .\nc d d d c c",
        expect![[r#"
        i32 0 3 4 7
        i32 3 4 6 6 1 4 6
        f64 1 2 0 0 3 4 3
        hidden [7]
    "#]],
    );
    drawn(
        &below(PackBits),
        "a a a b c . d\n. . . . . . .",
        expect![[r#"
        i32 0 2 3
        i32 3 7 7
        i32 0 1 5 6
        f64 1 2 3 0 4 0
        hidden [3, 6]
    "#]],
    );
    drawn(
        &below(LowerTriangular),
        "a . .\nb c .\nd e f",
        expect![[r#"
        f64 1 2 3 4 5 6
        hidden []
    "#]],
    );
    drawn(
        &below(UpperTriangular),
        "a b c\n. d e\n. . f",
        expect![[r#"
        f64 1 2 3 4 5 6
        hidden []
    "#]],
    );
    drawn(
        &below(Symmetric),
        "a b d\nb c e\nd e f",
        expect![[r#"
        f64 1 2 3 4 5 6
        hidden []
    "#]],
    );
    drawn(
        &below(Point),
        ". a . .\n. . . .\nb . . .",
        expect![[r#"
        i32 1 4 0
        f64 1 0 2
        hidden []
    "#]],
    );
}

/// Checks which elements are joined in runs and in stretches: equal ones and NaNs, but not 0 and -0.
#[test]
fn runs_consist_of_equal_elements() {
    let nan = f64::from_bits(f64::NAN.to_bits() ^ 1);
    let row = [0.0, 0.0, -0.0, f64::NAN, nan, nan, 1.0, 2.0, 2.0];
    let indices: Vec<i64> = (0..9).collect();
    let arrays = |kind: LevelKind| {
        let stored = Stored::pack(&[11], &format(&[Level::new(kind)]), &indices, &Buffer::F64(row.to_vec()));
        stored.expect("it fits").arrays().iter().map(numbers).collect::<Vec<_>>()
    };
    assert_eq!(arrays(LevelKind::RunLength), ["0 6", "2 3 6 7 9 11", "0 -0 NaN 1 2 0"]);
    assert_eq!(arrays(LevelKind::PackBits), ["0 3", "3 6 11", "0 3 4 9", "0 0 -0 NaN 1 2 2 0 0"]);
}

/// Checks that an element that a level cannot hold is an error that names the element.
#[test]
fn elements_that_levels_cannot_hold() {
    use LevelKind::*;
    let refused = |kind: LevelKind, rows: &str| {
        let (shape, indices, elements) = picture(rows);
        let levels = [Level::new(Dense), Level::new(kind)];
        Stored::pack(&shape, &format(&levels), &indices, &elements).expect_err("it does not fit").to_string()
    };
    let text = refused(LowerTriangular, "a . .\nb c d\n. . e");
    assert_eq!(text, "cannot store the element at (1, 2): `triangular` stores nothing there");
    let text = refused(UpperTriangular, "a . .\nb c d\n. . e");
    assert_eq!(text, "cannot store the element at (1, 0): `triangular(upper=True)` stores nothing there");
    let text = refused(Symmetric, "a b .\n. c d\n. e .");
    assert_eq!(text, "the elements at (1, 2) and (2, 1) differ, but `symmetric` stores one for both");
    let text = refused(Point, ". a\nb c\n. .");
    assert_eq!(text, "cannot store the elements at (1, 0) and (1, 1): `point` stores at most one of them");
    let text = refused(Symmetric, "a b\nb c\n. .");
    assert_eq!(text, "indices, elements and shape do not match");
    // In column order, the other half of the matrix is stored.
    let (shape, indices, elements) = picture("a b\n. c");
    let columns = format(&[Level::new(Dense), Level::new(LowerTriangular)]).ordered(&[1, 0]);
    let stored = Stored::pack(&shape, &columns, &indices, &elements).expect("it fits");
    assert_eq!(numbers(&stored.arrays()[0]), "1 2 3");
    // A level that stores every coordinate needs memory for all of them.
    let wide = Stored::pack(
        &[1 << 40; 2],
        &format(&[Level::new(Compressed), Level::new(Dense)]),
        &[3, 5],
        &Buffer::F64(vec![1.0]),
    );
    assert_eq!(wide.map(|_| ()), Err(Unpackable::Memory(Some(8 << 40))));
}

/// Checks that duplicates are packed as one element, with their sum, even where the format has room for both.
#[test]
fn duplicates_are_summed_when_packed() {
    let coo = format(&[Level { unique: false, ..Level::new(LevelKind::Compressed) }, Level::new(LevelKind::Singleton)]);
    let indices = [1, 1, 0, 2, 1, 1, 0, 2, 1, 0];
    let elements = Buffer::F32(vec![1e8, 2.0, 1.0, 3.0, 5.0]);
    let stored = Stored::pack(&[2, 3], &coo, &indices, &elements).expect("it fits");
    let arrays: Vec<String> = stored.arrays().iter().map(numbers).collect();
    assert_eq!(arrays, ["0 3", "0 1 1", "2 0 1", "5 5 100000000"]);
    // There is one position for each row and column, with a list below: the third dimension does not distinguish
    // positions.
    let levels = [coo.levels[0], coo.levels[1], Level::new(LevelKind::Compressed)];
    let indices = [0, 1, 4, 0, 2, 0, 0, 2, 3, 1, 2, 3];
    let elements = Buffer::I64(vec![1, 2, 3, 4]);
    let stored = Stored::pack(&[2, 3, 5], &format(&levels), &indices, &elements).expect("it fits");
    let arrays: Vec<String> = stored.arrays().iter().map(numbers).collect();
    assert_eq!(arrays, ["0 3", "0 0 1", "1 2 2", "0 1 3 4", "4 0 3 3", "1 2 3 4"]);
}

/// Checks diagonals and blocks, with padding for coordinates outside of the matrix.
#[test]
fn arrays_of_remapped_formats() {
    let arrays = |format: &Format, rows: &str| {
        let (shape, indices, elements) = picture(rows);
        let stored = Stored::pack(&shape, format, &indices, &elements).unwrap_or_else(|e| panic!("{e}"));
        stored.arrays().iter().map(numbers).collect::<Vec<_>>()
    };
    let dia = Named::Dia.format(2).expect("of matrices");
    assert_eq!(arrays(&dia, "a b . c\n. d e .\n. . . f"), ["2 3 5", "1 4 0 2 5 6 3 0 0"]);
    let ell = Named::Ell.format(2).expect("of matrices");
    assert_eq!(arrays(&ell, ". a . b\n. . . .\nc . . ."), ["0 2", "1 4 0 3 4 4", "1 0 3 2 0 0"]);
    let (coords, keys) = coord::parse("(i // 2, counter(i), i % 2, j)").expect("coordinates of levels");
    let slices = Level::parse_list("dense, sliced, dense, singleton").expect("levels");
    let slices = Format::new(slices).remapped(coords, keys);
    assert_eq!(arrays(&slices, ". a . b\n. . . .\nc . . ."), ["0 2 3", "1 4 3 4 0 4", "1 0 2 0 3 0"]);
    let blocks = presets::bcsr(2, 3);
    let rows = "a . . .\nb . . c\n. . . d";
    assert_eq!(arrays(&blocks, rows), ["0 2 3", "0 1 1", "1 0 0 2 0 0 0 0 0 3 0 0 4 0 0 0 0 0"]);
}

/// Checks that the given elements are stored, and that levels that store whole regions have the fill elsewhere, or the
/// mirrored element across a symmetry.
#[track_caller]
fn holds(stored: &Stored, given: &Value, format: &Format) {
    use LevelKind::*;
    let found = stored.elements();
    let (places, wanted) = (found.places().expect("it is sparse"), given.places().expect("it is sparse"));
    let ndim = given.shape().len();
    let at = |indices: &[i64], v: &Value, e: &[i64]| {
        let k = indices.chunks_exact(ndim).collect::<Vec<_>>().binary_search(&e).ok();
        k.map(|k| v.data().get_f64(k))
    };
    for (e, k) in wanted.indices.chunks_exact(ndim).zip(0..) {
        let (was, is) = (given.data().get_f64(k), at(&places.indices, &found, e));
        assert!(is.is_some_and(|is| equal(was, is)), "{format}: {e:?}: expected {was}, found {is:?}");
    }
    let regions = format.levels.iter().any(|l| {
        let lists = [Compressed, Singleton, Hashed, Bytemap, Bitmap, Blocklist, Point];
        !lists.contains(&l.kind)
    });
    if !regions {
        assert_eq!(places.indices, wanted.indices, "{format}");
    }
    let Literal::Float(fill) = wanted.fill else { panic!("floats have one") };
    let mirrored = format.squares().find(|(l, _)| l.kind == Symmetric).map(|(_, square)| square);
    for (e, k) in places.indices.chunks_exact(ndim).zip(0..) {
        let other = mirrored.and_then(|[a, b]| {
            let mut other = e.to_vec();
            other.swap(a, b);
            at(&wanted.indices, given, &other)
        });
        let expected = at(&wanted.indices, given, e).or(other).unwrap_or(fill);
        let is = found.data().get_f64(k);
        assert!(equal(is, expected), "{format}: {e:?}: expected {expected}, found {is}");
    }
}

fn round(format: &Format, seed: u64) {
    packed_and_read(random::tensor(format, seed));
}

fn packed_and_read(Drawn { format, stored, given }: Drawn) {
    let index = format.levels[0].index.unwrap_or(DType::I32);
    let (_, arrays) = stored.arrays().split_last().expect("the elements");
    // Positions are at least i32; bytes and bits are u8.
    let at_least = if matches!(index, DType::U8 | DType::U16) { DType::I32 } else { index };
    assert!(arrays.iter().all(|a| [index, at_least, DType::U8].contains(&a.data().dtype())), "{format}");
    holds(&stored, &given, &format);
}

#[test]
fn every_level_alone() {
    let all = formats(1);
    assert!(all.len() >= 12, "{all:?}");
    all.iter().for_each(|f| (0..200).for_each(|seed| round(f, seed)));
}

#[test]
fn every_level_below_every_other() {
    let all = formats(2);
    assert!(all.len() > 120, "{}", all.len());
    all.iter().for_each(|f| (0..60).for_each(|seed| round(f, seed)));
}

#[test]
fn levels_below_two_others() {
    let all = formats(3);
    assert!(all.len() > 1200, "{}", all.len());
    all.iter().enumerate().for_each(|(k, f)| (0..5).for_each(|seed| round(f, seed + 5 * k as u64)));
}

#[test]
fn remapped_levels() {
    random::remapped().iter().for_each(|f| (0..200).for_each(|seed| packed_and_read(random::remapped_matrix(f, seed))));
}

/// Checks the largest coordinate of each index type, and that a larger one is refused.
#[test]
fn indices_that_are_too_large_are_refused() {
    let list = |index: DType| format(&[Level { index: Some(index), ..Level::new(LevelKind::Compressed) }]);
    let one = |index: DType, at: i64| {
        Stored::pack(&[1 << 40], &list(index), &[at], &Buffer::F64(vec![1.0])).map(|s| numbers(&s.arrays()[1]))
    };
    for (index, most) in [(DType::U8, 255), (DType::U16, 65_535), (DType::I32, (1 << 31) - 1)] {
        assert_eq!(one(index, most), Ok(most.to_string()));
        assert_eq!(one(index, most + 1), Err(Unpackable::Index(index)));
    }
    assert_eq!(one(DType::I64, (1 << 40) - 1), Ok(((1i64 << 40) - 1).to_string()));
    // Positions may outnumber coordinates, and so have a wider type.
    let small = Level { index: Some(DType::U8), ..Level::new(LevelKind::Compressed) };
    let at: Vec<i64> = (0..600).flat_map(|e| [e / 2, e % 2 * 100]).collect();
    let rows = format(&[Level::new(LevelKind::Compressed), small]);
    let stored = Stored::pack(&[300, 101], &rows, &at, &Buffer::F64(vec![1.0; 600])).expect("coordinates below 256");
    assert_eq!([2, 3].map(|k| stored.arrays()[k].dtype()), [DType::I32, DType::U8]);
    // Every level kind with indices is tried, with elements that it can hold.
    let many: Vec<i64> = (0..300).collect();
    let different: Vec<f64> = (0..300).map(f64::from).collect();
    let candidates = [(&many[..], &different[..]), (&many, &[1.0; 300]), (&[299], &[1.0])];
    // Positions are at least i32, and `ragged` has no other indices.
    let others = [LevelKind::Sliced, LevelKind::Ragged];
    for kind in LevelKind::ALL.iter().filter(|k| k.has_indices() && !others.contains(k)) {
        let pack = |index: DType, (at, elements): (&[i64], &[f64])| {
            let own = Level { index: Some(index), ..Level::new(*kind) };
            let elements = Buffer::F64(elements.to_vec());
            if format(&[own]).check(1).is_ok() {
                return Stored::pack(&[300], &format(&[own]), at, &elements).map(drop);
            }
            let upper = Level { unique: false, ..Level::new(LevelKind::Compressed) };
            let at: Vec<i64> = at.iter().flat_map(|j| [0, *j]).collect();
            Stored::pack(&[1, 300], &format(&[upper, own]), &at, &elements).map(drop)
        };
        let held: Vec<_> = candidates.into_iter().filter(|c| pack(DType::I64, *c).is_ok()).collect();
        let refused = |c: &_| pack(DType::U8, *c) == Err(Unpackable::Index(DType::U8));
        assert!(held.iter().any(refused), "{kind:?}");
    }
}

/// Checks that memory is proportional to the number of elements, in dimensions of any size.
#[test]
fn few_elements_of_a_wide_matrix() {
    let wide = 1_000_000_000i64;
    let indices: Vec<i64> = (0..1000).flat_map(|k| [k * 999_983, (k * 7_919_000_003) % wide]).collect();
    let elements = Buffer::F64((0..1000).map(f64::from).collect());
    for kinds in [[LevelKind::Compressed; 2], [LevelKind::Hashed; 2], [LevelKind::Compressed, LevelKind::Blocklist]] {
        let format = format(&kinds.map(Level::new));
        let stored = Stored::pack(&[wide as usize; 2], &format, &indices, &elements).expect("it fits");
        let room: usize = stored.arrays().iter().map(|a| a.data().len()).sum();
        assert!(room < 20_000, "{format}: {room}");
        let found = stored.elements();
        assert_eq!(found.places().map(|p| &p.indices), Some(&indices), "{format}");
    }
}

/// Checks that consecutive coordinates, and coordinates of a constant stride, do not cluster.
#[test]
fn searches_are_short() {
    for step in [1, 2, 3, 32, 1000, 1 << 13, 999_983, 1 << 32, 1 << 33] {
        for n in [10i64, 1000, 5000] {
            let mask = (2 * n as u64).next_power_of_two() as i64 - 1;
            let mut table = vec![false; mask as usize + 1];
            let mut steps = 0;
            for j in (0..n).map(|k| k * step) {
                let mut s = testing::slot(j, mask);
                assert!((0..=mask).contains(&s));
                while std::mem::replace(&mut table[s as usize], true) {
                    s = (s + 1) & mask;
                    steps += 1;
                }
            }
            assert!(steps <= 2 * n, "{n} coordinates in steps of {step} take {steps} steps");
        }
    }
}
