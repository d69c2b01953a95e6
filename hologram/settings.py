"""Every environment variable and switch, typed, in one place.

``HOLOGRAM_DEBUG`` is a ladder: 1 devices, 2 timings, 3 kernels, 4 source, 5 graphs, 6 every pass that changed something,
7 assembly. ``with hg.settings.override(debug=3): ...`` sets any of them for a block, ``hg.settings.debug = 3`` for good.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hologram.errors import SettingsError

_CHANGE_CODE = (
    "disabled_passes", "target", "codegen_level", "tf32", "hold_limit", "checked", "profile", "default_float", "default_int", "weak_numpy_scalars",
    "standard_floor_divide", "inplace_packages",
)  # fmt: skip
MAX_CODEGEN_LEVEL = 2
listeners: list[Callable[[], None]] = []  # called when a field has changed that native code follows
field_listeners: dict[str, list[Callable[[], None]]] = {"op_by_op": []}  # called when one field has changed


_OFF, _ON = ("0", "false", "no", "off", ""), ("1", "true", "yes", "on")


def _switch(value: Any) -> str:
    """``on``, ``off`` or ``auto``. Raises ValueError for anything else."""
    text = str(value).strip().lower()
    found = "off" if text in _OFF else "on" if text in _ON else text
    if found not in ("on", "off", "auto"):
        raise ValueError(f"progress is on, off or auto, not {value!r}")
    return found


def _looked_for(value: Any) -> str:
    """``on``, ``nan`` or nothing. Raises ValueError for anything else."""
    text = str(value).strip().lower()
    found = "" if text in (*_OFF, "none") else "on" if text in _ON else text
    if found not in ("on", "nan", ""):
        raise ValueError(f"nans is on, nan or off, not {value!r}")
    return found


INPLACE_PACKAGES = (
    "scipy", "sklearn", "array_api_compat", "array_api_extra", "dask", "einops", "networkx", "opt_einsum", "pandas", "pint", "skimage", "statsmodels",
    "tensorly", "uncertainties", "xarray",
)  # fmt: skip
_DEFAULTS = {"default_float": ("float16", "bfloat16", "float32", "float64"), "default_int": ("int32", "int64")}


def _type_name(name: str, value: Any) -> str:
    """The name of an element type, which a type or a NumPy dtype may stand for. Raises ValueError for others than a default may be."""
    found = value if isinstance(value, str) else getattr(value, "name", None) or getattr(value, "__name__", str(value))
    if found not in _DEFAULTS[name]:
        raise ValueError(f"{name} is {' or '.join(_DEFAULTS[name])}, not {value!r}")
    return str(found)


@dataclass(slots=True)
class Settings:
    """Every switch, one field each; :data:`settings` is the one that counts. An unknown field is an AttributeError.

    >>> hg.settings.settings.cache_limit == hg.settings.cache_limit
    True
    """

    debug: int = 0  # HOLOGRAM_DEBUG
    num_threads: int = 0  # HOLOGRAM_NUM_THREADS; 0: what affinity and the cgroup quota allow
    cache: bool = True  # HOLOGRAM_CACHE: the disk cache of object code
    cache_dir: Path | None = None  # HOLOGRAM_CACHE_DIR; None: the user's cache folder
    cache_limit: int = 512 * 2**20  # HOLOGRAM_CACHE_LIMIT, bytes
    native: bool = True  # HOLOGRAM_NATIVE: native entry; False: the Python path serves every call
    disabled_passes: tuple[str, ...] = ()  # HOLOGRAM_DISABLE_PASSES, comma-separated names
    target: str = ""  # HOLOGRAM_TARGET: cpu name or features in place of the host's
    codegen_level: int = MAX_CODEGEN_LEVEL  # HOLOGRAM_CODEGEN_LEVEL, of LLVM and of OpenCL compilers: 0 compiles sooner, code is slower
    explain_misses: bool = False  # HOLOGRAM_EXPLAIN_MISSES: say why a jitted function compiled again
    op_by_op: bool = True  # HOLOGRAM_OP_BY_OP: small lazy expressions of a new structure run without being compiled
    program_limit: int = 256 * 2**20  # HOLOGRAM_PROGRAM_LIMIT, bytes of the programs of lazy expressions that are kept
    memory_limit: int = 0  # HOLOGRAM_MEMORY_LIMIT, bytes that results may hold; 0: no limit
    hold_limit: int = 2**30  # HOLOGRAM_HOLD_LIMIT, bytes that a program may hold of what it computes once from constants; 0: nothing is held
    verify: bool = False  # HOLOGRAM_VERIFY: the compiler proves what it makes: graphs after each pass, kernels, plans
    tf32: bool = False  # HOLOGRAM_TF32: products of float32 on CUDA may round factors to TF32, except in precision="exact"
    checked: bool = False  # HOLOGRAM_CHECKED: kernels of the CPU check every index, memory starts as NaNs between guard pages; several times slower
    progress: str = "auto"  # HOLOGRAM_PROGRESS: bars of long loops and compilations: auto, in terminals and notebooks; on, everywhere; off
    nans: str = ""  # HOLOGRAM_NANS: results are looked at: on, for NaN and Inf; nan, for NaN alone; see hg.debug.nans
    standard_floor_divide: bool = False  # HOLOGRAM_STANDARD_FLOOR_DIVIDE: // with infinities as in the Array API, not as in NumPy
    profile: bool = False  # HOLOGRAM_PROFILE: programs for the CPU count the time of each step; set by hg.profile
    default_float: str = "float32"  # HOLOGRAM_DEFAULT_FLOAT: the element type of floats without one: float16, bfloat16, float32, float64
    default_int: str = "int64"  # HOLOGRAM_DEFAULT_INT: that of integers without one: int32, int64
    weak_numpy_scalars: bool = False  # HOLOGRAM_WEAK_NUMPY_SCALARS: a NumPy float takes the type of an array that it meets, as Python's does
    traceback: str = "short"  # HOLOGRAM_TRACEBACK: of errors that nobody catches: short, without Hologram's own frames; full
    warn_fallback: bool = True  # HOLOGRAM_WARN_FALLBACK: a warning for each function of NumPy's that runs in NumPy because Hologram lacks it
    inplace_packages: tuple[str, ...] = INPLACE_PACKAGES  # HOLOGRAM_INPLACE_PACKAGES: in whose code x += v writes into x, as NumPy's arrays do
    code: tuple[Any, ...] = field(init=False, repr=False)  # the fields on which code depends: a part of every key of compiled code

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("disabled_passes", "inplace_packages"):
            value = (value,) if isinstance(value, str) else tuple(value)
        if name == "progress":
            value = _switch(value)
        if name in _DEFAULTS:
            value = _type_name(name, value)
        if name == "traceback" and value not in ("short", "full"):
            raise ValueError(f"traceback is short or full, not {value!r}")
        if name == "codegen_level" and value not in range(MAX_CODEGEN_LEVEL + 1):
            raise ValueError(f"codegen_level is a number from 0 to {MAX_CODEGEN_LEVEL}, not {value!r}")
        if name == "nans":
            value = _looked_for(value)
        object.__setattr__(self, name, value)
        if name in _CHANGE_CODE:
            code = [getattr(self, n, None) for n in _CHANGE_CODE]
            object.__setattr__(self, "code", (*code[:-1], ",".join(code[-1] or ())))  # the packages as a text, whose hash Python keeps
        if name in _CHANGE_CODE or name in ("debug", "native", "memory_limit", "nans", "progress"):
            for listener in listeners:
                listener()
        for listener in field_listeners.get(name, ()):
            listener()


def variable(field_name: str) -> str:
    """The environment variable of a field.

    >>> hg.settings.variable("disabled_passes")
    'HOLOGRAM_DISABLE_PASSES'
    """
    return "HOLOGRAM_" + _environment_names.get(field_name, field_name).upper()


def from_environment(environment: Mapping[str, str]) -> Settings:
    """The settings that environment variables ask for. Raises ValueError for text that is no value of its field.

    >>> hg.settings.from_environment({"HOLOGRAM_DEBUG": "3"}).debug
    3
    """
    return Settings(**{n: _parse(n, getattr(_default, n), environment.get(variable(n))) for n in _names})


def _parse(name: str, default: Any, text: str | None) -> Any:
    if text is None or (text == "" and name == "cache_dir"):  # "" would be the current folder
        return default
    if isinstance(default, bool):
        return text.strip().lower() not in _OFF
    if isinstance(default, int):
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"{variable(name)} must be an integer, not {text!r}") from None
    if isinstance(default, tuple):
        return tuple(t.strip() for t in text.split(",") if t.strip())
    return Path(text) if name == "cache_dir" else text


_default = Settings()
_environment_names = {"disabled_passes": "disable_passes"}
_names = [f.name for f in fields(Settings) if f.init]
settings = from_environment(os.environ)


@contextlib.contextmanager
def override(**changes: Any) -> Iterator[Settings]:
    """Context manager that sets fields of :data:`settings` for a block, and puts them back.

    Settings are of the process: other threads see them, too. Threads may override a field at the same time if they agree on its value; the last
    one that leaves puts it back. Raises SettingsError where another thread is in a block with another value, AttributeError for an unknown field,
    ValueError for a value that the field does not take.

    >>> with hg.settings.override(num_threads=1):
    ...     hg.settings.num_threads
    1
    """
    for k in changes:
        if k not in _names:
            raise _no_setting(k)
    entered: list[_Override] = []
    try:
        for k, v in changes.items():
            entered.append(_enter(k, v))
        yield settings
    finally:
        for o in reversed(entered):
            _leave(o)


@dataclass(slots=True, eq=False)
class _Override:
    """One field within one block: the value that it has there, in the thread that entered the block."""

    name: str
    value: Any
    thread: int


_active: dict[str, list[_Override]] = {}  # by field, in the order in which blocks were entered
_before: dict[str, Any] = {}  # of each field of _active, the value outside of all blocks
_lock = threading.RLock()  # listeners may set fields


def _enter(name: str, value: Any) -> _Override:
    """Sets a field for a block. All blocks of other threads agree on a field's value, so that none sees another than it asked for."""
    with _lock:
        before, thread = getattr(settings, name), threading.get_ident()
        setattr(settings, name, value)  # which checks it, and brings it into its normal form
        found = _Override(name, getattr(settings, name), thread)
        others = [o.value for o in _active.get(name, ()) if o.thread != thread and o.value != found.value]
        if others:
            setattr(settings, name, before)
            raise SettingsError(
                f"override: {name} is {others[-1]!r} in a block of another thread, and cannot be {found.value!r} here at the same time: "
                "settings are of the process; override them around the threads, or run one after the other"
            )
        if name not in _active:
            _active[name], _before[name] = [], before
        _active[name].append(found)
        return found


def _leave(override: _Override) -> None:
    """Puts a field back: to the value of the last block that is still open, or to that before all blocks."""
    with _lock:
        still = _active[override.name]
        still.remove(override)
        if still:
            setattr(settings, override.name, still[-1].value)
        else:
            del _active[override.name]
            setattr(settings, override.name, _before.pop(override.name))


def __getattr__(name: str) -> Any:
    """The fields of :data:`settings` are attributes of this module too."""
    if name in _names:
        return getattr(settings, name)
    raise _no_setting(name)


def _no_setting(name: str) -> AttributeError:
    import difflib

    like = "".join(f"; did you mean {x!r}?" for x in difflib.get_close_matches(name, _names, n=1))
    return AttributeError(f"there is no setting {name!r}; there are {', '.join(_names)}{like}")


class _Module(types.ModuleType):
    """This module, whose fields can be set; a misspelt one is an error."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _names:
            setattr(settings, name, value)
        elif name in vars(self) or name.startswith("__"):
            super().__setattr__(name, value)
        else:
            __getattr__(name)


sys.modules[__name__].__class__ = _Module
