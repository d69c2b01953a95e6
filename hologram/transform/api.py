"""``grad`` and its kin: transforms of Python functions of Tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DifferentiationError, ShapeError
from hologram.ir.node import Node
from hologram.ir.symbolic import prod
from hologram.primitives import TABLE
from hologram.primitives.markers import stop
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.checks import as_function, has_items, integer, items
from hologram.trace.operators import weak_default, wrap
from hologram.trace.recorder import cast_node, constant, record
from hologram.trace.tree import Treedef
from hologram.transform.arguments import array_node, cotangent_nodes, own, tensors
from hologram.transform.linear import Linearised, tangents_of
from hologram.transform.nodes import add, along, apply, has_tangents, moved, number, reshaped
from hologram.transform.stacking import stacked
from hologram.transform.transformed import Transformed
from hologram.transform.tree_axes import require_whole, with_axes

Function = Callable[..., Any]
Argnums = int | Sequence[int]
Options = tuple[Argnums, bool, bool]  # argnums, has_aux, holomorphic


def _chosen(f: Function, args: tuple[Any, ...], options: dict[str, Any], argnums: Argnums, what: str) -> tuple[Function, list[Any]]:
    """``f`` as a function of the positional arguments ``argnums`` alone, and these."""
    given: Sequence[Any] = items(argnums, what) if has_items(argnums) else [argnums]
    numbers = [integer(i, what, "argnums") for i in given]
    if not all(-len(args) <= i < len(args) for i in numbers):
        raise located(ArgumentError(f"{what}: argnums {argnums} of a call with {len(args)} positional arguments"))
    numbers = [i % len(args) for i in numbers]
    if len(set(numbers)) < len(numbers):
        raise located(ArgumentError(f"{what}: argnums {argnums} name an argument twice"))

    def of_chosen(*chosen: Any) -> Any:
        places = dict(zip(numbers, chosen, strict=True))
        return f(*[places[i] if i in places else own(x) for i, x in enumerate(args)], **own(options))

    return of_chosen, [args[i] for i in numbers]


def _like_argnums(values: Sequence[Any], argnums: Argnums) -> Any:
    return tuple(values) if has_items(argnums) else values[0]


def _seen_types(nodes: Sequence[Node], weak: Sequence[bool]) -> list[DType]:
    """The types that others see of nodes, some of which are ``weak``."""
    return [weak_default(x.dtype) if w else x.dtype for x, w in zip(nodes, weak, strict=True)]


def _require_kinds(types: Sequence[DType], which: str, what: str, holomorphic: bool) -> None:
    """Raises DifferentiationError unless nodes are complex for a holomorphic function, real for any other: only then is the derivative one number."""
    for dtype in types:
        if holomorphic and not dtype.is_complex:
            raise located(DifferentiationError(f"{what}: holomorphic=True is for functions of complex numbers, and {which} is {dtype}"))
        if not holomorphic and dtype.is_complex:
            advice = "pass holomorphic=True if the function is holomorphic, take real, imag or abs, or use jvp or vjp"
            raise located(DifferentiationError(f"{what}: {which} is {dtype}: {advice}"))


def _scalar_result(made: Linearised, what: str, holomorphic: bool) -> Node:
    if len(made.results) != 1 or made.structure is not tree.LEAF:
        raise located(DifferentiationError(f"{what} takes a function with one scalar result, not {made.structure}: see vjp, jacrev, has_aux"))
    (out,) = made.results
    if out.shape or not has_tangents(out.dtype):
        (dtype,) = _seen_types([out], made.weak_results)
        raise located(
            DifferentiationError(f"{what} takes a function whose result is a scalar float, not {dtype}{list(out.shape)}: sum it, or use jacrev")
        )
    inputs = _seen_types(made.inputs, made.weak) if holomorphic else []
    _require_kinds([*_seen_types([out], made.weak_results), *inputs], "an argument or the result" if holomorphic else "the result", what, holomorphic)
    return out


def value_and_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """Function that gives ``(f(*args), gradient)``: value and gradient of :func:`grad` in one pass. With ``has_aux``: ``((value, aux), gradient)``.

    Arguments and errors are those of :func:`grad`.

    >>> hg.value_and_grad(lambda x: x * x)(3.0)
    (Tensor(9., dtype=float32), Tensor(6., dtype=float32))
    """
    return Transformed(_value_and_grad, as_function(f, "value_and_grad"), argnums, has_aux, holomorphic)


def _value_and_grad(f: Function, given: Options, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    argnums, has_aux, holomorphic = given
    of_chosen, chosen = _chosen(f, args, options, argnums, "grad")
    made = Linearised(of_chosen, chosen, "grad", has_aux, reverse=True)
    out = _scalar_result(made, "grad", holomorphic)
    gradient = tensors(made.in_structure, made.backward([number(1, out)]), made.weak)
    (value,) = tree.leaves(tensors(made.structure, [out], made.weak_results))
    return ((value, made.aux) if has_aux else value), _like_argnums(gradient, argnums)


def grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """Gradient function of ``f``, a function with a scalar float result, with respect to the positional arguments ``argnums``.

    The gradient has the structure, shapes and types of the argument; a sequence of argnums gives a tuple. With ``has_aux``, ``f`` returns
    ``(result, aux)`` and the gradient function ``(gradient, aux)``.

    The gradient with respect to ``z = x + iy`` of a real function is ``df/dx - i df/dy``, as JAX's: descent steps go along its conjugate.
    ``holomorphic`` is for complex functions of complex arguments, and gives ``df/dz``.

    Raises DifferentiationError for integer arguments, for results that are not one float, and for ops that have no derivative.

    >>> hg.grad(lambda x: hnp.sum(x**3))(hnp.asarray([1.0, 2.0]))
    Tensor([ 3., 12.], dtype=float32)
    """
    return Transformed(_grad, as_function(f, "grad"), argnums, has_aux, holomorphic)


def _grad(f: Function, given: Options, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    value, g = _value_and_grad(f, given, args, options)
    return (g, value[1]) if given[1] else g


def vjp(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """Value and pullback: ``(f(*primals), pull)``, where ``pull(cotangents of the results)`` is the tuple of the arguments' cotangents.

    With ``has_aux`` also aux. Raises DifferentiationError as :func:`grad` does.

    >>> y, pull = hg.vjp(lambda a, b: a * b, hg.tensor(2.0), hg.tensor(5.0))
    >>> y, pull(hg.tensor(1.0))
    (Tensor(10., dtype=float32), (Tensor(5., dtype=float32), Tensor(2., dtype=float32)))
    """
    made = Linearised(f, primals, "vjp", has_aux, reverse=True)

    def pullback(cotangents: Any) -> Any:
        return tensors(
            made.in_structure, made.backward(cotangent_nodes(cotangents, made.structure, made.results, "vjp", weak=made.weak_results)), made.weak
        )

    results = tensors(made.structure, made.results, made.weak_results)
    return (results, pullback, made.aux) if has_aux else (results, pullback)


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Value and directional derivative: ``(f(*primals), its derivative in the direction of tangents)``.

    Tangents have the primals' structure, shapes and types. Raises ArgumentError where they do not, DifferentiationError for ops without a derivative.

    >>> hg.jvp(hnp.sin, (hg.tensor(0.0),), (hg.tensor(2.0),))
    (Tensor(0., dtype=float32), Tensor(2., dtype=float32))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise located(ArgumentError("jvp takes the primals, and the tangents, in a tuple or list"))
    directions = lambda s, nodes, weak: cotangent_nodes(tuple(tangents), s, nodes, "jvp", weak=weak)  # noqa: E731
    results, pushed, weak_results, structure = tangents_of(f, primals, directions, "jvp")
    return tensors(structure, results, weak_results), tensors(structure, pushed, weak_results)


def linearize(f: Function, *primals: Any) -> Any:
    """Value and linear approximation: ``(f(*primals), push)``; ``push(*tangents)`` gives the results' tangents without evaluating ``f`` again.

    Raises DifferentiationError as :func:`jvp` does.

    >>> y, push = hg.linearize(lambda x: x * x, hg.tensor(3.0))
    >>> y, push(hg.tensor(1.0))
    (Tensor(9., dtype=float32), Tensor(6., dtype=float32))
    """
    made = Linearised(f, primals, "linearize")

    def pushforward(*tangents: Any) -> Any:
        pushed = made.forward(cotangent_nodes(tangents, made.in_structure, made.inputs, "linearize", weak=made.weak))
        return tensors(made.structure, pushed, made.weak_results)

    return tensors(made.structure, made.results, made.weak_results), pushforward


def stop_gradient(x: Any) -> Any:
    """``x`` as a constant for derivatives: none passes through it; of a pytree through no leaf.

    >>> hg.grad(lambda x: x * hg.stop_gradient(x))(3.0)
    Tensor(3., dtype=float32)
    """
    return tree.map(_stopped, x)


def _stopped(x: Any) -> Any:
    node, weak = array_node(x, "stop_gradient")
    return wrap(record(stop, (node,)), weak)


# --- matrices of derivatives -----------------------------------------------------------------------------------------


def _basis(nodes: Sequence[Node], what: str) -> list[Node]:
    """The directions of the coordinates of all nodes, stacked: for each node an array whose first axis counts directions."""
    sizes = [_size(x, what) for x in nodes]
    total = sum(sizes)
    blocks = []
    start = 0
    for x, n in zip(nodes, sizes, strict=True):
        direction, coordinate = (record(TABLE["iota"], (), ((total, n), axis, "int64")) for axis in (0, 1))
        here = apply(TABLE["eq"], direction, add(coordinate, constant(start, dtypes.int64)))
        blocks.append(reshaped(cast_node(here, x.dtype), (total, *x.shape)))
        start += n
    return blocks


def _size(x: Node, what: str) -> int:
    n = prod(x.shape)
    if not isinstance(n, int):
        raise located(ShapeError(f"{what}: the size {n} of an array is a symbol, so its coordinates cannot be counted"))
    return n


def _split(stack: Node, nodes: Sequence[Node], last: bool) -> list[Node]:
    """A stack of one entry a coordinate as arrays of the nodes' shapes, in front of the other axes or behind them."""
    parts = []
    start = 0
    for x in nodes:
        n = _size(x, "")
        part = along(stack, 0, start, start + n)
        rest = stack.shape[1:]
        parts.append(reshaped(moved(part, 0, len(rest)), (*rest, *x.shape)) if last else reshaped(part, (*x.shape, *rest)))
        start += n
    return parts


def jacfwd(f: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """Jacobian function of ``f`` by forward mode, column by column: best where there are fewer arguments than results.

    For each result and each argument there is an array of shape ``result.shape + argument.shape``, in the structure of the results, each of whose
    leaves has the structure of the arguments. Arguments are real, or complex if ``holomorphic``. Raises DifferentiationError as :func:`grad` does.

    >>> hg.jacfwd(lambda x: x * x)(hnp.asarray([1.0, 2.0]))
    Tensor([[2., 0.],
            [0., 4.]], dtype=float32)
    """
    return Transformed(_jacfwd, as_function(f, "jacfwd"), argnums, has_aux, holomorphic)


def _jacfwd(f: Function, given: Options, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    argnums, has_aux, holomorphic = given
    of_chosen, chosen = _chosen(f, args, options, argnums, "jacfwd")
    made = Linearised(of_chosen, chosen, "jacfwd", has_aux)
    require_whole(made.in_structure, "jacfwd: an argument")
    _require_kinds(_seen_types(made.inputs, made.weak), "an argument", "jacfwd", holomorphic)
    basis = _basis(made.inputs, "jacfwd")
    columns = stacked(made.forward, basis, [True] * len(basis), basis[0].shape[0]) if basis else []
    entries = [_split(c, made.inputs, last=True) for c in columns] if basis else [[] for _ in made.results]
    of_result = [_like_argnums(tensors(made.in_structure, e, [w] * len(e)), argnums) for e, w in zip(entries, made.weak_results, strict=True)]
    result = tree.unflatten(made.structure, of_result)
    return (result, made.aux) if has_aux else result


def jacrev(f: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """Jacobian function of ``f`` by reverse mode, row by row: best where there are fewer results than arguments.

    The result is that of :func:`jacfwd`. Results of ``f`` are real, or complex if ``holomorphic``.

    >>> hg.jacrev(lambda x: hnp.cumsum(x))(hnp.asarray([1.0, 2.0]))
    Tensor([[1., 0.],
            [1., 1.]], dtype=float32)
    """
    return Transformed(_jacrev, as_function(f, "jacrev"), argnums, has_aux, holomorphic)


def _jacrev(f: Function, given: Options, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    argnums, has_aux, holomorphic = given
    of_chosen, chosen = _chosen(f, args, options, argnums, "jacrev")
    made = Linearised(of_chosen, chosen, "jacrev", has_aux, reverse=True)
    require_whole(made.structure, "jacrev: a result")
    types = [*_seen_types(made.results, made.weak_results), *(_seen_types(made.inputs, made.weak) if holomorphic else ())]
    _require_kinds(types, "an argument or a result" if holomorphic else "a result", "jacrev", holomorphic)
    basis = _basis(made.results, "jacrev")
    rows = _rows(made, basis)
    by_input = [_split(r, made.results, last=False) for r in rows]
    entries = [[column[i] for column in by_input] for i in range(len(made.results))]
    of_arguments = [_behind(made.in_structure, len(y.shape)) for y in made.results]
    of_result = [_like_argnums(tensors(t, e, made.weak), argnums) for t, e in zip(of_arguments, entries, strict=True)]
    result = tree.unflatten(made.structure, of_result)
    return (result, made.aux) if has_aux else result


def _behind(structure: Treedef, count: int) -> Treedef:
    """The structure where each leaf has so many axes in front."""
    for _ in range(count):
        structure = with_axes(structure, [0] * structure.leaves)
    return structure


def _rows(made: Linearised, basis: list[Node]) -> list[Node]:
    """The pulled directions, stacked. A single one needs no stack."""
    count = sum(b.shape[0] for b in basis[:1])
    if count != 1:
        return stacked(made.backward, basis, [True] * len(basis), count) if basis else []
    return [reshaped(x, (1, *x.shape)) for x in made.backward([reshaped(b, b.shape[1:]) for b in basis])]


def hessian(f: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """Hessian function of ``f``: second derivatives, the gradient differentiated forwards. Shape ``argument.shape + argument.shape``.

    Arguments and errors are those of :func:`grad`.

    >>> hg.hessian(lambda x: hnp.sum(x**3))(hnp.asarray([1.0, 2.0]))
    Tensor([[ 6.,  0.],
            [ 0., 12.]], dtype=float32)
    """
    as_function(f, "hessian")
    return jacfwd(jacrev(f, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)
