"""Errors about traced values say which argument a value came from, what made it, and what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, TracedValueError

X = np.arange(15.0).reshape(5, 3)

SIZES: dict[str, Any] = {
    "arange": lambda n: hnp.arange(n),
    "zeros": lambda n: hnp.zeros(n),
    "ones": lambda n: hnp.ones((n, 2)),
    "empty": lambda n: hnp.empty((2, n)),
    "full": lambda n: hnp.full((n,), 7),
    "eye": lambda n: hnp.eye(n),
    "linspace": lambda n: hnp.linspace(0, 1, n),
    "reshape": lambda n: hnp.reshape(X, (n, -1)),
    "broadcast_to": lambda n: hnp.broadcast_to(1.0, (n,)),
}


@pytest.mark.parametrize("name", SIZES)
def test_traced_sizes(name: str) -> None:
    text = rf"{name}: .* cannot be the value of a traced int64\[\] Tensor \(it is the argument n\).*static_argnames.*test_origins\.py"
    with pytest.raises(TracedValueError, match=text):
        hg.jit(SIZES[name])(3)
    assert hg.jit(SIZES[name], static_argnums=0)(3) is not None
    with pytest.raises(ArgumentError):
        SIZES[name]("three")


PATHS: dict[str, Any] = {
    "flag": lambda flag, tree, *rest, option: float(flag),
    r"tree\['k'\]\[1\]": lambda flag, tree, *rest, option: float(tree["k"][1]),
    r"args\[2\]": lambda flag, tree, *rest, option: float(rest[0]),
    "option": lambda flag, tree, *rest, option: float(option),
}


@pytest.mark.parametrize("path", PATHS)
def test_arguments_are_called_as_the_user_calls_them(path: str) -> None:
    with pytest.raises(TracedValueError, match=rf"\(it is the argument {path}\)"):
        hg.jit(PATHS[path])(1.0, {"k": (2.0, 3.0)}, 4.0, option=5.0)


def test_static_arguments_are_left_out() -> None:
    with pytest.raises(TracedValueError, match=r"\(it is the argument c\)"):
        hg.jit(lambda a, b, c: float(c), static_argnums=1)(1.0, "b", 2.0)


def test_computed_values_say_what_made_them_and_of_which_arguments() -> None:
    with pytest.raises(TracedValueError, match=r"\(gt made it at test_origins\.py:\d+ of the argument a and the argument b\)"):
        hg.jit(lambda a, b, c: c if a > b else -c)(1.0, 2.0, 3.0)
    with pytest.raises(TracedValueError, match="an argument of the body of scan"):
        hg.jit(lambda x: hg.scan(lambda c, y: (float(c), y), 0.0, x))(X)
    with pytest.raises(TracedValueError, match="an example of a vmap"):
        hg.jit(hg.vmap(lambda x: x if x.sum() > 0 else -x))(X)
    with pytest.raises(TracedValueError, match="and 1 more"):
        hg.jit(lambda a, b, c, d: bool(a * b + c * d))(1, 2, 3, 4)


def test_slices_of_traced_bounds_show_the_form_that_works() -> None:
    with pytest.raises(TracedValueError, match=r"argument n\).*of 3 elements write hnp\.dynamic_slice_in_dim\(x, n, 3, axis=1\)"):
        hg.jit(lambda x, n: x[:, n : n + 3])(X, 0)
    assert hg.jit(lambda x, n: hnp.dynamic_slice_in_dim(x, n, 3, axis=1))(X, 0).shape == (5, 3)
    with pytest.raises(TracedValueError, match=r"hnp\.dynamic_update_slice_in_dim\(x, values, start, axis=0\)"):
        hg.jit(lambda x, n: x.at[2 * n : 2 * n + 2].set(0))(X, 0)
    with pytest.raises(TracedValueError, match=r"or a mask: hnp\.where"):
        hg.jit(lambda x, n: x[:n])(X, 2)


def test_einsum_names_labels_and_operands() -> None:
    cases: list[tuple[str, Any, str]] = [
        ("ij,jk->ik", (X, X), r"extents 3 and 5 meet on one index, 'j' of operand 0 of shape \[5, 3\] and operand 1 of shape \[5, 3\]"),
        ("ij,jk->il", (X, X.T), "has the index 'l' in its result, which no operand has"),
        ("ij->ii", (X,), "has the index 'i' twice in its result"),
        ("ijk,jk->i", (X, X), r"the term 'ijk' of 'ijk,jk->i' does not fit operand 0 of shape \[5, 3\]"),
    ]
    for subscripts, operands, text in cases:
        with pytest.raises(hg.errors.HologramError, match=text):
            hnp.einsum(subscripts, *operands)


def test_names_that_are_nearly_right() -> None:
    for get, name in (
        (lambda: hg.vamp, "vmap"),
        (lambda: hnp.einsm, "einsum"),
        (lambda: hg.settings.debgu, "debug"),
        (lambda: hg.settings.override(num_thread=1).__enter__(), "num_threads"),
        (lambda: hnp.ones(3, "flaot32"), "float32"),
        (lambda: hg.jit(abs, precision="exat"), "exact"),
    ):
        with pytest.raises((AttributeError, TypeError), match=f"did you mean '{name}'"):
            get()
    with pytest.raises(AttributeError) as e:
        hg.nothing_like_that  # noqa: B018
    assert "did you mean" not in str(e.value)


def test_symbolic_extents_are_no_traced_tensors() -> None:
    with pytest.raises(ArgumentError, match="pad: each of widths is an integer, not Extent"):
        hg.jit(lambda x: hnp.pad(x, [(0, x.shape[0])]), dynamic=True).lower(np.ones(3))
