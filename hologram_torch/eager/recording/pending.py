"""Pending values: recorded ops are computed in one native call for all live tensors, so that nothing is computed twice.

They are computed when a value is read, after an optimiser's step, and when much has been recorded that nobody reads: then at the next op that is the
one that the record began with. So a loop is cut after whole iterations, and its programs repeat.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import ref

import hologram as hg
from hologram.trace import recorder
from hologram.trace.lazy_programs import cuts

MAX_LOOP_RECORDED = 512  # what a loop may record before it is cut at the end of a turn; below the depth at which Hologram realises a chain
MAX_RECORDED = 2048  # what may be recorded in all

_notes: list[ref[Any]] = []  # of the storages that have been given values since everything was last computed
_expected: list[tuple[hg.Tensor, Exception]] = []  # what is to be true of the values computed next, and the error where it is not
_collected = threading.local()
_first: Any = None  # what tells the first op of the record from others

cuts.keepers.append(lambda: bool(_notes))


def note(impl: Any) -> None:
    """Notes that the storage ``impl`` has a new value, which may be pending."""
    if recorder.current() is not None:  # a template is being made
        return
    _notes.append(ref(impl))
    if len(_notes) >= MAX_RECORDED:
        synchronize()


def begin(key: Any) -> None:
    """Notes that the op of ``key`` is about to be recorded."""
    global _first
    if _first is None:
        _first = key
    elif len(_notes) >= MAX_LOOP_RECORDED and key == _first:
        synchronize()
        _first = key


def expect(condition: hg.Tensor, error: Exception) -> None:
    """Raises ``error`` when values are computed, unless ``condition``, a bool of shape (), is true then."""
    (_expected if recorder.current() is None else collected()).append((condition, error))


def collected() -> list[tuple[hg.Tensor, Exception]]:
    """The expectations of the template that this thread makes."""
    found: list[tuple[hg.Tensor, Exception]] = _collected.__dict__.setdefault("conditions", [])
    return found


def alive() -> list[Any]:
    """The noted storages that are still in use, each once, in the order of the notes."""
    return list(dict.fromkeys(impl for note in _notes if (impl := note()) is not None))


def synchronize() -> None:
    """Computes all live pending tensors of the device. Raises the errors of expectations that do not hold (:func:`expect`)."""
    global _first
    count, impls, expected = len(_notes), alive(), _expected[:]
    hg.eval([impl.value for impl in impls if impl.value._storage is None], [condition for condition, _ in expected])
    del _notes[:count], _expected[: len(expected)]  # other threads may have added more
    _first = None
    for condition, error in expected:
        if not condition:
            raise error
