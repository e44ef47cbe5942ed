//! Sizes that are 0, small, at the ends of index types, and larger than any memory, in all formats and with all index
//! types: elements at the corners are packed and found again, in memory bounded by the elements and the format, or
//! packing returns the reason.

use taffeta_ast::format::{Format, Level, LevelKind};
use taffeta_ast::{Buffer, DType, Literal};
use taffeta_structured::{Stored, Unpackable};
use testkit::random;

use random::{Random, formats};

/// Draws a small size, of which all coordinates can be stored, or a large one, of which no format can store all.
fn size(random: &mut Random, ndim: usize) -> usize {
    let small = [[0, 1, 255, 256, 257], [0, 1, 2, 129, 257], [0, 1, 2, 3, 17]][ndim - 1];
    match random.next(3) {
        0 => [1 << 44, (1 << 47) - 1, 1 << 47, (1 << 47) + 1, usize::MAX][random.next(5)],
        _ => small[random.next(small.len())],
    }
}

/// Draws distinct coordinates at corners, beside corners and in the middle.
fn corners(random: &mut Random, shape: &[usize]) -> Vec<i64> {
    let mut all: Vec<Vec<i64>> = Vec::new();
    for _ in 0..random.next(5) {
        let corner = |n: &usize| [0, n - 1, n / 2, n.saturating_sub(2)][random.next(4)] as i64;
        all.push(shape.iter().map(corner).collect());
    }
    all.sort_unstable();
    all.dedup();
    all.concat()
}

/// Packs elements of a tensor of random sizes, and checks that they are found again; returns the reason if packing
/// fails.
fn stored(format: &Format, seed: u64) -> Result<(), Unpackable> {
    let mut random = Random(seed);
    let ndim = format.levels.len();
    let mut shape: Vec<usize> = (0..ndim).map(|_| size(&mut random, ndim)).collect();
    if format.squares().count() > 0 {
        let n = shape[0];
        shape.fill(n);
    }
    let index = [None, Some(DType::U8), Some(DType::U16), Some(DType::I32), Some(DType::I64)][random.next(5)];
    let levels: Vec<Level> = format.levels.iter().map(|l| Level { index, ..*l }).collect();
    let mut order: Vec<usize> = (0..ndim).collect();
    (1..ndim).for_each(|k| order.swap(k, random.next(k + 1)));
    let format = Format { levels: levels.into(), ..format.clone() }.ordered(&order);
    let indices = if shape.contains(&0) { Vec::new() } else { corners(&mut random, &shape) };
    let count = indices.len() / ndim;
    // All elements are equal, so that mirrored elements of symmetric matrices are.
    let packed = Stored::pack(&shape, &format, &indices, &Buffer::I64(vec![5; count]))?;
    let room: usize = packed.arrays().iter().map(|a| a.data().len()).sum();
    assert!(room < 1 << 22, "{format} of {shape:?}: {room}");
    let found = packed.try_elements()?;
    let places = found.places().expect("it is sparse");
    let at: Vec<&[i64]> = places.indices.chunks_exact(ndim).collect();
    for e in indices.chunks_exact(ndim) {
        let k = at.binary_search(&e).unwrap_or_else(|_| panic!("{format} of {shape:?}: {e:?} is not stored"));
        assert_eq!(found.data().get(k), Literal::Int(5), "{format} of {shape:?}");
    }
    Ok(())
}

#[test]
fn extreme_sizes() {
    let (mut went, mut memory, mut index, mut beyond) = (0, 0, 0, 0);
    for (ndim, seeds) in [(1, 100), (2, 40), (3, 4)] {
        for (k, format) in formats(ndim).iter().enumerate() {
            for seed in 0..seeds {
                match stored(format, seed + 1000 * k as u64) {
                    Ok(()) => went += 1,
                    Err(Unpackable::Memory(_)) => memory += 1,
                    Err(Unpackable::Index(_)) => index += 1,
                    Err(Unpackable::Size(n)) if n > 1 << 47 => beyond += 1,
                    Err(Unpackable::Outside(..) | Unpackable::Second(..) | Unpackable::Unequal(..)) => {}
                    Err(why) => panic!("{format}: {why}"),
                }
            }
        }
    }
    println!(
        "{went} are stored, {memory} need too much memory, {index} need larger indices, {beyond} need smaller sizes"
    );
    assert!(went > 4000 && memory > 1000 && index > 300 && beyond > 1000, "{went} {memory} {index} {beyond}");
}

/// Checks bands whose rows span the dimension: together they have more elements than can be counted.
#[test]
fn bands_wider_than_memory() {
    let size = 1i64 << 47;
    let indices: Vec<i64> = (0..1 << 17).flat_map(|i| [i, 0, i, size - 1]).collect();
    for kind in [LevelKind::Banded, LevelKind::Ragged] {
        let format = Format::new(vec![Level::new(LevelKind::Dense), Level::new(kind)]);
        let all = Buffer::U8(vec![1; indices.len() / 2]);
        let packed = Stored::pack(&[1 << 17, size as usize], &format, &indices, &all);
        assert!(matches!(packed, Err(Unpackable::Memory(_))), "{format}");
    }
}
