"""How far a program is reduced: operations traced, canonical, and kernels launched, beside what XLA launches for the same program."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import CASES, Case

NAMES = tuple(name for name, case in CASES.items() if case.group == "pipelines")
NO_WORK = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")  # instructions of XLA that launch nothing


def measure(frameworks: list[str]) -> list[dict[str, Any]]:
    """One row for each pipeline. Nothing is run, so all share this process."""
    counters: dict[str, Callable[[Case, tuple[Any, ...]], dict[str, int]]] = {"hologram": _hologram, "jax": _jax}
    rows = []
    for name in NAMES:
        arguments = CASES[name].arguments(np.random.default_rng(0))
        row: dict[str, Any] = {"case": name}
        for framework in (f for f in counters if f in frameworks):
            row |= counters[framework](CASES[name], arguments)
        rows.append(row)
    return rows


def _hologram(case: Case, arguments: tuple[Any, ...]) -> dict[str, int]:
    import hologram as hg
    import hologram.numpy as hnp

    reduction = hg.jit(lambda *args: case.function(hnp, *args)).lower(*arguments).compile().reduction()
    return {"operations": reduction.traced, "canonical": reduction.canonical, "kernels": reduction.kernels}


def _jax(case: Case, arguments: tuple[Any, ...]) -> dict[str, int]:
    import jax
    import jax.numpy as jnp

    text = jax.jit(lambda *args: case.function(jnp, *args)).lower(*arguments).compile().as_text()
    return {"XLA's launches": entry_instructions(text)}


def entry_instructions(text: str) -> int:
    """Instructions that do work in the entry computation of an XLA module."""
    (entry,) = re.findall(r"^ENTRY .*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    names = re.findall(r"^\s*(?:ROOT )?%?\S+ = (?:\(.*?\)|\S+) ([\w-]+)\(", entry, re.MULTILINE)
    return sum(name not in NO_WORK for name in names)
