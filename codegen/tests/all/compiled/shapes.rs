//! Shapes that are read from memory: a tensor keeps the size that it has at its declaration.

use crate::compiled::run::check;
use taffeta_ast::build::{Builder, block, local, store, var_def};
use taffeta_ast::{Buffer, DType, Expr, Value};

/// Checks that later writes to the memory of a shape do not change the tensor's shape.
#[test]
fn writes_do_not_change_shapes_read_from_memory() {
    let mut b = Builder::new("f");
    let (s, k) = (b.inout("s", DType::I64, []), b.inout("k", DType::I64, [&Expr::int(2)]));
    let y = b.result("y", DType::I64, [&Expr::int(2)]);
    let (zero, one, two) = (Expr::int(0), Expr::int(1), Expr::int(2));
    let shape = [s.load([]).max_with(&zero), k.load([one.clone()])];
    let t = local("t", DType::I64, &shape);
    let stores = [
        store(&t, [&one, &two], &Expr::int(5)),
        store(&t, [&zero, &zero], &Expr::int(6)),
        store(&s, [], &one),
        store(&k, [&one], &Expr::int(-1)),
        store(&t, [&one, &zero], &Expr::int(7)),
        store(&y, [&zero], &t.load([one.clone(), two.clone()])),
        store(&y, [&one], &t.load([one.clone(), zero.clone()])),
    ];
    let func = b.finish(var_def(&t, block(stores)));
    let given = |s: i64, k: i64| {
        let value = |shape, data| Value::new(shape, Buffer::I64(data)).expect("it fits");
        [value(Vec::new(), vec![s]), value(vec![2], vec![0, k])]
    };
    let results = check(&func, &given(2, 3)).expect("every index is in range");
    assert_eq!(results[0].numbers(), [5.0, 7.0]);
    assert!(check(&func, &given(2, 2)).is_err());
    assert!(check(&func, &given(1, 3)).is_err());
}
