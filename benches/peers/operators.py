"""Operators that every library has: `operators.ft` as rules schedule it, against the libraries' own."""

import numpy as np

from workloads import taffeta, timed, torch_

BENCHES = "../benches/peers/operators.ft"


class Operator:
    """Operator on arrays of random numbers: the entry of `operators.ft`, and its equivalents in PyTorch and JAX."""

    systems = ["taffeta", "torch", "torch.compile", "jax"]

    def __init__(self, name, entry, shapes, result, torch, jax, flops=0, bar=1.0, dtype=np.float32, tolerance=1e-4):
        self.name, self.entry, self.shapes, self.result = name, entry, shapes, result
        self.of_torch, self.of_jax, self.dtype, self.tolerance = torch, jax, dtype, tolerance
        elements = sum(int(np.prod(s)) for s in shapes) + int(np.prod(result))
        self.flops, self.bytes = flops, elements * np.dtype(dtype).itemsize
        self.bars = {"taffeta": ("frameworks", bar)}

    def inputs(self):
        rng = np.random.default_rng(0)
        return [rng.standard_normal(s).astype(self.dtype) for s in self.shapes]

    def taffeta(self, *arrays):
        result = np.empty(self.result, self.dtype)
        sizes = {}
        for name, array in zip(SIZES[self.entry], arrays):
            sizes |= {s: n for s, n in zip(name.split(), array.shape) if s.isalpha()}
        return timed(taffeta(BENCHES, self.entry, arrays, [result], "auto", sizes), result)

    def torch(self, *arrays):
        torch = torch_()
        import torch.nn.functional as F

        return lambda *a: self.of_torch(torch, F, *a), list(arrays)

    def jax(self, *arrays):
        import jax
        import jax.numpy as jnp

        # Otherwise JAX computes f64 inputs in f32.
        jax.config.update("jax_enable_x64", self.dtype == np.float64)
        return lambda *a: self.of_jax(jax, jnp, *a), list(arrays)


# Sizes in the shapes of the entries' parameters.
SIZES = {
    "soften": ["n m"],
    "normalise": ["n m", "m", "m"],
    "bias_gelu": ["n m", "m"],
    "row_sums": ["n m"],
    "column_sums": ["n m"],
    "turn": ["n m"],
    "convolve": ["1 c h w", "o c 3 3"],
    "batched": ["b n p", "b p m"],
    "product": ["n p", "p m"],
    "product_f64": ["n p", "p m"],
}


def jax_layer_norm(jax, jnp, x, scale, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift


def jax_conv(jax, jnp, x, k):
    return jax.lax.conv_general_dilated(x, k, (1, 1), ((1, 1), (1, 1)))


def product(name, entry, shape, dtype=np.float32, bar=1.0):
    *batch, n, p, m = shape
    return Operator(
        name,
        entry,
        [(*batch, n, p), (*batch, p, m)],
        (*batch, n, m),
        lambda torch, F, a, b: torch.matmul(a, b),
        lambda jax, jnp, a, b: jnp.matmul(a, b),
        flops=2 * int(np.prod(shape)),
        dtype=dtype,
        bar=bar,
    )


ROWS = (4096, 1024)
OPERATORS = [
    Operator(
        "softmax",
        "soften",
        [ROWS],
        ROWS,
        lambda torch, F, x: torch.softmax(x, -1),
        lambda jax, jnp, x: jax.nn.softmax(x),
    ),
    Operator(
        "layer norm",
        "normalise",
        [ROWS, ROWS[1:], ROWS[1:]],
        ROWS,
        lambda torch, F, x, scale, shift: F.layer_norm(x, ROWS[1:], scale, shift),
        jax_layer_norm,
    ),
    Operator(
        "bias and GELU",
        "bias_gelu",
        [ROWS, ROWS[1:]],
        ROWS,
        lambda torch, F, x, bias: F.gelu(x + bias),
        lambda jax, jnp, x, bias: jax.nn.gelu(x + bias, approximate=False),
    ),
    Operator("sums of rows", "row_sums", [ROWS], ROWS[:1], lambda torch, F, x: x.sum(1), lambda jax, jnp, x: x.sum(1)),
    Operator(
        "sums of columns",
        "column_sums",
        [ROWS],
        ROWS[1:],
        lambda torch, F, x: x.sum(0),
        lambda jax, jnp, x: x.sum(0),
    ),
    Operator(
        "transpose",
        "turn",
        [ROWS],
        ROWS[::-1],
        lambda torch, F, x: x.t().contiguous(),
        lambda jax, jnp, x: x.T + 0,
    ),
    Operator(
        "conv2d 3x3",
        "convolve",
        [(1, 64, 112, 112), (64, 64, 3, 3)],
        (1, 64, 112, 112),
        lambda torch, F, x, k: F.conv2d(x, k, padding=1),
        jax_conv,
        flops=2 * 64 * 64 * 9 * 112 * 112,
    ),
    product("batched products 1024 of 32", "batched", (1024, 32, 32, 32)),
    product("batched products 64 of 128", "batched", (64, 128, 128, 128)),
    product("product 300x77x1000", "product", (300, 77, 1000)),
    product("product 1000x1000x3", "product", (1000, 1000, 3)),
    product("dgemm 512", "product_f64", (512, 512, 512), np.float64, 0.85),
    product("dgemm 1024", "product_f64", (1024, 1024, 1024), np.float64, 0.85),
]
