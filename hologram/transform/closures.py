"""Functions with what they read from around them as arguments: ``closure_convert``, ``custom_gradient``; and ``linear_transpose``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes
from hologram.errors import ArgumentError, DifferentiationError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.primitives.markers import pullback
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.call.jit import jit
from hologram.trace.checks import as_function, has_items, integer, items
from hologram.trace.operators import wrap
from hologram.trace.recorder import cast_node
from hologram.trace.tensor import Tensor
from hologram.transform.api import vjp
from hologram.transform.arguments import array_node, cotangent_nodes, differentiable_node, result_nodes, tensors
from hologram.transform.checkpoint import closure
from hologram.transform.custom import custom_vjp
from hologram.transform.differentiate import pull, push
from hologram.transform.levels import Level, marked, replay
from hologram.transform.nodes import full, has_tangents, zeros_like

__all__ = ["closure_convert", "custom_gradient", "fwd_and_bwd", "linear_transpose"]

Function = Callable[..., Any]

_SPREADING = (TABLE["broadcast"], TABLE["reshape"], TABLE["transpose"])


class Converted:
    """A function of a tuple of pytrees, recorded once, that has what it reads from around it as arguments, too: ``sources``, those of a type with
    derivatives, or ``around``, all. Its arguments are weakly typed where the examples are and ``keep_weak`` says so."""

    def __init__(self, what: str, f: Function, *examples: Any, keep_weak: bool = False) -> None:
        self.what = what
        leaves, self.structure = tree.flatten(examples)
        with Level() as self.level:
            nodes = [array_node(x, what) for x in leaves]
            self.marks = [marked(x) for x, _ in nodes]
            given = tensors(self.structure, self.marks, [weak and keep_weak for _, weak in nodes])
            self.results, self.out = result_nodes(f(*given), what)
        self.level.keep(self.marks, self.results)
        self.around = list(dict.fromkeys(_before_spreading(x) for x in closure(self.level, self.marks, self.results)))
        self.sources = [x for x in self.around if has_tangents(x.dtype)]

    def called(self, args: tuple[Any, ...], read: Sequence[Node], values: Sequence[Any]) -> Any:
        """The result for other arguments, and ``values`` in the place of what it has ``read``."""
        leaves = tree.flatten_up_to(self.structure, args)
        given = {m: self._as(m, v) for m, v in zip([*self.marks, *read], [*leaves, *values], strict=True)}
        return tensors(self.out, replay(self.level, self.results, given))

    def _as(self, like: Node, x: Any) -> Node:
        """An argument in the type that the function was recorded for. Raises ShapeError for another shape."""
        node, _ = array_node(x, self.what)
        if node.shape != like.shape:
            raise located(ShapeError(f"{self.what}: the function takes shape {list(like.shape)} here, not {list(node.shape)}"))
        return cast_node(node, like.dtype)


def _before_spreading(x: Node) -> Node:
    """What ``x`` repeats or rearranges: a product reads its factors broadcast against each other, of which no one wants to keep the copies."""
    while x.op in _SPREADING:
        x = x.inputs[0]
    return x


def closure_convert(fun: Function, *example_args: Any) -> tuple[Function, list[Tensor]]:
    """``fun`` with the values that it reads from around it as arguments: ``(converted, values)``; ``converted(*args, *values)`` is ``fun(*args)``.

    ``values`` are the floats among what is no constant: those by which a derivative may be asked for, which a function with a
    :func:`hologram.custom_vjp` must be given as arguments. ``fun`` is recorded once, for arguments of the shapes and types of ``example_args``,
    pytrees of arrays. Raises ShapeError for other shapes, ArgumentError for what is no function.

    >>> def scaled(factor, x):
    ...     converted, values = hg.closure_convert(lambda y: factor * y, x)
    ...     return converted(x, *values), len(values)
    >>> hg.grad(scaled, has_aux=True)(2.0, 5.0)
    (Tensor(5., dtype=float32), 1)
    """
    made = Converted("closure_convert", as_function(fun, "closure_convert"), *example_args, keep_weak=True)
    count = len(example_args)

    def converted(*args: Any) -> Any:
        return made.called(args[:count], made.sources, args[count:])

    return converted, [wrap(x) for x in made.sources]


class _Pullback:
    """A pullback and the values that it reads, which are the leaves of this pytree."""

    def __init__(self, rule: Converted, values: list[Any]) -> None:
        self.rule, self.values = rule, values


tree.register(_Pullback, lambda x: (x.values, x.rule), lambda rule, values: _Pullback(rule, list(values)))


def custom_gradient(fun: Function) -> Function:
    """Decorator for functions that say their own gradient: ``fun(*args)`` gives ``(result, rule)``, where ``rule(cotangent)`` gives the arguments'
    cotangents: of several ones a tuple, of one its own or a tuple of it.

    It may read what ``fun`` has computed. Forward mode raises DifferentiationError, as for :class:`hologram.custom_vjp`; ArgumentError for what gives
    no pair.

    >>> @hg.custom_gradient
    ... def f(x):
    ...     return x**2, lambda g: (g * 10 * x,)
    >>> f(3.0), hg.grad(f)(3.0)
    (9.0, Tensor(30., dtype=float32))
    """
    as_function(fun, "custom_gradient")

    def both(*args: Any) -> tuple[Any, Any]:
        made = fun(*args)
        if not isinstance(made, (tuple, list)) or len(made) != 2 or not callable(made[1]):
            raise located(ArgumentError("custom_gradient: the function returns (result, rule), where the rule takes the result's cotangent"))
        return made[0], made[1]

    def forward(*args: Any) -> tuple[Any, _Pullback]:
        out, rule = both(*args)
        nodes, structure = result_nodes(out, "custom_gradient")
        converted = Converted("custom_gradient", rule, tensors(structure, [zeros_like(x) for x in nodes]))
        return out, _Pullback(converted, [wrap(x) for x in converted.around])

    def backward(residuals: _Pullback, cotangent: Any) -> Any:
        found = residuals.rule.called((cotangent,), residuals.rule.around, residuals.values)
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)

    wrapped = custom_vjp(functools.wraps(fun)(lambda *args: both(*args)[0]))
    wrapped.defvjp(forward, backward)
    return wrapped


def fwd_and_bwd(fun: Function, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True) -> tuple[Function, Function]:
    """The two passes of reverse mode as functions of their own, each compiled once: ``y, residuals = fwd(*args)``, ``bwd(residuals, cotangent)``.

    ``bwd`` gives the cotangent of the argument ``argnums``, or a tuple for several; ``residuals`` is a pytree of arrays. With ``has_aux`` ``fun``
    gives ``(y, aux)``, and ``fwd`` ``(y, residuals, aux)``. ``jitted`` says whether both are compiled. Raises as :func:`hologram.vjp` does,
    ArgumentError for what is no function and for positions that are no integers.

    >>> fwd, bwd = hg.fwd_and_bwd(lambda x, w: x @ w, (0, 1))
    >>> y, residuals = fwd(hnp.ones((2, 3)), hnp.ones((3,)))
    >>> [ct.shape for ct in bwd(residuals, y)]
    [(2, 3), (3,)]
    """
    what = "fwd_and_bwd"
    as_function(fun, what)
    several = has_items(argnums)
    places = [integer(i, what, "argnums") for i in (items(argnums, what, "positions") if several else [argnums])]

    def fwd(*args: Any) -> Any:
        wanted = [i % len(args) for i in places]

        def of_these(*some: Any) -> Any:
            every = list(args)
            for i, x in zip(wanted, some, strict=True):
                every[i] = x
            return fun(*every)

        out, pull, *aux = vjp(of_these, *[args[i] for i in wanted], has_aux=has_aux)
        nodes, structure = result_nodes(out, what)
        pulled = Converted(what, pull, tensors(structure, [zeros_like(x) for x in nodes]))
        return out, _Pullback(pulled, [wrap(x) for x in pulled.around]), *aux

    def bwd(residuals: _Pullback, cotangent: Any) -> Any:
        found = residuals.rule.called((cotangent,), residuals.rule.around, residuals.values)
        return found if several else found[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


def linear_transpose(fun: Function, *primals: Any) -> Function:
    """The transpose of a linear function: ``linear_transpose(fun, *primals)(cotangent)`` gives a tuple, a cotangent for each of ``primals``.

    ``primals`` are pytrees of arrays, or of what has a ``shape`` and a ``dtype``: values are not looked at. ``cotangent`` is like the result of
    ``fun``. Raises DifferentiationError for a function that is seen not to be linear, outside of loops, branches and checkpoints, and ArgumentError
    for a cotangent of another structure, shape or type.

    >>> transposed = hg.linear_transpose(lambda x: 3 * x[1:], hg.ShapeDtypeStruct((3,), "float32"))
    >>> transposed(hnp.asarray([1.0, 2.0]))
    (Tensor([0., 3., 6.], dtype=float32),)
    """
    what = "linear_transpose"
    as_function(fun, what)
    leaves, structure = tree.flatten(primals)
    inputs = [_zeros(x, what) for x in leaves]
    with Level() as level:
        marks = [marked(x) for x in inputs]
        results, out = result_nodes(fun(*tensors(structure, marks)), what)
        tangents = [marked(x) for x in inputs]  # which do not depend on the marks
        linear = push(level, results, dict(zip(marks, tangents, strict=True)), reverse=True)
    _require_linear(level, marks, [x for x in linear if x is not None], what)

    def transposed(cotangent: Any) -> Any:
        given = cotangent_nodes(cotangent, out, results, f"{what}: the cotangent", convert=True)
        pulled = pull(level, tangents, linear, given)
        return tensors(structure, [zeros_like(x) if c is None else c for x, c in zip(inputs, pulled, strict=True)])

    return transposed


def _zeros(x: Any, what: str) -> Node:
    """Zeros of the shape and type of an array, or of a description of one."""
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "__array__"):
        return differentiable_node(wrap(full(0, dtypes.of(x.dtype), x.shape)), what)[0]
    return zeros_like(differentiable_node(x, what)[0])


def _require_linear(level: Level, marks: Sequence[Node], linear: Sequence[Node], what: str) -> None:
    """The derivative of a linear function does not depend on where it is taken. Loops carry values beside tangents, and what waits for cotangents
    keeps them: inside nothing is asked."""
    reached = level.between(marks, linear, differentiable=False)
    if reached and not any(x.op.kind == "control" or x.op is pullback for x in reached):
        raise located(DifferentiationError(f"{what}: the function is not linear in its arguments"))
