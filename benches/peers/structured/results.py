"""Matrices that programs make: conversions, sums and products, against SciPy, MKL and loops in C."""

import ctypes

import numpy as np
import scipy.sparse as sp
from scipy.sparse import _sparsetools as kernels

from taffeta import Made, Stored

from . import matrices
from .peers import GENERAL, PLAIN, address, compiled, mkl, mkl_matrix
from .stored import csr
from .workload import Bar, Workload, entry

# Matrices with fewer elements spend their time in calls.
LEAST = 50_000
CONVERSIONS = None


def listed(a, order):
    """Stores the elements of a matrix as a list in this order."""
    rows = np.repeat(np.arange(a.shape[0], dtype=np.int32), np.diff(a.indptr))
    parts = [np.ascontiguousarray(part[order]) for part in (rows, a.indices, a.data)]
    crd = [np.array([0, a.nnz], np.int32), parts[0]]
    return Stored(a.shape, [("compressed", crd), ("singleton", [parts[1]])], parts[2]), parts


def values(stored):
    """Returns the numbers of a result, to be compared: those of all arrays, one after the other; of a matrix by rows
    those of the elements that are not 0, since peers leave these out."""
    if [kind for kind, _ in stored.levels] == ["dense", "compressed"]:
        indptr, indices = stored.levels[1][1]
        if len(indptr) == stored.shape[0] + 1:
            return flat(sp.csr_matrix((stored.values, indices, indptr), stored.shape))
    return np.concatenate([np.asarray(x, float) for _, all in stored.levels for x in all] + [stored.values])


def flat(a):
    a = a.copy()
    a.eliminate_zeros()
    return np.concatenate([a.indptr.astype(float), a.indices.astype(float), a.data])


def random_values(a):
    """Gives a matrix random elements, so that no sums of products cancel."""
    return sp.csr_matrix((np.random.default_rng(2).random(a.nnz), a.indices, a.indptr), a.shape)


def work(name, against, ratio, program, given, shape):
    """Makes a workload whose first system is the program."""
    found = Workload(name, (Bar("taffeta", (against,), ratio),))

    def ours():
        call = entry(f"results.ft:{program}").bind(given, [Made(shape)])
        return call, lambda: values(call.tell()[0])

    return found.add("taffeta", ours)


def positions(name, a):
    order = np.arange(a.nnz)
    given, (rows, columns, data) = listed(a, order)
    found = work(f"coo to csr in order, {name}", "scipy", 1 / 0.75, "positions", [given], a.shape)
    coo = sp.coo_matrix((data, (rows, columns)), a.shape)
    coo.has_canonical_format = True
    return found.add("scipy", lambda: (coo.tocsr, lambda: flat(coo.tocsr())))


def shuffled(name, a):
    order = np.random.default_rng(0).permutation(a.nnz)
    given, (rows, columns, data) = listed(a, order)
    ratio = 1 / 1.05 if a.nnz >= 1_900_000 else 1 / 0.7
    found = work(f"coo to csr shuffled, {name}", "scipy", ratio, "shuffled", [given], a.shape)
    coo = sp.coo_matrix((data, (rows, columns)), a.shape)
    coo.has_canonical_format = True

    def scipy():
        made = coo.tocsr()
        made.has_sorted_indices = False
        made.sort_indices()
        return made

    return found.add("scipy", lambda: (scipy, lambda: flat(scipy())))


def mkl_made(begin, a):
    """Prepares a call of MKL that makes a matrix; begins with a function that takes the new handle."""
    library = mkl()

    def call():
        made = ctypes.c_void_p()
        assert begin(library, ctypes.byref(made)) == 0
        library.mkl_sparse_destroy(made)

    return call


def columns(name, a):
    found = work(f"csr to csc, {name}", "scipy", 1 / 1.15, "columns", [csr(a)], a.shape)
    found.bars += (Bar("taffeta", ("mkl",), 1 / 0.9),)
    found.add("scipy", lambda: (a.tocsc, lambda: flat(a.tocsc())))

    def transposed():
        handle = mkl_matrix(a)
        # (Operation 11 transposes: the rows of the result are the columns.)
        call = mkl_made(lambda library, made: library.mkl_sparse_convert_csr(handle, 11, made), a)
        return call, lambda: flat(a.tocsc())

    return found.add("mkl", transposed)


def diagonals(name, a):
    found = work(f"csr to dia, {name}", "scipy", 1 / 0.25, "diagonals", [csr(a)], a.shape)
    n = a.shape[0]

    def told():
        d = a.todia()
        offsets = np.sort(d.offsets)
        rows = np.zeros((len(offsets), n))
        for k, offset in enumerate(offsets):
            along = a.diagonal(offset)
            rows[k, max(0, -offset) : max(0, -offset) + len(along)] = along
        return np.concatenate([offsets + n - 1.0, rows.ravel()])

    return found.add("scipy", lambda: (a.todia, told))


def slots(name, a):
    found = work(f"csr to ell, {name}", "C by hand", 1 / 1.1, "slots", [csr(a)], a.shape)
    n = a.shape[0]
    most = int(np.diff(a.indptr).max())

    def by_hand():
        f = CONVERSIONS.csr_to_ell
        args = [ctypes.c_int64(n), ctypes.c_int32(a.shape[1]), address(a.indptr), address(a.indices), address(a.data)]
        return lambda: f(*args), told

    def told():
        crd, data = np.full((most, n), a.shape[1]), np.zeros((most, n))
        rows = np.repeat(np.arange(n), np.diff(a.indptr))
        slot = np.arange(a.nnz) - a.indptr[rows]
        crd[slot, rows], data[slot, rows] = a.indices, a.data
        return np.concatenate([[0, most], crd.ravel(), data.ravel()])

    return found.add("C by hand", by_hand)


def pointwise(name, a, program, kernel, bar, scale):
    a = random_values(a)
    b = a.copy()
    rng = np.random.default_rng(1)
    # A matrix of the same shape that shares half of the places.
    other = matrices.plain(sp.coo_matrix((b.data, (np.repeat(np.arange(b.shape[0]), np.diff(b.indptr)), np.where(
        rng.random(b.nnz) < 0.5, b.indices, rng.integers(0, b.shape[1], b.nnz)))), b.shape))
    found = work(f"{program}, {name}", "scipy", 1 / bar, program, [csr(a), csr(other)], a.shape)
    scaled = other.copy()
    scaled.data = scaled.data * scale

    def scipy():
        most = a.nnz + other.nnz
        indptr, indices, data = np.empty(a.shape[0] + 1, np.int32), np.empty(most, np.int32), np.empty(most)
        kernel(*a.shape, a.indptr, a.indices, a.data, scaled.indptr, scaled.indices, scaled.data, indptr, indices, data)
        return indptr, indices, data

    def told():
        indptr, indices, data = scipy()
        return flat(sp.csr_matrix((data[: indptr[-1]], indices[: indptr[-1]], indptr), a.shape))

    return found.add("scipy", lambda: (scipy, told))


def product(name, a):
    a = random_values(a)
    found = work(f"product, {name}", "mkl", 1.0, "product", [csr(a), csr(a)], (a.shape[0], a.shape[1]))

    def ordered():
        handle = mkl_matrix(a)

        def begin(library, made):
            status = library.mkl_sparse_spmm(PLAIN, handle, handle, made)
            return status or library.mkl_sparse_order(made._obj)

        def told():
            c = a @ a
            c.sort_indices()
            return flat(c)

        return mkl_made(begin, a), told

    found.add("mkl", ordered)
    return found.add("scipy", lambda: (lambda: a @ a, lambda: flat((lambda c: (c.sort_indices(), c)[1])(a @ a))))


def workloads():
    global CONVERSIONS
    CONVERSIONS = compiled("conversions.c")
    made = {
        "random 200k, 2M": lambda: matrices.made(200_000, 200_000, 2_000_000),
        "band 50k, width 10": lambda: matrices.band(50_000, 10),
    }
    given = {name: a for name, a in (matrices.matrices() | matrices.graphs()).items() if a.nnz >= LEAST}
    for name, a in (made | {name: (lambda a=a: a) for name, a in given.items()}).items():
        for kind in (positions, shuffled, columns):
            yield f"{kind.__name__}, {name}", lambda _, a=a, kind=kind, name=name: kind(name, a())
        if name == "band 50k, width 10":
            yield f"diagonals, {name}", lambda _, a=a, name=name: diagonals(name, a())
        # (Where rows are about equally long.)
        if name in ("band 50k, width 10", "bcsstk13", "cryg2500"):
            yield f"slots, {name}", lambda _, a=a, name=name: slots(name, a())
        for program, kernel, bar, scale in (
            ("add", kernels.csr_plus_csr, 0.95, 2.0),
            ("times", kernels.csr_elmul_csr, 0.9, 1.0),
        ):
            yield f"{program}, {name}", lambda _, a=a, name=name, args=(program, kernel, bar, scale): pointwise(
                name, a(), *args
            )
        yield f"product, {name}", lambda _, a=a, name=name: product(name, a())
