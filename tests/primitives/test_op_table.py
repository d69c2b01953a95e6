"""The op table against itself: rows are complete, type rules and references agree, decompositions mean what their rows mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hologram import dtypes
from hologram.errors import DTypeError, ShapeError
from hologram.ir.expression_builder import Rare, decompose
from hologram.ir.interpreter import evaluate
from hologram.ir.leaves import input_
from hologram.ir.node import Builder, Node
from hologram.ir.op import KINDS, register
from hologram.ir.symbolic import var
from hologram.primitives import TABLE, Op
from tests.support.optable import assert_agree, cases_of, mismatch, one_op_graph, seeded

ROWS = list(TABLE.values())
named = pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)


@named
def test_rows_are_complete(row: Op) -> None:
    assert TABLE[row.name] is row
    assert row.kind in KINDS
    assert set(row.kinds) <= set("biufc")
    assert row.algebra <= {"commutative", "associative", "idempotent", "involution"}
    assert row.monoid is None or row.monoid.kind == "elementwise"
    assert row.spelling is None or all(k in row.kinds or row.kinds == "b" for k in row.spelling)


def test_a_row_is_registered_once() -> None:
    with pytest.raises(ValueError, match="two definitions"):
        register(TABLE["add"])


IMPORTED = """
from hologram.ir.op import TABLE, Op, register, transforms
register(Op("interrupted", "elementwise", 1, None, None, spelling={"f": {}}))
transforms(TABLE["interrupted"], jvp=lambda *_: None)
"""


def test_an_import_that_was_interrupted_is_begun_again() -> None:
    """A module that is imported anew has a new namespace; in one and the same nothing is said twice."""
    namespace = {"__name__": "of_rows"}
    try:
        for names in ({"__name__": "of_rows"}, namespace):
            exec(IMPORTED, names)
        for names in (namespace, {"__name__": "another"}):
            with pytest.raises(ValueError, match="two definitions"):
                exec(IMPORTED, names)
            with pytest.raises(ValueError, match="jvp is not a rule"):
                exec(IMPORTED.replace("register(", "str("), names)
    finally:
        del TABLE["interrupted"]


@named
def test_type_rule_and_reference_agree(row: Op, everything: bool) -> None:
    """The interpreter compares shape and type of every value with the type rule's; a warning of NumPy's is an error in tests."""
    for case in cases_of(row, everything):
        evaluate(one_op_graph(*case), case[2])


# --- decompositions --------------------------------------------------------------------------------------------------


def interpret(body: list[Any], values: dict[Any, np.ndarray]) -> None:
    """Runs straight-line kernel code through the references of its ops."""
    for ins in body:
        if isinstance(ins, Rare):
            interpret(ins.body, values)
            condition, fast = (values[a] for a in ins.args)
            values[ins] = np.where(condition, values[ins.slow], fast)
        elif ins.op == "const":
            values[ins] = np.frombuffer(ins.attrs[1], dtypes.of(ins.attrs[0]).np).reshape(())
        else:
            values[ins] = ins.op.reference(*(values[a] for a in ins.args), *ins.attrs)


def run_decomposition(row: Op, attrs: tuple[Any, ...], arrays: list[np.ndarray], to: np.dtype) -> np.ndarray:
    """The decomposition on arrays, narrow floats in float32 as in every kernel."""
    widened = [a.astype(dtypes.compute_type(dtypes.of(a.dtype)).np) for a in arrays]
    params, body, out = decompose(row, tuple(dtypes.of(a.dtype) for a in widened), attrs)
    values = dict(zip(params, widened, strict=True))
    interpret(body, values)
    with np.errstate(all="ignore"):
        return np.broadcast_to(values[out], arrays[0].shape).astype(to)


DECOMPOSED = [r for r in ROWS if r.lower is not None and r.exact]


@pytest.mark.parametrize("row", DECOMPOSED, ids=lambda r: r.name)
def test_decompositions_mean_their_row(row: Op, everything: bool) -> None:
    for case in cases_of(row, everything):
        _, attrs, arrays = case
        if arrays[0].size:
            want = evaluate(one_op_graph(*case), arrays)[0]
            assert_agree(case, run_decomposition(row, attrs, arrays, want.dtype), want)


def test_float_remainders_are_exact(everything: bool) -> None:
    """Near-integer quotients, where a truncated rounded quotient is one too many."""
    rng = seeded("remainders")
    n = 1_000_000 if everything else 50_000
    y = rng.integers(1, 2**24, n).astype(np.float32)
    x = (y * np.exp2(rng.integers(0, 28, n)) * rng.random(n)).astype(np.float32)
    multiples = (y.astype(np.float64) * rng.integers(1, 2**20, n)).astype(np.float32)
    for a in (x, -x, multiples, np.nextafter(multiples, np.float32(0))):
        for name in ("fmod", "rem", "floordiv"):
            row = TABLE[name]
            assert_agree((row, (), [a, y]), run_decomposition(row, (), [a, y], np.dtype("float32")), row.reference(a, y))


# --- the written table of scalar semantics ---------------------------------------------------------------------------

INT_MIN = np.iinfo(np.int32).min
nan, inf = np.nan, np.inf


def scalar(name: str, dtype: str, *values: Any, attrs: tuple[Any, ...] = ()) -> Any:
    arrays = [np.array(v).astype(dtypes.of(dtype).np) for v in values]
    return evaluate(one_op_graph(TABLE[name], attrs, arrays), arrays)[0]


@pytest.mark.parametrize(
    ("name", "dtype", "operands", "result"),
    [
        ("floordiv", "int32", (7, 0), 0),
        ("floordiv", "int32", (INT_MIN, -1), INT_MIN),
        ("floordiv", "int32", (-7, 2), -4),
        ("floordiv", "float32", (1, 0), inf),
        ("floordiv", "float32", (0, 0), nan),
        ("floordiv", "float32", (inf, 1), nan),
        ("floordiv", "float32", (-1, inf), -1),
        ("floordiv", "float64", (1, 0.1), 9),
        ("rem", "int32", (7, 0), 0),
        ("rem", "int32", (INT_MIN, -1), 0),
        ("rem", "int32", (-7, 2), 1),
        ("rem", "int32", (7, -2), -1),
        ("rem", "float32", (-1, inf), inf),
        ("rem", "float32", (4, -2), -0.0),
        ("fmod", "int32", (-7, 2), -1),
        ("fmod", "float32", (-7, 2), -1),
        ("fmod", "int32", (INT_MIN, -1), 0),
        ("shl", "int32", (1, 31), INT_MIN),
        ("shl", "int32", (1, 32), 0),
        ("shl", "int32", (1, -1), 0),
        ("shr", "int32", (-8, 1), -4),
        ("shr", "int32", (-8, 40), -1),
        ("shr", "int32", (8, -1), 0),
        ("shr", "uint8", (255, 8), 0),
        ("sign", "float32", (-0.0,), 0.0),
        ("sign", "float32", (nan,), nan),
        ("max", "float32", (0.0, -0.0), 0.0),
        ("max", "float32", (-0.0, 0.0), 0.0),
        ("min", "float32", (0.0, -0.0), -0.0),
        ("max", "float32", (1, nan), nan),
        ("add", "int8", (127, 1), -128),
        ("neg", "int8", (-128,), -128),
        ("abs", "int8", (-128,), -128),
        ("ipow", "int32", (3, 40), np.uint64(3**40).astype(np.int32)),
        ("ipow", "int32", (2, -1), 0),
        ("ipow", "int32", (-1, -3), -1),
        ("ipow", "int32", (0, -1), 0),
        ("ipow", "int32", (0, 0), 1),
        ("nextafter", "float32", (0, -1), -np.float32(2.0**-149)),
        ("heaviside", "float32", (0, 0.5), 0.5),
        ("round", "float32", (2.5,), 2.0),
        ("div_trunc", "int64", (-(2**63) + 1, 3), -((2**63 - 1) // 3)),
    ],
)
def test_scalar_semantics(name: str, dtype: str, operands: tuple[Any, ...], result: Any) -> None:
    got = scalar(name, dtype, *operands)
    want = np.array(result).astype(got.dtype)
    assert got.tobytes() == want.tobytes() or (got != got and want != want)


@pytest.mark.parametrize(
    ("value", "to", "result"),
    [
        (nan, "int32", 0),
        (inf, "int32", 2**31 - 1),
        (-inf, "int64", -(2**63)),
        (1e30, "uint64", 2**64 - 1),
        (-5.7, "uint8", 0),
        (-5.7, "int8", -5),
        (nan, "bool", True),
        (-0.0, "bool", False),
    ],
)
def test_float_casts_saturate(value: float, to: str, result: Any) -> None:
    assert scalar("cast", "float32", value, attrs=(to,)) == np.array(result, to)


def test_casts_to_16_bits_round_once() -> None:
    rng = seeded("casts")
    halves = rng.integers(0, 0x7BFF, 20_000).astype(np.uint16)
    ties = (halves.view(np.float16).astype(np.float64) + (halves + 1).view(np.float16)) / 2
    x = np.concatenate([ties, -ties, rng.normal(size=20_000)])
    for a in (x, x * (1 + 2.0**-40), x * (1 - 2.0**-40)):
        with np.errstate(over="ignore", invalid="ignore"):
            assert not mismatch(TABLE["cast"].reference(a, "float16"), a.astype(np.float16), 0).any()
    cases = [
        (2**62 + 2**54, 2.0**62),
        (2**62 + 2**54 + 1, 2.0**62 + 2.0**55),
        (2**62 + 3 * 2**54 - 1, 2.0**62 + 2.0**55),
        (-(2**62) - 2**54 - 1, -(2.0**62) - 2.0**55),
    ]
    for n, nearest in cases:
        assert float(scalar("cast", "int64", n, attrs=("bfloat16",))) == nearest
    tie = 1 + 2.0**-8
    assert float(scalar("cast", "float64", tie, attrs=("bfloat16",))) == 1
    assert float(scalar("cast", "float64", np.nextafter(tie, 2), attrs=("bfloat16",))) == 1 + 2.0**-7
    assert float(scalar("cast", "float64", 1e300, attrs=("bfloat16",))) == inf


def test_integer_casts_wrap() -> None:
    assert scalar("cast", "int64", 300, attrs=("int8",)) == 44
    assert scalar("cast", "int8", -1, attrs=("uint16",)) == 65535


# --- type rules ------------------------------------------------------------------------------------------------------


def node(shape: tuple[Any, ...], dtype: str = "float32", build: Builder | None = None) -> Node:
    return (build or Builder())(input_, (), (0, shape, dtype, None))


N = var("N")


@pytest.mark.parametrize(
    ("name", "attrs", "shape", "result"),
    [
        ("reshape", ((N * 3,),), (N, 3), (N * 3,)),
        ("reshape", ((3, N),), (N * 3,), (3, N)),
        ("transpose", ((1, 0),), (N, 3), (3, N)),
        ("broadcast", ((2, N, 5), (1, 2)), (N, 1), (2, N, 5)),
        ("slice", ((0,), (N,), (1,)), (N,), (N,)),
        ("slice", ((N - 1,), (-1,), (-1,)), (N,), (N,)),
        ("slice", ((1,), (N,), (1,)), (N,), (N - 1,)),
        ("slice", ((0,), (N * 2,), (2,)), (N * 2,), (N,)),
        ("slice", ((N * 2 - 1,), (-1,), (-2,)), (N * 2,), (N,)),
        ("concatenate", (0,), (N, 3), (N, 3)),
        ("reduce_sum", ((0,),), (N, 3), (3,)),
        ("argmax", (1,), (N, 3), (N,)),
        ("cumsum", (0, True), (N, 3), (N, 3)),
    ],
)
def test_type_rules_take_symbols(name: str, attrs: tuple[Any, ...], shape: tuple[Any, ...], result: tuple[Any, ...]) -> None:
    assert TABLE[name].infer((node(shape),), attrs)[0] == result


def test_pad_and_gather_with_symbols() -> None:
    x = node((N, 3))
    assert TABLE["pad"].infer((x, node(())), ((1, 0), (2, 0)))[0] == (N + 3, 3)
    at = node((N, 2), "int64")
    assert TABLE["gather"].infer((x, at), ((1,), (1,), 0))[0] == (N, 2, N, 1)
    assert TABLE["gather"].infer((x, at, at), ((0, 1), (N - 1, 2), 0))[0] == (N, 2, N - 1, 2)
    assert TABLE["gather"].infer((x, at), ((1,), (2,), 1))[0] == (N, 2, 2)


@pytest.mark.parametrize(
    ("name", "attrs", "shapes", "message"),
    [
        ("add", (), [(3,), (4,)], r"add: shapes \[3\] and \[4\] differ"),
        ("reshape", ((5,),), [(2, 3)], r"reshape: \[2, 3\] has 6 elements, \[5\] has 5"),
        ("reshape", ((N + 1,),), [(N,)], r"reshape: \[N\] has N elements"),
        ("transpose", ((0, 0),), [(2, 3)], r"\[0, 0\] does not permute the axes of shape \[2, 3\]"),
        ("broadcast", ((4,), (0,)), [(3,)], r"\[3\] does not stretch to \[4\]"),
        ("broadcast", ((2, 3), (1, 0)), [(3, 2)], r"do not ascend"),
        ("slice", ((0,), (4,), (1,)), [(3,)], r"0:4:1 leaves the axis of extent 3"),
        ("slice", ((3,), (-1,), (-1,)), [(3,)], r"3:-1:-1 leaves the axis"),
        ("slice", ((0,), (3,), (0,)), [(3,)], r"step 0"),
        ("slice", ((0,), (N + 1,), (1,)), [(N,)], r"leaves the axis"),
        ("pad", ((-1,), (0,)), [(3,), ()], r"negative widths"),
        ("concatenate", (0,), [(2, 3), (2, 4)], r"\[2, 3\] and \[2, 4\] differ beside axis 0"),
        ("concatenate", (2,), [(2, 3)], r"axis 2 of shape \[2, 3\]"),
        ("reduce_max", ((0,),), [(0, 3)], r"hold no element"),
        ("argmin", (0,), [(0,)], r"hold no element"),
        ("reduce_sum", ((1, 0),), [(2, 3)], r"do not ascend"),
        ("cumsum", (1, False), [(3,)], r"axis 1 of shape \[3\]"),
        ("gather", ((0,), (4,), 0), [(3,), ()], r"axis 0 of shape \[3\] holds no window of 4"),
        ("gather", ((0,), (1, 1), 0), [(3,), ()], r"1 arrays of starts and 2 sizes for the axes \[0\]"),
        ("gather", ((0, 1), (1, 1), 0), [(3, 3), (2,), (1,)], r"starts of shapes \[2\] and \[1\] differ"),
        ("gather", ((1, 0), (1, 1), 0), [(3, 3), (), ()], r"axes \[1, 0\] after 0 shared axes"),
        ("gather", ((1,), (1,), 1), [(3, 3), (2,)], r"do not share 1 axes"),
        ("scatter_set", ((0,), 0), [(3, 4), (2, 1, 3), (2,)], r"updates have shape \[2, 1, 3\], not \[2, 1, 4\]"),
        ("scatter_set", ((0,), 0), [(3, 4), (2, 4), (2,)], r"updates of shape \[2, 4\] for starts of shape \[2\]"),
    ],
)
def test_shape_errors_name_the_shapes(name: str, attrs: tuple[Any, ...], shapes: list[Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        count = {"gather": 1, "scatter": 2}.get(TABLE[name].kind, len(shapes))
        TABLE[name].infer(tuple(node(s, "float32" if i < count else "int64") for i, s in enumerate(shapes)), attrs)


def test_type_errors_name_the_types() -> None:
    with pytest.raises(DTypeError, match="add: element types float32 and int32 differ"):
        TABLE["add"].infer((node(()), node((), "int32")), ())
    with pytest.raises(DTypeError, match="div does not take int32"):
        TABLE["div"].infer((node((), "int32"),) * 2, ())
    with pytest.raises(DTypeError, match="gather: starts are integers, not float32"):
        TABLE["gather"].infer((node((3,)), node((2,))), ((0,), (1,), 0))
    with pytest.raises(DTypeError, match="scatter: updates are int32, the array is float32"):
        TABLE["scatter_set"].infer((node((3,)), node((2, 1), "int32"), node((2,), "int64")), ((0,), 0))


def test_cases_are_seeded() -> None:
    first, second = ([[a.tobytes() for a in c[2]] for c in cases_of(TABLE["add"], False)] for _ in range(2))
    assert first == second
    assert seeded("a").random() == seeded("a").random()
