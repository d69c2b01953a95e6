"""Scatters by blocks of places: what is written, and where, is computed by vectors.

The updates of a scatter run one after the other, each a read, an op and a write at a computed index. What they are made of does not depend on their
order. Where that is worth a vector loop, the loop over places goes block by block (strip mining): lanes compute the indices and the values of a block
and keep them in scratch, which stays in the first cache, and a serial loop takes them from there. Values have the same bits, and elements take their
updates in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hologram.graph.kernel.ir import Buffer, Loop, Store, Value
from hologram.graph.lower.code_placement import Renamed, is_guard
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Int, atoms, counter, floordiv

BLOCK = 256  # places
MIN_COST = 6  # operations a place, from which vectors do them: a computed index of integers takes less
LANE = "i"


def by_blocks(places: Loop, fresh_name: Callable[[], str]) -> tuple[Loop, list[Buffer]] | None:
    """The loop over places by blocks, and its scratch; None where ``places`` may stay as it is. Its body is instructions and, at the end, the store;
    nothing else reads the array that is written."""
    if isinstance(places.extent, int) and places.extent < 2 * BLOCK:
        return None
    parts = _Parts(places)
    return _blocks(places, parts, fresh_name) if sum(map(_cost, parts.ahead)) >= MIN_COST else None


def _cost(v: Ins) -> int:
    return 0 if isinstance(v.op, str) else v.op.cost


class _Parts:
    """The instructions of a loop over places: ``in_turn``, whose order matters, and what is done ``ahead``, of which ``kept`` is read in turn. What
    costs less than scratch does, and guards, which prove nothing from there, are in both."""

    def __init__(self, places: Loop) -> None:
        *body, store = places.body
        assert isinstance(store, Store)
        self.body: list[Ins] = [v for v in body if isinstance(v, Ins)]
        self.store = store
        self._named = {v.name: v for v in self.body if v.name}
        ordered: set[Value] = set()
        for v in self.body:
            if (v.op == "load" and v.attrs[0] is store.buffer) or not ordered.isdisjoint(v.args):
                ordered.add(v)
        late = self._closure(self._of_store(), lambda v: v in ordered or is_guard(v) or _is_at_hand(v))
        self.kept = [v for v in self.body if v in late and not (v in ordered or is_guard(v) or _is_at_hand(v))]
        self.in_turn = [v for v in self.body if v in late and v not in self.kept]
        early = self._closure(self.kept, lambda v: True)
        self.ahead = [v for v in self.body if v in early]

    def _of_store(self) -> list[Ins]:
        found = [v for v in (self.store.value, self.store.mask) if isinstance(v, Ins)]
        return [v for v in [*found, *self._names_in([self.store.index])] if v in self.body]

    def _names_in(self, attrs: Iterable[object]) -> list[Ins]:
        return [self._named[a.name] for x in attrs for a in atoms(x) if a.name in self._named]  # type: ignore[arg-type]

    def _closure(self, wanted: Iterable[Ins], goes_on: Callable[[Ins], bool]) -> set[Ins]:
        """``wanted`` and what they are made of, but not what lies behind an instruction at which it does not go on."""
        mine, found, todo = set(self.body), set[Ins](), list(wanted)
        while todo:
            v = todo.pop()
            if v not in found:
                found.add(v)
                if goes_on(v):
                    todo += [a for a in v.args if a in mine]
                    todo += self._names_in(v.attrs if v.op in ("load", "index", "inside") else ())
        return found


def _is_at_hand(v: Ins) -> bool:
    """Whether a value is there for the taking: a constant, an index, an element at an index that is not computed."""
    if v.name or v.args:
        return False
    return v.op in ("const", "index") or (v.op == "load" and not any(a.name.startswith("taken") for a in atoms(v.attrs[1])))


def _blocks(places: Loop, parts: _Parts, fresh_name: Callable[[], str]) -> tuple[Loop, list[Buffer]]:
    count = floordiv(places.extent + (BLOCK - 1), BLOCK)
    limit: Int | None = None if places.extent % BLOCK == 0 else places.extent
    blocks = Loop("serial", "t", 0, count)
    first = counter(blocks.var, count) * BLOCK
    lanes, turns = (Loop(kind, name, first, BLOCK, limit) for kind, name in (("lanes", LANE), ("serial", places.var)))
    scratch = {v: Buffer(f"s{k}", v.dtype, "scratch", BLOCK) for k, v in enumerate(parts.kept)}
    _write_ahead(lanes, places, parts, {v: (b, counter(LANE, places.extent) - first) for v, b in scratch.items()}, fresh_name)
    _write_in_turn(turns, parts, {v: (b, counter(places.var, places.extent) - first) for v, b in scratch.items()}, fresh_name)
    blocks.body += [lanes, turns]
    return blocks, list(scratch.values())


def _write_ahead(lanes: Loop, places: Loop, parts: _Parts, kept: dict[Ins, tuple[Buffer, Int]], fresh_name: Callable[[], str]) -> None:
    renamed = Renamed()
    renamed.names[places.var] = LANE
    for v in parts.ahead:
        copy = renamed[v] = v.copy(renamed, renamed.index)
        _name(v, copy, renamed, fresh_name)
        lanes.body.append(copy)
        if v in kept:
            lanes.body.append(Store(*kept[v], copy, None))


def _write_in_turn(turns: Loop, parts: _Parts, kept: dict[Ins, tuple[Buffer, Int]], fresh_name: Callable[[], str]) -> None:
    renamed = Renamed()
    for v in parts.body:
        if v in kept or v in parts.in_turn:
            copy = renamed[v] = Ins.load(*kept[v]) if v in kept else v.copy(renamed, renamed.index)
            _name(v, copy, renamed, fresh_name)
            turns.body.append(copy)
    s = parts.store
    mask = None if s.mask is None else renamed.get(s.mask, s.mask)
    turns.body.append(Store(s.buffer, renamed.index(s.index), renamed.get(s.value, s.value), mask))


def _name(v: Ins, copy: Ins, renamed: Renamed, fresh_name: Callable[[], str]) -> None:
    """Where index expressions go through ``v``, they go through its copy, by a name of its own."""
    if v.name:
        copy.name = renamed.names[v.name] = fresh_name()
        copy.extent, copy.assumed = v.extent, v.assumed
