"""How special functions of several arguments are computed and differentiated: in float64, with derivatives by parameters of every order.

A :class:`Function` is an algorithm on float64 Tensors of one shape. Its derivatives by some arguments have closed forms; those by the others, such as
the parameters of incomplete functions, are the forward derivative of the algorithm itself, and theirs in turn the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any

from hologram import dtypes
from hologram.errors import DTypeError
from hologram.ir.node import Node
from hologram.numpy.arguments import wrap
from hologram.support.user_lines import located
from hologram.trace.operators import broadcast_node, broadcast_shapes, node_of, promoted
from hologram.trace.recorder import cast_node, current, transforming
from hologram.trace.tensor import Tensor
from hologram.transform.api import jvp
from hologram.transform.custom import Rule, wrapped

Algorithm = Callable[..., Tensor]


class Function:
    """``algorithm``, elementwise on float64 Tensors of one shape.

    ``slopes`` has, for each argument, the derivative as a function of the arguments, or None for that of the algorithm. ``orders`` counts how often
    the algorithm has been differentiated by each argument.
    """

    def __init__(self, algorithm: Algorithm, slopes: Sequence[Algorithm | None], orders: Sequence[int] = ()) -> None:
        self.algorithm, self.slopes = algorithm, tuple(slopes)
        self.orders = tuple(orders) or (0,) * len(self.slopes)

    def __call__(self, *args: Tensor) -> Tensor:
        value = self.value(*args)
        if not transforming() and current() is None:
            return value
        (node,) = wrapped([node_of(value)], [node_of(x) for x in args], _Rule(self))
        return wrap(node)

    @cached_property
    def value(self) -> Algorithm:
        return _differentiated(self.algorithm, self.orders)

    @cache  # noqa: B019 - functions live as long as the program
    def slope(self, i: int) -> Algorithm:
        """The derivative by argument ``i``."""
        known = self.slopes[i]
        if known is not None:
            return _differentiated(known, self.orders)
        return Function(self.algorithm, self.slopes, [n + (j == i) for j, n in enumerate(self.orders)])


class _Rule(Rule):
    def __init__(self, function: Function) -> None:
        self.function = function

    def tangents(self, arguments: Sequence[Node], given: Sequence[Node | None]) -> Sequence[Node]:
        args = [wrap(x) for x in arguments]
        terms = [self.function.slope(i)(*args) * wrap(t) for i, t in enumerate(given) if t is not None]
        return [node_of(sum(terms[1:], terms[0]))]


def _differentiated(f: Algorithm, orders: Sequence[int]) -> Algorithm:
    """The partial derivative of ``f``, so many times by each argument."""
    for i, n in enumerate(orders):
        for _ in range(n):
            f = _partial(f, i)
    return f


def _partial(f: Algorithm, i: int) -> Algorithm:
    def derivative(*args: Tensor) -> Tensor:
        def along(x: Tensor) -> Tensor:
            return f(*args[:i], x, *args[i + 1 :])

        found: Tensor = jvp(along, (args[i],), (args[i] * 0 + 1,))[1]
        return found

    return derivative


def in_float64(what: str, f: Algorithm, *args: Any) -> Tensor:
    """``f`` of the arguments as float64 Tensors of one shape, rounded to their common float type. Raises DTypeError for complex numbers."""
    nodes, dtype, weak = promoted(what, args, dtypes.to_inexact, keep=True)
    if dtype.is_complex:
        raise located(DTypeError(f"{what}: takes real numbers, not {dtype.name}: complex arguments are not supported"))
    shape = broadcast_shapes(what, [x.shape for x in nodes])
    wide = [wrap(broadcast_node(cast_node(x, dtypes.float64), shape)) for x in nodes]
    return wrap(cast_node(node_of(f(*wide)), dtype), weak)
