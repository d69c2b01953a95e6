"""Scatters whose values or indices are computed go block by block: lanes compute, a serial loop writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.lower import scatter_blocks
from hologram.ir.interpreter import evaluate
from hologram.settings import override

BINS = 60


def at_floats(x: Any) -> Any:
    """Indices beyond both ends, and negative ones, are among them."""
    return (x * 7 - 3).astype(hnp.int32)


PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "index": lambda b, x, w: b.at[at_floats(x)].add(w),
    "index and value": lambda b, x, w: b.at[at_floats(x)].max(w * w - x * 3),
    "value": lambda b, x, w: b.at[w.astype(hnp.int32)].set(hnp.exp2(x) * 3 + w),
    "product": lambda b, x, w: b.at[at_floats(x)].multiply(hnp.where(w > 3, -1, 1)),
    "value at the index": lambda b, x, w: b.at[at_floats(x)].set(w[hnp.clip(at_floats(x), 0, 9)] * x + 1),
    "padded values": lambda b, x, w: b.at[at_floats(x)].min(hnp.pad(w[5:] * 2 + 1, (5, 0), constant_values=-1)),
    "two axes": lambda b, x, w: b.reshape(6, 10).at[(x * 6).astype(hnp.int32), (w * 3 - 4).astype(hnp.int32)].add(w * 2 + x),
    "rows": lambda b, x, w: hg.vmap(lambda b, w: b.at[at_floats(x)].add(w * 2 + x))(b.reshape(2, 30), hnp.stack([w, w + 1])),
    "the array's own elements": lambda b, x, w: b.at[at_floats(x)].set(b[hnp.clip(at_floats(x), 0, BINS - 1)] * 2 + w * 3),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_those_of_a_loop_over_places(name: str, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    f = PROGRAMS[name]

    def values() -> list[np.ndarray]:
        compiled, found = hg.jit(f), []
        for n in (500, 512, 600, 1024, 1025):
            rng = np.random.default_rng(n)
            arguments = [a.astype(dtype) for a in (rng.normal(0, 9, BINS), rng.uniform(-2, 12, n), rng.normal(0, 3, n))]
            found.append(np.asarray(compiled(*arguments)))
            (want,) = evaluate(hg.make_graph(f)(*arguments), arguments)
            np.testing.assert_allclose(found[-1], want, rtol=1e-4, atol=1e-4)
        return found

    with override(cache=False):
        by_blocks = values()
        monkeypatch.setattr(scatter_blocks, "MIN_COST", 10**9)
        for a, b in zip(by_blocks, values(), strict=True):
            assert a.tobytes() == b.tobytes()


def updates(f: Callable[..., Any], *arguments: np.ndarray) -> str:
    """The kernel that reads, combines and writes."""
    (found,) = [k for k in hg.jit(f).lower(*arguments).as_text("kernels").split("\n\n") if "inout" in k]
    return found


def test_lanes_compute_what_is_worth_it() -> None:
    b, x, w = np.zeros(BINS), np.ones(2000), np.ones(2000)
    computed = updates(PROGRAMS["index"], b, x, w)
    assert "lanes" in computed and computed.count("scratch") == 1
    assert computed.index("cast(") < computed.index("s0[") < computed.index("serial j")
    assert "load(b" in computed.partition("serial j")[2], "weights are read where they are added"
    plain = updates(lambda b, i, w: b.at[i].add(w), b, np.zeros(2000, np.int32), w)
    assert "lanes" not in plain and "scratch" not in plain
    short = updates(PROGRAMS["index"], b, x[:300], w[:300])
    assert "scratch" not in short
