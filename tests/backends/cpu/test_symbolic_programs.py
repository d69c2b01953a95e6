"""Programs with symbolic extents in the disk cache: a process that meets other sizes finds the code, and gets the bits that it would compile."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.ir.symbolic import var
from hologram.settings import override
from hologram.trace.call import signature
from tests.support.stored.cache_entries import assert_refused, changes

_PROGRAMS = """
import hashlib, json, sys
import numpy as np
import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.toolchain import target

compiled = []  # per call, how many programs were compiled
compile_modules = target.compile_modules
target.compile_modules = lambda *args: compiled.append(1) or compile_modules(*args)
X = np.sin(np.arange(4000, dtype=np.float32))
x = hg.tensor(X)
P = [X[:512].reshape(16, 32), X[:32], X[100:228].reshape(32, 4)]

def loss(p, a):
    return hnp.mean((hnp.tanh(a @ p[0] + p[1]) @ p[2]) ** 2)

def loop(a):
    return hg.fori_loop(0, a.shape[0], lambda i, c: hnp.sin(c) * 0.5 + a[i], a), hnp.sort(a), hnp.cumsum(a)

def symbolic(f):
    return hg.jit(f, dynamic=True)

gradient, sorted_loop, factor = symbolic(hg.grad(loss)), symbolic(loop), symbolic(lambda a: (hnp.linalg.solve(a, a + 1), a))
constant = symbolic(lambda a: a * hnp.sum(hnp.sin(x)) + 1)
automatic = hg.jit(lambda a: hnp.sum(hnp.exp(a) * 2))
CASES = {
    "gradient": lambda k: gradient(P, X[:16 * k].reshape(k, 16)),
    "loop": lambda k: sorted_loop(X[:k]),
    "factor": lambda k: factor(X[:k * k].reshape(k, k) + 3 * np.eye(k, dtype=np.float32)),
    "constant": lambda k: constant(X[:k]),
    "automatic": lambda k: automatic(X[:k]),
    "zeros": lambda k: hnp.zeros(k) + 1,
    "slice": lambda k: x[:k].sum(),
    "exp": lambda k: hnp.exp(hnp.asarray(X[:k])),
}
found = {}
for name, f in CASES.items():
    counts, digests = [], []
    for k in map(int, sys.argv[1:]):
        before = len(compiled)
        results = hg.tree.leaves(f(k))
        digests.append([hashlib.sha1(np.asarray(r).tobytes()).hexdigest() for r in results])
        counts.append(len(compiled) - before)
    found[name] = counts, digests
print(json.dumps(found))
"""
JITTED = ("gradient", "loop", "factor", "constant")


def _run(folder: Path, sizes: list[int], cached: bool) -> dict[str, Any]:
    environment = {
        **os.environ,
        "HOLOGRAM_CACHE_DIR": str(folder),
        "HOLOGRAM_CACHE": str(int(cached)),
        "HOLOGRAM_VERIFY": "0",
        "HOLOGRAM_OP_BY_OP": "0",
    }
    done = subprocess.run([sys.executable, "-W", "error", "-c", _PROGRAMS, *map(str, sizes)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_a_fresh_process_with_other_sizes_compiles_no_symbolic_program(tmp_path: Path) -> None:
    _run(tmp_path / "cache", [5, 7, 9, 12], cached=True)
    sizes = [13, 17, 21, 25, 40]
    found, expected = _run(tmp_path / "cache", sizes, cached=True), _run(tmp_path / "other", sizes, cached=False)
    for name, (counts, digests) in found.items():
        assert digests == expected[name][1], name
        static = 2 if name == "automatic" else 0  # programs by value, before sizes are known to vary
        assert counts == [1] * static + [0] * (len(sizes) - static), name
        assert sum(expected[name][0]) == (1 if name in JITTED else 2 if name != "automatic" else 3) + (name == "constant"), name


# --- what the cache must tell apart ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    with override(cache=True, cache_dir=tmp_path / "cache"):
        yield tmp_path / "cache"


def test_bounds_of_symbols_are_a_part_of_the_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two programs of one text are two where their symbols have other bounds, by which code may be chosen."""
    run = lambda: hg.jit(lambda x: x[:2] + 1, dynamic=True)(np.ones(9, np.float32)).numpy()  # noqa: E731
    run()
    one = len(list(folder.glob("*.hgo")))
    run()
    assert len(list(folder.glob("*.hgo"))) == one
    monkeypatch.setattr(signature, "var", lambda name, low: var(name, low, 1000))
    run()
    assert len(list(folder.glob("*.hgo"))) == one + 1


def _programs() -> list[Any]:
    """New functions, which no cache but the disk's knows: intermediates, one that hands its place on, folded constants, a loop, two results."""
    held = hnp.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))

    def f(x: Any) -> Any:
        y = hnp.cumsum(hnp.sort(x @ (hnp.sin(held) * 2), axis=0), axis=0)
        return hnp.cumsum(hnp.sort(y * 2, axis=0) + y.sum(), axis=0), x

    return [f, lambda x: hg.fori_loop(0, x.shape[0], lambda i, c: c @ held[:, :3] * 0.1 + x[i], x)]


def test_metadata_that_does_not_describe_the_code_is_refused(folder: Path, everything: bool) -> None:
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)

    def run() -> list[Any]:
        return [y.numpy() for f in _programs() for y in hg.tree.leaves(hg.jit(f, dynamic={0: 0})(x))]

    expected = run()
    cases = [(path, place, new) for path in sorted(folder.glob("*.hgo")) for place, new in changes(path)]
    assert len(cases) > 400
    for path, place, new in random.Random(0).sample(cases, 300 if everything else 30):
        assert_refused(path, place, new, run, expected)
