"""The user's lines of the nodes of an FX graph, which reports, profiles and errors show."""

from __future__ import annotations

import os
import re

import torch
from torch import fx

_FRAME = re.compile(r'File "(.+?)", line (\d+)')
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
UNKNOWN = ("graph", 0)


def line_of(node: fx.Node) -> tuple[str, int]:
    """File and line of the innermost frame outside of PyTorch in the stack that Dynamo noted for ``node``, or the innermost frame where all are
    PyTorch's; :data:`UNKNOWN` where it noted none."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    outside = [f for f in frames if not f[0].startswith(_TORCH)]
    if not frames:
        return UNKNOWN
    file, line = (outside or frames)[-1]
    return file, int(line)
