"""Ufuncs as objects: which they are, what they say of themselves, calls, copies."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError
from hologram.trace import tree

OURS = ("erf", "erfc", "rsqrt", "sigmoid")  # elementwise functions that NumPy lacks
NAMES = sorted(name for name in hnp.__all__ if isinstance(getattr(np, name, None), np.ufunc) and getattr(np, name).signature is None)
OBJECTS = {name: f for name in hnp.__all__ if isinstance(f := getattr(hnp, name), hnp.ufunc)}


def test_ufuncs_are_those_of_numpy_and_the_op_table() -> None:
    assert set(OBJECTS) - set(OURS) >= set(NAMES)
    assert not [name for name in set(OBJECTS) - set(OURS) - set(NAMES) if hasattr(np, name)]  # no function of NumPy's that is none there


@pytest.mark.parametrize("name", NAMES)
def test_facts_are_numpys(name: str) -> None:
    ours, theirs = OBJECTS[name], getattr(np, name)
    assert (ours.nin, ours.nout, ours.nargs, ours.signature) == (theirs.nin, theirs.nout, theirs.nargs, theirs.signature)
    assert ours.identity == theirs.identity and type(ours.identity) is type(theirs.identity)
    assert len(inspect.signature(ours).parameters) == ours.nin


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_have_one_name(name: str) -> None:
    f = OBJECTS[name]
    assert getattr(hnp, f.__name__) is f and f.__module__ == "hologram.numpy" and repr(f) == f"<ufunc {f.__name__!r}>"
    assert ">>>" in (f.__doc__ or "")
    for other in (copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert other is f


@pytest.mark.parametrize("name", OBJECTS)
def test_types_are_true(name: str) -> None:
    """Each row of ``types`` computes what it says; types beside these are refused."""
    f = OBJECTS[name]
    assert f.ntypes == len(f.types) > 0
    for row in f.types:
        operands, _, results = row.partition("->")
        out = tree.leaves(f(*[np.ones(2, c) for c in operands]))
        assert [x.dtype.char for x in out] == list(results)
    for c in {*"?bBhHiIlLefdFD"} - {row[0] for row in f.types}:
        with pytest.raises(DTypeError):
            f(*[np.ones(2, c)] * f.nin)


def test_ufuncs_under_transforms() -> None:
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(hg.jit(hnp.hypot)(x, 2.0), np.hypot(x, 2.0))
    np.testing.assert_allclose(hg.vmap(hnp.add, in_axes=(0, None))(x, x), x[:, None] + x)
    assert float(hg.grad(hnp.sin)(0.5)) == pytest.approx(np.cos(0.5))
    assert float(functools.reduce(hnp.multiply, [2.0, 3.0, 4.0])) == 24
    np.testing.assert_array_equal(hg.associative_scan(hnp.maximum, np.array([1, 3, 2])), [1, 3, 3])


def test_keywords_and_operands_that_are_none_are_refused() -> None:
    for call in (lambda: hnp.add(1), lambda: hnp.add(1, 2, 3), lambda: hnp.add(x1=1, x2=2), lambda: hnp.exp(x=1)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ArgumentError, match="add takes Tensors"):
        hnp.add("a", 1)
    with pytest.raises(ArgumentError, match="add takes Tensors"):
        hnp.add(hnp.ones(2), "a")


# --- outer -----------------------------------------------------------------------------------------------------------

SHAPES = st.lists(st.integers(0, 3), max_size=2).map(tuple)


@given(name=st.sampled_from(["add", "subtract", "less", "arctan2", "fmax", "logical_xor"]), a=SHAPES, b=SHAPES, d=st.sampled_from("?ifd"))
def test_outer(name: str, a: tuple[int, ...], b: tuple[int, ...], d: str) -> None:
    x, y = (np.arange(int(np.prod(s))).reshape(s).astype(d) for s in (a, b))
    if name == "subtract" and d == "?":
        return
    want = getattr(np, name).outer(x, y)
    for got in (getattr(hnp, name).outer(x, y), hg.jit(getattr(hnp, name).outer)(x, y)):
        assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
        np.testing.assert_allclose(got, want, rtol=1e-3)


def test_outer_of_python_numbers_is_weak() -> None:
    x = np.ones(3, np.float16)
    for got in (hnp.add.outer(x, 2.0), hnp.add.outer(2.0, x)):
        assert got.dtype == np.float16 and got.shape == (3,)
    quotient, rest = hnp.divmod.outer([7, 8], [2, 3])
    np.testing.assert_array_equal(quotient, [[3, 2], [4, 2]])
    np.testing.assert_array_equal(rest, [[1, 1], [0, 2]])


def test_methods_need_two_operands_and_one_result() -> None:
    calls: list[Any] = [
        lambda: hnp.sin.reduce([1.0]),
        lambda: hnp.sin.accumulate([1.0]),
        lambda: hnp.sin.reduceat([1.0], [0]),
        lambda: hnp.sin.outer([1.0], [1.0]),
        lambda: hnp.divmod.reduce([1.0]),
        lambda: hnp.frexp.at([1.0], 0),
        lambda: hnp.divmod.at([1.0], 0, 1.0),
        lambda: hnp.add.at([1.0], 0),
        lambda: hnp.negative.at([1.0], 0, 1.0),
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match=r"(sin|divmod|frexp|add|negative)\.\w+: .*test_ufunc.py"):
            call()
