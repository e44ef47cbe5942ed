"""NumPy and SciPy twins of libop's operators, so that libop is tested against them and not against itself.

Reductions of floats are computed in f64 and rounded once, as libop specifies.
"""
import functools

import numpy as np
from scipy import special

from taffeta_values import (BOOL, F64, I64, U64, Tensor, Weak, TaffetaError, binary, cast, choose, declared_type, extremum, number,
                         promote, to_type, unary)

OPERATORS = {}


def operator(function):
    """Registers a twin under the name of its operator."""
    OPERATORS[function.__name__.rstrip("_")] = function
    return function


def tensor(v):
    if isinstance(v, Tensor):
        return v
    dtype = declared_type(v)
    return Tensor(to_type(np.asarray(number(v)), dtype), dtype)


def made(a, dtype, dims=None):
    return Tensor(np.array(to_type(np.asarray(a), dtype)), dtype, dims)


def float_type(dtype):
    return dtype if dtype.is_float else F64


def sum_type(dtype):
    return dtype if dtype.is_float else U64 if dtype.kind == "unsigned" else I64


def wide(x):
    """Returns x's array in f64."""
    return tensor(x).a.astype(np.float64)


def axes_of(axis, ndim):
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    if any(not -ndim <= a < ndim for a in axes):
        raise TaffetaError(f"axis {axis} is out of range for {ndim} dimensions")
    return tuple(a % ndim for a in axes)


def reduction(x, axis, keepdims, dtype, function):
    """Applies function(array, axes) with the axes kept, then drops them unless `keepdims`."""
    axes = axes_of(axis, x.ndim)
    a = np.asarray(function(x.a, axes)).reshape([1 if d in axes else n for d, n in enumerate(x.a.shape)])
    dims = [1 if d in axes else n for d, n in enumerate(x.dims)]
    if not keepdims:
        a = a.reshape([n for d, n in enumerate(a.shape) if d not in axes])
        dims = [n for d, n in enumerate(dims) if d not in axes]
    return made(a, dtype, dims)


@operator
def sum_(x, axis=None, keepdims=False):
    x = tensor(x)
    work = np.float64 if x.dtype.is_float else sum_type(x.dtype).np
    return reduction(x, axis, keepdims, sum_type(x.dtype), lambda a, axes: np.sum(a.astype(work), axis=axes))


@operator
def prod(x, axis=None, keepdims=False):
    x = tensor(x)
    work = np.float64 if x.dtype.is_float else sum_type(x.dtype).np
    return reduction(x, axis, keepdims, sum_type(x.dtype), lambda a, axes: np.prod(a.astype(work), axis=axes))


def bounds(dtype):
    if dtype is BOOL:
        return False, True
    return (-np.inf, np.inf) if dtype.is_float else (np.iinfo(dtype.np).min, np.iinfo(dtype.np).max)


@operator
def amax(x, axis=None, keepdims=False):
    x = tensor(x)
    low = bounds(x.dtype)[0]
    return reduction(x, axis, keepdims, x.dtype, lambda a, axes: np.max(a, axis=axes, initial=low))


@operator
def amin(x, axis=None, keepdims=False):
    x = tensor(x)
    high = bounds(x.dtype)[1]
    return reduction(x, axis, keepdims, x.dtype, lambda a, axes: np.min(a, axis=axes, initial=high))


OPERATORS["max"], OPERATORS["min"] = amax, amin


@operator
def any_(x, axis=None, keepdims=False):
    return reduction(tensor(x), axis, keepdims, BOOL, lambda a, axes: np.any(a != 0, axis=axes))


@operator
def all_(x, axis=None, keepdims=False):
    return reduction(tensor(x), axis, keepdims, BOOL, lambda a, axes: np.all(a != 0, axis=axes))


def count(x, axis):
    return int(np.prod([x.a.shape[a] for a in axes_of(axis, x.ndim)], dtype=np.int64))


@operator
def mean(x, axis=None, keepdims=False):
    x = tensor(x)
    n = np.float64(count(x, axis))
    return reduction(x, axis, keepdims, float_type(x.dtype), lambda a, axes: np.sum(a.astype(np.float64), axis=axes) / n)


@operator
def var(x, axis=None, ddof=0, keepdims=False):
    x = tensor(x)
    n = count(x, axis)

    def variance(a, axes):
        if n <= ddof or a.size == 0:
            return np.full([1 if d in axes else k for d, k in enumerate(a.shape)], np.nan)
        return np.var(a.astype(np.float64), axis=axes, ddof=ddof)

    return reduction(x, axis, keepdims, float_type(x.dtype), variance)


@operator
def std(x, axis=None, ddof=0, keepdims=False):
    return unary("sqrt", var(x, axis, ddof, keepdims))


def arg(x, axis, keepdims, function):
    x = tensor(x)
    if axis is None:
        a = function(x.a.reshape(-1))
        return made(a.reshape((1,) * x.ndim) if keepdims else a, I64)
    (d,) = axes_of(axis, x.ndim)
    return reduction(x, axis, keepdims, I64, lambda a, axes: function(a, axis=d))


@operator
def argmax(x, axis=None, keepdims=False):
    return arg(x, axis, keepdims, np.argmax)


@operator
def argmin(x, axis=None, keepdims=False):
    return arg(x, axis, keepdims, np.argmin)


@operator
def softmax(x, axis=-1):
    x = tensor(x)
    return made(special.softmax(wide(x), axis=axes_of(axis, x.ndim)) if x.a.size else x.a, float_type(x.dtype), x.dims)


@operator
def log_softmax(x, axis=-1):
    x = tensor(x)
    if not x.a.size:
        return made(x.a, float_type(x.dtype), x.dims)
    a, axes = wide(x), axes_of(axis, x.ndim)
    shifted = a - a.max(axis=axes, keepdims=True)
    return made(shifted - np.log(np.exp(shifted).sum(axis=axes, keepdims=True)), float_type(x.dtype), x.dims)


@operator
def logsumexp(x, axis=None, keepdims=False):
    x = tensor(x)

    def function(a, axes):
        if a.size:
            return special.logsumexp(a.astype(np.float64), axis=axes)
        return np.full([n for d, n in enumerate(a.shape) if d not in axes], -np.inf)

    return reduction(x, axis, keepdims, float_type(x.dtype), function)


@operator
def layer_norm(x, weight=None, bias=None, axis=-1, eps=1e-5):
    x = tensor(x)
    a, axes = wide(x), axes_of(axis, x.ndim)
    y = (a - a.mean(axis=axes, keepdims=True)) / np.sqrt(a.var(axis=axes, keepdims=True) + number(eps))
    y = made(y, float_type(x.dtype), x.dims)
    for other, op in ((weight, "*"), (bias, "+")):
        if other is not None:
            y = made(binary(op, y, other).a, y.dtype, x.dims)
    return y


@operator
def norm(x, ord=None, axis=None, keepdims=False):
    x = tensor(x)
    if ord is None:
        ord = 2

    def function(a, axes):
        v = np.abs(a.astype(np.float64))
        if ord == 2:
            return np.sqrt(np.sum(v * v, axis=axes))
        return np.linalg.norm(v, ord=ord, axis=axes[0])

    return reduction(x, axis, keepdims, float_type(x.dtype), function)


def contraction_type(tensors):
    return functools.reduce(promote, [t.dtype for t in tensors])


def contracted(function, *tensors):
    """Computes a sum of products, in f64 for floats."""
    dtype = contraction_type(tensors)
    work = np.float64 if dtype.is_float else dtype.np
    return made(function(*[t.a.astype(work) for t in tensors]), dtype)


@operator
def matmul(a, b):
    return contracted(np.matmul, tensor(a), tensor(b))


@operator
def dot(a, b):
    a, b = tensor(a), tensor(b)
    return binary("*", a, b) if a.ndim == 0 or b.ndim == 0 else contracted(np.dot, a, b)


@operator
def inner(a, b):
    a, b = tensor(a), tensor(b)
    return binary("*", a, b) if a.ndim == 0 or b.ndim == 0 else contracted(np.inner, a, b)


@operator
def outer(a, b):
    return contracted(np.outer, tensor(a), tensor(b))


@operator
def einsum(spec, *operands):
    return contracted(lambda *arrays: np.einsum(spec, *arrays), *map(tensor, operands))


@operator
def tensordot(a, b, axes=2):
    return contracted(lambda x, y: np.tensordot(x, y, axes), tensor(a), tensor(b))


@operator
def transpose(x, axes=None):
    return made(np.transpose(tensor(x).a, axes), x.dtype)


@operator
def swapaxes(x, axis1, axis2):
    return made(np.swapaxes(tensor(x).a, axis1, axis2), x.dtype)


@operator
def moveaxis(x, source, destination):
    return made(np.moveaxis(tensor(x).a, source, destination), x.dtype)


@operator
def reshape(x, shape):
    dims = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    a = tensor(x).a.reshape([number(n) for n in dims])
    return made(a, tensor(x).dtype, [Weak(k) if isinstance(n, int) and n == -1 else n for n, k in zip(dims, a.shape)])


@operator
def flatten(x):
    return made(tensor(x).a.reshape(-1), tensor(x).dtype)


@operator
def squeeze(x, axis=None):
    ones = tuple(d for d, n in enumerate(x.dims) if isinstance(n, int) and n == 1)
    axes = ones if axis is None else axes_of(axis, x.ndim)
    return made(np.squeeze(x.a, axis=axes), x.dtype, [n for d, n in enumerate(x.dims) if d not in axes])


@operator
def expand_dims(x, axis):
    return made(np.expand_dims(tensor(x).a, axis if not isinstance(axis, list) else tuple(axis)), tensor(x).dtype)


@operator
def concat(xs, axis=0):
    xs = [tensor(x) for x in xs]
    dtype = contraction_type(xs)
    return made(np.concatenate([to_type(x.a, dtype) for x in xs], axis), dtype)


@operator
def stack(xs, axis=0):
    xs = [tensor(x) for x in xs]
    dtype = contraction_type(xs)
    return made(np.stack([to_type(x.a, dtype) for x in xs], axis), dtype)


@operator
def split(x, parts, axis=0):
    parts = [number(p) for p in parts] if isinstance(parts, (tuple, list)) else number(parts)
    return [made(a, x.dtype) for a in np.split(x.a, parts, axis)]


@operator
def relu(x):
    return extremum("max", x, 0)


@operator
def leaky_relu(x, slope=0.01):
    return choose(binary(">", x, 0), x, binary("*", slope, x))


@operator
def elu(x, alpha=1.0):
    return choose(binary(">", x, 0), x, binary("*", alpha, unary("expm1", x)))


@operator
def gelu(x, approximate=False):
    x = tensor(x)
    a = wide(x)
    if approximate:
        y = 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))
    else:
        y = a * special.ndtr(a)
    return made(y, float_type(x.dtype), x.dims)


@operator
def silu(x):
    x = tensor(x)
    return made(wide(x) * special.expit(wide(x)), float_type(x.dtype), x.dims)


@operator
def softplus(x):
    x = tensor(x)
    return made(np.logaddexp(wide(x), 0), float_type(x.dtype), x.dims)


@operator
def hardtanh(x, lo=-1.0, hi=1.0):
    return extremum("min", extremum("max", x, lo), hi)


@operator
def where(cond, a, b):
    return choose(cond, a, b)


@operator
def full_like(x, value, dtype=None):
    x = tensor(x)
    dtype = dtype or x.dtype
    return made(np.full(x.a.shape, cast(value, dtype).a), dtype, x.dims)


@operator
def zeros_like(x, dtype=None):
    return full_like(x, 0, dtype)


@operator
def ones_like(x, dtype=None):
    return full_like(x, 1, dtype)


@operator
def empty_like(x, dtype=None):
    return full_like(x, 77, dtype)
