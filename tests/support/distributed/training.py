"""A training that is killed, as a program that ``torchrun`` starts: ``-m tests.support.distributed.training FOLDER STEPS TIMEOUT``.

Its checkpoints are what is compared. ``FOLDER/resumed`` gets a line for each start: the rank, the process's number, and the step that it goes on
from. Rank 1 removes a file ``FOLDER/hang``, and hangs.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import hologram as hg
from examples import data_parallel
from hologram.distributed import checkpoint, initialize, process_index

EVERY = 5
PAUSE = 0.01  # seconds a step, so that there is a while to be killed in


def main() -> None:
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    initialize(timeout=float(sys.argv[3]))
    with open(folder / "resumed", "a") as file:
        file.write(f"{process_index()} {os.getpid()} {checkpoint.latest(folder / 'checkpoints') or 0}\n")
    hg.distributed.process_allgather(process_index())
    step_of = data_parallel.sharded_step

    def slow(mesh: object) -> object:
        step = step_of(mesh)  # type: ignore[arg-type]

        def run(*args: object) -> object:
            time.sleep(PAUSE)
            if process_index() == 1 and (folder / "hang").exists() and checkpoint.latest(folder / "checkpoints"):
                (folder / "hang").unlink()
                time.sleep(1000)
            return step(*args)  # type: ignore[operator]

        return run

    data_parallel.sharded_step = slow
    data_parallel.train(steps, zero=True, folder=str(folder / "checkpoints"), every=EVERY)


if __name__ == "__main__":
    main()
