"""The public functions of namespaces of arrays, as parameters of tests."""

from __future__ import annotations

import pytest

import hologram as hg

NAMESPACES = {"numpy": hg.numpy, "nn": hg.nn, "linalg": hg.linalg, "fft": hg.fft, "random": hg.random, "special": hg.special}
FUNCTIONS = [
    pytest.param(f, id=f"{name}.{f.__name__}")
    for name, namespace in NAMESPACES.items()
    for f in (getattr(namespace, n) for n in namespace.__all__)
    if callable(f) and not isinstance(f, type)
]
