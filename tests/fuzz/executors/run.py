"""A case under way: the program with its transform, the interpreter's results, and what others are held against."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.ir.graph import Graph

from .. import judge, meaning
from ..generate import Case
from ..judge import Skipped
from ..program import Program, World, function_of
from ..worlds import Hologram


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
            if not self.ends and is_near_the_end(self):
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


EXAMPLES = 3


def given(case: Case, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """Arguments of the transformed program."""
    rng = np.random.default_rng([case.seed, 3])
    if case.transform == "vmap":
        return [np.stack([np.asarray(a)] + [rng.permuted(a) if a.ndim else a for _ in range(EXAMPLES - 1)]) for a in arguments]
    if case.transform == "jvp":
        return arguments + [direction(a, rng) for a in arguments if a.dtype.kind == "f"]
    return arguments


def direction(a: np.ndarray, rng: Any) -> np.ndarray:
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


LARGE = {"float16": 6e4, "bfloat16": 1e18, "float32": 1e18, "complex64": 1e18}


def is_near_the_end(run: Run) -> bool:
    """Whether a finite value on the way is near the end of its range."""
    return has_on_the_way(run, lambda size, large: np.isfinite(size) & (size >= large))


def has_on_the_way(run: Run, test: Callable[[np.ndarray, float], np.ndarray]) -> bool:
    from hologram.ir.interpreter import evaluate

    found = [False]

    def look(x: np.ndarray) -> None:
        if not found[0] and dtypes.of(x.dtype).kind in "fc":
            size = np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
            found[0] = bool(test(size, LARGE.get(dtypes.of(x.dtype).name, 1e150)).any())

    with np.errstate(all="ignore"), meaning.watched(look):
        evaluate(run.graph, run.leaves)
    return found[0]


def arrays_of_graph(f: Callable[..., Any], xs: Sequence[np.ndarray]) -> list[np.ndarray]:
    graph = hg.make_graph(f)(*xs)
    return meaning.bits(graph, xs)
