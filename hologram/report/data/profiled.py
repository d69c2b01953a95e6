"""A profile alone as the data of a report: kernels, their times and the roofline; what compiling made of the programs is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hologram.backends.limits import Limits
from hologram.backends.rates import limits_of
from hologram.ir.devices import CPU
from hologram.report.data.overview import overview
from hologram.report.data.profile import Record, as_records
from hologram.report.data.program import FORMAT
from hologram.report.data.references import References
from hologram.version import __version__


def profile_data(profile: Any) -> dict[str, Any]:
    """The data of a profile, of all programs that ran. Raises ArgumentError for what is none."""
    found = as_records(profile)
    references = References()
    programs = found.get("programs") or [{"name": "program", "device": CPU, "calls": 1}]
    parts = [_part(i, p, found["kernels"], references) for i, p in enumerate(programs)]
    data: dict[str, Any] = {
        "format": FORMAT,
        "program": {"name": "Profile", "precision": "", "hologram": __version__, "sizes": {}, "placement": None},
        "parts": sorted((p for p in parts if p["kernels"]), key=lambda p: -sum(k["seconds"] for k in p["kernels"])) or parts[:1],
        "profile": {"runs": 1},  # all calls of all programs, of which each ran as often as it did
    }
    data |= references.data() | {"ops": {}}
    return data | {"overview": overview(data)}


def _part(number: int, program: Mapping[str, Any], records: Sequence[Record], references: References) -> dict[str, Any]:
    bounds = limits_of(program.get("device", CPU))
    own = [r for r in records if r.get("program", 0) == number and r["seconds"] is not None and r.get("kind", "kernel") not in ("loop", "branch")]
    return {
        "device": program.get("device", CPU),
        "name": program.get("name", "program"),
        "limits": bounds.as_dict(),
        "kernels": [_kernel(f"k{i}", r, bounds, references) for i, r in enumerate(own)],
    }


def _kernel(id: str, record: Record, bounds: Limits, references: References) -> dict[str, Any]:
    nbytes, flops = record.get("bytes") or 0, record.get("flops") or 0
    least, bound = bounds.seconds(nbytes, flops, record.get("itemsize", 4))
    threads = record.get("threads", ())
    return {
        "id": id,
        "title": record["name"].replace("_", " "),
        "path": [],
        "times": max(1, record.get("calls", 1)),
        "places": references.places(record.get("lines", ())),
        "loops": [str(record.get("tile", {}).get("loops", ""))],
        "bytes": nbytes,
        "flops": flops,
        "least_seconds": least,
        "bound": bound if nbytes or flops else "",
        "seconds": record["seconds"],
        "calls": record.get("calls", 1),
        "threads": list(threads.values() if isinstance(threads, Mapping) else threads),
    }
