"""Rotations of space, ``Rotation``, and what is between them, ``Slerp``: SciPy's names, for arrays that are traced, differentiated and stacked.

A rotation is a unit quaternion ``(x, y, z, w)``; products are Hamilton's, and ``-q`` is the same rotation as ``q``. Angles of Euler are found as
E. Bernardes and S. Viollet do, *Quaternion to Euler angles conversion*, 2022.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import hologram.numpy as hnp
from hologram import dtypes, random
from hologram.errors import ArgumentError, ShapeError
from hologram.linalg import decompositions
from hologram.numpy.arguments import element_type
from hologram.scipy.linalg.arguments import inexact
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.checks import integer, items
from hologram.trace.tensor import Tensor

__all__ = ["Rotation", "Slerp"]

AXES = {"x": 0, "y": 1, "z": 2}
DEGENERATE = 1e-7  # the middle angle of Euler below which the others are one


# --- quaternions -----------------------------------------------------------------------------------------------------


def _vectors(x: Any, size: int, what: str) -> Tensor:
    t = inexact(x, what)
    if t.shape[-1:] != (size,):
        raise located(ShapeError(f"{what}: arrays of shape (…, {size}) are wanted, not {list(t.shape)}"))
    return t


def _length(x: Tensor) -> Tensor:
    """Lengths (…, 1), with a gradient of 0 at 0."""
    square = hnp.sum(x * x, axis=-1, keepdims=True)
    there = square > 0
    return hnp.where(there, hnp.sqrt(hnp.where(there, square, 1)), 0)


def _unit(q: Tensor) -> Tensor:
    return q / _length(q)


def _product(p: Tensor, q: Tensor) -> Tensor:
    a, b, u, v = p[..., 3:], q[..., 3:], p[..., :3], q[..., :3]
    u, v = hnp.broadcast_arrays(u, v)
    return _unit(hnp.concat([a * v + b * u + hnp.cross(u, v), a * b - hnp.sum(u * v, axis=-1, keepdims=True)], axis=-1))


def _upright(q: Tensor) -> Tensor:
    """The same rotation, of a quaternion whose real part is not negative."""
    return hnp.where(q[..., 3:] < 0, -q, q)


def _of_matrix(m: Tensor) -> Tensor:
    """By the largest of four candidates, each of which is a multiple of the quaternion."""
    d, trace = [m[..., i, i] for i in range(3)], m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2]
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts: list[Any] = [None] * 4
        parts[i], parts[j], parts[k] = 1 - trace + 2 * d[i], m[..., j, i] + m[..., i, j], m[..., k, i] + m[..., i, k]
        parts[3] = m[..., k, j] - m[..., j, k]
        candidates.append(hnp.stack(parts, axis=-1))
    skew = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1], 1 + trace]
    candidates.append(hnp.stack(skew, axis=-1))
    best = hnp.argmax(hnp.stack([*d, trace], axis=-1), axis=-1)[..., None]
    found = candidates[3]
    for i in range(3):
        found = hnp.where(best == i, candidates[i], found)
    return _unit(found)


def _matrix_of(q: Tensor) -> Tensor:
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return hnp.stack([hnp.stack(r, axis=-1) for r in rows], axis=-2)


def _of_rotvec(v: Tensor) -> Tensor:
    angle = _length(v)
    small = angle < 1e-3
    square = angle * angle
    scale = hnp.where(small, 0.5 - square / 48 + square * square / 3840, hnp.sin(angle / 2) / hnp.where(small, 1, angle))
    return hnp.concat([scale * v, hnp.cos(angle / 2)], axis=-1)


def _rotvec_of(q: Tensor) -> Tensor:
    upright = _upright(q)
    half = _length(upright[..., :3])
    angle = 2 * hnp.atan2(half, upright[..., 3:])
    small = angle < 1e-3
    square = angle * angle
    scale = hnp.where(small, 2 + square / 12 + 7 * square * square / 2880, angle / hnp.where(small, 1, half))
    return scale * upright[..., :3]


# --- Euler's angles --------------------------------------------------------------------------------------------------


def _sequence(seq: Any, what: str, lengths: tuple[int, ...]) -> tuple[list[int], bool]:
    """The axes, and whether they turn with the body: capital letters. Raises ArgumentError for another text."""
    text = seq.lower() if isinstance(seq, str) else ""
    plain = len(text) in lengths and set(text) <= set("xyz") and seq in (text, text.upper())
    if not plain or any(a == b for a, b in zip(text, text[1:], strict=False)):
        raise located(ArgumentError(f"{what}: axes are up to three of xyz, or of XYZ, none twice in a row; not {seq!r}"))
    return [AXES[c] for c in text], seq != text


def _of_euler(axes: Sequence[int], turning: bool, angles: Tensor) -> Tensor:
    found: Tensor | None = None
    for i, axis in enumerate(axes):
        half = angles[..., i] / 2
        parts = [hnp.sin(half) if n == axis else 0 * half for n in range(3)]
        q = hnp.stack([*parts, hnp.cos(half)], axis=-1)
        found = q if found is None else _product(found, q) if turning else _product(q, found)
    assert found is not None
    return found


def _euler_of(q: Tensor, axes: Sequence[int], turning: bool) -> Tensor:
    i, j, k = axes[::-1] if turning else axes
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    x, y, z, w = q[..., i], q[..., j], q[..., k] * sign, q[..., 3]
    a, b, c, d = (w, x, y, z) if symmetric else (w - y, x + z, y + w, z - x)
    middle = 2 * hnp.atan2(hnp.hypot(c, d), hnp.hypot(a, b))
    total, difference = hnp.atan2(b, a), hnp.atan2(d, c)
    flat, turned = hnp.abs(middle) <= DEGENERATE, hnp.abs(middle - math.pi) <= DEGENERATE
    way = 1 if turning else -1
    one = hnp.where(flat, 2 * total, 2 * way * difference)  # where the first and the third axis are one
    first, third = total - difference, total + difference
    first, third = (third, first) if turning else (first, third)
    first, third = hnp.where(flat | turned, one, first), hnp.where(flat | turned, 0, third)
    if not symmetric:
        first, third = (first * sign, third) if turning else (first, third * sign)
        middle = middle - math.pi / 2
    angles = hnp.stack([first, middle, third], axis=-1)
    return angles - 2 * math.pi * hnp.round(angles / (2 * math.pi))


# --- names -----------------------------------------------------------------------------------------------------------


class Rotation:
    """Rotations of space, one or a stack: unit quaternions ``quat`` (…, 4). A pytree, whose leaf these are.

    ``p * q`` turns by ``q`` first. Those of a quaternion 0 are NaN. Raises ShapeError for arrays of other shapes.

    >>> turn = hg.scipy.spatial.transform.Rotation.from_euler("z", 90, degrees=True)
    >>> hnp.round(turn.apply([1.0, 0.0, 0.0]), 6)
    Tensor([0., 1., 0.], dtype=float32)
    """

    __slots__ = ("quat",)
    quat: Tensor

    def __init__(self, quat: Any) -> None:
        self.quat = _unit(_vectors(quat, 4, "Rotation"))

    @classmethod
    def _of(cls, quat: Any) -> Rotation:
        made = object.__new__(cls)
        made.quat = quat
        return made

    @classmethod
    def from_quat(cls, quat: Any, *, scalar_first: bool = False) -> Rotation:
        """Of quaternions (…, 4), which are brought to the length 1; ``scalar_first``: in the order w, x, y, z."""
        q = _vectors(quat, 4, "Rotation.from_quat")
        return cls(hnp.roll(q, -1, axis=-1) if scalar_first else q)

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """Of orthogonal matrices (…, 3, 3) with the determinant 1."""
        m = _vectors(matrix, 3, "Rotation.from_matrix")
        if m.shape[-2:] != (3, 3):
            raise located(ShapeError(f"Rotation.from_matrix: matrices of shape (…, 3, 3) are wanted, not {list(m.shape)}"))
        return cls._of(_of_matrix(m))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Of vectors (…, 3) along the axis, as long as the angle."""
        v = _vectors(rotvec, 3, "Rotation.from_rotvec")
        return cls._of(_of_rotvec(v * (math.pi / 180) if degrees else v))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Of modified Rodrigues parameters (…, 3): along the axis, as long as the tangent of a quarter of the angle."""
        p = _vectors(mrp, 3, "Rotation.from_mrp")
        square = hnp.sum(p * p, axis=-1, keepdims=True)
        return cls._of(hnp.concat([2 * p, 1 - square], axis=-1) / (1 + square))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Of angles about one to three axes: fixed ones for ``"xyz"``, those of the body for ``"XYZ"``.

        ``angles`` are (…, len(seq)), or (…) for one axis. Raises ArgumentError for other axes.
        """
        axes, turning = _sequence(seq, "Rotation.from_euler", (1, 2, 3))
        t = inexact(angles, "Rotation.from_euler")
        t = t[..., None] if len(axes) == 1 and t.shape[-1:] != (1,) else t
        t = _vectors(t, len(axes), "Rotation.from_euler")
        return cls._of(_of_euler(axes, turning, t * (math.pi / 180) if degrees else t))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = None) -> Rotation:
        """The rotation that turns nothing, or ``num`` of them."""
        shape = () if num is None else (integer(num, "Rotation.identity", "num"),)
        one = hnp.asarray([0, 0, 0, 1], dtype=(dtypes.default_float if dtype is None else element_type(dtype)).np)
        return cls._of(hnp.broadcast_to(one, (*shape, 4)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """One rotation, or ``num`` of them, evenly distributed. ``random_key`` is one of :mod:`hologram.random`."""
        shape = () if num is None else (integer(num, "Rotation.random", "num"),)
        return cls(random.normal(random_key, (*shape, 4)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """A stack of rotations, single ones and stacks, one after the other."""
        return cls._of(hnp.concat([hnp.atleast_2d(r.quat) for r in items(rotations, "Rotation.concatenate", "rotations")]))

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Tensor:
        """Quaternions (…, 4); ``canonical``: whose real part, or first part that is not 0, is not negative."""
        q = self.quat
        if canonical:
            lead = hnp.where(q[..., 3] != 0, q[..., 3], hnp.where(q[..., 0] != 0, q[..., 0], hnp.where(q[..., 1] != 0, q[..., 1], q[..., 2])))
            q = hnp.where(lead[..., None] < 0, -q, q)
        return hnp.roll(q, 1, axis=-1) if scalar_first else q

    def as_matrix(self) -> Tensor:
        """Orthogonal matrices (…, 3, 3)."""
        return _matrix_of(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Tensor:
        """Vectors (…, 3) along the axis, as long as the angle, which is at most π."""
        v = _rotvec_of(self.quat)
        return v * (180 / math.pi) if degrees else v

    def as_mrp(self) -> Tensor:
        """Modified Rodrigues parameters (…, 3), of a length of at most 1."""
        q = _upright(self.quat)
        return q[..., :3] / (1 + q[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Tensor:
        """Angles (…, 3) about three axes, as :meth:`from_euler` takes them. Where the first and the third axis fall together the third angle is 0.

        Raises ArgumentError for other axes.
        """
        axes, turning = _sequence(seq, "Rotation.as_euler", (3,))
        angles = _euler_of(self.quat, axes, turning)
        return angles * (180 / math.pi) if degrees else angles

    def apply(self, vectors: Any, inverse: bool = False) -> Tensor:
        """``vectors`` (…, 3) turned; stacks of rotations and of vectors broadcast. ``inverse`` turns back."""
        v, m = _vectors(vectors, 3, "Rotation.apply"), self.as_matrix()
        return hnp.matmul(hnp.matrix_transpose(m) if inverse else m, v[..., None])[..., 0]

    def inv(self) -> Rotation:
        """The rotations back."""
        return Rotation._of(hnp.concat([-self.quat[..., :3], self.quat[..., 3:]], axis=-1))

    def magnitude(self) -> Tensor:
        """Angles (…), from 0 to π."""
        return 2 * hnp.atan2(_length(self.quat[..., :3])[..., 0], hnp.abs(self.quat[..., 3]))

    def mean(self, weights: Any = None) -> Rotation:
        """The rotation whose quaternion is nearest to those of a stack (n,), by squares of chords, which ``weights`` (n,) may weigh."""
        q = hnp.atleast_2d(self.quat)
        w = hnp.ones(q.shape[:1], dtype=q.dtype) if weights is None else hnp.asarray(weights)
        return Rotation._of(decompositions.eigh((q * w[:, None]).T @ q)[1][:, -1])

    @property
    def single(self) -> bool:
        """Whether this is one rotation, no stack."""
        return self.quat.ndim == 1

    def __mul__(self, other: Rotation) -> Rotation:
        return Rotation._of(_product(self.quat, other.quat)) if isinstance(other, Rotation) else NotImplemented

    def __getitem__(self, indexer: Any) -> Rotation:
        self._require_stack()
        return Rotation._of(self.quat[indexer])

    def __len__(self) -> int:
        self._require_stack()
        return len(self.quat)

    def _require_stack(self) -> None:
        if self.single:
            raise located(ArgumentError("Rotation: this is one rotation, no stack of them"))

    def __repr__(self) -> str:
        return f"Rotation({self.quat!r})"


class Slerp:
    """Rotations between those at known times, at an even speed: ``Slerp(times, rotations)(time)``.

    ``times`` (n,) ascend, ``rotations`` are a stack (n,). ``Slerp.init`` is the same. Beyond the first and the last time they are NaN. Raises
    ShapeError where there are fewer than two, or not one for each.

    >>> turns = hg.scipy.spatial.transform.Rotation.from_euler("z", [0.0, 90.0], degrees=True)
    >>> hg.scipy.spatial.transform.Slerp([0.0, 1.0], turns)(0.5).magnitude() * 180 / np.pi
    Tensor(45., dtype=float32)
    """

    def __init__(self, times: Any, rotations: Rotation) -> None:
        self.times, self.rotations = inexact(times, "Slerp"), rotations
        if self.times.ndim != 1 or self.times.shape[0] < 2 or rotations.quat.shape != (*self.times.shape, 4):
            raise located(ShapeError(f"Slerp: times of shape {list(self.times.shape)}, and quaternions of shape {list(rotations.quat.shape)}"))
        self.timedelta = self.times[1:] - self.times[:-1]
        self.rotvecs = (rotations[:-1].inv() * rotations[1:]).as_rotvec()

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """As ``Slerp(times, rotations)``."""
        return cls(times, rotations)

    def __call__(self, times: Any) -> Rotation:
        t = inexact(times, "Slerp")
        last = self.times.shape[0] - 2
        at = hnp.clip(hnp.searchsorted(self.times, t, side="right") - 1, 0, last)
        part = (t - self.times[at]) / self.timedelta[at]
        inside = (t >= self.times[0]) & (t <= self.times[-1])
        part = hnp.where(inside, part, hnp.nan)
        return self.rotations[at] * Rotation.from_rotvec(self.rotvecs[at] * part[..., None])


tree.register(Rotation, lambda r: ((r.quat,), None), lambda _, children: Rotation._of(children[0]))
