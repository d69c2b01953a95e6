"""The Hologram SDK: executors, buffers, and ops that run on them. ``hologram`` has the same names."""

from hologram.sdk import backend, ops
from hologram.sdk.buffer import Buffer
from hologram.sdk.executor import Executor

__all__ = ["Buffer", "Executor", "backend", "ops"]
