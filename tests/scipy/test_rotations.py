"""``scipy.spatial.transform``: against SciPy, under jit, vmap and grad."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, HologramError, ShapeError
from hologram.scipy.spatial.transform import Rotation, Slerp
from tests.support.optable import seeded

theirs: Any = pytest.importorskip("scipy.spatial.transform")
QUATS = seeded("rotations").standard_normal((9, 4))
QUATS[0], QUATS[1], QUATS[2], QUATS[3] = [0, 0, 0, 1], [1, 0, 0, 0], [1e-5, -2e-5, 0, 1], [0, 0.6, 0.8, -1e-9]
R, S = Rotation.from_quat(QUATS), theirs.Rotation.from_quat(QUATS)
VECTORS = seeded("vectors").standard_normal((9, 3))
SEQUENCES = ["xyz", "zyx", "XYZ", "ZYX", "zxz", "ZXZ", "yxy", "YZX", "xzy"]


def same(r: Rotation, s: Any) -> None:
    np.testing.assert_allclose(r.as_matrix(), s.as_matrix(), atol=1e-12)


def test_forms_of_rotations() -> None:
    for name in ("as_matrix", "as_mrp", "magnitude"):
        np.testing.assert_allclose(getattr(R, name)(), getattr(S, name)(), atol=1e-12)
    same(Rotation.from_rotvec(R.as_rotvec()), S)
    same(Rotation.from_rotvec(R.as_rotvec(degrees=True), degrees=True), S)
    np.testing.assert_allclose(R.as_rotvec()[4:], S.as_rotvec()[4:], atol=1e-12)
    np.testing.assert_allclose(R.as_quat(canonical=True), S.as_quat(canonical=True), atol=1e-12)
    np.testing.assert_allclose(R.as_quat(scalar_first=True), S.as_quat(scalar_first=True), atol=1e-12)
    same(Rotation.from_quat(R.as_quat(scalar_first=True), scalar_first=True), S)
    same(Rotation.from_matrix(S.as_matrix()), S)
    same(Rotation.from_mrp(S.as_mrp()), S)
    same(R[4], S[4])
    assert (len(R), R.single, R[1].single) == (9, False, True)


def test_products_and_vectors() -> None:
    same(R * R[::-1], S * S[::-1])
    same(R.inv(), S.inv())
    same(Rotation.concatenate([R[0], R[2:4]]), theirs.Rotation.concatenate([S[0], S[2:4]]))
    np.testing.assert_allclose(R.apply(VECTORS), S.apply(VECTORS), atol=1e-12)
    np.testing.assert_allclose(R.apply(VECTORS, inverse=True), S.apply(VECTORS, inverse=True), atol=1e-12)
    np.testing.assert_allclose(R[5].apply(VECTORS), S[5].apply(VECTORS), atol=1e-12)
    weights = np.arange(1.0, 10.0)
    same(R.mean(), S.mean())
    same(R.mean(weights), S.mean(weights))
    same(Rotation.identity(2), theirs.Rotation.identity(2))
    lengths = hnp.sum(Rotation.random(hg.random.key(0), 5).quat ** 2, axis=-1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-6)


@pytest.mark.parametrize("seq", SEQUENCES)
def test_angles_of_euler(seq: str) -> None:
    np.testing.assert_allclose(R[4:].as_euler(seq), S[4:].as_euler(seq), atol=1e-12)
    angles = R.as_euler(seq, degrees=True)
    same(Rotation.from_euler(seq, angles, degrees=True), theirs.Rotation.from_euler(seq, np.asarray(angles), degrees=True))
    np.testing.assert_allclose(Rotation.from_euler(seq, angles, degrees=True).as_matrix(), S.as_matrix(), atol=1e-7)


@pytest.mark.crossed
@pytest.mark.parametrize("seq", SEQUENCES)
@pytest.mark.parametrize("middle", [0.0, 90.0, 180.0, -90.0])
def test_axes_that_fall_together(seq: str, middle: float) -> None:
    given = np.array([20.0, middle, 30.0])
    r = Rotation.from_euler(seq, given, degrees=True)
    s = theirs.Rotation.from_euler(seq, given, degrees=True)
    np.testing.assert_allclose(Rotation.from_euler(seq, r.as_euler(seq)).as_matrix(), s.as_matrix(), atol=1e-7)


def test_fewer_axes() -> None:
    same(Rotation.from_euler("Y", np.array(0.3)), theirs.Rotation.from_euler("Y", 0.3))
    same(Rotation.from_euler("y", np.array([0.3, 0.4])), theirs.Rotation.from_euler("y", [[0.3], [0.4]]))
    same(Rotation.from_euler("zx", np.array([0.3, 0.4])), theirs.Rotation.from_euler("zx", [0.3, 0.4]))


def test_rotations_between() -> None:
    times, asked = np.arange(9.0) ** 1.5, np.array([0.0, 0.5, 3.3, 8**1.5])
    for made in (Slerp(times, R), Slerp.init(times, R)):
        same(made(asked), theirs.Slerp(times, S)(asked))
    same(hg.jit(lambda t: Slerp(times, R)(t))(asked), theirs.Slerp(times, S)(asked))
    assert np.isnan(np.asarray(Slerp(times, R)(np.array([-1.0, 99.0])).quat)).all()


def test_traced_stacked_and_differentiated() -> None:
    same(hg.jit(lambda r, q: r * Rotation.from_quat(q))(R, QUATS[::-1]), S * S[::-1])
    turned = hg.vmap(lambda r, v: r.apply(v))(R, VECTORS)
    np.testing.assert_allclose(turned, S.apply(VECTORS), atol=1e-12)
    f = lambda v: hnp.sum(hnp.sin(Rotation.from_rotvec(v).apply(VECTORS)))  # noqa: E731
    for at in (np.zeros(3), np.array([1e-4, 0, 0]), np.array([0.5, -1.0, 2.0])):
        slope = np.asarray(hg.grad(f)(at))
        for i, e in enumerate(np.eye(3)):
            assert slope[i] == pytest.approx((float(f(at + 1e-6 * e)) - float(f(at - 1e-6 * e))) / 2e-6, abs=1e-7)
        back = hg.jacfwd(lambda v: Rotation.from_rotvec(v).as_rotvec())(at)
        np.testing.assert_allclose(back, np.eye(3), atol=1e-6)


@pytest.mark.parametrize(
    ("work", "kind"),
    [
        (lambda: Rotation(np.ones(3)), ShapeError),
        (lambda: Rotation.from_matrix(np.ones((2, 3))), ShapeError),
        (lambda: Rotation.from_euler("xX", np.ones(2)), ArgumentError),
        (lambda: Rotation.from_euler("xxy", np.ones(3)), ArgumentError),
        (lambda: R.as_euler("xy"), ArgumentError),
        (lambda: len(R[0]), ArgumentError),
        (lambda: Slerp(np.ones(3), R), ShapeError),
    ],
)
def test_errors(work: Any, kind: type[HologramError]) -> None:
    with pytest.raises(kind):
        work()
