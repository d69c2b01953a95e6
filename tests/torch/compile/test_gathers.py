"""Grids and bags in compiled graphs: every option beside eager mode, values and gradients, without PyTorch's help. ``--all`` runs all
combinations, without it a seeded sample runs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import hologram_torch  # noqa: F401  registers the device
from hologram_torch.compile.backend import make_backend
from hologram_torch.compile.report import Explanation, recorder

SAMPLED = 3  # of each kind
PADDINGS = ("zeros", "border", "reflection")
IMAGES = list(itertools.product(("bilinear", "nearest", "bicubic"), PADDINGS, (True, False)))
VOLUMES = list(itertools.product(("bilinear", "nearest"), PADDINGS, (True, False)))
BAGS = [b for b in itertools.product(("sum", "mean", "max"), (None, 1), (False, True), (False, True), (False, True)) if b[0] == "sum" or not b[3]]
KINDS = {"image": IMAGES, "volume": VOLUMES, "bag": BAGS}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for kind, cases in KINDS.items():
        if kind in metafunc.fixturenames:
            chosen = cases if metafunc.config.getoption("--all") else random.Random(0).sample(cases, SAMPLED)
            metafunc.parametrize(kind, chosen, ids=lambda case: "-".join(map(str, case)))


def values_and_gradients(f: Callable[..., torch.Tensor], args: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    given = [x.clone().requires_grad_(x.is_floating_point()) for x in args]
    result = f(*given)
    torch.manual_seed(1)
    smooth = [x for x in given if x.requires_grad]
    return [result.detach(), *torch.autograd.grad(result, smooth, torch.randn_like(result))]


def assert_as_eager(f: Callable[..., torch.Tensor], *args: torch.Tensor) -> None:
    told = Explanation()
    torch._dynamo.reset()
    found = values_and_gradients(torch.compile(f, backend=make_backend(recorder(told)), dynamic=False, fullgraph=True), args)
    torch.testing.assert_close(found, values_and_gradients(f, args), rtol=1e-4, atol=2e-5)
    assert told.programs and not told.fallbacks, str(told)


def test_images_at_the_points_of_a_grid(image):
    torch.manual_seed(0)
    grid = torch.rand(2, 4, 3, 2) * 3 - 1.5
    grid[0, 0, 0], grid[0, 0, 1] = torch.tensor([-1.0, 1.0]), torch.zeros(2)  # corners and the middle
    assert_as_eager(lambda x, g: F.grid_sample(x, g, *image), torch.randn(2, 3, 5, 4), grid)


def test_volumes_at_the_points_of_a_grid(volume):
    torch.manual_seed(0)
    assert_as_eager(lambda x, g: F.grid_sample(x, g, *volume), torch.randn(2, 2, 3, 4, 1), torch.rand(2, 3, 2, 2, 3) * 3 - 1.5)


def test_bags_of_embeddings(bag):
    mode, padding, last, weighted, by_frequency = bag
    torch.manual_seed(0)
    indices, offsets = torch.tensor([1, 2, 1, 5, 4, 3, 1, 9]), torch.tensor([0, 3, 3, 6, 8] if last else [0, 3, 3, 6])

    def f(table: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        options: dict[str, Any] = {"per_sample_weights": weights[0] if weights else None, "scale_grad_by_freq": by_frequency and mode != "max"}
        return F.embedding_bag(indices, table, offsets, mode=mode, include_last_offset=last, padding_idx=padding, **options)

    assert_as_eager(f, torch.randn(10, 4), *[torch.randn(8)] * weighted)


@pytest.mark.parametrize("at", [-1, 10])
def test_an_index_beyond_the_table_of_a_bag_raises(at):
    f = torch.compile(lambda w, i: F.embedding_bag(i, w, torch.tensor([0])), backend="hologram")
    with pytest.raises(IndexError):
        f(torch.randn(10, 4), torch.tensor([1, at]))


@pytest.mark.parametrize("offsets", [[1, 2], [0, 5], [0, 2, 1]], ids=str)
@pytest.mark.parametrize("device", ["cpu", "hologram"])
def test_offsets_of_bags_that_make_no_sense_raise(device, offsets):
    torch._dynamo.reset()
    bags = F.embedding_bag if device == "hologram" else torch.compile(F.embedding_bag, backend="hologram")
    with pytest.raises(IndexError):
        bags(torch.tensor([1, 2, 3]).to(device), torch.randn(10, 4).to(device), torch.tensor(offsets).to(device)).cpu()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_indices_beyond_the_last_offset_are_in_no_bag(mode):
    torch._dynamo.reset()
    indices, offsets, table = torch.tensor([1, 2, 3, 4]), torch.tensor([0, 1, 3]), torch.randn(6, 4)
    f = lambda w, i, o: F.embedding_bag(i, w, o, mode=mode, include_last_offset=True)  # noqa: E731
    found = values_and_gradients(lambda w: torch.compile(f, backend="hologram")(w, indices, offsets), (table,))
    torch.testing.assert_close(found, values_and_gradients(lambda w: f(w, indices[:3], offsets), (table,)))


@pytest.mark.parametrize("device", ["cpu", "hologram"])
def test_elements_for_a_mask(device):
    torch._dynamo.reset()
    f = torch.Tensor.masked_scatter if device == "hologram" else torch.compile(torch.Tensor.masked_scatter, backend="hologram", dynamic=False)
    x, source, none = (torch.arange(float(n)).to(device) for n in (3, 1, 0))
    for mask in ([False, True, False], [False, False, False]):
        set_ = torch.tensor(mask)
        assert torch.equal(f(x, set_.to(device), source).cpu(), x.cpu().masked_scatter(set_, source.cpu()))
    assert torch.equal(f(x, torch.tensor([False] * 3).to(device), none).cpu(), x.cpu())
    with pytest.raises(IndexError):
        f(x, torch.tensor([True, True, False]).to(device), source).cpu()


def test_a_place_out_of_range_raises_on_the_device():
    with pytest.raises(IndexError, match="aten::put"):
        torch.zeros(3, device="hologram").put(torch.tensor([3], device="hologram"), torch.ones(1, device="hologram"))
