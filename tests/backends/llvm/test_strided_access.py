"""Elements a small step apart: read and written by whole vectors, never beyond the end."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.toolchain import target
from hologram.ir.devices import backend
from hologram.settings import override
from tests.support.machines import runnable
from tests.support.optable import seeded

TYPES = [np.bool_, np.int8, ml_dtypes.bfloat16, np.float32, np.float64]
SIZES = [31, 64, 97, 512, 3072 * 2 + 1, 3072 * 3]


def data(dtype: Any, *shape: int) -> np.ndarray:
    return seeded(str(np.dtype(dtype)), *shape).integers(0, 2 if dtype is np.bool_ else 100, shape).astype(dtype)


@pytest.mark.crossed(2)
@pytest.mark.parametrize("step", [-9, -8, -3, -2, -1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: np.dtype(d).name)
def test_steps_of_a_slice(dtype: Any, step: int) -> None:
    arrays = [data(dtype, n) for n in SIZES]
    want = [x[first::step].copy() for x in arrays for first in (abs(step) - 1, 5)]
    got = hg.jit(lambda *a: [hnp.where(True, x[first::step], x[0]) for x in a for first in (abs(step) - 1, 5)])(*arrays)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.asarray(g), w)


@pytest.mark.crossed
@pytest.mark.parametrize("step", [-3, -2, 2, 3])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: np.dtype(d).name)
def test_steps_within_a_border(dtype: Any, step: int) -> None:
    """Where a mask that differs between lanes, one of a whole row, and that of a tail say what is there."""
    arrays = [data(dtype, 3, n) for n in (9, 40, 70)]
    got = hg.jit(lambda *a: [hnp.pad(x, 2)[:, ::step] for x in a])(*arrays)
    for g, array in zip(got, arrays, strict=True):
        np.testing.assert_array_equal(np.asarray(g), np.pad(array, 2)[:, ::step])


@pytest.mark.crossed(2)
@pytest.mark.parametrize("channels", [2, 3, 4, 7, 8, 9])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: np.dtype(d).name)
def test_channels_are_taken_apart_and_put_together(dtype: Any, channels: int) -> None:
    def program(xp: Any, x: Any, y: Any) -> list[Any]:
        return [
            xp.stack([x[..., i] for i in reversed(range(channels))], axis=-1),
            xp.where(y, x[:, ::-1], x),
            xp.stack([x[5:, channels - 1], x[:-5, 0]]),
            xp.transpose(xp.where(x == x[0], x, x[1]), (1, 0)),
        ]

    for n in (70, 3073):
        arrays = data(dtype, n, channels), data(np.bool_, channels)
        got = hg.jit(lambda *a: program(hnp, *a))(*arrays)
        for g, w in zip(got, program(np, *arrays), strict=True):
            np.testing.assert_array_equal(np.asarray(g), w)


@pytest.mark.parametrize("level", runnable(), ids=lambda level: level or "host")
def test_every_level_picks_the_same_elements(level: str) -> None:
    from hologram.backends.build import build  # loads LLVM

    def program(xp: Any, x: Any, y: Any) -> Any:
        return xp.stack([x[..., 0] * 2, x[..., 2], x[..., 1] + y[3::2][: x.shape[0]]], axis=-1)

    x, y = data(np.float32, 700, 3), data(np.float32, 1500)
    graph = hg.make_graph(lambda x, y: program(hnp, x, y))(x, y)
    with override(target=level):
        (got,) = build(backend("cpu"), graph, "exact").run_numpy([x, y])
    np.testing.assert_array_equal(got, program(np, x, y))


def test_wide_reads_replace_gathers() -> None:
    text = hg.jit(lambda x: x[..., 0] - x[..., 2]).lower(np.zeros((3072, 3), np.float32)).compile().as_text("llvm")
    assert text.count("masked.gather") == 0 or target.host().vector_bytes < 16
    assert "shufflevector" in text


GUARDED = """
import ctypes, mmap, sys
import numpy as np
import hologram as hg

libc = ctypes.CDLL(None, use_errno=True)
page = mmap.PAGESIZE
room = mmap.mmap(-1, 64 * page)
base = ctypes.addressof(ctypes.c_char.from_buffer(room))
assert libc.mprotect(ctypes.c_void_p(base + 63 * page), ctypes.c_size_t(page), 0) == 0

def at_the_end(n, dtype):
    "n elements, the last just before a page that nobody may read"
    x = np.frombuffer(room, dtype, n, 63 * page - n * np.dtype(dtype).itemsize)
    x.flags.writeable and x.__setitem__(slice(None), np.arange(n) % 100)
    return x

for dtype in (np.int8, np.float32, np.float64):
    for n in (64, 193, 3072, 9217):
        for step in (2, 3, 5, 8):
            x = at_the_end(n, dtype)
            for first in (0, (n - 1) % step):
                got = np.asarray(hg.jit(lambda x: x[first::step] + 1)(x))
                assert np.array_equal(got, x[first::step] + 1), (dtype, n, step)
                got = np.asarray(hg.jit(lambda x: x[::-step] + 1)(x))
                assert np.array_equal(got, x[::-step] + 1), (dtype, n, -step)
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="mprotect")
def test_nothing_is_read_beyond_the_end() -> None:
    done = subprocess.run([sys.executable, "-c", GUARDED], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
