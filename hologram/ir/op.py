"""The op table: one definition an op.

A definition says everything about an op that is a fact of the op: its name and kind, how the type and shape of its result follow
from its inputs, what it means (``reference``, in NumPy), its algebra, its derivatives, and either its spelling on a machine
or its decomposition into ops that have one. Every stage reads the definition; nothing else in Hologram lists op names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from hologram.dtypes import DType
from hologram.ir.symbolic import Int

Shape = tuple[Int, ...]
# (inputs, attrs) -> (shape, dtype) of the result; raises ShapeError or DTypeError
TypeRule = Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Shape, DType]]

KINDS = (
    "leaf", "elementwise", "movement", "reduce", "scan", "control", "project", "gather", "scatter", "sort", "native", "mark", "host", "contraction",
    "attention", "digits", "runs",
)  # fmt: skip
MULTI_RESULT = ("control", "host")  # kinds whose nodes have several results, which "project" nodes pick


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """The definition of an op.

    - ``arity``: number of inputs, None for any number.
    - ``attrs``: names of the static attributes, in the order in which ``Node.attrs`` holds them.
    - ``optional``: names of attributes that a node may have behind these; a node without them is the node that it was.
    - ``sizes``: names of the attributes, integers or tuples of them, that hold extents and offsets, which may be symbols.
    - ``reference(*arrays, *attrs)``: the meaning, on NumPy arrays of the input types, giving an array of the result's type.
      For elementwise ops it is called on equal shapes or scalars.
    - ``algebra``: words of ``commutative associative idempotent involution``; ``identity`` the neutral element of an elementwise op,
      if any. For reductions and scans ``identity(dtype)`` gives it, and ``empty(dtype)`` the result over no elements (None: an error).
    - ``spelling``: machine spelling by dtype kind; None where ``lower`` decomposes the op.
    - ``lower(*values, *attrs)``: decomposition into other ops, written on the values of a builder (see
      :mod:`hologram.ir.expression_builder`); it sees narrow floats as float32.
    - ``cost``: rough scalar operations an element, for fusion decisions.
    - ``monoid``: for reductions and scans, the elementwise op that combines two elements.
    - ``tests``: the domain for generated tests: ``low`` and ``high`` bound ordinary values (special values come in any case); ``guard``
      names a precondition (``divisor``, ``count``, ``positive``) that the values must be made to keep; ``ulps`` is the bound where it is not 2.
    - ``results(inputs, attrs)``: for ``host`` ops, the (shape, dtype) of every result; ``infer`` gives the first, ``reference`` a list of arrays.
    - ``split``: how the op on complex numbers is made of ops on real ones, by :mod:`hologram.primitives.complex.parts`; None where complex numbers
      are only moved, as bits, or not taken.
    - ``exact``: every backend gives the reference's bits (IEEE-correct or integer); False for math functions.

    What transforms need to know. These rules are written on nodes, with the functions of :mod:`hologram.transform.nodes`, so that they are
    recorded, and transformed, like any other code; :func:`transforms` attaches them.

    - ``jvp(tangents, out, *inputs, *attrs)``: the tangent of ``out``, the op's result on ``inputs``. ``tangents`` has one entry an input, None
      for zero; at least one is not None. A tangent has its value's shape and type. None for a result that is zero everywhere. Ops whose
      derivative is zero or does not exist have a :class:`NoDerivative`.
    - ``transpose(cotangent, linear, *inputs, *attrs)``, for ops that are linear in the inputs whose flag in ``linear`` is True (of which only
      shape and type may be read): a tuple with one cotangent an input, None for zero and where the flag is False.
    - ``accumulate(sums, cotangent, linear, *inputs, *attrs)``, in place of ``transpose``, of ops that hold graphs: ``sums`` has, by input, the
      cotangent that is known already, None for zero, to which the rule adds. So a body that reads little of an array changes little of its
      cotangent, in place.
    - ``batch(size, batched, *inputs, *attrs)``: the op on a stack of ``size`` examples. Inputs whose flag in ``batched`` is True have the stack's
      axis in front, the others are one for all; the result has the axis in front. None, for elementwise ops: they are stacked alike.
    - ``batch_body(what, graph, batched, size)``, of ``scan``: a body for stacks of ``size`` examples.

    An op whose result stands for several values (others pick one) may take and give any object as tangent or cotangent that these others'
    rules understand; cotangents that are tuples are added entry by entry. ``batch`` then gives a node of which every value is stacked.
    """

    name: str
    kind: str
    arity: int | None
    infer: TypeRule
    reference: Callable[..., Any]
    attrs: tuple[str, ...] = ()
    algebra: frozenset[str] = frozenset()
    identity: Any = None
    empty: Callable[[DType], Any] | None = None
    spelling: Mapping[str, Mapping[str, str]] | None = None
    lower: Callable[..., Any] | None = None
    cost: int = 1
    monoid: Op | None = None
    exact: bool = True
    results: Callable[[tuple[Any, ...], tuple[Any, ...]], list[tuple[Shape, DType]]] | None = None
    sizes: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    symbol: str | None = None  # infix spelling in printed graphs
    jvp: Callable[..., Any] | None = None
    transpose: Callable[..., Any] | None = None
    accumulate: Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None
    batch_body: Callable[..., Any] | None = None
    split: Callable[..., Any] | None = None
    kinds: str = "biuf"  # dtype kinds of the (first) input it accepts
    tests: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.name

    def named(self, attrs: Sequence[Any]) -> list[tuple[str, Any]]:
        """The attributes of a node with their names. Raises ValueError where there are too few or too many."""
        return list(zip((*self.attrs, *self.optional[: max(0, len(attrs) - len(self.attrs))]), attrs, strict=True))


class NoDerivative:
    """A ``jvp`` that is zero wherever it exists; ``reason`` says why."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __call__(self, *_: Any) -> None:
        return None


TABLE: dict[str, Op] = {}
_namespaces: dict[tuple[str, str], Any] = {}  # of the module that gave an op its definition, or one of its rules


def _is_doubled(op: str, part: str, is_there: bool) -> bool:
    """Notes which module, being imported, says something of an op; whether it ``is_there`` already. An import that an interrupt ended is begun again,
    in a new namespace: what it had said is said once more."""
    frame: Any = sys._getframe(1)
    while frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    here, before = frame.f_globals, _namespaces.get((op, part))
    if is_there and (before is None or before is here or before["__name__"] != here["__name__"]):
        return True
    _namespaces[op, part] = here
    return False


def register(op: Op) -> Op:
    """Adds an op definition; an incomplete or doubled one fails here, at import."""
    if _is_doubled(op.name, "definition", op.name in TABLE):
        raise ValueError(f"op {op.name} has two definitions")
    if op.kind not in KINDS:
        raise ValueError(f"op {op.name}: unknown kind {op.kind}")
    if op.kind == "elementwise" and [op.spelling, op.lower].count(None) != 1 and (op.spelling is not None or op.split is None):
        raise ValueError(f"op {op.name} needs a spelling or a decomposition, and not both")
    if (op.kind == "host") != (op.results is not None):
        raise ValueError(f"op {op.name}: host ops, and no others, list the types of their results")
    if op.kind == "scan" and op.monoid is None:
        raise ValueError(f"op {op.name} needs the op that combines two elements")
    if op.kind in ("reduce", "scan", "scatter") and (op.monoid is None) != (op.identity is None):
        raise ValueError(f"op {op.name} needs both a monoid and its identity, or neither")
    TABLE[op.name] = op
    return op


def on_complex(op: Op, split: Callable[..., Any], infer: TypeRule, reference: Callable[..., Any]) -> Op:
    """Makes an op take complex numbers as well, once: how it splits, its type rule and its reference for all kinds."""
    if _is_doubled(op.name, "split", op.split is not None):
        raise ValueError(f"op {op.name} takes complex numbers already")
    kinds = op.kinds if "c" in op.kinds or op.kinds == "b" else op.kinds + "c"
    for name, value in (("split", split), ("infer", infer), ("reference", reference), ("kinds", kinds)):
        object.__setattr__(op, name, value)
    return op


def transforms(op: Op, **rules: Callable[..., Any]) -> Op:
    """Attaches ``jvp``, ``transpose``, ``accumulate``, ``batch`` or ``batch_body`` to an op, each once.

    The rules record, so they are defined after what records.
    """
    for name, rule in rules.items():
        if name not in ("jvp", "transpose", "accumulate", "batch", "batch_body") or _is_doubled(op.name, name, getattr(op, name) is not None):
            raise ValueError(f"op {op.name}: {name} is not a rule for transforms, or is there already")
        object.__setattr__(op, name, rule)
    return op


def load_transforms() -> None:
    """Sees to it that the rules of transforms are attached. They are written with what records, so the package that has them is named here and
    imported when a rule is first asked for."""
    import_module("hologram.transform")
