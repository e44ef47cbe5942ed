"""Tests of the shim: small programs with the results that language.md demands: `python test_shim.py`."""
import numpy as np

from taffeta_shim import run
from taffeta_values import TaffetaError


def outcome(text, inputs=None, sizes=None, statics=None, **options):
    """Returns the results of the entry `t`, by name."""
    return run(text, "t", inputs or {}, sizes, statics, **options)


def check(text, expected, inputs=None, dtype=None, **options):
    """Checks that the first result is `expected`, and has that type."""
    found = next(iter(outcome(text, inputs, **options).values()))
    assert np.array_equal(found, np.array(expected), equal_nan=found.dtype.kind == "f"), f"{text}\n{found!r}, not {expected!r}"
    if dtype:
        assert found.dtype == np.dtype(dtype), f"{text}\n{found.dtype}, not {dtype}"


def refuses(text, part, inputs=None, **options):
    """Checks that the program stops, with a message that has `part`."""
    try:
        outcome(text, inputs, **options)
    except TaffetaError as e:
        assert part in str(e), f"{text}\n{e}\ndoes not mention {part}"
        return
    raise AssertionError(f"{text}\nis not refused")


X = {"x": np.arange(6.0).reshape(2, 3)}
F32X = "def t(x: f32[n, m]):\n"
F64X = "def t(x: f64[n, m]):\n"


def test_assignment_copies():
    check(F64X + "    y = x[0]\n    z = y\n    y[0] = 9.0\n    return z", [0, 1, 2], X)
    check(F64X + "    a = zeros((n, m), f64)\n    b = a[0]\n    b[0] = 5.0\n    return a", np.zeros((2, 3)), X)


def test_a_name_that_exists_is_written_into():
    check(F64X + "    y = zeros((m,), f64)\n    for i in range(n):\n        y = x[i]\n    return y", [3, 4, 5], X)
    check(F64X + "    y = zeros((m,), f64)\n    y = 7\n    return y", [7, 7, 7], X)
    check(F64X + "    y = zeros((m,), f32)\n    y = x[0]\n    return y", [0, 1, 2], X, dtype="f4")


def test_names_end_with_their_block():
    refuses(F64X + "    for i in range(n):\n        y = x[i]\n    return y", "unknown name y", X)
    check(F64X + "    if True:\n        y = x[0] + 1\n    return y", [1, 2, 3], X)
    check(F64X + "    for k in static(range(2)):\n        y = x[k] + 0\n    return y", [3, 4, 5], X)
    check(F64X + "    s = zeros((n,), f64)\n    for i in range(n):\n        a: f64 = 0.0\n        for j in range(m):\n            a += x[i, j]\n"
          "        s[i] = a\n    return s", [3, 12], X)


def test_template_arguments_are_views():
    template = "def put(p, v):\n    p[...] = v\ndef add(p):\n    p += 1\ndef bad(p):\n    p = 1\n"
    body = "def t(x: f64[n, m]):\n    y = zeros((n, m), f64)\n"
    check(template + body + "    put(y[0], 3.0)\n    add(y[:, 1])\n    return y", [[3, 4, 3], [0, 1, 0]], X)
    check(template + body + "    put(y[1, 2], x[1, 1])\n    return y", [[0, 0, 0], [0, 0, 4]], X)
    refuses(template + body + "    bad(y)\n    return y", "p[...]", X)


def test_right_hand_sides_are_read_first():
    body = "def t(x: inout[f64[n]]):\n"
    x = {"x": np.arange(5.0)}
    check(body + "    x[1:] = x[:-1]", [0, 0, 1, 2, 3], x)
    check(body + "    x[1:] += x[:-1]", [0, 1, 3, 5, 7], x)
    check(body + "    x[::-1] = x[:]", [4, 3, 2, 1, 0], x)


def test_duplicates_accumulate():
    i = {"i": np.array([0, 2, 0])}
    text = "def t(i: i32[k]):\n    y = zeros((3,), f64)\n    y[i] += 1.0\n    y[i] -= 0.25\n    return y"
    check(text, [1.5, 0, 0.75], i)


def test_names_take_the_type_of_what_is_stored():
    loop = "    for i in range(n):\n        for j in range(m):\n            "
    check(F64X + "    t = 0.0\n" + loop + "t += x[i, j]\n    return t", 15, X, dtype="f8")
    check(F32X + "    t = 0.0\n" + loop + "t = t + x[i, j]\n    return t", 15, X, dtype="f4")
    check(F64X + "    t = 0.0\n    u = 0.0\n" + loop + "u += t\n            t += x[i, j]\n    return u", 20, X, dtype="f8")
    check(F64X + "    c = 0\n" + loop + "if x[i, j] > 1:\n                c += 1\n    return c", 4, X, dtype="i4")
    put = "def put(p, v):\n    p += v\n"
    check(put + F64X + "    t = 0\n    put(t, x[0, 1])\n    t += 2\n    return t", 3, X, dtype="f8")
    k = {"k": np.array([2**40, 1]), "h": np.array([1, 2], "f2")}
    check("def t(k: i64[n]):\n    c = 0\n    for i in range(n):\n        c += k[i]\n    return c", 2**40 + 1, k, dtype="i8")
    check("def t(h: f16[n]):\n    c = 0.0\n    for i in range(n):\n        c = c + h[i]\n    return c", 3, k, dtype="f2")
    refuses(F64X + "    c = 0\n    for i in range(n):\n        c += 0.5\n    return c", "without a cast", X)


def test_weak_numbers_take_the_type_they_meet():
    check(F32X + "    return 2 * x[0] + 0.1", np.float32(2) * np.arange(3, dtype="f4") + np.float32(0.1), X, dtype="f4")
    check(F32X + "    return sqrt(1.0 * m) * x[0]", (np.float32(np.sqrt(3.0)) * np.arange(3, dtype="f4")), X, dtype="f4")
    i = {"x": np.arange(3)}
    ints = "def t(x: i32[n]):\n"
    check(ints + "    return x * 1.5", [0, 1.5, 3], i, dtype="f8")
    check(ints + "    return x / 2", [0, 0.5, 1], i, dtype="f8")
    check(ints + "    return x + n", [3, 4, 5], i, dtype="i4")
    check("def t(a: i32[n], b: f32[n]):\n    return a + b", [2, 2], {"a": [1, 1], "b": [1, 1]}, dtype="f4")
    check("def t(a: u8[n], b: i8[n]):\n    return a + b", [255 - 1], {"a": [255], "b": [-1]}, dtype="i2")
    check("def t(a: f16[n], b: bf16[n]):\n    return a + b", [2], {"a": [1], "b": [1]}, dtype="f4")
    check("def t(n_: i32):\n    s = 0\n    s += 1\n    return s", 1, {"n_": 0}, dtype="i4")
    check("def t(n_: i32):\n    s = 0.5\n    s += 1\n    return s", 1.5, {"n_": 0}, dtype="f4")
    check("def t(x: f64[n]):\n    h = n // 2\n    return zeros((h,), f64)", [0, 0], {"x": np.zeros(5)})


def test_integers_wrap_and_round_down():
    body = "def t(a: i8[n], b: i8[n]):\n    return "
    a = {"a": [127, -7, 7], "b": [1, 2, -2]}
    check(body + "a + b", [-128, -5, 5], a, dtype="i1")
    check(body + "a // b", [127, -4, -4], a)
    check(body + "a % b", [0, 1, -1], a)
    refuses(body + "a // (b - b)", "division by zero", a)
    refuses(body + "a // b", "overflow", {"a": [-128], "b": [-1]})
    check(body + "a << 9", [0, 0, 0], a)
    check(body + "(a - 100) >> 9", [0, -1, -1], {"a": [120, -7, 7], "b": [1, 2, -2]})
    refuses(body + "a << (b - 5)", "shift", a)
    refuses(body + "a ** b", "exponent", a)
    check("def t(a: u64[n]):\n    return a * 0x9e3779b97f4a7c15", [0x9E3779B97F4A7C15 * 3 % 2**64], {"a": [3]}, dtype="u8")


def test_casts():
    check("def t(x: f64[n]):\n    return cast(x, i32)", [-1, 1], {"x": [-1.9, 1.9]}, dtype="i4")
    refuses("def t(x: f64[n]):\n    return cast(x, i32)", "no value", {"x": [np.nan]})
    refuses("def t(x: f64[n]):\n    return cast(x, u8)", "no value", {"x": [256.0]})
    check("def t(x: i32[n]):\n    return cast(x, u8)", [255], {"x": [-1]}, dtype="u1")
    refuses("def t(x: f64[n]):\n    y = zeros((n,), i32)\n    y[...] = x\n    return y", "cast", {"x": [1.0]})


def test_bf16_rounds_after_each_operation():
    check("def t(a: bf16[n]):\n    return a + 0.001", [1.0], {"a": [1.0]})
    check("def t(a: bf16[n]):\n    return cast(3.14159, bf16) * a", [3.140625], {"a": [1.0]})


def test_slices_never_clamp():
    check(F64X + "    return x[:, ::-1]", [[2, 1, 0], [5, 4, 3]], X)
    check(F64X + "    return x[-1, 0:-1]", [3, 4], X)
    refuses(F64X + "    return x[:, 0:4]", "out of range", X)
    refuses(F64X + "    return x[:, 2:1]", "out of range", X)
    refuses(F64X + "    return x[:, m - 4:m]", "out of range", X)
    refuses(F64X + "    y = 0.0\n    for i in range(n):\n        y += x[i - 1, 0]\n    return y", "out of range", X)
    refuses("def t(x: f64[n], i: i32):\n    return x[i]", "out of range", {"x": np.zeros(3), "i": -1})


def test_and_or_choice_are_lazy():
    check(F64X + "    s = 0.0\n    for i in range(n):\n        s += x[i - 1, 0] if i > 0 else 1.0\n    return s", 1.0, X)
    check(F64X + "    s = 0\n    for i in range(n):\n        if i > 0 and x[i - 1, 0] == 0.0:\n            s += 1\n    return s", 1, X)
    check(F64X + "    return x if m > n else 0 * x", X["x"], X)


def test_static_values():
    check(F64X + "    at = [k for k in range(4) if k % 2 == 1]\n    return x[0, at[0]] + len(at)", 3.0, X)
    check(F64X + "    s = 'ab' + 'c'\n    return len(s) + (1 if 'b' in s else 0)", 4, X)
    check(F64X + "    return x[tuple([0, 1])]", 1.0, X)
    check(F64X + "    return (x.ndim, x.shape[1], len(x))[1]", 3, X)
    check("def f(x):\n    if x.ndim == 0:\n        return 1\n    return 1 + f(x[0])\ndef t(x: f64[n, m]):\n    return f(x)", 3, X)
    check("N = 4\ndef t(w: static = 2):\n    return zeros((N * w,), f64)", np.zeros(8))
    check("def t(w: static = 2):\n    return zeros((w,), f64)", np.zeros(5), statics={"w": 5})


def test_a_size_is_no_static_value():
    one = {"x": np.ones((1, 3))}
    check(F64X + "    return 1 if x.shape[0] in [1] else 2", 2, one)
    check("def t(x: f64[1, m]):\n    return 1 if x.shape[0] in [1] else 2", 1, one)
    check(F64X + "    y = x[:, None]\n    return 1 if y.shape[1] in [1] else 2", 1, one)


def test_results_have_names():
    found = outcome("def t(x: f64[n], w: inout[f64[n]]):\n    w += x\n    y = 2 * x\n    return y, x + 1, x + 2", {"x": [1.0], "w": [5.0]})
    assert {k: v.tolist() for k, v in found.items()} == {"w": [6.0], "y": [2.0], "out1": [2.0], "out2": [3.0]}, found
    assert list(outcome("def t(x: f64[n]):\n    return x + 1", {"x": [1.0]})) == ["out"]
    assert list(outcome("def t(x: f64[n]):\n    return x, x", {"x": [1.0]})) == ["x", "out1"]
    assert list(outcome("def t(x: inout[f64[n]]):\n    return x", {"x": [1.0]})) == ["x", "out"]
    check("def t(x: f64[n]) -> f32[n]:\n    return x", [1], {"x": [1.0]}, dtype="f4")


def test_parameters_are_checked():
    refuses("def t(x: f64[n], y: f64[n]):\n    return x", "dimension", {"x": np.zeros(2), "y": np.zeros(3)})
    refuses("def t(x: f64[n]):\n    x[0] = 1.0\n    return x", "read-only", {"x": np.zeros(2)})
    refuses("def t(x: f64[n, m]):\n    return x", "dimensions", {"x": np.zeros(2)})
    refuses("def t(x: f64[n], y: f64[2 * n]):\n    return x", "dimension", {"x": np.zeros(2), "y": np.zeros(3)})


def test_entries_call_entries():
    text = "def scale(a: inout[f64[n]], s: f64) -> f64:\n    a *= s\n    return s\ndef t(x: inout[f64[n, m]]):\n    r = scale(x[1], 2.0)\n"
    check(text, [[0, 1, 2], [6, 8, 10]], X)


def test_minimum_and_maximum():
    x = {"x": [np.nan, 1.0, -np.inf]}
    check("def t(x: f64[n]):\n    return max(x, 0.5)", [np.nan, 1, 0.5], x)
    check("def t(x: f64[n]):\n    return max(x[1:])", 1.0, x)
    check("def t(x: f64[n]):\n    return min(x, axis=0)", np.nan, x)
    check("def t(x: f64[n]):\n    return round(x)", [0, 2, 2], {"x": [0.5, 1.5, 2.5]})


def test_loops():
    check("def t(n_: i32):\n    s = 0\n    for i, j in ndrange(3, 4):\n        s += i * j\n    return s", 18, {"n_": 0})
    check("def t(n_: i32):\n    y = zeros((5,), i32)\n    for i in range(4, -1, -2):\n        y[i] = i\n    return y", [0, 0, 2, 0, 4], {"n_": 0})
    refuses("def t(x: f64[n]):\n    assert n > 3, f'{n} is too short'\n    return x", "2 is too short", {"x": np.zeros(2)})


def test_libop_has_two_ways():
    for mode in ("numpy", "ft"):
        check(F64X + "    return softmax(x, axis=0).shape[0] + sum(x)", 17.0, X, libop=mode)
        check(F64X + "    return transpose(x) @ x[:, 0]", [9, 12, 15], X, libop=mode)
    check("def sum(x):\n    return 5\ndef t(x: f64[n, m]):\n    return sum(x)", 5, X)


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    for _, test in tests:
        test()
    print(f"{len(tests)} tests passed")


if __name__ == "__main__":
    main()
