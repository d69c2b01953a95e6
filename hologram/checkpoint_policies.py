"""``import hologram.checkpoint_policies``: the module :mod:`hologram.transform.checkpoint_policies` under its public name."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("hologram.transform.checkpoint_policies")
