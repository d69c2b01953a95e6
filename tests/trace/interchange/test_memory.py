"""Memory of Tensors in other hands: what they see, that it stays, and that nothing is ever written to it."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.backends.native import storage
from hologram.backends.native.module import why_not_native
from hologram.errors import ShapeError, TracedValueError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
NARROW = [d for d in dtypes.ALL if d.bit_type is not None]
PLAIN = [d for d in dtypes.ALL if d.bit_type is None]
FORMS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda x: x,
    "transposed": lambda x: x.T if x.ndim == 2 else hnp.transpose(x),
    "strided": lambda x: x[..., ::2],
    "backwards": lambda x: x[::-1],
    "stretched": lambda x: hnp.broadcast_to(x[..., :1], x.shape),
    "computed": lambda x: x * 2,
    "empty": lambda x: x[:0],
    "scalar": lambda x: x[0, 0, 0],
}


@pytest.mark.parametrize("form", FORMS)
def test_buffers_have_the_values_in_the_layout_that_is_asked_for(form: str) -> None:
    t, want = FORMS[form](hg.tensor(X)), np.asarray(FORMS[form](hg.tensor(X))).copy()
    view = memoryview(t)
    assert view.readonly is bool(want.shape) and view.format == "f" and view.shape == want.shape and view.tolist() == want.tolist()
    assert bytes(t) == want.tobytes() == t.tobytes() and t.tobytes("F") == want.tobytes("F")
    file = io.BytesIO()
    assert file.write(t) == want.nbytes and file.getvalue() == want.tobytes()
    assert hashlib.sha256(t).digest() == hashlib.sha256(want.tobytes()).digest()
    if view.c_contiguous and t.size:  # NumPy asks for the view first, and then for bytes of that
        np.testing.assert_array_equal(np.frombuffer(t, np.float32), want.ravel())
    np.testing.assert_array_equal(np.asarray(t), want)


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_formats(dtype: dtypes.DType) -> None:
    x = np.array([[0, 1], [1, 0]]).astype(dtype.np)
    assert memoryview(hg.tensor(x)).format == memoryview(x).format and np.asarray(hg.tensor(x)).dtype == x.dtype


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_types_without_a_format_are_bytes_and_arrays(dtype: dtypes.DType) -> None:
    t = hg.tensor([1.0, -2.0], dtype=dtype)
    with pytest.raises(BufferError, match=f"no format for {dtype}: take astype"):
        memoryview(t)
    assert np.asarray(t).dtype == dtype.np and not hasattr(t, "__array_interface__")
    file = io.BytesIO()
    file.write(t)
    assert file.getvalue() == t.tobytes() == t.numpy().tobytes() == bytes(memoryview(t.view(dtype.bit_type)))


def test_buffers_are_not_written_to() -> None:
    t = hg.tensor(X)
    with pytest.raises(TypeError, match="read-write"):
        io.BytesIO(bytes(96)).readinto(t)
    with pytest.raises((TypeError, BufferError)):
        (ctypes.c_char * 96).from_buffer(t)
    for array in (np.asarray(memoryview(t)), np.frombuffer(t, np.float32), np.asarray(t), t.numpy()):
        assert not array.flags.writeable
        with pytest.raises(ValueError):
            array.flags.writeable = True


def test_buffers_share_the_memory() -> None:
    t = hg.tensor(X)
    address = t.numpy().ctypes.data
    for array in (np.asarray(memoryview(t)), np.asarray(t), np.frombuffer(t, np.float32), np.asarray(memoryview(t.T if t.ndim == 2 else t))):
        assert array.ctypes.data == address
    assert t.ctypes.data == t.__array_interface__["data"][0] == address


def test_traced_tensors_have_no_buffers() -> None:
    def read(x: Any) -> Any:
        with pytest.raises(TracedValueError, match="a buffer needs the value"):
            memoryview(x)
        with pytest.raises(TracedValueError, match=r"np.asarray\(\) needs the value"):
            np.asarray(x)
        for name in ("flat", "flags", "ctypes"):
            with pytest.raises(TracedValueError):
                getattr(x, name)
        with pytest.raises(TracedValueError, match="tobytes"):
            x.tobytes()
        assert x.strides == (16, 4) and not hasattr(x, "__array_interface__")
        return x.view("int32")

    memoryview(hg.tensor(X))  # native code, which tells the error, is loaded by now
    np.testing.assert_array_equal(hg.jit(read)(X[0]), X[0].view(np.int32))
    with pytest.raises(TracedValueError, match="strides"):
        hg.jit(lambda x: x * x.strides[0], dynamic=True)(X[0])


def test_attributes_of_arrays() -> None:
    t = hg.tensor(X)
    for x, want in ((t, X), (hnp.transpose(t), X.T.copy()), (t[0, 0, 0], X[0, 0, 0]), (t[:, 1:2], X[:, 1:2].copy())):
        assert x.strides == want.strides and x.flags.c_contiguous and not x.flags.writeable
        assert list(x.flat) == want.ravel().tolist() and x.tobytes() == want.tobytes()
        read = np.ctypeslib.as_array(x.ctypes.data_as(ctypes.POINTER(ctypes.c_float)), want.shape or (1,))
        np.testing.assert_array_equal(read.reshape(want.shape), want)
    assert [i.tolist() for i in t.nonzero()] == [i.tolist() for i in X.nonzero()]
    with pytest.raises(ValueError, match="read-only"):
        t.flat[0] = 1.0


def test_views_of_bits() -> None:
    t = hg.tensor(X)
    for dtype in ("int32", "uint8", "float64", "complex64", "bool"):
        np.testing.assert_array_equal(np.asarray(t.view(dtype)).view(np.uint8), X.view(np.uint8))
        assert t.view(dtype).shape == X.view(dtype).shape
    again = t.view()
    again[0, 0, 0] = 9.0
    assert float(t[0, 0, 0]) == 9.0  # another Tensor of the same elements
    with pytest.raises(ShapeError, match="view: "):
        t[..., :3].view("float64")


# --- lifetimes -------------------------------------------------------------------------------------------------------


def test_what_is_exported_keeps_its_memory() -> None:
    gc.collect()
    before = storage.statistics()["live"]
    t = hg.tensor(np.arange(50_000.0))
    held = [memoryview(t), np.asarray(t), t.T.numpy(), t.ctypes.data_as(ctypes.c_void_p), t.flat, hg.tensor(t).tobytes]
    del t
    for _ in range(len(held) - 1):
        held.pop()
        gc.collect()
        assert storage.statistics()["live"] - before >= 400_000
    assert held[0][49_999] == 49_999.0
    held.clear()
    gc.collect()
    assert storage.statistics()["live"] == before


def test_an_address_stays_valid_while_the_tensor_lives() -> None:
    """Whoever takes an address keeps the Tensor, which may be assigned to meanwhile."""
    t = hg.tensor(np.arange(50_000.0))
    places, wants = [], []
    for i in range(5):
        places.append(t.__array_interface__["data"][0] if i % 2 else t.ctypes.data)
        wants.append(np.array(t))
        t[i] = -1.0
        hg.eval(t)
        hg.eval(hg.tensor(np.full(50_000, 5.0)) * 2)  # which would take freed memory
    for place, want in zip(places, wants, strict=True):
        np.testing.assert_array_equal(np.ctypeslib.as_array((ctypes.c_double * 50_000).from_address(place)), want)


EXPORTS: list[Callable[[Any], Any]] = [
    memoryview,
    np.asarray,
    lambda t: t.numpy(),
    lambda t: np.asarray(memoryview(t[5:])),
    lambda t: np.frombuffer(t, np.float64),
    lambda t: np.asarray(t.reshape(4, -1).T),
    lambda t: np.ctypeslib.as_array(t.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), t.shape),
    np.from_dlpack,
]
add_one = hg.jit(lambda x: x + 1, donate_argnums=0)
set_some = hg.jit(lambda x, i: x.at[i].set(-7.0), donate_argnums=0)
as_numpy = hg.jit(lambda x: (x, x * 2), output="numpy")
N = 4096  # elements of 32 KiB, which updates change in place


def _step(kind: str, x: Any, i: int) -> Any:
    """One thing that may write where a value is."""
    if kind == "assign":
        x[i] = float(i)
    elif kind == "assign a part":
        x[i : i + 50] = 3.0
    elif kind == "update":
        x = x.at[i].set(2.0)
        hg.eval(x)
    elif kind == "donate":
        x = add_one(x)
    elif kind == "donate to an update":
        x = set_some(x, i)
    elif kind == "numpy's own":
        for made in as_numpy(x):
            made[:] = -1.0
    elif kind == "compute":
        x = x * 0.5
    return x


KINDS = ["assign", "assign a part", "update", "donate", "donate to an update", "numpy's own", "compute"]


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 4000), st.sampled_from([None, *EXPORTS]), st.booleans()), min_size=3, max_size=12))
@settings(max_examples=40, deadline=None)
def test_exports_are_never_written_to(steps: list[tuple[str, int, Any, bool]]) -> None:
    x = hg.tensor(np.arange(float(N)))
    exports: list[tuple[Any, np.ndarray]] = []
    for kind, i, export, drops in steps:
        if export is not None:
            made = export(x)
            exports.append((made, np.array(made)))
            del made
        if drops and exports:
            exports.pop(i % len(exports))
        x = _step(kind, x, i)
        if i % 3 == 0:
            hg.eval(x)
        for made, want in exports:
            np.testing.assert_array_equal(np.asarray(made), want)


def test_updates_are_in_place_where_nothing_is_exported() -> None:
    """Without this the test before this one would show nothing."""
    if why_not_native() is not None:
        pytest.skip(f"calls go through Python: {why_not_native()}")
    x = set_some(hg.tensor(np.arange(float(N))), 0)
    address = x._storage.data
    x = set_some(x, 1)
    assert x._storage.data == address
    view = memoryview(x)
    x = set_some(x, 2)
    assert x._storage.data != address and view[2] == 2.0


WITHOUT_NATIVE_CODE = """
import numpy as np
import hologram as hg
for export in (memoryview, np.asarray, lambda t: memoryview(t[9:])):
    x = hg.tensor(np.zeros(4096))
    held = export(x)
    for i in range(3):
        x = x.at[10 + i].set(7.0)
        hg.eval(x)
        x[20] = 8.0
        hg.eval(x)
    assert not np.asarray(held).any() and x._storage.exports == 0
assert bytes(hg.tensor([1.0]).view("int32")) == np.float32(1).tobytes()
assert hg.jit(lambda x: x + 1, output="numpy")(np.ones(2)).flags.writeable
"""


def test_without_native_code() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_NATIVE_CODE], env={**os.environ, "HOLOGRAM_NATIVE": "0"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


FIRST_OF_ALL = """
import hologram.numpy as hnp
x = hnp.arange(3)
assert memoryview(x).tolist() == [0, 1, 2] and bytes(hnp.zeros(2, "int8")) == bytes(2)
"""


def test_a_buffer_may_be_the_first_thing_that_is_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_OF_ALL], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_interrupt_during_an_export_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    t, view, calls = -hg.tensor(-X), hg.Tensor._view, []  # native code exports realised Tensors

    def interrupted(self: Any, reading: str) -> Any:
        calls.append(reading)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return view(self, reading)

    monkeypatch.setattr(hg.Tensor, "_view", interrupted)
    with pytest.raises(KeyboardInterrupt):
        np.asarray(t)
    np.testing.assert_array_equal(np.asarray(t), X)  # once


def test_views_as_types_of_python_keep_the_elements_whole() -> None:
    """As NumPy's, whose types are 64 bits wide, for elements of 64 bits; those of 32 bits stay so."""
    x = np.arange(6.0).reshape(2, 3)
    for array in (x, x + 1j, x.astype(np.int64)):
        for kind in (float, int, complex, np.dtype("f8")) if array.dtype.kind == "c" else (float, int):
            want = array.view(kind)
            for got in (
                hg.tensor(array).view(kind),
                *([] if kind is complex or array.dtype.kind == "c" else [hg.jit(lambda a, k=kind: a.view(k))(array)]),
            ):
                np.testing.assert_array_equal(got, want)
                assert got.dtype == want.dtype
    assert hg.tensor(x.astype(np.float32)).view(float).dtype == np.float32


@pytest.mark.parametrize("shape", [(1,), (5,), (0,), (2, 3), (3, 1, 4), (2, 0, 3), (2,) * 6])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64"])
def test_views_describe_arrays_as_numpy_does(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    t = hg.tensor(x)
    of, view = memoryview(x), memoryview(t)
    for name in ("format", "itemsize", "nbytes", "ndim", "shape", "strides", "suboffsets", "c_contiguous", "contiguous"):
        assert getattr(view, name) == getattr(of, name), name
    assert view.readonly
    assert view.tobytes() == of.tobytes()
    array = np.asarray(t)
    del t, view
    np.testing.assert_array_equal(array, x)
    assert not array.flags.writeable


def test_exported_memory_is_not_written_by_donations() -> None:
    f = hg.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(4):
        t = hg.tensor(np.arange(3000.0))
        array = np.asarray(t)
        view = memoryview(t)
        made = f(t)
        np.testing.assert_array_equal(array, np.arange(3000.0))
        assert view[7] == 7.0
        np.testing.assert_array_equal(made, np.arange(3000.0) + 1)


def test_views_give_their_memory_back() -> None:
    t = hg.tensor(np.arange(4.0))
    np.asarray(t)
    exports = t._storage.exports
    for _ in range(100):
        with memoryview(t) as view:
            assert view.shape == (4,)
            assert t._storage.exports == exports + 1
    assert t._storage.exports == exports
