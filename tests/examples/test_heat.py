"""The plate: the loop ends at the solution of the linear system, heat is kept, and the obstacle is felt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from examples import heat


def solved(faces: heat.Plate) -> np.ndarray:
    """The steady temperatures, from the linear system that says that no cell gains; the disc, which nothing reaches, stays cold."""
    shape = faces.inside.shape
    at_zero = heat.gain(np, np.zeros(shape), faces).ravel()
    columns = [heat.gain(np, unit.reshape(shape), faces).ravel() - at_zero for unit in np.eye(at_zero.size)]
    inside = faces.inside.ravel() > 0
    found = np.full(at_zero.size, heat.COLD)
    found[inside] = np.linalg.solve(np.array(columns).T[np.ix_(inside, inside)], -at_zero[inside])
    return found.reshape(shape)


def test_the_steady_state_is_the_linear_systems() -> None:
    faces = heat.plate(14, 18, radius=0.3)
    found, largest, count = heat.settle(np.zeros((14, 18)), faces, 1e-11, 10**7)
    np.testing.assert_allclose(found.numpy(), solved(faces), rtol=0, atol=1e-7)
    assert float(largest) <= 1e-11 and int(count) % heat.ROUND == 0
    right, _ = heat.flows(np, found.numpy(), faces)
    through = right.sum(axis=0)
    np.testing.assert_allclose(through, through[0], rtol=1e-8)
    assert 0 < through[0] < 0.8 * (heat.HOT - heat.COLD) * 14 / 18


def test_a_plate_without_obstacle_is_a_straight_line() -> None:
    faces = heat.plate(6, 10, radius=-1.0)
    found, _, _ = heat.settle(np.zeros((6, 10)), faces, 1e-12, 10**7)
    want = heat.HOT + (heat.COLD - heat.HOT) * (np.arange(10) + 0.5) / 10
    np.testing.assert_allclose(found.numpy(), np.tile(want, (6, 1)), atol=1e-8)


def test_steps_are_numpys_and_end_where_told() -> None:
    faces = heat.plate(9, 12, radius=0.25)
    found, _, count = heat.settle(np.zeros((9, 12)), faces, 0.0, 60)
    want = np.zeros((9, 12))
    for _ in range(2 * heat.ROUND):
        want = want + heat.STEP * heat.gain(np, want, faces)
    assert int(count) == 2 * heat.ROUND
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-12, atol=1e-12)


def test_the_plate_is_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    faces = heat.plate(20, 30, radius=0.3)
    stages = heat.report(faces, 1e-4)
    assert stages[0][0] < stages[1][0] < stages[2][0] and "steady after" in capsys.readouterr().out
    path = tmp_path / "new" / "heat.png"
    heat.draw(stages, faces, path)
    drawn = image.imread(path)[:, :, :3]
    assert all(part.std() > 0.1 for part in np.array_split(drawn, 3, axis=1))
