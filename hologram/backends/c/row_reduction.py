"""Loops of lanes that reduce, in the canonical order of horizontal reductions: 32 lanes a page, combined as a tree.

Lanes are items of a subgroup. Their values meet in registers where the dialect can exchange them there, else in memory that the group shares.
"""

from __future__ import annotations

from hologram.backends.c.accumulators import Monoid
from hologram.backends.c.emitter import ITEM, Emitter
from hologram.backends.c.scalars import memory_name, type_name
from hologram.graph.kernel.ir import Loop
from hologram.ir.symbolic import Int
from hologram.primitives.reductions import LANES, PAGE

LANE = f"{ITEM} % {LANES}"
State = dict[Monoid, list[str]]
UNROLL = {4: 8, 16: 4}  # iterations worth unrolling, so that so many loads are under way, by the most instructions of one


def pieces(extent: Int) -> list[int]:
    """Lengths of the pieces of which partial results are combined, the longest first: pages, pages of pages where there may be that many."""
    return [n for n in (PAGE**2, PAGE) if not isinstance(extent, int) or extent > n]


def unroll_factor(loop: Loop) -> int:
    """How many iterations of a loop are worth unrolling."""
    return next((n for most, n in UNROLL.items() if len(loop.body) <= most), 1)


def unroll_reduction(w: Emitter, loop: Loop) -> None:
    """Asks for as many iterations unrolled as are worth it."""
    together = unroll_factor(loop)
    if together > 1:
        w.unroll(together)


def after(start: str) -> str:
    """The item's own place from ``start`` on."""
    return ITEM if start == "0" else f"{start} + {ITEM}"


class HorizontalReduction:
    """Writes the reductions of one loop; its results are left in the variables of the accumulators, the same in every item of the
    parallel iteration."""

    def __init__(self, writer: Emitter, loop: Loop, name: str, monoids: list[Monoid]) -> None:
        self.w, self.f, self.loop, self.name, self.monoids = writer, writer.f, loop, name, monoids
        self.width = writer.mapping.width
        self.in_registers = writer.dialect.subgroup_barrier is not None

    def write(self, start: str, stop: str) -> None:
        self._reduce(pieces(self.loop.extent), start, stop)

    def _reduce(self, units: list[int], start: str, stop: str) -> None:
        results = {m: self.w.state[m.acc] for m in self.monoids}
        self.f.open("")
        if units:
            lanes = self._in_pages(units, start, stop)
        else:
            first = after(start) if self.width == LANES else f"{ITEM} < {LANES} ? {after(start)} : {stop}"
            lanes = self._own_elements(first, stop)
        self._combine_as_tree(lanes)
        self._share(lanes, results)
        self.f.close()
        for m in self.monoids:
            self.w.state[m.acc] = results[m]

    def _own_elements(self, first: str, stop: str) -> State:
        """Variables into which an item accumulates every 32nd element from ``first`` on."""
        lanes = self.w.partial(self.monoids)
        unroll_reduction(self.w, self.loop)
        self.f.open(f"for (i64 {self.name} = {first}; {self.name} < {stop}; {self.name} += {LANES})")
        self.w.block(self.loop.body)
        self.f.close()
        return lanes

    # --- 32 lanes to one -----------------------------------------------------------------------------------------------

    def _combine_as_tree(self, lanes: State) -> None:
        """Combines the variables of each 32 items. The result is in the variables of the first of them."""
        if self.in_registers:
            self._exchange(lanes)
            return
        arrays = {m: self._arrays(m, i, "part", self.width) for i, m in enumerate(self.monoids)}
        for m in self.monoids:
            self.f.do(_put(arrays[m], ITEM, lanes[m]))
        self.w.barrier()
        self.f.open(f"for (int hg_half = {LANES // 2}; hg_half > 0; hg_half >>= 1)")
        self.f.open(f"if ({LANE} < hg_half)")
        for m in self.monoids:
            self.f.do(m.combine(lanes[m], lanes[m], _at(arrays[m], f"{ITEM} + hg_half")))
            self.f.do(_put(arrays[m], ITEM, lanes[m]))
        self.f.close()
        self.w.barrier()
        self.f.close()

    def _exchange(self, lanes: State) -> None:
        self.w.unroll()
        self.f.open(f"for (int hg_half = {LANES // 2}; hg_half > 0; hg_half >>= 1)")
        for m in self.monoids:
            other = [self.w.fresh("other") for _ in m.types]
            for d, name, mine in zip(m.types, other, lanes[m], strict=True):
                self.f.do(f"const {type_name(d)} {name} = hg_down({mine}, hg_half);")
            self.f.do(m.combine(lanes[m], lanes[m], other))
        self.f.close()

    def _share(self, lanes: State, results: State) -> None:
        """The variables of the parallel iteration's first item become ``results`` of all its items."""
        if self.in_registers and self.width == LANES:
            for m in self.monoids:
                for to, of in zip(results[m], lanes[m], strict=True):
                    self.f.do(f"{to} = hg_first({of});")
            return
        arrays = {m: self._arrays(m, i, "whole", 1) for i, m in enumerate(self.monoids)}
        for m in self.monoids:
            self.f.do(f"if ({ITEM} == 0) {{ {_put(arrays[m], '0', lanes[m])} }}")
        self.w.barrier()
        for m in self.monoids:
            for to, of in zip(results[m], _at(arrays[m], "0"), strict=True):
                self.f.do(f"{to} = {of};")
        self.w.barrier()

    # --- pages ---------------------------------------------------------------------------------------------------------

    def _in_pages(self, units: list[int], start: str, stop: str) -> State:
        """Results of pages go, in order, to 32 partial results: variables of the first 32 items."""
        f, level = self.f, len(units)
        pages = {m: self._arrays(m, i, f"pages{level}_", LANES) for i, m in enumerate(self.monoids)}
        f.open(f"if ({ITEM} < {LANES})")
        for m in self.monoids:
            f.do(_put(pages[m], ITEM, m.identity))
        f.close()
        self.w.barrier()
        at_once = self.width // LANES if level == 1 else 1
        at = self.w.fresh("page")
        f.open(f"for (i64 {at} = {start}; {at} < {stop}; {at} += {units[0] * at_once})")
        if level == 1:
            new = self._pages_at_once(at, stop)
        else:
            new = self.w.partial(self.monoids)
            end = self.w.fresh("end")
            f.do(f"const i64 {end} = {at} + {units[0]} < {stop} ? {at} + {units[0]} : {stop};")
            self._reduce(units[1:], at, end)
        self._keep(pages, new, at, units[0], start, stop, level == 1)
        f.close()
        lanes = self.w.partial(self.monoids)
        for m in self.monoids:
            f.do(f"if ({ITEM} < {LANES}) {{ {_set(lanes[m], _at(pages[m], ITEM))} }}")
        return lanes

    def _pages_at_once(self, at: str, stop: str) -> State:
        """A page for every 32 items; its result is in the variables of the first of them."""
        first, end = self.w.fresh("first"), self.w.fresh("end")
        self.f.do(f"const i64 {first} = {at} + {ITEM} / {LANES} * {PAGE};")
        self.f.do(f"const i64 {end} = {first} + {PAGE} < {stop} ? {first} + {PAGE} : {stop};")
        lanes = self._own_elements(f"{first} + {LANE}", end)
        self._combine_as_tree(lanes)
        return lanes

    def _keep(self, pages: State, new: State, at: str, unit: int, start: str, stop: str, each: bool) -> None:
        """Combines results of pages with those of 32 pages before; ``each``: every 32 items have one, else all have the same."""
        place = self.w.fresh("place")
        self.f.open(f"if ({LANE} == 0 && {at} + {ITEM} / {LANES} * {unit} < {stop})" if each else f"if ({ITEM} == 0)")
        self.f.do(f"const i64 {place} = (({at} - ({start})) / {unit}{f' + {ITEM} / {LANES}' if each else ''}) % {LANES};")
        for m in self.monoids:
            old = _at(pages[m], place)
            self.f.do(m.combine(old, old, new[m]))
        self.f.close()
        self.w.barrier()

    def _arrays(self, m: Monoid, number: int, what: str, size: int) -> list[str]:
        """Shared arrays for the components of the ``number``-th accumulator of a loop."""
        return [self.w.shared_array(memory_name(d), f"{what}{number}{'_at' * k}", size) for k, d in enumerate(m.types)]


def _at(arrays: list[str], index: str) -> list[str]:
    return [f"{a}[{index}]" for a in arrays]


def _set(names: list[str], values: list[str]) -> str:
    return " ".join(f"{a} = {v};" for a, v in zip(names, values, strict=True))


def _put(arrays: list[str], index: str, values: list[str]) -> str:
    return _set(_at(arrays, index), values)
