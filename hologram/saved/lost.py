"""Derivatives that are not in a file."""

from __future__ import annotations

from typing import Any

from hologram.errors import DifferentiationError
from hologram.trace.recorder import located
from hologram.transform.custom import Rule


class Lost(Rule):
    """Stands for a derivative of its own that the exported function had: a file holds no Python functions."""

    def tangents(self, arguments: Any, given: Any) -> Any:
        advice = "export the derivative as a function of its own"
        raise located(DifferentiationError(f"a loaded program has a part whose custom derivative is not in its file: {advice}"))

    def stack(self, size: Any, batched: Any) -> Rule:
        return self


LOST = Lost()
