"""Pytrees."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple

import pytest

from hologram.errors import TreeError
from hologram.trace import tree

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Layer:
    weight: int
    bias: int
    name: str = "layer"


tree.register(Layer, meta_fields=("name",))


class Pair:
    def __init__(self, a: object, b: object) -> None:
        self.a, self.b = a, b


tree.register(Pair, lambda p: ([p.a, p.b], None), lambda data, children: Pair(*children))


@pytest.mark.parametrize(
    "value",
    [1, None, (), [], {}, (1, 2), [1, (2, None)], {"b": 1, "a": [2, 3]}, Point(1, (2,)), OrderedDict([("z", 1), ("a", 2)]), Layer(1, 2, "first")],
    ids=str,
)
def test_round_trip(value: object) -> None:
    leaves, treedef = tree.flatten(value)
    back = tree.unflatten(treedef, leaves)
    assert back == value and type(back) is type(value)
    assert treedef == tree.structure(back) and hash(treedef) == hash(tree.structure(back))


def test_dict_leaves_come_in_the_order_of_keys() -> None:
    assert tree.leaves({"b": 1, "a": 2, "c": (3, 4)}) == [2, 1, 3, 4]
    assert tree.leaves(OrderedDict([("b", 1), ("a", 2)])) == [1, 2]


def test_none_is_structure() -> None:
    assert tree.leaves([None, 1, None]) == [1]
    assert tree.structure([None, 1]) != tree.structure([1, None])


def test_structure_tells_containers_apart() -> None:
    forms = [(1, 2), [1, 2], {"x": 1, "y": 2}, Point(1, 2), OrderedDict(x=1, y=2), Layer(1, 2, "a"), Layer(1, 2, "b"), {"x": 1, "z": 2}]
    assert len({tree.structure(f) for f in forms}) == len(forms)


def test_map() -> None:
    assert tree.map(lambda a, b: a + b, {"u": 1, "v": (2, 3)}, {"u": 10, "v": (20, 30)}) == {"u": 11, "v": (22, 33)}
    assert tree.map(lambda x: len(x), ["ab", ("c",)], is_leaf=lambda x: isinstance(x, tuple)) == [2, 1]
    pair = tree.map(lambda x: x * 2, Pair(1, 2))
    assert (pair.a, pair.b) == (2, 4)


def test_paths() -> None:
    value = {"w": [1, Layer(2, 3)], "p": Point(4, 5)}
    assert [p for p, _ in tree.paths(value, "x")] == ["x['p'].x", "x['p'].y", "x['w'][0]", "x['w'][1].weight", "x['w'][1].bias"]


def test_repr() -> None:
    assert repr(tree.structure({"a": (1,), "b": [None, 2]})) == "{'a': (*,), 'b': [None, *]}"


def test_errors() -> None:
    with pytest.raises(TreeError, match="structures differ"):
        tree.map(lambda a, b: a, (1, 2), [1, 2])
    with pytest.raises(TreeError, match="1 leaves for a structure of 2"):
        tree.unflatten(tree.structure((1, 2)), [1])
    with pytest.raises(TreeError, match="keys that sort"):
        tree.flatten({1: 0, "a": 0})
    with pytest.raises(TreeError, match="registered already"):
        tree.register(Pair, lambda p: ([], None), lambda d, c: None)
    with pytest.raises(TreeError, match="no dataclass"):
        tree.register(type("Plain", (), {}))
