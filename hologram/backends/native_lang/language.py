"""A small typed subset of Python for native code, translated to LLVM IR text.

The runtime's native parts are Python functions marked :func:`native`. They are never run by Python: their syntax tree becomes LLVM IR.
What the subset has:

- types: ``i64`` (all integer arithmetic), ``f64``, ``ptr``, and narrower integers and ``f32`` as types of fields and elements;
  a :class:`Struct` subclass names a pointer to that record, ``Array[T]`` a pointer to elements, a :class:`Function` subclass a code pointer;
- statements: assignment, augmented assignment, ``if``, ``while``, ``for i in range(...)``, ``break``, ``continue``, ``return``;
- expressions: integer and float literals, ``None`` (the null pointer), arithmetic (``//`` of non-negative integers), comparisons,
  ``and or not``, ``a if c else b``, fields, elements, casts ``Struct(p)``, calls of natives, externals, code pointers and the intrinsics
  below;
- names from the module: integer constants (and attributes of objects that hold them), natives, externals, and :func:`instance` records.

A local variable has the type of its first assignment. Anything else is a :class:`NativeError` with file and line.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound="Struct")


class NativeError(Exception):
    """Native code that is outside the subset or ill-typed; the message starts with file and line."""


class Type:
    """A scalar: its LLVM spelling, size in bytes, and ``signed`` for integers (narrow ones extend to i64 when loaded)."""

    def __init__(self, ir: str, size: int, signed: bool = True) -> None:
        self.ir, self.size, self.signed = ir, size, signed

    def __repr__(self) -> str:
        return self.ir if self.signed else "u" + self.ir[1:]


class Pointer(Type):
    """A pointer; ``target`` is a Struct subclass, an element Type, a Function subclass, or None for plain ``ptr``."""

    def __init__(self, target: Any = None, array: bool = False) -> None:
        super().__init__("ptr", 8)
        self.target, self.array = target, array

    def __repr__(self) -> str:
        return "ptr" if self.target is None else getattr(self.target, "__name__", repr(self.target))


if TYPE_CHECKING:
    i64: TypeAlias = int
    i32: TypeAlias = int
    u8: TypeAlias = int
    u16: TypeAlias = int
    u32: TypeAlias = int
    f64: TypeAlias = float
    f32: TypeAlias = float
    ptr: TypeAlias = Any
    void: TypeAlias = None
    Array = list
else:
    i64, i32, u32 = Type("i64", 8), Type("i32", 4), Type("i32", 4, signed=False)
    u8, u16 = Type("i8", 1, signed=False), Type("i16", 2, signed=False)
    f64, f32 = Type("double", 8), Type("float", 4)
    ptr, void = Pointer(), Type("void", 0)

    class Array:
        """``Array[T]``: a pointer to elements of type T."""

        def __class_getitem__(cls, element: Any) -> Pointer:
            return Pointer(element, array=True)


class Field:
    """A field of a Struct at a fixed byte offset; ``type`` is resolved at first use."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.type: Type = i64  # type: ignore[assignment]


def at(offset: int) -> Any:
    """Places a Struct's field: ``head: i64 = at(64)``."""
    return Field(offset)


class Struct:
    """A record in native memory. Fields follow each other naturally aligned, unless placed by :func:`at`."""

    def __init__(self, pointer: Any) -> None:
        raise TypeError("a Struct exists in native code only")


def fields_of(struct: Any) -> dict[str, Field]:
    """A Struct's fields by name, with offsets and types."""
    return _layout(struct)[0]


def size_of(struct: Any) -> int:
    """Bytes of one record, a multiple of 8."""
    return _layout(struct)[1]


def offset_of(struct: Any, name: str) -> int:
    return fields_of(struct)[name].offset


@cache
def _layout(struct: Any) -> tuple[dict[str, Field], int]:
    names, end, table = vars(sys.modules[struct.__module__]), 0, {}
    for name, annotation in inspect.get_annotations(struct).items():
        kind = as_type(eval(annotation, names) if isinstance(annotation, str) else annotation)  # noqa: S307
        placed = struct.__dict__.get(name)
        field = Field(placed.offset if isinstance(placed, Field) else (end + kind.size - 1) // kind.size * kind.size)
        field.type = kind
        end = max(end, field.offset + kind.size)
        table[name] = field
    return table, (end + 7) // 8 * 8


class Function:
    """A code pointer's type: a subclass whose ``__call__`` has the signature."""

    def __init__(self, pointer: Any) -> None:
        raise TypeError("a Function exists in native code only")


class Signature:
    """Parameter names and types and the result of a Python function's annotations. ``rest`` is the type of any number of further arguments."""

    def __init__(self, function: Callable[..., Any], skip: int = 0) -> None:
        names, hints = function.__globals__, function.__annotations__

        def resolve(hint: Any) -> Type:
            return as_type(eval(hint, names) if isinstance(hint, str) else hint)  # noqa: S307

        arguments = list(inspect.signature(function).parameters.values())[skip:]
        self.names = [p.name for p in arguments if p.kind is not p.VAR_POSITIONAL]
        self.types = [resolve(hints[name]) for name in self.names]
        self.rest = next((resolve(hints[p.name]) for p in arguments if p.kind is p.VAR_POSITIONAL), None)
        self.result = resolve(hints["return"])


class Routine:
    """Something callable by symbol: a native (exported or internal, always inlined or not) or, without a body, an external."""

    def __init__(self, function: Callable[..., Any], body: bool, exported: bool = False, inlined: bool = False) -> None:
        self.function, self.body, self.exported, self.inlined = function, body, exported, inlined
        name = function.__name__
        self.symbol = "hg_" + name if body else name
        self._signature: Signature | None = None

    @property
    def signature(self) -> Signature:
        if self._signature is None:
            self._signature = Signature(self.function)
        return self._signature

    def __repr__(self) -> str:
        return f"<native {self.symbol}>"


class Instance:
    """The one record of a Struct that the native module holds, zero at first, under an exported symbol."""

    def __init__(self, struct: type[Struct], symbol: str) -> None:
        self.struct, self.symbol = struct, symbol


def native(function: F) -> F:
    """Marks native code that only other native code calls."""
    return Routine(function, body=True)  # type: ignore[return-value]


def inlined(function: F) -> F:
    """As :func:`native`, copied into each caller."""
    return Routine(function, body=True, inlined=True)  # type: ignore[return-value]


def exported(function: F) -> F:
    """Marks native code whose address is wanted, under the symbol ``hg_<name>``."""
    return Routine(function, body=True, exported=True)  # type: ignore[return-value]


def external(function: F) -> F:
    """Declares a C symbol: a Python function without a body, with the symbol's name."""
    return Routine(function, body=False)  # type: ignore[return-value]


def instance(struct: type[S], symbol: str) -> S:
    """A record of the module, read and written by native code as ``name.field``."""
    return Instance(struct, symbol)  # type: ignore[return-value]


def as_type(hint: Any) -> Type:
    """The Type that an annotation names."""
    if isinstance(hint, Type):
        return hint
    if hint is None:
        return void  # type: ignore[return-value]
    if isinstance(hint, type) and issubclass(hint, Struct | Function):
        return Pointer(hint)
    raise NativeError(f"{hint!r} is no native type")


# --- intrinsics: signatures for the reader and for type checkers; the translator has the meaning -------------------------------------


def address(place: Any) -> ptr:
    """The address of a field or element, or of a native."""


def offset(pointer: ptr, n: i64) -> ptr:
    """``pointer`` advanced by n bytes."""


def integer(pointer: ptr) -> i64:  # type: ignore[empty-body]
    """The bits of a pointer, for alignment arithmetic; they never become a pointer again."""


def fetch_add(place: i64, n: i64) -> i64:  # type: ignore[empty-body]
    """Atomically adds, sequentially consistent; gives the value before."""


def exchange(place: i64, n: i64) -> i64:  # type: ignore[empty-body]
    """Atomically stores, sequentially consistent; gives the value before."""


def compare_exchange(place: i64, old: i64, new: i64) -> i64:  # type: ignore[empty-body]
    """Atomically stores ``new`` where ``old`` was, sequentially consistent; gives 1 if so, else 0."""


def acquire(place: i64) -> i64:  # type: ignore[empty-body]
    """Atomic load, sequentially consistent."""


def release(place: i64, n: i64) -> None:
    """Atomic store, release."""


def to_float(n: i64) -> f64:  # type: ignore[empty-body]
    """The nearest double of an integer."""


def float_bits(x: f64) -> i64:  # type: ignore[empty-body]
    """The bits of a double."""


def leading_zeros(n: i64) -> i64:  # type: ignore[empty-body]
    """Zero bits above the highest one; 64 for 0."""


def shift_right(n: i64, by: i64) -> i64:  # type: ignore[empty-body]
    """Logical shift; ``>>`` is the arithmetic one."""


def copy(target: ptr, source: ptr, nbytes: i64) -> None:
    """memcpy."""


def pause() -> None:
    """Tells the core that this is a spin loop."""


def ticks() -> i64:  # type: ignore[empty-body]
    """The core's constant-rate time counter."""


def read_fp_control() -> i64:  # type: ignore[empty-body]
    """The floating-point control bits (rounding, flush to zero, traps), status bits removed."""


def write_fp_control(bits: i64) -> None:
    """Sets the floating-point control bits."""
