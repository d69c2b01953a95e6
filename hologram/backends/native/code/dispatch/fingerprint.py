"""Native code that finds one of many specialisations: by a number that follows from the types and shapes of a call's arguments.

Calls that match one specialisation have one fingerprint; that of another may happen to be the same. So what is found is matched as any other.
"""

from __future__ import annotations

from hologram.backends.native.code.capi import PyDict_Next, PyLong_FromLongLong
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import List, NDArray, Object, Sized, Storage, heap, process
from hologram.backends.native_lang.language import Array, address, exported, i64, integer, native, offset, ptr, shift_right

Pointers = Array[ptr]

DEEPEST_FINGERPRINT = 8  # nesting of containers that is looked into: what is deeper differs in other arguments, or is searched for one by one
FACTOR = 0x1E3779B97F4A7C15  # odd, its bits as good as random: Knuth, The Art of Computer Programming, vol. 3, 6.4
HIGH_BITS = 24  # that a product's lower bits do not reach


@native
def mixed(h: i64, word: i64) -> i64:
    product = (h + word) * FACTOR
    return product + shift_right(product, HIGH_BITS)


@native
def fingerprint_items(items: Array[ptr], n: i64, h: i64, depth: i64) -> i64:
    for i in range(n):
        h = fingerprint(items[i], h, depth)
    return h


@native
def fingerprint_dict(obj: ptr, h: i64, depth: i64) -> i64:
    """In whatever order the items are."""
    total = 0
    process.cursor = 0
    while PyDict_Next(obj, address(process.cursor), address(process.cursor_key), address(process.cursor_value)) != 0:
        position = process.cursor
        total += fingerprint(process.cursor_value, h, depth)
        process.cursor = position  # an inner dict has moved it
    return mixed(h, total)


@native
def fingerprint(obj: ptr, h: i64, depth: i64) -> i64:
    kind = Object(obj).type
    if kind == process.tensor_type:
        storage = Storage(Pointers(offset(obj, process.tensor_storage))[0])
        if storage is None or storage.type != heap.storage_type:
            return mixed(h, 1)
        return mixed(h, integer(storage.aval))
    h = mixed(h, integer(kind))
    if kind == process.ndarray_type:
        array = NDArray(obj)
        for axis in range(array.ndim):
            h = mixed(h, array.shape[axis])
        return mixed(h, integer(array.descr))
    if depth == DEEPEST_FINGERPRINT:
        return h
    if kind == process.tuple_type:
        return fingerprint_items(Pointers(offset(obj, layout.tuple_items)), Sized(obj).size, h, depth + 1)
    if kind == process.list_type:
        return fingerprint_items(List(obj).items, Sized(obj).size, h, depth + 1)
    if kind == process.dict_type:
        return fingerprint_dict(obj, h, depth + 1)
    return h


@native
def fingerprint_call(args: Array[ptr], nargs: i64, kwnames: ptr) -> i64:
    n = nargs
    if kwnames is not None:
        n += Sized(kwnames).size
    h = fingerprint_items(args, n, n, 0)
    return h if h != 0 else 1  # no fingerprint is 0: it marks a free place


@exported
def fingerprint_of(self: ptr, args: Array[ptr], nargs: i64, kwnames: ptr) -> ptr:
    """METH_FASTCALL | METH_KEYWORDS: the fingerprint of a call with these arguments."""
    return PyLong_FromLongLong(fingerprint_call(args, nargs, kwnames))
