"""What devices did, as records: the kernels of their programs, and copies, also those of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hologram.backends.timing import Command
from hologram.graph.compilation import Compilation
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.lower.steps import all_steps
from hologram.profiling.facts import Facts, facts_of
from hologram.profiling.records import Event, Kernel, Measured, Program


def add_devices(measured: Measured, commands: Sequence[Command], start: int) -> None:
    """Adds programs, kernels and events of devices. ``start``: when the profile began, in nanoseconds. Waits until devices have done all of it."""
    devices = _Devices(measured)
    for c in commands:
        times = _times_of(c)
        kernel = devices.kernel_of(c)
        k = measured.kernels[kernel]
        k.calls += 1
        if times is not None:
            seconds = (times[1] - times[0]) * 1e-9
            k.seconds, k.longest_seconds = (k.seconds or 0.0) + seconds, max(k.longest_seconds or 0.0, seconds)
            k.threads[c.thread] = k.threads.get(c.thread, 0.0) + seconds
            measured.programs[k.program].seconds += seconds
            measured.events.append(Event(k.name, "launch", (times[0] - start) * 1e-9, seconds, c.thread, k.program, kernel))
    for program in devices.made:
        own = [k for k in measured.kernels if measured.programs[k.program] is program]
        program.calls = max((k.calls for k in own if k.parent is None and k.kind != "transfer"), default=0)


def _times_of(c: Command) -> tuple[float, float] | None:
    """When a command ran; None where that is not known, or it failed: whoever waits for what it computes is told why."""
    if c.times is None:
        return None
    try:
        return c.times()
    except Exception:  # noqa: BLE001  of any driver
        return None


class _Devices:
    """The numbers of kernels, those of a program added when it first launches one."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        self.made: list[Program] = []
        self._steps: dict[tuple[str, int], int] = {}  # by device and step
        self._copies: dict[tuple[str, str, int], int] = {}
        self._transfers: dict[str, int] = {}  # the program of a device's copies

    def kernel_of(self, c: Command) -> int:
        if not isinstance(c.what, tuple):
            return self._copy(c)
        compilation, step = c.what
        found = self._steps.get((c.device, id(step)))
        if found is None:
            self._add(c.device, compilation, step)
            found = self._steps[c.device, id(step)]
        return found

    def _copy(self, c: Command) -> int:
        """A kernel for each kind and size of copies."""
        key = c.device, c.what or "launch", c.nbytes
        if key not in self._copies:
            if c.device not in self._transfers:
                self._transfers[c.device] = self._program("copies", c.device)
            kind = "transfer" if c.nbytes else "kernel"
            self._copies[key] = self._kernel(self._transfers[c.device], len(self._copies), Facts(key[1], kind, bytes=c.nbytes or None), 0)
        return self._copies[key]

    def _add(self, device: str, compilation: Compilation, step: Any) -> None:
        main = compilation.execution_plan
        plan = next((p for p in (main, main.initializer) if p is not None and _has(p, step)), None)
        if plan is None:  # no plan's: a copy that a loop makes
            self._steps[device, id(step)] = self._kernel(
                self._program(compilation.traced.name or "expression", device), 0, Facts("kernel", "kernel"), 0
            )
            return
        number, first = self._program(compilation.traced.name or "expression", device), len(self.measured.kernels)
        for n, (s, facts) in enumerate(zip(all_steps(plan.steps), facts_of(plan), strict=True)):
            self._steps[device, id(s)] = self._kernel(number, n, facts, first)

    def _program(self, name: str, device: str) -> int:
        self.made.append(Program(name, device, 0, 0.0))
        self.measured.programs.append(self.made[-1])
        return len(self.measured.programs) - 1

    def _kernel(self, program: int, step: int, f: Facts, first: int) -> int:
        parent = None if f.parent is None else first + f.parent
        made = Kernel(
            f.name, f.kind, program, step, 0, None, None, 0.0, {}, 0, 0, f.bytes, f.flops, list(f.lines), dict(f.tile), parent, f.itemsize
        )  # fmt: skip
        self.measured.kernels.append(made)
        return len(self.measured.kernels) - 1


def _has(plan: ExecutionPlan, step: Any) -> bool:
    return any(s is step for s in all_steps(plan.steps))
