"""Models of many kinds through ``torch.compile(backend="hologram")``, in training and inference, beside eager mode: results, gradients, buffers, and
what is left to PyTorch. ``--all`` runs every model in every mode, without it a seeded sample runs."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from hologram_torch.compile.backend import make_backend
from hologram_torch.compile.report import Explanation, recorder
from tests.support.torch.models import MODELS

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's ops warn of their own deprecations

MODES = ("training", "evaluation", "inference")
CASES = [(name, mode) for name in MODELS for mode in MODES]
SAMPLED = 5
TESTS = {"aten._linalg_check_errors.default", "aten._assert_async.msg"}  # they raise or do nothing
BY_TORCH = {
    "ctc": {"aten._ctc_loss.Tensor", "aten._ctc_loss_backward.Tensor"},
    "constrained_weights": {"aten.linalg_matrix_exp.default", "aten.copy_.default"},
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        chosen = CASES if metafunc.config.getoption("--all") else random.Random(0).sample(CASES, SAMPLED)
        metafunc.parametrize("case", chosen, ids="-".join)


def run(call: Any, model: nn.Module, args: tuple[Any, ...]) -> list[Tensor]:
    """Results, gradients in parameters and arguments where they are asked for, and buffers."""
    args = tuple(a.clone().requires_grad_() if isinstance(a, Tensor) and a.is_floating_point() else a for a in args)
    results = [x for x in tree_leaves(call(*args)) if isinstance(x, Tensor)]
    wanted = [x for x in (*model.parameters(), *args) if isinstance(x, Tensor) and x.requires_grad]
    smooth = [x for x in results if x.requires_grad]
    torch.manual_seed(1)
    gradients = torch.autograd.grad(smooth, wanted, [torch.randn_like(x) for x in smooth], allow_unused=True) if smooth else ()
    present = [torch.zeros_like(x) if g is None else g for x, g in zip(wanted, gradients, strict=bool(smooth))]
    return [x.detach() for x in (*results, *present, *[b.clone() for b in model.buffers()])]


def test_models(case: tuple[str, str]) -> None:
    name, mode = case
    torch.manual_seed(0)
    model, args = MODELS[name]()
    model.train(mode == "training")
    twin, told = copy.deepcopy(model), Explanation()
    torch._dynamo.reset()
    with torch.set_grad_enabled(mode != "inference"):
        wanted = run(twin, twin, args)
        found = run(torch.compile(model, backend=make_backend(recorder(told)), dynamic=False), model, args)
    torch.testing.assert_close(found, wanted, rtol=2e-4, atol=5e-5, equal_nan=True)
    by_torch = {op for op in told.fallbacks if "getitem" not in op}
    assert told.programs and by_torch <= TESTS | BY_TORCH.get(name, set()), str(told)
