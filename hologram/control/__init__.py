"""Control flow with JAX's signatures: loops and branches that are compiled, not unrolled and not interpreted."""

from hologram.control.associative import associative_scan
from hologram.control.branches import cond, switch
from hologram.control.loops import fori_loop, scan, while_loop
from hologram.control.maps import map

__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]
