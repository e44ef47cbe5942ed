"""SpMV, SpMM, SDDMM and MTTKRP on every matrix, graph and tensor: by `auto`, by a schedule by hand, and by peers."""

import numpy as np
import scipy.sparse as sp

from . import matrices
from .options import rows_or
from .peers import GraphBLAS, in_c, mkl_mm, mkl_mv, torch_, torch_matrix
from .stored import banded, csf, csr
from .workload import Bar, Workload, entry

WIDTHS = (32, 128)


def spmv(name, a):
    n, m = a.shape
    x = np.random.default_rng(0).random(m)
    band = banded(a)
    work = Workload(name, (Bar(), Bar("taffeta, by hand")) + ((Bar("taffeta, band"),) if band else ()))
    add = work.into(n)
    add("taffeta", lambda y: entry("products.ft:spmv").bind([csr(a), x], [y]))
    add("taffeta, by hand", lambda y: entry("products.ft:spmv", rows_or("vectors", "rows")).bind([csr(a), x], [y]))
    add("C by hand", lambda y: in_c("spmv", n, a.indptr, a.indices, a.data, x, y))
    add("mkl", lambda y: mkl_mv(a, x, y))
    work.add("scipy", lambda: (lambda: a @ x, lambda: a @ x))

    def torch():
        t, v = torch_matrix(a), torch_().from_numpy(x)
        return lambda: t @ v, lambda: (t @ v).numpy()

    work.add("torch", torch)

    def graphblas():
        g = GraphBLAS()
        y, given = g.gb.Vector(float, n), (g.matrix(a), g.gb.Vector.from_dense(x))
        call = g.call("GrB_mxv", y, None, "GrB_PLUS_TIMES_SEMIRING_FP64", *given)
        return call, lambda: y.to_dense(0.0)

    work.add("graphblas", graphblas)
    if band:
        schedule = rows_or("band_vectors", "band_rows")
        add("taffeta, band", lambda y: entry("products.ft:spmv_band", schedule).bind([band, x], [y]))
    return work


def spmm(name, a, k):
    n, m = a.shape
    b = np.random.default_rng(0).random((m, k), dtype=np.float32)
    work = Workload(name, (Bar(), Bar("taffeta, by hand")), 1e-4)
    add = work.into((n, k), np.float32)
    schedule = rows_or("spmm_vectors", "spmm_rows")
    add("taffeta", lambda c: entry("products.ft:spmm", k=k).bind([csr(a), b], [c]))
    add("taffeta, by hand", lambda c: entry("products.ft:spmm_by_rows", schedule, k=k).bind([csr(a), b], [c]))
    add("C by hand", lambda c: in_c("spmm", n, k, a.indptr, a.indices, a.data, b, c))
    add("mkl", lambda c: mkl_mm(a, b, c))
    work.add("scipy", lambda: (lambda: a @ b, lambda: a @ b))

    def torch():
        t, v = torch_matrix(a), torch_().from_numpy(b)
        return lambda: t @ v, lambda: (t @ v).numpy()

    work.add("torch", torch)

    def graphblas():
        g = GraphBLAS()
        c, given = g.gb.Matrix("FP32", n, k), (g.matrix(a), g.matrix(b))
        return g.call("GrB_mxm", c, None, "GrB_PLUS_TIMES_SEMIRING_FP32", *given), lambda: c.to_dense(0.0)

    return work.add("graphblas", graphblas)


def sampled(s, k):
    rng = np.random.default_rng(0)
    n, m = s.shape
    return (
        rng.random((n, k), dtype=np.float32),
        rng.random((m, k), dtype=np.float32),
        np.repeat(np.arange(n), np.diff(s.indptr)),
    )


def sddmm(name, s, k):
    """Makes the products at the elements of S, times these elements."""
    n, m = s.shape
    a, b, rows = sampled(s, k)
    work = Workload(name, (Bar(), Bar("taffeta, by hand")), 1e-4)
    add = work.into(s.nnz, np.float32)
    schedule = rows_or("sddmm_vectors", "sddmm_rows")
    add("taffeta", lambda p: entry("products.ft:sddmm", k=k).bind([csr(s), a, b], [p]))
    add("taffeta, by hand", lambda p: entry("products.ft:sddmm", schedule, k=k).bind([csr(s), a, b], [p]))
    add("C by hand", lambda p: in_c("sddmm", n, k, s.indptr, s.indices, s.data, a, b, p))

    def torch():
        torch = torch_()
        t, u, v = torch_matrix(s), torch.from_numpy(a), torch.from_numpy(b).t()
        call = lambda: torch.sparse.sampled_addmm(t, u, v, beta=0.0)
        # PyTorch leaves out the factor S, which would be one more pass.
        return call, lambda: call().values().numpy() * s.data

    work.add("torch", torch)

    def graphblas():
        g = GraphBLAS()
        p, given, left, right = g.gb.Matrix("FP32", n, m), g.matrix(s), g.matrix(a), g.matrix(b)
        product = g.call("GrB_mxm", p, given, "GrB_PLUS_TIMES_SEMIRING_FP32", left, right, how="GrB_DESC_RST1")
        # GraphBLAS takes S as a mask alone, and leaves out the factor too.
        return product, lambda: g.gb.io.to_scipy_sparse(p).data * s.data

    work.add("graphblas", graphblas)
    numpy = lambda: np.einsum("ek,ek->e", a[rows], b[s.indices]) * s.data
    return work.add("numpy", lambda: (numpy, numpy))


def sddmm_sums(name, s, k):
    """Makes the sums of the rows of sampled products."""
    n, m = s.shape
    a, b, rows = sampled(s, k)
    work = Workload(name, (Bar(), Bar("taffeta, by hand")), 1e-4)
    add = work.into(n, np.float32)
    schedule = rows_or("sums_vectors", "sums_rows")
    add("taffeta", lambda y: entry("products.ft:sddmm_sums", k=k).bind([csr(s), a, b], [y]))
    add("taffeta, by hand", lambda y: entry("products.ft:sddmm_sums", schedule, k=k).bind([csr(s), a, b], [y]))
    add("C by hand", lambda y: in_c("sddmm_sums", n, k, s.indptr, s.indices, s.data, a, b, y))

    def torch():
        torch = torch_()
        t, u, v = torch_matrix(s), torch.from_numpy(a), torch.from_numpy(b).t()
        call = lambda: torch.sparse.sampled_addmm(t, u, v, beta=0.0)
        # PyTorch gives the products alone.
        return call, lambda: np.bincount(rows, call().values().numpy() * s.data, n)

    work.add("torch", torch)
    numpy = lambda: np.bincount(rows, np.einsum("ek,ek->e", a[rows], b[s.indices]) * s.data, n)
    return work.add("numpy", lambda: (numpy, numpy))


def mttkrp(name, i, v, shape, r=32):
    """Makes MTTKRP of a tensor by its indices `i`, which are in order, and elements `v`."""
    rng = np.random.default_rng(0)
    b, c = rng.random((shape[1], r)), rng.random((shape[2], r))
    stored, arrays = csf(i, v, shape)
    work = Workload(name, (Bar(), Bar("taffeta, by hand")))
    add = work.into((shape[0], r))
    schedule = rows_or("mttkrp_vectors", "mttkrp_rows")
    add("taffeta", lambda d: entry("products.ft:mttkrp", r=r).bind([stored, b, c], [d]))
    add("taffeta, by hand", lambda d: entry("products.ft:mttkrp", schedule, r=r).bind([stored, b, c], [d]))
    add("C by hand", lambda d: in_c("mttkrp", shape[0], r, *arrays, b, c, d))

    def torch():
        torch = torch_()
        wide = [torch.from_numpy(x.astype(np.int64)) for x in i.T]
        e, tb, tc = torch.from_numpy(v)[:, None], torch.from_numpy(b), torch.from_numpy(c)
        call = lambda: torch.zeros(shape[0], r, dtype=torch.float64).index_add_(
            0, wide[0], e * tb[wide[1]] * tc[wide[2]]
        )
        return call, lambda: call().numpy()

    work.add("torch", torch)
    # The tensor as a matrix by its first dimension, times the Khatri-Rao product of the two matrices at needed rows.
    rows = sp.csr_matrix((v, np.arange(len(v)), np.searchsorted(i[:, 0], np.arange(shape[0] + 1))), (shape[0], len(v)))
    scipy = lambda: rows @ (b[i[:, 1]] * c[i[:, 2]])
    return work.add("scipy", lambda: (scipy, scipy))


def workloads():
    given = matrices.matrices() | matrices.graphs()
    made = {
        "random 200k, 4M": lambda: matrices.made(200_000, 200_000, 4_000_000),
        "band 200k, width 10": lambda: matrices.band(200_000, 10),
    }
    for name, a in (made | {name: (lambda a=a: a) for name, a in given.items()}).items():
        yield f"SpMV {name}", lambda name, a=a: spmv(name, a())
    wide = {"random 50k, 500k": lambda: matrices.made(50_000, 50_000, 500_000, np.float32)}
    wide |= {name: (lambda a=a: matrices.plain(a, np.float32)) for name, a in given.items()}
    for kind, race in (("SpMM", spmm), ("SDDMM", sddmm), ("SDDMM, sums,", sddmm_sums)):
        for name, a in wide.items():
            for k in WIDTHS:
                yield f"{kind} {name}, {k} columns", lambda name, race=race, a=a, k=k: race(name, a(), k)
    tensors = matrices.tensors() | {"random 1000^3, 1M": matrices.tensor(1000, 1_000_000)}
    for name, tensor in tensors.items():
        yield f"MTTKRP {name}", lambda name, tensor=tensor: mttkrp(name, *tensor)
