"""Programs that run op by op for all values of their symbols: the steps of one graph, whose sizes are filled in by each call.

A structure that comes with other numbers each time is legalized once. The graph's symbols are the sizes that differ; what a step takes of them, its
attributes, extents and the shape of its result, is one tuple of integers for each step, which one function computes of the symbols' values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hologram.backends.base import NODE_BYTES
from hologram.backends.op_by_op import ready_kernels
from hologram.backends.op_by_op.program import Drafts, Step, constants_of, function_of, legalized, run_steps
from hologram.dtypes import DType
from hologram.graph.pipeline import canonicalise_but_for_order
from hologram.ir.aval import aval
from hologram.ir.graph import Graph
from hologram.ir.symbolic import evaluator, symbols_of

BIND_NS = 5e4  # that a call takes to be found by Python, and to fill in sizes, ...
BIND_STEP_NS = 1500  # ... and each of its steps adds


class SizedStep(NamedTuple):
    """A step but for its sizes. A function of arrays takes ``attrs``, of which those that are ``sized`` are filled in. A ``kernel`` takes the values
    of its symbols, and gives a result of type ``dtype``."""

    kernel: ready_kernels.Kernel | None
    function: Callable[..., Any] | None
    operands: list[int]
    attrs: tuple[Any, ...]
    sized: tuple[bool, ...]
    dtype: DType | None

    def at(self, values: Any) -> Step:
        """The step for the values of what :func:`_sizes_of` gave."""
        if self.kernel is None:
            assert self.function is not None
            attrs = tuple([v if s else a for a, s, v in zip(self.attrs, self.sized, values, strict=True)])
            return Step(self.function, self.operands, attrs, None)
        extents, shape = values
        function, integers = self.kernel.at(dict(zip(self.attrs, extents, strict=True)))
        return Step(function, self.operands, integers, aval(self.dtype, shape))  # type: ignore[arg-type]


class OpByOpForSizes:
    """An executable of storages on the host, and of sizes. Values are numbered as those of :class:`hologram.backends.op_by_op.program.OpByOp`."""

    remote = False
    reusable: tuple[Any, ...] = ()
    placement = None
    initializer = None
    long = False

    def __init__(
        self, steps: Sequence[Step | SizedStep], sizes: Sequence[Any], constants: list[Any], results: Sequence[Any], ns: float, legal: Graph
    ):
        self.steps, self.constant_storages, self._legal = steps, constants, legal
        self._symbols = legal.symbols()
        shapes = tuple([x.shape for _, x in results])
        self._values = evaluator((*sizes, shapes), self._symbols)
        self._results = [(i, x.dtype) for i, x in results]
        self.ns = ns + BIND_NS + BIND_STEP_NS * len(steps)
        self.prepare_ns = 0.0
        self.constants: list[Any] = []
        self.nbytes = NODE_BYTES // 4 * len(steps)

    def run(self, inputs: Sequence[Any], donated: Any = None, sizes: Mapping[str, int] | None = None) -> list[Any]:
        """Storages of the results for values of all symbols. Raises OutOfMemory and MemoryError."""
        given = sizes or {}
        *values, shapes = self._values(*[given[s] for s in self._symbols])
        steps = [s if isinstance(s, Step) else s.at(v) for s, v in zip(self.steps, values, strict=True)]
        results = [(i, aval(dtype, shape)) for (i, dtype), shape in zip(self._results, shapes, strict=True)]
        return run_steps(steps, [*inputs, *self.constant_storages], results)

    def replays(self, inputs: Sequence[Any]) -> None:
        """No call is captured."""

    def as_text(self, stage: str) -> str:
        """The legalized graph, whose nodes run one by one."""
        return str(self._legal)


def op_by_op_for_sizes(graph: Graph, now: Mapping[str, int], max_ns: float) -> OpByOpForSizes | None:
    """The program of a graph, in ``standard``, for all values of its symbols that keep to its conditions; None where an op has no step for all sizes,
    or a run at the sizes ``now`` takes longer than ``max_ns``. Raises what the compiler raises for a kernel."""
    legal = legalized(canonicalise_but_for_order(graph, "standard"))
    found = Drafts(legal.inputs, now)
    if not found.take_all(legal) or found.ns > max_ns:
        return None
    number = found.numbered(legal)
    steps, sizes = zip(*[_sized(d, number) for d in found.drafts], strict=True) if found.drafts else ((), ())
    results = [(number[x], x) for x in legal.outputs]
    return OpByOpForSizes(steps, sizes, constants_of(found.constants), results, found.ns, legal)


def _sized(draft: Any, number: Mapping[Any, int]) -> tuple[Step | SizedStep, Any]:
    """The step of a draft, and what a call computes for it."""
    x, operands = draft.node, [number[o] for o in draft.operands]
    kernel = None if draft.use is None else ready_kernels.kernel_of(draft.use, x.op.exact)
    if kernel is not None:
        extents = draft.use.sizes
        return SizedStep(kernel, None, operands, tuple(extents), (), x.dtype), (tuple(extents.values()), x.shape)
    function = function_of(x) if draft.use is None else x.op.reference
    sized = tuple([bool(symbols_of(a)) for a in x.attrs])
    if not any(sized):
        return Step(function, operands, x.attrs, None), ()
    return SizedStep(None, function, operands, x.attrs, sized, None), tuple([a if s else 0 for a, s in zip(x.attrs, sized, strict=True)])
