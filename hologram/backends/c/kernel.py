"""The one walk from kernel IR to C. What differs between dialects is a row of :mod:`hologram.backends.c.dialects`.

How loops become work-groups and work-items is told in :mod:`hologram.backends.c.grid`. Barriers stand where an access follows others, of other
items, that it could disturb or depend on; they are reached by all items alike, since everything outside of lanes is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from hologram.backends.c.accumulators import Monoid
from hologram.backends.c.analysis.alternatives import find_alternatives
from hologram.backends.c.analysis.gemm import Product
from hologram.backends.c.analysis.matrix_units import is_f16
from hologram.backends.c.analysis.tiles import Nest, shared_bytes
from hologram.backends.c.analysis.vectors import ACCESS_BYTES, Vectors, divides, vectors
from hologram.backends.c.emitter import ITEM
from hologram.backends.c.grid import scans
from hologram.backends.c.nests import ElementWriter
from hologram.backends.c.row_reduction import HorizontalReduction, after, pieces, unroll_reduction
from hologram.backends.c.scalars import Lines, memory_name
from hologram.backends.c.scan import scan_lanes
from hologram.backends.c.shared_memory_gemm import SharedMemoryGemmWriter
from hologram.backends.c.statements import StatementWriter
from hologram.backends.c.tensor_core.mma import MmaNestWriter, MmaWriter
from hologram.backends.c.tensor_core.mma_async_copy import AsyncCopyMmaWriter
from hologram.backends.c.tensor_core.mma_block_prefetch import BlockPrefetchWriter, write_prefetched
from hologram.dtypes import uint64
from hologram.graph.kernel.ir import Accumulate, Buffer, Loop, Stmt, Store
from hologram.ir.instruction import Ins

MAX_UNROLL = 8  # written out: so many accesses of an item are under way
MAX_SHARED_AHEAD = 1  # vectors of shared memory read before the first is used: it answers soon, and registers let more groups be under way


class UnrolledVectors(NamedTuple):
    """``number`` vectors that an item takes, ``step`` elements apart; those from ``stop`` on are not there (None: all are)."""

    number: int
    step: int
    stop: str | None


class KernelWriter(StatementWriter):
    """Writes one kernel."""

    # --- the function --------------------------------------------------------------------------------------------------

    def render(self, name: str) -> str:
        self._body(self.kernel.body)
        d, k = self.dialect, self.kernel
        params: list[str] = []
        start = Lines(1)
        for b in k.params:
            const = "const " if b.role == "in" else ""
            params.append(f"{d.memory}{const}{memory_name(b.dtype)} *{b.name}")
            if d.offsets:
                params.append(d.integer.format(name=f"{b.name}_at"))
                start.do(f"{b.name} += {b.name}_at;")
        params += [d.integer.format(name=s) for s in k.symbols]
        if self.mapping.workspace:
            params.append(f"{d.memory}u8 *hg_workspace")
        if d.table:
            self._read_table(start, params)
            params.insert(0, "const u64 *hg_table")
        if d.pointer:
            for pointer in (*(b.name for b in k.params), *(["hg_workspace"] if self.mapping.workspace else [])):
                start.do(d.pointer.format(name=pointer))
        if d.slots:
            params = [f"{p} [[buffer({i})]]" for i, p in enumerate(params)]
        head = d.kernel.format(name=name, params=", ".join([*params, *d.extra]), items=self.mapping.items, resident=self.mapping.resident)
        start.do(self._place_in_grid())
        self._place_scratch(start)
        for line in (*self.shared_arrays.values(), *self.shared_pointers):
            start.do(line)
        return f"{head} {{\n{start}{self.f}}}\n"

    def _read_table(self, start: Lines, params: list[str]) -> None:
        """Pointers are offsets in the slots of the table, if there is one."""
        pointers = [p.rpartition("*") for p in params if "*" in p]
        if pointers:
            start.open("if (hg_table)")
            for kind, _, name in pointers:
                start.do(f"{name} = ({kind.strip()} *)hg_in_slot({name});")
            start.close()

    def _place_in_grid(self) -> str:
        """``hg_group`` is the parallel iteration to start with, ``hg_groups`` how many are under way, ``hg_item`` the item's number among those of
        one."""
        d, parts, width = self.dialect, self.mapping.iterations, self.mapping.width
        if self.mapping.by_item or parts == 1:
            return f"const i64 hg_group = {d.group}, hg_groups = {d.groups}, {ITEM} = {d.item};"
        own = f"hg_team = {d.item} / {width}, {ITEM} = {d.item} % {width}"
        return f"const i64 {own}, hg_group = {d.group} * {parts} + hg_team, hg_groups = {d.groups} * {parts};"

    def _place_scratch(self, start: Lines) -> None:
        at, memory = 0, self.dialect.memory
        iterations = self.mapping.iterations
        if self.mapping.tiles is not None and self.mapping.tiles.panels:
            self.aligned_array("u8", "hg_panels", self.mapping.tiles.panels)
        for b in self.kernel.scratch:
            kind = memory_name(b.dtype)
            size = shared_bytes(b)
            if b in self.mapping.register_scratch:
                start.do(f"{kind} {b.name}{''.join(f'[{n}]' for n in self.mapping.register_scratch[b])};")
                continue
            if self.mapping.in_workspace:
                start.do(f"{memory}{kind} *{b.name} = ({memory}{kind} *)(hg_workspace + hg_group * {self.mapping.workspace // iterations} + {at});")
            else:
                self._place_shared(start, b, kind, size)
            at += size

    def _place_shared(self, start: Lines, b: Buffer, kind: str, nbytes: int) -> None:
        """Scratch in memory that the group shares, ``nbytes`` of it for each parallel iteration under way, aligned for the widest access."""
        d, whole = self.dialect, self.scalars.vector(uint64, ACCESS_BYTES // 8)
        start.do(f"{d.local}{whole} hg_{b.name}[{self.mapping.iterations * nbytes // ACCESS_BYTES}];")
        own = f" + hg_team * {nbytes // b.dtype.itemsize}" if self.mapping.iterations > 1 else ""
        start.do(f"{d.local_pointer}{kind} *{b.name} = ({d.local_pointer}{kind} *)hg_{b.name}{own};")

    # --- statements ----------------------------------------------------------------------------------------------------

    def _body(self, body: list[Stmt]) -> None:
        """The statements of the kernel; alternatives are branches, of which the last has no condition."""
        first = find_alternatives(body)
        self.block(body[:first])
        depth = self.f.depth
        for s in [] if first is None else body[first:]:
            if isinstance(s, Loop) and s is not body[-1]:
                self.f.open(f"if ({self.integer(s.extent)} > 0)")
                self.block([s])
                self.f.close()
                self.f.open("else")
            else:
                self.block([s])
        while self.f.depth > depth:
            self.f.close()

    def block(self, body: list[Stmt]) -> None:
        for s in body:
            if isinstance(s, Loop):
                self._loop(s)
            elif isinstance(s, Store):
                self.store(s)
            elif isinstance(s, Accumulate):
                self.accumulate(s)
            elif isinstance(s, Ins):
                self.instruction(s)

    # --- loops ---------------------------------------------------------------------------------------------------------

    def _loop(self, loop: Loop) -> None:
        name = loop.var if loop.var not in self.integers else self.fresh(loop.var)
        self.integers[loop.var] = name
        if loop.kind == "parallel":
            self._parallel(loop, name)
        elif self.mapping.product is not None and loop is self.mapping.product.rows.loop:
            self.in_lanes = True
            _product_writer(self.mapping.product)(self, self.mapping.product).write()
            self.in_lanes = False
        elif self.mapping.tiles is not None and loop in self.mapping.tiles.nests:
            self._tile(loop)
        elif self.mapping.prefetch is not None and loop is self.mapping.prefetch.loop:
            BlockPrefetchWriter(self, self.mapping.prefetch).write(name)
        elif loop.kind == "lanes" and any(isinstance(s, Loop) and s.kind == "lanes" for s in loop.body):
            self._serial(loop, name)  # the lanes are those of the loop inside
        elif loop.kind == "lanes" and not self.mapping.by_item:
            self._lanes(loop, name)
        else:
            self._serial(loop, name)
        del self.integers[loop.var]

    def _tile(self, loop: Loop) -> None:
        """A nest of lanes in lanes, of a kernel of tiles."""
        assert self.mapping.tiles is not None
        p, hazardous = self.mapping.tiles.nests[loop], self._is_hazardous(loop.body)
        if hazardous:
            self._settle()
        self.in_lanes = True
        if self.mapping.prefetch is not None:
            write_prefetched(self, self.mapping.prefetch, loop)
        elif isinstance(p, Nest):
            (ElementWriter(self, p) if p.shares is None else MmaNestWriter(self, p)).write()
        else:
            _product_writer(p)(self, p).write()
        self.in_lanes = False
        self.dirty = self.dirty or hazardous

    def _parallel(self, loop: Loop, name: str) -> None:
        first, step = ("hg_group", "hg_groups")
        if self.mapping.by_item:
            first, step = f"hg_group * {self.mapping.items} + {ITEM}", f"hg_groups * {self.mapping.items}"
        self.f.open(f"for (i64 {name} = {first}; {name} < {self.integer(loop.extent)}; {name} += {step})")
        self.dirty = bool(self.both_ways)  # the parallel iteration before may be under way
        self.block(loop.body)
        self.f.close()

    def _range(self, loop: Loop) -> tuple[str, str]:
        start = self.integer(loop.start)
        stop = self.integer(loop.start + loop.extent)
        if loop.limit is None:
            return start, stop
        limit, end = self.integer(loop.limit), self.fresh("stop")
        self.f.do(f"const i64 {end} = {stop} < {limit} ? {stop} : {limit};")
        return start, end

    def _declared(self, loop: Loop) -> list[Monoid]:
        """Variables for the results of a loop's accumulators."""
        monoids = [Monoid(a, self.scalars) for a in loop.accs]
        for m in monoids:
            name = self.fresh("a")
            self.state[m.acc] = [name, f"{name}_at"][: len(m.types)]
            self.f.do(m.declare(self.state[m.acc]))
            self.env[m.acc] = self.state[m.acc][-1]
        return monoids

    def _serial(self, loop: Loop, name: str) -> None:
        """Vertical reduction: left to right, a partial result every PAGE iterations."""
        start, stop = self._range(loop)
        monoids = self._declared(loop)
        inside = self.dirty or (not self.in_lanes and self._is_hazardous(loop.body))
        self._pieces(loop, name, monoids, [] if scans(loop) or not monoids else pieces(loop.extent), start, stop, inside)
        self.dirty = self.dirty or inside

    def _pieces(self, loop: Loop, name: str, monoids: list[Monoid], units: list[int], start: str, stop: str, dirty: bool) -> None:
        if not units:
            if monoids and not any(isinstance(s, (Loop, Store)) for s in loop.body):
                unroll_reduction(self, loop)
            self.f.open(f"for (i64 {name} = {start}; {name} < {stop}; ++{name})")
            self.dirty = dirty
            self.block(loop.body)
            self.f.close()
            return
        at, end = self.fresh("page"), self.fresh("end")
        self.f.open(f"for (i64 {at} = {start}; {at} < {stop}; {at} += {units[0]})")
        self.f.do(f"const i64 {end} = {at} + {units[0]} < {stop} ? {at} + {units[0]} : {stop};")
        whole = {m: self.state[m.acc] for m in monoids}
        part = self.partial(monoids)
        self._pieces(loop, name, monoids, units[1:], at, end, dirty)
        for m in monoids:
            self.f.do(m.combine(whole[m], whole[m], part[m]))
            self.state[m.acc] = whole[m]
        self.f.close()

    # --- lanes ---------------------------------------------------------------------------------------------------------

    def _lanes(self, loop: Loop, name: str) -> None:
        hazardous = self._is_hazardous(loop.body)
        if hazardous:
            self._settle()
        start, stop = self._range(loop)
        monoids = self._declared(loop)
        self.in_lanes = True
        if scans(loop):
            scan_lanes(self, loop, name, start, stop)
        elif monoids:
            HorizontalReduction(self, loop, name, monoids).write(start, stop)
        else:
            self._elements(loop, name, start, stop)
        if self.mapping.by_subgroup or scans(loop) or not monoids:  # a reduction by a group ends with its barrier
            self.dirty = self.dirty or hazardous
        self.in_lanes = False

    def _elements(self, loop: Loop, name: str, start: str, stop: str) -> None:
        """Independent elements, several neighbours to an item where memory allows."""
        taken = vectors(loop)
        if taken is None:
            self._one_by_one(loop, name, start, stop)
            return
        n, at, step = taken.width, self.fresh("at"), self.mapping.width * taken.width
        count = taken.loads_ahead(-(-loop.extent // step)) if isinstance(loop.extent, int) else 1
        if taken.loads and not self.mapping.in_workspace and all(b.role == "scratch" for b, _ in taken.loads):
            count = min(count, MAX_SHARED_AHEAD)
        first = f"{'' if start == '0' else f'{start} + '}{ITEM} * {n}"
        filled = count == 1 or (loop.limit is None and divides(step * count, loop.extent))
        self.unroll(1)  # compilers that unroll further come to split the vectors
        self.f.open(f"for (i64 {at} = {first}; {at} < {stop}; {at} += {step * count})")
        if not taken.whole:
            self.f.open(f"if ({at} + {n} > {stop})")
            self.f.open(f"for (i64 {name} = {at}; {name} < {stop}; ++{name})")
            self.block(loop.body)
            self.f.close()
            self.f.do("continue;")
            self.f.close()
        self._neighbours(loop, name, at, taken, UnrolledVectors(count, step, None if filled else stop))
        self.f.close()

    def _one_by_one(self, loop: Loop, name: str, start: str, stop: str) -> None:
        """An element at a time; where all items have as many, none is compared with the end."""
        width = self.mapping.width
        alike = start == "0" and loop.limit is None and isinstance(loop.extent, int) and loop.extent % width == 0
        if alike and loop.extent == width:
            self.f.open("")
            self.f.do(f"const i64 {name} = {ITEM};")
        elif alike and isinstance(loop.extent, int):
            self.unroll(min(MAX_UNROLL, loop.extent // width))
            self.f.open(f"for (int hg_turn = 0; hg_turn < {loop.extent // width}; ++hg_turn)")
            self.f.do(f"const i64 {name} = hg_turn * {width} + {ITEM};")
        else:
            self.f.open(f"for (i64 {name} = {after(start)}; {name} < {stop}; {name} += {width})")
        self.block(loop.body)
        self.f.close()

    def _neighbours(self, loop: Loop, name: str, at: str, taken: Vectors, unrolled: UnrolledVectors) -> None:
        """All vectors of the item are read, and then, one after another, their elements computed and written."""
        kinds = {access: self.scalars.vector(access[0].dtype, taken.width) for access in (*taken.loads, *taken.stores)}
        whole = {access: self.fresh("w") for access in taken.loads}
        for access, v in whole.items():
            self.f.do(f"{kinds[access]} {v}[{unrolled.number}];")
        with self._each_vector(loop, at, unrolled):
            for (buffer, index), v in whole.items():
                source = f"{self.space(buffer)}const {kinds[buffer, index]} *"
                self.f.do(f"{v}[hg_turn] = *({source})({buffer.name} + {self.integer(index)});")
        with self._each_vector(loop, at, unrolled):
            stores = {access: self.fresh("w") for access in taken.stores}
            for access, v in stores.items():
                self.f.do(f"{kinds[access]} {v};")
            texts = {**{p: f"{v}[hg_turn]" for p, v in whole.items()}, **stores}
            self.near = {access: f"{v}.v[hg_near]" for access, v in texts.items()}
            self.unroll()
            self.f.open(f"for (int hg_near = 0; hg_near < {taken.width}; ++hg_near)")
            self.f.do(f"const i64 {name} = hg_first + hg_near;")
            first, self.integers[loop.var] = self.integers[loop.var], name
            self.block(loop.body)
            self.integers[loop.var] = first
            self.f.close()
            self.near = {}
            for (buffer, index), v in stores.items():
                self.f.do(f"*({self.space(buffer)}{kinds[buffer, index]} *)({buffer.name} + {self.integer(index)}) = {v};")
        self.integers[loop.var] = name

    @contextmanager
    def _each_vector(self, loop: Loop, at: str, unrolled: UnrolledVectors) -> Iterator[None]:
        """For each of the vectors that the item has: ``hg_first`` is the first of its neighbours."""
        self.unroll()
        self.f.open(f"for (int hg_turn = 0; hg_turn < {unrolled.number}; ++hg_turn)")
        self.f.do(f"const i64 hg_first = {at} + hg_turn * {unrolled.step};")
        self.f.open(f"if (hg_first < {unrolled.stop})" if unrolled.stop is not None else "")
        self.integers[loop.var] = "hg_first"
        yield
        self.f.close()
        self.f.close()


def _product_writer(p: Product) -> type[SharedMemoryGemmWriter]:
    if p.shares is None:
        return SharedMemoryGemmWriter
    return AsyncCopyMmaWriter if is_f16(p) else MmaWriter
