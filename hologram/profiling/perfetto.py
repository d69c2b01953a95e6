"""A profile in the trace-event format, which https://ui.perfetto.dev and chrome://tracing open: a track for each thread and device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hologram.profiling.records import Measured

PROCESS = 1


def trace(measured: Measured) -> dict[str, Any]:
    """The trace as JSON has it: complete events ("X") whose times are microseconds, and the names of tracks ("M")."""
    tracks: dict[str, int] = {}
    events = [*_events(measured, tracks), *_phases(measured, tracks)]
    events.sort(key=lambda e: (e["ts"], -e["dur"]))
    names = [_metadata("process_name", 0, "Hologram")]
    names += [_metadata("thread_name", number, name) for name, number in tracks.items()]
    return {"traceEvents": [*names, *events], "displayTimeUnit": "ns"}


def _events(m: Measured, tracks: dict[str, int]) -> Iterator[dict[str, Any]]:
    for e in m.events:
        args: dict[str, Any] = {"program": m.programs[e.program].name}
        if e.kernel is not None:
            k = m.kernels[e.kernel]
            known = {"bytes": k.bytes, "flops": k.flops, "loops": k.tile.get("loops"), "roofline": m.share_of_roofline(k)}
            args |= {name: value for name, value in known.items() if value is not None}
            args |= {"lines": ", ".join(f"{file}:{line}" for file, line in k.lines)} if k.lines else {}
        yield _complete(e.name, e.kind, e.start, e.seconds, _track(e.thread, tracks), args)


def _phases(m: Measured, tracks: dict[str, int]) -> Iterator[dict[str, Any]]:
    for p in m.phases:
        yield _complete(p.name, "compile", p.start, p.seconds, _track(p.thread, tracks), {})


def _track(thread: str, tracks: dict[str, int]) -> int:
    return tracks.setdefault(thread, len(tracks) + 1)


def _complete(name: str, kind: str, start: float, seconds: float, track: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "cat": kind, "ph": "X", "ts": start * 1e6, "dur": seconds * 1e6, "pid": PROCESS, "tid": track, "args": args}


def _metadata(what: str, track: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": PROCESS, "tid": track, "args": {"name": name}}
