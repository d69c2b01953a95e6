"""Storages: layouts, who owns memory, how it is reused and bounded."""

from __future__ import annotations

import ctypes
import gc
import sys

import ml_dtypes
import numpy as np
import pytest

from hologram import dtypes
from hologram.backends.native import python_storage, storage
from hologram.backends.native.module import module
from hologram.errors import OutOfMemory
from hologram.ir.aval import aval
from hologram.ir.node import const_attrs
from hologram.settings import override
from tests.support.runtime_programs import natively

pytestmark = natively


def test_avals_are_interned():
    a = aval(dtypes.float32, (2, 3))
    assert a is aval(dtypes.float32, [2, np.int64(3)]) and a is not aval(dtypes.float32, (3, 2))
    assert (a.size, a.nbytes, a.kind) == (6, 24, (dtypes.float32, 2))
    assert a.kind is aval(dtypes.float32, (7, 7)).kind
    assert all(type(n) is int for n in aval(dtypes.int8, (np.int64(123),)).shape)


def test_avals_die_with_their_last_user():
    a = aval(dtypes.int8, (991, 3))
    s = storage.empty(a)
    before = id(a)
    del a
    gc.collect()
    assert id(aval(dtypes.int8, (991, 3))) == before
    del s


LAYOUTS = {
    "c": np.arange(24.0).reshape(2, 3, 4),
    "reversed": np.arange(10)[::-2],
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "big-endian": np.arange(5, dtype=">i4"),
    "scalar": np.array(3.5),
    "zero size": np.zeros((0, 4), np.float32),
    "bfloat16": np.arange(5).astype(ml_dtypes.bfloat16),
    "bool": np.array([True, False]),
    "complex": np.arange(3) * 1j,
    "misaligned": np.frombuffer(b"x" + np.arange(4, dtype=np.int32).tobytes(), np.uint8)[1:].view(np.int32),
}


NUMBERS = (0, 1, -1, 200, 2**53 + 1, -(2**60), 2**63, -0.0, 1.5, 1 / 3, 1e-45, 65520.0, 1e300, float("nan"), float("-inf"), True, 1 + 2j)


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.parametrize("made", [storage._made, python_storage], ids=["native", "python"])
def test_numbers_become_elements(dtype, made, monkeypatch):
    monkeypatch.setattr(storage, "_made", made)
    monkeypatch.setattr(storage, "view", made.view)
    for number in NUMBERS:
        if dtype.is_integer and (
            type(number) is complex or not abs(number) < 2**62 or not np.iinfo(dtype.np).min <= number <= np.iinfo(dtype.np).max
        ):
            continue
        found = storage.of_number(aval(dtype, (1, 1)), number)
        assert made.view(found).tobytes() == const_attrs(number, dtype)[1] and not made.view(found).flags.writeable


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("made", [storage._made, python_storage], ids=["native", "python"])
def test_copy_of_any_layout(name, made, monkeypatch):
    monkeypatch.setattr(storage, "_made", made)
    monkeypatch.setattr(storage, "view", made.view)
    x = LAYOUTS[name]
    s = storage.copy_of(x)
    v = storage.view(s)
    assert v.shape == x.shape and v.dtype == x.dtype.newbyteorder("=") and (v == x).all()
    assert s.aval is aval(dtypes.of(x.dtype), x.shape) and s.data % 64 == 0 and s.nbytes == x.nbytes
    assert not v.flags.writeable
    with pytest.raises(ValueError):
        v.flags.writeable = True
        v[...] = 0


def test_buffer_export_is_zero_copy_and_keeps_the_memory():
    s = storage.copy_of(np.arange(4))
    assert s.exports == 0
    m = memoryview(s)
    assert s.exports == 1 and m.readonly and m.nbytes == 32
    m.release()
    assert s.exports == 0
    v = np.frombuffer(s, np.int64)
    assert v.__array_interface__["data"][0] == s.data
    del s
    others = [storage.copy_of(np.full(4, 99)) for _ in range(5)]
    assert v.tolist() == [0, 1, 2, 3] and others


def test_borrowed_memory_keeps_its_owner():
    x = np.arange(4.0)
    before = sys.getrefcount(x)
    s = storage.borrow(x)
    assert s.owner is x and s.data == x.ctypes.data and storage.view(s).tolist() == x.tolist()
    assert sys.getrefcount(x) == before + 1
    del s
    assert sys.getrefcount(x) == before
    assert not storage.borrowable(x[::2]) and not storage.borrowable(x.astype(">f8"))
    with pytest.raises(ValueError):
        storage.borrow(x[::2])


def test_storages_cannot_be_made_by_hand():
    with pytest.raises(TypeError):
        storage.Storage()
    with pytest.raises(TypeError):
        storage._made._new(3)
    with pytest.raises(TypeError):
        storage._made.seal("x")


def test_size_classes_waste_at_most_a_quarter():
    bytes_of = module().function("hg_bytes_of_class", ctypes.c_int64, ctypes.c_int64)
    sizes = [*range(0, 70_000, 31), *[2**k + d for k in range(6, 47) for d in (-1, 0, 1)]]
    for n in sizes:
        c = storage._made.size_class(n)
        assert bytes_of(c) >= n and bytes_of(c) % 64 == 0
        assert c == 0 or bytes_of(c - 1) < n
        assert n <= 256 or bytes_of(c) <= 1.25 * n + 64


def test_memory_is_reused_and_counted():
    big = aval(dtypes.uint8, (5 << 20,))
    storage.clear_caches()
    before = storage.statistics()["live"]
    s = storage.empty(big)
    data, live = s.data, storage.statistics()["live"]
    assert live - before == 5 << 20
    del s
    assert storage.statistics()["live"] == before and storage.statistics()["cached"] >= 5 << 20
    s = storage.empty(big)
    assert s.data == data
    del s
    storage.clear_caches()
    assert storage.statistics()["cached"] == 0


def test_memory_limit_and_impossible_sizes():
    small = aval(dtypes.uint8, (1 << 20,))
    kept = [storage.empty(small)]
    with override(memory_limit=storage.statistics()["live"] + (3 << 20)), pytest.raises(OutOfMemory, match="limit"):
        while True:
            kept.append(storage.empty(small))
    assert 2 <= len(kept) <= 4
    assert storage.empty(small) is not None
    for n in (1 << 44, 1 << 60, 1 << 70):
        with pytest.raises(OutOfMemory):
            storage.empty(aval(dtypes.float64, (n,)))


def test_free_memory_does_not_pile_up():
    storage.clear_caches()
    for i in range(40):
        storage.empty(aval(dtypes.uint8, ((20 << 20) * (i + 1),)))
    assert storage.statistics()["cached"] <= 3 * (20 << 20) * 40
