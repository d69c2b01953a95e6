"""PyTorch's CUDA tensors without a GPU: CPU tensors, most of them in the memory of a CUDA that is not there (``fake_cuda.py``).

Compiled graphs see a device ``cuda:0``, programs are CUDA text that the host's compiler has built, and they run at addresses, as on a device. What
PyTorch itself does with such tensors it does at once, on the CPU; so kernels run at once too, unless they are captured.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import torch

from tests.support.devices.fake_cuda import FakeApi

CUDA = torch.device("cuda", 0)


class PromptApi(FakeApi):
    """Work is done when it is put in a stream. Kernels may be given any address of the host: PyTorch's own results are there."""

    capturing_outside = False  # whether PyTorch captures the current stream

    def _put(self, stream: int, action: Callable[[], object]) -> None:
        super()._put(stream, action)
        if stream not in self.capturing:
            self.synchronize(stream)

    def _check(self, name: str, kinds: str, values: Any) -> None:
        return


class StandIn:
    """``tensor`` makes tensors in the memory of ``api``'s device, ``empty`` does so for compiled graphs; ``allocated`` and ``sent`` count tensors
    that these make and bring there. In compiled graphs tensors count as CUDA's, unless ``on_host`` says otherwise."""

    def __init__(self, api: PromptApi) -> None:
        self.api, self.allocated, self.sent = api, 0, 0
        self.on_host: Callable[[torch.Tensor], bool] = lambda x: False

    def empty(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        self.allocated += 1
        return self._made(shape, strides, dtype)

    def _made(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        elements = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if elements == 0:
            return torch.empty_strided(shape, strides, dtype=dtype)
        address = self.api.allocate(elements * dtype.itemsize)
        memory = (ctypes.c_uint8 * (elements * dtype.itemsize)).from_address(address)
        weakref.finalize(memory, self._freed, address)
        return torch.frombuffer(memory, dtype=dtype, count=elements).as_strided(shape, strides)

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
