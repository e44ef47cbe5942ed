"""Structured tensors against SciPy, MKL, PyTorch and loops by hand: every published matrix, graph and tensor, and made ones.

    sparse.py [--only TEXT] [--pairs 20] [--quick] [--threads 1] [--out target/bench/sparse.json]

Needs the variable TAFFETA (the compiler) and a Python with NumPy and SciPy; TAFFETA_DATA is the folder of published data. Results are
compared first. Then all systems of a workload run in turn, each for some milliseconds, the first one changing from round to round; for
each round the ratio of the fastest peer (by its median) and Taffeta counts. A bar holds where the 95 % interval of the median ratio lies
above it. On one thread the processor's time counts instead of the clock's.

What is not like for like: matrices of a few kB spend their time in calls through ctypes, which are dearest for SciPy and MKL. Taffeta and
the loops by hand write results that are given to them, SciPy and PyTorch make new ones. SciPy and PyTorch have no sums of rows of
sampled products: PyTorch's `sampled_addmm` stops at the products. MKL may look at a matrix beforehand (`mkl_sparse_optimize`), which is
not timed. The index arrays are trusted (`TAFFETA_TRUST_ARRAYS`), as those of the peers are.
"""

import argparse
import ctypes
import glob
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.sparse as sp
from scipy.io import mmread

HERE = os.path.dirname(os.path.abspath(__file__))
LEVEL = 0.95


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="workloads whose name has this in it")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="short turns: for looking, not for claims")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", default=None)
    return parser.parse_args()


OPTIONS = parsed()
# Before a library starts its threads. All run in one process: who waits must not spin.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(OPTIONS.threads)
os.environ |= {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0", "KMP_DUPLICATE_LIB_OK": "TRUE"}

import pairs  # noqa: E402
from statistics_of_pairs import interval  # noqa: E402
from taffeta import Entry, Stored  # noqa: E402

clock = time.process_time if OPTIONS.threads == 1 else time.perf_counter


def library():
    made = os.path.join(tempfile.mkdtemp(prefix="taffeta-peers-"), "sparse.so")
    flags = "-O3 -march=native -ffast-math -fopenmp -shared -fPIC".split()
    subprocess.run(["gcc", *flags, os.path.join(HERE, "sparse.c"), "-o", made], check=True)
    return ctypes.CDLL(made)


BY_HAND = library()
BY_HAND.triangles.restype = ctypes.c_double


def torch_():
    import torch

    torch.set_num_threads(OPTIONS.threads)
    torch.set_grad_enabled(False)
    return torch


class Descr(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int)]


GENERAL, ROW_MAJOR, PLAIN = Descr(20, 0, 0), 101, 10
MKL = None
for path in glob.glob(sys.prefix + "/lib/libmkl_rt.so*"):
    MKL = ctypes.CDLL(path)
    MKL.MKL_Set_Num_Threads(OPTIONS.threads)


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


def by_hand(name, *args):
    f = getattr(BY_HAND, name)
    made = [address(a) if isinstance(a, np.ndarray) else ctypes.c_int64(a) for a in args]

    def call():
        f(*made)

    # Pointers do not keep arrays alive.
    call.keeps = args
    return call


def mkl_matrix(a, calls, columns=0):
    """A handle of a matrix that MKL knows will be used often."""
    if MKL is None:
        raise RuntimeError("there is no libmkl_rt")
    handle = ctypes.c_void_p()
    handle.keeps = a
    create = MKL.mkl_sparse_d_create_csr if a.dtype == np.float64 else MKL.mkl_sparse_s_create_csr
    parts = address(a.indptr), ctypes.c_void_p(a.indptr.ctypes.data + 4), address(a.indices), address(a.data)
    assert create(ctypes.byref(handle), 0, *a.shape, *parts) == 0
    if columns:
        MKL.mkl_sparse_set_mm_hint(handle, PLAIN, GENERAL, ROW_MAJOR, columns, calls)
    else:
        MKL.mkl_sparse_set_mv_hint(handle, PLAIN, GENERAL, calls)
    MKL.mkl_sparse_optimize(handle)
    return handle


def torch_matrix(a):
    torch = torch_()
    return torch.sparse_csr_tensor(*(torch.from_numpy(p) for p in (a.indptr, a.indices, a.data)), a.shape)


ENTRIES = {}


def entry(name, schedule, sizes=()):
    """An entry of sparse.ft, or of another file; compiled once."""
    file, name = name.split(":") if ":" in name else (os.path.join(HERE, "sparse.ft"), name)
    key = file, name, schedule, tuple(sizes)
    if key not in ENTRIES:
        ENTRIES[key] = Entry(file, name, schedule, sizes)
    return ENTRIES[key]


def csr(a):
    return Stored(a.shape, [("dense", []), ("compressed", [a.indptr, a.indices])], a.data)


class Workload:
    """Systems by their names, each a function that gives the one to be timed and what tells its result."""

    bar, against, tolerance = LEVEL, None, 1e-12

    def __init__(self, name, **more):
        self.name, self.systems = name, {}
        self.__dict__.update(more)

    def add(self, system, prepare):
        self.systems[system] = prepare
        return self


def rows_or(alone, together):
    """The schedule for so many threads."""
    return alone if OPTIONS.threads == 1 else together


def spmv(name, a):
    n, m = a.shape
    x = np.random.default_rng(0).random(m)
    work = Workload(f"SpMV {name}")

    def given(prepare):
        y = np.empty(n)
        call = prepare(y)
        return call, lambda: y

    work.add("taffeta", lambda: given(lambda y: entry("spmv", rows_or("vectors", "rows")).bind([csr(a), x], [y])))
    work.add("by hand", lambda: given(lambda y: by_hand("spmv", n, a.indptr, a.indices, a.data, x, y)))

    def mkl(y):
        handle, f = mkl_matrix(a, 1000), MKL.mkl_sparse_d_mv
        f.argtypes = [ctypes.c_int, ctypes.c_double, ctypes.c_void_p, Descr, ctypes.c_void_p, ctypes.c_double, ctypes.c_void_p]
        at, to = address(x), address(y)
        return lambda: f(PLAIN, 1.0, handle, GENERAL, at, 0.0, to)

    work.add("mkl", lambda: given(mkl))
    work.add("scipy", lambda: (lambda: a @ x, lambda: a @ x))

    def torch():
        t, v = torch_matrix(a), torch_().from_numpy(x)
        return lambda: t @ v, lambda: (t @ v).numpy()

    work.add("torch", torch)
    # What one row has is one block, if not much lies between.
    band = banded(a)
    if len(band.values) < 2 * a.nnz:
        schedule = rows_or("band_vectors", "band_rows")
        work.add("taffeta, band", lambda: given(lambda y: entry("spmv_band", schedule).bind([band, x], [y])))
    return work


def banded(a):
    """The matrix in the format `band`."""
    n = a.shape[0]
    full = np.diff(a.indptr) > 0
    start, stop = np.zeros(n, np.int32), np.zeros(n, np.int32)
    start[full] = np.minimum.reduceat(a.indices, a.indptr[:-1][full]) if full.any() else 0
    stop[full] = np.maximum.reduceat(a.indices, a.indptr[:-1][full]) + 1 if full.any() else 0
    pos = np.concatenate([[0], np.cumsum(stop.astype(np.int64) - start)])
    if pos[-1] > 2 * a.nnz:
        return Stored(a.shape, [], np.empty(2 * a.nnz))
    values = np.zeros(pos[-1])
    rows = np.repeat(np.arange(n), np.diff(a.indptr))
    values[pos[rows] + a.indices - start[rows]] = a.data
    return Stored(a.shape, [("dense", []), ("banded", [pos.astype(np.int32), start])], values)


def spmm(name, a, k):
    n, m = a.shape
    b = np.random.default_rng(0).random((m, k), dtype=np.float32)
    work = Workload(f"SpMM {name}, {k} columns", tolerance=1e-4)

    def given(prepare):
        c = np.empty((n, k), np.float32)
        call = prepare(c)
        return call, lambda: c

    schedule, sizes = rows_or("spmm_vectors", "spmm_rows"), {"k": k}
    work.add("taffeta", lambda: given(lambda c: entry("spmm", schedule, sizes.items()).bind([csr(a), b], [c])))
    work.add("by hand", lambda: given(lambda c: by_hand("spmm", n, k, a.indptr, a.indices, a.data, b, c)))

    def mkl(c):
        handle, f = mkl_matrix(a, 1000, k), MKL.mkl_sparse_s_mm
        number, many, pointer = ctypes.c_float, ctypes.c_int, ctypes.c_void_p
        f.argtypes = [many, number, pointer, Descr, many, pointer, many, many, number, pointer, many]
        at, to = address(b), address(c)
        return lambda: f(PLAIN, 1.0, handle, GENERAL, ROW_MAJOR, at, k, k, 0.0, to, k)

    work.add("mkl", lambda: given(mkl))
    work.add("scipy", lambda: (lambda: a @ b, lambda: a @ b))

    def torch():
        t, v = torch_matrix(a), torch_().from_numpy(b)
        return lambda: t @ v, lambda: (t @ v).numpy()

    return work.add("torch", torch)


def sddmm(name, s, k):
    n, m = s.shape
    rng = np.random.default_rng(0)
    a, b = rng.random((n, k), dtype=np.float32), rng.random((m, k), dtype=np.float32)
    work = Workload(f"SDDMM {name}, {k} columns", tolerance=1e-4)

    def given(prepare):
        y = np.empty(n, np.float32)
        call = prepare(y)
        return call, lambda: y

    schedule, sizes = rows_or("sddmm_vectors", "sddmm_rows"), {"k": k}
    work.add("taffeta", lambda: given(lambda y: entry("sddmm", schedule, sizes.items()).bind([csr(s), a, b], [y])))
    work.add("by hand", lambda: given(lambda y: by_hand("sddmm", n, k, s.indptr, s.indices, s.data, a, b, y)))
    rows = np.repeat(np.arange(n), np.diff(s.indptr))

    def torch():
        torch = torch_()
        t, u, v = torch_matrix(s), torch.from_numpy(a), torch.from_numpy(b).t()
        call = lambda: torch.sparse.sampled_addmm(t, u, v, beta=0.0)
        # It gives the products alone, where there is an element.
        return call, lambda: np.bincount(rows, call().values().numpy() * s.data, n)

    work.add("torch", torch)

    def scipy():
        call = lambda: np.bincount(rows, np.einsum("ek,ek->e", a[rows], b[s.indices]) * s.data, n)
        return call, call

    return work.add("numpy", scipy)


def mttkrp(name, indices, values, shape, r=32):
    rng = np.random.default_rng(0)
    b, c = rng.random((shape[1], r)), rng.random((shape[2], r))
    order = np.lexsort(indices.T[::-1])
    i, v = indices[order], values[order]
    new0 = np.concatenate([[True], i[1:, 0] != i[:-1, 0]])
    new1 = new0 | np.concatenate([[True], i[1:, 1] != i[:-1, 1]])
    at0, at1 = np.flatnonzero(new0), np.flatnonzero(new1)
    short = lambda x: np.ascontiguousarray(x, np.int32)
    crd0, crd1, crd2 = short(i[at0, 0]), short(i[at1, 1]), short(i[:, 2])
    pos0, pos1 = short([0, len(at0)]), short(np.append(np.searchsorted(at1, at0), len(at1)))
    pos2 = short(np.append(at1, len(v)))
    stored = Stored(shape, [("compressed", [pos0, crd0]), ("compressed", [pos1, crd1]), ("compressed", [pos2, crd2])], v)
    work = Workload(f"MTTKRP {name}, {r} columns")

    def given(prepare):
        d = np.empty((shape[0], r))
        call = prepare(d)
        return call, lambda: d

    fused = entry("mttkrp", "mttkrp_vectors", [("r", r)])
    work.add("taffeta", lambda: given(lambda d: fused.bind([stored, b, c], [d])))
    lists = crd0, pos1, crd1, pos2, crd2, v
    work.add("by hand", lambda: given(lambda d: by_hand("mttkrp", shape[0], r, len(crd0), *lists, b, c, d)))

    def torch():
        torch = torch_()
        wide = [torch.from_numpy(x.astype(np.int64)) for x in i.T]
        e, tb, tc = torch.from_numpy(v)[:, None], torch.from_numpy(b), torch.from_numpy(c)
        call = lambda: torch.zeros(shape[0], r, dtype=torch.float64).index_add_(0, wide[0], e * tb[wide[1]] * tc[wide[2]])
        return call, lambda: call().numpy()

    work.add("torch", torch)
    # The matrix of the tensor's first dimension times what the two matrices make (Khatri and Rao), where it is needed.
    rows = sp.csr_matrix((v, np.arange(len(v)), np.searchsorted(i[:, 0], np.arange(shape[0] + 1))), (shape[0], len(v)))
    scipy = lambda: rows @ (b[i[:, 1]] * c[i[:, 2]])
    return work.add("scipy", lambda: (scipy, scipy))


def triangles(name, a):
    """Of an undirected graph: each edge from the larger to the smaller node."""
    lower = plain(sp.tril(a, -1), np.float64)
    lower.data[:] = 1
    work = Workload(f"triangles {name}")

    def taffeta(kernel):
        found = np.zeros(())
        return entry(kernel, None).bind([csr(lower)], [found]), lambda: found

    work.add("taffeta", lambda: taffeta("triangles"))
    arguments = [ctypes.c_int64(lower.shape[0]), *map(address, (lower.indptr, lower.indices, lower.data))]
    hand = lambda: BY_HAND.triangles(*arguments)
    work.add("by hand", lambda: (hand, lambda: np.array(hand())))
    scipy = lambda: lower.multiply(lower @ lower).sum()
    return work.add("scipy", lambda: (scipy, lambda: np.array(scipy())))


def gallops(name, a):
    """Of all edges in both directions, so that rows of few elements meet rows of many: gallop against merge."""
    work = Workload(f"gallop {name}", against="taffeta, merge", bar=1.0)

    def taffeta(kernel):
        found = np.zeros(())
        return entry(kernel, None).bind([csr(a)], [found]), lambda: found

    work.add("taffeta", lambda: taffeta("triangles_gallop"))
    return work.add("taffeta, merge", lambda: taffeta("triangles"))


def pictures(name, dense):
    """All pairs of pictures: blocks or runs, whichever suits them, against the list of pixels."""
    n, m = dense.shape
    file = os.path.join(HERE, "..", "..", "examples", "sparse", "pictures.ft")
    best, other = ("vbl", "rle") if name == "digits" else ("rle", "vbl")
    stored = {"vbl": blocks(dense), "rle": runs(dense), "list": csr(plain(sp.csr_matrix(dense), np.float64))}
    work = Workload(f"distances of {n} {name}", against="taffeta, list", bar=1.0, tolerance=1e-9)

    def taffeta(kind):
        d = np.empty((n, n))
        return entry(f"{file}:distances_{kind}", None).bind([stored[kind]], [d]), lambda: d

    work.add("taffeta", lambda: taffeta(best))
    work.add("taffeta, list", lambda: taffeta("list"))
    work.add(f"taffeta, {other}", lambda: taffeta(other))

    def numpy():
        square = np.einsum("kp,kp->k", dense, dense)
        return np.sqrt(np.maximum(square[:, None] + square[None, :] - 2 * dense @ dense.T, 0))

    return work.add("numpy, dense", lambda: (numpy, numpy))


def blocks(dense):
    """The rows in blocks of consecutive elements."""
    ends, offsets, starts, values = [], [0], [0], []
    for row in dense:
        edge = np.flatnonzero(np.diff(np.concatenate([[0], row != 0, [0]]).astype(np.int8)))
        for p, q in edge.reshape(-1, 2):
            ends.append(q)
            offsets.append(offsets[-1] + q - p)
            values.append(row[p:q])
        starts.append(len(ends))
    lists = [np.array(x, np.int32) for x in (starts, ends, offsets)]
    return Stored(dense.shape, [("dense", []), ("blocklist", lists)], np.concatenate(values))


def runs(dense):
    """The rows in runs of equal elements."""
    ends, starts, values = [], [0], []
    for row in dense:
        last = np.append(np.flatnonzero(np.diff(row)), len(row) - 1)
        ends.append(last + 1)
        values.append(row[last])
        starts.append(starts[-1] + len(last))
    lists = [np.array(starts, np.int32), np.concatenate(ends).astype(np.int32)]
    return Stored(dense.shape, [("dense", []), ("runlength", lists)], np.concatenate(values))


def plain(a, dtype):
    """CSR as everyone takes it: sorted, summed, indices of 32 bits."""
    a = sp.csr_matrix(a).astype(dtype)
    a.sum_duplicates()
    a.indptr, a.indices = a.indptr.astype(np.int32), a.indices.astype(np.int32)
    return a


def made(n, m, nnz, dtype):
    rng = np.random.default_rng(0)
    return plain(sp.coo_matrix((rng.random(nnz), (rng.integers(0, n, nnz), rng.integers(0, m, nnz))), (n, m)), dtype)


def band(n, width):
    rng = np.random.default_rng(0)
    offsets = range(-width, width + 1)
    return plain(sp.diags([rng.random(n - abs(k)) for k in offsets], offsets), np.float64)


def skewed(n, m, power=2):
    """A graph some of whose nodes have far more edges than others, as workloads.md makes it with the power 2."""
    rng = np.random.default_rng(0)
    return undirected((n * rng.random(m) ** power).astype(np.int64), rng.integers(0, n, m))


def undirected(u, v):
    n = int(max(u.max(), v.max())) + 1
    apart = u != v
    a = sp.csr_matrix((np.ones(apart.sum()), (u[apart], v[apart])), (n, n))
    return plain((a + a.T) != 0, np.float64)


def published():
    """Matrices, graphs, tensors and pictures by name."""
    folder = os.environ.get("TAFFETA_DATA")
    matrices, graphs, tensors, drawings = {}, {}, {}, {}
    if not folder:
        print("TAFFETA_DATA is not set: made data alone")
        return matrices, graphs, tensors, drawings
    data = pathlib.Path(folder)
    for path in sorted((data / "matrices").glob("*.mtx")):
        a = mmread(path)
        if sp.issparse(a) and not np.iscomplexobj(a):
            matrices[path.stem] = plain(a, np.float64)
    for path in sorted((data / "graphs").iterdir()):
        if path.name in ("karate.mtx", "cora_edges.mtx"):
            graphs[path.stem] = plain(mmread(path), np.float64)
        elif path.name.startswith("ca-"):
            graphs[path.stem] = undirected(*np.unique(np.loadtxt(path, dtype=np.int64), return_inverse=True)[1].reshape(-1, 2).T)
        elif path.name == "facebook-combined.csv":
            graphs[path.stem] = undirected(*(np.loadtxt(path, dtype=np.int64, delimiter=",", skiprows=1, usecols=(0, 1)).T - 1))
    sys.path.append(os.path.join(HERE, "..", "..", "tests", "numpy"))
    import sparse_examples as examples

    examples.DATA = data
    for name in ("openflights_routes", "parti_3D_12031"):
        tensors[name] = examples.frostt(data / "tensors" / f"{name}.tns")
    drawings["digits"] = examples.digits(200).astype(np.float64)
    drawings["line drawings"] = np.stack([d.ravel() for d in examples.drawn(200)]).astype(np.float64)
    return matrices, graphs, tensors, drawings


def workloads():
    matrices, graphs, tensors, drawings = published()
    made_ones = {"random 200k, 4M": lambda: made(200_000, 200_000, 4_000_000, np.float64), "band 200k, width 10": lambda: band(200_000, 10)}
    ready = {name: (lambda a=a: a) for name, a in (matrices | graphs).items()}
    for name, a in (made_ones | ready).items():
        yield f"SpMV {name}", lambda name=name, a=a: spmv(name, a())
    wide = {"random 50k, 500k": lambda: made(50_000, 50_000, 500_000, np.float32)}
    wide |= {name: (lambda a=a: plain(a, np.float32)) for name, a in (matrices | graphs).items()}
    for kind, race in (("SpMM", spmm), ("SDDMM", sddmm)):
        for name, a in wide.items():
            for k in (32, 128):
                yield f"{kind} {name}, {k} columns", lambda race=race, name=name, a=a, k=k: race(name, a(), k)
    if OPTIONS.threads > 1:
        return
    rng = np.random.default_rng(0)
    indices = np.unique(rng.integers(0, 1000, (1_000_000, 3)), axis=0)
    tensors["random 1000^3, 1M"] = indices, rng.random(len(indices)), (1000, 1000, 1000)
    for name, (indices, values, shape) in tensors.items():
        yield f"MTTKRP {name}", lambda name=name, given=(indices, values, shape): mttkrp(name, *given)
    for name, a in (graphs | {"skewed 20k, 300k": skewed(20_000, 300_000)}).items():
        yield f"triangles {name}", lambda name=name, a=a: triangles(name, a)
    for power in (2, 8):
        name = f"skewed 20k, 300k, power {power}"
        yield f"gallop {name}", lambda name=name, power=power: gallops(name, skewed(20_000, 300_000, power))
    for name, dense in drawings.items():
        yield f"distances {name}", lambda name=name, dense=dense: pictures(name, dense)
    yield from pairs.workloads(Workload)


def seconds(call, calls):
    begin = clock()
    for _ in range(calls):
        call()
    return (clock() - begin) / calls


def differ(a, b):
    if np.shape(a) != np.shape(b):
        return math.inf
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.max(np.abs(a - b), initial=0) / max(float(np.max(np.abs(b), initial=0)), 1e-30))


def race(work):
    row = {"workload": work.name, "threads": OPTIONS.threads, "systems": {}, "left_out": {}}
    # (Who gives a result keeps the array that it is written into.)
    calls, counts, results = {}, {}, {}
    slice_s = 0.002 if OPTIONS.quick else 0.01
    expected = None
    for system, prepare in work.systems.items():
        try:
            call, results[system] = prepare()
            call()
        except Exception as e:  # noqa: BLE001 (whatever a peer says, it is left out with it)
            row["left_out"][system] = (str(e).splitlines() or [type(e).__name__])[0][:160]
            continue
        found = np.array(results[system]())
        expected = found if expected is None else expected
        apart = differ(found, expected)
        row["systems"][system] = {"differs": apart}
        if not apart <= work.tolerance:
            row["systems"][system]["wrong"] = True
            continue
        for _ in range(2):
            call()
        once = min(seconds(call, 1) for _ in range(3))
        calls[system], counts[system] = call, max(1, min(1000, int(slice_s / max(once, 1e-6))))
    if "taffeta" not in calls:
        return row | {"error": row["left_out"].get("taffeta", "wrong results")}
    names, rounds = list(calls), []
    for k in range(OPTIONS.pairs):
        first = k % len(names)
        rounds.append({s: seconds(calls[s], counts[s]) for s in names[first:] + names[:first]})
    for system in names:
        row["systems"][system]["seconds"] = statistics.median(r[system] for r in rounds)
    others = [s for s in names if s != "taffeta" and (s == work.against if work.against else not s.startswith("taffeta"))]
    best = min(others, key=lambda s: row["systems"][s]["seconds"])
    for system in [s for s in names if s == "taffeta" or s == "taffeta, band"]:
        ratio, (low, high) = interval([r[best] / r[system] for r in rounds])
        verdict = "holds" if low >= work.bar else "fails" if high < work.bar else "open"
        row["systems"][system] |= {"peer": best, "bar": work.bar, "ratio": ratio, "interval": [low, high], "verdict": verdict}
    return row


def show(row):
    if "error" in row:
        return f"{row['workload']:<44} not run: {row['error']}"
    lines, name = [], row["workload"]
    for system, v in row["systems"].items():
        if "ratio" in v:
            low, high = v["interval"]
            what = name if system == "taffeta" else "   in a band"
            lines.append(f"{what:<44} {v['ratio']:6.2f}x [{low:.2f}, {high:.2f}] of {v['peer']:<13} bar {v['bar']:.2f} {v['verdict']}")
    times = (f"{s} {1e3 * v['seconds']:.4g}" if "seconds" in v else f"{s} WRONG by {v['differs']:.1g}" for s, v in row["systems"].items())
    return "\n".join(lines) + f"\n      ms: {', '.join(times)}"


def main():
    rows = []
    print(f"structured tensors on {OPTIONS.threads} thread{'s' if OPTIONS.threads > 1 else ''}", flush=True)
    for name, make in workloads():
        if OPTIONS.only not in name:
            continue
        rows.append(race(make()))
        print(show(rows[-1]), flush=True)
        for system, reason in rows[-1]["left_out"].items():
            print(f"      {system} is left out: {reason}", flush=True)
    verdicts = [v["verdict"] for r in rows for s, v in r["systems"].items() if s == "taffeta" and "verdict" in v]
    print(", ".join(f"{verdicts.count(v)} {v}" for v in ("holds", "open", "fails")) + f", of {len(rows)}")
    out = OPTIONS.out or os.path.join(HERE, "..", "..", "target", "bench", f"sparse-{OPTIONS.threads}.json")
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w") as file:
        json.dump(rows, file, indent=1)


main()
