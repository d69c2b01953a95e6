"""Scripts and modules of users: finds a function in one, or runs one from its first line to its last."""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import importlib.util
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from hologram.command_line.result import CommandError, Status

MODULE_NAME = "__hologram_script__"  # of a script that is loaded, not run: it is not __main__


def function_at(target: str) -> Any:
    """What ``script.py:name``, or ``package.module:name``, means; ``name`` may go on with attributes (``model.apply``). The script is loaded as by an
    import, without its ``__main__`` part. Raises CommandError where there is no such thing, and what the script raises."""
    place, colon, name = target.rpartition(":")
    if not colon or not all(part.isidentifier() for part in name.split(".")):
        raise CommandError(f"{target!r} does not name a function: write script.py:function or package.module:function")
    module = _loaded(place)
    try:
        found = functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        raise CommandError(f"{place} has no {name!r}{_instead(module, name)}") from None
    if not callable(found):
        raise CommandError(f"{name!r} in {place} is {type(found).__name__}, which is not callable{_instead(module, name)}")
    return found


def _loaded(place: str) -> ModuleType:
    """The module that a path or a dotted name means."""
    path = Path(place)
    is_script = path.suffix == ".py" or path.is_file()
    if not is_script and not all(part.isidentifier() for part in place.split(".")):
        raise CommandError(f"{place!r} is neither a script nor the name of a module")
    if is_script and not path.is_file():
        raise CommandError(f"there is no script {place}")
    try:
        return _load_script(path) if is_script else _load_module(place)
    except SystemExit as e:
        raise CommandError(
            f"{place} ended the process while it was loaded (exit status {e.code}), before {MODULE_NAME!r} was there", Status.FOUND
        ) from e


def _load_script(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path.resolve())
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is no Python script: its name ends in {path.suffix!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE_NAME] = module  # dataclasses and pickles look there
    sys.path.insert(0, str(path.resolve().parent))  # as `python script.py` does
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` does
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name is not None and (name + ".").startswith(e.name + "."):
            raise CommandError(f"there is no module {e.name!r}, from {os.getcwd()}") from e
        raise


def _instead(module: ModuleType, name: str) -> str:
    """What else a module offers: names that are alike, else all functions that it defines."""
    own = [n for n, x in vars(module).items() if callable(x) and not n.startswith("_") and not isinstance(x, type)]
    own = [n for n in own if _module_of(vars(module)[n]) == module.__name__] or own
    names = difflib.get_close_matches(name, own, n=3) or own[:10]
    return f"; there is {', '.join(names)}" if names else ""


def _module_of(function: Any) -> str | None:
    """The module that defines a function, which may be jitted."""
    return getattr(getattr(function, "__wrapped__", function), "__module__", None)


# --- running -------------------------------------------------------------------------------------------------------------------------------


class Ended(NamedTuple):
    """How a script ended: its exit status, and the error that it did not catch."""

    status: int
    error: BaseException | None = None


def run_script(path: Path, arguments: Sequence[str]) -> Ended:
    """Runs a script as ``python script.py arguments`` does: as ``__main__``, with its folder first on the path."""
    with _as_process(path, arguments):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as e:
            return Ended(_status(e.code))
        except KeyboardInterrupt as e:
            return Ended(Status.INTERRUPTED, e)
        except Exception as e:
            return Ended(Status.FOUND, e)
    return Ended(Status.FINE)


def _status(code: Any) -> int:
    """What Python makes of an argument of ``sys.exit``."""
    if code is None or isinstance(code, int):
        return int(code or 0)
    print(code, file=sys.stderr)
    return 1


@contextlib.contextmanager
def _as_process(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    argv, search = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, search
