"""A compiled graph on the CPU: object code, what a call must supply, and the text of every stage on request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hologram import dtypes
from hologram.backends import held
from hologram.backends import object_cache as cache
from hologram.backends.base import BaseExecutable
from hologram.backends.cpu.compile import Scheduled, load
from hologram.backends.llvm.graph import lapack
from hologram.backends.llvm.graph.host_calls import is_bound
from hologram.backends.llvm.toolchain import target
from hologram.backends.native import addresses, calls, storage
from hologram.backends.residence import on_host
from hologram.graph.lower.host_step import host_nodes
from hologram.graph.program import Schedule, bind_symbols, concrete_shape
from hologram.ir.aval import Aval, aval
from hologram.ir.graph import Graph
from hologram.ir.leaves import Held, leaf
from hologram.ir.node import Node
from hologram.settings import settings
from hologram.support import debug
from hologram.support.cached_property import cached_property

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
        self.checked = settings.checked
        self.dynamic = any(not isinstance(n, int) for x in traced.inputs for n in x.shape)
        leaves = _leaves(traced)
        entry = self._load(leaves)
        self.constants = [on_host(leaves[i]) if kind == "leaf" else self._held[i].storage for kind, i in entry["constants"]]
        self.outputs: list[tuple[str, int]] = [(kind, index) for kind, index in entry["outputs"]]
        self.arena_bytes: int = entry["arena"]
        self.long: bool = entry["long"]
        self.parallel: int = entry["parallel"]
        self.donors: list[list[int]] = entry["donors"]
        self.computed: list[Aval] | None = None if self.dynamic else [aval(dtypes.of(d), tuple(s)) for d, s in entry["computed"]]
        self.address: int = self._code.address("graph")
        self._sizes: dict[tuple[int, ...], tuple[list[Aval], list[int], int]] = {}
        self._tell(lambda: f"cpu: {self.target.id}", "LLVM IR", lambda: self._written.llvm)
        debug.tell(debug.ASSEMBLY, "assembly", lambda: self.as_text("asm"))

    # --- compiling -----------------------------------------------------------------------------------------------------

    def _load(self, leaves: list[Any]) -> dict[str, Any]:
        """Object code from the disk cache, or compiled and stored there; what a call must know of it."""
        host = host_nodes(self.traced)
        natively = any(x.inputs and lapack.runs_natively(x.op.name, x.inputs[0].dtype) for x in host) and lapack.available()
        stored = not self.dynamic and not any(is_bound(x.attrs) for x in host)
        settled = [
            self.precision,
            ",".join(settings.disabled_passes),
            str(settings.hold_limit),
            "lapack" if natively else "",
            "checked" if self.checked else "",
            "verified" if settings.verify else "",
        ]
        text = str(self.traced) if stored else ""
        self._code, known = load(
            cache.key("graph", text, *settled) if stored else None,
            lambda: self._written,
            lambda s: _meta(s, self.precision, leaves),
            lambda known: _describes(known, self.traced, leaves),
        )
        self._held: list[held.Value] = []
        if known["held"]:
            wanted = [(text, [leaves[i] for i in sources]) for text, sources, _ in known["held"]]
            types = [list(type) for *_, type in known["held"]]
            key = cache.key("ahead", text, *settled) if stored else None
            self._held = held.values(wanted, lambda: self._computed_ahead(leaves, types, key))
        return known

    def _computed_ahead(self, leaves: list[Any], types: list[Any], key: str | None) -> list[Any]:
        """Storages of what depends on constants alone, which has these ``types``."""

        def make() -> Scheduled:
            assert self.schedule.ahead is not None
            return Scheduled(self.schedule.ahead, self.precision, self.target, self.checked)

        code, known = load(key, make, lambda s: {"constants": _numbered(s.constants, leaves)}, lambda known: _describes_ahead(known, types, leaves))
        constants = [on_host(leaves[i]) for _, i in known["constants"]]
        outs = [storage.empty(aval(dtypes.of(d), tuple(s))) for d, s in known["computed"]]
        calls.run(code.address("graph"), constants, outs, (), known["arena"], known["long"], known["parallel"])
        return [outs[i] for _, i in known["outputs"]]

    @cached_property
    def _written(self) -> Scheduled:
        return Scheduled(self.schedule, self.precision, self.target, self.checked)

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
        ``NONTEMPORAL_BYTES`` (:mod:`memory_code`) start at multiples of 64 bytes. A result may lie where one of its ``donors`` lies, at the same
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
        plan = self.plan(values)
        offsets = [plan.buffers[i].offset for i in range(len(s.temporaries))]
        computed = [aval(n.dtype, concrete_shape(s.result_shape(n), values)) for n in s.computed]
        return computed, [*(values[name] for name in s.symbols), *offsets], plan.arena_bytes

    # --- seeing inside -------------------------------------------------------------------------------------------------

    @property
    def _texts(self) -> Mapping[str, Callable[[], str]]:
        return {
            "llvm": lambda: target.optimised_ir(self._written.llvm, self.target, self._written.pipeline),
            "asm": lambda: target.assembly(self._written.llvm, self.target, self._written.pipeline),
        }


def _meta(s: Schedule, precision: str, leaves: list[Any]) -> dict[str, Any]:
    """What a call must know besides the facts of any schedule."""
    ahead = [] if s.ahead is None else s.ahead.graph.outputs
    return {"constants": _numbered(s.constants, leaves), "held": [_known_as(x, precision, leaves) for x in ahead], "donors": s.donors()}


def _describes(known: dict[str, Any], traced: Graph, leaves: list[Any]) -> bool:
    """Whether metadata from the disk can be that of the graph: memory is taken and passed on as it says."""
    if not cache.fits(known, {"constants": [(str, int)], "held": [(str, [int], (str, [int]))], "donors": [[int]]}):
        return False
    inputs, results = ([_type_of(x) for x in nodes] for nodes in (traced.inputs, traced.outputs))
    constants, computed = known["constants"], known["computed"]
    sources = {"input": inputs, "computed": computed, "constant": constants}
    return (
        all(_is_index(i, {"leaf": leaves, "held": known["held"]}.get(kind, ())) for kind, i in constants)
        and all(_is_index(i, leaves) for _, read, _ in known["held"] for i in read)
        and len(known["donors"]) == len(computed)
        and all(_is_index(i, inputs) for donors in known["donors"] for i in donors)
        and len(known["outputs"]) == len(results)
        and all(_is_index(i, sources.get(kind, ())) for kind, i in known["outputs"])
        and all(kind == "constant" or sources[kind][i] == type for (kind, i), type in zip(known["outputs"], results, strict=True))
        and all(t in results for t in computed)
    )


def _describes_ahead(known: dict[str, Any], types: list[Any], leaves: list[Any]) -> bool:
    """The same, of the graph of values of ``types`` that depend on constants alone."""
    return (
        cache.fits(known, {"constants": [(str, int)]})
        and all(_is_index(i, leaves) for _, i in known["constants"])
        and all(kind == "computed" and _is_index(i, known["computed"]) for kind, i in known["outputs"])
        and [known["computed"][i] for _, i in known["outputs"]] == types
        and all(t in types for t in known["computed"])
    )


def _is_index(i: int, of: Sequence[Any]) -> bool:
    return 0 <= i < len(of)


def _type_of(x: Node) -> list[Any]:
    """As metadata has it."""
    return [x.dtype.name, list(x.shape)]


def _known_as(value: Node, precision: str, leaves: list[Any]) -> tuple[str, list[int], list[Any]]:
    """What computes a value that is held, the leaves that it takes, and its type."""
    graph = Graph([], [value])
    return cache.key("held", str(graph), precision), [i for _, i in _numbered([n for n in graph.nodes() if n.op is leaf], leaves)], _type_of(value)


def _numbered(constants: list[Node], leaves: list[Any]) -> list[tuple[str, int]]:
    """Of each constant whether it is a leaf of the traced graph or held, and which."""
    number = {id(x): i for i, x in enumerate(leaves)}
    return [("held", s.index) if isinstance(s := c.attrs[0], Held) else ("leaf", number[id(s)]) for c in constants]


def _leaves(graph: Graph) -> list[Any]:
    """Storages of the graph's hidden parameters, in topological order, each once."""
    out: dict[int, Any] = {}
    for n in graph.nodes():
        if n.op.name == "leaf":
            out.setdefault(id(n.attrs[0]), n.attrs[0])
    return list(out.values())
