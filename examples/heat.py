"""Heat that flows around an obstacle: ``python examples/heat.py``.

A plate is hot on its left edge and cold on its right one; nothing flows through its other edges, nor into the disc in its middle. ``hg.while_loop``
steps the heat equation until the plate is steady, in one native call. Writes out/heat.png: the temperatures on the way.
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

HOT, COLD = 100.0, 0.0  # temperatures of the left and of the right edge
STEP = 0.2  # diffusivity * time / width of a cell squared; explicit steps are stable up to 1/4
ROUND = 50  # steps between looks at whether the plate is steady


class Plate(NamedTuple):
    """Which cells conduct, and the faces between them: 1 where heat can pass, else 0. Cells in rows, from the left to the right."""

    inside: Any  # (height, width)
    across: Any  # (height, width + 1): faces to the left and to the right of cells, the hot and the cold edge included
    down: Any  # (height + 1, width): faces above and below cells


def plate(height: int, width: int, radius: float) -> Plate:
    """With a disc left out whose radius is that part of the height."""
    y, x = np.indices((height, width))
    inside = (np.hypot(y - (height - 1) / 2, x - (width - 1) / 2) > radius * height).astype(np.float64)
    across = np.ones((height, width + 1))
    across[:, 1:-1] = inside[:, 1:] * inside[:, :-1]
    down = np.zeros((height + 1, width))
    down[1:-1] = inside[1:] * inside[:-1]
    return Plate(inside, across, down)


def flows(xp: Any, heat: Any, faces: Plate) -> tuple[Any, Any]:
    """What passes each face, to the right and downwards; the edges' temperatures hold half a cell outside."""
    beside = xp.concat([2 * HOT - heat[:, :1], heat, 2 * COLD - heat[:, -1:]], axis=1)
    above = xp.concat([heat[:1], heat, heat[-1:]], axis=0)
    return faces.across * (beside[:, :-1] - beside[:, 1:]), faces.down * (above[:-1] - above[1:])


def gain(xp: Any, heat: Any, faces: Plate) -> Any:
    """What flows into each cell less what flows out."""
    right, down = flows(xp, heat, faces)
    return right[:, :-1] - right[:, 1:] + down[:-1] - down[1:]


@hg.jit
def settle(heat: Any, faces: Plate, tolerance: Any, most: Any) -> tuple[Any, Any, Any]:
    """``heat`` after rounds of ``ROUND`` steps until the last step of a round changes no cell by more than ``tolerance``, or ``most`` steps are
    made; the largest change of that step; and how many steps."""

    def unsettled(state: tuple[Any, Any, Any]) -> Any:
        _, largest, count = state
        return (largest > tolerance) & (count < most)

    def play(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        heat, _, count = state
        heat = hg.fori_loop(0, ROUND - 1, lambda _, heat: heat + STEP * gain(hnp, heat, faces), heat)
        change = STEP * gain(hnp, heat, faces)
        return heat + change, hnp.max(hnp.abs(change)), count + ROUND

    return hg.while_loop(unsettled, play, (heat, np.inf, 0))


def report(faces: Plate, tolerance: float) -> list[tuple[int, np.ndarray]]:
    """The plate after a few steps, after more, and at rest: how many steps, and temperatures. Prints what was found."""
    start = np.full(faces.inside.shape, COLD)
    hg.block_until_ready(settle(start, faces, tolerance, 0))  # compiles
    before = time.perf_counter()
    heat, largest, count = settle(start, faces, tolerance, 10**9)
    steps, seconds = int(count), time.perf_counter() - before
    found, some = start, min(steps, 500)
    before = time.perf_counter()
    for _ in range(some):
        found = found + STEP * gain(np, found, faces)
    numpys = (time.perf_counter() - before) / some

    right, _ = flows(np, np.asarray(heat), faces)
    entering, leaving = right[:, 0].sum(), right[:, -1].sum()
    height, width = start.shape
    print(f"{height} x {width} cells, steady after {steps} steps: the last one changed no cell by more than {float(largest):.1e} degrees")
    print(f"heat that enters {entering:.4f}, that leaves {leaving:.4f}; without the disc it would be {(HOT - COLD) * height / width:.4f}")
    print(f"time: {seconds / steps * 1e6:.1f} us a step in Hologram, {numpys * 1e6:.0f} us in NumPy, {numpys * steps / seconds:.1f} times as fast")
    early = [settle(start, faces, tolerance, n) for n in (steps // 100, steps // 12)]
    return [(int(n), np.asarray(h)) for h, _, n in (*early, (heat, largest, count))]


def draw(stages: list[tuple[int, np.ndarray]], faces: Plate, path: Path) -> None:
    """Temperatures and their level lines; the arrows are the flow of heat at the end."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(stages), figsize=(16, 4.2), layout="constrained", sharey=True)
    for axis, (steps, heat) in zip(axes, stages, strict=True):
        seen = np.where(faces.inside > 0, heat, np.nan)
        image = axis.imshow(seen, cmap="inferno", vmin=COLD, vmax=HOT)
        axis.contour(seen, levels=np.linspace(COLD, HOT, 11)[1:-1], colors="white", linewidths=0.8)
        axis.set(title=f"after {steps} steps", xticks=[], yticks=[], facecolor="lightgrey")
    right, down = flows(np, stages[-1][1], faces)
    every = max(1, len(seen) // 12)
    y, x = np.nonzero(faces.inside)
    y, x = (i[(y % every == every // 2) & (x % every == every // 2)] for i in (y, x))
    axes[-1].quiver(x, y, right[y, x], -down[y, x], color="deepskyblue", width=0.004)
    axes[-1].set_title(f"steady, after {stages[-1][0]} steps; arrows: the flow of heat")
    figure.colorbar(image, ax=axes, label="temperature", pad=0.01)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--height", type=int, default=96, help="of the plate in cells; it is half as wide again")
    parser.add_argument("--tolerance", type=float, default=1e-7, help="the plate is steady when no step changes a cell by more, in degrees")
    parser.add_argument("--output", type=Path, default=Path("out/heat.png"))
    options = parser.parse_args()
    if find_spec("matplotlib") is None:
        parser.exit(1, "this example needs matplotlib: pip install '.[demo]'\n")

    faces = plate(options.height, options.height * 3 // 2, radius=0.3)
    draw(report(faces, options.tolerance), faces, options.output)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
