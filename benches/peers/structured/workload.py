"""Races: systems and bars of a workload, and measurement of all systems in turn."""

import dataclasses
import math
import os
import random
import statistics

import numpy as np

from statistics_of_pairs import interval
from taffeta import Entry

from .options import OPTIONS, clock

HERE = os.path.dirname(os.path.abspath(__file__))
LEVEL = 0.95
ENTRIES = {}


def entry(program, schedule="auto", threads=None, **sizes):
    """Returns an entry of a file here (`products.ft:spmv`), compiled once."""
    file, name = program.split(":")
    key = file, name, schedule, threads, tuple(sizes.items())
    if key not in ENTRIES:
        ENTRIES[key] = Entry(os.path.join(HERE, file), name, schedule, sizes, threads=threads)
    return ENTRIES[key]


@dataclasses.dataclass
class Bar:
    """Bar for `system`: `ratio` times as fast as the fastest of `against`, by default of all that are not Taffeta's.

    Without a ratio its speed is only reported.
    """

    system: str = "taffeta"
    against: tuple = ()
    ratio: float | None = LEVEL

    def others(self, systems):
        named = [s for s in systems if s in self.against]
        return named if self.against else [s for s in systems if not s.startswith("taffeta")]


class Workload:
    """Systems by their names, each a function that returns the one to be timed and one that returns its result.

    The first peer's result is the reference for all.
    """

    def __init__(self, name, bars=(Bar(),), tolerance=1e-12):
        self.name, self.bars, self.tolerance, self.systems = name, bars, tolerance, {}

    def add(self, system, prepare):
        self.systems[system] = prepare
        return self

    def into(self, shape, dtype=np.float64):
        """Returns a function that adds systems which write into a given result: `prepare(result)` is the call."""

        def add(system, prepare):
            def prepared():
                result = np.empty(shape, dtype)
                # (The function that returns the result keeps its array alive.)
                return prepare(result), lambda: result

            return self.add(system, prepared)

        return add

    def race(self):
        row = {"workload": self.name, "threads": OPTIONS.threads, "systems": {}, "left_out": {}, "verdicts": []}
        calls, results = {}, {}
        for system, prepare in self.systems.items():
            try:
                calls[system], tell = prepare()
                calls[system]()
                results[system] = np.array(tell())
            except Exception as e:  # noqa: BLE001 (whatever the error, the system is left out with its message)
                calls.pop(system, None)
                row["left_out"][system] = (str(e).splitlines() or [type(e).__name__])[0][:160]
        if not results:
            return row
        first = next((s for s in results if not s.startswith("taffeta")), next(iter(results)))
        for system, found in results.items():
            apart = differ(found, results[first])
            row["systems"][system] = {"differs": apart}
            if not apart <= self.tolerance:
                row["systems"][system]["wrong"] = True
                del calls[system]
        looks = {system: look(call) for system, call in calls.items()}
        rounds = in_turn({s: calls[s] for s in self.in_question(looks)}, looks)
        for system in calls:
            times = [r[system] for r in rounds if system in r] or [looks[system]]
            row["systems"][system]["seconds"] = statistics.median(times)
        for bar in self.bars:
            row["verdicts"].append(verdict(bar, calls, row, rounds))
        return row

    def in_question(self, looks):
        """Returns the systems that bars compare. Peers that cannot be the fastest are only timed briefly."""
        found = []
        for bar in self.bars:
            others = bar.others(looks)
            least = min((looks[s] for s in others), default=0)
            found += [bar.system, *(s for s in others if looks[s] <= 2 * least)]
        return [s for s in looks if s in found or s.startswith("taffeta")]


def verdict(bar, calls, row, rounds):
    others = [s for s in bar.others(calls) if all(s in r for r in rounds)]
    found = {"system": bar.system, "bar": bar.ratio}
    if bar.system not in calls or not others:
        missing = bar.system if bar.system not in calls else " and ".join(bar.against) or "any peer"
        return found | {"verdict": "not run", "missing": missing}
    best = min(others, key=lambda s: row["systems"][s]["seconds"])
    return found | {"peer": best} | judged([r[best] / r[bar.system] for r in rounds], bar.ratio)


def judged(ratios, bar):
    ratio, (low, high) = interval(ratios)
    said = "told" if bar is None else "holds" if low >= bar else "fails" if high < bar else "open"
    return {"ratio": ratio, "interval": [low, high], "verdict": said}


def seconds(call, calls, clock=clock):
    begin = clock()
    for _ in range(calls):
        call()
    return (clock() - begin) / calls


def look(call, clock=clock):
    """Estimates the time of a call."""
    first = seconds(call, 1, clock)
    return first if first > 1 else min(first, *(seconds(call, 1, clock) for _ in range(4)))


def in_turn(calls, looks, clock=clock):
    """Measures seconds per call of each, in rounds of random order; each has some milliseconds.

    A call that is not timed comes first, since the system before has left its own data in the caches.
    """
    slice_s = 0.002 if OPTIONS.quick else 0.01
    counts = {s: max(1, min(1000, int(slice_s / max(looks[s], 1e-6)))) for s in calls}
    # Calls that take seconds are run less often: six rounds are the least that have an interval.
    rounds = max(6, min(OPTIONS.pairs, int(30 / max(sum(looks[s] * counts[s] for s in calls), 1e-9))))
    names, found, order = list(calls), [], random.Random(0)
    for _ in range(rounds):
        order.shuffle(names)
        found.append({})
        for s in names:
            if looks[s] < 0.05:
                calls[s]()
            found[-1][s] = seconds(calls[s], counts[s], clock)
    return found


def differ(a, b):
    if np.shape(a) != np.shape(b):
        return math.inf
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if not np.isfinite(a).all():
        return math.inf
    return float(np.max(np.abs(a - b), initial=0) / max(float(np.max(np.abs(b), initial=0)), 1e-30))


def show(row):
    lines = []
    for v in row["verdicts"]:
        if "ratio" in v:
            low, high = v["interval"]
            bar = "" if v["bar"] is None else f" bar {v['bar']:.2f} {v['verdict']}"
            said = f"{v['ratio']:6.2f}x [{low:.2f}, {high:.2f}] of {v['peer']:<18}{bar}"
        else:
            said = f"   not run: there is no {v['missing']}"
        system = "" if v["system"] == "taffeta" else f"   {v['system'].removeprefix('taffeta, ')}"
        if not lines:
            # A line about another system has the workload's name above it.
            lines += [row["workload"]] if system else []
            system = system or row["workload"]
        lines.append(f"{system:<48} {said}")
    times = (
        f"{s} {1e3 * v['seconds']:.4g}" if "seconds" in v else f"{s} WRONG by {v['differs']:.1g}"
        for s, v in row["systems"].items()
    )
    lines.append(f"      ms: {', '.join(times)}")
    return "\n".join(lines + [f"      {system} is left out: {reason}" for system, reason in row["left_out"].items()])
