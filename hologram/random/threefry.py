"""Threefry-2x32 with 20 rounds: Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).

A bijection of pairs of 32-bit words for every key. It is recorded as elementwise ops on counters, so that it fuses into what
uses the words, and element ``i`` depends on the key and on ``i`` alone: not on threads, nor on how the program is compiled.
"""

from __future__ import annotations

from hologram import dtypes
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.primitives.scalar import elementwise as ew
from hologram.trace.recorder import constant, record

Words = tuple[Node, Node]

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
GROUPS = 5  # of four rounds


def _op(op: Op, a: Node, b: Node | int) -> Node:
    return record(op, (a, b if isinstance(b, Node) else constant(b, dtypes.uint32)))


def _rotated(x: Node, count: int) -> Node:
    return _op(ew.or_, _op(ew.shl_low, x, count), _op(ew.shr_low, x, 32 - count))


def threefry(key: Words, counter: Words) -> Words:
    """The two uint32 words that ``key`` makes of ``counter``; scalars broadcast. The key's part is scalar work, done once."""
    schedule = (*key, _op(ew.xor, _op(ew.xor, key[0], key[1]), PARITY))
    a, b = _op(ew.add, counter[0], schedule[0]), _op(ew.add, counter[1], schedule[1])
    for group in range(GROUPS):
        for count in ROTATIONS[group % 2]:
            a = _op(ew.add, a, b)
            b = _op(ew.xor, _rotated(b, count), a)
        a = _op(ew.add, a, schedule[(group + 1) % 3])
        b = _op(ew.add, b, _op(ew.add, schedule[(group + 2) % 3], group + 1))
    return a, b
