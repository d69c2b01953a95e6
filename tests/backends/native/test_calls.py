"""Native calls: which arguments fit, what is refused, what is given back; and Python in their place."""

from __future__ import annotations

import ctypes
import gc
import sys

import numpy as np
import pytest

from hologram import dtypes
from hologram.backends.llvm.toolchain import target
from hologram.backends.native import dispatch, storage, tracing
from hologram.backends.native.code import object_layout
from hologram.backends.native.dispatch import Argument, ArrayLeaf, Dispatch, Output, Same, ScalarLeaf, Spec, TensorLeaf
from hologram.errors import OutOfMemory
from hologram.ir.aval import aval
from hologram.settings import override
from hologram.trace.tensor import Tensor
from tests.support.runtime_programs import (
    ADD_8,
    ADD_PARALLEL,
    CHUNK,
    COPY_CELLS,
    F8,
    Calls,
    adder,
    linked,
    natively,
    python,
    resident,
    tensor,
    values,
)

pytestmark = natively

# --- native calls ----------------------------------------------------------------------------------------------------


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
        (float, "float8_e4m3fn", [0.1, -0.0, 464.0, 1e-3, float("nan")], [1]),
        (float, "float8_e5m2", [0.1, 61439.0, 61440.0, 1e-5, float("-inf")], [1]),
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
    for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.float8_e5m2):
        d = Dispatch(Calls(), "f")
        d.add(Spec((ScalarLeaf(float, dtype),), 0, [Output(aval(dtypes.int64, ()))], code.address("graph"), code))
        with np.errstate(all="ignore"):
            want = bits.astype(dtype.np) if dtype is dtypes.float16 else _rounded_once(bits).astype(dtype.np)
        got = np.array([values(d.call(x)) for x in bits.tolist()]).astype(f"u{dtype.itemsize}").view(dtype.np)
        same = (got == want) | ((got != got) & (want != want))
        assert same.all(), (bits[~same], got[~same], want[~same])


def _rounded_once(x: np.ndarray) -> np.ndarray:
    """Float32 rounded to odd, of which NumPy makes a narrow float that is rounded once."""
    near = x.astype(np.float32)
    toward = np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    return np.where(toward.astype(np.float64) != x, toward.view(np.uint32) | 1, toward.view(np.uint32)).view(np.float32)


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


# --- without native calls --------------------------------------------------------------------------------------------


def test_python_serves_where_native_code_is_off():
    done = python(
        """
        assert "settings.native" in why_not_native() and storage.Storage is python_storage.Storage
        f = Calls()
        d = Dispatch(f, "f")
        assert d.call is f and not d.add(None)
        code, x = parallel(1), np.arange(50 * CHUNK, dtype=np.float32)
        assert (run_add(code, x) == 2 * x).all()
        classes.register_tensor_class(Tensor)
        assert dispatch.block_until_ready(f) is f
        with pytest.raises(OutOfMemory):
            storage.empty(aval(dtypes.float32, (1 << 60,)))
        print("good")
        """,
        HOLOGRAM_NATIVE="0",
    )
    assert done.stdout == "good\n" and done.returncode == 0, done


def test_an_unknown_layout_is_noticed(monkeypatch):
    assert object_layout.why_not_native() is None
    with pytest.raises(object_layout.UnknownLayout):
        object_layout.slot_offset(type("Slotless", (), {"x": property(lambda self: 1, lambda self, value: None)}), "x")
