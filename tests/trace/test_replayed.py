"""Replayed recordings: what a function records again without running is what it records when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.ir.leaves import leaf
from hologram.ir.node import Node
from hologram.settings import override
from hologram.trace import replayed
from hologram.trace.operators import node_of

RNG = np.random.default_rng(0)
V, W = RNG.standard_normal((2, 6))
M, N = RNG.standard_normal((2, 3, 4))
S = np.array(2.5)
AT = np.array([2, 0, 1])

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "matmul": (hnp.matmul, (M, N.T), {}),
    "matmul of vectors": (hnp.matmul, (V, W), {}),
    "matmul of one value": (hnp.matmul, (V, V), {}),
    "matmul, another type": (hnp.matmul, (M, N.T), {"preferred_element_type": "float64"}),
    "vecdot": (hnp.vecdot, (M, N), {"axis": 0}),
    "dot": (hnp.dot, (M, N.T), {}),
    "dot of a scalar": (hnp.dot, (S, V), {}),
    "inner": (hnp.inner, (M, N), {}),
    "outer": (hnp.outer, (V, W), {}),
    "tensordot": (hnp.tensordot, (M, N), {"axes": ((0, 1), (0, 1))}),
    "vdot": (hnp.vdot, (M, N), {}),
    "norm": (hg.linalg.norm, (V,), {}),
    "norm along an axis": (hg.linalg.norm, (M,), {"axis": 1, "ord": 1}),
    "norm, an infinity": (hg.linalg.norm, (V,), {"ord": np.inf}),
    "concat": (hnp.concat, ([M, N],), {"axis": 1}),
    "concat of one": (hnp.concat, ([M],), {}),
    "stack": (hnp.stack, ((M, N, M),), {}),
    "tile": (hnp.tile, (V, 2), {}),
    "repeat": (hnp.repeat, (M, 2), {"axis": 0}),
    "diff": (hnp.diff, (V,), {"n": 2}),
    "median": (hnp.median, (V,), {}),
    "quantile": (hnp.quantile, (V, 0.25), {}),
    "percentile": (hnp.percentile, (M, 30), {"axis": 0}),
    "mean": (hnp.mean, (M,), {"axis": (0, 1), "keepdims": True}),
    "var": (hnp.var, (M,), {"ddof": 1}),
    "std": (hnp.std, (M,), {"axis": -1}),
    "sum": (hnp.sum, (M,), {"axis": 1, "keepdims": True}),
    "max": (hnp.max, (M,), {"axis": (0, 1)}),
    "take": (hnp.take, (V, AT), {}),
    "indices": (lambda x, i: x[i], (M, AT), {}),
}
TYPES = ("float32", "float64", "float16", "int32", "uint8", "bool", "complex64")


def _text(x: Node, operands: list[Node]) -> Any:
    """The structure of what leads from operands to a node."""
    for i, o in enumerate(operands):
        if x is o:
            return i
    assert x.op is not leaf
    return (x.op, x.attrs, x.shape, x.dtype, *[_text(i, operands) for i in x.inputs])


def _given(x: Any, convert: Callable[[np.ndarray], Any], made: dict[int, Any]) -> Any:
    """An argument with Tensors in place of its arrays; the same Tensor for the same array."""
    if isinstance(x, list | tuple):
        return type(x)([_given(i, convert, made) for i in x])
    if not isinstance(x, np.ndarray):
        return x
    if id(x) not in made:
        made[id(x)] = convert(x)
    return made[id(x)]


def _recorded(function: Any, args: tuple[Any, ...], options: dict[str, Any], convert: Callable[[np.ndarray], Any]) -> Any:
    """The structure of the result, whether it is weak and a view, or the class of the error."""
    made: dict[int, Any] = {}
    given = [_given(x, convert, made) for x in args]
    operands = [node_of(t) for t in made.values()]
    try:
        found = function(*given, **options)
    except (hg.errors.HologramError, TypeError) as e:
        return type(e)
    return _text(node_of(found), operands), found._weak, found.shape, found.dtype


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", CASES)
def test_replays_record_what_the_function_records(name: str, dtype: str, pending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    function, args, options = CASES[name]
    seen: list[Any] = []
    monkeypatch.setattr(replayed, "_replay", lambda *a, real=replayed._replay: seen.append(a) or real(*a))

    def convert(a: np.ndarray) -> Any:
        t = hg.tensor(a.astype(a.dtype if a.dtype.kind == "i" else dtype))
        return -hnp.flip(t) if pending and a.dtype.kind != "i" and dtype != "bool" else t

    with monkeypatch.context() as m:
        m.setattr(replayed, "_add_operands", lambda *_: False)
        wanted = _recorded(function, args, options, convert)
    found = [_recorded(function, args, options, convert) for _ in range(3)]
    assert found == [wanted] * 3
    if not isinstance(wanted, type) and name not in ("concat of one", "dot of a scalar"):
        assert seen or dtype == "complex64"


@pytest.mark.parametrize("name", CASES)
def test_replays_have_the_values(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other elements than those that were there when the function ran."""
    function, args, options = CASES[name]
    for k in range(3):
        convert: Callable[[np.ndarray], Any] = lambda a, k=k: a if a.dtype.kind == "i" else a * (k + 1) - k  # noqa: E731
        given = [_given(x, convert, {}) for x in args]
        found = function(*[_given(x, hg.tensor, {}) for x in given], **options)
        with monkeypatch.context() as m:
            m.setattr(replayed, "_add_operands", lambda *_: False)
            wanted = function(*[_given(x, hg.tensor, {}) for x in given], **options)
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-12)


def test_equal_operands_are_told_from_different_ones() -> None:
    x, y = hg.tensor(V), hg.tensor(W)
    for a, b in ((x, x), (x, y), (y, y), (y, x)) * 2:
        np.testing.assert_allclose(float(hnp.dot(a, b)), np.dot(np.asarray(a), np.asarray(b)), rtol=1e-14)


def test_settings_and_static_arguments_are_told_apart() -> None:
    x = hg.tensor(np.arange(6))
    for kind in ("float32", "float64"):
        with override(default_float=kind):
            assert hnp.mean(x).dtype == kind
    y = hg.tensor(V)
    for ddof in (0, 1, True, 0.0, -0.0, 1.0, 2):
        np.testing.assert_allclose(float(hnp.var(y, ddof=ddof)), np.var(V, ddof=ddof), rtol=1e-12)


def test_views_stay_views_and_traces_trace() -> None:
    x = hg.tensor(V)
    y = hnp.concat([x])
    z = hg.tensor(W)
    for _ in range(3):
        np.testing.assert_allclose(hg.grad(lambda a: hnp.dot(a, z))(x), W)
        np.testing.assert_allclose(hg.jit(hnp.dot)(x, z), np.dot(V, W))
        np.testing.assert_allclose(hg.vmap(hnp.dot, in_axes=(0, None))(hnp.stack([x, z]), z), [np.dot(V, W), np.dot(W, W)])
        float(hnp.dot(y, z))


def test_recordings_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayed, "MAX_RECORDINGS", 4)
    for n in range(1, 30):
        assert hnp.dot(hnp.ones(n), hnp.ones(n)) == n
