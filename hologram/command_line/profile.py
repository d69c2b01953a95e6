"""Runs a script as `python script.py ARGUMENTS` would, and tells where its time went, kernel by kernel.

Options of the profiler stand before the script; what follows the script belongs to it. The exit status is the script's.
"""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from hologram.command_line.options import add_json
from hologram.command_line.result import CommandError, Result, Status, late_method
from hologram.command_line.scripts import Ended, run_script

HELP = "run a script and tell where its time goes"
OWN_OPTIONS = ("--trace", "--html")  # which no script is likely to want under a profiler


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_json(command)
    command.add_argument("--trace", type=Path, metavar="FILE", help="write a trace for https://ui.perfetto.dev, too")
    command.add_argument("--html", type=Path, metavar="FILE", help="write a page with the table, the time line and the roofline, too")
    command.add_argument("script", type=Path, help="a Python script")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(options: argparse.Namespace) -> Result:
    if not options.script.is_file():
        raise CommandError(f"there is no script {options.script}")
    with _profiler() as measured:
        ended = run_script(options.script, options.arguments)
    _tell(ended)
    _tell_of_late_options(options.arguments)
    if options.trace is not None:
        measured.to_perfetto(options.trace)
    if options.html is not None:
        late_method(measured, "html")(options.html)
    data = {"script": str(options.script), "status": ended.status, "profile": measured.as_dict()}
    return Result(data, [measured.table()], ended.status)


def _profiler() -> AbstractContextManager[Any]:
    import hologram

    profile = getattr(hologram, "profile", None)
    if profile is None:
        raise CommandError("this version of Hologram has no profiler (hg.profile)", Status.MISSING)
    return profile()


def _tell_of_late_options(arguments: list[str]) -> None:
    """A script ignores perhaps what was meant for the profiler."""
    import sys

    for a in arguments:
        if a.partition("=")[0] in OWN_OPTIONS:
            print(f"{a} stands behind the script, so the script had it: hologram profile {a} FILE script.py", file=sys.stderr)


def _tell(ended: Ended) -> None:
    """The traceback of the error that ended the script, where one did."""
    import sys
    import traceback

    from hologram.support.user_lines import user_traceback

    if isinstance(ended.error, Exception):
        traceback.print_exception(ended.error.with_traceback(user_traceback(ended.error)))
    elif ended.error is not None:
        print(f"{type(ended.error).__name__}", file=sys.stderr)
