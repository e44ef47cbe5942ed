"""A sparse matrix times a sparse vector: the matrix's columns at the vector's elements are scattered.

The result is dense and cleared first, as TACO's is; SciPy's and GraphBLAS's results are sparse, and GraphBLAS need not
clear any.
"""

import numpy as np
import scipy.sparse as sp

from . import matrices
from .peers import GraphBLAS, in_c
from .stored import csc, short, vector
from .workload import Bar, Workload, entry

N, NONZEROS = 100_000, 1_000_000
# TACO's scatter as measured once (workloads.md), in ms: quoted, not raced.
TACO = {"0.1 %": 0.016, "1 %": 0.058}


def spmspv(name, a, share):
    n = a.shape[0]
    rng = np.random.default_rng(1)
    at = short(np.sort(rng.choice(n, int(n * share), replace=False)))
    x = rng.random(len(at))
    work = Workload(name, (Bar(), Bar("taffeta", ("graphblas",))))
    add = work.into(n)
    add("taffeta", lambda y: entry("products.ft:spmspv").bind([csc(a), vector(n, at, x)], [y]))
    add("C by hand", lambda y: in_c("spmspv", n, a.indptr, a.indices, a.data, len(at), at, x, y))
    column = sp.csc_matrix((x, at, np.array([0, len(at)])), (n, 1))
    work.add("scipy", lambda: (lambda: a @ column, lambda: (a @ column).toarray().ravel()))

    def graphblas():
        g = GraphBLAS()
        matrix = g.matrix(a)
        matrix.ss.config["format"] = "by_col"
        y, sparse = g.gb.Vector(float, n), g.gb.Vector.from_coo(at, x, size=n)
        call = g.call("GrB_mxv", y, None, "GrB_PLUS_TIMES_SEMIRING_FP64", matrix, sparse)
        return call, lambda: y.to_dense(0.0)

    return work.add("graphblas", graphblas)


def workloads():
    a = matrices.plain(matrices.made(N, N, NONZEROS).T)
    # (The rows of the transpose are the columns of the matrix.)
    a = sp.csc_matrix((a.data, a.indices, a.indptr), (N, N))
    for share, text in ((0.001, "0.1 %"), (0.01, "1 %"), (0.1, "10 %")):
        name = f"SpMSpV 100k, 1M, x {text} dense" + (f" (TACO: {TACO[text]} ms)" if text in TACO else "")
        yield name, lambda name, share=share: spmspv(name, a, share)
