"""Pages of the repository as the site has them: each has a place, and links lead there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.site import staging

KNOWN = {
    "README.md": "overview.md",
    "docs/a.md": "a.md",
    "docs/guides/b.md": "guides/b.md",
    "examples/photo.py": "examples/photo.md",
    "benchmarks/README.md": "running_benchmarks.md",
}


@pytest.mark.parametrize(
    ("source", "text", "wanted"),
    [
        ("docs/a.md", "[x](../README.md#measured)", "[x](overview.md#measured)"),
        ("docs/a.md", "[x](guides/b.md) [y](#here)", "[x](guides/b.md) [y](#here)"),
        ("docs/guides/b.md", "[x](../a.md) [y](../../examples/photo.py)", "[x](../a.md) [y](../examples/photo.md)"),
        ("README.md", "[x](docs/guides/b.md#z)", "[x](guides/b.md#z)"),
        ("benchmarks/README.md", "[x](../docs/a.md)", "[x](a.md)"),
        ("docs/a.md", "[x](https://python.org/a.md)", "[x](https://python.org/a.md)"),
        ("docs/a.md", "`f[x](nothing)`\n\n```python\nf[x](nothing)\n```\n[x](a.md)", "`f[x](nothing)`\n\n```python\nf[x](nothing)\n```\n[x](a.md)"),
    ],
)
def test_links_lead_to_pages(source: str, text: str, wanted: str) -> None:
    assert staging.with_site_links(text, source, KNOWN) == wanted


@pytest.mark.parametrize(("source", "target"), [("docs/a.md", "missing.md"), ("docs/a.md", "../README"), ("README.md", "a.md")])
def test_a_link_to_what_has_no_page_is_an_error(source: str, target: str) -> None:
    with pytest.raises(staging.LinkError, match=f"{source} links to {re.escape(target)}"):
        staging.with_site_links(f"[x]({target})", source, KNOWN)


def test_text_outside_of_code_alone_is_changed() -> None:
    text = "a `a` a\n~~~\na\n~~~\na ``a`a``\n````md\n```\na\n```\n````\na\n"
    assert staging.outside_code(str.upper, text) == "A `a` A\n~~~\na\n~~~\nA ``a`a``\n````md\n```\na\n```\n````\nA\n"


def listed(page: Path, root: Path) -> list[str]:
    """The pages that the lists of a page name, from the root."""
    folder = page.parent.relative_to(root)
    lines = [line for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.M | re.S) for line in block.split("\n")]
    names = [re.sub(r".*<(.*)>", r"\1", line) for line in lines if line and not line.startswith(":")]
    return [(folder / name).as_posix() for name in names]


def test_every_page_is_staged_and_stands_in_the_navigation_once(tmp_path: Path) -> None:
    """But for the front page, and for modules that a page links to."""
    written = staging.stage(tmp_path)
    assert {p for p in tmp_path.rglob("*") if p.is_file()} == written
    staged = {p.relative_to(tmp_path).with_suffix("").as_posix() for p in written if p.suffix in (".md", ".py")}
    names = [name for p in written if p.suffix == ".md" for name in listed(p, tmp_path)]
    assert len(names) == len(set(names))
    assert set(names) - {"measured", "reference/index"} == {name for name in staged if name != "index" and not name.startswith("source/")}


def test_links_to_modules_get_a_page(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "examples").mkdir()
    (tmp_path / "pack").mkdir()
    for name in staging.PAGES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('"""Doc."""\n' if name.endswith(".py") else f"# {name}\n")
    (tmp_path / "pack" / "m.py").write_text('"""What it does."""\n')
    (tmp_path / "docs" / "x.md").write_text("# X\n\n[m](../pack/m.py) and [all](../pack)\n")
    staging.stage(tmp_path / "site", tmp_path)
    assert "[m](source/pack/m.md) and [all](source/pack.md)" in (tmp_path / "site" / "x.md").read_text()
    assert "- `m.py`: What it does." in (tmp_path / "site" / "source" / "pack.md").read_text()
    assert "orphan: true" in (tmp_path / "site" / "source" / "pack" / "m.md").read_text()


def test_what_has_not_changed_is_not_written(tmp_path: Path) -> None:
    page = tmp_path / "deep" / "page.md"
    staging.write_if_changed(page, "text")
    before = page.stat().st_mtime_ns
    staging.write_if_changed(page, "text")
    assert page.stat().st_mtime_ns == before
    staging.write_if_changed(page, "other")
    assert page.read_text() == "other"
