"""Graphs as data of JSON.

A graph is ``{"inputs": [[shape, dtype], …], "nodes": [[op, inputs, attributes], …], "outputs": […]}``. Values are numbered: the inputs first,
then the nodes, each of which reads values with smaller numbers. Ops have the names of the op table, attributes the order of its rows. A node that
has several results has its number read by ``project`` nodes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hologram.primitives.control as control
from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ExportError, ProgramFileError
from hologram.ir.aval import MAX_BYTES
from hologram.ir.graph import Graph
from hologram.ir.leaves import input_, leaf
from hologram.ir.node import Builder, Node
from hologram.ir.op import MULTI_RESULT, TABLE, Op, Shape
from hologram.ir.storage import as_array
from hologram.ir.symbolic import Expr, Int, bounds, is_static, prod, var
from hologram.primitives.host.factorizations import TALL, WIDE, svd
from hologram.primitives.markers import custom, example, mapped, mark, part, place, pullback
from hologram.saved import version_1
from hologram.saved.attributes import DTYPE, INTEGERS, KINDS, refuse
from hologram.saved.container import VERSION
from hologram.saved.guards import Guards

MAX_NODES = 2**22  # in all graphs of a file
MAX_AXES = 64
DEEPEST = 64  # graphs in one another

# rows that exist only while something is traced, or belong to one machine; those of kind native leave a part of their result open
_PASSING = (mark, place, pullback, part, example, input_)


def is_saved(op: Op) -> bool:
    """Whether a file may hold nodes of this row."""
    return TABLE.get(op.name) is op and op not in _PASSING and op.kind not in ("native", "digits", "runs")


# --- writing ---------------------------------------------------------------------------------------------------------


class GraphWriter:
    """Writes graphs. ``arrays`` are the storages that ``leaf`` nodes refer to, ``rules`` the derivatives of ``custom`` nodes, each once."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.rules: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._rule_numbers: dict[int, int | None] = {}
        self._arguments: tuple[Node, ...] | None = ()  # of the custom node that is written; None inside of a rule

    def array(self, storage: Any) -> int:
        """The number of a storage in the file."""
        number = self._numbers.setdefault(id(storage), len(self.arrays))
        if number == len(self.arrays):
            self.arrays.append(storage)
        return number

    def rule(self, rule: Any) -> int | None:
        """The number of a derivative; None for one that cannot be saved, and inside of another, where it would be a second derivative."""
        arguments, self._arguments = self._arguments, None
        if arguments is not None and id(rule) not in self._rule_numbers:
            from hologram.saved.derivatives import traced  # with the rules of transforms, which few programs need

            found = traced(rule, arguments)
            if found is not None:
                self.rules.append(found.data(self))
            self._rule_numbers[id(rule)] = None if found is None else len(self.rules) - 1
        self._arguments = arguments
        return None if arguments is None else self._rule_numbers[id(rule)]

    def graph(self, graph: Graph) -> dict[str, Any]:
        """``graph`` as data. Raises ExportError, naming the op, for what a file cannot hold."""
        number = {x: i for i, x in enumerate(graph.inputs)}
        rows: list[Any] = []
        for node in graph.nodes():
            if node in number:
                continue
            if node.op in (mapped, mark, place) or (node.op is custom and node.attrs[0].transparent):
                number[node] = number[node.inputs[0]]
                continue
            rows.append([node.op.name, [number[x] for x in node.inputs], self._attributes(node)])
            number[node] = len(graph.inputs) + len(rows) - 1
        inputs = [[INTEGERS.encode(x.shape, self), x.dtype.name] for x in graph.inputs]
        return {"inputs": inputs, "nodes": rows, "outputs": [number[x] for x in graph.outputs]}

    def _attributes(self, node: Node) -> list[Any]:
        if not is_saved(node.op):
            raise ExportError(f"export: {node.op.name}: values of this op exist only while a function is traced")
        if node.op is custom and self._arguments is not None:
            self._arguments = node.inputs[1:]
        try:
            written = node.attrs[: len(node.op.attrs)]  # bars of loops are this process's
            return [KINDS[name].encode(value, self) for name, value in node.op.named(written)]
        except ExportError as e:
            raise e if str(e).startswith("export") else ExportError(f"export: {node.op.name}: {e}") from None


# --- reading ---------------------------------------------------------------------------------------------------------


class GraphReader:
    """Reads graphs, of that version of the format. ``assumptions`` are polynomials of symbols that the programs take not to be negative."""

    def __init__(self, arrays: list[Any], symbols: list[str], rules: Sequence[Any] = (), version: int = VERSION) -> None:
        self.version = version
        self.arrays, self._symbols = arrays, {name: var(name, low=2) for name in symbols}
        self._rules, self._made, self._in_rule = rules, dict[int, Any](), False
        self.assumptions: dict[Expr, None] = {}
        self.nodes = 0
        self._depth = 0

    def array(self, index: int) -> Any:
        if index >= len(self.arrays):
            raise ProgramFileError(f"array {index} of {len(self.arrays)}")
        return self.arrays[index]

    def rule(self, data: Any) -> Any:
        """The derivative of that number; for null, one that is not in the file."""
        from hologram.saved.derivatives import LOST, decoded  # with the rules of transforms, which few programs need

        if data is None:
            return LOST
        if type(data) is not int or not 0 <= data < len(self._rules) or self._in_rule:
            raise refuse("the number of a derivative, or null", data)
        if data not in self._made:
            self._in_rule = True
            self._made[data] = decoded(self._rules[data], self)
            self._in_rule = False
        return self._made[data]

    def symbol(self, name: str) -> Expr:
        if name not in self._symbols:
            raise ProgramFileError(f"the file declares no symbol {name[:20]!r}")
        return self._symbols[name]

    def assume(self, slack: Int) -> None:
        """Takes ``slack`` not to be negative. Raises ProgramFileError where it certainly is."""
        low, high = bounds(slack)
        if high is not None and high < 0:
            raise ProgramFileError(f"{slack} is taken not to be negative, which it is")
        if isinstance(slack, Expr) and (low is None or low < 0):
            self.assumptions[slack] = None

    def body(self, data: Any) -> Graph:
        """The graph of a loop or branch: closed, but for the program's symbols."""
        graph = self.graph(data, inside=True)
        if any(node.op is leaf for node in graph.nodes()):
            raise ProgramFileError("the graph of a loop or branch holds an array")
        return graph

    def graph(self, data: Any, inside: bool = False) -> Graph:
        """The graph, a whole program's or one ``inside`` of a node. Raises ProgramFileError, naming the node and its op, for what is none."""
        if self._depth == DEEPEST:
            raise ProgramFileError(f"graphs are nested deeper than {DEEPEST} levels")
        inputs, rows, outputs = fields(data, "a graph", inputs=list, nodes=list, outputs=list)
        self.nodes += len(inputs) + len(rows)
        if self.nodes > MAX_NODES:
            raise ProgramFileError(f"more than {MAX_NODES} nodes")
        self._depth += 1
        try:
            return _Reading(self).graph([self.type(x, inside) for x in inputs], rows, outputs)
        finally:
            self._depth -= 1

    def type(self, data: Any, inside: bool) -> tuple[Shape, DType]:
        """The shape and element type of an argument. A program's extents are numbers or single symbols."""
        if type(data) is not list or len(data) != 2:
            raise refuse("a shape and an element type", data)
        shape, dtype = INTEGERS.decode(data[0], self), dtypes.of(DTYPE.decode(data[1], self))
        if not inside and not all(is_static(n) or n in self._symbols.values() for n in shape):
            raise refuse("a shape of numbers and symbols", data[0])
        self.check_type(shape, dtype)
        return shape, dtype

    def check_type(self, shape: Shape, dtype: DType) -> None:
        """Extents are not negative, and arrays of them not beyond any memory."""
        if len(shape) > MAX_AXES:
            raise ProgramFileError(f"{len(shape)} axes")
        for n in shape:
            self.assume(n)
        if prod(n for n in shape if isinstance(n, int) and n > 0) * dtype.itemsize > MAX_BYTES:
            raise ProgramFileError(f"{dtype}{list(shape)} is larger than any memory")


def fields(data: Any, what: str, **kinds: type) -> list[Any]:
    """The named fields of an object, each of the given type. Raises ProgramFileError."""
    if type(data) is not dict:
        raise refuse(what, data)
    for name, kind in kinds.items():
        if type(data.get(name)) is not kind:
            raise ProgramFileError(f"{what} has {name!r}, a {kind.__name__}, not {repr(data.get(name))[:40]}")
    return [data[name] for name in kinds]


class _Reading:
    """One graph under construction: ``values`` by number."""

    def __init__(self, reader: GraphReader) -> None:
        self.reader, self.build = reader, Builder()
        self.guards = Guards(self.build)
        self.values: list[Node] = []

    def graph(self, inputs: list[tuple[Shape, DType]], rows: list[Any], outputs: list[Any]) -> Graph:
        for i, (shape, dtype) in enumerate(inputs):
            self.values.append(self.build(input_, (), (i, shape, dtype.name, None)))
        for row in rows:
            self.values.append(self.node(row))
        given = self.values[: len(inputs)]
        return Graph(given, [self._single(self.value(i)) for i in outputs])

    def value(self, number: Any) -> Node:
        if type(number) is not int or not 0 <= number < len(self.values):
            raise ProgramFileError(f"value {str(number)[:20]} is read where {len(self.values)} are known")
        return self.values[number]

    def node(self, row: Any) -> Node:
        if type(row) is not list or len(row) != 3 or type(row[0]) is not str or type(row[1]) is not list or type(row[2]) is not list:
            raise refuse("a node: its op, inputs and attributes", row)
        name, numbers, data = row
        op, changed = TABLE.get(name), self.reader.version == 1 and version_1.is_changed(name)
        if not changed and (op is None or not is_saved(op)):
            raise ProgramFileError(f"node {len(self.values)}: there is no op {name[:40]!r}")
        try:
            if changed:
                inputs = tuple([self._single(self.value(i)) for i in numbers])
                return version_1.converted(lambda name, inputs, attrs: self._made(TABLE[name], inputs, attrs), name, inputs, data)
            assert op is not None
            return self._checked(op, tuple([self.value(i) for i in numbers]), data)
        except ProgramFileError as e:
            raise ProgramFileError(f"node {len(self.values)}, {name}: {e}") from None
        except Exception as e:  # a type rule, of attributes that nothing but a file gives it
            raise ProgramFileError(f"node {len(self.values)}, {name}: {type(e).__name__}: {e}") from None

    def _checked(self, op: Op, inputs: tuple[Node, ...], data: list[Any]) -> Node:
        if len(data) != len(op.attrs) or (op.arity is not None and len(inputs) != op.arity):
            raise ProgramFileError(f"{len(inputs)} inputs and {len(data)} attributes for {op.arity} and {len(op.attrs)}")
        attrs = tuple([KINDS[name].decode(x, self.reader) for name, x in zip(op.attrs, data, strict=True)])
        if op.kind == "project":
            _check_result(inputs[0], *attrs)
        else:
            inputs = tuple([self._single(x) for x in inputs])
        if op is leaf:
            self._check_leaf(*attrs)
        if op is custom and len(inputs) == 1:
            from hologram.transform.custom import ARGUMENT  # likewise

            attrs = (ARGUMENT, 0)
        elif op is custom and data[0] is not None and not attrs[0].fits(inputs[0], inputs[1:], attrs[1]):
            raise ProgramFileError("the derivative is that of another function")
        if op is control.scan:
            self.reader.assume(attrs[op.attrs.index("length")])
        return self._made(op, inputs, attrs)

    def _made(self, op: Op, inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> Node:
        node = self.build(op, self.guards.guarded(op, inputs, attrs), attrs)
        self.reader.check_type(node.shape, node.dtype)
        self._bounds(node)
        self.guards.note(node)
        return node

    def _single(self, x: Node) -> Node:
        if x.op.kind in MULTI_RESULT:
            raise ProgramFileError(f"{x.op.name} has several results, which project nodes pick")
        return x

    def _check_leaf(self, storage: Any, shape: Shape, dtype: str) -> None:
        array = as_array(storage)
        if array.shape != shape or dtypes.of(array.dtype).name != dtype:
            raise ProgramFileError(f"the array is {array.dtype}{list(array.shape)}, not {dtype}{list(shape)}")

    def _bounds(self, node: Node) -> None:
        """What of symbolic extents the type rules leave open: that slices stay inside, that there is something to take, which way matrices are
        longer."""
        if node.op.name == "slice":
            for n, a, b, s in zip(node.inputs[0].shape, *node.attrs, strict=True):
                low, high, lowest, highest = (a, b, 0, n) if s > 0 else (b, a, -1, n - 1)
                for slack in (low - lowest, high - low, highest - high):
                    self.reader.assume(slack)
        if node.op.name == "lq":
            rows, columns = node.inputs[0].shape[-2:]
            self.reader.assume(columns - rows)
        if node.op is svd and node.attrs[0].endswith((TALL, WIDE)):
            rows, columns = node.inputs[0].shape[-2:]
            self.reader.assume(rows - columns if node.attrs[0].endswith(TALL) else columns - rows)
        if node.op.kind == "gather":
            for a, size in zip(*node.attrs[:2], strict=True):
                slack = node.inputs[0].shape[a] - size
                if not is_static(slack):
                    self.reader.assume(slack)


def _check_result(node: Node, index: int, shape: Shape, dtype: str) -> None:
    """A ``project`` node picks a result that there is, of the type that it has."""
    if node.op.kind not in MULTI_RESULT:
        raise ProgramFileError(f"{node.op.name} has one result")
    types = control.scan_results(node.attrs[0], *node.attrs[2:4]) if node.op is control.scan else control.result_types(node)
    if index >= len(types) or types[index] != (shape, dtypes.of(dtype)):
        raise ProgramFileError(f"{node.op.name} has no result {index} of type {dtype}{list(shape)}")
