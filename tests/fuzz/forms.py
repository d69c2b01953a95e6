"""Forms of the language that are no functions of the namespace: indexing, updates, operators, methods. Scripts contain this file as text."""

from __future__ import annotations

import operator
from typing import Any

import hologram as hg
import hologram.numpy as hnp


def flat(x: Any) -> list[Any]:
    """The leaves of tuples, lists and dicts (by sorted keys)."""
    if isinstance(x, (tuple, list)):
        return [y for e in x for y in flat(e)]
    if isinstance(x, dict):
        return [y for k in sorted(x) for y in flat(x[k])]
    return [] if x is None else [x]


def form_getitem(x: Any, index: Any) -> Any:
    return hnp.asarray(x)[index]


def form_setitem(x: Any, index: Any, value: Any) -> Any:
    y = hnp.copy(x)
    y[index] = value
    return y


def form_at(x: Any, index: Any, method: str, *value: Any, **options: Any) -> Any:
    return getattr(hnp.asarray(x).at[index], method)(*value, **options)


def form_operator(name: str, *operands: Any) -> Any:
    return getattr(operator, name)(hnp.asarray(operands[0]), *operands[1:])


def form_reflected(name: str, x: Any, number: Any) -> Any:
    return getattr(operator, name)(number, hnp.asarray(x))


def form_property(x: Any, name: str) -> Any:
    return getattr(hnp.asarray(x), name)


def form_method(x: Any, name: str, *args: Any, **options: Any) -> Any:
    return getattr(hnp.asarray(x), name)(*args, **options)


def form_stop_gradient(x: Any) -> Any:
    return hg.stop_gradient(x)


def form_checkpoint(f: Any, *args: Any) -> Any:
    return hg.checkpoint(f)(*args)


def form_jit(f: Any, *args: Any) -> Any:
    return hg.jit(f)(*args)


def form_vmap(f: Any, *args: Any) -> Any:
    return hg.vmap(f)(*args)


def form_grad_of_sum(f: Any, *args: Any) -> Any:
    return hg.grad(lambda *a: hnp.sum(f(*a)), argnums=tuple(range(len(args))))(*args)
