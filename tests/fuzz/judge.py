"""Whether two results agree: in every bit, or as far as rounding lets them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hologram import dtypes

from .meaning import epsilon

ALLOWED = 10.0  # times how far interpretations with rounding moved at random lie apart
UNITS = 24.0  # in the last place of a result, always


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) if dtypes.of(x.dtype).kind in "fc" else x


def differ_in_bits(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where bits differ; NaNs are one class."""
    if want.dtype.kind == "c":
        return differ_in_bits(got.real, want.real) | differ_in_bits(got.imag, want.imag)
    if dtypes.of(want.dtype).kind != "f":
        return np.asarray(got != want)
    with np.errstate(all="ignore"):
        same = (got == want) & (np.signbit(got) == np.signbit(want))
        return np.asarray(~(same | (np.isnan(got) & np.isnan(want))))


def differ_beyond(
    got: np.ndarray, want: np.ndarray, trials: Sequence[np.ndarray], units: float = UNITS, e: float | None = None, norms: bool = False
) -> np.ndarray:
    """Where ``got`` lies further from ``want`` than rounding explains: than ``trials`` do, several times over. Routines that bound the ``norms`` of
    their errors spread them over all elements: what any element of a trial varies by is allowed to each."""
    if dtypes.of(want.dtype).kind not in "fc" and dtypes.of(got.dtype).kind not in "fc":
        wrong = np.asarray(got != want)
        for t in trials:
            wrong = wrong & (t == want)  # an integer that varies says nothing
        return wrong
    g, w = _wide(np.asarray(got)), _wide(np.asarray(want))
    e = max(epsilon(want.dtype), epsilon(got.dtype)) if e is None else e
    with np.errstate(all="ignore"):
        apart = np.zeros(w.shape)
        unsettled = np.zeros(w.shape, bool)
        for t in trials:
            t = _wide(t)
            apart = np.maximum(apart, np.nan_to_num(np.abs(t - w), nan=0.0, posinf=0.0))
            unsettled |= np.isfinite(t) != np.isfinite(w)
            unsettled |= ~np.isfinite(w) & ~((t == w) | (np.isnan(t) & np.isnan(w)))
        if norms and apart.size:
            apart = np.full(w.shape, np.max(apart))
        tiny = 4 * float(np.finfo(np.float32).tiny) if e > 1e-12 else 4 * float(np.finfo(np.float64).tiny)
        tiny = 2.0**-22 if want.dtype == np.float16 or got.dtype == np.float16 else tiny
        bound = ALLOWED * apart + units * e * np.abs(w) + tiny
        same = (g == w) | (np.isnan(g) & np.isnan(w))
        if w.dtype.kind == "c":
            same |= (np.isnan(g.real) | np.isnan(g.imag)) & (np.isnan(w.real) | np.isnan(w.imag))
            same |= ~(np.isfinite(g.real) & np.isfinite(g.imag)) & ~(np.isfinite(w.real) & np.isfinite(w.imag))
        near = np.abs(g - w) <= bound
        # just below and just above the end of the range
        end = _largest(want.dtype)
        edge = (np.isinf(g) ^ np.isinf(w)) & (np.minimum(np.abs(g), np.abs(w)) > 0.9 * end)
        return np.asarray(~(same | near | unsettled | edge))


def _largest(dtype: Any) -> float:
    d = dtypes.of(dtype)
    d = dtypes.real_of(d) if d.is_complex else d
    return d.format.largest if d.is_float else 1.7e308


Trials = Callable[[], Sequence[Sequence[Any]]]


class Skipped(Exception):
    """The executor has no meaning for the case, and why."""


class Mismatch(Exception):
    """Two executors that do not agree."""

    def __init__(self, what: str, output: int, got: np.ndarray, want: np.ndarray, wrong: np.ndarray | None) -> None:
        self.output, self.got, self.want, self.wrong = output, got, want, wrong
        if wrong is None:
            text = f"{what}: output {output} is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        else:
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            text = f"{what}: output {output}: {int(wrong.sum())} of {wrong.size} differ; at {list(at)} {got[at]!r}, not {want[at]!r}"
        super().__init__(text)


def same_bits(what: str, got: Sequence[Any], want: Sequence[Any]) -> None:
    """Raises Mismatch unless every bit agrees."""
    for i, (g, w) in enumerate(zip(_arrays(got), _arrays(want), strict=True)):
        if g.shape != w.shape or g.dtype != w.dtype:
            raise Mismatch(what, i, g, w, None)
        wrong = differ_in_bits(g, w)
        if wrong.any():
            raise Mismatch(what, i, g, w, wrong)


def near(what: str, got: Sequence[Any], want: Sequence[Any], trials: Trials, units: float = UNITS, ends: bool = True, norms: bool = False) -> None:
    """Raises Mismatch where results differ by more than rounding explains; ``trials`` is called where they differ at all.

    Without ``ends`` nothing is asked where one of the two is not finite: numbers near the end of the range were added in some order.
    """
    moved: Sequence[Sequence[Any]] | None = None
    for i, (g, w) in enumerate(zip(_arrays(got), _arrays(want), strict=True)):
        if g.shape != w.shape or g.dtype != w.dtype:
            raise Mismatch(what, i, g, w, None)
        if not differ_beyond(g, w, (), units).any():
            continue
        moved = trials() if moved is None else moved
        wrong = differ_beyond(g, w, [t[i] for t in moved], units, norms=norms)
        if dtypes.of(g.dtype).kind in "fc":
            lost = ~np.isfinite(g), ~np.isfinite(w)
            wrong &= ~(lost[0] & lost[1] if ends else lost[0] | lost[1])
        if wrong.any():
            raise Mismatch(what, i, g, w, wrong)


def _arrays(xs: Sequence[Any]) -> list[np.ndarray]:
    return [np.asarray(x) for x in xs]
