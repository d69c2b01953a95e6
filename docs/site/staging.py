"""Staging: copies the pages of the repository into one folder, as the site has them, and turns links between files into links between pages.

Files keep their place below ``docs``; what stands elsewhere in the repository gets a page of its own: ``PAGES``, examples, modules
that a page links to.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "running_benchmarks.md",
    "benchmarks/results/h200-2026-11-28.md": "measured_on_h200.md",
    "LICENSE": "license.md",
    "docs/README.md": "pages.md",
    "hologram/errors.py": "reference/hologram.errors.rst",
}
OWN = ("docs/site/",)  # what makes the site has no page on it
CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1[`~]*$|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)  # blocks, and code in lines
LINK = re.compile(r"(?<=\]\()([^)\s#]+)((?:#[^)\s]*)?)(?=\))")


class LinkError(ValueError):
    """A link to a file that has no page on the site."""


def pages(root: Path = ROOT) -> dict[str, str]:
    """Where each file of the repository that has a page stands on the site: paths from the root, and from the site's."""
    found = dict(PAGES)
    for path in sorted((root / "docs").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix in (".md", ".py", ".png", ".svg") and not name.startswith(OWN) and "__pycache__" not in name:
            found.setdefault(name, name.removeprefix("docs/"))
    for path in sorted((root / "examples").glob("*.py")):
        found[f"examples/{path.name}"] = f"examples/{path.stem}.md"
    for source in [name for name in found if name.endswith(".md")]:
        for target, _ in links((root / source).read_text()):
            module = _resolved(source, target)
            if _is_code(root / module):
                found.setdefault(module, f"source/{module.removesuffix('.py')}.md")
    return found


def _is_code(path: Path) -> bool:
    return path.suffix == ".py" or any(path.glob("*.py"))


def _resolved(source: str, target: str) -> str:
    """What the file ``source`` means by ``target``: a path from the root."""
    return os.path.normpath(PurePosixPath(source).parent / target)


def links(text: str) -> list[tuple[str, str]]:
    """Targets and anchors of the links of a Markdown text to other files."""
    found: list[tuple[str, str]] = []

    def collect(part: str) -> str:
        found.extend(pair for pair in LINK.findall(part) if not re.match(r"[a-z]+:", pair[0]))
        return part

    outside_code(collect, text)
    return found


def outside_code(change: Callable[[str], str], text: str) -> str:
    """Changes what of a Markdown text is not code."""
    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [change(text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, change(text[end:])])


def with_site_links(text: str, source: str, known: dict[str, str]) -> str:
    """The Markdown ``text`` of the file ``source`` with links to files of the repository led to their pages.

    Raises LinkError for a file that has none.
    """

    def led(found: re.Match[str]) -> str:
        target, anchor = found.groups()
        if re.match(r"[a-z]+:", target):
            return found[0]
        path = _resolved(source, target)
        if path not in known:
            raise LinkError(f"{source} links to {target}, which has no page on the site (docs/site/staging.py lists those outside of docs/)")
        return os.path.relpath(known[path], PurePosixPath(known[source]).parent) + anchor

    return outside_code(lambda part: LINK.sub(led, part), text)


def example_page(name: str, source: str) -> str:
    """A page with an example: its docstring, then all of the file."""
    text = re.sub(r":\w+:`(.+?)`", r"`\1`", ast.get_docstring(ast.parse(source)) or "")
    return f"# {name}\n\n{text}\n\n```python\n{source}```\n"


def source_page(name: str, path: Path) -> str:
    """A page with a module, or the list of the modules of a package with what each says of itself. No list of pages has it."""
    head = f"---\norphan: true\n---\n\n# {name}\n\n"
    if path.is_file():
        return f"{head}```python\n{path.read_text()}```\n"
    about = {p.name: (ast.get_docstring(ast.parse(p.read_text())) or "").partition("\n")[0] for p in sorted(path.glob("*.py"))}
    return head + "\n".join(f"- `{module}`: {text}" for module, text in about.items()) + "\n"


def example_list(names: list[str]) -> str:
    """The page that lists the examples."""
    return "# Examples\n\nOne file each: they print what they find and draw it into `out/`.\n\n```{toctree}\n" + "\n".join(names) + "\n```\n"


def write_if_changed(path: Path, text: str) -> None:
    """Leaves files with this text alone, so that Sphinx does not read them again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def staged_text(source: str, known: dict[str, str], root: Path) -> str | None:
    """What the site has of a file of the repository; None for what is copied as it is. Raises LinkError."""
    path = root / source
    if path.suffix == ".md" or source.startswith("docs/tutorials/"):
        return with_site_links(path.read_text(), source, known)
    if source == "LICENSE":
        return f"# Licence\n\n```text\n{path.read_text()}```\n"
    if source.startswith("examples/"):
        return example_page(path.name, path.read_text())
    return source_page(source, path) if _is_code(path) else None


def stage(folder: Path, root: Path = ROOT) -> set[Path]:
    """Writes all pages of the repository into ``folder``, but for those that are made otherwise; gives what it wrote. Raises LinkError."""
    known, written = pages(root), {folder / "examples.md"}
    write_if_changed(folder / "examples.md", example_list([f"examples/{p.stem}" for p in sorted((root / "examples").glob("*.py"))]))
    for source, place in known.items():
        if place.startswith("reference/"):
            continue
        written.add(target := folder / place)
        if (text := staged_text(source, known, root)) is not None:
            write_if_changed(target, text)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / source, target)
    return written
