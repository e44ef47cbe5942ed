"""All pairs of pictures: blocks or runs, whichever suits them, against the list of pixels. On one thread."""

import os

import numpy as np
import scipy.sparse as sp

from . import matrices
from .options import THREADS
from .stored import blocks, csr, runs
from .workload import HERE, Bar, Workload, entry

FILE = os.path.join(HERE, "..", "..", "..", "examples", "sparse", "pictures.ft")


def distances(name, dense):
    best, other = ("vbl", "rle") if "digits" in name else ("rle", "vbl")
    stored = {"vbl": blocks(dense), "rle": runs(dense), "list": csr(matrices.plain(sp.csr_matrix(dense)))}
    work = Workload(name, (Bar("taffeta", ("taffeta, list",), 1.0),), 1e-9)
    add = work.into((len(dense), len(dense)))

    for system, kind in (("taffeta", best), ("taffeta, list", "list"), (f"taffeta, {other}", other)):
        add(system, lambda d, kind=kind: entry(f"{FILE}:distances_{kind}").bind([stored[kind]], [d]))

    def numpy():
        square = np.einsum("kp,kp->k", dense, dense)
        return np.sqrt(np.maximum(square[:, None] + square[None, :] - 2 * dense @ dense.T, 0))

    return work.add("numpy, dense", lambda: (numpy, numpy))


def workloads():
    if THREADS > 1:
        return
    for name, dense in matrices.drawings().items():
        yield f"distances of {len(dense)} {name}", lambda name, dense=dense: distances(name, dense)
