"""Tracing of the bodies of loops and branches: a user's function becomes a closed graph of its operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, HologramError, ShapeError, TreeError
from hologram.ir.graph import Body, close
from hologram.ir.leaves import const, input_, leaf
from hologram.ir.node import Node
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import symbols_of
from hologram.ir.traversal import topological
from hologram.primitives.control import project
from hologram.primitives.host.effects import TOKEN
from hologram.support.user_lines import located
from hologram.trace import effects, tree
from hologram.trace.checks import as_function
from hologram.trace.operators import node_as, operand, weak_default, weak_type, wrap
from hologram.trace.recorder import Pending, Trace, cast_node, current, leaf_node, record, remember_results
from hologram.trace.tensor import Tensor
from hologram.trace.tree import Treedef


class Type:
    """Type of one leaf that enters or leaves a body; ``weak`` adopts the type of what it meets."""

    __slots__ = ("shape", "dtype", "weak")

    def __init__(self, shape: Shape, dtype: DType, weak: bool) -> None:
        self.shape, self.dtype, self.weak = shape, dtype, weak

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


TOKEN_TYPE = Type(*TOKEN, False)


class Operands:
    """The leaves of a pytree as nodes of this thread's recorder, with their types."""

    __slots__ = ("nodes", "types", "treedef", "paths")

    def __init__(self, value: Any, what: str, name: str) -> None:
        leaves, self.treedef = tree.flatten(value)
        self.paths = [p for p, _ in tree.paths(value, name)]
        self.nodes: list[Node] = []
        self.types: list[Type] = []
        for x, path in zip(leaves, self.paths, strict=True):
            node, weak = as_node(x, f"{what}: {path}")
            self.nodes.append(node)
            self.types.append(Type(node.shape, node.dtype, weak))


def as_node(x: Any, what: str) -> tuple[Node, bool]:
    """The node of an operand, weak values in the type that they are computed in, and whether it is weak."""
    if not isinstance(x, (Tensor, bool, int, float, complex)) and not hasattr(x, "dtype") and hasattr(x, "__dlpack__"):
        from hologram.trace.convert import from_dlpack

        x = from_dlpack(x)
    node, dtype, weak = operand(x, what)
    return node_as(node, weak_type(dtype) if weak and not isinstance(node, Node) else dtype), weak


def strong_node(x: Any, what: str) -> Node:
    """As :func:`as_node`, in the type that others see."""
    node, weak = as_node(x, what)
    return cast_node(node, weak_default(node.dtype)) if weak else node


class Recorded:
    """A body in the making: its trace (a context manager, in which to record), its arguments, and the ``nodes`` that it gives."""

    __slots__ = ("trace", "arguments", "nodes")

    def __init__(self, what: str, types: Iterable[Any]) -> None:
        around = current()
        self.trace = Trace(what)
        self.trace.is_body = True
        self.trace.captures = around is None or around.captures
        self.arguments: list[Node] = []
        self.nodes: list[Node] = []
        with self.trace:
            for t in types:
                self.argument(t)

    def argument(self, like: Any) -> Node:
        """One more argument, of the shape and type of ``like``."""
        self.arguments.append(self.trace.input(like.shape, like.dtype))
        return self.arguments[-1]

    def captured(self) -> list[Node]:
        """What the graph reads from around it: nodes of enclosing traces, realised values, and what is made, without its arguments, of symbolic
        extents that no other value brings along."""
        own = self.trace.lines
        outside = lambda n: n not in own or n.op is leaf  # noqa: E731
        nodes = topological(self.nodes, stop=outside)
        sized = self._sized([n for n in nodes if not outside(n)], symbols_of([x.shape for x in (*self.arguments, *filter(outside, nodes))]))
        if sized:
            nodes = topological(self.nodes, stop=lambda n: outside(n) or n in sized)
        return [n for n in nodes if (outside(n) and n.op is not const) or n in sized]

    def _sized(self, nodes: Iterable[Node], bound: set[str]) -> set[Node]:
        """Those of ``nodes``, all recorded here, that are made without arguments of symbols that are not ``bound``."""
        varying, sized = set(self.arguments), set[Node]()
        for n in nodes:
            if n.op is input_ or n in varying or any(x in varying for x in n.inputs):
                varying.add(n)
            elif not symbols_of((n.shape, n.attrs)) <= bound or any(x in sized for x in n.inputs):
                sized.add(n)
        return sized


class Traced(Recorded):
    """One call of a user's function on fresh arguments, and what it returned."""

    __slots__ = ("types", "treedef", "result", "paths")

    def __init__(self, what: str, function: Callable[..., Any], types: Sequence[Type], pack: Callable[[list[Any]], tuple[Any, ...]]) -> None:
        as_function(function, what)
        super().__init__(what, types)
        with self.trace:
            leaves = [wrap(x, t.weak) for x, t in zip(self.arguments, types, strict=True)]
            self.result = function(*pack(leaves))
            values, self.treedef = tree.flatten(self.result)
            self.paths = [p for p, _ in tree.paths(self.result, "")]
            self.types: list[Type] = []
            for x in values:
                try:
                    node, weak = as_node(x, what)
                except ArgumentError:
                    text = f"{what}: a body returned a {type(x).__name__}: results are Tensors, numbers, and containers of them"
                    raise located(ArgumentError(text)) from None
                self.nodes.append(node)
                self.types.append(Type(node.shape, node.dtype, weak))
        around = current()
        if around is not None:
            around.assumptions += self.trace.assumptions

    def strengthen(self, index: int) -> Type:
        """Gives result ``index`` the type that others see, if it is weak."""
        if self.types[index].weak:
            self.cast(index, weak_default(self.types[index].dtype))
        return self.types[index]

    @property
    def has_effects(self) -> bool:
        return self.trace.last_token is not None

    def thread_token(self, argument: int, result: int) -> None:
        """Gives the body a token among its arguments and its results, at these indices."""
        with self.trace:
            first, last = effects.token(), effects.last_token()
            self.nodes.insert(result, first if last is None else last)
            self.arguments.insert(argument, self.trace.first_token or self.trace.input(*TOKEN))
            self.types.insert(result, TOKEN_TYPE)

    def cast(self, index: int, dtype: DType) -> None:
        """Gives result ``index`` the type ``dtype``."""
        with self.trace:
            self.nodes[index] = node_as(self.nodes[index], dtype)
        self.types[index] = Type(self.types[index].shape, dtype, False)


def close_bodies(traces: Sequence[Recorded]) -> tuple[list[Node], list[Body]]:
    """Bodies that share their first arguments, and the nodes to give for these: everything that any of them reads from around it."""
    captured = list(dict.fromkeys(n for t in traces for n in t.captured()))
    bodies = [close([*captured, *t.arguments], t.nodes, t.trace.lines) for t in traces]
    own = {n for t in traces for n in t.trace.lines}
    again: dict[Node, Node] = {}
    return [_outside(n, own, again) for n in captured], bodies


def _outside(node: Node, own: set[Node], again: dict[Node, Node]) -> Node:
    """``node``, which a body reads, where the body stands: recorded ``again`` if it is the body's own."""
    for n in topological([node], stop=lambda n: n not in own):
        if n in own and n not in again:
            again[n] = leaf_node(n.attrs[0]) if n.op is leaf else record(n.op, tuple([again.get(x, x) for x in n.inputs]), n.attrs)
    return again.get(node, node)


def emit_with_token(op: Op, inputs: Iterable[Node], attrs: tuple[Any, ...], types: Sequence[Type], token: int | None) -> list[Tensor]:
    """As :func:`emit`, of whose results the one at the index ``token``, if that is not None, is the token of its effects, which is not given."""
    out = emit(op, inputs, attrs, types)
    if token is not None:
        last = out.pop(token)
        effects.follow(last._node, out)
    return out


def emit(op: Op, inputs: Iterable[Node], attrs: tuple[Any, ...], types: Sequence[Type]) -> list[Tensor]:
    """Records a control node; gives its results."""
    node = record(op, tuple(inputs), attrs)
    results = [record(project, (node,), (i, t.shape, t.dtype.name)) for i, t in enumerate(types)]
    if isinstance(node, Pending):
        remember_results(node, results)
    return [wrap(x, t.weak) for x, t in zip(results, types, strict=True)]


# --- agreement -------------------------------------------------------------------------------------------------------


def same_structure(what: str, found: Treedef, wanted: Treedef) -> None:
    if found != wanted:
        raise located(TreeError(f"{what}: the structure {found} differs from {wanted}"))


def settle(what: str, traced: Traced, types: list[Type], paths: Sequence[str], explain: str) -> list[Type] | None:
    """Makes the first results of a body fit ``types``, those of the carries that entered it.

    None where they do; the types to trace with anew where a weak carry takes the type of what comes back. Raises ShapeError or DTypeError,
    naming the leaf, where they cannot.
    """
    wanted = list(types)
    for i, (into, out, path) in enumerate(zip(types, traced.types, paths, strict=False)):
        if into.shape != out.shape:
            raise located(ShapeError(f"{what}: {path} enters {explain} as {into} and leaves it as {out}: shapes must agree"))
        if into.dtype is out.dtype:
            wanted[i] = Type(into.shape, into.dtype, into.weak and out.weak)
        elif out.weak and dtypes.promote_weak(into.dtype, out.dtype) is into.dtype:
            traced.cast(i, into.dtype)
            wanted[i] = Type(into.shape, into.dtype, False)
        elif into.weak and _adopts(into.dtype, out):
            wanted[i] = Type(into.shape, out.dtype, out.weak)
        else:
            advice = "cast it with astype, or start from that type"
            raise located(DTypeError(f"{what}: {path} enters {explain} as {into} and leaves it as {out}: element types must agree; {advice}"))
    return wanted if any(a.dtype is not b.dtype for a, b in zip(wanted, types, strict=True)) else None


def _adopts(dtype: DType, out: Type) -> bool:
    """Whether a weak value of ``dtype`` may become a value of the type ``out``."""
    try:
        return dtypes.promote_weak(out.dtype, dtype) is out.dtype
    except (HologramError, TypeError):
        return False
