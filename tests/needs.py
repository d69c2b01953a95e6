"""What a test may need of the machine: marks that skip it, with the reason, where that is not there."""

from __future__ import annotations

import pytest
from c_harness import MISSING as NO_COMPILERS

from hologram.backends.devices import why_none

NO_OPENCL = why_none("opencl")
needs_opencl = pytest.mark.skipif(NO_OPENCL is not None, reason=f"OpenCL: {NO_OPENCL}")
needs_compilers = pytest.mark.skipif(NO_COMPILERS is not None, reason=str(NO_COMPILERS))
