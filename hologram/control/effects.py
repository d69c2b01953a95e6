"""``io_callback``: a user's function that is called for what it does; and the rules of the op that calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.control.callbacks import UserCall, described
from hologram.control.tracing import Type as LeafType
from hologram.control.tracing import emit, strong_node
from hologram.errors import DifferentiationError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import TABLE, transforms
from hologram.ir.symbolic import Int
from hologram.primitives.host.effects import TOKEN, effect
from hologram.primitives.host.host_op import Call
from hologram.support.user_lines import located
from hologram.trace import effects, tree
from hologram.trace.checks import as_function
from hologram.trace.operators import is_array_like, is_operand, wrap
from hologram.trace.recorder import constant, record
from hologram.trace.tensor import Tensor, namespace
from hologram.trace.tree import Treedef
from hologram.transform.nodes import apply, first_of, has_tangents


def io_callback(function: Callable[..., Any], result_shape_dtypes: Any, /, *args: Any, ordered: bool = True, **options: Any) -> Any:
    """Calls a Python function for its effect: ``function(*args, **options)``, once for each time that the program comes to it.

    ``function`` gets NumPy arrays in the place of the arguments' leaves, and gives a pytree of arrays of the shapes and element types that
    ``result_shape_dtypes`` has, or None. It is called although nobody reads what it gives, at each step of a loop, in the branches that run, and
    never moved before or behind another effect: effects are always ordered, so ``ordered`` changes nothing. Outside of traces it is called at once.

    Under ``vmap`` it is called for one example after the other, those of loops that have ended and of other branches left out; once, where no
    argument depends on the example. A derivative goes round it, and raises DifferentiationError where it would need the derivative of what
    ``function`` gives. What it raises reaches whoever runs the program. Results of another structure raise TreeError, of other shapes ShapeError,
    of other types DTypeError.

    >>> seen = []
    >>> _ = hg.jit(lambda n: hg.fori_loop(0, n, lambda i, c: hg.io_callback(seen.append, None, i) or c + i, 0), static_argnums=0)(3)
    >>> [int(i) for i in seen]
    [0, 1, 2]
    """
    as_function(function, "io_callback")
    wanted, structure = tree.flatten(result_shape_dtypes)
    types = [described(x, "io_callback") for x in wanted]
    if not types:
        call_for_effect("io_callback", without_result(function), args, options)
        return result_shape_dtypes
    nodes, of_arrays, pattern = _operands("io_callback", function, args, options)
    call = UserCall(of_arrays, pattern, structure, types, "sequential", "io_callback")
    return tree.unflatten(structure, _performed(call, nodes, None))


def without_result(function: Callable[..., Any]) -> Callable[..., None]:
    """``function``, of which nobody wants what it gives."""

    def called(*args: Any, **options: Any) -> None:
        function(*args, **options)

    called.__name__ = getattr(function, "__name__", "function")
    return called


def call_for_effect(what: str, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], enabled: Node | None = None) -> None:
    """Calls ``function``, which gives None, with the values of the arguments, where the scalar ``enabled`` holds; texts and the like are given as
    they are."""
    nodes, of_arrays, pattern = _operands(what, function, args, options)
    _performed(UserCall(of_arrays, pattern, tree.structure(None), [], "sequential", what), nodes, enabled)


_ARRAY = object()


def _operands(
    what: str, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[list[Node], Callable[..., Any], Treedef]:
    """The arrays among the arguments; a function of them; and the structure in which it takes them."""
    leaves, structure = tree.flatten((args, options))
    dynamic = [is_operand(x) or is_array_like(x) for x in leaves]
    nodes = [strong_node(x, what) for x, d in zip(leaves, dynamic, strict=True) if d]
    if all(dynamic):
        return nodes, function, structure
    given = [_ARRAY if d else x for x, d in zip(leaves, dynamic, strict=True)]

    def called(*arrays: Any) -> Any:
        rest = iter(arrays)
        args, options = tree.unflatten(structure, [next(rest) if x is _ARRAY else x for x in given])
        return function(*args, **options)

    called.__name__ = getattr(function, "__name__", "function")
    return nodes, called, tree.structure(((0,) * len(nodes), {}))


def _performed(call: UserCall, nodes: Sequence[Node], enabled: Node | None) -> list[Tensor]:
    """The results of a call: made now, or recorded."""
    if effects.runs_at_once():
        if enabled is not None and not bool(wrap(enabled)):
            return []
        return [namespace().asarray(x) for x in call.run([np.asarray(wrap(n)) for n in nodes])]
    outer = _Effect(call)
    holds = constant(True, dtypes.bool_) if enabled is None else enabled
    token, *results = emit(effect, [effects.token(), holds, *nodes], (outer,), [LeafType(shape, dtype, False) for shape, dtype in outer.types])
    effects.follow(token._node)
    return results


class _Effect(Call):
    """A user's call, which gives a token too."""

    __slots__ = ("inner", "what")

    def __init__(self, inner: UserCall) -> None:
        super().__init__([TOKEN, *inner.types])
        self.inner, self.what = inner, inner.what

    def __str__(self) -> str:
        return str(self.inner)

    def run(self, arrays: Sequence[np.ndarray], lead: tuple[int, ...] = ()) -> list[np.ndarray]:
        return [np.zeros(TOKEN[0], TOKEN[1].np), *self.inner.run(arrays, lead)]


class _StackedEffect(Call):
    """A call for each example of a stack, or, where no argument and no mask depends on the example, one call for all."""

    __slots__ = ("inner", "size", "batched", "masked", "what")

    def __init__(self, inner: Any, size: int, batched: tuple[bool, ...], masked: bool) -> None:
        super().__init__([((size, *shape), dtype) for shape, dtype in inner.types])
        self.inner, self.size, self.batched, self.masked, self.what = inner, size, batched, masked, inner.what

    def run(self, arrays: Sequence[np.ndarray], lead: tuple[int, ...] = ()) -> list[np.ndarray]:
        out = [np.zeros(shape, dtype.np) for shape, dtype in self.types]
        mask, given = (arrays[0], arrays[1:]) if self.masked else (None, arrays)
        if mask is None and not any(self.batched):
            for to, value in zip(out, self.inner.run(given), strict=True):
                to[...] = value
            return out
        for i in range(self.size):
            if mask is None or mask[i]:
                found = self.inner.run([a[i] if flag else a for a, flag in zip(given, self.batched, strict=True)])
                for to, value in zip(out, found, strict=True):
                    to[i] = value
        return out


# --- rules -----------------------------------------------------------------------------------------------------------


def _jvp(tangents: Sequence[Node | None], out: Node, *rest: Any) -> None:
    call = rest[-1]
    if any(has_tangents(dtype) for _, dtype in call.types):
        advice = "give it stop_gradient of its arguments, or give the function that calls it a custom_jvp or custom_vjp"
        raise located(DifferentiationError(f"{call.what}: what it gives cannot be differentiated: {advice}"))


def _batch(size: Int, batched: Sequence[bool], *rest: Any) -> Node:
    token, enabled, *inputs, call = rest
    if not isinstance(size, int):
        raise located(ShapeError(f"vmap: {call.what} takes stacks of static size, not {size}"))
    masked, flags = batched[1], tuple(batched[2:])
    if masked:
        inputs, enabled = [enabled, *inputs], apply(TABLE["reduce_any"], enabled, attrs=((0,),))
    if batched[0]:
        token = first_of(token) if size else constant(0, TOKEN[1])
    return record(effect, (token, enabled, *inputs), (_StackedEffect(call, size, flags, masked),))


transforms(effect, jvp=_jvp, batch=_batch)
