"""A compiled graph on the CPU: linked code, what a call must supply, and the text of every stage on request."""

from __future__ import annotations

import copy
import json
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hologram import dtypes
from hologram.backends import object_cache as cache
from hologram.backends.base import BaseExecutable, tell_program
from hologram.backends.cpu import listing, metadata
from hologram.backends.cpu.compile import Source, is_long
from hologram.backends.llvm.toolchain import target
from hologram.backends.native import addresses, calls, storage
from hologram.backends.native.code.records import Bound
from hologram.backends.native.module import Record
from hologram.graph.compilation import Compilation
from hologram.graph.execution_plan import bind_symbols
from hologram.graph.memory.call_sizes import CallSizes
from hologram.graph.memory.growing import GrowingArena
from hologram.ir.aval import Aval, aval
from hologram.ir.graph import Graph
from hologram.ir.symbolic import Int
from hologram.settings import settings
from hologram.support import debug
from hologram.support.cached_property import cached_property

MAX_SIZES = 64  # plans that a graph with symbolic shapes keeps


class CallIntegers(NamedTuple):
    """The integers that code takes behind its results: values of ``symbols``, and ``offsets`` of the intermediates in an arena of ``arena_bytes``.
    These have room as long as none of them needs more bytes than it has: ``needed``."""

    symbols: list[str]
    offsets: list[int]
    needed: list[tuple[Int, int]]
    arena_bytes: int


class Executable(BaseExecutable):
    """Runs a graph.

    ``constants`` are the storages of its hidden parameters, which a call supplies after the inputs. ``computed`` are the types of what
    the graph writes, in the order of its output slots (None with symbolic shapes); ``outputs`` says of each result whether it is an
    ``input``, a ``constant`` or ``computed``, and which. ``donors[i]`` are inputs in whose memory the i-th computed result may be put;
    ``brief`` tells that a call is then short. ``computes_all_results`` tells that the results are what is computed, in order.
    ``folded`` keeps those of the constants alive that were computed from others; ``source`` is what the code was generated from.

    ``twin`` is the same program with counters, which runs in its place while profiles are made; itself for one that has them.

    ``bound_to`` is what :meth:`with_last_inputs` binds inputs of, and to what.
    """

    bound_to: tuple[Executable, Sequence[Any]] | None = None

    remote = False
    where = "the CPU"
    n_steps = steps = 0  # it does not run op by op: see hologram.backends.op_by_op.native_steps

    def __init__(
        self,
        compilation: Compilation,
        machine: target.Target,
        checked: bool,
        code: target.Code,
        known: dict[str, Any],
        constants: list[Any],
        folded: list[Any],
        source: Source,
    ) -> None:
        super().__init__(compilation)
        self.target, self.checked, self.constants, self._code, self._folded, self._source = machine, checked, constants, code, folded, source
        self._facts = _facts(known)
        self.sizes = metadata.call_sizes(known, self.traced)
        self.dynamic = self.sizes is not None
        self.outputs: list[tuple[str, int]] = [(kind, index) for kind, index in known["outputs"]]
        self.arena_bytes: int = known["arena"]
        self.long: bool = known["long"]
        self.brief: bool = known["brief"]
        self.parallel: int = known["parallel"]
        self.donors: list[list[int]] = known["donors"]
        self._dtypes = [dtypes.of(d) for d, _ in known["computed"]]
        self.computed: list[Aval] | None = (
            None if self.dynamic else [aval(d, tuple(s)) for d, (_, s) in zip(self._dtypes, known["computed"], strict=True)]
        )
        self.address: int = code.address("graph")
        if self.brief and self.computed is not None:
            self.reusable = [(i, of, d) for i, (of, d) in enumerate(zip(self.computed, self.donors, strict=True)) if d]
        self.computes_all_results = self.outputs == [("computed", i) for i in range(len(self.outputs))] and len(self.outputs) == len(self.donors)
        self._calls: dict[tuple[bool, int], Callable[..., None]] = {}  # by whether they are long, and the arena
        self._arena: GrowingArena | None = None
        self._known: dict[tuple[int, ...], tuple[list[Aval], list[int], int]] = {}  # what calls need, by the symbols' values
        tell_program(compilation, lambda: f"cpu: {self.target.id}", "LLVM IR", lambda: self._source.module.llvm)
        debug.tell(debug.ASSEMBLY, "assembly", lambda: self.as_text("asm"))

    # --- running -------------------------------------------------------------------------------------------------------

    def run(self, inputs: Sequence[Any], donated: Mapping[int, int] | None = None, sizes: Mapping[str, int] | None = None) -> list[Any]:
        """Storages of the results for storages of the inputs. ``donated``: for computed results the input, of the same type, whose storage becomes
        the result's; where nobody else holds it, and the program is brief, so that nothing ends the call halfway. ``sizes``: the values of all
        symbols, which the inputs' shapes keep to; without it they follow from these shapes."""
        symbols: list[int] = []
        computed, arena = self.computed, self.arena_bytes
        if computed is None:
            computed, symbols, arena = self.at_shapes([x.aval.shape for x in inputs]) if sizes is None else self.at_sizes(sizes)
        if settings.profile and (twin := self.twin) is not self:
            return twin.run(inputs, donated, sizes)
        taken = donated or {}
        outs = [inputs[taken[i]] if i in taken else storage.empty(a) for i, a in enumerate(computed)]
        long = self.long and not taken
        if settings.debug < debug.TIMINGS:
            call = self._calls.get((long, arena)) or self._bind(long, arena)
            call(*[s.data for s in inputs], *[s.data for s in outs], *symbols)
        else:
            with debug.timed("call"):
                calls.run(self.address, [*inputs, *self.constants], outs, symbols, arena, long, self.parallel)
        if self.computes_all_results:
            return outs
        sources = {"input": inputs, "constant": self.constants, "computed": outs}
        return [sources[kind][index] for kind, index in self.outputs]

    def _bind(self, long: bool, arena: int) -> Callable[..., None]:
        """The native function that :meth:`run` calls: of the addresses of inputs and results, and of the integers of a program with symbols, whose
        slots follow."""
        results = len(self.donors) + (0 if self.sizes is None else self.sizes.integers)
        keep = (self._code, self._folded)  # not the executable, which keeps the function
        call = addresses.bind(self.address, len(self.traced.inputs), results, self.constants, (), arena, long, self.parallel, keep=keep)
        _remember(self._calls, (long, arena), call)
        return call

    def bound(self, shapes: Sequence[tuple[int, ...]] = (), sizes: Mapping[str, int] | None = None) -> Callable[..., None]:
        """A function of the addresses of all inputs and then of all computed results, as Python integers, that runs the graph on that memory.

        With symbolic extents it is for inputs of ``shapes``, or for ``sizes``, the values of the symbols. Memory is C-contiguous and aligned to its
        elements; results of at least ``NONTEMPORAL_BYTES`` (:mod:`memory_code`) start at multiples of 64 bytes. A result may lie where one of its
        ``donors`` lies, at the same address, and otherwise overlaps nothing that the call reads. A call costs about a tenth of a microsecond more
        than its kernels.
        """
        computed, symbols, arena = self.computed, (), self.arena_bytes
        if computed is None:
            computed, symbols, arena = self.at_shapes(shapes) if sizes is None else self.at_sizes(sizes)  # type: ignore[assignment]
        inputs = len(self.traced.inputs)
        call = addresses.bind(self.address, inputs, len(computed), self.constants, symbols, arena, self.long, self.parallel, keep=self)
        _bound_calls.add(call)
        if settings.profile:
            _set_address(call, is_profiled=True)
        return call

    def with_last_inputs(self, last: Sequence[Any], traced: Graph) -> Executable:
        """The program with its last inputs bound to these storages, which are no results: calls supply the others. It shares the code. ``traced`` is
        what it computes, in which the bound values are constants."""
        inputs, bound = len(traced.inputs), copy.copy(self)
        bound.__dict__.pop("_with_counters", None)
        bound.bound_to = self, last
        before = self.compilation
        bound.compilation = Compilation(traced, before.precision, before.tile, before.placement, before.blocked)
        bound.traced = traced
        bound.constants = [*last, *self.constants]  # the inputs end where the constants begin
        bound.outputs = [(kind, index + len(last) * (kind == "constant")) for kind, index in self.outputs]
        bound.donors = [[d for d in donors if d < inputs] for donors in self.donors]
        bound.reusable = [(i, of, left) for i, of, _ in self.reusable if (left := bound.donors[i])]
        bound._calls, bound._arena, bound._known = {}, None, {}
        return bound

    # --- with counters -------------------------------------------------------------------------------------------------

    @property
    def twin(self) -> Executable:
        return self if self._source.profiled else self._with_counters or self  # itself is not remembered: it would keep itself

    @cached_property
    def _with_counters(self) -> Executable | None:
        """The program with counters, from the same plan; None where the compiler, whose settings may have changed, gives another."""
        if self.bound_to is not None:
            whole, last = self.bound_to
            return None if whole.twin is whole else whole.twin.with_last_inputs(last, self.traced)
        key = None if self._source.key is None else cache.key("profiled", self._source.key)
        source = replace(self._source, key=key, profiled=True)
        code, known = source.link(source.generate())
        if _facts(known) != self._facts:
            return None
        return Executable(self.compilation, self.target, self.checked, code, known, self.constants, self._folded, source)

    def for_all_sizes(self) -> Callable[..., None] | None:
        """A function as :meth:`bound` gives, which takes the values of the symbols behind the addresses; None where a program with symbols has
        intermediates, whose places depend on sizes. It does not give up the GIL."""
        if self.sizes is not None and self.sizes.integers != len(self.sizes.symbols):
            return None
        return self._bind(False, self.arena_bytes)

    def at_shapes(self, shapes: Sequence[tuple[int, ...]]) -> tuple[list[Aval], list[int], int]:
        """Result types, integers and arena of a call with inputs of these shapes, for a program whose extents are symbolic."""
        return self.at_sizes(bind_symbols(self.traced.inputs, list(shapes)))

    def at_sizes(self, values: Mapping[str, int]) -> tuple[list[Aval], list[int], int]:
        """As :meth:`at_shapes`, for these values of the symbols."""
        assert self.sizes is not None
        key = tuple([values[name] for name in self.sizes.symbols])
        found = self._known.get(key)
        if found is None:
            found = self._at(self.sizes, key, values)
            _remember(self._known, key, found)
        return found

    def is_long_at(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Whether a call with inputs of these shapes is expected to take so long that others should have the GIL."""
        return self.long and (self.sizes is None or is_long(self.sizes.cost_at(bind_symbols(self.traced.inputs, list(shapes)))))

    def is_long_up_to(self, values: Mapping[str, int]) -> bool:
        """As :meth:`is_long_at`, for values of the symbols up to these."""
        return self.long and (self.sizes is None or is_long(self.sizes.cost_at(values)))

    def call_up_to(self, values: Mapping[str, int]) -> CallIntegers:
        """What a call takes at values of the symbols up to these: more memory than there need be."""
        if self.sizes is None:
            return CallIntegers([], [], [], self.arena_bytes)
        if not self.sizes.lifetimes:
            return CallIntegers(self.sizes.symbols, [], [], 0)
        if self._arena is None:
            self._arena = GrowingArena(self.sizes)
        room, offsets, arena = self._arena.packed(tuple([values[name] for name in self.sizes.symbols]))
        needed = [b.nbytes for b in self.sizes.lifetimes]
        return CallIntegers(self.sizes.symbols, offsets, list(zip(needed, room, strict=True)), arena)

    def _at(self, sizes: CallSizes, of: tuple[int, ...], values: Mapping[str, int]) -> tuple[list[Aval], list[int], int]:
        """What :meth:`at_sizes` gives for values of the symbols, which are ``of`` in order."""
        self.compilation.verify_sizes(values)
        if self._arena is None:
            self._arena = GrowingArena(sizes)
        shapes, needed = sizes.at(*of)
        offsets, arena = self._arena.at(of, needed)
        return [aval(d, shape) for d, shape in zip(self._dtypes, shapes, strict=True)], [*of, *offsets], arena

    # --- seeing inside -------------------------------------------------------------------------------------------------

    @property
    def _texts(self) -> Mapping[str, Callable[[], str]]:
        return {
            "llvm": lambda: target.optimised_ir(self._source.module.llvm, self.target, self._source.module.pipeline),
            "asm": lambda: target.assembly(self._source.module.llvm, self.target, self._source.module.pipeline),
        }

    def kernel_code(self) -> tuple[str, dict[str, str]]:
        parts = listing.functions(self._texts["asm"]())
        made = {text: "\n".join(parts[n] for n in names if n in parts) for text, names in self._source.module.functions.items()}
        return "assembly", {text: code for text, code in made.items() if code}


def _facts(known: Mapping[str, Any]) -> str:
    """What a call must know of a program's code, as text."""
    return json.dumps({name: known[name] for name in ("outputs", "computed", "arena", "long", "parallel", "donors", "constants", "folded")})


_bound_calls: weakref.WeakSet[Any] = weakref.WeakSet()  # what :meth:`Executable.bound` gave, and somebody has


def profile_bound_calls(is_profiled: bool) -> None:
    """Programs that callers have by address run with counters from now on, or without. Calls under way end as they began."""
    for call in list(_bound_calls):
        _set_address(call, is_profiled)


def _set_address(call: Any, is_profiled: bool) -> None:
    kept = getattr(call, "__self__", None)
    if isinstance(kept, tuple):  # of native code; :func:`addresses.bind`
        table, executable = kept[0], kept[-1]
        Record(Bound, table.data).graph = (executable.twin if is_profiled else executable).address


def _remember(memo: dict[Any, Any], key: Any, value: Any) -> None:
    """Adds to a memo that keeps the latest."""
    if len(memo) >= MAX_SIZES:
        memo.pop(next(iter(memo)), None)
    memo[key] = value
