"""The native runtime: storages, threads, native calls. Graphs are written in LLVM IR by hand."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from hologram import dtypes
from hologram.backends.cpu import target
from hologram.backends.cpu.runtime import calls, dispatch, layout, pool, python_storage, storage, tracing
from hologram.backends.cpu.runtime.dispatch import Argument, ArrayLeaf, Dispatch, Output, Same, ScalarLeaf, Spec, TensorLeaf
from hologram.backends.cpu.runtime.module import _exports, module, why_not_native
from hologram.backends.cpu.runtime.processors import usable_processors
from hologram.backends.cpu.runtime.translate import module_ir
from hologram.errors import CompileError, OutOfMemory
from hologram.settings import override
from hologram.trace.aval import Aval, aval
from hologram.trace.tensor import Tensor

pytestmark = pytest.mark.skipif(why_not_native() is not None, reason="native calls are off")
F8 = aval(dtypes.float32, (8,))
CHUNK = 1024

ADD_8 = """
define i64 @graph(ptr %bufs, ptr %ctx) {
  %a = load ptr, ptr %bufs
  %pb = getelementptr i64, ptr %bufs, i64 1
  %b = load ptr, ptr %pb
  %pc = getelementptr i64, ptr %bufs, i64 2
  %c = load ptr, ptr %pc
  %x = load <8 x float>, ptr %a, align 4
  %y = load <8 x float>, ptr %b, align 4
  %z = fadd <8 x float> %x, %y
  store <8 x float> %z, ptr %c
  ret i64 0
}
"""

# adds float32 arrays whose length is the one symbol, in chunks of 1,024; each chunk goes over its elements `rounds` times
ADD_PARALLEL = """
declare i64 @hg_parallel_for(ptr, ptr, ptr, i64, i64)
define internal void @kernel(ptr %bufs, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %a = load ptr, ptr %bufs
  %pb = getelementptr i64, ptr %bufs, i64 1
  %b = load ptr, ptr %pb
  %pc = getelementptr i64, ptr %bufs, i64 2
  %c = load ptr, ptr %pc
  %first = mul i64 %begin, 1024
  %last = mul i64 %end, 1024
  br label %round
round:
  %r = phi i64 [0, %entry], [%r1, %again]
  br label %loop
loop:
  %i = phi i64 [%first, %round], [%j, %loop]
  %pi = getelementptr float, ptr %a, i64 %i
  %qi = getelementptr float, ptr %b, i64 %i
  %oi = getelementptr float, ptr %c, i64 %i
  %x = load volatile float, ptr %pi
  %y = load float, ptr %qi
  %z = fadd float %x, %y
  store float %z, ptr %oi
  store float %z, ptr %scratch
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %last
  br i1 %more, label %loop, label %again
again:
  %r1 = add i64 %r, 1
  %on = icmp slt i64 %r1, ROUNDS
  br i1 %on, label %round, label %out
out:
  ret void
}
define i64 @graph(ptr %bufs, ptr %ctx) {
  %pn = getelementptr i64, ptr %bufs, i64 3
  %n = load i64, ptr %pn
  %chunks = udiv i64 %n, 1024
  %status = call i64 @hg_parallel_for(ptr %ctx, ptr @kernel, ptr %bufs, i64 %chunks, i64 GRAIN)
  ret i64 %status
}
"""

COPY_CELLS = """
define i64 @graph(ptr %bufs, ptr %ctx) {
  %a = load ptr, ptr %bufs
  %pc = getelementptr i64, ptr %bufs, i64 1
  %c = load ptr, ptr %pc
  %v = load i64, ptr %a
  store i64 %v, ptr %c
  ret i64 0
}
"""


def linked(text: str) -> target.Code:
    return target.link(target.compile_ir(text), calls.symbols())


@pytest.fixture(scope="module", autouse=True)
def tensors() -> None:
    dispatch.register_tensor_class(Tensor)


@pytest.fixture(scope="module")
def add8() -> target.Code:
    return linked(ADD_8)


@pytest.fixture
def threads():
    """Sets the number of threads for a test."""
    yield pool.set_num_threads
    pool.set_num_threads(0)


def tensor(x) -> Tensor:
    t = Tensor.__new__(Tensor)
    t._node, t._storage, t._weak = None, storage.copy_of(np.asarray(x)), False
    return t


def values(t: Tensor) -> np.ndarray:
    assert t._node is None and t._weak is False
    return storage.view(t._storage)


class Calls:
    """A fallback that notes its calls."""

    def __init__(self) -> None:
        self.seen: list[tuple] = []

    def __call__(self, *args, **kwargs):
        self.seen.append((args, kwargs))
        return "python"


def adder(code: target.Code, a, b, **options) -> tuple[Dispatch, Calls]:
    fallback = Calls()
    d = Dispatch(fallback, "adder")
    options.setdefault("outputs", [Output(F8)])
    assert d.add(Spec((a, b), 0, address=code.address("graph"), keep=code, **options))
    return d, fallback


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


HERE = f"import sys; sys.path[:0] = {[str(Path(__file__).parents[1]), str(Path(__file__).parent)]}; from test_runtime import *\n"


def python(code: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs a program of its own, with all the names of this file."""
    command = [sys.executable, "-W", "ignore", "-c", HERE + textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | environment)


# --- avals and storages ---------------------------------------------------------------------------------------------------------------------


def test_avals_are_interned():
    a = aval(dtypes.float32, (2, 3))
    assert a is aval(dtypes.float32, [2, np.int64(3)]) and a is not aval(dtypes.float32, (3, 2))
    assert (a.size, a.nbytes, a.kind) == (6, 24, (dtypes.float32, 2))
    assert a.kind is aval(dtypes.float32, (7, 7)).kind
    assert all(type(n) is int for n in aval(dtypes.int8, (np.int64(123),)).shape)


def test_avals_die_with_their_last_user():
    a = aval(dtypes.int8, (991, 3))
    s = storage.empty(a)
    before = id(a)
    del a
    gc.collect()
    assert id(aval(dtypes.int8, (991, 3))) == before
    del s


LAYOUTS = {
    "c": np.arange(24.0).reshape(2, 3, 4),
    "reversed": np.arange(10)[::-2],
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "big-endian": np.arange(5, dtype=">i4"),
    "scalar": np.array(3.5),
    "zero size": np.zeros((0, 4), np.float32),
    "bfloat16": np.arange(5).astype(ml_dtypes.bfloat16),
    "bool": np.array([True, False]),
    "complex": np.arange(3) * 1j,
    "misaligned": np.frombuffer(b"x" + np.arange(4, dtype=np.int32).tobytes(), np.uint8)[1:].view(np.int32),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("made", [storage._made, python_storage], ids=["native", "python"])
def test_copy_of_any_layout(name, made, monkeypatch):
    monkeypatch.setattr(storage, "_made", made)
    monkeypatch.setattr(storage, "view", made.view)
    x = LAYOUTS[name]
    s = storage.copy_of(x)
    v = storage.view(s)
    assert v.shape == x.shape and v.dtype == x.dtype.newbyteorder("=") and (v == x).all()
    assert s.aval is aval(dtypes.of(x.dtype), x.shape) and s.data % 64 == 0 and s.nbytes == x.nbytes
    assert not v.flags.writeable
    with pytest.raises(ValueError):
        v.flags.writeable = True
        v[...] = 0


def test_buffer_export_is_zero_copy_and_keeps_the_memory():
    s = storage.copy_of(np.arange(4))
    assert s.exports == 0
    m = memoryview(s)
    assert s.exports == 1 and m.readonly and m.nbytes == 32
    m.release()
    assert s.exports == 0
    v = np.frombuffer(s, np.int64)
    assert v.__array_interface__["data"][0] == s.data
    del s
    others = [storage.copy_of(np.full(4, 99)) for _ in range(5)]
    assert v.tolist() == [0, 1, 2, 3] and others


def test_borrowed_memory_keeps_its_owner():
    x = np.arange(4.0)
    before = sys.getrefcount(x)
    s = storage.borrow(x)
    assert s.owner is x and s.data == x.ctypes.data and storage.view(s).tolist() == x.tolist()
    assert sys.getrefcount(x) == before + 1
    del s
    assert sys.getrefcount(x) == before
    assert not storage.borrowable(x[::2]) and not storage.borrowable(x.astype(">f8"))
    with pytest.raises(ValueError):
        storage.borrow(x[::2])


def test_storages_cannot_be_made_by_hand():
    with pytest.raises(TypeError):
        storage.Storage()
    with pytest.raises(TypeError):
        storage._made._new(3)
    with pytest.raises(TypeError):
        storage._made.seal("x")


def test_size_classes_waste_at_most_a_quarter():
    bytes_of = module().function("hg_bytes_of_class", ctypes.c_int64, ctypes.c_int64)
    sizes = [*range(0, 70_000, 31), *[2**k + d for k in range(6, 47) for d in (-1, 0, 1)]]
    for n in sizes:
        c = storage._made.size_class(n)
        assert bytes_of(c) >= n and bytes_of(c) % 64 == 0
        assert c == 0 or bytes_of(c - 1) < n
        assert n <= 256 or bytes_of(c) <= 1.25 * n + 64


def test_memory_is_reused_and_counted():
    big = aval(dtypes.uint8, (5 << 20,))
    storage.clear_caches()
    before = storage.statistics()["live"]
    s = storage.empty(big)
    data, live = s.data, storage.statistics()["live"]
    assert live - before == 5 << 20
    del s
    assert storage.statistics()["live"] == before and storage.statistics()["cached"] >= 5 << 20
    s = storage.empty(big)
    assert s.data == data
    del s
    storage.clear_caches()
    assert storage.statistics()["cached"] == 0


def test_memory_limit_and_impossible_sizes():
    small = aval(dtypes.uint8, (1 << 20,))
    kept = [storage.empty(small)]
    with override(memory_limit=storage.statistics()["live"] + (3 << 20)), pytest.raises(OutOfMemory, match="limit"):
        while True:
            kept.append(storage.empty(small))
    assert 2 <= len(kept) <= 4
    assert storage.empty(small) is not None
    for n in (1 << 44, 1 << 60, 1 << 70):
        with pytest.raises(OutOfMemory):
            storage.empty(aval(dtypes.float64, (n,)))


def test_free_memory_does_not_pile_up():
    storage.clear_caches()
    for i in range(40):
        storage.empty(aval(dtypes.uint8, ((20 << 20) * (i + 1),)))
    assert storage.statistics()["cached"] <= 3 * (20 << 20) * 40


# --- native calls ---------------------------------------------------------------------------------------------------------------------------


def test_a_native_call(add8):
    d, fallback = adder(add8, TensorLeaf(F8), TensorLeaf(F8))
    x = np.arange(8, dtype=np.float32)
    out = d.call(tensor(x), tensor(x * 2))
    assert type(out) is Tensor and values(out).tolist() == (x * 3).tolist() and not fallback.seen
    assert d.call.__name__ == "adder" and type(d.call).__name__ == "builtin_function_or_method"


def test_calls_that_do_not_fit_go_to_python(add8):
    d, fallback = adder(add8, TensorLeaf(F8), ArrayLeaf(F8))
    a, x = tensor(np.ones(8, np.float32)), np.ones(8, np.float32)
    unrealised = Tensor.__new__(Tensor)
    unrealised._node, unrealised._storage = None, None
    empty_slots = Tensor.__new__(Tensor)
    wide = np.ones(16, np.float32)
    misaligned = np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(np.float32)
    wrong = [
        (), (a,), (a, x, x), (x, x), (a, a), (unrealised, x), (empty_slots, x), (a, 1.0), (a, None), (None, x), (a, x[::-1]), (a, wide[::2]),
        (a, misaligned), (a, x.astype(np.float64)), (a, x.astype(">f4")), (a, x[:4]), (a, x.reshape(2, 4)), (a, x.view(np.recarray)),
        (a, np.float32(1)), (tensor(np.ones(9, np.float32)), x), (tensor(np.ones(8)), x),
    ]  # fmt: skip
    for args in wrong:
        assert isinstance(d.call(*args), str)
    assert isinstance(d.call(a, b=x), str) and isinstance(d.call(a=a), str)
    assert len(fallback.seen) == len(wrong) + 2
    assert fallback.seen[-2] == ((a,), {"b": x})
    assert values(d.call(a, x)).tolist() == [2.0] * 8


def test_what_python_raises_passes_through(add8):
    def fallback(*args):
        raise KeyError("from Python")

    d = Dispatch(fallback, "f")
    with pytest.raises(KeyError, match="from Python"):
        d.call(1)
    d.add(Spec((TensorLeaf(F8), TensorLeaf(F8)), 0, [Output(F8)], add8.address("graph"), add8))
    with pytest.raises(KeyError, match="from Python"):
        d.call(1, 2)


def test_keywords_in_their_order(add8):
    fallback = Calls()
    d = Dispatch(fallback, "f")
    d.add(Spec((TensorLeaf(F8),), 0, [Output(F8)], add8.address("graph"), add8, kwargs={"scale": TensorLeaf(F8)}))
    a = tensor(np.ones(8, np.float32))
    assert values(d.call(a, scale=a)).tolist() == [2.0] * 8
    assert isinstance(d.call(a, a), str) and isinstance(d.call(a, shift=a), str) and isinstance(d.call(scale=a), str)


def test_specialisations_are_tried_latest_first_and_bounded(add8):
    fallback = Calls()
    d = Dispatch(fallback, "f", limit=3)
    graph = add8.address("graph")
    avals = [aval(dtypes.float32, (8, *[1] * k)) for k in range(5)]
    args = [tensor(np.ones(a.shape, np.float32)) for a in avals]
    for a in avals[:3]:
        d.add(Spec((TensorLeaf(a), TensorLeaf(a)), 0, [Output(a)], graph, add8))
    for x in (args[0], args[1], args[0]):
        assert values(d.call(x, x)).shape == storage.view(x._storage).shape
    d.add(Spec((TensorLeaf(avals[3]), TensorLeaf(avals[3])), 0, [Output(avals[3])], graph, add8))  # the third was never used
    assert len(d) == 3
    assert [isinstance(d.call(x, x), str) for x in args] == [False, False, True, False, True]
    d.clear()
    assert len(d) == 0 and isinstance(d.call(args[0], args[0]), str)


@pytest.mark.parametrize(
    ("kind", "to", "good", "bad"),
    [
        (float, "float64", [0.1, -0.0, 1e300, float("inf"), float("nan")], [1, True, np.float64(1), "x"]),
        (float, "float32", [0.1, 1e-45, 3.5e38, -1e300, 5e-324, float("nan")], [2]),
        (float, "float16", [0.1, 65519.0, 65520.0, 6e-8, 2.9e-8, 1e-30, -0.0, 2049.0, 2051.0, float("inf"), float("nan")], [1]),
        (float, "bfloat16", [0.1, 3.3e38, 3.4e38, 1e-40, 9e-41, 1.00390625, 1.01171875, float("-inf"), float("nan")], [1]),
        (int, "int64", [0, -1, 2**63 - 1, -(2**63)], [2**63, -(2**64), 1.0, True, np.int64(1)]),
        (int, "int8", [0, -128, 127], [128, -129]),
        (int, "uint8", [0, 255], [-1, 256]),
        (int, "uint64", [0, 2**63 - 1], [-1, 2**63]),
        (int, "float32", [0, 16777217, -(2**53)], [2**53 + 1]),
        (int, "float16", [3, 2049, 70000], []),
        (bool, "bool", [True, False], [1, 0, np.True_]),
        (bool, "int32", [True], [1]),
        (bool, "float64", [True], [1.0]),
    ],
)
def test_python_scalars_are_converted(kind, to, good, bad):
    code, dtype, fallback = linked(COPY_CELLS), dtypes.of(to), Calls()
    d = Dispatch(fallback, "f")
    assert d.add(Spec((ScalarLeaf(kind, dtype),), 0, [Output(aval(dtypes.int64, ()))], code.address("graph"), code))
    for x in good:
        got = values(d.call(x)).reshape(1).view(np.uint8)[: dtype.itemsize].view(dtype.np)[0]
        with np.errstate(all="ignore"):
            want = np.asarray(x).astype(np.float64).astype(dtype.np) if dtype.is_float else np.asarray(x).astype(dtype.np)
        assert got.tobytes() == want.tobytes() or (got != got and want != want), (x, got, want)
    for x in bad:
        assert d.call(x) == "python"


def test_narrow_floats_round_like_numpy():
    code = linked(COPY_CELLS)
    rng = np.random.default_rng(0)
    bits = np.concatenate([rng.integers(0, 2**64, 3000, dtype=np.uint64).view(np.float64), rng.uniform(-7e4, 7e4, 3000), rng.normal(0, 1e-6, 3000)])
    for dtype in (dtypes.float16, dtypes.bfloat16):
        d = Dispatch(Calls(), "f")
        d.add(Spec((ScalarLeaf(float, dtype),), 0, [Output(aval(dtypes.int64, ()))], code.address("graph"), code))
        with np.errstate(all="ignore"):
            want = bits.astype(dtype.np) if dtype is dtypes.float16 else _to_bfloat16(bits)
        got = np.array([values(d.call(x)) for x in bits.tolist()]).astype(np.uint16).view(dtype.np)
        same = (got == want) | ((got != got) & (want != want))
        assert same.all(), (bits[~same], got[~same], want[~same])


def _to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Rounded once: through float32 rounded to odd."""
    near = x.astype(np.float32)
    toward = np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    odd = np.where(toward.astype(np.float64) != x, toward.view(np.uint32) | 1, toward.view(np.uint32)).view(np.float32)
    return odd.astype(ml_dtypes.bfloat16)


def test_containers_in_and_out(add8):
    fallback, leaf, mark = Calls(), TensorLeaf(F8), object()
    args = ({"b": [leaf, None], "a": (leaf, {"deep": Same(3)})}, Same("mode"), Same(mark), ())
    result = {"sum": (0, [None, 0]), "first": 1, "mark": Same(mark), "none": (), "empty": {}}
    d = Dispatch(fallback, "f")
    assert d.add(Spec(args, result, [Output(F8), Argument(1)], add8.address("graph"), add8))
    one, two = tensor(np.ones(8, np.float32)), tensor(np.full(8, 2, np.float32))
    got = d.call({"a": (one, {"deep": 3}), "b": [two, None]}, "".join(["mo", "de"]), mark, ())
    assert list(got) == ["empty", "first", "mark", "none", "sum"] and got["mark"] is mark and got["none"] == () and got["empty"] == {}
    assert got["first"]._storage is two._storage and got["first"] is not two
    total, (nothing, again) = got["sum"]
    assert nothing is None and type(got["sum"][1]) is list and values(total).tolist() == [3.0] * 8 and again._storage is total._storage

    def call(**changes):
        good = {"tree": {"a": (one, {"deep": 3}), "b": [two, None]}, "mode": "mode", "mark": mark, "last": ()}
        return d.call(*(good | changes).values())

    assert not isinstance(call(), str)
    for wrong in (
        {"mode": "mod"}, {"mode": b"mode"}, {"mark": object()}, {"last": []}, {"last": (1,)}, {"tree": []}, {"tree": {}},
        {"tree": {"a": (one, {"deep": 4}), "b": [two, None]}}, {"tree": {"a": (one, {"deep": 3.0}), "b": [two, None]}},
        {"tree": {"a": (one, {"deep": True}), "b": [two, None]}}, {"tree": {"a": (one, {"dee": 3}), "b": [two, None]}},
        {"tree": {"a": [one, {"deep": 3}], "b": [two, None]}}, {"tree": {"a": (one, {"deep": 3}), "b": [two]}},
        {"tree": {"a": (one, {"deep": 3}), "b": [two, 0]}}, {"tree": {"a": (one, {"deep": 3}), "b": [two, None], "c": 1}},
        {"tree": {"a": (one, {"deep": 3}), 5: [two, None]}},
    ):  # fmt: skip
        assert isinstance(call(**wrong), str), wrong


def test_subclasses_of_containers_go_to_python(add8):
    from collections import OrderedDict, namedtuple

    d, leaf = Dispatch(Calls(), "f"), TensorLeaf(F8)
    x = tensor(np.ones(8, np.float32))
    for pattern, good, bad in (
        ((leaf, leaf), (x, x), namedtuple("Pair", "a b")(x, x)),
        ({"a": leaf, "b": leaf}, {"a": x, "b": x}, OrderedDict(a=x, b=x)),
    ):
        d.add(Spec((pattern,), 0, [Output(F8)], add8.address("graph"), add8))
        assert values(d.call(good)).tolist() == [2.0] * 8
        assert isinstance(d.call(bad), str)


def test_keys_that_compare_in_python_do_no_harm(add8):
    """A key with the hash of another runs its own __eq__ while native code walks the dict."""
    leaf, x = TensorLeaf(F8), tensor(np.ones(8, np.float32))
    holder: list = []

    class Evil:
        def __hash__(self):
            return hash("a")

        def __eq__(self, other):
            holder.clear()
            gc.collect()
            raise RuntimeError("compared")

    d = Dispatch(Calls(), "f")
    d.add(Spec(([{"a": leaf, "b": leaf}],), 0, [Output(F8)], add8.address("graph"), add8))
    holder.append({Evil(): x, "b": x})
    with pytest.raises(RuntimeError, match="compared"):
        d.call(holder)


def test_what_native_code_cannot_serve_is_refused(add8):
    d, deep = Dispatch(Calls(), "f"), TensorLeaf(F8)
    for _ in range(100):
        deep = (deep,)
    for pattern in ({1: TensorLeaf(F8)}, deep, object(), ScalarLeaf(float, dtypes.int32), ScalarLeaf(complex, dtypes.complex64)):
        assert not d.add(Spec((pattern,), 0, [Output(F8)], add8.address("graph"), add8))
    assert not d.add(Spec((ArrayLeaf(F8), ArrayLeaf(F8)), 0, [Argument(0)], add8.address("graph"), add8))
    with pytest.raises(OutOfMemory):
        d.add(Spec((), 0, [Output(aval(dtypes.float32, (1 << 50,)))], add8.address("graph"), add8))


def test_constants_and_symbols_fill_their_slots():
    code = linked(ADD_PARALLEL.replace("ROUNDS", "1").replace("GRAIN", "100"))
    n = 2 * CHUNK
    a = aval(dtypes.float32, (n,))
    constant = storage.copy_of(np.full(n, 5, np.float32))
    before = sys.getrefcount(constant)
    d = Dispatch(Calls(), "f")
    d.add(Spec((TensorLeaf(a),), 0, [Output(a)], code.address("graph"), code, constants=[constant], symbols=[n]))
    assert sys.getrefcount(constant) == before + 1
    assert (values(d.call(tensor(np.ones(n, np.float32)))) == 6).all()
    d.clear()
    assert sys.getrefcount(constant) == before


def test_donated_memory_is_taken_only_if_nobody_else_reads_it(add8):
    d, fallback = adder(add8, TensorLeaf(F8), TensorLeaf(F8), outputs=[Output(F8, donor=0)], donated=[0])
    b = tensor(np.ones(8, np.float32))
    x = tensor(np.full(8, 2, np.float32))
    data = x._storage.data
    out = d.call(x, b)
    assert out._storage.data == data and x._storage is None and x._node is None and values(out).tolist() == [3.0] * 8
    assert isinstance(d.call(x, b), str)  # gone
    x = tensor(np.full(8, 2, np.float32))
    view = storage.view(x._storage)
    out = d.call(x, b)
    assert out._storage.data != view.ctypes.data and view.tolist() == [2.0] * 8 and values(out).tolist() == [3.0] * 8
    x = tensor(np.full(8, 2, np.float32))
    assert values(d.call(x, x)).tolist() == [4.0] * 8  # the same Tensor twice
    array = np.ones(8, np.float32)
    borrowed = Tensor.__new__(Tensor)
    borrowed._node, borrowed._storage, borrowed._weak = None, storage.borrow(array), False
    out = d.call(borrowed, b)
    assert values(out).tolist() == [2.0] * 8 and array.tolist() == [1.0] * 8
    assert len(fallback.seen) == 1


def test_open_traces_and_changed_settings_send_calls_to_python(add8):
    d, _ = adder(add8, TensorLeaf(F8), TensorLeaf(F8))
    x = tensor(np.ones(8, np.float32))
    with tracing.tracing():
        assert isinstance(d.call(x, x), str)
    assert not isinstance(d.call(x, x), str)
    for change in ({"disabled_passes": ("simplify",)}, {"target": "+fma"}, {"native": False}):
        with override(**change):
            assert isinstance(d.call(x, x), str)
        assert not isinstance(d.call(x, x), str)


def test_block_until_ready():
    seen = []
    f = dispatch.block_until_ready(lambda x: seen.append(x) or "python")
    x = tensor(np.ones(3))
    assert f(x) is x and not seen
    assert f([x]) == "python" and seen == [[x]]


def test_out_of_memory_in_a_call(add8):
    big = aval(dtypes.uint8, (1 << 46,))
    d = Dispatch(Calls(), "f")
    d.add(Spec((TensorLeaf(F8), TensorLeaf(F8)), (0, 1), [Output(F8), Output(big)], add8.address("graph"), add8))
    x = tensor(np.ones(8, np.float32))
    live = storage.statistics()["live"]
    with pytest.raises(OutOfMemory):
        d.call(x, x)
    assert storage.statistics()["live"] == live
    d.add(Spec((TensorLeaf(F8), TensorLeaf(F8)), 0, [Output(F8)], add8.address("graph"), add8, arena_bytes=1 << 46))
    live = storage.statistics()["live"]
    with pytest.raises(OutOfMemory):
        d.call(x, x)
    assert storage.statistics()["live"] == live


def test_nothing_leaks_and_every_reference_is_given_back():
    leaf, code = TensorLeaf(F8), linked(ADD_8.replace("ptr %bufs, i64 2", "ptr %bufs, i64 3"))
    fallback = Calls()
    d = Dispatch(fallback, "f")
    mark = object()
    d.add(
        Spec(
            ({"a": leaf, "b": [ArrayLeaf(F8), None, ScalarLeaf(float, dtypes.float32)]}, Same(mark)),
            (0, {"x": 0, "y": [1]}, Same(mark)),
            [Output(F8), Argument(0)],
            code.address("graph"),
            code,
        )
    )
    a, b = tensor(np.ones(8, np.float32)), np.ones(8, np.float32)
    tree = {"a": a, "b": [b, None, 1.5]}
    watched = [a, b, a._storage, F8, mark, tree, tree["b"], d._dispatcher.specs, Tensor, storage.Storage, type(d._dispatcher.specs)]

    def many(n):
        for _ in range(n):
            d.call(tree, mark)

    many(1000)
    gc.collect()
    counts, live, size = [sys.getrefcount(x) for x in watched], storage.statistics(), resident()
    many(100_000)
    gc.collect()
    assert [sys.getrefcount(x) for x in watched] == counts
    assert storage.statistics() == live and resident() - size < 1 << 20 and not fallback.seen


def test_calls_that_miss_leak_nothing(add8):
    d, fallback = adder(add8, TensorLeaf(F8), ArrayLeaf(F8))
    a, wrong = tensor(np.ones(8, np.float32)), np.ones(9, np.float32)
    fallback.seen = type("Sink", (), {"append": lambda self, x: None})()
    counts = [sys.getrefcount(x) for x in (a, wrong, a._storage)]
    for _ in range(10_000):
        d.call(a, wrong)
    assert [sys.getrefcount(x) for x in (a, wrong, a._storage)] == counts


def test_a_dispatcher_is_collected_with_what_it_holds(add8):
    import weakref

    class Owner:
        def __init__(self):
            self.dispatch = Dispatch(self.fallback, "f")
            self.dispatch.add(Spec((Same(self),), 0, [Output(F8)], add8.address("graph"), add8))

        def fallback(self, *args):
            return "python"

    ref = weakref.ref(Owner())
    gc.collect()
    assert ref() is None


def test_results_outlive_their_function():
    code = linked(ADD_8)
    d, _ = adder(code, TensorLeaf(F8), TensorLeaf(F8))
    x = tensor(np.ones(8, np.float32))
    out = d.call(x, x)
    del d, code, x
    gc.collect()
    assert values(out).tolist() == [2.0] * 8


@pytest.mark.skipif(target.host().architecture != "x86_64", reason="flush-to-zero is set by hand")
def test_subnormals_are_kept_whatever_the_caller_does(add8):
    text = """
    declare void @llvm.x86.sse.stmxcsr(ptr)
    declare void @llvm.x86.sse.ldmxcsr(ptr)
    define i64 @graph(i64 %v) {
      %p = alloca i32
      call void @llvm.x86.sse.stmxcsr(ptr %p)
      %old = load i32, ptr %p
      %n = trunc i64 %v to i32
      store i32 %n, ptr %p
      call void @llvm.x86.sse.ldmxcsr(ptr %p)
      %w = zext i32 %old to i64
      ret i64 %w
    }"""
    code = linked(text)
    control = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("graph"))
    d, _ = adder(add8, TensorLeaf(F8), TensorLeaf(F8))
    x = tensor(np.full(8, 1e-45, np.float32))
    before = control(0x1F80 | 0x8040)  # flush to zero, denormals are zero
    try:
        out = d.call(x, x)
        inside = control(0x1F80)
    finally:
        control(before)
    assert inside & 0x8040 == 0x8040  # the caller's choice is given back
    assert values(out).view(np.int32).tolist() == [2] * 8


# --- threads --------------------------------------------------------------------------------------------------------------------------------


def parallel(grain: int, rounds: int = 1) -> target.Code:
    return linked(ADD_PARALLEL.replace("ROUNDS", str(rounds)).replace("GRAIN", str(grain)))


def run_add(code: target.Code, x: np.ndarray, **options) -> np.ndarray:
    a = storage.copy_of(x)
    out = storage.empty(a.aval)
    calls.run(code.address("graph"), [a, a], [out], [x.size], **options)
    return storage.view(out)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("long", [False, True])
def test_every_chunk_runs_for_any_number_of_threads(n_threads, long, threads):
    threads(n_threads)
    assert pool.num_threads() == n_threads
    for grain in (1, 3, 1000):
        code = parallel(grain)
        for chunks in (1, 2, 3, 7, 200):
            x = np.arange(chunks * CHUNK, dtype=np.float32)
            for _ in range(5):
                assert (run_add(code, x, long=long) == 2 * x).all()
    assert pool.the_pool().state.n_workers == n_threads - 1


def test_sleeping_workers_join_long_work(threads):
    code, x = parallel(1, rounds=100), np.ones(400 * CHUNK, np.float32)

    def seconds(n_threads: int) -> float:
        threads(n_threads)
        run_add(code, x)
        time.sleep(0.02)  # now workers sleep
        start = time.perf_counter()
        run_add(code, x)
        return time.perf_counter() - start

    assert any(seconds(2) < 1.2 * seconds(1) for _ in range(5))


def test_many_python_threads_at_once(threads, add8):
    threads(3)
    code, small = parallel(1), adder(add8, TensorLeaf(F8), TensorLeaf(F8))[0]
    n = 20 * CHUNK
    a = aval(dtypes.float32, (n,))
    made = []
    for long in (False, True):
        d = Dispatch(Calls(), "f")
        d.add(Spec((TensorLeaf(a), TensorLeaf(a)), 0, [Output(a)], code.address("graph"), code, symbols=[n], long=long))
        made.append(d)
    stop, errors = time.perf_counter() + 2.0, []

    def work(k):
        x, y = tensor(np.full(n, k, np.float32)), tensor(np.arange(n, dtype=np.float32))
        s = tensor(np.full(8, k, np.float32))
        want = np.arange(n, dtype=np.float32) + k
        while time.perf_counter() < stop:
            for d in made:
                if not (values(d.call(x, y)) == want).all():
                    errors.append(k)
            if values(small.call(s, s)).tolist() != [2.0 * k] * 8:
                errors.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for w in workers:
        w.start()
    for i in range(10):
        time.sleep(0.15)
        pool.set_num_threads(1 + i % 4)
    for w in workers:
        w.join()
    assert not errors


def test_specialisations_may_go_while_their_code_runs():
    n = 8 * CHUNK
    a = aval(dtypes.float32, (n,))
    x = tensor(np.ones(n, np.float32))
    d = Dispatch(lambda *args: None, "f")
    stop, bad = threading.Event(), []

    def work():
        while not stop.is_set():
            out = d.call(x, x)
            if out is not None and not (values(out) == 2).all():
                bad.append(out)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for w in workers:
        w.start()
    for _ in range(5):
        code = parallel(1)
        d.add(Spec((TensorLeaf(a), TensorLeaf(a)), 0, [Output(a)], code.address("graph"), code, symbols=[n], long=True))
        del code
        time.sleep(0.01)
        d.clear()
        gc.collect()
    stop.set()
    for w in workers:
        w.join()
    assert not bad


SLOW = {"grain": 1, "rounds": 20_000}  # about 10 ms a chunk


@pytest.mark.parametrize("n_threads", [1, 2])
def test_interrupt_cancels_a_long_call(n_threads, threads):
    threads(n_threads)
    code = parallel(**SLOW)
    n = 2000 * CHUNK
    a = aval(dtypes.float32, (n,))
    x = tensor(np.ones(n, np.float32))
    d = Dispatch(Calls(), "f")
    d.add(Spec((TensorLeaf(a), TensorLeaf(a)), 0, [Output(a)], code.address("graph"), code, symbols=[n], long=True))
    live = storage.statistics()["live"]
    for call in (lambda: d.call(x, x), lambda: run_add(code, np.ones(n, np.float32), long=True)):
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            call()
        assert time.perf_counter() - start < 5
        timer.join()
    gc.collect()
    assert storage.statistics()["live"] == live
    quick = parallel(1)
    assert (run_add(quick, np.ones(8 * CHUNK, np.float32), long=True) == 2).all()


def test_signal_handlers_may_call(add8):
    code, d, got = parallel(**SLOW), adder(add8, TensorLeaf(F8), TensorLeaf(F8))[0], []
    x = tensor(np.ones(8, np.float32))
    before = signal.signal(signal.SIGALRM, lambda *_: got.append(values(d.call(x, x)).tolist()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        out = run_add(code, np.ones(30 * CHUNK, np.float32), long=True)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert got == [[2.0] * 8] and (out == 2).all()


def test_other_threads_run_during_a_long_call():
    code, ticks, done = parallel(**SLOW), [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    t = threading.Thread(target=count)
    t.start()
    run_add(code, np.ones(30 * CHUNK, np.float32), long=True)
    done.set()
    t.join()
    assert len(ticks) > 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork(threads):
    threads(3)
    code = parallel(1)
    x = np.arange(100 * CHUNK, dtype=np.float32)
    assert (run_add(code, x) == 2 * x).all() and pool.the_pool().state.n_workers == 2
    for _ in range(3):
        child = os.fork()
        if child == 0:
            good = False
            with contextlib.suppress(BaseException):
                good = all((run_add(code, x) == 2 * x).all() for _ in range(20)) and pool.the_pool().state.n_workers == 2
            os._exit(0 if good else 1)
        assert (run_add(code, x) == 2 * x).all() and pool.the_pool().state.n_workers == 2
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_while_other_threads_call():
    done = python(
        """
        pool.set_num_threads(3)
        code, x, stop = parallel(1), np.ones(50 * CHUNK, np.float32), threading.Event()
        def work():
            while not stop.is_set():
                assert (run_add(code, x, long=True) == 2).all()
        workers = [threading.Thread(target=work) for _ in range(3)]
        for w in workers: w.start()
        for i in range(10):
            child = os.fork()
            if child == 0:
                ok = all((run_add(code, x, long=True) == 2).all() for _ in range(10))
                os._exit(0 if ok else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        for w in workers: w.join()
        print("done")
        """
    )
    assert done.stdout == "done\n" and done.returncode == 0, done


@pytest.mark.parametrize("daemon", ["True", "False"])
def test_exit_with_work_in_flight(daemon):
    done = python(
        f"""
        pool.set_num_threads(3)
        code = parallel(1, 1000)
        x = np.ones(400 * CHUNK, np.float32)
        def work():
            for _ in range(2):
                run_add(code, x, long=True)
        for _ in range(3):
            threading.Thread(target=work, daemon={daemon}).start()
        time.sleep(0.1)
        assert pool.the_pool().state.n_workers == 2
        print("leaving")
        """
    )
    assert done.stdout == "leaving\n" and done.returncode == 0, done


def test_calls_after_the_pool_has_closed():
    done = python(
        """
        import atexit
        pool.set_num_threads(3)
        code, x = parallel(1), np.ones(50 * CHUNK, np.float32)
        atexit.register(lambda: print((run_add(code, x) == 2).all(), pool.the_pool().state.n_workers))
        pool.the_pool().close()
        """
    )
    assert done.stdout == "True 0\n" and done.returncode == 0, done


def test_storages_that_outlive_the_interpreter_do_no_harm():
    done = python(
        """
        import builtins
        builtins.kept = [tensor(np.ones(1000)), storage.view(storage.copy_of(np.ones(5))), memoryview(storage.copy_of(np.ones(5)))]
        builtins.code = parallel(1)
        """
    )
    assert done.returncode == 0, done


def test_processors_within_quota(tmp_path):
    everything = usable_processors(tmp_path)
    assert everything >= 1
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/box/inner\n")
    inner = tmp_path / "sys/fs/cgroup/box/inner"
    inner.mkdir(parents=True)
    (inner / "cpu.max").write_text("max 100000\n")
    assert usable_processors(tmp_path) == everything
    (inner.parent / "cpu.max").write_text("50000 100000\n")
    assert usable_processors(tmp_path) == 1
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/\n1:cpu,cpuacct:/job\n")
    job = tmp_path / "sys/fs/cgroup/cpu,cpuacct/job"
    job.mkdir(parents=True)
    (job / "cpu.cfs_quota_us").write_text("-1\n")
    (job / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_processors(tmp_path) == everything
    (job / "cpu.cfs_quota_us").write_text("90000\n")
    assert usable_processors(tmp_path) == 1


# --- without native calls -------------------------------------------------------------------------------------------------------------------


def test_python_serves_where_native_code_is_off():
    done = python(
        """
        assert "settings.native" in why_not_native() and storage.Storage is python_storage.Storage
        f = Calls()
        d = Dispatch(f, "f")
        assert d.call is f and not d.add(None)
        code, x = parallel(1), np.arange(50 * CHUNK, dtype=np.float32)
        assert (run_add(code, x) == 2 * x).all()
        dispatch.register_tensor_class(Tensor)
        assert dispatch.block_until_ready(f) is f
        with pytest.raises(OutOfMemory):
            storage.empty(aval(dtypes.float32, (1 << 60,)))
        print("good")
        """,
        HOLOGRAM_NATIVE="0",
    )
    assert done.stdout == "good\n" and done.returncode == 0, done


def test_an_unknown_layout_is_noticed(monkeypatch):
    assert layout.why_not_native() is None
    with pytest.raises(layout.UnknownLayout):
        layout.slot_offset(type("Slotless", (), {"x": property(lambda self: 1, lambda self, value: None)}), "x")


# --- targets --------------------------------------------------------------------------------------------------------------------------------


def test_code_for_other_machines():
    text = ADD_8.replace("8 x float", "4 x float")
    for triple in ("x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc", "aarch64-unknown-linux-gnu", "arm64-apple-macosx11.0"):
        assert b"graph" in target.compile_ir(text, target.Target(triple))
    assert "fadd" in target.assembly(text, target.Target("aarch64-unknown-linux-gnu"))
    with pytest.raises(CompileError):
        target.compile_ir(text, target.Target("z80-none-none"))


def test_the_runtime_compiles_for_other_machines():
    for triple in ("aarch64-unknown-linux-gnu", "arm64-apple-macosx11.0", "x86_64-pc-windows-msvc", "x86_64-apple-macosx11.0"):
        of = target.Target(triple)
        assert b"hg_dispatch_call" in target.compile_ir(module_ir(_exports(), of.architecture)[0], of, "quick")


def test_bad_code_is_a_compile_error():
    with pytest.raises(CompileError):
        target.compile_ir("define i64 @graph() { ret i64 }")
    with pytest.raises(CompileError):
        target.link(target.compile_ir("declare i64 @nowhere()\ndefine i64 @graph() { %r = call i64 @nowhere()\n ret i64 %r }"), {})


def test_settings_change_the_target():
    with override(target="x86-64-v3,-fma"):
        t = target.host()
        assert t.cpu == "x86-64-v3" and t.has("avx2") and not t.has("fma") and not t.has("avx512f") and t.vector_bytes == 32
    with override(target="z80"), pytest.raises(ValueError, match="settings.target"):
        target.host()
    assert type(F8) is Aval
