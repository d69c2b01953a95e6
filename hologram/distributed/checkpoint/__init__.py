"""Checkpoints of sharded training: folders of safetensors files with an index, written whole or not at all. See docs/sharded_training.md."""

from hologram.distributed.checkpoint.background import wait
from hologram.distributed.checkpoint.folder import latest, steps
from hologram.distributed.checkpoint.restoring import restore
from hologram.distributed.checkpoint.saving import save

__all__ = ["latest", "restore", "save", "steps", "wait"]
