"""Checks of the pages that were built: every link within the site leads somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("object", "data")}
NOT_LOADED = {"canonical", "next", "prev", "search", "index", "license", "alternate"}  # what a <link> may be without being loaded
FOREIGN_CSS = re.compile(r"@import[^;]*?//[^;]*|url\(\s*[\"']?(?:https?:)?//[^)]*\)")


@dataclass
class Page(HTMLParser):
    """What a page names: its anchors, its links, and what it loads."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        for name in ("href", "src", "data"):
            if name in given and given[name]:
                is_loaded = (tag, name) in LOADED and given.get("rel") not in NOT_LOADED
                (self.loaded if is_loaded else self.links).append(given[name])


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text())
    return page


def faults(site: Path) -> list[str]:
    """What is wrong with the pages below ``site``, a line each."""
    pages = {path: read(path) for path in sorted(site.rglob("*.html"))}
    found = [f"{path.relative_to(site)}: {fault}" for path, page in pages.items() for fault in _faults(path, page, pages)]
    for path in sorted(site.rglob("*.css")):
        found += [f"{path.relative_to(site)}: loads {text}" for text in FOREIGN_CSS.findall(path.read_text())]
    return found


def _faults(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    for link in page.loaded:
        parts = urlsplit(link)
        if parts.scheme == "data":
            continue
        if parts.scheme or parts.netloc:
            yield f"loads {link}"
        elif parts.path and not (path.parent / unquote(parts.path)).exists():
            yield f"loads {link}, which is not there"
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.exists():
            yield f"links to {link}, which is not there"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"links to {link}, a page without that anchor"
