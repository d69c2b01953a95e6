"""The API reference: a page for each public module, written from docstrings and signatures of the imported objects.

Modules are imported, not parsed: many public functions are made from the op table. The examples (``>>>``) are those that
``tests/test_docstrings.py`` runs.
"""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from docs.site.public_api import defining_module, own_docstring, public_modules, public_names, root_of
from docs.site.staging import write_if_changed
from hologram import dtypes

MAX_NAMES = 70  # on one page; a module with more has a page for each module that defines some
CONSTANTS, OTHERS = "constants and types", "others"
MIN_GROUP = 3  # names on such a page; what is left stands on one page together
RETURNED = {  # classes that no module lists, and the function that returns their objects
    "hologram.trace.call.jit.Jitted": "hologram.jit",
    "hologram.trace.call.stages.Lowered": "hologram.trace.call.jit.Jitted.lower",
    "hologram.trace.call.stages.Compiled": "hologram.trace.call.stages.Lowered.compile",
    "hologram.trace.call.stages.Explanation": "hologram.explain",
    "hologram.saved.program.Program": "hologram.export",
}
ROLE = re.compile(r":(?:py:)?(?:func|class|mod|meth|data|exc|obj|attr):`~?([\w.]+)`")
INDENT = "   "


@dataclass
class Entry:
    """A public object, all its names in one module, and where it is described, if that is elsewhere."""

    value: Any
    names: list[str] = field(default_factory=list)
    elsewhere: str = ""


def user_names(modules: Iterable[ModuleType]) -> dict[str, str]:
    """By the name of each module the name by which users reach it: ``hologram.ops`` for ``hologram.sdk.ops``."""
    found = {}
    for module in modules:
        short = module.__name__.rsplit(".", 1)[-1]
        root = import_module(module.__name__.split(".")[0])
        found[module.__name__] = f"{root.__name__}.{short}" if getattr(root, short, None) is module else module.__name__
    return found


def entries(modules: Iterable[ModuleType]) -> dict[str, list[Entry]]:
    """What each module has, by its name: each object once, described in the first module that has it."""
    described: dict[int, str] = {}
    names, found = user_names(modules := list(modules)), {}
    for module in modules:
        here: dict[int, Entry] = {}
        for name in public_names(module):
            value = getattr(module, name)
            if isinstance(value, ModuleType) or name.startswith("__") and not _is_api(value):
                continue
            key = id(value) if _is_api(value) else hash(name)
            entry = here.setdefault(key, Entry(value, elsewhere=described.get(key, "")))
            entry.names.append(name)
        for key, entry in here.items():
            if _is_api(entry.value):
                described.setdefault(key, f"{names[module.__name__]}.{entry.names[0]}")
        found[module.__name__] = list(here.values())
    return found


def _is_api(value: Any) -> bool:
    """Whether it has documentation of its own: not a number, nor an element type."""
    return callable(value) and root_of(value) not in ("numpy", "ml_dtypes", "torch", "builtins")


def signature_of(value: Any, is_method: bool = False) -> str:
    """As it is called, a method on its object; "" for what cannot be called, or is not meant to be. Annotations that say nothing are left out."""
    if isinstance(value, type) and (issubclass(value, enum.Enum | BaseException) or value.__init__ is object.__init__):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [p.replace(annotation=_annotation(p.annotation)) for p in signature.parameters.values()][is_method:]
    text = str(signature.replace(parameters=parameters, return_annotation=_annotation(signature.return_annotation)))
    text = re.sub(r"<object object at 0x\w+>|<function \w+ at 0x\w+>|<class '([\w.]+)'>", lambda m: m[1] or "...", text)
    return text.replace("'", "") if "annotation" in text else text


class _Text(str):
    """An annotation that prints without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _annotation(x: Any) -> Any:
    if x is inspect.Parameter.empty or x in ("Any", Any):
        return inspect.Parameter.empty
    return _Text(x if isinstance(x, str) else inspect.formatannotation(x))


@cache
def _index() -> tuple[dict[str, list[Entry]], dict[int, str]]:
    """What each public module has, and where each object is described."""
    modules = public_modules()
    names, found = user_names(modules), entries(modules)
    described = {id(m): names[m.__name__] for m in modules if found[m.__name__]}
    for module in modules:
        for entry in found[module.__name__]:
            if _is_api(entry.value):
                described.setdefault(id(entry.value), f"{names[module.__name__]}.{entry.names[0]}")
    described |= {id(lookup(path, "hologram")): path for path in RETURNED}
    return found, described


def docstring(value: Any) -> str:
    """Its own docstring. Pages of ``docs`` that it names are links; names in roles are meant as in the module where it is written."""
    text = inspect.cleandoc(own_docstring(value))
    module = value.__name__ if isinstance(value, ModuleType) else defining_module(value) or "hologram"

    def linked(found: re.Match[str]) -> str:
        thing = lookup(found[1], module)
        path = _index()[1].get(id(thing))
        return f":py:obj:`{found[1]} <{path}>`" if path else f"``{found[1]}``" if thing is not None else found[0]

    return ROLE.sub(linked, re.sub(r"\bdocs/([\w/]+)\.md\b", r":doc:`/\1`", text))


def lookup(path: str, module: str) -> Any:
    """What ``path`` names in ``module``, or by itself; None where there is no such thing."""
    for whole in (f"{module}.{path}", path):
        parts = whole.split(".")
        for end in range(len(parts), 0, -1):
            try:
                value: Any = import_module(".".join(parts[:end]))
                for name in parts[end:]:
                    value = getattr(value, name)
            except (ImportError, AttributeError):
                continue
            return value
    return None


def summary(value: Any) -> str:
    """The first sentence of the docstring, on one line."""
    first = " ".join(docstring(value).split("\n\n", 1)[0].split())
    return re.split(r"(?<=[^.]\.)\s|;\s|:$", first, maxsplit=1)[0].rstrip(".;:")


def indented(text: str, depth: int = 1) -> str:
    return "\n".join(INDENT * depth + line if line else "" for line in text.split("\n"))


def directive(kind: str, names: list[str], signature: str, body: str, depth: int = 0) -> str:
    """A description in reStructuredText, with every name that the object has."""
    head = ("\n" + " " * (len(kind) + 7)).join(name + signature for name in names)
    return indented(f".. py:{kind}:: {head}\n\n{indented(body)}\n", depth)


def description(entry: Entry) -> str:
    """Of one object of a module: its signature, its docstring, the methods of a class."""
    value = entry.value
    if not _is_api(value):
        return directive("data", entry.names, "", constant(value))
    kind = "function" if not isinstance(value, type) else "exception" if issubclass(value, BaseException) else "class"
    if entry.elsewhere:
        return directive(kind, entry.names, signature_of(value), f"The same as :py:obj:`{entry.elsewhere}`.")
    body = docstring(value)
    if kind == "exception":
        bases = ", ".join(f":py:class:`{b.__name__}`" for b in value.__bases__)
        body += f"\n\nA subclass of {bases}."
    if kind == "class":
        body = "\n\n".join([body, *members(value)])
    return directive(kind, entry.names, signature_of(value), body)


def constant(value: Any) -> str:
    """What a value is: a number, an element type, or an object with methods of its own."""
    if isinstance(value, int | float | str | type(None)):
        return f"``{value!r}``"
    if root_of(type(value)) == "hologram" and not isinstance(value, dtypes.DType):
        return docstring(value) or f"{summary(type(value))}."
    if isinstance(value, dtypes.DType | np.dtype) or isinstance(value, type) and issubclass(value, np.generic) and not value.__subclasses__():
        return f"The element type {value.__name__ if isinstance(value, type) else value}."
    return f"NumPy's ``{value.__name__}``." if isinstance(value, type) else f"An object of NumPy's class ``{type(value).__name__}``."


def members(cls: type) -> Iterator[str]:
    """Of the public methods, properties and choices that the class itself has."""
    for name, value in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(value, property):
            yield directive("property", [name], "", docstring(value))
        elif isinstance(value, enum.Enum):
            yield directive("attribute", [name], "", f"``{value.value!r}``")
        elif (doc := docstring(function := getattr(cls, name))) and callable(function):
            is_bound = isinstance(value, staticmethod | classmethod)
            yield directive("method", [name], signature_of(function, is_method=not is_bound), doc)


def table(rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"{INDENT}* - {name}\n{INDENT}  - {text.replace(chr(10), chr(10) + INDENT + '    ')}" for name, text in rows]
    return ".. list-table::\n   :widths: 30 70\n   :class: summary\n\n" + "\n".join(lines) + "\n"


def title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"


def listing(shown: list[Entry], module: str) -> str:
    """A table of what is described, and the descriptions."""
    rows = [(f":py:obj:`~{module}.{e.names[0]}`", summary(e.value) if _is_api(e.value) else "") for e in shown]
    parts = [f".. py:currentmodule:: {module}\n", table(r for r in rows if r[1]) if any(text for _, text in rows) else ""]
    return "\n\n".join([*parts, *map(description, shown)])


def groups(shown: list[Entry]) -> dict[str, list[Entry]]:
    """What a large module has, by the module that defines it: its last name in words."""
    found: dict[str, list[Entry]] = {}
    for entry in shown:
        where = defining_module(entry.value) if _is_api(entry.value) else None
        is_ufunc = type(entry.value).__name__ == "ufunc"
        found.setdefault("elementwise functions" if is_ufunc else _words(where) if where else CONSTANTS, []).append(entry)
    small = [name for name, some in found.items() if len(some) < MIN_GROUP]
    if small:
        found[OTHERS] = [entry for name in small for entry in found.pop(name)]
    return dict(sorted(found.items(), key=lambda item: (item[0] in (CONSTANTS, OTHERS), item[0])))


def _words(module: str) -> str:
    package, _, last = module.rpartition(".")
    return "elementwise functions" if package.endswith(".elementwise") and last == "functions" else last.replace("_", " ")


def _group_about(module: str, group: str, shown: list[Entry]) -> str:
    """What the module that defines most of a group says of itself; what the public module makes itself counts for none."""
    where = [m for e in shown if (m := defining_module(e.value)) and _is_api(e.value) and "." in m and m != module]
    if group in (CONSTANTS, OTHERS) or not where:
        return ""
    return (import_module(max(set(where), key=where.count)).__doc__ or "").split("\n\n")[0].replace("\n", " ")


def module_pages(module: ModuleType, name: str, shown: list[Entry]) -> Iterator[tuple[str, str]]:
    """Names of pages and their texts."""
    head = f"{title(name)}\n.. py:module:: {name}\n\n{docstring(module)}\n\n"
    if len(shown) <= MAX_NAMES:
        yield name, head + listing(shown, name)
        return
    pages = {group: (f"{name}/{group.replace(' ', '_')}", some) for group, some in groups(shown).items()}
    rows = [
        (f":doc:`{group} <{page}>`", f"{_group_about(name, group, some)}\n\n{_names(name, some)}".lstrip()) for group, (page, some) in pages.items()
    ]
    yield name, f"{head}{table(rows)}\n.. toctree::\n   :hidden:\n\n" + "".join(f"{INDENT}{group} <{page}>\n" for group, (page, _) in pages.items())
    for group, (page, some) in pages.items():
        yield page, f"{title(f'{name}: {group}')}\n{_group_about(name, group, some)}\n\n{listing(some, name)}"


def _names(module: str, shown: list[Entry]) -> str:
    """Links to all that is described, by all its names."""
    return " ".join(f":py:obj:`~{module}.{name}`" for entry in shown for name in entry.names)


def returned_page() -> str:
    parts = [title("What calls return"), "Classes that are not made by their names: public functions return their objects."]
    for path, function in RETURNED.items():
        cls = lookup(path, "hologram")
        body = "\n\n".join([f"Returned by :py:obj:`~{function}`.", docstring(cls), *members(cls)])
        parts.append(f".. py:currentmodule:: {cls.__module__}\n\n{directive('class', [cls.__name__], '', body)}")
    return "\n\n".join(parts)


def index(rows: list[tuple[str, str]]) -> str:
    toc = "\n".join(f"{INDENT}{name}" for name, _ in rows)
    about = (
        "Everything public, from the docstrings of the installed version. Examples assume ``import hologram as hg``, ``import hologram.numpy as "
        "hnp`` and ``import numpy as np``; the tests run each of them and compare what it prints.\n"
    )
    shown = table((f":doc:`{name}`", text) for name, text in rows)
    return f"{title('API reference')}\n{about}\n{shown}\n.. toctree::\n   :hidden:\n\n{toc}\n"


def write(folder: Path) -> set[Path]:
    """Writes all pages of the reference; gives their paths."""
    modules, (found, _) = public_modules(), _index()
    names, written = user_names(modules), set()
    rows = [(names[m.__name__], summary(m)) for m in modules if found[m.__name__]]
    pages = {page: text for m in modules if found[m.__name__] for page, text in module_pages(m, names[m.__name__], found[m.__name__])}
    pages["returned"] = returned_page()
    rows.append(("returned", "Classes whose objects public functions return"))
    pages["index"] = index(sorted(rows, key=lambda row: (row[0] == "returned", row[0])))
    for page, text in pages.items():
        path = folder / f"{page}.rst"
        write_if_changed(path, text)
        written.add(path)
    return written
