"""opt_einsum: contractions with ``backend="hologram"``."""

from __future__ import annotations

from opt_einsum.backends import dispatch


def register() -> None:
    """Tells opt_einsum in which module the functions are."""
    dispatch._aliases["hologram"] = "hologram.numpy"
