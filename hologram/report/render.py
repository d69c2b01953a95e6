"""The page: data, scripts and styles in one HTML file."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

# in order: each may use those before it
SCRIPTS = (
    "text.js", "dom.js", "model.js", "search.js", "overview.js", "outline.js", "layout.js", "drawing.js", "graph.js", "code.js", "kernels.js",
    "memory.js", "pages.js", "roofline.js", "rewrites.js", "copies.js", "main.js",
)  # fmt: skip
_PLACE = re.compile(r"\{\{(\w+)\}\}")


def page(data: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = {
        "title": html.escape(f"{data['program']['name']} · Hologram"),
        "style": _asset("page", "style.css"),
        "layout": _asset("vendor", "dagre.min.js"),
        "licence": _asset("vendor", "LICENSE.dagre.txt").replace("*/", "* /"),
        "script": "\n".join(_asset("page", name) for name in SCRIPTS),
        "data": _embedded(data),
    }
    return _PLACE.sub(lambda m: parts[m[1]], _asset("page", "page.html"))


@cache
def _asset(folder: str, name: str) -> str:
    return files("hologram.report").joinpath(folder, name).read_text(encoding="utf-8")


def _embedded(data: Mapping[str, Any]) -> str:
    """JSON that cannot end the script element in which it stands."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
