"""Records for native code to read, laid out in the memory of a Storage, each followed by the arrays that it points to."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from hologram import dtypes
from hologram.backends.native import native_storage
from hologram.backends.native_lang.language import fields_of, size_of
from hologram.ir.aval import aval


def table(record: Any, values: Mapping[str, int], arrays: Mapping[str, Sequence[int]]) -> Any:
    """A sealed Storage with a ``record`` whose fields are ``values``, and the addresses of ``arrays`` of words, which follow it."""
    size = size_of(record) + 8 * sum(map(len, arrays.values()))
    storage = native_storage.new(aval(dtypes.uint8, (size,)))
    address, fields = storage.data + size_of(record), dict(values)
    tail: list[int] = []
    for name, words in arrays.items():
        fields[name] = address
        address += 8 * len(words)
        tail += words
    words = [fields[name] for name in fields_of(record)] + tail
    try:
        packed = struct.pack(f"{len(words)}q", *words)
    except struct.error:
        packed = struct.pack(f"{len(words)}q", *(w if w < 2**63 else w - 2**64 for w in words))
    ctypes.memmove(storage.data, packed, size)
    return native_storage.seal(storage)
