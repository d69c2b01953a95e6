"""Who else uses the processors."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hologram.command_line.doctor.findings import Finding, note, ok, unknown, warning
from hologram.command_line.doctor.machine import Machine

SECONDS = 0.25  # between two looks at what has been used
BUSY = 0.5  # processors of others, from which kernels wait for them
SOME = 0.1
STOLEN = 0.05  # of the time
NAMED = 3  # processes
STEAL = 7  # the column of /proc/stat
ADVICE = "End them, or give Hologram fewer threads (HOLOGRAM_NUM_THREADS): a kernel is as fast as its slowest thread."


class Process(NamedTuple):
    """What a process has used: ticks of a processor."""

    name: str
    parent: int
    ticks: int


def busy_processes(machine: Machine) -> Finding:
    """Processors that other processes use at the moment."""
    if not machine.is_linux:
        return _by_average(machine)
    before, total_before = _processes(machine), sum(_ticks(machine))
    machine.pause(SECONDS)
    after, total = _processes(machine), sum(_ticks(machine)) - total_before
    if total <= 0:
        return unknown("/proc/stat does not tell how the time is used")
    own = _family(machine.process, after)
    used = {pid: (p.ticks - before[pid].ticks) / total * machine.processors for pid, p in after.items() if pid in before and pid not in own}
    others = sum(used.values())
    most = sorted((pid for pid in used if used[pid] > 0), key=lambda pid: -used[pid])[:NAMED]
    seen = f"other processes use {others:.1f} of {machine.processors} processors"
    seen += f": {', '.join(f'{after[pid].name} ({pid}) {used[pid]:.1f}' for pid in most)}" if most and others >= SOME else ""
    if others >= BUSY:
        return warning(seen, "Threads of kernels wait for processors that others have.", ADVICE)
    return note(seen, "Timings vary.") if others >= SOME else ok(seen)


def _by_average(machine: Machine) -> Finding:
    try:
        load = machine.load()
    except (OSError, AttributeError):
        return unknown(f"{machine.system} does not tell the load")
    seen = f"the average load of the last minute is {load:.1f} on {machine.processors} processors"
    if load > machine.processors / 2:
        return warning(seen, "Threads of kernels wait for processors that others have.", ADVICE)
    return ok(seen)


def _processes(machine: Machine) -> dict[int, Process]:
    found = {}
    for folder in (machine.root / "proc").glob("[0-9]*"):
        stat = machine.text(folder / "stat")
        if stat is not None and ")" in stat:
            name, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
            found[int(folder.name)] = Process(name, int(rest[1]), int(rest[11]) + int(rest[12]))
    return found


def _family(process: int, processes: dict[int, Process]) -> set[int]:
    """The process and those that it has started."""
    family = {process}
    while more := {pid for pid, p in processes.items() if p.parent in family} - family:
        family |= more
    return family


def _ticks(machine: Machine) -> list[int]:
    """How the time of all processors was used since they were started, by the columns of /proc/stat: guests' time is in the first two."""
    line = (machine.text(Path("proc/stat")) or "").partition("\n")[0].split()
    return [int(n) for n in line[1:9]] if line[:1] == ["cpu"] else []


def stolen_time(machine: Machine) -> Finding:
    """The share of the time that a virtual machine's host gives to others."""
    if not machine.is_linux:
        return unknown(f"{machine.system} does not tell what a host takes of a virtual machine's time")
    before = _ticks(machine)
    machine.pause(SECONDS)
    spent = [b - a for a, b in zip(before, _ticks(machine), strict=True)]
    if len(spent) <= STEAL or sum(spent) <= 0:
        return unknown("/proc/stat does not tell how the time is used")
    share = spent[STEAL] / sum(spent)
    if share > STOLEN:
        return warning(
            f"the host takes {share:.0%} of the time",
            "The virtual machine shares its processors with others; kernels wait for threads that do not run.",
            "Take a machine with processors of its own, or measure at another time.",
        )
    return ok(f"the host takes {share:.0%} of the time")
