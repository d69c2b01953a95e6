"""The Tensor: an array that is lazy outside a trace and symbolic inside one.

Values are immutable. An assignment to elements gives the Tensor, and its views, other values.

Exactly one of three states holds: *realised* (``_storage`` has the bytes; ``_node``, if any, is a node of that value), *pending*
(``_node`` is a lazily recorded node) or *traced* (``_node`` belongs to a trace). With neither node nor storage the buffer
was donated.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import os
import pickle
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, cast

import numpy as np

from hologram import dlpack
from hologram.backends.device.storage import DeviceStorage
from hologram.backends.native.buffer_protocol import has_buffers
from hologram.backends.residence import on_host
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DonatedBufferError, DTypeError, IndexOutOfRange, NoAxisError, ShapeError, TracedValueError
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import is_static
from hologram.primitives.scalar import composite
from hologram.primitives.scalar import elementwise as ew
from hologram.support.html import html_method
from hologram.support.user_lines import located
from hologram.trace import arithmetic, hooks, operators
from hologram.trace.host_movement import is_lendable
from hologram.trace.interchange import inplace_operators, numba_types
from hologram.trace.operators import binary_operator, unary_operator
from hologram.trace.recorder import Pending, Trace, current, storage_module, transforming
from hologram.trace.residence import device_of
from hologram.trace.symbolic_extent import extent


@functools.cache
def namespace(part: str = "") -> Any:
    """:mod:`hologram.numpy`, or a part of it. It is written in terms of this package, so it is named here and imported when a method is called."""
    return import_module("hologram.numpy" + part)


def _from_namespace(name: str) -> Callable[..., Any]:
    """The method that is a function of :mod:`hologram.numpy`."""

    def method(self: Tensor, *args: Any, **options: Any) -> Any:
        return getattr(namespace(), name)(self, *args, **options)

    method.__name__ = name
    method.__doc__ = f"``hologram.numpy.{name}`` of this Tensor."
    return method


@has_buffers
class Tensor:
    """An array: shape, element type and device, and values that are computed when something reads them.

    :func:`hologram.tensor`, :func:`hologram.asarray` and :mod:`hologram.numpy` make Tensors. Ops on them are recorded, and run together when a
    value is needed: by ``print``, ``float``, ``bool``, ``np.asarray`` or :func:`hologram.eval`. Operators, indexing and assignment follow NumPy;
    ``x.at[i].add(v)`` gives a changed copy. Inside :func:`hologram.jit` a Tensor stands for an argument; reading its value raises TracedValueError.

    >>> x = hg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> (x + 1) @ x.T
    Tensor([[ 8., 18.],
            [14., 32.]], dtype=float32)
    >>> x.shape, x.dtype, float(x.sum())
    ((2, 2), dtype('float32'), 10.0)
    """

    __slots__ = ("_node", "_storage", "_weak", "_alias", "_lent", "__weakref__")
    _node: Node | None
    _storage: Any
    _weak: bool
    _alias: Any  # how it shares elements with others (hologram.numpy.indexing.views); unset, so that it costs nothing, where it does not
    _lent: dict[Any, Any]  # arrays whose address was told (hologram.trace.interchange.memory); unset where there are none

    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]  # == compares elementwise

    # --- what is known without the values ---

    def _aval(self) -> tuple[Shape, DType]:
        node = self._node
        if node is not None:
            return node.shape, node.dtype
        if self._storage is None:
            raise located(DonatedBufferError("this Tensor's buffer was donated to a jitted call and can no longer be read"))
        aval = self._storage.aval
        return aval.shape, aval.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents; symbols stand for those that are unknown while tracing with ``dynamic``."""
        shape = self._aval()[0]
        found: Any = shape if all(type(n) is int for n in shape) else tuple(extent(n) for n in shape)
        return found

    @property
    def dtype(self) -> np.dtype:
        """The element type, a NumPy dtype; of a weakly typed Tensor the default of its kind."""
        dtype = self._aval()[1]
        return (operators.weak_default(dtype) if self._weak else dtype).np

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._aval()[0])

    @property
    def size(self) -> int:
        """The number of elements; a symbol where it is unknown while tracing with ``dynamic``."""
        size: Any = 1
        for n in self._aval()[0]:
            size = size * n
        return extent(size)  # type: ignore[return-value]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    def __sizeof__(self) -> int:
        """Bytes of the object and of the values, as NumPy's arrays tell them: schedulers and caches count memory by ``sys.getsizeof``."""
        shape, dtype = self._aval() if self._node is not None or self._storage is not None else ((), None)
        held = 0 if dtype is None or not all(map(is_static, shape)) else math.prod(shape) * dtype.np.itemsize
        return object.__sizeof__(self) + held

    @property
    def device(self) -> str:
        """The name of the device that the values are on, or will be."""
        return device_of(self)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """This Tensor on ``device``: see :func:`hologram.device_put`. Raises DeviceError for one that is not there."""
        return hooks.put(self, device)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version in (None, "2025.12"):
            return namespace()
        if api_version not in ("2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f"Array API version {api_version!r} is not supported")
        return namespace(".array_api_2024_12")

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise located(NoAxisError("len() of a Tensor of shape []"))
        return operator.index(shape[0])

    # --- reading the values ---

    def _realised(self, reading: str) -> Any:
        """The Storage, computed if need be. ``reading`` names what wants it, for the error while tracing."""
        if self._storage is None:
            trace = current()
            if trace is not None and self._node is not None and trace.owns(self._node):
                raise located(self._unreadable(reading, trace))
            return operators.settled(self)
        return self._storage

    def _unreadable(self, reading: str, trace: Trace) -> TracedValueError:
        shape, dtype = self._aval()
        advice = {
            "bool()": "a Python `if`, `while`, `and` or `not` cannot depend on it: use hnp.where, or mark the argument static",
            "index()": "a Python index or size cannot depend on it: use x[n], hnp.take or hnp.dynamic_slice, or mark the argument static",
        }.get(reading, "keep to hologram.numpy functions inside, return it, or mark the argument static")
        from hologram.trace.diagnostics.origins import origin

        value = f"the value of a {dtype}{list(shape)} Tensor ({origin(cast('Node', self._node))})"
        return TracedValueError(f"{reading} needs {value}, which does not exist while tracing {trace.name}: {advice}")

    def _view(self, reading: str) -> np.ndarray:
        """The values as a read-only array: over memory that is shared with other Tensors where this one is pending, a view of them, and worth it."""
        storage = self._storage
        if storage is None:
            shown: np.ndarray | None = hooks.shown(self)
            if shown is not None and is_lendable(shown):
                return shown.view()  # of which a reader may change the shape
            storage = self._realised(reading)
        view: np.ndarray = storage_module().host_view(on_host(storage) if type(storage) is DeviceStorage else storage)
        return view

    def numpy(self) -> np.ndarray:
        """The values as a read-only NumPy array, without a copy where that can be; it keeps the memory alive. Views of a Tensor, such as its
        transpose, may have other strides than C order's."""
        return self._view("numpy()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        hooks.exports.raise_interrupt(self)
        view = self._view("np.asarray()")
        if dtype is not None and np.dtype(dtype) != view.dtype:
            if copy is False:
                raise ValueError(f"a {view.dtype} Tensor as {np.dtype(dtype)} needs a copy")
            return view.astype(dtype)
        return view.copy() if copy or (copy is None and not view.shape) else view  # a number may be changed, as what NumPy makes of its scalars

    def __buffer__(self, flags: int) -> memoryview:
        """The buffer protocol: read-only memory, in the layout that the consumer asks for. Raises BufferError for one that would write."""
        return hooks.exports.buffer(self, flags)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface, read-only, in C order. The memory lives as long as the Tensor, even if elements are assigned to meanwhile."""
        return hooks.exports.interface(self)

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """Capsules of Arrow's C data interface: an array of numbers, or of lists of fixed size where there are more axes.

        Bools are copied, everything else is shared, unless another type of numbers is requested. Raises DTypeError for types that Arrow lacks, and
        for a request that a value does not fit, ShapeError for a Tensor of shape [].
        """
        return hooks.arrow.capsules(self, requested_schema)

    def tobytes(self, order: str = "C") -> bytes:
        """A copy of the bytes of the values, in C order, or in Fortran's for ``"F"``."""
        return self._view("tobytes()").tobytes("F" if order == "F" else "C")

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """Writes the values in C order to a file or path, as NumPy's method does: bytes, or text with ``sep``."""
        self._view("tofile()").tofile(fid, sep, format)

    def dumps(self) -> bytes:
        """The pickle of this Tensor."""
        return pickle.dumps(self)

    def dump(self, file: Any) -> None:
        """Writes the pickle of this Tensor to a file or path."""
        with open(file, "wb") if isinstance(file, (str, os.PathLike)) else contextlib.nullcontext(file) as f:
            f.write(self.dumps())

    @property
    def data(self) -> memoryview:
        """The memory of the values, read-only."""
        return memoryview(self)

    def setflags(self, write: bool | None = None, align: bool | None = None, uic: bool | None = None) -> None:
        """As NumPy's method: memory is read-only already, and cannot be made writable, which is an ArgumentError."""
        if write or uic:
            raise located(ArgumentError("setflags: the memory of a Tensor is read-only; np.array(x) is a copy to write to"))

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis: those of C order, in which a Tensor lies for who takes its address."""
        return hooks.exports.strides(self)

    @property
    def flags(self) -> Any:
        """NumPy's flags of the values as a read-only array in C order. Raises TracedValueError while tracing."""
        return hooks.exports.addressed(self, "flags").flags

    @property
    def flat(self) -> np.flatiter:
        """NumPy's iterator over the elements in C order; it cannot be assigned to. Raises TracedValueError while tracing."""
        return self._view("flat").flat

    @property
    def ctypes(self) -> Any:
        """NumPy's object for ctypes, with the address ``data``. The memory is not to be written to; it lives as long as the Tensor."""
        return hooks.exports.addressed(self, "ctypes").ctypes

    def view(self, dtype: Any = None) -> Tensor:
        """The same bits as elements of type ``dtype``, in a Tensor of its own; without ``dtype`` another Tensor of the same elements.

        Raises DTypeError for an unknown type, and while tracing for bool and complex ones, ShapeError where the last axis has no whole number of its
        elements.
        """
        return namespace().reshape(self, self.shape) if dtype is None else hooks.exports.viewed(self, dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """``np.sin(tensor)``, ``array + tensor``: hologram.numpy's function of the same name; see :mod:`.interchange.numpy_protocols`."""
        return hooks.ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """``np.mean(tensor)``: hologram.numpy's function of the same name; see :mod:`.interchange.numpy_protocols`."""
        return hooks.function(function, types, args, options)

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        """A DLPack capsule of the values, read-only. For a consumer older than DLPack 1.0, which has no flag for that, it is a copy; with
        ``copy=False`` the memory itself, which the consumer is not to write to."""
        storage = self._realised("__dlpack__()")
        if (
            type(storage) is DeviceStorage
            and self.__dlpack_device__()[0] != 1
            and (dl_device is None or tuple(dl_device) == self.__dlpack_device__())
        ):
            from hologram.backends.cuda.interop import capsule

            return capsule(storage, stream, bool(copy))
        view = self._view("__dlpack__()")
        old = max_version is None or max_version[0] < 1 or not dlpack.VERSIONED
        if old or copy:
            view = dlpack.unmarked(view) if copy is False else view.copy()
        return dlpack.capsule(view, max_version=max_version, dl_device=dl_device)

    def __dlpack_device__(self) -> tuple[int, int]:
        from hologram.backends.cuda.interop import KIND

        name, _, number = self.device.partition(":")
        return (KIND, int(number)) if name == "cuda" else (1, 0)  # kDLCPU, by way of which others go

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface, read-only, for values on a CUDA device. AttributeError, as the protocol has it, for others."""
        name = "__cuda_array_interface__"
        storage = self._realised(name) if self.device.startswith("cuda") else None
        if type(storage) is not DeviceStorage:
            raise AttributeError(f"a Tensor on {self.device} has no {name}")
        from hologram.backends.cuda.interop import interface

        return interface(storage)

    def _scalar(self, reading: str) -> Any:
        view = self._view(reading)
        if operators.is_wide(self):
            return operators.wide_value(self)
        if view.size != 1:
            raise located(ShapeError(f"{reading} of a Tensor of shape {list(self.shape)}: it has {view.size} elements, not one"))
        return view.reshape(())[()]

    def item(self, *index: int) -> Any:
        """The only element, or that at ``index``, as a Python scalar."""
        found = None if index else self._number()
        if found is not None:
            return found
        values = self._scalar("item()") if operators.is_wide(self) else self._view("item()")
        try:
            return values.item(*index)
        except IndexError as e:
            raise located(IndexOutOfRange(f"item: {e}")) from None
        except (TypeError, ValueError) as e:
            raise located(ArgumentError(f"item: {e}")) from None

    def tolist(self) -> Any:
        """The values as nested lists of Python scalars. Raises TracedValueError while tracing."""
        return self._scalar("tolist()").item() if operators.is_wide(self) else self._view("tolist()").tolist()

    def _number(self) -> Any:
        """The value of a scalar as a Python number, computed if it is pending; None for what is traced, weak, no scalar, on a device, or of a type
        that Python lacks."""
        storage = self._storage
        node: Any = self._node
        if storage is None and type(node) is Pending and not node.shape and not self._weak and current() is None:
            hooks.realise(self)
            storage = self._storage
        return None if storage is None else storage_module().number(storage)

    def __bool__(self) -> bool:
        found = self._number()
        return bool(self._scalar("bool()") if found is None else found)

    def _real_scalar(self, reading: str) -> Any:
        dtype = self.dtype
        if dtype.kind == "c":
            raise located(DTypeError(f"{reading} of a {dtype} Tensor would lose the imaginary part: take real or abs first"))
        return self._scalar(reading)

    def __float__(self) -> float:
        found = self._number()
        return float(self._real_scalar("float()") if found is None else found)

    def __int__(self) -> int:
        found = self._number()
        return int(self._real_scalar("int()") if found is None else found)

    def __complex__(self) -> complex:
        return complex(self._scalar("complex()"))

    def __index__(self) -> int:
        shape, dtype = self._aval()
        if shape or not dtype.is_integer:
            raise located(ArgumentError(f"only an integer Tensor of shape [] is an index, not {dtype}{list(shape)}"))
        found = self._number()
        return int(self._scalar("index()") if found is None else found)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._scalar("round()").item(), digits)

    def __contains__(self, value: Any) -> bool:
        equal = self == value
        return equal if isinstance(equal, bool) else bool(equal.any())  # no number: of no element

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise located(NoAxisError("a Tensor of shape [] cannot be iterated over"))
        if not is_static(self.shape[0]):
            raise located(TracedValueError(f"iterating over an axis of symbolic extent {self.shape[0]}: its length is unknown while tracing"))
        return (self[i] for i in range(self.shape[0]))

    def _without_value(self) -> str:
        """What stands for a Tensor that has no value to show; empty for one that has."""
        node = self._node
        if node is not None and type(node) is not Pending and self._storage is None:
            return f"Tensor(traced, shape={node.shape}, dtype={node.dtype})"
        if node is None and self._storage is None:
            return "Tensor(donated)"
        if type(self._storage) is DeviceStorage and not self._storage.runtime.device.has_values:
            return f"Tensor(without values, shape={self.shape}, dtype={self.dtype}, device={self.device})"
        return ""

    def __repr__(self) -> str:
        text = self._without_value()
        if text:
            return text
        view = self._view("repr()")
        body = np.array2string(view, separator=", ", prefix="Tensor(", threshold=200)
        return f"Tensor({body}, dtype={view.dtype})"

    _repr_html_ = html_method("notebook.tensors:tensor_html")

    def __str__(self) -> str:
        """The number alone of a Tensor of shape [], as NumPy prints it; ``repr`` of any other."""
        return repr(self) if self._without_value() or self._aval()[0] else str(self._view("str()")[()])

    def __format__(self, spec: str) -> str:
        """As NumPy's scalars: ``f"{loss:.3f}"``; without a format it is ``str``. A Tensor of several elements takes no format."""
        return format(self._scalar("format()").item(), spec) if spec else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._weak and not self._aval()[0]:
            return hooks.weak_number, (self.item(),)  # with all its digits
        return hooks.tensor, (self._view("pickle"),)  # protocol 5 takes the memory as it is

    def __copy__(self) -> Tensor:
        """Another Tensor of the same value: an assignment to elements of one does not change the other."""
        other = Tensor()
        other._node, other._storage, other._weak = self._node, self._storage, self._weak
        if current() is not None and not (self._node is None and self._storage is None):
            other._node = operators.node_here(self)
        return other

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.__copy__()

    # --- indexing ---

    def __getitem__(self, index: Any) -> Tensor:
        found: Tensor = hooks.index(self, index)
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        """This Tensor, and every view of the same elements, has ``value`` at ``index`` from now on; what was computed before keeps its value.

        Views are what NumPy has as views: basic slices, ``T``, ``reshape`` and their kin, and views of these; see docs/from_numpy_and_jax.md.
        Raises ReadOnlyError for those that NumPy does not let write either, and LeakedTracerError while tracing where a Tensor from outside of the
        trace would come to hold a traced value.
        """
        namespace(".indexing.assignment").assign(self, index, value)

    @property
    def at(self) -> Any:
        """``x.at[index].set(values)``, ``add``, ``multiply``, ``min``, ``max``, …: the Tensor with some elements changed."""
        return namespace(".indexing.updates").Updates(self)

    # --- operators ---

    __add__ = binary_operator(ew.add)
    __radd__ = binary_operator(ew.add, swapped=True)
    __sub__ = binary_operator(ew.sub)
    __rsub__ = binary_operator(ew.sub, swapped=True)
    __mul__ = binary_operator(ew.mul)
    __rmul__ = binary_operator(ew.mul, swapped=True)
    __truediv__ = binary_operator(ew.div)
    __rtruediv__ = binary_operator(ew.div, swapped=True)
    __floordiv__ = arithmetic.floor_division()
    __rfloordiv__ = arithmetic.floor_division(swapped=True)
    __mod__ = binary_operator(composite.rem)
    __rmod__ = binary_operator(composite.rem, swapped=True)
    __lshift__ = binary_operator(composite.shl)
    __rlshift__ = binary_operator(composite.shl, swapped=True)
    __rshift__ = binary_operator(composite.shr)
    __rrshift__ = binary_operator(composite.shr, swapped=True)
    __and__ = binary_operator(ew.and_)
    __rand__ = binary_operator(ew.and_, swapped=True)
    __or__ = binary_operator(ew.or_)
    __ror__ = binary_operator(ew.or_, swapped=True)
    __xor__ = binary_operator(ew.xor)
    __rxor__ = binary_operator(ew.xor, swapped=True)
    __eq__ = binary_operator(ew.eq, general=arithmetic.comparison(ew.eq))
    __ne__ = binary_operator(ew.ne, general=arithmetic.comparison(ew.ne))
    __lt__ = binary_operator(ew.lt, general=arithmetic.comparison(ew.lt))
    __le__ = binary_operator(ew.le, general=arithmetic.comparison(ew.le))
    __gt__ = binary_operator(ew.gt, general=arithmetic.comparison(ew.gt))
    __ge__ = binary_operator(ew.ge, general=arithmetic.comparison(ew.ge))
    __neg__ = unary_operator(ew.neg)
    __abs__ = unary_operator(ew.abs_)
    __invert__ = unary_operator(ew.not_)

    def __pow__(self, other: Any) -> Any:
        return arithmetic.raised(self, other)

    def __rpow__(self, other: Any) -> Any:
        return arithmetic.power(other, self) if operators.is_operand(other) else NotImplemented

    def __pos__(self) -> Tensor:
        return self.__copy__()

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __matmul__(self, other: Any) -> Any:
        return namespace().matmul(self, other) if operators.is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return namespace().matmul(other, self) if operators.is_operand(other) else NotImplemented

    # --- methods that are functions of hologram.numpy ---

    astype = _from_namespace("astype")
    sum = _from_namespace("sum")
    prod = _from_namespace("prod")
    max = _from_namespace("max")
    min = _from_namespace("min")
    any = _from_namespace("any")
    all = _from_namespace("all")
    mean = _from_namespace("mean")
    var = _from_namespace("var")
    std = _from_namespace("std")
    argmax = _from_namespace("argmax")
    argmin = _from_namespace("argmin")
    cumsum = _from_namespace("cumsum")
    cumprod = _from_namespace("cumprod")
    clip = _from_namespace("clip")
    round = _from_namespace("round")
    squeeze = _from_namespace("squeeze")
    swapaxes = _from_namespace("swapaxes")
    take = _from_namespace("take")
    repeat = _from_namespace("repeat")
    dot = _from_namespace("dot")
    ravel = _from_namespace("ravel")
    copy = _from_namespace("copy")
    argsort = _from_namespace("argsort")
    argpartition = _from_namespace("argpartition")
    searchsorted = _from_namespace("searchsorted")
    nonzero = _from_namespace("nonzero")
    trace = _from_namespace("trace")
    diagonal = _from_namespace("diagonal")
    ptp = _from_namespace("ptp")
    choose = _from_namespace("choose")

    def sort(self, axis: int | None = -1, kind: str | None = None, order: None = None, **options: Any) -> Any:
        """``hologram.numpy.sort`` of this Tensor. In the packages of ``settings.inplace_packages`` it sorts this Tensor, and gives None, as NumPy's
        method does."""
        return inplace_operators.of_method(self, namespace().sort(self, axis, kind=kind, order=order, **options))

    def partition(self, kth: Any, axis: int = -1) -> Any:
        """``hologram.numpy.partition`` of this Tensor; in the packages of ``settings.inplace_packages`` as :meth:`sort`."""
        return inplace_operators.of_method(self, namespace().partition(self, kth, axis))

    def fill(self, value: Any) -> None:
        """``x[...] = value``."""
        self[...] = value

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Assigns ``values`` to the elements of the flattened Tensor at ``indices``, as ``x.flat[indices] = values`` does in NumPy."""
        hooks.assignment.replace(self, namespace().put(self, indices, values, mode=mode))

    def compress(self, condition: Any, axis: int | None = None, out: None = None) -> Tensor:
        """The elements, or slices along ``axis``, where ``condition`` holds."""
        return namespace().compress(condition, self, axis, out=out)

    def block_until_ready(self) -> Tensor:
        """This Tensor, with its values computed; while tracing as it is."""
        if current() is None and not transforming():
            self._realised("block_until_ready()")
        return self

    def conj(self) -> Tensor:
        """The complex conjugate; a real Tensor itself, as NumPy's method has it."""
        return namespace().conj(self) if self._aval()[1].is_complex else namespace().real(self)

    conjugate = conj

    def flatten(self, order: str = "C") -> Tensor:
        """A copy with one axis, in C order, or in Fortran's for ``"F"``."""
        return namespace().ravel(self.__copy__(), order=order)

    def reshape(self, *shape: Any, copy: bool | None = None, order: str = "C") -> Tensor:
        """``hologram.numpy.reshape`` of this Tensor; the shape is one argument, or its extents are the arguments."""
        return namespace().reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape, copy=copy, order=order)

    def transpose(self, *axes: Any) -> Tensor:
        """``hologram.numpy.transpose`` of this Tensor; the axes are one argument, or the arguments."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return namespace().transpose(self, order)

    @property
    def T(self) -> Tensor:
        """The matrix transposed. Raises ShapeError for more than two axes."""
        if self.ndim > 2:
            raise located(ShapeError(f"T takes a matrix, not shape {list(self.shape)}: use mT or permute_dims"))
        return namespace().transpose(self)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return namespace().matrix_transpose(self)

    @property
    def real(self) -> Tensor:
        """The real part, a view; of a real Tensor itself."""
        return namespace().real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary part, a view; of a real Tensor zeros, to which nobody may assign."""
        return namespace().imag(self)


operators.tensor_class = Tensor
numba_types.when_needed()
inplace_operators.watch()
