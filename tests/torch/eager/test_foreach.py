"""device="hologram": torch's ops on lists of tensors, and lazy conjugates, beside the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import hologram_torch
from hologram.errors import ArgumentError

DEVICE = hologram_torch.device()


LISTS: dict[str, Callable[[list[torch.Tensor], list[torch.Tensor]], Any]] = {
    "add": lambda x, y: torch._foreach_add(x, y, alpha=0.5),
    "add_": lambda x, y: torch._foreach_add_(x, y, alpha=-0.5),
    "mul_": lambda x, y: torch._foreach_mul_(x, 0.25),
    "div_": lambda x, y: torch._foreach_div_(x, [2.0, 3.0, 4.0]),
    "lerp_": lambda x, y: torch._foreach_lerp_(x, y, 0.3),
    "lerp to the end": lambda x, y: torch._foreach_lerp(x, y, 0.7),
    "addcmul_": lambda x, y: torch._foreach_addcmul_(x, y, y, 0.1),
    "addcdiv_": lambda x, y: torch._foreach_addcdiv_(x, y, y, [0.1, 0.2, 1.0]),
    "sqrt": lambda x, y: torch._foreach_sqrt(torch._foreach_abs(x)),
    "pow": lambda x, y: torch._foreach_pow(x, 2),
    "maximum_": lambda x, y: torch._foreach_maximum_(x, y),
    "clamp_min_": lambda x, y: torch._foreach_clamp_min_(x, 0.1),
    "copy_": lambda x, y: torch._foreach_copy_(x, [t.cpu() for t in y]),
    "norm": lambda x, y: torch._foreach_norm(x, 2),
    "the same tensor twice": lambda x, y: torch._foreach_add_([x[0], x[0]], 1),
    "overlapping views": lambda x, y: torch._foreach_mul_([x[0][:1], x[0]], [2.0, 3.0]),
    "what was just written": lambda x, y: torch._foreach_add_([x[0], y[0]], [y[0], x[0]]),
    "complex": lambda x, y: torch._foreach_mul(x, [2.0, 1j, 3.0]),
}


@pytest.mark.parametrize("name", LISTS)
def test_ops_on_lists_are_those_on_each_tensor(name):
    """Views among them; three times, since what comes again is recorded from a template."""
    for _ in range(3):
        results = []
        for device in ("cpu", DEVICE):
            torch.manual_seed(0)
            x = [torch.randn(2, 3).to(device), torch.randn(3, 4).to(device).T, torch.randn(()).to(device)]
            y = [torch.randn(t.shape).to(device) for t in x]
            before = sum(t._version for t in x)
            made = LISTS[name](x, y)
            assert made is not None or sum(t._version for t in x) > before
            results.append([t.cpu() for t in (*x, *y, *(made or ()))])
        torch.testing.assert_close(results[1], results[0])


def test_a_list_of_numbers_has_one_for_each_tensor():
    with pytest.raises(ArgumentError, match="_foreach_add_.ScalarList: takes a number for each of 2 tensors, not 1"):
        torch._foreach_add_([torch.ones(2, device=DEVICE), torch.ones(3, device=DEVICE)], [1.0])


def test_lazy_conjugates_and_negatives_are_read_as_what_they_stand_for():
    z = torch.randn(3, dtype=torch.complex64).to(DEVICE)
    x = torch.randn(3).to(DEVICE)
    assert torch.equal((z.conj() * 2).cpu(), z.cpu().conj() * 2)
    assert torch.equal((torch._neg_view(x) + 1).cpu(), 1 - x.cpu())
    wanted = z.cpu()
    z.conj().add_(1j)
    wanted.conj().add_(1j)
    assert torch.equal(z.cpu(), wanted)
