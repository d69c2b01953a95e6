"""Reading kernel IR back from its text: the inverse of :mod:`hologram.graph.kernel.printer`."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from hologram import dtypes
from hologram.errors import CompileError
from hologram.graph.kernel.ir import KERNEL_OPS, Acc, Accumulate, Buffer, Kernel, Loop, Prefetch, Stmt, Store, Value
from hologram.ir.instruction import Ins
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Int, bounds, counter, floordiv, mod, var

_BUFFER = re.compile(r"(\w+): (\w+)\[(.+)\](?: (in|out|inout))?$")
_READY = re.compile(r"  ready (\w+)\((.*)\) (.+?) times$")
_LOOP = re.compile(r"(parallel|lanes|serial) (\w+) from (.+?) count (.+?)(?: below (.+?))?(?: shared by (.+?))?( repeating)?(?: with (.+))?$")
_ACC = re.compile(r"(\w+) = (\w+) (\w+) -> (\w+)$")
_STORE = re.compile(r"(\w+)\[(.+)\] = (\w+)(?: where (\w+))?$")
_PREFETCH = re.compile(r"prefetch (\w+)\[(.+)\]$")
_INS = re.compile(r"(\w+) = (\w+)\((.*)\) : (\w+)( assumed)?(?: below (.+))?$")
_NUMBERED = re.compile(r"v\d+$")
_ACCUMULATE = re.compile(r"(\w+) <- (.+)$")


def parse_kernel(text: str) -> Kernel:
    """The kernel that prints as ``text``. Raises CompileError with the line that is no statement, or names what is unknown."""
    return _Parser(text.splitlines()).kernel


def parse_integer(text: str, known: Mapping[str, Int] | None = None) -> Int:
    """An index expression: names, integers, ``+ - * // %`` and brackets. ``known`` gives the variables whose bounds are known."""
    return _integer(ast.parse(text.strip(), mode="eval").body, known or {})


def _integer(e: ast.expr, known: Mapping[str, Int]) -> Int:
    match e:
        case ast.Constant(value=int(v)):
            return v
        case ast.Name(id=name):
            return known[name] if name in known else var(name)
        case ast.UnaryOp(op=ast.USub(), operand=x):
            return 0 - _integer(x, known)
        case ast.BinOp(left=l, op=op, right=r):
            a, b = _integer(l, known), _integer(r, known)
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.FloorDiv():
                    return floordiv(a, b)
                case ast.Mod():
                    return mod(a, b)
    raise CompileError(f"not an index expression: {ast.unparse(e)}")


def _split(text: str) -> list[str]:
    """At commas outside brackets."""
    out, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    rest = text[start:].strip()
    return [*out, rest] if rest else out


class _Parser:
    def __init__(self, lines: list[str]) -> None:
        self.kernel = Kernel()
        self.values: dict[str, Value] = {}
        self.buffers: dict[str, Buffer] = {}
        self.variables: dict[str, Int] = {}  # of loops, with the bounds that these give them
        at = self._head(lines)
        self._block(lines, at, 1, self.kernel.body)
        loops = [s for s in self.kernel.body if isinstance(s, Loop)]
        if loops:
            self.kernel.iterations = sum((s.extent for s in loops[1:]), loops[0].extent)

    def _head(self, lines: list[str]) -> int:
        if not lines or not lines[0].startswith("kernel(") or not lines[0].endswith(")"):
            raise CompileError(f"a kernel starts with its parameters, not with {lines[0] if lines else 'nothing'!r}")
        for part in _split(lines[0][len("kernel(") : -1]):
            if part.endswith(": symbol"):
                self.kernel.symbols.append(part.partition(":")[0])
            else:
                self.kernel.params.append(self._buffer(part))
        at = 1
        while at < len(lines) and lines[at].startswith("  scratch "):
            b = self._buffer(lines[at].strip().removeprefix("scratch "))
            b.role = "scratch"
            self.kernel.scratch.append(b)
            at += 1
        if at < len(lines) and (m := _READY.match(lines[at])):
            self.kernel.ready = (m[1], tuple(parse_integer(e) for e in _split(m[2])))
            self.kernel.iterations = parse_integer(m[3])
            at += 1
        return at

    def _buffer(self, text: str) -> Buffer:
        m = _BUFFER.match(text)
        if m is None:
            raise CompileError(f"not a buffer: {text!r}")
        try:
            b = Buffer(m[1], dtypes.of(m[2]), m[4] or "scratch", parse_integer(m[3]))
        except (TypeError, SyntaxError) as e:
            raise CompileError(f"not a buffer: {text!r}: {e}") from e
        self.buffers[b.name] = b
        return b

    def _block(self, lines: list[str], at: int, depth: int, body: list[Stmt]) -> int:
        while at < len(lines):
            line = lines[at]
            if not line.strip():
                at += 1
                continue
            if len(line) - len(line.lstrip()) < 2 * depth:
                break
            try:
                stmt = self._statement(line.strip())
            except (LookupError, TypeError, ValueError, SyntaxError) as e:
                raise CompileError(f"not a statement of kernel IR: {line.strip()!r}: {e}") from e
            body.append(stmt)
            at += 1
            if isinstance(stmt, Loop):
                at = self._block(lines, at, depth + 1, stmt.body)
        return at

    def _statement(self, line: str) -> Stmt:
        if m := _LOOP.match(line):
            return self._loop(m)
        if m := _PREFETCH.match(line):
            return Prefetch(self.buffers[m[1]], self._integer(m[2]))
        if m := _INS.match(line):
            ins = self._instruction(m)
            self.values[m[1]] = ins
            return ins
        if m := _STORE.match(line):
            return Store(self.buffers[m[1]], self._integer(m[2]), self.values[m[3]], self.values[m[4]] if m[4] else None)
        if m := _ACCUMULATE.match(line):
            acc = self.values[m[1]]
            if not isinstance(acc, Acc):
                raise CompileError(f"{m[1]} is no accumulator: {line!r}")
            return Accumulate(acc, tuple(self.values[a] for a in _split(m[2])))
        raise CompileError(f"not a statement of kernel IR: {line!r}")

    def _loop(self, m: re.Match[str]) -> Loop:
        loop = Loop(m[1], m[2], self._integer(m[3]), self._integer(m[4]), self._integer(m[5]) if m[5] else None)
        loop.shared = self._integer(m[6]) if m[6] else 1
        loop.repeats = bool(m[7])
        for part in _split(m[8] or ""):
            a = _ACC.match(part)
            if a is None:
                raise CompileError(f"not an accumulator: {part!r}")
            acc = Acc(TABLE[a[2]], dtypes.of(a[3]), dtypes.of(a[4]))
            loop.accs.append(acc)
            self.values[a[1]] = acc
        self.variables[loop.var] = _counter(loop)
        return loop

    def _integer(self, text: str) -> Int:
        return parse_integer(text, self.variables)

    def _instruction(self, m: re.Match[str]) -> Ins:
        name, op, parts, d = m[1], m[2], _split(m[3]), dtypes.of(m[4])
        if op not in KERNEL_OPS:
            definition = TABLE[op]
            n = len(parts) - len(definition.attrs)
            ins = Ins(definition, tuple(self.values[p] for p in parts[:n]), tuple(_attribute(p) for p in parts[n:]), d)
        else:
            ins = self._kernel_op(op, parts, d)
        if not _NUMBERED.match(name):  # what index expressions name
            ins.name, ins.assumed, ins.extent = name, bool(m[5]), self._integer(m[6]) if m[6] else None
            self.variables[name] = var(name, None, None) if ins.extent is None else counter(name, ins.extent)
        return ins

    def _kernel_op(self, op: str, parts: list[str], d: Any) -> Ins:
        match op:
            case "load":
                mask = tuple(self.values[p] for p in parts[:-2])
                return Ins(op, mask, (self.buffers[parts[-2]], self._integer(parts[-1])), d)
            case "const":
                return Ins(op, (), (parts[0], bytes.fromhex(parts[1][2:])[::-1]), d)
            case "scan":
                return Ins(op, (self.values[parts[0]],), (self.values[parts[1]],), d)
        return Ins(op, (), tuple(self._integer(p) for p in parts), d)


def _counter(loop: Loop) -> Int:
    """The variable of a loop. Bounds decide how a backend divides by constants."""
    low, _ = bounds(loop.start)
    highs = [bounds(e)[1] for e in (loop.start + loop.extent - 1, loop.limit - 1 if loop.limit is not None else None) if e is not None]
    return var(loop.var, low, min((h for h in highs if h is not None), default=None))


def _attribute(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else text
