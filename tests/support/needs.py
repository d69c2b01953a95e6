"""What a test may need of the machine: marks that skip it, with the reason, where that is not there."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hologram.ir.devices import why_none
from tests.support.devices.c_harness import MISSING as NO_COMPILERS


def of_numpy(f: Callable[..., Any], *args: Any) -> Any:
    """``f(np, *args)``; skips where this NumPy is too old for a name in ``f``."""
    try:
        return f(np, *args)
    except AttributeError as e:
        if getattr(e, "obj", None) is np and np.lib.NumpyVersion(np.__version__) < "2.4.0":
            pytest.skip(f"NumPy {np.__version__} has no {e.name}")
        raise


needs_levels = pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="levels are those of x86-64")
NO_OPENCL = why_none("opencl")
needs_opencl = pytest.mark.skipif(NO_OPENCL is not None, reason=f"OpenCL: {NO_OPENCL}")
needs_compilers = pytest.mark.skipif(NO_COMPILERS is not None, reason=str(NO_COMPILERS))
