"""A compiled call as data: everything that a report shows, and that ``report.json`` holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hologram.backends.rates import limits_of
from hologram.graph.compilation import Compilation
from hologram.graph.fusion.fused_graph import FusedGraph
from hologram.graph.report import reduction_of
from hologram.ir.devices import CPU
from hologram.ir.graph import Graph
from hologram.ir.symbolic import TYPICAL_EXTENT
from hologram.report.data.code import code_data
from hologram.report.data.graphs import fused_data, graph_data, ops_data, type_of
from hologram.report.data.kernels import kernel_data, kernel_ids, kernels_of, steps_data
from hologram.report.data.memory import memory_data
from hologram.report.data.overview import overview
from hologram.report.data.profile import add_profile
from hologram.report.data.references import References
from hologram.report.data.rewrites import Watched, rewrites_data
from hologram.version import __version__

FORMAT = 1


def program_data(lowered: Any, profile: Any = None) -> dict[str, Any]:
    """A :class:`hologram.trace.call.stages.Lowered` call. ``profile``: measured times, see :mod:`hologram.report.data.profile`.

    ``parts`` are those of the program on each device: one, unless it is placed on several. Raises ArgumentError for a profile that is none, or of
    another program.
    """
    executable = lowered.compile().executable
    references = References()
    executables = getattr(executable, "executables", None) or [executable]
    data: dict[str, Any] = {
        "format": FORMAT,
        "program": {
            "name": lowered.name,
            "precision": lowered.precision,
            "hologram": __version__,
            "sizes": dict(lowered.sizes),
            "placement": executable.placement,
        },
        "parts": [part_data(e, lowered.sizes, references) for e in executables],
    }
    data |= references.data() | {"ops": ops_data(references)}
    return with_profile(data, profile)


def with_profile(data: dict[str, Any], profile: Any) -> dict[str, Any]:
    """``data`` with the times of ``profile``, or with estimates where that is None, and what stands first in words."""
    if profile is not None:
        add_profile(data, profile)
    data["overview"] = overview(data)
    return data


def part_data(executable: Any, known: Mapping[str, int], references: References) -> dict[str, Any]:
    """The program of one device."""
    compilation: Compilation = executable.compilation
    watched = Watched(compilation)
    plan = watched.values["plan"]
    sizes = {s: known.get(s, TYPICAL_EXTENT) for s in plan.symbols}
    device = str(executable.device.name) if hasattr(executable, "device") else CPU
    bounds = limits_of(device)
    canonical = watched.values["canonical"]
    lines = [plan.graph, canonical, compilation.traced]
    found = kernels_of(plan, sizes)
    kernels = [kernel_data(f"k{i}", f, [f.plan.graph, *lines], sizes, bounds, references) for i, f in enumerate(found)]
    once = [] if plan.initializer is None else kernels_of(plan.initializer, sizes)
    prepared = [kernel_data(f"i{i}", f, [f.plan.graph, *lines], sizes, bounds, references) | {"once": True} for i, f in enumerate(once)]
    stages = [_stage("traced", compilation.traced, references), _stage("canonical", canonical, references)]
    stages.append(_stage("legalized", watched.values["legalized"], references))
    groups = watched.values["groups"]
    if groups.initializer is not None:
        stages.append(_fused("initializer", groups.initializer, kernel_ids(plan.initializer, once, "i"), references))
    stages.append(_fused("kernels", groups.main, kernel_ids(plan, found), references))
    return {
        "device": device,
        "limits": bounds.as_dict(),
        "arguments": [type_of(n) for n in compilation.traced.inputs],
        "results": [type_of(n) for n in compilation.traced.outputs],
        "stages": stages,
        "rewrites": rewrites_data(watched, references),
        "kernels": kernels + prepared,
        "code": code_data(executable, [*kernels, *prepared]),
        "steps": steps_data(plan, kernels),
        "memory": memory_data(plan, sizes, lines, references),
        "copies": [{"step": c.step, "of": type_of(c.of), "why": c.why} for c in plan.copies],
        "reduction": asdict(reduction_of(compilation.traced, canonical, plan, watched.context.rules())) | {"rules": {}},
    }


def _stage(name: str, graph: Graph, references: References) -> dict[str, Any]:
    return {"name": name} | graph_data(graph, references)


def _fused(name: str, fused: FusedGraph, kernels: Any, references: References) -> dict[str, Any]:
    return {"name": name} | fused_data(fused, kernels, references)
