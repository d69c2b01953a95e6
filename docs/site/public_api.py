"""What is public, asked of the modules: ``__dir__``, ``__all__`` or, where there is neither, what a module defines without a leading underscore."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

TORCH = ("hologram_torch",) if find_spec("torch") else ()
ROOTS = ("hologram", "hologram.control", "hologram.sdk", "hologram_ffi", *TORCH)
FOREIGN = ("numpy", "ml_dtypes", "torch")  # types of elements, which have documentation of their own


def root_of(x: Any) -> str:
    """The package that defines ``x``; "" for what native code makes."""
    return str(x.__name__ if isinstance(x, ModuleType) else getattr(x, "__module__", None) or "").split(".")[0]


def defining_module(x: Any) -> str | None:
    """The module in which a function or class is written, also of one that is wrapped in, and named after, the public module."""
    return getattr(inspect.unwrap(x) if callable(x) else x, "__module__", None)


def public_names(module: ModuleType) -> list[str]:
    """In the module's own order."""
    shown = dir(module) if "__dir__" in vars(module) else ["_"]
    if not any(name.startswith("_") and not name.startswith("__") for name in shown):  # one that lists public names, and not all globals
        return shown
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [name for name, value in vars(module).items() if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__]


def public_modules() -> list[ModuleType]:
    """Those that users reach by their names from the roots: modules without ``__all__`` only if the library's own list has them."""
    found = {name: import_module(name) for name in ROOTS}
    todo = list(found.values())
    while todo:
        module = todo.pop()
        for value in [getattr(module, name) for name in public_names(module)]:
            listed = isinstance(value, ModuleType) and (module.__name__ in ROOTS or hasattr(value, "__all__"))
            if listed and root_of(value).startswith("hologram") and value.__name__ not in found:
                found[value.__name__] = value
                todo.append(value)
    return list(found.values())


def public_callables(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Each once, by its first name. Errors are left out: they are raised, not called."""
    met: set[int] = set()
    for name in public_names(module):
        value = getattr(module, name)
        is_error = isinstance(value, type) and issubclass(value, BaseException)
        if callable(value) and root_of(value) not in FOREIGN and not is_error and id(value) not in met:
            met.add(id(value))
            yield f"{module.__name__}.{name}", value


def own_docstring(x: Any) -> str:
    """The docstring, unless it is that of the class of ``x`` or of a base class, or what a dataclass has without one."""
    text = getattr(x, "__doc__", None) or ""
    if not isinstance(text, str):  # a class whose objects have one each
        return ""
    classes = x.__mro__[1:] if isinstance(x, type) else type(x).__mro__
    inherited = {getattr(c, "__doc__", None) for c in classes}
    made = isinstance(x, type) and text.startswith(f"{x.__name__}(") and text.endswith(")")
    return "" if text in inherited or made else text
