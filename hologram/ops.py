"""``import hologram.ops``: the module :mod:`hologram.sdk.ops` under its public name."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("hologram.sdk.ops")
