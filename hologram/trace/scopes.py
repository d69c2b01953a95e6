"""Blocks and functions that JAX's programs mark: names of scopes, evaluation while tracing, and waiting for effects."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from hologram.errors import ArgumentError
from hologram.support.user_lines import located
from hologram.trace.call.abstract_eval import ShapeDtypeStruct
from hologram.trace.checks import as_function
from hologram.trace.operators import operand, weak_default
from hologram.trace.recorder import suspended

__all__ = ["effects_barrier", "ensure_compile_time_eval", "named_call", "named_scope", "typeof"]


@contextlib.contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Context manager, or decorator, that gives ops a name in JAX's programs. Here graphs, profiles and errors show the user's lines instead: the
    name is taken, and of no consequence.

    Raises ArgumentError for what is no text.

    >>> with hg.named_scope("layer"):
    ...     hnp.asarray(1.0) + 1
    Tensor(2., dtype=float32)
    """
    if not isinstance(name, str):
        raise located(ArgumentError(f"named_scope: a name is a text, not {name!r}"))
    yield


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """``fun`` under a name, for JAX's programs: see :func:`named_scope`.

    >>> hg.named_call(lambda x: x + 1, name="increment")(1)
    2
    """
    as_function(fun, "named_call")
    title = getattr(fun, "__name__", "function") if name is None else name

    @functools.wraps(fun)
    def call(*args: Any, **options: Any) -> Any:
        with named_scope(title):
            return fun(*args, **options)

    return call


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Context manager in which values that do not depend on a traced function's arguments can be read: they are computed at once, while tracing.

    A traced value that is used inside raises LeakedTracerError.

    >>> @hg.jit
    ... def f(x):
    ...     with hg.ensure_compile_time_eval():
    ...         n = int(hnp.sum(hnp.arange(4)))
    ...     return hnp.full((n,), x)
    >>> f(1.0).shape
    (6,)
    """
    with suspended():
        yield


def effects_barrier() -> None:
    """Waits for effects, such as those of :func:`hologram.debug.print`, as JAX's programs do. Here they have happened when a call returns.

    >>> hg.effects_barrier()
    """


def typeof(x: Any) -> ShapeDtypeStruct:
    """Shape and element type of anything array-like. Raises ArgumentError for anything else.

    >>> hg.typeof([1.0, 2.0])
    ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    node, dtype, weak = operand(x, "typeof")
    shape = getattr(node, "shape", ())
    return ShapeDtypeStruct(shape, (weak_default(dtype) if weak else dtype).np)
