"""A small typed subset of Python for native code, translated to LLVM IR text.

The runtime's native parts are Python functions marked :func:`native`. They are never run by Python: their syntax tree becomes LLVM IR.
What the subset has:

- types: ``i64`` (all integer arithmetic), ``f64``, ``ptr``, and narrower integers and ``f32`` as types of fields and elements;
  a :class:`Struct` subclass names a pointer to that record, ``Array[T]`` a pointer to elements, a :class:`Function` subclass a code pointer;
- statements: assignment, augmented assignment, ``if``, ``while``, ``for i in range(...)``, ``break``, ``continue``, ``return``;
- expressions: integer and float literals, ``None`` (the null pointer), arithmetic (``//`` of non-negative integers), comparisons,
  ``and or not``, ``a if c else b``, fields, elements, casts ``Struct(p)``, calls of natives, externals, code pointers and the intrinsics
  below;
- names from the module: integer constants (and attributes of objects that hold them), natives, externals, and :func:`instance` records.

A local variable has the type of its first assignment. Anything else is a :class:`NativeError` with file and line.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable
from functools import cache
from struct import pack
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound="Struct")


class NativeError(Exception):
    """Native code that is outside the subset or ill-typed; the message starts with file and line."""


class Type:
    """A scalar: its LLVM spelling, size in bytes, and ``signed`` for integers (narrow ones extend to i64 when loaded)."""

    def __init__(self, ir: str, size: int, signed: bool = True) -> None:
        self.ir, self.size, self.signed = ir, size, signed

    def __repr__(self) -> str:
        return self.ir if self.signed else "u" + self.ir[1:]


class Pointer(Type):
    """A pointer; ``target`` is a Struct subclass, an element Type, a Function subclass, or None for plain ``ptr``."""

    def __init__(self, target: Any = None, array: bool = False) -> None:
        super().__init__("ptr", 8)
        self.target, self.array = target, array

    def __repr__(self) -> str:
        return "ptr" if self.target is None else getattr(self.target, "__name__", repr(self.target))


if TYPE_CHECKING:
    i64: TypeAlias = int
    i32: TypeAlias = int
    u32: TypeAlias = int
    f64: TypeAlias = float
    f32: TypeAlias = float
    ptr: TypeAlias = Any
    void: TypeAlias = None
    Array = list
else:
    i64, i32, u32 = Type("i64", 8), Type("i32", 4), Type("i32", 4, signed=False)
    f64, f32 = Type("double", 8), Type("float", 4)
    ptr, void = Pointer(), Type("void", 0)

    class Array:
        """``Array[T]``: a pointer to elements of type T."""

        def __class_getitem__(cls, element: Any) -> Pointer:
            return Pointer(element, array=True)


class Field:
    """A field of a Struct at a fixed byte offset; ``type`` is resolved at first use."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.type: Type = i64  # type: ignore[assignment]


def at(offset: int) -> Any:
    """Places a Struct's field: ``head: i64 = at(64)``."""
    return Field(offset)


class Struct:
    """A record in native memory. Fields follow each other naturally aligned, unless placed by :func:`at`."""

    def __init__(self, pointer: Any) -> None:
        raise TypeError("a Struct exists in native code only")


def fields_of(struct: Any) -> dict[str, Field]:
    """A Struct's fields by name, with offsets and types."""
    return _layout(struct)[0]


def size_of(struct: Any) -> int:
    """Bytes of one record, a multiple of 8."""
    return _layout(struct)[1]


def offset_of(struct: Any, name: str) -> int:
    return fields_of(struct)[name].offset


@cache
def _layout(struct: Any) -> tuple[dict[str, Field], int]:
    names, end, table = vars(sys.modules[struct.__module__]), 0, {}
    for name, annotation in inspect.get_annotations(struct).items():
        kind = as_type(eval(annotation, names) if isinstance(annotation, str) else annotation)  # noqa: S307
        placed = struct.__dict__.get(name)
        field = Field(placed.offset if isinstance(placed, Field) else (end + kind.size - 1) // kind.size * kind.size)
        field.type = kind
        end = max(end, field.offset + kind.size)
        table[name] = field
    return table, (end + 7) // 8 * 8


class Function:
    """A code pointer's type: a subclass whose ``__call__`` has the signature."""

    def __init__(self, pointer: Any) -> None:
        raise TypeError("a Function exists in native code only")


class Signature:
    """Parameter names and types and the result of a Python function's annotations."""

    def __init__(self, function: Callable[..., Any], skip: int = 0) -> None:
        names, hints = function.__globals__, function.__annotations__

        def resolve(hint: Any) -> Type:
            return as_type(eval(hint, names) if isinstance(hint, str) else hint)  # noqa: S307

        arguments = inspect.signature(function).parameters
        self.names = list(arguments)[skip:]
        self.types = [resolve(hints[name]) for name in self.names]
        self.result = resolve(hints["return"])


class Routine:
    """Something callable by symbol: a native (exported or internal, always inlined or not) or, without a body, an external."""

    def __init__(self, function: Callable[..., Any], body: bool, exported: bool = False, inlined: bool = False) -> None:
        self.function, self.body, self.exported, self.inlined = function, body, exported, inlined
        name = function.__name__
        self.symbol = "hg_" + name if body else name
        self._signature: Signature | None = None

    @property
    def signature(self) -> Signature:
        if self._signature is None:
            self._signature = Signature(self.function)
        return self._signature

    def __repr__(self) -> str:
        return f"<native {self.symbol}>"


class Instance:
    """The one record of a Struct that the native module holds, zero at first, under an exported symbol."""

    def __init__(self, struct: type[Struct], symbol: str) -> None:
        self.struct, self.symbol = struct, symbol


def native(function: F) -> F:
    """Marks native code that only other native code calls."""
    return Routine(function, body=True)  # type: ignore[return-value]


def inlined(function: F) -> F:
    """As :func:`native`, copied into each caller."""
    return Routine(function, body=True, inlined=True)  # type: ignore[return-value]


def exported(function: F) -> F:
    """Marks native code whose address is wanted, under the symbol ``hg_<name>``."""
    return Routine(function, body=True, exported=True)  # type: ignore[return-value]


def external(function: F) -> F:
    """Declares a C symbol: a Python function without a body, with the symbol's name."""
    return Routine(function, body=False)  # type: ignore[return-value]


def instance(struct: type[S], symbol: str) -> S:
    """A record of the module, read and written by native code as ``name.field``."""
    return Instance(struct, symbol)  # type: ignore[return-value]


# --- intrinsics: signatures for the reader and for type checkers; the translator has the meaning -------------------------------------


def address(place: Any) -> ptr:
    """The address of a field or element, or of a native."""


def offset(pointer: ptr, n: i64) -> ptr:
    """``pointer`` advanced by n bytes."""


def integer(pointer: ptr) -> i64:  # type: ignore[empty-body]
    """The bits of a pointer, for alignment arithmetic; they never become a pointer again."""


def fetch_add(place: i64, n: i64) -> i64:  # type: ignore[empty-body]
    """Atomically adds, sequentially consistent; gives the value before."""


def exchange(place: i64, n: i64) -> i64:  # type: ignore[empty-body]
    """Atomically stores, sequentially consistent; gives the value before."""


def compare_exchange(place: i64, old: i64, new: i64) -> i64:  # type: ignore[empty-body]
    """Atomically stores ``new`` where ``old`` was, sequentially consistent; gives 1 if so, else 0."""


def acquire(place: i64) -> i64:  # type: ignore[empty-body]
    """Atomic load, sequentially consistent."""


def release(place: i64, n: i64) -> None:
    """Atomic store, release."""


def to_float(n: i64) -> f64:  # type: ignore[empty-body]
    """The nearest double of an integer."""


def float_bits(x: f64) -> i64:  # type: ignore[empty-body]
    """The bits of a double."""


def leading_zeros(n: i64) -> i64:  # type: ignore[empty-body]
    """Zero bits above the highest one; 64 for 0."""


def shift_right(n: i64, by: i64) -> i64:  # type: ignore[empty-body]
    """Logical shift; ``>>`` is the arithmetic one."""


def copy(target: ptr, source: ptr, nbytes: i64) -> None:
    """memcpy."""


def pause() -> None:
    """Tells the core that this is a spin loop."""


def ticks() -> i64:  # type: ignore[empty-body]
    """The core's constant-rate time counter."""


def read_fp_control() -> i64:  # type: ignore[empty-body]
    """The floating-point control bits (rounding, flush to zero, traps), status bits removed."""


def write_fp_control(bits: i64) -> None:
    """Sets the floating-point control bits."""


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
_INTRINSICS = {globals()[name]: name for name in (*_ATOMIC_ARITY, *_PURE, "address")}

_PRELUDE = {
    "x86_64": """
declare void @llvm.x86.sse2.pause()
declare i64 @llvm.readcyclecounter()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal void @hg_pause() alwaysinline nounwind {
  call void @llvm.x86.sse2.pause()
  ret void
}
define internal i64 @hg_ticks() alwaysinline nounwind {
  %t = call i64 @llvm.readcyclecounter()
  ret i64 %t
}
define internal i64 @hg_read_fp_control() alwaysinline nounwind {
  %p = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  %v = load i32, ptr %p
  %c = and i32 %v, -64
  %w = zext i32 %c to i64
  ret i64 %w
}
define internal void @hg_write_fp_control(i64 %bits) alwaysinline nounwind {
  %p = alloca i32
  %v = trunc i64 %bits to i32
  store i32 %v, ptr %p
  call void @llvm.x86.sse.ldmxcsr(ptr %p)
  ret void
}
""",
    "aarch64": """
declare void @llvm.aarch64.hint(i32)
declare i64 @llvm.readsteadycounter()
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define internal void @hg_pause() alwaysinline nounwind {
  call void @llvm.aarch64.hint(i32 1)
  ret void
}
define internal i64 @hg_ticks() alwaysinline nounwind {
  %t = call i64 @llvm.readsteadycounter()
  ret i64 %t
}
define internal i64 @hg_read_fp_control() alwaysinline nounwind {
  %v = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %v
}
define internal void @hg_write_fp_control(i64 %bits) alwaysinline nounwind {
  call void @llvm.aarch64.set.fpcr(i64 %bits)
  ret void
}
""",
}
# IEEE 754 default control bits: all exceptions masked, round to nearest, subnormals kept
FP_CONTROL = {"x86_64": 0x1F80, "aarch64": 0}
ARCHITECTURES = tuple(_PRELUDE)


def as_type(hint: Any) -> Type:
    """The Type that an annotation names."""
    if isinstance(hint, Type):
        return hint
    if hint is None:
        return void  # type: ignore[return-value]
    if isinstance(hint, type) and issubclass(hint, Struct | Function):
        return Pointer(hint)
    raise NativeError(f"{hint!r} is no native type")


def module_ir(routines: Iterable[Any], architecture: str) -> tuple[str, list[str]]:
    """LLVM IR text of the routines and of everything they call, and the names of the external symbols it needs."""
    queue, done, instances = list(routines), {}, {}
    while queue:
        routine = queue.pop(0)
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
    records = "".join(f"@{name} = global [{size // 8} x i64] zeroinitializer, align 64\n" for name, size in sorted(instances.items()))
    return _PRELUDE[architecture] + records + "".join(done.values()), externals


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
        self.slots: list[str] = []
        self.lines: list[str] = []
        self.locals: dict[str, Type] = {}
        self.called: list[Routine] = []
        self.instances: list[Instance] = []
        self.loops: list[tuple[str, str]] = []  # labels of (continue, break)
        self.count = 0
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
        body = "\n".join([*self.slots, *self.lines])
        attributes = "nounwind alwaysinline" if self.routine.inlined else "nounwind"
        return f"define {linkage}{s.result.ir} @{self.routine.symbol}({parameters}) {attributes} {{\nentry:\n{body}\n}}\n"

    # --- emission

    def emit(self, line: str) -> None:
        if self.open:
            self.lines.append("  " + line)

    def assign(self, expression: str) -> str:
        self.count += 1
        self.emit(f"%t{self.count} = {expression}")
        return f"%t{self.count}"

    def label(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def start(self, label: str) -> None:
        if self.open:
            self.emit(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.open = True

    def end(self, terminator: str) -> None:
        self.emit(terminator)
        self.open = False

    def declare(self, name: str, kind: Type) -> None:
        self.locals[name] = kind
        self.slots.append(f"  %{name} = alloca {kind.ir}")

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
        then, other, after = self.label("then"), self.label("else"), self.label("after")
        self.branch(node.test, then, other if node.orelse else after)
        reached = not node.orelse
        for label, body in ((then, node.body), (other, node.orelse)):
            if body:
                self.lines.append(f"{label}:")
                self.open = True
                self.block(body)
                reached |= self.open
                if self.open:
                    self.end(f"br label %{after}")
        if reached:
            self.lines.append(f"{after}:")
            self.open = True

    def loop(self, test: Callable[[str, str], None], body: list[Any], step: Callable[[], None]) -> None:
        head, inside, following, after = (self.label(x) for x in ("head", "body", "next", "done"))
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
        yes, no, after = self.label("yes"), self.label("no"), self.label("truth")
        self.branch(node, yes, no)
        for label in (yes, no):
            self.start(label)
            self.end(f"br label %{after}")
        self.start(after)
        return self.assign(f"phi i64 [1, %{yes}], [0, %{no}]"), i64

    of_Compare = of_BoolOp = truth

    def of_IfExp(self, node: ast.IfExp) -> Value:
        yes, no, after = self.label("yes"), self.label("no"), self.label("either")
        self.count += 1
        slot = f"choice{self.count}"
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
                more = self.label("more")
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
        if len(node.args) != len(signature.types):
            self.fail(node, f"{len(node.args)} arguments are given where {len(signature.types)} are wanted")
        arguments = ", ".join(f"{t.ir} {self.narrow(self.value(a), t, a)}" for a, t in zip(node.args, signature.types, strict=True))
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
