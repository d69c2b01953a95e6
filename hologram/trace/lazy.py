"""Realising pending Tensors: one structural key, one cached executable, one run.

The key of an expression numbers its nodes in the order of a walk from the roots, so two expressions of one structure over
values of the same types share an executable, whatever Tensors they were recorded on. Python's floats are arguments. Integers and
sizes are part of the key by value; those that change are operands of a further program (:mod:`hologram.trace.lazy_programs.numbers`).

A pending node below the roots is computed without being kept: it stays pending for whoever holds its Tensor. The second
realisation that meets it keeps it, so nothing is computed more than twice, and a loop that reads one value in each turn does
not pile up the turns before. Of a product that a sum takes unrounded the factors are kept instead: the sum has the same bits each time.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hologram.backends.device.storage import DeviceStorage
from hologram.backends.residence import home
from hologram.errors import DeviceError, OutOfMemory, TracedValueError
from hologram.ir.aval import aval
from hologram.ir.graph import Graph
from hologram.ir.leaves import const, input_, leaf
from hologram.ir.node import Builder, Node
from hologram.ir.op import MULTI_RESULT, Op
from hologram.ir.traversal import topological
from hologram.primitives.markers import example, place
from hologram.primitives.reductions import reduce_sum
from hologram.primitives.scalar.elementwise import add, mul, neg, sub
from hologram.settings import settings
from hologram.support import forks
from hologram.support.user_lines import at_line, located
from hologram.trace import recorder, tree
from hologram.trace.compiling import compile_once, out_of_memory, run
from hologram.trace.diagnostics.nonfinite import check_results
from hologram.trace.host_movement import HostMovement, Spent, is_run, is_view, value_of, view_of
from hologram.trace.lazy_programs import joins, known, numbers
from hologram.trace.lazy_programs.cache import PROGRAM_LIMIT, keep
from hologram.trace.lazy_programs.cache import programs as _programs
from hologram.trace.lazy_programs.donation import LOST_ATTRS, donations
from hologram.trace.lazy_programs.immediate import Immediate, at_once, immediate
from hologram.trace.lazy_programs.numbers import Found, Generalised, Structure, structure_of
from hologram.trace.lazy_programs.structure import MAX_DEVICE_SCALARS, MAX_SCALARS, form, scalar_operand
from hologram.trace.operators import is_wide, settled
from hologram.trace.recorder import Pending, levels_under_way, remember, results_of, storage_module
from hologram.trace.tensor import Tensor

MOVED_PER_WALK = 4  # values that NumPy moves, of which one is walked, if it is like one before
MAX_COPIED_BYTES = 1 << 20  # of a view not in C order that NumPy copies though a kernel may be faster

_SUMS = frozenset((add, sub, neg, reduce_sum))  # and what they look through

_VALUES = frozenset((type(None), bool, int, float, complex, str, np.ndarray))  # which hold no Tensor

_NO_VALUE = "a value was read that stands for every example of a vmap: keep to hologram.numpy functions inside, such as hnp.where"

_lock = threading.RLock()  # a walk, and what is made of it, sees no node that settles
_spent = Spent(PROGRAM_LIMIT)
_moved = 0  # values that NumPy moved, about
_looked_at: dict[Any, None] = {}  # about what they were made of, of some of them


@forks.in_child
def _after_fork() -> None:
    """The child may have been made while another thread, which it lacks, held the lock."""
    global _lock
    _lock = threading.RLock()


class _Walk:
    """The nodes that ``roots`` need, numbered; the key, which is their structure and its numbers; the storages of the leaves, and the device that
    they are on; the constants that are arguments, ``most`` at most, and their storages; and what to keep beside the roots."""

    __slots__ = ("roots", "key", "structure", "numbers", "order", "storages", "scalar_nodes", "scalars", "device")

    def __init__(self, roots: list[Any], most: int = MAX_SCALARS) -> None:
        number: dict[Node, int] = {}
        order: list[Any] = []
        for root in roots:
            if root not in number:
                number[root] = len(order)
                order.append(root)
        asked = len(order)
        key: list[Any] = [asked, settings.code]
        numbers: list[Any] = []
        storages: list[Any] = []
        scalar_nodes: list[Any] = []
        scalars: list[Any] = []
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
                of = storage.aval
                add(of.kind)
                numbers += of.shape
                if type(storage) is DeviceStorage:
                    remote = True
                continue
            if op is const and number[node] >= asked and len(scalars) < most:
                scalar = scalar_operand(node.attrs)
                if scalar is not None:
                    add(node.attrs[0])
                    scalar_nodes.append(node)
                    scalars.append(scalar)
                    continue
            if node.attrs and (op.kind != "mark" or op is place):
                rest, own = form(op, node.attrs)
                add(rest)
                if own:
                    numbers += own
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
                if x.seen and x.inputs and (not node.seen or op.kind == "movement" or (op is mul and node not in keep)) and _is_kept(x, op):
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
        self.scalar_nodes, self.scalars = scalar_nodes, scalars
        self.numbers = tuple(numbers)
        self.structure = structure_of(tuple(key), order)
        self.key = self.structure, self.numbers

    def graph(self) -> Graph:
        """The graph whose inputs are the leaves and the constants that are arguments."""
        build = Builder()
        made: dict[Node, Node] = {}
        sources = [x for x in self.order if x.op is leaf] + self.scalar_nodes
        for i, x in enumerate(sources):
            made[x] = build(input_, (), (i, x.shape, x.dtype.name, None))
        for x in topological(self.roots, stop=made.__contains__):
            if x.op is example:
                raise located(TracedValueError(_NO_VALUE))
            if x not in made:
                made[x] = build.with_inputs(x, tuple([made[i] for i in x.inputs]))
        lines: Mapping[Node, Any] = recorder.pending_lines or {}
        places = {made[x]: lines[x] for x in made if x in lines} if lines else None
        return Graph([made[x] for x in sources], [made[x] for x in self.roots], places, order=list(dict.fromkeys(made.values())))


def _walk(roots: list[Any]) -> _Walk:
    walk = _Walk(roots)
    return _Walk(roots, MAX_DEVICE_SCALARS) if walk.device is not None and len(walk.scalars) > MAX_DEVICE_SCALARS else walk


def is_storable(x: Node) -> bool:
    """Whether ``x`` has a value that is worth memory: what moves one other has not, nor what has several results."""
    return (x.op.kind != "movement" or len(x.inputs) != 1) and x.op.kind not in MULTI_RESULT


def _is_kept(x: Node, reader: Op) -> bool:
    """Whether the value of ``x`` is kept when ``reader`` needs it once more: not that of a product that a sum takes unrounded."""
    return is_storable(x) and (x.op is not mul or not (reader in _SUMS or reader.kind == "movement"))


def realise(*tensors: Tensor) -> None:
    """Computes pending Tensors together; realised ones cost nothing. Raises LeakedTracerError for traced ones."""
    if _realised_natively(tensors):
        return
    waiting: list[Tensor] = []
    for t in tensors:
        if t._storage is None:
            if type(t._node) is not Pending:
                settled(t)  # raises
            if not _adopt(t):
                waiting.append(t)
    if not waiting or (len(waiting) == 1 and not _is_walks_turn(waiting[0]._node) and _settled_by_numpy(waiting[0])):
        return
    if len(waiting) == 1 and joins.is_long(waiting[0]._node) and _realised_by_parts(waiting[0]):
        return
    with _lock:
        nodes = [t._node for t in waiting]
        walk = _walk(nodes)
        call = _call(walk)
        if type(call) is Found and not any([t._weak for t in waiting]) and _handed_over(walk, call, len(set(nodes))) and _realised_natively(waiting):
            return
        donated = (
            {}
            if call.executable is None or levels_under_way() or settings.nans
            else donations(call.executable, walk.order, walk.roots, walk.storages)
        )
        if donated:  # while no other thread can meet a node whose old operand is gone
            assert isinstance(call, Found)
            made = _settle(walk, _run_in_place(walk, call, donated))
    if not donated:
        is_new = isinstance(call, _Missing)
        if isinstance(call, _Missing):
            call = call.compiled()
        results = run(call.executable, walk.storages + walk.scalars + call.operands, None, call.sizes)
        if settings.nans:
            check_results(f"expression{at_line()}", walk.graph, walk.storages + walk.scalars, results)
        with _lock:
            if is_new and type(call.executable) is Immediate:
                _at_once(walk)  # for what native code learns, now that there are kernels
            made = _settle(walk, results)
    assigned = []  # another thread has assigned to elements of these meanwhile
    for t, node in zip(waiting, nodes, strict=True):
        if t._node is not node:
            assigned.append(t)
        elif not _adopt(t):
            t._storage = made[node]
    if assigned:
        realise(*assigned)


def _handed_over(walk: _Walk, call: Found, asked: int) -> bool:
    """Counts a run of a program for the first ``asked`` roots; whether native code has got it, and may run it at once."""
    if call.token is not None:
        return known.hand_over_structure(walk, asked, call)
    return known.hand_over(walk, asked, call.executable)


def _is_walks_turn(node: Any) -> bool:
    """Whether a value that NumPy moves is to be walked all the same, so that native code gets to know what comes again."""
    global _moved
    _moved += 1
    if _moved % MOVED_PER_WALK or node.op is const:
        return False
    key = node.op, node.attrs, node.shape, *[x.shape if x.op is leaf else (x.op, x.attrs) for x in node.inputs]
    if key in _looked_at:
        return True
    remember(_looked_at, key, None)
    return False


def _realised_natively(tensors: Sequence[Tensor]) -> bool:
    """Realises Tensors whose expression native code knows; whether it did. Raises OutOfMemory, with the user's line."""
    try:
        with _lock:
            return known.realise_known(tensors)
    except MemoryError as e:
        raise out_of_memory(e) from None


def _call(walk: _Walk) -> Found | _Missing:
    """The program of ``walk``, and what it takes beside leaves and floats; or what is to be compiled."""
    executable = _programs.get(walk.key) or (_moved_by_numpy(walk) if walk.structure.moves else None)
    if executable is not None and (type(executable) is not Immediate or executable.structure.left > 0):
        return Found(executable, [], None, None)
    found = numbers.look_up(walk)
    if type(found) is Structure and (made := _at_once(walk)) is not None:
        keep(walk.key, made)
        return Found(made, [], None, None)
    return found if isinstance(found, Found) else _Missing(walk, found)


def _at_once(walk: _Walk) -> Immediate | None:
    """The program of a small walk that is made in one pass; None where there is none. Native code gets to know its ops."""
    if sum([x.op is leaf for x in walk.order]) != len(walk.storages):
        return None  # a node has settled since the walk: native code would walk other nodes
    made = at_once(walk, walk.structure)
    if made is not None:
        known.learn(walk, made)
    return made


def _run_in_place(walk: _Walk, call: Found, donated: dict[int, int]) -> list[Any]:
    """The results of a program that changes arguments in place. An interrupt may come when they have changed and the results are not yet noted: so
    nothing reads them from here on, rather than changes them twice."""
    storages = [walk.storages[d] for d in donated.values()]
    changing: list[tuple[Any, Any]] = []
    for node in walk.order:
        if node.op is leaf and (attrs := node.attrs)[0] in storages:
            changing.append((node, attrs))
            node.attrs = LOST_ATTRS
    try:
        return run(call.executable, walk.storages + walk.scalars + call.operands, donated)
    except OutOfMemory:  # before anything has changed
        for node, attrs in changing:
            node.attrs = attrs
        raise


def _moved_by_numpy(walk: _Walk) -> Any:
    """What runs ``walk``, which moves elements, without being compiled; None where a kernel is worth it."""
    if walk.device is not None:
        return None
    comes_again = _spent.has_run(walk.key)
    if not _spent.allows(walk.key, walk.order):
        return None
    return HostMovement(walk.order, walk.roots, _spent if comes_again else None)


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


def _realised_by_parts(t: Tensor) -> bool:
    """Realises a join of many values that has no program: first these, each by itself, then NumPy joins them. Whether it did."""
    node: Any = t._node
    if t._weak or settings.nans or levels_under_way():
        return False
    with _lock:
        walk = _walk([node])
        if _programs.get(walk.key) is not None or walk.structure.find(walk.numbers) is not None:
            return False
        parts = joins.parts(walk)
        instead = {x: joins.copy_of(x) for x in parts if joins.stays_pending(x)}
        join = tensor_of(joins.joined(node, instead) if instead else node)
    if not parts:
        return False
    for x in parts:
        realise(tensor_of(instead.get(x, x)))
    realise(join)
    with _lock:
        if node.op is not leaf:
            node.settle(join._storage)
    if t._node is node and not _adopt(t):
        t._storage = join._storage
    return t._storage is not None  # None where another thread has assigned to its elements meanwhile


def tensor_of(node: Any) -> Tensor:
    """A Tensor of a pending node."""
    t = Tensor.__new__(Tensor)
    t._node, t._storage, t._weak = node, None, False
    return t


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


class _Missing:
    """An expression that has no program: the graphs to compile, taken while no node can settle, when others may go on. ``found`` is what
    :func:`numbers.look_up` says."""

    __slots__ = ("key", "device", "found", "graph", "nodes")
    executable = None  # there is none yet

    def __init__(self, walk: _Walk, found: Generalised | Structure | None) -> None:
        self.key, self.device, self.found, self.graph, self.nodes = walk.key, walk.device, found, walk.graph(), len(walk.order)

    def compiled(self) -> Found:
        """The program: one that takes numbers as operands, one that runs op by op, or one by value."""
        structure: Any = self.found
        if type(self.found) is Generalised:
            general = self.found.compiled(self.device)
            if general is not None:
                return general
            structure = self.found.structure if self.found.is_op_by_op else None
        made: Any = immediate(self.graph, structure, self.nodes) if type(structure) is Structure else None
        if made is None:
            self.graph.name = f"expression{at_line()}"
            made = compile_once(("lazy", self.key), lambda: self.graph, device=self.device)
        keep(self.key, made)
        return Found(made, [], None, None)


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
    if type(value) is Tensor and value._storage is None:
        realise(value)
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
        return kind in _VALUES
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
    known.clear()
    joins.clear()
    _spent.clear()
    _looked_at.clear()
    numbers.clear()
