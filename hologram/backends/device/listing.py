"""Numbered source, for the errors of compilers."""

from __future__ import annotations

import re

_CONTEXT_LINES = 6  # around a line that the compiler complains of
_NAMED = re.compile(r"[:(](\d+)[:)]")  # "<source>:12:3: error: …", "program.cu(12): error: …"


def numbered(source: str, log: str) -> str:
    """Numbered lines of ``source``: those around each that ``log`` names, all where it names none."""
    lines = source.splitlines()
    found = [_NAMED.search(message) for message in log.splitlines()]
    named = {n for m in found if m is not None and 0 < (n := int(m[1])) <= len(lines)}
    wanted = [i for i in range(1, len(lines) + 1) if not named or any(abs(i - n) <= _CONTEXT_LINES for n in named)]
    return "\n".join(f"{'>' if i in named else ' '}{i:5} {lines[i - 1]}" for i in wanted)
