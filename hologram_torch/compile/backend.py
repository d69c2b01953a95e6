"""The backend that Dynamo calls, and the compilers of AOTAutograd's graphs."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch import fx
from torch._dynamo.backends.common import aot_autograd

from hologram.errors import ArgumentError, is_defect
from hologram.settings import settings
from hologram.support.lru_cache import Recent
from hologram.support.precision import PRECISIONS
from hologram_torch.compile.decompositions import decompositions
from hologram_torch.compile.definitions import define
from hologram_torch.compile.frozen import Frozen, parameters
from hologram_torch.compile.fx_types import Sizes, Symbols, is_dynamic, sizes_of, symbols_of
from hologram_torch.compile.partition import Partition
from hologram_torch.compile.positions import NoPosition, position_symbols
from hologram_torch.compile.program_writer import ProgramWriter
from hologram_torch.compile.recompute import split_joint_graph
from hologram_torch.compile.simplify import simplify
from hologram_torch.compile.symbolic_sizes import MIN_SIZE, SymbolicSizes
from hologram_torch.compile.unknown_sizes import cut, static_arguments

PLAIN_MODES = ("default", "reduce-overhead")  # what the backend does: a graph is one native call, on CUDA one launch
MODES = (*PLAIN_MODES, "max-autotune", "max-autotune-no-cudagraphs")
MAX_EQUALITIES = 8  # programs of one graph with symbolic sizes, which differ in the sizes that are equal
MAX_SIZES = 64  # programs of one graph whose sizes vary

log = logging.getLogger(__name__)

Call = Callable[[list[Any]], Any]
Observer = Callable[[str, fx.GraphModule, Any], None]


class Options(NamedTuple):
    """How graphs are compiled: a precision of :func:`hologram.jit`, and whether parameters are constants of graphs for inference."""

    precision: str = "standard"
    freeze: bool = False


class Unit(NamedTuple):
    """One graph that is compiled, perhaps for several sizes: the arguments ``static`` are constants. ``cut``: whether sizes that it finds are yet to
    be cut off.

    ``observe`` is told the stage, the graph, and the writer of its program.
    """

    stage: str
    module: fx.GraphModule
    options: Options
    static: Sequence[int]
    observe: Observer | None
    cut: bool = True


def _compiled(unit: Unit, sizes: Sizes, positions: Symbols = frozenset()) -> Call:
    """Compiles a graph with known sizes to a function of a list. Raises NoPosition where one of the ``positions`` has to be known too."""
    if unit.static:
        return Frozen(unit.static, lambda frozen: _written(unit, sizes, positions, frozen))
    return _written(unit, sizes, positions, {})


def _compiled_for_many_sizes(unit: Unit, sizes: Sizes, otherwise: Call) -> Call:
    """Compiles a graph with symbolic sizes, of which those that are equal in ``sizes`` stay equal, to a function of a list. It calls ``otherwise``
    for sizes that its program is not for. Raises NotSymbolic where sizes have to be known."""

    def write(frozen: Mapping[int, torch.Tensor], positions: Symbols) -> Call:
        symbolic = SymbolicSizes({s: n for s, n in sizes.items() if s not in positions})
        return _written(unit, symbolic, positions, frozen, otherwise)

    if unit.static:
        return Frozen(unit.static, lambda frozen: _tried(unit, lambda: write(frozen, frozenset())) or otherwise)
    try:
        return write({}, position_symbols(unit.module.graph))
    except NoPosition:
        return write({}, frozenset())


def _written(unit: Unit, sizes: Sizes, positions: Symbols, frozen: Mapping[int, torch.Tensor], otherwise: Call | None = None) -> Call:
    stage, module, options, _, observe, _ = unit
    placeholders = list(module.graph.find_nodes(op="placeholder"))
    partition = Partition(stage, module.graph, sizes, {placeholders[i]: x for i, x in frozen.items()}, positions)
    writer = ProgramWriter(module, partition, options.precision, otherwise)
    call = writer.write()
    if observe is not None:
        observe(stage, module, writer)
    return call


class _ForEachSize:
    """A graph as a function of a list: one program for each set of sizes and strides that it is called with, which takes positions as operands where
    it can. It serves the sizes that the program for all sizes does not."""

    def __init__(self, unit: Unit) -> None:
        self._boxed_call = True  # AOTAutograd takes over attributes of the object, not those of its class
        self._unit, self._placeholders = unit, list(unit.module.graph.find_nodes(op="placeholder"))
        self._programs = Recent(MAX_SIZES)
        self._take(() if unit.static else position_symbols(unit.module.graph))

    def _take(self, positions: Iterable[Any]) -> None:
        self._positions = frozenset(positions)
        self._moving = frozenset(i for i, p in enumerate(self._placeholders) if symbols_of(p.meta.get("val")) & self._positions)

    def __call__(self, args: list[Any]) -> Any:
        program = self._programs.get(self._key(args))
        if program is None:
            program = self._compiled_for(args)
            self._programs.put(self._key(args), program)
        return program(args)

    def _key(self, args: list[Any]) -> tuple[Any, ...]:
        moving = self._moving
        return tuple([(x.shape, x.stride()) if isinstance(x, torch.Tensor) else None if i in moving else x for i, x in enumerate(args)])

    def _compiled_for(self, args: list[Any]) -> Call:
        sizes = sizes_of(self._placeholders, args)
        try:
            return _compiled(self._unit, {s: n for s, n in sizes.items() if s not in self._positions}, self._positions)
        except NoPosition:
            self._take(())
            return _compiled(self._unit, sizes)


def _tried(unit: Unit, compiled: Callable[[], Call]) -> Call | None:
    """What ``compiled()`` gives; None where some part of the compiler has to know a size, so that programs of known sizes serve the graph."""
    try:
        return compiled()
    except Exception as e:  # noqa: BLE001  of those parts each raises what it does
        if settings.verify and (is_defect(e) or isinstance(e, AssertionError)):
            raise
        log.info("torch.compile: a %s graph has a program for each set of sizes: %s: %s", unit.stage, type(e).__name__, e)
        return None


class _ForManySizes:
    """A graph as a function of a list: programs with symbolic sizes, tried in turn, which differ in the sizes that have to be equal. What none of
    them serves has a program for its own sizes."""

    def __init__(self, unit: Unit) -> None:
        self._boxed_call = True
        self._unit, self._placeholders = unit, list(unit.module.graph.find_nodes(op="placeholder"))
        self._programs: list[Call] = []
        self._tried: set[tuple[int, ...]] = set()
        self._for_each_size = _ForEachSize(unit)

    def __call__(self, args: list[Any]) -> Any:
        return self._from(0, args)

    def _from(self, first: int, args: list[Any]) -> Any:
        """What the program number ``first``, or one after it, gives."""
        if first == len(self._programs):
            self._add(args)
        return (self._programs[first] if first < len(self._programs) else self._for_each_size)(args)

    def _add(self, args: list[Any]) -> None:
        """Compiles a program in which those sizes are equal that are in this call, unless there was one."""
        sizes = sizes_of(self._placeholders, args)
        values = list(sizes.values())
        alike = tuple([values.index(n) for n in values])
        if alike in self._tried or len(self._tried) == MAX_EQUALITIES or min(values, default=0) < MIN_SIZE:
            return
        self._tried.add(alike)
        otherwise = functools.partial(self._from, len(self._programs) + 1)
        found = _tried(self._unit, lambda: _compiled_for_many_sizes(self._unit, sizes, otherwise))
        if found is not None:
            self._programs.append(found)


def _compiler(stage: str, options: Options, observe: Observer | None) -> Callable[[fx.GraphModule, Sequence[Any]], Call]:
    """Returns the compiler of AOTAutograd's graphs of one stage: ``forward``, ``backward`` or ``inference``."""

    def compiler(module: fx.GraphModule, example_inputs: Sequence[Any]) -> Call:
        simplify(module)
        static = parameters(module.graph) if options.freeze and stage == "inference" else []
        return _compiled_in_parts(Unit(stage, module, options, static, observe))

    return compiler


def _compiled_in_parts(unit: Unit) -> Call:
    """Compiles a graph, cut where it finds sizes."""
    found = cut(unit.module) if unit.cut else None
    if found is None:
        return _ForManySizes(unit) if is_dynamic(unit.module.graph) else _compiled(unit, {})
    head, tail = unit._replace(module=found.head), unit._replace(module=found.tail, static=static_arguments(found, unit.static))
    return found.joined(_compiled_in_parts(head._replace(cut=False)), _compiled_in_parts(tail))


def make_backend(observe: Observer | None = None, precision: str = "standard", freeze: bool = False) -> Callable[..., Any]:
    """Returns a backend for ``torch.compile`` with these :class:`Options`; ``observe`` is told of every program that it makes."""
    options = Options(precision, freeze)
    forward, backward, inference = (_compiler(stage, options, observe) for stage in ("forward", "backward", "inference"))
    compiled = aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        partition_fn=min_cut_rematerialization_partition if precision == "exact" else split_joint_graph,
        decompositions=decompositions,
        keep_inference_input_mutations=True,  # assignments to arguments are a part of the graph
    )

    def of_graph(module: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        define(module)
        return compiled(module, example_inputs)

    return of_graph


_with_options = functools.cache(functools.partial(make_backend, None))


@functools.cache
def _check_mode(mode: str) -> None:
    """Raises ArgumentError for a mode that ``torch.compile`` does not have. Logs, once, that nothing is tuned."""
    if mode not in MODES:
        raise ArgumentError(f"torch.compile: the modes of this backend are {', '.join(MODES)}; not {mode!r}")
    if mode not in PLAIN_MODES:
        log.warning("torch.compile: backend 'hologram' has nothing to tune by timing: mode %r compiles as mode 'default' does", mode)


def backend(
    module: fx.GraphModule, example_inputs: Sequence[Any], *, mode: str | None = None, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """The backend of ``torch.compile(model, backend="hologram")``, which calls it with each graph that Dynamo captures.

    ``torch.compile(…, options={"precision": "exact"})`` chooses one of :func:`hologram.jit`'s precisions; ``{"freeze": True}`` holds parameters that
    are on the CPU in graphs for inference (:mod:`hologram_torch.compile.frozen`). ``mode`` is one of torch's, all of which compile alike; a mode
    that asks for tuning is told of in the log. Raises ArgumentError for other options and modes.

    >>> model = torch.compile(lambda x: torch.relu(x) + 1, backend="hologram")
    >>> model(torch.tensor([-1.0, 2.0]))
    tensor([1., 3.])
    """
    if mode is not None:
        _check_mode(mode)
    try:
        given = Options(**dict(options or {}))
    except TypeError:
        given = Options("")
    if given.precision not in PRECISIONS or type(given.freeze) is not bool:
        allowed = f"precision, one of {', '.join(PRECISIONS)}, and freeze, True or False"
        raise ArgumentError(f"torch.compile: the options of this backend are {allowed}; not {dict(options or {})}")
    return _with_options(*given)(module, example_inputs)
