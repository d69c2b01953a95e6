"""``export`` and ``load``: one traced call of a function, in a file, and out of it again."""

from __future__ import annotations

import io
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np

from hologram import __version__, dtypes, fft, linalg  # noqa: F401 - with the derivatives of their ops, which transforms of a program need
from hologram.backends.devices import resolve
from hologram.control.callbacks import ShapeDtypeStruct
from hologram.errors import ArgumentError, DeviceError, ExportError, ProgramFileError
from hologram.primitives.leaves import as_array
from hologram.primitives.op import MULTIPLE
from hologram.saved.attributes import FLAG, INTEGER, refuse
from hologram.saved.container import Source, pack, store, unpack
from hologram.saved.graphs import GraphReader, GraphWriter, fields
from hologram.saved.specification import Specification
from hologram.saved.trees import decode_tree, encode_tree
from hologram.symbolic import Expr, Int, atoms, substitute
from hologram.trace import tree
from hologram.trace.apply import node_as, operand, wrap
from hologram.trace.jit import PRECISIONS, Jitted, Traced, jit
from hologram.trace.node import Graph, Node, topological
from hologram.trace.recorder import Pending, assume, located, record, remember_results
from hologram.trace.residence import on_host
from hologram.trace.signature import Call, LeafType
from hologram.trace.tree import Treedef

_SYMBOL = re.compile("n[0-9]{1,4}")
_LONGEST_NAME = 200


class Program(Jitted):
    # A saved program: callable as jitted functions are, compiled at its first call, never traced. (No docstring: __doc__ is a slot's.)
    __slots__ = ("__doc__", "_donated_arguments", "_traced")  # a class has a __doc__, None, that would hide the slot
    _signature: Specification

    def __init__(self, specification: Specification, traced: Traced, donated: Sequence[int], precision: str, device: str | None) -> None:
        super().__init__(self._record, (), (), (), precision, False, device)
        self._signature, self._traced, self._donated_arguments = specification, traced, list(donated)
        self.__name__ = self.__qualname__ = specification.name
        self.__doc__ = f"A saved program: {specification} -> {self.out_specs}."

    # --- what it is --------------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The program as it was traced."""
        return self._traced.graph

    @property
    def in_specs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """``(args, options)`` of a call, with shape, element type and ``weak`` of each leaf in its place."""
        args, options = tree.unflatten(self._signature.treedef, self._signature.types)
        return args, dict(options)

    @property
    def out_specs(self) -> Any:
        """The result, with shape and element type of each leaf in its place."""
        return tree.unflatten(self._traced.out_tree, [LeafType(x.shape, x.dtype, False) for x in self.graph.outputs])

    def __repr__(self) -> str:
        return f"<program {self._signature} -> {self.out_specs}>"

    def __str__(self) -> str:
        return f"{self._signature} -> {self.out_specs}\n{self.graph}"

    # --- files -------------------------------------------------------------------------------------------------------

    def save(self, file: Any) -> None:
        """Writes the program to a path, or into a binary file that is open for writing. A path's file is replaced as a whole."""
        if hasattr(file, "write"):
            self._write(file)
        else:
            store(file, self._write)

    def to_bytes(self) -> bytes:
        """The contents of the program's file."""
        file = io.BytesIO()
        self._write(file)
        return file.getvalue()

    def _write(self, file: BinaryIO) -> None:
        writer = GraphWriter()
        s = self._signature
        graph = writer.graph(self.graph)
        header = {
            "writer": f"hologram {__version__}",
            "name": s.name,
            "precision": self._precision,
            "parameters": s.names,
            "arguments": encode_tree(s.treedef, "the arguments"),
            "weak": [t.weak for t in s.types],
            "results": encode_tree(self._traced.out_tree, "the results"),
            "donated": self._donated_arguments,
            "symbols": sorted({a.name for t in s.types for n in t.shape for a in atoms(n)}),
            "assumptions": [INTEGER.encode(a, writer) for a in s.assumptions],
            "graph": graph,
        }
        pack(file, header, [as_array(on_host(storage)) for storage in writer.arrays])

    # --- running -----------------------------------------------------------------------------------------------------

    def _trace(self, call: Call) -> Traced:
        return self._traced

    def _donated_leaves(self, call: Call) -> list[int]:
        return self._donated_arguments

    def _record(self, *args: Any, **options: Any) -> Any:
        """The program's ops, recorded on Tensors of a trace or transform."""
        s = self._signature
        args, options = s.ordered(args, options)
        leaves, structure = tree.flatten((args, OrderedDict(options)))
        s.require_structure(structure)
        nodes = [self._argument(x, t) for x, t in zip(leaves, s.types, strict=True)]
        values = s.sizes([x.shape for x in nodes])
        for a in s.assumptions:
            assume(substitute(a, values))
        outputs = recorded(self.graph, nodes, values)
        return tree.unflatten(self._traced.out_tree, [wrap(x) for x in outputs])

    def _argument(self, x: Any, wanted: LeafType) -> Node:
        node, dtype, weak = operand(x, self.__name__)
        if wanted.weak and weak and dtype.kind == wanted.dtype.kind:
            return node_as(node, wanted.dtype)
        if dtype is not wanted.dtype or weak != wanted.weak:
            found = LeafType(() if weak else node.shape, dtype, False)
            raise located(
                ArgumentError(f"{self.__name__}: an argument is a {found}{', weakly typed' * weak}, and the program was exported for {wanted}")
            )
        return node


def recorded(graph: Graph, arguments: Sequence[Node], sizes: dict[str, Int]) -> list[Node]:
    """The outputs of ``graph`` recorded here on ``arguments``, ``sizes`` in the places of its symbols."""
    made = dict(zip(graph.inputs, arguments, strict=True))
    several: dict[Node, list[Node]] = {}
    for n in topological(graph.outputs, stop=made.__contains__):
        if n in made:
            continue
        new = made[n] = record(n.op, tuple([made[x] for x in n.inputs]), _at(n.attrs, sizes) if sizes else n.attrs)
        if n.op.kind == "project":
            several.setdefault(new.inputs[0], []).append(new)
    for node, results in several.items():
        if isinstance(node, Pending) and node.op.kind in MULTIPLE:
            remember_results(node, results)
    return [made[x] for x in graph.outputs]


def _at(x: Any, sizes: dict[str, Int]) -> Any:
    """``x`` with the values of symbols, inside of tuples too."""
    if type(x) is tuple:
        return tuple([_at(e, sizes) for e in x])
    return substitute(x, sizes) if isinstance(x, Expr) else x


# --- export ----------------------------------------------------------------------------------------------------------


def export(f: Callable[..., Any], /, *args: Any, **options: Any) -> Program:
    """``f``, a jitted function (another is jitted first), as it is for these arguments: a program that can be saved.

    ``args`` and ``options`` are those of a call; only their types count, and a :class:`~hologram.ShapeDtypeStruct` may stand for an array. Static
    arguments become part of the program, which is called without them; axes that ``jit`` was told are dynamic keep their symbols. Values that the
    function has taken from around it are saved with it.

    Raises ExportError for what a file cannot hold: a ``pure_callback``, a registered class among arguments or results.
    """
    jitted = f if isinstance(f, Jitted) else jit(f)
    call = jitted._signature.take_apart(*_described(args, options))
    if isinstance(jitted, Program):
        return jitted
    traced = jitted._trace(call)
    names = [p for i, p in enumerate(jitted._signature.parameters) if i not in call.statics]
    positional = call.treedef.children[0].children
    specification = Specification(jitted.__name__, names[: len(positional)], call.treedef, call.types, traced.assumptions)
    program = Program(specification, traced, jitted._donated_leaves(call), jitted._precision, jitted._device)
    _require_savable(program)
    return program


def _require_savable(program: Program) -> None:
    try:
        GraphWriter().graph(program.graph)
        encode_tree(program._signature.treedef, "the arguments")
        encode_tree(program._traced.out_tree, "the results")
    except ExportError as e:
        raise located(e) from None


def _described(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with arrays of no memory in the place of descriptions."""

    def of(x: Any) -> Any:
        return np.broadcast_to(np.zeros((), x.dtype), x.shape) if isinstance(x, ShapeDtypeStruct) else x

    given: tuple[tuple[Any, ...], dict[str, Any]] = tree.map(of, (args, options))
    return given


# --- load ------------------------------------------------------------------------------------------------------------


def load(file: Source, *, device: Any = None) -> Program:
    """The program in ``file``: a path, a binary file open for reading, or bytes. Loading runs nothing and compiles nothing.

    ``device`` is where it will run, as for ``jit``. Raises ProgramFileError for a damaged file, one of another version of the format, and one
    that says what no program can.
    """
    try:
        runs_on = None if device is None else resolve(device)
    except DeviceError as e:
        raise located(e) from None
    header, arrays = unpack(file)
    try:
        return _program(header, arrays, runs_on)
    except ProgramFileError as e:
        raise located(e if str(e).startswith("load") else ProgramFileError(f"load: {e}")) from None
    except RecursionError:
        raise located(ProgramFileError("load: the file is nested too deeply")) from None


def _program(header: dict[str, Any], arrays: list[np.ndarray], device: str | None) -> Program:
    from hologram.backends.cpu.runtime import storage  # memory of arrays: the native runtime, which nothing before needs

    name, precision, parameters, weak, donated, symbols, assumptions, data = fields(
        header, "the file", name=str, precision=str, parameters=list, weak=list, donated=list, symbols=list, assumptions=list, graph=dict
    )
    _check_names(name, parameters, symbols)
    if precision not in PRECISIONS:
        raise refuse(f"one of {', '.join(PRECISIONS)}", precision)
    reader = GraphReader([storage.copy_of(a) for a in arrays], symbols)
    graph = reader.graph(data)
    for a in assumptions:
        reader.assume(INTEGER.decode(a, reader))
    arguments, results = decode_tree(header.get("arguments")), decode_tree(header.get("results"))
    _check_structure(arguments, results, graph, parameters)
    flags = [FLAG.decode(x, reader) for x in weak]
    if len(flags) != len(graph.inputs) or any(type(i) is not int or not 0 <= i < len(flags) for i in donated):
        raise ProgramFileError(f"{len(flags)} leaves of the arguments for {len(graph.inputs)} inputs, {donated} donated")
    types = [_leaf_type(x, flag) for x, flag in zip(graph.inputs, flags, strict=True)]
    assumed = list(reader.assumptions)
    specification = Specification(name, parameters, arguments, types, assumed)
    return Program(specification, Traced(graph, results, assumed), donated, precision, device)


def _leaf_type(x: Node, weak: bool) -> LeafType:
    if weak and (x.shape or x.dtype not in (dtypes.bool_, dtypes.int64, dtypes.float64, dtypes.complex128)):
        raise ProgramFileError(f"no Python number is a {x.dtype}{list(x.shape)}")
    return LeafType(x.shape, x.dtype, weak)


def _check_names(name: str, parameters: list[Any], symbols: list[Any]) -> None:
    for text in (name, *parameters):
        if type(text) is not str or not text.isprintable() or not 0 < len(text) <= _LONGEST_NAME:
            raise refuse("a name", text)
    if any(type(s) is not str or not _SYMBOL.fullmatch(s) for s in symbols) or len(set(symbols)) != len(symbols):
        raise refuse("the names of symbols", symbols)


def _check_structure(arguments: Treedef, results: Treedef, graph: Graph, parameters: list[str]) -> None:
    """Arguments are ``(args, options)``, and there are as many leaves as inputs and outputs."""
    if arguments.kind is not tuple or [c.kind for c in arguments.children] != [tuple, OrderedDict]:
        raise ProgramFileError("the arguments are no tuple of positions and an OrderedDict of names")
    positional, named = arguments.children
    if any(type(k) is not str or not k.isprintable() for k in named.data) or len(parameters) > len(positional.children):
        raise ProgramFileError("the arguments' names do not fit their structure")
    if arguments.leaves != len(graph.inputs) or results.leaves != len(graph.outputs):
        raise ProgramFileError(
            f"structures of {arguments.leaves} and {results.leaves} leaves for {len(graph.inputs)} inputs and {len(graph.outputs)} outputs"
        )
