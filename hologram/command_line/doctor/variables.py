"""Environment variables of Hologram."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from hologram.command_line.doctor.findings import Finding, note, ok, problem, warning
from hologram.command_line.doctor.machine import Machine

PREFIX = "HOLOGRAM_"
OTHERS = ("HOLOGRAM_TEST_DEVICE", "HOLOGRAM_TEST_REPORT", "HOLOGRAM_NVRTC")  # of the tests
# what a field costs where it has another value than the default
SLOW = {
    "verify": "each graph, kernel and plan is proved after each pass: compiling takes several times as long",
    "checked": "kernels compare every index, and memory is poisoned and guarded: several times slower",
    "disabled_passes": "passes of the compiler are left out",
    "codegen_level": "compilers optimise less: they take less time, programs more",
    "native": "every call goes through Python",
    "cache": "every process compiles anew",
    "debug": "every call prints",
}
NOTED = {"target": "code is not made for this processor as it is", "hold_limit": "what programs may compute once is limited"}


def without_unreadable(environment: Mapping[str, str], read: Callable[[Mapping[str, str]], Any]) -> dict[str, str]:
    """An environment without the variables at which ``read`` raises ValueError, whose message begins with the variable."""
    left = dict(environment)
    while True:
        try:
            read(left)
        except ValueError as e:
            name = str(e).partition(" ")[0]
            if left.pop(name, None) is None:
                raise
        else:
            return left


def readable(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without the variables that have no value of their setting."""
    from hologram.settings import from_environment

    return without_unreadable(environment, from_environment)


def values(machine: Machine) -> Finding:
    """Whether each variable has a value of its setting."""
    from hologram.settings import from_environment

    wrong = machine.environment.keys() - readable(machine.environment).keys()
    if wrong:
        try:
            from_environment(machine.environment)
        except ValueError as e:
            return problem(str(e), "Programs end with this error when they import Hologram.", f"unset {' '.join(sorted(wrong))}")
    there = [name for name in sorted(machine.environment) if name.startswith(PREFIX)]
    return ok(", ".join(f"{name}={machine.environment[name]}" for name in there) or "none is set")


def names(machine: Machine) -> Finding:
    """Whether there are variables that mean nothing."""
    from dataclasses import fields

    from hologram.settings import Settings, variable

    known = [*(variable(f.name) for f in fields(Settings) if f.init), *OTHERS]
    strange = [name for name in sorted(machine.environment) if name.startswith(PREFIX) and name not in known]
    if not strange:
        return ok("none")
    alike = {name: difflib.get_close_matches(name, known, n=1) for name in strange}
    advice = "; ".join(f"{name}: do you mean {found[0]}?" if found else f"{name}: docs/settings.md lists all" for name, found in alike.items())
    return warning(", ".join(strange), "No setting has this variable, so it does nothing.", advice)


def slow(machine: Machine) -> Finding:
    """Settings that make programs or the compiler slower."""
    from hologram.settings import Settings, from_environment, variable

    asked, default = from_environment(readable(machine.environment)), Settings()
    changed = [f for f in (*SLOW, *NOTED) if getattr(asked, f) != getattr(default, f)]
    if not changed:
        return ok("none")
    seen = ", ".join(f"{variable(f)}={machine.environment[variable(f)]}" for f in changed)
    why = "; ".join(f"{variable(f)}: {(SLOW | NOTED)[f]}" for f in changed)
    advice = f"Unset {', '.join(map(variable, changed))} where speed counts."
    return warning(seen, why, advice) if set(changed) & SLOW.keys() else note(seen, why, advice)
