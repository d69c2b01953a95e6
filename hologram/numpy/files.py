"""Arrays of files, buffers and texts, as NumPy reads and writes them, and how NumPy prints."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from hologram.errors import ArgumentError
from hologram.numpy.along_axes.ordering import complex_sorted
from hologram.numpy.arguments import array, wrap
from hologram.numpy.products.subscripts import with_subscripts
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.convert import asarray
from hologram.trace.tensor import Tensor

__all__ = [
    "array_repr", "array_str", "einsum_path", "frombuffer", "fromfile", "fromiter", "fromstring", "get_printoptions", "load", "printoptions", "save",
    "savez", "set_printoptions", "sort_complex",
]  # fmt: skip

_PATHS = (str, bytes, os.PathLike)


def _opened(file: Any, what: str) -> Any:
    """``file``, a path or an open file. Raises ArgumentError for anything else."""
    if not isinstance(file, _PATHS) and not hasattr(file, "read") and not hasattr(file, "write"):
        raise located(ArgumentError(f"{what}: file is a path or an open file, not {type(file).__name__}"))
    return file


get_printoptions, printoptions, set_printoptions = np.get_printoptions, np.printoptions, np.set_printoptions


def load(file: Any, *args: Any, **options: Any) -> Any:
    """The array of a file that :func:`save` wrote, as a Tensor; of one that :func:`savez` wrote what ``numpy.load`` gives, an archive of ndarrays.

    Arguments and errors are those of ``numpy.load``. Raises ArgumentError for what is neither a path nor an open file.

    >>> import io
    >>> file = io.BytesIO()
    >>> hnp.save(file, hnp.ones(2))
    >>> hnp.load(io.BytesIO(file.getvalue()))
    Tensor([1., 1.], dtype=float32)
    """
    found = np.load(_opened(file, "load"), *args, **options)
    return asarray(found) if isinstance(found, np.ndarray) else found


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Writes an array into a file, as ``numpy.save`` does. Raises TracedValueError for a traced value.

    >>> import io
    >>> hnp.save(io.BytesIO(), hnp.ones(2))
    """
    np.save(_opened(file, "save"), known_array(arr, "save"), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Writes arrays into an archive, as ``numpy.savez`` does: by their names, or as ``arr_0`` and so on.

    >>> import io
    >>> hnp.savez(io.BytesIO(), hnp.ones(2), b=hnp.zeros(1))
    """
    named = {k: known_array(x, "savez") for k, x in kwds.items()}
    np.savez(_opened(file, "savez"), *[known_array(x, "savez") for x in args], allow_pickle=allow_pickle, **named)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Tensor:
    """A copy of the bytes of a buffer as elements of a type, by default float64. Arguments and errors are those of ``numpy.frombuffer``.

    >>> hnp.frombuffer(bytes([1, 2, 3]), dtype="uint8")
    Tensor([1, 2, 3], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer, dtype, count, offset).copy())


def fromfile(file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0) -> Tensor:
    """The elements of a binary or text file, as ``numpy.fromfile`` reads them.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     done = (np.arange(3).tofile(file), file.seek(0))
    ...     hnp.fromfile(file, dtype="int64")
    Tensor([0, 1, 2], dtype=int64)
    """
    return asarray(np.fromfile(_opened(file, "fromfile"), dtype, count, sep, offset))


def fromiter(iterable: Iterable[Any], dtype: Any, count: int = -1) -> Tensor:
    """A vector of what an iterable gives, as ``numpy.fromiter`` makes it.

    >>> hnp.fromiter((i * i for i in range(3)), dtype="int32")
    Tensor([0, 1, 4], dtype=int32)
    """
    return asarray(np.fromiter(iterable, dtype, count))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Tensor:
    """A vector of the numbers of a text, which ``sep`` divides; by default float64.

    >>> hnp.fromstring("1, 2", dtype="float32", sep=",")
    Tensor([1., 2.], dtype=float32)
    """
    if not isinstance(string, str):
        raise located(ArgumentError(f"fromstring: a text is wanted, not {type(string).__name__}"))
    return asarray(np.fromstring(string, dtype, count, sep=sep))


def array_repr(arr: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None) -> str:
    """The text of an array with its type, as ``numpy.array_repr`` makes it. Raises TracedValueError for a traced value.

    >>> hnp.array_repr(hnp.ones(2))
    'array([1., 1.], dtype=float32)'
    """
    return np.array_repr(known_array(arr, "array_repr"), max_line_width, precision, suppress_small)


def array_str(a: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None) -> str:
    """The text of the elements of an array, as ``numpy.array_str`` makes it. Raises TracedValueError for a traced value.

    >>> hnp.array_str(hnp.asarray([1.23456, 2.0]), precision=2)
    '[1.23 2.  ]'
    """
    return np.array_str(known_array(a, "array_str"), max_line_width, precision, suppress_small)


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "greedy") -> tuple[list[Any], str]:
    """The order in which ``numpy.einsum`` contracts operands, and a text about its cost. Shapes count alone, so operands may be traced.

    >>> hnp.einsum_path("ij,jk,kl", np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5)))[0]
    ['einsum_path', (1, 2), (0, 1)]
    """
    subscripts, operands = with_subscripts("einsum_path", subscripts, *operands)
    shapes: list[Any] = [array(x, "einsum_path").shape for x in operands]
    path, text = np.einsum_path(subscripts, *[np.broadcast_to(0.0, s) for s in shapes], optimize=optimize)
    return path, text


def sort_complex(a: Any) -> Tensor:
    """Elements sorted along the last axis as complex numbers, by real parts, among equals by imaginary ones; complex64 of float32.

    >>> hnp.sort_complex([2 + 1j, 1 - 1j, 1 - 2j])
    Tensor([1.-2.j, 1.-1.j, 2.+1.j], dtype=complex64)
    """
    return complex_sorted(wrap(array(a, "sort_complex")))
