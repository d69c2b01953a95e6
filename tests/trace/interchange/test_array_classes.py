"""Subclasses of NumPy's arrays that mean more than their elements: an error wherever that would be lost."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, HologramError
from tests.support.optable import seeded
from tests.support.public_functions import FUNCTIONS

# They ask about types alone, take bytes, do not look at the argument, or hand it to the user's function.
NO_VALUES = {
    "argpartition", "finfo", "frombuffer", "iinfo", "iscomplexobj", "isrealobj", "isscalar", "iterable", "partition", "piecewise", "printoptions",
    "promote_types", "result_type",
}  # fmt: skip
FILES = {"load", "save", "savez", "fromfile"}
MATRIX, VECTOR, INDICES = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 4.0]]), np.array([0.25, 0.5, 0.75]), np.array([0, 2, 1])
ARGUMENTS: list[Any] = [
    MATRIX, VECTOR, INDICES, np.array([True, False, True]), np.ones((1, 1, 4, 4), np.float32), 2, 1, 0, (3,), [VECTOR, VECTOR], (MATRIX, MATRIX),
]  # fmt: skip


def _masked(x: np.ndarray) -> Any:
    return np.ma.masked_array(x, mask=np.arange(x.size).reshape(x.shape) == 0)


def _with_masks(x: Any) -> Any:
    """``x`` with a masked array for an array; None where it has none."""
    if isinstance(x, np.ndarray):
        return _masked(x)
    return type(x)([_masked(x[0]), *x[1:]]) if isinstance(x, (list, tuple)) and isinstance(x[0], np.ndarray) else None


@pytest.mark.parametrize("f", [f for f in FUNCTIONS if f.values[0].__name__ not in NO_VALUES | FILES])
def test_masked_arrays_are_refused(f: Callable[..., Any]) -> None:
    """Each array of a call that works, and of its sequences, in turn."""
    taken = [p for p in inspect.signature(f).parameters.values() if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD) and p.default is p.empty]
    rng = seeded("masked", f.__name__)
    worked = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(60):
            given = [ARGUMENTS[rng.integers(len(ARGUMENTS))] for _ in taken]
            try:
                f(*given)
            except Exception:
                continue
            for i, x in enumerate(given):
                masked = _with_masks(x)
                if masked is not None:
                    with pytest.raises(HologramError):
                        f(*given[:i], masked, *given[i + 1 :])
            worked += 1
            if worked == 3:
                return


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: x[i],
        lambda x, i: x.at[i].set(0.0),
        lambda x, i: x.__setitem__(i, 0.0),
        lambda x, i: x.__setitem__(slice(3), i),
        lambda x, i: x[:, i],
        lambda x, i: x[[[0, 1], i[:2]]],
        lambda x, i: hnp.add.at(x, i, 1.0),
        lambda x, i: hg.jit(lambda x, i: x[i])(x, i),
        lambda x, i: hg.vmap(hnp.sin)(i),
        lambda x, i: hg.grad(lambda x: hnp.sum(x))(i * 1.0),
        lambda x, i: hnp.from_dlpack(i),
    ],
)
def test_masks_are_not_lost(f: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError, match="masked arrays are not supported"):
        f(hg.tensor(MATRIX), _masked(INDICES))


def test_a_matrix_keeps_its_products() -> None:
    """Those of NumPy, or an error; conversion is explicit."""
    x = hg.tensor(MATRIX)
    with pytest.warns(PendingDeprecationWarning):
        m = np.matrix(MATRIX)
    np.testing.assert_array_equal(x * m, MATRIX @ MATRIX)
    np.testing.assert_array_equal(x + m, MATRIX + MATRIX)
    np.testing.assert_array_equal(hnp.asarray(m) * x, MATRIX * MATRIX)
    for product in (lambda: m * x, lambda: m**x):
        with pytest.raises(TypeError):
            product()
    with pytest.raises(ArgumentError, match=r"np\.matrix is not supported"):
        hg.jit(lambda x: x * x)(m)


@pytest.mark.parametrize("made", [lambda a: a.view(np.recarray), lambda a: np.rec.fromarrays([a], names="a").a, lambda a: np.array(a, subok=True)])
def test_classes_that_mean_their_elements(made: Callable[..., Any]) -> None:
    x = made(VECTOR)
    for got in (hnp.asarray(x) * 2, hg.jit(lambda x: x * 2)(x), x * hg.tensor(2.0, dtype="float64"), hg.tensor([2.0, 2, 2], dtype="float64") * x):
        np.testing.assert_array_equal(got, VECTOR * 2)
