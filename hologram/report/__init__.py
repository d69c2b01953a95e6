"""Reports: what became of a program, as one page that needs nothing else, and as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hologram.report.data.profiled import profile_data
from hologram.report.data.program import with_profile
from hologram.report.render import page


def write(path: str | os.PathLike[str], data: dict[str, Any], profile: Any = None) -> None:
    """Writes the page of ``data``, which :meth:`hologram.trace.call.stages.Explanation.data` gives. ``profile``: measured times to show in it.

    Raises ArgumentError for a profile of another program, OSError where nothing can be written.
    """
    Path(path).write_text(page(data if profile is None else with_profile(data, profile)), encoding="utf-8")


def write_profile(profile: Any, path: str | os.PathLike[str]) -> None:
    """Writes a page of a profile alone, of all programs that ran: kernels, their lines, the roofline.

    Raises ArgumentError for what is no profile, OSError where nothing can be written.
    """
    Path(path).write_text(page(profile_data(profile)), encoding="utf-8")


def write_json(path: str | os.PathLike[str], data: dict[str, Any]) -> None:
    """Writes ``data`` as JSON."""
    Path(path).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
