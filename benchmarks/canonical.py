"""How fast canonical reduction is: nodes a second, for programs in which few rules fire and in which one fires at almost every node.

``python -m benchmarks.canonical`` prints a line for each program and length.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from hologram import dtypes
from hologram.graph.pass_manager import Context
from hologram.graph.pipeline import canonicalise
from hologram.graph.rewrite.rewriter import Rewriter
from hologram.ir.graph import Graph
from hologram.ir.node import Node

LENGTHS = (1_000, 10_000, 100_000)


def _plain(b: Rewriter, x: Node, y: Node, i: int) -> Node:
    return b.make(("sub", "max", "div", "min")[i % 4], x, y)


def _redundant(b: Rewriter, x: Node, y: Node, i: int) -> Node:
    match i % 4:
        case 0:
            return b.make("add", y, b.make("neg", x))
        case 1:
            return b.make("mul", x, b.const(1, x.dtype))
        case 2:
            return b.make("max", b.make("broadcast", b.const(i, x.dtype), attrs=(x.shape, ())), x)
    return b.make("abs", b.make("abs", x))


def _movement(b: Rewriter, x: Node, y: Node, i: int) -> Node:
    return b.make("sub", b.make("transpose", x, attrs=((1, 0),)), y)


PROGRAMS: dict[str, Callable[[Rewriter, Node, Node, int], Node]] = {"few rules fire": _plain, "a rule a node": _redundant, "transposes": _movement}


def program(step: Callable[[Rewriter, Node, Node, int], Node], length: int) -> Graph:
    """A chain of ``length`` steps on two square arrays."""
    b = Rewriter(lambda node: (), Counter())
    x = y = b.argument(dtypes.float32, 8, 8)
    other = b.argument(dtypes.float32, 8, 8)
    for i in range(length):
        x = step(b, x, other, i)
    return Graph([y, other], [x])


def measure() -> list[dict[str, Any]]:
    """One row for each program and length."""
    rows = []
    for name, step in PROGRAMS.items():
        for length in LENGTHS:
            graph = program(step, length)
            context = Context("standard")
            start = time.perf_counter()
            after = canonicalise(graph, "standard", context)
            seconds = time.perf_counter() - start
            before = len(graph.nodes())
            fired = sum(context.rules().values())
            rows.append(
                {"program": name, "nodes": before, "canonical": len(after.nodes()), "fired": fired, "nodes per second": round(before / seconds)}
            )
    return rows


if __name__ == "__main__":
    for row in measure():
        print("  ".join(f"{key} {value:,}" if isinstance(value, int) else f"{value:16}" for key, value in row.items()))
