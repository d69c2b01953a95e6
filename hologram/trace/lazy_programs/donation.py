"""Memory that lazily recorded programs may reuse: that of realised values which nobody but the program holds any more.

After ``x = x.at[i].set(v)`` the old value of ``x`` is wanted by the pending update alone, so the update changes it where it is. Who holds a value is
what CPython counts: the references to its storage, and to the pending nodes on the way from it to what is realised, are all the program's own.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Sequence
from typing import Any

from hologram.errors import DonatedBufferError
from hologram.ir.aval import Aval
from hologram.ir.leaves import leaf
from hologram.ir.node import Node
from hologram.support.user_lines import located
from hologram.trace.recorder import Pending, storage_module

MIN_DONATED_BYTES = 1 << 14  # a smaller array is copied sooner than its references are counted
MAX_NODES = 64  # of a program whose references are counted
_COUNTED = not sysconfig.get_config_var("Py_GIL_DISABLED")  # without the GIL counts are not exact


class _Lost:
    """Stands for a storage that a program was changing when an interrupt came."""

    @property
    def aval(self) -> Aval:
        raise located(DonatedBufferError("this Tensor's value is lost: an update in place was interrupted; compute it anew"))

    def __getattr__(self, name: str) -> Any:
        return self.aval


LOST_ATTRS = (_Lost(),)  # of a leaf


def _references(of: Sequence[Any], i: int) -> int:
    return sys.getrefcount(of[i])


_OF_LIST = _references([object()], 0)  # of an object that a list alone holds


def donations(executable: Any, order: Sequence[Pending], roots: Sequence[Node], storages: Sequence[Any]) -> dict[int, int]:
    """For results of ``executable`` the argument whose memory they take.

    ``order`` are all nodes of a program, ``roots`` those that become values by it, ``storages`` those of its leaves in order, held by nothing else of
    the caller's than this sequence.
    """
    found: dict[int, int] = {}
    if not _COUNTED or len(order) > MAX_NODES:
        return found
    for i, of, donors in executable.reusable:
        if of.nbytes >= MIN_DONATED_BYTES:
            for d in donors:
                if d < len(storages) and d not in found.values() and storages[d].aval is of and _is_given_up(d, order, roots, storages):
                    found[i] = d
                    break
    return found


def _is_given_up(which: int, order: Sequence[Pending], roots: Sequence[Node], storages: Sequence[Any]) -> bool:
    """Whether only the program holds the storage of its leaf number ``which``, and nothing that stays pending needs it."""
    if storages[which].owner is not None or storages[which].exports or type(storages[which]) is not storage_module().Storage:
        return False
    needed = [[k for k, n in enumerate(order) if n.op is leaf][which]]
    order[needed[0]].array = None  # which is remembered for readers, who have views of their own
    if _references(storages, which) != _OF_LIST + 1:  # that of the leaf's attributes
        return False
    for k in needed:  # which grows while it is walked
        uses = 0
        for user in range(len(order)):
            count = order[user].inputs.count(order[k])
            if count:
                uses += count
                if order[user] not in roots and user not in needed:
                    needed.append(user)
        if _references(order, k) != _OF_LIST + uses:
            return False
    return True
