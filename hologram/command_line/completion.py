"""Prints a script that teaches a shell to complete commands, options, functions of scripts and stages.

  bash        eval "$(hologram completion bash)" in ~/.bashrc
  zsh         eval "$(hologram completion zsh)" in ~/.zshrc, after compinit
  fish        hologram completion fish > ~/.config/fish/completions/hologram.fish
  powershell  hologram completion powershell | Out-String | Invoke-Expression

It needs the package argcomplete: pip install "hologram-compute[cli]".
"""

from __future__ import annotations

import argparse
from typing import Any

from hologram.command_line.options import add_json
from hologram.command_line.result import CommandError, Result, Status

HELP = "a script that teaches a shell to complete"
SHELLS = ("bash", "zsh", "fish", "powershell")


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_json(command)
    command.add_argument("shell", choices=SHELLS)


def run(options: argparse.Namespace) -> Result:
    script = _argcomplete().shellcode(["hologram"], shell=options.shell)
    return Result({"shell": options.shell, "script": script}, [script.strip("\n")])


def complete(parser: argparse.ArgumentParser) -> None:
    """Answers the shell, which asks by environment variables, and ends the process; without argcomplete there is no answer."""
    try:
        _argcomplete().autocomplete(parser)
    except CommandError:
        return


def _argcomplete() -> Any:
    try:
        import argcomplete
    except ImportError as e:
        raise CommandError('completion needs argcomplete: pip install "hologram-compute[cli]"', Status.MISSING) from e
    return argcomplete
