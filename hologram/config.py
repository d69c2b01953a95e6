"""Names of ``jax.config``: JAX's settings as :mod:`hologram.settings`, which says what each does. Others than those of the table are errors."""

from __future__ import annotations

import contextlib
from typing import Any

from hologram.errors import ArgumentError
from hologram.settings import override, settings
from hologram.support.user_lines import located
from hologram.support.wording import did_you_mean

__all__ = ["debug_infs", "debug_nans", "enable_x64", "read", "update"]

# by JAX's name: ours, what is on, what is off
_SWITCHES: dict[str, tuple[str, Any, Any]] = {
    "jax_debug_infs": ("nans", "on", ""),
    "jax_debug_nans": ("nans", "nan", ""),
    "jax_enable_compilation_cache": ("cache", True, False),
    "jax_enable_x64": ("default_float", "float64", "float32"),
    "jax_explain_cache_misses": ("explain_misses", True, False),
}
_VALUES = {"jax_compilation_cache_dir": "cache_dir"}


def _known(name: str) -> str:
    """Raises ArgumentError for a setting that is not here."""
    if name not in _SWITCHES and name not in _VALUES:
        every = [*_SWITCHES, *_VALUES]
        hint = did_you_mean(name, every) or f"; there are {', '.join(every)}"
        raise located(ArgumentError(f"config: there is no setting {name!r}{hint}. Hologram's own are in hologram.settings"))
    return name


def update(name: str, value: Any) -> None:
    """Sets one of JAX's settings for good: ``jax_enable_x64`` makes float64 the type of floats that have none, as ``settings.default_float`` does.

    Raises ArgumentError for a setting that has no counterpart.

    >>> hg.config.update("jax_debug_nans", False)
    """
    if _known(name) in _VALUES:
        setattr(settings, _VALUES[name], value)
    else:
        field, on, off = _SWITCHES[name]
        setattr(settings, field, on if value else off)


def read(name: str) -> Any:
    """The value of one of JAX's settings. Raises ArgumentError for one that has no counterpart.

    >>> hg.config.read("jax_enable_x64")
    False
    """
    if _known(name) in _VALUES:
        return getattr(settings, _VALUES[name])
    field, on, _ = _SWITCHES[name]
    return bool(getattr(settings, field) == on)


def _block(name: str, value: bool) -> contextlib.AbstractContextManager[Any]:
    field, on, off = _SWITCHES[name]
    return override(**{field: on if value else off})


def enable_x64(new_val: bool = True) -> contextlib.AbstractContextManager[Any]:
    """Context manager in which floats without a type are float64, or float32 for False.

    >>> with hg.enable_x64():
    ...     hnp.zeros(2).dtype
    dtype('float64')
    """
    return _block("jax_enable_x64", new_val)


def debug_nans(new_val: bool = True) -> contextlib.AbstractContextManager[Any]:
    """Context manager in which the first NaN raises NonFiniteError: see :func:`hologram.debug.nans`.

    >>> with hg.debug_nans(False):
    ...     hnp.log(-1.0)
    Tensor(nan, dtype=float32)
    """
    return _block("jax_debug_nans", new_val)


def debug_infs(new_val: bool = True) -> contextlib.AbstractContextManager[Any]:
    """Context manager in which the first NaN or Inf raises NonFiniteError: see :func:`hologram.debug.nans`.

    >>> with hg.debug_infs(False):
    ...     hnp.log(0.0)
    Tensor(-inf, dtype=float32)
    """
    return _block("jax_debug_infs", new_val)


def __getattr__(name: str) -> Any:
    """``config.jax_enable_x64`` and its kin."""
    if name in _SWITCHES or name in _VALUES:
        return read(name)
    raise AttributeError(f"module 'hologram.config' has no attribute {name!r}")
