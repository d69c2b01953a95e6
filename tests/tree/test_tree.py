"""``hologram.tree`` and ``hologram.tree_util``: paths, folds, registered classes; every name against JAX where that is installed."""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, defaultdict, namedtuple
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import tree_util as tu
from hologram.errors import TreeError

Point = namedtuple("Point", "x y")

leaves = st.integers(-9, 9) | st.none()
trees = st.recursive(
    leaves,
    lambda t: st.lists(t, max_size=3) | st.tuples(t, t) | st.dictionaries(st.sampled_from("abcd"), t, max_size=3) | st.builds(Point, t, t),
    max_leaves=12,
)


@given(trees)
def test_paths_lead_to_the_leaves(t: Any) -> None:
    pairs, structure = hg.tree.flatten_with_path(t)
    assert structure == hg.tree.structure(t) and [x for _, x in pairs] == hg.tree.leaves(t)
    assert [hg.tree.keystr(path) for path, _ in pairs] == [path for path, _ in hg.tree.paths(t)]
    for path, leaf in pairs:
        assert eval("t" + hg.tree.keystr(path), {"t": t}) == leaf
    seen: list[Any] = []
    again = hg.tree.map_with_path(lambda path, x, y: seen.append((path, x, y)) or x, t, t)
    assert again == t and seen == [(path, x, x) for path, x in pairs]


@given(trees)
def test_against_jax(t: Any) -> None:
    jax = pytest.importorskip("jax")
    theirs, ours = jax.tree_util, tu
    assert [(ours.keystr(p), x) for p, x in ours.tree_leaves_with_path(t)] == [(theirs.keystr(p), x) for p, x in theirs.tree_leaves_with_path(t)]
    for simple, separator in ((True, "/"), (False, ".")):
        written = [[u.keystr(p, simple=simple, separator=separator) for p, _ in u.tree_leaves_with_path(t)] for u in (ours, theirs)]
        assert written[0] == written[1]
    assert ours.tree_all(t) == theirs.tree_all(t)
    assert ours.tree_reduce(lambda a, b: 2 * a + b, t, 5) == theirs.tree_reduce(lambda a, b: 2 * a + b, t, 5)
    prefix = [0, {"a": 1}]
    assert hg.tree.broadcast(prefix, [t, {"a": t}]) == theirs.tree_broadcast(prefix, [t, {"a": t}])
    stop = lambda x: isinstance(x, list)  # noqa: E731
    assert ours.tree_leaves(t, is_leaf=stop) == theirs.tree_leaves(t, is_leaf=stop)
    assert ours.tree_structure(t, is_leaf=stop).num_leaves == theirs.tree_structure(t, is_leaf=stop).num_leaves
    assert ours.all_leaves([t]) == theirs.all_leaves([t])


def test_every_name_of_jax_is_there() -> None:
    for name in ("tree", "tree_util"):
        jax = pytest.importorskip("jax")
        theirs = {n for n in dir(getattr(jax, name)) if not n.startswith("_")}
        assert theirs - set(import_module(f"hologram.{name}").__all__) <= {"KeyEntry", "KeyPath", "default_registry"}  # types alone


def test_the_others_of_a_map_may_go_deeper() -> None:
    assert hg.tree.map(lambda a, b: (a, b), {"x": 1}, {"x": [2, 3]}) == {"x": (1, [2, 3])}
    for other in ({"y": 2}, [2], {"x": 1, "y": 2}, 5):
        with pytest.raises(TreeError, match="structures differ"):
            hg.tree.map(lambda a, b: a, {"x": 1}, other)


def test_transposition() -> None:
    outer, inner = hg.tree.structure((0, 0, 0)), hg.tree.structure({"a": 0, "b": [0]})
    found = hg.tree.transpose(outer, inner, tuple({"a": i, "b": [10 * i]} for i in range(3)))
    assert found == {"a": (0, 1, 2), "b": [(0, 10, 20)]}
    assert hg.tree.transpose(outer, None, ((1, 2), (3, 4), (5, 6))) == ((1, 3, 5), (2, 4, 6))
    assert hg.tree.transpose(hg.tree.structure(()), inner, ()) == {"a": (), "b": [()]}
    with pytest.raises(TreeError):
        hg.tree.transpose(outer, inner, (1, 2, 3))


def test_folds_of_nothing() -> None:
    assert hg.tree.reduce_associative(lambda a, b: a + b, list("abcde")) == "abcde"
    assert hg.tree.reduce_associative(lambda a, b: a + b, [], identity=7) == 7
    for fold in (hg.tree.reduce, hg.tree.reduce_associative):
        with pytest.raises(TreeError, match="without leaves"):
            fold(lambda a, b: a, [])


def test_classes_pass_through_transforms() -> None:
    @tu.register_pytree_node_class
    class Gaussian:
        def __init__(self, mean: Any, scale: Any) -> None:
            self.mean, self.scale = mean, scale

        def tree_flatten(self) -> Any:
            return (self.mean, self.scale), None

        @classmethod
        def tree_unflatten(cls, data: Any, children: Any) -> Gaussian:
            return cls(*children)

    @tu.register_dataclass
    @dataclasses.dataclass
    class State:
        position: Any
        steps: int = hg.tree.static(default=2)

    g = Gaussian(hnp.asarray(1.0), hnp.asarray(2.0))
    slope = hg.jit(hg.grad(lambda g: g.mean * g.scale**2))(g)
    assert (float(slope.mean), float(slope.scale)) == (4.0, 4.0)
    moved = hg.jit(lambda s: dataclasses.replace(s, position=s.position * s.steps))(State(hnp.arange(3.0), steps=5))
    assert moved.steps == 5 and moved.position.tolist() == [0, 5, 10]
    assert [tu.keystr(p) for p, _ in tu.tree_leaves_with_path(moved)] == [".position"]
    with pytest.raises(TreeError, match="registered already"):
        tu.register_pytree_node_class(Gaussian)
    with pytest.raises(TreeError, match="has the fields"):
        tu.register_dataclass(dataclasses.make_dataclass("Two", ["a", "b"]), data_fields=["a"], meta_fields=[])
    with pytest.raises(TreeError, match="no dataclass"):
        tu.register_dataclass(int)


def test_partial() -> None:
    f = tu.Partial(lambda a, x, *, b: a * x + b, np.float32(3), b=hnp.asarray(1.0))
    assert len(tu.tree_leaves(f)) == 2
    slope = hg.jit(hg.grad(lambda f, x: f(x)))(f, 2.0)
    assert isinstance(slope, tu.Partial) and float(slope.args[0]) == 2 and float(slope.keywords["b"]) == 1
    assert tu.tree_structure(tu.Partial(hnp.sin)) != tu.tree_structure(tu.Partial(hnp.cos))


def test_a_partial_keeps_the_arguments_of_a_plain_partial_as_data() -> None:
    power = functools.partial(lambda n, a, x: a * x**n, 3)
    f, again = tu.Partial(power, 2.0), tu.Partial(power, 5.0)
    assert f.args == (2.0,) and f(2.0) == 16.0 and f.func == power and hash(f.func) == hash(again.func)
    assert tu.tree_structure(f) == tu.tree_structure(again) and tu.tree_leaves(f) == [2.0]
    assert tu.tree_leaves(tu.tree_map(lambda x: x + 1, f)) == [3.0] and tu.tree_map(lambda x: x + 1, f)(1.0) == 3.0
    assert float(hg.jit(hg.grad(lambda f, x: f(x)))(f, 2.0).args[0]) == 8.0
    assert tu.tree_leaves(tu.Partial(tu.Partial(pow, 2), 3)) == [2, 3]


def test_a_field_may_say_that_it_is_not_static() -> None:
    made = hg.tree.static(metadata={"static": False, "unit": "m"})
    assert dict(made.metadata) == {"static": False, "unit": "m"} and dict(hg.tree.static().metadata) == {"static": True}


def test_structures_of_structures() -> None:
    t = {"a": [1, 2], "b": OrderedDict(z=3)}
    structure = tu.tree_structure(t)
    assert structure.unflatten([1, 2, 3]) == t and structure.flatten_up_to(t) == [1, 2, 3]
    assert tu.treedef_children(structure) == [tu.tree_structure([0, 0]), tu.tree_structure(OrderedDict(z=0))]
    assert tu.treedef_tuple(tu.treedef_children(structure)) == tu.tree_structure(([0, 0], OrderedDict(z=0)))
    with pytest.raises(TreeError, match="leaf"):
        tu.flatten_one_level(3)
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(TreeError, match="contain itself"):
        hg.tree.flatten_with_path(loop)


def test_classes_that_name_their_attributes() -> None:
    class Scaled:
        def __init__(self, by: float, x: object) -> None:
            self.by, self.x = by, x

    with pytest.raises(TreeError, match="give data_fields and meta_fields"):
        hg.tree_util.register_dataclass(Scaled, data_fields=["x"])
    assert hg.tree_util.register_dataclass(Scaled, data_fields=["x"], meta_fields=["by"]) is Scaled
    leaves, structure = hg.tree.flatten(Scaled(2.0, [1, 2]))
    assert leaves == [1, 2]
    made = hg.tree.unflatten(structure, [3, 4])
    assert (made.by, made.x) == (2.0, [3, 4])
    assert [str(path[0]) for path, _ in hg.tree.leaves_with_path(made)] == [".x", ".x"]
    double = hg.jit(lambda s: hg.tree.map(lambda v: v * s.by, s))
    for _ in range(3):
        assert [float(v) for v in double(made).x] == [6.0, 8.0]
    assert [float(v) for v in double(Scaled(3.0, [3, 4])).x] == [9.0, 12.0]


def test_defaultdicts_are_dicts_that_keep_their_factory() -> None:
    x = defaultdict(list, {"b": [hnp.ones(2)], "a": [hnp.zeros(2), 1.0]})
    assert [str(path) for path, _ in hg.tree.paths(x)] == ["['a'][0]", "['a'][1]", "['b'][0]"]
    y = hg.jit(lambda x: hg.tree.map(lambda v: v + 1, x))(x)
    assert type(y) is defaultdict and y["new"] == []
    assert [float(np.sum(v)) for v in hg.tree.leaves(y)] == [2.0, 2.0, 4.0]
    assert hg.grad(lambda x: (x["a"] ** 2).sum())(defaultdict(float, a=hnp.ones(2)))["a"].tolist() == [2.0, 2.0]
    assert hg.tree.structure(x) != hg.tree.structure(defaultdict(None, x)) != hg.tree.structure(dict(x))
    with pytest.raises(TreeError, match="a defaultdict in a pytree needs keys that sort"):
        hg.tree.leaves(defaultdict(int, {1: 2, "a": 3}))
