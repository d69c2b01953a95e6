"""The class of ufuncs. What its methods do with arrays is written beside it: folds, ranges, updates."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from hologram.errors import ArgumentError, DTypeError
from hologram.numpy.arguments import array, reshaped, wrap
from hologram.numpy.creation import zeros
from hologram.numpy.ufuncs import folds, ranges, updates
from hologram.support.user_lines import located
from hologram.trace.native_operators import on_native
from hologram.trace.operators import SCALARS
from hologram.trace.symbolic_extent import Extent
from hologram.trace.tensor import Tensor

_CHARACTERS = "?bBhHiIlLefdFD"  # of NumPy's element types that Hologram has, by C's names for them; in the order of NumPy's loops


class ufunc(functools.partial):  # called in C: a ``__call__`` in Python would double the cost of a call
    """An elementwise function, with NumPy's methods for folding it along an axis and for updates.

    ``nin`` and ``nout`` count operands and results, ``nargs`` both. ``identity`` is the result of :meth:`reduce` over no elements, or None.
    ``signature`` is None, as of all functions that go element by element. A ufunc is pickled and copied by name.

    >>> isinstance(hnp.add, hnp.ufunc), hnp.add.nin, hnp.add.nout, hnp.add.identity
    (True, 2, 1, 0)
    >>> hnp.add.reduce([[1, 2], [3, 4]])
    Tensor([4, 6], dtype=int64)
    """

    nin: int
    nout: int
    identity: Any
    signature = None
    __name__: str
    __qualname__: str
    _reorderable: bool

    def __new__(cls, function: Callable[..., Any], nout: int = 1, identity: Any = None, reorderable: bool = False, nin: int | None = None) -> ufunc:
        """``function`` takes its operands, ``nin`` of them, by position alone. ``reorderable``: a fold of it may take elements in any order."""
        made = super().__new__(cls, function)
        made.__doc__, made.__name__, made.__qualname__ = function.__doc__, function.__name__, function.__name__
        made.__module__ = "hologram.numpy"
        made.nin, made.nout, made.identity = nin or function.__code__.co_posonlyargcount, nout, identity
        made._reorderable = reorderable or identity is not None
        on_native(function, made._replace)
        return made

    def _replace(self, function: Callable[..., Any]) -> None:
        """Calls go to ``function``, which does the same."""
        self.__setstate__((function, (), {}, self.__dict__))  # type: ignore[attr-defined]  # of functools.partial

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"

    def __reduce__(self) -> str:
        return self.__name__

    @property
    def nargs(self) -> int:
        """The number of operands and results."""
        return self.nin + self.nout

    @property
    def types(self) -> list[str]:
        """What is computed of operands of one type, for each type of NumPy's that is taken: ``ff->f`` is float32 of float32 twice.

        >>> hnp.bitwise_count.types
        ['?->B', 'b->B', 'B->B', 'h->B', 'H->B', 'i->B', 'I->B', 'l->B', 'L->B']
        """
        return [f"{c * self.nin}->{''.join(found)}" for c in _CHARACTERS if (found := self._results(c))]

    @property
    def ntypes(self) -> int:
        """The length of :attr:`types`."""
        return len(self.types)

    def _results(self, character: str) -> list[str]:
        """The types of the results for operands of one type; none where it is not taken."""
        try:
            out = self(*[zeros((), dtype=np.dtype(character))] * self.nin)
        except DTypeError:
            return []
        return [x.dtype.char for x in (out if self.nout > 1 else [out])]

    def _fold(self, method: str) -> folds.Fold:
        if self.nin != 2 or self.nout != 1:
            what = "functions of two operands" if self.nin != 2 else "functions of one result"
            raise located(ArgumentError(f"{self.__name__}.{method}: there is {method} of {what} alone"))
        return folds.Fold(self.func, self.__name__, self.identity, self._reorderable)

    def reduce(
        self, x: Any, /, axis: Any = 0, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Tensor:
        """Folds ``x`` along ``axis``: ``f(f(x[0], x[1]), x[2])`` and so on. None, or a tuple of axes, folds several at once.

        ``add``, ``multiply``, ``maximum``, ``minimum``, ``logical_and`` and ``logical_or`` are :func:`sum` and its kin, with their types.
        Others fold in ``dtype``, by default in the type that the function gives of two elements. Functions with an identity, ``fmax`` and
        ``fmin`` take elements in any order, the rest from the first to the last. ``initial`` stands before the first element. ``where``
        (bool, broadcast with ``x``) says which elements count. ``out`` stands at NumPy's place and is None.

        Raises ShapeError over no elements without an identity, and for several axes where the order matters; ArgumentError for ``where``
        without identity and ``initial``, and for functions that have not two operands and one result; DTypeError where the function gives
        another type than it takes.

        >>> hnp.subtract.reduce([10, 2, 3])
        Tensor(5, dtype=int64)
        >>> hnp.bitwise_or.reduce([[1, 2], [4, 8]], axis=None)
        Tensor(15, dtype=int64)
        """
        if out is not None:
            raise located(ArgumentError(f"{self.__name__}.reduce: Tensors are not written into: out is None, and the result is used"))
        return folds.reduce(self._fold("reduce"), x, axis, dtype, keepdims, initial, where)

    def accumulate(self, x: Any, /, axis: int = 0, dtype: Any = None) -> Tensor:
        """Running folds along ``axis``: element i of the result folds the elements up to i.

        The shape is that of ``x``, types are those of :meth:`reduce`. Raises as :meth:`reduce`, and ShapeError for a scalar.

        >>> hnp.subtract.accumulate([10, 2, 3])
        Tensor([10,  8,  5], dtype=int64)
        """
        return folds.accumulate(self._fold("accumulate"), x, axis, dtype)

    def reduceat(self, x: Any, indices: Any, /, axis: int = 0, dtype: Any = None) -> Tensor:
        """Folds ranges of ``axis``: result i folds the elements from ``indices[i]`` up to, not including, ``indices[i + 1]``.

        The last range goes up to the end. Where the next index is not larger, the result is the element at ``indices[i]``. ``indices`` is a
        vector of integers, and may be traced: then those out of range are clamped. Types are those of :meth:`reduce`. Raises
        IndexOutOfRange for known indices out of range (negative ones too), DTypeError for indices that are not integers, ShapeError for
        indices that are no vector, and as :meth:`reduce`.

        >>> hnp.add.reduceat([1, 2, 3, 4, 5], [0, 3, 1])
        Tensor([ 6,  4, 14], dtype=int64)
        """
        return ranges.reduceat(self._fold("reduceat"), x, indices, axis, dtype)

    def outer(self, a: Any, b: Any, /) -> Any:
        """The function of every pair of an element of ``a`` and one of ``b``: shape ``(*a.shape, *b.shape)``.

        Raises ArgumentError for functions of one operand.

        >>> hnp.subtract.outer([10, 20], [1, 2, 3])
        Tensor([[ 9,  8,  7],
                [19, 18, 17]], dtype=int64)
        """
        if self.nin != 2:
            raise located(ArgumentError(f"{self.__name__}.outer: there is outer of functions of two operands alone"))
        if type(b) in SCALARS:
            return self(a, b)
        if type(a) is Tensor or type(a) not in (*SCALARS, Extent):
            node = array(a, f"{self.__name__}.outer")
            rank = len(array(b, f"{self.__name__}.outer").shape)
            a = a if not node.shape else wrap(reshaped(node, (*node.shape, *[1] * rank)))
        return self(a, b)

    def at(self, x: Any, indices: Any, values: Any = None, /) -> Tensor:
        """``x`` after ``x[i] = f(x[i], v)`` for every index and value in turn; of functions of one operand ``x[i] = f(x[i])``.

        The result is new: unlike NumPy's, ``x`` does not change. An index that is named twice is updated twice. ``indices`` are what stands
        in ``x[indices]``; computed ones out of range are dropped. ``values`` broadcast to the shape of ``x[indices]``. The result has the
        type of ``x``.

        Raises DTypeError where a result of the function does not fit that type, ShapeError for values that do not broadcast, ArgumentError
        for missing or needless ``values`` and for functions of two results, IndexOutOfRange for known indices out of range.

        >>> hnp.add.at([1, 2, 3], [0, 0, 2], [10, 20, 30])
        Tensor([31,  2, 33], dtype=int64)
        >>> hnp.negative.at([1, 2, 3], [0, 1])
        Tensor([-1, -2,  3], dtype=int64)
        """
        if self.nout != 1:
            raise located(ArgumentError(f"{self.__name__}.at: there is at of functions of one result alone"))
        if (values is None) is (self.nin == 2):
            raise located(ArgumentError(f"{self.__name__}.at: values are given for a function of two operands, and for no other"))
        return updates.at(self.func, self.__name__, x, indices, values)
