"""Matrices, graphs, tensors and pictures: published and made ones."""

import os
import pathlib
import sys

import numpy as np
import scipy.sparse as sp
from scipy.io import mmread

from .workload import HERE


def plain(a, dtype=np.float64):
    """Converts to CSR as everyone takes it: sorted, summed, indices of 32 bits."""
    a = sp.csr_matrix(a).astype(dtype)
    a.sum_duplicates()
    a.indptr, a.indices = a.indptr.astype(np.int32), a.indices.astype(np.int32)
    return a


def made(n, m, nnz, dtype=np.float64):
    rng = np.random.default_rng(0)
    return plain(sp.coo_matrix((rng.random(nnz), (rng.integers(0, n, nnz), rng.integers(0, m, nnz))), (n, m)), dtype)


def diagonals(n, offsets):
    rng = np.random.default_rng(0)
    return plain(sp.diags([rng.random(n - abs(k)) for k in offsets], offsets))


def band(n, width):
    return diagonals(n, range(-width, width + 1))


def of_blocks(n, size, per_row):
    """Makes a matrix of `n` blocks each way, with about `per_row` dense blocks in each row of blocks."""
    rng = np.random.default_rng(0)
    places = made(n, n, n * per_row)
    places.data = rng.random(places.nnz)
    return plain(sp.kron(places, rng.random((size, size)), "csr"))


def skewed(n, m, power=2):
    """Makes a graph some of whose nodes have far more edges than others, as workloads.md does with the power 2."""
    rng = np.random.default_rng(0)
    return undirected((n * rng.random(m) ** power).astype(np.int64), rng.integers(0, n, m))


def undirected(u, v):
    n = int(max(u.max(), v.max())) + 1
    apart = u != v
    a = sp.csr_matrix((np.ones(apart.sum()), (u[apart], v[apart])), (n, n))
    return plain((a + a.T) != 0)


def tensor(n, m):
    """Makes about `m` random elements of an n x n x n tensor: indices in order, elements and shape."""
    rng = np.random.default_rng(0)
    indices = np.unique(rng.integers(0, n, (m, 3)), axis=0)
    return indices, rng.random(len(indices)), (n, n, n)


def folder():
    found = os.environ.get("TAFFETA_DATA")
    return found and pathlib.Path(found)


def matrices():
    """Reads the published matrices, by name."""
    found = {}
    for path in sorted((folder() / "matrices").glob("*.mtx")) if folder() else []:
        a = mmread(path)
        if sp.issparse(a) and not np.iscomplexobj(a):
            found[path.stem] = plain(a)
    return found


def graphs():
    found = {}
    for path in sorted((folder() / "graphs").iterdir()) if folder() else []:
        if path.name in ("karate.mtx", "cora_edges.mtx"):
            found[path.stem] = plain(mmread(path))
        elif path.name.startswith("ca-"):
            found[path.stem] = undirected(
                *np.unique(np.loadtxt(path, dtype=np.int64), return_inverse=True)[1].reshape(-1, 2).T
            )
        elif path.name == "facebook-combined.csv":
            found[path.stem] = undirected(
                *(np.loadtxt(path, dtype=np.int64, delimiter=",", skiprows=1, usecols=(0, 1)).T - 1)
            )
    return found


def examples():
    """Returns the module by which the tests read published tensors and pictures."""
    sys.path.append(os.path.join(HERE, "..", "..", "..", "tests", "numpy"))
    import sparse_examples

    sparse_examples.DATA = folder()
    return sparse_examples


def tensors():
    found = {}
    for name in ("openflights_routes", "parti_3D_12031") if folder() else ():
        indices, values, shape = examples().frostt(folder() / "tensors" / f"{name}.tns")
        order = np.lexsort(indices.T[::-1])
        found[name] = indices[order], values[order], shape
    return found


def drawings():
    if not folder():
        return {}
    lines = np.stack([d.ravel() for d in examples().drawn(200)]).astype(np.float64)
    return {"digits": examples().digits(200).astype(np.float64), "line drawings": lines}
