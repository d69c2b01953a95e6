"""What of a process, torch foremost, a library may change by being imported: read as a table, to be compared before and after."""

from __future__ import annotations

import copyreg
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
import torch.utils.data
from torch.nn.utils.rnn import PackedSequence
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

Rows = dict[str, Any]
OWNERS = [  # whose attributes are watched
    torch, torch._C, torch.accelerator, torch.random, torch.serialization, torch.storage, torch.utils, torch.utils.data, torch.autograd, torch.amp,
    torch.optim, torch.nn, torch.nn.functional, torch.library, torch.backends, torch.cuda, torch.cpu, torch.multiprocessing, torch.fx, torch.func,
    torch._decomp, torch.Tensor, torch.nn.Parameter, torch.nn.Module, torch.UntypedStorage, torch.TypedStorage, torch.storage._StorageBase,
    torch.Generator, torch.optim.Optimizer, torch.utils.data.DataLoader, PackedSequence, torch.autograd.Function, signal, warnings, threading, os,
]  # fmt: skip
KEYS = [
    "CPU",
    "Meta",
    "PrivateUse1",
    "AutogradCPU",
    "AutogradPrivateUse1",
    "AutocastCPU",
    "AutocastPrivateUse1",
    "CompositeImplicitAutograd",
    "Undefined",
]


def _attributes() -> Iterator[tuple[str, Any]]:
    """Attributes by identity. Modules are left out: that one has been imported changes nothing for who does not ask for it."""
    for owner in OWNERS:
        for name, x in list(vars(owner).items()):
            if not isinstance(x, ModuleType) and name not in ("__warningregistry__", "environ"):
                yield f"{owner.__name__}.{name}", id(x)


def _outcome(f: Callable[[], Any]) -> str:
    """What ``f`` does, in words: its result, its error, and its warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = repr(f())
        except Exception as e:
            found = f"{type(e).__name__}: {str(e).splitlines()[0]}"
    return f"{found} {[str(w.message) for w in told]}"


def _loaded() -> list[Any]:
    return list(torch.utils.data.DataLoader(torch.arange(4), batch_size=2, pin_memory=True))


OUTCOMES: dict[str, Callable[[], Any]] = {
    "pin_memory": lambda: torch.ones(2).pin_memory(),
    "is_pinned": lambda: torch.ones(2).is_pinned(),
    "empty(pin_memory=True)": lambda: torch.empty(2, pin_memory=True).shape,
    "storages' pin_memory": lambda: torch.ones(2).untyped_storage().pin_memory(),
    "DataLoader(pin_memory=True)": _loaded,
    "torch.Generator": lambda: [torch.Generator().device, type(torch.Generator())],
    "a device of another name": lambda: torch.device("hologram"),
    "the name of torch's free device": torch._C._get_privateuse1_backend_name,
    "accelerator": torch.accelerator.current_accelerator,
    "accelerator is available": torch.accelerator.is_available,
    "accelerators": torch.accelerator.device_count,
    "synchronize": torch.accelerator.synchronize,
    "memory_allocated": torch.accelerator.memory_allocated,
    "a random number": lambda: torch.rand(2, generator=torch.Generator().manual_seed(0)).tolist(),
    "default dtype, device": lambda: (torch.get_default_dtype(), torch.get_default_device()),
    "threads": lambda: (torch.get_num_threads(), torch.get_num_interop_threads()),
    "modes": lambda: (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.are_deterministic_algorithms_enabled()),
    "a parameter on meta": lambda: torch.nn.Linear(1, 1).to("meta").weight.device,
    "signals": lambda: [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT)],
}
LISTS: dict[str, Callable[[], Any]] = {
    "sys.meta_path": lambda: [id(x) for x in sys.meta_path],
    "sys.path": lambda: list(sys.path),
    "sys.path_hooks": lambda: [id(x) for x in sys.path_hooks],
    "hooks of sys": lambda: [id(x) for x in (sys.excepthook, sys.displayhook, sys.unraisablehook, sys.gettrace(), sys.getprofile())],
    "warnings.filters": lambda: [str(x) for x in warnings.filters],
    "the environment": lambda: dict(os.environ),
    "copyreg": lambda: sorted(map(str, copyreg.dispatch_table)),
    "serialization": lambda: [x[0] for x in torch.serialization._package_registry],
    "optimisers' hooks": lambda: [len(_global_optimizer_pre_hooks), len(_global_optimizer_post_hooks)],
    "modules' hooks": lambda: [
        len(v) for k, v in sorted(vars(torch.nn.modules.module).items()) if k.startswith("_global_") and hasattr(v, "__len__")
    ],
    "decompositions": lambda: {kind: sorted(map(str, table)) for kind, table in torch._decomp.global_decomposition_table.items()},
    **{f"kernels of {key}": lambda key=key: sorted(torch._C._dispatch_get_registrations_for_dispatch_key(key)) for key in KEYS},
}


def state() -> Rows:
    """All that is watched, by name."""
    return {**{name: _outcome(f) for name, f in OUTCOMES.items()}, **{name: f() for name, f in LISTS.items()}, **dict(_attributes())}


def differences(before: Rows, after: Rows) -> list[str]:
    """The names of what has changed, with both values where they can be read."""
    changed = [name for name in before | after if before.get(name, "absent") != after.get(name, "absent")]
    return [f"{name}: {before.get(name, 'absent')} -> {after.get(name, 'absent')}" for name in changed]
