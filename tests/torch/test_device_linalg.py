"""device="hologram": torch.linalg and torch.fft, forward and backward, beside the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fft, linalg

import hologram_torch
from hologram.errors import DTypeError

DEVICE = hologram_torch.device()
DTYPES = (torch.float64, torch.complex128, torch.float32)


def _hermitian(x: torch.Tensor) -> torch.Tensor:
    return x @ x.mH + torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)


CASES: dict[str, Callable[[torch.Tensor], Any]] = {
    "inv": linalg.inv,
    "det": linalg.det,
    "slogdet": linalg.slogdet,
    "solve": lambda x: linalg.solve(x, x.mT @ x),
    "solve from the right": lambda x: linalg.solve(x, x.mT, left=False),
    "solve of vectors": lambda x: linalg.solve(x, x[..., 0]),
    "lu_factor and lu_solve": lambda x: linalg.lu_solve(*linalg.lu_factor(x), x.mH),
    "adjoint lu_solve": lambda x: linalg.lu_solve(*linalg.lu_factor(x), x, adjoint=True),
    "cholesky": lambda x: linalg.cholesky(_hermitian(x)),
    "upper cholesky": lambda x: linalg.cholesky(_hermitian(x), upper=True),
    "solve_triangular": lambda x: linalg.solve_triangular(x, x.mT, upper=True),
    "solve_triangular from the right": lambda x: linalg.solve_triangular(x, x.mT, upper=False, left=False, unitriangular=True),
    "qr": lambda x: [t.abs() for t in linalg.qr(x)],
    "qr of tall matrices": lambda x: linalg.qr(x[..., :2])[1].abs(),
    "r alone": lambda x: linalg.qr(x[..., :2].detach(), mode="r")[1].abs(),
    "eigvalsh": lambda x: linalg.eigvalsh(_hermitian(x)),
    "eigh": lambda x: [t.abs() for t in linalg.eigh(_hermitian(x), UPLO="U")],
    "svd": lambda x: [t.abs() for t in linalg.svd(x[..., :2], full_matrices=False)],
    "full svd": lambda x: [t.abs() for t in linalg.svd(x[..., :2].detach(), full_matrices=True)][1],
    "svdvals": linalg.svdvals,
    "fft": lambda x: fft.fft(x, norm="ortho"),
    "ifft": lambda x: fft.ifft(x, n=7, dim=-2),
    "fft2": lambda x: fft.fft2(x, norm="forward"),
    "ifftn": lambda x: fft.ifftn(x, norm="forward"),
    "rfft": lambda x: fft.rfft(x.real),
    "rfftn": lambda x: fft.rfftn(x.real, norm="ortho", dim=(0, 2)),
    "irfft": lambda x: fft.irfft(x + 0j, n=5),
    "irfftn": lambda x: fft.irfftn(x + 0j, dim=(-1, 0), norm="forward"),
    "hfft": lambda x: fft.hfft(x + 0j),
    "ihfft": lambda x: fft.ihfft(x.real),
    "fftshift": lambda x: fft.ifftshift(fft.fftshift(x, dim=1)),
    "roll": lambda x: torch.roll(torch.roll(x, (1, -2), (0, 2)), 5),
}


def _run(f: Callable[[torch.Tensor], Any], x: torch.Tensor) -> list[torch.Tensor]:
    """What ``f`` gives, and the gradient of the sum of its squares."""
    x = x.detach().requires_grad_()
    found = f(x)
    results = [found] if isinstance(found, torch.Tensor) else list(found)
    smooth = [t.abs().square().sum() for t in results if t.requires_grad]
    gradient = torch.autograd.grad(sum(smooth), x) if smooth else ()
    return [t.detach().cpu() for t in (*results, *gradient)]


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_cpu(name: str) -> None:
    for dtype in DTYPES:
        x = torch.randn(3, 4, 4, dtype=dtype, generator=torch.Generator().manual_seed(0)) + 2 * torch.eye(4, dtype=dtype)
        tolerance = {"rtol": 2e-3, "atol": 2e-3} if dtype is torch.float32 else {"rtol": 1e-8, "atol": 1e-8}
        wanted, moved = _run(CASES[name], x), x.to(DEVICE)
        for _ in range(2):
            torch.testing.assert_close(_run(CASES[name], moved), wanted, **tolerance)


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
