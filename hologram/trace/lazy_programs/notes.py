"""Notes of structures in the disk cache: numbers that a structure had before others of it came.

A structure that is new in a process, and had several sets of numbers in an earlier one, gets its program with operands at once, whose code the disk
has. A note decides nothing but which numbers are operands: results do not depend on it.
"""

from __future__ import annotations

from typing import Any

from hologram.dtypes import DType
from hologram.ir.op import Op
from hologram.settings import settings
from hologram.trace.lazy_programs.structure import Numbers


def note(key: Any, numbers: Numbers) -> None:
    """Keeps ``numbers`` for the structure ``key``."""
    text = _text(key)
    if settings.cache and text is not None:
        from hologram.backends import object_cache as disk  # LLVM's version is a part of keys

        meta = {"numbers": [n if type(n) is int else [n[0], n[1].hex()] for n in numbers]}
        disk.store(disk.key("structure", text), b"", meta, kind="notes")


def noted(key: Any, like: Numbers) -> Numbers | None:
    """The numbers that are kept for the structure ``key``, which has as many of the same types as are ``like``; None where there are none."""
    text = _text(key)
    if not settings.cache or text is None:
        return None
    from hologram.backends import object_cache as disk

    found = disk.load_entry(disk.key("structure", text), lambda _, meta: _decoded(meta.get("numbers"), like) is not None)
    return None if found is None else _decoded(found[1]["numbers"], like)


def _decoded(data: Any, like: Numbers) -> Numbers | None:
    if type(data) is not list or len(data) != len(like):
        return None
    numbers = [_number(x, n) for x, n in zip(data, like, strict=True)]
    return None if None in numbers else tuple(numbers)


def _number(data: Any, like: Any) -> Any:
    if type(like) is int:
        return data if type(data) is int else None
    if type(data) is not list or len(data) != 2 or data[0] != like[0] or type(data[1]) is not str or len(data[1]) != 2 * len(like[1]):
        return None
    try:
        return data[0], bytes.fromhex(data[1])
    except ValueError:
        return None


def _text(x: Any) -> str | None:
    """What a part of a structure's key is in every process; None where it is an object of this one."""
    if type(x) is tuple:
        parts = [_text(part) for part in x]
        return None if None in parts else f"({','.join(parts)})"  # type: ignore[arg-type]  # none is None
    if isinstance(x, (Op, DType)):
        return f"{type(x).__name__} {x.name}"
    return repr(x) if x is None or type(x) in (bool, int, float, str, bytes) else None
