"""Keys, what is derived from them, and random bits."""

from __future__ import annotations

import math
import operator
from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr
from hologram.numpy.arguments import array, element_type, reshaped, wrap
from hologram.primitives.iota import iota
from hologram.primitives.movement import concatenate, slice_
from hologram.primitives.scalar import elementwise as ew
from hologram.random.threefry import Words, threefry
from hologram.support.user_lines import located
from hologram.trace.checks import shape_of
from hologram.trace.convert import tensor
from hologram.trace.recorder import cast_node, constant, current, record
from hologram.trace.tensor import Tensor

WORD = dtypes.uint32
IMPLEMENTATION = "threefry2x32"


def _halves(x: Node) -> Words:
    """The high and the low 32 bits of integers."""
    if x.dtype.bits <= 32:
        return constant(0, WORD), cast_node(x, WORD)
    wide = cast_node(x, dtypes.uint64)
    return cast_node(record(ew.shr_low, (wide, constant(32, dtypes.uint64))), WORD), cast_node(wide, WORD)


def _joined(words: Words) -> Node:
    """Pairs of words as uint32 with a last axis of two."""
    columns = tuple(reshaped(x, (*x.shape, 1)) for x in words)
    return record(concatenate, columns, (len(columns[0].shape) - 1,))


def _integer_words(x: Any, what: str) -> Words:
    """The high and low words of an integer, modulo 2**64.

    A Python integer outside traces is data, not a constant of the program: a loop over many compiles one program.
    """
    if type(x) is int:
        if current() is None:
            return _pair(array(key(x), what))
        return constant(x >> 32 & 0xFFFFFFFF, WORD), constant(x & 0xFFFFFFFF, WORD)
    node = array(x, what)
    if not node.dtype.is_integer or node.shape:
        raise located(ArgumentError(f"{what} takes an integer, not {node.dtype} of shape {list(node.shape)}"))
    return _halves(node)


def _pair(node: Node) -> Words:
    """The two elements of a vector."""
    first, second = (reshaped(record(slice_, (node,), ((i,), (i + 1,), (1,))), ()) for i in range(2))
    return first, second


def words_of(key: Any, what: str) -> Words:
    """The words of a key. Raises DTypeError or ShapeError for what is no key."""
    node = array(key, what)
    if node.dtype is not WORD:
        raise located(DTypeError(f"{what}: a key is uint32[2], as hg.random.key makes it, not {node.dtype}"))
    if node.shape != (2,) and not (len(node.shape) == 1 and isinstance(node.shape[0], Expr)):  # a symbol stands for 2 where all extents are dynamic
        raise located(ShapeError(f"{what}: a key has shape [2], not {list(node.shape)}; hg.vmap maps over many keys"))
    return _pair(node)


def counters(shape: Shape) -> Words:
    """The index of every element in C order, as high and low words."""
    n = math.prod(shape)
    if isinstance(n, Expr) or n > 2**32:
        high, low = _halves(record(iota, (), ((n,), 0, "uint64")))
    else:
        high, low = constant(0, WORD), record(iota, (), ((n,), 0, "uint32"))
    return (reshaped(high, shape) if high.shape else high), reshaped(low, shape)


def blocks(key: Any, shape: Shape, what: str) -> Words:
    """Two random words for each element of ``shape``."""
    return threefry(words_of(key, what), counters(shape))


def random_bits(key: Any, shape: Shape, dtype: DType, what: str) -> Node:
    """Uniform bits as the unsigned ``dtype``."""
    high, low = blocks(key, shape, what)
    if dtype.bits < 64:
        return cast_node(record(ew.xor, (high, low)), dtype)
    wide = record(ew.shl_low, (cast_node(high, dtypes.uint64), constant(32, dtypes.uint64)))
    return record(ew.or_, (wide, cast_node(low, dtypes.uint64)))


def key(seed: Any) -> Tensor:
    """Random key of an integer ``seed``, taken modulo 2**64: ``uint32[2]``.

    ``seed`` may be a Tensor. Raises ArgumentError for what is no integer.

    >>> hg.random.key(7)
    Tensor([0, 7], dtype=uint32)
    """
    if type(seed) is int:
        return tensor([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], dtype=WORD)
    return wrap(_joined(_integer_words(seed, "key")))


def split(key: Any, num: Any = 2) -> Tensor:
    """Splits a key into ``num`` independent ones: ``uint32[*num, 2]``, for an integer or a shape. ``key`` itself should not be used again.

    Raises DTypeError or ShapeError for what is no key, ShapeError for a negative number.

    >>> a, b = hg.random.split(hg.random.key(7))
    >>> hg.random.uniform(a), hg.random.uniform(b)
    (Tensor(0.8673705, dtype=float32), Tensor(0.6751336, dtype=float32))
    """
    return wrap(_joined(blocks(key, shape_of(num, "split"), "split")))


def fold_in(key: Any, data: Any) -> Tensor:
    """Key made of ``key`` and the integer ``data``, a different one for each ``data``: for the steps of a loop.

    >>> hg.random.fold_in(hg.random.key(7), 3)
    Tensor([ 276534068, 1641862660], dtype=uint32)
    """
    return wrap(_joined(threefry(words_of(key, "fold_in"), _integer_words(data, "fold_in"))))


def bits(key: Any, shape: Any = (), dtype: Any = WORD) -> Tensor:
    """Uniformly distributed bits: unsigned integers, uint32 unless ``dtype`` says otherwise. Raises DTypeError for another type.

    >>> hg.random.bits(hg.random.key(7), (2,), "uint8")
    Tensor([11,  0], dtype=uint8)
    """
    to = element_type(dtype)
    if to.kind != "u":
        raise located(DTypeError(f"bits gives unsigned integers, not {to}"))
    return wrap(random_bits(key, shape_of(shape, "bits"), to, "bits"))


def count_of(n: Any, what: str) -> int:
    """A number of elements. Raises ArgumentError where it is no integer, or negative."""
    try:
        i = operator.index(n)
    except TypeError:
        i = -1
    if i < 0:
        raise located(ArgumentError(f"{what} takes a number from 0 up, not {n!r}"))
    return i


def key_data(keys: Any) -> Tensor:
    """The words of keys: the keys themselves, which are plain arrays here.

    >>> hg.random.key_data(hg.random.key(7))
    Tensor([0, 7], dtype=uint32)
    """
    return _as_keys(keys, "key_data")


def wrap_key_data(key_bits_array: Any, *, impl: Any = None) -> Tensor:
    """Keys of words (…, 2). ``impl`` is ``"threefry2x32"``. Raises DTypeError, ShapeError or ArgumentError for what is no key.

    >>> hg.random.wrap_key_data(np.array([0, 7], np.uint32))
    Tensor([0, 7], dtype=uint32)
    """
    if impl not in (None, IMPLEMENTATION):
        raise located(ArgumentError(f"wrap_key_data: keys are {IMPLEMENTATION!r}, not {impl!r}"))
    return _as_keys(key_bits_array, "wrap_key_data")


def clone(key: Any) -> Tensor:
    """The same key again: nothing watches how often a key is used.

    >>> hg.random.clone(hg.random.key(7))
    Tensor([0, 7], dtype=uint32)
    """
    return _as_keys(key, "clone")


def key_impl(keys: Any) -> str:
    """The name of the generator: ``"threefry2x32"``.

    >>> hg.random.key_impl(hg.random.key(7))
    'threefry2x32'
    """
    _as_keys(keys, "key_impl")
    return IMPLEMENTATION


def _as_keys(keys: Any, what: str) -> Tensor:
    node = array(keys, what)
    if node.dtype is not WORD:
        raise located(DTypeError(f"{what}: a key is uint32[2], as hg.random.key makes it, not {node.dtype}"))
    if not node.shape or node.shape[-1] != 2:
        raise located(ShapeError(f"{what}: keys have the shape [..., 2], not {list(node.shape)}"))
    return wrap(node)
