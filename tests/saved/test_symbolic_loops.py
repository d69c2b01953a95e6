"""Saved programs with loops and branches of symbolic sizes: those of the function, at every size, alone and inside of other functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ProgramFileError
from tests.support.stored.program_files import contents, packed

SIZES = (5, 2, 9, 33)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "scan": lambda x: hg.scan(lambda c, y: (c * 0.5 + y, c + 1), x[0] * 0, x),
    "reversed scan of pairs": lambda x: hg.scan(lambda c, y: (c + y.sum(), y * c), 0.0, x.reshape(x.shape[0], 2, 2), reverse=True),
    "fori_loop of as many steps": lambda x: hg.fori_loop(0, x.shape[0], lambda i, c: c.at[i].add(x[i] * i), x),
    "carries of other sizes": lambda x: hg.fori_loop(0, 3, lambda i, c: hnp.sin(c) * 2, hnp.concatenate([x, x * 2])),
    "while_loop": lambda x: hg.while_loop(lambda c: hnp.max(c) > 1, lambda c: c * 0.5, hnp.abs(x)),
    "cond": lambda x: hg.cond(x.sum() > 0, lambda a: a * x.shape[0], lambda a: -a, x),
    "loop in a loop": lambda x: hg.fori_loop(0, 2, lambda i, c: hg.scan(lambda d, y: (d + y, d), c[0] * 0, c)[1], x),
    "gradient of a scan": hg.grad(lambda x: (hg.scan(lambda c, y: (hnp.tanh(c + y), c), x[0] * 0, x)[1] ** 2).sum()),
}


def _array(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)


def _bits(x: Any) -> list[bytes]:
    return [np.asarray(y).tobytes() for y in hg.tree.leaves(x)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_saved_loops_serve_all_sizes(name: str, tmp_path: Path) -> None:
    f = hg.jit(FUNCTIONS[name], dynamic={0: 0}, precision="exact")
    hg.export(f, _array(7)).save(tmp_path / "loop.hgp")
    loaded = hg.load(tmp_path / "loop.hgp")
    static = hg.jit(FUNCTIONS[name], dynamic=False, precision="exact")
    for n in SIZES:
        assert _bits(loaded(_array(n))) == _bits(f(_array(n))) == _bits(static(_array(n))), n


def test_inside_of_other_functions(tmp_path: Path) -> None:
    """Recorded for the sizes of a call, and for other symbols; differentiated and stacked."""
    f = hg.jit(FUNCTIONS["scan"], dynamic={0: 0}, precision="exact")
    hg.export(f, _array(7)).save(tmp_path / "loop.hgp")
    loaded = hg.load(tmp_path / "loop.hgp")
    for dynamic in (False, {0: 0}):
        around = hg.jit(lambda x: loaded(hnp.concatenate([x, x])), dynamic=dynamic, precision="exact")  # type: ignore[arg-type]
        for n in (3, 6):
            x = _array(n)
            assert _bits(around(x)) == _bits(f(np.concatenate([x, x])))
    x = _array(5)
    gradient = [hg.jit(hg.grad(lambda x, f=f: (f(x)[1] ** 2).sum()), precision="exact")(x) for f in (loaded, f)]
    assert _bits(gradient[0]) == _bits(gradient[1])
    stacked = [hg.jit(hg.vmap(f), precision="exact")(np.stack([x, x + 1])) for f in (loaded, f)]
    assert _bits(stacked[0]) == _bits(stacked[1])


def test_lengths_that_do_not_follow_are_refused(tmp_path: Path) -> None:
    f = hg.jit(FUNCTIONS["scan"], dynamic={0: 0})
    header, members = contents(hg.export(f, _array(7)).to_bytes())
    scan = next(n for n in header["graph"]["nodes"] if n[0] == "scan")
    at = next(i for i, a in enumerate(scan[2]) if a == [[1, "n0"]])
    for wrong in ([[2, "n0"]], [[-1, "n0"]], [[1, "n9"]], 7, -1, "n0", [["//", 1]]):
        scan[2][at] = wrong
        (tmp_path / "wrong.hgp").write_bytes(packed(json.loads(json.dumps(header)), members))
        with pytest.raises(ProgramFileError, match="scan|symbol"):
            hg.load(tmp_path / "wrong.hgp")
