"""``jit(output="numpy")``: results are arrays that the caller alone has."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.native import storage
from hologram.backends.native.module import why_not_native
from hologram.errors import ArgumentError

X = np.arange(5.0)
CLOSED_OVER = hg.tensor(np.arange(3.0))

FUNCTIONS: dict[str, Any] = {
    "computed": lambda x: x * 2,
    "scalar": lambda x: hnp.sum(x),
    "tree": lambda x: {"a": x * 2, "b": (hnp.sum(x), [x + 1])},
    "argument": lambda x: x,
    "argument twice": lambda x: (x, x),
    "equal results": lambda x: (x * 2, x * 2),
    "views of one result": lambda x: ((y := x * 3).reshape(5, 1), y, y[1:3], hnp.flip(y)),
    "constant": lambda x: (CLOSED_OVER, hnp.arange(3), hnp.zeros(4)),
    "number": lambda x: 2.5,
    "nothing": lambda x: None,
    "narrow": lambda x: hnp.astype(x, "bfloat16"),
    "empty": lambda x: x[:0],
    "complex": lambda x: x * 1j,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_arrays_of_the_callers_own(name: str) -> None:
    """Calls by Python, by native code, and ahead of time; what is written to results is seen by nobody."""
    f = FUNCTIONS[name]
    plain, made = hg.jit(f), hg.jit(f, output="numpy")
    want = [np.array(t) for t in hg.tree.leaves(plain(X))]
    x, argument = X.copy(), hg.tensor(X)
    calls = [lambda: made(x)] * 3 + [lambda: made(argument)] * 3 + [lambda: made.lower(x).compile()(x)]
    for call in calls:
        got = call()
        assert hg.tree.structure(got) == hg.tree.structure(plain(X))
        leaves = hg.tree.leaves(got)
        for g, w in zip(leaves, want, strict=True):
            assert type(g) is np.ndarray and g.flags.writeable and g.flags.c_contiguous and g.dtype == w.dtype
            np.testing.assert_array_equal(g, w)
        for i, g in enumerate(leaves):
            g[...] = -1
            for other, w in zip(leaves[i + 1 :], want[i + 1 :], strict=True):
                np.testing.assert_array_equal(other, w)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(argument, X)
    np.testing.assert_array_equal(CLOSED_OVER, [0, 1, 2])


def test_nothing_is_copied() -> None:
    if why_not_native() is not None:
        pytest.skip(f"calls go through Python: {why_not_native()}")
    double = hg.jit(lambda x: x * 2, output="numpy")
    x = np.zeros(100_000)
    double(x)
    double(x)
    gc.collect()
    before = storage.statistics()["live"]
    storage.reset_peak()
    kept = double(x)
    assert not kept.flags.owndata and 800_000 <= storage.statistics()["peak"] - before < 1_600_000
    view = kept[10:]
    del kept
    assert storage.statistics()["live"] > before  # a view keeps the memory
    del view
    assert storage.statistics()["live"] == before  # which goes back


def test_donated_memory_is_the_results() -> None:
    step = hg.jit(lambda x: x + 1, donate_argnums=0, output="numpy")
    x = hg.tensor(np.zeros(10_000))
    view = memoryview(x)
    step(x)[:] = 5.0
    assert not any(view)


def test_parts_of_other_programs_are_tensors() -> None:
    square = hg.jit(lambda x: hnp.sum(x * x), output="numpy")
    seen = []

    def outer(x: Any) -> Any:
        seen.append(type(square(x)))
        return square(x) * 2

    assert float(hg.jit(outer)(X)) == 60.0
    np.testing.assert_array_equal(hg.grad(square)(X), 2 * X)
    np.testing.assert_array_equal(hg.vmap(square)(np.ones((2, 3))), [3, 3])
    assert seen == [hg.Tensor]
    gradient = hg.jit(hg.grad(square), output="numpy")
    assert type(gradient(X)) is np.ndarray


def test_other_ways_to_call() -> None:
    double = hg.jit(np.sin, output="numpy")
    assert type(pickle.loads(pickle.dumps(double))(X)) is np.ndarray
    with hg.disable_jit():
        assert type(double(X)) is np.ndarray
    with hg.settings.override(native=False):
        assert type(hg.jit(lambda x: x + 1, output="numpy")(X)) is np.ndarray

    class Model:
        @hg.jit(output="numpy", static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return x + 1

    np.testing.assert_array_equal(Model()(X), X + 1)
    sizes = hg.jit(lambda x: x * 2, output="numpy", dynamic=True)
    for n in (3, 4, 5):
        np.testing.assert_array_equal(sizes(np.ones(n)), np.full(n, 2.0))
    with pytest.raises(ArgumentError, match="output"):
        hg.jit(lambda x: x, output="list")
