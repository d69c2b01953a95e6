"""What a call of a jitted function looks like from outside: static values, structure, and the type of every leaf.

Two calls with equal :attr:`Call.key` run the same code.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, StaticArgumentError, TreeError
from hologram.ir.op import Shape
from hologram.ir.symbolic import substitute, var
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.array_classes import check_unmasked
from hologram.trace.checks import has_items, integer
from hologram.trace.convert import asarray, of_device
from hologram.trace.operators import SCALARS, is_array_like, is_wide
from hologram.trace.tensor import Tensor
from hologram.trace.tree import Treedef

AUTOMATIC = "auto"  # axes turn symbolic by themselves: hologram.trace.call.automatic
Dynamic = bool | str | Mapping[int | str, int | Iterable[int]]


class LeafType:
    """Type of one leaf of the arguments; ``weak`` for a Python scalar. Extents may be symbols."""

    __slots__ = ("shape", "dtype", "weak")

    def __init__(self, shape: Shape, dtype: DType, weak: bool) -> None:
        self.shape, self.dtype, self.weak = shape, dtype, weak

    def __repr__(self) -> str:
        return f"Python {_SCALAR_NAMES[self.dtype]}" if self.weak else f"{self.dtype}{list(self.shape)}"


# a Python number is a weak argument that keeps its precision
SCALAR_TYPES = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
_SCALAR_NAMES = {dtype: kind.__name__ for kind, dtype in SCALAR_TYPES.items()}


class Call:
    """One call, flattened. ``leaves`` are the dynamic values: Tensors, NumPy arrays, NumPy's and Python's scalars; ``keywords`` the names as the
    caller wrote them; ``sizes`` the values that symbolic extents have in this call."""

    __slots__ = ("key", "leaves", "types", "treedef", "statics", "keywords", "sizes")

    def __init__(
        self,
        leaves: list[Any],
        types: list[LeafType],
        treedef: Treedef,
        statics: dict[int | str, Any],
        static_key: Any,
        keywords: tuple[str, ...],
        sizes: dict[str, int],
    ) -> None:
        self.leaves, self.types, self.treedef, self.statics, self.keywords, self.sizes = leaves, types, treedef, statics, keywords, sizes
        self.key: Any = (treedef, static_key, *[p for t in types for p in (t.shape, t.dtype, t.weak)])

    def concrete(self) -> Call:
        """The same call without symbols."""
        types = [LeafType(tuple(substitute(n, self.sizes) for n in t.shape), t.dtype, t.weak) for t in self.types]
        return Call(self.leaves, types, self.treedef, self.statics, self.key[1], self.keywords, {})

    def symbolic(self, axes: Collection[tuple[int, int]]) -> Call:
        """The same call with symbols for these axes, pairs of a leaf and its axis; see :func:`_with_symbols`."""
        types, sizes = _with_symbols(self.types, lambda leaf, axis: (leaf, axis) in axes)
        return Call(self.leaves, types, self.treedef, self.statics, self.key[1], self.keywords, sizes)

    def arguments(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments to call the function with: the static ones in their places, ``leaves`` for the dynamic ones."""
        args, options = tree.unflatten(self.treedef, leaves)
        args = list(args)
        for place, value in self.statics.items():  # positions ascend
            if isinstance(place, int):
                args.insert(place, value)
            else:
                options[place] = value
        return args, options


def _names(given: str | Iterable[str] | None) -> Iterable[str]:
    return () if given is None else (given,) if isinstance(given, str) else given


class Signature:
    """How the calls of ``function`` are flattened."""

    __slots__ = ("name", "parameters", "static_positions", "static_names", "automatic", "dynamic", "_accepts", "_optional")

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: int | Iterable[int] | None,
        static_argnames: str | Iterable[str] | None,
        dynamic: Dynamic,
    ) -> None:
        self.name = name_of(function)
        self.parameters, self._accepts, self._optional = _parameters(function)
        positions = self.positions("static_argnums", static_argnums)
        names = {self._named("static_argnames", n) for n in _names(static_argnames)}
        positions |= {i for i, p in enumerate(self.parameters) if p in names}
        names |= {self.parameters[p] for p in positions if p < len(self.parameters)}
        self.static_positions, self.static_names = sorted(positions), frozenset(names)
        self.automatic = dynamic == AUTOMATIC
        self.dynamic: bool | str | dict[int | str, tuple[int, ...]] = (
            dynamic if self.automatic or isinstance(dynamic, bool) else self._dynamic_places(dynamic)  # type: ignore[assignment, arg-type]
        )

    def positions(self, option: str, numbers: int | Iterable[int] | None) -> set[int]:
        """The positions that an option of ``jit`` names, from 0. Raises ArgumentError for what is no position of the function."""
        given: Iterable[Any] = () if numbers is None else numbers if has_items(numbers) else (numbers,)  # type: ignore[assignment]
        return {self._position(option, p) for p in given}

    def named_places(self, option: str, names: str | Iterable[str] | None) -> set[int | str]:
        """The names in an option of ``jit``, and the positions of those that have one. Raises ArgumentError for what is no parameter's name."""
        given = {self._named(option, n) for n in _names(names)}
        return {*given, *[i for i, p in enumerate(self.parameters) if p in given]}

    def _position(self, option: str, given: Any) -> int:
        p, count = integer(given, "jit", option), len(self.parameters)
        if not -count <= p < count and (p < 0 or "*" not in self._accepts):
            raise located(ArgumentError(f"jit: {option}: {self.name} has {count} positional parameters, none at {p}"))
        return p + count if p < 0 else p

    def _named(self, option: str, name: str) -> str:
        if name not in self.parameters and name not in self._accepts and "**" not in self._accepts:
            raise located(ArgumentError(f"jit: {option}: {self.name} has no parameter {name!r}"))
        return name

    def _dynamic_places(self, dynamic: Mapping[int | str, int | Iterable[int]]) -> dict[int | str, tuple[int, ...]]:
        """The axes that ``dynamic`` names, by position, or by name for what has none."""
        if not isinstance(dynamic, Mapping):
            what = repr(dynamic) if isinstance(dynamic, str) else type(dynamic).__name__
            raise located(ArgumentError(f"jit: dynamic is a bool, 'auto' or a dict from arguments to axes, not {what}"))
        places: dict[int | str, tuple[int, ...]] = {}
        for k, v in dynamic.items():
            place: int | str = self._named("dynamic", k) if isinstance(k, str) else self._position("dynamic", k)
            place = self.parameters.index(place) if place in self.parameters else place
            name = place if isinstance(place, str) else self.parameter(place)
            axes: tuple[Any, ...] = tuple(v) if has_items(v) else (v,)  # type: ignore[arg-type]
            if place in self.static_positions or name in self.static_names:
                raise located(ArgumentError(f"jit: dynamic: {name} is static"))
            if not all(type(a) is int for a in axes):
                raise located(ArgumentError(f"jit: dynamic: the axes of {name} are integers, not {v!r}"))
            places[place] = places.get(place, ()) + axes
        return places

    def parameter(self, position: int) -> str:
        """The name of a positional argument, for messages."""
        return self.parameters[position] if position < len(self.parameters) else f"argument {position}"

    def flatten_call(self, args: tuple[Any, ...], options: dict[str, Any]) -> Call:
        """The call's parts. Raises StaticArgumentError, TreeError, ArgumentError, naming the argument."""
        statics: dict[int | str, Any] = {}
        keywords = tuple(options)
        if self.static_names or self.static_positions:
            statics = {p: args[p] for p in self.static_positions if p < len(args)}
            args = tuple([a for i, a in enumerate(args) if i not in statics])
            statics |= {n: options[n] for n in sorted(self.static_names & options.keys())}
            options = {n: v for n, v in options.items() if n not in statics}
        options = OrderedDict(options)  # in the caller's order, as native code walks it
        try:
            leaves, treedef = tree.flatten((args, options))
        except TreeError as e:
            raise located(e) from None
        types: list[LeafType] = []
        for i, x in enumerate(leaves):
            kind = type(x)
            if kind is Tensor:
                if is_wide(x):  # a number of Python's, with all its digits
                    x = leaves[i] = x.item()
            elif kind not in SCALARS:
                x = leaves[i] = self._array(x, i, args, options, statics)
            types.append(_type_of(x))
        sizes: dict[str, int] = {}
        if self.dynamic and not self.automatic:
            types, sizes = self._make_symbolic(types, args, options, statics)
        static_key = tuple([self._static_key(place, value) for place, value in statics.items()])
        return Call(leaves, types, treedef, statics, static_key, keywords, sizes)

    def _static_key(self, place: int | str, value: Any) -> Any:
        try:
            hash(value)
        except TypeError:
            name = place if isinstance(place, str) else self.parameter(place)
            what = f"the static argument {name} is a {type(value).__name__}"
            raise located(StaticArgumentError(f"{self.name}: {what}, which cannot be hashed: pass a tuple or another immutable value")) from None
        return place, exactly(value)

    def _array(self, x: Any, i: int, args: Any, options: Any, statics: Any) -> Any:
        """A leaf that is neither Tensor nor Python scalar as an array, a NumPy scalar or a Tensor."""
        if isinstance(x, (np.ndarray, np.generic)):
            check_unmasked(x, self.name)
            if isinstance(x, np.matrix):  # whose products with * the function would not have
                raise located(ArgumentError(f"{self.name}: np.matrix is not supported: pass np.asarray(x), whose operators work by element"))
            try:
                dtypes.of(x.dtype)
            except TypeError as e:
                raise located(ArgumentError(f"{self.name}: {self.paths(args, options, statics)[i]}: {e}")) from None
            return x if isinstance(x, np.generic) else np.asarray(x)
        if hasattr(x, "__cuda_array_interface__"):
            return of_device(x, borrow=True)
        if is_array_like(x):
            return asarray(x)
        raise located(
            ArgumentError(
                f"{self.name}: {self.paths(args, options, statics)[i]} is a {type(x).__name__}, which is no array: name it in static_argnums or "
                "static_argnames, or make its class a pytree with hg.tree.register"
            )
        )

    def paths(self, args: Any, options: Any, statics: Mapping[int | str, Any]) -> list[str]:
        """Where each leaf of the dynamic arguments stands: ``x``, ``params['w'][0]``."""
        positions = [i for i in range(len(args) + len(statics)) if i not in statics]
        found = [p for i, a in zip(positions, args, strict=False) for p, _ in tree.paths(a, self.parameter(i))]
        return found + [p for n, value in options.items() for p, _ in tree.paths(value, n)]

    def paths_of(self, call: Call) -> list[str]:
        """As :meth:`paths`, of a flattened call."""
        args, options = tree.unflatten(call.treedef, call.leaves)
        return self.paths(args, options, call.statics)

    def _make_symbolic(self, types: list[LeafType], args: Any, options: Any, statics: Any) -> tuple[list[LeafType], dict[str, int]]:
        """The types with symbols for the axes that ``dynamic`` names, and the symbols' values."""
        allowed = self._dynamic_axes(args, options, statics)

        def is_open(leaf: int, axis: int) -> bool:
            axes = allowed[leaf]
            return axes is None or axis in axes or axis - len(types[leaf].shape) in axes

        return _with_symbols(types, is_open)

    def _dynamic_axes(self, args: Any, options: Any, statics: Any) -> list[Any]:
        """For each leaf the axes that may be symbolic; None for all. Raises ArgumentError for an argument or axis that is not there."""
        if self.dynamic is True:
            return [None] * (len(tree.leaves(args)) + len(tree.leaves(options)))
        assert isinstance(self.dynamic, dict)
        positions = [i for i in range(len(args) + len(statics)) if i not in statics]
        places: list[int | str] = [*positions[: len(args)], *[self.parameters.index(n) if n in self.parameters else n for n in options]]
        out: list[Any] = []
        for place, value in zip(places, [*args, *options.values()], strict=True):
            axes, leaves = self.dynamic.get(place, ()), tree.leaves(value)
            self._check_axes(place, axes, leaves)
            out += [axes] * len(leaves)
        for place in self.dynamic:
            if place not in places and place not in self._optional:
                name = place if isinstance(place, str) else self.parameter(place)
                raise located(ArgumentError(f"{self.name}: dynamic names {name}, which this call does not have"))
        return out

    def _check_axes(self, place: int | str, axes: tuple[int, ...], leaves: list[Any]) -> None:
        """Some leaf must have each axis: in a container, scalars may stand beside arrays."""
        rank = max((getattr(x, "ndim", 0) for x in leaves), default=None)
        for axis in axes:
            if rank is not None and not -rank <= axis < rank:
                name = place if isinstance(place, str) else self.parameter(place)
                raise located(ArgumentError(f"{self.name}: dynamic names axis {axis} of {name}, which has {rank} axes"))


def _with_symbols(types: list[LeafType], is_open: Callable[[int, int], bool]) -> tuple[list[LeafType], dict[str, int]]:
    """Duck shaping: equal sizes of open axes share a symbol; sizes 0 and 1, which broadcast differently, stay. Gives the symbols' values too."""
    symbols: dict[int, Any] = {}
    out: list[LeafType] = []
    for leaf, t in enumerate(types):
        shape = list(t.shape)
        for axis, n in enumerate(shape):
            if isinstance(n, int) and n > 1 and is_open(leaf, axis):
                if n not in symbols:
                    symbols[n] = var(f"n{len(symbols)}", low=2)
                shape[axis] = symbols[n]
        out.append(LeafType(tuple(shape), t.dtype, t.weak) if shape else t)
    return out, {f"n{i}": n for i, n in enumerate(symbols)}


def exactly(value: Any) -> Any:
    """A key that tells apart what ``==`` does not: 1, 1.0 and True, 0.0 and -0.0; and finds NaN again. Inside tuples and frozensets too."""
    kind = type(value)
    if kind is float:
        return float, value.hex()
    if kind is complex:
        return complex, value.real.hex(), value.imag.hex()
    if issubclass(kind, tuple):
        return kind, tuple([exactly(v) for v in value])
    return kind, frozenset([exactly(v) for v in value]) if kind is frozenset else value


def _type_of(x: Any) -> LeafType:
    if type(x) is Tensor:
        return LeafType(*x._aval(), False)
    if isinstance(x, (np.ndarray, np.generic)):
        return LeafType(x.shape, dtypes.of(x.dtype), False)
    return LeafType((), SCALAR_TYPES[type(x)], True)


def name_of(function: Any) -> str:
    """A function's own name; that of the function inside a partial; else its class's."""
    inner = getattr(function, "func", function)
    return getattr(function, "__name__", None) or getattr(inner, "__name__", None) or type(function).__name__


_OPEN: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def _parameters(function: Any) -> tuple[list[str], set[str], set[int | str]]:
    """Names of the positional parameters; what else may be given: keywords by name, any positions ("*") or any names ("**"); and the positions
    and names of those that have a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # builtins without a signature
        return [], {"*", "**"}, set()
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    others = {_OPEN.get(p.kind, p.name) for p in parameters if p.name not in positional}
    optional: set[int | str] = {p.name for p in parameters if p.default is not p.empty}
    return positional, others, optional | {i for i, name in enumerate(positional) if name in optional}
