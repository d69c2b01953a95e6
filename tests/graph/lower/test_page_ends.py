"""Pages of symbolic extents: loops over sums of products end where the elements do, with the bits of what fills pages up."""

from __future__ import annotations

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.lower import masks
from hologram.ir.symbolic import var
from hologram.primitives.reductions import PAGE
from hologram.settings import override
from tests.support.building import Draft, kernels
from tests.support.optable import seeded


@pytest.mark.parametrize("columns", [3, 10, 12])
def test_products_of_pages_end_where_the_elements_do(columns: int) -> None:
    d = Draft()
    n = var("n0")
    x, y = d.input(n, columns), d.input(n, 128)
    shape = (n, 128, columns)
    total = d("reduce_sum", d("mul", d.spread(x, shape, 0, 2), d.spread(y, shape, 0, 1)), (0,))
    text = "\n".join(map(str, kernels(d.schedule(total, precision="standard"))))
    assert "fused_mul" in text and f"count {PAGE} below " in text and "inside(q" not in text


@pytest.mark.parametrize("columns", [3, 10, 12])
@pytest.mark.parametrize("precision", ["standard", "exact"])
def test_bits_are_those_of_pages_that_are_filled_up(precision: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def products() -> list[np.ndarray]:
        f = hg.jit(lambda x, y: (y[:, :, None] * x[:, None, :]).sum(axis=0), precision=precision)
        found = []
        for n in (3, 4, 5, 2, 17, 64, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE + 5):
            rng = seeded(n)
            x, y = (rng.standard_normal((n, c)).astype(np.float32) for c in (columns, 128))
            x[rng.random(x.shape) < 0.3] = -0.0
            found.append(np.asarray(f(hnp.asarray(x), hnp.asarray(y))))
            np.testing.assert_allclose(found[-1], y.T.astype(np.float64) @ x, atol=1e-3)
        return found

    with override(cache=False):
        ended = products()
        monkeypatch.setattr(masks, "filled", lambda x: None)
        for a, b in zip(ended, products(), strict=True):
            np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32))
