"""Minimization of functions by quasi-Newton steps (BFGS), as one loop of the compiled program.

The line search bisects and doubles until the step fulfils the weak Wolfe conditions, so that every update keeps the inverse Hessian positive
definite: A. Lewis and M. Overton, *Nonsmooth optimization via quasi-Newton methods*, 2013.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import hologram.numpy as hnp
from hologram import dtypes
from hologram.control.loops import while_loop
from hologram.errors import ArgumentError, ShapeError, UnsupportedError
from hologram.numpy.arguments import as_tensor
from hologram.support.user_lines import located
from hologram.trace.checks import as_function, integer, number
from hologram.trace.tensor import Tensor
from hologram.transform.api import value_and_grad

__all__ = ["OptimizeResults", "minimize"]

DECREASE, CURVATURE = 1e-4, 0.9  # of the Wolfe conditions
CONVERGED, OUT_OF_STEPS, NO_PROGRESS, NOT_FINITE = 0, 1, 2, 3
_OPTIONS = ("gtol", "maxiter", "norm", "line_search_maxiter")


class OptimizeResults(NamedTuple):
    """What :func:`minimize` found.

    - ``x``: the minimum; ``fun``, ``jac``: value and gradient there; ``hess_inv``: the estimate of the inverse Hessian.
    - ``success``: whether the gradient's norm is below ``gtol``; ``status``: 0 for that, 1 where steps ran out, 2 where no step went down any more, 3
      where the function is not finite.
    - ``nfev``, ``njev``, ``nit``: how many values, gradients and steps were computed.

    >>> hg.scipy.optimize.minimize(lambda x: hnp.sum((x - 3.0) ** 2), hnp.zeros(2), method="BFGS").success
    Tensor(True, dtype=bool)
    """

    x: Tensor
    success: Tensor
    status: Tensor
    fun: Tensor
    jac: Tensor
    hess_inv: Tensor
    nfev: Tensor
    njev: Tensor
    nit: Tensor


class _State(NamedTuple):
    x: Tensor
    fun: Tensor
    jac: Tensor
    hess_inv: Tensor
    calls: Tensor
    steps: Tensor
    status: Tensor  # -1 while it goes on


class _Search(NamedTuple):
    step: Tensor
    low: Tensor
    high: Tensor
    fun: Tensor
    jac: Tensor
    calls: Tensor
    done: Tensor


def minimize(
    fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), *, method: str = "BFGS", tol: float | None = None, options: Any = None
) -> OptimizeResults:
    """Minimizes ``fun(x, *args)``, which gives a real scalar, from ``x0`` (n,) on, by BFGS.

    ``tol`` is ``options["gtol"]``, the norm of the gradient at which it ends, 1e-5 by default; ``norm`` is the order of that norm (infinity),
    ``maxiter`` limits steps (200 n), ``line_search_maxiter`` evaluations in one step (30). It works under ``jit`` and ``vmap``, in the precision of
    ``x0``; reverse mode does not go through it. Raises UnsupportedError for another method, ArgumentError for unknown options, ShapeError for an
    ``x0`` that is no vector, or a function that gives no scalar.

    >>> found = hg.scipy.optimize.minimize(lambda x: hnp.sum((x - hnp.asarray([1.0, 2.0])) ** 2), hnp.zeros(2), method="BFGS")
    >>> hnp.round(found.x, 3)
    Tensor([1., 2.], dtype=float32)
    """
    as_function(fun, "minimize")
    if not isinstance(method, str) or method.lower() != "bfgs":
        raise located(UnsupportedError(f"minimize: the method BFGS is there, not {method!r}"))
    if not isinstance(args, tuple):
        raise located(ArgumentError(f"minimize: args is a tuple, not {type(args).__name__}"))
    given = {} if options is None else options
    if not isinstance(given, Mapping) or (unknown := given.keys() - set(_OPTIONS)):
        raise located(ArgumentError(f"minimize: options are {', '.join(_OPTIONS)}, not {sorted(unknown) if isinstance(given, Mapping) else given!r}"))
    start = as_tensor(x0, "minimize")
    start = start if start.dtype.kind == "f" else start.astype(dtypes.default_float)
    if start.ndim != 1:
        raise located(ShapeError(f"minimize: x0 is a vector, not an array of shape {list(start.shape)}"))
    gtol = number(given.get("gtol", 1e-5 if tol is None else tol), "minimize", "gtol")
    limit = integer(given.get("maxiter", 200 * start.shape[0]), "minimize", "maxiter")
    most = integer(given.get("line_search_maxiter", 30), "minimize", "line_search_maxiter")
    order = number(given.get("norm", math.inf), "minimize", "norm")
    return _minimized(lambda x: fun(x, *args), start, gtol, limit, most, order)


def _minimized(fun: Callable[[Tensor], Any], start: Tensor, gtol: float, limit: int, most: int, order: float) -> OptimizeResults:
    both = value_and_grad(fun)
    value, slope = both(start)
    value = value.astype(start.dtype)

    def status_of(value: Tensor, slope: Tensor, steps: Any, stuck: Any) -> Tensor:
        norm = hnp.linalg.norm(slope, ord=order)
        finite = hnp.isfinite(value) & hnp.isfinite(norm)
        going = hnp.where(stuck, NO_PROGRESS, hnp.where(steps >= limit, OUT_OF_STEPS, -1))
        return hnp.where(finite, hnp.where(norm < gtol, CONVERGED, going), NOT_FINITE)

    def step(s: _State) -> _State:
        direction = -hnp.matvec(s.hess_inv, s.jac)
        first = hnp.where(s.steps == 0, hnp.minimum(1.0, 1.0 / hnp.maximum(hnp.linalg.norm(s.jac), 1e-30)), 1.0)
        found = _line_search(both, s, direction, first.astype(s.x.dtype), most)
        moved = found.done & (found.step > 0)
        x = hnp.where(moved, s.x + found.step * direction, s.x)
        value, slope = hnp.where(moved, found.fun, s.fun), hnp.where(moved, found.jac, s.jac)
        updated = _update(s.hess_inv, x - s.x, slope - s.jac, s.steps)
        steps, same = s.steps + 1, hnp.all(x == s.x)
        status = status_of(value, slope, steps, ~moved | same)
        return _State(x, value, slope, updated, s.calls + found.calls, steps, status)

    state = _State(start, value, slope, hnp.eye(start.shape[0], dtype=start.dtype), hnp.asarray(1), hnp.asarray(0), status_of(value, slope, 0, False))
    s = while_loop(lambda s: s.status < 0, step, state)
    return OptimizeResults(s.x, s.status == CONVERGED, s.status, s.fun, s.jac, s.hess_inv, s.calls, s.calls, s.steps)


def _line_search(both: Callable[[Tensor], Any], s: _State, direction: Tensor, first: Tensor, most: int) -> _Search:
    """A step along ``direction`` that goes down enough, to where the slope is less."""
    descent = hnp.vdot(s.jac, direction)

    def look(a: _Search) -> _Search:
        value, slope = both(s.x + a.step * direction)
        value = value.astype(s.fun.dtype)
        short = hnp.vdot(slope, direction) < CURVATURE * descent
        lower = (value <= s.fun + DECREASE * a.step * descent) & hnp.all(hnp.isfinite(slope))
        low, high = hnp.where(lower, a.step, a.low), hnp.where(lower, a.high, a.step)
        done = lower & ~short
        following = hnp.where(hnp.isfinite(high), 0.5 * (low + high), 2.0 * a.step)
        # what goes down is kept, should no step be found that goes to less slope, too
        kept_value, kept_slope = hnp.where(lower, value, a.fun), hnp.where(lower, slope, a.jac)
        return _Search(hnp.where(done, a.step, following), low, high, kept_value, kept_slope, a.calls + 1, done)

    zero = hnp.zeros_like(first)
    start = _Search(first, zero, hnp.full_like(first, hnp.inf), s.fun, s.jac, hnp.asarray(0), hnp.asarray(False))
    found = while_loop(lambda a: ~a.done & (a.calls < most), look, start)
    return found._replace(step=hnp.where(found.done, found.step, found.low), done=hnp.asarray(True))


def _update(inverse: Tensor, step: Tensor, change: Tensor, steps: Tensor) -> Tensor:
    """The inverse Hessian that maps the change of the gradient to the step; the first one is scaled by what is known then."""
    product = hnp.vdot(change, step)
    fits = product > 0
    share = 1.0 / hnp.where(fits, product, 1.0)
    size = product / hnp.where(fits, hnp.vdot(change, change), 1.0)
    inverse = hnp.where(fits & (steps == 0), inverse * size, inverse)
    moved = hnp.matvec(inverse, change)
    curvature = (1.0 + hnp.vdot(change, moved) * share) * share
    updated = inverse + curvature * hnp.outer(step, step) - share * (hnp.outer(moved, step) + hnp.outer(step, moved))
    return hnp.where(fits, updated, inverse)
