"""What a graph means: the reference interpreter, with the bits that the decompositions of functions give; and how far rounding may move its results.

The references of functions (``exp``, ``tanh`` …) compute in a wider type, so compiled code differs from them in the last bit, and behind a comparison
or ``floor`` by any amount. :func:`bits` interprets their decompositions instead, so that ``exact`` programs must agree in every bit.

:func:`spread` tells how far the results of a program may lie apart that computes in another order: it interprets the graph several times, each
time with every rounded result moved by a few units in the last place at random (stochastic arithmetic, after Vignes). What lies behind a
discontinuity then varies by as much as it may, and nothing needs to be known of it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.graph.canonical.complex_split import split_complex
from hologram.graph.pass_manager import Context, run_passes
from hologram.graph.pipeline import ARGUMENTS
from hologram.ir import interpreter as reference
from hologram.ir.expression_builder import Rare, decompose
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.ir.op import MULTI_RESULT, TABLE, Op
from hologram.primitives.scalar.elementwise import cast_reference
from tests.support import scalar_code

TRIALS = 5
UNITS = 4.0  # in the last place, by which results are moved

INEXACT = [row for row in TABLE.values() if row.kind == "elementwise" and row.lower is not None and not row.exact]
_ROUNDING = ("add", "sub", "mul", "div", "sqrt", "mad", "cast", "pair_dot")  # elementwise rows that round, besides the inexact ones


_REFERENCES = {row: row.reference for row in INEXACT}


# --- bits ------------------------------------------------------------------------------------------------------------


@functools.lru_cache(4096)
def _decomposed(row: Op, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
    return decompose(row, types, attrs)


def _interpreted(row: Op, fused: bool) -> Any:
    """A reference that runs the row's decomposition; narrow floats are computed in float32."""

    whole = _REFERENCES[row]

    def run(*values: Any) -> np.ndarray:
        count = len(values) - len(row.attrs)
        arrays, attrs = [np.asarray(v) for v in values[:count]], values[count:]
        if any(a.dtype.kind == "c" for a in arrays):  # in the body of a loop
            return np.asarray(whole(*values))
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        result = arrays[-1].dtype
        wide = [cast_reference(a, "float32") if dtypes.of(a.dtype).is_narrow_float else a for a in arrays]
        wide = [np.broadcast_to(a, shape) for a in wide]
        parameters, body, out = _decomposed(row, tuple(dtypes.of(a.dtype) for a in wide), attrs)
        found: dict[Any, np.ndarray] = dict(zip(parameters, wide, strict=True))
        with np.errstate(all="ignore"):
            _run_body(body, found, fused)
        x = np.broadcast_to(found[out], shape)
        return cast_reference(x, dtypes.of(result).name) if x.dtype != result and dtypes.of(out.dtype).is_float else x

    return run


def _run_body(body: list[Any], found: dict[Any, np.ndarray], fused: bool) -> None:
    for ins in body:
        if isinstance(ins, Rare):
            condition, fast = (scalar_code._value(a, found) for a in ins.args)
            inner = dict(found)
            _run_body(ins.body, inner, fused)
            found[ins] = np.where(condition, scalar_code._value(ins.slow, inner), fast)
        elif ins.op != "const":
            operands = [scalar_code._value(a, found) for a in ins.args]
            if ins.op.name == "mad" and fused:
                found[ins] = scalar_code._fma(*operands)
            elif ins.op.lower is not None and not ins.op.exact:
                found[ins] = _interpreted(ins.op, fused)(*operands, *ins.attrs)
            else:
                found[ins] = ins.op.reference(*operands, *ins.attrs)


@contextmanager
def _references(made: dict[Op, Any]) -> Iterator[None]:
    """Other references for some rows, also inside the bodies of loops."""
    before = {row: row.reference for row in made}
    for row, f in made.items():
        object.__setattr__(row, "reference", f)
    try:
        yield
    finally:
        for row, f in before.items():
            object.__setattr__(row, "reference", f)


def real(graph: Graph) -> Graph:
    """The graph on real numbers: complex ones are split as compilation splits them."""
    graph = run_passes(graph, (ARGUMENTS,), Context("exact"))
    return split_complex(graph)


def bits(graph: Graph, inputs: Sequence[np.ndarray], fused: bool = True) -> list[np.ndarray]:
    """The outputs that ``exact`` code has, bit for bit; ``fused``: the machine has fused multiply-add."""
    with _references({row: _interpreted(row, fused) for row in INEXACT}), np.errstate(all="ignore"):
        return reference.evaluate(graph, inputs)


# --- how far rounding may move results -------------------------------------------------------------------------------


def epsilon(dtype: Any) -> float:
    """The distance from 1 to the next number."""
    d = dtypes.of(dtype)
    d = dtypes.real_of(d) if d.is_complex else d
    return 2.0**-d.format.fraction_bits if d.is_float else 0.0


def _moved(rng: Any, x: np.ndarray, units: float = UNITS) -> np.ndarray:
    """``x``, each number moved by some units in the last place."""
    e = epsilon(x.dtype)
    if not e:
        return x
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c":
            size = np.abs(x)
            noise = (rng.uniform(-1, 1, x.shape) + 1j * rng.uniform(-1, 1, x.shape)) * size * (e * units)
            return np.asarray(x + noise).astype(x.dtype)
        return np.asarray(x.astype(np.float64) * (1.0 + rng.uniform(-units, units, x.shape) * e)).astype(x.dtype)


def _moved_by_norm(rng: Any, x: np.ndarray, units: float) -> np.ndarray:
    """``x``, each number moved by some units of the largest: all that routines for whole matrices promise."""
    e = epsilon(x.dtype)
    size = np.abs(x[np.isfinite(x)]) if e else np.empty(0)
    if not size.size:
        return x
    with np.errstate(all="ignore"):
        return np.asarray(x + rng.uniform(-units, units, x.shape) * (e * float(size.max()))).astype(x.dtype)


# rows that lose digits, to an error that is small beside 1, where they cross zero below 0
_ABSOLUTE = ("lgamma", "digamma", "polygamma")


def _noisy(row: Op, rng: Any) -> Any:
    exactly = row.reference
    count = row.arity

    def run(*values: Any) -> Any:
        if row.kind == "host":
            values = tuple(_moved_by_norm(rng, v, 4.0) if isinstance(v, np.ndarray) else v for v in values)
        elif row.kind in ("reduce", "scan", "contraction", "scatter", "attention"):
            values = tuple(_moved(rng, v) if isinstance(v, np.ndarray) else v for v in values)
        out = exactly(*values)
        if isinstance(out, list):
            return [_moved_by_norm(rng, x, 16.0) for x in out]
        out = np.asarray(out)
        if row.name in _ABSOLUTE and epsilon(out.dtype) >= epsilon(np.float64):
            out = np.asarray(out + rng.uniform(-UNITS, UNITS, out.shape) * epsilon(np.float64)).astype(out.dtype)
        if row.name == "cast":
            source = np.asarray(values[0]).dtype
            if not epsilon(source) or epsilon(out.dtype) <= epsilon(source):
                return out
        return _moved(rng, out)

    assert count is None or count >= 0
    return run


def _noise_rows() -> list[Op]:
    kinds = ("reduce", "scan", "contraction", "scatter", "host", "attention")
    rows = [r for r in TABLE.values() if r.kind in kinds and not r.name.startswith(("reduce_any", "reduce_all", "arg"))]
    selecting = {"reduce_max", "reduce_min", "cummax", "cummin", "scatter_set", "scatter_max", "scatter_min"}
    return [r for r in rows if r.name not in selecting] + INEXACT + [TABLE[n] for n in _ROUNDING if n in TABLE and TABLE[n] not in INEXACT]


def spread(graph: Graph, inputs: Sequence[np.ndarray], seed: int = 0, trials: int = TRIALS) -> list[list[np.ndarray]]:
    """The outputs of several interpretations, in each of which what is rounded is moved at random."""
    found = []
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial])
        with _references({row: _noisy(row, rng) for row in _noise_rows()}), np.errstate(all="ignore"):
            found.append(reference.evaluate(graph, inputs))
    return found


@contextmanager
def watched(look: Any) -> Iterator[None]:
    """Shows ``look`` every array that is interpreted meanwhile, in the bodies of loops too."""
    plain = reference.evaluate_node

    def seen(*args: Any) -> Any:
        out = plain(*args)
        for x in out if isinstance(out, list) else [out]:
            look(np.asarray(x))
        return out

    reference.evaluate_node = seen
    try:
        yield
    finally:
        reference.evaluate_node = plain


def has_host(graph: Graph) -> bool:
    return any(n.op.kind == "host" for n in every_node(graph))


def every_node(graph: Graph) -> Iterator[Node]:
    """The graph's nodes, and those of the bodies in it."""
    from hologram.ir.graph import bodies

    for n in graph.nodes():
        yield n
        if n.op.kind == "control":
            for body in bodies(n):
                yield from every_node(body.graph)


__all__ = ["MULTI_RESULT", "bits", "epsilon", "every_node", "has_host", "real", "spread", "watched"]
