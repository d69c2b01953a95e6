"""Whether the processor may run at its full clock."""

from __future__ import annotations

from hologram.command_line.doctor.findings import Finding, note, ok, unknown, warning
from hologram.command_line.doctor.machine import Machine

CPUS = "sys/devices/system/cpu"
SLOWS = "Clocks rise late or not at all, so that short kernels run at a part of the speed, and timings vary."
PERFORMANCE = "sudo cpupower frequency-set --governor performance"
_OWN_CONTROL = ("intel_pstate", "amd-pstate", "amd-pstate-epp")  # drivers whose "powersave" leaves the clock to the processor
_POWER_SAVER = "a1841308-3541-4fab-bc81-f71556f20b4a"  # Windows' plan of that name


def governor(machine: Machine) -> Finding:
    """The power governor, and what else of the system saves power."""
    if machine.is_linux:
        return _linux(machine)
    if machine.is_mac:
        return _mac(machine)
    if machine.system == "win32":
        return _windows(machine)
    return unknown(f"{machine.system} is not asked for its power settings")


def _linux(machine: Machine) -> Finding:
    if machine.text("sys/firmware/acpi/platform_profile") == "low-power":
        return warning("the platform profile is low-power", SLOWS, "powerprofilesctl set performance")
    folders = sorted((machine.root / CPUS).glob("cpu[0-9]*/cpufreq"))
    governors = {machine.text(f / "scaling_governor") for f in folders} - {None}
    if not governors:
        return unknown("the system tells of no governor: a virtual machine has the clock that its host gives")
    drivers = {machine.text(f / "scaling_driver") for f in folders} - {None}
    seen = f"governor {', '.join(sorted(map(str, governors)))} ({', '.join(sorted(map(str, drivers))) or 'unknown driver'})"
    if drivers and drivers <= set(_OWN_CONTROL) and "powersave" in governors:
        wishes = {machine.text(f / "energy_performance_preference") for f in folders} & {"power", "balance_power"}
        if wishes:
            return warning(f"{seen}, preference {', '.join(sorted(map(str, wishes)))}", SLOWS, PERFORMANCE)
        return ok(f"{seen}: the processor chooses its clock")
    if governors & {"powersave", "conservative", "userspace"}:
        return warning(seen, SLOWS, PERFORMANCE)
    if "ondemand" in governors:
        return note(seen, "Clocks rise late after a pause, so that timings of short programs vary.", PERFORMANCE)
    return ok(seen)


def _mac(machine: Machine) -> Finding:
    said = machine.command(["pmset", "-g"])
    if said is None:
        return unknown("pmset does not tell the power settings")
    modes = [line.split() for line in said.splitlines()]
    if any(m[0] in ("lowpowermode", "powermode") and m[1] == "1" for m in modes if len(m) > 1):
        return warning("low power mode is on", SLOWS, "Turn it off in System Settings, Battery.")
    return ok("low power mode is off")


def _windows(machine: Machine) -> Finding:
    said = machine.command(["powercfg", "/getactivescheme"])
    if said is None:
        return unknown("powercfg does not tell the power plan")
    if _POWER_SAVER in said.lower():
        return warning("the power plan is the power saver", SLOWS, "powercfg /setactive SCHEME_MIN")
    return ok(said.strip())


def boost(machine: Machine) -> Finding:
    """Whether clocks beyond the nominal one are allowed."""
    if not machine.is_linux:
        return unknown(f"{machine.system} does not tell whether clocks may rise beyond the nominal one")
    for path, off in ((f"{CPUS}/intel_pstate/no_turbo", "1"), (f"{CPUS}/cpufreq/boost", "0")):
        state = machine.text(path)
        if state == off:
            return note(
                f"clocks beyond the nominal one are off (/{path} is {off})",
                "Programs run at the nominal clock. That is well for measuring, and slower than the processor can.",
                f"echo {1 - int(off)} | sudo tee /{path}",
            )
        if state is not None:
            return ok("clocks may rise beyond the nominal one")
    return unknown("the system does not tell whether clocks may rise beyond the nominal one")
