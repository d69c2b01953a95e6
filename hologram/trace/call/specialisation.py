"""A compiled program for one signature, and running it on the leaves of a call."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from hologram.backends.device.storage import DeviceStorage
from hologram.backends.residence import home
from hologram.errors import IntegerRangeError
from hologram.ir.graph import Graph
from hologram.settings import settings
from hologram.support.lru_cache import Recent
from hologram.support.user_lines import located
from hologram.trace import compiling, tree
from hologram.trace.call import cache_misses
from hologram.trace.call.signature import SCALAR_TYPES, Call
from hologram.trace.call.trace_call import Traced
from hologram.trace.convert import of_storage
from hologram.trace.diagnostics.nonfinite import check_results
from hologram.trace.lazy import realise
from hologram.trace.operators import pinned
from hologram.trace.tensor import Tensor

SPECIALISATION_LIMIT = 256  # signatures kept compiled for one function
VARIANT_LIMIT = 16  # programs with symbols for one signature, which differ in what they take for granted
NATIVE_LIMIT = 1024  # signatures, and sizes of symbolic ones, that native code knows of one function


class Specialisation:
    """The compiled form of one signature. ``seconds`` is what tracing and compiling took."""

    __slots__ = ("executable", "out_tree", "assumptions", "decisions", "donated", "graph", "record", "seconds", "_forms")

    def __init__(
        self, executable: compiling.Executable, traced: Traced, donated: list[int], record: cache_misses.Record, seconds: float = 0.0
    ) -> None:
        self.executable, self.donated, self.record, self.seconds = executable, donated, record, seconds
        self.out_tree, self.assumptions, self.decisions = traced.out_tree, traced.assumptions, traced.decisions
        self.graph = traced.graph if settings.nans and not traced.graph.symbols() else None  # where results are looked at
        self._forms = Recent(NATIVE_LIMIT)  # types of leaves, and sizes, of earlier calls by Python: how many there were

    def is_new(self, call: Call) -> bool:
        """Whether native code should now learn of calls like this one: the first, or the second where sizes vary and each costs a specialisation."""
        form = (*[_form(x) for x in call.leaves], *call.sizes.values())
        before = self._forms.get(form) or 0
        self._forms.put(form, before + 1)
        return before == (1 if call.sizes else 0)

    def run(self, leaves: Sequence[Any]) -> Any:
        """The results for the dynamic leaves of a call."""
        results = self.tensors(leaves)
        return results[0] if self.out_tree is tree.LEAF else tree.unflatten(self.out_tree, results)

    def tensors(self, leaves: Sequence[Any]) -> list[Tensor]:
        """The leaves of the results, for the dynamic leaves of a call."""
        inputs = [_storage_of(x) for x in leaves]
        outputs = compiling.run(self.executable, inputs)
        if self.graph is not None:
            check_results(self.graph.name, lambda: cast("Graph", self.graph), inputs, outputs)
        del inputs
        results = [of_storage(s) for s in outputs[: self.out_tree.leaves]]  # without the token of effects
        for t in results:
            if t._storage.owner is not None:
                _copied(t, leaves)
        del outputs  # whose references a donation would count
        for i in self.donated:
            donate(leaves[i])
        return results


def _copied(t: Tensor, leaves: Sequence[Any]) -> None:
    """Gives memory of its own to a result that is a borrowed argument, and to that argument: native code can serve the next call."""
    borrowed, own = t._storage, pinned(t)
    for x in leaves:
        if type(x) is Tensor and x._storage is borrowed:
            x._storage = own


def _storage_of(x: Any) -> Any:
    """The storage of a leaf for the length of a call: arrays are borrowed."""
    if type(x) is Tensor:
        if x._storage is None:
            realise(x)
        return x._storage
    from hologram.backends.native import storage

    if isinstance(x, np.ndarray):
        return storage.borrow(x) if storage.borrowable(x) else storage.copy_of(x)
    if isinstance(x, np.generic):
        return storage.copy_of(np.asarray(x))
    try:
        return storage.copy_of(np.asarray(x, SCALAR_TYPES[type(x)].np))
    except OverflowError:
        raise located(IntegerRangeError(f"the Python integer {x} does not fit int64")) from None


def _form(x: Any) -> Any:
    """What native code tells apart, beside types and shapes: a leaf's class, and whose memory a Tensor of a device is in."""
    return x._storage.memory.pool if type(x) is Tensor and type(x._storage) is DeviceStorage else type(x)


def home_of(leaves: list[Any]) -> str | None:
    """The device that the Tensors among ``leaves`` are on; None where they are the host's. Raises DeviceError for those of two devices."""
    return home(x._storage for x in realised_leaves(leaves))


def realised_leaves(leaves: list[Any]) -> list[Tensor]:
    """The Tensors among ``leaves``, with their values."""
    found = [x for x in leaves if type(x) is Tensor]
    for x in found:
        if x._storage is None:
            realise(x)
    return found


def donate(x: Any) -> None:
    """Gives up a donated Tensor's buffer, unless something else reads it."""
    if type(x) is not Tensor or x._storage is None:
        return
    x._node = None
    if sys.getrefcount(x._storage) <= 2 and x._storage.exports == 0:  # the Tensor's own reference, and getrefcount's argument
        x._storage = None
