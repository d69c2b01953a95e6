"""How much memory there is, and in pages of which size."""

from __future__ import annotations

import re

from hologram.backends.native.processors import cgroup_folders
from hologram.command_line.doctor.findings import Finding, note, ok, unknown, warning
from hologram.command_line.doctor.machine import Machine

LITTLE = 512 * 2**20  # bytes: less than a compiler and some arrays take
SHARE = 0.1  # of all memory
UNLIMITED = 2**60  # version 1 of cgroups says a huge number where there is no limit
_NO_SWAPPING = "End other programs, or set HOLOGRAM_MEMORY_LIMIT: an OutOfMemory error is better than a process that swaps or is killed."


def available(machine: Machine) -> Finding:
    """Memory that is free, within the limit of the cgroups."""
    if machine.is_mac:
        return _mac(machine)
    if not machine.is_linux:
        return unknown(f"{machine.system} is not asked for its memory")
    known = {name: int(n) * 1024 for name, n in re.findall(r"^(\w+): +(\d+) kB$", machine.text("proc/meminfo") or "", re.MULTILINE)}
    if "MemTotal" not in known:
        return unknown("/proc/meminfo does not tell the memory")
    total, free = known["MemTotal"], known.get("MemAvailable", known.get("MemFree", 0))
    limit, used = _limit(machine)
    seen = f"{_gib(free)} of {_gib(total)} available"
    if limit is not None and limit < total:
        total, free = limit, min(free, max(0, limit - used))
        seen += f"; the limit of the cgroup is {_gib(limit)}, {_gib(free)} of it available"
    if free < min(LITTLE, total / 2) or free < SHARE * total:
        return warning(seen, "Arrays that do not fit are swapped to the disk, or the process is killed.", _NO_SWAPPING)
    if limit is not None and limit == total:
        return note(seen, "A process beyond the limit is killed without an error.", _NO_SWAPPING)
    return ok(seen)


def _mac(machine: Machine) -> Finding:
    said = machine.command(["sysctl", "-n", "hw.memsize"])
    if not said:
        return unknown("sysctl does not tell the memory")
    return ok(f"{_gib(int(said))} in all; macOS compresses what does not fit")


def _limit(machine: Machine) -> tuple[int | None, int]:
    """The least limit of the cgroups of the process, and what they use of it."""
    found: list[tuple[int, int]] = []
    for folder in cgroup_folders("memory", machine.root):
        for limit_name, used_name in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            limit, used = machine.text(folder / limit_name), machine.text(folder / used_name)
            if limit is not None and limit.isdecimal() and int(limit) < UNLIMITED:
                found.append((int(limit), int(used) if used is not None and used.isdecimal() else 0))
    return min(found, default=(None, 0))


def _gib(nbytes: int) -> str:
    return f"{nbytes / 2**30:.1f} GiB"


def huge_pages(machine: Machine) -> Finding:
    """Whether large arrays may lie in huge pages, which Hologram asks for."""
    if not machine.is_linux:
        return ok(f"Hologram asks for huge pages on Linux alone, not on {machine.system}")
    path = "sys/kernel/mm/transparent_hugepage/enabled"
    state = machine.text(path)
    chosen = re.search(r"\[(\w+)\]", state or "")
    if chosen is None:
        return unknown("the kernel does not tell of transparent huge pages")
    if chosen[1] == "never":
        return warning(
            "transparent huge pages are off",
            "First writes to large arrays take a page fault every 4 KiB, and strided kernels miss the TLB.",
            f"echo madvise | sudo tee /{path}",
        )
    return ok(f"transparent huge pages: {chosen[1]}")
