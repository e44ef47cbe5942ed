//! The probe's program: elementwise loops and conditional reductions, their operands, and the expected results.
//!
//! The program is lowered and printed like any other, so its C has the same patterns as that of users' programs.
//! Expected results are the reference interpreter's; those of mathematical functions with vector versions may be off by
//! [`MAX_ULPS`] units in the last place.

use std::sync::Arc;
use taffeta_ast::build::{Builder, block, branch, looped, reduce, store};
use taffeta_ast::expr::round_to;
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::scalar;
use taffeta_ast::stmt::{LoopProps, Vectorize};
use taffeta_ast::{
    Buffer, DType, Expr, ExprKind, Func, Kind, Literal, Op, ReduceOp, Reduction, Sharing, Stmt, StmtKind, Symbol,
    Tensor, Value,
};

/// Types of conditions, and of conditional sums, minima and maxima: one of each size and kind, since masks do not
/// depend on signedness. (All types would take a compiler half a minute.)
const NUMBERS: [DType; 6] = [DType::U8, DType::I16, DType::I32, DType::I64, DType::F32, DType::F64];

/// Number of elements of every array, and of iterations of every loop.
pub(super) const LENGTH: usize = 64;

/// Trip count of the loops whose length is a constant.
pub(super) const ROW: usize = 16;

/// Tolerance of mathematical functions around the exact value, in units in the last place: the error bound of glibc's
/// libmvec.
const MAX_ULPS: f64 = 4.0;

/// A part of the probe's program, with its operands.
pub(crate) struct Program {
    /// Program to compile.
    pub func: Func,
    /// Values of the parameters.
    pub inputs: Vec<Value>,
    /// Descriptions of the results, in order.
    pub checks: Vec<Check>,
}

/// Description of one result.
pub(crate) struct Check {
    /// Name in diagnostics: `minimum of f32`.
    name: String,
    /// Parameters from which the result is computed.
    pub of: Vec<usize>,
    /// Mathematical function that is tested, where the result need not be exact.
    pub function: Option<Op>,
}

/// Functions that are probed on the same intervals, one interval for each operand.
type Group = (&'static [(f64, f64)], Vec<Op>);

/// A miscompilation.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Wrong {
    /// Name of the operation.
    pub what: String,
    /// Operands, with the wrong and the right result.
    pub found: String,
}

impl Program {
    /// Makes the parts of the probe, which are compiled concurrently.
    pub fn parts() -> Vec<Program> {
        let part = |add: &dyn Fn(&mut Parts, DType), of: &[DType]| {
            let mut p = Parts::default();
            of.iter().for_each(|d| add(&mut p, *d));
            Program { func: p.builder.finish(block(p.loops)), inputs: p.inputs, checks: p.checks }
        };
        let floats = [DType::F32, DType::F64];
        vec![
            part(&Parts::floats, &floats),
            part(&Parts::integers, &[DType::I32, DType::I64]),
            part(&Parts::conversions, &[DType::F16, DType::Bf16, DType::I32, DType::I64]),
            part(&Parts::conditions, &NUMBERS[..3]),
            part(&Parts::conditions, &NUMBERS[3..]),
            part(&Parts::functions, &floats),
        ]
    }

    /// Returns the types of the results, in order.
    pub fn results(&self) -> impl Iterator<Item = DType> + '_ {
        self.func.results.iter().map(|t| t.dtype)
    }

    /// Compares results with the interpreter's: returns the first wrong element of each.
    pub fn wrong(&self, results: &[Buffer]) -> Vec<Wrong> {
        let sizes = [("n", LENGTH), ("m", LENGTH / ROW)].map(|(name, v)| (name.to_string(), v as i64));
        let inputs = Inputs { params: self.inputs.clone(), sizes: sizes.into() };
        let expected = match interp::run(&self.func, &inputs) {
            Ok(outputs) => outputs.results,
            Err(e) => unreachable!("the probe's operands are in the domains of its operators: {e}"),
        };
        let mut found: Vec<Wrong> = Vec::new();
        for ((check, want), have) in self.checks.iter().zip(&expected).zip(results) {
            // Several loops compute the same operation; one report is enough.
            if found.iter().any(|w| w.what == check.name) {
                continue;
            }
            let wrong = (0..LENGTH).find(|i| !self.fits(check, *i, want.data().get(*i), have.get(*i), have.dtype()));
            if let Some(i) = wrong {
                let of: Vec<String> = check.of.iter().map(|k| shown(self.inputs[*k].data().get(i))).collect();
                let (want, have) = (shown(want.data().get(i)), shown(have.get(i)));
                let text = format!("{} gives {have}, expected {want}", of.join(", "));
                found.push(Wrong { what: check.name.clone(), found: text });
            }
        }
        found
    }

    fn fits(&self, check: &Check, i: usize, want: Literal, have: Literal, dtype: DType) -> bool {
        let (Literal::Float(want), Literal::Float(have)) = (want, have) else { return want == have };
        if want.to_bits() == have.to_bits() || (want.is_nan() && have.is_nan()) {
            return true;
        }
        let Some(op) = check.function else { return false };
        let operands: Vec<Literal> = check.of.iter().map(|k| self.inputs[*k].data().get(i)).collect();
        let exact = scalar::apply(op, DType::F64, &operands);
        let Ok(Literal::Float(exact)) = exact else { return false };
        (have - exact).abs() <= MAX_ULPS * unit_in_the_last_place(exact, dtype)
    }
}

/// Returns the distance of a number from the next one of its type (unit in the last place).
fn unit_in_the_last_place(v: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F64 => v.abs().next_up() - v.abs(),
        _ => {
            let v = (v as f32).abs();
            f64::from(v.next_up()) - f64::from(v)
        }
    }
}

fn shown(v: Literal) -> String {
    match v {
        Literal::Bool(b) => if b { "True" } else { "False" }.to_string(),
        Literal::Int(i) => i.to_string(),
        Literal::Float(f) => format!("{f:?}"),
    }
}

/// A part of the program under construction.
struct Parts {
    builder: Builder,
    /// Extent of every array, unknown to the compiler.
    size: Expr,
    /// Number of rows of the two-dimensional arrays.
    rows: Expr,
    inputs: Vec<Value>,
    loops: Vec<Stmt>,
    checks: Vec<Check>,
}

/// Value computed by one statement of a loop.
struct Column {
    name: String,
    value: Expr,
    function: Option<Op>,
}

impl Default for Parts {
    fn default() -> Parts {
        let mut builder = Builder::new("probe");
        let (size, rows) = (builder.size("n"), builder.size("m"));
        Parts { builder, size, rows, inputs: Vec::new(), loops: Vec::new(), checks: Vec::new() }
    }
}

fn apply(op: Op, args: &[&Expr]) -> Expr {
    let operand = args.last().map_or(DType::Bool, |e| e.dtype());
    // Raw, since the smart constructors would simplify the operation under test.
    Expr::raw(ExprKind::Apply(op, args.iter().map(|e| (*e).clone()).collect()), op.result(operand))
}

fn exact(name: String, value: Expr) -> Column {
    Column { name, value, function: None }
}

impl Parts {
    /// Adds a parameter that repeats these values.
    fn input(&mut self, dtype: DType, values: &[Literal]) -> (usize, Arc<Tensor>) {
        let k = self.inputs.len();
        let tensor = self.builder.input(&format!("x{k}"), dtype, [&self.size]);
        let mut data = Buffer::zeros(dtype, LENGTH);
        for i in 0..LENGTH {
            let fits = data.set(i, values[i % values.len()]);
            debug_assert!(fits, "{:?} is not a {dtype}", values[i % values.len()]);
        }
        self.inputs.extend(Value::new(vec![LENGTH], data));
        (k, tensor)
    }

    fn floats_of(&mut self, dtype: DType, values: &[f64]) -> (usize, Arc<Tensor>) {
        let all: Vec<Literal> = values.iter().map(|v| Literal::Float(round_to(*v, dtype))).collect();
        self.input(dtype, &all)
    }

    /// Adds two parameters whose elements, side by side, are all pairs of a value in `a` and a value in `b`.
    fn pairs(&mut self, dtype: DType, a: &[Literal; 8], b: &[Literal; 8]) -> [(usize, Arc<Tensor>); 2] {
        let first: Vec<Literal> = (0..LENGTH).map(|k| a[k / 8]).collect();
        [self.input(dtype, &first), self.input(dtype, b)]
    }

    /// Adds a loop of a length unknown to the compiler; with `known`, also a loop of constant length inside one of
    /// unknown length: there gcc 12 drops the rounding to f16 on a CPU with AVX512-FP16.
    fn loops(&mut self, operands: &[(usize, Arc<Tensor>)], known: bool, columns: impl Fn(&[Expr]) -> Vec<Column>) {
        let of: Vec<usize> = operands.iter().map(|o| o.0).collect();
        let (i, size) = (Symbol::new("i"), self.size.clone());
        let at = [Expr::var(&i)];
        let args: Vec<Expr> = operands.iter().map(|(_, t)| t.load(at.clone())).collect();
        let body = self.columns(&of, &[&size], &at, columns(&args));
        self.loops.push(looped(&i, &size, body));
        if !known {
            return;
        }
        let (i, j, rows, row) = (Symbol::new("i"), Symbol::new("j"), self.rows.clone(), Expr::int(ROW as i64));
        let (shape, at) = ([&rows, &row], [Expr::var(&i), Expr::var(&j)]);
        let mut args = Vec::new();
        for k in &of {
            // The same values, in rows.
            let value = self.inputs[*k].clone();
            let tensor = self.builder.input(&format!("x{}", self.inputs.len()), value.dtype(), shape);
            self.inputs.extend(Value::new(vec![LENGTH / ROW, ROW], value.into_parts().1));
            args.push(tensor.load(at.clone()));
        }
        let body = self.columns(&of, &shape, &at, columns(&args));
        self.loops.push(looped(&i, &rows, looped(&j, &row, body)));
    }

    /// Adds a result of this shape for each column, and returns the stores to them.
    fn columns(&mut self, of: &[usize], shape: &[&Expr], at: &[Expr], columns: Vec<Column>) -> Stmt {
        let mut body = Vec::new();
        for Column { name, value, function } in columns {
            let name_of_result = format!("y{}", self.checks.len());
            let y = self.builder.result(&name_of_result, value.dtype(), shape.iter().copied());
            body.push(store(&y, at, &value));
            self.checks.push(Check { name, of: of.to_vec(), function });
        }
        block(body)
    }

    fn floats(&mut self, d: DType) {
        let least = if d == DType::F32 { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE };
        let all = [0.0, -0.0, 1.0, -2.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e17];
        let all = all.map(|v| Literal::Float(round_to(v, d)));
        let operands = self.pairs(d, &all, &all);
        self.loops(&operands, true, |a| {
            let (x, y) = (&a[0], &a[1]);
            vec![
                exact(format!("the minimum of {d}"), apply(Op::Min, &[x, y])),
                exact(format!("the maximum of {d}"), apply(Op::Max, &[x, y])),
                exact(format!("`isnan` of {d}"), apply(Op::IsNan, &[x])),
            ]
        });
        // Rows of constant length, which the compiler unrolls: gcc 12.2 confuses the masks of the lanes of masked
        // loads.
        self.loops(&operands, true, |a| {
            let zero = Expr::float(0.0, d);
            let positive = apply(Op::Gt, &[&a[0], &zero]);
            vec![exact(format!("`y if x > 0 else 0` of {d}"), apply(Op::Select, &[&positive, &a[1], &zero]))]
        });
        self.loops(&operands, false, |a| {
            let (x, y) = (&a[0], &a[1]);
            let zero = Expr::float(0.0, d);
            vec![
                exact(format!("`x != x` of {d}"), apply(Op::Ne, &[x, x])),
                exact(format!("`x <= y` of {d}"), apply(Op::Le, &[x, y])),
                exact(format!("`not x <= y` of {d}"), apply(Op::Not, &[&apply(Op::Le, &[x, y])])),
                exact(format!("`-(x - y)` of {d}, with its zero"), apply(Op::Neg, &[&apply(Op::Sub, &[x, y])])),
                exact(format!("`x + 0` of {d}, with its zero"), apply(Op::Add, &[x, &zero])),
                exact(format!("`x - x` of {d}"), apply(Op::Sub, &[x, x])),
                exact(format!("`x + y - x` of {d}"), apply(Op::Sub, &[&apply(Op::Add, &[x, y]), x])),
                exact(format!("the absolute value of {d}"), apply(Op::Abs, &[&apply(Op::Neg, &[x])])),
            ]
        });
        let many = [least, 1.75 * least, 1.0, 2.0, 5.0, 7.0, 0.1, 1e10, 49.0, 1.0 / 3.0, 11.0, 0.7, 1e-10, 3.0, 13.0];
        let positive: Vec<f64> = (0..LENGTH).map(|k| many[k % many.len()] * (1.0 + (k / many.len()) as f64)).collect();
        let operand = self.floats_of(d, &positive);
        self.loops(&[operand], false, |a| {
            vec![
                exact(format!("`x / 3` of {d}"), apply(Op::Div, &[&a[0], &Expr::float(3.0, d)])),
                exact(format!("`1 / x` of {d}"), apply(Op::Div, &[&Expr::float(1.0, d), &a[0]])),
                exact(format!("the square root of {d}"), apply(Op::Sqrt, &[&a[0]])),
                exact(format!("the rounding of {d}"), apply(Op::Round, &[&a[0]])),
            ]
        });
        let all = [0.0, -0.0, 1.0, -2.5, 7.0, f64::INFINITY, -7.0, 1e17].map(|v| Literal::Float(round_to(v, d)));
        let by = [0.0, 0.5, -0.5, 3.0, -3.0, f64::INFINITY, f64::NAN, 1e17].map(|v| Literal::Float(round_to(v, d)));
        let operands = self.pairs(d, &all, &by);
        self.loops(&operands, false, |a| {
            vec![
                exact(format!("`//` of {d}"), apply(Op::FloorDiv, &[&a[0], &a[1]])),
                exact(format!("`%` of {d}"), apply(Op::Mod, &[&a[0], &a[1]])),
            ]
        });
    }

    fn integers(&mut self, d: DType) {
        let (least, most) = d.int_range().unwrap_or_default();
        let all = [least, -7, -1, 0, 1, 3, 100, most].map(Literal::Int);
        let operands = self.pairs(d, &all, &all);
        self.loops(&operands, false, |a| {
            let (x, y, one) = (&a[0], &a[1], Expr::literal(Literal::Int(1), d));
            let next = apply(Op::Add, &[x, &one]);
            vec![
                exact(format!("`x + y` of {d}, wrapped around"), apply(Op::Add, &[x, y])),
                exact(format!("`x * y` of {d}, wrapped around"), apply(Op::Mul, &[x, y])),
                exact(format!("`x + 1 < x` of {d}"), apply(Op::Lt, &[&next, x])),
                exact(format!("`abs(x) < 0` of {d}"), {
                    apply(Op::Lt, &[&apply(Op::Abs, &[x]), &Expr::literal(Literal::Int(0), d)])
                }),
                exact(format!("`-x` of {d}, wrapped around"), apply(Op::Neg, &[x])),
                exact(format!("the minimum of {d}"), apply(Op::Min, &[x, y])),
            ]
        });
        let by = [-100, -7, -3, -2, 2, 3, 7, most].map(Literal::Int);
        let operands = self.pairs(d, &all, &by);
        self.loops(&operands, false, |a| {
            let three = Expr::literal(Literal::Int(3), d);
            vec![
                exact(format!("`//` of {d}"), apply(Op::FloorDiv, &[&a[0], &a[1]])),
                exact(format!("`%` of {d}"), apply(Op::Mod, &[&a[0], &a[1]])),
                exact(format!("`x // 3` of {d}"), apply(Op::FloorDiv, &[&a[0], &three])),
                exact(format!("`x >> 3` of {d}"), apply(Op::Shr, &[&a[0], &three])),
            ]
        });
    }

    /// Adds checks of 16-bit floats, or of conversions to and from an integer type.
    fn conversions(&mut self, to: DType) {
        if to.is_float() {
            return self.halves(to);
        }
        let small = [0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 2147483520.0, -2147483648.0, 16777217.0, -7.999];
        let ends = match to {
            DType::I64 => [9223372036854774784.0, -9223372036854775808.0, 4503599627370497.5],
            _ => [2147483647.0, 2147483646.99, -2147483647.5],
        };
        let x = self.floats_of(DType::F64, &[&small[..], &ends[..]].concat());
        self.loops(&[x], false, |a| vec![exact(format!("{to} of f64"), a[0].clone().cast(to))]);
        let x = self.floats_of(DType::F32, &small);
        self.loops(&[x], false, |a| vec![exact(format!("{to} of f32"), a[0].clone().cast(to))]);
        // Conversions from the integer type, and from an unsigned one.
        let (narrow, unsigned) = if to == DType::I64 { (DType::I16, DType::U64) } else { (DType::I8, DType::U32) };
        for from in [to, unsigned] {
            let (least, most) = from.int_range().unwrap_or_default();
            let all = [least, most, most - 1, 0, 1, 200, 16_777_217, 40_000, 2_147_483_583, most / 2 + 1, most / 3];
            let values: Vec<Literal> = all.into_iter().map(Literal::Int).collect();
            let x = self.input(from, &values);
            self.loops(&[x], false, |a| {
                let cast = |to: DType| exact(format!("{to} of {from}"), a[0].clone().cast(to));
                vec![cast(narrow), cast(DType::F32), cast(DType::F64)]
            });
        }
    }

    fn halves(&mut self, d: DType) {
        let one = [
            2049.0000001,
            2049.0,
            2051.0,
            65519.99,
            65520.0,
            1.00390625,
            1.003906251,
            2.9802322387695312e-8,
            1e-40,
            2.98023223876954e-8,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            -1e30,
            6.1e-5,
            5.96e-8,
            0.1,
            3.1875,
            1e5,
            -1025.5,
        ];
        for from in [DType::F32, DType::F64] {
            let x = self.floats_of(from, &one);
            // The result is widened again: compilers may lose the rounding in between.
            self.loops(&[x], true, |a| vec![exact(format!("{d} of {from}"), a[0].clone().cast(d).cast(from))]);
        }
        let (x, y) = (self.floats_of(d, &one[..19]), self.floats_of(d, &[1.0, 0.3, -2.0, 0.007, 100.0, 0.99]));
        self.loops(&[x, y], true, |a| {
            let product = apply(Op::Mul, &[&a[0], &a[1]]);
            vec![exact(format!("`x * y + y` of {d}"), apply(Op::Add, &[&product, &a[1]]))]
        });
    }

    /// Adds vectorised loops with reductions and stores under nested conditions: for compared elements of one type, and
    /// reduced elements of all types, whose vectors are longer or shorter.
    fn conditions(&mut self, compared: DType) {
        let numbers = |of: &[i32]| -> Vec<Literal> {
            let number = |v: &i32| match compared.is_float() {
                true => Literal::Float(f64::from(*v)),
                false => Literal::Int(i128::from(*v)),
            };
            of.iter().map(number).collect()
        };
        let a = self.input(compared, &numbers(&[0, 1, 1, 2, 0, 1, 0]));
        let b = self.input(compared, &numbers(&[2, 0, 1, 3, 1]));
        for reduced in NUMBERS {
            let values = [3, 5, 2, 7, 4, 9, 1, 6].map(|v| match reduced.is_float() {
                true => Literal::Float(f64::from(v)),
                false => Literal::Int(v.into()),
            });
            let x = self.input(reduced, &values);
            self.lanes([&a, &b, &x]);
        }
    }

    /// Adds vectorised loops: conditional sums, minima and maxima over all elements for each element, and a choice by
    /// two conditions.
    fn lanes(&mut self, [a, b, x]: [&(usize, Arc<Tensor>); 3]) {
        let (compared, reduced) = (a.1.dtype, x.1.dtype);
        let (i, j, size) = (Symbol::new("i"), Symbol::new("j"), self.size.clone());
        let (at, here) = (Expr::var(&i), Expr::var(&j));
        let number = |v: i128, dtype: DType| match dtype.is_float() {
            true => Expr::float(v as f64, dtype),
            false => Expr::literal(Literal::Int(v), dtype),
        };
        let outer = apply(Op::Gt, &[&a.1.load([here.clone()]), &number(0, compared)]);
        let inner = apply(Op::Ge, &[&b.1.load([here.clone()]), &b.1.load([at.clone()])]);
        let (element, one) = (x.1.load([here.clone()]), number(1, reduced));
        let names = [(ReduceOp::Add, "the sum"), (ReduceOp::Min, "the minimum"), (ReduceOp::Max, "the maximum")];
        let (mut starts, mut under, mut not, mut reductions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (op, name) in names {
            let y =
                self.result(format!("{name} of {reduced} under conditions on {compared}"), &[a.0, b.0, x.0], reduced);
            starts.push(store(&y, [&at], &number(4, reduced)));
            under.push(reduce(&y, [&at], op, &element));
            not.push(reduce(&y, [&at], op, &one));
            reductions.push(Reduction { tensor: y.symbol.clone(), op, sharing: Sharing::Partial });
        }
        let body = branch(&outer, branch(&inner, block(under), Some(block(not))), None);
        starts.push(vectorised(&j, &size, reductions, body));
        self.loops.push(looped(&i, &size, block(starts)));
        if reduced != DType::F64 {
            return;
        }
        let y = self.result(format!("the choice of {reduced} by conditions on {compared}"), &[a.0, b.0, x.0], reduced);
        let (j, inner) = (Symbol::new("j"), apply(Op::Gt, &[&b.1.load([here.clone()]), &number(1, compared)]));
        let own = |e: &Expr| {
            e.rewrite(&mut |e| match e.kind() {
                ExprKind::Var(_) if e == here => Expr::var(&j),
                _ => e,
            })
        };
        let put = |value: &Expr| store(&y, [&Expr::var(&j)], &own(value));
        let chosen = branch(&own(&inner), put(&element), Some(put(&one)));
        let body = branch(&own(&outer), chosen, Some(put(&number(2, reduced))));
        self.loops.push(vectorised(&j, &size, Vec::new(), body));
    }

    /// Adds a result computed from these parameters.
    fn result(&mut self, name: String, of: &[usize], dtype: DType) -> Arc<Tensor> {
        let y = self.builder.result(&format!("y{}", self.checks.len()), dtype, [&self.size]);
        self.checks.push(Check { name, of: of.to_vec(), function: None });
        y
    }

    /// Adds the functions that have vector versions.
    fn functions(&mut self, d: DType) {
        let functions = Op::ALL.iter().filter_map(|op| Some((*op, op.info().libmvec?.probed)));
        let mut groups: Vec<Group> = Vec::new();
        for (op, probed) in functions {
            // At most five functions per loop, each with a result of its own: fewer loops to compile.
            match groups.iter_mut().find(|(of, ops)| *of == probed && ops.len() < 5) {
                Some((_, ops)) => ops.push(op),
                None => groups.push((probed, vec![op])),
            }
        }
        for (probed, ops) in groups {
            let operands: Vec<(usize, Arc<Tensor>)> =
                probed.iter().enumerate().map(|(k, interval)| self.floats_of(d, &spread(*interval, k))).collect();
            self.loops(&operands, false, |a| {
                let args: Vec<&Expr> = a.iter().collect();
                let column = |op: &Op| Column {
                    name: format!("`{}` of {d}", op.info().name),
                    value: apply(*op, &args),
                    function: Some(*op),
                };
                ops.iter().map(column).collect()
            });
        }
    }
}

/// Makes a vectorised loop.
fn vectorised(iter: &Symbol, size: &Expr, reductions: Vec<Reduction>, body: Stmt) -> Stmt {
    let plain = looped(iter, size, body);
    let StmtKind::For { extent, body, .. } = plain.kind() else { unreachable!("it is a loop") };
    let props = LoopProps { vectorize: Some(Vectorize::default()), reductions, ..LoopProps::default() };
    plain.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
}

/// Spreads values over an interval, in another order for the second operand.
fn spread((lo, hi): (f64, f64), operand: usize) -> Vec<f64> {
    let step = (hi - lo) / (LENGTH - 1) as f64;
    let order = |i: usize| if operand == 0 { i } else { i * 37 % LENGTH };
    (0..LENGTH).map(|i| (lo + step * order(i) as f64).clamp(lo, hi)).collect()
}

/// Returns the bytes of an array, as they lie in memory.
pub(super) fn bytes(data: &Buffer) -> Vec<u8> {
    let number = |v: Literal| -> Vec<u8> {
        let size = data.dtype().size();
        match v {
            Literal::Bool(b) => vec![u8::from(b)],
            Literal::Int(i) => i.to_ne_bytes()[low_bytes(size)].to_vec(),
            Literal::Float(f) => match data.dtype() {
                DType::F64 => f.to_ne_bytes().to_vec(),
                DType::F32 => (f as f32).to_ne_bytes().to_vec(),
                DType::F16 => half::f16::from_f64(f).to_ne_bytes().to_vec(),
                _ => half::bf16::from_f64(f).to_ne_bytes().to_vec(),
            },
        }
    };
    (0..data.len()).flat_map(|i| number(data.get(i))).collect()
}

/// Makes an array from bytes; `None` if these are too few.
pub(super) fn buffer(dtype: DType, bytes: &[u8]) -> Option<Buffer> {
    let mut out = Buffer::zeros(dtype, LENGTH);
    let size = dtype.size();
    for i in 0..LENGTH {
        let raw = bytes.get(i * size..(i + 1) * size)?;
        let mut wide = [0; 8];
        wide[low_bytes_of(8, size)].copy_from_slice(raw);
        let word = u64::from_ne_bytes(wide);
        let unused = 64 - 8 * size as u32;
        let value = match dtype.kind() {
            // Any nonzero byte is read as `True`.
            Kind::Bool => Literal::Bool(word != 0),
            Kind::Int if dtype.is_signed_int() => Literal::Int(i128::from(((word << unused) as i64) >> unused)),
            Kind::Int => Literal::Int(i128::from(word)),
            Kind::Float => Literal::Float(match dtype {
                DType::F64 => f64::from_bits(word),
                DType::F32 => f64::from(f32::from_bits(word as u32)),
                DType::F16 => half::f16::from_bits(word as u16).to_f64(),
                _ => half::bf16::from_bits(word as u16).to_f64(),
            }),
        };
        if !out.set(i, value) {
            return None;
        }
    }
    Some(out)
}

/// Returns the position of the low bytes in a number of 16 bytes.
fn low_bytes(size: usize) -> std::ops::Range<usize> {
    low_bytes_of(16, size)
}

fn low_bytes_of(whole: usize, size: usize) -> std::ops::Range<usize> {
    if cfg!(target_endian = "little") { 0..size } else { whole - size..whole }
}
