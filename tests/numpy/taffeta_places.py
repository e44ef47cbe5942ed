"""Places in tensors: subscripts as NumPy's indices, checked as Taffeta checks them, and stores."""
import numpy as np

from taffeta_values import Tensor, Weak, TaffetaError, array, meeting_type, number


def converted(value, dtype):
    """Converts a value for storage as `dtype`: within its kind, or an integer to a float; a float needs a cast."""
    source = meeting_type(value)
    if source.is_float and not dtype.is_float:
        raise TaffetaError(f"{source} does not go into {dtype} without a cast")
    a = array(value, dtype)
    return Tensor(a, dtype, value.dims if isinstance(value, Tensor) else ())


def store(base, index, value):
    """Stores base[index] = value; the right-hand side is read in full before."""
    if base.declared is not None:
        base.declared.store(value)
    if base.open:  # the run with the inferred type checks whether the value fits
        value = Tensor(array(value, base.dtype), base.dtype, value.dims if isinstance(value, Tensor) else ())
    value = converted(value, base.dtype)
    if not isinstance(base.a[index], np.ndarray) and value.ndim:
        raise TaffetaError("a tensor does not go into one element")
    base.a[index] = value.a.copy()


def numpy_index(base, items):
    """Converts the items of a subscript to NumPy's index, checked: no clamping, negative only where static."""
    if len(items) <= base.ndim and all(type(v) is Weak for v in items):  # the commonest case
        index = tuple([v.v for v in items])
        if all(type(k) is int and 0 <= k < n for k, n in zip(index, base.a.shape)):
            return index + (Ellipsis,), False
    used = sum(1 for v in items if v is not None and v is not Ellipsis)
    if used > base.ndim:
        raise TaffetaError(f"{used} indices for a tensor of {base.ndim} dimensions")
    if not any(v is Ellipsis for v in items):
        items = items + [Ellipsis]
    index, d, gathered = [], 0, False
    for v in items:
        if v is None or v is Ellipsis:
            index.append(v)
            d += base.ndim - used if v is Ellipsis else 0
            continue
        n = base.a.shape[d]
        if isinstance(v, slice):
            index.append(checked_slice(v, n))
        elif isinstance(v, Tensor) and v.ndim:
            if not v.dtype.is_int:
                raise TaffetaError(f"an index of type {v.dtype}")
            if v.a.size and not (0 <= v.a.min() and v.a.max() < n):
                raise TaffetaError(f"index out of range: {v.a.min()} … {v.a.max()} of {n}")
            index.append(v.a.astype(np.int64))
            gathered = True
        else:
            k = number(v)
            if not isinstance(k, int) or isinstance(k, bool):
                raise TaffetaError(f"an index must be an integer, not {k!r}")
            if not (-n if isinstance(v, int) else 0) <= k < n:
                raise TaffetaError(f"index {k} is out of range for length {n}")
            index.append(k)
        d += 1
    return tuple(index), gathered


def checked_slice(s, n):
    """Converts a slice to Python's; requires 0 <= first <= last <= n (for a negative step the other way round)."""
    step = 1 if s.step is None else s.step
    if not isinstance(step, int) or step == 0:
        raise TaffetaError("the step of a slice must be static and not 0")

    def bound(v, default):
        if v is None:
            return default
        return v + n if isinstance(v, int) and v < 0 else number(v)

    if step > 0:
        first, last = bound(s.start, 0), bound(s.stop, n)
        if not 0 <= first <= last <= n:
            raise TaffetaError(f"slice {first}:{last} is out of range for length {n}")
        return slice(first, last, step)
    first, last = bound(s.start, n - 1), bound(s.stop, -1)
    if not -1 <= last <= first <= n - 1:
        raise TaffetaError(f"slice {first}:{last}:{step} is out of range for length {n}")
    return slice(first, None if last < 0 else last, step) if first >= 0 else slice(0, 0)


def viewed_dims(base, index):
    """Returns the lengths of base[index] for an index without tensors: a dimension taken whole keeps its name."""
    if len(index) == base.ndim + 1 and not any(v is None or isinstance(v, slice) for v in index):
        return ()
    dims, d = [], 0
    used = sum(1 for v in index if v is not None and v is not Ellipsis)
    for v in index:
        if v is None:
            dims.append(1)
        elif v is Ellipsis:
            dims += base.dims[d:d + base.ndim - used]
            d += base.ndim - used
        else:
            if isinstance(v, slice):
                n = len(range(*v.indices(base.a.shape[d])))
                whole = n == base.a.shape[d]
                dims.append(base.dims[d] if whole else Weak(n))
            d += 1
    return dims


def filled(shape, value, dtype):
    """Returns a new tensor of one value."""
    dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    t = Tensor(np.zeros([number(n) for n in dims], dtype.np), dtype, dims)
    store(t, (...,), value)
    return t
