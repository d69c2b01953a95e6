"""Patterns: algebra over nodes, written as Python expressions of named variables.

``x * 1`` matches a product one of whose operands is the constant one; as the right-hand side of a rule the same language says what
to build. A variable that occurs twice must stand for one node. Numbers match constants of any element type that holds the
number exactly, by their bits: ``0.0`` and ``-0.0`` are different patterns. Commutative ops match either way round.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from hologram.dtypes import DType, bool_
from hologram.ir.node import Builder, Node, const_attrs
from hologram.ir.op import TABLE

Bindings = dict[str, Node]


class Pattern:
    """Base of the three kinds of pattern; its operators build :class:`Apply`."""

    __slots__ = ()

    def __add__(self, o: Any) -> Apply:
        return Apply("add", self, o)

    def __radd__(self, o: Any) -> Apply:
        return Apply("add", o, self)

    def __sub__(self, o: Any) -> Apply:
        return Apply("sub", self, o)

    def __rsub__(self, o: Any) -> Apply:
        return Apply("sub", o, self)

    def __mul__(self, o: Any) -> Apply:
        return Apply("mul", self, o)

    def __rmul__(self, o: Any) -> Apply:
        return Apply("mul", o, self)

    def __truediv__(self, o: Any) -> Apply:
        return Apply("div", self, o)

    def __rtruediv__(self, o: Any) -> Apply:
        return Apply("div", o, self)

    def __neg__(self) -> Apply:
        return Apply("neg", self)

    def __and__(self, o: Any) -> Apply:
        return Apply("and", self, o)

    def __or__(self, o: Any) -> Apply:
        return Apply("or", self, o)

    def __xor__(self, o: Any) -> Apply:
        return Apply("xor", self, o)

    def __invert__(self) -> Apply:
        return Apply("not", self)

    def __lt__(self, o: Any) -> Apply:
        return Apply("lt", self, o)

    def __le__(self, o: Any) -> Apply:
        return Apply("le", self, o)

    def __gt__(self, o: Any) -> Apply:
        return Apply("gt", self, o)

    def __ge__(self, o: Any) -> Apply:
        return Apply("ge", self, o)

    def variables(self) -> Iterator[Var]:
        """Every variable, in reading order, as often as it occurs."""
        raise NotImplementedError

    def alternatives(self) -> list[Pattern]:
        """The pattern with the operands of commutative ops in every order."""
        return [self]

    def match(self, node: Node, m: Bindings) -> bool:
        """Whether ``node`` has this form; fills ``m``, also with leftovers when it has not."""
        raise NotImplementedError

    def build(self, m: Bindings, b: Builder, dtype: DType) -> Node | None:
        """The node this pattern says under ``m``; a bare number takes ``dtype``. None where that type cannot hold it."""
        raise NotImplementedError


class Var(Pattern):
    """Any node; ``const=True``: any ``const`` node. ``kinds``: the dtype kinds it takes, where the rule does not say."""

    __slots__ = ("name", "const", "kinds")

    def __init__(self, name: str, *, const: bool = False, kinds: str | None = None) -> None:
        self.name, self.const, self.kinds = name, const, kinds

    def variables(self) -> Iterator[Var]:
        yield self

    def match(self, node: Node, m: Bindings) -> bool:
        seen = m.get(self.name)
        if seen is not None:
            return seen is node
        if self.const and node.op.name != "const" or self.kinds is not None and node.dtype.kind not in self.kinds:
            return False
        m[self.name] = node
        return True

    def build(self, m: Bindings, b: Builder, dtype: DType) -> Node | None:
        return m[self.name]


class Literal(Pattern):
    """A number, in whatever element type it meets."""

    __slots__ = ("value", "_bits")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._bits: dict[DType, bytes | None] = {}

    def bits(self, dtype: DType) -> bytes | None:
        """The number in ``dtype``; None where it has no exact place there."""
        if dtype not in self._bits:
            _, bits = const_attrs(self.value, dtype)
            self._bits[dtype] = bits if np.frombuffer(bits, dtype.np)[0] == self.value else None
        return self._bits[dtype]

    def variables(self) -> Iterator[Var]:
        return iter(())

    def match(self, node: Node, m: Bindings) -> bool:
        return node.op.name == "const" and self.bits(node.dtype) == node.attrs[1]

    def build(self, m: Bindings, b: Builder, dtype: DType) -> Node | None:
        bits = self.bits(dtype)
        return None if bits is None else b(TABLE["const"], (), (dtype.name, bits))


class _Ones(Literal):
    """All bits set: ``True``, -1, or an unsigned type's largest."""

    __slots__ = ()

    def bits(self, dtype: DType) -> bytes | None:
        if dtype.kind == "b":
            return b"\x01"
        return b"\xff" * dtype.itemsize if dtype.is_integer else None


class Apply(Pattern):
    """The op of the given name on patterns or numbers; only ops without attributes."""

    __slots__ = ("op", "inputs")

    def __init__(self, op: str, *inputs: Any) -> None:
        self.op = op
        self.inputs = tuple(i if isinstance(i, Pattern) else Literal(i) for i in inputs)

    def variables(self) -> Iterator[Var]:
        for i in self.inputs:
            yield from i.variables()

    def alternatives(self) -> list[Pattern]:
        out: list[Pattern] = []
        for inputs in itertools.product(*(i.alternatives() for i in self.inputs)):
            out.append(Apply(self.op, *inputs))
            op = TABLE.get(self.op)
            if op is not None and "commutative" in op.algebra and _differ(*inputs):
                out.append(Apply(self.op, *reversed(inputs)))
        return out

    def match(self, node: Node, m: Bindings) -> bool:
        if node.op.name != self.op:
            return False
        for p, i in zip(self.inputs, node.inputs, strict=True):
            if not p.match(i, m):
                return False
        return True

    def build(self, m: Bindings, b: Builder, dtype: DType) -> Node | None:
        values: list[Node | None] = [None if isinstance(p, Literal) else p.build(m, b, dtype) for p in self.inputs]
        first_typed = int(self.op == "select")  # a select's condition types nothing
        beside = next((v.dtype for v in values[first_typed:] if v is not None), dtype)
        for i, p in enumerate(self.inputs):
            if isinstance(p, Literal):
                values[i] = p.build(m, b, bool_ if i < first_typed else beside)
        return None if None in values else b(TABLE[self.op], tuple(v for v in values if v is not None))


def _differ(left: Pattern, right: Pattern) -> bool:
    return not (isinstance(left, Var) and isinstance(right, Var) and left.name == right.name)


def spelled(name: str) -> Callable[..., Apply]:
    """What writes the op ``name`` in a pattern: ``exp = spelled("exp")``, then ``exp(x)``."""
    return lambda *inputs: Apply(name, *inputs)


def free(pattern: Pattern, bound: Mapping[str, Any]) -> list[str]:
    """Names in ``pattern`` that are not in ``bound``."""
    return sorted({v.name for v in pattern.variables()} - set(bound))


ones = _Ones("ones")
x, y, z = Var("x"), Var("y"), Var("z")
c, d = Var("c", const=True), Var("d", const=True)  # constants
p, q = Var("p", kinds="b"), Var("q", kinds="b")  # truth values
