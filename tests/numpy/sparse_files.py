"""Sparse tensors in files, as SciPy writes and reads them.

`sparse_files.py make DIR` writes tensors in every format and type, each with its dense form as `.npy`; `sparse_files.py
compare DIR` reads every `.npz` and `.mtx` that has a `.npy` of its name, and compares; `sparse_files.py check DIR` checks
square matrices `NAME_a.npz` with their results of the program `results.ft`, which it also computes.
"""
import pathlib
import sys

import numpy as np
from scipy import io, sparse


def matrices(random):
    """Yields pairs of a name and a matrix: every format and type, some unsorted and unsummed, as SciPy permits."""
    for dtype in (np.float64, np.float32, np.int64, np.int32, np.int8, np.uint64, np.bool_):
        for n, m in ((6, 8), (1, 5), (4, 0), (9, 3)):
            dense = random.integers(0, 2, (n, m)) * random.integers(1, 50, (n, m))
            whole = sparse.csr_matrix(dense.astype(dtype))
            for name in ("csr", "csc", "coo", "dia", "bsr"):
                yield f"{name}_{np.dtype(dtype).name}_{n}_{m}", whole.asformat(name)
    blocks = np.kron(random.integers(0, 2, (3, 4)), random.random((2, 3)).round(1))
    yield "bsr_blocks", sparse.csr_matrix(blocks).tobsr((2, 3))
    count = 40
    rows, columns = random.integers(0, 7, count), random.integers(0, 5, count)
    twice = sparse.coo_matrix((random.random(count), (rows, columns)), (7, 5))
    yield "coo_twice", twice
    # Rows in order, columns in none, and duplicates.
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(8))
    for index in (np.int32, np.int64):
        yield f"csr_twice_{np.dtype(index).name}", sparse.csr_matrix(
            (twice.data[order], columns[order].astype(index), starts.astype(index)), (7, 5))
    diagonals = random.random((4, 6))
    for n, m in ((6, 6), (4, 6), (6, 4), (9, 3)):
        yield f"dia_{n}_{m}", sparse.dia_matrix((diagonals, [-2, 0, 1, 40]), (n, m))
    yield "vector", sparse.csr_array(np.array([0, 1.5, 0, -2]))
    yield "vector_coo", sparse.coo_array(np.array([0, 1.5, 0, -2]))
    yield "tensor", sparse.coo_array(random.integers(0, 3, (3, 4, 5)).astype(np.float64))
    yield "explicit_zeros", sparse.csr_array((np.array([0.0, 2.0]), ([0, 1], [1, 0])), (2, 2))


def make(folder):
    random = np.random.default_rng(1)
    for name, matrix in matrices(random):
        dense = matrix.toarray()
        sparse.save_npz(folder / f"{name}.npz", matrix, compressed="8" in name)
        np.save(folder / f"{name}.npy", dense)
        # Matrices that SciPy's writer accepts; it has no field for bool, and writes empty matrices as real.
        if matrix.ndim == 2 and dense.size > 0 and matrix.dtype != np.bool_ and matrix.format in ("coo", "csr"):
            io.mmwrite(folder / f"mtx_{name}.mtx", matrix.tocoo())
            np.save(folder / f"mtx_{name}.npy", dense)
    square = np.tril(random.integers(-9, 9, (5, 5)), -1)
    for symmetry, matrix in (("symmetric", square + square.T), ("skew-symmetric", square - square.T)):
        for field in ("real", "integer"):
            name = f"mtx_{symmetry}_{field}"
            matrix = matrix.astype(np.float64 if field == "real" else np.int64)
            io.mmwrite(folder / f"{name}.mtx", sparse.coo_matrix(matrix), field=field, symmetry=symmetry)
            np.save(folder / f"{name}.npy", matrix)
            io.mmwrite(folder / f"{name}_array.mtx", matrix, field=field, symmetry=symmetry)
            np.save(folder / f"{name}_array.npy", matrix)
    io.mmwrite(folder / "mtx_pattern.mtx", sparse.coo_matrix(square != 0), field="pattern")
    np.save(folder / "mtx_pattern.npy", (square != 0).astype(np.float64))


def compare(folder):
    compared = 0
    for path in sorted(folder.glob("*.npy")):
        dense = np.load(path)
        for found in (path.with_suffix(".npz"), path.with_suffix(".mtx")):
            if not found.exists():
                continue
            read = sparse.load_npz(found) if found.suffix == ".npz" else io.mmread(found)
            read = read.toarray().reshape(dense.shape)
            assert np.array_equal(read.astype(dense.dtype), dense, equal_nan=dense.dtype.kind == "f"), found
            compared += 1
    print(compared)


def check(folder):
    """Checks the invariants of each file of a result by all that SciPy knows of them, and its elements."""
    checked = 0
    for given in sorted(folder.glob("*_a.npz")):
        a = sparse.csr_array(sparse.load_npz(given))
        ones = sparse.csr_array((np.ones(a.nnz), a.indices, a.indptr), a.shape)
        paths = ones @ ones
        # Elements that cancel stay: the pattern is that of the product of ones.
        for name, pattern, expected in (
            ("product", paths, a @ a),
            ("masked", ones * paths, a * (a @ a)),
            ("transposed", ones.T, a.T),
        ):
            found = sparse.load_npz(str(given).replace("_a.npz", f"_{name}.npz"))
            assert found.format == "csr", (given, name, found.format)
            found.check_format(full_check=True)
            assert found.has_canonical_format, (given, name)
            pattern = sparse.csr_array(pattern)
            pattern.sort_indices()
            assert np.array_equal(found.indptr, pattern.indptr), (given, name)
            assert np.array_equal(found.indices, pattern.indices), (given, name)
            most = abs(expected.data).max(initial=1e-300)
            assert abs(sparse.csr_array(found) - expected).max() <= 1e-12 * most, (given, name)
            checked += 1
    print(checked)


{"make": make, "compare": compare, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
