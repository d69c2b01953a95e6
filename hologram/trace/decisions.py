"""Questions about symbolic extents that a program answers by the sizes of the call that is traced, and takes for granted from then on.

Whether a matrix has more rows than columns decides which program it needs. Such an answer is an assumption of the program, like others
(:func:`hologram.trace.recorder.assume`); calls with another answer get a program with symbols of their own.
"""

from __future__ import annotations

from hologram.errors import TracedValueError
from hologram.ir.symbolic import Expr, Int, bounds, substitute, symbols_of
from hologram.support.user_lines import located
from hologram.trace.recorder import assume, outermost, plain


def decided(slack: Int) -> bool:
    """Whether ``slack``, a polynomial in symbolic extents, is not negative, in the call that is traced.

    Raises TracedValueError, with the user's line, where no sizes are known.
    """
    slack = plain(slack)
    low, high = bounds(slack)
    if (low is not None and low >= 0) or (high is not None and high < 0):
        return low is not None and low >= 0
    assert isinstance(slack, Expr)
    trace = outermost()
    if trace is None or not symbols_of(slack) <= trace.sizes.keys():
        raise located(TracedValueError(f"whether {slack} is negative is not known while tracing: leave the axes out of dynamic"))
    found = substitute(slack, trace.sizes)
    assert isinstance(found, int)
    answer = slack if found >= 0 else -1 - slack
    assume(answer)
    trace.decisions.append(answer)  # type: ignore[arg-type]  # a polynomial
    return found >= 0


def least(a: Int, b: Int) -> Int:
    """The smaller of two extents."""
    return a if decided(b - a) else b


def most(a: Int, b: Int) -> Int:
    """The larger of two extents."""
    return b if decided(b - a) else a
