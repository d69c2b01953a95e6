"""Every public function on lazy Tensors at sizes that change: nothing is compiled after the third, and results have the bits of programs by value.

The fuzzer draws the arguments. :data:`BY_VALUE` says which functions have programs of their own for sizes, and why.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.errors import HologramError
from hologram.settings import override
from hologram.trace import lazy
from tests.fuzz.catalogue import catalogue
from tests.fuzz.program import Program, function_of
from tests.fuzz.resized import programs, resized
from tests.fuzz.worlds import Hologram

FACTORS = (2, 3, 4, 5)  # by which sizes grow, about
FIRST = 3  # of these, which may compile

BY_VALUE: dict[str, str] = {
    **{f"numpy.{name}": "searches of as many steps as sizes have bits" for name in ("digitize", "flatnonzero", "interp", "nonzero", "searchsorted")},
    **dict.fromkeys(("numpy.trace", "linalg.trace"), "the step of a slice"),
    **{f"nn.{name}": "windows" for name in ("adaptive_avg_pool1d", "adaptive_avg_pool3d", "conv1d", "conv2d", "conv3d")},
    **{f"nn.conv_transpose{n}d": "windows" for n in (1, 2, 3)},
    "numpy.cumprod": "products of complex numbers",
    "linalg.qr": "rows beside the square of a wide matrix",
    "nn.dot_product_attention": "an order of sums for some sizes",
    **{f"special.{name}": "choices of products by counters" for name in ("expi", "exp1", "binom", "comb", "poch", "pdtr", "pdtrc", "chdtri")},
    **{f"special.{name}": "choices of products by counters" for name in ("gammainccinv", "gammaincinv")},
    "random.dirichlet": "two parts of a key",
}


@pytest.fixture(autouse=True)
def compiled_at_once() -> Iterator[None]:
    """Nothing runs op by op, and what earlier processes noted plays no part."""
    with override(op_by_op=False, cache=False), np.errstate(all="ignore"):
        yield


def _run(p: Program, by: int) -> list[np.ndarray]:
    return [np.asarray(x) for x in hg.tree.leaves(function_of(p, Hologram())(*map(hg.tensor, resized(p, by).arrays())))]


def _found(name: str, compilations: list[Any]) -> tuple[Program, list[np.ndarray]] | None:
    """A program of which all sizes are taken, and what it gives for the last; what this compiled behind the first of them is in ``compilations``."""
    for program in itertools.islice(programs(name), 3):
        lazy.clear()
        try:
            for by in FACTORS[:FIRST]:
                _run(program, by)
            compilations.clear()
            return program, [_run(program, by) for by in FACTORS[FIRST:]][-1]
        except HologramError:
            continue  # the other arguments do not fit these sizes
    return None


@pytest.mark.costly(12)
@pytest.mark.parametrize("name", catalogue())
def test_new_sizes_compile_nothing(name: str, compilations: list[Any]) -> None:
    found = _found(name, compilations)
    if found is None:
        return
    program, last = found
    assert bool(compilations) is (name in BY_VALUE), f"{len(compilations)} programs for new sizes"
    lazy.clear()
    for got, want in zip(last, _run(program, FACTORS[-1]), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        assert got.tobytes() == want.tobytes() or np.array_equal(got, want, equal_nan=want.dtype.kind in "fc")
