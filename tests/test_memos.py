"""What is remembered: the latest values, within limits of keys and of bytes; and what there is one of, which is made by one thread."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram
from hologram.support.lru_cache import Recent
from hologram.support.once import once

ROOT = Path(hologram.__file__).parent

# functions that give the same whoever calls them, and however often
WITHOUT_EFFECTS = {"storage_module", "_temme", "modules", "toolchain", "_fingerprint", "why_not_native", "symbols", "_slots", "_modules", "require"}


@given(st.integers(1, 20), st.lists(st.integers(0, 40), max_size=200))
def test_the_latest_keys_stay(limit: int, keys: list[int]) -> None:
    cache = Recent(limit)
    for k in keys:
        if cache.get(k) is None:
            cache.put(k, k + 1)
        assert len(cache) <= limit and cache.get(k) == k + 1
    latest = list(dict.fromkeys(reversed(keys)))[: limit - max(1, limit // 8) + 1]
    assert all(cache.get(k) == k + 1 for k in latest)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60)), max_size=60))
def test_bytes_stay_within_their_limit(puts: list[tuple[int, int]]) -> None:
    cache = Recent(100, lambda: 100)
    sizes: dict[int, int] = {}
    for key, nbytes in puts:
        cache.put(key, key, nbytes)
        sizes[key] = nbytes
        kept = cache.values()
        assert key in kept and cache.nbytes == sum(sizes[k] for k in kept) and (cache.nbytes <= 100 or len(kept) == 1)


def test_threads_that_ask_at_one_time_get_one_object() -> None:
    made: list[object] = []

    @once
    def thing() -> object:
        """A thing."""
        time.sleep(0.02)
        made.append(object())
        return made[-1]

    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(thing())) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(made) == 1 and found == made * 8 and thing.__doc__ == "A thing."
    thing.cache_clear()
    assert thing() is not found[0] and len(made) == 2


def test_what_raised_is_tried_again() -> None:
    tried: list[int] = []

    @once
    def thing() -> int:
        tried.append(1)
        if len(tried) == 1:
            raise ValueError
        return 7

    with pytest.raises(ValueError):
        thing()
    assert thing() == thing() == 7 and len(tried) == 2


def test_functions_with_effects_are_called_once() -> None:
    """Not by functools.cache, which calls them in each thread that asks meanwhile."""
    found = []
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or node.args.args or node.name in WITHOUT_EFFECTS:
                continue
            names = {ast.unparse(d).partition("(")[0].rpartition(".")[2] for d in node.decorator_list}
            if names & {"cache", "lru_cache"}:
                found.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert not found


def test_threads_that_call_first_share_one_pool() -> None:
    code = """
        import threading
        import numpy as np
        import hologram as hg
        from hologram.backends.native import pool

        made, before = [], pool._Pool.__init__

        def counted(self, module):
            made.append(self)
            before(self, module)

        pool._Pool.__init__ = counted
        x = hg.tensor(np.ones(8, np.float32))
        fs = [hg.jit(lambda a, k=k: a + k) for k in range(8)]
        start = threading.Barrier(8)

        def work(f):
            start.wait()
            f(x)

        threads = [threading.Thread(target=work, args=(f,)) for f in fs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print(len(made))
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "1\n", done
