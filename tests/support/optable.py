"""Cases for tests, generated from the op table: op x type x shape x special values.

:func:`cases` yields ``(row, attrs, arrays)``. All tests of the table, of decompositions and of backends iterate over the same ones.
Everything is seeded by what the case is, so a case has the same values whichever test asks, and whether or not others ran before it.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.graph import Graph
from hologram.ir.leaves import input_
from hologram.ir.node import Builder, const_attrs
from hologram.primitives import TABLE, Op
from hologram.primitives.complex.parts import join

Case = tuple[Op, tuple[Any, ...], list[np.ndarray]]
Shape = tuple[int, ...]

SHAPES: list[Shape] = [(), (0,), (1,), (15,), (16,), (17,), (3071,), (3072,), (3073,), (3, 5), (2, 0, 3), (4, 1, 7)]
PAGED_SHAPES: list[Shape] = [(2, 6200), (6200, 2), (2, 97, 33), (97, 2, 33)]  # several pages in row form and in column form
REAL = [d for d in dtypes.ALL if not d.is_complex]
EXPONENTS = [-3, -1, 0, 1, 2, 3, 5, 10, 31]


def seeded(*what: Any) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(what).encode()))


# --- values ----------------------------------------------------------------------------------------------------------


def special_values(d: DType) -> np.ndarray:
    """Where ops go wrong: zeros, ones, ends, NaN, infinities, subnormals, ties, shift counts around the width."""
    if d.kind == "b":
        return np.array([False, True])
    if d.is_integer:
        info = np.iinfo(d.np)
        wanted = [0, 1, 2, 3, 7, 100, -1, -2, -7, info.min, info.min + 1, info.max, info.max - 1, d.bits - 1, d.bits, d.bits + 1]
        return np.array(sorted({v for v in wanted if info.min <= v <= info.max}), d.np)
    if d.is_complex:
        parts = special_values(dtypes.real_of(d))
        return join(*np.meshgrid(parts, parts)).ravel()
    bits = np.dtype(f"uint{d.bits}")
    one = int(np.ones(1, d.np).view(bits)[0])
    greatest = d.format.greatest  # infinity, or the largest number where there is none
    least_normal = 1 << d.format.fraction_bits
    edges = np.array([0, 1, least_normal - 1, least_normal, one - 1, one, one + 1, greatest - 1, greatest], bits).view(d.np)
    with np.errstate(over="ignore"):
        plain = np.array([0.5, 1.5, 2.5, 1 / 3, 7, 2.0**31, 2.0**63]).astype(d.np)
    positive = np.concatenate([edges, plain])
    return np.concatenate([positive, -positive, np.array([np.nan]).astype(d.np)])


def ordinary_values(d: DType, n: int, rng: np.random.Generator, low: float | None = None, high: float | None = None) -> np.ndarray:
    """Random values of every magnitude, within ``low`` and ``high`` for floats."""
    if d.kind == "b":
        return rng.random(n) < 0.5
    if d.is_integer:
        info = np.iinfo(d.np)
        wide = rng.integers(info.min, info.max, n, d.np, endpoint=True)
        return np.where(rng.random(n) < 0.5, wide, wide % np.asarray(17, d.np)).astype(d.np)
    if low is not None and high is not None:
        return rng.uniform(low, high, n).astype(d.np)
    reach = 4 if d.is_float and d.format.largest < 2.0**17 else 20
    values = np.exp2(rng.uniform(-reach, reach, n)) * rng.choice([-1.0, 1.0], n)
    if low is not None:
        values = np.where(values < low, low + np.abs(values), values)
    if high is not None:
        values = np.where(values > high, high - np.abs(values), values)
    return values.astype(d.np)


def tame_values(d: DType, n: int, rng: np.random.Generator) -> np.ndarray:
    """For reductions: long sums and products stay finite and non-zero, and depend on the order."""
    if d.is_float:
        return (np.exp2(rng.uniform(-1, 1, n)) * rng.choice([-1.0, 1.0], n)).astype(d.np)
    return ordinary_values(d, n, rng)


def operands(row: Op, types: tuple[DType, ...], shape: Shape, rng: np.random.Generator) -> list[np.ndarray]:
    """Arrays that hold every combination of special values if there is room for them, some if not, ordinary ones elsewhere."""
    n = int(np.prod(shape, dtype=int))
    specials = [special_values(d) for d in types]
    grid = [g.ravel() for g in np.meshgrid(*specials, indexing="ij")]
    count = grid[0].size
    picks = rng.permutation(count)[: n // 2] if count > n // 2 else np.arange(count)
    if n == 1:
        picks = rng.integers(0, count, 1)
    arrays = []
    for d, g in zip(types, grid, strict=True):
        rest = ordinary_values(d, n - picks.size, rng, row.tests.get("low"), row.tests.get("high"))
        arrays.append(np.concatenate([g[picks], rest]))
    guarded = GUARDS[row.tests.get("guard")](arrays)
    order = rng.permutation(n)
    return [a[order].reshape(shape) for a in guarded]


def _keep_divisor(arrays: list[np.ndarray]) -> list[np.ndarray]:
    x, y = arrays
    if x.dtype.kind not in "iu":
        return arrays
    traps = (y == 0) | ((x == np.iinfo(x.dtype).min) & (y + 1 == 0))
    return [x, np.where(traps, 1, y).astype(y.dtype)]


def _keep_count(arrays: list[np.ndarray]) -> list[np.ndarray]:
    x, y = arrays
    return [x, y & (x.dtype.itemsize * 8 - 1)]


GUARDS: dict[str | None, Callable[[list[np.ndarray]], list[np.ndarray]]] = {
    None: lambda arrays: arrays,
    "divisor": _keep_divisor,
    "count": _keep_count,
    "positive": lambda arrays: [np.abs(a) for a in arrays],
}


# --- elementwise -----------------------------------------------------------------------------------------------------


class _Operand:
    """Stands in for a node where a type rule is asked."""

    def __init__(self, dtype: DType, shape: Shape = ()) -> None:
        self.dtype, self.shape = dtype, shape


def accepts(row: Op, inputs: list[Any], attrs: tuple[Any, ...]) -> bool:
    try:
        row.infer(tuple(inputs), attrs)
    except (DTypeError, ShapeError):
        return False
    return True


ATTRIBUTES: dict[str, list[Any]] = {"dtype": [d.name for d in REAL], "n": EXPONENTS, "order": [1, 2, 5]}


def signatures(row: Op) -> Iterator[tuple[tuple[DType, ...], tuple[Any, ...]]]:
    """Every ``(input types, attrs)`` that an elementwise row takes."""
    assert row.arity is not None
    for d in REAL:
        uniform = (d,) * row.arity
        chosen = (dtypes.bool_, *uniform[1:])
        for types in dict.fromkeys([uniform, chosen] if row.arity > 2 else [uniform]):
            for attrs in itertools.product(*(ATTRIBUTES[a] for a in row.attrs)):
                if accepts(row, [_Operand(t) for t in types], attrs):
                    yield types, attrs


def _elementwise(row: Op, all: bool) -> Iterator[Case]:
    for i, (types, attrs) in enumerate(signatures(row)):
        rng = seeded(row.name, types, attrs)
        some = SHAPES[6 + i % 3 : 7 + i % 3] if i % 2 == 0 else [SHAPES[rng.integers(len(SHAPES))]]
        for shape in SHAPES if all else some:
            yield row, attrs, operands(row, types, shape, seeded(row.name, types, attrs, shape))


# --- movement --------------------------------------------------------------------------------------------------------


def _slices(s: Shape) -> Iterator[tuple[Any, ...]]:
    n = len(s)
    yield (0,) * n, s, (1,) * n
    yield tuple(e - 1 for e in s), (-1,) * n, (-1,) * n
    yield tuple(min(1, e) for e in s), s, (2,) * n
    yield tuple(e - 1 for e in s), tuple(min(0, e - 1) for e in s), (-3,) * n
    yield tuple(e // 2 for e in s), tuple(e // 2 for e in s), (1,) * n


def _reshapes(s: Shape) -> Iterator[tuple[Any, ...]]:
    yield ((int(np.prod(s, dtype=int)),),)
    yield ((1, *s[::-1], 1),)


def _broadcasts(s: Shape) -> Iterator[tuple[Any, ...]]:
    yield (2, *s), tuple(range(1, len(s) + 1))
    yield (*(3 if n == 1 else n for n in s), 2), tuple(range(len(s)))


def _pads(s: Shape) -> Iterator[tuple[Any, ...]]:
    n = len(s)
    yield (0,) * n, (0,) * n
    yield (1,) * n, (2,) * n
    yield tuple(range(n)), (0,) * n


def _windows(s: Shape) -> Iterator[tuple[Any, ...]]:
    yield (), (), ()
    if s and s[-1] > 0:
        yield (min(3, s[-1]),), (2,), (1,)
    if len(s) > 1 and 0 not in s[-2:]:
        yield (min(2, (s[-2] + 1) // 2), min(3, s[-1])), (1, 3), (2, 1)


MOVEMENTS: dict[tuple[str, ...], Callable[[Shape], Iterator[tuple[Any, ...]]]] = {
    ("shape",): _reshapes,
    ("perm",): lambda s: iter([(tuple(range(len(s)))[::-1],), ((*range(1, len(s)), 0) if s else (),)]),
    ("shape", "dims"): _broadcasts,
    ("start", "stop", "step"): _slices,
    ("low", "high"): _pads,
    ("sizes", "steps", "dilations"): _windows,
    ("axis",): lambda s: ((i,) for i in range(len(s))),
}


def _movement(row: Op, all: bool) -> Iterator[Case]:
    for i, (d, shape) in enumerate(itertools.product(REAL, SHAPES)):
        rng = seeded(row.name, d, shape)
        if not all and (i + rng.integers(3)) % 6:
            continue
        for attrs in MOVEMENTS[row.attrs](shape):
            x = operands(row, (d,), shape, rng)[0]
            if row.arity is None:
                (axis,) = attrs
                yield row, attrs, [x, np.flip(x, axis), x.take(range(min(1, shape[axis])), axis)]
            else:
                yield row, attrs, [x, *(operands(row, (d,), (), rng)[0] for _ in range(row.arity - 1))]


# --- reductions, scans, gathers, leaves ------------------------------------------------------------------------------


def _ranged(row: Op, all: bool, attributes: Callable[[int], Iterator[tuple[Any, ...]]], every: int = 8) -> Iterator[Case]:
    """Reductions and scans, on tame values and on values of which a few are special."""
    for i, (d, shape) in enumerate(itertools.product(REAL, SHAPES + PAGED_SHAPES)):
        n = int(np.prod(shape, dtype=int))
        for attrs in attributes(len(shape)):
            rng = seeded(row.name, d, shape, attrs)
            if not accepts(row, [_Operand(d, shape)], attrs) or (not all and (i + rng.integers(every // 2)) % every):
                continue
            x = tame_values(d, n, rng)
            if all or rng.random() < 0.7:
                yield row, attrs, [x.reshape(shape)]
            if n and (all or rng.random() < 0.3):
                x = x.copy()
                x[rng.integers(0, n, 3)] = rng.choice(special_values(d), 3)
                yield row, attrs, [x.reshape(shape)]


def _axis_sets(ndim: int) -> Iterator[tuple[Any, ...]]:
    for k in range(1, ndim + 1):
        for axes in itertools.combinations(range(ndim), k):
            yield (axes,)


def _reduce(row: Op, all: bool) -> Iterator[Case]:
    one_axis = row.attrs == ("axis",)
    yield from _ranged(row, all, (lambda n: ((a,) for a in range(n))) if one_axis else _axis_sets)


def _scan(row: Op, all: bool) -> Iterator[Case]:
    yield from _ranged(row, all, lambda n: ((a, r) for a in range(n) for r in (False, True)), 24)


def _windows(shape: Shape, rng: np.random.Generator) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int, Shape]]:
    """Indexed axes, sizes of windows along them, shared axes and places."""
    for count in (1, 2, 3):
        for axes in itertools.combinations(range(len(shape)), count):
            for batch, places in itertools.product((0, 1), [(), (0,), (9,), (2, 5)]):
                if batch <= axes[0]:
                    single = rng.random() < 0.5
                    yield axes, tuple(1 if single else int(rng.integers(0, shape[a] + 1)) for a in axes), batch, places


def _gather(row: Op, all: bool) -> Iterator[Case]:
    for d, shape in itertools.product(REAL, [(5,), (3072,), (3, 5), (2, 0, 3), (4, 1, 7)]):
        for axes, sizes, batch, places in _windows(shape, seeded(row.name, d, shape)):
            rng = seeded(row.name, d, shape, axes, sizes, batch, places)
            index_type = [dtypes.int64, dtypes.int32, dtypes.uint8][rng.integers(3)]
            starts = shape[:batch] + places
            inputs = [_Operand(d, shape), *[_Operand(index_type, starts)] * len(axes)]
            attrs = axes, sizes, batch
            if accepts(row, inputs, attrs) and (all or rng.random() < 0.05):
                at = [rng.integers(0, max(1, min(shape[a] - n + 1, 256)), starts).astype(index_type.np) for a, n in zip(axes, sizes, strict=True)]
                yield row, attrs, [operands(row, (d,), shape, rng)[0], *at]


def _scatter(row: Op, all: bool) -> Iterator[Case]:
    """Windows that overlap, and that leave the array on both sides."""
    for d, shape in itertools.product(REAL, [(7,), (3, 5), (2, 0, 3), (4, 3, 7), (2, 3, 200)]):
        for axes, sizes, batch, places in _windows(shape, seeded(row.name, d, shape)):
            rng = seeded(row.name, d, shape, axes, sizes, batch, places)
            starts, size_of = shape[:batch] + places, dict(zip(axes, sizes, strict=True))
            updates = (*starts, *(size_of.get(a, n) for a, n in enumerate(shape) if a >= batch))
            inputs = [_Operand(d, shape), _Operand(d, updates), *[_Operand(dtypes.int32, starts)] * len(axes)]
            if accepts(row, inputs, (axes, batch)) and (all or rng.random() < 0.05):
                values = [tame_values(d, int(np.prod(s, dtype=int)), rng).reshape(s) for s in (shape, updates)]
                kind = [np.int8, np.int32, np.int64][rng.integers(3)]
                at = [rng.integers(-2, min(shape[a] - n + 2, 120), starts).astype(kind) for a, n in zip(axes, sizes, strict=True)]
                yield row, (axes, batch), [*values, *at]


def _sort(row: Op, all: bool) -> Iterator[Case]:
    """Duplicates, NaNs and both zeros among them; rows that are sorted by insertion and by digits of either size."""
    for d, shape in itertools.product(REAL, [(0,), (1,), (17,), (300,), (2, 0, 3), (3, 20), (5, 4, 7), (5000,), (2, 4500)]):
        for axis, descending in itertools.product(range(len(shape)), (False, True)):
            rng = seeded(row.name, d, shape, axis, descending)
            if all or rng.random() < 0.2:
                few = rng.choice(np.concatenate([special_values(d), tame_values(d, 20, rng)]), shape)
                yield row, (axis, descending), [np.where(rng.random(shape) < 0.5, few, tame_values(d, few.size, rng).reshape(shape)).astype(d.np)]


def _contraction(row: Op, all: bool) -> Iterator[Case]:
    """One and two space axes; sums longer than a page among them."""
    shapes: list[tuple[Shape, Shape, tuple[Any, ...]]] = [
        ((1, 2, 1, 5), (1, 3, 1, 2), ((1,), (1,))),
        ((2, 1, 2, 9), (2, 3, 2, 3), ((2,), (2,))),
        ((1, 2, 3, 4, 5), (1, 2, 3, 2, 3), ((1, 2), (2, 1))),
        ((2, 1, 1, 7, 3), (2, 1, 1, 3, 1), ((2, 1), (1, 3))),
        ((1, 2, 0, 4), (1, 3, 0, 2), ((1,), (1,))),
        ((1, 2, 350, 20), (1, 9, 350, 9), ((1,), (1,))),
        ((1, 1, 17, 9, 21), (1, 13, 17, 3, 3), ((1, 1), (1, 1))),
    ]
    for i, (d, (x, w, attrs)) in enumerate(itertools.product(REAL, shapes)):
        if accepts(row, [_Operand(d, x), _Operand(d, w)], attrs) and (all or i % 3 == 0):
            rng = seeded(row.name, d, x)
            yield row, attrs, [tame_values(d, int(np.prod(s)), rng).reshape(s) for s in (x, w)]


def _leaf(row: Op, all: bool) -> Iterator[Case]:
    """Rows whose value is in their attributes; an argument or a storage is in every other case."""
    for d in REAL:
        if row.attrs == ("dtype", "bits"):
            for value in special_values(d):
                yield row, const_attrs(value, d), []
        if row.attrs == ("shape", "axis", "dtype") and d.kind != "b":
            for shape in SHAPES:
                for axis in range(len(shape)):
                    yield row, (shape, axis, d.name), []


_GENERATORS = {
    "elementwise": _elementwise,
    "movement": _movement,
    "reduce": _reduce,
    "scan": _scan,
    "gather": _gather,
    "scatter": _scatter,
    "sort": _sort,
    "contraction": _contraction,
    "native": lambda row, all: iter(()),  # half of what they give has no meaning: tested through the rows made of them
    "digits": lambda row, all: iter(()),  # rows of devices alone: tested through the sorts and scatters made of them
    "runs": lambda row, all: iter(()),
    "leaf": _leaf,
    "control": lambda row, all: iter(()),  # rows with bodies: tested as programs
    "project": lambda row, all: iter(()),
    "host": lambda row, all: iter(()),  # several results: tested as programs
    "mark": lambda row, all: iter(()),  # rows that are gone before anything runs
}


def rows(kind: str) -> list[Op]:
    return [row for row in TABLE.values() if row.kind == kind]


def cases_of(row: Op, all: bool) -> Iterator[Case]:
    """The cases of one row; a seeded sample of them unless ``all``."""
    return _GENERATORS[row.kind](row, all)


def cases(kind: str, all: bool) -> Iterator[Case]:
    for row in rows(kind):
        yield from cases_of(row, all)


# --- running and comparing -------------------------------------------------------------------------------------------


def one_op_graph(row: Op, attrs: tuple[Any, ...], arrays: list[np.ndarray]) -> Graph:
    """A graph of one op on as many arguments as there are arrays."""
    build = Builder()
    inputs = [build(input_, (), (i, a.shape, dtypes.of(a.dtype).name, None)) for i, a in enumerate(arrays)]
    return Graph(inputs, [build(row, tuple(inputs), attrs)])


def compiler() -> Callable[..., Any]:
    """``compile_graph(graph, precision=…)`` of the CPU; the test is skipped where a part of the backend is not there."""
    for module in ("hologram.graph.pipeline", "hologram.backends.native.storage"):
        pytest.importorskip(module, reason=f"{module} is not there")
    return pytest.importorskip("hologram.backends.compile").compile_graph


def _ordinals(x: np.ndarray) -> np.ndarray:
    """Floats as integers that count representable values; both zeros are 0."""
    bits = x.view(f"int{x.dtype.itemsize * 8}").astype(object)
    return np.where(bits < 0, -(bits & ((1 << (x.dtype.itemsize * 8 - 1)) - 1)), bits)


def mismatch(got: np.ndarray, want: np.ndarray, ulps: int) -> np.ndarray:
    """Where ``got`` is not ``want``: NaNs are one class, zeros keep their sign, floats may be ``ulps`` apart."""
    if want.dtype.kind == "c":
        return mismatch(np.real(got), np.real(want), ulps) | mismatch(np.imag(got), np.imag(want), ulps)
    if dtypes.of(want.dtype).kind != "f":
        return np.asarray(got != want)
    with np.errstate(invalid="ignore"):
        both_nan = np.isnan(got) & np.isnan(want)
        same = (got == want) & (np.signbit(got) == np.signbit(want))
    wrong = np.asarray(~(both_nan | same))
    if ulps and wrong.any():
        near = np.zeros_like(wrong)
        g, w = got[wrong], want[wrong]
        distance = np.abs(_ordinals(g) - _ordinals(w))
        near[wrong] = (distance <= ulps) & (distance > 0) & ~np.isnan(g) & ~np.isnan(w)
        wrong = wrong & ~near
    return wrong


def assert_agree(case: Case, got: np.ndarray, want: np.ndarray, ulps: int | None = None) -> None:
    """Bitwise for exact rows, within their bound for the others, unless ``ulps`` says otherwise."""
    row, attrs, arrays = case
    about = f"{row}{attrs} on {[f'{a.dtype}{list(a.shape)}' for a in arrays]}"
    assert got.dtype == want.dtype and got.shape == want.shape, f"{about}: {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    wrong = mismatch(got, want, (0 if row.exact else row.tests.get("ulps", 2)) if ulps is None else ulps)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        operands_there = [a[at] if a.shape == want.shape else a[()] if a.ndim == 0 else "…" for a in arrays]
        raise AssertionError(f"{about}: {int(wrong.sum())} of {want.size} differ; at {at} {got[at]!r}, not {want[at]!r}, from {operands_there!r}")
