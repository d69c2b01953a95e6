"""The outer solar system through three centuries: ``python examples/nbody.py``.

Sun and planets attract each other; the leapfrog method, which is symplectic, moves them by ``hg.scan``, all steps in one native call. Prints how
well energy is kept and the speed beside NumPy's for the same code. Writes out/nbody.png: the orbits, and the error of the energy.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hologram as hg
import hologram.numpy as hnp

# 5 September 1994, 0h: astronomical units, days and solar masses, in equatorial coordinates; the Sun's mass includes the inner planets. From
# E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration, 2nd edition, Springer 2006, table I.2.2 (from Ahnerts Kalender 1994).
GRAVITY = 2.95912208286e-4
BODIES = {  # mass, position, velocity
    "Sun": (1.00000597682, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    "Jupiter": (0.000954786104043, (-3.5023653, -3.8169847, -1.5507963), (0.00565429, -0.00412490, -0.00190589)),
    "Saturn": (0.000285583733151, (9.0755314, -3.0458353, -1.6483708), (0.00168318, 0.00483525, 0.00192462)),
    "Uranus": (0.0000437273164546, (8.3101420, -16.2901086, -7.2521278), (0.00354178, 0.00137102, 0.00055029)),
    "Neptune": (0.0000517759138449, (11.4707666, -25.7294829, -10.8169456), (0.00288930, 0.00114527, 0.00039677)),
    "Pluto": (1 / 1.3e8, (-15.5387357, -25.2225594, -3.1902382), (0.00276725, -0.00170702, -0.00136504)),
}
MASSES, START, START_VELOCITY = (np.array([body[i] for body in BODIES.values()]) for i in range(3))
OBLIQUITY = np.radians(23.4393)  # of the ecliptic, the plane of the Earth's orbit
DAYS_A_YEAR = 365.25


class State(NamedTuple):
    """Positions, velocities and accelerations, float64 (bodies, 3)."""

    place: Any
    velocity: Any
    acceleration: Any


def pulls(xp: Any, place: Any) -> Any:
    """The accelerations that the bodies give each other."""
    apart = place[None, :, :] - place[:, None, :]
    square = xp.sum(apart * apart, axis=-1) + np.eye(len(MASSES))  # a body is not apart from itself
    return GRAVITY * xp.sum((MASSES / (square * xp.sqrt(square)))[:, :, None] * apart, axis=1)


def leapfrog(xp: Any, state: State, days: float) -> State:
    """One step of the method of Störmer and Verlet, with one evaluation of the forces."""
    halfway = state.velocity + days / 2 * state.acceleration
    place = state.place + days * halfway
    acceleration = pulls(xp, place)
    return State(place, halfway + days / 2 * acceleration, acceleration)


def energy(xp: Any, state: State) -> Any:
    """Kinetic and potential energy of all bodies together."""
    kinetic = xp.sum(MASSES[:, None] * state.velocity**2) / 2
    apart = state.place[None, :, :] - state.place[:, None, :]
    distance = xp.sqrt(xp.sum(apart * apart, axis=-1) + np.eye(len(MASSES)))
    pairs = np.triu(np.outer(MASSES, MASSES), 1)
    return kinetic - GRAVITY * xp.sum(pairs / distance)


def start(xp: Any) -> State:
    """The bodies as they were on 5 September 1994."""
    place, velocity = xp.asarray(START), xp.asarray(START_VELOCITY)
    return State(place, velocity, pulls(xp, place))


@hg.jit(static_argnames="steps")
def integrate(days: float, steps: int) -> Any:
    """Positions (steps, bodies, 3) and energies (steps,) after each of ``steps`` steps of ``days``: one scan."""

    def step(state: State, _: None) -> tuple[State, Any]:
        state = leapfrog(hnp, state, days)
        return state, (state.place, energy(hnp, state))

    return hg.scan(step, start(hnp), None, length=steps)[1]


def report(days: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The places seen from the Sun (steps, planets, 3), and the relative errors of the energy (steps,); prints what was found."""
    hg.block_until_ready(integrate(days, steps))  # compiles
    before = time.perf_counter()
    places, energies = (np.asarray(x) for x in integrate(days, steps))
    ours = steps / (time.perf_counter() - before)

    part, state = min(steps, 1000), start(np)
    before = time.perf_counter()
    for _ in range(part):
        state = leapfrog(np, state, days)
        energy(np, state)
    numpys = part / (time.perf_counter() - before)

    errors = energies / energy(np, start(np)) - 1
    drift = errors[-steps // 10 :].mean() - errors[: steps // 10].mean()
    difference = np.abs(places[part - 1] - state.place).max()
    print(f"{steps} steps of {days:g} days, {steps * days / DAYS_A_YEAR:.0f} years")
    print(f"relative error of the energy: at most {np.abs(errors).max():.1e}; drift from the first tenth to the last: {drift:.1e}")
    print(f"largest difference from NumPy after {part} steps: {difference:.1e} astronomical units")
    print(f"speed: {ours:,.0f} steps a second in Hologram, {numpys:,.0f} in NumPy, {ours / numpys:.0f} times as fast")
    return places[:, 1:] - places[:, :1], errors


def draw(places: np.ndarray, errors: np.ndarray, days: float, path: Path) -> None:
    """The orbits from above the ecliptic and from its edge, the bodies where they are at the end, and the error of the energy."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    x, y, z = np.moveaxis(places, -1, 0)
    y, z = np.cos(OBLIQUITY) * y + np.sin(OBLIQUITY) * z, np.cos(OBLIQUITY) * z - np.sin(OBLIQUITY) * y
    figure, axes = plt.subplot_mosaic([["above", "edge"], ["above", "error"]], figsize=(13, 7), width_ratios=(1.2, 1), layout="constrained")
    for view, height, title in (("above", y, "the orbits from above the ecliptic"), ("edge", z, "the same from the edge of the ecliptic")):
        axis = axes[view]
        axis.plot(0, 0, "o", color="gold", markeredgecolor="darkorange")
        for i, name in enumerate(list(BODIES)[1:]):
            (line,) = axis.plot(x[:, i], height[:, i], linewidth=0.8)
            axis.plot(x[-1, i], height[-1, i], "o", color=line.get_color())
            if view == "above":
                axis.annotate(name, (x[-1, i], height[-1, i]), (5, 5), textcoords="offset points")
        axis.set(title=title, xlabel="astronomical units", ylabel="astronomical units", aspect="equal")
    axes["error"].plot(np.arange(1, len(errors) + 1) * days / DAYS_A_YEAR, errors, linewidth=0.5)
    axes["error"].set(title="relative error of the energy: it swings, and does not grow", xlabel="years")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=10.0, help="the length of a step")
    parser.add_argument("--years", type=float, default=300.0)
    parser.add_argument("--output", type=Path, default=Path("out/nbody.png"))
    options = parser.parse_args()
    if find_spec("matplotlib") is None:
        parser.exit(1, "this example needs matplotlib: pip install '.[demo]'\n")

    places, errors = report(options.days, round(options.years * DAYS_A_YEAR / options.days))
    draw(places, errors, options.days, options.output)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
