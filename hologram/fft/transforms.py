"""Transforms along one axis (``n`` elements of it), along several (``s`` elements of ``axes``), and along the last two.

An axis is cut to the wanted number of elements, or filled up with zeros. ``norm`` is ``backward``, which divides inverse transforms by the
number of elements, ``forward``, which divides the others, or ``ortho``, which divides each by its root. Raises ShapeError for axes that are not
there and for transforms of no elements, DTypeError for narrow floats and, in ``rfft`` and its like, complex numbers, ArgumentError for another
norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hologram.primitives.host.fourier as rows
from hologram import dtypes
from hologram.control.tracing import Type, emit
from hologram.errors import DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.ir.symbolic import Expr, Int, floordiv
from hologram.numpy.arguments import array, axis_of
from hologram.numpy.complexes import conjugated
from hologram.primitives.movement import pad
from hologram.support.user_lines import located
from hologram.trace.checks import choice, integer, items
from hologram.trace.decisions import decided
from hologram.trace.operators import node_of, wrap
from hologram.trace.recorder import cast_node, constant, plain, record
from hologram.trace.tensor import Tensor
from hologram.transform.nodes import along

__all__ = [
    "fft", "fft2", "fftn", "hfft", "ifft", "ifft2", "ifftn", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip

OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


# --- arguments -------------------------------------------------------------------------------------------------------


def _norm(norm: Any, what: str) -> str:
    return "backward" if norm is None else choice(norm, what, "norm", OPPOSITE)


def _operand(x: Any, what: str, kind: str) -> Node:
    """``x`` as a real (``f``) or complex (``c``) node."""
    node = array(x, what)
    dtype = dtypes.to_inexact(node.dtype)
    if dtype is not node.dtype and dtype.is_narrow_float:  # integers, where floats without a type are narrow
        dtype = dtypes.float32
    if dtype.is_narrow_float:
        raise located(DTypeError(f"{what} does not take {dtype}: cast to float32"))
    if kind == "f" and dtype.is_complex:
        raise located(DTypeError(f"{what} takes real numbers, not {dtype}"))
    if kind == "c" and not dtype.is_complex:
        dtype = dtypes.complex128 if dtype is dtypes.float64 else dtypes.complex64
    return cast_node(node, dtype)


def _axes(x: Node, s: Any, axes: Any, what: str, may_be_none: bool = False) -> tuple[tuple[int, ...], list[Int | None]]:
    """The axes, and how many elements each is to have, None for those that it has. ``s`` without ``axes`` is of the last ones."""
    ndim = len(x.shape)
    asked = None if s is None else items(s, what, "sizes")
    if axes is None:
        axes = range(ndim - len(asked) if asked is not None else 0, ndim)
    chosen = tuple(axis_of(a, ndim, what) for a in items(axes, what, "axes"))
    if not (chosen or may_be_none) or len(set(chosen)) != len(chosen):
        raise located(ShapeError(f"{what}: axes {list(chosen)} of shape {list(x.shape)}: {'' if may_be_none else 'at least one, and '}none twice"))
    sizes: list[Int | None] = [None] * len(chosen) if asked is None else [None if n is None else _elements(n, what) for n in asked]
    if len(sizes) != len(chosen):
        raise located(ShapeError(f"{what}: {len(sizes)} sizes for {len(chosen)} axes"))
    return chosen, sizes


def elements(n: Any, what: str) -> int:
    """A number of elements of a transform. Raises ShapeError where it is below 1."""
    found = integer(n, what, "a number of elements")
    if found < 1:
        raise located(ShapeError(f"{what}: no transform of {found} elements"))
    return found


def _elements(n: Any, what: str) -> Int:
    """The same, of symbolic ones too."""
    return plain(n) if isinstance(n, Expr) and decided(n - 1) else elements(n, what)


def _resized(x: Node, axis: int, n: Int | None) -> Node:
    """``x`` with ``n`` elements along ``axis``."""
    have = x.shape[axis]
    if n is None or n == have:
        return x
    if not decided(n - have):
        return along(x, axis, 0, n)
    high = tuple(n - have if i == axis else 0 for i in range(len(x.shape)))
    return record(pad, (x, constant(0, x.dtype)), ((0,) * len(x.shape), high))


def _run(op: Op, x: Node, *attrs: Any) -> Tensor:
    assert op.results is not None
    try:
        ((shape, dtype),) = op.results((x,), attrs)
    except (ShapeError, DTypeError) as e:
        raise located(e) from None
    (out,) = emit(op, (x,), attrs, [Type(shape, dtype, False)])
    return out


# --- the three rows --------------------------------------------------------------------------------------------------


def _complex(what: str, x: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Tensor:
    node, scale = _operand(x, what, "c"), _norm(norm, what)
    chosen, sizes = _axes(node, s, axes, what, may_be_none=True)
    for axis, n in zip(chosen, sizes, strict=True):
        node = _resized(node, axis, n)
    return _run(rows.fft, node, chosen, inverse, scale) if chosen else wrap(node)


def _from_real(what: str, x: Any, s: Any, axes: Any, norm: str) -> Tensor:
    node = _operand(x, what, "f")
    chosen, sizes = _axes(node, s, axes, what)
    for axis, n in zip(chosen, sizes, strict=True):
        node = _resized(node, axis, n)
    return _run(rows.rfft, node, chosen, norm)


def _to_real(what: str, node: Node, s: Any, axes: Any, norm: str) -> Tensor:
    chosen, sizes = _axes(node, s, axes, what)
    last = sizes[-1] if sizes[-1] is not None else 2 * (node.shape[chosen[-1]] - 1)
    if not decided(last - 1):
        raise located(ShapeError(f"{what}: no transform of {last} elements"))
    half = floordiv(last, 2) + 1
    for axis, n in zip(chosen, [*sizes[:-1], half], strict=True):
        node = _resized(node, axis, n)
    return _run(rows.irfft, node, chosen, last, norm)


def _one(n: Any) -> Sequence[Any] | None:
    return None if n is None else (n,)


# --- one axis --------------------------------------------------------------------------------------------------------


def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """Discrete Fourier transform along ``axis``: ``yₖ = Σⱼ xⱼ exp(-2πi jk/n)``.

    Complex, in the precision of ``x``; integers become complex64. ``n`` cuts the axis, or fills it with zeros. ``norm``: ``backward`` divides the
    inverse by n, ``forward`` this transform, ``ortho`` both by √n. Raises ShapeError for no elements, ArgumentError for another norm. So do all
    transforms.

    >>> hg.fft.fft([1.0, 0.0, -1.0, 0.0])
    Tensor([0.+0.j, 2.+0.j, 0.+0.j, 2.+0.j], dtype=complex64)
    """
    return _complex("fft", x, _one(n), (axis,), norm, False)


def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """Inverse discrete Fourier transform along ``axis``: the inverse of :func:`fft`, whose arguments it takes.

    >>> hg.fft.ifft([0.0, 2.0, 0.0, 2.0])
    Tensor([ 1.+0.j,  0.+0.j, -1.+0.j,  0.+0.j], dtype=complex64)
    """
    return _complex("ifft", x, _one(n), (axis,), norm, True)


def rfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """Discrete Fourier transform of a real array along ``axis``: its first n // 2 + 1 elements, of which the others are conjugates.

    Other arguments, types and errors are those of :func:`fft`; DTypeError for complex numbers.

    >>> hg.fft.rfft([1.0, 0.0, -1.0, 0.0])
    Tensor([0.+0.j, 2.+0.j, 0.+0.j], dtype=complex64)
    """
    return _from_real("rfft", x, _one(n), (axis,), _norm(norm, "rfft"))


def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """Inverse of :func:`rfft`: ``n`` real elements, by default 2 (m - 1) for m that are given.

    Other arguments and errors are those of :func:`fft`.

    >>> hg.fft.irfft([0.0, 2.0, 0.0])
    Tensor([ 1.,  0., -1.,  0.], dtype=float32)
    """
    return _to_real("irfft", _operand(x, "irfft", "c"), _one(n), (axis,), _norm(norm, "irfft"))


def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """Real transform, of ``n`` elements, of an array of which ``x`` is the first half and the other half holds conjugates.

    ``n`` is by default 2 (m - 1) for m that are given. Other arguments and errors are those of :func:`fft`.

    >>> hg.fft.hfft([0.0, 1.0, 0.0])
    Tensor([ 2.,  0., -2.,  0.], dtype=float32)
    """
    return _to_real("hfft", conjugated(_operand(x, "hfft", "c")), _one(n), (axis,), OPPOSITE[_norm(norm, "hfft")])


def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """Inverse of :func:`hfft`, of a real array: n // 2 + 1 complex elements. Arguments and errors are those of :func:`rfft`.

    >>> hg.fft.ihfft([2.0, 0.0, -2.0, 0.0])
    Tensor([0.-0.j, 1.-0.j, 0.-0.j], dtype=complex64)
    """
    return wrap(conjugated(node_of(_from_real("ihfft", x, _one(n), (axis,), OPPOSITE[_norm(norm, "ihfft")]))))


# --- several axes ----------------------------------------------------------------------------------------------------


def fftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = "backward") -> Tensor:
    """Discrete Fourier transform along several axes: :func:`fft` along each of ``axes``, by default all, or the last as many as ``s`` has sizes.

    ``s`` cuts the axes, or fills them with zeros. ``norm``, types and errors are those of :func:`fft`.

    >>> hg.fft.fftn([[1.0, 1.0], [1.0, 1.0]])
    Tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _complex("fftn", x, s, axes, norm, False)


def ifftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = "backward") -> Tensor:
    """Inverse discrete Fourier transform along several axes: the inverse of :func:`fftn`, whose arguments it takes.

    >>> hg.fft.ifftn([[4.0, 0.0], [0.0, 0.0]])
    Tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _complex("ifftn", x, s, axes, norm, True)


def rfftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = "backward") -> Tensor:
    """Discrete Fourier transform of a real array along several axes: :func:`rfft` along the last of ``axes``, :func:`fft` along the others.

    Arguments are those of :func:`fftn`; DTypeError for complex numbers.

    >>> hg.fft.rfftn([[1.0, 1.0], [1.0, 1.0]]).shape
    (2, 2)
    """
    return _from_real("rfftn", x, s, axes, _norm(norm, "rfftn"))


def irfftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = "backward") -> Tensor:
    """Inverse of :func:`rfftn`: a real array. ``s`` says how many elements it has along the last axis, by default 2 (m - 1) for m that are given.

    >>> hg.fft.irfftn([[4.0, 0.0], [0.0, 0.0]])
    Tensor([[1., 1.],
            [1., 1.]], dtype=float32)
    """
    return _to_real("irfftn", _operand(x, "irfftn", "c"), s, axes, _norm(norm, "irfftn"))


def fft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str | None = "backward") -> Tensor:
    """Discrete Fourier transform along two axes, by default the last: :func:`fftn` there.

    >>> hg.fft.fft2([[1.0, 2.0], [3.0, 4.0]])
    Tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return _complex("fft2", x, s, axes, norm, False)


def ifft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str | None = "backward") -> Tensor:
    """Inverse discrete Fourier transform along two axes: the inverse of :func:`fft2`.

    >>> hg.fft.ifft2([[10.0, -2.0], [-4.0, 0.0]])
    Tensor([[1.+0.j, 2.+0.j],
            [3.+0.j, 4.+0.j]], dtype=complex64)
    """
    return _complex("ifft2", x, s, axes, norm, True)


def rfft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str | None = "backward") -> Tensor:
    """Discrete Fourier transform of a real array along two axes, by default the last: :func:`rfftn` there.

    >>> hg.fft.rfft2([[1.0, 2.0], [3.0, 4.0]])
    Tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return _from_real("rfft2", x, s, axes, _norm(norm, "rfft2"))


def irfft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str | None = "backward") -> Tensor:
    """Inverse of :func:`rfft2`: a real array.

    >>> hg.fft.irfft2([[10.0, -2.0], [-4.0, 0.0]])
    Tensor([[1., 2.],
            [3., 4.]], dtype=float32)
    """
    return _to_real("irfft2", _operand(x, "irfft2", "c"), s, axes, _norm(norm, "irfft2"))
