"""Types in signatures that have no entry on the site (``Callable``, ``torch.Tensor``): shown as they are. Other unknown names are warned of."""

from __future__ import annotations

from typing import Any

SIGNATURE = {"class", "obj"}


def resolve(app: Any, env: Any, node: Any, shown: Any) -> Any:
    """The text alone for a type in a signature; None for all else, which Sphinx then reports."""
    is_type = node.get("refdomain") == "py" and node.get("reftype") in SIGNATURE and not node.get("refexplicit")
    return shown if is_type and any("desc_" in type(parent).__name__ for parent in _parents(node)) else None


def _parents(node: Any) -> Any:
    while node := node.parent:
        yield node


def register(app: Any) -> None:
    app.connect("missing-reference", resolve)
