"""The second half of taffeta_libop.py: windows, gathering, running sums, random numbers, grids, losses."""
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from taffeta_libop import axes_of, contraction_type, float_type, made, operator, sum_type, tensor, wide
from taffeta_values import BOOL, F16, F32, F64, I64, TaffetaError, binary, cast, extremum, number, to_type


@operator
def pad(x, width, value=0):
    x = tensor(x)
    if isinstance(width, (tuple, list)):
        width = [[number(n) for n in w] if isinstance(w, (tuple, list)) else (number(w),) * 2 for w in width]
    else:
        width = [(number(width),) * 2] * x.ndim
    return made(np.pad(x.a, width, constant_values=cast(value, x.dtype).a) if x.ndim else x.a, x.dtype)


def checked_index(index, n):
    if index.a.size and not (0 <= index.a.min() and index.a.max() < n):
        raise TaffetaError(f"index out of range: {index.a.min()} … {index.a.max()} of {n}")
    return index.a.astype(np.int64)


@operator
def gather(x, index, axis=0):
    index = tensor(index)
    return made(np.take(x.a, checked_index(index, x.a.shape[axis]), axis), x.dtype)


@operator
def take_along_axis(x, index, axis):
    return made(np.take_along_axis(x.a, checked_index(index, x.a.shape[axis]), axis), x.dtype)


@operator
def scatter_add(x, index, updates, axis=0):
    index, updates = tensor(index), tensor(updates)
    a = np.moveaxis(x.a.copy(), axis, 0)
    at = checked_index(index, a.shape[0])
    d = axis % x.ndim
    u = np.moveaxis(to_type(updates.a, x.dtype), range(d, d + index.ndim), range(index.ndim))
    np.add.at(a, at, u)
    return made(np.moveaxis(a, 0, axis), x.dtype)


@operator
def one_hot(index, count, dtype=F32):
    return made(tensor(index).a[..., None] == np.arange(number(count)), dtype)


def cumulative(x, axis, function):
    dtype = sum_type(x.dtype)
    return made(function(x.a.astype(np.float64 if dtype.is_float else dtype.np), axis=axis), dtype)


@operator
def cumsum(x, axis=None):
    return cumulative(tensor(x), axis, np.cumsum)


@operator
def cumprod(x, axis=None):
    return cumulative(tensor(x), axis, np.cumprod)


def per_axis(v, count):
    return [number(n) for n in v] if isinstance(v, (tuple, list)) else [number(v)] * count


def windows(a, size, stride, padding, dilation, value):
    """Returns all windows over the last dimensions of an array; the windows' own dimensions come last."""
    count = len(size)
    lead = a.ndim - count
    a = np.pad(a, [(0, 0)] * lead + [(n, n) for n in padding], constant_values=value)
    span = [r * (k - 1) + 1 for r, k in zip(dilation, size)]
    w = sliding_window_view(a, span, axis=tuple(range(lead, a.ndim)))
    every = (slice(None),) * lead
    return w[every + tuple(slice(None, None, s) for s in stride) + tuple(slice(None, None, r) for r in dilation)]


def conv(count, x, weight, bias, stride, padding, dilation, groups):
    dtype, groups = contraction_type([x, weight]), number(groups)
    work = np.float64 if dtype.is_float else dtype.np
    a, w = x.a.astype(work), weight.a.astype(work)
    win = windows(a, w.shape[2:], per_axis(stride, count), per_axis(padding, count), per_axis(dilation, count), 0)
    parts = [np.tensordot(p, q, (list(range(-count, 0)) + [1], list(range(-count, 0)) + [1]))
             for p, q in zip(np.split(win, groups, 1), np.split(w, groups, 0))]
    y = np.moveaxis(np.concatenate(parts, -1), -1, 1)
    if bias is not None:
        y = y + bias.a.astype(work).reshape((-1,) + (1,) * count)
    return made(y, dtype)


@operator
def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return conv(1, x, weight, bias, stride, padding, dilation, groups)


@operator
def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return conv(2, x, weight, bias, stride, padding, dilation, groups)


@operator
def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return conv(3, x, weight, bias, stride, padding, dilation, groups)


@operator
def pool(x, size, stride=None, padding=0, dilation=1, op="max"):
    count = len(size) if isinstance(size, (tuple, list)) else x.ndim - 2
    size = per_axis(size, count)
    stride = size if stride is None else per_axis(stride, count)
    last = tuple(range(-count, 0))
    low = -np.inf if x.dtype.is_float else False if x.a.dtype == bool else np.iinfo(x.dtype.np).min
    win = windows(x.a, size, stride, per_axis(padding, count), per_axis(dilation, count), low if op == "max" else 0)
    if op == "max":
        return made(win.max(axis=last), x.dtype)
    return made(win.astype(np.float64).mean(axis=last), float_type(x.dtype))


@operator
def max_pool(x, size, stride=None, padding=0, dilation=1):
    return pool(x, size, stride, padding, dilation, "max")


@operator
def avg_pool(x, size, stride=None, padding=0, dilation=1):
    return pool(x, size, stride, padding, dilation, "mean")


def mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def draws(seed, count):
    """Returns the first draws of SplitMix64 as libop/ops/random.ft defines it."""
    seed = np.array(number(seed)).astype(np.int64).astype(np.uint64)
    return mix(mix(seed) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


def unit(bits, dtype):
    keep = {F64: 53, F32: 24, F16: 11}.get(dtype, 8)
    return (bits >> np.uint64(64 - keep)).astype(np.float64) * 2.0**-keep


def lengths(shape):
    return [number(n) for n in shape] if isinstance(shape, (tuple, list)) else [number(shape)]


@operator
def rand_uniform(shape, seed, dtype=F32):
    n = lengths(shape)
    return made(unit(draws(seed, int(np.prod(n))), dtype).reshape(n), dtype)


@operator
def rand_normal(shape, seed, dtype=F32):
    n = lengths(shape)
    pairs = unit(draws(seed, 2 * int(np.prod(n))), F64 if dtype is F64 else F32).reshape(-1, 2)
    y = np.sqrt(-2 * np.log(1 - pairs[:, 0])) * np.cos(2 * np.pi * pairs[:, 1])
    return made(y.reshape(n), dtype)


@operator
def rand_int(shape, lo, hi, seed, dtype=I64):
    n, lo, hi = lengths(shape), number(lo), number(hi)
    d = draws(seed, int(np.prod(n))) >> np.uint64(32)
    return made(((d * np.uint64(hi - lo)) >> np.uint64(32)).astype(np.int64).reshape(n) + lo, dtype)


@operator
def linspace(start, stop, count, dtype=F32):
    return made(np.linspace(number(start), number(stop), number(count)), dtype)


@operator
def eye(n, m=None, dtype=F32):
    return made(np.eye(number(n), None if m is None else number(m)).astype(np.int64), dtype)


@operator
def diag(x):
    return made(np.diag(x.a), x.dtype)


@operator
def trace(x):
    dtype = sum_type(x.dtype)
    return made(np.trace(x.a.astype(np.float64 if dtype.is_float else dtype.np)), dtype)


@operator
def tril(x, k=0):
    return made(np.tril(x.a, number(k)), x.dtype, x.dims)


@operator
def triu(x, k=0):
    return made(np.triu(x.a, number(k)), x.dtype, x.dims)


@operator
def broadcast_to(x, shape):
    return made(np.broadcast_to(tensor(x).a, lengths(shape)), tensor(x).dtype)


@operator
def flip(x, axis=None):
    return made(np.flip(x.a, axes_of(axis, x.ndim)), x.dtype)


@operator
def roll(x, shift, axis):
    return made(np.roll(x.a, number(shift), axis), x.dtype)


@operator
def repeat(x, count, axis):
    return made(np.repeat(x.a, number(count), axis), x.dtype)


@operator
def tile(x, counts):
    return made(np.tile(x.a, lengths(counts)), x.dtype)


@operator
def diff(x, axis=-1):
    return made(np.diff(x.a, axis=axis), x.dtype)


@operator
def maximum(a, b):
    return extremum("max", a, b)


@operator
def minimum(a, b):
    return extremum("min", a, b)


@operator
def square(x):
    return binary("*", x, x)


@operator
def log10(x):
    x = tensor(x)
    return made(np.log10(wide(x)), float_type(x.dtype), x.dims)


@operator
def isinf(x):
    return made(np.isinf(tensor(x).a), BOOL, tensor(x).dims)


@operator
def isfinite(x):
    return made(np.isfinite(tensor(x).a), BOOL, tensor(x).dims)


@operator
def logaddexp(a, b):
    a, b = tensor(a), tensor(b)
    return made(np.logaddexp(wide(a), wide(b)), float_type(contraction_type([a, b])))


@operator
def count_nonzero(x, axis=None, keepdims=False):
    x = tensor(x)
    return made(np.count_nonzero(x.a, axis=axes_of(axis, x.ndim), keepdims=keepdims), I64)


def loss(values, dtype, reduction):
    if reduction == "none":
        return made(values, dtype)
    return made(values.mean() if reduction == "mean" else values.sum(), dtype)


@operator
def mse_loss(x, target, reduction="mean"):
    return loss(np.square(wide(x) - wide(target)), float_type(contraction_type([x, target])), reduction)


@operator
def nll_loss(log_probs, target, reduction="mean"):
    at = checked_index(target, log_probs.a.shape[1])
    return loss(-wide(log_probs)[np.arange(at.size), at], log_probs.dtype, reduction)


@operator
def cross_entropy(logits, target, reduction="mean"):
    a = wide(logits)
    a = a - a.max(axis=1, keepdims=True)
    a = a - np.log(np.exp(a).sum(axis=1, keepdims=True))
    at = checked_index(target, a.shape[1])
    return loss(-a[np.arange(at.size), at], float_type(logits.dtype), reduction)
