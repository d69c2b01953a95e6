"""Making Tensors from data: ``tensor`` copies, ``asarray`` and ``from_dlpack`` borrow."""

from __future__ import annotations

import functools
from copy import copy
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.backends.device.storage import DeviceStorage
from hologram.backends.residence import on_host
from hologram.dlpack import array_of
from hologram.dtypes import DType
from hologram.errors import ArgumentError, CopyError, DeviceError, DTypeError, IntegerRangeError, OutOfMemory
from hologram.ir.devices import CPU, backend, find
from hologram.primitives.markers import place
from hologram.primitives.scalar.elementwise import cast_reference
from hologram.support.user_lines import located
from hologram.trace import hooks
from hologram.trace.array_classes import check_sequence, check_unmasked
from hologram.trace.operators import SCALARS, extent_node, node_of, weak_type, wrap
from hologram.trace.recorder import constant, current, fits, plain, record, require_fits, require_whole, storage_module, transforming, whole_cast
from hologram.trace.symbolic_extent import Extent
from hologram.trace.tensor import Tensor, namespace
from hologram.trace.tree import divided


def of_storage(storage: Any) -> Tensor:
    """The realised Tensor of ``storage``."""
    t = Tensor()
    t._node, t._storage, t._weak = None, storage, False
    return t


def given_array(t: Any) -> Any:
    """A Tensor that the caller alone has as a writable array, over its memory where nothing else holds that: the Tensor is not to be used after."""
    if type(t) is not Tensor:
        return t
    storage = storage_module()
    memory = storage.give(t)
    return np.array(t._view("output='numpy'")) if memory is None else storage.host_view(memory)


def tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A Tensor with a copy of ``data``: an array, a nested list, a Python scalar, anything with DLPack or the buffer protocol.

    Python floats become float32 and integers int64 unless ``dtype`` says otherwise; arrays keep their type. Raises DTypeError for element types
    that Hologram does not have, ArgumentError for what is no array, and for lists that are not rectangular. ``hologram.numpy.array`` is this.

    >>> hg.tensor([[1, 2], [3, 4.5]])
    Tensor([[1. , 2. ],
            [3. , 4.5]], dtype=float32)
    >>> hg.tensor(np.arange(3.0), dtype="float32")
    Tensor([0., 1., 2.], dtype=float32)
    """
    return put(_made(data, dtype, borrow=False), device)


def asarray(data: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A Tensor of ``data``, without a copy where type and layout allow: an array's memory is borrowed, unless ``copy``.

    A Python float or complex number without a ``dtype`` stays weakly typed: beside an array it has the array's type, and all its digits.
    A borrowed value is copied when an op is recorded on it: a later write to the source never changes a result. Raises as :func:`tensor` does,
    and CopyError where ``copy`` is False and a copy is needed, as of lists and numbers.

    >>> hg.asarray([1, 2, 3])
    Tensor([1, 2, 3], dtype=int64)
    >>> hg.asarray(np.zeros(2)).dtype
    dtype('float64')
    """
    return put(_made(data, dtype, borrow=not copy, strict=copy is False, weak=True), device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A Tensor of the array behind ``x.__dlpack__``: its memory is borrowed, unless ``copy``.

    An array on a CUDA device is copied there. Raises ArgumentError for an object without ``__dlpack__``, DeviceError for memory of other devices.

    >>> hg.from_dlpack(np.arange(3))
    Tensor([0, 1, 2], dtype=int64)
    """
    if type(x) is Tensor:
        return put(_made(x, None, borrow=not copy), device)
    check_unmasked(x, "from_dlpack")
    if not hasattr(x, "__dlpack__"):
        raise located(ArgumentError(f"from_dlpack takes an object with __dlpack__, not {type(x).__name__}"))
    if _is_on_device(x):
        _require_copy(copy is not False, "an array on a device")
        return put(of_device(x), device)
    try:
        array = array_of(x)
    except (BufferError, RuntimeError) as e:
        raise located(DeviceError(f"from_dlpack: {e}")) from None
    return put(_of_array(array, None, borrow=not copy, strict=copy is False), device)


def _is_on_device(x: Any) -> bool:
    from hologram.backends.cuda.interop import is_foreign

    return is_foreign(x)


def of_device(x: Any, borrow: bool = False) -> Tensor:
    """Another library's array on a CUDA device as a Tensor there: a copy, or with ``borrow`` its memory, for a call. Raises DeviceError."""
    from hologram.backends.cuda.interop import adopted

    try:
        storage = adopted(x)
        return of_storage(storage if borrow else storage.runtime.put(storage))
    except (DeviceError, OutOfMemory) as e:
        raise located(e) from None


def device_name(device: Any) -> str:
    """The name of the device that ``device`` means; None means the CPU. Raises DeviceError for one that is not there."""
    if device is None or (isinstance(device, str) and device == CPU):
        return CPU
    try:
        return find(str(device)).name
    except DeviceError as e:
        raise located(e) from None


def put(t: Tensor, device: Any) -> Tensor:
    """``t`` on ``device``: itself where it is there already, or for None; else a copy. Returns before the copy is done.

    While tracing, and under a transform, it is recorded instead: what is computed from the result is computed there.
    Raises DeviceError for a device that is not there, OutOfMemory where it has no room.
    """
    if device is None:
        return t
    name = device_name(device)
    if current() is not None or transforming():
        return wrap(record(place, (node_of(t),), (name,)), t._weak)
    storage = t._realised("device_put()")
    if name == CPU:
        return of_storage(on_host(storage)) if type(storage) is DeviceStorage else t
    if type(storage) is DeviceStorage and storage.device == name:
        return t
    try:
        moved = of_storage(backend(name).storage(storage))
    except (DeviceError, OutOfMemory) as e:
        raise located(e) from None
    moved._weak = t._weak
    return moved


def weak_number(value: Any) -> Tensor:
    """The weakly typed Tensor of a Python number: what others are pickled as."""
    return wrap(constant(value, weak_type(dtypes.of_scalar(value))), True)


def _made(data: Any, dtype: Any, borrow: bool, strict: bool = False, weak: bool = False) -> Tensor:
    to = None if dtype is None else element_type(dtype)
    if type(data) is Tensor:
        if to is None or (borrow and not data._weak and data._aval()[1] is to):
            return data if borrow else copy(data)  # elements assigned to one are not the other's; the memory is shared
        _require_copy(not strict or element_type(data.dtype) is to, f"{data.dtype} to {to}")
        return wrap(whole_cast(node_of(data), to))
    if type(data) in SCALARS or isinstance(data, (list, tuple, range, np.generic)):
        _require_copy(not strict, f"a {type(data).__name__}")
    if type(data) in SCALARS:
        weak = weak and to is None and type(data) in (float, complex)  # integers have the default type, as the Array API has it
        return wrap(constant(data, weak_type(dtypes.of_scalar(data)) if weak else to or dtypes.of_scalar(data)), weak)
    if isinstance(data, (list, tuple)):
        return _of_sequence(data, to)
    if type(data) is Extent:
        return wrap(extent_node(plain(data), to or dtypes.int64))
    if type(data) in divided:
        return _made(hooks.gathered(data), dtype, borrow, strict)
    if not isinstance(data, (np.ndarray, np.generic)):
        if _is_on_device(data):
            _require_copy(not strict, "an array on a device")
            made = of_device(data)
            return made if to is None else wrap(whole_cast(node_of(made), to))
        data = _foreign(data)
    return _of_array(data, to, borrow, strict)


def _require_copy(allowed: bool, what: str) -> None:
    """Raises CopyError for ``what``, which is made by copying, where that is not allowed."""
    if not allowed:
        raise located(CopyError(f"{what} needs a copy, which copy=False forbids"))


def element_type(dtype: Any) -> DType:
    """As :func:`hologram.dtypes.of`, with the user's line."""
    try:
        return dtypes.of(dtype)
    except TypeError as e:
        raise located(DTypeError(str(e))) from None


def _foreign(data: Any) -> np.ndarray:
    """An object of another library as a NumPy array, without a copy where it can be had so."""
    nulls = getattr(data, "null_count", 0)  # of an Arrow array, which DLPack cannot tell
    nested = getattr(getattr(data, "type", None), "value_type", None) is not None  # of Arrow's lists, which have the method, and no DLPack
    if hasattr(data, "__dlpack__") and not nested and not (isinstance(nulls, int) and nulls):
        try:
            return array_of(data)
        except (BufferError, RuntimeError, TypeError):
            pass  # an element type that Hologram lacks; or another device, of which asarray will complain
    what = type(data).__name__
    try:
        array = np.asarray(data)
    except (TypeError, RuntimeError) as e:
        raise located(ArgumentError(f"a {what} cannot be read as an array: {e}")) from None
    array = _stacked(array)
    if array.dtype == object:
        raise located(ArgumentError(f"a {what} is no array: pass numbers, nested lists of numbers, or an object with DLPack or the buffer protocol"))
    return array


def _stacked(array: np.ndarray) -> np.ndarray:
    """An array of arrays of one shape, which NumPy makes of Arrow's lists, with their axes behind its own; any other as it is."""
    if array.dtype != object or not array.size or not all(isinstance(x, np.ndarray) for x in array.flat):
        return array
    parts = [_stacked(x) for x in array.flat]
    if any(x.shape != parts[0].shape or x.dtype != parts[0].dtype for x in parts):
        return array
    return np.stack(parts).reshape(array.shape + parts[0].shape)


def _of_array(array: Any, to: DType | None, borrow: bool, strict: bool = False) -> Tensor:
    t = of_storage(_storage_of(array, to, borrow, strict))
    if current() is not None:
        t._node = node_of(t)  # of the trace, so that elements may be assigned to it there
    return t


def _storage_of(array: Any, to: DType | None, borrow: bool, strict: bool) -> Any:
    from hologram.backends.native import storage

    check_unmasked(array, "tensor")
    dtype = element_type(array.dtype)
    if to is not None and to is not dtype:
        _require_copy(not strict, f"{dtype} to {to}")
        return storage.copy_of(np.asarray(_converted(array, to)))
    array = np.asarray(array)
    if borrow and storage.borrowable(array):
        return storage.borrow(array)
    _require_copy(not strict, "this array's layout")
    return storage.copy_of(array)


def _converted(array: Any, to: DType) -> np.ndarray:
    array = np.asarray(array)
    require_whole(element_type(array.dtype), to)
    return cast_reference(array.astype(array.dtype.newbyteorder("=")), to.name)


def _of_sequence(data: Any, to: DType | None) -> Tensor:
    check_sequence(data, "tensor")
    elements = list(_flat(data))
    if any(type(x) is Tensor for x in elements):
        hnp = namespace()
        if to is not None:  # each element on its own: a common type would round integers beside floats
            return hnp.stack([_made(x, to, borrow=True) for x in data])
        widest = functools.reduce(dtypes.promote, [x._aval()[1] for x in elements if type(x) is Tensor and not x._weak] or [dtypes.bool_])
        return hnp.stack([x if type(x) is Tensor else tensor_beside(x, widest) for x in data])
    try:
        array = np.array(data)
    except ValueError as e:
        raise located(ArgumentError(f"nested lists must be rectangular: {e}")) from None
    if array.dtype == object:
        odd = [type(x).__name__ for x in elements if not isinstance(x, (*SCALARS, np.generic, np.ndarray))]
        what = f"it holds a {odd[0]}" if odd else "an integer is beyond 64 bits"
        raise located(ArgumentError(f"a Tensor is made of numbers: {what}"))
    if to is None and not any(isinstance(x, (np.generic, np.ndarray)) for x in elements):
        to = {"f": dtypes.default_float, "c": dtypes.default_complex}.get(array.dtype.kind)
        if array.dtype.kind == "i" and dtypes.default_int is not dtypes.int64:
            to = _default_int(array)
    elif to is not None and to.kind in "iu":
        array = _integers(array, elements, to)
    return _of_array(array, to, borrow=False)


def _integers(array: np.ndarray, elements: list[Any], to: DType) -> np.ndarray:
    """The array of a list's ``elements`` for the integer type ``to``: in ``to`` already where the float type of ``array`` has rounded integers.

    Raises IntegerRangeError where a Python integer does not fit.
    """
    if not array.size or array.dtype.kind not in "iuf" or (array.dtype.kind != "f" and all(fits(int(x), to) for x in (array.min(), array.max()))):
        return array
    for x in elements:
        if type(x) is int:
            require_fits(x, to)
    if array.dtype.kind == "f" and (np.abs(array) >= 2**53).any():
        return np.concatenate([_converted(x, to).reshape(-1) for x in elements]).reshape(array.shape)
    return array


def _default_int(array: np.ndarray) -> DType:
    """The default type of integers. Raises IntegerRangeError where it does not hold those of ``array``."""
    to = dtypes.default_int
    if array.size and not all(fits(int(x), to) for x in (array.min(), array.max())):
        raise located(IntegerRangeError(f"an integer does not fit {to}, the default integer type: give a dtype"))
    return to


def tensor_beside(data: Any, dtype: DType | None) -> Tensor:
    """The Tensor of numbers, or nested lists, in their own type; floats that meet a wider ``dtype`` are rounded to that, once."""
    made = tensor(list(data) if type(data) is range else data)
    own = made._aval()[1]
    wide = own if dtype is None or own.kind not in "fc" else dtypes.promote(own, dtype)
    return made if wide is own else tensor(data, dtype=wide)


def _flat(data: Any) -> Any:
    for x in data:
        if isinstance(x, (list, tuple)):
            yield from _flat(x)
        else:
            yield x
