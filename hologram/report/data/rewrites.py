"""What each pass and each rewrite rule did: the compiler runs again, watched, and every firing becomes a record, before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hologram.graph.compilation import Compilation
from hologram.graph.pass_manager import Context, Pass, run_passes
from hologram.graph.pipeline import PIPELINE, canonicalise
from hologram.graph.rewrite.rewriter import Rule
from hologram.ir.graph import Graph, attribute_texts
from hologram.ir.node import Node
from hologram.report.data.graphs import type_of
from hologram.report.data.references import References

MAX_STEPS = 3000  # firings that a report shows
MAX_DEPTH = 3  # of the expressions that show a firing
MAX_TERMS = 14  # ops in one of them
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Firing(NamedTuple):
    """A rule made ``before`` into ``after``, in the pass run number ``run``."""

    rule: Rule
    before: Node
    after: Node
    line: Any
    run: int


class Watched:
    """A compilation's way through the pipeline once more: the ``values`` after each stage, the ``runs`` of passes, and ``firings``, of which the
    first :data:`MAX_STEPS` are kept and ``left_out`` are counted."""

    def __init__(self, compilation: Compilation) -> None:
        self.context = compilation.context()
        self.firings: list[Firing] = []
        self.left_out = 0
        self.runs: list[dict[str, Any]] = []
        self._last: Any = compilation.traced
        self._seconds: dict[str, float] = {}
        self._fired: Counter[str] = Counter()
        self.context.observer, self.context.watch = self._after_pass, self._firing
        self.values: dict[str, Any] = {"canonical": canonicalise(compilation.traced, compilation.guarantee, self.context)}
        value = self.values["canonical"]
        for name, passes in PIPELINE[1:]:
            value = self.values[name] = run_passes(value, passes, self.context)

    def _firing(self, rule: Rule, before: Node, after: Node, line: Any) -> None:
        self._fired[rule.name] += 1
        if len(self.firings) < MAX_STEPS:
            self.firings.append(Firing(rule, before, after, line, len(self.runs)))
        else:
            self.left_out += 1

    def _after_pass(self, p: Pass, value: Any) -> None:
        """Is called when a pass has run: what fired since the last one did fired in it."""
        spent = self.context.seconds[p.name]
        run: dict[str, Any] = {"name": p.name, "seconds": spent - self._seconds.get(p.name, 0.0), "changed": value is not self._last}
        run["rules"] = dict(self._fired)
        if isinstance(value, Graph):
            run["nodes"] = len(value.nodes())
        self.runs.append(run)
        self._seconds[p.name], self._last = spent, value
        self._fired = Counter()

    def counts(self, context: Context | None = None) -> dict[str, Counter[str]]:
        """How often each rule, and each change that passes count by name, fired, by pass."""
        return (context or self.context).fired


def rewrites_data(watched: Watched, references: References) -> dict[str, Any]:
    """``passes`` in the order in which they ran, the ``rules`` that fired, and their firings: ``steps``."""
    rules = {f.rule.name: {"algebra": f.rule.algebra, "guarantee": f.rule.guarantee} for f in watched.firings}
    counted: Counter[str] = sum(watched.counts().values(), Counter())
    return {
        "passes": watched.runs,
        "rules": {name: rules.get(name, {}) | {"count": n} for name, n in counted.most_common()},
        "steps": [_step(f, references) for f in watched.firings],
        "left_out": watched.left_out,
    }


def _step(firing: Firing, references: References) -> dict[str, Any]:
    before, after, leaves = expressions(firing.before, firing.after)
    out = {"rule": firing.rule.name, "run": firing.run, "before": before, "after": after, "where": leaves, "type": type_of(firing.after)}
    if (place := references.place(firing.line)) is not None:
        out["place"] = place
    return out


def expressions(before: Node, after: Node) -> tuple[str, str, dict[str, str]]:
    """Both as text, with a letter for what is the same in both or too deep to show; and the types of the letters."""
    shared = _near(before) & _near(after) - {before}
    names: dict[Node, str] = {}
    texts = [_written(x, shared - {x} if x is before else shared, names, [MAX_TERMS]) for x in (before, after)]
    return texts[0], texts[1], {name: type_of(n) for n, name in names.items()}


def _near(root: Node) -> set[Node]:
    """The nodes within :data:`MAX_DEPTH` of ``root``."""
    found, level = {root}, [root]
    for _ in range(MAX_DEPTH):
        level = [x for n in level for x in n.inputs if x not in found]
        found.update(level)
    return found


def _written(node: Node, stop: set[Node], names: dict[Node, str], left: list[int], depth: int = 0) -> str:
    if node.op.name == "const":
        return attribute_texts(node)[0]
    if node.op.kind == "leaf" or node in stop or (depth and (depth > MAX_DEPTH or left[0] <= 0)):
        return names.setdefault(node, next(n for n in _fresh() if n not in names.values()))
    left[0] -= 1
    arguments = [_written(x, stop, names, left, depth + 1) for x in node.inputs]
    shape = str(list(node.shape)) if "shape" in node.op.attrs else ""
    return f"{node.op.name}{shape}({', '.join([*arguments, *_brief(attribute_texts(node))])})"


def _brief(texts: Sequence[str]) -> list[str]:
    return [t if len(t) <= 60 else t[:57] + "…" for t in texts]


def _fresh() -> Iterator[str]:
    yield from _LETTERS
    i = 0
    while True:
        i += 1
        yield from (f"{c}{i}" for c in _LETTERS)
