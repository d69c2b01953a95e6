"""The command line: ``hologram info``, or ``python -m hologram info``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hologram import information
from hologram.version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command. Gives the exit status."""
    parser = argparse.ArgumentParser(prog="hologram", description="An array compiler.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    info = commands.add_parser("info", help="versions, devices and their drivers, rates, caches, the pool, threads")
    info.add_argument("--measure", action="store_true", help="measure the rates of devices that have none yet")
    options = parser.parse_args(arguments)
    _show(information.sections(options.measure))
    return 0


def _show(found: dict[str, list[information.Row]]) -> None:
    """In tables on a terminal with ``rich``, else as plain text."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.table import Table
        except ImportError:
            pass
        else:
            for title, rows in found.items():
                table = Table("", "", title=title, title_justify="left", show_header=False)
                for row in rows:
                    table.add_row(*row)
                Console().print(table)
            return
    print(information.as_text(found))


if __name__ == "__main__":
    sys.exit(main())
