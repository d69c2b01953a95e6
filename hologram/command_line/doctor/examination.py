"""The list of checks, and how they are run: one that fails says so, and hides no other."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hologram.command_line.doctor import clock, disk, drivers, instructions, load, memory, power, processors, program, variables, versions
from hologram.command_line.doctor.findings import Finding, unknown
from hologram.command_line.doctor.machine import Machine
from hologram.command_line.result import CommandError

Check = Callable[[Machine], Finding]

CHECKS: Mapping[str, Check] = {
    "power": power.governor,
    "boost": power.boost,
    "affinity": processors.affinity,
    "cpu quota": processors.quota,
    "threads": processors.threads,
    "other thread pools": processors.thread_pools,
    "busy processes": load.busy_processes,
    "stolen time": load.stolen_time,
    "memory": memory.available,
    "huge pages": memory.huge_pages,
    "cache folder": disk.cache_folder,
    "cache disk": disk.cache_disk,
    "cache size": disk.cache_size,
    "vectors": instructions.vectors,
    "llvm host": instructions.llvm_host,
    "packages": versions.packages,
    "python": versions.python,
    "imports": program.imports,
    "test program": program.runs,
    "native calls": versions.native_calls,
    "cuda": drivers.cuda,
    "opencl": drivers.opencl,
    "metal": drivers.metal,
    "clock": clock.clock,
    "variables": variables.values,
    "unknown variables": variables.names,
    "slow settings": variables.slow,
}


def examine(machine: Machine, only: Sequence[str] | None = None, checks: Mapping[str, Check] = CHECKS) -> list[Finding]:
    """The findings of all checks, or of those named ``only``. Raises CommandError for a name of none."""
    for name in only or ():
        if name not in checks:
            alike = difflib.get_close_matches(name, checks, n=1)
            raise CommandError(f"there is no check {name!r}; {f'do you mean {alike[0]!r}?' if alike else 'there is ' + ', '.join(checks)}")
    return [replace(_found(check, machine), check=name) for name, check in checks.items() if not only or name in only]


def _found(check: Check, machine: Machine) -> Finding:
    try:
        return check(machine)
    except Exception as e:
        return unknown(f"the check failed: {type(e).__name__}: {e}")
