"""Two sparse vectors in all formats: dot products and sums against merges by hand (`pairs.c`).

Each format has a vector that suits it: lists have scattered elements, blocks stretches, runs steps. Sums of a hashed
vector are left out: it has no order to merge in.
"""

import ctypes
import itertools
import os
import tempfile

import numpy as np

from taffeta import Entry, Stored

from .options import THREADS
from .peers import compiled
from .stored import short
from .workload import Bar, Workload

# Too many coordinates for a branch predictor to learn from one run to the next.
N = 2_000_000
PROGRAM = """def {name}(a: f64[n] @ format({a}), b: f64[n] @ format({b})) -> f64:
    s = 0.0
    for j in range(n):
        s += a[j] {op} b[j]
    return s
"""


class Vector(ctypes.Structure):
    """Layout of `vector` in pairs.c."""

    _fields_ = [("n", ctypes.c_int64)] + [
        (name, ctypes.c_void_p) for name in ("one", "two", "three", "four", "bytes", "val")
    ]


def points(rng):
    at = np.flatnonzero(rng.random(N) < 0.05)
    return at, rng.random(len(at))


def stretches(rng):
    """Returns the beginnings and the ends of stretches of 10 to 59 elements, with gaps of the same lengths."""
    edges = np.cumsum(rng.integers(10, 60, N // 35))
    edges = edges[edges < N][: len(edges[edges < N]) // 2 * 2]
    return edges[0::2], edges[1::2]


def hashed(at, values):
    size = 1 << int(2 * len(at) - 1).bit_length()
    table = np.zeros(size, np.int32)
    for p, j in enumerate(at.tolist()):
        s = ((((j ^ (j >> 32)) * 0x9E3779B97F4A7C15) & (2**64 - 1)) >> 32) & (size - 1)
        while table[s]:
            s = (s + 1) & (size - 1)
        table[s] = p + 1
    return [short([0, len(at)]), short(at), short([0, size]), table], values


def packbits(rng):
    """Makes runs and stretches of 10 to 49 elements, in turns."""
    ends = np.cumsum(rng.integers(10, 50, N // 25))
    ends = np.append(ends[ends < N - 1], N)
    lengths = np.diff(np.append(0, ends))
    counts = np.where(np.arange(len(ends)) % 2 == 0, 1, lengths)
    values = rng.random(counts.sum())
    return [short([0, len(ends)]), short(ends), short(np.append(0, np.cumsum(counts)))], values


def vectors(seed):
    """Makes the arrays and the elements of each format, by its names in pairs.c and in the language."""
    rng = np.random.default_rng(seed)
    made = {}
    made["DENSE", "dense"] = [], rng.random(N)
    at, values = points(rng)
    made["LIST", "compressed"] = [short([0, len(at)]), short(at)], values
    made["HASHED", "hashed"] = hashed(*points(rng))
    at, values = points(rng)
    here, all_values = np.zeros(N, np.uint8), np.zeros(N)
    here[at], all_values[at] = 1, values
    made["BYTEMAP", "bytemap"] = [short([0, len(at)]), short(at), here], all_values
    at, values = points(rng)
    here, all_values = np.zeros(N, bool), np.zeros(N)
    here[at], all_values[at] = True, values
    made["BITMAP", "bitmap"] = [np.packbits(here, bitorder="little")], all_values
    made["BAND", "banded"] = [short([0, N // 2]), short([N // 4])], rng.random(N // 2)
    made["RAGGED", "ragged"] = [short([0, N // 3])], rng.random(N // 3)
    begin, end = stretches(rng)
    made["VBL", "blocklist"] = [
        short([0, len(end)]),
        short(end),
        short(np.append(0, np.cumsum(end - begin))),
    ], rng.random((end - begin).sum())
    last = np.append(np.flatnonzero(rng.random(N - 1) < 0.03) + 1, N)
    made["RLE", "runlength"] = [short([0, len(last)]), short(last)], rng.random(len(last))
    made["PACKBITS", "packbits"] = packbits(rng)
    return made


def workloads():
    if THREADS > 1:
        return
    (made, others), library, folder = (vectors(0), vectors(1)), None, tempfile.mkdtemp(prefix="taffeta-peers-")
    for (a, b), (what, op) in itertools.product(itertools.product(made, made), (("dot", "*"), ("add", "+"))):
        if op == "+" and "hashed" in (a[1], b[1]):
            continue

        def prepare(title, a=a, b=b, what=what, op=op):
            nonlocal library
            # Sums in their order, as without a schedule that vectorises them.
            library = library or compiled("pairs.c", "-fno-math-errno")
            work = Workload(title, (Bar(ratio=1 / 1.2),), 1e-9)
            given = (made, a), (others, b)

            def taffeta():
                name = f"{what}_{a[1]}_{b[1]}"
                file = os.path.join(folder, f"{name}.ft")
                with open(file, "w") as out:
                    out.write(PROGRAM.format(name=name, a=a[1], b=b[1], op=op))
                found = np.zeros(())
                stored = [m[v][1] if v[1] == "dense" else Stored((N,), [(v[1], m[v][0])], m[v][1]) for m, v in given]
                return Entry(file, name).bind(stored, [found]), lambda: found

            def hand():
                found, function = np.zeros(()), getattr(library, f"{what}_{a[0]}_{b[0]}")
                views = [Vector(n=N, val=m[v][1].ctypes.data) for m, v in given]
                for view, (m, v) in zip(views, given):
                    for field, array in zip(("one", "two", "three", "four"), m[v][0]):
                        setattr(view, "bytes" if array.dtype == np.uint8 else field, array.ctypes.data)
                arguments = [ctypes.byref(view) for view in views] + [ctypes.c_void_p(found.ctypes.data)]
                return lambda: function(*arguments), lambda: found

            work.add("taffeta", taffeta)
            return work.add("C by hand", hand)

        yield f"{what} {a[1]} {b[1]}", prepare
