"""device="hologram": ops of PyTorch's own test database, forward and backward, beside the CPU. The second and third time they are recorded from
templates. ``--all`` runs all of ``op_names.txt``, without it a seeded sample runs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

import hologram_torch

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's ops warn of their own deprecations

DEVICE = hologram_torch.device()
NAMES = (Path(__file__).parents[1] / "op_names.txt").read_text().split()
SAMPLED = 30  # ops without --all
INPUTS = 2  # of the database's sample inputs for an op
DIFFERENT = (
    """tensor_split native_batch_norm _native_batch_norm_legit""".split()
)  # sections must be on the CPU; what evaluation saves has other shapes
TOLERANCE = {"rtol": 5e-4, "atol": 2e-4}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names = [name for name in NAMES if name not in DIFFERENT]
    chosen = names if metafunc.config.getoption("--all") else random.Random(1).sample(names, SAMPLED)
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", chosen)


@pytest.fixture(scope="module")
def database() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return {f"{op.name}:{op.variant_test_name}".removesuffix(":"): op for op in op_db}


def there(x: Any) -> Any:
    return x.detach().to(DEVICE).requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x


def run(op: Any, given: Any, args: Any, options: Any) -> list[torch.Tensor]:
    """What ``op`` gives, and the gradients of its sum in its inputs, on the CPU."""
    torch.manual_seed(0)
    results = [t for t in tree_leaves(op(given, *args, **options)) if isinstance(t, torch.Tensor)]
    inputs = [t for t in tree_leaves((given, args, options)) if isinstance(t, torch.Tensor) and t.requires_grad]
    smooth = [r for r in results if r.requires_grad]
    found = torch.autograd.grad(smooth, inputs, [torch.ones_like(r) for r in smooth], allow_unused=True) if inputs and smooth else ()
    return [t.detach().cpu() for t in (*results, *[g for g in found if g is not None])]


@pytest.mark.costly(2)
def test_op(name: str, database: dict[str, Any]) -> None:
    op = database[name]
    for sample in list(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd))[:INPUTS]:
        arguments = sample.input, sample.args, sample.kwargs
        moved = tree_map(there, arguments)
        wanted = run(op, *arguments)
        for _ in range(3):
            torch.testing.assert_close(run(op, *moved), wanted, equal_nan=True, **TOLERANCE)
