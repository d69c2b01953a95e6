"""One op as a function of an executor and buffers: arguments checked, a program found, native code told of the call."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, NamedTuple

from hologram.backends.native import storage
from hologram.backends.native.dispatch import BufferLeaf, Field, Number, Same, ScalarLeaf, Spec
from hologram.backends.residence import on_host
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.aval import MAX_BYTES
from hologram.ir.devices import CPU
from hologram.sdk import resident
from hologram.sdk.arguments import count, scalar
from hologram.sdk.buffer import Buffer
from hologram.sdk.executor import Executor
from hologram.sdk.programs import Program, clear_programs, program
from hologram.sdk.table import Array, Row
from hologram.settings import settings
from hologram.support.user_lines import located
from hologram.support.weak import WeakSet
from hologram.trace.call import native_dispatch
from hologram.trace.devices import forgetting

CALL_LIMIT = 256  # forms of calls that native code serves, for one op

_operations: WeakSet[Operation] = WeakSet()


class Call(NamedTuple):
    """A call, checked: the values of the parameters by name, and the sizes it works on."""

    values: Mapping[str, Any]
    device: str
    dtype: DType
    sizes: Mapping[str, int]
    whole: bool  # n was left out


class Operation:
    """A row of the table under a name, for one element type or (``dtype`` None) for all. ``call`` is the function that users have."""

    def __init__(self, row: Row, name: str, dtype: DType | None) -> None:
        self.row, self.name, self.dtype = row, name, dtype
        self._dispatch = native_dispatch.Dispatch(self._from_python, name, CALL_LIMIT, row.documentation(name, dtype))
        self._told: set[Any] = set()  # forms of calls that native code knows
        self.call = self._dispatch.call
        _operations.add(self)

    def _from_python(self, *args: Any, **options: Any) -> float | None:
        """Serves the calls that native code does not: the first of a form, results that overlap arguments, other devices."""
        call = self._checked(args, options)
        into = call.values[self.row.result.name]
        if call.device != CPU:
            return self._on_device(call, into)
        places = self._places(call)
        made = program(self.row, call.dtype, call.device, call.sizes, into.ptr)
        if self._fits(made, call, places):
            made.bound(call.sizes)(*[address for address, _ in places], places[made.place][0])
            if settings.native:
                self._go_native(made, call, args, options)
        else:
            result = made.run(places, call.sizes)
            into.to_numpy()[: result.size] = result.reshape(-1)
        return float(into.to_numpy()[0]) if self.row.gives_number else None

    def _on_device(self, call: Call, into: Buffer) -> float | None:
        made = program(self.row, call.dtype, call.device, call.sizes, 0)
        result = resident.run(made.executable, self.row, call.values, made.shapes(call.sizes), call.dtype, into, call.device)
        return float(storage.view(on_host(result)).reshape(-1)[0]) if self.row.gives_number else None

    # --- checking ------------------------------------------------------------------------------------------------------

    def _checked(self, args: tuple[Any, ...], options: dict[str, Any]) -> Call:
        """Raises ArgumentError, DTypeError, ShapeError, FreedBufferError, ClosedExecutorError, naming op and argument."""
        try:
            bound = self.row.signature.bind(*args, **options)
        except TypeError as e:
            raise located(ArgumentError(f"{self.name}{self.row.signature}: {e}")) from None
        bound.apply_defaults()
        values = dict(bound.arguments)
        executor = values["executor"]
        if not isinstance(executor, Executor):
            raise located(ArgumentError(f"{self.name}: executor is an Executor, not a {type(executor).__name__}"))
        device = executor._require_live(self.name)
        for a in self.row.arrays:
            if not isinstance(values[a.name], Buffer):
                raise located(ArgumentError(f"{self.name}: {a.name} is a Buffer, not a {type(values[a.name]).__name__}"))
            values[a.name]._require_live()
        dtype = self._element_type(values)
        sizes, whole = self._sizes(values)
        values[self.row.result.name]._require_writable(self.name)
        for p in self.row.parameters:
            if isinstance(p, str):
                values[p] = scalar(values[p], dtype, self.name, p)
        return Call(values, device, dtype, sizes, whole)

    def _element_type(self, values: Mapping[str, Any]) -> DType:
        found = {a.name: values[a.name]._aval.dtype for a in self.row.arrays}
        dtype: DType = next(iter(found.values()))
        if any(d is not dtype for d in found.values()):
            raise located(DTypeError(f"{self.name}: the buffers differ in type: {', '.join(f'{n} is {d}' for n, d in found.items())}"))
        if dtype.kind not in self.row.kinds or self.dtype not in (None, dtype):
            wanted = self.dtype or " or ".join({"f": "floats", "i": "integers", "u": "unsigned integers"}[k] for k in self.row.kinds)
            raise located(DTypeError(f"{self.name}: takes {wanted}, not {dtype}"))
        return dtype

    def _sizes(self, values: Mapping[str, Any]) -> tuple[dict[str, int], bool]:
        """The extents of the call, and whether ``n`` was left out: then the buffers are of one size, which it is."""
        whole = not self.row.by_size and values["n"] is None
        if whole:
            held = {a.name: values[a.name].size for a in self.row.arrays if a.extents}
            if len(set(held.values())) > 1:
                each = ", ".join(f"{name} has {n}" for name, n in held.items())
                raise located(ShapeError(f"{self.name}: the buffers differ in size ({each}): say how many elements with n"))
            sizes = {"n": next(iter(held.values()))}
        else:
            sizes = {e: count(values[e], self.name, e) for e in self.row.sizes}
        for a in self.row.arrays:
            if values[a.name].size < a.count(sizes):
                raise located(ShapeError(f"{self.name}: {a.name} has {values[a.name].size} elements, {_needed(a, sizes)} are needed"))
        return sizes, whole

    # --- running -------------------------------------------------------------------------------------------------------

    def _places(self, call: Call) -> list[tuple[int, Any]]:
        """For each parameter its address, and what keeps the memory alive."""
        found: list[tuple[int, Any]] = []
        for p in self.row.parameters:
            owner = call.values[p.name]._memory() if isinstance(p, Array) else call.values[p]
            found.append((owner.data if isinstance(p, Array) else owner.ctypes.data, owner))
        return found

    def _fits(self, made: Program, call: Call, places: list[tuple[int, Any]]) -> bool:
        """Whether the result can be computed where it is wanted: aligned, and clear of arguments that are read after it is written."""
        start, into = places[made.place]
        if start % made.alignment(call.sizes):
            return False
        for i, (address, memory) in enumerate(places):
            apart = start >= address + memory.nbytes or address >= start + into.nbytes
            if i != made.place and not apart and not (address == start and i in made.sharers):
                return False
        return True

    def _go_native(self, made: Program, call: Call, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Lets native code serve the calls that are like this one from now on, where it can."""
        given = dict(zip(self.row.signature.parameters, args, strict=False)) | options
        order = [p.name if isinstance(p, Array) else p for p in self.row.parameters]
        if [name for name in given if name in order] != order:
            return  # the graph takes them in the op's order
        if not all(type(given.get(e)) in (int, NoneType) for e in call.sizes):
            return  # a size is compared as a Python integer
        kinds = tuple(type(given[p]) for p in self.row.parameters if isinstance(p, str))
        form = (len(args), *options, call.dtype, *call.sizes.values(), call.whole, made.fixed, *kinds, settings.code)
        if form in self._told:
            return
        if len(self._told) >= CALL_LIMIT:
            self._told.clear()
        self._told.add(form)
        self._dispatch.add(self._specification(made, call, args, options))

    def _specification(self, made: Program, call: Call, args: tuple[Any, ...], options: dict[str, Any]) -> Spec:
        arrays = {a.name: a for a in self.row.arrays}

        def pattern(name: str, value: Any) -> Any:
            if name == "executor":
                return Field(Executor, "_device", CPU)
            if name in arrays:
                least = arrays[name].count(call.sizes) * call.dtype.itemsize
                exact = call.whole and bool(arrays[name].extents)
                return BufferLeaf(call.dtype, least, least if exact else MAX_BYTES)
            return Same(value) if name in call.sizes else ScalarLeaf(type(value), call.dtype)

        address, symbols, arena, long = made.call(call.sizes)
        return Spec(
            args=[pattern(name, value) for name, value in zip(self.row.signature.parameters, args, strict=False)],
            kwargs={name: pattern(name, value) for name, value in options.items()},
            result=Number(0, call.dtype) if self.row.gives_number else None,
            outputs=[made.into(call.sizes)],
            address=address,
            keep=made.executable,
            constants=made.executable.constants,
            symbols=symbols,
            arena_bytes=arena,
            long=long,
            parallel=made.executable.parallel,
        )


def _needed(a: Array, sizes: Mapping[str, int]) -> str:
    return " x ".join(str(sizes[e]) for e in a.extents) or "1"


def clear() -> None:
    """Forgets all programs; calls in flight finish."""
    clear_programs()
    for operation in list(_operations):
        operation._told.clear()
        operation._dispatch.clear()


forgetting.append(clear)
