"""Convolutions under the names and arguments of ``jax.lax``: axes in any order, strides, padding, and distances between elements of either factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from hologram import numpy as hnp
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.symbolic import Int
from hologram.lax.products import check_precision
from hologram.lax.shapes import cut_or_padded, in_order, integers
from hologram.lax.windows import padtype_to_pads
from hologram.numpy.arguments import array, cast, permuted, reshaped, wrap
from hologram.numpy.products.linear import factors
from hologram.primitives import TABLE
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor
from hologram.transform.nodes import apart, moved
from hologram.transform.rules.convolution import by_input, convolved, turned_round, windowed

__all__ = [
    "ConvDimensionNumbers", "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_patches",
    "conv_transpose", "conv_with_general_padding",
]  # fmt: skip


class ConvDimensionNumbers(NamedTuple):
    """Which axes are which: of the input and the result (batch, channels, space…), of the kernel (output channels, input channels, space…).

    >>> hg.lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 16), ("NHWC", "HWIO", "NHWC")).rhs_spec
    (3, 2, 0, 1)
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def conv_dimension_numbers(lhs_shape: Sequence[Int], rhs_shape: Sequence[Int], dimension_numbers: Any) -> ConvDimensionNumbers:
    """Which axes are which, for shapes of input and kernel: from three texts such as ``("NHWC", "HWIO", "NHWC")``, or None: (N, C, space…).

    The letters of space are any others, the same in all three. Raises ArgumentError for other texts, ShapeError for other numbers of axes.

    >>> hg.lax.conv_dimension_numbers((1, 3, 8), (16, 3, 3), None).lhs_spec
    (0, 1, 2)
    """
    rank = len(lhs_shape)
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if rank != len(rhs_shape) or rank < 2:
        raise located(ShapeError(f"a convolution takes an input and a kernel of as many axes, not {list(lhs_shape)} and {list(rhs_shape)}"))
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    if len(dimension_numbers) != 3 or not all(isinstance(s, str) for s in dimension_numbers):
        raise located(ArgumentError(f"dimension_numbers are three texts such as ('NHWC', 'HWIO', 'NHWC'), or None, not {dimension_numbers!r}"))
    lhs, rhs, out = dimension_numbers
    space = [c for c in rhs if c not in "OI"]
    for text, letters in ((lhs, "NC"), (rhs, "OI"), (out, "NC")):
        if len(text) != rank or sorted(text) != sorted([*letters, *space]) or len(set(text)) != rank:
            raise located(ArgumentError(f"dimension_numbers {dimension_numbers}: {text!r} does not name {rank} axes by {letters!r} and {space}"))
    return ConvDimensionNumbers(*(tuple(t.index(c) for c in [*ls, *space]) for t, ls in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))))


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Tensor:
    """Convolution (a cross-correlation) of images ``lhs`` with a kernel ``rhs``.

    ``dimension_numbers`` is as in :func:`conv_dimension_numbers`, ``padding`` as in :func:`padtype_to_pads`; negative widths cut off. There is one
    stride, and one distance between elements of the input and of the kernel, for each axis of space. Groups of channels, or of the batch, are
    convolved on their own. ``precision``, as that of :func:`dot_general`, says nothing here; ``preferred_element_type`` is that of the result.

    Raises ShapeError where the shapes do not fit, ArgumentError for other options, DTypeError for bools.

    >>> x, w = hnp.ones((1, 5, 5, 2)), hnp.ones((3, 3, 2, 4))
    >>> hg.lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")).shape
    (1, 3, 3, 4)
    """
    what = "conv_general_dilated"
    check_precision(what, precision)
    (x, w), result, weak = factors(what, (lhs, rhs), preferred_element_type)
    if x.dtype.kind == "b":
        raise located(DTypeError(f"{what} takes numbers, not {x.dtype}"))
    numbers = conv_dimension_numbers(x.shape, w.shape, dimension_numbers)
    x, w = permuted(x, numbers.lhs_spec), permuted(w, numbers.rhs_spec)
    rank = len(x.shape) - 2
    steps, base, dilations = (_each(what, v, rank) for v in (window_strides, lhs_dilation, rhs_dilation))
    out = _grouped(what, x, w, feature_group_count, batch_group_count, steps, padding, base, dilations)
    back = [numbers.out_spec.index(i) for i in range(rank + 2)]
    return wrap(array(cast(in_order(wrap(out), back), result), what), weak)


def _each(what: str, values: Any, rank: int) -> tuple[int, ...]:
    given = (1,) * rank if values is None else tuple(integers(values, what, "a number"))
    if len(given) != rank or any(n < 1 for n in given):
        raise located(ShapeError(f"{what}: {list(given)} are not numbers from 1 up for {rank} axes of space"))
    return given


def _grouped(what: str, x: Node, w: Node, channels: Any, batches: Any, steps: Any, padding: Any, base: Any, dilations: Any) -> Node:
    """The result (n, o, space…), for factors (n, c, space…) and (o, c, space…)."""
    parts, batch_parts = integer(channels, what, "feature_group_count"), integer(batches, what, "batch_group_count")
    (n, c, *space), (o, i, *sizes) = x.shape, w.shape
    if min(parts, batch_parts) < 1 or (parts > 1 and batch_parts > 1):
        raise located(ArgumentError(f"{what}: {parts} groups of channels and {batch_parts} of the batch: one of them is 1"))
    if c != i * parts or (parts > 1 and o % parts) or (batch_parts > 1 and (n % batch_parts or o % batch_parts)):
        groups = f"{parts} groups" if batch_parts == 1 else f"{batch_parts} groups of the batch"
        raise located(ShapeError(f"{what}: an input of {n} images with {c} channels, in {groups}, and a kernel of {o} times {i} channels do not fit"))
    count = max(parts, batch_parts)
    if batch_parts > 1:
        x = reshaped(x, (batch_parts, n // batch_parts, c, *space))
    else:
        x = moved(reshaped(x, (n, parts, i, *space)), 1, 0)
    out = _slid(what, x, reshaped(w, (count, o // count, i, *sizes)), steps, padding, base, dilations)
    out = moved(out, 0, 1)
    return reshaped(out, (out.shape[0], o, *out.shape[3:]))


def _slid(what: str, x: Node, w: Node, *windows: Any) -> Node:
    """The convolution of (groups, n, c, space…) and (groups, o, c, sizes…). Parts of complex numbers are images and kernels of one convolution."""
    if not x.dtype.is_complex:
        return _slid_real(what, x, w, *windows)
    images, kernels = (hnp.concat([hnp.real(wrap(f)), hnp.imag(wrap(f))], axis=1) for f in (x, w))
    parts = wrap(_slid_real(what, array(images, what), array(kernels, what), *windows))
    (re, re_im), (im_re, im) = (hnp.split(half, 2, axis=2) for half in hnp.split(parts, 2, axis=1))
    return record(TABLE["complex"], (array(re - im, what), array(re_im + im_re, what)))


def _slid_real(what: str, x: Node, w: Node, steps: Any, padding: Any, base: Any, dilations: Any) -> Node:
    sizes: Any = w.shape[3:]
    spread: list[Any] = [(n - 1) * b + 1 if n != 0 else 0 for n, b in zip(x.shape[3:], base, strict=True)]
    spans = [(k - 1) * d + 1 for k, d in zip(sizes, dilations, strict=True)]
    pads = padtype_to_pads(spread, spans, steps, padding)
    extents = [n + low + high for n, (low, high) in zip(spread, pads, strict=True)]
    if any(k == 0 for k in sizes) or any(isinstance(n, int) and n < span for n, span in zip(extents, spans, strict=True)):
        raise located(ShapeError(f"{what}: no window of {list(sizes)}, {list(dilations)} apart, fits into a padded input of {extents}"))
    if any(b > 1 for b in base) and all(s == 1 for s in steps):  # the transpose of a convolution in strides, which multiplies by no zeros
        first = tuple(span - 1 - low for span, (low, _) in zip(spans, pads, strict=True))
        space = [n - span + 1 for n, span in zip(extents, spans, strict=True)]
        return by_input(x, moved(turned_round(w, len(sizes)), 2, 1), space, base, dilations, first)
    for i, b in enumerate(base):
        x = apart(x, 3 + i, b)
    none: list[Int] = [0] * 3
    return convolved(cut_or_padded(x, [*none, *[low for low, _ in pads]], [*none, *[high for _, high in pads]]), w, steps, dilations)


def conv(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: str, precision: Any = None, preferred_element_type: Any = None) -> Tensor:
    """:func:`conv_general_dilated` of (N, C, space…) and (O, I, space…).

    >>> hg.lax.conv(hnp.ones((1, 1, 4, 4)), hnp.ones((1, 1, 3, 3)), (1, 1), "VALID").shape
    (1, 1, 2, 2)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type)


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Tensor:
    """:func:`conv_general_dilated` of (N, C, space…) and (O, I, space…), with distances between elements.

    >>> x, w = hnp.ones((1, 1, 4)), hnp.ones((1, 1, 3))
    >>> hg.lax.conv_with_general_padding(x, w, (1,), [(1, 1)], (2,), (1,)).shape
    (1, 1, 7)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, None, 1, 1, precision, preferred_element_type)


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Tensor:
    """Transposed convolution: :func:`conv_general_dilated` with ``strides`` between the elements of the input.

    ``"SAME"`` gives extents times strides, ``"VALID"`` all that a kernel reaches; pairs are the padding itself. By default images are (N, space…, C)
    and kernels (space…, I, O). With ``transpose_kernel`` it is the derivative of a convolution by its input: the kernel is turned round, and its
    channels swap. Raises as :func:`conv_general_dilated` does.

    >>> hg.lax.conv_transpose(hnp.ones((1, 4, 2)), hnp.ones((3, 2, 5)), (2,), "SAME").shape
    (1, 8, 5)
    """
    kernel = hnp.asarray(rhs)
    rank = hnp.ndim(lhs) - 2
    letters = "HWD"[:rank] if rank <= 3 else ""
    if dimension_numbers is None and letters:
        dimension_numbers = f"N{letters}C", f"{letters}IO", f"N{letters}C"
    numbers = conv_dimension_numbers(hnp.shape(lhs), kernel.shape, dimension_numbers)
    spans = [(kernel.shape[i] - 1) * d + 1 for i, d in zip(numbers.rhs_spec[2:], _each("conv_transpose", rhs_dilation, rank), strict=True)]
    if isinstance(padding, str):
        padding = [_transposed_pads(k, s, padding) for k, s in zip(spans, _each("conv_transpose", strides, rank), strict=True)]
    if transpose_kernel:
        kernel = hnp.swapaxes(hnp.flip(kernel, axis=numbers.rhs_spec[2:]), *numbers.rhs_spec[:2])
    options = dict(precision=precision, preferred_element_type=preferred_element_type)
    return conv_general_dilated(lhs, kernel, (1,) * rank, padding, strides, rhs_dilation, numbers, **options)


def _transposed_pads(k: int, s: int, name: str) -> tuple[int, int]:
    if name.upper() == "SAME":
        total = k + s - 2
        low = k - 1 if s > k - 1 else -(-total // 2)
    elif name.upper() == "VALID":
        total, low = k + s - 2 + max(k - s, 0), k - 1
    else:
        raise located(ArgumentError(f"conv_transpose: padding is 'SAME', 'VALID', or pairs of integers, not {name!r}"))
    return low, total - low


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Tensor:
    """The windows of images, their elements as channels: input channel by channel, and within it place by place.

    Arguments and errors are those of :func:`conv_general_dilated`, with ``filter_shape`` as the kernel's extents of space.

    >>> hg.lax.conv_general_dilated_patches(hnp.ones((1, 3, 5, 5)), (2, 2), (1, 1), "VALID").shape
    (1, 12, 4, 4)
    """
    what = "conv_general_dilated_patches"
    node = array(lhs, what)
    sizes = tuple(integers(filter_shape, what, "an extent"))
    rank = len(sizes)
    numbers = conv_dimension_numbers(node.shape, (1, 1, *sizes) if dimension_numbers is None else node.shape, dimension_numbers)
    node = permuted(node, numbers.lhs_spec)
    steps, base, dilations = (_each(what, v, rank) for v in (window_strides, lhs_dilation, rhs_dilation))
    for i, b in enumerate(base):
        node = apart(node, 2 + i, b)
    spans = [(k - 1) * d + 1 for k, d in zip(sizes, dilations, strict=True)]
    space: Any = node.shape[2:]
    pads = padtype_to_pads(space, spans, steps, padding)
    node = cut_or_padded(node, [0, 0, *[low for low, _ in pads]], [0, 0, *[high for _, high in pads]])
    seen = windowed(node, sizes, steps, dilations)
    out = wrap(reshaped(seen, (seen.shape[0], seen.shape[1] * math.prod(sizes), *seen.shape[2 + rank :])))
    return in_order(out, [numbers.out_spec.index(i) for i in range(rank + 2)]).astype(preferred_element_type or node.dtype.np)


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Tensor:
    """A convolution whose kernel is another one at each place: ``rhs`` (output channels, elements of a window, places…).

    The elements of a window stand as :func:`conv_general_dilated_patches` gives them. Other arguments and errors are those of
    :func:`conv_general_dilated`; ShapeError where ``rhs`` has not as many elements and places.

    >>> hg.lax.conv_general_dilated_local(hnp.ones((1, 2, 5)), hnp.ones((4, 6, 3)), (1,), "VALID", (3,)).shape
    (1, 4, 3)
    """
    what = "conv_general_dilated_local"
    x, w = hnp.asarray(lhs), hnp.asarray(rhs)
    numbers = conv_dimension_numbers(x.shape, w.shape, dimension_numbers)
    plain = ConvDimensionNumbers(numbers.lhs_spec, numbers.rhs_spec, tuple(range(x.ndim)))
    patches = conv_general_dilated_patches(x, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, plain)
    kernels = hnp.permute_dims(w, numbers.rhs_spec)
    if kernels.shape[1:] != patches.shape[1:]:
        raise located(ShapeError(f"{what}: windows of shape {list(patches.shape[1:])}, and kernels of shape {list(kernels.shape[1:])}"))
    return in_order(hnp.einsum("nc...,oc...->no...", patches, kernels), [numbers.out_spec.index(i) for i in range(x.ndim)])
