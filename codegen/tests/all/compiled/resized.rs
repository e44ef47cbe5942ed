//! Arrays whose length changes, arrays that are made for the caller, and sorting: C agrees with the interpreter.

use crate::compiled::programs::sources;
use crate::compiled::run::{compare, compile};
use taffeta_ast::build::{Builder, block, branch, local, looped, reduce, store, var_def};
use taffeta_ast::interp::{Inputs, run};
use taffeta_ast::stmt::{Role, Routine};
use taffeta_ast::{Buffer, DType, Expr, Func, Literal, Origin, ReduceOp, Stmt, StmtKind, Symbol, Tensor, Value};
use taffeta_codegen::{LowerOptions, c, lower};
use testkit::driver::{self, Call, Outcome};

fn call(routine: Routine, tensors: &[&Tensor], operands: &[&Expr]) -> Stmt {
    let tensors = tensors.iter().map(|t| t.symbol.clone()).collect();
    let operands = operands.iter().map(|e| (*e).clone()).collect();
    Stmt::new(StmtKind::Call { routine, tensors, operands }, Origin::none())
}

/// Builds a program that lists the positive elements of a vector in ascending order; `made`: as an array for the caller
/// instead of a local one, whose sum of squares it returns.
fn positive(dtype: DType, made: bool) -> Func {
    let mut b = Builder::new("positive");
    let n = b.size("n");
    let x = b.input("x", dtype, [&n]);
    let squares = (!made).then(|| b.result("squares", dtype, []));
    let (count, room) = (local("count", DType::I64, []), local("room", DType::I64, []));
    let length = room.load([]);
    let role = if made { Role::Result } else { Role::Local };
    let list = std::sync::Arc::new(Tensor { role, ..(*local("list", dtype, [&length])).clone() });
    let (i, k) = (Symbol::new("i"), Symbol::new("k"));
    let (own, used) = (x.load([Expr::var(&i)]), count.load([]));
    let [zero, one] = [0, 1].map(Expr::int);
    let append = block([
        call(Routine::Grow, &[&room, &list], &[&used.plus(&one)]),
        store(&list, [&used], &own),
        reduce(&count, [], ReduceOp::Add, &one),
    ]);
    let append = branch(&Expr::int(0).cast(dtype).less(&own), append, None);
    let close = match &squares {
        None => call(Routine::Fit, &[&room, &list], &[&used]),
        Some(sum) => {
            let element = list.load([Expr::var(&k)]);
            let sums = reduce(sum, [], ReduceOp::Add, &element.times(&element));
            block([store(sum, [], &Expr::int(0).cast(dtype)), looped(&k, &used, sums)])
        }
    };
    let body = block([looped(&i, &n, append), call(Routine::Sort, &[&list], &[&zero, &used]), close]);
    let body = block([store(&count, [], &zero), store(&room, [], &zero), var_def(&list, body)]);
    let mut func = b.finish(var_def(&count, var_def(&room, body)));
    func.made.extend(made.then_some(list));
    func
}

/// Returns vectors of different lengths and orders: empty, without positive elements, rising, falling, mixed.
fn vectors(dtype: DType) -> Vec<Value> {
    let mixed = (0..5000).map(|k: i64| k * 7919 % 6007 - 1000).collect();
    let all = vec![vec![], vec![-3, -1], (1..40).collect(), (1..60).rev().collect(), mixed, vec![5, 5, 4, 5]];
    let one = |v: Vec<i64>| {
        let data = match dtype {
            DType::I32 => Buffer::I32(v.iter().map(|x| *x as i32).collect()),
            DType::U16 => Buffer::U16(v.iter().map(|x| *x as u16).collect()),
            DType::U8 => Buffer::U8(v.iter().map(|x| *x as u8).collect()),
            _ => Buffer::I64(v.iter().map(|x| x * (1 << 33)).collect()),
        };
        Value::new(vec![data.len()], data).expect("a vector")
    };
    all.into_iter().map(one).collect()
}

#[test]
fn arrays_grow_and_are_sorted() {
    for dtype in [DType::U8, DType::U16, DType::I32, DType::I64] {
        let func = positive(dtype, false);
        let compiled = compile(&func, &LowerOptions::default());
        for x in vectors(dtype) {
            compare(&func, &compiled, &[x], &[]).expect("it runs");
        }
    }
}

#[test]
fn callers_get_arrays_as_long_as_they_are() {
    for dtype in [DType::U8, DType::U16, DType::I32, DType::I64] {
        let func = positive(dtype, true);
        let compiled = compile(&func, &LowerOptions::default());
        for x in vectors(dtype) {
            let mut wanted: Vec<i128> = (0..x.data().len()).filter_map(|k| x.data().get_int(k)).collect();
            wanted.retain(|v| *v > 0);
            wanted.sort_unstable();
            let list = &compare(&func, &compiled, &[x], &[]).expect("it runs")[0];
            let found: Vec<i128> = (0..list.data().len()).filter_map(|k| list.data().get_int(k)).collect();
            assert_eq!(found, wanted, "{dtype}");
        }
    }
}

/// Builds a program that sorts the elements from `begin` on, and the values with them.
fn sorting(keys: DType, values: DType) -> Func {
    let mut b = Builder::new("sorted");
    let (n, begin) = (b.size("n"), b.size("begin"));
    let all = [b.inout("keys", keys, [&n]), b.inout("values", values, [&n])];
    b.finish(call(Routine::Sort, &[&*all[0], &*all[1]], &[&begin, &n]))
}

#[test]
fn values_move_with_the_keys_that_are_sorted() {
    // Numbers with many equal ones, few of which are in order; nearly all of them differ in high bits alone.
    let keys = |dtype: DType, n: usize| -> Vec<i64> {
        let (many, scale) = match dtype {
            DType::U8 => (256, 1),
            DType::U16 => (1000, 60),
            DType::I32 => (3000, 700_000),
            _ => (5000, 1 << 50),
        };
        (0..n as i64).map(|k| k * 7919 % 6007 % many * scale).collect()
    };
    let types = [
        (DType::U8, DType::F64),
        (DType::U16, DType::F32),
        (DType::I32, DType::F64),
        (DType::I32, DType::I16),
        (DType::I64, DType::I8),
    ];
    for (of_keys, of_values) in types {
        let func = sorting(of_keys, of_values);
        let compiled = compile(&func, &LowerOptions::default());
        for n in [0, 1, 2, 16, 17, 70, 256, 257, 5000] {
            let all = [keys(of_keys, n), vec![9; n], (0..n as i64).map(|k| (n as i64 - k) % 200).collect()];
            for list in all {
                let number = |v: i64, dtype: DType| match dtype.is_float() {
                    true => Literal::Float(v as f64),
                    false => Literal::Int(i128::from(v)),
                };
                let value = |dtype: DType, of: &dyn Fn(usize) -> i64| {
                    let mut data = Buffer::zeros(dtype, n);
                    (0..n).for_each(|k| assert!(data.set(k, number(of(k), dtype))));
                    Value::new(vec![n], data).expect("a vector")
                };
                let given = [value(of_keys, &|k| list[k]), value(of_values, &|k| k as i64 % 100)];
                compare(&func, &compiled, &given, &[("begin", n as i64 / 7)]).expect("it runs");
            }
        }
    }
}

/// Checks under the sanitizers that the memory of arrays is neither lost nor overrun, where the program ends and where
/// it stops.
#[test]
fn memory_of_arrays_is_neither_lost_nor_overrun() {
    let stopping = |made: bool| {
        let func = positive(DType::I32, made);
        let x = &func.params[0].tensor;
        let first = x.load([Expr::int(0)]);
        let message = vec![taffeta_ast::stmt::MessagePart::Text("it rises".into())];
        let StmtKind::VarDef { tensor: count, body } = func.body.kind() else { panic!("it declares `count`") };
        let StmtKind::VarDef { tensor: room, body } = body.kind() else { panic!("it declares `room`") };
        let StmtKind::Seq(all) = body.kind() else { panic!("a block") };
        let [.., declared] = &all[..] else { panic!("a declaration") };
        let StmtKind::VarDef { tensor: list, body } = declared.kind() else { panic!("it declares `list`") };
        let stop = taffeta_ast::build::assert(&first.less(&Expr::int(3).cast(DType::I32)), message);
        let declared = var_def(list, block([body.clone(), stop]));
        let all = block(all[..all.len() - 1].iter().cloned().chain([declared]));
        func.with_body(var_def(count, var_def(room, all)))
    };
    let all: Vec<Func> =
        [false, true].into_iter().flat_map(|made| [positive(DType::I32, made), stopping(made)]).collect();
    for (k, func) in all.iter().enumerate() {
        let lowered = lower(func, &LowerOptions::default()).expect("it can be lowered");
        let source = c::emit(&lowered, &sources());
        let values = vectors(DType::I32);
        // Statements read the first element.
        let values = values.into_iter().filter(|x| !x.data().is_empty()).step_by(2);
        let values: Vec<[Value; 1]> = values.map(|x| [x]).collect();
        let sizes: Vec<[i64; 1]> = values.iter().map(|x| [x[0].shape()[0] as i64]).collect();
        let calls: Vec<Call<'_>> =
            values.iter().zip(&sizes).map(|(params, sizes)| Call { source: &source, params, sizes }).collect();
        for (call, x) in calls.iter().zip(&values) {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let outcomes = driver::run(std::slice::from_ref(call), folder.path());
            let expected = run(func, &Inputs { params: x.to_vec(), ..Inputs::default() });
            match (&outcomes[..], expected) {
                ([Outcome::Returned(0, written)], Ok(out)) => {
                    let all: Vec<&Value> = out.results.iter().chain(&out.made).collect();
                    assert_eq!(written.iter().collect::<Vec<_>>(), all, "program {k}");
                }
                ([Outcome::Returned(1, _)], Err(_)) => {}
                ([Outcome::Stopped(why)], _) => panic!("program {k}: {why}"),
                ([Outcome::Returned(status, _)], expected) => {
                    panic!("program {k}: expected {expected:?}, found status {status}")
                }
                _ => panic!("one outcome for one call"),
            }
        }
    }
}

/// Builds a program that returns the order of pairs of integers.
fn ordered(dtype: DType) -> Func {
    let mut b = Builder::new("ordered");
    let n = b.size("n");
    let (x, y) = (b.input("x", dtype, [&n]), b.input("y", DType::I32, [&n]));
    let result = b.result("order", DType::I64, [&n]);
    let numbers = local("numbers", DType::I64, [&n]);
    let k = Symbol::new("k");
    let copy = store(&result, [&Expr::var(&k)], &numbers.load([Expr::var(&k)]));
    let body = block([call(Routine::Order, &[&numbers, &x, &y], &[&n]), looped(&k, &n, copy)]);
    b.finish(var_def(&numbers, body))
}

#[test]
fn numbers_are_ordered_by_several_keys() {
    for dtype in [DType::U8, DType::U16, DType::I32, DType::I64] {
        let func = ordered(dtype);
        let compiled = compile(&func, &LowerOptions::default());
        for mut x in vectors(dtype) {
            // Keys are not negative; a third of the numbers share one.
            let n = x.shape()[0];
            for k in 0..n {
                let own = x.data().get_int(k).expect("an integer").abs();
                x.data_mut().set(k, Literal::Int(own));
            }
            let y = (0..n).map(|k| ((k * 31) % 100_000 / 3) as i32).collect();
            let y = Value::new(vec![n], Buffer::I32(y)).expect("a vector");
            compare(&func, &compiled, &[x, y], &[]).expect("it runs");
        }
    }
}
