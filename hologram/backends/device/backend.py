"""Devices as backends: the text of all kernels of a program in the device's dialect, and how it is built and loaded."""

from __future__ import annotations

from typing import Any, NamedTuple

from hologram.backends.base import tell_program
from hologram.backends.c.source import Program
from hologram.backends.device.code import DeviceCode, all_kernels, line_of
from hologram.backends.device.executable import Executable
from hologram.errors import DeviceError, UnsupportedError
from hologram.graph.compilation import Compilation
from hologram.graph.lower.control_step import ControlStep
from hologram.support import debug


class DeviceBackend(NamedTuple):
    """Generates code for ``device``, and loads it there."""

    device: Any

    @property
    def tile(self) -> Any:
        return self.device.tile

    def generate(self, compilation: Compilation) -> DeviceCode:
        """The text of all kernels. Raises UnsupportedError, which says which op the device lacks and the user's line, and DeviceError for a precision
        or a type that the device does not have."""
        device, plan = self.device, compilation.execution_plan
        if any(isinstance(s, ControlStep) and s.is_symbolic for s in plan.steps):
            what = "loops and branches of symbolic shapes"
            raise UnsupportedError(f"{device.name} does not run {what}: leave dynamic or device out (at {line_of(compilation.traced)})")
        if compilation.tiled and any(k.kernel.untiled for k in all_kernels(plan)):
            raise UnsupportedError(f"{device.name} has tiles for products of known sizes alone (at {line_of(compilation.traced)})")
        with debug.timed("lowering"):
            try:
                program = Program([s.kernel for s in all_kernels(plan)], device.dialect.name, compilation.precision)
            except UnsupportedError as e:
                raise UnsupportedError(f"{device.name}: {e}: leave device out for the CPU (at {line_of(compilation.traced)})") from None
        reason = device.why_not(compilation.precision, program.double)
        if reason is not None:
            raise DeviceError(f"{device!r} cannot run this: {reason}")
        return DeviceCode(compilation, program)

    def load(self, code: DeviceCode) -> Any:
        """The executable of generated code, whose kernels the device's own compiler builds. Raises CompileError with that compiler's words."""
        device = self.device
        tell_program(code.compilation, lambda: device, code.program.dialect.name, lambda: code.program.text)  # also of what cannot be built
        names = sorted(set(code.program.names.values()))
        with debug.timed("code generation"):
            kernels = device.translated(lambda: device.build(code.program.text, names))
        return (device.executable or Executable)(device.runtime, code, kernels)

    def storage(self, source: Any) -> Any:
        """A storage on the device with the values of one elsewhere."""
        return self.device.runtime.put(source)
