"""Command-line options of `sparse.py`. Imported before any library that starts threads."""

import argparse
import os
import time


def parsed():
    parser = argparse.ArgumentParser(description="Structured tensors against peers")
    parser.add_argument(
        "--only", default="", help="workloads whose name has this in it; several parts are separated by |"
    )
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="short turns: for looking, not for claims")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", default=None)
    return parser.parse_args()


OPTIONS = parsed()
THREADS = OPTIONS.threads
# All systems run in one process: waiting threads must not spin.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(THREADS)
os.environ |= {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0", "KMP_DUPLICATE_LIB_OK": "TRUE"}

# On a busy machine the processor's time on one thread is more reliable than the clock.
clock = time.process_time if THREADS == 1 else time.perf_counter


def rows_or(alone, together):
    """Returns the schedule for this number of threads."""
    return alone if THREADS == 1 else together
