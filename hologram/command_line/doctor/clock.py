"""What it costs to ask for the time."""

from __future__ import annotations

from hologram.command_line.doctor.findings import Finding, ok, warning
from hologram.command_line.doctor.machine import Machine

SLOW = 1e-6  # seconds: of a kernel of 5 µs that is a fifth
SLOW_SOURCES = ("hpet", "acpi_pm", "refined-jiffies", "jiffies", "pit")
CALLS, ATTEMPTS = 1000, 3
WHY = "Profiles and benchmarks of short calls measure the clock, and PyTorch, loggers and the like ask for the time often."


def clock(machine: Machine) -> Finding:
    """The kernel's clock source, and the cost of a question."""
    source = machine.text("sys/devices/system/clocksource/clocksource0/current_clocksource") if machine.is_linux else None
    cost = min(_cost(machine) for _ in range(ATTEMPTS))
    seen = f"{source or 'the clock of the system'}, {cost * 1e9:.0f} ns a question"
    if source in SLOW_SOURCES:
        return warning(seen, WHY, "The kernel found the TSC unreliable (`dmesg | grep -i tsc`): tsc=reliable on its command line, or another host.")
    return (
        warning(seen, WHY, "The clock is read by a call of the system: look for a sandbox (gVisor, seccomp) or a host without vDSO.")
        if cost > SLOW
        else ok(seen)
    )


def _cost(machine: Machine) -> float:
    start = machine.clock()
    for _ in range(CALLS):
        end = machine.clock()
    return (end - start) / CALLS
