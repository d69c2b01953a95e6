"""What runs a case, and what each result is held against.

An executor is a function of a :class:`Run` that raises :class:`~.judge.Mismatch`, or :class:`Skipped` where it has no meaning for the case. Any other
exception is a failure: every step of the program was traced once already, so nothing may be refused now, save where :data:`REFUSALS` says so.

Which executors run is drawn from the case's seed, each with its own probability: interpreting costs a millisecond, compiling fifty.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
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
from hologram.ir.graph import Graph
from hologram.settings import override

from . import judge, meaning, values
from .generate import Case
from .judge import Skipped
from .program import Program, World, flat, function_of, functions
from .steps import check_steps, slots
from .worlds import Hologram, Jax, NumPy


class Run:
    """A case under way: what executors share."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.program = case.program
        self.arguments = case.program.arrays()
        self.plain = [np.ascontiguousarray(a.astype(a.dtype.newbyteorder("="))).reshape(a.shape) for a in self.arguments]
        self.rng = np.random.default_rng([case.seed, 2])

    def wanted(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    @functools.cached_property
    def function(self) -> Callable[..., Any]:
        """The program with its transform, as a function of ``given``."""
        return transformed(self.case, self.program, Hologram())

    @functools.cached_property
    def given(self) -> list[np.ndarray]:
        return given(self.case, self.arguments)

    @functools.cached_property
    def leaves(self) -> list[np.ndarray]:
        """The same, each plain in memory."""
        return [np.ascontiguousarray(a.astype(a.dtype.newbyteorder("="))).reshape(a.shape) for a in self.given]

    @functools.cached_property
    def graph(self) -> Graph:
        return hg.make_graph(self.function)(*self.given)

    @functools.cached_property
    def is_exact(self) -> bool:
        """Whether ``exact`` code has the interpreter's bits: host ops have their own, and so have complex numbers in bodies."""
        nodes = list(meaning.every_node(self.graph))
        control = any(n.op.kind == "control" for n in nodes)
        return not self.has_host_ops and not (control and any(n.dtype.is_complex for n in nodes))

    @functools.cached_property
    def has_host_ops(self) -> bool:
        """Whether routines of LAPACK or transforms are called."""
        return any(n.op.kind == "host" for n in meaning.every_node(self.graph))

    @functools.cached_property
    def want(self) -> list[np.ndarray]:
        """By the interpreter."""
        return meaning.bits(meaning.real(self.graph) if self.is_exact else self.graph, self.leaves)

    @functools.cached_property
    def trials(self) -> list[list[np.ndarray]]:
        return meaning.spread(self.graph, self.leaves, self.case.seed)

    @functools.cached_property
    def compiled(self) -> Callable[..., Any]:
        """Compiled in ``exact``."""
        return hg.jit(self.function, precision="exact")

    @functools.cached_property
    def exact(self) -> list[np.ndarray]:
        """By compiled ``exact`` code."""
        return arrays(self.compiled(*self.given))

    def near(self, what: str, got: Any, units: float = judge.UNITS) -> None:
        try:
            judge.near(what, got, self.want, lambda: self.trials, units, self.ends, self.has_host_ops)
        except judge.Mismatch:
            if not self.ends and _is_near_the_end(self):
                raise Skipped("sums that overflow in one order and not in another, and what follows from them") from None
            raise

    @functools.cached_property
    def ends(self) -> bool:
        """Whether sums in another order are finite where the interpreter's are."""
        return not any(i.content in ("special", "wide") for i in self.program.inputs)

    def bits(self, what: str, got: Any, want: Sequence[np.ndarray] | None = None) -> None:
        if self.is_exact:
            judge.same_bits(what, got, self.want if want is None else want)
        else:
            self.near(what, got)


def arrays(x: Any) -> list[np.ndarray]:
    return [np.asarray(e) for e in hg.tree.leaves(x)]


# --- transforms ------------------------------------------------------------------------------------------------------

EXAMPLES = 3


def given(case: Case, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """Arguments of the transformed program."""
    rng = np.random.default_rng([case.seed, 3])
    if case.transform == "vmap":
        return [np.stack([np.asarray(a)] + [rng.permuted(a) if a.ndim else a for _ in range(EXAMPLES - 1)]) for a in arguments]
    if case.transform == "jvp":
        return arguments + [_direction(a, rng) for a in arguments if a.dtype.kind == "f"]
    return arguments


def _direction(a: np.ndarray, rng: Any) -> np.ndarray:
    return np.asarray(rng.integers(-8, 9, a.shape) / 8).astype(a.dtype)


def _is_differentiable(x: Any) -> bool:
    return np.dtype(x.dtype).kind == "f" and np.dtype(x.dtype).itemsize >= 4


def transformed(case: Case, p: Program, world: World) -> Callable[..., Any]:
    f = function_of(p, world)
    if not case.transform:
        return f
    if case.transform == "vmap":
        return hg.vmap(f)
    floats = [i for i, x in enumerate(p.arrays()) if x.dtype.kind == "f"]
    if not floats:
        return f

    def of_floats(*xs: Any) -> Any:
        return lambda *some: [y for y in f(*_with(xs, floats, some)) if _is_differentiable(y)]

    def loss(*xs: Any) -> Any:
        inner = of_floats(*xs)
        return lambda *some: sum((hnp.sum(hnp.astype(hnp.sin(y), hnp.float64)) for y in inner(*some)), hnp.zeros((), hnp.float64))

    def jvp(*xs: Any) -> Any:
        xs, directions = xs[: len(p.inputs)], xs[len(p.inputs) :]
        return hg.jvp(of_floats(*xs), [xs[i] for i in floats], list(directions))

    def vjp(*xs: Any) -> Any:
        out, back = hg.vjp(of_floats(*xs), *[xs[i] for i in floats])
        return back([hnp.cos(y) for y in out])

    def grad(*xs: Any) -> Any:
        return hg.grad(loss(*xs), argnums=tuple(range(len(floats))))(*[xs[i] for i in floats])

    def hessian(*xs: Any) -> Any:
        first = floats[0]
        one = lambda x: loss(*xs)(x, *[xs[i] for i in floats[1:]])  # noqa: E731
        slope = hg.grad(one)(xs[first])
        return hg.grad(lambda x: hnp.sum(hnp.sin(hg.grad(one)(x))))(xs[first]), slope

    return {"jvp": jvp, "vjp": vjp, "grad": grad, "hessian": hessian}[case.transform]


def _with(xs: Sequence[Any], places: list[int], some: Sequence[Any]) -> list[Any]:
    out = list(xs)
    for i, x in zip(places, some, strict=True):
        out[i] = x
    return out


# --- executors -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Executor:
    name: str
    share: float  # of the cases that it runs
    run: Callable[[Run], None]


EXECUTORS: list[Executor] = []


def executor(share: float) -> Callable[[Callable[[Run], None]], Callable[[Run], None]]:
    def add(f: Callable[[Run], None]) -> Callable[[Run], None]:
        EXECUTORS.append(Executor(f.__name__.replace("_", " "), share, f))
        return f

    return add


@executor(1.0)
def exact_jit(run: Run) -> None:
    """Compiled in ``exact``: the interpreter's bits."""
    run.bits("exact jit against the interpreter", run.exact)


@executor(1.0)
def numpy_steps(run: Run) -> None:
    """Each step by NumPy, on the interpreter's operands."""
    if run.case.transform:
        raise Skipped("transformed")
    check_steps(run, NumPy(), "NumPy")


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


LARGE = {"float16": 6e4, "bfloat16": 1e18, "float32": 1e18, "complex64": 1e18}


def _is_ordinary(run: Run) -> bool:
    """Whether no value on the way is not finite, near the end of its range, or subnormal."""
    return not _has_on_the_way(run, lambda size, large: ~((size < large) & ((size > 1 / large) | (size == 0))))


def _is_near_the_end(run: Run) -> bool:
    """Whether a finite value on the way is near the end of its range."""
    return _has_on_the_way(run, lambda size, large: np.isfinite(size) & (size >= large))


def _has_on_the_way(run: Run, test: Callable[[np.ndarray, float], np.ndarray]) -> bool:
    from hologram.ir.interpreter import evaluate

    found = [False]

    def look(x: np.ndarray) -> None:
        if not found[0] and dtypes.of(x.dtype).kind in "fc":
            size = np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
            found[0] = bool(test(size, LARGE.get(dtypes.of(x.dtype).name, 1e150)).any())

    with np.errstate(all="ignore"), meaning.watched(look):
        evaluate(run.graph, run.leaves)
    return found[0]


@executor(0.08)
def lazy(run: Run) -> None:
    """Recorded and realised at once. A value that is cast twice is one node of a trace, and two here, whose cotangents are rounded before they are
    added up."""
    if run.case.transform not in (None, "", "vmap", "jvp") and any(a.dtype.itemsize == 2 and a.dtype.kind not in "iu" for a in run.given):
        raise Skipped("cotangents of 16 bits")
    run.near("lazy", arrays(run.function(*[hg.tensor(a) for a in run.given])))


@executor(0.04)
def unfused(run: Run) -> None:
    """Each step realised before the next."""
    if run.case.transform:
        raise Skipped("transformed")

    class Eager(Hologram):
        def leaves(self, x: Any) -> list[Any]:
            out = super().leaves(x)
            if not inside:
                hg.eval(out)
            return out

    inside: list[int] = []
    p = run.program
    env: dict[str, list[Any]] = {i.name: [hg.tensor(a)] for i, a in zip(p.inputs, run.given, strict=True)}
    plain, eager = Hologram(), Eager()
    from .program import run_step

    for s in p.steps:
        env[s.name] = eager.leaves(run_step(s, env, plain))
    run.near("each step realised", [np.asarray(env[r.name][r.leaf]) for r in p.outputs])


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


@executor(1.0)
def vmap_loop(run: Run) -> None:
    """``vmap`` against a loop over the examples."""
    if run.case.transform != "vmap":
        raise Skipped("not a vmap")
    f = function_of(run.program, Hologram())
    each = [arrays_of_graph(f, [np.asarray(a[i]) for a in run.leaves]) for i in range(EXAMPLES)]
    want = [np.stack(column) for column in zip(*each, strict=True)]
    judge.near("vmap against a loop", run.want, want, lambda: run.trials, ends=run.ends, norms=run.has_host_ops)


def arrays_of_graph(f: Callable[..., Any], xs: Sequence[np.ndarray]) -> list[np.ndarray]:
    graph = hg.make_graph(f)(*xs)
    return meaning.bits(graph, xs)


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
        directions = [_direction(run.plain[i], rng) for i in floats]
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
    directions = [_direction(run.plain[i], rng) for i in floats]
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


__all__ = ["EXECUTORS", "Executor", "Run", "Skipped", "values"]
