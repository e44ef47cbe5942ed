//! Syntax tree of each construct of the language.

use expect_test::{Expect, expect};
use taffeta_ast::span::FileId;
use taffeta_frontend::parse::parse;
use taffeta_frontend::syntax::show as tree;

fn check(text: &str, expected: Expect) {
    let (module, diags) = parse(text, FileId(0));
    assert!(diags.is_empty(), "{diags:#?}");
    expected.assert_eq(&tree::module(&module));
}

#[test]
fn circular_difference() {
    check(
        r#""""Circular difference on a triangle mesh (SubdivNet)."""

def circular_diff(e: f32[n_faces, feats], adj: i32[n_faces, 3]) -> f32[n_faces, feats]:
    y = zeros((n_faces, feats), f32)
    for i in range(n_faces):
        for j in range(3):
            y[i] += abs(e[adj[i, j]] - e[adj[i, (j + 1) % 3]])
    return y

@schedule(circular_diff)
def fast(s):
    s.parallelize("i")
    s.vectorize(s.innermost("i"))
"#,
        expect![[r#"
            doc "Circular difference on a triangle mesh (SubdivNet)."
            def circular_diff(e: f32[n_faces, feats], adj: i32[n_faces, 3]) -> f32[n_faces, feats]
                y = zeros(tuple(n_faces, feats), f32)
                for i in range(n_faces)
                    for j in range(3)
                        y[i] Add= abs((Sub e[adj[i, j]] e[adj[i, (Mod (Add j 1) 3)]]))
                return y
            @schedule(circular_diff)
            def fast(s)
                s.parallelize("i")
                s.vectorize(s.innermost("i"))
        "#]],
    );
}

#[test]
fn recursion_over_dimensions() {
    check(
        r#"def add(a, b, c):                    # any number of dimensions, by finite recursion
    if a.ndim == 0:
        c[...] = a + b
    else:
        for i in range(a.shape[0]):
            add(a[i], b[i], c[i])
"#,
        expect![[r#"
            def add(a, b, c)
                if (a.ndim Eq 0)
                    c[...] = (Add a b)
                else
                    for i in range(a.shape[0])
                        add(a[i], b[i], c[i])
        "#]],
    );
}

#[test]
fn schedules_and_gradients() {
    check(
        r#"@schedule(matmul)
def tiled(s, ti=64, tj=64):
    i0, i1 = s.split("i", ti)
    s.reorder([i0, j0, i1, j1])
    s.permute([i0, j0], lambda i, j: (i + j, j))

dloss = grad(loss, wrt=["W", "b"])          # an entry like any other
def step(W: inout[f32[d, k]], b: inout[f32[k]], x: f32[batch, d], y: i32[batch], lr: f32) -> f32:
    l, dW, db = value_and_grad(loss, wrt=["W", "b"])(W, b, x, y)
    W[...] -= lr * dW
    b[...] -= lr * db
    return l
"#,
        expect![[r#"
            @schedule(matmul)
            def tiled(s, ti = 64, tj = 64)
                i0, i1 = s.split("i", ti)
                s.reorder([i0, j0, i1, j1])
                s.permute([i0, j0], (lambda i, j: tuple((Add i j), j)))
            dloss = grad(loss, wrt=["W", "b"])
            def step(W: inout[f32[d, k]], b: inout[f32[k]], x: f32[batch, d], y: i32[batch], lr: f32) -> f32
                l, dW, db = value_and_grad(loss, wrt=["W", "b"])(W, b, x, y)
                W[...] Sub= (Mul lr dW)
                b[...] Sub= (Mul lr db)
                return l
        "#]],
    );
}

#[test]
fn structured_tensors() {
    check(
        r#"csr = format(dense, compressed)
csc = format(dense, compressed, order=(1, 0))
coo = format(compressed(unique=False), singleton)

def spmv(A: f64[n, m] @ csr, x: f64[m]) -> f64[n]:
    t: f64[n, m] @ csr = zeros((n, m), f64)
    for i in range(n):
        y[i] += A[i, walk(j)] * x[j]
    return y, t
"#,
        expect![[r#"
            csr = format(dense, compressed)
            csc = format(dense, compressed, order=tuple(1, 0))
            coo = format(compressed(unique=False), singleton)
            def spmv(A: (MatMul f64[n, m] csr), x: f64[m]) -> f64[n]
                declare t: (MatMul f64[n, m] csr) = zeros(tuple(n, m), f64)
                for i in range(n)
                    y[i] Add= (Mul A[i, walk(j)] x[j])
                return tuple(y, t)
        "#]],
    );
}

#[test]
fn continuous_tensors() {
    check(
        r#"def in_box(points: bool[real, real, n] @ format(pinpoint, pinpoint, compressed),
           box: bool[real, real] @ format(interval, interval)) -> bool[n]:
    out = zeros((n,), bool)
    for x in reals:
        for y.d0 in range(n):
            out[id] |= points[x, y, id] & box[x, y]
    return out
"#,
        expect![[r#"
            def in_box(points: (MatMul bool[real, real, n] format(pinpoint, pinpoint, compressed)), box: (MatMul bool[real, real] format(interval, interval))) -> bool[n]
                out = zeros(tuple(n), bool)
                for x in reals
                    for y.d0 in range(n)
                        out[id] BitOr= (BitAnd points[x, y, id] box[x, y])
                return out
        "#]],
    );
}

#[test]
fn precedence() {
    check(
        r#"def f():
    a = 1 + 2 * 3 - 4 / 5 // 6 % 7 @ 8
    b = -x ** -y ** 2 * ~z
    c = a | b ^ c & d << 1 + 2 >> 3
    d = not a < b <= c != d and e or not not f in g and x not in y
    e = a if b else c if d else e
    f = (a, b), (c,), (), (d)
    g = x is None or y is not None
    h = a - b - c ** d ** e
    i = a < (b < c)
"#,
        expect![[r#"
            def f()
                a = (Sub (Add 1 (Mul 2 3)) (MatMul (Mod (FloorDiv (Div 4 5) 6) 7) 8))
                b = (Mul (Neg (Pow x (Neg (Pow y 2)))) (Invert z))
                c = (BitOr a (BitXor b (BitAnd c (Shr (Shl d (Add 1 2)) 3))))
                d = (or (and (Not (a Lt b Le c Ne d)) e) (and (Not (Not (f In g))) (x NotIn y)))
                e = (if b then a else (if d then c else e))
                f = tuple(tuple(a, b), tuple(c), tuple(), d)
                g = (or (x Is None) (y IsNot None))
                h = (Sub (Sub a b) (Pow c (Pow d e)))
                i = (a Lt (b Lt c))
        "#]],
    );
}

#[test]
fn subscripts() {
    check(
        r#"def f():
    a = x[i], x[1:2], x[::2], x[:, None, ..., -1], x[a:b:c, ::-1], x[(1, 2)], x[i,]
    b = x.shape[0](1)[2].y(z, k=3)
"#,
        expect![[r#"
            def f()
                a = tuple(x[i], x[1:2], x[::2], x[:, None, ..., (Neg 1)], x[a:b:c, ::(Neg 1)], x[1, 2], x[i])
                b = x.shape[0](1)[2].y(z, k=3)
        "#]],
    );
}

#[test]
fn statements() {
    check(
        r#"from libop import softmax as s, relu
from m import (a,
    b as c,)
N = 64; M = N
def f(
    x,  # first
    y=1,
):
    """Doc."""
    "dropped"
    a, b = b, a
    (c, d) = f(x)
    t: f64 = 0.0
    u: f32
    for i, j in ndrange(n, m): pass
    for (k) in static(range(3)): a = 1; b = 2;
    if a:
        pass
    elif b: return
    elif c:
        return 1, 2
    else:
        return a
    assert a == b, "message"
    assert a
    x @= y; x //= y; x **= y; x >>= y; x <<= y; x &= y; x |= y; x ^= y; x %= y; x /= y; x -= y; x *= y; x += y
    y = 1 + \
        2
"#,
        expect![[r#"
            import libop [s=softmax relu]
            import m [a c=b]
            N = 64
            M = N
            def f(x, y = 1)
                doc "Doc."
                a, b = tuple(b, a)
                c, d = f(x)
                declare t: f64 = 0e0
                declare u: f32
                for i, j in ndrange(n, m)
                    pass
                for k in static(range(3))
                    a = 1
                    b = 2
                if a
                    pass
                else
                    if b
                        return
                    else
                        if c
                            return tuple(1, 2)
                        else
                            return a
                assert (a Eq b) else "message"
                assert a
                x MatMul= y
                x FloorDiv= y
                x Pow= y
                x Shr= y
                x Shl= y
                x BitAnd= y
                x BitOr= y
                x BitXor= y
                x Mod= y
                x Div= y
                x Sub= y
                x Mul= y
                x Add= y
                y = (Add 1 2)
        "#]],
    );
}

#[test]
fn literals() {
    check(
        r#"def f():
    a = 0, 00, 1_000, 0xFF_ff, 0o17, 0b1_1, 18446744073709551615
    b = 1.0, 1., .5, 1e-3, 1_0.0_1E+1_0, 007.5
    c = "a" 'b' """c
d""" r"\n" "\n\t\x41\u03b1\101\q\\\'" u"u"
    d = f"{n} faces", f"{{}}{x[i, 'k']}" "tail", f"", "a" f"{b}"
    e = True, False, None, ...
"#,
        expect![[r#"
            def f()
                a = tuple(0, 0, 1000, 65535, 15, 3, 18446744073709551615)
                b = tuple(1e0, 1e0, 5e-1, 1e-3, 1.001e11, 7.5e0)
                c = "abc\nd\u{5c}n\n\u{9}A\u{3b1}A\u{5c}q\u{5c}'u"
                d = tuple(f[n " faces"], f["{}" x[i, "k"] "tail"], f[], f["a" b])
                e = tuple(True, False, None, ...)
        "#]],
    );
}

#[test]
fn comprehensions() {
    check(
        r#"a = [k for k in range(3)]
b = [(i, j) for i, j in x if i if not j]
c = [1, 2,], [], [[x for x in y] for y in z]
"#,
        expect![[r#"
            a = [k for k in range(3)]
            b = [tuple(i, j) for i, j in x if i if (Not j)]
            c = tuple([1, 2], [], [[x for x in y] for y in z])
        "#]],
    );
}
