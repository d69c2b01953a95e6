"""Functions that say themselves what they are on stacks: ``custom_vmap``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from hologram.errors import ArgumentError, ShapeError, TransformError
from hologram.ir.leaves import const, leaf
from hologram.ir.node import Node
from hologram.ir.op import transforms
from hologram.ir.symbolic import Int
from hologram.ir.traversal import reachable
from hologram.primitives.markers import mapped
from hologram.support.user_lines import located
from hologram.trace import effects, tree
from hologram.trace.checks import as_function
from hologram.trace.operators import wrap
from hologram.trace.recorder import record, stacking
from hologram.trace.tree import Treedef
from hologram.transform.api import jvp
from hologram.transform.arguments import array_node, result_nodes, tensors
from hologram.transform.custom import transpose_of_value
from hologram.transform.nodes import zeros_like
from hologram.transform.rules.batching import stack_of
from hologram.transform.transformed import Wrapper

__all__ = ["custom_vmap"]

Function = Callable[..., Any]


class custom_vmap(Wrapper):  # noqa: N801 - a decorator
    """Decorator that gives ``f`` a rule of its own under :func:`hologram.vmap`.

    ``@f.def_vmap`` takes ``rule(axis_size, in_batched, *args)``: ``in_batched`` is a pytree like ``args`` of bools, and says of each array whether it
    is a stack, with the stack's axis in front. The rule gives ``(result, out_batched)``, the latter bools in the structure of the result, or one for
    all. Derivatives are those of ``f``, or of the rule where a mapped function is differentiated. Arguments are given by position.

    Under ``vmap`` raises TransformError where there is no rule, ArgumentError for what gives no such pair, ShapeError for a result that is no stack.

    >>> @hg.custom_batching.custom_vmap
    ... def f(x, y):
    ...     return x + y
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x, y):
    ...     return x * y, True
    >>> f(2, 3), hg.vmap(f)(hnp.asarray([2, 3]), hnp.asarray([3, 4]))
    (5, Tensor([ 6, 12], dtype=int64))
    """

    def __init__(self, fun: Function) -> None:
        self.f, self.rule = as_function(fun, "custom_vmap"), None
        functools.update_wrapper(self, fun)

    rule: Function | None

    def def_vmap(self, vmap_rule: Function) -> Function:
        """Sets the rule ``rule(axis_size, in_batched, *args)``, which gives ``(result, out_batched)``; usable as a decorator."""
        self.rule = as_function(vmap_rule, "custom_vmap.def_vmap")
        return vmap_rule

    def __call__(self, *args: Any) -> Any:
        if not stacking():
            return self.f(*args)
        leaves, structure = tree.flatten(args)
        given = [array_node(x, "custom_vmap") for x in leaves]
        if all(x.inputs or x.op in (const, leaf) for x in reachable([x for x, _ in given], lambda x: x.inputs)):
            return self.f(*args)  # of known values, which are in no stack
        before = effects.last_token()
        some = tree.unflatten(structure, [wrap(x, weak) for x, weak in given])
        values, out = result_nodes(self.f(*some), "custom_vmap")
        effects.forget(before)  # the rule has its own
        call = _Call(self, structure, out, [weak for _, weak in given])
        arguments = [x for x, _ in given]
        return tensors(out, [record(mapped, (v, *arguments), (call, i)) for i, v in enumerate(values)])


class _Call:
    """One call: what ``mapped`` nodes carry. Stacks and tangents are found once for all results."""

    def __init__(self, function: custom_vmap, structure: Treedef, out: Treedef, weak: Sequence[bool]) -> None:
        self.function, self.structure, self.out, self.weak = function, structure, out, weak
        self._stacks: tuple[Any, Sequence[Node]] = None, ()
        self._tangents: tuple[Any, Sequence[Node]] = None, ()

    def stacks(self, size: Int, batched: tuple[bool, ...], arguments: tuple[Node, ...]) -> Sequence[Node]:
        """All results, with the stack's axis in front."""
        if self._stacks[0] != (size, batched, arguments):
            self._stacks = (size, batched, arguments), self._stacked(size, batched, arguments)
        return self._stacks[1]

    def _stacked(self, size: Int, batched: tuple[bool, ...], arguments: tuple[Node, ...]) -> Sequence[Node]:
        name = getattr(self.function, "__name__", "the function")
        if self.function.rule is None:
            raise located(TransformError(f"custom_vmap: {name} has no rule: give it one with def_vmap"))
        flags = tree.unflatten(self.structure, list(batched))
        made = self.function.rule(size, list(flags), *tensors(self.structure, arguments, self.weak))
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            raise located(ArgumentError(f"custom_vmap: the rule of {name} returns (result, out_batched)"))
        nodes, out = result_nodes(made[0], "custom_vmap")
        whole = made[1]
        mapped_results = [whole] * len(nodes) if isinstance(whole, bool) else tree.leaves(whole)
        if out != self.out or len(mapped_results) != len(nodes):
            raise located(ArgumentError(f"custom_vmap: the rule of {name} gave structure {out} and {len(mapped_results)} flags, not {self.out}"))
        for x, flag in zip(nodes, mapped_results, strict=True):
            if flag and x.shape[:1] != (size,):
                raise located(ShapeError(f"custom_vmap: the rule of {name} gave shape {list(x.shape)} for a stack of {size}"))
        return [x if flag else stack_of(x, size) for x, flag in zip(nodes, mapped_results, strict=True)]

    def tangents(self, arguments: tuple[Node, ...], given: tuple[Node | None, ...]) -> Sequence[Node]:
        """Those of the function itself."""
        if self._tangents[0] != (arguments, given):
            directions = [zeros_like(x) if t is None else t for x, t in zip(arguments, given, strict=True)]
            made = jvp(self.function.f, tensors(self.structure, arguments, self.weak), tensors(self.structure, directions, self.weak))[1]
            self._tangents = (arguments, given), result_nodes(made, "custom_vmap")[0]
        return self._tangents[1]


def _batch(size: Int, batched: Sequence[bool], *rest: Any) -> Node:
    _, *arguments, call, index = rest
    return call.stacks(size, tuple(batched[1:]), tuple(arguments))[index]


def _jvp(tangents: Sequence[Node | None], out: Node, *rest: Any) -> Node:
    _, *arguments, call, index = rest
    return call.tangents(tuple(arguments), tuple(tangents[1:]))[index]


transforms(mapped, jvp=_jvp, transpose=transpose_of_value, batch=_batch)
