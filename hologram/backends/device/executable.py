"""A compiled graph on a device: one program, one arena for all intermediates, and the actions of a call in order.

A call puts its work in the device's queue and returns: its results are storages of the device, whose elements are there when its submission ends.
Arguments that are on the device are used where they are; others are copied there for the call, constants once for all. What depends on constants
alone is computed by the first call, and held in the device's memory until the last program that reads it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from hologram.backends import folded_constants
from hologram.backends.base import BaseExecutable
from hologram.backends.device.code import DeviceCode, all_kernels, line_of
from hologram.backends.device.driver import Place, Queue
from hologram.backends.device.maker import Maker
from hologram.backends.device.memory import Memory
from hologram.backends.device.runtime import Runtime, Work
from hologram.backends.device.steps import Block, Call, Steps
from hologram.backends.device.storage import DeviceStorage
from hologram.graph.execution_plan import ExecutionPlan, bind_symbols, concrete_shape
from hologram.graph.fusion.fused_graph import Output
from hologram.graph.lower.lowered import Lowered
from hologram.ir.aval import Aval, aval
from hologram.ir.graph import Graph
from hologram.ir.leaves import FoldedConstant, leaf
from hologram.support import debug
from hologram.support.cached_property import cached_property

MAX_SIZES = 64  # blocks that a graph with symbolic shapes keeps


Name = Callable[[], str]


class Sized(NamedTuple):
    """What a call does at given sizes, the types of what it computes, and what its arguments and these are called in errors."""

    block: Block
    computed: list[Aval]
    arguments: list[Name]
    results: list[Name]


def _names(kind: str, avals: Sequence[Aval], line: str) -> list[Name]:
    """What buffers are for, in the words of errors. Buffers may outlive the program, which these do not refer to."""
    return [partial("{} {} {} of {}".format, kind, i, a, line) for i, a in enumerate(avals)]


class Executable(BaseExecutable):
    """Runs a graph on a device. ``kernels`` are those of ``code`` that the device built, by name."""

    remote = True
    long = True

    def __init__(self, runtime: Runtime, code: DeviceCode, kernels: Mapping[str, Any]) -> None:
        super().__init__(code.compilation)
        self.runtime, self.device, self.where = runtime, runtime.device, runtime.device.name
        self.program = code.program
        self._maker = Maker(self.program, kernels, self.device.units, self.compilation)
        self.constants = [c.attrs[0] for c in self.execution_plan.constants]
        self._constant_names = _names("constant", [aval(c.dtype, concrete_shape(c.shape, {})) for c in self.execution_plan.constants], self.line)
        self._scratch_names = [partial("{} of {}".format, kind, self.line) for kind in ("intermediates", "workspaces")]
        computed = [("computed", i) for i in range(len(self.execution_plan.computed))]
        self._only_computed = [(o.kind, o.index) for o in self.execution_plan.outputs] == computed
        self._sizes: dict[tuple[int, ...], Sized] = {}

    @cached_property
    def line(self) -> str:
        """Where the program comes from: the user's line of the first result that has one."""
        return line_of(self.traced)

    @property
    def _kernels(self) -> list[Lowered]:
        return all_kernels(self.execution_plan)

    # --- planning a call -----------------------------------------------------------------------------------------------

    @cached_property
    def static(self) -> Sized:
        """Without symbols there is one of all sizes."""
        return self._planned({})

    def _at_sizes(self, shapes: list[tuple[int, ...]]) -> Sized:
        values = bind_symbols(self.execution_plan.inputs, shapes)
        key = tuple(values[name] for name in self.execution_plan.symbols)
        found = self._sizes.get(key)
        if found is None:
            if len(self._sizes) >= MAX_SIZES:
                self._sizes.pop(next(iter(self._sizes)), None)
            found = self._sizes[key] = self._planned(values)
        return found

    def _planned(self, values: Mapping[str, int]) -> Sized:
        s = self.execution_plan
        computed = [aval(n.dtype, concrete_shape(s.result_shape(n), values)) for n in s.computed]
        arguments = [aval(x.dtype, concrete_shape(x.shape, values)) for x in s.inputs]
        names = [_names(kind, avals, self.line) for kind, avals in (("argument", arguments), ("result", computed))]
        return Sized(self._maker.block(s, values, self.allocate(values)), computed, *names)

    # --- running -------------------------------------------------------------------------------------------------------

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Storages of the results, on the device, for storages of the inputs, wherever they are. Returns before the device is done."""
        device, runtime = self.device, self.runtime
        sized = self.static if self.execution_plan.static else self._at_sizes([x.aval.shape for x in inputs])
        runtime.fetch(inputs)
        constants = self.placed_constants  # made without the lock, as fetch says
        with debug.timed("call"):
            with device.lock:
                try:
                    computed = self._submitted(inputs, constants, sized)
                except device.errors as e:
                    computed = self._again(e, inputs, constants, sized)
            if self._only_computed:
                return computed
            return [self._result(o, inputs, computed) for o in self.execution_plan.outputs]

    def _result(self, o: Output, inputs: Sequence[Any], computed: list[Any]) -> Any:
        if o.kind == "computed":
            return computed[o.index]
        return self.placed_constants[o.index] if o.kind == "constant" else self.runtime.put(inputs[o.index])

    def _again(self, e: Exception, inputs: Sequence[Any], constants: Sequence[Any], sized: Sized) -> list[Any]:
        """A second attempt, where the driver found so late that there is no memory, with what can be given back. Raises what the call fails with."""
        if not (sized.block.whole and self.device.is_out_of_memory(e)):
            raise self.device.failure(e) from None
        self.runtime.pool.trim()
        return self.device.translated(lambda: self._submitted(inputs, constants, sized))

    def _submitted(self, inputs: Sequence[Any], constants: Sequence[Any], sized: Sized) -> list[Any]:
        self.device.inside += 1
        try:
            return self._operated(inputs, constants, sized)
        finally:
            self.device.inside -= 1

    def _operated(self, inputs: Sequence[Any], constants: Sequence[Any], sized: Sized) -> list[Any]:
        with Work(self.runtime) as work:
            queue = work.queue
            memories: list[Memory] = []
            for x, name in zip(inputs, sized.arguments, strict=True):
                if type(x) is DeviceStorage and x.memory.queue is queue and x.owner is None:
                    work.reads(x.made)
                    memories.append(x.memory)
                else:
                    memories.append(work.operand(x, name))
            if constants:
                memories += [work.operand(c, name) for c, name in zip(constants, self._constant_names, strict=True)]
            return self._put(work, sized.block, memories, sized.computed, sized.results, self.enqueue)

    def _put(self, work: Work, block: Block, memories: list[Memory], computed: Sequence[Aval], names: Sequence[Name], enqueue: Any) -> list[Any]:
        """Puts a block in its queue by ``enqueue``. Storages of what it computes from what is in ``memories``."""
        pool, queue = self.runtime.pool, work.queue
        results = [pool.take(a.nbytes, queue, name) for a, name in zip(computed, names, strict=True)]
        memories += results
        # where kernels read and write nothing in the arena, any place will do
        memories.append(self._scratch(0, block.arena, block, queue) if block.arena or not memories else memories[0])
        workspace = self._scratch(1, block.workspace, block, queue) if block.workspace else None
        enqueue(block, Call(work, workspace.handle if workspace is not None else None, enqueue), [(m.handle, 0) for m in memories])
        made = self.runtime.submit(work)
        return [DeviceStorage(a, m, made) for a, m in zip(computed, results, strict=True)]

    def _scratch(self, kind: int, nbytes: int, block: Block, queue: Queue) -> Memory:
        """What a call needs on its way: shared with all work of the queue, where that cannot come in between."""
        pool, name = self.runtime.pool, self._scratch_names[kind]
        alone = block.whole and self.device.inside < 2
        return pool.scratch(kind, nbytes, queue, name) if alone else pool.take(nbytes, queue, name)

    def enqueue(self, steps: Steps, call: Call, slots: Sequence[Place]) -> None:
        """Puts steps of a call in its queue: its block, or a batch of a loop's. A backend that can record them and replay them as one launch does so
        here."""
        steps.run(call, slots)

    @cached_property
    def placed_constants(self) -> list[Any]:
        """Storages of the constants, on the device, those that are computed once too. To be asked for without the device's lock."""
        return [self._folded[c.index].storage if isinstance(c, FoldedConstant) else self.runtime.put(c) for c in self.constants]

    @cached_property
    def _folded(self) -> list[folded_constants.Value]:
        """The folded constants, shared with other programs of this device."""
        plan = self.execution_plan.initializer
        assert plan is not None
        graphs = [Graph([], [x]) for x in plan.graph.outputs]
        wanted = [(f"{self.device.name} {self.precision}\n{g}", [n.attrs[0] for n in g.nodes() if n.op is leaf]) for g in graphs]
        return folded_constants.shared(wanted, partial(self._computed_constants, plan))

    def _computed_constants(self, plan: ExecutionPlan) -> list[Any]:
        """Storages of the results of a plan that reads constants alone."""
        block = self._maker.block(plan, {}, plan.allocate({}))
        constants = [self.runtime.put(c.attrs[0]) for c in plan.constants]
        computed = [aval(n.dtype, concrete_shape(plan.result_shape(n), {})) for n in plan.computed]

        def submitted() -> list[Any]:
            with Work(self.runtime) as work:
                memories = [work.operand(c, str) for c in constants]
                return self._put(work, block, memories, computed, _names("folded constant", computed, self.line), partial(Executable.enqueue, self))

        made = self.device.guarded(submitted)
        return [made[o.index] for o in plan.outputs]

    # --- seeing inside -------------------------------------------------------------------------------------------------

    @property
    def _texts(self) -> Mapping[str, Callable[[], str]]:
        return {self.program.dialect.name: lambda: self.program.text}

    def kernel_code(self) -> tuple[str, dict[str, str]]:
        return self.program.dialect.name, self.program.kernel_texts
