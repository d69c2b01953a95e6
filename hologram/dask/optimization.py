"""Dask's optimiser of arrays, with blockwise layers compiled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import dask
from dask._task_spec import GraphNode, Task, TaskRef, _execute_subgraph
from dask.array.optimization import optimize as optimize_array
from dask.base import get_name_from_key
from dask.blockwise import Blockwise, blockwise_token, fuse_roots, optimize_blockwise
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph

from hologram.dask import recomputation
from hologram.dask.blocks import CompiledLayer, Layer
from hologram.dask.results import Evaluated
from hologram.errors import ArgumentError
from hologram.support.precision import PRECISIONS
from hologram.support.user_lines import located
from hologram.trace.checks import choice


def fuse(*collections: Any, precision: str = "standard", recompute: bool = False) -> Any:
    """Dask arrays of the same values, whose blockwise parts are compiled: one array for one argument, a tuple for several.

    Neighbouring blockwise operations (elementwise functions, ``map_blocks``, products, the first step of reductions) become one jitted function each,
    compiled once for all blocks of a shape; its ``precision`` is that of :func:`hologram.jit`. Functions are traced: a ``print`` runs once. One
    that cannot be traced, or whose element types differ from NumPy's on NumPy blocks, runs as it is, with an UntracedWarning. Tensor blocks stay
    Tensors, NumPy blocks NumPy arrays. All tasks compute their Tensors before they end, so that Dask knows what memory is in use. What holds Dask
    arrays can be given too, such as xarray's objects. Raises ArgumentError for anything else.

    ``recompute``: blocks that are made from nothing, read, or computed elementwise from such blocks are made again for each use, where Dask would
    keep them between the uses: for arrays that do not fit into memory. Functions that make blocks have to give the same each time.

    >>> import dask.array as da
    >>> x = da.from_array(hg.tensor(np.arange(12.0).reshape(4, 3)), chunks=(2, 3))
    >>> hg.dask.fuse(hnp.sin(0.0) + (x - 1) ** 2)[0].compute()
    Tensor([1., 0., 1.], dtype=float64)
    """
    choice(precision, "fuse", "precision", PRECISIONS)
    for x in collections:
        if not dask.is_dask_collection(x):
            raise located(ArgumentError(f"fuse takes Dask arrays, not {type(x).__name__}"))
    results = _names(key for x in collections for key in flatten(x.__dask_keys__())) if recompute else None
    with dask.config.set(array_optimize=partial(_optimize, precision=precision, results=results)):
        fused = dask.optimize(*collections)
    return fused[0] if len(collections) == 1 else fused


def optimize(dsk: Mapping[Any, Any], keys: Any, *, precision: str = "standard", recompute: bool = False, **options: Any) -> dict[Any, Any]:
    """The graph ``dsk`` optimised as Dask does, and compiled as by :func:`fuse`, for the results ``keys``.

    ``dask.config.set(array_optimize=hg.dask.optimize)`` makes it the optimiser of all Dask arrays.

    >>> import dask, dask.array as da
    >>> x = da.from_array(hg.tensor(np.arange(12.0)), chunks=5)
    >>> with dask.config.set(array_optimize=hg.dask.optimize):
    ...     print(float((2 * x + 1).sum().compute()))
    144.0
    """
    return _optimize(dsk, keys, precision=precision, results=frozenset() if recompute else None, **options)


def _names(keys: Iterable[Any]) -> frozenset[str]:
    return frozenset(map(get_name_from_key, keys))


def _optimize(dsk: Mapping[Any, Any], keys: Any, *, precision: str, results: frozenset[str] | None, **options: Any) -> dict[Any, Any]:
    """As :func:`optimize`, where ``results`` names layers that are kept beside those of ``keys``, and None does not recompute."""
    wanted = list(flatten(keys if isinstance(keys, (list, set)) else [keys]))
    graph = dsk if isinstance(dsk, HighLevelGraph) else HighLevelGraph.from_collections(str(id(dsk)), dsk, dependencies=())
    if results is not None:
        graph = recomputation.recompute(graph, results | _names(wanted))
    graph = fuse_roots(optimize_blockwise(graph, keys=wanted), keys=wanted)
    layers = {name: _compiled(layer, precision) if isinstance(layer, Blockwise) else layer for name, layer in graph.layers.items()}
    optimized = optimize_array(HighLevelGraph(layers, graph.dependencies), wanted, **options)
    return {key: _evaluated(node) for key, node in optimized.items()}


def _evaluated(node: Any) -> Any:
    """A task that computes the Tensors it gives."""
    if type(node) is not Task or isinstance(node.func, (CompiledLayer, Evaluated)) or node.is_coro:
        return node
    return Task(node.key, Evaluated(node.func), *node.args, _data_producer=node.data_producer, **node.kwargs)


def _compiled(layer: Blockwise, precision: str) -> Blockwise:
    """The layer with its function compiled. One of a single task that only reads data is left as it is."""
    tasks, names, output = _tasks(layer.task)
    constants, opaque, passed = {}, set(), []
    for n, (source, axes) in enumerate(layer.indices):
        token = blockwise_token(n)
        if token not in names:
            continue
        if axes is None and not isinstance(source, (GraphNode, TaskRef)):
            constants[names[token]] = source
            continue
        passed.append(token)
        if axes is not None and source in layer.io_deps:
            opaque.add(names[token])
    if not any(names[token] not in opaque for token in passed):
        return layer
    function = CompiledLayer(Layer(tasks, tuple(names[t] for t in passed), frozenset(opaque), constants, output, precision))
    task = Task(layer.task.key, function, *map(TaskRef, passed))
    return Blockwise(
        layer.output,
        layer.output_indices,
        task,
        layer.indices,
        layer.numblocks,
        concatenate=layer.concatenate,
        new_axes=layer.new_axes,
        output_blocks=layer.output_blocks,
        annotations=layer.annotations,
        io_deps=layer.io_deps,
    )


def _tasks(task: Task) -> tuple[dict[Any, GraphNode], dict[str, Any], Any]:
    """The tasks of a layer's function, the names that they have for its arguments, and the key of its result."""
    if task.func is not _execute_subgraph:
        return {task.key: task}, {token: token for token in task.dependencies}, task.key
    inner, output, names, *arguments = task.args
    return _flat(inner), {argument.key: name for name, argument in zip(names, arguments, strict=True)}, output


def _flat(tasks: Mapping[Any, GraphNode]) -> dict[Any, GraphNode]:
    """``tasks`` with those of graphs inside of them: each can be traced, or not, and reads values of its own."""
    flat: dict[Any, GraphNode] = {}
    for key, task in tasks.items():
        inside: dict[Any, GraphNode] = {key: task}
        if isinstance(task, Task) and task.func is _execute_subgraph and all(isinstance(argument, TaskRef) for argument in task.args[3:]):
            inner, output, names, *arguments = task.args
            renamed = {name: argument.key for name, argument in zip(names, arguments, strict=True)} | {output: key}
            inside = {renamed.get(k, k): t.substitute(renamed, key=renamed.get(k, k)) for k, t in _flat(inner).items()}
        if inside.keys() & (flat.keys() | (tasks.keys() - {key})):  # one name for two values
            inside = {key: task}
        flat.update(inside)
    return flat
