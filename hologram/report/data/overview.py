"""The answers that stand first in a report: which kernel takes the most time, how far it is from the machine's limit, where the peak of memory is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hologram.support.wording import counted

MAX_NAMED = 2  # lines that the answer on memory names


def overview(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A ``question``, a ``headline``, an ``answer`` in words, a ``link`` into the report and perhaps a user's ``place``: three times, or twice
    where nothing is known of memory."""
    kernels = [k for part in data["parts"] for k in part["kernels"] if not k.get("once")]
    answers = [_slowest(kernels, data), _distance(kernels, data)]
    return [*answers, _peak(data)] if all("memory" in part for part in data["parts"]) else answers


def seconds_of(kernel: Mapping[str, Any], measured: bool) -> float:
    """Of one run of the program: measured, or the least that the machine's rates allow."""
    found: float = kernel.get("seconds", 0.0) if measured else kernel["least_seconds"] * kernel["times"]
    return found


def _top(kernels: Sequence[dict[str, Any]], data: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The kernel that takes the most time, and whether that is measured."""
    measured = "profile" in data
    return max(kernels, key=lambda k: seconds_of(k, measured)), measured


def _slowest(kernels: Sequence[dict[str, Any]], data: Mapping[str, Any]) -> dict[str, Any]:
    question = "Which kernel takes the most time?"
    if not kernels:
        return _answer(question, "No kernels", "The program computes nothing in kernels.", "#kernels")
    top, measured = _top(kernels, data)
    total = sum(seconds_of(k, measured) for k in kernels)
    share = seconds_of(top, measured) / total if total else 0.0
    text = f"{top['id']} ({top['title']}){_line(top, data)} takes {percent(share)} of the time of {counted(len(kernels), 'kernel')}"
    words = f": {duration(seconds_of(top, measured))} of {duration(total)}, measured." if measured else ", by estimate: this run was not profiled."
    found = _answer(question, f"{top['id']} · {top['title']}", text + words, f"#kernel-{top['id']}")
    return found | ({"place": top["places"][0]} if top["places"] else {})


def _distance(kernels: Sequence[dict[str, Any]], data: Mapping[str, Any]) -> dict[str, str]:
    question = "How far is it from the limit?"
    if not kernels:
        return _answer(question, "–", "There is nothing to compare.", "#roofline")
    top, measured = _top(kernels, data)
    least = top["least_seconds"] * top["times"]
    flops, nbytes = top["flops"] * top["times"], top["bytes"] * top["times"]
    why = f"{quantity(flops)} operations on {amount(nbytes)}: bound by {'memory' if top['bound'] == 'memory' else 'arithmetic'}"
    if not measured:
        text = f"This machine needs at least {duration(least)} for {top['id']} ({why}). How much longer it takes is known when a profile is given."
        return _answer(question, f"at least {duration(least)}", text, "#roofline")
    found = seconds_of(top, measured)
    ratio = found / least if least else 1.0
    text = f"{top['id']} takes {duration(found)}, {ratio:.2g} times the {duration(least)} that this machine needs at least for {why}."
    return _answer(question, f"{percent(1 / ratio if ratio else 0)} of the limit", text, "#roofline")


def _peak(data: Mapping[str, Any]) -> dict[str, Any]:
    question = "Where does the peak of memory come from?"
    parts = data["parts"]
    number = max(range(len(parts)), key=lambda i: parts[i]["memory"]["arena"], default=0)
    part = parts[number]
    memory = part["memory"]
    if not memory["arena"]:
        text = f"The program keeps no intermediates: arguments {amount(memory['arguments'])}, results {amount(memory['results'])}."
        return _answer(question, "No intermediates", text, "#memory")
    step = part["steps"][memory["peak_step"]]
    buffers = [memory["buffers"][i] for i in memory["at_peak"]]
    by = f"{step['kernels'][0]} ({step['title']})" if len(step["kernels"]) == 1 else step["title"]
    alive = "one buffer of intermediates is" if len(buffers) == 1 else f"{len(buffers)} buffers of intermediates are"
    text = f"In step {memory['peak_step']}, {by}, {alive} alive: {_by_line(buffers, data)}. {_bound(memory)}"
    found = _answer(question, f"{amount(memory['arena'])} in step {memory['peak_step']}", text, "#memory")
    places = [b["place"] for b in buffers[:1] if "place" in b]
    return found | ({"place": places[0]} if places else {})


def _by_line(buffers: Sequence[Mapping[str, Any]], data: Mapping[str, Any]) -> str:
    """What buffers hold, by the user's line that computes them, the most first."""
    held: dict[str, int] = {}
    types: dict[str, dict[str, int]] = {}
    for b in buffers:
        line = _line(b, data).removeprefix(" at ") or b["is"]
        held[line] = held.get(line, 0) + b["bytes"]
        counted = types.setdefault(line, {})
        counted[b["type"]] = counted.get(b["type"], 0) + 1
    named = sorted(held, key=lambda line: -held[line])[:MAX_NAMED]
    texts = [f"{amount(held[n])} from {n} ({_counted(types[n])})" for n in named]
    rest = sum(held.values()) - sum(held[n] for n in named)
    return ", ".join(texts) + (f", and {amount(rest)} from other lines" if rest else "")


def _counted(types: Mapping[str, int]) -> str:
    first, *more = [name if n == 1 else f"{n} × {name}" for name, n in types.items()]
    return first + (" and others" if more else "")


def _bound(memory: Mapping[str, Any]) -> str:
    over = memory["arena"] / memory["lower_bound"] - 1 if memory["lower_bound"] else 0.0
    return (
        "That is the least that any plan can have."
        if over == 0
        else f"No plan needs less than {amount(memory['lower_bound'])} ({100 * over:.1f} % less)."
    )


def _line(record: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """`` at block.py:18``."""
    place = record["places"][0] if record.get("places") else record.get("place")
    if place is None:
        return ""
    file, line = data["places"][place]
    name = data["files"][file]["name"].replace("\\", "/").rsplit("/", 1)[-1]
    return f" at {name}:{line}"


def _answer(question: str, headline: str, answer: str, link: str) -> dict[str, str]:
    return {"question": question, "headline": headline, "answer": answer, "link": link}


def duration(seconds: float) -> str:
    """Three digits: ``1.23 ms``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def amount(nbytes: float) -> str:
    """Three digits: ``1.5 MiB``."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if nbytes >= scale:
            return f"{nbytes / scale:.3g} {unit}" if nbytes < 1000 * scale else f"{nbytes / scale:.0f} {unit}"
    return f"{nbytes:.0f} bytes"


def quantity(n: float) -> str:
    """Three digits: ``33.6 million``."""
    for unit, scale in (("billion", 1e9), ("million", 1e6), ("thousand", 1e3)):
        if n >= scale:
            return f"{n / scale:.3g} {unit}"
    return f"{n:.0f}"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1g} %"
