"""Tensors over buffers: a shape, strides and an offset, in elements. Views share the buffer, nothing is copied unless a name says so."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from hologram.errors import AxisOutOfRange, IndexOutOfRange, ShapeError
from hologram.ir.strides import Strided, contiguous_strides
from hologram.sdk import ops
from hologram.sdk.arguments import integer
from hologram.sdk.buffer import Buffer, handles
from hologram.sdk.executor import Executor
from hologram.support.user_lines import located

Ints = tuple[int, ...]
MAX_AXES = 64  # NumPy's limit


class StridedTensor:
    """A view of a buffer as an array: element ``i`` stands ``offset + sum(i * strides)`` elements from its start.

    Axes are numbered from 0. Raises ShapeError, AxisOutOfRange and IndexOutOfRange, which name the view and what was expected.
    """

    __slots__ = ("buffer", "shape", "strides", "offset", "_handle")

    def __init__(self, buffer: Buffer, shape: Sequence[int], strides: Sequence[int] | None = None, offset: int = 0) -> None:
        """``strides`` None: C order. Raises ShapeError where elements would lie outside of the buffer."""
        self.buffer, self.shape, self.offset = buffer, _counts(shape, "shape"), offset
        self.strides = contiguous_strides(self.shape) if strides is None else _counts(strides, "strides")
        if len(self.strides) != len(self.shape):
            raise located(ShapeError(f"a tensor of shape {list(self.shape)} has {len(self.shape)} strides, not {len(self.strides)}"))
        if len(self.shape) > MAX_AXES or math.prod(max(n, 1) for n in self.shape) * buffer.dtype.itemsize > sys.maxsize:
            raise located(ShapeError(f"a tensor has up to {MAX_AXES} axes, and fewer elements than {list(self.shape)}"))
        if self.numel and (last := self._geometry.last) >= buffer.size:
            raise located(
                ShapeError(f"shape {list(self.shape)} with strides {list(self.strides)} ends at element {last} of a buffer of {buffer.size}")
            )
        self._handle = next(handles)

    @property
    def handle(self) -> int:
        """A number that no other executor, buffer or tensor of this process has."""
        return self._handle

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements follow each other in C order. Strides of axes of one element do not matter."""
        return self._geometry.is_contiguous

    def to_numpy(self) -> np.ndarray:
        """The elements as an array over the same memory. Raises FreedBufferError."""
        flat = self.buffer.to_numpy()
        size = flat.itemsize
        steps = [min(s, flat.size) * size for s in self.strides]  # no element is further on: a larger stride is one that nothing steps by
        return np.ndarray(self.shape, flat.dtype, flat, self.offset * size if self.numel else 0, steps)

    # --- views ---------------------------------------------------------------------------------------------------------

    @property
    def _geometry(self) -> Strided:
        return Strided(self.shape, self.strides, self.offset)

    def _view(self, of: Strided) -> StridedTensor:
        return StridedTensor(self.buffer, of.shape, of.strides, of.offset)

    def _axis(self, dim: Any, what: str) -> int:
        axis = integer(dim, what, "dim")
        if not 0 <= axis < self.ndim:
            raise located(AxisOutOfRange(f"{what}: dim {axis} of a tensor with {self.ndim} axes"))
        return axis

    def permute(self, order: Sequence[int]) -> StridedTensor:
        """Axis ``i`` of the view is axis ``order[i]``."""
        if sorted(order) != list(range(self.ndim)):
            raise located(ShapeError(f"permute: {list(order)} does not name the {self.ndim} axes once each"))
        return self._view(self._geometry.permuted(order))

    def transpose(self) -> StridedTensor:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise located(ShapeError(f"transpose takes a matrix, not a tensor of shape {list(self.shape)}: use permute"))
        return self.permute((1, 0))

    def select(self, dim: int, index: int) -> StridedTensor:
        """The elements at one index of an axis, which vanishes."""
        axis, i = self._axis(dim, "select"), integer(index, "select", "index")
        if not 0 <= i < self.shape[axis]:
            raise located(IndexOutOfRange(f"select: index {i} of axis {axis}, which has {self.shape[axis]} elements"))
        return self._view(self._geometry.selected(axis, i))

    def narrow(self, dim: int, start: int, length: int) -> StridedTensor:
        """``length`` elements of an axis from ``start`` on."""
        return self._cut("narrow", dim, start, integer(start, "narrow", "start") + integer(length, "narrow", "length"), 1)

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> StridedTensor:
        """The elements ``start, start + step, …`` of an axis before ``end``."""
        return self._cut("slice", dim, start, end, step)

    def _cut(self, what: str, dim: Any, start: Any, end: Any, step: Any) -> StridedTensor:
        axis = self._axis(dim, what)
        first, stop, by = (integer(x, what, name) for x, name in ((start, "start"), (end, "end"), (step, "step")))
        if not 0 <= first <= stop <= self.shape[axis] or by < 1:
            raise located(IndexOutOfRange(f"{what}: {first} to {stop} in steps of {by} on axis {axis}, which has {self.shape[axis]} elements"))
        return self._view(self._geometry.sliced(axis, first, stop, by))

    def view_1d(self) -> StridedTensor:
        """All elements on one axis. Raises ShapeError where they do not follow each other."""
        if not self.is_contiguous:
            raise located(ShapeError(f"view_1d: the elements of shape {list(self.shape)} with strides {list(self.strides)} do not follow each other"))
        return self._view(Strided((self.numel,), (1,), self.offset))

    # --- what may copy -------------------------------------------------------------------------------------------------

    def contiguous(self, executor: Executor) -> StridedTensor:
        """The tensor itself where its elements follow each other, else a copy in a buffer of the executor."""
        if self.is_contiguous:
            return self
        copy = StridedTensor(executor.allocate(self.numel, self.buffer.dtype), self.shape)
        np.copyto(copy.to_numpy(), self.to_numpy())
        return copy

    def reshape(self, executor: Executor, shape: Sequence[int]) -> StridedTensor:
        """The elements in C order in another shape, copied only where they do not follow each other."""
        if math.prod(_counts(shape, "shape")) != self.numel:
            raise located(ShapeError(f"reshape: {self.numel} elements of shape {list(self.shape)} do not fill {list(shape)}"))
        whole = self.contiguous(executor)
        return StridedTensor(whole.buffer, shape, None, whole.offset)

    def matmul(self, executor: Executor, other: StridedTensor) -> StridedTensor:
        """The product of two matrices in a buffer of the executor."""
        if self.ndim != 2 or other.ndim != 2 or self.shape[1] != other.shape[0] or 0 in self.shape + other.shape:
            raise located(ShapeError(f"matmul takes matrices (m, k) and (k, n), not {list(self.shape)} and {list(other.shape)}"))
        (m, k), n = self.shape, other.shape[1]
        out = executor.allocate(m * n, self.buffer.dtype)
        ops.gemm(executor, self._packed(executor), other._packed(executor), out, m, n, k)
        return StridedTensor(out, (m, n))

    def _packed(self, executor: Executor) -> Buffer:
        """A buffer that starts with the elements in C order."""
        whole = self.contiguous(executor)
        return whole.buffer if whole.offset == 0 else Buffer.wrap(whole.to_numpy())


def broadcast_shapes(a: Sequence[int], b: Sequence[int]) -> Ints:
    """The common shape of two, by NumPy's rule. Raises ShapeError where there is none."""
    pairs = list(zip_longest(reversed(_counts(a, "shape")), reversed(_counts(b, "shape")), fillvalue=1))
    if any(n != m and 1 not in (n, m) for n, m in pairs):
        raise located(ShapeError(f"shapes {list(a)} and {list(b)} do not broadcast"))
    return tuple(m if n == 1 else n for n, m in reversed(pairs))


def _counts(values: Sequence[int], name: str) -> Ints:
    found = tuple(values)
    if not all(type(n) is int and n >= 0 for n in found):
        raise located(ShapeError(f"{name} holds integers from 0 up, not {list(found)}"))
    return found
