"""What other libraries are told about Tensors when they are imported: one module for each, with a function ``register``."""

from __future__ import annotations

from importlib import import_module

from hologram.support.imports import when_imported

_MODULES = {  # modules of other libraries, and where is written what they are told
    "dask.array": "dask",
    "distributed.protocol": "distributed",
    "einops._backends": "einops",
    "opt_einsum.backends.dispatch": "opt_einsum",
    "tensorly.backend": "tensorly",
}


def tell_libraries() -> None:
    """Registers Tensors with the libraries that have been imported, and with others when they are."""
    for library, module in _MODULES.items():
        when_imported(library, lambda module=module: import_module(f"hologram.libraries.{module}").register())  # type: ignore[misc]
