"""Scripts of users: found, loaded and run as Python does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hologram.command_line.result import CommandError
from hologram.command_line.scripts import MODULE_NAME, function_at, run_script


@pytest.fixture(autouse=True)
def same_path() -> Iterator[None]:
    """What a script's loading changes is changed back."""
    search, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = search
    for name in set(sys.modules) - modules:
        if name in (MODULE_NAME, "beside", "package", "package.inner"):
            del sys.modules[name]


def test_a_script_is_loaded_as_by_an_import(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def one():\n    return 1\n")
    path = tmp_path / "script.py"
    path.write_text("import dataclasses, beside\n@dataclasses.dataclass\nclass A:\n    f: 'int' = 2\n    def g(self):\n        return self.f\n"
                    "a = A()\none = beside.one\nassert __name__ != '__main__'\n")  # fmt: skip
    assert function_at(f"{path}:one")() == 1
    assert function_at(f"{path}:a.g")() == 2


def test_a_module_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "inner.py").write_text("def f():\n    return 3\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    assert function_at("package.inner:f")() == 3


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("script.py", "write script.py:function"),
        ("script.py:", "write script.py:function"),
        ("script.py:3", "write script.py:function"),
        (":f", "is neither a script nor"),
        ("nowhere.py:f", "there is no script nowhere.py"),
        ("no_such_module:f", "there is no module 'no_such_module'"),
        ("os.no_such_module:f", "there is no module 'os.no_such_module'"),
        ("a-b:f", "is neither a script nor"),
        ("script.py:number", "'number' in script.py is int, which is not callable; there is function, other"),
        ("script.py:functoin", "has no 'functoin'; there is function"),
        ("script.py:nothing_like_it", "there is function, other"),
        ("ends.py:f", "ended the process while it was loaded (exit status 4)"),
        ("text.txt:f", "no Python script"),
    ],
)
def test_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text("from math import sqrt\nnumber = 1\ndef function(): pass\ndef other(): pass\ndef _hidden(): pass\n")
    Path("ends.py").write_text("import sys\nsys.exit(4)\n")
    Path("text.txt").write_text("text")
    with pytest.raises(CommandError) as e:
        function_at(target)
    assert said in str(e.value)


def test_an_import_that_fails_inside_is_the_user_s_error(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("import no_such_module\n")
    with pytest.raises(ModuleNotFoundError):
        function_at(f"{path}:f")


def test_a_script_runs_as_main(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "beside.py").write_text("x = 5\n")
    path = tmp_path / "script.py"
    path.write_text("import sys, beside\nprint(__name__, sys.argv[1:], beside.x, sys.argv[0] == __file__)\n")
    argv, search = list(sys.argv), list(sys.path)
    assert run_script(path, ["a", "--json"]) == (0, None)
    assert capsys.readouterr().out == "__main__ ['a', '--json'] 5 True\n"
    assert (sys.argv, sys.path) == (argv, search)


@pytest.mark.parametrize(
    ("text", "status", "error"),
    [
        ("import sys; sys.exit(5)", 5, None),
        ("import sys; sys.exit()", 0, None),
        ("raise SystemExit('no')", 1, None),
        ("1 / 0", 1, ZeroDivisionError),
        ("raise KeyboardInterrupt", 130, KeyboardInterrupt),
        ("def (", 1, SyntaxError),
    ],
)
def test_how_a_script_ends(tmp_path: Path, text: str, status: int, error: type[BaseException] | None) -> None:
    path = tmp_path / "script.py"
    path.write_text(text)
    ended = run_script(path, [])
    assert ended.status == status and (ended.error is None if error is None else isinstance(ended.error, error))
