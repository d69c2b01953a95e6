"""How many processors the process may use, and who else starts as many threads."""

from __future__ import annotations

from collections.abc import Iterator

from hologram.backends.native.processors import cgroup_folders, cpu_quotas
from hologram.command_line.doctor.findings import Finding, note, ok, unknown, warning
from hologram.command_line.doctor.machine import Machine
from hologram.command_line.doctor.variables import readable

POOLS = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)  # fmt: skip
SPINNING = {"OMP_WAIT_POLICY": "active", "KMP_BLOCKTIME": "infinite", "GOMP_SPINCOUNT": "infinite"}
THROTTLED = 0.05  # of the periods, from which it is worth a warning


def affinity(machine: Machine) -> Finding:
    """Whether the process is bound to some of the processors."""
    if machine.affinity is None:
        return unknown(f"{machine.system} does not tell of an affinity; there are {machine.processors} processors")
    seen = f"{machine.affinity} of {machine.processors} processors"
    if machine.affinity >= machine.processors:
        return ok(seen)
    if machine.affinity == 1:
        return warning(
            f"the process is bound to 1 of {machine.processors} processors",
            "Kernels have one thread. Some libraries and launchers (OMP_PROC_BIND, mpirun, Slurm) bind processes without being asked.",
            "`taskset -cp $$` shows it; unset OMP_PROC_BIND and GOMP_CPU_AFFINITY, or start with `taskset -c 0-N`.",
        )
    return note(f"the process is bound to {seen}", "Kernels have as many threads as that.")


def quota(machine: Machine) -> Finding:
    """What the cgroups of the process allow."""
    if not machine.is_linux:
        return ok(f"{machine.system} has no cgroups")
    allowed = min(cpu_quotas(machine.root), default=None)
    if allowed is None:
        return ok("no quota")
    share = max(_throttled(machine), default=0.0)
    seen = f"{allowed:g} processors" + (f", throttled in {share:.0%} of the periods" if share else "")
    raise_it = "Raise the limit of the container (docker --cpus, resources.limits.cpu), to a whole number."
    if share > THROTTLED:
        return warning(seen, "In a throttled period all threads stand still until the next one, up to 0.1 s.", raise_it)
    if allowed != int(allowed):
        return warning(
            seen, "Threads are whole and the quota is not: it is used up before the end of each period, and then all threads stand still.", raise_it
        )
    if allowed < (machine.affinity or machine.processors):
        return note(seen, "Kernels have as many threads as the quota; other libraries may start one for each processor of the machine.")
    return ok(seen)


def _throttled(machine: Machine) -> Iterator[float]:
    """The shares of their periods in which cgroups of the process were throttled."""
    for folder in cgroup_folders("cpu", machine.root):
        try:
            counts = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
            periods, throttled = int(counts["nr_periods"]), int(counts["nr_throttled"])
        except (OSError, ValueError, KeyError):
            continue
        if periods:
            yield throttled / periods


def threads(machine: Machine) -> Finding:
    """The threads of kernels beside the processors."""
    from hologram.settings import from_environment

    asked, usable = from_environment(readable(machine.environment)).num_threads, machine.usable
    if asked > usable:
        return warning(
            f"{asked} threads on {usable} usable processors",
            "Threads of a kernel wait for each other: more of them than processors make it several times slower.",
            "Unset HOLOGRAM_NUM_THREADS: Hologram then uses what affinity and quota allow.",
        )
    if 0 < asked < usable:
        return note(f"{asked} threads on {usable} usable processors", "HOLOGRAM_NUM_THREADS leaves processors idle.")
    return ok(f"{asked or usable} threads on {usable} usable processors")


def thread_pools(machine: Machine) -> Finding:
    """Whether other libraries of the process (NumPy's BLAS, PyTorch, OpenMP) start more threads than there are processors, or let them spin."""
    spinning = [f"{name}={value}" for name, value in SPINNING.items() if machine.environment.get(name, "").lower() == value]
    if spinning:
        return warning(
            ", ".join(spinning),
            "Idle threads of OpenMP go on spinning after their work, on the processors that Hologram's kernels then need.",
            f"Unset {', '.join(s.partition('=')[0] for s in spinning)} where both compute in turn.",
        )
    asked = {name: int(value) for name in POOLS if (value := machine.environment.get(name, "").partition(",")[0].strip()).isdecimal()}
    usable = machine.usable
    many = [f"{name}={n}" for name, n in asked.items() if n > usable]
    if many:
        return warning(
            f"{', '.join(many)} on {usable} usable processors",
            "Libraries that compute side by side with more threads than processors wait for each other.",
            f"Set them to {usable} at most.",
        )
    if not asked and usable < (machine.affinity or machine.processors):
        return note(
            f"no limit on the threads of other libraries, which may be {machine.affinity or machine.processors} on {usable} usable processors",
            "OpenMP and BLAS libraries do not know of the quota.",
            f"Set OMP_NUM_THREADS={usable} where NumPy or PyTorch computes, too.",
        )
    return ok(", ".join(f"{name}={n}" for name, n in asked.items()) or "no variable sets the threads of other libraries")
