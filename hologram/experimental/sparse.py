"""``import hologram.experimental.sparse``: the package :mod:`hologram.sparse` under the name that JAX has for it."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("hologram.sparse")
