"""Native code (:mod:`language`) to LLVM IR text, by a walk over each function's syntax tree.

Every rule of the language that can be broken is checked here; a :class:`NativeError` names file and line.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable
from functools import cache
from struct import pack
from typing import Any, NoReturn

from hologram.backends.llvm.text import FunctionText
from hologram.backends.native_lang import language
from hologram.backends.native_lang.intrinsics import PRELUDE
from hologram.backends.native_lang.language import (
    Function,
    Instance,
    NativeError,
    Pointer,
    Routine,
    Signature,
    Struct,
    Type,
    as_type,
    f32,
    f64,
    fields_of,
    i64,
    ptr,
    size_of,
    void,
)

RECORD_ALIGNMENT = 128  # no cache line holds parts of two

_ATOMIC = {
    "fetch_add": "atomicrmw add ptr {place}, i64 {0} seq_cst",
    "exchange": "atomicrmw xchg ptr {place}, i64 {0} seq_cst",
    "acquire": "load atomic i64, ptr {place} seq_cst, align 8",
    "release": "store atomic i64 {0}, ptr {place} release, align 8",
}
_ATOMIC_ARITY = {"fetch_add": 1, "exchange": 1, "acquire": 0, "release": 1, "compare_exchange": 2}
_PURE: dict[str, tuple[list[Any], Any, str]] = {
    "offset": ([ptr, i64], ptr, "getelementptr i8, ptr {0}, i64 {1}"),
    "integer": ([ptr], i64, "ptrtoint ptr {0} to i64"),
    "to_float": ([i64], f64, "sitofp i64 {0} to double"),
    "float_bits": ([f64], i64, "bitcast double {0} to i64"),
    "leading_zeros": ([i64], i64, "call i64 @llvm.ctlz.i64(i64 {0}, i1 false)"),
    "shift_right": ([i64, i64], i64, "lshr i64 {0}, {1}"),
    "copy": ([ptr, ptr, i64], void, "call void @llvm.memcpy.p0.p0.i64(ptr {0}, ptr {1}, i64 {2}, i1 false)"),
    "pause": ([], void, "call void @hg_pause()"),
    "ticks": ([], i64, "call i64 @hg_ticks()"),
    "read_fp_control": ([], i64, "call i64 @hg_read_fp_control()"),
    "write_fp_control": ([i64], void, "call void @hg_write_fp_control(i64 {0})"),
}
_INTRINSICS = {getattr(language, name): name for name in (*_ATOMIC_ARITY, *_PURE, "address")}


def module_ir(routines: Iterable[Any], architecture: str) -> tuple[str, list[str]]:
    """LLVM IR text of the routines and of everything they call, and the names of the external symbols it needs."""
    queue, done, instances = list(routines), {}, {}
    owners: dict[str, Any] = {}
    while queue:
        routine = queue.pop(0)
        if owners.setdefault(routine.symbol, routine) is not routine:
            raise NativeError(f"{routine.function.__module__} and {owners[routine.symbol].function.__module__} both have {routine.symbol}")
        if routine.symbol not in done:
            if routine.body:
                translator = _Translator(routine)
                done[routine.symbol] = translator.text()
                queue += translator.called
                instances.update({i.symbol: size_of(i.struct) for i in translator.instances})
            else:
                s = routine.signature
                done[routine.symbol] = f"declare {s.result.ir} @{routine.symbol}({', '.join(t.ir for t in s.types)})\n"
    externals = sorted(name for name, text in done.items() if text.startswith("declare"))
    records = "".join(f"@{name} = global [{size // 8} x i64] zeroinitializer, align {RECORD_ALIGNMENT}\n" for name, size in sorted(instances.items()))
    return PRELUDE[architecture] + records + "".join(done.values()), externals


Value = tuple[str, Any]  # LLVM operand and Type


@cache
def _definitions(module: str) -> dict[str, ast.FunctionDef]:
    """The functions of a module by name, as syntax trees."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {f.name: f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)}


class _Translator:
    """One routine to LLVM IR. Locals live in stack slots, which LLVM turns into registers."""

    def __init__(self, routine: Routine) -> None:
        self.routine, self.signature = routine, routine.signature
        self.names = routine.function.__globals__
        self.tree = _definitions(routine.function.__module__)[routine.function.__name__]
        self.f = FunctionText()
        self.locals: dict[str, Type] = {}
        self.called: list[Routine] = []
        self.instances: list[Instance] = []
        self.loops: list[tuple[str, str]] = []  # labels of (continue, break)
        self.open = True  # the current block lacks its terminator

    def fail(self, node: ast.AST, why: str) -> NoReturn:
        raise NativeError(f"{self.routine.function.__code__.co_filename}:{getattr(node, 'lineno', self.tree.lineno)}: {why}")

    def text(self) -> str:
        s = self.signature
        for name, kind in zip(s.names, s.types, strict=True):
            operand, wide = self.widen(f"%arg.{name}", kind)
            self.declare(name, wide)
            self.emit(f"store {wide.ir} {operand}, ptr %{name}")
        self.block(self.tree.body)
        if self.open:
            if s.result is not void:
                self.fail(self.tree, f"{self.routine.symbol} may end without a result")
            self.emit("ret void")
        parameters = ", ".join(f"{t.ir} %arg.{n}" for n, t in zip(s.names, s.types, strict=True))
        linkage = "" if self.routine.exported else "internal "
        attributes = "nounwind alwaysinline" if self.routine.inlined else "nounwind"
        return self.f.text(f"define {linkage}{s.result.ir} @{self.routine.symbol}({parameters}) {attributes}")

    # --- emission

    def emit(self, line: str) -> None:
        if self.open:
            self.f.do(line)

    def assign(self, expression: str) -> str:
        name = self.f.name("t")
        self.emit(f"{name} = {expression}")
        return name

    def start(self, label: str) -> None:
        if self.open:
            self.emit(f"br label %{label}")
        self.f.start(label)
        self.open = True

    def end(self, terminator: str) -> None:
        self.emit(terminator)
        self.open = False

    def declare(self, name: str, kind: Type) -> None:
        self.locals[name] = kind
        self.f.entry.append(f"  %{name} = alloca {kind.ir}")

    # --- statements

    def block(self, statements: list[Any]) -> None:
        for statement in statements:
            if not self.open:
                self.fail(statement, "this statement is never reached")
            method = getattr(self, "do_" + type(statement).__name__, None)
            if method is None:
                self.fail(statement, f"native code has no {type(statement).__name__}")
            method(statement)

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Expr(self, node: ast.Expr) -> None:
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            self.value(node.value)

    def do_Return(self, node: ast.Return) -> None:
        result = self.signature.result
        if node.value is None:
            self.end("ret void" if result is void else self.fail(node, "a result is missing"))
        else:
            self.end(f"ret {result.ir} {self.narrow(self.value(node.value), result, node)}")

    def do_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.store(target, value, node)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name) or node.value is None:
            self.fail(node, "only a local may be declared, and with a value")
        kind = as_type(eval(compile(ast.Expression(node.annotation), "native", "eval"), self.names))  # noqa: S307
        if node.target.id not in self.locals:
            self.declare(node.target.id, kind)
        self.store(node.target, self.value(node.value), node)

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.store(node.target, self.arithmetic(node.op, self.value(node.target), self.value(node.value), node), node)
        else:
            where, kind = self.place(node.target)
            value = self.arithmetic(node.op, self.load(where, kind), self.value(node.value), node)
            self.put(where, kind, value, node)

    def store(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        if isinstance(target, ast.Name):
            if target.id not in self.locals:
                if value[1] is void:
                    self.fail(node, "the call has no result")
                self.declare(target.id, value[1])
            kind = self.locals[target.id]
            self.emit(f"store {kind.ir} {self.convert(value, kind, node)}, ptr %{target.id}")
        else:
            where, kind = self.place(target)
            self.put(where, kind, value, node)

    def do_If(self, node: ast.If) -> None:
        then, other, after = self.f.fresh_label("then"), self.f.fresh_label("else"), self.f.fresh_label("after")
        self.branch(node.test, then, other if node.orelse else after)
        reached = not node.orelse
        for label, body in ((then, node.body), (other, node.orelse)):
            if body:
                self.start(label)
                self.block(body)
                reached |= self.open
                if self.open:
                    self.end(f"br label %{after}")
        if reached:
            self.start(after)

    def loop(self, test: Callable[[str, str], None], body: list[Any], step: Callable[[], None]) -> None:
        head, inside, following, after = (self.f.fresh_label(x) for x in ("head", "body", "next", "done"))
        self.start(head)
        test(inside, after)
        self.start(inside)
        self.loops.append((following, after))
        self.block(body)
        self.loops.pop()
        self.start(following)
        step()
        self.end(f"br label %{head}")
        self.start(after)

    def do_While(self, node: ast.While) -> None:
        if node.orelse:
            self.fail(node, "a loop has no else")
        self.loop(lambda yes, no: self.branch(node.test, yes, no), node.body, lambda: None)

    def do_For(self, node: ast.For) -> None:
        call, name = node.iter, node.target
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range" and isinstance(name, ast.Name)):
            self.fail(node, "a for loop runs a name over range(stop) or range(start, stop)")
        bounds = [self.value(a) for a in call.args]
        start, stop = (bounds[0], bounds[1]) if len(bounds) == 2 else (("0", i64), bounds[0])
        self.store(name, start, node)

        def test(yes: str, no: str) -> None:
            inside = self.assign(f"icmp slt i64 {self.value(name)[0]}, {stop[0]}")
            self.end(f"br i1 {inside}, label %{yes}, label %{no}")

        self.loop(test, node.body, lambda: self.store(name, (self.assign(f"add i64 {self.value(name)[0]}, 1"), i64), node))

    def do_Continue(self, node: ast.Continue) -> None:
        self.end(f"br label %{self.loops[-1][0]}")

    def do_Break(self, node: ast.Break) -> None:
        self.end(f"br label %{self.loops[-1][1]}")

    # --- places and types

    def place(self, node: ast.expr) -> Value:
        """The address and type of a field or element."""
        if isinstance(node, ast.Attribute):
            base, kind = self.value(node.value)
            struct = getattr(kind, "target", None)
            if not (isinstance(struct, type) and issubclass(struct, Struct)) or kind.array:
                self.fail(node, f"{kind!r} has no field {node.attr}")
            if node.attr not in fields_of(struct):
                self.fail(node, f"{struct.__name__} has no field {node.attr}")
            field = fields_of(struct)[node.attr]
            return (self.assign(f"getelementptr i8, ptr {base}, i64 {field.offset}") if field.offset else base), field.type
        if isinstance(node, ast.Subscript):
            base, kind = self.value(node.value)
            if not getattr(kind, "array", False):
                self.fail(node, f"{kind!r} has no elements")
            index, element = self.integer(node.slice), kind.target
            if isinstance(element, type):  # an array of records: the element is a pointer into it
                return self.assign(f"getelementptr [{size_of(element)} x i8], ptr {base}, i64 {index}"), Pointer(element)
            return self.assign(f"getelementptr {element.ir}, ptr {base}, i64 {index}"), element
        self.fail(node, "this is no place in memory")

    def load(self, where: str, kind: Type) -> Value:
        return self.widen(self.assign(f"load {kind.ir}, ptr {where}, align {kind.size}"), kind)

    def put(self, where: str, kind: Type, value: Value, node: ast.AST) -> None:
        self.emit(f"store {kind.ir} {self.narrow(value, kind, node)}, ptr {where}, align {kind.size}")

    def narrow(self, value: Value, kind: Type, node: ast.AST) -> str:
        """The operand as ``kind``, cut to a narrower type where that is one."""
        if kind is f32:
            return self.assign(f"fptrunc double {self.convert(value, f64, node)} to float")
        if kind.ir[0] == "i" and kind.size < 8:
            return self.assign(f"trunc i64 {self.convert(value, i64, node)} to {kind.ir}")
        return self.convert(value, kind, node)

    def widen(self, operand: str, kind: Any) -> Value:
        """A narrow number as i64 or f64; anything else as it is."""
        if kind is f32:
            return self.assign(f"fpext float {operand} to double"), f64
        if kind.ir[0] == "i" and kind.size < 8:
            return self.assign(f"{'sext' if kind.signed else 'zext'} {kind.ir} {operand} to i64"), i64
        return operand, kind

    def convert(self, value: Value, kind: Any, node: ast.AST) -> str:
        """The operand as ``kind``: pointers convert to and from plain ``ptr``; nothing else changes type."""
        operand, given = value
        plain = given.ir == kind.ir and (given.ir != "ptr" or given.target is None or kind.target is None or given.target is kind.target)
        if not plain:
            self.fail(node, f"a {kind!r} is wanted where a {given!r} is given")
        return operand

    def integer(self, node: ast.expr) -> str:
        return self.convert(self.value(node), i64, node)

    # --- expressions

    def value(self, node: ast.expr) -> Value:
        method = getattr(self, "of_" + type(node).__name__, None)
        if method is None:
            self.fail(node, f"native code has no {type(node).__name__}")
        return method(node)

    def of_Constant(self, node: ast.Constant) -> Value:
        if node.value is None:
            return "null", ptr
        return self.constant(node.value, node)

    def constant(self, x: Any, node: ast.AST) -> Value:
        if isinstance(x, int):
            return str(int(x)), i64
        if isinstance(x, float):
            return f"0x{pack('>d', x).hex()}", f64
        if isinstance(x, Instance):
            self.instances.append(x)
            return "@" + x.symbol, Pointer(x.struct)
        if isinstance(x, Routine):
            self.called.append(x)
            return "@" + x.symbol, ptr
        self.fail(node, f"{x!r} has no place in native code")

    def of_Name(self, node: ast.Name) -> Value:
        if node.id in self.locals:
            kind = self.locals[node.id]
            return self.assign(f"load {kind.ir}, ptr %{node.id}"), kind
        if node.id not in self.names:
            self.fail(node, f"{node.id} is not defined")
        return self.constant(self.names[node.id], node)

    def python_object(self, node: ast.expr) -> Any:
        """The module-level Python object that a (dotted) name stands for, or None."""
        if isinstance(node, ast.Name):
            return None if node.id in self.locals else self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            holder = self.python_object(node.value)
            return None if holder is None or isinstance(holder, Instance) else getattr(holder, node.attr, None)
        return None

    def of_Attribute(self, node: ast.Attribute) -> Value:
        known = self.python_object(node)
        return self.constant(known, node) if known is not None else self.load(*self.place(node))

    def of_Subscript(self, node: ast.Subscript) -> Value:
        where, kind = self.place(node)
        return (where, kind) if isinstance(kind, Pointer) and isinstance(kind.target, type) and not kind.array else self.load(where, kind)

    _INTEGER_OPS = {
        ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
        ast.LShift: "shl", ast.RShift: "ashr", ast.FloorDiv: "udiv",
    }  # fmt: skip
    _FLOAT_OPS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}

    def arithmetic(self, op: ast.operator, a: Value, b: Value, node: ast.AST) -> Value:
        table = self._FLOAT_OPS if a[1] is f64 else self._INTEGER_OPS
        if type(op) not in table or a[1] not in (i64, f64):
            self.fail(node, f"{a[1]!r} has no {type(op).__name__}")
        return self.assign(f"{table[type(op)]} {a[1].ir} {a[0]}, {self.convert(b, a[1], node)}"), a[1]

    def of_BinOp(self, node: ast.BinOp) -> Value:
        return self.arithmetic(node.op, self.value(node.left), self.value(node.right), node)

    def of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.USub):
            operand, kind = self.value(node.operand)
            return self.assign(f"fneg double {operand}" if kind is f64 else f"sub i64 0, {self.convert((operand, kind), i64, node)}"), kind
        if isinstance(node.op, ast.Invert):
            return self.assign(f"xor i64 -1, {self.integer(node.operand)}"), i64
        return self.truth(node)

    def truth(self, node: ast.expr) -> Value:
        """A condition as 0 or 1."""
        yes, no, after = self.f.fresh_label("yes"), self.f.fresh_label("no"), self.f.fresh_label("truth")
        self.branch(node, yes, no)
        for label in (yes, no):
            self.start(label)
            self.end(f"br label %{after}")
        self.start(after)
        return self.assign(f"phi i64 [1, %{yes}], [0, %{no}]"), i64

    of_Compare = of_BoolOp = truth

    def of_IfExp(self, node: ast.IfExp) -> Value:
        yes, no, after = self.f.fresh_label("yes"), self.f.fresh_label("no"), self.f.fresh_label("either")
        slot = self.f.fresh_label("choice")
        self.branch(node.test, yes, no)
        self.start(yes)
        value = self.value(node.body)
        self.declare(slot, value[1])
        self.emit(f"store {value[1].ir} {value[0]}, ptr %{slot}")
        self.end(f"br label %{after}")
        self.start(no)
        self.emit(f"store {value[1].ir} {self.convert(self.value(node.orelse), value[1], node)}, ptr %{slot}")
        self.start(after)
        return self.assign(f"load {value[1].ir}, ptr %{slot}"), value[1]

    _COMPARE = {
        ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge", ast.Is: "eq", ast.IsNot: "ne",
    }  # fmt: skip

    def branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Ends the block: to ``yes`` where the condition holds, else to ``no``."""
        if isinstance(node, ast.BoolOp):
            for operand in node.values[:-1]:
                more = self.f.fresh_label("more")
                self.branch(operand, *((more, no) if isinstance(node.op, ast.And) else (yes, more)))
                self.start(more)
            return self.branch(node.values[-1], yes, no)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.branch(node.operand, no, yes)
        if isinstance(node, ast.Compare):
            if len(node.ops) != 1:
                self.fail(node, "comparisons do not chain")
            (x, kind), right = self.value(node.left), self.value(node.comparators[0])
            op = self._COMPARE.get(type(node.ops[0])) or self.fail(node, f"no comparison {type(node.ops[0]).__name__}")
            instruction = f"fcmp {'u' if op == 'ne' else 'o'}{op[-2:]}" if kind is f64 else "icmp " + op
            y = right[0] if kind.ir == right[1].ir == "ptr" else self.convert(right, kind, node)
            test = self.assign(f"{instruction} {kind.ir} {x}, {y}")
        else:
            x, kind = self.value(node)
            test = self.assign(f"icmp ne {kind.ir} {x}, {'null' if kind.ir == 'ptr' else '0'}")
        return self.end(f"br i1 {test}, label %{yes}, label %{no}")

    # --- calls

    def of_Call(self, node: ast.Call) -> Value:
        if node.keywords:
            self.fail(node, "a native call takes no keywords")
        known = self.python_object(node.func)
        if known is None:
            code, kind = self.value(node.func)
            function = getattr(kind, "target", None)
            if not (isinstance(function, type) and issubclass(function, Function)):
                self.fail(node, f"a {kind!r} cannot be called")
            return self.call(code, Signature(function.__call__, skip=1), node)
        if isinstance(known, Routine):
            self.called.append(known)
            return self.call("@" + known.symbol, known.signature, node)
        if isinstance(known, type) and issubclass(known, Struct | Function) or isinstance(known, Pointer):
            return self.cast(as_type(known), node)
        if callable(known) and known in _INTRINSICS:
            return self.intrinsic(_INTRINSICS[known], node)
        self.fail(node, f"{known!r} cannot be called")

    def cast(self, kind: Type, node: ast.Call) -> Value:
        operand, given = self.value(node.args[0])
        if given.ir != "ptr":
            self.fail(node, f"a {given!r} does not become a pointer")
        return operand, kind

    def call(self, code: str, signature: Signature, node: ast.Call) -> Value:
        types = list(signature.types)
        if signature.rest is not None:
            types += [signature.rest] * (len(node.args) - len(types))
        if len(node.args) != len(types):
            self.fail(node, f"{len(node.args)} arguments are given where {len(types)} are wanted")
        arguments = ", ".join(f"{t.ir} {self.narrow(self.value(a), t, a)}" for a, t in zip(node.args, types, strict=True))
        text = f"call {signature.result.ir} {code}({arguments})"
        return self.result(text, signature.result)

    def result(self, text: str, kind: Any) -> Value:
        if kind is void:
            self.emit(text)
            return "", void
        return self.widen(self.assign(text), kind)

    def intrinsic(self, name: str, node: ast.Call) -> Value:
        if name == "address":
            known = self.python_object(node.args[0])
            return self.constant(known, node) if known is not None else (self.place(node.args[0])[0], ptr)
        if name in _PURE:
            types, kind, template = _PURE[name]
            operands = [self.convert(self.value(a), t, a) for a, t in zip(node.args, types, strict=True)]
            return self.result(template.format(*operands), kind)
        if len(node.args) != 1 + _ATOMIC_ARITY[name]:
            self.fail(node, f"{name} takes {1 + _ATOMIC_ARITY[name]} arguments")
        where, kind = self.place(node.args[0])
        if kind is not i64:
            self.fail(node, "atomics work on i64")
        operands = [self.integer(a) for a in node.args[1:]]
        if name == "compare_exchange":
            pair = self.assign(f"cmpxchg ptr {where}, i64 {operands[0]}, i64 {operands[1]} seq_cst seq_cst")
            done = self.assign(f"extractvalue {{i64, i1}} {pair}, 1")
            return self.assign(f"zext i1 {done} to i64"), i64
        return self.result(_ATOMIC[name].format(*operands, place=where), void if name == "release" else i64)
