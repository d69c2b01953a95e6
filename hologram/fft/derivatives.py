"""Derivatives and stacks of the rows of :mod:`hologram.primitives.host.fourier`: transforms are linear.

The matrix of ``fft`` is symmetric, so it is its own transpose. ``rfft`` is ``fft`` of real numbers, cut: its transpose fills up with zeros,
transforms and takes the real part. ``irfft`` takes the real part of a sum in which all but the elements without a partner count twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hologram.numpy as hnp
import hologram.primitives.host.fourier as rows
from hologram.control.replay import result
from hologram.fft.transforms import OPPOSITE
from hologram.ir.node import Node
from hologram.ir.op import Op, transforms
from hologram.ir.symbolic import Int
from hologram.trace.operators import node_of, wrap
from hologram.trace.recorder import record
from hologram.trace.symbolic_extent import extent
from hologram.transform.nodes import padded

Results = tuple[Node | None, ...]


def _linear(op: Op) -> Callable[..., Results]:
    def jvp(tangents: Sequence[Node | None], out: Node, x: Node, *attrs: Any) -> Results:
        (t,) = tangents
        assert t is not None
        return (result(record(op, (t,), attrs), 0, out),)

    return jvp


def _fft_transpose(cotangent: Results, linear: Sequence[bool], x: Node, *attrs: Any) -> Results:
    (c,) = cotangent
    assert c is not None
    return (result(record(rows.fft, (c,), attrs), 0, x),)


def _rfft_transpose(cotangent: Results, linear: Sequence[bool], x: Node, axes: tuple[int, ...], norm: str) -> Results:
    (c,) = cotangent
    assert c is not None
    missing = x.shape[axes[-1]] - c.shape[axes[-1]]
    whole = padded(c, (0,) * len(x.shape), [missing if i == axes[-1] else 0 for i in range(len(x.shape))])
    return (node_of(hnp.real(wrap(result(record(rows.fft, (whole,), (axes, False, norm)), 0, whole)))),)


def _irfft_transpose(cotangent: Results, linear: Sequence[bool], x: Node, axes: tuple[int, ...], n: Int, norm: str) -> Results:
    (c,) = cotangent
    assert c is not None
    half = wrap(result(record(rows.rfft, (c,), (axes, OPPOSITE[norm])), 0, x))
    places = hnp.arange(x.shape[axes[-1]])
    twice = hnp.where((places == 0) | (2 * places == extent(n)), 1.0, 2.0).astype(c.dtype.np)
    twice = twice.reshape((-1,) + (1,) * (len(x.shape) - 1 - axes[-1]))
    return (node_of(hnp.conj(half * twice)),)


def _batch(op: Op) -> Callable[..., Node]:
    def batch(size: Int, batched: Sequence[bool], x: Node, axes: tuple[int, ...], *attrs: Any) -> Node:
        return record(op, (x,), (tuple(a + 1 for a in axes), *attrs))

    return batch


transforms(rows.fft, jvp=_linear(rows.fft), transpose=_fft_transpose, batch=_batch(rows.fft))
transforms(rows.rfft, jvp=_linear(rows.rfft), transpose=_rfft_transpose, batch=_batch(rows.rfft))
transforms(rows.irfft, jvp=_linear(rows.irfft), transpose=_irfft_transpose, batch=_batch(rows.irfft))
