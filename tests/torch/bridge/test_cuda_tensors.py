"""Tensors on CUDA devices, on a CUDA without a GPU (``fake_cuda.py``): CPU tensors over the memory of its devices stand for them."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import hologram as hg
import hologram.numpy as hnp
import hologram_torch
from hologram.backends.cuda import device as cuda_device
from hologram.backends.cuda.device import Device
from hologram.errors import DeviceError
from hologram_torch import functional, interop
from hologram_torch.bridge import cuda as bridge
from tests.support.devices.fake_cuda import FakeApi
from tests.support.needs import needs_compilers

pytestmark = needs_compilers
CUDA = torch.device("cuda", 0)


def there(fake: FakeApi, values: torch.Tensor) -> torch.Tensor:
    """A tensor of these values in the memory of the fake's device."""
    flat = values.contiguous().view(torch.uint8).reshape(-1).numpy()
    made = fake.array(flat)
    fake.finish()
    return at(made.address, tuple(values.shape), values.dtype)


def at(address: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    nbytes = torch.Size(shape).numel() * dtype.itemsize
    array = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
    return torch.from_numpy(array).view(dtype).reshape(shape)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """One device that is not there, and torch's view of it."""
    api = FakeApi()
    monkeypatch.setattr(cuda_device, "found", lambda: ([Device(api, 0)], None))  # type: ignore[arg-type]
    device = cuda_device.found()[0]
    monkeypatch.setattr(cuda_device, "found", lambda: (device, None))
    held: list[Any] = []  # the memory of what torch was given

    def over(array: Any) -> torch.Tensor:
        held.append(array)
        api.finish()
        return at(array.address, array.values.shape, torch.from_numpy(array.values).dtype)

    monkeypatch.setattr(bridge, "over", over)
    monkeypatch.setattr(bridge, "shares", lambda name: name.startswith("cuda"))
    monkeypatch.setattr(bridge, "current_stream", lambda device: api.stream or 1)
    monkeypatch.setattr(bridge, "device_of", lambda x: CUDA if x.numel() and api.holds(x.data_ptr()) else x.device)
    yield api
    held.clear()
    hg.clear_caches()
    gc.collect()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.bool, torch.complex64], ids=str)
def test_values_of_every_type_pass_without_copies(fake: FakeApi, dtype: torch.dtype) -> None:
    x = torch.arange(48).reshape(6, 8).to(dtype)
    f = hologram_torch.wrap(lambda a: hnp.where(hnp.asarray(True), hnp.flip(a, axis=0), a))
    given = there(fake, x)
    fake.counts.clear()
    found = f(given)
    assert fake.counts["copies"] == 0 and fake.holds(found.data_ptr())
    assert torch.equal(found, x.flip(0))


def test_gradients_stay_on_the_device(fake: FakeApi) -> None:
    x, w = torch.randn(5, 8), torch.randn(8, 8)
    a, b = (there(fake, t).requires_grad_() for t in (x, w))
    y = functional.gelu(functional.matmul(a, b))
    assert fake.holds(y.data_ptr())
    found = torch.autograd.grad(y, (a, b), there(fake, torch.ones(5, 8)))
    assert all(fake.holds(g.data_ptr()) for g in found)
    wanted = torch.autograd.grad(torch.nn.functional.gelu(x.requires_grad_() @ w.requires_grad_()), (x, w), torch.ones(5, 8))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_results_that_are_arguments_are_copies(fake: FakeApi) -> None:
    given = there(fake, torch.ones(4, 8))
    same, twice, again = hologram_torch.wrap(lambda x: (x, x * 2, x * 2))(given)
    assert len({t.data_ptr() for t in (given, same, twice, again)}) == 4
    assert same.tolist() == given.tolist() and twice.tolist() == again.tolist() == (2 * given).tolist()


def test_work_follows_the_stream_of_torch(fake: FakeApi) -> None:
    f = hologram_torch.wrap(lambda x: x + 1)
    given = there(fake, torch.zeros(64))
    fake.stream = fake.new_stream()
    fake.streams[fake.stream].append(lambda: given.fill_(3))  # what torch has put there is done before
    assert f(given).tolist() == [4] * 64


def test_tensors_of_hologram(fake: FakeApi) -> None:
    x = torch.randn(5, 6)
    t = interop.from_torch(there(fake, x))
    assert t.device == "cuda:0"
    back = interop.to_torch(t * 2)
    assert fake.holds(back.data_ptr()) and torch.equal(back, x * 2)
    assert interop.to_torch(t * 2, copy=True).data_ptr() != back.data_ptr()


def test_devices_that_do_not_meet(fake: FakeApi) -> None:
    with pytest.raises(DeviceError, match="add: arguments are on cuda:0 and on cpu"):
        functional.add(there(fake, torch.ones(8)), torch.ones(8))
    with pytest.raises(DeviceError, match="computes on null:0, and its arguments are on cuda:0"):
        hologram_torch.wrap(lambda x: x, device="null:0")(there(fake, torch.ones(8)))


def test_why_there_is_none() -> None:
    with FakeTensorMode():
        x = torch.ones(3, device=CUDA)
        if cuda_device.found()[0]:
            pytest.skip("there is a CUDA device")
        with pytest.raises(DeviceError, match="relu: .*cuda:0.* is not available: .*"):
            functional.relu(x)
