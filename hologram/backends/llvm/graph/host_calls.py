"""Host steps in the graph function, and the way from native code to Python routines.

A step that goes to LAPACK is a kernel of the runtime's over the stack of its matrices, a Fourier transform a few parallel loops. Any other calls
Python: a text in the object code says which op, with which attributes, shapes and types, so the code depends on no address; extents that are
symbols, and the addresses of the arrays, are arguments. The op's ``reference`` runs on views of that memory.
"""

from __future__ import annotations

import ctypes
import json
import math
import weakref
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.backends.llvm.abi import PENDING_AT, PHASE_BYTES
from hologram.backends.llvm.graph import fourier, lapack
from hologram.backends.llvm.graph.writer import Frame, GraphWriter
from hologram.backends.llvm.sharing import GRAIN_NS, SERIAL_NS
from hologram.backends.llvm.text import Reg
from hologram.graph.lower.collective_step import DONE, START, WHOLE, CollectiveStep
from hologram.graph.lower.host_step import HostStep
from hologram.ir.leaves import const
from hologram.ir.node import symbolic_bytes
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Expr, Int, is_static
from hologram.primitives.host import lanes
from hologram.primitives.host.collective_calls import Collective, Reference
from hologram.primitives.host.effects import effect

# --- writing ---------------------------------------------------------------------------------------------------------


def write_host(w: GraphWriter, step: HostStep, frame: Frame) -> None:
    """Writes the call of a step's routine."""
    arrays = [w.pointer(x, frame) for x in (*step.node.inputs, *step.results)]
    transform = fourier.request(step, w.precision, w.target)
    if transform is not None:
        work = arrays[0] if step.workspace is None else w.pointer(step.workspace, frame)
        return _call_transform(w, transform, [*arrays, work])
    native = lapack.native(step)
    if step.op is effect:
        _call_where_enabled(w, step, arrays)
    elif native is None:
        _call_python(w, step, arrays)
    else:
        _call_native(w, native, arrays)
    return None


def _call_native(w: GraphWriter, native: lapack.Native, arrays: list[Reg]) -> None:
    w.externals.update(r for r in native.routines if r is not None)
    w.declared.add(native.kernel)
    routines = [Reg("null" if r is None else f"@{r}", "ptr", 1) for r in native.routines]
    integers = [w.integers.integer(n) for n in (*native.integers, *native.bits)]
    args = w.stored([Reg("%ctx", "ptr", 1), *routines, *integers, *[arrays[i] for i in native.arrays]])
    chunks, grain = native.chunks, max(1, int(GRAIN_NS / native.cost))
    _share(w, native.kernel, args, chunks, chunks if isinstance(chunks, int) and chunks * native.cost < SERIAL_NS else grain)


def _call_transform(w: GraphWriter, request: fourier.Request, arrays: list[Reg]) -> None:
    """The phases of a plan, one after the other."""
    plan = request.symbol
    w.externals.add(plan)
    w.declared.add(fourier.KERNEL)
    for i, phase in enumerate(fourier.phases(request)):
        at = w.f.emit(f"getelementptr i8, ptr @{plan}, i64 {i * PHASE_BYTES}", "ptr", 1)
        _share(w, fourier.KERNEL, w.stored([Reg("%ctx", "ptr", 1), at, *arrays]), phase.chunks, phase.grain)


def _share(w: GraphWriter, kernel: str, args: str, chunks: Int, grain: int) -> None:
    """Runs the chunks of a kernel of the runtime's, alone where a thread takes all of them at one time."""
    count = w.integers.integer(chunks)
    if isinstance(chunks, int) and chunks <= grain:
        w.f.do(f"call void @{kernel}(ptr {args}, i64 0, i64 {count.text}, ptr {w.scratch.text})")
        w.return_if(w.f.emit(f"call i64 @{_CANCELLED}(ptr %ctx)", "i64", 1))
    else:
        w.share(kernel, args, count, Reg(str(grain), "i64", 1))


_CANCELLED = "hg_poll"  # which tells of a call that was cancelled


def _call_python(w: GraphWriter, step: HostStep, arrays: list[Reg]) -> None:
    f, nodes = w.f, (*step.node.inputs, *step.results)
    symbolic = [n for n in (*step.node.attrs, *[n for x in nodes for n in x.shape]) if isinstance(n, Expr)]
    text = w.text(_described(step, w.precision))
    values = [text, Reg("%ctx", "ptr", 1), *[w.integers.integer(n) for n in symbolic], *arrays]
    w.return_if(f.emit(f"call i64 @hg_call_host(ptr %ctx, ptr {w.stored(values)})", "i64", 1))


def _call_where_enabled(w: GraphWriter, step: HostStep, arrays: list[Reg]) -> None:
    """Calls Python for its effect; where the effect is not enabled, the results are zeros, and Python sees nothing of it."""
    f = w.f
    if step.node.inputs[1].op is const:
        return _call_python(w, step, arrays)
    for result, place in zip(step.results, arrays[len(step.node.inputs) :], strict=True):
        nbytes = w.integers.integer(symbolic_bytes(result))
        f.do(f"call void @llvm.memset.p0.i64({place.typed}, i8 0, {nbytes.typed}, i1 false)")
    enabled = f.emit(f"load i8, ptr {arrays[1].text}, align 1", "i8", 1)
    f.only_if(f.emit(f"icmp ne i8 {enabled.text}, 0", "i1", 1), lambda: _call_python(w, step, arrays))
    return None


def _described(step: HostStep, precision: str) -> str:
    """A step as JSON: name, whether a routine of the runtime's may take the place of the reference, attributes, number of operands, of each array its
    type and shape, null for an extent that is an argument, and for a collective whether the call starts it or waits for it.

    JSON, for any thread may read it while others read something else: CPython 3.11 has one state for all threads that parse Python.
    """

    def extent(n: Int) -> Int | None:
        return n if is_static(n) else None

    types = [(x.dtype.name, tuple(map(extent, x.shape))) for x in (*step.node.inputs, *step.results)]
    when = (step.phase, step.number) if isinstance(step, CollectiveStep) else (WHOLE, 0)
    return json.dumps((step.op.name, precision != "exact", tuple(map(_written, step.node.attrs)), len(step.node.inputs), types, *when))


# --- Python objects in attributes ------------------------------------------------------------------------------------

_objects: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def is_bound(attrs: tuple[Any, ...]) -> bool:
    """Whether attributes hold an object of this process, so that code that calls it is of no use to another."""
    return any(is_bound(a) if isinstance(a, tuple) else not isinstance(a, (bool, int, float, str, type(None), Expr)) for a in attrs)


_ARGUMENT: dict[str, int] = {}


def _written(attribute: Any) -> Any:
    """An attribute for JSON: an empty object for an integer that is an argument; for an object of this process, which the compiled graph keeps alive,
    its number."""
    if isinstance(attribute, Expr):
        return _ARGUMENT
    if isinstance(attribute, tuple) or not is_bound((attribute,)):
        return attribute
    _objects[id(attribute)] = attribute
    return {"object": id(attribute)}


def _read(attribute: Any, arguments: Iterator[int]) -> Any:
    """What :func:`_written` wrote."""
    if isinstance(attribute, list):
        return tuple([_read(a, arguments) for a in attribute])
    if attribute == _ARGUMENT:
        return next(arguments)
    return _objects[attribute["object"]] if isinstance(attribute, dict) else attribute


# --- calling ---------------------------------------------------------------------------------------------------------


# What runs an op by its name on operands, results and attributes when sizes are known; False where the reference must.
ROUTINES: dict[str, Callable[[str, list[np.ndarray], list[Any]], bool]] = {}


def call(args: int) -> None:
    """Runs the host op whose arguments native code has put at ``args``. What the routine raises goes to the caller of the graph."""
    _prepared(ctypes.string_at(ctypes.c_void_p.from_address(args).value or 0))(args)


@lru_cache(maxsize=1024)
def _prepared(text: bytes) -> Callable[[int], None]:
    name, free, attrs, operands, types, phase, number = json.loads(text)
    if phase == DONE:
        return lambda args: lanes.finish(ctypes.c_int64.from_address(args + 8).value, PENDING_AT, number)
    reference: Any = TABLE[name].reference
    arguments = _Arguments(attrs, [(dtypes.of(d), tuple(shape)) for d, shape in types])
    if isinstance(reference, Reference):
        return _collective(reference, arguments, operands, number if phase == START else None)

    def run(args: int) -> None:
        _, attributes, arrays = arguments.read(args)
        routine = ROUTINES.get(name) if free else None
        if routine is not None and routine(name, arrays, list(attributes)):
            return
        for a in arrays[:operands]:
            a.flags.writeable = False
        for to, value in zip(arrays[operands:], reference(*arrays[:operands], *attributes), strict=True):
            np.copyto(to, value)

    return run


def _collective(reference: Reference, arguments: _Arguments, operands: int, number: int | None) -> Callable[[int], None]:
    """Runs a collective, or starts the one of a number."""

    def prepare(arrays: list[np.ndarray], attributes: tuple[Any, ...]) -> Collective:
        types = [(dtype, a.shape) for (dtype, _), a in zip(arguments.types, arrays[:operands], strict=False)]
        return reference.prepare(tuple(types), attributes)

    once: list[Collective] = []  # where all is known

    def run(args: int) -> None:
        context, attributes, arrays = arguments.read(args)
        collective = once[0] if once else prepare(arrays, attributes)
        if not once and arguments.unknown == 0:
            once.append(collective)
        if number is None:
            collective(arrays[operands:], arrays[:operands])
        else:
            collective.start(arrays[operands:], arrays[:operands], context, PENDING_AT, number)

    return run


class _Arguments:
    """How the arguments of a call lie in memory: two words, the extents that are not known before, and the addresses of arrays of ``types``."""

    def __init__(self, attrs: list[Any], types: list[tuple[dtypes.DType, tuple[int | None, ...]]]) -> None:
        self._attrs, self.types = attrs, types
        self.unknown = attrs.count(_ARGUMENT) + sum(n is None for _, shape in types for n in shape)
        self._words: Any = ctypes.c_int64 * (2 + self.unknown + len(types))
        self._plain: Any = None if self.unknown or _holds_objects(attrs) else tuple([_read(a, iter(())) for a in attrs])
        self._views = None if self.unknown else [_viewer(dtype, shape) for dtype, shape in types]  # type: ignore[arg-type]

    def read(self, args: int) -> tuple[int, tuple[Any, ...], list[np.ndarray]]:
        """The context of the call, the attributes and the arrays."""
        words = self._words.from_address(args)[:]
        if self._views is not None:
            attributes = self._plain if self._plain is not None else tuple([_read(a, iter(())) for a in self._attrs])
            return words[1], attributes, [view(address) for view, address in zip(self._views, words[2:], strict=True)]
        first = 2 + self.unknown
        extents = iter(words[2:first])
        attributes = tuple([_read(a, extents) for a in self._attrs])
        shapes = [(dtype, tuple([next(extents) if n is None else n for n in shape])) for dtype, shape in self.types]
        return words[1], attributes, [_viewer(*t)(address) for t, address in zip(shapes, words[first:], strict=True)]


def _holds_objects(attribute: Any) -> bool:
    return any(map(_holds_objects, attribute)) if isinstance(attribute, list) else isinstance(attribute, dict)


def _viewer(dtype: dtypes.DType, shape: tuple[int, ...]) -> Callable[[int], np.ndarray]:
    """What gives the array of a type at an address."""
    element = dtype.np
    nbytes = math.prod(shape) * element.itemsize
    if not nbytes:
        return lambda address: np.empty(shape, element)
    memory = ctypes.c_uint8 * nbytes
    return lambda address: np.ndarray(shape, element, memory.from_address(address))
