"""One case through its executors: what was found."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import hologram as hg
from hologram.errors import DifferentiationError, HologramError

from . import judge
from .executors import EXECUTORS, Executor, Run, Skipped
from .generate import BadDraft, Case, generate
from .program import Program
from .thresholds import overridden


@dataclass
class Failure:
    """What went wrong: ``key`` is the same for failures that are likely one defect."""

    seed: int
    executor: str
    key: str
    text: str
    program: Program
    transform: str = ""
    thresholds: dict[str, int] = field(default_factory=dict)


@dataclass
class Outcome:
    seed: int
    failures: list[Failure] = field(default_factory=list)
    ran: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    case: Case | None = None


def where(error: BaseException) -> str:
    """The innermost line of Hologram in a traceback."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "hologram" in f.filename.rsplit("/site-packages/", 1)[-1]]
    inner = [f for f in frames if "/tests/" not in f.filename]
    f = (inner or frames or traceback.extract_tb(error.__traceback__))[-1]
    return f"{f.filename.rpartition('/')[2]}:{f.name}"


def run_seed(seed: int, only: Callable[[Executor], bool] | None = None) -> Outcome:
    try:
        case = generate(seed)
    except BadDraft as e:
        text = "".join(traceback.format_exception(e.error))
        step = e.program.steps[-1].function if e.program.steps else "?"
        key = f"trace {step} {type(e.error).__name__} {where(e.error)}"
        return Outcome(seed, [Failure(seed, "trace", key, text, e.program)], Counter(trace=1))
    return run_case(case, only)


def run_case(case: Case, only: Callable[[Executor], bool] | None = None) -> Outcome:
    out = Outcome(case.seed, case=case)
    run = Run(case)
    with overridden(case.thresholds):
        try:
            run.graph  # noqa: B018
        except DifferentiationError:
            out.skipped["not differentiable"] += 1
            return out
        except HologramError as e:
            if case.transform:
                out.skipped[f"transform refused: {type(e).__name__}"] += 1
                return out
            out.failures.append(_failure(case, "trace", e))
            return out
        except Exception as e:
            out.failures.append(_failure(case, "trace", e))
            return out
        rng = np.random.default_rng([case.seed, 1])
        for x in EXECUTORS:
            chosen = rng.random() < x.share
            if not (chosen if only is None else only(x)):
                continue
            try:
                with np.errstate(all="ignore"):
                    x.run(run)
                out.ran[x.name] += 1
            except Skipped as e:
                out.skipped[f"{x.name}: {e}"[:80]] += 1
            except MemoryError:
                out.skipped[f"{x.name}: memory"] += 1
            except Exception as e:
                out.ran[x.name] += 1
                out.failures.append(_failure(case, x.name, e))
                if x.name == "exact jit":
                    break
    return out


def _failure(case: Case, name: str, e: Exception) -> Failure:
    if isinstance(e, judge.Mismatch):
        last = str(e).split(":")[1].strip() if name.endswith("steps") else ""
        key = f"{name} mismatch {last}"
        text = str(e)
    else:
        key = f"{name} {type(e).__name__} {where(e)}"
        text = "".join(traceback.format_exception(e))
    return Failure(case.seed, name, key, text, case.program, case.transform, case.thresholds)


def forget() -> None:
    """Lets go of what compiled programs hold, now and then."""
    hg.clear_caches()


__all__ = ["Any", "Failure", "Outcome", "forget", "run_case", "run_seed"]
