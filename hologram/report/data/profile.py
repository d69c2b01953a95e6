"""Measured times in a report: those of a profile are joined to the kernels of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hologram.errors import ArgumentError


def entries_of(profile: Any) -> list[Mapping[str, Any]]:
    """The kernels of a profile: a dict, or what has ``as_dict()``. Raises ArgumentError for another."""
    found = profile.as_dict() if hasattr(profile, "as_dict") else profile
    kernels = found.get("kernels") if isinstance(found, Mapping) else None
    if not isinstance(kernels, Sequence) or not all(isinstance(k, Mapping) and "seconds" in k and "name" in k for k in kernels):
        raise ArgumentError("a profile has kernels, each with a name and seconds: give what hg.profile made, or its as_dict()")
    return list(kernels)


def add_profile(data: dict[str, Any], profile: Any) -> None:
    """Gives kernels their ``seconds`` in one run, ``calls`` in all runs, and ``threads``. Raises ArgumentError for a profile of another program."""
    kernels = [k for part in data["parts"] for k in part["kernels"]]
    entries = entries_of(profile)
    found = _matched(kernels, entries)
    if not found:
        raise ArgumentError(f"the profile's {len(entries)} kernels are none of the {len(kernels)} of {data['program']['name']}")
    runs = max(1, min((e.get("calls", 1) // (k["times"] * len(ks)) for e, ks in found for k in ks if not k["path"]), default=1))
    for entry, ks in found:
        weights = [k["times"] * max(k["least_seconds"], 1e-12) for k in ks]
        for k, weight in zip(ks, weights, strict=True):
            share = weight / sum(weights)
            k["seconds"] = entry["seconds"] * share / runs
            k["calls"] = entry.get("calls", runs)
            k["threads"] = [t * share / runs for t in entry.get("threads", ())]
    data["profile"] = {"runs": runs, "matched": sum(len(ks) for _, ks in found)}


def _matched(kernels: Sequence[dict[str, Any]], entries: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], list[dict[str, Any]]]]:
    """Entries, each with the kernels that it measured: by id or by title, and by order where no name fits and there are as many of both."""
    for key in ("id", "title"):
        by_name: dict[str, list[dict[str, Any]]] = {}
        for k in kernels:
            by_name.setdefault(k[key], []).append(k)
        if any(e["name"] in by_name for e in entries):
            return [(e, by_name[e["name"]]) for e in entries if e["name"] in by_name]
    if len(entries) == len(kernels):
        return [(e, [k]) for e, k in zip(entries, kernels, strict=True)]
    return []
