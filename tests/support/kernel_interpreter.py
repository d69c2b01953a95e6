"""Kernel IR, interpreted: what a kernel means, apart from how a backend renders it.

Chunks and serial loops run one iteration at a time, a loop of lanes all at once. Every access is checked: it is in range, it reads what
was written before, and each element of a result is written, always the same. Divisions in index expressions are unsigned, as machines do them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram.graph.execution_plan import ExecutionPlan, bind_symbols, concrete_shape
from hologram.graph.kernel.ir import Acc, Accumulate, Buffer, Kernel, Loop, Prefetch, Stmt, Store, Value
from hologram.ir.instruction import Ins
from hologram.ir.node import Node
from hologram.ir.storage import as_array
from hologram.ir.symbolic import Atom, Int, is_static, substitute


def run_schedule(schedule: ExecutionPlan, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a scheduled graph."""
    symbols = bind_symbols(schedule.inputs, [a.shape for a in arrays])
    memory: dict[Node, Memory] = {}
    for node, array in zip(schedule.inputs, arrays, strict=True):
        memory[node] = Memory.of(array)
    for node in schedule.constants:
        memory[node] = Memory.of(as_array(node.attrs[0]))
    for lowered in schedule.kernels:
        for b, node in zip(lowered.kernel.params, lowered.bindings, strict=True):
            if b.role == "out" and node not in memory:
                memory[node] = Memory(number(b.size, symbols), b.dtype.np)
        Interpreter(lowered.kernel, [memory[n] for n in lowered.bindings], symbols).run()
    for node, m in memory.items():
        assert m.written.all(), f"elements of {node!r} are never written"
    sources = {"input": schedule.inputs, "constant": schedule.constants, "computed": schedule.computed}
    found = [sources[o.kind][o.index] for o in schedule.outputs]
    empty = [Memory(0, n.dtype.np) for n in found]
    return [memory.get(n, e).values.reshape(concrete_shape(o.node.shape, symbols)) for n, e, o in zip(found, empty, schedule.outputs, strict=True)]


def number(e: Int, symbols: dict[str, int]) -> int:
    out = substitute(e, symbols)
    assert is_static(out)
    return out  # type: ignore[return-value]


class Memory:
    """A buffer's elements, and which of them were written."""

    def __init__(self, size: int, dtype: Any) -> None:
        self.values, self.written = np.zeros(size, dtype), np.zeros(size, bool)

    @staticmethod
    def of(array: np.ndarray) -> Memory:
        m = Memory(array.size, array.dtype)
        m.values[:], m.written[:] = array.ravel(), True
        return m


class Interpreter:
    def __init__(self, kernel: Kernel, params: Sequence[Memory], symbols: dict[str, int]) -> None:
        self.kernel, self.symbols = kernel, symbols
        self.memory: dict[Buffer, Memory] = dict(zip(kernel.params, params, strict=True))
        self.integers: dict[str, Any] = {s: symbols[s] for s in kernel.symbols}
        self.values: dict[Value, np.ndarray] = {}
        self.lanes: int | None = None  # iterations of the enclosing loop of lanes
        self.elements: dict[Acc, list[list[np.ndarray]]] = {}
        self.form: dict[Acc, str] = {}  # the kind of the loop that each accumulator belongs to

    def run(self) -> None:
        self.block(self.kernel.body)

    def check(self, condition: Any, trouble: str) -> None:
        assert condition, f"{trouble} in\n{self.kernel}"

    def block(self, body: list[Stmt]) -> None:
        for s in body:
            if isinstance(s, Loop):
                self.loop(s)
            elif isinstance(s, Store):
                self.store(s)
            elif isinstance(s, Accumulate):
                self.elements[s.acc].append([self.values[a] for a in s.args])
            elif not isinstance(s, Prefetch):
                self.values[s] = self.instruction(s)
                if s.name:
                    self.integers[s.name] = self.values[s].astype(np.int64)

    # --- loops ---------------------------------------------------------------------------------------------------------

    def loop(self, s: Loop) -> None:
        start = int(self.integer(s.start))
        stop = start + int(self.integer(s.extent))
        if s.limit is not None:
            stop = min(stop, int(self.integer(s.limit)))
        self.elements.update((a, []) for a in s.accs)
        self.form.update((a, s.kind) for a in s.accs)
        if s.kind == "lanes":
            self.integers[s.var] = np.arange(start, stop)
            self.lanes = stop - start
            self.block(s.body)
            self.lanes = None
        for i in range(start, stop) if s.kind != "lanes" else ():
            if s.kind == "parallel":
                self.memory.update((b, Memory(number(b.size, self.symbols), b.dtype.np)) for b in self.kernel.scratch)
            self.integers[s.var] = i
            self.block(s.body)
        for a in s.accs:
            self.values[a] = self.result(a, s.kind == "lanes", stop - start)

    def result(self, a: Acc, lanes: bool, count: int) -> np.ndarray:
        """An accumulator's value by its row's own reference: row form in a loop of lanes, column form in a serial one."""
        parts = self.elements[a]
        width = (count if lanes else self.lanes) or 1
        if count == 0:
            return np.full(() if self.lanes is None else self.lanes, a.op.identity(a.value_dtype), a.value_dtype.np)
        if a.op.kind == "scan":
            return parts[-1][0][-1] if lanes else parts[-1][0]
        first, *indices = (np.stack([np.broadcast_to(p[k], width) for p in parts]) for k in range(len(parts[0])))
        x = first[0] if lanes else first
        if indices:
            at = a.op.reference(x, 0)
            return indices[0][0][at] if lanes else np.take_along_axis(indices[0], at[None], 0)[0]
        return np.asarray(a.op.reference(x, (0,)))

    # --- instructions --------------------------------------------------------------------------------------------------

    def instruction(self, s: Ins) -> np.ndarray:
        args = [self.values[a] for a in s.args]
        match s.op:
            case "const":
                return np.frombuffer(s.attrs[1], s.dtype.np).reshape(())
            case "index":
                return np.asarray(self.integer(s.attrs[0])).astype(s.dtype.np)
            case "inside":
                e, size = self.integer(s.attrs[0]), self.integer(s.attrs[1])
                return np.asarray((0 <= e) & (e < size))
            case "load":
                return self.load(s, args)
            case "scan":
                return self.scan(s, args[0])
        assert not isinstance(s.op, str)
        shape = np.broadcast_shapes(*(a.shape for a in args))
        out = np.asarray(s.op.reference(*(np.broadcast_to(a, shape) for a in args), *s.attrs))
        self.check(out.dtype == s.dtype.np, f"{s.op} gives {out.dtype}")
        return out

    def scan(self, s: Ins, x: np.ndarray) -> np.ndarray:
        (acc,) = s.attrs
        before = self.elements[acc]
        if self.form[acc] == "lanes":
            out = acc.op.reference(np.broadcast_to(x, self.lanes or 0), 0, False)
        else:
            with np.errstate(all="ignore"):
                out = x if not before else np.asarray(acc.op.monoid.reference(before[-1][0], x))
        before.append([out])
        return out

    def load(self, s: Ins, args: list[np.ndarray]) -> np.ndarray:
        buffer, index = s.attrs
        m = self.memory[buffer]
        at, live = np.broadcast_arrays(self.integer(index), args[0] if args else True)
        self.check(((at >= 0) & (at < m.values.size))[live].all(), f"a load of {buffer.name}[{index}] is out of range")
        out = np.zeros(at.shape, buffer.dtype.np)
        self.check(m.written[at[live]].all(), f"{buffer.name}[{index}] is read before it is written")
        out[live] = m.values[at[live]]
        return out

    def store(self, s: Store) -> None:
        m = self.memory[s.buffer]
        mask = True if s.mask is None else self.values[s.mask]
        at, live, value = np.broadcast_arrays(self.integer(s.index), mask, self.values[s.value])
        self.check(((at >= 0) & (at < m.values.size))[live].all(), f"a store to {s.buffer.name}[{s.index}] is out of range")
        at, value = at[live], value[live]
        self.check(np.unique(at).size == at.size, f"one element of {s.buffer.name} is written twice at one time")
        again = m.written[at] if s.buffer.role == "out" else np.zeros(at.size, bool)  # rows that two chunks share, alike
        self.check(m.values[at][again].tobytes() == value[again].tobytes(), f"an element of {s.buffer.name} is written again, and not the same")
        m.values[at], m.written[at] = value, True

    # --- integers ------------------------------------------------------------------------------------------------------

    def integer(self, e: Int) -> Any:
        if is_static(e):
            return e
        total: Any = 0
        with np.errstate(over="ignore"):  # behind a mask, a gathered index may be anything
            for monomial, coefficient in e.terms.items():  # type: ignore[union-attr]
                term: Any = coefficient
                for atom in monomial:
                    term = term * self.atom(atom)
                total = total + term
        return total

    def atom(self, a: Atom) -> Any:
        if not a.args:
            return self.integers[a.name]
        x, y = (np.asarray(self.integer(v), np.int64).astype(np.uint64) for v in a.args)
        return (x // y if a.key[0] == "floordiv" else x % y).astype(np.int64)
