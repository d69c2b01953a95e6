"""Makes ``torch.compile(backend="hologram")`` work from a source tree that is not installed.

Torch finds backends by the entry points of installed distributions, which it reads when Dynamo first looks up a name. A source tree on the path has
no entry points. So it is presented as a distribution of the same name, with the entry point of pyproject.toml that torch reads. An installed
distribution comes first, and of two of one name Python takes the first. Dynamo is not imported for this.

A program that only names the backend wants compiled functions and no new device: :func:`is_lookup` tells the package that torch is importing it for
that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, DistributionFinder, EntryPoint
from os import PathLike
from typing import Any

from hologram.version import __version__

NAME = "hologram-compute"
GROUP = "torch_dynamo_backends"
ENTRY = EntryPoint("hologram", "hologram_torch.compile:backend", GROUP)
_REGISTRY = "torch._dynamo.backends.registry"


class SourceTree(Distribution):
    """The source tree as an installed distribution, as far as torch asks."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {__version__}\n"
        return f"[{GROUP}]\n{ENTRY.name} = {ENTRY.value}\n" if filename == "entry_points.txt" else None

    def locate_file(self, path: str | PathLike[str]) -> Any:
        raise FileNotFoundError(f"{NAME} runs from a source tree: there is no list of its files")


class _Finder(DistributionFinder):
    """Finds the source tree for whoever looks for distributions; it finds no modules."""

    def find_spec(self, *_: Any) -> None:
        return None

    def find_distributions(self, context: DistributionFinder.Context = DistributionFinder.Context()) -> Iterable[Distribution]:  # noqa: B008 - as Python's
        return [SourceTree()] if context.name is None or context.name.replace("_", "-").lower() == NAME else []


def is_lookup() -> bool:
    """Whether torch is importing the backend's entry point right now, because a program names the backend."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is EntryPoint.load.__code__ and frame.f_locals["self"].value == ENTRY.value:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def register() -> None:
    """Lets torch find the backend by its name, whether Dynamo has been imported or not."""
    sys.meta_path.append(_Finder())
    registry = sys.modules.get(_REGISTRY)
    if registry is not None:  # which may have looked already
        registry._BACKENDS.setdefault(ENTRY.name, ENTRY)
