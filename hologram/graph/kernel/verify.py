"""The kernel verifier: :func:`verify_kernel` checks a kernel statement by statement.

A kernel that passes renders: each value is computed once and before it is wanted, in the same loop or around it; types are what the rows of
the op table say; memory is that of declared buffers; an index names nothing that is unknown where it stands; and no movement is left.
"""

from __future__ import annotations

import itertools
from typing import NoReturn

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import CompileError, DTypeError, ShapeError
from hologram.graph.kernel.ir import KERNEL_OPS, Acc, Accumulate, Buffer, Kernel, Loop, Prefetch, Stmt, Store, Value
from hologram.graph.kernel.printer import Names, print_kernel, statement_text
from hologram.graph.kernel.verify_bounds import Ranges
from hologram.graph.kernel.verify_guards import guards_of
from hologram.graph.kernel.verify_lanes import Lanes
from hologram.graph.kernel.verify_parallel import Access, collide
from hologram.ir.instruction import Ins
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Atom, Int, atoms, substitute, var

ROLES = ("in", "out", "inout")
LOOP_KINDS = ("parallel", "lanes", "serial")


def verify_kernel(kernel: Kernel) -> None:
    """Raises CompileError, naming the statement and with the kernel's text, unless ``kernel`` is well formed:

    - parameters are ``in``, ``out`` or ``inout``, scratch is ``scratch``, names of buffers and symbols are distinct;
    - a kernel that a backend has ready has no body and no scratch;
    - ``parallel`` loops are outermost, start at 0 and run ``iterations`` times together; beside them there are only instructions;
    - a ``lanes`` loop is inside another only where that accumulates nothing, and no loop variable hides another name;
    - a loop inside a ``lanes`` loop has the same range in all lanes (:mod:`hologram.graph.kernel.verify_lanes`);
    - a value is computed once, before its uses, in a list of statements that encloses them;
    - what parallel iterations share is a serial loop of theirs, without accumulators, that stores to scratch alone;
    - an accumulator belongs to one loop, is updated directly in that loop's body, once but for serial loops, and is read only after the loop;
    - an instruction is an elementwise op, or one of ``KERNEL_OPS``, with the operands and the type that these prescribe; narrow floats are
      only moved and cast;
    - loads and stores are of declared buffers, of their type, in a direction that their role allows, and inside of them for all values of the
      variables in their index expressions (:mod:`hologram.graph.kernel.verify_bounds`); an index that was gathered is taken to be in range,
      and of ``assumed`` values, and of symbols, whose sizes a program may know more of, no more is asked than that nothing lies outside for certain;
    - no two iterations of parallel loops write to one element, as far as :mod:`hologram.graph.kernel.verify_parallel` tells;
    - index expressions name symbols, variables of enclosing loops, and values that are computed by then.
    """
    _Verifier(kernel).run()


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names = Names()  # as in the kernel's text
        self.line = ""  # the statement at hand
        self.buffers: set[Buffer] = {*kernel.params, *kernel.scratch}
        self.visible: set[Value] = set()
        self.integers: set[str] = set(kernel.symbols)
        self.seen: set[Value] = set()
        self.named: set[str] = set()  # by values, which index expressions go through
        self.assumed: set[str] = set()  # those of which more is known than their extents
        self.accesses: dict[Buffer, list[Access]] = {}  # to memory that the kernel writes to
        self.ranges = Ranges()
        self.claims: set[Atom] = set()  # atoms whose bounds are those of their variables
        self.loops: list[Loop] = []
        self.lanes = Lanes()

    def run(self) -> None:
        k = self.kernel
        names = [*(b.name for b in self.buffers), *k.symbols]
        if len(set(names)) != len(names):
            self.fail("two parameters, symbols or scratch buffers have one name")
        for b in k.params:
            if b.role not in ROLES:
                self.fail(f"parameter {b.name} has the role {b.role!r}")
        for b in k.scratch:
            if b.role != "scratch" or not isinstance(b.size, int):
                self.fail(f"scratch buffer {b.name} has the role {b.role!r} and the size {b.size}")
        if k.ready is not None:
            self.ready(k)
        self.block(k.body)
        for b, accesses in self.accesses.items():
            if collide(accesses):
                self.fail(f"iterations of parallel loops write to the same elements of {b.name}")

    def ready(self, k: Kernel) -> None:
        if k.body or k.scratch:
            self.fail("a kernel that a backend has ready has no body and no scratch")
        assert k.ready is not None
        for e in (k.iterations, *k.ready[1]):
            self.integer(e)

    def fail(self, trouble: str) -> NoReturn:
        raise CompileError(f"malformed kernel, {trouble}: {self.line or 'its parameters'}\n{print_kernel(self.kernel)}")

    # --- statements ----------------------------------------------------------------------------------------------------

    def block(self, body: list[Stmt]) -> None:
        """A list of statements; what it computes is forgotten after it."""
        visible, integers, ranges = set(self.visible), set(self.integers), self.ranges.copy()
        for s in body:
            self.line = statement_text(s, self.names)
            if not self.loops and not isinstance(s, Ins) and not (isinstance(s, Loop) and s.kind == "parallel"):
                self.fail("only instructions stand beside the parallel loops")
            if isinstance(s, Loop):
                self.loop(s)
            elif isinstance(s, Store):
                self.store(s)
            elif isinstance(s, Accumulate):
                self.accumulate(s)
            elif isinstance(s, Prefetch):
                self.declared(s.buffer)
                self.integer(s.index)
            else:
                self.instruction(s)
        self.visible, self.integers, self.ranges = visible, integers, ranges

    def loop(self, s: Loop) -> None:
        if s.kind not in LOOP_KINDS:
            self.fail(f"no kind of loop is called {s.kind!r}")
        for e in (s.start, s.extent, s.shared, *(() if s.limit is None else (s.limit,))):
            self.integer(e)
        if s.var in self.integers:
            self.fail(f"the loop variable {s.var} hides another name")
        if self.lanes.differ((s.start, s.extent, *(() if s.limit is None else (s.limit,)))):
            self.fail("the range of a loop differs between lanes")
        if s.kind == "parallel":
            self.parallel(s)
        elif s.kind == "lanes" and any(outer.kind == "lanes" for outer in self.loops[:-1]):
            self.fail("a loop of lanes is inside another, but not directly")
        elif s.kind == "lanes" and self.loops[-1].kind == "lanes" and self.loops[-1].accs:
            self.fail("a loop of lanes is inside another that accumulates")
        if s.shared != 1 and (s.kind != "serial" or s.accs or [outer.kind for outer in self.loops] != ["parallel"] or not _fills_scratch(s)):
            self.fail("what parallel iterations share is a serial loop of theirs that writes to scratch")
        for a in s.accs:
            self.accumulator(a, s)
        self.loops.append(s)
        self.integers.add(s.var)
        self.lanes.enter(s)
        claims, ranges = set(self.claims), self.ranges.copy()
        self.ranges.loop(s.var, s.start, s.extent, s.limit)
        self.block(s.body)
        self.claims, self.ranges = claims, ranges
        self.integers.discard(s.var)
        self.lanes.leave(s)
        self.loops.pop()
        self.visible.update(s.accs)

    def parallel(self, s: Loop) -> None:
        if self.loops:
            self.fail("a parallel loop is outermost")
        iterations = sum((t.extent for t in self.kernel.body if isinstance(t, Loop)), 0)
        if s.start != 0 or s.limit is not None or s.accs or iterations != self.kernel.iterations:
            self.fail(f"parallel loops count the {self.kernel.iterations} iterations of the kernel, each from 0, and accumulate nothing")

    def accumulator(self, a: Acc, loop: Loop) -> None:
        self.once(a)
        if a.op.kind not in ("reduce", "scan"):
            self.fail(f"{a.op} is no reduction and no scan")
        if a.op.monoid is None and a.op.kind != "reduce":
            self.fail(f"{a.op} has nothing to combine elements with")
        expected = dtypes.int64 if a.op.monoid is None else a.value_dtype
        if a.dtype is not expected or a.value_dtype.kind not in a.op.kinds or a.value_dtype.is_narrow_float:
            self.fail(f"{a.op} of {a.value_dtype} does not give {a.dtype}")
        updates = [s for s in loop.body if (isinstance(s, Accumulate) and s.acc is a) or (isinstance(s, Ins) and s.op == "scan" and s.attrs == (a,))]
        several = loop.kind == "serial" and not any(isinstance(s, Ins) for s in updates)  # unrolled iterations
        if not updates or (len(updates) > 1 and not several):
            self.fail(f"the accumulator {self.names[a]} is updated {len(updates)} times an iteration")

    def accumulate(self, s: Accumulate) -> None:
        if not self.loops or s.acc not in self.loops[-1].accs:
            self.fail("this loop does not have that accumulator")
        expected = [s.acc.value_dtype] + ([dtypes.int64] if s.acc.op.monoid is None else [])
        if [self.read(a) for a in s.args] != expected:
            self.fail(f"{s.acc.op} takes {_listed(expected)}")

    def store(self, s: Store) -> None:
        self.declared(s.buffer)
        if s.buffer.role == "in":
            self.fail(f"{s.buffer.name} is only read")
        if self.read(s.value) is not s.buffer.dtype:
            self.fail(f"a {s.value.dtype} is stored among {s.buffer.dtype}")
        if s.mask is not None and self.read(s.mask) is not dtypes.bool_:
            self.fail("a mask is a bool")
        self.check_access(s.buffer, s.index, s.mask, True)

    # --- instructions --------------------------------------------------------------------------------------------------

    def instruction(self, s: Ins) -> None:
        self.once(s)
        types = [self.read(a) for a in s.args]
        if isinstance(s.op, str):
            if s.op not in KERNEL_OPS:
                self.fail(f"no instruction is called {s.op!r}")
            getattr(self, f"_{s.op}")(s, types)
        else:
            self.elementwise(s, types)
        self.visible.add(s)
        self.lanes.instruction(s)
        if s.name:
            if s.name in self.integers:
                self.fail(f"the value {s.name} hides another name")
            if not s.dtype.is_integer:
                self.fail(f"an index goes through a {s.dtype}")
            if s.name in self.named:
                self.fail(f"{s.name} is the name of two values")
            self.named.add(s.name)
            self.assumed |= {s.name} if s.assumed else set()
            self.integers.add(s.name)
            self.ranges.value(s)

    def elementwise(self, s: Ins, types: list[DType]) -> None:
        op = s.op
        assert not isinstance(op, str)
        if op.kind != "elementwise" or TABLE.get(op.name) is not op:
            self.fail(f"{op} is no elementwise op of the table")
        if len(types) != op.arity or len(s.attrs) != len(op.attrs):
            self.fail(f"{op} has {op.arity} operands and {len(op.attrs)} attributes")
        if op.name not in ("cast", "select", "bitcast") and any(t.is_narrow_float for t in types):
            self.fail("narrow floats compute in float32")
        try:
            _, result = op.infer(tuple(_Operand(d) for d in types), s.attrs)
        except (DTypeError, ShapeError) as e:
            self.fail(str(e))
        if result is not s.dtype:
            self.fail(f"{op} gives a {result}")

    def _const(self, s: Ins, types: list[DType]) -> None:
        name, raw = s.attrs
        if types or dtypes.of(name) is not s.dtype or len(raw) != s.dtype.itemsize:
            self.fail("the constant's bits are not of its type")

    def _index(self, s: Ins, types: list[DType]) -> None:
        (e,) = s.attrs
        if types or s.dtype.kind not in "iuf":
            self.fail(f"an index expression gives no {s.dtype}")
        self.integer(e)

    def _inside(self, s: Ins, types: list[DType]) -> None:
        e, size = s.attrs
        if types or s.dtype is not dtypes.bool_:
            self.fail("a test of range gives a bool")
        self.integer(e)
        self.integer(size)

    def _load(self, s: Ins, types: list[DType]) -> None:
        buffer, index = s.attrs
        self.declared(buffer)
        if buffer.role == "out":
            self.fail(f"{buffer.name} is only written")
        if s.dtype is not buffer.dtype:
            self.fail(f"a {s.dtype} is loaded from {buffer.dtype}")
        if types not in ([], [dtypes.bool_]):
            self.fail("a load takes at most a mask")
        self.check_access(buffer, index, s.args[0] if s.args else None, False)

    def _scan(self, s: Ins, types: list[DType]) -> None:
        (acc,) = s.attrs
        if not self.loops or acc not in self.loops[-1].accs:
            self.fail("this loop does not have that accumulator")
        if acc.op.kind != "scan" or types != [acc.value_dtype] or s.dtype is not acc.value_dtype:
            self.fail(f"{acc.op} runs over {acc.value_dtype}")

    # --- operands ------------------------------------------------------------------------------------------------------

    def once(self, v: Value) -> None:
        if v in self.seen:
            self.fail("a value is computed a second time")
        self.seen.add(v)

    def read(self, v: Value) -> DType:
        if v not in self.visible:
            computing = any(v in loop.accs for loop in self.loops)
            trouble = "before its loop is done" if computing else "after its block" if v in self.seen else "before it is computed"
            self.fail(f"{self.names[v]} is used {trouble}")
        return v.dtype

    def declared(self, b: Buffer) -> None:
        if b not in self.buffers:
            self.fail(f"the buffer {b.name} is not declared")

    def check_access(self, b: Buffer, index: Int, mask: Value | None, writes: bool) -> None:
        self.integer(index)
        guards = guards_of(mask)
        free: dict[str, Int] = {name: var(name, None, None) for name in self.named if name in self.ranges.guarded or name not in self.ranges.of}
        index, guards = substitute(index, free), [(substitute(e, free), size) for e, size in guards]
        if b.role in ("out", "inout"):
            self.accesses.setdefault(b, []).append(Access(index, list(self.loops), guards, self.ranges.copy(), writes))
        if self.ranges.is_inside(index, b.size, guards):
            return
        where = "".join(f" where 0 <= {e} < {size}" for e, size in guards)
        behind = self.ranges.behind((index, b.size))
        symbols = behind - self.named - {loop.var for loop in self.loops}
        unknown = symbols | (behind | self.ranges.behind(itertools.chain(*guards))) & self.assumed
        if not unknown or (not guards and self.ranges.is_outside(index, b.size)):
            self.fail(f"{index} may lie outside of {b.name}, which has {b.size} elements{where}")

    def integer(self, e: Int) -> None:
        for a in atoms(e):
            if a.name not in self.integers:
                self.fail(f"the integer {a.name} is not known here")
            if a not in self.claims:
                if not self.ranges.holds(a):
                    self.fail(f"{a.name} is taken for an integer from {a.low} to {a.high}")
                self.claims.add(a)


class _Operand:
    """Stands in for a node where an op's type rule is asked."""

    __slots__ = ("dtype",)
    shape = ()

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype


def _fills_scratch(loop: Loop) -> bool:
    return all(_fills_scratch(s) if isinstance(s, Loop) else not isinstance(s, Store) or s.buffer.role == "scratch" for s in loop.body)


def _listed(types: list[DType]) -> str:
    return " and ".join(map(str, types))
