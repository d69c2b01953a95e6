"""Solutions of equations with derivatives by the implicit function theorem: nothing is differentiated that the solver does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram import tree
from hologram.errors import ArgumentError
from hologram.ir.node import Node
from hologram.numpy.arguments import array
from hologram.primitives.markers import part, pullback
from hologram.support.user_lines import located
from hologram.trace.checks import as_function
from hologram.trace.operators import wrap
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor
from hologram.trace.tree import Treedef
from hologram.transform.api import jvp, stop_gradient, vjp
from hologram.transform.arguments import tensors
from hologram.transform.closures import Converted
from hologram.transform.custom import ReverseRule, Rule, wrapped
from hologram.transform.differentiate import in_reverse_mode
from hologram.transform.nodes import zeros_like

__all__ = ["custom_linear_solve", "custom_root"]

Function = Callable[..., Any]


class _Converted(Converted):
    """Of one pytree, which has the structure ``argument``."""

    def __init__(self, what: str, f: Function, example: Any) -> None:
        super().__init__(what, f, example)
        self.argument = tree.structure(example)

    def __call__(self, x: Any, sources: Sequence[Any]) -> Any:
        return self.called((x,), self.sources, sources)


def _tensors(nodes: Sequence[Node]) -> list[Tensor]:
    return [wrap(n) for n in nodes]


def _nodes(values: Any) -> list[Node]:
    return [array(x, "custom_linear_solve") for x in tree.leaves(values)]


def _negative(x: Any) -> Any:
    return tree.map(lambda v: -v, x)


# --- linear equations ------------------------------------------------------------------------------------------------


class _LinearSolution(ReverseRule):
    """Of ``matvec(x) = b``: arguments are the leaves of b, and what the matrix is made of."""

    def __init__(self, matvec: _Converted, b: Treedef, solve: Function, transpose_solve: Function | None) -> None:
        super().__init__()
        self.matvec, self.b, self.solve, self.transpose_solve = matvec, b, solve, transpose_solve

    def solved(self, arguments: Sequence[Node]) -> list[Node]:
        """The solution as a function of the arguments, with this derivative."""
        n = self.b.leaves
        b, sources = tensors(self.b, arguments[:n]), _tensors(arguments[n:])
        fixed = [stop_gradient(s) for s in sources]
        values = _nodes(stop_gradient(self.solve(lambda x: self.matvec(x, fixed), stop_gradient(b))))
        return wrapped(values, arguments, _LinearSolution(self.matvec, self.b, self.solve, self.transpose_solve))

    def pushed(self, arguments: Sequence[Node], given: Sequence[Node]) -> Sequence[Node]:
        n = self.b.leaves
        x, sources = tensors(self.b, self.solved(arguments)), _tensors(arguments[n:])
        _, moved = jvp(lambda *s: self.matvec(x, s), tuple(sources), tuple(_tensors(given[n:]))) if sources else (None, None)
        right = tensors(self.b, given[:n])
        right = right if moved is None else tree.map(lambda r, m: r - m, right, moved)
        return self.solved([*_nodes(right), *arguments[n:]])

    def forward(self, arguments: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        found = self.solved(arguments)
        return found, found

    def backward(self, arguments: Sequence[Node], residuals: Sequence[Node], cotangents: Sequence[Node]) -> list[Node | None]:
        x, sources = tensors(self.b, residuals), _tensors(arguments[self.b.leaves :])
        found, nodes = self._transposed(sources, x, cotangents)
        back = vjp(lambda *s: self.matvec(x, s), *sources)[1](_negative(found)) if sources else ()
        return [*nodes, *_nodes(back)]

    def _transposed(self, sources: Sequence[Tensor], like: Any, cotangents: Sequence[Node]) -> tuple[Any, list[Node]]:
        """The solution of the transposed system, as a pytree and as nodes."""
        if self.transpose_solve is None:
            raise located(ArgumentError("custom_linear_solve: reverse mode needs transpose_solve, or symmetric=True"))
        transposed = lambda v: vjp(lambda y: self.matvec(y, sources), like)[1](v)[0]  # noqa: E731
        found = custom_linear_solve(transposed, tensors(self.b, cotangents), self.transpose_solve, self.solve)
        return found, _nodes(found)


def custom_linear_solve(
    matvec: Function,
    b: Any,
    solve: Function,
    transpose_solve: Function | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The ``x`` of which ``matvec(x) = b``, as ``solve(matvec, b)`` finds it.

    Derivatives are those of the solution, by ``b`` and by all that ``matvec`` reads, whatever the solver does: forward mode solves another system,
    reverse mode a transposed one, by ``transpose_solve(vecmat, cotangent)``, or by ``solve`` itself if ``symmetric``. With ``has_aux`` the solvers
    give ``(x, aux)``, and so does this. ``x`` and ``b`` are pytrees of one structure.

    Raises ArgumentError in reverse mode without a ``transpose_solve``, TreeError where structures differ.

    >>> matrix = hnp.asarray([[2.0, 0.0], [0.0, 4.0]])
    >>> solve = lambda matvec, b: b / matvec(hnp.ones(2))
    >>> f = lambda a, b: hg.lax.custom_linear_solve(lambda x: a @ x, b, solve, symmetric=True).sum()
    >>> f(matrix, hnp.asarray([1.0, 1.0])), hg.grad(f, 1)(matrix, hnp.asarray([1.0, 1.0]))
    (Tensor(0.75, dtype=float32), Tensor([0.5 , 0.25], dtype=float32))
    """
    for f in (matvec, solve):
        as_function(f, "custom_linear_solve")
    if symmetric and transpose_solve is None:
        transpose_solve = solve
    nodes = [array(x, "custom_linear_solve") for x in tree.leaves(b)]
    structure = tree.structure(b)
    right = tensors(structure, nodes)
    converted = _Converted("custom_linear_solve", matvec, right)
    first = (lambda f: lambda m, y: f(m, y)[0]) if has_aux else (lambda f: f)
    rule = _LinearSolution(converted, structure, first(solve), first(transpose_solve) if transpose_solve is not None else None)
    found = tensors(structure, rule.solved([*nodes, *converted.sources]))
    return (found, stop_gradient(solve(matvec, right)[1])) if has_aux else found


class _LinearMap(_LinearSolution):
    """The same as a linear function of b alone; what the matrix is made of is saved."""

    def backward(self, arguments: Sequence[Node], residuals: Sequence[Node], cotangents: Sequence[Node]) -> list[Node | None]:
        return [*self._transposed(_tensors(residuals), tensors(self.b, arguments), cotangents)[1]]


# --- roots -----------------------------------------------------------------------------------------------------------


class _Root(Rule):
    """Of ``f(x) = 0``: arguments are the leaves of the guess, by which there is no derivative, and what the function is made of."""

    def __init__(self, f: _Converted, solve: Function, tangent_solve: Function) -> None:
        self.f, self.solve, self.tangent_solve = f, solve, tangent_solve

    def solved(self, arguments: Sequence[Node]) -> list[Node]:
        """The root as a function of the arguments, with this derivative."""
        n = self.f.argument.leaves
        fixed = [stop_gradient(s) for s in _tensors(arguments[n:])]
        guess = stop_gradient(tensors(self.f.argument, arguments[:n]))
        values = _nodes(stop_gradient(self.solve(lambda x: self.f(x, fixed), guess)))
        return wrapped(values, arguments, _Root(self.f, self.solve, self.tangent_solve))

    def tangents(self, arguments: Sequence[Node], given: Sequence[Node | None]) -> Sequence[Node]:
        n = self.f.argument.leaves
        found = self.solved(arguments)
        moves = [zeros_like(x) if t is None else t for x, t in zip(arguments, given, strict=True)][n:]
        x, sources = tensors(self.f.argument, found), _tensors(arguments[n:])
        if not sources:
            return [zeros_like(v) for v in found]
        _, moved = jvp(lambda *s: self.f(x, s), tuple(sources), tuple(_tensors(moves)))
        slope = lambda v: jvp(lambda y: self.f(y, sources), (x,), (v,))[1]  # noqa: E731
        if in_reverse_mode():
            return self._pulled_back(slope, x, _nodes(_negative(moved)))
        return _nodes(custom_linear_solve(slope, _negative(moved), self.tangent_solve, self.tangent_solve))

    def _pulled_back(self, slope: Function, x: Any, right: list[Node]) -> list[Node]:
        """The solution for ``right``, which is to be transposed and never computed: a linear map that is known in reverse only."""
        converted = _Converted("custom_root", slope, x)
        rule = _LinearMap(converted, self.f.argument, self.tangent_solve, self.tangent_solve)
        types = tuple((r.shape, r.dtype.name) for r in right)
        saved = converted.sources
        whole = record(pullback, (*saved, *map(zeros_like, right), *right), (rule, len(saved), types))
        return [record(part, (whole,), (i, types)) for i in range(len(types))]


def custom_root(f: Function, initial_guess: Any, solve: Function, tangent_solve: Function, has_aux: bool = False) -> Any:
    """A root of ``f``, as ``solve(f, initial_guess)`` finds it: a pytree like the guess.

    Derivatives, by all that ``f`` reads from around it, are those of the root, whatever the solver does: ``tangent_solve(g, y)`` gives the ``x`` of
    which ``g(x) = y``, for the linear function ``g`` that ``f`` is near the root, or its transpose. With ``has_aux`` the solver gives
    ``(root, aux)``, and so does this.

    Raises ArgumentError for what is no function.

    >>> def cube_root(a):
    ...     newton = lambda f, x: hg.fori_loop(0, 20, lambda i, x: x - f(x) / hg.grad(f)(x), x)
    ...     return hg.lax.custom_root(lambda x: x**3 - a, 1.0 + 0 * a, newton, lambda g, y: y / g(1.0))
    >>> cube_root(hnp.asarray(8.0)), hg.grad(cube_root)(8.0)
    (Tensor(2., dtype=float32), Tensor(0.0833333, dtype=float32))
    """
    for g in (f, solve, tangent_solve):
        as_function(g, "custom_root")
    nodes = [array(x, "custom_root") for x in tree.leaves(initial_guess)]
    guess = tensors(tree.structure(initial_guess), nodes)
    converted = _Converted("custom_root", f, guess)
    only = (lambda g, x: solve(g, x)[0]) if has_aux else solve
    rule = _Root(converted, only, tangent_solve)
    found = tensors(converted.argument, rule.solved([*nodes, *converted.sources]))
    return (found, stop_gradient(solve(f, guess)[1])) if has_aux else found
