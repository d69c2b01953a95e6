"""The lazy Tensor: promotion, operators, reading, memory, ownership."""

from __future__ import annotations

import array
import copy
import gc
import itertools
import operator
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.dlpack import VERSIONED
from hologram.trace import lazy
from hologram.trace.recorder import Pending
from tests.support.runner.threads import in_threads

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITWISE = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
FLOATS = np.array([-2.5, -1.0, 0.5, 3.0, 7.25], np.float32)
OTHERS = np.array([1.5, -2.0, 2.0, 0.25, -3.0], np.float32)
INTEGERS = np.array([-7, -1, 0, 3, 9], np.int32)
COUNTS = np.array([1, 2, 3, 2, 1], np.int32)


def same(got: Any, want: Any) -> None:
    want = np.asarray(want)
    assert type(got) is hg.Tensor
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got).astype(np.float64), want.astype(np.float64), rtol=1e-6)


# --- operators -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS, ids=lambda f: f.__name__)
def test_binary_operators(op: Any) -> None:
    a, b = hg.tensor(FLOATS), hg.tensor(OTHERS)
    same(op(a, b), op(FLOATS, OTHERS))
    same(op(a, 2.0), op(FLOATS, np.float32(2)))
    same(op(2.0, a), op(np.float32(2), FLOATS))
    same(op(a, 2), op(FLOATS, np.float32(2)))
    same(op(FLOATS, b), op(FLOATS, OTHERS))
    same(op(a, OTHERS), op(FLOATS, OTHERS))
    for _ in range(2):  # the second time through the lean path
        same(op(a, b), op(FLOATS, OTHERS))
        same(op(a, 2.0), op(FLOATS, np.float32(2)))


LISTS: list[Any] = [[1, 2, 3], (3, 2, 1), [0.1, 2.5, -3.0], ([1], [2.0]), [True, False, True], range(1, 4)]


@pytest.mark.crossed(2)
@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS, operator.pow, operator.matmul, divmod], ids=lambda f: f.__name__)
@pytest.mark.parametrize("d", [np.uint8, np.int64, np.float16, np.float32, np.float64], ids=lambda d: d.__name__)
def test_lists_are_operands(op: Any, d: Any) -> None:
    x = np.array([1, 2, 4], d)
    for values in LISTS:
        known = np.asarray(values)
        if known.dtype == np.float64 and d is not np.float64:
            known = known.astype(np.float32)  # the type of lists of floats
        if (op is operator.matmul and known.ndim > 1) or (op is operator.pow and known.dtype == bool):
            continue
        for left, right, a, b in ((hg.tensor(x), values, x, known), (values, hg.tensor(x), known, x)):
            with np.errstate(all="ignore"):
                got, want = op(left, right), op(a, b)
            for g, w in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, want)], strict=True):
                assert type(g) is hg.Tensor and g.shape == np.shape(w)
                np.testing.assert_allclose(np.asarray(g).astype(np.float64), np.asarray(w, np.float64), rtol=1e-15 if d is np.float64 else 2e-3)


def test_types_beside_lists() -> None:
    for d, values in itertools.product((np.uint8, np.int64, np.float16, np.float64, np.complex64), LISTS):
        assert (hg.tensor(np.ones(3, d)) * values).dtype == (hg.tensor(np.ones(3, d)) * hg.tensor(values)).dtype
    assert np.array_equal(hg.jit(lambda x: x + [0.1, x[0]])(np.ones(2)), [1.1, 2.0])
    with pytest.raises(hg.errors.ShapeError):
        operator.eq(hg.tensor([1, 2]), [1, 2, 3])
    with pytest.raises(hg.errors.ArgumentError):
        operator.eq(hg.tensor([1, 2]), [[1], [2, 3]])


@pytest.mark.parametrize("op", COMPARISONS, ids=lambda f: f.__name__)
def test_comparison_with_what_is_no_operand_is_never_silently_one_of_objects(op: Any) -> None:
    class Other:
        def __array__(self, *_: Any, **__: Any) -> np.ndarray:
            return np.ones(2)

    class Knowing(Other):
        def __eq__(self, other: object) -> Any:
            return "mine"

        __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__

    x = hg.tensor([1.0, 2.0])
    for other in (Other(), memoryview(b"ab"), array.array("d", [1.0, 2.0])):
        for a, b in ((x, other), (other, x)):
            if type(a) is memoryview and op in (operator.eq, operator.ne):
                continue  # which compares buffers, and so answers by the values
            with pytest.raises(TypeError):
                op(a, b)
    assert memoryview(np.float32([1.0, 2.0])) == x and not memoryview(np.float32([1.0, 3.0])) == x  # noqa: SIM201
    assert op(x, Knowing()) == op(Knowing(), x) == "mine"
    assert not x == None and x != "a"  # noqa: E711, SIM201


@pytest.mark.parametrize("op", BITWISE, ids=lambda f: f.__name__)
def test_bitwise_operators(op: Any) -> None:
    a, b = hg.tensor(INTEGERS), hg.tensor(COUNTS)
    same(op(a, b), op(INTEGERS, COUNTS))
    same(op(a, 2), op(INTEGERS, np.int32(2)))
    same(op(5, b), op(np.int32(5), COUNTS))


def test_unary_operators() -> None:
    a, i = hg.tensor(FLOATS), hg.tensor(INTEGERS)
    same(-a, -FLOATS)
    same(+a, FLOATS)
    same(abs(a), abs(FLOATS))
    same(~i, ~INTEGERS)
    same(~hg.tensor([True, False]), [False, True])
    same(divmod(a, 2.0)[0], FLOATS // 2)
    same(divmod(7.0, a)[1], np.float32(7) % FLOATS)


def test_bool_arithmetic_is_that_of_numpy() -> None:
    x, y = np.array([True, True, False]), np.array([True, False, False])
    a, b = hg.tensor(x), hg.tensor(y)
    same(a + b, x + y)
    same(a * b, x * y)
    same(a & True, x)
    same(a + 1, x.astype(np.int64) + 1)


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 3, 7, 2.0, 0.5, 40])
def test_powers(n: Any) -> None:
    x = np.array([0.5, 1.5, 2.0, 3.0], np.float32)
    np.testing.assert_allclose(np.asarray(hg.tensor(x) ** n), x**n, rtol=1e-6)


def test_integer_powers() -> None:
    i = hg.tensor(INTEGERS)
    same(i**3, INTEGERS**3)
    same(2 ** hg.tensor(COUNTS), np.int32(2) ** COUNTS)
    same(i ** hg.tensor(COUNTS), INTEGERS**COUNTS)


def test_comparisons_with_integers_beyond_the_type() -> None:
    u = np.array([0, 255], np.uint8)
    t = hg.tensor(u)
    for value in (-1, 300):
        for op in COMPARISONS:
            same(op(t, value), op(u, value))
            same(op(value, t), op(value, u))


def test_chained_results_of_the_lean_path() -> None:
    x, y = hg.tensor(FLOATS), hg.tensor(OTHERS)
    got, want = x, FLOATS
    for _ in range(5):
        got = (got * got + 0.5) * 0.25 - y * got + abs(y)
        want = (want * want + np.float32(0.5)) * np.float32(0.25) - OTHERS * want + abs(OTHERS)
    same(got, want)


def test_signed_zero_and_nan_constants() -> None:
    x = hg.tensor(np.array([0.0], np.float32))
    for zero in (0.0, -0.0, 0.0, -0.0):
        assert np.signbit(np.asarray(x * 0 - 0.0 + zero)[0]) == np.signbit(np.float32(0.0) * 0 - np.float32(0) + np.float32(zero))
        assert np.signbit(np.asarray(hnp.copysign(x + 1, zero))[0]) == np.signbit(zero)
    assert np.isnan(np.asarray(x + float("nan"))).all()
    same(x + True, np.ones(1, np.float32))
    same(x + 1, np.ones(1, np.float32))


# --- promotion -------------------------------------------------------------------------------------------------------


def test_python_scalars_are_weak() -> None:
    for name in ("float16", "bfloat16", "float32", "float64"):
        t = hnp.ones(3, dtype=name)
        assert (t + 1).dtype == (t + 1.5).dtype == (True + t).dtype == t.dtype
    i8 = hnp.ones(3, dtype="int8")
    assert (i8 + 1).dtype == np.int8
    assert (i8 + 1.5).dtype == np.float32
    assert (i8 * True).dtype == np.int8
    assert (hg.tensor([True]) + 1).dtype == np.int64


def test_numpy_scalars_are_strong() -> None:
    t = hg.tensor(FLOATS)
    assert (t * np.float64(2)).dtype == np.float64
    assert (np.float64(2) * t).dtype == np.float64
    assert (t * np.float32(2)).dtype == np.float32
    assert (t + np.int64(2)).dtype == np.float32


def test_promotion_table() -> None:
    for a in dtypes.ALL:
        for b in dtypes.ALL:
            eight = [d for d in (a, b) if d.is_float and d.bits == 8]
            if a.is_complex or b.is_complex or (eight and a.is_float and b.is_float and a is not b):  # the last: tests/test_float8.py
                continue
            got = (hnp.ones(2, dtype=a) * hnp.ones(2, dtype=b)).dtype
            assert got == dtypes.promote(a, b).np
            assert hnp.result_type(a.np, b.np) == got


def test_float_functions_of_integers() -> None:
    same(hg.tensor(INTEGERS) / 2, (INTEGERS / 2).astype(np.float32))
    same(hnp.sqrt(hg.tensor(COUNTS)), np.sqrt(COUNTS.astype(np.float32)))


# --- reading ---------------------------------------------------------------------------------------------------------


def test_attributes() -> None:
    t = hg.tensor(np.arange(6, dtype=np.int16).reshape(2, 3))
    assert (t.shape, t.ndim, t.size, t.dtype, t.itemsize, t.nbytes, len(t)) == ((2, 3), 2, 6, np.int16, 2, 12, 2)
    lazily = t + t
    assert (lazily.shape, lazily.dtype, lazily.size) == ((2, 3), np.int16, 6)
    assert t.device == "cpu" and t.to_device("cpu") is t
    assert t.__array_namespace__() is hnp
    assert t.T.shape == (3, 2) and t.mT.shape == (3, 2)


def test_reading_scalars() -> None:
    t = hg.tensor(2.75)
    assert float(t) == 2.75 and int(t) == 2 and bool(t) and t.item() == 2.75
    assert f"{t + 1:.1f}" == "3.8" and round(t) == 3
    assert [10, 20, 30][hg.tensor(1)] == 20
    assert complex(t) == 2.75
    assert hg.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert [float(x) for x in hg.tensor([1.0, 2.0])] == [1.0, 2.0]
    assert 2.0 in hg.tensor([1.0, 2.0]) and 5.0 not in hg.tensor([1.0, 2.0])


def test_repr_realises() -> None:
    assert repr(hg.tensor([1.0, 2.0]) + 1) == "Tensor([2., 3.], dtype=float32)"
    assert "..." in repr(hnp.zeros(1000))


NUMBERS: list[Any] = [
    np.float32(0.1), np.float64(1e300), np.float16(0.1), ml_dtypes.bfloat16(0.1), np.int8(-3), np.uint64(2**64 - 1), np.bool_(True),
    np.complex64(1 - 2j), np.float32("nan"), np.float64("-inf"),
]  # fmt: skip


@pytest.mark.parametrize("value", NUMBERS, ids=lambda v: f"{v.dtype} {v}")
def test_numbers_print_as_numpys(value: Any) -> None:
    t = hg.tensor(value)
    assert str(t) == f"{t}" == str(value)
    specs = [".2f", "+.3e", ">12"] if value.dtype.kind != "b" else [">6"]
    specs = ["d", "x", ">9"] if value.dtype.kind in "iu" else specs
    for spec in specs:
        assert format(t, spec) == format(value.item(), spec)
    assert repr(t).startswith("Tensor(") and str(hg.tensor([1.0])) == "Tensor([1.], dtype=float32)"


def test_printing_while_tracing() -> None:
    said: list[str] = []
    hg.jit(lambda x: said.append(f"{x} {x!s}") or x)(1.0)
    assert said == ["Tensor(traced, shape=(), dtype=float64) Tensor(traced, shape=(), dtype=float64)"]
    with pytest.raises(hg.errors.TracedValueError, match=r"format\(\)"):
        hg.jit(lambda x: f"{x:.3f}")(1.0)
    with pytest.raises(hg.errors.ShapeError):
        f"{hg.tensor([1.0, 2.0]):.3f}"


@pytest.mark.parametrize("make", [lambda: hg.tensor(1.0), lambda: hnp.sum(hg.tensor([1.0, 2.0])), lambda: hg.tensor([3])[0]])
def test_numbers_cannot_be_gone_through(make: Any) -> None:
    for ask in (iter, len, list, lambda t: [*t], lambda t: dict.fromkeys(t)):
        with pytest.raises(TypeError):
            ask(make())
    with pytest.raises(TypeError):
        hg.jit(iter)(1.0)


def test_pickle_and_copy() -> None:
    t = hg.tensor(FLOATS) * 2
    same(pickle.loads(pickle.dumps(t)), FLOATS * 2)
    for other in (copy.copy(t), copy.deepcopy(t)):
        assert other is not t
        same(other, FLOATS * 2)


def test_what_is_in_a_tensor() -> None:
    x = hnp.arange(3)
    assert 2 in x and 3 not in x and [0, 5, 5] in x
    assert None not in x and "a" not in x


def test_tensors_are_unhashable() -> None:
    with pytest.raises(TypeError):
        hash(hg.tensor(1.0))


# --- conversion and ownership ----------------------------------------------------------------------------------------


def test_tensor_of_python_data() -> None:
    assert hg.tensor([1.5, 2]).dtype == np.float32
    assert hg.tensor([1, 2]).dtype == np.int64
    assert hg.tensor([True]).dtype == np.bool_
    assert hg.tensor(1).dtype == np.int64 and hg.tensor(1.0).dtype == np.float32
    assert hg.tensor([np.float64(1), 2]).dtype == np.float64
    assert hg.tensor([]).shape == (0,)
    same(hg.tensor([1.9, -1.9], dtype="int8"), np.array([1, -1], np.int8))
    same(hg.tensor([[hg.tensor(1.0), 2.0], [3.0, 4.0]]), np.array([[1, 2], [3, 4]], np.float32))


@pytest.mark.parametrize("make", [hg.tensor, hg.asarray])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.float32)[::-1],
        np.arange(12, dtype=np.float32).reshape(3, 4).T,
        np.arange(6, dtype=">f4"),
        np.zeros((0, 3)),
        np.array(5, np.int8),
        np.frombuffer(b"\0" + np.arange(4, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32),
        np.broadcast_to(np.float32(1), (3, 2)),
        np.ones(3, ml_dtypes.bfloat16),
    ],
    ids=["negative stride", "transposed", "big-endian", "empty", "0-d", "misaligned", "zero stride", "bfloat16"],
)
def test_layouts(make: Any, array: np.ndarray) -> None:
    t = make(array)
    same(t, array.astype(array.dtype.newbyteorder("=")))
    same(t + 0 * t, array.astype(array.dtype.newbyteorder("=")))


def test_copies_of_a_tensor_are_other_objects() -> None:
    x = hg.tensor([1.0, 2.0])
    for other in (hg.tensor(x), hg.asarray(x, copy=True), hnp.asarray(x, copy=True)):
        other[0] = 5
    assert np.asarray(x).tolist() == [1, 2] and hg.asarray(x) is x


def test_tensor_copies() -> None:
    source = FLOATS.copy()
    t = hg.tensor(source)
    source[:] = 0
    same(t, FLOATS)


def test_asarray_borrows_until_recorded() -> None:
    source = FLOATS.copy()
    t = hg.asarray(source)
    assert np.shares_memory(np.asarray(t), source)
    y = t + 1
    source[:] = 0
    same(y, FLOATS + 1)


def test_numpy_operands_are_copied_when_recorded() -> None:
    source = FLOATS.copy()
    y = hg.tensor(OTHERS) + source
    source[:] = 0
    same(y, OTHERS + FLOATS)


def test_exports_are_read_only_views_that_keep_memory() -> None:
    t = hg.tensor(FLOATS) + 1
    view = np.asarray(t)
    assert not view.flags.writeable
    assert np.shares_memory(view, t.numpy())
    assert not VERSIONED or np.shares_memory(view, np.from_dlpack(t))
    del t
    gc.collect()
    np.testing.assert_array_equal(view, FLOATS + 1)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


class _Capsule:
    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_dlpack() -> None:
    source = FLOATS.copy()
    t = hg.from_dlpack(source)
    assert np.shares_memory(np.asarray(t), source)
    assert t.__dlpack_device__() == (1, 0)
    exported = hg.tensor(FLOATS)
    np.testing.assert_array_equal(np.from_dlpack(exported), FLOATS)
    for x in (exported, exported[:, ::2] if exported.ndim > 1 else exported[::2], exported.astype("bfloat16"), hg.tensor([])):
        for options in ({}, {"copy": None}, {"copy": False}, {"copy": True}, {"copy": False, "max_version": (1, 0)}):
            read = np.from_dlpack(_Capsule(x.__dlpack__(**options))) if x.dtype.kind == "f" else None  # NumPy knows no bfloat16
            if read is not None:
                np.testing.assert_array_equal(read, x)
                assert read.size == 0 or np.shares_memory(read, x.numpy()) == (options.get("copy", True) is False)


def test_numpy_reductions_of_tensors_are_lazy() -> None:
    same(np.sum(hg.tensor(FLOATS)), FLOATS.sum())
    same(np.max(hg.tensor(FLOATS), axis=0), FLOATS.max())


def test_array_protocol() -> None:
    t = hg.tensor(FLOATS)
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    assert np.array(t).flags.writeable
    with pytest.raises(ValueError):
        t.__array__(np.float64, copy=False)


# --- laziness --------------------------------------------------------------------------------------------------------


def test_structurally_equal_expressions_share_a_program() -> None:
    lazy.clear()
    for _ in range(3):
        x = hg.tensor(np.random.default_rng(0).random(7).astype(np.float32))
        np.asarray((x + x) * x)
    assert len(lazy._programs) == 1


def test_floats_are_arguments() -> None:
    lazy.clear()
    x = hg.tensor(FLOATS)
    for i in range(20):
        same(x * (0.75 + i), FLOATS * np.float32(0.75 + i))
    assert len(lazy._programs) == 1


def test_a_constant_that_is_read_stays_one() -> None:
    lazy.clear()
    assert float(hg.asarray(1.375)) == 1.375
    same(hg.tensor(FLOATS) * 1.375, FLOATS * np.float32(1.375))
    assert all("const" in map(str, structure.key) for structure, _ in lazy._programs._entries)


def test_eval_realises_together() -> None:
    x = hg.tensor(FLOATS)
    y = x * 2
    a, b = y + 1, y - 1
    lazy.clear()
    hg.eval({"a": a, "b": [b]})
    assert len(lazy._programs) == 1 and a._storage is not None and b._storage is not None
    assert hg.block_until_ready(a) is a


def test_what_is_computed_twice_is_kept() -> None:
    x = hg.tensor(FLOATS)
    y = hnp.sqrt(abs(x) + 1)
    np.asarray(y + 1)
    assert y._storage is None
    np.asarray(y + 2)
    assert y._node.op.name == "leaf"
    same(y, np.sqrt(abs(FLOATS) + 1))


def test_a_loop_that_reads_one_value_does_not_recompute_its_past() -> None:
    x = hg.tensor(FLOATS)
    lazy.clear()
    for _ in range(60):
        x = x * 0.5 + 1
        float(x.sum())
    assert len(lazy._programs) < 6


def test_endless_chain_without_reading() -> None:
    x = hg.tensor(FLOATS)
    lazy.clear()
    for _ in range(100_000):
        x = x * 0.5
    assert isinstance(x._node, Pending) and x._node.depth <= 1001
    assert len(lazy._programs) < 8
    np.testing.assert_array_equal(np.asarray(x), np.zeros(5, np.float32))


def test_long_pending_chain_is_let_go_without_recursion() -> None:
    x = hg.tensor(FLOATS)
    for _ in range(900):
        x = hnp.reshape(x + 1, (5,))
    del x
    gc.collect()


def test_threads_record_and_realise() -> None:
    x = hg.tensor(FLOATS)

    def work(k: int) -> None:
        for i in range(50):
            y = x * 2.0 + k
            np.testing.assert_allclose(np.asarray(y - i), FLOATS * 2 + k - i, rtol=1e-6)

    in_threads(work, 8)


def test_realised_value_is_reused_through_other_expressions() -> None:
    x = hg.tensor(FLOATS)
    y = x * 3
    z = y + 1
    np.asarray(y)
    assert z._node.inputs[0].op.name == "leaf"
    same(z, FLOATS * 3 + 1)
