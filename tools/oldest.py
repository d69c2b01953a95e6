"""Prints, as constraints for pip, the oldest version that pyproject.toml allows of every dependency: ``python tools/oldest.py > file``.

What constraints.txt holds to one version stays there: of PyTorch only that one is to be had as a build for the CPU.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w,-]*\])?\s*>=\s*([\d.]+)")


def oldest() -> Iterator[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    held = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")}
    for requirement in (*project["dependencies"], *extras["test"], *extras["torch"]):
        found = _REQUIREMENT.match(requirement)
        if found and found[1] not in held:
            yield f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    print("\n".join(oldest()))
