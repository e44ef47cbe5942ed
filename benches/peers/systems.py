"""All workloads, and how each system starts on one."""

from gradients import BACKWARD
from operators import OPERATORS
from workloads import FORWARD, jax_jit, torch_call, torch_compile

WORKLOADS = FORWARD + OPERATORS + BACKWARD


def start(workload, system, arrays):
    """The function to be timed of a system, and what gives its results."""
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
