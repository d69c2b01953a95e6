"""``torch.compile`` for tensors on a CUDA device, on a CUDA without a GPU (``cuda_stand_in.py``): beside eager mode on the CPU."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from cuda_stand_in import CUDA, PromptApi, StandIn
from needs import needs_compilers
from torch import nn

import hologram as hg
from hologram.backends.cuda import device as cuda_device
from hologram.backends.cuda.device import Device
from hologram_torch import cuda as bridge
from hologram_torch.compile.backend import make_backend
from hologram_torch.compile.report import Explanation, recorder

pytestmark = needs_compilers


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """One device that is not there. Tensors in compiled graphs are on it, but for those that ``on_host`` picks."""
    api = PromptApi()
    device = Device(api, 0)  # type: ignore[arg-type]
    monkeypatch.setattr(cuda_device, "found", lambda: ([device], None))
    stand_in = StandIn(api)
    monkeypatch.setattr(bridge, "device_of", lambda x: CUDA)
    monkeypatch.setattr(bridge, "empty_on", lambda device: stand_in.empty)
    monkeypatch.setattr(bridge, "raw_stream", lambda device: lambda: api.stream)
    monkeypatch.setattr(bridge, "is_capturing", lambda: api.capturing_outside)
    monkeypatch.setattr(bridge, "sent", stand_in.send)
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield stand_in
    torch._dynamo.reset()
    hg.clear_caches()
    gc.collect()


def compiled(f: Any, found: Explanation | None = None, **options: Any) -> Any:
    return torch.compile(f, backend=make_backend(recorder(found if found is not None else Explanation())), **options)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(24, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 5))


def test_a_graph_is_one_program_on_the_device(there: StandIn) -> None:
    found = Explanation()
    m, x = mlp(), torch.randn(7, 24)
    with torch.no_grad():
        want = m(x)
        fast, given = compiled(there.module(m), found), there.tensor(x)
        for _ in range(4):  # the second call is captured, the others are replayed
            there.api.counts.clear()
            y = fast(given)
            torch.testing.assert_close(y, want, rtol=1e-4, atol=1e-5)
    assert there.api.holds(y.data_ptr())
    assert there.api.counts["graphs"] == 1 and there.api.counts["launches"] == 0
    (program,) = found.programs
    assert program.devices == ("cuda:0",) and program.segments == 1 and not program.fallbacks
