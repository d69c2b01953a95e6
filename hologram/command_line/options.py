"""Options that commands share."""

from __future__ import annotations

import argparse


def add_json(command: argparse.ArgumentParser) -> None:
    """The option that every command has."""
    command.add_argument("--json", action="store_true", help="print one JSON document, and all else to standard error")
