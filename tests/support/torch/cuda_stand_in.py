"""PyTorch's CUDA tensors without a GPU: CPU tensors, most of them in the memory of a CUDA that is not there (``fake_cuda.py``).

Compiled graphs see a device ``cuda:0``, programs are CUDA text that the host's compiler has built, and they run at addresses, as on a device. What
PyTorch itself does with such tensors it does at once, on the CPU; so kernels run at once too, unless they are captured.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable

import torch

from tests.support.devices.fake_cuda import FakeApi

CUDA = torch.device("cuda", 0)


class PromptApi(FakeApi):
    """Work is done when it is put in a stream. Kernels may be given any address of the host but those of freed memory: PyTorch's own results are
    there."""

    capturing_outside = False  # whether PyTorch captures the current stream

    def __init__(self, devices: int = 1, memory_bytes: int = 2**28) -> None:
        super().__init__(devices, memory_bytes)
        self._working = threading.RLock()  # PyTorch's threads free memory, which waits for all work, while others put work in streams

    def _put(self, stream: int, action: Callable[[], object]) -> None:
        with self._working:
            super()._put(stream, action)
            if stream not in self.capturing:
                self.synchronize(stream)

    def finish(self) -> None:
        with self._working:
            super().finish()

    def _is_valid(self, address: int) -> bool:
        return not self.was_freed(address)


class StandIn:
    """``tensor`` makes tensors in the memory of ``api``'s device, ``empty`` does so for compiled graphs; ``allocated`` and ``sent`` count tensors
    that these make and bring there. In compiled graphs tensors count as CUDA's, unless ``on_host`` says otherwise. While PyTorch captures, ``empty``
    takes memory of the graph's ``pool``, which keeps it, and to which what is freed meanwhile returns: tensors of the graph may have it next."""

    def __init__(self, api: PromptApi) -> None:
        self.api, self.allocated, self.sent = api, 0, 0
        self.pool: list[tuple[int, int]] = []  # addresses and bytes of what is free there
        self.on_host: Callable[[torch.Tensor], bool] = lambda x: False

    def empty(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        self.allocated += 1
        return self._made(shape, strides, dtype)

    def _made(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        elements = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if elements == 0:
            return torch.empty_strided(shape, strides, dtype=dtype)
        nbytes = elements * dtype.itemsize
        address = self._pooled(nbytes) if self.api.capturing_outside else self.api.allocate(nbytes)
        memory = (ctypes.c_uint8 * nbytes).from_address(address)
        if self.api.capturing_outside:
            weakref.finalize(memory, self.pool.append, (address, nbytes))
        else:
            weakref.finalize(memory, self._freed, address)
        return torch.frombuffer(memory, dtype=dtype, count=elements).as_strided(shape, strides)

    def _pooled(self, nbytes: int) -> int:
        """The smallest piece of the pool that is large enough, as PyTorch's allocator takes it, or a new one."""
        free = [piece for piece in self.pool if piece[1] >= nbytes]
        if not free:
            return self.api.allocate(nbytes)
        found = min(free, key=lambda piece: piece[1])
        self.pool.remove(found)
        return found[0]

    def _freed(self, address: int) -> None:
        if address in self.api.live:
            self.api.free(address)

    def tensor(self, x: torch.Tensor) -> torch.Tensor:
        """A copy on the device, with the strides of ``x``."""
        with torch.no_grad():
            made = self._made(tuple(x.shape), tuple(x.stride()), x.dtype).copy_(x)
        return made.requires_grad_(x.requires_grad)

    def module(self, m: torch.nn.Module) -> torch.nn.Module:
        """``m`` with its parameters and buffers on the device."""
        for x in (*m.parameters(), *m.buffers()):
            x.data = self.tensor(x.detach())
        return m

    def send(self, x: torch.Tensor, device: torch.device) -> torch.Tensor:
        self.sent += 1
        return self.tensor(x)
