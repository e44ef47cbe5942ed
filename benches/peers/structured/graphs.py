"""Triangles, by merges and by searches, on one thread."""

import ctypes

import numpy as np
import scipy.sparse as sp

from . import matrices
from .options import THREADS
from .peers import LOOPS, GraphBLAS, address
from .stored import csr
from .workload import Bar, Workload, entry

GALLOP = "taffeta, gallop"
LOOPS.triangles.restype = ctypes.c_double


def triangles(name, a, bars):
    """Makes the counts of triangles of the edges of `a`, which lead one way or both."""
    work = Workload(name, bars)

    def taffeta(kernel, schedule):
        found = np.zeros(())
        return entry(f"graphs.ft:{kernel}", schedule).bind([csr(a)], [found]), lambda: found

    work.add("taffeta", lambda: taffeta("triangles", "auto"))
    work.add("taffeta, merge", lambda: taffeta("triangles", None))
    work.add(GALLOP, lambda: taffeta("triangles_gallop", "auto"))
    work.add("taffeta, scattered", lambda: taffeta("triangles_scattered", "auto"))
    arguments = [ctypes.c_int64(a.shape[0]), *map(address, (a.indptr, a.indices, a.data))]
    in_c = lambda: LOOPS.triangles(*arguments)
    work.add("C by hand", lambda: (in_c, lambda: np.array(in_c())))

    def graphblas(second, how):
        """Counts the common neighbours of both ends of an edge, at the edge."""
        g = GraphBLAS()
        edges = g.matrix(a).dup(dtype="INT64")
        pairs, found = g.gb.Matrix("INT64", *a.shape), g.ffi.new("int64_t *")
        product = g.call("GrB_mxm", pairs, edges, "GxB_PLUS_PAIR_INT64", edges, edges, how=how)
        total = lambda: g.lib.GrB_Matrix_reduce_INT64(
            found, g.ffi.NULL, g.lib.GrB_PLUS_MONOID_INT64, pairs._carg, g.ffi.NULL
        )

        def call():
            product()
            total()

        return call, lambda: np.array(float(found[0]))

    # Inner products of rows, and sums of rows (for which the edges are as good as their transposes).
    work.add("graphblas, dot", lambda: graphblas(True, "GrB_DESC_RST1"))
    work.add("graphblas, rows", lambda: graphblas(False, "GrB_DESC_RS"))
    scipy = lambda: a.multiply(a @ a).sum()
    return work.add("scipy", lambda: (scipy, lambda: np.array(scipy())))


def one_way(a, larger_first=True):
    """Keeps each edge once, from the larger to the smaller node or the other way round."""
    half = matrices.plain(sp.tril(a, -1) if larger_first else sp.triu(a, 1))
    half.data[:] = 1
    return half


def workloads():
    if THREADS > 1:
        return
    blas = "graphblas, dot", "graphblas, rows"
    for name, a in (matrices.graphs() | {"skewed 20k, 300k": matrices.skewed(20_000, 300_000)}).items():
        yield f"triangles {name}", lambda name, a=a: triangles(name, one_way(a), (Bar(),))
    gallops = Bar(GALLOP, ("taffeta, merge",), 2.0), Bar(GALLOP, blas), Bar("taffeta, scattered", blas)
    for power in (2, 4, 8):
        a = matrices.skewed(20_000, 300_000, power)
        # (The smaller the number of a node, the more edges it is likely to have.)
        for way, edges in (("both ways", a), ("to hubs", one_way(a)), ("from hubs", one_way(a, False))):
            name = f"gallop skewed 20k, 300k, power {power}, {way}"
            yield name, lambda name, edges=edges: triangles(name, edges, gallops)
