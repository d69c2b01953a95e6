"""The machine's memory bandwidth, by a copy: what no kernel that must move its data can beat, once the data exceed the caches."""

from __future__ import annotations

import threading
import time

import numpy as np

ARRAY_BYTES = 256 * 2**20


def copy_bandwidth(threads: int, rounds: int = 25, nbytes: int = ARRAY_BYTES) -> float:
    """Bytes read and written a second, the best of ``rounds``, each thread copying its part of one array of ``nbytes``."""
    source, target = np.ones(nbytes, np.uint8), np.ones(nbytes, np.uint8)
    parts = [slice(i * nbytes // threads, (i + 1) * nbytes // threads) for i in range(threads)]
    best = float("inf")
    for _ in range(rounds):
        copiers = [threading.Thread(target=np.copyto, args=(target[p], source[p])) for p in parts]  # copyto releases the GIL
        start = time.perf_counter()
        for c in copiers:
            c.start()
        for c in copiers:
            c.join()
        best = min(best, time.perf_counter() - start)
    return 2 * nbytes / best
