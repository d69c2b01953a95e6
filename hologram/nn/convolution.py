"""Convolutions of one, two and three space axes, as in torch.nn.functional: cross-correlations of windows with weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.symbolic import Int, bounds
from hologram.nn.arguments import by_rank, integers, space_format
from hologram.numpy.arguments import array, permuted, reshaped, wrap
from hologram.primitives.windows import window_count
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.operators import promoted
from hologram.trace.tensor import Tensor
from hologram.transform.nodes import padded
from hologram.transform.rules.convolution import by_input, convolved

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


def _convolution(
    what: str,
    rank: int,
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str | None = None,
) -> Tensor:
    """Convolution of images (a cross-correlation): sums over windows of ``x`` by weights ``w``, plus the bias ``b``.

    ``x`` (N, C, H, W), which may lack N, ``w`` (O, C / groups, KH, KW) and ``b`` (O) give (N, O, H', W') in their common type. ``stride``,
    ``padding`` (of zeros, on both sides) and ``dilation`` are integers, or one for each space axis; ``padding`` may be ``"valid"``, which is none,
    or ``"same"``, with which H' = H for a stride of 1. With ``groups`` the channels of ``x`` and of the result are cut in so many parts, each
    convolved on its own. ``data_format`` says how ``x`` and the result lie: ``"NCHW"`` or ``"NHWC"``; weights lie alike in both. narrow floats are
    summed in float32 and rounded once.

    Raises ShapeError where the shapes do not fit or no window does, ArgumentError for other options, DTypeError for complex numbers.

    >>> x = hnp.reshape(hnp.arange(9.0), (1, 3, 3))
    >>> hg.nn.conv2d(x, hnp.ones((1, 1, 2, 2)))
    Tensor([[[ 8., 12.],
             [20., 24.]]], dtype=float32)
    """
    layout = space_format(what, rank, data_format)
    (image, weights), _, weak = _factors(what, rank, x, w)
    steps, dilations = integers(what, "stride", stride, rank, 1), integers(what, "dilation", dilation, rank, 1)
    low, high = _padding(what, rank, padding, weights.shape[2:], steps, dilations)
    image, lacks = layout.channels_first(image)
    parts = _groups(what, groups)
    n, c, *space = image.shape
    o = weights.shape[0]
    if c != weights.shape[1] * parts or not _divides(parts, o):
        raise located(ShapeError(f"{what}: {c} channels in {parts} groups and weights of shape {list(weights.shape)} do not fit"))
    extents = [a + n + b for a, n, b in zip(low, space, high, strict=True)]
    _require_windows(what, extents, weights.shape[2:], steps, dilations)
    image = padded(image, (0, 0, *low), (0, 0, *high))
    grouped = permuted(reshaped(image, (n, parts, weights.shape[1], *extents)), (1, 0, *range(2, 3 + rank)))
    out = convolved(grouped, reshaped(weights, (parts, o // parts, *weights.shape[1:])), steps, dilations)
    return _finished(what, out, b, layout, lacks, weak)


def _transposed(
    what: str,
    rank: int,
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str | None = None,
) -> Tensor:
    """Transposed convolution of images: the transpose of :func:`conv2d` with respect to its input.

    ``x`` (N, C, H, W), which may lack N, ``w`` (C, O / groups, KH, KW) and ``b`` (O) give (N, O, H', W'), where H' is ``(H - 1) * stride - 2 *
    padding + dilation * (KH - 1) + output_padding + 1``; ``output_padding`` is less than the stride or the dilation. The other arguments are those
    of :func:`conv2d`.

    Raises ShapeError where the shapes do not fit, ArgumentError for an ``output_padding`` that is too large.

    >>> x = hnp.asarray([[[1.0, 2.0]]])
    >>> hg.nn.conv_transpose2d(x, hnp.ones((1, 1, 1, 2)), stride=(1, 2))
    Tensor([[[1., 1., 2., 2.]]], dtype=float32)
    """
    layout = space_format(what, rank, data_format)
    (image, weights), _, weak = _factors(what, rank, x, w)
    steps, dilations = integers(what, "stride", stride, rank, 1), integers(what, "dilation", dilation, rank, 1)
    cut, more = integers(what, "padding", padding, rank, 0), integers(what, "output_padding", output_padding, rank, 0)
    if any(m >= max(s, d) for m, s, d in zip(more, steps, dilations, strict=True)):
        raise located(
            ArgumentError(f"{what}: output_padding {list(more)} is smaller than the stride {list(steps)} or the dilation {list(dilations)}")
        )
    image, lacks = layout.channels_first(image)
    parts = _groups(what, groups)
    n, c, *space = image.shape
    o = weights.shape[1]
    if c != weights.shape[0] or not _divides(parts, c):
        raise located(ShapeError(f"{what}: {c} channels in {parts} groups and weights of shape {list(weights.shape)} do not fit"))
    sizes = weights.shape[2:]
    extents = [(q - 1) * s - 2 * p + d * (k - 1) + m + 1 for q, s, p, d, k, m in zip(space, steps, cut, dilations, sizes, more, strict=True)]
    if any((high := bounds(e)[1]) is not None and high < 1 for e in extents):
        raise located(
            ShapeError(f"{what}: nothing is left of an input of space {space} and a kernel of {list(sizes)} within a padding of {list(cut)}")
        )
    grouped = permuted(reshaped(image, (n, parts, c // parts, *space)), (1, 0, *range(2, 3 + rank)))
    out = by_input(grouped, reshaped(weights, (parts, c // parts, o, *sizes)), extents, steps, dilations, cut)
    return _finished(what, out, b, layout, lacks, weak)


conv1d, conv2d, conv3d = by_rank(
    "conv",
    _convolution,
    of_one=">>> hg.nn.conv1d([[1.0, 2.0, 3.0]], hnp.ones((1, 1, 2)))\nTensor([[3., 5.]], dtype=float32)",
    of_three=">>> hg.nn.conv3d(hnp.ones((1, 4, 4, 4)), hnp.ones((2, 1, 3, 3, 3))).shape\n(2, 2, 2, 2)",
)
conv_transpose1d, conv_transpose2d, conv_transpose3d = by_rank(
    "conv_transpose",
    _transposed,
    of_one=">>> hg.nn.conv_transpose1d([[1.0, 2.0]], hnp.ones((1, 1, 2)))\nTensor([[1., 3., 2.]], dtype=float32)",
    of_three=">>> hg.nn.conv_transpose3d(hnp.ones((1, 2, 2, 2)), hnp.ones((1, 1, 2, 2, 2)), stride=2).shape\n(1, 4, 4, 4)",
)


def _factors(what: str, rank: int, x: Any, w: Any) -> Any:
    nodes, dtype, weak = promoted(what, (x, w))
    image, weights = nodes
    if dtype.kind not in "iuf":
        raise located(DTypeError(f"{what} takes integers or real floats, not {dtype.name}"))
    if len(image.shape) not in (rank + 1, rank + 2) or len(weights.shape) != rank + 2:
        raise located(
            ShapeError(
                f"{what}: an input of {rank + 2} axes, or {rank + 1}, and weights of {rank + 2}, not {list(image.shape)} and {list(weights.shape)}"
            )
        )
    return nodes, dtype, weak


def _groups(what: str, groups: Any) -> int:
    n = integer(groups, what, "groups")
    if n < 1:
        raise located(ArgumentError(f"{what}: groups is at least 1, not {n}"))
    return n


def _divides(parts: int, n: Int) -> bool:
    return isinstance(n, int) and n % parts == 0 if parts > 1 else True


def _padding(
    what: str, rank: int, padding: Any, sizes: Sequence[Int], steps: Sequence[int], dilations: Sequence[int]
) -> tuple[Sequence[Int], Sequence[Int]]:
    """Widths before and after each space axis."""
    if not isinstance(padding, str):
        widths = integers(what, "padding", padding, rank, 0)
        return widths, widths
    if padding == "valid":
        return (0,) * rank, (0,) * rank
    if padding != "same":
        raise located(ArgumentError(f"{what}: padding is integers, 'same' or 'valid', not {padding!r}"))
    if any(s != 1 for s in steps):
        raise located(ArgumentError(f"{what}: padding 'same' takes a stride of 1, not {list(steps)}"))
    total = [d * (k - 1) for d, k in zip(dilations, sizes, strict=True)]
    low = [t // 2 for t in total]
    return low, [t - a for t, a in zip(total, low, strict=True)]


def _require_windows(what: str, space: Sequence[Int], sizes: Sequence[Int], steps: Sequence[int], dilations: Sequence[int]) -> None:
    for t in zip(space, sizes, steps, dilations, strict=True):
        high = bounds(window_count(*t))[1]
        if t[1] == 0 or high is not None and high < 1:
            raise located(
                ShapeError(f"{what}: no window of {list(sizes)} elements, {list(dilations)} apart, fits into a padded input of {list(space)}")
            )


def _finished(what: str, out: Node, b: Any, layout: Any, lacks: bool, weak: bool) -> Tensor:
    """The result (groups, n, o, space…) as the caller wants it, with the bias added."""
    groups, n, o, *space = out.shape
    together = reshaped(permuted(out, (1, 0, *range(2, len(out.shape)))), (n, groups * o, *space))
    y = wrap(layout.restored(together, lacks), weak)
    if b is None:
        return y
    bias = array(b, what)
    if bias.shape != (groups * o,):
        raise located(ShapeError(f"{what}: a bias of shape {list(bias.shape)} for {groups * o} channels"))
    return y + wrap(reshaped(bias, layout.along_channels(groups * o)))
