"""Bounds proofs: accesses stay inside their buffers, by interval arithmetic over index expressions.

An index is a polynomial in loop variables, symbols, values that index expressions go through, and quotients and remainders of such. A bound of it
holds for all values of these: each variable in turn, the innermost first, is replaced by the end of its range at which the polynomial is
largest (or smallest), until only symbols are left. Of ``y`` times a quotient ``x // y``, that end is ``x`` (or ``x - y + 1``). A mask adds what its
``inside`` tests say: in ``c*x + rest``, a guarded expression, all that is known is replaced by a fresh variable of the guard's range. Where quotients
and remainders of one number stand beside each other this proves too little; there, all values of the variables are tried, if they are static and few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from hologram.graph.kernel.polynomials import Range, divided, evaluated, linear
from hologram.graph.kernel.verify_guards import MAX_ALTERNATIVES, Guard, guarded, without_division
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Atom, Expr, Int, atoms, bounds, floordiv, mod, substitute, var
from hologram.ir.traversal import reachable

MAX_VARIABLES = 64  # that are replaced in one expression
LARGE_EXTENT = 2**20  # sizes that are larger than all that a program takes for granted
MAX_STEPS = 2_000  # replacements in the search for bounds of one expression: divisions inside of divisions have bounds without number
MAX_DIVISOR = 2**20  # by which an expression is multiplied to get rid of its quotients
MAX_POINTS = 2**22  # of the space of an access that is tried point by point


def _is_inside_by_claims(index: Int, size: Int) -> bool:
    """Whether what the atoms of an access claim of themselves tells enough. It is proved where they are first met; most accesses need no search."""
    low, _ = bounds(index)
    if low is None or low < 0:
        return False
    _, high = bounds(index - size)
    return high is not None and high < 0


def _common_divisor(e: Int) -> int:
    """A number that all constant divisors of quotients in ``e`` divide; 1 where it would be large."""
    terms = e.terms if isinstance(e, Expr) else ()
    divisors = [a.args[1] for m in terms for a in m if a.args and a.key[0] == "floordiv" and isinstance(a.args[1], int)]
    found = math.lcm(*divisors)
    return found if found <= MAX_DIVISOR else 1


class Ranges:
    """The variables in scope, outermost first, and what follows from their ranges."""

    def __init__(self) -> None:
        self.of: dict[str, Range] = {}
        self.guarded: set[str] = set()  # values of any size, whose claims are what guards of accesses say
        self.positive: dict[str, Int] = {}  # symbols that are not 0 where a loop's body runs, as 1 and what is left
        self.least = 0  # that symbols are
        self.quotients: dict[str, tuple[Int, Int]] = {}  # what is divided, and by what, in quotients of symbols that are symbols of their own
        self.steps: int | None = None  # replacements so far, while bounds of one expression are sought
        self.divisions: dict[Atom, list[Int]] = {}  # their upper bounds with what is known so far: quotients of quotients hold one many times

    def copy(self) -> Ranges:
        out = Ranges()
        out.of, out.guarded, out.positive = dict(self.of), set(self.guarded), dict(self.positive)
        out.quotients, out.least = dict(self.quotients), self.least
        return out

    def add(self, name: str, r: Range) -> None:
        self.of[name] = r
        self.divisions.clear()

    def loop(self, name: str, start: Int, extent: Int, limit: Int | None) -> None:
        """``name`` counts ``start .. min(start + extent, limit)``, in a body that runs at least once."""
        known: dict[Atom, Int] = {}
        start, extent, limit = self._opaque(start, known), self._opaque(extent, known), None if limit is None else self._opaque(limit, known)
        highs = [start + extent - 1] if limit is None else [limit - 1, start + extent - 1]
        self.add(name, Range([start], highs))
        if self.is_at_least(start, 0):
            self._are_positive(extent)
            self._are_positive(limit if limit is not None else 1)

    def _are_positive(self, product: Int) -> None:
        """Notes that a product of symbols is not 0: none of them is."""
        if isinstance(product, Expr) and len(product.terms) == 1:
            ((m, _),) = product.terms.items()
            free = [a for a in m if not a.args and a.name not in self.of]
            self.positive.update({a.name: var(a.name, 0, None if a.high is None else a.high - 1) + 1 for a in free})
            self.divisions.clear()

    def value(self, v: Ins) -> None:
        """A named value: an index expression, the least of some, or an index whose extent is known."""
        ends = [a.attrs[0] for a in ((v,) if v.op == "index" else v.args) if isinstance(a, Ins) and a.op == "index"]
        if v.op == "index":
            r = Range(ends, ends)
        elif v.opname == "min" and len(ends) == 2:
            lows = [[e for e in self.bounds_of(end, -1) if isinstance(e, int)] for end in ends]
            r = Range([min(map(max, lows))] if all(lows) else [], ends)
        else:
            r = Range([], ends if v.opname == "min" else [])
        if v.extent is None and v.op != "index":
            self.guarded.add(v.name)
        if v.extent is not None:
            r = Range([0, *r.lows], [v.extent - 1, *r.highs])
        if r.lows or r.highs:
            self.add(v.name, r)

    def is_inside(self, index: Int, size: Int, guards: Iterable[Guard] = ()) -> bool:
        """Whether ``0 <= index < size`` wherever the guards hold. Of symbols a program may take for granted that they are large enough, such as for a
        constant index: so it is proved for all of them, or else for all large ones."""
        if _is_inside_by_claims(index, size):
            return True
        scopes = [self]
        if not all(a.name in self.of for e in (index, size) for a in atoms(e)):
            scopes.append(self.copy())
            scopes[1].least = LARGE_EXTENT
        ways = (Ranges.is_at_least, Ranges._is_multiple_at_least)  # the second takes longer, and is seldom needed
        return any(scope._is_proved(index, size, list(guards), way) for way in ways for scope in scopes)

    def _is_proved(self, index: Int, size: Int, guards: list[Guard], is_at_least: Callable[[Ranges, Int, int], bool]) -> bool:
        scope = self.copy()
        known: dict[Atom, Int] = {}
        index, size = self._opaque(index, known), self._opaque(size, known)
        guards = [(self._opaque(e, known), self._opaque(n, known)) for e, n in (without_division(*g) for g in guards)]
        for _, n in guards:
            scope._are_positive(n)
        for at in guarded(index, guards, scope.add):
            if is_at_least(scope, at, 0) and is_at_least(scope, size - at, 1):
                return True
        return self._is_inside_everywhere(index, size, guards)

    def _opaque(self, e: Int, known: dict[Atom, Int]) -> Int:
        """``e`` with each quotient and remainder that is made of symbols alone as a symbol of its own; ``known`` has those that were met."""
        if not isinstance(e, Expr):
            return e
        out: Int = 0
        for m, c in e.terms.items():
            term: Int = c
            for a in m:
                if not a.args:
                    term = term * Expr({(a,): 1})
                elif any(b.name in self.of for b in a.inside):
                    if a not in known:
                        x, y = (self._opaque(part, known) for part in a.args)
                        known[a] = floordiv(x, y) if a.key[0] == "floordiv" else mod(x, y)
                    term = term * known[a]
                else:
                    term = term * var(a.name, a.low, a.high)
                    if a.key[0] == "floordiv":
                        self.quotients[a.name] = a.args
            out = out + term
        return out

    def is_outside(self, index: Int, size: Int) -> bool:
        """Whether ``index`` is certainly no element of ``size``."""
        return self.is_at_least(-index, 1) or self.is_at_least(index - size, 0)

    def behind(self, expressions: Iterable[Int]) -> set[str]:
        """The names in expressions, and in the ends of their ranges."""
        named = (a.name for e in expressions for a in atoms(e))
        return set(reachable(named, lambda name: (a.name for e in self._ends_of_name(name) for a in atoms(e))))

    def _ends_of_name(self, name: str) -> list[Int]:
        r = self.of.get(name)
        return [] if r is None else [*r.lows, *r.highs]

    def _is_inside_everywhere(self, index: Int, size: Int, guards: list[Guard]) -> bool:
        """Tries each point of a static space of at most :data:`MAX_POINTS`."""
        names = {a.name for e in (index, *(e for e, _ in guards)) for a in atoms(e)}
        point = self.points(names, MAX_POINTS)
        if point is None or not all(isinstance(n, int) for n in (size, *(n for _, n in guards))):
            return False
        live = np.ones((), bool)
        for e, n in guards:
            value = evaluated(e, point)
            live = live & (value >= 0) & (value < n)
        at = evaluated(index, point)
        return bool(np.all(~live | ((at >= 0) & (at < size))))

    def points(self, names: Iterable[str], most: int) -> dict[str, np.ndarray] | None:
        """The values of variables, each along an axis of its own, in a box that holds all of them; None where there may be more than ``most``."""
        boxes: list[tuple[int, int]] = []
        for name in (order := list(names)):
            if name not in self.of:
                return None
            lows, highs = ([e for e in self.bounds_of(var(name, None, None), sign) if isinstance(e, int)] for sign in (-1, 1))
            if not lows or not highs:
                return None
            boxes.append((max(lows), min(highs)))
        if math.prod(high - low + 1 for low, high in boxes) > most:
            return None
        axes = [np.arange(low, high + 1) for low, high in boxes]
        return dict(zip(order, np.meshgrid(*axes, indexing="ij", sparse=True), strict=True))

    def holds(self, a: Atom) -> bool:
        """Whether the bounds that an atom claims are those of its variable; of symbols it is enough where they are large, as in :meth:`is_inside`.
        Of values of any size each access is proved without claims."""
        if a.name not in self.of or a.name in self.guarded:
            return True
        large = self.copy()
        large.least = LARGE_EXTENT
        return self._keeps(a) or large._keeps(a)

    def _keeps(self, a: Atom) -> bool:
        x: Int = var(a.name, None, None)
        return (a.low is None or self.is_at_least(x, a.low)) and (a.high is None or self.is_at_least(a.high - x, 0))

    def _is_multiple_at_least(self, e: Int, least: int) -> bool:
        """As :meth:`is_at_least`, of a multiple of ``e`` in which quotients lie between multiples of what they divide."""
        times = _common_divisor(e)
        return self.is_at_least(times * e, times * (least - 1) + 1)

    def is_at_least(self, e: Int, least: int) -> bool:
        with self._counting_steps():  # the search ends at the first bound that proves it
            return any(self._is_certainly(low, least) or self._is_certainly(self._multiplied(low), least) for low in self._search(e, -1))

    def _multiplied(self, e: Int) -> Int:
        """A lower bound of an expression in symbols: ``x // n * n`` is from ``x - n + 1`` to ``x``."""
        out: Int = 0
        for m, c in e.terms.items() if isinstance(e, Expr) else [((), e)]:
            q = next((a for a in m if a.name in self.quotients), None)
            x, n = (0, 0) if q is None else self.quotients[q.name]
            others = Expr({tuple(a for a in m if a is not q): 1}) if len(m) > 1 else 1
            if isinstance(n, int) and n and c % n == 0 and self._is_certainly(others, 0):
                out = out + c // n * others * (x if c < 0 else x - (n - 1))
            else:
                out = out + (Expr({m: c}) if m else c)
        return out

    def _is_certainly(self, e: Int, least: int) -> bool:
        """Whether an expression in symbols is at least so much."""
        known = {a.name: var(a.name, 0, None) + self.least for a in atoms(e)} if self.least else self.positive
        low, _ = bounds(substitute(e, known))
        return low is not None and low >= least

    def bounds_of(self, e: Int, sign: int) -> list[Int]:
        """Upper bounds (``sign`` 1) or lower ones (-1) of ``e``, in terms of symbols alone; fewer where the search gets long."""
        with self._counting_steps():
            return list(self._search(e, sign))

    @contextmanager
    def _counting_steps(self) -> Iterator[None]:
        """Replacements are counted from here on, unless they are already, for a search that this one is part of."""
        outermost = self.steps is None
        if outermost:
            self.steps = 0
        try:
            yield
        finally:
            if outermost:
                self.steps = None

    def _search(self, e: Int, sign: int) -> Iterator[Int]:
        """The bounds of ``e`` in turn. Variables may be replaced in several orders that lead to one expression, which is taken up once."""
        assert self.steps is not None
        found, met = 0, {e}
        waiting: list[tuple[Int, int]] = [(e, 0)]
        while waiting and found < MAX_ALTERNATIVES and self.steps < MAX_STEPS:
            self.steps += 1
            e, replaced = waiting.pop()
            a = self._innermost(e)
            if a is None or replaced == MAX_VARIABLES:
                found += 1
                yield e
                continue
            for x in self._without(e, a, sign):
                if x not in met:
                    met.add(x)
                    waiting.append((x, replaced + 1))

    def _innermost(self, e: Int) -> Atom | None:
        """The atom of ``e`` to be replaced next: one inside which nothing stands that is replaced later."""
        found = [a for m in e.terms for a in m if a.args or a.name in self.of] if isinstance(e, Expr) else []
        if len(found) < 2:
            return found[0] if found else None
        depths = {name: i for i, name in enumerate(self.of)}
        return max(
            found,
            key=lambda a: (max((depths[b.name] for b in a.inside if b.name in depths), default=-1), True) if a.args else (depths[a.name], False),
        )

    def _without(self, e: Int, a: Atom, sign: int) -> Iterator[Int]:
        """``e`` with ``a`` at the end of its range where ``e`` is largest (smallest); nothing where that is not known."""
        split = linear(e, a)
        if split is None:
            return
        factor, rest = split
        if a.key[0] == "mod":
            x, y = a.args
            yield rest + factor * (x - y * floordiv(x, y))  # where x itself stands beside it, that tells more
        elif a.args and isinstance(factor, int) and isinstance(y := a.args[1], int) and factor % y == 0:  # so does this
            x = a.args[0]
            yield rest + factor // y * (x if (sign > 0) == (factor > 0) else x - (y - 1))
        if self._is_certainly(factor, 0):
            ends = self._ends(a, sign)
        elif self._is_certainly(-factor, 0):
            ends = self._ends(a, -sign)
        else:
            return
        for end in ends:
            yield rest + factor * end

    def _ends(self, a: Atom, sign: int) -> list[Int]:
        """The ends of an atom's range: the best of the static ones, and those that hold symbols or variables."""
        ends = self._ends_of_variable(a, sign) if not a.args else [0] if sign < 0 else self._ends_of_division(a)
        static = [e for e in (*ends, a.high if sign > 0 else a.low) if isinstance(e, int)]
        best = [] if not static else [min(static) if sign > 0 else max(static)]
        return [*(e for e in ends if not isinstance(e, int)), *best]

    def _ends_of_variable(self, a: Atom, sign: int) -> list[Int]:
        r = self.of[a.name]
        return r.highs if sign > 0 else r.lows

    def _ends_of_division(self, a: Atom) -> list[Int]:
        """Upper bounds; the lower one is 0, since machines divide unsigned numbers."""
        if a in self.divisions:
            return self.divisions[a]
        found = self._upper_ends(a)
        if self.steps is not None and self.steps < MAX_STEPS:  # else some are missing, and the next search may come to them
            self.divisions[a] = found
        return found

    def _upper_ends(self, a: Atom) -> list[Int]:
        x, y = a.args
        if not self._is_certainly(y, 1):
            return []
        if a.key[0] == "mod":
            return [y - 1, *self.bounds_of(x, 1)]
        return [self._quotient(high, y) for high in self.bounds_of(x, 1)]

    def _quotient(self, x: Int, y: Int) -> Int:
        """An upper bound of ``x // y`` for a positive ``y``."""
        times, rest = divided(x, y)
        _, high = bounds(rest)
        if high is not None and high < 0:
            return times - 1
        return times if self._is_certainly(y - rest, 1) else times + floordiv(rest, y)
