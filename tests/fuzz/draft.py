"""A program while it grows: a pool of values whose types and contents are known, and steps that are tried before they are kept.

Every step is traced as it is added, and the new nodes are run by the reference interpreter. So a step that Hologram refuses is never part of a
program, and neither is one whose values are nearly all infinite or NaN, behind which nothing could be told apart. An exception that is not
Hologram's own ends the draft: it is a finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import hologram as hg
from hologram import dtypes
from hologram.errors import CompileError, HologramError, RewriteError
from hologram.ir.interpreter import evaluate_node
from hologram.ir.op import MULTI_RESULT
from hologram.trace.operators import operand, wrap
from hologram.trace.recorder import Trace

from . import values
from .program import Input, Lambda, Literal, Program, Ref, Step, flat, run_step
from .worlds import Hologram

MAX_NODE_ELEMENTS = 1 << 19  # elements of a node that is still interpreted
MAX_NODES = 400  # of a graph; longer ones are rare, for the time that compiling them takes
INTERNAL = (CompileError, RewriteError)  # Hologram's own errors that tell of a defect

# sizes of axes: small ones, and those around the compiler's thresholds: vectors, LANES, panels and tiles, GROUP, pages
SMALL = (1, 2, 3, 4, 5, 6, 7)
EDGES = (8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 129, 255, 256, 257)
LARGE = (511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 3071, 3072, 3073, 4096, 5000, 6143, 6144, 6145, 9217)


class Refused(Exception):
    """A step that Hologram does not take, or that is not worth keeping."""


class Finding(Exception):
    """An exception that is not Hologram's own while a step was traced."""

    def __init__(self, step: Step, error: BaseException) -> None:
        super().__init__(f"{step.function}: {type(error).__name__}: {error}")
        self.step, self.error = step, error


@dataclass(frozen=True)
class Value:
    ref: Ref
    shape: tuple[int, ...]
    dtype: str
    tensor: Any
    array: np.ndarray

    @property
    def kind(self) -> str:
        return dtypes.of(self.dtype).kind


class Draft:
    def __init__(self, rng: Any, most_elements: int = 20_000) -> None:
        self.rng, self.most_elements = rng, most_elements
        self.trace = Trace("fuzz")
        self.known: dict[Any, Any] = {}
        self.arguments: list[np.ndarray] = []
        self.inputs: list[Input] = []
        self.steps: list[Step] = []
        self.pool: list[Value] = []
        self.env: dict[str, list[Any]] = {}
        self.count = 0
        self.refusals: Counter[str] = Counter()
        self.world = Hologram()
        self.home_dtype = "float32"
        self.contents = "tame"
        self.body = False

    # --- chance --------------------------------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(0, len(options)))]

    def integer(self, low: int, high: int) -> int:
        """From ``low`` to ``high``, both included."""
        return int(self.rng.integers(low, high + 1))

    def seed(self) -> int:
        return self.integer(0, 2**31 - 1)

    def dtype(self, kinds: str = "biufc") -> str:
        if self.home_dtype and dtypes.of(self.home_dtype).kind in kinds and self.chance(0.6):
            return self.home_dtype
        return self.pick([d for d in values.DTYPES if dtypes.of(d).kind in kinds])

    def extent(self, most: int) -> int:
        r = self.rng.random()
        sizes = (0,) if r < 0.02 else SMALL if r < 0.6 else EDGES if r < 0.93 else LARGE
        fitting = [n for n in sizes if n <= most]
        return self.pick(fitting) if fitting else self.pick([n for n in SMALL if n <= max(1, most)])

    def shape(self, ndim: int | None = None, most: int | None = None) -> tuple[int, ...]:
        room = most or self.most_elements
        rank = self.pick((0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4)) if ndim is None else ndim
        out: list[int] = []
        for _ in range(rank):
            n = self.extent(room)
            out.append(n)
            room //= max(1, n)
        self.rng.shuffle(out)
        return tuple(out)

    # --- values --------------------------------------------------------------------------------------------------------

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def fresh(self, dtype: str, shape: tuple[int, ...], content: str | None = None, layout: str | None = None) -> Value:
        """A new argument of the program (inside a body: a closed-over array)."""
        content = content or (self.contents if self.chance(0.8) else self.pick(values.CONTENTS[:6]))
        layout = layout or (self.pick(values.LAYOUTS[:-1]) if self.chance(0.35) else "plain")
        if self.body:
            return self.emit("numpy.asarray", Literal(dtype, shape, content, self.seed()))[0]
        i = Input(dtype, shape, content, self.seed(), layout, name=self.name("x"))
        self.inputs.append(i)
        return self.placeholder(i.name, i.array())

    def placeholder(self, name: str, array: np.ndarray) -> Value:
        tensor = wrap(self.trace.input(array.shape, dtypes.of(array.dtype)))
        self.arguments.append(np.ascontiguousarray(array).reshape(array.shape))
        self.env[name] = [tensor]
        v = Value(Ref(name), array.shape, dtypes.of(array.dtype).name, tensor, self.arguments[-1])
        self.pool.append(v)
        return v

    def choose(self, fits: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """A value of the pool that fits, late ones more often."""
        fitting = [v for v in self.pool if fits(v)]
        if not fitting:
            return None
        return fitting[-1] if self.chance(0.45) else self.pick(fitting[-3:] if self.chance(0.5) else fitting)

    def array(
        self, kinds: str = "biufc", ndim: int | None = None, least: int = 0, shape: tuple[int, ...] | None = None, fresh: float = 0.12
    ) -> Value:
        """A value of one of the kinds: of this rank, of this rank at least, or of this shape."""

        def fits(v: Value) -> bool:
            ranked = (ndim is None or len(v.shape) == ndim) and len(v.shape) >= least
            return v.kind in kinds and ranked and (shape is None or v.shape == shape)

        found = None if self.chance(fresh) else self.choose(fits)
        if found is not None:
            return found
        if shape is None:
            shape = self.shape(ndim if ndim is not None else max(least, len(self.shape())))
        return self.fresh(self.dtype(kinds), shape)

    def mate(self, v: Value, kinds: str = "biufc") -> Value:
        """A value that broadcasts with ``v``."""

        def fits(w: Value) -> bool:
            pairs = zip(v.shape[::-1], w.shape[::-1], strict=False)
            return w.kind in kinds and all(a == b or 1 in (a, b) for a, b in pairs) and (w.dtype == v.dtype or self.chance(0.3))

        if self.chance(0.7) and (found := self.choose(fits)) is not None:
            return found
        shape = tuple(1 if self.chance(0.2) else n for n in v.shape[self.integer(0, len(v.shape)) if self.chance(0.3) else 0 :])
        return self.fresh(v.dtype if v.kind in kinds and self.chance(0.8) else self.dtype(kinds), shape)

    # --- steps ---------------------------------------------------------------------------------------------------------

    def emit(self, function: str, *args: Any, **options: Any) -> list[Value]:
        """Adds a step, if it is taken, and gives its results."""
        plain = [_plain(a) for a in args]
        step = Step(self.name("v"), function, tuple(plain), tuple((k, _plain(v)) for k, v in options.items()))
        try:
            leaves = run_step(step, self.env, self.world)
        except INTERNAL as e:
            raise Finding(step, e) from e
        except HologramError as e:
            self.refusals[function] += 1
            raise Refused(f"{type(e).__name__}: {e}") from e
        except (Refused, Finding, MemoryError, NotImplementedError):
            raise
        except Exception as e:
            raise Finding(step, e) from e
        found = [self._value(step, i, x) for i, x in enumerate(leaves)]
        if not found:
            raise Refused("no results")
        self.steps.append(step)
        self.env[step.name] = [v.tensor for v in found]
        self.pool += [v for v in found if v.array.size <= self.most_elements]
        return found

    def _value(self, step: Step, i: int, x: Any) -> Value:
        if not isinstance(x, hg.Tensor):
            raise Refused(f"{step.function} gives a {type(x).__name__}")
        node, dtype, _ = operand(x, "fuzz")
        array = self.evaluate(node)
        if array.size > 4 * self.most_elements:
            raise Refused("too large")
        if array.dtype.kind not in "biu" and array.size and self.contents != "special" and self.chance(0.9) and not _tame(array):
            raise Refused("nearly all values are infinite or NaN")
        return Value(Ref(step.name, i), array.shape, dtype.name, x, array)

    def evaluate(self, node: Any) -> np.ndarray:
        """The node's value, by the reference."""
        order = self.trace.graph([node]).nodes()
        if len(order) > MAX_NODES and self.chance(0.9):
            raise Refused("long to compile")
        with np.errstate(all="ignore"):
            for n in order:
                if n in self.known:
                    continue
                if n.op.kind not in MULTI_RESULT and n.size > MAX_NODE_ELEMENTS:
                    raise Refused("a step on the way is too large")
                arrays = [self.arguments[n.attrs[0]]] if n.op.name == "input" else [self.known[x] for x in n.inputs]
                self.known[n] = evaluate_node(n, arrays)
        return self.known[node]

    # --- bodies --------------------------------------------------------------------------------------------------------

    @contextmanager
    def inside(self, parameters: Sequence[tuple[str, np.ndarray]]) -> Any:
        """For a block, steps belong to a body: a list that is given; the pool is the parameters and, sometimes, what is around."""
        saved = self.steps, self.pool, self.env, self.body
        self.steps, self.body, self.env = [], True, dict(self.env)
        self.pool = list(self.pool[-2:]) if self.chance(0.4) else []
        try:
            for name, array in parameters:
                self.placeholder(name, array)
            yield self.steps
        finally:
            self.steps, self.pool, self.env, self.body = saved

    def coerced(self, v: Value, dtype: str, shape: tuple[int, ...]) -> Value:
        """``v`` made to have a type and a shape, by a few steps."""
        from .program import DType

        if v.shape != shape:
            if v.shape != () and not _broadcasts(v.shape, shape):
                v = self.emit("numpy.max" if v.array.size else "numpy.sum", v)[0]
            if v.shape != shape:
                v = self.emit("numpy.broadcast_to", v, shape)[0]
        if v.dtype != dtype:
            if v.kind == "c" and dtypes.of(dtype).kind != "c":
                v = self.emit("numpy.real", v)[0]
            v = self.emit("numpy.astype", v, DType(dtype))[0]
        return v

    def program(self, outputs: Sequence[Ref]) -> Program:
        return Program(tuple(self.inputs), tuple(self.steps), tuple(outputs))


def _plain(x: Any) -> Any:
    """An argument as data: Values become Refs."""
    if isinstance(x, Value):
        return x.ref
    if isinstance(x, tuple):
        return tuple([_plain(e) for e in x])
    if isinstance(x, list):
        return [_plain(e) for e in x]
    if isinstance(x, dict):
        return {k: _plain(e) for k, e in x.items()}
    if isinstance(x, slice):
        return slice(_plain(x.start), _plain(x.stop), _plain(x.step))
    return x


def _broadcasts(a: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(a, to) == to
    except ValueError:
        return False


def _tame(a: np.ndarray) -> bool:
    x = np.abs(a.astype(np.complex128 if a.dtype.kind == "c" else np.float64))
    finite = np.isfinite(x)
    return bool(finite.mean() > 0.6 and (x[finite].max(initial=0.0) < 1e9))


__all__ = ["Draft", "Finding", "Lambda", "Refused", "Value", "flat"]
