"""Programs written for JAX run with their imports changed, and nothing else, and give JAX's results.

The results are kept as data. ``python -m tests.programs.test_jax_programs`` writes them anew, with JAX.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parent / "jax_programs"
KEPT = Path(__file__).parent / "stored" / "jax_programs"
PROGRAMS = {p.stem: p for p in sorted(FOLDER.rglob("*.py")) if p.stem != "__init__"}


def ported(text: str) -> str:
    """The program with Hologram in the place of JAX in its imports."""
    text = re.sub(r"^import jax$", "import hologram as jax", text, flags=re.M)
    text = re.sub(r"^import jax\.", "import hologram.", text, flags=re.M)
    return re.sub(r"^from jax((?:\.\w+)*) import", r"from hologram\1 import", text, flags=re.M)


def results(text: str, name: str) -> dict[str, Any]:
    module = sys.modules[name] = ModuleType(name)  # where dataclasses look for the module of their class
    try:
        exec(compile(text, f"{name}.py", "exec"), vars(module))
        return {key: np.asarray(value) for key, value in vars(module)["main"]().items()}
    finally:
        del sys.modules[name]


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_jax_gives_its_results(name: str) -> None:
    kept = json.loads((KEPT / f"{name}.json").read_text())
    text = ported(PROGRAMS[name].read_text())
    assert "hologram" in text and not re.search(r"^(import|from) jax", text, flags=re.M)
    found = results(text, f"ported_{name}")
    assert found.keys() == kept.keys()
    for key, want in kept.items():
        np.testing.assert_allclose(found[key], np.asarray(want), rtol=2e-4, atol=2e-4, err_msg=key)
        assert found[key].dtype.kind == np.asarray(want).dtype.kind


def main() -> None:
    import_module("jax")
    for name, path in PROGRAMS.items():
        found = results(path.read_text(), name)
        (KEPT / f"{name}.json").write_text(
            json.dumps({k: np.round(v, 6).tolist() if v.dtype.kind == "f" else v.tolist() for k, v in found.items()}) + "\n"
        )


if __name__ == "__main__":
    main()
