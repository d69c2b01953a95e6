"""Realising pending Tensors: one structural key, one cached executable, one run.

The key of an expression numbers its nodes in the order of a walk from the roots, so two expressions of one structure over
values of the same types share an executable, whatever Tensors they were recorded on. Python scalars are part of the key by
value, until one structure has come with several: from then on its float scalars are arguments.

A pending node below the roots is computed without being kept: it stays pending for whoever holds its Tensor. The second
realisation that meets it keeps it, so nothing is computed more than twice, and a loop that reads one value in each turn does
not pile up the turns before.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from hologram.backends.device.storage import DeviceStorage
from hologram.backends.residence import home
from hologram.errors import DeviceError, OutOfMemory, TracedValueError
from hologram.ir.aval import aval
from hologram.ir.graph import Graph
from hologram.ir.leaves import const, input_, leaf
from hologram.ir.node import Builder, Node, const_value
from hologram.ir.op import MULTI_RESULT
from hologram.ir.traversal import topological
from hologram.primitives.markers import example, place
from hologram.settings import settings
from hologram.support import forks
from hologram.support.lru_cache import Recent
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.compiling import compile_once, run
from hologram.trace.host_movement import HostMovement, Spent, is_run, is_view, value_of, view_of
from hologram.trace.lazy_donation import donations
from hologram.trace.operators import is_wide, settled
from hologram.trace.recorder import Pending, levels_under_way, results_of, storage_module
from hologram.trace.tensor import Tensor

PROGRAM_LIMIT = 1024
MAX_COPIED_BYTES = 1 << 20  # of a view not in C order that NumPy copies though a kernel may be faster
_SCALARS_SEEN = 4  # structures that came with so many sets of scalars take them as arguments

_NO_VALUE = "a value was read that stands for every example of a vmap: keep to hologram.numpy functions inside, such as hnp.where"

_lock = threading.RLock()  # a walk, and what is made of it, sees no node that settles
_programs = Recent(PROGRAM_LIMIT)
_spent = Spent(PROGRAM_LIMIT)
_lifted = Recent(PROGRAM_LIMIT)  # by the key without its scalars: how often, or the executable


@forks.in_child
def _after_fork() -> None:
    """The child may have been made while another thread, which it lacks, held the lock."""
    global _lock
    _lock = threading.RLock()


class _Walk:
    """The nodes that ``roots`` need, numbered; the key; the storages of the leaves, and the device that they are on; and what to keep beside the
    roots."""

    __slots__ = ("roots", "key", "order", "storages", "device")

    def __init__(self, roots: list[Any]) -> None:
        number: dict[Node, int] = {}
        order: list[Any] = []
        for root in roots:
            if root not in number:
                number[root] = len(order)
                order.append(root)
        asked = len(order)
        key: list[Any] = [asked, settings.code]
        storages: list[Any] = []
        remote = False
        keep: dict[Node, None] = {}
        total = asked
        numbered, add, discover = number.get, key.append, order.append
        for node in order:  # which grows while it is walked
            op = node.op
            add(op)
            if op is leaf:
                storage = node.attrs[0]
                storages.append(storage)
                add(storage.aval)
                if type(storage) is DeviceStorage:
                    remote = True
                continue
            if node.attrs and (op.kind != "mark" or op is place):
                add(node.attrs)
                if op.kind in MULTI_RESULT:  # what it gives is computed together
                    for x in results_of(node):
                        keep[x] = None
                        if x not in number:
                            number[x] = total
                            total += 1
                            discover(x)
            for x in node.inputs:
                i = numbered(x)
                if i is None:
                    i = number[x] = total
                    total += 1
                    discover(x)
                add(i)
                if x.seen and x.inputs and x.op.kind not in ("movement", *MULTI_RESULT) and (not node.seen or op.kind == "movement"):
                    keep[x] = None
        roots = list(order[:asked])
        for x in keep:
            if number[x] >= asked:
                roots.append(x)
                key.append(number[x])
        self.device = home(storages) if remote else None
        if remote:
            add(self.device)
        self.roots, self.order, self.storages = roots, order, storages
        self.key = tuple(key)

    def without_scalars(self) -> tuple[Any, list[np.ndarray]]:
        """The key with float constants reduced to their types, and these constants."""
        scalars = [x for x in self.order if _is_liftable(x)]
        bits = {x.attrs for x in scalars}
        return tuple(k[0] if type(k) is tuple and k in bits else k for k in self.key), [np.asarray(const_value(x)) for x in scalars]

    def graph(self, lift: bool) -> Graph:
        """The graph whose inputs are the leaves and, where ``lift``, the float constants."""
        build = Builder()
        made: dict[Node, Node] = {}
        sources = [x for x in self.order if x.op is leaf] + [x for x in self.order if lift and _is_liftable(x)]
        for i, x in enumerate(sources):
            made[x] = build(input_, (), (i, x.shape, x.dtype.name, None))
        for x in topological(self.roots, stop=lambda n: n in made):
            if x.op is example:
                raise located(TracedValueError(_NO_VALUE))
            if x not in made:
                made[x] = build.like(x, tuple(made[i] for i in x.inputs))
        return Graph([made[x] for x in sources], [made[x] for x in self.roots])


def _is_liftable(node: Node) -> bool:
    return node.op is const and node.dtype.kind in "fc"


def realise(*tensors: Tensor) -> None:
    """Computes pending Tensors together; realised ones cost nothing. Raises LeakedTracerError for traced ones."""
    waiting: list[Tensor] = []
    for t in tensors:
        if t._storage is None:
            if type(t._node) is not Pending:
                settled(t)  # raises
            if not _adopt(t):
                waiting.append(t)
    if not waiting or (len(waiting) == 1 and _settled_by_numpy(waiting[0])):
        return
    with _lock:
        walk = _Walk([t._node for t in waiting])
        executable = _programs.get(walk.key) or _moved_by_numpy(walk)
        miss = _Miss(walk) if executable is None else None
        if miss is not None:
            executable = miss.executable
        donated = {} if executable is None or levels_under_way() else donations(executable, walk.order, walk.roots, walk.storages)
        inputs = walk.storages if miss is None else walk.storages + miss.scalars
        if donated:  # while no other thread can meet a node whose old operand is gone
            made = _settle(walk, run(executable, inputs, donated))
    if not donated:
        if executable is None:
            assert miss is not None
            executable = miss.compiled()
        results = run(executable, inputs)
        with _lock:
            made = _settle(walk, results)
    for t in waiting:
        if not _adopt(t):
            t._storage = made[t._node]


def _moved_by_numpy(walk: _Walk) -> Any:
    """What runs ``walk`` without being compiled; None where a kernel is needed, or worth it."""
    if walk.device is not None or not all(map(is_run, walk.order)) or not _spent.allows(walk.key, walk.order):
        return None
    return HostMovement(walk.order, walk.roots)


def _settled_by_numpy(t: Tensor) -> bool:
    """Realises what NumPy sooner makes than a program is called: a view of a realised Tensor, and the like; whether it did."""
    node: Any = t._node
    if t._weak or not is_run(node):
        return False
    with _lock:
        array = value_of(node) if (view := view_of(node)) is None else view
        if array is None or node.op is leaf or (array.nbytes > MAX_COPIED_BYTES and not array.flags.c_contiguous):
            return False
    made = storage_module().copied(aval(node.dtype, node.shape), array)  # of memory that is not donated while the array refers to it
    with _lock:
        if node.op is not leaf and node.op is not const:
            node.settle(made)
    if t._node is node and not _adopt(t):
        t._storage = made
    return t._storage is not None  # None where another thread has assigned to its elements meanwhile


def shown(t: Tensor) -> np.ndarray | None:
    """The elements of a Tensor that is a view of a realised one on the host, or that itself, as a read-only array; None for others, and for weak
    ones, whose type is not their node's."""
    node: Any = t._node
    if type(node) is not Pending or t._weak or not is_view(node):
        return None
    with _lock:
        return view_of(node)


def _settle(walk: _Walk, results: list[Any]) -> dict[Any, Any]:
    """Gives the nodes of ``walk`` that were computed their values; these, by node."""
    for node in walk.order:
        node.seen = True
    made = dict(zip(walk.roots, results, strict=True))
    for node, storage in made.items():
        if node.op is not leaf and node.op is not const:  # a constant is shared by all that is recorded
            node.settle(storage)
    return made


def _adopt(t: Tensor) -> bool:
    """Takes the value of a node that has been realised through another Tensor or expression. A wide Tensor leaves it there."""
    node = t._node
    if node is None or node.op is not leaf:
        return t._storage is not None or (node is not None and node.op is const and is_wide(t))
    if not is_wide(t):
        t._storage = node.attrs[0]
    return True


class _Miss:
    """An expression whose key by value has no program: the ``executable`` that takes its ``scalars``; or, for want of one, its ``graph``, taken while
    no node can settle, to be compiled when others may go on."""

    __slots__ = ("cache", "key", "graph", "scalars", "executable", "device")

    def __init__(self, walk: _Walk) -> None:
        self.cache, self.key, self.scalars, self.device = _programs, walk.key, [], walk.device
        loose, scalars = walk.without_scalars()
        found: Any = (_lifted.get(loose) or 0) if scalars else 0
        lift = type(found) is not int or found >= _SCALARS_SEEN
        if lift:
            self.cache, self.key, self.scalars = _lifted, loose, [storage_module().copy_of(s) for s in scalars]
        elif scalars:
            _lifted.put(loose, found + 1)
        self.executable = None if type(found) is int else found
        self.graph = walk.graph(lift) if self.executable is None else None

    def compiled(self) -> Any:
        graph = self.graph
        assert graph is not None
        executable = compile_once((self.cache is _lifted, self.key), lambda: graph, device=self.device)
        self.cache.put(self.key, executable)
        return executable


def evaluate(*trees: Any) -> None:
    """Computes every Tensor in the pytrees ``trees`` now, in one call where they share work. Returns None.

    >>> x = hnp.ones(3)
    >>> y = x * 2
    >>> hg.eval(x, y)
    """
    if len(trees) == 1 and type(trees[0]) is Tensor:
        realise(trees[0])
    else:
        realise(*[x for t in trees for x in tree.leaves(t) if type(x) is Tensor])


def block_until_ready(value: Any) -> Any:
    """Gives ``value``, a pytree, back once every Tensor in it is computed.

    Raises DeviceError or OutOfMemory where a device that computes it failed.

    >>> hg.block_until_ready(hnp.ones(2) + 1)
    Tensor([2., 2.], dtype=float32)
    """
    if not _is_ready(value):
        evaluate(value)
        for x in (value,) if type(value) is Tensor else tree.leaves(value):
            if type(x) is Tensor and type(x._storage) is DeviceStorage:
                _waited(x._storage)
    return value


def _waited(storage: DeviceStorage) -> None:
    try:
        storage.wait()
    except (DeviceError, OutOfMemory) as e:
        raise located(e) from None


def _is_ready(value: Any) -> bool:
    """Whether no Tensor in ``value`` is pending, or on a device; of containers other than the plain ones it is not known."""
    kind = type(value)
    if kind is Tensor:
        return value._storage is not None and type(value._storage) is not DeviceStorage
    if kind is dict:
        value = value.values()
    elif kind is not tuple and kind is not list:
        return value is None
    for x in value:
        if type(x) is Tensor:
            if x._storage is None or type(x._storage) is DeviceStorage:
                return False
        elif not _is_ready(x):
            return False
    return True


def clear() -> None:
    """Forgets compiled expressions."""
    _programs.clear()
    _lifted.clear()
    _spent.clear()
