"""device="hologram": torch.linalg and torch.fft, forward and backward, beside the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import linalg

import hologram_torch
from hologram.errors import DTypeError
from tests.support.torch.linalg_cases import CASES, matrices, run

DEVICE = hologram_torch.device()
DTYPES = (torch.float64, torch.complex128, torch.float32)


@pytest.mark.costly(3)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_cpu(name: str) -> None:
    for dtype in DTYPES:
        x = matrices(dtype)
        tolerance = {"rtol": 2e-3, "atol": 2e-3} if dtype is torch.float32 else {"rtol": 1e-8, "atol": 1e-8}
        wanted, moved = run(CASES[name], x), x.to(DEVICE)
        for _ in range(2):
            torch.testing.assert_close(run(CASES[name], moved), wanted, **tolerance)


def test_matrices_that_do_not_fit_raise_as_on_the_cpu() -> None:
    singular = torch.tensor([[1.0, 2.0], [2.0, 4.0]], device=DEVICE)
    for f in (linalg.inv, linalg.cholesky, lambda a: linalg.solve(a, a)):
        with pytest.raises(linalg.LinAlgError, match="singular|positive-definite"):
            f(singular - 5 * torch.eye(2, device=DEVICE) if f is linalg.cholesky else singular)
    assert linalg.inv_ex(singular)[1].item() == 2
    assert linalg.det(singular).item() == 0
    assert linalg.inv(torch.zeros(2, 0, 0, device=DEVICE)).shape == (2, 0, 0)


def test_out_variants_and_types() -> None:
    a = torch.tensor([[2.0, 0.0], [0.0, 4.0]], device=DEVICE)
    out = torch.empty(2, 2, device=DEVICE)
    assert linalg.solve_triangular(a, a, upper=True, out=out) is out
    assert out.tolist() == [[1, 0], [0, 1]]
    with pytest.raises((DTypeError, RuntimeError), match="[Hh]alf|float16"):
        linalg.inv(a.half())
