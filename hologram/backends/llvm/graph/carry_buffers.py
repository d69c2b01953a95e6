"""The buffers of a loop's carries: the one place that decides where a step reads a carry and where it writes the next one."""

from __future__ import annotations

from typing import NamedTuple

from hologram.graph.lower.control_step import ControlStep
from hologram.primitives.control import scan


class CarryBuffer(NamedTuple):
    """``kind`` is one of

    - ``own``: one buffer, since the kernel that makes the next carry reads each element right before it writes it;
    - ``stacked``: a step reads where the step before wrote stacked result number ``stack``;
    - ``alternate``: two buffers in turn.
    """

    kind: str
    stack: int = -1


def choose_carry_buffers(step: ControlStep) -> list[CarryBuffer]:
    """A buffer for each carry of a loop."""
    node, body = step.node, step.execution_plans[-1]
    consts, carries = (node.attrs[1], node.attrs[2]) if node.op is scan else (node.attrs[2], len(body.outputs))
    donors = body.donors()
    stacked: dict[int, int] = {}
    for k, o in enumerate(body.outputs[carries:]):
        if o.kind == "computed" and step.results[carries + k] is not None:
            stacked.setdefault(o.index, k)
    chosen: list[CarryBuffer] = []
    first: set[int] = set()
    for k, o in enumerate(body.outputs[:carries]):
        if o.kind == "computed" and o.index in stacked:
            chosen.append(CarryBuffer("stacked", stacked[o.index]))
        elif o.kind == "computed" and o.index not in first and consts + k in donors[o.index]:
            chosen.append(CarryBuffer("own"))
        else:
            chosen.append(CarryBuffer("alternate"))
        if o.kind == "computed":
            first.add(o.index)
    return chosen
