"""Taffeta's values on NumPy: element types, tensors, weak scalars, and the operators on them.

A value is one of
- *static*: a Python int, float, bool, str, None, tuple, list, slice or DType; known from the program text;
- `Weak`: a number of sizes and iterators, known only at run time, with no type of its own yet;
- `Tensor`: a NumPy array with a Taffeta element type (0-D for scalars). `dims` are its lengths as the program knows them:
  a Python int where it is a literal, a `Weak` where it is a size.
"""
import operator

import numpy as np
from scipy import special


class TaffetaError(Exception):
    """Error that stops a Taffeta program, or makes its text invalid."""


class DType:
    def __init__(self, name, kind, numpy_type):
        self.name, self.kind, self.np = name, kind, np.dtype(numpy_type)

    def __repr__(self):
        return self.name

    @property
    def is_float(self):
        return self.kind == "float"

    @property
    def is_int(self):
        return self.kind in "signed unsigned"


BOOL = DType("bool", "bool", np.bool_)
SIGNED = [DType(f"i{8 * b}", "signed", f"i{b}") for b in (1, 2, 4, 8)]
UNSIGNED = [DType(f"u{8 * b}", "unsigned", f"u{b}") for b in (1, 2, 4, 8)]
F16, F32, F64 = [DType(f"f{8 * b}", "float", f"f{b}") for b in (2, 4, 8)]
BF16 = DType("bf16", "float", np.float32)  # kept in float32, rounded after each operation
FLOATS = [F16, BF16, F32, F64]
DTYPES = {d.name: d for d in [BOOL, *SIGNED, *UNSIGNED, *FLOATS]}
I32, I64, U64 = SIGNED[2], SIGNED[3], UNSIGNED[3]


class Weak:
    """Number without type: an int, float or bool of Python."""

    __slots__ = ["v"]

    def __init__(self, v):
        self.v = v

    def __repr__(self):
        return f"Weak({self.v!r})"


class Declared:
    """Declaration of a name from a weak value: `stored` is the promotion of all types that are stored into it."""

    def __init__(self, kind):
        self.kind, self.stored = kind, None

    def store(self, value):
        if isinstance(value, Tensor) and not value.open:
            self.stored = value.dtype if self.stored is None else promote(self.stored, value.dtype)

    def dtype(self):
        """Returns the type of the name; None while nothing is known."""
        return self.stored and weak_meeting(self.stored, self.kind)


class Tensor:
    """Array with an element type; while the type of its weak declaration is `open`, it reads as a weak value."""

    def __init__(self, a, dtype, dims=None, declared=None, is_open=False):
        assert isinstance(a, np.ndarray) and a.dtype == dtype.np, (type(a), dtype)
        self.a, self.dtype, self.declared, self.open = a, dtype, declared, is_open
        if a.ndim == 0:
            self.dims = ()
            return
        self.dims = tuple(dims) if dims is not None else tuple(Weak(n) for n in a.shape)
        assert tuple(number(n) for n in self.dims) == a.shape, (self.dims, a.shape)

    @property
    def ndim(self):
        return self.a.ndim

    def copy(self):
        return Tensor(self.a.copy(), self.dtype, self.dims, is_open=self.open)


def tensor_of(a):
    """Returns a tensor of a NumPy array, of the array's own type."""
    a = np.asarray(a)
    dtype = next(d for d in DTYPES.values() if d.np == a.dtype and d is not BF16)
    return Tensor(a, dtype)


def is_static_number(v):
    return isinstance(v, (bool, int, float))


def is_weak(v):
    """Returns whether v is a number without type, static or not."""
    return isinstance(v, Weak) or is_static_number(v)


def number(v):
    """Returns the Python number in a weak value or a 0-D tensor."""
    if isinstance(v, Weak):
        return v.v
    if isinstance(v, Tensor):
        if v.ndim:
            raise TaffetaError(f"a scalar is expected, not a tensor of {v.ndim} dimensions")
        return v.a.item()
    if is_static_number(v):
        return v
    raise TaffetaError(f"a number is expected, not {v!r}")


def bf16_round(a):
    """Rounds float32 values to the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32).reshape(np.shape(a))
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(a), np.float32(np.nan), rounded.view(np.float32))


def to_type(a, dtype):
    """Converts an array to another type: integers wrap, floats round. (`cast` checks float to integer.)"""
    a = np.asarray(a)
    if a.dtype.kind == "O":  # static integers beyond 64 bits
        a = np.asarray([int(v) & (2**64 - 1) for v in a.flat], np.uint64).reshape(a.shape)
    if dtype is BF16:
        return np.asarray(bf16_round(a.astype(np.float32)), np.float32)
    return a.astype(dtype.np)


def weak_type(v):
    """Returns the type that weak numbers are computed in."""
    v = number(v)
    return BOOL if isinstance(v, bool) else I64 if isinstance(v, int) else F64


def declared_type(v):
    """Returns the type of a tensor that is declared from a value."""
    return v.dtype if isinstance(v, Tensor) else {I64: I32, F64: F32, BOOL: BOOL}[weak_type(v)]


def promote(d, e):
    """Returns the type in which two typed operands meet, as in JAX."""
    if d is e:
        return d
    if d is BOOL or e is BOOL:
        return e if d is BOOL else d
    if d.is_float and e.is_float:
        if {d, e} == {F16, BF16}:
            return F32
        return max(d, e, key=FLOATS.index)
    if d.is_float or e.is_float:
        return d if d.is_float else e
    if d.kind == e.kind:
        return max(d, e, key=lambda t: t.np.itemsize)
    signed, unsigned = (d, e) if d.kind == "signed" else (e, d)
    for s in SIGNED:
        if s.np.itemsize > unsigned.np.itemsize and s.np.itemsize >= signed.np.itemsize:
            return s
    return F64


def weak_meeting(dtype, kind):
    """Returns the type in which a typed operand meets a weak one, whose type would be `kind`."""
    if kind is F64 and not dtype.is_float:
        return F64
    return I32 if kind is I64 and dtype is BOOL else dtype


WEAK_KIND = {I32: I64, F32: F64}


def is_open(v):
    return isinstance(v, Tensor) and v.open


def meeting_type(*values):
    """Returns the type of the operands of one operation; weak ones take that of the typed ones."""
    typed = [v.dtype for v in values if isinstance(v, Tensor) and not v.open]
    weak = [WEAK_KIND.get(v.dtype, v.dtype) if is_open(v) else weak_type(v) for v in values if is_open(v) or not isinstance(v, Tensor)]
    if not typed:
        return F64 if F64 in weak else I64 if I64 in weak else BOOL
    dtype = typed[0]
    for t in typed[1:]:
        dtype = promote(dtype, t)
    return weak_meeting(dtype, F64 if F64 in weak else I64 if I64 in weak else BOOL)


def array(v, dtype):
    """Returns a value as an array of type `dtype`."""
    if isinstance(v, Tensor):
        return v.a if v.dtype is dtype else to_type(v.a, dtype)
    return to_type(np.asarray(number(v)), dtype)


def result(a, dtype, *operands):
    """Wraps the result of an operation: static from static operands, weak from weak ones, else a tensor."""
    a = np.asarray(a)
    if any(isinstance(v, Tensor) for v in operands):
        open_still = all(v.open for v in operands if isinstance(v, Tensor))
        return Tensor(to_type(a, dtype), dtype, broadcast_dims(*operands) if a.ndim else (), is_open=open_still)
    value = a.item()
    return value if all(is_static_number(v) for v in operands) else Weak(value)


def broadcast_dims(*operands):
    """Returns the lengths of an elementwise result; a literal 1 stretches."""
    shapes = [v.dims for v in operands if isinstance(v, Tensor)]
    dims = []
    for k in range(1, max(map(len, shapes), default=0) + 1):
        here = [s[-k] for s in shapes if len(s) >= k]
        longer = [n for n in here if number(n) != 1]
        dims.append((longer or sorted(here, key=lambda n: isinstance(n, int)))[0])
        if any(number(n) != number(longer[0]) for n in longer):
            raise TaffetaError(f"shapes do not agree: {[number(n) for n in here]}")
    return dims[::-1]


def check_divisor(a, b, dtype):
    if np.any(b == 0):
        raise TaffetaError("division by zero")
    if dtype.kind == "signed" and np.any((a == np.iinfo(dtype.np).min) & (b == -1)):
        raise TaffetaError("integer overflow in a division")


def shift(a, b, dtype, left):
    """Shifts; counts of the width or more give 0, or -1 for negatives to the right; negative counts are errors."""
    if np.any(b < 0):
        raise TaffetaError("negative shift count")
    width = 8 * dtype.np.itemsize
    count = np.minimum(b, width - 1).astype(dtype.np)
    if left:
        return np.where(b >= width, dtype.np.type(0), np.left_shift(a, count))
    return np.where((b >= width) & (a >= 0), dtype.np.type(0), np.right_shift(a, count))


def power(a, b, dtype):
    if dtype.is_int:
        if np.any(b < 0):
            raise TaffetaError("negative exponent of an integer")
        return np.power(a, b)
    return np.power(a, b)


STATIC_INT = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
ARITHMETIC = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "//": np.floor_divide, "%": np.mod}
BITS = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
COMPARE = {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def binary(op, a, b):
    """Computes a op b, for arithmetic, bits and comparisons."""
    quick = quick_binary(op, a, b)
    if quick is not None:
        return quick
    if not all(is_weak(v) or isinstance(v, Tensor) for v in (a, b)):
        return static_binary(op, a, b)
    if op in STATIC_INT and type(a) is int and type(b) is int:
        return STATIC_INT[op](a, b)
    if op in COMPARE and is_static_number(a) and is_static_number(b):
        return bool(COMPARE[op](a, b))
    dtype = meeting_type(a, b)
    if op == "/" and not dtype.is_float:
        dtype = F64
    x, y = array(a, dtype), array(b, dtype)
    broadcast_dims(a, b)
    if op in COMPARE:
        return result(COMPARE[op](x, y), BOOL, a, b)
    if op in BITS:
        if dtype.is_float:
            raise TaffetaError(f"`{op}` of floats")
        return result(BITS[op](x, y), dtype, a, b)
    if dtype is BOOL:
        raise TaffetaError(f"`{op}` of two bools")
    if op in ("//", "%") and dtype.is_int:
        check_divisor(x, y, dtype)
    if op in ("<<", ">>"):
        return result(shift(x, y, dtype, op == "<<"), dtype, a, b)
    if op == "**":
        return result(power(x, y, dtype), dtype, a, b)
    if op in ARITHMETIC:
        return result(ARITHMETIC[op](x, y), dtype, a, b)
    raise TaffetaError(f"there is no operator {op}")


QUICK = {"+": operator.add, "-": operator.sub, "*": operator.mul, "<": operator.lt, "<=": operator.le, ">": operator.gt,
         ">=": operator.ge, "==": operator.eq, "!=": operator.ne}


def quick_binary(op, a, b):
    """Computes the commonest cases of `binary` with equal results: iterators with integers, scalars of one type."""
    if op not in QUICK:
        return None
    kinds = type(a), type(b)
    if kinds == (Tensor, Tensor):
        if not (a.open or b.open) and a.dtype is b.dtype and a.dtype in (I32, I64, F32, F64) and a.a.ndim == 0 and b.a.ndim == 0:
            return Tensor(np.asarray(QUICK[op](a.a, b.a)), BOOL if op in COMPARE else a.dtype, ())
        return None
    x, y = a.v if kinds[0] is Weak else a, b.v if kinds[1] is Weak else b
    if type(x) is int and type(y) is int and Weak in kinds:
        value = QUICK[op](x, y)
        return Weak(value) if -(2**63) <= value < 2**63 else None
    return None


def static_binary(op, a, b):
    """Computes operators on strings, lists, types and None."""
    if op == "==" or op == "!=":
        return same(a, b) == (op == "==")
    if op == "+" and isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return list(a) + list(b) if isinstance(a, list) else tuple(a) + tuple(b)
    if op == "+" and isinstance(a, str) and isinstance(b, str):
        return a + b
    raise TaffetaError(f"`{op}` of {a!r} and {b!r}")


def same(a, b):
    """Returns whether two static values are the same; a size is the same only as itself."""
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, (Weak, Tensor, DType)) or isinstance(b, (Weak, Tensor, DType)) or a is None or b is None:
        return a is b
    return type(a) in (bool, int, float) and type(b) in (bool, int, float) and a == b or type(a) is type(b) and a == b


def negate(a):
    if type(a) is int:
        return -a
    dtype = meeting_type(a)
    if dtype is BOOL:
        raise TaffetaError("`-` of a bool")
    return result(np.negative(array(a, dtype)), dtype, a)


def invert(a):
    dtype = meeting_type(a)
    if dtype.is_float:
        raise TaffetaError("`~` of a float")
    return result(np.invert(array(a, dtype)), dtype, a)


def condition(a):
    """Returns the array of a `bool` value."""
    if meeting_type(a) is not BOOL:
        raise TaffetaError("a condition must be bool")
    return array(a, BOOL)


def choose(c, a, b):
    """Computes `select(c, a, b)` where c is a tensor of any dimension."""
    dtype = meeting_type(a, b)
    x = np.where(condition(c), array(a, dtype), array(b, dtype))
    return result(x, dtype, c, a, b)


def cast(v, dtype):
    """Converts to another type; a float that has no value there is an error."""
    source = meeting_type(v)
    a = v.a if isinstance(v, Tensor) else np.asarray(number(v))
    dims = v.dims if isinstance(v, Tensor) else ()
    if dtype is BOOL:
        return Tensor(np.asarray(a != 0), BOOL, dims)
    if source.is_float and dtype.is_int:
        info = np.iinfo(dtype.np)
        whole = np.trunc(a.astype(np.float64))
        if not np.all((whole >= float(info.min)) & (whole < float(info.max) + 1)):
            raise TaffetaError(f"a float has no value of type {dtype}")
    return Tensor(to_type(a, dtype), dtype, dims)


FLOAT_FUNCTIONS = {
    "sqrt": np.sqrt,
    "rsqrt": lambda a: np.reciprocal(np.sqrt(a)),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "sigmoid": special.expit,
    "erf": special.erf,
}
ROUNDINGS = {"floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc}
WORK = {F16: np.float32, BF16: np.float32, F32: np.float32, F64: np.float64}


def unary(name, v):
    """Computes a function of one operand."""
    dtype = meeting_type(v)
    if name in ROUNDINGS and not dtype.is_float:
        return v
    if name == "stop_gradient":
        return v
    if name in ("abs", "sign"):
        if dtype is BOOL:
            raise TaffetaError(f"{name} of a bool")
        return result((np.abs if name == "abs" else np.sign)(array(v, dtype)), dtype, v)
    dtype = dtype if dtype.is_float else F64
    a = array(v, dtype)
    if name == "isnan":
        return result(np.isnan(a), BOOL, v)
    function = FLOAT_FUNCTIONS.get(name) or ROUNDINGS[name]
    return result(function(a.astype(WORK[dtype])), dtype, v)


UNARY = [*FLOAT_FUNCTIONS, *ROUNDINGS, "abs", "sign", "isnan", "stop_gradient"]


def atan2(a, b):
    dtype = meeting_type(a, b)
    dtype = dtype if dtype.is_float else F64
    return result(np.arctan2(array(a, dtype), array(b, dtype)), dtype, a, b)


def extremum(name, a, b):
    """Computes `min` or `max` of two operands; NaN wins."""
    dtype = meeting_type(a, b)
    function = {"min": np.minimum, "max": np.maximum}[name]
    return result(function(array(a, dtype), array(b, dtype)), dtype, a, b)


def fma(a, b, c):
    """Computes a * b + c with one rounding (in f64 up to the precision of long double)."""
    dtype = meeting_type(a, b, c)
    dtype = dtype if dtype.is_float else F64
    wide = np.longdouble if dtype is F64 else np.float64
    x, y, z = [array(v, dtype).astype(wide) for v in (a, b, c)]
    return result((x * y + z).astype(WORK[dtype]), dtype, a, b, c)
