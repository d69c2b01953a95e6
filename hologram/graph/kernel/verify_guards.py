"""Guards of masked accesses: the ``inside`` tests behind a mask, and index expressions in terms of what is tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hologram.graph.kernel.ir import Value
from hologram.graph.kernel.polynomials import Range, multiples
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, Int, floordiv, mod, var
from hologram.ir.traversal import reachable

MAX_ALTERNATIVES = 32  # bounds of one expression that are tried: a loop with a limit has two ends, either of which may be what proves it

Guard = tuple[Int, Int]


def guards_of(mask: Value | None) -> list[Guard]:
    """The tests ``0 <= e < size`` that hold where ``mask`` does."""
    parts = reachable([] if mask is None else [mask], lambda v: v.args if isinstance(v, Ins) and v.opname == "and" else ())
    return [(v.attrs[0], v.attrs[1]) for v in parts if isinstance(v, Ins) and v.op == "inside"]


def without_division(e: Int, size: Int) -> Guard:
    """A test of ``x // n + c`` as one of ``x``."""
    if isinstance(e, Expr):
        divisions = [m[0] for m, c in e.terms.items() if len(m) == 1 and c == 1 and m[0].key[0] == "floordiv"]
        rest = e - Expr({(divisions[0],): 1}) if len(divisions) == 1 else None
        if isinstance(rest, int) and isinstance(divisions[0].args[1], int):
            x, n = divisions[0].args
            return without_division(x + rest * n, size * n)
    return e, size


def guarded(index: Int, guards: list[Guard], add: Callable[[str, Range], None]) -> Iterator[Int]:
    """``index`` in terms of the guarded expressions, each a fresh variable whose range ``add`` takes, in the ways in which that can
    be done."""
    yield index
    forms = [index]
    for k, (e, size) in enumerate(guards):
        if not isinstance(e, Expr):
            continue
        name = f"guarded {k}"
        add(name, Range([0], [size - 1]))
        forms = [form for x in forms for form in (x, *_in_terms_of(x, e, var(name, 0, size - 1 if isinstance(size, int) else None)))][
            -MAX_ALTERNATIVES:
        ]
    yield from reversed(forms[1:])


def _in_terms_of(index: Int, e: Expr, guarded: Expr) -> Iterator[Int]:
    """``index`` with a multiple of ``e`` replaced by one of ``guarded``, so that a term of ``e`` goes."""
    if not isinstance(index, Expr):
        return
    if (inside := _in_divisions(index, e, guarded)) != index:
        yield inside
    seen: set[Int] = set()
    for m, c in e.terms.items():
        for times in multiples(index, m, c):
            if times not in seen:
                seen.add(times)
                yield index - times * e + times * guarded


def _in_divisions(index: Expr, e: Expr, guarded: Expr) -> Int:
    """``index`` with ``guarded`` for ``e`` where it is divided, but for a constant, in divisions of divisions too."""
    out: Int = 0
    for m, c in index.terms.items():
        term: Int = c
        for a in m:
            factor: Int = Expr({(a,): 1})
            if a.args and isinstance(x := a.args[0], Expr):
                rest = x - e
                inside = _in_divisions(x, e, guarded) if isinstance(rest, Expr) else guarded + rest
                if inside != x:
                    factor = (floordiv if a.key[0] == "floordiv" else mod)(inside, a.args[1])
            term = term * factor
        out = out + term
    return out
