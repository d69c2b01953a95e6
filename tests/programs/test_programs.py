"""Programs that were written for JAX, ported by their imports: JAX's results are kept as data in ``stored``.

``python -m tests.programs.test_programs``, where JAX is installed, writes them anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parent
PROGRAMS = sorted(p.stem for p in FOLDER.glob("*.py") if p.stem != "__init__" and not p.stem.startswith("test_"))
ROUNDING = {"ode_fit": 2e-4, "gaussian_process": 1e-6}  # a fit ends where its tolerance lets it


def results(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(source, "<program>", "exec"), names)
    return {name: np.asarray(value).tolist() for name, value in names["program"]().items()}


def of_jax(name: str) -> dict[str, Any]:
    """The results of the program with its imports as they were."""
    jax = pytest.importorskip("jax", reason="JAX, whose results are compared, is not installed")
    source = re.sub(r"^(import|from) hologram\b", r"\1 jax", (FOLDER / f"{name}.py").read_text(), flags=re.MULTILINE)
    with jax.enable_x64(True):
        return results(source)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_jax(name: str, everything: bool) -> None:
    kept = json.loads((FOLDER / "stored" / f"{name}.json").read_text())
    found = results((FOLDER / f"{name}.py").read_text())
    for want in (kept, of_jax(name)) if everything else (kept,):
        assert found.keys() == want.keys()
        for key, value in want.items():
            np.testing.assert_allclose(found[key], value, rtol=ROUNDING[name], atol=ROUNDING[name], err_msg=key)


if __name__ == "__main__":
    for program in PROGRAMS:
        (FOLDER / "stored" / f"{program}.json").write_text(json.dumps(of_jax(program)) + "\n")
