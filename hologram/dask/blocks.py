"""The function of a blockwise layer of a Dask graph, compiled: one program for all blocks of a shape.

A layer's function is a small graph of tasks. Tasks that compute arrays from blocks are traced together. The others run as they are:
those that read data, draw random numbers, or are told which block they compute. So the graph is cut into stages; each stage of traced tasks is one
jitted function.

Invariant: a stage that is compiled gives what the tasks give without it: arrays of the same types, dtypes and shapes. Tensors give Tensors. NumPy
blocks give NumPy arrays; where Hologram's element types would differ from NumPy's, the stage is not compiled.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from graphlib import TopologicalSorter
from typing import Any, NamedTuple, TypeAlias

import cloudpickle
import numpy as np
from dask._task_spec import GraphNode

from hologram import dtypes
from hologram.dask.results import evaluated
from hologram.errors import DeviceError, OutOfMemory, UnsupportedError, UntracedWarning, is_defect
from hologram.support.lru_cache import Recent
from hologram.trace import tree
from hologram.trace.call.abstract_eval import eval_shape
from hologram.trace.call.jit import jit
from hologram.trace.tensor import Tensor

RESTORED_LIMIT = 256  # layers' functions that a process keeps by their pickles
_LIBRARIES = ("dask", "numpy", "_operator", "operator", "functools", "hologram")  # users can do nothing about functions of these
_RANDOM_ATTEMPTS = 3
_RANDOM_MODULES = ("random", "numpy.random", "dask.array.random")


class Layer(NamedTuple):
    """The function of a blockwise layer: its tasks, which of their inputs are the blocks, and which are constants."""

    tasks: Mapping[Hashable, GraphNode]
    inputs: tuple[Hashable, ...]  # one for each argument of the function
    opaque: frozenset[Hashable]  # inputs that say which block it is: these are not traced
    constants: Mapping[Hashable, Any]
    output: Hashable
    precision: str


class Kind(NamedTuple):
    """What tells which tasks can be traced: which arguments are arrays, and whether all of these are NumPy's."""

    arrays: tuple[bool, ...]
    is_numpy: bool


class CompiledLayer:
    """A :class:`Layer` as a function of blocks. Copies of it in one process are one object, however often it arrives there in a pickle."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self._stages: dict[Kind, list[Stage]] = {}
        self._plain: dict[Kind, set[Hashable]] = {}  # tasks that were found not to be traceable
        self._pickle: bytes | None = None
        self._lock = threading.RLock()

    def __call__(self, *blocks: Any) -> Any:
        layer = self.layer
        arrays = tuple(key not in layer.opaque and is_array(x) for key, x in zip(layer.inputs, blocks, strict=True))
        kind = Kind(arrays, is_numpy([x for x, found in zip(blocks, arrays, strict=True) if found]))
        values = {**layer.constants, **dict(zip(layer.inputs, blocks, strict=True))}
        while layer.output not in values:
            stages = self._stages.get(kind)
            try:
                if stages is None:
                    self._first_run(kind, values)
                for stage in stages or ():
                    stage.run(values)
            except Untraceable as e:
                self._leave_out(kind, e)
        return evaluated(values[layer.output])

    def _first_run(self, kind: Kind, values: dict[Hashable, Any]) -> None:
        """Plans the stages, by what the tasks give for the first block."""
        with self._lock:
            if kind not in self._stages:
                self._stages[kind] = plan(self.layer, kind, self._plain.setdefault(kind, set()), values)

    def _leave_out(self, kind: Kind, e: Untraceable) -> None:
        """Forgets the plan: the tasks that cannot be traced are not. Those of users are named in a warning, once."""
        with self._lock:
            new = [k for k in e.keys if k not in self._plain[kind]]
            self._plain[kind].update(new)
            self._stages.pop(kind, None)
        names = dict.fromkeys(name for name, owner in map(_function, (self.layer.tasks[k] for k in new)) if owner not in _LIBRARIES)
        if names:
            warnings.warn(f"hologram.dask runs {', '.join(names)} without compiling: {e}", UntracedWarning, stacklevel=3)

    def __repr__(self) -> str:
        return f"<compiled {' '.join(_function(task)[0] for task in self.layer.tasks.values())}>"

    def __reduce__(self) -> Any:
        if self._pickle is None:
            self._pickle = cloudpickle.dumps(tuple(self.layer))
            _restored.put(self._pickle, self)
        return _restore, (self._pickle,)

    def __dask_tokenize__(self) -> Any:
        return self.__reduce__()[1]


_restored = Recent(RESTORED_LIMIT)
_restoring = threading.Lock()


def _restore(pickled: bytes) -> CompiledLayer:
    with _restoring:
        found: CompiledLayer | None = _restored.get(pickled)
        if found is None:
            found = CompiledLayer(Layer(*cloudpickle.loads(pickled)))
            found._pickle = pickled
            _restored.put(pickled, found)
        return found


def is_array(x: Any) -> bool:
    """Whether a block can be an argument of a jitted function: an array, or the nested lists of them that contractions get."""
    if isinstance(x, list):
        return all(map(is_array, x)) and bool(x)
    if type(x) is Tensor:
        return True
    if type(x) is not np.ndarray and not isinstance(x, np.generic):
        return False
    try:
        dtypes.of(x.dtype)
    except TypeError:
        return False
    return x.dtype.isnative


def is_numpy(blocks: list[Any]) -> bool:
    """Whether none of the arrays in ``blocks`` is a Tensor."""
    return not any(type(x) is Tensor for x in tree.leaves(blocks))


Places: TypeAlias = "tuple[int | Places, ...]"  # of arrays, in the nested lists that blocks are

# --- stages ---------------------------------------------------------------------------------------------------------------------------------


class Untraceable(Exception):
    """Tasks of a stage cannot be compiled, and why."""

    def __init__(self, keys: Iterable[Hashable], why: str) -> None:
        super().__init__(why)
        self.keys = tuple(keys)


class Stage:
    """Tasks of a layer that run one after the other, as they are."""

    def __init__(self, layer: Layer, keys: Sequence[Hashable]) -> None:
        self.layer, self.keys = layer, keys

    def run(self, values: dict[Hashable, Any]) -> None:
        """Adds the tasks' results to ``values``. Raises Untraceable."""
        for key in self.keys:
            if key not in values:
                values[key] = self.layer.tasks[key](values)


class TracedStage(Stage):
    """Tasks that are traced together, and compiled for each shape of blocks. A block that comes in several places is one argument: of ``x.T @ x`` the
    compiler then knows that both factors are the same."""

    def __init__(self, layer: Layer, keys: Sequence[Hashable]) -> None:
        super().__init__(layer, keys)
        tasks, inside = layer.tasks, set(keys)
        read = dict.fromkeys(d for k in keys for d in sorted(tasks[k].dependencies, key=str) if d not in inside)
        self.inputs = [k for k in read if k not in layer.constants]
        needed = {d for k, task in tasks.items() if k not in inside for d in task.dependencies} | {layer.output}
        self.outputs = [k for k in keys if k in needed]
        self._compiled: dict[Places, Callable[..., list[Any]]] = {}
        self._compared: set[Any] = set()  # types of NumPy blocks for which all tasks give NumPy's element types

    def run(self, values: dict[Hashable, Any]) -> None:
        if all(k in values for k in self.outputs):
            return
        blocks = [values[k] for k in self.inputs]
        numpy = is_numpy(blocks)
        try:
            if numpy:
                self._compare(blocks)
            results = self._compute(blocks)
        except Exception as e:
            if isinstance(e, Untraceable):
                raise
            if is_defect(e) or isinstance(e, OutOfMemory) or (isinstance(e, DeviceError) and not isinstance(e, UnsupportedError)):
                raise
            raise Untraceable(self.keys, f"{type(e).__name__}: {e}") from e
        values.update(zip(self.outputs, tree.map(_as_numpy, results) if numpy else results, strict=True))

    def _compute(self, blocks: list[Any]) -> list[Any]:
        found: dict[int, tuple[int, Any]] = {}
        places = _places(blocks, found)
        compiled = self._compiled.get(places)
        if compiled is None:
            compiled = self._compiled.setdefault(places, jit(partial(self._traced_at, places), precision=self.layer.precision))
        return compiled(*[x for _, x in found.values()])

    def _traced_at(self, places: Places, *arrays: Any) -> list[Any]:
        return self._traced(self.outputs, *_at(places, arrays))

    def _traced(self, wanted: Sequence[Hashable], *blocks: Any) -> list[Any]:
        values = _Values({**self.layer.constants, **dict(zip(self.inputs, blocks, strict=True))})
        values.traced = {*self.inputs, *self.keys}
        for key in self.keys:
            try:
                values[key] = _without_randomness(self.layer.tasks[key], values)
            except _RandomNumbers:
                raise Untraceable([key], "it draws random numbers, which would be the same in each block") from None
            except Exception as e:
                raise Untraceable([key], f"{type(e).__name__}: {e}") from e
        return [values[k] for k in wanted]

    def _compare(self, blocks: list[Any]) -> None:
        """Raises Untraceable where a task gives another element type than NumPy does for blocks of these types."""
        types = tuple((x.dtype, x.ndim) for x in tree.leaves(blocks))
        if types in self._compared:
            return
        ours = eval_shape(partial(self._traced, self.keys), *blocks)
        try:
            theirs = self._by_numpy([tree.map(_empty, x) for x in blocks])
        except Exception:  # reductions of nothing: blocks of the same shape are wanted
            theirs = self._by_numpy([tree.map(np.ones_like, x) for x in blocks])
        for key, our, their in zip(self.keys, ours, theirs, strict=True):
            found, wanted = _element_types(our), _element_types(their)
            if found != wanted:
                raise Untraceable([key], f"of NumPy arrays it gives {wanted}, of Tensors {found}")
        self._compared.add(types)

    def _by_numpy(self, blocks: list[Any]) -> list[Any]:
        values = {**self.layer.constants, **dict(zip(self.inputs, blocks, strict=True))}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            super().run(values)
        return [values[k] for k in self.keys]


def _places(blocks: list[Any], found: dict[int, tuple[int, Any]]) -> Places:
    """Which of the arrays in ``found`` each of ``blocks`` is; those that are new are added to it, by their identity."""
    return tuple([_places(x, found) if isinstance(x, list) else found.setdefault(id(x), (len(found), x))[0] for x in blocks])


def _at(places: Places, arrays: Sequence[Any]) -> list[Any]:
    """What :func:`_places` numbered."""
    return [_at(p, arrays) if isinstance(p, tuple) else arrays[p] for p in places]


class _RandomNumbers(Exception):
    """A task draws numbers from NumPy's global generator."""


def _without_randomness(task: GraphNode, values: dict[Hashable, Any]) -> Any:
    """What ``task`` gives. Raises _RandomNumbers. Other threads draw numbers, too: a task that once leaves the generator as it was draws none."""
    for _ in range(_RANDOM_ATTEMPTS):
        before = _random_state()
        result = task(values)
        if before == _random_state():
            return result
    raise _RandomNumbers


def _random_state() -> Any:
    state: Any = np.random.get_state(legacy=True)
    return state[1].tobytes(), state[2:]


class _Values(dict[Hashable, Any]):
    """Values that tasks read. Each reads Tensors of its own: what it assigns to elements is not seen by others."""

    traced: set[Hashable]

    def __getitem__(self, key: Hashable) -> Any:
        found = super().__getitem__(key)
        return tree.map(_own, found) if key in self.traced else found


def _own(x: Any) -> Any:
    return copy(x) if type(x) is Tensor else x


def _empty(x: Any) -> Any:
    return np.empty((0,) * x.ndim, x.dtype) if x.ndim else np.ones((), x.dtype)


def _element_types(result: Any) -> list[str]:
    return [str(x.dtype) for x in tree.leaves(result) if hasattr(x, "dtype")]


def _as_numpy(x: Any) -> Any:
    return x.numpy() if x.shape else x.numpy()[()]


def _function(task: GraphNode) -> tuple[str, str]:
    """The name of the function that a task calls in the end, and of the library that it is of."""
    function: Any = getattr(task, "func", task)
    options = getattr(task, "kwargs", None) or {}
    while isinstance(function, partial) or callable(options.get("enforce_dtype_function")):
        function, options = (function.func, function.keywords) if isinstance(function, partial) else (options["enforce_dtype_function"], {})
    owner = getattr(function, "__module__", None) or type(function).__module__
    return str(getattr(function, "__name__", type(function).__name__)), owner.partition(".")[0]


def plan(layer: Layer, kind: Kind, plain: set[Hashable], values: dict[Hashable, Any]) -> list[Stage]:
    """The tasks of ``layer`` in stages, which are run: what a task that is not traced gives is known to be arrays once it has run.

    A traced task is in the stage of what it reads where it can be. Those in ``plain`` are not traced. Raises Untraceable.
    """
    tasks, constants, stages = layer.tasks, layer.constants.keys(), list[Stage]()
    arrays = {key for key, found in zip(layer.inputs, kind.arrays, strict=True) if found}
    ready = {*layer.inputs, *constants}
    waiting = list(TopologicalSorter({k: sorted(t.dependencies & tasks.keys(), key=str) for k, t in tasks.items()}).static_order())

    def can_trace(key: Hashable, together: Sequence[Hashable]) -> bool:
        read = tasks[key].dependencies - constants
        return bool(read) and key not in plain and read <= arrays.union(together) and _is_traceable(tasks[key], layer.constants)

    while waiting:
        as_they_are: list[Hashable] = []
        together: list[Hashable] = []
        for key in waiting:
            if tasks[key].dependencies <= ready and not can_trace(key, ()):
                as_they_are.append(key)
                ready.add(key)
                Stage(layer, [key]).run(values)
                arrays.update([key] if is_array(values[key]) else ())
        for key in waiting:
            if key not in as_they_are and can_trace(key, together):
                together.append(key)
        stages += [Stage(layer, as_they_are)] if as_they_are else []
        stages += [TracedStage(layer, together)] if together else []
        if together:
            stages[-1].run(values)
        ready.update(together)
        arrays.update(together)
        waiting = [key for key in waiting if key not in ready]
    return stages


def _is_traceable(task: GraphNode, constants: Mapping[Hashable, Any]) -> bool:
    """Whether a task, if it is given arrays, may be traced: it draws no random numbers."""
    parts = [getattr(task, "func", None), *getattr(task, "args", ()), *(constants[d] for d in task.dependencies if d in constants)]
    return not any(map(_is_random, parts))


def _is_random(x: Any) -> bool:
    while isinstance(x, partial):
        x = x.func
    owner: Any = getattr(x, "__self__", x)
    names = [getattr(owner, "__module__", None), getattr(type(owner), "__module__", None)] if callable(x) or owner is not x else [type(x).__module__]
    return any(name is not None and (name in _RANDOM_MODULES or name.startswith("numpy.random.")) for name in names)
