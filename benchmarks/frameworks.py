"""How each framework runs a case, by its best idiom and with its default settings. A framework is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.cases import Case

Call = Callable[[], Any]


def map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: map_tree(function, v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return tuple(map_tree(function, v) for v in tree)
    return function(tree)


def hologram(case: Case, arguments: tuple[Any, ...]) -> Call:
    import hologram as hg
    import hologram.numpy as hnp

    def function(*args: Any) -> Any:
        return case.function(hnp, *args)

    tensors = map_tree(hg.tensor, arguments)
    run = hg.jit(function) if case.compiled else function
    return lambda: hg.block_until_ready(run(*tensors))


def numpy(case: Case, arguments: tuple[Any, ...]) -> Call:
    return lambda: case.function(np, *arguments)


def jax(case: Case, arguments: tuple[Any, ...]) -> Call:
    import jax
    import jax.numpy as jnp

    def function(*args: Any) -> Any:
        return case.function(jnp, *args)

    arrays = map_tree(jnp.asarray, arguments)
    run = jax.jit(function) if case.compiled else function
    return lambda: jax.block_until_ready(run(*arrays))


def torch(case: Case, arguments: tuple[Any, ...], compiled: bool = False) -> Call:
    import torch

    def over(function: Callable[..., Any]) -> Callable[..., Any]:
        """``function`` with NumPy's ``axis`` and ``keepdims``."""
        return lambda x, axis=None, keepdims=False: function(x) if axis is None else function(x, dim=axis, keepdim=keepdims)

    xp = SimpleNamespace(
        **{name: getattr(torch, name) for name in ("exp", "log", "sin", "sqrt", "tanh", "where", "argmax")},
        sum=over(torch.sum),
        mean=over(torch.mean),
        max=lambda x, axis=None, keepdims=False: torch.max(x) if axis is None else torch.amax(x, axis, keepdims),
        cumsum=lambda x, axis: torch.cumsum(x, axis),
    )

    def function(*args: Any) -> Any:
        return case.function(xp, *args)

    def tensor(x: np.ndarray) -> Any:
        """``from_numpy`` does not know NumPy's bfloat16."""
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if x.dtype.name == "bfloat16" else torch.from_numpy(x)

    tensors = map_tree(tensor, arguments)
    run = torch.compile(function) if compiled and case.compiled else function
    return lambda: run(*tensors)


def inductor(case: Case, arguments: tuple[Any, ...]) -> Call:
    return torch(case, arguments, compiled=True)


class _Text:
    """An expression of numexpr under construction; Python scalars become float32 names, for its literals are float64."""

    def __init__(self, text: str, names: dict[str, Any]) -> None:
        self.text, self.names = text, names

    def _operand(self, other: Any) -> str:
        if isinstance(other, _Text):
            return other.text
        name = f"c{len(self.names)}"
        self.names[name] = np.float32(other)
        return name

    def _binary(self, symbol: str, other: Any, swapped: bool = False) -> _Text:
        left, right = self.text, self._operand(other)
        return _Text(f"({right} {symbol} {left})" if swapped else f"({left} {symbol} {right})", self.names)


def _operator(symbol: str, swapped: bool) -> Callable[[_Text, Any], _Text]:
    return lambda self, other: self._binary(symbol, other, swapped)


for _name, _symbol in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("pow", "**")):
    setattr(_Text, f"__{_name}__", _operator(_symbol, False))
    setattr(_Text, f"__r{_name}__", _operator(_symbol, True))
_Text.__gt__ = _operator(">", False)  # type: ignore[attr-defined]


def numexpr(case: Case, arguments: tuple[Any, ...]) -> Call:
    import numexpr

    names: dict[str, Any] = {f"x{i}": a for i, a in enumerate(arguments)}

    def function(name: str) -> Callable[..., _Text]:
        return lambda *args: _Text(f"{name}({', '.join(args[0]._operand(a) for a in args)})", names)

    xp = SimpleNamespace(**{name: function(name) for name in ("exp", "log", "sin", "sqrt", "tanh", "where")})
    text = case.function(xp, *(_Text(name, names) for name in list(names))).text
    return lambda: numexpr.evaluate(text, local_dict=names, global_dict={})


FRAMEWORKS: dict[str, Callable[[Case, tuple[Any, ...]], Call]] = {f.__name__: f for f in (hologram, numpy, torch, inductor, jax, numexpr)}
