"""Vectors under masks point at what is there, also where no lane is wanted: processors take a thousand times as long where nothing is mapped."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from tests.support.graphs.guarded_programs import GUARDED
from tests.support.machines import machine, module_text

_ACCESS = re.compile(r"@llvm\.masked\.(?:load|store)\.\S+\(.*?ptr (%\w+), i32 \d+, <\d+ x i1> (%\w+)")
_TAIL = re.compile(r"icmp ult <\d+ x i\d+> <i\d+ 0, i\d+ 1,")  # of the last vector of a loop, in which the first lane is always live


def astray(text: str) -> list[str]:
    """The masked accesses of a module that may point anywhere though no lane is wanted; and those that were looked at."""
    wrong = []
    for function in re.split(r"^define ", text, flags=re.M)[1:]:
        made = dict(re.findall(r"^ *(%\w+) = (.*)$", function, flags=re.M))

        def is_safe(pointer: str, made: dict[str, str] = made) -> bool:
            by = made.get(pointer, "")
            base = re.match(r"getelementptr \S+, ptr (%\w+), i64 -?\d+$", by)
            return by.startswith("select i1") or (base is not None and is_safe(base[1]))

        def is_tail(mask: str, made: dict[str, str] = made) -> bool:
            by = made.get(mask, "")
            source = re.match(r"shufflevector <\d+ x i1> (%\w+), ", by)
            return _TAIL.match(by) is not None or (source is not None and is_tail(source[1]))

        wrong += [
            line for pointer, mask in _ACCESS.findall(function) if not is_safe(pointer) and not is_tail(mask) for line in [made.get(mask, mask)]
        ]
    return wrong


def rotated(x: Any, c: Any, s: Any) -> Any:
    half = x.shape[-1] // 2
    return x * c + hnp.concatenate([-x[..., half:], x[..., :half]], -1) * s


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "a cache and rotated rows": (lambda old, x, c: hnp.concatenate([old, rotated(x, c, c)], 1), [(8, 3, 64), (8, 1, 64), (64,)]),
    "pieces of a row": (lambda x, y: hnp.concatenate([x, y * 2, x[:, ::-1]], 1) + 1, [(5, 40), (5, 33)]),
    "borders": (lambda x: hnp.pad(x, ((1, 2), (3, 4)))[:, ::-1] * 2, [(6, 50)]),
    "elements apart": (lambda x: hnp.pad(x, ((1, 0), (5, 5)))[:, ::2] * 2, [(6, 90)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_masks(name: str) -> None:
    f, shapes = PROGRAMS[name]
    arrays = [np.random.default_rng(0).normal(size=s).astype(np.float32) for s in shapes]
    graph = hg.jit(f).lower(*arrays).graph
    text = module_text(graph, "fast", machine("x86-64-v4", "linux"))
    assert _ACCESS.search(text) and astray(text) == []
    np.testing.assert_allclose(hg.jit(f)(*arrays), f(*[hg.tensor(a) for a in arrays]), rtol=1e-6)


@pytest.mark.parametrize("name", GUARDED)
def test_borders_and_joins(name: str) -> None:
    for width in (15, 31):
        graph = hg.jit(lambda x: GUARDED[name](hnp, x)).lower(np.zeros((3, width), np.float32)).graph
        assert astray(module_text(graph, "fast", machine("x86-64-v4", "linux"))) == []
