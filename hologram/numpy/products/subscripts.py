"""Subscripts of index notation: the text of operands that are followed by lists of their indices."""

from __future__ import annotations

import string
from typing import Any

from hologram.errors import ArgumentError
from hologram.support.user_lines import located
from hologram.trace.checks import integer, items

_NAMES = string.ascii_uppercase + string.ascii_lowercase  # in the order of their codes, so that indices keep their order


def with_subscripts(what: str, first: Any, *rest: Any) -> tuple[str, tuple[Any, ...]]:
    """The subscripts and the operands of a call: ``first`` is the text, or the first of operands each of which is followed by its indices; an odd
    list at the end has those of the result. Raises ArgumentError where there are none, and for indices that are not integers from 0 to 51 or ``...``.
    """
    if isinstance(first, str):
        return first, rest
    if not rest:
        raise located(ArgumentError(f"{what}: the first argument is subscripts such as 'ij,jk->ik', not {type(first).__name__}"))
    given = (first, *rest)
    pairs = len(given) // 2
    text = ",".join([_term(what, given[2 * k + 1]) for k in range(pairs)])
    if len(given) % 2:
        text += "->" + _term(what, given[-1])
    return text, given[0 : 2 * pairs : 2]


def _term(what: str, indices: Any) -> str:
    return "".join(["..." if i is Ellipsis else _name(what, i) for i in items(indices, what, "indices")])


def _name(what: str, index: Any) -> str:
    i = integer(index, what, "an index")
    if not 0 <= i < len(_NAMES):
        raise located(ArgumentError(f"{what}: indices are integers from 0 to {len(_NAMES) - 1}, not {i}"))
    return _NAMES[i]
