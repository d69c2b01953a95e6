"""``shard_map``: one function, run by every rank of a mesh on its own parts of arrays.

Inside a trace the function becomes part of the program of this process: parts go in, collectives are ops, parts come out. A value that all ranks have
goes in through ``enter_replicated`` and comes out through ``exit_replicated``, which say what derivatives do there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hologram.control.tracing import Traced, Type, as_node, close_bodies
from hologram.distributed.array import ShardedArray, with_sharding
from hologram.distributed.collectives import all_gather, axis_index
from hologram.distributed.mesh import Mesh, NamedSharding, PartitionSpec
from hologram.distributed.replication import NONE, Axes, varying
from hologram.distributed.specs import map_with_specs
from hologram.errors import ArgumentError, TransformError
from hologram.ir.graph import Body
from hologram.ir.node import Node
from hologram.ir.traversal import topological
from hologram.numpy.indexing.dynamic import dynamic_slice_in_dim
from hologram.support.user_lines import located
from hologram.trace import effects, tree
from hologram.trace.call.jit import jit
from hologram.trace.checks import as_function
from hologram.trace.convert import asarray
from hologram.trace.operators import node_of, wrap
from hologram.trace.recorder import current, record, transforming
from hologram.transform.named_axes import NamedAxis, bound, mesh_axes
from hologram.transform.nodes import has_tangents
from hologram.transform.rules.collectives import entered, left
from hologram.transform.transformed import Transformed

__all__ = ["shard_map"]


def shard_map(
    f: Callable[..., Any] | None = None, mesh: Mesh | None = None, in_specs: Any = None, out_specs: Any = None, *, check_vma: bool = True
) -> Any:
    """Runs ``f`` on every rank of ``mesh``, on the rank's parts of the arguments; without ``f`` a decorator with these options.

    ``in_specs`` and ``out_specs`` are pytrees of :class:`PartitionSpec`, which may end early, beside the tuple of the arguments and the result.
    Arguments are :class:`ShardedArray`, or arrays that every process has, of which each takes its part. Results that are divided are
    :class:`ShardedArray`; others, the same on every rank, are Tensors. ``f`` reduces and moves data between ranks by collectives over the mesh's
    axes (:func:`hologram.lax.psum` …).

    A call compiles ``f`` as :func:`hologram.jit` does, or is part of the function that is compiled; derivatives are taken there. All processes make
    the same calls in the same order. A derivative taken inside ``f`` is the rank's own: sum it with ``psum``. One taken outside is whole.

    Raises ShapeError for axes that do not divide, ArgumentError for specs that do not fit, and for a result that may differ from rank to rank where
    ``out_specs`` says that it does not (``check_vma=False`` leaves that to you).

    >>> mesh = hg.distributed.make_mesh((1,), "x")
    >>> P = hg.distributed.PartitionSpec
    >>> total = hg.shard_map(lambda x: hg.lax.psum(x.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    >>> total(np.arange(4))
    Tensor(6, dtype=int64)
    """
    if not isinstance(mesh, Mesh):
        raise located(ArgumentError(f"shard_map takes a Mesh, not a {type(mesh).__name__}"))
    for name, specs in (("in_specs", in_specs), ("out_specs", out_specs)):
        _require_specs(name, specs, mesh)

    def decorate(function: Callable[..., Any]) -> ShardMapped:
        return ShardMapped(as_function(function, "shard_map"), mesh, in_specs, out_specs, check_vma)

    return decorate if f is None else decorate(f)


def _require_specs(name: str, specs: Any, mesh: Mesh) -> None:
    for spec in tree.leaves(specs) or [None]:
        if not isinstance(spec, PartitionSpec):
            raise located(ArgumentError(f"shard_map: {name} is a PartitionSpec or a pytree of them, and has a {type(spec).__name__}"))
        NamedSharding(mesh, spec)  # which refuses axes that the mesh has not


class ShardMapped(Transformed):
    """A function under ``shard_map``."""

    def __init__(self, f: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any, check: bool) -> None:
        super().__init__(_inline, f, mesh, in_specs, out_specs, check)
        self._jitted: Any = None

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if keywords:
            raise located(ArgumentError("shard_map: arguments are given by position, as in_specs are"))
        if current() is not None:
            return _inline(self._f, self._options, args)
        if transforming():
            advice = "wrap the transformed function in hg.jit: ranks then run the same collectives in the same order"
            raise located(TransformError(f"shard_map: transforms of it are compiled: {advice}"))
        if self._jitted is None:
            self._jitted = jit(self._traced, dynamic=False)
        return self._jitted(*args)

    def _traced(self, *args: Any) -> Any:
        if current() is None:
            raise located(TransformError("shard_map is compiled, and hg.disable_jit is around it"))
        return _inline(self._f, self._options, args)

    def __reduce__(self) -> Any:
        return ShardMapped, (self._f, *self._options)


def _inline(f: Callable[..., Any], options: tuple[Mesh, Any, Any, bool], args: tuple[Any, ...]) -> Any:
    """The call as part of the trace under way."""
    mesh, in_specs, out_specs, check = options
    mesh.here("shard_map")
    if mesh_axes():
        raise located(ArgumentError("shard_map: there is a shard_map around this one already: one mesh has all axes"))
    axes = [NamedAxis(name, size, None, mesh.literal) for name, size in mesh.shape.items()]
    with bound(axes):
        given = _Arguments(mesh)
        local_args = given.mapped(args, in_specs)
        types = [Type(x.shape, x.node.dtype, x.weak) for x in given.found]
        traced = Traced("shard_map", f, types, lambda leaves: _filled(local_args, iter(leaves)))
        for i in range(len(traced.nodes)):
            traced.strengthen(i)
        tokens = [effects.token()] if traced.has_effects else []
        if tokens:
            traced.thread_token(len(given.found), len(traced.nodes))
        outer, (body,) = close_bodies([traced])
        specs = _spread(out_specs, traced.result, "out_specs")
        if check:
            differing = varying(body.graph, [NONE] * len(outer) + [x.varying(mesh) for x in given.found] + [NONE] * len(tokens))
            _require_replicated(mesh, specs, differing[: len(specs)], traced.paths)
        nodes = _recorded(body, [*_entered(mesh, outer, given.found), *tokens])
        if tokens:
            effects.follow(nodes.pop())
        return tree.unflatten(traced.treedef, [_left(x, mesh, spec) for x, spec in zip(nodes, specs, strict=True)])


def _recorded(body: Body, arguments: Sequence[Node]) -> list[Node]:
    """The body's results, recorded here, each op with the line that it has there."""
    graph, trace = body.graph, current()
    assert trace is not None
    made, before = dict(zip(graph.inputs, arguments, strict=True)), trace.line
    try:
        for n in topological(graph.outputs, stop=made.__contains__):
            if n not in made:
                trace.line = graph.lines.get(n)
                made[n] = record(n.op, tuple([made[x] for x in n.inputs]), n.attrs)
    finally:
        trace.line = before
    return [made[x] for x in graph.outputs]


# --- pytrees of specs ------------------------------------------------------------------------------------------------


def _filled(value: Any, leaves: Any) -> Any:
    """``value`` with ``leaves`` in the places of its own."""
    return tree.map(lambda _: next(leaves), value)


def _spread(specs: Any, value: Any, what: str) -> list[PartitionSpec]:
    """The spec of each leaf of ``value``, of which a sharded array is one."""
    found: list[PartitionSpec] = []
    _map(lambda leaf, spec: found.append(spec), value, specs, what)
    return found


def _map(f: Callable[[Any, PartitionSpec], Any], value: Any, specs: Any, what: str) -> Any:
    return map_with_specs(f, value, specs, f"shard_map: {what}", (PartitionSpec,))


# --- going in --------------------------------------------------------------------------------------------------------


def _leave(x: Node, axes: Sequence[str], mesh: Mesh) -> Node:
    """``x``, the same along ``axes``, as one value."""
    return left(x, tuple(axes), mesh.literal) if axes and has_tangents(x.dtype) else x


def _others(mesh: Mesh, spec: PartitionSpec) -> tuple[str, ...]:
    return tuple(n for n in mesh.axis_names if n not in spec.names())


class _Argument(NamedTuple):
    """A leaf of the arguments: this rank's part, of ``shape``, is ``node`` itself, or is to be ``cut`` out of it. ``same`` are the axes along which
    ``node`` is the same on every rank."""

    node: Node
    weak: bool
    spec: PartitionSpec
    same: tuple[str, ...]
    shape: tuple[int, ...]
    cut: bool

    def varying(self, mesh: Mesh) -> Axes:
        """The axes along which the parts may differ."""
        return frozenset(n for n in self.spec.names() if mesh.shape[n] > 1)


class _Arguments:
    """The arguments' leaves."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.found: list[_Argument] = []

    def mapped(self, args: tuple[Any, ...], specs: Any) -> tuple[Any, ...]:
        """The arguments with a leaf in the place of each array."""
        if isinstance(specs, (tuple, list)) and len(specs) != len(args):
            raise located(ArgumentError(f"shard_map: in_specs has {len(specs)} entries for {len(args)} arguments"))
        leaves: tuple[Any, ...] = _map(self._note, args, specs, "in_specs")
        return leaves

    def _note(self, x: Any, spec: PartitionSpec) -> int:
        self.found.append(self._argument(x, spec))
        return len(self.found)

    def _argument(self, x: Any, spec: PartitionSpec) -> _Argument:
        if not isinstance(x, ShardedArray):
            return self._of_whole(x, spec)
        if x.sharding.mesh != self.mesh:
            raise located(ArgumentError(f"shard_map over {self.mesh}: an argument lies on {x.sharding.mesh}"))
        if x.sharding != NamedSharding(self.mesh, spec):
            return self._of_whole(wrap(_leave(node_of(_whole(x)), self.mesh.axis_names, self.mesh)), spec)
        part = node_of(asarray(x.addressable_data()))
        return _Argument(part, False, spec, _others(self.mesh, spec), part.shape, False)  # type: ignore[arg-type]

    def _of_whole(self, x: Any, spec: PartitionSpec) -> _Argument:
        node, weak = as_node(x, "shard_map")
        shape = NamedSharding(self.mesh, spec).shard_shape(node.shape, "shard_map")  # type: ignore[arg-type]
        return _Argument(node, weak, spec, self.mesh.axis_names, shape, shape != node.shape)


def _entered(mesh: Mesh, outer: Sequence[Node], arguments: Sequence[_Argument]) -> list[Node]:
    """What the body reads from around it, and this rank's parts of the arguments. What is the same on every rank along the same axes goes in
    together, so that a derivative sums all of it at once."""
    nodes = [*outer, *[a.node for a in arguments]]
    same = [mesh.axis_names] * len(outer) + [a.same for a in arguments]
    for axes in dict.fromkeys(same):
        places = [i for i, x in enumerate(nodes) if same[i] == axes and axes and has_tangents(x.dtype)]
        if places:
            for i, x in zip(places, entered([nodes[i] for i in places], axes, mesh.literal), strict=True):
                nodes[i] = x
    return [*nodes[: len(outer)], *[_cut(x, a) if a.cut else x for x, a in zip(nodes[len(outer) :], arguments, strict=True)]]


def _cut(x: Node, argument: _Argument) -> Node:
    """This rank's part of an array."""
    value = wrap(x, argument.weak)
    for axis, names in enumerate(argument.spec.normalised()):
        if argument.shape[axis] != x.shape[axis]:
            value = dynamic_slice_in_dim(value, axis_index(names) * argument.shape[axis], argument.shape[axis], axis)
    return node_of(value)


def _whole(x: ShardedArray) -> Any:
    """All parts of a sharded array, gathered."""
    value = asarray(x.addressable_data())
    for axis, names in enumerate(x.sharding.spec.normalised()):
        if names:
            value = all_gather(value, names, axis=axis, tiled=True)
    return value


# --- coming out ------------------------------------------------------------------------------------------------------


def _left(x: Node, mesh: Mesh, spec: PartitionSpec) -> Any:
    sharding = NamedSharding(mesh, spec)
    sharding.counts(len(x.shape), "shard_map: out_specs")
    return with_sharding(wrap(_leave(x, _others(mesh, spec), mesh)), sharding)


def _require_replicated(mesh: Mesh, specs: Sequence[PartitionSpec], differing: Sequence[Axes], paths: Sequence[str]) -> None:
    for spec, axes, path in zip(specs, differing, paths, strict=True):
        wrong = [n for n in mesh.axis_names if n in axes and n not in spec.names() and mesh.shape[n] > 1]
        if wrong:
            over = " and ".join(map(repr, wrong))
            advice = "reduce it (psum, pmean …), name the axis in out_specs, or pass check_vma=False"
            raise located(ArgumentError(f"shard_map: result{path} may differ along {over}, of which out_specs has {spec}: {advice}"))


def require_outside(x: ShardedArray) -> None:
    """Raises ArgumentError inside of ``shard_map``, where a rank has its parts alone."""
    if mesh_axes():
        advice = "give it as an argument, with its spec in in_specs"
        raise located(ArgumentError(f"shard_map: the function reads an array with {x.sharding.spec} from around it: {advice}"))
