"""Tensors of PyTorch on a CUDA device through ``hologram_torch``: values, gradients, streams, memory."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import hologram_torch  # noqa: E402
from hologram.backends.cuda import device as cuda_device  # noqa: E402
from hologram_torch import functional, interop, nn  # noqa: E402

DEVICES, REASON = cuda_device.found()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not DEVICES, reason=f"Hologram has no CUDA device: {REASON}"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch has no CUDA device"),
]
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.bool, torch.complex64]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_values_of_every_type(dtype: torch.dtype) -> None:
    x = torch.arange(48, device="cuda").reshape(6, 8).to(dtype)
    f = hologram_torch.wrap(lambda a: a[::-1])
    assert torch.equal(f(x), x.flip(0)) and torch.equal(f(x.mT), x.mT.flip(0))
    assert f(x[:0]).shape == (0, 8)


def test_a_model_trains_as_on_the_cpu() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 10)).double()
    losses = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(1)
        here = torch.nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10)).double()
        here.load_state_dict(model.state_dict())
        here, x, y = here.to(device), torch.randn(32, 64).double().to(device), torch.randint(10, (32,)).to(device)
        optimiser = torch.optim.AdamW(here.parameters(), 1e-2)
        for _ in range(5):
            optimiser.zero_grad()
            loss = functional.cross_entropy(here(x), y)
            loss.backward()
            optimiser.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)


def test_work_goes_to_the_current_stream() -> None:
    f, x = hologram_torch.wrap(lambda a: a * 2 + 1), torch.zeros(1 << 22, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(20):
            x = f(x)
        y = x.sum()
    stream.synchronize()
    assert y.item() == (2**20 - 1) * float(1 << 22)


def test_calls_neither_copy_nor_wait() -> None:
    f, x = hologram_torch.wrap(lambda a: a + 1), torch.ones(1 << 20, device="cuda")
    for _ in range(4):
        f(x)
    DEVICES[0].counts.clear()
    y = f(x)
    assert not any(name.startswith("copies") for name in DEVICES[0].counts)
    assert torch.equal(y, x + 1)


def test_memory_outlives_whoever_lets_go_first() -> None:
    t = interop.from_torch(torch.ones(1000, device="cuda")) * 3
    back = interop.to_torch(t)
    del t
    torch.cuda.empty_cache()
    assert back.device.type == "cuda" and back.sum().item() == 3000


def test_gradients_of_the_second_order() -> None:
    x = torch.randn(6, device="cuda", dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(functional.gelu, (x,)) and torch.autograd.gradgradcheck(functional.gelu, (x,))
