"""Taffeta's scheduled examples against their peers: ratios with intervals, and shares of the machine's limits.

    race.py [--only TEXT] [--schedule auto [--own]] [--pairs 20] [--quick] [--out target/bench/peers.json]

With --own, the named schedule runs against the examples' own ones in the place of peers. OMP_NUM_THREADS sets the
number of threads (2); on one, the processor's time counts instead of the clock's.

Needs the variable TAFFETA (the compiler) and a Python with NumPy; peers that are not installed are reported and left
out. Every system runs in a process of its own. All are timed briefly first; then Taffeta and the fastest peer of its
bar run in turn, alternating the first one from pair to pair, and the ratio peer / Taffeta of each pair counts. A bar
holds where the 95 % interval of the median ratio lies above it.
"""

import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("MKL_NUM_THREADS", os.environ["OMP_NUM_THREADS"])
os.environ.setdefault("OPENBLAS_NUM_THREADS", os.environ["OMP_NUM_THREADS"])

from statistics_of_pairs import interval  # noqa: E402
from systems import WORKLOADS  # noqa: E402
from workloads import HERE  # noqa: E402

FRAMEWORKS = ("torch", "torch.compile", "jax")


class Worker:
    """System that waits for its turn."""

    def __init__(self, number, system, folder, schedule):
        self.path = os.path.join(folder, f"{number}-{abs(hash((system, schedule)))}.npz")
        self.log = open(self.path + ".log", "w+")
        command = [sys.executable, os.path.join(HERE, "worker.py"), str(number), system, self.path]
        pipe, environment = subprocess.PIPE, os.environ | {"TAFFETA_RACE_SCHEDULE": schedule}
        self.process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=self.log, text=True)

    def ready(self):
        """Returns whether it runs; `first` and `once` are the seconds of its first call, compiling, and a later one."""
        answer = self.process.stdout.readline().split()
        if len(answer) != 2:
            self.process.wait()
            self.log.seek(0)
            lines = self.log.read().strip().splitlines() or ["it said nothing"]
            self.reason = lines[-1][:160]
            return False
        self.first, self.once = map(float, answer)
        return True

    def time(self, budget):
        self.process.stdin.write(f"{budget}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def memory(self):
        self.process.stdin.write("memory\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def results(self):
        with np.load(self.path) as file:
            return list(file.values())

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def differ(some, others):
    """Returns the largest difference of results, relative to the largest value of each."""
    return max(differ_one(a, b) for a, b in zip(some, others, strict=True))


def differ_one(a, b):
    if a.shape != b.shape:
        return math.inf
    return float(np.max(np.abs(a.astype(np.float64) - b)) / max(float(np.max(np.abs(b))), 1e-30))


def machine():
    """Measures FLOP/s of f32 and f64 on all threads; returns also a function from bytes to copied bytes per second."""
    library = os.path.join(tempfile.mkdtemp(prefix="taffeta-peers-"), "machine.so")
    flags = "-O3 -march=native -fopenmp -shared -fPIC".split()
    subprocess.run(["gcc", *flags, os.path.join(HERE, "machine.c"), "-o", library, "-lm"], check=True)
    lib = ctypes.CDLL(library)
    for f in (lib.peak_f32, lib.peak_f64, lib.copy_rate):
        f.restype = ctypes.c_double
    lib.copy_rate.argtypes = [ctypes.c_size_t]
    return lib.peak_f32(), lib.peak_f64(), lib.copy_rate


def meant(bar, systems):
    """Returns the systems that a bar compares with."""
    return [s for s in systems if bar == "any" and s != "taffeta" or s == bar or bar == "frameworks" and s in FRAMEWORKS]


def raced(system, best, bar, workers, looks, budget, options):
    """Runs two systems in turn; returns how many times as long the second takes, and whether that is at least `bar`."""
    pairs = []
    # Calls that take seconds are run less often: six pairs are the least that have an interval.
    count = max(6, min(options.pairs, int(60 / (looks[system] + looks[best]))))
    for k in range(count):
        pair = {}
        for one in (system, best) if k % 2 == 0 else (best, system):
            pair[one] = workers[one].time(budget)
        pairs.append([pair[system], pair[best]])
    ratio, (low, high) = interval([p / w for w, p in pairs])
    verdict = "holds" if low >= bar else "fails" if high < bar else "open"
    return {"bar": bar, "ratio": ratio, "interval": [low, high], "verdict": verdict, "pairs": pairs}


def race(number, options, folder, limits):
    workload = WORKLOADS[number]
    workers, row = {}, {"workload": workload.name, "systems": {}, "left_out": {}}
    systems = {s: (s, options.schedule) for s in workload.systems}
    if options.own:
        systems = {"taffeta": systems["taffeta"], "own": ("taffeta", "")}
    for system, (kind, schedule) in systems.items():
        worker = Worker(number, kind, folder, schedule)
        if worker.ready():
            workers[system] = worker
        else:
            row["left_out"][system] = worker.reason
    if "taffeta" not in workers:
        for worker in workers.values():
            worker.stop()
        return row | {"error": row["left_out"]["taffeta"]}
    expected = workers["taffeta"].results()
    for system, worker in workers.items():
        apart = differ(worker.results(), expected)
        row["systems"][system] = {"first_s": worker.first, "differs": apart}
        if not apart <= workload.tolerance:
            row["systems"][system]["wrong"] = True
    budget = 0.02 if options.quick else 0.1
    looks = {s: statistics.median(w.time(budget) for _ in range(1 if w.once > 1 else 3)) for s, w in workers.items()}
    for system, seconds in looks.items():
        row["systems"][system]["seconds"] = seconds
    against, bar = ("own", 0.9) if options.own else workload.bars.get("taffeta", (None, 0.0))
    peers = [s for s in meant(against, workers) if "wrong" not in row["systems"][s]]
    if peers:
        best = min(peers, key=looks.get)
        row |= {"peer": best} | raced("taffeta", best, bar, workers, looks, budget, options)
        pairs = row["pairs"]
        seconds = statistics.median(w for w, _ in pairs)
        row["seconds"] = seconds
        peak_f32, peak_f64, copy = limits
        peak = peak_f64 if expected[0].dtype == np.float64 else peak_f32
        row["of_peak"] = workload.flops / seconds / peak
        row["of_bandwidth"] = workload.bytes / seconds / copy(min(workload.bytes, 1 << 28))
    if hasattr(workload, "wrt") and not options.own:
        others = [s for s in ("tape=all", "tape=none") if s in workers]
        if others and "tape=auto" in workers:
            best = min(others, key=looks.get)
            row["tape"] = {"peer": best} | raced("tape=auto", best, 0.95, workers, looks, budget, options)
        for system, worker in workers.items():
            row["systems"][system]["memory"] = worker.memory()
    for worker in workers.values():
        worker.stop()
    return row


def show(row):
    if "error" in row:
        return f"{row['workload']:<34} not run: {row['error']}"
    looks = ", ".join(f"{s} {1e3 * v['seconds']:.3g}" + (" WRONG" if "wrong" in v else "") for s, v in row["systems"].items())
    if "ratio" not in row:
        return f"{row['workload']:<34} no peer   ({looks} ms)"
    low, high = row["interval"]
    more = ""
    if "tape" in row:
        tape = row["tape"]
        more = "\n      tape=auto {ratio:.2f}x of {peer}, bar {bar:.2f} {verdict}".format(**tape)
        more += "\n      MB: " + ", ".join(f"{s} {v['memory'] / 1e6:.2f}" for s, v in row["systems"].items())
    return (
        f"{row['workload']:<34} {row['ratio']:6.2f}x [{low:.2f}, {high:.2f}] of {row['peer']:<16} bar {row['bar']:.2f} {row['verdict']:<6}"
        f" {100 * row['of_peak']:3.0f} % of FMA peak, {100 * row['of_bandwidth']:3.0f} % of copying\n      ms: {looks}{more}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="workloads whose name has this in it")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--schedule", default="", help="`auto`: in the place of the examples' own schedules")
    parser.add_argument("--own", action="store_true", help="against the examples' own schedules, without peers")
    parser.add_argument("--quick", action="store_true", help="short turns: for looking, not for claims")
    parser.add_argument("--out", default=os.path.join(HERE, "..", "..", "target", "bench", "peers.json"))
    options = parser.parse_args()
    if options.own and not options.schedule:
        parser.error("--own needs --schedule, which is what runs against the examples' own schedules")
    limits, rows = machine(), []
    print(f"{limits[0] / 1e9:.0f} GFLOP/s f32, {limits[1] / 1e9:.0f} f64, on {os.environ['OMP_NUM_THREADS']} threads", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for number, workload in enumerate(WORKLOADS):
            if options.only in workload.name:
                rows.append(race(number, options, folder, limits))
                print(show(rows[-1]), flush=True)
                for system, reason in rows[-1]["left_out"].items():
                    print(f"      {system} is left out: {reason}", flush=True)
    os.makedirs(os.path.dirname(options.out), exist_ok=True)
    with open(options.out, "w") as out:
        json.dump(rows, out, indent=1)


main()
