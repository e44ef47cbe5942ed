//! Borrowed arrays: the arrays of `Stored::pack` are accepted in every format, and modified arrays are refused or can
//! be read.

use taffeta_ast::format::{Format, Level, LevelKind, Named};
use taffeta_ast::{Buffer, DType, Literal, Value};
use taffeta_structured::{Indices, Stored, Unfit, Unpackable, arrays_of, check};
use testkit::cases::data::indices;
use testkit::random;

use random::{Drawn, Random, formats};

fn checked(shape: &[usize], format: &Format, arrays: &[Value]) -> Result<Vec<i64>, Unfit> {
    let (values, own) = arrays.split_last().expect("the elements");
    let own: Vec<Indices<'_>> = own.iter().map(indices).collect();
    check("A", shape, format, &own, values.data().len())
}

/// Checks that a packed tensor is accepted, and that it can be read after changes of single numbers, if these are
/// accepted; returns the number of accepted and of refused changes.
fn round(Drawn { format, stored, given }: Drawn, seed: u64) -> [usize; 2] {
    let shape = given.shape();
    assert_eq!(checked(shape, &format, stored.arrays()).as_deref(), Ok(stored.hidden()), "{format}");
    let mut random = Random(seed);
    let mut taken_and_refused = [0, 0];
    for k in 0..stored.arrays().len() - 1 {
        let length = stored.arrays()[k].data().len();
        for _ in 0..if length > 0 { 4 } else { 0 } {
            let mut arrays = stored.arrays().to_vec();
            let at = random.next(length);
            let was = arrays[k].data().get_int(at).expect("an index");
            let changed = [was + 1, was - 1, 0, 1, 100, was + random.next(9) as i128][random.next(6)];
            if !arrays[k].data_mut().set(at, Literal::Int(changed.max(0))) {
                continue;
            }
            match checked(shape, &format, &arrays) {
                Err(_) => taken_and_refused[1] += 1,
                Ok(hidden) => {
                    taken_and_refused[0] += 1;
                    let found = Stored::of_arrays(shape.to_vec(), format.clone(), arrays, hidden).elements();
                    let places = found.places().expect("it is sparse");
                    assert!(found.data().len() * shape.len() == places.indices.len(), "{format}");
                }
            }
        }
    }
    taken_and_refused
}

#[test]
fn packed_arrays_are_accepted_and_modified_arrays_checked() {
    let mut sum = [0, 0];
    let all: Vec<(Format, u64)> = formats(1).into_iter().map(|f| (f, 100)).collect();
    let all = all.into_iter().chain(formats(2).into_iter().map(|f| (f, 30)));
    for (format, seeds) in all.chain(formats(3).into_iter().map(|f| (f, 2))) {
        for seed in 0..seeds {
            round(random::tensor(&format, seed), seed).iter().zip(&mut sum).for_each(|(n, sum)| *sum += n);
        }
    }
    for (format, seed) in random::remapped().iter().flat_map(|f| (0..60).map(move |seed| (f, seed))) {
        round(random::remapped_matrix(format, seed), seed).iter().zip(&mut sum).for_each(|(n, sum)| *sum += n);
    }
    assert!(sum.iter().all(|n| *n > 1000), "{sum:?}");
}

/// Checks the message about the arrays of one level below a dense one, in a matrix of 3 rows and 4 columns.
#[track_caller]
fn says(level: Level, arrays: &[&[i64]], stored: usize, expected: &str) {
    let format = Format::new(vec![Level::new(LevelKind::Dense), Level { index: Some(DType::I64), ..level }]);
    // Maps and bits are bytes.
    let bytes: Vec<Vec<u8>> = arrays.iter().map(|a| a.iter().map(|v| *v as u8).collect()).collect();
    let is_byte = |k: usize| matches!((level.kind, k), (LevelKind::Bytemap, 2) | (LevelKind::Bitmap, 0));
    let own = (0..arrays.len()).map(|k| if is_byte(k) { Indices::U8(&bytes[k]) } else { Indices::I64(arrays[k]) });
    let found = check("A", &[3, 4], &format, &own.collect::<Vec<_>>(), stored);
    assert_eq!(found.map_or_else(|e| e.to_string(), |_| "taken".to_string()), expected);
}

#[test]
fn every_level_names_its_violated_rule() {
    use LevelKind::*;
    let level = Level::new;
    let lists = Level { ordered: false, ..level(Compressed) };
    says(lists, &[&[0, 2, 2, 4], &[2, 0, 3, 1]], 4, "taken");
    says(lists, &[&[0, 3, 3, 4], &[2, 0, 2, 1]], 4, "`A.crd1` repeats coordinate 2 under position 0");
    says(level(Point), &[&[1, 4, 0]], 3, "taken");
    says(level(Point), &[&[1, 5, 0]], 3, "element 1 of `A.crd1` is 5, out of range for a dimension of size 4");

    let (pos, crd): (&[i64], &[i64]) = (&[0, 2, 2, 3], &[1, 3, 0]);
    says(level(Bytemap), &[pos, crd, &[0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0]], 12, "taken");
    let what = "`A.map1` does not mark coordinate 3 under position 0, which is stored";
    says(level(Bytemap), &[pos, crd, &[0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]], 12, what);
    let what = "`A.map1` marks 1 coordinates under position 1, but 0 are stored";
    says(level(Bytemap), &[pos, crd, &[0, 1, 0, 1, 0, 7, 0, 0, 1, 0, 0, 0]], 12, what);
    says(level(Bitmap), &[&[10, 0]], 12, "`A.bits1` has 2 elements, expected 3");

    let tpos: &[i64] = &[0, 4, 5, 7];
    says(level(Hashed), &[pos, crd, tpos, &[2, 1, 0, 0, 0, 3, 0]], 3, "taken");
    let what = "`A.tbl1` does not find the coordinate 3 under position 0";
    says(level(Hashed), &[pos, crd, tpos, &[0, 1, 0, 0, 0, 3, 0]], 3, what);
    let what = "`A.tbl1` has 3 in slot 0, which is not a position under 0";
    says(level(Hashed), &[pos, crd, tpos, &[3, 1, 0, 0, 0, 3, 0]], 3, what);
    says(level(Hashed), &[pos, crd, tpos, &[2, 1, 1, 1, 0, 3, 0]], 3, "`A.tbl1` has no free slot under position 0");
    let what = "`A.tbl1` has 3 slots under position 0, which is not a power of two";
    says(level(Hashed), &[pos, crd, &[0, 3, 5, 7], &[2, 1, 0, 0, 0, 3, 0]], 3, what);
    says(level(Hashed), &[pos, &[1, 1, 0], tpos, &[2, 1, 0, 0, 0, 3, 0]], 3, {
        "`A.crd1` repeats coordinate 1 under position 0"
    });

    says(level(RunLength), &[&[0, 2, 3, 4], &[3, 4, 4, 4]], 4, "taken");
    let what = "`A.end1` ends with 3 under position 1, expected the size 4";
    says(level(RunLength), &[&[0, 2, 3, 4], &[3, 4, 3, 4]], 4, what);
    says(level(RunLength), &[&[0, 2, 3, 4], &[4, 4, 4, 4]], 4, "`A.end1` does not increase: element 1 is 4, after 4");
    let what = "`A.end1` ends with 0 under position 1, expected the size 4";
    says(level(RunLength), &[&[0, 2, 2, 3], &[3, 4, 4]], 3, what);

    let blocks = |end: &[i64], ofs: &[i64], what: &str| {
        says(level(Blocklist), &[&[0, 2, 2, 3], end, ofs], *ofs.last().expect("one") as usize, what);
    };
    blocks(&[2, 4, 2], &[0, 1, 2, 4], "taken");
    blocks(&[2, 4, 2], &[0, 3, 4, 6], "`A.ofs1` has 3 positions in segment 0, which has 2 coordinates");
    blocks(&[2, 4, 2], &[0, 1, 4, 6], "`A.ofs1` has 3 positions in segment 1, which has 2 coordinates");
    blocks(&[2, 4, 2], &[0, 0, 1, 3], "`A.ofs1` has 0 positions in segment 0, which has 2 coordinates");
    blocks(&[2, 5, 2], &[0, 1, 2, 4], "element 1 of `A.end1` is 5, out of range for a dimension of size 4");

    let segments = |end: &[i64], ofs: &[i64], what: &str| {
        says(level(PackBits), &[&[0, 2, 3, 4], end, ofs], *ofs.last().expect("one") as usize, what);
    };
    segments(&[3, 4, 4, 4], &[0, 1, 2, 6, 7], "taken");
    segments(&[3, 4, 4, 4], &[0, 2, 3, 7, 8], "`A.ofs1` has 2 positions in segment 0, which has 3 coordinates");
}

/// Checks that lists of diagonals must rise, and that coordinates of a row must rise from slot to slot.
#[test]
fn diagonals_and_slots_must_be_ordered() {
    let says = |named: Named, arrays: &[&[i32]], stored: usize| {
        let format = named.format(2).expect("of matrices");
        let own: Vec<Indices<'_>> = arrays.iter().map(|a| Indices::I32(a)).collect();
        check("A", &[3, 4], &format, &own, stored).map_or_else(|e| e.to_string(), |_| "taken".to_string())
    };
    assert_eq!(says(Named::Dia, &[&[2, 3, 5]], 9), "taken");
    assert_eq!(says(Named::Dia, &[&[2, 5, 3]], 9), "`A.crd0` does not increase: element 2 is 3, after 5");
    assert_eq!(
        says(Named::Dia, &[&[2, 3, 6]], 9),
        "element 2 of `A.crd0` is 6, out of range for a dimension of size 6"
    );
    assert_eq!(says(Named::Dia, &[&[2, 3, 5]], 8), "`A.val` has 8 elements, expected 9, one for each position");
    assert_eq!(says(Named::Ell, &[&[0, 2], &[1, 4, 0, 3, 4, 4]], 6), "taken");
    let what = "`A.crd2` does not increase in fibre 0: slot 1 is 1, after 1";
    assert_eq!(says(Named::Ell, &[&[0, 2], &[1, 4, 0, 1, 4, 4]], 6), what);
    let what = "`A.crd2` does not increase in fibre 1: slot 1 is 0, after 4";
    assert_eq!(says(Named::Ell, &[&[0, 2], &[1, 4, 0, 3, 0, 4]], 6), what);
    assert_eq!(says(Named::Ell, &[&[0, 3], &[1, 4, 0, 3, 4, 4]], 6), "`A.crd2` has 6 elements, expected 9");
    assert_eq!(says(Named::Ell, &[&[0, -1], &[]], 0), "`A.pos0` ends with -1, which is negative");
}

/// Checks that lists of coordinates must be in row-major order, without duplicates.
#[test]
fn coordinates_of_several_levels_must_be_ordered() {
    let coo = |ndim: usize| {
        let mut levels = vec![Level { unique: false, ..Level::new(LevelKind::Compressed) }];
        levels.extend(vec![Level { unique: false, ..Level::new(LevelKind::Singleton) }; ndim - 2]);
        levels.push(Level::new(LevelKind::Singleton));
        Format::new(levels)
    };
    let says = |coordinates: &[&[i32]]| {
        let pos = [0, coordinates[0].len() as i32];
        let all: Vec<Indices<'_>> =
            std::iter::once(Indices::I32(&pos)).chain(coordinates.iter().map(|c| Indices::I32(c))).collect();
        let ndim = coordinates.len();
        let found = check("A", &vec![4; ndim], &coo(ndim), &all, coordinates[0].len());
        found.map_or_else(|e| e.to_string(), |_| "taken".to_string())
    };
    assert_eq!(says(&[&[0, 0, 2, 2], &[1, 3, 0, 2]]), "taken");
    assert_eq!(says(&[&[0, 2, 0, 2], &[1, 3, 0, 2]]), "`A.crd0` is not in order: element 2 is 0, after 2");
    assert_eq!(says(&[&[0, 0, 2, 2], &[3, 1, 0, 2]]), "`A.crd1` is not in order: element 1 is 1, after 3");
    assert_eq!(says(&[&[0, 0, 2, 2], &[1, 1, 0, 2]]), "`A.crd1` repeats coordinate 1: element 1 equals the one before");
    assert_eq!(
        says(&[&[0, 0, 2, 2], &[1, 3, 4, 2]]),
        "element 2 of `A.crd1` is 4, out of range for a dimension of size 4"
    );
    assert_eq!(says(&[&[0, 0, 2, 2], &[1, 1, 0, 2], &[0, 1, 3, 1]]), "taken");
    assert_eq!(
        says(&[&[0, 0, 2, 2], &[1, 1, 0, 2], &[1, 0, 3, 1]]),
        "`A.crd2` is not in order: element 1 is 0, after 1"
    );
    assert_eq!(arrays_of(&coo(2)), Some(vec![2, 1]));
    let none = check("A", &[4, 4], &coo(2), &[], 0);
    assert_eq!(none, Err(Unfit::Shape));
    assert!(matches!(Stored::pack(&[4], &coo(2), &[], &Buffer::F64(vec![])), Err(Unpackable::Shape)));
}
