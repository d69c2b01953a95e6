"""The public functions that programs are made of, by introspection."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .worlds import MODULES, hologram_function

# public functions that are not steps of a traced program, and why
NOT_STEPS = {
    "numpy.__array_namespace_info__": "no arrays",
    "numpy.from_dlpack": "takes foreign memory",
    "numpy.vectorize": "gives a function",
    "numpy.apply_along_axis": "takes a function; tested beside vmap",
    "numpy.apply_over_axes": "takes a function",
    "numpy.fromfunction": "takes a function",
    "numpy.piecewise": "takes functions",
    "numpy.mask_indices": "takes a function",
    "numpy.broadcast_shapes": "no arrays",
    "numpy.can_cast": "no arrays",
    "numpy.isdtype": "no arrays",
    "numpy.isscalar": "no arrays",
    "numpy.issubdtype": "no arrays",
    "numpy.iterable": "no arrays",
    "numpy.promote_types": "no arrays",
    "numpy.result_type": "no arrays",
    "numpy.iscomplexobj": "no arrays",
    "numpy.isrealobj": "no arrays",
    "numpy.ndim": "no arrays",
    "numpy.shape": "no arrays",
    "numpy.size": "no arrays",
    "numpy.finfo": "no arrays",
    "numpy.iinfo": "no arrays",
    "numpy.empty": "undefined values",
    "numpy.empty_like": "undefined values",
    "numpy.argwhere": "shape depends on values",
    "numpy.extract": "shape depends on values",
    "numpy.intersect1d": "shape depends on values",
    "numpy.setdiff1d": "shape depends on values",
    "numpy.setxor1d": "shape depends on values",
    "numpy.union1d": "shape depends on values",
    "numpy.unique": "shape depends on values",
    "numpy.unique_all": "shape depends on values",
    "numpy.unique_counts": "shape depends on values",
    "numpy.unique_inverse": "shape depends on values",
    "numpy.unique_values": "shape depends on values",
    "numpy.trim_zeros": "shape depends on values",
    "numpy.roots": "shape depends on values",
    "numpy.poly": "of roots, by eigenvalues",
    "random.PRNGKey": "random.key",
    "random.clone": "a key as it is",
    "random.key_data": "a key as it is",
    "random.key_impl": "no arrays",
    "random.wrap_key_data": "a key as it is",
}


@functools.cache
def catalogue() -> dict[str, Callable[..., Any]]:
    """Every public function that can be a step, by its path."""
    found = {}
    for module in MODULES:
        of = importlib.import_module(f"hologram.{module}")
        for name in sorted(getattr(of, "__all__", None) or [n for n in dir(of) if not n.startswith("_")]):
            f = getattr(of, name)
            if (
                callable(f)
                and not isinstance(f, type)
                and not hasattr(f, "dtype")
                and (isinstance(f, FunctionType) or hasattr(f, "__wrapped__") or _has_signature(f))
            ):
                found[f"{module}.{name}"] = f
    return {k: f for k, f in found.items() if k not in NOT_STEPS}


def _has_signature(f: Any) -> bool:
    try:
        inspect.signature(f)
    except (TypeError, ValueError):
        return False
    return True


@functools.cache
def parameters(function: str) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(hologram_function(function)).parameters.values())
