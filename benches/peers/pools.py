"""Taffeta beside pools of threads of PyTorch and MKL, in other processes and in its own, with and without a core taken.

    pools.py [--only TEXT] [--seconds 2]

Needs the variable TAFFETA (the compiler) and a Python with NumPy, PyTorch and MKL (`make peers`). Workloads are
scheduled by `auto`. Times are in milliseconds; the ratio is that of the median over the first row's, on a machine with
nothing else to do. A core is taken by a process that counts. A pool is idle after its library has run, or active: a
step, then a pause, again and again. In Taffeta's own process, a library's pool is alive, or has been at work right
before each call (whose inputs have left the caches then); where that shares a core with something else, the row on one
thread shows the attainable time.
"""

import argparse
import ctypes
import glob
import os
import statistics
import subprocess
import sys
import time

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ["TAFFETA_RACE_SCHEDULE"] = "auto"

NAMES = ("circular difference", "circdiff-back", "graph attention 2708 nodes", "gat-back 2708 nodes")


def mkl():
    """Returns a product by MKL."""
    lib = ctypes.CDLL(glob.glob(os.path.join(sys.prefix, "lib", "libmkl_rt.so*"))[0])
    n = 400
    a, b, c = (np.ones((n, n), np.float32) for _ in range(3))
    pointer, one, zero = (lambda x: ctypes.c_void_p(x.ctypes.data)), ctypes.c_float(1), ctypes.c_float(0)
    row_major, as_it_is = 101, 111
    return lambda: lib.cblas_sgemm(row_major, as_it_is, as_it_is, n, n, n, one, pointer(a), n, pointer(b), n, zero, pointer(c), n)


def torch():
    """Returns a product and a map by PyTorch."""
    import torch

    a, x = torch.rand(400, 400), torch.rand(2000, 2000)
    return lambda: (torch.matmul(a, a), torch.relu(x))


LIBRARIES = {"torch": torch, "mkl": mkl}


def other(kind):
    """Does the work of a process beside Taffeta: `count`, or `torch idle` and the like."""
    library, _, state = kind.partition(" ")
    if library == "count":
        while True:
            pass
    step = LIBRARIES[library]()
    for _ in range(20):
        step()
    print("ready", flush=True)
    if state == "idle":
        sys.stdin.read()
        return
    while True:
        step()
        time.sleep(0.005)


class Others:
    """Processes that run until the block ends."""

    def __init__(self, kinds):
        self.kinds = kinds

    def __enter__(self):
        pipe = subprocess.PIPE
        self.processes = [
            subprocess.Popen([sys.executable, __file__, "--other", kind], stdin=pipe, stdout=pipe, text=True) for kind in self.kinds
        ]
        for kind, process in zip(self.kinds, self.processes):
            if kind != "count" and process.stdout.readline() != "ready\n":
                raise RuntimeError(f"`{kind}` did not start")
        time.sleep(0.3)

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def measure(call, seconds, before=lambda: None):
    """Returns median, mean and 95th percentile, in milliseconds."""
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        before()
        begin = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - begin))
    times.sort()
    return statistics.median(times), statistics.mean(times), times[len(times) * 95 // 100]


def rows(call, seconds):
    """Yields the conditions beside Taffeta, each with Taffeta's times."""
    entry = next(k for k in call.keeps if hasattr(k, "context"))
    threads = entry.context.threads
    for taken in (0, 1):
        core = ["count"] * taken
        with_core = ", a core taken" * taken
        for state in ("", "idle", "active"):
            with Others(core + [f"{name} {state}" for name in LIBRARIES if state]):
                yield (f"pools {state}" if state else "no pools") + with_core, measure(call, seconds)
    for name, library in LIBRARIES.items():
        step = library()
        for taken in (0, 1):
            with_core = ", a core taken" * taken
            with Others(["count"] * taken):
                step()
                yield f"{name} in this process" + with_core, measure(call, seconds)
                yield f"right after {name}" + with_core, measure(call, seconds, step)
                entry.context.threads = 1
                yield "  the same, one thread", measure(call, seconds, step)
                entry.context.threads = threads


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="workloads whose name has this in it")
    parser.add_argument("--seconds", type=float, default=2, help="for each row")
    parser.add_argument("--other", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.other:
        other(options.other)
        return
    from systems import WORKLOADS, start

    for workload in WORKLOADS:
        if workload.name not in NAMES or options.only not in workload.name:
            continue
        call, _ = start(workload, "taffeta", workload.inputs())
        for _ in range(20):
            call()
        print(f"{workload.name:<42}{'median':>9}{'mean':>9}{'p95':>9}{'ratio':>7}", flush=True)
        quiet = None
        for name, (median, mean, late) in rows(call, options.seconds):
            quiet = quiet or median
            print(f"  {name:<40}{median:9.3f}{mean:9.3f}{late:9.3f}{median / quiet:7.2f}", flush=True)


main()
