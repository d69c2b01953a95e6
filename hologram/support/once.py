"""What there is one of in a process, made when it is first asked for.

``functools.cache`` calls the function again in each thread that asks while the first call runs. Where that starts threads, writes to native memory or
makes a class, threads would then work with different ones.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from hologram.support import forks

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801  # a decorator
    """A function without arguments whose result is made once, by one thread, while others wait; where it raises, the next call tries again."""

    def __init__(self, make: Callable[[], T]) -> None:
        functools.update_wrapper(self, make)
        self._make, self._made = make, list[T]()
        self._renew()
        forks.in_child(self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __call__(self) -> T:
        made = self._made
        if not made:
            with self._lock:
                if not made:
                    made.append(self._make())
        return made[0]

    @property
    def is_made(self) -> bool:
        return bool(self._made)

    def cache_clear(self) -> None:
        """The next call makes it anew."""
        self._made = []
