//! Every operator on every element type that it accepts, over special values: C agrees with the interpreter, to the
//! last bit where the operation is exact, and within the promised accuracy for other mathematical functions.

use crate::compiled::programs::{Builder, apply, load, range, sources, store};
use crate::compiled::run::{compile_with, scratch_dir};
use itertools::Itertools as _;
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::{Buffer, DType, Expr, Func, Kind, Literal, Op, Value};
use taffeta_codegen::call::Context;
use taffeta_codegen::toolchain::CompileOptions;
use taffeta_codegen::{Compiled, LowerOptions, c, lower};
use testkit::batch;

/// Returns boundary values of types, operators and their implementations.
fn specials(dtype: DType) -> Vec<Literal> {
    match dtype.kind() {
        Kind::Bool => vec![Literal::Bool(false), Literal::Bool(true)],
        Kind::Int => {
            let (lo, hi) = dtype.int_range().unwrap_or((0, 0));
            let mut all = vec![lo, lo + 1, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 31, 63, 64, 100, hi / 2, hi - 1, hi];
            all.retain(|v| (lo..=hi).contains(v));
            all.into_iter().map(Literal::Int).collect()
        }
        Kind::Float => {
            let round = |v: f64| taffeta_ast::expr::round_to(v, dtype);
            let (least, most) = match dtype {
                DType::F16 => (5.960464477539063e-8, 65504.0),
                DType::Bf16 => (9.183549615799121e-41, 3.3895313892515355e38),
                DType::F32 => (f64::from(f32::from_bits(1)), f64::from(f32::MAX)),
                _ => (f64::from_bits(1), f64::MAX),
            };
            let mut all =
                vec![0.0, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.5, 11.0, 90.0, 1e3, 3e4, 1e-3, least, most];
            all.extend([std::f64::consts::PI, 1e-20, 1e20, f64::INFINITY, 4.0 / 3.0]);
            let negative: Vec<f64> = all.iter().map(|v| -v).collect();
            all.extend(negative);
            all.push(f64::NAN);
            all.into_iter().map(|v| Literal::Float(round(v))).collect()
        }
    }
}

fn buffer(dtype: DType, values: &[Literal]) -> Buffer {
    let mut out = Buffer::zeros(dtype, values.len());
    for (i, v) in values.iter().enumerate() {
        assert!(out.set(i, *v), "{v:?} is not a {dtype}");
    }
    out
}

/// Value computed from one row of operands.
type Formula = dyn Fn(&[Expr]) -> Expr;

/// Result of an elementwise program.
struct Column {
    name: String,
    dtype: DType,
    tolerance: f64,
    value: Box<Formula>,
}

/// Elementwise program, to be run on every combination of its operands.
struct Table {
    name: String,
    /// Types of the operands.
    dtypes: Vec<DType>,
    /// Values of each operand.
    operands: Vec<Vec<Literal>>,
    columns: Vec<Column>,
}

/// Builds `y[i] = f(x0[i], x1[i], …)` for every column, each in a loop of its own.
fn elementwise(name: &str, operands: &[DType], columns: &[Column]) -> Func {
    let mut b = Builder::default();
    let n = b.size("n");
    let xs: Vec<_> = operands.iter().enumerate().map(|(k, d)| b.input(&format!("x{k}"), *d, &[&n])).collect();
    let body = columns
        .iter()
        .map(|c| {
            let y = b.result(&c.name, c.dtype, &[&n]);
            range(1, "i", &n, |i| {
                let args: Vec<Expr> = xs.iter().map(|x| load(x, &[i])).collect();
                vec![store(2, &y, &[i], (c.value)(&args))]
            })
        })
        .collect();
    b.func(name, body)
}

/// Compiles all programs in two libraries, and checks them. Programs of several columns are optimised: only they have
/// mathematical functions, whose vector versions are tested.
fn check(tables: &[Table]) {
    for optimize in [false, true] {
        let tables = tables.iter().filter(|t| (t.columns.len() > 1) == optimize).collect_vec();
        let funcs = tables.iter().map(|t| elementwise(&t.name, &t.dtypes, &t.columns)).collect_vec();
        let emit =
            |func: &Func| c::emit(&lower(func, &LowerOptions::default()).expect("it can be lowered"), &sources());
        let flags = CompileOptions { contract: false, optimize, ..CompileOptions::default() };
        let compiled = batch::compile(&funcs.iter().map(emit).collect_vec(), &scratch_dir(), &flags);
        let compiled = compiled.unwrap_or_else(|e| panic!("{e}"));
        for ((table, func), compiled) in tables.iter().zip_eq(&funcs).zip_eq(&compiled) {
            check_table(table, func, compiled);
        }
    }
}

/// Checks all combinations of operands on which the interpreter has a value together; the others must stop C one by
/// one.
fn check_table(table: &Table, func: &Func, compiled: &Compiled) {
    let Table { name, dtypes, operands, columns } = table;
    let mut combinations: Vec<Vec<Literal>> = vec![Vec::new()];
    for values in operands {
        combinations = combinations
            .into_iter()
            .flat_map(|c| values.iter().map(move |v| c.iter().copied().chain([*v]).collect()))
            .collect();
    }
    let values = |rows: &[Vec<Literal>]| -> Vec<Value> {
        let column = |k: usize| rows.iter().map(|r: &Vec<Literal>| r[k]).collect::<Vec<_>>();
        let make = |(k, d): (usize, &DType)| Value::new(vec![rows.len()], buffer(*d, &column(k))).expect("a vector");
        dtypes.iter().enumerate().map(make).collect()
    };
    let mut cx = Context::new(1);
    let mut run = |rows: &[Vec<Literal>]| {
        let params = values(rows);
        let want = interp::run(func, &Inputs { params: params.clone(), ..Inputs::default() });
        (want, compiled.call_values(&mut cx, &mut params.clone(), &[]))
    };
    let (good, bad): (Vec<_>, Vec<_>) =
        combinations.into_iter().partition(|row| run(std::slice::from_ref(row)).0.is_ok());
    for row in bad {
        let (want, have) = run(std::slice::from_ref(&row));
        let (want, have) = (want.expect_err("it was refused before"), have.err());
        let have = have.unwrap_or_else(|| panic!("{name}: expected C to stop at {row:?} with {want}"));
        assert_eq!(want.kind.code(), have.kind.code(), "{name}: {row:?}");
    }
    // Twice the rows, so that vector loops and their tails see every value.
    let rows: Vec<Vec<Literal>> = good.iter().chain(&good).chain(&good[..good.len().min(5)]).cloned().collect();
    let (want, have) = run(&rows);
    let want = want.expect("every row has a value");
    let (have, _) = have.unwrap_or_else(|e| panic!("{name}: {e}"));
    for (k, column) in columns.iter().enumerate() {
        for (i, row) in rows.iter().enumerate() {
            let (a, b) = (want.results[k].data(), have[k].data());
            let same = match (a.get_int(i), b.get_int(i)) {
                (Some(a), Some(b)) => a == b,
                _ => close(a.get_f64(i), b.get_f64(i), column.tolerance),
            };
            let (a, b) = (a.get_f64(i), b.get_f64(i));
            assert!(same, "{name}, {} of {row:?}: expected {a:e}, found {b:e} in C", column.name);
        }
    }
}

/// Compares bit by bit, except for the bits of NaNs; finite values may differ by the relative tolerance.
fn close(want: f64, have: f64, tolerance: f64) -> bool {
    let exact = want.to_bits() == have.to_bits() || (want.is_nan() && have.is_nan());
    exact || (want.is_finite() && (want - have).abs() <= tolerance * want.abs())
}

/// Returns whether C and the interpreter may differ on a function, within the accuracy that Taffeta promises.
fn is_approximate(op: Op) -> bool {
    (op.info().c_name.is_some() && !op.info().exact) || op == Op::Sigmoid
}

fn tolerance(op: Op, dtype: DType) -> f64 {
    match dtype {
        _ if !is_approximate(op) => 0.0,
        DType::F64 => 1e-12,
        DType::F32 => 1e-5,
        // Two epsilons: the value before rounding may lie on the other side of a tie.
        DType::F16 => 1.0 / 512.0,
        _ => 1.0 / 64.0,
    }
}

/// Checks operators that always have a value in one program, and each other one in its own.
fn check_types(dtypes: &[DType]) {
    check(&dtypes.iter().cartesian_product(1..=3).flat_map(|(dtype, arity)| of_type(*dtype, arity)).collect_vec());
}

/// Makes the programs of the operators with `arity` operands of a type.
fn of_type(dtype: DType, arity: usize) -> Vec<Table> {
    let mut values = specials(dtype);
    if arity == 3 {
        values.truncate(12);
    }
    let of_arity = |op: &Op| op.info().arity == arity && *op != Op::Select && op.info().domain.accepts(dtype);
    let column = |op: Op| Column {
        name: format!("{op:?}").to_lowercase(),
        dtype: op.result(dtype),
        tolerance: tolerance(op, dtype),
        value: Box::new(move |args| apply(op, &args.iter().collect::<Vec<_>>())),
    };
    let table = |name: String, columns: Vec<Column>| Table {
        name,
        dtypes: vec![dtype; arity],
        operands: vec![values.clone(); arity],
        columns,
    };
    let fails = |op: &Op| op.info().may_fail_on_int && dtype.is_int();
    let (alone, together): (Vec<Op>, Vec<Op>) = Op::functions().filter(of_arity).partition(fails);
    let mut tables = alone.into_iter().map(|op| table(format!("{op:?}_{dtype}"), vec![column(op)])).collect_vec();
    if !together.is_empty() {
        let columns = together.into_iter().map(column).collect();
        tables.push(table(format!("operators_{dtype}_{arity}"), columns));
    }
    tables
}

#[test]
fn operators_on_bool_and_small_integers() {
    check_types(&[DType::Bool, DType::I8, DType::U8, DType::I16, DType::U16]);
}

#[test]
fn operators_on_large_integers() {
    check_types(&[DType::I32, DType::U32, DType::I64, DType::U64]);
}

#[test]
fn operators_on_narrow_floats() {
    check_types(&[DType::F16, DType::Bf16]);
}

#[test]
fn operators_on_floats() {
    check_types(&[DType::F32, DType::F64]);
}

/// Checks constants on either side, for which C has a shorter form.
#[test]
fn minimum_and_maximum_with_constants() {
    let table = |dtype: DType| {
        let constants = [0.0, -0.0, 1.0, -3.0, 1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let both = [Op::Min, Op::Max].into_iter().flat_map(|op| [false, true].map(|first| (op, first)));
        let columns = constants.iter().enumerate().flat_map(|(k, c)| {
            let c = Expr::float(taffeta_ast::expr::round_to(*c, dtype), dtype);
            both.clone().map(move |(op, first)| {
                let c = c.clone();
                Column {
                    name: format!("{op:?}_{k}_{first}").to_lowercase(),
                    dtype,
                    tolerance: 0.0,
                    value: Box::new(
                        move |args| if first { apply(op, &[&c, &args[0]]) } else { apply(op, &[&args[0], &c]) },
                    ),
                }
            })
        });
        let (name, operands) = (format!("constants_{dtype}"), vec![specials(dtype)]);
        Table { name, dtypes: vec![dtype], operands, columns: columns.collect() }
    };
    check(&[DType::F32, DType::F64].map(table));
}

#[test]
fn casts_between_all_types() {
    let mut tables = Vec::new();
    for from in DType::ALL {
        let column = |to: DType| Column {
            name: format!("to_{to}"),
            dtype: to,
            tolerance: 0.0,
            value: Box::new(move |args| args[0].clone().cast(to)),
        };
        let mut add = |name: String, columns: Vec<Column>| {
            tables.push(Table { name, dtypes: vec![from], operands: vec![specials(from)], columns });
        };
        let fails = |to: &DType| from.is_float() && to.is_int();
        let (alone, together): (Vec<DType>, Vec<DType>) =
            DType::ALL.into_iter().filter(|to| *to != from).partition(fails);
        alone.into_iter().for_each(|to| add(format!("{from}_to_{to}"), vec![column(to)]));
        add(format!("casts_{from}"), together.into_iter().map(column).collect());
    }
    check(&tables);
}

#[test]
fn select_takes_every_type() {
    let table = |dtype: DType| {
        let column = Column {
            name: "y".into(),
            dtype,
            tolerance: 0.0,
            value: Box::new(|args| args[0].select(&args[1], &args[2])),
        };
        let mut values = specials(dtype);
        values.truncate(8);
        let operands = vec![specials(DType::Bool), values.clone(), values];
        let dtypes = vec![DType::Bool, dtype, dtype];
        Table { name: format!("select_{dtype}"), dtypes, operands, columns: vec![column] }
    };
    check(&DType::ALL.map(table));
}

/// Checks that unary mathematical functions keep the promised accuracy in vector loops, at magnitudes from 1e-8 to 1e3.
#[test]
fn mathematical_functions_are_accurate() {
    let table = |dtype: DType| {
        let functions: Vec<Op> = Op::functions().filter(|op| is_approximate(*op) && op.info().arity == 1).collect();
        let columns: Vec<Column> = functions
            .into_iter()
            .map(|op| Column {
                name: format!("{op:?}").to_lowercase(),
                dtype,
                tolerance: tolerance(op, dtype),
                value: Box::new(move |args| apply(op, &[&args[0]])),
            })
            .collect();
        // From 1e-8 to 1e3 in steps of 2 %, of both signs.
        let mut values: Vec<Literal> = Vec::new();
        let mut x = 1e-8f64;
        while x < 1e3 {
            let rounded = taffeta_ast::expr::round_to(x, dtype);
            values.extend([Literal::Float(rounded), Literal::Float(-rounded)]);
            x *= 1.02;
        }
        Table { name: format!("accuracy_{dtype}"), dtypes: vec![dtype], operands: vec![values], columns }
    };
    check(&[DType::F32, DType::F64].map(table));
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn mathematical_functions_are_vectorised() {
    let compiler = taffeta_codegen::toolchain::Toolchain::find().expect("a C compiler");
    if compiler.program().canonicalize().is_ok_and(|p| p.to_string_lossy().contains("clang")) {
        return;
    }
    let exp = Column {
        name: "exp".into(),
        dtype: DType::F32,
        tolerance: 0.0,
        value: Box::new(|args| apply(Op::Exp, &[&args[0]])),
    };
    let func = elementwise("vectorised", &[DType::F32], &[exp]);
    let compiled = compile_with(&func, &LowerOptions::default(), &CompileOptions::default());
    let library = std::fs::read(compiled.path()).expect("it was just made");
    let calls = |name: &[u8]| library.windows(name.len()).any(|w| w == name);
    // `_ZGV` + instruction set + `N` + lanes + `v_expf`: libmvec's names.
    assert!(calls(b"v_expf") && calls(b"_ZGV"), "the loop calls the scalar function");
}
