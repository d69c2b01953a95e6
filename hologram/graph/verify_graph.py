"""The graph verifier: :func:`verify_graph` checks a graph node by node.

With ``settings.verify`` the compiler calls it on what it is given and on what each pass makes of that, the bodies of loops and branches included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from hologram.errors import CompileError
from hologram.graph.library.attention.nodes import ATTENTION_OPS
from hologram.ir.graph import Graph, bodies
from hologram.ir.node import Node
from hologram.ir.op import MULTI_RESULT, TABLE
from hologram.ir.symbolic import is_size_operand, substitute, symbols_of
from hologram.primitives.control import project, result_types, scan


def verify_graph(graph: Graph, when: str = "", interned: bool = True, around: Set[str] | None = frozenset()) -> None:
    """Raises :class:`CompileError`, naming the node and ``when``, unless ``graph`` is well formed:

    - its inputs are the arguments 0, 1, … in order, and it reads no others;
    - a node's op is defined in the op table, or one of those of attention, with the inputs and attributes that the row asks for;
    - its shape and type are those that the op's type rule gives, and a ``project`` node has those of the result that it picks;
    - nodes are ``interned``: no two have one op, inputs and attributes. What is traced may be of several traces, each of which interns its own;
    - the symbols of shapes and attributes are those of the inputs' shapes, or operands, so that a call says what they are; in a body also those
      ``around`` it (None: not known, as while a body goes through passes by itself);
    - graphs inside of nodes keep the same.
    """
    for i, x in enumerate(graph.inputs):
        if x.op.name != "input" or x.attrs[0] != i:
            raise CompileError(f"input {i} of the graph is {x!r} {when}".strip())
    inputs = set(graph.inputs)
    symbols = None if around is None else symbols_of([x.shape for x in graph.inputs]) | around
    seen: dict[Any, Node] = {}
    for node in graph.nodes():
        trouble = _trouble(node)
        if node.op.name == "input" and node not in inputs:
            trouble = "is no input of this graph"
        elif interned and seen.setdefault((node.op, node.inputs, node.attrs), node) is not node:
            trouble = "is there twice"
        elif symbols is not None and (unknown := sorted(s for s in symbols_of((node.shape, node.attrs)) - symbols if not is_size_operand(s))):
            trouble = f"depends on {', '.join(unknown)}, which no input binds"
        if trouble:
            raise CompileError(f"{node!r} {trouble} {when}".strip())
        if node.op.kind == "control":
            for body in bodies(node):
                verify_graph(body.graph, f"in the body of {node!r} {when}".strip(), around=symbols)


def verify_extents(nodes: Iterable[Node], values: Mapping[str, int]) -> None:
    """Raises :class:`CompileError` where an extent is negative at ``values`` of the symbols: of what an op makes, though a kernel may not keep it."""
    for node in nodes:
        if any(isinstance(n, int) and n < 0 for n in (substitute(n, values) for n in node.shape)):
            raise CompileError(f"{node!r} has a negative extent where {', '.join(f'{k} = {v}' for k, v in values.items())}")


def _trouble(node: Node) -> str:
    op = node.op
    if TABLE.get(op.name) is not op and op not in ATTENTION_OPS:
        return "has an op that is not in the op table"
    if op.arity is not None and len(node.inputs) != op.arity:
        return f"has {len(node.inputs)} inputs, not {op.arity}"
    if not len(op.attrs) <= len(node.attrs) <= len(op.attrs) + len(op.optional):
        return f"has {len(node.attrs)} attributes, not {len(op.attrs)}"
    if op is project:
        return _projected(node)
    try:
        shape, dtype = op.infer(node.inputs, node.attrs)
    except Exception as e:  # whatever the rule trips over
        return f"is refused by its op: {e}"
    return "" if shape == node.shape and dtype is node.dtype else f"should be {dtype}{list(shape)}"


def _projected(node: Node) -> str:
    (source,), (index, *_) = node.inputs, node.attrs
    if source.op.kind not in MULTI_RESULT:
        return f"picks a result of {source!r}, which has but one"
    types = result_types(source)
    if not 0 <= index < len(types):
        return f"picks result {index} of {len(types)}"
    shape, dtype = types[index]
    if source.op is scan and index >= source.attrs[2]:
        shape = (source.attrs[3], *shape)
    return "" if shape == node.shape and dtype is node.dtype else f"should be {dtype}{list(shape)}"
