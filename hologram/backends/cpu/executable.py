"""A compiled graph on the CPU: object code, what a call must supply, and the text of every stage on request."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hologram import debug, dtypes
from hologram.backends.base import BaseExecutable
from hologram.backends.cpu import cache, lapack, target
from hologram.backends.cpu.host import is_bound
from hologram.backends.cpu.module import GraphWriter, routines_of
from hologram.backends.cpu.runtime import addresses, calls, storage
from hologram.backends.cpu.runtime.processors import usable_processors
from hologram.backends.cpu.runtime.records import OWN_THREADS, PARALLEL
from hologram.cached import cached_property
from hologram.graph.control import ControlStep
from hologram.graph.host import host_nodes
from hologram.graph.schedule import bind_symbols, concrete_shape
from hologram.settings import settings
from hologram.trace.aval import Aval, aval
from hologram.trace.node import Graph
from hologram.trace.residence import on_host

LONG_NS = 50_000.0  # a call that is expected to take longer gives up the GIL
MOST_SIZES = 64  # plans that a graph with symbolic shapes keeps


class Executable(BaseExecutable):
    """Runs a graph.

    ``constants`` are the storages of its hidden parameters, which a call supplies after the inputs. ``computed`` are the types of what
    the graph writes, in the order of its output slots (None with symbolic shapes); ``outputs`` says of each result whether it is an
    ``input``, a ``constant`` or ``computed``, and which. ``donors[i]`` are inputs in whose memory the i-th computed result may be put.
    """

    remote = False
    where = "the CPU"

    def __init__(self, traced: Graph, precision: str, canonical: Any) -> None:
        super().__init__(traced, precision, canonical)
        self.target = target.host()
        self.tile = self.target.tile
        self.dynamic = any(not isinstance(n, int) for x in traced.inputs for n in x.shape)
        leaves = _leaves(traced)
        entry = self._load(leaves)
        self.constants = [on_host(leaves[i]) for i in entry["constants"]]
        self.outputs: list[tuple[str, int]] = [(kind, index) for kind, index in entry["outputs"]]
        self.arena_bytes: int = entry["arena"]
        self.long: bool = entry["long"]
        self.parallel: int = entry["parallel"]
        self.donors: list[list[int]] = entry["donors"]
        self.computed: list[Aval] | None = None if self.dynamic else [aval(dtypes.of(d), tuple(s)) for d, s in entry["computed"]]
        self.address: int = self._code.address("graph")
        self._sizes: dict[tuple[int, ...], tuple[list[Aval], list[int], int]] = {}
        self._tell(lambda: f"cpu: {self.target.id}", "LLVM IR", lambda: self._llvm)
        debug.tell(debug.ASSEMBLY, "assembly", lambda: self.as_text("asm"))

    # --- compiling -----------------------------------------------------------------------------------------------------

    def _load(self, leaves: list[Any]) -> dict[str, Any]:
        """Object code from the disk cache, or compiled and stored there; what a call must know of it."""
        host = host_nodes(self.traced)
        natively = any(x.inputs and lapack.runs_natively(x.op.name, x.inputs[0].dtype) for x in host) and lapack.available()
        stored = not self.dynamic and not any(is_bound(x.attrs) for x in host)
        key = cache.key("graph", str(self.traced), self.precision, ",".join(settings.disabled_passes), "lapack" if natively else "")
        found = cache.load_entry(key) if stored else None
        if found is None:
            with debug.timed("lowering"):
                modules, meta = self._modules, self._meta(leaves)
            with debug.timed("code generation"):
                objects = target.compile_modules(modules, self.target, self._pipeline)
            if stored:
                cache.store(key, b"".join(objects), meta | {"objects": [len(o) for o in objects]})
        else:
            code, meta = found
            ends = list(itertools.accumulate(meta["objects"]))
            objects = [code[end - n : end] for n, end in zip(meta["objects"], ends, strict=True)]
        self._code = target.link(objects, calls.symbols() | lapack.addresses(meta["routines"]))
        return meta

    def _meta(self, leaves: list[Any]) -> dict[str, Any]:
        s = self.schedule
        number = {id(x): i for i, x in enumerate(leaves)}
        routines = routines_of(self._llvm)
        return {
            "constants": [number[id(c.attrs[0])] for c in s.constants],
            "outputs": [(o.kind, o.index) for o in s.outputs],
            "computed": [] if self.dynamic else [(n.dtype.name, list(self._result_shape(n))) for n in s.computed],
            "arena": 0 if self.dynamic else s.plan({}).arena_bytes,
            "donors": s.donors(),
            "long": s.cost > LONG_NS,
            "routines": routines,
            "parallel": (PARALLEL | OWN_THREADS * bool(routines)) * ("@hg_parallel_for(ptr %ctx" in self._llvm),
        }

    @property
    def _pipeline(self) -> str:
        """LLVM's passes for this module."""
        return "loops" if any(isinstance(s, ControlStep) for s in self.schedule.steps) else "kernel"

    @cached_property
    def _written(self) -> GraphWriter:
        s = self.schedule
        return GraphWriter(self.precision, self.target).render(s, s.plan({}) if s.static else None)

    @cached_property
    def _llvm(self) -> str:
        return self._written.whole()

    @property
    def _modules(self) -> list[str]:
        """The modules that are compiled side by side. Kernels that loops call are a part of the graph's module."""
        return self._written.modules(usable_processors()) if self._pipeline == "kernel" else [self._llvm]

    # --- running -------------------------------------------------------------------------------------------------------

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Storages of the results for storages of the inputs."""
        symbols: list[int] = []
        computed, arena = self.computed, self.arena_bytes
        if computed is None:
            computed, symbols, arena = self.at_sizes([x.aval.shape for x in inputs])
        outs = [storage.empty(a) for a in computed]
        with debug.timed("call"):
            calls.run(self.address, [*inputs, *self.constants], outs, symbols, arena, self.long, self.parallel)
        sources = {"input": inputs, "constant": self.constants, "computed": outs}
        return [sources[kind][index] for kind, index in self.outputs]

    def bound(self, shapes: Sequence[tuple[int, ...]] = ()) -> Callable[..., None]:
        """A function of the addresses of all inputs and then of all computed results, as Python integers, that runs the graph on that memory.

        With symbolic extents it is for inputs of ``shapes``. Memory is C-contiguous and aligned to its elements; results of at least
        ``STREAM_BYTES`` (:mod:`memory_code`) start at multiples of 64 bytes. A result may lie where one of its ``donors`` lies, at the same
        address, and otherwise overlaps nothing that the call reads. A call costs about a tenth of a microsecond more than its kernels.
        """
        computed, symbols, arena = self.computed, (), self.arena_bytes
        if computed is None:
            computed, symbols, arena = self.at_sizes(shapes)  # type: ignore[assignment]
        inputs = len(self.traced.inputs)
        return addresses.bind(self.address, inputs, len(computed), self.constants, symbols, arena, self.long, self.parallel, keep=self)

    def at_sizes(self, shapes: Sequence[tuple[int, ...]]) -> tuple[list[Aval], list[int], int]:
        """Result types, integers and arena of a call with inputs of these shapes, for a program whose extents are symbolic."""
        values = bind_symbols(self.schedule.inputs, list(shapes))
        key = tuple(values[name] for name in self.schedule.symbols)
        found = self._sizes.get(key)
        if found is None:
            if len(self._sizes) >= MOST_SIZES:
                self._sizes.pop(next(iter(self._sizes)), None)
            found = self._sizes[key] = self._at(values)
        return found

    def _at(self, values: dict[str, int]) -> tuple[list[Aval], list[int], int]:
        """What :meth:`at_sizes` gives for values of the symbols."""
        s = self.schedule
        plan = s.plan(values)
        offsets = [plan.buffers[i].offset for i in range(len(s.temporaries))]
        computed = [aval(n.dtype, concrete_shape(self._result_shape(n), values)) for n in s.computed]
        return computed, [*(values[name] for name in s.symbols), *offsets], plan.arena_bytes

    # --- seeing inside -------------------------------------------------------------------------------------------------

    @property
    def _texts(self) -> Mapping[str, Callable[[], str]]:
        return {
            "llvm": lambda: target.optimised_ir(self._llvm, self.target, self._pipeline),
            "asm": lambda: target.assembly(self._llvm, self.target, self._pipeline),
        }


def _leaves(graph: Graph) -> list[Any]:
    """Storages of the graph's hidden parameters, in topological order, each once."""
    out: dict[int, Any] = {}
    for n in graph.nodes():
        if n.op.name == "leaf":
            out.setdefault(id(n.attrs[0]), n.attrs[0])
    return list(out.values())
