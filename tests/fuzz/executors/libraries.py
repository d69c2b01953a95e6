"""Executors that hold values against NumPy's and JAX's."""

from __future__ import annotations

import functools

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes

from .. import judge
from ..judge import Skipped
from ..program import flat
from ..steps import check_steps, slots
from ..worlds import Jax, NumPy
from .registry import executor
from .run import Run


@executor(1.0)
def numpy_steps(run: Run) -> None:
    """Each step by NumPy, on the interpreter's operands."""
    if run.case.transform:
        raise Skipped("transformed")
    check_steps(run, NumPy(), "NumPy")


BY_VALUES = ("unique", "unique_values", "unique_counts", "unique_inverse", "unique_all", "nonzero", "flatnonzero", "argwhere", "trim_zeros")


OF_TWO = ("intersect1d", "union1d", "setdiff1d", "setxor1d", "extract", "mask")


@executor(0.03)
def by_values(run: Run) -> None:
    """Functions whose results' shapes depend on values, which are no steps of a traced program: of one of its values, beside NumPy."""
    if run.case.transform:
        raise Skipped("transformed")
    known = [x for x in slots(run).values() if x.ndim and x.size and dtypes.of(x.dtype).name not in ("bfloat16", "float16") and not np.isnan(x).any()]
    if not known:
        raise Skipped("no value that fits")
    x = known[int(run.rng.integers(0, len(known)))]
    name = (BY_VALUES + OF_TWO)[int(run.rng.integers(0, len(BY_VALUES + OF_TWO)))]
    operands = [x.ravel() if name == "trim_zeros" else x]
    if name in OF_TWO:
        other = run.rng.permutation(x.ravel())[: x.size // 2 + 1]
        operands = [x > 0, x] if name in ("extract", "mask") and x.dtype.kind != "c" else [x, other]
    if name in ("extract", "mask") and operands[0].dtype != bool:
        raise Skipped("no order")
    if name == "mask":
        got, want = hg.tensor(x)[operands[0]], x[operands[0]]
    else:
        got, want = getattr(hnp, name)(*[hg.tensor(a) for a in operands]), getattr(np, name)(*operands)
    for i, (g, w) in enumerate(zip(hg.tree.leaves(got), flat(want), strict=True)):
        g, w = np.asarray(g), np.asarray(w)
        if name == "unique_values":  # in no order
            g, w = np.sort(g), np.sort(w)
        if g.shape != w.shape or (g != w).any():
            raise judge.Mismatch(f"{name} of {x.dtype}{list(x.shape)} beside NumPy", i, g, w, None if g.shape != w.shape else g != w)


@functools.cache
def jax_world() -> Jax | str:
    try:
        return Jax()
    except ImportError as e:
        return f"jax cannot be imported: {e}"


@executor(0.008)
def jax_steps(run: Run) -> None:
    """Each step by JAX."""
    if run.case.transform:
        raise Skipped("transformed")
    world = jax_world()
    if isinstance(world, str):
        raise Skipped(world)
    check_steps(run, world, "JAX")
