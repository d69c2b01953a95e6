"""What a transform, or a decorator, makes of a function."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from hologram.support.pickling import by_name


class Wrapper:
    """An object in the place of a function: a method where it stands in a class, its own copy, and pickled by the name that its module gives it."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)  # type: ignore[arg-type]  # subclasses are called

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return by_name(self, self) or super().__reduce_ex__(protocol)


class Transformed(Wrapper):
    """``of(f, options, args, keywords)`` as a function of ``args`` and ``keywords``, with the name and the signature of ``f``.

    It can be pickled where ``f`` can: ``of`` is a function of a module.
    """

    def __init__(self, of: Callable[..., Any], f: Callable[..., Any], *options: Any) -> None:
        functools.update_wrapper(self, f)
        self._of, self._f, self._options = of, f, options

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._of(self._f, self._options, args, keywords)

    def __repr__(self) -> str:
        return f"<{self._of.__name__.strip('_')} of {getattr(self, '__qualname__', self._f)}>"

    def __reduce__(self) -> Any:
        return Transformed, (self._of, self._f, *self._options)
