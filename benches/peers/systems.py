"""All workloads, and the start of each system on one."""

from gradients import BACKWARD
from operators import OPERATORS
from workloads import FORWARD, jax_jit, torch_call, torch_compile

WORKLOADS = FORWARD + OPERATORS + BACKWARD


def start(workload, system, arrays):
    """Returns the function of a system to be timed, and the one that returns its results."""
    if system in getattr(workload, "schedules", ()):
        return workload.scheduled(system, *arrays)
    if system in ("by hand, fused", "gcc -O3, OpenMP"):
        return workload.by_hand(*arrays)
    if system in ("torch", "torch.compile", "jax"):
        made = getattr(workload, system.split(".")[0])(*arrays)
        if callable(made[1]):
            return made
        if workload in BACKWARD:
            return workload.differentiated(system, *made, arrays[-1])
        return {"torch": torch_call, "torch.compile": torch_compile, "jax": jax_jit}[system](*made)
    return getattr(workload, system)(*arrays)
