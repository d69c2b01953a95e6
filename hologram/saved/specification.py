"""What calls a saved program takes: those it was exported for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hologram.errors import ArgumentError
from hologram.ir.symbolic import Expr, Int, substitute
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.call.signature import Call, LeafType, Signature
from hologram.trace.tree import Treedef


class Specification(Signature):
    """A signature of one structure and one type for each leaf, in which extents may be symbols.

    ``names`` are those of the positional arguments, which may also be given by name; ``treedef`` the structure of ``(args, options)``.
    ``assumptions`` are polynomials in the symbols that are not negative in any call.
    """

    __slots__ = ("names", "treedef", "types", "assumptions")

    def __init__(self, name: str, names: Sequence[str], treedef: Treedef, types: Sequence[LeafType], assumptions: Sequence[Expr]) -> None:
        super().__init__(_anything, (), (), False)
        self.name, self.names, self.treedef, self.types, self.assumptions = name, list(names), treedef, list(types), list(assumptions)

    def parameter(self, position: int) -> str:
        return self.names[position] if position < len(self.names) else f"argument {position}"

    def flatten_call(self, args: tuple[Any, ...], options: dict[str, Any]) -> Call:
        """The call's parts. Raises ArgumentError, naming the argument, for a call that the program was not exported for."""
        call = super().flatten_call(*self.ordered(args, options))
        self.require_structure(call.treedef)
        for given, wanted, path in zip(call.types, self.types, self.paths_of(call), strict=True):
            if given.weak != wanted.weak or given.dtype is not wanted.dtype:
                raise located(ArgumentError(f"{self.name}: {path} is a {given}, and the program was exported for {wanted}"))
        sizes = self.sizes([t.shape for t in call.types])
        return Call(call.leaves, self.types, call.treedef, {}, (), call.keywords, sizes)  # type: ignore[arg-type]

    def ordered(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as the exported call had them: by position, and named ones in its order."""
        positional, named = self.treedef.children
        rest = dict(options)
        missing = [n for n in self.names[len(args) : len(positional.children)] if n in rest]
        args = (*args, *[rest.pop(n) for n in missing])
        known = [n for n in named.data if n in rest]
        return args, {n: rest[n] for n in (*known, *[n for n in rest if n not in known])}

    def require_structure(self, found: Treedef) -> None:
        if found != self.treedef:
            text = f"{self.name} was exported for arguments of the structure {_shown(self.treedef)}, not {_shown(found)}"
            raise located(ArgumentError(text))

    def sizes(self, shapes: Sequence[tuple[Int, ...]]) -> dict[str, Int]:
        """The values of the symbols for arguments of these shapes, which may have symbols of a trace.

        Raises ArgumentError where they differ from the program's, where two symbols have one value, and where an assumption fails.
        """
        values: dict[str, Int] = {}
        for i, (shape, wanted) in enumerate(zip(shapes, [t.shape for t in self.types], strict=True)):
            fits = len(shape) == len(wanted)
            for n, symbol in zip(shape, wanted, strict=False):
                fits = fits and (values.setdefault(str(symbol), n) if isinstance(symbol, Expr) else symbol) == n
            if not fits:
                shown = f"{list(shape)}, and the program was exported for {list(wanted)}"
                also = f" where {', '.join(f'{k} = {v}' for k, v in values.items())}" if values else ""
                raise located(ArgumentError(f"{self.name}: {self._path(i)} has the shape {shown}{also}"))
        self._require_sizes(values)
        return values

    def _require_sizes(self, values: dict[str, Int]) -> None:
        shown = ", ".join(f"{k} = {v}" for k, v in values.items())
        if len(set(values.values())) != len(values) or any(isinstance(n, int) and n < 2 for n in values.values()):
            raise located(ArgumentError(f"{self.name} was exported for sizes from 2 up that differ from each other, not {shown}"))
        for a in self.assumptions:
            try:
                slack = substitute(a, values)
            except ZeroDivisionError:
                slack = -1
            if isinstance(slack, int) and slack < 0:
                raise located(ArgumentError(f"{self.name} was exported for sizes that its slices and indices fit, {a} >= 0, not {shown}"))

    def _path(self, leaf: int) -> str:
        args, options = tree.unflatten(self.treedef, self.types)
        return self.paths(args, options, {})[leaf]

    def __str__(self) -> str:
        """``name(x: float32[n0, 4], *, scale: Python float)``."""
        args, options = tree.unflatten(self.treedef, self.types)
        shown = [f"{self.parameter(i)}: {a}" for i, a in enumerate(args)] + (["*"] if options else []) + [f"{n}: {o}" for n, o in options.items()]
        return f"{self.name}({', '.join(shown)})"


def _anything(*args: Any, **options: Any) -> None:
    """Takes any arguments: which ones a program takes, its structure says."""


def _shown(treedef: Treedef) -> str:
    args, options = treedef.children
    parts = [repr(c) for c in args.children] + [f"{n}={c}" for n, c in zip(options.data, options.children, strict=True)]
    return f"({', '.join(parts)})"
