"""Executors that hold transforms against their definitions."""

from __future__ import annotations

import numpy as np

import hologram as hg
from hologram import dtypes
from hologram.errors import DifferentiationError

from .. import judge, meaning
from ..generate import Case
from ..judge import Skipped
from ..program import function_of, functions
from ..worlds import Hologram
from .registry import executor
from .run import EXAMPLES, Run, arrays_of_graph, direction, transformed


@executor(1.0)
def vmap_loop(run: Run) -> None:
    """``vmap`` against a loop over the examples."""
    if run.case.transform != "vmap":
        raise Skipped("not a vmap")
    f = function_of(run.program, Hologram())
    each = [arrays_of_graph(f, [np.asarray(a[i]) for a in run.leaves]) for i in range(EXAMPLES)]
    want = [np.stack(column) for column in zip(*each, strict=True)]
    judge.near("vmap against a loop", run.want, want, lambda: run.trials, ends=run.ends, norms=run.has_host_ops)


@executor(1.0)
def finite_differences(run: Run) -> None:
    """Derivatives against differences of the interpreter's values, where these settle."""
    if run.case.transform not in ("grad", "jvp"):
        raise Skipped("no first derivative")
    p = run.program
    floats = [i for i, x in enumerate(run.plain) if x.dtype.kind == "f"]
    if not floats or any(run.plain[i].dtype != np.float64 for i in floats):
        raise Skipped("not in float64")
    if any(n.dtype.is_float and n.dtype is not dtypes.float64 for n in meaning.every_node(run.graph)):
        raise Skipped("not in float64 throughout")
    rng = np.random.default_rng([run.case.seed, 3])
    f = function_of(p, Hologram())
    base = hg.make_graph(f)(*run.plain)
    kept = [i for i, n in enumerate(base.outputs) if n.dtype in (dtypes.float32, dtypes.float64)]
    if run.case.transform == "jvp":
        directions = run.leaves[len(run.plain) :]
        slopes = run.want[len(run.want) // 2 :]
    else:
        directions = [direction(run.plain[i], rng) for i in floats]
        slopes = [np.asarray(sum(float(np.sum(g * v)) for g, v in zip(run.want, directions, strict=True)))]

    if defined := {"form.stop_gradient", "numpy.nextafter", "numpy.spacing"} & set(functions(p.steps)):
        raise Skipped(f"the derivative of {min(defined)} is 0 by definition")

    aside = [1e-4 * rng.normal(size=run.plain[i].shape) for i in floats]

    def at(h: float, off: float = 0.0) -> list[np.ndarray]:
        xs = list(run.plain)
        for i, v, u in zip(floats, directions, aside, strict=True):
            xs[i] = xs[i] + h * v + off * u
        out = meaning.bits(base, xs)
        found = [out[i] for i in kept]
        return found if run.case.transform == "jvp" else [np.asarray(sum(float(np.sum(np.sin(y))) for y in found))]

    steps = (1e-4, 1e-5, 1e-6)
    with np.errstate(all="ignore"):
        estimates = [[(b - a) / (2 * h) for a, b in zip(at(-h), at(h), strict=True)] for h in steps]
        sides = [[(b - a) / 1e-5 for a, b in zip(at(x), at(y), strict=True)] for x, y in ((-1e-5, 0.0), (0.0, 1e-5))]
        nearby = [(b - a) / 2e-9 for a, b in zip(at(-1e-9, 1.0), at(1e-9, 1.0), strict=True)]
        for i, (slope, below, above, aslant, *several) in enumerate(zip(slopes, *sides, nearby, *estimates, strict=True)):
            scale = 1.0 + np.abs(several[1])
            settled = (np.abs(several[0] - several[1]) < 1e-5 * scale) & (np.abs(several[1] - several[2]) < 1e-5 * scale)
            settled &= np.abs(below - above) < 1e-2 * scale  # a kink has no derivative
            settled &= np.abs(aslant - several[1]) < 5e-2 * scale  # nor has a corner where that of several directions is no sum
            settled &= np.isfinite(slope)  # a derivative may be undefined where one direction's difference is not
            wrong = settled & ~(np.abs(slope - several[1]) < 1e-3 * scale)
            if wrong.any():
                raise judge.Mismatch("derivative against differences", i, np.asarray(slope), np.asarray(several[1]), np.asarray(wrong))


@executor(1.0)
def transposed(run: Run) -> None:
    """The dot product identity: <cos(y), J u> = <J' cos(y), u>."""
    if run.case.transform != "vjp":
        raise Skipped("not a vjp")
    p = run.program
    floats = [i for i, x in enumerate(run.plain) if x.dtype.kind == "f"]
    if not floats:
        raise Skipped("no floats")
    if any(n.dtype.name in ("float16", "bfloat16") for n in meaning.every_node(run.graph)):
        raise Skipped("tangents of 16 bits, which cancel")
    rng = np.random.default_rng([run.case.seed, 4])
    directions = [direction(run.plain[i], rng) for i in floats]
    as_jvp = transformed(Case(run.case.seed, p, "jvp"), p, Hologram())
    try:
        out = arrays_of_graph(as_jvp, [*run.plain, *directions])
    except DifferentiationError as e:
        raise Skipped("not forwards") from e
    half = len(out) // 2
    with np.errstate(all="ignore"):
        left = [np.cos(y.astype(np.float64)) * t.astype(np.float64) for y, t in zip(out[:half], out[half:], strict=True)]
        right = [g.astype(np.float64) * u.astype(np.float64) for g, u in zip(run.want, directions, strict=True)]
        a, b = (float(sum(np.sum(x) for x in side)) for side in (left, right))
        size = float(sum(np.sum(np.abs(x)) for x in (*left, *right)))
    if not np.isfinite(size):
        raise Skipped("not finite")
    e = 1e-9 if all(n.dtype.name in ("float64", "int64", "bool") for n in meaning.every_node(run.graph)) else 3e-3
    if abs(a - b) > e * (size + 1e-6):
        raise judge.Mismatch("vjp against jvp", 0, np.asarray(b), np.asarray(a), np.asarray(True))
