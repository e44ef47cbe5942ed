"""Gain of more threads, against that of copying as many bytes: interleaved, on made matrices, by the clock.

A kernel's time on one thread is that of the program compiled for one. Half of the bytes of its arguments and results
are copied, to as many others. Where threads gain nothing by copying, other processes had the cores, and the verdict is
open.
"""

import statistics

import numpy as np

from taffeta import Stored

from . import matrices
from .options import THREADS
from .peers import in_c
from .stored import csf, csr
from .workload import entry, in_turn, judged, look

BAR = 0.85


def size(array):
    if isinstance(array, Stored):
        return array.values.nbytes + sum(a.nbytes for _, arrays in array.levels for a in arrays)
    return array.nbytes


class Gain:
    """Kernel by its programs, each a system with its schedules for one thread and for more."""

    def __init__(self, name, arguments, result, programs, **sizes):
        self.name, self.arguments, self.result, self.programs, self.sizes = name, arguments, result, programs, sizes

    def race(self):
        row = {"workload": self.name, "threads": THREADS, "systems": {}, "left_out": {}, "verdicts": []}
        half = sum(map(size, self.arguments + [self.result])) // 2
        source, target = np.ones(half, np.uint8), np.empty(half, np.uint8)
        calls = {("copying", t): in_c("copy", t, half, source, target) for t in (1, THREADS)}
        for system, (program, *schedules) in self.programs.items():
            try:
                for threads, schedule in zip((1, THREADS), schedules):
                    calls[system, threads] = entry(program, schedule, threads, **self.sizes).bind(
                        self.arguments, [self.result]
                    )
                    calls[system, threads]()
            except Exception as e:  # noqa: BLE001 (as in races)
                calls = {key: call for key, call in calls.items() if key[0] != system}
                row["left_out"][system] = (str(e).splitlines() or [type(e).__name__])[0][:160]
        rounds = in_turn(calls, {key: look(call) for key, call in calls.items()})
        for key in calls:
            row["systems"][f"{key[0]}, {key[1]} threads"] = {"seconds": statistics.median(r[key] for r in rounds)}
        gain = lambda r, system: r[system, 1] / r[system, THREADS]
        for system in dict.fromkeys(s for s, _ in calls):
            found = {"system": system, "bar": BAR, "gain": statistics.median(gain(r, system) for r in rounds)}
            if system == "copying":
                row["copying"] = {"bytes": 2 * half, "gain": found["gain"]}
            else:
                ratios = judged([gain(r, system) / gain(r, "copying") for r in rounds], BAR)
                if row["copying"]["gain"] < 1:
                    ratios["verdict"] = "open"
                row["verdicts"].append(
                    found | {"peer": f"copying {2 * half / 1e6:.0f} MB, {row['copying']['gain']:.2f}x"} | ratios
                )
        return row


def programs(name, alone, together, by_hand=None):
    found = {"taffeta": (f"products.ft:{name}", "auto", "auto")}
    return found | {"taffeta, by hand": (f"products.ft:{by_hand or name}", alone, together)}


def workloads():
    if THREADS == 1:
        return
    rng = np.random.default_rng(0)
    for text, make in (
        ("random 200k, 4M", lambda: matrices.made(200_000, 200_000, 4_000_000)),
        ("random 1M, 10M", lambda: matrices.made(1_000_000, 1_000_000, 10_000_000)),
        ("band 200k, width 10", lambda: matrices.band(200_000, 10)),
    ):

        def spmv(name, make=make):
            a = make()
            return Gain(
                name, [csr(a), rng.random(a.shape[1])], np.empty(a.shape[0]), programs("spmv", "vectors", "rows")
            )

        yield f"gain of SpMV {text}", spmv
    for k in (32, 128):

        def spmm(name, k=k):
            a = matrices.made(50_000, 50_000, 500_000, np.float32)
            b, c = rng.random((50_000, k), dtype=np.float32), np.empty((50_000, k), np.float32)
            return Gain(name, [csr(a), b], c, programs("spmm", "spmm_vectors", "spmm_rows", "spmm_by_rows"), k=k)

        def sddmm(name, k=k):
            s = matrices.made(50_000, 50_000, 500_000, np.float32)
            a, b = rng.random((50_000, k), dtype=np.float32), rng.random((50_000, k), dtype=np.float32)
            return Gain(
                name, [csr(s), a, b], np.empty(s.nnz, np.float32), programs("sddmm", "sddmm_vectors", "sddmm_rows"), k=k
            )

        yield f"gain of SpMM random 50k, 500k, {k} columns", spmm
        yield f"gain of SDDMM random 50k, 500k, {k} columns", sddmm

    def mttkrp(name, r=32):
        stored, _ = csf(*matrices.tensor(1000, 1_000_000))
        b, c, d = rng.random((1000, r)), rng.random((1000, r)), np.empty((1000, r))
        return Gain(name, [stored, b, c], d, programs("mttkrp", "mttkrp_vectors", "mttkrp_rows"), r=r)

    yield "gain of MTTKRP random 1000^3, 1M", mttkrp
