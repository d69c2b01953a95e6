"""Numbers and names in sentences."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def counted(n: int, noun: str) -> str:
    """A number of things, with commas between thousands.

    >>> from hologram.support.wording import counted
    >>> counted(1, "kernel"), counted(1200, "kernel")
    ('1 kernel', '1,200 kernels')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Names with commas between them, and ``and`` before the last.

    >>> from hologram.support.wording import listed
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + "".join(names[-1:])


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """``; did you mean 'sum'?`` for a name that is like one of ``names``; else nothing. Names with ``_`` in front are neither proposed nor looked
    for: those that are asked for are mostly the protocols of tools, which ask every module.

    >>> from hologram.support.wording import did_you_mean
    >>> did_you_mean("smu", ["sum", "prod"])
    "; did you mean 'sum'?"
    >>> did_you_mean("_sum", ["sum", "prod"])
    ''
    """
    if str(name).startswith("_"):
        return ""
    close = difflib.get_close_matches(str(name), [n for n in names if not n.startswith("_")], n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
