"""``export``: a function as it is for the types of one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram.errors import ExportError
from hologram.saved.graphs import GraphWriter
from hologram.saved.program import Program
from hologram.saved.specification import Specification
from hologram.saved.trees import encode_tree
from hologram.support.user_lines import located
from hologram.trace.call.abstract_eval import flatten_described_call
from hologram.trace.call.jit import Jitted, jit
from hologram.trace.call.trace_call import Traced
from hologram.trace.checks import as_function


def export(f: Callable[..., Any], /, *args: Any, **options: Any) -> Program:
    """Exports a function as a program that can be saved: ``f``, jitted if it is not yet, for the types of these arguments.

    ``args`` and ``options`` are those of a call; only their types count, and a :class:`~hologram.ShapeDtypeStruct` may stand for an array. Static
    arguments become part of the program, which is called without them; axes that ``jit`` was told are dynamic keep their symbols. Values that the
    function has taken from around it are saved with it.

    Raises ExportError for what a file cannot hold: a ``pure_callback``, a registered class among arguments or results; ArgumentError for what is
    no function.

    >>> def scaled(x):
    ...     return x * 2
    >>> program = hg.export(scaled, hg.ShapeDtypeStruct((3,), "float32"))
    >>> program
    <program scaled(x: float32[3]) -> float32[3]>
    >>> program.save("scaled.hg")
    """
    jitted = f if isinstance(f, Jitted) else jit(as_function(f, "export"))
    call = flatten_described_call(jitted._signature, args, options)
    if isinstance(jitted, Program):
        return jitted
    traced = jitted._trace(call)
    names = [p for i, p in enumerate(jitted._signature.parameters) if i not in call.statics]
    positional = call.treedef.children[0].children
    specification = Specification(jitted.__name__, names[: len(positional)], call.treedef, call.types, traced.assumptions)
    _require_savable(specification, traced)
    return Program(specification, traced, jitted._donated_leaves(call), jitted._precision, jitted._device)


def _require_savable(specification: Specification, traced: Traced) -> None:
    try:
        GraphWriter().graph(traced.graph)
        encode_tree(specification.treedef, "the arguments")
        encode_tree(traced.out_tree, "the results")
    except ExportError as e:
        raise located(e) from None
