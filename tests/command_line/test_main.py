"""The parser, exit statuses, and what is printed where."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hologram.command_line import main as command_line
from hologram.command_line.main import COMMANDS, main, parser
from hologram.command_line.result import CommandError, Result, Status, Table
from hologram.errors import ShapeError


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Result]], None]:
    """Puts a function in the place of the command ``info``."""
    return lambda run: monkeypatch.setattr("hologram.command_line.info.run", lambda options: run())


def every_command(made: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """The parsers of commands that have no commands of their own."""
    inner = [p for a in made._actions if isinstance(a, argparse._SubParsersAction) for p in a.choices.values()]
    return [q for p in inner for q in every_command(p)] if inner else [made]


def test_every_command_takes_json_and_has_help() -> None:
    commands = every_command(parser())
    assert len(commands) == len(COMMANDS) + 3  # those of the cache
    for c in commands:
        assert "--json" in c._option_string_actions and (c.description or "").strip()


def test_help_loads_neither_numpy_nor_llvm() -> None:
    code = "import sys; from hologram.command_line.main import parser; parser().format_help(); print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not [m for m in ("numpy", "llvmlite", "networkx", "rich", "argcomplete", "torch") if f"'{m}'" in loaded]


def test_wrong_use_is_argparse_s(capsys: Any) -> None:
    for arguments in ([], ["inform"], ["info", "--jsn"], ["cache"], ["cache", "clear", "--older-than", "-1"], ["bench", "--seconds", "nan"]):
        with pytest.raises(SystemExit) as e:
            main(arguments)
        assert e.value.code == Status.WRONG_USE and "usage: hologram" in capsys.readouterr().err


def raises(error: BaseException) -> Callable[[], Result]:
    def run() -> Result:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (CommandError("there is no such thing"), Status.WRONG_USE, "hologram info: there is no such thing"),
        (CommandError("not installed", Status.MISSING), Status.MISSING, "not installed"),
        (ShapeError("shapes differ"), Status.FOUND, "hologram info: ShapeError: shapes differ"),
        (KeyError("x"), Status.FOUND, "Traceback"),
        (KeyboardInterrupt(), Status.INTERRUPTED, ""),
    ],
)
def test_errors(command: Any, capsys: Any, error: BaseException, status: int, said: str) -> None:
    command(raises(error))
    assert main(["info"]) == status
    out, err = capsys.readouterr()
    assert said in err and not out
    assert main(["info", "--json"]) == status
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == status and found["error"] == {"type": type(error).__name__, "message": str(error)}


def test_a_dependency_that_is_missing() -> None:
    code = "import sys; sys.modules['llvmlite'] = None; from hologram.command_line.main import main; sys.exit(main(['cache', 'size']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (Status.MISSING, "") and "`hologram doctor` tells more" in done.stderr and "Traceback" not in done.stderr


def test_a_result_is_shown_or_printed_as_json(command: Any, capsys: Any) -> None:
    made = Result({"n": 1, "x": float("inf"), "p": Path("a")}, ["text", Table("title", [("a", "1"), ("bc", "20")], ("name", "n"), frozenset([1]))], 1)
    command(lambda: made)
    assert main(["info"]) == 1
    assert capsys.readouterr().out == "text\n\ntitle\n  name   n\n  a      1\n  bc    20\n"
    assert main(["info", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["command"], found["n"], found["x"], found["p"]) == ("info", 1, None, "a")


def test_tables_on_a_terminal_keep_brackets(command: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    command(lambda: Result({}, [Table("", [("f32[n]", "[red]")], ("type", "x"), styles=["green"])]))
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    assert "f32[n]" in out and "[red]" in out


def test_a_console_that_lacks_a_character() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "HOLOGRAM_CASHE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "hologram", "doctor", "--only", "unknown variables"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1 and "warning ? unknown variables: HOLOGRAM_CASHE" in done.stdout


def test_standard_output_has_the_document_alone(tmp_path: Path) -> None:
    """Prints of user code, of processes that it starts and of native code go to standard error."""
    script = tmp_path / "talks.py"
    script.write_text(
        "import os, sys\nprint('python')\nos.write(1, b'native\\n')\nos.system('echo process')\ndef f(x):\n    print('traced')\n    return x + 1\n"
    )
    arguments = ["explain", f"{script}:f", "--shapes", "f32[3]", "--json"]
    done = subprocess.run([sys.executable, "-m", "hologram", *arguments], capture_output=True, text=True)
    assert json.loads(done.stdout)["function"] == f"{script}:f" and done.returncode == 0
    assert all(word in done.stderr for word in ("python", "native", "process", "traced"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash has PIPESTATUS")
def test_a_reader_that_leaves_is_no_error() -> None:
    code = f"{sys.executable} -m hologram cache list | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_setting_that_cannot_be_read() -> None:
    environment = os.environ | {"HOLOGRAM_NUM_THREADS": "all"}
    done = subprocess.run([sys.executable, "-m", "hologram", "cache", "size"], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (Status.WRONG_USE, "")
    assert done.stderr == "hologram cache: HOLOGRAM_NUM_THREADS must be an integer, not 'all'\n"


def test_the_script_and_the_module_are_one() -> None:
    from hologram import __main__

    assert isinstance(__main__, types.ModuleType) and __main__.main is command_line.main
