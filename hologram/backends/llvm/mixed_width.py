"""Mixed-width vectors: lanes in vectors of several widths, each with registers of its own: 56 columns of float32 are 32 + 16 + 8 lanes.

One vector of 64 with a mask would take an eighth more multiply-adds. LLVM has no vectors of 56: it would pad them to 64, or take them apart.
"""

from __future__ import annotations

from hologram.backends.llvm.memory import Lane
from hologram.backends.llvm.text import FunctionText, Reg
from hologram.graph.kernel.ir import Acc, Loop, Value


class Part:
    """One of the vectors: its lanes, and what has been computed for them alone."""

    __slots__ = ("lane", "env", "state")

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.env: dict[Value, Reg] = {}
        self.state: dict[Acc, list[Reg]] = {}


def mixed_widths(extent: int, native: int) -> list[int]:
    """Powers of two, the widest first, that cover ``extent`` lanes with registers of ``native`` and at last half a one; none where a single vector
    takes no more registers. The last may be wider than what is left, unless that is a single lane: LLVM 22 stores 32 bits where a constant mask
    leaves one of few lanes of 16."""
    whole, rest = divmod(extent, native)
    half = native // 2
    if rest > half:
        whole, rest = whole + 1, 0
    out = [native << k for k in reversed(range(whole.bit_length())) if whole >> k & 1]
    if rest:
        out.append(1 if rest == 1 else half)
    return out if len(out) > 1 else []


def mixed_width_parts(f: FunctionText, loop: Loop, start: Reg, widths: list[int]) -> list[Part]:
    """The parts of a lanes loop from ``start`` on, the last masked where it is wider than what is left."""
    assert isinstance(loop.extent, int)
    parts, done = [], 0
    for width in widths:
        base = f.int_op("add", start, Reg(str(done), "i64", 1))
        mask = None if done + width <= loop.extent else first_lanes(loop.extent - done, width)
        parts.append(Part(Lane(loop.var, loop.start, base, width, mask)))
        done += width
    return parts


def first_lanes(count: int, width: int) -> Reg:
    """The mask of the first ``count`` lanes."""
    return Reg("<" + ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(width)) + ">", "i1", width)
