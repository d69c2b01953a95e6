"""Locks that no other thread holds at the moment of a ``fork``: in the child nobody would release them. And what the child makes anew."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

IMPORTS, READERS, DEVICES, RUNTIME, EMITTING, MACHINES, LLVM, INNERMOST = range(8)  # who holds one of these takes only later ones

_guarded: list[tuple[int, Any]] = []
_held: list[Any] = []


def guard(rank: int, lock: Any) -> Any:
    """``lock``, for which ``fork`` waits from now on."""
    _guarded.append((rank, lock))
    return lock


def in_child(renew: Callable[[], None]) -> Callable[[], None]:
    """A function that the child of every ``fork`` runs first: for what another thread, which it lacks, may have left half done."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)
    return renew


def _locks() -> list[Any]:
    """Outer ones first. llvmlite holds its own during every call of LLVM; finalisers of its objects take it in any thread at any time."""
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    of_llvm = getattr(getattr(library, "_lock", None), "_lock", None)
    ranked = [*_guarded, *([(LLVM, of_llvm)] if of_llvm is not None else [])]
    return [lock for _, lock in sorted(ranked, key=lambda entry: entry[0])]


def _acquire() -> None:
    locks = _locks()
    for lock in locks:
        lock.acquire()
    _held[:] = locks  # only now, when any other thread that forked has released its own


def _release() -> None:
    for lock in _held[::-1]:
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)
