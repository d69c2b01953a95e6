"""Saves beside the program: a thread of each rank writes its file, and rank 0's the index, once it sees that all files are there.

Threads exchange no messages, which the program's collectives are: next to its file a rank leaves a note of how long that is. Errors come to the
program where all ranks wait for the save.
"""

from __future__ import annotations

import atexit
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from hologram.distributed.checkpoint.agreement import together
from hologram.distributed.checkpoint.folder import file_name, write_parts
from hologram.errors import CheckpointError
from hologram.support.files import replacing
from hologram.support.world import World, current_world

LOOK = 0.02  # seconds between two looks for notes
GRACE = 60.0  # seconds that rank 0 waits for notes where its program has ended
Finish = Callable[[list[int]], None]


class Saving:
    """One save of this rank. ``finish`` is given the bytes of all files, on rank 0."""

    def __init__(self, work: Path, step: int, rank: int, ranks: int, parts: Mapping[str, np.ndarray], finish: Finish) -> None:
        self.step = step
        self.error: BaseException | None = None
        self._work, self._rank, self._ranks = work, rank, ranks
        self.written, self._is_given_up = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(parts, finish), name=f"hologram checkpoint {step}")
        self._thread.start()

    def _run(self, parts: Mapping[str, np.ndarray], finish: Finish) -> None:
        try:
            size = write_parts(self._work / file_name(self._rank, self._ranks), parts)
            with replacing(self._note(self._rank)) as temporary:
                temporary.write_text(str(size))
            self.written.set()
            if self._rank == 0:
                self._finish(finish)
        except BaseException as e:
            self.error = e
        finally:
            self.written.set()

    def _note(self, rank: int) -> Path:
        return self._work / f"{file_name(rank, self._ranks)}.bytes"

    def _finish(self, finish: Finish) -> None:
        notes = [self._note(rank) for rank in range(self._ranks)]
        ended: float | None = None
        while not all(n.exists() for n in notes):
            if ended is None and not threading.main_thread().is_alive():
                ended = time.monotonic()
            if self._is_given_up.wait(LOOK) or (ended is not None and time.monotonic() - ended > GRACE):
                missing = next(rank for rank, n in enumerate(notes) if not n.exists())
                raise CheckpointError(f"checkpoint.save: rank {missing} has not written its file of step {self.step}")
        sizes = [int(n.read_text()) for n in notes]
        for n in notes:
            n.unlink()
        finish(sizes)

    def join(self) -> None:
        """Until the checkpoint is there. Raises what one of its threads has raised, on every rank. All ranks call it."""
        what = f"checkpoint.save of step {self.step}"
        try:
            with together(what):
                self.written.wait()
                if self.error is not None and self._rank > 0:
                    raise self.error
        except BaseException:
            self._is_given_up.set()
            raise
        with together(what):
            if self._rank == 0:
                self._thread.join()
            if self.error is not None:
                raise self.error


_under_way: weakref.WeakKeyDictionary[World, Saving] = weakref.WeakKeyDictionary()


def begin(saving: Saving) -> None:
    """The save that this rank of a world has under way."""
    _under_way[current_world()] = saving


def wait() -> None:
    """Waits for the checkpoint that ``save(…, background=True)`` writes; without one it does nothing. All processes call it, as each ``save`` does.

    Raises what writing raised, on the ranks where it did, and CheckpointError on all others: the checkpoint is then not there.

    >>> hg.distributed.checkpoint.wait()
    """
    saving = _under_way.pop(current_world(), None)
    if saving is not None:
        saving.join()


@atexit.register
def _tell() -> None:
    """The program has ended without a wait: threads have, too."""
    for saving in _under_way.values():
        if saving.error is not None:
            warnings.warn(f"the checkpoint of step {saving.step} was not written: {saving.error}", RuntimeWarning, stacklevel=1)
