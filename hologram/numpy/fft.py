"""``import hologram.numpy.fft``: the package :mod:`hologram.fft` under the name that NumPy has for it."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("hologram.fft")
