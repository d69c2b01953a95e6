"""Expressions that come again are handed to native code, which then realises them without Python: see :mod:`hologram.backends.native.expressions`.

Handed over are expressions whose numbers the program has by value, and structures whose program takes numbers as operands, for the CPU. Native code
finds out who holds the memory of arguments as :mod:`hologram.trace.lazy_programs.donation` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram.settings import settings
from hologram.support import debug
from hologram.support.once import once
from hologram.trace.compiling import forget_peepholes, learn_peepholes
from hologram.trace.host_movement import HostMovement, Spent
from hologram.trace.lazy_programs.donation import MAX_NODES, MIN_DONATED_BYTES
from hologram.trace.lazy_programs.immediate import Immediate, moved_natively
from hologram.trace.lazy_programs.numbers import is_large
from hologram.trace.lazy_programs.structure import KNOWN_TO_RULES, MAX_SCALARS, operands
from hologram.trace.native_operators import make_native
from hologram.trace.recorder import Pending, remember
from hologram.trace.tensor import Tensor

RUNS = 4  # of a program by Python before its expression is handed over, and again where native code did not find it
MAX_BACK_OFF = 8  # doublings of RUNS, for a program that takes numbers

MOVED_SETS = 16  # of numbers of one structure that NumPy moves, which are handed over: more tend to be as many as come
_not_native: dict[Any, None] = {}  # keys of what NumPy moves, and native code does not

_realise: Callable[..., bool] | None = None  # of native code, once it has been told of an expression


@once
def _known_expressions() -> Any:
    """What native code knows; None where there is no native code. It needs LLVM, so it is imported when a program has run."""
    from hologram.backends.native import classes, expressions

    classes.register_tensor_class(Tensor)
    found = expressions.known_expressions(Pending, operands, KNOWN_TO_RULES, MAX_SCALARS)
    if found is not None:
        make_native()
    return found


def realise_known(tensors: Sequence[Any]) -> bool:
    """Realises Tensors whose expression native code knows; whether it did. Raises MemoryError. Its caller holds the lock of nodes that settle."""
    return _realise is not None and _realise(*tensors)


def hand_over(walk: Any, asked: int, executable: Any) -> bool:
    """Counts a run of ``executable``, which computes all of ``walk`` by value, and hands the expression over when it is time. The first ``asked``
    nodes are wanted; none has settled.

    Whether native code may run it at once, though ``walk`` refers to the memory of arguments.
    """
    if type(executable) is Immediate:
        return not settings.profile and _hand_over_steps(walk, asked, executable)
    if type(executable) is HostMovement:
        return not settings.profile and executable.spent is not None and _hand_over_movement(walk, asked, executable.spent)
    if getattr(executable, "address", None) is None:
        return False
    executable.lazy_runs += 1
    if executable.lazy_runs < RUNS:
        return False
    executable.lazy_runs = 0
    storages = walk.storages
    donors = [
        (i, d)
        for i, of, numbers in executable.reusable
        for d in numbers
        if of.nbytes >= MIN_DONATED_BYTES and d < len(storages) and storages[d].aval is of and len(walk.order) <= MAX_NODES
    ]
    return _hand_over(walk, asked, executable, donors) and not donors


def hand_over_structure(walk: Any, asked: int, found: Any) -> bool:
    """As :func:`hand_over`, for all expressions whose numbers the program takes that was ``found`` for ``walk``; not of large arrays, for which
    programs by value are faster where sizes come again. What native code gets again and again, it gets after twice as many runs each time."""
    program = None if is_large(walk) else walk.structure.program_of(found.token)
    if program is None or getattr(found.executable, "address", None) is None:
        return False
    program.runs += 1
    if program.runs < RUNS << min(program.handed_over, MAX_BACK_OFF):
        return False
    program.runs = 0
    program.handed_over += 1
    known = _known_expressions()
    if known is None:
        return False
    numbers = walk.numbers, program.conditions, _up_to(program, found), program.token
    return _knows(known, known.add_structure(walk.order, asked, walk.roots, found.executable, numbers))


def learn(walk: Any, executable: Immediate) -> None:
    """Has native code know the ops of an expression that is about to run op by op for the first time, by which it runs others at first sight."""
    if settings.profile or settings.nans or settings.debug >= debug.TIMINGS:
        return
    if _known_expressions() is not None:
        learn_peepholes(walk.roots[: walk.structure.key[0]], walk.order, executable.program)
        _knows(_known_expressions(), True)


def _up_to(program: Any, found: Any) -> dict[str, int]:
    """The sizes up to which native code gets a program: powers of two, and no less than it got before, as long as calls are short there."""
    now = {s: 1 << (n - 1).bit_length() for s, n in (found.sizes or {}).items()}
    most = {s: max(n, program.up_to.get(s, 0)) for s, n in now.items()}
    if not found.executable.is_long_up_to(most):
        program.up_to = now = most
    return now


def _hand_over_steps(walk: Any, asked: int, executable: Immediate) -> bool:
    """Hands over what Python has run op by op before."""
    program = executable.for_native_code()
    return program is not None and _hand_over(walk, asked, program, (), executable.granted())


def _hand_over_movement(walk: Any, asked: int, spent: Spent) -> bool:
    """Hands over what NumPy has moved before."""
    structure = walk.structure
    if structure.moved_sets == MOVED_SETS or walk.key in _not_native:
        return False
    found = moved_natively(walk)
    if found is None or not _hand_over(walk, asked, found[0], (), found[1]):
        remember(_not_native, walk.key, None)
        return False
    structure.moved_sets += 1
    spent.exhaust(walk.key)
    return True


def _hand_over(walk: Any, asked: int, executable: Any, donors: Sequence[tuple[int, int]], runs: int = -1) -> bool:
    known = _known_expressions()
    return known is not None and _knows(known, known.add(walk.order, asked, walk.roots, executable, donors, runs))


def _knows(known: Any, is_added: bool) -> bool:
    """Has native code look for expressions once it knows one."""
    global _realise
    if is_added:
        _realise = known.realise
    return is_added


def clear() -> None:
    """Native code forgets all expressions."""
    _not_native.clear()
    if _realise is not None:
        _known_expressions().clear()
        forget_peepholes()
