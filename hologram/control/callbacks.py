"""``pure_callback``: a user's function of NumPy arrays as a host op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.control.tracing import Type, emit, strong_node
from hologram.errors import ArgumentError, DifferentiationError, DTypeError, HologramError, ShapeError, TransformError, TreeError
from hologram.ir.node import Node
from hologram.ir.op import transforms
from hologram.ir.symbolic import Int, is_static
from hologram.primitives.host.host_op import Call, callback
from hologram.primitives.host.host_op import Type as HostType
from hologram.support.user_lines import located, where
from hologram.trace import tree
from hologram.trace.array_classes import known_array
from hologram.trace.checks import as_function, shape_of
from hologram.trace.recorder import record, suspended
from hologram.trace.tree import Treedef

VMAP_METHODS = (None, "sequential", "expand_dims", "broadcast_all")


def pure_callback(function: Callable[..., Any], result_shape_dtypes: Any, /, *args: Any, vmap_method: str | None = None, **options: Any) -> Any:
    """Calls a Python function as an op: ``function(*args, **options)``, with the GIL, when the program runs.

    ``function`` gets NumPy arrays in the place of the arguments' leaves, and gives a pytree of arrays of the shapes and element types that
    ``result_shape_dtypes`` has: a pytree of :class:`ShapeDtypeStruct` or of anything with ``shape`` and ``dtype``. It is pure: it may be called
    once, more often, or, where nothing reads its results, never. It works lazily, under ``jit``, and in bodies of control flow; it has no derivative
    unless ``custom_jvp`` or ``custom_vjp`` gives one.

    ``vmap_method``: under ``vmap``, ``sequential`` calls it for each example; ``broadcast_all`` once, with the stack's axis in front of every
    argument and result; ``expand_dims`` likewise, with an axis of extent 1 in front of arguments that are not mapped. None is an error.

    What it raises reaches whoever runs the program. Results of another structure raise TreeError, of other shapes ShapeError, of other types
    DTypeError.

    >>> hg.pure_callback(np.sort, hg.ShapeDtypeStruct((3,), "int64"), hnp.asarray([3, 1, 2]))
    Tensor([1, 2, 3], dtype=int64)
    """
    as_function(function, "pure_callback")
    if vmap_method not in VMAP_METHODS:
        raise located(ArgumentError(f"pure_callback: vmap_method {vmap_method!r}: it is one of {', '.join(map(str, VMAP_METHODS))}"))
    leaves, arguments = tree.flatten((args, options))
    nodes = [strong_node(x, "pure_callback") for x in leaves]
    wanted, structure = tree.flatten(result_shape_dtypes)
    types = [described(x, "pure_callback") for x in wanted]
    if not types:
        return result_shape_dtypes
    call = UserCall(function, arguments, structure, types, vmap_method)
    return tree.unflatten(structure, emit(callback, nodes, (call,), [Type(shape, dtype, False) for shape, dtype in types]))


def described(x: Any, what: str) -> HostType:
    """The type that something with ``shape`` and ``dtype`` describes. Raises ArgumentError, DTypeError or ShapeError for what does not."""
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise located(ArgumentError(f"{what}: a result is described by something with shape and dtype, not by a {type(x).__name__}"))
    try:
        dtype = dtypes.of(x.dtype)
    except TypeError as e:
        raise located(DTypeError(f"{what}: {e}")) from None
    shape = shape_of(x.shape, what)
    if not all(map(is_static, shape)):
        raise located(ShapeError(f"{what}: a result of symbolic shape {list(shape)}: its shape is static"))
    return shape, dtype


class UserCall(Call):
    """One call that a user has asked for. ``stacks`` are the axes that vmaps put in front."""

    __slots__ = ("user", "arguments", "structure", "vmap_method", "place", "what")

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Treedef,
        structure: Treedef,
        types: Sequence[HostType],
        vmap_method: str | None,
        what: str = "pure_callback",
    ) -> None:
        super().__init__(types)
        self.what = what
        self.user, self.arguments, self.structure, self.vmap_method = function, arguments, structure, vmap_method
        self.place = where()

    def __str__(self) -> str:
        return f"{getattr(self.user, '__name__', 'function')}@{id(self):x}"

    def run(self, arrays: Sequence[np.ndarray], lead: tuple[int, ...] = ()) -> list[np.ndarray]:
        args, options = tree.unflatten(self.arguments, list(arrays))
        with suspended():
            made = self.user(*args, **options)
        leaves, found = tree.flatten(made)
        if found != self.structure:
            raise self._error(TreeError, f"gave a result of structure {found}, not {self.structure}")
        return [self._checked(x, (*lead, *shape), dtype) for x, (shape, dtype) in zip(leaves, self.types, strict=True)]

    def _checked(self, x: Any, shape: Any, dtype: dtypes.DType) -> np.ndarray:
        value = known_array(x, self.what, dtype.np if type(x) in (bool, int, float, complex) else None)
        if value.shape != shape:
            raise self._error(ShapeError, f"gave an array of shape {list(value.shape)} where {list(shape)} was promised")
        if value.dtype != dtype.np:
            raise self._error(DTypeError, f"gave an array of {value.dtype} where {dtype} was promised")
        return value

    def _error(self, kind: type[HologramError], text: str) -> HologramError:
        return kind(f"{self.what}: {getattr(self.user, '__name__', 'the function')} {text}{self.place}")


# --- rules -----------------------------------------------------------------------------------------------------------


def _jvp(tangents: Sequence[Node | None], out: Node, *rest: Any) -> None:
    advice = "give the function that calls it a custom_jvp or custom_vjp"
    raise located(DifferentiationError(f"pure_callback cannot be differentiated: {advice}"))


def _batch(size: Int, batched: Sequence[bool], *rest: Any) -> Node:
    *inputs, call = rest
    method = call.vmap_method
    if method is None:
        raise located(TransformError(f"vmap: pure_callback needs a vmap_method: {', '.join(map(str, VMAP_METHODS[1:]))}"))
    if not isinstance(size, int):
        raise located(ShapeError(f"vmap: pure_callback takes stacks of static size, not {size}"))
    return record(callback, tuple(inputs), (_Stacked(call, size, tuple(batched)),))


class _Stacked(Call):
    """A call on a stack of examples."""

    __slots__ = ("inner", "size", "batched", "vmap_method")

    def __init__(self, inner: Any, size: int, batched: tuple[bool, ...]) -> None:
        super().__init__([((size, *shape), dtype) for shape, dtype in inner.types])
        self.inner, self.size, self.batched, self.vmap_method = inner, size, batched, inner.vmap_method

    def run(self, arrays: Sequence[np.ndarray], lead: tuple[int, ...] = ()) -> Sequence[np.ndarray]:
        if self.vmap_method == "sequential":
            return self._one_by_one(arrays)
        given = [a if flag else self._shared(a, len(lead)) for a, flag in zip(arrays, self.batched, strict=True)]
        found: Sequence[np.ndarray] = self.inner.run(given, (*lead, self.size))
        return found

    def _one_by_one(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        out = [np.empty(shape, dtype.np) for shape, dtype in self.types]
        for i in range(self.size):
            found = self.inner.run([a[i] if flag else a for a, flag in zip(arrays, self.batched, strict=True)])
            for to, value in zip(out, found, strict=True):
                to[i] = value
        return out

    def _shared(self, x: np.ndarray, axis: int) -> np.ndarray:
        """An argument that all examples share, with the stack's axis."""
        wide = np.expand_dims(x, axis)
        return wide if self.vmap_method == "expand_dims" else np.repeat(wide, self.size, axis)


transforms(callback, jvp=_jvp, batch=_batch)
