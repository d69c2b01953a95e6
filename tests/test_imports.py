"""What is done when a library is imported (:mod:`hologram.support.imports`), and that ``import hologram`` imports none."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

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
