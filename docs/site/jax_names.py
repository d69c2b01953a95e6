"""The table of JAX's names in ``docs/from_numpy_and_jax.md``: for each of its modules where its public names are here, and which are not.

``python -m docs.site.jax_names`` writes it anew, with the JAX that is installed.
"""

from __future__ import annotations

import re
import types
from importlib import import_module
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "from_numpy_and_jax.md"
HEAD = "| JAX | here | names there | not here |\n|---|---|---|---|\n"
MODULES = {
    "jax": "hologram",
    "jax.numpy": "hologram.numpy",
    "jax.numpy.linalg": "hologram.linalg",
    "jax.numpy.fft": "hologram.fft",
    "jax.lax": "hologram.lax",
    "jax.lax.linalg": "hologram.lax.linalg",
    "jax.nn": "hologram.nn",
    "jax.nn.initializers": "hologram.nn.initializers",
    "jax.random": "hologram.random",
    "jax.tree": "hologram.tree",
    "jax.tree_util": "hologram.tree_util",
    "jax.ops": "hologram.ops",
    "jax.image": "hologram.image",
    "jax.experimental.checkify": "hologram.experimental.checkify",
    "jax.custom_batching": "hologram.custom_batching",
    "jax.flatten_util": "hologram.flatten_util",
    "jax.scipy.cluster.vq": "hologram.scipy.cluster.vq",
    "jax.scipy.fft": "hologram.scipy.fft",
    "jax.scipy.integrate": "hologram.scipy.integrate",
    "jax.scipy.interpolate": "hologram.scipy.interpolate",
    "jax.scipy.linalg": "hologram.scipy.linalg",
    "jax.scipy.ndimage": "hologram.scipy.ndimage",
    "jax.scipy.optimize": "hologram.scipy.optimize",
    "jax.scipy.signal": "hologram.scipy.signal",
    "jax.scipy.sparse.linalg": "hologram.scipy.sparse.linalg",
    "jax.scipy.spatial.transform": "hologram.scipy.spatial.transform",
    "jax.scipy.special": "hologram.special",
    "jax.scipy.stats": "hologram.scipy.stats",
}


def public_names(module: str) -> set[str]:
    """Names that programs call or name: no modules, and no primitives."""
    found = import_module(module)
    names = {n for n in dir(found) if not n.startswith("_") and not n.endswith("_p")}
    return {n for n in names if not isinstance(getattr(found, n, None), types.ModuleType)}


def has(module: str, name: str) -> bool:
    """Whether Hologram's module has the name."""
    where: Any = import_module(module)
    return hasattr(where, name)


def row(theirs: str, ours: str) -> str:
    """A line of the table."""
    names = public_names(theirs)
    absent = sorted(n for n in names if not has(ours, n))
    return f"| `{theirs}` | `{ours}` | {len(names)} | {', '.join(f'`{n}`' for n in absent)} |\n"


def rows_of(page: str) -> dict[str, tuple[str, int, list[str]]]:
    """The table as it stands in a page: by the module of JAX that of Hologram, how many names there are, and which are absent."""
    start = page.index(HEAD) + len(HEAD)
    found = {}
    for line in page[start:].partition("\n\n")[0].splitlines():
        theirs, ours, count, absent = (cell.strip() for cell in line.strip("|").split(" | ", 3))
        found[theirs.strip("`")] = ours.strip("`"), int(count), re.findall(r"`([^`]+)`", absent)
    return found


def table() -> str:
    """The table, made with the JAX that is installed."""
    return HEAD + "".join(row(theirs, ours) for theirs, ours in MODULES.items())


def main() -> None:
    """Puts the table into the page."""
    page = PAGE.read_text()
    before, after = page[: page.index(HEAD)], page[page.index(HEAD) :].partition("\n\n")[2]
    PAGE.write_text(before + table() + "\n" + after)


if __name__ == "__main__":
    main()
