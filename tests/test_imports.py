"""What is done when a library is imported (:mod:`hologram.support.imports`), and that ``import hologram`` imports none."""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import hologram as hg
from hologram.support.imports import _waiting, when_imported


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a package that can be imported and has not been."""
    name = "a_library_of_this_test"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("from a_library_of_this_test import part\n")
    (tmp_path / name / "part.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in (name, f"{name}.part"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return name


def test_actions_run_once_the_module_is_there(library: str) -> None:
    seen: list[int] = []
    when_imported(f"{library}.part", lambda: seen.append(sys.modules[f"{library}.part"].value))
    assert not seen
    module = importlib.import_module(library)
    assert seen == [1]
    assert type(module.part.__spec__.loader).__module__ == "_frozen_importlib_external"  # its own, as if nobody had waited
    when_imported(f"{library}.part", lambda: seen.append(2))
    assert seen == [1, 2]
    assert f"{library}.part" not in _waiting


def test_a_failing_action_is_a_warning(library: str) -> None:
    def fails() -> None:
        raise AttributeError("it has changed")

    when_imported(library, fails)
    with pytest.warns(UserWarning, match="could not be made known to a_library_of_this_test: AttributeError: it has changed"):
        importlib.import_module(library)


def test_modules_that_are_not_there_stay_missing() -> None:
    when_imported("no_such_library_at_all", lambda: None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_library_at_all")
    _waiting.pop("no_such_library_at_all")


PAGE = (Path(__file__).parents[1] / "docs/from_numpy_and_jax.md").read_text()
ATTRIBUTES = [n for n in hg.__all__ if isinstance(getattr(hg, n), ModuleType) and n != "dask"]  # where dask is absent its module is an error


def reached(name: str) -> object:
    """What a statement imports, or attributes lead to."""
    with contextlib.suppress(ImportError):
        return importlib.import_module(name)
    return functools.reduce(getattr, name.split(".")[1:], hg)


STATEMENTS = sorted(
    {f"import {name}" for name in re.findall(r"`(hologram(?:\.\w+)+)`", PAGE) if isinstance(reached(name), ModuleType)}
    | {f"import hologram.{name}" for name in ATTRIBUTES}
    | {
        "import hologram.numpy.linalg as jla",
        "from hologram.numpy import fft, linalg",
        "from hologram.numpy.linalg import inv",
        "from hologram.nn import initializers",
        "from hologram.scipy import linalg, signal, stats",
        "from hologram.scipy.stats import norm",
        "from hologram.experimental.ode import odeint",
        "from hologram.experimental.sparse import BCOO",
        "from hologram.ops import segment_sum",
        "from hologram.flatten_util import ravel_pytree",
        "from hologram.sharding import Mesh, NamedSharding, PartitionSpec as P",
        "from hologram.typing import ArrayLike, DTypeLike",
        "from hologram.tree_util import register_pytree_node_class",
    }
)


@pytest.mark.parametrize("statement", ["\n".join(STATEMENTS), "\n".join(reversed(STATEMENTS))], ids=["in order", "backwards"])
def test_modules_that_are_public_are_imported_by_statements(statement: str) -> None:
    """Each name leads to one module, whether it is asked for as an attribute or imported."""
    same = "\nimport hologram as hg, hologram.ops, hologram.numpy.linalg, sys\nassert hologram.ops is hg.sdk.ops and hg.numpy.linalg is hg.linalg"
    assert len(STATEMENTS) > 30
    done = subprocess.run([sys.executable, "-W", "error", "-c", statement + same], capture_output=True, text=True)
    assert not done.returncode, done.stderr
