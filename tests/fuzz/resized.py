"""Programs of one call of a public function that the fuzzer draws, and the same of other sizes."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator

import numpy as np

from tests.fuzz.arguments import draw
from tests.fuzz.draft import Draft, Finding, Refused
from tests.fuzz.generate import trimmed
from tests.fuzz.program import Program

DRAWS = 3  # programs that are drawn at most
SEEDS = 30  # from which they are drawn


def drawn(name: str, seed: int) -> Program | None:
    """A program of one call of a function, some of whose arguments have axes that may be symbolic; None where nothing fits."""
    d = Draft(np.random.default_rng([seed, zlib.crc32(name.encode())]), 600)
    d.home_dtype, d.contents = "float32", "normal"
    try:
        with d.trace:
            found = draw(d, name)
    except (Refused, Finding, NotImplementedError):
        return None
    program = trimmed(d.program([v.ref for v in found]))
    return program if any(n > 1 for i in program.inputs for n in i.shape) else None


def programs(name: str) -> Iterator[Program]:
    found = 0
    for seed in range(SEEDS):
        program = drawn(name, seed)
        if program is not None:
            yield program
            found += 1
        if found == DRAWS:
            return


def resized(p: Program, by: int) -> Program:
    """The same with longer arguments: equal extents stay equal, others different."""
    inputs = [dataclasses.replace(i, shape=tuple(n * by + by - 1 if n > 1 else n for n in i.shape)) for i in p.inputs]
    return p.with_(inputs=tuple(inputs))
