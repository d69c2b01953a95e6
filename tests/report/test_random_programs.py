"""Reports of random programs: whatever the graph, the data fits together and makes a page."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings

from hologram.backends.build import build
from hologram.ir.devices import backend
from hologram.ir.graph import Graph
from hologram.report.data.graphs import ops_data
from hologram.report.data.program import part_data
from hologram.report.data.references import References
from tests.support.graphs.random_graphs import exact_graphs


def computed_before(stage: dict[str, Any]) -> None:
    """Each group reads what it computes, what it is given, and values of groups before it."""
    known: set[int] = set()
    for g in stage["groups"]:
        for i in g["nodes"]:
            for x in stage["nodes"][i].get("in", ()):
                assert x in g["nodes"] or x in known or stage["nodes"][x]["op"] in ("input", "leaf")
        known.update(g["values"])


@settings(max_examples=25)
@given(exact_graphs())
def test_data_of_random_programs_fits_together(graph: Graph) -> None:
    references = References()
    executable = build(backend("cpu"), graph, "standard")
    part = part_data(executable, {}, references)
    assert json.loads(json.dumps(part, allow_nan=False)) == part
    for stage in part["stages"]:
        assert {n["op"] for n in stage["nodes"]} <= ops_data(references).keys()
        assert all(x < i for i, n in enumerate(stage["nodes"]) for x in n.get("in", ()))
        if "groups" in stage:
            computed_before(stage)
    memory = part["memory"]
    assert max(memory["alive"], default=0) == memory["lower_bound"] <= memory["arena"]
    assert sum(-(-memory["buffers"][i]["bytes"] // 64) * 64 for i in memory["at_peak"]) == memory["lower_bound"]
    assert len([k for k in part["kernels"] if not k.get("once")]) == executable.reduction().kernels
    assert all(k["bytes"] <= sum_of_buffers(k) for k in part["kernels"])
    for s in part["rewrites"]["steps"]:
        assert s["before"] != s["after"] and set(s["where"]) <= set("abcdefghijklmnopqrstuvwxyz")


def sum_of_buffers(kernel: dict[str, Any]) -> int:
    """The bytes of all arrays of a kernel; those that are read and written count twice."""
    total = 0
    for b in kernel["buffers"]:
        dtype, _, shape = b["type"].partition("[")
        size = 1
        for n in filter(None, shape.rstrip("]").split(", ")):
            size *= int(n)
        total += size * 16 * (2 if b["role"] == "inout" else 1) if dtype.startswith("complex") else size * 8 * (2 if b["role"] == "inout" else 1)
    return total
