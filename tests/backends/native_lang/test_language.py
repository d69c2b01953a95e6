"""The subset of Python that native code is written in: what it means, and what it refuses."""

from __future__ import annotations

import ctypes

import pytest

from hologram.backends.llvm.toolchain import target
from hologram.backends.native_lang.language import (
    Array,
    Function,
    NativeError,
    Struct,
    acquire,
    address,
    at,
    compare_exchange,
    copy,
    exchange,
    exported,
    external,
    f32,
    f64,
    fetch_add,
    fields_of,
    float_bits,
    i32,
    i64,
    inlined,
    instance,
    integer,
    leading_zeros,
    native,
    offset,
    offset_of,
    pause,
    ptr,
    read_fp_control,
    release,
    shift_right,
    size_of,
    ticks,
    to_float,
    u32,
    void,
    write_fp_control,
)
from hologram.backends.native_lang.translate import module_ir

SEVEN = 7


class Settings:
    limit = 11


class Inner(Struct):
    a: i64
    b: i32
    c: u32
    d: f32
    e: f64


class Node(Struct):
    value: i64
    next: Node
    cells: Array[i64]
    code: BinaryFunction


class Placed(Struct):
    far: i64 = at(64)
    after: i32


class Counters(Struct):
    hits: i64
    last: ptr


class Adding(Function):
    """Takes any number of integers behind the first."""

    def __call__(self, a: i64, *rest: i64) -> i64:
        raise NotImplementedError


class BinaryFunction(Function):
    def __call__(self, a: i64, b: i64) -> i64:
        raise NotImplementedError


counters = instance(Counters, "hg_test_counters")


@external
def outside(n: i32, x: f64) -> i32: ...  # type: ignore[empty-body]


@exported
def arithmetic(a: i64, b: i64) -> i64:
    """(a + b) * 7 - 11, and then the bits."""
    x = (a + b) * SEVEN - Settings.limit
    x ^= a & b | 1 << 3
    x += -a + ~b
    return (x >> 1) + (a & 255) // 3


@exported
def collatz(n: i64) -> i64:
    steps = 0
    while n != 1:
        if n & 1 != 0:
            n = 3 * n + 1
        elif n > 0:
            n >>= 1
        steps += 1
    return steps


@exported
def loops(n: i64) -> i64:
    total = 0
    for i in range(n):
        if i == 3:
            continue
        for j in range(i, n):
            if j == 8:
                break
            total += i * j
    return total


@exported
def logic(a: i64, b: i64) -> i64:
    both = a > 0 and b > 0
    either = (a > 0 or divides(b, 0)) and not (a == 5 and b == 5)
    return both * 4 + either * 2 + (1 if a < b else 0)


@inlined
def divides(b: i64, unused: i64) -> i64:
    counters.hits += 1  # shows whether it was called
    return b > 0


@exported
def floats(x: f64, n: i64) -> f64:
    if x > 1.5:
        return x / 2.0
    return x * to_float(n) - 0.25


@exported
def narrow(p: Inner) -> i64:
    p.b = p.b - 1
    p.c = p.c + 1
    p.d = p.d * 2.0
    p.e = p.d
    return p.a + p.b + p.c


@exported
def sum_list(node: Node) -> i64:
    total = 0
    while node is not None:
        total += node.value + node.cells[1]
        node = node.next
    return total


@exported
def element_of_records(nodes: Array[Node], i: i64) -> i64:
    nodes[i].value += 1
    return nodes[i].value


@exported
def through_pointers(node: Node, a: i64, b: i64) -> i64:
    node.code = BinaryFunction(address(subtract))
    return node.code(a, b)


@native
def subtract(a: i64, b: i64) -> i64:
    return a - b


@native
def of_three(a: i64, b: i64, c: i64) -> i64:
    return a - b + c


@exported
def through_pointers_of_any_arity(a: i64, b: i64) -> i64:
    two = Adding(address(subtract))
    three = Adding(address(of_three))
    return two(a, b) * 10 + three(a, b, 1)


@exported
def call_outside(n: i64, x: f64) -> i64:
    return outside(n, x) + 1


@exported
def atomics(p: Node) -> i64:
    before = fetch_add(p.value, 5)
    before += exchange(p.value, 100)
    won = compare_exchange(p.value, 100, 7) * 10 + compare_exchange(p.value, 100, 8)
    release(p.value, acquire(p.value) + 1)
    return before * 1000 + won


@exported
def bits(n: i64, x: f64, p: ptr) -> i64:
    return leading_zeros(n) + shift_right(-1, 60) * 100 + (float_bits(x) == float_bits(-0.0)) * 10000 + (integer(offset(p, 3)) - integer(p)) * 100000


@exported
def copy_words(target_: ptr, source: ptr, n: i64) -> void:
    copy(target_, source, n << 3)


@exported
def machine() -> i64:
    pause()
    before = read_fp_control()
    write_fp_control(before)
    return ticks() > 0


NATIVES = (
    through_pointers_of_any_arity,
    arithmetic, collatz, loops, logic, floats, narrow, sum_list, element_of_records, through_pointers, call_outside, atomics, bits, copy_words,
    machine,
)  # fmt: skip
INT, PTR, DBL = ctypes.c_int64, ctypes.c_void_p, ctypes.c_double


@pytest.fixture(scope="module")
def code():
    text, externals = module_ir(NATIVES, target.host().architecture)
    assert externals == ["outside"]
    stub = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_double)(lambda n, x: int(n * x))
    symbols = {"outside": ctypes.cast(stub, ctypes.c_void_p).value}
    linked = {
        opt: target.link(target.compile_ir(text, opt=opt), symbols, [n.symbol for n in NATIVES] + ["hg_test_counters"]) for opt in ("none", "full")
    }
    linked["stub"] = stub
    return linked


@pytest.fixture(params=["none", "full"])
def f(code, request):
    """A native as a Python function, unoptimised and optimised."""

    def function(routine, result, *arguments):
        return ctypes.CFUNCTYPE(result, *arguments)(code[request.param].address(routine.symbol))

    function.counters = ctypes.c_int64.from_address(code[request.param].address("hg_test_counters"))
    return function


def test_arithmetic(f):
    for a, b in ((1, 2), (-5, 9), (2**40, -3)):
        x = (a + b) * 7 - 11
        x ^= a & b | 8
        x += -a + ~b
        assert f(arithmetic, INT, INT, INT)(a, b) == (x >> 1) + (a & 255) // 3


def test_loops(f):
    assert f(collatz, INT, INT)(27) == 111
    want = sum(i * j for i in range(12) if i != 3 for j in range(i, 12) if not any(k == 8 for k in range(i, j + 1)))
    assert f(loops, INT, INT)(12) == want


def test_logic_is_lazy(f):
    run = f(logic, INT, INT, INT)
    for a in (-1, 0, 5):
        for b in (-1, 0, 5):
            hits = f.counters.value
            want = (a > 0 and b > 0) * 4 + bool((a > 0 or b > 0) and not (a == 5 and b == 5)) * 2 + (a < b)
            assert run(a, b) == want
            assert f.counters.value - hits == (a <= 0)


def test_floats(f):
    run = f(floats, DBL, DBL, INT)
    assert run(3.0, 9) == 1.5 and run(1.0, 9) == 8.75


def test_two_natives_of_one_name_are_refused():
    def twin() -> i64:
        return 1

    first, second = exported(twin), exported(twin)
    with pytest.raises(NativeError, match="both have hg_twin"):
        module_ir([first, second], "x86_64")


def test_narrow_fields_extend_and_wrap(f):
    record = (ctypes.c_char * size_of(Inner))()
    at_ = ctypes.addressof(record)

    def field(name, kind):
        return kind.from_address(at_ + offset_of(Inner, name))

    field("a", INT).value, field("b", ctypes.c_int32).value, field("c", ctypes.c_uint32).value = 10, -(2**31), 2**32 - 1
    field("d", ctypes.c_float).value = 0.1
    assert f(narrow, INT, PTR)(at_) == 10 + (2**31 - 1) + 0
    assert field("e", DBL).value == field("d", ctypes.c_float).value == ctypes.c_float(0.2).value


def test_layout_of_records():
    assert [x.offset for x in fields_of(Inner).values()] == [0, 8, 12, 16, 24] and size_of(Inner) == 32
    assert offset_of(Placed, "far") == 64 and offset_of(Placed, "after") == 72 and size_of(Placed) == 80


def nodes(n: int):
    cells = (ctypes.c_int64 * 2)(1000, 1)
    memory = (ctypes.c_int64 * (4 * n))()
    start = ctypes.addressof(memory)
    for i in range(n):
        memory[4 * i : 4 * i + 3] = [i, start + 32 * (i + 1) if i + 1 < n else 0, ctypes.addressof(cells)]
    return memory, start, cells


def test_pointers(f):
    memory, start, cells = nodes(3)
    assert cells[0] == 1000 and f(sum_list, INT, PTR)(start) == 0 + 1 + 2 + 3
    assert f(element_of_records, INT, PTR, INT)(start, 2) == 3 == memory[8]
    assert f(through_pointers, INT, PTR, INT, INT)(start, 10, 4) == 6 and memory[3] != 0
    assert f(through_pointers_of_any_arity, INT, INT, INT)(10, 4) == 67


def test_externals_take_and_give_narrow_integers(f):
    assert f(call_outside, INT, INT, DBL)(-4, 2.5) == -9


def test_atomics(f):
    memory, start, _ = nodes(1)
    memory[0] = 2
    assert f(atomics, INT, PTR)(start) == (2 + 7) * 1000 + 10 and memory[0] == 8


def test_other_intrinsics(f):
    assert f(bits, INT, INT, DBL, PTR)(1, -0.0, 4096) == 63 + 1500 + 10000 + 300000
    source, into = (ctypes.c_int64 * 3)(1, 2, 3), (ctypes.c_int64 * 3)()
    f(copy_words, None, PTR, PTR, INT)(into, source, 2)
    assert list(into) == [1, 2, 0] and f(machine, INT)() == 1


# --- what is refused ------------------------------------------------------------------------------------------------------------------------


@native
def undefined_name(a: i64) -> i64:
    return a + nowhere  # noqa: F821


@native
def wrong_field(p: Node) -> i64:
    return p.missing


@native
def wrong_type(p: Node) -> i64:
    return p


@native
def wrong_pointer(p: Node) -> i64:
    q: Inner = p
    return q.a


@native
def mixed(a: i64, x: f64) -> i64:
    return a + x


@native
def division(a: i64) -> i64:
    return a % 2


@native
def chained(a: i64) -> i64:
    return 0 < a < 3


@native
def no_result(a: i64) -> i64:
    if a > 0:
        return 1


@native
def unreachable(a: i64) -> i64:
    return a
    a = 1


@native
def comprehension(a: i64) -> i64:
    return [a]


@native
def keyword(a: i64) -> i64:
    return subtract(a=a, b=a)


@native
def too_few(a: i64) -> i64:
    return subtract(a)


@native
def atomic_local(a: i64) -> i64:
    return fetch_add(a, 1)


@native
def python_call(a: i64) -> i64:
    return float(a)


@native
def over_list(a: ptr) -> i64:
    for x in a:
        return x
    return 0


@native
def text_constant(a: i64) -> ptr:
    return "text"


@native
def index_of_scalar(a: i64) -> i64:
    return a[0]


REFUSED = {
    undefined_name: "nowhere is not defined",
    wrong_field: "Node has no field missing",
    wrong_type: "a i64 is wanted where a Node is given",
    wrong_pointer: "a Inner is wanted where a Node is given",
    mixed: "a i64 is wanted where a double is given",
    division: "i64 has no Mod",
    chained: "comparisons do not chain",
    no_result: "may end without a result",
    unreachable: "never reached",
    comprehension: "no List",
    keyword: "no keywords",
    too_few: "1 arguments are given where 2 are wanted",
    atomic_local: "no place in memory",
    python_call: "float is not defined",
    over_list: "range",
    text_constant: "'text' has no place",
    index_of_scalar: "has no elements",
}


@pytest.mark.parametrize("routine", REFUSED, ids=lambda r: r.symbol)
def test_what_is_refused_says_why_and_where(routine):
    with pytest.raises(NativeError, match=REFUSED[routine]) as e:
        module_ir([routine], "x86_64")
    line = int(str(e.value).split(":")[1])
    first = routine.function.__code__.co_firstlineno
    assert str(e.value).startswith(__file__) and first <= line <= first + 6
