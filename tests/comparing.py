"""Comparing results with what is wanted."""

from __future__ import annotations

from typing import Any

import numpy as np


def close(got: Any, want: Any, rtol: float = 1e-6, atol: float = 1e-7) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=rtol, atol=atol)
