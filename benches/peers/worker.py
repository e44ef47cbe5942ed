"""One system on one workload, in a process of its own: spinning threads of one system would slow the next one down.

    worker.py WORKLOAD SYSTEM RESULTS.npz

Writes its first results to the file, warms up, prints the seconds of the first call and of a later one, and then times
calls for as long as each line of standard input says. The line `memory` asks for the memory that a call takes.
"""

import ctypes
import gc
import os
import statistics
import sys
import time

import numpy as np

from systems import WORKLOADS, start

# On a busy machine the processor's time on one thread is more reliable than the clock.
clock = time.process_time if os.environ.get("OMP_NUM_THREADS") == "1" else time.perf_counter


def resident(name):
    """Returns a line of /proc/self/status, in bytes."""
    with open("/proc/self/status") as status:
        return 1024 * int(next(line.split()[1] for line in status if line.startswith(name)))


def growth(call):
    """Returns the bytes by which a call makes this process grow at most."""
    gc.collect()
    if hasattr(call, "forget"):
        call.forget()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")  # the peak restarts here
    before = resident("VmRSS")
    call()
    return resident("VmHWM") - before


def memory(call):
    """Returns the bytes that a call allocates: results included, inputs not.

    Everything is compiled by then. Free memory is given back to the system before, so that it counts when it is taken
    again; JAX frees late, so that not every call shows it.
    """
    return max(growth(call) for _ in range(5))


def main():
    number, system, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    workload = WORKLOADS[number]
    begin = time.perf_counter()
    call, result = start(workload, system, workload.inputs())
    call()
    given = result()
    np.savez(path, *(given if isinstance(given, list) else [np.array(given)]))
    del given
    first = time.perf_counter() - begin
    for _ in range(3):
        begin = time.perf_counter()
        call()
        once = time.perf_counter() - begin
        if once > 1:
            break
    print(first, once, flush=True)
    for line in sys.stdin:
        if line.strip() == "memory":
            print(memory(call), flush=True)
            continue
        budget, times = float(line), []
        end = time.perf_counter() + budget
        while not times or time.perf_counter() < end and len(times) < 200:
            begin = clock()
            call()
            times.append(clock() - begin)
        print(statistics.median(times), flush=True)


if __name__ == "__main__":
    main()
