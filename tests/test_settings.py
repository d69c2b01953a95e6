"""Settings: fields of an object, attributes of the module, environment variables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import SettingsError
from hologram.settings import INPLACE_PACKAGES, MAX_CODEGEN_LEVEL, Settings, override, settings


def test_the_module_is_the_object() -> None:
    before = settings.explain_misses
    hg.settings.explain_misses = True
    try:
        assert settings.explain_misses and hg.settings.explain_misses and "explain_misses" not in vars(hg.settings)
    finally:
        settings.explain_misses = before
    assert hg.settings.override is override and hg.settings.settings is settings


def test_misspelt_names_are_errors() -> None:
    for act in (lambda: hg.settings.debgu, lambda: setattr(hg.settings, "debgu", 3), lambda: setattr(settings, "debgu", 3)):
        with pytest.raises(AttributeError, match="debgu"):
            act()
    with pytest.raises(AttributeError, match="debgu"), override(debgu=3):
        pass


def test_override_restores_what_was_there() -> None:
    rest = (False, 2**30, False, False, "float32", "int64", False, False, ",".join(INPLACE_PACKAGES))
    assert Settings().code == ((), "", MAX_CODEGEN_LEVEL, *rest)
    with pytest.raises(KeyError), override(debug=3, disabled_passes=["simplify"], target="+fma"):
        assert (settings.debug, settings.code) == (3, (("simplify",), "+fma", settings.codegen_level, *rest))
        raise KeyError
    assert settings.debug == 0 and settings.code == ((), "", settings.codegen_level, *rest)


def _in_another_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_threads_agree_on_what_they_override() -> None:
    """A second thread may ask for the same value; the last one that leaves puts it back, whoever came first."""
    first, second = override(default_float="float64"), override(default_float=np.float64)
    first.__enter__()
    _in_another_thread(second.__enter__)
    first.__exit__(None, None, None)
    assert hnp.zeros(1).dtype == np.float64
    _in_another_thread(lambda: second.__exit__(None, None, None))
    assert hnp.zeros(1).dtype == np.float32


def test_threads_that_disagree_are_told() -> None:
    def other() -> None:
        with override(default_int="int32", default_float="float16"):
            raise AssertionError("was let in")

    with override(default_float="float64"):
        with pytest.raises(SettingsError, match="default_float is 'float64' in a block of another thread"):
            _in_another_thread(other)
        assert (settings.default_float, settings.default_int) == ("float64", "int64")
        with override(default_float="float32"):  # a thread does not disagree with itself
            assert settings.default_float == "float32"
        assert settings.default_float == "float64"
    with override(default_float="float16"):  # nothing is left of the block that was refused
        assert settings.default_float == "float16"


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("HOLOGRAM_DEBUG", "2", "debug", 2),
        ("HOLOGRAM_NUM_THREADS", "3", "num_threads", 3),
        ("HOLOGRAM_CACHE", "off", "cache", False),
        ("HOLOGRAM_CACHE_DIR", "/nowhere", "cache_dir", Path("/nowhere")),
        ("HOLOGRAM_CACHE_DIR", "", "cache_dir", None),
        ("HOLOGRAM_NATIVE", "0", "native", False),
        ("HOLOGRAM_DISABLE_PASSES", "simplify, sink", "disabled_passes", ("simplify", "sink")),
        ("HOLOGRAM_INPLACE_PACKAGES", "scipy, mine", "inplace_packages", ("scipy", "mine")),
        ("HOLOGRAM_VERIFY", "yes", "verify", True),
        ("HOLOGRAM_VERIFY", "0", "verify", False),
        ("HOLOGRAM_MEMORY_LIMIT", "1000", "memory_limit", 1000),
        ("HOLOGRAM_CHECKED", "1", "checked", True),
        ("HOLOGRAM_CODEGEN_LEVEL", "1", "codegen_level", 1),
        ("HOLOGRAM_PROGRESS", "0", "progress", "off"),
        ("HOLOGRAM_PROGRESS", "True", "progress", "on"),
        ("HOLOGRAM_PROGRESS", "auto", "progress", "auto"),
    ],
)
def test_environment(variable: str, text: str, name: str, value: Any) -> None:
    code = f"from pathlib import *; from hologram.settings import settings; assert settings.{name} == {value!r}, settings"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, variable: text}, check=True)


def test_environment_that_is_no_number() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import hologram.settings"], env={**os.environ, "HOLOGRAM_DEBUG": "loud"}, capture_output=True, text=True
    )
    assert done.returncode != 0 and "HOLOGRAM_DEBUG must be an integer, not 'loud'" in done.stderr


def test_progress_is_one_of_three() -> None:
    for value, kept in ((True, "on"), (False, "off"), ("AUTO", "auto"), ("", "off")):
        with override(progress=value):
            assert settings.progress == kept
    before = settings.progress
    with pytest.raises(ValueError, match="progress is on, off or auto, not 'loud'"):
        settings.progress = "loud"
    assert settings.progress == before


def test_every_setting_is_documented() -> None:
    page = (Path(__file__).parent.parent / "docs" / "settings.md").read_text()
    rows = [line.split("|")[1:4] for line in page.splitlines() if line.startswith("| `")]
    names = {name.strip(" `"): variable.strip(" `") for name, variable, _ in rows}
    assert list(names) == [f.name for f in fields(Settings) if f.init]
    assert all(variable == ("HOLOGRAM_DISABLE_PASSES" if n == "disabled_passes" else f"HOLOGRAM_{n.upper()}") for n, variable in names.items())
