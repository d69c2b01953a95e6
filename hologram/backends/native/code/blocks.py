"""Native code that gets memory from the system: blocks, many of which lie in one region of huge pages. Runs with the GIL held.

A core finds the place of a page in a table, and fetches ahead within a page alone. With pages of 4 KiB, arrays of a few MiB are read at a fraction
of the speed of memory. So blocks of middle size are parts of regions of huge pages, cut one behind the other; larger ones have pages of their own.
"""

from __future__ import annotations

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native.code.capi import (
    Py_DecRef,
    PyErr_Clear,
    PyLong_AsVoidPtr,
    PyLong_FromLongLong,
    PyMem_RawFree,
    PyMem_RawMalloc,
    PyObject_CallOneArg,
)
from hologram.backends.native.code.records import heap
from hologram.backends.native_lang.language import Array, Function, Struct, i32, i64, integer, native, offset, ptr, void

Pointers = Array[ptr]
REGIONAL = 64 << 10  # from this size on, blocks are parts of regions where the system has huge pages
HUGE = 8 << 20  # from this size on, blocks are aligned to and made of huge pages of their own
REGION_BYTES = 32 << 20
HUGE_PAGE = 2 << 20
WHOLE_PAGES = 64 << 10  # bytes that are whole pages on every kernel: those of some AArch64 systems are so large
COLOURED = 64 << 10  # from this size on, starts are staggered, so that arrays read together do not compete for the same cache sets
COLOURS, COLOUR_BYTES = 8, 9 * 64
LINE = 64  # bytes that blocks are aligned to
HEAD = 16  # bytes just before a block: its region, and what frees it
MADV_DONTNEED, MADV_HUGEPAGE = 4, 14


class Advise(Function):
    def __call__(self, data: ptr, nbytes: i64, advice: i32) -> i32:
        raise NotImplementedError


class Region(Struct):
    """The head of a region."""

    raw: ptr  # what frees it
    blocks: i64  # that are not freed
    used: i64  # bytes from the start of the region


# --- guard pages ----------------------------------------------------------------------------------------------------------------------------


@native
def guarded_new(nbytes: i64) -> ptr:
    """Memory between guard pages, with zero just before; None where there is none."""
    data: ptr = None
    size = PyLong_FromLongLong(nbytes)
    if size is not None:
        found = PyObject_CallOneArg(heap.guarded_new, size)
        Py_DecRef(size)
        if found is not None:
            data = PyLong_AsVoidPtr(found)
            Py_DecRef(found)
    if data is None:
        PyErr_Clear()
    return data


@native
def guarded_free(data: ptr) -> void:
    place = PyLong_FromLongLong(integer(data))
    if place is not None:
        Py_DecRef(PyObject_CallOneArg(heap.guarded_free, place))
        Py_DecRef(place)


# --- regions --------------------------------------------------------------------------------------------------------------------------------


@native
def aligned(at: ptr, align: i64) -> ptr:
    """The first multiple of ``align`` beyond ``at``."""
    return offset(at, align - (integer(at) & (align - 1)))


@native
def region_new() -> Region:
    """An empty region; None where there is no memory."""
    raw = PyMem_RawMalloc(REGION_BYTES + HUGE_PAGE)
    if raw is None:
        return None
    found = Region(aligned(raw, HUGE_PAGE))
    Advise(heap.advise)(found, REGION_BYTES, MADV_HUGEPAGE)
    found.raw = raw
    found.blocks = 0
    found.used = LINE
    return found


@native
def region_release(region: Region) -> void:
    """Frees a region without blocks, but the one that blocks are cut from: that is empty again."""
    if region == Region(heap.region):
        region.used = LINE
    else:
        PyMem_RawFree(region.raw)


@native
def region_cut(nbytes: i64, extra: i64) -> ptr:
    """A block of a region, ``extra`` bytes behind the next free line; None where there is no memory."""
    region = Region(heap.region)
    if region is None or region.used + HEAD + LINE + extra + nbytes > REGION_BYTES:
        heap.region = region_new()
        if region is not None and region.blocks == 0:
            region_release(region)
        region = Region(heap.region)
        if region is None:
            return None
    data = offset(aligned(offset(region, region.used + HEAD), LINE), extra)
    region.used = integer(data) - integer(region) + nbytes
    region.blocks += 1
    Pointers(offset(data, -8))[0] = region.raw
    Pointers(offset(data, -16))[0] = region
    return data


@native
def region_give(region: Region, data: ptr, nbytes: i64) -> void:
    """Frees a block of a region: its pages at once, its addresses with the region. Of a part of a page the system would take all of it, with what is
    a neighbour's."""
    first = aligned(offset(data, -1), WHOLE_PAGES)
    whole = (integer(data) + nbytes - integer(first)) & -WHOLE_PAGES
    if whole > 0:
        Advise(heap.advise)(first, whole, MADV_DONTNEED)
    region.blocks -= 1
    if region.blocks == 0:
        region_release(region)


# --- blocks ---------------------------------------------------------------------------------------------------------------------------------


@native
def block_new(nbytes: i64) -> ptr:
    """Memory aligned to 64 bytes, with its region and the address that frees it just before; None where there is none."""
    if heap.guarded_new is not None:
        guarded = guarded_new(nbytes)
        if guarded is not None:
            return guarded
    extra = 0
    if nbytes >= COLOURED:
        heap.colour = (heap.colour + 1) & (COLOURS - 1)
        extra = heap.colour * COLOUR_BYTES
    if heap.advise is not None and nbytes >= REGIONAL and nbytes < HUGE:
        data = region_cut(nbytes, extra)
        if data is not None:
            return data
    align = LINE
    if nbytes >= HUGE:
        align = HUGE_PAGE
    raw = PyMem_RawMalloc(nbytes + align + extra)
    if raw is None:
        return None
    data = offset(aligned(raw, align), extra)
    Pointers(offset(data, -8))[0] = raw
    Pointers(offset(data, -16))[0] = None
    if nbytes >= HUGE and heap.advise is not None:
        Advise(heap.advise)(offset(data, -extra), nbytes + extra, MADV_HUGEPAGE)
    return data


@native
def block_free(data: ptr, nbytes: i64) -> void:
    """Frees a block of ``nbytes`` bytes, or nothing."""
    if data is not None:
        raw = Pointers(offset(data, -8))[0]
        if raw is None:
            guarded_free(data)
            return
        region = Region(Pointers(offset(data, -16))[0])
        if region is None:
            PyMem_RawFree(raw)
        else:
            region_give(region, data, nbytes)
