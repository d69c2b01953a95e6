"""Functions of torch.linalg and torch.fft, and what they give with their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fft, linalg


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


def run(f: Callable[[torch.Tensor], Any], x: torch.Tensor) -> list[torch.Tensor]:
    """What ``f`` gives, and the gradient of the sum of its squares."""
    x = x.detach().requires_grad_()
    found = f(x)
    results = [found] if isinstance(found, torch.Tensor) else list(found)
    smooth = [t.abs().square().sum() for t in results if t.requires_grad]
    gradient = torch.autograd.grad(sum(smooth), x) if smooth else ()
    return [t.detach().cpu() for t in (*results, *gradient)]


def matrices(dtype: torch.dtype) -> torch.Tensor:
    """A stack of three well-conditioned matrices (3, 4, 4)."""
    return torch.randn(3, 4, 4, dtype=dtype, generator=torch.Generator().manual_seed(0)) + 2 * torch.eye(4, dtype=dtype)
