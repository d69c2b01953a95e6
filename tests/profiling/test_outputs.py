"""Profiles as tables, as traces in the trace-event format, and as plain data."""

from __future__ import annotations

import builtins
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.limits import Limits
from hologram.errors import ArgumentError
from hologram.profiling import table
from hologram.profiling.profile import Profile
from hologram.profiling.records import Kernel, Machine, Measured, Program

X = np.linspace(-1, 1, 400 * 300, dtype=np.float32).reshape(400, 300)
ROUNDING = 1e-3  # microseconds


@pytest.fixture(scope="module")
def profile() -> Profile:
    @hg.jit
    def model(x: Any, w: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            return hnp.tanh(c @ w), hnp.sum(c)

        return hg.scan(step, x, None, length=8)[1] + hnp.max(x)

    found: Profile = hg.profile(model, calls=3)(X, np.full((300, 300), 0.01, np.float32))
    return found


def test_tables_are_sorted_by_time(profile: Profile) -> None:
    text = profile.table().plain()
    lines = text.splitlines()
    assert "3 calls of 1 program," in lines[0] and lines[1].split()[:3] == ["kernel", "calls", "total"]
    rows = profile.table().rows
    found = [row.kernel.seconds or 0.0 for row in rows if not row.is_part]
    assert found == sorted(found, reverse=True)
    assert any("scan (24 steps)" in row.cells[0] for row in rows) and any(row.is_part and "matmul" in row.cells[0] for row in rows)
    assert "test_outputs.py:" in text and "compiling: " in text and "arrays: peak" in text


def test_tables_are_drawn_by_rich_where_it_is(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    assert "┃" in str(profile) and "scan (24" in str(profile.table())
    real = builtins.__import__

    def without_rich(name: str, *rest: Any) -> Any:
        if name.startswith("rich"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    assert str(profile) == profile.table().plain()


@pytest.mark.parametrize(("seconds", "text"), [(None, ""), (2.0, "2 s"), (0.0125, "12.5 ms"), (3.25e-6, "3.25 µs"), (4e-8, "40 ns"), (0.0, "0 ns")])
def test_times_have_the_unit_that_suits_them(seconds: float | None, text: str) -> None:
    assert table.seconds(seconds) == text


def test_traces_are_trace_events(profile: Profile, tmp_path: Path) -> None:
    """The format as its specification has it: what viewers rely on. Events of one track lie in one another or apart."""
    profile.to_perfetto(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert set(trace) == {"traceEvents", "displayTimeUnit"} and trace["displayTimeUnit"] in ("ms", "ns")
    tracks: dict[int, list[dict[str, Any]]] = defaultdict(list)
    names = {}
    for e in trace["traceEvents"]:
        assert isinstance(e["name"], str) and isinstance(e["pid"], int) and isinstance(e["tid"], int)
        if e["ph"] == "M":
            assert e["name"] in ("process_name", "thread_name") and isinstance(e["args"]["name"], str)
            names[e["tid"]] = e["args"]["name"]
            continue
        assert e["ph"] == "X" and isinstance(e["cat"], str) and isinstance(e["args"], dict)
        assert e["ts"] >= -ROUNDING and e["dur"] >= 0
        tracks[e["tid"]].append(e)
    assert set(tracks) <= set(names) and "MainThread" in names.values()
    for events in tracks.values():
        open_: list[float] = []
        for e in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            while open_ and open_[-1] <= e["ts"] + ROUNDING:
                open_.pop()
            assert not open_ or e["ts"] + e["dur"] <= open_[-1] + ROUNDING, e
            open_.append(e["ts"] + e["dur"])
    main = tracks[next(t for t, name in names.items() if name == "MainThread")]
    assert {"call", "launch", "compile"} <= {e["cat"] for e in main}
    scans = [e for e in main if e["name"] == "scan"]
    assert len(scans) == 3 and "test_outputs.py" in scans[0]["args"]["lines"] and scans[0]["args"]["program"] == "model"


def test_plain_data(profile: Profile) -> None:
    data = profile.as_dict()
    assert json.loads(json.dumps(data)) == json.loads(json.dumps(data)) and data["version"] == 1
    assert data["programs"] == [{"name": "model", "device": "cpu", "calls": 3, "seconds": profile.programs[0].seconds}]
    assert len(data["kernels"]) == len(profile.kernels) and data["seconds"] == profile.seconds
    scan = next(k for k in data["kernels"] if k["name"] == "scan")
    assert scan["kind"] == "loop" and scan["iterations"] == 24 and scan["lines"][0][0] == __file__ and scan["roofline"] is None
    product = next(k for k in data["kernels"] if "matmul" in k["name"])
    assert product["calls"] == 24 and product["flops"] > 2 * 400 * 300 * 300 and product["roofline"] > 0 and product["tile"]["accumulators"] > 1
    assert data["kernels"][product["parent"]] == scan
    assert set(data["memory"]) == {"before", "after", "peak", "cached"} and data["machine"]["threads"] >= 1
    assert {p["name"] for p in data["phases"]} >= {"tracing", "scheduling"}


def test_the_roof_is_the_lower_of_two() -> None:
    """What a kernel could take at least: its bytes at the memory's rate, or its operations at the processor's."""
    m = Measured(1.0, Machine(Limits(1e6, ((0, 1e7),)), 2), [Program("f", "cpu", 1, 1.0)])

    def share(**of: Any) -> float | None:
        made = dict(seconds=10.0, bytes=400, flops=500, itemsize=4) | of
        k = Kernel(
            "k", "kernel", 0, 0, 1, made["seconds"], made["seconds"], 0.0, {}, 1, 1, made["bytes"], made["flops"], [], {}, None, made["itemsize"]
        )
        return m.share_of_roofline(k)

    assert share() == pytest.approx(0.4) and share(flops=8000) == pytest.approx(0.8) and share(bytes=None) == pytest.approx(0.05)
    assert share(flops=8000, itemsize=8) == pytest.approx(1.6)
    assert share(bytes=None, flops=None) is None and share(seconds=None) is None
    m.machine = Machine(None, 2)
    assert share() is None


def test_pages_need_what_draws_them(profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package that draws pages is asked late, by name."""
    import sys
    import types

    report: Any = types.ModuleType("hologram.report")
    monkeypatch.setitem(sys.modules, "hologram.report", report)
    with pytest.raises(ArgumentError, match="hologram.report"):
        profile.html(tmp_path / "p.html")
    report.write_profile = lambda p, path: Path(path).write_text(p.programs[0].name)
    profile.html(tmp_path / "p.html")
    assert (tmp_path / "p.html").read_text() == "model"
