"""``hg.profile``: a block, or a call, in which compiled programs count their time."""

from __future__ import annotations

import functools
import importlib
import json
import os
from collections.abc import Callable
from typing import Any, overload

from hologram.errors import ArgumentError
from hologram.profiling import perfetto
from hologram.profiling.records import Event, Kernel, Measured, Phase, Program
from hologram.profiling.session import Session
from hologram.profiling.table import Table
from hologram.support.user_lines import located
from hologram.trace.checks import as_function
from hologram.trace.lazy import block_until_ready


class Profile:
    """What a block took, filled when the block ends, also where an exception ends it. ``result`` is what a call gave that was profiled.

    Reading it before is an ArgumentError.
    """

    result: Any = None

    def __init__(self) -> None:
        self._session: Session | None = None
        self._measured: Measured | None = None

    def __enter__(self) -> Profile:
        if self._session is not None or self._measured is not None:
            raise located(ArgumentError("this profile was made already: hg.profile() makes another"))
        self._session = Session()
        self._session.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._measured = session.stop()

    def __str__(self) -> str:
        return "<a profile under way>" if self._measured is None else str(self.table())

    __repr__ = __str__

    @property
    def measured(self) -> Measured:
        """All records. Raises ArgumentError before the block has ended."""
        if self._measured is None:
            raise located(ArgumentError("this profile has no times yet: it is filled when its block ends"))
        return self._measured

    @property
    def seconds(self) -> float:
        """How long the block took."""
        return self.measured.seconds

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels, and other steps, of all programs that ran, in the order of their programs."""
        return self.measured.kernels

    @property
    def programs(self) -> list[Program]:
        """The programs that ran."""
        return self.measured.programs

    @property
    def phases(self) -> list[Phase]:
        """What compiling took, in the order in which phases ended."""
        return self.measured.phases

    @property
    def events(self) -> list[Event]:
        """Calls, launches and the work of threads on them, on the time line; the latest of each thread."""
        return self.measured.events

    def table(self) -> Table:
        """The kernels by their time, to be printed; by rich, if it is installed."""
        return Table(self.measured)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, which JSON can hold."""
        return self.measured.as_dict()

    def to_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Writes the time line as trace events in JSON, which https://ui.perfetto.dev opens. Raises OSError where the file cannot be written."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(perfetto.trace(self.measured), file)

    def html(self, path: str | os.PathLike[str]) -> None:
        """Writes a page with the table, the time line and the roofline, in one file. Raises ArgumentError where this installation draws no pages."""
        self.measured  # noqa: B018  which raises
        try:
            report = importlib.import_module("hologram.report")
            write = report.write_profile
        except (ImportError, AttributeError):
            raise located(ArgumentError("p.html() needs hologram.report, which this installation lacks: p.to_perfetto() writes a trace")) from None
        write(self, path)


@overload
def profile(f: None = None, *, calls: int = 1) -> Profile: ...
@overload
def profile(f: Callable[..., Any], *, calls: int = 1) -> Callable[..., Profile]: ...
def profile(f: Callable[..., Any] | None = None, *, calls: int = 1) -> Any:
    """Measures where the time of compiled programs goes: each kernel on each thread, loops, host routines, copies, compiling.

    ``with hg.profile() as p:`` measures all that runs in the block, in any thread: jitted functions, lazy Tensors, programs on devices.
    ``hg.profile(f)(*args)`` measures a call of ``f``, or as many ``calls``, and gives the :class:`Profile`, whose ``result`` is the last result.

    Programs are compiled once more for it, with counters, so the first profile of a program also shows its compilation; results have the same
    bits.

    Raises ArgumentError for what is no function, and for ``calls`` below 1.

    >>> p = hg.profile(hg.jit(lambda x: hnp.sum(x * x)))(np.ones(8, np.float32))
    >>> p.result
    Tensor(8., dtype=float32)
    >>> [(k.name, k.calls, k.flops) for k in p.kernels]
    [('reduce_sum', 1, 16)]
    """
    if f is None:
        return Profile()
    if type(calls) is not int or calls < 1:
        raise located(ArgumentError(f"profile: calls is a number of calls, 1 or more, not {calls!r}"))
    function = as_function(f, "profile")

    @functools.wraps(function)
    def measured(*args: Any, **options: Any) -> Profile:
        with Profile() as made:
            for _ in range(calls):
                made.result = block_until_ready(function(*args, **options))
        return made

    return measured
