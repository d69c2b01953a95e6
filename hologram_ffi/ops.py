"""The ops by handle: ``NAME_f32(executor, buffers…, numbers…, n)`` for each row of the SDK's table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from json import dumps
from textwrap import fill
from typing import Any

from hologram.errors import ArgumentError, ShapeError
from hologram.sdk import ops
from hologram.sdk.table import ROWS, Array, Row
from hologram.support.user_lines import located
from hologram_ffi.handles import buffers, executors

MIN_RESULT_ELEMENTS = 3  # elements of the buffer that a reduction writes its result into


def names() -> list[str]:
    return [name + ops.SUFFIX for name in ROWS]


def function(name: str) -> Callable[..., float | None]:
    """The op of that name. Raises AttributeError for another name."""
    if name not in names():
        raise AttributeError(f"module 'hologram_ffi' has no attribute {name!r}")
    row, run_on = ROWS[name.removesuffix(ops.SUFFIX)], getattr(ops, name)
    places = [i for i, p in enumerate(row.parameters, 1) if isinstance(p, Array)]

    def run(*args: Any, **options: Any) -> float | None:
        values = _positional(row, name, args, options)
        values[0] = executors.get(values[0])
        for i in places:
            values[i] = buffers.get(values[i])
        if row.gives_number and values[places[-1]].size < MIN_RESULT_ELEMENTS:
            raise located(ShapeError(f"{name}: {row.result.name} has {MIN_RESULT_ELEMENTS} elements or more, not {values[places[-1]].size}"))
        returned: float | None = run_on(*values)
        return returned

    run.__name__ = run.__qualname__ = name
    run.__doc__ = _documentation(row, name)
    run.__signature__ = row.signature  # type: ignore[attr-defined]
    return run


def _documentation(row: Row, name: str) -> str:
    facts = "Executor and buffers of float32 are handles. "
    if _numbers(row):
        facts += "``n`` may also stand before the numbers, where these are floats. "
    facts += f"Raises HandleError, and what :func:`hologram.ops.{name}` raises."
    return f"{row.meaning}\n\n{fill(facts, 120)}\n\n{_example(row, name)}\n"


def _example(row: Row, name: str) -> str:
    values, result = row.example
    names = [p.name if isinstance(p, Array) else None for p in row.parameters if p is not row.result]
    shown = [n or repr(v) for n, v in zip_longest(names, values)]
    lines = ["executor = hologram_ffi.new_executor()"]
    for buffer, value in zip(names, values, strict=False):
        if buffer:
            lines.append(f"{buffer} = hologram_ffi.executor_allocate_buffer(executor, {len(value)})")
            lines.append(f'hologram_ffi.buffer_copy_from_slice(executor, {buffer}, "{value}")')
    lines.append(f"{row.result.name} = hologram_ffi.executor_allocate_buffer(executor, {MIN_RESULT_ELEMENTS if row.gives_number else len(result)})")
    lines.append(f"hologram_ffi.{name}({', '.join(row.call('executor', shown))})")
    said = str(float(result)) if row.gives_number else repr(dumps([float(x) for x in result]))
    if not row.gives_number:
        lines.append(f"hologram_ffi.buffer_to_vec(executor, {row.result.name})")
    return "".join(f">>> {line}\n" for line in lines) + said + "\n>>> hologram_ffi.executor_cleanup(executor)"


def _numbers(row: Row) -> list[str]:
    return [p for p in row.parameters if isinstance(p, str)]


def _positional(row: Row, name: str, args: Sequence[Any], options: dict[str, Any]) -> list[Any]:
    """The arguments in the op's order. Raises ArgumentError for others than it has."""
    if len(args) == len(row.signature.parameters):
        if _numbers(row):
            args = _number_last(row, name, args)
        if not options:
            return list(args)
    try:
        return list(row.signature.bind(*args, **options).args)
    except TypeError as e:
        raise located(ArgumentError(f"{name}{row.signature}: {e}")) from None


def _number_last(row: Row, name: str, args: Sequence[Any]) -> Sequence[Any]:
    """The arguments with ``n`` at their end, wherever the caller has it: earlier versions have it before the numbers.

    Raises ArgumentError where it could be either.
    """
    first = len(args) - len(_numbers(row)) - 1
    before, after = type(args[first]) is int, type(args[-1]) is int
    if before and after:
        raise located(ArgumentError(f"{name}: which of {args[first:]} is n? Write the numbers as floats, or n=… by name"))
    return [*args[:first], *args[first + 1 :], args[first]] if before else args
