"""Workloads with inputs, Taffeta's program, and the peers, each in the formulation that suits it best.

A workload is a class: `inputs()` makes arrays from fixed seeds, and each method named in `systems` takes them and
returns a function to be timed, and one that returns the result as a NumPy array. Results must agree to `tolerance`,
relative to the largest value, before times are believed.
"""

import ctypes
import ctypes.util
import glob
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")
THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))


def taffeta(path, entry, arguments, results, schedule=None, sizes=(), statics=()):
    from taffeta import Entry

    return Entry(os.path.join(EXAMPLES, path), entry, schedule, sizes, statics).bind(arguments, results)


def timed(call, result):
    """Pairs a function to be timed with one that returns its result afterwards."""
    call_result = lambda: result() if callable(result) else result
    return call, call_result


def torch_():
    import torch

    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)
    return torch


def torch_call(f, args):
    torch = torch_()
    args = [torch.from_numpy(a) for a in args]
    return timed(lambda: f(*args), lambda: f(*args).numpy())


def torch_compile(f, args):
    torch = torch_()
    return torch_call(torch.compile(f, dynamic=False), args)


def jax_jit(f, args):
    import jax
    import jax.numpy as jnp

    args = [jnp.asarray(a) for a in args]
    jitted = jax.jit(f)
    return timed(lambda: jitted(*args).block_until_ready(), lambda: np.asarray(jitted(*args)))


_LOOPS = None


def loops():
    """Returns the loops of loops.c, compiled as an expert would compile them by hand."""
    global _LOOPS
    if _LOOPS is None:
        library = os.path.join(tempfile.mkdtemp(prefix="taffeta-peers-"), "loops.so")
        flags = "-O3 -march=native -ffast-math -fopenmp -shared -fPIC".split()
        subprocess.run(["gcc", *flags, os.path.join(HERE, "loops.c"), "-o", library, "-lm"], check=True)
        _LOOPS = ctypes.CDLL(library)
    return _LOOPS


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def c_call(name, *args):
    f = getattr(loops(), name)
    f.restype = None
    made = [pointer(a) if isinstance(a, np.ndarray) else ctypes.c_int64(a) for a in args]

    def call():
        f(*made)

    # Pointers do not keep arrays alive.
    call.keeps = args
    return call


def has_avx512():
    """Returns whether this CPU has the vectors that the block of the matrix product's schedule is made for."""
    try:
        with open("/proc/cpuinfo") as file:
            return "avx512f" in file.read()
    except OSError:
        return False


def fewer_registers(**statics):
    """Returns parameters of the examples' own schedules for CPUs whose registers are fewer or shorter than they are
    made for. Others (`race.py --schedule auto`) have none.
    """
    return {} if has_avx512() or os.environ.get("TAFFETA_RACE_SCHEDULE") else statics


class Sgemm:
    """Matrix product in f32, by Taffeta's own loops or by a library through `as_lib`."""

    tolerance = 1e-4
    systems = ["taffeta", "torch", "numpy", "mkl", "jax"]

    def __init__(self, n, schedule="fast", bar=0.7):
        self.n, self.name, self.schedule = n, f"sgemm {n}" + ("" if schedule == "fast" else f", {schedule}"), schedule
        self.flops, self.bytes = 2 * n**3, 12 * n * n
        self.bars = {"taffeta": ("any", bar)}

    def inputs(self):
        rng = np.random.default_rng(0)
        return [rng.random((self.n, self.n), dtype=np.float32) for _ in range(2)]

    def taffeta(self, a, b):
        return self.scheduled(self.schedule, a, b)

    def scheduled(self, schedule, a, b):
        # Taffeta takes the library that it finds; if the system has none, use that of the peers.
        if ctypes.util.find_library("openblas") is None:
            for mkl in glob.glob(sys.prefix + "/lib/libmkl_rt.so*"):
                os.environ.setdefault("TAFFETA_BLAS", mkl)
        c = np.empty_like(a)
        sizes = {"n": self.n, "m": self.n, "p": self.n}
        # The schedule's own block is for 32 registers of 64 bytes; of 16 with 32 bytes it would not stay in them.
        blocked = schedule not in ("none", "reordered", "by_library")
        block = fewer_registers(mr=6, nr=16) if blocked else {}
        return timed(taffeta("matmul/matmul.ft", "matmul", [a, b], [c], schedule, sizes, block), c)

    def torch(self, a, b):
        torch = torch_()
        a, b, c = torch.from_numpy(a), torch.from_numpy(b), torch.empty(self.n, self.n)
        return timed(lambda: torch.mm(a, b, out=c), lambda: c.numpy())

    def numpy(self, a, b):
        c = np.empty_like(a)
        return timed(lambda: np.matmul(a, b, out=c), c)

    def mkl(self, a, b):
        library = ctypes.CDLL(sorted(glob.glob(sys.prefix + "/lib/libmkl_rt.so*"))[0], mode=ctypes.RTLD_GLOBAL)
        library.MKL_Set_Num_Threads(THREADS)
        n, c, one, zero = self.n, np.empty_like(a), ctypes.c_float(1), ctypes.c_float(0)
        args = (101, 111, 111, n, n, n, one, pointer(a), n, pointer(b), n, zero, pointer(c), n)

        def call():
            library.cblas_sgemm(*args)

        call.keeps = (a, b)
        return timed(call, c)

    def jax(self, a, b):
        return lambda a, b: a @ b, [a, b]


class Steps(Sgemm):
    """Steps of the manual's chapter, each with its time; nothing is raced."""

    schedules = ["none", "reordered", "blocked", "registers", "packed", "fast", "by_library"]

    def __init__(self, n):
        super().__init__(n)
        self.name, self.bars = f"steps of sgemm {n}", {}
        self.systems = ["taffeta", *self.schedules, "torch"]


class CircularDifference:
    """SubdivNet's circular difference: 10240 faces with 64 features, each next to three random others."""

    name, tolerance = "circular difference", 1e-5
    systems = ["taffeta", "by hand, fused", "torch", "torch.compile", "jax"]
    bars = {"taffeta": ("by hand, fused", 0.95)}
    n, features = 10240, 64
    flops, bytes = 8 * n * features, 4 * (2 * n * features + 3 * n)

    def inputs(self):
        rng = np.random.default_rng(0)
        adj = rng.integers(0, self.n, size=(self.n, 3)).astype(np.int32)
        return [rng.random((self.n, self.features), dtype=np.float32), adj]

    def taffeta(self, e, adj):
        y = np.empty_like(e)
        sizes = {"n_faces": self.n, "feats": self.features}
        return timed(taffeta("subdivnet/circular_diff.ft", "circular_diff", [e, adj], [y], "fast", sizes), y)

    def by_hand(self, e, adj):
        y = np.empty_like(e)
        return timed(c_call("circular_difference", self.n, self.features, e, adj, y), y)

    def formula(self, xp, e, adj):
        near = e[adj]
        turned = xp.concatenate([near[:, 1:], near[:, :1]], axis=1)
        return xp.abs(near - turned).sum(axis=1)

    def torch(self, e, adj):
        torch = torch_()

        def f(e, adj):
            near = torch.index_select(e, 0, adj.flatten()).reshape(-1, 3, e.shape[1])
            return torch.sum(torch.abs(near - torch.cat([near[:, 1:], near[:, :1]], dim=1)), dim=1)

        return f, [e, adj]

    def jax(self, e, adj):
        import jax.numpy as jnp

        return lambda e, adj: self.formula(jnp, e, adj), [e, adj]


class MeshConvolution(CircularDifference):
    """A layer of SubdivNet: three sums over the neighbours, and four products with 64 x 64 matrices."""

    name, tolerance = "mesh convolution", 1e-4
    systems = ["taffeta", "torch", "torch.compile", "jax"]
    bars = {"taffeta": ("any", 2.0)}
    flops = 10240 * (64 * 64 * 8 + 24 * 64)

    def inputs(self):
        rng = np.random.default_rng(0)
        e, adj = super().inputs()
        return [e, adj] + [rng.random((64, 64), dtype=np.float32) * np.float32(0.1) for _ in range(4)]

    def taffeta(self, e, adj, *w):
        y = np.empty_like(e)
        sizes = {"n_faces": self.n, "feats": self.features, "channels": 64}
        # 64 channels of so many faces stay in registers.
        faces = fewer_registers(faces=2)
        return timed(taffeta("subdivnet/mesh_conv.ft", "mesh_conv", [e, adj, *w], [y], "fast", sizes, faces), y)

    def torch(self, e, adj, *w):
        torch = torch_()

        def f(e, adj, w0, w1, w2, w3):
            near = torch.index_select(e, 0, adj.flatten()).reshape(-1, 3, e.shape[1])
            across = torch.sum(torch.abs(near - torch.cat([near[:, 1:], near[:, :1]], dim=1)), dim=1)
            away = torch.sum(torch.abs(near - e[:, None]), dim=1)
            return e @ w0 + near.sum(1) @ w1 + across @ w2 + away @ w3

        return f, [e, adj, *w]

    def jax(self, e, adj, *w):
        import jax.numpy as jnp

        def f(e, adj, w0, w1, w2, w3):
            near = e[adj]
            away = jnp.abs(near - e[:, None]).sum(1)
            return e @ w0 + near.sum(1) @ w1 + self.formula(jnp, e, adj) @ w2 + away @ w3

        return f, [e, adj, *w]


class Longformer:
    """Attention of each token to the `w` tokens on either side, cut at the ends of the text."""

    tolerance = 2e-4
    systems = ["taffeta", "by hand, fused", "torch", "torch.compile", "jax"]
    bars = {"taffeta": ("frameworks", 1.0)}

    def __init__(self, heads, n, w, d):
        self.shape, self.w = (heads, n, d), w
        self.name = f"Longformer {heads}x{n}, window {w}"
        self.flops, self.bytes = 4 * heads * n * (2 * w + 1) * d, 16 * heads * n * d

    def inputs(self):
        rng = np.random.default_rng(0)
        return [rng.standard_normal(self.shape, dtype=np.float32) for _ in range(3)]

    def taffeta(self, q, k, v):
        y = np.empty_like(q)
        sizes = dict(zip(("heads", "n", "d"), self.shape))
        call = taffeta("longformer/longformer.ft", "attention", [q, k, v], [y], "fast", sizes, {"w": self.w})
        return timed(call, y)

    def by_hand(self, q, k, v):
        y = np.empty_like(q)
        return timed(c_call("longformer", *self.shape, self.w, q, k, v, y), y)

    def torch(self, q, k, v):
        torch = torch_()
        import torch.nn.functional as F

        (h, n, d), w = self.shape, self.w
        blocks = -(-n // w)
        pad = blocks * w - n
        i, j = torch.arange(w)[:, None], torch.arange(3 * w)[None, :]
        at = torch.arange(blocks)[:, None, None] * w + j - w
        outside = (j < i) | (j > i + 2 * w) | (at < 0) | (at >= n)

        def f(q, k, v):
            q2 = F.pad(q, (0, 0, 0, pad)).view(h, blocks, w, d)
            k3 = F.pad(k, (0, 0, w, w + pad)).unfold(1, 3 * w, w)
            v3 = F.pad(v, (0, 0, w, w + pad)).unfold(1, 3 * w, w)
            score = (torch.matmul(q2, k3) / math.sqrt(d)).masked_fill(outside, float("-inf"))
            y = torch.matmul(torch.softmax(score, -1), v3.transpose(-1, -2))
            return y.reshape(h, blocks * w, d)[:, :n]

        return f, [q, k, v]

    def jax(self, q, k, v):
        import jax
        import jax.numpy as jnp

        (h, n, d), w = self.shape, self.w
        blocks = -(-n // w)
        pad = blocks * w - n
        i, j = np.arange(w)[:, None], np.arange(3 * w)[None, :]
        at = np.arange(blocks)[:, None, None] * w + j - w
        outside = jnp.asarray((j < i) | (j > i + 2 * w) | (at < 0) | (at >= n))

        def near(x):
            x = jnp.pad(x, ((0, 0), (w, w + pad), (0, 0))).reshape(h, blocks + 2, w, d)
            return jnp.concatenate([x[:, :-2], x[:, 1:-1], x[:, 2:]], axis=2)

        def f(q, k, v):
            q2 = jnp.pad(q, ((0, 0), (0, pad), (0, 0))).reshape(h, blocks, w, d)
            score = jnp.einsum("hbid,hbjd->hbij", q2, near(k)) / math.sqrt(d)
            weight = jax.nn.softmax(jnp.where(outside, -jnp.inf, score), -1)
            return jnp.einsum("hbij,hbjd->hbid", weight, near(v)).reshape(h, blocks * w, d)[:, :n]

        return f, [q, k, v]


class SoftRasteriser:
    """Coverage of each of 64 x 64 pixels by each of 512 triangles: sigmoid of the signed squared distance."""

    name, tolerance = "soft rasteriser", 2e-3
    systems = ["taffeta", "torch", "torch.compile", "jax"]
    bars = {"taffeta": ("any", 1.0)}
    faces, size, sigma = 512, 64, 1e-4
    flops, bytes = 512 * 64 * 64 * 70, 4 * 512 * 64 * 64

    def inputs(self):
        rng = np.random.default_rng(0)
        corners = rng.random((self.faces, 1, 2)) + (rng.random((self.faces, 3, 2)) - 0.5) * 0.1
        return [corners.astype(np.float32)]

    def taffeta(self, corners):
        y = np.empty((self.faces, self.size, self.size), np.float32)
        sigma = np.array(self.sigma, np.float32)
        sizes, statics = {"n_faces": self.faces}, {"size": self.size}
        return timed(taffeta("softras/softras.ft", "coverage", [corners, sigma], [y], "fast", sizes, statics), y)

    def formula(self, xp, sigmoid):
        line = np.linspace(0, 1, self.size, dtype=np.float32)

        def f(corners, py, px):
            c = [(corners[:, i, 0][:, None, None], corners[:, i, 1][:, None, None]) for i in range(3)]

            def squared(a, b):
                dx, dy = b[0] - a[0], b[1] - a[1]
                t = xp.clip(((px - a[0]) * dx + (py - a[1]) * dy) / (dx * dx + dy * dy), 0.0, 1.0)
                return (px - a[0] - t * dx) ** 2 + (py - a[1] - t * dy) ** 2

            def side(a, b):
                return (px - a[0]) * (b[1] - a[1]) - (py - a[1]) * (b[0] - a[0])

            d = xp.minimum(xp.minimum(squared(c[0], c[1]), squared(c[1], c[2])), squared(c[2], c[0]))
            s = [side(c[0], c[1]), side(c[1], c[2]), side(c[2], c[0])]
            inside = (s[0] >= 0) & (s[1] >= 0) & (s[2] >= 0) | (s[0] <= 0) & (s[1] <= 0) & (s[2] <= 0)
            return sigmoid(xp.where(inside, d, -d) / self.sigma)

        return f, [line[None, :, None], line[None, None, :]]

    def torch(self, corners):
        torch = torch_()
        f, pixels = self.formula(torch, torch.sigmoid)
        return f, [corners, *pixels]

    def jax(self, corners):
        import jax
        import jax.numpy as jnp

        f, pixels = self.formula(jnp, jax.nn.sigmoid)
        return f, [corners, *pixels]


class GraphAttention:
    """One head of graph attention with 32 features over edges sorted by the node that they lead to."""

    tolerance = 1e-3
    systems = ["taffeta", "torch", "torch.compile", "jax"]
    bars = {"taffeta": ("any", 1.0)}
    features = 32

    def __init__(self, nodes, edges):
        self.nodes, self.edges = nodes, edges
        self.name = f"graph attention {nodes} nodes"
        f = self.features
        self.flops = 2 * nodes * f * (f + 2) + edges * (2 * f + 30)
        self.bytes = 4 * (3 * nodes * f + edges * 3)

    def inputs(self):
        rng = np.random.default_rng(0)
        n, f = self.nodes, self.features
        dst = np.sort(np.concatenate([rng.integers(0, n, self.edges - n), np.arange(n)])).astype(np.int32)
        src = rng.integers(0, n, self.edges).astype(np.int32)
        x = rng.standard_normal((n, f), dtype=np.float32)
        w = rng.standard_normal((f, f), dtype=np.float32) / np.float32(math.sqrt(f))
        a = [rng.standard_normal(f, dtype=np.float32) for _ in range(2)]
        return [x, w, *a, src, dst]

    def taffeta(self, x, w, a_src, a_dst, src, dst):
        y = np.empty_like(x)
        first = np.searchsorted(dst, np.arange(self.nodes + 1)).astype(np.int32)
        sizes = {"n": self.nodes, "m": self.edges, "feats": self.features, "channels": self.features}
        call = taffeta("gat/gat.ft", "gat_csr", [x, w, a_src, a_dst, first, src], [y], "fast", sizes)
        return timed(call, y)

    def torch(self, x, w, a_src, a_dst, src, dst):
        torch = torch_()
        n = self.nodes

        def f(x, w, a_src, a_dst, src, dst):
            h = x @ w
            e = torch.nn.functional.leaky_relu((h @ a_src)[src] + (h @ a_dst)[dst], 0.2)
            peak = torch.full((n,), -1e30).scatter_reduce(0, dst, e, "amax")
            p = torch.exp(e - peak[dst])
            weight = p / torch.zeros(n).index_add(0, dst, p)[dst]
            return torch.zeros(n, h.shape[1]).index_add(0, dst, weight[:, None] * h[src])

        return f, [x, w, a_src, a_dst, src.astype(np.int64), dst.astype(np.int64)]

    def jax(self, x, w, a_src, a_dst, src, dst):
        import jax
        import jax.numpy as jnp

        n = self.nodes
        in_order = dict(num_segments=n, indices_are_sorted=True)

        def f(x, w, a_src, a_dst, src, dst):
            h = x @ w
            e = jax.nn.leaky_relu((h @ a_src)[src] + (h @ a_dst)[dst], 0.2)
            p = jnp.exp(e - jax.ops.segment_max(e, dst, **in_order)[dst])
            weight = p / jax.ops.segment_sum(p, dst, **in_order)[dst]
            return jax.ops.segment_sum(weight[:, None] * h[src], dst, **in_order)

        return f, [x, w, a_src, a_dst, src, dst]


class Stencil:
    """A stencil over time steps, against the same loops by gcc with OpenMP."""

    tolerance = 1e-12
    systems = ["taffeta", "gcc -O3, OpenMP"]
    bars = {"taffeta": ("any", 1.0)}

    def __init__(self, entry, schedule, n, steps, dims, flops):
        self.entry, self.schedule, self.n, self.steps, self.dims = entry, schedule, n, steps, dims
        self.name = f"{entry} {n}^{dims}, {steps} steps"
        points = (n - 2) ** dims
        self.flops, self.bytes = 2 * steps * points * flops, 2 * steps * 16 * points

    def inputs(self):
        rng = np.random.default_rng(0)
        a = rng.random((self.n,) * self.dims)
        return [a, a.copy()]

    def taffeta(self, a, b):
        steps = np.array(self.steps, np.int32)
        call = taffeta("physics/stencils.ft", self.entry, [steps, a, b], [], self.schedule, {"n": self.n})
        return timed(call, a)

    def by_hand(self, a, b):
        return timed(c_call(self.entry, self.steps, self.n, a, b), a)


FORWARD = [
    Sgemm(512),
    Sgemm(1024),
    Sgemm(1024, "by_library", 0.95),
    Sgemm(2048),
    Steps(1024),
    CircularDifference(),
    MeshConvolution(),
    Longformer(8, 2048, 32, 64),
    Longformer(1, 10000, 32, 64),
    Longformer(1, 4096, 128, 64),
    Longformer(1, 10000, 256, 64),
    SoftRasteriser(),
    GraphAttention(2708, 10556),
    GraphAttention(50000, 500000),
    Stencil("jacobi_2d", "jacobi_tiles", 4000, 200, 2, 5),
    Stencil("heat_3d", "heat_tiles", 400, 50, 3, 15),
]
