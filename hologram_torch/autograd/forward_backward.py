"""Forward and backward halves of a program: the forward half also gives the values that the backward half reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hologram import numpy as hnp
from hologram.ir.node import Node
from hologram.support.cached_property import cached_property
from hologram.trace.apply import wrap
from hologram.trace.recorder import Trace
from hologram.transform.arguments import array_node
from hologram.transform.linear import Linearised
from hologram.transform.nodes import has_tangents
from hologram_torch.autograd.min_cut import kept_values
from hologram_torch.autograd.program import Program, chosen_among, replaying


class ForwardBackward:
    """``program`` differentiated with respect to the arguments that are ``differentiated``.

    - ``forward``: the program with more results, which the backward half reads; the first ``count`` are the program's own.
    - ``kept_arguments``, ``kept_results``: which arguments and which results of ``forward`` the backward half reads, in its order.
    - ``differentiable``: which results of ``forward`` have cotangents; ``non_differentiable``: the numbers of the others; ``own``: how many of the
      first ``count`` have cotangents.
    - ``backward``: the program from what is kept, and from the cotangents of the program's own results, to the cotangents of the differentiated
      arguments.
    - ``complete``: the same from all arguments, and from the cotangents of all results of ``forward``: what a second derivative needs where the kept
      results count as functions of the arguments.

    Complex cotangents are torch's: conjugates of Hologram's, which pair with tangents without a conjugate.
    """

    def __init__(self, program: Program, differentiated: tuple[bool, ...]) -> None:
        self.program, self.differentiated = program, differentiated
        self._derive()

    def _derive(self) -> None:
        program = self.program
        with Trace(program.name) as trace:
            arguments = [trace.input(shape, dtype) for shape, dtype in program.types]
            made = _linearised(program, [wrap(x) for x in arguments], self.differentiated)
            cotangents = [trace.input(y.shape, y.dtype) for y in made.results if has_tangents(y.dtype)]
            gradients = _pulled(made, [wrap(c) for c in cotangents])
        results = list(made.results)
        kept = kept_values(arguments, cotangents, results, gradients)
        self.count = len(results)
        self.kept_arguments = [i for i, x in enumerate(arguments) if x in kept]
        more = [x for x in kept if x not in arguments and x not in results]
        self.forward = Program(program.name, replaying([*results, *more], arguments), program.types, program.device)
        self.differentiable = [has_tangents(x.dtype) for x in (*results, *more)]
        self.non_differentiable = [i for i, differentiable in enumerate(self.differentiable) if not differentiable]
        self.own = sum(self.differentiable[: self.count])
        self.kept_results = [i for i, x in enumerate([*results, *more]) if x in kept and x not in arguments]
        read = [*[arguments[i] for i in self.kept_arguments], *[[*results, *more][i] for i in self.kept_results], *cotangents]
        self.backward = Program(program.name, replaying(gradients, read), [(x.shape, x.dtype) for x in read], program.device)

    @cached_property
    def complete(self) -> Program:
        forward = self.forward
        n = len(forward.types)

        def pulled(*values: Any) -> list[Any]:
            made = _linearised(forward, values[:n], self.differentiated)
            return [wrap(x) for x in _pulled(made, values[n:])]

        cotangents = [t for t, differentiable in zip(forward.results, self.differentiable, strict=True) if differentiable]
        return Program(forward.name, pulled, [*forward.types, *cotangents], forward.device)


def _linearised(program: Program, values: Sequence[Any], differentiated: Sequence[bool]) -> Linearised:
    """Linearises the program at ``values`` with respect to the differentiated arguments."""

    def of_wanted(*chosen: Any) -> list[Any]:
        return list(program.function(*chosen_among(values, differentiated, chosen)))

    return Linearised(of_wanted, [x for x, w in zip(values, differentiated, strict=True) if w], program.name, reverse=True)


def _pulled(made: Linearised, cotangents: Sequence[Any]) -> list[Node]:
    """Computes torch's cotangents of the inputs from the cotangents of the differentiable results."""
    given = iter([array_node(hnp.conj(c), "cotangent")[0] for c in cotangents])
    pulled = made.backward([next(given) if has_tangents(y.dtype) else y for y in made.results])
    return [array_node(hnp.conj(wrap(x)), "cotangent")[0] for x in pulled]
