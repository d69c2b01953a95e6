"""Why a jitted function compiled again: what of a call differs from the most similar call before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hologram.trace.call.signature import Call, LeafType, Signature


class Record:
    """What is remembered of a call that was compiled: no values of leaves, only their types."""

    __slots__ = ("paths", "types", "treedef", "statics", "precision")

    def __init__(self, signature: Signature, call: Call) -> None:
        self.paths = signature.paths_of(call)
        self.types = call.types
        self.treedef = call.treedef
        self.statics = {place if isinstance(place, str) else signature.parameter(place): value for place, value in call.statics.items()}


def explain(name: str, record: Record, earlier: Iterable[Record]) -> str:
    """One line a difference between ``record`` and the earlier call that differs least."""
    candidates = [_differences(old, record) for old in reversed(list(earlier))]  # of equally similar ones the latest
    if not candidates:
        return f"{name}: first call; nothing had been compiled for it"
    least = min(candidates, key=len)
    if not least:
        return f"{name}: compiled again for the same arguments: settings have changed, the code had been evicted, or sizes need another program"
    return "\n".join([f"{name}: compiled again, because", *[f"  {line}" for line in least]])


def _differences(old: Record, new: Record) -> list[str]:
    absent = "(not given)"
    lines = [f"static {n} changed: {old.statics.get(n, absent)!r} -> {new.statics.get(n, absent)!r}" for n in _changed(old.statics, new.statics)]
    if old.treedef != new.treedef:
        gone, come = [p for p in old.paths if p not in new.paths], [p for p in new.paths if p not in old.paths]
        lines += [f"{p} is new" for p in come] + [f"{p} is gone" for p in gone]
        if not gone and not come:
            lines.append(f"the structure of the arguments changed: {old.treedef} -> {new.treedef}")
    before = dict(zip(old.paths, old.types, strict=True))
    for path, now in zip(new.paths, new.types, strict=True):
        if path in before:
            lines += _leaf_differences(path, before[path], now)
    return lines


def _changed(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [n for n in dict.fromkeys([*old, *new]) if n not in old or n not in new or type(old[n]) is not type(new[n]) or old[n] != new[n]]


def _leaf_differences(path: str, old: LeafType, new: LeafType) -> list[str]:
    lines = []
    if old.weak != new.weak:
        return [f"{path} changed: {old} -> {new}"]
    if old.dtype is not new.dtype:
        lines.append(f"{path} changed element type: {old.dtype} -> {new.dtype}")
    if old.shape != new.shape:
        lines.append(f"{path} changed shape: {list(old.shape)} -> {list(new.shape)}")
    return lines
