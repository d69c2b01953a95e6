"""Symbolic integers: extents of arrays, and index arithmetic in kernels.

An :class:`Expr` is a polynomial with integer coefficients over *atoms*. An atom is a named variable with known bounds, or
a floor division or remainder of one Expr by another. Polynomials are kept in one canonical form, so structural equality is
equality, and plain integers stay plain ``int``: ``Int = int | Expr``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

from hologram.errors import TracedValueError
from hologram.support.weak import WeakTable


class Atom:
    """A variable, or ``floordiv``/``mod`` of two Exprs. Interned by the key, for as long as something holds it."""

    __slots__ = ("key", "name", "low", "high", "args", "inside", "order", "__weakref__")
    key: Any
    name: str
    low: int | None
    high: int | None
    args: tuple[Any, ...]
    inside: tuple[Atom, ...]  # the variables in ``args``, each once: quotients of quotients share what they are made of
    order: tuple[int, str]  # in which atoms of a term stand

    @staticmethod
    def variable(name: str, low: int | None = 0, high: int | None = None) -> Atom:
        return Atom._make(("var", name, low, high), name, low, high, ())

    @staticmethod
    def _make(key: Any, name: str, low: int | None, high: int | None, args: tuple[Any, ...]) -> Atom:
        found = _atoms.get(key)
        if found is not None:
            return found
        a = Atom.__new__(Atom)
        a.key, a.name, a.low, a.high, a.args = key, name, low, high, args
        a.inside = tuple(dict.fromkeys(v for e in args for v in atoms(e)))
        a.order = (len(args), name)
        return _atoms.setdefault(key, a)

    def __repr__(self) -> str:
        return self.name


_atoms: WeakTable[Any, Atom] = WeakTable()

MAX_EXTENT = 2**40  # beyond any extent
TYPICAL_EXTENT = 256  # that a symbolic extent is taken for where choices depend on it

Monomial: TypeAlias = tuple[Atom, ...]
_order_of = attrgetter("order")


class Expr:
    """A canonical polynomial: ``terms`` maps a sorted tuple of atoms to a non-zero coefficient."""

    __slots__ = ("terms", "_hash", "_bounds")

    def __init__(self, terms: Mapping[Monomial, int], ordered: bool = False) -> None:
        self.terms = dict(terms if ordered or len(terms) < 2 else sorted(terms.items(), key=_order))
        self._hash: int | None = None
        self._bounds: tuple[int | None, int | None] | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Expr) and self.terms == other.terms)

    def __add__(self, o: Int) -> Int:
        return _combine(self, o, 1)

    __radd__ = __add__

    def __sub__(self, o: Int) -> Int:
        return _combine(self, o, -1)

    def __rsub__(self, o: Int) -> Int:
        return _combine(-self, o, 1)

    def __neg__(self) -> Expr:
        return Expr({m: -c for m, c in self.terms.items()}, ordered=True)

    def __mul__(self, o: Int) -> Int:
        if not isinstance(o, Expr):
            factor = int(o)
            return self if factor == 1 else Expr({m: factor * c for m, c in self.terms.items()}, ordered=True) if factor else 0
        out: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in o.terms.items():
                k = tuple(sorted(m + n, key=_order_of)) if m and n else m or n
                out[k] = out.get(k, 0) + c * d
        return _finish(out)

    __rmul__ = __mul__

    def __floordiv__(self, o: Int) -> Int:
        return floordiv(self, o)

    def __mod__(self, o: Int) -> Int:
        return mod(self, o)

    def __repr__(self) -> str:
        parts: list[str] = []
        for m, c in self.terms.items():
            body = "*".join(a.name for a in m)
            text = str(c) if not m else body if c == 1 else f"-{body}" if c == -1 else f"{c}*{body}"
            parts.append(text if not parts or text.startswith("-") else "+" + text)
        return "".join(parts)

    def __bool__(self) -> bool:
        raise TracedValueError(f"the symbolic extent {self} has no truth value while tracing: leave its axis out of dynamic")

    def __int__(self) -> int:
        raise TracedValueError(f"the extent {self} is symbolic: its value is not known while tracing; leave its axis out of dynamic")

    __index__ = __int__


Int: TypeAlias = "int | Expr"


def var(name: str, low: int | None = 0, high: int | None = None) -> Expr:
    """The variable ``name`` as an expression; ``low`` and ``high`` are inclusive bounds, None where unknown."""
    return Expr({(Atom.variable(name, low, high),): 1})


_SIZE_OPERAND = "size"


def size_operand(number: int) -> Expr:
    """A symbol, from 2 up, whose value calls give, whether or not the shape of an input has it."""
    return var(f"{_SIZE_OPERAND}{number}", 2)


def is_size_operand(name: str) -> bool:
    """Whether the symbol called ``name`` is a :func:`size_operand`."""
    return name.startswith(_SIZE_OPERAND)


def counter(name: str, size: Int | None) -> Expr:
    """A variable that counts from 0 up to ``size`` - 1; None: without end."""
    return var(name, 0, size - 1 if isinstance(size, int) else None)


def is_static(x: Int) -> bool:
    return not isinstance(x, Expr)


def _terms(x: Int) -> Mapping[Monomial, int]:
    return x.terms if isinstance(x, Expr) else {(): int(x)} if x else {}


def _order(term: tuple[Monomial, int]) -> tuple[int, list[tuple[Any, ...]]]:
    """Terms of higher degree first, then by the names of their atoms; the number last."""
    m, _ = term
    return -len(m), [a.order for a in m]


def _finish(terms: dict[Monomial, int], ordered: bool = False) -> Int:
    if not all(terms.values()):
        terms = {m: c for m, c in terms.items() if c}
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    return Expr(terms, ordered)


def _combine(a: Int, b: Int, sign: int) -> Int:
    """``a + sign * b``."""
    if not isinstance(b, Expr):
        return _with_number(a, sign * int(b))
    if not isinstance(a, Expr):
        return _with_number(b if sign == 1 else -b, int(a))
    out = dict(a.terms)
    for m, c in b.terms.items():
        out[m] = out.get(m, 0) + sign * c
    return _finish(out, ordered=len(out) == len(a.terms))


def _with_number(x: Int, n: int) -> Int:
    """``x + n``."""
    if not isinstance(x, Expr):
        return x + n
    if not n:
        return x
    out = dict(x.terms)
    n += out.pop((), 0)
    if n:
        out[()] = n
    return Expr(out, ordered=True)


def atoms(x: Int) -> Iterable[Atom]:
    """Every variable in ``x``, those inside divisions included; one may come more than once."""
    if isinstance(x, Expr):
        for m in x.terms:
            for a in m:
                if a.args:
                    yield from a.inside
                else:
                    yield a


def variables_of(values: Any) -> set[Atom]:
    """All variables in ``values``: an integer, or tuples and lists of such, in which anything else has none. As the attributes of nodes are."""
    if isinstance(values, Expr):
        return set(atoms(values))
    return set().union(*map(variables_of, values)) if isinstance(values, (tuple, list)) else set()


def symbols_of(values: Any) -> set[str]:
    """The names of :func:`variables_of`."""
    return {a.name for a in variables_of(values)}


def bounds(x: Int) -> tuple[int | None, int | None]:
    """Inclusive bounds of ``x`` by interval arithmetic; None where unbounded."""
    if not isinstance(x, Expr):
        return x, x
    if x._bounds is None:
        x._bounds = _bounds(x)
    return x._bounds


def _bounds(x: Expr) -> tuple[int | None, int | None]:
    low: int | None = 0
    high: int | None = 0
    for m, c in x.terms.items():
        lo: int | None = 1
        hi: int | None = 1
        for a in m:
            if lo is None or lo < 0 or a.low is None or a.low < 0:
                lo = hi = None  # a factor of either sign: only a single atom is bounded
                if len(m) == 1:
                    lo, hi = a.low, a.high
                break
            lo = lo * a.low
            hi = None if hi is None or a.high is None else hi * a.high
        if c < 0:
            lo, hi = hi, lo
        low = None if low is None or lo is None else low + c * lo
        high = None if high is None or hi is None else high + c * hi
    return low, high


def _is_single(x: Int) -> bool:
    """Whether ``x`` prints as one number or name."""
    return not isinstance(x, Expr) or (len(x.terms) == 1 and all(len(m) == 1 and c == 1 for m, c in x.terms.items()))


def _derived(kind: str, a: Int, b: Int, low: int | None, high: int | None) -> Expr:
    sign = "//" if kind == "floordiv" else "%"
    left, right = (str(e) if _is_single(e) else f"({e})" for e in (a, b))
    name = f"({left}{sign}{right})"
    return Expr({(Atom._make((kind, a, b), name, low, high, (a, b)),): 1})


def _split(a: Expr, b: int) -> tuple[Int, Int]:
    """``a = b*q + r`` by coefficients."""
    q = {m: c // b for m, c in a.terms.items()}
    r = {m: c % b for m, c in a.terms.items()}
    return _finish(q, ordered=True), _finish(r, ordered=True)


def _symbolic_split(a: Int, b: Expr) -> tuple[Int, Int]:
    """Divides by a one-term symbolic ``b``: terms with all of its atoms go to the quotient, unless what is left might then be negative:
    machines divide unsigned numbers."""
    if len(b.terms) != 1:
        return (1, 0) if a == b else (0, a)
    ((atoms_b, cb),) = b.terms.items()
    q: dict[Monomial, int] = {}
    r: dict[Monomial, int] = {}
    for m, c in _terms(a).items():
        rest = list(m)
        ok = c % cb == 0
        for t in atoms_b:
            if t in rest:
                rest.remove(t)
            else:
                ok = False
        if ok:
            q[tuple(rest)] = c // cb
        else:
            r[m] = c
    rest_low, _ = bounds(_finish(r))
    return (0, a) if rest_low is None or rest_low < 0 else (_finish(q), _finish(r))


def _below(r: Int, b: Int) -> bool:
    """Whether 0 <= r < b is certain for a positive b."""
    if r == 0:
        return True
    lo, _ = bounds(r)
    slack, _ = bounds(b - 1 - r)
    return lo is not None and lo >= 0 and slack is not None and slack >= 0


def floordiv(a: Int, b: Int) -> Int:
    """``a // b`` for a positive ``b``, simplified by bounds and coefficients."""
    if b == 1:
        return a
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        return a // b
    q, r = _split(a, b) if isinstance(a, Expr) and isinstance(b, int) else _symbolic_split(a, b)  # type: ignore[arg-type]
    if _below(r, b):
        return q
    lo, hi = bounds(r)
    if isinstance(b, int):
        lo, hi = None if lo is None else lo // b, None if hi is None else hi // b
        if lo is not None and lo == hi:
            return q + lo
    else:
        lo, hi = (0 if lo is not None and lo >= 0 else None), (hi if hi is not None and hi >= 0 else None)
    return q + _derived("floordiv", r, b, lo, hi)


def mod(a: Int, b: Int) -> Int:
    """``a % b`` for a positive ``b``, simplified by bounds and coefficients."""
    if b == 1:
        return 0
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        return a % b
    _, r = _split(a, b) if isinstance(a, Expr) and isinstance(b, int) else _symbolic_split(a, b)  # type: ignore[arg-type]
    if _below(r, b):
        return r
    if isinstance(b, int):
        lo, hi = bounds(r)
        if lo is not None and hi is not None and lo // b == hi // b:
            return r - (lo // b) * b
    high = b - 1 if isinstance(b, int) else None
    return _derived("mod", r, b, 0, high)


def at_least(n: Int, least: int) -> Int:
    """1 where ``n``, which is below :data:`MAX_EXTENT`, is at least ``least``, else 0."""
    low, high = bounds(n)
    if low is not None and low >= least:
        return 1
    if high is not None and high < least:
        return 0
    return _derived("floordiv", n + (MAX_EXTENT - least), MAX_EXTENT, 0, 1)


def typical(n: Int) -> int:
    """``n`` where each symbol is :data:`TYPICAL_EXTENT`: for choices that sizes decide."""
    found = substitute(n, {a.name: TYPICAL_EXTENT for a in atoms(n)})
    assert isinstance(found, int)
    return found


def recombine(q: Int, n: Int, r: Int) -> Int:
    """``q*n + r``, undoing divisions: where r holds a multiple of ``e % n``, and q the same one of ``e // n``, that part is the multiple of ``e``."""
    whole: Int = 0
    if isinstance(q, Expr) and isinstance(r, Expr):
        for m, c in r.terms.items():
            if len(m) != 1 or m[0].key[0] != "mod" or m[0].args[1] != n:
                continue
            e = m[0].args[0]
            for t in q.terms:
                if len(t) == 1 and t[0].key == ("floordiv", e, n) and q.terms[t] == c:
                    whole, q, r = whole + e * c, q - Expr({t: c}), r - Expr({m: c})
                    break
            if not isinstance(q, Expr) or not isinstance(r, Expr):
                break
    return q * n + r + whole


def substitute(x: Int, values: Mapping[str, Int]) -> Int:
    """``x`` with each variable named in ``values`` replaced."""
    return _substituted(x, values, {})


def _substituted(x: Int, values: Mapping[str, Int], known: dict[Atom, Int]) -> Int:
    """``known`` has what became of divisions that were met."""
    if not isinstance(x, Expr):
        return x
    kept: dict[Monomial, int] = {}
    out: Int = 0
    for m, c in x.terms.items():
        changed = [a for a in m if (any(b.name in values for b in a.inside) if a.args else a.name in values)]
        if not changed:
            kept[m] = c
            continue
        term: Int = c if len(changed) == len(m) else Expr({tuple([a for a in m if a not in changed]): c})
        for a in changed:
            if a.args and a not in known:
                numerator, divisor = (_substituted(e, values, known) for e in a.args)
                known[a] = (floordiv if a.key[0] == "floordiv" else mod)(numerator, divisor)
            term = term * (known[a] if a.args else values[a.name])
        out = out + term
    return x if len(kept) == len(x.terms) else _finish(kept, ordered=True) + out


def evaluator(values: Any, names: Sequence[str]) -> Callable[..., Any]:
    """A function of the values of ``names`` that gives ``values``, integers and tuples of such, with each variable replaced: much faster than
    :func:`substitute`, for what is evaluated often."""
    parameters = {name: f"v{i}" for i, name in enumerate(names)}
    return eval(f"lambda {', '.join(parameters.values())}: {source_of(values, parameters)}")  # integers and parameters alone


def source_of(x: Any, parameters: Mapping[str, str]) -> str:
    """Python for an integer, or a tuple of integers and tuples, in which ``parameters`` says what stands for each variable."""
    if isinstance(x, tuple):
        return f"({''.join(source_of(e, parameters) + ', ' for e in x)})"
    if not isinstance(x, Expr):
        return str(int(x))
    return "(" + " + ".join("*".join([str(c), *[_source_of_atom(a, parameters) for a in m]]) for m, c in x.terms.items()) + ")"


def _source_of_atom(a: Atom, parameters: Mapping[str, str]) -> str:
    if not a.args:
        return parameters[a.name]
    numerator, divisor = (source_of(e, parameters) for e in a.args)
    return f"({numerator} {'//' if a.key[0] == 'floordiv' else '%'} {divisor})"


def split_linear(x: Int, name: str) -> tuple[Int, Int] | None:
    """``(coefficient, rest)`` with ``x = coefficient*name + rest``, or None where ``x`` is not linear in ``name``."""
    coefficient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for m, c in _terms(x).items():
        hits = [a for a in m if not a.args and a.name == name]
        inside = any(b.name == name for a in m for b in a.inside)
        if inside or len(hits) > 1:
            return None
        if hits:
            key = list(m)
            key.remove(hits[0])
            coefficient[tuple(key)] = c
        else:
            rest[m] = c
    return _finish(coefficient), _finish(rest)


def prod(xs: Iterable[Int]) -> Int:
    out: Int = 1
    for x in xs:
        out = out * x
    return out
