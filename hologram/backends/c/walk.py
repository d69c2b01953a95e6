"""The one walk from kernel IR to C. What differs between dialects is a row of :mod:`hologram.backends.c.dialects`.

How loops become work-groups and work-items is told in :mod:`hologram.backends.c.mapping`. Barriers stand where an access follows others, of other
items, that it could disturb or depend on; they are reached by all items alike, since everything outside of lanes is.
"""

from __future__ import annotations

from typing import Any

from hologram.backends.c.accumulate import Monoid
from hologram.backends.c.analysis import fusible, in_place, loaded, stored
from hologram.backends.c.mapping import Mapping, scans
from hologram.backends.c.scalars import Lines, Scalars, memory_name, type_name
from hologram.dtypes import int64
from hologram.errors import CompileError
from hologram.graph.kernel_ir import Acc, Accumulate, Ins, Kernel, Loop, Stmt, Store
from hologram.primitives.reductions import GROUP, LANES, PAGE
from hologram.symbolic import Atom, Expr, Int, bounds

ITEM = "hg_item"


class KernelWriter:
    """Writes one kernel. ``env`` holds the texts of values, ``integers`` those of the variables of index expressions."""

    def __init__(self, kernel: Kernel, scalars: Scalars, precision: str) -> None:
        self.kernel, self.scalars, self.dialect = kernel, scalars, scalars.dialect
        self.mapping = Mapping(kernel, scalars)
        self.f = Lines(1)
        self.env: dict[Any, str] = {}
        self.integers: dict[str, str] = {s: s for s in kernel.symbols}
        self.state: dict[Acc, list[str]] = {}  # the variables that accumulate at the moment
        self.shared_arrays: dict[str, str] = {}  # name: declaration
        self.in_lanes = False
        self.live: str | None = None  # in lanes that take turns: whether this item has an element
        self.dirty = False  # whether memory of these was accessed since all items met
        self.both_ways = loaded(kernel.body) & stored(kernel.body)
        self.hazards = self.both_ways | in_place(kernel.body)
        self.products = {} if precision == "exact" else fusible(kernel)
        self.put_off = set(self.products.values())
        self.count = 0

    # --- the function --------------------------------------------------------------------------------------------------

    def render(self, name: str) -> str:
        self._block(self.kernel.body)
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
        if d.slots:
            params = [f"{p} [[buffer({i})]]" for i, p in enumerate(params)]
        head = d.kernel.format(name=name, params=", ".join([*params, *d.extra]), items=self.mapping.items)
        start.do(f"const i64 hg_group = {d.group}, hg_groups = {d.groups}, {ITEM} = {d.item};")
        self._place_scratch(start)
        for line in self.shared_arrays.values():
            start.do(line)
        return f"{head} {{\n{start}{self.f}}}\n"

    def _place_scratch(self, start: Lines) -> None:
        at, memory = 0, self.dialect.memory
        for b in self.kernel.scratch:
            kind = memory_name(b.dtype)
            if self.mapping.in_workspace:
                start.do(f"{memory}{kind} *{b.name} = ({memory}{kind} *)(hg_workspace + hg_group * {self.mapping.workspace} + {at});")
            else:
                start.do(f"{self.dialect.local}{kind} {b.name}[{b.size}];")
            at += -(-int(b.size) * b.dtype.itemsize // 64) * 64

    def _fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count - 1}"

    def _array(self, kind: str, what: str, size: int) -> str:
        """The name of memory that the group shares."""
        name = f"hg_{what}_{kind}"
        self.shared_arrays.setdefault(name, f"{self.dialect.local}{kind} {name}[{size}];")
        return name

    # --- barriers ------------------------------------------------------------------------------------------------------

    def _barrier(self) -> None:
        self.f.do(self.dialect.barrier)
        self.dirty = False

    def _settle(self) -> None:
        """Before an access that earlier ones of other items may not have passed."""
        if self.dirty and not self.mapping.by_item:
            self._barrier()

    def _is_hazardous(self, body: list[Stmt]) -> bool:
        return bool((loaded(body) | stored(body)) & self.hazards)

    # --- statements ----------------------------------------------------------------------------------------------------

    def _block(self, body: list[Stmt]) -> None:
        for s in body:
            if isinstance(s, Loop):
                self._loop(s)
            elif isinstance(s, Store):
                self._store(s)
            elif isinstance(s, Accumulate):
                self._accumulate(s)
            elif isinstance(s, Ins):
                self._instruction(s)

    def _instruction(self, s: Ins) -> None:
        if s.op == "const":
            self.env[s] = self.scalars.literal(s.dtype, s.attrs[1])
        elif s.op == "scan":
            self._scan(s)
        elif s not in self.put_off:
            if s.op == "load" and not self.in_lanes and s.attrs[0] in self.hazards:
                self._settle()
                self.dirty = True
            name = s.name or self._fresh("v")
            self.f.do(f"const {type_name(s.dtype)} {name} = {self._value(s)};")
            self.env[s] = name
        if s.name:
            self.integers[s.name] = self.env[s]

    def _value(self, s: Ins) -> str:
        match s.op:
            case "load":
                return self._load(s)
            case "index":
                return self.scalars.cast(f"({self.integer(s.attrs[0])})", int64, s.dtype)
            case "inside":
                e, size = (self.integer(x) for x in s.attrs)
                return f"(u64)({e}) < (u64)({size})"
        product = self.products.get(s)
        if product is not None:
            (other,) = [a for a in s.args if a is not product] or [product]
            return self.scalars.fma(s.dtype, [self.env[a] for a in product.args], self.env[other])
        return self.scalars.row(s.op, s.attrs, tuple(a.dtype for a in s.args), s.dtype, [self.env[a] for a in s.args])

    def _load(self, s: Ins) -> str:
        buffer, index = s.attrs
        element = f"{buffer.name}[{self.integer(index)}]" + (" != 0" if buffer.dtype.kind == "b" else "")
        mask = [m for m in (self.live, *(self.env[a] for a in s.args)) if m]
        zero = self.scalars.literal(s.dtype, bytes(s.dtype.itemsize))
        return f"{' && '.join(mask)} ? {element} : {zero}" if mask else element

    def _store(self, s: Store) -> None:
        alone = not self.in_lanes and not self.mapping.by_item
        if alone and s.buffer in self.hazards:
            self._settle()
            self.dirty = True
        conditions = [f"{ITEM} == 0"] if alone else [self.live] if self.live else []
        conditions += [self.env[s.mask]] if s.mask is not None else []
        line = f"{s.buffer.name}[{self.integer(s.index)}] = {self.env[s.value]};"
        self.f.do(f"if ({' && '.join(conditions)}) {line}" if conditions else line)

    def _accumulate(self, s: Accumulate) -> None:
        monoid, names = Monoid(s.acc, self.scalars), self.state[s.acc]
        product = self.products.get(s)
        line = monoid.fused(names[0], [self.env[a] for a in product.args]) if product is not None else None
        self.f.do(line or monoid.combine(names, names, [self.env[a] for a in s.args]))

    # --- loops ---------------------------------------------------------------------------------------------------------

    def _loop(self, loop: Loop) -> None:
        name = loop.var if loop.var not in self.integers else self._fresh(loop.var)
        self.integers[loop.var] = name
        if loop.kind == "parallel":
            self._parallel(loop, name)
        elif loop.kind == "lanes" and not self.mapping.by_item:
            self._lanes(loop, name)
        else:
            self._serial(loop, name)
        del self.integers[loop.var]

    def _parallel(self, loop: Loop, name: str) -> None:
        first, step = ("hg_group", "hg_groups")
        if self.mapping.by_item:
            first, step = f"hg_group * {self.mapping.items} + {ITEM}", f"hg_groups * {self.mapping.items}"
        self.f.open(f"for (i64 {name} = {first}; {name} < {self.integer(loop.extent)}; {name} += {step})")
        self.dirty = bool(self.both_ways)  # the chunk before may be under way
        self._block(loop.body)
        self.f.close()

    def _range(self, loop: Loop) -> tuple[str, str]:
        start = self.integer(loop.start)
        stop = self.integer(loop.start + loop.extent)
        if loop.limit is None:
            return start, stop
        limit, end = self.integer(loop.limit), self._fresh("stop")
        self.f.do(f"const i64 {end} = {stop} < {limit} ? {stop} : {limit};")
        return start, end

    def _declared(self, loop: Loop) -> list[Monoid]:
        """Variables for the results of a loop's accumulators."""
        monoids = [Monoid(a, self.scalars) for a in loop.accs]
        for m in monoids:
            name = self._fresh("a")
            self.state[m.acc] = [name, f"{name}_at"][: len(m.types)]
            self.f.do(m.declare(self.state[m.acc]))
            self.env[m.acc] = self.state[m.acc][-1]
        return monoids

    def _serial(self, loop: Loop, name: str) -> None:
        """Column form: left to right, a partial result every PAGE iterations."""
        start, stop = self._range(loop)
        monoids = self._declared(loop)
        inside = self.dirty or (not self.in_lanes and self._is_hazardous(loop.body))
        self._pieces(loop, name, monoids, [] if scans(loop) or not monoids else _pieces(loop.extent), start, stop, inside)
        self.dirty = self.dirty or inside

    def _pieces(self, loop: Loop, name: str, monoids: list[Monoid], units: list[int], start: str, stop: str, dirty: bool) -> None:
        if not units:
            self.f.open(f"for (i64 {name} = {start}; {name} < {stop}; ++{name})")
            self.dirty = dirty
            self._block(loop.body)
            self.f.close()
            return
        at, end = self._fresh("page"), self._fresh("end")
        self.f.open(f"for (i64 {at} = {start}; {at} < {stop}; {at} += {units[0]})")
        self.f.do(f"const i64 {end} = {at} + {units[0]} < {stop} ? {at} + {units[0]} : {stop};")
        whole = {m: self.state[m.acc] for m in monoids}
        part = self._partial(monoids)
        self._pieces(loop, name, monoids, units[1:], at, end, dirty)
        for m in monoids:
            self.f.do(m.combine(whole[m], whole[m], part[m]))
            self.state[m.acc] = whole[m]
        self.f.close()

    def _partial(self, monoids: list[Monoid]) -> dict[Monoid, list[str]]:
        """Fresh variables into which the accumulators accumulate from now on."""
        for m in monoids:
            stem = self._fresh("part")
            self.state[m.acc] = [stem, f"{stem}_at"][: len(m.types)]
            self.f.do(m.declare(self.state[m.acc]))
        return {m: self.state[m.acc] for m in monoids}

    # --- lanes ---------------------------------------------------------------------------------------------------------

    def _lanes(self, loop: Loop, name: str) -> None:
        hazardous = self._is_hazardous(loop.body)
        if hazardous:
            self._settle()
        start, stop = self._range(loop)
        monoids = self._declared(loop)
        self.in_lanes = True
        if scans(loop):
            self._turns(loop, name, start, stop)
        elif monoids:
            self._row_form(loop, name, monoids, _pieces(loop.extent), start, stop)
        else:
            self.f.open(f"for (i64 {name} = {_after(start)}; {name} < {stop}; {name} += {self.mapping.items})")
            self._block(loop.body)
            self.f.close()
        if scans(loop) or not monoids:  # a reduction ends with a barrier
            self.dirty = self.dirty or hazardous
        self.in_lanes = False

    def _row_form(self, loop: Loop, name: str, monoids: list[Monoid], units: list[int], start: str, stop: str) -> None:
        """Leaves the results in the accumulators' variables, the same in every item."""
        results = {m: self.state[m.acc] for m in monoids}
        if not units:
            self.f.open("")
            part = self._partial(monoids)
            first = _after(start) if self.mapping.items == LANES else f"{ITEM} < {LANES} ? {_after(start)} : {stop}"
            self._own_elements(loop, name, first, stop)
            self._by_halves(monoids, part)
            self._read(monoids, results)
            self.f.close()
        else:
            self._in_pages(loop, name, monoids, units, start, stop)
            self._read(monoids, results)
        for m in monoids:
            self.state[m.acc] = results[m]

    def _own_elements(self, loop: Loop, name: str, first: str, stop: str) -> None:
        self.f.open(f"for (i64 {name} = {first}; {name} < {stop}; {name} += {LANES})")
        self._block(loop.body)
        self.f.close()

    def _partials(self, m: Monoid, number: int, what: str = "part", size: int | None = None) -> list[str]:
        """Arrays for an accumulator's components: those of the ``number``-th of a loop."""
        return [self._array(memory_name(d), f"{what}{number}{'_at' * k}", size or self.mapping.items) for k, d in enumerate(m.types)]

    def _at(self, arrays: list[str], index: str) -> list[str]:
        return [f"{a}[{index}]" for a in arrays]

    def _put(self, arrays: list[str], index: str, values: list[str]) -> str:
        return " ".join(f"{a} = {v};" for a, v in zip(self._at(arrays, index), values, strict=True))

    def _by_halves(self, monoids: list[Monoid], part: dict[Monoid, list[str]]) -> None:
        """Every 32 items' variables to one result, in the shared arrays at the first of these items."""
        for i, m in enumerate(monoids):
            self.f.do(self._put(self._partials(m, i), ITEM, part[m]))
        self._barrier()
        self._halve(monoids)

    def _halve(self, monoids: list[Monoid]) -> None:
        self.f.open(f"for (int hg_half = {LANES // 2}; hg_half > 0; hg_half >>= 1)")
        self.f.open(f"if ({ITEM} % {LANES} < hg_half)")
        for i, m in enumerate(monoids):
            arrays = self._partials(m, i)
            mine = self._at(arrays, ITEM)
            self.f.do(m.combine(mine, mine, self._at(arrays, f"{ITEM} + hg_half")))
        self.f.close()
        self._barrier()
        self.f.close()

    def _read(self, monoids: list[Monoid], results: dict[Monoid, list[str]]) -> None:
        for i, m in enumerate(monoids):
            for to, of in zip(results[m], self._at(self._partials(m, i), "0"), strict=True):
                self.f.do(f"{to} = {of};")
        self._barrier()

    def _in_pages(self, loop: Loop, name: str, monoids: list[Monoid], units: list[int], start: str, stop: str) -> None:
        """Results of pages go, in order, to 32 partial results, which are combined by halves in the end."""
        f, level = self.f, len(units)
        pages = {m: self._partials(m, i, f"pages{level}_", LANES) for i, m in enumerate(monoids)}
        f.open(f"if ({ITEM} < {LANES})")
        for m in monoids:
            f.do(self._put(pages[m], ITEM, m.identity))
        f.close()
        self._barrier()
        at_once = self.mapping.items // LANES if level == 1 else 1
        at = self._fresh("page")
        f.open(f"for (i64 {at} = {start}; {at} < {stop}; {at} += {units[0] * at_once})")
        if level == 1:
            self._pages_at_once(loop, name, monoids, at, stop)
        else:
            self._partial(monoids)
            end = self._fresh("end")
            f.do(f"const i64 {end} = {at} + {units[0]} < {stop} ? {at} + {units[0]} : {stop};")
            self._row_form(loop, name, monoids, units[1:], at, end)
        place = self._fresh("place")
        f.open(f"if ({ITEM} < {at_once} && {at} + {ITEM} * {units[0]} < {stop})")
        f.do(f"const i64 {place} = (({at} - ({start})) / {units[0]} + {ITEM}) % {LANES};")
        for i, m in enumerate(monoids):
            old = self._at(pages[m], place)
            new = self._at(self._partials(m, i), f"{ITEM} * {LANES}") if level == 1 else self.state[m.acc]
            f.do(m.combine(old, old, new))
        f.close()
        self._barrier()
        f.close()
        f.open(f"if ({ITEM} < {LANES})")
        for i, m in enumerate(monoids):
            f.do(self._put(self._partials(m, i), ITEM, self._at(pages[m], ITEM)))
        f.close()
        self._barrier()
        self._halve(monoids)

    def _pages_at_once(self, loop: Loop, name: str, monoids: list[Monoid], at: str, stop: str) -> None:
        """A page for every 32 items; its result is left at the first of them."""
        first, end = self._fresh("first"), self._fresh("end")
        self.f.do(f"const i64 {first} = {at} + {ITEM} / {LANES} * {PAGE};")
        self.f.do(f"const i64 {end} = {first} + {PAGE} < {stop} ? {first} + {PAGE} : {stop};")
        part = self._partial(monoids)
        self._own_elements(loop, name, f"{first} + {ITEM} % {LANES}", end)
        self._by_halves(monoids, part)

    # --- scans in lanes ------------------------------------------------------------------------------------------------

    def _turns(self, loop: Loop, name: str, start: str, stop: str) -> None:
        """All items take elements side by side, turn by turn, until the row ends; those beyond its end only keep step."""
        if not all(a.row.kind == "scan" for a in loop.accs):
            raise CompileError(f"a loop of lanes both scans and reduces\n{self.kernel}")
        base = self._fresh("turn")
        self.f.open(f"for (i64 {base} = {start}; {base} < {stop}; {base} += {self.mapping.items})")
        self.f.do(f"const i64 {name} = {base} + {ITEM};")
        self.live = self._fresh("live")
        self.f.do(f"const bool {self.live} = {name} < {stop};")
        self._block(loop.body)
        self.live = None
        self.f.close()

    def _scan(self, s: Ins) -> None:
        """The running value: of a serial loop the accumulator itself; in lanes by groups of 16, whose carries every item adds up."""
        (acc,) = s.attrs
        monoid, carry, x = Monoid(acc, self.scalars), self.state[acc], self.env[s.args[0]]
        if self.live is None:
            self.f.do(monoid.combine(carry, carry, [x]))
            name = self._fresh("v")
            self.f.do(f"const {type_name(s.dtype)} {name} = {carry[0]};")
            self.env[s] = name
            return
        f, kind = self.f, type_name(s.dtype)
        z, before, name = self._fresh("group"), self._fresh("before"), s.name or self._fresh("v")
        array = self._array(memory_name(s.dtype), "scan", self.mapping.items)
        f.do(f"{kind} {z} = {x};")
        f.do(f"if (!{self.live}) {z} = {monoid.identity[0]};")
        self._barrier()
        f.do(f"{array}[{ITEM}] = {z};")
        self._barrier()
        f.open(f"for (int hg_step = 1; hg_step < {GROUP}; hg_step <<= 1)")
        f.do(f"{kind} {before} = {monoid.identity[0]};")
        f.do(f"if ({ITEM} % {GROUP} >= hg_step) {before} = {array}[{ITEM} - hg_step];")
        self._barrier()
        f.do(f"if ({ITEM} % {GROUP} >= hg_step) {monoid.combine([z], [before], [z])}")
        f.do(f"{array}[{ITEM}] = {z};")
        self._barrier()
        f.close()
        last = f"{array}[hg_last]"
        f.do(f"{kind} {name} = {carry[0]};")
        f.open(f"for (i64 hg_last = {GROUP - 1}; hg_last < {ITEM} / {GROUP} * {GROUP}; hg_last += {GROUP})")
        f.do(monoid.combine([name], [name], [last]))
        f.close()
        f.do(monoid.combine([name], [name], [z]))
        f.open(f"for (i64 hg_last = {GROUP - 1}; hg_last < {self.mapping.items}; hg_last += {GROUP})")
        f.do(monoid.combine(carry, carry, [last]))
        f.close()
        self.env[s] = name

    # --- integers ------------------------------------------------------------------------------------------------------

    def integer(self, e: Int) -> str:
        """An index expression."""
        if not isinstance(e, Expr):
            return self.scalars.integer(e)
        text = ""
        for m, c in e.terms.items():
            factors = [self._atom(a) for a in m]
            if abs(c) != 1 or not m:
                factors.insert(0, self.scalars.integer(abs(c)))
            term = " * ".join(factors)
            text += f" {'-' if c < 0 else '+'} {term}" if text else f"-{term}" if c < 0 else term
        return text

    def _atom(self, a: Atom) -> str:
        """A variable, or an unsigned division; by an extent that may be 0, where nothing is read, without a trap."""
        if not a.args:
            name = self.integers[a.name]
            return name if name == a.name else f"(i64){name}" if name[:1] in "v(" else name
        x, y = a.args
        op = "/" if a.key[0] == "floordiv" else "%"
        high = bounds(x)[1]
        if isinstance(y, int) and y < 2**31 and high is not None and high < 2**32:
            return f"(i64)((u32)({self.integer(x)}) {op} {y}u)"
        divisor = self.integer(y)
        if (bounds(y)[0] or 0) < 1:
            divisor = f"{divisor} > 1 ? {divisor} : 1"
        return f"(i64)((u64)({self.integer(x)}) {op} (u64)({divisor}))"


def _pieces(extent: Int) -> list[int]:
    """Lengths of the pieces of which partial results are combined, the longest first: pages, pages of pages where there may be that many."""
    return [n for n in (PAGE**2, PAGE) if not isinstance(extent, int) or extent > n]


def _after(start: str) -> str:
    """The item's own place from ``start`` on."""
    return ITEM if start == "0" else f"{start} + {ITEM}"
