"""A compiled graph on an OpenCL device: one program, one buffer for all intermediates, and the launches of a call in order.

Arguments are copied to the device and results from it, in each call; constants are copied once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hologram import debug
from hologram.backends.c.dialects import OPENCL
from hologram.backends.c.source import Program
from hologram.backends.cpu.runtime import storage
from hologram.backends.opencl.device import Device
from hologram.errors import DeviceError, UnsupportedError
from hologram.graph.kernel_text import print_kernel
from hologram.graph.lower import Lowered
from hologram.graph.passes import Context
from hologram.graph.report import Cost, Memory, Reduction, cost_of, memory_of, reduction_of
from hologram.graph.schedule import Schedule, bind_symbols, concrete_shape
from hologram.symbolic import Int, substitute
from hologram.trace.aval import Aval, aval
from hologram.trace.node import Graph, Node

STAGES = ("trace", "canonical", "kernels", "opencl")
MOST_GROUPS = 1 << 16
GROUPS_A_UNIT = 4  # of kernels whose groups have a workspace each
MOST_SIZES = 64  # launch lists that a graph with symbolic shapes keeps


class Launch(NamedTuple):
    """One kernel of a call: ``places`` are (buffer number, offset in elements) of its parameters, ``integers`` what follows them."""

    kernel: Any
    groups: int
    items: int
    places: list[tuple[int, int]]
    integers: list[int]
    workspace: bool


class Calls(NamedTuple):
    """What a call with given sizes does: its launches, the types of what it computes, bytes of the arena and of the workspace."""

    launches: list[Launch]
    computed: list[Aval]
    arena: int
    workspace: int


class Executable:
    """Runs a graph. Raises UnsupportedError, naming the op and its line, for what the backend does not have."""

    long = True

    def __init__(self, traced: Graph, precision: str, canonical: Any, device: Device) -> None:
        self.traced, self.precision, self.device = traced, precision, device
        context = Context(precision)
        with debug.timed("canonical reduction"):
            self.canonical: Graph = canonical(traced, precision, context)
        self._rules: Counter[str] = context.rules()
        with debug.timed("lowering"):
            self.schedule = Schedule(self.canonical, precision)
            _require_kernels(self.schedule, device)
            self.program = Program([s.kernel for s in self._steps], "opencl", precision)
        reason = device.why_not(precision, self.program.double)
        if reason is not None:
            raise DeviceError(f"{device!r} cannot run this: {reason}")
        self._tell()
        with debug.timed("code generation"):
            built = device.build(self.program.text, OPENCL.options)
        self._kernels = {name: device.cl.Kernel(built, name) for name in set(self.program.names.values())}
        self.constants = [c.attrs[0] for c in self.schedule.constants]
        self._constants = [self._copied(c, f"constant {i}", {}) for i, c in enumerate(self.constants)]
        self._sizes: dict[tuple[int, ...], Calls] = {}

    def _tell(self) -> None:
        debug.tell(debug.DEVICES, "device", lambda: self.device)
        debug.tell(debug.KERNELS, "kernels", lambda: self.as_text("kernels"))
        debug.tell(debug.SOURCE, "OpenCL C", lambda: self.program.text)
        debug.tell(debug.GRAPHS, "traced graph", lambda: self.traced)
        debug.tell(debug.GRAPHS, "canonical graph", lambda: self.canonical)

    @property
    def _steps(self) -> list[Lowered]:
        return [s for s in self.schedule.steps if isinstance(s, Lowered)]

    # --- planning a call -----------------------------------------------------------------------------------------------

    def _at_sizes(self, shapes: list[tuple[int, ...]]) -> Calls:
        values = bind_symbols(self.schedule.inputs, shapes)
        key = tuple(values[name] for name in self.schedule.symbols)
        found = self._sizes.get(key)
        if found is None:
            if len(self._sizes) >= MOST_SIZES:
                self._sizes.pop(next(iter(self._sizes)), None)
            found = self._sizes[key] = self._planned(values)
        return found

    def _planned(self, values: Mapping[str, int]) -> Calls:
        s = self.schedule
        plan = s.plan(values)
        arena = len(s.slot_of)
        place = {n: (i, 0) for n, i in s.slot_of.items()}
        for i, (n, *_) in enumerate(s.temporaries):
            if isinstance(n, Node):
                place[n] = arena, (plan.buffers[i].offset // n.dtype.itemsize if i in plan.buffers else 0)
        launches, workspace = [], 0
        for step in self._steps:
            k, mapping = step.kernel, self.program.mappings[step.kernel]
            chunks = _number(k.chunks, values)
            groups = min(MOST_GROUPS, -(-chunks // mapping.items) if mapping.by_item else chunks)
            if mapping.workspace:
                groups = min(groups, GROUPS_A_UNIT * self.device.units)
                workspace = max(workspace, groups * mapping.workspace)
            if groups:
                places = [place.get(n, (arena, 0)) for n in step.bindings]
                integers = [_number(e, values) for e in k.integers()]
                kernel = self._kernels[self.program.names[k]]
                launches.append(Launch(kernel, groups, mapping.items, places, integers, bool(mapping.workspace)))
        computed = [aval(n.dtype, concrete_shape(self._result_shape(n), values)) for n in s.computed]
        return Calls(launches, computed, plan.arena_bytes, workspace)

    def _result_shape(self, node: Node) -> Any:
        """The shape that a computed value is handed out with: that of the reshape it stands for."""
        outputs = self.schedule.outputs
        return next((o.node.shape for o in outputs if o.kind == "computed" and self.schedule.computed[o.index] is node), node.shape)

    # --- running -------------------------------------------------------------------------------------------------------

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Storages of the results for storages of the inputs; the device is done when it returns."""
        calls = self._at_sizes([x.aval.shape for x in inputs])
        with debug.timed("call"), self.device.lock:
            try:
                computed = self._run(inputs, calls)
            except self.device.cl.Error as e:
                raise self.device.failure(e) from None
        sources = {"input": inputs, "constant": self.constants, "computed": computed}
        return [sources[o.kind][o.index] for o in self.schedule.outputs]

    def _run(self, inputs: Sequence[Any], calls: Calls) -> list[Any]:
        cl, queue = self.device.cl, self.device.queue
        held: dict[str, int] = {}
        buffers = [self._copied(x, f"argument {i}", held) for i, x in enumerate(inputs)] + self._constants
        results = [self._memory(a.nbytes, f"result {i}", held) for i, a in enumerate(calls.computed)]
        buffers += results
        buffers.append(self._memory(calls.arena, "intermediates", held))
        workspace = self._memory(calls.workspace, "workspaces", held)
        for launch in calls.launches:
            arguments: list[Any] = []
            for buffer, offset in launch.places:
                arguments += [buffers[buffer], np.int64(offset)]
            arguments += map(np.int64, launch.integers)
            launch.kernel.set_args(*arguments, *([workspace] if launch.workspace else []))
            cl.enqueue_nd_range_kernel(queue, launch.kernel, (launch.groups * launch.items,), (launch.items,))
        out = [storage.filled(a, lambda array, b=b: self._read(array, b)) for a, b in zip(calls.computed, results, strict=True)]  # type: ignore[misc]
        queue.finish()
        return out

    def _memory(self, nbytes: int, what: str, held: dict[str, int]) -> Any:
        made = self.device.buffer(nbytes, what, held)
        held[what] = nbytes
        return made

    def _copied(self, of: Any, what: str, held: dict[str, int]) -> Any:
        made = self._memory(of.nbytes, what, held)
        if of.nbytes:
            self.device.cl.enqueue_copy(self.device.queue, made, _bytes_of(storage.view(of)))
        return made

    def _read(self, array: np.ndarray, buffer: Any) -> None:
        if array.nbytes:
            self.device.cl.enqueue_copy(self.device.queue, _bytes_of(array), buffer)

    def run_numpy(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """As :meth:`run`, on NumPy arrays; the results are views."""
        return [storage.view(o) for o in self.run([storage.copy_of(np.asarray(x)) for x in inputs])]

    # --- seeing inside -------------------------------------------------------------------------------------------------

    def as_text(self, stage: str = "kernels") -> str:
        """The program at ``stage``, one of :data:`STAGES`. Raises ValueError for another."""
        match stage:
            case "trace":
                return str(self.traced)
            case "canonical":
                return str(self.canonical)
            case "kernels":
                return "\n".join(print_kernel(s.kernel) for s in self._steps)
            case "opencl":
                return self.program.text
        raise ValueError(f"no stage {stage!r}; {self.device.name} has {', '.join(STAGES)}")

    def reduction(self) -> Reduction:
        return reduction_of(self.traced, self.canonical, self.schedule, self._rules)

    def memory_analysis(self) -> Memory:
        return memory_of(self.schedule)

    def cost_analysis(self) -> Cost:
        return cost_of(self.schedule)


def _number(e: Int, values: Mapping[str, int]) -> int:
    out = substitute(e, values)
    assert isinstance(out, int)
    return out


def _bytes_of(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def _require_kernels(schedule: Schedule, device: Device) -> None:
    """Raises UnsupportedError unless every step is a kernel that the walk can write."""
    for step in schedule.steps:
        if isinstance(step, Lowered) and step.kernel.ready is None:
            continue
        node = step.group.roots[0] if isinstance(step, Lowered) else step.node
        line = schedule.graph.lines.get(node)
        where = f" (at {line[0]}:{line[1]})" if line else ""
        raise UnsupportedError(f"{node.op.name} is not available on {device.name} in this version: leave device out for the CPU{where}")
