"""Executors that compile the whole program, in many ways."""

from __future__ import annotations

import contextlib
import functools
import unittest.mock as mock
from typing import Any

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.toolchain import target
from hologram.errors import (
    ArgumentError,
    DeviceError,
    DifferentiationError,
    ExportError,
    HologramError,
    IndexOutOfRange,
    ShapeError,
    TracedValueError,
)
from hologram.settings import override
from hologram.trace import lazy as lazy_tensors
from hologram.trace.lazy_programs import immediate, known

from .. import judge, meaning
from ..judge import Skipped
from ..program import functions
from ..worlds import Hologram
from .registry import executor
from .run import Run, arrays, has_on_the_way


@executor(1.0)
def exact_jit(run: Run) -> None:
    """Compiled in ``exact``: the interpreter's bits."""
    run.bits("exact jit against the interpreter", run.exact)


@executor(0.12)
def standard_jit(run: Run) -> None:
    run.near("standard jit", arrays(hg.jit(run.function)(*run.given)))


@executor(0.06)
def fast_jit(run: Run) -> None:
    """Finite values, another order: not held to anything where a value on the way is not finite, or subnormal."""
    got = arrays(hg.jit(run.function, precision="fast")(*run.given))
    if not _is_ordinary(run):
        raise Skipped("values that fast leaves open")
    run.near("fast jit", got, 64.0)


def _is_ordinary(run: Run) -> bool:
    """Whether no value on the way is not finite, near the end of its range, or subnormal."""
    return not has_on_the_way(run, lambda size, large: ~((size < large) & ((size > 1 / large) | (size == 0))))


@executor(0.08)
def lazy(run: Run) -> None:
    """Recorded and realised at once. A value that is cast twice is one node of a trace, and two here, whose cotangents are rounded before they are
    added up."""
    if run.case.transform not in (None, "", "vmap", "jvp") and any(a.dtype.itemsize == 2 and a.dtype.kind not in "iu" for a in run.given):
        raise Skipped("cotangents of 16 bits")
    run.near("lazy", arrays(run.function(*[hg.tensor(a) for a in run.given])))


@executor(0.3)
def op_by_op(run: Run) -> None:
    """Recorded and run op by op, however large: the bits of the compiled program."""
    found = []
    with mock.patch.multiple(immediate, MAX_NODES=10**9, MAX_ELEMENTS=10**9, MAX_RUN=1e9, BUDGET=1e9):
        for on in (True, False):
            lazy_tensors.clear()
            with override(op_by_op=on):
                found.append(arrays(run.function(*[hg.tensor(a) for a in run.given])))
    judge.same_bits("op by op", *found)


@executor(0.04)
def unfused(run: Run) -> None:
    """Each step realised before the next."""
    run.near("each step realised", _step_by_step(run))


@executor(0.3)
def known_expressions(run: Run) -> None:
    """Each step realised before the next, by Python, and by native code that knows the expressions: the same bits."""
    found = []
    with mock.patch.object(known, "RUNS", 1), override(op_by_op=False):
        for _ in range(3):
            found.append(_step_by_step(run))
    lazy_tensors.clear()
    for again in found[1:]:
        judge.same_bits("realised by native code", found[0], again)


@executor(0.3)
def native_steps(run: Run) -> None:
    """Recorded and run op by op, however large, by Python, then by native code: the same bits."""
    lazy_tensors.clear()
    everything = mock.patch.multiple(immediate, MAX_NODES=10**9, MAX_ELEMENTS=10**9, MAX_RUN=1e9, KERNEL_RUNS=0)
    with everything, mock.patch.object(lazy_tensors, "MOVED_PER_WALK", 1), override(op_by_op=True):
        found = [arrays(run.function(*[hg.tensor(a) for a in run.given])) for _ in range(4)]
    lazy_tensors.clear()
    for again in found[1:]:
        judge.same_bits("run op by op by native code", found[0], again)


def _step_by_step(run: Run) -> list[np.ndarray]:
    """The program's results where each step is realised before the next."""
    if run.case.transform:
        raise Skipped("transformed")

    class Eager(Hologram):
        def leaves(self, x: Any) -> list[Any]:
            out = super().leaves(x)
            if not inside:
                for leaf in out:
                    hg.eval(leaf)
            return out

    inside: list[int] = []
    p = run.program
    env: dict[str, list[Any]] = {i.name: [hg.tensor(a)] for i, a in zip(p.inputs, run.given, strict=True)}
    plain, eager = Hologram(), Eager()
    from ..program import run_step

    for s in p.steps:
        env[s.name] = eager.leaves(run_step(s, env, plain))
    return [np.asarray(env[r.name][r.leaf]) for r in p.outputs]


@executor(0.5)
def threads(run: Run) -> None:
    """One thread and several: the same bits."""
    found = []
    for n in (1, 4):
        hg.set_num_threads(n)
        try:
            found.append(arrays(run.compiled(*run.given)))
        finally:
            hg.set_num_threads(0)
    judge.same_bits("four threads against one", found[1], found[0])
    judge.same_bits("called again", found[0], run.exact)


LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")


@functools.cache
def levels() -> tuple[str, ...]:
    """Levels of x86-64 that this machine has."""
    here = target.host()
    found = []
    for level in LEVELS:
        with override(target=level):
            wanted = target.host()
        features = [f[1:] for f in wanted.features.split(",") if f.startswith("+")]
        if all(here.has(f) for f in features if f not in ("cx8", "fxsr", "mmx", "sahf")):
            found.append(level)
    return tuple(found)


@executor(0.04)
def cpu_level(run: Run) -> None:
    """Another level of x86-64: the same bits, by that level's multiply-add."""
    if not levels():
        raise Skipped("no level of x86-64")
    level = levels()[int(run.rng.integers(0, len(levels())))]
    with override(target=level):
        fused = target.host().has("fma") or target.host().has("avx512f")
        got = arrays(hg.jit(run.function, precision="exact")(*run.given))
    if run.is_exact:
        want = run.want if fused else meaning.bits(meaning.real(run.graph), run.leaves, fused=False)
        judge.same_bits(f"level {level}", got, want)
    else:
        run.near(f"level {level}", got)


@executor(0.05)
def saved(run: Run) -> None:
    """Through a file."""
    try:
        data = hg.export(hg.jit(run.function, precision="exact"), *run.given).to_bytes()
    except ExportError as e:
        raise Skipped(str(e)) from e
    run.bits("loaded from a file", arrays(hg.load(data)(*run.given)))


@executor(0.07)
def closed_over(run: Run) -> None:
    """Some arguments as arrays that the function closes over."""
    if not run.given:
        raise Skipped("no arguments")
    fixed = run.rng.random(len(run.given)) < 0.6
    constants = [hg.tensor(a) if run.rng.random() < 0.5 else a for a in run.given]
    inner = run.function

    def f(*xs: Any) -> Any:
        rest = iter(xs)
        return inner(*[hnp.asarray(c) if held else next(rest) for c, held in zip(constants, fixed, strict=True)])

    some = [a for a, held in zip(run.given, fixed, strict=True) if not held]
    run.bits("closed-over arrays", arrays(hg.jit(f, precision="exact")(*some)))


DYNAMIC_REFUSALS = (ShapeError, TracedValueError, ArgumentError, IndexOutOfRange, DifferentiationError)


@executor(0.08)
def dynamic(run: Run) -> None:
    """Symbolic sizes; a program that depends on its sizes is refused."""
    try:
        got = arrays(hg.jit(run.function, precision="exact", dynamic=True)(*run.given))
    except HologramError as e:
        if isinstance(e, DYNAMIC_REFUSALS):
            raise Skipped(f"refused: {type(e).__name__}") from e
        raise
    if "numpy.einsum" in functions(run.program.steps):  # the order of its products is chosen by sizes
        run.near("dynamic sizes", got)
    else:
        run.bits("dynamic sizes", got)


@executor(0.08)
def other_sizes(run: Run) -> None:
    """After calls of two other sizes, when axes have turned symbolic by themselves."""
    f = hg.jit(run.function, precision="exact")
    for by in (2, 3):
        others = [np.resize(a, [n * by + by - 1 if n > 1 else n for n in a.shape]).astype(a.dtype) for a in run.given]
        with contextlib.suppress(HologramError):  # where the program's constants do not fit these sizes
            f(*others)
    got = arrays(f(*run.given))
    if "numpy.einsum" in functions(run.program.steps):
        run.near("after other sizes", got)
    else:
        run.bits("after other sizes", got)


@executor(0.06)
def donated(run: Run) -> None:
    f = hg.jit(run.function, precision="exact", donate_argnums=tuple(range(len(run.given))))
    for again in range(2):
        run.bits(f"donated, call {again + 1}", arrays(f(*[hg.tensor(np.array(a)) for a in run.given])))


@executor(0.05)
def tensors(run: Run) -> None:
    """Tensors, twice through the same compiled function, as native calls are."""
    xs = [hg.tensor(a) for a in run.given]
    for again in range(3):
        run.bits(f"call {again + 1} with Tensors", arrays(run.compiled(*xs)))


@functools.cache
def opencl_trouble() -> str:
    """Why OpenCL runs nothing here; empty where it does."""
    if not any(name.startswith("opencl") for name in hg.devices()):
        return "no OpenCL device"
    try:
        np.asarray(hg.jit(lambda x: x + 1, device="opencl")(np.ones(3, np.float32)))
    except HologramError as e:
        return "the device compiles nothing: " + " ".join(str(e).split())[:200]
    return ""


@executor(0.01)
def opencl(run: Run) -> None:
    if trouble := opencl_trouble():
        raise Skipped(trouble)
    try:
        got = arrays(hg.jit(run.function, precision="exact", device="opencl")(*run.given))
    except DeviceError as e:
        raise Skipped(f"refused: {e}"[:60]) from e
    run.near("OpenCL", got)
