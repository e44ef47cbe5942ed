"""Structured tensors against SciPy, MKL, GraphBLAS, PyTorch, OpenCV and loops in C: published and made matrices.

    sparse.py [--only TEXT] [--pairs 20] [--quick] [--threads 1] [--out target/bench/sparse-1.json]

Needs the variable TAFFETA (the compiler) and a Python with NumPy and SciPy; TAFFETA_DATA is the folder of published
data. Results are compared first. Then all systems of a workload run in turn, each for some milliseconds, in another
order each round; for each round the ratio of the fastest peer (by its median) and the system of the bar counts. A bar
holds where the 95 % interval of the median ratio lies above it. On one thread the processor's time counts instead of
the clock's. Peers that take twice as long as the fastest are only timed briefly.

`taffeta` is the program as a user writes it, scheduled by `auto`; `taffeta, by hand` has a schedule. Only the number of
columns is compiled in, so rules choose without the sizes of a matrix.

Differences in kind: matrices of a few kB spend their time in calls through ctypes, which are dearest for SciPy and MKL.
Taffeta, the loops in C and MKL write into results given to them, all others make new ones. SciPy and PyTorch have no
sums of rows of sampled products: PyTorch's `sampled_addmm` and GraphBLAS stop at the products. MKL may analyse a matrix
beforehand (`mkl_sparse_optimize`), which is not timed. The index arrays are trusted (`TAFFETA_TRUST_ARRAYS`), as those
of the peers are.
"""

import json
import os

from structured.options import OPTIONS, THREADS

# (Options first: they set the number of threads that libraries start with.)
from structured import convolution, formats, gradients, graphs, pairs, pictures, products, results, scaling, spmspv
from structured.workload import show

SUBJECTS = products, scaling, spmspv, graphs, pictures, convolution, formats, gradients, pairs, results


def main():
    rows = []
    print(f"structured tensors on {THREADS} thread{'s' if THREADS > 1 else ''}", flush=True)
    for name, make in (workload for subject in SUBJECTS for workload in subject.workloads()):
        if not any(part in name for part in OPTIONS.only.split("|")):
            continue
        try:
            rows.append(make(name).race())
        except ImportError as e:
            print(f"{name:<44} not run: {e}", flush=True)
            continue
        print(show(rows[-1]), flush=True)
    verdicts = [v["verdict"] for r in rows for v in r["verdicts"] if v["system"] == "taffeta"]
    print(
        ", ".join(f"{verdicts.count(v)} {v}" for v in ("holds", "open", "fails", "not run"))
        + f", of {len(rows)} by `auto`"
    )
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "target", "bench")
    out = OPTIONS.out or os.path.join(folder, f"sparse-{THREADS}.json")
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w") as file:
        json.dump(rows, file, indent=1)


main()
