"""``hg.debug.nans``: stops where the first NaN or Inf was made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from hologram.settings import override


@contextlib.contextmanager
def nans(infs: bool = True) -> Iterator[None]:
    """Context manager in which a program whose results have a NaN or an Inf raises NonFiniteError, with the op that made the first one, its operands
    there, the step of a loop, and the user's line.

    ``infs``: whether an Inf stops too. Those that arguments and constants have are not made by an op, and one that no result has, as behind a
    ``where``, stops nothing. Programs run as they do otherwise, and are run once more, op by op, where a result has one; what was called for its
    effect is not called again. ``settings.nans`` (``HOLOGRAM_NANS=1``) does the same for good.

    >>> with hg.debug.nans():
    ...     hg.jit(lambda x: hnp.log(x - 2) * 3)(1.0)
    Traceback (most recent call last):
    ...
    hologram.errors.NonFiniteError: <lambda>: log of -1.0 made the first NaN (at ...)
    """
    with override(nans="on" if infs else "nan"):
        yield
