"""``options={"freeze": True}``: graphs for inference that hold the parameters, for as long as these stay as they are."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from hologram_torch.compile.backend import make_backend
from hologram_torch.compile.frozen import MAX_CHANGES


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def frozen(f: Any, **options: Any) -> Any:
    return torch.compile(f, backend="hologram", options={"freeze": True}, **options)


def model() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 70), nn.GELU(), nn.Linear(70, 5)).eval()


X = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def test_parameters_are_held() -> None:
    found: list[Any] = []
    m = model()
    fast = torch.compile(m, backend=make_backend(lambda stage, module, writer: found.append(writer), freeze=True))
    with torch.no_grad():
        torch.testing.assert_close(fast(X), m(X), rtol=1e-4, atol=1e-5)
        fast(X)
    (writer,) = found
    (executable,) = writer.executables
    assert len(executable.execution_plan.inputs) == 1 and executable.memory_analysis().held_bytes > 0


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m[4].weight.mul_(2),
        lambda m: m.load_state_dict({k: v * 0.5 if v.is_floating_point() else v for k, v in m.state_dict().items()}),
        lambda m: setattr(m[6].weight, "data", torch.randn(5, 70)),
        lambda m: m[1].running_var.fill_(3),
        lambda m: torch.compile(lambda: m[6].bias.add_(1), backend="hologram")(),
    ],
    ids=["in place", "load_state_dict", "data", "statistics", "compiled"],
)
def test_changes_are_noticed(change: Any) -> None:
    m = model()
    fast = frozen(m)
    with torch.no_grad():
        before = fast(X)
        change(m)
        after = fast(X)
        torch.testing.assert_close(after, m(X), rtol=1e-4, atol=1e-5)
        assert not torch.allclose(before, after)


def test_parameters_that_keep_changing_are_arguments() -> None:
    found: list[Any] = []
    m = nn.Linear(8, 8)
    fast = torch.compile(m, backend=make_backend(lambda stage, module, writer: found.append(writer), freeze=True))
    x = torch.randn(3, 8)
    with torch.no_grad():
        for _ in range(MAX_CHANGES + 4):
            m.weight.mul_(1.1)
            torch.testing.assert_close(fast(x), m(x))
    assert len(found) == MAX_CHANGES + 1 and len(found[-1].executables[0].execution_plan.inputs) == 3


def test_training_takes_them_as_arguments() -> None:
    m = nn.Linear(8, 8)
    fast, x = frozen(m), torch.randn(3, 8)
    for _ in range(2):
        m.zero_grad()
        fast(x).square().sum().backward()
        torch.testing.assert_close(m.weight.grad, torch.autograd.grad(m(x).square().sum(), m.weight)[0], rtol=1e-4, atol=1e-5)
        with torch.no_grad():
            m.weight.sub_(m.weight.grad * 0.01)


def test_sizes_that_vary_and_inference_mode() -> None:
    m = model()
    fast = frozen(m, dynamic=True)
    with torch.inference_mode():
        for n in (2, 3, 2):
            x = torch.randn(n, 3, 8, 8)
            torch.testing.assert_close(fast(x), m(x), rtol=1e-4, atol=1e-5)
        made = model()  # parameters without versions
        torch.testing.assert_close(frozen(made)(X), made(X), rtol=1e-4, atol=1e-5)
        made[6].weight.mul_(2)
        torch.testing.assert_close(frozen(made)(X), made(X), rtol=1e-4, atol=1e-5)


def test_caches_are_no_constants() -> None:
    class Cache(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("rows", torch.zeros(4, 6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.rows.add_(x)
            return self.rows * 2

    m = Cache()
    fast = frozen(m)
    with torch.no_grad():
        for i in range(1, 4):
            assert torch.equal(fast(torch.ones(4, 6)), torch.full((4, 6), 2.0 * i))


def test_memory_of_old_values_is_given_back() -> None:
    m, x = nn.Linear(64, 64), torch.randn(3, 64)
    fast = frozen(m)
    with torch.no_grad():
        fast(x)
        old = StorageWeakRef(m.weight.untyped_storage())
        m.weight.data = torch.randn(64, 64)
        gc.collect()
        assert not old.expired()  # its address is what tells other values apart
        fast(x)
        gc.collect()
        assert old.expired()


@pytest.mark.parametrize("options", [{"freeze": 1}, {"precision": "none"}, {"other": True}], ids=str)
def test_options_that_make_no_sense(options: Any) -> None:
    with pytest.raises(Exception, match="ArgumentError: .*the options of this backend are precision, one of .*, and freeze"):
        torch.compile(lambda x: x + 1, backend="hologram", options=options)(X)


@pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning")  # PyTorch's own
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_steps_of_fused_optimisers_are_noticed(compiled: bool) -> None:
    m = nn.Linear(8, 8)
    fast, x = frozen(m), torch.randn(3, 8)
    optimiser = torch.optim.Adam(m.parameters(), lr=0.5, fused=True)
    step = torch.compile(optimiser.step, backend="hologram") if compiled else optimiser.step
    for _ in range(3):
        optimiser.zero_grad()
        m(x).square().sum().backward()
        step()
        with torch.no_grad():
            torch.testing.assert_close(fast(x), m(x), rtol=1e-4, atol=1e-5)
