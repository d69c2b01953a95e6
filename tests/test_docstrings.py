"""Every public callable has a docstring of its own with an example, and the examples print what they say.

What is public ``docs/site/public_api.py`` finds, for the reference on the site, too.
Examples assume ``import hologram as hg``, ``import hologram.numpy as hnp`` and ``import numpy as np``; those of ``hologram_ffi`` and
``hologram_torch`` their names, and ``import torch``.
"""

from __future__ import annotations

import doctest
import io
import math
import re
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import hologram
from docs.site.public_api import TORCH, own_docstring, public_callables, public_modules

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[-+]?\d+)?")
DIGITS = 1e-5  # other processors and versions of LAPACK may round the last digits otherwise


MODULES = public_modules()
NAMES = {"hg": hologram, "hnp": hologram.numpy, "np": np} | {name: import_module(name) for name in ("hologram_ffi", *(TORCH and ("torch", *TORCH)))}


class Checker(doctest.OutputChecker):
    """Compares numbers with a point to five digits, the text around them exactly."""

    def check_output(self, want: str, got: str, flags: int) -> bool:
        if super().check_output(want, got, flags):
            return True
        texts = [" ".join(NUMBER.sub("#", text).split()) for text in (want, got)]
        numbers = [[float(x) for x in NUMBER.findall(text)] for text in (want, got)]
        close = len(numbers[0]) == len(numbers[1]) and all(map(_close, *numbers))
        return close and super().check_output(texts[0].replace(" ", ""), texts[1].replace(" ", ""), flags)


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=DIGITS, abs_tol=1e-7)


def assert_passing(tests: Iterable[doctest.DocTest]) -> None:
    said = io.StringIO()
    for test in tests:
        doctest.DocTestRunner(Checker(), verbose=False, optionflags=FLAGS).run(test, out=said.write, clear_globs=False)  # torch cleans up there
    assert not said.getvalue(), said.getvalue()


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_public_callables_have_a_docstring_with_an_example(module: ModuleType) -> None:
    texts = {name: own_docstring(x) for name, x in public_callables(module)}
    lacking = [name for name, text in texts.items() if not text.strip()]
    shown = [name for name, text in texts.items() if text.strip() and not doctest.DocTestParser().get_examples(text)]
    assert not lacking and not shown, f"without a docstring: {lacking}\nwithout an example: {shown}"


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_public_methods_and_properties_have_a_docstring(module: ModuleType) -> None:
    lacking = []
    for name, cls in public_callables(module):
        for x, value in vars(cls).items() if isinstance(cls, type) else ():
            is_method = callable(value) or isinstance(value, (property, staticmethod, classmethod))
            overrides = any(x in vars(base) for base in cls.__mro__[1:])  # whose docstring holds
            if is_method and not x.startswith("_") and not overrides and not (value.__doc__ or "").strip():
                lacking.append(f"{name}.{x}")
    assert not lacking


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_examples_of_docstrings_run_as_they_stand(module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if module.__name__.startswith(TORCH) and import_module("hologram_torch.api.device").gpu():
        pytest.skip("torch has a GPU, beside which there is no device of Hologram's")
    parse = doctest.DocTestParser().get_doctest
    assert_passing(parse(own_docstring(x), dict(NAMES), name, None, 0) for name, x in public_callables(module))


def test_examples_of_other_docstrings_run_as_they_stand() -> None:
    run = {own_docstring(x) for module in MODULES for _, x in public_callables(module)}
    loaded = [module for name, module in sorted(sys.modules.items()) if name.split(".")[0] in ("hologram", "hologram_ffi", *TORCH)]
    found = [test for module in loaded for test in doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__, globs=NAMES)]
    others = {test.docstring: test for test in found if test.examples and test.docstring not in run}
    assert others  # those of methods
    assert_passing(others.values())


def test_the_checker_tells_numbers_apart() -> None:
    checker = Checker()
    assert checker.check_output("Tensor([0.3333333, 1.])\n", "Tensor([0.33333334, 1. ])\n", FLAGS)
    assert not checker.check_output("Tensor([0.3333, 1.])\n", "Tensor([0.33333334, 1. ])\n", FLAGS)
    assert not checker.check_output("Tensor([1, 2])\n", "Tensor([1, 3])\n", FLAGS)
    assert not checker.check_output("Tensor([1., 2.])\n", "Tensor([1., 2., 3.])\n", FLAGS)


def test_the_modules_that_users_name_are_covered() -> None:
    found = {m.__name__ for m in MODULES}
    assert {f"hologram.{x}" for x in ("numpy", "linalg", "fft", "lax", "nn", "random", "special", "errors", "settings", "dtypes")} <= found
    assert sum(1 for m in MODULES for _ in public_callables(m)) > 500
