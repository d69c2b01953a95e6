"""Numbers in sentences."""

from __future__ import annotations


def counted(n: int, noun: str) -> str:
    """A number of things, with commas between thousands.

    >>> from hologram.support.wording import counted
    >>> counted(1, "kernel"), counted(1200, "kernel")
    ('1 kernel', '1,200 kernels')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
