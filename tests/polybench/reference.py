"""The 30 kernels of PolyBench/C 4.2 in NumPy, written from their definitions and not from the `.ft` files here.

Linear algebra is NumPy's own (`A @ B`, `cholesky`, `solve`): a second way to the same numbers. Recurrences are written
out, with whole rows at a time where that changes nothing.

    python3 reference.py DIR            writes DIR/<kernel>.<result>.npy for each kernel, at the sizes below
    python3 reference.py DIR gemm lu    only these
"""

import sys
from pathlib import Path

import numpy as np

KERNELS = {}


def kernel(f):
    KERNELS[f.__name__.strip("_").replace("_", "-")] = f
    return f


def grid(*shape):
    return np.meshgrid(*[np.arange(n) for n in shape], indexing="ij")


@kernel
def gemm(ni=20, nj=25, nk=30):
    i, j = grid(ni, nj)
    C = ((i * j + 1) % ni) / ni
    i, j = grid(ni, nk)
    A = (i * (j + 1) % nk) / nk
    i, j = grid(nk, nj)
    B = (i * (j + 2) % nj) / nj
    return {"C": 1.5 * (A @ B) + 1.2 * C}


@kernel
def _2mm(ni=16, nj=18, nk=22, nl=24):
    i, j = grid(ni, nk)
    A = ((i * j + 1) % ni) / ni
    i, j = grid(nk, nj)
    B = (i * (j + 1) % nj) / nj
    i, j = grid(nj, nl)
    C = ((i * (j + 3) + 1) % nl) / nl
    i, j = grid(ni, nl)
    D = (i * (j + 2) % nk) / nk
    return {"D": 1.5 * (A @ B) @ C + 1.2 * D}


@kernel
def _3mm(ni=16, nj=18, nk=20, nl=22, nm=24):
    i, j = grid(ni, nk)
    A = ((i * j + 1) % ni) / (5 * ni)
    i, j = grid(nk, nj)
    B = ((i * (j + 1) + 2) % nj) / (5 * nj)
    i, j = grid(nj, nm)
    C = (i * (j + 3) % nl) / (5 * nl)
    i, j = grid(nm, nl)
    D = ((i * (j + 2) + 2) % nk) / (5 * nk)
    return {"G": (A @ B) @ (C @ D)}


@kernel
def atax(m=38, n=42):
    i, j = grid(m, n)
    A = ((i + j) % n) / (5 * m)
    x = 1 + np.arange(n) / n
    return {"y": A.T @ (A @ x)}


@kernel
def bicg(m=38, n=42):
    i, j = grid(n, m)
    A = (i * (j + 1) % n) / n
    p = (np.arange(m) % m) / m
    r = (np.arange(n) % n) / n
    return {"s": A.T @ r, "q": A @ p}


@kernel
def doitgen(nq=8, nr=10, np_=12):
    i, j, k = grid(nr, nq, np_)
    A = ((i * j + k) % np_) / np_
    i, j = grid(np_, np_)
    C4 = (i * j % np_) / np_
    return {"A": np.einsum("rqs,sp->rqp", A, C4)}


@kernel
def mvt(n=40):
    i, j = grid(n, n)
    k = np.arange(n)
    A = (i * j % n) / n
    return {"x1": (k % n) / n + A @ (((k + 3) % n) / n), "x2": ((k + 1) % n) / n + A.T @ (((k + 4) % n) / n)}


@kernel
def gemver(n=40):
    i, j = grid(n, n)
    k = np.arange(n)
    A = (i * j % n) / n
    u1, u2, v1, v2, y, z = 1.0 * k, *[(k + 1) / n / c for c in (2, 4, 6, 8, 9)]
    A = A + np.outer(u1, v1) + np.outer(u2, v2)
    x = 1.2 * A.T @ y + z
    return {"w": 1.5 * A @ x}


@kernel
def gesummv(n=30):
    i, j = grid(n, n)
    x = (np.arange(n) % n) / n
    return {"y": 1.5 * (((i * j + 1) % n) / n) @ x + 1.2 * (((i * j + 2) % n) / n) @ x}


@kernel
def symm(m=20, n=30):
    i, j = grid(m, n)
    C = ((i + j) % 100) / m
    B = ((n + i - j) % 100) / m
    i, j = grid(m, m)
    low = np.tril(((i + j) % 100) / m)
    A = low + np.tril(low, -1).T
    return {"C": 1.5 * A @ B + 1.2 * C}


def lower(C, new):
    return np.where(np.tril(np.ones_like(C)) > 0, new, C)


@kernel
def syr2k(m=20, n=30):
    i, j = grid(n, m)
    A = ((i * j + 1) % n) / n
    B = ((i * j + 2) % m) / m
    i, j = grid(n, n)
    C = ((i * j + 3) % n) / m
    return {"C": lower(C, 1.2 * C + 1.5 * (A @ B.T + B @ A.T))}


@kernel
def syrk(m=20, n=30):
    i, j = grid(n, m)
    A = ((i * j + 1) % n) / n
    i, j = grid(n, n)
    C = ((i * j + 2) % m) / m
    return {"C": lower(C, 1.2 * C + 1.5 * A @ A.T)}


@kernel
def trmm(m=20, n=30):
    i, j = grid(m, m)
    A = np.tril(((i + j) % m) / m, -1) + np.eye(m)
    i, j = grid(m, n)
    B = ((n + (i - j)) % n) / n
    return {"B": 1.5 * A.T @ B}


@kernel
def correlation(m=28, n=32):
    i, j = grid(n, m)
    data = (i * j) / m + i
    return {"corr": np.corrcoef(data, rowvar=False)}


@kernel
def covariance(m=28, n=32):
    i, j = grid(n, m)
    return {"cov": np.cov((i * j) / m, rowvar=False)}


def positive_definite(n):
    i, j = grid(n, n)
    L = np.tril(1 - (j % n) / n, -1) + np.eye(n)
    return L @ L.T


@kernel
def cholesky(n=40):
    A = positive_definite(n)
    return {"A": lower(A, np.linalg.cholesky(A))}


def lu_of(A):
    A = A.copy()
    for k in range(len(A)):
        A[k + 1:, k] /= A[k, k]
        A[k + 1:, k + 1:] -= np.outer(A[k + 1:, k], A[k, k + 1:])
    return A


@kernel
def lu(n=40):
    return {"A": lu_of(positive_definite(n))}


@kernel
def ludcmp(n=40):
    b = (np.arange(n) + 1) / n / 2 + 4
    return {"x": np.linalg.solve(positive_definite(n), b)}


@kernel
def durbin(n=40):
    # y solves the Yule-Walker equations T y = -r, where T is the Toeplitz matrix of 1, r[0], r[1], ...
    r = 1.0 * (n + 1 - np.arange(n))
    i, j = grid(n, n)
    T = np.concatenate([[1.0], r])[abs(i - j)]
    return {"y": np.linalg.solve(T, -r)}


@kernel
def gramschmidt(m=30, n=20):
    # QR by reflections; the diagonal of Gram and Schmidt's is positive, which fixes the signs.
    i, j = grid(m, n)
    Q, R = np.linalg.qr((i * j % m) / m * 100 + 10 + 100 * (i == j))
    signs = np.sign(np.diag(R))
    return {"R": R * signs[:, None], "Q": Q * signs}


@kernel
def trisolv(n=40):
    i, j = grid(n, n)
    L = np.tril((i + n - j + 1) * 2 / n)
    return {"x": np.linalg.solve(L, np.arange(n))}


@kernel
def deriche(w=64, h=64):
    i, j = grid(w, h)
    image, alpha = (313 * i + 991 * j) % 65536 / 65535, 0.25
    e = np.exp(-alpha)
    k = (1 - e) ** 2 / (1 + 2 * alpha * e - np.exp(2 * alpha))
    forward = (k, k * e * (alpha - 1))
    backward = (k * e * (alpha + 1), -k * e * e)
    b1, b2 = 2 ** -alpha, -e * e

    def along(x):
        """Adds both passes along the last axis."""
        n = x.shape[1]
        y1, y2 = np.zeros_like(x), np.zeros_like(x)
        at = lambda a, c: a[:, c] if 0 <= c < n else 0.0
        for c in range(n):
            y1[:, c] = forward[0] * x[:, c] + forward[1] * at(x, c - 1) + b1 * at(y1, c - 1) + b2 * at(y1, c - 2)
        for c in reversed(range(n)):
            y2[:, c] = (backward[0] * at(x, c + 1) + backward[1] * at(x, c + 2) + b1 * at(y2, c + 1) + b2 * at(y2, c + 2))
        return y1 + y2

    return {"img_out": along(along(image).T).T}


@kernel
def floyd_warshall(n=60):
    i, j = grid(n, n)
    path = np.where(((i + j) % 13 == 0) | ((i + j) % 7 == 0) | ((i + j) % 11 == 0), 999, i * j % 7 + 1).astype(np.int32)
    for k in range(n):
        path = np.minimum(path, path[:, k:k + 1] + path[k:k + 1, :])
    return {"path": path}


@kernel
def nussinov(n=60):
    seq = (np.arange(n) + 1) % 4
    table = np.zeros((n, n), np.int32)
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            best = [table[i, j - 1]]
            if i + 1 < n:
                bonds = i < j - 1 and seq[i] + seq[j] == 3
                best += [table[i + 1, j], table[i + 1, j - 1] + bonds]
            best += [table[i, k] + table[k + 1, j] for k in range(i + 1, j)]
            table[i, j] = max(best)
    return {"table": table}


@kernel
def adi(tsteps=20, n=20):
    i, j = grid(n, n)
    u = (i + n - j) / n
    v = np.zeros((n, n))
    mul = np.array([2.0, 1.0]) * n * n / tsteps

    def sweep(old, mine, other):
        """Solves a tridiagonal system for each row at once; the result's first and last columns are 1."""
        a, b, d = -mine / 2, 1 + mine, -other / 2
        new, p, q = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
        new[1:-1, 0] = new[1:-1, -1] = q[1:-1, 0] = 1.0
        for c in range(1, n - 1):
            below = a * p[1:-1, c - 1] + b
            p[1:-1, c] = -a / below
            stencil = -d * old[c, :-2] + (1 + 2 * d) * old[c, 1:-1] - d * old[c, 2:]
            q[1:-1, c] = (stencil - a * q[1:-1, c - 1]) / below
        for c in range(n - 2, 0, -1):
            new[1:-1, c] = p[1:-1, c] * new[1:-1, c + 1] + q[1:-1, c]
        return new

    for _ in range(tsteps):
        v[:, 1:-1] = sweep(u, *mul).T[:, 1:-1]
        u[1:-1, :] = sweep(v.T, *mul[::-1])[1:-1, :]
    return {"u": u}


@kernel
def fdtd_2d(tmax=20, nx=20, ny=30):
    i, j = grid(nx, ny)
    ex, ey, hz = i * (j + 1) / nx, i * (j + 2) / ny, i * (j + 3) / nx
    for t in range(tmax):
        ey[0] = t
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return {"ex": ex, "ey": ey, "hz": hz}


def relax(A, steps, update):
    """Computes two arrays from each other, in turn; only the inside changes."""
    B = A.copy()
    inside = (slice(1, -1),) * A.ndim
    for _ in range(steps):
        B[inside] = update(A)
        A[inside] = update(B)
    return A


@kernel
def heat_3d(tsteps=20, n=10):
    i, j, k = grid(n, n, n)

    def update(A):
        c = A[1:-1, 1:-1, 1:-1]
        return (0.125 * (A[2:, 1:-1, 1:-1] - 2 * c + A[:-2, 1:-1, 1:-1]) + 0.125 * (A[1:-1, 2:, 1:-1] - 2 * c + A[1:-1, :-2, 1:-1])
                + 0.125 * (A[1:-1, 1:-1, 2:] - 2 * c + A[1:-1, 1:-1, :-2]) + c)

    return {"A": relax((i + j + (n - k)) * 10 / n, tsteps, update)}


@kernel
def jacobi_1d(tsteps=20, n=30):
    # The other array has other initial values, of which only the two at the ends are ever read.
    i = np.arange(n)
    A, B = (i + 2) / n, (i + 3) / n
    for _ in range(tsteps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])
    return {"A": A}


@kernel
def jacobi_2d(tsteps=20, n=30):
    i, j = grid(n, n)
    A, B = (i * (j + 2) + 2) / n, (i * (j + 3) + 3) / n
    star = lambda X: 0.2 * (X[1:-1, 1:-1] + X[1:-1, :-2] + X[1:-1, 2:] + X[2:, 1:-1] + X[:-2, 1:-1])
    for _ in range(tsteps):
        B[1:-1, 1:-1] = star(A)
        A[1:-1, 1:-1] = star(B)
    return {"A": A}


@kernel
def seidel_2d(tsteps=20, n=40):
    i, j = grid(n, n)
    A = (i * (j + 2) + 2) / n
    for _ in range(tsteps):
        for r in range(1, n - 1):
            for c in range(1, n - 1):
                A[r, c] = A[r - 1:r + 2, c - 1:c + 2].sum() / 9
    return {"A": A}


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or KERNELS:
        for result, value in KERNELS[name]().items():
            np.save(folder / f"{name}.{result}.npy", value)


if __name__ == "__main__":
    main()
