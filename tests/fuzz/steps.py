"""Each step of a program by another library, on the operands that the interpreter gives: where the two must agree, and where they need not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import hologram as hg
from hologram import dtypes

from . import judge, meaning
from .judge import Skipped
from .program import DType, Ref, Step, World, functions, mapped, refs, resolve, run_steps
from .worlds import DIFFERENT, Hologram, NoMeaning

if TYPE_CHECKING:
    from .executors import Run


def check_steps(run: Run, world: World, name: str) -> None:
    p = run.program
    known = slots(run)
    compared = 0
    for s in p.steps:
        operands = {r: known[r] for r in set(refs(s)) if r in known}
        try:
            _check_step(run, s, operands, known, world, name)
            compared += 1
        except NoMeaning:
            continue
    if not compared:
        raise Skipped(f"nothing that {name} has")


def slots(run: Run) -> dict[Ref, np.ndarray]:
    """Every value of the program, by the interpreter."""
    p = run.program
    names: list[Ref] = []

    def everything(*args: Any) -> list[Any]:
        env = {i.name: [a] for i, a in zip(p.inputs, args, strict=True)}
        run_steps(p.steps, env, Hologram())
        names[:] = [Ref(n, k) for n, leaves in env.items() for k in range(len(leaves))]
        return [x for leaves in env.values() for x in leaves]

    graph = hg.make_graph(everything)(*run.plain)
    return dict(zip(names, meaning.bits(graph, run.plain), strict=True))


def _check_step(run: Run, s: Step, operands: dict[Ref, np.ndarray], known: dict[Ref, np.ndarray], world: World, name: str) -> None:
    f = world.function(s.function)
    if s.function in DIFFERENT or outside_numpy(s, operands):
        raise NoMeaning(s.function)
    want = [known[r] for r in sorted((r for r in known if r.name == s.name), key=lambda r: r.leaf)]
    got: list[np.ndarray] = []
    reasons = []
    for widen in (False, True):
        try:
            with np.errstate(all="ignore"):
                env = _environment(operands, world, widen)
                out = f(*resolve(s.args, env, world), **{k: resolve(_wide_dtypes(v, widen), env, world) for k, v in s.options})
            got = [np.asarray(x) for x in world.leaves(out)]
        except NoMeaning:
            raise
        except Exception as e:  # another library's limits
            reasons.append(f"{type(e).__name__}: {e}")
            continue
        wrong = _compare(run, s, operands, got, want)
        if wrong is None:
            return
        reasons.append(wrong)
    found = [r for r in reasons if isinstance(r, judge.Mismatch)]
    if not found or len(found) < len(reasons) and not _is_plain(operands):
        raise NoMeaning(str(reasons[0]))
    found[0].args = (f"{name}: {s.function}: {found[0]}",)
    raise found[0]


def _is_plain(operands: dict[Ref, np.ndarray]) -> bool:
    return all(epsilonless(x) for x in operands.values())


def epsilonless(x: np.ndarray) -> bool:
    return meaning.epsilon(x.dtype) == 0.0 if dtypes.of(x.dtype).kind in "biu" else dtypes.of(x.dtype).name in ("float32", "float64")


def _wide_dtypes(v: Any, widen: bool) -> Any:
    if not widen:
        return v
    return mapped(lambda e: DType("float64") if isinstance(e, DType) and e.name in ("float16", "bfloat16", "float32") else e, v)


def _environment(operands: dict[Ref, np.ndarray], world: World, widen: bool) -> dict[str, list[Any]]:
    env: dict[str, dict[int, Any]] = {}
    for r, x in operands.items():
        d = dtypes.of(x.dtype)
        if widen and d.is_float:
            x = x.astype(np.float64)
        elif widen and d.is_complex:
            x = x.astype(np.complex128)
        env.setdefault(r.name, {})[r.leaf] = world.array(x)
    return {n: [leaves.get(i) for i in range(max(leaves) + 1)] for n, leaves in env.items()}


def _compare(run: Run, s: Step, operands: dict[Ref, np.ndarray], got: list[np.ndarray], want: list[np.ndarray]) -> judge.Mismatch | None:
    """What is wrong with ``want``, Hologram's, beside ``got``."""
    if len(got) != len(want):
        raise NoMeaning("other results")
    e = max([meaning.epsilon(x.dtype) for x in (*operands.values(), *want)], default=0.0)
    moved: list[list[np.ndarray]] | None = None
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if g.shape != w.shape:
            return judge.Mismatch(s.function, i, w, g, None)
        if g.dtype.kind not in "biufcV":
            raise NoMeaning(f"{g.dtype} results")
        if g.dtype.type is np.longdouble:
            g = g.astype(np.float64)
        if (g.dtype.kind in "biu") != (dtypes.of(w.dtype).kind in "biu"):
            g = g.astype(w.dtype) if g.dtype.kind in "biufc" else g
        if not judge.differ_beyond(w, g, (), 24.0, e).any():
            continue
        if moved is None:
            moved = step_trials(run, s, operands)
        wrong = judge.differ_beyond(w, g, [t[i] for t in moved], 64.0, e)
        if wrong.any():
            return judge.Mismatch(s.function, i, w, g, wrong)
    return None


def step_trials(run: Run, s: Step, operands: dict[Ref, np.ndarray]) -> list[list[np.ndarray]]:
    """How far rounding moves one step's results."""
    order = list(operands)
    world = Hologram()

    def f(*xs: Any) -> Any:
        env: dict[str, dict[int, Any]] = {}
        for r, x in zip(order, xs, strict=True):
            env.setdefault(r.name, {})[r.leaf] = x
        full = {n: [leaves.get(i) for i in range(max(leaves) + 1)] for n, leaves in env.items()}
        run_steps([s], full, world)
        return full[s.name]

    xs = [operands[r] for r in order]
    return meaning.spread(hg.make_graph(f)(*xs), xs, run.case.seed)


def outside_numpy(s: Step, operands: dict[Ref, np.ndarray]) -> bool:
    """Where NumPy leaves the result open, or documents another: division of integers by zero, shifts beyond the width."""
    xs = list(operands.values())
    if {"special.betaln"} & {f for f in functions([s]) if f != s.function}:  # what a body calls it with is not known
        return True
    name = s.function.partition(".")[2]
    name = s.args[0] if s.function in ("form.operator", "form.reflected") else name
    integers = all(x.dtype.kind in "biu" for x in xs)
    if name in ("floordiv", "mod", "floor_divide", "remainder", "fmod", "divmod", "gcd", "lcm", "power", "pow", "lshift", "rshift") and integers:
        return True
    if name == "logsumexp":  # of a scalar it keeps one axis
        return any(x.ndim == 0 for x in xs)
    if name == "betaln":  # documented for positive numbers
        return any((x <= 0).any() for x in xs)
    if name in ("polymul", "polydiv"):  # NumPy leaves leading zeros out
        return any(x.ndim == 1 and x.size > 0 and x[0] == 0 for x in xs)
    if name.startswith("nan"):  # its quantiles of nothing have one axis too few
        return ("quantile" in name or "percentile" in name) and any(x.size == 0 for x in xs)
    return name.endswith("_shift")
