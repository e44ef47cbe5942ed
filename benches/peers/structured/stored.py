"""Matrices, tensors and pictures in Taffeta's formats."""

import numpy as np

from taffeta import Stored


def short(values):
    return np.ascontiguousarray(values, np.int32)


def csr(a):
    return Stored(a.shape, [("dense", []), ("compressed", [a.indptr, a.indices])], a.data)


def csc(a):
    """Stores a matrix in SciPy's CSC."""
    return csr(a)


def vector(n, indices, values):
    return Stored((n,), [("compressed", [short([0, len(indices)]), short(indices)])], values)


def bcsr(a):
    """Stores a matrix in SciPy's BSR."""
    return Stored(
        a.shape, [("dense", []), ("compressed", [a.indptr, a.indices]), ("dense", []), ("dense", [])], a.data.ravel()
    )


def dia(a):
    """Stores the diagonals of a matrix in CSR, each with a place for every row."""
    n = a.shape[0]
    rows = np.repeat(np.arange(n), np.diff(a.indptr))
    listed, at = np.unique(a.indices.astype(np.int64) - rows, return_inverse=True)
    values = np.zeros((len(listed), n))
    values[at, rows] = a.data
    # Stored coordinates count from the least possible diagonal.
    return Stored(a.shape, [("squeezed", [short(listed + n - 1)]), ("range", []), ("offset", [])], values.ravel())


def banded(a):
    """Stores the elements of each row as one block, or returns None if at least half of the blocks would be zeros."""
    n = a.shape[0]
    full = np.diff(a.indptr) > 0
    start, stop = np.zeros(n, np.int32), np.zeros(n, np.int32)
    start[full] = np.minimum.reduceat(a.indices, a.indptr[:-1][full]) if full.any() else 0
    stop[full] = np.maximum.reduceat(a.indices, a.indptr[:-1][full]) + 1 if full.any() else 0
    pos = np.concatenate([[0], np.cumsum(stop.astype(np.int64) - start)])
    if pos[-1] >= 2 * a.nnz:
        return None
    values = np.zeros(pos[-1])
    rows = np.repeat(np.arange(n), np.diff(a.indptr))
    values[pos[rows] + a.indices - start[rows]] = a.data
    return Stored(a.shape, [("dense", []), ("banded", [short(pos), start])], values)


def csf(indices, values, shape):
    """Stores a tensor of three dimensions from elements in order; returns also its arrays, as C takes them."""
    new0 = np.concatenate([[True], indices[1:, 0] != indices[:-1, 0]])
    new1 = new0 | np.concatenate([[True], indices[1:, 1] != indices[:-1, 1]])
    at0, at1 = np.flatnonzero(new0), np.flatnonzero(new1)
    crd = [short(indices[at0, 0]), short(indices[at1, 1]), short(indices[:, 2])]
    pos = [
        short([0, len(at0)]),
        short(np.append(np.searchsorted(at1, at0), len(at1))),
        short(np.append(at1, len(values))),
    ]
    levels = [("compressed", [p, c]) for p, c in zip(pos, crd)]
    return Stored(shape, levels, values), [len(crd[0]), crd[0], pos[1], crd[1], pos[2], crd[2], values]


def blocks(dense):
    """Stores the rows in blocks of consecutive elements."""
    ends, offsets, starts, values = [], [0], [0], []
    for row in dense:
        edge = np.flatnonzero(np.diff(np.concatenate([[0], row != 0, [0]]).astype(np.int8)))
        for p, q in edge.reshape(-1, 2):
            ends.append(q)
            offsets.append(offsets[-1] + q - p)
            values.append(row[p:q])
        starts.append(len(ends))
    return Stored(
        dense.shape, [("dense", []), ("blocklist", [short(x) for x in (starts, ends, offsets)])], np.concatenate(values)
    )


def runs(dense):
    """Stores the rows in runs of equal elements."""
    ends, starts, values = [], [0], []
    for row in dense:
        last = np.append(np.flatnonzero(np.diff(row)), len(row) - 1)
        ends.append(last + 1)
        values.append(row[last])
        starts.append(starts[-1] + len(last))
    return Stored(
        dense.shape,
        [("dense", []), ("runlength", [short(starts), short(np.concatenate(ends))])],
        np.concatenate(values),
    )
