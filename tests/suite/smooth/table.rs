//! The table: operators, points, and the first and second derivatives there.

use taffeta_ast::{DType, Literal, Op, scalar};

/// Operator of a vector `x`.
pub struct Row {
    /// Name of the operator.
    pub of: &'static str,
    /// Expression, whose elements are summed with weights 1, 2, 3 … in the order of memory.
    pub text: &'static str,
    pub points: Vec<Vec<f64>>,
    pub want: Want,
}

type Gradient = fn(&[f64]) -> Vec<f64>;
type Hessian = fn(&[f64]) -> Vec<Vec<f64>>;

/// First derivatives at a point.
type First = dyn Fn(&[f64]) -> Vec<f64> + Sync;
/// Second derivatives at a point.
type Second = dyn Fn(&[f64]) -> Vec<Vec<f64>> + Sync;

pub enum Want {
    /// Derivatives in closed form.
    Closed(Box<First>, Box<Second>),
    /// Derivatives of a polynomial of degree two, which follow from values alone.
    Quadratic,
}

/// Operators without a row, with the reason.
pub const NOT_SMOOTH: &[(&str, &str)] = &[
    ("abs relu leaky_relu hardtanh clip", "a kink where a piece ends"),
    ("max min amax amin maximum minimum pool max_pool", "a kink where operands are equal"),
    ("floor ceil round trunc sign", "steps"),
    ("isnan stored isinf isfinite all any count_nonzero argmax argmin", "results that are no floats"),
    ("one_hot eye rand_uniform rand_normal rand_int zeros_like ones_like empty_like", "nothing to differentiate by"),
    ("stop_gradient", "its derivative is 0 by definition"),
];

fn unary(of: &'static str, text: &'static str, points: &[f64], d: fn(f64) -> f64, dd: fn(f64) -> f64) -> Row {
    let want = Want::Closed(Box::new(move |x| vec![d(x[0])]), Box::new(move |x| vec![vec![dd(x[0])]]));
    Row { of, text, points: points.iter().map(|p| vec![*p]).collect(), want }
}

fn vector(of: &'static str, text: &'static str, points: &[&[f64]], gradient: Gradient, hessian: Hessian) -> Row {
    let want = Want::Closed(Box::new(gradient), Box::new(hessian));
    Row { of, text, points: points.iter().map(|p| p.to_vec()).collect(), want }
}

/// Makes the row of a quadratic operator, at 0 and at a point with distinct coordinates.
fn quadratic(of: &'static str, text: &'static str, n: usize) -> Row {
    let points = vec![vec![0.0; n], (0..n).map(|k| ((7 * k) % 11) as f64 - 4.0).collect()];
    Row { of, text, points, want: Want::Quadratic }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Returns the density of the normal distribution.
fn bell(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Returns the cumulative distribution function of the normal distribution.
fn normal(x: f64) -> f64 {
    match scalar::apply(Op::Erf, DType::F64, &[Literal::Float(x / 2f64.sqrt())]) {
        Ok(Literal::Float(erf)) => 0.5 * (1.0 + erf),
        other => unreachable!("erf is a float, not {other:?}"),
    }
}

/// Returns the weights of the sum.
fn weights(n: usize) -> Vec<f64> {
    (1..=n).map(|k| k as f64).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn made(n: usize, f: impl Fn(usize) -> f64) -> Vec<f64> {
    (0..n).map(f).collect()
}

fn matrix(n: usize, f: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    (0..n).map(|i| (0..n).map(|j| f(i, j)).collect()).collect()
}

fn delta(i: usize, j: usize) -> f64 {
    f64::from(u8::from(i == j))
}

fn softmax(x: &[f64]) -> Vec<f64> {
    let largest = x.iter().fold(f64::NEG_INFINITY, |a, v| a.max(*v));
    let sum: f64 = x.iter().map(|v| (v - largest).exp()).sum();
    x.iter().map(|v| (v - largest).exp() / sum).collect()
}

fn softmax_hessian(x: &[f64]) -> Vec<Vec<f64>> {
    let p = softmax(x);
    matrix(x.len(), |i, j| p[i] * (delta(i, j) - p[j]))
}

/// Returns `x - mean(x)` and the variance.
fn centred(x: &[f64]) -> (Vec<f64>, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let d: Vec<f64> = x.iter().map(|v| v - mean).collect();
    let variance = dot(&d, &d) / n;
    (d, variance)
}

/// Multiplies all elements but some.
fn product(x: &[f64], without: &[usize]) -> f64 {
    x.iter().enumerate().filter(|(k, _)| !without.contains(k)).map(|(_, v)| v).product()
}

const ANY: &[f64] = &[0.0, -0.0, 1.0, -1.0, 0.3, -2.5];
const WIDE: &[f64] = &[0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 30.0, -30.0, 1000.0, -1000.0, 1e200, -1e200];
const POSITIVE: &[f64] = &[1.0, 0.01, 3.0, 1e6];
const TIES: &[&[f64]] = &[
    &[0.0, 0.0, 0.0],
    &[1.0, 1.0, -1.0],
    &[-2.0, 3.0, 3.0],
    &[0.5, -0.25, 2.0],
    &[1000.0, 0.0, -1000.0],
    &[-1000.0, -1000.0, -1001.0],
    &[1e200, 1e200, -1e200],
];
const PAIRS: &[&[f64]] = &[
    &[0.0, 0.0],
    &[2.0, 2.0],
    &[-1.0, 2.0],
    &[1000.0, 1000.0],
    &[1000.0, -1000.0],
    &[-1000.0, 1000.0],
    &[1e200, 1e200],
];

pub fn rows() -> Vec<Row> {
    [intrinsics(), powers(), elementwise(), reductions(), normalised(), rearranged(), products()]
        .into_iter()
        .flatten()
        .collect()
}

fn intrinsics() -> Vec<Row> {
    use std::f64::consts::LN_2;
    vec![
        unary("sqrt", "sqrt(x)", POSITIVE, |x| 0.5 / x.sqrt(), |x| -0.25 / (x * x.sqrt())),
        unary("rsqrt", "rsqrt(x)", POSITIVE, |x| -0.5 / (x * x.sqrt()), |x| 0.75 / (x * x * x.sqrt())),
        unary("exp", "exp(x)", &[0.0, 1.0, -1.0, 40.0, -1000.0], f64::exp, f64::exp),
        unary("exp2", "exp2(x)", &[0.0, 1.0, -1.0, 40.0, -2000.0], |x| LN_2 * x.exp2(), |x| LN_2 * LN_2 * x.exp2()),
        unary("expm1", "expm1(x)", &[0.0, 1.0, -1.0, 40.0, -1000.0], f64::exp, f64::exp),
        unary("log", "log(x)", POSITIVE, |x| 1.0 / x, |x| -1.0 / (x * x)),
        unary("log2", "log2(x)", POSITIVE, |x| 1.0 / (x * LN_2), |x| -1.0 / (x * x * LN_2)),
        unary("log1p", "log1p(x)", &[0.0, 1.0, -0.5, 1e6], |x| 1.0 / (1.0 + x), |x| -(1.0 + x).powi(-2)),
        unary("sin", "sin(x)", ANY, f64::cos, |x| -x.sin()),
        unary("cos", "cos(x)", ANY, |x| -x.sin(), |x| -x.cos()),
        unary("tan", "tan(x)", ANY, |x| x.cos().powi(-2), |x| 2.0 * x.tan() * x.cos().powi(-2)),
        unary("asin", "asin(x)", &[0.0, 0.5, -0.5], |x| (1.0 - x * x).powf(-0.5), |x| x * (1.0 - x * x).powf(-1.5)),
        unary("acos", "acos(x)", &[0.0, 0.5, -0.5], |x| -(1.0 - x * x).powf(-0.5), |x| -x * (1.0 - x * x).powf(-1.5)),
        unary("atan", "atan(x)", WIDE, |x| 1.0 / (1.0 + x * x), |x| -2.0 * x / (1.0 + x * x) / (1.0 + x * x)),
        unary("sinh", "sinh(x)", ANY, f64::cosh, f64::sinh),
        unary("cosh", "cosh(x)", ANY, f64::sinh, f64::cosh),
        unary("tanh", "tanh(x)", WIDE, |x| x.cosh().powi(-2), |x| -2.0 * x.tanh() * x.cosh().powi(-2)),
        unary(
            "sigmoid",
            "sigmoid(x)",
            WIDE,
            |x| sigmoid(x) * sigmoid(-x),
            |x| sigmoid(x) * sigmoid(-x) * (sigmoid(-x) - sigmoid(x)),
        ),
        unary(
            "erf",
            "erf(x)",
            WIDE,
            |x| 2.0 * 2f64.sqrt() * bell(2f64.sqrt() * x),
            |x| if x.abs() > 100.0 { 0.0 } else { -4.0 * 2f64.sqrt() * x * bell(2f64.sqrt() * x) },
        ),
        vector(
            "atan2",
            "atan2(x[0], x[1])",
            &[&[0.0, 1.0], &[1.0, 0.0], &[2.0, 2.0], &[-1.0, -1.0], &[0.0, 1000.0], &[1e200, 1.0], &[1e200, 1e200]],
            |x| {
                let r = x[0].hypot(x[1]);
                vec![x[1] / r / r, -x[0] / r / r]
            },
            |x| {
                let r = x[0].hypot(x[1]);
                let (s, c) = (x[0] / r, x[1] / r);
                let (a, b) = (-2.0 * s * c / r / r, (s * s - c * c) / r / r);
                vec![vec![a, b], vec![b, -a]]
            },
        ),
        quadratic("fma", "fma(x[0], x[1], x[2])", 3),
        quadratic("select", "select(x > 1.0, x * x, x * x)", 2),
    ]
}

fn powers() -> Vec<Row> {
    let bases: &[&[f64]] = &[&[1.0, 0.0], &[2.0, 1.0], &[2.0, 2.0], &[0.5, -1.5], &[3.0, 0.0]];
    let gradient = |x: &[f64]| vec![x[1] * x[0].powf(x[1] - 1.0), x[0].powf(x[1]) * x[0].ln()];
    let hessian = |x: &[f64]| {
        let (a, b) = (x[0], x[1]);
        let mixed = a.powf(b - 1.0) * (1.0 + b * a.ln());
        vec![vec![b * (b - 1.0) * a.powf(b - 2.0), mixed], vec![mixed, a.powf(b) * a.ln().powi(2)]]
    };
    vec![
        quadratic("**", "x ** 1", 2),
        quadratic("**", "x ** 2", 2),
        quadratic("**", "x ** 0", 2),
        unary("**", "x ** 3", ANY, |x| 3.0 * x * x, |x| 6.0 * x),
        unary("**", "x ** 4", ANY, |x| 4.0 * x.powi(3), |x| 12.0 * x * x),
        unary("**", "x ** 1.5", POSITIVE, |x| 1.5 * x.sqrt(), |x| 0.75 / x.sqrt()),
        unary("**", "x ** -1", &[1.0, -2.0, 1e6], |x| -x.powi(-2), |x| 2.0 * x.powi(-3)),
        unary("**", "abs(x) ** 3", ANY, |x| 3.0 * x * x.abs(), |x| 6.0 * x.abs()),
        unary("**", "2.0 ** x", ANY, |x| 2f64.ln() * 2f64.powf(x), |x| 2f64.ln().powi(2) * 2f64.powf(x)),
        vector("**", "x[0] ** x[1]", bases, gradient, hessian),
        vector("**", "pow(x[0], x[1])", bases, gradient, hessian),
        // At base 0, the derivative by the exponent is 0, and that by the base is the power that remains.
        vector(
            "**",
            "pow(x[0], x[1])",
            &[&[0.0, 2.0], &[0.0, 3.0]],
            |_| vec![0.0, 0.0],
            |x| vec![vec![if x[1] == 2.0 { 2.0 } else { 0.0 }, 0.0], vec![0.0, 0.0]],
        ),
    ]
}

fn elementwise() -> Vec<Row> {
    use std::f64::consts::LN_10;
    vec![
        quadratic("square", "square(x)", 3),
        unary("log10", "log10(x)", POSITIVE, |x| 1.0 / (x * LN_10), |x| -1.0 / (x * x * LN_10)),
        unary("softplus", "softplus(x)", WIDE, sigmoid, |x| sigmoid(x) * sigmoid(-x)),
        // The second derivative jumps at 0, where it is the exponential's.
        unary("elu", "elu(x)", WIDE, |x| if x > 0.0 { 1.0 } else { x.exp() }, |x| if x > 0.0 { 0.0 } else { x.exp() }),
        unary("silu", "silu(x)", WIDE, silu_first, silu_second),
        unary(
            "gelu",
            "gelu(x)",
            WIDE,
            |x| normal(x) + if x.abs() > 100.0 { 0.0 } else { x * bell(x) },
            |x| if x.abs() > 100.0 { 0.0 } else { bell(x) * (2.0 - x * x) },
        ),
        unary("gelu", "gelu(x, approximate=True)", WIDE, |x| rounded_gelu(x).0, |x| rounded_gelu(x).1),
        vector(
            "logaddexp",
            "logaddexp(x[0], x[1])",
            PAIRS,
            |x| vec![sigmoid(x[0] - x[1]), sigmoid(x[1] - x[0])],
            |x| {
                let s = sigmoid(x[0] - x[1]) * sigmoid(x[1] - x[0]);
                vec![vec![s, -s], vec![-s, s]]
            },
        ),
        // Beside -inf, the whole derivative belongs to the other operand.
        unary("logaddexp", "logaddexp(x, -inf)", WIDE, |_| 1.0, |_| 0.0),
        unary("logaddexp", "logaddexp(-inf, x)", WIDE, |_| 1.0, |_| 0.0),
        quadratic("where", "where(x > 1.0, x, x)", 3),
    ]
}

fn silu_first(x: f64) -> f64 {
    let far = x.abs() > 700.0;
    sigmoid(x) + if far { 0.0 } else { x * sigmoid(x) * sigmoid(-x) }
}

fn silu_second(x: f64) -> f64 {
    let slope = sigmoid(x) * sigmoid(-x);
    if x.abs() > 700.0 { 0.0 } else { 2.0 * slope + x * slope * (sigmoid(-x) - sigmoid(x)) }
}

/// Returns the first and second derivatives of the approximation with tanh.
fn rounded_gelu(x: f64) -> (f64, f64) {
    if x.abs() > 10.0 {
        return (if x > 0.0 { 1.0 } else { 0.0 }, 0.0);
    }
    let (k, c) = ((2.0 / std::f64::consts::PI).sqrt(), 0.044715);
    let (u, du, ddu) = (k * (x + c * x.powi(3)), k * (1.0 + 3.0 * c * x * x), 6.0 * k * c * x);
    let (t, s) = (u.tanh(), u.cosh().powi(-2));
    let first = 0.5 * (1.0 + t) + 0.5 * x * s * du;
    (first, s * du + 0.5 * x * (s * ddu - 2.0 * t * s * du * du))
}

fn reductions() -> Vec<Row> {
    let zeros: &[&[f64]] = &[&[0.0; 4], &[0.0, 2.0, 0.0, 1.0], &[1.0, 1.0, 1.0, 1.0], &[0.0, 2.0, -3.0, 0.5]];
    let lengths: &[&[f64]] = &[&[3.0, 0.0, -4.0], &[1e6, 1e6, 0.0], &[0.25, -2.0, 1.0]];
    let equal: &[&[f64]] = &[&[1.0, 1.0, 1.0], &[1e6, -1e6, 1e6], &[3.0, 0.0, -4.0], &[0.25, -2.0, 1.0]];
    vec![
        quadratic("sum", "sum(reshape(x, (2, 3)), axis=0)", 6),
        quadratic("mean", "mean(reshape(x, (2, 4)), axis=1)", 8),
        quadratic("mean", "mean(x)", 4),
        quadratic("var", "var(x)", 4),
        quadratic("var", "var(reshape(x, (4, 2)), axis=0)", 8),
        quadratic("cumsum", "cumsum(x)", 4),
        quadratic("trace", "trace(reshape(x, (2, 2)))", 4),
        vector(
            "prod",
            "prod(x)",
            zeros,
            |x| made(4, |i| product(x, &[i])),
            |x| matrix(4, |i, j| if i == j { 0.0 } else { product(x, &[i, j]) }),
        ),
        vector(
            "cumprod",
            "cumprod(x)",
            zeros,
            |x| made(4, |i| (i..4).map(|k| (k + 1) as f64 * product(&x[..=k], &[i])).sum()),
            |x| {
                let of = |k: usize, i: usize, j: usize| (k + 1) as f64 * product(&x[..=k], &[i, j]);
                matrix(4, |i, j| if i == j { 0.0 } else { (i.max(j)..4).map(|k| of(k, i, j)).sum() })
            },
        ),
        vector("std", "std(x)", lengths, std_gradient, |x| {
            let (d, variance) = centred(x);
            let (n, s) = (x.len() as f64, variance.sqrt());
            matrix(x.len(), |i, j| (delta(i, j) - 1.0 / n) / (n * s) - d[i] * d[j] / (n * n * s * s * s))
        }),
        vector(
            "norm",
            "norm(x)",
            equal,
            |x| made(3, |i| x[i] / dot(x, x).sqrt()),
            |x| {
                let r = dot(x, x).sqrt();
                matrix(3, |i, j| (delta(i, j) - x[i] / r * (x[j] / r)) / r)
            },
        ),
        vector(
            "norm",
            "norm(x, ord=3)",
            equal,
            |x| made(3, |i| x[i] * x[i].abs() / cubic(x).powi(2)),
            |x| {
                let r = cubic(x);
                let g = |i: usize| x[i] * x[i].abs() / (r * r);
                matrix(3, |i, j| 2.0 * x[i].abs() * delta(i, j) / (r * r) - 2.0 * g(i) * g(j) / r)
            },
        ),
    ]
}

fn cubic(x: &[f64]) -> f64 {
    x.iter().map(|v| v.abs().powi(3)).sum::<f64>().cbrt()
}

fn std_gradient(x: &[f64]) -> Vec<f64> {
    let (d, variance) = centred(x);
    made(x.len(), |i| d[i] / (x.len() as f64 * variance.sqrt()))
}

fn normalised() -> Vec<Row> {
    let mut rows = vec![vector(
        "layer_norm",
        "layer_norm(x, eps=0.5)",
        &TIES[..4],
        |x| {
            let ((d, v), w) = (centred(x), weights(3));
            let (r, c) = ((v + 0.5).powf(-0.5), centred(&w).0);
            made(3, |i| r * c[i] - r.powi(3) * d[i] * dot(&w, &d) / 3.0)
        },
        |x| {
            let ((d, v), w) = (centred(x), weights(3));
            let (r, c, a) = ((v + 0.5).powf(-0.5), centred(&w).0, dot(&w, &d));
            let curved =
                |i: usize, j: usize| 3.0 * r.powi(5) * d[i] * d[j] / 9.0 - r.powi(3) * (delta(i, j) - 1.0 / 3.0) / 3.0;
            matrix(3, |i, j| -r.powi(3) * (c[i] * d[j] + d[i] * c[j]) / 3.0 + a * curved(i, j))
        },
    )];
    // Over all dimensions, and over the first of two, which has another formula.
    for text in ["softmax(x)", "softmax(reshape(x, (3, 1)), axis=0)", "softmax(reshape(x, (3, 1)), axis=None)"] {
        rows.push(vector(
            "softmax",
            text,
            TIES,
            |x| {
                let (p, w) = (softmax(x), weights(3));
                made(3, |i| p[i] * (w[i] - dot(&w, &p)))
            },
            |x| {
                let (p, w) = (softmax(x), weights(3));
                let c = made(3, |i| w[i] - dot(&w, &p));
                matrix(3, |i, j| p[i] * (delta(i, j) * c[i] - p[j] * (c[i] + c[j])))
            },
        ));
    }
    for text in ["log_softmax(x)", "log_softmax(reshape(x, (3, 1)), axis=0)"] {
        let gradient = |x: &[f64]| made(3, |i| (i + 1) as f64 - 6.0 * softmax(x)[i]);
        rows.push(vector("log_softmax", text, TIES, gradient, |x| {
            softmax_hessian(x).into_iter().map(|row| row.into_iter().map(|v| -6.0 * v).collect()).collect()
        }));
    }
    for text in ["logsumexp(x)", "logsumexp(reshape(x, (3, 1)), axis=0)"] {
        rows.push(vector("logsumexp", text, TIES, softmax, softmax_hessian));
    }
    // If all elements are -inf, the result does not change with them.
    rows.push(unary("logsumexp", "logsumexp(x - inf)", &[1.0], |_| 0.0, |_| 0.0));
    rows.push(vector(
        "cross_entropy",
        "cross_entropy(reshape(x, (1, 3)), ones((1,), i32))",
        TIES,
        |x| made(3, |i| softmax(x)[i] - delta(i, 1)),
        softmax_hessian,
    ));
    rows
}

fn rearranged() -> Vec<Row> {
    vec![
        quadratic("nll_loss", "nll_loss(reshape(x, (2, 2)), ones((2,), i32))", 4),
        quadratic("concat", "concat([x, 2.0 * x])", 2),
        quadratic("stack", "stack([x, 2.0 * x], axis=1)", 2),
        quadratic("split", "split(x, 2)[1]", 4),
        quadratic("gather", "gather(x, cast(arange(4) % 2, i32))", 3),
        quadratic("take_along_axis", "take_along_axis(x, cast(arange(4) % 2, i32), 0)", 3),
        quadratic("scatter_add", "scatter_add(x[:3], cast(arange(4) % 2, i32), x[3:])", 7),
        quadratic("linspace", "linspace(x[0], x[1], 5, f64)", 2),
        quadratic("diag", "diag(x)", 2),
        quadratic("tril", "tril(reshape(x, (2, 2)))", 4),
        quadratic("triu", "triu(reshape(x, (2, 2)))", 4),
        quadratic("full_like", "full_like(x, x[1])", 2),
        quadratic("pad", "pad(x, 1)", 3),
        quadratic("flip", "flip(x)", 3),
        quadratic("roll", "roll(x, 1, axis=0)", 3),
        quadratic("repeat", "repeat(x, 2, axis=0)", 3),
        quadratic("tile", "tile(x, (2,))", 3),
        quadratic("diff", "diff(x)", 4),
        quadratic("broadcast_to", "broadcast_to(x, (2, 3))", 3),
        quadratic("reshape", "reshape(x, (3, 2))", 6),
        quadratic("flatten", "flatten(reshape(x, (3, 2)))", 6),
        quadratic("squeeze", "squeeze(reshape(x, (3, 1)))", 3),
        quadratic("expand_dims", "expand_dims(x, 0)", 3),
        quadratic("transpose", "transpose(reshape(x, (3, 2)))", 6),
        quadratic("swapaxes", "swapaxes(reshape(x, (3, 2)), 0, 1)", 6),
        quadratic("moveaxis", "moveaxis(reshape(x, (3, 2)), 0, 1)", 6),
        quadratic("avg_pool", "avg_pool(reshape(x, (1, 1, 4)), 2)", 4),
    ]
}

fn products() -> Vec<Row> {
    vec![
        quadratic("mse_loss", "mse_loss(x[:4], x[4:])", 8),
        quadratic("dot", "dot(x[:3], x[3:])", 6),
        quadratic("inner", "inner(reshape(x[:4], (2, 2)), x[4:])", 6),
        quadratic("outer", "outer(x[:2], x[2:])", 5),
        quadratic("matmul", "matmul(reshape(x[:4], (2, 2)), reshape(x[4:], (2, 2)))", 8),
        quadratic("einsum", "einsum(\"ij,j->i\", reshape(x[:4], (2, 2)), x[4:])", 6),
        quadratic("tensordot", "tensordot(reshape(x[:4], (2, 2)), x[4:], 1)", 6),
        quadratic("conv1d", "conv1d(reshape(x[:4], (1, 1, 4)), reshape(x[4:], (1, 1, 3)), padding=1)", 7),
        quadratic("conv2d", "conv2d(reshape(x[:4], (1, 1, 2, 2)), reshape(x[4:], (1, 1, 2, 2)))", 8),
        quadratic("conv3d", "conv3d(reshape(x[:4], (1, 1, 1, 2, 2)), reshape(x[4:], (1, 1, 1, 2, 2)))", 8),
    ]
}
