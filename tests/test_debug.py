"""The DEBUG ladder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.settings import override

LEVELS = [  # what a level tells, and the level
    ("--- hologram: device ---", 1),
    ("--- hologram: call: ", 2),
    ("--- hologram: code generation: ", 2),
    ("--- hologram: kernels ---", 3),
    ("--- hologram: LLVM IR ---", 4),
    ("--- hologram: traced graph ---", 5),
    ("--- hologram: canonical graph ---", 5),
    ("--- simplify", 6),
    ("--- hologram: assembly ---", 7),
]


@pytest.mark.parametrize("level", range(8))
@pytest.mark.parametrize("lazy", [False, True])
def test_a_level_tells_its_own_and_all_below(level: int, lazy: bool, capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        return (x + (0.5 + level)) * 1 + (lazy + 1)

    with override(debug=level, cache=False, op_by_op=False):
        hg.clear_caches()
        x = np.ones(7, np.float32)
        result = f(hg.tensor(x)) if lazy else hg.jit(f)(x)
        assert np.asarray(hnp.asarray(result)).tolist() == f(x).tolist()
    said = capsys.readouterr().err
    assert [text for text, at in LEVELS if (text in said) != (at <= level)] == []


def test_nothing_is_told_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    np.asarray(hg.jit(lambda x: x + 1)(np.ones(3)))
    assert capfd.readouterr() == ("", "")
