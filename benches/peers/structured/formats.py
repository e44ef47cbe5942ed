"""Products of matrices with vectors by diagonals and by blocks, against lists of the same matrices."""

import numpy as np
import scipy.sparse as sp

from . import matrices
from .options import rows_or
from .peers import in_c, mkl_mv
from .stored import bcsr, csr, dia
from .workload import Bar, Workload, entry

LISTS = "taffeta, csr", "C by hand, csr", "mkl, csr"


def product(name, a, own, program, schedule, peers):
    """Makes a workload: `own` is the matrix `a` in the format; the bar is the fastest system of lists."""
    n, m = a.shape
    x = np.random.default_rng(0).random(m)
    work = Workload(name, (Bar("taffeta", LISTS, 1.0), Bar("taffeta, by hand", LISTS, 1.0), Bar("taffeta, by hand")))
    add = work.into(n)
    add("taffeta", lambda y: entry(f"formats.ft:{program}").bind([own, x], [y]))
    add("taffeta, by hand", lambda y: entry(f"formats.ft:{program}", schedule).bind([own, x], [y]))
    add("taffeta, csr", lambda y: entry("products.ft:spmv").bind([csr(a), x], [y]))
    add("C by hand, csr", lambda y: in_c("spmv", n, a.indptr, a.indices, a.data, x, y))
    add("mkl, csr", lambda y: mkl_mv(a, x, y))
    return peers(work, add, a, x)


def diagonals(name, a):
    def peers(work, add, a, x):
        d = sp.dia_matrix(a)
        return work.add("scipy, dia", lambda: (lambda: d @ x, lambda: d @ x))

    return product(name, a, dia(a), "diagonals", rows_or("along", "shared_along"), peers)


def blocks(name, a, size):
    b = sp.bsr_matrix(a, blocksize=(size, size))
    b.sort_indices()
    b.indptr, b.indices = b.indptr.astype(np.int32), b.indices.astype(np.int32)

    def peers(work, add, a, x):
        add("mkl, bsr", lambda y: mkl_mv(b, x, y))
        return work.add("scipy, bsr", lambda: (lambda: b @ x, lambda: b @ x))

    program = f"blocks_of_{size}"
    return product(name, a, bcsr(b), program, rows_or(f"by_{program}", f"shared_by_{program}"), peers)


def workloads():
    # A grid of 500 x 500 points, each with its four neighbours.
    banded = {"tridiagonal 1M": (1_000_000, (-1, 0, 1)), "grid of 500 x 500": (250_000, (-500, -1, 0, 1, 500))}
    banded["band 200k, width 10"] = 200_000, range(-10, 11)
    for name, (n, offsets) in banded.items():
        yield f"dia, {name}", lambda name, n=n, offsets=offsets: diagonals(name, matrices.diagonals(n, offsets))
    for size in (2, 4):
        for n in (2_000, 40_000):
            yield f"bcsr, {n} x {n} blocks of {size}, 8 a row", lambda name, n=n, size=size: blocks(
                name, matrices.of_blocks(n, size, 8), size
            )
