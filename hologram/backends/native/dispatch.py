"""Native callables: what fits a specialisation runs without Python, everything else goes to a Python function.

A specialisation says what the arguments look like (patterns), which graph they go to, and how its results are wrapped. Patterns of arguments:
:class:`TensorLeaf`, :class:`RemoteLeaf`, :class:`ArrayLeaf`, :class:`ValueLeaf`, :class:`ScalarLeaf`, :class:`BufferLeaf`, :class:`Field`,
:class:`Same`, None, and tuples, lists, dicts (with ``str`` keys), :class:`Named`, :class:`Attributes` and :class:`Parts` of patterns. Leaves are
numbered in the order in which they are met, a dict's by sorted key, positional arguments before keywords. Results are the same with the index of an
output, :class:`Passed` or a :class:`Number` in place of a leaf.

Programs on devices are run by a Python callable of the leaves, or, where a call of theirs was captured, by :mod:`.code.dispatch.replay`.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hologram.backends.native.calls import flags
from hologram.backends.native.code.dispatch import words as code
from hologram.backends.native.code.object_layout import UnknownLayout, holds_value, slot_offset
from hologram.backends.native.code.records import PARALLEL
from hologram.backends.native.code.records import Index as IndexRecord
from hologram.backends.native.code.records import Output as OutputRecord
from hologram.backends.native.code.records import Spec as SpecRecord
from hologram.backends.native.code.scalars import AS_INTEGER, format_of
from hologram.backends.native.module import METH_FASTCALL, METH_KEYWORDS, METH_O, check_size, module, why_not_native
from hologram.backends.native.pool import the_pool
from hologram.backends.native.replays import Replays, tell_classes
from hologram.backends.native_lang.language import fields_of, offset_of
from hologram.dtypes import DType
from hologram.ir.aval import Aval
from hologram.settings import listeners, settings
from hologram.support.once import once

if why_not_native() is None:
    from hologram.backends.native.tables import table  # with this module: what a thread is importing at a fork, no child can import any more

MAX_SHARED_LEAVES = 62  # leaves of a call that writes into buffers: a bit of a word each
MAX_SCANNED = 8  # specialisations that a call tries one after the other
DEEPEST = 64  # nesting of patterns; native code walks them by recursion


class NotNative(Exception):
    """A specialisation that native code cannot serve, and why."""


@dataclass(frozen=True, slots=True)
class TensorLeaf:
    """A Tensor that is realised, of this type and shape; of one that ``owns`` its memory nothing else does."""

    aval: Aval
    owns: bool = False


@dataclass(frozen=True, slots=True)
class RemoteLeaf:
    """A Tensor that is realised, of this type and shape, in memory of ``pool``, a :class:`hologram.backends.device.memory.Pool`."""

    aval: Aval
    pool: Any


@dataclass(frozen=True, slots=True)
class ArrayLeaf:
    """An aligned C-contiguous ndarray in native byte order, of this type and shape."""

    aval: Aval


@dataclass(frozen=True, slots=True)
class ValueLeaf:
    """A NumPy scalar of exactly the type of ``example``."""

    example: np.generic


@dataclass(frozen=True, slots=True)
class ScalarLeaf:
    """A Python scalar: exactly a ``float``, ``int`` or ``bool`` (``kind``), converted to one element of ``dtype``."""

    kind: type
    dtype: DType


@dataclass(frozen=True, slots=True)
class BufferLeaf:
    """A buffer of the SDK with elements of ``dtype`` and from ``least`` to ``most`` bytes."""

    dtype: DType
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Field:
    """An object of exactly the type ``kind`` whose slot ``name`` holds this very ``value``. No leaf."""

    kind: type
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Number:
    """As a part of the result: the first element of an output, float32 or float64, as a Python float."""

    output: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class Passed:
    """As a part of the result: a Tensor with the memory of the leaf of this number, a Tensor that owns it and is not donated."""

    leaf: int


@dataclass(frozen=True, slots=True)
class Same:
    """This very object, or an equal ``int`` or ``str``. As a part of the result: this object."""

    value: Any


@dataclass(frozen=True, slots=True)
class Named:
    """A named tuple of exactly the type ``kind``. As a part of the result it is made by calling the type."""

    kind: type
    children: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Attributes:
    """An object of exactly the type ``kind`` whose attributes ``names`` are the children, and those in ``constants`` equal these objects. As a part
    of the result it is ``object.__new__(kind)`` with these attributes."""

    kind: type
    names: Sequence[str]
    children: Sequence[Any]
    constants: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """An object of exactly the type ``kind`` that comes apart: ``apart(x)`` gives ``(children, data)``, any iterable of the children and data that
    equal these. As a part of the result it is ``join(data, children)``."""

    kind: type
    data: Any
    children: Sequence[Any]
    apart: Callable[[Any], tuple[Any, Any]]
    join: Callable[[Any, list[Any]], Any]


@dataclass(frozen=True, slots=True)
class Output:
    """A result of the graph. It may be computed in the memory of the donated leaf ``donor``, if nothing else reads that."""

    aval: Aval
    donor: int | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    """A result that is a Tensor argument itself: the leaf of this number. The graph still finds its memory among the outputs."""

    leaf: int


@dataclass(frozen=True, slots=True)
class Into:
    """A result of the graph that is written into the leaf of this number, a buffer.

    Leaves in ``sharers`` may lie at the same address; where others overlap it, or the address is no multiple of ``alignment`` bytes (a power
    of two), or the memory is read-only, the specialisation does not fit.
    """

    leaf: int
    sharers: Sequence[int] = ()
    alignment: int = 1


@dataclass(slots=True)
class Spec:
    """One specialisation. ``address`` is a graph's (:mod:`calls`), ``keep`` what must live as long (its Code).

    That of a program on a device has no graph but ``run``, which takes the leaves as a list and gives a list of ``results`` Tensors; ``replays`` are
    its captured calls, which take Tensors of its device alone.
    """

    args: Sequence[Any]
    result: Any
    outputs: Sequence[Output | Argument | Into]
    address: int = 0
    keep: Any = None
    kwargs: Mapping[str, Any] | None = None  # in the order in which callers write them
    constants: Sequence[Any] = ()  # Storages: the slots after the inputs
    symbols: Sequence[int] = ()  # values of the slots after the outputs
    donated: Sequence[int] = ()  # Tensor leaves that the call takes
    arena_bytes: int = 0
    long: bool = False  # takes more than about 50 µs: runs without the GIL
    parallel: int = PARALLEL  # see :func:`calls.flags`
    run: Callable[[list[Any]], list[Any]] | None = None
    results: int = 0
    replays: Replays | None = None


# --- words that native code walks -----------------------------------------------------------------------------------------------------------


class _Words:
    """Flattens patterns. ``keep`` holds every object whose address is a word."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.keep: list[Any] = []
        self.kinds: list[type] = []  # of leaves, in order
        self.given = 0  # objects that Python code gives while arguments are taken apart, at most

    def address(self, obj: Any) -> int:
        self.keep.append(obj)
        return id(obj)

    def container(self, p: Any, depth: int, walk: Callable[[Any, int], None]) -> bool:
        """Flattens p if it is a container, a constant object or None."""
        if depth > DEEPEST:
            raise NotNative(f"containers are nested deeper than {DEEPEST}")
        if type(p) is Field:
            self.words += (code.FIELD, self.address(p.kind), slot_offset(p.kind, p.name), self.address(p.value))
        elif p is None or type(p) is Same:
            self.words += (code.SAME, self.address(None if p is None else p.value))
        elif type(p) in (tuple, list):
            self.words += (code.TUPLE if type(p) is tuple else code.LIST, len(p))
            for x in p:
                walk(x, depth + 1)
        elif type(p) is dict:
            if not all(type(k) is str for k in p):
                raise NotNative("a dict has keys other than str")
            self.words += (code.DICT, len(p))
            for k in sorted(p):
                self.words.append(self.address(k))
                walk(p[k], depth + 1)
        else:
            return False
        return True

    def attributes(self, p: Attributes, walk: Callable[[Any], None]) -> None:
        self.words += (self.address(p.kind), len(p.names), len(p.constants))
        for name, child in zip(p.names, p.children, strict=True):
            self.words.append(self.address(sys.intern(name)))
            walk(child)
        for name, value in p.constants.items():
            self.words += (self.address(sys.intern(name)), self.address(value))

    def class_parameter(self, p: Any, depth: int) -> bool:
        """Flattens p if it is an object of a class that is taken apart."""
        walk = lambda x: self.parameter(x, depth + 1)  # noqa: E731
        if type(p) is Attributes:
            self.given += len(p.names)
            self.words.append(code.ATTRIBUTES)
            self.attributes(p, walk)
            return True
        if type(p) is Named:
            self.words += (code.NAMED, self.address(p.kind), len(p.children))
        elif type(p) is Parts:
            self.given += 2
            self.words += (code.PARTS, self.address(p.kind), self.address(p.apart), self.address(p.data), len(p.children))
        else:
            return False
        for x in p.children:
            walk(x)
        return True

    def class_result(self, p: Any, depth: int) -> bool:
        """Flattens p if it is an object of a class that is put together."""
        walk = lambda x: self.result(x, depth + 1)  # noqa: E731
        if type(p) is Attributes:
            self.words += (code.ASSIGNED, self.address(object.__new__))
            self.attributes(p, walk)
            return True
        if type(p) is Named:
            self.words += (code.CALLED, self.address(p.kind), len(p.children))
        elif type(p) is Parts:
            self.words += (code.JOINED, self.address(p.join), self.address(p.data), len(p.children))
        else:
            return False
        for x in p.children:
            walk(x)
        return True

    def parameter(self, p: Any, depth: int = 0) -> None:
        if self.container(p, depth, self.parameter) or self.class_parameter(p, depth):
            return
        kind = type(p)
        self.kinds.append(kind)
        if kind is TensorLeaf:
            self.words += (code.OWNER if p.owns else code.TENSOR, self.address(p.aval))
        elif kind is RemoteLeaf:
            self.words += (code.REMOTE, self.address(p.aval), self.address(p.pool))
        elif kind is ArrayLeaf:
            self.words += (code.ARRAY, self.address(p.aval.dtype.np), len(p.aval.shape), *p.aval.shape)
        elif kind is ValueLeaf:
            if not holds_value(p.example):
                raise NotNative(f"a NumPy {type(p.example).__name__} is not laid out as known")
            self.words += (code.VALUE, self.address(type(p.example)))
        elif kind is ScalarLeaf:
            self.words += _scalar_words(p)
        elif kind is BufferLeaf:
            self.words += (code.BUFFER, self.address(p.dtype), p.least, p.most)
        else:
            raise NotNative(f"native calls take no {p!r}")

    def result(self, p: Any, depth: int = 0) -> None:
        if type(p) is Number:
            self.words += (code.NUMBER, p.output, format_of(p.dtype))
        elif type(p) is Passed:
            self.words += (code.PASSED, p.leaf)
        elif not self.container(p, depth, self.result) and not self.class_result(p, depth):
            self.words += (code.RESULT, p)


def _scalar_words(p: ScalarLeaf) -> tuple[int, ...]:
    form = format_of(p.dtype)
    if form < 0 or p.kind not in (float, int, bool) or (p.kind is float and form == AS_INTEGER):
        raise NotNative(f"a Python {p.kind.__name__} is not converted to {p.dtype}")
    if p.kind is float:
        return code.FLOAT, form
    if p.kind is bool:
        return code.BOOLEAN, form
    low, high = -(2**63), 2**63 - 1
    if p.dtype.kind == "b":
        low, high = 0, 1
    elif form == AS_INTEGER and p.dtype.bits < 64 or p.dtype.kind == "u":
        low, high = (0, min(high, 2**p.dtype.bits - 1)) if p.dtype.kind == "u" else (-(2 ** (p.dtype.bits - 1)), 2 ** (p.dtype.bits - 1) - 1)
    return code.INTEGER, form, low, high


def _output_words(o: Output | Argument | Into, kinds: Sequence[type], keep: list[Any]) -> dict[str, int]:
    from hologram.backends.native.native_storage import size_class

    if isinstance(o, Into):
        if not {*kinds} <= {BufferLeaf, ScalarLeaf} or len(kinds) > MAX_SHARED_LEAVES:
            raise NotNative("a result is written into a buffer only where all arguments are buffers and scalars")
        sharers = sum(1 << leaf for leaf in o.sharers)
        return {"aval": 0, "nbytes": 0, "size_class": 0, "source": o.leaf, "donor": -1, "sharers": sharers, "misaligned": o.alignment - 1}
    nowhere = {"sharers": -1, "misaligned": 0}
    if isinstance(o, Argument):
        if kinds[o.leaf] is not TensorLeaf:
            raise NotNative("an argument that is no Tensor cannot be a result itself")
        return {"aval": 0, "nbytes": 0, "size_class": 0, "source": o.leaf, "donor": -1, **nowhere}
    check_size(o.aval.nbytes)
    keep.append(o.aval)
    donor = -1 if o.donor is None or kinds[o.donor] is not TensorLeaf else o.donor
    return {"aval": id(o.aval), "nbytes": o.aval.nbytes, "size_class": size_class(o.aval.nbytes), "source": -1, "donor": donor, **nowhere}


def _pack(spec: Spec) -> tuple[Any, tuple[Any, ...]]:
    """The specialisation as a Storage that native code reads, and what must live as long as it."""
    kwargs = spec.kwargs or {}
    parameters, result = _Words(), _Words()
    for p in (*spec.args, *kwargs.values()):
        parameters.parameter(p)
    result.result(spec.result)
    keywords = [sys.intern(k) for k in kwargs]
    keep = [*parameters.keep, *result.keep, *keywords, *spec.constants, spec.keep, spec.run, spec.replays]
    outputs = [_output_words(o, parameters.kinds, keep) for o in spec.outputs]
    check_size(spec.arena_bytes)
    arrays = {
        "keywords": [id(k) for k in keywords],
        "parameters": parameters.words,
        "constants": [s.data for s in spec.constants],
        "outputs": [o[name] for o in outputs for name in fields_of(OutputRecord)],
        "symbols": list(spec.symbols),
        "donated": list(spec.donated),
        "result": result.words,
    }
    leaves = len(parameters.kinds)
    kept = parameters.given + leaves if parameters.given else 0
    values = {
        "epoch": module().process.epoch,
        "last_use": 0,
        "graph": spec.address,
        "arena_bytes": spec.arena_bytes,
        "flags": flags(spec.long, spec.parallel),
        "words": 4 * leaves + len(spec.constants) + 2 * len(outputs) + len(spec.symbols) + spec.results + kept,
        "n_positional": len(spec.args),
        "n_keywords": len(keywords),
        "n_leaves": leaves,
        "n_kept": kept,
        "n_outputs": len(outputs),
        **{"n_" + name: len(arrays[name]) for name in ("constants", "symbols", "donated")},
        "run": 0 if spec.run is None else id(spec.run),
        "n_results": spec.results,
        "replays": 0 if spec.replays is None else id(spec.replays),
    }
    return table(SpecRecord, values, arrays), tuple(keep)


# --- callables ------------------------------------------------------------------------------------------------------------------------------


class _Dispatcher:
    """First argument of a native callable. ``specs`` holds a table and what it keeps alive for each specialisation, latest first; where they are
    many, an index of them at the end."""

    __slots__ = ("specs", "fallback")

    def __init__(self, fallback: Callable[..., Any]) -> None:
        self.specs: tuple[Any, ...] = ()
        self.fallback = fallback


@once
def _prepared() -> Any:
    """Native code knows the dispatcher's slots, and the pool."""
    p = module().process
    p.dispatcher_specs, p.dispatcher_fallback = slot_offset(_Dispatcher, "specs"), slot_offset(_Dispatcher, "fallback")
    _follow_settings()
    listeners.append(_follow_settings)
    the_pool()
    return module()


@cache
def _fingerprint() -> Callable[..., int]:
    """Native code's fingerprint of a call."""
    return _prepared().builtin("hg_fingerprint_of", "fingerprint", METH_FASTCALL | METH_KEYWORDS, None, None)


_epochs: dict[Any, int] = {}


def _follow_settings() -> None:
    """A specialisation serves under the settings that it was made under: while others stand it misses, and it fits again when they are restored."""
    module().process.epoch = _epochs.setdefault((settings.native, settings.code), len(_epochs))


class Dispatch:
    """A callable and its specialisations. ``call`` is a builtin function, or ``fallback`` itself where there are no native calls.

    ``call(*args, **kwargs)`` runs the most recently added specialisation that fits, else ``fallback(*args, **kwargs)``. At most ``limit``
    specialisations are kept: the least recently used eighth goes. More than :data:`MAX_SCANNED` are found by the fingerprint of a call.
    """

    __slots__ = ("call", "limit", "_dispatcher", "_fingerprints", "_indexed")

    def __init__(self, fallback: Callable[..., Any], name: str, limit: int = 256, doc: str | None = None) -> None:
        self.limit, self._dispatcher = limit, _Dispatcher(fallback)
        self._fingerprints: dict[int, int] = {}  # of each specialisation's calls, by the address of its table; 0: not known
        self._indexed = 0  # how many are in the index
        if why_not_native() is None:
            self.call = _prepared().builtin("hg_dispatch_call", name, METH_FASTCALL | METH_KEYWORDS, self._dispatcher, doc)
        else:
            self.call = fallback

    def __len__(self) -> int:
        return len(self._dispatcher.specs) // 2

    def add(self, spec: Spec, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None) -> bool:
        """Adds a specialisation; False where native code cannot serve it. ``args`` and ``kwargs`` are those of a call that it serves."""
        if why_not_native() is not None or not module().process.tensor_type:
            return False
        try:
            if spec.run is not None:
                tell_classes()
            packed, keep = _pack(spec)
        except (NotNative, UnknownLayout):
            return False
        fingerprint = _fingerprint()(*args, **(kwargs or {})) if args is not None else 0
        self._fingerprints[packed.data] = fingerprint
        old = self._dispatcher.specs
        if len(old) // 2 < self.limit and len(old) // 2 - self._indexed < MAX_SCANNED:
            self._dispatcher.specs = (packed, keep, *old)
        else:
            specs = (packed, keep, *self._kept())
            self._dispatcher.specs = (*specs, *self._index(specs[::2]))
        return True

    def _kept(self) -> tuple[Any, ...]:
        """The specialisations without the least recently used ones, if there are as many as the limit allows."""
        specs = self._dispatcher.specs
        specs = specs[: len(specs) // 2 * 2]
        if len(specs) // 2 < self.limit:
            return specs
        used = [ctypes.c_int64.from_address(t.data + offset_of(SpecRecord, "last_use")).value for t in specs[::2]]
        going = set(sorted(range(len(used)), key=used.__getitem__)[: max(1, self.limit // 8)])
        return tuple([x for i, x in enumerate(specs) if i // 2 not in going])

    def _index(self, tables: tuple[Any, ...]) -> tuple[Any, ...]:
        """A table of all specialisations, the first of which is the latest, by their fingerprints; none where they are few, or some have none."""
        known = self._fingerprints = {t.data: self._fingerprints.get(t.data, 0) for t in tables}
        self._indexed = 0
        if len(tables) <= MAX_SCANNED or not all(known.values()):
            return ()
        mask = (1 << (2 * len(tables) - 1).bit_length()) - 1
        fingerprints, addresses = [0] * (mask + 1), [0] * (mask + 1)
        for address, number in known.items():
            place = number & mask
            while fingerprints[place]:
                place = (place + 1) & mask
            fingerprints[place], addresses[place] = number, address
        self._indexed = len(tables)
        return (table(IndexRecord, {"count": len(tables), "mask": mask}, {"fingerprints": fingerprints, "specs": addresses}),)

    def clear(self) -> None:
        """Forgets all specialisations; calls in flight finish."""
        self._dispatcher.specs = ()
        self._fingerprints, self._indexed = {}, 0


def block_until_ready(fallback: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A builtin function that gives a realised Tensor back at once, and calls ``fallback(x)`` for anything else."""
    if why_not_native() is not None:
        return fallback
    doc = f"block_until_ready(value)\n--\n\n{inspect.getdoc(fallback)}"
    return _prepared().builtin("hg_block_until_ready", "block_until_ready", METH_O, fallback, doc)
