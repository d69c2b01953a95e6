"""``_repr_html_`` of classes whose pictures are drawn by packages above them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def html_method(where: str) -> Callable[[Any], str | None]:
    """The method that calls ``where``, a function ``"module:name"`` of :mod:`hologram`, which is imported when a notebook first asks.

    It never raises: where there is no picture, notebooks show the text, and whatever is wrong is said there.
    """
    module, _, name = where.partition(":")

    def _repr_html_(self: Any) -> str | None:
        try:
            text: str | None = getattr(import_module(f"hologram.{module}"), name)(self)
        except Exception:
            return None
        return text

    _repr_html_.__doc__ = "HTML for notebooks; None where there is nothing to show but the text."
    return _repr_html_
