"""Exchanged sums: a row's sum of weights times products is a product with a sum that the program has anyway.

The derivative of attention wants of each query ``sum over keys of w[k] (sum over d of g[d] v[k, d])``. The forward pass has ``o[d] = sum over keys of
w[k] v[k, d]``, so it is ``sum over d of g[d] o[d]``: no pass over the keys (Dao et al. 2022, Appendix B.4). The rule sees structure, not names: a
reduction over one axis of factors of which two differ along it, one of them a product whose factor another reduction has been multiplied with.
What does not differ along the axis goes before the sum. Sums have another order than the canonical one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

from hologram.graph.library.attention.nodes import movement_source
from hologram.ir.graph import Graph
from hologram.ir.index_maps import Index, variables
from hologram.ir.node import Builder, Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr, Int, atoms, counter, substitute
from hologram.ir.traversal import post_order

MAX_FACTORS = 12
_SUMMED = "summed"  # the variable of the inner sum's axis

Factor = tuple[Node, Index]


class _Factors(NamedTuple):
    """What is multiplied, and what it is divided by, each with the element that is read; whether the whole is negated."""

    over: list[Factor]
    under: list[Factor]
    negated: bool

    def renamed(self, values: Mapping[str, Int]) -> _Factors:
        return _Factors([_renamed(f, values) for f in self.over], [_renamed(f, values) for f in self.under], self.negated)


class _Sum(NamedTuple):
    """A reduction along ``axis`` of two factors that differ along it, times the ``rest``, which does not."""

    node: Node
    axis: int
    own: tuple[Factor, Factor]
    rest: _Factors


class _Exchange(NamedTuple):
    """``sum`` is what ``rest`` makes of the sum over ``depth`` elements of ``factor`` times ``other``, with elements named as those of the terms."""

    sum: _Sum
    rest: _Factors
    depth: Int
    factor: Factor
    other: Factor


def exchange_sums(graph: Graph) -> Graph:
    """``graph`` with sums exchanged where that saves a pass; the graph itself where there are none."""
    reductions = [n for n in graph.nodes() if n.op.name == "reduce_sum" and len(n.attrs[0]) == 1 and n.dtype.is_float]
    weighted: dict[tuple[Node, Node], list[_Sum]] = {}
    for w in (w for n in reductions for w in _weighted(n)):
        weighted.setdefault((w.own[0][0], w.own[1][0]), []).append(w)
    found = {n: e for n in reductions if (e := _exchange(n, weighted)) is not None} if len(reductions) > 2 else {}
    if not found:
        return graph
    b = Builder()
    made: dict[Node, Node] = {}
    for node in graph.nodes():
        exchange = found.get(node)
        if exchange is None:
            made[node] = made.get(node) or b.like(node, tuple(made[x] for x in node.inputs))
        else:
            for n in post_order([exchange.other[0]], lambda n: [x for x in n.inputs if x not in made]):
                made[n] = made.get(n) or b.like(n, tuple(made[x] for x in n.inputs))
            made[node] = _rebuilt(b, exchange, made)
    return graph.mapped(made)


# --- what sums are made of --------------------------------------------------------------------------------------------


def _product(node: Node) -> tuple[Factor, Factor] | None:
    """The two factors of what a reduction sums, with the elements that a term reads."""
    terms = node.inputs[0]
    if terms.op.name != "mul" or terms.dtype is not node.dtype:
        return None
    first, second = (movement_source(x, _of_input(x, variables(terms.shape))) for x in terms.inputs)
    return first, second


def _split(found: _Factors, along: Int) -> tuple[list[Factor], _Factors] | None:
    """The factors that differ along an axis, and the others; None where a divisor does."""
    if not isinstance(along, Expr) or any(_depends(at, along) for _, at in found.under):
        return None
    own = [f for f in found.over if _depends(f[1], along)]
    return own, found._replace(over=[f for f in found.over if f not in own])


def _weighted(node: Node) -> list[_Sum]:
    """Sums of a weight, times what does not differ along the axis, times another factor: each way to see the reduction so."""
    ((axis,),), found = node.attrs, _product(node)
    along, out = variables(node.inputs[0].shape)[axis], []
    for weights, shared in (found, found[::-1]) if found is not None else ():
        factors = _factors(*weights)
        parts = _split(factors, along) if factors is not None else None
        if parts is not None and len(parts[0]) == 1 and isinstance(along, Expr) and _depends(shared[1], along):
            out.append(_Sum(node, axis, (parts[0][0], shared), parts[1]))
    return out


def _factors(node: Node, index: Index) -> _Factors | None:
    """What an element is the product of, down to what is no product or quotient; None where that is too much."""
    over: list[Factor] = []
    under: list[Factor] = []
    negated = False
    todo = [(node, index, True)]
    while todo:
        x, at, is_over = todo.pop()
        x, at = movement_source(x, at)
        if x.op.name == "neg":
            negated = not negated
            todo.append((x.inputs[0], at, is_over))
        elif x.op.name in ("mul", "div") and x.dtype is node.dtype:
            first, second = x.inputs
            todo += [(first, _of_input(first, at), is_over), (second, _of_input(second, at), is_over == (x.op.name == "mul"))]
        else:
            (over if is_over else under).append((x, at))
        if len(over) + len(under) + len(todo) > MAX_FACTORS:
            return None
    return _Factors(over, under, negated)


def _of_input(x: Node, at: Index) -> Index:
    """Scalars may stand beside arrays in elementwise ops."""
    return at if x.shape else ()


def _depends(index: Index, along: Expr) -> bool:
    (name,) = (a.name for a in atoms(along))
    return any(a.name == name for e in index for a in atoms(e))


# --- which may be exchanged -------------------------------------------------------------------------------------------


def _exchange(node: Node, weighted: Mapping[tuple[Node, Node], list[_Sum]]) -> _Exchange | None:
    """``weighted``: the sums of each weight and other factor."""
    ((axis,),), terms = node.attrs, node.inputs[0]
    factors = _factors(terms, variables(terms.shape))
    parts = _split(factors, variables(terms.shape)[axis]) if factors is not None else None
    if parts is None or len(parts[0]) != 2:
        return None
    for (inner, place), weight in itertools.permutations(parts[0]):
        found = _product(inner) if inner.op.name == "reduce_sum" and len(inner.attrs[0]) == 1 else None
        for factor, shared in (found, found[::-1]) if found is not None else ():
            for other in weighted.get((weight[0], shared[0]), ()):
                exchange = _around(_Sum(node, axis, ((inner, place), weight), parts[1]), factor, shared, other)
                if exchange is not None:
                    return exchange
    return None


def _around(s: _Sum, factor: Factor, shared: Factor, other: _Sum) -> _Exchange | None:
    """The exchange in which ``other`` has summed the weight of ``s`` times ``shared``, if it has; the inner sum takes ``factor`` times ``shared``."""
    (inner, place), weight = s.own
    terms, ((inner_axis,),) = s.node.inputs[0], inner.attrs
    along, depth = variables(terms.shape)[s.axis], inner.inputs[0].shape[inner_axis]
    if other.node is s.node or not isinstance(along, Expr) or not _saves(s.node, depth):
        return None
    inside = _names_inside(inner, inner_axis, place)
    factor, shared = _renamed(factor, inside), _renamed(shared, inside)
    if _depends(factor[1], along):
        return None
    (_, first), (_, second) = other.own
    solved = _solved([*zip(first, weight[1], strict=True), *zip(second, shared[1], strict=True)])
    result = _result(s, other, solved, along) if solved is not None else None
    rest = _without(s.rest, other.rest.renamed(solved)) if solved is not None and result is not None else None
    if result is None or rest is None or not all(_is_placed(f, terms.ndim) for f in (factor, (other.node, result), *rest.over, *rest.under)):
        return None
    return _Exchange(s, rest, depth, factor, (other.node, result))


def _is_placed(f: Factor, ndim: int) -> bool:
    """Whether each axis is one of the terms' axes, or has one element."""
    names = [_variable(e) for e, n in zip(f[1], f[0].shape, strict=True) if n != 1]
    return None not in names and len(set(names)) == len(names) and set(names) <= {_SUMMED, *(f"d{i}" for i in range(ndim))}


def _saves(node: Node, depth: Int) -> bool:
    """Whether a sum over ``depth`` elements is less than the one over the axis."""
    terms = node.inputs[0].size
    return isinstance(terms, int) and isinstance(node.size, int) and isinstance(depth, int) and node.size * depth <= terms


def _names_inside(inner: Node, axis: int, place: Index) -> dict[str, Int]:
    """What the variables of the inner sum's terms are, where its result's element is the one at ``place``."""
    shape = inner.inputs[0].shape
    kept = [f"d{i}" for i in range(len(shape)) if i != axis]
    return {**dict(zip(kept, place, strict=True)), f"d{axis}": counter(_SUMMED, shape[axis])}


def _renamed(f: Factor, values: Mapping[str, Int]) -> Factor:
    return f[0], tuple(substitute(e, values) for e in f[1])


def _solved(pairs: list[tuple[Int, Int]]) -> dict[str, Int] | None:
    """The values of the variables on the left for which all pairs are equal; None where a left side is no variable, or there are none."""
    out: dict[str, Int] = {}
    for left, right in pairs:
        name = _variable(left)
        if name is None:
            if left != right:
                return None
        elif out.setdefault(name, right) != right:
            return None
    return out


def _variable(e: Int) -> str | None:
    """The name of the variable that an expression is."""
    only = next(iter(e.terms.items())) if isinstance(e, Expr) and len(e.terms) == 1 else None
    return only[0][0].name if only is not None and only[1] == 1 and len(only[0]) == 1 and not only[0][0].args else None


def _result(s: _Sum, other: _Sum, solved: dict[str, Int], along: Expr) -> Index | None:
    """The element of the other sum, whose own axis has to be the one of ``s``, and nothing else is to vary along that."""
    shape = other.node.inputs[0].shape
    kept = [v for i, v in enumerate(variables(shape)) if i != other.axis]
    index = tuple(solved.get(_variable(v) or "", v) if isinstance(v, Expr) else v for v in kept)
    is_whole = all(isinstance(v, int) or _variable(v) in solved for v in kept) and solved.get(f"d{other.axis}") == along
    return index if is_whole and not _depends(index, along) and other.node.dtype is s.node.dtype else None


def _without(rest: _Factors, known: _Factors) -> _Factors | None:
    """``rest`` divided by what is ``known`` to be in it; None where it is not."""
    over, under = list(rest.over), list(rest.under)
    for mine, theirs in ((over, known.over), (under, known.under)):
        for f in theirs:
            if f not in mine:
                return None
            mine.remove(f)
    return _Factors(over, under, rest.negated != known.negated)


# --- what becomes of them ---------------------------------------------------------------------------------------------


def _rebuilt(b: Builder, e: _Exchange, made: Mapping[Node, Node]) -> Node:
    s = e.sum
    terms = s.node.inputs[0]
    names = [f"d{i}" for i in range(terms.ndim) if i != s.axis]
    deep: Shape = (*s.node.shape, e.depth)
    first, second = (_spread(b, (made[x], at), [*names, _SUMMED], deep) for x, at in (e.factor, e.other))
    out = b.make("reduce_sum", b.make("mul", first, second), attrs=((len(names),),))
    for op, factors in (("mul", e.rest.over), ("div", e.rest.under)):
        for x, at in factors:
            out = b.make(op, out, _spread(b, (made[x], at), names, s.node.shape))
    return b.make("neg", out) if e.rest.negated else out


def _spread(b: Builder, f: Factor, names: list[str], shape: Shape) -> Node:
    """The factor's elements in a space whose axes have these names."""
    x, index = f
    axes = [(names.index(name), i) for i, e in enumerate(index) if (name := _variable(e)) is not None]
    units = [i for i in range(x.ndim) if i not in [i for _, i in axes]]
    order = sorted(axes)
    x = b.reshape(b.transpose(x, (*units, *(i for _, i in order))), tuple(x.shape[i] for _, i in order))
    return x if x.shape == shape else b.make("broadcast", x, attrs=(shape, tuple(n for n, _ in order)))
