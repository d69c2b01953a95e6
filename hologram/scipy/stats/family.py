"""Families of distributions: what their methods share. A family gives formulas of the standard form; location and scale, what lies beyond the
support, and the methods that follow from others are here.

Formulas get Tensors of one float type, and points inside the support alone: a point beyond it is replaced before, and the result after, so that
derivatives are finite. Parameters that a family does not allow, and scales that are not positive, give NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hologram.numpy as hnp
from hologram import dtypes, special
from hologram.control.loops import fori_loop
from hologram.errors import ArgumentError, UnsupportedError
from hologram.numpy.arguments import shape_of, wrap
from hologram.support.user_lines import located
from hologram.trace.operators import promoted
from hologram.trace.tensor import Tensor
from hologram.transform.api import stop_gradient

__all__ = ["Continuous", "Discrete", "special_function"]

INF = float("inf")
NAN = float("nan")
Formula = Callable[..., Tensor]


def special_function(name: str, what: str) -> Callable[..., Tensor]:
    """A function of :mod:`hologram.special`. Raises UnsupportedError for one that this version does not have."""
    found = getattr(special, name, None)
    if found is None:
        raise located(UnsupportedError(f"{what} is made of special.{name}, which is not there"))
    return found


class Family:
    """What continuous and discrete families share: names of parameters, and the reading of arguments."""

    name: str
    shapes: tuple[str, ...] = ()  # parameters in front of loc
    scaled: tuple[str, ...] = ("loc",)
    low: float = -INF
    high: float = INF
    inside: float = 0.0  # a point of the support, at which every formula is finite

    def __init__(self, name: str) -> None:
        self.name = name
        self.__doc__ = type(self).__doc__

    def __repr__(self) -> str:
        return f"<distribution {self.name}>"

    def _values(self, method: str, x: Any, args: Sequence[Any], named: dict[str, Any]) -> tuple[Tensor, list[Tensor], Tensor, Any]:
        """``x``, the parameters of shape, the location and the scale (1 where there is none), in one float type."""
        what = f"stats.{self.name}.{method}"
        names = (*self.shapes, *self.scaled)
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names) or (twice := given.keys() & named.keys()) or (unknown := named.keys() - set(names)):
            wrong = f"{len(args)} parameters" if len(args) > len(names) else f"{', '.join(sorted(twice or unknown))}"
            raise located(ArgumentError(f"{what} takes {', '.join(names)}, each once, not {wrong}"))
        given = {"loc": 0, "scale": 1} | given | named
        if lacking := [n for n in self.shapes if n not in given]:
            raise located(ArgumentError(f"{what}: {' and '.join(lacking)} must be given"))
        nodes, _, weak = promoted(what, [x, *[given[n] for n in names]], dtypes.to_inexact, keep=True)
        point, *rest = [wrap(n, weak) for n in nodes]
        if point.dtype.kind == "c":
            raise located(ArgumentError(f"{what} takes real numbers"))
        count = len(self.shapes)
        return point, rest[:count], rest[count], rest[count + 1] if "scale" in self.scaled else None

    def _formula(self, *names: str) -> Formula | None:
        """The first of these formulas that the family gives itself."""
        for name in names:
            if getattr(type(self), name, None) is not None:
                return getattr(self, name)
        return None

    def _absent(self, method: str) -> Exception:
        return located(UnsupportedError(f"stats.{self.name} has no {method}"))

    def _probability(self, kind: str) -> Formula:
        """``cdf`` or ``sf``, from what the family gives."""
        other = "_sf" if kind == "cdf" else "_cdf"
        if (own := self._formula(f"_{kind}")) is not None:
            return own
        if (log := self._formula(f"_log{kind}")) is not None:
            return lambda z, *s: hnp.exp(log(z, *s))
        if (complement := self._formula(other)) is not None:
            return lambda z, *s: 1 - complement(z, *s)
        raise self._absent(kind)

    def _log_probability(self, kind: str) -> Formula:
        if (own := self._formula(f"_log{kind}")) is not None:
            return own
        probability, other = self._probability(kind), "sf" if kind == "cdf" else "cdf"
        if self._formula(f"_{other}", f"_log{other}") is None:
            return lambda z, *s: hnp.log(probability(z, *s))
        complement = self._probability(other)

        def log(z: Tensor, *s: Tensor) -> Tensor:
            """Next to 1 the complement has the digits."""
            p, rest = probability(z, *s), complement(z, *s)
            likely = rest < 0.5
            return hnp.where(likely, hnp.log1p(-hnp.where(likely, rest, 0.0)), hnp.log(hnp.where(likely, 1.0, p)))

        return log

    def _valid(self, *shapes: Tensor) -> Any:
        """Whether parameters are allowed: by default those that are positive."""
        valid: Any = True
        for s in shapes:
            valid = valid & (s > 0)
        return valid

    def _support(self, *shapes: Tensor) -> tuple[Any, Any]:
        return self.low, self.high

    def _middle(self, *shapes: Tensor) -> Any:
        return self.inside

    def _key_and_shape(self, named: dict[str, Any]) -> tuple[Any, Any]:
        key, size = named.pop("random_state", None), named.pop("size", None)
        if key is None:
            raise located(ArgumentError(f"stats.{self.name}.rvs: random_state is a key: hg.random.key(seed)"))
        return key, size

    def _drawn(self, args: Sequence[Any], named: dict[str, Any]) -> Tensor:
        key, size = self._key_and_shape(named)
        _, shapes, loc, scale = self._values("rvs", 0, args, named)
        factors = [*shapes, loc, *([] if scale is None else [scale])]
        shape = hnp.broadcast_shapes(*(p.shape for p in factors)) if size is None else shape_of(size, f"stats.{self.name}.rvs")
        draw = self._formula("_rvs")
        if draw is None:
            raise self._absent("rvs")
        return _moved(draw(key, tuple(shape), loc.dtype, *shapes), loc, scale)


def _moved(z: Tensor, loc: Tensor, scale: Tensor | None) -> Tensor:
    return z + loc.astype(z.dtype) if scale is None else z * scale + loc


class Continuous(Family):
    """A family of continuous distributions: each method takes its parameters of shape, then ``loc`` and ``scale``, by position or by name.

    Arrays broadcast; results have their common float type.
    """

    scaled = ("loc", "scale")
    _logpdf: Any  # the one formula that every family gives

    def _at(self, method: str, x: Any, args: Any, named: Any, formula: Formula, below: float, above: float, scaled: str = "") -> Tensor:
        """``formula`` at standardised points of the support, ``below`` and ``above`` beyond it; ``scaled`` says how the scale enters densities."""
        point, shapes, loc, scale = self._values(method, x, args, named)
        z = (point - loc) / scale
        low, high = self._support(*shapes)
        under, over, unknown = z < low, z > high, hnp.isnan(z)
        value = formula(hnp.where(under | over | unknown, self._middle(*shapes), z), *shapes)
        if scaled:
            value = value - hnp.log(scale) if scaled == "log" else value / scale
        value = hnp.where(under, below, hnp.where(over, above, value))
        return hnp.where((scale > 0) & ~unknown & self._valid(*shapes), value, NAN)

    def logpdf(self, x: Any, *args: Any, **named: Any) -> Tensor:
        """Logarithm of the density; ``-inf`` beyond the support."""
        return self._at("logpdf", x, args, named, self._logpdf, -INF, -INF, "log")

    def pdf(self, x: Any, *args: Any, **named: Any) -> Tensor:
        """Density; 0 beyond the support."""
        return self._at("pdf", x, args, named, lambda z, *s: hnp.exp(self._logpdf(z, *s)), 0.0, 0.0, "divide")

    def cdf(self, x: Any, *args: Any, **named: Any) -> Tensor:
        """Distribution function: the probability of values up to ``x``."""
        return self._at("cdf", x, args, named, self._probability("cdf"), 0.0, 1.0)

    def sf(self, x: Any, *args: Any, **named: Any) -> Tensor:
        """Survival function, ``1 - cdf``: small values keep their digits."""
        return self._at("sf", x, args, named, self._probability("sf"), 1.0, 0.0)

    def logcdf(self, x: Any, *args: Any, **named: Any) -> Tensor:
        """Logarithm of the distribution function."""
        return self._at("logcdf", x, args, named, self._log_probability("cdf"), -INF, 0.0)

    def logsf(self, x: Any, *args: Any, **named: Any) -> Tensor:
        """Logarithm of the survival function."""
        return self._at("logsf", x, args, named, self._log_probability("sf"), 0.0, -INF)

    def ppf(self, q: Any, *args: Any, **named: Any) -> Tensor:
        """Quantile function, the inverse of :meth:`cdf`; NaN for ``q`` beyond 0 and 1."""
        return self._quantile("ppf", q, args, named)

    def isf(self, q: Any, *args: Any, **named: Any) -> Tensor:
        """Inverse of :meth:`sf`."""
        return self._quantile("isf", q, args, named)

    def rvs(self, *args: Any, **named: Any) -> Tensor:
        """Random numbers of shape ``size`` (that of the parameters by default), drawn with the key ``random_state``, which must be given."""
        return self._drawn(args, named)

    def _quantile(self, method: str, q: Any, args: Any, named: Any) -> Tensor:
        formula, other = self._formula(f"_{method}"), self._formula("_isf" if method == "ppf" else "_ppf")
        if formula is None and other is None:
            formula = self._inverted(method)
        share, shapes, loc, scale = self._values(method, q, args, named)
        low, high = self._support(*shapes)
        first, last = (low, high) if method == "ppf" else (high, low)
        inner = (share > 0) & (share < 1)
        safe = hnp.where(inner, share, 0.5)
        value = formula(safe, *shapes) if formula is not None else other(1 - safe, *shapes)  # type: ignore[misc]  # one of them is there
        value = hnp.where(share == 0, first, hnp.where(share == 1, last, hnp.where(inner, value, NAN)))
        return hnp.where((scale > 0) & self._valid(*shapes), _moved(value, loc, scale), NAN)

    def _inverted(self, method: str) -> Formula:
        """The quantile function from probabilities, by bisection."""
        sign = 1.0 if method == "ppf" else -1.0
        if self._formula("_cdf", "_sf", "_logcdf", "_logsf") is None:
            raise self._absent(method)
        below, above, (low, high) = self._probability("cdf"), self._probability("sf"), (self.low, self.high)
        scale: Formula = hnp.sinh if low == -INF else (hnp.exp if high == INF else lambda u: high * special.expit(u) + low)

        def excess(x: Tensor, q: Tensor, shapes: Sequence[Tensor]) -> Tensor:
            """Of the probability over ``q``, or of ``1 - q`` over the complement where that is smaller: it has the digits."""
            found, rest = (below(x, *shapes), above(x, *shapes))[:: int(sign)]
            return hnp.where(q <= 0.5, found - q, (1 - q) - rest)

        def quantile(q: Tensor, *shapes: Tensor) -> Tensor:
            fixed = [stop_gradient(v) for v in (q, *shapes)]
            x = _bisected(lambda u: sign * excess(scale(u), fixed[0], fixed[1:]), scale, fixed)
            slope = hnp.exp(self._logpdf(x, *fixed[1:]))
            error = excess(x, q, shapes)
            change = error - stop_gradient(error)  # which is 0, and has the derivatives of the implicit function
            return x - sign * change / hnp.where(slope > 0, slope, INF)

        return quantile


def _bisected(excess: Formula, scale: Formula, arguments: Sequence[Tensor]) -> Tensor:
    """Where the rising ``excess`` changes its sign, on a scale on which numbers of all magnitudes are near."""
    like = sum(arguments[1:], arguments[0])
    most, steps = (709.0, 62) if like.dtype.itemsize == 8 else (88.0, 32)

    def halve(_: Any, bounds: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        low, high = bounds
        middle = 0.5 * (low + high)
        beyond = excess(middle) > 0
        return hnp.where(beyond, low, middle), hnp.where(beyond, middle, high)

    low, high = fori_loop(0, steps, halve, (hnp.full_like(like, -most), hnp.full_like(like, most)))
    return scale(0.5 * (low + high))


class Discrete(Family):
    """A family of distributions over integers: each method takes its parameters of shape, then ``loc``, by position or by name.

    Arrays broadcast; results have their common float type. Numbers that are no integers have the probability 0.
    """

    low, inside = 0.0, 0.0
    _logpmf: Any  # the one formula that every family gives

    def _at(self, method: str, k: Any, args: Any, named: Any, formula: Formula, below: float, above: float, fraction: float | None) -> Tensor:
        """``formula`` at points of the support, others beyond it; ``fraction`` between the integers, None to take the integer below."""
        point, shapes, loc, _ = self._values(method, k, args, named)
        z = point - loc
        whole = hnp.floor(z)
        low, high = self._support(*shapes)
        under, over, unknown = whole < low, whole > high, hnp.isnan(z)
        value = formula(hnp.where(under | over | unknown, self._middle(*shapes), whole), *shapes)
        value = hnp.where(under, below, hnp.where(over, above, value))
        value = value if fraction is None else hnp.where(whole == z, value, fraction)
        return hnp.where(~unknown & self._valid(*shapes), value, NAN)

    def logpmf(self, k: Any, *args: Any, **named: Any) -> Tensor:
        """Logarithm of the probability of ``k``; ``-inf`` beyond the support."""
        return self._at("logpmf", k, args, named, self._logpmf, -INF, -INF, -INF)

    def pmf(self, k: Any, *args: Any, **named: Any) -> Tensor:
        """Probability of ``k``; 0 beyond the support."""
        return self._at("pmf", k, args, named, lambda z, *s: hnp.exp(self._logpmf(z, *s)), 0.0, 0.0, 0.0)

    def cdf(self, k: Any, *args: Any, **named: Any) -> Tensor:
        """Distribution function: the probability of values up to ``k``."""
        return self._at("cdf", k, args, named, self._probability("cdf"), 0.0, 1.0, None)

    def sf(self, k: Any, *args: Any, **named: Any) -> Tensor:
        """Survival function, ``1 - cdf``."""
        return self._at("sf", k, args, named, self._probability("sf"), 1.0, 0.0, None)

    def logcdf(self, k: Any, *args: Any, **named: Any) -> Tensor:
        """Logarithm of the distribution function."""
        return self._at("logcdf", k, args, named, self._log_probability("cdf"), -INF, 0.0, None)

    def logsf(self, k: Any, *args: Any, **named: Any) -> Tensor:
        """Logarithm of the survival function."""
        return self._at("logsf", k, args, named, self._log_probability("sf"), 0.0, -INF, None)

    def ppf(self, q: Any, *args: Any, **named: Any) -> Tensor:
        """Quantile function: the least number whose distribution function is at least ``q``; NaN for ``q`` beyond 0 and 1."""
        formula = self._formula("_ppf") or self._least()
        share, shapes, loc, _ = self._values("ppf", q, args, named)
        low, high = self._support(*shapes)
        inner = (share > 0) & (share < 1)
        value = formula(hnp.where(inner, share, 0.5), *shapes)
        value = hnp.where(share == 0, low - 1.0, hnp.where(share == 1, high, hnp.where(inner, value, NAN)))
        return hnp.where(self._valid(*shapes), value + loc, NAN)

    def _least(self) -> Formula:
        """The quantile function by bisection of integers."""
        probability = self._probability("cdf")

        def quantile(q: Tensor, *shapes: Tensor) -> Tensor:
            low, high = (hnp.broadcast_to(hnp.asarray(v).astype(q.dtype), q.shape) for v in self._support(*shapes))
            most, steps = (2.0**52, 53) if q.dtype.itemsize == 8 else (2.0**23, 24)

            def halve(_: Any, bounds: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
                below, reached = bounds
                middle = hnp.floor(0.5 * (below + reached))
                enough = (middle >= low) & (probability(hnp.maximum(middle, low), *shapes) >= q)
                return hnp.where(enough, below, middle), hnp.where(enough, middle, reached)

            return fori_loop(0, steps + 1, halve, (low - 1, hnp.minimum(high, most)))[1]

        return quantile

    def rvs(self, *args: Any, **named: Any) -> Tensor:
        """Random integers of shape ``size`` (that of the parameters by default), drawn with the key ``random_state``, which must be given."""
        return self._drawn(args, named)
