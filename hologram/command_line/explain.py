"""Shows what becomes of a function: how it is traced, reduced, fused, planned and compiled. The function is not run.

  hologram explain script.py:function --shapes "f32[32,128], f32[128]"
  hologram explain package.module:function --shapes "{w: f32[128,10]}, f32[32,128], axis=1" --stage kernels

A script is loaded as by an import, without its __main__ part. Numbers, strings, True, False and None are a part of the program, as static arguments
of jit are, unless the function is jitted already; f32[] is a number that calls give.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import json
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from hologram.command_line.array_types import Arguments, arguments_of
from hologram.command_line.options import add_json
from hologram.command_line.result import CommandError, Result, Status, late_method
from hologram.command_line.scripts import function_at

HELP = "what becomes of a function: traced, reduced, fused, planned, compiled"
SUMMARY = "summary"
STAGES = (SUMMARY, "trace", "canonical", "legalized", "folded", "groups", "kernels", "plan", "llvm", "asm")
PRECISIONS = ("exact", "standard", "fast", "tf32")


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_json(command)
    target = command.add_argument("function", help="script.py:function or package.module:function")
    target.completer = _complete_function  # type: ignore[attr-defined]  # argcomplete asks for it
    command.add_argument("--shapes", default="", metavar="ARGUMENTS", help='types of the arguments: "f32[32,128], i64[], 0.5, axis=1"')
    stage = command.add_argument(
        "--stage", default=SUMMARY, metavar="STAGE", help=f"one of {', '.join(STAGES)}, or a pass of the compiler (default: %(default)s)"
    )
    stage.completer = lambda prefix, **_: [s for s in STAGES if s.startswith(prefix)]  # type: ignore[attr-defined]
    command.add_argument("--device", help="compile for this device; `hologram info` lists them")
    command.add_argument("--precision", choices=PRECISIONS)
    command.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page, too")


def run(options: argparse.Namespace) -> Result:
    arguments = arguments_of(options.shapes)
    explanation = _explained(options, function_at(options.function), arguments)
    text = _stage(explanation, options.stage)
    shown = [text]
    if options.html is not None:
        late_method(explanation, "html")(options.html)
        shown.append(f"\n{options.html} written")
    return Result(_data(options, explanation, arguments, text) if options.json else {}, shown)


def _explained(options: argparse.Namespace, function: Any, arguments: Arguments) -> Any:
    """The Explanation of a function called with these arguments. Raises CommandError where they are not its own."""
    import hologram as hg
    from hologram.trace.call.jit import Jitted

    asked = {name: getattr(options, name) for name in ("device", "precision") if getattr(options, name) is not None}
    if asked and isinstance(function, Jitted):
        raise CommandError(f"{options.function} is jitted: its {' and '.join(asked)} are set there")
    with contextlib.suppress(ValueError, TypeError):  # a callable whose signature is not known
        signature = inspect.signature(getattr(function, "__wrapped__", function))
        try:
            signature.bind(*arguments.positional, **arguments.keywords)
        except TypeError as e:
            raise CommandError(f"{options.function} takes {signature}: {e}; --shapes gives the types of its arguments") from None
    _check_device(options.device)
    jitted = function if isinstance(function, Jitted) else hg.jit(function, **_statics(arguments), **asked)
    return hg.explain(jitted)(*arguments.positional, **arguments.keywords)


def _check_device(name: str | None) -> None:
    """Raises CommandError for a device that is not there; its status says whether a part is missing or the name is wrong."""
    from hologram.errors import DeviceError
    from hologram.ir.devices import modules, resolve

    if name is None:
        return
    try:
        resolve(name)
    except DeviceError as e:
        raise CommandError(str(e), Status.MISSING if name.partition(":")[0] in modules() else Status.WRONG_USE) from None


def _statics(arguments: Arguments) -> dict[str, Any]:
    """Plain values are a part of the program: an axis or a flag is known while the function is traced."""
    positions = [i for i, x in enumerate(arguments.positional) if _is_plain(x)]
    return {"static_argnums": positions, "static_argnames": [name for name, x in arguments.keywords.items() if _is_plain(x)]}


def _is_plain(x: Any) -> bool:
    return all(map(_is_plain, x)) if isinstance(x, tuple) else x is None or isinstance(x, (bool, int, float, str))


def _stage(explanation: Any, stage: str) -> str:
    if stage == SUMMARY:
        return str(explanation)
    try:
        return explanation.lowered.as_text(stage)
    except ValueError as e:
        raise CommandError(str(e)) from e


def _data(options: argparse.Namespace, explanation: Any, arguments: Arguments, text: str) -> dict[str, Any]:
    compiled = explanation.compiled
    memory = compiled.memory_analysis()
    return {
        "function": options.function,
        "arguments": [_described(x) for x in arguments.positional],
        "keywords": {name: _described(x) for name, x in arguments.keywords.items()},
        "stage": options.stage,
        "text": text,
        "reduction": _numbers(compiled.reduction()),
        "cost": _numbers(compiled.cost_analysis()),
        "memory": _numbers(memory) | {name: getattr(memory, name, None) for name in ("peak", "lower_bound")},
        "report": _report(explanation),
    }


def _described(x: Any) -> Any:
    """An argument as JSON has it, an array as ``float32[32,128]``."""
    from hologram.trace.call.abstract_eval import ShapeDtypeStruct

    if isinstance(x, ShapeDtypeStruct):
        return f"{x.dtype}[{','.join(map(str, x.shape))}]"
    if isinstance(x, dict):
        return {str(k): _described(v) for k, v in x.items()}
    return [_described(v) for v in x] if isinstance(x, (list, tuple)) else x


def _numbers(analysis: Any) -> dict[str, Any]:
    """The fields of an analysis that are numbers, texts, or tables of them."""
    found = {f.name: getattr(analysis, f.name) for f in fields(analysis)}
    tables = {name: {_key(k): n for k, n in x.items()} for name, x in found.items() if isinstance(x, Mapping)}
    return {name: x for name, x in found.items() if isinstance(x, (int, float, str, tuple))} | tables


def _key(name: Any) -> str:
    return name if isinstance(name, str) else " ".join(map(str, name))


def _report(explanation: Any) -> Any:
    """The data of the report; None where this version of Hologram makes none."""
    if not hasattr(explanation, "json"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        explanation.json(path)
        return json.loads(path.read_text(encoding="utf-8"))


def _complete_function(prefix: str, **_: Any) -> list[str]:
    """Scripts, and after the colon the functions at the top of one, which is read, not run."""
    place, colon, name = prefix.rpartition(":")
    if not colon:
        here = Path(prefix if prefix.endswith("/") else Path(prefix).parent)
        return [f"{p}:" if p.suffix == ".py" else f"{p}/" for p in sorted(here.iterdir()) if str(p).startswith(prefix) and _may_lead(p)]
    body = ast.parse(Path(place).read_text(encoding="utf-8")).body
    names = [n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    names += [t.id for n in body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
    return [f"{place}:{n}" for n in names if n.startswith(name)]


def _may_lead(path: Path) -> bool:
    return path.suffix == ".py" or (path.is_dir() and not path.name.startswith("."))
