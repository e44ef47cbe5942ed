"""One system on one workload, in a process of its own: threads of one system that still spin would slow the next one down.

    worker.py WORKLOAD SYSTEM RESULT.npy

Writes its first result to the file, warms up, prints how long all that took, and then times calls for as long as each line of
standard input says.
"""

import os
import statistics
import sys
import time

import numpy as np

from workloads import WORKLOADS, start

# On a busy machine the processor's time on one thread says more than the clock.
clock = time.process_time if os.environ.get("OMP_NUM_THREADS") == "1" else time.perf_counter


def main():
    number, system, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    workload = WORKLOADS[number]
    begin = time.perf_counter()
    call, result = start(workload, system, workload.inputs())
    call()
    np.save(path, np.array(result()))
    first = time.perf_counter() - begin
    for _ in range(3):
        begin = time.perf_counter()
        call()
        once = time.perf_counter() - begin
        if once > 1:
            break
    print(first, once, flush=True)
    for line in sys.stdin:
        budget, times = float(line), []
        end = time.perf_counter() + budget
        while not times or time.perf_counter() < end and len(times) < 200:
            begin = clock()
            call()
            times.append(clock() - begin)
        print(statistics.median(times), flush=True)


main()
