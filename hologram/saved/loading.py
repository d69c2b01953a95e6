"""``load``: a program out of a file, of which nothing is believed before it is checked."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import DeviceError, ProgramFileError
from hologram.ir.devices import resolve
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.ir.symbolic import symbols_of
from hologram.saved.attributes import FLAG, INTEGER, refuse
from hologram.saved.container import Source, unpack
from hologram.saved.graphs import GraphReader, fields
from hologram.saved.program import Program
from hologram.saved.specification import Specification
from hologram.saved.trees import decode_tree
from hologram.support.precision import PRECISIONS
from hologram.support.user_lines import located
from hologram.trace.call.signature import LeafType
from hologram.trace.call.trace_call import Traced
from hologram.trace.tree import Treedef

_SYMBOL = re.compile("n[0-9]{1,4}")
_LONGEST_NAME = 200


def load(file: Source, *, device: Any = None) -> Program:
    """Loads a saved program: from a path, a binary file open for reading, or bytes. Loading runs nothing and compiles nothing.

    ``device`` is where it will run, as for ``jit``. Raises ProgramFileError for a damaged file, one of another version of the format, and one
    that says what no program can; ArgumentError for what is no file, OSError for one that cannot be read.

    >>> program = hg.export(hnp.negative, np.zeros(2, np.float32))
    >>> loaded = hg.load(program.to_bytes())
    >>> loaded(np.array([1.0, -2.0], np.float32))
    Tensor([-1.,  2.], dtype=float32)
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
    from hologram.backends.native import storage  # memory of arrays: the native runtime, which nothing before needs

    name, precision, parameters, weak, donated, symbols, assumptions, rules, data = fields(
        header,
        "the file",
        name=str,
        precision=str,
        parameters=list,
        weak=list,
        donated=list,
        symbols=list,
        assumptions=list,
        derivatives=list,
        graph=dict,
    )
    _check_names(name, parameters, symbols)
    if precision not in PRECISIONS:
        raise refuse(f"one of {', '.join(PRECISIONS)}", precision)
    reader = GraphReader([storage.copy_of(a) for a in arrays], symbols, rules, header["version"])
    graph = reader.graph(data)
    unbound = sorted(set(symbols) - symbols_of([x.shape for x in graph.inputs]))
    if unbound:
        raise ProgramFileError(f"the file declares {', '.join(unbound)}, and no argument's shape says what that is")
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
    return Program(specification, Traced(graph, results, assumed, []), donated, precision, device)


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
