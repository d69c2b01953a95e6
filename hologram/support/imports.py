"""What is done when another library is imported, now or later."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

_waiting: dict[str, Callable[[], None]] = {}


def when_imported(name: str, action: Callable[[], None]) -> None:
    """Calls ``action`` when the module ``name`` has been imported: at once if it has been. An exception of its is a warning."""
    if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", True):
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
        _waiting[name] = action
    else:
        _call(name, action)


def _call(name: str, action: Callable[[], None]) -> None:
    try:
        action()
    except Exception as e:
        warnings.warn(f"hologram could not be made known to {name.partition('.')[0]}: {type(e).__name__}: {e}", stacklevel=2)


class _Finder:  # no subclass of importlib.abc, which takes milliseconds to import
    """Finds the modules that are waited for, by the other finders, and gives them a loader that calls the action."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)  # type: ignore[assignment]  # a loader in all but its base
                return spec
        return None


class _Loader:
    """The loader of a module that is waited for. It is in its place until the module has been executed."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        action = _waiting.pop(module.__name__, None)
        if action is not None:
            _call(module.__name__, action)


_finder = _Finder()
