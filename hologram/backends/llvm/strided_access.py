"""Elements a small constant step apart, as whole vectors and shuffles: a gather or a scatter costs as much for each element as a load for a vector.

What is read is always inside of the buffer. Under a mask vectors are loaded by lanes, those between the elements wanted being off. Where the buffer's
size shows that the neighbours of every element are there (the channels of a pixel), the vectors start at a multiple of the step, and all elements of
a step share them; else the last vector ends at the last element wanted.
"""

from __future__ import annotations

from collections.abc import Sequence

from hologram.backends.llvm.text import FunctionText, Reg, vector

MAX_STEP = 8  # the largest step


def largest_step(unit: int) -> int:
    """Up to which step vectors of ``unit`` lanes beat a gather: that many loads and shuffles make one of them."""
    return min(MAX_STEP, unit)


def vector_starts(step: int, width: int, unit: int, whole: bool) -> list[int]:
    """Where, from the first element on, the vectors begin that hold ``width`` elements ``step`` apart; ``whole``: and all between and after them."""
    starts = [k * unit for k in range(step * width // unit)]
    if not whole:
        starts[-1] = step * (width - 1) + 1 - unit
    return starts


def pick(f: FunctionText, vectors: Sequence[Reg], starts: Sequence[int], wanted: Sequence[int]) -> Reg:
    """The elements at the indices ``wanted`` of what ``vectors`` hold, as one vector."""
    unit = vectors[0].width
    sources = []
    for at in wanted:
        source = max(i for i, start in enumerate(starts) if start <= at)
        sources.append((source, at - starts[source]))
    parts = [_collect(f, vectors, sources[k : k + unit]) for k in range(0, len(sources), unit)]
    while len(parts) > 1:
        parts = [_shuffle(f, a, b, range(2 * a.width)) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def spread(f: FunctionText, live: Reg, starts: Sequence[int], wanted: Sequence[int], unit: int) -> list[Reg]:
    """For vectors of ``unit`` lanes from ``starts`` on, which lanes hold an element that is wanted and ``live``: lane k of it is at ``wanted[k]``."""
    of = {place: k for k, place in enumerate(wanted)}
    never = Reg("zeroinitializer", "i1", live.width)
    return [_shuffle(f, live, never, [of.get(start + j, live.width) for j in range(unit)]) for start in starts]


def interleave(f: FunctionText, columns: Sequence[Reg], unit: int) -> list[Reg]:
    """``columns[0][0], columns[1][0], …, columns[0][1], …`` as vectors of ``unit`` lanes."""
    step, out = len(columns), []
    for j in range(step * columns[0].width // unit):
        first = j * unit // step // unit * unit  # all lanes of one result come from one stretch of this length
        stretches = [_shuffle(f, c, c, range(first, first + unit)) for c in columns]
        out.append(_collect(f, stretches, [(k % step, k // step - first) for k in range(j * unit, (j + 1) * unit)]))
    return out


def _collect(f: FunctionText, vectors: Sequence[Reg], sources: Sequence[tuple[int, int]]) -> Reg:
    """The lanes ``(vector, lane)``, as many as a vector has: what the first two vectors have of them, then what each further one adds."""
    unit = len(sources)
    first, *rest = sorted({source for source, _ in sources})
    out = vectors[first]
    lanes = [lane if source == first else None for source, lane in sources]
    if not rest:
        return _shuffle(f, out, out, lanes)
    for i in rest:
        lanes = [unit + lane if source == i else have for (source, lane), have in zip(sources, lanes, strict=True)]
        out = _shuffle(f, out, vectors[i], lanes)
        lanes = [None if lane is None else k for k, lane in enumerate(lanes)]
    return out


def _shuffle(f: FunctionText, a: Reg, b: Reg, lanes: Sequence[int | None]) -> Reg:
    if a.width == len(lanes) and list(lanes) == list(range(a.width)):
        return a
    order = ", ".join("i32 poison" if k is None else f"i32 {k}" for k in lanes)
    return f.emit(f"shufflevector {a.typed}, {vector(b.type, b.width)} {b.text}, <{len(lanes)} x i32> <{order}>", a.type, len(lanes))
