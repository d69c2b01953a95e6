"""Work that threads do at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def in_threads(work: Callable[[int], None], count: int) -> None:
    """Calls ``work`` with 0 to ``count - 1``, by as many threads. Raises what one of them raises."""
    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(work, k) for k in range(count)]:
            done.result()
