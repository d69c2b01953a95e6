"""Two vectors added through handles: ``python examples/ffi_vector_add.py``.

The handle API is what other languages bind: executors and buffers are integers, lists of numbers are JSON texts or, faster, bytes.
"""

from __future__ import annotations

import json

import numpy as np

import hologram_ffi as hg


def added(x: list[float], y: list[float]) -> list[float]:
    """The sums, by the JSON calls."""
    executor = hg.new_executor()
    try:
        a, b, c = (hg.executor_allocate_buffer(executor, len(x)) for _ in range(3))
        hg.buffer_copy_from_slice(executor, a, json.dumps(x))
        hg.buffer_copy_from_slice(executor, b, json.dumps(y))
        hg.vector_add_f32(executor, a, b, c, len(x))
        found: list[float] = json.loads(hg.buffer_to_vec(executor, c))
        return found
    finally:
        hg.executor_cleanup(executor)  # with its buffers


def added_bytes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sums of float32 arrays, by the calls that move bytes."""
    executor = hg.new_executor()
    try:
        a, b, c = (hg.executor_allocate_buffer(executor, x.size) for _ in range(3))
        hg.buffer_copy_from_bytes(executor, a, x.tobytes())
        hg.buffer_copy_from_bytes(executor, b, y.tobytes())
        hg.vector_add_f32(executor, a, b, c, x.size)
        return np.frombuffer(hg.buffer_to_bytes(executor, c), np.float32)
    finally:
        hg.executor_cleanup(executor)


def main() -> None:
    print("Hologram", hg.get_version())
    print("by JSON: ", added([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]))
    x = np.arange(1_000_000, dtype=np.float32)
    print("by bytes:", added_bytes(x, x)[:4], "…")


if __name__ == "__main__":
    main()
