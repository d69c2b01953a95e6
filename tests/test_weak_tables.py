"""Weak sets and tables: what they hold, that they do not grow, and that threads agree."""

from __future__ import annotations

import gc
import sys
import threading

from hologram.ir.symbolic import Atom, _atoms, floordiv, var
from hologram.support.weak import MIN_PURGE, WeakSet, WeakTable


class Thing:
    pass


def test_a_set_forgets_what_died_and_what_was_discarded() -> None:
    things = [Thing() for _ in range(3)]
    weak: WeakSet[Thing] = WeakSet()
    for x in (*things, things[0]):
        weak.add(x)
    assert set(weak) == set(things) and len(weak) >= 3
    weak.discard(things[1])
    weak.discard(Thing())
    del things[2], x
    assert list(weak) == things[:1]


def test_a_table_has_one_object_for_a_key() -> None:
    table: WeakTable[str, Thing] = WeakTable()
    first = Thing()
    assert table.get("a") is None and table.setdefault("a", first) is first
    assert table.setdefault("a", Thing()) is first and table.get("a") is first and len(table) == 1
    del first
    assert table.get("a") is None and len(table) == 0
    second = Thing()
    assert table.setdefault("a", second) is second


def test_tables_do_not_grow() -> None:
    table: WeakTable[int, Thing] = WeakTable()
    alive = [table.setdefault(i, Thing()) for i in range(0, 10 * MIN_PURGE, 10)]
    for i in range(20 * MIN_PURGE):
        table.setdefault(i, Thing())
    assert len(table._references) <= 2 * MIN_PURGE + 1
    assert all(table.get(10 * i) is x for i, x in enumerate(alive))


def test_atoms_do_not_stay() -> None:
    gc.collect()
    for i in range(5 * MIN_PURGE):
        floordiv(var(f"weak{i}"), 3)
    assert len(_atoms._references) < 4 * MIN_PURGE
    a = floordiv(var("weak"), 3)
    assert a == floordiv(var("weak"), 3)


def test_threads_agree_on_atoms() -> None:
    threads, rounds, found = 4, 300, []
    barrier = threading.Barrier(threads)
    interval = sys.getswitchinterval()

    def work() -> None:
        mine = []
        for i in range(rounds):
            barrier.wait()
            mine.append(Atom.variable(f"shared{i}"))
        found.append(mine)

    sys.setswitchinterval(1e-6)
    try:
        workers = [threading.Thread(target=work) for _ in range(threads)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(found) == threads and all(len({id(a) for a in same}) == 1 for same in zip(*found, strict=True))
