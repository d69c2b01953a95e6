"""Libraries that run programs: Hologram, NumPy step by step, JAX.

NumPy stands beside a step where it has a function of that name which means the same; :data:`DIFFERENT` says where it does not.
"""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from . import forms
from .program import World

MODULES = ("numpy", "linalg", "fft", "nn", "special", "random")


@functools.cache
def hologram_function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(".")
    if module == "form":
        return getattr(forms, f"form_{function}")
    return getattr(importlib.import_module("hologram" if module == "control" else f"hologram.{module}"), function)


class Hologram(World):
    def function(self, name: str) -> Callable[..., Any]:
        return hologram_function(name)


# --- NumPy -----------------------------------------------------------------------------------------------------------


class NoMeaning(Exception):
    """A library has no function of that name and meaning."""


# names that both have, and that mean something else, or that NumPy leaves undefined
DIFFERENT = {
    "numpy.empty": "undefined values",
    "numpy.empty_like": "undefined values",
    "numpy.astype": "conversions of what does not fit are undefined",
    "numpy.resize": "",
    "numpy.argpartition": "any order within parts",
    "numpy.partition": "any order within parts",
    "numpy.unique": "",
    "numpy.put": "writes in place",
    "numpy.place": "writes in place",
    "numpy.fill_diagonal": "writes in place",
    "numpy.put_along_axis": "writes in place",
    "numpy.sort": "",
    "numpy.tensor": "",
    "linalg.eigh": "vectors up to a phase",
    "linalg.svd": "vectors up to a phase",
    "linalg.qr": "columns up to a phase",
    "linalg.lstsq": "",
    "numpy.sign": "complex signs",
    "numpy.spacing": "",
}


def _writing(name: str) -> Callable[..., Any]:
    def write(x: Any, *args: Any, **options: Any) -> Any:
        out = np.array(x)
        getattr(np, name)(out, *args, **options)
        return out

    return write


_AT = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}


def _numpy_at(x: Any, index: Any, method: str, *value: Any, mode: str = "drop", **_: Any) -> Any:
    out = np.array(x)
    if method == "get":
        return out[index]
    with np.errstate(all="ignore"):
        if method == "set":
            out[index] = np.asarray(value[0]).astype(out.dtype)
        elif method in _AT:
            _AT[method].at(out, index, np.asarray(value[0]).astype(out.dtype))
        else:
            raise NoMeaning(method)
    return out


def _numpy_setitem(x: Any, index: Any, value: Any) -> Any:
    out = np.array(x)
    out[index] = np.asarray(value).astype(out.dtype)
    return out


def _polydiv(xp: Any) -> Callable[..., Any]:
    """``polydiv`` with as many coefficients of the remainder as a divisor of this degree leaves: how many NumPy drops depends on rounding, and JAX
    keeps all."""

    def divide(p: Any, q: Any) -> Any:
        quotient, remainder = xp.polydiv(p, q)
        n = min(xp.atleast_1d(p).shape[0], xp.atleast_1d(q).shape[0] - 1)
        return quotient, xp.concatenate([xp.zeros(n, remainder.dtype), remainder])[-n:] if n else xp.zeros(1, remainder.dtype)

    return divide


def _window(x: np.ndarray, starts: Any, sizes: Any) -> tuple[slice, ...]:
    """Negative starts count from the end; then a window is moved inside."""
    firsts = [int(i) + n if int(i) < 0 else int(i) for i, n in zip(starts, x.shape, strict=True)]
    return tuple(slice(k := min(max(i, 0), n - size), k + size) for i, n, size in zip(firsts, x.shape, sizes, strict=True))


def _numpy_dynamic_slice(x: Any, starts: Any, sizes: Any) -> Any:
    return np.asarray(x)[_window(np.asarray(x), starts, sizes)]


def _numpy_dynamic_update_slice(x: Any, update: Any, starts: Any) -> Any:
    out = np.array(x)
    out[_window(out, starts, np.shape(update))] = np.asarray(update).astype(out.dtype)
    return out


def _along(starts: Any, axis: int, ndim: int) -> list[Any]:
    return [starts if a == axis % ndim else 0 for a in range(ndim)]


def _numpy_slice_in_dim(x: Any, start: Any, size: int, axis: int = 0) -> Any:
    x = np.asarray(x)
    return _numpy_dynamic_slice(x, _along(start, axis, x.ndim), [size if a == axis % x.ndim else n for a, n in enumerate(x.shape)])


def _numpy_update_slice_in_dim(x: Any, update: Any, start: Any, axis: int = 0) -> Any:
    return _numpy_dynamic_update_slice(x, update, _along(start, axis, np.ndim(x)))


def _numpy_index_in_dim(x: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    found = _numpy_slice_in_dim(x, index, 1, axis)
    return found if keepdims else np.squeeze(found, axis)


def _numpy_update_index_in_dim(x: Any, update: Any, index: Any, axis: int = 0) -> Any:
    return _numpy_update_slice_in_dim(x, update if np.ndim(update) == np.ndim(x) else np.expand_dims(update, axis), index, axis)


def _numpy_operator(name: str, *operands: Any) -> Any:
    """NumPy takes square roots for powers of a half: of -inf and -0.0 these are no powers."""
    if name == "pow" and len(operands) == 2 and np.ndim(operands[1]) == 0 and operands[1] == 0.5:
        return np.float_power(*operands).astype(np.result_type(*operands))
    return getattr(operator, name)(*operands)


_NUMPY_FORMS: dict[str, Callable[..., Any]] = {
    "form.getitem": lambda x, index: np.asarray(x)[index],
    "form.setitem": _numpy_setitem,
    "form.at": _numpy_at,
    "form.operator": _numpy_operator,
    "form.reflected": lambda name, x, number: getattr(operator, name)(number, x),
    "form.property": lambda x, name: np.matrix_transpose(x) if name == "mT" else getattr(x, name),
    "form.method": lambda x, name, *args, **options: getattr(x, name)(*args, **options),
    "form.stop_gradient": lambda x: x,
    "form.checkpoint": lambda f, *args: f(*args),
    "form.jit": lambda f, *args: f(*args),
    "form.vmap": lambda f, *args: [np.stack(column) for column in zip(*[forms.flat(f(*e)) for e in zip(*args, strict=True)], strict=True)],
    "numpy.polydiv": _polydiv(np),
    "numpy.dynamic_index_in_dim": _numpy_index_in_dim,
    "numpy.dynamic_update_index_in_dim": _numpy_update_index_in_dim,
    "numpy.dynamic_slice": _numpy_dynamic_slice,
    "numpy.dynamic_slice_in_dim": _numpy_slice_in_dim,
    "numpy.dynamic_update_slice": _numpy_dynamic_update_slice,
    "numpy.dynamic_update_slice_in_dim": _numpy_update_slice_in_dim,
    "control.cond": lambda p, a, b, *args: a(*args) if np.asarray(p) else b(*args),
    "control.switch": lambda i, branches, *args: branches[int(np.clip(int(i), 0, len(branches) - 1))](*args),
}


def _numpy_tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """NumPy gives the unknown of as many equations as ``b`` has axes the shape of ``a``, of which no axis is left."""
    if np.ndim(a) == np.ndim(b):
        raise NoMeaning("linalg.tensorsolve")
    return np.linalg.tensorsolve(a, b, axes)


def _numpy_scan(f: Any, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, **_: Any) -> Any:
    steps = len(forms.flat(xs)[0]) if xs is not None else length or 0
    carry, ys = init, []
    for i in reversed(range(steps)) if reverse else range(steps):
        carry, y = f(carry, None if xs is None else _each(xs, i))
        ys.append(forms.flat(y))
    if not ys:
        raise NoMeaning("types of nothing")
    ys = ys[::-1] if reverse else ys
    return carry, [np.stack(column) for column in zip(*ys, strict=True)]


def _each(xs: Any, i: int) -> Any:
    return type(xs)([_each(x, i) for x in xs]) if isinstance(xs, (tuple, list)) else xs[i]


def _numpy_fori(lower: Any, upper: Any, body: Any, init: Any, **_: Any) -> Any:
    value = init
    for i in range(int(lower), int(upper)):
        value = body(np.int64(i), value)
    return value


def _numpy_while(test: Any, body: Any, init: Any) -> Any:
    while np.asarray(forms.flat(test(init))[0]):
        init = body(init)
    return init


_NUMPY_FORMS |= {
    "linalg.tensorsolve": _numpy_tensorsolve,
    "control.scan": _numpy_scan,
    "control.fori_loop": _numpy_fori,
    "control.while_loop": _numpy_while,
}


class NumPy(World):
    """Raises NoMeaning for what NumPy (or SciPy's ``special``) does not have."""

    def function(self, name: str) -> Callable[..., Any]:
        if name in _NUMPY_FORMS:
            return _NUMPY_FORMS[name]
        module, _, function = name.partition(".")
        if name in ("numpy.put_along_axis", "numpy.fill_diagonal"):
            return _writing(function)
        if name in DIFFERENT or module in ("nn", "random", "form", "control"):
            raise NoMeaning(name)
        found = getattr(_module("scipy.special" if module == "special" else "numpy" if module == "numpy" else f"numpy.{module}"), function, None)
        if found is None:
            raise NoMeaning(name)
        return found

    def leaves(self, x: Any) -> list[Any]:
        return [np.asarray(e) for e in forms.flat(x)]


@functools.cache
def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# --- JAX -------------------------------------------------------------------------------------------------------------


class Jax(World):
    """JAX with 64-bit types; made once in a process."""

    def __init__(self) -> None:
        import os

        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax = jax

    def array(self, a: np.ndarray) -> Any:
        return self.jax.numpy.asarray(np.ascontiguousarray(a).reshape(a.shape))

    def function(self, name: str) -> Callable[..., Any]:
        module, _, function = name.partition(".")
        if name in self.forms:
            return self.forms[name]
        if module == "control" or function.startswith("dynamic_"):
            return getattr(self.jax.lax, function)
        where = {
            "numpy": "jax.numpy",
            "linalg": "jax.numpy.linalg",
            "fft": "jax.numpy.fft",
            "nn": "jax.nn",
            "special": "jax.scipy.special",
        }.get(module)
        found = getattr(_module(where), function, None) if where else None
        if found is None or name in DIFFERENT:
            raise NoMeaning(name)
        return found

    def leaves(self, x: Any) -> list[Any]:
        return forms.flat(x)

    @functools.cached_property
    def forms(self) -> dict[str, Callable[..., Any]]:
        jax, jnp = self.jax, self.jax.numpy

        def at(x: Any, index: Any, method: str, *value: Any, **options: Any) -> Any:
            return getattr(jnp.asarray(x).at[index], method)(*value, **options)

        return {
            "numpy.polydiv": _polydiv(jnp),
            "form.getitem": lambda x, index: jnp.asarray(x)[index],
            "form.setitem": lambda x, index, value: jnp.asarray(x).at[index].set(value),
            "form.at": at,
            "form.operator": lambda name, *operands: getattr(operator, name)(jnp.asarray(operands[0]), *operands[1:]),
            "form.reflected": lambda name, x, number: getattr(operator, name)(number, jnp.asarray(x)),
            "form.property": lambda x, name: getattr(jnp.asarray(x), name),
            "form.method": lambda x, name, *args, **options: getattr(jnp.asarray(x), name)(*args, **options),
            "form.stop_gradient": jax.lax.stop_gradient,
            "form.checkpoint": lambda f, *args: f(*args),
            "form.jit": lambda f, *args: f(*args),
            "form.vmap": lambda f, *args: jax.vmap(f)(*args),
            "form.grad_of_sum": lambda f, *args: jax.grad(lambda *a: jnp.sum(f(*a)), argnums=tuple(range(len(args))))(*args),
        }
