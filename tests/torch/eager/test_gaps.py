"""device="hologram": ops that a row of its own, a CPU kernel of torch, or care for a type or a sign makes right, beside the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils import _pytree as pytree

import hologram_torch

DEVICE = hologram_torch.device()
IMAGES = torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(0))
ROWS = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
LABELS = torch.tensor([[2, 0, -1, 4, 4, 4], [-1, 1, 1, 1, 1, 1], [5, 4, 3, 2, 1, 0], [3, 3, -1, -1, -1, 0]])  # rows end at the first -1
SIGNED = torch.tensor([-0.0, 0.0, -1.0, float("nan"), 2.0])
COMPLEX = torch.randn(5, dtype=torch.complex64, generator=torch.Generator().manual_seed(2))

FUNCTIONS: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {
    **{f"interpolate {m}": (lambda x, m=m: F.interpolate(x, scale_factor=2, mode=m), IMAGES) for m in ("nearest", "bilinear", "bicubic", "area")},
    "grid_sample": (lambda x: F.grid_sample(x, torch.zeros(1, 3, 3, 2, device=x.device), align_corners=False), IMAGES),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), IMAGES),
    "hardshrink": (F.hardshrink, ROWS),
    "softshrink": (F.softshrink, ROWS),
    "multi_margin_loss": (lambda x: F.multi_margin_loss(x, torch.arange(4, device=x.device)), ROWS),
    "multilabel_margin_loss": (lambda x: F.multilabel_margin_loss(x, LABELS.to(x.device), reduction="none"), ROWS),
    "multilabel_margin_loss of all": (lambda x: F.multilabel_margin_loss(x, LABELS.to(x.device)), ROWS),
    "multilabel_margin_loss of a row": (lambda x: F.multilabel_margin_loss(x[1], LABELS[1].to(x.device), reduction="sum"), ROWS),
    "polygamma at its poles": (lambda x: torch.polygamma(2, x), torch.tensor([0.0, -0.0, -1.0, -7.0, -1e10, -2.5, 3.0, torch.nan])),
    "median": (lambda x: x.median(1), ROWS),
    "median of all": (torch.median, ROWS),
    "median beside NaN": (lambda x: torch.where(x > 1, torch.nan, x).median(0), ROWS),
    "nanmedian": (lambda x: torch.where(x > 0, torch.nan, x).nanmedian(1, keepdim=True), ROWS),
    "kthvalue": (lambda x: x.kthvalue(2, 0), ROWS),
    "mode": (lambda x: x.round().mode(1).values, ROWS),
    "histc": (lambda x: x.detach().histc(4), ROWS),
    "cdist": (lambda x: torch.cdist(x, x[:2] + 1, p=3.0), ROWS),
    "eigvals": (lambda x: torch.linalg.eigvals(x[:, :4]).abs().sort().values, ROWS),
    "lstsq": (lambda x: torch.linalg.lstsq(x.mT, torch.ones(6, 1, device=x.device)).solution, ROWS),
    "matrix_exp": (lambda x: torch.linalg.matrix_exp(x[:, :4]), ROWS),
    "put": (lambda x: x.put(torch.tensor([0, 3], device=x.device), torch.ones(2, device=x.device)), ROWS),
    "frexp": (lambda x: torch.frexp(x.detach()), ROWS),
    "complex sigmoid": (torch.sigmoid, COMPLEX),
    "complex exp2": (torch.exp2, COMPLEX),
    "complex silu": (lambda x: F.silu(x.detach()), COMPLEX),
    "complex logsumexp": (lambda x: torch.logsumexp(x, 0), COMPLEX),
    "relu": (torch.relu, SIGNED),
    "searchsorted by rows": (lambda x: torch.searchsorted(x.sort(-1)[0], x.flip(-1)[..., :2].contiguous(), right=True, out_int32=True), ROWS),
    "searchsorted with a sorter": (lambda x: torch.searchsorted(x, x.flip(-1), sorter=x.argsort(-1)), ROWS),
    "relu6": (F.relu6, SIGNED),
    "clamp": (lambda x: x.clamp(0, 1), SIGNED),
    "clamp by NaN": (lambda x: x.clamp(max=float("nan")), SIGNED),
    "clamp by tensors": (lambda x: x.clamp(min=torch.tensor([1.0, float("nan"), 0.0, 0.0, 3.0], device=x.device)), SIGNED),
}


def run(f: Callable[[Tensor], Any], x: Tensor) -> list[Tensor]:
    """What ``f`` gives, and the gradient of the sum of its sizes."""
    x = x.detach().requires_grad_()
    found = f(x)
    results = [found] if isinstance(found, Tensor) else list(found)
    smooth = [r.abs().sum() for r in results if r.requires_grad]
    return [r.detach().cpu() for r in (*results, *(torch.autograd.grad(sum(smooth), x) if smooth else ()))]


@pytest.mark.costly(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_the_cpu(name: str) -> None:
    f, x = FUNCTIONS[name]
    wanted, moved = run(f, x), x.to(DEVICE)
    for _ in range(3):
        found = run(f, moved)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)
        if x is SIGNED:
            assert found[0].signbit().tolist() == wanted[0].signbit().tolist()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.float32, torch.float64, torch.complex64], ids=str)
def test_tensors_of_numbers_have_the_type_that_is_asked_for(dtype: torch.dtype) -> None:
    makers: list[Callable[[Any], Tensor]] = [
        lambda d: torch.linspace(0, 10, 5, dtype=dtype, device=d),
        lambda d: torch.logspace(0, 2, 3, dtype=dtype, device=d),
        lambda d: torch.eye(3, 4, dtype=dtype, device=d),
        lambda d: torch.linspace(torch.tensor(1, device=d), torch.tensor(7, device=d), 4, dtype=dtype, device=d),
    ]
    for make in makers:
        for _ in range(2):
            torch.testing.assert_close(make(DEVICE).cpu(), make("cpu"))
    assert torch.kaiser_window(8, device=DEVICE).device.type == "hologram"


@pytest.mark.parametrize("ends", [(4.3, 0), (-2.7, 9.9), (0, 2**53 + 5)], ids=str)
def test_integers_between_two_ends_begin_at_truncated_ones(ends: tuple[float, float]) -> None:
    for steps in (0, 1, 2, 7, 50):
        wanted = torch.linspace(*ends, steps, dtype=torch.int64)
        first, last = (torch.tensor(x, device=DEVICE) for x in ends)
        for _ in range(2):
            assert torch.equal(torch.linspace(*ends, steps, dtype=torch.int64, device=DEVICE).cpu(), wanted)
            assert torch.equal(torch.linspace(*ends, steps, out=torch.empty(steps, dtype=torch.int64, device=DEVICE)).cpu(), wanted)
            if ends[1] < 2**53:
                assert torch.equal(torch.linspace(first, last, steps, dtype=torch.int64, device=DEVICE).cpu(), wanted)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("is_differentiated", [False, True])
def test_ops_that_write_to_other_arguments_than_the_first(training: bool, is_differentiated: bool) -> None:
    x, scale = IMAGES.detach().clone().requires_grad_(is_differentiated), torch.tensor([0.5, 2.0], requires_grad=is_differentiated)
    moved = [t.detach().to(DEVICE).requires_grad_(is_differentiated) for t in (x, scale)]
    for _ in range(3):
        found, wanted = (
            (a, b, *torch.ops.aten._native_batch_norm_legit(v, w, None, a, b, training, 0.1, 1e-5)[:1])
            for v, w, a, b in ((*moved, torch.ones(2, device=DEVICE), torch.ones(2, device=DEVICE)), (x, scale, torch.ones(2), torch.ones(2)))
        )
        torch.testing.assert_close([t.detach().cpu() for t in found], [t.detach() for t in wanted])
        assert torch.equal(moved[0].detach().cpu(), x.detach())


def test_masks_and_tensors_stretch_to_each_other() -> None:
    x, mask, source = torch.arange(3.0), ROWS[:, :3] > 0, ROWS + 10
    for _ in range(2):
        torch.testing.assert_close(x.to(DEVICE).masked_scatter(mask.to(DEVICE), source.to(DEVICE)).cpu(), x.masked_scatter(mask, source))


def test_dropout_draws_in_the_order_of_memory():
    x = torch.randn(6, 2, 5).transpose(0, 1)
    torch.manual_seed(3)
    found = torch.nn.functional.dropout(x.to("hologram"), 0.4).cpu()
    torch.manual_seed(3)
    torch.testing.assert_close(found, torch.nn.functional.dropout(x, 0.4))


TRANSFORMED: dict[str, Callable[[Tensor], Any]] = {
    "jvp": lambda x: torch.func.jvp(lambda v: torch.sin(v) * v.flip(0), (x,), (torch.ones_like(x),)),
    "jacfwd": torch.func.jacfwd(lambda v: (v.reshape(2, 2) @ v.reshape(2, 2)).softmax(-1)),
    "jacfwd of jacfwd": torch.func.jacfwd(torch.func.jacfwd(lambda v: torch.sin(v) * v.flip(0))),
    "hessian": torch.func.hessian(lambda v: torch.logsumexp(v, 0) + v.max() * v[0]),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # which torch calls where forward mode begins
@pytest.mark.parametrize("name", TRANSFORMED)
def test_forward_mode(name: str) -> None:
    """Tangents that are zero have no memory."""
    f, x = TRANSFORMED[name], ROWS[0, :4]
    for got, want in zip(pytree.tree_leaves(f(x.to(DEVICE))), pytree.tree_leaves(f(x)), strict=True):
        torch.testing.assert_close(got.cpu(), want)
