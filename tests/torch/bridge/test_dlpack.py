"""DLPack between torch and Hologram on the CPU: no copies, and memory that lives as long as either side has it."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
import torch

import hologram as hg
import hologram_torch as ht
from hologram.backends.native.storage import statistics
from hologram.dlpack import VERSIONED
from hologram.errors import DeviceError
from hologram_torch.bridge.element_types import dtype_of

DTYPES = [getattr(torch, n) for n in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()]


def address(t: hg.Tensor) -> int:
    return int(t.numpy().__array_interface__["data"][0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_torch_to_hologram_and_back_is_no_copy(dtype: torch.dtype) -> None:
    x = torch.arange(6).reshape(2, 3).to(dtype)
    t = hg.from_dlpack(x)
    assert address(t) == x.data_ptr() and t.shape == (2, 3) and dtype_of(dtype).np == t.dtype
    back = ht.to_torch(t)
    assert back.data_ptr() == x.data_ptr() and torch.equal(back, x)
    computed = hg.tensor(x.numpy()) if dtype is not torch.bool else ~hg.tensor(x.numpy())
    other = ht.to_torch(computed)
    assert other.data_ptr() == address(computed) and other.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_types_that_numpy_lacks(dtype: torch.dtype) -> None:
    """NumPy's DLPack refuses them."""
    x = torch.arange(12).reshape(3, 4).to(dtype)
    t = hg.from_dlpack(x)
    assert address(t) == x.data_ptr() and t.shape == (3, 4) and t.dtype == dtype_of(dtype).np
    assert hg.asarray(x).dtype == hg.tensor(x).dtype == t.dtype
    for view in (x.t(), x[:, ::2], x[1:, 1:]):
        assert hg.from_dlpack(view).astype("float32").tolist() == view.float().tolist()
    back = torch.from_dlpack(t * 2)
    assert back.dtype is dtype and back.tolist() == (x.float() * 2).to(dtype).tolist()
    assert torch.from_dlpack(hg.tensor(2.0).astype(t.dtype)).item() == 2
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(t)
    wanted, storage = x.float().tolist(), weakref.ref(x.untyped_storage())
    del x, view, back
    gc.collect()
    assert t.astype("float32").tolist() == wanted
    del t
    gc.collect()
    assert storage() is None


def test_types_that_hologram_lacks_are_named_by_no_other() -> None:
    with pytest.raises(DeviceError, match="from_dlpack"):
        hg.from_dlpack(torch.ones(3).to(torch.float8_e4m3fnuz))


@pytest.mark.skipif(not VERSIONED, reason="NumPy before 2.1 makes no capsules that tell what is read-only")
def test_consumers_of_dlpack_are_given_the_memory_itself() -> None:
    t = hg.tensor(np.arange(4.0)) * 2
    capsule = t.__dlpack__(max_version=(1, 0), copy=False)
    assert "dltensor" in repr(capsule)
    x = torch.from_dlpack(t)
    assert torch.equal(x, torch.arange(4.0, dtype=torch.float64) * 2)
    assert np.from_dlpack(t).__array_interface__["data"][0] == address(t)
    with ht.Executor("cpu") as executor:
        buffer = executor.allocate(5)
        shared = torch.from_dlpack(buffer)
        shared[2] = 7.0
        assert shared.data_ptr() == buffer.ptr and buffer.to_numpy()[2] == 7.0


def test_hologram_memory_outlives_the_tensor_that_made_it() -> None:
    hg.eval(hg.tensor(np.arange(100_000.0)) + 1)  # the number 1 is remembered
    gc.collect()  # what other tests have left
    live = statistics()["live"]
    t = hg.tensor(np.arange(100_000.0)) + 1
    x = ht.to_torch(t)
    del t
    gc.collect()
    assert statistics()["live"] >= live + x.nbytes and x[-1] == 100_000
    del x
    gc.collect()
    assert statistics()["live"] <= live


def test_torch_memory_outlives_the_tensor_that_made_it() -> None:
    x = torch.arange(1000.0)
    storage = weakref.ref(x.untyped_storage())
    t = hg.from_dlpack(x)
    del x
    gc.collect()
    assert float(t[-1]) == 999.0
    view = t.numpy()
    del t
    gc.collect()
    assert view[0] == 0.0
    del view
    gc.collect()
    assert storage() is None


@pytest.mark.parametrize("torch_first", [True, False])
def test_either_side_may_let_go_first_and_in_another_thread(torch_first: bool) -> None:
    for size in (1, 300_000):
        t = hg.tensor(np.full(size, 3.0)) * 2
        held = [ht.to_torch(t), t] if torch_first else [t, ht.to_torch(t)]
        del t
        checked: list[float] = []

        def let_go(held: list[object] = held, checked: list[float] = checked) -> None:
            while held:
                checked.append(float(held[-1].sum()))  # type: ignore[attr-defined]
                held.pop(0 if len(held) > 1 else -1)

        thread = threading.Thread(target=let_go)
        thread.start()
        thread.join()
        assert checked == [6.0 * size] * 2


def test_a_write_after_the_hand_over_is_not_seen_by_results() -> None:
    x = torch.ones(4)
    t = ht.from_torch(x)
    doubled = t * 2
    x[0] = 100.0
    assert doubled.tolist() == [2, 2, 2, 2]


def test_nothing_is_left_of_many_hand_overs() -> None:
    x = torch.randn(1000)

    def steps(n: int) -> int:
        for _ in range(n):
            ht.to_torch(hg.from_dlpack(x) + 1)
        gc.collect()
        return int(statistics()["live"])

    steps(50)  # until what comes often is compiled
    assert steps(20) == steps(200)
