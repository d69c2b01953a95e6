"""Pieces of HTML: every text is escaped, every style stands in its element, every colour is the page's own or a grey that suits light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

GREY = "rgba(128,128,128,.35)"
MAX_CHARACTERS = 60_000  # of a text that is shown whole
_BOX = "font-size:.92em;line-height:1.45;color:inherit;background:transparent"
_CELL = f"border:1px solid {GREY};padding:.15em .6em;color:inherit;background:transparent"
_MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"


class Html(NamedTuple):
    """Text that is HTML already."""

    text: str


Content = str | Html


def html(content: Content) -> str:
    """``content`` as HTML."""
    return content.text if isinstance(content, Html) else escape(content)


def element(name: str, content: Content | Sequence[Content], style: str = "", **attributes: str) -> Html:
    """An element; ``content`` may be several, and underscores in names of attributes are hyphens."""
    inside = "".join(map(html, content)) if isinstance(content, (list, tuple)) and not isinstance(content, Html) else html(content)  # type: ignore[arg-type]
    given = {"style": style} | {k.replace("_", "-"): v for k, v in attributes.items()}
    shown = "".join(f' {k}="{escape(v)}"' for k, v in given.items() if v)
    return Html(f"<{name}{shown}>{inside}</{name}>")


def box(*parts: Content) -> str:
    """The whole: what ``_repr_html_`` gives."""
    return element("div", list(parts), _BOX).text


def heading(name: str, *facts: str) -> Html:
    """A line: what it is, and facts about it."""
    rest = element("span", "".join(f" · {f}" for f in facts if f), "opacity:.75")
    return element("div", [element("b", name), rest], f"{_MONO};margin:.2em 0")


def mono(text: Content) -> Html:
    return element("span", text, _MONO)


def table(rows: Iterable[Sequence[Content]], head: Sequence[Content] = (), align: str = "left") -> Html:
    """A table, of which the first row may be a head."""
    cell = f"{_CELL};text-align:{align}"
    made = [element("tr", [element("th", x, f"{cell};font-weight:600", scope="col") for x in head])] if head else []
    made += [element("tr", [element("td", x, cell) for x in row], "background:transparent") for row in rows]
    body = element("table", made, f"border-collapse:collapse;margin:.3em 0;{_MONO};width:auto")
    return element("div", body, "overflow-x:auto;max-width:100%")


def listing(text: str) -> Html:
    """A program's text; of a very long one the beginning."""
    left = len(text) - MAX_CHARACTERS
    if left > 0:
        text = f"{text[:MAX_CHARACTERS].rpartition(chr(10))[0]}\n… {left:,} more characters: print it to see them"
    frame = f"margin:.3em 0;padding:.4em;border:1px solid {GREY}"
    style = f"{_MONO};white-space:pre;overflow:auto;max-height:30em;{frame};color:inherit;background:transparent"
    return element("pre", text, style)


def details(summary: Content, content: Content, is_open: bool = False) -> Html:
    """What is shown on request."""
    made = element("details", [element("summary", summary, "cursor:pointer"), content], "margin:.2em 0")
    return Html(made.text.replace("<details", "<details open", 1)) if is_open else made
