"""Native code that copies arrays too large for one thread to move at the memory's speed."""

from __future__ import annotations

from hologram.backends.native.code.records import Context
from hologram.backends.native_lang.language import Struct, copy, exported, i64, offset, ptr, void


class Copy(Struct):
    context: Context
    to: ptr
    source: ptr
    nbytes: i64
    part: i64  # bytes of a part; the last one may be shorter


@exported
def copy_parts(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """Copies the parts [begin, end) of an array."""
    a = Copy(args)
    first = begin * a.part
    last = end * a.part
    if last > a.nbytes:
        last = a.nbytes
    copy(offset(a.to, first), offset(a.source, first), last - first)
