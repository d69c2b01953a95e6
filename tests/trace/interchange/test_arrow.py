"""Arrow arrays of Tensors, read by a reader of the C data interface that is written here, from the specification; other libraries read them in
tests/clients."""

from __future__ import annotations

import ctypes
import gc
import threading
from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.backends.native import storage
from hologram.backends.native.code.object_layout import why_not_native
from hologram.errors import DTypeError, ShapeError, TracedValueError

pytestmark = pytest.mark.skipif(why_not_native() is not None, reason=f"Arrow arrays of Tensors need native code: {why_not_native()}")

_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
FORMATS = {"b": "?", "c": "i1", "s": "i2", "i": "i4", "l": "i8", "C": "u1", "S": "u2", "I": "u4", "L": "u8", "e": "f2", "f": "f4", "g": "f8"}


def word(address: int, i: int) -> int:
    return ctypes.c_int64.from_address(address + 8 * i).value


def read(schema: int, array: int) -> Any:
    """The nested lists in an Arrow array."""
    form = ctypes.string_at(word(schema, 0)).decode()
    length, nulls, first, buffers = (word(array, i) for i in range(4))
    assert nulls == first == 0 and word(word(array, 5), 0) == 0  # all elements are valid
    if form.startswith("+w:"):
        assert (buffers, word(array, 4), word(schema, 4)) == (1, 1, 1)
        child = word(word(schema, 5), 0)
        assert ctypes.string_at(word(child, 1)) == b"item"
        inner, size = read(child, word(word(array, 6), 0)), int(form[3:])
        return [inner[i * size : (i + 1) * size] for i in range(length)]
    assert (buffers, word(array, 4), word(schema, 4)) == (2, 0, 0)
    place = word(word(array, 5), 1)
    if form == "b":
        return np.unpackbits(np.frombuffer(ctypes.string_at(place, -(-length // 8)), np.uint8), bitorder="little")[:length].astype(bool).tolist()
    dtype = np.dtype(FORMATS[form])
    return np.frombuffer(ctypes.string_at(place, length * dtype.itemsize), dtype).tolist()


def addresses(capsules: Any) -> tuple[int, int]:
    return _pointer(capsules[0], b"arrow_schema"), _pointer(capsules[1], b"arrow_array")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("shape", [(13,), (2, 5), (2, 3, 4), (0,), (3, 0), (0, 3)], ids=str)
def test_arrays(kind: str, shape: tuple[int, ...]) -> None:
    x = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3).astype(FORMATS[kind])
    for t, want in ((hg.tensor(x), x), (hg.tensor(x[::-1].copy())[::-1], x)):
        capsules = t.__arrow_c_array__()
        assert read(*addresses(capsules)) == want.tolist()


def test_memory_is_shared_and_kept_until_it_is_released() -> None:
    gc.collect()
    before = storage.statistics()["live"]
    t = hg.tensor(np.arange(30_000.0).reshape(100, 300))
    address = t.ctypes.data
    schema, array = addresses(capsules := t.__arrow_c_array__())
    child = word(word(array, 6), 0)
    assert word(word(child, 5), 1) == address
    t[0] = -1.0  # makes another value
    hg.eval(t)
    del t
    assert read(schema, array)[0][1] == 1.0
    moved = ctypes.string_at(array, 80)  # as consumers move it: a copy, and the original counts as released
    ctypes.c_int64.from_address(array + 64).value = 0
    del capsules
    gc.collect()
    assert storage.statistics()["live"] - before >= 240_000
    taken = ctypes.create_string_buffer(moved, 80)
    release = threading.Thread(target=lambda: _Release(word(ctypes.addressof(taken), 8))(ctypes.addressof(taken)))
    release.start()
    release.join()
    assert word(ctypes.addressof(taken), 8) == 0
    gc.collect()
    assert storage.statistics()["live"] - before < 240_000


def test_capsules_that_nobody_reads_leave_nothing() -> None:
    gc.collect()
    before = storage.statistics()["live"]
    for _ in range(20):
        hg.tensor(np.zeros((10, 1000))).__arrow_c_array__()
        try:
            kept = hg.tensor(np.zeros((10, 1000))).__arrow_c_array__()
            raise ValueError("with an exception on its way")
        except ValueError:
            del kept
    gc.collect()
    assert storage.statistics()["live"] == before


def test_what_arrow_lacks() -> None:
    with pytest.raises(DTypeError, match="Arrow has no type for complex64"):
        hg.tensor([1j]).__arrow_c_array__()
    with pytest.raises(DTypeError, match="bfloat16"):
        hg.tensor([1.0], dtype="bfloat16").__arrow_c_array__()
    with pytest.raises(ShapeError, match=r"take reshape\(1\)"):
        hg.tensor(1.0).__arrow_c_array__()
    with pytest.raises(TracedValueError, match="__arrow_c_array__"):
        hg.jit(lambda x: x.__arrow_c_array__())(np.ones(3))
