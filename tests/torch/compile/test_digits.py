"""examples/torch_digits.py: the model learns, and compiled it learns what it learns in eager mode."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("sklearn", reason="the example reads scikit-learn's digits")

from examples import torch_digits  # noqa: E402

pytestmark = pytest.mark.costly(2)


def test_a_compiled_model_learns_what_the_eager_one_does():
    torch._dynamo.reset()
    learn, test = torch_digits.load()
    eager, compiled = (torch_digits.train(backend, learn, test, epochs=2) for backend in ("eager", "hologram"))
    assert compiled.accuracy > 0.5
    assert abs(compiled.accuracy - eager.accuracy) < 0.02
