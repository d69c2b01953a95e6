"""The API reference: everything public is described, once, with its examples."""

from __future__ import annotations

import enum
import re
from pathlib import Path
from typing import Any

import pytest

import hologram
import hologram.numpy as hnp
from docs.site import reference
from docs.site.public_api import own_docstring, public_callables, public_modules


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reference")
    written = reference.write(folder)
    assert written == {p for p in folder.rglob("*") if p.is_file()}
    return {p.relative_to(folder).with_suffix("").as_posix(): p.read_text() for p in written}


def described(text: str) -> list[str]:
    """Names that a page describes, the modules' in front."""
    (module, *_) = re.findall(r"^\.\. py:(?:current)?module:: (\S+)$", text, re.M)
    found = []
    for kind, names in re.findall(r"^\.\. py:(function|class|exception|data):: (.+?)\n\n", text, re.M | re.S):
        found += [f"{module}.{re.split(r'[(]', line.strip())[0]}" for line in names.split("\n") if kind]
    return found


def test_everything_public_is_described_once(pages: dict[str, str]) -> None:
    names = [name for page, text in pages.items() if page not in ("index", "returned") for name in described(text)]
    assert len(names) == len(set(names)) > 700
    users = reference.user_names(public_modules())
    for module in public_modules():
        for name, _ in public_callables(module):
            short = name.removeprefix(module.__name__ + ".")
            assert f"{users[module.__name__]}.{short}" in names, name


def test_descriptions_have_the_examples_of_the_docstrings(pages: dict[str, str]) -> None:
    everything = "\n".join(pages.values())
    for module in public_modules():
        for name, value in public_callables(module):
            for example in re.findall(r"^\s*(>>> .*)$", own_docstring(value), re.M):
                assert example in everything, name


def test_what_several_modules_have_refers_to_the_first(pages: dict[str, str]) -> None:
    assert "The same as :py:obj:`hologram.scan`." in "".join(text for name, text in pages.items() if name.startswith("hologram.lax"))
    assert "acos(x, /)" in pages["hologram.numpy/elementwise_functions"] and "arccos(x, /)" in pages["hologram.numpy/elementwise_functions"]


def test_modules_are_called_as_users_call_them(pages: dict[str, str]) -> None:
    assert {"hologram", "hologram.tree", "hologram.ops", "hologram.backend", "hologram.sdk", "hologram.nn.initializers", "hologram_ffi"} <= set(pages)
    assert not any("trace" in page for page in pages)


def test_functions_stand_on_the_page_of_the_module_that_they_are_written_in(pages: dict[str, str]) -> None:
    """Also those that a public module wraps, and names as its own."""
    assert hnp.cumulative_sum.__module__ == "hologram.numpy"
    assert "hologram.numpy.cumulative_sum" in described(pages["hologram.numpy/reductions"])
    assert not any(hasattr(getattr(hnp, name.rpartition(".")[2]), "__wrapped__") for name in described(pages["hologram.numpy/numpy"]))


class Colour(enum.Enum):
    """A colour."""

    RED = 1


class Thing:
    """A thing."""

    def grow(self, by: int, /, *, fast: Any = False) -> Thing:
        """Grows."""
        return self

    @property
    def size(self) -> int:
        """How large it is."""
        return 1

    def shrink(self: Thing, *by: int) -> None:
        """Shrinks."""

    @staticmethod
    def made(size: int) -> Thing:
        """Makes one."""
        return Thing()

    def _hidden(self) -> None:
        """No part of it."""


def sample(x: Any, /, axis: int | None = None, *, key: object = object()) -> Any:  # noqa: B008
    """Sums, like :func:`hologram.numpy.sum`; see docs/nn.md and :func:`helper`. More.

    >>> 1
    """


def helper() -> None: ...


def test_signatures_leave_out_what_says_nothing() -> None:
    assert reference.signature_of(sample) == "(x, /, axis: int | None = None, *, key: object = ...)"
    assert reference.signature_of(hologram.numpy.sum).startswith("(x, /, axis=None, dtype=None, out=None, keepdims: bool = False, initial=None")
    assert reference.signature_of(Colour) == ""


def test_docstrings_become_links() -> None:
    text = reference.docstring(sample)
    assert ":py:obj:`hologram.numpy.sum <hologram.numpy.sum>`" in text and ":doc:`/nn`" in text and "``helper``" in text
    assert reference.summary(sample).startswith("Sums, like") and "More" not in reference.summary(sample)


def test_classes_have_their_members() -> None:
    text = reference.description(reference.Entry(Thing, ["Thing"]))
    assert ".. py:method:: grow(by: int, /, *, fast=False) -> Thing" in text and ".. py:property:: size" in text and "_hidden" not in text
    assert ".. py:method:: shrink(*by: int) -> None" in text and ".. py:method:: made(size: int) -> Thing" in text
    assert ".. py:attribute:: RED" in reference.description(reference.Entry(Colour, ["Colour"]))


@pytest.mark.parametrize(
    ("path", "module", "found"),
    [
        ("sum", "hologram.numpy", True),
        ("hologram.numpy.sum", "hologram.nn", True),
        ("no_such", "hologram", False),
        ("hologram.nothing.here", "os", False),
    ],
)
def test_names_in_docstrings_are_looked_up(path: str, module: str, found: bool) -> None:
    assert (reference.lookup(path, module) is hologram.numpy.sum) == found == (reference.lookup(path, module) is not None)


def test_pages_are_as_sphinx_wants_them(pages: dict[str, str], tmp_path: Path) -> None:
    for page, text in pages.items():
        title, rule = text.split("\n")[:2]
        assert len(title) == len(rule) and set(rule) == {"="}, page


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pi", "``3.141592653589793``"),
        ("newaxis", "``None``"),
        ("floating", "NumPy's ``floating``."),
        ("s_", "An object of NumPy's class ``IndexExpression``."),
    ],
)
def test_constants_say_what_they_are(name: str, text: str) -> None:
    assert reference.constant(getattr(hologram.numpy, name)) == text
    assert reference.constant(hologram.dtypes.float32) == "The element type float32."
    assert reference.constant(hologram.tree.LEAF).startswith("Structure of a pytree")


def test_what_calls_return_says_which_call(pages: dict[str, str]) -> None:
    text = pages["returned"]
    assert "Returned by :py:obj:`~hologram.jit`." in text and ".. py:method:: memory_analysis()" in text
