"""Symbolic sizes: Dynamo's symbols as variables of Hologram's programs, so that one program serves every size.

Dynamo's sizes are sympy expressions; Hologram's are polynomials with divisions (:mod:`hologram.ir.symbolic`). What is no such polynomial, or needs a
fact that Dynamo has not promised, becomes an assumption that each call tests, or raises NotSymbolic: the graph then has one program for each size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch import fx
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Max, Min, Mod, PythonMod

from hologram.ir.symbolic import Expr, Int, bounds, floordiv, mod, substitute, var

MIN_SIZE = 2  # of a symbolic extent: axes of 0 and 1 broadcast, and have programs of their own


class NotSymbolic(Exception):
    """Why a graph needs to know its sizes."""


class SymbolicSizes(Mapping[Any, Int]):
    """The variables that stand for Dynamo's symbols. Symbols of equal values share a variable: Dynamo has one for each axis of each argument, and the
    caches of all layers grow alike.

    ``assumptions``: polynomials that are not negative in a call that the program serves, in which the equal symbols are equal again.
    """

    def __init__(self, values: Mapping[Any, int]) -> None:
        of_value: dict[int, Expr] = {}
        self._variables = {s: of_value.setdefault(n, var(f"hg_{s}", MIN_SIZE)) for s, n in values.items()}
        self._sample = {str(v): n for n, v in of_value.items()}
        self.assumptions: dict[Expr, None] = {v - MIN_SIZE: None for v in of_value.values()}  # type: ignore[misc]

    def __getitem__(self, symbol: Any) -> Int:
        return self._variables[symbol]

    def __iter__(self) -> Any:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def assume(self, slack: Int) -> None:
        """Takes it that ``slack`` is not negative. Raises NotSymbolic where it is for all sizes."""
        low, high = bounds(slack)
        if high is not None and high < 0:
            raise NotSymbolic(f"{slack} is negative")
        if isinstance(slack, Expr) and (low is None or low < 0):
            self.assumptions[slack] = None

    def integer(self, of: Any) -> Int:
        """The polynomial that equals a sympy expression. Raises NotSymbolic where there is none, KeyError for a symbol that is not one of these."""
        if of.is_Integer:
            return int(of)
        if of.is_Symbol:
            return self._variables[of]
        convert = _CONVERSIONS.get(of.func)
        if convert is None:
            raise NotSymbolic(f"the size {of}")
        return convert(self, *of.args)

    def product(self, *factors: Any) -> Int:
        return functools.reduce(lambda x, y: x * y, map(self.integer, factors))

    def quotient(self, a: Any, b: Any) -> Int:
        return floordiv(*self._divided(a, b))

    def remainder(self, a: Any, b: Any) -> Int:
        return mod(*self._divided(a, b))

    def _divided(self, a: Any, b: Any) -> tuple[Int, Int]:
        """Programs divide what is not negative by what is positive."""
        x, y = self.integer(a), self.integer(b)
        self.assume(x)
        self.assume(y - 1)
        return x, y

    def extremum(self, *values: Any, sign: int) -> Int:
        """The largest of the values for ``sign`` 1, the least for -1: the one that it is for the sizes at hand."""
        known = list(map(self.integer, values))
        found = max(known, key=lambda x: sign * substitute(x, self._sample))  # type: ignore[arg-type, return-value]
        for x in known:
            self.assume(sign * (found - x))
        return found


def _power(sizes: SymbolicSizes, base: Any, exponent: Any) -> Int:
    if not exponent.is_Integer or exponent < 1:
        raise NotSymbolic(f"the size {base}**{exponent}")
    return sizes.product(*[base] * int(exponent))


_CONVERSIONS: dict[Any, Callable[..., Int]] = {
    sympy.Add: lambda sizes, *terms: functools.reduce(lambda x, y: x + y, map(sizes.integer, terms)),
    sympy.Mul: SymbolicSizes.product,
    sympy.Pow: _power,
    FloorDiv: SymbolicSizes.quotient,
    CleanDiv: SymbolicSizes.quotient,
    Mod: SymbolicSizes.remainder,
    PythonMod: SymbolicSizes.remainder,
    Max: functools.partial(SymbolicSizes.extremum, sign=1),
    Min: functools.partial(SymbolicSizes.extremum, sign=-1),
}


def size_sources(placeholders: Iterable[fx.Node]) -> dict[Any, str]:
    """For each symbol that an argument says, the expression of its value in a call, in the order of :func:`sizes_of`."""
    numbers: dict[Any, str] = {}
    extents: dict[Any, str] = {}
    strides: dict[Any, str] = {}
    for node in placeholders:
        val = node.meta.get("val")
        if isinstance(val, torch.SymInt):
            _note(numbers, val, node.name)
        elif isinstance(val, torch.Tensor):
            for i, n in enumerate(val.shape):
                _note(extents, n, f"{node.name}.shape[{i}]")
            for i, n in enumerate(val.stride() if val.layout is torch.strided else ()):
                _note(strides, n, f"{node.name}.stride({i})")
    return strides | extents | numbers


def _note(found: dict[Any, str], of: Any, source: str) -> None:
    if isinstance(of, torch.SymInt) and of.node.expr.is_Symbol:
        found.setdefault(of.node.expr, source)
