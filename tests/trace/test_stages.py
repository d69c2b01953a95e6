"""What can be looked at: graphs, their text, lowered and compiled calls, explained misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import settings
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.graph import Graph
from hologram.ir.node import Builder
from hologram.ir.op import TABLE
from hologram.primitives.sorting import sort_key
from tests.support.jitting import X, Y, close


def test_reduction_counts_the_rules_that_fired() -> None:
    compiled = hg.jit(lambda a: hnp.transpose(hnp.transpose(a * 1 + 0)) * 1, precision="fast").lower(np.ones((3, 4), np.float32)).compile()
    reduction = compiled.reduction()
    assert reduction.rules["transpose-transpose"] == 1 and reduction.rules["mul-one"] == 1, reduction
    assert str(reduction).endswith("rules fired: " + ", ".join(f"{n} {k}" for n, k in sorted(reduction.rules.items(), key=lambda r: (-r[1], r[0]))))
    nothing = hg.jit(lambda a: hnp.sin(a)).lower(X).compile().reduction()
    assert not nothing.rules and "rules" not in str(nothing)
    looped = hg.jit(lambda a: hg.fori_loop(0, 3, lambda i, c: c * 1 + i, a)).lower(2.0).compile().reduction()
    assert looped.rules["mul-one"] == 1, looped
    assert "rules fired" in str(hg.explain(lambda a: a * 1 + a)(X))


def test_compiled_calls_refuse_sizes_that_their_program_does_not_hold_for() -> None:
    """Beyond those it would read out of range."""
    compiled = hg.jit(lambda a: a[4] + a[2:4], dynamic=True).lower(np.arange(8.0)).compile()
    close(compiled(np.arange(5.0)), np.array([6.0, 7.0]))
    with pytest.raises(ArgumentError, match="not n0 = 3: call the jitted function.*test_stages.py"):
        compiled(np.arange(3.0))


def test_make_graph_prints() -> None:
    text = str(hg.make_graph(lambda a, b: hnp.sum(a * b))(X, Y))
    assert text.splitlines() == [
        "graph(%0: float32[6], %1: float32[6])",
        "  %2 = mul %0 %1               float32[6]",
        "  %3 = reduce_sum %2 axes=(0)  float32[]",
        "  return %3",
    ]


def test_text_of_a_graph_tells_programs_apart() -> None:
    def texts(*functions: Any) -> set[str]:
        return {str(hg.make_graph(f)(X)) for f in functions}

    functions = (
        lambda a: a + 0.0,
        lambda a: a + -0.0,
        lambda a: a + 1e-45,
        lambda a: a + np.float32(np.nan),
        lambda a: a + np.array(0x7FC00001, np.uint32).view(np.float32)[()],
        lambda a: a.reshape(2, 3),
        lambda a: a.reshape(3, 2),
        lambda a: a[1:5],
        lambda a: a[0:4],
        lambda a: a.astype("int8"),
        lambda a: hnp.arange(6),
    )
    assert len(texts(*functions)) == len(functions)
    assert len(texts(lambda a: a + 1, lambda b: b + 1)) == 1
    b = Builder()
    keys = [b(sort_key, (b(TABLE["input"], (), (0, (6,), "uint8", None)),), (of,)) for of in ("int8", "uint8")]
    assert len({str(Graph(k.inputs, [k])) for k in keys}) == 2, "an attribute is a type, but not the result's"


def test_common_subexpressions_vanish() -> None:
    graph = hg.make_graph(lambda a: (a + 1) * (a + 1))(X)
    assert sum(n.op.name == "add" for n in graph.nodes()) == 1
    network = graph.to_networkx()
    assert network.number_of_nodes() == len(graph.nodes())


def test_lower_and_compile() -> None:
    lowered = hg.jit(lambda a, b: a - b).lower(X, Y)
    assert "sub" in lowered.as_text("trace") and "# test_stages.py:" in lowered.as_text("trace")
    compiled = lowered.compile()
    close(compiled(X, Y), X - Y)
    with pytest.raises(ArgumentError, match="another signature"):
        compiled(X[:2], Y[:2])


def test_explained_misses(capsys: pytest.CaptureFixture[str]) -> None:
    @hg.jit(static_argnames="n")
    def f(a: Any, p: Any, n: int = 1) -> Any:
        return a * n

    assert f.explain_last_miss() is None
    f(X, {"w": Y})
    assert "first call" in f.explain_last_miss()
    f(X[:2], {"w": Y})
    assert "a changed shape: [6] -> [2]" in f.explain_last_miss()
    f(X, {"w": Y.astype(np.float64)})
    assert "p['w'] changed element type: float32 -> float64" in f.explain_last_miss()
    f(X, {"w": Y}, n=2)
    assert "static n changed: '(not given)' -> 2" in f.explain_last_miss()
    f(X, {"w": Y}, n=3)
    assert "static n changed: 2 -> 3" in f.explain_last_miss()
    f(X, {"v": Y}, n=3)
    assert "p['v'] is new" in f.explain_last_miss()
    f(X, {"w": 1.0})
    assert "p['w'] changed: float64[6] -> Python float" in f.explain_last_miss()
    with settings.override(explain_misses=True):
        f(X[:1], {"w": 1.0})
    assert "a changed shape" in capsys.readouterr().err


def test_shapes_without_values() -> None:
    described = hg.ShapeDtypeStruct((10**6, 4), "float32")
    found = hg.eval_shape(lambda x, y: {"product": x @ y, "count": (x > 0).sum()}, described, np.ones((4, 2), np.float32))
    assert found == {"product": hg.ShapeDtypeStruct((10**6, 2), "float32"), "count": hg.ShapeDtypeStruct((), "int64")}
    assert hg.eval_shape(hg.grad(lambda x: hnp.sum(x)), described) == described
    with pytest.raises(ArgumentError, match="eval_shape takes a function"):
        hg.eval_shape(described)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="its extents must be integers"):
        hg.jit(lambda x: hg.eval_shape(hnp.sum, hg.ShapeDtypeStruct(x.shape, x.dtype)) and x, dynamic=True)(X)
    with pytest.raises(ShapeError, match="ShapeDtypeStruct: negative extent -1"):
        hg.ShapeDtypeStruct((2, -1), "float32")
    with pytest.raises(ArgumentError, match="ShapeDtypeStruct: an extent is an integer, not float"):
        hg.ShapeDtypeStruct((2.5,), "float32")
    with pytest.raises(DTypeError, match="'float31' does not name an element type"):
        hg.ShapeDtypeStruct((2,), "float31")


def test_lowering_takes_descriptions() -> None:
    lowered = hg.jit(lambda x: x * 2).lower(hg.ShapeDtypeStruct((3,), "float32"))
    np.testing.assert_array_equal(lowered.compile()(np.ones(3, np.float32)), np.full(3, 2, np.float32))
