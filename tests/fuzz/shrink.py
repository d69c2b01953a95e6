"""Making a failing program small, greedily: a change is kept where the program still fails alike.

Changes, from the coarse to the fine: one output alone; a step's value as an argument; fewer inputs used; smaller sizes; plain layouts; simple
contents;
float32; no thresholds; no transform.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hologram import dtypes

from .generate import Case, trimmed
from .program import Input, Lambda, Program, Ref, Step, mapped, refs, renamed, renamed_step

Fails = Callable[[Case], bool]


def shrunk(case: Case, fails: Fails, budget: int = 300) -> Case:
    """A smaller case that fails alike."""
    tries = 0
    progress = True
    while progress and tries < budget:
        progress = False
        for candidate in _candidates(case):
            tries += 1
            if tries >= budget:
                break
            if fails(candidate):
                case, progress = candidate, True
                break
    return case


def _candidates(case: Case) -> Iterator[Case]:
    p = case.program

    def of(q: Program) -> Case:
        return dataclasses.replace(case, program=trimmed(q))

    if case.thresholds:
        yield dataclasses.replace(case, thresholds={})
        if len(case.thresholds) > 1:
            items = list(case.thresholds.items())
            half = len(items) // 2
            yield dataclasses.replace(case, thresholds=dict(items[:half]))
            yield dataclasses.replace(case, thresholds=dict(items[half:]))
            for name in case.thresholds:
                yield dataclasses.replace(case, thresholds={k: v for k, v in items if k != name})
    if case.transform:
        yield dataclasses.replace(case, transform="")
    if len(p.outputs) > 1:
        for r in p.outputs:
            yield of(p.with_(outputs=(r,)))
    for s in reversed(p.steps):
        if any(r.name == s.name for r in p.outputs):
            earlier = [r for r in dict.fromkeys(refs(s)) if not _is_inside(s, r)]
            if earlier and len(p.outputs) == 1:
                yield of(p.with_(outputs=tuple(earlier)))
    yield from (of(q) for q in _cut(p))
    yield from (of(q) for q in _simpler_inputs(p))


def _is_inside(s: Step, r: Ref) -> bool:
    """Whether a name belongs to a body of the step."""
    names: set[str] = set()

    def collect(e: Any) -> Any:
        if isinstance(e, Lambda):
            names.update(e.parameters)
            names.update(x.name for x in e.steps)
            for x in e.steps:
                mapped(collect, (x.args, x.options))
        return e

    mapped(collect, (s.args, s.options))
    return r.name in names


def _cut(p: Program) -> Iterator[Program]:
    """With an argument in the place of a step's value."""
    from .executors import Run
    from .steps import slots

    try:
        known = slots(Run(Case(0, p)))
    except Exception:
        return
    for i, s in reversed(list(enumerate(p.steps))):
        wanted = {r for t in (*p.steps[:i], *p.steps[i + 1 :]) for r in refs(t) if r.name == s.name} | {r for r in p.outputs if r.name == s.name}
        inputs = []
        change: dict[Ref, Ref] = {}
        for r in sorted(wanted, key=lambda r: r.leaf):
            if r not in known:
                break
            x = known[r]
            name = f"x{s.name}{r.leaf}"
            kind = f"index:{int(x.max(initial=0)) + 1}" if x.dtype.kind in "iu" else "tame"
            inputs.append(Input(dtypes.of(x.dtype).name, x.shape, kind, i, name=name))
            change[r] = Ref(name)
        else:
            if not change or len(p.steps) == 1:
                continue

            def to(r: Ref, change: dict[Ref, Ref] = change) -> Ref:
                return change.get(r, r)

            steps = tuple(renamed_step(t, to) for t in (*p.steps[:i], *p.steps[i + 1 :]))
            yield Program((*p.inputs, *inputs), steps, tuple(renamed(p.outputs, to)))


def _simpler_inputs(p: Program) -> Iterator[Program]:
    """Every axis of one size made smaller at once, wherever it is; then layouts, contents and types."""
    sizes = sorted({n for i in p.inputs for n in i.shape if n > 1}, reverse=True)
    for n in sizes:
        for m in (n // 8, n // 2, n - 1):
            if m >= 1:
                yield _resized(p, n, m)
    for k, i in enumerate(p.inputs):
        if i.layout != "plain":
            yield _with_input(p, k, dataclasses.replace(i, layout="plain"))
        if i.content not in ("tame", "whole") and not i.content.startswith("index"):
            yield _with_input(p, k, dataclasses.replace(i, content="tame"))
        if len(i.shape) and 1 not in i.shape:
            yield _with_input(p, k, dataclasses.replace(i, shape=tuple(1 if j == 0 else n for j, n in enumerate(i.shape))))
    names = {i.dtype for i in p.inputs}
    for name in names - {"float32", "int64", "bool"}:
        plain = "float32" if dtypes.of(name).kind in "fc" else "int64"
        yield p.with_(inputs=tuple(dataclasses.replace(i, dtype=plain) if i.dtype == name else i for i in p.inputs))


def _with_input(p: Program, k: int, i: Input) -> Program:
    return p.with_(inputs=(*p.inputs[:k], i, *p.inputs[k + 1 :]))


def _resized(p: Program, n: int, m: int) -> Program:
    def size(e: Any) -> Any:
        return m if type(e) is int and e == n else e

    def sized(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple([sized(e) for e in x])
        if isinstance(x, list):
            return [sized(e) for e in x]
        if isinstance(x, Lambda):
            return Lambda(x.parameters, tuple(step(s) for s in x.steps), x.result)
        if isinstance(x, slice):
            return slice(sized(x.start), sized(x.stop), sized(x.step))
        if dataclasses.is_dataclass(x) and hasattr(x, "shape"):
            return dataclasses.replace(x, shape=sized(x.shape), content=_content(x.content, n, m))  # type: ignore[type-var, attr-defined]
        return size(x)

    def step(s: Step) -> Step:
        return Step(s.name, s.function, sized(s.args), tuple((k, sized(v)) for k, v in s.options))

    inputs = tuple(dataclasses.replace(i, shape=sized(i.shape), content=_content(i.content, n, m)) for i in p.inputs)
    return p.with_(inputs=inputs, steps=tuple(step(s) for s in p.steps))


def _content(content: str, n: int, m: int) -> str:
    return f"index:{m}" if content == f"index:{n}" else content


@dataclass
class Alike:
    """Whether a case fails with a key."""

    key: str
    executor: str

    def __call__(self, case: Case) -> bool:
        from .trial import run_case

        names = {self.executor, "exact jit"} if self.executor not in ("numpy steps", "jax steps") else {self.executor}
        try:
            out = run_case(case, only=lambda x: x.name in names)
        except Exception:
            return False
        return any(f.key == self.key for f in out.failures)
