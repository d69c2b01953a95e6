"""Tensors in notebooks: a table of a small one, statistics and a histogram of a large one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram.notebook.markup import GREY, Content, Html, box, details, element, heading, listing, mono, table
from hologram.notebook.statistics import Statistics, statistics_of
from hologram.trace.tensor import Tensor

MAX_CELLS = 400  # of a table that shows every element
MAX_ROWS, MAX_COLUMNS = 40, 24
MAX_TEXT = 64  # elements of an array of more axes that are shown as text
EDGE = 3  # rows and columns at each end of a large array
WIDTH, HEIGHT = 240, 44  # of a histogram


def tensor_html(x: Tensor) -> str | None:
    """A Tensor as HTML. It is computed where ``repr`` computes it; one without a value shows its type."""
    text = x._without_value()
    if text:
        return box(mono(text))
    view = x._view("repr()")
    name = heading("Tensor", f"{view.dtype}{list(view.shape)}", x.device if x.device != "cpu" else "")
    return box(name, *_content(view))


def _content(view: np.ndarray) -> list[Content]:
    if view.ndim == 0:
        return [mono(_spelled(view[()]))]
    if view.size == 0:
        return [mono("no elements")]
    if view.ndim <= 2 and view.size <= MAX_CELLS and view.shape[-1] <= MAX_COLUMNS and view.shape[0] <= (MAX_ROWS if view.ndim == 2 else MAX_COLUMNS):
        return [_table(view)]
    if view.size <= MAX_TEXT:
        return [listing(np.array2string(view, separator=", "))]
    found = statistics_of(view)
    return [_strip(found, view.dtype.kind), details("elements", _edges(view))]


def _table(view: np.ndarray) -> Html:
    return table([[_spelled(v) for v in row] for row in np.atleast_2d(view)], align="right")


def _edges(view: np.ndarray) -> Content:
    """The corners of the last two axes; of those before them the first place."""
    lead = view.ndim - 2
    whole = np.atleast_2d(view[(0,) * lead] if lead > 0 else view)
    rows, columns = (_ends(n) for n in whole.shape)
    cells: list[Sequence[Content]] = [["…" if r is None or c is None else _spelled(whole[r, c]) for c in columns] for r in rows]
    index = mono(f"x[{', '.join(['0'] * lead)}]") if lead > 0 else Html("")
    return Html(index.text + table(cells, align="right").text)


def _ends(n: int) -> list[int | None]:
    """Places along an axis, None for those left out."""
    return [*range(n)] if n <= 2 * EDGE + 1 else [*range(EDGE), None, *range(n - EDGE, n)]


def _strip(s: Statistics, kind: str) -> Content:
    """Statistics beside the histogram."""
    if kind == "b":
        ones = s.looked_at - s.zeros
        facts = [("True", f"{ones:,}"), ("False", f"{s.zeros:,}")]
    else:
        facts = [("min", _short(s.low)), ("mean", _short(s.mean)), ("std", _short(s.std)), ("max", _short(s.high))]
        facts += [(name, f"{n:,}") for name, n in (("zeros", s.zeros), ("nan", s.nan), ("inf", s.infinite)) if n]
        facts = [(f"|x| {name}", v) if kind == "c" and name in ("min", "mean", "std", "max") else (name, v) for name, v in facts]
    cells = [element("span", [element("span", f"{n} ", "opacity:.7"), v], "margin-right:1em;white-space:nowrap") for n, v in facts]
    sample = "" if s.looked_at == s.size else f"of a sample of {s.looked_at:,} elements"
    text = element("div", [*cells, element("span", sample, "opacity:.7")], "font-family:ui-monospace,monospace")
    return Html(text.text + ("" if s.counts is None or kind == "b" else _histogram(s).text))


def _histogram(s: Statistics) -> Html:
    """Bars of the counts, with the range below."""
    assert s.counts is not None
    most, width = max(s.counts), WIDTH / len(s.counts)
    bars = []
    for i, n in enumerate(s.counts):
        if n:
            h = max(1.0, (HEIGHT - 2) * n / most)
            bars.append(f'<rect x="{i * width:.1f}" y="{HEIGHT - h:.1f}" width="{max(width - 0.6, 0.6):.1f}" height="{h:.1f}"></rect>')
    label = f"histogram of {len(s.counts)} bins from {_short(s.low)} to {_short(s.high)}"
    line = f'<path d="M0 {HEIGHT}H{WIDTH}" stroke="{GREY}"></path>'
    svg = (
        f'<svg role="img" aria-label="{label}" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" fill="currentColor"'
        f' style="display:block;opacity:.75"><title>{label}</title>{"".join(bars)}{line}</svg>'
    )
    ends = element("div", [mono(_short(s.low)), mono(_short(s.high))], "display:flex;justify-content:space-between;opacity:.7;font-size:.85em")
    return element("div", [Html(svg), ends], f"width:{WIDTH}px;max-width:100%;margin:.3em 0")


def _short(x: float) -> str:
    return f"{x:.4g}"


def _spelled(value: Any) -> str:
    """An element, with the digits that matter to a reader."""
    kind = value.dtype.kind
    if kind in "biu":
        return str(value)
    if kind == "c":
        return f"{complex(value):.5g}"
    return f"{float(value):.6g}"
