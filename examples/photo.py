"""Develops a photograph through one jitted function, and tells what the compiler made of it: ``python examples/photo.py [PICTURE]``.

:func:`develop` is written once against a NumPy-like namespace ``xp``: NumPy runs it operation by operation, Hologram as one native call.
Writes out/photo.png, before and after side by side, and out/report.html, what became of the pipeline: graphs, kernels, memory.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

TAPS = (0.03, 0.11, 0.22, 0.28, 0.22, 0.11, 0.03)  # a Gaussian of about 1.4 steps, sum 1
LUMINANCE = (0.2126, 0.7152, 0.0722)  # of linear sRGB, IEC 61966-2-1


def develop(xp: Any, picture: Any) -> tuple[Any, dict[str, Any]]:
    """An sRGB picture, uint8 (height, width, 3): the developed one, float32 of the same shape in 0..1, and statistics of its luminance."""
    linear = from_srgb(xp, picture.astype(xp.float32) / 255)
    light = luminance(linear)

    seen = xp.sqrt(tone(light))  # about as the eye sees it: a step is as visible in the dark as in the light
    sharp = seen + 0.7 * (seen - blur(xp, seen, step=1))
    clear = local_contrast(xp, sharp, step=10)

    gain = clear * clear / (light + 2e-3)  # what is added keeps noise in the dark from taking on colour
    coloured = linear * gain[:, :, None]
    grey = luminance(coloured)[:, :, None]
    vivid = xp.clip(grey + 1.15 * (coloured - grey), 0, 1)

    result = luminance(vivid)
    facts = {"mean": xp.mean(result), "deviation": xp.std(result), "darkest": xp.min(result), "brightest": xp.max(result)}
    return to_srgb(xp, vivid), facts


def from_srgb(xp: Any, v: Any) -> Any:
    return xp.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)


def to_srgb(xp: Any, v: Any) -> Any:
    return xp.where(v <= 0.0031308, v * 12.92, 1.055 * v ** (1 / 2.4) - 0.055)


def luminance(v: Any) -> Any:
    return LUMINANCE[0] * v[:, :, 0] + LUMINANCE[1] * v[:, :, 1] + LUMINANCE[2] * v[:, :, 2]


def blur(xp: Any, v: Any, step: int) -> Any:
    """Down, then across, by shifted slices; ``step`` is the distance of the taps, and the edge pixels go on outside."""
    height, width = v.shape
    reach = step * (len(TAPS) // 2)
    tall = xp.pad(v, ((reach, reach), (0, 0)), mode="edge")
    v = sum(tap * tall[i * step : i * step + height] for i, tap in enumerate(TAPS))
    wide = xp.pad(v, ((0, 0), (reach, reach)), mode="edge")
    return sum(tap * wide[:, i * step : i * step + width] for i, tap in enumerate(TAPS))


def tone(v: Any) -> Any:
    """Opens the shadows and rolls off the highlights: Reinhard's curve with the white point 1, after an exposure of one and a half stops."""
    exposed = 2.8 * v
    return exposed * (1 + exposed / 2.8**2) / (1 + exposed)


def local_contrast(xp: Any, v: Any, step: int) -> Any:
    """Moves each pixel away from the mean around it, most where its surroundings are flat; noise in the dark is left alone."""
    around = blur(xp, v, step)
    spread = xp.sqrt(xp.maximum(blur(xp, v * v, step) - around * around, 0))
    return xp.clip(around + (v - around) * (1 + 0.9 * around * xp.exp(-4 * spread)), 0, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", type=Path, help="a photograph; without it one that comes with matplotlib")
    parser.add_argument("--output", type=Path, default=Path("out/photo.png"))
    parser.add_argument("--report", type=Path, default=Path("out/report.html"))
    options = parser.parse_args()
    if not all(map(find_spec, ("matplotlib", "PIL"))):
        parser.exit(1, "this example needs matplotlib and Pillow: pip install '.[demo]'\n")

    picture = read(options.picture or sample())
    after = report(picture)
    draw(picture, after, options.output)
    explain(picture, options.report)
    print(f"\nwrote {options.output}\nwrote {options.report}: open it in a browser to see graphs, kernels, memory, and what each rule did")


def sample() -> Path:
    from matplotlib import get_data_path

    return Path(get_data_path(), "sample_data", "grace_hopper.jpg")


def read(path: Path) -> np.ndarray:
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def report(picture: np.ndarray) -> np.ndarray:
    """Runs the pipeline in Hologram and in NumPy, prints what was compiled and how the two compare, and returns Hologram's picture."""
    import hologram as hg
    import hologram.numpy as hnp

    def pipeline(picture: Any) -> Any:
        return develop(hnp, picture)

    jitted = hg.jit(pipeline)
    height, width, _ = picture.shape
    print(f"picture: {width} x {height} pixels")

    compiled = jitted.lower(picture).compile()
    print(f"\n{compiled.reduction()}\n\nmemory plan\n{compiled.memory_analysis()}\n")

    after, facts = jitted(picture)
    expected, expected_facts = develop(np, picture)
    difference = float(np.abs(np.asarray(after) - expected).max())
    differences = [abs(float(facts[k]) - float(expected_facts[k])) for k in expected_facts]
    print("luminance: " + ", ".join(f"{name} {float(facts[name]):.4f}" for name in expected_facts))
    print(f"largest difference from NumPy: {difference:.1e} in a pixel, {max(differences):.1e} in the statistics")

    ours, numpys = milliseconds(lambda: hg.block_until_ready(jitted(picture))), milliseconds(lambda: develop(np, picture))
    print(f"time: {ours:.2f} ms in Hologram, {numpys:.2f} ms in NumPy, {numpys / ours:.1f} times as fast")
    return np.asarray(after)


def explain(picture: np.ndarray, path: Path) -> None:
    """Writes the report of the pipeline."""
    import hologram as hg
    import hologram.numpy as hnp

    def pipeline(picture: Any) -> Any:
        return develop(hnp, picture)

    path.parent.mkdir(parents=True, exist_ok=True)
    hg.explain(pipeline)(picture).html(path)


def milliseconds(call: Callable[[], Any], budget: float = 1.0) -> float:
    """The median over the calls that fit into ``budget`` seconds."""
    call()
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def draw(before: np.ndarray, after: np.ndarray, path: Path) -> None:
    """Both pictures whole, and below them the middle of the upper half three times as large."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    height, width, _ = before.shape
    part = np.s_[height // 8 : height // 8 + height // 3, width // 3 : 2 * width // 3]
    figure, axes = plt.subplots(2, 2, figsize=(11, 12.5), height_ratios=(height / width, height / width), layout="constrained")
    for column, (title, image) in enumerate((("before", before), ("after", after))):
        axes[0, column].set_title(title, fontsize=18)
        axes[0, column].imshow(image)
        axes[1, column].imshow(image[part], interpolation="nearest")
        axes[1, column].set_title(f"{title}, enlarged", fontsize=14)
    for axis in axes.flat:
        axis.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
