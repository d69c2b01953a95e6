"""What every writer of a kernel in C shares: the text so far, names and values, memory that the group shares, barriers, and index expressions.

The writers of nests, products, reductions and scans get an :class:`Emitter`; :class:`hologram.backends.c.kernel.KernelWriter` is the one there is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from hologram.backends.c.accumulators import Monoid
from hologram.backends.c.analysis.accesses import in_place, loaded, stored
from hologram.backends.c.analysis.staged_rows import stage_rows
from hologram.backends.c.analysis.vectors import ACCESS_BYTES, Access
from hologram.backends.c.grid import Mapping
from hologram.backends.c.scalars import Lines, Scalars
from hologram.dtypes import uint64
from hologram.graph.kernel.ir import Acc, Accumulate, Buffer, Kernel, Stmt, Store, summed_terms
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Atom, Expr, Int, bounds

ITEM = "hg_item"


class Emitter(ABC):
    """The state of writing one kernel. ``env`` holds the texts of values, ``integers`` those of the variables of index expressions."""

    def __init__(self, kernel: Kernel, scalars: Scalars, precision: str) -> None:
        self.scalars, self.dialect = scalars, scalars.dialect
        self.kernel = stage_rows(kernel, scalars.dialect.staged_bytes)
        self.mapping = Mapping(self.kernel, scalars, precision, staged=self.kernel is not kernel)
        self.f = Lines(1)
        self.env: dict[Any, str] = {}
        self.integers: dict[str, str] = {s: s for s in kernel.symbols}
        self.state: dict[Acc, list[str]] = {}  # the variables that accumulate at the moment
        self.shared_arrays: dict[str, str] = {}  # name: declaration
        self.shared_pointers: list[str] = []
        self.in_lanes = False
        self.near: dict[Access, str] = {}  # where the neighbours are that an item takes at one time
        self.ahead: dict[Access, str] = {}  # where what was read ahead is
        self.live: str | None = None  # in lanes that scan: whether this item has an element
        self.dirty = False  # whether memory of these was accessed since all items met
        kernel = self.kernel
        self.both_ways = (loaded(kernel.body) & stored(kernel.body)) - set(self.mapping.register_scratch)
        self.hazards = (self.both_ways | in_place(kernel.body)) - set(self.mapping.register_scratch)
        self.in_sums = summed_terms(kernel, "fused_mul")  # computed where they are added
        self.count = 0

    @abstractmethod
    def block(self, body: list[Stmt]) -> None:
        """Writes statements."""

    @abstractmethod
    def instruction(self, s: Ins) -> None:
        """Writes one instruction, whose text is then in ``env``."""

    @abstractmethod
    def value(self, s: Ins) -> str:
        """The text of what an instruction computes here."""

    @abstractmethod
    def store(self, s: Store) -> None: ...

    @abstractmethod
    def accumulate(self, s: Accumulate) -> None: ...

    # --- names and memory ----------------------------------------------------------------------------------------------

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count - 1}"

    def aligned_array(self, kind: str, name: str, nbytes: int) -> None:
        """Memory that the group shares, aligned for the widest access; ``name`` is a pointer to it."""
        d, whole = self.dialect, self.scalars.vector(uint64, ACCESS_BYTES // 8)
        self.shared_arrays[name] = f"{d.local}{whole} {name}_memory[{-(-nbytes // ACCESS_BYTES)}];"
        self.shared_pointers.append(f"{d.local_pointer}{kind} *{name} = ({d.local_pointer}{kind} *){name}_memory;")

    def shared_array(self, kind: str, what: str, size: int) -> str:
        """The name of memory that the group shares."""
        name = f"hg_{what}_{kind}"
        self.shared_arrays.setdefault(name, f"{self.dialect.local}{kind} {name}[{size}];")
        return name

    def partial(self, monoids: list[Monoid]) -> dict[Monoid, list[str]]:
        """Fresh variables into which the accumulators accumulate from now on."""
        for m in monoids:
            stem = self.fresh("part")
            self.state[m.acc] = [stem, f"{stem}_at"][: len(m.types)]
            self.f.do(m.declare(self.state[m.acc]))
        return {m: self.state[m.acc] for m in monoids}

    def unroll(self, times: int | None = None) -> None:
        """Asks to unroll the loop that follows, so many times or wholly."""
        if self.dialect.unroll:
            self.f.do(self.dialect.unroll + (f" {times}" if times is not None else ""))

    def space(self, buffer: Buffer) -> str:
        """The address space of a buffer."""
        return self.dialect.local_pointer if buffer.role == "scratch" and not self.mapping.in_workspace else self.dialect.memory

    # --- barriers ------------------------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Where all items of a parallel iteration meet."""
        self.f.do(str(self.dialect.subgroup_barrier) if self.mapping.by_subgroup else self.dialect.barrier)
        self.dirty = False

    def _settle(self) -> None:
        """Before an access that earlier ones of other items may not have passed."""
        if self.dirty and not self.mapping.by_item:
            self.barrier()

    def _is_hazardous(self, body: list[Stmt]) -> bool:
        return bool((loaded(body) | stored(body)) & self.hazards)

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
