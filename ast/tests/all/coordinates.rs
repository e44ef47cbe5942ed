//! Orders and sums of coordinates.

use proptest::prelude::*;
use taffeta_ast::coordinates::sorted;
use taffeta_ast::{Buffer, Literal, Value};

proptest! {
    /// Checks that three orders agree: by linear index, by coordinates in turn (a tensor with more than 2^64
    /// elements), and by a plain sort.
    #[test]
    fn all_sorts_order_coordinates_equally(
        at in proptest::collection::vec((0i64..4, 0i64..5, 0i64..3), 0..30),
        swapped: bool,
    ) {
        let indices: Vec<i64> = at.iter().flat_map(|(i, j, k)| [*i, *j, *k]).collect();
        let order = if swapped { [2, 0, 1] } else { [0, 1, 2] };
        let mut expected: Vec<usize> = (0..at.len()).collect();
        expected.sort_by_key(|e| order.map(|d| indices[e * 3 + d]));
        prop_assert_eq!(&sorted(&[4, 5, 3], &order, &indices), &expected);
        prop_assert_eq!(&sorted(&[1 << 40, 1 << 40, 3], &order, &indices), &expected);
    }

    #[test]
    fn duplicate_coordinates_are_summed(at in proptest::collection::vec((0i64..3, 0i64..3, -4i64..5), 0..20)) {
        let indices = at.iter().flat_map(|(i, j, _)| [*i, *j]).collect();
        let elements = Buffer::I64(at.iter().map(|e| e.2).collect());
        let value = Value::summed(vec![3, 3], indices, &elements, Literal::Int(0)).expect("all are in range");
        let mut dense = vec![0i64; 9];
        at.iter().for_each(|(i, j, v)| dense[(i * 3 + j) as usize] += v);
        let found = value.dense().expect("nine elements").0;
        prop_assert_eq!(found.data(), &Buffer::I64(dense));
        let places: std::collections::BTreeSet<_> = at.iter().map(|(i, j, _)| (*i, *j)).collect();
        prop_assert_eq!(value.data().len(), places.len());
    }
}
