"""Ops of PyTorch's own test database through ``torch.compile(backend="hologram")``, forward and backward, beside eager mode.

``op_names.txt`` lists the ops that Hologram computes without PyTorch's help, as ``name`` or ``name:variant``. ``--all`` runs every one of them in
float32 and float64, without it a seeded sample does.
"""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from hologram_torch.compile.backend import make_backend
from hologram_torch.compile.report import Explanation, recorder

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's ops warn of their own deprecations

NAMES = (Path(__file__).parents[1] / "op_names.txt").read_text().split()
CASES = [(name, dtype) for name in NAMES for dtype in (torch.float32, torch.float64)]
SAMPLED = 30  # ops without --all
INPUTS = 5  # of the database's sample inputs for an op
FORWARD = {torch.float32: {"rtol": 1e-4, "atol": 2e-5}, torch.float64: {"rtol": 1e-9, "atol": 1e-10}}
BACKWARD = {torch.float32: {"rtol": 5e-4, "atol": 2e-4}, torch.float64: {"rtol": 1e-8, "atol": 1e-9}}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        chosen = CASES if metafunc.config.getoption("--all") else random.Random(0).sample(CASES, SAMPLED)
        metafunc.parametrize("case", chosen, ids=[f"{name}-{dtype}".replace("torch.", "") for name, dtype in chosen])


@pytest.fixture(scope="module")
def database() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    return {f"{op.name}:{op.variant_test_name}".removesuffix(":"): op for op in op_db}


def test_the_list_has_names_of_the_database_once(database):
    assert len(NAMES) >= 150
    assert sorted(set(NAMES)) == sorted(NAMES)
    assert set(NAMES) <= set(database)


def tensors(x: Any) -> list[torch.Tensor]:
    if isinstance(x, torch.Tensor):
        return [x]
    return [t for v in x for t in tensors(v)] if isinstance(x, (list, tuple)) else []


def copied(x: Any) -> Any:
    """The same values, strides and all, in memory of their own: ops may write to what they are given."""
    if isinstance(x, torch.Tensor):
        return x.detach().clone().requires_grad_(x.requires_grad)
    if isinstance(x, dict):
        return {k: copied(v) for k, v in x.items()}
    return type(x)(copied(v) for v in x) if type(x) in (list, tuple) else x


class Run:
    """A call of ``f`` with a sample's arguments, and the gradients of what it gives."""

    def __init__(self, f: Any, arguments: tuple[Any, Any, Any]) -> None:
        given, args, options = arguments
        torch.manual_seed(0)
        self.results = tensors(f(given, args, options))
        self.inputs = tensors([given, args, list(options.values())])

    def gradients(self) -> list[torch.Tensor]:
        inputs = [x for x in self.inputs if x.requires_grad]
        results = [r for r in self.results if r.requires_grad]
        if not inputs or not results:
            return []
        torch.manual_seed(1)
        found = torch.autograd.grad(results, inputs, [torch.randn(r.shape, dtype=r.dtype) for r in results], allow_unused=True)
        return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


def assert_all_close(found: list[torch.Tensor], expected: list[torch.Tensor], tolerance: dict[str, float]) -> None:
    for f, e in zip(found, expected, strict=True):
        torch.testing.assert_close(f, e, equal_nan=True, **tolerance)


@pytest.mark.costly(3)
def test_op(case, database):
    name, dtype = case
    op = database[name]
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd))
    random.Random(0).shuffle(samples)
    torch._dynamo.reset()
    told = Explanation()
    eager = lambda given, args, options: op(given, *args, **options)  # noqa: E731
    compiled = torch.compile(eager, backend=make_backend(recorder(told)), dynamic=False)
    for sample in samples[:INPUTS]:
        arguments = (sample.input, sample.args, sample.kwargs)
        expected, found = Run(eager, copied(arguments)), Run(compiled, copied(arguments))
        assert_all_close(found.results, expected.results, FORWARD[dtype])
        assert_all_close(found.inputs, expected.inputs, FORWARD[dtype])  # as far as the op wrote to them
        if op.supports_autograd:
            assert_all_close(found.gradients(), expected.gradients(), BACKWARD[dtype])
    assert not told.fallbacks.keys() - {"aten.copy_.default"}, str(told)  # which gives arguments their new values
