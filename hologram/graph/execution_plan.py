"""The execution plan: steps in order, and a place for every buffer. It is what a backend needs to run a graph.

Slots of a call: inputs, constants, outputs, then integers: the symbols of symbolic extents, and for graphs with symbols the
arena offset of each intermediate, since its size is known only then.
"""

from __future__ import annotations

from collections.abc import Mapping

from hologram.errors import ShapeError
from hologram.graph.lower.control_step import Allocation, ControlStep
from hologram.graph.lower.host_step import HostStep
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.steps import Step, host_steps_of, kernels_of
from hologram.graph.memory import arena
from hologram.graph.memory.call_sizes import CallSizes, Cost, allocated
from hologram.graph.memory.symbolic_arena import SymbolicAllocation, SymbolicLifetime
from hologram.graph.ownership import Copy, Ownership
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import Int, atoms, evaluator, is_static, split_linear, substitute, var
from hologram.support.cached_property import cached_property

UNKNOWN_NS = 100_000.0  # what a kernel whose extent is a symbol is taken to cost


class ExecutionPlan:
    """``steps`` in order: kernels, control steps with plans of their own, and host steps. ``slot_of`` gives a node's slot; the buffers of
    intermediates are in ``temporaries`` with their lifetimes, the workspaces of control steps among them. ``initializer`` is the plan that
    computes the folded constants once: the i-th of its results is the constant whose storage is ``FoldedConstant(i)``."""

    def __init__(self, owned: Ownership, initializer: ExecutionPlan | None = None) -> None:
        fused = owned.lowered.fused
        self.graph, self.inputs, self.constants = fused.graph, fused.graph.inputs, fused.constants
        self.groups, self.outputs, self.computed = fused.groups, fused.outputs, fused.computed
        self.steps, self.initializer, self._owned = owned.steps, initializer, owned
        self.slot_of: dict[Node, int] = {}
        for n in [*self.inputs, *self.constants, *self.computed]:
            self.slot_of[n] = len(self.slot_of)
        self._handed_out = {self.computed[o.index]: o.node.shape for o in self.outputs if o.kind == "computed"}
        self.temporaries = self._lifetimes()
        self.symbols = self.graph.symbols()
        self.static = not self.symbols
        first = len(self.slot_of)
        self.symbol_slots = {s: first + i for i, s in enumerate(self.symbols)}
        if not self.static:
            self.symbol_slots.update({f"arena{i}": first + len(self.symbols) + i for i in range(len(self.temporaries))})

    def __str__(self) -> str:
        arena = str(self.allocate({})) if self.static else f"planned for each call, by its {', '.join(self.symbols)}"
        text = "\n".join([*[f"step {k}: {_described(s)}" for k, s in enumerate(self.steps)], f"arena: {arena}"])
        return text if self.initializer is None else f"initializer, runs once:\n{self.initializer}\n\nmain, runs in each call:\n{text}"

    def result_shape(self, node: Node) -> Shape:
        """The shape that a computed value is handed out with: that of the reshape it stands for."""
        return self._handed_out.get(node, node.shape)

    @property
    def kernels(self) -> list[Lowered]:
        """All kernels in order, those of bodies where the bodies stand."""
        return kernels_of(self.steps)

    @property
    def host_steps(self) -> list[HostStep]:
        """All calls of routines of the host, those of bodies where the bodies stand."""
        return host_steps_of(self.steps)

    @property
    def cost(self) -> float:
        """Rough nanoseconds on one thread; for symbolic extents a guess."""
        return self._cost(donated=False)

    @property
    def donated_cost(self) -> float:
        """The same where each result has the memory of an argument that may give it up: without the copies that this saves."""
        return self._cost(donated=True)

    def _cost(self, donated: bool) -> float:
        return sum(map(_step_cost, self._steps_to_run(donated)))

    def _steps_to_run(self, donated: bool) -> list[Step]:
        return [s for s in self.steps if not self._is_left_out(s, donated)]

    def _is_left_out(self, step: Step, donated: bool) -> bool:
        """Whether a step is a copy that is not made."""
        if not isinstance(step, Lowered) or not step.is_copy:
            return False
        source, result = step.bindings
        return self.buffer(source) is self.buffer(result) or (donated and self.may_share(result, source))

    @property
    def copies(self) -> list[Copy]:
        """The copies of whole arrays that are left, those of bodies where the bodies stand."""
        steps = [s for s in self.steps if isinstance(s, ControlStep)]
        return [*self._owned.copies, *[c for s in steps for p in s.execution_plans for c in p.copies if c.of not in s.kept_in_place(p)]]

    def buffer(self, node: Node) -> Node:
        """The array that names the buffer in which ``node`` is: several arrays may share one (:mod:`hologram.graph.ownership`)."""
        return self._owned.buffer(node)

    def _lifetimes(self) -> list[tuple[Node | ControlStep, int, int, tuple[Node, ...]]]:
        """``(buffer, first step, last step, buffers whose place it may take)`` of all intermediates."""
        first: dict[Node | ControlStep, int] = {}
        last: dict[Node | ControlStep, int] = {}
        sources: dict[Node | ControlStep, tuple[Node, ...]] = {}
        for k, low in enumerate(self.steps):
            if isinstance(low, ControlStep) and low.nbytes != 0:
                first[low] = last[low] = k
            for n in map(self.buffer, low.bindings):
                if n not in self.slot_of:
                    first.setdefault(n, k)
                    last[n] = k
            for out, old in low.in_place:
                n, source = self.buffer(low.bindings[out]), self.buffer(low.bindings[old])
                if n not in self.slot_of and first[n] == k and n is not source:
                    sources[n] = (*sources.get(n, ()), source)
        return [(n, first[n], last[n], sources.get(n, ())) for n in first]

    def donors(self) -> list[list[int]]:
        """For each computed result the inputs in whose memory it may be computed, if the caller gives that up."""
        return [self._owned.donors(c) for c in self.computed]

    def may_share(self, result: Node, source: Node) -> bool:
        """Whether the caller may have given the buffer of ``result`` the memory of ``source``."""
        return source in self.inputs and self.inputs.index(source) in self._owned.donors(self.buffer(result))

    @cached_property
    def sizes(self) -> CallSizes:
        """What a call must know that depends on the values of the symbols."""
        return CallSizes(
            self.symbols,
            [self.result_shape(n) for n in self.computed],
            self._sized_lifetimes(),
            Cost(self.fixed_cost, evaluator(self.work, self.symbols)),
        )

    def _sized_lifetimes(self) -> list[SymbolicLifetime]:
        number = {n: i for i, (n, *_) in enumerate(self.temporaries)}
        return [
            SymbolicLifetime(_nbytes(n), first, last, tuple([number[s] for s in sources if s in number]))
            for n, first, last, sources in self.temporaries
        ]

    @property
    def fixed_cost(self) -> float:
        """Rough nanoseconds of what takes as long for all sizes."""
        return float(sum(_step_cost(s) for s in self._steps_to_run(donated=False) if not _has_work(s)))

    @property
    def work(self) -> Int:
        """Rough picoseconds of the rest."""
        total: Int = 0
        for s in self._steps_to_run(donated=False):
            if _has_work(s):
                total = total + s.kernel.work  # type: ignore[union-attr]  # a kernel
        return total

    def allocate(self, values: Mapping[str, int]) -> arena.ArenaAllocation:
        """Addresses of the intermediates, for given values of the symbols."""
        return self.sizes.allocate(values)

    def allocate_inside(self) -> Allocation:
        """Addresses of the intermediates of a body: expressions, where sizes are symbolic."""
        lifetimes = self._sized_lifetimes()
        sizes = [b.nbytes for b in lifetimes]
        if all(map(is_static, sizes)):
            return allocated(lifetimes, sizes)  # type: ignore[arg-type]  # numbers
        return SymbolicAllocation(lifetimes)

    def offset(self, node: Node | ControlStep, allocation: Allocation | None) -> Int:
        """The arena offset of an intermediate: a number, or the symbol that will hold it."""
        buffer = self.buffer(node) if isinstance(node, Node) else node
        i = next(i for i, (n, *_) in enumerate(self.temporaries) if n is buffer)
        return var(f"arena{i}") if allocation is None else allocation.buffers[i].offset


def _described(step: Lowered | ControlStep | HostStep) -> str:
    """One line for a step: what it is, and which arrays it binds."""
    if isinstance(step, Lowered):
        what = f"kernel, {step.kernel.iterations} parallel iterations"
    else:
        what = step.title if isinstance(step, HostStep) else step.node.op.name
    return f"{what}; binds {', '.join(f'{n.dtype}{list(n.shape)}' for n in step.bindings)}"


def _nbytes(buffer: Node | ControlStep) -> Int:
    return buffer.nbytes if isinstance(buffer, ControlStep) else buffer.size * buffer.dtype.itemsize


def _step_cost(step: Step) -> float:
    """Rough nanoseconds; for symbolic extents a guess."""
    if not isinstance(step, Lowered):
        return step.cost
    iterations = step.kernel.iterations
    return iterations * step.kernel.cost if isinstance(iterations, int) else UNKNOWN_NS


def _has_work(step: Step) -> bool:
    """Whether sizes decide how long a kernel takes, and it tells how."""
    return isinstance(step, Lowered) and not is_static(step.kernel.iterations) and not is_static(step.kernel.work)


def _concrete(x: Int, values: Mapping[str, int]) -> int:
    out = substitute(x, values)
    assert isinstance(out, int)
    return out


def concrete_shape(shape: Shape, values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(_concrete(n, values) for n in shape)


def bind_symbols(inputs: list[Node], shapes: list[tuple[int, ...]]) -> dict[str, int]:
    """Values of the symbols from the shapes of actual inputs, whose extents are linear in one symbol each. ShapeError where they contradict."""
    values: dict[str, int] = {}
    for n, shape in zip(inputs, shapes, strict=True):
        for e, size in zip(n.shape, shape, strict=True):
            if not is_static(e):
                (name,) = {a.name for a in atoms(e)}
                linear = split_linear(e, name)
                assert linear is not None
                coefficient, rest = (_concrete(part, {}) for part in linear)
                values.setdefault(name, (size - rest) // coefficient)
            if _concrete(e, values) != size:
                raise ShapeError(f"an argument has shape {list(shape)}; it should be {list(n.shape)}, with {values}")
    return values
