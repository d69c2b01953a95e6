"""The classes of the layers above whose objects native code makes and reads."""

from __future__ import annotations

from hologram.backends.native.code.object_layout import slot_offset
from hologram.backends.native.module import immortal, module, why_not_native


def register_tensor_class(cls: type) -> None:
    """Tells native code which class results have: its slots ``_node``, ``_storage`` and ``_weak`` become None, a Storage and False."""
    if why_not_native() is not None:
        return
    p = module().process
    p.tensor_node, p.tensor_storage, p.tensor_weak = (slot_offset(cls, name) for name in ("_node", "_storage", "_weak"))
    p.tensor_type = id(immortal(cls))


def register_buffer_class(cls: type) -> None:
    """Tells native code which class buffers have: its slot ``_storage`` holds a Storage, or None."""
    if why_not_native() is None:
        p = module().process
        p.buffer_storage, p.buffer_type = slot_offset(cls, "_storage"), id(immortal(cls))
