"""``convert``: swaps the layers of a model for Hologram's, in place."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from hologram.errors import ArgumentError
from hologram.support.user_lines import located
from hologram_torch.api import nn
from hologram_torch.api.nn import Computed


class Conversion(NamedTuple):
    """What :func:`convert` did, by the names of modules in the model ("" is the model itself).

    ``converted`` are those that now compute with Hologram; ``left`` tells what the others are that have no modules inside.

    >>> print(hologram_torch.convert(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Dropout())))
    1 modules compute with Hologram
    left: 1, a Dropout
    """

    converted: tuple[str, ...]
    left: dict[str, str]

    def __str__(self) -> str:
        lines = [f"{len(self.converted)} modules compute with Hologram"]
        return "\n".join(lines + [f"left: {name or 'the model'}, a {what}" for name, what in self.left.items()])


def _counterparts() -> dict[type, type]:
    """From each module class of torch to the class of Hologram that derives from it."""
    modules: list[Any] = [getattr(nn, name) for name in nn.__all__]
    return {base: m for m in modules for base in m.__bases__ if base is not Computed}


def convert(model: torch.nn.Module) -> Conversion:
    """Converts a model in place: its layers of ``torch.nn`` with a counterpart in :mod:`hologram_torch.nn` become that.

    Every module of ``model``, itself included, counts that is exactly of one of these classes; those of derived classes are left, since they may
    compute something else. The module objects stay, with their parameters, buffers, hooks and mode, so optimisers and state dicts stay valid. Raises
    ArgumentError for what is no module.

    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    >>> hologram_torch.convert(model).converted
    ('0', '1')
    """
    if not isinstance(model, torch.nn.Module):
        raise located(ArgumentError(f"convert takes a torch.nn.Module, not a {type(model).__name__}"))
    counterparts = _counterparts()
    converted, left = [], {}
    for name, module in model.named_modules():
        found = counterparts.get(type(module))
        if found is not None:
            module.__class__ = found
            converted.append(name)
        elif not isinstance(module, Computed) and next(module.children(), None) is None:
            left[name] = type(module).__name__
    return Conversion(tuple(converted), left)
