"""device="hologram": tensors are made, moved, changed in place, printed, saved and refused as torch's own are."""

from __future__ import annotations

import copy
import gc
import io
import math
import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest
import torch

import hologram_torch
from hologram.errors import ArgumentError, DeviceError, DTypeError, IndexOutOfRange, ShapeError, UnsupportedError
from hologram_torch.eager.recording import pending

DEVICE = "hologram"


def same(got: torch.Tensor, wanted: torch.Tensor) -> None:
    assert got.device.type == DEVICE and got.dtype is wanted.dtype
    torch.testing.assert_close(got.cpu(), wanted, rtol=0, atol=0, equal_nan=True)


def counted(shape: tuple[int, ...], device: str = DEVICE) -> torch.Tensor:
    return torch.arange(float(torch.Size(shape).numel()), device=device).reshape(shape)


# --- making and moving -----------------------------------------------------------------------------------------------

FACTORIES: dict[str, Callable[[str], torch.Tensor]] = {
    "tensor": lambda d: torch.tensor([[1, 2], [3, 4]], device=d),
    "scalar": lambda d: torch.tensor(2.5, device=d),
    "zeros": lambda d: torch.zeros(2, 3, device=d),
    "ones": lambda d: torch.ones(2, 3, dtype=torch.bfloat16, device=d),
    "full": lambda d: torch.full((2, 3), 7, device=d),
    "arange": lambda d: torch.arange(2, 9, 3, device=d),
    "arange of floats": lambda d: torch.arange(0.5, 4, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 5, device=d),
    "eye": lambda d: torch.eye(3, device=d),
    "zeros_like": lambda d: torch.zeros_like(counted((2, 3), d)),
    "new_full": lambda d: counted((2, 3), d).new_full((2,), 3),
    "empty": lambda d: torch.empty(2, 0, device=d),
    "complex": lambda d: torch.ones(2, dtype=torch.complex64, device=d) * 1j,
}


@pytest.mark.parametrize("name", FACTORIES)
def test_factories(name: str) -> None:
    same(FACTORIES[name](DEVICE), FACTORIES[name]("cpu"))


RANDOM: dict[str, Callable[[str], torch.Tensor]] = {
    "randn": lambda d: torch.randn(1024, device=d),
    "rand": lambda d: torch.rand(3, 5, dtype=torch.float64, device=d),
    "randint": lambda d: torch.randint(9, (20,), device=d),
    "randperm": lambda d: torch.randperm(20, device=d),
    "rand_like": lambda d: torch.rand_like(torch.zeros(4, device=d)),
    "in place": lambda d: torch.zeros(2, 3, device=d).uniform_(2, 3),
    "in place of a view": lambda d: torch.zeros(4, device=d)[1:3].normal_(),
    "bernoulli": lambda d: torch.bernoulli(torch.full((30,), 0.3, device=d)),
    "multinomial": lambda d: torch.multinomial(torch.ones(9, device=d), 4),
    "dropout": lambda d: torch.nn.functional.dropout(torch.ones(50, device=d), 0.4),
    "generator": lambda d: torch.randn(3, device=d, generator=torch.Generator().manual_seed(5)),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_those_of_torchs_cpu_generator(name: str) -> None:
    made = []
    for device in (DEVICE, "cpu"):
        torch.manual_seed(3)
        made.append(RANDOM[name](device))
    same(*made)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.int64, torch.bool, torch.complex64])
def test_moving_and_converting(dtype: torch.dtype) -> None:
    x = torch.tensor([[0.0, 1.5, 2.0], [3.0, 100.0, 0.25]])
    same(x.to(dtype).to(DEVICE), x.to(dtype))
    same(x.to(DEVICE, dtype), x.to(dtype))
    same(x.to(DEVICE).to(dtype), x.to(dtype))
    assert torch.equal(x.to(DEVICE).to("cpu", dtype), x.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_8_bit_floats(dtype: torch.dtype) -> None:
    x = torch.tensor([[0.0, 1.55, -2.1], [3.0, 500.0, -7e4]])
    same(x.to(dtype).to(DEVICE).float(), x.to(dtype).float())
    same(x.to(DEVICE).to(dtype).float() + 1, x.to(dtype).float() + 1)
    assert x.to(DEVICE).to(dtype).dtype is dtype and x.to(DEVICE, dtype).cpu().dtype is dtype


def test_moving_keeps_the_order_of_axes_and_takes_non_blocking() -> None:
    x = counted((2, 3, 4), "cpu").permute(2, 0, 1)
    there = x.to(DEVICE, non_blocking=True)
    back = there.to("cpu", non_blocking=True)
    assert there.stride() == x.stride() == back.stride() and torch.equal(back, x)
    channels_last = torch.randn(2, 3, 4, 5).to(DEVICE).to(memory_format=torch.channels_last)
    assert channels_last.is_contiguous(memory_format=torch.channels_last)
    assert (channels_last * 2 + 1).stride() == channels_last.stride()


def test_copies_between_devices() -> None:
    source = counted((2, 3), "cpu")
    x = torch.zeros(4, 3, dtype=torch.float64, device=DEVICE)
    x[1:3].copy_(source)
    x[0].copy_(source[1])
    same(x, torch.cat([source[1:], source, torch.zeros(1, 3)]).double())
    here = torch.zeros(3, 2)
    here.t().copy_(x[1:3])
    assert torch.equal(here, source.t())


def test_uploads_are_copies() -> None:
    source = torch.ones(3)
    there = source.to(DEVICE)
    source.zero_()
    assert there.tolist() == [1, 1, 1]
    there.cpu().zero_()
    assert there.tolist() == [1, 1, 1]


# --- values and storages ---------------------------------------------------------------------------------------------


def test_reading() -> None:
    x = counted((2, 3))
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x[1, 2].item() == 5 and float(x.sum()) == 15 and bool((x < 6).all())
    assert repr(x) == "tensor([[0., 1., 2.],\n        [3., 4., 5.]], device='hologram:0')"
    assert f"{x[0, 1]:.1f}" == "1.0"
    assert torch.equal(x, x.clone()) and torch.allclose(x, x + 1e-9)


def test_results_whose_shapes_depend_on_values() -> None:
    x = counted((2, 3))
    here = x.cpu()
    same(x[x > 2], here[here > 2])
    same((x > 2).nonzero(), (here > 2).nonzero())
    same(torch.unique(x.long() % 2), torch.unique(here.long() % 2))
    same(x.masked_select(x > 4), here.masked_select(here > 4))


def test_writing_by_index() -> None:
    for_both: list[Callable[[torch.Tensor, str], Any]] = [
        lambda x, d: x.__setitem__(0, 7),
        lambda x, d: x.__setitem__(x > 4, -1),
        lambda x, d: x.__setitem__(torch.tensor([1, 0], device=d), torch.tensor([[5.0], [6.0]], device=d)),
        lambda x, d: x.__setitem__((slice(None), torch.tensor([True, False, True])), x.new_ones(2, 2)),
        lambda x, d: x.index_add_(0, torch.tensor([1, 1], device=d), torch.ones(2, 3, device=d)),
        lambda x, d: x.masked_fill_(x < 1, 9),
        lambda x, d: x.scatter_(1, torch.tensor([[2], [0]], device=d), 4.0),
        lambda x, d: x[:, 1:].mul_(10),
        lambda x, d: x.t()[0].sub_(1),
    ]
    for change in for_both:
        there, here = counted((2, 3)), counted((2, 3), "cpu")
        change(there, DEVICE)
        change(here, "cpu")
        same(there, here)


def test_bytes_as_elements_of_another_type() -> None:
    x = torch.tensor([1.0, 2.0], device=DEVICE)
    bits = x.view(torch.int32)
    same(bits, x.cpu().view(torch.int32))
    bits[0] = 0
    assert x.tolist() == [0, 2]
    z = torch.zeros(2, dtype=torch.complex64, device=DEVICE)
    torch.view_as_real(z)[:, 1] = 3
    assert z.tolist() == [3j, 3j]


def test_copies_share_what_their_originals_share() -> None:
    x = counted((2, 3))
    there, row = copy.deepcopy([x, x[0]])
    row.fill_(7)
    assert there.tolist() == [[7, 7, 7], [3, 4, 5]] and x[0, 0].item() == 0


@pytest.mark.parametrize("where", [None, "cpu", DEVICE])
def test_saving_and_loading(where: str | None) -> None:
    x = counted((2, 3))
    file = io.BytesIO()
    torch.save({"x": x, "row": x[1], "half": x.half(), "n": 3}, file)
    file.seek(0)
    found = torch.load(file, map_location=where)
    assert {found[name].device.type for name in ("x", "row", "half")} == {where or DEVICE}
    found["row"].fill_(9)
    assert found["x"].tolist() == [[0, 1, 2], [9, 9, 9]] and found["half"].tolist() == x.tolist() and found["n"] == 3


def test_loading_what_the_cpu_has_saved() -> None:
    file = io.BytesIO()
    torch.save(torch.arange(3), file)
    file.seek(0)
    same(torch.load(file, map_location=DEVICE), torch.arange(3))


def test_pickles() -> None:
    x = counted((2, 3)).bfloat16()
    same(pickle.loads(pickle.dumps(x)), x.cpu())
    same(pickle.loads(ForkingPickler.dumps(x)), x.cpu())


def test_storages() -> None:
    x = torch.tensor([1, 2], dtype=torch.int16, device=DEVICE)
    storage = x.untyped_storage()
    assert storage.nbytes() == len(storage) == 4 and storage.tolist() == [1, 0, 2, 0] and storage.cpu().device.type == "cpu"
    storage.copy_(torch.UntypedStorage([3, 0, 4, 0]))
    storage[0] = 5
    assert x.tolist() == [5, 4]
    made = torch.UntypedStorage(8, device=DEVICE)
    assert made.device == x.device and torch.empty(0, device=DEVICE).set_(made).tolist() == [0, 0]
    with pytest.raises(UnsupportedError, match="byteswap"):
        storage.byteswap(torch.int16)
    with pytest.raises(UnsupportedError, match="a number of bytes"):
        torch.UntypedStorage([1, 2], device=DEVICE)


def test_nothing_keeps_what_is_gone() -> None:
    gc.collect()
    before = len(pending.alive())
    for _ in range(50):
        x = torch.ones(1000, device=DEVICE)
        y = x[10:].view(-1)
        y += 1
    del x, y
    assert len(pending.alive()) == before
    torch.hologram.synchronize()
    assert not pending.alive()


OUT_OF_RANGE: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "index": lambda x, i: x[i],
    "assignment": lambda x, i: x.__setitem__(i, 0),
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x),
    "gather": lambda x, i: x.gather(1, i.reshape(2, 1)),
    "scatter_": lambda x, i: x.scatter_(1, i.reshape(2, 1), 0),
    "index_select": lambda x, i: x.index_select(0, i),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_indices_out_of_range_are_errors(name: str) -> None:
    x, i = counted((2, 3)), torch.tensor([0, 3], device=DEVICE)
    with pytest.raises(IndexError, match="out of range"):
        OUT_OF_RANGE[name](x, i)
    computed = i + 1 - 1
    found = OUT_OF_RANGE[name](x, computed)  # noqa: F841  kept, so that it is computed
    with pytest.raises(IndexError, match="out of range"):
        torch.hologram.synchronize()
    torch.hologram.synchronize()


# --- the device and its module ---------------------------------------------------------------------------------------


def test_the_device() -> None:
    assert hologram_torch.is_available() and hologram_torch.device() == torch.device("hologram", 0)
    assert torch.hologram.device_count() == 1 and torch.hologram.current_device() == 0 and torch.hologram.is_available()
    assert torch.ones(1).hologram().is_hologram and torch.nn.Linear(2, 2).hologram().weight.device.type == DEVICE
    assert hologram_torch.get_backend() in hologram_torch.list_available_backends()
    hologram_torch.set_backend("auto")
    with torch.device(DEVICE):
        assert torch.ones(1).device.type == DEVICE
    with pytest.raises(DeviceError, match="index 0"):
        hologram_torch.device(1)
    with pytest.raises(DeviceError, match="'abacus'"):
        hologram_torch.set_backend("abacus")


def test_seeds() -> None:
    torch.hologram.manual_seed(4)
    state = torch.hologram.get_rng_state()
    first = torch.randn(3, device=DEVICE)
    torch.hologram.set_rng_state(state)
    same(torch.randn(3, device=DEVICE), first.cpu())
    with torch.random.fork_rng(device_type=DEVICE):
        torch.hologram.seed()
    assert torch.hologram.initial_seed() == torch.initial_seed()


# --- what is refused -------------------------------------------------------------------------------------------------


def test_ops_that_are_not_there_are_named() -> None:
    library = torch.library.Library("hologram_tests_device", "DEF")
    library.define("nowhere(Tensor x) -> Tensor")
    with pytest.raises(UnsupportedError, match="hologram_tests_device::nowhere"):
        torch.ops.hologram_tests_device.nowhere(torch.eye(3, device=DEVICE))
    with pytest.raises(NotImplementedError, match="SparsePrivateUse1|SparseHologram|Sparsehologram"):
        torch.empty(2, 2, layout=torch.sparse_coo, device=DEVICE)


def test_misuse() -> None:
    x = counted((2, 3))
    with pytest.raises(DeviceError, match="aten::add.Tensor: a tensor on cpu"):
        x + torch.ones(2, 3)
    with pytest.raises(DTypeError, match=r"add_.Tensor: a result of torch.float32"):
        torch.ones(2, dtype=torch.int64, device=DEVICE).add_(1.5)
    with pytest.raises(ShapeError, match=r"add_.Tensor: a result of shape \[2, 3\]"):
        x[0].add_(x)
    with pytest.raises(ShapeError):
        x + torch.ones(4, device=DEVICE)
    with pytest.raises(ArgumentError, match="clone"):
        x[0].expand(2, 3).add_(1)
    with pytest.raises(IndexError):
        x[5]
    with pytest.raises(TypeError, match="numpy"):
        x.numpy()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


# --- where torch's values are its own ---------------------------------------------------------------------------------


def test_lazy_conjugates_and_negatives_are_read_and_written():
    z = torch.tensor([1 + 2j, 3 - 4j])
    there = z.to("hologram")
    for f in (torch.conj, lambda x: x.conj() + 0, lambda x: x.conj().imag, lambda x: x.conj().clone(), lambda x: x[1:].conj().resolve_conj()):
        assert torch.equal(f(there).cpu(), f(z))
    there.conj().imag.fill_(5)
    there.conj()[:1].copy_(torch.tensor([7 + 1j]))
    assert there.tolist() == [7 - 1j, 3 - 5j]
    assert torch.equal(torch.conj_physical(there).cpu(), there.cpu().conj())


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32])
@pytest.mark.parametrize("op", [torch.sum, torch.prod, lambda x, dtype: x.cumsum(0, dtype=dtype), lambda x, dtype: x.cumprod(0, dtype=dtype)])
def test_sums_of_small_integers_wrap_in_the_type_asked_for(op, dtype):
    x = torch.tensor([100, 100, 7], dtype=dtype)
    wanted = op(x, dtype=dtype)
    found = op(x.to("hologram"), dtype=dtype).cpu()
    assert found.dtype is dtype
    assert torch.equal(found, wanted)


def test_addbmm_of_small_integers_keeps_their_type():
    a = torch.full((2, 3, 3), 9, dtype=torch.uint8)
    same(torch.addbmm(*[t.to(DEVICE) for t in (a[0], a, a)]), torch.addbmm(a[0], a, a))


@pytest.mark.parametrize("scatter", [
    lambda x, k, v: x.scatter(0, k, v), lambda x, k, v: x.scatter(0, k, v, reduce="add"), lambda x, k, v: x.scatter(0, k, 2.0, reduce="multiply"),
    lambda x, k, v: x.scatter_reduce(0, k, v, "amax"), lambda x, k, v: x.scatter_add_(0, k, v),
])  # fmt: skip
def test_places_out_of_range_are_refused_by_every_scatter(scatter):
    x, k, v = (t.to(DEVICE) for t in (torch.zeros(5), torch.tensor([9]), torch.ones(1)))
    with pytest.raises(IndexOutOfRange, match="axis of 5"):
        scatter(x, k, v)


def test_special_values_are_those_of_torch():
    x = torch.tensor([-math.inf, math.inf, math.nan, -2.0, 4.0])
    for f in (torch.sign, lambda v: v**0.5, lambda v: v**-0.5, lambda v: torch.sign(v > 0)):
        torch.testing.assert_close(f(x.to("hologram")).cpu(), f(x), equal_nan=True)
    assert torch.arange(0, -8.000001, -4.0, dtype=torch.int64, device="hologram").tolist() == [0, -4]
    with pytest.raises(DTypeError, match="avg_pool2d: takes floats"):
        torch.nn.functional.avg_pool2d(torch.ones(1, 1, 4, 4, dtype=torch.int64, device="hologram"), 2)


@pytest.mark.parametrize("index", [-1, 2**63, 1.5, "x", b"", None, 1])
def test_indices_of_other_devices_are_refused(index: Any) -> None:
    if index is None:
        assert hologram_torch.device(index) == torch.device(DEVICE, 0)
        return
    with pytest.raises(DeviceError, match="hologram"):
        hologram_torch.device(index)
