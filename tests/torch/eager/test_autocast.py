"""``torch.autocast("hologram")`` beside torch's autocast on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import hologram_torch

DEVICE = hologram_torch.device()
ROWS = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(1))

CASES: dict[str, Callable[[torch.device], Tensor]] = {
    "conv2d": lambda d: F.conv2d(IMAGES.to(d), torch.ones(3, 2, 3, 3, device=d)),
    "matmul": lambda d: ROWS.to(d) @ ROWS.to(d).T,
    "float64": lambda d: ROWS.double().to(d) @ ROWS.double().to(d).T,
    "einsum": lambda d: torch.einsum("ij,kj->ik", ROWS.to(d), ROWS.to(d)),
    "attention": lambda d: F.scaled_dot_product_attention(*[ROWS[None, None].to(d)] * 3),
    "softmax": lambda d: F.softmax(ROWS.to(d).bfloat16(), -1),
    "layer_norm": lambda d: F.layer_norm(ROWS.to(d).bfloat16(), (8,)),
    "sum": lambda d: ROWS.to(d).bfloat16().sum(),
    "prod": lambda d: ROWS.to(d).bfloat16().prod(),
    "cdist": lambda d: torch.cdist(ROWS.to(d).bfloat16(), ROWS.to(d).bfloat16()),
    "cross_entropy": lambda d: F.cross_entropy(ROWS.to(d).bfloat16(), torch.arange(3, device=d)),
    "binary_cross_entropy_with_logits": lambda d: F.binary_cross_entropy_with_logits(ROWS.to(d).bfloat16(), torch.ones(3, 8, device=d)),
    "stack": lambda d: torch.stack([ROWS.to(d), ROWS.to(d).bfloat16()]),
    "inv": lambda d: torch.linalg.inv(torch.eye(3, device=d)),
}


@pytest.mark.parametrize("name", CASES)
def test_types_are_those_of_the_cpu(name: str) -> None:
    results = []
    for device in (torch.device("cpu"), DEVICE):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            results.append(CASES[name](device).cpu())
    torch.testing.assert_close(results[1], results[0], rtol=2e-2, atol=2e-2)


def test_a_training_step() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    losses = []
    for device in (torch.device("cpu"), DEVICE):
        model = model.to(device)
        model.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            y = model(ROWS.to(device))
            loss = F.mse_loss(y, torch.zeros(3, 4, device=device))
            with torch.autocast(device.type, enabled=False):
                assert model(ROWS.to(device)).dtype is torch.float32
        assert (y.dtype, loss.dtype) == (torch.bfloat16, torch.float32)
        loss.backward()
        losses.append([loss.detach().cpu(), *[p.grad.cpu().clone() for p in model.parameters() if p.grad is not None]])  # which move with it
    torch.testing.assert_close(losses[1], losses[0], rtol=5e-2, atol=1e-2)


def test_types_that_are_not_there() -> None:
    with pytest.warns(UserWarning, match="bfloat16"), torch.autocast("hologram", dtype=torch.float64):
        assert (ROWS.to(DEVICE) @ ROWS.to(DEVICE).T).dtype is torch.float32


def test_recurrent_cells() -> None:
    for cell in (nn.GRUCell(8, 8), nn.LSTMCell(8, 8), nn.RNNCell(8, 8)):
        found = []
        for device in (torch.device("cpu"), DEVICE):
            x = ROWS.to(device).requires_grad_()
            given = cell.to(device)(x, (x, x) if isinstance(cell, nn.LSTMCell) else x)
            y = given[0] if isinstance(given, tuple) else given
            found.append([y.detach().cpu(), torch.autograd.grad(y.sum(), x)[0].cpu()])
        torch.testing.assert_close(found[1], found[0])
