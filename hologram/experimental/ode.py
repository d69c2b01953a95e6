"""Ordinary differential equations: the method of Dormand and Prince of order 5, with steps that adapt to the error, and its adjoint derivative.

J. Dormand and P. Prince, *A family of embedded Runge-Kutta formulae*, 1980; L. Shampine, *Some practical Runge-Kutta formulas*, 1986 (values between
steps); E. Hairer, S. Nørsett and G. Wanner, *Solving ordinary differential equations I*, II.4 (the first step, and the control of steps).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import hologram.numpy as hnp
from hologram import dtypes, tree
from hologram.control.loops import scan, while_loop
from hologram.control.replay import replayed
from hologram.control.tracing import Operands, Traced, Type, close_bodies, same_structure
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from hologram.ir.graph import Graph
from hologram.numpy.arguments import as_tensor
from hologram.support.user_lines import located
from hologram.trace.checks import as_function, number
from hologram.trace.operators import node_of, wrap
from hologram.trace.tensor import Tensor
from hologram.transform.api import vjp
from hologram.transform.custom import custom_vjp

__all__ = ["odeint"]

TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),  # the result: its rate begins the next step
)
ERRORS = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
MIDDLE = (
    6025192743 / 30085553152 / 2,
    0.0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)
SAFETY, LEAST_FACTOR, MOST_FACTOR = 0.9, 0.2, 10.0  # of one step to the next

Rate = Callable[..., Tensor]  # of a flat state, the time, and constants


class _Options(NamedTuple):
    rtol: float
    atol: float
    steps: float
    largest: float


class _State(NamedTuple):
    """After a step: where it began and ended, and the polynomial of degree 4 between."""

    begin: Tensor
    time: Tensor
    y: Tensor
    rate: Tensor
    step: Tensor
    between: Tensor  # (5, n), the highest power first
    steps: Tensor


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Any:
    """Solves ``dy/dt = func(y, t, *args)`` from ``y(t[0]) = y0`` on: the values of ``y`` at the times ``t``, along a new first axis.

    - ``func`` gives rates of the structure and shapes of ``y0``, a pytree of floats of one type. ``t`` (m,) ascends, or descends.
    - ``rtol`` and ``atol`` bound the error of a step; ``hmax`` bounds steps, ``mxstep`` how many there are between two times. Where they do not
      suffice, or a step becomes too small to count, the values are NaN.

    Steps are in float64 if the state is, else in float32, for which the tolerances should be larger. Reverse mode solves the adjoint equation
    backwards, by ``y0``, ``t``, ``args`` and what ``func`` reads from around it; forward mode raises DifferentiationError. Raises ShapeError,
    DTypeError or TreeError where the rates do not fit the state, UnsupportedError where ``func`` calls something for its effect.

    >>> ys = hg.experimental.ode.odeint(lambda y, t, k: -k * y, np.float64(1.0), np.array([0.0, 1.0]), 2.0)
    >>> ys
    Tensor([1.        , 0.13533528], dtype=float64)
    """
    as_function(func, "odeint")
    options = _Options(*(number(x, "odeint", name) for x, name in ((rtol, "rtol"), (atol, "atol"), (mxstep, "mxstep"), (hmax, "hmax"))))
    leaves, structure = tree.flatten(y0)
    dtype = _type_of(leaves)
    parts = [as_tensor(x, "odeint").astype(dtype) for x in leaves]
    times = as_tensor(t, "odeint").astype(dtype)
    if times.ndim != 1 or not times.shape[0]:
        raise located(ShapeError(f"odeint: the times t are a vector with elements, not an array of shape {list(times.shape)}"))
    rate, constants = _closed(func, tree.unflatten(structure, parts), times[0], args)
    found = _solved(rate, options, _flat(parts), times, constants)
    values, at = [], 0
    for p in parts:
        values.append(found[:, at : at + p.size].reshape((times.shape[0], *p.shape)))
        at += p.size
    return tree.unflatten(structure, values)


def _type_of(leaves: Sequence[Any]) -> Any:
    """The element type of a state. Raises DTypeError for what is no float of 32 or 64 bits."""
    if not leaves:
        raise located(ArgumentError("odeint: the state y0 has no leaves"))
    found = {as_tensor(x, "odeint").dtype for x in leaves}
    found = {np.dtype("float32") if d.kind in "biu" else d for d in found}
    if len(found) != 1 or (only := next(iter(found))) not in (np.dtype("float32"), np.dtype("float64")):
        raise located(DTypeError(f"odeint: the state is of one type, float32 or float64, not {' and '.join(sorted(map(str, found)))}"))
    return only


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return parts[0].reshape((-1,)) if len(parts) == 1 else hnp.concat([p.reshape((-1,)) for p in parts])


class _Replayed:
    """The rate of a flat state: a traced function on its constants, which are what it was called with and what it reads from around it."""

    def __init__(self, graph: Graph, shapes: Sequence[Sequence[Any]], captured: int) -> None:
        self.graph, self.shapes, self.captured = graph, [tuple(s) for s in shapes], captured

    def __call__(self, y: Tensor, t: Tensor, *constants: Tensor) -> Tensor:
        parts, at = [], 0
        for shape in self.shapes:
            size = math.prod(shape)
            parts.append(y[at : at + size].reshape(shape))
            at += size
        given = [*constants[: self.captured], *parts, t, *constants[self.captured :]]
        return _flat([wrap(n).astype(y.dtype) for n in replayed(self.graph, [node_of(x) for x in given])])


def _closed(func: Callable[..., Any], y0: Any, t0: Tensor, args: tuple[Any, ...]) -> tuple[Rate, tuple[Tensor, ...]]:
    """``func`` as a rate of flat states, and its constants."""
    given = Operands((y0, t0, *args), "odeint", "arguments")
    types = [Type(x.shape, x.dtype, x.weak) for x in given.types]
    traced = Traced("odeint", func, types, lambda leaves: tree.unflatten(given.treedef, leaves))
    if traced.has_effects:
        raise located(
            UnsupportedError("odeint: func calls a function for its effect (hg.debug.print, io_callback …): look at what odeint returns instead")
        )
    state, structure = tree.flatten(y0)
    same_structure("odeint: what func returns, beside y0", traced.treedef, structure)
    for found, like in zip(traced.types, state, strict=True):
        if tuple(found.shape) != tuple(like.shape):
            raise located(ShapeError(f"odeint: func gives a rate of shape {list(found.shape)} for a state of shape {list(like.shape)}"))
        if not _fits(found.dtype, like.dtype):
            raise located(DTypeError(f"odeint: func gives a rate of {found.dtype} for a state of {like.dtype}: cast one of them"))
    outer, (body,) = close_bodies([traced])
    count = len(state) + 1
    constants = [wrap(n) for n in (*outer, *given.nodes[count:])]
    return _Replayed(body.graph, [x.shape for x in state], len(outer)), tuple(constants)


def _fits(rate: DType, state: Any) -> bool:
    """Whether rates become of the state's type without loss that the user would not expect: narrower floats and integers do."""
    return not rate.is_complex and dtypes.promote(rate, dtypes.of(state)) is dtypes.of(state)


# --- steps -----------------------------------------------------------------------------------------------------------


def _norm(x: Tensor) -> Tensor:
    return hnp.sqrt(hnp.mean(x * x)) if x.size else hnp.asarray(0.0, dtype=x.dtype)


def _first_step(rate: Rate, y: Tensor, t: Tensor, slope: Tensor, options: _Options) -> Tensor:
    """A step whose error by Euler's method would be about a hundredth of what is allowed."""
    scale = options.atol + hnp.abs(y) * options.rtol
    size, speed = _norm(y / scale), _norm(slope / scale)
    trial = hnp.where((size < 1e-5) | (speed < 1e-5), 1e-6, 0.01 * size / speed).astype(y.dtype)
    change = _norm((rate(y + trial * slope, t + trial) - slope) / scale) / trial
    flat = (speed <= 1e-15) & (change <= 1e-15)
    largest = hnp.maximum(speed, change)
    better = hnp.where(flat, hnp.maximum(1e-6, trial * 1e-3), (0.01 / hnp.where(flat, 1.0, largest)) ** 0.2)
    return hnp.minimum(100 * trial, better).astype(y.dtype)


def _stepped(rate: Rate, s: _State, options: _Options) -> _State:
    """One step, which is taken if its error is small enough, and the size of the next one."""
    rates = [s.rate]
    moved = s.y
    for c, weights in zip(TIMES, STAGES, strict=True):
        moved = s.y + s.step * _weighted(weights, rates)
        rates.append(rate(moved, s.time + s.step * c))
    error = s.step * _weighted(ERRORS, rates)
    ratio = _norm(error / (options.atol + options.rtol * hnp.maximum(hnp.abs(s.y), hnp.abs(moved))))
    taken = ratio <= 1
    grown = SAFETY * hnp.maximum(ratio, 1e-10) ** -0.2
    factor = hnp.clip(grown, LEAST_FACTOR, hnp.where(taken, MOST_FACTOR, 1.0))
    following = hnp.minimum(s.step * hnp.where(hnp.isnan(ratio), LEAST_FACTOR, factor), options.largest).astype(s.step.dtype)
    middle = s.y + s.step * _weighted(MIDDLE, rates)
    between = _polynomial(s.y, moved, middle, s.step * rates[0], s.step * rates[-1])
    return _State(
        hnp.where(taken, s.time, s.begin),
        hnp.where(taken, s.time + s.step, s.time),
        hnp.where(taken, moved, s.y),
        hnp.where(taken, rates[-1], s.rate),
        following,
        hnp.where(taken, between, s.between),
        s.steps + 1,
    )


def _weighted(weights: Sequence[float], rates: Sequence[Tensor]) -> Tensor:
    terms = [w * r for w, r in zip(weights, rates, strict=True) if w]
    return sum(terms[1:], terms[0])


def _polynomial(y0: Tensor, y1: Tensor, middle: Tensor, d0: Tensor, d1: Tensor) -> Tensor:
    """The polynomial of degree 4 on [0, 1] with these values at 0, 1 and 1/2, and slopes at 0 and 1."""
    return hnp.stack([
        2 * (d1 - d0) - 8 * (y0 + y1) + 16 * middle,
        5 * d0 - 3 * d1 + 18 * y0 + 14 * y1 - 32 * middle,
        d1 - 4 * d0 - 11 * y0 - 5 * y1 + 16 * middle,
        d0,
        y0,
    ])  # fmt: skip


def _between(s: _State, t: Tensor) -> Tensor:
    width = s.time - s.begin
    at = (t - s.begin) / hnp.where(width == 0, 1.0, width)
    value = s.between[0]
    for i in range(1, 5):
        value = value * at + s.between[i]
    return hnp.where(t == s.time, s.y, value)


def _integrate(rate: Rate, options: _Options, y0: Tensor, times: Tensor, constants: tuple[Tensor, ...]) -> Tensor:
    """Values (m, n) at times, forwards in ``sign * t``."""
    sign = hnp.where(times[-1] < times[0], -1.0, 1.0).astype(y0.dtype)

    def forward(y: Tensor, s: Tensor) -> Tensor:
        return sign * rate(y, sign * s, *constants)

    begin = sign * times[0]
    slope = forward(y0, begin)
    first = hnp.minimum(_first_step(forward, y0, begin, slope, options), options.largest).astype(y0.dtype)
    flat = hnp.stack([*[hnp.zeros_like(y0)] * 4, y0])
    start = _State(begin, begin, y0, slope, first, flat, hnp.asarray(0))

    def reach(state: _State, target: Tensor) -> tuple[_State, Tensor]:
        def goes_on(s: _State) -> Tensor:
            return (s.time < target) & (s.steps < options.steps) & (s.time + s.step > s.time)

        state = while_loop(goes_on, lambda s: _stepped(forward, s, options), state._replace(steps=hnp.asarray(0)))
        return state, hnp.where(state.time >= target, _between(state, target), hnp.nan)

    _, rest = scan(reach, start, sign * times[1:])
    return hnp.concat([y0[None], rest])


# --- the adjoint -----------------------------------------------------------------------------------------------------


_solved = custom_vjp(_integrate, nondiff_argnums=(0, 1))


def _forward(rate: Rate, options: _Options, y0: Tensor, times: Tensor, constants: tuple[Tensor, ...]) -> tuple[Tensor, Any]:
    ys = _solved(rate, options, y0, times, constants)
    return ys, (ys, times, constants)


def _backward(rate: Rate, options: _Options, kept: Any, given: Tensor) -> tuple[Any, ...]:
    """The adjoint state, with the sums of the constants' derivatives, is solved backwards from each time to the one before.

    A time moves its own value alone, and the first one all that follow, against the state's rate.
    """
    ys, times, constants = kept
    n = ys.shape[1]
    varying = [i for i, c in enumerate(constants) if c.dtype.kind == "f"]
    sums = [constants[i].reshape((-1,)).astype(ys.dtype) * 0 for i in varying]

    def adjoint(z: Tensor, t: Tensor, *every: Tensor) -> Tensor:
        def of(y: Tensor, some: tuple[Tensor, ...]) -> Tensor:
            whole = list(every)
            for i, c in zip(varying, some, strict=True):
                whole[i] = c
            return rate(y, t, *whole)

        value, pull = vjp(of, z[:n], tuple(every[i] for i in varying))
        by_state, by_constants = pull(z[n : 2 * n])
        return _flat([value, -by_state, *[-c.astype(z.dtype) for c in by_constants]])

    def back(carry: tuple[Tensor, Tensor], x: Any) -> tuple[tuple[Tensor, Tensor], Tensor]:
        state, total = carry
        y, cotangent, later, earlier = x
        by_time = hnp.vdot(rate(y, later, *constants), cotangent)
        z = hnp.concat([y, state + cotangent, total])
        z = _solved(adjoint, options, z, hnp.stack([later, earlier]), constants)[1]
        return (z[n : 2 * n], z[2 * n :]), by_time

    empty = hnp.zeros((0,), dtype=ys.dtype)
    start = (hnp.zeros_like(ys[0]), _flat(sums) if sums else empty)
    (state, total), by_times = scan(back, start, (ys[1:], given[1:], times[1:], times[:-1]), reverse=True)
    first = -hnp.vdot(rate(ys[0], times[0], *constants), state)
    found: list[Any] = [None] * len(constants)
    at = 0
    for i in varying:
        size = constants[i].size
        found[i] = total[at : at + size].reshape(constants[i].shape).astype(constants[i].dtype)
        at += size
    return state + given[0], hnp.concat([first[None], by_times]), tuple(found)


_solved.defvjp(_forward, _backward)
