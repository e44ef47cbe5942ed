"""A filter of 11 x 11 over a picture at the pixels of a mask, against OpenCV's over all pixels.

OpenCV's time is `filter2D` alone: its result keeps the pixels outside of the mask.
"""

import numpy as np
import scipy.sparse as sp

from . import matrices
from .options import rows_or
from .peers import opencv
from .stored import csr
from .workload import Bar, Workload, entry

N, WIDTH = 1000, 11
DENSITIES = (0.01, 0.02, 0.05, 0.1, 0.2)


def inputs(density):
    rng = np.random.default_rng(0)
    mask = matrices.plain(sp.random(N, N, density, random_state=rng), np.float32)
    mask.data[:] = 1
    return mask, rng.random((N, N), dtype=np.float32), rng.standard_normal((WIDTH, WIDTH), dtype=np.float32)


def filtered(work, picture, w, mask):
    def prepare():
        cv2 = opencv()
        call = lambda: cv2.filter2D(picture, -1, w, borderType=cv2.BORDER_CONSTANT)
        rows = np.repeat(np.arange(N), np.diff(mask.indptr))
        return call, lambda: call()[rows, mask.indices] * mask.data

    return work.add("opencv, dense", prepare)


def masked(name, density):
    mask, x, w = inputs(density)
    bar = 1.0 if density <= 0.05 else None
    work = Workload(
        name, (Bar(ratio=bar), Bar("taffeta, by hand", ratio=bar), Bar("taffeta, columns", ratio=bar)), 1e-4
    )
    add = work.into(mask.nnz, np.float32)
    for system, schedule in (("taffeta", "auto"), ("taffeta, by hand", rows_or("vectors", "rows"))):
        add(
            system,
            lambda y, schedule=schedule: entry("convolution.ft:masked", schedule, k=WIDTH).bind([csr(mask), x, w], [y]),
        )
    add("taffeta, columns", lambda y: entry("convolution.ft:masked_columns", k=WIDTH).bind([csr(mask), x, w], [y]))
    return filtered(work, x, w, mask)


def of_sparse(name, density):
    """Makes the workload of a sparse picture, which is its own mask."""
    mask, x, w = inputs(density)
    rows = np.repeat(np.arange(N), np.diff(mask.indptr))
    a = sp.csr_matrix((x[rows, mask.indices], mask.indices, mask.indptr), mask.shape)
    bar = 1.0 if density <= 0.05 else None
    work = Workload(name, (Bar(ratio=bar), Bar("taffeta, permit", ratio=bar)), 1e-4)
    add = work.into(a.nnz, np.float32)
    add("taffeta", lambda y: entry("convolution.ft:sparse", k=WIDTH).bind([csr(a), w], [y]))
    add("taffeta, permit", lambda y: entry("convolution.ft:sparse_permitted", k=WIDTH).bind([csr(a), w], [y]))
    return filtered(work, a.toarray(), w, a)


def workloads():
    for kind, race in (("masked", masked), ("sparse", of_sparse)):
        for density in DENSITIES:
            yield f"convolution, {kind}, {100 * density:.0f} %", lambda name, race=race, density=density: race(
                name, density
            )
