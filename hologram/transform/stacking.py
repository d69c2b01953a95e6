"""``vmap``: a function of one example, run once on a stack of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError, TransformError
from hologram.ir.node import Node
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import Int
from hologram.primitives.control import project
from hologram.primitives.host.effects import is_effect
from hologram.primitives.iota import iota
from hologram.support.user_lines import located
from hologram.trace import effects, tree
from hologram.trace.checks import as_function
from hologram.trace.operators import wrap
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor
from hologram.trace.tree import Treedef
from hologram.transform.arguments import array_node, own, result_nodes, tensors
from hologram.transform.levels import Level, example_of, keeping_lines
from hologram.transform.named_axes import LocalResults, NamedAxis, bound, stacking
from hologram.transform.nodes import first_of, moved
from hologram.transform.rules.batching import elementwise, stack_of
from hologram.transform.transformed import Transformed
from hologram.transform.tree_axes import with_axes, without_axes


def stacked(
    f: Callable[[list[Node]], Sequence[Node]], inputs: Sequence[Node], batched: Sequence[bool], size: Int, axis_name: str | None = None
) -> list[Node]:
    """``f``, which takes and gives nodes, on a stack of ``size`` examples.

    Inputs whose flag is True, and all results, have the stack's axis in front; ``axis_name`` names it. Raises TransformError for an op without a
    rule.
    """
    results, stacks = _run(f, inputs, batched, size, axis_name)
    return [_stack_for(x, stacks, size) for x in results]


def _stack_for(x: Node, stacks: _Stacks, size: Int) -> Node:
    return stacks.stacked[x] if x in stacks.stacked else stack_of(stacks.alike.get(x, x), size)


class _Stacks:
    """What nodes of one example are for all: ``stacked``, with the stack's axis in front, or ``alike``, the same for every example."""

    __slots__ = ("stacked", "alike", "local")

    def __init__(self, stacked: dict[Node, Node]) -> None:
        self.stacked, self.alike = stacked, dict[Node, Node]()
        self.local: dict[Node, LocalResults] = {}  # of collectives over the stack's axis

    def of_effects(self) -> list[Tensor]:
        """What effects, and loops and branches with effects, gave: to be kept where they run, or whoever reads it would run them again."""
        made = itertools.chain(self.stacked.items(), self.alike.items())
        return [wrap(x) for node, x in made if node.op is project and is_effect(node.inputs[0])]


def _run(
    f: Callable[[list[Node]], Sequence[Node]], inputs: Sequence[Node], batched: Sequence[bool], size: Int, axis_name: str | None
) -> tuple[Sequence[Node], _Stacks]:
    """The results of ``f`` for one example, and what they are for the whole stack."""
    before = effects.last_token()
    try:
        with Level(stacking=True) as level:
            given = [example_of(x.shape[1:], x.dtype) if flag else x for x, flag in zip(inputs, batched, strict=True)]
            stacks = _Stacks({e: x for e, x, flag in zip(given, inputs, batched, strict=True) if flag})
            axes = [] if axis_name is None else [_named(axis_name, size, stacks)]
            with bound(axes):
                results = f(given)
            token = effects.last_token()
            kept = [] if token is before or token is None else [token]
            with stacking(axis_name):
                _stack(level, [*results, *kept], stacks, size)
    except BaseException:
        effects.forget(before)
        raise
    if kept:
        stack = stacks.stacked.get(kept[0])
        effects.forget(before)
        if size != 0:
            effects.follow(stacks.alike.get(kept[0], kept[0]) if stack is None else first_of(stack), stacks.of_effects())
    elif (made := effects.last_token()) is not before:  # of a rule of the user's
        effects.forget(before)
        effects.follow(made)
    return results, stacks


def _named(name: str, size: Int, stacks: _Stacks) -> NamedAxis:
    """The axis of a stack, with the number of an example. Raises ShapeError for one of symbolic size."""
    if not isinstance(size, int):
        raise located(ShapeError(f"vmap: the axis {name!r} has the symbolic extent {size}: one with a name has a static extent"))
    index = example_of((), dtypes.int64)
    stacks.stacked[index] = record(iota, (), ((size,), 0, "int64"))
    return NamedAxis(name, size, index)


def _stack(level: Level, results: Sequence[Node], stacks: _Stacks, size: Int) -> None:
    """Adds to ``stacks`` every node that ``results`` need and that depends on those there."""
    with keeping_lines() as at:
        for node in level.between(stacks.stacked, results, differentiable=False):
            op, inputs, attrs = level.definition(node)
            at(node)
            if inputs and inputs[0] in stacks.local:
                of = stacks.local[inputs[0]]
                (stacks.stacked if of.stacked else stacks.alike)[node] = of.values[attrs[0]]
                continue
            flags = tuple([x in stacks.stacked for x in inputs])
            given = [stacks.stacked[x] if flag else stacks.alike.get(x, x) for x, flag in zip(inputs, flags, strict=True)]
            if not any(flags):
                stacks.alike[node] = record(op, tuple(given), attrs)
                continue
            made = _on_stacks(op, size, flags, given, attrs, node.shape)
            if isinstance(made, LocalResults):
                stacks.local[node] = made
            else:
                stacks.stacked[node] = made


def _on_stacks(op: Op, size: Int, flags: tuple[bool, ...], given: Sequence[Node], attrs: tuple[Any, ...], shape: Shape) -> Any:
    if op.batch is not None:
        return op.batch(size, flags, *given, *attrs)
    if op.kind == "elementwise":
        return elementwise(op, size, flags, given, attrs, shape)
    raise located(TransformError(f"vmap: {op.name} has no rule for stacks"))


# --- axes ------------------------------------------------------------------------------------------------------------


def _axes(axes: Any, structure: Treedef, value: Any, what: str) -> list[int | None]:
    """The axis of each leaf of ``value``; ``axes`` may end early, and then stands for all leaves below."""
    found: list[int | None] = []
    _spread_axes(axes, value, found, what)
    assert len(found) == structure.leaves
    return found


def _spread_axes(axes: Any, value: Any, found: list[int | None], what: str) -> None:
    if axes is None or type(axes) is int:
        found += [axes] * len(tree.leaves(value))
        return
    mine, theirs = tree.children_of(axes), tree.children_of(value)
    fits = mine is not None and theirs is not None and len(mine[1]) == len(theirs[1]) and (mine[0] == theirs[0] or isinstance(axes, (tuple, list)))
    if mine is None or theirs is None or not fits:
        raise located(ArgumentError(f"vmap: {what} {axes!r} does not match the structure {tree.structure(value)}"))
    for a, v in zip(mine[1], theirs[1], strict=True):
        _spread_axes(a, v, found, what)


def _axis(axis: int, ndim: int, what: str) -> int:
    if not -ndim <= axis < ndim:
        raise located(ShapeError(f"vmap: {what} {axis} of an array with {ndim} axes"))
    return axis % ndim


def _size(nodes: Sequence[Node], axes: Sequence[int | None], axis_size: Int | None) -> Int:
    """How many examples there are. Raises where arguments disagree, or none says."""
    sizes = [n.shape[_axis(a, len(n.shape), "in_axes")] for n, a in zip(nodes, axes, strict=True) if a is not None]
    if axis_size is not None:
        sizes.insert(0, axis_size)
    if not sizes:
        raise located(ArgumentError("vmap: no argument is mapped over an axis: give in_axes an axis, or axis_size"))
    for n in sizes:
        if n != sizes[0]:
            raise located(ShapeError(f"vmap: the mapped axes have extents {sizes[0]} and {n}"))
    return sizes[0]


def vmap(
    f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None, axis_name: str | None = None
) -> Callable[..., Any]:
    """Vectorizes ``f``: applies it to every example of a stack at once.

    ``in_axes`` says along which axis an argument's examples lie, None for an argument that all share; for positional arguments an integer, or a
    tuple with one entry an argument, each an integer, None or a pytree of them that may end early. Keyword arguments lie along axis 0.
    ``out_axes`` is the same for results; None is for one that does not depend on the example, and gives it once. A Python ``if`` cannot look
    at an example's value. ``axis_name`` names the stack's axis for collectives in ``f``, as :func:`hologram.lax.psum`; what they make the same for
    every example may have None in ``out_axes``. Raises ShapeError for stacks of different sizes, TransformError for an op without a rule.

    >>> hg.vmap(hnp.dot, in_axes=(0, None))(hnp.asarray([[1, 2], [3, 4]]), hnp.asarray([10, 1]))
    Tensor([12, 34], dtype=int64)
    >>> hg.vmap(lambda x: x / hg.lax.psum(x, "i"), axis_name="i")(hnp.asarray([1.0, 3.0]))
    Tensor([0.25, 0.75], dtype=float32)
    """
    if axis_name is not None and not isinstance(axis_name, str):
        raise located(ArgumentError(f"vmap: axis_name is a string, not a {type(axis_name).__name__}"))
    return Transformed(_vmap, as_function(f, "vmap"), in_axes, out_axes, axis_size, axis_name)


def _vmap(f: Callable[..., Any], given: tuple[Any, Any, int | None, str | None], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    in_axes, out_axes, axis_size, axis_name = given
    if isinstance(in_axes, (tuple, list)) and len(in_axes) != len(args):
        raise located(ArgumentError(f"vmap: in_axes has {len(in_axes)} entries for {len(args)} positional arguments"))
    leaves, structure = tree.flatten((args, options))
    axes = _axes(tuple(in_axes) if isinstance(in_axes, list) else in_axes, tree.structure(args), args, "in_axes")
    axes += [0] * (len(leaves) - len(axes))
    read = [array_node(x, "vmap") if a is not None else (None, False) for x, a in zip(leaves, axes, strict=True)]
    size = _size([n for n, _ in read if n is not None], [a for a in axes if a is not None], axis_size)
    stands = [None if n is None or a is None else _axis(a, len(n.shape), "in_axes") for (n, _), a in zip(read, axes, strict=True)]
    inputs = [moved(n, a, 0) for (n, _), a in zip(read, stands, strict=True) if n is not None and a is not None]
    example = without_axes(structure, stands, "vmap")
    found: list[Treedef] = []
    results: list[Any] = []

    def of_example(examples: list[Node]) -> list[Node]:
        given = iter(examples)
        filled = [own(x) if n is None else wrap(next(given), weak) for x, (n, weak) in zip(leaves, read, strict=True)]
        some, named = tree.unflatten(example, filled)
        results.append(f(*some, **named))
        nodes, result_structure = result_nodes(results[0], "vmap")
        found.append(result_structure)
        return nodes

    nodes, stacks = _run(of_example, inputs, [True] * len(inputs), size, axis_name)
    places = _axes(out_axes, found[0], results[0], "out_axes")
    placed = [_placed(x, stacks, a, size) for x, a in zip(nodes, places, strict=True)]
    now = [None if a is None else _axis(a, len(x.shape), "out_axes") for x, a in zip(placed, places, strict=True)]
    return tensors(with_axes(found[0], now), placed)


def _placed(x: Node, stacks: _Stacks, axis: int | None, size: Int) -> Node:
    """The result ``x`` of one example with the stack's axis where ``out_axes`` says."""
    if axis is not None:
        whole = _stack_for(x, stacks, size)
        return moved(whole, 0, _axis(axis, len(whole.shape), "out_axes"))
    if x in stacks.stacked:
        raise located(ArgumentError("vmap: out_axes is None for a result that depends on the example: it takes an integer"))
    return stacks.alike.get(x, x)
