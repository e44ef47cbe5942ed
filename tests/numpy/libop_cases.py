"""Cases for each operator of libop: dimensions 0 to 5, empty tensors, NaN and inf, and many types.

A case is a name, the text of an entry `t`, and its inputs. test_libop.py runs the cases under the shim (libop's text
against its NumPy twins); tests/suite/libop.rs runs them through the compiler, by way of `libop_cases.py OUT`.
"""
import itertools
import json
import os
import sys

import numpy as np

import taffeta_shim

NUMPY = {"bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8",
         "f16": "f2", "bf16": "f4", "f32": "f4", "f64": "f8"}
ALL_TYPES = list(NUMPY)
FLOATS = ["f16", "f32", "f64"]


def rng(*seed):
    return np.random.default_rng(list(seed))


def data(dtype, shape, seed=0, special=False, low=-9, high=10):
    """Returns random values; small integers for integer types; with `special`, some NaN and infinities."""
    r = rng(seed, len(shape), *shape)
    kind = np.dtype(NUMPY[dtype]).kind
    if kind == "b":
        return r.random(shape) < 0.5
    if kind in "iu":
        return r.integers(0 if kind == "u" else low, high, shape).astype(NUMPY[dtype])
    a = r.standard_normal(shape)
    if special:
        a = np.where(r.random(shape) < 0.3, r.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], shape), a)
    a = a.astype(NUMPY[dtype])
    if dtype == "bf16":
        a = (a.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).reshape(shape)
    return a


def case(name, expressions, **inputs):
    """Makes the case of an entry that returns `expressions`; inputs are (dtype, dims as text, array)."""
    params = ", ".join(f"{k}: {d}[{dims}]" if dims else f"{k}: {d}" for k, (d, dims, _) in inputs.items())
    text = f"def t({params}):\n    return {expressions}\n"
    return name, text, {k: a for k, (_, _, a) in inputs.items()}


def symbolic(shape, prefix="n"):
    """Formats dimensions as sizes n0, n1, …, and a dimension of length 1 as the literal."""
    return ", ".join("1" if n == 1 else f"{prefix}{d}" for d, n in enumerate(shape))


SHAPES = [(), (1,), (7,), (0,), (3, 4), (1, 5), (0, 3), (2, 0), (2, 3, 4), (2, 1, 3), (2, 3, 2, 3), (2, 2, 1, 2, 3)]


def axes_for(ndim):
    """Yields every axis, from either end, some tuples, and None."""
    yield None
    for a in range(ndim):
        yield a if a % 2 else a - ndim
    for n in (2, 3):
        for t in itertools.islice(itertools.combinations(range(ndim), n), 3):
            yield t


def reductions():
    for shape in SHAPES:
        for axis in axes_for(len(shape)):
            for keep in (False, True):
                for dtype in ("f64", "i32"):
                    x = (dtype, symbolic(shape), data(dtype, shape, special=dtype == "f64", seed=len(shape)))
                    tail = f"axis={axis}, keepdims={keep}"
                    names = ["sum", "prod", "max", "min", "any", "all", "mean", "var"]
                    calls = [f"{f}(x, {tail})" for f in names]
                    if dtype == "f64":
                        calls += [f"logsumexp(x, {tail})", f"norm(x, {tail})", f"std(x, {tail})"]
                    yield case(f"reduce-{dtype}-{shape}-{axis}-{keep}", ", ".join(calls), x=x)
                    if 0 not in shape and (axis is None or isinstance(axis, int)):
                        yield case(f"arg-{dtype}-{shape}-{axis}-{keep}", f"argmax(x, {tail}), argmin(x, {tail})", x=x)
    for dtype in ALL_TYPES:
        x = (dtype, "n, m", data(dtype, (3, 4)))
        calls = [f"{f}(x, axis={a})" for f in ["sum", "prod", "amax", "amin", "any", "all", "mean", "std", "norm"] for a in (0, 1)]
        yield case(f"reduce-types-{dtype}", ", ".join(calls), x=x)
    for order in ("1", "inf", "-inf", "0", "3", "2", "2.5"):
        yield case(f"norm-{order}", f"norm(x, ord={order}, axis=0), norm(x, ord={order}, axis=1, keepdims=True)",
                   x=("f64", "n, m", data("f64", (3, 4))))
    yield case("sum-f32-million", "sum(x), mean(x)", x=("f32", "n", (data("f32", (1000,)) + 0.1).astype("f4")))
    yield case("var-ddof", "var(x, ddof=1), std(x, axis=0, ddof=1), var(x, axis=1, ddof=4)", x=("f64", "n, m", data("f64", (3, 4))))


def normalisations():
    rows = np.array([[1.0, 2, 3], [1000, 1001, 999], [-np.inf] * 3, [np.inf, 0, 1], [np.nan, 0, 1], [-np.inf, 0, 1]])
    for f in ("softmax", "log_softmax"):
        for shape in SHAPES[1:]:
            for axis in axes_for(len(shape)):
                for dtype in FLOATS[1:]:
                    yield case(f"{f}-{dtype}-{shape}-{axis}", f"{f}(x, axis={axis})", x=(dtype, symbolic(shape), data(dtype, shape)))
        yield case(f"{f}-edges", f"{f}(x), {f}(x, axis=0)", x=("f64", "n, m", rows))
        yield case(f"{f}-int", f"{f}(x)", x=("i32", "n, m", data("i32", (3, 4))))
    yield case("logsumexp-edges", "logsumexp(x, axis=1), logsumexp(x, axis=0), logsumexp(x)", x=("f64", "n, m", rows))
    for shape in SHAPES[4:]:
        for axis in axes_for(len(shape)):
            if 0 not in shape:
                yield case(f"layer_norm-{shape}-{axis}", f"layer_norm(x, axis={axis})", x=("f32", symbolic(shape), data("f32", shape)))
    x, w = ("f32", "n, m, k", data("f32", (2, 3, 4)) + np.float32(100)), data("f32", (3, 4), seed=3)
    yield case("layer_norm-weights", "layer_norm(x, w[0], b[1]), layer_norm(x, weight=w, bias=b, axis=(1, 2), eps=0.1)",
               x=x, w=("f32", "m, k", w), b=("f32", "m, k", w + 1))


def products():
    for sa, sb in [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((2, 0), (0, 3)), ((5, 2, 3), (5, 3, 4)),
                   ((1, 2, 3), (5, 3, 4)), ((5, 2, 3), (1, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (3,)),
                   ((3,), (5, 3, 4)), ((2, 1, 2, 3), (5, 3, 4)), ((1, 4), (4, 1))]:
        da = ", ".join("1" if n == 1 else f"s{n}" for n in sa)
        db = ", ".join("1" if n == 1 else f"s{n}" for n in sb)
        for ta, tb in [("f64", "f64"), ("f32", "f32"), ("i32", "i64"), ("f32", "i32"), ("bool", "bool"), ("f16", "f16"), ("bf16", "bf16")]:
            yield case(f"matmul-{sa}-{sb}-{ta}-{tb}", "a @ b, matmul(a, b)", a=(ta, da, data(ta, sa)), b=(tb, db, data(tb, sb, seed=1)))
    for spec, shapes in [("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ij->ji", [(2, 3)]), ("ii", [(3, 3)]),
                         ("ii->i", [(3, 3)]), ("ij->", [(2, 3)]), ("i,j->ij", [(2,), (3,)]), ("i,i->", [(3,), (3,)]),
                         ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("bhqd,bhkd->bhqk", [(1, 2, 3, 4), (1, 2, 5, 4)]),
                         ("i,ij,j->", [(2,), (2, 3), (3,)]), ("ab,bc,cd,de->ae", [(2, 3), (3, 2), (2, 4), (4, 2)]),
                         ("ba", [(2, 3)]), ("ij , jk -> ki", [(2, 3), (3, 4)]), ("iij->j", [(3, 3, 2)])]:
        for dtype in ("f64", "f32", "i32", "bool"):
            names = "abcd"[:len(shapes)]
            letters = [t.strip() for t in spec.split("->")[0].split(",")]
            inputs = {n: (dtype, ", ".join(f"s{c}" for c in term), data(dtype, s, seed=k))
                      for k, (n, term, s) in enumerate(zip(names, letters, shapes))}
            yield case(f"einsum-{spec}-{dtype}", f'einsum("{spec}", {", ".join(names)})', **inputs)
    for axes, sa, sb in [(0, (2,), (3,)), (1, (2, 3), (3, 4)), (2, (4, 2, 3), (2, 3, 5)), (([0, 1], [1, 0]), (2, 3), (3, 2)),
                         ((-1, 0), (2, 3), (3, 4)), (([1], [2]), (2, 3), (4, 2, 3))]:
        a, b = ("f64", symbolic(sa, "p"), data("f64", sa)), ("f64", symbolic(sb, "q"), data("f64", sb, seed=1))
        yield case(f"tensordot-{axes}", f"tensordot(a, b, {axes})", a=a, b=b)
    m, v = ("f64", "p, q", data("f64", (3, 3))), ("f64", "q", data("f64", (3,)))
    yield case("dot", "dot(m, v), dot(v, v), dot(m, m), inner(m, v), inner(v, v), outer(v, v), dot(2.0, v)", m=m, v=v)
    yield case("dot-nd", "dot(x, m), dot(x, v), inner(x, m)", x=("f64", "k, n, q", data("f64", (2, 4, 3))), m=("f64", "q, q", data("f64", (3, 3))), v=v)


def shapes():
    for shape in SHAPES:
        x = ("i32", symbolic(shape), data("i32", shape, high=100))
        n = len(shape)
        calls = ["transpose(x)", "flatten(x)", "reshape(x, -1)" if 0 not in shape else "flatten(x)"]
        calls += [f"transpose(x, {p})" for p in list(itertools.permutations(range(n)))[:8] if p]
        calls += [f"squeeze(x, {d})" for d in range(n) if shape[d] == 1] + ["squeeze(x)"]
        calls += [f"expand_dims(x, {d})" for d in range(-n - 1, n + 1)]
        if n > 1:
            calls += ["swapaxes(x, 0, -1)", "moveaxis(x, 0, -1)", "moveaxis(x, -1, 0)"]
        for k in range(0, len(calls), 6):
            yield case(f"shape-{shape}-{k}", ", ".join(calls[k:k + 6]) + ",", x=x)
        if 0 in shape:
            yield case(f"reshape-{shape}", "reshape(x, (0,)), reshape(x, (0, 5)), reshape(x, (2, 0, 3)),", x=x)
        for axis in range(-n, n):
            yield case(f"concat-{shape}-{axis}", f"concat([x, x, y], axis={axis})", x=x, y=("f64", symbolic(shape), data("f64", shape)))
        for axis in range(-n - 1, n + 1):
            yield case(f"stack-{shape}-{axis}", f"stack([x, x], axis={axis})", x=x)
    for shape, to in [((12,), (3, 4)), ((3, 4), (12,)), ((3, 4), (2, 6)), ((2, 3, 4), (2, 12)), ((2, 3, 4), (6, 4)), ((2, 3, 4), (4, 3, 2)),
                      ((2, 3, 4), (2, 2, 6)), ((6,), (1, 6, 1)), ((1, 1), ()), ((), (1, 1)), ((0, 3), (3, 0)), ((2, 3, 4), (2, -1)), ((24,), (-1, 2, 3))]:
        yield case(f"reshape-{shape}-{to}", f"reshape(x, {to})", x=("f32", symbolic(shape), data("f32", shape)))
        literal = ", ".join(map(str, shape))
        yield case(f"reshape-literal-{shape}-{to}", f"reshape(x, {to})", x=("f32", literal, data("f32", shape)))
    x = ("f64", "n, m", data("f64", (4, 6)))
    yield ("split", "def t(x: f64[n, m]):\n    a, b = split(x, 2)\n    c, d, e = split(x, [1, 4], axis=-1)\n    return a, b, c, d, e\n", {"x": x[2]})


def elementwise():
    for dtype in ("f64", "f32", "i32"):
        for shape in ((), (5,), (2, 3), (0,)):
            x = (dtype, symbolic(shape), data(dtype, shape, special=dtype != "i32"))
            names = ["relu", "leaky_relu", "elu", "gelu", "silu", "softplus", "hardtanh", "zeros_like", "ones_like"]
            yield case(f"activations-{dtype}-{shape}", ", ".join(f"{f}(x)" for f in names) + ", gelu(x, approximate=True), full_like(x, 3), full_like(x, 2.5, f64)", x=x)
    yield case("where", "where(x > 0, x, 0), where(x > y, x, y), where(x[0] > 0, 1.0, y)",
               x=("f64", "n, m", data("f64", (3, 4))), y=("f32", "m", data("f32", (4,))))


def places():
    for shape in SHAPES[1:8]:
        x = ("f64", symbolic(shape), data("f64", shape))
        n = len(shape)
        pairs = [(d, d + 1) for d in range(n)]
        yield case(f"pad-{shape}", f"pad(x, 1), pad(x, {pairs}, 2.5), pad(x, 0)", x=x)
        for axis in range(-n, n):
            length = shape[axis]
            calls = [f"cumsum(x, {axis})", f"cumprod(x, axis={axis})", f"flip(x, {axis})", f"repeat(x, 2, {axis})"]
            calls += [f"roll(x, 1, {axis})", f"diff(x, {axis})"] if length else []
            yield case(f"along-{shape}-{axis}", ", ".join(calls), x=x)
            if length:
                for k, at in enumerate([(2,), (2, 3), (0,), ()]):
                    i = ("i32", symbolic(at, "i"), rng(k).integers(0, length, at).astype("i4"))
                    taken = shape[:axis % n] + at + shape[axis % n + 1:]
                    u = ("f64", symbolic(taken, "u"), data("f64", taken, seed=2))
                    yield case(f"gather-{shape}-{axis}-{at}", f"gather(x, i, axis={axis}), scatter_add(x, i, u, {axis})", x=x, i=i, u=u)
                to = shape[:axis % n] + (3,) + shape[axis % n + 1:]
                dims = symbolic(to).replace(f"n{axis % n}", "m")
                yield case(f"take_along_axis-{shape}-{axis}", f"take_along_axis(x, i, {axis})", x=x, i=("i64", dims, rng(5).integers(0, length, to)))
        yield case(f"whole-{shape}", f"cumsum(x), cumprod(x), flip(x), tile(x, {tuple(range(1, n + 1))}), count_nonzero(x), count_nonzero(x > 0, axis=0)", x=x)
    for dtype in ("i8", "u16", "bool", "f32", "f16"):
        yield case(f"cumsum-{dtype}", "cumsum(x, 0), cumprod(x, 1), cumsum(x)", x=(dtype, "n, m", data(dtype, (3, 4))))
    yield case("one_hot", "one_hot(i, 4), one_hot(i, 3, i32), one_hot(i[0, 0], 2, f64)", i=("i32", "n, m", np.array([[1, 0, 3], [2, -1, 9]], "i4")))
    x = ("f32", "n, m", data("f32", (3, 4)))
    yield case("matrices", "tril(x), triu(x), tril(x, -1), triu(x, k=1), diag(x), diag(x[0]), trace(x), broadcast_to(x[0], (2, 3, 4)), eye(3), eye(2, 3, i32)", x=x)
    yield case("elementwise-more", "maximum(x, 0.5), minimum(x, x[0]), square(x), log10(abs(x)), isinf(x), isfinite(x), logaddexp(x, x[1])",
               x=("f64", "n, m", data("f64", (3, 4), special=True)))
    small = {k: ("u8", "n", np.array(v, "u1")) for k, v in (("x", [255, 3, 0]), ("y", [250, 3, 9]))}
    yield case("elementwise-unsigned", "logaddexp(x, y), mse_loss(x, y)", **small)
    yield case("linspace", "linspace(a, 3.0, 7), linspace(0, 1, 5, f64), linspace(a, a, 1)", a=("f64", "", data("f64", ())))
    t = ("i32", "n", np.array([2, 0, 1], "i4"))
    yield case("losses", 'mse_loss(x, y), mse_loss(x, y, "sum"), mse_loss(x, y, reduction="none"), cross_entropy(x, t), cross_entropy(x, t, "none"), nll_loss(x, t)',
               x=("f64", "n, m", data("f64", (3, 4))), y=("f64", "n, m", data("f64", (3, 4), seed=1)), t=t)


def unwritten():
    for shape in SHAPES:
        text = "def t(x: f64[{}]):\n    y = empty_like(x)\n    z = empty_like(x, i32)\n    y[...] = 2 * x\n    z[...] = 3\n    return y, z\n"
        yield f"empty_like-{shape}", text.format(symbolic(shape)).replace("f64[]", "f64"), {"x": data("f64", shape)}


def random_numbers():
    for dtype in ("f64", "f32", "f16", "bf16"):
        yield case(f"rand-{dtype}", f"rand_uniform((2, 3), s, {dtype}), rand_uniform((0, 3), 7, {dtype}), rand_normal((n, 2), s, {dtype})",
                   s=("i64", "", np.array(-5)), x=("f64", "n", np.zeros(4)))
    yield case("rand-default", "rand_uniform((3, 2), 1), rand_normal(5, 2), rand_uniform((), 3), rand_int((4, 5), -3, 9, 4), rand_int((6,), 0, 2, s, i32)",
               s=("u32", "", np.array(11, "u4")))


def windows():
    for count, length, width in [(1, (9,), (3,)), (1, (5,), (1,)), (2, (5, 4), (3, 2)), (3, (3, 4, 2), (2, 3, 1))]:
        for stride, padding, dilation, groups in [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2), (3, 1, 1, 1)]:
            if any(n + 2 * padding < dilation * (k - 1) + 1 for n, k in zip(length, width)):
                continue
            for dtype in ("f64", "f32", "i32")[:4 - count]:
                x = (dtype, symbolic((2, 2) + length, "x"), data(dtype, (2, 2) + length))
                w = (dtype, symbolic((4, 2 // groups) + width, "w"), data(dtype, (4, 2 // groups) + width, seed=1))
                b = (dtype, "o", data(dtype, (4,), seed=2))
                tail = f"stride={stride}, padding={padding}, dilation={dilation}, groups={groups}"
                yield case(f"conv{count}d-{length}-{width}-{tail}-{dtype}", f"conv{count}d(x, w, {tail}), conv{count}d(x, w, b, {tail})", x=x, w=w, b=b)
                if 2 * padding <= min(width):
                    pool = f"{width if count > 1 else width[0]}, {stride}, padding={padding}, dilation={dilation}"
                    yield case(f"pool-{length}-{pool}-{dtype}", f'pool(x, {pool}), pool(x, {pool}, op="mean"), max_pool(x, {width}), avg_pool(x, {width})', x=x)
    x, w = ("f32", "1, 2, h, v", data("f32", (1, 2, 6, 5))), ("f32", "3, 2, r, r", data("f32", (3, 2, 3, 3)))
    yield case("conv2d-pairs", "conv2d(x, w, stride=(2, 1), padding=(0, 2), dilation=[1, 2]), conv2d(x, w, padding=r // 2)", x=x, w=w)
    yield case("pool-bool", "pool(x, 2), pool(x, 2, stride=1, padding=1)", x=("bool", "1, 1, l", np.array([[[1, 0, 0, 0, 1, 1]]], bool)))
    yield case("conv2d-depthwise", "conv2d(x, w[:, :1], groups=2)", x=("f64", "1, 2, h, v", data("f64", (1, 2, 6, 5))), w=("f64", "4, c, r, r", data("f64", (4, 2, 3, 3))))
    for dtype in ("f16", "bf16"):
        yield case(f"conv1d-{dtype}", "conv1d(x, w), avg_pool(x, 2)", x=(dtype, "1, 2, l", data(dtype, (1, 2, 8))), w=(dtype, "3, 2, r", data(dtype, (3, 2, 3))))


GROUPS = [reductions, normalisations, products, shapes, elementwise, places, unwritten, random_numbers, windows]


def all_cases():
    for group in GROUPS:
        yield from group()


def write(folder):
    """Writes for every case a `.ft` file, its inputs and NumPy's results; and an index of all cases."""
    index = []
    for k, (name, text, inputs) in enumerate(all_cases()):
        with open(os.path.join(folder, f"{k}.ft"), "w", encoding="utf-8") as f:
            f.write(text)
        for p, a in inputs.items():
            np.save(os.path.join(folder, f"{k}.in.{p}.npy"), a)
        results = taffeta_shim.run(text, "t", inputs)
        for p, a in results.items():
            np.save(os.path.join(folder, f"{k}.out.{p}.npy"), a)
        index.append({"name": name, "inputs": list(inputs), "results": list(results)})
    with open(os.path.join(folder, "index.json"), "w", encoding="utf-8") as f:
        json.dump(index, f)


if __name__ == "__main__":
    write(sys.argv[1])
