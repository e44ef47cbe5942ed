"""Matrices as the peers take them: loops in C (`loops.c`), MKL, GraphBLAS, PyTorch, OpenCV."""

import ctypes
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np

from .options import THREADS
from .workload import HERE


def compiled(source, *flags):
    made = os.path.join(tempfile.mkdtemp(prefix="taffeta-peers-"), "peer.so")
    subprocess.run(
        ["gcc", "-O3", "-march=native", *flags, "-shared", "-fPIC", os.path.join(HERE, source), "-o", made], check=True
    )
    return ctypes.CDLL(made)


LOOPS = compiled("loops.c", "-ffast-math", "-fopenmp")


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


def in_c(name, *args):
    """Prepares a call of a function of loops.c."""
    f = getattr(LOOPS, name)
    made = [address(a) if isinstance(a, np.ndarray) else ctypes.c_int64(a) for a in args]

    def call():
        f(*made)

    # Pointers do not keep arrays alive.
    call.keeps = args
    return call


def torch_():
    import torch

    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)
    return torch


def torch_matrix(a):
    torch = torch_()
    return torch.sparse_csr_tensor(*(torch.from_numpy(p) for p in (a.indptr, a.indices, a.data)), a.shape)


def opencv():
    import cv2

    cv2.setNumThreads(THREADS)
    return cv2


class Descr(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int)]


GENERAL, ROW_MAJOR, PLAIN = Descr(20, 0, 0), 101, 10


def mkl():
    paths = glob.glob(sys.prefix + "/lib/libmkl_rt.so*")
    if not paths:
        raise RuntimeError("there is no libmkl_rt")
    library = ctypes.CDLL(paths[0])
    library.MKL_Set_Num_Threads(THREADS)
    return library


def mkl_matrix(a, columns=0, calls=1000):
    """Makes a handle of a matrix in CSR or BSR, with the hint that MKL will use it often."""
    library, handle = mkl(), ctypes.c_void_p()
    handle.keeps = a
    kind, letter = a.format, "d" if a.dtype == np.float64 else "s"
    # (The blocks of BSR are square here, row by row.)
    shape = (
        a.shape
        if kind == "csr"
        else (ROW_MAJOR, a.shape[0] // a.blocksize[0], a.shape[1] // a.blocksize[1], a.blocksize[0])
    )
    parts = address(a.indptr), ctypes.c_void_p(a.indptr.ctypes.data + 4), address(a.indices), address(a.data)
    assert getattr(library, f"mkl_sparse_{letter}_create_{kind}")(ctypes.byref(handle), 0, *shape, *parts) == 0
    if columns:
        library.mkl_sparse_set_mm_hint(handle, PLAIN, GENERAL, ROW_MAJOR, columns, calls)
    else:
        library.mkl_sparse_set_mv_hint(handle, PLAIN, GENERAL, calls)
    library.mkl_sparse_optimize(handle)
    return handle


def mkl_mv(a, x, y):
    """Prepares y = a x."""
    handle, f = mkl_matrix(a), mkl().mkl_sparse_d_mv
    f.argtypes = [
        ctypes.c_int,
        ctypes.c_double,
        ctypes.c_void_p,
        Descr,
        ctypes.c_void_p,
        ctypes.c_double,
        ctypes.c_void_p,
    ]
    at, to = address(x), address(y)
    call = lambda: f(PLAIN, 1.0, handle, GENERAL, at, 0.0, to)
    call.keeps = x, y
    return call


def mkl_mm(a, b, c):
    """Prepares c = a b, of f32."""
    k = b.shape[1]
    handle, f = mkl_matrix(a, k), mkl().mkl_sparse_s_mm
    number, many, pointer = ctypes.c_float, ctypes.c_int, ctypes.c_void_p
    f.argtypes = [many, number, pointer, Descr, many, pointer, many, many, number, pointer, many]
    at, to = address(b), address(c)
    call = lambda: f(PLAIN, 1.0, handle, GENERAL, ROW_MAJOR, at, k, k, 0.0, to, k)
    call.keeps = b, c
    return call


class GraphBLAS:
    """SuiteSparse:GraphBLAS through its C functions: Python's operators take longer than some of the kernels."""

    def __init__(self):
        import graphblas
        import suitesparse_graphblas

        self.gb, self.lib, self.ffi = graphblas, suitesparse_graphblas.lib, suitesparse_graphblas.ffi
        graphblas.ss.config["nthreads"] = THREADS

    def matrix(self, a):
        """Converts an array, or a sparse matrix of SciPy's."""
        if isinstance(a, np.ndarray):
            return self.gb.Matrix.from_dense(a)
        return self.gb.io.from_scipy_sparse(a)

    def call(self, name, result, mask, *operands, accum=None, how=None):
        """Prepares a call of `GrB_…(result, mask, accum, operands, how)` that returns when its work is done."""
        raw = lambda a: a._carg if hasattr(a, "_carg") else getattr(self.lib, a) if isinstance(a, str) else a
        null, f = self.ffi.NULL, getattr(self.lib, name)
        given = [raw(result), null if mask is None else raw(mask), null if accum is None else raw(accum)]
        given += [*map(raw, operands), null if how is None else raw(how)]
        wait = self.lib.GrB_Vector_wait if isinstance(result, self.gb.Vector) else self.lib.GrB_Matrix_wait
        done, self_ = self.lib.GrB_MATERIALIZE, given[0]

        def call():
            info = f(*given) or wait(self_, done)
            if info != 0:
                raise RuntimeError(f"{name}: {info}")

        call.keeps = result, mask, operands
        return call
