"""Executors and buffers: contents, zero copies by address, ends, backends."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
from hologram.dlpack import VERSIONED
from hologram.errors import (
    ArgumentError,
    BackendNameError,
    ClosedExecutorError,
    DeviceError,
    DTypeError,
    FreedBufferError,
    OutOfMemory,
    ShapeError,
)

DTYPES = (np.float32, np.float64, np.float16, np.int8, np.int64, np.uint16, np.bool_, np.complex64, ml_dtypes.bfloat16)


@pytest.fixture
def executor() -> Iterator[hg.Executor]:
    with hg.Executor("cpu") as made:
        yield made


# --- contents -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_fresh_buffers_hold_zeros(executor: hg.Executor, dtype: Any) -> None:
    for made in (executor.allocate(7, dtype), executor.allocate_boundary(3, 16, 2, dtype)):
        made.fill(np.dtype(dtype).type(1))
        made.free()
    for made in (executor.allocate(7, dtype), executor.allocate_boundary(3, 16, 2, dtype)):
        assert made.dtype == dtype
        assert made.nbytes == made.size * made.dtype.itemsize == len(made) * made.dtype.itemsize
        assert not made.to_numpy().any()


@given(n=st.integers(1, 200), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 5))
def test_contents_go_in_and_out(n: int, dtype: Any, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 100, n).astype(dtype)
    with hg.Executor("cpu") as executor:
        a, b, c = (executor.allocate(n, dtype) for _ in range(3))
        a.from_numpy(values)
        b.from_bytes(a.to_bytes())
        c.copy_from(b)
        for made in (a, b, c):
            np.testing.assert_array_equal(made.to_numpy(), values)
        assert c.to_bytes() == values.tobytes()
        c.fill(values[0])
        np.testing.assert_array_equal(c.to_numpy(), np.full(n, values[0]))


def test_arrays_of_any_layout_are_copied_in_c_order(executor: hg.Executor) -> None:
    x = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
    made = executor.allocate(24)
    for array in (x, x.transpose(2, 0, 1), x[:, ::-1], x.astype(">f8"), x.tolist(), x.astype(np.int32)):
        made.from_numpy(array)
        np.testing.assert_array_equal(made.to_numpy(), np.asarray(array).reshape(-1))


def test_contents_that_do_not_fit_raise(executor: hg.Executor) -> None:
    made, whole = executor.allocate(4), executor.allocate(4, np.int32)
    checks: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (ShapeError, "an array of 5 elements for a buffer of 4", lambda: made.from_numpy(np.zeros(5))),
        (DTypeError, "float64 is not cast to int32", lambda: whole.from_numpy(np.zeros(4))),
        (ShapeError, "3 bytes for a buffer of 16", lambda: made.from_bytes(b"abc")),
        (ShapeError, r"float32\[5\] for a buffer of float32\[4\]", lambda: made.copy_from(executor.allocate(5))),
        (DTypeError, r"int32\[4\] for a buffer of float32\[4\]", lambda: made.copy_from(whole)),
        (ArgumentError, "copy_from takes a Buffer", lambda: made.copy_from(np.zeros(4))),  # type: ignore[arg-type]
        (ArgumentError, "fill: value is a number, not a str", lambda: made.fill("x")),
        (DTypeError, "fill: value = 1.5 is no int32", lambda: whole.fill(1.5)),
        (DTypeError, "fill: value = 1j is no float32", lambda: made.fill(1j)),
        (ArgumentError, "from_bytes: a str cannot be read as bytes", lambda: made.from_bytes("1234")),
        (ArgumentError, "buffers are made by Executor.allocate", lambda: hg.Buffer(4)),
        (ArgumentError, "C-contiguous", lambda: hg.Buffer.wrap(np.zeros((4, 4), np.float32).T[1:])),
        (ArgumentError, "at least one element", lambda: hg.Buffer.wrap(np.zeros(0, np.float32))),
        (ArgumentError, "neither copied nor pickled", lambda: copy.copy(made)),
        (ArgumentError, "neither copied nor pickled", lambda: pickle.dumps(made)),
        (DTypeError, "datetime64", lambda: hg.Buffer.wrap(np.zeros(3, "datetime64[s]"))),
        (ArgumentError, "cannot be read as an array", lambda: hg.Buffer.wrap([[1], [2, 3]])),
    ]
    for error, words, call in checks:
        with pytest.raises(error, match=words):
            call()


def test_allocations_that_cannot_be_had_raise(executor: hg.Executor) -> None:
    checks: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (ShapeError, "size is at least 1, not 0", lambda: executor.allocate(0)),
        (ArgumentError, "size is an integer, not 2.5", lambda: executor.allocate(2.5)),  # type: ignore[arg-type]
        (DTypeError, "'text'", lambda: executor.allocate(2, "text")),
        (OutOfMemory, "cannot be allocated", lambda: executor.allocate(1 << 60)),
        (ShapeError, "class_index is from 0 to 95, not 96", lambda: executor.allocate_boundary(96, 48, 256)),
        (ShapeError, "width is from 1 to 48, not 49", lambda: executor.allocate_boundary(0, 49, 256)),
        (ShapeError, "height is from 1 to 256, not 0", lambda: executor.allocate_boundary(0, 48, 0)),
        (ArgumentError, "height is an integer", lambda: executor.allocate_boundary(0, 48, None)),  # type: ignore[arg-type]
        (ShapeError, "3 x 3 bytes are no whole number of float32", lambda: executor.allocate_boundary(0, 3, 3)),
    ]
    for error, words, call in checks:
        with pytest.raises(error, match=words):
            call()


# --- zero copies --------------------------------------------------------------------------------------------------------------


def _address(array: Any) -> int:
    address: int = np.asarray(array).__array_interface__["data"][0]
    return address


def _views(made: hg.Buffer) -> dict[str, Any]:
    """Every way in which a buffer's memory can be had."""
    return {
        "to_numpy": made.to_numpy(),
        "asarray": np.asarray(made),
        "from_dlpack": np.from_dlpack(made),
        "memoryview": np.asarray(memoryview(made)),
        "frombuffer": np.frombuffer(made, made.dtype),
        "interface": np.asarray(type("Other", (), {"__array_interface__": made.__array_interface__, "kept": made})()),
    }


@pytest.mark.parametrize("kind", ["linear", "boundary", "external"])
def test_views_are_the_memory_itself(executor: hg.Executor, kind: str) -> None:
    source = np.zeros(3072, np.float32)
    made = {
        "linear": lambda: executor.allocate(3072),
        "boundary": lambda: executor.allocate_boundary(95, 48, 256),
        "external": lambda: hg.Buffer.wrap(source),
    }[kind]()
    assert (made.pool, made.is_linear, made.is_boundary) == (kind, kind == "linear", kind == "boundary")
    assert made.class_index == (95 if kind == "boundary" else 0)
    assert made.executor is (None if kind == "external" else executor)
    assert kind != "external" or made.ptr == _address(source)
    for number, (name, view) in enumerate(_views(made).items()):
        assert _address(view) == made.ptr, name
        assert view.dtype == np.float32 and view.size == 3072, name
        written = view if VERSIONED or name != "from_dlpack" else made.to_numpy()  # NumPy 2.0 takes all that comes by DLPack for read-only
        written[number] = number + 1
    np.testing.assert_array_equal(made.to_numpy()[:6], np.arange(6) + 1)
    assert memoryview(made).format == "f"
    assert made.__dlpack_device__() == (1, 0)


def test_ops_read_and_write_wrapped_memory_without_copies(executor: hg.Executor) -> None:
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    a, b = hg.Buffer.wrap(x), hg.Buffer.wrap(y)
    before = hg.settings.memory_limit
    for _ in range(2):
        hg.ops.vector_neg(executor, a, b)
        assert (a.ptr, b.ptr) == (_address(x), _address(y))
    np.testing.assert_array_equal(y, -x)
    assert hg.settings.memory_limit == before


def test_torch_tensors_are_wrapped_and_made_without_copies(executor: hg.Executor) -> None:
    torch = pytest.importorskip("torch")
    t = torch.zeros(10, 4)
    made = hg.Buffer.wrap(t)
    assert made.ptr == t.data_ptr()
    hg.ops.fill(executor, made, 2.0)
    assert t.sum() == 80
    back = torch.from_dlpack(made)
    assert back.data_ptr() == t.data_ptr()


def test_hologram_arrays_read_buffers(executor: hg.Executor) -> None:
    made = executor.allocate(5)
    made.fill(3)
    np.testing.assert_array_equal(np.asarray(hg.asarray(made) + 1), np.full(5, 4))


def test_buffers_on_the_cpu_have_no_cuda_interface(executor: hg.Executor) -> None:
    assert not hasattr(executor.allocate(3), "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="the memory of this buffer is the CPU's"):
        _ = executor.allocate(3).__cuda_array_interface__


# --- ends ---------------------------------------------------------------------------------------------------------------------

USES: dict[str, Callable[[hg.Buffer], Any]] = {
    "to_numpy": lambda b: b.to_numpy(),
    "from_numpy": lambda b: b.from_numpy(np.zeros(8)),
    "to_bytes": lambda b: b.to_bytes(),
    "from_bytes": lambda b: b.from_bytes(bytes(32)),
    "fill": lambda b: b.fill(1),
    "copy_from": lambda b: b.copy_from(b),
    "ptr": lambda b: b.ptr,
    "asarray": lambda b: np.asarray(b),
    "memoryview": lambda b: memoryview(b),
    "dlpack": lambda b: np.from_dlpack(b),
    "interface": lambda b: b.__array_interface__,
    "wrap": lambda b: hg.Buffer.wrap(b),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("end", ["free", "cleanup"])
def test_use_after_the_end_raises(use: str, end: str) -> None:
    executor = hg.Executor("cpu")
    made = executor.allocate(8)
    made.free() if end == "free" else executor.cleanup()
    reason = "it was freed" if end == "free" else "its executor has ended"
    with pytest.raises(FreedBufferError, match=f"buffer {made.handle} of 8 float32 cannot be used: {reason}"):
        USES[use](made)
    assert made.size == 8
    assert reason in repr(made)
    made.free()
    executor.cleanup()


def test_views_outlive_everything() -> None:
    executor = hg.Executor("cpu")
    made = [executor.allocate(1000), executor.allocate_boundary(4, 48, 256)]
    views = [(b.to_numpy(), np.from_dlpack(b), memoryview(b)) for b in made]
    for b in made:
        b.fill(7)
    executor.cleanup()
    del executor, made, b
    gc.collect()
    others = [hg.Executor("cpu").allocate(1000) for _ in range(50)]
    for o in others:
        o.fill(1)
    for group in views:
        for view in group:
            assert (np.asarray(view) == 7).all()


def test_views_die_in_other_threads(executor: hg.Executor) -> None:
    def use(index: int) -> None:
        for _ in range(100):
            made = executor.allocate_boundary(index, 48, 256)
            view = made.to_numpy()
            made.free()
            view[:] = index
            assert (view == index).all()
            del view  # which holds the page

    threads = [threading.Thread(target=use, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert executor._pool.free_classes() == list(range(96))


def test_ended_executors_refuse() -> None:
    with hg.Executor("cpu") as executor:
        assert repr(executor) == f"<Executor {executor.handle}: cpu>"
    for call in (lambda: executor.allocate(1), lambda: executor.allocate_boundary(0, 4, 1), executor.__enter__):
        with pytest.raises(ClosedExecutorError, match=f"executor {executor.handle} has ended"):
            call()
    assert repr(executor) == f"<Executor {executor.handle}: cpu, ended>"


def test_buffers_keep_their_executor() -> None:
    made = hg.Executor("cpu").allocate(4)
    gc.collect()
    made.fill(2)
    assert made.executor is not None
    out = made.executor.allocate(4)
    hg.ops.vector_add(made.executor, made, made, out)
    np.testing.assert_array_equal(out.to_numpy(), 4)


def test_handles_are_unique() -> None:
    executors = [hg.Executor("cpu") for _ in range(3)]
    made = [*executors, *[e.allocate(2) for e in executors], hg.Buffer.wrap(np.zeros(2))]
    assert len({x.handle for x in made}) == len(made)


# --- backends -----------------------------------------------------------------------------------------------------------------


def test_backends_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = hg.backend
    assert [b.value for b in backend.BackendType] == ["cpu", "metal", "cuda", "opencl", "auto"]
    assert backend.validate_backend("cpu") is backend.BackendType.CPU
    assert backend.validate_backend("AUTO") is backend.BackendType.AUTO
    assert backend.BackendType.CPU == "cpu"
    with pytest.raises(BackendNameError, match="'tpu' is no backend: there are 'cpu', 'metal'"):
        hg.Executor("tpu")
    with pytest.raises(ValueError, match="None is no backend"):
        backend.validate_backend(None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what drivers say while they are looked for
        assert backend.get_default_backend() in {"metal", "cuda", "opencl", "cpu"}
        assert hg.Executor().backend == backend.get_default_backend()


@pytest.mark.parametrize("name", ["metal", "cuda", "opencl"])
def test_backends_that_are_not_there_say_why(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from hologram.ir import devices

    def missing(device: str) -> str:
        raise DeviceError(f"device {device!r} is not available: no driver")

    with monkeypatch.context() as patch:
        patch.setattr(devices, "resolve", lambda device: device if device == "cpu" else missing(device))
        assert not getattr(hg.backend, f"is_{name}_available")()
        for call in (lambda: hg.Executor(name), lambda: hg.backend.validate_backend(name)):
            with pytest.raises(DeviceError, match=f"device '{name}' is not available: no driver"):
                call()
        assert hg.Executor("auto").backend == "cpu"
