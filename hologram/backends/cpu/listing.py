"""An assembly listing, cut into its functions."""

from __future__ import annotations

import re

_LABEL = re.compile(r"^_?([A-Za-z_]\w*):")  # a leading underscore: symbols of Mach-O
_LEFT_OUT = re.compile(r"^\s*\.(?!L)|^\s*[#;/]|^\s*$")  # directives and comments


def functions(assembly: str) -> dict[str, str]:
    """The instructions and labels of each function, without directives."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in assembly.splitlines():
        label = _LABEL.match(line)
        if label is not None:
            lines = found.setdefault(label[1], [])
        elif line.lstrip().startswith(".section"):
            lines = []  # constants of the next function
        elif not _LEFT_OUT.match(line):
            lines.append(line.replace("\t", "  ").rstrip())
    return {name: "\n".join(lines) for name, lines in found.items()}
