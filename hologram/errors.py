"""Every error that a user can cause has a type here. All derive from :class:`HologramError` and from the builtin that
NumPy users would catch."""

from __future__ import annotations


class HologramError(Exception):
    """Base of all of Hologram's own errors."""


class ShapeError(HologramError, ValueError):
    """Shapes do not fit the op."""


class NoAxisError(ShapeError, TypeError):
    """What has no axes was counted or gone through."""


class DTypeError(HologramError, TypeError):
    """An element type that the op does not take."""


class IntegerRangeError(HologramError, OverflowError):
    """A Python integer that does not fit the element type it meets."""


class IndexOutOfRange(HologramError, IndexError):
    """A static index beyond its axis."""


class AxisOutOfRange(ShapeError, IndexError):
    """An axis that an array has not."""


class ReadOnlyError(HologramError, ValueError):
    """Elements of a Tensor were assigned to that is read-only, as NumPy's diagonals, stretched arrays and scalars are."""


class ArgumentError(HologramError, TypeError):
    """An argument of a jitted function, or of an API call, that Hologram cannot take."""


class CopyError(ArgumentError, ValueError):
    """``copy=False`` where a copy is needed."""


class TracedValueError(HologramError, TypeError):
    """A value was read (``float``, ``bool``, ``numpy()``, a Python ``if``) while tracing, where it does not exist yet."""


class LeakedTracerError(HologramError, RuntimeError):
    """A traced Tensor was kept and used after its trace had ended."""


class TransformError(HologramError, TypeError):
    """An op that a transform has no rule for."""


class DifferentiationError(TransformError):
    """A function, argument or result that cannot be differentiated, or not in this mode."""


class SettingsError(HologramError, RuntimeError):
    """A setting that one thread overrides while another thread overrides it with another value: settings are of the process."""


class TreeError(HologramError, TypeError):
    """Pytrees of different structure, or with a leaf of an unknown type."""


class AxisNameError(HologramError, NameError):
    """A named axis that no ``vmap`` or ``shard_map`` around the code has."""


class StaticArgumentError(HologramError, TypeError):
    """A static argument that cannot be hashed."""


class DonatedBufferError(HologramError, RuntimeError):
    """A Tensor whose buffer was donated to a jitted call was used again."""


class ExportError(HologramError, ValueError):
    """A function that cannot be saved, and which op, argument or result a file cannot hold."""


class ProgramFileError(HologramError, ValueError):
    """A file of a saved program that is damaged, of another version, or says what no program can."""


class CheckError(HologramError, ValueError):
    """A condition that ``hg.debug.check`` was given did not hold when the program ran."""


class NonFiniteError(HologramError, FloatingPointError):
    """A result has a NaN or an Inf, under ``hg.debug.nans``: names the op that made it, and the user's line."""


class OutOfMemory(HologramError, MemoryError):
    """A result or an arena that is too large to allocate."""


class DeviceError(HologramError, RuntimeError):
    """A device or backend that cannot be had, and why."""


class DistributedError(HologramError, RuntimeError):
    """Processes that run a program together and cannot go on: one is lost, or they do not run the same program."""


class DistributedTimeoutError(DistributedError, TimeoutError):
    """A process that did not come to a collective in time."""


class CheckpointError(HologramError, ValueError):
    """A checkpoint that is not there, is damaged, or does not hold what is asked for."""


class UnsupportedError(DeviceError, NotImplementedError):
    """An op or an element type that a backend does not have, or not yet."""


class BackendNameError(DeviceError, ValueError):
    """A name that no backend of the SDK has."""


class FreedBufferError(HologramError, RuntimeError):
    """An SDK buffer was used after it was freed, or after the end of its executor."""


class ClosedExecutorError(HologramError, RuntimeError):
    """An SDK executor was used after its end."""


class HandleError(HologramError, LookupError):
    """A handle that was never given out, or whose object was released."""


class CompileError(HologramError, RuntimeError):
    """A kernel that does not verify or compile: a defect of Hologram, with the kernel's text."""


class BoundsError(HologramError, RuntimeError):
    """A kernel that was compiled with ``checked`` set was about to access memory beyond a buffer, which it then did not: a defect of Hologram,
    with the buffer, the index, the statement and the kernel's text."""


class PassLimitError(CompileError):
    """A pass of the compiler that does not end within its bound: a defect of Hologram, with the name of the pass."""


class RewriteError(HologramError, RuntimeError):
    """A rewrite rule that changed a shape or type, or a cycle of rules: names the rule."""


class CacheWarning(UserWarning):
    """An entry of the disk cache was refused, and why."""


class WideningWarning(UserWarning):
    """An array became of a wider type because a NumPy scalar, which is not weak as Python's numbers are, met it."""


class FallbackWarning(UserWarning):
    """NumPy computed what Hologram lacks, on the values of Tensors: names the function, once. ``settings.warn_fallback`` turns it off."""


class GatherWarning(UserWarning):
    """An array that is divided among processes was gathered on each of them, for an operation that reads more than a part: names the array."""


class UntracedWarning(UserWarning):
    """A function that was to be compiled runs as it is, and why."""


def is_defect(e: Exception) -> bool:
    """Whether an exception tells of a defect of the compiler, not of something that it refuses.

    >>> hg.errors.is_defect(hg.errors.ShapeError("shapes [2] and [3] differ"))
    False
    """
    return isinstance(e, (CompileError, RewriteError))
