"""Programs: one traced call of a function, which can be called, saved and looked at."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, BinaryIO

from hologram.backends.residence import on_host
from hologram.ir.graph import Graph
from hologram.ir.storage import as_array
from hologram.ir.symbolic import atoms
from hologram.saved.attributes import INTEGER
from hologram.saved.container import pack, store
from hologram.saved.graphs import GraphWriter
from hologram.saved.specification import Specification
from hologram.saved.trees import encode_tree
from hologram.trace import tree
from hologram.trace.call.jit import Jitted
from hologram.trace.call.signature import Call, LeafType
from hologram.trace.call.trace_call import Traced
from hologram.trace.operators import wrap
from hologram.version import __version__


class Program(Jitted):
    # A saved program: callable as jitted functions are, compiled at its first call, never traced. (No docstring: __doc__ is a slot's.)
    __slots__ = ("__doc__", "_donated_arguments", "_traced")  # a class has a __doc__, None, that would hide the slot
    _signature: Specification

    def __init__(self, specification: Specification, traced: Traced, donated: Sequence[int], precision: str, device: str | None) -> None:
        super().__init__(self._record, (), (), (), precision, False, device)
        self._signature, self._traced, self._donated_arguments = specification, traced, list(donated)
        self.__name__ = self.__qualname__ = traced.graph.name = specification.name
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
            "derivatives": writer.rules,
        }
        pack(file, header, [as_array(on_host(storage)) for storage in writer.arrays])

    # --- running -----------------------------------------------------------------------------------------------------

    def _trace(self, call: Call) -> Traced:
        return self._traced

    def _donated_leaves(self, call: Call) -> list[int]:
        return self._donated_arguments

    def _record(self, *args: Any, **options: Any) -> Any:
        """The program's ops, recorded on Tensors of a trace or transform."""
        from hologram.saved.recording import recorded  # with the rules of transforms, which a plain call needs not

        s = self._signature
        args, options = s.ordered(args, options)
        leaves, structure = tree.flatten((args, OrderedDict(options)))
        s.require_structure(structure)
        outputs = recorded(s, self.graph, leaves)
        return tree.unflatten(self._traced.out_tree, [wrap(x) for x in outputs])
