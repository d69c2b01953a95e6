"""Measured times in a report: those of a profile are joined to the kernels of the program.

A profile's ``kernels`` are records of steps, in the order of each program's plan: kernels and copies in the order of
:attr:`hologram.graph.execution_plan.ExecutionPlan.kernels`, beside loops, branches and calls of the host. A record has ``seconds`` and ``calls``, of
all runs together, ``threads``, the seconds of each, ``program``, the number of its program, and ``parent``, that of the loop or branch around it
among all records. Small kernels in loops have no seconds of their own: they share those of the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hologram.errors import ArgumentError

_KERNELS = ("kernel", "copy")
Record = Mapping[str, Any]


def as_records(profile: Any) -> Record:
    """A profile as plain data: a dict, or what has ``as_dict()``. Raises ArgumentError for another."""
    found = profile.as_dict() if hasattr(profile, "as_dict") else profile
    kernels = found.get("kernels") if isinstance(found, Mapping) else None
    if not isinstance(kernels, Sequence) or not all(isinstance(k, Mapping) and "seconds" in k and "name" in k for k in kernels):
        raise ArgumentError("a profile has kernels, each with a name and seconds: give what hg.profile made, or its as_dict()")
    return found


def add_profile(data: dict[str, Any], profile: Any) -> None:
    """Gives kernels their ``seconds`` in one run, ``calls`` in all runs, and ``threads``. Raises ArgumentError for a profile of another program."""
    found = as_records(profile)
    runs = []
    for part in data["parts"]:
        kernels = [k for k in part["kernels"] if not k.get("once")]
        records = next(_programs_like(kernels, found["kernels"]), None)
        if records is None:
            raise ArgumentError(f"the profile has no program with the {len(kernels)} kernels of {data['program']['name']}")
        runs.append(_runs(kernels, records, found.get("programs") or ()))
        _join(kernels, records, runs[-1])
    data["profile"] = {"runs": max(runs, default=1)}


def _programs_like(kernels: Sequence[dict[str, Any]], records: Sequence[Record]) -> Iterator[list[Record]]:
    """The records of programs that have these kernels, those first that took the most time."""
    programs: dict[Any, list[Record]] = {}
    for r in records:
        programs.setdefault(r.get("program", 0), []).append(r)
    for own in sorted(programs.values(), key=lambda own: -sum(r["seconds"] or 0.0 for r in own)):
        steps = [r for r in own if r.get("kind", "kernel") in _KERNELS]
        if len(steps) == len(kernels) and all(_may_be(k, r) for k, r in zip(kernels, steps, strict=True)):
            yield [{**r, "loop": None if r.get("parent") is None else records[r["parent"]]} for r in steps]


def _may_be(kernel: Mapping[str, Any], record: Record) -> bool:
    tile = record.get("tile")
    iterations = tile.get("iterations") if isinstance(tile, Mapping) else None
    return iterations is None or str(iterations) == kernel["iterations"]


def _runs(kernels: Sequence[Mapping[str, Any]], records: Sequence[Record], programs: Sequence[Record]) -> int:
    """How often the program ran: by its record, or else by those of kernels outside of loops."""
    number = records[0].get("program", 0) if records else len(programs)
    if number < len(programs) and programs[number].get("calls"):
        return int(programs[number]["calls"])
    calls = [r["calls"] // k["times"] for k, r in zip(kernels, records, strict=True) if not k["path"] and r.get("calls")]
    return max(1, max(calls, default=1))


def _join(kernels: Sequence[dict[str, Any]], records: Sequence[Record], runs: int) -> None:
    shared: dict[int, list[dict[str, Any]]] = {}
    left: dict[int, float] = {}
    for k, r in zip(kernels, records, strict=True):
        loop = r.get("loop")
        if loop is not None:
            left.setdefault(id(loop), loop["seconds"] or 0.0)
        if r["seconds"] is None:
            k["seconds"] = 0.0
            shared.setdefault(id(loop), []).append(k)
            continue
        threads = r.get("threads", ())
        k["seconds"], k["calls"] = r["seconds"] / runs, r.get("calls", runs)
        k["threads"] = [t / runs for t in (threads.values() if isinstance(threads, Mapping) else threads)]
        if loop is not None:
            left[id(loop)] -= r["seconds"]
    for key, ks in shared.items():  # what a loop took beside kernels that are timed, by the least that each of the others needs
        weights = [max(k["least_seconds"] * k["times"], 1e-12) for k in ks]
        for k, weight in zip(ks, weights, strict=True):
            k["seconds"] = max(0.0, left.get(key, 0.0)) / runs * weight / sum(weights)
            k["untimed"] = True
