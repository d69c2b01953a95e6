"""How many threads may usefully run: what affinity and the cgroup's quota leave of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def usable_processors(root: Path = Path("/"), count: int | None = None) -> int:
    """Processors that this process may use, at least 1. ``root`` is where /proc and /sys are looked for; ``count`` is how many affinity
    allows; None asks the system."""
    if count is None:
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for quota in cpu_quotas(root):
        count = min(count, -int(-quota // 1))  # half a processor is one thread
    return max(1, count)


def cpu_quotas(root: Path = Path("/")) -> Iterator[float]:
    """Processors allowed by each cgroup that holds this process."""
    for folder in cgroup_folders("cpu", root):
        yield from _quota_of(folder)


def cgroup_folders(controller: str, root: Path = Path("/")) -> Iterator[Path]:
    """Folders of the cgroups that hold this process, innermost first: those of version 2, and of a controller of version 1."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top = root / "sys/fs/cgroup"
        elif controller in controllers.split(","):
            top = root / "sys/fs/cgroup" / controllers
            top = top if top.exists() else root / "sys/fs/cgroup" / controller
        else:
            continue
        here = top / path.strip("/")
        for folder in (here, *here.parents):
            yield folder
            if folder == top:
                break


def _quota_of(folder: Path) -> Iterator[float]:
    try:
        quota, period = (folder / "cpu.max").read_text().split()  # version 2
    except (OSError, ValueError):
        try:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))  # version 1
        except OSError:
            return
    if quota not in ("max", "-1"):
        yield int(quota) / int(period)
