"""Compiled code that gives its arguments new values: optimisers, buffers, views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn, optim

import hologram_torch

# of torch's own, while Dynamo traces an optimiser
pytestmark = pytest.mark.filterwarnings("ignore:Profiler record function", "ignore:.*torch.jit.script_method.* is deprecated:DeprecationWarning")

Optimiser = Callable[[Any], optim.Optimizer]
OPTIMISERS: dict[str, Optimiser] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "SGD, Nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1, foreach=True),
    "Adam": lambda p: optim.Adam(p, lr=0.01, foreach=True, amsgrad=True),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01),
    "AdamW, rate in a tensor": lambda p: optim.AdamW(p, lr=torch.tensor(0.01)),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, centered=True, momentum=0.9, foreach=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.01, foreach=True),
    "Adamax": lambda p: optim.Adamax(p, lr=0.01, foreach=True),
    "NAdam": lambda p: optim.NAdam(p, lr=0.01, foreach=True),
    "RAdam": lambda p: optim.RAdam(p, lr=0.01, foreach=True),
    "Rprop": lambda p: optim.Rprop(p, lr=0.01, foreach=True),
}
QUICK = ("SGD, Nesterov", "Adam", "AdamW, rate in a tensor")


def trained(make: Optimiser, compiled: bool) -> list[torch.Tensor]:
    """Parameters after three steps with given gradients."""
    generator = torch.Generator().manual_seed(3)
    parameters = [torch.randn(shape, generator=generator).requires_grad_() for shape in ((5, 4), (5,), (3, 5))]
    optimiser = make(parameters)
    step: Any = torch.compile(optimiser.step, backend="hologram") if compiled else optimiser.step
    for _ in range(3):
        for p in parameters:
            p.grad = torch.randn(p.shape, generator=generator)
        step()
    return [p.detach() for p in parameters]


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimiser(name: str, everything: bool) -> None:
    if name not in QUICK and not everything:
        pytest.skip("one of the optimisers that --all runs")
    torch._dynamo.reset()
    torch.testing.assert_close(trained(OPTIMISERS[name], True), trained(OPTIMISERS[name], False), rtol=1e-5, atol=1e-7)


def test_a_step_is_one_call_that_writes_to_the_parameters() -> None:
    p = torch.ones(6, 5, requires_grad=True)
    p.grad = torch.ones(6, 5)
    optimiser = optim.AdamW([p], lr=0.1)
    explained = hologram_torch.explain(optimiser.step)()
    assert [(x.segments, len(x.fallbacks)) for x in explained.programs] == [(1, 0)]
    assert p.detach().unique().numel() == 1 and p[0, 0] < 1


def double_and_keep(x: torch.Tensor) -> torch.Tensor:
    old = x.clone()
    x.mul_(2)
    return old


def double_and_view(x: torch.Tensor) -> torch.Tensor:
    part = x[1:]
    x.mul_(2)
    return part


def double_twice(x: torch.Tensor) -> torch.Tensor:
    x.mul_(2)
    y = x + 1
    x.mul_(2)
    return y


def reverse(x: torch.Tensor) -> torch.Tensor:
    """Each new value depends on an old one that lies elsewhere."""
    x.copy_(x.flip(0))
    return x


def transpose(x: torch.Tensor) -> torch.Tensor:
    x.copy_(x.t() + 1)
    return x.sum()


def with_torch(x: torch.Tensor) -> torch.Tensor:
    """PyTorch computes with the old value after Hologram has computed the new one."""
    new = x * 2
    distances = torch.cdist(x, x)
    x.copy_(new)
    return distances


@pytest.mark.crossed
@pytest.mark.parametrize("function", [double_and_keep, double_and_view, double_twice, reverse, transpose, with_torch])
@pytest.mark.parametrize("strides", [(4, 1), (1, 4), (8, 2)])
def test_assigned_arguments(function: Callable[..., Any], strides: tuple[int, int]) -> None:
    torch._dynamo.reset()
    outcomes = []
    for f in (function, torch.compile(function, backend="hologram")):
        memory = torch.arange(32.0)
        version = memory._version
        outcomes.append((f(memory.as_strided((4, 4), strides)), memory))
        assert memory._version > version
    torch.testing.assert_close(outcomes[1], outcomes[0])


def test_arguments_that_share_memory() -> None:
    torch._dynamo.reset()

    def shift(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * y

    outcomes = []
    for f in (shift, torch.compile(shift, backend="hologram")):
        memory = torch.arange(9.0)
        outcomes.append((f(memory[:8], memory[1:]), memory))
    torch.testing.assert_close(outcomes[1], outcomes[0])


def test_running_statistics() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    x = torch.randn(16, 4)
    layers = [nn.BatchNorm1d(4), nn.BatchNorm1d(4)]
    for layer, f in zip(layers, (layers[0], torch.compile(layers[1], backend="hologram")), strict=True):
        for _ in range(2):
            f(x).square().sum().backward()
        assert layer.num_batches_tracked == 2
    torch.testing.assert_close(dict(layers[1].named_buffers()), dict(layers[0].named_buffers()))
    torch.testing.assert_close(layers[1].weight.grad, layers[0].weight.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("order", [1, 2, float("inf")])
def test_norms_of_lists(order: float) -> None:
    torch._dynamo.reset()
    tensors = [torch.linspace(-1, 1, 6), torch.eye(2)]
    for options in ({}, {"dtype": torch.float64}):
        fast = torch.compile(lambda x, options=options: torch._foreach_norm(x, order, **options), backend="hologram")
        torch.testing.assert_close(list(fast(tensors)), list(torch._foreach_norm(tensors, order, **options)))
