"""Generated code of kernels: assembly on CPUs, a device's language there, as far as it fits into a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MAX_BYTES = 500_000  # of all code in one report
MAX_KERNEL_BYTES = 60_000  # of one kernel


def code_data(executable: Any, kernels: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """``language``, and the ``texts`` of functions, once each. Gives each kernel the number of its text as ``code``, or says under ``no_code`` why it
    has none."""
    language, known = executable.kernel_code()
    texts: list[str] = []
    number: dict[str, int] = {}
    left = MAX_BYTES
    for k in sorted(kernels, key=lambda k: -k["least_seconds"]):
        text = known.get(k["text"] + "\n", "")
        if text in number:
            k["code"] = number[text]
        elif not text:
            k["no_code"] = "it is part of the graph's function" if known else "this backend does not show it"
        elif len(text) > min(left, MAX_KERNEL_BYTES):
            k["no_code"] = f"{len(text):,} bytes of it are left out: lower(…).as_text(stage) prints all of it"
        else:
            k["code"] = number[text] = len(texts)
            texts.append(text)
            left -= len(text)
    return {"language": language, "texts": texts}
