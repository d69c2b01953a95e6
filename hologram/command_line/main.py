"""``hologram COMMAND``: the parser, and what becomes of results and errors."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

from hologram.command_line.output import print_json, show, to_stderr
from hologram.command_line.result import CommandError, Result, Status
from hologram.version import __version__

COMMANDS = ("info", "explain", "profile", "bench", "cache", "doctor", "completion")
STATUSES = """exit status:
  0    fine
  1    the command ran and found something wrong, or your code raised an error
  2    wrong use; of the doctor: a problem
  3    a part that the command needs is not installed
  130  interrupted
"""


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    made = argparse.ArgumentParser(
        prog="hologram", description="An array compiler.", epilog=STATUSES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--version", action="version", version=__version__)
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        module = importlib.import_module(f"hologram.command_line.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command. Gives the exit status."""
    made = parser()
    if "_ARGCOMPLETE" in os.environ:
        from hologram.command_line.completion import complete

        complete(made)
    options = made.parse_args(arguments)
    try:
        result = _run(options)
        if options.json:
            print_json({"command": options.command, "version": __version__, **result.data})
        else:
            show(result)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has seen enough
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Status.FINE
    return int(result.status)


def _run(options: argparse.Namespace) -> Result:
    """The command's result, or what there is to say of its failure, which standard error says in any case."""
    try:
        with to_stderr(options.json):
            _check_settings(options.command)
            return options.run(options)
    except CommandError as e:
        print(f"hologram {options.command}: {e}", file=sys.stderr)
        return _failure(e, e.status)
    except KeyboardInterrupt as e:
        return _failure(e, Status.INTERRUPTED)
    except BrokenPipeError:
        raise
    except Exception as e:
        return _failure(e, _tell(options.command, e))


def _failure(error: BaseException, status: int) -> Result:
    return Result({"error": {"type": type(error).__name__, "message": str(error)}, "status": int(status)}, (), status)


def _check_settings(command: str) -> None:
    """Raises CommandError where an environment variable has no value of its setting; the doctor tells of it in its own way."""
    if command in ("doctor", "completion"):
        return
    try:
        importlib.import_module("hologram.settings")
    except ValueError as e:
        raise CommandError(str(e)) from None


def _tell(command: str, error: Exception) -> Status:
    """Says what went wrong, and gives the exit status: of Hologram's errors a line, which names the user's; of what cannot be imported, though the
    user's code does not import it, where to look; of another error its traceback from the first line of user code on."""
    from hologram.errors import HologramError
    from hologram.support.user_lines import user_traceback

    place = user_traceback(error)
    if isinstance(error, HologramError):
        print(f"hologram {command}: {type(error).__name__}: {error}", file=sys.stderr)
    elif isinstance(error, ImportError) and place is None:
        print(f"hologram {command}: {error}; `hologram doctor` tells more", file=sys.stderr)
        return Status.MISSING
    else:
        traceback.print_exception(error.with_traceback(place or error.__traceback__))
    return Status.FOUND
