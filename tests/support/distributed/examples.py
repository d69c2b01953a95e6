"""What the examples of several processes compute, as a program that ``torchrun`` starts: ``-m tests.support.distributed.examples FOLDER``.

Each rank writes a file of lines into the folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import hologram as hg
from examples import data_parallel, pipeline_parallel, ring_attention, tensor_parallel

MAX_PARTS = 4  # heads of the transformer block, stages of the pipeline


def bits(x: Any) -> str:
    return x.hex() if isinstance(x, float) else x.tobytes().hex()


def results() -> list[str]:
    """The bits of what this rank gets, a line for each example."""
    runs = [data_parallel.train(4, zero=False), data_parallel.train(4, zero=True), ring_attention.run(32)]
    if hg.distributed.process_count() <= MAX_PARTS:
        runs += [tensor_parallel.train(3), pipeline_parallel.train(3)]
    return [" ".join(map(bits, found)) for found in runs]


if __name__ == "__main__":
    hg.distributed.initialize(timeout=60)
    (Path(sys.argv[1]) / str(hg.distributed.process_index())).write_text("\n".join(results()))
