"""The text of a whole program in a dialect: types, helpers, decompositions, kernels; and how each kernel is launched."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hologram.backends.c.dialects import DIALECTS, Dialect
from hologram.backends.c.grid import Mapping
from hologram.backends.c.helpers import HELPERS, needed
from hologram.backends.c.kernel import KernelWriter
from hologram.backends.c.scalars import Scalars
from hologram.errors import UnsupportedError
from hologram.graph.kernel.ir import Kernel
from hologram.graph.kernel.printer import print_kernel

_DOUBLE = re.compile(r"\bf64\b|\bc128\b|hg_c128|hg_f64|hg_bits_f64|f64_to_|odd_")


class Program:
    """``text`` of all kernels, alike ones once; ``names`` and ``mappings`` by kernel, ``kernel_texts`` by the text of its IR.
    ``double``: whether float64 is used."""

    def __init__(self, kernels: Iterable[Kernel], dialect: str, precision: str = "standard") -> None:
        self.dialect: Dialect = DIALECTS[dialect]
        scalars = Scalars(self.dialect)
        made: dict[str, tuple[str, Mapping]] = {}
        self.names: dict[Kernel, str] = {}
        self.kernel_texts: dict[str, str] = {}
        self.mappings: dict[Kernel, Mapping] = {}
        texts: list[str] = []
        for k in kernels:
            key = print_kernel(k)
            if key not in made:
                writer = KernelWriter(k, scalars, precision)
                name = f"kernel{len(made)}"
                self.kernel_texts[key] = writer.render(name)
                texts.append(self.kernel_texts[key])
                made[key] = name, writer.mapping
            self.names[k], self.mappings[k] = made[key]
        body = "\n".join([*scalars.vectors.values(), *scalars.functions.values(), *texts])
        helpers = [self.dialect.function + self.dialect.helpers.get(name, HELPERS[name]) for name in needed(body)]
        body = "\n".join([*helpers, body])
        self.double = _DOUBLE.search(body) is not None
        if self.double and self.dialect.double is None:
            raise UnsupportedError(f"{dialect} has no float64, which {_first_double(texts, scalars)} needs")
        self.text = self.dialect.prelude + ((self.dialect.double or "") if self.double else "") + "\n" + body


def _first_double(texts: list[str], scalars: Scalars) -> str:
    """What it is that needs float64: a function, or the arithmetic of a kernel."""
    for name, text in scalars.functions.items():
        if _DOUBLE.search(text):
            return name.removeprefix("hgf_")
    return next((f"kernel{i}" for i, text in enumerate(texts) if _DOUBLE.search(text)), "a conversion")
