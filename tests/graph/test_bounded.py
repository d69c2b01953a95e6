"""The compiler ends, for any graph, in time about linear in its size; and says which pass does not."""

from __future__ import annotations

import ast
import inspect
import itertools
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import graph as package
from hologram import nn
from hologram.backends.llvm.toolchain import target
from hologram.errors import PassLimitError
from hologram.graph.blocking.score_regions import products
from hologram.graph.bounded import Worklist, rounds
from hologram.graph.legalize.convolutions import unroll_reduction
from hologram.graph.pass_manager import MAX_ROUNDS, Context, Pass, Repeat, run_passes
from hologram.graph.pipeline import canonicalise, compile_to_plan
from hologram.graph.schedule.tiles import GpuTileConfig
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node, const_attrs
from hologram.ir.op import TABLE
from hologram.ir.symbolic import prod
from hologram.ir.traversal import topological
from hologram.settings import override
from hologram.support.precision import GUARANTEES
from tests.support.limits import within

SECONDS = 20  # that no graph here takes, by far


def compiled(graph: Graph, precision: str, device: bool = False) -> None:
    """Through all passes, to kernels."""
    tile = GpuTileConfig(64, 64, None) if device else target.host().tile
    with within(SECONDS):
        _ = compile_to_plan(canonicalise(graph, precision), precision, tile, hold=2**20).kernels


# --- the helper ------------------------------------------------------------------------------------------------------


def test_a_walk_comes_to_each_thing_once_and_takes_the_last_first() -> None:
    found = Worklist("walk", [0])
    order = []
    for n in found:
        order.append(n)
        found.add([2 * n + 1, 2 * n + 2, n - 1] if 0 <= n < 3 else [])
    assert order == [0, -1, 2, 6, 5, 1, 4, 3] and found.seen == set(order)


def test_a_walk_and_rounds_without_end_name_their_pass() -> None:
    endless = Worklist("fuse", [0], most=100)
    with pytest.raises(PassLimitError, match="the pass fuse walks without end"):
        for n in endless:
            endless.add([n + 1])
    with pytest.raises(PassLimitError, match="the pass merge_scans runs without end: something changes after 7 rounds"):
        assert [*rounds("merge_scans", 7)]
    assert next(iter(rounds("one", 1))) == 0


def test_passes_that_undo_one_another_are_refused_where_passes_are_verified() -> None:
    turns = []
    other = Repeat((Pass("there", lambda n, context: turns.append(n) or n + 1), Pass("back", lambda n, context: n - 1)))
    with pytest.raises(PassLimitError, match="there and back undo one another"):
        run_passes(0, [other], Context("exact"))
    with override(verify=False):
        turns.clear()
        assert run_passes(0, [other], Context("exact")) == 0 and len(turns) == MAX_ROUNDS


def test_no_pass_loops_for_ever_by_itself() -> None:
    for path in Path(package.__path__[0]).rglob("*.py"):
        for n in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(n, ast.While) and isinstance(n.test, ast.Constant)), f"{path}:{n.lineno}: use bounded.rounds"


# --- movement back and forth -----------------------------------------------------------------------------------------

SHAPES: list[tuple[int, ...]] = [(), (1,), (1, 1), (3,), (1, 3), (3, 1), (2, 3), (3, 2), (6,), (2, 1, 3), (0,), (2, 2), (64, 3), (192,), (64, 1, 3)]


class Movements:
    """Graphs that consist of movement, of ops of which prepared graphs leave nothing or less, and of elementwise ops between. All may be results."""

    def __init__(self, seed: int) -> None:
        self.rng, self.build = random.Random(seed), Builder()
        self.inputs = [self.make("input", attrs=(i, self.rng.choice(SHAPES), "float32", None)) for i in range(2)]
        self.pool = list(self.inputs)

    def make(self, name: str, *inputs: Node, attrs: tuple[Any, ...] = ()) -> Node:
        return self.build(TABLE[name], inputs, attrs)

    def step(self) -> None:
        x = self.rng.choice(self.pool[-3:])
        steps = [self.reshape, self.reshape, self.spread, self.part, self.elementwise, self.elementwise, self.nothing, self.reduce]
        self.pool.append(self.rng.choice(steps)(x))

    def reshape(self, x: Node) -> Node:
        return self.make("reshape", x, attrs=(self.rng.choice([s for s in [x.shape, *SHAPES] if prod(s) == x.size]),))

    def spread(self, x: Node) -> Node:
        shape = self.rng.choice([s for s in SHAPES if len(s) >= x.ndim])
        dims = tuple(sorted(self.rng.sample(range(len(shape)), x.ndim)))
        fits = all(n in (1, shape[d]) for n, d in zip(x.shape, dims, strict=True))
        return self.make("broadcast", x, attrs=(shape, dims)) if fits else self.make("transpose", x, attrs=(tuple(reversed(range(x.ndim))),))

    def part(self, x: Node) -> Node:
        starts = [self.rng.randrange(max(n, 1)) for n in x.shape]
        ends = [(i, self.rng.choice([min(i + 1, n), n])) for i, n in zip(starts, x.shape, strict=True)]
        return self.make("slice", x, attrs=(tuple(a for a, _ in ends), tuple(b for _, b in ends), (1,) * x.ndim))

    def elementwise(self, x: Node) -> Node:
        others = [y for y in self.pool if y.shape in ((), x.shape)]
        return self.make(self.rng.choice(["add", "mul", "max"]), x, self.rng.choice(others))

    def reduce(self, x: Node) -> Node:
        axes = tuple(a for a in range(x.ndim) if self.rng.random() < 0.5)
        return self.make("reduce_sum", x, attrs=(axes,))

    def nothing(self, x: Node) -> Node:
        """An op that changes nothing: a scatter of no updates, a sort or scan of one element, a pad of none."""
        if not x.ndim:
            return x
        axis = self.rng.randrange(x.ndim)
        match self.rng.choice(["scatter_set", "scatter_add", "sort", "cumsum", "pad", "concatenate"]):
            case "sort":
                return self.make("sort", x, attrs=(axis, False))
            case "cumsum":
                return self.make("cumsum", x, attrs=(axis, self.rng.random() < 0.5))
            case "pad":
                return self.make("pad", x, self.make("const", attrs=const_attrs(1, x.dtype)), attrs=((0,) * x.ndim, (0,) * x.ndim))
            case "concatenate":
                return self.make("concatenate", x, attrs=(axis,))
            case scatter:
                at = self.make("iota", attrs=((0,), 0, "int64"))
                shape = (0, *x.shape[:axis], 1, *x.shape[axis + 1 :])
                none = self.make("broadcast", self.make("const", attrs=const_attrs(1, x.dtype)), attrs=(shape, ()))
                return self.make(scatter, x, none, at, attrs=((axis,), 0))

    def finish(self) -> Graph:
        made = self.pool[len(self.inputs) :]
        return Graph(self.inputs, [x for x in made if self.rng.random() < 0.5] or made[-1:])


@pytest.mark.parametrize("precision", GUARANTEES)
def test_movement_back_and_forth_ends(precision: str, everything: bool) -> None:
    count = 10_000 if everything else 500
    for seed in range(GUARANTEES.index(precision) * count, (GUARANTEES.index(precision) + 1) * count):
        grown = Movements(seed)
        for _ in range(3 + seed % 8):
            grown.step()
        graph = grown.finish()
        try:
            compiled(graph, precision, device=seed % 2 == 0)
        except Exception as e:
            e.add_note(f"seed {seed}:\n{graph}")
            raise


UNITS: list[tuple[int, ...]] = [(), (1,), (1, 1), (2, 2), (2, 1), (1, 2, 1), (2, 2, 1), (2, 1, 2), (3, 2, 1)]


def forms(b: Movements, shape: tuple[int, ...], index: int) -> list[Node]:
    """An argument of ``shape``, one of each choice of its axes that is broadcast to it, and a scalar."""
    chosen = [dims for k in range(len(shape) + 1) for dims in itertools.combinations(range(len(shape)), k)]
    arguments = {dims: b.make("input", attrs=(index, tuple(shape[d] for d in dims), "float32", None)) for dims in chosen}
    return [*(x if len(dims) == len(shape) else b.make("broadcast", x, attrs=(shape, dims)) for dims, x in arguments.items()), arguments[()]]


def moves(b: Movements, x: Node) -> list[Node]:
    """What moves ``x``."""
    reshaped = [b.make("reshape", x, attrs=(s,)) for s in {*UNITS, (x.size,)} if prod(s) == x.size and s != x.shape]
    if not x.ndim:
        return reshaped
    first = b.make("slice", x, attrs=((0,) * x.ndim, (1, *x.shape[1:]), (1,) * x.ndim))
    return [
        *reshaped,
        first,
        b.make("transpose", x, attrs=(tuple(reversed(range(x.ndim))),)),
        b.make("broadcast", x, attrs=((2, *x.shape), (*range(1, x.ndim + 1),))),
    ]


@pytest.mark.parametrize("shape", UNITS, ids=str)
def test_rules_about_movement_do_not_undo_one_another(shape: tuple[int, ...]) -> None:
    """A movement of an op on inputs of every form, and of another op on that."""
    b = Movements(0)
    for x, y in itertools.product(forms(b, shape, 0), forms(b, shape, 1)):
        for moved in moves(b, b.make("max", x, y)):
            inputs = [n if n.op.name == "input" else n.inputs[0] for n in (x, y)]
            canonicalise(Graph(inputs, [moved]), "exact")
            canonicalise(Graph(inputs, [b.make("max", b.make("neg", moved), moved)]), "exact")


# --- values with many readers, and deep ones -------------------------------------------------------------------------

Pair = Callable[[Any, Any], Any]
LINKS: dict[str, Pair] = {  # what is next made of the last two: as many ways from the first to the last as the depth's Fibonacci number
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "where": lambda a, b: hnp.where(a > b, a, b),
    "roll": lambda a, b: a + hnp.roll(b, 1, -1),
    "transpose": lambda a, b: a - b.T,
    "reshape": lambda a, b: a * b.reshape(-1)[::-1].reshape(b.shape),
    "pieces": lambda a, b: hnp.concatenate([a[:3], b[3:]]),
    "rows": lambda a, b: a - b.sum(-1, keepdims=True),
    "gather": lambda a, b: a + b[a[0].astype("int32") % 8],
}
ENDS: dict[str, Pair] = {
    "value": lambda a, b: a,
    "sum": lambda a, b: a.sum(-1),
    "columns": lambda a, b: a.sum(0),
    "column of one": lambda a, b: a.reshape(8, 8, 1).sum(1),
    "product": lambda a, b: (a * b).sum(-1),
    "matrix product": lambda a, b: a @ b,
    "window": lambda a, b: nn.avg_pool2d(a[None, None], (2, 2)),
    "softmax": lambda a, b: nn.softmax(a) @ b,
    "scan": lambda a, b: hnp.cumsum(a, -1),
    "scatter": lambda a, b: a.at[b[0].astype("int32") % 8].add(b),
    "sort": lambda a, b: hnp.sort(a),
}
DEPTH = 40


def chain(link: Pair, end: Pair, depth: int) -> Graph:
    def f(a: Any, b: Any) -> Any:
        for _ in range(depth):
            a, b = link(a, b), a
        return end(a, b)

    square = np.ones((8, 8), np.float32)
    return hg.make_graph(f)(square, square)


@pytest.mark.crossed
@pytest.mark.parametrize("link", ["add", "mul"])
@pytest.mark.parametrize("end", ENDS)
def test_deep_values_with_many_readers_are_walked_once_and_without_recursion(link: str, end: str) -> None:
    graph, before = chain(LINKS[link], ENDS[end], 120), sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        compiled(graph, "fast")
        compiled(graph, "fast", device=True)
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("link", [name for name in LINKS if name not in ("add", "mul")])
def test_values_with_many_readers_are_walked_once(link: str, everything: bool) -> None:
    for end in ENDS.values() if everything else [ENDS["sum"]]:
        for precision in ("exact", "fast"):
            compiled(chain(LINKS[link], end, DEPTH), precision)
            compiled(chain(LINKS[link], end, DEPTH), precision, device=True)


SHIFTS: dict[str, Callable[[Any, int], Any]] = {
    "pieces": lambda a, k: hnp.concatenate([a[:, :k], a[:, k:] * 0.5 + a[:, :-k]], 1),
    "roll": lambda a, k: a * 0.5 + hnp.roll(a, k, 1),
    "pad": lambda a, k: a * 0.5 + hnp.pad(a, ((0, 0), (k, 0)))[:, :-k],
}


@pytest.mark.parametrize("shift", SHIFTS)
def test_values_much_larger_than_their_sources_are_walked_once(shift: str) -> None:
    """Large ones are computed again rather than kept, but not again and again: each reads the one before at two places, twice as far apart."""

    def f(x: Any) -> Any:
        a = x[:, None] * x
        for i in range(12):
            a = SHIFTS[shift](a, 2**i)
        return hnp.sin(a)

    compiled(hg.make_graph(f)(np.ones(2100, np.float32)), "fast")


def test_sums_of_shared_products_are_walked_once() -> None:
    """What only large programs come to: the terms of a region, and sums that are written out."""
    (added,), (multiplied,) = (chain(LINKS[link], ENDS["value"], 120).outputs for link in ("add", "mul"))
    b = Builder()
    terms = b(TABLE["add"], (b(TABLE["mul"], (added, added)), b(TABLE["mul"], (multiplied, added))))
    for _ in range(120):
        terms = b(TABLE["add"], (terms, b(TABLE["add"], (terms, terms))))
    with within(SECONDS):
        assert len(products(b(TABLE["reduce_sum"], (terms,), ((1,),)))) == 2
        out = unroll_reduction(b, TABLE["max"], multiplied, (1,))
    assert out.shape == (8,) and len(topological([out])) < 120 * 50
